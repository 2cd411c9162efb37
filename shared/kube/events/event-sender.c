/* SPDX-License-Identifier: Apache-2.0 */
#include "event-sender.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "backoff.h"
#include "list.h"
#include "log.h"
#include "string-util.h"
#include "token-bucket.h"

#define IN_FLIGHT_MAX 4u
/* Thousands of pods that go at one deadline are told of one by one: an API server that answers at once would be busy
 * with Events alone. */
#define PER_SECOND 100u
#define QUEUE_MAX 256u
#define RETRIES_MAX 3u
#define BACKOFF_BASE_USEC USEC_PER_SEC
#define BACKOFF_CAP_USEC (30 * USEC_PER_SEC)
#define BACKOFF_JITTER_PERMILLE 200u

const KubeKind kube_event_kind = {
        .group = "",
        .version = "v1",
        .plural = "events",
        .kind = "Event",
        .namespaced = true,
        .size = sizeof(KubeObject),
};

typedef struct EventPost {
        ListNode posts; /* in one of the sender's lists */
        EventSender *sender;
        char *ns, *name, *body, *tag;
        usec_t due_usec; /* waiting: not before */
        Backoff backoff;
        KubeCall *call; /* in flight */
} EventPost;

struct EventSender {
        KubeClient *client;
        Loop *loop;
        Random *random;
        Log *log;
        event_outcome_t on_outcome;
        void *userdata;
        List waiting; /* oldest first */
        List in_flight;
        List lost;    /* pushed out; their outcome is told from the loop */
        Timer *timer; /* the earliest due of those that wait */
        TokenBucket rate;
};

static void event_sender_pump(EventSender *s);

static EventPost *event_post_free(EventPost *p) {
        if (!p)
                return NULL;
        kube_call_free(p->call);
        free(p->ns);
        free(p->name);
        free(p->body);
        free(p->tag);
        return mfree(p);
}
DEFINE_FREEP(EventPost, event_post_free);

/* p is in no list any more. */
static void post_finish(EventPost *p, EventOutcome outcome) {
        EventSender *s = p->sender;

        if (s->on_outcome)
                s->on_outcome(p->tag, outcome, s->userdata);
        event_post_free(p);
}

static bool worth_another_try(const ApiError *e) {
        return e->http == 0 || e->http == 429 || e->http >= 500;
}

static void post_fail(EventPost *p, const ApiError *error) {
        EventSender *s = p->sender;

        /* AlreadyExists: an earlier try of this very post had landed after all. */
        if (error->http == 409 && !p->name && p->backoff.failures > 0) {
                post_finish(p, EVENT_SENT);
                return;
        }
        if (worth_another_try(error) && p->backoff.failures < RETRIES_MAX) {
                p->due_usec = loop_now(s->loop) + MAX(backoff_next(&p->backoff, s->random), error->retry_after_usec);
                list_prepend(&s->waiting, &p->posts);
                return;
        }

        log_debug(s->log, "Failed to write an Event in '%s', ignoring: %s", p->ns, error->message);
        post_finish(p, worth_another_try(error) ? EVENT_LOST : EVENT_REFUSED);
}

static void on_written(const KubeReply *reply, void *userdata) {
        EventPost *p = userdata;
        EventSender *s = p->sender;
        _cleanup_(kube_call_freep) _unused_ KubeCall *call = TAKE_PTR(p->call);

        list_remove(&s->in_flight, &p->posts);
        if (reply->error)
                post_fail(p, reply->error);
        else
                post_finish(p, EVENT_SENT);
        event_sender_pump(s);
}

static int post_start(EventPost *p) {
        EventSender *s = p->sender;
        KubeTarget target = { .kind = &kube_event_kind, .ns = p->ns, .name = p->name };
        KubeCallOptions options = { .lane = HTTP_LANE_BULK, .rank = KUBE_RANK_TELLS, .object_unread = true };

        return p->name ? kube_patch(s->client, &target, KUBE_PATCH_MERGE, p->body, &options, on_written, p,
                                    &p->call)
                       : kube_create(s->client, &target, p->body, &options, on_written, p, &p->call);
}

