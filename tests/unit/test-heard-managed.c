/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "fake-json.h"
#include "heard-rule.h"
#include "marks.h"
#include "queue-rig.h"

/* What the interruption queue tells of a managed node that comes back from it: the node is drained and kept. */

#define S USEC_PER_SEC
#define NODE "n0"
#define REBOOT "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"
#define RETIREMENT "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED"

typedef struct Room {
        QueueRig q;
        CoordinatorRig *rig; /* of the queue's rig */
        char *instance;      /* of NODE */
} Room;

static void room_open(Room *r, const char *setting) {
        *r = (Room){ .instance = rig_instance(NODE) };
        queue_rig_init(&r->q);
        r->rig = r->q.rig;
        r->rig->settings[0] = (char *) setting;
        rig_begin(r->rig, 2, NULL);
        fake_merge(r->rig->cluster, FAKE_NODES, NULL, NODE, "{'status':{'nodeInfo':{'bootID':'first'}}}");
        fake_add_pod(r->rig->cluster,
                     &(FakePod){ .name = "web", .node = NODE, .app = "web", .owner_kind = "ReplicaSet", .owner = "web", .grace_sec = 20, .stop_sec = 3 });
        rig_run(r->rig, S);
}

static void room_close(Room *r) {
        queue_rig_done(&r->q);
        free(r->instance);
}

static void send_kind(Room *r, FakeAwsEventKind kind, const char *action, const char *id) {
        queue_rig_send(&r->q, (FakeAwsEvent){ .kind = kind, .instance = r->instance, .action = action, .id = id });
}

/* One scheduled change: every message of that id is about it. */
static void send_change(Room *r, const char *code, usec_t in_usec, const char *id, const char *status) {
        queue_rig_send(&r->q, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH,
                                              .instance = r->instance,
                                              .action = code,
                                              .communication = id,
                                              .id = id,
                                              .status = status,
                                              .until_wall_usec = (loop_wall(r->rig->w.loop) + in_usec) / S * S });
}

/* As it was sent then. */
static void send_again(Room *r, const FakeAwsEvent *event) {
        _cleanup_free_ char *body = fake_aws_event(event);

        fake_sqs_send(r->q.sqs, "q", body);
}

/* A scheduled change as it would be sent now. */
static FakeAwsEvent change_now(Room *r, const char *code, usec_t in_usec, const char *id) {
        usec_t wall = loop_wall(r->rig->w.loop) / S * S;

        return (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH, .instance = r->instance, .action = code, .communication = id, .id = id,
                               .until_wall_usec = wall + in_usec, .wall_usec = wall };
}

static const char *annotation(const cJSON *o, const char *key) {
        return fj_string(o, "metadata", "annotations", key, NULL);
}

static const char *on_claim(Room *r) {
        return annotation(rig_claim(r->rig, NODE), ANNOTATION_ANNOUNCED);
}

static const char *on_node(Room *r) {
        return annotation(rig_node(r->rig, NODE), ANNOTATION_HEARD);
}

static bool says(const char *text, const char *part) {
        return text && strstr(text, part);
}

static bool is_cordoned(Room *r) {
        return cJSON_IsTrue(fj_get(rig_node(r->rig, NODE), "spec", "unschedulable", NULL));
}

static bool has_pod(Room *r) {
        return fake_get(r->rig->cluster, FAKE_PODS, "default", "web");
}

static bool is_said(Room *r, const char *type) {
        return streq_ptr(rig_condition(rig_node(r->rig, NODE), type), "True");
}

static void boot(Room *r, const char *boot_id) {
        fake_merge(r->rig->cluster, FAKE_NODES, NULL, NODE, "{'status':{'nodeInfo':{'bootID':'%s'}}}", boot_id);
        rig_run(r->rig, 2 * S);
}

