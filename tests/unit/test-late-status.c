/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "kube-rig.h"
#include "late-status.h"
#include "status-patch.h"

#define MSEC USEC_PER_MSEC

typedef struct Bench {
        Rig *rig;
        KubeObject *node;
        LateStatus *status;
        bool leaves; /* the object leaves the view with the first request */
} Bench;

static const KubeObject *on_object_now(void *userdata) {
        const Bench *b = userdata;

        return b->leaves && b->rig->n_requests > 0 ? NULL : b->node;
}

static KubeObject *node_of_version(Bench *b, const char *status, unsigned version) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"n1\",\"uid\":\"u1\",\"resourceVersion\":\"%u\"},\"status\":%s}", version, status);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o;

        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc),
                                              kube_client_pool(b->rig->host->client), &o),
                           0);
        return o;
}

static KubeObject *node_of(Bench *b, const char *status) {
        return node_of_version(b, status, 7);
}

static void bench_init_of(Bench *b, const char *status, bool of_version) {
        *b = (Bench){ .rig = rig_new() };
        b->node = node_of(b, status);
        assert_return_code(late_status_new(&(LateStatusOptions){ .client = b->rig->host->client,
                                                                 .kind = &kube_node_kind,
                                                                 .name = "n1",
                                                                 .of_version = of_version,
                                                                 .object_now = on_object_now,
                                                                 .userdata = b },
                                           &b->status),
                           0);
}

static void bench_init_on(Bench *b, const char *status) {
        bench_init_of(b, status, false);
}

static void bench_init(Bench *b) {
        bench_init_on(b, "{}");
}

static void bench_done(Bench *b) {
        late_status_free(b->status);
        kube_object_unref(b->node);
        rig_free(b->rig);
}

static void assert_sent(const Bench *b, size_t i, const char *part) {
        assert_true(b->rig->n_requests > i);
        if (!strstr(b->rig->requests[i].body, part))
                fail_msg("'%s' is not in request %zu: %s", part, i, b->rig->requests[i].body);
}

/* The list of a custom resource is written whole: conditions that are not in the patch stay as they are. */
TEST_CASE(test_conditions_of_others) {
        static const char text[] = "{\"metadata\":{\"name\":\"p\",\"uid\":\"u2\",\"resourceVersion\":\"3\",\"generation\":9},\"status\":"
                                   "{\"conditions\":[{\"type\":\"Foreign\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"m\","
                                   "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"observedGeneration\":4}]}}";
        const Condition ours = { .type = "Ready", .status = CONDITION_TRUE, .reason = "Idle" };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        _cleanup_free_ char *body = NULL;
        JsonWriter *w;

        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(kube_object_decode(&kube_node_pool_kind, json_root(doc), pool, &o), 0);
        w = status_patch_open(o);
        status_patch_add_conditions(w, o, &ours, 1, 0, NULL);
        body = status_patch_close(w);
        assert_string_equal(body, "{\"metadata\":{\"resourceVersion\":\"3\"},\"status\":{\"conditions\":["
                                  "{\"type\":\"Foreign\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"m\","
                                  "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"observedGeneration\":4},"
                                  "{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Idle\",\"observedGeneration\":9}]}}");
}

/* Where others write the same conditions, only the version in view takes the patch. */
TEST_CASE(test_version) {
        for (unsigned of_version = 0; of_version < 2; of_version++) {
                Bench b;

                bench_init_of(&b, "{}", of_version);
                rig_answer(b.rig, 200, "{}");
                late_status_set_condition(b.status, "DrainInProgress", CONDITION_TRUE, "R", "begun");
                rig_run_for(b.rig, 2 * USEC_PER_SEC);
                assert_sent(&b, 0, "\"uid\":\"u1\"");
                assert_int_equal(strstr(b.rig->requests[0].body, "\"resourceVersion\":\"7\"") != NULL, of_version);
                bench_done(&b);
        }
}

