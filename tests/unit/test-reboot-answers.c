/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "texts.h"

/*
 * A coordinator that grants reboots, or asks the cloud for them: how long it remembers a request, other
 * answers of the API server and of EC2, and the number of Events, log lines and writes.
 */

#define S USEC_PER_SEC
#define M USEC_PER_MINUTE

static const char *annotation(CoordinatorRig *r, const char *node, const char *key) {
        return strempty(fj_string(rig_node(r, node), "metadata", "annotations", key, NULL));
}

static void ask(CoordinatorRig *r, const char *node, const char *id, const char *more) {
        char until[RFC3339_MAX];

        rfc3339_format(loop_wall(r->w.loop) + USEC_PER_HOUR, until);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                   "':'{\\'id\\':\\'%s\\',\\'bootID\\':\\'%s\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'%s\\'%s}'}}}",
                   id, fj_string(rig_node(r, node), "status", "nodeInfo", "bootID", NULL), until, more);
}

static void withdraw(CoordinatorRig *r, const char *node) {
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST "':null}}}");
        rig_run(r, 5 * S);
}

static bool is_granted(CoordinatorRig *r, const char *node, const char *id) {
        _cleanup_free_ char *text = MUST(strf("\"id\":\"%s\"", id));

        return strstr(annotation(r, node, ANNOTATION_SHUTDOWN_GRANTED), text);
}

static CoordinatorRig *new_rig(unsigned n_nodes, bool use_ec2) {
        char slots[] = "Budget.MaxConcurrentReboots=1", slot[] = "Budget.RebootSlotSec=30min";
        CoordinatorRig *r = coordinator_rig_new();

        r->use_ec2 = use_ec2;
        r->settings[0] = slots;
        r->settings[1] = slot;
        rig_begin(r, n_nodes, NULL); /* lists the Nodes once */
        r->settings[0] = r->settings[1] = NULL;
        rig_run(r, 40 * S);
        ask(r, "n0", "first", ""); /* the first grant of a leader waits for its list of the nodes */
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n0", "first"));
        withdraw(r, "n0");
        return r;
}

static void set_ready(CoordinatorRig *r, const char *node, bool ready) {
        fake_cluster_set_kubelet(r->cluster, node, ready);
        fake_merge(r->cluster, FAKE_NODES, NULL, node,
                   "{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                   ready ? "True" : "False");
}

static void put_budget(CoordinatorRig *r) {
        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'b','generation':1},'spec':{'maxUnavailable':1,'selector':{"
                          "'matchExpressions':[{'key':'rack','operator':'DoesNotExist'}]}}}"));
        rig_run(r, 5 * S);
}

static int n_charges(CoordinatorRig *r) {
        return cJSON_GetArraySize(fj_get(fake_get(r->cluster, FAKE_NDBS, NULL, "b"), "status",
                                         "disruptedNodes", NULL));
}

static unsigned n_logged(CoordinatorRig *r, const char *text) {
        return text_count(strempty(r->coordinators[0]->said.data), text);
}

/* -- turns ---------------------------------------------------------------------------------------------- */

/* n0 asks and then n1, while n2 has the slot. Then n2 gives the slot back. */
static void ask_while_held(CoordinatorRig *r, const char *held, const char *n0_id, const char *n1_id) {
        ask(r, "n2", held, "");
        rig_run(r, 5 * S);
        ask(r, "n0", n0_id, "");
        rig_run(r, 5 * S);
        ask(r, "n1", n1_id, "");
        rig_run(r, 5 * S);
        withdraw(r, "n2");
}

