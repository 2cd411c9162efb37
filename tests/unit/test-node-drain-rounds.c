/* SPDX-License-Identifier: Apache-2.0 */
#include "drain-bench.h"

/*
 * What node-drain is not asked in its own test: answers that take their time, so that it shows from when a thing counts; one
 * cause for each act, with nothing beside it that would bring the act about as well; and what comes after the first outcome.
 */

static FakeApi *api(Bench *b) {
        return fake_cluster_api(b->w.cluster);
}

static uint64_t n_lists(Bench *b) {
        return fake_api_count(api(b), FAKE_LIST, FAKE_PODS, NULL);
}

static usec_t now(Bench *b) {
        return loop_now(b->w.loop);
}

static void add_pod(Bench *b, const char *name, int64_t grace_sec, int64_t stop_sec) {
        fake_add_pod(b->w.cluster,
                     &(FakePod){ .name = name, .node = NODE, .app = name, .grace_sec = grace_sec, .stop_sec = stop_sec });
}

static void stall_watches(Bench *b) {
        fake_api_stall_watches(api(b), now(b) + 300 * USEC_PER_SEC);
}

/* Requests of each kind: how long they take, and how the first of them are answered. */
typedef struct Server {
        usec_t list_usec, delete_usec, evict_usec;
        unsigned lists[8], deletes[8], evictions[8]; /* status; 0: as it is */
        unsigned retry_after_sec;
        unsigned n_lists, n_deletes, n_evictions;
        usec_t list_at_usec[32], delete_at_usec[32];
        Loop *loop;
} Server;

static unsigned status_of(const unsigned statuses[8], unsigned n) {
        return n < 8 ? statuses[n] : 0;
}

static void on_fault(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        Server *s = userdata;

        fault->retry_after_sec = s->retry_after_sec;
        if (r->verb == FAKE_LIST) {
                fault->delay_usec = s->list_usec;
                fault->status = status_of(s->lists, s->n_lists);
                if (s->n_lists < ELEMENTSOF(s->list_at_usec))
                        s->list_at_usec[s->n_lists] = loop_now(s->loop);
                s->n_lists++;
        } else if (r->verb == FAKE_DELETE) {
                fault->delay_usec = s->delete_usec;
                fault->status = status_of(s->deletes, s->n_deletes);
                if (s->n_deletes < ELEMENTSOF(s->delete_at_usec))
                        s->delete_at_usec[s->n_deletes] = loop_now(s->loop);
                s->n_deletes++;
        } else if (r->subresource && streq(r->subresource, "eviction")) {
                fault->delay_usec = s->evict_usec;
                fault->status = status_of(s->evictions, s->n_evictions++);
        }
        fault->retry_after_sec = fault->status == 429 ? s->retry_after_sec : 0;
}

static void play(Bench *b, Server *s) {
        s->loop = b->w.loop;
        fake_api_set_fault(api(b), on_fault, s);
}

static usec_t blocker_since(Bench *b) {
        size_t n;
        const DrainBlocker *list = node_drain_blockers(b->drain, &n);

        assert_int_equal(n, 1);
        return list[0].since_usec;
}

/* Whoever asks between an answer and what the drain makes of it half a second later sees what is so then. */
TEST_CASE(test_blockers_are_of_now) {
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 5);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        while (!strstr(strbuf_str(&b.trace), "evicted web"))
                run_for(&b, MSEC);
        assert_blockers(&b, "web Terminating");
        bench_done(&b);
}

/* -- the proof ------------------------------------------------------------------------------------------ */

