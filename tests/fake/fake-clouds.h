/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All clouds of one world beside EC2: what the program fake-cluster serves, loads and lets tests do. The world
 * file's
 *
 *      "instances":         EC2's may name a "group"; of platform "gce" also "group" (a managed instance
 *                           group); of platform "azure" "scaleSet" and "instance" (a uniform member), or
 *                           "flexibleSet"
 *      "autoscaling":       {"healthCheckMsec": 60000, "replaceMsec": 10000, "launchMsec": 30000}
 *      "autoscalingGroups": [{"name": "g", "zones": "us-east-1a us-east-1b", "min": 1, "max": 5,
 *                             "cooldownSec": 300, "rebalances": true,
 *                             "hooks": [{"name": "drain", "launching": false, "heartbeatSec": 300,
 *                                        "abandon": true}]}]
 *      "queues":            [{"name": "q", "visibilitySec": 30, "retentionSec": 300, "waitSec": 20,
 *                             "events": true}]
 *      "gce":               {"project": "p", "zones": "us-central1-a", "token": "t",
 *                            "groups": [{"name": "mig", "scope": "zones/us-central1-a"}]}
 *      "azure":             {"subscription": "...", "group": "rg", "location": "westeurope", "token": "t",
 *                            "scaleSets": ["ss"]}
 *
 * Queues with "events" hear what EventBridge would tell: lifecycle actions, and every change of state of an
 * instance somebody asked for, our own terminations among them.
 *
 * POST of fake-control.h:
 *
 *      /cloud/fault        {"cloud": "sqs", "kind": "fail", "operation": "ReceiveMessage", "count": 1,
 *                           "status": 500, "code": "InternalError", "message": "...", "body": "...",
 *                           "retryAfterMsec": 0}
 *                          clouds: ec2, autoscaling, sqs, gce, azure; kinds: fail, throttle (as that cloud does
 *                          it), body (as it is), hang, lose (done, but never answered). Without an operation:
 *                          any
 *      /cloud/fault/clear  {"cloud": "sqs"}
 *      /cloud/event        {"queue": "q", "kind": "spot", "instance": "i-1"}
 *                          kinds: fake-aws-event.h; also "action", "seconds" (until), "group", "hook", "token",
 *                          "status", "communication", "page", "pages", "sns": true
 *      /cloud/message      {"queue": "q", "body": "any text"}
 *      /cloud/duplicate    {"queue": "q", "count": 1}
 *      /cloud/shuffle      {"queue": "q"}
 *      /cloud/queue        {"queue": "q"}  -> {"messages": n}, received ones among them
 *      /cloud/state        {"cloud": "gce", "zone": "us-central1-a", "instance": "a", "state": "TERMINATED"}
 *                          {"cloud": "azure", "scaleSet": "ss", "instance": "0", "state": "stopped"}
 *      /cloud/lifecycle    {"instance": "i-1"}  -> {"state": "Terminating:Wait"}; null: no group knows it
 *      /cloud/counts       {"cloud": "sqs", "operation": "ReceiveMessage"}  -> {"requests": n}
 */

#include "fake-autoscaling.h"
#include "fake-azure.h"
#include "fake-gce.h"
#include "fake-sqs.h"

typedef struct FakeClouds FakeClouds;

typedef struct FakeCloudsOptions {
        Loop *loop;
        Random *random;
        FakeEc2 *ec2; /* with the world's instances; borrowed */
        FakeAwsFrontOptions aws;
} FakeCloudsOptions;

/* NULL: *ret_why (a literal) says what is wrong with the world (NULL or any JSON). */
FakeClouds *fake_clouds_new(const FakeCloudsOptions *options, const cJSON *world, const char **ret_why);
FakeClouds *fake_clouds_free(FakeClouds *c); /* after its servers, before EC2 */
DEFINE_FREEP(FakeClouds, fake_clouds_free);

typedef enum FakeCloudId {
        FAKE_CLOUD_AUTOSCALING,
        FAKE_CLOUD_SQS,
        FAKE_CLOUD_GCE,
        FAKE_CLOUD_AZURE,
        _FAKE_CLOUD_MAX,
} FakeCloudId;

const char *fake_cloud_name(FakeCloudId id);
http_handler_t fake_cloud_handler(FakeCloudId id);
void *fake_clouds_userdata(FakeClouds *c, FakeCloudId id);
FakeAzure *fake_clouds_azure(FakeClouds *c);

/* NULL: done, and *ret_answer (or NULL) is the caller's; else what is wrong (a literal). */
const char *fake_clouds_post(FakeClouds *c, const char *path, const cJSON *o, cJSON **ret_answer);
