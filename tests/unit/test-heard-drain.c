/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "fake-json.h"
#include "heard-conditions.h"
#include "heard-rule.h"
#include "marks.h"
#include "page.h"
#include "queue-rig.h"

#define S USEC_PER_SEC
#define NODE "free"
#define SPOT_LEAD (120 * S)

/* A node of no pool beside n0 of POOL, and the queue. */
typedef struct Room {
        QueueRig q;
        CoordinatorRig *rig; /* of the queue's rig */
        char *instance;      /* of NODE */
} Room;

static void room_open(Room *r, bool use_ec2, const char *setting) {
        _cleanup_free_ char *id = NULL;

        *r = (Room){ .instance = rig_instance(NODE) };
        queue_rig_init(&r->q);
        r->rig = r->q.rig;
        r->rig->use_ec2 = use_ec2;
        r->rig->settings[0] = (char *) setting;
        rig_begin(r->rig, 1, NULL);
        id = strf("aws:///" ZONE "/%s", r->instance);
        rig_add_machine(r->rig, id, NODE);
        fake_add_node(r->rig->cluster, NODE, ZONE, r->instance, NULL);
        rig_run(r->rig, S);
}

static void room_close(Room *r) {
        queue_rig_done(&r->q);
        free(r->instance);
}

#define DRAINS "Queue.Unmanaged=drain"

static void send_spot(Room *r, const char *id) {
        queue_rig_send(&r->q, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = r->instance, .action = "terminate", .id = id });
}

static void add_pod(Room *r, const char *name, const char *app, int64_t stop_sec) {
        fake_add_pod(r->rig->cluster, &(FakePod){ .name = name,
                                                  .node = NODE,
                                                  .app = app,
                                                  .owner_kind = app ? "ReplicaSet" : NULL,
                                                  .owner = app,
                                                  .grace_sec = 20,
                                                  .stop_sec = stop_sec });
}

static bool has_pod(Room *r, const char *name) {
        return fake_get(r->rig->cluster, FAKE_PODS, "default", name);
}

static const char *annotation(Room *r, const char *key) {
        return fj_string(rig_node(r->rig, NODE), "metadata", "annotations", key, NULL);
}

static bool is_cordoned(Room *r) {
        return cJSON_IsTrue(fj_get(rig_node(r->rig, NODE), "spec", "unschedulable", NULL));
}

/* Of what was announced something says this state. */
static bool has_state(Room *r, const char *state) {
        _cleanup_free_ char *expected = strf("\"state\":\"%s\"", state);

        return strstr(strempty(annotation(r, ANNOTATION_ANNOUNCED)), expected);
}

/* What stands on the Node says this phase; "": nothing stands there. */
static bool has_phase(Room *r, const char *phase) {
        const char *text = annotation(r, ANNOTATION_HEARD);
        _cleanup_free_ char *expected = strf("\"phase\":\"%s\"", phase);

        return isempty(phase) ? !text : text && strstr(text, expected);
}

static bool wait_phase(Room *r, const char *phase, usec_t at_most_usec) {
        for (usec_t passed = 0; passed < at_most_usec && !has_phase(r, phase); passed += S / 2)
                rig_run(r->rig, S / 2);
        return has_phase(r, phase);
}

static bool metrics_say(Room *r, const char *line) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, rig_leader(r->rig)->coordinator, HTTP_GET, "/metrics");

        return strstr(p.body, line) != NULL;
}

/* Nothing of vesper's is on it, and it is open. */
static void assert_clean(Room *r) {
        assert_null(annotation(r, ANNOTATION_HEARD));
        assert_null(annotation(r, ANNOTATION_ANNOUNCED));
        assert_null(annotation(r, ANNOTATION_CORDONED_BY_COORDINATOR));
        assert_null(fj_string(rig_node(r->rig, NODE), "metadata", "labels", LABEL_EXCLUDE_FROM_LB, NULL));
        assert_false(is_cordoned(r));
}

