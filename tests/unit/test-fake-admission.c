/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "fake-client.h"
#include "fake-webhook.h"

#define CONFIGS "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
#define PODS "/api/v1/namespaces/default/pods"
#define NODES "/api/v1/nodes"
#define MERGE "application/merge-patch+json"
#define POD "{'metadata':{'name':'p','labels':{'app':'x'}},'spec':{'containers':[{'name':'c','image':'i'}]}}"
#define ALL_RULES "[{'operations':['*'],'apiGroups':['*'],'apiVersions':['*'],'resources':['*/*']}]"
#define CLIENT "'clientConfig':{'url':'https://hook/ask'}"
#define REST "'sideEffects':'None','admissionReviewVersions':['v1']"

typedef struct Room {
        FakeWorld w;
        HttpTransport *webhooks;
        /* What the webhook does. */
        const char *verdict; /* members of the response behind the uid */
        const char *body;    /* != NULL: this instead */
        unsigned status;
        usec_t delay_usec;
        bool hangs;
        void (*meanwhile)(struct Room *room); /* while it thinks, once */
        /* What it saw. */
        unsigned n_asked;
        cJSON *seen; /* the last AdmissionReview */
        char *query;
        HttpExchange *open;
        Timer *timer;
} Room;

static void answer(Room *room) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json" } };
        _cleanup_cjson_ cJSON *o = NULL;
        _cleanup_free_ char *text = NULL;
        HttpExchange *x = TAKE_PTR(room->open);

        x->on_gone = NULL;
        if (room->body)
                text = MUST(strdup(room->body));
        else {
                o = fj_parse("{'apiVersion':'admission.k8s.io/v1','kind':'AdmissionReview','response':"
                             "{'uid':'%s',%s}}",
                             fj_string(room->seen, "request", "uid", NULL), room->verdict);
                text = fj_print(o);
        }
        x->ops->reply(x, room->status, headers, ELEMENTSOF(headers), text, strlen(text));
}

static void on_thought(Timer *t, void *userdata) {
        Room *room = userdata;

        if (room->meanwhile)
                room->meanwhile(room);
        room->meanwhile = NULL;
        answer(room);
}

static void on_gone(HttpExchange *x, void *userdata) {
        Room *room = userdata;

        room->open = NULL;
        timer_disarm(room->timer);
}

static void webhook(HttpExchange *x, void *userdata) {
        Room *room = userdata;

        room->n_asked++;
        cJSON_Delete(room->seen);
        room->seen = MUST(cJSON_ParseWithLength(x->body, x->body_size));
        free(room->query);
        room->query = MUST(strdup(x->query));
        assert_string_equal(x->path, "/ask");
        assert_null(room->open);
        room->open = x;
        x->on_gone = on_gone;
        x->userdata = room;
        if (!room->hangs)
                timer_arm_in(room->timer, room->delay_usec);
}

static void room_init(Room *room) {
        *room = (Room){ .verdict = "'allowed':true", .status = 200 };
        fake_world_init(&room->w, &(FakeClusterOptions){ .controllers_off = FAKE_CONTROLLERS_ALL });
        assert_return_code(timer_new(room->w.loop, "webhook", on_thought, room, &room->timer), 0);
        assert_return_code(http_inproc_new(room->w.loop, NULL, NULL, &room->webhooks), 0);
        assert_return_code(http_inproc_route(room->webhooks, "https://hook", webhook, room), 0);
        assert_return_code(http_inproc_route(room->webhooks, "https://svc.ns.svc:8443", webhook, room), 0);
        fake_api_set_webhook_transport(fake_cluster_api(room->w.cluster), room->webhooks);
}

static void room_done(Room *room) {
        FakeCluster *cluster = room->w.cluster;

        fake_api_set_webhook_transport(fake_cluster_api(cluster), NULL);
        http_transport_free(room->webhooks);
        timer_free(room->timer);
        fake_world_done(&room->w);
        cJSON_Delete(room->seen);
        free(room->query);
}

static FakeAnswer ask(Room *room, HttpMethod method, const char *path, const char *body) {
        return fake_ask(&room->w, method, path, method == HTTP_PATCH ? MERGE : NULL, body);
}

static void expect(Room *room, HttpMethod method, const char *path, const char *body, unsigned status,
                   const char *part) {
        _cleanup_answer_ FakeAnswer a = ask(room, method, path, body);

        assert_int_equal(a.error, 0);
        if (a.status != status || (part && !strstr(a.body, part)))
                fail_msg("%s: expected %u '%s', seen %u %s", path, status, strempty(part), a.status, a.body);
}

