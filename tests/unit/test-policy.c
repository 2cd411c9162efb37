/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "macro.h"
#include "policy.h"
#include "string-util.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)
#define IN(sec) (NOW + (sec) *USEC_PER_SEC)
#define BOOTED (UINT64_C(900) * USEC_PER_SEC) /* of the wall clock */

#define HOUR ((usec_t) USEC_PER_HOUR)

/* As agent.conf comes. */
static const PolicySettings defaults = {
        .lb_wait_usec = 30 * USEC_PER_SEC,
        .rules = {
                [NOTICE_SPOT] = { .verb = POLICY_NOW },
                [NOTICE_REBALANCE] = { .verb = POLICY_REPORT },
                [NOTICE_MAINTENANCE] = { .verb = POLICY_BEFORE, .span_usec = HOUR },
                [NOTICE_SCALE_IN] = { .verb = POLICY_NOW },
                [NOTICE_CAPACITY_BLOCK] = { .verb = POLICY_BEFORE, .span_usec = HOUR },
                [NOTICE_SHUTDOWN] = { .verb = POLICY_REPORT }, /* no rule is asked */
                [NOTICE_MANUAL] = { .verb = POLICY_IGNORE },
        },
};

TEST_CASE(test_decide) {
        static const struct {
                const char *what;
                NoticeKind kind;
                NoticeCertainty certainty;
                usec_t deadline;
                PlanAct act;
                usec_t lb_wait_sec, begin;
        } rows[] = {
                { "two minutes of EC2", NOTICE_SPOT, NOTICE_CERTAIN, IN(120), PLAN_DRAIN, 0, 0 },
                { "just short of five minutes", NOTICE_SPOT, NOTICE_CERTAIN, IN(300) - 1, PLAN_DRAIN, 0, 0 },
                { "five minutes", NOTICE_SPOT, NOTICE_CERTAIN, IN(300), PLAN_DRAIN, 30, 0 },
                { "no deadline was said", NOTICE_MANUAL, NOTICE_CERTAIN, USEC_INFINITY, PLAN_DRAIN, 30, 0 },
                { "its time has passed", NOTICE_SPOT, NOTICE_CERTAIN, NOW - 1, PLAN_DRAIN, 0, 0 },
                { "a rebalance recommendation", NOTICE_REBALANCE, NOTICE_ADVISORY, USEC_INFINITY, PLAN_REPORT, 0, 0 },
                { "anything that is only advice", NOTICE_MAINTENANCE, NOTICE_ADVISORY, IN(120), PLAN_REPORT, 0, 0 },
                { "maintenance within the hour", NOTICE_MAINTENANCE, NOTICE_CERTAIN, IN(1800), PLAN_DRAIN, 30, NOW - HOUR / 2 },
                { "maintenance in a day", NOTICE_MAINTENANCE, NOTICE_CERTAIN, NOW + 24 * HOUR, PLAN_DRAIN, 30, NOW + 23 * HOUR },
                { "maintenance at no known time", NOTICE_MAINTENANCE, NOTICE_CERTAIN, USEC_INFINITY, PLAN_DRAIN, 30, 0 },
                { "scale-in", NOTICE_SCALE_IN, NOTICE_CERTAIN, IN(60), PLAN_DRAIN, 0, 0 },
                { "scale-in at no known time", NOTICE_SCALE_IN, NOTICE_CERTAIN, USEC_INFINITY, PLAN_DRAIN, 0, 0 },
                { "a shutdown", NOTICE_SHUTDOWN, NOTICE_CERTAIN, IN(5), PLAN_DRAIN, 0, 0 },
                { "a shutdown that may take long", NOTICE_SHUTDOWN, NOTICE_CERTAIN, IN(600), PLAN_DRAIN, 0, 0 },
                { "a kind of a later version", _NOTICE_KIND_INVALID, NOTICE_CERTAIN, IN(600), PLAN_REPORT, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .kind = rows[i].kind,
                                   .certainty = rows[i].certainty,
                                   .deadline_usec = rows[i].deadline };
                Plan p = policy_decide(&n, &defaults, NOW, BOOTED);

                print_message("%s\n", rows[i].what);
                assert_int_equal(p.act, rows[i].act);
                assert_true(p.lb_wait_usec == rows[i].lb_wait_sec * USEC_PER_SEC);
                assert_true(p.begin_usec == rows[i].begin);
                assert_non_null(p.why);
        }
}

