/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "notices-bench.h"

/* Whole agents, whose machine announces several things at once; what [Policy] makes of them. */

/* A reboot in three hours: nothing is moved until an hour before, and the Node says what is planned. */
TEST_CASE(test_before) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "before:1h");

        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_in_service(r);
        assert_string_equal(agent_rig_condition(r, "MaintenancePlanned"), "True");
        assert_true(agent_rig_has_event(r, "Node", "InterruptionPlanned"));
        assert_true(agent_rig_said(r, "Node n1 stays in service until"));

        agent_rig_run(r, 2 * USEC_PER_HOUR - LOOKS_USEC - USEC_PER_MINUTE);
        assert_in_service(r);
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_true(agent_rig_unschedulable(r));
        assert_int_equal(agent_rig_n_pods(r), 0);
}

/* The window of a night: the drain begins with it, long before the reboot; and when somebody sets the clock, by the new time. */
TEST_CASE(test_window) {
        _cleanup_free_ char *rule = NULL;
        AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "now");
        usec_t minute = loop_wall(r->loop) / USEC_PER_MINUTE;

        /* Opens in four hours, by the time that it is in rigs. */
        rule = strf("window:%u %u * * */20min", (unsigned) (minute % 60), (unsigned) ((minute / 60 + 4) % 24));
        assert_non_null(rule);
        agent_rig_free(r);
        r = policy_rig(NOTICE_MAINTENANCE, rule);
        announce(r, "instance-event-1", "system-reboot", 40 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_in_service(r);
        assert_true(agent_rig_said(r, "Node n1 stays in service until"));
        agent_rig_run(r, 3 * USEC_PER_HOUR + 50 * USEC_PER_MINUTE);
        assert_in_service(r);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_int_equal(agent_rig_n_pods(r), 0);
        agent_rig_free(r);

        r = policy_rig(NOTICE_MAINTENANCE, rule);
        announce(r, "instance-event-1", "system-reboot", 40 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_in_service(r);
        fake_imds_hang(r->imds, FAKE_IMDS_ALL, UINT_MAX); /* no poll reminds the agent */
        agent_rig_run(r, 10 * USEC_PER_SEC);
        loop_virtual_step_wall(r->loop, (int64_t) (4 * USEC_PER_HOUR));
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        agent_rig_free(r);
}

/* It is taken back before, and after its drain: the node is as it was. */
TEST_CASE(test_cancelled) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "before:1h");

        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_rig_condition(r, "MaintenancePlanned"), "True");
        fake_imds_set_text(r->imds, EVENTS, "[]");
        agent_rig_run(r, LOOKS_USEC);
        assert_null(agent_rig_condition(r, "MaintenancePlanned"));
        agent_rig_run(r, 3 * USEC_PER_HOUR);
        assert_in_service(r);

        announce(r, "instance-event-2", "system-reboot", USEC_PER_HOUR / 2);
        agent_rig_run(r, LOOKS_USEC + USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        /* An answer that cannot be read takes nothing back. */
        fake_imds_set_text(r->imds, EVENTS, "{}");
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        fake_imds_set_text(r->imds, EVENTS, "[]");
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
}

/* Its time is moved away while it waits: the newest word holds. */
TEST_CASE(test_moved) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "before:1h");

        announce(r, "instance-event-1", "instance-stop", 2 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        announce(r, "instance-event-1", "instance-stop", 10 * USEC_PER_HOUR);
        agent_rig_run(r, 3 * USEC_PER_HOUR);
        assert_in_service(r);
        announce(r, "instance-event-1", "instance-stop", USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC + USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
}

TEST_CASE(test_cordon) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "cordon");

        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Cordoned");
        assert_true(agent_rig_unschedulable(r));
        agent_rig_run(r, USEC_PER_HOUR);
        assert_int_equal(agent_rig_n_pods(r), 3);

        /* The same after a crash. */
        agent_rig_kill(r);
        agent_rig_start(r);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Cordoned");
        assert_int_equal(agent_rig_n_pods(r), 3);

        fake_imds_set_text(r->imds, EVENTS, "[]");
        agent_rig_run(r, LOOKS_USEC);
        assert_in_service(r);
}

/* For so long, and not again for the same notice, nor by an agent that is started later. One that was taken back in between is another
 * occurrence, and what is to be drained for by a rule that was changed is drained for. */
