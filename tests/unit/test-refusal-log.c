/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmocka-test.h"
#include "refusal-rows.h"
#include "string-util.h"

#define BEGIN_USEC (USEC_PER_HOUR)

TEST_CASE(test_lines) {
        RefusalLog log = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(refusal_rows); i++) {
                print_message("  %s\n", refusal_rows[i].what);
                for (unsigned k = 1; k <= refusal_rows[i].n; k++) {
                        _cleanup_free_ char *line = refusal_log_add(&log, refusal_rows[i].address, refusal_rows[i].why,
                                                                    BEGIN_USEC + refusal_rows[i].at_sec * USEC_PER_SEC);

                        if (line)
                                print_message("    %s\n", line);
                        if (k < refusal_rows[i].n || !refusal_rows[i].line)
                                assert_null(line);
                        else if (!line || !strstr(line, refusal_rows[i].line))
                                fail_msg("no line with '%s'", refusal_rows[i].line);
                }
        }
}

/* The log names what the reader can do: the API server's certificate, or a NetworkPolicy and ClientCAFile=. */
TEST_CASE(test_advice) {
        RefusalLog log = { 0 };

        for (unsigned i = 0; i < _REFUSAL_MAX; i++) {
                usec_t now = BEGIN_USEC + i * USEC_PER_MINUTE;
                _cleanup_free_ char *line = NULL;

                for (unsigned k = 0; !line; k++) {
                        assert_true(k < REFUSAL_SLOW_MIN);
                        line = refusal_log_add(&log, "10.0.0.1", i, now);
                }
                assert_non_null(strstr(line, "NetworkPolicy"));
                assert_int_equal(strstr(line, "set [Webhook] ClientCAFile=") != NULL, i != REFUSAL_CERTIFICATE);
                assert_int_equal(strstr(line, "kubeConfigFile") != NULL, i == REFUSAL_CERTIFICATE);
        }
}

/* A client with many addresses gets neither more memory nor more lines than the bounds. */
TEST_CASE(test_many_addresses) {
        enum { N = 1000, MINUTES = 5 };
        RefusalLog log = { 0 };
        uint64_t n_named = 0;
        unsigned n_lines = 0;

        for (unsigned i = 0; i < N * MINUTES; i++) {
                _cleanup_free_ char *address = strf("2001:db8::%x", i), *line = NULL;
                const char *others;

                line = refusal_log_add(&log, address, HTTP_REFUSED_DISPLACED, BEGIN_USEC + i * (USEC_PER_MINUTE / N));
                if (!line)
                        continue;
                n_lines++;
                n_named++;
                others = strstr(line, "; ");
                if (others)
                        n_named += strtoul(others + 2, NULL, 10);
        }
        assert_int_equal(log.n_addresses, REFUSAL_LOG_ADDRESSES_MAX);
        assert_in_range(n_lines, REFUSAL_LINES_PER_MINUTE * MINUTES, REFUSAL_LINES_PER_MINUTE * (MINUTES + 1));
        for (size_t i = 0; i < log.n_addresses; i++)
                n_named += log.addresses[i].n[HTTP_REFUSED_DISPLACED];
        assert_int_equal(n_named + log.n_forgotten, N * MINUTES);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_advice),
                cmocka_unit_test(test_many_addresses),
        };

        return cmocka_run_group_tests_name("refusal-log", tests, NULL, NULL);
}
