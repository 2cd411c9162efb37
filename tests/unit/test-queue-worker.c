/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-test.h"
#include "event-message.h"
#include "fake-json.h"
#include "marks.h"
#include "queue-memory.h"
#include "queue-rig.h"

#define FOREIGN "i-0feedfeedfeedfeed"

static void open_with(QueueRig *r, unsigned n_nodes) {
        queue_rig_init(r);
        rig_begin(r->rig, n_nodes, NULL);
}

static void send(QueueRig *r, FakeAwsEventKind kind, const char *instance, const char *action) {
        queue_rig_send(r, (FakeAwsEvent){ .kind = kind, .instance = instance, .action = action });
}

static void send_for(QueueRig *r, FakeAwsEventKind kind, const char *node, const char *action) {
        _cleanup_free_ char *instance = rig_instance(node);

        send(r, kind, instance, action);
}

static const char *told(QueueRig *r, const char *node) {
        return fj_string(rig_claim(r->rig, node), "metadata", "annotations", ANNOTATION_INTERRUPTION, NULL);
}

static bool is_being_deleted(QueueRig *r, const char *node) {
        const cJSON *claim = rig_claim(r->rig, node);

        return !claim || fj_string(claim, "metadata", "deletionTimestamp", NULL);
}

TEST_CASE(test_spot) {
        QueueRig r;

        open_with(&r, 2);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_SEC / 2);
        assert_true(is_being_deleted(&r, "n0"));
        assert_false(is_being_deleted(&r, "n1"));
        assert_true(rig_has_event(r.rig, "n0", "InterruptionAnnounced"));
        assert_true(rig_wait_gone(r.rig, "n0", USEC_PER_MINUTE));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "set by the interruption that the queue told of"));
        queue_rig_done(&r);
}

static void on_refuse_patches(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        if (q->verb == FAKE_PATCH && q->resource && q->resource->id == FAKE_NODECLAIMS)
                ret_fault->status = 500;
}

