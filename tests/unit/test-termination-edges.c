/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "texts.h"

/* What happens seldom to nodes, claims and pools of a coordinator: turns in between, names that come back,
 * clouds that say one thing and then another. */

static const char *phase(CoordinatorRig *r, const char *node) {
        return strempty(fj_string(rig_claim(r, node), "status", "phase", NULL));
}

static char *claim_name(CoordinatorRig *r, const char *node) {
        return MUST(strdup(fj_string(rig_claim(r, node), "metadata", "name", NULL)));
}

static void delete_claim(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *name = claim_name(r, node);

        assert_true(fake_delete(r->cluster, FAKE_NODECLAIMS, NULL, name, -1));
}

static void attach(CoordinatorRig *r, const char *name, const char *node) {
        fake_put(r->cluster, FAKE_VOLUMEATTACHMENTS,
                 fj_parse("{'metadata':{'name':'%s'},'spec':{'attacher':'x','nodeName':'%s','source':"
                          "{'persistentVolumeName':'pv-%s'}},'status':{'attached':true}}",
                          name, node, name));
}

/* -- one node ------------------------------------------------------------------------------------------- */

TEST_CASE(test_pod_comes_while_volumes_are_waited_for) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        attach(r, "a", "n0");
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Volumes");
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 20 });
        rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Draining");
        assert_int_equal(rig_evictions(r, 201), 1);
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "late"));
}

/* The machine is not ended by what a list said long ago: a watch that is silent may hide who came since. */
TEST_CASE(test_pod_comes_unheard) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        size_t lists;

        rig_begin(r, 1, NULL);
        attach(r, "a", "n0");
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 30 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Volumes");
        lists = fake_api_count(r->api, FAKE_LIST, FAKE_PODS, NULL);
        fake_api_mute(r->api, FAKE_PODS, loop_now(r->w.loop) + 10 * USEC_PER_SEC);
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 20 });
        fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
        rig_run(r, 9 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_int_equal(rig_evictions(r, 0), 0); /* its PDB and uid come by the watch */
        assert_string_equal(phase(r, "n0"), "Draining");
        assert_in_range(fake_api_count(r->api, FAKE_LIST, FAKE_PODS, NULL), lists + 2, lists + 12);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "late"));
}

static void on_list_of_pods(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        unsigned *n = userdata;

        if (request->verb == FAKE_LIST && request->resource && request->resource->id == FAKE_PODS) {
                (*n)++;
                ret_fault->status = 500;
        }
}

/* Nobody says whether somebody came: the machine waits, as long as there is no deadline. */
TEST_CASE(test_old_proof_is_not_confirmed) {
        static const struct {
                const char *what, *tgp;
                unsigned n_terminated; /* after a minute */
        } rows[] = {
                { "without a deadline", NULL, 0 },
                { "not beyond it", "70s", 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                unsigned n = 0;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, rows[i].tgp);
                attach(r, "a", "n0");
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, 30 * USEC_PER_SEC);
                assert_string_equal(phase(r, "n0"), "Volumes");
                fake_api_set_fault(r->api, on_list_of_pods, &n);
                fake_remove(r->cluster, FAKE_VOLUMEATTACHMENTS, NULL, "a");
                rig_run(r, USEC_PER_MINUTE);
                assert_in_range(n, 3, 60);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, rows[i].n_terminated);
                assert_false(rig_has_event(r, "n0", "DrainsAgain"));
                fake_api_set_fault(r->api, NULL, NULL);
                assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        }
}

typedef struct SlowLists {
        usec_t late_usec; /* answers to lists of one node's pods come so long after they were true */
        unsigned n;
} SlowLists;

static void on_slow_list(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        SlowLists *s = userdata;

        if (!strstr(request->url, "/pods?") || !strstr(request->url, "spec.nodeName") || strstr(request->url, "watch="))
                return;
        s->n++;
        ret_fault->reply_delay_usec = s->late_usec;
}

/* Where a list of pods takes longer than a proof may be old, the machine ends all the same, and without a deadline. */
TEST_CASE(test_slow_lists) {
        static const struct {
                const char *what;
                unsigned list_sec, turn_sec, within_sec, lists_max;
        } rows[] = {
                { "6 s", 6, 0, 20, 2 },
                { "8 s", 8, 0, 24, 2 },
                { "12 s", 12, 0, 30, 2 },
                { "14 s", 14, 0, 40, 2 },
                { "6 s, and its turn comes later than the proof may be old", 6, 10, 60, 2 },
                { "8 s, likewise", 8, 10, 60, 2 },
                /* Longer than a turn is held: it needs a second one, and is asked again while it waits for that. */
                { "12 s, likewise", 12, 10, 60, 3 },
                { "14 s, and its turn is long in coming", 14, 30, 120, 4 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                SlowLists s = { .late_usec = rows[i].list_sec * USEC_PER_SEC };

                print_message("  %s\n", rows[i].what);
                r->hooks = (HttpInprocHooks){ .on_request = on_slow_list, .userdata = &s };
                rig_begin(r, 1, NULL);
                r->toy.turn_usec = rows[i].turn_sec * USEC_PER_SEC;
                rig_delete_node(r, "n0");
                assert_true(rig_wait_gone(r, "n0", rows[i].within_sec * USEC_PER_SEC));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                assert_in_range(s.n, 1, rows[i].lists_max);
                assert_false(rig_has_event(r, "n0", "TerminationBlocked"));
        }
}

/* A pod that is bound while the list is on its way, and that the watch tells of, is not in that answer. */
TEST_CASE(test_pod_comes_behind_a_slow_list) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        SlowLists s = { .late_usec = 12 * USEC_PER_SEC };

        r->hooks = (HttpInprocHooks){ .on_request = on_slow_list, .userdata = &s };
        rig_begin(r, 1, NULL);
        rig_delete_node(r, "n0");
        rig_run(r, 6 * USEC_PER_SEC);
        assert_int_equal(s.n, 1);
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 20 });
        rig_run(r, 15 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "late"));
}

