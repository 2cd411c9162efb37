/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "rig-rounds.h"
#include "texts.h"

/* Rounds of reboot slots, of reboots that the cloud makes early, and of events of several machines. */

#define S USEC_PER_SEC
#define M USEC_PER_MINUTE
#define OTHER "n0" /* a node of the pool that is in no round */

static CoordinatorRig *new_rig(bool use_ec2) {
        static const char *const names[] = { "node-a", "node-b", "node-c" };
        char slots[] = "Budget.MaxConcurrentReboots=1", slot[] = "Budget.RebootSlotSec=17min";
        CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = use_ec2;
        r->settings[0] = slots;
        r->settings[1] = slot;
        rig_begin(r, 1, NULL); /* lists the Nodes once */
        r->settings[0] = r->settings[1] = NULL;
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                rig_add_node(r, names[i]);
        rig_run(r, 5 * S);
        return r;
}

static const char *annotation(CoordinatorRig *r, const char *node, const char *key) {
        return fj_string(rig_node(r, node), "metadata", "annotations", key, NULL);
}

static bool is_granted(CoordinatorRig *r, const char *node) {
        return annotation(r, node, ANNOTATION_SHUTDOWN_GRANTED);
}

/* Asks for a slot with the node's name as its id. more: further members of the request. */
static void ask(CoordinatorRig *r, const char *node, usec_t patience_usec, const char *more) {
        const char *boot = fj_string(rig_node(r, node), "status", "nodeInfo", "bootID", NULL);
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop) + patience_usec, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\'id\\':\\'of-%s\\',\\'bootID\\':\\'%s\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'%s\\'%s}'}}}",
                   node, boot, until, more);
}

static void withdraw(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
}

static void set_ready(CoordinatorRig *r, const char *node, bool ready) {
        fake_cluster_set_kubelet(r->cluster, node, ready);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                   ready ? "True" : "False");
}

/* The first grant of a leader waits for its list of the nodes. */
static void have_first_grant(CoordinatorRig *r) {
        ask(r, OTHER, 50 * M, "");
        rig_run(r, M);
        assert_true(is_granted(r, OTHER));
        withdraw(r, OTHER);
        rig_run(r, 5 * S);
        assert_false(is_granted(r, OTHER));
}

static void play_rounds(CoordinatorRig *r, void (*play)(CoordinatorRig *r, const char *node)) {
        rig_rounds(r, &(RigRounds) { .play = play, .begin = have_first_grant, .nodes = { "node-a", "node-b",
                                                            "node-c" } });
}

/* The machine reboots in its slot, and its agent takes its request back. */
static void reboot(CoordinatorRig *r, const char *node) {
        set_ready(r, node, false);
        rig_run(r, 70 * S);
        fake_merge(r->cluster, FAKE_NODES, NULL, node, "{'status':{'nodeInfo':{'bootID':'%s-boot-2'}}}",
                   node);
        rig_run(r, 20 * S);
        assert_true(is_granted(r, node));
        set_ready(r, node, true);
        rig_run(r, 5 * S);
        withdraw(r, node);
        rig_run(r, 5 * S);
        assert_false(is_granted(r, node));
}

/* A slot is requested, waited for, granted, used and given back. */
static void play_slot(CoordinatorRig *r, const char *node) {
        ask(r, OTHER, 50 * M, "");
        rig_run(r, 5 * S);
        assert_true(is_granted(r, OTHER));
        ask(r, node, 40 * M, "");
        rig_run(r, 30 * S);
        assert_false(is_granted(r, node));
        withdraw(r, OTHER);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, node));
        reboot(r, node);
}

/* A node with a slot is not Ready again in time. The next node gets the slot. */
static void play_expired(CoordinatorRig *r, const char *node) {
        ask(r, node, 7 * M, "");
        rig_run(r, 5 * S);
        assert_true(is_granted(r, node));
        ask(r, OTHER, 50 * M, "");
        rig_run(r, 17 * M - 10 * S);
        assert_false(is_granted(r, OTHER));
        rig_run(r, 10 * S);
        assert_true(is_granted(r, OTHER));
        withdraw(r, OTHER);
        withdraw(r, node);
        rig_run(r, 5 * S);
        assert_false(is_granted(r, node) || is_granted(r, OTHER));
}