/* It is the cluster's still, whatever was announced. */
static void assert_kept(Room *r) {
        assert_non_null(rig_node(r->rig, NODE));
        assert_null(fj_string(rig_node(r->rig, NODE), "metadata", "deletionTimestamp", NULL));
        assert_null(fj_string(rig_claim(r->rig, NODE), "metadata", "deletionTimestamp", NULL));
        assert_true(rig_is_adopted(r->rig, NODE));
        assert_int_equal(rig_machine(r->rig, NODE)->n_terminated, 0);
}

static void assert_open(Room *r) {
        assert_kept(r);
        assert_null(on_node(r));
        assert_null(annotation(rig_node(r->rig, NODE), ANNOTATION_CORDONED_BY_COORDINATOR));
        assert_false(is_cordoned(r));
        rig_run(r->rig, 15 * S); /* what was said is taken back in the background */
        assert_false(is_said(r, CONDITION_MAINTENANCE_PLANNED) || is_said(r, CONDITION_MAINTENANCE_IN_PROGRESS) ||
                     is_said(r, CONDITION_DRAIN_IN_PROGRESS) || is_said(r, CONDITION_DRAINED));
}

/* Nothing tells of anything. */
static void assert_clean(Room *r) {
        assert_null(on_claim(r));
        assert_null(on_node(r));
        assert_open(r);
}

static void assert_drained(Room *r) {
        assert_kept(r);
        assert_true(is_cordoned(r));
        assert_false(has_pod(r));
        assert_true(says(on_node(r), "\"phase\":\"Drained\""));
}

