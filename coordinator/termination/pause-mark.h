/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether an object, a NodePool or the namespace of the coordinator's Lease, pauses removals, and who did
 * that: the annotations vesper.sh/paused and vesper.sh/paused-by, in their only parser and writer. Pure. The
 * second is for people alone: a pause without it (by kubectl, or by a vesperctl that did not write it) holds
 * removals all the same.
 */

#include "kube-object.h"

typedef struct PauseMark {
        bool is_paused;
        char *by;           /* "user@host"; NULL: not recorded */
        char *command;      /* "release --all", "pause"; NULL: not recorded */
        usec_t since_usec; /* wall clock; 0: not recorded */
} PauseMark;

/* Reads both annotations of an object. An unreadable record counts as absent. by and command have no control
 * characters and at most 256 bytes; pause_mark_done() frees them. 0 or -ENOMEM. */
int pause_mark_read(const ObjectMeta *meta, PauseMark *ret);
void pause_mark_done(PauseMark *m);
/* Returns a merge patch that pauses, and records by whom. Free it; NULL on ENOMEM. */
char *pause_mark_set_patch(const char *by, const char *command, usec_t wall_now_usec);
/* Returns a merge patch that lifts a pause. Free it; NULL on ENOMEM. */
char *pause_mark_lift_patch(void);
/* Returns ", set by root@host with 'vesperctl pause' at 2027-01-15T08:00:00Z": the recorded parts, or "".
 * Free it; NULL on ENOMEM. */
char *pause_mark_text(const PauseMark *m);