/* A node whose slot expired comes after the other nodes, until it has rebooted in a slot. */
TEST_CASE(test_turns) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3, false);

        ask(r, "n0", "a", "");
        rig_run(r, 31 * M);
        assert_true(rig_has_event(r, "n0", "RebootSlotExpired"));
        ask_while_held(r, "held", "b", "c");
        assert_true(is_granted(r, "n1", "c"));
        withdraw(r, "n1");
        assert_true(is_granted(r, "n0", "b"));
        print_message("  it has rebooted: it comes in its turn\n");
        set_ready(r, "n0", false);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'status':{'nodeInfo':{'bootID':'another'}}}");
        rig_run(r, 5 * S);
        set_ready(r, "n0", true);
        rig_run(r, 5 * S);
        ask_while_held(r, "held-2", "d", "e");
        assert_true(is_granted(r, "n0", "d"));
        assert_false(is_granted(r, "n1", "e"));
}

/* A reload makes slots shorter. A slot that was granted before the reload keeps its length. */
TEST_CASE(test_shorter_slots) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2, false);

        ask(r, "n0", "a", "");
        rig_run(r, 5 * S);
        r->config.reboot_slot_usec = 5 * M;
        coordinator_reconfigured(rig_leader(r)->coordinator);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'x':'y'}}}");
        ask(r, "n1", "b", "");
        rig_run(r, 20 * M);
        assert_true(is_granted(r, "n0", "a"));
        assert_false(is_granted(r, "n1", "b"));
        assert_false(rig_has_event(r, "n0", "RebootGrantTooLong"));
}

/* A node that grants itself a slot again and again is reported once in ten minutes. */
TEST_CASE(test_too_long_is_told_once) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1, false);

        for (unsigned i = 0; i < 4; i++) {
                fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                           "{'metadata':{'annotations':{'" ANNOTATION_SHUTDOWN_REQUEST
                           "':'{\\'id\\':\\'a\\',\\'bootID\\':\\'n0-boot-1\\',\\'kind\\':\\'reboot\\',\\'until\\':\\'2099-01-01T00:00:00Z\\'}',"
                           "'" ANNOTATION_SHUTDOWN_GRANTED "':'{\\'id\\':\\'a\\',\\'until\\':\\'2099-01-01T00:00:00Z\\'}'}}}");
                rig_run(r, M);
        }
        assert_int_equal(rig_n_events(r, "n0", "RebootGrantTooLong"), 1);
        assert_int_equal(n_logged(r, "carries a grant to reboot that lasts longer"), 1);
}

/* -- budgets -------------------------------------------------------------------------------------------- */

typedef struct Answers {
        FakeApiFault fault;
        FakeResourceId resource;
        const char *contains; /* part of the body */
        unsigned n, n_seen;   /* matching requests; the first n get the fault */
} Answers;

static void on_patch(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        Answers *a = userdata;

        if (q->verb == FAKE_PATCH && q->resource && q->resource->id == a->resource && strstr(q->x->body,
                                                            a->contains) &&
            a->n_seen++ < a->n)
                *ret_fault = a->fault;
}

/* The API server refuses the charge once: the budgets are asked again after a second. */
TEST_CASE(test_charge_refused) {
        Answers answers = { .fault = { .status = 422 }, .resource = FAKE_NDBS,
                            .contains = "\"holder\":\"a\"", .n = 1 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2, false);

        put_budget(r);
        rig_run(r, M);
        fake_api_set_fault(r->api, on_patch, &answers);
        ask(r, "n0", "a", "");
        rig_run(r, 500 * USEC_PER_MSEC);
        assert_false(is_granted(r, "n0", "a"));
        rig_run(r, 3 * S);
        assert_true(is_granted(r, "n0", "a"));
        assert_int_equal(answers.n_seen, 2);
}

/* The write of the charge takes long. The slot is not granted before the budgets have admitted it, whatever
 * happens meanwhile. */
