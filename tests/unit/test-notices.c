/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "agent-rig.h"
#include "cmocka-test.h"
#include "fake-azure-metadata.h"
#include "fake-gce-metadata.h"
#include "notice-sources.h"
#include "string-util.h"
#include "texts.h"

/* Whole agents, whose machine announces several things at once; what [Policy] makes of them. */

#define EVENTS "events/maintenance/scheduled"
/* Every feed has been looked at anew by then. */
#define LOOKS_USEC (70 * USEC_PER_SEC)

static AgentRig *policy_rig(NoticeKind kind, const char *rule) {
        AgentRig *r = agent_rig_new();

        assert_return_code(free_and_strdup(&r->config.policy[kind], rule), 0);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        return r;
}

static size_t n_said(AgentRig *r, const char *part) {
        return text_count(strempty(r->lines.data), part);
}

static void announce(AgentRig *r, const char *id, const char *code, usec_t in_usec) {
        _cleanup_free_ char *body = NULL;
        char at[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), in_usec), at);
        body = strf("[{\"EventId\": \"%s\", \"Code\": \"%s\", \"State\": \"active\", \"NotBefore\": \"%s\"}]", id, code, at);
        fake_imds_set_text(r->imds, EVENTS, body);
}

static void assert_in_service(AgentRig *r) {
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        assert_int_equal(agent_rig_n_pods(r), 3);
}

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

/* -- whose machine it is ------------------------------------------------------------------------- */

TEST_CASE(test_firmware) {
        static const struct {
                FirmwareFacts facts;
                MetadataSource source;
        } rows[] = {
#define S(s) ((char *) (uintptr_t) (s))
                { { .sys_vendor = S("Amazon EC2"), .bios_version = S("1.0") }, METADATA_SOURCE_EC2 },
                { { .sys_vendor = S("Xen"), .bios_version = S("4.11.amazon") }, METADATA_SOURCE_EC2 },
                { { .hypervisor_uuid = S("ec2e1916-9099-7caf-fd21-012345abcdef") }, METADATA_SOURCE_EC2 },
                { { .sys_vendor = S("Google"), .product_name = S("Google Compute Engine") }, METADATA_SOURCE_GCE },
                { { .sys_vendor = S("Google"), .product_name = S("Caroline") }, METADATA_SOURCE_NONE },
                { { .sys_vendor = S("Microsoft Corporation"), .chassis_asset_tag = S("7783-7084-3265-9085-8269-3286-77") },
                  METADATA_SOURCE_AZURE },
                { { .sys_vendor = S("Microsoft Corporation"), .product_name = S("Virtual Machine") }, METADATA_SOURCE_NONE },
                { { .sys_vendor = S("QEMU"), .bios_version = S("1.16.2-debian-1.16.2-1") }, METADATA_SOURCE_NONE },
                { { .sys_vendor = S("Amazon") }, METADATA_SOURCE_NONE },
                { { .hypervisor_uuid = S("00000000-0000-0000-0000-000000000000") }, METADATA_SOURCE_NONE },
                { { 0 }, METADATA_SOURCE_NONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(metadata_source_of_firmware(&rows[i].facts), rows[i].source);
        assert_int_equal(metadata_source_of_provider_id("aws:///us-east-1a/i-0123456789abcdef0"), METADATA_SOURCE_EC2);
        assert_int_equal(metadata_source_of_provider_id("gce://p/us-central1-a/n1"), METADATA_SOURCE_GCE);
        assert_int_equal(metadata_source_of_provider_id("kind://docker/kind/kind-worker"), METADATA_SOURCE_NONE);
        assert_int_equal(metadata_source_of_provider_id(""), METADATA_SOURCE_NONE);
        assert_int_equal(metadata_source_of_provider_id(NULL), METADATA_SOURCE_NONE);
}

/* Which instance this is, Nitro's firmware says; what is read below a root is what an agent goes by. */
TEST_CASE(test_firmware_instance) {
        static const struct {
                FirmwareFacts facts;
                const char *instance;
        } rows[] = {
                { { .sys_vendor = S("Amazon EC2"), .board_asset_tag = S(RIG_INSTANCE) }, RIG_INSTANCE },
                { { .sys_vendor = S("Amazon EC2"), .board_asset_tag = S("Amazon EC2") }, NULL },
                { { .sys_vendor = S("Amazon EC2") }, NULL },
                { { .sys_vendor = S("QEMU"), .board_asset_tag = S(RIG_INSTANCE) }, NULL },
                { { 0 }, NULL },
        };
        char root[] = "/tmp/test-notices-XXXXXX";
        _cleanup_free_ char *make = NULL, *remove = NULL;
        AgentConfig c = { .detected_instance = "before" };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *found = metadata_instance_of_firmware(&rows[i].facts);

                assert_true(streq_ptr(found, rows[i].instance));
        }
        metadata_source_detect("/nonexistent", &c);
        assert_int_equal(c.detected_cloud, METADATA_SOURCE_NONE);
        assert_string_equal(c.detected_instance, "");
        assert_non_null(mkdtemp(root));
        make = strf("mkdir -p %s/sys/class/dmi/id && cd %s/sys/class/dmi/id && echo Amazon EC2 >sys_vendor && echo " RIG_INSTANCE " >board_asset_tag",
                    root, root);
        remove = strf("rm -r %s", root);
        assert_int_equal(system(make), 0);
        metadata_source_detect(root, &c);
        assert_int_equal(system(remove), 0);
        assert_int_equal(c.detected_cloud, METADATA_SOURCE_EC2);
        assert_string_equal(c.detected_instance, RIG_INSTANCE);
}

/* A firmware that says nothing: by the Node, once that is known. */
TEST_CASE(test_auto) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.metadata_source = METADATA_SOURCE_AUTO;
        r->config.detected_cloud = METADATA_SOURCE_NONE;
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "This is a machine of EC2 by the providerID of its node: its notices are read."));
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
}

