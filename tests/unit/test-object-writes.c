/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "alloc-fault.h"
#include "cmocka-test.h"
#include "kube-kinds.h"
#include "kube-rig.h"
#include "object-writes.h"

#define MSEC USEC_PER_MSEC

typedef struct Bench {
        Rig *rig;
        WorkQueue *queue;
        ObjectWrites *writes;
        unsigned n_looked; /* times that a key was reconciled */
} Bench;

static void on_key(const char *key, void *userdata) {
        Bench *b = userdata;
        (void) key;

        b->n_looked++;
}

static void bench_init(Bench *b) {
        *b = (Bench){ .rig = rig_new() };
        assert_return_code(work_queue_new(b->rig->host->loop, b->rig->host->random, "test", USEC_PER_SEC,
                                          USEC_PER_MINUTE, on_key, b, &b->queue),
                           0);
        assert_return_code(object_writes_new(b->rig->host->client, b->queue, (HttpGuard){}, &b->writes), 0);
}

static void bench_done(Bench *b) {
        object_writes_free(b->writes);
        work_queue_free(b->queue);
        rig_free(b->rig);
}

static ObjectWrite write_on(const char *name, const char *state, bool urgent) {
        return (ObjectWrite){ .what = "mark",
                              .target = { .kind = &kube_node_kind, .name = name },
                              .state = state,
                              .reconcile_key = "node/n",
                              .urgent = urgent };
}

static int patch(Bench *b, const char *state, bool urgent) {
        ObjectWrite w = write_on("n", state, urgent);

        return object_writes_patch(b->writes, &w, KUBE_PATCH_MERGE, "{}");
}

TEST_CASE(test_once_on_a_state) {
        for (int urgent = 0; urgent < 2; urgent++) {
                Bench b;

                print_message("  %s\n", urgent ? "urgent" : "in its turn");
                bench_init(&b);
                rig_answer(b.rig, 200, "{}");
                rig_answer(b.rig, 200, "{}");
                assert_int_equal(patch(&b, "1", urgent), 1);
                assert_int_equal(patch(&b, "2", urgent), 0); /* one is under way */
                rig_run_for(b.rig, 100 * MSEC);
                assert_int_equal(b.n_looked, 1);
                assert_int_equal(patch(&b, "1", urgent), 0);
                assert_int_equal(patch(&b, "2", urgent), 1);
                rig_run_for(b.rig, 100 * MSEC);
                assert_int_equal(b.rig->n_requests, 2);
                object_writes_forget(b.writes, &kube_node_kind, NULL, "n");
                rig_answer(b.rig, 200, "{}");
                assert_int_equal(patch(&b, "2", urgent), 1);
                bench_done(&b);
        }
}

/* What was done was lost with the etcd that knew of it: the view never shows it, on whatever state. */
TEST_CASE(test_done_and_never_seen) {
        unsigned looked;
        Bench b;

        bench_init(&b);
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, "{}");
        assert_int_equal(patch(&b, "uid", false), 1);
        rig_run_for(b.rig, USEC_PER_SEC);
        assert_int_equal(patch(&b, "uid", false), 0);
        looked = b.n_looked;
        rig_run_for(b.rig, 598 * USEC_PER_SEC);
        assert_int_equal(b.n_looked, looked);
        assert_int_equal(patch(&b, "uid", false), 0);
        rig_run_for(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(b.n_looked, looked + 1); /* its key is dirty then */
        assert_int_equal(patch(&b, "uid", false), 1);
        rig_run_for(b.rig, USEC_PER_SEC);
        assert_int_equal(patch(&b, "uid", false), 0);
        bench_done(&b);
}

/* However often its key gets dirty, what fails is tried with backoff, on other states as well. */
TEST_CASE(test_urgent_backoff) {
        ObjectWrite w = write_on("n", "1", true);
        char version[16];
        unsigned looked;
        Bench b;

        bench_init(&b);
        for (int i = 0; i < 100; i++)
                rig_answer(b.rig, 500, "{}");
        assert_false(object_writes_failing(b.writes, &w));
        for (int i = 0; i < 6000; i++) {
                snprintf(version, sizeof(version), "%d", i);
                (void) patch(&b, version, true);
                rig_run_for(b.rig, 10 * MSEC);
        }
        assert_true(object_writes_failing(b.writes, &w));
        /* 0.1, 0.2, 0.4 ... 10, 10: a minute has about a dozen */
        assert_in_range(b.rig->n_requests, 8, 16);

        print_message("  and its key is dirty when it may be tried again\n");
        rig_run_for(b.rig, 15 * USEC_PER_SEC);
        looked = b.n_looked;
        b.rig->next_answer = b.rig->n_answers;
        rig_answer(b.rig, 200, "{}");
        assert_int_equal(patch(&b, "last", true), 1);
        rig_run_for(b.rig, 100 * MSEC);
        assert_true(b.n_looked > looked);
        assert_false(object_writes_failing(b.writes, &w));
        assert_int_equal(patch(&b, "last", true), 0);
        bench_done(&b);
}

