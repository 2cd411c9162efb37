/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake-date.h"
#include "fake-handlers.h"
#include "fake-protobuf.h"
#include "hashmap.h"
#include "strv.h"

#define VERSION_JSON \
        "{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":\"v1.34.4\",\"gitTreeState\":\"clean\"," \
        "\"goVersion\":\"go1.24.0\"," \
        "\"compiler\":\"gc\",\"platform\":\"linux/amd64\"}"

/* A request that a fault holds back. */
typedef struct Delayed {
        ListNode delayed;
        FakeApi *api;
        HttpExchange *x;
        FakeApiFault fault;
        Timer *timer;
} Delayed;

static void delayed_free(Delayed *d) {
        list_remove(&d->api->delayed, &d->delayed);
        timer_free(d->timer);
        free(d);
}

/* The answer began and never came: both faces can do that, and a client must think that it may have taken
 * effect. */
static void break_off(HttpExchange *x) {
        x->ops->stream_begin(x, 200, NULL, 0);
        x->ops->stream_end(x, false);
}

static void on_change(const FakeChange *change, void *userdata) {
        fake_watches_changed(userdata);
}

FakeApi *fake_api_new(Loop *loop, Random *random, FakeStore *store, FakeAuthz *authz,
                      const FakeApiOptions *options) {
        FakeApi *a = MUST(new0(FakeApi, 1));
        int r;

        a->loop = loop;
        a->random = random;
        a->store = store;
        a->authz = authz;
        a->options = options ? *options : (FakeApiOptions){ 0 };
        r = timer_new(loop, "fake-watch-pump", fake_watches_pump, a, &a->pump);
        assert(r >= 0);
        r = hashmap_new(0, &a->counters);
        assert(r >= 0);
        fake_store_observe(store, on_change, a);
        return a;
}

FakeApi *fake_api_free(FakeApi *a) {
        if (!a)
                return NULL;

        fake_watches_cut(a, false);
        LIST_FOREACH (d, &a->delayed, Delayed, delayed) {
                HttpExchange *x = d->x;

                x->on_gone = NULL;
                delayed_free(d);
                break_off(x);
        }
        fake_callouts_cut(a, break_off);
        fake_api_log_reset(a);
        free(a->deaf);
        free(a->log);
        hashmap_free(a->counters);
        timer_free(a->pump);
        for (size_t i = 0; i < ELEMENTSOF(a->schemas); i++)
                cJSON_Delete(a->schemas[i]);
        return mfree(a);
}

void fake_api_set_schema(FakeApi *a, FakeResourceId id, cJSON *schema) {
        assert(fake_resource(id)->custom);
        cJSON_Delete(a->schemas[id]);
        a->schemas[id] = schema;
}

void fake_api_set_webhook_transport(FakeApi *a, HttpTransport *transport) {
        a->webhook_transport = transport;
}

void fake_api_spare_from_webhooks(FakeApi *a, const char *prefix) {
        a->spared_prefix = prefix;
}

/* -- the answer ---------------------------------------------------------------------------------------- */

/* Statuses, too; they are made as JSON. */
static void encode_status(FakeReply *reply) {
        unsigned retry_after_sec = reply->retry_after_sec;
        StrBuf b = { 0 };

        if (!reply->status)
                return;
        fake_protobuf_add_status(&b, reply->status);
        fake_reply_protobuf(reply, reply->code, &b);
        reply->retry_after_sec = retry_after_sec;
}

static void send_reply(const FakeApi *a, HttpExchange *x, const FakeReply *reply, char *const *warnings) {
        _cleanup_free_ char *printed = reply->status ? fj_print(reply->status) : NULL;
        _cleanup_free_ HttpHeader *headers = MUST(new0(HttpHeader, 3 + strv_length(warnings)));
        const char *body = printed ? printed : strempty(reply->text);
        size_t size = printed ? strlen(printed) : reply->size;
        _cleanup_strv_free_ char **texts = NULL;
        char retry[16], date[FAKE_DATE_MAX];
        size_t n = 0;

        headers[n++] = (HttpHeader){ "Content-Type",
                                     reply->content_type ? reply->content_type : "application/json" };
        fake_date_format(loop_wall(a->loop), date);
        if (!a->date || *a->date)
                headers[n++] = (HttpHeader){ "Date", a->date ? a->date : date };
        snprintf(retry, sizeof(retry), "%u", reply->retry_after_sec);
        if (reply->retry_after_sec > 0)
                headers[n++] = (HttpHeader){ "Retry-After", retry };
        STRV_FOREACH (w, warnings) {
                _cleanup_free_ char *text = MUST(strf("299 - \"%s\"", *w));
                int r = strv_extend(&texts, text);

                assert(r >= 0);
        }
        STRV_FOREACH (t, texts)
                headers[n++] = (HttpHeader){ "Warning", *t };
        x->ops->reply(x, reply->code, headers, n, body, size);
}

