/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * /run of a simulated machine, and the StateStore through which one process sees it. It outlives the process, and
 * is empty after a boot. Each write asks what shall become of it: it may fail, and the process may die in it, before
 * the new record is renamed over the old one or after.
 */

#include "state-store.h"

typedef enum SimDiskFate {
        SIM_DISK_OK,
        SIM_DISK_FAIL,       /* -EIO, the old record is still there */
        SIM_DISK_DIE_BEFORE, /* the process dies, nothing was renamed: the old record is there */
        SIM_DISK_DIE_AFTER,  /* the process dies, the new record is there */
        _SIM_DISK_FATE_MAX,
} SimDiskFate;

typedef struct SimDisk SimDisk;

/* Each write, as it begins. */
typedef SimDiskFate (*sim_disk_fate_t)(const char *name, void *userdata);

SimDisk *sim_disk_new(void);
SimDisk *sim_disk_free(SimDisk *d); /* no store of it may be left */
DEFINE_FREEP(SimDisk, sim_disk_free);
void sim_disk_boot(SimDisk *d); /* nothing of it is left */
size_t sim_disk_n_records(const SimDisk *d);

/* One store of a disk at a time. After a DIE nothing that this store is told has an effect any more. */
StateStore *sim_state_store_new(SimDisk *d, sim_disk_fate_t fate, void *userdata);
