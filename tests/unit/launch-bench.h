/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixture of tests of coordinator/capacity: a node whose pool replaces its machine. */

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "repair-bench.h"
#include "successors.h"

#define S USEC_PER_SEC
#define REPLACE "'disruption':{'onInterruption':'Replace'}"
#define READINESS "{'key':'readiness.k8s.io/gpu','effect':'NoSchedule'}" /* a taint */
#define ATTEMPTS (SUCCESSOR_ATTEMPTS_MAX + 1) /* one more than are made */

/* Node n0 of a pool with onInterruption: Replace, in a cloud with launch and find. */
typedef struct Room {
        CoordinatorRig *rig;
        char *replaced;                /* NodeClaim of n0 */
        char *names[ATTEMPTS + 1];     /* NodeClaims of its successors, from 1 */
} Room;

/* Before the coordinator starts. */
static inline void room_make(Room *r) {
        *r = (Room){ .rig = coordinator_rig_new() };
        r->rig->toy.launches = true;
}

static inline void room_begin(Room *r, const char *pool_spec) {
        rig_begin(r->rig, 1, NULL);
        fake_merge(r->rig->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':%s}", pool_spec);
        rig_run(r->rig, S);
        r->replaced = MUST(strdup(fj_string(rig_claim(r->rig, "n0"), "metadata", "name", NULL)));
        for (int64_t i = 1; i <= ATTEMPTS; i++)
                r->names[i] = MUST(successor_claim_name(r->replaced, i));
}

static inline void room_init(Room *r) {
        room_make(r);
        room_begin(r, "{" REPLACE "}");
}

static inline void room_done(Room *r) {
        coordinator_rig_free(r->rig);
        free(r->replaced);
        for (size_t i = 0; i < ELEMENTSOF(r->names); i++)
                free(r->names[i]);
}

#define _cleanup_room_ __attribute__((cleanup(room_done)))

/* The agent of the node reports a notice. */
static inline void interrupt(Room *r, const char *node, const char *kind, const char *action) {
        fake_merge(r->rig->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'x\\',\\'kind\\':\\'%s\\',\\'source\\':\\'ec2\\',"
                   "\\'action\\':\\'%s\\',\\'phase\\':\\'Cordoned\\'}'}}}",
                   kind, action);
}

/* The queue reports a notice about n0. */
static inline void announce(Room *r, const char *kind) {
        fake_merge(r->rig->cluster, FAKE_NODECLAIMS, NULL, r->replaced,
                   "{'metadata':{'annotations':{'" ANNOTATION_ANNOUNCED
                   "':'{\\'notices\\':[{\\'id\\':\\'e\\',\\'kind\\':\\'%s\\',"
                   "\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\'}]}'}}}",
                   kind);
}

static inline const cJSON *claim(Room *r, int attempt) {
        return fake_get(r->rig->cluster, FAKE_NODECLAIMS, NULL, r->names[attempt]);
}

static inline const char *phase(Room *r, int attempt) {
        return strempty(fj_string(claim(r, attempt), "status", "phase", NULL));
}

static inline const char *request(Room *r, const char *field) {
        return strempty(fj_string(claim(r, 1), "status", "group", field, NULL));
}

static inline size_t n_claims(Room *r) {
        return fake_count(r->rig->cluster, FAKE_NODECLAIMS);
}

static inline void delete_claim(Room *r, int attempt) {
        assert_true(fake_delete(r->rig->cluster, FAKE_NODECLAIMS, NULL, r->names[attempt], -1));
}

/* The next launches are answered so. */
static inline void set_answers(Room *r, const ToyLaunchAnswer *answers, size_t n) {
        assert_true(n <= ELEMENTSOF(r->rig->toy.launch_answers));
        for (size_t i = 0; i < n; i++)
                r->rig->toy.launch_answers[i] = answers[i];
        r->rig->toy.n_launch_answers = n;
}

static inline void set_pool(Room *r, const char *spec) {
        fake_merge(r->rig->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':%s}", spec);
}

static inline bool has_ended(Room *r, const char *node) {
        return rig_machine(r->rig, node)->state != INSTANCE_PRESENT;
}

static inline bool is_deleting(const cJSON *o) {
        return fj_string(o, "metadata", "deletionTimestamp", NULL);
}

static inline void interrupt_and_run(Room *r, usec_t usec) {
        interrupt(r, "n0", "spot", "terminate");
        rig_run(r->rig, usec);
}

/* The first successor and its machine are all that is left. */
static inline void assert_replaced(Room *r) {
        assert_null(rig_node(r->rig, "n0"));
        assert_true(has_ended(r, "n0"));
        assert_int_equal(n_claims(r), 1);
        assert_int_equal(r->rig->toy.n_launched, 1);
        assert_false(has_ended(r, "n0-1"));
        assert_ptr_equal(rig_claim(r->rig, "n0-1"), claim(r, 1));
        assert_true(rig_has_finalizer(claim(r, 1)));
}

/* n0 is interrupted, and its successor has a machine. */
static inline void room_init_launched(Room *r) {
        room_init(r);
        interrupt_and_run(r, 30 * S);
        assert_string_equal(phase(r, 1), "Launched");
        assert_replaced(r);
}
