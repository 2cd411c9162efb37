/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-memory.h"

#include "string-util.h"

#define UNKNOWN_MAX 20000u
#define UNKNOWN_KEEP_USEC (15 * USEC_PER_MINUTE)
#define WRITES_MAX 20000u
#define POISON_MAX 1000u
#define ELSEWHERE_MAX 20u /* maximum number of pairs that are logged */

static void *unknown_free(void *p) {
        UnknownInstance *u = p;

        free(u->instance);
        return mfree(u);
}

int queue_memory_init(QueueMemory *m, const Loop *loop) {
        int r;

        *m = (QueueMemory){ .loop = loop };
        r = hashmap_new(HASHMAP_BORROW_KEYS, &m->unknown);
        if (r >= 0)
                r = hashmap_new(0, &m->writes);
        if (r >= 0)
                r = hashmap_new(0, &m->poison);
        if (r >= 0)
                r = hashmap_new(0, &m->elsewhere);
        return r;
}

void queue_memory_done(QueueMemory *m) {
        hashmap_free_with(m->unknown, unknown_free);
        hashmap_free(m->writes);
        hashmap_free(m->poison);
        hashmap_free(m->elsewhere);
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

/* -- writes --------------------------------------------------------------------------------------------- */

int queue_memory_begin_write(QueueMemory *m, const char *uid) {
        if (hashmap_contains(m->writes, uid))
                return 0;
        return hashmap_size(m->writes) < WRITES_MAX && hashmap_put(m->writes, uid, m) >= 0 ? 1 : -ENOMEM;
}

void queue_memory_end_write(QueueMemory *m, const char *uid) {
        (void) hashmap_remove(m->writes, uid);
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

/* -- other accounts and regions ------------------------------------------------------------------------- */

bool queue_memory_note_elsewhere(QueueMemory *m, const char *account, const char *region) {
        _cleanup_free_ char *key = strf("%s/%s", account, region);

        return key && hashmap_size(m->elsewhere) < ELSEWHERE_MAX && hashmap_put(m->elsewhere, key, m) >= 0;
}