/* 409: somebody else wrote. On what he made of it at once, on the old version after a moment. */
TEST_CASE(test_conflict) {
        Bench b;

        bench_init(&b);
        rig_answer(b.rig, 409, "{}");
        rig_answer(b.rig, 409, "{}");
        rig_answer(b.rig, 200, "{}");
        assert_int_equal(patch(&b, "1", true), 1);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(b.n_looked, 1);
        assert_int_equal(patch(&b, "1", true), 0);
        assert_int_equal(patch(&b, "2", true), 1);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(patch(&b, "2", true), 0);
        rig_run_for(b.rig, 500 * MSEC);
        assert_int_equal(patch(&b, "2", true), 1);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(b.rig->n_requests, 3);
        bench_done(&b);
}

static void on_view_is_old(const KubeKind *kind, void *userdata) {
        unsigned *n = userdata;

        assert_ptr_equal(kind, &kube_node_kind);
        ++*n;
}

/* Refused again and again on a state of which no newer one comes: the owner of the view is told, and told again. */
TEST_CASE(test_view_is_old) {
        for (int urgent = 0; urgent < 2; urgent++) {
                unsigned n_told = 0;
                Bench b;

                print_message("  %s\n", urgent ? "urgent" : "not urgent");
                bench_init(&b);
                for (int i = 0; i < 100; i++)
                        rig_answer(b.rig, 409, "{}");
                object_writes_set_view_is_old(b.writes, on_view_is_old, &n_told);
                for (int i = 0; i < 6; i++) {
                        assert_int_equal(n_told, i / 3);
                        assert_int_equal(patch(&b, "1", urgent), 1);
                        rig_run_for(b.rig, 600 * MSEC);
                }
                assert_int_equal(n_told, 2);

                print_message("    but not where the view goes on\n");
                for (int i = 0; i < 9; i++) {
                        assert_int_equal(patch(&b, i % 2 == 0 ? "2" : "3", urgent), 1);
                        rig_run_for(b.rig, 600 * MSEC);
                }
                assert_int_equal(n_told, 2);
                bench_done(&b);
        }
}

/* An adoption of very many nodes does not hold up a removal. */
TEST_CASE(test_room) {
        char names[40][8];
        unsigned sent = 0;
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < 50; i++)
                rig_answer(b.rig, 0, NULL);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                ObjectWrite w;

                snprintf(names[i], sizeof(names[i]), "a%zu", i);
                w = write_on(names[i], "1", false);
                sent += object_writes_patch(b.writes, &w, KUBE_PATCH_MERGE, "{}") > 0;
        }
        assert_int_equal(sent, 40); /* they wait for their turn (kube-client.h: KubeRank) */
        assert_int_equal(patch(&b, "1", true), 1);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(b.rig->n_requests, 33);
        bench_done(&b);
}

/* Each allocation of a write fails once. The write is sent all the same, or the key is marked and the next
 * reconcile sends it. */
TEST_CASE(test_out_of_memory) {
        size_t n_failed = 0;
        bool fired = true;

        for (size_t i = 1; fired; i++) {
                ObjectWrite w = write_on("n", "1", false);
                Bench b;
                int r;

                bench_init(&b);
                rig_answer(b.rig, 200, "{}");
                alloc_fault_arm(i);
                r = object_writes_patch(b.writes, &w, KUBE_PATCH_MERGE, "{}");
                fired = alloc_fault_fired();
                alloc_fault_disarm();
                assert_int_equal(r, r < 0 ? -ENOMEM : 1);
                assert_int_equal(object_writes_are_under_way(b.writes, &kube_node_kind, NULL, "n"), r == 1);
                n_failed += r < 0;
                rig_run_for(b.rig, 2 * USEC_PER_SEC);
                assert_int_equal(b.n_looked, 1);
                if (r < 0) {
                        assert_int_equal(patch(&b, "1", false), 1);
                        rig_run_for(b.rig, 2 * USEC_PER_SEC);
                }
                assert_int_equal(b.rig->n_requests, 1);
                bench_done(&b);
        }
        assert_true(n_failed > 5);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_once_on_a_state),
                cmocka_unit_test(test_done_and_never_seen),
                cmocka_unit_test(test_urgent_backoff),
                cmocka_unit_test(test_conflict),
                cmocka_unit_test(test_view_is_old),
                cmocka_unit_test(test_room),
                cmocka_unit_test(test_out_of_memory),
        };

        return cmocka_run_group_tests_name("object-writes", tests, NULL, NULL);
}
