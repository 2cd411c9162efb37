/* SPDX-License-Identifier: Apache-2.0 */
#include "contract-ask.h"

#include <stdio.h>

#include "parse-util.h"

#define CALL_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define BODY_BYTES_MAX (64u * 1024 * 1024)

const KubeKind contract_namespace_kind = {
        .version = "v1", .group = "", .plural = "namespaces", .kind = "Namespace"
};
const KubeKind contract_event_kind = {
        .group = "",
        .version = "v1",
        .plural = "events",
        .kind = "Event",
        .namespaced = true,
};
const KubeKind contract_ndb_kind = {
        .group = "vesper.sh",
        .version = "v1alpha1",
        .plural = "nodedisruptionbudgets",
        .kind = "NodeDisruptionBudget",
};

/* -- answers -------------------------------------------------------------------------------------- */

void answer_done(Answer *a) {
        api_error_done(&a->error);
        json_doc_free(a->doc);
        free(a->body);
        *a = (Answer){ 0 };
}

static const Json *answer_path(const Answer *a, va_list path) {
        const Json *v = a->json;
        const char *key;

        while (v && (key = va_arg(path, const char *)))
                v = json_get(v, key);
        return v;
}

const char *answer_string(const Answer *a, ...) {
        const Json *v;
        va_list path;

        va_start(path, a);
        v = answer_path(a, path);
        va_end(path);
        return json_string_or_null(v);
}

int64_t answer_int(const Answer *a, ...) {
        const Json *v;
        va_list path;
        int64_t n;

        va_start(path, a);
        v = answer_path(a, path);
        va_end(path);
        return json_int64(v, &n) < 0 ? INT64_MIN : n;
}

char *answer_names(const Answer *a) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char *names;

        JSON_FOREACH (item, json_get(a->json, "items"))
                strbuf_addf(&b, "%s%s", b.size > 0 ? " " : "",
                            strempty(json_string_or_null(json_path(item, "metadata", "name", NULL))));
        names = strbuf_steal(&b);
        assert_non_null(names);
        return names;
}

const Json *json_find(const Json *list, const char *key, const char *value) {
        JSON_FOREACH (item, list)
                if (streq_ptr(json_string_or_null(json_get(item, key)), value))
                        return item;
        return NULL;
}

void check_answer(const Answer *a, unsigned status, const char *reason, const char *file, int line) {
        bool success = status >= 200 && status < 300;

        if (a->status == status && (success || streq_ptr(a->error.reason, reason)))
                return;
        print_error("expected %u %s, got %u %s: %s\n", status, strempty(reason), a->status,
                    strempty(a->error.reason), a->body ? a->body : strempty(a->error.message));
        _fail(file, line);
}

/* -- one call ------------------------------------------------------------------------------------- */

/* On the heap: a case that gives up leaves it behind unharmed. */
typedef struct Pending {
        Answer answer;
        KubeCall *call;
        bool done;
} Pending;

static int copy_error(const ApiError *e, ApiError *ret) {
        *ret = *e;
        ret->reason = e->reason ? strdup(e->reason) : NULL;
        ret->message = strdup(strempty(e->message));
        ret->causes = new0(ApiCause, MAX(e->n_causes, (size_t) 1));
        if (!ret->message || !ret->causes)
                return -ENOMEM;
        for (size_t i = 0; i < e->n_causes; i++) {
                ret->causes[i].reason = e->causes[i].reason ? strdup(e->causes[i].reason) : NULL;
                ret->causes[i].message = e->causes[i].message ? strdup(e->causes[i].message) : NULL;
                ret->causes[i].field = e->causes[i].field ? strdup(e->causes[i].field) : NULL;
        }
        return 0;
}

static void on_reply(const KubeReply *reply, void *userdata) {
        Pending *p = userdata;
        Answer *a = &p->answer;

        p->done = true;
        a->status = reply->status;
        a->started_usec = reply->started_usec;
        a->finished_usec = reply->finished_usec;
        a->date_usec = http_date(reply->response);
        a->body = memdup_str(reply->body_size > 0 ? reply->body : "", reply->body_size);
        if (reply->error && copy_error(reply->error, &a->error) < 0)
                abort();
        if (a->body && json_parse(a->body, reply->body_size, BODY_BYTES_MAX, &a->doc, NULL) >= 0)
                a->json = json_root(a->doc);
}

static bool pending_done(void *userdata) {
        return ((Pending *) userdata)->done;
}

static Pending *pending_new(void) {
        Pending *p = new0(Pending, 1);

        assert_non_null(p);
        return p;
}

