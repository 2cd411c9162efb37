/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "texts.h"

/* Agents take announced reboots early, as the test plays them; what the coordinator has EC2 do, and what it says of events that
 * name several machines. */

#define S USEC_PER_SEC
#define M USEC_PER_MINUTE
#define SETTLED (60 * S) /* the half minute of a new leader, and a list */

static CoordinatorRig *new_rig(unsigned n_nodes) {
        CoordinatorRig *r = coordinator_rig_new();
        char slots[] = "Budget.MaxConcurrentReboots=2", slot[] = "Budget.RebootSlotSec=20min";

        r->use_ec2 = true;
        r->settings[0] = slots;
        r->settings[1] = slot;
        rig_begin(r, n_nodes, NULL); /* reads them, once */
        r->settings[0] = r->settings[1] = NULL;
        return r;
}

static const char *annotation(CoordinatorRig *r, const char *node, const char *key) {
        return fj_string(rig_node(r, node), "metadata", "annotations", key, NULL);
}

static const char *boot_of(CoordinatorRig *r, const char *node) {
        return fj_string(rig_node(r, node), "status", "nodeInfo", "bootID", NULL);
}

static void ask(CoordinatorRig *r, const char *node, const char *id, const char *event) {
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop) + USEC_PER_HOUR, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\'id\\':\\'%s\\',\\'bootID\\':\\'%s\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'%s\\',\\'event\\':\\'%s\\',\\'by\\':\\'cloud\\'}'}}}",
                   id, boot_of(r, node), until, event);
        rig_run(r, SETTLED);
        assert_non_null(annotation(r, node, ANNOTATION_SHUTDOWN_GRANTED));
}

/* Its agent notes the event, and drains. */
static void drain(CoordinatorRig *r, const char *node, const char *event, const char *phase) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_REBOOT_TAKEN "':'%s','" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'%s\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'ec2\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'%s\\',\\'bootID\\':\\'%s\\'}'}},"
                   "'spec':{'unschedulable':true}}",
                   event, event, phase, boot_of(r, node));
        rig_run(r, 5 * S);
}

static size_t n_reboots(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);

        return fake_ec2_n_reboots(r->ec2, instance);
}

static bool is_marked(CoordinatorRig *r, const char *node) {
        const char *text = annotation(r, node, ANNOTATION_SHUTDOWN_GRANTED);

        return text && strstr(text, "\"sent\":true");
}

static void boot(CoordinatorRig *r, const char *node, const char *id) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node, "{'status':{'nodeInfo':{'bootID':'%s'}}}", id);
        rig_run(r, 5 * S);
}

TEST_CASE(test_once) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        ask(r, "n0", "a", "e");
        assert_int_equal(n_reboots(r, "n0"), 0);
        drain(r, "n0", "e", "Draining");
        assert_int_equal(n_reboots(r, "n0"), 0);
        drain(r, "n0", "e", "Drained");
        assert_int_equal(n_reboots(r, "n0"), 1);
        assert_int_equal(n_reboots(r, "n1"), 0);
        assert_true(is_marked(r, "n0"));
        assert_true(rig_has_event(r, "n0", "MachineRebooted"));
        rig_run(r, 10 * USEC_PER_MINUTE); /* it takes its time, and shows its old boot */
        assert_int_equal(n_reboots(r, "n0"), 1);
        boot(r, "n0", "another");
        rig_run(r, USEC_PER_HOUR);
        assert_int_equal(n_reboots(r, "n0"), 1);
}

/* Who leads next finds the mark, and tells nobody again. */
TEST_CASE(test_leader_dies) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        ask(r, "n0", "a", "e");
        drain(r, "n0", "e", "Drained");
        assert_int_equal(n_reboots(r, "n0"), 1);
        rig_kill(r, 0);
        rig_start(r, 0);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_reboots(r, "n0"), 1);
}

