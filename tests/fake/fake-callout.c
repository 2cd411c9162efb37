/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-handlers.h"
#include "fake-webhook.h"
#include "http-transport.h"
#include "strv.h"

/*
 * The call-out of admission, without blocking: a write that a webhook must be asked about leaves its handler
 * undone, with its questions noted; they are asked, all at once; and when all is answered the request is
 * carried out again from its beginning, with the verdicts at hand.
 *
 *      handler --fake_validate(): not known yet--> waiting --all answered--> handler --known--> done, or
 * refused
 *                       ^---- the object has changed meanwhile: asked again ----/
 *
 * A verdict is good for the very state of the object that it was asked about, as the real server's retries
 * have it.
 */

#define REVIEW_MAX_BYTES (3u << 20)

typedef struct Review {
        ListNode reviews;
        FakeCallout *callout;
        char *key;  /* which webhook, about which state */
        char *name; /* of the webhook */
        bool may_fail;

        char *uid, *url, *body;
        usec_t timeout_usec;
        HttpTls *tls;
        HttpCall *call;

        bool asked, answered;
        cJSON *answer; /* a usable AdmissionReview, or */
        char *failure;
} Review;

struct FakeCallout {
        ListNode callouts;
        FakeApi *api;
        HttpExchange *x; /* while it waits */
        FakeApiFault fault;
        usec_t arrived_usec;
        List reviews;
        size_t n_asked;             /* and not answered */
        char *made_name, *made_uid; /* of a create: the second time it is the same object */
        char **warnings;
};

static void review_free(Review *v) {
        list_remove(&v->callout->reviews, &v->reviews);
        http_call_free(v->call);
        http_tls_unref(v->tls);
        cJSON_Delete(v->answer);
        free(v->key);
        free(v->name);
        free(v->uid);
        free(v->url);
        free(v->body);
        free(v->failure);
        free(v);
}

FakeCallout *fake_callout_free(FakeCallout *c) {
        if (!c)
                return NULL;
        LIST_FOREACH (v, &c->reviews, Review, reviews)
                review_free(v);
        free(c->made_name);
        free(c->made_uid);
        strv_free(c->warnings);
        return mfree(c);
}

/* -- noting -------------------------------------------------------------------------------------------- */

static char *key_of(const cJSON *config, const cJSON *webhook, const cJSON *old) {
        return MUST(strf("%s|%s|%s|%s|%s|%s", fj_string(config, "metadata", "name", NULL),
                         strempty(fj_string(config, "metadata", "resourceVersion", NULL)),
                         strempty(fj_string(webhook, "name", NULL)),
                         strempty(fj_string(old, "metadata", "namespace", NULL)),
                         strempty(fj_string(old, "metadata", "uid", NULL)),
                         strempty(fj_string(old, "metadata", "resourceVersion", NULL))));
}

static Review *find_review(const FakeCallout *c, const char *key) {
        if (c)
                LIST_FOREACH (v, &c->reviews, Review, reviews)
                        if (streq(v->key, key))
                                return v;
        return NULL;
}

static HttpTls *tls_of(const cJSON *webhook) {
        const char *bundle = fj_string(webhook, "clientConfig", "caBundle", NULL);
        _cleanup_free_ void *pem = NULL;
        HttpTls *tls = NULL;
        size_t size = 0;

        if (bundle && base64_decode(bundle, strlen(bundle), &pem, &size) >= 0)
                (void) http_tls_new(&(HttpTlsConfig){ .ca_pem = pem, .ca_pem_size = size }, &tls);
        return tls;
}

static FakeCallout *callout_of(FakeApi *a, const FakeWrite *w) {
        FakeCallout *c = *w->request->callout;

        if (c)
                return c;
        c = MUST(new0(FakeCallout, 1));
        c->api = a;
        c->arrived_usec = loop_now(a->loop);
        if (!w->old && !w->request->subresource) {
                (void) free_and_strdup(&c->made_name, fj_string(w->new, "metadata", "name", NULL));
                (void) free_and_strdup(&c->made_uid, fj_string(w->new, "metadata", "uid", NULL));
        }
        *w->request->callout = c;
        return c;
}

