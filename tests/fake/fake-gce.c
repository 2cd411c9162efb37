/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-gce.h"

#include <inttypes.h>
#include <stdio.h>

#include "fake-gce-model.h"
#include "parse-util.h"
#include "strv.h"

#define BASE "https://www.googleapis.com/compute/v1/"
#define PREFIX "/compute/v1/projects/"
#define NIL_UUID "00000000-0000-0000-0000-000000000000"
#define PAGE_MAX 500u
#define DELETE_MAX 1000
#define ARGS_MAX 3

typedef struct Request {
        FakeGce *f;
        HttpExchange *x;
        FakeQuery query;
        char **path; /* behind projects/PROJECT/ */
        const char *args[ARGS_MAX];
        char *scope; /* "zones/Z" or "regions/R" */
        cJSON *body;
} Request;

/* Somebody waits for an operation. */
typedef struct Wait {
        ListNode waits;
        FakeGce *f;
        GceOperation *operation;
        HttpExchange *x;
        Timer *timer;
} Wait;

/* -- answers ------------------------------------------------------------------------------------------- */

static void reply(Request *r, const cJSON *o) {
        fake_rest_reply(r->x, 200, NULL, 0, o);
}

static const char *status_name(unsigned status) {
        static const struct {
                unsigned status;
                const char *name;
        } names[] = {
                { 400, "INVALID_ARGUMENT" },   { 401, "UNAUTHENTICATED" }, { 403, "PERMISSION_DENIED" },
                { 404, "NOT_FOUND" },          { 409, "ABORTED" },         { 412, "FAILED_PRECONDITION" },
                { 429, "RESOURCE_EXHAUSTED" }, { 503, "UNAVAILABLE" },
        };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (names[i].status == status)
                        return names[i].name;
        return "INTERNAL";
}

static void send_error(HttpExchange *x, unsigned status, const char *reason, const char *message) {
        bool limit = endswith(reason, "LimitExceeded") || streq(reason, "quotaExceeded");
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        cJSON *error = fj_object(o, "error"), *one = MUST(cJSON_CreateObject());
        HttpHeader challenge = { "WWW-Authenticate", "Bearer realm=\"https://accounts.google.com/\"" };

        fj_set_int(error, "code", status);
        fj_set_string(error, "message", message);
        fj_set_string(one, "message", message);
        fj_set_string(one, "domain", limit ? "usageLimits" : "global");
        fj_set_string(one, "reason", reason);
        cJSON_AddItemToArray(fj_array(error, "errors"), one);
        fj_set_string(error, "status", status_name(status));
        fake_rest_reply(x, status, &challenge, status == 401 ? 1 : 0, o);
}

_printf_(4, 5) static void refuse(Request *r, unsigned status, const char *reason, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        send_error(r->x, status, reason, strbuf_str(&b));
}

static void refuse_not_found(Request *r, const char *target) {
        refuse(r, 404, "notFound", "The resource '%s' was not found", target);
}

static void set_id(cJSON *o, const char *key, uint64_t id) {
        _cleanup_free_ char *text = MUST(strf("%" PRIu64, id));

        fj_set_string(o, key, text);
}

static void set_url(cJSON *o, const char *key, const char *target) {
        _cleanup_free_ char *url = MUST(strf(BASE "%s", target));

        fj_set_string(o, key, url);
}

static char *instance_target(const FakeGce *f, const char *zone, const char *name) {
        return MUST(strf("projects/%s/zones/%s/instances/%s", f->project, zone, name));
}

static void set_scope(const FakeGce *f, cJSON *o, const char *scope) {
        _cleanup_free_ char *target = MUST(strf("projects/%s/%s", f->project, scope));

        set_url(o, startswith(scope, "zones/") ? "zone" : "region", target);
}

