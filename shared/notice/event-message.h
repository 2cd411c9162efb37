/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A message of AWS about instances, as an interruption queue gets it: EventBridge's envelope, what an Auto
 * Scaling group's lifecycle hook sends itself (no envelope), or either of them as SNS passes it on (a string
 * under Message). Pure; fuzzed.
 *
 * https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
 */

#include "notice.h"

#define EVENT_MESSAGE_MAX_BYTES (1024u * 1024u)
#define EVENT_MESSAGE_INSTANCES_MAX 1000u

typedef enum EventMessageKind {
        EVENT_MESSAGE_SPOT,          /* EC2 takes the instance back; also that of a capacity reservation */
        EVENT_MESSAGE_REBALANCE,     /* it may soon */
        EVENT_MESSAGE_STATE_CHANGE,  /* the instance is in another state: action */
        EVENT_MESSAGE_HEALTH,        /* AWS Health: a scheduled change of EC2 */
        EVENT_MESSAGE_ASG_TERMINATE, /* its group is about to end it, and waits for its hook */
        EVENT_MESSAGE_ASG_LAUNCH,    /* its group has started it, and waits for its hook */
        EVENT_MESSAGE_CAPACITY_BLOCK, /* a Capacity Block ends: names its reservation, and none of the instances in it */
        EVENT_MESSAGE_TEST,          /* a hook was made */
        EVENT_MESSAGE_UNKNOWN,       /* it can be read, and is none of these */
        _EVENT_MESSAGE_KIND_MAX,
        _EVENT_MESSAGE_KIND_INVALID = -EINVAL,
} EventMessageKind;

extern const char *const event_message_kind_names[_EVENT_MESSAGE_KIND_MAX + 1]; /* NULL behind the last */

typedef struct EventMessage {
        EventMessageKind kind;
        char *id;               /* of the event, the same in each copy, and in each message of Health about it; "" if it has none */
        char *source;           /* "aws.ec2"; "": the message has no envelope */
        char *detail_type;      /* as it stands there; "" */
        char *account, *region; /* of the instances: for Health affectedAccount and the event's region,
                                   wherever this copy came through; "": not said */
        char **instances;       /* "i-..." */
        char *action;     /* "terminate", "stop", "hibernate", "reboot", "maintenance"; the new state; "" */
        usec_t sent_usec; /* wall clock of AWS; 0: not told */
        usec_t not_before_usec, not_after_usec; /* wall clock: when the machine may be gone; 0: not told */
        bool closed;                            /* Health: over, or called off */
        unsigned page, pages;                   /* Health; one of one */
        char *group, *hook, *token;             /* of hooks; "" */
        char *reservation;                      /* of a Capacity Block; "" */
} EventMessage;

/* Parses a message of the queue. 0; -EBADMSG: data is no such message, or a required field is missing: *ret
 * then has only source and account of the sender, each NULL if unreadable; -ENOMEM: *ret is empty. Free *ret
 * with event_message_done() in every case.
 *
 * The message keeps no part of data. Its memory is bounded: ten words of 256 bytes, and
 * EVENT_MESSAGE_INSTANCES_MAX instance ids of 64 bytes. */
int event_message_parse(const char *data, size_t size, EventMessage *ret);
void event_message_done(EventMessage *m); /* a zeroed one is fine */
/* Returns true if vesper reads a type of event of this source, such as "aws.ec2". */
bool event_message_knows_source(const char *source);

/* Returns the notice that the message announces for one of its instances, or calls off (closed): for SPOT, REBALANCE,
 * HEALTH, ASG_TERMINATE, and a STATE_CHANGE to "stopping" or "shutting-down", which says no time; -ENODATA: nothing. */
int event_message_notice(const EventMessage *m, const char *instance, Notice **ret);