/* The message stays until the API server has what it says. */
TEST_CASE(test_not_deleted_before_durable) {
        QueueRig r;

        open_with(&r, 1);
        fake_api_set_fault(r.rig->api, on_refuse_patches, NULL);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, 18 * USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
        /* The message stays hidden while it is in work. */
        assert_in_range(fake_troubles_n_requests(fake_sqs_troubles(r.sqs), "ChangeMessageVisibilityBatch"), 2, 5);
        fake_api_set_fault(r.rig->api, NULL, NULL);
        rig_run(r.rig, 20 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

/* The next leader has what the first one had received. */
TEST_CASE(test_leader_dies) {
        QueueRig r;

        open_with(&r, 1);
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
        queue_rig_done(&r);
}

TEST_CASE(test_duplicates) {
        QueueRig r;

        open_with(&r, 1);
        fake_sqs_duplicate(r.sqs, "q", 5);
        for (unsigned i = 0; i < 12; i++)
                send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

TEST_CASE(test_only_told) {
        QueueRig r;

        open_with(&r, 1);
        send_for(&r, FAKE_AWS_EVENT_REBALANCE, "n0", NULL);
        send_for(&r, FAKE_AWS_EVENT_STATE, "n0", "running");
        send(&r, FAKE_AWS_EVENT_REBALANCE, FOREIGN, NULL);
        rig_run(r.rig, 5 * USEC_PER_SEC);
        assert_true(rig_has_event(r.rig, "n0", "NoticeReported"));
        assert_false(is_being_deleted(&r, "n0"));
        assert_null(told(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

/* A message that names no instance is logged and counted, and nothing is done to any node. */
TEST_CASE(test_capacity_block) {
        const char *said;
        QueueRig r;

        open_with(&r, 1);
        queue_rig_send(&r, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_BLOCK, .until_wall_usec = 2000000000 * USEC_PER_SEC });
        rig_run(r.rig, 5 * USEC_PER_SEC);
        said = strstr(r.rig->coordinators[0]->said.data, "announces that Capacity Block cr-0123456789abcdef0 ends at 2033-05-18T03:33:20Z. ");
        assert_non_null(said);
        assert_non_null(strstr(said, "names a reservation and no instance"));
        assert_null(strstr(said + strlen("announces that Capacity Block"), "announces that Capacity Block"));
        assert_false(rig_has_event(r.rig, "n0", "NoticeReported"));
        assert_false(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

/* Two minutes, and EC2 has to say that it does not know it either. */
TEST_CASE(test_foreign) {
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
                QueueRig r;

                open_with(&r, 1);
                rig_add_machine(r.rig, "aws:///us-east-1/" FOREIGN, "nobody")->state = rows[i].state;
                send(&r, FAKE_AWS_EVENT_SPOT, FOREIGN, "terminate");
                rig_run(r.rig, 90 * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), rows[i].left_early);
                rig_run(r.rig, 150 * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), rows[i].left_late);
                queue_rig_done(&r);
        }
}

/* A node that is just joining does not lose its notice. */
TEST_CASE(test_joins_late) {
        _cleanup_free_ char *instance = rig_instance("late"), *id = strf("aws:///us-east-1/%s", instance);
        QueueRig r;

        open_with(&r, 1);
        rig_add_machine(r.rig, id, "late");
        send(&r, FAKE_AWS_EVENT_SPOT, instance, "terminate");
        rig_run(r.rig, 30 * USEC_PER_SEC);
        rig_add_node(r.rig, "late");
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "late"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

static int64_t n_reports(QueueRig *r, const char *node) {
        return rig_n_events(r->rig, node, "NoticeReported");
}

/* A message about a Node that no NodePool adopts is reported once, and deleted. If a pool selects the Node, that
 * takes two minutes from its joining. SQS may deliver the message several times before. */
TEST_CASE(test_joins_unadopted) {
        static const struct {
                unsigned joins_sec, early_sec, late_sec; /* after joining: not reported yet, reported */
                const char *pool;
        } rows[] = {
                { 0, 0, 10, NULL },
                { 45, 0, 45, NULL },
                { 0, 115, 130, "metal" },
                { 45, 115, 200, "metal" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *instance = rig_instance("free"), *id = strf("aws:///us-east-1/%s", instance);
                QueueRig r;

                print_message("  the Node of pool %s joins after %u s\n", strempty(rows[i].pool), rows[i].joins_sec);
                open_with(&r, 1);
                rig_add_machine(r.rig, id, "free");
                fake_add_nodepool(r.rig->cluster, "metal", NULL, "exec");
                rig_run(r.rig, USEC_PER_SEC);
                send(&r, FAKE_AWS_EVENT_SPOT, instance, "terminate");
                rig_run(r.rig, rows[i].joins_sec * USEC_PER_SEC);
                fake_add_node(r.rig->cluster, "free", ZONE, instance, rows[i].pool);
                rig_run(r.rig, rows[i].early_sec * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
                assert_int_equal(n_reports(&r, "free"), 0);
                rig_run(r.rig, (rows[i].late_sec - rows[i].early_sec) * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
                assert_int_equal(n_reports(&r, "free"), 1);
                rig_run(r.rig, 5 * USEC_PER_MINUTE);
                assert_int_equal(n_reports(&r, "free"), 1);
                queue_rig_done(&r);
        }
}

static void fail_deletes(QueueRig *r, unsigned n) {
        fake_troubles_add(fake_sqs_troubles(r->sqs), &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                                                     .operation = "DeleteMessageBatch",
                                                                     .n = n,
                                                                     .status = 500,
                                                                     .code = "InternalFailure",
                                                                     .message = "later" });
}

/* Two messages about one instance wait, hidden until different times, for its Node, which no NodePool
 * adopts. Each is reported once, by whichever leader receives it, and however often SQS delivers it. */
TEST_CASE(test_two_wait_for_one_node) {
        static const struct {
                const char *what;
                bool leader_dies;
                unsigned n_failures; /* of requests to delete messages */
        } rows[] = {
                { "one leader", false, 0 },
                { "the next leader", true, 0 },
                { "messages that come again, as SQS fails to delete them", false, 4 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *instance = rig_instance("free"),
                                    *id = strf("aws:///us-east-1/%s", instance);
                FakeTroubles *requests;
                usec_t tomorrow;
                QueueRig r;

                print_message("  %s\n", rows[i].what);
                open_with(&r, 1);
                requests = fake_sqs_troubles(r.sqs);
                rig_add_machine(r.rig, id, "free");
                tomorrow = loop_wall(r.rig->w.loop) + USEC_PER_DAY;
                send(&r, FAKE_AWS_EVENT_SPOT, instance, "terminate");
                rig_run(r.rig, 7 * USEC_PER_SEC);
                queue_rig_send(&r, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH,
                                                   .instance = instance,
                                                   .until_wall_usec = tomorrow });
                rig_run(r.rig, 38 * USEC_PER_SEC);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 2);
                if (rows[i].leader_dies) {
                        rig_kill(r.rig, 0);
                        rig_start(r.rig, 1);
                }
                if (rows[i].n_failures > 0)
                        fail_deletes(&r, rows[i].n_failures);
                fake_add_node(r.rig->cluster, "free", ZONE, instance, NULL);
                rig_run(r.rig, 2 * USEC_PER_MINUTE);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
                assert_in_range(fake_troubles_n_requests(requests, "DeleteMessageBatch"),
                                rows[i].n_failures + 1, rows[i].n_failures + 2);
                assert_int_equal(n_reports(&r, "free"), 2);
                queue_rig_done(&r);
        }
}

/* The coordinator has acted upon a message that comes again, as SQS fails to delete it: no Event says that
 * the coordinator only reports it. */
TEST_CASE(test_acted_upon_comes_again) {
        FakeTroubles *requests;
        QueueRig r;

        open_with(&r, 1);
        requests = fake_sqs_troubles(r.sqs);
        fake_add_pod(r.rig->cluster,
                     &(FakePod){ .name = "slow", .node = "n0", .grace_sec = 300, .stop_sec = 200 });
        rig_run(r.rig, 5 * USEC_PER_SEC);
        fail_deletes(&r, 2);
        send_for(&r, FAKE_AWS_EVENT_STATE, "n0", "shutting-down");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_non_null(rig_node(r.rig, "n0"));
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_troubles_n_requests(requests, "DeleteMessageBatch"), 3);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        assert_int_equal(n_reports(&r, "n0"), 0);
        queue_rig_done(&r);
}

/* Answers to the next writes on NodeClaims; 0: as usual. */
typedef struct Answers {
        unsigned status[4];
        size_t n;
} Answers;

static void on_answer_claims(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        Answers *a = userdata;

        if (q->verb == FAKE_PATCH && q->resource && q->resource->id == FAKE_NODECLAIMS && a->n < ELEMENTSOF(a->status))
                ret_fault->status = a->status[a->n++];
}

static unsigned n_reads(QueueRig *r) {
        return (unsigned) fake_api_count(r->rig->api, FAKE_LIST, FAKE_NODECLAIMS, NULL);
}

/* Two conflicts in a row show that the view is old: the coordinator lists the claims again. */
TEST_CASE(test_conflicts) {
        static const struct {
                Answers answers;
                unsigned n_lists;
        } rows[] = {
                { { { 0 } }, 0 },
                { { { 409 } }, 0 },
                { { { 409, 409 } }, 1 },
                { { { 409, 500, 409 } }, 0 },
                { { { 409, 409, 409 } }, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Answers answers = rows[i].answers;
                unsigned n_before;
                QueueRig r;

                print_message("  row %zu\n", i);
                open_with(&r, 1);
                rig_run(r.rig, 10 * USEC_PER_MINUTE); /* a list that is a minute old would be trusted */
                n_before = n_reads(&r);
                fake_api_set_fault(r.rig->api, on_answer_claims, &answers);
                send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
                rig_run(r.rig, 20 * USEC_PER_SEC);
                assert_true(is_being_deleted(&r, "n0"));
                assert_int_equal(n_reads(&r) - n_before, rows[i].n_lists);
                fake_api_set_fault(r.rig->api, NULL, NULL);
                queue_rig_done(&r);
        }
}

TEST_CASE(test_poison) {
        QueueRig r;

        open_with(&r, 1);
        fake_sqs_send(r.sqs, "q", "{\"source\":\"a.b\",\"account\":\"21\",\"detail\":{}}");
        rig_run(r.rig, 5 * USEC_PER_MINUTE);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
        assert_int_equal(fake_sqs_n_in_flight(r.sqs, "q"), 1); /* hidden */
        rig_run(r.rig, USEC_PER_HOUR);
        assert_int_equal(fake_sqs_n_in_flight(r.sqs, "q"), 1);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "cannot be read"));
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "43 bytes, source a.b and account 21"));
        queue_rig_done(&r);
}

/* Hidden messages count as in flight, and SQS has a limit for those: the coordinator deletes what comes beyond
 * the 1,000 that it hides. In a shared queue it neither hides nor deletes any. */
TEST_CASE(test_much_poison) {
        static const struct {
                const char *setting;
                unsigned n, left, hidden;
                bool says_hidden, says_deleted;
        } rows[] = {
                { NULL, QUEUE_PARKED_MAX, QUEUE_PARKED_MAX, QUEUE_PARKED_MAX, true, false },
                { NULL, QUEUE_PARKED_MAX + 30, QUEUE_PARKED_MAX, QUEUE_PARKED_MAX, true, true },
                { "Queue.Shared=yes", 30, 30, 0, false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *said;
                QueueRig r;

                print_message("row %zu\n", i);
                queue_rig_init(&r);
                r.rig->settings[0] = (char *) rows[i].setting;
                rig_begin(r.rig, 1, NULL);
                for (unsigned k = 0; k < rows[i].n; k++)
                        fake_sqs_send(r.sqs, "q", "{\"source\":\"a.b\",\"account\":\"21\",\"detail\":{}}");
                rig_run(r.rig, 5 * USEC_PER_MINUTE);
                assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), rows[i].left);
                if (rows[i].hidden > 0)
                        assert_int_equal(fake_sqs_n_in_flight(r.sqs, "q"), rows[i].hidden);
                said = r.rig->coordinators[0]->said.data;
                assert_int_equal(strstr(said, "The coordinator hides it for 12 hours") != NULL, rows[i].says_hidden);
                said = strstr(said, "The coordinator deletes it unread");
                assert_int_equal(said != NULL, rows[i].says_deleted);
                /* one line a minute */
                if (said)
                        assert_null(strstr(said + 1, "is deleted unread"));
                send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
                rig_run(r.rig, 5 * USEC_PER_SEC);
                assert_true(is_being_deleted(&r, "n0"));
                queue_rig_done(&r);
        }
}

TEST_CASE(test_shared) {
        QueueRig r;

        queue_rig_init(&r);
        r.rig->settings[0] = (char *) "Queue.Shared=yes";
        rig_begin(r.rig, 1, NULL);
        send(&r, FAKE_AWS_EVENT_SPOT, FOREIGN, "terminate");
        send(&r, FAKE_AWS_EVENT_REBALANCE, FOREIGN, NULL);
        fake_sqs_send(r.sqs, "q", "for somebody else");
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, 5 * USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 3);
        queue_rig_done(&r);
}

