/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "listen-address.h"
#include "string-util.h"

static void test_parse(void **state) {
        static const struct {
                const char *text, *address; /* NULL: refused */
                uint16_t port;
        } rows[] = {
                { "127.0.0.1:9101", "127.0.0.1", 9101 },
                { "[::1]:80", "::1", 80 },
                { ":65535", "127.0.0.1", 65535 },
                { "127.0.0.1:0", "127.0.0.1", 0 },
                { "localhost:9101", "localhost", 9101 },
                { "9101", NULL, 0 },
                { "::1:80", NULL, 0 },
                { "127.0.0.1:65536", NULL, 0 },
                { "127.0.0.1:-1", NULL, 0 },
                { "127.0.0.1:", NULL, 0 },
                { "[::1:80", NULL, 0 },
                { "[]", NULL, 0 },
                { "", NULL, 0 },
                { "a:b", NULL, 0 },
                { "[:1", NULL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *address = NULL;
                uint16_t port = 0;

                print_message("'%s'\n", rows[i].text);
                assert_int_equal(listen_address_parse(rows[i].text, "127.0.0.1", &address, &port),
                                 rows[i].address ? 0 : -EINVAL);
                if (rows[i].address)
                        assert_string_equal(address, rows[i].address);
                assert_int_equal(port, rows[i].port);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