static cJSON *instance_json(const FakeGce *f, const GceInstance *i) {
        _cleanup_free_ char *target = instance_target(f, i->zone, i->name), *scope = NULL, *type = NULL,
                            *print = NULL;
        cJSON *o = fj_parse("{'kind':'compute#instance'}");
        char created[RFC3339_MAX];

        scope = MUST(strf("zones/%s", i->zone));
        type = MUST(strf("projects/%s/zones/%s/machineTypes/n2-standard-4", f->project, i->zone));
        print = MUST(strf("%016" PRIx64 "=", hash64(&i->id, sizeof(i->id))));
        rfc3339_format(loop_to_wall(f->rest.loop, i->created_usec), created);
        set_id(o, "id", i->id);
        fj_set_string(o, "creationTimestamp", created);
        fj_set_string(o, "name", i->name);
        fj_set_string(o, "status", gce_instance_status(f, i));
        set_scope(f, o, scope);
        set_url(o, "machineType", type);
        fj_set_copy(o, "labels", i->labels->child ? i->labels : NULL);
        fj_set_string(o, "labelFingerprint", print);
        fj_set_string(o, "fingerprint", print);
        fj_set_bool(o, "deletionProtection", i->protected);
        fj_set(o, "scheduling",
               fj_parse("{'onHostMaintenance':'TERMINATE','preemptible':true,"
                        "'provisioningModel':'SPOT','instanceTerminationAction':'DELETE'}"));
        if (i->group) {
                cJSON *item = fj_parse("{'key':'created-by'}"), *metadata = fj_object(o, "metadata");
                _cleanup_free_ char *group = MUST(strf("projects/%s/%s/instanceGroupManagers/%s", f->project,
                                                       i->group->scope, i->group->name));

                fj_set_string(item, "value", group);
                fj_set_string(metadata, "fingerprint", print);
                cJSON_AddItemToArray(fj_array(metadata, "items"), item);
        }
        set_url(o, "selfLink", target);
        return o;
}

static cJSON *operation_json(const FakeGce *f, const GceOperation *op) {
        usec_t now = loop_now(f->rest.loop);
        bool done = now >= op->done_usec, runs = now >= op->running_usec;
        _cleanup_free_ char *self =
                MUST(strf("projects/%s/%s/operations/%s", f->project, op->scope, op->name));
        cJSON *o = fj_parse("{'kind':'compute#operation'}");
        char time[RFC3339_MAX];

        rfc3339_format(op->inserted_wall_usec, time);
        set_id(o, "id", op->id);
        fj_set_string(o, "name", op->name);
        fj_set_string(o, "operationType", op->type);
        set_url(o, "targetLink", op->target);
        set_id(o, "targetId", op->target_id);
        fj_set_string(o, "status", done ? "DONE" : runs ? "RUNNING" : "PENDING");
        fj_set_string(o, "user", "vesper@example.iam.gserviceaccount.com");
        fj_set_int(o, "progress", done ? 100 : 0);
        fj_set_string(o, "insertTime", time);
        set_scope(f, o, op->scope);
        set_url(o, "selfLink", self);
        if (done && op->code) {
                cJSON *e = MUST(cJSON_CreateObject());

                fj_set_string(e, "code", op->code);
                fj_set_string(e, "message", op->message);
                cJSON_AddItemToArray(fj_array(fj_object(o, "error"), "errors"), e);
                fj_set_int(o, "httpErrorStatusCode", op->http_status);
                fj_set_string(o, "httpErrorMessage", status_name(op->http_status));
        }
        return o;
}

static void reply_operation(Request *r, const GceOperation *op) {
        _cleanup_cjson_ cJSON *o = operation_json(r->f, op);

        reply(r, o);
}

/* -- pages -------------------------------------------------------------------------------------------- */

typedef struct Page {
        uint64_t first, size;
} Page;

static bool take_page(Request *r, Page *ret) {
        const char *max = fake_query_get(&r->query, "maxResults"),
                   *token = fake_query_get(&r->query, "pageToken");

        *ret = (Page) { .size = PAGE_MAX };
        if (max && parse_uint64_range(max, 1, PAGE_MAX, &ret->size) < 0) {
                refuse(r, 400, "invalid",
                       "Invalid value for field 'maxResults': '%s'. Must be from 1 to 500 here.", max);
                return false;
        }
        if (token && (!startswith(token, "page+") || parse_uint64(token + 5, &ret->first) < 0)) {
                refuse(r, 400, "invalid", "Invalid value for field 'pageToken': '%s'.", token);
                return false;
        }
        return true;
}

