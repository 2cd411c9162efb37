/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-state-store.h"

#include "fake-json.h"
#include "hashmap.h"
#include "string-util.h"

typedef struct Record {
        size_t size;
        char data[];
} Record;

struct SimDisk {
        Hashmap *records;
        struct SimStateStore *user;
};

typedef struct SimStateStore {
        StateStore store;
        SimDisk *disk;
        sim_disk_fate_t fate;
        void *userdata;
        bool dead;
} SimStateStore;

SimDisk *sim_disk_new(void) {
        SimDisk *d = MUST(new0(SimDisk, 1));
        int r = hashmap_new(0, &d->records);

        assert(r >= 0);
        return d;
}

SimDisk *sim_disk_free(SimDisk *d) {
        if (!d)
                return NULL;
        assert(!d->user);
        hashmap_free_with(d->records, mfree);
        return mfree(d);
}

void sim_disk_boot(SimDisk *d) {
        HashmapIterator it = { 0 };
        void *record;

        while (hashmap_iterate(d->records, &it, NULL, &record))
                free(record);
        hashmap_clear(d->records);
}

size_t sim_disk_n_records(const SimDisk *d) {
        return hashmap_size(d->records);
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

/* -- the store --------------------------------------------------------------------------------- */

static int store_read(StateStore *store, const char *name, char **ret, size_t *ret_size) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);
        const Record *record = hashmap_get(s->disk->records, name);

        if (!record)
                return -ENOENT;
        if (record->size > STATE_RECORD_MAX_BYTES)
                return -E2BIG;
        *ret = MUST(memdup_str(record->data, record->size));
        *ret_size = record->size;
        return 0;
}

static int store_write(StateStore *store, const char *name, const void *data, size_t size) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);
        SimDiskFate fate;

        if (s->dead)
                return -EIO;
        fate = s->fate(name, s->userdata);
        s->dead = fate == SIM_DISK_DIE_BEFORE || fate == SIM_DISK_DIE_AFTER;
        if (fate == SIM_DISK_FAIL || fate == SIM_DISK_DIE_BEFORE)
                return -EIO;
        disk_put(s->disk, name, data, size);
        return 0;
}

static void store_free(StateStore *store) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);

        s->disk->user = NULL;
        free(s);
}

static const StateStoreOps ops = {
        .read = store_read,
        .write = store_write,
        .free = store_free,
};

StateStore *sim_state_store_new(SimDisk *d, sim_disk_fate_t fate, void *userdata) {
        SimStateStore *s = MUST(new0(SimStateStore, 1));

        assert(!d->user);
        d->user = s;
        s->store.ops = &ops;
        s->disk = d;
        s->fate = fate;
        s->userdata = userdata;
        return &s->store;
}
