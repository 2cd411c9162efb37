/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * announced.c: all that the interruption queue announced of one machine, and that may still matter: the JSON of the annotation
 * vesper.sh/announced (marks.h), {"notices":[...]}. This file has the only parser and the only writer of that JSON.
 *
 *      on a NodeClaim               the coordinator writes it, and nobody else may
 *      on a Node without NodeClaim  the same, but a kubelet can write anything there: the JSON is bounded, and nothing in it is trusted
 *
 * Each notice has an id and stands there once. What is over stays until the machine has outlived it, as SQS may deliver its message again.
 * How far a drain is stands elsewhere: in vesper.sh/heard of the Node (interruption.h).
 */

#include "notice.h"

typedef enum AnnouncedState {
        ANNOUNCED_STANDS,
        /* Not over. The brake of the queue (queue-brake.h) holds the notice: its Node is cordoned and its pods are evicted, and the notice
         * gives no deadline and ends no machine. AWS, the node's agent or a person (ANNOTATION_LET_GO) confirms the notice: then it STANDS. */
        ANNOUNCED_HELD,
        ANNOUNCED_DONE,       /* the machine has booted anew for it */
        ANNOUNCED_CALLED_OFF, /* AWS has called it off, or says that it is over */
        ANNOUNCED_OVERRULED,  /* a person opened the Node in spite of it: vesper does nothing more for it */
        _ANNOUNCED_STATE_MAX,
} AnnouncedState;

const char *announced_state_to_string(AnnouncedState s); /* "CalledOff"; "" for STANDS */

typedef struct Announced {
        Notice *notice; /* never NULL */
        AnnouncedState state;
        char *boot_id; /* of the Node, when the notice came; of a scheduled change, the last one seen before its time; "": not known */
} Announced;

#define ANNOUNCED_MAX 16u
/* A machine that is Ready so long after the window in which it was to be gone has outlived the notice. */
#define ANNOUNCED_OUTLIVED_USEC (10 * USEC_PER_MINUTE)

/* In the order in which they come: first what has no time, which is now, then by announced_usec. {} is an empty list. */
typedef struct AnnouncedList {
        Announced *items;
        size_t n_items;
} AnnouncedList;

void announced_list_done(AnnouncedList *l);
/* 0; -EBADMSG: unreadable, or more than ANNOUNCED_MAX; -ENOMEM. On failure *ret is empty. */
int announced_list_parse(const char *text, AnnouncedList *ret);
/* NULL on ENOMEM; free it. */
char *announced_list_format(const AnnouncedList *l);
/* -ENOMEM: *ret is empty. */
int announced_list_copy(const AnnouncedList *l, AnnouncedList *ret);

/* NULL: none of that id. Borrowed. */
const Announced *announced_list_find(const AnnouncedList *l, const char *id);
/* Returns true unless the notice is over: it stands, or is held. */
bool announced_is_open(const Announced *a);
/* Returns true if a person has let this held notice go. let_go_usec: ANNOTATION_LET_GO, as decoded; 0: nothing. */
bool announced_is_let_go(const Announced *a, usec_t let_go_usec);
/* Returns the first entry in this state; NULL: none. Borrowed. */
const Announced *announced_list_first(const AnnouncedList *l, AnnouncedState state);
/* The first entry that is not over; NULL: none. Borrowed. */
const Announced *announced_list_open(const AnnouncedList *l);
/* Inserts a notice in its order, in place of the entry with the same id. boot_id NULL: not known. From a full list the first entry that is over
 * goes, else the one that is held and was received first, else the last one, which may be this one. -ENOMEM: the list is as it was. */
int announced_list_put(AnnouncedList *l, const Notice *notice, AnnouncedState state, const char *boot_id);
/* Returns true if announced_list_put() would keep this notice, whichever of the open states it has. The list may be full. */
bool announced_list_has_room(const AnnouncedList *l, const Notice *notice);
/* Copies the open entries of from whose ids are missing here, up to half of ANNOUNCED_MAX: a kubelet may have written from. -ENOMEM: some of them may be
 * there. */
int announced_list_take(AnnouncedList *l, const AnnouncedList *from);
void announced_list_remove(AnnouncedList *l, size_t i);
