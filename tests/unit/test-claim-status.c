/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "claim-status.h"
#include "cmocka-test.h"
#include "kube-rig.h"
#include "marks.h"

#define MSEC USEC_PER_MSEC
#define PATH "/apis/vesper.sh/v1alpha1/nodeclaims/nc-1/status"

typedef struct Bench {
        Rig *rig;
        KubeObject *claim;
        ClaimStatus *status;
} Bench;

/* The claim as the view has it from now on. */
static void bench_see_claim(Bench *b, const char *version, const char *status) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"nc-1\",\"resourceVersion\":\"%s\"},"
                                         "\"spec\":{},\"status\":%s}",
                                         version, status);

        kube_object_unref(b->claim);
        assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_claim_kind, json_root(doc),
                                              kube_client_pool(b->rig->host->client), &b->claim),
                           0);
}

static const KubeNodeClaim *on_claim_now(void *userdata) {
        const Bench *b = userdata;

        return (const KubeNodeClaim *) b->claim;
}

static void bench_make_status(Bench *b, TokenBucket *progress) {
        claim_status_free(b->status);
        assert_return_code(claim_status_new(b->rig->host->client, (HttpGuard){}, "nc-1", on_claim_now, b,
                                            progress, &b->status),
                           0);
}

static void bench_init(Bench *b, const char *status) {
        *b = (Bench){ .rig = rig_new() };
        bench_see_claim(b, "7", status);
        bench_make_status(b, NULL);
        for (int i = 0; i < 100; i++)
                rig_answer(b->rig, 200, "{}");
}

static void bench_done(Bench *b) {
        claim_status_free(b->status);
        kube_object_unref(b->claim);
        rig_free(b->rig);
}

static const char *last_body(const Bench *b) {
        assert_true(b->rig->n_requests > 0);
        return b->rig->requests[b->rig->n_requests - 1].body;
}

static void assert_says(const Bench *b, const char *text) {
        if (!strstr(last_body(b), text))
                fail_msg("'%s' is not in %s", text, last_body(b));
}

static void reply_to_last(Bench *b, unsigned status) {
        HttpExchange *slow = b->rig->open[b->rig->n_open - 1];

        slow->ops->reply(slow, status, NULL, 0, "{}", 2);
        b->rig->n_open = 0;
}

TEST_CASE(test_phases) {
        Bench b;

        bench_init(&b, "{}");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 0);

        print_message("  what passes within a second costs one write\n");
        claim_status_set_node(b.status, "n", "u");
        claim_status_set_phase(b.status, "Cordoning");
        claim_status_set_deadline(b.status, RIG_START_WALL);
        rig_run_for(b.rig, 700 * MSEC);
        claim_status_set_phase(b.status, "Draining");
        rig_run_for(b.rig, 150 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        assert_int_equal(b.rig->requests[0].method, HTTP_PATCH);
        assert_string_equal(b.rig->requests[0].path, PATH);
        assert_string_equal(b.rig->requests[0].content_type, "application/merge-patch+json");
        assert_string_equal(
                last_body(&b),
                "{\"metadata\":{\"resourceVersion\":\"7\"},\"status\":{\"nodeName\":\"n\",\"nodeUID\":\"u\",\"phase\":\"Draining\",\"deadline\":"
                "\"2027-01-15T08:00:00Z\",\"lastCloudError\":null,\"conditions\":[]}}");

        print_message("  the same again needs none\n");
        claim_status_set_phase(b.status, "Draining");
        claim_status_set_node(b.status, "n", "u");
        claim_status_set_deadline(b.status, RIG_START_WALL);
        claim_status_set_cloud_error(b.status, NULL);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 1);
        claim_status_set_phase(b.status, "Volumes");
        rig_run_for(b.rig, 750 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_says(&b, "\"phase\":\"Volumes\"");
        bench_done(&b);
}

/* Which webhook answers, and how far it is by its own words. */
TEST_CASE(test_webhook) {
        DrainBlocker blocker = { .ns = "shop",
                                 .name = "vm",
                                 .uid = "u",
                                 .wait = POD_WAIT_WEBHOOK,
                                 .detail = "vm.example.com",
                                 .message = "it is being moved",
                                 .since_usec = RIG_START_WALL };
        Bench b;

        bench_init(&b, "{}");
        claim_status_set_blockers(b.status, 1, &blocker, 1);
        rig_run_for(b.rig, 1100 * MSEC);
        assert_says(&b, "{\"pod\":\"shop/vm\",\"reason\":\"EvictionWebhook\",\"message\":\"vm.example.com: it is being "
                        "moved\",\"since\":\"2027-01-15T08:00:00Z\"}]");
        assert_int_equal(b.rig->n_requests, 1);
        claim_status_set_blockers(b.status, 1, &blocker, 1);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 1);
        blocker.message = "half of it is moved";
        claim_status_set_blockers(b.status, 1, &blocker, 1);
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_says(&b, "vm.example.com: half of it is moved");
        bench_done(&b);
}

