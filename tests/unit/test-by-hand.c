/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "agent-rig.h"
#include "cmocka-test.h"
#include "strv.h"

/* What people on a machine ask its agent for, beside each other, beside notices, and through crashes. */

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC
#define REQUEST "vesper.sh/shutdown-request"
#define GRANTED "vesper.sh/shutdown-granted"
#define INTERRUPTION "vesper.sh/interruption"

static void run(AgentRig *r, usec_t usec) {
        usec_t until = virtual_time_now(r->world.time) + usec;

        while (agent_rig_run(r, until - virtual_time_now(r->world.time)))
                ;
}

static AgentRig *running_rig(unsigned n_pods) {
        AgentRig *r = agent_rig_new();

        fake_power_set_limits(r->power, &(FakePowerLimits){ 600 * S, 30 * USEC_PER_MINUTE, 90 * S });
        agent_rig_add_pods(r, "web", n_pods);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_true(r->ready);
        return r;
}

static void call(AgentRig *r, const char *method) {
        assert_int_equal(fake_power_call_unit(r->power, method), 0);
}

static void assert_property(AgentRig *r, const char *property, const char *expected) {
        char *text = fake_power_get_unit(r->power, property);

        assert_string_equal(text, expected);
        free(text);
}

static void assert_states(AgentRig *r, const char *drain, const char *reboot) {
        assert_property(r, "DrainState", drain);
        assert_property(r, "RebootState", reboot);
}

static bool annotation_has(AgentRig *r, const char *part) {
        const char *text = agent_rig_annotation(r, INTERRUPTION);

        return text && strstr(text, part);
}

static void assert_open(AgentRig *r) {
        assert_false(agent_rig_unschedulable(r));
        assert_null(agent_rig_annotation(r, INTERRUPTION));
}

static void grant(AgentRig *r, int in_sec) {
        const char *text = agent_rig_annotation(r, REQUEST);
        cJSON *request = text ? cJSON_Parse(text) : NULL;
        char until[RFC3339_MAX];

        assert_non_null(request);
        rfc3339_format(loop_wall(r->world.loop) + (usec_t) in_sec * S, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'" GRANTED "':'{\\\"id\\\":\\\"%s\\\",\\\"until\\\":\\\"%s\\\"}'}}}",
                   fj_string(request, "id", NULL), until);
        cJSON_Delete(request);
}

static void protect(AgentRig *r, const char *pod, const char *value) {
        fake_merge(r->cluster, FAKE_PODS, "default", pod, "{'metadata':{'annotations':{'vesper.sh/do-not-evict':%s}}}",
                   value);
}

static size_t n_going(AgentRig *r) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, r->cluster, FAKE_PODS, "default")
                n += fj_get(pod, "metadata", "deletionTimestamp", NULL) != NULL;
        return n;
}

static void assert_untouched(AgentRig *r, size_t n_pods) {
        assert_int_equal(agent_rig_n_pods(r), n_pods);
        assert_int_equal(n_going(r), 0);
}

/* -- one beside the other ----------------------------------------------------------------------- */

/* Each is taken back by its own verb. The node stays out of service for as long as one of them needs it: a drain
 * does, and a reboot that was granted and waits for a pod; one that is only asked for does not. */
