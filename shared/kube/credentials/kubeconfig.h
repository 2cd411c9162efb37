/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * kubeconfig files (v1 Config), read by libyaml's event API: bounded (1 MiB, depth 32, aliases refused), strict about types,
 * tolerant of unknown keys. Only one context is taken. Relative paths are taken from the file's folder.
 */

#include <stdbool.h>
#include <stddef.h>

#include "macro.h"

typedef struct KubeExecEnv {
        char *name, *value;
} KubeExecEnv;

typedef struct KubeConfig {
        char *server; /* "https://host:port", without a trailing slash */
        char *tls_server_name;
        bool insecure_skip_tls_verify;
        char *proxy_url; /* refused at load if set: -ENOTSUP */
        char *ca_file;   /* or data: */
        void *ca_data;
        size_t ca_data_size;
        char *cert_file, *key_file;
        void *cert_data, *key_data;
        size_t cert_data_size, key_data_size;
        char *token, *token_file;
        char *namespace;
        char *user_name; /* of the context, for messages */
        /* exec plugin; command NULL: none */
        char *exec_api_version, *exec_command, *exec_install_hint;
        char **exec_args;
        KubeExecEnv *exec_env;
        size_t n_exec_env;
        bool exec_provide_cluster_info;
} KubeConfig;

/* -EBADMSG, -ENOENT, -E2BIG, -ENOTSUP (a kind of credential we do not have: auth-provider, username/password) with a sentence
 * in *reterr_message (file, line, what) that the caller frees. */
int kubeconfig_load(const char *path, KubeConfig **ret, char **reterr_message);
/* What of it is meant, as kubectl's options of these names say; NULL: as the file says. */
typedef struct KubeConfigChoice {
        const char *context;       /* else the current one */
        const char *cluster, *user; /* by name, in the place of the context's */
        const char *server;        /* in the place of the cluster's, whose tls-server-name is not meant for it */
} KubeConfigChoice;

/* Several, as kubectl takes KUBECONFIG: of each name the first file that has it wins, those that are not there are passed
 * over. choice: NULL: nothing is chosen. */
int kubeconfig_load_files(char *const *paths, const KubeConfigChoice *choice, KubeConfig **ret, char **reterr_message);
/* Without any file: only a server, and no credential. */
int kubeconfig_of_server(const char *server, KubeConfig **ret, char **reterr_message);
int kubeconfig_parse(const char *data, size_t size, const char *directory, KubeConfig **ret, char **reterr_message);
/* From a pod: KUBERNETES_SERVICE_HOST/PORT and the ServiceAccount's files under `directory` (NULL: the usual place). */
int kubeconfig_in_cluster(const char *host, const char *port, const char *directory, KubeConfig **ret, char **reterr_message);
/* Only a server, no TLS, no credential: the in-process fake. */
int kubeconfig_plain(const char *server, KubeConfig **ret);
/* Why the credential or the answers of the API server are at risk with it, and what to do (*ret_remedy):
 * static sentences for people. NULL: nothing is known to be wrong. It is used all the same, as kubectl does.
 */
const char *kubeconfig_risk(const KubeConfig *c, const char **ret_remedy);
int kubeconfig_copy(const KubeConfig *c, KubeConfig **ret);
KubeConfig *kubeconfig_free(KubeConfig *c); /* secrets are erased */
DEFINE_FREEP(KubeConfig, kubeconfig_free);
