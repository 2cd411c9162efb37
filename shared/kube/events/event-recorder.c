/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two memories, each of at most 1,024 entries, the least recently used out first: what was told (by object,
 * reason and message), and how much each object may still say.
 *
 *      record --known for less than 10 min--> count it; PATCH the count, a minute after the last write
 *             \--else--> may the object speak? --yes--> remember, create
 *                                               \-no--> forget it
 *
 * Creating and patching both cost a token, counting does not.
 */
#include "event-recorder.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "event-sender.h"
#include "hashmap.h"
#include "list.h"
#include "log.h"
#include "string-util.h"
#include "token-bucket.h"

#define REMEMBERED_MAX 1024u
#define REPEAT_WINDOW_USEC (10 * USEC_PER_MINUTE)
#define PATCH_INTERVAL_USEC USEC_PER_MINUTE
#define MESSAGE_MAX_BYTES 1024u
#define REASON_MAX_BYTES 128u
#define NAME_MAX_BYTES 253u

/* One token in five minutes is less than a bucket can say (whole tokens a minute), so its clock goes at a
 * fifth. */
#define SPAM_BURST 25u
#define SPAM_PER_MINUTE 1u
#define SPAM_CLOCK_DIVISOR 5u

typedef struct Told {
        ListNode told;
        char *object_key;
        char *ns, *name; /* of the Event */
        bool exists;     /* the server said so */
        uint64_t count, told_count;
        usec_t seen_usec, seen_wall_usec;
        usec_t patch_usec; /* not before */
        char key[];
} Told;

typedef struct Speaker {
        ListNode speakers;
        TokenBucket bucket;
        char key[];
} Speaker;

struct EventRecorder {
        Loop *loop;
        Random *random;
        Log *log;
        char *component, *host;
        EventSender *sender;
        Hashmap *told_by_key; /* borrowed keys */
        List told;            /* least recently seen first */
        Hashmap *speaker_by_key;
        List speakers;
        Timer *patch_timer;
};

/* -- the two memories ----------------------------------------------------------------------------------- */

static void told_forget(EventRecorder *r, Told *t) {
        hashmap_remove(r->told_by_key, t->key);
        list_remove(&r->told, &t->told);
        free(t->object_key);
        free(t->ns);
        free(t->name);
        free(t);
}

static void speaker_forget(EventRecorder *r, Speaker *s) {
        hashmap_remove(r->speaker_by_key, s->key);
        list_remove(&r->speakers, &s->speakers);
        free(s);
}

static Told *told_add(EventRecorder *r, const char *key) {
        Told *t;

        if (r->told.size >= REMEMBERED_MAX)
                told_forget(r, LIST_ENTRY(r->told.first, Told, told));
        t = calloc(1, sizeof(Told) + strlen(key) + 1);
        if (!t)
                return NULL;
        strcpy(t->key, key);
        if (hashmap_put(r->told_by_key, t->key, t) < 0)
                return mfree(t);
        list_append(&r->told, &t->told);
        return t;
}

static Speaker *speaker_get(EventRecorder *r, const char *key) {
        Speaker *s = hashmap_get(r->speaker_by_key, key);

        if (s) {
                list_remove(&r->speakers, &s->speakers);
                list_append(&r->speakers, &s->speakers);
                return s;
        }
        if (r->speakers.size >= REMEMBERED_MAX)
                speaker_forget(r, LIST_ENTRY(r->speakers.first, Speaker, speakers));
        s = calloc(1, sizeof(Speaker) + strlen(key) + 1);
        if (!s)
                return NULL;
        s->bucket = (TokenBucket){ .burst = SPAM_BURST, .per_minute = SPAM_PER_MINUTE };
        strcpy(s->key, key);
        if (hashmap_put(r->speaker_by_key, s->key, s) < 0)
                return mfree(s);
        list_append(&r->speakers, &s->speakers);
        return s;
}

static bool may_speak(EventRecorder *r, const char *object_key, usec_t *ret_at_usec) {
        Speaker *s = speaker_get(r, object_key);
        usec_t at;

        *ret_at_usec = USEC_INFINITY;
        if (!s)
                return false;
        if (token_bucket_take(&s->bucket, loop_now(r->loop) / SPAM_CLOCK_DIVISOR, &at))
                return true;
        if (at < USEC_INFINITY / SPAM_CLOCK_DIVISOR)
                *ret_at_usec = at * SPAM_CLOCK_DIVISOR;
        return false;
}

/* -- bodies --------------------------------------------------------------------------------------------- */

static void add_object(JsonWriter *w, const EventObject *o) {
        json_open_object(w, "involvedObject");
        if (isempty(o->group))
                json_add_string(w, "apiVersion", o->api_version);
        else
                json_addf(w, "apiVersion", "%s/%s", o->group, o->api_version);
        json_add_string(w, "kind", o->kind);
        json_add_string(w, "namespace", o->ns);
        json_add_string(w, "name", o->name);
        json_add_string(w, "uid", o->uid);
        json_close_object(w);
}

