/* SPDX-License-Identifier: Apache-2.0 */
#include "hashmap.h"

/*
 * Two arrays. `entries` holds the entries in the order they came in; a removed one stays as a gap until the
 * array is compacted. `index` is an open-addressed table (linear probing, at most half full) of positions in
 * `entries`; removal moves the rest of the probe chain back, so the table itself never holds gaps.
 *
 * Compaction moves entries, and may happen while somebody walks the map. Each entry therefore carries the
 * number of its arrival, the walk remembers that number and not a position, and `entries` is always sorted
 * by it.
 */

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "alloc-util.h"
#include "string-util.h"

#define CAPACITY_MIN 8u
#define CAPACITY_MAX (1u << 30)
#define SLOT_EMPTY UINT32_MAX

typedef struct Entry {
        const char *key; /* NULL: a gap */
        void *value;
        uint64_t hash;
        uint64_t arrival;
} Entry;

struct Hashmap {
        HashmapFlags flags;
        uint8_t seed[16];
        Entry *entries;
        uint32_t *index; /* 2 * capacity slots */
        size_t capacity; /* of entries: 0 or a power of two */
        size_t n_used;   /* entries and gaps */
        size_t n_live;
        size_t head; /* no live entry before it */
        uint64_t arrivals;
};

uint64_t hash64(const void *data, size_t size) {
        uint64_t h = UINT64_C(0xcbf29ce484222325);

        for (size_t i = 0; i < size; i++) {
                h ^= ((const uint8_t *) data)[i];
                h *= UINT64_C(0x100000001b3);
        }
        return h;
}

static uint64_t load_le64(const uint8_t *p) {
        uint64_t v;

        memcpy(&v, p, sizeof(v));
        return le64toh(v);
}

static uint64_t rotate_left(uint64_t v, unsigned n) {
        return v << n | v >> (64 - n);
}

static inline void sip_round(uint64_t v[4]) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] = rotate_left(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t m) {
        v[3] ^= m;
        sip_round(v);
        sip_round(v);
        v[0] ^= m;
}

