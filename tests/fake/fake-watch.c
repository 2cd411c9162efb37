/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake-handlers.h"
#include "fake-protobuf.h"
#include "parse-util.h"

/*
 * A watch is a cursor in the history of its resource. Writes only arm the pump, which in the next iteration
 * moves every cursor on and sends what its selectors pass: so watches can be stalled without losing
 * anything, and one that has fallen behind a compaction gets its 410.
 *
 *      resourceVersion unset or "0": what is there comes as ADDED first
 *      too old: 200, then an ERROR event with code 410
 *      bookmarks, where asked for: every minute, 2 s before the end, and after those first ADDED (with the
 *      annotation k8s.io/initial-events-end)
 *
 * The real server sends none that says what the client knows (cacheWatcher.process()). Where etcd reports
 * its progress and somewhere something changes, as in every cluster with a kubelet, that is never so; it is
 * with the option no_progress.
 */

#define BOOKMARK_DEFAULT_USEC USEC_PER_MINUTE
#define LAST_BOOKMARK_USEC (2 * USEC_PER_SEC)
#define MIN_WATCH_DEFAULT_USEC (30 * USEC_PER_MINUTE)

typedef struct FakeWatch {
        ListNode watches;
        FakeApi *api;
        HttpExchange *x;
        const FakeResource *resource;
        char *ns; /* NULL: all */
        char *user;
        FakeSelector labels, fields;
        uint64_t rv;       /* everything up to here was sent */
        uint64_t known_rv; /* the client knows it without a bookmark: where it began, or the end of those
                              first ADDED */
        bool initial;      /* what is there must be sent first */
        bool bookmarks;
        bool protobuf;
        bool cut; /* the next event; only in protobuf */
        bool sending, gone;
        usec_t end_usec;
        usec_t due_usec; /* what happened is told then; 0: nothing did */
        Timer *bookmark, *timeout;
} FakeWatch;

static void watch_free(FakeWatch *w) {
        list_remove(&w->api->watches, &w->watches);
        timer_free(w->bookmark);
        timer_free(w->timeout);
        fake_selector_done(&w->labels);
        fake_selector_done(&w->fields);
        free(w->ns);
        free(w->user);
        free(w);
}

static void on_gone(HttpExchange *x, void *userdata) {
        FakeWatch *w = userdata;

        w->gone = true;
        if (!w->sending)
                watch_free(w);
}

static void watch_end(FakeWatch *w, bool clean) {
        w->x->on_gone = NULL;
        if (!w->gone)
                w->x->ops->stream_end(w->x, clean);
        watch_free(w);
}

/* False: the client went away meanwhile, and the watch with it. */
static bool watch_send(FakeWatch *w, StrBuf *lines) {
        if (lines->size == 0)
                return true;
        w->sending = true;
        w->x->ops->stream_data(w->x, lines->data, lines->size);
        w->sending = false;
        if (!w->gone)
                return true;
        watch_free(w);
        return false;
}

static bool stalled(const FakeApi *a) {
        return loop_now(a->loop) < a->stalled_until_usec;
}

/* When it hears something again: in the past, or not before then. */
static usec_t hears_from(const FakeWatch *w) {
        const FakeApi *a = w->api;
        usec_t deaf = streq_ptr(a->deaf, w->user) ? a->deaf_until_usec : 0;
        usec_t mute = a->mute_until_usec[w->resource->id], quiet = MAX(deaf, mute);

        return MAX(quiet, w->due_usec);
}

static bool is_behind(const FakeWatch *w) {
        const FakeStore *s = w->api->store;
        FakeResourceId id = w->resource->id;

        return fake_store_change(s, id, fake_store_changes_after(s, id, w->rv));
}

static bool hears_nothing(const FakeWatch *w) {
        return stalled(w->api) || loop_now(w->api->loop) < hears_from(w);
}

/* -- events -------------------------------------------------------------------------------------------- */

static bool passes(const FakeWatch *w, const FakeVersion *v) {
        return v && (!w->ns || streq_ptr(fj_string(v->json, "metadata", "namespace", NULL), w->ns)) &&
               fake_label_selector_matches(&w->labels, fj_get(v->json, "metadata", "labels", NULL)) &&
               fake_field_selector_matches(&w->fields, v->json);
}

