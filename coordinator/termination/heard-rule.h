/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes now of a Node of whose machine the interruption queue told something (ANNOTATION_HEARD, or what is kept on its claim).
 * Pure; the times are of the wall clock.
 *
 *      Planned --> Draining --> Drained (or Ending: the deadline has passed) --> annotation and cordon go
 *          '----------'-- a person opens the node --> Released ------------------^
 *                     '-- it is called off, or done --> Cancelled, the cordon goes --^
 *
 * They go when the machine has booted anew, or is Ready ten minutes after the window in which it was to be gone; and at once where
 * nodes of no pool are not drained any more, or a person keeps this one from vesper. A boot before the time of a
 * scheduled change does not end it: that change is still to come, and the node is drained anew. What has no time and ends no machine
 * for good (a hibernation, a stop) counts from when it was drained, or, as long as it is not, from when it was said; an instance that its group lets go of never comes back into service,
 * so that its node stays closed until it is gone, boots anew, or a person opens it.
 *
 * A scheduled change that is called off, or for which the machine has booted, stands as Cancelled until it is outlived: the message that told
 * of it may come again, as long as it waits for another of its instances.
 *
 * Where another notice has brought the time nearer (own_announced_usec), and that is outlived, its own time stands again, Planned.
 *
 * A drain for a scheduled change begins before_usec ahead of its time, any other at once. Of a managed node it is for what the node comes back from: for what ends the machine its
 * claim is deleted.
 */

#include "interruption.h"
#include "kube-kinds.h"

#define HEARD_OUTLIVED_USEC (10 * USEC_PER_MINUTE)

typedef struct HeardFacts {
        const Interruption *heard; /* NULL: nothing that can be read */
        bool drains;               /* [Queue] Unmanaged=drain */
        bool acts;                 /* [Interruption] Delete= is not never */
        bool deletes;              /* a claim is deleted for it */
        usec_t before_usec;        /* [Interruption] BeforeSec= */
        bool is_kept;              /* a person keeps it from vesper */
        bool is_managed;           /* it has a claim, or our finalizer */
        bool is_on_claim;          /* the claim says it, too, and not that it is called off */
        bool is_claim_told;        /* its claim says of an end for which it is deleted, or is being deleted */
        bool is_going;             /* its claim is being deleted */
        bool is_wanted;            /* by a pool, or by several */
        bool is_deleted, is_ready, is_unschedulable;
        bool is_marked;            /* the cordon is the coordinator's, too */
        bool is_of_other_boot;     /* what was heard */
        bool is_agent_overruled;   /* a person has opened it in spite of its agent's notice */
        usec_t settled_usec;       /* this leader has seen it drained, or released, since; 0: it has not */
        usec_t wall_usec;          /* now */
} HeardFacts;

typedef enum HeardAct {
        HEARD_NOTHING,   /* its removal has begun; or what cannot be read, which release.c takes off */
        HEARD_WAIT,      /* its time is still far */
        HEARD_CORDON,
        HEARD_DRAIN,     /* begin, or go on */
        HEARD_KEEP,      /* the marks stay as they are */
        HEARD_OVERRULE,  /* a person has opened it: nothing goes on, and this notice is not acted upon again */
        HEARD_ANEW,      /* it has booted since, and what was told is still to come: planned again */
        HEARD_OWN,       /* the cordon goes, and it is planned for its own time */
        HEARD_CALL_OFF,  /* the cordon goes, and it stands as Cancelled */
        HEARD_HAND_OVER, /* its claim is to say it */
        HEARD_END,       /* the marks go */
        _HEARD_ACT_MAX,
        _HEARD_ACT_INVALID = -EINVAL,
} HeardAct;

const char *heard_act_to_string(HeardAct a); /* "hand over", for tests */

/* *ret_until_usec: look at it then at the latest, if nothing changes; USEC_INFINITY: nothing changes by time alone. */
HeardAct heard_decide(const HeardFacts *f, usec_t *ret_until_usec);

/* Wall clock: when the drain for it begins; 0: now, as for all but scheduled changes. */
usec_t heard_due(const Notice *notice, usec_t before_usec);
/* Something is expected of its machine that explains why its node is not Ready: a drain for it was begun, and it is not outlived. */
bool heard_is_awaited(const KubeNode *n, usec_t wall_usec);
