/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kubelet-watch.c: whether the kubelet of this machine is healthy, for people: without it, pods that are evicted do not end.
 * Asks its /healthz (127.0.0.1:10248, plain, for anybody) every half minute. Nothing is drained or cordoned for what it says:
 * whether a node is Ready the API server knows better, and a kubelet that hangs could end no pod of a drain.
 *
 *      unhealthy   four failures in a row: an answer other than 200, none within 5 s, nobody listens. Before it has answered
 *                  once, silence says nothing (healthzPort= of its configuration moves it, or switches it off)
 *      healthy     two answers of 200 in a row
 *
 * Which pods still run containers.c asks PID 1 and, where the agent may, the kubelet's /runningpods/ (kubelet-pods.h).
 */

#include "env.h"
#include "wakeup.h"

typedef enum KubeletVerdict {
        KUBELET_SAME,
        KUBELET_UNHEALTHY,
        KUBELET_HEALTHY,
} KubeletVerdict;

/* Zero is its beginning: nothing is known. */
typedef struct KubeletHealth {
        unsigned failures, successes; /* in a row */
        usec_t since_usec;            /* loop_now(): of the first of these failures */
        bool has_answered;
        bool unhealthy;
} KubeletHealth;

/* Pure: what one answer (http 0: none came) changes. */
KubeletVerdict kubelet_health_step(KubeletHealth *h, unsigned http, usec_t now_usec);

typedef struct KubeletWatch KubeletWatch;

/* KUBELET_UNHEALTHY, KUBELET_HEALTHY; why: of the last failure; since when it has failed (loop_now()). */
typedef void (*kubelet_watch_fn)(KubeletVerdict verdict, const char *why, usec_t since_usec, void *userdata);

int kubelet_watch_new(Env *env, kubelet_watch_fn fn, void *userdata, KubeletWatch **ret);
KubeletWatch *kubelet_watch_free(KubeletWatch *w);
DEFINE_FREEP(KubeletWatch, kubelet_watch_free);
/* Reports the poll of the kubelet's /healthz. A request is under way, or the next one begins within
 * KUBELET_WATCH_WAKEUP_USEC. */
#define KUBELET_WATCH_WAKEUP_USEC USEC_PER_MINUTE
void kubelet_watch_next_wakeup(const KubeletWatch *k, Wakeups *w);
