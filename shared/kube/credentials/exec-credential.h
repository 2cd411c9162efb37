/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The protocol of exec plugins, client.authentication.k8s.io v1 and v1beta1: what a plugin is told in its
 * environment, and what its output means.
 * https://kubernetes.io/docs/reference/config-api/client-authentication.v1/ Private to kube/.
 */

#include "kubeconfig.h"
#include "time-util.h"

#define EXEC_OUTPUT_BYTES_MAX (1024u * 1024)

typedef struct ExecCredential {
        char *token;
        char *cert_pem, *key_pem;
        usec_t expires_usec; /* wall clock; USEC_INFINITY: not said */
} ExecCredential;

/* The whole environment of the plugin. `inherited` is ours: of it PATH (else a default), HOME and AWS_* are
 * handed on. ca_pem (may be NULL) is told where the kubeconfig says provideClusterInfo. 0 or -ENOMEM. */
int exec_environment(const KubeConfig *c, char *const *inherited, const void *ca_pem, size_t ca_pem_size,
                     char ***ret);
/* -EBADMSG with a sentence without any of the output, which may be a secret. -ENOMEM. */
int exec_credential_parse(const char *output, size_t size, const char *api_version, ExecCredential *ret,
                          char **reterr_message);
void exec_credential_done(ExecCredential *e);