TEST_CASE(test_together) {
        Bench b;

        bench_init(&b);
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, "{}");
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        late_status_set_condition(b.status, "DrainInProgress", CONDITION_TRUE, "R", "begun");
        rig_run_for(b.rig, 700 * MSEC);
        late_status_set_condition(b.status, "DrainInProgress", CONDITION_FALSE, "R", "ended");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        assert_int_equal(b.rig->requests[0].method, HTTP_PATCH);
        assert_string_equal(b.rig->requests[0].path, "/api/v1/nodes/n1/status");
        assert_string_equal(b.rig->requests[0].content_type, "application/strategic-merge-patch+json");
        assert_sent(&b, 0, "{\"metadata\":{\"uid\":\"u1\"}");
        assert_sent(&b, 0, "\"type\":\"Drained\",\"status\":\"True\"");
        assert_sent(&b, 0, "\"type\":\"DrainInProgress\",\"status\":\"False\"");

        print_message("  the same again needs none; what is new goes alone\n");
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 1);
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "again");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_sent(&b, 1, "again");
        assert_null(strstr(b.rig->requests[1].body, "DrainInProgress"));
        /* A new message changes lastHeartbeatTime, and not lastTransitionTime. */
        assert_sent(&b, 1, "\"lastHeartbeatTime\":\"2027-01-15T08:01:02Z\",\"lastTransitionTime\":\"2027-01-15T08:00:00Z\"");
        bench_done(&b);
}

/* A condition that the object has already needs no write. A changed one begins now, or keeps its time. */
TEST_CASE(test_as_it_says) {
        Condition c;
        Bench b;

        bench_init_on(&b, "{\"conditions\":[{\"type\":\"Drained\",\"status\":\"True\",\"reason\":\"R\",\"message\":"
                          "\"done\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}");
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, "{}");
        assert_false(late_status_condition(b.status, "DrainInProgress", &c));
        assert_true(late_status_condition(b.status, "Drained", &c));
        assert_string_equal(c.message, "done");
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 0);

        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "again");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_sent(&b, 0, "again");
        assert_sent(&b, 0, "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"");
        late_status_set_condition(b.status, "Drained", CONDITION_FALSE, "R", "not so");
        assert_true(late_status_condition(b.status, "Drained", &c));
        assert_string_equal(c.message, "not so");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_sent(&b, 1, "\"status\":\"False\"");
        assert_sent(&b, 1, "\"lastTransitionTime\":\"2027-01-15T08:01:");
        bench_done(&b);
}

TEST_CASE(test_tried_again) {
        Bench b;

        bench_init(&b);
        rig_answer(b.rig, 500, "{}");
        rig_answer(b.rig, 409, "{}");
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, "{}");
        late_status_set_condition(b.status, "vesper.sh/TerminationBlocked", CONDITION_TRUE, "R", "one");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 3);
        assert_sent(&b, 2, "one");
        rig_run_for(b.rig, 10 * USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 3);
        bench_done(&b);
}

/* A change while an older write is under way follows it. */
TEST_CASE(test_newer_word) {
        Bench b;

        bench_init(&b);
        rig_answer(b.rig, 500, "{}");
        rig_answer(b.rig, 200, "{}");
        late_status_set_condition(b.status, "A", CONDITION_TRUE, "R", "one");
        rig_run_for(b.rig, USEC_PER_SEC);
        assert_sent(&b, 0, "one");
        late_status_set_condition(b.status, "A", CONDITION_FALSE, "R", "two");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_sent(&b, b.rig->n_requests - 1, "two");
        assert_null(strstr(b.rig->requests[b.rig->n_requests - 1].body, "one"));
        bench_done(&b);
}

