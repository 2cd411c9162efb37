/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-gce.h"

#include <stdio.h>

#include "http-transport.h"
#include "json.h"
#include "string-util.h"

#define PREFIX "/computeMetadata/v1/"
#define FLAVOR "Metadata-Flavor"
#define WAIT_SEC 60
#define WAIT_TIMEOUT_USEC (75 * USEC_PER_SEC)
#define ID_TIMEOUT_USEC (2 * USEC_PER_SEC)
#define BODY_BYTES_MAX 16384u
#define ETAG_BYTES_MAX 64u
#define ID_BYTES_MAX 20u
#define NAME_BYTES_MAX 63u
#define PREEMPTION_LEAD_USEC (30 * USEC_PER_SEC)
#define SLOWEST_USEC USEC_PER_MINUTE

typedef struct NoticeGce NoticeGce;
typedef struct GceFeed GceFeed;

/* What an answer of 200 says. 1: *ret is a notice; 0: none; negative: *reterr_why. */
typedef int (*gce_read_t)(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why);

typedef struct GceKey {
        const char *path, *query;
        NoticeKind kind;
        gce_read_t read;
        bool optional;            /* 404: the VM has no such thing */
        bool unavailable_is_none; /* 503 has been seen for "nothing planned" */
} GceKey;

struct GceFeed {
        NoticeGce *source;
        const GceKey *key;
        HttpCall *call;
        Timer *timer;
        Backoff backoff;
        char etag[ETAG_BYTES_MAX + 1]; /* "0": the value is wanted at once */
        usec_t asked_usec;
        Notice *notice; /* the last one seen */
};

static int read_preempted(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why);
static int read_maintenance(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why);
static int read_upcoming(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why);
static int read_stop(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why);

#define PREEMPTED_FEED "instance/preempted"
#define MAINTENANCE_FEED "instance/maintenance-event"
#define UPCOMING_FEED "instance/upcoming-maintenance"
#define STOP_FEED "instance/shutdown-details/stop-state"

static const GceKey keys[] = {
        { PREEMPTED_FEED, "", NOTICE_SPOT, read_preempted, false, false },
        { MAINTENANCE_FEED, "", NOTICE_MAINTENANCE, read_maintenance, false, false },
        { UPCOMING_FEED, "&alt=json", NOTICE_MAINTENANCE, read_upcoming, true, true },
        { STOP_FEED, "", NOTICE_MAINTENANCE, read_stop, true, false },
};

struct NoticeGce {
        NoticeSource source;
        Env *env;
        char *endpoint;
        usec_t poll_usec;
        char id[ID_BYTES_MAX + 1];     /* of the instance; "": not known yet */
        char name[NAME_BYTES_MAX + 1]; /* of the same; "": it is not told yet */
        char asked_id[ID_BYTES_MAX + 1]; /* answered, and the name that belongs to it is asked for */
        usec_t identity_usec;            /* when both were asked for last */
        HttpCall *call;                  /* for one of them */
        Timer *timer;
        Backoff backoff;
        GceFeed feeds[ELEMENTSOF(keys)];
};

static const char no_google[] =
        "what answers is no metadata server of Compute Engine: it does not say Metadata-Flavor: Google";

static void ask(GceFeed *f);

/* -- what answers say ---------------------------------------------------------------------------- */

/* That word, and nothing behind it but the end of its line. */
static bool text_is(const char *text, size_t size, const char *word) {
        while (size > 0 && strchr(" \r\n", text[size - 1]))
                size--;
        return size == strlen(word) && memcmp(text, word, size) == 0;
}

static bool body_is(const HttpResponse *r, const char *word) {
        return text_is(r->body, r->body_size, word);
}

static Notice *make(GceFeed *f, const char *what, const char *occurrence, const char *action) {
        _cleanup_free_ char *id = strf("%s-%s-%s", f->source->id, what, occurrence);

        return id ? notice_source_make(&f->source->source, f->key->kind, id, action) : NULL;
}

/* It ends half a minute after it was first seen: Google says no time. */
static void give_lead(GceFeed *f, Notice *n, const HttpResponse *r) {
        const Loop *loop = f->source->env->loop;
        usec_t date = http_date(r), now = date > 0 ? date : loop_to_wall(loop, r->finished_usec);

        if (f->notice && streq(f->notice->id, n->id)) {
                n->announced_usec = f->notice->announced_usec;
                notice_source_keep(n, f->notice, true);
                return;
        }
        notice_source_judge(loop, n, NULL, usec_add(now, PREEMPTION_LEAD_USEC), date, r->finished_usec, PREEMPTION_LEAD_USEC);
}