TEST_CASE(test_cordon_for) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "cordon:30min");

        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
        agent_rig_run(r, 20 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Cordoned");
        agent_rig_run(r, 15 * USEC_PER_MINUTE);
        assert_in_service(r);
        agent_rig_run(r, USEC_PER_HOUR);
        assert_in_service(r);
        assert_true(agent_rig_said(r, "the time for which [Policy] cordons the node has passed"));

        agent_rig_kill(r);
        agent_rig_start(r);
        agent_rig_run(r, 20 * USEC_PER_MINUTE);
        assert_in_service(r);
        fake_imds_set_text(r->imds, EVENTS, "[]");
        agent_rig_run(r, LOOKS_USEC);
        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Cordoned");
        agent_rig_run(r, 40 * USEC_PER_MINUTE);
        assert_in_service(r);
        agent_rig_kill(r);
        assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "now"), 0);
        agent_rig_start(r);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
}

/* The same of two that are announced at once, only one of which the node was cordoned for. */
TEST_CASE(test_cordon_for_two) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "cordon:30min");
        _cleanup_free_ char *body = NULL;
        char at[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), 3 * USEC_PER_HOUR), at);
        body = strf("[{\"EventId\": \"instance-event-1\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"},"
                    "{\"EventId\": \"instance-event-2\", \"Code\": \"instance-stop\", \"State\": \"active\", \"NotBefore\": \"%s\"}]",
                    at, at);
        fake_imds_set_text(r->imds, EVENTS, body);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Cordoned");
        agent_rig_run(r, 35 * USEC_PER_MINUTE);
        assert_in_service(r);
        agent_rig_kill(r);
        agent_rig_start(r);
        agent_rig_run(r, LOOKS_USEC);
        assert_in_service(r);
}

/* A spot notice that metadata does not show any more is not taken back by that; the time of its rule passes all the same, also
 * over a restart of the agent and over a feed that shows it again for a while. */
TEST_CASE(test_cordon_for_unseen) {
        static const struct {
                const char *what;
                bool restart, flap;
        } rows[] = {
                { "it is gone", false, false },
                { "and the agent starts anew", true, false },
                { "and comes again in between", false, true },
                { "both", true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                AgentRig *r = policy_rig(NOTICE_SPOT, "cordon:3min");

                print_message("%s\n", rows[i].what);
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 20 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Cordoned");
                fake_imds_clear_action(r->imds);
                agent_rig_run(r, 40 * USEC_PER_SEC);
                if (rows[i].restart) {
                        agent_rig_kill(r);
                        agent_rig_start(r);
                }
                agent_rig_run(r, 20 * USEC_PER_SEC);
                if (rows[i].flap) {
                        agent_rig_notice(r, 40 * USEC_PER_SEC);
                        agent_rig_run(r, 20 * USEC_PER_SEC);
                        fake_imds_clear_action(r->imds);
                } else
                        agent_rig_run(r, 20 * USEC_PER_SEC);
                agent_rig_run(r, 65 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Cordoned"); /* 165 s */
                agent_rig_run(r, 20 * USEC_PER_SEC);
                assert_in_service(r);
                assert_true(agent_rig_said(r, "the time for which [Policy] cordons the node has passed"));
                if (rows[i].flap) {
                        agent_rig_notice(r, 40 * USEC_PER_SEC);
                        agent_rig_run(r, 20 * USEC_PER_SEC);
                        assert_in_service(r);
                        fake_imds_clear_action(r->imds);
                }
                agent_rig_run(r, 20 * USEC_PER_MINUTE);
                assert_in_service(r);
                agent_rig_free(r);
        }
}

/* Without a time it stays until the notice is over, which a spot notice is ten minutes after its own time. The nearer time of
 * another notice is none of its own. */
TEST_CASE(test_cordon_unseen) {
        static const bool restart[] = { false, true };

        for (size_t i = 0; i < ELEMENTSOF(restart); i++) {
                AgentRig *r = policy_rig(NOTICE_SPOT, "cordon");

                assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], "cordon"), 0);
                agent_reconfigured(r->agent);
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Cordoned");
                announce(r, "instance-event-1", "system-reboot", 70 * USEC_PER_SEC);
                agent_rig_run(r, LOOKS_USEC);
                assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "ownDeadlineUptimeUsec"));
                fake_imds_clear_action(r->imds);
                fake_imds_set_text(r->imds, EVENTS, "[]");
                agent_rig_run(r, LOOKS_USEC); /* 150 s after the notice */
                if (restart[i]) {
                        agent_rig_kill(r);
                        agent_rig_start(r);
                }
                agent_rig_run(r, 550 * USEC_PER_SEC); /* more than ten minutes after the time of the reboot */
                assert_string_equal(agent_phase(r->agent), "Cordoned");
                agent_rig_run(r, 40 * USEC_PER_SEC);
                assert_in_service(r);
                agent_rig_free(r);
        }
}