TEST_CASE(test_progress) {
        DrainBlocker blockers[25] = {};
        char names[25][8];
        usec_t written;
        Bench b;

        bench_init(&b, "{}");
        for (size_t i = 0; i < ELEMENTSOF(blockers); i++) {
                snprintf(names[i], sizeof(names[i]), "p%zu", i);
                blockers[i] = (DrainBlocker){ .ns = "shop",
                                              .name = names[i],
                                              .uid = "u",
                                              .wait = POD_WAIT_PDB,
                                              .detail = "web",
                                              .message = "no",
                                              .since_usec = RIG_START_WALL };
        }
        claim_status_set_phase(b.status, "Draining");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);

        print_message("  pods left at most every two seconds\n");
        for (size_t left = 25; left > 5; left--) {
                claim_status_set_blockers(b.status, left, blockers, left);
                rig_run_for(b.rig, 100 * MSEC);
        }
        rig_run_for(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 3);
        assert_says(&b, "\"podsLeft\":6,");
        assert_says(&b, "{\"pod\":\"shop/p5\",\"reason\":\"BlockedByPDB\",\"pdb\":\"shop/"
                        "web\",\"message\":\"no\",\"since\":"
                        "\"2027-01-15T08:00:00Z\"}]");

        print_message("  nor any sooner for changes that come while a write is under way\n");
        b.rig->answers[b.rig->next_answer].status = 0;
        claim_status_set_blockers(b.status, 5, blockers, 5);
        rig_run_for(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 4);
        claim_status_set_blockers(b.status, 4, blockers, 4);
        reply_to_last(&b, 200);
        written = b.rig->requests[3].at_usec;
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 5);
        assert_true(b.rig->requests[4].at_usec >= written + 2 * USEC_PER_SEC);
        assert_says(&b, "\"podsLeft\":4,");

        print_message("  twenty of them at most\n");
        claim_status_set_blockers(b.status, 25, blockers, 25);
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        assert_says(&b, "\"podsLeft\":25,");
        assert_says(&b, "\"shop/p19\"");
        assert_null(strstr(last_body(&b), "\"shop/p20\""));

        print_message("  what protects a pod is no PDB\n");
        blockers[0] = (DrainBlocker){ .ns = "shop",
                                      .name = "job",
                                      .uid = "u",
                                      .wait = POD_WAIT_PROTECTED,
                                      .detail = "a/key",
                                      .message = "",
                                      .since_usec = RIG_START_WALL };
        claim_status_set_blockers(b.status, 1, blockers, 1);
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        assert_says(&b, "\"blockers\":[{\"pod\":\"shop/job\",\"reason\":\"Protected\",\"message\":\"a/"
                        "key\",\"since\":");

        print_message("  that the last one is gone is told like a phase\n");
        claim_status_set_blockers(b.status, 0, NULL, 0);
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 8);
        assert_says(&b, "\"podsLeft\":0,\"blockers\":[]");
        bench_done(&b);
}

TEST_CASE(test_conditions) {
        Bench b;

        bench_init(&b, "{\"conditions\":[{\"type\":\"Launched\",\"status\":\"True\",\"reason\":\"Adopted\","
                       "\"message\":\"m\","
                       "\"lastTransitionTime\":\"2027-01-01T00:00:00Z\"}]}");
        claim_status_set_condition(b.status, CLAIM_DRAINED, CONDITION_FALSE, "Draining", "3 pods");
        rig_run_for(b.rig, 1100 * MSEC);
        print_message("  a merge patch replaces the list: what was there is said again\n");
        assert_says(&b,
                    "\"conditions\":[{\"type\":\"Launched\",\"status\":\"True\",\"reason\":\"Adopted\","
                    "\"message\":\"m\","
                    "\"lastTransitionTime\":\"2027-01-01T00:00:00Z\"},{\"type\":\"Drained\",\"status\":"
                    "\"False\",\"reason\":"
                    "\"Draining\",\"message\":\"3 pods\",\"lastTransitionTime\":\"2027-01-15T08:00:00Z\"}]");

        print_message("  its time moves with its status only\n");
        rig_run_for(b.rig, 10 * USEC_PER_SEC);
        claim_status_set_condition(b.status, CLAIM_DRAINED, CONDITION_FALSE, "Draining", "2 pods");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_says(&b, "\"message\":\"2 pods\",\"lastTransitionTime\":\"2027-01-15T08:00:00Z\"");
        claim_status_set_condition(b.status, CLAIM_DRAINED, CONDITION_TRUE, "Drained", "");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_says(&b, "\"message\":\"\",\"lastTransitionTime\":\"2027-01-15T08:00:12Z\"");
        claim_status_set_condition(b.status, CLAIM_DRAINED, CONDITION_TRUE, "Drained", "");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 3);
        bench_done(&b);
}

