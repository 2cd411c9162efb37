/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes now of a Node of whose machine the interruption queue announced something. Pure; the times are of the wall clock.
 *
 * What was announced is a list (announced.h). A notice is due at once; of a scheduled change, before_usec ahead of its time. While one or more
 * that stand are due, the Node is cordoned and drained, by the earliest of their times that is still to come (of a change whose time has passed, by
 * the end of its window); when none is left, it opens again. How far the drain is
 * stands on the Node (ANNOTATION_HEARD):
 *
 *      (none) --> Draining --> Drained, or Ending: that time has passed with pods left --> (none)
 *
 * Of a managed Node this is for what it comes back from: for what ends its machine its claim is deleted (adoption.c).
 *
 * A notice that stands leaves the list, or stays there as over until it is outlived, as its message may come again:
 *
 *      Done        the machine has booted since it was told; of a scheduled change, after its time. A boot before that is somebody else's.
 *                  Which of the two it was is known from a leader that saw the earlier boot after that time, or from since when the Node is
 *                  Ready; where neither tells, the Node stays closed until the change is outlived
 *      CalledOff   queue-decide.h
 *      Overruled   a person has opened the Node while it was due, or has overruled the agent's notice of the same end
 *      outlived    the Node is Ready ten minutes after the window in which the machine was to be gone. Without a time (a hibernation, a stop) that
 *                  counts from when the Node was drained, or, as long as it is not, from when it was said. An instance that its group lets go
 *                  of never comes back into service, so that this is never outlived
 *
 * Where nodes of no pool are not drained, or a person keeps this one from vesper, the list of a Node without claim goes. On a claim it stays, also
 * while [Interruption] Delete= is never.
 */

#include "kube-kinds.h"

#define HEARD_OUTLIVED_USEC (10 * USEC_PER_MINUTE)

typedef struct HeardFacts {
        const AnnouncedList *announced; /* its claim's; of a Node without one, its own */
        const Interruption *drain;      /* NULL: none has begun */
        const Interruption *agents;     /* what its agent said in this boot; NULL: nothing */
        const char *boot_id;            /* "": not known */
        InterruptionDelete deletes;     /* [Interruption] Delete= */
        usec_t before_usec;             /* [Interruption] BeforeSec= */
        bool drains_unmanaged;          /* [Queue] Unmanaged=drain */
        bool is_kept;                   /* a person keeps it from vesper */
        bool is_managed;                /* it has a claim, or our finalizer */
        bool is_between;                /* it has only one of them: it is being adopted, or released */
        bool is_going;                  /* its claim is being deleted */
        bool is_wanted;                 /* by a pool, or by several */
        bool is_deleted, is_ready, is_unschedulable;
        usec_t ready_since_usec;        /* the condition Ready is what it is; 0: not said */
        usec_t other_boot_usec;         /* this leader saw it in another boot, the last time; 0: it has not */
        usec_t settled_usec;            /* this leader has seen it drained since; 0: it has not */
        usec_t wall_usec;               /* now */
} HeardFacts;

typedef enum HeardAct {
        HEARD_NOTHING, /* nothing is to be done, or its removal does it */
        HEARD_WAIT,    /* something stands whose time is still far */
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
        HEARD_OUTLIVED,
        HEARD_BOOTED,
        HEARD_CALLED_OFF,
        HEARD_OVERRULED,
        HEARD_MOVED,        /* it stands, and its time is far again */
        HEARD_NOT_ANY_MORE, /* it is not to be drained for that, by configuration or a person's mark */
        _HEARD_END_MAX,
} HeardEnd;

/* *ret_until_usec: look at it then at the latest, if nothing changes; USEC_INFINITY: nothing changes by time alone. */
HeardAct heard_decide(const HeardFacts *f, usec_t *ret_until_usec);
/* The list as HEARD_REWRITE has it. -ENOMEM: *ret is empty. */
int heard_rewrite(const HeardFacts *f, AnnouncedList *ret);
/* Of HEARD_END. */
HeardEnd heard_end(const HeardFacts *f);

/* The first notice for which the Node is drained now, and by when, as above; where all has passed, by what came last.
 * NULL, and USEC_INFINITY: none, or no time. Borrowed. */
const Notice *heard_drained_for(const HeardFacts *f, usec_t *ret_deadline_usec);

/* A person has opened the Node in spite of one of them. */
bool heard_is_overruled(const HeardFacts *f);
/* Of what is still far, the first is one for which its claim is deleted. */
bool heard_is_removed_later(const HeardFacts *f);

/* When the drain for it begins; 0: at once, as for all but scheduled changes. */
usec_t heard_due(const Notice *notice, usec_t before_usec);
/* A person has opened the Node in spite of its agent's notice, which announced the same end as this one: the kind is the same, and so is the
 * time, give or take HEARD_OUTLIVED_USEC, where both tell one. agents: NULL is nothing. */
bool heard_is_agent_overruled(const Interruption *agents, const Notice *notice);
/* Something is expected of its machine that explains why its node is not Ready: a drain for it was begun, and it is not outlived. */
bool heard_is_awaited(const KubeNode *n, usec_t wall_usec);
