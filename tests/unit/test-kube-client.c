/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-test.h"
#include "fake-child.h"
#include "kube-kinds.h"
#include "kube-rig.h"

#define START RIG_START_WALL
#define SEC USEC_PER_SEC

/* One client and a server that answers as `serve` says; both write down what they see. */
typedef struct World {
        VirtualTime *time;
        RigHost *host;
        HttpFault fault;
        void (*serve)(struct World *w, HttpExchange *x);
        unsigned n_requests;
        StrBuf seen; /* by the server: METHOD path?query [content type] body */
        StrBuf told; /* to the caller */
        KubeCall *call;
        bool free_in_done, free_in_event;
        int event_result;
        HttpExchange *open;
        usec_t done_usec;
        const char *status_body; /* for serve_status() */
        unsigned status;
        size_t cut; /* where a stream is cut in two */
} World;

static void serve_ok(World *w, HttpExchange *x) {
        x->ops->reply(x, 200, NULL, 0, "{\"kind\":\"Reply\"}", 16);
}

static void serve_status(World *w, HttpExchange *x) {
        x->ops->reply(x, w->status, NULL, 0, w->status_body, strlen(w->status_body));
}

static void on_gone(HttpExchange *x, void *userdata) {
        World *w = userdata;

        w->open = NULL;
        strbuf_add(&w->told, "gone ");
}

static void serve_open(World *w, HttpExchange *x) {
        w->open = x;
        x->on_gone = on_gone;
        x->userdata = w;
}

static void serve_stream(World *w, HttpExchange *x) {
        serve_open(w, x);
        x->ops->stream_begin(x, 200, NULL, 0);
}

/* The connection dies in the first answer; the second one is whole. */
static void serve_dying(World *w, HttpExchange *x) {
        if (w->n_requests > 1) {
                serve_ok(w, x);
                return;
        }
        x->ops->stream_begin(x, 200, NULL, 0);
        x->ops->stream_end(x, false);
}

static void serve_always_dying(World *w, HttpExchange *x) {
        x->ops->stream_begin(x, 200, NULL, 0);
        x->ops->stream_end(x, false);
}

/* Whoever bears the token "new" is let in. */
static void serve_guarded(World *w, HttpExchange *x) {
        const char *a = http_header_find(x->headers, x->n_headers, "Authorization");

        strbuf_addf(&w->seen, "(%s) ", strempty(a));
        if (streq_ptr(a, "Bearer new"))
                serve_ok(w, x);
        else
                x->ops->reply(x, 401, NULL, 0, "Unauthorized", 12);
}

static void handler(HttpExchange *x, void *userdata) {
        World *w = userdata;
        const char *type = http_header_find(x->headers, x->n_headers, "Content-Type");

        w->n_requests++;
        strbuf_addf(&w->seen, "%s %s", http_method_to_string(x->method), x->path);
        if (*x->query)
                strbuf_addf(&w->seen, "?%s", x->query);
        if (type)
                strbuf_addf(&w->seen, " [%s]", type);
        if (x->body_size > 0)
                strbuf_addf(&w->seen, " %.*s", (int) x->body_size, (const char *) x->body);
        strbuf_add_char(&w->seen, ' ');
        assert_string_equal(http_header_find(x->headers, x->n_headers, "User-Agent"), "test/0");
        assert_string_equal(http_header_find(x->headers, x->n_headers, "Accept"), "application/json");
        w->serve(w, x);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        World *w = userdata;

        *ret_fault = w->fault;
}

static void on_done(const KubeReply *reply, void *userdata) {
        World *w = userdata;

        w->done_usec = virtual_time_now(w->time);
        if (w->free_in_done)
                w->call = kube_call_free(w->call);
        if (reply->error)
                strbuf_addf(&w->told, "error %u %s%s%s: %s ", reply->error->http,
                            reply->error->error < 0 ? strerrorname_np(-reply->error->error) : "",
                            reply->error->maybe_sent ? "?" : "", strempty(reply->error->reason),
                            reply->error->message);
        else
                strbuf_addf(&w->told, "%u %s %s ", reply->status,
                            reply->object ? strempty(json_string_or_null(json_get(reply->object, "kind")))
                                          : "raw",
                            reply->body);
        assert_int_equal(strlen(reply->body), reply->body_size);
        assert_true(reply->finished_usec >= reply->started_usec);
}

static int on_event(const char *type, const Json *object, void *userdata) {
        World *w = userdata;

        strbuf_addf(&w->told, "%s:%s ", type,
                    json_string_or_null(json_path(object, "metadata", "name", NULL)));
        if (w->free_in_event)
                w->call = kube_call_free(w->call);
        return w->event_result;
}

static World *world_new(void) {
        World *w = new0(World, 1);
        HttpInprocHooks hooks = { .on_request = on_request, .userdata = w };

        assert_non_null(w);
        w->serve = serve_ok;
        assert_return_code(virtual_time_new(START, &w->time), 0);
        w->host = rig_host_new(w->time, 1, &hooks, handler, w);
        return w;
}

static World *world_free(World *w) {
        kube_call_free(w->call);
        rig_host_free(w->host);
        virtual_time_free(w->time);
        strbuf_done(&w->seen);
        strbuf_done(&w->told);
        return mfree(w);
}
DEFINE_FREEP(World, world_free);

static void run_for(World *w, usec_t usec) {
        rig_run_until(w->time, virtual_time_now(w->time) + usec);
}

static const KubeTarget node = { .kind = &kube_node_kind, .name = "n1" };
static const KubeTarget nodes = { .kind = &kube_node_kind };
static const KubeTarget pod = { .kind = &kube_pod_kind, .ns = "shop", .name = "web" };
static const KubeTarget pods = { .kind = &kube_pod_kind };
static const KubeTarget shop_pods = { .kind = &kube_pod_kind, .ns = "shop" };
static const KubeTarget claim_status = { .kind = &kube_node_claim_kind,
                                         .name = "c1",
                                         .subresource = "status" };
static const KubeTarget lease = { .kind = &kube_lease_kind, .ns = "kube-system", .name = "l" };
static const KubeTarget leases = { .kind = &kube_lease_kind, .ns = "kube-system" };
static const KubeTarget strange = { .kind = &kube_pod_kind, .ns = "a b", .name = "x/y?z%" };

