/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * intent-log.c: what the agent must know after a crash and cannot read off its Node: which notice was
 * handled how far, which one a person overruled, and for which one the node was cordoned long enough. One small record in the StateStore, JSON, versioned,
 * written whole at each change:
 *
 *      {"version":1,"bootID":"...","notices":[{"id":..., ..., "phase":"Draining","since":"..."}, ...]}
 *
 * An intent is of one boot, and so is the record: it lies under /run. What outlives a boot is the Node's
 * annotation. The record names its boot all the same: the folder may have been put elsewhere, where a boot
 * leaves it; what it says of another boot is passed over. One that cannot be read is reported and treated
 * as absent, and written over by the next note, or where something is forgotten that it may have; a folder
 * that cannot be written is reported and stops nothing. In memory the log works without any record.
 */

#include "env.h"
#include "interruption.h"

typedef enum IntentPhase {
        INTENT_CORDONED,
        INTENT_DRAINING,
        INTENT_DRAINED,
        INTENT_RELEASED, /* a person un-cordoned: this notice is not acted upon again */
        INTENT_OVER,     /* the time for which [Policy] cordons for it has passed: it is not cordoned for again */
        _INTENT_PHASE_MAX,
        _INTENT_PHASE_INVALID = -EINVAL,
} IntentPhase;

/* The phase of the annotation vesper.sh/interruption that stands for p. OVER: INTERRUPTION_PHASE_NONE, as the annotation goes then. */
InterruptionPhase intent_phase_to_interruption(IntentPhase p);
/* _INTENT_PHASE_INVALID: the log knows no such phase. */
IntentPhase intent_phase_of_interruption(InterruptionPhase p);

typedef struct Intent {
        Notice *notice;
        IntentPhase phase;
        usec_t since_usec; /* wall clock: when its drain began, or when what the node is only cordoned for was seen first; 0: neither */
} Intent;

/* Those of the record, oldest first. */
typedef struct IntentRecord {
        char *boot_id;
        Intent *items;
        size_t n_items;
} IntentRecord;

#define INTENTS_MAX 16u

/* Pure (fuzzed). -EBADMSG: no JSON; -EINVAL: not such a record; -ENOTSUP: of a later version; -E2BIG,
 * -ENOMEM. */
int intent_record_parse(const char *data, size_t size, IntentRecord *ret);
char *intent_record_format(const IntentRecord *r); /* NULL on ENOMEM */
void intent_record_done(IntentRecord *r);

typedef struct IntentLog IntentLog;

/* Reads what is there. Fails for want of memory only. */
int intent_log_new(Env *env, IntentLog **ret);
IntentLog *intent_log_free(IntentLog *l); /* writes nothing */
DEFINE_FREEP(IntentLog, intent_log_free);

const Intent *intent_log_find(const IntentLog *l, const char *id); /* NULL: never heard of */
/* Notes and writes. */
void intent_log_note(IntentLog *l, const Notice *n, IntentPhase phase, usec_t since_usec);
/* The occurrence is over: the same id would be a new one. */
void intent_log_forget(IntentLog *l, const char *id);
/* The oldest that `over` says true of, or NULL. */
const Intent *intent_log_find_if(const IntentLog *l, bool (*over)(const Intent *i, void *userdata),
                                 void *userdata);