/* A request is withdrawn before its grant. Another one cannot be parsed. */
static void play_not_granted(CoordinatorRig *r, const char *node) {
        ask(r, OTHER, 50 * M, "");
        rig_run(r, 5 * S);
        ask(r, node, 3 * M, "");
        rig_run(r, 4 * M); /* the time limit of the request is over */
        withdraw(r, node);
        rig_run(r, 5 * S);
        ask(r, node, 9 * M, ",\\'by\\':7");
        rig_run(r, 5 * S);
        withdraw(r, OTHER);
        rig_run(r, 5 * S);
        assert_false(is_granted(r, node));
        withdraw(r, node);
        rig_run(r, 5 * S);
}

/* A budget refuses the charge, makes it wait, admits it, and gets it back. */
static void play_budget(CoordinatorRig *r, const char *node) {
        set_ready(r, OTHER, false);
        rig_run(r, 5 * S);
        ask(r, node, 40 * M, "");
        rig_run(r, 150 * S);
        assert_false(is_granted(r, node));
        set_ready(r, OTHER, true);
        rig_run(r, 70 * S);
        assert_true(is_granted(r, node));
        reboot(r, node);
        rig_run(r, 5 * S);
        assert_int_equal(cJSON_GetArraySize(fj_get(fake_get(r->cluster, FAKE_NDBS, NULL, "b"), "status",
                                                   "disruptedNodes", NULL)), 0);
}

TEST_CASE(test_slots) {
        static void (*const plays[])(CoordinatorRig *r, const char *node) = { play_slot, play_expired,
                                                            play_not_granted };

        for (size_t i = 0; i < ELEMENTSOF(plays); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(false);

                play_rounds(r, plays[i]);
        }
}

TEST_CASE(test_budget) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(false);

        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'b','generation':1},'spec':{'maxUnavailable':1,"
                          "'selector':{'matchLabels':{'vesper.sh/pool':'" POOL "'}}}}"));
        play_rounds(r, play_budget);
}

/* -- by the cloud --------------------------------------------------------------------------------------- */

#define BY_CLOUD ",\\'event\\':\\'event-of-%s\\',\\'by\\':\\'cloud\\'"

static void set_interruption(CoordinatorRig *r, const char *node, const char *event, const char *phase,
                             const char *more) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_REBOOT_TAKEN "':'%s','" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'%s\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'s\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'%s\\',"
                   "\\'bootID\\':\\'%s\\'%s}'}},'spec':{'unschedulable':true}}",
                   event, event, phase, fj_string(rig_node(r, node), "status", "nodeInfo", "bootID",
                                                  NULL), more);
        rig_run(r, 5 * S);
}

static void clear_interruption(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_REBOOT_TAKEN "':null,'" ANNOTATION_INTERRUPTION
                   "':null}},'spec':{'unschedulable':null}}");
        rig_run(r, 5 * S);
}

/* An announced reboot is taken early. EC2 refuses the first call. */
static void play_early(CoordinatorRig *r, const char *node) {
        const FakeTrouble refused = { .kind = FAKE_TROUBLE_FAIL, .operation = "RebootInstances", .n = 1,
                                      .status = 503,
                                      .code = "RequestLimitExceeded", .message = "x" };
        _cleanup_free_ char *instance = rig_instance(node), *more = MUST(strf(BY_CLOUD, node)),
                *event = MUST(strf("event-of-%s", node));
        size_t before = fake_ec2_n_requests(r->ec2, "RebootInstances");

        fake_troubles_add(fake_ec2_troubles(r->ec2), &refused);
        ask(r, node, 50 * M, more);
        rig_run(r, 5 * S);
        assert_true(is_granted(r, node));
        set_interruption(r, node, event, "Draining", "");
        assert_int_equal(fake_ec2_n_requests(r->ec2, "RebootInstances"), before);
        set_interruption(r, node, event, "Drained", "");
        rig_run(r, 30 * S);
        assert_int_equal(fake_ec2_n_requests(r->ec2, "RebootInstances"), before + 2);
        assert_int_equal(fake_ec2_n_reboots(r->ec2, instance), 1);
        rig_run(r, M);
        reboot(r, node);
        clear_interruption(r, node);
        assert_int_equal(fake_ec2_n_requests(r->ec2, "RebootInstances"), before + 2);
}