/* -- what goes over the wire ---------------------------------------------------------------------------- */

static int do_get(World *w) {
        return kube_get(w->host->client, &node, NULL, on_done, w, &w->call);
}

static int do_get_strange(World *w) {
        return kube_get(w->host->client, &strange, NULL, on_done, w, &w->call);
}

static int do_get_status(World *w) {
        return kube_get(w->host->client, &claim_status, NULL, on_done, w, &w->call);
}

static int do_list(World *w) {
        return kube_list(w->host->client, &nodes, NULL, NULL, on_done, w, &w->call);
}

static int do_list_namespaced(World *w) {
        return kube_list(w->host->client, &shop_pods, NULL, NULL, on_done, w, &w->call);
}

static int do_list_page(World *w) {
        const KubeListOptions l = {
                .label_selector = "app=web,tier in (a,b)",
                .field_selector = "spec.nodeName=n1",
                .limit = 500,
                .continue_token = "a+b/c=",
                .resource_version = "0",
                .resource_version_match = "NotOlderThan",
        };

        return kube_list(w->host->client, &pods, &l, NULL, on_done, w, &w->call);
}

static int do_patch_merge(World *w) {
        return kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{\"spec\":{}}", NULL, on_done, w,
                          &w->call);
}

static int do_patch_strategic(World *w) {
        return kube_patch(w->host->client, &node, KUBE_PATCH_STRATEGIC, "{}", NULL, on_done, w, &w->call);
}

static int do_patch_json_status(World *w) {
        return kube_patch(w->host->client, &claim_status, KUBE_PATCH_JSON, "[]", NULL, on_done, w, &w->call);
}

static int do_create(World *w) {
        return kube_create(w->host->client, &leases, "{\"a\":1}", NULL, on_done, w, &w->call);
}

static int do_update(World *w) {
        return kube_update(w->host->client, &lease, "{\"a\":1}", NULL, on_done, w, &w->call);
}

static int do_delete(World *w) {
        return kube_delete(w->host->client, &pod, NULL, NULL, on_done, w, &w->call);
}

static int do_delete_precise(World *w) {
        const KubeDeleteOptions d = {
                .uid = "u1",
                .resource_version = "7",
                .grace_sec = 0,
                .propagation = "Background",
                .dry_run = true,
        };

        return kube_delete(w->host->client, &pod, &d, NULL, on_done, w, &w->call);
}

static int do_evict(World *w) {
        return kube_evict(w->host->client, "shop", "web", "u1", -1, NULL, on_done, w, &w->call);
}

static int do_evict_clipped(World *w) {
        return kube_evict(w->host->client, "shop", "web", "u1", 12, NULL, on_done, w, &w->call);
}

static int do_evict_dry(World *w) {
        const KubeCallOptions o = { .lane = HTTP_LANE_BULK, .dry_run = true };

        return kube_evict(w->host->client, "shop", "web", "u1", -1, &o, on_done, w, &w->call);
}

static int do_patch_dry(World *w) {
        const KubeTarget t = { .kind = &kube_node_kind, .name = "n1" };
        const KubeCallOptions o = { .dry_run = true };

        return kube_patch(w->host->client, &t, KUBE_PATCH_MERGE, "{}", &o, on_done, w, &w->call);
}

