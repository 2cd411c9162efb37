/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The inside of Repairs, for repairs.c and repair-reboot.c alone: a case for each node that a rule of its pool
 * matches, or that was rebooted not long ago.
 */

#include "hashmap.h"
#include "machine-look.h"
#include "repair-brake.h"
#include "repair-sight.h"
#include "repairs.h"

/* Interval at which a case that waits for the view, for room or for an agent is evaluated again. */
#define REPAIRS_AGAIN_USEC (30 * USEC_PER_SEC)

/* The edges are in repair-reboot.c. */
typedef enum RepairReboot {
        REPAIR_REBOOT_NONE,
        REPAIR_REBOOT_ASKED,
        REPAIR_REBOOT_TAKEN_BACK, /* the request goes; the place is kept until it is sure that the machine is not rebooted for that */
        REPAIR_REBOOT_FAILED,     /* rules that say Reboot are passed over */
} RepairReboot;

typedef struct RepairCase {
        char *node;
        RepairSight *sight;
        usec_t due_usec; /* loop_now(); USEC_INFINITY: no rule asks for anything now */
        usec_t not_before_usec; /* loop_now(): decide again at the earliest then; 0: at once */
        RepairReboot reboot;
        char *boot_id; /* that a reboot is to end; NULL in NONE and FAILED */
        bool waits;    /* due, and held */
        bool refused;  /* the API server refused its deletion last: its begin was counted and reported */
        bool has_asked; /* its agent was seen to ask for the slot of this reboot */
        usec_t well_usec;      /* loop_now(): since when it is well, after a reboot; USEC_INFINITY: it is not, or was not rebooted */
        usec_t announce_usec;  /* loop_now(): when its replacement is to be announced; USEC_INFINITY: not, or it was */
        usec_t announced_usec; /* loop_now(): when it was; 0: not yet */
        struct Repairs *owner;
        MachineEnd *asked;  /* a question about its machine, under way (machine-look.h); NULL: none is */
        usec_t asked_usec;  /* loop_now() */
        MachineLook look;   /* the provider's last answer */
        usec_t look_usec;   /* loop_now(): when that question was asked; 0: no answer yet */
        char *look_problem; /* of MACHINE_LOOK_UNKNOWN: the provider's error */
} RepairCase;

struct Repairs {
        const TerminationContext *context;
        WorkQueue *queue;
        PoolStatuses *pool_statuses;
        Successors *successors;
        RepairBrake *brake;
        Hashmap *cases; /* by node */
        Hashmap *holds; /* by pool; those that are told */
        bool stands;
        usec_t heartbeat_usec; /* loop_now(): when one moved last; 0: none has */
        usec_t lost_usec;      /* loop_now(): when the last of its watches went down */
        usec_t healthy_usec;   /* loop_now(): since when the view is healthy, but for moments */
        size_t n_asked;        /* questions about machines under way, as of this pass */
};

/* -- repairs.c -- */

static inline usec_t repairs_now(const Repairs *r) {
        return loop_now(r->context->env->loop);
}

/* Reconciles the node at that time (loop_now()). */
void repairs_mark_node(Repairs *r, const char *name, usec_t at_usec);
/* Returns why the coordinator's own view is not healthy, as people may read it. NULL: it is healthy. */
const char *repairs_view_trouble(const Repairs *r);
/* Returns true if the node is removed, interrupted, in a slot to reboot, or kept from repair by a person. */
bool repair_is_left_alone(const Repairs *r, const KubeNode *n, const KubeNodeClaim *claim);
/* Counts a repair that begins, and reports it by an Event and the log. */
void repairs_note_begun(Repairs *r, const KubeNode *n, const KubeNodePool *pool, const RepairVerdict *v);
/* A repair_ended_t. */
void repairs_on_ended(const char *node_uid, bool proved, void *userdata);

/* -- repair-reboot.c -- */

/* Returns the boot id that the node was asked to end, as its claim records it. NULL: it was not asked, or has been
 * well for long enough since. */
const char *repair_reboot_record(const KubeNodeClaim *claim);
/* Returns true if the node was rebooted for what it shows. */
bool repair_reboot_was_done(const KubeNode *n, const KubeNodeClaim *claim);
/* Returns true if the node has a slot to reboot; also on ENOMEM. */
bool repair_reboot_has_slot(const Repairs *r, const KubeNode *n);
/* Asks the agent of the node to reboot it, for the rule of the verdict. */
void repair_reboot_begin(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool, const RepairDomains *d,
                         const RepairVerdict *v);
/* Notes for the brake how the node is while its reboot is under way. */
void repair_reboot_note(Repairs *r, const RepairCase *c, const KubeNode *n, const KubeNodePool *pool);
/* Follows a reboot under way, as the Node is now: writes the request, or takes it back. */
void repair_reboot_see(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool);
/* Follows a reboot under way by time: it has failed if the agent has not asked for a slot. */
void repair_reboot_await_request(Repairs *r, RepairCase *c, const KubeNode *n);
/* Removes the record of the reboot once the node has been well for REPAIR_PROOF_USEC: a later fault may be repaired by
 * a reboot again. */
void repair_reboot_forget(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool);
/* Removes the request from the Node unless this leader still asks for that reboot. */
void repair_reboot_tidy(Repairs *r, const KubeNode *n);
/* Ends the reboot. state: REPAIR_REBOOT_NONE or _FAILED. */
void repair_reboot_end(Repairs *r, RepairCase *c, RepairReboot state);
/* Reports by an Event and the log why the reboot has failed. */
void repair_reboot_report_failed(Repairs *r, const RepairCase *c);
