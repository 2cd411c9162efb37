/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-memory.h"

#include "string-util.h"

#define UNKNOWN_MAX 20000u
#define UNKNOWN_KEEP_USEC (15 * USEC_PER_MINUTE)
#define WRITTEN_MAX 20000u
#define POISON_MAX 1000u

static void *unknown_free(void *p) {
        UnknownInstance *u = p;

        free(u->instance);
        return mfree(u);
}

static void *written_free(void *p) {
        WrittenClaim *x = p;

        free(x->uid);
        return mfree(x);
}

int queue_memory_init(QueueMemory *m, const Loop *loop) {
        int r;

        *m = (QueueMemory){ .loop = loop };
        r = hashmap_new(HASHMAP_BORROW_KEYS, &m->unknown);
        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &m->written);
        if (r >= 0)
                r = hashmap_new(0, &m->poison);
        return r;
}

void queue_memory_done(QueueMemory *m) {
        hashmap_free_with(m->unknown, unknown_free);
        hashmap_free_with(m->written, written_free);
        hashmap_free(m->poison);
        *m = (QueueMemory){ 0 };
}

/* -- instances that nobody knows ------------------------------------------------------------------------ */

static void make_room(QueueMemory *m) {
        usec_t now = loop_now(m->loop);
        UnknownInstance *u;

        HASHMAP_FOREACH (u, m->unknown)
                if (now >= usec_add(u->seen_usec, UNKNOWN_KEEP_USEC))
                        queue_memory_forget_unknown(m, u->instance);
        /* So many at once: the time of the oldest begins anew. */
        while (hashmap_size(m->unknown) >= UNKNOWN_MAX) {
                u = hashmap_first(m->unknown, NULL);
                queue_memory_forget_unknown(m, u->instance);
        }
}

UnknownInstance *queue_memory_note_unknown(QueueMemory *m, const char *instance) {
        UnknownInstance *u = hashmap_get(m->unknown, instance);

        if (!u) {
                if (hashmap_size(m->unknown) >= UNKNOWN_MAX)
                        make_room(m);
                u = new0(UnknownInstance, 1);
                if (!u)
                        return NULL;
                u->since_usec = loop_now(m->loop);
                if (free_and_strdup(&u->instance, instance) < 0 ||
                    hashmap_put(m->unknown, u->instance, u) < 0)
                        return unknown_free(u);
        }
        u->seen_usec = loop_now(m->loop);
        return u;
}

UnknownInstance *queue_memory_unknown(const QueueMemory *m, const char *instance) {
        return hashmap_get(m->unknown, instance);
}

void queue_memory_forget_unknown(QueueMemory *m, const char *instance) {
        UnknownInstance *u = hashmap_remove(m->unknown, instance);

        if (u)
                unknown_free(u);
}

/* -- claims --------------------------------------------------------------------------------------------- */

WrittenClaim *queue_memory_note_written(QueueMemory *m, const char *uid) {
        WrittenClaim *x = hashmap_get(m->written, uid);

        if (x)
                return x;
        if (hashmap_size(m->written) >= WRITTEN_MAX) {
                x = hashmap_first(m->written, NULL);
                if (x->in_flight)
                        return NULL;
                queue_memory_forget_written(m, x->uid);
        }
        x = new0(WrittenClaim, 1);
        if (!x)
                return NULL;
        if (free_and_strdup(&x->uid, uid) < 0 || hashmap_put(m->written, x->uid, x) < 0)
                return written_free(x);
        return x;
}

WrittenClaim *queue_memory_written(const QueueMemory *m, const char *uid) {
        return hashmap_get(m->written, uid);
}

void queue_memory_forget_written(QueueMemory *m, const char *uid) {
        WrittenClaim *x = hashmap_remove(m->written, uid);

        if (x)
                written_free(x);
}

/* -- poison --------------------------------------------------------------------------------------------- */

bool queue_memory_note_poison(QueueMemory *m, const char *message_id) {
        const char *oldest;

        if (hashmap_contains(m->poison, message_id))
                return false;
        if (hashmap_size(m->poison) >= POISON_MAX && hashmap_first(m->poison, &oldest))
                hashmap_remove(m->poison, oldest);
        (void) hashmap_put(m->poison, message_id, m);
        return true;
}
