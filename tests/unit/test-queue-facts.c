/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "queue-facts.h"

/* Which providerID is of the instance that a message names? */
TEST_CASE(test_is_of_instance) {
        static const struct {
                const char *provider_id, *instance;
                bool expected;
        } rows[] = {
                { "aws:///eu-central-1a/i-1", "i-1", true },
                { "aws://i-1", "i-1", true },
                { "aws:///eu-central-1a/i-1", "i-2", false },
                { "aws:///eu-central-1a/i-12", "i-1", false },
                { "aws:///eu-central-1a/i-1", "i-12", false },
                { "aws:///i-1/i-2", "i-1", false },
                { "aws:///eu-central-1a/i-1/", "i-1", false },
                { "gce://project/zone/i-1", "i-1", false },
                { "i-1", "i-1", false },
                { "", "i-1", false },
                { NULL, "i-1", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s, %s\n", rows[i].provider_id ? rows[i].provider_id : "no providerID", rows[i].instance);
                assert_int_equal(queue_is_of_instance(rows[i].provider_id, rows[i].instance), rows[i].expected);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_is_of_instance),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