TEST_CASE(test_verbs) {
        static const struct {
                const char *what;
                int (*call)(World *w);
                KubeVerb verb;
                const char *seen;
        } rows[] = {
                { "get", do_get, KUBE_VERB_GET, "GET /api/v1/nodes/n1 " },
                { "what is no letter is encoded", do_get_strange, KUBE_VERB_GET,
                  "GET /api/v1/namespaces/a%20b/pods/x%2Fy%3Fz%25 " },
                { "get of a subresource", do_get_status, KUBE_VERB_GET,
                  "GET /apis/vesper.sh/v1alpha1/nodeclaims/c1/status " },
                { "list", do_list, KUBE_VERB_LIST, "GET /api/v1/nodes " },
                { "list of one namespace", do_list_namespaced, KUBE_VERB_LIST,
                  "GET /api/v1/namespaces/shop/pods " },
                { "list of one page of all namespaces", do_list_page, KUBE_VERB_LIST,
                  "GET "
                  "/api/v1/"
                  "pods?limit=500&continue=a%2Bb%2Fc%3D&resourceVersion=0&resourceVersionMatch=NotOlderThan"
                  "&labelSelector=app%3Dweb%2Ctier%20in%20%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn1 " },
                { "merge patch", do_patch_merge, KUBE_VERB_PATCH,
                  "PATCH /api/v1/nodes/n1?fieldManager=test [application/merge-patch+json] {\"spec\":{}} " },
                { "strategic patch", do_patch_strategic, KUBE_VERB_PATCH,
                  "PATCH /api/v1/nodes/n1?fieldManager=test [application/strategic-merge-patch+json] {} " },
                { "JSON patch of a status", do_patch_json_status, KUBE_VERB_PATCH,
                  "PATCH /apis/vesper.sh/v1alpha1/nodeclaims/c1/status?fieldManager=test "
                  "[application/json-patch+json] [] " },
                { "create", do_create, KUBE_VERB_CREATE,
                  "POST /apis/coordination.k8s.io/v1/namespaces/kube-system/leases?fieldManager=test "
                  "[application/json] {\"a\":1} " },
                { "update", do_update, KUBE_VERB_UPDATE,
                  "PUT /apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l?fieldManager=test "
                  "[application/json] {\"a\":1} " },
                { "delete", do_delete, KUBE_VERB_DELETE,
                  "DELETE /api/v1/namespaces/shop/pods/web [application/json] "
                  "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"} " },
                { "delete with preconditions", do_delete_precise, KUBE_VERB_DELETE,
                  "DELETE /api/v1/namespaces/shop/pods/web [application/json] "
                  "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
                  "\"gracePeriodSeconds\":0,\"preconditions\":{\"uid\":\"u1\",\"resourceVersion\":\"7\"},"
                  "\"propagationPolicy\":\"Background\",\"dryRun\":[\"All\"]} " },
                { "evict", do_evict, KUBE_VERB_EVICT,
                  "POST /api/v1/namespaces/shop/pods/web/eviction [application/json] "
                  "{\"apiVersion\":\"policy/v1\","
                  "\"kind\":\"Eviction\",\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},"
                  "\"deleteOptions\":{\"preconditions\":{\"uid\":\"u1\"}}} " },
                { "evict with less grace", do_evict_clipped, KUBE_VERB_EVICT,
                  "POST /api/v1/namespaces/shop/pods/web/eviction [application/json] "
                  "{\"apiVersion\":\"policy/v1\","
                  "\"kind\":\"Eviction\",\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},"
                  "\"deleteOptions\":{\"gracePeriodSeconds\":12,\"preconditions\":{\"uid\":\"u1\"}}} " },
                { "evict to see", do_evict_dry, KUBE_VERB_EVICT,
                  "POST /api/v1/namespaces/shop/pods/web/eviction?dryRun=All [application/json] "
                  "{\"apiVersion\":\"policy/v1\","
                  "\"kind\":\"Eviction\",\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},"
                  "\"deleteOptions\":{\"preconditions\":{\"uid\":\"u1\"}}} " },
                { "patch to see", do_patch_dry, KUBE_VERB_PATCH,
                  "PATCH /api/v1/nodes/n1?fieldManager=test&dryRun=All [application/merge-patch+json] {} " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                assert_return_code(rows[i].call(w), 0);
                assert_string_equal(strbuf_str(&w->told), ""); /* never inside the call */
                run_for(w, SEC);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_string_equal(strbuf_str(&w->told), rows[i].verb == KUBE_VERB_LIST
                                                                  ? "200 raw {\"kind\":\"Reply\"} "
                                                                  : "200 Reply {\"kind\":\"Reply\"} ");
                for (KubeVerb v = 0; v < _KUBE_VERB_MAX; v++)
                        assert_int_equal(kube_client_requests(w->host->client, v), v == rows[i].verb);
        }
}

static int refuse_get_without_name(World *w) {
        return kube_get(w->host->client, &nodes, NULL, on_done, w, &w->call);
}

static int refuse_name_without_namespace(World *w) {
        const KubeTarget t = { .kind = &kube_pod_kind, .name = "p" };

        return kube_get(w->host->client, &t, NULL, on_done, w, &w->call);
}

static int refuse_climbing_name(World *w) {
        const KubeTarget t = { .kind = &kube_node_kind, .name = ".." };

        return kube_get(w->host->client, &t, NULL, on_done, w, &w->call);
}

static int refuse_list_with_name(World *w) {
        return kube_list(w->host->client, &node, NULL, NULL, on_done, w, &w->call);
}

static int refuse_create_without_namespace(World *w) {
        return kube_create(w->host->client, &pods, "{}", NULL, on_done, w, &w->call);
}

static int refuse_evict_without_uid(World *w) {
        return kube_evict(w->host->client, "shop", "web", "", -1, NULL, on_done, w, &w->call);
}

TEST_CASE(test_refused_at_once) {
        static const struct {
                const char *what;
                int (*call)(World *w);
        } rows[] = {
                { "get without a name", refuse_get_without_name },
                { "a pod without a namespace", refuse_name_without_namespace },
                { "a name that climbs", refuse_climbing_name },
                { "list with a name", refuse_list_with_name },
                { "create of a pod without a namespace", refuse_create_without_namespace },
                { "evict without a uid", refuse_evict_without_uid },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                assert_int_equal(rows[i].call(w), -EINVAL);
                assert_null(w->call);
                run_for(w, SEC);
                assert_int_equal(w->n_requests, 0);
        }
}

/* -- what comes back ------------------------------------------------------------------------------------ */

TEST_CASE(test_answers) {
        static const struct {
                const char *what;
                unsigned status;
                const char *body, *told;
        } rows[] = {
                { "an object", 200, "{\"kind\":\"Node\"}", "200 Node {\"kind\":\"Node\"} " },
                { "created", 201, "{\"kind\":\"Node\"}", "201 Node {\"kind\":\"Node\"} " },
                { "nothing", 204, "", "204 raw  " },
                { "a Status", 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"changed\"}",
                  "error 409 Conflict: changed " },
                { "text", 500, "etcd is away\n", "error 500 : etcd is away " },
                { "a redirect is not followed", 302, "", "error 302 : HTTP status 302 without a message " },
                { "the first of the redirects", 300, "", "error 300 : HTTP status 300 without a message " },
                { "success, but no JSON", 200, "<html>", "error 0 EBADMSG?: the answer is no JSON: " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                w->serve = serve_status;
                w->status = rows[i].status;
                w->status_body = rows[i].body;
                assert_return_code(do_get(w), 0);
                run_for(w, SEC);
                assert_memory_equal(strbuf_str(&w->told), rows[i].told, strlen(rows[i].told));
                assert_int_equal(w->n_requests, 1);
        }
}

TEST_CASE(test_timeout) {
        static const struct {
                const char *what;
                int (*call)(World *w);
                usec_t after_usec, limit_usec;
        } rows[] = {
                { "get", do_get, 10 * SEC, 0 },
                { "patch", do_patch_merge, 10 * SEC, 0 },
                { "evict", do_evict, 30 * SEC, 0 },
                { "get, limited", do_get, 2 * SEC, 2 * SEC },
                { "evict, limited to more", do_evict, 50 * SEC, 50 * SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                usec_t start = virtual_time_now(w->time);

                print_message("%s\n", rows[i].what);
                w->serve = serve_open;
                kube_client_limit(w->host->client, rows[i].limit_usec);
                assert_return_code(rows[i].call(w), 0);
                run_for(w, USEC_PER_MINUTE);
                assert_non_null(strstr(strbuf_str(&w->told), "error 0 ETIMEDOUT?"));
                assert_int_equal(w->done_usec - start, rows[i].after_usec);
        }
}

TEST_CASE(test_dead_connection) {
        static const struct {
                const char *what;
                int (*call)(World *w);
                unsigned n_requests;
                const char *told;
        } rows[] = {
                { "get: once more", do_get, 2, "200 Reply" },
                { "list: once more", do_list, 2, "200 raw" },
                { "a patch may have taken effect", do_patch_merge, 1, "error 0 ECONNRESET?" },
                { "so may a create", do_create, 1, "error 0 ECONNRESET?" },
                { "and an eviction", do_evict, 1, "error 0 ECONNRESET?" },
                { "and a delete", do_delete, 1, "error 0 ECONNRESET?" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                w->serve = serve_dying;
                assert_return_code(rows[i].call(w), 0);
                run_for(w, SEC);
                assert_int_equal(w->n_requests, rows[i].n_requests);
                assert_memory_equal(strbuf_str(&w->told), rows[i].told, strlen(rows[i].told));
        }
}

TEST_CASE(test_dead_connection_only_once) {
        _cleanup_(world_freep) World *w = world_new();

        w->serve = serve_always_dying;
        assert_return_code(do_get(w), 0);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, 2);
        assert_memory_equal(strbuf_str(&w->told), "error 0 ECONNRESET", 18);
}

TEST_CASE(test_refused_connection_is_not_repeated) {
        _cleanup_(world_freep) World *w = world_new();

        w->fault.refuse = true;
        assert_return_code(do_get(w), 0);
        run_for(w, SEC);
        assert_memory_equal(strbuf_str(&w->told), "error 0 ECONNREFUSED:", 21);
        assert_int_equal(kube_client_requests(w->host->client, KUBE_VERB_GET), 1);
}

TEST_CASE(test_dropped) {
        _cleanup_(world_freep) World *w = world_new();

        w->serve = serve_open;
        assert_return_code(do_get(w), 0);
        run_for(w, SEC);
        assert_non_null(w->open);
        w->call = kube_call_free(w->call);
        run_for(w, USEC_PER_MINUTE);
        assert_string_equal(strbuf_str(&w->told), "gone ");
        assert_null(kube_call_free(NULL));
}

TEST_CASE(test_freed_inside) {
        _cleanup_(world_freep) World *w = world_new();

        w->free_in_done = true;
        assert_return_code(do_get(w), 0);
        run_for(w, SEC);
        assert_string_equal(strbuf_str(&w->told), "200 Reply {\"kind\":\"Reply\"} ");
        assert_null(w->call);
}

TEST_CASE(test_fire_and_forget) {
        _cleanup_(world_freep) World *w = world_new();

        assert_return_code(
                kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{}", NULL, on_done, w, NULL), 0);
        assert_return_code(
                kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{}", NULL, NULL, NULL, NULL), 0);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, 2);
        assert_string_equal(strbuf_str(&w->told), "200 Reply {\"kind\":\"Reply\"} ");

        /* Still under way when the client goes. */
        assert_return_code(
                kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{}", NULL, on_done, w, NULL), 0);
}

static bool may_not_send(void *userdata) {
        return false;
}

TEST_CASE(test_guard) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeCallOptions o = { .guard = { may_not_send, NULL } };

        assert_return_code(
                kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{}", &o, on_done, w, &w->call), 0);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, 0);
        assert_memory_equal(strbuf_str(&w->told), "error 0 ESTALE:", 15);
}

/* -- giving way to evictions ---------------------------------------------------------------------------- */

#define CROWD 16
#define PATIENCE_LEFT (9 * SEC) /* after evict_crowd() */

static void evict_crowd(World *w, KubeCall **calls) {
        w->serve = serve_open;
        for (size_t i = 0; i < CROWD; i++)
                assert_return_code(
                        kube_evict(w->host->client, "shop", "web", "u1", -1, NULL, NULL, NULL, calls + i),
                        0);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, CROWD);
}

static void patch_in(World *w, KubeRank rank, KubeCall **ret) {
        const KubeCallOptions o = { .lane = HTTP_LANE_BULK, .timeout_usec = 10 * SEC, .rank = rank };

        assert_return_code(
                kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{}", &o, on_done, w, ret), 0);
}

static void tell(World *w, KubeCall **ret) {
        patch_in(w, KUBE_RANK_TELLS, ret);
}

TEST_CASE(test_yields) {
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *evictions[CROWD], *dropped, *second;

        evict_crowd(w, evictions);
        tell(w, NULL);
        tell(w, &dropped);
        tell(w, &second);
        tell(w, NULL);
        assert_return_code(do_patch_merge(w), 0); /* does not yield */
        run_for(w, PATIENCE_LEFT - 1);
        assert_int_equal(w->n_requests, CROWD + 1);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, CROWD + 2);
        kube_call_free(dropped);

        /* The first runs into its time-out 10 s after it left, the next one 10 s after that: waiting did not
         * count. */
        run_for(w, 10 * SEC);
        assert_int_equal(w->n_requests, CROWD + 3);
        w->call = kube_call_free(w->call);
        run_for(w, 8 * SEC);
        assert_int_equal(w->n_requests, CROWD + 3);

        /* One eviction fewer, and all others leave at once; new ones need not wait at all. */
        w->serve = serve_ok;
        evictions[0] = kube_call_free(evictions[0]);
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 4);
        tell(w, NULL);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, CROWD + 5);

        kube_call_free(second);
        for (size_t i = 1; i < CROWD; i++)
                kube_call_free(evictions[i]);
}

/* Its limit begins when it leaves, and is whole then. */
TEST_CASE(test_waiting_is_not_counted) {
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *evictions[CROWD];
        usec_t left;

        evict_crowd(w, evictions);
        tell(w, &w->call);
        run_for(w, PATIENCE_LEFT);
        assert_int_equal(w->n_requests, CROWD + 1);
        left = virtual_time_now(w->time);
        run_for(w, USEC_PER_MINUTE);
        assert_non_null(strstr(strbuf_str(&w->told), "error 0 ETIMEDOUT"));
        assert_int_equal(w->done_usec - left, 10 * SEC);
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(evictions[i]);
}

static char *newer_body(void *userdata) {
        return strdup("{\"newer\":true}");
}

/* What it says is what is true when it leaves; where it never waited nothing is asked twice. */
TEST_CASE(test_body_of_its_turn) {
        const KubeCallOptions o = { .lane = HTTP_LANE_BULK, .rank = KUBE_RANK_TELLS, .body_now = newer_body };

        for (int waits = 0; waits <= 1; waits++) {
                _cleanup_(world_freep) World *w = world_new();
                KubeCall *evictions[CROWD] = { 0 };

                if (waits)
                        evict_crowd(w, evictions);
                strbuf_truncate(&w->seen, 0);
                assert_return_code(kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, "{\"older\":true}", &o,
                                              on_done, w, &w->call),
                                   0);
                for (size_t i = 0; i < CROWD; i++)
                        kube_call_free(evictions[i]);
                run_for(w, SEC);
                assert_int_equal(w->n_requests, waits ? CROWD + 1 : 1);
                assert_non_null(strstr(strbuf_str(&w->seen), waits ? "newer" : "older"));
        }
}

/* Reads of the first rank are nothing that the API server has to write. */
TEST_CASE(test_reads_are_no_crowd) {
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *reads[CROWD];

        w->serve = serve_open;
        for (size_t i = 0; i < CROWD; i++)
                assert_return_code(kube_get(w->host->client, &node, NULL, on_done, w, reads + i), 0);
        tell(w, &w->call);
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 1);
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(reads[i]);
}

static void tell_of(World *w, const char *body, KubeCall **ret) {
        const KubeCallOptions o = { .lane = HTTP_LANE_BULK, .rank = KUBE_RANK_TELLS };

        assert_return_code(kube_patch(w->host->client, &node, KUBE_PATCH_MERGE, body, &o, on_done, w, ret), 0);
}

/* Who comes when the crowd is just over goes behind those who waited for that. */
TEST_CASE(test_nobody_overtakes) {
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *evictions[CROWD], *first, *second;

        evict_crowd(w, evictions);
        tell_of(w, "{\"who\":\"first\"}", &first);
        strbuf_truncate(&w->seen, 0);
        evictions[0] = kube_call_free(evictions[0]);
        tell_of(w, "{\"who\":\"second\"}", &second);
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 2);
        assert_true(strstr(strbuf_str(&w->seen), "first") < strstr(strbuf_str(&w->seen), "second"));
        kube_call_free(first);
        kube_call_free(second);
        for (size_t i = 1; i < CROWD; i++)
                kube_call_free(evictions[i]);
}