/* Why a node without pods does not go is said, whether it was drained once or not. */
TEST_CASE(test_unproved_is_told) {
        static const char *const rows[] = { "never", "once" };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                unsigned n = 0;

                print_message("  proved %s\n", rows[i]);
                rig_begin(r, 1, NULL);
                if (i == 1)
                        r->toy.turn_usec = 20 * USEC_PER_SEC;
                else
                        fake_api_set_fault(r->api, on_list_of_pods, &n);
                rig_delete_node(r, "n0");
                rig_run(r, 10 * USEC_PER_SEC);
                fake_api_set_fault(r->api, on_list_of_pods, &n);
                rig_run(r, 40 * USEC_PER_SEC);
                assert_false(rig_has_event(r, "n0", "TerminationBlocked"));
                rig_run(r, 5 * USEC_PER_MINUTE);
                assert_true(rig_event_says(r, "n0", "TerminationBlocked", "DrainUnproved: no pod of the node is in view"));
                assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED), "True");
                assert_string_equal(rig_condition_reason(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED),
                                    "DrainUnproved");
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);

                print_message("    and it goes when the lists come\n");
                r->toy.silent = true;
                fake_api_set_fault(r->api, NULL, NULL);
                rig_run(r, USEC_PER_MINUTE);
                assert_string_equal(rig_condition(rig_node(r, "n0"), CONDITION_TERMINATION_BLOCKED), "False");
        }
}

/* A cloud that refuses is asked again for as long as it takes, and a machine that it does not end is told to
 * once more: not by what a list said before that. */
TEST_CASE(test_retry_looks_again) {
        static const struct {
                const char *what;
                CloudOutcome outcome;
                InstanceState after;
                unsigned silent_sec; /* in which the next terminate is due */
        } rows[] = {
                { "it is not allowed", CLOUD_DENIED, INSTANCE_TERMINATING, 50 },
                { "it cannot say", CLOUD_RETRY, INSTANCE_TERMINATING, 50 },
                { "it takes the order, and nothing comes of it", CLOUD_OK, INSTANCE_PRESENT, 80 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                unsigned n;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                rig_machine(r, "n0")->outcome = rows[i].outcome;
                rig_machine(r, "n0")->after = rows[i].after;
                rig_delete_node(r, "n0");
                rig_run(r, 20 * USEC_PER_SEC); /* backoff: the last one was 5 s ago, or more */
                assert_string_equal(phase(r, "n0"), "Terminating");
                n = rig_machine(r, "n0")->n_terminated;
                assert_in_range(n, 1, 6);
                fake_api_mute(r->api, FAKE_PODS, loop_now(r->w.loop) + rows[i].silent_sec * USEC_PER_SEC);
                fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 20 });
                rig_run(r, (rows[i].silent_sec - 1) * USEC_PER_SEC);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, n);
                assert_string_equal(phase(r, "n0"), "Draining");
                rig_run(r, 10 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), 1);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, n);
                rig_machine(r, "n0")->outcome = CLOUD_OK;
                rig_machine(r, "n0")->after = INSTANCE_TERMINATING;
                assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, n + 1);
                assert_null(fake_get(r->cluster, FAKE_PODS, "default", "late"));
        }
}

/* Nobody can say whether somebody came: it is not asked again, but at T. */
TEST_CASE(test_retry_without_a_look) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        unsigned n = 0;

        rig_begin(r, 1, "5m");
        rig_machine(r, "n0")->outcome = CLOUD_DENIED;
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        fake_api_set_fault(r->api, on_list_of_pods, &n);
        rig_run(r, 4 * USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_in_range(n, 20, 100);
        assert_true(rig_event_says(r, "n0", "TerminationBlocked", "CloudDenied"));
        rig_machine(r, "n0")->outcome = CLOUD_OK;
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 2);
        fake_api_set_fault(r->api, NULL, NULL);
}

/* Many machines end together, and its cloud takes them one after the other: who came while it waited for its turn
 * is seen before it is told to end. */
TEST_CASE(test_turn_comes_late) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        r->toy.turn_usec = 30 * USEC_PER_SEC;
        rig_delete_node(r, "n0");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Terminating");
        fake_api_mute(r->api, FAKE_PODS, loop_now(r->w.loop) + 15 * USEC_PER_SEC);
        fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n0", .stop_sec = 20 });
        rig_run(r, 14 * USEC_PER_SEC);
        assert_int_equal(r->toy.n_turns, 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_string_equal(phase(r, "n0"), "Draining");
        assert_int_equal(rig_turns_held(r), 0); /* nobody waits for it meanwhile */
        rig_run(r, 6 * USEC_PER_SEC);
        assert_int_equal(rig_evictions(r, 201), 1);

        /* One that is heard of ends the wait. */
        rig_run(r, 40 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Terminating");
        fake_add_pod(r->cluster, &(FakePod){ .name = "later", .node = "n0", .stop_sec = 1 });
        rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(rig_evictions(r, 201), 2);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "late"));
}

