/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-webhook.h"

#include <inttypes.h>

#include "fake-selector.h"
#include "strv.h"

#define REVIEW_VERSION "admission.k8s.io/v1"

const char *fake_write_operation(const FakeWrite *w) {
        return !w->old ? "CREATE" : w->new ? "UPDATE" : "DELETE";
}

static bool is_eviction(const FakeWrite *w) {
        return streq_ptr(w->request->subresource, "eviction");
}

/* -- rules --------------------------------------------------------------------------------------------- */

static bool listed(const cJSON *list, const char *s) {
        return fj_array_has(list, "*") || fj_array_has(list, s);
}

/* "pods", "pods/status", "pods" with every subresource, "*", and everything with every subresource. */
static bool resource_fits(const cJSON *resources, const FakeRequest *r) {
        const cJSON *v;

        cJSON_ArrayForEach (v, resources) {
                const char *slash = strchr(v->valuestring, '/'), *sub = slash ? slash + 1 : "";
                _cleanup_free_ char *plural =
                        slash ? MUST(memdup_str(v->valuestring, (size_t) (slash - v->valuestring)))
                              : MUST(strdup(v->valuestring));

                if ((streq(plural, "*") || streq(plural, r->plural)) &&
                    (streq(sub, "*") || streq(sub, strempty(r->subresource))))
                        return true;
        }
        return false;
}

static bool scope_fits(const char *scope, const FakeResource *resource) {
        if (!scope || streq(scope, "*"))
                return true;
        return streq(scope, "Namespaced") == resource->namespaced;
}

static bool rule_fits(const cJSON *rule, const FakeWrite *w) {
        const FakeRequest *r = w->request;

        return listed(fj_get(rule, "operations", NULL), fake_write_operation(w)) &&
               listed(fj_get(rule, "apiGroups", NULL), r->group) &&
               listed(fj_get(rule, "apiVersions", NULL), r->version) &&
               resource_fits(fj_get(rule, "resources", NULL), r) &&
               scope_fits(fj_string(rule, "scope", NULL), r->resource);
}

/* -- selectors ----------------------------------------------------------------------------------------- */

static bool selects(const cJSON *selector, const cJSON *labels) {
        return !selector || fake_object_selector_matches(selector, labels);
}

/* A cluster-scoped object is in no namespace, and every selector lets it pass; a Namespace is judged by
 * itself. */
static bool namespace_fits(const FakeStore *s, const cJSON *selector, const FakeWrite *w) {
        const FakeRequest *r = w->request;
        const cJSON *ns = NULL;

        if (r->resource->namespaced)
                ns = fake_store_get(s, FAKE_NAMESPACES, NULL, r->ns);
        else if (r->resource->id == FAKE_NAMESPACES)
                ns = w->new ? w->new : w->old;
        else
                return true;
        return selects(selector, fj_get(ns, "metadata", "labels", NULL));
}

/* Either state will do. */
static bool object_fits(const cJSON *selector, const FakeWrite *w) {
        return (w->new &&selects(selector, fj_get(w->new, "metadata", "labels", NULL))) ||
               (w->old && selects(selector, fj_get(w->old, "metadata", "labels", NULL)));
}

bool fake_webhook_concerns(const FakeStore *s, const cJSON *webhook, const FakeWrite *w) {
        const cJSON *rule;
        bool fits = false;

        cJSON_ArrayForEach (rule, fj_get(webhook, "rules", NULL))
                fits |= rule_fits(rule, w);
        return fits && namespace_fits(s, fj_get(webhook, "namespaceSelector", NULL), w) &&
               object_fits(fj_get(webhook, "objectSelector", NULL), w);
}

bool fake_webhook_takes_dry_run(const cJSON *webhook) {
        const char *effects = strempty(fj_string(webhook, "sideEffects", NULL));

        return streq(effects, "None") || streq(effects, "NoneOnDryRun");
}

bool fake_webhook_may_fail(const cJSON *webhook) {
        return streq_ptr(fj_string(webhook, "failurePolicy", NULL), "Ignore");
}

usec_t fake_webhook_timeout(const cJSON *webhook) {
        return (usec_t) fj_int(webhook, 10, "timeoutSeconds", NULL) * USEC_PER_SEC;
}

char *fake_webhook_url(const cJSON *webhook) {
        const char *url = fj_string(webhook, "clientConfig", "url", NULL);
        const cJSON *service = fj_get(webhook, "clientConfig", "service", NULL);
        uint64_t timeout_sec = fake_webhook_timeout(webhook) / USEC_PER_SEC;
        const char *path = strempty(fj_string(service, "path", NULL));
        int64_t port = fj_int(service, 443, "port", NULL);

        if (url)
                return MUST(strf("%s?timeout=%" PRIu64 "s", url, timeout_sec));
        return MUST(strf("https://%s.%s.svc:%" PRIi64 "%s%s?timeout=%" PRIu64 "s",
                         strempty(fj_string(service, "name", NULL)),
                         strempty(fj_string(service, "namespace", NULL)), port, path[0] == '/' ? "" : "/",
                         path, timeout_sec));
}

/* -- the question -------------------------------------------------------------------------------------- */