/* A proof is as old as its question, but an answer that has just come counts however long it took. */
TEST_CASE(test_proof_ages) {
        Server s = { .list_usec = 3 * USEC_PER_SEC };
        unsigned changed;
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 1);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 10 * MSEC);
        assert_false(node_drain_confirm(b.drain, USEC_INFINITY)); /* nothing is proven yet */
        play(&b, &s);
        while (s.n_lists == 0)
                run_for(&b, MSEC);
        assert_false(node_drain_confirm(b.drain, USEC_INFINITY));
        run_for(&b, 3 * USEC_PER_SEC + 10 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_true(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        run_for(&b, 900 * MSEC);
        assert_true(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        assert_int_equal(s.n_lists, 1);

        print_message("  four seconds after it was asked for, one after it was answered\n");
        run_for(&b, 100 * MSEC);
        changed = b.n_changed;
        assert_false(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        assert_state(&b, NODE_DRAIN_PROVING);
        run_for(&b, 500 * MSEC);
        assert_int_equal(s.n_lists, 2);
        assert_false(node_drain_confirm(b.drain, 4 * USEC_PER_SEC)); /* under way: not once more */
        run_for(&b, 3 * USEC_PER_SEC);
        assert_int_equal(s.n_lists, 2);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_true(b.n_changed > changed);
        assert_true(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));

        print_message("  an answer that took longer than a proof may be old\n");
        run_for(&b, 5 * USEC_PER_SEC);
        s.list_usec = 12 * USEC_PER_SEC;
        assert_false(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        while (node_drain_state(b.drain) == NODE_DRAIN_PROVING)
                run_for(&b, 10 * MSEC);
        assert_true(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        run_for(&b, 1100 * MSEC);
        s.list_usec = 3 * USEC_PER_SEC;
        assert_false(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        run_for(&b, 3500 * MSEC);
        assert_int_equal(s.n_lists, 4);
        assert_true(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));

        print_message("  and it ages again\n");
        run_for(&b, 600 * MSEC);
        assert_false(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        run_for(&b, 4 * USEC_PER_SEC);
        assert_int_equal(s.n_lists, 5);
        assert_true(node_drain_confirm(b.drain, 4 * USEC_PER_SEC));
        bench_done(&b);
}

/* A pod that came and went while a list was on its way: that list proves nothing, the next one does. */
TEST_CASE(test_proof_spoilt) {
        Server s = { .list_usec = 200 * MSEC };
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 0);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        play(&b, &s);
        while (s.n_lists == 0)
                run_for(&b, MSEC);
        assert_state(&b, NODE_DRAIN_PROVING);
        run_for(&b, 30 * MSEC);
        add_pod(&b, "brief", 30, 0);
        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "brief"));
        run_for(&b, 180 * MSEC);
        assert_true(node_drain_state(b.drain) != NODE_DRAIN_DRAINED);
        run_for(&b, USEC_PER_SEC);
        assert_int_equal(s.n_lists, 2);
        assert_state(&b, NODE_DRAIN_DRAINED);

        print_message("  the same once it is drained\n");
        add_pod(&b, "brief", 30, 0);
        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "brief"));
        run_for(&b, 50 * MSEC);
        assert_true(node_drain_state(b.drain) != NODE_DRAIN_DRAINED);
        run_for(&b, USEC_PER_SEC);
        assert_int_equal(s.n_lists, 3);
        assert_state(&b, NODE_DRAIN_DRAINED);

        print_message("  but not by what is not waited for\n");
        fake_add_pod(b.w.cluster,
                     &(FakePod){ .name = "ds", .node = NODE, .owner_kind = "DaemonSet", .owner = "d" });
        run_for(&b, USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(s.n_lists, 3);
        bench_done(&b);
}

/* Failures before a proof that came say nothing of those after it. */
TEST_CASE(test_proof_fails_again) {
        Server s = { .lists = { 503, 503, 503, 503, 503, 0, 503 } };
        Bench b;

        bench_init(&b);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 30 * USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        assert_int_equal(s.n_lists, 6);
        assert_false(node_drain_confirm(b.drain, USEC_PER_SEC));
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(s.n_lists, 8);
        assert_in_range(s.list_at_usec[7] - s.list_at_usec[6], 80 * MSEC, 125 * MSEC);
        bench_done(&b);
}

/* T passes while a delete is under way: it is over when that is answered. */
TEST_CASE(test_expires_after_the_delete) {
        Server s = { .delete_usec = 2 * USEC_PER_SEC };
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "kept",
                                              .node = NODE,
                                              .grace_sec = 1,
                                              .stuck = true,
                                              .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 10, PROTECTED_WAIT, false);
        run_for(&b, 10 * USEC_PER_SEC + 500 * MSEC);
        assert_int_equal(s.n_deletes, 1);
        assert_state(&b, NODE_DRAIN_DRAINING);
        run_for(&b, USEC_PER_SEC);
        assert_state(&b, NODE_DRAIN_EXPIRED);
        bench_done(&b);
}

