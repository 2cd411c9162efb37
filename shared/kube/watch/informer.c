/* SPDX-License-Identifier: Apache-2.0 */
/*
 *                 +---------------- next page, or from the start after a 410 ---+
 *                 v                                                             |
 *      LISTING ---+--all pages--> WATCHING --ended, stalled--> WATCHING         |
 *         |  ^                     |   ^                                        |
 *   error |  +------- 410 ---------+   +--- timer or kick ---+                  |
 *         v                        | error                   |                  |
 *      LIST_WAIT (timer or kick)   +-----------------> WATCH_WAIT               |
 *         +---------------------------------------------------------------------+
 *
 * A page is read into objects item by item, so that neither its tree nor a second list of objects ever
 * exists; one page is one iteration of the loop. The watch begins at the resourceVersion of the first page, as later
 * pages are never older than it.
 *
 * A page that fails is asked for again with the same token; only an expired or refused token begins the list
 * anew. What earlier pages brought stays: it was true at a later time than what it replaced.
 *
 * An etcd that is restored from a backup has not reached the versions that were seen before. A list, or the next
 * page of one, is told so (ResourceVersionTooLarge); a watch from there is not: it hears nothing, no bookmark
 * either. So where watches have stood for long, and brought nothing, a list follows; and at once where writes are refused
 * as decided on old states (informer_distrust()).
 */
#include "informer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "backoff.h"
#include "kube-protobuf.h"
#include "log.h"
#include "object-store.h"
#include "parse-util.h"
#include "string-util.h"

#define PAGE_SIZE_DEFAULT 500u
#define STALL_DEFAULT_USEC (150 * USEC_PER_SEC)
#define MUTE_STALLS 2u /* for so long watches bring nothing until a list asks why */
#define WATCH_TIMEOUT_DEFAULT_USEC (8 * USEC_PER_MINUTE)
#define WATCH_TIMEOUT_JITTER_PERMILLE 250u
#define LIST_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define LIST_MAX_BYTES (64u * 1024 * 1024)
/* Objects on the smallest page. Each may have the largest size that etcd takes, and six times that in
 * JSON. */
#define PAGE_SIZE_MIN 5u
#define OBJECT_MAX_BYTES (4u * 1024 * 1024) /* etcd takes 1.5 MiB; JSON is larger than what is stored */
#define BACKOFF_BASE_USEC (250 * USEC_PER_MSEC)
#define BACKOFF_CAP_USEC (30 * USEC_PER_SEC)
#define BACKOFF_JITTER_PERMILLE 200u
/* Longer than a connection takes to fail: the transport gives unacknowledged bytes (and SYN) 15 s. */
#define SETTLE_USEC (20 * USEC_PER_SEC)
#define SHORT_WATCH_USEC USEC_PER_SEC /* a watch that ends sooner, without an event, is a failure */
#define DISTRUST_SPARES_USEC USEC_PER_MINUTE /* what was listed so lately is not listed again for the owner's distrust */
#define KICK_SPARES_USEC USEC_PER_SEC /* a call that began so lately is not begun again by a kick */

typedef enum InformerState {
        INFORMER_LISTING,
        INFORMER_LIST_WAIT,
        INFORMER_WATCHING,
        INFORMER_WATCH_WAIT,
        _INFORMER_STATE_MAX,
} InformerState;

typedef enum Health { HEALTH_UNKNOWN, HEALTH_CONNECTED, HEALTH_LOST } Health;

struct Informer {
        KubeClient *client;
        Loop *loop;
        Random *random;
        Log *log;
        const KubeKind *kind;
        char *ns, *label_selector, *field_selector;
        unsigned page_size;
        usec_t stall_usec, watch_timeout_usec;
        InformerHandler handler;

        ObjectStore *store;
        InformerState state;
        Health health;
        bool synced;
        bool coalesced;
        bool json_only;         /* protobuf came, and could not be read */
        char *resource_version; /* where the next watch begins */

        char *list_version; /* of the list's first page */
        char *continue_token;

        bool watch_heard;   /* it brought something */
        bool went_back;     /* informer_went_back() */
        bool distrusted;    /* by the owner: a list comes before the next watch */
        usec_t listed_usec; /* loop_now(): when the last list was complete */
        usec_t mute_usec; /* so long watches have stood since then, or since the list, and brought nothing */
        bool has_watch_status;
        ApiError watch_status; /* an ERROR event */