/* One webhook of the configuration "c", with these rules and more members. */
static void configure(Room *room, const char *rules, const char *more) {
        _cleanup_free_ char *body =
                strf("{'metadata':{'name':'c'},'webhooks':[{'name':'a.vesper.test','rules':%s,"
                     "%s," REST "%s%s}]}",
                     rules, CLIENT, more[0] ? "," : "", more);

        expect(room, HTTP_DELETE, CONFIGS "/c", NULL,
               fake_count(room->w.cluster, FAKE_WEBHOOKS) > 0 ? 200 : 404, NULL);
        expect(room, HTTP_POST, CONFIGS, body, 201, NULL);
}

#define seen_string(room, ...) strempty(fj_string((room)->seen, "request", __VA_ARGS__, NULL))

/* -- the configuration --------------------------------------------------------------------------------- */

TEST_CASE(test_config) {
#define WEBHOOK(more) "{'metadata':{'name':'w'},'webhooks':[{" more "}]}"
#define NAMED "'name':'a.vesper.test',"
        static const struct {
                const char *what, *body;
                unsigned status;
                const char *part;
        } rows[] = {
                { "no effects said", WEBHOOK(NAMED CLIENT ",'admissionReviewVersions':['v1']"), 422,
                  "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun" },
                { "some effects",
                  WEBHOOK(NAMED CLIENT ",'sideEffects':'Some','admissionReviewVersions':['v1']"), 422,
                  "webhooks[0].sideEffects: Unsupported value: \\\"Some\\\"" },
                { "no versions", WEBHOOK(NAMED CLIENT ",'sideEffects':'None'"), 422,
                  "webhooks[0].admissionReviewVersions: Required value" },
                { "plain HTTP", WEBHOOK(NAMED "'clientConfig':{'url':'http://hook'}," REST), 422,
                  "only allowed URL scheme" },
                { "a query", WEBHOOK(NAMED "'clientConfig':{'url':'https://hook/?a'}," REST), 422,
                  "query parameters" },
                { "no way to it", WEBHOOK(NAMED "'clientConfig':{}," REST), 422,
                  "exactly one of url or service" },
                { "a short name", WEBHOOK("'name':'a'," CLIENT "," REST), 422, "at least three segments" },
                { "one name twice", WEBHOOK(NAMED CLIENT "," REST "},{" NAMED CLIENT "," REST), 422,
                  "Duplicate value" },
                { "31 seconds", WEBHOOK(NAMED CLIENT "," REST ",'timeoutSeconds':31"), 422,
                  "between 1 and 30" },
                { "no such policy", WEBHOOK(NAMED CLIENT "," REST ",'failurePolicy':'Maybe'"), 422,
                  "supported values: \\\"Fail\\\", \\\"Ignore\\\"" },
                { "no such operation",
                  WEBHOOK(NAMED CLIENT "," REST ",'rules':[{'operations':['READ'],'apiGroups':['*'],"
                                       "'apiVersions':['*'],'resources':['*']}]"),
                  422, "Unsupported value: \\\"READ\\\"" },
                { "a rule about nothing", WEBHOOK(NAMED CLIENT "," REST ",'rules':[{'operations':['*']}]"),
                  422, "webhooks[0].rules[0].resources: Required value" },
                { "CEL",
                  WEBHOOK(NAMED CLIENT "," REST ",'matchConditions':[{'name':'a','expression':'true'}]"),
                  422, "does not evaluate CEL" },
                { "what it presets", WEBHOOK(NAMED CLIENT "," REST), 201,
                  "\"failurePolicy\":\"Fail\",\"matchPolicy\":\"Equivalent\",\"namespaceSelector\":{},"
                  "\"objectSelector\":{},\"timeoutSeconds\":10" },
        };
        Room room;

        room_init(&room);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("  %s\n", rows[i].what);
                expect(&room, HTTP_POST, CONFIGS, rows[i].body, rows[i].status, rows[i].part);
        }
        expect(&room, HTTP_GET, CONFIGS "/w", NULL, 200, "\"generation\":1");
        room_done(&room);
}

/* -- whom it concerns ---------------------------------------------------------------------------------- */

