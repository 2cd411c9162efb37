/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator-rig.h"
#include "fake-autoscaling.h"
#include "fake-aws-event.h"
#include "fake-json.h"
#include "fake-sqs.h"
#include "marks.h"

#define GROUPS_ORIGIN "https://autoscaling.us-east-1.amazonaws.com"
#define FOREIGN "i-0feedfeedfeedfeed"

typedef struct Room {
        CoordinatorRig *rig;
        FakeSqs *sqs;
        FakeAutoscaling *groups; /* NULL: none */
} Room;

static void room_open(Room *r, unsigned n_nodes) {
        *r = (Room){ .rig = coordinator_rig_new() };
        r->sqs = fake_sqs_new(&(FakeSqsOptions) {
                .aws = { .loop = r->rig->w.loop, .region = "us-east-1", .max_skew_usec = USEC_PER_HOUR } });
        fake_sqs_add_queue(r->sqs, &(FakeSqsQueue) { .name = "q" });
        r->rig->queue_handler = fake_sqs_handle;
        r->rig->queue = r->sqs;
        if (n_nodes > 0)
                rig_begin(r->rig, n_nodes, NULL);
}

static void room_close(Room *r) {
        for (size_t i = 0; i < ELEMENTSOF(r->rig->coordinators); i++)
                rig_kill(r->rig, i); /* who polls goes before the queue */
        fake_autoscaling_free(r->groups);
        fake_sqs_free(r->sqs);
        coordinator_rig_free(r->rig);
}

static void send(Room *r, FakeAwsEventKind kind, const char *instance, const char *action) {
        FakeAwsEvent e = { .kind = kind, .instance = instance, .action = action, .wall_usec = loop_wall(r->rig->w.loop) };
        _cleanup_free_ char *body = fake_aws_event(&e);

        fake_sqs_send(r->sqs, "q", body);
}

static void send_for(Room *r, FakeAwsEventKind kind, const char *node, const char *action) {
        _cleanup_free_ char *instance = rig_instance(node);

        send(r, kind, instance, action);
}

static const char *told(Room *r, const char *node) {
        return fj_string(rig_claim(r->rig, node), "metadata", "annotations", ANNOTATION_INTERRUPTION, NULL);
}

static bool is_being_deleted(Room *r, const char *node) {
        const cJSON *claim = rig_claim(r->rig, node);

        return !claim || fj_string(claim, "metadata", "deletionTimestamp", NULL);
}

static void test_spot(void **state) {
        Room r;

        room_open(&r, 2);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_SEC / 2);
        assert_true(is_being_deleted(&r, "n0"));
        assert_false(is_being_deleted(&r, "n1"));
        assert_true(rig_has_event(r.rig, "n0", "InterruptionAnnounced"));
        assert_true(rig_wait_gone(r.rig, "n0", USEC_PER_MINUTE));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "set by the interruption that the queue told of"));
        room_close(&r);
}

static void on_refuse_patches(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        if (q->verb == FAKE_PATCH && q->resource && q->resource->id == FAKE_NODECLAIMS)
                ret_fault->status = 500;
}

