/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmocka-test.h"
#include "refusal-log.h"
#include "string-util.h"

#define BEGIN_USEC (USEC_PER_HOUR)

TEST_CASE(test_lines) {
        static const struct {
                const char *what, *address;
                Refusal why;
                unsigned n, at_sec;
                const char *line; /* part of the line of the last of these n refusals; NULL: none */
        } rows[] = {
                { "the first refusal of an address", "10.0.0.1", REFUSAL_CERTIFICATE, 1, 0,
                  "refused requests from 10.0.0.1: 1 without a certificate of ClientCAFile= (HTTP 401). If an API server" },
                { "more within the minute", "10.0.0.1", REFUSAL_CERTIFICATE, 500, 30, NULL },
                { "another reason within the minute", "10.0.0.1", HTTP_REFUSED_SIZE, 2, 59, NULL },
                { "another address has a line of its own", "2001:db8::1", REFUSAL_PATH, 1, 59,
                  "from 2001:db8::1: 1 other than POST /admission (HTTP 404 or 405). If an API server" },
                { "a minute later the line has all", "10.0.0.1", HTTP_REFUSED_SIZE, 1, 60,
                  "from 10.0.0.1: 3 with a body that is too large (HTTP 413), 500 without a certificate" },
                { "they are counted once", "10.0.0.1", HTTP_REFUSED_BODIES, 1, 120,
                  "from 10.0.0.1: 1 without room for the body (HTTP 503). If" },
                { "a few slow ones", "10.0.0.2", HTTP_REFUSED_SLOW, REFUSAL_SLOW_MIN - 1, 130, NULL },
                { "are forgotten after a minute", "10.0.0.2", HTTP_REFUSED_SLOW, REFUSAL_SLOW_MIN - 1, 190, NULL },
                { "many slow ones", "10.0.0.2", HTTP_REFUSED_SLOW, 1, 249, "from 10.0.0.2: 10 not complete in time" },
                { "a slow one beside another reason", "10.0.0.3", HTTP_REFUSED_SLOW, 1, 250, NULL },
                { "", "10.0.0.3", HTTP_REFUSED_ADDRESS, 1, 251, "1 beyond the number of unanswered requests of one address (HTTP 503), 1 not" },
                { "no address", NULL, REFUSAL_REVIEW, 1, 300, "from an unknown address: 1 without an AdmissionReview (HTTP 400)" },
                { "no address, but a text", "\x1b]0;t\x07", REFUSAL_REVIEW, 1, 360, "from an unknown address: 1 w" },
        };
        RefusalLog log = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("  %s\n", rows[i].what);
                for (unsigned k = 1; k <= rows[i].n; k++) {
                        _cleanup_free_ char *line = refusal_log_add(&log, rows[i].address, rows[i].why,
                                                                    BEGIN_USEC + rows[i].at_sec * USEC_PER_SEC);

                        if (line)
                                print_message("    %s\n", line);
                        if (k < rows[i].n || !rows[i].line)
                                assert_null(line);
                        else if (!line || !strstr(line, rows[i].line))
                                fail_msg("no line with '%s'", rows[i].line);
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