TEST_CASE(test_rules) {
#define RULE(operations, groups, resources, more) \
        "[{'operations':[" operations "],'apiGroups':[" groups \
        "],'apiVersions':['v1'],'resources':[" resources "]" more "}]"
        static const struct {
                const char *what, *rules, *more;
                bool create_pod, patch_pod, pod_status, evict_pod, delete_node;
        } rows[] = {
                { "everything", ALL_RULES, "", true, true, true, true, true },
                { "objects only", RULE("'*'", "''", "'*'", ""), "", true, true, false, false, true },
                { "pods and below", RULE("'*'", "''", "'pods/*'", ""), "", true, true, true, true, false },
                { "every status", RULE("'*'", "''", "'*/status'", ""), "", false, false, true, false,
                  false },
                { "evictions", RULE("'CREATE'", "''", "'pods/eviction'", ""), "", false, false, false, true,
                  false },
                { "deletes of nodes", RULE("'DELETE'", "''", "'nodes'", ""), "", false, false, false, false,
                  true },
                { "updates", RULE("'UPDATE'", "''", "'pods','nodes'", ""), "", false, true, false, false,
                  false },
                { "another group", RULE("'*'", "'apps'", "'*'", ""), "", false, false, false, false, false },
                { "cluster scope", RULE("'*'", "''", "'*'", ",'scope':'Cluster'"), "", false, false, false,
                  false, true },
                { "namespaces", RULE("'*'", "''", "'*'", ",'scope':'Namespaced'"), "", true, true, false,
                  false, false },
                { "objects with a label", ALL_RULES, "'objectSelector':{'matchLabels':{'app':'x'}}", true,
                  true, true, false, false },
                { "objects with another", ALL_RULES, "'objectSelector':{'matchLabels':{'app':'y'}}", false,
                  false, false, false, false },
                { "namespaces with a label", ALL_RULES, "'namespaceSelector':{'matchLabels':{'env':'none'}}",
                  false, false, false, false, true },
        };
        Room room;

        room_init(&room);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const struct {
                        const char *what;
                        HttpMethod method;
                        const char *path, *body;
                        unsigned status;
                        bool asks;
                } writes[] = {
                        { "create pod", HTTP_POST, PODS, POD, 201, rows[i].create_pod },
                        { "patch pod", HTTP_PATCH, PODS "/p", "{'metadata':{'annotations':{'a':'b'}}}", 200,
                          rows[i].patch_pod },
                        { "pod status", HTTP_PATCH, PODS "/p/status", "{'status':{'phase':'Pending'}}", 200,
                          rows[i].pod_status },
                        { "evict pod", HTTP_POST, PODS "/p/eviction",
                          "{'apiVersion':'policy/v1','kind':'Eviction','metadata':{'name':'p'}}", 201,
                          rows[i].evict_pod },
                        { "delete node", HTTP_DELETE, NODES "/n", NULL, 200, rows[i].delete_node },
                        { "read", HTTP_GET, PODS, NULL, 200, false },
                        { "watch out for the configuration", HTTP_PATCH, CONFIGS "/c",
                          "{'metadata':{'labels':{'a':'b'}}}", 200, false },
                };

                print_message("  %s\n", rows[i].what);
                fake_add_node(room.w.cluster, "n", NULL, NULL, NULL);
                configure(&room, rows[i].rules, rows[i].more);
                for (size_t k = 0; k < ELEMENTSOF(writes); k++) {
                        unsigned before = room.n_asked;

                        expect(&room, writes[k].method, writes[k].path, writes[k].body, writes[k].status,
                               NULL);
                        if (room.n_asked - before != writes[k].asks)
                                fail_msg("%s: %s: asked %u times", rows[i].what, writes[k].what,
                                         room.n_asked - before);
                }
        }
        room_done(&room);
}

/* -- question and answer ------------------------------------------------------------------------------- */