/* It is none of vesper's, whatever was announced: no claim, no finalizer, and nobody ends its machine. */
static void assert_not_managed(Room *r) {
        assert_non_null(rig_node(r->rig, NODE));
        assert_null(rig_claim(r->rig, NODE));
        assert_false(rig_has_finalizer(rig_node(r->rig, NODE)));
        assert_null(fj_string(rig_node(r->rig, NODE), "metadata", "deletionTimestamp", NULL));
        assert_int_equal(rig_machine(r->rig, NODE)->n_terminated, 0);
}

/* The time that stands on the Node. */
static usec_t heard_until(Room *r) {
        _cleanup_(interruption_freep) Interruption *i = NULL;

        assert_return_code(interruption_parse(annotation(r, ANNOTATION_HEARD), &i), 0);
        return notice_announced(i->notice);
}

TEST_CASE(test_drained) {
        _cleanup_free_ char *announced = NULL, *said = NULL;
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 3);
        send_spot(&r, "e1");
        rig_run(r.rig, S);
        assert_true(is_cordoned(&r));
        assert_non_null(annotation(&r, ANNOTATION_CORDONED_BY_COORDINATOR));
        assert_string_equal(fj_string(rig_node(r.rig, NODE), "metadata", "labels", LABEL_EXCLUDE_FROM_LB, NULL), "vesper");
        assert_null(annotation(&r, ANNOTATION_INTERRUPTION));
        assert_true(rig_event_says(r.rig, NODE, "InterruptionAnnounced", "cordons and drains the node by then"));
        announced = heard_announced_text(&(Notice){ .kind = NOTICE_SPOT, .action = (char *) "terminate", .announced_usec = heard_until(&r) });
        assert_non_null(strstr(announced, "(spot, terminate) by 2"));
        said = strf("being drained: the interruption queue announced %s. For that, vesper does not end the machine. 'vesperctl undrain " NODE "' stops the drain", announced);
        assert_true(rig_event_says(r.rig, NODE, "Cordoned", said));
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
        assert_true(wait_phase(&r, "Drained", 10 * S));
        assert_false(has_pod(&r, "web"));
        assert_int_equal(rig_evictions(r.rig, 201), 1);
        assert_true(rig_has_event(r.rig, NODE, "Drained"));
        assert_not_managed(&r);

        print_message("the machine lives on: ten minutes after its time the node is as it was\n");
        rig_run(r.rig, SPOT_LEAD + ANNOUNCED_OUTLIVED_USEC - 20 * S);
        assert_true(is_cordoned(&r));
        rig_run(r.rig, 30 * S);
        assert_clean(&r);
        assert_not_managed(&r);
        room_close(&r);
}

TEST_CASE(test_reported) {
        Room r;

        room_open(&r, false, NULL);
        add_pod(&r, "web", "web", 0);
        send_spot(&r, "e1");
        rig_run(r.rig, 3 * USEC_PER_MINUTE);
        assert_clean(&r);
        assert_true(has_pod(&r, "web"));
        assert_true(rig_has_event(r.rig, NODE, "NoticeReported"));
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
        assert_not_managed(&r);
        room_close(&r);
}

static int held_nodes(Coordinator *c) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, c, HTTP_GET, "/metrics");

        return (int) page_sum(&p, "vesper_coordinator_queue_held_nodes");
}

/* The gauge counts nodes whose notice the brake of the queue holds, while the coordinator leads. */
TEST_CASE(test_held_gauge) {
        Coordinator *was_leader;
        Room r;

        room_open(&r, false, DRAINS);
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE,
                   "{'metadata':{'annotations':{'vesper.sh/announced':'{\\'notices\\':[{\\'id\\':\\'e1\\',\\'kind\\':\\'spot\\',"
                   "\\'source\\':\\'sqs\\',\\'action\\':\\'terminate\\',\\'deadline\\':\\'2027-01-15T09:30:00Z\\',"
                   "\\'received\\':\\'2027-01-15T08:00:00Z\\',\\'state\\':\\'Held\\'}]}'}}}");
        rig_run(r.rig, 10 * S);
        was_leader = rig_leader(r.rig)->coordinator;
        assert_int_equal(held_nodes(was_leader), 1);
        fake_merge(r.rig->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator", "{'spec':{'holderIdentity':'another'}}");
        rig_run(r.rig, 10 * S);
        assert_null(rig_leader(r.rig));
        assert_int_equal(held_nodes(was_leader), 0);
        room_close(&r);
}

