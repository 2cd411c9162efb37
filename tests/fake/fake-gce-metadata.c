/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-gce-metadata.h"

#include <inttypes.h>
#include <strings.h>

#include "fake-fault.h"
#include "fake-gce-tree.h"
#include "fake-query.h"
#include "parse-util.h"

#define PREFIX "/computeMetadata/v1/"
#define TOKEN_LIFE_USEC USEC_PER_HOUR
#define TOKEN_MARGIN_USEC (5 * USEC_PER_MINUTE) /* served from a cache until then */
#define MAX_WAIT_SEC 86400u

/* A hanging GET. Path and query are the exchange's. */
typedef struct Waiter {
        ListNode waiters;
        FakeGceMetadata *gce;
        HttpExchange *x;
        char *etag; /* of what the client knows */
        Timer *timer;
} Waiter;

typedef struct Token {
        char *text;
        usec_t ends_usec;
} Token;

struct FakeGceMetadata {
        Loop *loop;
        FakeGceTree tree;
        bool migrates; /* hears of maintenance */
        bool intercepted, stranger;

        /* The next maintenance. */
        char *event;
        bool maintenance_asked; /* for that very key, since the last event */
        bool event_pending;     /* it begins when the timer fires, else it ends then */
        usec_t event_lasts_usec;
        Timer *event_timer;

        usec_t away_until_usec;
        Token token, last_token; /* the one before stays good */
        uint64_t n_tokens;
        FakeFault fault;
        List waiters;
        size_t n_gets;
};

/* -- answers ------------------------------------------------------------------------------------------- */

static void reply(FakeGceMetadata *f, HttpExchange *x, unsigned status, const char *type, const char *body,
                  HttpHeader extra) {
        HttpHeader headers[6] = {
                { "Content-Type", type },
                { "Server", "Metadata Server for VM" },
                { "X-XSS-Protection", "0" },
                { "X-Frame-Options", "SAMEORIGIN" },
        };
        size_t n = 4;

        if (!f->stranger)
                headers[n++] = (HttpHeader) { "Metadata-Flavor", "Google" };
        if (extra.name)
                headers[n++] = extra;
        x->ops->reply(x, status, headers, n, body, strlen(body));
}

static void reply_error(FakeGceMetadata *f, HttpExchange *x, unsigned status) {
        static const struct {
                unsigned status;
                const char *title, *text;
        } texts[] = {
                { 400, "Bad Request", "Your client has issued a malformed or illegal request." },
                { 403, "Forbidden",
                  "Your client does not have permission to get this URL from this server." },
                { 404, "Not Found", "The requested URL was not found on this server." },
                { 405, "Method Not Allowed", "The request method is inappropriate for this URL." },
                { 503, "Service Unavailable", "The service is temporarily unavailable." },
        };
        const char *title = "Error", *text = "That is an error.";
        _cleanup_free_ char *body = NULL;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].status == status) {
                        title = texts[i].title;
                        text = texts[i].text;
                }
        body = MUST(strf("<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n"
                         "  <title>Error %u (%s)!!1</title>\n"
                         "  <p><b>%u.</b> <ins>That's an error.</ins>\n  <p>%s\n",
                         status, title, status, text));
        reply(f, x, status, "text/html; charset=UTF-8", body, (HttpHeader) { 0 });
}

/* -- tokens -------------------------------------------------------------------------------------------- */

static void token_done(Token *t) {
        free(t->text);
        *t = (Token) { 0 };
}

static void renew_token(FakeGceMetadata *f) {
        usec_t now = loop_now(f->loop);

        if (f->token.text && now < usec_sub(f->token.ends_usec, TOKEN_MARGIN_USEC))
                return;
        token_done(&f->last_token);
        f->last_token = f->token;
        f->token = (Token) {
                .text = MUST(strf("ya29.c.fake-%016" PRIx64 "-%" PRIu64,
                                  hash64(f->tree.name, strlen(f->tree.name)), ++f->n_tokens)),
                .ends_usec = usec_add(now, TOKEN_LIFE_USEC),
        };
}