/* What EC2 refuses it is told again; where nobody knows what it did, not. */
TEST_CASE(test_trouble) {
        static const struct {
                const char *what;
                FakeTrouble trouble;
                size_t n;
        } rows[] = {
                { "throttled", { .kind = FAKE_TROUBLE_FAIL, .operation = "RebootInstances", .n = 2, .status = 503, .code = "RequestLimitExceeded", .message = "x" }, 1 },
                { "not allowed, for a while", { .kind = FAKE_TROUBLE_FAIL, .operation = "RebootInstances", .n = 1, .status = 403, .code = "UnauthorizedOperation", .message = "x" }, 1 },
                { "an error of its own", { .kind = FAKE_TROUBLE_FAIL, .operation = "RebootInstances", .n = 1, .status = 500, .code = "InternalError", .message = "x" }, 0 },
                { "done, and not answered", { .kind = FAKE_TROUBLE_LOSE, .operation = "RebootInstances", .n = 1 }, 1 },
                { "another answer", { .kind = FAKE_TROUBLE_BODY, .operation = "RebootInstances", .n = 1, .status = 200, .body = "<a/>" }, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

                fake_troubles_add(fake_ec2_troubles(r->ec2), &rows[i].trouble);
                ask(r, "n0", "a", "e");
                drain(r, "n0", "e", "Drained");
                rig_run(r, 10 * USEC_PER_MINUTE);
                if (n_reboots(r, "n0") != rows[i].n)
                        fail_msg("%s: rebooted %zu times, not %zu", rows[i].what, n_reboots(r, "n0"), rows[i].n);
                assert_int_equal(fake_ec2_n_requests(r->ec2, "RebootInstances"), rows[i].n == 1 && rows[i].trouble.kind == FAKE_TROUBLE_FAIL
                                                                                        ? rows[i].trouble.n + 1
                                                                                        : 1);
                assert_true(rig_has_event(r, "n0", "MachineNotRebooted"));
        }
}

/* Another instance's name is in its record. */
TEST_CASE(test_unproved) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        _cleanup_free_ char *instance = rig_instance("n0");

        fake_ec2_set_private_dns_name(r->ec2, instance, "somebody-else");
        fake_merge(r->cluster, FAKE_NODECLAIMS, NULL, fj_string(rig_claim(r, "n0"), "metadata", "name", NULL),
                   "{'status':{'identity':null}}");
        ask(r, "n0", "a", "e");
        drain(r, "n0", "e", "Drained");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(n_reboots(r, "n0"), 0);
        assert_false(is_marked(r, "n0"));
        assert_true(rig_has_event(r, "n0", "MachineNotRebooted"));
}

/* What the claim keeps of an earlier proof is not enough: the record has another Node's name by now. */
TEST_CASE(test_proof_is_kept) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        _cleanup_free_ char *instance = rig_instance("n0");

        assert_non_null(fj_string(rig_claim(r, "n0"), "status", "identity", "method", NULL));
        fake_ec2_set_private_dns_name(r->ec2, instance, "somebody-else");
        ask(r, "n0", "a", "e");
        drain(r, "n0", "e", "Drained");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(n_reboots(r, "n0"), 0);
        assert_false(is_marked(r, "n0"));
        assert_true(rig_has_event(r, "n0", "MachineNotRebooted"));
}

/* Another Node names the machine that this one's claim names. */
TEST_CASE(test_several) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        _cleanup_free_ char *id = strdup(fj_string(rig_node(r, "n0"), "spec", "providerID", NULL));

        assert_non_null(id);
        fake_add_node(r->cluster, "other", "z", "i-9", NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "other", "{'spec':{'providerID':'%s'}}", id);
        ask(r, "n0", "a", "e");
        drain(r, "n0", "e", "Drained");
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(n_reboots(r, "n0"), 0);
        assert_true(rig_has_event(r, "n0", "MachineNotRebooted"));
}

/* Root on a node writes request and grant itself. */
static void ask_itself(CoordinatorRig *r, const char *node, unsigned k, const char *event) {
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop) + 15 * USEC_PER_MINUTE, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\'id\\':\\'x%u\\',\\'bootID\\':\\'%s\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'%s\\',\\'event\\':\\'%s\\',\\'by\\':\\'cloud\\'}',"
                   "'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'x%u\\',\\'until\\':\\'%s\\'}'}}}",
                   k, boot_of(r, node), until, event, k, until);
}