/* A PodDisruptionBudget holds until the pod's grace no longer fits before the announced time, and no longer. */
TEST_CASE(test_budget_until_deadline) {
        _cleanup_free_ char *said = NULL;
        char when[RFC3339_MAX];
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 5);
        fake_add_pdb(r.rig->cluster, "default", "web", "web", true, "1");
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        rig_run(r.rig, SPOT_LEAD - 25 * S);
        assert_true(has_pod(&r, "web"));
        assert_null(fj_string(fake_get(r.rig->cluster, FAKE_PODS, "default", "web"), "metadata", "deletionTimestamp", NULL));
        assert_true(rig_has_event(r.rig, NODE, "DrainBlocked"));
        print_message("  nobody removes that node, and its pod is not told so\n");
        rfc3339_format(heard_until(&r), when);
        said = strf("drained because the interruption queue announced that its machine may be gone from %s on: if this pod is still there at", when);
        assert_true(rig_event_says(r.rig, "web", "DeletionAtDeadline", said));
        assert_false(rig_event_says(r.rig, "web", "DeletionAtDeadline", "is being removed"));
        assert_true(metrics_say(&r, "vesper_coordinator_queue_drains 1\n"));
        assert_true(has_phase(&r, "Draining"));
        rig_run(r.rig, 15 * S);
        assert_false(has_pod(&r, "web"));
        assert_true(rig_event_says(r.rig, "web", "PodDeletedAtDeadline", "The machine of node " NODE " may be gone from"));
        assert_true(wait_phase(&r, "Drained", 5 * S));
        assert_int_equal(rig_evictions(r.rig, 201), 0);
        assert_true(metrics_say(&r, "vesper_coordinator_queue_drains 0\n"));
        assert_not_managed(&r);
        room_close(&r);
}

/* What is left at the announced time was told to go; nothing more is done. */
TEST_CASE(test_expires) {
        Room r;

        room_open(&r, false, DRAINS);
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "stuck", .node = NODE, .grace_sec = 10, .stuck = true });
        send_spot(&r, "e1");
        rig_run(r.rig, SPOT_LEAD - 2 * S);
        assert_true(has_phase(&r, "Draining"));
        assert_true(wait_phase(&r, "Ending", 10 * S));
        assert_true(rig_event_says(r.rig, NODE, "DeadlinePassed", "default/stuck"));
        assert_true(is_cordoned(&r));
        assert_not_managed(&r);
        room_close(&r);
}

static void mark_agent(Room *r, const char *phase, int pods_left) {
        fake_merge(r->rig->cluster, FAKE_NODES, NULL, NODE,
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'x\\',\\'kind\\':\\'spot\\',\\'source\\':\\'ec2\\',"
                   "\\'action\\':\\'terminate\\',\\'phase\\':\\'%s\\',\\'podsLeft\\':%d}'}}}",
                   phase, pods_left);
}

TEST_CASE(test_agent_first) {
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 0);
        mark_agent(&r, "Draining", 9);
        send_spot(&r, "e1");
        for (int left = 8; left > 4; left--) {
                rig_run(r.rig, 10 * S);
                mark_agent(&r, "Draining", left);
        }
        assert_true(is_cordoned(&r));
        assert_true(has_phase(&r, "Draining"));
        assert_int_equal(rig_evictions(r.rig, 0), 0);
        print_message("  it is silent for 15 s: its drain is helped\n");
        rig_run(r.rig, 20 * S);
        assert_int_equal(rig_evictions(r.rig, 201), 1);
        assert_true(wait_phase(&r, "Drained", 5 * S));
        print_message("  its own annotation is as it left it\n");
        assert_non_null(strstr(annotation(&r, ANNOTATION_INTERRUPTION), "\"podsLeft\":5"));
        room_close(&r);
}