        KubeCall *call;
        usec_t call_usec;       /* when it began */
        Timer *retry_timer;     /* *_WAIT */
        Timer *settle_timer;    /* WATCHING, until it counts as standing */
        usec_t not_before_usec; /* the server's wish, which a kick respects */
        Backoff backoff;
        unsigned gone_streak; /* 410s without a watch that stood in between */
};

static const char *const state_table[_INFORMER_STATE_MAX] = {
        [INFORMER_LISTING] = "listing",
        [INFORMER_LIST_WAIT] = "waiting to list",
        [INFORMER_WATCHING] = "watching",
        [INFORMER_WATCH_WAIT] = "waiting to watch",
};

static const unsigned edges[_INFORMER_STATE_MAX] = {
        [INFORMER_LISTING] = 1u << INFORMER_LISTING | 1u << INFORMER_LIST_WAIT | 1u << INFORMER_WATCHING,
        [INFORMER_LIST_WAIT] = 1u << INFORMER_LISTING | 1u << INFORMER_LIST_WAIT,
        [INFORMER_WATCHING] = 1u << INFORMER_LISTING | 1u << INFORMER_LIST_WAIT | 1u << INFORMER_WATCHING |
                              1u << INFORMER_WATCH_WAIT,
        [INFORMER_WATCH_WAIT] = 1u << INFORMER_WATCHING | 1u << INFORMER_WATCH_WAIT | 1u << INFORMER_LISTING,
};

static void informer_list(Informer *i, const char *why);
static void informer_watch(Informer *i, const char *why);

/* The only writer of the state. */
static void informer_set_state(Informer *i, InformerState to, const char *why) {
        assert(edges[i->state] & (1u << to));
        log_debug(i->log, "Informer of %s: %s -> %s: %s", i->kind->plural, state_table[i->state],
                  state_table[to], why);
        i->state = to;
}

static void set_health(Informer *i, Health to, const char *why) {
        if (i->health == to)
                return;
        i->health = to;
        if (i->handler.on_health)
                i->handler.on_health(i, to == HEALTH_CONNECTED, to == HEALTH_CONNECTED ? "" : why,
                                     i->handler.userdata);
}

static KubeTarget informer_target(const Informer *i) {
        return (KubeTarget){ .kind = i->kind, .ns = i->ns };
}

static void on_change(KubeObject *old, KubeObject *new, void *userdata) {
        InformerEvent e = !old ? INFORMER_ADDED : !new ? INFORMER_DELETED : INFORMER_MODIFIED;
        Informer *i = userdata;

        i->handler.on_event(i, e, old, new, i->handler.userdata);
}

/* -- waiting -------------------------------------------------------------------------------------------- */

static void informer_wait(Informer *i, InformerState wait, usec_t retry_after_usec, const char *why) {
        usec_t now = loop_now(i->loop);

        assert(wait == INFORMER_LIST_WAIT || wait == INFORMER_WATCH_WAIT);
        i->not_before_usec = usec_add(now, retry_after_usec);
        timer_arm(i->retry_timer, usec_add(now, MAX(backoff_next(&i->backoff, i->random), retry_after_usec)));
        informer_set_state(i, wait, why);
        set_health(i, HEALTH_LOST, why);
}

static void on_retry(Timer *t, void *userdata) {
        Informer *i = userdata;

        if (i->state == INFORMER_LIST_WAIT)
                informer_list(i, "retrying");
        else if (i->state == INFORMER_WATCH_WAIT)
                informer_watch(i, "retrying");
}

/* A call that may hang in a path that was lost: begun again, but not by each of many kicks. */
static void kick_call(Informer *i) {
        bool watching = i->state == INFORMER_WATCHING;

        /* Without a call we are inside its answer. */
        if (!i->call || i->health == HEALTH_CONNECTED ||
            loop_now(i->loop) < usec_add(i->call_usec, KICK_SPARES_USEC))
                return;
        i->call = kube_call_free(i->call);
        timer_disarm(i->settle_timer);
        informer_set_state(i, watching ? INFORMER_WATCH_WAIT : INFORMER_LIST_WAIT, "the path came back");
        timer_arm_in(i->retry_timer, 0);
}

void informer_kick(Informer *i) {
        assert(i);
        switch (i->state) {
        case INFORMER_LISTING:
        case INFORMER_WATCHING:
                kick_call(i);
                break;
        case INFORMER_LIST_WAIT:
        case INFORMER_WATCH_WAIT:
                backoff_reset(&i->backoff);
                timer_arm_earlier(i->retry_timer, i->not_before_usec);
                break;
        case _INFORMER_STATE_MAX:
                assert(false && "an informer in no state");
        }
}