/* What ends nodes waits for no crowd, and counts as under way, as evictions do; what tells has its one place. */
TEST_CASE(test_each_rank_has_its_place) {
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *evictions[CROWD], *follows[3], *tells[3];

        evict_crowd(w, evictions);
        for (size_t i = 0; i < 3; i++) {
                tell(w, tells + i);
                patch_in(w, KUBE_RANK_FOLLOWS, follows + i);
        }
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 3);
        assert_int_equal(kube_client_under_way(w->host->client), CROWD + 3);
        run_for(w, PATIENCE_LEFT - 1);
        assert_int_equal(w->n_requests, CROWD + 3);
        run_for(w, 1);
        assert_int_equal(w->n_requests, CROWD + 4);
        assert_int_equal(kube_client_under_way(w->host->client), CROWD + 3);

        /* Whose place it was, of that rank goes the next. */
        tells[0] = kube_call_free(tells[0]);
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 5);

        /* Of both ranks together 16 are a crowd; when it is over, nothing waits. */
        for (size_t i = 0; i < 3; i++)
                kube_call_free(evictions[i]);
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 5);
        follows[0] = kube_call_free(follows[0]);
        run_for(w, 0);
        assert_int_equal(w->n_requests, CROWD + 6);
        for (size_t i = 3; i < CROWD; i++)
                kube_call_free(evictions[i]);
        for (size_t i = 1; i < 3; i++) {
                kube_call_free(follows[i]);
                kube_call_free(tells[i]);
        }
}

