/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-fault.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "fake-webhook.h"
#include "http-inproc.h"
#include "marks.h"
#include "page.h"
#include "texts.h"

#define CONFIGS "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
#define NODES "/api/v1/nodes/"
#define CLAIMS "/apis/vesper.sh/v1alpha1/nodeclaims/"

typedef struct Bench {
        CoordinatorRig *rig;
        HttpTransport *webhooks;
        unsigned n_asked;
} Bench;

/* The API server asks one replica after the other. */
static void on_review(HttpExchange *x, void *userdata) {
        Bench *b = userdata;

        coordinator_handle_webhook(x, b->rig->coordinators[b->n_asked++ % 2]->coordinator);
}

static FakeAnswer ask(Bench *b, HttpMethod method, const char *path, const char *body) {
        return fake_ask(&b->rig->w, method, path, NULL, body);
}

static void begin(Bench *b, unsigned n_nodes, const char *amount) {
        CoordinatorRig *r = coordinator_rig_new();
        _cleanup_answer_ FakeAnswer made = { 0 };

        *b = (Bench){ .rig = r };
        assert_return_code(http_inproc_new(r->w.loop, NULL, NULL, &b->webhooks), 0);
        assert_return_code(http_inproc_route(b->webhooks, "https://hook", on_review, b), 0);
        rig_begin(r, n_nodes, NULL);
        rig_start(r, 1);
        fake_put(r->cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'nodes','generation':1},'spec':{%s,'selector':{'matchLabels':{'vesper.sh/pool':'" POOL
                          "'}}}}",
                          amount));
        for (unsigned i = 0; i < n_nodes; i++) {
                _cleanup_free_ char *name = strf("stays%u", i), *node = strf("n%u", i);

                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = node, .annotations = "{'vesper.sh/do-not-evict':'true'}" });
        }
        rig_run(r, 2 * USEC_PER_SEC);
        fake_api_set_webhook_transport(r->api, b->webhooks);
        made = ask(b, HTTP_POST, CONFIGS,
                   "{'metadata':{'name':'vesper'},'webhooks':[{'name':'nodes.vesper.sh','rules':[{'operations':['DELETE'],"
                   "'apiGroups':['','vesper.sh'],'apiVersions':['*'],'resources':['nodes','nodeclaims']}],"
                   "'clientConfig':{'url':'https://hook/admission'},'sideEffects':'NoneOnDryRun','timeoutSeconds':3,"
                   "'failurePolicy':'Ignore','admissionReviewVersions':['v1']}]}");
        assert_int_equal(made.status, 201);
}

static void end(Bench *b) {
        fake_api_set_webhook_transport(b->rig->api, NULL);
        coordinator_rig_free(b->rig);
        http_transport_free(b->webhooks);
}

static void assert_delete(Bench *b, const char *path, unsigned status, const char *part) {
        _cleanup_answer_ FakeAnswer a = ask(b, HTTP_DELETE, path, NULL);

        if (a.status != status || (part && !strstr(a.body, part)))
                fail_msg("DELETE %s: expected %u '%s', seen %u %s", path, status, strempty(part), a.status, a.body);
        rig_run(b->rig, USEC_PER_SEC);
}

static int n_charges(Bench *b) {
        return cJSON_GetArraySize(fj_get(fake_get(b->rig->cluster, FAKE_NDBS, NULL, "nodes"), "status", "disruptedNodes", NULL));
}

static bool is_being_deleted(Bench *b, const char *node) {
        return fj_get(rig_node(b->rig, node), "metadata", "deletionTimestamp", NULL);
}

static bool metrics_say(Bench *b, const char *name, double value) {
        double sum = 0;

        for (size_t i = 0; i < 2; i++)
                sum += rig_metric(b->rig->coordinators[i], name);
        return sum == value;
}