static void set_next(cJSON *o, const Page *page, uint64_t n) {
        _cleanup_free_ char *token = MUST(strf("page+%" PRIu64, page->first + page->size));

        if (n > page->first + page->size)
                fj_set_string(o, "nextPageToken", token);
}

/* -- instances ----------------------------------------------------------------------------------------- */

/* NULL: the error was sent. */
static GceInstance *take_instance(Request *r) {
        GceInstance *i = gce_find_instance(r->f, r->args[0], r->args[1]);
        _cleanup_free_ char *target = instance_target(r->f, r->args[0], r->args[1]);

        if (i && gce_instance_status(r->f, i))
                return i;
        refuse_not_found(r, target);
        return NULL;
}

static void get_instance(Request *r) {
        GceInstance *i = take_instance(r);
        _cleanup_cjson_ cJSON *o = i ? instance_json(r->f, i) : NULL;

        if (i)
                reply(r, o);
}

/* The instances of a zone, or of all; false: the error was sent. */
static bool list(Request *r, const char *zone, cJSON *o,
                 cJSON *(*array_for)(cJSON *o, const GceInstance *i)) {
        const char *filter = fake_query_get(&r->query, "filter");
        uint64_t n = 0;
        Page page;

        if (!take_page(r, &page))
                return false;
        LIST_FOREACH (i, &r->f->instances, GceInstance, instances) {
                int fits;

                if (!gce_instance_status(r->f, i) || (zone && !streq(i->zone, zone)))
                        continue;
                fits = gce_filter_fits(r->f, i, filter);
                if (fits < 0) {
                        refuse(r, 400, "invalid",
                               "Invalid value for field 'filter': '%s'. Invalid list filter expression.",
                               filter);
                        return false;
                }
                if (fits == 0)
                        continue;
                if (n >= page.first && n < page.first + page.size)
                        cJSON_AddItemToArray(array_for(o, i), instance_json(r->f, i));
                n++;
        }
        set_next(o, &page, n);
        return true;
}

static cJSON *items(cJSON *o, const GceInstance *i) {
        return fj_array(o, "items");
}

static cJSON *items_of_zone(cJSON *o, const GceInstance *i) {
        _cleanup_free_ char *scope = MUST(strf("zones/%s", i->zone));

        return fj_array(fj_object(fj_object(o, "items"), scope), "instances");
}

/* "items" is absent when there are none. */
static void list_instances(Request *r) {
        _cleanup_cjson_ cJSON *o = fj_parse("{'kind':'compute#instanceList'}");

        if (list(r, r->args[0], o, items))
                reply(r, o);
}

static void list_all_instances(Request *r) {
        _cleanup_cjson_ cJSON *o = fj_parse("{'kind':'compute#instanceAggregatedList'}");

        if (list(r, NULL, o, items_of_zone))
                reply(r, o);
}

static bool is_uuid(const char *s) {
        if (strlen(s) != 36)
                return false;
        for (size_t i = 0; i < 36; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;

                if (dash ? s[i] != '-' : !strchr("0123456789abcdefABCDEF", s[i]))
                        return false;
        }
        return true;
}

/* True: the request is answered: by the operation it began before, or refused. */
static bool play_request_id(Request *r) {
        const char *id = fake_query_get(&r->query, "requestId");
        const GceOperation *op = gce_find_request(r->f, id);

        if (id && (!is_uuid(id) || streq(id, NIL_UUID))) {
                refuse(r, 400, "invalid",
                       "Invalid value for field 'requestId': '%s'. Must be a UUID, and not zero.", id);
                return true;
        }
        if (op)
                reply_operation(r, op);
        return op;
}

