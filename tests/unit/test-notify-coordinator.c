/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "notify-receiver.h"
#include "removal-notify.h"

#define SETTING "Notify.Url=" RECEIVER_URL

#define INTERRUPTION(phase) \
        "{'metadata':{'annotations':{'vesper.sh/interruption':'{\\'id\\':\\'i-1/terminate\\',\\'kind\\':\\'spot\\'," \
        "\\'source\\':\\'ec2\\',\\'action\\':\\'terminate\\',\\'phase\\':\\'" phase "\\',\\'podsLeft\\':1}'}}}"

static CoordinatorRig *telling_rig(Receiver *receiver, unsigned n_nodes, const char *setting) {
        CoordinatorRig *r = coordinator_rig_new();

        r->settings[0] = (char *) SETTING;
        r->settings[1] = (char *) (uintptr_t) setting;
        rig_begin(r, n_nodes, NULL);
        assert_return_code(http_inproc_route(r->coordinators[0]->transport, RECEIVER_ORIGIN, receiver_handle, receiver), 0);
        return r;
}

static void add_pod(CoordinatorRig *r, const char *node) {
        fake_add_pod(r->cluster, &(FakePod){ .name = node, .node = node, .app = "web", .stop_sec = 1 });
}

TEST_CASE(test_deletion) {
        Receiver receiver = { .status = 200 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = telling_rig(&receiver, 2, NULL);

        add_pod(r, "n0");
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(strbuf_str(&receiver.got),
                            "n0 noticed 200\nn0 cordoned 200\nn0 draining 200\nn0 drained 200\nn0 ended 200\n");
        assert_non_null(strstr(strbuf_str(&receiver.last), "\"noticeID\":\"deletion\",\"kind\":\"deletion\",\"action\":\"terminate\""));
        assert_non_null(strstr(strbuf_str(&receiver.last), "\"reporter\":\"vesper-coordinator\""));
        assert_null(strstr(strbuf_str(&r->coordinators[0]->said), "s3cr3t"));
        receiver_done(&receiver);
}

/* A removal that is for the agent's interruption goes under its notice: the keys are the agent's. */
TEST_CASE(test_agents_notice) {
        Receiver receiver = { .status = 200 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = telling_rig(&receiver, 2, NULL);
        char key[NOTIFY_KEY_MAX];
        _cleanup_free_ char *uid = NULL;

        assert_non_null(uid = strdup(fj_string(rig_node(r, "n0"), "metadata", "uid", NULL)));
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", INTERRUPTION("Drained"));
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE)); /* [Interruption] Delete=terminate */
        rig_run(r, USEC_PER_SEC);
        assert_non_null(strstr(strbuf_str(&receiver.got), "n0 noticed 200\nn0 cordoned 200\n"));
        assert_return_code(notify_key(&(NotifyFacts){ .phase = NOTIFY_ENDED, .node_uid = uid, .notice_id = "i-1/terminate" }, key), 0);
        assert_string_equal(receiver.key, key);
        receiver_done(&receiver);
}

