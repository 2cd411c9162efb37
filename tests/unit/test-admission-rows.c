/* SPDX-License-Identifier: Apache-2.0 */
#include "admission-rows.h"
#include "budget-ledger.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "http-inproc.h"
#include "node-webhook.h"
#include "refusal-rows.h"

/*
 * The tables of the webhook's rules, asked through the webhook of a coordinator: each row is sent as the API
 * server sends it, and the decision is read from the answer, the metrics, the log and the charge in the
 * budget.
 */

typedef struct Bench {
        CoordinatorRig *rig;
        HttpTransport *transport;
        unsigned status;
        char *body;  /* body of the last answer */
        size_t said; /* size of the log before the last request */
} Bench;

static void begin(Bench *b, const char *amount) {
        CoordinatorRig *r = coordinator_rig_new();

        *b = (Bench){ .rig = r };
        for (size_t i = 0; admission_configured[i]; i++)
                r->settings[i] = MUST(strf("Webhook.Exempt=%s", admission_configured[i]));
        assert_return_code(http_inproc_new(r->w.loop, NULL, NULL, &b->transport), 0);
        rig_begin(r, 2, NULL);
        assert_return_code(http_inproc_route(b->transport, "https://hook", coordinator_handle_webhook,
                                             r->coordinators[0]->coordinator),
                           0);
        fake_put(
                r->cluster, FAKE_NDBS,
                fj_parse(
                        "{'metadata':{'name':'nodes','generation':1},'spec':{%s,'selector':{'matchLabels':{'vesper.sh/pool':'" POOL
                        "'}}}}",
                        amount));
        rig_run(r, 2 * USEC_PER_SEC);
}

static void end(Bench *b) {
        for (size_t i = 0; i < ELEMENTSOF(b->rig->settings); i++)
                b->rig->settings[i] = mfree(b->rig->settings[i]);
        http_transport_free(b->transport);
        coordinator_rig_free(b->rig);
        free(b->body);
}

static void on_answer(const HttpResponse *response, void *userdata) {
        Bench *b = userdata;

        assert_int_equal(b->status, 0); /* one answer */
        b->status = response->status;
        b->body = MUST(strndup(response->body, response->body_size));
}

static void ask(Bench *b, const char *body) {
        b->status = 0;
        b->body = mfree(b->body);
        b->said = b->rig->coordinators[0]->said.size;
        assert_return_code(http_call_start(b->transport,
                                           &(HttpRequest){ .method = HTTP_POST,
                                                           .url = "https://hook/admission",
                                                           .body = body,
                                                           .body_size = strlen(body),
                                                           .timeout_usec = 3 * USEC_PER_SEC,
                                                           .max_response_bytes = 1u << 16 },
                                           on_answer, b, NULL),
                           0);
        for (unsigned i = 0; b->status == 0; i++) {
                assert_true(i < 4);
                rig_run(b->rig, USEC_PER_SEC);
        }
}

static unsigned n_answers(Bench *b, const char *answer) {
        _cleanup_free_ char *family =
                strf("vesper_coordinator_webhook_answers_total%s%s%s", answer ? "{answer=\"" : "",
                     strempty(answer), answer ? "\"}" : "");

        return (unsigned) rig_metric(b->rig->coordinators[0], family);
}

static int n_charges(Bench *b) {
        return cJSON_GetArraySize(fj_get(fake_get(b->rig->cluster, FAKE_NDBS, NULL, "nodes"), "status",
                                         "disruptedNodes", NULL));
}

/* Returns the log of the coordinator since the last request. */
static const char *logged(Bench *b) {
        return strbuf_str(&b->rig->coordinators[0]->said) + b->said;
}

static char *with_quotes(const char *s) {
        char *text = MUST(strdup(s));

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return text;
}

/* Sends the review to the webhook. Takes the text. */
static char *replaced(char *text, const char *from, const char *to) {
        const char *at = strstr(text, from);
        char *made;

        if (!at)
                return text;
        made = MUST(strf("%.*s%s%s", (int) (at - text), text, to, at + strlen(from)));
        free(text);
        return made;
}

