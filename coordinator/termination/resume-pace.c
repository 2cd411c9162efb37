/* SPDX-License-Identifier: Apache-2.0 */
#include "resume-pace.h"

#include "macro.h"

/* Beyond so many doublings one begins each second. */
#define DOUBLINGS_MAX 6u

static usec_t interval(const ResumePace *p) {
        return USEC_PER_MINUTE >> p->doublings;
}

void resume_pace_begin(ResumePace *p, usec_t now_usec) {
        *p = (ResumePace){ .active = true, .minute_usec = now_usec, .next_usec = now_usec };
}

void resume_pace_note_trouble(ResumePace *p) {
        p->trouble = true;
}

/* What was to wait for a whole minute need not, once the pace is quicker. */
static void quicken(ResumePace *p) {
        usec_t before = interval(p);

        p->doublings++;
        p->next_usec = MIN(p->next_usec, usec_add(usec_sub(p->next_usec, before), interval(p)));
        p->active = p->doublings < DOUBLINGS_MAX;
}

usec_t resume_pace_next(ResumePace *p, usec_t now_usec) {
        while (p->active && now_usec >= usec_add(p->minute_usec, USEC_PER_MINUTE)) {
                if (!p->trouble)
                        quicken(p);
                p->trouble = false;
                p->minute_usec = usec_add(p->minute_usec, USEC_PER_MINUTE);
        }
        return p->active ? p->next_usec : 0;
}

void resume_pace_took(ResumePace *p, usec_t now_usec) {
        p->next_usec = usec_add(now_usec, interval(p));
}
