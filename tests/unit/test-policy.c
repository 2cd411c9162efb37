/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)
#define IN(sec) (NOW + (sec) *USEC_PER_SEC)
#define BOOTED (UINT64_C(900) * USEC_PER_SEC) /* of the wall clock */

static void test_decide(void **state) {
        static const PolicySettings settings = { .lb_wait_usec = 30 * USEC_PER_SEC };
        static const struct {
                const char *what;
                NoticeKind kind;
                NoticeCertainty certainty;
                usec_t deadline;
                bool drain;
                usec_t lb_wait_sec;
        } rows[] = {
                { "two minutes of EC2", NOTICE_SPOT, NOTICE_CERTAIN, IN(120), true, 0 },
                { "just short of five minutes", NOTICE_SPOT, NOTICE_CERTAIN, IN(300) - 1, true, 0 },
                { "five minutes", NOTICE_SPOT, NOTICE_CERTAIN, IN(300), true, 30 },
                { "no deadline was said", NOTICE_MANUAL, NOTICE_CERTAIN, USEC_INFINITY, true, 30 },
                { "its time has passed", NOTICE_SPOT, NOTICE_CERTAIN, NOW - 1, true, 0 },
                { "a rebalance recommendation", NOTICE_REBALANCE, NOTICE_CERTAIN, USEC_INFINITY, false, 0 },
                { "anything that is only advice", NOTICE_SPOT, NOTICE_ADVISORY, IN(120), false, 0 },
                { "maintenance", NOTICE_MAINTENANCE, NOTICE_CERTAIN, IN(3600), true, 30 },
                { "scale-in", NOTICE_SCALE_IN, NOTICE_CERTAIN, IN(60), true, 0 },
                { "a shutdown", NOTICE_SHUTDOWN, NOTICE_CERTAIN, IN(5), true, 0 },
                { "a shutdown that may take long", NOTICE_SHUTDOWN, NOTICE_CERTAIN, IN(600), true, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .kind = rows[i].kind,
                                   .certainty = rows[i].certainty,
                                   .deadline_usec = rows[i].deadline };
                Plan p = policy_decide(&n, &settings, NOW);

                print_message("%s\n", rows[i].what);
                assert_int_equal(p.drain, rows[i].drain);
                assert_true(p.lb_wait_usec == rows[i].lb_wait_sec * USEC_PER_SEC);
                assert_non_null(p.why);
        }
}

static usec_t on_wall(usec_t at_usec) {
        return at_usec > 0 ? at_usec + BOOTED : 0;
}

static void test_drain_deadline(void **state) {
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
                cmocka_unit_test(test_drain_deadline),
        };
        return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
