/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "drain-bench.h"

/* -- the plain way -------------------------------------------------------------------------------------- */

TEST_CASE(test_empty) {
        Bench b;
        uint64_t lists;

        bench_init(&b);
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "ds", .node = NODE, .owner_kind = "DaemonSet", .owner = "d" });
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "static", .node = NODE, .owner_kind = "Node", .owner = NODE,
                                 .annotations = "{'kubernetes.io/config.mirror':'x'}" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "elsewhere", .node = "node-b" });
        run_for(&b, USEC_PER_SEC);
        lists = fake_api_count(fake_cluster_api(b.w.cluster), FAKE_LIST, FAKE_PODS, NULL);

        begin(&b, 0, PROTECTED_WAIT, false);
        assert_state(&b, NODE_DRAIN_DRAINING);
        run_for(&b, 100 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_LIST, FAKE_PODS, NULL),
                         lists + 1);
        assert_int_equal(n_evictions(&b), 0);
        assert_trace(&b, "");

        print_message("  proven once, not again and again\n");
        node_drain_wake(b.drain);
        run_for(&b, USEC_PER_MINUTE);
        assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_LIST, FAKE_PODS, NULL),
                         lists + 1);
        bench_done(&b);
}

/* A drain reports pods that only look static once each, five at most; they do not hold the node. */
TEST_CASE(test_left_alone) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "owned", .node = NODE, .owner_kind = "Node", .owner = NODE });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "annotated", .node = NODE, .annotations = "{'kubernetes.io/config.mirror':'x'}" });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 100 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_trace(&b, "left alone annotated; left alone owned");
        for (int i = 0; i < 10; i++) {
                char name[8] = { (char) ('a' + i), 0 };

                fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = NODE, .owner_kind = "Node", .owner = NODE });
        }
        run_for(&b, USEC_PER_SEC);
        node_drain_wake(b.drain);
        run_for(&b, USEC_PER_SEC);
        assert_trace(&b, "left alone a; left alone b; left alone c");
        assert_int_equal(n_evictions(&b), 0);
        bench_done(&b);
}

/* Finished pods have the size that etcd takes, in characters that JSON escapes: the list that proves the
 * node empty exceeds one answer, and comes in pages. */
TEST_CASE(test_large_finished_pods) {
        enum { SIZE = 1400000 };
        _cleanup_free_ char *text = malloc(6 * SIZE + 1);
        Bench b;

        assert_non_null(text);
        for (size_t i = 0; i < SIZE; i++)
                memcpy(text + 6 * i, "\\u0001", 6);
        text[6 * SIZE] = 0;
        bench_init(&b);
        for (int i = 0; i < 12; i++) {
                char name[8] = { (char) ('a' + i), 0 };

                fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = NODE });
                fake_merge(b.w.cluster, FAKE_PODS, "default", name, "{'status':{'phase':'Failed','message':'%s'}}", text);
        }
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

TEST_CASE(test_pods) {
        Bench b;

        bench_init(&b);
        for (int i = 0; i < 3; i++) {
                char name[8] = { (char) ('a' + i), 0 };

                fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = NODE, .stop_sec = i });
        }
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        assert_int_equal(node_drain_pods_left(b.drain), 3); /* the drain has not made its first step */
        run_for(&b, 500 * MSEC);
        assert_trace(&b, "evicted a; evicted b; evicted c; gone a");
        assert_int_equal(node_drain_pods_left(b.drain), 2);
        assert_blockers(&b, "b Terminating, c Terminating");
        assert_state(&b, NODE_DRAIN_DRAINING);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_trace(&b, "gone b; gone c");
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(n_evictions(&b), 3);
        assert_blockers(&b, "");
        bench_done(&b);
}

/* The effects of evictions are reported together; an effect that needs an action is acted on at once. */
TEST_CASE(test_told_together) {
        unsigned n;
        Bench b;

        bench_init(&b);
        for (int i = 0; i < 10; i++) {
                char name[8] = { (char) ('a' + i), 0 };

                fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = NODE, .stop_sec = 2 });
        }
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_SEC);
        n = b.n_changed;
        assert_in_range(n, 1, 3);
        assert_int_equal(node_drain_pods_left(b.drain), 10);

        print_message("  nine of ten go, one every 30 ms\n");
        for (int i = 0; i < 9; i++) {
                fake_merge(b.w.cluster, FAKE_PODS, "default", (char[]){ (char) ('a' + i), 0 },
                           "{'metadata':{'labels':{'x':'y'}}}");
                assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", (char[]){ (char) ('a' + i), 0 }));
                run_for(&b, 30 * MSEC);
        }
        assert_in_range(b.n_changed, n, n + 2);
        run_for(&b, 500 * MSEC);
        assert_in_range(b.n_changed, n + 1, n + 3);
        assert_int_equal(node_drain_pods_left(b.drain), 1);

        print_message("  the last one\n");
        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "j"));
        run_for(&b, 60 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

TEST_CASE(test_critical_last) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "dns", .node = NODE });
        fake_merge(b.w.cluster, FAKE_PODS, "default", "dns",
                   "{'spec':{'priorityClassName':'system-cluster-critical'}}");
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .stop_sec = 3 });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_trace(&b, "evicted web");
        assert_blockers(&b, "dns WaitingForOthers, web Terminating");
        run_for(&b, 5 * USEC_PER_SEC);
        assert_trace(&b, "gone web; evicted dns; gone dns");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* -- what holds ----------------------------------------------------------------------------------------- */

