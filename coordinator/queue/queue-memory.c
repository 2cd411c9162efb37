/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-memory.h"

#include "string-util.h"

#define UNKNOWN_MAX 20000u
#define UNKNOWN_KEEP_USEC (15 * USEC_PER_MINUTE)
#define WRITES_MAX 20000u
#define REPORTED_MAX 20000u
#define PARKED_KEEP_USEC (10 * USEC_PER_MINUTE) /* time to come again */
#define ELSEWHERE_MAX 20u /* maximum number of pairs that are logged */

typedef struct ParkedMessage {
        char *id;
        usec_t until_usec; /* loop_now() */
} ParkedMessage;

static void *unknown_free(void *p) {
        UnknownInstance *u = p;

        free(u->instance);
        return mfree(u);
}

static void *parked_free(void *p) {
        ParkedMessage *k = p;

        free(k->id);
        return mfree(k);
}

int queue_memory_init(QueueMemory *m, const Loop *loop) {
        int r;

        *m = (QueueMemory){ .loop = loop };
        r = hashmap_new(HASHMAP_BORROW_KEYS, &m->unknown);
        if (r >= 0)
                r = hashmap_new(0, &m->writes);
        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &m->parked);
        if (r >= 0)
                r = hashmap_new(0, &m->elsewhere);
        if (r >= 0)
                r = hashmap_new(0, &m->reported);
        return r;
}

void queue_memory_done(QueueMemory *m) {
        hashmap_free_with(m->unknown, unknown_free);
        hashmap_free(m->writes);
        hashmap_free_with(m->parked, parked_free);
        hashmap_free(m->elsewhere);
        hashmap_free(m->reported);
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

/* -- unreadable messages -------------------------------------------------------------------------------- */

/* Makes room for one message. Returns false if all are hidden still. The map keeps the order of insertion. */
static bool make_parked_room(QueueMemory *m) {
        const ParkedMessage *first = hashmap_first(m->parked, NULL);

        if (hashmap_size(m->parked) < QUEUE_PARKED_MAX)
                return true;
        if (loop_now(m->loop) < usec_add(first->until_usec, PARKED_KEEP_USEC))
                return false;
        parked_free(hashmap_remove(m->parked, first->id));
        return true;
}

int queue_memory_park(QueueMemory *m, const char *message_id, usec_t for_usec) {
        ParkedMessage *k = hashmap_remove(m->parked, message_id);
        bool is_new = !k;

        if (is_new) {
                if (!make_parked_room(m))
                        return QUEUE_PARK_FULL;
                k = new0(ParkedMessage, 1);
                if (!k || free_and_strdup(&k->id, message_id) < 0) {
                        if (k)
                                parked_free(k);
                        return -ENOMEM;
                }
        }
        k->until_usec = usec_add(loop_now(m->loop), for_usec);
        if (hashmap_put(m->parked, k->id, k) < 0) {
                parked_free(k);
                return -ENOMEM;
        }
        return is_new ? QUEUE_PARK_NEW : QUEUE_PARK_AGAIN;
}

/* -- reported messages ---------------------------------------------------------------------------------- */

bool queue_memory_note_reported(QueueMemory *m, const char *message_id, const char *instance) {
        _cleanup_free_ char *key = strf("%s/%s", message_id, instance);
        const char *first;

        if (!key)
                return true;
        if (hashmap_contains(m->reported, key))
                return false;
        if (hashmap_size(m->reported) >= REPORTED_MAX) {
                hashmap_first(m->reported, &first);
                hashmap_remove(m->reported, first);
        }
        (void) hashmap_put(m->reported, key, m);
        return true;
}

/* -- other accounts and regions ------------------------------------------------------------------------- */

bool queue_memory_note_elsewhere(QueueMemory *m, const char *account, const char *region) {
        _cleanup_free_ char *key = strf("%s/%s", account, region);

        return key && hashmap_size(m->elsewhere) < ELSEWHERE_MAX && hashmap_put(m->elsewhere, key, m) >= 0;
}

bool queue_memory_is_written(const QueueMemory *m, const char *uid) {
        return hashmap_contains(m->writes, uid);
}