TEST_CASE(test_refused) {
        Bench b;

        begin(&b, 4, "'maxUnavailable':1");
        assert_delete(&b, NODES "n0", 200, NULL);
        assert_true(is_being_deleted(&b, "n0"));
        assert_int_equal(n_charges(&b), 1);
        for (size_t i = 0; i < 3; i++) { /* by both replicas */
                assert_delete(&b, NODES "n1", 429, "NodeDisruptionBudget nodes allows no disruption of node n1 now");
                assert_false(is_being_deleted(&b, "n1"));
        }
        print_message("  with what uses it up, and without a time to try again\n");
        assert_delete(&b, NODES "n2", 429, "n0 (is being deleted since ");
        {
                _cleanup_answer_ FakeAnswer a = ask(&b, HTTP_DELETE, NODES "n2", NULL);

                assert_null(strstr(a.body, "retryAfterSeconds"));
        }
        print_message("  what is being deleted already passes, and a claim is a node, too\n");
        assert_delete(&b, NODES "n0", 200, NULL);
        {
                _cleanup_free_ char *path = strf(CLAIMS "%s", fj_string(rig_claim(b.rig, "n1"), "metadata", "name", NULL));

                assert_delete(&b, path, 429, "node n1");
                assert_true(fake_remove(b.rig->cluster, FAKE_PODS, "default", "stays0"));
                assert_true(rig_wait_gone(b.rig, "n0", 10 * USEC_PER_SEC));
                rig_run(b.rig, 2 * USEC_PER_SEC);
                assert_delete(&b, path, 200, NULL);
        }
        rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_true(is_being_deleted(&b, "n1"));
        assert_string_equal(fj_string(rig_claim(b.rig, "n1"), "status", "phase", NULL), "WaitingForProtected");
        assert_int_equal(n_charges(&b), 1 + 1); /* n0's stands for its two minutes */
        assert_true(metrics_say(&b, "vesper_coordinator_webhook_answers_total{answer=\"refused\"}", 6));
        end(&b);
}

TEST_CASE(test_passes) {
        Bench b;

        begin(&b, 4, "'maxUnavailable':0");
        print_message("  not Ready, and interrupted: counted, never refused\n");
        fake_cluster_set_kubelet(b.rig->cluster, "n0", false);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, "n0", "{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}");
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, "n1",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'a\\',\\'action\\':\\'stop\\',\\'phase\\':\\'Draining\\'}'}}}");
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, "n3",
                   "{'metadata':{'annotations':{'" ANNOTATION_INTERRUPTION
                   "':'{\\'id\\':\\'b\\',\\'action\\':\\'reboot\\',\\'phase\\':\\'Draining\\'}'}}}");
        rig_run(b.rig, USEC_PER_SEC);
        assert_delete(&b, NODES "n0", 200, NULL);
        assert_delete(&b, NODES "n1", 200, NULL);
        assert_delete(&b, NODES "n3", 429, NULL); /* it comes back from its reboot: no reason to delete it */
        assert_int_equal(n_charges(&b), 0);

        print_message("  nothing is charged by a dry run, which is answered as the real one\n");
        assert_delete(&b, NODES "n2?dryRun=All", 429, NULL);
        fake_merge(b.rig->cluster, FAKE_NDBS, NULL, "nodes", "{'metadata':{'generation':2},'spec':{'maxUnavailable':4}}");
        rig_run(b.rig, USEC_PER_SEC);
        assert_delete(&b, NODES "n2?dryRun=All", 200, NULL);
        assert_int_equal(n_charges(&b), 0);
        assert_false(is_being_deleted(&b, "n2"));

        print_message("  of no pool and no budget\n");
        fake_add_node(b.rig->cluster, "other", NULL, NULL, NULL);
        rig_run(b.rig, USEC_PER_SEC);
        assert_delete(&b, NODES "other", 200, NULL);
        assert_null(rig_node(b.rig, "other"));
        end(&b);
}

/* The machine would be left behind: adopt first. */
TEST_CASE(test_unadopted) {
        Bench b;

        begin(&b, 1, "'maxUnavailable':4");
        fake_add_node(b.rig->cluster, "early", NULL, NULL, POOL); /* without a providerID */
        rig_run(b.rig, USEC_PER_SEC);
        for (size_t i = 0; i < 2; i++)
                assert_delete(&b, NODES "early", 429, "is about to be adopted by its NodePool");
        rig_run(b.rig, USEC_PER_MINUTE);
        assert_delete(&b, NODES "early?dryRun=All", 429, NULL);
        rig_run(b.rig, USEC_PER_MINUTE);
        assert_delete(&b, NODES "early", 200, NULL);
        assert_null(rig_node(b.rig, "early"));
        print_message("  what was waited for is forgotten in time\n");
        rig_run(b.rig, 5 * USEC_PER_MINUTE);
        fake_add_node(b.rig->cluster, "next", NULL, NULL, POOL);
        rig_run(b.rig, USEC_PER_SEC);
        assert_delete(&b, NODES "next", 429, "is about to be adopted by its NodePool");
        end(&b);
}