/* Told once, however often it fails; then it goes on. */
TEST_CASE(test_throttled) {
        const char *said;
        QueueRig r;

        open_with(&r, 1);
        fake_sqs_throttle(r.sqs, 3);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n0"));
        said = strstr(r.rig->coordinators[0]->said.data, "is not heard");
        assert_non_null(said);
        assert_null(strstr(said + 1, "is not heard"));
        assert_non_null(strstr(said, "answers again"));
        queue_rig_done(&r);
}

/* Messages that no answer has room for together keep no notice from being received. */
TEST_CASE(test_large_messages) {
        char *body = malloc(SQS_BODY_MAX_BYTES + 1);
        QueueRig r;

        assert_non_null(body);
        memset(body, '"', SQS_BODY_MAX_BYTES);
        body[SQS_BODY_MAX_BYTES] = 0;
        open_with(&r, 1);
        for (unsigned i = 0; i < SQS_BATCH_MAX - 1; i++)
                fake_sqs_send(r.sqs, "q", body);
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n0", "terminate");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n0"));
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "asks for fewer messages at a time"));
        queue_rig_done(&r);
        free(body);
}

/* A message about another account or region ends nothing, unless the configuration names that. */
TEST_CASE(test_elsewhere) {
        static const struct {
                const char *setting;
                FakeAwsEvent event;
                bool ends;
                unsigned left;
        } rows[] = {
                { NULL, { .account = "210987654321" }, false, 0 },
                { NULL, { .region = "eu-west-1" }, false, 0 },
                { "Queue.Accounts=210987654321", { .account = "210987654321" }, true, 0 },
                { "Queue.Regions=eu-west-1", { .region = "eu-west-1" }, true, 0 },
                { "Queue.Shared=yes", { .account = "210987654321" }, false, 2 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *instance = rig_instance("n0");
                FakeAwsEvent e = rows[i].event;
                const char *said;
                QueueRig r;

                queue_rig_init(&r);
                r.rig->settings[0] = (char *) rows[i].setting;
                rig_begin(r.rig, 1, NULL);
                e.kind = FAKE_AWS_EVENT_SPOT;
                e.instance = instance;
                queue_rig_send(&r, e);
                queue_rig_send(&r, e);
                rig_run(r.rig, 30 * USEC_PER_SEC);
                assert_int_equal(is_being_deleted(&r, "n0"), rows[i].ends);
                if (!rows[i].ends)
                        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), rows[i].left);
                said = strstr(r.rig->coordinators[0]->said.data, "gets messages of account ");
                assert_int_equal(!said, rows[i].ends);
                assert_true(rows[i].ends || !strstr(said + 1, "gets messages of account "));
                queue_rig_done(&r);
        }
}