TEST_CASE(test_auto_bare_metal) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        r->config.metadata_source = METADATA_SOURCE_AUTO;
        r->config.detected_cloud = METADATA_SOURCE_NONE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'kind://docker/kind/n1'}}");
        agent_rig_start(r);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "no metadata service is read"));
        assert_int_equal(fake_imds_n_gets(r->imds), 0);
}

#define OTHER_INSTANCE "i-0fedcba9876543210"

/* Metadata that answers for another machine takes this one out of service for nothing, and says so once; by the right machine's it
 * is acted upon again. */
TEST_CASE(test_foreign_metadata) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        agent_rig_add_pods(r, "web", 3);
        fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        announce(r, "instance-event-1", "instance-stop", USEC_PER_HOUR / 2);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_null(agent_rig_condition(r, "MaintenancePlanned"));
        assert_int_equal(n_said(r, "speaks for another machine: for " OTHER_INSTANCE), 1);
        assert_true(agent_rig_has_event(r, "Node", "ForeignMetadata"));
        assert_int_equal(n_said(r, "no usable answer"), 0);

        fake_imds_clear_action(r->imds);
        fake_imds_set_text(r->imds, EVENTS, "[]");
        fake_imds_set_instance_id(r->imds, RIG_INSTANCE);
        fake_imds_revoke(r->imds);
        agent_rig_run(r, 2 * USEC_PER_MINUTE);
        assert_true(agent_rig_said(r, "Source ec2 answers again."));

        /* In the middle of its life, and with a notice in the first answer: another machine's takes none of this one's tokens. */
        fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
        fake_imds_revoke(r->imds);
        agent_rig_notice(r, 120 * USEC_PER_SEC);
        fake_imds_set_text(r->imds, FAKE_IMDS_LIFECYCLE, "Terminated");
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for " OTHER_INSTANCE), 2);

        fake_imds_set_instance_id(r->imds, RIG_INSTANCE);
        fake_imds_revoke(r->imds);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");

        /* What its own machine's has announced stays announced when another one's answers meanwhile. */
        fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
        fake_imds_revoke(r->imds);
        fake_imds_set_text(r->imds, EVENTS, "[]");
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 20 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_int_equal(n_said(r, "speaks for another machine: for " OTHER_INSTANCE), 3);
}

