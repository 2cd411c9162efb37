/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
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

TEST_CASE(test_kinds) {
        for (NoticeKind k = 0; k < _NOTICE_KIND_MAX; k++)
                assert_int_equal(notice_kind_from_string(notice_kind_to_string(k)), k);
        assert_int_equal(notice_kind_from_string("sport"), _NOTICE_KIND_INVALID);
        assert_int_equal(notice_kind_from_string(NULL), _NOTICE_KIND_INVALID);
        assert_null(notice_kind_to_string(_NOTICE_KIND_MAX));
}

TEST_CASE(test_ends_machine) {
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

TEST_CASE(test_merge) {
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

/* What was announced, and when that is on our clock, are two times; the earlier one of each counts. */
TEST_CASE(test_announced) {
        static const struct {
                const char *what;
                usec_t known[2], seen[2], deadline, announced; /* deadline_usec, announced_usec */
                bool changed;
        } rows[] = {
                { "the same again", { 500, T0 }, { 500, T0 }, 500, T0, false },
                { "later", { 500, T0 }, { 501, T0 + 1 }, 500, T0, false },
                { "the giver's moves", { 500, T0 }, { 500, T0 - 9 }, 500, T0 - 9, true },
                { "nearer on our clock alone", { 500, T0 }, { 400, T0 }, 400, T0, true },
                { "none was said", { USEC_INFINITY, 0 }, { 400, T0 }, 400, T0, true },
                { "none is said", { 400, T0 }, { USEC_INFINITY, 0 }, 400, T0, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Notice known = { .deadline_usec = rows[i].known[0], .announced_usec = rows[i].known[1] },
                       seen = { .deadline_usec = rows[i].seen[0], .announced_usec = rows[i].seen[1] };

                print_message("%s\n", rows[i].what);
                assert_int_equal(notice_take_nearer(&known, &seen), rows[i].changed);
                assert_true(known.deadline_usec == rows[i].deadline);
                assert_true(notice_announced(&known) == rows[i].announced);
                assert_true(known.own_deadline_usec == (rows[i].deadline != rows[i].known[0] ? rows[i].known[0] : 0));
        }
}

/* Two that stand, of which one is in force and takes the nearer time of the other: however often both are seen, they agree. Else
 * its agent would turn in circles. */
TEST_CASE(test_two_stand) {
        static const struct {
                const char *what;
                bool estimated[2];
                usec_t own[2], other[2], deadline; /* deadline_usec, announced_usec */
        } rows[] = {
                { "no time of its own", { false, true }, { USEC_INFINITY, 0 }, { 400, T0 }, 400 },
                { "the other is earlier, and estimated", { false, true }, { 500, T0 }, { 400, T0 - 100 }, 400 },
                { "the other is later, and its clock says nearer", { false, true }, { 500, T0 }, { 400, T0 + 100 }, 500 },
                { "both are estimated", { true, true }, { 500, T0 }, { 400, T0 - 100 }, 400 },
                { "the other is counted", { true, false }, { 500, T0 }, { 400, T0 - 100 }, 400 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *known = make("stop", 0, rows[i].own[0]), *own = make("stop", 0, rows[i].own[0]),
                                               *other = make("stop", 0, rows[i].other[0]);
                bool changed;

                print_message("%s\n", rows[i].what);
                known->announced_usec = own->announced_usec = rows[i].own[1];
                known->estimated = own->estimated = rows[i].estimated[0];
                other->announced_usec = rows[i].other[1];
                other->estimated = rows[i].estimated[1];
                assert_true(notice_own_deadline(known) == rows[i].own[0]);
                (void) notice_take_nearer(known, other);
                for (unsigned k = 0; k < 3; k++) {
                        assert_return_code(notice_merge(known, own, &changed), 0);
                        assert_false(changed);
                        assert_false(notice_take_nearer(known, other));
                        assert_true(known->deadline_usec == rows[i].deadline);
                        assert_true(notice_own_deadline(known) == rows[i].own[0]);
                }
                own->deadline_usec = 900; /* it is moved away */
                assert_return_code(notice_merge(known, own, &changed), 0);
                assert_true(notice_own_deadline(known) == (rows[i].deadline == rows[i].own[0] ? 500 : 900));
                assert_true(known->deadline_usec == rows[i].deadline);
        }
}

/* One that was counted from a Date replaces an estimate, and no estimate replaces that. */
TEST_CASE(test_estimates) {
        static const struct {
                const char *what;
                bool known_estimated, seen_estimated;
                usec_t known[2], seen[2], deadline; /* deadline_usec, announced_usec */
                bool estimated, changed;
        } rows[] = {
                { "counted, and later", true, false, { 500, T0 }, { 900, T0 }, 900, false, true },
                { "counted, and nearer", true, false, { 500, T0 }, { 400, T0 }, 400, false, true },
                { "counted, and the same", true, false, { 500, T0 }, { 500, T0 }, 500, false, true },
                { "estimated after that", false, true, { 500, T0 }, { 400, T0 }, 500, false, false },
                { "estimated after that, of a nearer time", false, true, { 500, T0 }, { 400, T0 - 100 }, 400, true, true },
                { "counted, of a later time", true, false, { 400, T0 - 100 }, { 500, T0 }, 400, true, false },
                { "no time is said", true, false, { 400, T0 }, { USEC_INFINITY, 0 }, 400, true, false },
                { "two estimates", true, true, { 500, T0 }, { 400, T0 }, 400, true, true },
                { "two estimates, and a later one", true, true, { 500, T0 }, { 600, T0 }, 500, true, false },
                { "counted twice", false, false, { 500, T0 }, { 400, T0 }, 400, false, true },
                { "counted twice, and a later one", false, false, { 500, T0 }, { 600, T0 }, 500, false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *known = make("stop", 0, rows[i].known[0]),
                                               *seen = make("stop", 0, rows[i].seen[0]);
                bool changed = !rows[i].changed;

                print_message("%s\n", rows[i].what);
                known->announced_usec = rows[i].known[1];
                known->estimated = rows[i].known_estimated;
                seen->announced_usec = rows[i].seen[1];
                seen->estimated = rows[i].seen_estimated;
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_int_equal(changed, rows[i].changed);
                assert_true(known->deadline_usec == rows[i].deadline);
                assert_int_equal(known->estimated, rows[i].estimated);
                assert_return_code(notice_merge(known, seen, &changed), 0);
                assert_false(changed);
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

/* As who needs all of it reads it. */
static int parse_complete(const char *text, Notice **ret) {
        int r;

        r = parse(text, ret);
        if (r < 0 || notice_is_complete(*ret))
                return r;
        *ret = notice_free(*ret);
        return -EINVAL;
}

TEST_CASE(test_json) {
        static const struct {
                usec_t not_before, deadline;
                NoticeCertainty certainty;
                const char *text;
                usec_t announced;
                bool estimated;
                NoticeKind kind;
                NoticeByHand by_hand;
                usec_t own_deadline;
        } rows[] = {
                { 0, USEC_INFINITY, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\"}", T0 },
                { 0, USEC_INFINITY, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\",\"byHand\":\"drain\"}",
                  T0, .by_hand = BY_HAND_DRAIN },
                { 0, USEC_INFINITY, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"manual\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"byHand\":\"force\"}",
                  .kind = NOTICE_MANUAL, .by_hand = BY_HAND_FORCE },
                { T0, USEC_INFINITY, NOTICE_ADVISORY,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"notBefore\":\"2027-01-15T08:00:00Z\",\"advisory\":true}" },
                { 0, 1234567890123, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\",\"deadlineUptimeUsec\":1234567890123}",
                  T0 },
                { 0, 7, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\",\"deadlineUptimeUsec\":7,\"estimated\":true}",
                  T0, true },
                { 0, 7, NOTICE_CERTAIN,
                  "{\"id\":\"i-1-terminate-b\",\"kind\":\"spot\",\"source\":\"ec2\",\"action\":\"stop\","
                  "\"deadline\":\"2027-01-15T08:00:00Z\",\"deadlineUptimeUsec\":7,\"ownDeadlineUptimeUsec\":9}",
                  T0, .own_deadline = 9 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(notice_freep) Notice *n = make("stop", rows[i].not_before, rows[i].deadline),
                                               *back = NULL;
                _cleanup_free_ char *text = NULL, *again = NULL;

                n->certainty = rows[i].certainty;
                n->announced_usec = rows[i].announced;
                n->estimated = rows[i].estimated;
                n->kind = rows[i].kind;
                n->by_hand = rows[i].by_hand;
                n->own_deadline_usec = rows[i].own_deadline;
                text = format(n);
                assert_string_equal(text, rows[i].text);
                assert_return_code(parse(text, &back), 0);
                again = format(back);
                assert_string_equal(again, text);
                assert_int_equal(back->certainty, n->certainty);
                assert_true(back->deadline_usec == n->deadline_usec);
                assert_true(notice_own_deadline(back) == notice_own_deadline(n));
                assert_true(notice_announced(back) == notice_announced(n));
                assert_int_equal(back->estimated, n->estimated);
                assert_int_equal(back->by_hand, n->by_hand);
        }
}

/* Who waits for do-not-evict pods; and a drain by hand that an agent of before "byHand" has marked is one. */
TEST_CASE(test_waits_for_protected) {
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

TEST_CASE(test_json_refused) {
        static const char *const rows[] = {
                "[]",
                "{}",
                "{\"id\":\"\",\"kind\":\"spot\",\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":\"sport\",\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":7,\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":\"spot\"}",
                "{\"id\":7,\"kind\":\"spot\",\"source\":\"ec2\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"deadline\":\"soon\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"deadlineUptimeUsec\":-1}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"deadlineUptimeUsec\":4000000000000000}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"deadlineUptimeUsec\":\"1\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"ownDeadlineUptimeUsec\":-1}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"estimated\":1}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"advisory\":\"yes\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"byHand\":\"none\"}",
                "{\"id\":\"a\",\"kind\":\"spot\",\"source\":\"ec2\",\"byHand\":true}",
        };
        _cleanup_free_ char *long_id = NULL;
        Notice *n = NULL;
        char as[300];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(parse_complete(rows[i], &n), -EINVAL);
        memset(as, 'a', sizeof(as));
        long_id = strf("{\"id\":\"%.*s\",\"kind\":\"spot\",\"source\":\"ec2\"}", (int) sizeof(as), as);
        assert_int_equal(parse_complete(long_id, &n), -EINVAL);
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
                cmocka_unit_test(test_two_stand), cmocka_unit_test(test_estimates),
        };
        return cmocka_run_group_tests_name("notice", tests, NULL, NULL);
}