/* A person opens the node: the drain stops, and the same message does not begin it again; another one does. */
TEST_CASE(test_overruled) {
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 0);
        fake_add_pdb(r.rig->cluster, "default", "web", "web", true, "1");
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        rig_run(r.rig, 5 * S);
        assert_true(is_cordoned(&r));
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'spec':{'unschedulable':null}}");
        assert_true(wait_phase(&r, "", 5 * S));
        assert_true(has_state(&r, "Overruled"));
        assert_null(annotation(&r, ANNOTATION_CORDONED_BY_COORDINATOR));
        send_spot(&r, "e1");
        rig_run(r.rig, SPOT_LEAD);
        assert_true(has_pod(&r, "web"));
        assert_false(is_cordoned(&r));
        assert_true(rig_has_event(r.rig, NODE, "InterruptionOverruled"));
        print_message("  another message is another notice\n");
        send_spot(&r, "e2");
        rig_run(r.rig, 5 * S);
        assert_true(is_cordoned(&r));
        assert_true(has_phase(&r, "Draining"));
        assert_not_managed(&r);
        room_close(&r);
}

/* A cordon that was there first is nobody of vesper's to take off. */
TEST_CASE(test_cordon_of_others) {
        Room r;

        room_open(&r, false, DRAINS);
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'spec':{'unschedulable':true}}");
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        assert_true(wait_phase(&r, "Drained", 10 * S));
        assert_null(annotation(&r, ANNOTATION_CORDONED_BY_COORDINATOR));
        rig_run(r.rig, SPOT_LEAD + ANNOUNCED_OUTLIVED_USEC + 10 * S);
        assert_true(has_phase(&r, ""));
        assert_true(is_cordoned(&r));
        room_close(&r);
}

TEST_CASE(test_leader_dies) {
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 0);
        fake_add_pdb(r.rig->cluster, "default", "web", "web", true, "1");
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        rig_run(r.rig, 5 * S);
        assert_true(has_phase(&r, "Draining"));
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
        rig_kill(r.rig, 0);
        rig_start(r.rig, 1);
        rig_run(r.rig, 30 * S);
        assert_true(has_pod(&r, "web"));
        fake_remove(r.rig->cluster, FAKE_PDBS, "default", "web");
        assert_true(wait_phase(&r, "Drained", 10 * S));
        assert_false(has_pod(&r, "web"));
        assert_int_equal(rig_evictions(r.rig, 201), 1);
        print_message("  and the next one takes the marks off\n");
        rig_kill(r.rig, 1);
        rig_start(r.rig, 0);
        rig_run(r.rig, SPOT_LEAD + ANNOUNCED_OUTLIVED_USEC);
        assert_clean(&r);
        assert_not_managed(&r);
        room_close(&r);
}

TEST_CASE(test_boots_anew) {
        Room r;

        room_open(&r, false, DRAINS);
        send_spot(&r, "e1");
        assert_true(wait_phase(&r, "Drained", 10 * S));
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'status':{'nodeInfo':{'bootID':'another-boot'}}}");
        rig_run(r.rig, 15 * S);
        assert_true(has_phase(&r, "Drained") && is_cordoned(&r));
        rig_run(r.rig, SPOT_LEAD + ANNOUNCED_OUTLIVED_USEC);
        assert_clean(&r);
        room_close(&r);
}

/* A person keeps the node from vesper, while it drains and before. */
TEST_CASE(test_kept_from_vesper) {
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 0);
        fake_add_pdb(r.rig->cluster, "default", "web", "web", true, "1");
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        rig_run(r.rig, 5 * S);
        assert_true(is_cordoned(&r));
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'metadata':{'annotations':{'" ANNOTATION_UNMANAGED "':'true'}}}");
        rig_run(r.rig, 3 * S);
        assert_clean(&r);
        send_spot(&r, "e2");
        rig_run(r.rig, SPOT_LEAD);
        assert_clean(&r);
        assert_true(has_pod(&r, "web"));
        assert_true(rig_has_event(r.rig, NODE, "NoticeReported"));
        room_close(&r);
}

