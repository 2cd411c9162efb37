/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The second round: a round that is over leaves nothing behind that changes the next one. A test plays one round three
 * times in the same world, each time with another node of the same role: twice under one coordinator, and once more after
 * that coordinator was replaced. Of each round the rig notes each write of the coordinator with its body, Events and
 * conditions included, each log line, and by how much counters have grown. Names, uids, resourceVersions and times are
 * replaced. The three lists must be equal, and each line must come as long after the begin of its round.
 */

#include "coordinator-rig.h"

typedef struct RigRounds {
        /* Plays the round of that node to its end. */
        void (*play)(CoordinatorRig *r, const char *node);
        /* Has a coordinator that was just started do once what only its first round would show; NULL: nothing. */
        void (*begin)(CoordinatorRig *r);
        /* Lets time pass; NULL: rig_run(). */
        void (*run)(CoordinatorRig *r, usec_t usec);
        const char *nodes[3]; /* names of one length, which stand in nothing else */
        /* What else the API server does to a request; NULL: nothing. */
        fake_api_fault_t fault;
        void *fault_userdata;
} RigRounds;

/* Plays the rounds. Coordinator 0 is started, and has one pool at most with these nodes. Asserts also that the coordinator
 * writes nothing in the ten minutes after a round. */
void rig_rounds(CoordinatorRig *r, const RigRounds *rounds);

/* Notes a log line; of coordinator-rig.c. */
void rig_note_log(CoordinatorRig *r, const char *text);