TEST_CASE(test_failures) {
        Bench b;

        print_message("  a lost write is made good, with the newest wish\n");
        bench_init(&b, "{}");
        b.rig->next_answer = b.rig->n_answers;
        rig_answer(b.rig, 503, "{}");
        rig_answer(b.rig, 500, "{}");
        rig_answer(b.rig, 200, "{}");
        claim_status_set_cloud_error(b.status, "TerminationProtected: no");
        rig_run_for(b.rig, 1100 * MSEC);
        claim_status_set_cloud_error(b.status, "CloudDenied: no");
        rig_run_for(b.rig, 30 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 3);
        assert_says(&b, "\"lastCloudError\":\"CloudDenied: no\"");
        bench_done(&b);

        print_message("  news does not make it try at once\n");
        bench_init(&b, "{}");
        b.rig->next_answer = b.rig->n_answers;
        for (size_t i = 0; i < 200; i++)
                rig_answer(b.rig, 503, "{}");
        for (unsigned i = 0; i < 100; i++) {
                _cleanup_free_ char *error = strf("CloudBusy: request %u", i);

                claim_status_set_cloud_error(b.status, error);
                rig_run_for(b.rig, 100 * MSEC);
        }
        assert_in_range(b.rig->n_requests, 3, 6);
        bench_done(&b);

        print_message("  freed with a write under way\n");
        bench_init(&b, "{}");
        claim_status_set_phase(b.status, "Draining");
        b.rig->answers[b.rig->next_answer].status = 0;
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        b.status = claim_status_free(b.status);
        rig_run_for(b.rig, USEC_PER_SEC);
        bench_done(&b);
}

/* Each patch is made of the claim as it is, and holds for that alone. */
TEST_CASE(test_conditional) {
        Bench b;

        bench_init(&b, "{}");
        b.rig->next_answer = b.rig->n_answers;
        rig_answer(b.rig, 409, "{}");
        rig_answer(b.rig, 200, "{}");
        rig_answer(b.rig, 200, "{}");
        claim_status_set_condition(b.status, CLAIM_DRAINED, CONDITION_TRUE, "Drained", "");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_says(&b, "{\"metadata\":{\"resourceVersion\":\"7\"},");
        bench_see_claim(&b, "9", "{\"conditions\":[{\"type\":\"Audited\",\"status\":\"True\",\"reason\":\"R\","
                                 "\"message\":\"by them\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"},"
                                 "{\"type\":\"Launched\",\"status\":\"True\",\"reason\":\"A\",\"message\":\"m\","
                                 "\"lastTransitionTime\":\"2026-01-02T00:00:00Z\"}]}");
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_says(&b, "{\"metadata\":{\"resourceVersion\":\"9\"},");
        assert_says(&b, "{\"type\":\"Audited\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"by them\","
                        "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}");
        assert_says(&b, "{\"type\":\"Drained\",\"status\":\"True\"");

        print_message("  what an earlier leader has said stands\n");
        claim_status_set_condition(b.status, CLAIM_LAUNCHED, CONDITION_TRUE, "A", "m");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 2);

        print_message("  a claim that has left is written to no more\n");
        b.claim = kube_object_unref(b.claim);
        claim_status_set_phase(b.status, "Finished");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 2);
        bench_done(&b);
}

#define CROWD 16

static void on_answered(const KubeReply *reply, void *userdata) {
}