/* text is taken. */
static void add_line(StrBuf *lines, const char *type, char *text) {
        strbuf_addf(lines, "{\"type\":\"%s\",\"object\":%s}\n", type, text);
        free(text);
}

static void add_frame(FakeWatch *w, StrBuf *lines, const char *type, const char *message, size_t size) {
        fake_protobuf_add_event(lines, type, w->resource, message, size, w->cut);
        w->cut = false;
}

static void add_version(FakeWatch *w, StrBuf *lines, const char *type, FakeVersion *v) {
        const char *message;
        size_t size;

        if (!w->protobuf) {
                add_line(lines, type, fake_version_print(w->resource, v));
                return;
        }
        message = fake_version_message(w->resource, v, &size);
        add_frame(w, lines, type, message, size);
}

/* Of what is no version of the store. */
static void add_object(FakeWatch *w, StrBuf *lines, const char *type, const cJSON *object) {
        _cleanup_strbuf_ StrBuf message = { 0 };

        if (!w->protobuf) {
                add_line(lines, type, fake_object_print(w->resource, object));
                return;
        }
        fake_protobuf_add_message(&message, w->resource, object, false);
        add_frame(w, lines, type, message.data, message.size);
}

/* The last state that passed, with the version of the change that took it away. */
static void add_left(FakeWatch *w, const FakeChange *c, StrBuf *lines) {
        _cleanup_cjson_ cJSON *last = fj_copy(c->old->json);
        char rv[24];

        snprintf(rv, sizeof(rv), "%" PRIu64, c->rv);
        fj_set_string(fj_object(last, "metadata"), "resourceVersion", rv);
        add_object(w, lines, "DELETED", last);
}

static void add_change(FakeWatch *w, const FakeChange *c, StrBuf *lines) {
        bool was = passes(w, c->old), is = passes(w, c->new);

        if (is)
                add_version(w, lines, was ? "MODIFIED" : "ADDED", c->new);
        else if (was && c->gone)
                add_version(w, lines, "DELETED", c->gone);
        else if (was)
                add_left(w, c, lines);
}

static void add_bookmark(FakeWatch *w, const char *more, StrBuf *lines) {
        _cleanup_cjson_ cJSON *object =
                fj_parse("{'metadata':{'resourceVersion':'%" PRIu64 "'%s}}", w->rv, more);

        add_object(w, lines, "BOOKMARK", object);
}

static void add_initial(FakeWatch *w, StrBuf *lines) {
        FakeStore *s = w->api->store;

        for (size_t i = 0; i < fake_store_size(s, w->resource->id); i++) {
                FakeVersion *v = fake_store_at(s, w->resource->id, i);

                if (passes(w, v))
                        add_version(w, lines, "ADDED", v);
        }
        w->rv = fake_store_rv(s);
        w->initial = false;
        w->known_rv = w->rv;
        if (w->bookmarks)
                add_bookmark(w, ",'annotations':{'k8s.io/initial-events-end':'true'}", lines);
}

static void add_expired(FakeWatch *w, StrBuf *lines) {
        _cleanup_reply_ FakeReply reply = { 0 };

        fake_reply_expired(&reply, "too old resource version: %" PRIu64 " (%" PRIu64 ")", w->rv,
                           fake_store_compacted(w->api->store, w->resource->id));
        if (w->protobuf)
                fake_protobuf_add_error(lines, reply.status);
        else
                add_line(lines, "ERROR", fj_print(reply.status));
}

/* -- disorder, where a test wants it ------------------------------------------------------------------- */

static bool disordered(const FakeApi *a) {
        return loop_now(a->loop) < a->disorder_until_usec;
}

static bool same_object(const FakeChange *a, const FakeChange *b) {
        _cleanup_free_ char *x = fake_object_key((a->new ? a->new : a->old)->json),
                            *y = fake_object_key((b->new ? b->new : b->old)->json);

        return streq(x, y);
}