/* Returns the row's review with the Node n1 of the world, or its NodeClaim, as the object. */
static char *body_about_n1(Bench *b, const char *row) {
        const cJSON *claim = rig_claim(b->rig, "n1");
        char *text = with_quotes(row);

        text = replaced(text, "node-uid", fj_string(rig_node(b->rig, "n1"), "metadata", "uid", NULL));
        text = replaced(text, "\"c1\"", "\"CLAIM\"");
        text = replaced(text, "CLAIM", fj_string(claim, "metadata", "name", NULL));
        text = replaced(text, "\"uid\":\"claim-uid\"",
                        "\"uid\":\"UID\"},\"spec\":{\"nodePool\":\"" POOL
                        "\"},\"status\":{\"nodeName\":\"n1\"");
        return replaced(text, "UID", fj_string(claim, "metadata", "uid", NULL));
}

/* Only a request about a Node or NodeClaim takes a charge, and is refused while the budget has no room. */
TEST_CASE(test_requests) {
        static const char *const amounts[] = { "'maxUnavailable':1", "'maxUnavailable':0" };

        for (size_t i = 0; i < 2 * ELEMENTSOF(admission_requests); i++) {
                const struct AdmissionRequestRow *r = admission_requests + i / 2;
                bool counts = r->subject != ADMISSION_OTHER, room = i % 2 == 0;
                _cleanup_free_ char *body = NULL;
                Bench b;

                print_message("  %s, %s\n", r->what, amounts[i % 2]);
                begin(&b, amounts[i % 2]);
                body = body_about_n1(&b, r->body);
                for (unsigned round = 1; round <= 2; round++) {
                        _cleanup_cjson_ cJSON *answer = NULL;

                        ask(&b, body);
                        assert_int_equal(b.status, 200);
                        answer = MUST(cJSON_Parse(b.body));
                        assert_string_equal(fj_string(answer, "response", "uid", NULL), "u");
                        assert_int_equal(fj_true(answer, "response", "allowed", NULL), room || !counts);
                        assert_int_equal(fj_int(answer, 0, "response", "status", "code", NULL),
                                         room || !counts ? 0 : 429);
                        assert_int_equal(n_charges(&b), room && counts && !r->dry_run);
                        assert_int_equal(n_answers(&b, !counts ? "exempt"
                                                       : room  ? "allowed"
                                                               : "refused"),
                                         round);
                        assert_int_equal(n_answers(&b, NULL), round);
                        assert_int_equal(strstr(logged(&b), "Refused ") != NULL, counts && !room);
                }
                end(&b);
        }
}

/* An exempt user is not asked for a charge. Any other user is refused, and named in the log. */
TEST_CASE(test_users) {
        unsigned n_exempt = 0, n_refused = 0;
        Bench b;

        begin(&b, "'maxUnavailable':0");
        for (size_t i = 0; i < ELEMENTSOF(admission_users); i++) {
                const struct AdmissionUserRow *u = admission_users + i;
                bool passes = u->if_configured || streq(u->username, ADMISSION_OURS);
                _cleanup_free_ char *text = body_about_n1(&b, admission_requests[0].body), *body = NULL;
                _cleanup_cjson_ cJSON *review = MUST(cJSON_Parse(text)), *answer = NULL;
                _cleanup_free_ char *line = MUST(strf(
                        "Refused %s the deletion of Node n1: NodeDisruptionBudget nodes allows no disruption of node n1",
                        isempty(u->username) ? "nobody" : u->username));

                print_message("  '%s'\n", u->username);
                fj_set_string(fj_object(fj_object(review, "request"), "userInfo"), "username", u->username);
                body = fj_print(review);
                ask(&b, body);
                assert_int_equal(b.status, 200);
                answer = MUST(cJSON_Parse(b.body));
                n_exempt += passes;
                n_refused += !passes;
                assert_int_equal(fj_true(answer, "response", "allowed", NULL), passes);
                assert_int_equal(n_answers(&b, "exempt"), n_exempt);
                assert_int_equal(n_answers(&b, "refused"), n_refused);
                assert_int_equal(strstr(logged(&b), line) != NULL, !passes);
        }
        end(&b);
}

