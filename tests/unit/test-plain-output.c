/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "plain-output.h"

/* Returns the bytes that a pipe receives if each piece is flushed. Free them. */
static char *printed(PlainOutputForm form, const char *const *pieces) {
        _cleanup_strbuf_ StrBuf b = {};
        FILE *stream = stderr;
        PlainOutput o;
        char buffer[256];
        ssize_t n;
        int fds[2];

        assert_return_code(pipe2(fds, O_CLOEXEC), 0);
        assert_return_code(plain_output_begin(&o, &stream, fds[1]), 0);
        assert_ptr_not_equal(stream, stderr);
        plain_output_set_form(&o, form);
        for (; *pieces; pieces++) {
                fputs(*pieces, stream);
                assert_int_equal(fflush(stream), 0);
        }
        assert_return_code(plain_output_end(&o), 0);
        assert_return_code(plain_output_end(&o), 0);
        assert_ptr_equal(stream, stderr);
        close(fds[1]);
        while ((n = read(fds[0], buffer, sizeof(buffer))) > 0)
                strbuf_add_n(&b, buffer, (size_t) n);
        close(fds[0]);
        strbuf_add(&b, "");
        return strbuf_steal(&b);
}

TEST_CASE(test_forms) {
        static const struct {
                const char *what, *pieces[5], *text, *json;
        } rows[] = {
                { "nothing", { NULL }, "", "" },
                { "lines and tabs stay", { "a\tb\n", "c\n" }, "a\tb\nc\n", "a\tb\nc\n" },
                { "text beyond ASCII stays", { "gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82" }, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82" },
                { "the title of a terminal", { "\x1b]0;t\x07\r\x7f" }, "?]0;t???", "\\u001b]0;t\\u0007\\u000d\\u007f" },
                { "C1", { "\xc2\x9b" "31m" }, "?31m", "\\u009b31m" },
                { "the direction of reading", { "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c" }, "???", "\\u202e\\u2066\\u061c" },
                { "no UTF-8", { "\x9b" "a\xff\xc3" }, "?a??", "?a??" },
                { "a character in pieces", { "a\xe2", "\x80", "\xae", "b\xc3", "\xbc" }, "a?b\xc3\xbc", "a\\u202e" "b\xc3\xbc" },
                { "what a piece cannot complete", { "\xe2", "\x1b[1m" }, "??[1m", "?\\u001b[1m" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *pieces[6] = { rows[i].pieces[0], rows[i].pieces[1], rows[i].pieces[2], rows[i].pieces[3], rows[i].pieces[4] };
                _cleanup_free_ char *text = printed(PLAIN_OUTPUT_TEXT, pieces), *json = printed(PLAIN_OUTPUT_JSON, pieces);

                print_message("%s\n", rows[i].what);
                assert_string_equal(text, rows[i].text);
                assert_string_equal(json, rows[i].json);
        }
}

/* A full disk is an error of fflush(), as it is without the filter. */
TEST_CASE(test_full) {
        FILE *stream = stderr;
        PlainOutput o;
        int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

        assert_return_code(fd, 0);
        assert_return_code(plain_output_begin(&o, &stream, fd), 0);
        fputs("text\n", stream);
        assert_int_equal(fflush(stream), EOF);
        assert_int_equal(errno, ENOSPC);
        assert_true(ferror(stream));
        (void) plain_output_end(&o);
        close(fd);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_forms), cmocka_unit_test(test_full) };

        return cmocka_run_group_tests_name("plain-output", tests, NULL, NULL);
}