TEST_CASE(test_protected) {
        static const struct {
                const char *what;
                ProtectedPolicy policy;
                const char *first, *blockers, *then;
        } rows[] = {
                { "wait: nothing goes until it is gone", PROTECTED_WAIT,
                  "blocked job Protected vesper.sh/do-not-evict",
                  "job Protected vesper.sh/do-not-evict, web WaitingForProtected",
                  "gone job; evicted web; gone web" },
                { "others: the rest goes meanwhile", PROTECTED_OTHERS,
                  "blocked job Protected vesper.sh/do-not-evict; evicted web; gone web",
                  "job Protected vesper.sh/do-not-evict", "gone job" },
                { "ignore: all go", PROTECTED_IGNORE, "evicted job; evicted web; gone job; gone web", "",
                  "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Bench b;

                print_message("  %s\n", rows[i].what);
                bench_init(&b);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "job",
                                                      .node = NODE,
                                                      .annotations = "{'vesper.sh/do-not-evict':'true'}" });
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .stop_sec = 1 });
                run_for(&b, USEC_PER_SEC);
                begin(&b, 0, rows[i].policy, false);
                run_for(&b, USEC_PER_MINUTE);
                assert_trace(&b, rows[i].first);
                assert_blockers(&b, rows[i].blockers);
                if (fake_get(b.w.cluster, FAKE_PODS, "default", "job"))
                        fake_merge(b.w.cluster, FAKE_PODS, "default", "job",
                                   "{'status':{'phase':'Succeeded'}}");
                run_for(&b, 2 * USEC_PER_SEC);
                assert_trace(&b, rows[i].then);
                assert_state(&b, NODE_DRAIN_DRAINED);
                bench_done(&b);
        }
}

TEST_CASE(test_protection_ends_by_time) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "job",
                                              .node = NODE,
                                              .annotations = "{'karpenter.sh/do-not-disrupt':'5m'}" });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 4 * USEC_PER_MINUTE);
        assert_trace(&b, "blocked job Protected karpenter.sh/do-not-disrupt");
        run_for(&b, USEC_PER_MINUTE + USEC_PER_SEC);
        assert_trace(&b, "evicted job; gone job");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

TEST_CASE(test_blocked_by_unknown_pdb) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .app = "web" });
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "blocked web BlockedByPDB web");
        assert_blockers(&b, "web BlockedByPDB web");
        assert_in_range(n_evictions(&b), 5, 15);

        fake_remove(b.w.cluster, FAKE_PDBS, "default", "web");
        run_for(&b, 15 * USEC_PER_SEC);
        assert_trace(&b, "evicted web; gone web");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* Five of a closed PDB hold up nothing but themselves: whoever knows of the PDB, the free pod that came last goes with
 * the first of what is sent. */
TEST_CASE(test_free_pod_beside_blocked_ones) {
        for (unsigned gated = 0; gated < 2; gated++) {
                char name[] = "held-0";
                Bench b;

                print_message("  the PDB %s\n", gated ? "is watched" : "is not known");
                bench_init(&b);
                for (; name[5] < '5'; name[5]++)
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = NODE, .app = "web" });
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "free", .node = NODE, .app = "free" });
                fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "5");
                b.know_pdbs = gated;
                b.pdb = "web";
                b.pdb_app = "web";
                if (gated)
                        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 0), 0);
                run_for(&b, USEC_PER_SEC);
                begin(&b, 0, PROTECTED_WAIT, false);
                run_for(&b, 50 * MSEC);
                assert_null(fake_get(b.w.cluster, FAKE_PODS, "default", "free"));
                assert_int_equal(n_evictions(&b), gated ? 1 : 6);
                run_for(&b, 10 * USEC_PER_SEC);
                assert_int_equal(node_drain_pods_left(b.drain), 5);
                assert_state(&b, NODE_DRAIN_DRAINING);
                bench_done(&b);
        }
}

TEST_CASE(test_known_pdb_waits_for_its_gate) {
        Bench b;

        bench_init(&b);
        b.know_pdbs = true;
        b.pdb = "web";
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .app = "web" });
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 0), 0);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_SEC);
        assert_trace(&b, "");
        assert_blockers(&b, "web BlockedByPDB web");
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "blocked web BlockedByPDB web"); /* nobody answered so: it is said once it lasts */
        assert_int_equal(n_evictions(&b), 0);
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 1), 0);
        run_for(&b, USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

TEST_CASE(test_two_pdbs) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .app = "web" });
        fake_add_pdb(b.w.cluster, NULL, "one", "web", true, "0");
        fake_add_pdb(b.w.cluster, NULL, "two", "web", true, "0");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "blocked web SeveralPDBs");
        assert_int_equal(evictor_stats(b.evictor).sent, 1);

        print_message("  a change that makes no difference to PDBs\n");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'metadata':{'annotations':{'a':'b'}}}");
        run_for(&b, USEC_PER_SEC);
        assert_int_equal(evictor_stats(b.evictor).sent, 1);
        print_message("  one that might\n");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'metadata':{'labels':{'tier':'front'}}}");
        run_for(&b, USEC_PER_SEC);
        assert_int_equal(evictor_stats(b.evictor).sent, 2);
        print_message("  one that does\n");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'metadata':{'labels':{'app':'none'}}}");
        run_for(&b, 20 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* A webhook answers for the eviction of one pod: the other of its PDB goes, and it is told once, with the newest words. */
TEST_CASE(test_webhook) {
        const DrainBlocker *blockers;
        Bench b;
        size_t n;

        bench_init(&b);
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "vm",
                                 .node = NODE,
                                 .app = "web",
                                 .annotations = "{'" FAKE_EVICTION_WEBHOOK "':'403 it is being moved'}" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .app = "web" });
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 30 * USEC_PER_SEC);
        assert_trace(&b, "blocked vm EvictionWebhook pods.fake.vesper.test; evicted web; gone web");
        assert_blockers(&b, "vm EvictionWebhook pods.fake.vesper.test");

        print_message("  the pod changes, and so do the words\n");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "vm",
                   "{'metadata':{'annotations':{'" FAKE_EVICTION_WEBHOOK "':'429 half of it is moved'}}}");
        run_for(&b, 6 * USEC_PER_SEC);
        assert_trace(&b, "");
        blockers = node_drain_blockers(b.drain, &n);
        assert_int_equal(n, 1);
        assert_string_equal(blockers[0].message, "half of it is moved");
        assert_non_null(strstr(pod_wait_remedy(blockers[0].wait), "moving the pod itself"));

        print_message("  it is moved\n");
        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "vm"));
        run_for(&b, USEC_PER_SEC);
        assert_trace(&b, "gone vm");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* A deadline does not wait for a webhook, whoever asks once before it deletes. */
