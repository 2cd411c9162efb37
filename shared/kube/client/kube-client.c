/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-client.h"

#include <stdio.h>

#include "kube-call.h"
#include "kube-kinds.h"
#include "kube-request.h"
#include "string-util.h"
#include "strv.h"

#define EVICT_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define LIST_RESPONSE_BYTES_MAX (64u * 1024 * 1024)
/* A watch without a byte, unless its caller says otherwise: bookmarks come every minute. */
#define DEFAULT_STALL_USEC (150 * USEC_PER_SEC)

static const char *const verb_table[_KUBE_VERB_MAX] = {
        [KUBE_VERB_GET] = "get",       [KUBE_VERB_LIST] = "list",     [KUBE_VERB_WATCH] = "watch",
        [KUBE_VERB_CREATE] = "create", [KUBE_VERB_UPDATE] = "update", [KUBE_VERB_PATCH] = "patch",
        [KUBE_VERB_DELETE] = "delete", [KUBE_VERB_EVICT] = "evict",
};

const char *kube_verb_to_string(KubeVerb v) {
        return (size_t) v < ELEMENTSOF(verb_table) ? verb_table[v] : NULL;
}

/* -- the client ----------------------------------------------------------------------------------------- */

int kube_client_new(Env *env, KubeAuth *auth, const char *server, const char *field_manager,
                    KubeClient **ret) {
        KubeClient *c;
        size_t n;
        int r;

        assert(env);
        assert(auth);
        assert(server);
        assert(field_manager);
        assert(ret);

        c = new0(KubeClient, 1);
        if (!c)
                return -ENOMEM;

        c->env = env;
        c->auth = auth;
        n = strlen(server);
        while (n > 0 && server[n - 1] == '/')
                n--;
        c->server = memdup_str(server, n);
        c->field_manager = strdup(field_manager);
        c->crowd_usec = USEC_INFINITY;
        c->user_agent = strf("%s/%s", field_manager, env->version ? env->version : VESPER_VERSION);
        r = intern_pool_new(&c->pool);
        if (r >= 0)
                r = timer_new(env->loop, "calls that gave way", kube_call_on_admission, c, &c->turn);
        if (r >= 0 && (!c->server || !c->field_manager || !c->user_agent))
                r = -ENOMEM;
        c->listener = (KubeAuthListener){ .ready = kube_client_auth_ready, .userdata = c };
        kube_auth_listen(auth, &c->listener);
        if (r < 0) {
                kube_client_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

KubeClient *kube_client_free(KubeClient *c) {
        if (!c)
                return NULL;

        for (HttpLane lane = 0; lane < _HTTP_LANE_MAX; lane++)
                timer_free(c->warm[lane].timer);
        LIST_FOREACH (call, &c->calls, KubeCall, calls) {
                assert(call->detached);
                kube_call_free(call);
        }
        timer_free(c->turn);
        kube_auth_unlisten(c->auth, &c->listener);
        intern_pool_free(c->pool);
        free(c->server);
        free(c->field_manager);
        free(c->user_agent);
        for (size_t i = 0; i < c->n_impersonation; i++)
                free((char *) c->impersonation[i].value);
        free(c);
        return NULL;
}

static int add_impersonation(KubeClient *c, const char *name, const char *value) {
        char *copy;

        if (isempty(value) || c->n_impersonation == KUBE_IMPERSONATION_MAX)
                return -EINVAL;
        for (const char *p = value; *p; p++)
                if ((unsigned char) *p < ' ' || *p == 0x7f)
                        return -EINVAL;
        copy = strdup(value);
        if (!copy)
                return -ENOMEM;
        c->impersonation[c->n_impersonation++] = (HttpHeader){ name, copy };
        return 0;
}

int kube_client_impersonate(KubeClient *c, const char *user, const char *uid, char *const *groups) {
        int r;

        assert(c && c->n_impersonation == 0 && user);
        r = add_impersonation(c, "Impersonate-User", user);
        if (r >= 0 && uid)
                r = add_impersonation(c, "Impersonate-Uid", uid);
        if (r >= 0 && strv_length(groups) > KUBE_GROUPS_MAX)
                r = -EINVAL;
        STRV_FOREACH(group, groups)
                if (r >= 0)
                        r = add_impersonation(c, "Impersonate-Group", *group);
        return r;
}

void kube_client_limit(KubeClient *c, usec_t timeout_usec) {
        assert(c);
        c->limit_usec = timeout_usec;
}

InternPool *kube_client_pool(KubeClient *c) {
        assert(c);
        return c->pool;
}

Env *kube_client_env(KubeClient *c) {
        assert(c);
        return c->env;
}

KubeAuth *kube_client_auth(KubeClient *c) {
        assert(c);
        return c->auth;
}

size_t kube_client_under_way(const KubeClient *c) {
        return c->n_under_way[KUBE_RANK_FIRST] + c->n_under_way[KUBE_RANK_FOLLOWS];
}

void kube_client_on_path(KubeClient *c, kube_path_fn fn, void *userdata) {
        assert(c);
        c->path_fn = fn;
        c->path_userdata = userdata;
}

uint64_t kube_client_requests(const KubeClient *c, KubeVerb v) {
        assert(c);
        assert((size_t) v < _KUBE_VERB_MAX);
        return c->n_requests[v];
}

void kube_client_auth_ready(void *client) {
        KubeClient *c = client;

        assert(c);
        LIST_FOREACH (call, &c->calls, KubeCall, calls)
                kube_call_send_held(call);
}

/* -- warm connections ----------------------------------------------------------------------------------- */

static void on_lane_quiet(Timer *t, void *userdata) {
        _cleanup_strbuf_ StrBuf url = { 0 };
        KubeWarmth *w = userdata;
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_GET,
                .method = HTTP_GET,
                .options = { .lane = w->lane },
        };

        timer_arm_in(t, w->interval_usec);
        strbuf_addf(&url, "%s/version", w->client->server);
        /* What came of it will be seen by the next real call. */
        (void) kube_call_start(w->client, &plan, &url, NULL, NULL, NULL);
}

int kube_client_keep_warm(KubeClient *c, HttpLane lane, usec_t interval_usec) {
        KubeWarmth *w;
        int r;

        assert(c);
        assert((size_t) lane < _HTTP_LANE_MAX);
        if (interval_usec == 0)
                return -EINVAL;

        w = c->warm + lane;
        w->client = c;
        w->lane = lane;
        w->interval_usec = interval_usec;
        if (!w->timer) {
                r = timer_new(c->env->loop, "keep a connection warm", on_lane_quiet, w, &w->timer);
                if (r < 0)
                        return r;
        }
        /* The first one goes out at once: there is no connection yet. */
        timer_arm_in(w->timer, 0);
        return 0;
}

/* -- verbs ---------------------------------------------------------------------------------------------- */

static KubeCallOptions options_or(const KubeCallOptions *o, KubeCallOptions otherwise) {
        return o ? *o : otherwise;
}

/* The calls on one object: everything but list, create and watch. */
static int start_on_object(KubeClient *c, const KubeTarget *t, const KubeCallPlan *plan, const char *manager,
                           kube_done_t done, void *userdata, KubeCall **ret) {
        _cleanup_strbuf_ StrBuf url = { 0 };
        int r;

        assert(c);
        if (!t->name)
                return -EINVAL;
        r = kube_request_url(&url, c->server, t);
        if (r < 0)
                return r;
        kube_request_query(&url, "fieldManager", manager);
        kube_request_query(&url, "dryRun", plan->options.dry_run ? "All" : NULL);
        return kube_call_start(c, plan, &url, done, userdata, ret);
}

int kube_get(KubeClient *c, const KubeTarget *t, const KubeCallOptions *o, kube_done_t done, void *userdata,
             KubeCall **ret) {
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_GET,
                .method = HTTP_GET,
                .options = options_or(o, (KubeCallOptions){ 0 }),
        };

        return start_on_object(c, t, &plan, NULL, done, userdata, ret);
}