/* 32 of a rank together; as many that follow, waiting ones too, are a crowd for what tells. */
TEST_CASE(test_many_that_follow) {
        enum { N = 40, TOGETHER = 32 };
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *follows[N], *tells[2];

        w->serve = serve_open;
        for (size_t i = 0; i < N; i++)
                patch_in(w, KUBE_RANK_FOLLOWS, follows + i);
        for (size_t i = 0; i < 2; i++)
                tell(w, tells + i);
        run_for(w, SEC);
        assert_int_equal(w->n_requests, TOGETHER);
        run_for(w, PATIENCE_LEFT);
        assert_int_equal(w->n_requests, TOGETHER + 1);
        for (size_t i = 0; i < N - CROWD; i++)
                kube_call_free(follows[i]);
        run_for(w, 0);
        assert_int_equal(w->n_requests, N + 1);
        kube_call_free(follows[N - CROWD]);
        run_for(w, 0);
        assert_int_equal(w->n_requests, N + 2);

        for (size_t i = N - CROWD + 1; i < N; i++)
                kube_call_free(follows[i]);
        for (size_t i = 0; i < 2; i++)
                kube_call_free(tells[i]);
}

TEST_CASE(test_yields_until_the_end) {
        _cleanup_(world_freep) World *w = world_new();
        KubeCall *evictions[CROWD];

        evict_crowd(w, evictions);
        for (size_t i = 0; i < 3; i++)
                tell(w, NULL);
        run_for(w, PATIENCE_LEFT);
        assert_int_equal(w->n_requests, CROWD + 1);
        for (size_t i = 0; i < CROWD; i++)
                kube_call_free(evictions[i]);
        /* The client goes before the others had their turn. */
}

/* -- watch ---------------------------------------------------------------------------------------------- */

#define EVENT(type, name) "{\"type\":\"" type "\",\"object\":{\"metadata\":{\"name\":\"" name "\"}}}\n"

static void start_watch(World *w) {
        const KubeWatchOptions o = {
                .label_selector = "a=b",
                .field_selector = "spec.nodeName=n1",
                .resource_version = "77",
                .timeout_sec = 480,
                .stall_usec = 90 * SEC,
        };

        w->serve = serve_stream;
        assert_return_code(kube_watch(w->host->client, &pods, &o, on_event, on_done, w, &w->call), 0);
        run_for(w, SEC);
        assert_non_null(w->open);
}

static void say(World *w, const char *data, size_t size) {
        assert_non_null(w->open);
        w->open->ops->stream_data(w->open, data, size);
        run_for(w, SEC);
}

TEST_CASE(test_watch) {
        _cleanup_(world_freep) World *w = world_new();

        start_watch(w);
        assert_string_equal(
                strbuf_str(&w->seen),
                "GET /api/v1/pods?watch=true&allowWatchBookmarks=true&resourceVersion=77&timeoutSeconds=480"
                "&labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dn1 ");
        assert_string_equal(strbuf_str(&w->told), "");
        say(w, EVENT("ADDED", "a") "\r\n\n" EVENT("BOOKMARK", "b"),
            strlen(EVENT("ADDED", "a") "\r\n\n" EVENT("BOOKMARK", "b")));
        assert_string_equal(strbuf_str(&w->told), "ADDED:a BOOKMARK:b ");
        w->open->ops->stream_end(w->open, true);
        w->open = NULL;
        run_for(w, SEC);
        assert_string_equal(strbuf_str(&w->told), "ADDED:a BOOKMARK:b 200 raw  ");
}

