/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations for the files of sim-seen. */

#include "sim-check-internal.h"
#include "sim-seen.h"

struct SimObserver {
        SimCheck *check;
        Hashmap *counts;   /* SimCounts by process and number of the life */
        Hashmap *compared; /* values that sim_seen_compare() has found different, by key */
        Hashmap *started;  /* uint8_t by life, leadership and uid of a Node whose removal has begun */
        Hashmap *uids;     /* char *: "Kind name" of each object that ever was, by uid */
        Hashmap *told;     /* EventCount of sim-seen-events.c, by reason and uid of the object */
        Hashmap *left;     /* pods that a drain of the Node waits for, by Node: SimLeft */
        struct SimEnded *ended; /* removals whose Events are looked at next, the oldest first */
        size_t n_ended, ended_allocated;
        uint64_t n_removed;  /* Nodes that were deleted and are gone */
        usec_t changed_usec; /* when a Node, NodeClaim or pod changed last */
        usec_t look_usec;  /* when metrics and vesperctl are looked at next */
};

/* A removal that one life has completed. */
typedef struct SimEnded {
        char *uid, *node, *life; /* of the Node; the life with its leadership */
        usec_t at_usec;
        const SimCounts *counts; /* of the life; borrowed */
} SimEnded;

#define SIM_LEFT_MAX 64u

/* Number of pods on a Node that a drain waits for, now and before. */
typedef struct SimLeft {
        int64_t n;
        struct {
                int64_t n;
                usec_t until_usec;
        } before[SIM_LEFT_MAX]; /* a ring */
        size_t n_before; /* number of changes since the start, more than the ring holds */
} SimLeft;

/* Compares a shown value with the truth, which lies from low to high. Breaks the invariant `seen` if the
 * value is outside, nothing was in the way for lag_usec, and the truth stayed the same meanwhile. */
void sim_seen_compare(SimObserver *o, const char *key, double shown, double low, double high,
                      usec_t lag_usec);
/* Like sim_seen_compare(), for texts. */
void sim_seen_compare_text(SimObserver *o, const char *key, const char *shown, const char *truth,
                           usec_t lag_usec);
SimCounts *sim_seen_counts(SimObserver *o, const SimLife *l);
/* Returns the running process whose request is handled in this step, or NULL. */
SimProcess *sim_seen_actor(const SimObserver *o);
/* Returns the number of pods that a drain of this Node waits for. */
int64_t sim_seen_pods_left(const SimObserver *o, const char *node);
/* Like sim_seen_pods_left(), without pods whose end is overdue by minutes: a drain gives them up. */
int64_t sim_seen_pods_alive(const SimObserver *o, const char *node);
/* Returns true if a drain of the Node had n pods to wait for at some moment of the last within_usec. Also
 * returns true if the number has changed too often since to know. */
bool sim_seen_pods_left_were(const SimObserver *o, const char *node, int64_t n, usec_t within_usec);
bool sim_seen_is_ours(const cJSON *object); /* has the finalizer */
/* Returns the JSON of an annotation; NULL: absent or unreadable. Free it. */
cJSON *sim_seen_annotation(const cJSON *object, const char *key);

/* sim-seen-status.c */
void sim_seen_conditions_written(SimObserver *o, const FakeChange *change);
void sim_seen_counts_written(SimObserver *o, const FakeChange *change);
void sim_seen_look_at_statuses(SimObserver *o);
/* sim-seen-metrics.c */
void sim_seen_look_at_metrics(SimObserver *o);
/* sim-seen-events.c */
void sim_seen_event_written(SimObserver *o, const cJSON *old, const cJSON *new);
void sim_seen_note_object(SimObserver *o, const FakeChange *change);
/* Called when the process has taken the finalizer off a Node that is being deleted. */
void sim_seen_removal_ended(SimObserver *o, const SimLife *l, const cJSON *node);
void sim_seen_ended_done(SimEnded *e);
void sim_seen_look_at_events(SimObserver *o);
/* sim-seen-ctl.c */
void sim_seen_look_at_ctl(SimObserver *o);
