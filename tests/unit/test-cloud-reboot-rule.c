/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-reboot-rule.h"
#include "cmocka-test.h"
#include "marks.h"
#include "string-util.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define SLOT (30 * USEC_PER_MINUTE)

/* As they stand in an annotation, inside a JSON text that is written with ' for ". */
#define REQUEST(boot, more) \
        "'" ANNOTATION_SHUTDOWN_REQUEST "':'{\\'id\\':\\'a\\',\\'bootID\\':\\'" boot "\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'2027-01-15T09:00:00Z\\'" more "}'"
#define FOR_EVENT ",\\'event\\':\\'e\\'"
#define BY_CLOUD FOR_EVENT ",\\'by\\':\\'cloud\\'"
#define GRANT(id, until, more) ",'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'" id "\\',\\'until\\':\\'" until "\\'" more "}'"
#define TAKEN(ids) ",'" ANNOTATION_REBOOT_TAKEN "':'" ids "'"
#define MARK(id, action, phase, boot) \
        ",'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'" id "\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'ec2\\',\\'action\\':\\'" action \
        "\\',\\'phase\\':\\'" phase "\\',\\'bootID\\':\\'" boot "\\'}'"
#define ASKED REQUEST("b1", BY_CLOUD)
#define GRANTED GRANT("a", "2027-01-15T08:20:00Z", "")
#define DRAINED MARK("e", "reboot", "Drained", "b1")
#define POOLED ",'finalizers':['" FINALIZER_TERMINATION "'],'labels':{'" LABEL_NODE_POOL "':'p'}"
#define CORDONED "'unschedulable':true"

TEST_CASE(test_judge) {
        static const struct {
                const char *what, *annotations, *meta, *spec, *boot;
                CloudRebootVerdict verdict;
                const char *why;
        } rows[] = {
                { "all is so", ASKED GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_DUE, NULL },
                { "of several taken", ASKED GRANTED TAKEN("d e f") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_DUE, NULL },
                { "no request", "'a':'b'" GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
                { "a request by hand", REQUEST("b1", "") GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
                { "the agent reboots it", REQUEST("b1", FOR_EVENT) GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
                { "for no event", REQUEST("b1", ",\\'by\\':\\'cloud\\'") GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE,
                  NULL },
                { "not granted", ASKED TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE, NULL },
                { "another is granted", ASKED GRANT("b", "2027-01-15T08:20:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1",
                  CLOUD_REBOOT_NONE, NULL },
                { "granted for ever", ASKED GRANT("a", "2028-01-15T08:20:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE,
                  NULL },
                { "its slot is over", ASKED GRANT("a", "2027-01-15T07:59:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_NONE,
                  NULL },
                { "its slot is nearly over", ASKED GRANT("a", "2027-01-15T08:01:00Z", "") TAKEN("e") DRAINED, POOLED, CORDONED, "b1",
                  CLOUD_REBOOT_WAITS, "nearly over" },
                { "it has rebooted", ASKED GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "b2", CLOUD_REBOOT_NONE, NULL },
                { "no boot is known", ASKED GRANTED TAKEN("e") DRAINED, POOLED, CORDONED, "", CLOUD_REBOOT_NONE, NULL },
                { "not noted", ASKED GRANTED DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS, "has not noted" },
                { "another is noted", ASKED GRANTED TAKEN("ee") DRAINED, POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS, "has not noted" },
                { "no pool", ASKED GRANTED TAKEN("e") DRAINED, "", CORDONED, "b1", CLOUD_REBOOT_WAITS, "no NodePool" },
                { "being deleted", ASKED GRANTED TAKEN("e") DRAINED, POOLED ",'deletionTimestamp':'2027-01-15T08:00:00Z'", CORDONED, "b1",
                  CLOUD_REBOOT_WAITS, "being deleted" },
                { "nothing is said of a drain", ASKED GRANTED TAKEN("e"), POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS, "drained" },
                { "it drains", ASKED GRANTED TAKEN("e") MARK("e", "reboot", "Draining", "b1"), POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS,
                  "drained" },
                { "drained for another", ASKED GRANTED TAKEN("e") MARK("f", "reboot", "Drained", "b1"), POOLED, CORDONED, "b1",
                  CLOUD_REBOOT_WAITS, "drained" },
                { "drained for a stop", ASKED GRANTED TAKEN("e") MARK("e", "stop", "Drained", "b1"), POOLED, CORDONED, "b1", CLOUD_REBOOT_WAITS,
                  "drained" },
                { "drained in another boot", ASKED GRANTED TAKEN("e") MARK("e", "reboot", "Drained", "b0"), POOLED, CORDONED, "b1",
                  CLOUD_REBOOT_WAITS, "drained" },
                { "a person un-cordoned", ASKED GRANTED TAKEN("e") DRAINED, POOLED, "", "b1", CLOUD_REBOOT_WAITS, "drained" },
                { "the cloud is being told", ASKED GRANT("a", "2027-01-15T08:20:00Z", ",\\'sent\\':true") TAKEN("e") DRAINED, POOLED, CORDONED,
                  "b1", CLOUD_REBOOT_SENT, NULL },
                { "another was told", ASKED GRANT("b", "2027-01-15T08:20:00Z", ",\\'sent\\':true") TAKEN("e") DRAINED, POOLED, CORDONED, "b1",
                  CLOUD_REBOOT_NONE, NULL },
        };
        InternPool *pool;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text =
                        strf("{'metadata':{'name':'n','uid':'u','resourceVersion':'7','annotations':{%s}%s},'spec':{%s},"
                             "'status':{'nodeInfo':{'bootID':'%s'}}}",
                             rows[i].annotations, rows[i].meta, rows[i].spec, rows[i].boot);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_(reboot_case_done) RebootCase c = { 0 };
                CloudRebootVerdict verdict;
                const char *why, *error = NULL;
                KubeObject *o;

                for (char *p = text; *p; p++)
                        *p = *p == '\'' ? '"' : *p;
                if (json_parse(text, strlen(text), 1u << 16, &doc, NULL) < 0)
                        fail_msg("%s: no JSON: %s", rows[i].what, text);
                assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
                assert_return_code(reboot_case_read((KubeNode *) o, NOW, SLOT, &c), 0);
                verdict = cloud_reboot_judge((KubeNode *) o, &c, NOW, &why);
                if (verdict != rows[i].verdict || (rows[i].why ? !why || !strstr(why, rows[i].why) : why != NULL))
                        error = rows[i].what;
                kube_object_unref(o);
                if (error)
                        fail_msg("%s: %d ('%s'), not %d ('%s')", error, verdict, strempty(why), rows[i].verdict, strempty(rows[i].why));
        }
        intern_pool_free(pool);
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_judge) };

        return cmocka_run_group_tests_name("cloud-reboot-rule", tests, NULL, NULL);
}