/* However the network cuts it. */
TEST_CASE(test_watch_any_pieces) {
        static const char text[] = EVENT("ADDED", "a") EVENT("MODIFIED", "\xc3\xa4") EVENT("DELETED", "c");

        for (size_t cut = 0; cut <= strlen(text); cut++) {
                _cleanup_(world_freep) World *w = world_new();

                start_watch(w);
                if (cut > 0)
                        say(w, text, cut);
                if (cut < strlen(text))
                        say(w, text + cut, strlen(text) - cut);
                assert_string_equal(strbuf_str(&w->told), "ADDED:a MODIFIED:\xc3\xa4 DELETED:c ");
        }

        _cleanup_(world_freep) World *w = world_new();
        start_watch(w);
        for (size_t i = 0; i < strlen(text); i++)
                say(w, text + i, 1);
        assert_string_equal(strbuf_str(&w->told), "ADDED:a MODIFIED:\xc3\xa4 DELETED:c ");
}

TEST_CASE(test_watch_ends) {
        static const struct {
                const char *what, *line, *told;
        } rows[] = {
                { "no JSON", "hello\n", "error 0 EBADMSG" },
                { "no object", "{\"type\":\"ADDED\"}\n", "error 0 EBADMSG" },
                { "no type", "{\"object\":{}}\n", "error 0 EBADMSG" },
                { "an object that is a text", "{\"type\":\"ADDED\",\"object\":\"a\"}\n", "error 0 EBADMSG" },
                { "two values", "{\"type\":\"ADDED\",\"object\":{}} {}\n", "error 0 EBADMSG" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                start_watch(w);
                say(w, rows[i].line, strlen(rows[i].line));
                assert_non_null(strstr(strbuf_str(&w->told), rows[i].told));
                assert_null(w->open);
        }
}

TEST_CASE(test_watch_long_lines) {
        const size_t max = 8u * 1024 * 1024, frame = strlen("{\"type\":\"ADDED\",\"object\":{\"x\":\"\"}}");
        static const struct {
                const char *what;
                int more;
                size_t piece;
                bool taken;
        } rows[] = {
                { "the longest line, whole", 0, SIZE_MAX, true },
                { "the longest line, in pieces", 0, 1000001, true },
                { "a byte longer, whole", 1, SIZE_MAX, false },
                { "a byte longer, in pieces", 1, 1000001, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                size_t size = max + (size_t) rows[i].more, room = size - frame;
                _cleanup_free_ char *line = NULL, *filler = malloc(room + 1);

                print_message("%s\n", rows[i].what);
                assert_non_null(filler);
                memset(filler, 'x', room);
                filler[room] = 0;
                line = strf("{\"type\":\"ADDED\",\"object\":{\"x\":\"%s\"}}\n", filler);
                assert_int_equal(strlen(line), size + 1);

                start_watch(w);
                for (size_t at = 0; at < size + 1 && w->open; at += MIN(rows[i].piece, size + 1 - at))
                        say(w, line + at, MIN(rows[i].piece, size + 1 - at));
                assert_int_equal(strstr(strbuf_str(&w->told), "ADDED:") != NULL, rows[i].taken);
                assert_int_equal(strstr(strbuf_str(&w->told), "EMSGSIZE") != NULL, !rows[i].taken);
        }
}

TEST_CASE(test_watch_stalls) {
        _cleanup_(world_freep) World *w = world_new();
        usec_t start;

        kube_client_limit(w->host->client, SEC); /* none of a watch's */
        start_watch(w);
        run_for(w, 60 * SEC);
        say(w, EVENT("BOOKMARK", "b"), strlen(EVENT("BOOKMARK", "b")));
        start = virtual_time_now(w->time);
        run_for(w, 80 * SEC);
        assert_string_equal(strbuf_str(&w->told), "BOOKMARK:b ");
        run_for(w, 80 * SEC);
        assert_non_null(strstr(strbuf_str(&w->told), "error 0 ETIMEDOUT"));
        assert_in_range(w->done_usec - start, 88 * SEC, 90 * SEC);
}

TEST_CASE(test_watch_is_not_answered) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeWatchOptions o = { .resource_version = "1" };
        usec_t start = virtual_time_now(w->time);

        w->serve = serve_open;
        assert_return_code(kube_watch(w->host->client, &pods, &o, on_event, on_done, w, &w->call), 0);
        run_for(w, 60 * SEC);
        assert_non_null(strstr(strbuf_str(&w->told), "error 0 ETIMEDOUT"));
        assert_in_range(w->done_usec - start, 19 * SEC, 20 * SEC);
}

TEST_CASE(test_watch_refused) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeWatchOptions o = { .resource_version = "1" };

        w->serve = serve_status;
        w->status = 410;
        w->status_body =
                "{\"kind\":\"Status\",\"reason\":\"Expired\",\"message\":\"too old resource version\"}";
        assert_return_code(kube_watch(w->host->client, &pods, &o, on_event, on_done, w, &w->call), 0);
        run_for(w, SEC);
        assert_string_equal(strbuf_str(&w->told), "error 410 Expired: too old resource version ");
        assert_int_equal(kube_client_requests(w->host->client, KUBE_VERB_WATCH), 1);
}

TEST_CASE(test_watch_consumer_ends_it) {
        _cleanup_(world_freep) World *w = world_new();

        start_watch(w);
        w->event_result = -EUCLEAN;
        say(w, EVENT("ADDED", "a") EVENT("ADDED", "b"), strlen(EVENT("ADDED", "a") EVENT("ADDED", "b")));
        assert_memory_equal(strbuf_str(&w->told), "ADDED:a ", 8);
        assert_non_null(strstr(strbuf_str(&w->told), "error 0 EUCLEAN"));
        assert_null(strstr(strbuf_str(&w->told), "ADDED:b"));
}