static void not_served(FakeReply *reply) {
        fake_reply_text(reply, 404, strdup("404 page not found\n"));
        reply->content_type = "text/plain; charset=utf-8";
}

/* Of a group and version that is served. */
static void no_such_resource(FakeReply *reply) {
        fake_reply_failure(reply, 404, "NotFound", "the server could not find the requested resource");
        (void) fake_reply_details(reply);
}

static bool version_is_served(const FakeRequest *r) {
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                if (streq(fake_resource(id)->group, r->group) &&
                    streq(fake_resource(id)->version, r->version))
                        return true;
        return false;
}

static void not_allowed(FakeReply *reply) {
        fake_reply_failure(reply, 405, "MethodNotAllowed",
                           "the server does not allow this method on the requested resource");
        (void) fake_reply_details(reply);
}

static const struct {
        unsigned status;
        const char *reason, *message;
} usual_failures[] = {
        { 401, "Unauthorized", "Unauthorized" },
        { 403, "Forbidden", "forbidden by a fault of the test" },
        { 404, "NotFound", "the server could not find the requested resource" },
        { 409, "Conflict",
          "the object has been modified; please apply your changes to the latest version and try again" },
        { 410, "Expired", "too old resource version" },
        { 429, "TooManyRequests",
          "the server has received too many requests and has asked us to try again later" },
        { 500, "InternalError", "Internal error occurred: etcdserver: leader changed" },
        { 503, "ServiceUnavailable", "the server is currently unable to handle the request" },
        { 504, "Timeout",
          "Timeout: request did not complete within requested timeout - context deadline exceeded" },
};

static void reply_fault(const FakeApiFault *f, FakeReply *reply) {
        const char *reason = f->reason, *message = f->message;

        for (size_t i = 0; i < ELEMENTSOF(usual_failures); i++)
                if (usual_failures[i].status == f->status) {
                        reason = reason ? reason : usual_failures[i].reason;
                        message = message ? message : usual_failures[i].message;
                }
        if (f->plain) {
                fake_reply_text(reply, f->status, strdup(message ? message : "upstream failed"));
                reply->content_type = "text/plain; charset=utf-8";
        } else
                fake_reply_failure(reply, f->status, reason, "%s", message ? message : "fault of the test");
        if (f->retry_after_sec > 0)
                fake_reply_set_retry_after(reply, f->retry_after_sec);
}

/* -- routes -------------------------------------------------------------------------------------------- */

static void handle_path(const FakeRequest *r, FakeReply *reply) {
        const char *path = r->x->path;

        if (r->x->method != HTTP_GET) {
                not_served(reply);
                return;
        }
        if (streq(path, "/version") || streq(path, "/version/"))
                fake_reply_text(reply, 200, strdup(VERSION_JSON));
        else if (streq(path, "/healthz") || streq(path, "/livez") || streq(path, "/readyz")) {
                fake_reply_text(reply, 200, strdup("ok"));
                reply->content_type = "text/plain; charset=utf-8";
        } else if (!fake_discover(path, reply))
                not_served(reply);
}

static void handle_subresource(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        if (streq(r->subresource, "eviction") && r->resource->id == FAKE_PODS) {
                if (r->verb == FAKE_CREATE)
                        fake_handle_evict(a, r, reply);
                else
                        not_allowed(reply);
        } else if (!streq(r->subresource, "status") || !r->resource->has_status)
                no_such_resource(reply);
        else if (r->verb == FAKE_GET)
                fake_handle_get(a, r, reply);
        else if (r->verb == FAKE_UPDATE)
                fake_handle_update(a, r, reply);
        else if (r->verb == FAKE_PATCH)
                fake_handle_patch(a, r, reply);
        else
                not_allowed(reply);
}

static void handle_named(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        if (r->subresource)
                handle_subresource(a, r, reply);
        else if (r->verb == FAKE_GET)
                fake_handle_get(a, r, reply);
        else if (r->verb == FAKE_UPDATE)
                fake_handle_update(a, r, reply);
        else if (r->verb == FAKE_PATCH)
                fake_handle_patch(a, r, reply);
        else if (r->verb == FAKE_DELETE)
                fake_handle_delete(a, r, reply);
        else
                not_allowed(reply);
}

/* True: the exchange was taken over. */
static bool handle_collection(FakeApi *a, const FakeRequest *r, HttpExchange *x, FakeReply *reply) {
        bool everywhere = r->resource->namespaced && !r->ns;

        if (r->verb == FAKE_WATCH)
                return fake_handle_watch(a, r, x, reply);
        if (r->verb == FAKE_LIST)
                fake_handle_list(a, r, reply);
        else if (r->verb == FAKE_CREATE && !everywhere)
                fake_handle_create(a, r, reply);
        else if (r->verb == FAKE_DELETECOLLECTION && !everywhere)
                fake_handle_delete_collection(a, r, reply);
        else
                not_allowed(reply);
        return false;
}