/* Each rule on one notice of a maintenance that is an hour away. */
TEST_CASE(test_rules) {
        static const struct {
                const char *text;
                PlanAct act;
                usec_t begin, span;
        } rows[] = {
                { "now", PLAN_DRAIN, 0, 0 },
                { "before:10min", PLAN_DRAIN, IN(3000), 0 },
                { "before:3h", PLAN_DRAIN, NOW - 2 * HOUR, 0 },
                { "cordon", PLAN_CORDON, 0, USEC_INFINITY },
                { "cordon:30min", PLAN_CORDON, 0, HOUR / 2 },
                { "report", PLAN_REPORT, 0, 0 },
                { "ignore", PLAN_IGNORE, 0, 0 },
        };
        static const char *const bad[] = {
                "", "later", "now:5min", "before", "before:", "before:soon", "before:0", "before:infinity", "cordon:", "report:1h",
                "ignore:", "Now", " now", "before:-5min", "window", "window:", "window:/2h", "window:0 3 * * *", "window:0 3 * * */2",
                "window:0 3 * * */90", "window:0 3 * * */2s", "window:0 3 * * */infinity", "window:0 3 * */2h", "window:0 3 30 2 */2h",
                "window:0 3 * * * Nowhere/Land/2h", "window:@daily/2h before:", "window:@daily/2h before:0", "window:@daily/2h after:1h",
        };
        const char *expected;
        PolicyRule rule;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .kind = NOTICE_MAINTENANCE, .deadline_usec = NOW + HOUR };
                PolicySettings settings = defaults;
                Plan p;

                print_message("%s\n", rows[i].text);
                assert_return_code(policy_rule_parse(rows[i].text, &settings.rules[NOTICE_MAINTENANCE], &expected), 0);
                p = policy_decide(&n, &settings, NOW, BOOTED);
                assert_int_equal(p.act, rows[i].act);
                assert_true(p.begin_usec == rows[i].begin);
                assert_true(p.span_usec == rows[i].span);
                policy_rule_done(&settings.rules[NOTICE_MAINTENANCE]);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                print_message("'%s'\n", bad[i]);
                assert_int_equal(policy_rule_parse(bad[i], &rule, &expected), -EINVAL);
                assert_non_null(expected);
        }
}

static usec_t wall_at(const char *text) {
        usec_t usec;

        assert_return_code(rfc3339_parse(text, &usec), 0);
        return usec;
}

/* Windows are of the wall clock, the plan is of the boot-time clock, which began at BOOTED. It is a Wednesday. */
TEST_CASE(test_windows) {
        static const struct {
                const char *what, *rule, *now, *deadline, *begin; /* deadline NULL: not said; begin NULL: at once */
        } rows[] = {
                { "it comes in time", "window:0 3 * * */2h", "2026-11-25T12:00:00Z", "2026-11-26T12:00:00Z", "2026-11-26T03:00:00Z" },
                { "it is open", "window:0 3 * * */2h", "2026-11-25T04:59:00Z", "2026-11-26T12:00:00Z", NULL },
                { "it opens", "window:0 3 * * */2h", "2026-11-25T03:00:00Z", "2026-11-26T12:00:00Z", NULL },
                { "it has just closed", "window:0 3 * * */2h", "2026-11-25T05:00:00Z", "2026-11-27T12:00:00Z", "2026-11-26T03:00:00Z" },
                { "it comes too late", "window:0 3 * * sat/2h", "2026-11-25T12:00:00Z", "2026-11-26T12:00:00Z", "2026-11-26T11:00:00Z" },
                { "it opens within the last hour", "window:0 3 * * */2h", "2026-11-25T12:00:00Z", "2026-11-26T03:30:00Z", "2026-11-26T02:30:00Z" },
                { "more is needed than an hour", "window:@weekly/1h before:6h", "2026-11-25T12:00:00Z", "2026-11-26T12:00:00Z",
                  "2026-11-26T06:00:00Z" },
                { "the last hour is there", "window:0 3 * * */2h", "2026-11-25T12:00:00Z", "2026-11-25T12:30:00Z", "2026-11-25T11:30:00Z" },
                { "no deadline is said", "window:@monthly UTC/1day", "2026-11-25T12:00:00Z", NULL, "2026-12-01T00:00:00Z" },
                { "slashes in it", "window:*/30 2-4/2 * * */45min", "2026-11-25T12:00:00Z", NULL, "2026-11-26T02:00:00Z" },
        };
        const char *expected;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .kind = NOTICE_MAINTENANCE,
                                   .deadline_usec = rows[i].deadline ? wall_at(rows[i].deadline) - BOOTED : USEC_INFINITY };
                PolicySettings settings = defaults;
                Plan p;

                print_message("%s: %s\n", rows[i].what, rows[i].rule);
                assert_return_code(policy_rule_parse(rows[i].rule, &settings.rules[NOTICE_MAINTENANCE], &expected), 0);
                p = policy_decide(&n, &settings, wall_at(rows[i].now) - BOOTED, BOOTED);
                assert_int_equal(p.act, PLAN_DRAIN);
                assert_true(p.begin_usec == (rows[i].begin ? wall_at(rows[i].begin) - BOOTED : 0));
                policy_rule_done(&settings.rules[NOTICE_MAINTENANCE]);
        }
}

