/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Credentials, behind one ops: client certificate (re-read when the files change), token (re-read when the file changes, at
 * the latest every minute, as kubelet rotates it), exec plugin (client.authentication.k8s.io v1 and v1beta1; asynchronous,
 * with a deadline; refreshed ahead of expiry so that no notice ever waits for it), none (in-process).
 *
 * A credential is what one request needs: a TLS context and an Authorization header. It is always at hand: asking never
 * waits. Before the first one is there (an exec plugin still running) requests are held by the client, not refused.
 */

#include "child-runner.h"
#include "http-transport.h"
#include "kubeconfig.h"
#include "list.h"
#include "loop.h"

typedef struct KubeAuth KubeAuth;
typedef struct Log Log;

typedef void (*kube_auth_ready_t)(void *userdata);

/* `config` is copied. Files are read here for the first time: their absence is an error now (-ENOENT, logged by the caller
 * with *reterr_message, which the caller frees). ready (may be NULL) is called from the loop each time a look at the exec
 * plugin is over: usually a new credential came. Environment of a plugin: PATH and HOME (ours, or a default), AWS_* of ours,
 * KUBERNETES_EXEC_INFO, and what the kubeconfig says; nothing else. */
int kube_auth_new(Loop *l, Log *log, ChildRunner *children, const KubeConfig *config, kube_auth_ready_t ready, void *userdata,
                  KubeAuth **ret, char **reterr_message);
KubeAuth *kube_auth_free(KubeAuth *a);
DEFINE_FREEP(KubeAuth, kube_auth_free);

/* True: *ret_tls (borrowed; may be NULL for http) and *ret_authorization ("Bearer ...", borrowed until the next call; NULL:
 * none) are good now. Re-reads changed files first (two stat() calls at most once a second). False: no credential yet. */
bool kube_auth_get(KubeAuth *a, HttpTls **ret_tls, const char **ret_authorization);
/* The server said 401: look again at once (files re-read, plugin run). At most one look per 10 s. True: the look goes on and
 * `ready` will tell when it is over; false: what kube_auth_get() gives is the newest there is. */
bool kube_auth_rejected(KubeAuth *a);
/* A reload: certificate, token and CA as this kubeconfig has or names them now, read at once; an exec plugin
 * is run again. 0: they are in use, and who waited for a credential is told. Else what was in use stays, and
 * *reterr_message (the caller's to free) says why: -EXDEV: it needs a KubeAuth of its own (another server,
 * another plugin); or as kube_auth_new(). */
int kube_auth_reload(KubeAuth *a, const KubeConfig *fresh, char **reterr_message);
/* NULL, or why there is no credential, or no newer one: for the message of a call that waited in vain. No secret. */
const char *kube_auth_problem(const KubeAuth *a);

/* Further listeners, told as `ready` is: each client of this identity. Embedded in its owner. */
typedef struct KubeAuthListener {
        ListNode listeners;
        kube_auth_ready_t ready;
        void *userdata;
} KubeAuthListener;

void kube_auth_listen(KubeAuth *a, KubeAuthListener *l);
void kube_auth_unlisten(KubeAuth *a, KubeAuthListener *l);
/* For --check and messages: "client certificate /path (expires ...)", "exec plugin aws". No secret. */
const char *kube_auth_describe(const KubeAuth *a);