/* A stop, a hibernation, and an instance that stops without any notice: one drain each; and it is back when its machine is. */
TEST_CASE(test_stops) {
        static const struct {
                FakeAwsEventKind kind;
                const char *action, *told;
        } rows[] = {
                { FAKE_AWS_EVENT_SPOT, "stop", "\"action\":\"stop\"" },
                { FAKE_AWS_EVENT_SPOT, "hibernate", "\"action\":\"hibernate\"" },
                { FAKE_AWS_EVENT_STATE, "stopping", "\"action\":\"stop\"" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Room r;

                print_message("%s\n", rows[i].action);
                room_open(&r, NULL);
                send_kind(&r, rows[i].kind, rows[i].action, "e1");
                rig_run(r.rig, S);
                assert_true(says(on_claim(&r), rows[i].told));
                assert_true(is_cordoned(&r));
                assert_true(rig_event_says(r.rig, NODE, "InterruptionAnnounced",
                                           rows[i].kind == FAKE_AWS_EVENT_SPOT && streq(rows[i].action, "stop")
                                                   ? "drains the node by then, and keeps it, as that does not "
                                                     "terminate its machine"
                                                   : "drains the node now, and keeps it, as that does not "
                                                     "terminate its machine"));
                rig_run(r.rig, 10 * S);
                assert_true(rig_event_says(r.rig, "web", "Evicted", "announced an interruption of node"));
                assert_drained(&r);
                /* That it stops is no second notice. */
                send_kind(&r, FAKE_AWS_EVENT_STATE, "stopping", "e2");
                rig_run(r.rig, 5 * S);
                assert_true(rig_event_says(r.rig, NODE, "NoticeReported", "looks at the machine anew"));
                assert_drained(&r);
                assert_int_equal(rig_evictions(r.rig, 201), 1);
                print_message("it is off: its node is not repaired\n");
                rig_machine(r.rig, NODE)->state = INSTANCE_OFF;
                fake_cluster_set_kubelet(r.rig->cluster, NODE, false);
                rig_run(r.rig, 2 * USEC_PER_HOUR);
                assert_drained(&r);
                print_message("it is back\n");
                rig_machine(r.rig, NODE)->state = INSTANCE_PRESENT;
                boot(&r, "second");
                fake_cluster_set_kubelet(r.rig->cluster, NODE, true);
                rig_run(r.rig, 30 * S);
                assert_clean(&r);
                assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
                room_close(&r);
        }
}

/* Resumed, it has the boot of before; and a stop that does not come is outlived. */
TEST_CASE(test_outlived) {
        static const char *const actions[] = { "stop", "hibernate" };

        for (size_t i = 0; i < ELEMENTSOF(actions); i++) {
                Room r;

                room_open(&r, NULL);
                send_kind(&r, FAKE_AWS_EVENT_SPOT, actions[i], "e1");
                rig_run(r.rig, 15 * S);
                assert_drained(&r);
                rig_run(r.rig, ANNOUNCED_OUTLIVED_USEC + 2 * USEC_PER_MINUTE);
                assert_clean(&r);
                room_close(&r);
        }
}

/* It stands on the claim for days, and the Node says so; an hour before its time the node is drained; and it opens when it has rebooted. */
TEST_CASE(test_reboot) {
        Room r;

        room_open(&r, NULL);
        send_change(&r, REBOOT, 12 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 15 * S);
        assert_true(says(on_claim(&r), "\"action\":\"reboot\"") && says(on_claim(&r), "\"until\":"));
        assert_null(on_node(&r));
        assert_false(is_cordoned(&r));
        assert_true(is_said(&r, CONDITION_MAINTENANCE_PLANNED));
        assert_true(rig_event_says(r.rig, NODE, "InterruptionAnnounced", "[Interruption] BeforeSec="));
        rig_kill(r.rig, 0);
        rig_start(r.rig, 1);
        print_message("somebody else reboots it meanwhile: that is not it\n");
        rig_run(r.rig, USEC_PER_HOUR);
        boot(&r, "second");
        assert_true(says(on_claim(&r), "\"action\":\"reboot\""));
        rig_run(r.rig, 9 * USEC_PER_HOUR);
        assert_false(is_cordoned(&r));
        assert_kept(&r);
        print_message("an hour before\n");
        rig_run(r.rig, USEC_PER_HOUR + 30 * USEC_PER_SEC);
        assert_drained(&r);
        print_message("it boots before its time: that is not it either\n");
        boot(&r, "third");
        rig_run(r.rig, 30 * S);
        assert_drained(&r);
        print_message("its time has come, and it has not rebooted yet\n");
        rig_run(r.rig, USEC_PER_HOUR + 20 * USEC_PER_MINUTE);
        assert_true(is_cordoned(&r));
        boot(&r, "fourth");
        rig_run(r.rig, 5 * S);
        assert_open(&r);
        print_message("until it is outlived, it is remembered\n");
        assert_true(says(on_claim(&r), "\"state\":\"Done\""));
        rig_run(r.rig, 2 * USEC_PER_HOUR);
        assert_clean(&r);
        room_close(&r);
}

/* AWS takes it back, or moves it: before its drain has begun, and after. */
TEST_CASE(test_called_off) {
        FakeAwsEvent first;
        Room r;

        room_open(&r, NULL);
        first = change_now(&r, REBOOT, 5 * USEC_PER_HOUR, "e1");
        send_again(&r, &first);
        rig_run(r.rig, 5 * S);
        assert_non_null(on_claim(&r));
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "another", "closed");
        rig_run(r.rig, 5 * S);
        assert_non_null(on_claim(&r));
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "e1", "closed");
        rig_run(r.rig, 5 * S);
        assert_open(&r);
        print_message("the message of before comes again\n");
        send_again(&r, &first);
        rig_run(r.rig, 5 * S);
        assert_open(&r);
        print_message("AWS moves it since: it stands again\n");
        send_change(&r, REBOOT, 6 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 15 * S);
        assert_true(is_said(&r, CONDITION_MAINTENANCE_PLANNED));
        send_change(&r, REBOOT, 6 * USEC_PER_HOUR, "e1", "closed");
        rig_run(r.rig, 5 * S);
        assert_open(&r);
        rig_run(r.rig, 9 * USEC_PER_HOUR);
        assert_clean(&r);

        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "e2", NULL);
        rig_run(r.rig, 5 * S);
        send_change(&r, REBOOT, 9 * USEC_PER_HOUR, "e2", NULL);
        rig_run(r.rig, 5 * USEC_PER_HOUR);
        assert_false(is_cordoned(&r));
        rig_run(r.rig, 3 * USEC_PER_HOUR + USEC_PER_MINUTE);
        assert_drained(&r);
        send_change(&r, REBOOT, 0, "e2", "closed");
        rig_run(r.rig, 10 * S);
        assert_open(&r);
        print_message("another comes while that is remembered\n");
        send_change(&r, REBOOT, 30 * USEC_PER_MINUTE, "e3", NULL);
        rig_run(r.rig, 10 * S);
        assert_drained(&r);
        room_close(&r);
}

