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

/* announced_usec: 0: none. */
static Notice notice_of(usec_t received_usec, usec_t announced_usec) {
        return (Notice){ .id = (char *) "n", .kind = NOTICE_MAINTENANCE, .received_usec = received_usec, .announced_usec = announced_usec };
}

static void count(QueueBrake *b, const char *uid, usec_t received_usec, usec_t announced_usec, usec_t now_usec) {
        const Notice n = notice_of(received_usec, announced_usec);

        assert_int_equal(queue_brake_count(b, uid, &n, USEC_PER_HOUR, now_usec), 1);
}

static size_t counted(QueueBrake *b, usec_t announced_usec, usec_t now_usec) {
        const Notice n = notice_of(now_usec, announced_usec);

        return queue_brake_n_counted(b, &n, USEC_PER_HOUR, now_usec);
}

/* A machine counts once, for ten minutes after each of its notices. */
TEST_CASE(test_window) {
        _cleanup_(queue_brake_freep) QueueBrake *b = NULL;

        assert_return_code(queue_brake_new(&b), 0);
        assert_int_equal(counted(b, 0, NOW), 0);
        count(b, "a", NOW, 0, NOW);
        count(b, "a", NOW, 0, NOW);
        count(b, "b", NOW + USEC_PER_MINUTE, 0, NOW + USEC_PER_MINUTE);
        assert_int_equal(counted(b, 0, NOW + USEC_PER_MINUTE), 2);
        count(b, "a", NOW + 2 * USEC_PER_MINUTE, 0, NOW + 2 * USEC_PER_MINUTE);
        assert_int_equal(counted(b, 0, NOW + USEC_PER_MINUTE + QUEUE_BRAKE_WINDOW_USEC - USEC_PER_SEC), 2);
        assert_int_equal(counted(b, 0, NOW + USEC_PER_MINUTE + QUEUE_BRAKE_WINDOW_USEC), 1);
        assert_int_equal(counted(b, 0, NOW + 2 * USEC_PER_MINUTE + QUEUE_BRAKE_WINDOW_USEC), 0);
        print_message("a time of receipt that is to come, which a kubelet may write, counts from now on\n");
        count(b, "a", NOW + 365 * USEC_PER_DAY, 0, NOW);
        assert_int_equal(counted(b, 0, NOW + QUEUE_BRAKE_WINDOW_USEC), 0);
        print_message("a machine that counted long ago counts anew\n");
        count(b, "c", NOW, 0, NOW);
        count(b, "c", NOW + USEC_PER_HOUR, 0, NOW + USEC_PER_HOUR);
        assert_int_equal(counted(b, 0, NOW + USEC_PER_HOUR), 1);
        assert_int_equal(counted(b, 0, NOW + 2 * USEC_PER_HOUR), 0);
        print_message("a clock that is set back keeps counts for longer, and ends them\n");
        count(b, "a", NOW, 0, NOW);
        assert_int_equal(counted(b, 0, NOW - USEC_PER_MINUTE), 1);
        assert_int_equal(counted(b, 0, NOW + QUEUE_BRAKE_WINDOW_USEC), 0);
}

/* Notices that are collected over days, few in ten minutes, and fall due together. */
TEST_CASE(test_announced_times) {
        const usec_t then = NOW + 3 * USEC_PER_DAY;
        _cleanup_(queue_brake_freep) QueueBrake *b = NULL;

        assert_return_code(queue_brake_new(&b), 0);
        for (unsigned i = 0; i < 12; i++) {
                usec_t now = NOW + i * USEC_PER_HOUR;
                char uid[2] = { (char) ('a' + (char) i), 0 };

                count(b, uid, now, then + i * USEC_PER_SEC, now);
                assert_int_equal(counted(b, then + i * USEC_PER_SEC, now), i + 1);
                assert_int_equal(counted(b, then + USEC_PER_DAY, now), 1);
                assert_int_equal(counted(b, 0, now), 1);
        }
        print_message("when the time comes, they count beside what is announced for now\n");
        count(b, "z", then, 0, then);
        assert_int_equal(counted(b, 0, then), 13);
        print_message("no sender can push a time out: a notice whose times find no room is held\n");
        for (unsigned i = 0; i < 64; i++) {
                const Notice n = notice_of(then, then + (2 + i) * USEC_PER_DAY);

                assert_int_equal(queue_brake_count(b, "y", &n, USEC_PER_HOUR, then), i < 23);
        }
        assert_int_equal(counted(b, then + 365 * USEC_PER_DAY, then), 14);
        print_message("changes that are acted upon at once, an hour before their time, count beside what is for now\n");
        count(b, "x", then, then + USEC_PER_HOUR + USEC_PER_MINUTE, then);
        assert_int_equal(counted(b, then + USEC_PER_HOUR + 2 * USEC_PER_MINUTE, then), 15);
}

TEST_CASE(test_decide) {
        Notice end = { .id = (char *) "end", .kind = NOTICE_SPOT, .action = (char *) "terminate" },
               stop = { .id = (char *) "stop", .kind = NOTICE_SPOT, .action = (char *) "stop" },
               retirement = { .id = (char *) "retirement", .kind = NOTICE_MAINTENANCE, .action = (char *) "terminate" },
               agents_retirement = { .id = (char *) "retirement", .kind = NOTICE_MAINTENANCE, .action = (char *) "stop" },
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
                assert_int_equal(queue_brake_decide(&end, rows[i].same, rows[i].agents, rows[i].n_counted, 10), rows[i].expected);
        }
        print_message("a Spot end for tomorrow, which AWS never sends\n");
        end.announced_usec = NOW + USEC_PER_DAY;
        end.received_usec = NOW;
        assert_int_equal(queue_brake_decide(&end, NULL, NULL, 1, 10), ANNOUNCED_HELD);
        end.announced_usec = NOW + 2 * USEC_PER_MINUTE;
        assert_int_equal(queue_brake_decide(&end, NULL, NULL, 1, 10), ANNOUNCED_STANDS);
        retirement.announced_usec = NOW + USEC_PER_DAY;
        assert_int_equal(queue_brake_decide(&retirement, NULL, NULL, 1, 10), ANNOUNCED_STANDS);
        print_message("the agent reports a retirement as a stop\n");
        assert_true(interruption_confirms(&(Interruption){ .notice = &agents_retirement }, &retirement));
        assert_false(interruption_confirms(&(Interruption){ .notice = &reboot }, &retirement));
        assert_false(interruption_confirms(&agents_stop, &retirement));
        assert_false(interruption_confirms(&(Interruption){ .notice = &agents_retirement }, &end));
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_limit), cmocka_unit_test(test_window),
                                              cmocka_unit_test(test_announced_times), cmocka_unit_test(test_decide) };

        return cmocka_run_group_tests_name("queue-brake", tests, NULL, NULL);
}