/* Returns true if the resourceVersion is newer than a restored etcd: do not retry. */
static bool is_future(const ApiError *e) {
        return api_error_has_cause(e, "ResourceVersionTooLarge");
}

static bool is_gone(const ApiError *e) {
        return e->http == 410;
}

/* Worth the same question again; anything else is about what was asked. */
static bool is_transient(const ApiError *e) {
        return e->http == 0 || e->http == 401 || e->http == 403 || e->http == 408 || e->http == 429 ||
               e->http >= 500;
}

/* -- list ----------------------------------------------------------------------------------------------- */

static void list_forget(Informer *i) {
        i->continue_token = mfree(i->continue_token);
        i->list_version = mfree(i->list_version);
}

/* The first 410 is followed at once, more of them wait. */
static void informer_relist(Informer *i, const char *why) {
        list_forget(i);
        if (i->gone_streak++ == 0)
                informer_list(i, why);
        else
                informer_wait(i, INFORMER_LIST_WAIT, 0, why);
}

static void list_failed(Informer *i, const ApiError *error) {
        _cleanup_free_ char *why = strf("Failed to list %s: %s", i->kind->plural, error->message);

        if (is_gone(error) && i->continue_token) {
                informer_relist(i, strempty(why));
                return;
        }
        if (error->error == -EMSGSIZE && i->page_size > PAGE_SIZE_MIN) {
                i->page_size = MAX(i->page_size / 2, PAGE_SIZE_MIN);
                log_warning(
                        i->log,
                        "A page of %s is larger than %u MB; asking for %u objects at a time from now on.",
                        i->kind->plural, LIST_MAX_BYTES / (1024 * 1024), i->page_size);
        }
        if (!is_transient(error) || is_future(error))
                list_forget(i);
        informer_wait(i, INFORMER_LIST_WAIT, error->retry_after_usec, strempty(why));
}

/* Changes to JSON, which costs more, if protobuf cannot be read: because of a proxy, or a fault of one side. */
static void note_protobuf(Informer *i, bool protobuf, int error) {
        if (!protobuf || error != -EBADMSG || i->json_only)
                return;
        i->json_only = true;
        log_warning(i->log, "The protobuf that came for %s cannot be read; asking for JSON from now on.",
                    i->kind->plural);
}

/* r: how the item could be read. */
static int take_item(Informer *i, int r, const JsonDoc *doc, const JsonError *error) {
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                object_store_pass_over(i->store, NULL, error->message ?: "not readable, or too large");
                return 0;
        }
        return object_store_take(i->store, json_root(doc));
}

static int on_item(const char *item, size_t size, void *userdata) {
        Informer *i = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        JsonOmits omits = { .list = i->kind->unread, .n_list = i->kind->n_unread };
        JsonError error = { 0 };
        int r;

        r = json_parse_without(item, size, OBJECT_MAX_BYTES, &omits, &doc, &error);
        return take_item(i, r, doc, &error);
}

static int on_protobuf_item(const char *item, size_t size, void *userdata) {
        Informer *i = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        JsonError error = { 0 };
        int r;

        r = json_from_protobuf(item, size, OBJECT_MAX_BYTES, i->kind->shape, &doc, &error);
        if (r == -EBADMSG)
                return r; /* its JSON may be readable, or tell at least whose it is */
        return take_item(i, r, doc, &error);
}

/* 1: another page follows; 0: that was the last; -EBADMSG, -E2BIG, -ENOMEM. */
static int list_take_page(Informer *i, const KubeReply *reply) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        const char *version, *token;
        const Json *meta;
        int r;

        r = reply->protobuf ? kube_protobuf_split_items(reply->body, reply->body_size, LIST_MAX_BYTES,
                                                        i->kind, on_protobuf_item, i, &rest, NULL)
                            : json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, on_item, i,
                                               &rest, NULL);
        if (r < 0)
                return r;

        meta = json_get(json_root(rest), "metadata");
        version = json_string_or_null(json_get(meta, "resourceVersion"));
        token = json_string_or_null(json_get(meta, "continue"));
        if (isempty(version))
                return -EBADMSG;
        if (!isempty(token) && streq_ptr(token, i->continue_token))
                return -EBADMSG; /* would never end */

        if (!i->list_version) {
                r = free_and_strdup(&i->list_version, version);
                if (r < 0)
                        return r;
        }
        r = free_and_strdup(&i->continue_token, isempty(token) ? NULL : token);
        return r < 0 ? r : i->continue_token ? 1 : 0;
}

