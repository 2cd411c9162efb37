/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-azure-metadata.h"

#include <inttypes.h>
#include <strings.h>

#include "fake-azure-identity.h"
#include "fake-fault.h"
#include "fake-query.h"
#include "strv.h"

#define LAPSE_USEC USEC_PER_DAY
#define RATE_PER_SEC 5u
#define IDENTITY_RATE_PER_SEC 20u

/* Instants of the newest requests, round and round. */
typedef struct Rate {
        usec_t at_usec[IDENTITY_RATE_PER_SEC];
        unsigned limit, next;
        bool full;
} Rate;

/* A question about events that waits until they are on. */
typedef struct Waiter {
        ListNode waiters;
        FakeAzureMetadata *azure;
        HttpExchange *x;
        char *api_version;
} Waiter;

struct FakeAzureMetadata {
        Loop *loop;
        FakeAzureEvents *events;
        FakeAzureIdentity *identity;
        char *name, *told_name, *vm_id, *subscription_id, *resource_group, *location, *zone, *vm_size,
                *scale_set, *instance;
        bool spot, unlimited;
        usec_t first_call_usec, watch_usec;

        bool on; /* scheduled events: asked for, and the first answer given */
        usec_t on_since_usec, last_asked_usec;
        Timer *turning_on;
        List waiters;

        Rate rate, identity_rate;
        FakeFault fault;
        size_t n_requests;
};

/* -- answers ------------------------------------------------------------------------------------------- */

static void reply(HttpExchange *x, unsigned status, const char *type, const char *body) {
        HttpHeader headers[] = { { "Content-Type", type }, { "Server", "IMDS/150.870.65.1854" } };

        x->ops->reply(x, status, headers, ELEMENTSOF(headers), body, strlen(body));
}

static void reply_json(HttpExchange *x, unsigned status, const char *body) {
        reply(x, status, "application/json; charset=utf-8", body);
}

static void reply_error(HttpExchange *x, unsigned status, const char *why) {
        static const struct {
                unsigned status;
                const char *text;
        } texts[] = {
                { 400, "Bad Request" }, { 404, "Not Found" },         { 405, "Method Not Allowed" },
                { 410, "Gone" },        { 429, "Too Many Requests" }, { 500, "Service Error" },
        };
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        _cleanup_free_ char *text = NULL;

        for (size_t i = 0; !why && i < ELEMENTSOF(texts); i++)
                if (texts[i].status == status)
                        why = texts[i].text;
        fj_set_string(o, "error", why ? why : "Error");
        text = fj_print(o);
        reply_json(x, status, text);
}

/* -- who may ask --------------------------------------------------------------------------------------- */

typedef struct Face {
        const char *path;
        unsigned part;
        bool below; /* what lies below it, too */
        const char *versions[8];
} Face;

static const Face faces[] = {
        { "/metadata/instance",
          FAKE_AZURE_INSTANCE,
          true,
          { "2023-07-01", "2021-12-13", "2021-02-01", "2020-09-01", "2019-06-01", "2018-10-01",
            "2017-12-01" } },
        { "/metadata/scheduledevents",
          FAKE_AZURE_EVENTS,
          false,
          { "2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01" } },
        { "/metadata/identity/oauth2/token",
          FAKE_AZURE_IDENTITY,
          false,
          { "2021-02-01", "2019-11-01", "2019-08-01", "2018-02-01" } },
};

static const Face *face_of(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(faces); i++) {
                const char *rest = startswith(path, faces[i].path);

                if (rest && (!*rest || (*rest == '/' && (faces[i].below || !rest[1]))))
                        return &faces[i];
        }
        return NULL;
}

/* False: there were as many in the last second as may be. */
static bool rate_allows(Rate *r, usec_t now) {
        if (r->full && now < usec_add(r->at_usec[r->next], USEC_PER_SEC))
                return false;
        r->at_usec[r->next] = now;
        r->next = (r->next + 1) % r->limit;
        r->full |= r->next == 0;
        return true;
}

static bool version_is_supported(const Face *face, const char *version) {
        for (size_t i = 0; i < ELEMENTSOF(face->versions) && face->versions[i]; i++)
                if (streq(face->versions[i], version))
                        return true;
        return false;
}

static void refuse_version(HttpExchange *x, const Face *face, const char *version) {
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        _cleanup_free_ char *text = NULL;

        fj_set_string(o, "error",
                      version ? "Bad request. api-version is invalid or was not specified in the request."
                              : "Bad request. api-version was not specified in the request");
        for (size_t i = 0; i < 3; i++)
                cJSON_AddItemToArray(fj_array(o, "newest-versions"),
                                     MUST(cJSON_CreateString(face->versions[i])));
        text = fj_print(o);
        reply_json(x, 400, text);
}