static int read_preempted(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why) {
        if (body_is(r, "FALSE"))
                return 0;
        *reterr_why = "instance/preempted says neither TRUE nor FALSE";
        if (!body_is(r, "TRUE"))
                return -EBADMSG;
        *ret = make(f, "preempted", f->source->env->boot_id, "stop");
        if (!*ret)
                return -ENOMEM;
        give_lead(f, *ret, r);
        return 1;
}

static int read_maintenance(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why) {
        bool migrates = body_is(r, "MIGRATE_ON_HOST_MAINTENANCE");

        if (body_is(r, "NONE"))
                return 0;
        *reterr_why = "instance/maintenance-event says nothing that is known";
        if (!migrates && !body_is(r, "TERMINATE_ON_HOST_MAINTENANCE"))
                return -EBADMSG;
        *ret = make(f, "maintenance", f->etag, migrates ? "migrate" : "stop");
        if (!*ret)
                return -ENOMEM;
        (*ret)->certainty = migrates ? NOTICE_ADVISORY : NOTICE_CERTAIN;
        return 1;
}

int notice_gce_parse_upcoming(const char *body, size_t size, usec_t *ret_begin_usec, const char **reterr_why) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *root, *begin;
        int r;

        *reterr_why = "instance/upcoming-maintenance is no JSON";
        if (text_is(body, size, "NONE"))
                return 0;
        r = json_parse(body, size, BODY_BYTES_MAX, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        root = json_root(doc);
        if (streq_ptr(json_string_or_null(root), "NONE"))
                return 0;
        *reterr_why = "instance/upcoming-maintenance is no window, and does not say that there is none";
        if (!json_is_object(root))
                return -EBADMSG;
        if (!json_first(root) || json_get(root, "error"))
                return 0;
        begin = json_get(root, "window_start_time");
        if (!begin)
                begin = json_get(root, "windowStartTime");
        *reterr_why = "instance/upcoming-maintenance has a window without a begin that can be read";
        return json_is_string(begin) && rfc3339_parse(json_string_or_null(begin), ret_begin_usec) >= 0 ? 1 : -EBADMSG;
}

static int read_upcoming(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why) {
        char text[RFC3339_MAX];
        usec_t begin;
        int k;

        k = notice_gce_parse_upcoming(r->body, r->body_size, &begin, reterr_why);
        if (k <= 0)
                return k;
        rfc3339_format(begin, text);
        *ret = make(f, "upcoming", text, "maintenance");
        if (!*ret)
                return -ENOMEM;
        (*ret)->not_before_usec = begin;
        notice_source_judge(f->source->env->loop, *ret, f->notice && streq(f->notice->id, (*ret)->id) ? f->notice : NULL, begin,
                            http_date(r), r->finished_usec, USEC_INFINITY);
        return 1;
}

static int read_stop(GceFeed *f, const HttpResponse *r, Notice **ret, const char **reterr_why) {
        *reterr_why = "instance/shutdown-details/stop-state is no word";
        if (r->body_size == 0 || r->body_size > ETAG_BYTES_MAX)
                return -EBADMSG;
        if (!body_is(r, "PENDING_STOP"))
                return 0;
        *ret = make(f, "stop", f->etag, "stop");
        return *ret ? 1 : -ENOMEM;
}

/* -- a feed -------------------------------------------------------------------------------------- */

static void ask_later(GceFeed *f, usec_t at_usec) {
        timer_arm(f->timer, MAX(at_usec, loop_now(f->source->env->loop)));
}

static void feed_failed(GceFeed *f, const char *why, usec_t answered_usec) {
        usec_t delay = notice_source_pause(&f->backoff, f->source->env->random);

        (void) snprintf(f->etag, sizeof(f->etag), "0");
        ask_later(f, usec_add(loop_now(f->source->env->loop), delay));
        notice_source_unknown(&f->source->source, f->key->path, why, answered_usec);
}

/* Takes the notice; NULL: there is none. */
static void feed_answered(GceFeed *f, Notice *n, usec_t next_usec, usec_t answered_usec) {
        backoff_reset(&f->backoff);
        notice_free(f->notice);
        f->notice = n;
        ask_later(f, next_usec);
        notice_source_found(&f->source->source, f->key->path, &f->notice, f->notice ? 1 : 0, answered_usec);
}

