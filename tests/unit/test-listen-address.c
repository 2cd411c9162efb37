/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "listen-address.h"
#include "string-util.h"

TEST_CASE(test_parse) {
        static const struct {
                const char *text, *address; /* NULL: refused */
                uint16_t port;
        } rows[] = {
                { "127.0.0.1:9101", "127.0.0.1", 9101 },
                { "[::1]:80", "::1", 80 },
                { ":65535", "127.0.0.1", 65535 },
                { "127.0.0.1:0", "127.0.0.1", 0 },
                { "localhost:9101", "localhost", 9101 },
                { "*:9103", "*", 9103 },
                { "[]:80", "127.0.0.1", 80 },
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

TEST_CASE(test_unix_path) {
        char longest[120] = "unix:/", *end = longest + strlen(longest);

        assert_string_equal(listen_address_unix_path("unix:/run/vesper-agent/metrics"),
                            "/run/vesper-agent/metrics");
        assert_null(listen_address_unix_path("unix:relative"));
        assert_null(listen_address_unix_path("127.0.0.1:9101"));
        memset(end, 'x', 106); /* with the slash 107: what an address has room for, and its NUL */
        assert_non_null(listen_address_unix_path(longest));
        end[106] = 'x';
        assert_null(listen_address_unix_path(longest));
}

/* What an earlier process left is replaced; a file of somebody else is not. */
TEST_CASE(test_listen_unix) {
        char folder[] = "/tmp/test-listen-XXXXXX";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int first, second, client;

        assert_non_null(mkdtemp(folder));
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
        first = listen_unix(address.sun_path);
        assert_return_code(first, 0);
        second = listen_unix(address.sun_path);
        assert_return_code(second, 0);
        client = socket(AF_UNIX, SOCK_STREAM, 0);
        assert_return_code(connect(client, (const struct sockaddr *) &address, sizeof(address)), errno);
        assert_return_code(close(accept(second, NULL, NULL)), errno); /* it is the second that is asked */
        (void) close(client);
        (void) close(first);
        (void) close(second);
        (void) unlink(address.sun_path);
        assert_return_code(close(open(address.sun_path, O_CREAT | O_WRONLY, 0600)), errno);
        assert_int_equal(listen_unix(address.sun_path), -EEXIST);
        (void) unlink(address.sun_path);
        assert_int_equal(listen_unix("/nonexistent/folder/socket"), -ENOENT);
        (void) rmdir(folder);
}

TEST_CASE(test_loopback) {
        static const struct {
                const char *address;
                bool loopback;
        } rows[] = {
                { "127.0.0.1", true },  { "127.8.9.10", true },
                { "::1", true },        { "0.0.0.0", false },
                { "::", false },        { "10.0.0.127", false },
                { "::2", false },       { "126.0.0.1", false },
                { "localhost", false }, { "::ffff:10.0.0.1", false },
                { "128.0.0.1", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].address);
                assert_int_equal(listen_address_is_loopback(rows[i].address), rows[i].loopback);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_unix_path),
                cmocka_unit_test(test_loopback),
                cmocka_unit_test(test_listen_unix),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