/* The message stays until the API server has what it says. */
static void test_not_deleted_before_durable(void **state) {
        Room r;

        room_open(&r, 1);
        fake_api_set_fault(r.rig->api, on_refuse_patches, NULL);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, 18 * USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
        /* It stays hidden while there is work on it. */
        assert_in_range(fake_troubles_n_requests(fake_sqs_troubles(r.sqs), "ChangeMessageVisibilityBatch"), 2, 5);
        fake_api_set_fault(r.rig->api, NULL, NULL);
        rig_run(r.rig, 20 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

/* The next leader has what the first one had received. */
static void test_leader_dies(void **state) {
        Room r;

        room_open(&r, 1);
        fake_api_set_fault(r.rig->api, on_refuse_patches, NULL);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_in_flight(r.sqs, "q"), 1);
        rig_kill(r.rig, 0);
        fake_api_set_fault(r.rig->api, NULL, NULL);
        rig_start(r.rig, 1);
        rig_run(r.rig, 40 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

static void test_duplicates(void **state) {
        Room r;

        room_open(&r, 1);
        fake_sqs_duplicate(r.sqs, "q", 5);
        for (unsigned i = 0; i < 12; i++)
                send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

static void test_only_told(void **state) {
        Room r;

        room_open(&r, 1);
        send_for(&r, FAKE_AWS_EVENT_REBALANCE, "n0", NULL);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "stop");
        send_for(&r, FAKE_AWS_EVENT_STATE, "n0", "stopping");
        send(&r, FAKE_AWS_EVENT_REBALANCE, FOREIGN, NULL);
        rig_run(r.rig, 5 * USEC_PER_SEC);
        assert_true(rig_has_event(r.rig, "n0", "NoticeReported"));
        assert_false(is_being_deleted(&r, "n0"));
        assert_null(told(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

/* It names no instance: said and counted, and nothing is done to any node. */
static void test_capacity_block(void **state) {
        const char *said;
        Room r;

        room_open(&r, 1);
        send_for(&r, FAKE_AWS_EVENT_BLOCK, "n0", NULL);
        rig_run(r.rig, 5 * USEC_PER_SEC);
        said = strstr(r.rig->coordinators[0]->said.data, "announces that Capacity Block cr-0123456789abcdef0 ends at ");
        assert_non_null(said);
        assert_non_null(strstr(said, "names a reservation and no instance"));
        assert_null(strstr(said + strlen("announces that Capacity Block"), "announces that Capacity Block"));
        assert_false(rig_has_event(r.rig, "n0", "NoticeReported"));
        assert_false(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

/* Two minutes, and EC2 has to say that it does not know it either. */
static void test_foreign(void **state) {
        static const struct {
                InstanceState state;
                unsigned left_early, left_late; /* after 90 and 240 s */
        } rows[] = {
                { INSTANCE_NOT_FOUND, 1, 0 },
                { INSTANCE_PRESENT, 1, 1 },
                { INSTANCE_UNKNOWN, 1, 1 },
                { INSTANCE_GONE, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Room r;

                room_open(&r, 1);
                rig_add_machine(r.rig, "aws:///us-east-1/" FOREIGN, "nobody")->state = rows[i].state;
                send(&r, FAKE_AWS_EVENT_SPOT, FOREIGN, "terminate");
                rig_run(r.rig, 90 * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), rows[i].left_early);
                rig_run(r.rig, 150 * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), rows[i].left_late);
                room_close(&r);
        }
}

/* One that is just joining does not lose its notice. */
static void test_joins_late(void **state) {
        _cleanup_free_ char *instance = rig_instance("late"), *id = strf("aws:///us-east-1/%s", instance);
        Room r;

        room_open(&r, 1);
        rig_add_machine(r.rig, id, "late");
        send(&r, FAKE_AWS_EVENT_SPOT, instance, "terminate");
        rig_run(r.rig, 30 * USEC_PER_SEC);
        rig_add_node(r.rig, "late");
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "late"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

static void test_poison(void **state) {
        Room r;

        room_open(&r, 1);
        fake_sqs_send(r.sqs, "q", "{\"detail-type\":");
        rig_run(r.rig, 5 * USEC_PER_MINUTE);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
        assert_int_equal(fake_sqs_n_in_flight(r.sqs, "q"), 1); /* hidden */
        rig_run(r.rig, USEC_PER_HOUR);
        assert_int_equal(fake_sqs_n_in_flight(r.sqs, "q"), 1);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "cannot be read"));
        room_close(&r);
}

static void test_shared(void **state) {
        Room r;

        room_open(&r, 0);
        r.rig->settings[0] = (char *) "Queue.Shared=yes";
        rig_begin(r.rig, 1, NULL);
        send(&r, FAKE_AWS_EVENT_SPOT, FOREIGN, "terminate");
        send(&r, FAKE_AWS_EVENT_REBALANCE, FOREIGN, NULL);
        fake_sqs_send(r.sqs, "q", "for somebody else");
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, 5 * USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 3);
        room_close(&r);
}

/* Told once, however often it fails; then it goes on. */
static void test_throttled(void **state) {
        const char *said;
        Room r;

        room_open(&r, 1);
        fake_sqs_throttle(r.sqs, 3);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n0"));
        said = strstr(r.rig->coordinators[0]->said.data, "is not heard");
        assert_non_null(said);
        assert_null(strstr(said + 1, "is not heard"));
        assert_non_null(strstr(said, "answers again"));
        room_close(&r);
}

/* -- hooks ---------------------------------------------------------------------------------------------- */

static void on_group_event(const FakeAsgEvent *e, void *userdata) {
        Room *r = userdata;
        FakeAwsEvent event = { .kind = e->launching ? FAKE_AWS_EVENT_LAUNCH_ACTION : FAKE_AWS_EVENT_TERMINATE_ACTION,
                               .instance = e->instance,
                               .group = e->group,
                               .hook = e->hook,
                               .token = e->token,
                               .wall_usec = loop_wall(r->rig->w.loop) };
        _cleanup_free_ char *body = NULL;

        if (e->kind != FAKE_ASG_LIFECYCLE_ACTION)
                return;
        body = fake_aws_event(&event);
        fake_sqs_send(r->sqs, "q", body);
}

/* The node n0 is a member of a group with a hook of 30 s, which abandons what nobody answers. */
static void groups_open(Room *r, const char *instance) {
        room_open(r, 0);
        r->rig->use_ec2 = true;
        rig_begin(r->rig, 1, NULL);
        r->groups = fake_autoscaling_new(&(FakeAutoscalingOptions) { .aws = { .loop = r->rig->w.loop, .region = "us-east-1" },
                                                                     .ec2 = r->rig->ec2,
                                                                     .on_event = on_group_event,
                                                                     .userdata = r });
        fake_autoscaling_add_group(r->groups, &(FakeAsgGroup) { .name = "g", .zones = ZONE, .max = 3 });
        fake_autoscaling_add_hook(r->groups, "g",
                                  &(FakeAsgHook) { .name = "drain", .heartbeat_usec = 30 * USEC_PER_SEC, .abandon = true });
        fake_autoscaling_attach(r->groups, "g", instance);
        assert_return_code(http_inproc_route(r->rig->coordinators[0]->transport, GROUPS_ORIGIN, fake_autoscaling_handle, r->groups), 0);
}

static void on_let_go(const HttpResponse *response, void *userdata) {
        assert_int_equal(response->status, 200);
}

static void group_lets_go(Room *r, const char *instance) {
        static const HttpHeader headers[] = { { "Host", "autoscaling.us-east-1.amazonaws.com" },
                                              { "Content-Type", "application/x-www-form-urlencoded; charset=utf-8" } };
        _cleanup_free_ char *form = strf("Action=TerminateInstanceInAutoScalingGroup&Version=2011-01-01&InstanceId=%s&"
                                         "ShouldDecrementDesiredCapacity=true",
                                         instance);
        const HttpRequest request = { .method = HTTP_POST,
                                      .url = GROUPS_ORIGIN "/",
                                      .headers = headers,
                                      .n_headers = ELEMENTSOF(headers),
                                      .body = form,
                                      .body_size = strlen(form),
                                      .lane = HTTP_LANE_BULK,
                                      .timeout_usec = USEC_PER_MINUTE,
                                      .max_response_bytes = 1u << 16 };

        assert_return_code(http_call_start(r->rig->coordinators[0]->transport, &request, on_let_go, NULL, NULL), 0);
}

/* A drain that takes four times the hook's time: the group waits, and goes on by CONTINUE. */
static void test_hook(void **state) {
        _cleanup_free_ char *instance = rig_instance("n0");
        FakeTroubles *calls;
        Room r;

        groups_open(&r, instance);
        calls = fake_autoscaling_troubles(r.groups);
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "slow", .node = "n0", .grace_sec = 300, .stop_sec = 120 });
        rig_run(r.rig, USEC_PER_SEC);
        group_lets_go(&r, instance);
        rig_run(r.rig, 100 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_non_null(rig_node(r.rig, "n0"));
        assert_string_equal(fake_autoscaling_lifecycle(r.groups, instance), "Terminating:Wait");
        assert_in_range(fake_troubles_n_requests(calls, "RecordLifecycleActionHeartbeat"), 5, 12);
        assert_int_equal(fake_troubles_n_requests(calls, "CompleteLifecycleAction"), 0);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);

        assert_true(rig_wait_gone(r.rig, "n0", USEC_PER_MINUTE));
        rig_run(r.rig, 5 * USEC_PER_SEC);
        assert_int_equal(fake_troubles_n_requests(calls, "CompleteLifecycleAction"), 1);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "was answered with CONTINUE"));
        room_close(&r);
}

/* What the group does not wait for any more is no error, and no reason to keep the message. */
static void test_hook_is_over(void **state) {
        FakeAwsEvent event = { .kind = FAKE_AWS_EVENT_TERMINATE_ACTION, .group = "g", .hook = "drain" };
        _cleanup_free_ char *instance = rig_instance("n0"), *body = NULL;
        Room r;

        groups_open(&r, instance);
        event.instance = instance;
        body = fake_aws_event(&event);
        fake_sqs_send(r.sqs, "q", body);
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

/* CONTINUE once the node is Ready, and not before it is there. */
static void test_launch(void **state) {
        FakeAwsEvent event = { .kind = FAKE_AWS_EVENT_LAUNCH_ACTION, .group = "g", .hook = "drain" };
        _cleanup_free_ char *instance = rig_instance("n0"), *late = rig_instance("late"), *body = NULL;
        FakeTroubles *calls;
        Room r;

        groups_open(&r, instance);
        fake_ec2_run(r.rig->ec2, late, ZONE);
        calls = fake_autoscaling_troubles(r.groups);
        event.instance = late;
        body = fake_aws_event(&event);
        fake_sqs_send(r.sqs, "q", body);
        rig_run(r.rig, 3 * USEC_PER_MINUTE);
        assert_int_equal(fake_troubles_n_requests(calls, NULL), 0);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
        fake_add_node(r.rig->cluster, "late", ZONE, late, POOL);
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_int_equal(fake_troubles_n_requests(calls, "CompleteLifecycleAction"), 1);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        room_close(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spot),       cmocka_unit_test(test_not_deleted_before_durable),
                cmocka_unit_test(test_leader_dies), cmocka_unit_test(test_duplicates),
                cmocka_unit_test(test_only_told),  cmocka_unit_test(test_capacity_block), cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_joins_late), cmocka_unit_test(test_poison),
                cmocka_unit_test(test_shared),     cmocka_unit_test(test_throttled),
                cmocka_unit_test(test_hook),       cmocka_unit_test(test_hook_is_over),
                cmocka_unit_test(test_launch),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
