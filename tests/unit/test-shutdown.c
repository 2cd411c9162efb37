/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "agent-rig.h"
#include "cmocka-test.h"

/* A whole agent on a machine that shuts down: logind and PID 1 of fake-power.h, and a cluster. */

#define S USEC_PER_SEC
#define MS USEC_PER_MSEC

/* Goes on when the agent has ended. */
static void run(AgentRig *r, usec_t usec) {
        usec_t until = virtual_time_now(r->world.time) + usec;

        while (agent_rig_run(r, until - virtual_time_now(r->world.time)))
                ;
}

/* kubelet: HTTP status of its /runningpods/; 0: nobody answers there. port: of its server, as its Node says; 0: 10250. */
static AgentRig *running_rig_with(unsigned n_pods, unsigned kubelet, unsigned port) {
        AgentRig *r = agent_rig_new();

        if (port > 0)
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'daemonEndpoints':{'kubeletEndpoint':{'Port':%u}}}}", port);
        r->kubelet_port = port;

        r->serves_running_pods = kubelet > 0;
        r->running_pods.status = kubelet == 200 ? 0 : kubelet;
        /* What our drop-in of logind asks for. */
        fake_power_set_limits(r->power, &(FakePowerLimits){ 600 * S, 30 * USEC_PER_MINUTE, 90 * S });
        agent_rig_add_pods(r, "web", n_pods);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_true(r->ready);
        assert_true(fake_power_is_inhibited(r->power));
        return r;
}

static AgentRig *running_rig(unsigned n_pods) {
        return running_rig_with(n_pods, 0, 0);
}

static unsigned evictions(AgentRig *r) {
        const FakeApi *api = fake_cluster_api(r->cluster);
        const FakeLogEntry *e;
        unsigned n = 0;

        for (size_t i = 0; (e = fake_api_log_at(api, i)); i++)
                n += strstr(e->path, "/eviction") != NULL;
        return n;
}

/* From the beginning of the shutdown to the machine being off. */
static usec_t took(AgentRig *r) {
        assert_int_equal(fake_power_phase(r->power), FAKE_POWER_OFF);
        assert_false(fake_power_was_forced(r->power));
        return fake_power_off(r->power) - fake_power_began(r->power);
}

static void boot(AgentRig *r) {
        agent_rig_kill(r);
        fake_power_boot(r->power);
        agent_rig_reboot(r);
        agent_rig_start(r);
}

/* Whoever told it: logind, or PID 1 alone. Pods of 3 s leave first; then the machine is off at once. */
TEST_CASE(test_drained_first) {
        for (unsigned announced = 0; announced <= 1; announced++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(5);

                print_message("announced: %u\n", announced);
                assert_true(fake_power_shutdown(r->power, "poweroff", announced > 0));
                run(r, 2 * S);
                assert_true(agent_rig_unschedulable(r));
                assert_int_equal(agent_rig_n_pods(r), 5); /* they stop */
                assert_string_equal(agent_rig_condition(r, "GracefulNodeShutdownInProgress"), "True");
                assert_string_equal(agent_rig_condition(r, "MaintenanceInProgress"), "True");
                assert_int_equal(fake_power_phase(r->power),
                                 announced ? FAKE_POWER_DELAY : FAKE_POWER_STOPPING);
                run(r, 20 * S);
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_string_equal(agent_rig_condition(r, "Drained"), "True");
                assert_string_equal(agent_rig_condition(r, "GracefulNodeShutdownInProgress"), "False");
                assert_string_equal(agent_rig_condition(r, "MaintenanceInProgress"), "True");
                assert_non_null(strstr(strbuf_str(&r->patches), "moves this node's pods away: this machine shuts down"));
                assert_non_null(strstr(strbuf_str(&r->patches), "moved this node's pods away: this machine shuts down"));
                assert_true(took(r) < 5 * S);
                assert_true(r->stopped);
                assert_string_equal(r->left, "the machine goes down, and its node is drained");

                boot(r);
                run(r, 30 * S);
                assert_false(agent_rig_unschedulable(r));
                assert_null(agent_rig_annotation(r, "vesper.sh/interruption"));
                assert_null(agent_rig_condition(r, "GracefulNodeShutdownInProgress"));
                assert_null(agent_rig_condition(r, "MaintenanceInProgress"));
                assert_true(fake_power_is_inhibited(r->power));
        }
}

