/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * containers.c: which pods' containers run on this machine, as PID 1 sees them, during a shutdown of it. The
 * kubelet takes a pod off the API 1.6 to 2.5 s after its last container has ended; PID 1 knows at once.
 *
 * With the kubelet's cgroup driver "systemd" each pod is a slice,
 * kubepods[-burstable|-besteffort]-pod<uid>.slice, and each of its containers (the sandbox's, too) a scope
 * in it: cri-containerd-<id>.scope, crio-<id>.scope, docker-<id>.scope. One GetUnitProcesses() of
 * kubepods.slice names them all; it is asked again when a scope is gone (UnitRemoved), and each second.
 *
 * Only what was seen to run, and then not, has ended: a pod that was never seen may be about to start. And
 * only a look that was begun half a second after it was asked about counts: a container that its kubelet was
 * just starting again when the pod's deletion came runs by then. The sandbox, whose only process is
 * "/pause", does not count: it stays until the pod's network has been taken down.
 *
 * Nothing is known, and nothing ever has ended: with the driver "cgroupfs" (there is no such slice), with
 * --cgroup-root= of the kubelet, without a bus, and with more than about 1,300 processes in pods, which is
 * more than bus.h reads of an answer.
 *
 * Measured on systemd 252, containerd 1.6, Kubernetes 1.34; org.freedesktop.systemd1(5).
 */

#include "env.h"

typedef struct Containers Containers;

/* Some pod that was asked about has ended. */
typedef void (*containers_ended_t)(void *userdata);

int containers_new(Env *env, containers_ended_t fn, void *userdata, Containers **ret);
Containers *containers_free(Containers *c);
DEFINE_FREEP(Containers, containers_free);

/* Watches, until it is stopped or freed; what was known before counts no more. */
void containers_start(Containers *c);
void containers_stop(Containers *c);

/* Nothing of that pod runs here any more. Ask only about pods that are terminating. */
bool containers_have_ended(Containers *c, const char *uid);

/* Pure: the uid of the pod in whose slice that cgroup lies (free it), NULL: of none. -ENOMEM. */
int containers_pod_of_cgroup(const char *path, char **ret_uid);