/* A machine that is only cordoned for one notice is drained for another, and when it goes down. */
TEST_CASE(test_cordon_then_spot) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "cordon");
        _cleanup_free_ char *phase = NULL;

        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Cordoned");
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_int_equal(agent_rig_n_pods(r), 0);
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "\"terminate\""));
        phase = agent_rig_phase(r);
        assert_string_equal(phase, "Drained");
}

/* The gravest is told to others, and when it is over, what still stands keeps the node out of service. */
TEST_CASE(test_outranked) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "now");

        announce(r, "instance-event-1", "system-reboot", 6 * USEC_PER_HOUR);
        agent_rig_run(r, LOOKS_USEC + USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "instance-event-1"));

        fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "Terminated");
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "scale-in"));
        assert_string_equal(agent_phase(r->agent), "Drained");

        fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "InService");
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "instance-event-1"));

        fake_imds_set_text(r->imds, EVENTS, "[]");
        agent_rig_run(r, LOOKS_USEC);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
}

TEST_CASE(test_report_and_ignore) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_REBALANCE, "report"), *q = policy_rig(NOTICE_REBALANCE, "ignore"),
                                            *d = policy_rig(NOTICE_REBALANCE, "now");

        fake_imds_set_text(r->imds, FAKE_IMDS_REBALANCE, "{\"noticeTime\":\"2026-10-26T08:22:00Z\"}");
        agent_rig_run(r, LOOKS_USEC);
        assert_in_service(r);
        assert_true(agent_rig_has_event(r, "Node", "RebalanceRecommendation"));
        fake_imds_set_text(q->imds, FAKE_IMDS_REBALANCE, "{\"noticeTime\":\"2026-10-26T08:22:00Z\"}");
        agent_rig_run(q, LOOKS_USEC);
        assert_in_service(q);
        assert_false(agent_rig_has_event(q, "Node", "RebalanceRecommendation"));
        fake_imds_set_text(d->imds, FAKE_IMDS_REBALANCE, "{\"noticeTime\":\"2026-10-26T08:22:00Z\"}");
        agent_rig_run(d, LOOKS_USEC);
        assert_string_equal(agent_phase(d->agent), "Drained");
        agent_rig_free(q);
        agent_rig_free(d);
        q = d = NULL;
}

/* Everything is said, and nothing is done. */
TEST_CASE(test_dry_run) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        _cleanup_free_ char *writes = NULL;

        r->config.dry_run = true;
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_true(agent_rig_said(r, "this is a dry run (DryRun=yes); the node would be cordoned and drained now"));
        assert_true(agent_rig_has_event(r, "Node", "Notice"));
        writes = agent_rig_writes(r);
        assert_string_equal(writes, "");
}

/* -- when, how often, and which one ------------------------------------------------------------------- */

static double counted(AgentRig *r, const char *kind) {
        _cleanup_free_ char *series = strf("vesper_agent_notices_total{kind=\"%s\"}", kind);

        return agent_rig_metric(r, series);
}

/* Runs until the phase is another one. Returns the boot time at which that was. */
static usec_t phase_changes(AgentRig *r, const char *from, usec_t within_usec) {
        usec_t until = usec_add(virtual_time_now(r->world.time), within_usec);

        while (streq(agent_phase(r->agent), from)) {
                assert_true(virtual_time_now(r->world.time) < until);
                agent_rig_run(r, USEC_PER_SEC / 10);
        }
        return virtual_time_now(r->world.time);
}