/* Stop, restart, crash: nothing is cordoned, nothing evicted, the inhibitor is there at every instant. */
TEST_CASE(test_plain_ends_never_drain) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

        for (unsigned i = 0; i < 20; i++) {
                if (i % 3 == 2)
                        agent_rig_kill(r);
                else {
                        agent_rig_stop(r);
                        run(r, 100 * MS);
                        assert_true(r->stopped);
                        assert_string_equal(r->left, "the node is left as it is");
                }
                assert_true(fake_power_is_inhibited(r->power));
                agent_rig_start(r);
                run(r, i % 2 ? 0 : 3 * S);
                assert_true(fake_power_is_inhibited(r->power));
        }
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(evictions(r), 0);
}

/* The kubelet takes 2 s to tell the API that the containers have ended. A shutdown waits for that only where
 * more than the telling is left to be done, or where nobody else can tell. */
TEST_CASE(test_slow_kubelet) {
        static const struct {
                const char *what, *change; /* of the pod */
                bool slices, signals;
                usec_t at_least, at_most;
        } rows[] = {
                { "PID 1 tells", "{}", true, true, 4 * S, 4500 * MS },
                { "PID 1 sends no signals", "{}", true, false, 4 * S, 5500 * MS },
                { "there are no slices", "{}", false, true, 6 * S, 7 * S },
                { "passing volumes",
                  "{'spec':{'volumes':[{'name':'a','emptyDir':{}},{'name':'b','secret':{'secretName':'s'}}]}"
                  "}",
                  true, true, 4 * S, 4500 * MS },
                { "a claim of a volume",
                  "{'spec':{'volumes':[{'name':'a','emptyDir':{}},"
                  "{'name':'b','persistentVolumeClaim':{'claimName':'c'}}]}}",
                  true, true, 6 * S, 7 * S },
                { "a job", "{'spec':{'restartPolicy':'Never'}}", true, true, 6 * S, 7 * S },
                { "devices", "{'spec':{'resourceClaims':[{'name':'gpu'}]}}", true, true, 6 * S, 7 * S },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned announced = 0; announced <= 1; announced++) {
                        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);
                        usec_t lost;

                        print_message("%s, announced: %u\n", rows[i].what, announced);
                        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_VOLUME, false);
                        fake_cluster_set_kubelet_lag(r->cluster, 2 * S);
                        if (!rows[i].slices)
                                fake_power_set_pods(r->power, NULL, NULL);
                        fake_power_set_unit_signals(r->power, rows[i].signals);
                        agent_rig_add_pods(r, "web", 5);
                        fake_merge(r->cluster, FAKE_PODS, "default", "web-3", "%s", rows[i].change);
                        run(r, 5 * S);
                        assert_true(fake_power_shutdown(r->power, "poweroff", announced > 0));
                        run(r, 2900 * MS);
                        assert_int_equal(agent_rig_n_pods(r), 5); /* they run, all of them */
                        run(r, 20 * S);
                        lost = took(r);
                        assert_int_equal(agent_rig_n_pods(r), 0);
                        assert_string_equal(agent_rig_condition(r, "Drained"), "True");
                        if (lost < rows[i].at_least || lost > rows[i].at_most)
                                fail_msg("off after %llu ms", (unsigned long long) (lost / MS));
                        assert_false(agent_rig_said(r, "deleted"));
                }
}

/* A finalizer is somebody else's: such a pod is left to its kubelet, and nobody waits for what does not go.
 */
TEST_CASE(test_slow_kubelet_and_finalizer) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        fake_cluster_set_kubelet_lag(r->cluster, 2 * S);
        fake_merge(r->cluster, FAKE_PODS, "default", "web-1", "{'metadata':{'finalizers':['x.io/y']}}");
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        run(r, 4 * S);
        assert_int_equal(agent_rig_n_pods(r), 1);
        fake_merge(r->cluster, FAKE_PODS, "default", "web-1", "{'metadata':{'finalizers':null}}");
        run(r, 20 * S);
        assert_true(took(r) > 5 * S);
        assert_true(took(r) < 6 * S);
}

/* The API server does not answer: 3 s, and what is stopping already has its time, or until it is seen to
 * have ended. */
