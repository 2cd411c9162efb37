/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What our programs stand on outside a simulation: a loop on the real clock, a transport, a credential, a
 * client.
 */

#include "env.h"
#include "http-curl.h"
#include "kube-client.h"
#include "kubeconfig.h"
#include "log.h"

typedef struct KubeProcess {
        Env env;
        char **paths; /* of the kubeconfig; NULL: the pod's own ServiceAccount */
        KubeConfigChoice choice; /* of it; its texts are borrowed */
        KubeConfig *kubeconfig;
        KubeAuth *auth;
        KubeClient *client;
        char boot_id[33];
} KubeProcess;

/* Loop, randomness, transport, children, the service manager. Says to log, which is borrowed, what is wrong.
 */
int kube_process_open(KubeProcess *p, Log *log, const HttpCurlOptions *curl);
/* name: for managedFields. With a kubeconfig that is loaded by one of the calls below. Says what is wrong.
 */
int kube_process_connect(KubeProcess *p, const char *name);
/* Warns of a kubeconfig with which the credential is at risk. */
void kube_process_warn(const KubeProcess *p);
/* A reload: reads the kubeconfig and what it names again. Says in *ret_text what is in use from now on or,
 * negative, why not what is there (ReloadOptions.credential). */
int kube_process_reload(KubeProcess *p, char **ret_text);
void kube_process_done(KubeProcess *p);

/* path; else, if in_cluster_first, the pod's own ServiceAccount; else the files named by KUBECONFIG; else
 * ~/.kube/config where `home` says so; else KubeProcess.choice.server alone; else the pod's own. The choice may be set
 * before: what it names has to be in a file. Says what is wrong. */
int kube_process_load(KubeProcess *p, const char *path, bool in_cluster_first, bool home);