/* -- what wakes it ---------------------------------------------------------------------------------------- */

/* Nothing has changed: nobody is told so. */
TEST_CASE(test_wakes_in_vain) {
        unsigned changed;
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 20);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 2 * USEC_PER_SEC);
        changed = b.n_changed;
        for (unsigned i = 0; i < 10; i++) {
                node_drain_wake(b.drain);
                run_for(&b, 100 * MSEC);
        }
        assert_int_equal(b.n_changed, changed);
        bench_done(&b);
}

/* Each of these alone, long after anything else has happened. */
TEST_CASE(test_one_cause) {
        Bench b;

        print_message("  pods that opted out are evicted after all\n");
        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "job",
                                              .node = NODE,
                                              .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "blocked job Protected vesper.sh/do-not-evict");
        node_drain_set_protected(b.drain, PROTECTED_IGNORE);
        run_for(&b, 60 * MSEC);
        assert_trace(&b, "evicted job; gone job");
        bench_done(&b);

        print_message("  what is stuck is not waited for any more, and is again\n");
        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "stuck", .node = NODE, .stuck = true, .grace_sec = 5 });
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_state(&b, NODE_DRAIN_DRAINING);
        node_drain_set_stuck_after(b.drain, 10 * USEC_PER_SEC);
        run_for(&b, 60 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        node_drain_set_stuck_after(b.drain, 0);
        run_for(&b, 60 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINING);
        bench_done(&b);

        print_message("  a later deadline than the one that was near\n");
        bench_init(&b);
        add_pod(&b, "slow", 600, 600);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "evicted slow");
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + 100 * USEC_PER_SEC);
        run_for(&b, 60 * MSEC);
        assert_trace(&b, "deleted slow");
        bench_done(&b);
}

/* A pod of several that somebody else deletes, or whose own eviction makes it one to be waited for no more, is news at once;
 * one that goes as it was asked to is told with others. */
TEST_CASE(test_changed_by_others) {
        unsigned changed;
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 20);
        add_pod(&b, "db", 30, 20);
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 3 * USEC_PER_SEC);
        assert_blockers(&b, "db Terminating, web BlockedByPDB web");
        changed = b.n_changed;

        print_message("  deleted by a person\n");
        node_drain_wake(b.drain);
        run_for(&b, 30 * MSEC); /* it has acted just now */
        fake_delete(b.w.cluster, FAKE_PODS, "default", "web", -1);
        run_for(&b, 60 * MSEC);
        assert_blockers(&b, "db Terminating, web Terminating");
        assert_true(b.n_changed > changed);

        print_message("  its containers have ended for good\n");
        node_drain_wake(b.drain);
        run_for(&b, 30 * MSEC);
        fake_merge(b.w.cluster, FAKE_PODS, "default", "db", "{'status':{'phase':'Succeeded'}}");
        run_for(&b, 60 * MSEC);
        assert_blockers(&b, "web Terminating");
        bench_done(&b);
}

/* Where others were held until they went, each that goes is looked at at once. */
TEST_CASE(test_gone_while_others_are_held) {
        Bench b;

        bench_init(&b);
        add_pod(&b, "dns", 30, 0);
        fake_merge(b.w.cluster, FAKE_PODS, "default", "dns",
                   "{'spec':{'priorityClassName':'system-cluster-critical'}}");
        add_pod(&b, "web", 30, 100);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 3 * USEC_PER_SEC);
        assert_blockers(&b, "dns WaitingForOthers, web Terminating");
        node_drain_wake(b.drain);
        run_for(&b, 30 * MSEC);
        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "web"));
        run_for(&b, 60 * MSEC);
        assert_trace(&b, "evicted web; gone web; evicted dns; gone dns");
        bench_done(&b);
}

/* Long after the last act there is nothing to tell a change together with. Then they go in quick succession, more than once
 * around; what was held at first is forgotten by then. */