TEST_CASE(test_api_away) {
        static const struct {
                const char *what;
                usec_t before; /* it is lost so long after the beginning; 0: before */
                bool announced, slices;
                usec_t at_least, at_most;
                int64_t step_sec;    /* of the clock, once it is lost */
                unsigned kubelet, port; /* see running_rig_with() */
        } rows[] = {
                { "before, by logind", 0, true, true, 0, 5 * S },
                { "before, past logind", 0, false, true, 0, 5 * S },
                /* The kubelet of the fake goes on in its own time; their grace of 30 s is what we know of,
                 */
                { "in the middle", 500 * MS, true, false, 25 * S, 40 * S },
                /* or what PID 1 says. */
                { "in the middle, with slices", 500 * MS, true, true, 4 * S, 12 * S },
                /* Without slices the kubelet knows when its containers have ended, if the agent may ask it. */
                { "in the middle, and the kubelet tells", 500 * MS, true, false, 4 * S, 12 * S, 0, 200 },
                { "in the middle, and the kubelet does not", 500 * MS, true, false, 25 * S, 40 * S, 0, 403 },
                { "in the middle, and the kubelet tells at another port", 500 * MS, true, false, 4 * S, 12 * S, 0, 200, 10350 },
                { "in the middle, and both tell", 500 * MS, true, true, 4 * S, 12 * S, 0, 200 },
                /* One of two clocks is right; it may be the later one. */
                { "in the middle, and the clock is set ahead", 500 * MS, true, false, 25 * S, 40 * S, 7200 },
                { "in the middle, and it is set back", 500 * MS, true, false, 25 * S, 45 * S, -7200 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig_with(3, rows[i].kubelet, rows[i].port);
                usec_t away = virtual_time_now(r->world.time) + USEC_PER_HOUR;

                print_message("%s\n", rows[i].what);
                if (!rows[i].slices)
                        fake_power_set_pods(r->power, NULL, NULL);
                if (rows[i].before == 0)
                        fake_api_away_until(fake_cluster_api(r->cluster), away);
                assert_true(fake_power_shutdown(r->power, "poweroff", rows[i].announced));
                if (rows[i].before > 0) {
                        run(r, rows[i].before);
                        assert_int_equal(evictions(r), 3);
                        fake_api_away_until(fake_cluster_api(r->cluster), away);
                        loop_virtual_step_wall(r->loop, rows[i].step_sec * (int64_t) S);
                }
                run(r, 60 * S);
                assert_true(took(r) >= rows[i].at_least);
                assert_true(took(r) <= rows[i].at_most);
                assert_true(
                        agent_rig_said(r, "The API server does not answer while this machine shuts down"));
        }
}

/* What will not go does not hold the machine: at the end of the budget it is off, in order. */
TEST_CASE(test_budget_ends) {
        static const struct {
                const char *what;
                FakePowerLimits limits;
                usec_t max, at_least, at_most;
        } rows[] = {
                { "MaxSec=", { 600 * S, 1800 * S, 90 * S }, 60 * S, 55 * S, 63 * S },
                { "logind's delay, and then the stop, extended",
                  { 5 * S, 1800 * S, 90 * S },
                  300 * S,
                  290 * S,
                  303 * S },
                { "the job of the target", { 5 * S, 300 * S, 90 * S }, 3600 * S, 110 * S, 127 * S },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

                print_message("%s\n", rows[i].what);
                fake_power_set_limits(r->power, &rows[i].limits);
                r->config.shutdown_max_usec = rows[i].max;
                fake_add_pod(
                        r->cluster,
                        &(FakePod){ .name = "slow", .node = RIG_NODE, .app = "slow", .stop_sec = 9999 });
                fake_merge(r->cluster, FAKE_PODS, "default", "slow",
                           "{'spec':{'terminationGracePeriodSeconds':9999}}");
                agent_rig_start(r);
                run(r, 10 * S);
                assert_true(fake_power_shutdown(r->power, "reboot", true));
                run(r, 2 * USEC_PER_HOUR);
                assert_true(took(r) >= rows[i].at_least);
                assert_true(took(r) <= rows[i].at_most);
        }
}

/* Cancelled at any moment of the window: undone, inhibited again; a second one is drained as the first. */
TEST_CASE(test_cancelled) {
        static const usec_t moments[] = { 0, 5 * MS, 100 * MS, 500 * MS, 2900 * MS, 3100 * MS };

        for (size_t i = 0; i < ELEMENTSOF(moments); i++)
                for (usec_t between = 0; between <= 5 * S; between += 5 * S) {
                        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

                        print_message("after %llu us, again after %llu us\n",
                                      (unsigned long long) moments[i], (unsigned long long) between);
                        assert_true(fake_power_shutdown(r->power, "poweroff", true));
                        run(r, moments[i]);
                        if (!fake_power_cancel(r->power))
                                continue;
                        run(r, between);
                        if (between > 0) {
                                assert_false(agent_rig_unschedulable(r));
                                assert_null(agent_rig_annotation(r, "vesper.sh/interruption"));
                                assert_true(fake_power_is_inhibited(r->power));
                                assert_string_equal(agent_phase(r->agent), "Idle");
                        }
                        agent_rig_add_pods(r, "more", 2);
                        assert_true(fake_power_shutdown(r->power, "poweroff", true));
                        run(r, 30 * S);
                        assert_int_equal(agent_rig_n_pods(r), 0);
                        assert_true(took(r) < 10 * S);
                }
}

/* A shutdown is under way, and logind does not answer in time: that is not "cancelled". */
TEST_CASE(test_silent_logind) {
        for (unsigned after_crash = 0; after_crash <= 1; after_crash++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);

                print_message("after a crash: %u\n", after_crash);
                fake_add_pod(r->cluster,
                             &(FakePod){ .name = "slow", .node = RIG_NODE, .app = "slow", .stop_sec = 60 });
                fake_merge(r->cluster, FAKE_PODS, "default", "slow",
                           "{'spec':{'terminationGracePeriodSeconds':90}}");
                run(r, S);
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, 5 * S);
                assert_true(agent_rig_unschedulable(r));
                fake_power_set_logind_silent(r->power, true);
                if (after_crash) {
                        agent_rig_kill(r);
                        agent_rig_start(r);
                } else {
                        fake_power_set_bus(r->power, false); /* what listens has to ask anew */
                        fake_power_set_bus(r->power, true);
                }
                run(r, 20 * S);
                assert_false(agent_rig_said(r, "was cancelled"));
                assert_true(agent_rig_unschedulable(r));
                assert_non_null(agent_rig_annotation(r, "vesper.sh/interruption"));
                assert_true(fake_power_is_inhibited(r->power));
                fake_power_set_logind_silent(r->power, false);
                run(r, 60 * S);
                assert_true(took(r) < 70 * S);
                assert_int_equal(agent_rig_n_pods(r), 0);
        }
}