/* What ends the machine: its claim is deleted for that, and not before it is near. */
TEST_CASE(test_retirement) {
        static const struct {
                const char *setting, *code;
        } rows[] = {
                { NULL, RETIREMENT },
                { "Interruption.Delete=always", REBOOT },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Room r;

                room_open(&r, rows[i].setting);
                send_change(&r, rows[i].code, 5 * USEC_PER_HOUR, "e1", NULL);
                rig_run(r.rig, 20 * S);
                assert_true(is_said(&r, CONDITION_MAINTENANCE_PLANNED));
                rig_run(r.rig, 4 * USEC_PER_HOUR - USEC_PER_MINUTE);
                assert_kept(&r);
                assert_false(is_cordoned(&r));
                rig_run(r.rig, USEC_PER_MINUTE);
                assert_true(rig_wait_gone(r.rig, NODE, 2 * USEC_PER_MINUTE));
                room_close(&r);
        }
}

/* The instance is ended by somebody: the node is drained as far as time allows, and goes with its machine. */
TEST_CASE(test_shutting_down) {
        Room r;

        room_open(&r, NULL);
        send_kind(&r, FAKE_AWS_EVENT_STATE, "shutting-down", "e1");
        rig_run(r.rig, S);
        assert_true(is_cordoned(&r));
        assert_true(rig_wait_gone(r.rig, NODE, USEC_PER_MINUTE));
        assert_int_equal(rig_evictions(r.rig, 201), 1);
        room_close(&r);
}

/* Nothing is lost when a later notice takes more from the machine, or when two stand. */
TEST_CASE(test_two) {
        Room r;

        room_open(&r, NULL);
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 5 * S);
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e2");
        rig_run(r.rig, 15 * S);
        assert_drained(&r);
        assert_true(says(on_claim(&r), "\"action\":\"reboot\"") && says(on_node(&r), "\"action\":\"stop\""));
        boot(&r, "somebodys");
        rig_run(r.rig, 15 * S);
        assert_drained(&r);
        rig_run(r.rig, 2 * USEC_PER_MINUTE);
        boot(&r, "second");
        rig_run(r.rig, 15 * S);
        assert_false(is_cordoned(&r));
        assert_null(on_node(&r));
        assert_true(says(on_claim(&r), "\"action\":\"reboot\"") && is_said(&r, CONDITION_MAINTENANCE_PLANNED));
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "terminate", "e3");
        assert_true(rig_wait_gone(r.rig, NODE, USEC_PER_MINUTE));
        room_close(&r);
}

/* A retirement after a reboot was told, and called off again: the reboot is not forgotten. */
TEST_CASE(test_room) {
        Room r;

        room_open(&r, NULL);
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 5 * S);
        send_change(&r, RETIREMENT, 9 * USEC_PER_HOUR, "e2", NULL);
        rig_run(r.rig, 5 * S);
        assert_true(says(on_claim(&r), "\"action\":\"terminate\"") && says(on_claim(&r), "\"action\":\"reboot\""));
        send_change(&r, RETIREMENT, 9 * USEC_PER_HOUR, "e2", "closed");
        rig_run(r.rig, 4 * USEC_PER_HOUR + USEC_PER_MINUTE);
        assert_drained(&r);
        rig_run(r.rig, 12 * USEC_PER_HOUR);
        assert_clean(&r);
        room_close(&r);
}