/* T passes in the line: the machine ends when its turn comes, by nobody's list. */
TEST_CASE(test_deadline_in_the_line) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        unsigned n = 0;

        rig_begin(r, 1, "60s");
        r->toy.turn_usec = 90 * USEC_PER_SEC;
        rig_delete_node(r, "n0");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Terminating");
        fake_api_set_fault(r->api, on_list_of_pods, &n);
        rig_run(r, 60 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
        assert_int_equal(r->toy.n_turns, 1);
        assert_int_equal(n, 0);
        fake_api_set_fault(r->api, NULL, NULL);
}

/* Another Node comes to use the machine: its turn is left to others until that one is gone. */
TEST_CASE(test_shared_in_the_line) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0");

        rig_begin(r, 1, NULL);
        r->toy.turn_usec = 20 * USEC_PER_SEC;
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Terminating");
        fake_add_node(r->cluster, "twin", ZONE, instance, NULL);
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
        assert_in_range(r->toy.n_turns, 1, 2);
        assert_int_equal(rig_turns_held(r), 0);
        assert_true(rig_event_says(r, "n0", "TerminationBlocked", "MachineShared"));
        fake_remove(r->cluster, FAKE_NODES, NULL, "twin");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* Without keys there is no turn: that is told, as if the cloud itself had refused. */
TEST_CASE(test_no_turn) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        r->toy.turn_outcome = CLOUD_DENIED;
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(rig_event_says(r, "n0", "TerminationBlocked", "out of turns"));
        assert_string_equal(rig_condition_reason(rig_node(r, "n0"), "vesper.sh/TerminationBlocked"),
                            "CloudDenied");
        r->toy.turn_outcome = CLOUD_OK;
        assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_MINUTE));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* Of very many nodes "Drained" is told later: not of one that drains again by then. */
TEST_CASE(test_drained_is_taken_back) {
        static const struct {
                const char *what, *phase;
                CloudOutcome outcome;
                bool volume;
        } rows[] = {
                { "a pod comes while volumes are waited for", "Volumes", CLOUD_OK, true },
                { "a pod comes while the cloud says no", "Terminating", CLOUD_DENIED, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 25, NULL);
                rig_machine(r, "n24")->outcome = rows[i].outcome;
                if (rows[i].volume)
                        attach(r, "a", "n24");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n24", .stop_sec = 2 });
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n24");
                rig_run(r, 1500 * MSEC);
                for (unsigned k = 0; k < 24; k++) {
                        _cleanup_free_ char *name = strf("n%u", k);

                        rig_delete_node(r, name);
                }
                rig_run(r, 2500 * MSEC);
                assert_string_equal(phase(r, "n24"), rows[i].phase);
                assert_string_equal(rig_condition(rig_node(r, "n24"), CONDITION_DRAINED), "True");
                assert_string_equal(rig_condition(rig_node(r, "n24"), CONDITION_DRAIN_IN_PROGRESS), "False");
                assert_string_equal(rig_condition(rig_claim(r, "n24"), CLAIM_DRAINED), "True");
                fake_add_pod(r->cluster, &(FakePod){ .name = "late", .node = "n24", .stop_sec = 20 });
                rig_run(r, 10 * USEC_PER_SEC);
                assert_string_equal(phase(r, "n24"), "Draining");
                assert_false(rig_has_event(r, "n24", "Drained"));
                assert_string_equal(rig_condition(rig_node(r, "n24"), CONDITION_DRAINED), "False");
                assert_string_equal(rig_condition(rig_node(r, "n24"), CONDITION_DRAIN_IN_PROGRESS), "True");
                assert_string_equal(rig_condition(rig_claim(r, "n24"), CLAIM_DRAINED), "False");

                print_message("  and once more when it is\n");
                rig_run(r, 13 * USEC_PER_SEC);
                assert_string_equal(phase(r, "n24"), rows[i].phase);
                assert_string_equal(rig_condition(rig_node(r, "n24"), CONDITION_DRAINED), "True");
                assert_string_equal(rig_condition(rig_node(r, "n24"), CONDITION_DRAIN_IN_PROGRESS), "False");
                assert_string_equal(rig_condition(rig_claim(r, "n24"), CLAIM_DRAINED), "True");
                rig_run(r, 5 * USEC_PER_SEC);
                assert_true(rig_has_event(r, "n24", "Drained"));
        }
}

/* -- interruptions ----------------------------------------------------------------------------------------
 */

/* As an agent would that dies right after it. */
static void tell_of_end(CoordinatorRig *r, const char *action, const char *phase_name) {
        char when[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->w.loop), 2 * USEC_PER_MINUTE), when);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'a\\',\\'action\\':"
                   "\\'%s\\',\\'phase\\':\\'%s\\',\\'deadline\\':\\'%s\\'}'}}}",
                   action, phase_name, when);
}

