/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What `vesperctl status` says about a cluster: pure, of objects that ctl-fetch.c brought. */

#include "kube-kinds.h"
#include "pause-mark.h"

/* The reason, here and in `vesperctl explain`, where a node is drained for the interruption queue and no pod is known to hold it. */
#define HELD_BY_QUEUE_DRAIN "QueueDrains"
/* States of a request for a slot to reboot, in `vesperctl status` and `explain`. */
#define REBOOT_SLOT_WAITING "WaitingForRebootSlot"
#define REBOOT_SLOT_GRANTED "RebootSlotGranted"
#define REBOOT_SLOT_EXPIRED "RebootSlotExpired"
/* The coordinator put the taint node.kubernetes.io/out-of-service on the node. */
#define NODE_OUT_OF_SERVICE "OutOfService"

/* Objects of one kind; the list owns a reference to each. */
typedef struct ObjectList {
        KubeObject **items;
        size_t n_items, allocated;
} ObjectList;

void object_list_done(ObjectList *l);

typedef struct CtlSnapshot {
        ObjectList nodes, claims;
        bool named;              /* nodes: those that were asked for, managed or not */
        bool no_claims;          /* the cluster does not know NodeClaims */
        char *unknown;           /* a sentence: what could not be read, and what would help; NULL: nothing */
        char *leader;            /* NULL: not known; "": nobody */
        bool leader_refused;     /* the leader is not known, and the API server will refuse the next question, too */
        usec_t leader_seen_usec; /* wall clock of its last renewal; 0: not said */
        usec_t lease_usec;       /* how long that holds; 0: not said */
        PauseMark pause;         /* of all removals */
        char *pause_unknown;     /* a sentence: why `pause` is not known; NULL: `pause` is known */
        usec_t now_usec;         /* wall clock */
} CtlSnapshot;

void ctl_snapshot_done(CtlSnapshot *s);

/* One node (or claim without node) that is managed or interrupted. Texts are borrowed from the snapshot or from `told`, or
 * static. */
typedef struct StatusRow {
        const KubeNode *kube_node;        /* NULL: there is none */
        const KubeNodeClaim *kube_claim;  /* NULL: there is none */
        const char *node;         /* NULL: there is none */
        const char *claim, *pool; /* NULL: none */
        char *asked; /* of a machine that is no node yet: what vesper asked the cloud for; NULL: it has, or had, a Node */
        char *phase;
        int64_t pods_left;                        /* -1: not said */
        const char *pod, *reason, *pdb, *message; /* what holds it; NULL: nothing said */
        usec_t since_usec;     /* wall clock, of what holds it or of the phase; 0: not said */
        usec_t deadline_usec;  /* wall clock; USEC_INFINITY: none */
        const ClaimBlocker *blockers; /* the claim's; of a node that is drained for the interruption queue `told` */
        size_t n_blockers;
        ClaimBlocker *told; /* what the Node's condition names; NULL: none */
        const Condition *plan; /* condition MaintenancePlanned of the agent while nothing has followed from it; NULL: none */
        bool is_held;          /* not being removed, and the brake of the interruption queue holds a notice */
        bool no_deadline_ever; /* being removed, held, and its claim has no terminationGracePeriod */
} StatusRow;

typedef struct StatusRows {
        StatusRow *rows;
        size_t n_rows, allocated;
} StatusRows;

/* Sorted by node. 0 or -ENOMEM. */
int status_rows_make(const CtlSnapshot *s, StatusRows *ret);
void status_rows_done(StatusRows *r);
/* Table with what a person should know under it; JSON. NULL on ENOMEM. */
char *status_rows_table(const StatusRows *r, const CtlSnapshot *s);
char *status_rows_json(const StatusRows *r, const CtlSnapshot *s);
