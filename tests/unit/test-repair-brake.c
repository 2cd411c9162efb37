/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "repair-brake-rows.h"
#include "string-util.h"

#define M USEC_PER_MINUTE

/* On virtual time: nodes n0.. are broken, s0.. are successors. */
typedef struct Bench {
        RepairBrake *brake;
        usec_t now;
        unsigned n_nodes, n_successors;
        unsigned n_proved, n_failed;
        char last[16]; /* the node whose repair ended last */
} Bench;

static int setup(void **state) {
        Bench *b = new0(Bench, 1);

        assert_non_null(b);
        b->now = USEC_PER_HOUR;
        *state = b;
        return repair_brake_new(&b->brake);
}

static int teardown(void **state) {
        Bench *b = *state;

        repair_brake_free(b->brake);
        free(b);
        return 0;
}

static void on_ended(const char *uid, bool proved, void *userdata) {
        Bench *b = userdata;

        b->n_proved += proved;
        b->n_failed += !proved;
        snprintf(b->last, sizeof(b->last), "%s", uid);
}

/* In how long the next step is; USEC_INFINITY: never. */
static usec_t step(Bench *b, usec_t in) {
        usec_t next;

        b->now += in;
        next = repair_brake_step(b->brake, b->now, on_ended, b);
        return next == USEC_INFINITY ? next : next - b->now;
}

#define DOMAINS(pool, zone, condition) (&(RepairDomains){ { pool, zone, condition } })

/* As many as it admits. */
static unsigned begin_all(Bench *b, const RepairDomains *d) {
        RepairLimit limit;
        unsigned n = 0;

        for (; n < 100 && repair_brake_admits(b->brake, d, &limit); n++) {
                char uid[16];

                snprintf(uid, sizeof(uid), "n%u", b->n_nodes++);
                assert_return_code(repair_brake_begin(b->brake, uid, NULL, d, b->now), 0);
        }
        return n;
}

/* Successors of that pool come, and are Ready. */
static void succeed(Bench *b, const char *pool, unsigned n) {
        for (unsigned i = 0; i < n; i++) {
                char uid[16];

                snprintf(uid, sizeof(uid), "s%u", b->n_successors++);
                assert_return_code(repair_brake_see_node(b->brake, uid, true, pool, true, b->now), 0);
        }
}

TEST_CASE(test_slow_start) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;
        RepairLimit limit;

        for (unsigned round = 1; round <= 16; round *= 2) {
                print_message("  %u at once\n", round);
                assert_int_equal(begin_all(b, d), round);
                assert_false(repair_brake_admits(b->brake, d, &limit));
                assert_int_equal(limit.n_under_way, round);
                assert_int_equal(limit.n_at_once, round);
                succeed(b, "p", round);
                assert_int_equal(step(b, REPAIR_PROOF_USEC - 1), 1);
                assert_int_equal(begin_all(b, d), 0);
                (void) step(b, 1);
                assert_int_equal(repair_brake_n_under_way(b->brake), 0);
        }
        assert_int_equal(b->n_proved, 31);
        assert_int_equal(b->n_failed, 0);
}

TEST_CASE(test_one_by_one) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        assert_int_equal(begin_all(b, d), 1);
        succeed(b, "p", 1);
        (void) step(b, REPAIR_PROOF_USEC);
        assert_int_equal(begin_all(b, d), 2);
        succeed(b, "p", 1);
        (void) step(b, REPAIR_PROOF_USEC);
        assert_string_equal(b->last, "n1"); /* the oldest */
        assert_int_equal(begin_all(b, d), 2); /* its place, and one more */
}

TEST_CASE(test_failure_takes_it_back) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        for (unsigned round = 1; round <= 4; round *= 2) {
                assert_int_equal(begin_all(b, d), round);
                succeed(b, "p", round);
                (void) step(b, REPAIR_PROOF_USEC);
        }
        assert_int_equal(begin_all(b, d), 8);
        print_message("  seven are proved, one is not\n");
        succeed(b, "p", 7);
        assert_int_equal(step(b, REPAIR_PROOF_USEC), REPAIR_FAILED_USEC - REPAIR_PROOF_USEC);
        assert_int_equal(begin_all(b, DOMAINS(NULL, "z", NULL)), 14);
        (void) step(b, REPAIR_FAILED_USEC - REPAIR_PROOF_USEC);
        assert_int_equal(b->n_failed, 1);
        print_message("  one again, once those under way have ended\n");
        assert_int_equal(begin_all(b, d), 0);
        (void) step(b, REPAIR_PROOF_USEC);
        assert_int_equal(b->n_failed, 15);
        assert_int_equal(begin_all(b, d), 1);
}

