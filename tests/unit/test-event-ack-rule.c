/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "event-ack-rule.h"
#include "marks.h"
#include "string-util.h"
#include "strv.h"

static InternPool *pool;

static int setup(void **state) {
        return intern_pool_new(&pool);
}

static int teardown(void **state) {
        pool = intern_pool_free(pool);
        return 0;
}

static KubeNode *node_of(char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o;

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        free(text);
        return (KubeNode *) o;
}

#define GROUP "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"

TEST_CASE(test_machine) {
        static const struct {
                const char *provider_id, *machine;
        } rows[] = {
                { GROUP "virtualMachines/vm-a", "vm-a" },
                { GROUP "virtualMachineScaleSets/pool/virtualMachines/7", "pool_7" },
                { "azure:///subscriptions/s/resourcegroups/g/providers/microsoft.compute/VIRTUALMACHINESCALESETS/Pool/virtualmachines/7", "Pool_7" },
                { GROUP "virtualMachines/vm-a/extensions/x", "" },
                { GROUP "virtualMachines/", "" },
                { GROUP "virtualMachineScaleSets/pool", "" },
                { "azure:///subscriptions/s/resourceGroups/virtualMachines/providers/Microsoft.Compute/virtualMachines/vm", "" },
                { "aws:///us-east-1a/i-0123456789abcdef0", "" },
                { NULL, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_of(rows[i].provider_id ? strf("{'metadata':{'name':'n','uid':'u'},'spec':{'providerID':'%s'}}", rows[i].provider_id)
                                                          : strdup("{'metadata':{'name':'n','uid':'u'}}"));
                EventAckNode read;

                event_ack_node_read(n, &read);
                assert_string_equal(read.machine, rows[i].machine);
                assert_null(read.event);
                kube_object_unref(&n->object);
        }
}

TEST_CASE(test_too_long) {
        char name[AZURE_VM_NAME_MAX + 2];
        EventAckNode read;
        KubeNode *n;

        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = 0;
        n = node_of(strf("{'metadata':{'name':'n','uid':'u'},'spec':{'providerID':'" GROUP "virtualMachineScaleSets/%s/virtualMachines/7'}}", name));
        event_ack_node_read(n, &read);
        assert_string_equal(read.machine, "");
        kube_object_unref(&n->object);
}

/* What an agent says counts in its boot, while the node is cordoned. */
TEST_CASE(test_read) {
        static const struct {
                const char *what, *phase, *boot, *spec;
                bool has_event, is_drained;
        } rows[] = {
                { "drained", "Drained", "b1", "'unschedulable':true", true, true },
                { "it drains", "Draining", "b1", "'unschedulable':true", true, false },
                { "schedulable", "Drained", "b1", "", true, false },
                { "released", "Released", "b1", "", false, false },
                { "cancelled", "Cancelled", "b1", "'unschedulable':true", false, false },
                { "no boot is said", "Drained", "", "'unschedulable':true", true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                EventAckNode read;
                KubeNode *n = node_of(strf("{'metadata':{'name':'n','uid':'u','annotations':{'" ANNOTATION_INTERRUPTION
                                           "':'{\\'id\\':\\'e\\',\\'kind\\':\\'maintenance\\',\\'phase\\':\\'%s\\',\\'bootID\\':\\'%s\\',"
                                           "\\'resources\\':[\\'a\\',\\'b\\']}'}},'spec':{%s},'status':{'nodeInfo':{'bootID':'b1'}}}",
                                           rows[i].phase, rows[i].boot, rows[i].spec));

                assert_non_null(n->interruption);
                event_ack_node_read(n, &read);
                if (!!read.event != rows[i].has_event || read.is_drained != rows[i].is_drained)
                        fail_msg("%s", rows[i].what);
                if (read.event)
                        assert_int_equal(strv_length(read.resources), 2);
                kube_object_unref(&n->object);
        }
}

static char vm_a[] = "vm-a", vm_b[] = "VM-B", vm_c[] = "vm-c", many[] = NOTICE_RESOURCES_TOO_MANY;
static char *both[] = { vm_a, vm_b, NULL }, *three[] = { vm_a, vm_b, vm_c, NULL }, *too_many[] = { vm_a, many, NULL };

TEST_CASE(test_may) {
        static const struct {
                const char *what;
                EventAckNode nodes[4];
                size_t n;
                const char *why; /* NULL: it may */
        } rows[] = {
                { "both drained", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, true, NULL } }, 2, NULL },
                { "... beside another", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, true, NULL }, { "n3", "vm-c", NULL, NULL, false, NULL } },
                  3, NULL },
                { "one drains", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, false, NULL } }, 2, "node n2 (machine VM-B) is not drained" },
                { "one knows nothing of it", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", NULL, NULL, false, NULL } }, 2, "node n2" },
                { "one is drained for another", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "f", both, true, NULL } }, 2, "node n2" },
                { "one is no node", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "", "e", both, true, NULL } }, 2, "machine VM-B, which it names, is no node" },
                { "agents differ: all that any names count",
                  { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", three, true, NULL }, { "n3", "vm-c", NULL, NULL, false, NULL } }, 3, "node n3" },
                { "two Nodes are one machine", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, true, NULL }, { "n3", "vm-b", NULL, NULL, false, NULL } },
                  3, "node n3" },
                { "more than are looked at", { { "n1", "vm-a", "e", too_many, true, NULL } }, 1, "more machines than" },
                { "nobody says", { { "n1", "vm-a", "f", both, true, NULL } }, 1, "no agent says" },
                { "nothing there", { { NULL } }, 0, "no agent says" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *why = NULL;
                int r = event_ack_may(rows[i].nodes, rows[i].n, "e", &why);

                assert_return_code(r, 0);
                if (r != (rows[i].why == NULL) || (rows[i].why && (!why || !strstr(why, rows[i].why))))
                        fail_msg("%s: %d '%s'", rows[i].what, r, strempty(why));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_machine),
                cmocka_unit_test(test_too_long),
                cmocka_unit_test(test_read),
                cmocka_unit_test(test_may),
        };

        return cmocka_run_group_tests_name("event-ack-rule", tests, setup, teardown);
}
