/* SPDX-License-Identifier: Apache-2.0 */
#include "notify-sender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backoff.h"
#include "hashmap.h"
#include "list.h"
#include "log-catalog.h"
#include "log.h"
#include "notify-verdict.h"
#include "string-util.h"

#define BACKOFF_BASE_USEC USEC_PER_SEC
#define BACKOFF_CAP_USEC USEC_PER_MINUTE
#define RETRY_AFTER_MAX_USEC (5 * USEC_PER_MINUTE)
#define REFUSED_SAID_USEC USEC_PER_HOUR /* it is said once in that time */
#define ANSWER_MAX_BYTES (64u * 1024u) /* nothing of it is read but its status */

const char *const notify_outcome_names[_NOTIFY_OUTCOME_MAX + 1] = {
        [NOTIFY_OUTCOME_SENT] = "sent",
        [NOTIFY_OUTCOME_FAILED] = "failed",
        [NOTIFY_OUTCOME_DROPPED] = "dropped",
};
const MetricLabel notify_more_labels[] = { { "phase", notify_phase_names }, {} };

/* The messages of one Node. Only the first of them may be sent. */
typedef struct NotifyNode {
        List messages; /* the oldest first; never empty */
        char *name;
} NotifyNode;

typedef struct NotifyMessage {
        ListNode messages, of_node;
        ListNode ready; /* only while is_ready */
        NotifySender *sender;
        NotifyNode *node;
        NotifyPhase phase;
        bool is_ready;
        char *body;
        char key[NOTIFY_KEY_MAX];
        size_t body_size;
        usec_t until_usec; /* loop_now(): when it is news no more */
        Timer *timer;      /* end of the backoff, at until_usec at the latest; not armed while in flight */
        Backoff backoff;
        HttpCall *call; /* in flight */
} NotifyMessage;

struct NotifySender {
        NotifySenderOptions o;
        NotifyPlan plan;
        List messages;  /* the oldest first */
        Hashmap *nodes; /* NotifyNode by name, borrowed from it */
        List ready;     /* first messages of Nodes that wait for no backoff; the longest ready is first */
        size_t n_bytes, n_in_flight;
        uint64_t n_steps; /* visits of a message */
        Timer *timer;     /* sends from the loop */
        bool failing;            /* said so, and not taken back yet */
        uint64_t n_lost;         /* since the receiver took a message last */
        usec_t refused_again_usec; /* loop_now(): from when on it is said again that a message is not wanted */
        uint64_t n_refused;      /* not said */
};

static void count(NotifySender *s, NotifyPhase phase, NotifyOutcome outcome) {
        if (outcome != NOTIFY_OUTCOME_SENT)
                s->n_lost++;
        if (s->o.metrics)
                metrics_add(s->o.metrics, s->o.family, metrics_index(s->o.metrics, s->o.family, (size_t[METRIC_LABELS_MAX]){ outcome, phase }), 1);
}

static NotifyMessage *message_free(NotifyMessage *m) {
        if (!m)
                return NULL;
        http_call_free(m->call);
        timer_free(m->timer);
        free(m->body);
        return mfree(m);
}
DEFINE_FREEP(NotifyMessage, message_free);

static void *node_free(void *p) {
        NotifyNode *n = p;

        free(n->name);
        return mfree(n);
}

/* Returns the entry of a Node, a new one if it has none yet. NULL: out of memory. */
static NotifyNode *node_get(NotifySender *s, const char *name) {
        NotifyNode *n = hashmap_get(s->nodes, name);

        if (n)
                return n;
        n = new0(NotifyNode, 1);
        if (!n)
                return NULL;
        n->name = strdup(name);
        if (!n->name || hashmap_put(s->nodes, n->name, n) < 0)
                return node_free(n);
        return n;
}

static bool message_is_first(const NotifyMessage *m) {
        return m->node->messages.first == &m->of_node;
}

static void message_set_ready(NotifyMessage *m) {
        NotifySender *s = m->sender;

        assert(!m->is_ready && !m->call && message_is_first(m));
        m->is_ready = true;
        list_append(&s->ready, &m->ready);
        timer_arm(m->timer, m->until_usec);
        timer_arm_in(s->timer, 0);
}

static void message_unset_ready(NotifyMessage *m) {
        if (!m->is_ready)
                return;
        m->is_ready = false;
        list_remove(&m->sender->ready, &m->ready);
}