/* Crashed in the middle: goes on if the machine does, with the time that was given out first; else undone.
 */
TEST_CASE(test_crash_in_the_middle) {
        for (unsigned cancelled = 0; cancelled <= 1; cancelled++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

                print_message("cancelled meanwhile: %u\n", cancelled);
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, S);
                assert_true(agent_rig_unschedulable(r));
                agent_rig_kill(r);
                run(r, 500 * MS);
                assert_true(fake_power_is_inhibited(r->power)); /* by its store */
                if (cancelled)
                        assert_true(fake_power_cancel(r->power));
                agent_rig_start(r);
                run(r, 20 * S);
                if (cancelled) {
                        assert_false(agent_rig_unschedulable(r));
                        assert_true(fake_power_is_inhibited(r->power));
                } else {
                        assert_int_equal(agent_rig_n_pods(r), 0);
                        assert_true(took(r) < 8 * S);
                }
        }
}

/* A pod that never goes, and an agent that crashes every minute: still off in the time that was given first.
 */
TEST_CASE(test_crashes_win_no_time) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);

        fake_add_pod(r->cluster,
                     &(FakePod){ .name = "slow", .node = RIG_NODE, .app = "slow", .stop_sec = 9999 });
        fake_merge(r->cluster, FAKE_PODS, "default", "slow",
                   "{'spec':{'terminationGracePeriodSeconds':9999}}");
        r->config.shutdown_max_usec = 300 * S;
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        for (unsigned i = 0; i < 4; i++) {
                run(r, 60 * S);
                agent_rig_kill(r);
                run(r, S);
                agent_rig_start(r);
        }
        run(r, 300 * S);
        assert_true(took(r) <= 305 * S);
}

static usec_t told_deadline(AgentRig *r) {
        cJSON *o = cJSON_Parse(agent_rig_annotation(r, "vesper.sh/interruption"));
        usec_t at = 0;

        assert_return_code(rfc3339_parse(fj_string(o, "deadline", NULL), &at), 0);
        cJSON_Delete(o);
        return at;
}