/* False: answered. */
static bool admit(FakeAzureMetadata *f, HttpExchange *x, const Face *face, const FakeQuery *q) {
        const char *metadata = http_header_find(x->headers, x->n_headers, "Metadata");
        const char *version = fake_query_get(q, "api-version");
        bool identity = face && face->part == FAKE_AZURE_IDENTITY;
        Rate *rate = identity ? &f->identity_rate : &f->rate;

        if (!rate_allows(rate, loop_now(f->loop)) && !f->unlimited)
                reply_error(x, 429, NULL);
        else if (http_header_find(x->headers, x->n_headers, "X-Forwarded-For"))
                reply_error(x, 400, "Bad request. X-Forwarded-For is not allowed");
        else if (!metadata || strcasecmp(metadata, "true") != 0) {
                if (identity)
                        fake_azure_identity_refuse(x, "bad_request_102",
                                                   "Required metadata header not specified");
                else
                        reply_error(x, 400, "Bad request. Required metadata header not specified");
        } else if (!face)
                reply_error(x, 404, NULL);
        else if (x->method != HTTP_GET && !(x->method == HTTP_POST && face->part == FAKE_AZURE_EVENTS))
                reply_error(x, 405, NULL);
        else if (q->repeated)
                reply_error(x, 400, "Bad request. A query parameter was given more than once");
        else if (!version || !version_is_supported(face, version))
                refuse_version(x, face, version);
        else
                return true;
        return false;
}

/* -- the instance -------------------------------------------------------------------------------------- */

static char *resource_id(const FakeAzureMetadata *f) {
        if (f->instance)
                return MUST(strf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/"
                                 "virtualMachineScaleSets/%s/virtualMachines/%s",
                                 f->subscription_id, f->resource_group, f->scale_set, f->instance));
        return MUST(
                strf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/virtualMachines/%s",
                     f->subscription_id, f->resource_group, f->name));
}

/* Every value is a string. */
static cJSON *build_instance(const FakeAzureMetadata *f) {
        cJSON *o = MUST(cJSON_CreateObject()), *compute = fj_object(o, "compute");
        _cleanup_free_ char *id = resource_id(f);

        fj_set_string(compute, "azEnvironment", "AzurePublicCloud");
        fj_set_string(compute, "evictionPolicy", f->spot ? "Delete" : "");
        fj_set_string(compute, "location", f->location);
        fj_set_string(compute, "name", strempty(f->told_name));
        fj_set_string(compute, "osType", "Linux");
        fj_set_string(compute, "platformFaultDomain", "0");
        fj_set_string(compute, "platformUpdateDomain", "0");
        fj_set_string(compute, "priority", f->spot ? "Spot" : "Regular");
        fj_set_string(compute, "resourceGroupName", f->resource_group);
        fj_set_string(compute, "resourceId", id);
        fj_set_string(compute, "subscriptionId", f->subscription_id);
        fj_set(compute, "tagsList", fj_parse("[{'name':'made-by','value':'fake'}]"));
        if (f->scale_set && !f->instance) {
                _cleanup_free_ char *set =
                        MUST(strf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/"
                                  "virtualMachineScaleSets/%s",
                                  f->subscription_id, f->resource_group, f->scale_set));

                fj_set_string(fj_object(compute, "virtualMachineScaleSet"), "id", set);
        } else
                fj_set_string(fj_object(compute, "virtualMachineScaleSet"), "id", "");
        fj_set_string(compute, "vmId", f->vm_id);
        fj_set_string(compute, "vmScaleSetName", strempty(f->scale_set));
        fj_set_string(compute, "vmSize", f->vm_size);
        fj_set_string(compute, "zone", f->zone);
        fj_set(o, "network",
               fj_parse("{'interface':[{'macAddress':'000D3AF806EC','ipv4':{'ipAddress':["
                        "{'privateIpAddress':'10.144.133.132','publicIpAddress':''}]}}]}"));
        return o;
}

/* "compute/name", "network/interface/0/macAddress" */
static const cJSON *find(const cJSON *node, const char *path) {
        _cleanup_strv_free_ char **parts = NULL;
        int r = strv_split(path, "/", &parts);

        assert(r >= 0);
        STRV_FOREACH (part, parts)
                if (cJSON_IsArray(node))
                        node = strspn(*part, "0123456789") == strlen(*part)
                                       ? cJSON_GetArrayItem(node, (int) strtoul(*part, NULL, 10))
                                       : NULL;
                else
                        node = cJSON_IsObject(node) ? fj_member(node, *part) : NULL;
        return node;
}

static char *list_names(const cJSON *node) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        const cJSON *child;
        unsigned i = 0;

        cJSON_ArrayForEach (child, node) {
                const char *slash = cJSON_IsString(child) ? "" : "/", *newline = child->next ? "\n" : "";

                if (child->string)
                        strbuf_addf(&b, "%s%s%s", child->string, slash, newline);
                else
                        strbuf_addf(&b, "%u%s%s", i++, slash, newline);
        }
        return MUST(b.size > 0 ? strbuf_steal(&b) : strdup(""));
}