/* The second to be told comes first, or the first; and one that has moved behind the other. Each is drained for, and none is forgotten. */
TEST_CASE(test_two_changes) {
        static const struct {
                usec_t first, second, moved; /* 0: is not moved */
        } rows[] = {
                { 5, 9, 0 },
                { 9, 5, 0 },
                { 5, 9, 15 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t times[2] = { rows[i].moved ? rows[i].moved : rows[i].first, rows[i].second }, passed = 0;
                Room r;

                room_open(&r, NULL);
                send_change(&r, REBOOT, rows[i].first * USEC_PER_HOUR, "e1", NULL);
                rig_run(r.rig, 5 * S);
                send_change(&r, REBOOT, rows[i].second * USEC_PER_HOUR, "e2", NULL);
                rig_run(r.rig, 5 * S);
                if (rows[i].moved)
                        send_change(&r, REBOOT, rows[i].moved * USEC_PER_HOUR, "e1", NULL);
                for (size_t k = 0; k < 2; k++) {
                        usec_t at = (k == 0 ? MIN(times[0], times[1]) : MAX(times[0], times[1])) * USEC_PER_HOUR;
                        char id[] = "boot-0";

                        print_message("%u %u\n", (unsigned) i, (unsigned) k);
                        rig_run(r.rig, at - USEC_PER_HOUR - 2 * USEC_PER_MINUTE - passed);
                        assert_false(is_cordoned(&r));
                        rig_run(r.rig, 3 * USEC_PER_MINUTE);
                        assert_drained(&r);
                        rig_run(r.rig, USEC_PER_HOUR);
                        id[5] = (char) ('1' + (char) k);
                        boot(&r, id);
                        rig_run(r.rig, 5 * S);
                        assert_false(is_cordoned(&r));
                        passed = at + USEC_PER_MINUTE;
                }
                rig_run(r.rig, 3 * USEC_PER_HOUR);
                assert_clean(&r);
                room_close(&r);
        }
}

/* The first of two retirements is called off: the second one is not forgotten. */
TEST_CASE(test_two_retirements) {
        for (unsigned later_first = 0; later_first < 2; later_first++) {
                Room r;

                room_open(&r, NULL);
                send_change(&r, RETIREMENT, (later_first ? 9 : 5) * USEC_PER_HOUR, later_first ? "later" : "sooner", NULL);
                rig_run(r.rig, 5 * S);
                send_change(&r, RETIREMENT, (later_first ? 5 : 9) * USEC_PER_HOUR, later_first ? "sooner" : "later", NULL);
                rig_run(r.rig, 15 * S);
                assert_true(is_said(&r, CONDITION_MAINTENANCE_PLANNED));
                send_change(&r, RETIREMENT, 5 * USEC_PER_HOUR, "sooner", "closed");
                rig_run(r.rig, 7 * USEC_PER_HOUR + 50 * USEC_PER_MINUTE);
                assert_kept(&r);
                assert_true(rig_wait_gone(r.rig, NODE, 15 * USEC_PER_MINUTE));
                room_close(&r);
        }
}

/* A message that waits for another of its instances comes again: it moves nothing back. And one that calls off may come first. */
TEST_CASE(test_out_of_order) {
        FakeAwsEvent first;
        Room r;

        room_open(&r, NULL);
        first = change_now(&r, RETIREMENT, 5 * USEC_PER_HOUR, "e1");
        send_change(&r, RETIREMENT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 5 * S);
        send_change(&r, RETIREMENT, 50 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 5 * S);
        send_again(&r, &first);
        rig_run(r.rig, 6 * USEC_PER_HOUR);
        assert_kept(&r);
        room_close(&r);

        room_open(&r, NULL);
        first.instance = r.instance;
        send_change(&r, RETIREMENT, 5 * USEC_PER_HOUR, "e1", "closed");
        rig_run(r.rig, 5 * S);
        send_again(&r, &first);
        rig_run(r.rig, 6 * USEC_PER_HOUR);
        assert_open(&r);
        room_close(&r);
}

/* A person's claim of a Node that is kept from vesper is refused: nothing is done there, and nobody undoes what another does. */
TEST_CASE(test_refused_claim) {
        uint64_t before;
        Room r;

        room_open(&r, NULL);
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e1");
        rig_run(r.rig, S);
        assert_true(is_cordoned(&r));
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'metadata':{'annotations':{'" ANNOTATION_UNMANAGED "':'true'}}}");
        rig_run(r.rig, 30 * S);
        assert_false(is_cordoned(&r));
        assert_null(on_node(&r));
        before = fake_api_count(r.rig->api, FAKE_PATCH, FAKE_NODES, NULL);
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e2");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_false(is_cordoned(&r));
        assert_in_range(fake_api_count(r.rig->api, FAKE_PATCH, FAKE_NODES, NULL) - before, 0, 2);
        room_close(&r);
}