TEST_CASE(test_webhook_until_deadline) {
        for (unsigned first = 0; first < 2; first++) {
                Bench b;

                bench_init(&b);
                fake_add_pod(b.w.cluster,
                             &(FakePod){ .name = "vm",
                                         .node = NODE,
                                         .grace_sec = 20,
                                         .stop_sec = 5,
                                         .annotations = "{'" FAKE_EVICTION_WEBHOOK "':'500 no route to host'}" });
                run_for(&b, USEC_PER_SEC);
                begin(&b, 100, PROTECTED_WAIT, first);
                run_for(&b, 78 * USEC_PER_SEC);
                assert_blockers(&b, "vm EvictionWebhook pods.fake.vesper.test");
                run_for(&b, 4 * USEC_PER_SEC);
                assert_int_equal(n_deletes(&b), 1);
                run_for(&b, 6 * USEC_PER_SEC);
                assert_state(&b, NODE_DRAIN_DRAINED);
                bench_done(&b);
        }
}

/* -- the deadline --------------------------------------------------------------------------------------- */

TEST_CASE(test_deadline) {
        Bench b;

        bench_init(&b);
        fake_add_pod(
                b.w.cluster,
                &(FakePod){ .name = "long", .node = NODE, .app = "web", .grace_sec = 40, .stop_sec = 35 });
        fake_add_pod(
                b.w.cluster,
                &(FakePod){
                        .name = "longer", .node = NODE, .app = "web", .grace_sec = 500, .stop_sec = 500 });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "short", .node = NODE, .app = "web", .grace_sec = 5 });
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "3");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 100, PROTECTED_WAIT, false);

        print_message("  grace beyond T: deleted at once with what is left\n");
        run_for(&b, USEC_PER_SEC);
        assert_in_range(seconds_to_live(&b, "longer"), 97, 100);
        assert_int_equal(seconds_to_live(&b, "long"), -1);
        assert_int_equal(n_deletes(&b), 1);

        print_message("  at T - g with all its grace\n");
        run_for(&b, 58 * USEC_PER_SEC);
        assert_int_equal(seconds_to_live(&b, "long"), -1);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_in_range(seconds_to_live(&b, "long"), 38, 40);
        assert_int_equal(seconds_to_live(&b, "short"), -1);
        run_for(&b, 35 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 3);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_int_equal(node_drain_pods_left(b.drain), 0);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(n_deletes(&b), 3);
        bench_done(&b);
}

static void delay_deletes(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->verb == FAKE_DELETE)
                fault->delay_usec = 800 * MSEC;
}

static void refuse_evictions(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->subresource && streq(r->subresource, "eviction"))
                fault->status = 500;
}

static void on_other_admitted(EvictorAdmission *a, void *userdata) {
}

TEST_CASE(test_expired) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "stuck", .node = NODE, .stuck = true, .grace_sec = 10 });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "kept",
                                              .node = NODE,
                                              .grace_sec = 0,
                                              .stop_sec = 1,
                                              .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 60, PROTECTED_WAIT, false);
        run_for(&b, 59 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINING);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_EXPIRED);
        assert_blockers(&b, "stuck Terminating");
        run_for(&b, USEC_PER_MINUTE);
        /* of the protected one; nothing is won by repeating the other's */
        assert_int_equal(n_deletes(&b), 1);
        bench_done(&b);
}

/* Many pods are deleted at their deadline: as many deletions are under way as the window has places. Each has the
 * grace that is left when it leaves, not when it was planned. */
TEST_CASE(test_deadline_of_many) {
        enum { PODS = 12, WINDOW = 3 };
        const EvictorOptions narrow = { .window_start = WINDOW, .window_max = WINDOW };
        Bench b;

        bench_init(&b);
        evictor_free(b.evictor);
        assert_return_code(evictor_new(b.client, &narrow, &b.evictor), 0);
        for (unsigned i = 0; i < PODS; i++) {
                char name[16];

                snprintf(name, sizeof(name), "p%02u", i);
                fake_add_pod(b.w.cluster,
                             &(FakePod){ .name = name, .node = NODE, .grace_sec = 500, .stop_sec = 400 });
        }
        run_for(&b, USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), delay_deletes, NULL);
        begin(&b, 100, PROTECTED_WAIT, false);
        for (unsigned n = WINDOW; n <= PODS; n += WINDOW) {
                run_for(&b, n == WINDOW ? 850 * MSEC : 800 * MSEC);
                assert_int_equal(n_deletes(&b), n);
        }
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), PODS);
        assert_in_range(seconds_to_live(&b, "p00"), 86, 87);
        assert_in_range(seconds_to_live(&b, "p11"), 86, 87);
        bench_done(&b);
}

/* A delete that waits for its place holds the end of its node up, but not for ever. */
TEST_CASE(test_deadline_without_a_place) {
        const EvictorOptions narrow = { .window_start = 1, .window_max = 1 };
        EvictorAdmission *others;
        Bench b;

        bench_init(&b);
        evictor_free(b.evictor);
        assert_return_code(evictor_new(b.client, &narrow, &b.evictor), 0);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .grace_sec = 5, .stop_sec = 1 });
        fake_add_pdb(b.w.cluster, NULL, "web", NULL, true, "1");
        run_for(&b, USEC_PER_SEC);
        assert_return_code(evictor_admit(b.evictor, on_other_admitted, NULL, &others), 0);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), refuse_evictions, NULL);
        begin(&b, 60, PROTECTED_WAIT, false);
        run_for(&b, 69 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINING);
        assert_int_equal(n_deletes(&b), 0);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_EXPIRED);

        print_message("  the deadline is put off: it asks for no place any more\n");
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + USEC_PER_MINUTE);
        run_for(&b, USEC_PER_SEC);
        evictor_admission_end(others, NULL);
        assert_return_code(evictor_admit(b.evictor, on_other_admitted, NULL, &others), 0);
        run_for(&b, USEC_PER_SEC);
        assert_true(evictor_admission_is_given(others));
        assert_int_equal(n_deletes(&b), 0);

        print_message("  when there is one, it leaves even late\n");
        run_for(&b, 61 * USEC_PER_SEC);
        evictor_admission_end(others, NULL);
        run_for(&b, USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 1);
        bench_done(&b);
}