/* Two, one of which opted out; with a budget that lets this one go never. */
static void add_pods(CoordinatorRig *r, bool budget) {
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0" });
        fake_add_pod(r->cluster, &(FakePod){ .name = "job",
                                             .node = "n0",
                                             .app = "job",
                                             .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        if (budget)
                fake_add_pdb(r->cluster, NULL, "job", "job", true, "1");
}

/* Two pods, one of which opted out; its agent dies. */
TEST_CASE(test_interruption_waits_for_nobody) {
        static const struct {
                const char *what, *policy, *action;
                bool deleted;               /* half a minute before */
                bool budget;                /* that allows nothing */
                unsigned n_before, n_after; /* evictions: until it is told, and half a minute later */
        } rows[] = {
                { "told of its end", "Drain.Protected=wait", "terminate", false, false, 0, 2 },
                { "... while it waits", "Drain.Protected=wait", "terminate", true, false, 0, 2 },
                { "... while it drains the others", "Drain.Protected=others", "terminate", true, false, 1,
                  2 },
                { "its machine is to stop", "Drain.Protected=wait", "stop", true, false, 0, 2 },
                { "a budget is respected", "Drain.Protected=wait", "terminate", true, true, 0, 1 },
                { "what does not end the machine", "Drain.Protected=wait", "reboot", true, false, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                r->settings[0] = (char *) (uintptr_t) rows[i].policy;
                rig_begin(r, 1, NULL);
                add_pods(r, rows[i].budget);
                rig_run(r, USEC_PER_SEC);
                if (rows[i].deleted)
                        rig_delete_node(r, "n0");
                rig_run(r, 30 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), rows[i].n_before);
                tell_of_end(r, rows[i].action, "Draining");
                rig_run(r, 30 * USEC_PER_SEC); /* half of it its agent is given */
                assert_int_equal(rig_evictions(r, 201), rows[i].n_after);
                assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
                if (rows[i].n_after == 2)
                        assert_null(rig_node(r, "n0"));
                else
                        assert_non_null(fake_get(r->cluster, FAKE_PODS, "default", "job"));
                if (rows[i].budget) {
                        rig_run(r, 55 * USEC_PER_SEC); /* T - 35 s */
                        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
                        assert_true(rig_wait_gone(r, "n0", 36 * USEC_PER_SEC));
                        assert_int_equal(rig_evictions(r, 201), 1);
                }
        }
}

/* Whoever told of its end takes it back, or a person overrules it: what is left is waited for again. */
TEST_CASE(test_interruption_is_over) {
        static const char *const phases[] = { "Cancelled", "Released" };

        for (size_t i = 0; i < ELEMENTSOF(phases); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", phases[i]);
                rig_begin(r, 1, NULL);
                add_pods(r, true);
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                tell_of_end(r, "terminate", "Draining");
                rig_run(r, 30 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), 1);
                tell_of_end(r, "terminate", phases[i]);
                rig_run(r, USEC_PER_SEC);
                fake_remove(r->cluster, FAKE_PDBS, "default", "job");
                rig_run(r, 5 * USEC_PER_MINUTE);
                assert_int_equal(rig_evictions(r, 201), 1);
                assert_non_null(fake_get(r->cluster, FAKE_PODS, "default", "job"));
                assert_true(rig_event_says(r, "n0", "DrainBlocked", "vesper.sh/do-not-evict"));
                fake_merge(r->cluster, FAKE_PODS, "default", "job",
                           "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null}}}");
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
        }
}

/* -- more of one node -------------------------------------------------------------------------------------
 */

/* What comes from outside saturates: this many seconds are half a second in microseconds modulo 2^64. */
TEST_CASE(test_endless_grace) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        r->settings[0] = (char *) (uintptr_t) "Drain.LoadBalancerWaitSec=30s";
        rig_begin(r, 1, "1h");
        fake_add_pod(
                r->cluster,
                &(FakePod){ .name = "web", .node = "n0", .grace_sec = 18446744073710, .stop_sec = 2 });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC); /* it has begun long ago: nothing is waited for */
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "web"));
}

TEST_CASE(test_load_balancers) {
        static const struct {
                const char *what, *tgp;
                usec_t nothing_for_usec;
                bool evicted;
        } rows[] = {
                { "without a deadline", NULL, 29 * USEC_PER_SEC, true },
                { "with a far one", "1h", 29 * USEC_PER_SEC, true },
                { "with one so near that the wait ends where the pod's grace begins", "40s",
                  9 * USEC_PER_SEC, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                r->settings[0] = (char *) (uintptr_t) "Drain.LoadBalancerWaitSec=30s";
                rig_begin(r, 1, rows[i].tgp);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 2 });
                rig_run(r, USEC_PER_SEC);
                rig_delete_node(r, "n0");
                rig_run(r, rows[i].nothing_for_usec);
                assert_string_equal(phase(r, "n0"), "LoadBalancers");
                assert_int_equal(rig_evictions(r, 0), 0);
                rig_run(r, 2 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 201), rows[i].evicted);
                assert_int_equal(fake_api_count_status(r->api, FAKE_DELETE, FAKE_PODS, NULL, 200),
                                 !rows[i].evicted);
                assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
        }
}

/* What ends it is that there is no machine; the kubelet of a cloud without controller says nothing of it. */
TEST_CASE(test_no_provider_id) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_node(r->cluster, "bare", ZONE, NULL, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "bare", .stop_sec = 2 });
        fake_merge(r->cluster, FAKE_NODES, NULL, "bare",
                   "{'metadata':{'finalizers':['" FINALIZER_TERMINATION "']}}");
        rig_delete_node(r, "bare");
        rig_run(r, USEC_PER_MINUTE);
        assert_null(rig_node(r, "bare"));
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* A new leader that finds T passed and a protected pod there: it is deleted, with the grace of none. */
TEST_CASE(test_leader_after_the_deadline) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, "1m");
        fake_add_pod(r->cluster, &(FakePod){ .name = "job",
                                             .node = "n0",
                                             .stuck = true,
                                             .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "WaitingForProtected");
        rig_kill(r, 0);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 0);
        rig_start(r, 0);
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        assert_int_equal(fake_api_count_status(r->api, FAKE_DELETE, FAKE_PODS, NULL, 200), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

static void take_deletes_late(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        if (request->verb == FAKE_DELETE && request->resource->id == FAKE_PODS)
                fault->delay_usec = 5 * USEC_PER_SEC;
}

/* The protection ends while the delete of the protected pod is not answered. The removal waits for the answer, then for the load
 * balancers, and only then evicts the other pod. */
TEST_CASE(test_nothing_is_evicted_before_the_delete_is_answered) {
        static const char *const unprotects[] = { "an interruption", "a person" };

        for (size_t i = 0; i < ELEMENTSOF(unprotects); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s ends the protection\n", unprotects[i]);
                r->settings[0] = (char *) "Drain.LoadBalancerWaitSec=10s";
                rig_begin(r, 1, "60s");
                fake_add_pod(r->cluster, &(FakePod){ .name = "job",
                                                     .node = "n0",
                                                     .grace_sec = 40,
                                                     .stop_sec = 5,
                                                     .annotations = "{'vesper.sh/do-not-evict':'true'}" });
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .grace_sec = 5, .stop_sec = 1 });
                rig_run(r, 2 * USEC_PER_SEC);
                rig_delete_node(r, "n0");
                fake_api_set_fault(r->api, take_deletes_late, NULL);
                rig_run(r, 22 * USEC_PER_SEC); /* the delete left after 20 s */
                assert_string_equal(phase(r, "n0"), "WaitingForProtected");
                if (i == 0)
                        tell_of_end(r, "terminate", "Planned");
                else
                        fake_merge(r->cluster, FAKE_PODS, "default", "job",
                                   "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null}}}");
                rig_run(r, 2 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 0), 0);
                rig_run(r, 3 * USEC_PER_SEC);
                assert_string_equal(phase(r, "n0"), "LoadBalancers");
                rig_run(r, 6 * USEC_PER_SEC);
                assert_int_equal(rig_evictions(r, 0), 0);
                assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
                assert_int_equal(rig_evictions(r, 0), 1);
                assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_PODS, NULL), 1);
        }
}

