/* SPDX-License-Identifier: Apache-2.0 */
#include "expected-file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-test.h"
#include "file-util.h"
#include "string-util.h"

#define FILE_BYTES_MAX (4u << 20)

bool expected_file_is_written(int argc, char **argv) {
        return argc == 2 && streq(argv[1], "--write");
}

char *expected_file_path(const char *name) {
        const char *source = getenv("VESPER_SOURCE");
        char *path = source ? strf("%s/tests/unit/%s", source, name) : NULL;

        assert_true(path || !source);
        return path;
}

void expected_file_write(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_return_code(fputs(text, f), errno);
        assert_int_equal(fclose(f), 0);
}

static void fail_at(const char *path, unsigned line, const char *expected, const char *seen) {
        fail_msg("%s:%u\nexpected: %.*s\nseen:     %.*s\n--write writes the file anew.", path, line,
                 (int) strcspn(expected, "\n"), expected, (int) strcspn(seen, "\n"), seen);
}

void expected_file_compare(const char *path, const char *text, bool is_written) {
        _cleanup_free_ char *expected = NULL;
        unsigned line = 1;
        size_t from = 0;

        if (is_written) {
                expected_file_write(path, text);
                return;
        }
        assert_return_code(read_file(path, FILE_BYTES_MAX, &expected, NULL), 0);
        for (size_t i = 0; expected[i] == text[i]; i++) {
                if (expected[i] == 0)
                        return;
                if (expected[i] == '\n') {
                        line++;
                        from = i + 1;
                }
        }
        fail_at(path, line, expected + from, text + from);
}