/* A pool begins to want it: it is removed as if the queue had told of it then. */
TEST_CASE(test_pool_wants_it) {
        Room r;

        room_open(&r, false, DRAINS);
        add_pod(&r, "web", "web", 0);
        fake_add_pdb(r.rig->cluster, "default", "web", "web", true, "1");
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        rig_run(r.rig, 5 * S);
        assert_true(has_phase(&r, "Draining"));
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'metadata':{'labels':{'vesper.sh/pool':'" POOL "'}}}");
        rig_run(r.rig, 5 * S);
        assert_non_null(rig_claim(r.rig, NODE));
        assert_non_null(fj_string(rig_claim(r.rig, NODE), "metadata", "deletionTimestamp", NULL));
        assert_non_null(fj_string(rig_claim(r.rig, NODE), "metadata", "annotations", ANNOTATION_ANNOUNCED, NULL));
        assert_null(annotation(&r, ANNOTATION_ANNOUNCED));
        assert_true(has_pod(&r, "web"));
        assert_true(rig_wait_gone(r.rig, NODE, SPOT_LEAD + 20 * S));
        room_close(&r);
}

/* The setting is taken back, and another leader leads: what the first one has put goes. */
TEST_CASE(test_reported_from_now_on) {
        Room r;

        room_open(&r, false, DRAINS);
        send_spot(&r, "e1");
        assert_true(wait_phase(&r, "Drained", 10 * S));
        /* A pool that selects nothing may be anybody's: what it might have adopted is not released meanwhile. */
        fake_add_nodepool(r.rig->cluster, "unclear", NULL, NULL);
        fake_merge(r.rig->cluster, FAKE_NODEPOOLS, NULL, "unclear", "{'spec':{'selector':{'matchLabels':null}}}");
        rig_kill(r.rig, 0);
        r.rig->config.queue_unmanaged = QUEUE_UNMANAGED_REPORT;
        rig_start(r.rig, 1);
        rig_run(r.rig, 30 * S);
        assert_clean(&r);
        assert_not_managed(&r);
        room_close(&r);
}

/* -- conditions ----------------------------------------------------------------------------------------- */

#define READY "{'type':'Ready','status':'True','reason':'KubeletReady'}"

static bool condition_is(Room *r, const char *type, const char *status, const char *reason) {
        const cJSON *node = rig_node(r->rig, NODE);

        return streq_ptr(rig_condition(node, type), status) && (!status || streq_ptr(rig_condition_reason(node, type), reason));
}

static bool condition_says(Room *r, const char *type, const char *text) {
        const cJSON *c = fj_find(fj_get(rig_node(r->rig, NODE), "status", "conditions", NULL), "type", type);

        return strstr(strempty(fj_string(c, "message", NULL)), text);
}

/* With a pod that a PodDisruptionBudget holds. */
static void room_open_held(Room *r) {
        room_open(r, false, DRAINS);
        add_pod(r, "web", "web", 3);
        fake_add_pdb(r->rig->cluster, "default", "web", "web", true, "1");
        rig_run(r->rig, S);
}

/* In the order of MaintenancePlanned, MaintenanceInProgress, DrainInProgress, Drained: a letter each, '-' where there is none. */
static void assert_conditions(Room *r, const char *expected) {
        static const char *const types[] = { CONDITION_MAINTENANCE_PLANNED, CONDITION_MAINTENANCE_IN_PROGRESS, CONDITION_DRAIN_IN_PROGRESS,
                                             CONDITION_DRAINED };
        char seen[ELEMENTSOF(types) + 1] = "";

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                const char *status = rig_condition(rig_node(r->rig, NODE), types[i]);

                seen[i] = status ? status[0] : '-';
                if (status && !condition_is(r, types[i], status, CONDITION_REASON_COORDINATOR))
                        fail_msg("%s is not the coordinator's", types[i]);
        }
        assert_string_equal(seen, expected);
}

static uint64_t status_patches(Room *r) {
        return fake_api_count(r->rig->api, FAKE_PATCH, FAKE_NODES, "status");
}

