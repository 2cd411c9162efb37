/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes now of a Node of whose machine the interruption queue announced something. Pure; the times are of the wall clock.
 *
 * What was announced is a list (announced.h). A notice is due at once; a scheduled change is due before_usec ahead of its time. While a notice
 * that stands is due, the Node is cordoned and drained. The drain has until the earliest of their times that is still to come; for a change
 * whose time has passed, until its window ends. When no notice that stands is due, the Node opens again. The progress of the drain stands on
 * the Node (ANNOTATION_HEARD):
 *
 *      (none) --> Draining --> Drained, or Ending: that time has passed with pods left --> (none)
 *
 * A managed Node is drained only for what it comes back from: for what ends its machine its claim is deleted (adoption.c).
 *
 * The Node is drained for a notice that the brake of the queue holds (queue-brake.h), too, but that drain has no deadline: no pod is deleted
 * in spite of its PodDisruptionBudget. The notice stands once AWS, the node's agent (interruption_confirms()) or a person (ANNOTATION_LET_GO)
 * confirms it.
 *
 * A notice that stands becomes one of these, and stays in the list until it is outlived, as SQS may deliver its message again:
 *
 *      Done        The machine has booted after the announced time, or, where none is said, after AWS sent the message: a leader saw the old boot
 *                  id after that time, or the Node became Ready after it. Any other boot only updates the notice's bootID. If the coordinator
 *                  cannot date the boot, the notice stands until it is outlived. No boot takes an end for good back.
 *      CalledOff   AWS has called it off, or reports that it is over (queue-decide.h).
 *      Overruled   A person has opened the Node while the notice was due, and the drain was for it or AWS had sent it half a minute before; or has
 *                  overruled the agent's notice of the same end.
 *
 * A notice is outlived when the Node is Ready ten minutes after the end of the window. Without a time (a hibernation, a stop) the ten minutes
 * count from when AWS sent the message, or from when the Node was drained if that was later. An instance that its Auto Scaling group lets go
 * of never comes back into service, so such a notice is never outlived.
 *
 * Where nodes of no pool are not drained, or a person keeps this one from vesper, the list of a Node without claim goes. On a claim it stays,
 * also while [Interruption] Delete= is never.
 */

#include "kube-kinds.h"

typedef struct HeardFacts {
        const AnnouncedList *announced; /* its claim's; of a Node without one, its own */
        const Interruption *drain;      /* NULL: none has begun */
        const Interruption *agents;     /* what its agent said in this boot; NULL: nothing */
        const char *boot_id;            /* "": not known */
        usec_t let_go_usec;             /* of the NodeClaim, or of a Node without one; 0: none */
        InterruptionDelete deletes;     /* [Interruption] Delete= */
        usec_t before_usec;             /* [Interruption] BeforeSec= */
        bool drains_unmanaged;          /* [Queue] Unmanaged=drain */
        bool is_kept;                   /* a person keeps it from vesper */
        bool is_managed;                /* it has a claim, or our finalizer */
        bool is_between;                /* it has only one of them: it is being adopted, or released */
        bool is_going;                  /* its claim is being deleted */
        bool is_wanted;                 /* by a pool, or by several */
        bool is_deleted, is_ready, is_unschedulable;
        usec_t ready_since_usec;        /* kube_node_ready_since() */
        usec_t other_boot_usec;         /* this leader saw it in another boot, the last time; 0: it has not */
        usec_t settled_usec;            /* this leader has seen it drained since; 0: it has not */
        usec_t wall_usec;               /* now */
} HeardFacts;

typedef enum HeardAct {
        HEARD_NOTHING, /* nothing is to be done, or its removal does it */
        HEARD_WAIT,    /* a notice stands, and nothing is drained for it: its time is far, or its claim is deleted for it */
        HEARD_REWRITE, /* the list changes: heard_rewrite() */
        HEARD_CORDON,
        HEARD_DRAIN,   /* begin, or go on */
        HEARD_KEEP,    /* the marks stay as they are */
        HEARD_END,     /* the marks go: HeardEnd says why */
        _HEARD_ACT_MAX,
        _HEARD_ACT_INVALID = -EINVAL,
} HeardAct;

const char *heard_act_to_string(HeardAct a); /* "cordon", for tests */

/* Why a drain has ended. */
typedef enum HeardEnd {
        HEARD_END_OUTLIVED,
        HEARD_END_BOOTED,
        HEARD_END_CALLED_OFF,
        HEARD_END_OVERRULED,
        HEARD_END_MOVED,    /* its notice stands, and its time is far again */
        HEARD_END_EXEMPT,   /* configuration or a person's mark say that it is not drained for such a notice */
        _HEARD_END_MAX,
} HeardEnd;

/* *ret_until_usec: look at it then at the latest, if nothing changes; USEC_INFINITY: nothing changes by time alone. */
HeardAct heard_decide(const HeardFacts *f, usec_t *ret_until_usec);
/* The list as HEARD_REWRITE has it. -ENOMEM: *ret is empty. */
int heard_rewrite(const HeardFacts *f, AnnouncedList *ret);
/* Returns why the drain ends. Only after heard_decide() has returned HEARD_END. */
HeardEnd heard_end(const HeardFacts *f);

/* Returns the first notice that the Node is drained for; standing notices come before held ones. Borrowed; NULL: none. *ret_deadline_usec: of the
 * standing ones, the earliest time still to come, else the latest that has passed; USEC_INFINITY: none. */
const Announced *heard_drained_for(const HeardFacts *f, usec_t *ret_deadline_usec);

/* Returns true if heard_rewrite() lets this notice of the list go. */
bool heard_is_let_go(const HeardFacts *f, const Announced *a);

/* Returns true if a person has overruled one of them. */
bool heard_is_overruled(const HeardFacts *f);
/* When the drain for it begins; 0: at once, as for all but scheduled changes. */
usec_t heard_due(const Notice *notice, usec_t before_usec);
/* A person has opened the Node in spite of its agent's notice, which announced the same end as this one: the kind is the same, and so is the
 * time, give or take ANNOUNCED_OUTLIVED_USEC, or neither tells one. agents: NULL is nothing. */
bool heard_is_agent_overruled(const Interruption *agents, const Notice *notice);
/* Something is expected of its machine that explains why its node is not Ready: a drain for it was begun, and it is not outlived. */
bool heard_is_awaited(const KubeNode *n, usec_t wall_usec);