/* Whatever number of them stands, each is acted upon in its turn; and what is called off stays so, whatever comes after it. */
TEST_CASE(test_many) {
        FakeAwsEvent off;
        Room r;

        room_open(&r, NULL);
        off = change_now(&r, RETIREMENT, 2 * USEC_PER_HOUR, "off");
        send_change(&r, REBOOT, 9 * USEC_PER_HOUR, "third", NULL);
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "second", NULL);
        send_change(&r, RETIREMENT, 20 * USEC_PER_HOUR, "last", NULL);
        send_again(&r, &off);
        rig_run(r.rig, 15 * S);
        assert_true(is_said(&r, CONDITION_MAINTENANCE_PLANNED));
        send_change(&r, RETIREMENT, 2 * USEC_PER_HOUR, "off", "closed");
        rig_run(r.rig, 5 * S);
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "first");
        rig_run(r.rig, 15 * S);
        assert_drained(&r);
        rig_run(r.rig, 2 * USEC_PER_MINUTE);
        boot(&r, "after-first");
        send_again(&r, &off);
        rig_run(r.rig, 4 * USEC_PER_HOUR - 4 * USEC_PER_MINUTE);
        assert_kept(&r);
        assert_false(is_cordoned(&r));
        rig_run(r.rig, 2 * USEC_PER_MINUTE);
        assert_drained(&r);
        rig_run(r.rig, USEC_PER_HOUR);
        boot(&r, "after-second");
        rig_run(r.rig, 5 * S);
        assert_false(is_cordoned(&r));
        rig_run(r.rig, 3 * USEC_PER_HOUR);
        assert_drained(&r);
        send_change(&r, REBOOT, 0, "third", "closed");
        rig_run(r.rig, 5 * S);
        assert_false(is_cordoned(&r));
        rig_run(r.rig, 10 * USEC_PER_HOUR + 30 * USEC_PER_MINUTE);
        assert_kept(&r);
        assert_true(rig_wait_gone(r.rig, NODE, USEC_PER_HOUR));
        room_close(&r);
}

/* A change that AWS moves to later while the node is drained for it: the node opens, and is drained again in time. */
TEST_CASE(test_moved_late) {
        Room r;

        room_open(&r, NULL);
        send_change(&r, REBOOT, 30 * USEC_PER_MINUTE, "e1", NULL);
        rig_run(r.rig, 15 * S);
        assert_drained(&r);
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 15 * S);
        assert_false(is_cordoned(&r));
        assert_true(rig_has_event(r.rig, NODE, "InterruptionMoved"));
        rig_run(r.rig, 4 * USEC_PER_HOUR);
        assert_drained(&r);
        room_close(&r);
}