static void give_token(FakeGceMetadata *f, HttpExchange *x) {
        _cleanup_cjson_ cJSON *o = NULL;
        _cleanup_free_ char *text = NULL;

        renew_token(f);
        o = fj_parse("{'access_token':'%s','expires_in':%" PRIu64 ",'token_type':'Bearer'}", f->token.text,
                     usec_sub(f->token.ends_usec, loop_now(f->loop)) / USEC_PER_SEC);
        text = fj_print(o);
        reply(f, x, 200, "application/json", text, (HttpHeader) { 0 });
}

bool fake_gce_metadata_token_is_good(const FakeGceMetadata *f, const char *token) {
        usec_t now = loop_now(f->loop);

        return (streq_ptr(f->token.text, token) && now < f->token.ends_usec) ||
               (streq_ptr(f->last_token.text, token) && now < f->last_token.ends_usec);
}

/* -- values -------------------------------------------------------------------------------------------- */

/* What stands at a path. */
typedef struct Look {
        unsigned status; /* 200: the rest is there */
        char *body, *etag;
        bool json;
} Look;

static void look_done(Look *l) {
        free(l->body);
        free(l->etag);
}

static bool path_is_hidden(const FakeGceMetadata *f, const char *path) {
        static const char *const shown[] = { "instance/id",        "instance/zone",
                                             "instance/hostname",  "instance/attributes/cluster-name",
                                             "project/project-id", "project/numeric-project-id" };

        if (!f->intercepted || startswith(path, "instance/service-accounts/"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(shown); i++)
                if (streq(path, shown[i]))
                        return false;
        return true;
}

/* "true", in any case. */
static bool flag_is_set(const char *value) {
        return value && strcasecmp(value, "true") == 0;
}

/* path: below the prefix. */
static Look look(const FakeGceMetadata *f, const char *path, const FakeQuery *q) {
        bool recursive = flag_is_set(fake_query_get(q, "recursive"));
        bool wait = flag_is_set(fake_query_get(q, "wait_for_change"));
        const char *alt = fake_query_get(q, "alt");
        _cleanup_cjson_ cJSON *tree = NULL;
        _cleanup_free_ char *exact = NULL;
        const cJSON *node;
        bool listing, json;

        if (path_is_hidden(f, path))
                return (Look) { .status = 404 };
        if (streq(path, "instance/upcoming-maintenance") && !f->tree.upcoming &&
            f->tree.upcoming_none == FAKE_GCE_UPCOMING_UNAVAILABLE)
                return (Look) { .status = 503 };
        tree = fake_gce_tree_build(&f->tree);
        node = fake_gce_tree_find(tree, path);
        if (!node)
                return (Look) { .status = 404 };
        if (fake_gce_tree_is_directory(node, path) && !isempty(path) && !endswith(path, "/"))
                return (Look) { .status = 301 };

        listing = fake_gce_tree_is_directory(node, path) && !recursive;
        if ((alt && !streq(alt, "json") && !streq(alt, "text")) || (listing && (alt || wait)))
                return (Look) { .status = 400 };
        json = alt ? streq(alt, "json") : recursive;
        exact = fj_print(node);
        return (Look) {
                .status = 200,
                .body = listing ? fake_gce_tree_list(node)
                        : json  ? fake_gce_tree_json(node, path)
                                : fake_gce_tree_text(node, path),
                .etag = MUST(strf("%016" PRIx64, hash64(exact, strlen(exact)))),
                .json = json,
        };
}

static void redirect(FakeGceMetadata *f, HttpExchange *x) {
        const char *host = http_header_find(x->headers, x->n_headers, "Host");
        _cleanup_free_ char *location =
                MUST(strf("http://%s%s/%s%s", host ? host : "metadata.google.internal", x->path,
                          isempty(x->query) ? "" : "?", strempty(x->query)));

        reply(f, x, 301, "text/html; charset=UTF-8", "", (HttpHeader) { "Location", location });
}

static void reply_look(FakeGceMetadata *f, HttpExchange *x, const Look *l) {
        if (l->status == 301)
                redirect(f, x);
        else if (l->status != 200)
                reply_error(f, x, l->status);
        else
                reply(f, x, 200, l->json ? "application/json" : "application/text", l->body,
                      (HttpHeader) { "ETag", l->etag });
}

/* -- hanging GETs -------------------------------------------------------------------------------------- */

static HttpExchange *waiter_free(Waiter *w) {
        HttpExchange *x = w->x;

        list_remove(&w->gce->waiters, &w->waiters);
        timer_free(w->timer);
        free(w->etag);
        free(w);
        x->on_gone = NULL;
        return x;
}

static Look look_again(const Waiter *w) {
        _cleanup_query_ FakeQuery q = { 0 };

        fake_query_init(&q, w->x->query);
        return look(w->gce, startswith(w->x->path, PREFIX), &q);
}

static void answer_waiter(Waiter *w, const Look *l) {
        FakeGceMetadata *f = w->gce;

        reply_look(f, waiter_free(w), l);
}

static void on_wait_over(Timer *t, void *userdata) {
        Waiter *w = userdata;
        Look l = look_again(w);

        answer_waiter(w, &l);
        look_done(&l);
}

static void on_waiter_gone(HttpExchange *x, void *userdata) {
        (void) waiter_free(userdata);
}

static void wait_for_change(FakeGceMetadata *f, HttpExchange *x, const char *etag, uint64_t timeout_sec) {
        Waiter *w = MUST(new0(Waiter, 1));
        int r = timer_new(f->loop, "fake-gce-wait", on_wait_over, w, &w->timer);

        assert(r >= 0);
        w->gce = f;
        w->x = x;
        w->etag = MUST(strdup(etag));
        x->on_gone = on_waiter_gone;
        x->userdata = w;
        list_append(&f->waiters, &w->waiters);
        if (timeout_sec != UINT64_MAX)
                timer_arm_in(w->timer, timeout_sec * USEC_PER_SEC);
}

/* Something may have changed. */
static void tell(FakeGceMetadata *f) {
        LIST_FOREACH (w, &f->waiters, Waiter, waiters) {
                Look l = look_again(w);

                if (l.status != 200 || !streq(l.etag, w->etag))
                        answer_waiter(w, &l);
                look_done(&l);
        }
}

/* -- requests ------------------------------------------------------------------------------------------ */

/* True: the request has met its fate. */
static bool apply_fault(FakeGceMetadata *f, HttpExchange *x, unsigned part) {
        const char *body;
        unsigned status;

        switch (fake_fault_meet(&f->fault, x, part, &status, &body)) {
        case FAKE_FATE_SERVED:
                return false;
        case FAKE_FATE_HANGS:
                break;
        case FAKE_FATE_FAILS:
                reply_error(f, x, status);
                break;
        case FAKE_FATE_GARBLED:
                reply(f, x, status, "application/text", body, (HttpHeader) { 0 });
                break;
        }
        return true;
}

static bool is_token(const char *path) {
        return path && startswith(path, "instance/service-accounts/") && endswith(path, "/token");
}

static void serve(FakeGceMetadata *f, HttpExchange *x, const char *path) {
        _cleanup_query_ FakeQuery q = { 0 };
        const char *timeout, *last;
        uint64_t timeout_sec = UINT64_MAX;
        Look l;

        fake_query_init(&q, x->query);
        if (streq(path, "instance/maintenance-event"))
                f->maintenance_asked = true;
        timeout = fake_query_get(&q, "timeout_sec");
        if (timeout && parse_uint64_range(timeout, 0, MAX_WAIT_SEC, &timeout_sec) < 0) {
                reply_error(f, x, 400);
                return;
        }
        l = look(f, path, &q);
        last = fake_query_get(&q, "last_etag");
        if (l.status == 200 && flag_is_set(fake_query_get(&q, "wait_for_change")) &&
            (!last || streq(last, l.etag)))
                wait_for_change(f, x, l.etag, timeout_sec);
        else
                reply_look(f, x, &l);
        look_done(&l);
}

void fake_gce_metadata_handle(HttpExchange *x, void *fake_gce_metadata) {
        FakeGceMetadata *f = fake_gce_metadata;
        const char *path = startswith(x->path, PREFIX);

        f->n_gets++;
        if (apply_fault(f, x, is_token(path) ? FAKE_GCE_TOKEN : FAKE_GCE_DATA))
                return;
        if (loop_now(f->loop) < f->away_until_usec)
                reply_error(f, x, 503);
        else if (http_header_find(x->headers, x->n_headers, "X-Forwarded-For") ||
                 !streq(strempty(http_header_find(x->headers, x->n_headers, "Metadata-Flavor")), "Google"))
                reply_error(f, x, 403);
        else if (x->method != HTTP_GET && x->method != HTTP_HEAD)
                reply_error(f, x, 405);
        else if (streq(x->path, "/"))
                reply(f, x, 200, "application/text", "computeMetadata/\n", (HttpHeader) { 0 });
        else if (!path)
                reply_error(f, x, 404);
        else if (is_token(path) && fake_gce_tree_has_account(&f->tree, path))
                give_token(f, x);
        else
                serve(f, x, path);
}

/* -- notices ------------------------------------------------------------------------------------------- */

void fake_gce_metadata_set_preempted(FakeGceMetadata *f, bool preempted) {
        f->tree.preempted = preempted;
        tell(f);
}

static void show_event(FakeGceMetadata *f, const char *event) {
        if (streq(event, "NONE") && !streq(f->tree.maintenance, "NONE"))
                f->maintenance_asked = false;
        free(f->tree.maintenance);
        f->tree.maintenance = MUST(strdup(event));
        tell(f);
}

void fake_gce_metadata_set_maintenance(FakeGceMetadata *f, const char *event) {
        timer_disarm(f->event_timer);
        show_event(f, event);
}

static void on_event(Timer *t, void *userdata) {
        FakeGceMetadata *f = userdata;

        if (!f->event_pending) {
                show_event(f, "NONE");
                return;
        }
        f->event_pending = false;
        if (f->event_lasts_usec != USEC_INFINITY)
                timer_arm_in(f->event_timer, f->event_lasts_usec);
        show_event(f, f->event);
}

bool fake_gce_metadata_migrate(FakeGceMetadata *f, const char *event, usec_t lead_usec, usec_t lasts_usec) {
        if (!f->migrates)
                return false;
        free(f->event);
        f->event = MUST(strdup(event));
        f->event_lasts_usec = lasts_usec;
        f->event_pending = !f->maintenance_asked;
        if (f->event_pending) {
                timer_arm_in(f->event_timer, lead_usec);
                return false;
        }
        if (lasts_usec != USEC_INFINITY)
                timer_arm_in(f->event_timer, usec_add(lead_usec, lasts_usec));
        else
                timer_disarm(f->event_timer);
        show_event(f, event);
        return true;
}

void fake_gce_metadata_set_upcoming_none(FakeGceMetadata *f, FakeGceUpcoming none) {
        cJSON_Delete(f->tree.upcoming);
        f->tree.upcoming = NULL;
        f->tree.upcoming_none = none;
        tell(f);
}

void fake_gce_metadata_set_upcoming_text(FakeGceMetadata *f, const char *json) {
        cJSON *o = MUST(cJSON_Parse(json));

        assert(cJSON_IsObject(o));
        cJSON_Delete(f->tree.upcoming);
        f->tree.upcoming = o;
        tell(f);
}

void fake_gce_metadata_set_upcoming(FakeGceMetadata *f, const char *type, const char *status,
                                    usec_t start_wall_usec, usec_t end_wall_usec, bool can_reschedule) {
        char start[RFC3339_MAX], end[RFC3339_MAX];
        _cleanup_cjson_ cJSON *o = NULL;
        _cleanup_free_ char *text = NULL;

        rfc3339_format(start_wall_usec, start);
        rfc3339_format(end_wall_usec, end);
        o = fj_parse("{'can_reschedule':'%s','latest_window_start_time':'%s','maintenance_reasons':"
                     "'PLANNED_UPDATE','maintenance_status':'%s','type':'%s','window_end_time':'%s',"
                     "'window_start_time':'%s'}",
                     can_reschedule ? "true" : "false", start, status, type, end, start);
        text = fj_print(o);
        fake_gce_metadata_set_upcoming_text(f, text);
}

void fake_gce_metadata_set_stop_state(FakeGceMetadata *f, const char *state, unsigned max_duration_sec) {
        char now[RFC3339_MAX];

        free(f->tree.stop_state);
        f->tree.stop_state = MUST(strdup(state));
        f->tree.stop_max_sec = max_duration_sec;
        rfc3339_format(loop_wall(f->loop), now);
        free(f->tree.stop_requested);
        f->tree.stop_requested = MUST(strdup(now));
        tell(f);
}

void fake_gce_metadata_withdraw(FakeGceMetadata *f) {
        fake_gce_metadata_set_preempted(f, false);
        fake_gce_metadata_set_maintenance(f, "NONE");
        fake_gce_metadata_set_stop_state(f, FAKE_GCE_STOP_IDLE, 0);
        fake_gce_metadata_set_upcoming_none(f, f->tree.upcoming_none);
}

/* -- faults -------------------------------------------------------------------------------------------- */

void fake_gce_metadata_set_name(FakeGceMetadata *f, const char *name) {
        int r = free_and_strdup(&f->tree.told_name, name);

        assert(r >= 0);
        tell(f);
}

void fake_gce_metadata_set_id(FakeGceMetadata *f, const char *id) {
        int r = free_and_strdup(&f->tree.id, id);

        assert(r >= 0);
        tell(f);
}

void fake_gce_metadata_intercept(FakeGceMetadata *f, bool on) {
        f->intercepted = on;
        tell(f);
}

void fake_gce_metadata_restart(FakeGceMetadata *f, usec_t lasts_usec) {
        static const Look away = { .status = 503 };

        f->away_until_usec = usec_add(loop_now(f->loop), lasts_usec);
        LIST_FOREACH (w, &f->waiters, Waiter, waiters)
                answer_waiter(w, &away);
}

void fake_gce_metadata_hang(FakeGceMetadata *f, unsigned parts, unsigned n) {
        fake_fault_set(&f->fault, parts, n, 0, NULL);
}

void fake_gce_metadata_fail(FakeGceMetadata *f, unsigned parts, unsigned n, unsigned status) {
        fake_fault_set(&f->fault, parts, n, status, NULL);
}

void fake_gce_metadata_garble(FakeGceMetadata *f, unsigned parts, unsigned n, const char *body) {
        fake_fault_set(&f->fault, parts, n, 200, body);
}

void fake_gce_metadata_set_stranger(FakeGceMetadata *f, bool on) {
        f->stranger = on;
}

size_t fake_gce_metadata_n_gets(const FakeGceMetadata *f) {
        return f->n_gets;
}

size_t fake_gce_metadata_n_waiting(const FakeGceMetadata *f) {
        return f->waiters.size;
}

/* -- life ---------------------------------------------------------------------------------------------- */

FakeGceMetadata *fake_gce_metadata_new(Loop *loop, const FakeGceMetadataOptions *options) {
        FakeGceMetadata *f = MUST(new0(FakeGceMetadata, 1));
        int r = timer_new(loop, "fake-gce-maintenance", on_event, f, &f->event_timer);

        assert(r >= 0);
        f->loop = loop;
        f->migrates = options->gpu || (!options->spot && !options->terminates);
        fake_gce_tree_init(&f->tree, options);
        return f;
}

FakeGceMetadata *fake_gce_metadata_free(FakeGceMetadata *f) {
        if (!f)
                return NULL;
        assert(f->waiters.size == 0);
        timer_free(f->event_timer);
        fake_gce_tree_done(&f->tree);
        fake_fault_done(&f->fault);
        token_done(&f->token);
        token_done(&f->last_token);
        free(f->event);
        return mfree(f);
}
