/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "notify-settings.h"
#include "string-util.h"
#include "strv.h"

TEST_CASE(test_url) {
        static const struct {
                const char *url, *fault; /* NULL: none */
        } rows[] = {
                { "https://hooks.slack.com/services/T/B/x", NULL },
                { "http://127.0.0.1:9000", NULL },
                { "http://[::1]:9000/x?y=z@w", NULL },
                { "", "neither" },
                { "ftp://a/", "neither" },
                { "hooks.slack.com/x", "neither" },
                { "https://", "no host" },
                { "https:///x", "no host" },
                { "https://a b/", "white space" },
                { "https://a/\n", "white space" },
                { "https://a/\xc3\xa4", "ASCII" },
                { "https://a/#x", "fragment" },
                { "https://u:p@a/", "user name" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *fault = notify_url_fault(rows[i].url);

                if (!rows[i].fault != !fault || (fault && !strstr(fault, rows[i].fault)))
                        fail_msg("'%s': expected '%s', got '%s'", rows[i].url, strempty(rows[i].fault), strempty(fault));
        }
}

TEST_CASE(test_headers) {
        static const struct {
                const char *text;
                size_t n;
                const char *fault; /* NULL: none */
        } rows[] = {
                { "", 0, NULL },
                { "# of nobody\n\nAuthorization:  Bearer x y  \r\nX-A: b\n", 2, NULL },
                { "Content-Type: text/plain", 1, NULL },
                { "Authorization Bearer", 0, "no \"Name: value\"" },
                { ": x", 0, "name" },
                { "A b: x", 0, "name" },
                { "A:", 0, "no value" },
                { "A: b\x01", 0, "control" },
                { "A: b\na: c", 0, "twice" },
                { "Host: x", 0, "sets itself" },
                { "content-length: 3", 0, "sets itself" },
                { "X-Vesper-Signature: x", 0, "sets itself" },
                { "Idempotency-Key: x", 0, "sets itself" },
                { "a: 1\nb: 1\nc: 1\nd: 1\ne: 1\nf: 1\ng: 1\nh: 1\ni: 1\nj: 1\nk: 1\nl: 1\nm: 1\nn: 1\no: 1\np: 1\nq: 1", 0, "16" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *fault = NULL;
                NotifyHeaders h;
                int r = notify_headers_parse(rows[i].text, strlen(rows[i].text), &h, &fault);

                if ((r == -EINVAL) != (rows[i].fault != NULL) || (rows[i].fault && !strstr(fault, rows[i].fault)) || h.n != rows[i].n)
                        fail_msg("'%s': %d, %zu, '%s'", rows[i].text, r, h.n, strempty(fault));
                if (i == 1) {
                        assert_string_equal(http_header_find(h.list, h.n, "authorization"), "Bearer x y");
                        assert_string_equal(http_header_find(h.list, h.n, "X-A"), "b");
                }
                notify_headers_done(&h);
        }
}

static void on_log(LogLevel level, const char *id, const char *text, const LogField *fields, size_t n_fields, void *userdata) {
        strbuf_addf(userdata, "%s\n", text);
}

TEST_CASE(test_check) {
        static char *good[] = { (char *) "noticed", (char *) "machine-blocked", NULL }, *bad[] = { (char *) "Noticed", NULL };
        static const struct {
                NotifySettings s;
                const char *said; /* NULL: all is well */
        } rows[] = {
                { { 0 }, NULL },
                { { .url = (char *) "https://a/s3cr3t", .template_text = (char *) "{{node}}", .phases = good }, NULL },
                { { .url = (char *) "https://a/s3cr3t", .url_file = (char *) "x" }, "[Notify] Url=" },
                { { .url = (char *) "ftp://a/s3cr3t" }, "[Notify] Url= cannot be used: it begins with neither" },
                { { .template_text = (char *) "{{nodes}}" }, "[Notify] Template= cannot be used: there is no placeholder" },
                { { .template_text = (char *) "x", .template_file = (char *) "x" }, "[Notify] Template=" },
                { { .phases = bad }, "[Notify] Phases=Noticed is no phase: expected some of reported, planned" },
        };
        _cleanup_(log_freep) Log *log = NULL;
        _cleanup_strbuf_ StrBuf said = { 0 };

        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "t", &log), 0);
        log_set_hook(log, on_log, &said);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                int r;

                strbuf_truncate(&said, 0);
                r = notify_settings_check(&rows[i].s, log);
                assert_int_equal(r, rows[i].said ? -EINVAL : 0);
                if (rows[i].said && !strstr(strbuf_str(&said), rows[i].said))
                        fail_msg("expected '%s', said '%s'", rows[i].said, strbuf_str(&said));
                assert_null(strstr(strbuf_str(&said), "s3cr3t"));
        }
}

