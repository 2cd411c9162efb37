/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a message of the interruption queue means for one instance that it names. Pure.
 *
 *      a managed node (an instance with a NodeClaim):
 *        what [Interruption] Delete= deletes a claim for         written on its claim. Deleted at once, or, of a
 *                                                                scheduled change, when that is near (adoption.c)
 *        what the node comes back from: stop, hibernate,         written on its claim, too: the node is drained when
 *        reboot, maintenance                                     it is near, and kept (heard-drain.h). Of two the one that
 *                                                                comes first stands on the Node, the other on the claim
 *        a scheduled change that is called off                   marked so there, and the node's drain ends
 *        state change of a Ready node to stopping,               the same as a stop, or an end, that is now
 *        shutting-down
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
 * What stands on the claim has the earliest time that was told of its machine, whatever the order; of two notices that share a place the
 * one that ends the machine for good stays. What has no time (a hook of its group, a hibernation) is now: it is written also where a time stands already,
 * and both stay (notice_is_now()). A message that was sent later may move a scheduled change, until the drain for it has begun. After two
 * notices were merged, a message that calls off one of them has no effect.
 *
 * On a Node the same holds until that time has passed, and while nobody has overruled it (heard-rule.h). Of what passed ten
 * minutes ago there is an Event alone: the machine has outlived it.
 *
 * A hook of its group is answered besides. Of a termination: heartbeats while the node is drained, CONTINUE
 * once it is, or has gone; where claims are not deleted for it ([Interruption] Delete=never), never: it goes
 * on when its time is over; and so it does for a Node that a person has opened again. Of a launch: CONTINUE when the node is Ready; until then, and of what never
 * becomes one, the group decides by the hook's time.
 */

#include "coordinator-config.h"
#include "event-message.h"

#define QUEUE_UNKNOWN_USEC (2 * USEC_PER_MINUTE)
/* The coordinator does not act on a notice that it receives so long after the announced time. */
#define QUEUE_OUTLIVED_USEC (10 * USEC_PER_MINUTE)

typedef enum QueueAct {
        QUEUE_NOTHING,  /* done with it */
        QUEUE_TELL,     /* an Event on its Node, and done */
        QUEUE_KNOWN,    /* ... that says that what stands already covers it */
        QUEUE_LOOK,     /* its Node is looked at anew, and done */
        QUEUE_WRITE,    /* the notice is written on its claim; done when the API server has it */
        QUEUE_WRITE_NODE, /* ... on its Node */
        QUEUE_MAKE_ROOM,  /* what stands on the claim is written on the Node, so that this notice can take its place; then it is decided anew */
        QUEUE_SWAP,       /* ... and what is planned on the Node is written on the claim, likewise */
        QUEUE_TAKE_BACK,  /* what is called off is marked so on its claim */
        QUEUE_CANCEL_NODE, /* ... and on its Node its drain ends */
        QUEUE_BEAT,     /* the group is asked to go on waiting, and it is decided anew soon */
        QUEUE_CONTINUE, /* the group goes on; done when it knows */
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
        QUEUE_ENDED, /* terminated, or on its way there: nothing is left to be done, also where it was ours
                      */
        QUEUE_NOT_SEEN,
        QUEUE_UNCLEAR,
} QueueSight;

/* The notice that a claim or a Node carries already, compared with the message. */
typedef struct QueueTold {
        bool is_told; /* something that counts beside the message: neither another boot's, nor another notice that has passed or is over */
        bool is_same; /* the message's own notice stands there, whether or not it counts */
        bool is_over; /* it was called off, or has come to pass; on a Node also: a person has overruled it */
        bool is_now;  /* notice_is_now() */
        bool deletes; /* a claim is deleted for it */
        bool is_for_good; /* notice_ends_for_good() */
        bool is_begun; /* the Node is drained for it, or was */
        bool is_on_node; /* of what a claim says: its Node says it, too */
        usec_t usec;  /* notice_announced(): wall clock; USEC_INFINITY: not said */
        usec_t said_usec; /* when its giver said it; 0: not known */
        usec_t own_usec; /* the same, before another notice brought it nearer */
} QueueTold;

typedef struct QueueFacts {
        bool is_managed, has_node, is_ready;
        bool is_drainable;   /* no claim, no pool that wants it, and nobody who keeps it from vesper */
        bool is_drained;     /* its claim, or what stands on the Node, says so */
        bool is_overruled;   /* of this very notice, by a person, who has opened the Node */
        bool is_held;        /* this leader holds its hook, since its claim was deleted for it */
        bool is_joining;     /* a pool wants it, and its claim is not there yet */
        bool is_going;       /* its claim is being deleted */
        usec_t ready_since_usec; /* wall clock: the Node's condition Ready is what it is; 0: not said */
        QueueTold told;      /* on its claim; of a Node without one: on_node */
        QueueTold on_node;
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

/* A message that nobody can read: hidden for as long as SQS lets (true) once it has come so often; before
 * that it comes again by itself. */
#define QUEUE_POISON_RECEIVES 5u
bool queue_is_poison(unsigned receives, const QueueRules *rules);
