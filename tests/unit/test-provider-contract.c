/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "instance-orphans.h"
#include "machine-end.h"
#include "provider-contract.h"
#include "string-util.h"

/*
 * The contract of providers: fifteen rules, R1 to R15, each a few cases, and each case played against every
 * provider of the table below. A case that needs an operation or a fault that a provider or its fake lacks
 * is skipped, and the output names it. No rule may be skipped for all providers.
 *
 *      R1   a time-out is unknown, never failed; an accepted end is not taken back
 *      R2   HTTP 503 while an operation is polled is unknown; the poll goes on
 *      R3   one end of a machine under way at a time; a second one is success and makes nothing smaller
 *      R4   the size of a group is read from the cloud, and falls only with a machine that was named
 *      R5   a batch of ends never leaves a group below its minimum
 *      R6   at the minimum a machine can still be replaced
 *      R7   a stopped machine is off: not gone, and not alive
 *      R8   a launch that was called failed may succeed later; it is found, and not made twice
 *      R9   the machine itself is asked whether it exists, not its Node or its group
 *      R10  where nothing was launched, the provider says so
 *      R11  an object that cannot be read is skipped and counted
 *      R12  a launch is found in every zone before it is sent again
 *      R13  without a creation time an instance is young when it is first listed
 *      R14  an end that takes an hour blocks no other
 *      R15  machines in service cost no calls
 */

#define ASKS_MAX 32u
#define MACHINES_MAX 101u

typedef struct World World;

/* One call and its answer. */
typedef struct Ask {
        World *w;
        CloudCall *call;
        bool answered;
        CloudOutcome outcome;
        CloudAnswer answer;
        InstanceState state;
        char provider_id[128]; /* "": none */
        char group[64];        /* "": none */
        int64_t size;
        size_t n_instances, n_unreadable;
} Ask;

struct World {
        VirtualTime *time;
        Env env;
        ProviderUnderTest *p;
        bool lease_lost;
        Ask asks[ASKS_MAX];
        size_t n_asks;
        const char *ids[MACHINES_MAX]; /* providerIDs by number */
        struct {
                MachineEnd *end;
                unsigned seen; /* 1 << MachineState */
        } machines[MACHINES_MAX];
        InstanceLooks *looks; /* of lists; NULL: not used */
};

/* -- the world ------------------------------------------------------------------------------------------ */

static void run_for(World *w, usec_t usec) {
        usec_t limit = usec_add(virtual_time_now(w->time), usec);

        while (virtual_time_step(w->time, limit) > 0)
                ;
}

static void run_machines(World *w, unsigned n) {
        for (unsigned i = 1; i <= n; i++)
                w->ids[i] = w->p->ops->run(w->p, i);
}

static unsigned calls(const World *w, CloudOperation o) {
        return w->p->ops->calls(w->p, o);
}

static void fault(World *w, CloudOperation o, ContractFault f, unsigned n) {
        w->p->ops->fault(w->p, o, f, n);
}

static size_t n_alive(World *w) {
        return w->p->ops->n_alive(w->p);
}

static bool no_instance_is_known(const char *provider_id, void *userdata) {
        return false;
}

static void ignore_orphan(const char *provider_id, usec_t since_usec, void *userdata) {
}

static void on_answer(const CloudResult *result, void *userdata) {
        Ask *a = userdata;

        assert_false(a->answered);
        a->answered = true;
        a->outcome = result->outcome;
        a->answer = cloud_result_answer(result);
        a->state = result->state;
        a->size = result->group.size;
        a->n_instances = result->n_instances;
        a->n_unreadable = result->n_unreadable;
        (void) snprintf(a->provider_id, sizeof(a->provider_id), "%s", strempty(result->provider_id));
        (void) snprintf(a->group, sizeof(a->group), "%s", strempty(result->group.name));
        if (a->w->looks)
                assert_return_code(instance_looks_note(a->w->looks, result->instances, result->n_instances,
                                                       loop_now(a->w->env.loop), no_instance_is_known,
                                                       ignore_orphan, NULL),
                                   0);
}

static bool has_lease(void *userdata) {
        return !((World *) userdata)->lease_lost;
}