/* An already terminating pod that would outlive T is deleted again with less. */
TEST_CASE(test_terminating_beyond) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "slow", .node = NODE, .grace_sec = 600, .stop_sec = 600 });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_SEC);
        assert_trace(&b, "evicted slow");
        assert_in_range(seconds_to_live(&b, "slow"), 590, 600);

        print_message("  a deadline that is over at once changes nothing, and what was asked for stays\n");
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + 30 * USEC_PER_SEC);
        node_drain_set_deadline(b.drain, USEC_INFINITY);
        run_for(&b, USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 0);
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + 30 * USEC_PER_SEC);
        run_for(&b, USEC_PER_SEC);
        node_drain_set_deadline(b.drain, USEC_INFINITY);
        assert_trace(&b, "deleted slow");
        assert_in_range(seconds_to_live(&b, "slow"), 26, 30);
        run_for(&b, 40 * USEC_PER_SEC);
        assert_trace(&b, "gone slow");
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(n_deletes(&b), 1);
        bench_done(&b);
}

TEST_CASE(test_evict_first) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "free", .node = NODE, .grace_sec = 300, .stop_sec = 300 });
        fake_add_pod(
                b.w.cluster,
                &(FakePod){ .name = "held", .node = NODE, .app = "web", .grace_sec = 300, .stop_sec = 300 });
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 100, PROTECTED_IGNORE, true);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_trace(&b, "evicted free; blocked held BlockedByPDB web; deleted held");
        assert_in_range(seconds_to_live(&b, "free"), 95, 100);
        assert_in_range(seconds_to_live(&b, "held"), 95, 100);
        bench_done(&b);
}

/* -- the proof ------------------------------------------------------------------------------------------ */

typedef struct LateBind {
        Bench *b;
        bool done;
} LateBind;

/* The scheduler binds a pod to the node at the moment of the consistent list. */
static void bind_late(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        LateBind *l = userdata;

        if (r->verb != FAKE_LIST || l->done)
                return;
        l->done = true;
        fake_add_pod(l->b->w.cluster, &(FakePod){ .name = "late", .node = NODE, .stop_sec = 1 });
        fault->delay_usec = 200 * MSEC;
}

TEST_CASE(test_bound_during_proof) {
        LateBind late = {};
        Bench b;

        bench_init(&b);
        run_for(&b, USEC_PER_SEC);
        late.b = &b;
        fake_api_set_fault(fake_cluster_api(b.w.cluster), bind_late, &late);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 100 * MSEC);
        assert_true(late.done);
        assert_true(node_drain_state(b.drain) != NODE_DRAIN_DRAINED);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_trace(&b, "evicted late; gone late");
        assert_state(&b, NODE_DRAIN_DRAINED);

        print_message("  and even later: the drain is not over then\n");
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "later", .node = NODE, .stop_sec = 3 });
        run_for(&b, USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINING);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_trace(&b, "evicted later; gone later");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

static void assert_cheap(Bench *b, uint64_t lists_before) {
        uint64_t lists = fake_api_count(fake_cluster_api(b->w.cluster), FAKE_LIST, FAKE_PODS, NULL) - lists_before;

        print_message("  %u evictions, %u lists in five seconds\n", (unsigned) n_evictions(b), (unsigned) lists);
        assert_true(lists <= 12);
}

/* A StatefulSet makes its pod anew under the same name as fast as it goes, and the node takes it: evicted three times, then it stays. */
TEST_CASE(test_comes_again_and_again) {
        uint64_t lists;
        Bench b;

        bench_init(&b);
        run_for(&b, USEC_PER_SEC);
        lists = fake_api_count(fake_cluster_api(b.w.cluster), FAKE_LIST, FAKE_PODS, NULL);
        begin(&b, 0, PROTECTED_WAIT, false);
        for (unsigned i = 0; i < 100; i++) {
                if (!fake_get(b.w.cluster, FAKE_PODS, "default", "again"))
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = "again", .node = NODE });
                run_for(&b, 50 * MSEC);
        }
        assert_int_equal(n_evictions(&b), POD_ROUNDS_MAX);
        assert_cheap(&b, lists);
        assert_non_null(fake_get(b.w.cluster, FAKE_PODS, "default", "again"));
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_non_null(strstr(strbuf_str(&b.trace), "stays again"));
        bench_done(&b);
}

/* The fourth pod comes after the watch has shown the end of the third, and only the list that ends the drain has it: people are warned. */
TEST_CASE(test_comes_back_behind_the_watch) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "again", .node = NODE });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        for (unsigned i = 0; i < 5000 && n_evictions(&b) < POD_ROUNDS_MAX; i++) {
                if (!fake_get(b.w.cluster, FAKE_PODS, "default", "again"))
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = "again", .node = NODE });
                run_for(&b, MSEC);
        }
        for (unsigned i = 0; i < 5000 && node_drain_state(b.drain) != NODE_DRAIN_PROVING; i++) {
                if (!fake_get(b.w.cluster, FAKE_PODS, "default", "again")) {
                        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + USEC_PER_MINUTE);
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = "again", .node = NODE });
                }
                run_for(&b, MSEC);
        }
        run_for(&b, USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_true(endswith(strbuf_str(&b.trace), "; stays again"));
        bench_done(&b);
}