static bool is_older(const char *version, const char *than) {
        uint64_t a, b;

        return version && than && parse_uint64(version, &a) >= 0 && parse_uint64(than, &b) >= 0 && a < b;
}

static void list_finish(Informer *i) {
        object_store_end_list(i->store);
        i->went_back = is_older(i->list_version, i->resource_version);
        free(i->resource_version);
        i->resource_version = TAKE_PTR(i->list_version);
        i->mute_usec = 0;
        i->distrusted = false;
        i->listed_usec = loop_now(i->loop);
        set_health(i, HEALTH_CONNECTED, "");
        if (!i->synced) {
                i->synced = true;
                if (i->handler.on_synced)
                        i->handler.on_synced(i, i->handler.userdata);
        }
        if (i->handler.on_listed)
                i->handler.on_listed(i, i->handler.userdata);
        informer_watch(i, "list complete");
}

static void on_page(const KubeReply *reply, void *userdata) {
        Informer *i = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(i->call);
        _cleanup_free_ char *why = NULL;
        int r;

        if (reply->error) {
                list_failed(i, reply->error);
                return;
        }

        r = list_take_page(i, reply);
        if (r < 0) {
                note_protobuf(i, reply->protobuf, r);
                if (r != -ENOMEM)
                        list_forget(i);
                why = strf("The list of %s cannot be read: %s", i->kind->plural, strerrordesc_np(-r));
                informer_wait(i, INFORMER_LIST_WAIT, 0, strempty(why));
                return;
        }

        /* The path is good; a list that ends in 410 again and again stays held back. */
        if (i->gone_streak <= 1)
                backoff_reset(&i->backoff);
        if (r > 0)
                informer_list(i, "next page");
        else
                list_finish(i);
}

/* The next page, or the first one. */
static void informer_list(Informer *i, const char *why) {
        KubeTarget target = informer_target(i);
        KubeListOptions options = {
                .label_selector = i->label_selector,
                .field_selector = i->field_selector,
                .limit = i->page_size,
                .continue_token = i->continue_token,
                .protobuf = !i->json_only,
        };
        KubeCallOptions call_options = { .lane = HTTP_LANE_BULK,
                                         .timeout_usec = LIST_TIMEOUT_USEC,
                                         .max_response_bytes = LIST_MAX_BYTES };
        int r;

        assert(!i->call);
        if (!i->continue_token) {
                list_forget(i);
                object_store_begin_list(i->store);
        }
        informer_set_state(i, INFORMER_LISTING, why);
        i->call_usec = loop_now(i->loop);
        r = kube_list(i->client, &target, &options, &call_options, on_page, i, &i->call);
        if (r < 0)
                informer_wait(i, INFORMER_LIST_WAIT, 0, strerrordesc_np(-r));
}

/* -- watch ---------------------------------------------------------------------------------------------- */

/* The watch stands: forgets earlier failures. */
static void watch_stands(Informer *i) {
        timer_disarm(i->settle_timer);
        backoff_reset(&i->backoff);
        i->gone_streak = 0;
        set_health(i, HEALTH_CONNECTED, "");
}

static void on_settle(Timer *t, void *userdata) {
        Informer *i = userdata;

        assert(i->state == INFORMER_WATCHING);
        watch_stands(i);
}

static int watch_take_error(Informer *i, const Json *status) {
        _cleanup_free_ char *text = json_format(status);
        int64_t code = 0;
        int r;

        if (!text)
                return -ENOMEM;
        (void) json_int64(json_get(status, "code"), &code);
        r = api_error_from_body(code >= 300 && code < 600 ? (unsigned) code : 500, text, strlen(text), 0,
                                &i->watch_status);
        if (r < 0)
                return r;
        i->has_watch_status = true;
        return -ESTALE; /* nothing follows */
}