TEST_CASE(test_slow_charge) {
        Answers answers = { .fault = { .delay_usec = 6 * S }, .resource = FAKE_NDBS,
                            .contains = "\"holder\":\"b\"", .n = 1 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3, false);

        put_budget(r);
        ask(r, "n0", "a", "");
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n0", "a"));
        withdraw(r, "n0");
        fake_api_set_fault(r->api, on_patch, &answers);
        ask(r, "n1", "b", "");
        for (unsigned i = 0; i < 4; i++) {
                _cleanup_free_ char *id = MUST(strf("c%u", i));

                rig_run(r, S);
                ask(r, "n2", id, "");
                assert_false(is_granted(r, "n1", "b"));
        }
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n1", "b"));
        assert_int_equal(answers.n_seen, 1);
}

/* The Node of a slot is gone: its charge ends by the rule of its kind. */
TEST_CASE(test_gone_with_its_charge) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2, false);

        put_budget(r);
        ask(r, "n0", "a", "");
        rig_run(r, 5 * S);
        assert_int_equal(n_charges(r), 1);
        fake_remove(r->cluster, FAKE_NODES, NULL, "n0");
        rig_run(r, 4 * M);
        assert_int_equal(n_charges(r), 0);
}

/* A node waits for a budget, then for a slot. Its Event has the present reason; the log has a line once. */
TEST_CASE(test_waits_for_another_reason) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3, false);
        int64_t events = rig_n_events(r, "n0", "RebootWaits");
        unsigned logged = n_logged(r, "Node n0: Waits");

        fake_merge(r->cluster, FAKE_NODES, NULL, "n1",
                   "{'metadata':{'labels':{'rack':'r'}}}"); /* a label that no budget selects */
        put_budget(r);
        set_ready(r, "n2", false);
        rig_run(r, 5 * S);
        ask(r, "n0", "a", "");
        rig_run(r, 5 * S);
        assert_true(rig_event_says(r, "n0", "RebootWaits", "NodeDisruptionBudget b allows no disruption"));
        ask(r, "n1", "b", "");
        rig_run(r, 5 * S);
        assert_true(is_granted(r, "n1", "b"));
        assert_false(rig_event_says(r, "n0", "RebootWaits", "held by n1"));
        set_ready(r, "n2", true);
        rig_run(r, 5 * S);
        assert_true(rig_event_says(r, "n0", "RebootWaits", "held by n1"));
        assert_int_equal(rig_n_events(r, "n0", "RebootWaits") - events, 2);
        assert_int_equal(n_logged(r, "Node n0: Waits") - logged, 1);
}

/* -- by the cloud --------------------------------------------------------------------------------------- */

/* Drains the node for the event as its agent does, and asks for the reboot with the event's id. */
static void ask_cloud(CoordinatorRig *r, const char *id, const char *event) {
        _cleanup_free_ char *more = MUST(strf(",\\'event\\':\\'%s\\',\\'by\\':\\'cloud\\'", event));

        fake_merge(r->cluster, FAKE_NODES, NULL, "n0",
                   "{'metadata':{'annotations':{'" ANNOTATION_REBOOT_TAKEN "':'%s','" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'%s\\',\\'kind\\':\\'maintenance\\',\\'source\\':\\'ec2\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'Drained\\',"
                   "\\'bootID\\':\\'n0-boot-1\\'}'}},'spec':{'unschedulable':true}}",
                   event, event);
        ask(r, "n0", id, more);
}

static size_t n_calls(CoordinatorRig *r) {
        return fake_ec2_n_requests(r->ec2, "RebootInstances");
}

