/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One request to the fake of Auto Scaling, between fake-autoscaling.c (what it is, and how it is answered) and
 * fake-asg-members.c (what it does with members of a group). */

#include "fake-asg.h"
#include "fake-query.h"

typedef struct AsgRequest {
        FakeAutoscaling *f;
        HttpExchange *x;
        FakeQuery params;
} AsgRequest;

const char *asg_param(const AsgRequest *r, const char *name);
void asg_reply_invalid(AsgRequest *r, const char *fmt, ...) _printf_(2, 3);
/* result NULL: the action has none, not even an empty one. */
void asg_reply(AsgRequest *r, const char *result);
/* False, NULL: the error was sent. */
bool asg_take_bool(AsgRequest *r, const char *name, bool required, bool *ret);
const char *asg_take_string(AsgRequest *r, const char *name);
AsgGroup *asg_take_group(AsgRequest *r);
void asg_reply_mismatch(AsgRequest *r, const char *message);

/* Actions. */
void asg_detach_instances(AsgRequest *r);
void asg_enter_standby(AsgRequest *r);
void asg_exit_standby(AsgRequest *r);
void asg_launch_instances(AsgRequest *r);
void asg_set_instance_protection(AsgRequest *r);
void asg_suspend_processes(AsgRequest *r);
void asg_resume_processes(AsgRequest *r);