/* Starts a call. Machine 0: the operation is about none. */
static Ask *start(World *w, unsigned machine, CloudReservation r) {
        Ask *a = &w->asks[w->n_asks++];
        char node[32];
        CloudMachine m = { .provider_id = w->ids[machine], .node = node };

        assert_true(w->n_asks <= ASKS_MAX);
        a->w = w;
        (void) snprintf(node, sizeof(node), "node-%u", machine);
        r.machine = machine > 0 ? &m : NULL;
        r.op_id = r.op_id ? r.op_id : "op-1";
        r.pool = "workers";
        r.launch.group = machine > 0 ? NULL : w->p->ops->group_name;
        r.guard = (HttpGuard) { has_lease, w };
        r.done = on_answer;
        r.userdata = a;
        assert_return_code(cloud_reserve(w->p->provider, &r, &a->call), 0);
        return a;
}

static Ask *await(World *w, Ask *a) {
        usec_t limit = usec_add(virtual_time_now(w->time), CONTRACT_TIMEOUT_USEC);

        while (!a->answered)
                assert_int_equal(virtual_time_step(w->time, limit), 1);
        return a;
}

static Ask *ask(World *w, unsigned machine, CloudReservation r) {
        return await(w, start(w, machine, r));
}

#define ASK(w, machine, ...) ask(w, machine, (CloudReservation) { .operation = __VA_ARGS__ })
#define START(w, machine, ...) start(w, machine, (CloudReservation) { .operation = __VA_ARGS__ })

/* -- MachineEnd over the provider ----------------------------------------------------------------------- */

static void on_changed(MachineEnd *m, void *userdata) {
        World *w = userdata;

        for (unsigned i = 1; i < MACHINES_MAX; i++)
                if (w->machines[i].end == m)
                        w->machines[i].seen |= 1u << machine_end_state(m);
        machine_end_confirm(m, USEC_INFINITY);
}

static MachineEnd *machine_end(World *w, unsigned n) {
        char node[32], op_id[32];

        (void) snprintf(node, sizeof(node), "node-%u", n);
        (void) snprintf(op_id, sizeof(op_id), "terminate-%u", n);
        assert_return_code(
                machine_end_new(&w->env,
                                &(MachineEndOptions) { .provider = w->p->provider,
                                                       .guard = { has_lease, w },
                                                       .machine = &(CloudMachine) { .provider_id = w->ids[n],
                                                                                    .node = node },
                                                       .op_id = op_id,
                                                       .pool = "workers",
                                                       .changed = on_changed,
                                                       .userdata = w },
                                &w->machines[n].end),
                0);
        return w->machines[n].end;
}

static bool is_over(const MachineEnd *m) {
        return machine_end_state(m) == MACHINE_ENDING || machine_end_state(m) == MACHINE_GONE;
}

/* -- R1 ------------------------------------------------------------------------------------------------- */

static const CloudOperation changes[] = { CLOUD_TERMINATE, CLOUD_REBOOT, CLOUD_LEAVE, CLOUD_END,
                                          CLOUD_LAUNCH };

static void r1_time_out_is_unknown(World *w) {
        run_machines(w, ELEMENTSOF(changes));
        for (unsigned i = 0; i < ELEMENTSOF(changes); i++) {
                Ask *a;

                if (!cloud_provider_has(w->p->provider, changes[i]))
                        continue;
                print_message("  %s\n", cloud_operation_names[changes[i]]);
                fault(w, changes[i], CONTRACT_LOST, 1);
                a = ASK(w, changes[i] == CLOUD_LAUNCH ? 0 : i + 1, changes[i]);
                assert_int_equal(a->answer, CLOUD_ANSWER_UNKNOWN);
                assert_int_equal(calls(w, changes[i]), 1);
        }
}

static void r1_unsent_is_not_unknown(World *w) {
        run_machines(w, 1);
        w->lease_lost = true;
        assert_int_equal(ASK(w, 1, CLOUD_TERMINATE)->answer, CLOUD_ANSWER_LATER);
        assert_int_equal(calls(w, CLOUD_TERMINATE), 0);
        assert_int_equal(n_alive(w), 1);
}