/* Reads the configuration again with this setting, as SIGHUP does. */
static void reload_with(QueueRig *r, const char *setting) {
        _cleanup_free_ char *taken = NULL, *left = NULL;
        CoordinatorConfig fresh = {};

        r->rig->settings[0] = (char *) setting;
        assert_return_code(config_load(NULL, coordinator_config_table, coordinator_config_table_size, NULL, false,
                                       r->rig->settings, &fresh),
                           0);
        assert_return_code(config_take(coordinator_config_table, coordinator_config_table_size, &r->rig->config,
                                       &fresh, &taken, &left),
                           0);
        assert_null(left);
        config_done(coordinator_config_table, coordinator_config_table_size, &fresh);
}

/* An account or region that a reload names counts from the next message on. */
TEST_CASE(test_elsewhere_reloads) {
        static const struct {
                const char *before, *after;
                FakeAwsEvent event;
                bool ends;
        } rows[] = {
                { NULL, "Queue.Accounts=210987654321", { .account = "210987654321" }, true },
                { NULL, "Queue.Regions=eu-west-1", { .region = "eu-west-1" }, true },
                { "Queue.Accounts=210987654321", NULL, { .account = "210987654321" }, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *instance = rig_instance("n0");
                FakeAwsEvent e = rows[i].event;
                QueueRig r;

                queue_rig_init(&r);
                r.rig->settings[0] = (char *) rows[i].before;
                rig_begin(r.rig, 1, NULL);
                reload_with(&r, rows[i].after);
                e.kind = FAKE_AWS_EVENT_SPOT;
                e.instance = instance;
                queue_rig_send(&r, e);
                rig_run(r.rig, 30 * USEC_PER_SEC);
                assert_int_equal(is_being_deleted(&r, "n0"), rows[i].ends);
                queue_rig_done(&r);
        }
}

/* Messages of as many instances as one may name, more than are worked on at once: none of them is lost, and they
 * keep no other from being acted upon. The last of the instances is a node here. */
TEST_CASE(test_many_instances) {
        char *others[EVENT_MESSAGE_INSTANCES_MAX] = {};
        FakeAwsEvent e = { .kind = FAKE_AWS_EVENT_HEALTH, .instance = "i-0f", .others = others };
        QueueRig r;

        for (size_t i = 0; i + 2 < ELEMENTSOF(others); i++) {
                others[i] = strf("i-%08zx", i);
                assert_non_null(others[i]);
        }
        others[ELEMENTSOF(others) - 2] = rig_instance("n0");
        open_with(&r, 2);
        e.until_wall_usec = loop_wall(r.rig->w.loop) + USEC_PER_MINUTE;
        for (unsigned i = 0; i < 6; i++) {
                char id[16];

                (void) snprintf(id, sizeof(id), "c%u", i);
                e.communication = id;
                queue_rig_send(&r, e);
        }
        send_for(&r, FAKE_AWS_EVENT_SPOT, "n1", "terminate");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n0"));
        assert_true(is_being_deleted(&r, "n1"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 6); /* of instances that nobody has denied */
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                free(others[i]);
        queue_rig_done(&r);
}

/* -- the brake ------------------------------------------------------------------------------------------ */

static const char *announced(QueueRig *r, const char *node) {
        const char *text = fj_string(rig_claim(r->rig, node), "metadata", "annotations", ANNOTATION_ANNOUNCED, NULL);

        return text ?: "";
}

static bool is_held(QueueRig *r, const char *node) {
        return strstr(announced(r, node), "\"state\":\"Held\"");
}

static unsigned n_nodes_where(QueueRig *r, unsigned n, bool (*is)(QueueRig *r, const char *node)) {
        unsigned found = 0;

        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                found += is(r, node);
        }
        return found;
}

#define BRAKED 14u /* nodes, of which ten may go */

/* The end of all nodes at once: ten machines go, four are drained, and their pods keep their PodDisruptionBudgets. */
static void open_braked(QueueRig *r, bool use_ec2) {
        queue_rig_init(r);
        r->rig->use_ec2 = use_ec2;
        rig_begin(r->rig, BRAKED, NULL);
        if (use_ec2)
                queue_rig_route_ec2(r);
        for (unsigned i = 0; i < BRAKED; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                send_for(r, FAKE_AWS_EVENT_SPOT, node, "terminate");
        }
        rig_run(r->rig, 2 * USEC_PER_SEC);
        assert_int_equal(n_nodes_where(r, BRAKED, is_being_deleted), 10);
        assert_int_equal(n_nodes_where(r, BRAKED, is_held), BRAKED - 10);
}

/* Returns the name of the first node that is held; free it. */
static char *first_held(QueueRig *r) {
        for (unsigned i = 0; i < BRAKED; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                if (is_held(r, node))
                        return TAKE_PTR(node);
        }
        fail_msg("nothing is held");
        return NULL;
}

/* Compares the NodePool's condition with the claims that are held, and are not being deleted. Returns the node of the first
 * claim by name; free it. */
static char *expect_held_notices(QueueRig *r, unsigned n) {
        _cleanup_free_ char *node = NULL, *want = NULL;
        const char *first = NULL, *text;
        unsigned found = 0;

        for (unsigned i = 0; i < BRAKED; i++) {
                _cleanup_free_ char *name = MUST(strf("n%u", i));
                const char *claim = fj_string(rig_claim(r->rig, name), "metadata", "name", NULL);

                if (!is_held(r, name) || fj_string(rig_claim(r->rig, name), "metadata", "deletionTimestamp", NULL))
                        continue;
                found++;
                if (first && strcmp(claim, first) > 0)
                        continue;
                first = claim;
                free(node);
                node = TAKE_PTR(name);
        }
        assert_int_equal(found, n);
        want = MUST(strf("announced for %u node%s, first %s: ", n, n == 1 ? "" : "s", node));
        text = fj_string(fj_find(fj_get(fake_get(r->rig->cluster, FAKE_NODEPOOLS, NULL, POOL), "status", "conditions", NULL), "type", POOL_INTERRUPTIONS_HELD),
                         "message", NULL);
        if (!strstr(strempty(text), want))
                fail_msg("'%s', not '%s'", strempty(text), want);
        return TAKE_PTR(node);
}

TEST_CASE(test_brake) {
        _cleanup_free_ char *node = NULL, *first = NULL, *second = NULL;
        QueueRig r;

        open_braked(&r, false);
        node = first_held(&r);
        rig_run(r.rig, 5 * USEC_PER_MINUTE);
        assert_int_equal(n_nodes_where(&r, BRAKED, is_held), BRAKED - 10);
        assert_true(fj_true(rig_node(r.rig, node), "spec", "unschedulable", NULL));
        assert_true(rig_has_event(r.rig, node, "InterruptionAnnounced"));
        assert_string_equal(rig_condition(fake_get(r.rig->cluster, FAKE_NODEPOOLS, NULL, POOL), POOL_INTERRUPTIONS_HELD), "True");
        assert_true(rig_event_says(r.rig, POOL, POOL_INTERRUPTIONS_HELD, "announced for 4 nodes, first"));
        first = expect_held_notices(&r, 4);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "alone announced interruptions of 11 machines within ten minutes; the limit is 10"));
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "is cordoned, and its pods are evicted under their PodDisruptionBudgets"));
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "and the machine stays until AWS, the node's agent or a person confirms it"));
        print_message("  a person deletes the node that the condition names, and a pod keeps it\n");
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "slow", .node = first, .grace_sec = 300, .stop_sec = 200 });
        rig_delete_node(r.rig, first);
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_true(is_held(&r, first));
        assert_true(is_being_deleted(&r, first));
        second = expect_held_notices(&r, 3);
        assert_string_not_equal(second, first);
        queue_rig_done(&r);
}

