/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-reboot-rows.h"
#include "cmocka-test.h"
#include "string-util.h"

TEST_CASE(test_judge) {
        InternPool *pool;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(cloud_reboot_rows); i++) {
                _cleanup_free_ char *text =
                        strf("{'metadata':{'name':'n','uid':'u','resourceVersion':'7','annotations':{%s}%s},'spec':{%s},"
                             "'status':{'nodeInfo':{'bootID':'%s'}}}",
                             cloud_reboot_rows[i].annotations, cloud_reboot_rows[i].meta, cloud_reboot_rows[i].spec, cloud_reboot_rows[i].boot);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_(reboot_case_done) RebootCase c = { 0 };
                CloudRebootVerdict verdict;
                const char *why, *error = NULL;
                KubeObject *o;

                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                if (json_parse(text, strlen(text), 1u << 16, &doc, NULL) < 0)
                        fail_msg("%s: no JSON: %s", cloud_reboot_rows[i].what, text);
                assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
                assert_return_code(reboot_case_read((KubeNode *) o, CLOUD_ROWS_NOW, CLOUD_ROWS_SLOT, &c), 0);
                verdict = cloud_reboot_judge((KubeNode *) o, &c, CLOUD_ROWS_NOW, &why);
                if (verdict != cloud_reboot_rows[i].verdict ||
                    (cloud_reboot_rows[i].why ? !why || !strstr(why, cloud_reboot_rows[i].why) : why != NULL))
                        error = cloud_reboot_rows[i].what;
                kube_object_unref(o);
                if (error)
                        fail_msg("%s: %d ('%s'), not %d ('%s')", error, verdict, strempty(why),
                                 cloud_reboot_rows[i].verdict, strempty(cloud_reboot_rows[i].why));
        }
        intern_pool_free(pool);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_judge) };

        return cmocka_run_group_tests_name("cloud-reboot-rule", tests, NULL, NULL);
}
