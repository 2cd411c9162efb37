/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Invariant `seen`: the values that people read agree with the world. An observer that knows the fake
 * cluster's objects, its requests and the fake clouds counts for itself, and compares:
 *
 *      sim-seen           counts of each life's requests and writes; the comparison with its lag
 *      sim-seen-status    conditions, status and annotations of objects
 *      sim-seen-metrics   a row for each metric family of agent and coordinator
 *      sim-seen-events    Events: their object, count, times, and how often each occurrence is reported
 *      sim-seen-ctl       the rows of vesperctl status, the causes of vesperctl explain (their objects: sim-ctl.h)
 *
 * A value may lag behind the world. SIM_SEEN_LAG_USEC is longer than each delay of HACKING.md ("How calls
 * are admitted"). The comparison reports a wrong value only if nothing was in the way for that long
 * (sim_check_was_calm()), and the truth stayed the same meanwhile.
 */

#include "fake-store.h"
#include "http-message.h"
#include "http-transport.h"
#include "sim-process.h"

#define SIM_SEEN_LAG_USEC (25 * USEC_PER_SEC)

typedef struct SimObserver SimObserver;

/* Counts of one life of a process, from its start. The process's own counters are never above these. */
typedef struct SimCounts {
        uint64_t api_sent, evictions_sent, cloud_sent, metadata_sent; /* requests */
        uint64_t verbs[9];                        /* of api_sent, by SimVerb */
        uint64_t evicted, gone;                   /* evictions answered with 2xx, and with 404 */
        uint64_t node_writes_refused;             /* writes to a Node answered with 4xx and 5xx */
        uint64_t adopted, released, started, finished; /* Nodes */
        uint64_t granted;                         /* reboot slots */
        uint64_t repairs;                         /* Nodes that it deleted, or asked to be rebooted */
        uint64_t cordons, drained;
        /* agent: interruptions written anew, and phases that became Drained */
        uint64_t reviews;                         /* admission reviews that reached it */
        /* Each request was answered in time, and the process has had no other life: counters equal these
         * counts. */
        bool is_exact;
} SimCounts;

typedef enum SimVerb { SIM_GET_OR_LIST, SIM_WATCH, SIM_CREATE, SIM_UPDATE, SIM_PATCH, SIM_DELETE,
                       SIM_EVICT } SimVerb;

SimObserver *sim_observer_new(SimCheck *c);
SimObserver *sim_observer_free(SimObserver *o);
DEFINE_FREEP(SimObserver, sim_observer_free);

/* Called by sim-check: for a write to the store, for a request of a process, for the answer to the request
 * of this step, and each second. */
void sim_observer_changed(SimObserver *o, const FakeChange *change);
void sim_observer_sent(SimObserver *o, const SimLife *life, const HttpRequest *request, const char *peer,
                       bool clean);
void sim_observer_answered(SimObserver *o, unsigned status);
void sim_observer_look(SimObserver *o);
/* Called by sim-webhook when the API server asks the process about a deletion. */
void sim_observer_asked(SimObserver *o, const SimProcess *p);

/* Returns a metric family without a row in the tables of sim-seen-metrics.c; NULL: each has one. */
const char *sim_seen_unobserved_family(void);