static void set_kinds(cJSON *request, const FakeWrite *w) {
        const FakeResource *resource = w->request->resource;
        cJSON *kind = is_eviction(w) ? fj_parse("{'group':'policy','version':'v1','kind':'Eviction'}")
                                     : fj_parse("{'group':'%s','version':'%s','kind':'%s'}", resource->group,
                                                resource->version, resource->kind);
        cJSON *what = fj_parse("{'group':'%s','version':'%s','resource':'%s'}", resource->group,
                               resource->version, resource->plural);

        fj_set(request, "kind", kind);
        fj_set(request, "resource", what);
        fj_set_copy(request, "requestKind", kind);
        fj_set_copy(request, "requestResource", what);
        if (w->request->subresource) {
                fj_set_string(request, "subResource", w->request->subresource);
                fj_set_string(request, "requestSubResource", w->request->subresource);
        }
}

static void set_user(cJSON *request, const FakeUser *user) {
        cJSON *info = fj_object(request, "userInfo");

        fj_set_string(info, "username", strempty(user->name));
        STRV_FOREACH (group, user->groups)
                cJSON_AddItemToArray(fj_array(info, "groups"), MUST(cJSON_CreateString(*group)));
}

static void set_object(cJSON *request, const char *key, const FakeWrite *w, const cJSON *object) {
        cJSON *copy;

        if (!object) {
                fj_set(request, key, MUST(cJSON_CreateNull()));
                return;
        }
        copy = fj_copy(object);
        fj_set_string(copy, "kind", is_eviction(w) ? "Eviction" : w->request->resource->kind);
        fj_set_string(copy, "apiVersion",
                      is_eviction(w) ? "policy/v1" : fake_resource_api_version(w->request->resource));
        fj_set(request, key, copy);
}

static void set_options(cJSON *request, const FakeWrite *w) {
        const char *manager = fake_request_query(w->request, "fieldManager");
        const HttpExchange *x = w->request->x;
        cJSON *options = NULL;

        if (!w->new && x->body_size > 0)
                options = cJSON_ParseWithLength(x->body, x->body_size);
        if (!options)
                options = MUST(cJSON_CreateObject());
        fj_set_string(options, "kind",
                      !w->old   ? "CreateOptions"
                      : !w->new ? "DeleteOptions"
                                : "UpdateOptions"); /* of a patch, too */
        fj_set_string(options, "apiVersion", "meta.k8s.io/v1");
        if (manager && w->new)
                fj_set_string(options, "fieldManager", manager);
        if (w->dry_run && !fj_member(options, "dryRun"))
                cJSON_AddItemToArray(fj_array(options, "dryRun"), MUST(cJSON_CreateString("All")));
        fj_set(request, "options", options);
}

char *fake_webhook_review(const FakeWrite *w, const char *uid) {
        _cleanup_cjson_ cJSON *review =
                fj_parse("{'kind':'AdmissionReview','apiVersion':'" REVIEW_VERSION "'}");
        cJSON *request = fj_object(review, "request");
        const FakeRequest *r = w->request;
        const char *name = r->name ? r->name : fj_string(w->new, "metadata", "name", NULL);
        const char *ns = r->resource->id == FAKE_NAMESPACES ? r->name : r->ns;

        fj_set_string(request, "uid", uid);
        set_kinds(request, w);
        if (!isempty(name))
                fj_set_string(request, "name", name);
        if (!isempty(ns))
                fj_set_string(request, "namespace", ns);
        fj_set_string(request, "operation", fake_write_operation(w));
        set_user(request, &r->user);
        set_object(request, "object", w, w->new);
        set_object(request, "oldObject", w, w->old);
        fj_set_bool(request, "dryRun", w->dry_run);
        set_options(request, w);
        return fj_print(review);
}

/* -- the answer ---------------------------------------------------------------------------------------- */

char *fake_webhook_check_response(const cJSON *review, const char *uid) {
        const char *kind = strempty(fj_string(review, "kind", NULL));
        const char *version = strempty(fj_string(review, "apiVersion", NULL));
        const char *said = strempty(fj_string(review, "response", "uid", NULL));

        if (!streq(kind, "AdmissionReview") || !streq(version, REVIEW_VERSION))
                return MUST(strf("expected webhook response of " REVIEW_VERSION
                                 ", Kind=AdmissionReview, got %s, Kind=%s",
                                 version, kind));
        if (!cJSON_IsObject(fj_get(review, "response", NULL)))
                return MUST(strdup("webhook response was absent"));
        if (!streq(said, uid))
                return MUST(strf("expected response.uid=\"%s\", got \"%s\"", uid, said));
        return NULL;
}

/* webhook/errors/statuserror.go ToStatusErr() */
bool fake_webhook_reply(const char *name, const cJSON *review, FakeReply *reply) {
        const cJSON *response = fj_get(review, "response", NULL), *status = fj_get(response, "status", NULL);
        const char *message = fj_string(status, "message", NULL),
                   *reason = fj_string(status, "reason", NULL);
        int64_t code = fj_int(status, 0, "code", NULL), retry;

        if (fj_true(response, "allowed", NULL))
                return true;
        if (code < 400)
                code = 400;
        fake_reply_failure(reply, (unsigned) code, isempty(reason) ? NULL : reason,
                           "admission webhook \"%s\" denied the request%s%s", name,
                           isempty(message) && isempty(reason) ? " without explanation" : ": ",
                           !isempty(message) ? message : strempty(reason));
        if (fj_get(status, "details", NULL))
                fj_set_copy(reply->status, "details", fj_get(status, "details", NULL));
        retry = fj_int(status, 0, "details", "retryAfterSeconds", NULL);
        if (retry > 0)
                reply->retry_after_sec = (unsigned) retry;
        return false;
}