/* What was announced goes with the node from one pool to another, and through the hands of a leader that does nothing for it. */
TEST_CASE(test_pool_changes) {
        Room r;

        room_open(&r, NULL);
        fake_add_nodepool(r.rig->cluster, "racks", NULL, NULL);
        send_change(&r, RETIREMENT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 5 * S);
        assert_non_null(on_claim(&r));
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'metadata':{'labels':{'vesper.sh/pool':'racks'}}}");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_string_equal(fj_string(rig_claim(r.rig, NODE), "spec", "nodePool", NULL), "racks");
        assert_true(says(on_claim(&r), "\"action\":\"terminate\""));
        assert_null(annotation(rig_node(r.rig, NODE), ANNOTATION_ANNOUNCED));
        print_message("[Interruption] Delete=never, and back\n");
        rig_kill(r.rig, 0);
        r.rig->config.interruption_delete = INTERRUPTION_DELETE_NEVER;
        rig_start(r.rig, 1);
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_true(says(on_claim(&r), "\"action\":\"terminate\""));
        rig_kill(r.rig, 1);
        r.rig->config.interruption_delete = INTERRUPTION_DELETE_TERMINATE;
        rig_start(r.rig, 0);
        rig_run(r.rig, 4 * USEC_PER_HOUR - 10 * USEC_PER_MINUTE);
        assert_kept(&r);
        assert_true(rig_wait_gone(r.rig, NODE, 15 * USEC_PER_MINUTE));
        room_close(&r);
}

/* Another pool begins to select the node while it is drained: it stays closed, and its drain goes on; where no pool does any more, and such nodes are
 * only reported, it opens, and an Event says what was announced. */
TEST_CASE(test_pool_changes_while_it_drains) {
        for (unsigned wanted = 0; wanted < 2; wanted++) {
                Room r;

                print_message("%s\n", wanted ? "another pool" : "none");
                room_open(&r, NULL);
                fake_add_nodepool(r.rig->cluster, "racks", NULL, NULL);
                fake_add_pdb(r.rig->cluster, "default", "web", "web", true, "1");
                rig_run(r.rig, S);
                send_change(&r, REBOOT, 40 * USEC_PER_MINUTE, "e1", NULL);
                rig_run(r.rig, 15 * S);
                assert_true(is_cordoned(&r) && has_pod(&r));
                fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'metadata':{'labels':{'vesper.sh/pool':'%s'}}}", wanted ? "racks" : "nobodys");
                for (unsigned i = 0; i < 100; i++) {
                        rig_run(r.rig, S / 10);
                        assert_true(!wanted || is_cordoned(&r));
                }
                fake_remove(r.rig->cluster, FAKE_PDBS, "default", "web");
                rig_run(r.rig, USEC_PER_MINUTE);
                assert_int_equal(is_cordoned(&r), wanted);
                assert_int_equal(has_pod(&r), !wanted);
                assert_int_equal(rig_event_says(r.rig, NODE, "InterruptionNotActedUpon", "No NodePool manages this node any more"), !wanted);
                room_close(&r);
        }
}

/* A kubelet can write anything on its Node: it calls off nothing that stands on the claim, and takes no place of what AWS tells. */
TEST_CASE(test_node_lies) {
        _cleanup_strbuf_ StrBuf lies = {};
        Room r;

        room_open(&r, NULL);
        send_change(&r, RETIREMENT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 5 * S);
        strbuf_addf(&lies, "{\\'id\\':\\'" RETIREMENT "_e1/%s\\',\\'state\\':\\'CalledOff\\'}", r.instance);
        for (unsigned i = 0; i < 15; i++)
                strbuf_addf(&lies, ",{\\'id\\':\\'x%u\\',\\'kind\\':\\'maintenance\\',\\'action\\':\\'reboot\\',\\'deadline\\':\\'2099-01-15T08:00:00Z\\'}", i);
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'metadata':{'annotations':{'" ANNOTATION_ANNOUNCED "':'{\\'notices\\':[%s]}'}}}", strbuf_str(&lies));
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_null(annotation(rig_node(r.rig, NODE), ANNOTATION_ANNOUNCED));
        assert_false(says(on_claim(&r), "CalledOff"));
        assert_true(says(on_claim(&r), "x6") && !says(on_claim(&r), "x7"));
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e2");
        rig_run(r.rig, 20 * S);
        assert_drained(&r);
        rig_run(r.rig, 4 * USEC_PER_HOUR);
        assert_true(rig_wait_gone(r.rig, NODE, 5 * USEC_PER_MINUTE));
        room_close(&r);
}

