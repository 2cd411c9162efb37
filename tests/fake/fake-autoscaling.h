/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * EC2 Auto Scaling, for both faces of the fake: an http_handler_t. Groups own instances of a FakeEc2 and
 * keep as many as they want: what ends behind a group's back is noticed at its next health check and
 * replaced. Lifecycle hooks hold instances until somebody completes them or their time is up. Strict where
 * the real one is (signature, scope, 5 minutes of skew, unknown parameters); true to its traps: nearly every
 * error is a ValidationError, a decrement repeated while an instance terminates decrements again,
 * SetDesiredCapacity chooses the victim itself, and a decrement may set off the rebalancing of zones.
 *
 * https://docs.aws.amazon.com/autoscaling/ec2/APIReference/
 */

#include "fake-aws-front.h"
#include "fake-ec2.h"

typedef struct FakeAutoscaling FakeAutoscaling;

/* What a group does, as EventBridge would hear of it. Borrowed for the call. */
typedef struct FakeAsgEvent {
        enum {
                FAKE_ASG_LIFECYCLE_ACTION, /* a hook holds the instance */
                FAKE_ASG_LAUNCHED,         /* the instance is InService */
                FAKE_ASG_TERMINATED,       /* it was handed to EC2 to be ended */
        } kind;
        const char *group, *instance;
        const char *hook, *token; /* of a lifecycle action */
        bool launching;
} FakeAsgEvent;

typedef struct FakeAutoscalingOptions {
        FakeAwsFrontOptions aws;
        FakeEc2 *ec2;             /* borrowed */
        usec_t health_check_usec; /* from an end behind the group's back to its being noticed; 0: a minute */
        usec_t replace_usec;      /* from then to a launch; 0: 10 s */
        usec_t launch_usec;       /* from Pending to InService; 0: 30 s */
        void (*on_event)(const FakeAsgEvent *event, void *userdata); /* may be NULL */
        void *userdata;
} FakeAutoscalingOptions;

FakeAutoscaling *fake_autoscaling_new(const FakeAutoscalingOptions *options);
FakeAutoscaling *fake_autoscaling_free(FakeAutoscaling *f); /* before its EC2 */
DEFINE_FREEP(FakeAutoscaling, fake_autoscaling_free);

void fake_autoscaling_handle(HttpExchange *x, void *fake_autoscaling);

typedef struct FakeAsgGroup {
        const char *name;
        const char *zones; /* "us-east-1a us-east-1b" */
        unsigned min, desired, max;
        usec_t cooldown_usec; /* 0: 300 s */
        bool rebalances;      /* zones that differ by two or more are evened out */
} FakeAsgGroup;

void fake_autoscaling_add_group(FakeAutoscaling *f, const FakeAsgGroup *group);
/* An instance that EC2 has joins, InService; the group then wants one more. */
void fake_autoscaling_attach(FakeAutoscaling *f, const char *group, const char *instance);

typedef struct FakeAsgHook {
        const char *name;
        bool launching;        /* else terminating */
        usec_t heartbeat_usec; /* 0: an hour */
        bool abandon;          /* is the default result */
} FakeAsgHook;

void fake_autoscaling_add_hook(FakeAutoscaling *f, const char *group, const FakeAsgHook *hook);

void fake_autoscaling_protect(FakeAutoscaling *f, const char *instance, bool protect);
/* Any: "Standby", "Warmed:Running", one nobody has heard of. */
void fake_autoscaling_set_lifecycle(FakeAutoscaling *f, const char *instance, const char *state);
/* NULL: no group knows it. */
const char *fake_autoscaling_lifecycle(FakeAutoscaling *f, const char *instance);
unsigned fake_autoscaling_desired(FakeAutoscaling *f, const char *group);
/* Members that are not terminating. */
size_t fake_autoscaling_n_active(FakeAutoscaling *f, const char *group);
bool fake_autoscaling_has_room(const FakeAutoscaling *f, const char *group); /* for one more */
bool fake_autoscaling_has_group(const FakeAutoscaling *f, const char *group);

/* Faults by operation; and keys, clock, refusals. */
FakeTroubles *fake_autoscaling_troubles(FakeAutoscaling *f);
FakeAwsFront *fake_autoscaling_front(FakeAutoscaling *f);
/* 400 Throttling, as this service has it. */
void fake_autoscaling_throttle(FakeAutoscaling *f, unsigned n);
