/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "early-rule.h"
#include "json.h"
#include "marks.h"
#include "string-util.h"

static InternPool *pool;

static int setup(void **state) {
        return intern_pool_new(&pool);
}

static int teardown(void **state) {
        pool = intern_pool_free(pool);
        return 0;
}

/* As the API server would send it, with ' for ". */
static KubeNode *node_of(const char *meta, const char *rest) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = strf("{'metadata':{'name':'n','uid':'u'%s}%s}", meta, rest);
        KubeObject *o = NULL;

        for (char *p = text; *p; p++)
                if (*p == '\'')
                        *p = '"';
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        return (KubeNode *) o;
}

#define POOLED ",'finalizers':['" FINALIZER_TERMINATION "'],'labels':{'" LABEL_NODE_POOL "':'p'}"
#define TAKEN(ids) ",'annotations':{'" ANNOTATION_REBOOT_TAKEN "':'" ids "'}"

TEST_CASE(test_early) {
        static char id[] = "e", action[] = "reboot", redeploy[] = "redeploy";
        static char vm_a[] = "vm-a", vm_b[] = "vm-b", *others[] = { vm_a, vm_b, NULL };
        const struct {
                const char *what, *meta;
                Notice n;
                EarlyFacts f;
                const char *why; /* part of it; NULL: it may be taken */
        } rows[] = {
                { "EC2, of a pool", POOLED, { .early = NOTICE_EARLY_CLOUD }, { 0 }, NULL },
                { "... of no pool", "", { .early = NOTICE_EARLY_CLOUD }, { 0 }, "no NodePool" },
                { "... with the finalizer alone", ",'finalizers':['" FINALIZER_TERMINATION "']", { .early = NOTICE_EARLY_CLOUD }, { 0 },
                  "no NodePool" },
                { "an instance-reboot", POOLED, { .early = NOTICE_EARLY_NEVER }, { 0 }, "would not end it" },
                { "not wanted", POOLED, { .early = NOTICE_EARLY_CLOUD }, { .wanted = true }, "does not say early" },
                { "taken once", POOLED TAKEN("x e y"), { .early = NOTICE_EARLY_CLOUD }, { 0 }, "taken early once" },
                { "another was taken", POOLED TAKEN("x ee y"), { .early = NOTICE_EARLY_CLOUD }, { 0 }, NULL },
                { "its time has come", POOLED, { .early = NOTICE_EARLY_CLOUD }, { .is_due = true }, "its time" },
                { "it came to nothing", POOLED, { .early = NOTICE_EARLY_CLOUD }, { .is_refused = true }, "came to nothing" },
                { "the Node is being deleted", POOLED ",'deletionTimestamp':'2027-01-01T00:00:00Z'", { .early = NOTICE_EARLY_CLOUD }, { 0 },
                  "being deleted" },
                { "only advice", POOLED, { .early = NOTICE_EARLY_CLOUD, .certainty = NOTICE_ADVISORY }, { 0 }, "no certain reboot" },
                { "a spot notice", POOLED, { .early = NOTICE_EARLY_CLOUD, .kind = NOTICE_SPOT }, { 0 }, "no certain reboot" },
                { "a redeployment", POOLED, { .early = NOTICE_EARLY_ACK, .action = redeploy }, { 0 }, "no certain reboot" },
                { "Azure, of any node", "", { .early = NOTICE_EARLY_ACK }, { .acknowledge = ACKNOWLEDGE_ALONE }, NULL },
                { "... and nothing is acknowledged", "", { .early = NOTICE_EARLY_ACK }, { 0 }, "Acknowledge=no" },
                { "... of several machines", "", { .early = NOTICE_EARLY_ACK, .resources = others }, { .acknowledge = ACKNOWLEDGE_ALL },
                  "other machines" },
                { "a file's", "", { .early = NOTICE_EARLY_MACHINE }, { .has_bus = true }, NULL },
                { "... and nobody reaches logind", "", { .early = NOTICE_EARLY_MACHINE }, { 0 }, "system bus" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *node = node_of(rows[i].meta, "");
                Notice n = rows[i].n;
                EarlyFacts f = rows[i].f;
                const char *why;

                n.id = id;
                n.kind = n.kind == 0 ? NOTICE_MAINTENANCE : n.kind;
                if (streq(rows[i].what, "a spot notice"))
                        n.kind = NOTICE_SPOT;
                if (!n.action)
                        n.action = action;
                f.wanted = !f.wanted;
                f.node = node;
                why = early_why_left(&n, &f);
                if (rows[i].why ? !why || !strstr(why, rows[i].why) : why != NULL)
                        fail_msg("%s: '%s', not '%s'", rows[i].what, strempty(why), strempty(rows[i].why));
                kube_object_unref(&node->object);
        }
}

TEST_CASE(test_acknowledge) {
        static char vm_a[] = "vm-a", vm_b[] = "vm-b", *others[] = { vm_a, vm_b, NULL };
        static const struct {
                const char *what, *source;
                bool others, advisory;
                int acknowledge;
                const char *ack_ok, *why;
        } rows[] = {
                { "alone", "azure", false, false, ACKNOWLEDGE_ALONE, NULL, NULL },
                { "alone, and all are wanted", "azure", false, false, ACKNOWLEDGE_ALL, NULL, NULL },
                { "not configured", "azure", false, false, ACKNOWLEDGE_NO, "e", "Acknowledge=no" },
                { "another cloud", "ec2", false, false, ACKNOWLEDGE_ALL, "e", "takes no acknowledgement" },
                { "advice", "azure", false, true, ACKNOWLEDGE_ALL, NULL, "advice" },
                { "others, and only alone is wanted", "azure", true, false, ACKNOWLEDGE_ALONE, "e", "Acknowledge=alone" },
                { "others, and nobody says that they are drained", "azure", true, false, ACKNOWLEDGE_ALL, NULL, "does not say" },
                { "others, and somebody says so of another event", "azure", true, false, ACKNOWLEDGE_ALL, "f", "does not say" },
                { "others, all drained", "azure", true, false, ACKNOWLEDGE_ALL, "e", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *meta = rows[i].ack_ok ? strf(",'annotations':{'" ANNOTATION_ACK_OK "':'%s'}", rows[i].ack_ok) : strdup("");
                KubeNode *node = node_of(meta, "");
                static char id[] = "e";
                const Notice n = { .id = id,
                                   .kind = NOTICE_MAINTENANCE,
                                   .source = (char *) rows[i].source,
                                   .certainty = rows[i].advisory ? NOTICE_ADVISORY : NOTICE_CERTAIN,
                                   .resources = rows[i].others ? others : NULL };
                const char *why = acknowledge_why_not(&n, rows[i].acknowledge, node);

                if (rows[i].why ? !why || !strstr(why, rows[i].why) : why != NULL)
                        fail_msg("%s: '%s', not '%s'", rows[i].what, strempty(why), strempty(rows[i].why));
                kube_object_unref(&node->object);
        }
}

#define MARK(id, phase, boot) \
        ",'annotations':{'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'" id "\\',\\'kind\\':\\'maintenance\\',\\'phase\\':\\'" phase \
        "\\',\\'bootID\\':\\'" boot "\\'}'}"
#define CORDONED ",'spec':{'unschedulable':true}"

TEST_CASE(test_drained) {
        static const struct {
                const char *what, *meta, *rest, *why;
        } rows[] = {
                { "drained", MARK("e", "Drained", "b1"), CORDONED, NULL },
                { "nothing is said", "", CORDONED, "does not say" },
                { "it drains", MARK("e", "Draining", "b1"), CORDONED, "does not say" },
                { "a person un-cordoned", MARK("e", "Released", "b1"), "", "does not say" },
                { "for another", MARK("f", "Drained", "b1"), CORDONED, "does not say" },
                { "in an earlier boot", MARK("e", "Drained", "b0"), CORDONED, "does not say" },
                { "somebody un-cordoned just now", MARK("e", "Drained", "b1"), "", "schedulable" },
        };
        static char id[] = "e";
        const Notice n = { .id = id, .kind = NOTICE_MAINTENANCE };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *node = node_of(rows[i].meta, rows[i].rest);
                const char *why = acknowledge_why_not_drained(&n, node, "b1");

                if (rows[i].why ? !why || !strstr(why, rows[i].why) : why != NULL)
                        fail_msg("%s: '%s', not '%s'", rows[i].what, strempty(why), strempty(rows[i].why));
                kube_object_unref(&node->object);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_early),
                cmocka_unit_test(test_acknowledge),
                cmocka_unit_test(test_drained),
        };

        return cmocka_run_group_tests_name("early-rule", tests, setup, teardown);
}