TEST_CASE(test_pace) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        unsigned k = 0;

        drain(r, "n0", "e", "Drained");
        for (; k < 60; k++) {
                ask_itself(r, "n0", k, "e");
                rig_run(r, 2 * S);
        }
        assert_int_equal(n_reboots(r, "n0"), 1);

        /* Of another event: when the ten minutes are over, once. */
        drain(r, "n0", "f", "Drained");
        for (; k < 120; k++) {
                ask_itself(r, "n0", k, "f");
                rig_run(r, 2 * S);
        }
        assert_int_equal(n_reboots(r, "n0"), 1);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_reboots(r, "n0"), 2);

        /* And the first never again. */
        drain(r, "n0", "e", "Drained");
        ask_itself(r, "n0", k, "e");
        rig_run(r, 14 * USEC_PER_MINUTE);
        assert_int_equal(n_reboots(r, "n0"), 2);
}

/* Asks by itself for the event, and runs for so long. */
static void ask_and_run(CoordinatorRig *r, const char *node, unsigned k, const char *event, usec_t usec) {
        drain(r, node, event, "Drained");
        ask_itself(r, node, k, event);
        rig_run(r, usec);
}

/* Another Node of the same name and machine. */
static void add_node_again(CoordinatorRig *r, const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);

        fake_add_node(r->cluster, node, ZONE, instance, POOL);
        rig_run(r, 20 * S);
}

/* The leader remembers each node apart, for as long as its Node is there and ten minutes more. A Node that was made
 * anew has the pace of the old one, and its own events. */
TEST_CASE(test_memory) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(4);
        unsigned k = 0;

        ask_and_run(r, "n0", k++, "e", M);
        assert_int_equal(n_reboots(r, "n0"), 1);
        rig_run(r, 12 * M);
        ask_and_run(r, "n1", k++, "e", M);
        assert_int_equal(n_reboots(r, "n1"), 1);
        print_message("  another node's request took nothing from it\n");
        ask_and_run(r, "n0", k++, "e", 12 * M);
        assert_int_equal(n_reboots(r, "n0"), 1);
        assert_true(rig_event_says(r, "n0", "MachineNotRebooted", "Asks for the announced reboot e once more"));

        print_message("  made anew within its ten minutes, which are kept\n");
        ask_and_run(r, "n0", k++, "f", M);
        assert_int_equal(n_reboots(r, "n0"), 2);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, S);
        ask_and_run(r, "n2", k++, "e", M);
        add_node_again(r, "n0");
        ask_and_run(r, "n0", k++, "f", M);
        assert_int_equal(n_reboots(r, "n0"), 2);
        assert_true(rig_event_says(r, "n0", "MachineNotRebooted", "less than ten minutes ago"));
        rig_run(r, 9 * M);
        assert_int_equal(n_reboots(r, "n0"), 3);
        print_message("  gone for longer than that: forgotten\n");
        rig_run(r, 12 * M);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, S);
        ask_and_run(r, "n3", k++, "e", M);
        add_node_again(r, "n0");
        ask_and_run(r, "n0", k++, "f", M);
        assert_int_equal(n_reboots(r, "n0"), 4);
}

/* The leader keeps the last sixteen events of each node. */
TEST_CASE(test_events_kept) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);
        unsigned k = 0;

        for (; k < 17; k++) {
                _cleanup_free_ char *event = MUST(strf("e%u", k));

                ask_and_run(r, "n0", k, event, 11 * M);
                assert_int_equal(n_reboots(r, "n0"), k + 1);
        }
        ask_and_run(r, "n0", k++, "e1", 11 * M);
        assert_int_equal(n_reboots(r, "n0"), 17);
        ask_and_run(r, "n0", k++, "e16", 11 * M);
        assert_int_equal(n_reboots(r, "n0"), 17);
        ask_and_run(r, "n0", k++, "e0", 11 * M);
        assert_int_equal(n_reboots(r, "n0"), 18);
}

/* -- acknowledgements ----------------------------------------------------------------------------------- */

#define SET "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/pool/virtualMachines/"