TEST_CASE(test_many_pods_left) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, "1m");
        for (int i = 0; i < 12; i++) {
                char name[16];

                snprintf(name, sizeof(name), "p%d", i);
                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = "n0", .stuck = true });
        }
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_MINUTE));
        rig_run(r, USEC_PER_MINUTE);
        assert_true(rig_event_says(r, "n0", "DeadlinePassed", " and 2 more"));
}

/* Its name is another Node's while it is being removed: the machine of the first still ends. */
TEST_CASE(test_name_comes_back) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *uid = NULL;

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
        rig_run(r, USEC_PER_SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Draining");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        fake_add_node(r->cluster, "n0", ZONE, "i-another", POOL);
        uid = MUST(strdup(fj_string(rig_node(r, "n0"), "metadata", "uid", NULL)));
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_null(rig_claim(r, "n0")); /* of the first one's machine */
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_string_equal(fj_string(rig_node(r, "n0"), "metadata", "uid", NULL), uid);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_null(fj_string(rig_node(r, "n0"), "metadata", "deletionTimestamp", NULL));
}

/* The cloud takes the order and knows nothing of the machine: that proves nothing. */
TEST_CASE(test_terminate_of_unknown) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        rig_machine(r, "n0")->state = INSTANCE_UNKNOWN;
        rig_delete_node(r, "n0");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_string_equal(phase(r, "n0"), "Terminating");
        assert_true(rig_event_says(r, "n0", "TerminationBlocked", "CloudUnknown"));
        assert_in_range(rig_machine(r, "n0")->n_described, 3, 20);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0); /* whose it is could not be proved */
        rig_machine(r, "n0")->state = INSTANCE_TERMINATING;
        assert_true(rig_wait_gone(r, "n0", 2 * USEC_PER_MINUTE));
}

/* -- claims --------------------------------------------------------------------------------------------- */

TEST_CASE(test_twins) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *instance = rig_instance("n0"), *claim = NULL;

        rig_begin(r, 1, NULL);
        claim = claim_name(r, "n0");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        fake_add_node(r->cluster, "twin-a", ZONE, instance, NULL);
        fake_add_node(r->cluster, "twin-b", ZONE, instance, NULL);
        delete_claim(r, "n0");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_true(rig_has_event(r, claim, "SeveralNodes"));
        assert_true(rig_has_finalizer(rig_claim(r, "n0")));
        assert_null(fj_string(rig_node(r, "twin-a"), "metadata", "deletionTimestamp", NULL));
        assert_null(fj_string(rig_node(r, "twin-b"), "metadata", "deletionTimestamp", NULL));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);

        print_message("  one of them goes, and the cloud does not know the other by its name\n");
        fake_remove(r->cluster, FAKE_NODES, NULL, "twin-a");
        rig_run(r, USEC_PER_MINUTE);
        assert_non_null(fj_string(rig_node(r, "twin-b"), "metadata", "deletionTimestamp", NULL));
        assert_true(rig_event_says(r, "twin-b", "TerminationBlocked", "IdentityUnproved"));
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);

        print_message("  it does\n");
        assert_return_code(free_and_strdup(&rig_machine(r, "n0")->node, "twin-b"), 0);
        assert_true(rig_wait_gone(r, "n0", 5 * USEC_PER_MINUTE));
        rig_run(r, USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        assert_null(rig_node(r, "twin-b"));
}

/* The finalizer was taken off its Node: before the Node is deleted it is there again. */
TEST_CASE(test_cascade_holds_the_node) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
        rig_run(r, USEC_PER_SEC);
        delete_claim(r, "n0");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'finalizers':null}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_true(rig_has_finalizer(rig_node(r, "n0")));
        assert_non_null(fj_string(rig_node(r, "n0"), "metadata", "deletionTimestamp", NULL));
        assert_true(rig_wait_gone(r, "n0", 20 * USEC_PER_SEC));
        assert_int_equal(rig_evictions(r, 201), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
}

