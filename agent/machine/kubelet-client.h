/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kubelet-client.c: GET requests to the HTTPS server of the kubelet on this machine, at 127.0.0.1 and port 10250,
 * or the port that its Node names.
 *
 * The agent shows the same credential as to the API server: the kubelet's own. The kubelet asks the API server
 * whether that credential may read a path, and keeps the answer for minutes.
 *
 * The kubelet's certificate is always verified, for the node's name, also where the kubeconfig says
 * insecure-skip-tls-verify. Any process may listen on that port while the kubelet is down. Such a process must
 * neither see a bearer token nor be believed: a forged answer could say that pods have ended. Two authorities are
 * trusted:
 *
 * - the cluster's authority in the kubeconfig, for a certificate that the cluster has signed (serverTLSBootstrap,
 *   k3s, RKE2);
 * - the kubelet's self-signed certificate in /var/lib/kubelet/pki/kubelet.crt, which only root can write, where the
 *   agent can read that file (its DaemonSet on kubeadm and AKS has it).
 *
 * A kubelet whose certificate neither of them verifies cannot be read (-EKEYREJECTED).
 */

#include "env.h"
#include "http-transport.h"
#include "kube-auth.h"

typedef struct KubeletClient KubeletClient;

/* auth is borrowed, and outlives the client. node is copied. 0 or -ENOMEM. */
int kubelet_client_new(Env *env, KubeAuth *auth, const char *node, KubeletClient **ret);
KubeletClient *kubelet_client_free(KubeletClient *c);
DEFINE_FREEP(KubeletClient, kubelet_client_free);

/* Sets the port, as status.daemonEndpoints.kubeletEndpoint of the Node says it. Ignores what is no port, such as 0. */
void kubelet_client_set_port(KubeletClient *c, int64_t port);

/* Starts a GET of that path, such as "/configz". The contract of fn and *ret is that of http_call_start(). -EAGAIN:
 * there is no credential yet; -ENOMEM. */
int kubelet_client_get(KubeletClient *c, const char *path, usec_t timeout_usec, size_t max_response_bytes, http_done_t fn,
                       void *userdata, HttpCall **ret);

/* Returns what went wrong, for people: "HTTP 500: " and the first line of the body, or why there is no answer. Free it; NULL:
 * out of memory. */
char *kubelet_answer_text(const HttpResponse *r);