/* Metadata answers no more after the announcement, so no poll reminds the agent: the times of [Policy] come all the same. */
TEST_CASE(test_silent_source) {
        static const struct {
                const char *what, *rule;
                NoticeKind kind;
                bool is_withdrawn, restart; /* before metadata falls silent; the agent starts again after that */
                const char *at_first, *then;
                usec_t after_usec; /* counted from its first phase */
        } rows[] = {
                { "the time before it", "before:1h", NOTICE_MAINTENANCE, false, false, "Idle", "Cordoned", 2 * USEC_PER_HOUR },
                { "a time to cordon", "cordon:30min", NOTICE_MAINTENANCE, false, false, "Cordoned", "Idle", 30 * USEC_PER_MINUTE },
                { "a time to cordon, restarted", "cordon:30min", NOTICE_MAINTENANCE, false, true, "Cordoned", "Idle", 30 * USEC_PER_MINUTE },
                { "a time to cordon for what is not shown any more", "cordon:3min", NOTICE_SPOT, true, false, "Cordoned", "Idle",
                  3 * USEC_PER_MINUTE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(rows[i].kind, rows[i].rule);
                usec_t begun = virtual_time_now(r->world.time), changed;

                print_message("%s\n", rows[i].what);
                if (rows[i].kind == NOTICE_SPOT)
                        agent_rig_notice(r, 120 * USEC_PER_SEC);
                else
                        announce(r, "instance-event-1", "system-reboot", 3 * USEC_PER_HOUR);
                if (streq(rows[i].at_first, "Cordoned"))
                        begun = phase_changes(r, "Idle", LOOKS_USEC);
                if (rows[i].is_withdrawn)
                        fake_imds_clear_action(r->imds);
                agent_rig_run(r, rows[i].kind == NOTICE_SPOT ? 5 * USEC_PER_SEC : LOOKS_USEC);
                fake_imds_hang(r->imds, FAKE_IMDS_ALL, UINT_MAX);
                if (rows[i].restart) {
                        agent_rig_kill(r);
                        agent_rig_start(r);
                        agent_rig_run(r, 5 * USEC_PER_SEC);
                }
                assert_string_equal(agent_phase(r->agent), rows[i].at_first);
                changed = phase_changes(r, rows[i].at_first, 4 * USEC_PER_HOUR);
                assert_in_range(changed - begun, rows[i].after_usec - 2 * USEC_PER_SEC, rows[i].after_usec + 2 * USEC_PER_SEC);
                assert_int_equal(agent_rig_unschedulable(r), !streq(rows[i].then, "Idle"));
        }
}

/* Each announcement counts once, whatever becomes of it and however often it is shown. */
TEST_CASE(test_counted_once) {
        static const struct {
                const char *what, *rule;
                bool dry_run;
                unsigned hours; /* until its time */
                const char *phase;
                double n;
        } rows[] = {
                { "planned, then drained for", "before:1h", false, 3, "Drained", 1 },
                { "planned, and its time has not come", "before:1h", false, 9, "Idle", 1 },
                { "drained for", "now", false, 9, "Drained", 1 },
                { "cordoned for", "cordon", false, 9, "Cordoned", 1 },
                { "cordoned for a while", "cordon:10min", false, 9, "Idle", 1 },
                { "reported", "report", false, 9, "Idle", 1 },
                { "ignored", "ignore", false, 9, "Idle", 0 },
                { "a dry run", "now", true, 9, "Idle", 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

                print_message("%s\n", rows[i].what);
                r->config.dry_run = rows[i].dry_run;
                assert_return_code(free_and_strdup(&r->config.policy[NOTICE_MAINTENANCE], rows[i].rule), 0);
                agent_rig_add_pods(r, "web", 3);
                agent_rig_start(r);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                announce(r, "instance-event-1", "system-reboot", rows[i].hours * USEC_PER_HOUR);
                agent_rig_run(r, 2 * USEC_PER_HOUR + 10 * USEC_PER_MINUTE);
                assert_string_equal(agent_phase(r->agent), rows[i].phase);
                assert_true(counted(r, "maintenance") == rows[i].n);
                assert_int_equal(n_said(r, "this is a dry run (DryRun=yes)"), rows[i].dry_run);
                /* Gone, and shown again: another announcement. */
                fake_imds_set_text(r->imds, EVENTS, "[]");
                agent_rig_run(r, LOOKS_USEC);
                announce(r, "instance-event-1", "system-reboot", rows[i].hours * USEC_PER_HOUR);
                agent_rig_run(r, LOOKS_USEC);
                assert_true(counted(r, "maintenance") == 2 * rows[i].n);
                assert_true(counted(r, "spot") == 0);
        }
}

/* When a notice goes, the gravest of those that stand takes its place, whatever their order. */
TEST_CASE(test_gravest_stands) {
        static const char *const codes[][2] = { { "system-reboot", "instance-stop" }, { "instance-stop", "system-reboot" } };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "now");
                _cleanup_free_ char *body = NULL;
                char at[RFC3339_MAX];

                fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "Terminated");
                agent_rig_run(r, LOOKS_USEC);
                assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "scale-in"));
                rfc3339_format(usec_add(loop_wall(r->world.loop), 6 * USEC_PER_HOUR), at);
                body = strf("[{\"EventId\": \"instance-event-1\", \"Code\": \"%s\", \"State\": \"active\", \"NotBefore\": \"%s\"},"
                            "{\"EventId\": \"instance-event-2\", \"Code\": \"%s\", \"State\": \"active\", \"NotBefore\": \"%s\"}]",
                            codes[i][0], at, codes[i][1], at);
                fake_imds_set_text(r->imds, EVENTS, body);
                agent_rig_run(r, LOOKS_USEC);
                fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "InService");
                agent_rig_run(r, LOOKS_USEC);
                assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), i == 0 ? "instance-event-2" : "instance-event-1"));
        }
}

