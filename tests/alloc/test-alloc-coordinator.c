/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "alloc-coordinator.h"
#include "cmocka-test.h"

/*
 * One coordinator's whole work, again and again, each time without another one of its allocations: three
 * nodes adopted; one of them deleted, with pods, a budget and a volume; one whose Node vanishes and whose
 * claim is deleted; the pool deleted, which lets go of the third; two nodes of nobody's that ask for a
 * reboot and are granted it, one after the other. It may exit, or not start at all, and be started again
 * (the kubelet does that), and be late by a retry; but machines end, finalizers go, no pod is deleted past
 * its budget, and nothing of ours is left.
 */

#define CALM_USEC (60 * USEC_PER_SEC) /* as a dead leader's lease has to run out first */

/* -- one run ------------------------------------------------------------------------------------------- */

static bool is_settled(CoordinatorRig *r, const char *node) {
        return !rig_node(r, node) && !rig_claim(r, node);
}

static void run_until_gone(CoordinatorRig *r, const char *node, usec_t at_most_usec) {
        for (usec_t t = 0; t < at_most_usec && !is_settled(r, node); t += USEC_PER_SEC)
                alloc_run_coordinator(r, USEC_PER_SEC);
}

static void ask_for_reboot(CoordinatorRig *r, const char *node, int hours) {
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop) + (usec_t) hours * USEC_PER_HOUR, until);
        fake_add_node(r->cluster, node, NULL, NULL, NULL);
        fake_merge(
                r->cluster, FAKE_NODES, NULL, node,
                "{'metadata':{'annotations':{'vesper.sh/shutdown-request':'{\\'id\\':\\'%s\\',\\'bootID\\':"
                "\\'%s-boot-1\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'%s\\'}'}}}",
                node, node, until);
}

static const char *grant_of(CoordinatorRig *r, const char *node) {
        return strempty(
                fj_string(rig_node(r, node), "metadata", "annotations", "vesper.sh/shutdown-granted", NULL));
}

static CoordinatorRig *make_world(void) {
        CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        fake_add_nodepool(r->cluster, POOL, "1h", NULL);
        rig_add_node(r, "n0");
        rig_add_node(r, "n1");
        rig_add_node(r, "n2");
        for (int i = 0; i < 3; i++) {
                _cleanup_free_ char *web = MUST(strf("web-%d", i)), *db = MUST(strf("db-%d", i));

                fake_add_pod(r->cluster,
                             &(FakePod){ .name = web, .node = "n0", .app = "web", .stop_sec = 3 });
                fake_add_pod(r->cluster, &(FakePod){ .name = db, .node = "n0", .app = "db", .stop_sec = 3 });
        }
        fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2");
        ask_for_reboot(r, "r0", 1);
        ask_for_reboot(r, "r1", 2);
        /* The answer to an earlier one. */
        fake_merge(r->cluster, FAKE_NODES, NULL, "r1",
                   "{'metadata':{'annotations':{'vesper.sh/shutdown-granted':'{}'}}}");
        fake_put(r->cluster, FAKE_VOLUMEATTACHMENTS,
                 fj_parse("{'metadata':{'name':'a'},'spec':{'nodeName':'n0','attacher':'x','source':"
                          "{'persistentVolumeName':'pv1'}},'status':{'attached':true}}"));
        return r;
}

/* Not rig_delete_node(): what asks waits in steps of every loop. */
static void ask_to_delete(CoordinatorRig *r, FakeResourceId id, const char *name) {
        (void) fake_delete(r->cluster, id, NULL, name, -1);
}

static bool is_alive(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);

        return streq_ptr(fake_ec2_state(r->ec2, instance), "running");
}

/* NULL, or what was not as it should be. */
static const char *look(CoordinatorRig *r) {
        if (!is_settled(r, "n0") || is_alive(r, "n0"))
                return "the deleted node, its claim or its machine is still there";
        if (rig_evictions(r, 201) != 6 || fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL) > 0)
                return "not exactly six evictions were accepted, or a pod was deleted";
        if (!is_settled(r, "n2") || is_alive(r, "n2"))
                return "the claim without Node or its machine is still there";
        if (fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL))
                return "the deleted pool is still there";
        if (!rig_node(r, "n1") || rig_has_finalizer(rig_node(r, "n1")) || rig_claim(r, "n1"))
                return "the node of the deleted pool is not let go";
        if (!is_alive(r, "n1"))
                return "the machine of the deleted pool's node was ended";
        if (!isempty(grant_of(r, "r0")))
                return "the grant of a node that is back from its reboot stands there still";
        if (!strstr(grant_of(r, "r1"), "\"id\":\"r1\""))
                return "the second node that asked for a reboot is not granted it";
        return NULL;
}

static const char *work(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        _cleanup_free_ char *name = NULL;
        CoordinatorRig *r = make_world();
        const char *wrong;
        bool first;

        alloc_fault_arm(fails_at);
        alloc_fault_pause();
        alloc_start_coordinator(r);
        alloc_run_coordinator(r, CALM_USEC);
        ask_to_delete(r, FAKE_NODES, "n0");
        alloc_run_coordinator(r, CALM_USEC);
        if (!strstr(grant_of(r, "r0"), "\"id\":\"r0\""))
                alloc_run_coordinator(r, 2 * CALM_USEC); /* of a leader that has begun anew */
        first = strstr(grant_of(r, "r0"), "\"id\":\"r0\"") && !strstr(grant_of(r, "r1"), "r1");
        fake_merge(r->cluster, FAKE_NODES, NULL, "r0", "{'status':{'nodeInfo':{'bootID':'r0-boot-2'}}}");
        fake_remove(r->cluster, FAKE_PDBS, "default", "db-budget");
        alloc_run_coordinator(r, CALM_USEC);
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
        run_until_gone(r, "n0", 3 * USEC_PER_MINUTE);

        fake_remove(r->cluster, FAKE_NODES, NULL, "n2");
        alloc_run_coordinator(r, CALM_USEC);
        if (rig_claim(r, "n2")) {
                name = MUST(strdup(fj_string(rig_claim(r, "n2"), "metadata", "name", NULL)));
                ask_to_delete(r, FAKE_NODECLAIMS, name);
        }
        run_until_gone(r, "n2", 5 * USEC_PER_MINUTE);

        ask_to_delete(r, FAKE_NODEPOOLS, POOL);
        for (int i = 0; i < 90 && fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL); i++)
                alloc_run_coordinator(r, USEC_PER_SEC);
        alloc_fault_resume();
        *ret_n = alloc_fault_disarm();

        wrong = first ? look(r) : "not the first node alone was granted its reboot first";
        *ret_log = strdup(strbuf_str(&r->coordinators[0]->said));
        coordinator_rig_free(r);
        return wrong;
}

TEST_CASE(test_work) {
        alloc_sweep(work, NULL, "every node removed or let go");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work),
        };

        return cmocka_run_group_tests_name("alloc-coordinator", tests, NULL, NULL);
}