static Answer rig_await(Rig *r, Pending *p, int started) {
        Answer a;

        assert_return_code(started, 0);
        if (!rig_wait(r, pending_done, p, 2 * CALL_TIMEOUT_USEC))
                fail_msg("No answer, not even a time-out");
        kube_call_free(p->call);
        a = p->answer;
        free(p);
        return a;
}

static const KubeCallOptions patient = { .timeout_usec = CALL_TIMEOUT_USEC },
                             patient_bulk = { .lane = HTTP_LANE_BULK, .timeout_usec = CALL_TIMEOUT_USEC };

char *rig_text(const char *fmt, va_list ap) {
        char *text;

        assert_true(vasprintf(&text, fmt, ap) >= 0);
        for (char *p = text; *p; p++)
                if (*p == '\'')
                        *p = '"';
        return text;
}

#define TEXT_OF(text, fmt) \
        va_list _ap; \
        _cleanup_free_ char *text = NULL; \
        va_start(_ap, fmt); \
        text = rig_text(fmt, _ap); \
        va_end(_ap)

Answer rig_get(Rig *r, RigWho who, KubeTarget t) {
        Pending *p = pending_new();

        return rig_await(r, p, kube_get(rig_client(r, who), &t, &patient, on_reply, p, &p->call));
}

Answer rig_list(Rig *r, RigWho who, KubeTarget t, const KubeListOptions *o) {
        Pending *p = pending_new();

        return rig_await(r, p, kube_list(rig_client(r, who), &t, o, &patient, on_reply, p, &p->call));
}

Answer rig_create(Rig *r, RigWho who, KubeTarget t, const char *fmt, ...) {
        Pending *p = pending_new();
        TEXT_OF(body, fmt);

        if (!t.subresource)
                t.name = NULL;
        return rig_await(r, p, kube_create(rig_client(r, who), &t, body, &patient, on_reply, p, &p->call));
}

Answer rig_update_raw(Rig *r, RigWho who, KubeTarget t, const char *body) {
        Pending *p = pending_new();

        return rig_await(r, p, kube_update(rig_client(r, who), &t, body, &patient, on_reply, p, &p->call));
}

Answer rig_update(Rig *r, RigWho who, KubeTarget t, const char *fmt, ...) {
        TEXT_OF(body, fmt);

        return rig_update_raw(r, who, t, body);
}

Answer rig_patch_raw(Rig *r, RigWho who, KubeTarget t, KubePatchType type, const char *body) {
        Pending *p = pending_new();

        return rig_await(r, p,
                         kube_patch(rig_client(r, who), &t, type, body, &patient, on_reply, p, &p->call));
}

Answer rig_patch(Rig *r, RigWho who, KubeTarget t, KubePatchType type, const char *fmt, ...) {
        TEXT_OF(body, fmt);

        return rig_patch_raw(r, who, t, type, body);
}

Answer rig_delete(Rig *r, RigWho who, KubeTarget t, const KubeDeleteOptions *o) {
        Pending *p = pending_new();

        return rig_await(r, p, kube_delete(rig_client(r, who), &t, o, &patient, on_reply, p, &p->call));
}

Answer rig_evict(Rig *r, RigWho who, const char *ns, const char *name, const char *uid, int64_t grace_sec) {
        Pending *p = pending_new();

        return rig_await(r, p,
                         kube_evict(rig_client(r, who), ns, name, uid, grace_sec, &patient_bulk, on_reply, p,
                                    &p->call));
}

Answer rig_evict_dry(Rig *r, RigWho who, const char *ns, const char *name, const char *uid) {
        KubeCallOptions o = patient_bulk;
        Pending *p = pending_new();

        o.dry_run = true;
        return rig_await(r, p, kube_evict(rig_client(r, who), ns, name, uid, -1, &o, on_reply, p, &p->call));
}

Answer rig_merge_dry(Rig *r, RigWho who, KubeTarget t, const char *fmt, ...) {
        const KubeCallOptions o = { .timeout_usec = CALL_TIMEOUT_USEC, .dry_run = true };
        Pending *p = pending_new();
        TEXT_OF(body, fmt);

        return rig_await(r, p,
                         kube_patch(rig_client(r, who), &t, KUBE_PATCH_MERGE, body, &o, on_reply, p, &p->call));
}

/* -- past the client ------------------------------------------------------------------------------ */

typedef struct Exchange {
        Answer answer;
        HttpCall *call;
        unsigned http_version;
        bool done;
} Exchange;