static void delete_instance(Request *r) {
        bool graceful = !streq_ptr(fake_query_get(&r->query, "noGracefulShutdown"), "true");
        _cleanup_free_ char *target = instance_target(r->f, r->args[0], r->args[1]);
        GceInstance *i;
        GceOperation *op;

        if (play_request_id(r))
                return;
        i = take_instance(r);
        if (!i)
                return;
        if (i->protected)
                return refuse(r, 400, "invalidResourceUsage",
                              "Invalid resource usage: 'Resource cannot be deleted if it's protected "
                              "against deletion.'.");
        op = gce_add_operation(r->f, r->scope, "delete", target, i->id,
                               fake_query_get(&r->query, "requestId"), 0);
        if (!gce_operation_fails(r->f, op))
                op->done_usec = gce_delete_instance(r->f, i, graceful);
        reply_operation(r, op);
}

/* -- operations ---------------------------------------------------------------------------------------- */

static GceOperation *take_operation(Request *r) {
        GceOperation *op = gce_find_operation(r->f, r->scope, r->args[1]);
        _cleanup_free_ char *target =
                MUST(strf("projects/%s/%s/operations/%s", r->f->project, r->scope, r->args[1]));

        if (!op)
                refuse_not_found(r, target);
        return op;
}

static void get_operation(Request *r) {
        const GceOperation *op = take_operation(r);

        if (op)
                reply_operation(r, op);
}

static void wait_free(Wait *w) {
        list_remove(&w->f->waits, &w->waits);
        timer_free(w->timer);
        free(w);
}

static void on_wait_over(Timer *t, void *userdata) {
        Wait *w = userdata;
        _cleanup_cjson_ cJSON *o = operation_json(w->f, w->operation);
        HttpExchange *x = w->x;

        wait_free(w);
        fake_rest_reply(x, 200, NULL, 0, o);
}

static void on_wait_gone(HttpExchange *x, void *userdata) {
        wait_free(userdata);
}

static void wait_operation(Request *r) {
        GceOperation *op = take_operation(r);
        usec_t now = loop_now(r->f->rest.loop);
        Wait *w;
        int k;

        if (!op)
                return;
        if (op->done_usec <= now)
                return reply_operation(r, op);
        w = MUST(new0(Wait, 1));
        *w = (Wait) { .f = r->f, .operation = op, .x = r->x };
        k = timer_new(r->f->rest.loop, "fake-gce-wait", on_wait_over, w, &w->timer);
        assert(k >= 0);
        list_append(&r->f->waits, &w->waits);
        r->x->on_gone = on_wait_gone;
        r->x->userdata = w;
        timer_arm(w->timer, MIN(op->done_usec, usec_add(now, r->f->wait_usec)));
}

/* -- managed instance groups --------------------------------------------------------------------------- */

static char *group_target(const FakeGce *f, const char *scope, const char *name) {
        return MUST(strf("projects/%s/%s/instanceGroupManagers/%s", f->project, scope, name));
}

static GceGroup *take_group(Request *r) {
        GceGroup *g = gce_find_group(r->f, r->scope, r->args[1]);
        _cleanup_free_ char *target = group_target(r->f, r->scope, r->args[1]);

        if (!g)
                refuse_not_found(r, target);
        return g;
}

static const char *current_action(const FakeGce *f, const GceInstance *i) {
        usec_t now = loop_now(f->rest.loop);

        if (gce_is_ending(i))
                return i->removed ? "DELETING" : "NONE";
        return now >= i->running_usec ? "NONE" : i->again ? "RECREATING" : "CREATING";
}