/* Each of the four says its part in its time; what has not changed costs no write. */
TEST_CASE(test_conditions) {
        uint64_t before;
        Room r;

        room_open_held(&r);
        before = status_patches(&r);
        send_spot(&r, "e1");
        rig_run(r.rig, 4 * S);
        assert_conditions(&r, "-TT-");
        rig_run(r.rig, 11 * S);
        assert_true(condition_says(&r, CONDITION_DRAIN_IN_PROGRESS, "(spot, terminate) by "));
        assert_true(condition_says(&r, CONDITION_DRAIN_IN_PROGRESS, "1 pod is left, and it waits for default/web (PDBNeverAllows web)"));
        assert_non_null(strstr(annotation(&r, ANNOTATION_HEARD), "\"blockedBy\":[{\"pod\":\"default/web\",\"reason\":\"PDBNeverAllows\",\"detail\":\"web\"}]"));
        assert_in_range(status_patches(&r) - before, 1, 2);
        print_message("  nothing changes, and nothing is written\n");
        before = status_patches(&r);
        rig_run(r.rig, 30 * S);
        assert_int_equal(status_patches(&r), before);
        fake_remove(r.rig->cluster, FAKE_PDBS, "default", "web");
        assert_true(wait_phase(&r, "Drained", 20 * S));
        rig_run(r.rig, 2 * S);
        assert_conditions(&r, "-TFT");
        assert_true(condition_says(&r, CONDITION_DRAINED, ": 1 evicted"));
        print_message("  the next leader knows no figures, and leaves them\n");
        before = status_patches(&r);
        rig_kill(r.rig, 0);
        rig_start(r.rig, 1);
        rig_run(r.rig, 40 * S);
        assert_int_equal(status_patches(&r), before);
        assert_true(condition_says(&r, CONDITION_DRAINED, ": 1 evicted"));
        rig_run(r.rig, SPOT_LEAD + ANNOUNCED_OUTLIVED_USEC);
        assert_clean(&r);
        assert_conditions(&r, "-FFF");
        assert_true(condition_says(&r, CONDITION_DRAINED, "outlived"));
        assert_int_equal(status_patches(&r), before + 1);
        room_close(&r);
}

TEST_CASE(test_conditions_planned) {
        Room r;

        room_open(&r, false, DRAINS);
        rig_kill(r.rig, 0);
        r.rig->config.lb_wait_usec = 5 * S;
        rig_start(r.rig, 1);
        rig_run(r.rig, 30 * S);
        add_pod(&r, "web", "web", 0);
        send_spot(&r, "e1");
        rig_run(r.rig, 4 * S);
        assert_conditions(&r, "T---");
        assert_true(condition_says(&r, CONDITION_MAINTENANCE_PLANNED, "until load balancers have let go of it"));
        print_message("  its agent begins to drain it, and is silent from then on\n");
        mark_agent(&r, "Draining", 1);
        rig_run(r.rig, 12 * S);
        assert_conditions(&r, "T---");
        assert_true(condition_says(&r, CONDITION_MAINTENANCE_PLANNED, "until its agent, which drains it now, makes no more progress"));
        assert_true(wait_phase(&r, "Drained", 20 * S));
        rig_run(r.rig, 2 * S);
        assert_conditions(&r, "FTFT");
        room_close(&r);
}

TEST_CASE(test_conditions_expired) {
        Room r;

        room_open(&r, false, DRAINS);
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "stuck", .node = NODE, .grace_sec = 10, .stuck = true });
        send_spot(&r, "e1");
        assert_true(wait_phase(&r, "Ending", SPOT_LEAD + 10 * S));
        rig_run(r.rig, 2 * S);
        assert_conditions(&r, "-TFF");
        assert_true(condition_says(&r, CONDITION_DRAINED, "pods left: default/stuck"));
        room_close(&r);
}

TEST_CASE(test_conditions_overruled) {
        Room r;

        room_open_held(&r);
        send_spot(&r, "e1");
        rig_run(r.rig, 5 * S);
        assert_conditions(&r, "-TT-");
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'spec':{'unschedulable':null}}");
        rig_run(r.rig, 5 * S);
        assert_conditions(&r, "-FF-");
        assert_true(condition_says(&r, CONDITION_DRAIN_IN_PROGRESS, "somebody made it schedulable"));
        room_close(&r);
}