TEST_CASE(test_watch_freed_inside) {
        _cleanup_(world_freep) World *w = world_new();

        start_watch(w);
        w->free_in_event = true;
        say(w, EVENT("ADDED", "a") EVENT("ADDED", "b"), strlen(EVENT("ADDED", "a") EVENT("ADDED", "b")));
        run_for(w, USEC_PER_MINUTE);
        assert_string_equal(strbuf_str(&w->told), "ADDED:a gone ");
        assert_int_equal(http_inproc_pending(w->host->transport), 0);
}

/* -- warm connections ----------------------------------------------------------------------------------- */

TEST_CASE(test_keep_warm) {
        _cleanup_(world_freep) World *w = world_new();

        assert_int_equal(kube_client_keep_warm(w->host->client, HTTP_LANE_URGENT, 0), -EINVAL);
        assert_return_code(kube_client_keep_warm(w->host->client, HTTP_LANE_URGENT, 20 * SEC), 0);
        run_for(w, SEC);
        assert_string_equal(strbuf_str(&w->seen), "GET /version ");
        run_for(w, 20 * SEC);
        assert_int_equal(w->n_requests, 2);

        /* A call of its own keeps the lane warm too; one on another lane does not. */
        run_for(w, 15 * SEC);
        assert_return_code(do_get(w), 0);
        run_for(w, 15 * SEC);
        w->call = kube_call_free(w->call);
        assert_int_equal(w->n_requests, 3);
        assert_return_code(do_evict(w), 0);
        run_for(w, 6 * SEC);
        assert_int_equal(w->n_requests, 5);
}

/* -- credentials ---------------------------------------------------------------------------------------- */

#define CREDENTIAL(token) \
        "{\"apiVersion\":\"client.authentication.k8s.io/" \
        "v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"" token "\"}}"

/* The same server, by a plugin's credential. */
typedef struct Identity {
        FakeChildren *children;
        KubeAuth *auth;
        KubeClient *client, *plain;
        World *w;
} Identity;

static Identity *identity_new(World *w, const FakeChildAnswer *answers, size_t n) {
        const KubeConfig config = {
                .server = (char *) RIG_SERVER,
                .exec_command = (char *) "login",
                .exec_api_version = (char *) "client.authentication.k8s.io/v1",
        };
        Identity *i = new0(Identity, 1);

        assert_non_null(i);
        i->w = w;
        i->children = fake_children_new(w->host->loop);
        for (size_t k = 0; k < n; k++)
                fake_children_answer(i->children, answers[k]);
        assert_return_code(kube_auth_new(w->host->loop, NULL, &i->children->runner, &config, NULL, NULL,
                                         &i->auth, NULL),
                           0);
        assert_return_code(kube_client_new(&w->host->env, i->auth, RIG_SERVER "/", "test", &i->client), 0);
        i->plain = w->host->client;
        w->host->client = i->client;
        w->serve = serve_guarded;
        return i;
}

static Identity *identity_free(Identity *i) {
        i->w->call = kube_call_free(i->w->call);
        i->w->host->client = i->plain;
        kube_client_free(i->client);
        kube_auth_free(i->auth);
        fake_children_free(i->children);
        return mfree(i);
}
DEFINE_FREEP(Identity, identity_free);

TEST_CASE(test_held_until_credential) {
        _cleanup_(world_freep) World *w = world_new();
        static const FakeChildAnswer answers[] = { { .after_usec = 3 * SEC, .output = CREDENTIAL("new") } };
        _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, answers, 1);
        usec_t start = virtual_time_now(w->time);

        assert_return_code(do_get(w), 0);
        run_for(w, 2 * SEC);
        assert_int_equal(w->n_requests, 0);
        assert_int_equal(kube_client_requests(w->host->client, KUBE_VERB_GET), 0);
        run_for(w, 2 * SEC);
        assert_string_equal(strbuf_str(&w->seen), "GET /api/v1/nodes/n1 (Bearer new) ");
        assert_memory_equal(strbuf_str(&w->told), "200 Reply", 9);
        assert_int_equal(w->done_usec - start, 3 * SEC);
}

TEST_CASE(test_held_in_vain) {
        _cleanup_(world_freep) World *w = world_new();
        static const FakeChildAnswer answers[] = { { .exit_status = 255, .errors = "starting\nno role\n" } };
        _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, answers, 1);
        usec_t start = virtual_time_now(w->time);

        assert_return_code(do_get(w), 0);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_requests, 0);
        assert_int_equal(w->done_usec - start, 10 * SEC);
        assert_string_equal(strbuf_str(&w->told), "error 0 ETIMEDOUT: no credential came in time: exec "
                                                  "plugin login: exit status 255: no role ");
}

TEST_CASE(test_held_and_dropped) {
        _cleanup_(world_freep) World *w = world_new();
        static const FakeChildAnswer answers[] = { { .after_usec = 3 * SEC, .output = CREDENTIAL("new") } };
        _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, answers, 1);

        assert_return_code(do_get(w), 0);
        w->call = kube_call_free(w->call);
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(w->n_requests, 0);
        assert_string_equal(strbuf_str(&w->told), "");
}

TEST_CASE(test_unauthorized_once) {
        static const struct {
                const char *what;
                FakeChildAnswer second;
                const char *seen, *told;
        } rows[] = {
                { "the plugin gives another one",
                  { .after_usec = SEC, .output = CREDENTIAL("new") },
                  "GET /api/v1/nodes/n1 (Bearer old) GET /api/v1/nodes/n1 (Bearer new) ",
                  "200 Reply {\"kind\":\"Reply\"} " },
                { "the plugin gives the same",
                  { .after_usec = SEC, .output = CREDENTIAL("old") },
                  "GET /api/v1/nodes/n1 (Bearer old) GET /api/v1/nodes/n1 (Bearer old) ",
                  "error 401 : Unauthorized " },
                { "the plugin fails",
                  { .after_usec = SEC, .exit_status = 1 },
                  "GET /api/v1/nodes/n1 (Bearer old) GET /api/v1/nodes/n1 (Bearer old) ",
                  "error 401 : Unauthorized " },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(world_freep) World *w = world_new();
                const FakeChildAnswer answers[] = { { .output = CREDENTIAL("old") }, rows[k].second };
                _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, answers, 2);

                print_message("%s\n", rows[k].what);
                run_for(w, SEC);
                assert_return_code(do_get(w), 0);
                run_for(w, 5 * SEC);
                assert_string_equal(strbuf_str(&w->seen), rows[k].seen);
                assert_string_equal(strbuf_str(&w->told), rows[k].told);
        }
}