/* Where agents tell, only the end of the machine is the coordinator's to tell. */
TEST_CASE(test_agents_tell) {
        Receiver receiver = { .status = 200 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = telling_rig(&receiver, 3, "Notify.AgentsTell=yes");

        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", INTERRUPTION("Drained"));
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(strbuf_str(&receiver.got), "n0 ended 200\n");

        print_message("what no agent has reported is told in full\n");
        strbuf_truncate(&receiver.got, 0);
        rig_delete_node(r, "n1");
        assert_true(rig_wait_gone(r, "n1", USEC_PER_MINUTE));
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(strbuf_str(&receiver.got), "n1 noticed 200\nn1 cordoned 200\nn1 draining 200\nn1 drained 200\nn1 ended 200\n");

        print_message("an agent that began and fell silent is told for, once the coordinator drains in its place\n");
        strbuf_truncate(&receiver.got, 0);
        add_pod(r, "n2");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n2", INTERRUPTION("Draining"));
        assert_true(rig_wait_gone(r, "n2", USEC_PER_MINUTE));
        rig_run(r, USEC_PER_SEC);
        assert_string_equal(strbuf_str(&receiver.got), "n2 draining 200\nn2 drained 200\nn2 ended 200\n");
        receiver_done(&receiver);
}

/* A node of no pool that is drained for the queue: under its notice, and to the end of the drain. */
TEST_CASE(test_heard) {
        Receiver receiver = { .status = 200 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = telling_rig(&receiver, 1, "Queue.Unmanaged=drain");
        _cleanup_free_ char *instance = rig_instance("free"), *uid = NULL;
        char key[NOTIFY_KEY_MAX];

        fake_add_node(r->cluster, "free", ZONE, instance, NULL);
        assert_non_null(uid = strdup(fj_string(rig_node(r, "free"), "metadata", "uid", NULL)));
        add_pod(r, "free");
        rig_run(r, USEC_PER_SEC);
        fake_merge(r->cluster, FAKE_NODES, NULL, "free",
                   "{'metadata':{'annotations':{'" ANNOTATION_ANNOUNCED "':'{\\'notices\\':[{\\'id\\':\\'e/i-1\\',\\'kind\\':\\'scale-in\\',\\'source\\':\\'sqs\\',"
                   "\\'action\\':\\'terminate\\'}]}'}}}");
        rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(strbuf_str(&receiver.got), "free noticed 200\nfree cordoned 200\nfree draining 200\nfree drained 200\n");
        assert_non_null(strstr(strbuf_str(&receiver.last), "\"noticeID\":\"e/i-1\",\"kind\":\"scale-in\""));
        assert_return_code(notify_key(&(NotifyFacts){ .phase = NOTIFY_DRAINED, .node_uid = uid, .notice_id = "e/i-1" }, key), 0);
        assert_string_equal(receiver.key, key);

        print_message("somebody opens it\n");
        strbuf_truncate(&receiver.got, 0);
        fake_merge(r->cluster, FAKE_NODES, NULL, "free", "{'spec':{'unschedulable':null}}");
        rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(strbuf_str(&receiver.got), "free released 200\n");
        receiver_done(&receiver);
}

/* How long 20 removals take, in virtual time. */
static usec_t removals_took(const char *setting, unsigned status) {
        Receiver receiver = { .status = status };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        usec_t begin;

        r->settings[0] = (char *) (uintptr_t) setting;
        rig_begin(r, 20, NULL);
        assert_return_code(http_inproc_route(r->coordinators[0]->transport, RECEIVER_ORIGIN, receiver_handle, &receiver), 0);
        begin = virtual_time_now(r->w.time);
        for (unsigned i = 0; i < 20; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%u", i);
                add_pod(r, name);
                rig_delete_node(r, name);
        }
        for (unsigned i = 0; i < 20; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%u", i);
                assert_true(rig_wait_gone(r, name, USEC_PER_MINUTE));
        }
        begin = virtual_time_now(r->w.time) - begin;
        assert_true(receiver.n_open_max <= NOTIFY_IN_FLIGHT_MAX);
        assert_int_equal(receiver.n > 0, setting != NULL);
        for (size_t i = 0; i < ELEMENTSOF(r->coordinators); i++)
                rig_kill(r, i); /* with calls under way, whose receiver is still there */
        receiver_done(&receiver);
        return begin;
}

TEST_CASE(test_delays_nothing) {
        usec_t nobody = removals_took(NULL, 200), hangs = removals_took(SETTING, 0), fails = removals_took(SETTING, 500);

        assert_int_equal(hangs, nobody);
        assert_int_equal(fails, nobody);
}

/* -- whose it is to tell ------------------------------------------------------------------------ */

/* Free it. phase NULL: without the annotation. */
static KubeNode *node_with(InternPool *pool, const char *phase) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_strbuf_ StrBuf text = { 0 };
        KubeObject *o;

        strbuf_add(&text, "{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"");
        if (phase)
                strbuf_addf(&text,
                            ",\"annotations\":{\"" ANNOTATION_INTERRUPTION "\":\"{\\\"id\\\":\\\"x\\\",\\\"kind\\\":\\\"spot\\\","
                            "\\\"source\\\":\\\"ec2\\\",\\\"phase\\\":\\\"%s\\\"}\"}",
                            phase);
        strbuf_add(&text, "}}");
        assert_return_code(json_parse(strbuf_str(&text), text.size, 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, &o), 0);
        return (KubeNode *) o;
}

TEST_CASE(test_is_agents) {
        static const struct {
                const char *phase; /* of the annotation; NULL: none */
                NotifyPhase told;
                bool own_drain, is_agents;
        } rows[] = {
                { NULL, NOTIFY_CORDONED, false, false },
                { "Draining", NOTIFY_NOTICED, false, true },
                { "Draining", NOTIFY_CORDONED, false, true },
                { "Drained", NOTIFY_DRAINED, false, true },
                { "Draining", NOTIFY_DRAINED, true, false },
                { "Cordoned", NOTIFY_DRAINING, true, false },
                { "Drained", NOTIFY_DRAINED, true, true },
                { "Ending", NOTIFY_DRAINING, true, true },
                { "Draining", NOTIFY_HELD, false, false },
                { "Draining", NOTIFY_MACHINE_BLOCKED, false, false },
                { "Drained", NOTIFY_ENDED, false, false },
                { "Cancelled", NOTIFY_CORDONED, false, false },
                { "Released", NOTIFY_CORDONED, false, false },
        };

        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *n = node_with(pool, rows[i].phase);

                if (removal_notify_is_agents(n, rows[i].told, rows[i].own_drain) != rows[i].is_agents)
                        fail_msg("row %zu", i);
                kube_object_unref(&n->object);
        }
        assert_false(removal_notify_is_agents(NULL, NOTIFY_CORDONED, false));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_deletion),    cmocka_unit_test(test_agents_notice), cmocka_unit_test(test_agents_tell), cmocka_unit_test(test_heard),
                cmocka_unit_test(test_delays_nothing), cmocka_unit_test(test_is_agents),
        };

        return cmocka_run_group_tests_name("notify-coordinator", tests, NULL, NULL);
}
