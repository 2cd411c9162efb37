/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "reflex-rule.h"
#include "string-util.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define SECONDS(n) ((n) * USEC_PER_SEC)

static Notice notice(const char *id, NoticeKind kind, const char *action) {
        return (Notice){ .id = (char *) id,
                         .kind = kind,
                         .source = (char *) "ec2",
                         .action = (char *) action,
                         .announced_usec = NOW + SECONDS(120),
                         .deadline_usec = SECONDS(120) };
}

TEST_CASE(test_gives_way) {
        static const struct {
                const char *name;
                NoticeKind kind;
                const char *action, *other;
                bool only_cordon;
                PlanAct act;
                bool expected;
        } rows[] = {
                { "a drain by hand, to anything", NOTICE_MANUAL, NULL, "reboot", false, PLAN_CORDON, true },
                { "a shutdown, to anything", NOTICE_SHUTDOWN, NULL, "terminate", false, PLAN_DRAIN, true },
                { "a reboot, to an end", NOTICE_MAINTENANCE, "reboot", "terminate", false, PLAN_DRAIN, true },
                { "a stop, to an end for good", NOTICE_MAINTENANCE, "stop", "terminate", false, PLAN_DRAIN, true },
                { "an end, to an end", NOTICE_SPOT, "terminate", "terminate", false, PLAN_DRAIN, false },
                { "an end, to a reboot", NOTICE_SPOT, "terminate", "reboot", false, PLAN_DRAIN, false },
                { "a reboot, to an end that is only cordoned for", NOTICE_MAINTENANCE, "reboot", "terminate", false, PLAN_CORDON, false },
                { "a cordon, to a drain", NOTICE_MAINTENANCE, "reboot", "reboot", true, PLAN_DRAIN, true },
                { "a cordon, to a cordon", NOTICE_MAINTENANCE, "reboot", "terminate", true, PLAN_CORDON, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice acted = notice("a", rows[i].kind, rows[i].action);
                const Notice other = notice("b", NOTICE_SPOT, rows[i].other);
                const Plan plan = { .act = rows[i].act };

                print_message("%s\n", rows[i].name);
                assert_int_equal(reflex_rule_gives_way(&acted, rows[i].only_cordon, &other, &plan), rows[i].expected);
        }
}

TEST_CASE(test_wants_empty) {
        const Notice before = notice("a", NOTICE_MAINTENANCE, "reboot"), other = notice("b", NOTICE_MAINTENANCE, "reboot");
        Notice by_hand = notice("a", NOTICE_MAINTENANCE, "reboot");

        by_hand.by_hand = BY_HAND_DRAIN;
        assert_false(reflex_rule_wants_empty(&before, &before));
        assert_true(reflex_rule_wants_empty(&before, &other));
        assert_true(reflex_rule_wants_empty(&before, &by_hand));
}

/* What is seen two minutes before the end, of the same notice or of another one: which news is that? */
TEST_CASE(test_take) {
        Notice acted, seen, *copy;
        ReflexNews news;

#define ROW(what, id, changed, deadline, nearer, for_others, ...) \
        do { \
                print_message("%s\n", what); \
                acted = notice("a", NOTICE_SPOT, "terminate"); \
                seen = notice(id, NOTICE_SPOT, "terminate"); \
                __VA_ARGS__; \
                assert_return_code(notice_copy(&acted, &copy), 0); \
                assert_return_code(reflex_rule_take(copy, &seen, &news), 0); \
                assert_int_equal(news.is_changed, changed); \
                assert_int_equal(news.is_deadline_changed, deadline); \
                assert_int_equal(news.is_nearer, nearer); \
                assert_int_equal(news.is_for_others, for_others); \
                notice_free(copy); \
        } while (0)

        ROW("the same", "a", false, false, false, false, (void) 0);
        ROW("later", "a", false, false, false, false, seen.deadline_usec = SECONDS(180));
        ROW("counted anew", "a", true, true, false, false, seen.deadline_usec = SECONDS(120) - 1);
        ROW("counted anew, a second less", "a", true, true, false, false, seen.deadline_usec = SECONDS(119));
        ROW("more than a second less", "a", true, true, false, true, seen.deadline_usec = SECONDS(118));
        ROW("five seconds less", "a", true, true, false, true, seen.deadline_usec = SECONDS(115));
        ROW("more than five seconds less", "a", true, true, true, true, seen.deadline_usec = SECONDS(115) - 1);
        ROW("announced for earlier", "a", true, false, false, true, seen.announced_usec = NOW + SECONDS(119));
        ROW("it may begin later", "a", true, false, false, true, seen.not_before_usec = NOW + SECONDS(60));
        ROW("another action", "a", true, false, false, true, seen.action = (char *) "stop");
        ROW("it names other machines", "a", true, false, false, true,
            seen.resources = (char *[]){ (char *) "m1", (char *) "m2", NULL });

        ROW("another one, for the same time", "b", false, false, false, false, (void) 0);
        ROW("another one, for later", "b", false, false, false, false,
            seen.deadline_usec = SECONDS(180), seen.announced_usec = NOW + SECONDS(180));
        ROW("another one, a second earlier", "b", true, true, false, false, seen.deadline_usec = SECONDS(119));
        ROW("another one, a minute earlier", "b", true, true, true, true,
            seen.deadline_usec = SECONDS(60), seen.announced_usec = NOW + SECONDS(60));
        ROW("another one, of other machines", "b", false, false, false, false,
            seen.resources = (char *[]){ (char *) "m1", (char *) "m2", NULL });
        ROW("there was no time", "b", true, true, true, true,
            acted.deadline_usec = USEC_INFINITY, acted.announced_usec = 0);
#undef ROW
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_gives_way),
                cmocka_unit_test(test_wants_empty),
                cmocka_unit_test(test_take),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