TEST_CASE(test_each_undoes_its_own) {
        static const struct {
                const char *what;
                bool drain_first, held;
                const char *take_back[2];
                bool closed[2]; /* the node, after each */
        } rows[] = {
                { "the reboot, which was not granted, then the drain", true, false, { "CancelReboot", "CancelDrain" },
                  { true, false } },
                { "the drain, then a reboot that was not granted", true, false, { "CancelDrain", "CancelReboot" },
                  { false, false } },
                { "a reboot that was granted, then the drain", true, true, { "CancelReboot", "CancelDrain" },
                  { true, false } },
                { "the drain, then a reboot that was granted", true, true, { "CancelDrain", "CancelReboot" },
                  { true, false } },
                { "the same, the reboot was first", false, true, { "CancelDrain", "CancelReboot" }, { true, false } },
                { "the reboot, which was first, then the drain", false, true, { "CancelReboot", "CancelDrain" },
                  { true, false } },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                const char *requested = rows[i].held ? "Held" : "Requested";

                print_message("%s\n", rows[i].what);
                if (rows[i].held)
                        protect(r, "web-0", "'true'");
                if (rows[i].drain_first) {
                        call(r, "Drain");
                        run(r, 50 * S);
                }
                call(r, "RequestReboot");
                run(r, 10 * S);
                if (rows[i].held) {
                        grant(r, 2700);
                        run(r, 5 * S);
                }
                if (!rows[i].drain_first) {
                        call(r, "Drain");
                        run(r, 50 * S);
                }
                assert_states(r, rows[i].held ? "Draining" : "Drained", requested);
                for (unsigned k = 0; k < 2; k++) {
                        bool reboot_gone = k == 1 || streq(rows[i].take_back[0], "CancelReboot"),
                             drain_gone = k == 1 || !reboot_gone;

                        call(r, rows[i].take_back[k]);
                        for (unsigned step = 0; step < 50; step++) { /* no moment in between */
                                run(r, 100 * MS);
                                if (rows[i].closed[k])
                                        assert_true(agent_rig_unschedulable(r));
                        }
                        if (!rows[i].closed[k])
                                assert_open(r);
                        assert_states(r, drain_gone ? "None" : rows[i].held ? "Draining" : "Drained",
                                      reboot_gone ? "None" : requested);
                        assert_int_equal(agent_rig_annotation(r, REQUEST) == NULL, reboot_gone);
                        assert_int_equal(annotation_has(r, "\"byHand\":\"drain\""), !drain_gone);
                }
                assert_int_equal(agent_rig_n_pods(r), rows[i].held ? 3 : 0);
        }
}

/* What nobody has asked for is taken back without harm; what the machine has on its schedule is not for this verb. */
TEST_CASE(test_nothing_to_undo) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(1);

        call(r, "CancelDrain");
        call(r, "CancelReboot");
        assert_states(r, "None", "None");
        assert_property(r, "DrainReason", "");
        assert_property(r, "RebootReason", "");
        fake_power_schedule(r->power, "reboot", loop_wall(r->world.loop) + 300 * S);
        run(r, 40 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        assert_property(r, "RebootState", "None");
        call(r, "CancelReboot");
        run(r, 5 * S);
        assert_non_null(agent_rig_annotation(r, REQUEST));

        print_message("asked for at once, and taken back: the schedule asks for its own again\n");
        call(r, "RequestReboot");
        run(r, 5 * S);
        assert_property(r, "RebootState", "Requested");
        call(r, "CancelReboot");
        run(r, 10 * S);
        assert_property(r, "RebootState", "None");
        assert_property(r, "State", "RebootRequested");
        assert_non_null(agent_rig_annotation(r, REQUEST));
}

/* Stopped and started again at once: the marks of the first are still being taken off. */
TEST_CASE(test_again_at_once) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        call(r, "Drain");
        run(r, 60 * S);
        assert_states(r, "Drained", "None");
        call(r, "CancelDrain");
        call(r, "Drain");
        assert_states(r, "Draining", "None");
        run(r, 60 * S);
        assert_states(r, "Drained", "None");
        assert_true(agent_rig_unschedulable(r));
        agent_rig_kill(r);
        agent_rig_start(r);
        run(r, 5 * S);
        assert_states(r, "Drained", "None");
}

/* -- beside notices ----------------------------------------------------------------------------- */

/* A drain by hand and a notice, whoever was first: taking the drain back leaves the notice its drain, and when the
 * notice is over the drain stays. Also for an agent that begins anew in between. */
TEST_CASE(test_beside_a_notice) {
        for (unsigned i = 0; i < 8; i++) {
                bool notice_first = i & 1, take_back = i & 2, crash = i & 4;
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

                print_message("notice first: %d, drain taken back: %d, crash: %d\n", notice_first, take_back, crash);
                if (notice_first)
                        agent_rig_notice(r, 120 * S);
                else
                        call(r, "Drain");
                run(r, 5 * S);
                if (notice_first)
                        call(r, "Drain");
                else
                        agent_rig_notice(r, 120 * S);
                run(r, 15 * S);
                assert_true(annotation_has(r, "\"kind\":\"spot\""));
                assert_true(annotation_has(r, "\"byHand\":\"drain\""));
                assert_states(r, "Drained", "None");
                if (crash) {
                        agent_rig_kill(r);
                        agent_rig_start(r);
                        run(r, 5 * S);
                        assert_states(r, "Drained", "None");
                }
                if (take_back)
                        call(r, "CancelDrain");
                else
                        fake_imds_clear_action(r->imds);
                for (unsigned step = 0; step < 800; step++) { /* beyond its time and ten minutes */
                        run(r, S);
                        assert_true(agent_rig_unschedulable(r));
                }
                assert_int_equal(annotation_has(r, "\"kind\":\"spot\""), take_back);
                assert_int_equal(annotation_has(r, "\"byHand\":\"drain\""), !take_back);
                assert_states(r, take_back ? "None" : "Drained", "None");
                if (take_back)
                        fake_imds_clear_action(r->imds);
                else
                        call(r, "CancelDrain");
                run(r, 800 * S);
                assert_open(r);
                assert_states(r, "None", "None");
        }
}

