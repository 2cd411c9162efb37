/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-state-store.h"

#include "fake-json.h"
#include "hashmap.h"

typedef struct Record {
        size_t size;
        char data[];
} Record;

struct SimDisk {
        Hashmap *records;
        unsigned torn_permille;
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
        d->torn_permille = 500;
        return d;
}

SimDisk *sim_disk_free(SimDisk *d) {
        if (!d)
                return NULL;
        hashmap_free_with(d->records, mfree);
        return mfree(d);
}

void sim_disk_tear_at(SimDisk *d, unsigned permille) {
        d->torn_permille = permille;
}

size_t sim_disk_n_records(const SimDisk *d) {
        return hashmap_size(d->records);
}

static void disk_put(SimDisk *d, const char *name, const void *data, size_t size) {
        Record *record = MUST((Record *) malloc(sizeof(Record) + size));
        void *old = NULL;
        int r;

        record->size = size;
        if (size > 0)
                memcpy(record->data, data, size);
        r = hashmap_replace(d->records, name, record, &old);
        assert(r >= 0);
        free(old);
}

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

/* data NULL: the record goes. */
static int store_change(StateStore *store, const char *name, const void *data, size_t size) {
        SimStateStore *s = CONTAINER_OF(store, SimStateStore, store);
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

static int store_write(StateStore *store, const char *name, const void *data, size_t size) {
        return store_change(store, name, data, size);
}

static int store_remove(StateStore *store, const char *name) {
        return store_change(store, name, NULL, 0);
}

static void store_free(StateStore *store) {
        free(CONTAINER_OF(store, SimStateStore, store));
}

static const StateStoreOps ops = {
        .read = store_read,
        .write = store_write,
        .remove = store_remove,
        .free = store_free,
};

StateStore *sim_state_store_new(SimDisk *d, sim_disk_fate_t fate, void *userdata) {
        SimStateStore *s = MUST(new0(SimStateStore, 1));

        s->store.ops = &ops;
        s->disk = d;
        s->fate = fate;
        s->userdata = userdata;
        return &s->store;
}
