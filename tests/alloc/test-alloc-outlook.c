/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "alloc-coordinator.h"
#include "cmocka-test.h"
#include "marks.h"
#include "vanished-pods.h"

/*
 * A NodePool begins to ask which nodes would go though nobody asked; pods come and change; it asks no more. Again and again,
 * each time without another allocation of the leader's. It may exit and be started again, and be late; but claims say in
 * the end what is so, and nothing goes.
 */

/* As a dead leader's lease has to run out first, and the next one judges nothing before it knows which pods left. */
#define CALM_USEC (60 * USEC_PER_SEC + VANISHED_USEC)

static void add_pod(CoordinatorRig *r, const char *name, const char *node) {
        fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = node, .app = "web", .owner_kind = "ReplicaSet", .owner = "web" });
}

static CoordinatorRig *make_world(void) {
        CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_GC, false);
        rig_begin(r, 2, NULL);
        add_pod(r, "web-1", "n0");
        return r;
}

static void set_disruption(CoordinatorRig *r, int generation, const char *disruption) {
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'generation':%d},'spec':{'disruption':%s}}", generation, disruption);
}

static bool says(CoordinatorRig *r, const char *node, const char *type, const char *reason) {
        return streq_ptr(rig_condition_reason(rig_claim(r, node), type), reason);
}

/* NULL, or what was not as it should be. */
static const char *play(CoordinatorRig *r) {
        set_disruption(r, 10, "{'emptyAfter':'1h','expireAfter':'720h','drift':'Auto','consolidation':{'policy':'WhenUnderutilized'},'budgets':[]}");
        alloc_run_coordinator(r, CALM_USEC);
        if (!says(r, "n0", CLAIM_CONSOLIDATABLE, "WouldGo") || !says(r, "n0", CLAIM_EXPIRED, "NotExpired") ||
            !says(r, "n0", CLAIM_DRIFTED, "NotDrifted") || !says(r, "n1", CLAIM_EMPTY, "QuietPeriod"))
                return "claims do not say what would be";
        add_pod(r, "web-2", "n1");
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "2");
        alloc_run_coordinator(r, CALM_USEC);
        if (!says(r, "n0", CLAIM_CONSOLIDATABLE, "PdbImpossible") || !says(r, "n1", CLAIM_EMPTY, "NotEmpty"))
                return "claims do not say what has changed";
        set_disruption(r, 11, "null");
        alloc_run_coordinator(r, CALM_USEC);
        if (rig_condition(rig_claim(r, "n0"), CLAIM_CONSOLIDATABLE) || rig_condition(rig_claim(r, "n1"), CLAIM_EMPTY))
                return "claims say what nobody asks any more";
        if (!rig_is_adopted(r, "n0") || !rig_is_adopted(r, "n1") || rig_evictions(r, 0) > 0)
                return "a node is not as it was";
        return NULL;
}

static const char *work(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        CoordinatorRig *r = make_world();
        const char *wrong;

        alloc_fault_arm(fails_at);
        alloc_fault_pause();
        wrong = play(r);
        alloc_fault_resume();
        *ret_n = alloc_fault_disarm();
        *ret_log = strdup(strbuf_str(&r->coordinators[0]->said));
        coordinator_rig_free(r);
        return wrong;
}

TEST_CASE(test_work) {
        alloc_sweep(work, NULL, "claims say what would be, and nothing goes");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work),
        };

        return cmocka_run_group_tests_name("alloc-outlook", tests, NULL, NULL);
}