/* A template that names the node: two pods come back at once, each as often, beside pods that go for good; one warning. */
TEST_CASE(test_names_its_node) {
        const char *first, *second;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "plain", .node = NODE, .app = "plain", .owner_kind = "ReplicaSet", .owner = "plain" });
        fake_add_replicaset(b.w.cluster, NULL, "pinned", "pinned", 2);
        fake_merge(b.w.cluster, FAKE_REPLICASETS, "default", "pinned", "{'spec':{'template':{'spec':{'nodeName':'" NODE "'}}}}");
        run_for(&b, 5 * USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_in_range(n_evictions(&b), 1 + 2 + 2, 1 + 2 * POD_ROUNDS_MAX);
        first = strstr(strbuf_str(&b.trace), "stays pinned");
        second = first ? strstr(first + 1, "stays") : NULL;
        assert_non_null(first);
        assert_null(second);
        bench_done(&b);
}

/* A watch that stands still shows an empty node; the list does not. */
TEST_CASE(test_stale_watch) {
        Bench b;

        bench_init(&b);
        run_for(&b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 20 * USEC_PER_SEC);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "unseen", .node = NODE });
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 15 * USEC_PER_SEC);
        assert_true(node_drain_state(b.drain) != NODE_DRAIN_DRAINED);
        run_for(&b, 15 * USEC_PER_SEC);
        assert_trace(&b, "evicted unseen; gone unseen");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

static void fail_lists(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->verb == FAKE_LIST)
                fault->status = 503;
}

TEST_CASE(test_proof_fails) {
        Bench b;

        bench_init(&b);
        run_for(&b, USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), fail_lists, NULL);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_true(node_drain_state(b.drain) != NODE_DRAIN_DRAINED);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
        run_for(&b, 10 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);

        print_message("  not even a proof holds a machine beyond T\n");
        b.drain = node_drain_free(b.drain);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), fail_lists, NULL);
        begin(&b, 10, PROTECTED_WAIT, false);
        run_for(&b, 11 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_EXPIRED);
        bench_done(&b);
}

enum { CROWD = 16, TOGETHER = 32 };

static void delay_others(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->verb != FAKE_LIST && r->verb != FAKE_WATCH)
                fault->delay_usec = 20 * USEC_PER_SEC;
}

/* The proof waits for no evictions of others; of many proofs 32 are under way together, but with a deadline it waits
 * for none of these, either. */
TEST_CASE(test_proof_and_others) {
        const KubeCallOptions follows = { .timeout_usec = USEC_PER_MINUTE, .rank = KUBE_RANK_FOLLOWS };
        const KubeTarget node = { .kind = &kube_node_kind, .name = "node-b" };
        Bench b;

        bench_init(&b);
        run_for(&b, USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), delay_others, NULL);
        for (unsigned i = 0; i < CROWD; i++)
                assert_return_code(kube_evict(b.client, "default", "other", "u", -1, NULL, NULL, NULL, NULL),
                                   0);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 100 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        b.drain = node_drain_free(b.drain);

        for (unsigned i = 0; i < TOGETHER; i++)
                assert_return_code(kube_patch(b.client, &node, KUBE_PATCH_MERGE, "{}", &follows, NULL, NULL,
                                              NULL),
                                   0);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_PROVING);
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + USEC_PER_MINUTE);
        run_for(&b, 100 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);

        print_message("  and without one, when there is a place\n");
        b.drain = node_drain_free(b.drain);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_PROVING);
        run_for(&b, 11 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* The first deletes, so many, are answered so. */
typedef struct BadDeletes {
        unsigned n, n_bad, status;
} BadDeletes;

static void answer_deletes_badly(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        BadDeletes *bad = userdata;

        if (r->verb == FAKE_DELETE && bad->n++ < bad->n_bad)
                fault->status = bad->status;
}

/* A pod with much more grace than there is time, and deletes that go so. */
static void begin_with_bad_deletes(Bench *b, BadDeletes *bad) {
        bench_init(b);
        fake_add_pod(b->w.cluster,
                     &(FakePod){ .name = "long", .node = NODE, .grace_sec = 500, .stop_sec = 1 });
        run_for(b, USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(b->w.cluster), answer_deletes_badly, bad);
        begin(b, 100, PROTECTED_WAIT, false);
}

/* A DELETE that fails is said, and sent again with patience. */
TEST_CASE(test_delete_fails) {
        BadDeletes bad = { .n_bad = 3, .status = 500 };
        Bench b;

        begin_with_bad_deletes(&b, &bad);
        run_for(&b, 150 * MSEC);
        assert_int_equal(bad.n, 1);
        assert_blockers(&b, "long DeleteFailed");
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(bad.n, 4);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

static void drop_evictions(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        fault->drop = r->subresource && streq(r->subresource, "eviction");
}

/* The budget has refused: a later request without an answer does not change that. */
TEST_CASE(test_refused_then_silence) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .app = "web", .grace_sec = 60 });
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 90, PROTECTED_WAIT, true);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_trace(&b, "blocked web BlockedByPDB web");
        fake_api_set_fault(fake_cluster_api(b.w.cluster), drop_evictions, NULL);
        run_for(&b, 24 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 0);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 1);
        bench_done(&b);
}

/* -- a pod that is not what its view says --------------------------------------------------------------- */

static uint64_t n_looks(Bench *b) {
        return fake_api_count(fake_cluster_api(b->w.cluster), FAKE_LIST, FAKE_PODS, NULL);
}

/* Deleted by somebody else 20 s ago, which the watch has not said: what is left until T, reckoned from then,
 * would be over. */
TEST_CASE(test_deleted_meanwhile) {
        uint64_t looks;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "long", .node = NODE, .grace_sec = 40, .stop_sec = 40 });
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "other", .node = NODE, .grace_sec = 500, .stop_sec = 1 });
        run_for(&b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 300 * USEC_PER_SEC);
        fake_delete(b.w.cluster, FAKE_PODS, "default", "long", -1);
        run_for(&b, 20 * USEC_PER_SEC);
        looks = n_looks(&b);
        begin(&b, 15, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_SEC);
        assert_in_range(seconds_to_live(&b, "long"), 18, 20);
        assert_trace(&b, "deleted other");
        assert_int_equal(n_deletes(&b), 1);
        assert_int_equal(n_looks(&b), looks);

        print_message("  nor for as long as that view stands; at the last second it has what is left\n");
        run_for(&b, 10 * USEC_PER_SEC);
        assert_in_range(seconds_to_live(&b, "long"), 7, 10);
        assert_int_equal(n_deletes(&b), 1);
        run_for(&b, 3500 * MSEC);
        assert_in_range(seconds_to_live(&b, "long"), 0, 1);
        assert_trace(&b, "deleted long");
        bench_done(&b);
}