/* Asked for while the machine shuts down, which is called off: the drain stays. */
TEST_CASE(test_beside_a_shutdown) {
        for (unsigned crash = 0; crash <= 1; crash++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);

                fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = RIG_NODE, .app = "slow", .stop_sec = 60 });
                fake_merge(r->cluster, FAKE_PODS, "default", "slow",
                           "{'spec':{'terminationGracePeriodSeconds':90}}");
                run(r, S);
                assert_true(fake_power_shutdown(r->power, "reboot", true));
                run(r, 5 * S);
                call(r, "Drain");
                run(r, 5 * S);
                assert_states(r, "Draining", "Rebooting");
                if (crash)
                        agent_rig_kill(r);
                assert_true(fake_power_cancel(r->power));
                if (crash)
                        agent_rig_start(r);
                run(r, 100 * S);
                assert_true(agent_rig_unschedulable(r));
                assert_states(r, "Drained", "None");
                call(r, "CancelDrain");
                run(r, 5 * S);
                assert_open(r);
        }
}

/* A notice that a person has overruled does not come back by way of a drain by hand. */
TEST_CASE(test_overruled_notice) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        agent_rig_notice(r, 120 * S);
        run(r, 2500 * MS);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        run(r, 10 * S);
        assert_false(agent_rig_unschedulable(r));
        call(r, "Drain");
        run(r, 60 * S);
        assert_states(r, "Drained", "None");
        assert_true(annotation_has(r, "\"kind\":\"manual\""));
        call(r, "CancelDrain");
        run(r, 10 * S);
        assert_false(agent_rig_unschedulable(r));
}

/* -- pods that opted out ------------------------------------------------------------------------ */

/* By each key; nothing at all is evicted before they are gone, and people read which, by which key, and what to do. */
TEST_CASE(test_drain_waits_for_protected) {
        static const struct {
                const char *change, *key, *undo;
        } rows[] = {
                { "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}", "vesper.sh/do-not-evict",
                  "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null}}}" },
                { "{'metadata':{'labels':{'karpenter.sh/do-not-evict':'true'}}}", "karpenter.sh/do-not-evict",
                  "{'metadata':{'labels':{'karpenter.sh/do-not-evict':null}}}" },
                { "{'metadata':{'annotations':{'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'}}}",
                  "cluster-autoscaler.kubernetes.io/safe-to-evict", NULL /* it ends by itself */ },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                _cleanup_free_ char *waits = strf("pod default/web-2, which %s protects", rows[i].key);

                print_message("%s\n", rows[i].key);
                fake_merge(r->cluster, FAKE_PODS, "default", "web-2", "%s", rows[i].change);
                call(r, "Drain");
                run(r, 600 * S);
                assert_untouched(r, 3);
                assert_true(agent_rig_unschedulable(r));
                assert_property(r, "DrainReason", waits);
                assert_true(agent_rig_said(r, rows[i].key));
                assert_true(agent_rig_said(r, "vesper-agent --drain --force goes on all the same"));
                assert_false(agent_rig_said(r, "It is deleted when its time is up"));
                assert_true(agent_rig_has_event(r, "Node", "DrainBlocked"));
                agent_rig_kill(r); /* a new agent waits, too */
                agent_rig_start(r);
                run(r, 600 * S);
                assert_untouched(r, 3);
                if (rows[i].undo)
                        fake_merge(r->cluster, FAKE_PODS, "default", "web-2", "%s", rows[i].undo);
                else
                        assert_true(fake_delete(r->cluster, FAKE_PODS, "default", "web-2", 0));
                run(r, 10 * S);
                assert_states(r, "Drained", "None");
                assert_property(r, "DrainReason", "");
                assert_int_equal(agent_rig_n_pods(r), 0);
        }
}