/* Removes the message from its Node. The next message of the Node takes its place. */
static void message_leave_node(NotifyMessage *m) {
        NotifyNode *n = m->node;
        bool was_first = message_is_first(m);

        list_remove(&n->messages, &m->of_node);
        if (n->messages.size == 0) {
                hashmap_remove(m->sender->nodes, n->name);
                node_free(n);
        } else if (was_first)
                message_set_ready(LIST_ENTRY(n->messages.first, NotifyMessage, of_node));
}

/* Removes the message from the queue and frees it. */
static void message_end(NotifyMessage *m, NotifyOutcome outcome) {
        NotifySender *s = m->sender;

        message_unset_ready(m);
        message_leave_node(m);
        list_remove(&s->messages, &m->messages);
        s->n_bytes -= m->body_size;
        s->n_in_flight -= m->call != NULL;
        count(s, m->phase, outcome);
        message_free(m);
}

/* -- what is said ------------------------------------------------------------------------------- */

static void say_failing(NotifySender *s, const NotifyMessage *m, int error, unsigned status) {
        const char *why = notify_error_text(error);
        char http[32] = "";

        if (s->failing)
                return;
        s->failing = true;
        if (!why)
                (void) snprintf(http, sizeof(http), "it answers with HTTP %u", status);
        log_event(s->o.env->log, LOG_LEVEL_WARNING, MESSAGE_NOTIFY_FAILING, LOG_FIELDS({ "NODE", m->node->name }, { "PHASE", notify_phase_names[m->phase] }),
                  "The receiver of [Notify] was not told that node %s is in phase %s: %s. That is tried again for as long as it is news; the node itself goes on as if nobody was told.",
                  m->node->name, notify_phase_names[m->phase], why ?: http);
}

/* Reports that the receiver refused this message. It may accept others. */
static void say_refused(NotifySender *s, const NotifyMessage *m, unsigned status) {
        usec_t now = loop_now(s->o.env->loop);
        char others[96] = "";

        if (now < s->refused_again_usec) {
                s->n_refused++;
                return;
        }
        if (s->n_refused > 0)
                (void) snprintf(others, sizeof(others), " So were %" PRIu64 " others since that was said last.", s->n_refused);
        s->n_refused = 0;
        s->refused_again_usec = usec_add(now, REFUSED_SAID_USEC);
        log_event(s->o.env->log, LOG_LEVEL_WARNING, MESSAGE_NOTIFY_FAILING, LOG_FIELDS({ "NODE", m->node->name }, { "PHASE", notify_phase_names[m->phase] }),
                  "The receiver of [Notify] does not want the message that node %s is in phase %s: it answers with HTTP %u, and the message is dropped.%s "
                  "The node itself goes on as if nobody was told. See [Notify] Template= and HeadersFile=; that is said once an hour at most.",
                  m->node->name, notify_phase_names[m->phase], status, others);
}

static void say_back(NotifySender *s) {
        if (!s->failing)
                return;
        s->failing = false;
        log_event(s->o.env->log, LOG_LEVEL_NOTICE, MESSAGE_NOTIFY_BACK, NULL, 0,
                  "The receiver of [Notify] takes messages again; %" PRIu64 " were lost meanwhile.", s->n_lost);
}

/* -- sending ------------------------------------------------------------------------------------ */

static void message_put_off(NotifyMessage *m, usec_t at_least_usec) {
        usec_t delay = backoff_next(&m->backoff, m->sender->o.env->random);
        usec_t next_usec = usec_add(loop_now(m->sender->o.env->loop),
                                    MAX(delay, MIN(at_least_usec, RETRY_AFTER_MAX_USEC)));

        timer_arm(m->timer, MIN(next_usec, m->until_usec));
}

static void on_message_timer(Timer *t, void *userdata) {
        NotifyMessage *m = userdata;

        m->sender->n_steps++;
        if (loop_now(m->sender->o.env->loop) >= m->until_usec)
                message_end(m, NOTIFY_OUTCOME_FAILED);
        else
                message_set_ready(m);
}

static void on_answer(const HttpResponse *response, void *userdata) {
        NotifyMessage *m = userdata;
        NotifySender *s = m->sender;
        NotifyVerdict verdict = notify_judge(response->error, response->status);

        timer_arm_in(s->timer, 0); /* others may go now */
        if (verdict == NOTIFY_SENT) {
                message_end(m, NOTIFY_OUTCOME_SENT);
                say_back(s);
                s->n_lost = 0;
                return;
        }
        if (verdict == NOTIFY_REFUSED) {
                say_refused(s, m, response->status);
                message_end(m, NOTIFY_OUTCOME_FAILED);
                return;
        }
        say_failing(s, m, response->error, response->status);
        m->call = http_call_free(m->call);
        s->n_in_flight--;
        message_put_off(m, http_retry_after(response, loop_wall(s->o.env->loop)));
}

