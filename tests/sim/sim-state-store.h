/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The disk of a simulated machine, and the StateStore through which one process sees it. The disk outlives
 * the process. Each write asks what shall become of it: it may fail, and the process may die in it, with the
 * record old, torn or new. While the disk hangs each call is late (STATE_LATE), and what is asked for is done when it
 * answers again: if the process dies before, it never was.
 */

#include "state-store.h"

typedef enum SimDiskFate {
        SIM_DISK_OK,
        SIM_DISK_FAIL,       /* -EIO, the old record is still there */
        SIM_DISK_DIE_BEFORE, /* the process dies; nothing was synced: the old record is there */
        SIM_DISK_DIE_TORN, /* the process dies, a part of the record is there: a disk that lied about a sync */
        SIM_DISK_DIE_AFTER, /* the process dies with the new record on the disk */
        _SIM_DISK_FATE_MAX,
} SimDiskFate;

typedef struct SimDisk SimDisk;

/* Each write and each remove, as it begins. */
typedef SimDiskFate (*sim_disk_fate_t)(const char *name, void *userdata);

SimDisk *sim_disk_new(void);
SimDisk *sim_disk_free(SimDisk *d); /* no store of it may be left */
DEFINE_FREEP(SimDisk, sim_disk_free);
/* A torn record has so much of what was written; 500 at first. */
void sim_disk_tear_at(SimDisk *d, unsigned permille);
size_t sim_disk_n_records(const SimDisk *d);
/* Until then, by the clock of the loops; 0: it answers. */
void sim_disk_hang(SimDisk *d, usec_t until_usec);

/* loop: of the process; one store of a disk at a time. After a DIE nothing that this store is told has an effect any more. */
StateStore *sim_state_store_new(SimDisk *d, Loop *loop, sim_disk_fate_t fate, void *userdata);