/* Forced from the beginning, later, and before a crash; who asks for less afterwards does not take that back. */
TEST_CASE(test_forced) {
        enum { AT_ONCE, LATER, BEFORE_CRASH };

        for (int when = AT_ONCE; when <= BEFORE_CRASH; when++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);

                print_message("%d\n", when);
                agent_rig_add_pods(r, "db", 2);
                fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2"); /* holds them, force or not */
                protect(r, "db-0", "'true'");
                run(r, S);
                call(r, when == AT_ONCE ? "ForceDrain" : "Drain");
                run(r, 60 * S);
                if (when != AT_ONCE) {
                        assert_false(agent_rig_said(r, "db-budget"));
                        call(r, "ForceDrain");
                        run(r, 10 * S);
                }
                call(r, "Drain");
                run(r, 5 * S);
                assert_true(annotation_has(r, "\"byHand\":\"force\""));
                assert_true(agent_rig_said(r, "db-budget")); /* it was asked for an eviction, and refused */
                assert_property(r, "DrainReason", "");
                assert_untouched(r, 2);
                if (when == BEFORE_CRASH) {
                        agent_rig_kill(r);
                        r->record = mfree(r->record); /* with its disk: it stands on the Node */
                        agent_rig_start(r);
                        run(r, 10 * S);
                }
                (void) fake_delete(r->cluster, FAKE_PDBS, "default", "db-budget", -1);
                run(r, 60 * S);
                assert_states(r, "Drained", "None");
                assert_int_equal(agent_rig_n_pods(r), 0);
                call(r, "CancelDrain");
                run(r, 5 * S);
                agent_rig_add_pods(r, "new", 1);
                protect(r, "new-0", "'true'");
                call(r, "Drain"); /* the next one is not forced */
                run(r, 60 * S);
                assert_untouched(r, 1);
        }
}

/* Who takes the machine away waits for nobody: a notice, or a shutdown, that comes to a drain that waits. */
TEST_CASE(test_waiting_ends_with_the_machine) {
        for (unsigned shutdown = 0; shutdown <= 1; shutdown++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

                print_message("shutdown: %u\n", shutdown);
                protect(r, "web-0", "'true'");
                call(r, "Drain");
                run(r, 60 * S);
                assert_untouched(r, 3);
                if (shutdown)
                        assert_true(fake_power_shutdown(r->power, "poweroff", true));
                else
                        agent_rig_notice(r, 120 * S);
                run(r, 12 * S);
                assert_int_equal(agent_rig_n_pods(r), 0);
        }
}

/* ... and when that is called off, the rest is waited for again. */
TEST_CASE(test_waits_again) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);

        agent_rig_add_pods(r, "db", 2);
        fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2");
        protect(r, "db-0", "'true'");
        call(r, "Drain");
        run(r, 60 * S);
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        run(r, 20 * S);
        assert_true(agent_rig_said(r, "db-budget")); /* asked */
        assert_true(fake_power_cancel(r->power));
        run(r, 5 * S);
        (void) fake_delete(r->cluster, FAKE_PDBS, "default", "db-budget", -1);
        run(r, 120 * S);
        assert_untouched(r, 2);
        assert_states(r, "Draining", "None");
}

/* -- a reboot that was granted ------------------------------------------------------------------ */