static int on_watch_event(const char *type, const Json *object, void *userdata) {
        Informer *i = userdata;
        const char *version;
        int r = 0;

        if (streq(type, "ERROR"))
                return watch_take_error(i, object);

        if (!i->watch_heard) {
                i->watch_heard = true;
                i->mute_usec = 0;
                watch_stands(i);
        }
        if (streq(type, "ADDED") || streq(type, "MODIFIED"))
                r = object_store_take(i->store, object);
        else if (streq(type, "DELETED"))
                object_store_take_deleted(i->store, object);
        else if (!streq(type, "BOOKMARK"))
                return 0; /* of a later API: no harm */
        if (r < 0)
                return r; /* not taken: the next watch begins before it */

        version = json_string_or_null(json_path(object, "metadata", "resourceVersion", NULL));
        if (!isempty(version)) {
                r = free_and_strdup(&i->resource_version, version);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void watch_failed(Informer *i, const ApiError *error) {
        _cleanup_free_ char *why = strf("The watch of %s failed: %s", i->kind->plural, error->message);
        usec_t lasted = usec_sub(loop_now(i->loop), i->call_usec);

        if (is_gone(error))
                informer_relist(i, strempty(why));
        else if (error->http == 0 && error->error == -ETIMEDOUT && lasted >= i->stall_usec)
                /* A kind that never changes may have no bookmark either, so silence alone is no failure.
                 * The next request shows whether the server is there. */
                informer_watch(i, "the last one fell silent");
        else if (!is_transient(error) || error->error == -EBADMSG || error->error == -EMSGSIZE ||
                 is_future(error))
                /* A request or an answer that is wrong would be wrong again from the same version. */
                informer_wait(i, INFORMER_LIST_WAIT, error->retry_after_usec, strempty(why));
        else
                informer_wait(i, INFORMER_WATCH_WAIT, error->retry_after_usec, strempty(why));
}

static void on_watch_done(const KubeReply *reply, void *userdata) {
        Informer *i = userdata;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(i->call);
        _cleanup_(api_error_done) ApiError status = i->watch_status;
        bool has_status = i->has_watch_status;
        usec_t lasted = usec_sub(loop_now(i->loop), i->call_usec);
        _cleanup_free_ char *why = NULL;

        i->watch_status = (ApiError){ 0 };
        i->has_watch_status = false;
        timer_disarm(i->settle_timer);
        if (!i->watch_heard && lasted >= SETTLE_USEC)
                i->mute_usec = usec_add(i->mute_usec, lasted);

        if (has_status)
                watch_failed(i, &status);
        else if (reply->error) {
                note_protobuf(i, reply->protobuf, reply->error->error);
                watch_failed(i, reply->error);
        } else if (!i->watch_heard && lasted < SHORT_WATCH_USEC) {
                why = strf("The watch of %s ended as soon as it began", i->kind->plural);
                informer_wait(i, INFORMER_WATCH_WAIT, 0, strempty(why));
        } else
                informer_watch(i, "the last one ended");
}

static void informer_watch(Informer *i, const char *why) {
        KubeTarget target = informer_target(i);
        usec_t timeout = random_jitter(i->random, i->watch_timeout_usec, WATCH_TIMEOUT_JITTER_PERMILLE);
        KubeWatchOptions options = {
                .label_selector = i->label_selector,
                .field_selector = i->field_selector,
                .resource_version = i->resource_version,
                .timeout_sec = (unsigned) MAX(timeout / USEC_PER_SEC, 1u),
                .stall_usec = i->stall_usec,
                .without_unread = true,
                .protobuf = !i->json_only,
                .coalesced = i->coalesced,
        };
        int r;

        assert(!i->call && i->resource_version);
        if (i->distrusted || i->mute_usec >= MUTE_STALLS * i->stall_usec) {
                informer_list(i, "watches tell nothing");
                return;
        }
        informer_set_state(i, INFORMER_WATCHING, why);
        i->call_usec = loop_now(i->loop);
        i->watch_heard = false;
        timer_arm_in(i->settle_timer, SETTLE_USEC);
        r = kube_watch(i->client, &target, &options, on_watch_event, on_watch_done, i, &i->call);
        if (r < 0) {
                timer_disarm(i->settle_timer);
                informer_wait(i, INFORMER_WATCH_WAIT, 0, strerrordesc_np(-r));
        }
}

bool informer_went_back(const Informer *i) {
        return i->went_back;
}

void informer_distrust(Informer *i) {
        assert(i);
        if (!i->synced || i->state == INFORMER_LISTING || i->state == INFORMER_LIST_WAIT ||
            loop_now(i->loop) < usec_add(i->listed_usec, DISTRUST_SPARES_USEC))
                return;
        i->distrusted = true;
        /* Without a call we wait for the next watch, or are inside the answer of the last one: it looks itself. */
        if (!i->call)
                return;
        i->call = kube_call_free(i->call);
        timer_disarm(i->settle_timer);
        informer_list(i, "writes on an old state are refused, and the watch brings no newer one");
}

/* -- new, free, questions ------------------------------------------------------------------------------- */

static int copy_options(Informer *i, const InformerOptions *o) {
        int r;

        i->page_size = o && o->page_size > 0 ? o->page_size : PAGE_SIZE_DEFAULT;
        i->stall_usec = o && o->stall_usec > 0 ? o->stall_usec : STALL_DEFAULT_USEC;
        i->watch_timeout_usec =
                o && o->watch_timeout_usec > 0 ? o->watch_timeout_usec : WATCH_TIMEOUT_DEFAULT_USEC;
        if (!o)
                return 0;

        i->coalesced = o->coalesced;
        r = free_and_strdup(&i->ns, o->ns);
        if (r >= 0)
                r = free_and_strdup(&i->label_selector, o->label_selector);
        if (r >= 0)
                r = free_and_strdup(&i->field_selector, o->field_selector);
        return r;
}

static int informer_init(Informer *i, const InformerOptions *o) {
        int r;

        r = copy_options(i, o);
        if (r < 0)
                return r;
        r = object_store_new(i->kind, kube_client_pool(i->client), i->log, on_change, i, &i->store);
        if (r < 0)
                return r;
        r = timer_new(i->loop, "informer-retry", on_retry, i, &i->retry_timer);
        if (r < 0)
                return r;
        return timer_new(i->loop, "informer-settle", on_settle, i, &i->settle_timer);
}

int informer_new(KubeClient *c, const KubeKind *kind, const InformerOptions *o, const InformerHandler *h,
                 Informer **ret) {
        _cleanup_(informer_freep) Informer *i = NULL;
        Env *env = kube_client_env(c);
        int r;

        assert(kind && h && h->on_event && ret);
        i = new0(Informer, 1);
        if (!i)
                return -ENOMEM;

        i->client = c;
        i->loop = env->loop;
        i->random = env->random;
        i->log = env->log;
        i->kind = kind;
        i->handler = *h;
        i->backoff = (Backoff){ .base_usec = BACKOFF_BASE_USEC,
                                .cap_usec = BACKOFF_CAP_USEC,
                                .jitter_permille = BACKOFF_JITTER_PERMILLE };
        r = informer_init(i, o);
        if (r < 0)
                return r;

        /* From a timer: a call that cannot even begin must not reach the handler inside this function. */
        i->state = INFORMER_LIST_WAIT;
        timer_arm_in(i->retry_timer, 0);
        *ret = TAKE_PTR(i);
        return 0;
}

Informer *informer_free(Informer *i) {
        if (!i)
                return NULL;
        kube_call_free(i->call);
        timer_free(i->retry_timer);
        timer_free(i->settle_timer);
        object_store_free(i->store);
        api_error_done(&i->watch_status);
        list_forget(i);
        free(i->resource_version);
        free(i->ns);
        free(i->label_selector);
        free(i->field_selector);
        return mfree(i);
}

bool informer_synced(const Informer *i) {
        return i->synced;
}

bool informer_connected(const Informer *i) {
        return i->health == HEALTH_CONNECTED;
}

KubeObject *informer_get(const Informer *i, const char *ns, const char *name) {
        return object_store_get(i->store, ns, name);
}

size_t informer_size(const Informer *i) {
        return object_store_size(i->store);
}

bool informer_iterate(const Informer *i, HashmapIterator *it, KubeObject **ret) {
        return object_store_iterate(i->store, it, ret);
}

uint64_t informer_undecodable(const Informer *i) {
        return object_store_undecodable(i->store);
}

const char *informer_resource_version(const Informer *i) {
        return i->resource_version;
}

void informer_next_wakeup(const Informer *i, Wakeups *w) {
        wakeups_unfinished(w, "informer of", i->kind->plural, state_table[i->state], INFORMER_WAKEUP_USEC);
        wakeups_timer(w, i->retry_timer);
        wakeups_await(w, i->call);
        if (i->state != INFORMER_WATCHING || i->health == HEALTH_CONNECTED)
                return;
        wakeups_unfinished(w, "health of the watch of", i->kind->plural, "not known to stand", SETTLE_USEC);
        wakeups_timer(w, i->settle_timer);
}
