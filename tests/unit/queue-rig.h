/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Coordinators that hear an interruption queue, "q", and an Auto Scaling group that tells it of its instances where a test wants that. */

#include "coordinator-rig.h"
#include "fake-autoscaling.h"
#include "fake-aws-event.h"
#include "fake-sqs.h"

typedef struct QueueRig {
        CoordinatorRig *rig;
        FakeSqs *sqs;
        FakeAutoscaling *groups; /* NULL: none */
        usec_t hook_usec;        /* how long its hook waits for a heartbeat; 0: 30 s */
} QueueRig;

/* Before rig_begin(). */
void queue_rig_init(QueueRig *q);
void queue_rig_done(QueueRig *q);

/* After rig_begin(), with use_ec2 of the rig: the first coordinator's queue may ask EC2 about instances. */
void queue_rig_route_ec2(QueueRig *q);

/* The event happens now, whatever time it says. */
void queue_rig_send(QueueRig *q, FakeAwsEvent event);

/* After rig_begin(), with use_ec2 of the rig: the instance is a member of group g, whose hook, drain, waits
 * 30 s (hook_usec) and abandons what nobody answers. */
void queue_rig_add_group(QueueRig *q, const char *instance);
void queue_rig_group_lets_go(QueueRig *q, const char *instance);