static bool handle_resource(FakeApi *a, FakeRequest *r, HttpExchange *x, FakeReply *reply) {
        if (!r->resource || (r->resource->namespaced && r->name && !r->ns) ||
            (!r->resource->namespaced && r->ns && r->resource->id != FAKE_NAMESPACES)) {
                if (version_is_served(r))
                        no_such_resource(reply);
                else
                        not_served(reply);
                return false;
        }
        if (r->resource->id == FAKE_NAMESPACES)
                r->ns = mfree(r->ns);
        if (!r->name)
                return handle_collection(a, r, x, reply);
        handle_named(a, r, reply);
        return false;
}

static void reply_denied(const FakeRequest *r, const char *reason, FakeReply *reply) {
        FakeResource unknown = { .group = r->group, .plural = r->plural };
        _cleanup_free_ char *resource = NULL, *where = NULL, *name = NULL;
        cJSON *details;

        if (!r->is_resource) {
                fake_reply_failure(reply, 403, "Forbidden", "forbidden: User \"%s\" cannot %s path \"%s\"",
                                   r->user.name, r->method, r->x->path);
                (void) fake_reply_details(reply);
                return;
        }
        resource = MUST(r->subresource ? strf("%s/%s", r->plural, r->subresource) : strdup(r->plural));
        where = MUST(isempty(r->ns) ? strdup("at the cluster scope")
                                    : strf("in the namespace \"%s\"", r->ns));
        name = MUST(isempty(fake_request_authz_name(r)) ? strdup("")
                                                        : strf(" \"%s\"", fake_request_authz_name(r)));
        fake_reply_failure(
                reply, 403, "Forbidden",
                "%s%s%s%s is forbidden: User \"%s\" cannot %s resource \"%s\" in API group \"%s\" %s%s%s",
                r->plural, isempty(r->group) ? "" : ".", r->group, name, r->user.name,
                strempty(fake_verb_to_string(r->verb)), resource, r->group, where, reason ? ": " : "",
                strempty(reason));
        details = fake_reply_details(reply);
        if (!isempty(fake_request_authz_name(r)))
                fj_set_string(details, "name", fake_request_authz_name(r));
        if (!isempty(unknown.group))
                fj_set_string(details, "group", unknown.group);
        fj_set_string(details, "kind", unknown.plural);
}

static bool is_public(const FakeRequest *r) {
        const char *p = r->x->path;

        return streq(p, "/version") || streq(p, "/healthz") || streq(p, "/livez") || streq(p, "/readyz");
}

/* True: the exchange was taken over. */
static bool handle(FakeApi *a, FakeRequest *r, HttpExchange *x, FakeReply *reply) {
        _cleanup_free_ char *reason = NULL;

        if (is_public(r)) {
                handle_path(r, reply);
                return false;
        }
        if (!fake_authz_authenticate(a->authz, x, &r->user)) {
                fake_reply_failure(reply, 401, "Unauthorized", "Unauthorized");
                return false;
        }
        if (!fake_authz_impersonate(a->authz, r, &reason)) {
                fake_reply_failure(reply, 403, "Forbidden", "%s", reason);
                return false;
        }
        if (!fake_authz_check(a->authz, a->store, r, &reason)) {
                reply_denied(r, reason, reply);
                return false;
        }
        if (r->is_resource)
                return handle_resource(a, r, x, reply);
        handle_path(r, reply);
        return false;
}

/* -- from the wire ------------------------------------------------------------------------------------- */

static bool answers_protobuf(FakeApi *a, const FakeRequest *r) {
        if (!r->resource || !fake_protobuf_has(r->resource) || !fake_protobuf_is_asked(r->x))
                return false;
        switch (a->options.encoding) {
        case FAKE_ENCODING_PROTOBUF:
                return true;
        case FAKE_ENCODING_JSON:
                return false;
        case FAKE_ENCODING_EITHER:
                a->n_asked++;
                return hash64(&a->n_asked, sizeof(a->n_asked)) >> 32 & 1;
        }
        return false;
}