static char *body_create(const EventRecorder *r, const Told *t, const EventObject *o, EventType type,
                         const char *reason, const char *message) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char now[RFC3339_MAX];

        if (json_writer_new(&w) < 0)
                return NULL;

        rfc3339_format(t->seen_wall_usec, now);
        json_open_object(w, NULL);
        json_add_string(w, "apiVersion", "v1");
        json_add_string(w, "kind", "Event");
        json_open_object(w, "metadata");
        json_add_string(w, "namespace", t->ns);
        json_add_string(w, "name", t->name);
        json_close_object(w);
        add_object(w, o);
        json_add_string(w, "type", type == EVENT_WARNING ? "Warning" : "Normal");
        json_add_string(w, "reason", reason);
        json_add_string(w, "message", message);
        json_add_int64(w, "count", 1);
        json_add_string(w, "firstTimestamp", now);
        json_add_string(w, "lastTimestamp", now);
        json_open_object(w, "source");
        json_add_string(w, "component", r->component);
        json_add_string(w, "host", r->host);
        json_close_object(w);
        json_add_string(w, "reportingComponent", r->component);
        json_add_string(w, "reportingInstance", r->host);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static char *body_count(const Told *t) {
        char seen[RFC3339_MAX];

        rfc3339_format(t->seen_wall_usec, seen);
        return strf("{\"count\":%" PRIu64 ",\"lastTimestamp\":\"%s\"}", t->count, seen);
}

/* "<object>.<time><random>", as long as a name may be. */
static char *event_name(EventRecorder *r, const char *object) {
        char tail[32];
        size_t room, n;

        snprintf(tail, sizeof(tail), ".%014" PRIx64 "%04x", loop_wall(r->loop),
                 (unsigned) random_below(r->random, 0x10000));
        room = NAME_MAX_BYTES - strlen(tail);
        n = MIN(strlen(object), room);
        while (n < strlen(object) && n > 0 && (object[n - 1] == '.' || object[n - 1] == '-'))
                n--;
        return strf("%.*s%s", (int) n, object, tail);
}

/* -- counting ------------------------------------------------------------------------------------------- */

static bool wants_patch(const Told *t) {
        return t->exists && t->count > t->told_count;
}

static void told_patch(EventRecorder *r, Told *t) {
        _cleanup_free_ char *body = NULL;

        if (!may_speak(r, t->object_key, &t->patch_usec))
                return;
        body = body_count(t);
        if (!body || event_sender_post(r->sender, t->ns, t->name, body, t->key) < 0)
                log_debug(r->log, "Out of memory for an Event, ignoring");
        t->told_count = t->count;
        t->patch_usec = loop_now(r->loop) + PATCH_INTERVAL_USEC;
}

static void on_patch(Timer *timer, void *userdata) {
        EventRecorder *r = userdata;
        usec_t now = loop_now(r->loop), next = USEC_INFINITY;

        LIST_FOREACH (t, &r->told, Told, told) {
                if (!wants_patch(t))
                        continue;
                if (t->patch_usec <= now)
                        told_patch(r, t);
                if (wants_patch(t))
                        next = MIN(next, t->patch_usec);
        }
        timer_arm(r->patch_timer, next);
}

static void on_outcome(const char *key, EventOutcome outcome, void *userdata) {
        EventRecorder *r = userdata;
        Told *t = hashmap_get(r->told_by_key, key);

        if (!t)
                return;
        switch (outcome) {
        case EVENT_SENT:
                t->exists = true;
                break;
        case EVENT_LOST:
                /* A lost count is made good by the next one; a lost Event begins anew. */
                if (!t->exists)
                        told_forget(r, t);
                return;
        case EVENT_REFUSED:
                told_forget(r, t);
                return;
        }
        if (wants_patch(t))
                timer_arm_earlier(r->patch_timer, t->patch_usec);
}

/* -- recording ------------------------------------------------------------------------------------------ */

static void told_count(EventRecorder *r, Told *t) {
        t->count++;
        t->seen_usec = loop_now(r->loop);
        t->seen_wall_usec = loop_wall(r->loop);
        list_remove(&r->told, &t->told);
        list_append(&r->told, &t->told);
        if (wants_patch(t))
                timer_arm_earlier(r->patch_timer, t->patch_usec);
}