static void serve_instance(FakeAzureMetadata *f, HttpExchange *x, const char *path, const FakeQuery *q) {
        const char *format = fake_query_get(q, "format");
        _cleanup_cjson_ cJSON *tree = build_instance(f);
        const cJSON *node = find(tree, path);
        bool text = format && strcasecmp(format, "text") == 0;
        _cleanup_free_ char *body = NULL;

        if (format && !text && strcasecmp(format, "json") != 0)
                reply_error(x, 400, "Bad request. format is invalid");
        else if (!node)
                reply_error(x, 404, NULL);
        else if (cJSON_IsString(node) && !text)
                reply_error(x, 400, "Bad request. A leaf node needs format=text");
        else if (cJSON_IsString(node))
                reply(x, 200, "text/plain; charset=utf-8", node->valuestring);
        else if (text) {
                body = list_names(node);
                reply(x, 200, "text/plain; charset=utf-8", body);
        } else {
                body = fj_print(node);
                reply_json(x, 200, body);
        }
}

/* -- scheduled events ---------------------------------------------------------------------------------- */

static void show_events(FakeAzureMetadata *f, HttpExchange *x, const char *api_version) {
        bool shown = loop_now(f->loop) >= usec_add(f->on_since_usec, f->watch_usec);
        _cleanup_free_ char *body =
                shown ? fake_azure_events_print(f->events, api_version) : fake_azure_events_print_none();

        reply_json(x, 200, body);
}

static void waiter_free(Waiter *w) {
        list_remove(&w->azure->waiters, &w->waiters);
        free(w->api_version);
        free(w);
}

static void turn_on(FakeAzureMetadata *f) {
        f->on = true;
        f->on_since_usec = loop_now(f->loop);
        LIST_FOREACH (w, &f->waiters, Waiter, waiters) {
                w->x->on_gone = NULL;
                show_events(f, w->x, w->api_version);
                waiter_free(w);
        }
}

static void on_turned_on(Timer *t, void *userdata) {
        turn_on(userdata);
}

static void on_waiter_gone(HttpExchange *x, void *userdata) {
        waiter_free(userdata);
}

/* The first answer takes its time, whether or not the one who asked waits for it. */
static void wait_until_on(FakeAzureMetadata *f, HttpExchange *x, const char *api_version) {
        Waiter *w = MUST(new0(Waiter, 1));

        w->azure = f;
        w->x = x;
        w->api_version = MUST(strdup(api_version));
        x->on_gone = on_waiter_gone;
        x->userdata = w;
        list_append(&f->waiters, &w->waiters);
        if (!timer_is_armed(f->turning_on))
                timer_arm_in(f->turning_on, f->first_call_usec);
}

static void ask_events(FakeAzureMetadata *f, HttpExchange *x, const char *api_version) {
        usec_t now = loop_now(f->loop);

        if (f->on && now >= usec_add(f->last_asked_usec, LAPSE_USEC))
                f->on = false;
        f->last_asked_usec = now;
        if (!f->on && f->first_call_usec > 0) {
                wait_until_on(f, x, api_version);
                return;
        }
        if (!f->on)
                turn_on(f);
        show_events(f, x, api_version);
}

static void approve(FakeAzureMetadata *f, HttpExchange *x) {
        _cleanup_cjson_ cJSON *o = cJSON_ParseWithLength(x->body ? x->body : "", x->body_size);
        const cJSON *requests = fj_get(o, "StartRequests", NULL), *request;

        f->last_asked_usec = loop_now(f->loop);
        if (!cJSON_IsArray(requests) || !requests->child) {
                reply_error(x, 400, "Bad request. StartRequests is missing");
                return;
        }
        cJSON_ArrayForEach (request, requests)
                if (!fj_string(request, "EventId", NULL)) {
                        reply_error(x, 400, "Bad request. EventId is missing");
                        return;
                }
        cJSON_ArrayForEach (request, requests)
                if (!fake_azure_events_approve(f->events, fj_string(request, "EventId", NULL))) {
                        reply_error(x, 400, "Bad request. There is no event of that EventId");
                        return;
                }
        reply_json(x, 200, "");
}

/* -- requests ------------------------------------------------------------------------------------------ */

/* True: the request has met its fate. */
static bool apply_fault(FakeAzureMetadata *f, HttpExchange *x, unsigned part) {
        const char *body;
        unsigned status;

        switch (fake_fault_meet(&f->fault, x, part, &status, &body)) {
        case FAKE_FATE_SERVED:
                return false;
        case FAKE_FATE_HANGS:
                break;
        case FAKE_FATE_FAILS:
                reply_error(x, status, NULL);
                break;
        case FAKE_FATE_GARBLED:
                reply_json(x, status, body);
                break;
        }
        return true;
}