/* An unreadable review gets HTTP 400 with the reason. The log counts such reviews by address. */
TEST_CASE(test_unreadable) {
        Bench b;

        begin(&b, "'maxUnavailable':1");
        for (size_t i = 0; i < ELEMENTSOF(admission_unreadable); i++) {
                _cleanup_free_ char *body = with_quotes(admission_unreadable[i].body);

                ask(&b, body);
                assert_int_equal(b.status, 400);
                if (!strstr(b.body, admission_unreadable[i].message))
                        fail_msg("%s: no '%s' in %s", body, admission_unreadable[i].message, b.body);
                assert_int_equal(n_answers(&b, "unreadable"), i + 1);
                assert_int_equal(n_answers(&b, NULL), i + 1);
                assert_int_equal(
                        strstr(logged(&b),
                               "The webhook refused requests from an unknown address: 1 without an AdmissionReview") !=
                                NULL,
                        i == 0);
        }
        assert_int_equal(n_charges(&b), 0);
        rig_run(b.rig, USEC_PER_MINUTE);
        ask(&b, "");
        {
                _cleanup_free_ char *count =
                        MUST(strf("unknown address: %zu without an AdmissionReview (HTTP 400)",
                                  ELEMENTSOF(admission_unreadable)));

                assert_non_null(strstr(logged(&b), count));
        }
        end(&b);
}

/* -- other answers of the API server -------------------------------------------------------------------- */

typedef struct Fault {
        unsigned times;
        FakeApiFault fault;
} Fault;

static void on_status(const FakeRequest *r, FakeApiFault *ret_fault, void *userdata) {
        Fault *f = userdata;

        if (r->verb == FAKE_PATCH && streq_ptr(r->subresource, "status") && r->resource &&
            r->resource->id == FAKE_NDBS && f->times > 0) {
                f->times--;
                *ret_fault = f->fault;
        }
}

/* For each answer of the API server to the charge the deletion is admitted, or failurePolicy decides. The
 * next deletion is admitted. */