int kube_list(KubeClient *c, const KubeTarget *t, const KubeListOptions *l, const KubeCallOptions *o,
              kube_done_t done, void *userdata, KubeCall **ret) {
        _cleanup_strbuf_ StrBuf url = { 0 };
        static const KubeListOptions all = { 0 };
        KubeCallPlan plan = {
                .verb = KUBE_VERB_LIST,
                .method = HTTP_GET,
                .options = options_or(o, (KubeCallOptions){ 0 }),
        };
        char limit[16] = "";
        int r;

        assert(c);
        if (t->name)
                return -EINVAL;
        r = kube_request_url(&url, c->server, t);
        if (r < 0)
                return r;

        l = l ? l : &all;
        plan.shape = l->protobuf ? t->kind->shape : NULL;
        if (l->limit > 0)
                (void) snprintf(limit, sizeof(limit), "%u", l->limit);
        kube_request_query(&url, "limit", *limit ? limit : NULL);
        kube_request_query(&url, "continue", l->continue_token);
        kube_request_query(&url, "resourceVersion", l->resource_version);
        kube_request_query(&url, "resourceVersionMatch", l->resource_version_match);
        kube_request_query(&url, "labelSelector", l->label_selector);
        kube_request_query(&url, "fieldSelector", l->field_selector);
        if (plan.options.max_response_bytes == 0)
                plan.options.max_response_bytes = LIST_RESPONSE_BYTES_MAX;
        return kube_call_start(c, &plan, &url, done, userdata, ret);
}

int kube_patch(KubeClient *c, const KubeTarget *t, KubePatchType type, const char *body,
               const KubeCallOptions *o, kube_done_t done, void *userdata, KubeCall **ret) {
        static const char *const content_types[] = {
                [KUBE_PATCH_MERGE] = "application/merge-patch+json",
                [KUBE_PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
                [KUBE_PATCH_JSON] = "application/json-patch+json",
        };
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_PATCH,
                .method = HTTP_PATCH,
                .body = body,
                .content_type = content_types[type],
                .options = options_or(o, (KubeCallOptions){ 0 }),
        };

        assert(body);
        return start_on_object(c, t, &plan, c->field_manager, done, userdata, ret);
}