/* Whoever bears the token "new" is let in, and hears nothing. */
static void serve_guarded_silence(World *w, HttpExchange *x) {
        if (streq_ptr(http_header_find(x->headers, x->n_headers, "Authorization"), "Bearer new"))
                serve_open(w, x);
        else
                x->ops->reply(x, 401, NULL, 0, "Unauthorized", 12);
}

static void serve_guarded_stream(World *w, HttpExchange *x) {
        if (streq_ptr(http_header_find(x->headers, x->n_headers, "Authorization"), "Bearer new"))
                serve_stream(w, x);
        else
                x->ops->reply(x, 401, NULL, 0, "Unauthorized", 12);
}

/* One limit for all: what the first answer and the plugin took is not to be had again. */
TEST_CASE(test_unauthorized_has_one_limit) {
        _cleanup_(world_freep) World *w = world_new();
        static const FakeChildAnswer answers[] = { { .output = CREDENTIAL("old") },
                                                   { .after_usec = 6 * SEC, .output = CREDENTIAL("new") } };
        _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, answers, 2);
        usec_t start;

        run_for(w, SEC);
        w->serve = serve_guarded_silence;
        w->fault = (HttpFault){ .reply_delay_usec = SEC };
        start = virtual_time_now(w->time);
        assert_return_code(do_get(w), 0);
        run_for(w, 8 * SEC);
        assert_int_equal(w->n_requests, 2);
        run_for(w, USEC_PER_MINUTE);
        assert_non_null(strstr(strbuf_str(&w->told), "error 0 ETIMEDOUT"));
        assert_int_equal(w->done_usec - start, 10 * SEC);
}

/* A watch that waited for its credential, or was refused by the old one, is a watch as any other: neither the limit of the
 * waiting nor the next credential says anything to it. */
TEST_CASE(test_watch_waits_for_a_credential) {
        static const KubeWatchOptions o = { .resource_version = "1", .stall_usec = USEC_PER_HOUR };
        static const FakeChildAnswer rows[][2] = {
                { { .after_usec = 3 * SEC, .output = CREDENTIAL("new") }, { .output = CREDENTIAL("new") } },
                { { .output = CREDENTIAL("old") }, { .after_usec = 3 * SEC, .output = CREDENTIAL("new") } },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(world_freep) World *w = world_new();
                _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, rows[k], 2);

                run_for(w, k == 0 ? 0 : SEC);
                w->serve = serve_guarded_stream;
                assert_return_code(
                        kube_watch(w->host->client, &pods, &o, on_event, on_done, w, &w->call), 0);
                run_for(w, 5 * SEC);
                assert_int_equal(w->n_requests, 1 + k);
                assert_non_null(w->open);
                (void) kube_auth_rejected(i->auth); /* another call was refused: a new one comes */
                run_for(w, 20 * SEC);
                (void) kube_auth_rejected(i->auth);
                run_for(w, 10 * USEC_PER_MINUTE);
                assert_int_equal(w->n_requests, 1 + k);
                assert_string_equal(strbuf_str(&w->told), "");
                say(w, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n",
                    strlen("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"));
                assert_string_equal(strbuf_str(&w->told), "ADDED:a ");
        }
}

TEST_CASE(test_unauthorized_not_again) {
        _cleanup_(world_freep) World *w = world_new();
        static const FakeChildAnswer answers[] = { { .output = CREDENTIAL("old") },
                                                   { .output = CREDENTIAL("old") } };
        _unused_ _cleanup_(identity_freep) Identity *i = identity_new(w, answers, 2);

        run_for(w, SEC);
        assert_return_code(do_patch_merge(w), 0);
        run_for(w, SEC);
        w->call = kube_call_free(w->call);
        assert_int_equal(i->children->n_started, 2);
        assert_return_code(do_get(w), 0);
        run_for(w, SEC);
        assert_int_equal(i->children->n_started, 2); /* at most one look in 10 s */
        assert_int_equal(w->n_requests, 4);
}

TEST_CASE(test_verb_strings) {
        for (KubeVerb v = 0; v < _KUBE_VERB_MAX; v++)
                assert_non_null(kube_verb_to_string(v));
        assert_string_equal(kube_verb_to_string(KUBE_VERB_EVICT), "evict");
        assert_null(kube_verb_to_string(_KUBE_VERB_MAX));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_verbs),
                cmocka_unit_test(test_refused_at_once),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_timeout),
                cmocka_unit_test(test_dead_connection),
                cmocka_unit_test(test_dead_connection_only_once),
                cmocka_unit_test(test_refused_connection_is_not_repeated),
                cmocka_unit_test(test_dropped),
                cmocka_unit_test(test_freed_inside),
                cmocka_unit_test(test_fire_and_forget),
                cmocka_unit_test(test_guard),
                cmocka_unit_test(test_yields),
                cmocka_unit_test(test_waiting_is_not_counted),
                cmocka_unit_test(test_body_of_its_turn),
                cmocka_unit_test(test_reads_are_no_crowd),
                cmocka_unit_test(test_nobody_overtakes),
                cmocka_unit_test(test_each_rank_has_its_place),
                cmocka_unit_test(test_many_that_follow),
                cmocka_unit_test(test_yields_until_the_end),
                cmocka_unit_test(test_watch),
                cmocka_unit_test(test_watch_any_pieces),
                cmocka_unit_test(test_watch_ends),
                cmocka_unit_test(test_watch_long_lines),
                cmocka_unit_test(test_watch_stalls),
                cmocka_unit_test(test_watch_is_not_answered),
                cmocka_unit_test(test_watch_refused),
                cmocka_unit_test(test_watch_consumer_ends_it),
                cmocka_unit_test(test_watch_freed_inside),
                cmocka_unit_test(test_keep_warm),
                cmocka_unit_test(test_held_until_credential),
                cmocka_unit_test(test_held_in_vain),
                cmocka_unit_test(test_held_and_dropped),
                cmocka_unit_test(test_unauthorized_once),
                cmocka_unit_test(test_unauthorized_has_one_limit),
                cmocka_unit_test(test_watch_waits_for_a_credential),
                cmocka_unit_test(test_unauthorized_not_again),
                cmocka_unit_test(test_verb_strings),
        };
        return cmocka_run_group_tests_name("kube-client", tests, NULL, NULL);
}