TEST_CASE(test_told_together_again) {
        unsigned changed;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "job",
                                              .node = NODE,
                                              .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        for (int i = 0; i < 40; i++) {
                _cleanup_free_ char *name = strf("p%d", i);

                add_pod(&b, name, 30, 100);
        }
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), 0);
        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "job"));
        run_for(&b, 20 * USEC_PER_SEC);
        assert_int_equal(node_drain_pods_left(b.drain), 40);
        changed = b.n_changed;

        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "p0"));
        run_for(&b, 60 * MSEC);
        assert_int_equal(b.n_changed, changed + 1);
        assert_int_equal(node_drain_pods_left(b.drain), 39);

        for (int i = 1; i < 39; i++) {
                _cleanup_free_ char *name = strf("p%d", i);

                assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", name));
                run_for(&b, 50 * MSEC);
        }
        run_for(&b, 500 * MSEC);
        assert_int_equal(node_drain_pods_left(b.drain), 1);
        assert_in_range(b.n_changed, changed + 3, changed + 7);
        bench_done(&b);
}

TEST_CASE(test_awaits_pods) {
        Bench b;

        bench_init(&b);
        b.know_pdbs = true;
        b.pdb = "web";
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 0), 0);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_SEC);
        assert_true(node_drain_awaits_pods(b.drain)); /* none is left: that none comes */
        add_pod(&b, "web", 30, 10);
        run_for(&b, USEC_PER_SEC);
        assert_blockers(&b, "web BlockedByPDB web");
        assert_false(node_drain_awaits_pods(b.drain));
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 1), 0);
        run_for(&b, USEC_PER_SEC);
        assert_blockers(&b, "web Terminating");
        assert_true(node_drain_awaits_pods(b.drain));
        bench_done(&b);
}

/* -- why a pod is still there ----------------------------------------------------------------------------- */

/* A reason has its own beginning, and is told, with each budget that refuses. */
TEST_CASE(test_reasons_follow_each_other) {
        usec_t first, second;
        unsigned changed;
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 300, 300);
        fake_add_pdb(b.w.cluster, NULL, "one", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "blocked web BlockedByPDB one");
        first = blocker_since(&b);
        assert_in_range(loop_wall(b.w.loop) - first, 59 * USEC_PER_SEC, 60 * USEC_PER_SEC);

        fake_remove(b.w.cluster, FAKE_PDBS, "default", "one");
        fake_add_pdb(b.w.cluster, NULL, "two", "web", true, "1");
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "blocked web BlockedByPDB two");
        second = blocker_since(&b);
        assert_in_range(second - first, 50 * USEC_PER_SEC, 75 * USEC_PER_SEC);
        changed = b.n_changed;

        fake_remove(b.w.cluster, FAKE_PDBS, "default", "two");
        run_for(&b, USEC_PER_MINUTE);
        assert_trace(&b, "evicted web");
        assert_true(b.n_changed > changed);
        assert_true(blocker_since(&b) > second);
        bench_done(&b);
}

/* Nobody but our own question says so: its answer alone is told. */
TEST_CASE(test_answer_without_a_watch) {
        unsigned changed;
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 100);
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        stall_watches(&b);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 100 * MSEC);
        assert_blockers(&b, "web BlockedByPDB web");
        changed = b.n_changed;
        assert_true(changed > 0);
        fake_remove(b.w.cluster, FAKE_PDBS, "default", "web");
        while (strbuf_str(&b.trace)[0] != 0 && !strstr(strbuf_str(&b.trace), "evicted"))
                run_for(&b, 10 * MSEC);
        run_for(&b, 600 * MSEC);
        assert_blockers(&b, "web Terminating");
        assert_true(b.n_changed > changed);
        bench_done(&b);
}

/* Behind a closed gate for half an hour: said after five seconds, and every ten minutes. */
TEST_CASE(test_held_for_long) {
        Bench b;

        bench_init(&b);
        b.know_pdbs = true;
        b.pdb = "web";
        add_pod(&b, "web", 30, 0);
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 0), 0);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 4900 * MSEC);
        assert_trace(&b, "");
        run_for(&b, 200 * MSEC);
        assert_trace(&b, "blocked web BlockedByPDB web");
        for (unsigned i = 0; i < 3; i++) {
                for (unsigned k = 0; k < 10; k++) { /* its budget turns and turns */
                        node_drain_wake(b.drain);
                        run_for(&b, USEC_PER_MINUTE - 40 * MSEC);
                }
                assert_trace(&b, "");
                run_for(&b, 500 * MSEC);
                assert_trace(&b, "blocked web BlockedByPDB web");
        }
        assert_int_equal(n_evictions(&b), 0);
        bench_done(&b);
}