int kube_create(KubeClient *c, const KubeTarget *t, const char *body, const KubeCallOptions *o,
                kube_done_t done, void *userdata, KubeCall **ret) {
        _cleanup_strbuf_ StrBuf url = { 0 };
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_CREATE,
                .method = HTTP_POST,
                .body = body,
                .content_type = "application/json",
                .options = options_or(o, (KubeCallOptions){ 0 }),
        };
        int r;

        assert(c);
        assert(body);
        if ((t->kind->namespaced && !t->ns) || (t->name && !t->subresource))
                return -EINVAL;
        r = kube_request_url(&url, c->server, t);
        if (r < 0)
                return r;
        kube_request_query(&url, "fieldManager", c->field_manager);
        return kube_call_start(c, &plan, &url, done, userdata, ret);
}

int kube_update(KubeClient *c, const KubeTarget *t, const char *body, const KubeCallOptions *o,
                kube_done_t done, void *userdata, KubeCall **ret) {
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_UPDATE,
                .method = HTTP_PUT,
                .body = body,
                .content_type = "application/json",
                .options = options_or(o, (KubeCallOptions){ 0 }),
        };

        assert(body);
        return start_on_object(c, t, &plan, c->field_manager, done, userdata, ret);
}

int kube_delete(KubeClient *c, const KubeTarget *t, const KubeDeleteOptions *d, const KubeCallOptions *o,
                kube_done_t done, void *userdata, KubeCall **ret) {
        static const KubeDeleteOptions plain = { .grace_sec = -1 };
        _cleanup_free_ char *body = kube_request_delete_body(d ? d : &plain);
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_DELETE,
                .method = HTTP_DELETE,
                .body = body,
                .content_type = "application/json",
                .options = options_or(o, (KubeCallOptions){ 0 }),
        };

        return body ? start_on_object(c, t, &plan, NULL, done, userdata, ret) : -ENOMEM;
}

int kube_evict(KubeClient *c, const char *ns, const char *name, const char *uid, int64_t grace_sec,
               const KubeCallOptions *o, kube_done_t done, void *userdata, KubeCall **ret) {
        const KubeTarget target = {
                .kind = &kube_pod_kind, .ns = ns, .name = name, .subresource = "eviction"
        };
        _cleanup_free_ char *body = NULL;
        KubeCallPlan plan = {
                .verb = KUBE_VERB_EVICT,
                .method = HTTP_POST,
                .content_type = "application/json",
                .options = options_or(o, (KubeCallOptions){ .lane = HTTP_LANE_BULK }),
        };

        assert(name);
        if (isempty(uid))
                return -EINVAL;
        plan.body = body = kube_request_eviction_body(ns, name, uid, grace_sec);
        if (!body)
                return -ENOMEM;
        if (plan.options.timeout_usec == 0)
                plan.options.timeout_usec = EVICT_TIMEOUT_USEC;
        return start_on_object(c, &target, &plan, NULL, done, userdata, ret);
}

int kube_watch(KubeClient *c, const KubeTarget *t, const KubeWatchOptions *w, kube_watch_event_t on_event,
               kube_done_t done, void *userdata, KubeCall **ret) {
        _cleanup_strbuf_ StrBuf url = { 0 };
        const KubeCallPlan plan = {
                .verb = KUBE_VERB_WATCH,
                .method = HTTP_GET,
                .options = { .lane = HTTP_LANE_WATCH, .timeout_usec = USEC_INFINITY },
                .stall_usec = w->stall_usec > 0 ? w->stall_usec : DEFAULT_STALL_USEC,
                .on_event = on_event,
                .omits = { .root = "object",
                           .list = t->kind->unread,
                           .n_list = w->without_unread ? t->kind->n_unread : 0 },
                .shape = w->without_unread && w->protobuf ? t->kind->shape : NULL,
                .coalesced = w->coalesced,
        };
        char timeout[16] = "";
        int r;

        assert(c);
        assert(on_event);
        r = kube_request_url(&url, c->server, t);
        if (r < 0)
                return r;

        if (w->timeout_sec > 0)
                (void) snprintf(timeout, sizeof(timeout), "%u", w->timeout_sec);
        kube_request_query(&url, "watch", "true");
        kube_request_query(&url, "allowWatchBookmarks", "true");
        kube_request_query(&url, "resourceVersion", w->resource_version);
        kube_request_query(&url, "timeoutSeconds", *timeout ? timeout : NULL);
        kube_request_query(&url, "labelSelector", w->label_selector);
        kube_request_query(&url, "fieldSelector", w->field_selector);
        return kube_call_start(c, &plan, &url, done, userdata, ret);
}
