/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a message of the interruption queue means for one instance that it names. Pure.
 *
 *      a managed node (an instance with a NodeClaim):
 *        an end, a stop, a hibernation, a scheduled change       written on its claim (announced.h). By [Interruption] Delete= the claim is
 *                                                                deleted for it (adoption.c), or its Node drained and kept (heard-drain.h);
 *                                                                for a scheduled change, when that is near
 *        a scheduled change that AWS moves, or calls off         the new time, or CalledOff, is written on its claim
 *        state change of a Ready node to stopping,               as a stop, or an end, that is now, unless what is done
 *        shutting-down                                           already covers it
 *        any other, on its way down                              the node is looked at anew
 *        rebalance, and all where Delete=never                   an Event
 *      a node without NodeClaim                                  an Event for each of these; where a pool
 *                                                                wants it, its claim is waited for
 *        where no pool does, and [Queue] Unmanaged=drain         written on the Node, as above on a claim
 *      neither                                                   it may be a node that is just joining,
 *                                                                whose notice must not be lost
 *
 * Each message that names a node gives an Event on it.
 *
 * Of what is neither, a message that asks for nothing but an Event or a look is done with. The rest waits,
 * until the instance is known, or has ended, or has been unknown to us and to EC2 for two minutes. For so long, too, a
 * claim that is being made is waited for.
 *
 * Each notice is one entry of the list, whatever else was announced. An entry that is over stays for
 * ANNOUNCED_OUTLIVED_USEC, so that its message does nothing when it comes again; if AWS has moved the change
 * since, it stands again.
 *
 * A message ends nothing if the time of its notice (or, for a notice without a time, of the message) passed
 * ANNOUNCED_OUTLIVED_USEC ago: it was replayed from a dead-letter queue, or delayed. The coordinator records
 * an Event and deletes the message, also if nobody knows its instance. A hook has no time: if its message is
 * as old, the group is asked first, by a heartbeat, whether it still waits.
 * No hook waits for more than QUEUE_HOOK_MAX_USEC, and none of an instance that is nobody's for more than
 * QUEUE_HOOK_ALONE_USEC: it may be another cluster's. The clock is that of the API server.
 *
 * A hook of its group is answered besides. Of a termination: heartbeats while the node is drained, or the brake holds the
 * notice (queue-brake.h), CONTINUE once it is drained, or has gone; where claims are not deleted for it ([Interruption] Delete=never), never: it goes
 * on when its time is over; and so it does for a Node that a person has opened again. Of a launch: CONTINUE when the node is Ready; until then, and of what never
 * becomes one, the group decides by the hook's time.
 */

#include "announced.h"
#include "coordinator-config.h"
#include "event-message.h"
#include "interruption.h"

#define QUEUE_UNKNOWN_USEC (2 * USEC_PER_MINUTE)
/* https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks.html: 48 hours or 100 heartbeats at
 * most. */
#define QUEUE_HOOK_MAX_USEC (48 * USEC_PER_HOUR)
/* Maximum time that a group waits for a hook without heartbeats: the largest HeartbeatTimeout, 7,200 seconds. */
#define QUEUE_HOOK_ALONE_USEC (2 * USEC_PER_HOUR)

typedef enum QueueAct {
        QUEUE_NOTHING,  /* done with it */
        QUEUE_TELL,     /* an Event on its Node, and done */
        QUEUE_KNOWN,    /* ... that says that its claim is being deleted already, for a notice that is no later */
        QUEUE_LOOK,     /* its Node is looked at anew, and done */
        QUEUE_WRITE,    /* it is written on its claim, or on a Node that has none; done when the API server has it */
        QUEUE_BEAT,     /* the group is asked to go on waiting, and it is decided anew soon */
        QUEUE_CONTINUE, /* the group goes on; done when it knows */
        QUEUE_CONFIRM,  /* the group is asked whether it still waits; done if the group does not wait */
        QUEUE_ASK,      /* EC2 is asked whether it knows it */
        QUEUE_WAIT,     /* not now: the message is hidden for a while */
        QUEUE_SOON,     /* not now: it is decided anew in a moment */
        QUEUE_FOREIGN,  /* nobody's: done with it */
        QUEUE_LEAVE,    /* not ours to delete: it comes again for others */
        _QUEUE_ACT_MAX,
        _QUEUE_ACT_INVALID = -EINVAL,
} QueueAct;

const char *queue_act_to_string(QueueAct a); /* "write", for tests */

typedef enum QueueSight {
        QUEUE_NOT_ASKED,
        QUEUE_SEEN,
        QUEUE_ENDED, /* terminated, or about to be: nothing is left to do, also for a node of the cluster */
        QUEUE_NOT_SEEN,
        QUEUE_UNCLEAR,
} QueueSight;

typedef struct QueueFacts {
        bool is_managed, has_node, is_ready;
        bool is_drainable;   /* no claim, no pool that wants it, and nobody who keeps it from vesper */
        bool is_drained;     /* its claim says so, or its Node (ANNOTATION_HEARD) */
        bool is_held;        /* this leader holds its hook, since it was written */
        bool hook_is_over;   /* its group does not wait, and the brake holds its notice */
        bool is_joining;     /* a pool wants it, and its claim is not there yet */
        bool is_going;       /* its claim is being deleted */
        usec_t ready_since_usec; /* kube_node_ready_since() */
        const AnnouncedList *announced; /* on its claim; of a Node without one, on that. NULL: nothing. Borrowed */
        usec_t unknown_usec; /* for so long nobody has known it, as far as this leader has seen */
        QueueSight sight;    /* what EC2 said of it just now */
} QueueFacts;

typedef struct QueueRules {
        bool is_shared;             /* [Queue] Shared= */
        bool drains_unmanaged;      /* [Queue] Unmanaged=drain */
        InterruptionDelete deletes; /* [Interruption] Delete= */
        usec_t before_usec;         /* [Interruption] BeforeSec= */
        usec_t wall_usec;           /* now */
} QueueRules;

/* notice: of event_message_notice(), or NULL. */
QueueAct queue_decide(const EventMessage *m, const Notice *notice, const QueueFacts *facts,
                      const QueueRules *rules);

/* Returns the time for which a message is hidden that waits (QUEUE_WAIT). The message of a hook older than ten
 * minutes is hidden for longer: it then waits for QUEUE_HOOK_ALONE_USEC with fewer than 200 receives. */
unsigned queue_wait_sec(const EventMessage *m, const QueueRules *rules);

/* Returns true if the message came too late to end anything. notice: as above. */
bool queue_is_outlived(const EventMessage *m, const Notice *notice, const QueueRules *rules);

/* Why nothing is done about what a message announces (QUEUE_TELL), behind "because ". Static; NULL: it announces nothing. */
const char *queue_why_reported(const EventMessage *m, const Notice *notice, const QueueFacts *facts, const QueueRules *rules);

/* Accounts and regions whose messages the coordinator acts on. All borrowed. */
typedef struct QueueOrigin {
        const char *account, *region;       /* of the queue; NULL: not known, and not compared */
        char *const *accounts, *const *regions; /* [Queue] Accounts=, Regions= */
} QueueOrigin;

/* Returns true if the message is about an account or region that the coordinator does not act on. A message
 * without account or region counts as one of the queue's own. */
bool queue_is_from_elsewhere(const EventMessage *m, const QueueOrigin *o);

/* Returns true if an unreadable message has come so often that the coordinator hides or deletes it. Before
 * that, and always in a shared queue, it comes again by itself. */
#define QUEUE_POISON_RECEIVES 5u
bool queue_is_poison(unsigned receives, const QueueRules *rules);
