/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the kubelet of this machine says of itself, for --check:
 *
 * - /healthz on 127.0.0.1:10248, plain, for anybody (healthzPort=, healthzBindAddress= of its configuration
 *   move it);
 * - /configz on 127.0.0.1:10250, for who may get nodes/configz: the node's own credential may not by itself
 *   (403), and nodes/proxy, which would do, too, is too much to give (exec). kubelet-client.h says how the
 *   kubelet's certificate is verified;
 * - /runningpods/ there, for who may get nodes/pods (kubelet-pods.h).
 */

#include "kubelet-pods.h"

/* The kubelet's own graceful node shutdown. */
typedef enum KubeletShutdown {
        KUBELET_SHUTDOWN_UNKNOWN,
        KUBELET_SHUTDOWN_OFF,
        KUBELET_SHUTDOWN_ON
} KubeletShutdown;

typedef struct KubeletFacts {
        int healthz_http;   /* -1: not asked; 0: no answer, and the text says why; else the text is what it
                               says */
        char *healthz_text; /* of one line; may be NULL */
        int configz_http;   /* the same */
        char *configz_text;
        KubeletShutdown shutdown; /* as /configz has it */
        KubeletPodsState pods;    /* whether /runningpods/ can be read; UNKNOWN: not asked */
        char *pods_text;          /* why not; may be NULL */
} KubeletFacts;

void kubelet_facts_done(KubeletFacts *f);

typedef struct CheckKubelet CheckKubelet;
typedef void (*check_kubelet_done_t)(void *userdata);

/* auth NULL: /configz and /runningpods/ are not asked. facts is filled in until fn is called, within about 5 s. */
int check_kubelet_new(Env *env, KubeAuth *auth, const char *node, KubeletFacts *facts,
                      check_kubelet_done_t fn, void *userdata, CheckKubelet **ret);
CheckKubelet *check_kubelet_free(CheckKubelet *k);
DEFINE_FREEP(CheckKubelet, check_kubelet_free);

/* Pure: what an answer of /configz says. */
KubeletShutdown kubelet_shutdown_in(const char *body, size_t size);