/* Somebody deletes the pod after the look at it was answered, and before that answer is there. What the look says was
 * true when it was asked for: a shortened grace would count from a moment of which it knows nothing. */
TEST_CASE(test_look_answered_late) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "w", .node = NODE, .grace_sec = 60, .stop_sec = 60 });
        run_for(&b, USEC_PER_SEC);
        b.late_usec = 5 * USEC_PER_SEC;
        begin(&b, 30, PROTECTED_WAIT, true);
        run_for(&b, 4 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), 0);
        fake_delete(b.w.cluster, FAKE_PODS, "default", "w", 26);
        run_for(&b, 4 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), 0);
        assert_in_range(seconds_to_live(&b, "w"), 20, 23);
        bench_done(&b);
}

/* An eviction with less grace is sent on a look of late, and on a new one when it is sent again. */
TEST_CASE(test_evicted_as_looked_at) {
        uint64_t looks;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "gone", .node = NODE, .grace_sec = 500 });
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "long", .node = NODE, .grace_sec = 60, .stop_sec = 60 });
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "other", .node = NODE, .grace_sec = 500, .stop_sec = 500 });
        run_for(&b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 300 * USEC_PER_SEC);
        fake_delete(b.w.cluster, FAKE_PODS, "default", "gone", 0);
        fake_delete(b.w.cluster, FAKE_PODS, "default", "long", -1);
        run_for(&b, 30 * USEC_PER_SEC);
        looks = n_looks(&b);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), drop_evictions, NULL);
        begin(&b, 28, PROTECTED_WAIT, true);
        run_for(&b, 9 * USEC_PER_SEC);
        assert_in_range(n_looks(&b) - looks, 3, 5);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_in_range(seconds_to_live(&b, "long"), 15, 17);
        assert_in_range(seconds_to_live(&b, "other"), 12, 18);
        assert_blockers(&b, "gone Terminating, long Terminating, other Terminating");
        bench_done(&b);
}

typedef struct Restless {
        Bench *b;
        unsigned n_deletes, n_lists;
        bool lists_fail;
} Restless;

/* The kubelet writes the pod's status after each list. */
static void change_before_delete(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        Restless *l = userdata;

        if (r->verb == FAKE_LIST) {
                l->n_lists++;
                fault->status = l->lists_fail ? 503 : 0;
        }
        if (r->verb != FAKE_DELETE)
                return;
        l->n_deletes++;
        fake_merge(l->b->w.cluster, FAKE_PODS, "default", "long", "{'metadata':{'annotations':{'n':'%u'}}}",
                   l->n_deletes);
}

static void begin_restless(Bench *b, Restless *l) {
        bench_init(b);
        fake_add_pod(b->w.cluster,
                     &(FakePod){ .name = "long", .node = NODE, .grace_sec = 500, .stop_sec = 5 });
        run_for(b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b->w.cluster), loop_now(b->w.loop) + 300 * USEC_PER_SEC);
        l->b = b;
        fake_api_set_fault(fake_cluster_api(b->w.cluster), change_before_delete, l);
}

/* The pod is listed again, but not for ever. */
TEST_CASE(test_changes_again_and_again) {
        Restless l = {};
        Bench b;

        begin_restless(&b, &l);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_SEC);
        assert_trace(&b, "deleted long");
        assert_in_range(seconds_to_live(&b, "long"), 97, 100);
        assert_int_equal(l.n_deletes, 4);
        assert_int_equal(l.n_lists, 3);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
        bench_done(&b);
}

/* The pod cannot be listed: its last second comes all the same. */
TEST_CASE(test_no_look_before_deadline) {
        Restless l = { .lists_fail = true };
        Bench b;

        begin_restless(&b, &l);
        begin(&b, 20, PROTECTED_WAIT, false);
        run_for(&b, 18500 * MSEC);
        assert_int_equal(l.n_deletes, 1);
        assert_in_range(l.n_lists, 4, 12);
        assert_int_equal(seconds_to_live(&b, "long"), -1);
        run_for(&b, USEC_PER_SEC);
        assert_trace(&b, "deleted long");
        assert_int_equal(l.n_deletes, 2);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
        bench_done(&b);
}

/* Another pod has its name: the look shows it, and it is left alone. */
TEST_CASE(test_replaced) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "db-0", .node = NODE, .grace_sec = 500 });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "db-1", .node = NODE, .grace_sec = 30 });
        run_for(&b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 300 * USEC_PER_SEC);
        for (unsigned i = 0; i < 2; i++) {
                const char *name = i == 0 ? "db-0" : "db-1";

                fake_delete(b.w.cluster, FAKE_PODS, "default", name, 0);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = "node-b" });
        }
        begin(&b, 30, PROTECTED_WAIT, false);
        run_for(&b, 20 * USEC_PER_SEC);
        assert_blockers(&b, "db-0 Terminating, db-1 Terminating");
        assert_trace(&b, "");
        assert_int_equal(n_deletes(&b), 2);
        assert_int_equal(seconds_to_live(&b, "db-0"), -1);
        assert_int_equal(seconds_to_live(&b, "db-1"), -1);
        bench_done(&b);
}