/* Cancelled while the agent was down, and its next life could not read of it, or not write that it is over: the one
 * after that has forgotten it, too, and gives the next shutdown its own time. */
TEST_CASE(test_cancelled_and_bad_disk) {
        for (unsigned unreadable = 0; unreadable <= 1; unreadable++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

                print_message("unreadable: %u\n", unreadable);
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, S);
                agent_rig_kill(r);
                assert_true(fake_power_cancel(r->power));
                r->disk_unreadable = unreadable > 0;
                r->disk_error = unreadable > 0 ? 0 : -EIO;
                agent_rig_start(r);
                run(r, 20 * S);
                assert_false(agent_rig_unschedulable(r));
                agent_rig_kill(r);
                r->disk_unreadable = false;
                r->disk_error = 0;
                agent_rig_start(r);
                run(r, 12 * USEC_PER_MINUTE); /* what the first one had is over */
                agent_rig_add_pods(r, "more", 2);
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, 20 * S);
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_string_equal(r->left, "the machine goes down, and its node is drained");
        }
}

/* The wall clock is set in the middle: what the machine gives is as much as before, for pods that a budget
 * holds, for people who read the annotation, and for an agent that was down then. The time is 100 s, less 2.
 */
TEST_CASE(test_clock_is_set) {
        static const struct {
                const char *what;
                int64_t step_sec;
                bool down, notice, by_hand;
        } rows[] = {
                { "ahead", 7200, false, false },
                { "back", -7200, false, false },
                { "ahead, while the agent is down", 7200, true, false },
                { "back, while it is down", -7200, true, false },
                { "ahead, with a notice that is later", 7200, false, true },
                { "back, with a notice that is later", -7200, false, true },
                { "ahead, drained by hand before", 7200, false, false, true },
                { "back, drained by hand before", -7200, false, false, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);
                unsigned n = 0;
                const cJSON *pod;
                usec_t began;

                print_message("%s\n", rows[i].what);
                agent_rig_add_pods(r, "db", 2);
                fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2");
                r->config.shutdown_max_usec = 100 * S;
                agent_rig_kill(r);
                agent_rig_start(r);
                run(r, 10 * S);
                if (rows[i].notice) {
                        agent_rig_notice(r, 119 * S);
                        run(r, 5 * S);
                }
                if (rows[i].by_hand) {
                        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
                        run(r, 5 * S);
                }
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                began = virtual_time_now(r->world.time);
                run(r, 20 * S);
                if (rows[i].down) {
                        agent_rig_kill(r);
                        run(r, S);
                        agent_rig_start(r);
                }
                loop_virtual_step_wall(r->loop, rows[i].step_sec * (int64_t) S);
                fake_merge(r->cluster, FAKE_PODS, "default", "db-0", "{'metadata':{'labels':{'a':'b'}}}");
                run(r, began + 60 * S - virtual_time_now(r->world.time)); /* 8 s before T - g */
                FAKE_FOREACH (pod, r->cluster, FAKE_PODS, "default")
                        assert_null(fj_get(pod, "metadata", "deletionTimestamp", NULL));
                if (!rows[i].notice && !rows[i].by_hand) {
                        usec_t left = usec_sub(told_deadline(r), loop_wall(r->loop));

                        assert_in_range(left, 37 * S, 41 * S);
                        assert_true(rows[i].down || agent_rig_said(r, "The clock of this machine was set"));
                }
                run(r, 10 * S); /* 2 s after it */
                FAKE_FOREACH (pod, r->cluster, FAKE_PODS, "default") {
                        n++;
                        assert_in_range(fj_int(pod, 0, "metadata", "deletionGracePeriodSeconds", NULL), 28,
                                        30);
                }
                assert_int_equal(n, 2);
                run(r, 120 * S);
                assert_true(took(r) <= 102 * S);
                assert_true(agent_rig_has_event(r, "Pod", "PodDeletedAtDeadline"));
        }
}

/* Spot notice and shutdown: the earlier end counts; a shutdown that is cancelled gives the notice its own
 * back. */