static void event_sender_pump(EventSender *s) {
        usec_t now = loop_now(s->loop), next = USEC_INFINITY, at;

        LIST_FOREACH (p, &s->waiting, EventPost, posts) {
                if (s->in_flight.size >= IN_FLIGHT_MAX) {
                        /* Whoever comes back pumps again. */
                        next = USEC_INFINITY;
                        break;
                }
                if (p->due_usec > now) {
                        next = MIN(next, p->due_usec);
                        continue;
                }
                if (!token_bucket_take(&s->rate, now, &at)) {
                        next = MIN(next, at);
                        break;
                }

                list_remove(&s->waiting, &p->posts);
                if (post_start(p) < 0)
                        post_finish(p, EVENT_LOST);
                else
                        list_append(&s->in_flight, &p->posts);
        }
        timer_arm(s->timer, next);
}

static void on_timer(Timer *t, void *userdata) {
        EventSender *s = userdata;

        LIST_FOREACH (p, &s->lost, EventPost, posts) {
                list_remove(&s->lost, &p->posts);
                post_finish(p, EVENT_LOST);
        }
        event_sender_pump(s);
}

int event_sender_new(KubeClient *c, event_outcome_t on_outcome, void *userdata, EventSender **ret) {
        _cleanup_(event_sender_freep) EventSender *s = NULL;
        Env *env = kube_client_env(c);
        int r;

        assert(ret);
        s = new0(EventSender, 1);
        if (!s)
                return -ENOMEM;

        s->client = c;
        s->loop = env->loop;
        s->random = env->random;
        s->log = env->log;
        s->on_outcome = on_outcome;
        s->userdata = userdata;
        s->rate = (TokenBucket){ .burst = PER_SECOND, .per_minute = PER_SECOND * 60 };
        r = timer_new(s->loop, "event-sender", on_timer, s, &s->timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

static void drop_all(List *l) {
        LIST_FOREACH (p, l, EventPost, posts) {
                list_remove(l, &p->posts);
                event_post_free(p);
        }
}

EventSender *event_sender_free(EventSender *s) {
        if (!s)
                return NULL;
        drop_all(&s->waiting);
        drop_all(&s->in_flight);
        drop_all(&s->lost);
        timer_free(s->timer);
        return mfree(s);
}

static void drop_oldest(EventSender *s) {
        EventPost *p = LIST_ENTRY(s->waiting.first, EventPost, posts);

        list_remove(&s->waiting, &p->posts);
        log_debug(s->log, "Too many Events are waiting, dropping the oldest");
        list_append(&s->lost, &p->posts);
}

int event_sender_post(EventSender *s, const char *ns, const char *name, const char *body, const char *tag) {
        _cleanup_(event_post_freep) EventPost *p = new0(EventPost, 1);

        assert(s && ns && body && tag);
        if (!p)
                return -ENOMEM;
        p->sender = s;
        p->backoff = (Backoff){ .base_usec = BACKOFF_BASE_USEC,
                                .cap_usec = BACKOFF_CAP_USEC,
                                .jitter_permille = BACKOFF_JITTER_PERMILLE };
        p->ns = strdup(ns);
        p->name = name ? strdup(name) : NULL;
        p->body = strdup(body);
        p->tag = strdup(tag);
        if (!p->ns || (name && !p->name) || !p->body || !p->tag)
                return -ENOMEM;

        if (s->waiting.size >= QUEUE_MAX)
                drop_oldest(s);
        list_append(&s->waiting, &p->posts);
        (void) TAKE_PTR(p);
        /* From the loop: whoever records an Event is in the middle of something more urgent. */
        timer_arm_earlier(s->timer, loop_now(s->loop));
        return 0;
}

size_t event_sender_pending(const EventSender *s) {
        return s->waiting.size + s->in_flight.size;
}

void event_sender_next_wakeup(const EventSender *s, Wakeups *w) {
        LIST_FOREACH (p, &s->in_flight, EventPost, posts) {
                wakeups_unfinished(w, "Event of", p->ns, "sent", EVENT_SENDER_WAKEUP_USEC);
                wakeups_await(w, p->call);
        }
        if (s->waiting.size + s->lost.size == 0)
                return;
        wakeups_unfinished(w, "queue of", "Events", s->lost.size > 0 ? "some are lost" : "some wait",
                           EVENT_SENDER_WAKEUP_USEC);
        wakeups_timer(w, s->timer);
        wakeups_await(w, s->lost.size == 0 && s->in_flight.size >= IN_FLIGHT_MAX);
}