/* Its budget is another one now, or none any more: what waits at the old gate goes to the new one. */
TEST_CASE(test_budget_changes) {
        static const char *const then[] = { NULL, "open" };

        for (size_t i = 0; i < ELEMENTSOF(then); i++) {
                Bench b;

                bench_init(&b);
                b.know_pdbs = true;
                b.pdb = "closed";
                add_pod(&b, "web", 30, 0);
                assert_return_code(evictor_set_allowed(b.evictor, "default", "closed", 0), 0);
                assert_return_code(evictor_set_allowed(b.evictor, "default", "open", 1), 0);
                run_for(&b, USEC_PER_SEC);
                begin(&b, 0, PROTECTED_WAIT, false);
                run_for(&b, 2 * USEC_PER_SEC);
                assert_int_equal(n_evictions(&b), 0);
                b.pdb = then[i];
                node_drain_wake(b.drain);
                run_for(&b, USEC_PER_SEC);
                assert_int_equal(n_evictions(&b), 1);
                assert_trace(&b, "evicted web; gone web");
                bench_done(&b);
        }
}

/* A budget has been asked only where it has answered. */
TEST_CASE(test_what_is_a_refusal) {
        static const struct {
                const char *what;
                unsigned status;
                bool refused;
        } rows[] = {
                { "flow control says nothing of the pod", 429, false },
                { "nor does a server that is ill, but it has had its time", 500, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Server s = { .retry_after_sec = 1 };
                Bench b;

                print_message("  %s\n", rows[i].what);
                for (size_t k = 0; k < ELEMENTSOF(s.evictions); k++)
                        s.evictions[k] = rows[i].status;
                bench_init(&b);
                add_pod(&b, "web", 500, 500);
                run_for(&b, USEC_PER_SEC);
                play(&b, &s);
                begin(&b, 60, PROTECTED_IGNORE, true);
                run_for(&b, 3 * USEC_PER_SEC);
                assert_in_range(s.n_evictions, 1, 7);
                assert_int_equal(s.n_deletes, rows[i].refused ? 1 : 0);
                bench_done(&b);
        }
}

/* -- looks -------------------------------------------------------------------------------------------------- */

/* The second delete takes so long that its conflict comes while the list for the first is on its way. */
static void on_slow_second(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        Server *s = userdata;

        on_fault(r, fault, s);
        if (r->verb == FAKE_DELETE && s->n_deletes == 2)
                fault->delay_usec = 100 * MSEC;
}

TEST_CASE(test_look_wanted_during_a_look) {
        Server s = { .list_usec = 300 * MSEC, .deletes = { 409, 409 } };
        Bench b;

        bench_init(&b);
        add_pod(&b, "a", 500, 1);
        add_pod(&b, "b", 500, 1);
        run_for(&b, USEC_PER_SEC);
        s.loop = b.w.loop;
        fake_api_set_fault(api(&b), on_slow_second, &s);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 390 * MSEC); /* the first list has been answered */
        assert_int_equal(s.n_deletes, 3);
        assert_int_equal(s.n_lists, 2);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_int_equal(s.n_deletes, 4);
        assert_trace(&b, "deleted a; deleted b; gone a; gone b");
        bench_done(&b);
}

/* One look, however often it wakes while that is under way. */
TEST_CASE(test_wakes_during_a_look) {
        Server s = { .list_usec = 500 * MSEC, .deletes = { 409 } };
        Bench b;

        bench_init(&b);
        add_pod(&b, "a", 500, 1);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 100, PROTECTED_WAIT, false);
        for (unsigned i = 0; i < 20; i++) {
                run_for(&b, 30 * MSEC);
                node_drain_wake(b.drain);
        }
        assert_int_equal(s.n_deletes, 2);
        assert_int_equal(s.n_lists, 1);
        bench_done(&b);
}