TEST_CASE(test_notice_and_shutdown) {
        for (unsigned shutdown_first = 0; shutdown_first <= 1; shutdown_first++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
                char *phase;

                print_message("shutdown first: %u\n", shutdown_first);
                if (shutdown_first)
                        assert_true(fake_power_shutdown(r->power, "poweroff", true));
                agent_rig_notice(r, 120 * S);
                run(r, 2500 * MS);
                if (!shutdown_first)
                        assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, 100 * MS);
                assert_true(fake_power_cancel(r->power));
                run(r, 30 * S);
                phase = agent_rig_phase(r);
                assert_string_equal(phase, "Drained"); /* the notice stands */
                free(phase);
                assert_true(agent_rig_unschedulable(r));
                assert_string_equal(agent_phase(r->agent), "Drained");
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, 10 * S);
                assert_true(took(r) < 3 * S);
        }
}

/* When somebody first ends db-0, whose budget lets nobody evict it, and with how much grace. */
static usec_t ended_usec(AgentRig *r, usec_t limit, int64_t *ret_grace_sec) {
        usec_t until = virtual_time_now(r->world.time) + limit;

        while (virtual_time_now(r->world.time) < until) {
                const cJSON *pod = fake_get(r->cluster, FAKE_PODS, "default", "db-0");

                if (!pod || fj_get(pod, "metadata", "deletionTimestamp", NULL)) {
                        *ret_grace_sec = fj_int(pod, 0, "metadata", "deletionGracePeriodSeconds", NULL);
                        return virtual_time_now(r->world.time);
                }
                run(r, 500 * MS);
        }
        return USEC_INFINITY;
}

/* A shutdown that would have ended the pods' time in 8 s is called off after 5: what of it is left nobody may feel.
 * A notice that stood before, one that came meanwhile, one that comes later, and a later shutdown each give the
 * pods all the time that they have by themselves. */
TEST_CASE(test_called_off_gives_time_back) {
        enum { BEFORE, MEANWHILE, LATER, SHUTDOWN };
        static const struct {
                const char *what;
                int notice;
        } rows[] = {
                { "a notice before it", BEFORE },
                { "a notice while it is on", MEANWHILE },
                { "a notice after it", LATER },
                { "another shutdown after it", SHUTDOWN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(0);
                usec_t began, ended;
                int64_t grace = 0;

                print_message("%s\n", rows[i].what);
                agent_rig_add_pods(r, "db", 1);
                fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "1");
                r->config.shutdown_max_usec = 40 * S;
                run(r, 10 * S);
                began = virtual_time_now(r->world.time);
                if (rows[i].notice == BEFORE) {
                        agent_rig_notice(r, 120 * S);
                        run(r, 5 * S);
                }
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, S);
                if (rows[i].notice == MEANWHILE) {
                        began = virtual_time_now(r->world.time);
                        agent_rig_notice(r, 120 * S);
                }
                run(r, 4 * S);
                assert_true(agent_rig_unschedulable(r));
                assert_true(fake_power_cancel(r->power));
                run(r, 10 * S);
                assert_int_equal(agent_rig_unschedulable(r), rows[i].notice <= MEANWHILE);
                assert_int_equal(agent_rig_n_pods(r), 1);
                if (rows[i].notice > MEANWHILE)
                        began = virtual_time_now(r->world.time);
                if (rows[i].notice == LATER)
                        agent_rig_notice(r, 120 * S);
                if (rows[i].notice == SHUTDOWN) {
                        r->config.shutdown_max_usec = 120 * S;
                        assert_true(fake_power_shutdown(r->power, "poweroff", true));
                }
                ended = ended_usec(r, 130 * S, &grace);
                assert_in_range(ended, began + 86 * S, began + 90 * S); /* 120 s, less 2, less its grace */
                assert_in_range(grace, 28, 30);
        }
}

/* The notice that came while a shutdown was on has never been let go of: no moment in which the node is open. */
TEST_CASE(test_notice_outlives_shutdown) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);
        char *phase;

        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        run(r, 500 * MS);
        agent_rig_notice(r, 120 * S);
        run(r, 2100 * MS);
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "\"spot\""));
        assert_true(fake_power_cancel(r->power));
        for (unsigned i = 0; i < 100; i++) {
                run(r, 50 * MS);
                assert_true(agent_rig_unschedulable(r));
        }
        phase = agent_rig_phase(r);
        assert_string_equal(phase, "Drained");
        free(phase);
        agent_rig_kill(r); /* and a crash knows no more of the shutdown */
        agent_rig_start(r);
        run(r, 10 * S);
        assert_string_equal(agent_phase(r->agent), "Drained");
}