/* It is held while the node is cordoned; then what comes. */
TEST_CASE(test_held_reboot) {
        enum { GOES, FORCED, SLOT_ENDS, TAKEN_OFF, UNCORDONED, CRASH, TAKEN_BACK, FORCED_AT_ONCE };
        static const struct {
                const char *what;
                int then;
                bool reboots;
                const char *said;
        } rows[] = {
                { "the pod ends", GOES, true, NULL },
                { "forced later", FORCED, true, NULL },
                { "forced at once", FORCED_AT_ONCE, true, NULL },
                { "the slot ends", SLOT_ENDS, false, "it still waited for pod default/web-1, which vesper.sh/do-not-evict" },
                { "the slot is taken off", TAKEN_OFF, false, "waiting for another one" },
                { "a person un-cordons", UNCORDONED, false, "somebody made the node schedulable again" },
                { "the agent crashes", CRASH, false, NULL },
                { "taken back", TAKEN_BACK, false, "whoever asked for it has taken it back" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

                print_message("%s\n", rows[i].what);
                protect(r, "web-1", "'true'");
                call(r, rows[i].then == FORCED_AT_ONCE ? "ForceReboot" : "RequestReboot");
                run(r, 10 * S);
                assert_open(r);
                grant(r, 2700);
                if (rows[i].then != FORCED_AT_ONCE) {
                        run(r, 1200 * S);
                        assert_states(r, "None", "Held");
                        assert_property(r, "State", "Draining");
                        assert_property(r, "RebootReason", "pod default/web-1, which vesper.sh/do-not-evict protects");
                        assert_true(agent_rig_said(r, "vesper-agent --reboot --force goes on at once"));
                        assert_true(agent_rig_unschedulable(r));
                        assert_untouched(r, 3);
                        assert_non_null(agent_rig_annotation(r, REQUEST));
                        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
                }
                if (rows[i].then == GOES)
                        protect(r, "web-1", "null");
                if (rows[i].then == FORCED)
                        call(r, "ForceReboot");
                if (rows[i].then == SLOT_ENDS)
                        run(r, 1460 * S); /* 10 s before it proves too late */
                if (rows[i].then == SLOT_ENDS)
                        assert_states(r, "None", "Held");
                if (rows[i].then == TAKEN_OFF)
                        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                                   "{'metadata':{'annotations':{'" GRANTED "':null}}}");
                if (rows[i].then == UNCORDONED)
                        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
                if (rows[i].then == TAKEN_BACK)
                        call(r, "CancelReboot");
                if (rows[i].then == CRASH) {
                        agent_rig_kill(r);
                        agent_rig_start(r);
                }
                run(r, 30 * S);
                if (rows[i].said && !agent_rig_said(r, rows[i].said))
                        fail_msg("'%s' was not said, but:\n%s", rows[i].said, strbuf_str(&r->lines));
                assert_int_equal(fake_power_phase(r->power) == FAKE_POWER_OFF, rows[i].reboots);
                assert_int_equal(agent_rig_n_pods(r), rows[i].reboots ? 0 : 3);
                if (rows[i].reboots)
                        continue;
                assert_untouched(r, 3);
                assert_false(agent_rig_unschedulable(r));
                assert_states(r, "None", rows[i].then == TAKEN_OFF ? "Requested" : "None");
                assert_int_equal(agent_rig_annotation(r, REQUEST) != NULL, rows[i].then == TAKEN_OFF);
                if (rows[i].then != TAKEN_OFF)
                        continue;
                run(r, 1600 * S); /* beyond that slot, and within its patience */
                assert_states(r, "None", "Requested");
                print_message("... and given again\n");
                protect(r, "web-1", "null");
                grant(r, 2700);
                run(r, 30 * S);
                assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        }
}

/* The slot is taken off, and no other is given: its patience is what it was. */
TEST_CASE(test_held_and_never_again) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(1);

        protect(r, "web-0", "'true'");
        call(r, "RequestReboot");
        run(r, 10 * S);
        grant(r, 7200);
        run(r, 60 * S);
        assert_states(r, "None", "Held");
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'annotations':{'" GRANTED "':null}}}");
        run(r, 3500 * S);
        assert_states(r, "None", "Requested");
        run(r, 60 * S);
        assert_states(r, "None", "None");
        assert_true(agent_rig_said(r, "nobody granted it within RebootPatienceSec="));
        assert_open(r);
}

/* The protection ends by time alone, and a pod that opted out comes only after the grant: each second counts. */
TEST_CASE(test_held_for_a_time) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        fake_merge(r->cluster, FAKE_PODS, "default", "web-1",
                   "{'metadata':{'annotations':{'karpenter.sh/do-not-disrupt':'5m'}}}");
        call(r, "RequestReboot");
        run(r, 10 * S);
        grant(r, 2700);
        run(r, 60 * S);
        assert_property(r, "RebootState", "Held");
        run(r, 300 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
}