TEST_CASE(test_smallest_domain) {
        Bench *b = *state;
        RepairLimit limit;

        assert_int_equal(begin_all(b, DOMAINS("p", "z1", "Ready")), 1);
        print_message("  another pool and zone, the same condition\n");
        assert_false(repair_brake_admits(b->brake, DOMAINS("q", "z2", "Ready"), &limit));
        assert_int_equal(limit.kind, REPAIR_DOMAIN_CONDITION);
        print_message("  the same zone\n");
        assert_false(repair_brake_admits(b->brake, DOMAINS("q", "z1", "Disk"), &limit));
        assert_int_equal(limit.kind, REPAIR_DOMAIN_ZONE);
        print_message("  a zone of the pool's name is no pool; nodes without a zone share none\n");
        assert_int_equal(begin_all(b, DOMAINS("q", "p", "Disk")), 1);
        assert_int_equal(begin_all(b, DOMAINS("r", NULL, "Net")), 1);
        assert_true(repair_brake_admits(b->brake, DOMAINS("s", NULL, "Gpu"), &limit));
        print_message("  the widest of the others does not help\n");
        succeed(b, "p", 1);
        (void) step(b, REPAIR_PROOF_USEC);
        assert_int_equal(begin_all(b, DOMAINS("t", "z1", "Ready")), 1); /* pool t is new */
}

TEST_CASE(test_who_proves) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        assert_int_equal(begin_all(b, d), 1);
        print_message("  one that was there before, one of another pool, one that is not Ready for long enough\n");
        assert_return_code(repair_brake_see_node(b->brake, "old", false, "p", true, b->now), 0);
        assert_return_code(repair_brake_see_node(b->brake, "other", true, "q", true, b->now), 0);
        assert_return_code(repair_brake_see_node(b->brake, "new", true, NULL, false, b->now), 0);
        assert_int_equal(step(b, 6 * M), REPAIR_FAILED_USEC - 6 * M);
        assert_return_code(repair_brake_see_node(b->brake, "new", false, "p", true, b->now), 0);
        (void) step(b, 4 * M);
        assert_return_code(repair_brake_see_node(b->brake, "new", false, "p", false, b->now), 0);
        assert_return_code(repair_brake_see_node(b->brake, "new", false, "p", true, b->now), 0);
        (void) step(b, 4 * M);
        assert_int_equal(b->n_proved, 0);
        (void) step(b, 1 * M);
        assert_int_equal(b->n_proved, 1);

        print_message("  one that came before the repair began, and one that is gone again\n");
        assert_int_equal(begin_all(b, d), 2);
        (void) step(b, 1 * M);
        succeed(b, "p", 2);
        assert_return_code(repair_brake_begin(b->brake, "later", NULL, DOMAINS("p", NULL, NULL), b->now + 1), 0);
        repair_brake_forget_node(b->brake, "s0");
        (void) step(b, REPAIR_PROOF_USEC);
        assert_int_equal(b->n_proved, 2);
        (void) step(b, REPAIR_PROOF_USEC);
        assert_int_equal(b->n_proved, 2);
}

TEST_CASE(test_cancelled) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        assert_int_equal(begin_all(b, d), 1);
        assert_int_equal(repair_brake_begin(b->brake, "n0", NULL, d, b->now), -EEXIST);
        repair_brake_cancel(b->brake, "n0");
        repair_brake_cancel(b->brake, "nobody");
        assert_int_equal(begin_all(b, d), 1);
        assert_int_equal(b->n_failed + b->n_proved, 0);
}