/* A Node that was registered by an earlier machine of its name. What the firmware says settles it; without it nothing does. */
TEST_CASE(test_foreign_provider_id) {
        static const struct {
                const char *firmware;
                const char *phase;
        } rows[] = {
                { OTHER_INSTANCE, "Drained" },
                { RIG_INSTANCE, "Idle" },
                { "", "Idle" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                AgentRig *r = agent_rig_new();
                bool own = streq(rows[i].phase, "Drained");

                (void) snprintf(r->config.detected_instance, sizeof(r->config.detected_instance), "%s", rows[i].firmware);
                fake_imds_set_instance_id(r->imds, OTHER_INSTANCE);
                agent_rig_add_pods(r, "web", 3);
                agent_rig_start(r);
                agent_rig_run(r, USEC_PER_MINUTE);
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 30 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), rows[i].phase);
                assert_int_equal(n_said(r, "its providerID is that of another machine: aws:///"), own);
                assert_int_equal(agent_rig_has_event(r, "Node", "ForeignProviderID"), own);
                assert_int_equal(agent_rig_has_event(r, "Node", "ForeignMetadata"), !own);
                assert_true(agent_rig_said(r, "kubectl delete node n1"));
                agent_rig_free(r);
        }
}

#define GCE_ID "4520031799277581759"
#define GCE_OTHER_ID "1111111111111111111"

/* Metadata that answered for another VM at the start, and has a preemption of it: asked anew while that lasts, also by a server that
 * does not answer that at once; when it is this VM's, what it announces is acted upon. */
TEST_CASE(test_named_anew_gce) {
        AgentRig *r = agent_rig_new();
        FakeGceMetadata *gce = fake_gce_metadata_new(r->world.loop, &(FakeGceMetadataOptions){ .name = "n2", .id = GCE_OTHER_ID });
        size_t gets;

        r->metadata = fake_gce_metadata_handle;
        r->metadata_userdata = gce;
        r->config.metadata_source = METADATA_SOURCE_GCE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'gce://p/us-central1-a/n1'}}");
        fake_gce_metadata_set_preempted(gce, true);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 1);
        gets = fake_gce_metadata_n_gets(gce);
        agent_rig_run(r, 130 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 3); /* every hour */
        assert_in_range(fake_gce_metadata_n_gets(gce) - gets, 130 * 4, 130 * 6 + 10); /* the feeds, and two a minute */

        /* An id alone changes nothing; neither does a question without an answer. */
        fake_gce_metadata_set_name(gce, NULL);
        fake_gce_metadata_set_id(gce, GCE_ID);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        fake_gce_metadata_set_name(gce, "n1");
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(agent_rig_said(r, "Source gce answers again."));
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), GCE_ID "-preempted-"));
        agent_rig_kill(r);
        fake_gce_metadata_free(gce);
        agent_rig_free(r);
}

/* Metadata that did not tell its name at the agent's start, and has a preemption, which is acted upon: no time is to be lost. Once its name is
 * told, and is another VM's, the node is back in service, without a restart of the agent. */
TEST_CASE(test_named_late_gce) {
        AgentRig *r = agent_rig_new();
        FakeGceMetadata *gce = fake_gce_metadata_new(r->world.loop, &(FakeGceMetadataOptions){ .name = "n2", .id = GCE_OTHER_ID });

        r->metadata = fake_gce_metadata_handle;
        r->metadata_userdata = gce;
        r->config.metadata_source = METADATA_SOURCE_GCE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'gce://p/us-central1-a/n1'}}");
        fake_gce_metadata_set_name(gce, NULL);
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        fake_gce_metadata_set_preempted(gce, true);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        fake_gce_metadata_set_name(gce, "n2");
        agent_rig_run(r, 90 * USEC_PER_SEC);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 1);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        agent_rig_kill(r);
        fake_gce_metadata_free(gce);
        agent_rig_free(r);
}