static void get_group(Request *r) {
        static const char *const actions[] = { "none", "creating", "recreating", "deleting" };
        const GceGroup *g = take_group(r);
        _cleanup_free_ char *target = NULL;
        _cleanup_cjson_ cJSON *o = NULL;
        int64_t n[ELEMENTSOF(actions)] = { 0 };

        if (!g)
                return;
        o = fj_parse("{'kind':'compute#instanceGroupManager','fingerprint':'%016" PRIx64 "='}",
                     hash64(&g->size, sizeof(g->size)));
        target = group_target(r->f, g->scope, g->name);
        set_id(o, "id", g->id);
        fj_set_string(o, "name", g->name);
        fj_set_string(o, "baseInstanceName", g->name);
        set_scope(r->f, o, g->scope);
        fj_set_int(o, "targetSize", g->size);
        LIST_FOREACH (i, &r->f->instances, GceInstance, instances) {
                const char *action = current_action(r->f, i);

                if (i->group == g)
                        n[streq(action, "CREATING")     ? 1
                          : streq(action, "RECREATING") ? 2
                          : streq(action, "DELETING")   ? 3
                                                        : 0]++;
        }
        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                fj_set_int(fj_object(o, "currentActions"), actions[i], n[i]);
        fj_set_bool(fj_object(o, "status"), "isStable", n[1] + n[2] + n[3] == 0);
        set_url(o, "selfLink", target);
        reply(r, o);
}

static void list_managed(Request *r) {
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        const GceGroup *g = take_group(r);
        uint64_t n = 0;
        Page page;

        if (!g || !take_page(r, &page))
                return;
        LIST_FOREACH (i, &r->f->instances, GceInstance, instances) {
                const char *status = gce_instance_status(r->f, i);
                _cleanup_free_ char *target = instance_target(r->f, i->zone, i->name);
                cJSON *m;

                if (i->group != g)
                        continue;
                if (n >= page.first && n < page.first + page.size) {
                        m = MUST(cJSON_CreateObject());
                        set_url(m, "instance", target);
                        set_id(m, "id", i->id);
                        if (status)
                                fj_set_string(m, "instanceStatus", status);
                        fj_set_string(m, "currentAction", current_action(r->f, i));
                        cJSON_AddItemToArray(fj_array(o, "managedInstances"), m);
                }
                n++;
        }
        set_next(o, &page, n);
        reply(r, o);
}

/* "zones/Z/instances/N", with or without what a full URL has before. NULL: no member of the group. */
static GceInstance *member_of(const FakeGce *f, const GceGroup *g, const char *url) {
        _cleanup_free_ char *ours = MUST(strf("projects/%s/", f->project));
        _cleanup_strv_free_ char **path = NULL;
        const char *rest = strstr(url, "projects/"), *args[ARGS_MAX];
        GceInstance *i;

        if (rest)
                rest = startswith(rest, ours);
        else
                rest = url;
        if (!rest)
                return NULL;
        path = fake_path_split(rest);
        if (!fake_path_is(path, "zones/*/instances/*", false, args, ELEMENTSOF(args)))
                return NULL;
        i = gce_find_instance(f, args[0], args[1]);
        return i && i->group == g ? i : NULL;
}

/* False: the error was sent. */
static bool check_members(Request *r, const GceGroup *g, const cJSON *urls) {
        const cJSON *m, *url;

        cJSON_ArrayForEach (m, r->body)
                if (!streq(m->string, "instances") && !streq(m->string, "skipInstancesOnValidationError")) {
                        refuse(r, 400, "invalid",
                               "Invalid JSON payload received. Unknown name \"%s\": Cannot find field.",
                               m->string);
                        return false;
                }
        if (cJSON_GetArraySize(urls) < 1 || cJSON_GetArraySize(urls) > DELETE_MAX) {
                refuse(r, 400, "invalid", "Invalid value for field 'instances': 1 to 1000 are needed.");
                return false;
        }
        cJSON_ArrayForEach (url, urls)
                if (!cJSON_IsString(url) || (!fj_true(r->body, "skipInstancesOnValidationError", NULL) &&
                                             !member_of(r->f, g, url->valuestring))) {
                        refuse(r, 400, "invalid",
                               "Invalid value for field 'instances': '%s'. It is not a member of the "
                               "managed instance group.",
                               cJSON_IsString(url) ? url->valuestring : "");
                        return false;
                }
        return true;
}