static void r1_lost_end_is_over(World *w) {
        MachineEnd *m;

        run_machines(w, 2);
        m = machine_end(w, 1);
        fault(w, CLOUD_TERMINATE, CONTRACT_LOST, 1);
        machine_end_terminate(m);
        run_for(w, 5 * USEC_PER_MINUTE);
        assert_true(is_over(m));
        assert_int_equal(w->machines[1].seen & (1u << MACHINE_MISSING), 0);
        assert_int_equal(n_alive(w), 1);
}

static void r1_accepted_is_not_taken_back(World *w) {
        MachineEnd *m;

        run_machines(w, 1);
        m = machine_end(w, 1);
        machine_end_terminate(m);
        while (calls(w, CLOUD_TERMINATE) == 0)
                assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
        assert_false(machine_end_hold(m));
        run_for(w, 200 * USEC_PER_MSEC);
        assert_false(machine_end_hold(m));
        run_for(w, USEC_PER_MINUTE);
        assert_true(is_over(m));
}

/* -- R2 ------------------------------------------------------------------------------------------------- */

static void r2_polled_on(World *w) {
        MachineEnd *m;

        run_machines(w, 1);
        m = machine_end(w, 1);
        fault(w, CLOUD_DESCRIBE, CONTRACT_UNAVAILABLE, 3);
        machine_end_terminate(m);
        while (calls(w, CLOUD_DESCRIBE) < 4) {
                assert_false(is_over(m));
                assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
        }
        assert_int_equal(w->machines[1].seen, 1u << MACHINE_UNKNOWN);
        run_for(w, USEC_PER_MINUTE);
        assert_true(is_over(m));
        assert_int_equal(calls(w, CLOUD_TERMINATE), 1);
}

static void r2_describe(World *w) {
        MachineEnd *m;

        run_machines(w, 1);
        m = machine_end(w, 1);
        fault(w, CLOUD_DESCRIBE, CONTRACT_UNAVAILABLE, 1);
        machine_end_describe(m);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(machine_end_state(m), MACHINE_UNKNOWN);
        assert_non_null(machine_end_problem(m, NULL));
        machine_end_describe(m);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(machine_end_state(m), MACHINE_PRESENT);
        assert_null(machine_end_problem(m, NULL));
}

static void r2_find(World *w) {
        (void) ASK(w, 0, CLOUD_LAUNCH);
        fault(w, CLOUD_FIND, CONTRACT_UNAVAILABLE, 1);
        assert_int_not_equal(ASK(w, 0, CLOUD_FIND)->outcome, CLOUD_OK);
        assert_string_not_equal(ASK(w, 0, CLOUD_FIND)->provider_id, "");
}

/* -- R3 ------------------------------------------------------------------------------------------------- */