/* The coordinator calls EC2 once, whatever the API server answers to the write that marks the grant. */
TEST_CASE(test_mark_answers) {
        static const struct {
                const char *what;
                FakeApiFault fault;
                unsigned n, n_marks;
        } rows[] = {
                { "as always", { 0 }, 0, 1 },
                { "a conflict", { .status = 409 }, 1, 2 },
                { "two conflicts", { .status = 409 }, 2, 3 },
                { "invalid", { .status = 422 }, 1, 2 },
                { "too many requests", { .status = 429, .retry_after_sec = 2 }, 1, 2 },
                { "an error", { .status = 500 }, 1, 2 },
                { "unavailable, twice", { .status = 503 }, 2, 3 },
                { "no answer, nothing done", { .drop = true }, 1, 2 },
                { "no answer, and done", { .drop = true, .takes_effect = true }, 1, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Answers answers = { .fault = rows[i].fault, .resource = FAKE_NODES, .contains = "sent",
                                    .n = rows[i].n };
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1, true);

                print_message("  %s\n", rows[i].what);
                fake_api_set_fault(r->api, on_patch, &answers);
                ask_cloud(r, "a", "e");
                rig_run(r, 2 * M);
                assert_int_equal(n_calls(r), 1);
                assert_int_equal(answers.n_seen, rows[i].n_marks);
                assert_non_null(strstr(annotation(r, "n0", ANNOTATION_SHUTDOWN_GRANTED), "\"sent\":true"));
                rig_run(r, 25 * M);
                assert_int_equal(n_calls(r), 1);
        }
}

/* EC2 refuses the reboot for the same reason each time. The coordinator reports the refusal once. */
TEST_CASE(test_refused_is_told_once) {
        const FakeTrouble refused = { .kind = FAKE_TROUBLE_FAIL, .operation = "RebootInstances", .n = 5,
                                      .status = 503,
                                      .code = "RequestLimitExceeded", .message = "x" };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1, true);

        fake_troubles_add(fake_ec2_troubles(r->ec2), &refused);
        ask_cloud(r, "a", "e");
        rig_run(r, 15 * M);
        assert_int_equal(n_calls(r), 6);
        assert_int_equal(rig_n_events(r, "n0", "MachineNotRebooted"), 1);
        assert_int_equal(rig_n_events(r, "n0", "MachineRebooted"), 1);
}

/* The coordinator calls the cloud for another event of the node ten minutes after its last call, and not
 * sooner. Each wait gets an Event of its own. */
TEST_CASE(test_pace) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1, true);

        ask_cloud(r, "a", "e");
        rig_run(r, 7 * M);
        assert_int_equal(n_calls(r), 1);
        for (unsigned i = 0; i < 2; i++) {
                ask_cloud(r, i ? "c" : "b", i ? "g" : "f");
                rig_run(r, 2 * M + 50 * S);
                assert_int_equal(n_calls(r), 1 + i);
                assert_int_equal(rig_n_events(r, "n0", "MachineNotRebooted"), 1 + i);
                rig_run(r, 30 * S);
                assert_int_equal(n_calls(r), 2 + i);
                rig_run(r, 6 * M + 40 * S);
        }
}

/* EC2 may have made a reboot whose answer was lost. The coordinator does not call EC2 again for the same
 * event. */
TEST_CASE(test_undecided) {
        const FakeTrouble lost = { .kind = FAKE_TROUBLE_LOSE, .operation = "RebootInstances", .n = 1 };
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(1, true);

        fake_troubles_add(fake_ec2_troubles(r->ec2), &lost);
        ask_cloud(r, "a", "e");
        rig_run(r, 12 * M);
        assert_int_equal(n_calls(r), 1);
        withdraw(r, "n0");
        ask_cloud(r, "b", "e");
        rig_run(r, 12 * M);
        assert_int_equal(n_calls(r), 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_turns),
                cmocka_unit_test(test_shorter_slots),
                cmocka_unit_test(test_too_long_is_told_once),
                cmocka_unit_test(test_charge_refused),
                cmocka_unit_test(test_slow_charge),
                cmocka_unit_test(test_gone_with_its_charge),
                cmocka_unit_test(test_waits_for_another_reason),
                cmocka_unit_test(test_mark_answers),
                cmocka_unit_test(test_refused_is_told_once),
                cmocka_unit_test(test_pace),
                cmocka_unit_test(test_undecided),
        };

        return cmocka_run_group_tests_name("reboot-answers", tests, NULL, NULL);
}
