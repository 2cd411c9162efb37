/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "alloc-fault.h"
#include "coordinator-rig.h"

/*
 * One whole life of a node with the coordinator: adopted, deleted, drained against a budget, its volume and
 * its machine (EC2's provider) gone, and let go; again and again, each time with another of the
 * coordinator's allocations failing. It may be late by a retry, and it may exit and be started again, but
 * the node and its claim go, the machine was ended, and no pod was deleted past its budget.
 *
 * What is counted and how samples are drawn: see test-alloc-agent.c. The start itself is not failed.
 */

#define SAMPLES 500u
#define RESTART_USEC (2 * USEC_PER_SEC)
#define ADOPTED_BY_USEC (2 * USEC_PER_MINUTE)
#define GONE_BY_USEC (5 * USEC_PER_MINUTE)

/* -- whose memory it is ------------------------------------------------------------------------- */

void __wrap_fake_cluster_handle(HttpExchange *x, void *userdata);
void __real_fake_cluster_handle(HttpExchange *x, void *userdata);
void __wrap_fake_ec2_handle(HttpExchange *x, void *userdata);
void __real_fake_ec2_handle(HttpExchange *x, void *userdata);

void __wrap_fake_cluster_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_cluster_handle(x, userdata);
        alloc_fault_resume();
}

void __wrap_fake_ec2_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_ec2_handle(x, userdata);
        alloc_fault_resume();
}

/* -- one run ------------------------------------------------------------------------------------ */

/* It has given up, as it should where it could not go on: its pod starts it again. */
static void start_again(CoordinatorRig *r) {
        usec_t until = usec_add(virtual_time_now(r->w.time), RESTART_USEC);

        assert_true(alloc_fault_fired());
        alloc_fault_pause();
        rig_kill(r, 0);
        while (virtual_time_step(r->w.time, until) > 0)
                ;
        rig_start(r, 0);
        alloc_fault_resume();
}

/* One timer of the world. False: nothing is due until then. */
static bool step(CoordinatorRig *r, usec_t until) {
        const Loop *next = virtual_time_next(r->w.time, until);
        bool ours = next == r->coordinators[0]->loop;
        int code;

        if (!ours)
                alloc_fault_pause();
        virtual_time_step(r->w.time, until);
        if (!ours)
                alloc_fault_resume();
        if (loop_has_exited(r->coordinators[0]->loop, &code)) {
                assert_true(code < 0);
                start_again(r);
        }
        return next;
}

static bool is_adopted(CoordinatorRig *r) {
        return rig_is_adopted(r, "n0");
}

static bool is_gone(CoordinatorRig *r) {
        return !rig_node(r, "n0") && !rig_claim(r, "n0");
}

static bool wait_for(CoordinatorRig *r, bool (*is_so)(CoordinatorRig *r), usec_t at_most_usec) {
        usec_t until = usec_add(virtual_time_now(r->w.time), at_most_usec);
        bool due = true, so = false;

        while (due && !so) {
                due = step(r, until);
                alloc_fault_pause();
                so = is_so(r);
                alloc_fault_resume();
        }
        return so;
}

static CoordinatorRig *make_world(void) {
        CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = true;
        fake_add_nodepool(r->cluster, POOL, "10m", NULL);
        rig_add_node(r, "n0");
        rig_add_node(r, "n1");
        fake_add_pod(r->cluster, &(FakePod){ .name = "web-0", .node = "n0", .app = "web", .stop_sec = 3 });
        fake_add_pod(r->cluster, &(FakePod){ .name = "db-0", .node = "n0", .app = "db", .stop_sec = 3 });
        fake_add_pod(r->cluster, &(FakePod){ .name = "db-1", .node = "n0", .app = "db", .stop_sec = 3 });
        fake_add_pod(r->cluster, &(FakePod){ .name = "db-2", .node = "n1", .app = "db", .stop_sec = 3 });
        fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "1");
        return r;
}

static const char *play(CoordinatorRig *r) {
        if (!wait_for(r, is_adopted, ADOPTED_BY_USEC))
                return "it was not adopted";
        alloc_fault_pause();
        rig_delete_node(r, "n0");
        alloc_fault_resume();
        return wait_for(r, is_gone, GONE_BY_USEC) ? NULL : "it did not go";
}

static const char *look(CoordinatorRig *r) {
        _cleanup_free_ char *instance = rig_instance("n0");

        if (fake_ec2_n_terminations(r->ec2, instance) == 0)
                return "its machine was not ended";
        if (fake_ec2_n_alive(r->ec2) != 1)
                return "not exactly the other machine lives";
        if (!rig_is_adopted(r, "n1"))
                return "the other node is not adopted any more";
        if (rig_evictions(r, 201) != 3)
                return "not exactly three evictions were accepted";
        return NULL;
}

static const char *terminate(size_t fails_at, size_t *ret_n, char **ret_log) {
        CoordinatorRig *r = make_world();
        const char *wrong;

        rig_start(r, 0);
        alloc_fault_arm(fails_at);
        wrong = play(r);
        *ret_n = alloc_fault_disarm();
        if (!wrong)
                wrong = look(r);
        *ret_log = strdup(strbuf_str(&r->coordinators[0]->said));
        coordinator_rig_free(r);
        return wrong;
}

/* -- the sweep ---------------------------------------------------------------------------------- */

static uint64_t number_from_environment(const char *name, uint64_t otherwise) {
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_termination(void **state) {
        _cleanup_free_ char *log = NULL;
        _cleanup_(random_freep) Random *random = NULL;
        size_t total, n, stride, n_failed = 0, n_wrong = 0;
        const char *wrong;

        wrong = terminate(0, &total,
                          &log); /* nothing fails; what libraries make once is there from now on */
        if (!wrong) {
                log = mfree(log);
                wrong = terminate(0, &total, &log);
        }
        if (wrong)
                fail_msg("with all memory: %s:\n%s", wrong, log);
        assert_true(total > 100);
        assert_return_code(random_new(number_from_environment("VESPER_ALLOC_SEED", 1), &random), 0);
        stride = getenv("VESPER_ALLOC_ALL") ? 1 : MAX(total / SAMPLES, (size_t) 1);

        if (getenv("VESPER_ALLOC_AT")) { /* one alone, to look at */
                log = mfree(log);
                wrong = terminate(number_from_environment("VESPER_ALLOC_AT", 0), &n, &log);
                printf("%s\n", log);
                fail_msg("%s", wrong ? wrong : "all is well");
        }
        for (size_t at = 1; at <= total; at += stride) {
                size_t fails_at = stride == 1 ? at : at + random_below(random, stride);
                _cleanup_free_ char *lines = NULL;

                wrong = terminate(fails_at, &n, &lines);
                n_failed += alloc_fault_fired();
                if (!wrong)
                        continue;
                n_wrong++;
                print_message("allocation %zu of %zu failing: expected a node that goes, but %s; the "
                              "coordinator said:\n",
                              fails_at, total, wrong);
                printf("%s", lines);
        }
        print_message("%zu allocations of the coordinator, %zu of them failed, one in each run\n", total,
                      n_failed);
        assert_int_equal(n_wrong, 0);
        assert_true(n_failed >= total / stride);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_termination) };

        return cmocka_run_group_tests_name("alloc-coordinator", tests, NULL, NULL);
}
