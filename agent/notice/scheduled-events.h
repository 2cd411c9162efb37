/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * scheduled-events.c: what EC2 and Azure have in common: a list of events, each with an id and a time, of which those that
 * stand for this machine become notices.
 */

#include "json.h"
#include "notice-source.h"

typedef struct ScheduledEvent {
        char *id;
        NoticeKind kind;
        const char *action;     /* static; NULL: a type that is not known, which is only advice */
        bool advisory;
        usec_t not_before_usec; /* wall clock of the giver; 0: it has begun */
        NoticeEarly early;
        char **resources; /* all machines that it names; NULL: this one alone */
} ScheduledEvent;

/* 1: *ret is an event of this machine; 0: it is not, or is over; -EBADMSG with *reterr_why (static), -ENOMEM. */
typedef int (*scheduled_event_read_t)(const Json *o, const void *userdata, ScheduledEvent *ret, const char **reterr_why);

/* Pure: those of the list, no two of one id, at most `max`; *ret_more: there were more. On failure *ret is NULL. */
int scheduled_events_read(const Json *list, size_t max, scheduled_event_read_t read, const void *userdata,
                          ScheduledEvent **ret, size_t *ret_n, bool *ret_more, const char **reterr_why);
void scheduled_events_free(ScheduledEvent *events, size_t n);

/* As notices of this source, each at its time, held against the Date of the answer (notice_source_judge()). One that has
 * begun says no time any more: that is now, or what it said before. known: what the last look gave. -ENOMEM: *ret is empty. */
int scheduled_events_announce(const NoticeSource *source, const Loop *loop, const ScheduledEvent *events, size_t n,
                              usec_t date_usec, usec_t answered_usec, const NoticeSet *known, NoticeSet *ret);
