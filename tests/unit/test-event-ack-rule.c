/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "event-ack-rows.h"
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

TEST_CASE(test_may) {

        for (size_t i = 0; i < ELEMENTSOF(event_ack_rows); i++) {
                _cleanup_free_ char *why = NULL;
                int r = event_ack_may(event_ack_rows[i].nodes, event_ack_rows[i].n, "e", &why);

                assert_return_code(r, 0);
                if (r != (event_ack_rows[i].why == NULL) || (event_ack_rows[i].why && (!why || !strstr(why, event_ack_rows[i].why))))
                        fail_msg("%s: %d '%s'", event_ack_rows[i].what, r, strempty(why));
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