TEST_CASE(test_answers) {
        static const struct {
                const char *what;
                Fault fault;
                unsigned status;
        } rows[] = {
                { "409 twice", { 2, { .status = 409 } }, 200 },
                { "422", { 1, { .status = 422 } }, 503 },
                { "a lost answer", { 1, { .drop = true, .takes_effect = true } }, 200 },
                { "404", { 1000, { .status = 404 } }, 503 },
                { "429", { 1000, { .status = 429, .retry_after_sec = 7 } }, 503 },
                { "500", { 1000, { .status = 500 } }, 503 },
                { "503", { 1000, { .status = 503 } }, 503 },
                { "no answer", { 1000, { .delay_usec = USEC_PER_HOUR } }, 503 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Fault fault = rows[i].fault;
                _cleanup_free_ char *body = NULL;
                Bench b;

                print_message("  %s\n", rows[i].what);
                begin(&b, "'maxUnavailable':1");
                body = body_about_n1(&b, admission_requests[0].body);
                fake_api_set_fault(b.rig->api, on_status, &fault);
                ask(&b, body);
                rig_run(b.rig, 4 * USEC_PER_SEC);
                assert_int_equal(b.status, rows[i].status);
                assert_int_equal(n_answers(&b, rows[i].status == 200 ? "allowed" : "unknown"), 1);
                assert_int_equal(strstr(logged(&b), "is left to the webhook's failurePolicy") != NULL,
                                 rows[i].status == 503);
                fake_api_set_fault(b.rig->api, NULL, NULL);
                rig_run(b.rig, 10 * USEC_PER_SEC);
                ask(&b, body);
                assert_int_equal(b.status, 200);
                assert_int_equal(n_answers(&b, NULL), 2);
                assert_int_equal(n_charges(&b), 1);
                end(&b);
        }
}

/* The API server closes the connection before the charge is written. The charge stays, and no answer is
 * sent. */
TEST_CASE(test_withdrawn) {
        Fault slow = { 1, { .delay_usec = USEC_PER_SEC } };
        _cleanup_free_ char *body = NULL;
        HttpCall *call = NULL;
        Bench b;

        begin(&b, "'maxUnavailable':1");
        body = body_about_n1(&b, admission_requests[0].body);
        fake_api_set_fault(b.rig->api, on_status, &slow);
        assert_return_code(http_call_start(b.transport,
                                           &(HttpRequest){ .method = HTTP_POST,
                                                           .url = "https://hook/admission",
                                                           .body = body,
                                                           .body_size = strlen(body),
                                                           .timeout_usec = 3 * USEC_PER_SEC,
                                                           .max_response_bytes = 1u << 16 },
                                           on_answer, &b, &call),
                           0);
        rig_run(b.rig, 200 * USEC_PER_MSEC);
        http_call_free(call);
        rig_run(b.rig, 3 * USEC_PER_SEC);
        assert_int_equal(b.status, 0);
        assert_int_equal(n_answers(&b, NULL), 0);
        assert_int_equal(n_charges(&b), 1);
        print_message("  asked again\n");
        ask(&b, body);
        assert_int_equal(b.status, 200);
        assert_int_equal(n_charges(&b), 1);
        fake_api_set_fault(b.rig->api, NULL, NULL);
        end(&b);
}

/* -- the log of refusals -------------------------------------------------------------------------------- */

static void on_ignored(const char *name, void *userdata) {
}

static void on_ignored_pod(const char *node, const KubePod *old, const KubePod *new, void *userdata) {
}

static void on_ignored_pdb(const KubePdb *old, const KubePdb *new, void *userdata) {
}

static void on_ignored_sync(void *userdata) {
}

static bool is_of_listener(Refusal why) {
        return why < (Refusal) _HTTP_REFUSAL_MAX;
}

/* Causes one refusal, by the listener or by a request. */
static void refuse(NodeWebhook *w, const struct RefusalRow *r) {
        HttpExchange x = { .path = "/admission", .method = HTTP_POST, .client_address = r->address };
        const char *text;

        if (is_of_listener(r->why)) {
                node_webhook_count_refusal((HttpRefusal) r->why, r->address, w);
                return;
        }
        if (r->why == REFUSAL_PATH)
                x.path = "/metrics";
        assert_int_equal(node_webhook_check_headers(&x, w, &text), r->why == REFUSAL_PATH ? 404 : 401);
}

TEST_CASE(test_refusals) {
        static const ClusterViewHandler none = { .on_node_dirty = on_ignored,
                                                 .on_pool_dirty = on_ignored,
                                                 .on_claim_dirty = on_ignored,
                                                 .on_pod = on_ignored_pod,
                                                 .on_pdb = on_ignored_pdb,
                                                 .on_synced = on_ignored_sync };
        CoordinatorRig *rig = coordinator_rig_new();
        uint64_t n[_HTTP_REFUSAL_MAX] = { 0 };
        BudgetLedger *ledger;
        ClusterView *view;
        NodeWebhook *w;
        usec_t since;

        rig_make(rig, 0);
        assert_return_code(cluster_view_new(rig->coordinators[0]->client, "v", &none, &view), 0);
        assert_return_code(budget_ledger_new(rig->coordinators[0]->client, view, &ledger), 0);
        assert_return_code(node_webhook_new(rig->coordinators[0]->client, view, ledger, "v", NULL, true, &w),
                           0);
        since = loop_now(rig->w.loop);
        for (size_t i = 0; i < ELEMENTSOF(refusal_rows); i++) {
                const struct RefusalRow *r = refusal_rows + i;

                print_message("  %s\n", r->what);
                rig_run(rig, since + r->at_sec * USEC_PER_SEC - loop_now(rig->w.loop));
                if (r->why == REFUSAL_REVIEW) /* test_unreadable() sends these */
                        continue;
                for (unsigned k = 1; k <= r->n; k++) {
                        size_t before = rig->coordinators[0]->said.size;
                        const char *said;

                        refuse(w, r);
                        said = strbuf_str(&rig->coordinators[0]->said) + before;
                        if (k == r->n && r->line)
                                assert_non_null(strstr(said, r->line));
                        else
                                assert_string_equal(said, "");
                }
                if (is_of_listener(r->why))
                        n[r->why] += r->n;
                assert_memory_equal(node_webhook_refusals(w), n, sizeof(n));
        }
        assert_int_equal(node_webhook_answers(w)[WEBHOOK_UNREADABLE], 501); /* those without a certificate */
        node_webhook_free(w);
        budget_ledger_free(ledger);
        cluster_view_free(view);
        coordinator_rig_free(rig);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_requests),   cmocka_unit_test(test_users),
                cmocka_unit_test(test_unreadable), cmocka_unit_test(test_answers),
                cmocka_unit_test(test_withdrawn),  cmocka_unit_test(test_refusals),
        };

        return cmocka_run_group_tests_name("admission-rows", tests, NULL, NULL);
}