static void r3_one_at_a_time(World *w) {
        Ask *first, *second, *other;

        run_machines(w, 2);
        fault(w, CLOUD_TERMINATE, CONTRACT_LOST, 1);
        first = START(w, 1, CLOUD_TERMINATE);
        second = START(w, 1, CLOUD_TERMINATE, .op_id = "op-2");
        other = START(w, 2, CLOUD_TERMINATE, .op_id = "op-3");
        run_for(w, 5 * USEC_PER_SEC);
        assert_int_equal(calls(w, CLOUD_TERMINATE), 2); /* of machine 1, and of machine 2 */
        assert_true(other->answered);
        assert_int_equal(await(w, first)->answer, CLOUD_ANSWER_UNKNOWN);
        assert_int_equal(await(w, second)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(calls(w, CLOUD_TERMINATE), 3);
        assert_int_equal(n_alive(w), 0);
}

static void r3_one_decrement(World *w) {
        Ask *first, *second;

        run_machines(w, 3);
        fault(w, CLOUD_END, CONTRACT_LOST, 1);
        first = START(w, 1, CLOUD_END, .shrink = true);
        second = START(w, 1, CLOUD_END, .shrink = true, .op_id = "op-2");
        run_for(w, 5 * USEC_PER_SEC);
        assert_int_equal(calls(w, CLOUD_END), 1);
        assert_int_equal(await(w, first)->answer, CLOUD_ANSWER_UNKNOWN);
        assert_int_equal(await(w, second)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(w->p->ops->group(w->p).size, 2);
        assert_int_equal(n_alive(w), 2);
}

static void r3_already_going(World *w) {
        static const InstanceState states[] = { INSTANCE_TERMINATING, INSTANCE_GONE };

        run_machines(w, 3);
        for (unsigned i = 0; i < ELEMENTSOF(states); i++) {
                w->p->ops->set_state(w->p, i + 1, states[i]);
                assert_int_equal(ASK(w, i + 1, CLOUD_END, .shrink = true)->answer, CLOUD_ANSWER_ACCEPTED);
                assert_int_equal(w->p->ops->group(w->p).size, 3);
        }
        assert_int_equal(n_alive(w), 1);
}

/* -- R4, R5, R6 ----------------------------------------------------------------------------------------- */

static void r4_stale_size(World *w) {
        run_machines(w, 5);
        assert_int_equal(ASK(w, 1, CLOUD_GROUP)->size, 5);
        w->p->ops->set_group(w->p, (ContractGroup) { .size = 8 }); /* by somebody else */
        assert_int_equal(ASK(w, 1, CLOUD_END, .shrink = true)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(w->p->ops->group(w->p).size, 7);
        assert_int_equal(ASK(w, 2, CLOUD_GROUP)->size, 7);
}

static void r4_only_by_name(World *w) {
        run_machines(w, 4);
        assert_int_equal(ASK(w, 1, CLOUD_END, .shrink = false)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(ASK(w, 2, CLOUD_LEAVE, .refill = true)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(w->p->ops->group(w->p).size, 4);
        assert_string_equal(ASK(w, 2, CLOUD_GROUP)->group, "");
        assert_int_equal(ASK(w, 3, CLOUD_LEAVE, .refill = false)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(w->p->ops->group(w->p).size, 3);
        assert_int_equal(ASK(w, 3, CLOUD_LEAVE, .refill = false, .op_id = "op-2")->answer,
                         CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(w->p->ops->group(w->p).size, 3);
        assert_int_equal(n_alive(w), 3); /* a machine that leaves lives on */
}

static void r5_batch(World *w) {
        Ask *asks[3];
        unsigned n_ended = 0;

        run_machines(w, 4);
        w->p->ops->set_group(w->p, (ContractGroup) { .size = 4, .min = 3 });
        for (unsigned i = 0; i < ELEMENTSOF(asks); i++)
                asks[i] = START(w, i + 1, CLOUD_END, .shrink = true);
        for (unsigned i = 0; i < ELEMENTSOF(asks); i++) {
                if (await(w, asks[i])->answer == CLOUD_ANSWER_ACCEPTED)
                        n_ended++;
                else
                        assert_int_equal(asks[i]->answer, CLOUD_ANSWER_AT_MINIMUM);
        }
        assert_int_equal(n_ended, 1);
        assert_int_equal(w->p->ops->group(w->p).size, 3);
        assert_int_equal(n_alive(w), 3);
}

static void r5_leave(World *w) {
        Ask *a;

        run_machines(w, 2);
        w->p->ops->set_group(w->p, (ContractGroup) { .size = 2, .min = 2 });
        a = ASK(w, 1, CLOUD_LEAVE, .refill = false);
        assert_int_equal(a->outcome, CLOUD_AT_MINIMUM);
        assert_int_equal(a->answer, CLOUD_ANSWER_AT_MINIMUM);
        assert_string_not_equal(ASK(w, 1, CLOUD_GROUP)->group, "");
        assert_int_equal(w->p->ops->group(w->p).size, 2);
        w->p->ops->set_group(w->p, (ContractGroup) { .size = 2, .min = 1 }); /* the minimum is read anew */
        assert_int_equal(ASK(w, 1, CLOUD_LEAVE, .refill = false)->answer, CLOUD_ANSWER_ACCEPTED);
}

static void r6_replaced_at_minimum(World *w) {
        run_machines(w, 2);
        w->p->ops->set_group(w->p, (ContractGroup) { .size = 2, .min = 2 });
        assert_int_equal(ASK(w, 1, CLOUD_END, .shrink = false)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(w->p->ops->group(w->p).size, 2);
        assert_int_equal(n_alive(w), 1);
}

/* -- R7 ------------------------------------------------------------------------------------------------- */

static void r7_off(World *w) {
        MachineEnd *m;

        run_machines(w, 1);
        w->p->ops->set_state(w->p, 1, INSTANCE_OFF);
        assert_int_equal(ASK(w, 1, CLOUD_DESCRIBE)->state, INSTANCE_OFF);
        m = machine_end(w, 1);
        machine_end_describe(m);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(machine_end_state(m), MACHINE_PRESENT);
        assert_true(machine_end_is_off(m));
        w->p->ops->set_state(w->p, 1, INSTANCE_PRESENT);
        machine_end_describe(m);
        run_for(w, USEC_PER_MINUTE);
        assert_false(machine_end_is_off(m));
}

static void r7_off_can_be_ended(World *w) {
        MachineEnd *m;

        run_machines(w, 1);
        w->p->ops->set_state(w->p, 1, INSTANCE_OFF);
        m = machine_end(w, 1);
        machine_end_terminate(m);
        run_for(w, USEC_PER_MINUTE);
        assert_true(is_over(m));
        assert_int_equal(n_alive(w), 0);
}

/* -- R8, R10, R12 --------------------------------------------------------------------------------------- */

/* Returns the providerID of the machine that the launch has made, after a minute; "": none. */
static const char *found(World *w, const char *op_id) {
        Ask *a;

        run_for(w, USEC_PER_MINUTE);
        a = ASK(w, 0, CLOUD_FIND, .op_id = op_id);
        assert_int_equal(a->outcome, CLOUD_OK);
        return a->provider_id;
}

static void r8_succeeds_later(World *w) {
        fault(w, CLOUD_LAUNCH, CONTRACT_LATE, 1);
        assert_int_equal(ASK(w, 0, CLOUD_LAUNCH)->answer, CLOUD_ANSWER_UNKNOWN);
        assert_string_equal(found(w, "op-1"), "");
        (void) ASK(w, 0, CLOUD_LAUNCH); /* sent again before the machine can be seen */
        run_for(w, CONTRACT_LATE_USEC);
        assert_string_not_equal(found(w, "op-1"), "");
        assert_int_equal(n_alive(w), 1);
}

static void r8_identical_launch(World *w) {
        Ask *first = START(w, 0, CLOUD_LAUNCH), *second = START(w, 0, CLOUD_LAUNCH);

        assert_int_equal(await(w, first)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_int_equal(await(w, second)->answer, CLOUD_ANSWER_ACCEPTED);
        assert_string_not_equal(found(w, "op-1"), "");
        assert_int_equal(n_alive(w), 1);
        assert_int_equal(ASK(w, 0, CLOUD_LAUNCH, .op_id = "op-2")->answer, CLOUD_ANSWER_ACCEPTED);
        assert_string_not_equal(found(w, "op-2"), found(w, "op-1"));
        assert_int_equal(n_alive(w), 2);
}

static void r8_no_capacity(World *w) {
        Ask *a;

        fault(w, CLOUD_LAUNCH, CONTRACT_NO_CAPACITY, 1);
        a = ASK(w, 0, CLOUD_LAUNCH);
        assert_int_equal(a->outcome, CLOUD_NO_CAPACITY);
        assert_int_equal(a->answer, CLOUD_ANSWER_NO_CAPACITY);
        assert_string_equal(a->provider_id, "");
        assert_int_equal(n_alive(w), 0);
        assert_int_equal(ASK(w, 0, CLOUD_LAUNCH)->answer, CLOUD_ANSWER_ACCEPTED);
}

static void r10_nothing_launched(World *w) {
        (void) ASK(w, 0, CLOUD_LAUNCH, .op_id = "of-another");
        assert_string_equal(found(w, "op-1"), "");
}

static void r12_found_before_sent_again(World *w) {
        const char *zone = w->p->ops->full_zone, *id;

        fault(w, CLOUD_LAUNCH, CONTRACT_LOST, 1);
        assert_int_equal(ASK(w, 0, CLOUD_LAUNCH, .launch.zone = zone)->answer, CLOUD_ANSWER_UNKNOWN);
        id = found(w, "op-1");
        assert_string_not_equal(id, "");
        assert_null(strstr(id, zone));
        assert_int_equal(calls(w, CLOUD_LAUNCH), 1);
        assert_int_equal(n_alive(w), 1);
}

/* -- R9 ------------------------------------------------------------------------------------------------- */

static void r9_machine_without_wrapper(World *w) {
        MachineEnd *m;

        run_machines(w, 2);
        w->p->ops->set_state(w->p, 1, INSTANCE_GONE);
        if (cloud_provider_has(w->p->provider, CLOUD_GROUP)) /* which still counts it */
                assert_string_not_equal(ASK(w, 1, CLOUD_GROUP)->group, "");
        m = machine_end(w, 1);
        machine_end_describe(m);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(machine_end_state(m), MACHINE_GONE);
        assert_int_equal(n_alive(w), 1);
}

/* -- R11, R13 ------------------------------------------------------------------------------------------- */

static void r11_poisoned(World *w) {
        Ask *clean, *poisoned;

        run_machines(w, 3);
        clean = ASK(w, 0, CLOUD_LIST);
        fault(w, CLOUD_LIST, CONTRACT_POISONED, 1);
        assert_return_code(instance_looks_new(&w->looks), 0);
        poisoned = ASK(w, 0, CLOUD_LIST);
        assert_int_equal(poisoned->outcome, CLOUD_OK);
        assert_int_equal(poisoned->n_unreadable, 2);
        assert_int_equal(poisoned->n_instances,
                         clean->n_instances + 1); /* the one whose state alone cannot be read */
        run_for(w, INSTANCE_ORPHAN_USEC);
        assert_int_equal(ASK(w, 0, CLOUD_LIST)->n_unreadable, 0);
        assert_int_equal(instance_looks_orphans(w->looks), 3); /* seen in both lists */
}

/* No list of a provider has creation times. An instance counts from the first list that has it, which is
 * never before its creation: INSTANCE_ORPHAN_USEC, longer than a machine takes from its creation to its
 * Node, holds from there. */
static void r13_no_creation_time(World *w) {
        static const struct {
                usec_t after_usec;
                size_t n_orphans;
        } lists[] = { { 0, 0 }, { INSTANCE_ORPHAN_USEC - USEC_PER_MINUTE, 0 }, { USEC_PER_MINUTE, 1 } };

        assert_return_code(instance_looks_new(&w->looks), 0);
        run_for(w, USEC_PER_DAY);
        run_machines(w, 1);
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                run_for(w, lists[i].after_usec);
                (void) ASK(w, 0, CLOUD_LIST);
                assert_int_equal(instance_looks_orphans(w->looks), lists[i].n_orphans);
        }
}

/* -- R14, R15 ------------------------------------------------------------------------------------------- */

#define N_GROUP 20u

static unsigned n_over(const World *w) {
        unsigned n = 0;

        for (unsigned i = 1; i < MACHINES_MAX; i++)
                n += w->machines[i].end && is_over(w->machines[i].end);
        return n;
}

static void r14_hour(World *w) {
        run_machines(w, N_GROUP);
        w->p->ops->hold_end(w->p, 1, true);
        for (unsigned i = 1; i <= N_GROUP; i++)
                machine_end_terminate(machine_end(w, i));
        run_for(w, 10 * USEC_PER_SEC); /* sooner than any provider gives up its wait for machine 1 */
        assert_int_equal(n_over(w), N_GROUP - 1);
        run_for(w, USEC_PER_HOUR);
        assert_false(is_over(w->machines[1].end));
        assert_int_equal(n_alive(w), 1);
        w->p->ops->hold_end(w->p, 1, false);
        run_for(w, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_over(w), N_GROUP);
}

static void r15_steady_state(World *w) {
        unsigned n_described;

        run_machines(w, 100);
        for (unsigned i = 1; i <= 100; i++)
                machine_end_describe(machine_end(w, i));
        run_for(w, USEC_PER_MINUTE);
        n_described = calls(w, CLOUD_DESCRIBE);
        assert_in_range(n_described, 1, 100); /* at most one for each */
        for (unsigned i = 1; i <= 100; i++)
                assert_int_equal(machine_end_state(w->machines[i].end), MACHINE_PRESENT);
        run_for(w, USEC_PER_HOUR);
        assert_int_equal(calls(w, CLOUD_DESCRIBE), n_described);
        for (CloudOperation o = CLOUD_TERMINATE; o < _CLOUD_OPERATION_MAX; o++)
                assert_int_equal(calls(w, o), 0);
}

/* A leader with 100 nodes in service, whose provider proves identities (ec2) or lists its instances (exec).
 * Each machine is described once at most, for its identity. */
TEST_CASE(test_r15_coordinator) {
        for (unsigned is_exec = 0; is_exec < 2; is_exec++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                unsigned n_described = 0, n_listed;
                char name[32];

                r->toy.is_exec = r->toy.lists = is_exec;
                r->toy.list = (CloudResult) { .outcome = CLOUD_OK };
                fake_add_nodepool(r->cluster, POOL, NULL, is_exec ? "exec" : "ec2");
                for (unsigned i = 0; i < 100; i++) {
                        (void) snprintf(name, sizeof(name), "n%u", i);
                        rig_add_node(r, name);
                }
                rig_start(r, 0);
                rig_run(r, 5 * USEC_PER_MINUTE);
                n_listed = r->toy.n_listed;
                rig_run(r, USEC_PER_HOUR);
                for (unsigned i = 0; i < 100; i++) {
                        (void) snprintf(name, sizeof(name), "n%u", i);
                        assert_true(rig_is_adopted(r, name));
                        n_described += rig_machine(r, name)->n_described;
                }
                assert_int_equal(n_described, is_exec ? 0 : 100);
                assert_in_range(r->toy.n_listed - n_listed, is_exec ? 10 : 0, is_exec ? 14 : 0);
        }
}

/* -- the table ------------------------------------------------------------------------------------------ */

#define HAS(o) (1u << CLOUD_##o)
#define PLAYS(f) (1u << CONTRACT_##f)

/* A name begins with its rule. */
static const struct Case {
        const char *name;
        unsigned operations, faults;
        void (*play)(World *w);
} cases[] = {
        { "R1: a time-out after an accepted change is unknown, never failed", HAS(TERMINATE), PLAYS(LOST),
          r1_time_out_is_unknown },
        { "R1: a change that was not sent is not unknown", HAS(TERMINATE), 0, r1_unsent_is_not_unknown },
        { "R1: an end whose answer was lost is over", HAS(TERMINATE), PLAYS(LOST), r1_lost_end_is_over },
        { "R1: an accepted end is not taken back", HAS(TERMINATE), 0, r1_accepted_is_not_taken_back },
        { "R2: a 503 while an end is awaited is unknown, and polled on", HAS(TERMINATE), PLAYS(UNAVAILABLE),
          r2_polled_on },
        { "R2: a 503 of describe is unknown", HAS(DESCRIBE), PLAYS(UNAVAILABLE), r2_describe },
        { "R2: a 503 of find does not say that there is none", HAS(LAUNCH) | HAS(FIND), PLAYS(UNAVAILABLE),
          r2_find },
        { "R3: of two ends of one machine one is under way at a time", HAS(TERMINATE), PLAYS(LOST),
          r3_one_at_a_time },
        { "R3: a second end is success without another decrement", HAS(END), PLAYS(LOST), r3_one_decrement },
        { "R3: a machine that already goes makes nothing smaller", HAS(END), 0, r3_already_going },
        { "R4: a size that somebody else has changed is not written over", HAS(END) | HAS(GROUP), 0,
          r4_stale_size },
        { "R4: a group becomes smaller only with a machine that was named",
          HAS(END) | HAS(LEAVE) | HAS(GROUP), 0, r4_only_by_name },
        { "R5: a batch of ends stops at the minimum", HAS(END), 0, r5_batch },
        { "R5: a leave at the minimum changes nothing", HAS(LEAVE) | HAS(GROUP), 0, r5_leave },
        { "R6: at the minimum a machine is replaced", HAS(END), 0, r6_replaced_at_minimum },
        { "R7: a stopped machine is off, not gone", HAS(DESCRIBE), 0, r7_off },
        { "R7: a stopped machine can be ended", HAS(TERMINATE), 0, r7_off_can_be_ended },
        { "R8: a launch that was called failed succeeds later", HAS(LAUNCH) | HAS(FIND), PLAYS(LATE),
          r8_succeeds_later },
        { "R8: the identical launch makes no second machine", HAS(LAUNCH) | HAS(FIND), 0,
          r8_identical_launch },
        { "R8: without capacity nothing is launched", HAS(LAUNCH), PLAYS(NO_CAPACITY), r8_no_capacity },
        { "R9: a machine that is gone is gone while its Node and group have it", HAS(DESCRIBE), 0,
          r9_machine_without_wrapper },
        { "R10: nothing was launched: find says none", HAS(LAUNCH) | HAS(FIND), 0, r10_nothing_launched },
        { "R11: a poisoned object in a list is skipped and counted", HAS(LIST), PLAYS(POISONED),
          r11_poisoned },
        { "R12: a launch is found in every zone before it is sent again", HAS(LAUNCH) | HAS(FIND),
          PLAYS(LOST), r12_found_before_sent_again },
        { "R13: without a creation time an instance is young when first listed", HAS(LIST), 0,
          r13_no_creation_time },
        { "R14: an end that takes an hour blocks no other", HAS(TERMINATE), 0, r14_hour },
        { "R15: 100 machines in service cost no calls", HAS(DESCRIBE), 0, r15_steady_state },
};

static const ProviderUnderTestOps *const providers[] = { &contract_ec2, &contract_exec };

#define N_RULES 15u

/* Providers for which a case of the rule was played. */
static unsigned n_played[N_RULES + 1];

typedef struct Played {
        const struct Case *c;
        const ProviderUnderTestOps *ops;
        char name[128];
} Played;

static Played played[ELEMENTSOF(cases) * ELEMENTSOF(providers)];

static void world_init(World *w, const ProviderUnderTestOps *ops) {
        *w = (World) { 0 };
        assert_return_code(virtual_time_new(UINT64_C(1790000000) * USEC_PER_SEC, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->env.loop), 0);
        assert_return_code(random_new(1, &w->env.random), 0);
        w->p = ops->new(&w->env);
}

static void world_done(World *w) {
        for (size_t i = 0; i < w->n_asks; i++)
                cloud_call_free(w->asks[i].call);
        for (unsigned i = 0; i < MACHINES_MAX; i++)
                machine_end_free(w->machines[i].end);
        instance_looks_free(w->looks);
        w->p->ops->free(w->p);
        random_free(w->env.random);
        loop_free(w->env.loop);
        virtual_time_free(w->time);
}

/* Returns what the case needs and the provider, or its fake, lacks; NULL: nothing. */
static const char *lacks(const Played *p, const CloudProvider *provider) {
        for (CloudOperation o = 0; o < _CLOUD_OPERATION_MAX; o++)
                if ((p->c->operations & (1u << o)) && !cloud_provider_has(provider, o))
                        return cloud_operation_names[o];
        return (p->c->faults & ~p->ops->faults) != 0 ? "a fault of the fake" : NULL;
}

TEST_CASE(test_played) {
        const Played *p = *state;
        const char *lacking;
        World w;

        world_init(&w, p->ops);
        lacking = lacks(p, w.p->provider);
        if (!lacking) {
                n_played[atoi(p->c->name + 1)]++;
                p->c->play(&w);
        }
        world_done(&w);
        if (lacking) {
                print_message("  skipped: provider %s lacks %s\n", p->ops->name, lacking);
                skip();
        }
}

TEST_CASE(test_every_rule_is_played) {
        for (unsigned i = 1; i <= N_RULES; i++)
                if (n_played[i] == 0)
                        fail_msg("R%u was played for no provider", i);
}

int main(void) {
        struct CMUnitTest tests[ELEMENTSOF(played) + 2];
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(providers); i++)
                for (size_t k = 0; k < ELEMENTSOF(cases); k++, n++) {
                        played[n] = (Played) { .c = &cases[k], .ops = providers[i] };
                        (void) snprintf(played[n].name, sizeof(played[n].name), "%s (%s)", cases[k].name,
                                        providers[i]->name);
                        tests[n] = (struct CMUnitTest) { .name = played[n].name,
                                                         .test_func = test_played,
                                                         .initial_state = &played[n] };
                }
        tests[n++] = (struct CMUnitTest) {
                .name = "R15: a coordinator asks nothing about 100 machines in service",
                .test_func = test_r15_coordinator
        };
        tests[n] = (struct CMUnitTest) cmocka_unit_test(test_every_rule_is_played);
        return cmocka_run_group_tests_name("provider-contract", tests, NULL, NULL);
}