/* The body has been made when it was told; time and signature are of this try. */
static int message_send(NotifyMessage *m) {
        NotifySender *s = m->sender;
        uint64_t now_sec = loop_wall(s->o.env->loop) / USEC_PER_SEC;
        HttpHeader headers[NOTIFY_HEADERS_MAX + 5];
        char signature[NOTIFY_SIGNATURE_MAX], seconds[24];
        size_t n = 0;
        int r;

        (void) snprintf(seconds, sizeof(seconds), "%" PRIu64, now_sec);
        if (s->plan.secret) {
                r = notify_sign(s->plan.secret, s->plan.secret_size, now_sec, m->body, signature);
                if (r < 0)
                        return r;
                headers[n++] = (HttpHeader){ "X-Vesper-Signature", signature };
        }
        headers[n++] = (HttpHeader){ "X-Vesper-Timestamp", seconds };
        headers[n++] = (HttpHeader){ "X-Vesper-Phase", notify_phase_names[m->phase] };
        headers[n++] = (HttpHeader){ "Idempotency-Key", m->key };
        if (!http_header_find(s->plan.headers.list, s->plan.headers.n, "Content-Type"))
                headers[n++] = (HttpHeader){ "Content-Type", "application/json" };
        for (size_t i = 0; i < s->plan.headers.n; i++)
                headers[n++] = s->plan.headers.list[i];
        r = http_call_start(s->o.env->transport,
                            &(HttpRequest){ .method = HTTP_POST,
                                            .url = s->plan.url,
                                            .headers = headers,
                                            .n_headers = n,
                                            .body = m->body,
                                            .body_size = m->body_size,
                                            .lane = HTTP_LANE_NOTIFY,
                                            .timeout_usec = s->plan.timeout_usec,
                                            .max_response_bytes = ANSWER_MAX_BYTES,
                                            .tls = s->plan.tls,
                                            .use_proxy = true },
                            on_answer, m, &m->call);
        if (r >= 0)
                s->n_in_flight++;
        return r;
}

static void send_what_may_go(NotifySender *s) {
        NotifyMessage *m;
        int r;

        while (s->plan.url && s->n_in_flight < (s->failing ? 1u : NOTIFY_IN_FLIGHT_MAX) &&
               (m = LIST_ENTRY(s->ready.first, NotifyMessage, ready))) {
                s->n_steps++;
                message_unset_ready(m);
                timer_disarm(m->timer);
                r = message_send(m);
                if (r >= 0)
                        continue;
                say_failing(s, m, r, 0);
                message_put_off(m, 0);
        }
}

static void on_timer(Timer *t, void *userdata) {
        send_what_may_go(userdata);
}

/* -- telling ------------------------------------------------------------------------------------ */

static bool has_room(const NotifySender *s, size_t body_size) {
        return s->messages.size < s->o.max_messages && s->n_bytes + body_size <= s->o.max_bytes;
}

/* The oldest that are not under way; false: all of them are. */
static bool make_room(NotifySender *s, size_t body_size) {
        LIST_FOREACH (m, &s->messages, NotifyMessage, messages) {
                s->n_steps++;
                if (has_room(s, body_size))
                        return true;
                if (!m->call)
                        message_end(m, NOTIFY_OUTCOME_DROPPED);
        }
        return has_room(s, body_size);
}

static int message_new(NotifySender *s, const NotifyFacts *f, NotifyMessage **ret) {
        _cleanup_(message_freep) NotifyMessage *m = new0(NotifyMessage, 1);
        usec_t now = loop_now(s->o.env->loop);

        if (!m)
                return -ENOMEM;
        m->sender = s;
        m->phase = f->phase;
        m->body = notify_body(s->plan.body, f);
        if (!m->body || notify_key(f, m->key) < 0 ||
            timer_new(s->o.env->loop, "notify-message", on_message_timer, m, &m->timer) < 0)
                return -ENOMEM;
        m->body_size = strlen(m->body);
        m->until_usec = usec_add(now, notify_patience(f->time_usec, f->deadline_usec));
        m->backoff = (Backoff){ .base_usec = BACKOFF_BASE_USEC, .cap_usec = BACKOFF_CAP_USEC, .jitter_permille = 200 };
        *ret = TAKE_PTR(m);
        return 0;
}