static const char *flavor_of(const HttpResponse *r) {
        return http_header_find(r->headers, r->n_headers, FLAVOR);
}

static void take_etag(GceFeed *f, const HttpResponse *r) {
        const char *etag = http_header_find(r->headers, r->n_headers, "ETag");
        size_t n = etag ? strlen(etag) : 0;

        if (n == 0 || n > ETAG_BYTES_MAX || strspn(etag, "0123456789abcdefABCDEF") != n)
                etag = "0";
        (void) snprintf(f->etag, sizeof(f->etag), "%s", etag);
}

static void take_value(GceFeed *f, const HttpResponse *r) {
        const char *why = "out of memory";
        Notice *n = NULL;
        int k;

        take_etag(f, r);
        k = f->key->read(f, r, &n, &why);
        if (k < 0)
                feed_failed(f, k == -ENOMEM ? "out of memory" : why, r->finished_usec);
        else /* a server that lets nobody wait is asked like any other */
                feed_answered(f, n, usec_add(f->asked_usec, f->source->poll_usec), r->finished_usec);
}

static void on_value(const HttpResponse *r, void *userdata) {
        _cleanup_free_ char *why = NULL;
        GceFeed *f = userdata;

        if (r->error == 0 && streq_ptr(flavor_of(r), "Google")) {
                if (r->status == 200) {
                        take_value(f, r);
                        return;
                }
                if ((r->status == 404 && f->key->optional) || (r->status == 503 && f->key->unavailable_is_none && !f->notice)) {
                        (void) snprintf(f->etag, sizeof(f->etag), "0");
                        feed_answered(f, NULL, usec_add(loop_now(f->source->env->loop), SLOWEST_USEC), r->finished_usec);
                        return;
                }
        }
        why = r->error < 0            ? strf("no answer: %s", r->error_text)
              : !flavor_of(r)         ? strdup(no_google)
              : r->status == 404      ? strf("there is no %s: GKE's metadata server for pods hides it; the agent has to run on the host's network", f->key->path)
                                      : strf("HTTP %u", r->status);
        feed_failed(f, why ? why : "out of memory", r->finished_usec);
}

static int send_get(NoticeGce *s, const char *url, usec_t timeout_usec, http_done_t done, void *userdata, HttpCall **ret) {
        const HttpHeader header = { FLAVOR, "Google" };
        const HttpRequest request = {
                .method = HTTP_GET,
                .url = url,
                .headers = &header,
                .n_headers = 1,
                .lane = HTTP_LANE_WATCH, /* they wait for minutes, each on a connection of its own */
                .timeout_usec = timeout_usec,
                .max_response_bytes = BODY_BYTES_MAX,
        };

        *ret = http_call_free(*ret);
        return http_call_start(s->env->transport, &request, done, userdata, ret);
}

static void ask(GceFeed *f) {
        _cleanup_free_ char *url = strf("%s" PREFIX "%s?wait_for_change=true&last_etag=%s&timeout_sec=%d%s", f->source->endpoint,
                                        f->key->path, f->etag, WAIT_SEC, f->key->query);

        f->asked_usec = loop_now(f->source->env->loop);
        if (!url || send_get(f->source, url, WAIT_TIMEOUT_USEC, on_value, f, &f->call) < 0)
                feed_failed(f, "out of memory", f->asked_usec);
}

static void on_feed_timer(Timer *t, void *userdata) {
        ask(userdata);
}

/* -- which instance ------------------------------------------------------------------------------ */

/* Each answers at once. What waits there is of the instance that it was before; so is what was seen, unless it is the same one. */
static void ask_feeds(NoticeGce *s, bool is_same) {
        for (size_t i = 0; i < ELEMENTSOF(s->feeds); i++) {
                GceFeed *f = &s->feeds[i];

                timer_disarm(f->timer);
                (void) snprintf(f->etag, sizeof(f->etag), "0");
                if (!is_same)
                        f->notice = notice_free(f->notice);
                ask(f);
        }
}

/* Id and name change together, so that no notice of one instance is held for another's. */
static void take_identity(NoticeGce *s, const char *name, size_t n) {
        bool is_same = streq(s->id, s->asked_id) && s->name[0] == 0;

        if (n > 0)
                backoff_reset(&s->backoff);
        if (streq(s->id, s->asked_id) && strlen(s->name) == n && memcmp(s->name, name, n) == 0)
                return;
        memcpy(s->id, s->asked_id, sizeof(s->id));
        memcpy(s->name, name, n);
        s->name[n] = 0;
        ask_feeds(s, is_same);
}

