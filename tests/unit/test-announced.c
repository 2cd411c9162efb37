/* SPDX-License-Identifier: Apache-2.0 */
#include "announced.h"
#include "cmocka-test.h"
#include "string-util.h"

#define T0 (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */

static void put(AnnouncedList *l, const char *id, usec_t announced_usec, AnnouncedState state) {
        const Notice n = { .id = (char *) id, .source = (char *) "sqs", .kind = NOTICE_SPOT, .announced_usec = announced_usec, .deadline_usec = USEC_INFINITY };

        assert_return_code(announced_list_put(l, &n, state, "b"), 0);
}

/* "a b! c?": b is over, c is held. */
static void assert_list(const AnnouncedList *l, const char *expected) {
        _cleanup_strbuf_ StrBuf text = {};

        for (size_t i = 0; i < l->n_items; i++)
                strbuf_addf(&text, "%s%s%s", i > 0 ? " " : "", l->items[i].notice->id,
                            l->items[i].state == ANNOUNCED_STANDS ? "" : l->items[i].state == ANNOUNCED_HELD ? "?" : "!");
        assert_string_equal(strbuf_str(&text), expected);
}

TEST_CASE(test_order) {
        _cleanup_(announced_list_done) AnnouncedList l = {}, other = {};

        assert_null(announced_list_find(&l, "a"));
        put(&l, "c", T0 + 2, ANNOUNCED_STANDS);
        put(&l, "now", 0, ANNOUNCED_STANDS);
        put(&l, "a", T0, ANNOUNCED_STANDS);
        put(&l, "b", T0, ANNOUNCED_STANDS);
        assert_list(&l, "now a b c");
        print_message("each id stands once, in its new place\n");
        put(&l, "a", T0 + 3, ANNOUNCED_STANDS);
        put(&l, "now", 0, ANNOUNCED_OVERRULED);
        assert_list(&l, "now! b c a");
        assert_int_equal(announced_list_find(&l, "now")->state, ANNOUNCED_OVERRULED);
        announced_list_remove(&l, 0);
        assert_list(&l, "b c a");
        print_message("what a kubelet may have written takes no place, and calls nothing off\n");
        put(&other, "b", T0, ANNOUNCED_CALLED_OFF);
        put(&other, "d", T0 + 4, ANNOUNCED_STANDS);
        put(&other, "e", T0 + 5, ANNOUNCED_DONE);
        assert_return_code(announced_list_take(&l, &other), 0);
        assert_list(&l, "b c a d");
        put(&other, "h", 0, ANNOUNCED_HELD);
        assert_return_code(announced_list_take(&l, &other), 0);
        assert_list(&l, "h? b c a d");
        assert_string_equal(announced_list_open(&l)->notice->id, "h");
        for (char id[] = "f"; *id < 'z'; id[0]++)
                put(&other, id, 0, ANNOUNCED_STANDS);
        assert_return_code(announced_list_take(&l, &other), 0);
        assert_int_equal(l.n_items, ANNOUNCED_MAX / 2);
        assert_string_equal(announced_list_open(&l)->notice->id, l.items[0].notice->id);
}

TEST_CASE(test_first) {
        static const struct {
                AnnouncedState state;
                const char *id; /* NULL: none */
        } rows[] = {
                { ANNOUNCED_STANDS, "b" }, { ANNOUNCED_HELD, "c" }, { ANNOUNCED_DONE, "a" }, { ANNOUNCED_CALLED_OFF, NULL },
        };
        _cleanup_(announced_list_done) AnnouncedList l = {};

        assert_null(announced_list_first(&l, ANNOUNCED_STANDS));
        put(&l, "a", T0, ANNOUNCED_DONE);
        put(&l, "b", T0 + 1, ANNOUNCED_STANDS);
        put(&l, "c", T0 + 2, ANNOUNCED_HELD);
        put(&l, "d", T0 + 3, ANNOUNCED_STANDS);
        put(&l, "e", T0 + 4, ANNOUNCED_HELD);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Announced *first = announced_list_first(&l, rows[i].state);

                print_message("%s\n", strempty(announced_state_to_string(rows[i].state)));
                assert_int_equal(first != NULL, rows[i].id != NULL);
                if (first)
                        assert_string_equal(first->notice->id, rows[i].id);
        }
}

/* Entries that are over give their place first, then the held one that was received first, then the last one. */
TEST_CASE(test_room) {
        Notice n = { .announced_usec = T0 + 100 };
        _cleanup_(announced_list_done) AnnouncedList l = {};
        char id[] = "a";

        for (size_t i = 0; i < ANNOUNCED_MAX; i++, id[0]++)
                put(&l, id, T0 + i, i == 3 ? ANNOUNCED_CALLED_OFF : ANNOUNCED_STANDS);
        put(&l, "next", T0 + 5, ANNOUNCED_STANDS);
        assert_int_equal(l.n_items, ANNOUNCED_MAX);
        assert_null(announced_list_find(&l, "d"));
        n.id = (char *) "a";
        assert_true(announced_list_has_room(&l, &n));
        n.id = (char *) "late";
        assert_false(announced_list_has_room(&l, &n));
        n.announced_usec = l.items[ANNOUNCED_MAX - 1].notice->announced_usec;
        assert_false(announced_list_has_room(&l, &n)); /* the one that stands stays */
        n.announced_usec--;
        assert_true(announced_list_has_room(&l, &n));
        n.announced_usec = 0;
        assert_true(announced_list_has_room(&l, &n));
        put(&l, "late", T0 + 100, ANNOUNCED_STANDS);
        assert_null(announced_list_find(&l, "late"));
        put(&l, "early", 0, ANNOUNCED_STANDS);
        assert_list(&l, "early a b c e f next g h i j k l m n o");
        print_message("what is held gives its place before what stands\n");
        put(&l, "early", 0, ANNOUNCED_HELD);
        put(&l, "c", T0 + 2, ANNOUNCED_HELD);
        n.announced_usec = T0 + 300;
        assert_true(announced_list_has_room(&l, &n));
        put(&l, "late", T0 + 100, ANNOUNCED_STANDS);
        assert_list(&l, "a b c? e f next g h i j k l m n o late");
}