/* Once. True: the request is waiting for webhooks. */
static bool serve(FakeApi *a, HttpExchange *x, const FakeApiFault *fault, FakeCallout **callout) {
        _cleanup_reply_ FakeReply reply = { 0 };
        FakeLogEntry entry = { 0 };
        FakeRequest r;

        if ((fault->drop && !fault->takes_effect) || loop_now(a->loop) < a->away_until_usec) {
                break_off(x);
                return false;
        }
        fake_request_init(&r, x);
        r.protobuf = answers_protobuf(a, &r);
        r.cut = fault->cut;
        r.callout = callout;
        fake_log_begin(a, &r, &entry);
        if (*callout)
                entry.at_usec = fake_callout_arrived(*callout);
        if (fault->status != 0 && !fault->takes_effect)
                reply_fault(fault, &reply);
        else if (handle(a, &r, x, &reply)) {
                fake_log_end(a, &r, &entry, 200);
                fake_request_done(&r);
                return false;
        }
        if (reply.waiting) {
                fake_log_drop(&entry);
                fake_request_done(&r);
                return true;
        }
        if (fault->status != 0 && fault->takes_effect) {
                fake_reply_done(&reply);
                reply_fault(fault, &reply);
        }
        fake_log_end(a, &r, &entry, reply.code);
        if (r.protobuf)
                encode_status(&reply);
        if (r.cut && streq_ptr(reply.content_type, FAKE_PROTOBUF))
                reply.size -= reply.size / 3;
        fake_request_done(&r);
        if (fault->drop)
                break_off(x);
        else
                send_reply(a, x, &reply, fake_callout_warnings(*callout));
        return false;
}

void fake_api_serve(FakeApi *a, HttpExchange *x, const FakeApiFault *fault, FakeCallout *callout) {
        FakeApiFault kept = *fault; /* it may be the callout's */

        while (serve(a, x, &kept, &callout))
                if (fake_callout_wait(callout, x, &kept))
                        return;
        fake_callout_free(callout);
}

static void on_delay_over(Timer *t, void *userdata) {
        Delayed *d = userdata;
        FakeApi *a = d->api;
        HttpExchange *x = d->x;
        FakeApiFault fault = d->fault;

        x->on_gone = NULL;
        delayed_free(d);
        fake_api_serve(a, x, &fault, NULL);
}

static void on_delayed_gone(HttpExchange *x, void *userdata) {
        delayed_free(userdata);
}

static void hold(FakeApi *a, HttpExchange *x, const FakeApiFault *fault) {
        Delayed *d = MUST(new0(Delayed, 1));
        int r = timer_new(a->loop, "fake-delay", on_delay_over, d, &d->timer);

        assert(r >= 0);
        d->api = a;
        d->x = x;
        d->fault = *fault;
        x->on_gone = on_delayed_gone;
        x->userdata = d;
        list_append(&a->delayed, &d->delayed);
        timer_arm_in(d->timer, fault->delay_usec);
}

void fake_api_handle(HttpExchange *x, void *api) {
        FakeApi *a = api;
        FakeApiFault fault = { 0 };

        if (a->fault) {
                FakeRequest r;

                fake_request_init(&r, x);
                (void) fake_authz_authenticate(a->authz, x, &r.user);
                if (!is_public(&r))
                        a->fault(&r, &fault, a->fault_userdata);
                fake_request_done(&r);
        }
        if (fault.delay_usec > 0)
                hold(a, x, &fault);
        else
                fake_api_serve(a, x, &fault, NULL);
}

/* -- faults -------------------------------------------------------------------------------------------- */

void fake_api_set_fault(FakeApi *a, fake_api_fault_t fault, void *userdata) {
        a->fault = fault;
        a->fault_userdata = userdata;
}

void fake_api_away_until(FakeApi *a, usec_t until_usec) {
        a->away_until_usec = until_usec;
        if (loop_now(a->loop) < until_usec)
                fake_watches_cut(a, false);
}

void fake_api_set_date(FakeApi *a, const char *date) {
        a->date = date;
}

void fake_api_cut_watches(FakeApi *a) {
        fake_watches_cut(a, false);
}

void fake_api_stall_watches(FakeApi *a, usec_t until_usec) {
        a->stalled_until_usec = until_usec;
        timer_arm(a->pump, until_usec);
}

void fake_api_deafen(FakeApi *a, const char *user, usec_t until_usec) {
        int r = free_and_strdup(&a->deaf, user);

        assert(r >= 0);
        a->deaf_until_usec = until_usec;
        timer_arm_earlier(a->pump, until_usec);
}

void fake_api_mute(FakeApi *a, FakeResourceId id, usec_t until_usec) {
        a->mute_until_usec[id] = until_usec;
        timer_arm_earlier(a->pump, until_usec);
}

usec_t fake_api_unheard_until(const FakeApi *a, FakeResourceId id) {
        return MAX(a->stalled_until_usec, a->mute_until_usec[id]);
}

void fake_api_lag_watches(FakeApi *a, usec_t usec) {
        a->lag_usec = usec;
}

void fake_api_disorder_watches(FakeApi *a, usec_t until_usec) {
        a->disorder_until_usec = until_usec;
}

size_t fake_api_n_watches(const FakeApi *a) {
        return a->watches.size;
}