/* Returns false if there is no room or no memory. */
static bool message_queue(NotifySender *s, const NotifyFacts *f) {
        _cleanup_(message_freep) NotifyMessage *m = NULL;

        if (message_new(s, f, &m) < 0 || !make_room(s, m->body_size))
                return false;
        m->node = node_get(s, strempty(f->node));
        if (!m->node)
                return false;
        list_append(&s->messages, &m->messages);
        list_append(&m->node->messages, &m->of_node);
        s->n_bytes += m->body_size;
        if (message_is_first(m))
                message_set_ready(m);
        else
                timer_arm(m->timer, m->until_usec);
        (void) TAKE_PTR(m);
        return true;
}

void notify_sender_tell(NotifySender *s, const NotifyFacts *f) {
        NotifyFacts facts = *f;

        assert(f->phase >= 0 && f->phase < _NOTIFY_PHASE_MAX);
        if (!s || !s->plan.url || !(s->plan.phases & (1u << f->phase)))
                return;
        facts.reporter = s->o.reporter;
        facts.time_usec = loop_wall(s->o.env->loop);
        if (!message_queue(s, &facts))
                count(s, f->phase, NOTIFY_OUTCOME_DROPPED);
}

/* -- life --------------------------------------------------------------------------------------- */

size_t notify_sender_n_waiting(const NotifySender *s) {
        return s->messages.size;
}

size_t notify_sender_n_in_flight(const NotifySender *s) {
        return s->n_in_flight;
}

uint64_t notify_sender_n_steps(const NotifySender *s) {
        return s->n_steps;
}

void notify_sender_next_wakeup(const NotifySender *s, Wakeups *w) {
        usec_t now = loop_now(s->o.env->loop);

        LIST_FOREACH (m, &s->messages, NotifyMessage, messages) {
                wakeups_unfinished(w, "message about", m->node->name, notify_phase_names[m->phase],
                                   usec_sub(m->until_usec, now));
                wakeups_await(w, m->call);
                wakeups_timer(w, m->timer);
                if (!m->is_ready || !s->plan.url)
                        continue;
                wakeups_unfinished(w, "turn of the message about", m->node->name, notify_phase_names[m->phase], 0);
                wakeups_timer(w, s->timer);
                wakeups_await(w, s->n_in_flight > 0); /* the answer starts the next message */
        }
}

void notify_sender_reload(NotifySender *s) {
        _cleanup_free_ char *text = NULL;
        bool had_url = s->plan.url != NULL;
        NotifyPlan plan;
        int r;

        r = notify_plan_load(s->o.settings, getenv("CREDENTIALS_DIRECTORY"), &plan, &text);
        if (r < 0) {
                log_event(s->o.env->log, LOG_LEVEL_ERROR, MESSAGE_NOTIFY_FAILING, NULL, 0,
                          "%s. %s; all else goes on. Once it is right: systemctl reload, or a restart of the pod.",
                          text ?: "Out of memory while reading the files of [Notify]",
                          had_url ? "Others are told as before" : "Nobody is told of interruptions and removals");
                return;
        }
        notify_plan_done(&s->plan);
        s->plan = plan;
        if (s->ready.size > 0)
                timer_arm_in(s->timer, 0);
}

int notify_sender_new(const NotifySenderOptions *o, NotifySender **ret) {
        _cleanup_(notify_sender_freep) NotifySender *s = NULL;
        int r;

        assert(o && o->env && o->settings && o->reporter && o->max_messages > 0 && o->max_bytes >= NOTIFY_BODY_MAX_BYTES && ret);
        s = new0(NotifySender, 1);
        if (!s)
                return -ENOMEM;
        s->o = *o;
        r = timer_new(o->env->loop, "notify", on_timer, s, &s->timer);
        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &s->nodes);
        if (r < 0)
                return r;
        notify_sender_reload(s);
        *ret = TAKE_PTR(s);
        return 0;
}

NotifySender *notify_sender_free(NotifySender *s) {
        if (!s)
                return NULL;
        LIST_FOREACH (m, &s->messages, NotifyMessage, messages)
                message_free(m);
        hashmap_free_with(s->nodes, node_free);
        notify_plan_done(&s->plan);
        timer_free(s->timer);
        return mfree(s);
}