/* Looks that failed before one that came say nothing of the next. */
TEST_CASE(test_look_fails_again) {
        Server s = { .lists = { 503, 503, 503, 503, 0, 503 }, .deletes = { 409, 409 } };
        Bench b;

        bench_init(&b);
        add_pod(&b, "a", 500, 1);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 20 * USEC_PER_SEC);
        assert_in_range(s.n_lists, 7, 8); /* and the proof */
        assert_in_range(s.list_at_usec[6] - s.list_at_usec[5], 80 * MSEC, 125 * MSEC);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* What a look has shown is over when the watch has something newer. */
TEST_CASE(test_view_is_newer_than_the_look) {
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 40, 100);
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 30, PROTECTED_OTHERS, true);
        run_for(&b, 100 * MSEC);
        assert_true(n_lists(&b) > 0);
        fake_delete(b.w.cluster, FAKE_PODS, "default", "web", 20);
        run_for(&b, 100 * MSEC);
        assert_blockers(&b, "web Terminating");
        assert_in_range(seconds_to_live(&b, "web"), 19, 30);
        bench_done(&b);
}

/* The view stands still and is older than what the look has shown: the look's word goes, in plan and precondition. */
TEST_CASE(test_look_is_newer_than_the_view) {
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 500, 1);
        run_for(&b, USEC_PER_SEC);
        stall_watches(&b);
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'metadata':{'annotations':{'x':'y'}}}");
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 500 * MSEC);
        assert_int_equal(n_deletes(&b), 1); /* of the pod as the answer to its condition showed it */
        assert_trace(&b, "deleted web");
        bench_done(&b);
}

/* -- deletes ------------------------------------------------------------------------------------------------ */

/* Already gone, which the watch has not said: no news, and not asked again. */
TEST_CASE(test_delete_of_nothing) {
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 500, 1);
        run_for(&b, USEC_PER_SEC);
        stall_watches(&b);
        fake_delete(b.w.cluster, FAKE_PODS, "default", "web", 0);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 20 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 1);
        assert_trace(&b, "");
        assert_blockers(&b, "web Terminating");
        bench_done(&b);
}

TEST_CASE(test_delete_retry_after) {
        Server s = { .deletes = { 429, 429 }, .retry_after_sec = 7 };
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 500, 1);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 30 * USEC_PER_SEC);
        assert_int_equal(s.n_deletes, 3);
        for (unsigned i = 1; i < 3; i++)
                assert_in_range(s.delete_at_usec[i] - s.delete_at_usec[i - 1], 7 * USEC_PER_SEC,
                                7 * USEC_PER_SEC + 100 * MSEC);
        bench_done(&b);
}

/* Conflicts and failures of a delete that was taken in the end count for nothing with the next one of the same pod. */
TEST_CASE(test_deleted_twice) {
        Server s = { .deletes = { 500, 500, 500, 0, 500 } };
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 500, 500);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 20 * USEC_PER_SEC);
        assert_int_equal(s.n_deletes, 4);
        assert_trace(&b, "blocked web DeleteFailed; deleted web");
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + 30 * USEC_PER_SEC);
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(s.n_deletes, 6);
        assert_in_range(s.delete_at_usec[5] - s.delete_at_usec[4], 200 * MSEC, 310 * MSEC);
        assert_trace(&b, "blocked web DeleteFailed; deleted web");
        bench_done(&b);

        print_message("  and conflicts: each time three before it is sent without a condition\n");
        s = (Server){ .deletes = { 409, 409, 0, 409, 409, 0 } };
        bench_init(&b);
        add_pod(&b, "web", 500, 500);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 5 * USEC_PER_SEC);
        node_drain_set_deadline(b.drain, loop_wall(b.w.loop) + 30 * USEC_PER_SEC);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_int_equal(s.n_deletes, 6);
        assert_trace(&b, "deleted web; deleted web");
        bench_done(&b);
}