static void ask_identity_later(NoticeGce *s) {
        timer_arm_in(s->timer, notice_source_pause(&s->backoff, s->env->random));
}

/* Notices go on as if this metadata were this machine's, or as before. A name that was never told is asked for until it is. */
static void name_is_not_told(NoticeGce *s) {
        if (s->id[0] == 0)
                take_identity(s, "", 0);
        if (s->name[0] == 0)
                ask_identity_later(s);
}

static void on_name(const HttpResponse *r, void *userdata) {
        NoticeGce *s = userdata;
        size_t n = r->error == 0 ? strspn(r->body, "abcdefghijklmnopqrstuvwxyz0123456789-") : 0;

        if (r->error == 0 && r->status == 200 && streq_ptr(flavor_of(r), "Google") && n > 0 && n <= NAME_BYTES_MAX &&
            strspn(r->body + n, " \r\n") == r->body_size - n)
                take_identity(s, r->body, n);
        else
                name_is_not_told(s);
}

static void ask_name(NoticeGce *s) {
        _cleanup_free_ char *url = strf("%s" PREFIX "instance/name", s->endpoint);

        if (!url || send_get(s, url, ID_TIMEOUT_USEC, on_name, s, &s->call) < 0)
                name_is_not_told(s);
}

static void on_id(const HttpResponse *r, void *userdata) {
        NoticeGce *s = userdata;
        size_t n = strspn(r->body, "0123456789");
        const char *why;

        if (r->error == 0 && r->status == 200 && streq_ptr(flavor_of(r), "Google") && n > 0 && n <= ID_BYTES_MAX &&
            strspn(r->body + n, " \r\n") == r->body_size - n) {
                memcpy(s->asked_id, r->body, n);
                s->asked_id[n] = 0;
                ask_name(s);
                return;
        }
        if (s->name[0]) /* asked anew, and once more in a minute */
                return;
        ask_identity_later(s);
        if (s->id[0])
                return;
        why = r->error < 0    ? r->error_text
              : !flavor_of(r) ? no_google
                              : "instance/id is no number";
        notice_source_unknown(&s->source, keys[0].path, why, r->finished_usec);
}

static int ask_id(NoticeGce *s) {
        _cleanup_free_ char *url = strf("%s" PREFIX "instance/id", s->endpoint);

        s->identity_usec = loop_now(s->env->loop);
        return url ? send_get(s, url, ID_TIMEOUT_USEC, on_id, s, &s->call) : -ENOMEM;
}

static void on_timer(Timer *t, void *userdata) {
        NoticeGce *s = userdata;

        if (ask_id(s) < 0) {
                timer_arm_in(s->timer, SLOWEST_USEC);
                if (s->id[0] == 0)
                        notice_source_unknown(&s->source, keys[0].path, "out of memory", loop_now(s->env->loop));
        }
}

/* -- NoticeSource -------------------------------------------------------------------------------- */

static NoticeGce *to_gce(NoticeSource *s) {
        return CONTAINER_OF(s, NoticeGce, source);
}

static void gce_start(NoticeSource *source) {
        NoticeGce *s = to_gce(source);

        timer_arm_in(s->timer, random_below(s->env->random, s->poll_usec));
}

static void gce_kick(NoticeSource *source) {
        NoticeGce *s = to_gce(source);

        if (s->name[0] == 0 && s->backoff.failures > 0) {
                timer_arm_in(s->timer, 0);
                backoff_reset(&s->backoff);
        }
        if (s->id[0] == 0)
                return;
        for (size_t i = 0; i < ELEMENTSOF(s->feeds); i++)
                if (s->feeds[i].backoff.failures > 0) {
                        backoff_reset(&s->feeds[i].backoff);
                        ask_later(&s->feeds[i], 0);
                }
}

/* Its id says of which of the three it is. */
static bool gce_announces(const NoticeSource *source, const char *feed, const Notice *n) {
        static const char *const words[ELEMENTSOF(keys)] = { "-preempted-", "-maintenance-", "-upcoming-", "-stop-" };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(feed, keys[i].path))
                        return strstr(n->id, words[i]);
        return false;
}

NoticeIdentity notice_gce_identity(const char *name, const char *provider_id) {
        const char *slash = strrchr(provider_id, '/');

        if (!slash || slash[1] == 0 || !startswith(provider_id, "gce://"))
                return NOTICE_IDENTITY_UNKNOWN;
        return streq(slash + 1, name) ? NOTICE_IDENTITY_SAME : NOTICE_IDENTITY_OTHER;
}