/* A person's cordon is not ours: neither claimed nor taken off after the boot. */
TEST_CASE(test_cordon_of_a_person) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':true}}");
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        run(r, 20 * S);
        assert_int_equal(agent_rig_n_pods(r), 0);
        assert_true(took(r) < 5 * S);
        boot(r);
        run(r, 30 * S);
        assert_true(agent_rig_unschedulable(r));
        assert_null(agent_rig_annotation(r, "vesper.sh/interruption"));
}

/* A second shutdown before the first one's marks are off. */
TEST_CASE(test_again_before_ready) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        assert_true(fake_power_shutdown(r->power, "reboot", true));
        run(r, 20 * S);
        assert_true(took(r) < 5 * S);
        agent_rig_kill(r);
        fake_power_boot(r->power);
        agent_rig_reboot(r);
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
        run(r, 60 * S); /* not ready */
        agent_rig_start(r);
        run(r, 5 * S);
        assert_true(agent_rig_unschedulable(r));
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, true);
        agent_rig_add_pods(r, "more", 2);
        assert_true(fake_power_shutdown(r->power, "reboot", true));
        run(r, 20 * S);
        assert_int_equal(agent_rig_n_pods(r), 0);
        assert_true(took(r) < 8 * S);
        boot(r);
        run(r, 30 * S);
        assert_false(agent_rig_unschedulable(r));
}

/* What is configured, and what the machine does not give. */
TEST_CASE(test_settings) {
        static const struct {
                const char *what;
                bool drain;
                int too_short;
                usec_t job;
                bool drains, inhibits;
                const char *said, *left;
        } rows[] = {
                { "Drain=no", false, SHUTDOWN_TOO_SHORT_DEGRADE, 1800 * S, false, false, NULL,
                  "notice The shutdown goes on, 0s after it began: [Shutdown] Drain=no. Pods left on node n1: 2." },
                { "TooShort=degrade", true, SHUTDOWN_TOO_SHORT_DEGRADE, 300 * S, true, true,
                  "Lower [Shutdown] MaxSec=", "after it began: the node is drained. Pods left on node n1: 0." },
                { "TooShort=refuse", true, SHUTDOWN_TOO_SHORT_REFUSE, 300 * S, false, false,
                  "is not drained before",
                  "warning The shutdown goes on, 0s after it began: the machine gives less than [Shutdown] MaxSec=, "
                  "and TooShort=refuse. Pods left on node n1: 2." },
                { "enough, refuse or not", true, SHUTDOWN_TOO_SHORT_REFUSE, 1800 * S, true, true,
                  "by 10min at most", "after it began: the node is drained. Pods left on node n1: 0." },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

                print_message("%s\n", rows[i].what);
                fake_power_set_limits(r->power, &(FakePowerLimits){ 5 * S, rows[i].job, 90 * S });
                r->config.shutdown_drain = rows[i].drain;
                r->config.shutdown_too_short = rows[i].too_short;
                agent_rig_add_pods(r, "web", 2);
                agent_rig_start(r);
                run(r, 10 * S);
                if (rows[i].said && !agent_rig_said(r, rows[i].said))
                        fail_msg("'%s' was not said, but:\n%s", rows[i].said, strbuf_str(&r->lines));
                assert_int_equal(fake_power_is_inhibited(r->power), rows[i].inhibits);
                assert_true(fake_power_shutdown(r->power, "poweroff", true));
                run(r, 20 * S);
                assert_int_equal(evictions(r) > 0, rows[i].drains);
                assert_int_equal(agent_rig_n_pods(r), rows[i].drains ? 0 : 2);
                if (!rows[i].drains)
                        assert_string_equal(r->left, "the machine goes down, and its node is not drained");
                if (!agent_rig_said(r, rows[i].left))
                        fail_msg("'%s' was not said, but:\n%s", rows[i].left, strbuf_str(&r->lines));
                assert_true(took(r) < 8 * S);
        }
}

