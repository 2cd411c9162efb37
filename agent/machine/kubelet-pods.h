/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kubelet-pods.c: which pods have a running container, as the kubelet's /runningpods/ says. The kubelet makes that
 * answer from its container runtime, so it holds without an API server, and with either cgroup driver. (The kubelet's
 * /pods only repeats what the API server has said.)
 *
 * The path needs get on nodes/pods (Kubernetes 1.33 or newer, KubeletFineGrainedAuthz), which the node's own
 * credential has only if somebody grants it. An older kubelet asks for nodes/proxy, which vesper does not ask for: it
 * runs commands in pods.
 *
 *      state       meaning                                             the next request follows
 *      UNKNOWN     no answer yet                                       after 30 s
 *      READABLE    the last answer was a list                          after a minute
 *      REFUSED     HTTP 4xx but 429, and 401 while nobody watches;     after an hour, also while somebody watches
 *                  or a certificate that does not verify
 *      FAILING     anything else: the kubelet is down, HTTP 5xx        after a minute
 *
 * While somebody watches, the next request follows after a second instead, and each answer is reported.
 *
 * The kubelet caches the API server's answers: the authorization for 5 minutes, the owner of a bearer token for
 * 2 minutes. Using an answer does not extend it. Both are whole minutes, so that a request each minute renews either
 * as soon as it has ended. So whenever the API server goes away, the permission is still valid for up to 5 (or 2) minutes.
 * Afterwards the kubelet answers HTTP 500, or 401 to a token, which is FAILING while somebody watches.
 *
 * The answer may be 3 s old, as the kubelet keeps the runtime's answer for that long (runtimeCacheRefreshPeriod).
 *
 * All of this is as in the source of Kubernetes 1.34 (pkg/kubelet: server/auth.go, server/server.go, kubelet.go), and was
 * not measured on a kubelet.
 */

#include "kubelet-client.h"
#include "wakeup.h"

/* Age that an answer may have when it comes. */
#define KUBELET_PODS_STALE_USEC (3 * USEC_PER_SEC)
/* Limits of one answer: the kubelet's default is 110 pods, and large nodes have 500. */
#define KUBELET_PODS_MAX 512u
#define KUBELET_PODS_BYTES_MAX (1024u * 1024u)
#define KUBELET_PODS_PATH "/runningpods/"

typedef enum KubeletPodsState {
        KUBELET_PODS_UNKNOWN,
        KUBELET_PODS_READABLE,
        KUBELET_PODS_REFUSED,
        KUBELET_PODS_FAILING,
} KubeletPodsState;

/* Pure: the state after one answer. error and status are those of HttpResponse; is_list: the body was read. */
KubeletPodsState kubelet_pods_state_after(int error, unsigned status, bool is_list, bool is_watching);

/* Pure: the uids of the pods that have a container in the PodList of /runningpods/ (a strv; NULL: none). -EBADMSG:
 * no such list, or a pod that cannot be read, which might be any; -E2BIG; -ENOMEM. */
int kubelet_pods_parse(const char *body, size_t size, char ***ret_uids);

typedef struct KubeletPods KubeletPods;

/* error 0: uids is the answer to a request that was begun at begun_usec (loop_now()). Else nothing is known. The
 * callback may free nothing. */
typedef void (*kubelet_pods_fn)(int error, char *const *uids, usec_t begun_usec, void *userdata);

/* Asks at the slow pace from now on. client is borrowed, and outlives the object. */
int kubelet_pods_new(Env *env, KubeletClient *client, kubelet_pods_fn fn, void *userdata, KubeletPods **ret);
KubeletPods *kubelet_pods_free(KubeletPods *k);
DEFINE_FREEP(KubeletPods, kubelet_pods_free);

/* Begins with a request at once, unless the last one was refused. */
void kubelet_pods_watch(KubeletPods *k, bool is_watching);
/* Reports the poll: a request is under way, or the next one follows at the pace above. */
void kubelet_pods_next_wakeup(const KubeletPods *k, Wakeups *w);