static NoticeIdentity gce_identity(const NoticeSource *source, const char *provider_id, const char **ret_name) {
        const NoticeGce *s = CONTAINER_OF(source, NoticeGce, source);

        *ret_name = s->name;
        return s->name[0] ? notice_gce_identity(s->name, provider_id) : NOTICE_IDENTITY_UNKNOWN;
}

static bool gce_is_of_machine(const NoticeSource *source, const Notice *n) {
        const NoticeGce *s = CONTAINER_OF(source, NoticeGce, source);
        const char *rest = s->id[0] ? startswith(n->id, s->id) : NULL;

        return rest && rest[0] == '-';
}

static void gce_ask_identity(NoticeSource *source) {
        NoticeGce *s = to_gce(source);

        if (loop_now(s->env->loop) >= usec_add(s->identity_usec, NOTICE_SOURCE_IDENTITY_USEC))
                (void) ask_id(s);
}

static void gce_free(NoticeSource *source) {
        NoticeGce *s = to_gce(source);

        for (size_t i = 0; i < ELEMENTSOF(s->feeds); i++) {
                http_call_free(s->feeds[i].call);
                timer_free(s->feeds[i].timer);
                notice_free(s->feeds[i].notice);
        }
        http_call_free(s->call);
        timer_free(s->timer);
        free(s->endpoint);
        free(s);
}

static const char *const gce_feeds[] = { PREEMPTED_FEED, MAINTENANCE_FEED, UPCOMING_FEED, STOP_FEED, NULL };

static void gce_next_wakeup(const NoticeSource *source, Wakeups *w) {
        const NoticeGce *s = CONTAINER_OF(source, NoticeGce, source);

        if (s->id[0] == 0 || s->name[0] == 0) {
                wakeups_unfinished(w, "identity of", "gce", s->id[0] == 0 ? "id" : "name",
                                   MAX(NOTICE_SOURCE_WAKEUP_USEC, s->poll_usec));
                wakeups_timer(w, s->timer);
                wakeups_await(w, s->call);
        }
        for (size_t i = 0; s->id[0] && i < ELEMENTSOF(s->feeds); i++) {
                wakeups_unfinished(w, "poll of gce's", s->feeds[i].key->path, "",
                                   MAX(NOTICE_SOURCE_WAKEUP_USEC, s->poll_usec));
                wakeups_timer(w, s->feeds[i].timer);
                wakeups_await(w, s->feeds[i].call);
        }
}

static const NoticeSourceOps gce_ops = {
        .name = "gce",
        .feeds = gce_feeds,
        .start = gce_start,
        .kick = gce_kick,
        .announces = gce_announces,
        .identity = gce_identity,
        .is_of_machine = gce_is_of_machine,
        .ask_identity = gce_ask_identity,
        .may_cancel = notice_source_cloud_may_cancel,
        .next_wakeup = gce_next_wakeup,
        .free = gce_free,
};

static int make_feeds(NoticeGce *s) {
        for (size_t i = 0; i < ELEMENTSOF(s->feeds); i++) {
                GceFeed *f = &s->feeds[i];
                int r;

                *f = (GceFeed){ .source = s, .key = &keys[i], .backoff = s->backoff, .etag = "0" };
                r = timer_new(s->env->loop, "notice-gce", on_feed_timer, f, &f->timer);
                if (r < 0)
                        return r;
        }
        return 0;
}

int notice_gce_new(Env *env, const NoticeGceOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret) {
        NoticeGce *s;
        int r;

        assert(env && env->boot_id && o && o->endpoint && o->poll_usec > 0 && on_look && ret);
        s = new0(NoticeGce, 1);
        if (!s)
                return -ENOMEM;
        s->source = (NoticeSource){ .ops = &gce_ops, .on_look = on_look, .userdata = userdata };
        s->env = env;
        s->poll_usec = o->poll_usec;
        s->backoff = NOTICE_SOURCE_BACKOFF(o->poll_usec, SLOWEST_USEC);
        s->endpoint = strdup(o->endpoint);
        r = s->endpoint ? timer_new(env->loop, "notice-gce", on_timer, s, &s->timer) : -ENOMEM;
        if (r >= 0)
                r = make_feeds(s);
        if (r < 0) {
                gce_free(&s->source);
                return r;
        }
        *ret = &s->source;
        return 0;
}