/* A conflict that no look explains is a failure like any other. */
TEST_CASE(test_conflict_without_cause) {
        BadDeletes bad = { .n_bad = 7, .status = 409 };
        Bench b;

        begin_with_bad_deletes(&b, &bad);
        run_for(&b, 100 * MSEC);
        assert_int_equal(bad.n, 2); /* lists keep their distance */
        run_for(&b, 400 * MSEC);
        assert_int_equal(bad.n, 4);
        assert_blockers(&b, "long DeleteFailed");
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(bad.n, 8);
        assert_trace(&b, "blocked long DeleteFailed; deleted long; gone long");
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* Somebody on the node has seen the containers end: the pod is taken off at once, once, and silently; a
 * refusal is tried again, and told nobody. */
TEST_CASE(test_ended_on_the_node) {
        for (unsigned refused = 0; refused <= 1; refused++) {
                BadDeletes bad = { .n_bad = 3, .status = 500 };
                Bench b;

                bench_init(&b);
                print_message("  refused: %u\n", refused);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "p", .node = NODE, .stop_sec = 20 });
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "q", .node = NODE, .stop_sec = 25 });
                run_for(&b, USEC_PER_SEC);
                b.ended = "p";
                begin(&b, 0, PROTECTED_WAIT, false);
                if (refused)
                        fake_api_set_fault(fake_cluster_api(b.w.cluster), answer_deletes_badly, &bad);
                run_for(&b, 400 * MSEC);
                run_for(&b, 2 * USEC_PER_SEC);
                assert_null(fake_get(b.w.cluster, FAKE_PODS, "default", "p"));
                assert_non_null(fake_get(b.w.cluster, FAKE_PODS, "default", "q"));
                assert_int_equal(refused ? bad.n : n_deletes(&b), refused ? 4 : 1);
                assert_trace(&b, "evicted p; evicted q; gone p");
                assert_blockers(&b, "q Terminating");
                run_for(&b, 30 * USEC_PER_SEC);
                assert_state(&b, NODE_DRAIN_DRAINED);
                bench_done(&b);
        }
}

/* An eviction that says "gone" for a pod that the watch goes on showing: it is asked about again. */
static void deny_once(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        unsigned *n = userdata;

        if (r->subresource && streq(r->subresource, "eviction") && (*n)++ == 0)
                fault->status = 409;
}

/* etcd is restored from a backup: what was accepted has never been. */
TEST_CASE(test_accepted_and_lost) {
        for (int deadline = 0; deadline < 2; deadline++) {
                _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;
                Bench b;

                print_message("  its %s\n", deadline ? "delete" : "eviction");
                bench_init(&b);
                fake_add_pod(b.w.cluster,
                             &(FakePod){ .name = "back", .node = NODE, .grace_sec = 1600, .stop_sec = 1500 });
                run_for(&b, USEC_PER_SEC);
                begin(&b, deadline ? 1500 : 0, PROTECTED_WAIT, false);
                backup = fake_store_backup(fake_cluster_store(b.w.cluster));
                run_for(&b, USEC_PER_SEC);
                assert_trace(&b, deadline ? "deleted back" : "evicted back");
                assert_true(seconds_to_live(&b, "back") > 400);
                fake_cluster_restore(b.w.cluster, backup, 1000000000, USEC_PER_SEC);
                run_for(&b, 80 * USEC_PER_SEC);
                if (!deadline) {
                        assert_trace(&b, "blocked back EvictionWithoutEffect");
                        assert_int_equal(seconds_to_live(&b, "back"), -1);
                        run_for(&b, 15 * USEC_PER_SEC);
                }
                assert_trace(&b, deadline ? "deleted back" : "evicted back");
                assert_true(seconds_to_live(&b, "back") > 100);
                bench_done(&b);
        }
}

/* A webhook makes evictions a dry run: accepted, and nothing happens. */
static void make_dry_run(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (streq_ptr(request->subresource, "eviction"))
                ret_fault->status = 201;
}

TEST_CASE(test_without_effect) {
        const DrainBlocker *blockers;
        size_t n;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE });
        run_for(&b, USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), make_dry_run, NULL);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 4 * USEC_PER_SEC);
        assert_trace(&b, "evicted web");
        assert_blockers(&b, "web Terminating");
        run_for(&b, 2 * USEC_PER_SEC);
        assert_trace(&b, "blocked web EvictionWithoutEffect");
        blockers = node_drain_blockers(b.drain, &n);
        assert_non_null(strstr(pod_wait_remedy(blockers[0].wait), "may have made it a dry run"));
        run_for(&b, 60 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), 1);
        run_for(&b, 30 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), 2);
        run_for(&b, 10 * USEC_PER_MINUTE);
        assert_in_range(n_evictions(&b), 7, 9);

        print_message("  it moves the pod itself\n");
        fake_delete(b.w.cluster, FAKE_PODS, "default", "web", 0);
        run_for(&b, 2 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* A deadline that nobody moves: the pod is deleted in time, also if the PDB is asked first, and its deletion is reported beforehand. */
TEST_CASE(test_without_effect_near_t) {
        for (unsigned i = 0; i < 2; i++) {
                Bench b;

                print_message("  %s\n", i ? "the agent" : "the coordinator");
                bench_init(&b);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .grace_sec = 20 });
                run_for(&b, USEC_PER_SEC);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), make_dry_run, NULL);
                begin(&b, 60, PROTECTED_WAIT, i);
                run_for(&b, 38 * USEC_PER_SEC);
                assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_DELETE, FAKE_PODS, NULL), 0);
                run_for(&b, 4 * USEC_PER_SEC);
                assert_int_equal(fake_api_count(fake_cluster_api(b.w.cluster), FAKE_DELETE, FAKE_PODS, NULL), 1);
                bench_done(&b);
        }
}

/* A watch that lies behind is no eviction without effect. */
TEST_CASE(test_effect_is_seen_late) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .grace_sec = 60, .stop_sec = 50 });
        run_for(&b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 300 * USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 40 * USEC_PER_SEC);
        assert_trace(&b, "evicted web");
        assert_blockers(&b, "web Terminating");
        assert_int_equal(n_evictions(&b), 1);
        bench_done(&b);
}

/* -- the condition DisruptionTarget ------------------------------------------------------------------------ */

static void refuse_status(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (streq_ptr(request->subresource, "status"))
                *ret_fault = *(const FakeApiFault *) userdata;
}