/* What a leader has left there goes with the next one, also where the annotation went before. */
TEST_CASE(test_conditions_of_a_dead_leader) {
        Room r;

        room_open(&r, false, DRAINS);
        send_spot(&r, "e1");
        assert_true(wait_phase(&r, "Drained", 10 * S));
        rig_run(r.rig, 2 * S);
        assert_conditions(&r, "-TFT");
        rig_kill(r.rig, 0);
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE,
                   "{'metadata':{'annotations':{'" ANNOTATION_HEARD "':null,'" ANNOTATION_ANNOUNCED "':null,'" ANNOTATION_CORDONED_BY_COORDINATOR "':null}},"
                   "'spec':{'unschedulable':null}}");
        rig_start(r.rig, 1);
        rig_run(r.rig, 30 * S);
        assert_conditions(&r, "-FFF");
        room_close(&r);
}

static void set_conditions(Room *r, const char *rest) {
        fake_merge(r->rig->cluster, FAKE_NODES, NULL, NODE, "{'status':{'conditions':[" READY "%s]}}", rest);
}

/* The agent's own words are never written over, whoever has spoken first; what it has left unsaid is said again when it is done. */
TEST_CASE(test_conditions_are_agents) {
        uint64_t before;
        Room r;

        room_open_held(&r);
        send_spot(&r, "e1");
        rig_run(r.rig, 5 * S);
        assert_conditions(&r, "-TT-");
        print_message("  the agent takes over\n");
        mark_agent(&r, "Draining", 1);
        set_conditions(&r, ",{'type':'DrainInProgress','status':'True','reason':'VesperAgent','message':'m'}");
        before = status_patches(&r);
        rig_run(r.rig, 40 * S);
        assert_true(condition_is(&r, CONDITION_DRAIN_IN_PROGRESS, "True", CONDITION_REASON_AGENT));
        assert_int_equal(status_patches(&r), before);
        fake_remove(r.rig->cluster, FAKE_PDBS, "default", "web");
        assert_true(wait_phase(&r, "Drained", 40 * S));
        rig_run(r.rig, 5 * S);
        assert_true(condition_is(&r, CONDITION_DRAIN_IN_PROGRESS, "True", CONDITION_REASON_AGENT));
        assert_null(rig_condition(rig_node(r.rig, NODE), CONDITION_DRAINED));
        assert_int_equal(status_patches(&r), before);
        print_message("  and takes its words back\n");
        set_conditions(&r, "");
        rig_run(r.rig, 5 * S);
        assert_conditions(&r, "-T-T");
        room_close(&r);
}

/* The agent's words come while the coordinator's are on their way: the API server refuses those, which are of an old Node. */
TEST_CASE(test_conditions_cross) {
        Room r;

        room_open_held(&r);
        send_spot(&r, "e1");
        rig_run(r.rig, S / 2);
        assert_true(has_phase(&r, "Draining"));
        fake_api_mute(r.rig->api, FAKE_NODES, loop_now(r.rig->w.loop) + 20 * S);
        set_conditions(&r, ",{'type':'DrainInProgress','status':'True','reason':'VesperAgent','message':'m'}");
        rig_run(r.rig, 15 * S);
        assert_true(condition_is(&r, CONDITION_DRAIN_IN_PROGRESS, "True", CONDITION_REASON_AGENT));
        assert_int_not_equal(fake_api_count_status(r.rig->api, FAKE_PATCH, FAKE_NODES, "status", 409), 0);
        rig_run(r.rig, 30 * S);
        assert_true(condition_is(&r, CONDITION_DRAIN_IN_PROGRESS, "True", CONDITION_REASON_AGENT));
        room_close(&r);
}