/* An eviction that was wrong about a pod: the next one is left alone while it is under way. */
TEST_CASE(test_asked_again_once) {
        Server s = { .evictions = { 409 } };
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 30, 0);
        run_for(&b, USEC_PER_SEC);
        play(&b, &s);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 4 * USEC_PER_SEC);
        assert_int_equal(s.n_evictions, 1);
        assert_true(node_drain_awaits_pods(b.drain)); /* that the watch says so, too */
        s.evict_usec = 500 * MSEC;
        for (unsigned i = 0; i < 40; i++) {
                node_drain_wake(b.drain);
                run_for(&b, 50 * MSEC);
        }
        assert_int_equal(s.n_evictions, 2);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

/* From T - g on it is deleted: its budget is not asked any more, however long it takes to go. */
TEST_CASE(test_deleted_instead) {
        uint64_t asked;
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 60, 60);
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        run_for(&b, USEC_PER_SEC);
        begin(&b, 90, PROTECTED_WAIT, false);
        run_for(&b, 31 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 1);
        asked = n_evictions(&b);
        assert_true(asked > 1);
        run_for(&b, 50 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), asked);
        bench_done(&b);
}

/* It opts out while it waits at a gate: when that opens, it stays. */
TEST_CASE(test_opts_out_while_it_waits) {
        Bench b;

        bench_init(&b);
        b.know_pdbs = true;
        b.pdb = "web";
        add_pod(&b, "web", 30, 0);
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 0), 0);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 2 * USEC_PER_SEC);
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web",
                   "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}");
        run_for(&b, USEC_PER_SEC);
        assert_blockers(&b, "web Protected vesper.sh/do-not-evict");
        assert_return_code(evictor_set_allowed(b.evictor, "default", "web", 1), 0);
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(n_evictions(&b), 0);
        assert_trace(&b, "blocked web Protected vesper.sh/do-not-evict");
        bench_done(&b);
}

/* The watch is faster than the answer to its eviction, which is told all the same. */
TEST_CASE(test_answer_after_the_watch) {
        Bench b;

        bench_init(&b);
        b.eviction_reply_usec = 300 * MSEC;
        add_pod(&b, "web", 30, 10);
        run_for(&b, USEC_PER_SEC);
        begin(&b, 0, PROTECTED_WAIT, false);
        run_for(&b, 250 * MSEC);
        assert_blockers(&b, "web Terminating");
        assert_trace(&b, "");
        run_for(&b, 200 * MSEC);
        assert_trace(&b, "evicted web");
        bench_done(&b);
}

/* Pods are gone before their evictions are answered: who evicted them is told when the answers come, and without them once the
 * node is proved empty, whichever is first. One that was refused, or found its pod gone, is told as gone only. */
TEST_CASE(test_answer_after_the_pod) {
        static const struct {
                usec_t reply_usec, list_usec;
                unsigned status; /* of the answer; 0: as it is */
                bool is_removed; /* by somebody else, while it is asked */
                unsigned n_unanswered;
                const char *trace;
        } rows[] = {
                { 300 * MSEC, 600 * MSEC, 0, false, 0, "evicted db; gone db; evicted web; gone web" },
                { 900 * MSEC, 200 * MSEC, 0, false, 2, "evicted db; gone db; evicted web; gone web" },
                { 300 * MSEC, 600 * MSEC, 0, true, 0, "gone db; gone web" },
                { 300 * MSEC, 600 * MSEC, 500, true, 0, "gone db; gone web" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Server s = { .list_usec = rows[i].list_usec, .evictions = { rows[i].status, rows[i].status } };
                Bench b;

                bench_init(&b);
                if (rows[i].is_removed)
                        s.evict_usec = rows[i].reply_usec;
                else
                        b.eviction_reply_usec = rows[i].reply_usec;
                add_pod(&b, "web", 30, 0);
                add_pod(&b, "db", 30, 0);
                run_for(&b, USEC_PER_SEC);
                play(&b, &s);
                begin(&b, 0, PROTECTED_WAIT, false);
                run_for(&b, 100 * MSEC);
                if (rows[i].is_removed) {
                        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "web"));
                        assert_true(fake_remove(b.w.cluster, FAKE_PODS, "default", "db"));
                }
                run_for(&b, 50 * MSEC);
                assert_int_equal(node_drain_pods_left(b.drain), 0);
                assert_trace(&b, "");
                run_for(&b, 2 * USEC_PER_SEC);
                assert_state(&b, NODE_DRAIN_DRAINED);
                assert_trace(&b, rows[i].trace);
                assert_int_equal(b.n_unanswered, rows[i].n_unanswered);
                assert_int_equal(n_evictions(&b), 2); /* a pod that is gone is not asked for again */
                bench_done(&b);
        }
}