/* The list in the help is the list of phases. */
TEST_CASE(test_help) {
        _cleanup_free_ char *names = strv_join((char *const *) notify_phase_names, ", ");

        assert_string_equal(NOTIFY_PHASES_HELP, names);
}

/* -- files -------------------------------------------------------------------------------------- */

static void put(const char *folder, const char *name, const char *text) {
        _cleanup_free_ char *path = strf("%s/%s", folder, name);
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

TEST_CASE(test_plan) {
        char folder[] = "/tmp/notify-settings-XXXXXX";
        NotifySettings s = { .timeout_usec = USEC_PER_SEC };
        static char *phases[] = { (char *) "drained", (char *) "ended", NULL };
        _cleanup_free_ char *text = NULL, *absolute = NULL;
        NotifyPlan p;

        assert_non_null(mkdtemp(folder));
        absolute = strf("%s/headers", folder);
        put(folder, "url", "https://hooks.example/s3cr3t\n");
        put(folder, "secret", "key\n");
        put(folder, "headers", "Authorization: Bearer s3cr3t\n");
        put(folder, "template", "{{phase}}\n");
        put(folder, "ca", "not a certificate");
        put(folder, "empty", "\n");
        put(folder, "bad", "s3cr3t");

        print_message("nobody is told\n");
        assert_return_code(notify_plan_load(&s, NULL, &p, &text), 0);
        assert_null(p.url);
        notify_plan_done(&p);

        print_message("all of it\n");
        s.url_file = (char *) "url";
        s.secret_file = (char *) "secret";
        s.headers_file = absolute;
        s.template_file = strf("%s/template", folder);
        s.phases = phases;
        assert_return_code(notify_plan_load(&s, folder, &p, &text), 0);
        assert_string_equal(p.url, "https://hooks.example/s3cr3t");
        assert_int_equal(p.secret_size, 3);
        assert_memory_equal(p.secret, "key", 3);
        assert_int_equal(p.headers.n, 1);
        assert_non_null(p.body);
        assert_int_equal(p.phases, 1u << NOTIFY_DRAINED | 1u << NOTIFY_ENDED);
        notify_plan_done(&p);

        for (unsigned i = 0; i < 6; i++) {
                static const char *const expected[] = {
                        "[Notify] UrlFile=url cannot be used: a name without a slash is a credential",
                        "[Notify] UrlFile=none cannot be used: No such file",
                        "[Notify] UrlFile=bad cannot be used: it begins with neither",
                        "[Notify] SecretFile=empty cannot be used: it is empty",
                        "[Notify] HeadersFile=bad cannot be used: a line is no",
                        "[Notify] CAFile=ca cannot be used: it holds no certificate",
                };
                NotifySettings bad = s;
                int r;

                print_message("%s\n", expected[i]);
                if (i == 1)
                        bad.url_file = (char *) "none";
                else if (i == 2)
                        bad.url_file = (char *) "bad";
                else if (i == 3)
                        bad.secret_file = (char *) "empty";
                else if (i == 4)
                        bad.headers_file = (char *) "bad";
                else if (i == 5)
                        bad.ca_file = (char *) "ca";
                r = notify_plan_load(&bad, i == 0 ? NULL : folder, &p, &text);
                assert_true(r < 0);
                assert_null(p.url);
                if (!strstr(text, expected[i]) || strstr(text, "s3cr3t"))
                        fail_msg("said: %s", text);
                text = mfree(text);
        }
        free(s.template_file);
        for (size_t i = 0; i < 7; i++) {
                static const char *const names[] = { "url", "secret", "headers", "template", "ca", "empty", "bad" };
                _cleanup_free_ char *path = strf("%s/%s", folder, names[i]);

                assert_return_code(unlink(path), 0);
        }
        assert_return_code(rmdir(folder), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_url),  cmocka_unit_test(test_headers), cmocka_unit_test(test_check),
                cmocka_unit_test(test_help), cmocka_unit_test(test_plan),
        };

        return cmocka_run_group_tests_name("notify-settings", tests, NULL, NULL);
}
