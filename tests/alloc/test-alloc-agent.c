/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "agent-rig.h"
#include "alloc-sweep.h"
#include "cmocka-test.h"
#include "http-inproc.h"
#include "notice-ec2.h"
#include "string-util.h"

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

/* -- a notice that waits for its proof ---------------------------------------------------------- */

/* A source of EC2 alone, that is shown a notice by a token whose server has to prove first who it is. */
typedef struct Proof {
        AgentRig *rig;
        size_t fails_at, n_notice_gets, n_looks;
        bool expected; /* from now on; the answers of before count nothing */
        NoticePollResult look;
        size_t n;
} Proof;

static void on_proof_metadata(HttpExchange *x, void *userdata) {
        Proof *p = userdata;

        fake_imds_handle(x, p->rig->imds);
        /* Refused first, by the old token. */
        if (p->expected && streq(x->path, "/latest/meta-data/spot/instance-action") && ++p->n_notice_gets == 2)
                alloc_fault_arm(p->fails_at);
}

static void on_proof_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        Proof *p = userdata;

        if (!p->expected || p->n_looks++ > 0 || !streq(look->feed, "spot/instance-action"))
                return;
        p->look = look->result;
        p->n = alloc_fault_disarm();
}

static void pass(const Proof *p, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(p->rig->world.time), usec);

        while (virtual_time_step(p->rig->world.time, until) > 0)
                ;
}

/* Is the notice given within that same look, without the fails_at-th allocation from its arrival on? */
static bool prove(size_t fails_at, size_t *ret_n) {
        Proof p = { .rig = agent_rig_new(), .fails_at = fails_at };
        Env env = { .boot_id = "boot-1", .version = "0" };
        NoticeSource *source;

        assert_return_code(loop_new_virtual(p.rig->world.time, &env.loop), 0);
        assert_return_code(random_new(1, &env.random), 0);
        assert_return_code(http_inproc_new(env.loop, NULL, NULL, &env.transport), 0);
        assert_return_code(http_inproc_route(env.transport, AGENT_METADATA_ENDPOINT, on_proof_metadata, &p), 0);
        assert_return_code(notice_ec2_new(&env, &(NoticeEc2Options){ .endpoint = AGENT_METADATA_ENDPOINT, .poll_usec = 2 * USEC_PER_SEC },
                                          on_proof_look, &p, &source), 0);
        source->ops->start(source);
        pass(&p, CALM_USEC);
        fake_imds_revoke(p.rig->imds);
        agent_rig_notice(p.rig, LEAD_USEC);
        p.expected = true;
        while (p.n_looks == 0)
                pass(&p, 100 * USEC_PER_MSEC);
        *ret_n = p.n;
        notice_source_free(source);
        http_transport_free(env.transport);
        random_free(env.random);
        loop_free(env.loop);
        agent_rig_free(p.rig);
        return p.look == NOTICE_POLL_NOTICE;
}

/* Until it has arrived, and once it is read, it may be lost for want of memory; not by anything that its proof asks for. */
TEST_CASE(test_proof) {
        size_t n, first = 0, last = 0, n_given = 0, unused;

        assert_true(prove(0, &n));
        for (size_t i = 1; i <= n; i++) {
                if (!prove(i, &unused))
                        continue;
                first = first ? first : i;
                last = i;
                n_given++;
        }
        print_message("of %zu allocations %zu to %zu are its proof's\n", n, first, last);
        assert_true(n_given > 5);
        assert_int_equal(n_given, last - first + 1);
}

/* -- the sweep ---------------------------------------------------------------------------------- */

static const char *interrupt_whole(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        return interrupt(WINDOW_WHOLE, fails_at, ret_n, ret_log);
}

static const char *interrupt_end(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        return interrupt(WINDOW_END, fails_at, ret_n, ret_log);
}

TEST_CASE(test_interruption) {
        alloc_sweep(interrupt_whole, NULL, "a drained node");
}

TEST_CASE(test_end) {
        alloc_sweep(interrupt_end, NULL, "a drained node");
}

TEST_CASE(test_take_up) {
        alloc_sweep(take_up, NULL, "a drained node");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_interruption),
                cmocka_unit_test(test_end),
                cmocka_unit_test(test_take_up),
                cmocka_unit_test(test_proof),
        };

        return cmocka_run_group_tests_name("alloc-agent", tests, NULL, NULL);
}
