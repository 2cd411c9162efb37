/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A patch of an object's status with conditions, as a pure function of the object in view. The API server merges a Node's
 * conditions by type (strategic merge patch), so only what is to change is said, to the Node of that uid (else 422). Of our
 * own kinds a merge patch replaces the list: what others keep in it is said again, and only the resourceVersion that it was
 * read from takes it (else 409).
 */

#include "kube-client.h"
#include "kube-kinds.h"

KubePatchType status_patch_type(const KubeKind *kind);
/* {"metadata": {...}, "status": { and the end of it. NULL on ENOMEM; closing frees. */
JsonWriter *status_patch_open(const KubeObject *o);
/* The same; also a Node takes it only in the version in view (else 409): where what others say there meanwhile decides. */
JsonWriter *status_patch_open_of_version(const KubeObject *o);
/* Adds "conditions": the list `ours`, and the object's conditions of other writers. A condition of unchanged
 * status keeps the object's lastTransitionTime; a new status gets last_transition_usec. heartbeat_usec:
 * lastHeartbeatTime of a Node's conditions, by the wall clock; other kinds have none. dropped: types to
 * remove (not of Nodes), NULL-terminated; or NULL. */
void status_patch_add_conditions(JsonWriter *w, const KubeObject *o, const Condition *ours, size_t n, usec_t heartbeat_usec,
                                 const char *const *dropped);
char *status_patch_close(JsonWriter *w);