/* Aumasson and Bernstein, "SipHash: a fast short-input PRF". */
uint64_t siphash24(const void *data, size_t size, const uint8_t key[16]) {
        const uint8_t *p = data;
        uint64_t k0 = load_le64(key), k1 = load_le64(key + 8);
        uint64_t v[4] = {
                k0 ^ UINT64_C(0x736f6d6570736575),
                k1 ^ UINT64_C(0x646f72616e646f6d),
                k0 ^ UINT64_C(0x6c7967656e657261),
                k1 ^ UINT64_C(0x7465646279746573),
        };
        uint64_t last = (uint64_t) (size & 0xff) << 56;
        size_t rest = size;

        for (; rest >= 8; rest -= 8, p += 8)
                sip_word(v, load_le64(p));
        for (size_t i = 0; i < rest; i++)
                last |= (uint64_t) p[i] << (8 * i);

        sip_word(v, last);
        v[2] ^= 0xff;
        sip_round(v);
        sip_round(v);
        sip_round(v);
        sip_round(v);
        return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static int fill_seed(uint8_t seed[16]) {
        ssize_t n = getrandom(seed, 16, GRND_INSECURE);

        if (n < 0 && errno == EINVAL) /* Linux before 5.6 */
                n = getrandom(seed, 16, 0);
        if (n < 0)
                return -errno;
        return n == 16 ? 0 : -EIO;
}

int hashmap_new(HashmapFlags flags, Hashmap **ret) {
        _cleanup_free_ Hashmap *m = new0(Hashmap, 1);
        int r;

        assert(ret);
        if (!m)
                return -ENOMEM;

        m->flags = flags;
        r = fill_seed(m->seed);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(m);
        return 0;
}

static void entry_free_key(const Hashmap *m, Entry *e) {
        if (!(m->flags & HASHMAP_BORROW_KEYS))
                free((void *) (uintptr_t) e->key);
        e->key = NULL;
}

void hashmap_clear(Hashmap *m) {
        if (!m)
                return;
        for (size_t i = m->head; i < m->n_used; i++)
                if (m->entries[i].key)
                        entry_free_key(m, &m->entries[i]);
        m->entries = mfree(m->entries);
        m->index = mfree(m->index);
        m->capacity = m->n_used = m->n_live = m->head = 0;
}

Hashmap *hashmap_free(Hashmap *m) {
        hashmap_clear(m);
        return mfree(m);
}

Hashmap *hashmap_free_with(Hashmap *m, void *(*free_value)(void *value)) {
        Hashmap detached;

        assert(free_value);
        if (!m)
                return NULL;

        /* Emptied first: a value that takes itself out of the map when it is freed finds nothing there. */
        detached = *m;
        *m = (Hashmap){ .flags = m->flags, .arrivals = m->arrivals };
        memcpy(m->seed, detached.seed, sizeof(m->seed));

        for (size_t i = detached.head; i < detached.n_used; i++) {
                Entry *e = &detached.entries[i];

                if (!e->key)
                        continue;
                entry_free_key(&detached, e); /* before the value: a borrowed key lives in it */
                free_value(e->value);
        }
        hashmap_clear(&detached);
        return hashmap_free(m);
}

static size_t slot_mask(const Hashmap *m) {
        return 2 * m->capacity - 1;
}

static void index_insert(Hashmap *m, size_t position) {
        size_t slot = m->entries[position].hash & slot_mask(m);

        while (m->index[slot] != SLOT_EMPTY)
                slot = (slot + 1) & slot_mask(m);
        m->index[slot] = (uint32_t) position;
}

static void index_rebuild(Hashmap *m) {
        memset(m->index, 0xff, 2 * m->capacity * sizeof(*m->index));
        for (size_t i = 0; i < m->n_used; i++)
                index_insert(m, i);
}

/* Moves live entries from one array to the front of another, which may be the same; returns their number. */
static size_t entries_pack(const Entry *from, size_t n, Entry *to) {
        size_t n_live = 0;

        for (size_t i = 0; i < n; i++)
                if (from[i].key)
                        to[n_live++] = from[i];
        return n_live;
}

static void hashmap_compact(Hashmap *m) {
        m->n_used = entries_pack(m->entries, m->n_used, m->entries);
        m->head = 0;
        index_rebuild(m);
}

/* Nothing is changed on failure. */
static int hashmap_resize(Hashmap *m, size_t capacity) {
        _cleanup_free_ Entry *entries = NULL;
        _cleanup_free_ uint32_t *index = NULL;

        assert(capacity >= m->n_live);
        if (capacity > CAPACITY_MAX)
                return -ENOMEM;

        entries = new0(Entry, capacity);
        index = new0(uint32_t, 2 * capacity);
        if (!entries || !index)
                return -ENOMEM;

        if (m->n_used > 0)
                m->n_used = entries_pack(m->entries, m->n_used, entries);
        m->head = 0;
        m->capacity = capacity;
        free(m->entries);
        m->entries = TAKE_PTR(entries);
        free(m->index);
        m->index = TAKE_PTR(index);
        index_rebuild(m);
        return 0;
}

/* Room for one more entry. */
static int hashmap_reserve(Hashmap *m) {
        if (m->n_used < m->capacity)
                return 0;
        if (m->capacity > 0 && m->n_live <= m->capacity / 2) {
                hashmap_compact(m);
                return 0;
        }
        return hashmap_resize(m, m->capacity > 0 ? 2 * m->capacity : CAPACITY_MIN);
}

static uint64_t key_hash(const Hashmap *m, const char *key) {
        return siphash24(key, strlen(key), m->seed);
}

/* The slot of the key, or SIZE_MAX. */
static size_t find_slot(const Hashmap *m, const char *key, uint64_t hash) {
        size_t mask;

        if (!m || m->n_live == 0)
                return SIZE_MAX;

        mask = slot_mask(m);
        for (size_t slot = hash & mask; m->index[slot] != SLOT_EMPTY; slot = (slot + 1) & mask) {
                const Entry *e = &m->entries[m->index[slot]];

                if (e->hash == hash && streq(e->key, key))
                        return slot;
        }
        return SIZE_MAX;
}

static Entry *find_entry(const Hashmap *m, const char *key) {
        size_t slot;

        assert(key);
        if (hashmap_size(m) == 0)
                return NULL;
        slot = find_slot(m, key, key_hash(m, key));
        return slot == SIZE_MAX ? NULL : &m->entries[m->index[slot]];
}

int hashmap_put(Hashmap *m, const char *key, void *value) {
        uint64_t hash;
        const char *own;
        int r;

        assert(m);
        assert(key);

        hash = key_hash(m, key);
        if (find_slot(m, key, hash) != SIZE_MAX)
                return -EEXIST;
        r = hashmap_reserve(m);
        if (r < 0)
                return r;
        own = m->flags & HASHMAP_BORROW_KEYS ? key : strdup(key);
        if (!own)
                return -ENOMEM;

        m->entries[m->n_used] = (Entry){
                .key = own,
                .value = value,
                .hash = hash,
                .arrival = m->arrivals++,
        };
        index_insert(m, m->n_used);
        m->n_used++;
        m->n_live++;
        return 0;
}

int hashmap_replace(Hashmap *m, const char *key, void *value, void **ret_old) {
        Entry *e;

        assert(m);
        e = find_entry(m, key);
        if (ret_old)
                *ret_old = e ? e->value : NULL;
        if (!e)
                return hashmap_put(m, key, value);

        if (m->flags & HASHMAP_BORROW_KEYS)
                e->key = key;
        e->value = value;
        return 0;
}

void *hashmap_get(const Hashmap *m, const char *key) {
        const Entry *e = find_entry(m, key);

        return e ? e->value : NULL;
}

bool hashmap_contains(const Hashmap *m, const char *key) {
        return find_entry(m, key);
}

/* Empties the slot and closes the hole in its probe chain. */
static void index_remove(Hashmap *m, size_t slot) {
        size_t mask = slot_mask(m), hole = slot;

        for (size_t i = (slot + 1) & mask; m->index[i] != SLOT_EMPTY; i = (i + 1) & mask) {
                size_t home = m->entries[m->index[i]].hash & mask;

                /* It may move back only if its home does not lie behind the hole. */
                if (((i - home) & mask) >= ((i - hole) & mask)) {
                        m->index[hole] = m->index[i];
                        hole = i;
                }
        }
        m->index[hole] = SLOT_EMPTY;
}

void *hashmap_remove(Hashmap *m, const char *key) {
        size_t slot;
        void *value;
        Entry *e;

        assert(key);
        if (hashmap_size(m) == 0)
                return NULL;
        slot = find_slot(m, key, key_hash(m, key));
        if (slot == SIZE_MAX)
                return NULL;

        e = &m->entries[m->index[slot]];
        value = e->value;
        index_remove(m, slot);
        entry_free_key(m, e);
        e->value = NULL;
        m->n_live--;

        while (m->head < m->n_used && !m->entries[m->head].key)
                m->head++;
        /* Shrinking is a favour: without memory for it the map stays as it is. */
        if (m->capacity > 8 * CAPACITY_MIN && m->n_live < m->capacity / 8)
                (void) hashmap_resize(m, m->capacity / 4);
        return value;
}

size_t hashmap_size(const Hashmap *m) {
        return m ? m->n_live : 0;
}

void *hashmap_first(const Hashmap *m, const char **ret_key) {
        if (hashmap_size(m) == 0)
                return NULL;
        if (ret_key)
                *ret_key = m->entries[m->head].key;
        return m->entries[m->head].value;
}

/* The position of the first entry that arrived at or after `arrival`. */
static size_t find_arrival(const Hashmap *m, uint64_t arrival) {
        size_t low = m->head, high = m->n_used;

        if (low == high || arrival <= m->entries[low].arrival)
                return low;
        /* Without gaps packed away in between, the distance is the answer; otherwise it is an upper bound.
         * */
        if (arrival - m->entries[low].arrival < high - low) {
                high = low + (size_t) (arrival - m->entries[low].arrival);
                if (m->entries[high].arrival == arrival)
                        return high;
        }
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (m->entries[middle].arrival < arrival)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

bool hashmap_iterate(const Hashmap *m, HashmapIterator *i, const char **ret_key, void **ret_value) {
        assert(i);
        if (hashmap_size(m) == 0)
                return false;

        for (size_t position = find_arrival(m, i->position); position < m->n_used; position++) {
                const Entry *e = &m->entries[position];

                if (!e->key)
                        continue;
                i->position = (size_t) e->arrival + 1;
                if (ret_key)
                        *ret_key = e->key;
                if (ret_value)
                        *ret_value = e->value;
                return true;
        }
        return false;
}