/* Deleted and made anew in one breath: how long its Node is absent counts from there. */
TEST_CASE(test_claim_of_the_same_name) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;
        cJSON *again;

        rig_begin(r, 1, NULL);
        name = claim_name(r, "n0");
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, USEC_PER_MINUTE);
        again = fj_copy(rig_claim(r, "n0"));
        fj_remove(fj_object(again, "metadata"), "uid");
        fake_remove(r->cluster, FAKE_NODECLAIMS, NULL, name);
        fake_put(r->cluster, FAKE_NODECLAIMS, again);
        rig_run(r, 119 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_described, 0);
        rig_run(r, 5 * USEC_PER_SEC);
        assert_in_range(rig_machine(r, "n0")->n_described, 1, 3);
}

typedef struct SlowWrite {
        FakeResourceId id;
        unsigned n;
} SlowWrite;

/* Writes on that kind, but not on its status, are not answered; those of the machine's end, that is. */
static void on_write_of_the_end(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        SlowWrite *w = userdata;

        if (request->verb != FAKE_PATCH || !request->resource || request->resource->id != w->id ||
            request->subresource)
                return;
        w->n++;
        ret_fault->status = 503;
}

static void make_claim_anew(CoordinatorRig *r, const char *name, cJSON *copy) {
        fj_remove(fj_object(copy, "metadata"), "uid");
        fj_remove(fj_object(copy, "metadata"), "deletionTimestamp");
        fj_remove(copy, "status");
        if (fake_get(r->cluster, FAKE_NODECLAIMS, NULL, name))
                fake_remove(r->cluster, FAKE_NODECLAIMS, NULL, name);
        fake_put(r->cluster, FAKE_NODECLAIMS, copy);
}

/* A claim that is applied anew under its name, finalizer and all, between the writes that let the old one
 * and its Node go, is none of theirs: it stays, and nothing is said in it. */
TEST_CASE(test_claim_is_anew_at_the_end) {
        static const struct {
                const char *what;
                FakeResourceId slow;
        } rows[] = {
                { "the claim goes first", FAKE_NODES },
                { "the Node goes first", FAKE_NODECLAIMS },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *name = NULL;
                SlowWrite slow = { .id = rows[i].slow };
                cJSON *copy;

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 1, NULL);
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stop_sec = 5 });
                rig_run(r, USEC_PER_SEC);
                name = claim_name(r, "n0");
                copy = fj_copy(rig_claim(r, "n0"));
                rig_delete_node(r, "n0");
                rig_run(r, 2 * USEC_PER_SEC);
                assert_string_equal(phase(r, "n0"), "Draining");
                fake_api_set_fault(r->api, on_write_of_the_end, &slow);
                rig_run(r, 10 * USEC_PER_SEC);
                assert_true(slow.n > 0);
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
                assert_int_equal(!rig_node(r, "n0"), rows[i].slow == FAKE_NODECLAIMS);
                assert_int_equal(!rig_claim(r, "n0"), rows[i].slow == FAKE_NODES);
                make_claim_anew(r, name, copy);
                rig_run(r, 2 * USEC_PER_SEC);
                fake_api_set_fault(r->api, NULL, NULL);
                rig_run(r, 90 * USEC_PER_SEC);

                assert_null(rig_node(r, "n0"));
                assert_non_null(rig_claim(r, "n0"));
                assert_null(fj_string(rig_claim(r, "n0"), "metadata", "deletionTimestamp", NULL));
                assert_true(rig_has_finalizer(rig_claim(r, "n0")));
                assert_null(fj_get(rig_claim(r, "n0"), "status", NULL));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        }
}

static double removals(CoordinatorRig *r) {
        return rig_metric(rig_leader(r), "vesper_coordinator_terminations");
}

/* Its status, which would name its Node, is never written; and its finalizer goes last. */
static void on_claim_write(const FakeRequest *request, FakeApiFault *fault, void *userdata) {
        const bool *hold = userdata;

        if (request->verb == FAKE_PATCH && streq_ptr(request->plural, "nodeclaims") &&
            (streq_ptr(request->subresource, "status") || *hold))
                fault->status = 500;
}

TEST_CASE(test_claim_without_status_goes_last) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;
        bool hold = false;

        rig_begin(r, 1, NULL);
        name = claim_name(r, "n0");
        fake_api_set_fault(r->api, on_claim_write, &hold);
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, name, "{'status':{'nodeName':null}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_null(fj_string(rig_claim(r, "n0"), "status", "nodeName", NULL));
        hold = true;
        rig_delete_node(r, "n0");
        rig_run(r, 20 * USEC_PER_SEC);
        assert_null(rig_node(r, "n0"));
        assert_true(removals(r) > 0);
        hold = false;
        rig_run(r, 20 * USEC_PER_SEC);
        assert_null(rig_claim(r, "n0"));
        assert_true(removals(r) == 0);
        fake_api_set_fault(r->api, NULL, NULL);
}

/* One leader begins, the claim is torn off and applied anew under its name, and another leader takes over.
 * He knows a claim by its machine: that of the node's goes with it, that of another's stays. */
TEST_CASE(test_claim_is_anew_for_the_next_leader) {
        for (unsigned other = 0; other < 2; other++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *name = NULL;
                cJSON *again;

                print_message("  of %s machine\n", other ? "another" : "the same");
                rig_begin(r, 2, "1h");
                fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
                rig_run(r, USEC_PER_SEC);
                name = claim_name(r, "n0");
                again = fj_copy(rig_claim(r, "n0"));
                rig_delete_node(r, "n0");
                rig_run(r, 5 * USEC_PER_SEC);
                if (other)
                        fj_set_string(fj_object(again, "spec"), "providerID",
                                      rig_machine(r, "n1")->provider_id);
                rig_kill(r, 0);
                make_claim_anew(r, name, again);
                rig_start(r, 1);
                rig_run(r, 30 * USEC_PER_SEC);
                assert_int_equal(fj_get(fake_get(r->cluster, FAKE_NODECLAIMS, NULL, name), "metadata",
                                        "deletionTimestamp", NULL) != NULL,
                                 !other);
                assert_true(rig_is_adopted(r, "n1"));
                if (other)
                        continue;
                fake_remove(r->cluster, FAKE_PODS, "default", "web");
                assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_SEC));
                assert_null(fake_get(r->cluster, FAKE_NODECLAIMS, NULL, name));
                assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        }
}