/* Somebody reboots the machine before its time, and nobody leads from then until after that time: it is not what was announced. */
TEST_CASE(test_boot_without_leader) {
        Room r;

        room_open(&r, NULL);
        send_change(&r, REBOOT, 5 * USEC_PER_HOUR, "e1", NULL);
        rig_run(r.rig, 3 * USEC_PER_HOUR);
        rig_kill(r.rig, 0);
        boot(&r, "somebodys");
        rig_run(r.rig, 2 * USEC_PER_HOUR + USEC_PER_MINUTE);
        rig_start(r.rig, 1);
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_drained(&r);
        boot(&r, "announced");
        rig_run(r.rig, 30 * S);
        assert_false(is_cordoned(&r));
        room_close(&r);
}

/* A person has opened the node in spite of its agent: that answers the queue's notice of the same end, and no other one. */
TEST_CASE(test_agent_overruled) {
        for (unsigned other = 0; other < 2; other++) {
                char when[RFC3339_MAX];
                Room r;

                room_open(&r, NULL);
                rfc3339_format(loop_wall(r.rig->w.loop) + (other ? 0 : 2 * USEC_PER_MINUTE), when);
                fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE,
                           "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION "':'{\\'id\\':\\'a\\',\\'kind\\':\\'spot\\',\\'source\\':\\'ec2\\',"
                           "\\'action\\':\\'stop\\',\\'deadline\\':\\'%s\\',\\'phase\\':\\'Released\\',\\'bootID\\':\\'first\\'}'}}}",
                           when);
                rig_run(r.rig, other ? 20 * USEC_PER_MINUTE : S);
                send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e1");
                rig_run(r.rig, 15 * S);
                assert_int_equal(is_cordoned(&r), other);
                room_close(&r);
        }
}

/* A person opens it: nothing is done about this one again. */
TEST_CASE(test_overruled) {
        Room r;

        room_open(&r, NULL);
        send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e1");
        rig_run(r.rig, S);
        fake_merge(r.rig->cluster, FAKE_NODES, NULL, NODE, "{'spec':{'unschedulable':false}}");
        rig_run(r.rig, 20 * S);
        assert_kept(&r);
        assert_false(is_cordoned(&r));
        assert_true(says(on_claim(&r), "\"state\":\"Overruled\"") && !on_node(&r));
        rig_run(r.rig, ANNOUNCED_OUTLIVED_USEC + 2 * USEC_PER_MINUTE);
        assert_open(&r);
        room_close(&r);
}

/* Its leader dies anywhere between the message and the cordon. */
TEST_CASE(test_leader_dies) {
        for (usec_t after = 0; after < 200 * USEC_PER_MSEC; after += 10 * USEC_PER_MSEC) {
                Room r;

                room_open(&r, NULL);
                send_kind(&r, FAKE_AWS_EVENT_SPOT, "stop", "e1");
                rig_run(r.rig, after);
                rig_kill(r.rig, 0);
                rig_start(r.rig, 1);
                rig_run(r.rig, 60 * S);
                assert_drained(&r);
                assert_int_equal(fake_sqs_n_messages(r.q.sqs, "q"), 0);
                room_close(&r);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_stops),      cmocka_unit_test(test_outlived),   cmocka_unit_test(test_reboot),
                cmocka_unit_test(test_called_off), cmocka_unit_test(test_retirement), cmocka_unit_test(test_shutting_down),
                cmocka_unit_test(test_two),        cmocka_unit_test(test_room), cmocka_unit_test(test_out_of_order), cmocka_unit_test(test_refused_claim), cmocka_unit_test(test_two_retirements), cmocka_unit_test(test_many), cmocka_unit_test(test_moved_late), cmocka_unit_test(test_pool_changes), cmocka_unit_test(test_pool_changes_while_it_drains), cmocka_unit_test(test_node_lies), cmocka_unit_test(test_boot_without_leader), cmocka_unit_test(test_agent_overruled), cmocka_unit_test(test_two_changes), cmocka_unit_test(test_overruled),  cmocka_unit_test(test_leader_dies),
        };

        return cmocka_run_group_tests_name("heard-managed", tests, NULL, NULL);
}
