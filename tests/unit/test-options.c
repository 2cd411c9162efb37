/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "options.h"
#include "string-util.h"
#include "strv.h"

typedef struct Settings {
        const char *file;
        char **more;
        bool force, quiet;
} Settings;

static const OptionItem items[] = {
        { .name = "file",
          .letter = 'f',
          .value = "FILE",
          .kind = OPTION_STRING,
          .offset = offsetof(Settings, file),
          .help = "Read FILE" },
        { .name = "a-name-that-is-longer-than-others",
          .value = "TEXT",
          .kind = OPTION_STRINGS,
          .offset = offsetof(Settings, more),
          .help = "An explanation of so many words that they do not stand in one line of a terminal, and go on in the next one" },
        { .name = "force",
          .kind = OPTION_FLAG,
          .offset = offsetof(Settings, force),
          .help = "Whatever happens" },
        { .name = "quiet",
          .letter = 'q',
          .kind = OPTION_FLAG,
          .offset = offsetof(Settings, quiet),
          .help = "Say less" },
        OPTIONS_HELP,
        OPTIONS_VERSION,
};
static const OptionTable table = { .program = "thing",
                                   .usage = "[OPTIONS...] FILE",
                                   .about = "Does it.",
                                   .items = items,
                                   .n_items = ELEMENTSOF(items) };

TEST_CASE(test_command_lines) {
        static const struct {
                const char *line[6];
                int result, first;
                const char *file, *more;
                bool force, quiet;
        } rows[] = {
                { { NULL }, 1, 1 },
                { { "-f", "a" }, 1, 3, "a" },
                { { "-fa", "-q" }, 1, 3, "a", NULL, false, true },
                { { "--file=a", "--file", "b", "--force" }, 1, 5, "b", NULL, true },
                { { "--a-name-that-is-longer-than-others=x", "--a-name=y" }, 1, 3, NULL, "x y" },
                { { "--force", "word", "--quiet" }, 1, 3, NULL, NULL, true, true },
                { { "--", "--quiet" }, 1, 2 },
                { { "--fi" }, -EINVAL },
                { { "-x" }, -EINVAL },
                { { "--nothing" }, -EINVAL },
                { { "--force=x" }, -EINVAL },
                { { "-f" }, -EINVAL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *argv[ELEMENTSOF(rows[i].line) + 2] = { (char *) "thing" };
                _cleanup_free_ char *more = NULL;
                Settings s = { 0 };
                int argc = 1, first = -1, r;

                for (; argc <= (int) ELEMENTSOF(rows[i].line) && rows[i].line[argc - 1]; argc++)
                        argv[argc] = (char *) rows[i].line[argc - 1];
                r = options_parse(&table, argc, argv, &s, &first);
                if (r != rows[i].result || (r > 0 && first != rows[i].first))
                        fail_msg("row %zu: %d (first %d), expected %d (%d)", i, r, first, rows[i].result,
                                 rows[i].first);
                if (r > 0) {
                        more = strv_join(s.more, " ");
                        assert_true(streq_ptr(s.file, rows[i].file));
                        assert_string_equal(strempty(more), strempty(rows[i].more));
                        assert_int_equal(s.force, rows[i].force);
                        assert_int_equal(s.quiet, rows[i].quiet);
                }
                strv_free(s.more);
        }
}

TEST_CASE(test_help) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        assert_non_null(f);
        options_print_help(&table, f);
        assert_int_equal(fclose(f), 0);
        assert_string_equal(
                text,
                "thing [OPTIONS...] FILE\n\n"
                "Does it.\n\n"
                "Options:\n"
                "  -f --file=FILE  Read FILE\n"
                "     --a-name-that-is-longer-than-others=TEXT\n"
                "                  An explanation of so many words that they do not stand in one line of a terminal, and go on\n"
                "                  in the next one\n"
                "     --force      Whatever happens\n"
                "  -q --quiet      Say less\n"
                "  -h --help       Show this help\n"
                "     --version    Show the version\n");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_command_lines),
                cmocka_unit_test(test_help),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