/* A leader that begins after the first ten counts them, too. */
TEST_CASE(test_brake_of_the_next_leader) {
        QueueRig r;

        open_with(&r, BRAKED);
        for (unsigned i = 0; i < BRAKED; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                /* The pods of the first ten take longer than the change of the leader. */
                fake_add_pod(r.rig->cluster, &(FakePod){ .name = node, .node = node, .grace_sec = 300, .stop_sec = 200 });
                if (i == 10) {
                        rig_run(r.rig, USEC_PER_SEC);
                        rig_kill(r.rig, 0);
                        rig_start(r.rig, 1);
                        rig_run(r.rig, 40 * USEC_PER_SEC);
                }
                send_for(&r, FAKE_AWS_EVENT_SPOT, node, "terminate");
        }
        rig_run(r.rig, 2 * USEC_PER_SEC);
        assert_int_equal(n_nodes_where(&r, BRAKED, is_held), BRAKED - 10);
        queue_rig_done(&r);
}

/* A person lets one go, and only that one. */
TEST_CASE(test_brake_let_go) {
        _cleanup_free_ char *node = NULL;
        char now[RFC3339_MAX];
        QueueRig r;

        open_braked(&r, false);
        node = first_held(&r);
        rfc3339_format(loop_wall(r.rig->w.loop), now);
        fake_merge(r.rig->cluster, FAKE_NODECLAIMS, NULL, fj_string(rig_claim(r.rig, node), "metadata", "name", NULL),
                          "{'metadata':{'annotations':{'" ANNOTATION_LET_GO "':'%s'}}}", now);
        rig_run(r.rig, 2 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, node));
        assert_true(rig_has_event(r.rig, node, "InterruptionLetGo"));
        assert_int_equal(n_nodes_where(&r, BRAKED, is_held), BRAKED - 11);
        assert_true(rig_wait_gone(r.rig, node, 2 * USEC_PER_MINUTE));
        queue_rig_done(&r);
}

/* EC2 says that it takes one of them, by its Spot request, and another one, by the state of its instance. The others stay. */
TEST_CASE(test_brake_confirmed) {
        QueueRig r;

        open_braked(&r, true);
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *node = first_held(&r), *instance = rig_instance(node);

                if (i == 0)
                        fake_ec2_set_spot_status(r.rig->ec2, instance, "marked-for-termination");
                else
                        fake_ec2_terminate(r.rig->ec2, instance);
                rig_run(r.rig, 90 * USEC_PER_SEC);
                assert_true(is_being_deleted(&r, node));
                assert_true(i == 1 || rig_has_event(r.rig, node, "InterruptionLetGo"));
                assert_int_equal(n_nodes_where(&r, BRAKED, is_held), BRAKED - 11 - i);
        }
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "AWS confirms it, its Spot request is marked-for-termination"));
        queue_rig_done(&r);
}

