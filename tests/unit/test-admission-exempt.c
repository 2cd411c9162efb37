/* SPDX-License-Identifier: Apache-2.0 */
#include <regex.h>

#include "admission-exempt.h"
#include "admission-rows.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "string-util.h"
#include "strv.h"

TEST_CASE(test_users) {
        for (size_t i = 0; i < ELEMENTSOF(admission_users); i++) {
                print_message("  '%s'\n", admission_users[i].username);
                assert_int_equal(admission_exempt_reason(admission_users[i].username, NULL) != NULL, admission_users[i].always);
                assert_int_equal(admission_exempt_reason(admission_users[i].username, admission_configured) != NULL,
                                 admission_users[i].if_configured);
        }
}

TEST_CASE(test_table) {
        assert_true(n_admission_exemptions > 0);
        for (size_t i = 0; i < n_admission_exemptions; i++) {
                const AdmissionExemption *e = admission_exemptions + i;
                const char *reason;

                assert_return_code(admission_pattern_check(e->pattern, &reason), 0);
                assert_true(strlen(e->reason) > 0);
                for (size_t k = 0; k < i; k++) /* none is said twice */
                        assert_false(admission_pattern_matches(admission_exemptions[k].pattern, e->pattern));
        }
}

TEST_CASE(test_patterns) {
        static const struct {
                const char *pattern, *reason;
        } rows[] = {
                { "alice", NULL },
                { "*@example.org", NULL },
                { "\xc3\xa4nne", NULL },
                { "", "is empty" },
                { "*", "stands for every user" },
                { "***", "stands for every user" },
                { "a\nb", "has a control character in it" },
                { "a\x7f", "has a control character in it" },
                { "\xff", "is no UTF-8 text" },
        };
        char text[ADMISSION_PATTERN_BYTES_MAX + 2] = { 0 };
        const char *reason;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                assert_int_equal(admission_pattern_check(rows[i].pattern, &reason),
                                 rows[i].reason ? -EINVAL : 0);
                assert_true(streq_ptr(reason, rows[i].reason));
        }
        memset(text, 'x', ADMISSION_PATTERN_BYTES_MAX + 1);
        assert_int_equal(admission_pattern_check(text, &reason), -EINVAL);
        text[ADMISSION_PATTERN_BYTES_MAX] = 0;
        assert_return_code(admission_pattern_check(text, &reason), 0);
}

/* No name makes a pattern expensive. */
TEST_CASE(test_long_names) {
        _cleanup_free_ char *name = calloc(1, 4097);
        _cleanup_strbuf_ StrBuf pattern = { 0 };

        memset(name, 'a', 4096);
        for (unsigned i = 0; i < 100; i++)
                strbuf_add(&pattern, "*a");
        strbuf_add(&pattern, "*b");
        assert_false(admission_pattern_matches(strbuf_str(&pattern), name));
        name[4095] = 'b';
        assert_true(admission_pattern_matches(strbuf_str(&pattern), name));
}

/* -- the CEL says the same ------------------------------------------------------------------------------ */

/* The string of CEL at *p, unescaped; *p goes behind it. */
static char *read_string(const char **p) {
        _cleanup_strbuf_ StrBuf s = { 0 };

        assert_int_equal(**p, '"');
        for ((*p)++; **p != '"'; (*p)++) {
                if (**p == '\\') {
                        (*p)++;
                        assert_true(**p == '\\' || **p == '"');
                }
                assert_true((unsigned char) **p >= 0x20);
                strbuf_add_char(&s, **p);
        }
        (*p)++;
        return strbuf_steal(&s);
}

static const char *skip_text(const char *p, const char *text) {
        p = startswith(p, text);
        assert_non_null(p);
        return p;
}

/* What the expression is of that user: read with the grammar that it is written in, and POSIX for RE2. */
static bool asks(const char *expression, const char *username) {
        const char *p = skip_text(expression, "!(request.userInfo.username in [");
        bool exempt = false;

        while (*p != ']') {
                _cleanup_free_ char *name = read_string(&p);

                exempt |= streq(name, username);
                if (*p != ']')
                        p = skip_text(p, ", ");
        }
        for (p = skip_text(p, "])"); *p;) {
                _cleanup_free_ char *regex = NULL;
                regex_t compiled;

                p = skip_text(p, " && !request.userInfo.username.matches(");
                regex = read_string(&p);
                p = skip_text(p, ")");
                assert_int_equal(regcomp(&compiled, regex, REG_EXTENDED | REG_NOSUB), 0);
                exempt |= regexec(&compiled, username, 0, NULL, 0) == 0;
                regfree(&compiled);
        }
        return !exempt;
}

TEST_CASE(test_match_condition) {
        _cleanup_free_ char *plain = admission_match_condition(NULL),
                            *more = admission_match_condition(admission_configured);

        print_message("%s\n", plain);
        for (size_t i = 0; i < ELEMENTSOF(admission_users); i++) {
                print_message("  '%s'\n", admission_users[i].username);
                assert_int_equal(asks(plain, admission_users[i].username), !admission_users[i].always);
                assert_int_equal(asks(more, admission_users[i].username), !admission_users[i].if_configured);
        }
}

static void drop_spaces(char *s) {
        char *to = s;

        for (; *s; s++)
                if (!strchr(" \n", *s))
                        *to++ = *s;
        *to = 0;
}

/* Manifest and chart exempt the same users, and the coordinator in the namespace that it runs in. */
TEST_CASE(test_manifest) {
        static const struct {
                const char *path, *ns;
        } rows[] = {
                { "manifests/coordinator/webhook.yaml", "vesper-system" },
                { "helm/vesper/templates/webhook.yaml", "{{ .Release.Namespace }}" },
        };

        if (!getenv("VESPER_SOURCE"))
                skip();
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *
                        path = strf("%s/packaging/%s", getenv("VESPER_SOURCE"), rows[i].path),
                       *own = admission_own_account(rows[i].ns), *text = NULL,
                       *all = admission_match_condition(NULL),
                       *condition = strf(
                               "-name:not-the-coordinatorexpression:>-request.userInfo.username!=\"%s\"-name:",
                               own),
                       *exempt = strf("-name:not-exemptexpression:>-%s", all);
                char *comment;
                size_t size;

                print_message("  %s\n", rows[i].path);
                assert_return_code(read_file(path, 1u << 16, &text, &size), 0);
                while ((comment = strstr(text, "  #")))
                        memmove(comment, strchr(comment, '\n'), strlen(strchr(comment, '\n')) + 1);
                drop_spaces(text);
                drop_spaces(condition);
                drop_spaces(exempt);
                assert_non_null(strstr(text, condition));
                assert_non_null(strstr(text, exempt));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_users),           cmocka_unit_test(test_table),
                cmocka_unit_test(test_patterns),        cmocka_unit_test(test_long_names),
                cmocka_unit_test(test_match_condition), cmocka_unit_test(test_manifest),
        };
        return cmocka_run_group_tests_name("admission-exempt", tests, NULL, NULL);
}