static void on_response(const HttpResponse *response, void *userdata) {
        Exchange *x = userdata;
        Answer *a = &x->answer;

        x->done = true;
        x->http_version = response->http_version;
        a->status = response->status;
        a->body = memdup_str(response->body, response->body_size);
        a->body_size = response->body_size;
        if (a->body && json_parse(a->body, response->body_size, BODY_BYTES_MAX, &a->doc, NULL) >= 0)
                a->json = json_root(a->doc);
        if (response->error < 0)
                (void) api_error_from_transport(response->error, response->error_text, response->maybe_sent,
                                                &a->error);
        else if (response->status >= 300)
                (void) api_error_from_body(response->status, response->body, response->body_size, 0,
                                           &a->error);
}

static bool exchange_done(void *userdata) {
        return ((Exchange *) userdata)->done;
}

static Answer exchange(Rig *r, RigWho who, const HttpRequest *request, unsigned *ret_http_version) {
        Exchange *x = new0(Exchange, 1);
        Answer a;

        assert_non_null(x);
        assert_return_code(http_call_start(rig_env(r, who)->transport, request, on_response, x, &x->call),
                           0);
        if (!rig_wait(r, exchange_done, x, 2 * CALL_TIMEOUT_USEC))
                fail_msg("No answer, not even a time-out");
        http_call_free(x->call);
        a = x->answer;
        *ret_http_version = x->http_version;
        free(x);
        return a;
}

static Answer rig_http_on(Rig *r, RigWho who, HttpLane lane, HttpMethod method, const char *path,
                          const char *accept, const char *type, const char *body,
                          unsigned *ret_http_version) {
        _cleanup_free_ char *url = strf("%s%s", rig_server(r), path);
        HttpHeader headers[3];
        HttpRequest request = {
                .method = method,
                .url = url,
                .headers = headers,
                .body = type ? body : NULL,
                .body_size = type ? strlen(body) : 0,
                .lane = lane,
                .timeout_usec = CALL_TIMEOUT_USEC,
                .max_response_bytes = BODY_BYTES_MAX,
        };
        const char *authorization;

        assert_non_null(url);
        rig_credential(r, who, &request.tls, &authorization);
        if (authorization)
                headers[request.n_headers++] = (HttpHeader){ "Authorization", authorization };
        if (accept)
                headers[request.n_headers++] = (HttpHeader){ "Accept", accept };
        if (type)
                headers[request.n_headers++] = (HttpHeader){ "Content-Type", type };
        return exchange(r, who, &request, ret_http_version);
}

Answer rig_http(Rig *r, RigWho who, HttpMethod method, const char *path, const char *type,
                const char *body) {
        return rig_http_accept(r, who, method, path, NULL, type, body);
}

Answer rig_http_accept(Rig *r, RigWho who, HttpMethod method, const char *path, const char *accept,
                       const char *type, const char *body) {
        unsigned ignored;

        return rig_http_on(r, who, HTTP_LANE_URGENT, method, path, accept, type, body, &ignored);
}

unsigned rig_http_version(Rig *r, HttpLane lane) {
        unsigned version;
        _cleanup_answer_ Answer a =
                rig_http_on(r, RIG_ADMIN, lane, HTTP_GET, "/version", NULL, NULL, NULL, &version);

        assert_answer(a, 200, NULL);
        return version;
}

/* -- watches -------------------------------------------------------------------------------------- */

static uint64_t version_of(const Json *object) {
        const char *text = json_string_or_null(json_path(object, "metadata", "resourceVersion", NULL));
        uint64_t version = 0;

        (void) parse_uint64(strempty(text), &version);
        return version;
}

static int on_watch_event(const char *type, const Json *object, void *userdata) {
        RigWatch *w = userdata;
        uint64_t version = version_of(object);
        int64_t code;

        assert_false(w->ended);
        if (streq(type, "BOOKMARK")) {
                w->n_bookmarks++;
                w->out_of_order |= version < w->version || version < w->bookmark;
                w->bookmark = version;
                return 0;
        }
        strbuf_addf(&w->seen, "%s%s ", w->seen.size > 0 ? ", " : "", type);
        if (streq(type, "ERROR")) {
                strbuf_addf(&w->seen, "%d",
                            json_int64(json_get(object, "code"), &code) < 0 ? 0 : (int) code);
                return free_and_strdup(&w->error_reason, json_string_or_null(json_get(object, "reason")));
        }
        strbuf_add(&w->seen, strempty(json_string_or_null(json_path(object, "metadata", "name", NULL))));
        w->out_of_order |= version <= w->version && w->version > 0;
        w->version = version;
        return 0;
}