/* A phase whose write fails, or is dropped, is told again at once, whatever came of the pods meanwhile. */
TEST_CASE(test_phase_before_progress) {
        enum { FAILS, WAITS_AND_FAILS, IS_HELD, N_ROWS };
        static const char *const rows[N_ROWS] = { "under way", "while it waited", "dropped" };

        for (int row = 0; row < N_ROWS; row++) {
                TokenBucket one_a_minute = { .burst = 1, .per_minute = 1 };
                KubeCall *evictions[CROWD] = {};
                size_t n = 2;
                Bench b;

                print_message("  progress comes beside a phase: %s\n", rows[row]);
                bench_init(&b, "{}");
                bench_make_status(&b, &one_a_minute);
                claim_status_set_blockers(b.status, 3, NULL, 0); /* the token of this minute */
                rig_run_for(b.rig, 1100 * MSEC);
                assert_int_equal(b.rig->n_requests, 1);

                for (size_t i = 0; i < 2 * CROWD; i++)
                        b.rig->answers[b.rig->next_answer + i].status = 0;
                for (size_t i = 0; i < CROWD && row == WAITS_AND_FAILS; i++, n++)
                        assert_return_code(kube_evict(b.rig->host->client, "default", "p", "u", -1,
                                                      &(KubeCallOptions){ .timeout_usec = USEC_PER_MINUTE },
                                                      on_answered, NULL, &evictions[i]),
                                           0);
                claim_status_set_phase(b.status, "Volumes");
                rig_run_for(b.rig, 1100 * MSEC);
                claim_status_set_blockers(b.status, 2, NULL, 0);
                for (size_t i = 0; i < CROWD; i++)
                        kube_call_free(evictions[i]);
                rig_run_for(b.rig, 100 * MSEC);
                assert_int_equal(b.rig->n_requests, n);
                assert_says(&b, "\"phase\":\"Volumes\"");
                if (row == IS_HELD)
                        claim_status_hold(b.status);
                else
                        reply_to_last(&b, 503);
                rig_run_for(b.rig, row == IS_HELD ? 20100 * MSEC : 2 * USEC_PER_SEC);
                assert_int_equal(b.rig->n_requests, n + 1);
                assert_says(&b, "\"phase\":\"Volumes\"");
                assert_says(&b, "\"podsLeft\":2,");
                bench_done(&b);
        }
}

/* Of very many claims each tells its progress in turn; phases are not held up. */
TEST_CASE(test_progress_of_many) {
        TokenBucket one_a_minute = { .burst = 1, .per_minute = 1 };
        Bench b;

        bench_init(&b, "{}");
        bench_make_status(&b, &one_a_minute);
        for (size_t left = 60; left > 0; left--) {
                claim_status_set_blockers(b.status, left, NULL, 0);
                rig_run_for(b.rig, USEC_PER_SEC);
        }
        assert_int_equal(b.rig->n_requests, 1);
        claim_status_set_phase(b.status, "Volumes");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_says(&b, "\"phase\":\"Volumes\"");
        assert_says(&b, "\"podsLeft\":1,");
        claim_status_set_blockers(b.status, 7, NULL, 0);
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 3);
        assert_says(&b, "\"podsLeft\":7,");
        bench_done(&b);
}

/* What waits until the evictions of others are done says what is true then, once. */
TEST_CASE(test_newest_at_its_turn) {
        KubeCall *evictions[CROWD];
        Bench b;

        bench_init(&b, "{}");
        for (size_t i = 0; i < CROWD; i++)
                b.rig->answers[b.rig->next_answer + i].status = 0;
        for (size_t i = 0; i < CROWD; i++)
                assert_return_code(kube_evict(b.rig->host->client, "default", "p", "u", -1,
                                              &(KubeCallOptions){ .timeout_usec = USEC_PER_MINUTE },
                                              on_answered, NULL, &evictions[i]),
                                   0);
        claim_status_set_phase(b.status, "Draining");
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        claim_status_set_blockers(b.status, 3, NULL, 0);
        rig_run_for(b.rig, 3 * USEC_PER_SEC);
        claim_status_set_phase(b.status, "Terminating");
        rig_run_for(b.rig, 1500 * MSEC);
        claim_status_set_blockers(b.status, 2, NULL, 0);
        assert_int_equal(b.rig->n_requests, CROWD);
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(evictions[i]);
        rig_run_for(b.rig, 100 * MSEC);
        assert_int_equal(b.rig->n_requests, CROWD + 1);
        assert_says(&b, "\"phase\":\"Terminating\"");
        assert_says(&b, "\"podsLeft\":2,");
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

        bench_init(&b, "{}");
        for (size_t i = 0; i < 100; i++)
                b.rig->answers[b.rig->next_answer + i].status = 0;
        for (size_t i = 0; i < CROWD; i++)
                assert_return_code(kube_evict(b.rig->host->client, "default", "p", "u", -1,
                                              &(KubeCallOptions){ .timeout_usec = 2 * USEC_PER_MINUTE },
                                              on_answered, NULL, &evictions[i]),
                                   0);
        for (unsigned sec = 0; sec < 60; sec++) {
                _cleanup_free_ char *error = strf("CloudBusy: request %u", sec);

                claim_status_set_cloud_error(b.status, error);
                assert_return_code(kube_patch(b.rig->host->client, &other, KUBE_PATCH_MERGE, "{}", &tells,
                                              on_answered, NULL, NULL),
                                   0);
                rig_run_for(b.rig, USEC_PER_SEC);
        }
        for (size_t i = CROWD; i < b.rig->n_requests; i++)
                n += strstr(b.rig->requests[i].path, "/nodeclaims/") != NULL;
        assert_in_range(b.rig->n_requests, CROWD + 4, CROWD + 10);
        assert_int_equal(n, 1);
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(evictions[i]);
        bench_done(&b);
}