static GceOperation *group_operation(Request *r, const GceGroup *g, const char *type) {
        _cleanup_free_ char *target = group_target(r->f, g->scope, g->name);

        return gce_add_operation(r->f, r->scope, type, target, g->id, fake_query_get(&r->query, "requestId"),
                                 0);
}

static void delete_members(Request *r) {
        const cJSON *urls = fj_member(r->body, "instances"), *url;
        GceGroup *g = take_group(r);
        GceOperation *op;

        if (!g || play_request_id(r) || !check_members(r, g, urls))
                return;
        op = group_operation(r, g, "compute.instanceGroupManagers.deleteInstances");
        if (!gce_operation_fails(r->f, op))
                cJSON_ArrayForEach (url, urls) {
                        GceInstance *i = member_of(r->f, g, url->valuestring);

                        if (!i || i->removed)
                                continue;
                        i->removed = true;
                        g->size -= g->size > 0;
                        gce_delete_instance(r->f, i, true);
                }
        reply_operation(r, op);
}

static void resize_group(Request *r) {
        const char *size = fake_query_get(&r->query, "size");
        GceGroup *g = take_group(r);
        GceOperation *op;
        uint64_t n;

        if (!g || play_request_id(r))
                return;
        if (!size)
                return refuse(r, 400, "required", "Required parameter: size");
        if (parse_uint64_range(size, 0, 1000, &n) < 0)
                return refuse(r, 400, "invalid", "Invalid value for field 'size': '%s'.", size);
        op = group_operation(r, g, "compute.instanceGroupManagers.resize");
        if (!gce_operation_fails(r->f, op)) {
                g->size = (unsigned) n;
                gce_group_fill(r->f, g);
        }
        reply_operation(r, op);
}

/* -- a request ----------------------------------------------------------------------------------------- */

static const struct Route {
        const char *name;
        HttpMethod method;
        const char *pattern;
        const char *query[6];
        void (*act)(Request *r);
} routes[] = {
        { "instances.aggregatedList",
          HTTP_GET,
          "aggregated/instances",
          { "filter", "maxResults", "pageToken", "orderBy", "returnPartialSuccess" },
          list_all_instances },
        { "instances.list",
          HTTP_GET,
          "zones/*/instances",
          { "filter", "maxResults", "pageToken", "orderBy", "returnPartialSuccess" },
          list_instances },
        { "instances.get", HTTP_GET, "zones/*/instances/*", { NULL }, get_instance },
        { "instances.delete",
          HTTP_DELETE,
          "zones/*/instances/*",
          { "requestId", "noGracefulShutdown" },
          delete_instance },
        { "zoneOperations.get", HTTP_GET, "zones/*/operations/*", { NULL }, get_operation },
        { "zoneOperations.wait", HTTP_POST, "zones/*/operations/*/wait", { NULL }, wait_operation },
        { "regionOperations.get", HTTP_GET, "regions/*/operations/*", { NULL }, get_operation },
        { "regionOperations.wait", HTTP_POST, "regions/*/operations/*/wait", { NULL }, wait_operation },
        { "instanceGroupManagers.get", HTTP_GET, "zones/*/instanceGroupManagers/*", { NULL }, get_group },
        { "instanceGroupManagers.listManagedInstances",
          HTTP_POST,
          "zones/*/instanceGroupManagers/*/listManagedInstances",
          { "maxResults", "pageToken" },
          list_managed },
        { "instanceGroupManagers.deleteInstances",
          HTTP_POST,
          "zones/*/instanceGroupManagers/*/deleteInstances",
          { "requestId" },
          delete_members },
        { "instanceGroupManagers.resize",
          HTTP_POST,
          "zones/*/instanceGroupManagers/*/resize",
          { "requestId", "size" },
          resize_group },
        { "regionInstanceGroupManagers.get",
          HTTP_GET,
          "regions/*/instanceGroupManagers/*",
          { NULL },
          get_group },
        { "regionInstanceGroupManagers.listManagedInstances",
          HTTP_POST,
          "regions/*/instanceGroupManagers/*/listManagedInstances",
          { "maxResults", "pageToken" },
          list_managed },
        { "regionInstanceGroupManagers.deleteInstances",
          HTTP_POST,
          "regions/*/instanceGroupManagers/*/deleteInstances",
          { "requestId" },
          delete_members },
        { "regionInstanceGroupManagers.resize",
          HTTP_POST,
          "regions/*/instanceGroupManagers/*/resize",
          { "requestId", "size" },
          resize_group },
};