/* Counts the writes on NodeClaims. Each takes effect only after the rest of the round. */
static void on_slow_claims(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        unsigned *n = userdata;

        if (q->verb != FAKE_PATCH || !q->resource || q->resource->id != FAKE_NODECLAIMS || q->subresource)
                return;
        ret_fault->delay_usec = 10 * USEC_PER_SEC;
        (*n)++;
}

/* Two answers of one round confirm the notice. The second one comes while the claim is being written, and
 * writes nothing. */
TEST_CASE(test_brake_confirmed_twice) {
        _cleanup_free_ char *node = NULL, *instance = NULL;
        unsigned n_writes = 0;
        QueueRig r;

        open_braked(&r, true);
        node = first_held(&r);
        instance = rig_instance(node);
        fake_ec2_set_spot_status(r.rig->ec2, instance, "marked-for-termination");
        fake_ec2_schedule(r.rig->ec2, instance, "e", "instance-retirement",
                          loop_wall(r.rig->w.loop) + USEC_PER_MINUTE);
        fake_api_set_fault(r.rig->api, on_slow_claims, &n_writes);
        while (n_writes == 0)
                rig_run(r.rig, 100 * USEC_PER_MSEC);
        rig_run(r.rig, 5 * USEC_PER_SEC);
        assert_int_equal(n_writes, 1);
        fake_api_set_fault(r.rig->api, NULL, NULL);
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, node));
        queue_rig_done(&r);
}

/* Without the permission to ask, all stay held, and the log names the permission once. */
TEST_CASE(test_brake_is_denied) {
        const char *first, *text = "Grant ec2:DescribeSpotInstanceRequests";
        QueueRig r;

        queue_rig_init(&r);
        r.rig->use_ec2 = true;
        rig_begin(r.rig, BRAKED, NULL);
        queue_rig_route_ec2(&r);
        fake_troubles_add(fake_ec2_troubles(r.rig->ec2),
                          &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                          .operation = "DescribeSpotInstanceRequests",
                                          .n = UINT_MAX,
                                          .status = 403,
                                          .code = "UnauthorizedOperation",
                                          .message = "no" });
        for (unsigned i = 0; i < BRAKED; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                send_for(&r, FAKE_AWS_EVENT_SPOT, node, "terminate");
        }
        rig_run(r.rig, 2 * USEC_PER_MINUTE);
        assert_int_equal(n_nodes_where(&r, BRAKED, is_held), BRAKED - 10);
        first = strstr(r.rig->coordinators[0]->said.data, text);
        assert_non_null(first);
        assert_null(strstr(first + 1, text));
        queue_rig_done(&r);
}

/* Once AWS has confirmed a notice of a machine, the brake does not hold the next notice of this machine,
 * even in a flood of notices. */
TEST_CASE(test_brake_remembers) {
        _cleanup_free_ char *node = NULL, *instance = NULL, *before = NULL;
        unsigned n_held = 0;
        QueueRig r;

        queue_rig_init(&r);
        r.rig->use_ec2 = true;
        rig_begin(r.rig, BRAKED, NULL);
        queue_rig_route_ec2(&r);
        for (unsigned i = 0; i < BRAKED; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                send_for(&r, FAKE_AWS_EVENT_SPOT, name, "stop");
        }
        rig_run(r.rig, 2 * USEC_PER_SEC);
        node = first_held(&r);
        instance = rig_instance(node);
        fake_ec2_set_spot_status(r.rig->ec2, instance, "marked-for-stop");
        rig_run(r.rig, 90 * USEC_PER_SEC);
        assert_false(is_held(&r, node));
        before = strdup(announced(&r, node));
        send_for(&r, FAKE_AWS_EVENT_SPOT, node, "stop"); /* for another time */
        rig_run(r.rig, 2 * USEC_PER_SEC);
        assert_string_not_equal(announced(&r, node), before);
        assert_false(is_held(&r, node));
        for (const char *p = r.rig->coordinators[0]->said.data; (p = strstr(p, instance)); p += strlen(instance)) {
                const char *end = strchrnul(p, '\n'), *held = strstr(p, "The brake of the queue holds this notice");

                n_held += held && held < end;
        }
        assert_int_equal(n_held, 1);
        queue_rig_done(&r);
}

/* An event that comes in two weeks confirms no end within minutes. */
TEST_CASE(test_brake_compares_times) {
        _cleanup_free_ char *node = NULL, *instance = NULL;
        usec_t now;
        QueueRig r;

        open_braked(&r, true);
        node = first_held(&r);
        instance = rig_instance(node);
        now = loop_wall(r.rig->w.loop);
        fake_ec2_schedule(r.rig->ec2, instance, "e", "instance-retirement", now + 14 * USEC_PER_DAY);
        rig_run(r.rig, 90 * USEC_PER_SEC);
        assert_true(is_held(&r, node));
        fake_ec2_schedule(r.rig->ec2, instance, "e", "instance-retirement", now + USEC_PER_MINUTE);
        rig_run(r.rig, 90 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, node));
        queue_rig_done(&r);
}

