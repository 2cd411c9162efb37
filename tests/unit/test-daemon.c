/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kube-process.h"
#include "log-catalog.h"
#include "string-util.h"

typedef struct Said {
        StrBuf text;
        unsigned n;
} Said;

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Said *said = userdata;

        assert_int_equal(level, LOG_LEVEL_WARNING);
        assert_string_equal(message_id, MESSAGE_CREDENTIAL_AT_RISK);
        strbuf_add(&said->text, text);
        said->n++;
}

static void test_warns_of_a_credential_at_risk(void **state) {
        KubeConfig safe = { .server = (char *) "https://api:6443", .token = (char *) "s3cret" };
        KubeConfig unchecked = safe, plain = safe;
        const struct {
                KubeConfig *config;
                const char *said[3]; /* all of these; none: nothing is said */
        } rows[] = {
                { &safe, { NULL } },
                { &unchecked, { "https://api:6443", "insecure-skip-tls-verify", "certificate-authority" } },
                { &plain, { "http://api:8080", "over http://", "https://" } },
        };
        _cleanup_(log_freep) Log *log = NULL;
        (void) state;

        unchecked.insecure_skip_tls_verify = true;
        plain.server = (char *) "http://api:8080";
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "t", &log), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Said said = { 0 };

                log_set_hook(log, on_log, &said);
                kube_process_warn(&(KubeProcess){ .env = { .log = log }, .kubeconfig = rows[i].config });
                assert_int_equal(said.n, rows[i].said[0] ? 1 : 0);
                for (size_t k = 0; k < ELEMENTSOF(rows[i].said) && rows[i].said[k]; k++)
                        if (!strstr(strbuf_str(&said.text), rows[i].said[k]))
                                fail_msg("expected '%s' in: %s", rows[i].said[k], strbuf_str(&said.text));
                assert_null(strstr(strbuf_str(&said.text), "s3cret"));
                strbuf_done(&said.text);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_warns_of_a_credential_at_risk),
        };

        return cmocka_run_group_tests_name("daemon", tests, NULL, NULL);
}