TEST_CASE(test_question) {
        Room room;

        room_init(&room);
        fake_add_node(room.w.cluster, "n", NULL, NULL, NULL);
        configure(&room, ALL_RULES, "'timeoutSeconds':3");

        expect(&room, HTTP_POST, PODS "?fieldManager=me", POD, 201, NULL);
        assert_string_equal(room.query, "timeout=3s");
        assert_string_equal(seen_string(&room, "operation"), "CREATE");
        assert_string_equal(seen_string(&room, "kind", "kind"), "Pod");
        assert_string_equal(seen_string(&room, "resource", "resource"), "pods");
        assert_string_equal(seen_string(&room, "name"), "p");
        assert_string_equal(seen_string(&room, "namespace"), "default");
        assert_string_equal(seen_string(&room, "object", "kind"), "Pod");
        assert_string_equal(
                seen_string(&room, "object", "metadata", "uid"),
                fj_string(fake_get(room.w.cluster, FAKE_PODS, "default", "p"), "metadata", "uid", NULL));
        assert_string_equal(seen_string(&room, "options", "fieldManager"), "me");
        assert_true(cJSON_IsNull(fj_get(room.seen, "request", "oldObject", NULL)));
        assert_true(cJSON_IsFalse(fj_get(room.seen, "request", "dryRun", NULL)));

        expect(&room, HTTP_PATCH, NODES "/n", "{'spec':{'unschedulable':true}}", 200, NULL);
        assert_string_equal(seen_string(&room, "operation"), "UPDATE");
        assert_string_equal(seen_string(&room, "options", "kind"), "UpdateOptions");
        assert_true(fj_true(room.seen, "request", "object", "spec", "unschedulable", NULL));
        assert_false(fj_true(room.seen, "request", "oldObject", "spec", "unschedulable", NULL));
        assert_string_equal(seen_string(&room, "oldObject", "kind"), "Node");
        assert_null(fj_get(room.seen, "request", "namespace", NULL));

        expect(&room, HTTP_DELETE, NODES "/n?dryRun=All", NULL, 200, NULL);
        assert_true(fj_true(room.seen, "request", "dryRun", NULL));
        assert_non_null(fake_get(room.w.cluster, FAKE_NODES, NULL, "n"));
        expect(&room, HTTP_DELETE, NODES "/n", "{'gracePeriodSeconds':7}", 200, NULL);
        assert_string_equal(seen_string(&room, "operation"), "DELETE");
        assert_string_equal(seen_string(&room, "userInfo", "username"), "admin");
        assert_true(
                fj_array_has(fj_get(room.seen, "request", "userInfo", "groups", NULL), "system:masters"));
        assert_true(fj_array_has(fj_get(room.seen, "request", "userInfo", "groups", NULL),
                                 "system:authenticated"));
        assert_true(cJSON_IsNull(fj_get(room.seen, "request", "object", NULL)));
        assert_string_equal(seen_string(&room, "oldObject", "metadata", "name"), "n");
        assert_string_equal(seen_string(&room, "options", "kind"), "DeleteOptions");
        assert_int_equal(fj_int(room.seen, 0, "request", "options", "gracePeriodSeconds", NULL), 7);
        assert_null(fake_get(room.w.cluster, FAKE_NODES, NULL, "n"));

        expect(&room, HTTP_POST, PODS "/p/eviction",
               "{'apiVersion':'policy/v1','kind':'Eviction','metadata':{'name':'p'}}", 201, NULL);
        assert_string_equal(seen_string(&room, "kind", "kind"), "Eviction");
        assert_string_equal(seen_string(&room, "kind", "group"), "policy");
        assert_string_equal(seen_string(&room, "subResource"), "eviction");
        assert_string_equal(seen_string(&room, "object", "metadata", "name"), "p");
        assert_int_equal(room.n_asked, 5); /* the pod's delete is the eviction's */
        room_done(&room);
}

TEST_CASE(test_verdicts) {
        static const struct {
                const char *verdict;
                unsigned status;
                const char *part;
        } rows[] = {
                { "'allowed':false", 400,
                  "admission webhook \\\"a.vesper.test\\\" denied the request without explanation" },
                { "'allowed':false,'status':{'message':'no room'}", 400, "denied the request: no room" },
                { "'allowed':false,'status':{'reason':'Forbidden'}", 400, "denied the request: Forbidden" },
                { "'allowed':false,'status':{'code':403,'reason':'Forbidden','message':'no room'}", 403,
                  "\"reason\":\"Forbidden\",\"code\":403" },
                { "'allowed':false,'status':{'code':200,'status':'Success'}", 400,
                  "\"status\":\"Failure\"" },
                { "'allowed':false,'status':{'code':429,'details':{'retryAfterSeconds':5}}", 429,
                  "\"retryAfterSeconds\":5" },
                { "'status':{}", 400, "denied" },
                { "'allowed':true,'warnings':['mind the gap']", 200, NULL },
        };
        Room room;

        room_init(&room);
        fake_add_node(room.w.cluster, "n", NULL, NULL, NULL);
        configure(&room, ALL_RULES, "");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_answer_ FakeAnswer a = { 0 };

                print_message("  %s\n", rows[i].verdict);
                room.verdict = rows[i].verdict;
                a = ask(&room, HTTP_DELETE, NODES "/n", NULL);
                if (a.status != rows[i].status || (rows[i].part && !strstr(a.body, rows[i].part)))
                        fail_msg("expected %u '%s', seen %u %s", rows[i].status, strempty(rows[i].part),
                                 a.status, a.body);
                assert_int_equal(!!fake_get(room.w.cluster, FAKE_NODES, NULL, "n"), rows[i].status != 200);
                assert_int_equal(a.retry_after_sec, rows[i].status == 429 ? 5 : 0);
                if (rows[i].status == 200)
                        assert_string_equal(a.warning, "299 - \"mind the gap\"");
                else
                        assert_null(a.warning);
        }
        /* One line of the log for each, at the time when it came. */
        assert_int_equal(fake_api_count(fake_cluster_api(room.w.cluster), FAKE_DELETE, FAKE_NODES, NULL),
                         ELEMENTSOF(rows));
        room_done(&room);
}