static void say(CoordinatorRig *r, const char *node, const char *phase) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'E\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'azure\\',\\'action\\':\\'redeploy\\',\\'phase\\':\\'%s\\',\\'bootID\\':\\'%s\\',"
                   "\\'resources\\':[\\'pool_1\\',\\'pool_2\\']}'}},'spec':{'unschedulable':true}}",
                   phase, boot_of(r, node));
        rig_run(r, 5 * S);
}

static bool may_acknowledge(CoordinatorRig *r, const char *node) {
        return streq_ptr(annotation(r, node, ANNOTATION_ACK_OK), "E");
}

static size_t n_waits_told(CoordinatorRig *r) {
        return text_count(strempty(r->coordinators[0]->said.data), "Event E names several machines");
}

TEST_CASE(test_ack) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1);

        fake_add_node(r->cluster, "a1", "z", "i-1", NULL);
        fake_add_node(r->cluster, "a2", "z", "i-2", NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "a1", "{'spec':{'providerID':'" SET "1'}}");
        fake_merge(r->cluster, FAKE_NODES, NULL, "a2", "{'spec':{'providerID':'" SET "2'}}");
        say(r, "a1", "Drained");
        assert_null(annotation(r, "a1", ANNOTATION_ACK_OK));
        say(r, "a2", "Draining");
        assert_null(annotation(r, "a1", ANNOTATION_ACK_OK));
        rig_run(r, 60 * S);
        assert_false(rig_has_event(r, "a1", "EventNotAcknowledged")); /* a drain takes its time */
        rig_run(r, 60 * S);
        assert_true(rig_event_says(r, "a1", "EventNotAcknowledged", "node a2 (machine pool_2) is not drained for it"));
        assert_false(rig_has_event(r, "a2", "EventNotAcknowledged"));
        assert_int_equal(n_waits_told(r), 1);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_waits_told(r), 1);
        /* Reasons that come and go are told at most every two minutes. */
        for (int i = 0; i < 5; i++) {
                fake_merge(r->cluster, FAKE_NODES, NULL, "a2", "{'spec':{'providerID':'" SET "%d'}}", i % 2 ? 2 : 9);
                rig_run(r, 5 * S);
        }
        assert_int_equal(n_waits_told(r), 2);
        fake_merge(r->cluster, FAKE_NODES, NULL, "a2", "{'spec':{'providerID':'" SET "2'}}");
        rig_run(r, 3 * 60 * S);
        assert_int_equal(n_waits_told(r), 3); /* what it is in the end */
        say(r, "a2", "Drained");
        assert_true(may_acknowledge(r, "a1") && may_acknowledge(r, "a2"));
        assert_null(annotation(r, "n0", ANNOTATION_ACK_OK));

        /* Who leads next says the same. */
        rig_kill(r, 0);
        rig_start(r, 0);
        rig_run(r, SETTLED);
        assert_true(may_acknowledge(r, "a1") && may_acknowledge(r, "a2"));

        /* A person opens one: not any more. */
        fake_merge(r->cluster, FAKE_NODES, NULL, "a2", "{'spec':{'unschedulable':false}}");
        rig_run(r, 5 * S);
        assert_null(annotation(r, "a1", ANNOTATION_ACK_OK));
        assert_null(annotation(r, "a2", ANNOTATION_ACK_OK));

        say(r, "a2", "Drained");
        assert_true(may_acknowledge(r, "a1"));
        fake_merge(r->cluster, FAKE_NODES, NULL, "a1", "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION "':null}}}");
        rig_run(r, 5 * S);
        assert_null(annotation(r, "a1", ANNOTATION_ACK_OK));
        assert_null(annotation(r, "a2", ANNOTATION_ACK_OK));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_once),     cmocka_unit_test(test_leader_dies), cmocka_unit_test(test_trouble),
                cmocka_unit_test(test_unproved), cmocka_unit_test(test_proof_is_kept), cmocka_unit_test(test_several),
                        cmocka_unit_test(test_pace), cmocka_unit_test(test_memory),
                        cmocka_unit_test(test_events_kept), cmocka_unit_test(test_ack),
        };

        return cmocka_run_group_tests_name("cloud-reboots", tests, NULL, NULL);
}