static void note(FakeApi *a, const FakeWrite *w, const cJSON *webhook, const char *key) {
        FakeCallout *c = callout_of(a, w);
        Review *v = MUST(new0(Review, 1));
        char uid[UUID_MAX];

        random_uuid(a->random, uid);
        *v = (Review){
                .callout = c,
                .key = MUST(strdup(key)),
                .name = MUST(strdup(strempty(fj_string(webhook, "name", NULL)))),
                .may_fail = fake_webhook_may_fail(webhook),
                .uid = MUST(strdup(uid)),
                .url = fake_webhook_url(webhook),
                .body = fake_webhook_review(w, uid),
                .timeout_usec = fake_webhook_timeout(webhook),
                .tls = tls_of(webhook),
        };
        list_append(&c->reviews, &v->reviews);
}

/* -- judging ------------------------------------------------------------------------------------------- */

/* Of one that is answered. */
static bool judge(const Review *v, FakeReply *reply) {
        _cleanup_free_ char *why = NULL;

        if (v->answer)
                return fake_webhook_reply(v->name, v->answer, reply);
        if (v->may_fail)
                return true;
        why = MUST(strf("failed calling webhook \"%s\": %s", v->name, v->failure));
        fake_reply_failure(reply, 500, "InternalError", "Internal error occurred: %s", why);
        fake_reply_add_cause(reply, NULL, why, NULL);
        return false;
}

static bool refuse_dry_run(const cJSON *webhook, FakeReply *reply) {
        return fake_reply_bad_request(reply, "admission webhook \"%s\" does not support dry run",
                                      strempty(fj_string(webhook, "name", NULL)));
}

bool fake_validate(FakeApi *a, const FakeRequest *r, const cJSON *new, const cJSON *old, bool dry_run,
                   FakeReply *reply) {
        FakeWrite w = { .request = r, .new = new, .old = old, .dry_run = dry_run };
        const cJSON *config, *webhook;
        const Review *refusal = NULL;
        bool waiting = false;

        /* Nobody is asked about the configuration itself: it could not be mended any more. */
        if (fake_store_size(a->store, FAKE_WEBHOOKS) == 0 || r->resource->id == FAKE_WEBHOOKS ||
            (a->spared_prefix && startswith(strempty(r->user.name), a->spared_prefix)))
                return true;
        FAKE_STORE_FOREACH (config, a->store, FAKE_WEBHOOKS, NULL)
                cJSON_ArrayForEach (webhook, fj_get(config, "webhooks", NULL)) {
                        _cleanup_free_ char *key = NULL;
                        Review *v;

                        if (!fake_webhook_concerns(a->store, webhook, &w))
                                continue;
                        if (dry_run && !fake_webhook_takes_dry_run(webhook))
                                return refuse_dry_run(webhook, reply);
                        key = key_of(config, webhook, old);
                        v = find_review(*r->callout, key);
                        if (!v)
                                note(a, &w, webhook, key);
                        waiting |= !v || !v->answered;
                        if (v && v->answered && !refusal && !judge(v, reply))
                                refusal = v;
                }
        if (refusal)
                return false;
        reply->waiting = waiting;
        return !waiting;
}

bool fake_callout_names(const FakeRequest *r, cJSON *meta) {
        const FakeCallout *c = *r->callout;

        if (!c || !c->made_uid)
                return false;
        fj_set_string(meta, "name", strempty(c->made_name));
        fj_set_string(meta, "uid", c->made_uid);
        return true;
}

/* -- asking -------------------------------------------------------------------------------------------- */

static void fail(Review *v, const char *why) {
        v->failure = MUST(strf("failed to call webhook: Post \"%s\": %s", v->url, why));
}