/* A change while another object's write is under way follows once that has settled. */
TEST_CASE(test_word_meanwhile) {
        HttpExchange *slow;
        Bench b;

        bench_init(&b);
        rig_answer(b.rig, 0, NULL);
        rig_answer(b.rig, 200, "{}");
        late_status_set_condition(b.status, "A", CONDITION_TRUE, "R", "one");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        late_status_set_condition(b.status, "B", CONDITION_TRUE, "R", "two");
        slow = b.rig->open[b.rig->n_open - 1];
        slow->ops->reply(slow, 200, NULL, 0, "{}", 2);
        b.rig->n_open = 0;
        rig_run_for(b.rig, 700 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        rig_run_for(b.rig, 200 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_sent(&b, 1, "two");
        assert_null(strstr(b.rig->requests[1].body, "one"));
        bench_done(&b);
}

static void see_version(Bench *b, unsigned version) {
        kube_object_unref(b->node);
        b->node = node_of_version(b, "{}", version);
        late_status_see(b->status);
}

/* The object goes back to an older version: what was told, and in no version that is there now, is told again. */
TEST_CASE(test_restored) {
        Bench b;

        bench_init(&b);
        for (unsigned i = 0; i < 4; i++)
                rig_answer(b.rig, 200, "{}");
        late_status_see(b.status);
        late_status_set_condition(b.status, "A", CONDITION_TRUE, "R", "one");
        rig_run_for(b.rig, 1100 * MSEC);
        late_status_set_condition(b.status, "B", CONDITION_TRUE, "R", "two");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);

        see_version(&b, 9);
        see_version(&b, 9);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 2);

        see_version(&b, 8);
        see_version(&b, 8);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 3);
        assert_sent(&b, 2, "one");
        assert_sent(&b, 2, "two");
        bench_done(&b);
}

/* A status that was never written is not written because the version went back. */
TEST_CASE(test_restored_with_nothing_told) {
        Bench b;

        bench_init(&b);
        see_version(&b, 9);
        see_version(&b, 8);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 0);
        bench_done(&b);
}

/* An API server that has just started may answer 404 for an object that the watch has shown. */
TEST_CASE(test_gone) {
        static const struct {
                unsigned answer;
                bool is_in_view;
                unsigned n_requests;
        } rows[] = { { 404, false, 1 }, { 404, true, 2 }, { 422, true, 1 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Bench b;

                print_message("  %u%s\n", rows[i].answer, rows[i].is_in_view ? ", in view" : "");
                bench_init(&b);
                rig_answer(b.rig, rows[i].answer, "{}");
                rig_answer(b.rig, 200, "{}");
                late_status_set_condition(b.status, "A", CONDITION_TRUE, "R", "m");
                b.leaves = !rows[i].is_in_view;
                rig_run_for(b.rig, USEC_PER_MINUTE);
                assert_int_equal(b.rig->n_requests, rows[i].n_requests);
                assert_true(late_status_is_told(b.status));
                if (rows[i].n_requests > 1)
                        assert_sent(&b, 1, "\"type\":\"A\"");
                bench_done(&b);
        }
}

#define CROWD 16

static void on_answered(const KubeReply *reply, void *userdata) {
}

/* A write that waits for the evictions of others has the state of its time, and happens once. */
TEST_CASE(test_newest_at_its_turn) {
        KubeCall *evictions[CROWD];
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < CROWD; i++)
                rig_answer(b.rig, 0, NULL);
        rig_answer(b.rig, 200, "{}");
        for (size_t i = 0; i < CROWD; i++)
                assert_return_code(kube_evict(b.rig->host->client, "default", "p", "u", -1,
                                              &(KubeCallOptions){ .timeout_usec = USEC_PER_MINUTE },
                                              on_answered, NULL, &evictions[i]),
                                   0);
        late_status_set_condition(b.status, "DrainInProgress", CONDITION_TRUE, "R", "begun");
        rig_run_for(b.rig, 5 * USEC_PER_SEC);
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        late_status_set_condition(b.status, "DrainInProgress", CONDITION_FALSE, "R", "over");
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(evictions[i]);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(b.rig->n_requests, CROWD + 1);
        assert_sent(&b, CROWD, "Drained");
        assert_sent(&b, CROWD, "over");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, CROWD + 1);
        bench_done(&b);
}