static const char *disruption_target(Bench *b, const char *pod) {
        return fj_string(fj_find(fj_get(fake_get(b->w.cluster, FAKE_PODS, "default", pod), "status", "conditions", NULL), "type", "DisruptionTarget"),
                         "reason", NULL);
}

TEST_CASE(test_disruption_target) {
        static const struct {
                const char *what;
                FakeApiFault fault;
                const char *reason; /* of the condition; NULL: there is none */
                unsigned within_sec; /* it is deleted */
        } rows[] = {
                { "before a delete", { 0 }, "DeletionByVesper", 1 },
                { "it may not be set", { .status = 403 }, NULL, 1 },
                { "somebody has changed the pod", { .status = 409 }, NULL, 1 },
                { "there is no answer", { .drop = true }, NULL, 8 },
                { "its answer is late", { .delay_usec = 20 * USEC_PER_SEC }, NULL, 7 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                FakeApiFault fault = rows[i].fault;
                Bench b;

                print_message("  %s\n", rows[i].what);
                bench_init(&b);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "job", .node = NODE, .grace_sec = 600, .stop_sec = 300 });
                run_for(&b, USEC_PER_SEC);
                if (i > 0)
                        fake_api_set_fault(fake_cluster_api(b.w.cluster), refuse_status, &fault);
                begin(&b, 120, PROTECTED_WAIT, false);
                run_for(&b, rows[i].within_sec * USEC_PER_SEC);
                assert_trace(&b, "deleted job");
                assert_true(seconds_to_live(&b, "job") > 100);
                if (!streq_ptr(disruption_target(&b, "job"), rows[i].reason))
                        fail_msg("%s: condition DisruptionTarget: %s", rows[i].what, strempty(disruption_target(&b, "job")));
                bench_done(&b);
        }
}

TEST_CASE(test_wrongly_gone) {
        unsigned n = 0;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE });
        run_for(&b, USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), deny_once, &n);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 4 * USEC_PER_SEC);
        assert_int_equal(n, 1);
        run_for(&b, 3 * USEC_PER_SEC);
        assert_int_equal(n, 2);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* The API server has no such pod, and the watch says so 300 ms later: the drain waits for that, and no longer. */
TEST_CASE(test_gone_before_its_eviction) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE });
        run_for(&b, USEC_PER_SEC);
        fake_api_stall_watches(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 300 * MSEC);
        fake_remove(b.w.cluster, FAKE_PODS, "default", "web");
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 280 * MSEC);
        assert_int_equal(n_evictions(&b), 1);
        assert_state(&b, NODE_DRAIN_DRAINING);
        run_for(&b, 70 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(n_evictions(&b), 1);
        bench_done(&b);
}

TEST_CASE(test_freed_in_between) {
        static const usec_t moments[] = { 0, 1, 2 * MSEC, 6 * MSEC, 20 * MSEC, 80 * MSEC, USEC_PER_SEC };

        for (size_t i = 0; i < ELEMENTSOF(moments); i++) {
                Bench b;

                bench_init(&b);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = NODE, .stop_sec = 1 });
                fake_add_pod(b.w.cluster,
                             &(FakePod){ .name = "db", .node = NODE, .grace_sec = 600, .stop_sec = 600 });
                run_for(&b, USEC_PER_SEC);
                begin(&b, 60, PROTECTED_WAIT, false);
                run_for(&b, moments[i]);
                b.drain = node_drain_free(b.drain);
                run_for(&b, USEC_PER_SEC);
                bench_done(&b);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_empty), cmocka_unit_test(test_left_alone),
                cmocka_unit_test(test_large_finished_pods),
                cmocka_unit_test(test_pods),
                cmocka_unit_test(test_told_together),
                cmocka_unit_test(test_critical_last),
                cmocka_unit_test(test_protected),
                cmocka_unit_test(test_protection_ends_by_time),
                cmocka_unit_test(test_blocked_by_unknown_pdb),
                cmocka_unit_test(test_free_pod_beside_blocked_ones),
                cmocka_unit_test(test_known_pdb_waits_for_its_gate),
                cmocka_unit_test(test_two_pdbs),
                cmocka_unit_test(test_webhook),
                cmocka_unit_test(test_webhook_until_deadline),
                cmocka_unit_test(test_deadline),
                cmocka_unit_test(test_expired),
                cmocka_unit_test(test_deadline_of_many),
                cmocka_unit_test(test_deadline_without_a_place),
                cmocka_unit_test(test_terminating_beyond),
                cmocka_unit_test(test_evict_first),
                cmocka_unit_test(test_bound_during_proof),
                cmocka_unit_test(test_comes_again_and_again),
                cmocka_unit_test(test_comes_back_behind_the_watch),
                cmocka_unit_test(test_names_its_node),
                cmocka_unit_test(test_stale_watch),
                cmocka_unit_test(test_proof_fails),
                cmocka_unit_test(test_proof_and_others),
                cmocka_unit_test(test_delete_fails),
                cmocka_unit_test(test_refused_then_silence),
                cmocka_unit_test(test_deleted_meanwhile),
                cmocka_unit_test(test_look_answered_late),
                cmocka_unit_test(test_evicted_as_looked_at),
                cmocka_unit_test(test_changes_again_and_again),
                cmocka_unit_test(test_no_look_before_deadline),
                cmocka_unit_test(test_replaced),
                cmocka_unit_test(test_conflict_without_cause),
                cmocka_unit_test(test_ended_on_the_node),
                cmocka_unit_test(test_accepted_and_lost),
                cmocka_unit_test(test_without_effect),
                cmocka_unit_test(test_without_effect_near_t),
                cmocka_unit_test(test_effect_is_seen_late),
                cmocka_unit_test(test_disruption_target),
                cmocka_unit_test(test_wrongly_gone),
                cmocka_unit_test(test_gone_before_its_eviction),
                cmocka_unit_test(test_freed_in_between),
        };
        return cmocka_run_group_tests_name("node-drain", tests, NULL, NULL);
}