static void take_answer(Review *v, const HttpResponse *response) {
        _cleanup_cjson_ cJSON *json = NULL;
        const cJSON *warning;
        char *why;

        if (response->error == -ETIMEDOUT)
                fail(v, "context deadline exceeded");
        else if (response->error == -ECONNREFUSED)
                fail(v, "dial tcp: connect: connection refused");
        else if (response->error < 0)
                fail(v, response->error_text);
        else if (response->status != 200)
                v->failure = MUST(strf("failed to call webhook: the server answered %u", response->status));
        else if (!(json = cJSON_ParseWithOpts(response->body, NULL, true)))
                v->failure =
                        MUST(strdup("failed to call webhook: couldn't get version/kind; json parse error"));
        else if ((why = fake_webhook_check_response(json, v->uid)))
                v->failure = MUST(strf("received invalid webhook response: %s", why)), free(why);
        if (v->failure)
                return;
        cJSON_ArrayForEach (warning, fj_get(json, "response", "warnings", NULL)) {
                int r = cJSON_IsString(warning) ? strv_extend(&v->callout->warnings, warning->valuestring)
                                                : 0;

                assert(r >= 0);
        }
        v->answer = TAKE_PTR(json);
}

static void on_answer(const HttpResponse *response, void *userdata) {
        Review *v = userdata;
        FakeCallout *c = v->callout;
        HttpExchange *x;

        take_answer(v, response);
        v->answered = true;
        if (--c->n_asked > 0)
                return;
        list_remove(&c->api->callouts, &c->callouts);
        x = TAKE_PTR(c->x);
        x->on_gone = NULL;
        fake_api_serve(c->api, x, &c->fault, c); /* the callout is its, and may be gone */
}

static void ask(Review *v) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json" },
                                              { "Accept", "application/json" } };
        HttpRequest request = {
                .method = HTTP_POST,
                .url = v->url,
                .headers = headers,
                .n_headers = ELEMENTSOF(headers),
                .body = v->body,
                .body_size = strlen(v->body),
                .lane = HTTP_LANE_BULK,
                .timeout_usec = v->timeout_usec,
                .max_response_bytes = REVIEW_MAX_BYTES,
                .tls = v->tls,
        };
        HttpTransport *transport = v->callout->api->webhook_transport;

        v->asked = true;
        if (!transport)
                fail(v, "dial tcp: there is no way to any webhook");
        else if (http_call_start(transport, &request, on_answer, v, &v->call) < 0)
                fail(v, "the URL cannot be called");
        v->answered = !!v->failure;
}

static void on_gone(HttpExchange *x, void *userdata) {
        FakeCallout *c = userdata;

        list_remove(&c->api->callouts, &c->callouts);
        fake_callout_free(c);
}

bool fake_callout_wait(FakeCallout *c, HttpExchange *x, const FakeApiFault *fault) {
        LIST_FOREACH (v, &c->reviews, Review, reviews)
                if (!v->asked) {
                        ask(v);
                        c->n_asked += !v->answered;
                }
        if (c->n_asked == 0)
                return false;
        c->x = x;
        c->fault = *fault;
        x->on_gone = on_gone;
        x->userdata = c;
        list_append(&c->api->callouts, &c->callouts);
        return true;
}

void fake_callouts_cut(FakeApi *a, void (*break_off)(HttpExchange *x)) {
        LIST_FOREACH (c, &a->callouts, FakeCallout, callouts) {
                HttpExchange *x = TAKE_PTR(c->x);

                x->on_gone = NULL;
                list_remove(&a->callouts, &c->callouts);
                fake_callout_free(c);
                break_off(x);
        }
}

usec_t fake_callout_arrived(const FakeCallout *c) {
        return c->arrived_usec;
}

char *const *fake_callout_warnings(const FakeCallout *c) {
        return c ? c->warnings : NULL;
}