/* Drained by hand, held by its pod; then a reboot is granted, and the pod goes: rebooted, and clean after the boot. */
TEST_CASE(test_reboot_of_a_drained_node) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        protect(r, "web-0", "'true'");
        call(r, "Drain");
        run(r, 60 * S);
        call(r, "RequestReboot");
        run(r, 5 * S);
        grant(r, 2700);
        run(r, 60 * S);
        assert_states(r, "Draining", "Held");
        protect(r, "web-0", "null");
        run(r, 30 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        fake_power_boot(r->power);
        agent_rig_reboot(r);
        agent_rig_start(r);
        run(r, 30 * S);
        assert_open(r);
        assert_states(r, "None", "None");
        assert_null(agent_rig_annotation(r, REQUEST));
}

/* Taken back when logind has been told, and has not announced it yet: too late, the slot is in use. */
TEST_CASE(test_too_late_to_take_back) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);
        bool told = false;

        call(r, "RequestReboot");
        run(r, 10 * S);
        grant(r, 2700);
        for (unsigned i = 0; i < 20000 && !told; i++) {
                char *text;

                run(r, 100);
                text = fake_power_get_unit(r->power, "RebootState");
                told = streq(text, "Rebooting");
                free(text);
        }
        assert_true(told);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_UP);
        call(r, "CancelReboot");
        run(r, S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_DELAY);
        assert_non_null(agent_rig_annotation(r, REQUEST));
        run(r, 30 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_non_null(agent_rig_annotation(r, REQUEST));
}

/* The reboot had been held, the machine goes down, and the agent crashes. The next one does not hear from logind whether it
 * still does: the node is not opened meanwhile. */
TEST_CASE(test_crash_after_held) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);

        fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = RIG_NODE, .app = "slow", .stop_sec = 60 });
        fake_merge(r->cluster, FAKE_PODS, "default", "slow", "{'spec':{'terminationGracePeriodSeconds':90}}");
        protect(r, "slow", "'true'");
        run(r, S);
        call(r, "RequestReboot");
        run(r, 10 * S);
        grant(r, 2700);
        run(r, 60 * S);
        assert_property(r, "RebootState", "Held");
        protect(r, "slow", "null");
        run(r, 5 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_DELAY);
        assert_true(annotation_has(r, "\"kind\":\"manual\""));
        agent_rig_kill(r);
        fake_power_set_logind_silent(r->power, true);
        agent_rig_start(r);
        for (unsigned i = 0; i < 200; i++) {
                run(r, 100 * MS);
                assert_true(agent_rig_unschedulable(r));
                assert_int_equal(fake_power_call_unit(r->power, "CancelDrain"), -EAGAIN);
        }
        fake_power_set_logind_silent(r->power, false);
        run(r, 70 * S);
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

/* Its drain takes minutes: until the node is back the slot is in use, or two reboot at once. */
TEST_CASE(test_slow_reboot_keeps_its_request) {
        for (unsigned crash = 0; crash <= 1; crash++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);
                unsigned n = 0;

                print_message("crash: %u\n", crash);
                fake_add_pod(r->cluster, &(FakePod){ .name = "slow", .node = RIG_NODE, .app = "slow", .stop_sec = 500 });
                fake_merge(r->cluster, FAKE_PODS, "default", "slow",
                           "{'spec':{'terminationGracePeriodSeconds':550}}");
                run(r, S);
                call(r, "RequestReboot");
                run(r, 10 * S);
                grant(r, 2700);
                for (; fake_power_phase(r->power) != FAKE_POWER_OFF; n++) {
                        assert_non_null(agent_rig_annotation(r, REQUEST));
                        assert_true(n < 120);
                        run(r, 5 * S);
                        if (n == 20) {
                                assert_property(r, "RebootState", "Rebooting");
                                call(r, "CancelReboot"); /* too late */
                        }
                        if (crash && n == 50) {
                                agent_rig_kill(r);
                                agent_rig_start(r);
                        }
                }
                assert_true(n > 90);
                assert_non_null(agent_rig_annotation(r, REQUEST));
                fake_power_boot(r->power);
                fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
                run(r, 60 * S);
                agent_rig_reboot(r);
                agent_rig_start(r);
                run(r, 60 * S);
                assert_non_null(agent_rig_annotation(r, REQUEST)); /* up, and not Ready */
                fake_cluster_set_kubelet(r->cluster, RIG_NODE, true);
                run(r, 30 * S);
                assert_null(agent_rig_annotation(r, REQUEST));
        }
}