/* News at every moment does not cost it its place among what others have to tell. */
TEST_CASE(test_news_beside_a_crowd) {
        const KubeTarget other = { .kind = &kube_node_kind, .name = "other", .subresource = "status" };
        const KubeCallOptions tells = { .lane = HTTP_LANE_BULK, .rank = KUBE_RANK_TELLS };
        KubeCall *evictions[CROWD];
        size_t n = 0;
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < 100; i++)
                rig_answer(b.rig, 0, NULL);
        for (size_t i = 0; i < CROWD; i++)
                assert_return_code(kube_evict(b.rig->host->client, "default", "p", "u", -1,
                                              &(KubeCallOptions){ .timeout_usec = 2 * USEC_PER_MINUTE },
                                              on_answered, NULL, &evictions[i]),
                                   0);
        for (unsigned sec = 0; sec < 60; sec++) {
                _cleanup_free_ char *message = strf("request %u", sec);

                late_status_set_condition(b.status, "vesper.sh/TerminationBlocked", CONDITION_TRUE,
                                    "CloudBusy", message);
                assert_return_code(kube_patch(b.rig->host->client, &other, KUBE_PATCH_MERGE, "{}", &tells,
                                              on_answered, NULL, NULL),
                                   0);
                rig_run_for(b.rig, USEC_PER_SEC);
        }
        for (size_t i = CROWD; i < b.rig->n_requests; i++)
                n += strstr(b.rig->requests[i].path, "/nodes/n1/") != NULL;
        assert_in_range(b.rig->n_requests, CROWD + 4, CROWD + 10);
        assert_int_equal(n, 1);
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(evictions[i]);
        bench_done(&b);
}

TEST_CASE(test_about_to_go) {
        Bench b;

        print_message("  what is still there after 20 seconds is told, a word under way once more\n");
        bench_init(&b);
        rig_answer(b.rig, 0, NULL);
        rig_answer(b.rig, 200, "{}");
        late_status_set_condition(b.status, "DrainInProgress", CONDITION_TRUE, "R", "begun");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        late_status_hold(b.status);
        rig_run_for(b.rig, 19900 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        rig_run_for(b.rig, 200 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_sent(&b, 1, "DrainInProgress");
        assert_sent(&b, 1, "Drained");
        bench_done(&b);

        print_message("  where the Node has gone, nothing is\n");
        bench_init(&b);
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        late_status_hold(b.status);
        late_status_end(b.status);
        late_status_set_condition(b.status, "DrainInProgress", CONDITION_FALSE, "R", "over");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 0);
        bench_done(&b);

        print_message("  where all was told, nothing is\n");
        bench_init(&b);
        late_status_hold(b.status);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 0);
        bench_done(&b);

        print_message("  another keeps it: at once\n");
        bench_init(&b);
        rig_answer(b.rig, 200, "{}");
        late_status_set_condition(b.status, "Drained", CONDITION_TRUE, "R", "done");
        late_status_flush(b.status);
        rig_run_for(b.rig, 0);
        assert_int_equal(b.rig->n_requests, 1);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_together),           cmocka_unit_test(test_tried_again),
                cmocka_unit_test(test_newer_word),         cmocka_unit_test(test_word_meanwhile),
                cmocka_unit_test(test_newest_at_its_turn), cmocka_unit_test(test_news_beside_a_crowd),
                cmocka_unit_test(test_about_to_go),        cmocka_unit_test(test_gone),
                cmocka_unit_test(test_as_it_says),         cmocka_unit_test(test_conditions_of_others), cmocka_unit_test(test_version),
                cmocka_unit_test(test_restored),           cmocka_unit_test(test_restored_with_nothing_told),
        };

        return cmocka_run_group_tests_name("late-status", tests, NULL, NULL);
}
