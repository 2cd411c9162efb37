/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * etcd is lost, and restored from a backup: all objects, and their versions, are what they were. What happened in
 * between has happened nevertheless: machines that ended have, kubelets and clouds say so again, and people do again
 * what they had done.
 */

#include "sim-world.h"

typedef enum SimRestoreKind {
        SIM_RESTORE_PLAIN,    /* the cluster was busy since the backup: versions stay below what was seen */
        SIM_RESTORE_BUMPED,   /* etcdutl snapshot restore --bump-revision= --mark-compacted: who watched is told 410 */
        SIM_RESTORE_RESTARTS, /* ... and all of ours are started anew, as Kubernetes' documents advise */
        _SIM_RESTORE_KIND_MAX,
} SimRestoreKind;

/* A backup is taken now, and restored so much later. Passed over where one is under way already. */
void sim_restore_plan(SimWorld *w, SimRestoreKind kind, usec_t in_usec);
/* What is planned happens at once. */
void sim_restore_now(SimWorld *w);
void sim_restore_forget(SimWorld *w);