TEST_CASE(test_failures) {
        static const struct {
                const char *what, *body;
                unsigned status;
                bool hangs, away;
                const char *part;
        } rows[] = {
                { "says 500", "oh", 500, false, false, "the server answered 500" },
                { "is no JSON", "oh", 200, false, false, "json parse error" },
                { "is no review", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 200, false, false,
                  "expected webhook response of admission.k8s.io/v1" },
                { "has no response", "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"}",
                  200, false, false, "webhook response was absent" },
                { "is about something else",
                  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":"
                  "{\"uid\":\"x\",\"allowed\":true}}",
                  200, false, false, "expected response.uid=" },
                { "does not come", NULL, 200, true, false, "context deadline exceeded" },
                { "cannot be had", NULL, 200, false, true, "connection refused" },
        };
        Room room;

        room_init(&room);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t before;

                print_message("  %s\n", rows[i].what);
                room.body = rows[i].body;
                room.status = rows[i].status;
                room.hangs = rows[i].hangs;
                assert_return_code(http_inproc_route(room.webhooks, "https://hook",
                                                     rows[i].away ? NULL : webhook, &room),
                                   0);
                fake_add_node(room.w.cluster, "n", NULL, NULL, NULL);
                configure(&room, ALL_RULES, "'timeoutSeconds':3");
                before = loop_now(room.w.loop);
                expect(&room, HTTP_DELETE, NODES "/n", NULL, 500, rows[i].part);
                assert_int_equal(loop_now(room.w.loop) - before, rows[i].hangs ? 3 * USEC_PER_SEC : 0);
                expect(&room, HTTP_DELETE, NODES "/n", NULL, 500,
                       "Internal error occurred: failed calling webhook \\\"a.vesper.test\\\": ");

                configure(&room, ALL_RULES, "'timeoutSeconds':3,'failurePolicy':'Ignore'");
                expect(&room, HTTP_DELETE, NODES "/n", NULL, 200, NULL);
        }
        fake_api_set_webhook_transport(fake_cluster_api(room.w.cluster), NULL);
        configure(&room, ALL_RULES, "");
        expect(&room, HTTP_POST, PODS, POD, 500, "no way to any webhook");
        room_done(&room);
}

TEST_CASE(test_dry_run) {
        Room room;

        room_init(&room);
        /* No API server of today takes such a configuration; one may still lie in its store. */
        fake_put(room.w.cluster, FAKE_WEBHOOKS,
                 fj_parse("{'metadata':{'name':'c'},'webhooks':[{'name':'a.vesper.test'," CLIENT
                          ",'sideEffects':'Some','rules':" ALL_RULES "}]}"));
        expect(&room, HTTP_POST, PODS "?dryRun=All", POD, 400, "does not support dry run");
        assert_int_equal(room.n_asked, 0);
        expect(&room, HTTP_POST, PODS, POD, 201, NULL);
        configure(&room, ALL_RULES, "");
        room.verdict = "'allowed':false";
        expect(&room, HTTP_PATCH, PODS "/p?dryRun=All", "{'metadata':{'labels':{'a':'b'}}}", 400, "denied");
        room_done(&room);
}