/* The claim's end is answered before its watch tells of it, and its Node left long ago: nothing is kept of
 * either. */
TEST_CASE(test_claim_goes_last) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        SlowWrite slow = { .id = FAKE_NODECLAIMS };

        rig_begin(r, 1, NULL);
        rig_delete_node(r, "n0");
        fake_api_set_fault(r->api, on_write_of_the_end, &slow);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_null(rig_node(r, "n0"));
        assert_non_null(rig_claim(r, "n0"));
        assert_true(removals(r) == 1);

        fake_api_stall_watches(r->api, loop_now(r->w.loop) + 30 * USEC_PER_SEC);
        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, 25 * USEC_PER_SEC);
        assert_null(rig_claim(r, "n0"));
        assert_true(removals(r) == 1);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(removals(r) == 0);
}

/* The first that is asked for is not shown by the cloud, though its kubelet reports: the next one is asked for. */
TEST_CASE(test_witness_is_not_shown) {
        static const char *const shown[] = { "n1", "n2", "n3" };

        for (size_t i = 0; i < ELEMENTSOF(shown); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *gone = rig_instance("n0");

                print_message("  of the others only %s\n", shown[i]);
                r->use_ec2 = true;
                rig_begin(r, 4, NULL);
                rig_run(r, 10 * USEC_PER_MINUTE);
                fake_ec2_forget(r->ec2, gone);
                for (size_t k = 0; k < ELEMENTSOF(shown); k++) {
                        _cleanup_free_ char *other = rig_instance(shown[k]);

                        if (k != i)
                                fake_ec2_forget(r->ec2, other);
                }
                rig_stop(r, 0);
                rig_start(r, 0); /* its provider has seen nothing yet */
                fake_cluster_set_kubelet(r->cluster, "n0", false);
                rig_run(r, 2 * USEC_PER_MINUTE);
                rig_delete_node(r, "n0");
                assert_true(rig_wait_gone(r, "n0", 3 * USEC_PER_MINUTE));
        }
}

/* A machine that must be there is that of a Node that reports, at this cloud. */
TEST_CASE(test_witness_is_ready) {
        static const char *const expected[] = { "n0", "n2", "n0", "n2" };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        CloudProvider *p;

        rig_begin(r, 3, NULL);
        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_NODE_STATUS, false);
        fake_add_node(r->cluster, "elsewhere", NULL, NULL, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "elsewhere", "{'spec':{'providerID':'gce://elsewhere'}}");
        fake_add_node(r->cluster, "nowhere", NULL, NULL, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1",
                   "{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}");
        rig_run(r, USEC_PER_SEC);
        p = r->coordinators[0]->provider;
        for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                assert_string_equal(cloud_provider_next_witness(p), rig_machine(r, expected[i])->provider_id);

        print_message("  and there may be none\n");
        for (size_t i = 0; i < 2; i++)
                fake_merge(r->cluster, FAKE_NODES, NULL, expected[i],
                           "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}");
        rig_run(r, USEC_PER_SEC);
        assert_null(cloud_provider_next_witness(p));
}

/* It took the order, did nothing, and then refuses. */
TEST_CASE(test_cloud_changes_its_mind) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *claim = NULL;

        rig_begin(r, 1, NULL);
        claim = claim_name(r, "n0");
        rig_machine(r, "n0")->after = INSTANCE_PRESENT;
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        delete_claim(r, "n0");
        rig_run(r, 130 * USEC_PER_SEC);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 1);
        rig_machine(r, "n0")->outcome = CLOUD_DENIED;
        rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(rig_has_event(r, claim, "CloudDenied"));
        assert_true(rig_has_finalizer(rig_claim(r, "n0")));
        rig_machine(r, "n0")->outcome = CLOUD_OK;
        rig_machine(r, "n0")->after = INSTANCE_TERMINATING;
        assert_true(rig_wait_gone(r, "n0", 10 * USEC_PER_MINUTE));
}

/* 200 machines at once, then one a second. */
TEST_CASE(test_rate_of_orphans) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        size_t left;

        rig_begin(r, 205, NULL);
        for (unsigned i = 0; i < 205; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                fake_remove(r->cluster, FAKE_NODES, NULL, name);
                delete_claim(r, name);
        }
        while (fake_count(r->cluster, FAKE_NODECLAIMS) == 205)
                assert_int_equal(virtual_time_step(r->w.time, USEC_INFINITY), 1);
        rig_run(r, 2500 * MSEC);
        left = fake_count(r->cluster, FAKE_NODECLAIMS);
        assert_in_range(left, 1, 4);
        rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 0);
}

/* Conditions that others keep on a claim are said again with ours. */
TEST_CASE(test_others_conditions) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;

        rig_begin(r, 1, NULL);
        name = claim_name(r, "n0");
        fake_merge(
                r->cluster, FAKE_NODECLAIMS, NULL, name,
                "{'status':{'phase':null,'conditions':[{'type':'Audited','status':'True','reason':'Theirs',"
                "'message':'by them','lastTransitionTime':'2026-01-01T00:00:00Z'}]}}");
        rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(phase(r, "n0"), "Adopted");
        assert_string_equal(rig_condition(rig_claim(r, "n0"), "Audited"), "True");
        assert_string_equal(rig_condition_reason(rig_claim(r, "n0"), "Audited"), "Theirs");
        assert_string_equal(rig_condition(rig_claim(r, "n0"), CLAIM_REGISTERED), "True");
}