TEST_CASE(test_named_anew_azure) {
        AgentRig *r = agent_rig_new();
        FakeAzureEvents *events = fake_azure_events_new(r->world.loop);
        FakeAzureMetadata *azure = fake_azure_metadata_new(r->world.loop, events, &(FakeAzureMetadataOptions){ .name = "n2" });
        size_t n;

        r->metadata = fake_azure_metadata_handle;
        r->metadata_userdata = azure;
        r->config.metadata_source = METADATA_SOURCE_AZURE;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'spec':{'providerID':'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/n1'}}");
        fake_azure_events_add(events, &(FakeAzureEvent){ .type = "Terminate", .resources = "n2", .lead_usec = USEC_PER_HOUR });
        agent_rig_add_pods(r, "web", 3);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        assert_int_equal(n_said(r, "speaks for another machine: for n2"), 1);
        assert_int_equal(n_said(r, "Asking for the scheduled events of VM"), 1);
        n = fake_azure_metadata_n_requests(azure);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_azure_metadata_n_requests(azure) - n, 300, 320); /* a poll of 2 s, and once a minute */

        fake_azure_metadata_set_name(azure, NULL);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_in_service(r);
        fake_azure_metadata_set_name(azure, "n1");
        fake_azure_events_add(events, &(FakeAzureEvent){ .type = "Terminate", .resources = "n1", .lead_usec = USEC_PER_HOUR });
        agent_rig_run(r, 3 * USEC_PER_MINUTE);
        assert_true(agent_rig_said(r, "Source azure answers again."));
        assert_string_equal(agent_phase(r->agent), "Drained");
        agent_rig_kill(r);
        fake_azure_metadata_free(azure);
        fake_azure_events_free(events);
        agent_rig_free(r);
}

/* A Node without a providerID names no machine: metadata is believed. When it gets one that is another machine's, what was begun
 * for that is undone, also by an agent that was started in between; with its own it goes on. */
TEST_CASE(test_provider_id_comes_late) {
        static const struct {
                const char *id, *phase;
                bool restart;
        } rows[] = {
                { RIG_INSTANCE, "Drained", false },
                { OTHER_INSTANCE, "Idle", false },
                { RIG_INSTANCE, "Drained", true },
                { OTHER_INSTANCE, "Idle", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                AgentRig *r = agent_rig_new();

                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':null}}");
                agent_rig_add_pods(r, "web", 3);
                agent_rig_start(r);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                agent_rig_notice(r, 120 * USEC_PER_SEC);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Drained");
                if (rows[i].restart)
                        agent_rig_kill(r);
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'providerID':'aws:///us-east-1a/%s'}}", rows[i].id);
                if (rows[i].restart)
                        agent_rig_start(r);
                agent_rig_run(r, USEC_PER_MINUTE);
                assert_string_equal(agent_phase(r->agent), rows[i].phase);
                assert_int_equal(agent_rig_unschedulable(r), streq(rows[i].phase, "Drained"));
                agent_rig_free(r);
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
                cmocka_unit_test(test_firmware),
                cmocka_unit_test(test_firmware_instance),
                cmocka_unit_test(test_auto),
                cmocka_unit_test(test_auto_bare_metal),
                cmocka_unit_test(test_foreign_metadata),
                cmocka_unit_test(test_foreign_provider_id),
                cmocka_unit_test(test_named_anew_gce),
                cmocka_unit_test(test_named_late_gce),
                cmocka_unit_test(test_named_anew_azure),
                cmocka_unit_test(test_provider_id_comes_late),
        };
        return cmocka_run_group_tests_name("notices", tests, NULL, NULL);
}