TEST_CASE(test_two_pools) {
        Bench b;

        begin(&b, 1, "'maxUnavailable':4");
        fake_put(b.rig->cluster, FAKE_NODEPOOLS, fj_parse("{'metadata':{'name':'second'},'spec':{'selector':{'matchLabels':{'extra':'x'}}}}"));
        fake_add_node(b.rig->cluster, "twice", NULL, "i-9", POOL);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, "twice", "{'metadata':{'labels':{'extra':'x'},'finalizers':null}}");
        rig_run(b.rig, USEC_PER_SEC);
        for (size_t i = 0; i < 2; i++) /* each replica counts for itself */
                assert_delete(&b, NODES "twice", 429, "both select node twice, so neither adopts it");
        rig_run(b.rig, 121 * USEC_PER_SEC);
        assert_delete(&b, NODES "twice", 200, NULL);
        end(&b);
}

/* The ledger cannot be asked: failurePolicy lets the deletion pass, and the removal waits for its budget. */
static void refuse_status(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->verb == FAKE_PATCH && streq_ptr(request->subresource, "status") && request->resource &&
            request->resource->id == FAKE_NDBS)
                ret_fault->status = 503;
}

TEST_CASE(test_unknown) {
        Bench b;

        begin(&b, 3, "'maxUnavailable':1");
        assert_delete(&b, NODES "n0", 200, NULL);
        assert_true(fake_remove(b.rig->cluster, FAKE_PODS, "default", "stays0"));
        assert_true(rig_wait_gone(b.rig, "n0", 10 * USEC_PER_SEC));
        rig_run(b.rig, 2 * USEC_PER_SEC);
        fake_api_set_fault(b.rig->api, refuse_status, NULL);
        assert_delete(&b, NODES "n1", 200, NULL);
        assert_true(is_being_deleted(&b, "n1"));
        assert_true(metrics_say(&b, "vesper_coordinator_webhook_answers_total{answer=\"unknown\"}", 1));
        rig_run(b.rig, 10 * USEC_PER_SEC);
        assert_string_not_equal(strempty(fj_string(rig_claim(b.rig, "n1"), "status", "phase", NULL)), "WaitingForProtected");
        fake_api_set_fault(b.rig->api, NULL, NULL);
        rig_run(b.rig, 10 * USEC_PER_SEC);
        assert_string_equal(fj_string(rig_claim(b.rig, "n1"), "status", "phase", NULL), "WaitingForProtected");
        end(&b);
}

typedef struct Reviewed {
        unsigned status;
        char *body;
} Reviewed;

static void on_reviewed(const HttpResponse *response, void *userdata) {
        Reviewed *r = userdata;

        r->status = response->status;
        r->body = MUST(strndup(response->body, response->body_size));
}

/* Somebody sends the webhook an AdmissionReview of a Node: metadata of oldObject, with ' for ". */
static void assert_review(Bench *b, const char *user, const char *metadata, unsigned status,
                          const char *part) {
        Reviewed r = { 0 };
        _cleanup_cjson_ cJSON *review = fj_parse(
                "{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','request':{'uid':'u','operation':'DELETE','resource':"
                "{'group':'','version':'v1','resource':'nodes'},'userInfo':{'username':'%s'},'oldObject':{'metadata':{%s,"
                "'labels':{'vesper.sh/pool':'" POOL
                "'}},'status':{'conditions':[{'type':'Ready','status':'True'}]}}}}",
                user, metadata);
        _cleanup_free_ char *body = fj_print(review);

        assert_return_code(http_call_start(b->webhooks,
                                           &(HttpRequest) { .method = HTTP_POST,
                                                            .url = "https://hook/admission",
                                                            .body = body,
                                                            .body_size = strlen(body),
                                                            .timeout_usec = 3 * USEC_PER_SEC,
                                                            .max_response_bytes = 1u << 16 },
                                           on_reviewed, &r, NULL),
                           0);
        rig_run(b->rig, USEC_PER_SEC);
        print_message("  %s %s: %u %s\n", user, metadata, r.status, strempty(r.body));
        assert_int_equal(r.status, status);
        assert_non_null(strstr(r.body, part));
        free(r.body);
}

/* Number of lines with that text that the coordinators have logged. */
static unsigned n_logged(Bench *b, const char *part) {
        unsigned n = 0;

        for (size_t i = 0; i < 2; i++)
                n += text_count(strbuf_str(&b->rig->coordinators[i]->said), part);
        return n;
}

