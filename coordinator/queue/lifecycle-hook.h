/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a lifecycle hook of an Auto Scaling group is answered, which holds an instance while it is drained, or
 * until it is ready: RecordLifecycleActionHeartbeat and CompleteLifecycleAction with CONTINUE. Never
 * ABANDON: of a launch that would end the instance, and of a termination it only skips the group's other
 * hooks.
 *
 * https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CompleteLifecycleAction.html
 */

#include "event-message.h"
#include "sqs-client.h"

typedef struct HookClient HookClient;
typedef struct HookCall HookCall;

typedef enum HookOutcome {
        HOOK_OK,
        HOOK_OVER,   /* the group waits no more: completed, timed out, or the group or hook is gone */
        HOOK_DENIED, /* credentials or permissions: a person must see to them */
        HOOK_RETRY,  /* temporary failure or unreadable answer. OVER, DENIED and RETRY have a message */
        _HOOK_OUTCOME_MAX,
} HookOutcome;

typedef void (*hook_done_t)(HookOutcome outcome, const char *message, void *userdata);

/* With the credentials and in the region of that queue. Borrowed: it must outlive the client. */
int hook_client_new(Env *env, SqsClient *sqs, HookClient **ret);
HookClient *hook_client_free(HookClient *c); /* all calls must be freed before */
DEFINE_FREEP(HookClient, hook_client_free);

/* The action of that message, for its instance. Slots: dropping one cancels, no callback comes after; `done`
 * comes once, from the loop, and may free its slot. */
int hook_heartbeat(HookClient *c, const EventMessage *m, const char *instance, const HttpGuard *guard,
                   hook_done_t done, void *userdata, HookCall **ret);
int hook_continue(HookClient *c, const EventMessage *m, const char *instance, const HttpGuard *guard,
                  hook_done_t done, void *userdata, HookCall **ret);
HookCall *hook_call_free(HookCall *c);
DEFINE_FREEP(HookCall, hook_call_free);
