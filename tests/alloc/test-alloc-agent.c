/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent-rig.h"
#include "alloc-fault.h"

/*
 * One whole interruption, from the agent's start to the drained node, again and again: each time another one
 * of the agent's allocations fails. It may start anew if it could not start (systemd does that), it may be
 * late by a retry, but the node is drained by the deadline, and says so.
 *
 * Only what the agent asks for is counted: the cluster, the metadata service and the disk answer from
 * wrapped calls that pause the count, and what is due in the world's own loop is not the agent's.
 *
 * All of them take minutes; without VESPER_ALLOC_ALL in the environment one in some is drawn, others in each
 * run of another VESPER_ALLOC_SEED.
 */

#define SAMPLES 300u
#define RESTART_USEC USEC_PER_SEC /* RestartSec= of vesper-agent.service */
#define CALM_USEC (10 * USEC_PER_SEC)
#define LEAD_USEC (120 * USEC_PER_SEC)
#define END_USEC (10 * USEC_PER_SEC) /* of it: volumes are waited for, the last reports are made */

/* -- whose memory it is ------------------------------------------------------------------------- */

void __wrap_fake_cluster_handle(HttpExchange *x, void *userdata);
void __real_fake_cluster_handle(HttpExchange *x, void *userdata);
void __wrap_fake_imds_handle(HttpExchange *x, void *userdata);
void __real_fake_imds_handle(HttpExchange *x, void *userdata);

void __wrap_fake_cluster_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_cluster_handle(x, userdata);
        alloc_fault_resume();
}

void __wrap_fake_imds_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_imds_handle(x, userdata);
        alloc_fault_resume();
}

static const StateStoreOps *disk; /* of the rig */

static int quiet_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        int r;

        alloc_fault_pause();
        r = disk->read(s, name, ret, ret_size);
        alloc_fault_resume();
        return r;
}

static int quiet_write(StateStore *s, const char *name, const void *data, size_t size) {
        int r;

        alloc_fault_pause();
        r = disk->write(s, name, data, size);
        alloc_fault_resume();
        return r;
}

static int quiet_remove(StateStore *s, const char *name) {
        return disk->remove(s, name);
}

static void quiet_free(StateStore *s) {
}

static const StateStoreOps quiet_disk = { quiet_read, quiet_write, quiet_remove, quiet_free };

/* -- one run ------------------------------------------------------------------------------------ */

/* Lets time pass; what is due elsewhere than in the agent is not counted. */
static void run(AgentRig *r, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(r->world.time), usec);
        const Loop *next;

        while ((next = virtual_time_next(r->world.time, until))) {
                bool ours = next == r->loop;

                if (!ours)
                        alloc_fault_pause();
                virtual_time_step(r->world.time, until);
                if (!ours)
                        alloc_fault_resume();
        }
        virtual_time_step(r->world.time, until); /* time stands at the limit now */
}

static AgentRig *make_world(void) {
        AgentRig *r = agent_rig_new();

        disk = r->store.ops;
        r->store.ops = &quiet_disk;
        agent_rig_add_pods(r, "web", 3);
        agent_rig_add_pods(r, "db", 2);
        fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "1");
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'volumesInUse':['csi/disk-1']}}");
        return r;
}

/* NULL, or what was not as it should be. */
static const char *look(AgentRig *r) {
        _cleanup_free_ char *phase = agent_rig_phase(r);

        if (agent_rig_n_pods(r) > 0)
                return "pods are left on the node";
        if (!agent_rig_unschedulable(r))
                return "the node is not cordoned";
        if (!phase || !streq(phase, "Drained"))
                return "the annotation does not say Drained";
        if (!streq_ptr(agent_rig_condition(r, "Drained"), "True"))
                return "the condition Drained is not True";
        return NULL;
}

typedef enum Window {
        WINDOW_WHOLE, /* from the agent's start */
        WINDOW_END,   /* from when most is done, and the last reports are still to be made */
} Window;

/* The fails_at-th allocation in that window fails. *ret_n: how many there were. */
static const char *interrupt(Window window, size_t fails_at, size_t *ret_n, char **ret_log) {
        AgentRig *r = make_world();
        const char *wrong;

        if (window == WINDOW_WHOLE)
                alloc_fault_arm(fails_at);
        while (agent_rig_try_start(r) < 0) {
                assert_true(alloc_fault_fired()); /* only for want of memory */
                assert_true(r->lives < 5);
                run(r, RESTART_USEC);
        }
        run(r, CALM_USEC);
        alloc_fault_pause();
        agent_rig_notice(r, LEAD_USEC);
        alloc_fault_resume();
        run(r, LEAD_USEC - END_USEC);
        if (window == WINDOW_END)
                alloc_fault_arm(fails_at);
        run(r, END_USEC);
        *ret_n = alloc_fault_disarm();

        wrong = look(r);
        *ret_log = strdup(strbuf_str(&r->lines));
        agent_rig_free(r);
        return wrong;
}

/* -- the sweep ---------------------------------------------------------------------------------- */

static uint64_t number_from_environment(const char *name, uint64_t otherwise) {
        const char *text = getenv(name);

        return text ? strtoull(text, NULL, 10) : otherwise;
}

static void sweep(Window window, size_t samples) {
        _cleanup_free_ char *log = NULL;
        _cleanup_(random_freep) Random *random = NULL;
        size_t total, n, stride, n_failed = 0, n_wrong = 0;
        const char *wrong;

        wrong = interrupt(window, 0, &total,
                          &log); /* nothing fails; what libraries make once is there from now on */
        if (!wrong) {
                log = mfree(log);
                wrong = interrupt(window, 0, &total, &log);
        }
        if (wrong)
                fail_msg("with all memory: %s:\n%s", wrong, log);
        assert_true(total > 100);
        assert_return_code(random_new(number_from_environment("VESPER_ALLOC_SEED", 1), &random), 0);
        stride = getenv("VESPER_ALLOC_ALL") ? 1 : MAX(total / samples, (size_t) 1);

        if (getenv("VESPER_ALLOC_AT")) { /* one alone, to look at */
                log = mfree(log);
                wrong = interrupt(window, number_from_environment("VESPER_ALLOC_AT", 0), &n, &log);
                printf("%s\n", log);
                fail_msg("%s", wrong ? wrong : "all is well");
        }
        for (size_t at = 1; at <= total; at += stride) {
                size_t fails_at = stride == 1 ? at : at + random_below(random, stride);
                _cleanup_free_ char *lines = NULL;

                wrong = interrupt(window, fails_at, &n, &lines);
                n_failed += alloc_fault_fired();
                if (!wrong)
                        continue;
                n_wrong++;
                print_message(
                        "allocation %zu of %zu failing: expected a drained node, but %s; the agent said:\n",
                        fails_at, total, wrong);
                printf("%s", lines);
        }
        print_message("%zu allocations of the agent, %zu of them failed, one in each run\n", total,
                      n_failed);
        assert_int_equal(n_wrong, 0);
        assert_true(n_failed >= total / stride);
}

static void test_interruption(void **state) {
        sweep(WINDOW_WHOLE, SAMPLES);
}

static void test_end(void **state) {
        sweep(WINDOW_END, SIZE_MAX);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_interruption),
                cmocka_unit_test(test_end),
        };

        return cmocka_run_group_tests_name("alloc-agent", tests, NULL, NULL);
}
