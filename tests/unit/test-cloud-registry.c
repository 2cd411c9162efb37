/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cloud-registry.h"
#include "cmocka-test.h"
#include "string-util.h"

static unsigned n_freed;

static bool owns_aws(const CloudProvider *p, const char *provider_id) {
        return startswith(provider_id, "aws:///") != NULL;
}

static bool owns_any(const CloudProvider *p, const char *provider_id) {
        return !isempty(provider_id);
}

static void count_freed(CloudProvider *p) {
        n_freed++;
}

static const CloudProviderOps ec2_ops = { .name = "ec2", .owns = owns_aws, .free = count_freed },
                              exec_ops = { .name = "exec", .owns = owns_any, .takes_names = true, .free = count_freed };

TEST_CASE(test_for) {
        static const struct {
                const char *order, *id, *expected;
        } rows[] = {
                { "ec2", "aws:///us-east-1a/i-1", "ec2" },
                { "ec2", "rack:7", "ec2" }, /* which refuses it */
                { "ec2", "", "ec2" },
                { "ec2 exec", "aws:///us-east-1a/i-1", "ec2" },
                { "ec2 exec", "rack:7", "exec" },
                { "ec2 exec", "exec://n1", "exec" },
                { "ec2 exec", "", "ec2" },
                { "ec2 exec", NULL, "ec2" },
                { "exec ec2", "aws:///us-east-1a/i-1", "exec" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                CloudProvider ec2 = { .ops = &ec2_ops }, exec = { .ops = &exec_ops };
                bool exec_first = startswith(rows[i].order, "exec"), has_exec = strstr(rows[i].order, "exec");
                _cleanup_free_ char *names = NULL;
                CloudRegistry c = { 0 };

                print_message("  %s, with %s\n", strempty(rows[i].id), rows[i].order);
                if (exec_first)
                        cloud_registry_add(&c, &exec);
                cloud_registry_add(&c, &ec2);
                if (has_exec && !exec_first)
                        cloud_registry_add(&c, &exec);
                assert_string_equal(cloud_registry_for(&c, rows[i].id)->ops->name, rows[i].expected);
                names = cloud_registry_names(&c);
                assert_string_equal(names, rows[i].order);
                assert_ptr_equal(cloud_registry_named(&c, "ec2"), &ec2);
                assert_ptr_equal(cloud_registry_named(&c, "exec"), has_exec ? &exec : NULL);
                assert_null(cloud_registry_named(&c, "gce"));

                n_freed = 0;
                cloud_registry_done(&c);
                assert_int_equal(n_freed, has_exec ? 2 : 1);
                assert_int_equal(c.n_providers, 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_for),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