/* A message of a hook that no group has: the group denies it, and the node opens again. */
TEST_CASE(test_brake_of_a_false_hook) {
        _cleanup_free_ char *member = rig_instance("n13"), *instance = rig_instance("n12");
        QueueRig r;

        queue_rig_init(&r);
        r.rig->use_ec2 = true;
        rig_begin(r.rig, BRAKED, NULL);
        queue_rig_route_ec2(&r);
        queue_rig_add_group(&r, member);
        for (unsigned i = 0; i < 10; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                send_for(&r, FAKE_AWS_EVENT_SPOT, node, "terminate");
        }
        rig_run(r.rig, USEC_PER_SEC);
        queue_rig_send(&r, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_TERMINATE_ACTION, .instance = instance, .group = "g", .hook = "drain" });
        rig_run(r.rig, 500 * USEC_PER_MSEC);
        assert_true(is_held(&r, "n12"));
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_false(is_being_deleted(&r, "n12"));
        assert_non_null(strstr(announced(&r, "n12"), "\"state\":\"CalledOff\""));
        assert_false(fj_true(rig_node(r.rig, "n12"), "spec", "unschedulable", NULL));
        queue_rig_done(&r);
}

/* -- hooks ---------------------------------------------------------------------------------------------- */

/* The node n0 is a member of a group. */
static void open_with_group(QueueRig *r, const char *instance) {
        queue_rig_init(r);
        r->rig->use_ec2 = true;
        rig_begin(r->rig, 1, NULL);
        queue_rig_add_group(r, instance);
}

/* A drain that takes four times the hook's time: the group waits, and goes on by CONTINUE. */
TEST_CASE(test_hook) {
        _cleanup_free_ char *instance = rig_instance("n0");
        FakeTroubles *calls;
        QueueRig r;

        open_with_group(&r, instance);
        calls = fake_autoscaling_troubles(r.groups);
        fake_add_pod(r.rig->cluster, &(FakePod){ .name = "slow", .node = "n0", .grace_sec = 300, .stop_sec = 120 });
        rig_run(r.rig, USEC_PER_SEC);
        queue_rig_group_lets_go(&r, instance);
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
        queue_rig_done(&r);
}

/* What the group does not wait for any more is no error, and no reason to keep the message. */
TEST_CASE(test_hook_is_over) {
        _cleanup_free_ char *instance = rig_instance("n0");
        QueueRig r;

        open_with_group(&r, instance);
        queue_rig_send(&r, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_TERMINATE_ACTION, .instance = instance, .group = "g", .hook = "drain" });
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

static void fail_hooks(QueueRig *r, const char *operation, unsigned status, const char *code,
                       const char *message) {
        fake_troubles_add(fake_autoscaling_troubles(r->groups), &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                                                                .operation = operation,
                                                                                .n = UINT_MAX,
                                                                                .status = status,
                                                                                .code = code,
                                                                                .message = message });
}

/* The group is deleted while its instance is drained: nobody waits for an answer any more. */
TEST_CASE(test_group_is_gone) {
        _cleanup_free_ char *instance = rig_instance("n0");
        QueueRig r;

        open_with_group(&r, instance);
        fake_add_pod(r.rig->cluster,
                     &(FakePod){ .name = "slow", .node = "n0", .grace_sec = 300, .stop_sec = 120 });
        rig_run(r.rig, USEC_PER_SEC);
        fail_hooks(&r, "RecordLifecycleActionHeartbeat", 400, "ValidationError", "Group name not found");
        queue_rig_group_lets_go(&r, instance);
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        assert_non_null(strstr(r.rig->coordinators[0]->said.data, "is over: Group name not found"));
        queue_rig_done(&r);
}

/* Hooks that the coordinator may not answer leave their places to other messages, as many as they are. */
TEST_CASE(test_hooks_are_denied) {
        _cleanup_free_ char *instance = rig_instance("n0"), *other = rig_instance("n1");
        QueueRig r;

        queue_rig_init(&r);
        r.rig->use_ec2 = true;
        rig_begin(r.rig, 2, NULL);
        queue_rig_add_group(&r, instance);
        fail_hooks(&r, "CompleteLifecycleAction", 403, "AccessDenied", "not authorized");
        for (unsigned i = 0; i < 520; i++)
                queue_rig_send(&r, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_LAUNCH_ACTION,
                                                   .instance = instance,
                                                   .group = "g",
                                                   .hook = "drain" });
        rig_run(r.rig, 10 * USEC_PER_SEC);
        send(&r, FAKE_AWS_EVENT_SPOT, other, "terminate");
        rig_run(r.rig, USEC_PER_MINUTE);
        assert_true(is_being_deleted(&r, "n1"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 520);
        queue_rig_done(&r);
}

/* A drain of more than 12 hours, for which SQS hides no message: its group is asked to wait once, not twice.
 * */
TEST_CASE(test_hook_of_a_long_drain) {
        _cleanup_free_ char *instance = rig_instance("n0");
        FakeTroubles *calls;
        unsigned before;
        QueueRig r;

        queue_rig_init(&r);
        r.rig->use_ec2 = true;
        r.hook_usec = USEC_PER_HOUR;
        rig_begin(r.rig, 1, NULL);
        queue_rig_add_group(&r, instance);
        calls = fake_autoscaling_troubles(r.groups);
        fake_add_pod(r.rig->cluster,
                     &(FakePod){ .name = "slow", .node = "n0", .grace_sec = 90000, .stop_sec = 80000 });
        rig_run(r.rig, USEC_PER_SEC);
        queue_rig_group_lets_go(&r, instance);
        rig_run(r.rig, 13 * USEC_PER_HOUR);
        before = fake_troubles_n_requests(calls, "RecordLifecycleActionHeartbeat");
        rig_run(r.rig, 10 * USEC_PER_MINUTE);
        assert_string_equal(fake_autoscaling_lifecycle(r.groups, instance), "Terminating:Wait");
        assert_in_range(fake_troubles_n_requests(calls, "RecordLifecycleActionHeartbeat") - before, 40, 60);
        queue_rig_done(&r);
}

