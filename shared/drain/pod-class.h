/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * drain/: which pods hold a node, what to do about each and when, and the evictions themselves. Used by both
 * daemons. Calls base .. kube; called by agent/ and coordinator/.
 *
 * pod-class.c: pure. What kind of pod is this to somebody who wants to empty its node?
 */

#include "kube-kinds.h"

typedef enum PodClass {
        POD_CLASS_STATIC,      /* mirror pod: the kubelet's own; not evicted, not waited for */
        POD_CLASS_DAEMON,      /* KubePod.is_daemon: would be made again at once; not evicted, not waited for */
        POD_CLASS_TERMINAL,    /* Succeeded or Failed: holds nothing */
        POD_CLASS_TERMINATING, /* on its way out: waited for */
        POD_CLASS_PROTECTED,   /* opted out: see the key */
        POD_CLASS_ORDINARY,
        _POD_CLASS_MAX,
        _POD_CLASS_INVALID = -EINVAL,
} PodClass;

const char *pod_class_to_string(PodClass c);

/* The first class of the list above that fits. For POD_CLASS_PROTECTED *ret_key (if wanted) is the static
 * name of the annotation or label that decided; *ret_until_usec the wall-clock end of the protection
 * (USEC_INFINITY: none).
 *
 * Opt-outs, as annotation or label with the value "true": vesper.sh/do-not-evict, karpenter.sh/do-not-evict,
 * karpenter.sh/do-not-disrupt; cluster-autoscaler.kubernetes.io/safe-to-evict with the value "false". do-not-disrupt may also be a Go duration > 0 counted from status.startTime (not started:
 * protected). */
PodClass pod_classify(const KubePod *pod, usec_t wall_now_usec, const char **ret_key,
                      usec_t *ret_until_usec);

/* Returns why a pod of POD_CLASS_STATIC may be no static pod, a static text that goes on after "Pod
 * default/a is left alone: ". NULL: it has the annotation and the owner that a kubelet gives to its
 * mirror pods, or it is of another class. Anybody who may create pods can set either. */
const char *pod_static_doubt(const KubePod *pod);
/* Returns a sentence, without a full stop, about a pod of which pod_static_doubt() is not NULL: that a
 * drain of its node leaves it alone, why, and what helps. Free it; NULL on ENOMEM. */
char *pod_left_alone_format(const KubePod *pod, const char *node);

/* Evicted last: system-cluster-critical, system-node-critical, or a priority of 2,000,000,000 and more. */
bool pod_is_critical(const KubePod *pod);