TEST_CASE(test_about_to_go) {
        Bench b;

        print_message("  what is still there after 20 seconds is told\n");
        bench_init(&b, "{}");
        claim_status_set_phase(b.status, "Finished");
        claim_status_hold(b.status);
        claim_status_set_blockers(b.status, 0, NULL, 0);
        rig_run_for(b.rig, 19900 * MSEC);
        assert_int_equal(b.rig->n_requests, 0);
        rig_run_for(b.rig, 200 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        assert_says(&b, "\"phase\":\"Finished\"");
        assert_says(&b, "\"podsLeft\":0,");
        rig_run_for(b.rig, USEC_PER_MINUTE);
        assert_int_equal(b.rig->n_requests, 1);
        bench_done(&b);

        print_message("  a call under way is dropped, and what it had to say waits along\n");
        bench_init(&b, "{}");
        b.rig->answers[b.rig->next_answer].status = 0;
        claim_status_set_phase(b.status, "Terminating");
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        claim_status_hold(b.status);
        rig_run_for(b.rig, 20100 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_says(&b, "\"phase\":\"Terminating\"");
        bench_done(&b);

        print_message("  another keeps it: at once\n");
        bench_init(&b, "{}");
        claim_status_set_phase(b.status, "Finished");
        claim_status_flush(b.status);
        rig_run_for(b.rig, 0);
        assert_int_equal(b.rig->n_requests, 1);
        bench_done(&b);
}

/* What holds it and is no pod: since it was first told, whatever else is said of it meanwhile. */
TEST_CASE(test_held) {
        Bench b;

        bench_init(&b, "{}");
        claim_status_set_held(b.status, NULL, NULL, 0); /* nothing did */
        rig_run_for(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 0);
        claim_status_set_held(b.status, "VolumesAttached", "2 volumes", RIG_START_WALL);
        claim_status_set_held(b.status, "VolumesAttached", "1 volume", RIG_START_WALL + USEC_PER_MINUTE);
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 1);
        assert_says(&b, "\"blockers\":[{\"reason\":\"VolumesAttached\",\"message\":\"1 volume\",\"since\":\"2027-01-15T08:00:00Z\"}]");
        claim_status_set_held(b.status, "VolumesAttached", "1 volume", RIG_START_WALL + USEC_PER_MINUTE);
        rig_run_for(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(b.rig->n_requests, 1);
        claim_status_set_held(b.status, NULL, NULL, 0);
        rig_run_for(b.rig, 1100 * MSEC);
        assert_int_equal(b.rig->n_requests, 2);
        assert_says(&b, "\"blockers\":[]");
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_phases),
                cmocka_unit_test(test_webhook),
                cmocka_unit_test(test_progress),
                cmocka_unit_test(test_progress_of_many),
                cmocka_unit_test(test_phase_before_progress),
                cmocka_unit_test(test_newest_at_its_turn),
                cmocka_unit_test(test_news_beside_a_crowd),
                cmocka_unit_test(test_about_to_go),
                cmocka_unit_test(test_held),
                cmocka_unit_test(test_conditions),
                cmocka_unit_test(test_failures),
                cmocka_unit_test(test_conditional),
        };
        return cmocka_run_group_tests_name("claim-status", tests, NULL, NULL);
}
