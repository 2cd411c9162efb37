/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "json.h"
#include "notice.h"
#include "string-util.h"

#define T0 (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */

static Notice *make(const char *action, usec_t not_before_usec, usec_t deadline_usec) {
        Notice n = {
                .id = (char *) (uintptr_t) "i-1-terminate-b",
                .kind = NOTICE_SPOT,
                .source = (char *) (uintptr_t) "ec2",
                .action = (char *) (uintptr_t) action,
                .not_before_usec = not_before_usec,
                .deadline_usec = deadline_usec,
        };
        Notice *copy;

        assert_return_code(notice_copy(&n, &copy), 0);
        return copy;
}

static void test_kinds(void **state) {
        for (NoticeKind k = 0; k < _NOTICE_KIND_MAX; k++)
                assert_int_equal(notice_kind_from_string(notice_kind_to_string(k)), k);
        assert_int_equal(notice_kind_from_string("sport"), _NOTICE_KIND_INVALID);
        assert_int_equal(notice_kind_from_string(NULL), _NOTICE_KIND_INVALID);
        assert_null(notice_kind_to_string(_NOTICE_KIND_MAX));
}

static void test_ends_machine(void **state) {
        static const struct {
                const char *action;
                bool ends;
        } rows[] = {
                { "terminate", true }, { "stop", true }, { "hibernate", true },
                { "reboot", false },   { NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *n = make(rows[i].action, 0, T0);

                assert_int_equal(notice_ends_machine(n), rows[i].ends);
        }
}

static void test_merge(void **state) {
        static const struct {
                const char *what;
                const char *known_action, *seen_action, *action;
                usec_t known_deadline, seen_deadline, deadline;
                usec_t known_not_before, seen_not_before;
                bool changed;
        } rows[] = {
                { "the same again", "stop", "stop", "stop", T0, T0, T0, 0, 0, false },
                { "an earlier deadline wins", "stop", "stop", "stop", T0, T0 - 1, T0 - 1, 0, 0, true },
                { "a later one does not", "stop", "stop", "stop", T0, T0 + 1, T0, 0, 0, false },
                { "none becomes one", "stop", "stop", "stop", USEC_INFINITY, T0, T0, 0, 0, true },
                { "one does not become none", "stop", "stop", "stop", T0, USEC_INFINITY, T0, 0, 0, false },
                { "the newer action", "stop", "terminate", "terminate", T0, T0, T0, 0, 0, true },
                { "an action that was not said", NULL, "stop", "stop", T0, T0, T0, 0, 0, true },
                { "the newer begin", "stop", "stop", "stop", T0, T0, T0, T0 - 5, T0 - 3, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *known =
                        make(rows[i].known_action, rows[i].known_not_before, rows[i].known_deadline);
                _cleanup_(notice_freep) Notice *seen =
                        make(rows[i].seen_action, rows[i].seen_not_before, rows[i].seen_deadline);
                bool changed = !rows[i].changed;

                print_message("%s\n", rows[i].what);
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_int_equal(changed, rows[i].changed);
                assert_string_equal(known->action, rows[i].action);
                assert_true(known->deadline_usec == rows[i].deadline);
                assert_true(known->not_before_usec == rows[i].seen_not_before);
        }
}

/* What was announced and what our clock makes of it are two times; the earlier wins for each. */
static void test_announced(void **state) {
        static const struct {
                const char *what;
                usec_t known[2], seen[2], deadline, announced; /* deadline_usec, announced_usec */
                bool changed;
        } rows[] = {
                { "none is apart", { T0, 0 }, { T0 + 9, 0 }, T0, T0, false },
                { "the same again, by a slow clock", { T0, T0 + 7200 }, { T0, T0 + 7200 }, T0, T0 + 7200, false },
                { "the giver's moves", { T0, T0 + 7200 }, { T0, T0 + 7100 }, T0, T0 + 7100, true },
                { "a clock was put right", { T0, T0 + 7200 }, { T0 + 7200, 0 }, T0, T0 + 7200, false },
                { "a fast clock after one that was right", { T0, 0 }, { T0 + 30, T0 - 3600 }, T0, T0 - 3600, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Notice known = { .deadline_usec = rows[i].known[0], .announced_usec = rows[i].known[1] },
                       seen = { .deadline_usec = rows[i].seen[0], .announced_usec = rows[i].seen[1] };

                print_message("%s\n", rows[i].what);
                assert_int_equal(notice_take_nearer(&known, &seen), rows[i].changed);
                assert_true(known.deadline_usec == rows[i].deadline);
                assert_true(notice_announced(&known) == rows[i].announced);
        }
}

#define HOUR (3600 * USEC_PER_SEC)
#define B0 (T0 - 9 * HOUR)

/* A deadline that was judged by a clock which has been set since says nothing. */
static void test_clock_was_set(void **state) {
        static const struct {
                const char *what;
                usec_t known[3], seen[3], deadline,
                        announced; /* deadline_usec, announced_usec, booted_usec */
                bool changed;
        } rows[] = {
                { "it was behind, and is right",
                  { T0, T0 + HOUR, B0 },
                  { T0 + HOUR, 0, B0 + HOUR },
                  T0 + HOUR,
                  T0 + HOUR,
                  true },
                { "it was ahead, and is right",
                  { T0, T0 - HOUR, B0 },
                  { T0 - HOUR, 0, B0 - HOUR },
                  T0 - HOUR,
                  T0 - HOUR,
                  true },
                { "it is wrong otherwise",
                  { T0, T0 - HOUR, B0 },
                  { T0 + 2 * HOUR, T0, B0 + 2 * HOUR },
                  T0 + 2 * HOUR,
                  T0 - HOUR,
                  true },
                { "it was right", { T0, 0, B0 }, { T0 + HOUR, T0, B0 + HOUR }, T0 + HOUR, T0, true },
                { "it is right, and nearer was announced once",
                  { T0, T0 + HOUR - 9, B0 },
                  { T0 + HOUR, 0, B0 + HOUR },
                  T0 + HOUR - 9,
                  T0 + HOUR - 9,
                  true },
                { "a second is no step",
                  { T0, T0 + 9, B0 },
                  { T0 + 9, 0, B0 + USEC_PER_SEC },
                  T0,
                  T0 + 9,
                  false },
                { "the same clock", { T0, T0 + HOUR, B0 }, { T0 + HOUR, 0, B0 }, T0, T0 + HOUR, false },
                { "none was noted", { T0, T0 + HOUR, 0 }, { T0 + HOUR, 0, B0 }, T0, T0 + HOUR, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *known = make("stop", 0, rows[i].known[0]),
                                               *seen = make("stop", 0, rows[i].seen[0]);
                bool changed = !rows[i].changed;

                print_message("%s\n", rows[i].what);
                known->announced_usec = rows[i].known[1];
                known->booted_usec = rows[i].known[2];
                seen->announced_usec = rows[i].seen[1];
                seen->booted_usec = rows[i].seen[2];
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_int_equal(changed, rows[i].changed);
                assert_true(known->deadline_usec == rows[i].deadline);
                assert_true(notice_announced(known) == rows[i].announced);
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_false(changed);
        }
}

/* What is left stays as much when the clock is set, */
static void test_follow_clock(void **state) {
        static const struct {
                const char *what;
                usec_t n[3], booted; /* deadline_usec, announced_usec, booted_usec */
                usec_t deadline, announced;
        } rows[] = {
                { "the clock is put right", { T0, T0 + HOUR, B0 }, B0 + HOUR, T0 + HOUR, T0 + HOUR },
                { "back", { T0, T0 - HOUR, B0 }, B0 - HOUR, T0 - HOUR, T0 - HOUR },
                { "it was not set", { T0, T0 + HOUR, B0 }, B0 + USEC_PER_SEC, T0, T0 + HOUR },
                { "what was announced is told as before", { T0, 0, B0 }, B0 + HOUR, T0 + HOUR, T0 },
                { "none was judged", { T0, T0 + HOUR, 0 }, B0, T0, T0 + HOUR },
                { "without a deadline", { USEC_INFINITY, T0, B0 }, B0 + HOUR, USEC_INFINITY, T0 },
                { "before 1970", { HOUR, T0, T0 }, T0 - 2 * HOUR, 0, T0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *n = make("stop", 0, rows[i].n[0]);

                print_message("%s\n", rows[i].what);
                n->announced_usec = rows[i].n[1];
                n->booted_usec = rows[i].n[2];
                assert_int_equal(notice_follow_clock(n, rows[i].booted), rows[i].deadline != rows[i].n[0]);
                assert_true(n->deadline_usec == rows[i].deadline);
                assert_true(notice_announced(n) == rows[i].announced);
                assert_false(notice_follow_clock(n, rows[i].booted));
        }
}

/* until it gives way to what was announced, once the clock agrees with that; not to another assumption. */
static void test_follow_clock_and_merge(void **state) {
        _cleanup_(notice_freep) Notice *known = make("stop", 0, T0), *wrong = make("stop", 0, T0 + HOUR + 9),
                                       *right = make("stop", 0, T0 + HOUR + 99);
        bool changed;

        known->announced_usec = wrong->announced_usec = T0 + HOUR + 99;
        known->booted_usec = B0;
        wrong->booted_usec = right->booted_usec = B0 + HOUR;
        assert_true(notice_follow_clock(known, B0 + HOUR));
        assert_return_code(notice_merge(known, wrong, &changed), 0);
        assert_false(changed);
        assert_true(known->deadline_usec == T0 + HOUR);
        assert_return_code(notice_merge(known, right, &changed), 0);
        assert_true(changed);
        assert_true(known->deadline_usec == T0 + HOUR + 99 && known->announced_usec == 0);
        assert_return_code(notice_merge(known, right, &changed), 0);
        assert_false(changed);
}

/* What a machine gives to its own shutdown is a time from then on: it moves, known and seen are compared by
 * the newer clock, and the earlier one counts. */
static void test_shutdown_and_clock(void **state) {
        static const struct {
                const char *what;
                usec_t known[2], seen[2], deadline; /* deadline_usec, booted_usec */
                bool changed;
        } rows[] = {
                { "the clock was put forward", { T0, B0 }, { T0 + HOUR + 9, B0 + HOUR }, T0 + HOUR, true },
                { "and back", { T0, B0 }, { T0 - HOUR + 9, B0 - HOUR }, T0 - HOUR, true },
                { "forward, and it is nearer now",
                  { T0, B0 },
                  { T0 + HOUR - 9, B0 + HOUR },
                  T0 + HOUR - 9,
                  true },
                { "the same clock, later", { T0, B0 }, { T0 + 9, B0 + USEC_PER_SEC }, T0, false },
                { "the same clock, nearer", { T0, B0 }, { T0 - 9, B0 }, T0 - 9, true },
                { "none was noted", { T0, 0 }, { T0 + HOUR, B0 }, T0, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *known = make("poweroff", 0, rows[i].known[0]),
                                               *seen = make("poweroff", 0, rows[i].seen[0]);
                bool changed = !rows[i].changed;

                print_message("%s\n", rows[i].what);
                known->kind = seen->kind = NOTICE_SHUTDOWN;
                known->booted_usec = rows[i].known[1];
                seen->booted_usec = rows[i].seen[1];
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_int_equal(changed, rows[i].changed);
                assert_true(known->deadline_usec == rows[i].deadline);
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_false(changed);
                assert_true(notice_deadline_by(known, seen->booted_usec + HOUR) ==
                            known->deadline_usec + (known->booted_usec > 0
                                                            ? HOUR + seen->booted_usec - known->booted_usec
                                                            : 0));
        }
}

static char *format(const Notice *n) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        notice_to_json(n, w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static int parse(const char *text, Notice **ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert_return_code(json_parse(text, strlen(text), 65536, &doc, NULL), 0);
        return notice_from_json(json_root(doc), ret);
}

static void test_json(void **state) {
        static const struct {
                usec_t not_before, deadline;
                NoticeCertainty certainty;
                const char *text;
                usec_t announced, booted;
                NoticeKind kind;
                NoticeByHand by_hand;
        } rows[] = {
                { 0, T0, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\"}" },
                { 0, T0, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\",\"byHand\":\"drain\"}",
                  .by_hand = BY_HAND_DRAIN },
                { 0, USEC_INFINITY, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"manual\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"byHand\":\"force\"}",
                  .kind = NOTICE_MANUAL, .by_hand = BY_HAND_FORCE },
                { T0, USEC_INFINITY, NOTICE_ADVISORY,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"notBefore\":\"2027-01-15T08:00:00Z\",\"advisory\":true}" },
                { 0, T0, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T10:00:00Z\",\"ownDeadline\":\"2027-01-15T08:00:00Z\"}",
                  T0 + 7200 * USEC_PER_SEC },
                { 0, T0, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T10:00:00Z\",\"ownDeadline\":\"2027-01-15T08:00:00Z\","
                  "\"ownBoot\":\"2027-01-15T07:00:00Z\"}",
                  T0 + 7200 * USEC_PER_SEC, T0 - 3600 * USEC_PER_SEC },
                { 0, T0, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"shutdown\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\",\"ownBoot\":\"2027-01-15T07:00:00Z\"}",
                  0, T0 - 3600 * USEC_PER_SEC, NOTICE_SHUTDOWN },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *n = make("stop", rows[i].not_before, rows[i].deadline),
                                               *back = NULL;
                _cleanup_free_ char *text = NULL, *again = NULL;

                n->certainty = rows[i].certainty;
                n->announced_usec = rows[i].announced;
                n->booted_usec = rows[i].booted;
                n->kind = rows[i].kind;
                n->by_hand = rows[i].by_hand;
                text = format(n);
                assert_string_equal(text, rows[i].text);
                assert_return_code(parse(text, &back), 0);
                again = format(back);
                assert_string_equal(again, text);
                assert_int_equal(back->certainty, n->certainty);
                assert_true(back->deadline_usec == n->deadline_usec);
                assert_true(notice_announced(back) == notice_announced(n));
                assert_true(back->booted_usec == n->booted_usec);
                assert_int_equal(back->by_hand, n->by_hand);
        }
}

/* Who waits for do-not-evict pods; and a drain by hand that an agent of before "byHand" has marked is one. */
static void test_waits_for_protected(void **state) {
        static const struct {
                const char *text;
                NoticeByHand by_hand;
                bool waits;
        } rows[] = {
                { "\"kind\":\"manual\",\"action\":\"drain\"", BY_HAND_DRAIN, true },
                { "\"kind\":\"manual\",\"action\":\"drain\",\"byHand\":\"force\"", BY_HAND_FORCE, false },
                { "\"kind\":\"manual\",\"action\":\"reboot\"", BY_HAND_NONE, true },
                { "\"kind\":\"spot\",\"action\":\"terminate\"", BY_HAND_NONE, false },
                { "\"kind\":\"spot\",\"action\":\"terminate\",\"byHand\":\"drain\"", BY_HAND_DRAIN, false },
                { "\"kind\":\"shutdown\",\"action\":\"reboot\"", BY_HAND_NONE, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("{\"id\":\"a\",\"source\":\"D-Bus\",%s}", rows[i].text);
                _cleanup_(notice_freep) Notice *n = NULL, *copy = NULL;

                print_message("%s\n", rows[i].text);
                assert_return_code(parse(text, &n), 0);
                assert_return_code(notice_copy(n, &copy), 0);
                assert_int_equal(copy->by_hand, rows[i].by_hand);
                assert_int_equal(notice_waits_for_protected(copy), rows[i].waits);
        }
}

static void test_json_refused(void **state) {
        static const char *const rows[] = {
                "[]",
                "{}",
                "{\"id\":\"\",\"kind\":\"spot\",\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":\"sport\",\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":7,\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":\"spot\"}",
                "{\"id\":7,\"kind\":\"spot\",\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"deadline\":\"soon\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"advisory\":\"yes\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"byHand\":\"none\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"byHand\":true}",
        };
        _cleanup_free_ char *long_id = NULL;
        Notice *n = NULL;
        char as[300];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(parse(rows[i], &n), -EINVAL);
        memset(as, 'a', sizeof(as));
        long_id = strf("{\"id\":\"%.*s\",\"kind\":\"spot\",\"source\":\"ec2\"}", (int) sizeof(as), as);
        assert_int_equal(parse(long_id, &n), -EINVAL);
        assert_null(n);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_ends_machine),
                cmocka_unit_test(test_merge),
                cmocka_unit_test(test_json),
                cmocka_unit_test(test_waits_for_protected),
                cmocka_unit_test(test_json_refused),
                cmocka_unit_test(test_announced),
                cmocka_unit_test(test_clock_was_set),
                cmocka_unit_test(test_follow_clock),
                cmocka_unit_test(test_follow_clock_and_merge),
                cmocka_unit_test(test_shutdown_and_clock),
        };
        return cmocka_run_group_tests_name("notice", tests, NULL, NULL);
}