TEST_CASE(test_early) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(true);

        play_rounds(r, play_early);
}

/* -- events of several machines ------------------------------------------------------------------------- */

static unsigned n_logged(CoordinatorRig *r, const char *text) {
        return text_count(strempty(r->coordinators[0]->said.data), text);
}

static bool may_acknowledge(CoordinatorRig *r, const char *node, const char *event) {
        return streq_ptr(annotation(r, node, ANNOTATION_ACK_OK), event);
}

/* The first machine is drained long before the second one. The event waits, may then be acknowledged, and
 * ends. */
static void play_acknowledged(CoordinatorRig *r, const char *node) {
        static const char more[] = ",\\'resources\\':[\\'vm-a\\',\\'vm-b\\'],\\'deadline\\':\\'2027-03-01T00:00:00Z\\'";
        unsigned logged = n_logged(r, "All machines that event E names");

        set_interruption(r, node, "E", "Drained", more);
        set_interruption(r, "azure-z", "E", "Draining", more);
        rig_run(r, 130 * S);
        assert_true(rig_event_says(r, node, "EventNotAcknowledged",
                                   "node azure-z (machine vm-b) is not drained for it"));
        assert_true(rig_event_says(r, node, "EventNotAcknowledged", "It begins at 2027-03-01T00:00:00Z"));
        assert_false(may_acknowledge(r, node, "E"));
        set_interruption(r, "azure-z", "E", "Drained", more);
        assert_true(may_acknowledge(r, node, "E") && may_acknowledge(r, "azure-z", "E"));
        fake_merge(r->cluster, FAKE_NODES, NULL, "azure-z", "{'metadata':{'annotations':{'x':'%s'}}}", node);
        rig_run(r, 5 * S);
        assert_int_equal(n_logged(r, "All machines that event E names") - logged, 1);
        clear_interruption(r, node);
        assert_false(may_acknowledge(r, node, "E") || may_acknowledge(r, "azure-z", "E"));
        clear_interruption(r, "azure-z");
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'spec':{'providerID':null}}"); /* the Node of the next round is vm-a */
        rig_run(r, 5 * S);
}

static void play_vm(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'spec':{'providerID':'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm-a'}}");
        play_acknowledged(r, node);
}

TEST_CASE(test_acknowledged) {
        static const char *const names[] = { "azure-0", "azure-a", "azure-b", "azure-c", "azure-z" };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        rig_begin(r, 0, NULL);
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                fake_add_node(r->cluster, names[i], NULL, NULL, NULL);
        fake_merge(r->cluster, FAKE_NODES, NULL, "azure-z",
                   "{'spec':{'providerID':'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/vm-b'}}");
        /* Another event with another begin. */
        set_interruption(r, "azure-0", "F", "Draining",
                         ",\\'resources\\':[\\'vm-q\\'],\\'deadline\\':\\'2027-04-02T00:00:00Z\\'");
        rig_rounds(r, &(RigRounds) { .play = play_vm, .nodes = { "azure-a", "azure-b", "azure-c" } });
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_slots),
                cmocka_unit_test(test_budget),
                cmocka_unit_test(test_early),
                cmocka_unit_test(test_acknowledged),
        };

        return cmocka_run_group_tests_name("reboot-rounds", tests, NULL, NULL);
}