/* Said, and not done: who asks hears why. */
/* Each method, where nothing can be asked for. People read the reason. */
TEST_CASE(test_refusals) {
        static const char unseen[] = "the agent has not seen its Node yet: the API server does not answer, or the kubelet has not registered it";
        static const char dry[] = "this agent does nothing but say what it would do ([Agent] DryRun=yes in agent.conf)";
        static const struct {
                const char *method;
                bool takes_back;
        } rows[] = {
                { "Drain", false },      { "ForceDrain", false },  { "RequestReboot", false },
                { "ForceReboot", false }, { "CancelDrain", true }, { "CancelReboot", true },
        };

        for (unsigned dry_run = 0; dry_run <= 1; dry_run++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

                r->config.dry_run = dry_run > 0;
                agent_rig_add_pods(r, "web", 2);
                fake_api_away_until(fake_cluster_api(r->cluster), usec_add(virtual_time_now(r->world.time), USEC_PER_MINUTE));
                agent_rig_start(r);
                run(r, 5 * S);
                assert_states(r, "Unknown", "Unknown");
                for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                        assert_int_equal(fake_power_call_unit(r->power, rows[i].method), -EAGAIN);
                        assert_string_equal(fake_power_refusal(r->power), unseen);
                }
                run(r, 2 * USEC_PER_MINUTE);
                assert_open(r);
                assert_null(agent_rig_annotation(r, REQUEST));
                assert_states(r, "None", "None");
                for (size_t i = 0; dry_run && i < ELEMENTSOF(rows); i++) {
                        assert_int_equal(fake_power_call_unit(r->power, rows[i].method), rows[i].takes_back ? 0 : -EOPNOTSUPP);
                        assert_string_equal(fake_power_refusal(r->power), rows[i].takes_back ? "" : dry);
                }
                run(r, USEC_PER_MINUTE);
                assert_open(r);
                assert_null(agent_rig_annotation(r, REQUEST));
                assert_states(r, "None", "None");
                assert_untouched(r, 2);
        }
}

/* The reason stands after the end, and no more when the same is asked for again. */
TEST_CASE(test_reasons) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        for (unsigned round = 0; round < 2; round++) {
                call(r, "Drain");
                run(r, 60 * S);
                assert_states(r, "Drained", "None");
                assert_property(r, "DrainReason", "");
                call(r, "CancelDrain");
                run(r, 10 * S);
                assert_states(r, "None", "None");
                assert_property(r, "DrainReason", "whoever asked for it has taken it back");
                call(r, "Drain");
                run(r, 60 * S);
                assert_property(r, "DrainReason", "");
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
                run(r, 10 * S);
                assert_states(r, "None", "None");
                assert_property(r, "DrainReason", "somebody made the node schedulable again");
                call(r, "CancelDrain"); /* nothing is left to take back */
                assert_property(r, "DrainReason", "somebody made the node schedulable again");
                call(r, "RequestReboot");
                run(r, 10 * S);
                assert_property(r, "RebootReason", "the coordinator's grant");
                call(r, "CancelReboot");
                run(r, 10 * S);
                assert_states(r, "None", "None");
                assert_property(r, "RebootReason", "whoever asked for it has taken it back");
                assert_false(agent_rig_unschedulable(r));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_reasons),
                cmocka_unit_test(test_each_undoes_its_own),
                cmocka_unit_test(test_nothing_to_undo),
                cmocka_unit_test(test_again_at_once),
                cmocka_unit_test(test_beside_a_notice),
                cmocka_unit_test(test_beside_a_shutdown),
                cmocka_unit_test(test_overruled_notice),
                cmocka_unit_test(test_drain_waits_for_protected),
                cmocka_unit_test(test_forced),
                cmocka_unit_test(test_waiting_ends_with_the_machine),
                cmocka_unit_test(test_waits_again),
                cmocka_unit_test(test_held_reboot),
                cmocka_unit_test(test_held_and_never_again),
                cmocka_unit_test(test_held_for_a_time),
                cmocka_unit_test(test_reboot_of_a_drained_node),
                cmocka_unit_test(test_too_late_to_take_back),
                cmocka_unit_test(test_crash_after_held),
                cmocka_unit_test(test_slow_reboot_keeps_its_request),
        };

        return cmocka_run_group_tests_name("by-hand", tests, NULL, NULL);
}
