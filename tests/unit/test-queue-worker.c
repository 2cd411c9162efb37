/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coordinator-rig.h"
#include "fake-aws-event.h"
#include "fake-json.h"
#include "fake-sqs.h"
#include "marks.h"

#define FOREIGN "i-0feedfeedfeedfeed"

typedef struct Room {
        CoordinatorRig *rig;
        FakeSqs *sqs;
} Room;

static void room_open(Room *r, unsigned n_nodes) {
        r->rig = coordinator_rig_new();
        r->sqs = fake_sqs_new(&(FakeSqsOptions) {
                .aws = { .loop = r->rig->w.loop, .region = "us-east-1", .max_skew_usec = USEC_PER_HOUR } });
        fake_sqs_add_queue(r->sqs, &(FakeQueue) { .name = "q" });
        r->rig->queue_handler = fake_sqs_handle;
        r->rig->queue = r->sqs;
        if (n_nodes > 0)
                rig_begin(r->rig, n_nodes, NULL);
}

static void room_close(Room *r) {
        for (size_t i = 0; i < ELEMENTSOF(r->rig->coordinators); i++)
                rig_kill(r->rig, i); /* who polls goes before the queue */
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
        rig_run(r.rig, 8 * USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
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

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spot),       cmocka_unit_test(test_not_deleted_before_durable),
                cmocka_unit_test(test_leader_dies), cmocka_unit_test(test_duplicates),
                cmocka_unit_test(test_only_told),  cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_joins_late), cmocka_unit_test(test_poison),
                cmocka_unit_test(test_shared),     cmocka_unit_test(test_throttled),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