TEST_CASE(test_rebooted) {
        for (size_t i = 0; i < ELEMENTSOF(repair_reboot_rows); i++) {
                const RepairRebootRow *row = repair_reboot_rows + i;
                Bench *b = *state;
                unsigned n = 0;

                print_message("  %s\n", row->what);
                b->n_proved = b->n_failed = 0;
                assert_return_code(repair_brake_begin(b->brake, "n", "b0", DOMAINS("p", "z", "Disk"), b->now), 0);
                for (unsigned min = 1; min <= 30; min++) {
                        (void) step(b, M);
                        if (n < 4 && row->shown[n].at_min == min) {
                                const RepairShown *s = row->shown + n++;

                                repair_brake_see_rebooted(b->brake, "n", s->boot_id, s->ready, s->ails, b->now);
                                (void) step(b, 0);
                        }
                        assert_int_equal(repair_brake_has(b->brake, "n"), min < row->ended_min);
                }
                assert_int_equal(b->n_proved, row->proved);
                assert_int_equal(b->n_failed, !row->proved);
        }
}

/* A repair of another kind takes the place of the first. */
TEST_CASE(test_begun_again) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        assert_int_equal(begin_all(b, d), 1);
        assert_int_equal(repair_brake_begin(b->brake, "n0", NULL, d, b->now), -EEXIST);
        assert_int_equal(step(b, 20 * M), REPAIR_FAILED_USEC - 20 * M);
        assert_int_equal(repair_brake_begin(b->brake, "n0", "b0", DOMAINS("p", "z", "Disk"), b->now), 0);
        assert_int_equal(repair_brake_begin(b->brake, "n0", "b0", d, b->now), -EEXIST);
        assert_int_equal(repair_brake_n_under_way(b->brake), 1);
        assert_int_equal(begin_all(b, DOMAINS("q", NULL, "Ready")), 1);
        assert_int_equal(begin_all(b, DOMAINS("q", NULL, "Disk")), 0);
        print_message("  a successor does not prove it\n");
        succeed(b, "p", 1);
        (void) step(b, REPAIR_PROOF_USEC);
        assert_int_equal(b->n_proved, 0);
}

TEST_CASE(test_calm) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        assert_int_equal(begin_all(b, d), 1);
        succeed(b, "p", 1);
        assert_int_equal(step(b, REPAIR_PROOF_USEC), REPAIR_CALM_USEC);
        (void) step(b, REPAIR_CALM_USEC - 1);
        assert_int_equal(begin_all(b, d), 2);
        repair_brake_cancel(b->brake, "n1");
        repair_brake_cancel(b->brake, "n2");
        assert_int_equal(step(b, REPAIR_CALM_USEC), USEC_INFINITY);
        assert_int_equal(begin_all(b, d), 1);
}

/* The begin of a repair is a movement, too, even if the repair is taken back. */
TEST_CASE(test_calm_since_begin) {
        const RepairDomains *d = DOMAINS("p", "z", "Ready");
        Bench *b = *state;

        assert_int_equal(begin_all(b, d), 1);
        succeed(b, "p", 1);
        (void) step(b, REPAIR_PROOF_USEC);
        (void) step(b, REPAIR_CALM_USEC - 7 * M);
        assert_int_equal(begin_all(b, d), 2);
        repair_brake_cancel(b->brake, "n1");
        repair_brake_cancel(b->brake, "n2");
        assert_int_equal(step(b, 11 * M), REPAIR_CALM_USEC - 11 * M);
        assert_int_equal(begin_all(b, d), 2);
}

/* Repeated reports of a healthy successor do not restart its time: it counts from the first one. */
TEST_CASE(test_successor_is_seen_again) {
        Bench *b = *state;

        assert_int_equal(begin_all(b, DOMAINS("p", "z", "Ready")), 1);
        succeed(b, "p", 1);
        (void) step(b, 4 * M);
        assert_return_code(repair_brake_see_node(b->brake, "s0", false, "p", true, b->now), 0);
        (void) step(b, M);
        assert_int_equal(b->n_proved, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_slow_start), TEST(test_one_by_one), TEST(test_failure_takes_it_back), TEST(test_smallest_domain),
                TEST(test_who_proves), TEST(test_cancelled),  TEST(test_rebooted),             TEST(test_begun_again),
                TEST(test_calm),       TEST(test_calm_since_begin), TEST(test_successor_is_seen_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
