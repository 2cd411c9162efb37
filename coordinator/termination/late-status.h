/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the coordinator tells of one object in its status, as it changes: the newest is what is written, one
 * patch under way at a time, tried again until the API server takes it. What changes is told 0.8 s later
 * (what does not last so long costs no write), progress at most every 2 s, and less often while very many
 * objects have progress to tell. Never waited for: nothing reads it back but people.
 *
 * The conditions are kept here, each with its newest state; the owner adds the other fields (add_fields()) to the patch
 * (status-patch.h).
 */

#include "kube-client.h"
#include "kube-kinds.h"
#include "token-bucket.h"
#include "wakeup.h"

#define LATE_STATUS_CONDITIONS_MAX 16u

typedef struct LateStatus LateStatus;

typedef struct LateStatusOptions {
        KubeClient *client;
        HttpGuard guard;
        const KubeKind *kind; /* Node, NodeClaim or NodePool */
        const char *name;     /* copied */
        bool of_version;      /* of a Node: it takes a patch only in the version in view; else 409, and the next version is tried */
        TokenBucket *progress; /* each write of nothing but progress takes one; NULL: as many as there are */
        /* The object as it is in view, borrowed; NULL: it is not, ask again in a second. */
        const KubeObject *(*object_now)(void *userdata);
        /* Writes what the status says besides conditions; NULL: nothing. Neither may touch the client's calls. */
        void (*add_fields)(JsonWriter *w, void *userdata);
        void *userdata;
} LateStatusOptions;

/* All borrowed but the name. */
int late_status_new(const LateStatusOptions *o, LateStatus **ret);
LateStatus *late_status_free(LateStatus *s); /* what was not sent is not sent any more */
DEFINE_FREEP(LateStatus, late_status_free);

/* Something that add_fields() says has changed; progress: nothing but how far it is. */
void late_status_changed(LateStatus *s, bool progress);
/* Call when the object in view may be another. If its resourceVersion is below one that was in view before, etcd was restored, and the status
 * is that of the backup: all of it is written again. */
void late_status_see(LateStatus *s);
/* type: static (marks.h). The transition is now. Setting what is set, or what the object says already, changes nothing;
 * short of memory the old text stays. */
void late_status_set_condition(LateStatus *s, const char *type, ConditionStatus status, const char *reason,
                               const char *message);
/* As it was set, or else as the object says. False: neither. Borrowed until the next set. */
bool late_status_condition(const LateStatus *s, const char *type, Condition *ret);

/* The object is about to go, and who would read it? What was not told yet is told only if it is still there in
 * 20 seconds. */
void late_status_hold(LateStatus *s);
void late_status_flush(LateStatus *s); /* what was not told yet is told at once */
bool late_status_is_told(const LateStatus *s);
void late_status_end(LateStatus *s);   /* the object is gone: nothing is told any more */
/* Reports a change that the API server has not accepted yet. The change is sent, or sent again, within
 * LATE_STATUS_WAKEUP_USEC. */
#define LATE_STATUS_WAKEUP_USEC USEC_PER_MINUTE
void late_status_next_wakeup(const LateStatus *s, Wakeups *w);
