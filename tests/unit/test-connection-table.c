/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "connection-rows.h"
#include "connection-table.h"

/* Reads a table from triplets (connection-rows.h). */
static void table_read(ConnectionTable *t, ConnectionEntry *entries, const char *text) {
        static const char phases[] = "irhsx";
        size_t n = 0;

        for (const char *p = text; *p; p += 3 + (p[3] == ' ')) {
                struct sockaddr_in in = { .sin_family = AF_INET,
                                          .sin_addr.s_addr = htonl((10u << 24) + (unsigned) (p[0] | 0x20)) };
                struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
                bool mapped = p[0] < 'a';

                memset(in6.sin6_addr.s6_addr + 10, 0xff, 2);
                memcpy(in6.sin6_addr.s6_addr + 12, &in.sin_addr, 4);
                assert_return_code(
                        connection_table_add(t, &entries[n],
                                             mapped ? (struct sockaddr *) &in6 : (struct sockaddr *) &in, 0),
                        0);
                connection_table_reserve(t, &entries[n], (size_t) (p[2] - '0'));
                connection_table_set_phase(t, &entries[n], (ConnectionPhase) (strchr(phases, p[1]) - phases),
                                           n + 1);
                n++;
        }
}

static void table_clear(ConnectionTable *t) {
        LIST_FOREACH (e, &t->entries, ConnectionEntry, entries)
                connection_table_remove(t, e);
        assert_int_equal(t->addresses.size, 0);
        assert_int_equal(t->n_connections, 0);
        assert_int_equal(t->body_bytes, 0);
}

static int index_of(const ConnectionEntry *e, const ConnectionEntry *entries) {
        return e ? (int) (e - entries) : -1;
}

TEST_CASE(test_address_text) {
        static const struct {
                int family;
                const char *address, *text;
        } rows[] = {
                { AF_INET, "10.1.2.3", "10.1.2.3" },
                { AF_INET6, "::ffff:10.1.2.3", "10.1.2.3" },
                { AF_INET6, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6" },
                { AF_INET6, "fe80::1", "fe80::1" },
        };
        char text[INET6_ADDRSTRLEN];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct sockaddr_in in = { .sin_family = AF_INET };
                struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
                bool is_6 = rows[i].family == AF_INET6;

                assert_int_equal(inet_pton(rows[i].family, rows[i].address,
                                           is_6 ? (void *) &in6.sin6_addr : (void *) &in.sin_addr), 1);
                client_address_format(is_6 ? (struct sockaddr *) &in6 : (struct sockaddr *) &in, text);
                assert_string_equal(text, rows[i].text);
        }
        client_address_format(NULL, text);
        assert_string_equal(text, "unix");
}

TEST_CASE(test_displaced) {
        for (size_t i = 0; i < ELEMENTSOF(connection_rows); i++) {
                struct sockaddr_in in = { .sin_family = AF_INET,
                                          .sin_addr.s_addr =
                                                  htonl((10u << 24) + (unsigned) connection_rows[i].newcomer) };
                ConnectionEntry entries[8];
                ConnectionTable t = { 0 };

                print_message("  %s\n", connection_rows[i].what);
                table_read(&t, entries, connection_rows[i].table);
                assert_int_equal(
                        index_of(connection_table_find_displaced(&t, (struct sockaddr *) &in), entries),
                        connection_rows[i].displaced);
                table_clear(&t);
        }
}

/* The last of a row asks for more bytes. */
TEST_CASE(test_displaced_body) {
        static const struct {
                const char *what, *table;
                size_t bytes;
                int displaced;
        } rows[] = {
                { "no other has a body", "ai0 ar0", 2, -1 },
                { "of its own address a larger one", "ar3 ar4 ar0", 2, 1 },
                { "none of its own address is larger", "ar2 ar2 ar0", 2, -1 },
                { "a larger one of the address that has most, not the largest of all", "br9 cr3 cr4 cr4 ar0",
                  2, 2 },
                { "a smaller one, of an address that keeps as much", "br3 br3 br3 ar0", 6, 0 },
                { "a smaller one, of an address that would keep less", "br3 br3 br3 ar0", 7, -1 },
                { "what it has already counts once", "br3 br3 br3 ar2", 6, 0 },
                { "what others of its address have counts", "br3 br3 br3 ar1 ar0", 6, -1 },
                { "the handler has the body", "bh9 ar0", 2, -1 },
                { "never itself", "ai0 ar9", 2, -1 },
                { "of bodies of one size the oldest connection's", "br4 br4 ar0", 2, 0 },
                { "of its own address, if another has as much", "br5 ar5 ar0", 2, 1 },
                { "of addresses with as much the one that came first", "br5 cr5 ar0", 2, 0 },
                { "a body of its size, of an address that has more then", "br2 br2 ar0", 2, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                ConnectionEntry entries[8];
                ConnectionTable t = { 0 };

                print_message("  %s\n", rows[i].what);
                table_read(&t, entries, rows[i].table);
                assert_int_equal(index_of(connection_table_find_displaced_body(
                                                  &t, &entries[t.entries.size - 1], rows[i].bytes),
                                          entries),
                                 rows[i].displaced);
                table_clear(&t);
        }
}

TEST_CASE(test_counts) {
        ConnectionTable t = { 0 };
        ConnectionEntry entries[8];

        table_read(&t, entries, "ai1 ar2 ah3 As4 ax5 br6");
        assert_int_equal(t.n_connections, 5);
        assert_int_equal(t.body_bytes, 1 + 2 + 3 + 4 + 6);
        assert_int_equal(entries[0].address->n_connections, 4);
        assert_int_equal(entries[0].address->n_requests, 3);
        assert_int_equal(entries[0].address->body_bytes, 1 + 2 + 3 + 4);
        connection_table_set_phase(&t, &entries[4], CONNECTION_IDLE, 1);
        assert_int_equal(entries[4].phase, CONNECTION_CUT); /* for good */
        table_clear(&t);
}

/* A connection waits for its client from its beginning. Of two that begin to wait at once, the older one gives way. */
TEST_CASE(test_waits_since) {
        static const struct {
                const char *what;
                usec_t added_usec[2], idle_usec[2]; /* idle_usec 0: still in its first phase */
                int displaced;
        } rows[] = {
                { "in the order of their beginning", { 5, 6 }, { 0, 0 }, 0 },
                { "at once", { 5, 5 }, { 0, 0 }, 0 },
                { "the first one has been heard since", { 5, 6 }, { 7, 0 }, 1 },
                { "both have been heard at once", { 5, 6 }, { 7, 7 }, 0 },
                { "the second one began after the first was heard", { 1, 9 }, { 5, 0 }, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                ConnectionEntry entries[2];
                ConnectionTable t = { 0 };

                print_message("  %s\n", rows[i].what);
                for (unsigned k = 0; k < 2; k++)
                        assert_return_code(connection_table_add(&t, &entries[k], NULL, rows[i].added_usec[k]), 0);
                for (unsigned k = 0; k < 2; k++)
                        if (rows[i].idle_usec[k] > 0)
                                connection_table_set_phase(&t, &entries[k], CONNECTION_IDLE, rows[i].idle_usec[k]);
                assert_int_equal(index_of(connection_table_find_displaced(&t, NULL), entries), rows[i].displaced);
                table_clear(&t);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_address_text),
                cmocka_unit_test(test_waits_since),
                cmocka_unit_test(test_displaced),
                cmocka_unit_test(test_displaced_body),
                cmocka_unit_test(test_counts),
        };

        return cmocka_run_group_tests_name("connection-table", tests, NULL, NULL);
}
