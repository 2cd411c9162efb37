/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An object of a snapshot written as JSON again: in the form that Kubernetes gives it, so that its decoder reads the same
 * object of it, with what a simulation or a decision about removing nodes may ask, and nothing else. There is no environment,
 * argument or image of a container, no annotation that its kind does not want, no address or id of a machine or boot, and
 * neither resourceVersion nor heartbeat, which differ where nothing else does.
 */

#include "kube-scheduling.h"

/* Why an object is invalid, in the place of what could not be read of it. */
#define SNAPSHOT_UNREADABLE "vesperUnreadable"

/* 0 or -ENOMEM. */
int snapshot_object_write(JsonWriter *w, const KubeObject *o);
/* snapshot-vesper.c: the members spec and status of a NodePool, NodeClaim or NodeDisruptionBudget. False: it is none. */
bool snapshot_vesper_write(JsonWriter *w, const KubeObject *o);
/* Leaves out an empty one. */
void snapshot_write_conditions(JsonWriter *w, const KubeObject *o);
