/* SPDX-License-Identifier: Apache-2.0 */
#include "kubeconfig.h"

#include "file-util.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define SERVICE_ACCOUNT_DIRECTORY "/var/run/secrets/kubernetes.io/serviceaccount"
#define NAMESPACE_BYTES_MAX 256u

static KubeExecEnv *exec_env_free(KubeExecEnv *env, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(env[i].name);
                erase_and_free(env[i].value, env[i].value ? strlen(env[i].value) : 0);
        }
        free(env);
        return NULL;
}

KubeConfig *kubeconfig_free(KubeConfig *c) {
        if (!c)
                return NULL;

        free(c->server);
        free(c->tls_server_name);
        free(c->proxy_url);
        free(c->ca_file);
        free(c->ca_data);
        free(c->cert_file);
        free(c->key_file);
        free(c->cert_data);
        erase_and_free(c->key_data, c->key_data_size);
        erase_and_free(c->token, c->token ? strlen(c->token) : 0);
        free(c->token_file);
        free(c->namespace);
        free(c->user_name);
        free(c->exec_api_version);
        free(c->exec_command);
        free(c->exec_install_hint);
        strv_free(c->exec_args);
        exec_env_free(c->exec_env, c->n_exec_env);
        free(c);
        return NULL;
}

static int copy_blob(const void *data, size_t size, void **ret, size_t *ret_size) {
        if (!data)
                return 0;
        *ret = memdup_str(data, size);
        if (!*ret)
                return -ENOMEM;
        *ret_size = size;
        return 0;
}

static int copy_strings(const KubeConfig *from, KubeConfig *to) {
        const struct {
                const char *from;
                char **to;
        } strings[] = {
                { from->server, &to->server },
                { from->tls_server_name, &to->tls_server_name },
                { from->proxy_url, &to->proxy_url },
                { from->ca_file, &to->ca_file },
                { from->cert_file, &to->cert_file },
                { from->key_file, &to->key_file },
                { from->token, &to->token },
                { from->token_file, &to->token_file },
                { from->namespace, &to->namespace },
                { from->user_name, &to->user_name },
                { from->exec_api_version, &to->exec_api_version },
                { from->exec_command, &to->exec_command },
                { from->exec_install_hint, &to->exec_install_hint },
        };

        for (size_t i = 0; i < ELEMENTSOF(strings); i++)
                if (free_and_strdup(strings[i].to, strings[i].from) < 0)
                        return -ENOMEM;
        return 0;
}

static int copy_exec(const KubeConfig *from, KubeConfig *to) {
        if (from->exec_args) {
                to->exec_args = strv_copy(from->exec_args);
                if (!to->exec_args)
                        return -ENOMEM;
        }
        if (from->n_exec_env == 0)
                return 0;

        to->exec_env = new0(KubeExecEnv, from->n_exec_env);
        if (!to->exec_env)
                return -ENOMEM;
        to->n_exec_env = from->n_exec_env;
        for (size_t i = 0; i < from->n_exec_env; i++)
                if (free_and_strdup(&to->exec_env[i].name, from->exec_env[i].name) < 0 ||
                    free_and_strdup(&to->exec_env[i].value, from->exec_env[i].value) < 0)
                        return -ENOMEM;
        return 0;
}

const char *kubeconfig_risk(const KubeConfig *c, const char **ret_remedy) {
        bool token = c->token || c->token_file || c->exec_command;

        if (startswith(c->server, "https://") && c->insecure_skip_tls_verify) {
                *ret_remedy =
                        "Take insecure-skip-tls-verify out of the kubeconfig, and put the cluster's CA there instead (certificate-authority).";
                return "insecure-skip-tls-verify is set: whoever can get between this machine and the API server can answer in its place, and can take a token that is sent there";
        }
        if (startswith(c->server, "http://") && token) {
                *ret_remedy = "Let the kubeconfig's server be an https:// address, and put the cluster's CA there (certificate-authority).";
                return "the token of this credential is sent over http://: whoever sees the traffic can read it, and do all that this credential may";
        }
        return NULL;
}

int kubeconfig_copy(const KubeConfig *c, KubeConfig **ret) {
        _cleanup_(kubeconfig_freep) KubeConfig *copy = NULL;

        assert(c);
        assert(ret);
        copy = new0(KubeConfig, 1);
        if (!copy)
                return -ENOMEM;

        copy->insecure_skip_tls_verify = c->insecure_skip_tls_verify;
        copy->exec_provide_cluster_info = c->exec_provide_cluster_info;
        if (copy_strings(c, copy) < 0 || copy_exec(c, copy) < 0 ||
            copy_blob(c->ca_data, c->ca_data_size, &copy->ca_data, &copy->ca_data_size) < 0 ||
            copy_blob(c->cert_data, c->cert_data_size, &copy->cert_data, &copy->cert_data_size) < 0 ||
            copy_blob(c->key_data, c->key_data_size, &copy->key_data, &copy->key_data_size) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}

int kubeconfig_plain(const char *server, KubeConfig **ret) {
        const KubeConfig plain = { .server = (char *) server };

        assert(server);
        return kubeconfig_copy(&plain, ret);
}

/* -- from inside a pod ---------------------------------------------------------------------------------- */

static int refuse(int error, char **reterr_message, char *message) {
        if (!message)
                return -ENOMEM;
        if (reterr_message)
                *reterr_message = message;
        else
                free(message);
        return error;
}

static int read_namespace(const char *path, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        /* Old kubelets and hand-made folders have none; nothing depends on it. */
        if (read_file(path, NAMESPACE_BYTES_MAX, &text, &size) < 0)
                return 0;
        return free_and_strdup(ret, strstrip(text));
}

int kubeconfig_in_cluster(const char *host, const char *port, const char *directory, KubeConfig **ret,
                          char **reterr_message) {
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;
        _cleanup_free_ char *namespace_file = NULL;
        uint64_t number;

        assert(ret);
        if (isempty(host) || isempty(port))
                return refuse(-ENOENT, reterr_message,
                              strdup("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: not in a pod"));
        if (strpbrk(host, "/?#@ []") || parse_uint64_range(port, 1, 65535, &number) < 0)
                return refuse(
                        -EBADMSG, reterr_message,
                        strf("KUBERNETES_SERVICE_HOST '%s' and KUBERNETES_SERVICE_PORT '%s' are no address",
                             host, port));

        c = new0(KubeConfig, 1);
        if (!c)
                return -ENOMEM;
        directory = directory ? directory : SERVICE_ACCOUNT_DIRECTORY;
        c->server =
                strchr(host, ':') ? strf("https://[%s]:%s", host, port) : strf("https://%s:%s", host, port);
        c->ca_file = strf("%s/ca.crt", directory);
        c->token_file = strf("%s/token", directory);
        c->user_name = strdup("service account");
        namespace_file = strf("%s/namespace", directory);
        if (!c->server || !c->ca_file || !c->token_file || !c->user_name || !namespace_file ||
            read_namespace(namespace_file, &c->namespace) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}