/* A person releases the notices that were received until then. */
TEST_CASE(test_let_go) {
        static const struct {
                AnnouncedState state;
                usec_t received_usec, let_go_usec;
                bool is;
        } rows[] = {
                { ANNOUNCED_HELD, T0, T0 - 1, false },    { ANNOUNCED_HELD, T0, T0, true },
                { ANNOUNCED_HELD, T0, T0 + 1, true },     { ANNOUNCED_HELD, 0, 0, false },
                { ANNOUNCED_STANDS, T0, T0 + 1, false },  { ANNOUNCED_DONE, T0, T0 + 1, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Notice n = { .received_usec = rows[i].received_usec };

                assert_int_equal(announced_is_let_go(&(Announced){ .notice = &n, .state = rows[i].state }, rows[i].let_go_usec),
                                 rows[i].is);
        }
}

/* A list can be read back, however long its texts are. */
TEST_CASE(test_longest) {
        char id[NOTICE_ID_BYTES_MAX + 1], word[NOTICE_WORD_BYTES_MAX + 1], boot[BOOT_ID_BYTES_MAX + 1];
        char *names[] = { id, NULL };
        Notice n = { .id = id, .source = word, .action = word, .kind = NOTICE_MAINTENANCE, .announced_usec = T0, .said_usec = T0, .until_usec = T0,
                     .not_before_usec = T0, .received_usec = T0, .deadline_usec = USEC_INFINITY, .resources = names };
        _cleanup_(announced_list_done) AnnouncedList l = {}, back = {};
        _cleanup_free_ char *text = NULL;

        memset(id, 1, sizeof(id));
        memset(word, 1, sizeof(word));
        memset(boot, 1, sizeof(boot));
        id[sizeof(id) - 1] = word[sizeof(word) - 1] = boot[sizeof(boot) - 1] = 0;
        for (unsigned i = 0; i < ANNOUNCED_MAX; i++) {
                id[0] = (char) ('a' + (char) i);
                assert_return_code(announced_list_put(&l, &n, ANNOUNCED_CALLED_OFF, boot), 0);
        }
        text = announced_list_format(&l);
        assert_non_null(text);
        assert_return_code(announced_list_parse(text, &back), 0);
        assert_int_equal(back.n_items, ANNOUNCED_MAX);
}

TEST_CASE(test_json) {
        static const struct {
                const char *what, *text, *expected; /* NULL: cannot be read */
        } rows[] = {
                { "none", "{'notices':[]}", "" },
                { "as it is written",
                  "{'notices':[{'id':'a','kind':'spot','source':'sqs','action':'stop','bootID':'b'},"
                  "{'id':'c','kind':'maintenance','source':'sqs','action':'reboot','deadline':'2027-01-15T08:00:00Z','until':'2027-01-15T10:00:00Z','state':'CalledOff','bootID':'b'}]}",
                  "a c!" },
                { "in another order", "{'notices':[{'id':'a','deadline':'2027-01-15T08:00:00Z'},{'id':'c'}]}", "c a" },
                { "the same twice", "{'notices':[{'id':'a'},{'id':'a','state':'Done'}]}", "a!" },
                { "one that is held", "{'notices':[{'id':'a','received':'2027-01-15T08:00:00Z','state':'Held'}]}", "a?" },
                { "a state of a later version", "{'notices':[{'id':'a','state':'Postponed'}],'more':7}", "a!" },
                { "no list", "{}", NULL },
                { "another annotation's", "{'id':'a','phase':'Draining'}", NULL },
                { "no object", "['a']", NULL },
                { "no objects in it", "{'notices':['a']}", NULL },
                { "without an id", "{'notices':[{'kind':'spot'}]}", NULL },
                { "a time that is none", "{'notices':[{'id':'a','deadline':'noon'}]}", NULL },
                { "a boot that is none",
                  "{'notices':[{'id':'a','bootID':'0123456789012345678901234567890123456789012345678901234567890123456789'}]}", NULL },
                { "no JSON", "soon", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(announced_list_done) AnnouncedList l = {}, back = {};
                _cleanup_free_ char *text = strdup(rows[i].text), *formatted = NULL, *again = NULL;
                int r;

                print_message("%s\n", rows[i].what);
                assert_non_null(text);
                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                r = announced_list_parse(text, &l);
                assert_int_equal(r, rows[i].expected ? 0 : -EBADMSG);
                assert_list(&l, strempty(rows[i].expected));
                formatted = announced_list_format(&l);
                assert_return_code(announced_list_parse(formatted, &back), 0);
                again = announced_list_format(&back);
                assert_string_equal(formatted, again);
                if (i == 1)
                        assert_string_equal(formatted, text);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_first),
                cmocka_unit_test(test_room),
                cmocka_unit_test(test_let_go),
                cmocka_unit_test(test_longest),
                cmocka_unit_test(test_json),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
