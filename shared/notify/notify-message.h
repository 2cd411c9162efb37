/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * notify/: telling others, by one HTTP POST for each phase, how far an interruption or a removal is ([Notify] of both
 * daemons). Nothing waits for it, and nothing depends on it. Calls base, loop, log, config, json, http-client, metrics;
 * called by agent/ and coordinator/.
 *
 *      notify-message.c   a phase with its facts, and the body made of them (pure)
 *      notify-settings.c  the keys of [Notify], and what their files hold
 *      notify-verdict.c   what an answer means for a message, and for how long it is tried (pure)
 *      notify-sender.c    the queue: one message after the other of each node, tried again while there is time
 *
 * A message has the key {uid of the Node, id of the notice, phase}: who gets one of the same key again, after a restart
 * of the agent or from a new leader, may drop it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "macro.h"
#include "time-util.h"

typedef enum NotifyPhase {
        NOTIFY_REPORTED,
        NOTIFY_PLANNED,
        NOTIFY_NOTICED,
        NOTIFY_HELD,
        NOTIFY_CORDONED,
        NOTIFY_DRAINING,
        NOTIFY_BLOCKED,
        NOTIFY_DRAINED,
        NOTIFY_EXPIRED,
        NOTIFY_CANCELLED,
        NOTIFY_RELEASED,
        NOTIFY_ENDING,
        NOTIFY_MACHINE_BLOCKED,
        NOTIFY_ENDED,
        _NOTIFY_PHASE_MAX,
        _NOTIFY_PHASE_INVALID = -EINVAL,
} NotifyPhase;

extern const char *const notify_phase_names[_NOTIFY_PHASE_MAX + 1]; /* "machine-blocked"; NULL behind the last */
NotifyPhase notify_phase_from_string(const char *s);

/* All borrowed; NULL or "": not known. */
typedef struct NotifyFacts {
        NotifyPhase phase;
        const char *reporter;       /* "vesper-agent" */
        const char *node, *node_uid;
        const char *notice_id;
        const char *kind;           /* of the notice ("spot"), or "deletion" */
        const char *source;         /* who announced it: "ec2" */
        const char *action;         /* what happens to the machine: "terminate" */
        usec_t deadline_usec;       /* wall clock, when the machine may be gone; 0 or USEC_INFINITY: not said */
        usec_t time_usec;           /* wall clock, of the phase */
        int64_t pods_left;          /* -1: not known */
        const char *message;        /* a sentence for people */
} NotifyFacts;

#define NOTIFY_KEY_MAX 33u /* 32 hex digits and a NUL */
/* -ENOMEM. */
int notify_key(const NotifyFacts *f, char ret[NOTIFY_KEY_MAX]);

/* A text with placeholders {{NAME}}; "{{{{" stands for "{{". The names are those of the members of the default body
 * (notify_fields). Of other text nothing is asked: it may be JSON or not. Values lose what a chat takes for markup: "<", ">",
 * "&", "@" and "`" become "?", brackets become parentheses. The default body, for programs, has them as they are. */
#define NOTIFY_TEMPLATE_MAX_BYTES 8192u
#define NOTIFY_TEMPLATE_FIELDS_MAX 32u
#define NOTIFY_VALUE_MAX_BYTES 1024u /* of a value, before it is escaped; what is longer is cut */
/* Of each body. A byte of a value becomes three at most. */
#define NOTIFY_BODY_MAX_BYTES (NOTIFY_TEMPLATE_MAX_BYTES + NOTIFY_TEMPLATE_FIELDS_MAX * (3u * NOTIFY_VALUE_MAX_BYTES + 16u))

typedef struct NotifyTemplate NotifyTemplate;

extern const char *const notify_fields[]; /* NULL behind the last */

/* -EINVAL: *reterr_reason says what is wrong, static, and *reterr_at where (bytes from the beginning); -ENOMEM. */
int notify_template_parse(const char *text, size_t size, NotifyTemplate **ret, const char **reterr_reason, size_t *reterr_at);
NotifyTemplate *notify_template_free(NotifyTemplate *t);
DEFINE_FREEP(NotifyTemplate, notify_template_free);

/* The body, owned by the caller: the template with each value escaped as inside of a JSON string, so that it belongs
 * between quotes there. Template NULL: a JSON object of all that is known. NULL: out of memory. */
char *notify_body(const NotifyTemplate *t, const NotifyFacts *f);

#define NOTIFY_SIGNATURE_MAX 72u /* "sha256=", 64 hex digits and a NUL */
/* HMAC-SHA256 of the seconds since 1970 in decimal, a full stop, and the body. -ENOMEM. */
int notify_sign(const void *secret, size_t secret_size, uint64_t time_sec, const char *body, char ret[NOTIFY_SIGNATURE_MAX]);