/* Sets an event for each row of (id, code, hours from the start). */
static void announce_all(AgentRig *r, const unsigned *hours, size_t n, usec_t start_usec) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        for (size_t i = 0; i < n; i++) {
                char at[RFC3339_MAX];

                rfc3339_format(usec_add(start_usec, hours[i] * USEC_PER_HOUR), at);
                strbuf_addf(&b, "%s{\"EventId\": \"instance-event-%u\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}",
                            i > 0 ? "," : "[", hours[i], at);
        }
        strbuf_add(&b, n > 0 ? "]" : "[]");
        fake_imds_set_text(r->imds, EVENTS, strbuf_str(&b));
        agent_rig_run(r, LOOKS_USEC);
}

static void assert_planned(AgentRig *r, unsigned hour, usec_t start_usec) {
        _cleanup_free_ char *text = NULL;
        char at[RFC3339_MAX];

        rfc3339_format(usec_add(start_usec, hour * USEC_PER_HOUR - USEC_PER_HOUR), at);
        text = strf("moves this node's pods away from %s on", at);
        assert_string_equal(agent_rig_condition(r, "MaintenancePlanned"), "True");
        assert_non_null(strstr(fj_string(fj_find(fj_get(agent_rig_node(r), "status", "conditions", NULL), "type", "MaintenancePlanned"),
                                         "message", NULL),
                               text));
}

/* The Node shows the first plan, in whatever order the plans are announced, and whichever goes. */
TEST_CASE(test_first_plan) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "before:1h");
        usec_t start = loop_wall(r->world.loop) / USEC_PER_SEC * USEC_PER_SEC;

        announce_all(r, (const unsigned[]){ 9, 7, 5, 8 }, 4, start);
        assert_planned(r, 5, start);
        announce_all(r, (const unsigned[]){ 9, 7, 8 }, 3, start);
        assert_planned(r, 7, start);
        announce_all(r, (const unsigned[]){ 7, 8 }, 2, start);
        assert_planned(r, 7, start);
        announce_all(r, (const unsigned[]){ 8, 6 }, 2, start);
        assert_planned(r, 6, start);
        announce_all(r, NULL, 0, start);
        assert_null(agent_rig_condition(r, "MaintenancePlanned"));
        assert_true(counted(r, "maintenance") == 5);
        assert_in_service(r);
}

/* A source fails the agent's configured number of times, answers, and fails again: each time is logged once. */
TEST_CASE(test_source_fails_again) {
        _cleanup_(agent_rig_freep) AgentRig *r = policy_rig(NOTICE_MAINTENANCE, "now");

        for (unsigned round = 1; round <= 3; round++) {
                fake_imds_fail(r->imds, FAKE_IMDS_DATA, 0, 500);
                agent_rig_run(r, USEC_PER_MINUTE);
                strbuf_truncate(&r->lines, 0);
                fake_imds_set_action_text(r->imds, "{");
                while (!agent_rig_said(r, "no usable answer 3 times in a row"))
                        agent_rig_run(r, USEC_PER_SEC / 10);
                fake_imds_clear_action(r->imds);
                agent_rig_run(r, USEC_PER_MINUTE);
                assert_int_equal(n_said(r, "no usable answer 3 times in a row"), 1);
                assert_int_equal(n_said(r, "Source ec2 answers again."), 1);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_before),
                cmocka_unit_test(test_window),
                cmocka_unit_test(test_cancelled),
                cmocka_unit_test(test_moved),
                cmocka_unit_test(test_cordon),
                cmocka_unit_test(test_cordon_for),
                cmocka_unit_test(test_cordon_for_two),
                cmocka_unit_test(test_cordon_for_unseen),
                cmocka_unit_test(test_cordon_unseen),
                cmocka_unit_test(test_cordon_then_spot),
                cmocka_unit_test(test_outranked),
                cmocka_unit_test(test_report_and_ignore),
                cmocka_unit_test(test_dry_run),
                cmocka_unit_test(test_silent_source),
                cmocka_unit_test(test_counted_once),
                cmocka_unit_test(test_gravest_stands),
                cmocka_unit_test(test_first_plan),
                cmocka_unit_test(test_source_fails_again),
        };
        return cmocka_run_group_tests_name("notices", tests, NULL, NULL);
}
