/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * containers.c: which pods' containers run on this machine, as PID 1 and the kubelet see them, during a shutdown of
 * it. The kubelet takes a pod off the API 1.6 to 2.5 s after its last container has ended; PID 1 knows at once.
 *
 * PID 1. With the kubelet's cgroup driver "systemd" each pod is a slice,
 * kubepods[-burstable|-besteffort]-pod<uid>.slice, and each of its containers (the sandbox's, too) a scope
 * in it: cri-containerd-<id>.scope, crio-<id>.scope, docker-<id>.scope. One GetUnitProcesses() of
 * kubepods.slice names them all; it is asked again when a scope is gone (UnitRemoved), and each second.
 *
 * PID 1 knows nothing with the driver "cgroupfs" (there is no such slice), with --cgroup-root= of the kubelet,
 * without a bus, and with more than about 1,300 processes in pods, which is more than bus.h reads of an answer.
 *
 * The kubelet. Its /runningpods/ is asked each second where the agent may read it (kubelet-pods.h). The answer may
 * be 3 s old, so it counts as one of 3 s before.
 *
 * Only what was seen to run, and then not, has ended: a pod that was never seen may be about to start. And only a
 * look half a second after the pod was asked about counts: a container that its kubelet was just starting again when
 * the pod's deletion came runs by then. The sandbox, whose only process is "/pause", does not count: it stays until
 * the pod's network has been taken down.
 *
 * PID 1 decides of a pod that it has seen to run, as it knows at once; of any other, and while PID 1 does not answer,
 * the kubelet does. Where no source knows a pod, it has never ended.
 *
 * PID 1 was measured on systemd 252, containerd 1.6, Kubernetes 1.34; org.freedesktop.systemd1(5).
 */

#include "kubelet-client.h"
#include "wakeup.h"

/* A container that the kubelet was about to start when the pod was deleted runs after so long. */
#define CONTAINERS_SETTLE_USEC (500 * USEC_PER_MSEC)

typedef struct Containers Containers;

/* Some pod that was asked about has ended. */
typedef void (*containers_ended_t)(void *userdata);

/* kubelet is borrowed, and outlives the object; NULL: PID 1 is the only source. */
int containers_new(Env *env, KubeletClient *kubelet, containers_ended_t fn, void *userdata, Containers **ret);
Containers *containers_free(Containers *c);
DEFINE_FREEP(Containers, containers_free);

/* Watches, until it is stopped or freed; what was known before counts no more. */
void containers_start(Containers *c);
void containers_stop(Containers *c);

/* Nothing of that pod runs here any more. Ask only about pods that are terminating. */
bool containers_have_ended(Containers *c, const char *uid);
/* Reports the poll of PID 1 while the object watches, and the kubelet's. */
void containers_next_wakeup(const Containers *c, Wakeups *w);

/* Pure: the uid of the pod in whose slice that cgroup lies (free it), NULL: of none. -ENOMEM. */
int containers_pod_of_cgroup(const char *path, char **ret_uid);

/* The answer of one source, PID 1 or the kubelet, about one pod. */
typedef struct ContainersView {
        bool known;        /* the source has answered the last look */
        bool ran;          /* at some look */
        bool runs;         /* at the last one that was answered */
        usec_t as_of_usec; /* loop_now(): the moment that the last answer describes, or a later one */
} ContainersView;

/* Pure: whether a pod that was first asked about at asked_usec has ended. The first of views that has seen it run, and answers, decides. */
bool containers_pod_has_ended(const ContainersView *views, size_t n_views, usec_t asked_usec);
