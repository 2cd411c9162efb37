/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "markup-text.h"

TEST_CASE(test_texts) {
        static const struct {
                const char *what, *text;
                size_t max_columns;
                const char *expected;
        } rows[] = {
                { "nothing", "", 5, "" },
                { "what HTML reads itself", "<a href=\"x\" id='y'>&amp;", SIZE_MAX, "&lt;a href=&quot;x&quot; id=&#39;y&#39;&gt;&amp;amp;" },
                { "as many columns as there are", "abc", 3, "abc" },
                { "one column less", "abc", 2, "ab\xe2\x80\xa6" },
                { "no column", "abc", 0, "\xe2\x80\xa6" },
                { "a reference is one column", "<<", 2, "&lt;&lt;" },
                { "the first and last characters of two bytes", "\xc2\x80\xc2\xa0\xdf\xbf", 3, "?\xc2\xa0\xdf\xbf" },
                { "the first and last characters of three bytes", "\xe0\xa0\x80\xef\xbf\xbd", 2, "\xe0\xa0\x80\xef\xbf\xbd" },
                { "the first and last characters of four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbd", 2, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbd" },
                { "no characters", "a\xef\xbf\xbe" "b\xef\xbf\xbf" "c", SIZE_MAX, "a?b?c" },
                { "their neighbours", "\xef\xbe\xbe\xef\xbe\xbf\xee\xbf\xbf", SIZE_MAX, "\xef\xbe\xbe\xef\xbe\xbf\xee\xbf\xbf" },
                { "control characters", "a\x1b[2J\r\n\x7f" "b", SIZE_MAX, "a?[2J???b" },
                { "bytes that are no UTF-8", "\xc0\x80\xff" "a\x80", SIZE_MAX, "???a?" },
                { "a sequence that the text cuts", "a\xe2\x82", SIZE_MAX, "a??" },
                { "a sequence that another character cuts", "\xe2\x82z", SIZE_MAX, "??z" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf plain = {}, formatted = {};

                print_message("  %s\n", rows[i].what);
                markup_add_text(&plain, rows[i].text, rows[i].max_columns);
                assert_string_equal(strbuf_str(&plain), rows[i].expected);
                markup_add_textf(&formatted, rows[i].max_columns, "%s%s", "", rows[i].text);
                assert_string_equal(strbuf_str(&formatted), rows[i].expected);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_texts) };

        return cmocka_run_group_tests_name("markup-text", tests, NULL, NULL);
}
