/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "reboot-taken.h"
#include "string-util.h"

TEST_CASE(test_has) {
        static const struct {
                const char *text, *id;
                bool has;
        } rows[] = {
                { NULL, "a", false },   { "", "a", false },       { "a", "a", true },      { "a b", "b", true },
                { " a  b ", "b", true }, { "ab", "a", false },     { "a", "ab", false },    { "x-a", "a", false },
                { "a-1 a-2", "a-1", true }, { "a-1 a-2", "a-3", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(reboot_taken_has(rows[i].text, rows[i].id), rows[i].has);
}

static bool is_over(const char *id, void *userdata) {
        return streq_ptr(id, userdata);
}

/* Nothing more is taken early where nobody can tell what was. */
TEST_CASE(test_too_long) {
        char text[REBOOT_TAKEN_BYTES_MAX + 2], *to;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        assert_true(reboot_taken_has(text, "a"));
        assert_int_equal(reboot_taken_add(text, "a", is_over, NULL, &to), -ENOSPC);
}

TEST_CASE(test_add) {
        static char over[] = "e3";
        _cleanup_strbuf_ StrBuf full = {};
        char *text;

        assert_return_code(reboot_taken_add(NULL, "a", is_over, NULL, &text), 0);
        assert_string_equal(text, "a");
        free(text);
        assert_return_code(reboot_taken_add("a", "b", is_over, NULL, &text), 0);
        assert_string_equal(text, "a b");
        free(text);
        assert_return_code(reboot_taken_add("a b", "a", is_over, NULL, &text), 0);
        assert_string_equal(text, "a b");
        free(text);
        assert_int_equal(reboot_taken_add("a", "", is_over, NULL, &text), -EINVAL);
        assert_int_equal(reboot_taken_add("a", "b c", is_over, NULL, &text), -EINVAL);

        for (unsigned i = 0; i < REBOOT_TAKEN_MAX; i++)
                strbuf_addf(&full, "%se%u", i > 0 ? " " : "", i);
        assert_int_equal(reboot_taken_add(strbuf_str(&full), "new", is_over, NULL, &text), -ENOSPC);
        assert_null(text);
        assert_return_code(reboot_taken_add(strbuf_str(&full), "new", is_over, over, &text), 0);
        assert_false(reboot_taken_has(text, "e3"));
        assert_true(reboot_taken_has(text, "e0"));
        assert_true(reboot_taken_has(text, "e2"));
        assert_true(reboot_taken_has(text, "e4"));
        assert_true(reboot_taken_has(text, "e15"));
        assert_true(reboot_taken_has(text, "new"));
        free(text);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_has),
                cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_add),
        };

        return cmocka_run_group_tests_name("reboot-taken", tests, NULL, NULL);
}
