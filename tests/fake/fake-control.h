/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The test's hand in a fake cluster that runs as a process: JSON over plain HTTP, on loopback. POST takes an
 * object and answers {} (or what stands behind the arrow); anything it does not understand is a 400 that
 * says why.
 *
 *      GET  /log                                   -> every request at the API server (fake_api_log_json())
 *      GET  /counters                              -> how many of which, with which status
 *      GET  /instances                             -> {"i-1": "running", ...}; gone ones are left out
 *      GET  /objects?resource=pods                 -> objects as the API would list them, whoever asks
 *      POST /log/reset
 *      POST /watches/cut
 *      POST /watches/stall    {"seconds": 30}
 *      POST /api/away         {"seconds": 60}      every connection breaks
 *      POST /compact                               watches from before get 410
 *      POST /fault            {"verb": "create", "resource": "pods", "subresource": "eviction",
 *                              "user": "system:node:a", "status": 429, "retryAfter": 1, "count": 10}
 *                              also "takesEffect", "plain", "drop", "delayMsec", "message"; what is left out
 *                              fits every request; added to the faults there are
 *      POST /fault/clear
 *      POST /kubelet          {"node": "a", "running": false}
 *      POST /load             {"items": [...]}     -> {"loaded": n}
 *      POST /many             {"count": 9, "per": 3, "among": 2, "object": {...}}
 *                                                  -> {"loaded": n}; fake_load_many()
 *      POST /churn            {"perSecond": 200, "seconds": 30}    containers are restarted
 *      GET  /churn                                 -> {"done": n}
 *      POST /ec2/throttle     {"count": 5, "retryAfterMsec": 0}
 *      POST /ec2/fail         {"count": 5, "status": 500, "code": "InternalError", "message": "..."}
 *      POST /ec2/state        {"instance": "i-1", "state": "stopped"}
 *      POST /notice           {"instance": "i-1", "kind": "spot", "action": "terminate", "seconds": 120}
 *                              kinds: fake-machines.h; "none" takes all back
 *      POST /metadata/fault   {"instance": "i-1", "parts": ["token", "data"], "status": 503, "count": 3}
 *                              "hang": true, or "body": "..." (a 200) instead of a status; without parts: all,
 *                              without a count: for ever; count 0 ends it
 *      POST /cloud/...                             fake-clouds.h
 *      POST /exit
 */

#include "fake-cluster.h"
#include "fake-ec2.h"

typedef struct FakeControl FakeControl;

/* A notice appears at (or, kind "none", disappears from) an instance's metadata. False: there is no such
 * instance or kind. */
typedef bool (*fake_notice_t)(const char *instance, const char *kind, const char *action, int64_t seconds,
                              void *userdata);

/* A fault as POST /metadata/fault has it. NULL: done, else what is wrong with it. */
typedef const char *(*fake_metadata_fault_t)(const char *instance, const cJSON *fault, void *userdata);

/* A command below /cloud/. NULL: done, *ret_answer (or NULL) is the control's; else what is wrong with it. */
typedef const char *(*fake_cloud_post_t)(const char *path, const cJSON *o, cJSON **ret_answer, void *userdata);

/* ec2 and notice may be NULL: that cloud is not there. The cluster's fault hook is the control's from now
 * on. */
FakeControl *fake_control_new(Loop *loop, FakeCluster *cluster, FakeEc2 *ec2, fake_notice_t notice,
                              void *userdata);
FakeControl *fake_control_free(FakeControl *c);
DEFINE_FREEP(FakeControl, fake_control_free);
void fake_control_handle(HttpExchange *x, void *control);
/* Before it is set there is nothing below /cloud/. */
void fake_control_set_clouds(FakeControl *c, fake_cloud_post_t post, void *userdata);
/* Before it is set there is no /metadata/fault. */
void fake_control_set_metadata_fault(FakeControl *c, fake_metadata_fault_t fault, void *userdata);
/* Instances that /instances tells of. */
void fake_control_add_instance(FakeControl *c, const char *id);