/* -- pools ---------------------------------------------------------------------------------------------- */

static void on_node_write(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        unsigned *n = userdata;

        if (request->verb == FAKE_PATCH && request->resource && request->resource->id == FAKE_NODES &&
            *n > 0) {
                (*n)--;
                ret_fault->status = 500;
        }
}

/* No pool selects it any more; another pool that is there has no say in it. */
TEST_CASE(test_release_is_tried_again) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        unsigned n = 2;

        rig_begin(r, 1, NULL);
        fake_put(r->cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'gpu'},'spec':{'selector':{'matchLabels':{'gpu':'yes'}}}}"));
        rig_run(r, USEC_PER_SEC);
        fake_api_set_fault(r->api, on_node_write, &n);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'vesper.sh/pool':null}}}");
        rig_run(r, 10 * USEC_PER_SEC);
        fake_api_set_fault(r->api, NULL, NULL);
        assert_int_equal(n, 0);
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        assert_null(rig_claim(r, "n0"));
        assert_int_equal(text_count(strbuf_str(&r->coordinators[0]->said), "was released"), 1);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* A deleted pool waits for a Node that has our finalizer and no claim. */
TEST_CASE(test_pool_and_bare_node) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *name = NULL;

        rig_begin(r, 2, NULL);
        name = claim_name(r, "n1");
        fake_remove(r->cluster, FAKE_NODECLAIMS, NULL, name);
        assert_true(fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1));
        rig_run(r, 10 * USEC_PER_SEC);
        assert_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
        assert_false(rig_has_finalizer(rig_node(r, "n0")));
        assert_false(rig_has_finalizer(rig_node(r, "n1")));
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 0);
        assert_int_equal(rig_machine(r, "n0")->n_terminated + rig_machine(r, "n1")->n_terminated, 0);
}

/* A deleted pool lets go of a claim whose Node left a moment ago, too: its machine is nobody's business. */
TEST_CASE(test_pool_and_claim_without_node) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 2, NULL);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_true(fake_delete(r->cluster, FAKE_NODEPOOLS, NULL, POOL, -1));
        rig_run(r, 10 * USEC_PER_SEC);
        assert_null(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL));
        assert_int_equal(fake_count(r->cluster, FAKE_NODECLAIMS), 0);
        assert_int_equal(rig_machine(r, "n0")->n_terminated, 0);
}

/* -- the process ---------------------------------------------------------------------------------------- */

TEST_CASE(test_nowhere_to_listen) {
        static const char *const settings[] = { "Metrics.Listen=nowhere", "Health.Listen=nowhere" };

        for (size_t i = 0; i < ELEMENTSOF(settings); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                r->settings[0] = (char *) (uintptr_t) settings[i];
                rig_make(r, 0);
                assert_int_equal(rig_try_start(r, 0), -EINVAL);
                assert_null(r->coordinators[0]);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pod_comes_while_volumes_are_waited_for),
                cmocka_unit_test(test_pod_comes_unheard),
                cmocka_unit_test(test_old_proof_is_not_confirmed),
                cmocka_unit_test(test_slow_lists),
                cmocka_unit_test(test_pod_comes_behind_a_slow_list),
                cmocka_unit_test(test_unproved_is_told),
                cmocka_unit_test(test_retry_looks_again),
                cmocka_unit_test(test_retry_without_a_look),
                cmocka_unit_test(test_turn_comes_late),
                cmocka_unit_test(test_deadline_in_the_line),
                cmocka_unit_test(test_shared_in_the_line),
                cmocka_unit_test(test_no_turn),
                cmocka_unit_test(test_drained_is_taken_back),
                cmocka_unit_test(test_load_balancers),
                cmocka_unit_test(test_interruption_waits_for_nobody),
                cmocka_unit_test(test_interruption_is_over),
                cmocka_unit_test(test_endless_grace),
                cmocka_unit_test(test_no_provider_id),
                cmocka_unit_test(test_leader_after_the_deadline),
                cmocka_unit_test(test_nothing_is_evicted_before_the_delete_is_answered),
                cmocka_unit_test(test_many_pods_left),
                cmocka_unit_test(test_name_comes_back),
                cmocka_unit_test(test_terminate_of_unknown),
                cmocka_unit_test(test_twins),
                cmocka_unit_test(test_cascade_holds_the_node),
                cmocka_unit_test(test_claim_of_the_same_name),
                cmocka_unit_test(test_claim_is_anew_at_the_end),
                cmocka_unit_test(test_claim_without_status_goes_last),
                cmocka_unit_test(test_claim_is_anew_for_the_next_leader),
                cmocka_unit_test(test_claim_goes_last),
                cmocka_unit_test(test_witness_is_ready),
                cmocka_unit_test(test_witness_is_not_shown),
                cmocka_unit_test(test_cloud_changes_its_mind),
                cmocka_unit_test(test_rate_of_orphans),
                cmocka_unit_test(test_others_conditions),
                cmocka_unit_test(test_release_is_tried_again),
                cmocka_unit_test(test_pool_and_bare_node),
                cmocka_unit_test(test_pool_and_claim_without_node),
                cmocka_unit_test(test_nowhere_to_listen),
        };
        return cmocka_run_group_tests_name("termination-edges", tests, NULL, NULL);
}
