/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-state-store.h"

#include "fake-json.h"
#include "hashmap.h"
#include "list.h"
#include "string-util.h"

typedef struct Record {
        size_t size;
        char data[];
} Record;

/* A call that is late. */
typedef struct Owed {
        ListNode owed;
        StateCall call;
        char *name;
        Record *record; /* to write */
} Owed;

struct SimDisk {
        Hashmap *records;
        unsigned torn_permille;
        usec_t hangs_until_usec;
        struct SimStateStore *user;
};

typedef struct SimStateStore {
        StateStore store;
        SimDisk *disk;
        Loop *loop;
        Timer *answer;
        List owed;
        sim_disk_fate_t fate;
        void *userdata;
        bool dead;
} SimStateStore;

SimDisk *sim_disk_new(void) {
        SimDisk *d = MUST(new0(SimDisk, 1));
        int r = hashmap_new(0, &d->records);

        assert(r >= 0);
        d->torn_permille = 500;
        return d;
}

SimDisk *sim_disk_free(SimDisk *d) {
        if (!d)
                return NULL;
        assert(!d->user);
        hashmap_free_with(d->records, mfree);
        return mfree(d);
}

void sim_disk_tear_at(SimDisk *d, unsigned permille) {
        d->torn_permille = permille;
}

size_t sim_disk_n_records(const SimDisk *d) {
        return hashmap_size(d->records);
}

void sim_disk_hang(SimDisk *d, usec_t until_usec) {
        d->hangs_until_usec = until_usec;
        if (d->user && d->user->owed.first)
                timer_arm(d->user->answer, until_usec);
}

static Record *record_new(const void *data, size_t size) {
        Record *record = MUST((Record *) malloc(sizeof(Record) + size));

        record->size = size;
        if (size > 0)
                memcpy(record->data, data, size);
        return record;
}

static void disk_put(SimDisk *d, const char *name, const void *data, size_t size) {
        void *old = NULL;
        int r = hashmap_replace(d->records, name, record_new(data, size), &old);

        assert(r >= 0);
        free(old);
}

static int do_read(SimStateStore *s, const char *name, char **ret, size_t *ret_size) {
        const Record *record = hashmap_get(s->disk->records, name);

        if (!record)
                return -ENOENT;
        if (record->size > STATE_RECORD_MAX_BYTES)
                return -E2BIG;
        *ret = MUST(memdup_str(record->data, record->size));
        *ret_size = record->size;
        return 0;
}

/* data NULL: the record goes. */
static int do_change(SimStateStore *s, const char *name, const void *data, size_t size) {
        SimDiskFate fate;

        if (s->dead)
                return -EIO;
        fate = s->fate(name, s->userdata);
        s->dead = fate == SIM_DISK_DIE_BEFORE || fate == SIM_DISK_DIE_TORN || fate == SIM_DISK_DIE_AFTER;
        if (fate == SIM_DISK_FAIL || fate == SIM_DISK_DIE_BEFORE)
                return -EIO;
        if (!data)
                free(hashmap_remove(s->disk->records, name));
        else
                disk_put(s->disk, name, data, fate == SIM_DISK_DIE_TORN ? size * s->disk->torn_permille / 1000 : size);
        return 0;
}

/* -- what is late ------------------------------------------------------------------------------ */

static void owed_free(Owed *o) {
        free(o->name);
        free(o->record);
        free(o);
}

static bool hangs(SimStateStore *s) {
        return loop_now(s->loop) < s->disk->hangs_until_usec;
}

static int owe(SimStateStore *s, StateCall call, const char *name, const void *data, size_t size) {
        Owed *owed = MUST(new0(Owed, 1));

        LIST_FOREACH(o, &s->owed, Owed, owed)
                if (call != STATE_READ && o->call != STATE_READ && streq(o->name, name)) {
                        list_remove(&s->owed, &o->owed);
                        owed_free(o);
                }
        owed->call = call;
        owed->name = MUST(strdup(name));
        owed->record = call == STATE_WRITE ? record_new(data, size) : NULL;
        list_append(&s->owed, &owed->owed);
        timer_arm(s->answer, s->disk->hangs_until_usec);
        return STATE_LATE;
}

/* The listener may ask again. */
static void on_answer(Timer *t, void *userdata) {
        SimStateStore *s = userdata;

        for (Owed *o; !hangs(s) && (o = LIST_ENTRY(s->owed.first, Owed, owed)); owed_free(o)) {
                StateSettled settled = { .call = o->call, .name = o->name };
                _cleanup_free_ char *data = NULL;

                list_remove(&s->owed, &o->owed);
                if (o->call == STATE_READ)
                        settled.result = do_read(s, o->name, &data, &settled.size);
                else
                        settled.result = do_change(s, o->name, o->record ? o->record->data : NULL,
                                                   o->record ? o->record->size : 0);
                settled.data = data;
                if (s->store.on_settled)
                        s->store.on_settled(&settled, s->store.settled_userdata);
        }
}

/* -- the store --------------------------------------------------------------------------------- */

static int store_read(StateStore *store, const char *name, char **ret, size_t *ret_size) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);

        return hangs(s) || s->owed.first ? owe(s, STATE_READ, name, NULL, 0) : do_read(s, name, ret, ret_size);
}

static int store_write(StateStore *store, const char *name, const void *data, size_t size) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);

        return hangs(s) || s->owed.first ? owe(s, STATE_WRITE, name, data, size) : do_change(s, name, data, size);
}

static int store_remove(StateStore *store, const char *name) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);

        return hangs(s) || s->owed.first ? owe(s, STATE_REMOVE, name, NULL, 0) : do_change(s, name, NULL, 0);
}

static void store_free(StateStore *store) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);

        LIST_FOREACH(o, &s->owed, Owed, owed) {
                list_remove(&s->owed, &o->owed);
                owed_free(o);
        }
        timer_free(s->answer);
        s->disk->user = NULL;
        free(s);
}

static const StateStoreOps ops = {
        .read = store_read,
        .write = store_write,
        .remove = store_remove,
        .free = store_free,
};

StateStore *sim_state_store_new(SimDisk *d, Loop *loop, sim_disk_fate_t fate, void *userdata) {
        SimStateStore *s = MUST(new0(SimStateStore, 1));
        int r = timer_new(loop, "sim-disk", on_answer, s, &s->answer);

        assert(r >= 0 && !d->user);
        d->user = s;
        s->store.ops = &ops;
        s->loop = loop;
        s->disk = d;
        s->fate = fate;
        s->userdata = userdata;
        return &s->store;
}