/* Reboot= alone, of reboots alone. */
TEST_CASE(test_reboot_rule) {
        static const struct {
                const char *text, *action;
                int parsed;
                bool early;
                PlanAct act;
                usec_t begin;
        } rows[] = {
                { NULL, "reboot", -ENODATA, false, PLAN_DRAIN, IN(0) },
                { "early", "reboot", 0, true, PLAN_DRAIN, IN(0) },
                { "report", "reboot", 0, false, PLAN_REPORT, 0 },
                { "report", "stop", 0, false, PLAN_DRAIN, IN(0) },
                { "before:30min", "reboot", 0, false, PLAN_DRAIN, IN(1800) },
        };
        static const char *const bad[] = { "", "Early", "early:1h", "before:", "soon" };
        const char *expected;
        PolicyRule rule;
        bool early;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char action[8];
                Notice n = { .kind = NOTICE_MAINTENANCE, .action = strcpy(action, rows[i].action), .deadline_usec = NOW + HOUR };
                PolicySettings settings = defaults;
                Plan p;

                assert_int_equal(policy_reboot_parse(rows[i].text, &settings.reboot, &settings.early, &expected), rows[i].parsed);
                settings.has_reboot = rows[i].parsed >= 0 && !rows[i].early;
                assert_int_equal(settings.early, rows[i].early);
                p = policy_decide(&n, &settings, NOW, BOOTED);
                assert_int_equal(p.act, rows[i].act);
                assert_true(p.begin_usec == rows[i].begin);
                p = policy_plan_early(&n, &settings, NOW);
                assert_int_equal(p.act, PLAN_DRAIN);
                assert_true(p.begin_usec == 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                assert_int_equal(policy_reboot_parse(bad[i], &rule, &early, &expected), -EINVAL);
                assert_non_null(expected);
        }
}

static usec_t on_wall(usec_t at_usec) {
        return at_usec > 0 ? at_usec + BOOTED : 0;
}

TEST_CASE(test_drain_deadline) {
        static const struct {
                const char *what;
                usec_t notice, claim, deadline, announced;
        } rows[] = {
                { "the notice alone", IN(120), 0, IN(118) },
                { "an earlier T of the claim", IN(120), IN(60), IN(58) },
                { "a later one", IN(120), IN(600), IN(118) },
                { "T alone", USEC_INFINITY, IN(60), IN(58) },
                { "neither", USEC_INFINITY, 0, USEC_INFINITY },
                { "no time at all", 1, 0, 0 },
                { "our clock is behind, T is that of the notice", IN(120), IN(7320), IN(118), IN(7320) },
                { "our clock is ahead, T is that of the notice", IN(30), 5, IN(28), 5 },
                { "our clock is ahead, T is earlier still", IN(30), IN(10), IN(8), IN(11) },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .deadline_usec = rows[i].notice, .announced_usec = on_wall(rows[i].announced) };

                print_message("%s\n", rows[i].what);
                assert_true(policy_drain_deadline(&n, on_wall(rows[i].claim), BOOTED) == rows[i].deadline);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decide),
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_windows),
                cmocka_unit_test(test_reboot_rule),
                cmocka_unit_test(test_drain_deadline),
        };
        return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
