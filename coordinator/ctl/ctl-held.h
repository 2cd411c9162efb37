/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Notices of one machine that the brake of the interruption queue holds (ANNOUNCED_HELD, announced.h): their text, and the patch by which
 * a person lets them go. Pure.
 */

#include "announced.h"
#include "kube-kinds.h"

/* Why the brake holds a notice, as the end of a sentence. */
#define HELD_BECAUSE "the queue alone announced interruptions of more than 10 machines (or a tenth of all, if that is more) within ten minutes"

typedef struct HeldNotices {
        const KubeObject *object;       /* the NodeClaim, else the Node: has ANNOTATION_ANNOUNCED and ANNOTATION_LET_GO; borrowed */
        const AnnouncedList *announced; /* borrowed; NULL exactly if object is */
        usec_t let_go_usec;             /* wall clock; 0: nobody has let anything go */
        const char *provider_id;        /* borrowed; NULL: not known */
} HeldNotices;

typedef enum HeldState {
        HELD_NOTHING,
        HELD_HELD,
        HELD_LET_GO, /* a person has let all go that is held, and the coordinator has not acted on that yet */
} HeldState;

/* node, claim: NULL if there is none. */
HeldNotices held_notices(const KubeNode *node, const KubeNodeClaim *claim);
HeldState held_state(const HeldNotices *h);
/* Returns the first notice in this state; NULL: none. Borrowed. */
const Announced *held_first(const HeldNotices *h, AnnouncedState state);
/* Returns when the last held notice was received: wall clock. At least one second while anything is held, else 0. */
usec_t held_received_usec(const HeldNotices *h);

/* "the end of its machine (spot, terminate) by 2027-01-15T08:02:00Z, received at 2027-01-15T08:00:00Z; a stop of ...": the first three held
 * notices. NULL on ENOMEM; free it. */
char *held_text(const HeldNotices *h);
/* One line: what is held of the object with this name ("Node worker-7"), and what letting go means. NULL on ENOMEM; free it. */
char *held_line(const HeldNotices *h, const char *name);
/* Returns a merge patch of h->object that lets go of all notices that are held now. A notice that is received later stays held. NULL on
 * ENOMEM; free it. */
char *held_let_go_patch(const HeldNotices *h);