static void on_watch_done(const KubeReply *reply, void *userdata) {
        RigWatch *w = userdata;

        w->ended = true;
        w->status = reply->status;
        w->protobuf = reply->protobuf;
        w->error = reply->error ? api_error_to_errno(reply->error) : 0;
}

RigWatch *rig_watch(Rig *r, RigWho who, KubeTarget t, const KubeWatchOptions *o) {
        RigWatch *w = new0(RigWatch, 1);

        assert_non_null(w);
        w->rig = r;
        assert_return_code(kube_watch(rig_client(r, who), &t, o, on_watch_event, on_watch_done, w, &w->call),
                           0);
        return w;
}

RigWatch *rig_watch_free(RigWatch *w) {
        kube_call_free(w->call);
        strbuf_done(&w->seen);
        free(w->error_reason);
        return mfree(w);
}

typedef struct Wanted {
        const RigWatch *watch;
        size_t size;
} Wanted;

static bool seen_enough(void *userdata) {
        const Wanted *wanted = userdata;

        return wanted->watch->ended || wanted->watch->seen.size >= wanted->size;
}

void check_watch(RigWatch *w, const char *expected, const char *file, int line) {
        Wanted wanted = { .watch = w, .size = strlen(expected) };

        if (wanted.size == 0) /* nothing is to come: give it the time to be wrong */
                rig_sleep(w->rig, USEC_PER_SEC / 5);
        else
                (void) rig_wait(w->rig, seen_enough, &wanted, RIG_PATIENCE_USEC);
        if (!streq(strbuf_str(&w->seen), expected)) {
                print_error("expected the events \"%s\", got \"%s\"%s\n", expected, strbuf_str(&w->seen),
                            w->ended ? ", then the end" : "");
                _fail(file, line);
        }
        strbuf_truncate(&w->seen, 0);
}

static bool watch_ended(void *userdata) {
        return ((RigWatch *) userdata)->ended;
}

bool rig_watch_wait_end(RigWatch *w) {
        return rig_wait(w->rig, watch_ended, w, RIG_PATIENCE_USEC);
}

static bool watch_marked(void *userdata) {
        return ((RigWatch *) userdata)->n_bookmarks > 0 || watch_ended(userdata);
}

bool rig_watch_wait_bookmark(RigWatch *w, usec_t timeout_usec) {
        return rig_wait(w->rig, watch_marked, w, timeout_usec) && w->n_bookmarks > 0;
}

/* -- makers --------------------------------------------------------------------------------------- */

/* A pod wants its namespace's default ServiceAccount, which a controller would make. The fake knows none. */
static const KubeKind account_kind = {
        .group = "",
        .version = "v1",
        .plural = "serviceaccounts",
        .kind = "ServiceAccount",
        .namespaced = true,
};

void rig_make_namespace(Rig *r, const char *name) {
        KubeTarget account = { .kind = &account_kind, .ns = name };
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, NAMESPACE(NULL), "{'metadata': {'name': '%s'}}", name);
        _cleanup_answer_ Answer b = { 0 };

        assert_answer(a, 201, NULL);
        if (rig_is_fake(r))
                return;
        b = rig_create(r, RIG_ADMIN, account, "{'metadata': {'name': 'default'}}");
        assert_answer(b, 201, NULL);
}

void rig_make_node(Rig *r, const char *name) {
        _cleanup_answer_ Answer a = rig_create(r, RIG_ADMIN, NODE(NULL),
                                               "{'metadata': {'name': '%s', 'labels': "
                                               "{'kubernetes.io/hostname': '%s'}}, 'spec': {'providerID': "
                                               "'aws:///us-east-1a/i-%s'}, 'status': {'capacity': {'cpu': "
                                               "'4', 'pods': '110'}, 'allocatable': {'cpu': '4', "
                                               "'pods': '110'}, 'conditions': [{'type': 'Ready', 'status': "
                                               "'True', 'reason': 'KubeletReady', 'message': "
                                               "'kubelet is posting ready status', 'lastHeartbeatTime': "
                                               "'2026-01-01T00:00:00Z', 'lastTransitionTime': "
                                               "'2026-01-01T00:00:00Z'}]}}",
                                               name, name, name);

        assert_answer(a, 201, NULL);
}

KubeNode *rig_node(Rig *r, const char *name) {
        _cleanup_answer_ Answer a = rig_get(r, RIG_ADMIN, NODE(name));
        KubeObject *o;

        assert_answer(a, 200, NULL);
        assert_return_code(
                kube_object_decode(&kube_node_kind, a.json, kube_client_pool(rig_client(r, RIG_ADMIN)), &o),
                0);
        return CONTAINER_OF(o, KubeNode, object);
}