/* A message that was replayed hours later, whose hook is over: the group says so, and nothing is ended. */
TEST_CASE(test_hook_is_replayed) {
        _cleanup_free_ char *instance = rig_instance("n0"), *body = NULL;
        FakeAwsEvent e = { .kind = FAKE_AWS_EVENT_TERMINATE_ACTION, .group = "g", .hook = "drain" };
        FakeTroubles *calls;
        QueueRig r;

        open_with_group(&r, instance);
        calls = fake_autoscaling_troubles(r.groups);
        e.instance = instance;
        e.wall_usec = loop_wall(r.rig->w.loop) - USEC_PER_HOUR;
        body = fake_aws_event(&e);
        fake_sqs_send(r.sqs, "q", body);
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_int_equal(fake_troubles_n_requests(calls, "RecordLifecycleActionHeartbeat"), 1);
        assert_false(is_being_deleted(&r, "n0"));
        assert_true(rig_has_event(r.rig, "n0", "NoticeReported"));
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

/* Nobody heard the queue for longer than a notice lasts, and the group still waits: its instance is drained.
 * */
TEST_CASE(test_hook_is_late) {
        _cleanup_free_ char *instance = rig_instance("n0"), *body = NULL;
        FakeAwsEvent e = { .kind = FAKE_AWS_EVENT_TERMINATE_ACTION, .group = "g", .hook = "drain" };
        QueueRig r;

        open_with_group(&r, instance);
        queue_rig_group_lets_go(&r, instance);
        rig_run(r.rig, 0);
        e.instance = instance;
        e.wall_usec = loop_wall(r.rig->w.loop) - USEC_PER_HOUR;
        body = fake_aws_event(&e);
        fake_sqs_send(r.sqs, "q", body);
        rig_run(r.rig, 10 * USEC_PER_SEC);
        assert_true(is_being_deleted(&r, "n0"));
        queue_rig_done(&r);
}

/* A message without a time of its own is as old as SQS says. */
TEST_CASE(test_message_without_time) {
        _cleanup_free_ char *instance = rig_instance("n0"), *body = NULL;
        QueueRig r;

        queue_rig_init(&r);
        body = strf("{\"source\":\"aws.ec2\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\","
                    "\"detail\":{\"instance-id\":\"%s\",\"instance-action\":\"terminate\"}}",
                    instance);
        fake_sqs_send(r.sqs, "q", body);
        fake_sqs_throttle(r.sqs, 30); /* for more than ten minutes */
        rig_begin(r.rig, 1, NULL);
        rig_run(r.rig, 30 * USEC_PER_MINUTE);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        assert_false(is_being_deleted(&r, "n0"));
        assert_true(rig_has_event(r.rig, "n0", "NoticeReported"));
        queue_rig_done(&r);
}

/* CONTINUE once the node is Ready, and not before it is there. */
TEST_CASE(test_launch) {
        _cleanup_free_ char *instance = rig_instance("n0"), *late = rig_instance("late");
        FakeTroubles *calls;
        QueueRig r;

        open_with_group(&r, instance);
        fake_ec2_run(r.rig->ec2, late, ZONE);
        calls = fake_autoscaling_troubles(r.groups);
        queue_rig_send(&r, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_LAUNCH_ACTION, .instance = late, .group = "g", .hook = "drain" });
        rig_run(r.rig, 3 * USEC_PER_MINUTE);
        assert_int_equal(fake_troubles_n_requests(calls, NULL), 0);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 1);
        fake_add_node(r.rig->cluster, "late", ZONE, late, POOL);
        rig_run(r.rig, 30 * USEC_PER_SEC);
        assert_int_equal(fake_troubles_n_requests(calls, "CompleteLifecycleAction"), 1);
        assert_int_equal(fake_sqs_n_messages(r.sqs, "q"), 0);
        queue_rig_done(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_spot),       cmocka_unit_test(test_not_deleted_before_durable),
                cmocka_unit_test(test_leader_dies), cmocka_unit_test(test_duplicates),
                cmocka_unit_test(test_only_told),  cmocka_unit_test(test_capacity_block), cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_joins_unadopted),
                cmocka_unit_test(test_two_wait_for_one_node),
                cmocka_unit_test(test_acted_upon_comes_again),
                cmocka_unit_test(test_conflicts),
                cmocka_unit_test(test_joins_late), cmocka_unit_test(test_poison),
                cmocka_unit_test(test_much_poison),
                cmocka_unit_test(test_shared),     cmocka_unit_test(test_throttled),
                cmocka_unit_test(test_large_messages), cmocka_unit_test(test_many_instances),
                cmocka_unit_test(test_brake),
                cmocka_unit_test(test_brake_of_the_next_leader),
                cmocka_unit_test(test_brake_let_go),
                cmocka_unit_test(test_brake_confirmed),
                cmocka_unit_test(test_brake_confirmed_twice),
                cmocka_unit_test(test_brake_is_denied),
                cmocka_unit_test(test_brake_remembers),
                cmocka_unit_test(test_brake_compares_times),
                cmocka_unit_test(test_brake_of_a_false_hook),
                cmocka_unit_test(test_elsewhere),
                cmocka_unit_test(test_elsewhere_reloads),
                cmocka_unit_test(test_hook),       cmocka_unit_test(test_hook_is_over),
                cmocka_unit_test(test_group_is_gone), cmocka_unit_test(test_hooks_are_denied),
                cmocka_unit_test(test_hook_of_a_long_drain),
                cmocka_unit_test(test_hook_is_replayed), cmocka_unit_test(test_hook_is_late),
                cmocka_unit_test(test_message_without_time), cmocka_unit_test(test_launch),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