/* A drain that is dropped meanwhile lets the calls under way end in peace, and says nothing of them any more. */
TEST_CASE(test_dropped_before_the_answer) {
        Bench b;

        for (unsigned told = 0; told < 2; told++) {
                bench_init(&b);
                b.eviction_reply_usec = 300 * MSEC;
                b.late_usec = USEC_PER_SEC;
                add_pod(&b, "web", 30, 0);
                add_pod(&b, "db", 30, 60);
                run_for(&b, USEC_PER_SEC * 2);
                begin(&b, 0, PROTECTED_WAIT, false);
                run_for(&b, 150 * MSEC);
                assert_blockers(&b, "db Terminating");
                assert_trace(&b, "");
                if (told > 0) {
                        node_drain_tell_unanswered(b.drain);
                        assert_trace(&b, "evicted db; evicted web; gone web");
                }
                b.drain = node_drain_free(b.drain);
                run_for(&b, USEC_PER_SEC);
                assert_trace(&b, "");
                /* (Of a pod that stands still the call is torn off.) */
                assert_int_equal(evictor_stats(b.evictor).answers[EVICTION_ACCEPTED], 1);
                bench_done(&b);
        }
}

/* Deletes end pods as evictions do: neither without the permit, nor without the lead. */
TEST_CASE(test_deletes_are_permitted) {
        Bench b;

        bench_init(&b);
        add_pod(&b, "web", 500, 1);
        run_for(&b, USEC_PER_SEC);
        b.no_permit = true;
        begin(&b, 100, PROTECTED_WAIT, false);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 0);
        b.no_permit = false;
        b.no_lead = true;
        node_drain_wake(b.drain);
        run_for(&b, 5 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 0);
        b.no_lead = false;
        run_for(&b, 10 * USEC_PER_SEC);
        assert_int_equal(n_deletes(&b), 1);
        assert_state(&b, NODE_DRAIN_DRAINED);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_proof_ages),
                cmocka_unit_test(test_proof_spoilt),
                cmocka_unit_test(test_proof_fails_again),
                cmocka_unit_test(test_expires_after_the_delete),
                cmocka_unit_test(test_wakes_in_vain),
                cmocka_unit_test(test_one_cause),
                cmocka_unit_test(test_changed_by_others),
                cmocka_unit_test(test_gone_while_others_are_held),
                cmocka_unit_test(test_told_together_again),
                cmocka_unit_test(test_awaits_pods),
                cmocka_unit_test(test_reasons_follow_each_other),
                cmocka_unit_test(test_answer_without_a_watch),
                cmocka_unit_test(test_held_for_long),
                cmocka_unit_test(test_budget_changes),
                cmocka_unit_test(test_what_is_a_refusal),
                cmocka_unit_test(test_look_wanted_during_a_look),
                cmocka_unit_test(test_wakes_during_a_look),
                cmocka_unit_test(test_look_fails_again),
                cmocka_unit_test(test_view_is_newer_than_the_look),
                cmocka_unit_test(test_look_is_newer_than_the_view),
                cmocka_unit_test(test_delete_of_nothing),
                cmocka_unit_test(test_delete_retry_after),
                cmocka_unit_test(test_deleted_twice),
                cmocka_unit_test(test_asked_again_once),
                cmocka_unit_test(test_deleted_instead),
                cmocka_unit_test(test_opts_out_while_it_waits),
                cmocka_unit_test(test_answer_after_the_watch),
                cmocka_unit_test(test_blockers_are_of_now),
                cmocka_unit_test(test_answer_after_the_pod),
                cmocka_unit_test(test_dropped_before_the_answer),
                cmocka_unit_test(test_deletes_are_permitted),
        };
        return cmocka_run_group_tests_name("node-drain-rounds", tests, NULL, NULL);
}