/* How many pods are left is written on the Node every ten seconds, and no more often. */
TEST_CASE(test_pods_left) {
        uint64_t before;
        Room r;

        room_open(&r, false, DRAINS);
        for (unsigned i = 0; i < 12; i++) {
                _cleanup_free_ char *name = strf("p%u", i);

                add_pod(&r, name, NULL, 2 + 2 * i);
        }
        rig_run(r.rig, S);
        send_spot(&r, "e1");
        rig_run(r.rig, S);
        assert_non_null(strstr(annotation(&r, ANNOTATION_HEARD), "\"podsLeft\":12"));
        before = fake_api_count(r.rig->api, FAKE_PATCH, FAKE_NODES, NULL);
        rig_run(r.rig, 11 * S);
        assert_null(strstr(annotation(&r, ANNOTATION_HEARD), "\"podsLeft\":12"));
        assert_true(wait_phase(&r, "Drained", 60 * S));
        assert_in_range(fake_api_count(r.rig->api, FAKE_PATCH, FAKE_NODES, NULL) - before, 2, 4);
        room_close(&r);
}

/* -- hooks ---------------------------------------------------------------------------------------------- */

static void groups_open(Room *r) {
        room_open(r, true, DRAINS);
        fake_ec2_run(r->rig->ec2, r->instance, ZONE);
        queue_rig_add_group(&r->q, r->instance);
}

/* Heartbeats for as long as the drain takes, which is four times the hook's own time; then CONTINUE, once. */
TEST_CASE(test_hook) {
        FakeTroubles *calls;
        Room r;

        groups_open(&r);
        calls = fake_autoscaling_troubles(r.q.groups);
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "slow", .node = NODE, .grace_sec = 300, .stop_sec = 120 });
        rig_run(r.rig, S);
        queue_rig_group_lets_go(&r.q, r.instance);
        rig_run(r.rig, 100 * S);
        assert_true(has_phase(&r, "Draining"));
        assert_string_equal(fake_autoscaling_lifecycle(r.q.groups, r.instance), "Terminating:Wait");
        assert_in_range(fake_troubles_n_requests(calls, "RecordLifecycleActionHeartbeat"), 5, 12);
        assert_int_equal(fake_troubles_n_requests(calls, "CompleteLifecycleAction"), 0);
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 1);
        assert_true(wait_phase(&r, "Drained", USEC_PER_MINUTE));
        rig_run(r.rig, 5 * S);
        assert_int_equal(fake_troubles_n_requests(calls, "CompleteLifecycleAction"), 1);
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
        assert_null(rig_claim(r.rig, NODE));
        room_close(&r);
}

/* Who opens the node has answered for its group, too: it goes on by its own time. */
TEST_CASE(test_hook_overruled) {
        Room r;

        groups_open(&r);
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "slow", .node = NODE, .grace_sec = 300, .stop_sec = 120 });
        rig_run(r.rig, S);
        queue_rig_group_lets_go(&r.q, r.instance);
        rig_run(r.rig, 20 * S);
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 1);
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'spec':{'unschedulable':null}}");
        rig_run(r.rig, 5 * S);
        assert_true(has_phase(&r, "") && has_state(&r, "Overruled"));
        assert_true(rig_event_says(r.rig, NODE, "InterruptionOverruled",
                                   "announced. The hook of its Auto Scaling group is not answered any more: the group ends"));
        assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
        assert_int_equal(fake_troubles_n_requests(fake_autoscaling_troubles(r.q.groups), "CompleteLifecycleAction"), 0);
        room_close(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_drained),           cmocka_unit_test(test_reported),
                cmocka_unit_test(test_held_gauge),
                cmocka_unit_test(test_budget_until_deadline), cmocka_unit_test(test_expires),
                cmocka_unit_test(test_agent_first),       cmocka_unit_test(test_overruled),
                cmocka_unit_test(test_cordon_of_others),  cmocka_unit_test(test_leader_dies),
                cmocka_unit_test(test_boots_anew),        cmocka_unit_test(test_kept_from_vesper),
                cmocka_unit_test(test_pool_wants_it),     cmocka_unit_test(test_reported_from_now_on),
                cmocka_unit_test(test_hook),              cmocka_unit_test(test_hook_overruled),
                cmocka_unit_test(test_conditions),        cmocka_unit_test(test_conditions_planned),
                cmocka_unit_test(test_conditions_expired), cmocka_unit_test(test_conditions_overruled),
                cmocka_unit_test(test_conditions_of_a_dead_leader), cmocka_unit_test(test_conditions_are_agents),
                cmocka_unit_test(test_conditions_cross),  cmocka_unit_test(test_pods_left),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