/* Neighbours change places, those of one object and the last one do not. */
static void shuffle(FakeWatch *w, const FakeChange **batch, size_t n) {
        for (size_t k = 0; k < 2 * n; k++) {
                size_t i = random_below(w->api->random, n);

                if (i + 2 < n && !same_object(batch[i], batch[i + 1])) {
                        const FakeChange *t = batch[i];

                        batch[i] = batch[i + 1];
                        batch[i + 1] = t;
                }
        }
}

/* A few changes earlier than it was asked for. */
static uint64_t rewind_start(FakeApi *a, FakeResourceId id, uint64_t rv) {
        size_t i = fake_store_changes_after(a->store, id, rv), back = random_below(a->random, 8);
        const FakeChange *c = fake_store_change(a->store, id, i - MIN(i, back));

        return c && c->rv <= rv ? MAX(c->rv - 1, fake_store_compacted(a->store, id)) : rv;
}

static void add_changes(FakeWatch *w, StrBuf *lines) {
        FakeStore *s = w->api->store;
        size_t first = fake_store_changes_after(s, w->resource->id, w->rv), n = 0;
        _cleanup_free_ const FakeChange **batch = NULL;

        while (fake_store_change(s, w->resource->id, first + n))
                n++;
        if (n == 0)
                return;
        batch = MUST(new0(const FakeChange *, n));
        for (size_t i = 0; i < n; i++)
                batch[i] = fake_store_change(s, w->resource->id, first + i);
        w->rv = batch[n - 1]->rv;
        if (disordered(w->api))
                shuffle(w, batch, n);
        for (size_t i = 0; i < n; i++)
                add_change(w, batch[i], lines);
}

static void watch_pump(FakeWatch *w) {
        FakeStore *s = w->api->store;
        FakeResourceId id = w->resource->id;
        _cleanup_strbuf_ StrBuf lines = { 0 };

        if (!w->initial && w->rv < fake_store_compacted(s, id)) {
                add_expired(w, &lines);
                if (watch_send(w, &lines))
                        watch_end(w, true);
                return;
        }
        if (w->initial)
                add_initial(w, &lines);
        add_changes(w, &lines);
        (void) watch_send(w, &lines);
}

void fake_watches_pump(Timer *t, void *api) {
        FakeApi *a = api;

        if (stalled(a)) {
                timer_arm(a->pump, a->stalled_until_usec);
                return;
        }
        LIST_FOREACH (w, &a->watches, FakeWatch, watches) {
                if (a->lag_usec > 0 && w->due_usec == 0 && is_behind(w))
                        w->due_usec = usec_add(loop_now(a->loop), random_below(a->random, a->lag_usec));
                if (hears_nothing(w)) {
                        timer_arm_earlier(a->pump, hears_from(w));
                        continue;
                }
                w->due_usec = 0;
                watch_pump(w);
        }
}

void fake_watches_changed(FakeApi *a) {
        if (a->watches.size > 0)
                timer_arm_earlier(a->pump, loop_now(a->loop));
}

void fake_watches_cut(FakeApi *a, bool clean) {
        LIST_FOREACH (w, &a->watches, FakeWatch, watches)
                watch_end(w, clean);
}

/* -- time ---------------------------------------------------------------------------------------------- */

static void arm_bookmark(FakeWatch *w) {
        usec_t now = loop_now(w->api->loop), every = w->api->options.bookmark_usec;
        usec_t next = usec_add(now, every > 0 ? every : BOOKMARK_DEFAULT_USEC);
        usec_t last = usec_sub(w->end_usec, LAST_BOOKMARK_USEC);

        timer_arm(w->bookmark, last > now ? MIN(next, last) : next);
}

