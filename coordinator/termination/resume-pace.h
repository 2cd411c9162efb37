/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How removals begin after a pause: what has piled up must not begin at once. One in the first minute, and twice as many a
 * minute after each minute that went well, evenly spread; when that is more than one a second, the pace has ended.
 * Pure: all times are loop_now().
 */

#include <stdbool.h>

#include "time-util.h"

typedef struct ResumePace {
        bool active;
        bool trouble;       /* in the present minute */
        unsigned doublings;
        usec_t minute_usec; /* when the present minute began */
        usec_t next_usec;   /* no removal begins before */
} ResumePace;

void resume_pace_begin(ResumePace *p, usec_t now_usec);
/* The minute under way does not count as one that went well. */
void resume_pace_note_trouble(ResumePace *p);
/* When the next removal may begin: now or earlier where none was begun lately; 0: there is no pace. */
usec_t resume_pace_next(ResumePace *p, usec_t now_usec);
void resume_pace_took(ResumePace *p, usec_t now_usec); /* one begins */