static int tell(EventRecorder *r, const char *key, const char *object_key, const EventObject *o,
                EventType type, const char *reason, const char *message) {
        _cleanup_free_ char *body = NULL;
        Told *t = told_add(r, key);

        if (!t)
                return -ENOMEM;
        t->count = t->told_count = 1;
        t->seen_usec = loop_now(r->loop);
        t->seen_wall_usec = loop_wall(r->loop);
        t->patch_usec = t->seen_usec + PATCH_INTERVAL_USEC;
        t->object_key = strdup(object_key);
        t->ns = strdup(isempty(o->ns) ? "default" : o->ns);
        t->name = event_name(r, o->name);
        if (t->object_key && t->ns && t->name)
                body = body_create(r, t, o, type, reason, message);
        if (!body || event_sender_post(r->sender, t->ns, NULL, body, t->key) < 0) {
                told_forget(r, t);
                return -ENOMEM;
        }
        return 0;
}

static int record(EventRecorder *r, const EventObject *o, EventType type, const char *reason,
                  const char *message) {
        _cleanup_free_ char *object_key = NULL, *key = NULL, *text = NULL, *word = NULL;
        usec_t at;
        Told *t;

        text = str_sanitize(message, MESSAGE_MAX_BYTES);
        word = str_sanitize(reason, REASON_MAX_BYTES);
        object_key = strf("%s/%s/%s/%s", o->kind, strempty(o->ns), o->name, strempty(o->uid));
        if (!text || !word || !object_key)
                return -ENOMEM;
        key = strf("%s %s %016" PRIx64, object_key, word, hash64(text, strlen(text)));
        if (!key)
                return -ENOMEM;

        t = hashmap_get(r->told_by_key, key);
        if (t && loop_now(r->loop) - t->seen_usec < REPEAT_WINDOW_USEC) {
                told_count(r, t);
                return 0;
        }
        if (t)
                told_forget(r, t);
        if (!may_speak(r, object_key, &at)) {
                log_debug(r->log, "Too many Events about %s, dropping '%s'", object_key, word);
                return 0;
        }
        return tell(r, key, object_key, o, type, word, text);
}

void event_record(EventRecorder *r, const EventObject *o, EventType type, const char *reason,
                  const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf message = { 0 };
        va_list ap;

        assert(r && o && o->kind && o->name && reason && fmt);
        va_start(ap, fmt);
        strbuf_addv(&message, fmt, ap);
        va_end(ap);
        if (message.failed || record(r, o, type, reason, strbuf_str(&message)) < 0)
                log_debug(r->log, "Out of memory for an Event, ignoring");
}

EventObject event_object(const KubeObject *o) {
        return (EventObject){
                .group = o->kind->group,
                .api_version = o->kind->version,
                .kind = o->kind->kind,
                .ns = o->meta.ns,
                .name = o->meta.name,
                .uid = o->meta.uid,
        };
}

size_t event_recorder_pending(const EventRecorder *r) {
        return event_sender_pending(r->sender);
}

/* -- new, free ------------------------------------------------------------------------------------------ */

static int recorder_init(EventRecorder *r, KubeClient *c, const char *component, const char *host) {
        int k;

        r->component = strdup(component);
        r->host = strdup(strempty(host));
        if (!r->component || !r->host)
                return -ENOMEM;
        k = hashmap_new(HASHMAP_BORROW_KEYS, &r->told_by_key);
        if (k < 0)
                return k;
        k = hashmap_new(HASHMAP_BORROW_KEYS, &r->speaker_by_key);
        if (k < 0)
                return k;
        k = timer_new(r->loop, "event-counts", on_patch, r, &r->patch_timer);
        if (k < 0)
                return k;
        return event_sender_new(c, on_outcome, r, &r->sender);
}

int event_recorder_new(KubeClient *c, const char *component, const char *host, EventRecorder **ret) {
        _cleanup_(event_recorder_freep) EventRecorder *r = NULL;
        Env *env = kube_client_env(c);
        int k;

        assert(component && ret);
        r = new0(EventRecorder, 1);
        if (!r)
                return -ENOMEM;

        r->loop = env->loop;
        r->random = env->random;
        r->log = env->log;
        k = recorder_init(r, c, component, host);
        if (k < 0)
                return k;

        *ret = TAKE_PTR(r);
        return 0;
}

EventRecorder *event_recorder_free(EventRecorder *r) {
        if (!r)
                return NULL;
        event_sender_free(r->sender);
        LIST_FOREACH (t, &r->told, Told, told)
                told_forget(r, t);
        LIST_FOREACH (s, &r->speakers, Speaker, speakers)
                speaker_forget(r, s);
        hashmap_free(r->told_by_key);
        hashmap_free(r->speaker_by_key);
        timer_free(r->patch_timer);
        free(r->component);
        free(r->host);
        return mfree(r);
}

void event_recorder_next_wakeup(const EventRecorder *r, Wakeups *w) {
        event_sender_next_wakeup(r->sender, w);
        LIST_FOREACH (t, &r->told, Told, told)
                if (wants_patch(t)) {
                        wakeups_unfinished(w, "count of an Event of", t->object_key, "not written",
                                           EVENT_RECORDER_WAKEUP_USEC);
                        wakeups_timer(w, r->patch_timer);
                }
}