TEST_CASE(test_several) {
        Room room;

        room_init(&room);
        configure(&room, ALL_RULES, "");
        expect(&room, HTTP_POST, CONFIGS,
               "{'metadata':{'name':'b'},'webhooks':[{'name':'b.vesper.test','rules':" ALL_RULES
               ",'clientConfig':{'service':{'name':'svc','namespace':'ns','port':8443,'path':'/ask'}}," REST
               "}]}",
               201, NULL);
        /* Both at once would meet in one exchange: here one is away, in turn. */
        assert_return_code(http_inproc_route(room.webhooks, "https://hook", NULL, NULL), 0);
        expect(&room, HTTP_POST, PODS, POD, 500, "failed calling webhook \\\"a.vesper.test\\\"");
        assert_int_equal(room.n_asked, 1);
        room.verdict = "'allowed':false";
        expect(&room, HTTP_POST, PODS, POD, 400,
               "webhook \\\"b.vesper.test\\\" denied"); /* the first by name */
        assert_int_equal(room.n_asked, 2);
        room_done(&room);
}

/* -- while it waits ------------------------------------------------------------------------------------ */

static void change_node(Room *room) {
        fake_merge(room->w.cluster, FAKE_NODES, NULL, "n", "{'metadata':{'labels':{'changed':'yes'}}}");
}

static void delete_node(Room *room) {
        assert_true(fake_remove(room->w.cluster, FAKE_NODES, NULL, "n"));
}

TEST_CASE(test_changes_meanwhile) {
        Room room;

        room_init(&room);
        fake_add_node(room.w.cluster, "n", NULL, NULL, NULL);
        configure(&room, ALL_RULES, "");
        room.delay_usec = USEC_PER_SEC;
        room.meanwhile = change_node;
        expect(&room, HTTP_PATCH, NODES "/n", "{'spec':{'unschedulable':true}}", 200, "\"changed\":\"yes\"");
        assert_int_equal(room.n_asked, 2); /* the verdict was about another state */
        assert_string_equal(seen_string(&room, "oldObject", "metadata", "labels", "changed"), "yes");
        room.meanwhile = delete_node;
        expect(&room, HTTP_DELETE, NODES "/n", NULL, 404, NULL);
        assert_int_equal(room.n_asked, 3);
        room_done(&room);
}

static void on_never(const HttpResponse *response, void *userdata) {
        fail_msg("an answer to nobody");
}

/* Clients that leave, and an API server that ends, while a webhook thinks. */
TEST_CASE(test_ends_while_waiting) {
        HttpTransport *clients;
        usec_t before;
        HttpCall *call;
        HttpRequest request = {
                .method = HTTP_DELETE,
                .url = "http://fake" NODES "/n",
                .timeout_usec = USEC_PER_MINUTE,
                .max_response_bytes = 4096,
        };
        Room room;

        room_init(&room);
        fake_add_node(room.w.cluster, "n", NULL, NULL, NULL);
        configure(&room, RULE("'DELETE'", "''", "'nodes'", ""), "");
        room.hangs = true;
        assert_return_code(http_inproc_new(room.w.loop, FAKE_ADMIN, NULL, &clients), 0);
        assert_return_code(http_inproc_route(clients, "http://fake", fake_cluster_handle, room.w.cluster),
                           0);
        assert_return_code(http_call_start(clients, &request, on_never, NULL, &call), 0);
        fake_world_run(&room.w, USEC_PER_SEC);
        assert_int_equal(room.n_asked, 1);
        before = loop_now(room.w.loop);
        expect(&room, HTTP_GET, NODES "/n", NULL, 200, NULL); /* others do not wait with it */
        expect(&room, HTTP_POST, PODS, POD, 201, NULL);
        assert_int_equal(loop_now(room.w.loop), before);
        http_call_free(call);
        fake_world_run(&room.w, USEC_PER_SEC);
        assert_null(room.open); /* its question went with it */
        assert_non_null(fake_get(room.w.cluster, FAKE_NODES, NULL, "n"));

        assert_return_code(http_call_start(clients, &request, on_never, NULL, &call), 0);
        fake_world_run(&room.w, USEC_PER_SEC);
        assert_int_equal(room.n_asked, 2);
        http_call_free(call);
        http_transport_free(clients);
        room_done(&room);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_config),
                cmocka_unit_test(test_rules),
                cmocka_unit_test(test_question),
                cmocka_unit_test(test_verdicts),
                cmocka_unit_test(test_failures),
                cmocka_unit_test(test_dry_run),
                cmocka_unit_test(test_several),
                cmocka_unit_test(test_changes_meanwhile),
                cmocka_unit_test(test_ends_while_waiting),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
