/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Machines and what each sees at its link-local address, whatever cloud it is of. One of the world file:
 *
 *      {"id": "i-1", "zone": "us-east-1a",                                   platform "ec2" if none is named
 *       "keepsConnections": true}                                         EC2 does not, a stand-in may
 *      {"id": "vm-a", "platform": "gce", "zone": "us-central1-a", "projectId": "p", "projectNumber": "1",
 *       "machineId": "45", "machineType": "n2-standard-4", "createdBy": "projects/...", "clusterName": "c",
 *       "spot": true, "terminates": true, "gpu": true, "gracefulShutdown": true}
 *      {"id": "vm-a", "platform": "azure", "zone": "1", "location": "westeurope", "subscription": "...",
 *       "resourceGroup": "RG", "scaleSet": "ss", "instance": "7", "spot": true,
 *       "firstCallSeconds": 10, "watchSeconds": 30}           machines of one scaleSet share their events
 *
 * The kinds of notices:
 *
 *      ec2    spot (action terminate, stop, hibernate; seconds until then)
 *      gce    spot; maintenance (action migrate, terminate; seconds until then, and the warning only for him
 * who asked); upcoming (seconds until the window); stop (seconds it may take) azure  spot, terminate,
 * reboot, redeploy, freeze (seconds until NotBefore; 0: it has begun) all    none: everything is taken back
 *
 * Parts of a fault: ec2 token, data; gce token, data; azure instance, events, identity.
 */

#include "fake-json.h"
#include "http-message.h"
#include "loop.h"

typedef struct FakeMachines FakeMachines;
typedef struct FakeMachine FakeMachine;

FakeMachines *fake_machines_new(Loop *loop);
/* The servers that their handlers belong to must be gone. */
FakeMachines *fake_machines_free(FakeMachines *m);
DEFINE_FREEP(FakeMachines, fake_machines_free);

/* NULL: *ret_why (a literal) says why. */
FakeMachine *fake_machines_add(FakeMachines *m, const cJSON *machine, const char **ret_why);
/* False: there is no such machine, or no such kind (or action) on its platform. */
bool fake_machines_notice(FakeMachines *m, const char *id, const char *kind, const char *action,
                          int64_t seconds);
/* As POST /metadata/fault of fake-control.h. NULL, or what is wrong (a literal). */
const char *fake_machines_fault(FakeMachines *m, const char *id, const cJSON *fault);

const char *fake_machine_platform(const FakeMachine *m);
/* With the machine as userdata. */
void fake_machine_handle(HttpExchange *x, void *machine);