/* Says that everything up to now was sent, so it is. */
static void on_bookmark(Timer *t, void *userdata) {
        FakeWatch *w = userdata;
        _cleanup_strbuf_ StrBuf line = { 0 };
        const FakeChange *c;
        FakeStore *s = w->api->store;

        arm_bookmark(w);
        if (hears_nothing(w) || w->initial || w->rv < fake_store_compacted(s, w->resource->id))
                return;
        /* From a version that is still to come: there is nothing that such a watch may be told. */
        if (w->rv > fake_store_rv(s))
                return;

        for (size_t i = fake_store_changes_after(s, w->resource->id, w->rv);
             (c = fake_store_change(s, w->resource->id, i)); i++)
                add_change(w, c, &line);
        w->rv = MAX(w->rv, fake_store_rv(s));
        if (w->rv > w->known_rv || !w->api->options.no_progress)
                add_bookmark(w, "", &line);
        (void) watch_send(w, &line);
}

static void on_timeout(Timer *t, void *userdata) {
        watch_end(userdata, true);
}

static usec_t duration_of(FakeApi *a, const FakeRequest *r) {
        usec_t min = a->options.min_watch_usec > 0 ? a->options.min_watch_usec : MIN_WATCH_DEFAULT_USEC;
        const char *text = fake_request_query(r, "timeoutSeconds");
        uint64_t seconds;

        if (text && parse_uint64(text, &seconds) >= 0 && seconds > 0)
                return seconds * USEC_PER_SEC;
        return min + random_below(a->random, min);
}

/* -- the beginning ------------------------------------------------------------------------------------- */

static bool start_of(const FakeRequest *r, uint64_t *ret_rv, FakeReply *reply) {
        const char *text = fake_request_query(r, "resourceVersion");
        _cleanup_errors_ FakeErrors e = { 0 };

        *ret_rv = 0;
        if (!isempty(fake_request_query(r, "resourceVersionMatch")))
                fake_errors_add(
                        &e, FAKE_ERROR_FORBIDDEN, NULL,
                        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                        "resourceVersionMatch");
        if (!fake_errors_reply_as(&e, "ListOptions.meta.k8s.io", "", reply))
                return false;
        if (!isempty(text) && parse_uint64(text, ret_rv) < 0)
                return fake_reply_failure(reply, 500, NULL,
                                          "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: "
                                          "parsing \"%s\": invalid syntax",
                                          text, text);
        return true;
}

static FakeWatch *watch_new(FakeApi *a, const FakeRequest *r, HttpExchange *x, uint64_t rv) {
        FakeWatch *w = MUST(new0(FakeWatch, 1));
        int k;

        w->api = a;
        w->x = x;
        w->resource = r->resource;
        w->ns = r->ns && r->resource->namespaced ? MUST(strdup(r->ns)) : NULL;
        w->user = MUST(strdup(r->user.name));
        w->rv = rv > 0 && rv <= fake_store_rv(a->store) && disordered(a) ? rewind_start(a, r->resource->id, rv) : rv;
        w->known_rv = rv;
        w->initial = rv == 0;
        w->protobuf = r->protobuf;
        w->cut = r->cut;
        w->end_usec = usec_add(loop_now(a->loop), duration_of(a, r));
        k = timer_new(a->loop, "fake-watch-bookmark", on_bookmark, w, &w->bookmark);
        assert(k >= 0);
        k = timer_new(a->loop, "fake-watch-timeout", on_timeout, w, &w->timeout);
        assert(k >= 0);
        timer_arm(w->timeout, w->end_usec);
        w->bookmarks = fake_request_flag(r, "allowWatchBookmarks");
        if (w->bookmarks)
                arm_bookmark(w);
        list_append(&a->watches, &w->watches);
        return w;
}

bool fake_handle_watch(FakeApi *a, const FakeRequest *r, HttpExchange *x, FakeReply *reply) {
        const HttpHeader type = { "Content-Type", r->protobuf ? FAKE_PROTOBUF_WATCH : "application/json" };
        FakeSelector labels = { 0 }, fields = { 0 };
        FakeWatch *w;
        uint64_t rv;

        if (!start_of(r, &rv, reply) || !fake_selectors_of(r, &labels, &fields, reply))
                return false;

        w = watch_new(a, r, x, rv);
        w->labels = labels;
        w->fields = fields;
        x->on_gone = on_gone;
        x->userdata = w;
        x->ops->stream_begin(x, 200, &type, 1);
        timer_arm_earlier(a->pump, loop_now(a->loop));
        return true;
}
