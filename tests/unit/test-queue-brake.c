/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "queue-brake.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)

TEST_CASE(test_limit) {
        static const struct {
                size_t n_machines, limit;
        } rows[] = { { 0, 10 }, { 1, 10 }, { 100, 10 }, { 109, 10 }, { 110, 11 }, { 5000, 500 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(queue_brake_limit(rows[i].n_machines), rows[i].limit);
}

static void count(QueueBrake *b, const char *uid, usec_t received_usec, usec_t now_usec) {
        assert_return_code(queue_brake_count(b, uid, received_usec, now_usec), 0);
}

/* A machine counts once, from its last notice on, for ten minutes. */
TEST_CASE(test_window) {
        _cleanup_(queue_brake_freep) QueueBrake *b = NULL;

        assert_return_code(queue_brake_new(&b), 0);
        assert_int_equal(queue_brake_n_counted(b, NOW), 0);
        count(b, "a", NOW, NOW);
        count(b, "a", NOW, NOW);
        count(b, "b", NOW + USEC_PER_MINUTE, NOW + USEC_PER_MINUTE);
        assert_int_equal(queue_brake_n_counted(b, NOW + USEC_PER_MINUTE), 2);
        count(b, "a", NOW + 2 * USEC_PER_MINUTE, NOW + 2 * USEC_PER_MINUTE);
        print_message("an earlier time, as a leader may read it, takes nothing back\n");
        count(b, "a", NOW, NOW + 2 * USEC_PER_MINUTE);
        assert_int_equal(queue_brake_n_counted(b, NOW + USEC_PER_MINUTE + QUEUE_BRAKE_WINDOW_USEC - USEC_PER_SEC), 2);
        assert_int_equal(queue_brake_n_counted(b, NOW + USEC_PER_MINUTE + QUEUE_BRAKE_WINDOW_USEC), 1);
        assert_int_equal(queue_brake_n_counted(b, NOW + 2 * USEC_PER_MINUTE + QUEUE_BRAKE_WINDOW_USEC), 0);
        print_message("a time that is to come, which a kubelet may write, counts from now on\n");
        count(b, "a", NOW + 365 * USEC_PER_DAY, NOW);
        assert_int_equal(queue_brake_n_counted(b, NOW + QUEUE_BRAKE_WINDOW_USEC), 0);
        print_message("a clock that is set back keeps counts for longer, and ends them\n");
        count(b, "a", NOW, NOW);
        assert_int_equal(queue_brake_n_counted(b, NOW - USEC_PER_HOUR), 1);
        assert_int_equal(queue_brake_n_counted(b, NOW + QUEUE_BRAKE_WINDOW_USEC), 0);
}

TEST_CASE(test_decide) {
        Notice end = { .id = (char *) "end", .kind = NOTICE_SPOT, .action = (char *) "terminate" },
               stop = { .id = (char *) "stop", .kind = NOTICE_SPOT, .action = (char *) "stop" },
               retirement = { .id = (char *) "retirement", .kind = NOTICE_MAINTENANCE, .action = (char *) "terminate" },
               reboot = { .id = (char *) "reboot", .kind = NOTICE_MAINTENANCE, .action = (char *) "reboot" },
               advice = { .id = (char *) "advice", .kind = NOTICE_REBALANCE, .action = (char *) "terminate", .certainty = NOTICE_ADVISORY };
        const Interruption agents_end = { .notice = &end }, agents_stop = { .notice = &stop }, agents_advice = { .notice = &advice };
        const Announced held = { .notice = &end, .state = ANNOUNCED_HELD }, stands = { .notice = &end, .state = ANNOUNCED_STANDS };
        const struct {
                const char *what;
                const Announced *same;
                const Interruption *agents;
                size_t n_counted;
                AnnouncedState expected;
        } rows[] = {
                { "the first", NULL, NULL, 1, ANNOUNCED_STANDS },
                { "the last that may", NULL, NULL, 10, ANNOUNCED_STANDS },
                { "one too many", NULL, NULL, 11, ANNOUNCED_HELD },
                { "one too many, that the agent reports", NULL, &agents_end, 11, ANNOUNCED_STANDS },
                { "one too many, and the agent reports less", NULL, &agents_stop, 11, ANNOUNCED_HELD },
                { "one too many, that the agent calls a recommendation", NULL, &agents_advice, 11, ANNOUNCED_HELD },
                { "another time for one that is held", &held, NULL, 1, ANNOUNCED_HELD },
                { "the same, that the agent reports", &held, &agents_end, 11, ANNOUNCED_STANDS },
                { "another time for one that stands", &stands, NULL, 10, ANNOUNCED_STANDS },
                { "another time for many that stand", &stands, NULL, 11, ANNOUNCED_HELD },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                assert_int_equal(queue_brake_decide(&end, rows[i].same, rows[i].agents, rows[i].n_counted, 100), rows[i].expected);
        }
        print_message("a stop confirms a retirement, a reboot does not\n");
        assert_true(notice_is_confirmed_by(&retirement, notice_rank(&stop)));
        assert_false(notice_is_confirmed_by(&retirement, notice_rank(&reboot)));
        assert_false(notice_is_confirmed_by(&end, notice_rank(&stop)));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit), cmocka_unit_test(test_window), cmocka_unit_test(test_decide) };

        return cmocka_run_group_tests_name("queue-brake", tests, NULL, NULL);
}
