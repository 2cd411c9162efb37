/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-sqs-queue.h"

#include <inttypes.h>
#include <openssl/evp.h>

#include "fake-json.h"
#include "parse-util.h"

/* A handle is "AQEB/QUEUE/MESSAGE/NUMBER" in base64: one of each receive. */
#define HANDLE_PREFIX "AQEB/"

static void on_timer(Timer *t, void *userdata) {
        SqsQueue *q = userdata;

        q->on_visible(q);
}

SqsQueue *sqs_queue_new(Loop *loop, const char *name) {
        SqsQueue *q = MUST(new0(SqsQueue, 1));
        int r = timer_new(loop, "fake-sqs-queue", on_timer, q, &q->timer);

        assert(r >= 0);
        q->loop = loop;
        q->name = MUST(strdup(name));
        q->created_wall_usec = loop_wall(loop);
        return q;
}

SqsQueue *sqs_queue_free(SqsQueue *q) {
        if (!q)
                return NULL;
        assert(q->polls.size == 0);
        LIST_FOREACH (m, &q->messages, SqsMessage, messages)
                sqs_queue_drop(q, m);
        timer_free(q->timer);
        free(q->name);
        return mfree(q);
}

static void md5_hex(const char *text, char ret[33]) {
        unsigned char digest[16];
        int k = EVP_Q_digest(NULL, "MD5", NULL, text, strlen(text), digest, NULL);

        assert(k == 1);
        hex_encode(digest, sizeof(digest), ret);
}

SqsMessage *sqs_queue_send(SqsQueue *q, const char *body, usec_t delay_usec) {
        SqsMessage *m = MUST(new0(SqsMessage, 1));

        m->id = MUST(strf("fc3e6a53-5c5e-4b1c-9d1e-%012" PRIx64, ++q->last_id));
        m->body = MUST(strdup(body));
        md5_hex(body, m->md5);
        m->sent_usec = loop_now(q->loop);
        m->sent_wall_usec = loop_wall(q->loop);
        m->visible_usec = usec_add(m->sent_usec, delay_usec);
        list_append(&q->messages, &m->messages);
        sqs_queue_run(q);
        return m;
}

void sqs_queue_drop(SqsQueue *q, SqsMessage *m) {
        list_remove(&q->messages, &m->messages);
        free(m->id);
        free(m->body);
        free(m);
}

static SqsMessage *choose(SqsQueue *q) {
        usec_t now = loop_now(q->loop);
        uint64_t n = 0, wanted = 0;

        if (q->random) {
                LIST_FOREACH (m, &q->messages, SqsMessage, messages)
                        n += m->visible_usec <= now;
                if (n == 0)
                        return NULL;
                wanted = random_below(q->random, n);
        }
        LIST_FOREACH (m, &q->messages, SqsMessage, messages)
                if (m->visible_usec <= now && wanted-- == 0)
                        return m;
        return NULL;
}

SqsMessage *sqs_queue_receive(SqsQueue *q, usec_t visibility_usec) {
        SqsMessage *m;

        sqs_queue_run(q);
        m = choose(q);
        if (!m)
                return NULL;
        if (m->n_receives++ == 0)
                m->first_receive_wall_usec = loop_wall(q->loop);
        m->received_usec = loop_now(q->loop);
        m->handle = ++q->last_handle;
        if (q->n_duplicates > 0)
                q->n_duplicates--;
        else
                m->visible_usec = usec_add(m->received_usec, visibility_usec);
        return m;
}

char *sqs_message_handle(const SqsQueue *q, const SqsMessage *m) {
        _cleanup_free_ char *text = MUST(strf(HANDLE_PREFIX "%s/%s/%" PRIu64, q->name, m->id, m->handle));

        return MUST(base64_encode(text, strlen(text)));
}

SqsMessage *sqs_queue_find(SqsQueue *q, const char *handle, bool *ret_known) {
        _cleanup_free_ char *prefix = MUST(strf(HANDLE_PREFIX "%s/", q->name)), *text = NULL;
        const char *id, *slash;
        uint64_t number;
        size_t size;

        *ret_known = false;
        if (base64_decode(handle, strlen(handle), (void **) &text, &size) < 0)
                return NULL;
        id = startswith(text, prefix);
        slash = id ? strchr(id, '/') : NULL;
        if (!slash || parse_uint64(slash + 1, &number) < 0 || number == 0 || number > q->last_handle)
                return NULL;
        *ret_known = true;
        sqs_queue_run(q);
        LIST_FOREACH (m, &q->messages, SqsMessage, messages)
                if (strlen(m->id) == (size_t) (slash - id) && strncmp(m->id, id, (size_t) (slash - id)) == 0)
                        return m->handle == number ? m : NULL;
        return NULL;
}

bool sqs_message_in_flight(const SqsQueue *q, const SqsMessage *m) {
        return m->n_receives > 0 && m->visible_usec > loop_now(q->loop);
}

bool sqs_message_delayed(const SqsQueue *q, const SqsMessage *m) {
        return m->n_receives == 0 && m->visible_usec > loop_now(q->loop);
}

/* Messages stand in the order in which they were sent, so the first that is not too old ends the search. */
void sqs_queue_run(SqsQueue *q) {
        usec_t now = loop_now(q->loop), due = USEC_INFINITY;

        LIST_FOREACH (m, &q->messages, SqsMessage, messages) {
                if (usec_add(m->sent_usec, q->retention_usec) > now)
                        break;
                sqs_queue_drop(q, m);
        }
        if (q->polls.size > 0)
                LIST_FOREACH (m, &q->messages, SqsMessage, messages)
                        due = MIN(due, m->visible_usec);
        timer_arm(q->timer, due);
}
