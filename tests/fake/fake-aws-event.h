/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages that a queue behind EventBridge's rules (or a lifecycle hook of its own) gets, as AWS
 * documents them. Pure: the same event gives the same text.
 */

#include "fake-json.h"
#include "time-util.h"

typedef enum FakeAwsEventKind {
        FAKE_AWS_EVENT_SPOT,        /* "EC2 Spot Instance Interruption Warning" */
        FAKE_AWS_EVENT_REBALANCE,   /* "EC2 Instance Rebalance Recommendation" */
        FAKE_AWS_EVENT_STATE,       /* "EC2 Instance State-change Notification" */
        FAKE_AWS_EVENT_RESERVATION, /* "EC2 Capacity Reservation Instance Interruption Warning" */
        FAKE_AWS_EVENT_BLOCK,       /* "Capacity Block Reservation Expiration Warning": resources is a bare
                                       string, as in AWS's own sample */
        FAKE_AWS_EVENT_HEALTH,      /* "AWS Health Event", a scheduled change */
        FAKE_AWS_EVENT_TERMINATE_ACTION, /* "EC2 Instance-terminate Lifecycle Action" */
        FAKE_AWS_EVENT_LAUNCH_ACTION,    /* "EC2 Instance-launch Lifecycle Action" */
        FAKE_AWS_EVENT_HOOK,             /* the hook's own notification: no envelope */
        FAKE_AWS_EVENT_HOOK_TEST,        /* autoscaling:TEST_NOTIFICATION, when a hook is made */
        _FAKE_AWS_EVENT_MAX,
        _FAKE_AWS_EVENT_INVALID = -EINVAL,
} FakeAwsEventKind;

/* "spot", "rebalance", "state", "reservation", "block", "health", "terminate-action", "launch-action",
 * "hook", "hook-test" */
FakeAwsEventKind fake_aws_event_kind_from_string(const char *s);

typedef struct FakeAwsEvent {
        FakeAwsEventKind kind;
        const char *id;         /* a UUID; NULL: one that stands for none */
        const char *account;    /* NULL: 123456789012 */
        const char *region;     /* NULL: us-east-1 */
        usec_t wall_usec;       /* of the event */
        const char *instance;   /* "i-..." */
        char *const *others;    /* health: more of them that it is about, NULL behind the last; NULL: none */
        const char *action;     /* spot, reservation: "terminate" if NULL; state: "running", ...; health: the
                                   code, AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED if NULL */
        usec_t until_wall_usec; /* reservation, block: when it ends; health: when the change begins */
        const char *group, *hook, *token; /* of lifecycle actions */
        const char *reservation;          /* block; NULL: cr-0123456789abcdef0 */
        const char *status;               /* health: "upcoming" if NULL, "open", "closed" */
        const char *communication;        /* health: what pages and copies have in common */
        const char *envelope_region;      /* health: where a copy came through; NULL: region */
        usec_t window_usec;               /* health: how long after that it may begin; 0: two hours */
        unsigned page, pages;             /* health; 0: one of one */
} FakeAwsEvent;

/* The body of the message. */
char *fake_aws_event(const FakeAwsEvent *e);
/* The same as SNS passes it on: a string under Message. */
char *fake_aws_event_by_sns(const FakeAwsEvent *e);
