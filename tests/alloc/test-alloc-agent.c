/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent-rig.h"
#include "alloc-sweep.h"

/*
 * One whole interruption, from the agent's start to the drained node, again and again: each time another one
 * of the agent's allocations fails. It may start anew if it could not start (systemd does that), it may be
 * late by a retry, but the node is drained by the deadline, and says so.
 *
 * Only what the agent asks for is counted: the cluster, the metadata service and the disk answer from
 * wrapped calls that pause the count, and what is due in the world's own loop is not the agent's.
 */

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

int __wrap_fake_power_store_fd(const char *name, int fd, void *power);
int __real_fake_power_store_fd(const char *name, int fd, void *power);

int __wrap_fake_power_store_fd(const char *name, int fd, void *power) {
        int r;

        alloc_fault_pause();
        r = __real_fake_power_store_fd(name, fd, power);
        alloc_fault_resume();
        return r;
}

Bus *__wrap_fake_power_bus(FakePower *p, Loop *loop);
Bus *__real_fake_power_bus(FakePower *p, Loop *loop);

static const BusOps *machine_bus; /* of the rig */

static int quiet_match_signal(Bus *b, const char *service, const char *path, const char *interface,
                              const char *signal, bus_value_t fn, void *userdata, BusSlot **ret) {
        int r;

        alloc_fault_pause();
        r = machine_bus->match_signal(b, service, path, interface, signal, fn, userdata, ret);
        alloc_fault_resume();
        return r;
}

static int quiet_call(Bus *b, const BusCall *call, bus_reply_t fn, void *userdata, BusSlot **ret) {
        int r;

        alloc_fault_pause();
        r = machine_bus->call(b, call, fn, userdata, ret);
        alloc_fault_resume();
        return r;
}

static int quiet_publish(Bus *b, const BusObject *o, void *userdata, BusSlot **ret) {
        int r;

        alloc_fault_pause();
        r = machine_bus->publish(b, o, userdata, ret);
        alloc_fault_resume();
        return r;
}

static void quiet_emit(BusSlot *object, const char *text) {
        alloc_fault_pause();
        machine_bus->emit(object, text);
        alloc_fault_resume();
}

Bus *__wrap_fake_power_bus(FakePower *p, Loop *loop) {
        static BusOps quiet;
        Bus *b;

        alloc_fault_pause();
        b = __real_fake_power_bus(p, loop);
        alloc_fault_resume();
        machine_bus = b->ops;
        quiet = *machine_bus;
        quiet.match_signal = quiet_match_signal;
        quiet.call = quiet_call;
        quiet.publish = quiet_publish;
        quiet.emit = quiet_emit;
        b->ops = &quiet;
        return b;
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

static void quiet_free(StateStore *s) {
}

static const StateStoreOps quiet_disk = { quiet_read, quiet_write, quiet_free };

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

/* The agent was killed in the middle of the drain: its next start takes it up. */
static const char *take_up(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        AgentRig *r = make_world();
        const char *wrong;

        agent_rig_start(r);
        agent_rig_run(r, CALM_USEC);
        agent_rig_notice(r, LEAD_USEC);
        while (!agent_rig_annotation(r, "vesper.sh/interruption"))
                agent_rig_run(r, 100 * USEC_PER_MSEC);
        agent_rig_run(r, 100 * USEC_PER_MSEC);
        agent_rig_kill(r);
        alloc_fault_arm(fails_at);
        while (agent_rig_try_start(r) < 0) {
                assert_true(alloc_fault_fired());
                assert_true(r->lives < 5);
                run(r, RESTART_USEC);
        }
        run(r, LEAD_USEC);
        *ret_n = alloc_fault_disarm();

        wrong = look(r);
        *ret_log = strdup(strbuf_str(&r->lines));
        agent_rig_free(r);
        return wrong;
}

/* -- the sweep ---------------------------------------------------------------------------------- */

static const char *interrupt_whole(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        return interrupt(WINDOW_WHOLE, fails_at, ret_n, ret_log);
}

static const char *interrupt_end(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        return interrupt(WINDOW_END, fails_at, ret_n, ret_log);
}

static void test_interruption(void **state) {
        alloc_sweep(interrupt_whole, NULL, "a drained node");
}

static void test_end(void **state) {
        alloc_sweep(interrupt_end, NULL, "a drained node");
}

static void test_take_up(void **state) {
        alloc_sweep(take_up, NULL, "a drained node");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_interruption),
                cmocka_unit_test(test_end),
                cmocka_unit_test(test_take_up),
        };

        return cmocka_run_group_tests_name("alloc-agent", tests, NULL, NULL);
}