/* A reload: what TooShort= refused is not refused any more, and the other way round. */
TEST_CASE(test_reconfigured) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        fake_power_set_limits(r->power, &(FakePowerLimits){ 5 * S, 300 * S, 90 * S });
        r->config.shutdown_too_short = SHUTDOWN_TOO_SHORT_REFUSE;
        agent_rig_add_pods(r, "web", 2);
        agent_rig_start(r);
        agent_reconfigured(r->agent); /* before it knows what the machine gives */
        run(r, 10 * S);
        assert_false(fake_power_is_inhibited(r->power));

        print_message("  degrade\n");
        r->config.shutdown_too_short = SHUTDOWN_TOO_SHORT_DEGRADE;
        agent_reconfigured(r->agent);
        run(r, S);
        assert_true(fake_power_is_inhibited(r->power));

        print_message("  refuse\n");
        r->config.shutdown_too_short = SHUTDOWN_TOO_SHORT_REFUSE;
        agent_reconfigured(r->agent);
        run(r, S);
        assert_false(fake_power_is_inhibited(r->power));

        print_message("  refuse, and less is enough\n");
        r->config.shutdown_max_usec = 60 * S;
        agent_reconfigured(r->agent);
        run(r, S);
        assert_true(fake_power_is_inhibited(r->power));
        assert_true(agent_rig_said(r, "by 1min at most"));
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        run(r, 20 * S);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

TEST_CASE(test_kubelet_inhibits) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        fake_power_set_kubelet_inhibits(r->power, true);
        agent_rig_start(r);
        run(r, 5 * S);
        assert_true(agent_rig_said(r, "shutdownGracePeriod: 0s"));
}

/* No bus answers: nobody knows whether the machine goes down. It is asked again for a while; then a stop is a plain
 * stop. */
TEST_CASE(test_silent_bus) {
        _cleanup_(agent_rig_freep) AgentRig *r = running_rig(2);

        fake_power_set_bus(r->power, false);
        agent_rig_stop(r);
        run(r, 12 * S);
        assert_false(r->stopped);
        run(r, 6 * S);
        assert_true(r->stopped);
        assert_int_equal(evictions(r), 0);
}

/* PID 1 stops the unit and is too busy to say why: that is no plain stop. What it answers later is. */
TEST_CASE(test_silent_at_stop) {
        for (unsigned ends = 0; ends <= 1; ends++) {
                _cleanup_(agent_rig_freep) AgentRig *r = running_rig(3);

                print_message("it ends: %u\n", ends);
                fake_power_set_pid1_silent(r->power, true);
                if (ends)
                        assert_true(fake_power_shutdown(r->power, "poweroff", false));
                else
                        agent_rig_stop(r);
                run(r, 4 * S);
                assert_false(r->stopped);
                assert_int_equal(evictions(r), 0);
                fake_power_set_pid1_silent(r->power, false);
                run(r, 30 * S);
                assert_true(r->stopped);
                assert_int_equal(evictions(r), ends ? 3 : 0);
                if (!ends)
                        continue;
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_string_equal(agent_rig_condition(r, "Drained"), "True");
                assert_true(took(r) < 15 * S);
        }
}

/* There is no Node of this machine: nothing to wait for. */
TEST_CASE(test_no_node) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        (void) fake_delete(r->cluster, FAKE_NODES, NULL, RIG_NODE, -1);
        agent_rig_start(r);
        run(r, 10 * S);
        assert_true(fake_power_shutdown(r->power, "poweroff", true));
        run(r, 20 * S);
        assert_true(took(r) < 5 * S);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_drained_first),
                cmocka_unit_test(test_plain_ends_never_drain),
                cmocka_unit_test(test_slow_kubelet),
                cmocka_unit_test(test_slow_kubelet_and_finalizer),
                cmocka_unit_test(test_api_away),
                cmocka_unit_test(test_budget_ends),
                cmocka_unit_test(test_cancelled),
                cmocka_unit_test(test_silent_logind),
                cmocka_unit_test(test_crash_in_the_middle),
                cmocka_unit_test(test_crashes_win_no_time),
                cmocka_unit_test(test_cancelled_and_bad_disk),
                cmocka_unit_test(test_clock_is_set),
                cmocka_unit_test(test_notice_and_shutdown),
                cmocka_unit_test(test_called_off_gives_time_back),
                cmocka_unit_test(test_notice_outlives_shutdown),
                cmocka_unit_test(test_cordon_of_a_person),
                cmocka_unit_test(test_again_before_ready),
                cmocka_unit_test(test_settings),
                cmocka_unit_test(test_reconfigured),
                cmocka_unit_test(test_kubelet_inhibits),
                cmocka_unit_test(test_silent_bus),
                cmocka_unit_test(test_silent_at_stop),
                cmocka_unit_test(test_no_node),
        };

        return cmocka_run_group_tests_name("shutdown", tests, NULL, NULL);
}
