/* SPDX-License-Identifier: Apache-2.0 */
#include "address-rates.h"
#include "alloc-util.h"
#include "cmocka-test.h"

#define BEGIN_USEC USEC_PER_HOUR

static struct in6_addr address(unsigned host) {
        struct in6_addr ip = { 0 };

        ip.s6_addr[0] = 0x20;
        ip.s6_addr[14] = (uint8_t) (host >> 8);
        ip.s6_addr[15] = (uint8_t) host;
        return ip;
}

static AddressRates *rates_new(AddressLimits limits) {
        AddressRates *r = new0(AddressRates, 1);

        assert_non_null(r);
        r->limits = limits;
        return r;
}

/* Bursts of 100 bytes, 10 a second, of which bodies above 20 bytes leave 50. */
TEST_CASE(test_bodies) {
        static const struct {
                const char *what;
                unsigned at_sec, host;
                size_t bytes;
                unsigned n, taken; /* bodies asked for, and how many of them are taken */
        } rows[] = {
                { "large ones", 0, 1, 25, 10, 2 },
                { "small ones have the other half", 0, 1, 20, 10, 2 },
                { "what is left is for smaller ones", 0, 1, 10, 10, 1 },
                { "nothing is left", 0, 1, 1, 10, 0 },
                { "another address", 0, 2, 25, 10, 2 },
                { "a second later", 1, 1, 10, 10, 1 },
                { "a large one has to wait for the half", 7, 1, 25, 10, 0 },
                { "and its own size", 9, 1, 25, 10, 1 },
                { "full again, and no more than full", 1000, 1, 20, 10, 5 },
                { "larger than may ever come", 9000, 1, 51, 1, 0 },
                { "no body", 9000, 1, 0, 1000, 1000 },
        };
        AddressRates *r = rates_new((AddressLimits){ .burst_bytes = 100, .bytes_per_sec = 10, .small_body_bytes = 20 });

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                struct in6_addr ip = address(rows[i].host);
                unsigned taken = 0;

                print_message("  %s\n", rows[i].what);
                for (unsigned k = 0; k < rows[i].n; k++)
                        taken += address_rates_take_body(r, &ip, rows[i].bytes, BEGIN_USEC + rows[i].at_sec * USEC_PER_SEC);
                assert_int_equal(taken, rows[i].taken);
        }
        free(r);
}

TEST_CASE(test_connections) {
        AddressRates *r = rates_new((AddressLimits){ .burst_connections = 8, .connections_per_sec = 2 });
        static const unsigned at_sec[] = { 0, 1, 2, 3, 100 }, taken[] = { 8, 2, 2, 2, 8 };

        for (size_t i = 0; i < ELEMENTSOF(at_sec); i++)
                for (unsigned host = 0; host < 3; host++) {
                        struct in6_addr ip = address(host);
                        unsigned n = 0;

                        for (unsigned k = 0; k < 100; k++)
                                n += address_rates_take_connection(r, &ip, BEGIN_USEC + at_sec[i] * USEC_PER_SEC);
                        assert_int_equal(n, taken[i]);
                        assert_true(address_rates_take_body(r, &ip, 1u << 30, BEGIN_USEC));
                }
        free(r);
}

/* The address that was seen longest ago gives way; of two that were seen at once, the first. */
TEST_CASE(test_many_addresses) {
        AddressRates *r = rates_new((AddressLimits){ .burst_connections = 1 });

        for (unsigned round = 0; round < 2; round++)
                for (unsigned host = 0; host < ADDRESS_RATES_MAX; host++) {
                        struct in6_addr ip = address(host);

                        assert_int_equal(address_rates_take_connection(r, &ip, BEGIN_USEC + round * USEC_PER_SEC + host / 2), round == 0);
                }
        for (unsigned host = 1000; host < 1001; host++) {
                struct in6_addr ip = address(host);

                assert_true(address_rates_take_connection(r, &ip, BEGIN_USEC + USEC_PER_MINUTE));
                assert_false(address_rates_take_connection(r, &ip, BEGIN_USEC + USEC_PER_MINUTE));
        }
        assert_int_equal(r->n, ADDRESS_RATES_MAX);
        for (unsigned host = 1; host < ADDRESS_RATES_MAX; host++) {
                struct in6_addr ip = address(host);

                assert_false(address_rates_take_connection(r, &ip, BEGIN_USEC + USEC_PER_MINUTE));
        }
        free(r);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bodies),
                cmocka_unit_test(test_connections),
                cmocka_unit_test(test_many_addresses),
        };

        return cmocka_run_group_tests_name("address-rates", tests, NULL, NULL);
}