void fake_azure_metadata_handle(HttpExchange *x, void *fake_azure_metadata) {
        FakeAzureMetadata *f = fake_azure_metadata;
        const Face *face = face_of(x->path);
        _cleanup_query_ FakeQuery q = { 0 };

        fake_query_init(&q, x->query);
        f->n_requests++;
        if (apply_fault(f, x, face ? face->part : FAKE_AZURE_INSTANCE) || !admit(f, x, face, &q))
                return;
        if (face->part == FAKE_AZURE_INSTANCE)
                serve_instance(f, x, startswith(x->path, face->path), &q);
        else if (face->part == FAKE_AZURE_IDENTITY)
                fake_azure_identity_give(f->identity, x, &q);
        else if (x->method == HTTP_POST)
                approve(f, x);
        else
                ask_events(f, x, fake_query_get(&q, "api-version"));
}

/* -- knobs --------------------------------------------------------------------------------------------- */

void fake_azure_metadata_set_name(FakeAzureMetadata *f, const char *name) {
        int r = free_and_strdup(&f->told_name, name);

        assert(r >= 0);
}

void fake_azure_metadata_hang(FakeAzureMetadata *f, unsigned parts, unsigned n) {
        fake_fault_set(&f->fault, parts, n, 0, NULL);
}

void fake_azure_metadata_fail(FakeAzureMetadata *f, unsigned parts, unsigned n, unsigned status) {
        fake_fault_set(&f->fault, parts, n, status, NULL);
}

void fake_azure_metadata_garble(FakeAzureMetadata *f, unsigned parts, unsigned n, const char *body) {
        fake_fault_set(&f->fault, parts, n, 200, body);
}

void fake_azure_metadata_set_unlimited(FakeAzureMetadata *f, bool on) {
        f->unlimited = on;
}

size_t fake_azure_metadata_n_requests(const FakeAzureMetadata *f) {
        return f->n_requests;
}

bool fake_azure_metadata_is_watching(const FakeAzureMetadata *f) {
        return f->on && loop_now(f->loop) < usec_add(f->last_asked_usec, LAPSE_USEC);
}

bool fake_azure_metadata_token_is_good(const FakeAzureMetadata *f, const char *token, const char *resource) {
        return fake_azure_identity_token_is_good(f->identity, token, resource);
}

/* -- life ---------------------------------------------------------------------------------------------- */

static char *copy(const char *s, const char *otherwise) {
        return s || otherwise ? MUST(strdup(s ? s : otherwise)) : NULL;
}

FakeAzureMetadata *fake_azure_metadata_new(Loop *loop, FakeAzureEvents *events,
                                           const FakeAzureMetadataOptions *o) {
        FakeAzureMetadata *f = MUST(new0(FakeAzureMetadata, 1));
        int r;

        *f = (FakeAzureMetadata){
                .loop = loop,
                .events = events,
                .name = copy(o->name, NULL),
                .told_name = copy(o->name, NULL),
                .vm_id = copy(o->vm_id, "02aab8a4-74ef-476e-8182-f6d2ba4166a6"),
                .subscription_id = copy(o->subscription_id, "8d10da13-8125-4ba9-a717-bf7490507b3d"),
                .resource_group = copy(o->resource_group, "Fake-RG"),
                .location = copy(o->location, "westeurope"),
                .zone = copy(o->zone, "1"),
                .vm_size = copy(o->vm_size, "Standard_D4s_v5"),
                .scale_set = copy(o->scale_set, NULL),
                .instance = copy(o->instance, NULL),
                .spot = o->spot,
                .first_call_usec = o->first_call_usec,
                .watch_usec = o->watch_usec,
                .rate.limit = RATE_PER_SEC,
                .identity_rate.limit = IDENTITY_RATE_PER_SEC,
        };
        assert(!f->instance || f->scale_set);
        f->identity = fake_azure_identity_new(loop, f->vm_id, !o->no_system_identity, o->user_identities);
        r = timer_new(loop, "fake-azure-first-call", on_turned_on, f, &f->turning_on);
        assert(r >= 0);
        return f;
}

FakeAzureMetadata *fake_azure_metadata_free(FakeAzureMetadata *f) {
        if (!f)
                return NULL;
        assert(f->waiters.size == 0);
        timer_free(f->turning_on);
        fake_azure_identity_free(f->identity);
        fake_fault_done(&f->fault);
        free(f->name);
        free(f->told_name);
        free(f->vm_id);
        free(f->subscription_id);
        free(f->resource_group);
        free(f->location);
        free(f->zone);
        free(f->vm_size);
        free(f->scale_set);
        free(f->instance);
        return mfree(f);
}
