/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks that a finished round leaves nothing behind that changes the next one. A test plays one round three
 * times in the same world, each time with another node of the same role: twice under one coordinator, and
 * once more after that coordinator was replaced. The rig notes for each round the coordinator's writes with
 * their bodies (Events and conditions included), its log lines, and the growth of its counters. Names, uids,
 * resourceVersions and times are replaced. The three lists must be equal, and each line must come at the
 * same time after the begin of its round.
 */

#include "coordinator-rig.h"

typedef struct RigRounds {
        /* Plays one round with this node to its end. */
        void (*play)(CoordinatorRig *r, const char *node);
        /* Makes a coordinator that was just started do the things that it does only once; NULL: nothing. */
        void (*begin)(CoordinatorRig *r);
        /* Lets time pass; NULL: rig_run(). */
        void (*run)(CoordinatorRig *r, usec_t usec);
        const char *nodes[3]; /* names of equal length that are part of no other text */
        /* Another answer of the API server to some requests; NULL: none. */
        fake_api_fault_t fault;
        void *fault_userdata;
} RigRounds;

/* Plays the rounds. Coordinator 0 has to be started, with at most one pool, which has these nodes. Also
 * asserts that the coordinator writes nothing in the ten minutes after a round. */
void rig_rounds(CoordinatorRig *r, const RigRounds *rounds);

/* Notes a log line. Called by coordinator-rig.c. */
void rig_note_log(CoordinatorRig *r, const char *text);