char *rig_make_pending_pod(Rig *r, const char *ns, const char *name, const char *node, const char *app,
                           const char *spec) {
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, POD(ns, NULL),
                           "{'metadata': {'name': '%s', 'labels': {'app': '%s'}}, 'spec': "
                           "{%s%s%s'containers': [{'name': 'main', "
                           "'image': 'app'}], 'automountServiceAccountToken': false%s%s}}",
                           name, app, node ? "'nodeName': '" : "", strempty(node), node ? "', " : "",
                           *spec ? ", " : "", spec);
        char *uid;

        assert_answer(a, 201, NULL);
        uid = strdup(answer_uid(&a));
        assert_non_null(uid);
        return uid;
}

void rig_set_pod_status(Rig *r, const char *ns, const char *name, const char *phase, bool ready) {
        _cleanup_answer_ Answer a =
                rig_merge(r, RIG_ADMIN, POD_STATUS(ns, name),
                          "{'status': {'phase': '%s', 'conditions': [{'type': 'Ready', 'status': '%s'}]}}",
                          phase, ready ? "True" : "False");

        assert_answer(a, 200, NULL);
}

char *rig_make_pod(Rig *r, const char *ns, const char *name, const char *node, const char *app) {
        char *uid = rig_make_pending_pod(r, ns, name, node, app, "");

        rig_set_pod_status(r, ns, name, "Running", true);
        return uid;
}

typedef struct Crowd {
        unsigned n_left, n_failed;
} Crowd;

static void on_one_of_many(const KubeReply *reply, void *userdata) {
        Crowd *c = userdata;

        c->n_left--;
        c->n_failed += reply->error != NULL;
}

static bool crowd_done(void *userdata) {
        return ((Crowd *) userdata)->n_left == 0;
}

void rig_make_pods(Rig *r, const char *ns, const char *app, unsigned n, const char *node) {
        static const KubeCallOptions options = { .lane = HTTP_LANE_BULK, .timeout_usec = CALL_TIMEOUT_USEC };
        Crowd *c = new0(Crowd, 1);
        KubeTarget t = POD(ns, NULL);

        assert_non_null(c);
        c->n_left = n;
        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *body =
                        strf("{\"metadata\":{\"name\":\"%s-%04u\",\"labels\":{\"app\":\"%s\"}},"
                             "\"spec\":{\"nodeName\":\"%s\",\"automountServiceAccountToken\":false,"
                             "\"containers\":[{\"name\":\"main\",\"image\":\"app\"}]}}",
                             app, i, app, node);

                assert_non_null(body);
                assert_return_code(
                        kube_create(rig_client(r, RIG_ADMIN), &t, body, &options, on_one_of_many, c, NULL),
                        0);
        }
        assert_true(rig_wait(r, crowd_done, c, 2 * CALL_TIMEOUT_USEC));
        assert_int_equal(c->n_failed, 0);
        free(c);
}

void rig_make_pdb(Rig *r, const char *ns, const char *name, const char *app, const char *more) {
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, PDB(ns, NULL),
                           "{'metadata': {'name': '%s'}, 'spec': {'maxUnavailable': 1, 'selector': "
                           "{'matchLabels': {'app': '%s'}}%s%s}}",
                           name, app, *more ? ", " : "", more);

        assert_answer(a, 201, NULL);
}

void rig_set_pdb_status(Rig *r, const char *ns, const char *name, int64_t observed, int64_t allowed,
                        int64_t current, int64_t desired) {
        _cleanup_answer_ Answer a = rig_merge(r, RIG_ADMIN, PDB_STATUS(ns, name),
                                              "{'status': {'observedGeneration': %lld, "
                                              "'disruptionsAllowed': %lld, 'currentHealthy': %lld, "
                                              "'desiredHealthy': %lld, 'expectedPods': %lld}}",
                                              (long long) observed, (long long) allowed, (long long) current,
                                              (long long) desired, (long long) MAX(current, desired));

        assert_answer(a, 200, NULL);
}

void rig_make_claim(Rig *r, const char *name) {
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, CLAIM(NULL),
                           "{'apiVersion': 'vesper.sh/v1alpha1', 'kind': 'NodeClaim', 'metadata': "
                           "{'name': '%s'}, 'spec': {'nodePool': 'general', 'providerID': "
                           "'aws:///us-east-1a/i-%s', 'terminationGracePeriod': '30m', 'nodeName': '%s', "
                           "'systemUUID': 's-1', 'machineID': 'm-1'}}",
                           name, name, name);

        assert_answer(a, 201, NULL);
}