/* NULL: the error was sent. */
static const struct Route *find_route(Request *r) {
        for (size_t i = 0; i < ELEMENTSOF(routes); i++)
                if (routes[i].method == r->x->method &&
                    fake_path_is(r->path, routes[i].pattern, false, r->args, ARGS_MAX))
                        return &routes[i];
        refuse(r, 404, "notFound", "Not Found: %s %s is not played here",
               http_method_to_string(r->x->method), r->x->path);
        return NULL;
}

/* False: refused. */
static bool check_bearer(Request *r) {
        switch (fake_rest_bearer(&r->f->rest, r->x)) {
        case FAKE_BEARER_GOOD:
                return true;
        case FAKE_BEARER_MISSING:
                refuse(r, 401, "required",
                       "Request is missing required authentication credential. Expected OAuth 2 access "
                       "token, login cookie "
                       "or other valid authentication credential.");
                return false;
        case FAKE_BEARER_UNKNOWN:
        case FAKE_BEARER_EXPIRED:
                refuse(r, 401, "authError",
                       "Request had invalid authentication credentials. Expected OAuth 2 access token, "
                       "login cookie or "
                       "other valid authentication credential.");
                return false;
        }
        return false;
}

/* The project must be ours, zone or region must exist. False: refused. */
static bool check_place(Request *r, char *const *path) {
        if (!streq(path[3], r->f->project)) {
                _cleanup_free_ char *target = MUST(strf("projects/%s", path[3]));

                refuse_not_found(r, target);
                return false;
        }
        if (!streq(path[4], "zones") && !streq(path[4], "regions"))
                return true;
        r->scope = MUST(strf("%s/%s", path[4], path[5]));
        if (gce_scope_exists(r->f, r->scope))
                return true;
        refuse(r, 400, "invalid", "Invalid value for field '%s': '%s'. Unknown %s.",
               streq(path[4], "zones") ? "zone" : "region", path[5],
               streq(path[4], "zones") ? "zone" : "region");
        return false;
}

static void send_trouble(HttpExchange *x, const FakeTrouble *t) {
        send_error(x, t->status, t->code, t->message);
}

static void handle(Request *r, char **path) {
        const struct Route *route;
        const char *unknown;

        if (!check_bearer(r))
                return;
        if (!startswith(r->x->path, PREFIX) || strv_length(path) < 6)
                return refuse(r, 404, "notFound", "Not Found: %s is not played here", r->x->path);
        r->path = path + 4;
        gce_advance(r->f);
        if (!check_place(r, path))
                return;
        route = find_route(r);
        if (!route || fake_rest_play_trouble(&r->f->rest, route->name, &r->x, send_trouble))
                return;
        unknown = fake_query_unknown(&r->query, route->query, ELEMENTSOF(route->query));
        if (unknown || r->query.repeated)
                return refuse(r, 400, "badRequest", "Invalid query parameter \"%s\"",
                              unknown ? unknown : "(repeated)");
        if (r->x->body_size > 0 && !cJSON_IsObject(r->body))
                return refuse(r, 400, "parseError", "Parse Error");
        route->act(r);
}

void fake_gce_handle(HttpExchange *x, void *fake_gce) {
        Request r = { .f = fake_gce, .x = x };
        _cleanup_strv_free_ char **path = fake_path_split(x->path);

        fake_query_init(&r.query, x->query);
        if (x->body_size > 0)
                r.body = cJSON_ParseWithLength(x->body, x->body_size);
        handle(&r, path);
        fake_query_done(&r.query);
        cJSON_Delete(r.body);
        free(r.scope);
}