/* A replica with an old view refuses deletions of newer Nodes: the log and a metric say so. */
TEST_CASE(test_unseen_is_reported) {
        Bench b;

        begin(&b, 1, "'maxUnavailable':1");
        for (unsigned i = 0; i < 8; i++)
                assert_review(&b, "me\\u001b]0;t", "'name':'new','uid':'y','resourceVersion':'99999999999'", 200, "\"code\":503");
        assert_int_equal(n_logged(&b, "Refused me?]0;t the deletion of Node new with HTTP 503"), 2); /* by both replicas */
        assert_int_equal(n_logged(&b, "and the Node in the review has '99999999999'"), 2);
        rig_run(b.rig, USEC_PER_MINUTE);
        for (unsigned i = 0; i < 2; i++)
                assert_review(&b, "me", "'name':'new','uid':'y','resourceVersion':'99999999999'", 200, "\"code\":503");
        assert_int_equal(n_logged(&b, "since the last such line: 4."), 2);
        assert_true(metrics_say(&b, "vesper_coordinator_webhook_answers_total{answer=\"unseen\"}", 10));
        end(&b);
}

/* Made-up Nodes are not charged, and honest deletions go on. */
TEST_CASE(test_made_up) {
        _cleanup_free_ char *long_uid = strf("'name':'x','uid':'%065d','resourceVersion':'1'", 0),
                            *most = strf("'name':'x','uid':'%064d','resourceVersion':'1'", 0),
                            *newer = strf(
                                    "'name':'x','uid':'%064d','resourceVersion':'18446744073709551615'", 0),
                            *other_uid = NULL, *true_uid = NULL;
        Bench b;

        begin(&b, 3, "'maxUnavailable':1");
        other_uid = strf("'name':'n0','uid':'other','resourceVersion':'1'");
        true_uid = strf("'name':'n1','uid':'%s'", fj_string(rig_node(b.rig, "n1"), "metadata", "uid", NULL));
        for (unsigned i = 0; i < 2; i++) { /* by both replicas */
                assert_review(&b, "me", long_uid, 400,
                              "request.oldObject.metadata.uid is longer than 64 bytes");
                assert_review(&b, "me", most, 200, "\"allowed\":true");
                assert_review(&b, "me", newer, 200, "\"code\":503,\"reason\":\"ServiceUnavailable\"");
                assert_review(&b, "me", "'name':'x','uid':'y'", 200, "vesper has not seen Node x yet");
                assert_review(&b, "me", "'name':'x','uid':'y','resourceVersion':'a'", 200, "\"code\":503");
                assert_review(&b, "me", other_uid, 200, "\"allowed\":true");
        }
        /* The same replica was asked both times, within a minute. */
        assert_int_equal(n_logged(&b, "The webhook refused requests from an unknown address: 1 without an AdmissionReview"), 1);
        assert_int_equal(n_charges(&b), 0);
        assert_true(metrics_say(&b, "vesper_coordinator_webhook_answers_total{answer=\"unseen\"}", 6));
        assert_delete(&b, NODES "n0", 200, NULL);
        assert_int_equal(n_charges(&b), 1);

        print_message(
                "  of a Node that is there its own labels decide, and whoever deletes is named in bounds\n");
        fake_merge(b.rig->cluster, FAKE_NDBS, NULL, "nodes",
                   "{'metadata':{'generation':2},'spec':{'maxUnavailable':3}}");
        rig_run(b.rig, USEC_PER_SEC);
        {
                _cleanup_free_ char *user = strf("%0300d\\u0007\xc3\xa4", 0);

                assert_review(&b, user, true_uid, 200, "\"allowed\":true");
        }
        assert_int_equal(n_charges(&b), 2);
        assert_in_range(strlen(fj_string(fj_find(fj_get(fake_get(b.rig->cluster, FAKE_NDBS, NULL, "nodes"),
                                                        "status", "disruptedNodes", NULL),
                                                 "name", "n1"),
                                         "holder", NULL)),
                        200, NODE_CHARGE_HOLDER_BYTES_MAX);
        end(&b);
}

/* The coordinator's own deletions pass, and those of others who call themselves so do not. */
TEST_CASE(test_own_account) {
        _cleanup_free_ char *n1 = NULL;
        Bench b;

        begin(&b, 2, "'maxUnavailable':0");
        n1 = strf("'name':'n1','uid':'%s'", fj_string(rig_node(b.rig, "n1"), "metadata", "uid", NULL));
        assert_review(&b, "system:serviceaccount:vesper-system:vesper-coordinator", n1, 200,
                      "\"allowed\":true");
        assert_review(&b, "system:serviceaccount:elsewhere:vesper-coordinator", n1, 200,
                      "\"allowed\":false");
        assert_review(&b, "system:serviceaccount:a:b:vesper-coordinator", n1, 200, "\"allowed\":false");
        end(&b);
}

TEST_CASE(test_pages) {
        Bench b;
        void *c;

        begin(&b, 1, "'maxUnavailable':1");
        c = b.rig->coordinators[0]->coordinator;
        {
                _cleanup_page_ Page other = page_ask(coordinator_handle_webhook, c, HTTP_POST, "/metrics");
                _cleanup_page_ Page get = page_ask(coordinator_handle_webhook, c, HTTP_GET, "/admission");
                _cleanup_page_ Page empty = page_ask(coordinator_handle_webhook, c, HTTP_POST, "/admission");

                assert_int_equal(other.status, 404);
                assert_int_equal(get.status, 405);
                assert_int_equal(empty.status, 400);
        }
        end(&b);

        print_message("  who asks has to say who it is, where that is asked for\n");
        b = (Bench){ .rig = coordinator_rig_new() };
        b.rig->settings[0] = strf("Webhook.ClientCAFile=/ca");
        rig_begin(b.rig, 1, NULL);
        {
                _cleanup_page_ Page p = page_ask(coordinator_handle_webhook, b.rig->coordinators[0]->coordinator, HTTP_POST, "/admission");

                assert_int_equal(p.status, 401);
        }
        free(b.rig->settings[0]);
        b.rig->settings[0] = NULL;
        coordinator_rig_free(b.rig);
}

/* -- memory ------------------------------------------------------------------------------------- */

typedef struct Review {
        HttpExchange x;
        unsigned n_replies, status;
} Review;

static void on_reply(HttpExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers, const void *body,
                     size_t body_size) {
        Review *r = CONTAINER_OF(x, Review, x);

        r->n_replies++;
        r->status = status;
}

static double n_answers(Bench *b) {
        return rig_metric(b->rig->coordinators[0], "vesper_coordinator_webhook_answers_total");
}

/* Each allocation fails once while a review is handled. The API server gets one answer, and the metrics count
 * one: without memory the status is not 200, so the failurePolicy decides. */
TEST_CASE(test_out_of_memory) {
        static const char *const objects[] = { "n0", "unseen" };
        static const HttpExchangeOps ops = { .reply = on_reply };

        for (size_t k = 0; k < ELEMENTSOF(objects); k++) {
                _cleanup_free_ char *object = NULL, *body = NULL;
                unsigned n_other = 0;
                bool fired = true;
                Bench b;

                print_message("  %s\n", objects[k]);
                begin(&b, 4, "'maxUnavailable':1");
                object = MUST(k == 0 ? cJSON_PrintUnformatted(rig_node(b.rig, "n0"))
                                : strdup("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"unseen\",\"uid\":\"u9\","
                                         "\"resourceVersion\":\"99999999\"}}"));
                body = MUST(strf("{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"r\","
                                 "\"operation\":\"DELETE\",\"dryRun\":true,\"resource\":{\"group\":\"\",\"version\":\"v1\","
                                 "\"resource\":\"nodes\"},\"name\":\"%s\",\"userInfo\":{\"username\":\"person\"},\"oldObject\":%s}}",
                                 objects[k], object));
                for (size_t i = 1; fired; i++) {
                        Review r = { .x = { .ops = &ops, .method = HTTP_POST, .path = "/admission", .query = "", .body = body,
                                            .body_size = strlen(body) } };
                        double n_before = n_answers(&b);

                        alloc_fault_arm(i);
                        coordinator_handle_webhook(&r.x, b.rig->coordinators[0]->coordinator);
                        fired = alloc_fault_fired();
                        alloc_fault_disarm();
                        rig_run(b.rig, 3 * USEC_PER_SEC);
                        assert_int_equal(r.n_replies, 1);
                        assert_true(n_answers(&b) == n_before + 1);
                        assert_true(r.status == 200 || (fired && (r.status == 500 || r.status == 503)));
                        n_other += r.status != 200;
                }
                assert_true(n_other > 10);
                end(&b);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_refused),     cmocka_unit_test(test_passes),
                cmocka_unit_test(test_unadopted),   cmocka_unit_test(test_two_pools),
                cmocka_unit_test(test_unknown),     cmocka_unit_test(test_made_up),
                cmocka_unit_test(test_unseen_is_reported),
                cmocka_unit_test(test_own_account), cmocka_unit_test(test_pages),
        };
        return cmocka_run_group_tests_name("node-webhook", tests, NULL, NULL);
}
