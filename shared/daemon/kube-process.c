/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-process.h"

#include <stdlib.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "daemon.h"
#include "log-catalog.h"
#include "string-util.h"
#include "strv.h"

int kube_process_open(KubeProcess *p, Log *log, const HttpCurlOptions *curl) {
        sd_id128_t boot;
        int r;

        *p = (KubeProcess){ .env = { .version = VESPER_VERSION, .log = log, .notify = daemon_notify } };
        r = loop_new(&p->env.loop);
        if (r < 0)
                return log_error_errno(p->env.log, r, "Failed to create the event loop: %m");
        r = random_new_from_system(&p->env.random);
        if (r < 0)
                return log_error_errno(p->env.log, r, "Failed to get randomness: %m");
        r = http_curl_new(p->env.loop, p->env.log, curl, &p->env.transport);
        if (r < 0)
                return log_error_errno(p->env.log, r, "Failed to create the HTTP transport: %m");
        r = child_runner_new(p->env.loop, &p->env.children);
        if (r < 0)
                return log_error_errno(p->env.log, r, "Failed to set up child processes: %m");
        if (sd_id128_get_boot(&boot) >= 0)
                sd_id128_to_string(boot, p->boot_id);
        p->env.boot_id = p->boot_id;
        return 0;
}

/* Takes paths, which may be NULL for want of memory. */
static int load_files(KubeProcess *p, char **paths) {
        _cleanup_free_ char *message = NULL, *names = NULL;
        int r;

        strv_free(p->paths);
        p->paths = paths;
        if (paths && !*paths)
                return log_error_errno(p->env.log, -ENOENT, "KUBECONFIG names no file");
        r = paths ? kubeconfig_load_files(paths, &p->choice, &p->kubeconfig, &message) : -ENOMEM;
        if (r >= 0)
                return 0;
        names = strv_join(paths, ":");
        return log_error_errno(p->env.log, r, "Failed to read kubeconfig '%s': %s", strempty(names),
                               message ? message : "out of memory");
}

static int load_file(KubeProcess *p, const char *path) {
        char **paths = NULL;

        (void) strv_extend(&paths, path);
        return load_files(p, paths);
}

static int read_in_cluster(KubeConfig **ret, char **reterr_message) {
        return kubeconfig_in_cluster(getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"),
                                     NULL, ret, reterr_message);
}

static int load_in_cluster(KubeProcess *p) {
        _cleanup_free_ char *message = NULL;
        int r;

        r = read_in_cluster(&p->kubeconfig, &message);
        if (r < 0)
                log_error_errno(p->env.log, r, "Failed to use the pod's own ServiceAccount: %s",
                                message ? message : "out of memory");
        return r;
}

static int load_server(KubeProcess *p) {
        _cleanup_free_ char *message = NULL;
        int r;

        r = kubeconfig_of_server(p->choice.server, &p->kubeconfig, &message);
        if (r < 0)
                log_error_errno(p->env.log, r, "Failed to use that server: %s", message ? message : "out of memory");
        return r;
}

static int load_environment(KubeProcess *p, const char *value) {
        char **paths = NULL;

        (void) strv_split(value, ":", &paths);
        return load_files(p, paths);
}

int kube_process_load(KubeProcess *p, const char *path, bool in_cluster_first, bool home) {
        const char *environment = getenv("KUBECONFIG"), *folder = getenv("HOME");
        bool in_cluster = !isempty(getenv("KUBERNETES_SERVICE_HOST")),
             is_named = p->choice.context || p->choice.cluster || p->choice.user;
        _cleanup_free_ char *usual = home && !isempty(folder) ? strf("%s/.kube/config", folder) : NULL;

        if (!isempty(path))
                return load_file(p, path);
        if (in_cluster && in_cluster_first)
                return load_in_cluster(p);
        if (!isempty(environment))
                return load_environment(p, environment);
        if (usual && access(usual, F_OK) == 0)
                return load_file(p, usual);
        if (p->choice.server && !is_named)
                return load_server(p);
        if (in_cluster && !is_named)
                return load_in_cluster(p);
        return log_error_errno(p->env.log, -ENOENT,
                               "No credential for the API server: name a kubeconfig%s, set KUBECONFIG, or run in a pod with a ServiceAccount",
                               home ? " by --kubeconfig, have one in ~/.kube/config" : "");
}

int kube_process_connect(KubeProcess *p, const char *name) {
        _cleanup_free_ char *message = NULL;
        int r;

        r = kube_auth_new(p->env.loop, p->env.log, p->env.children, p->kubeconfig, NULL, NULL, &p->auth,
                          &message);
        if (r < 0) {
                log_error_errno(p->env.log, r, "Failed to get a credential for %s: %s",
                                p->kubeconfig->server, message ? message : "out of memory");
                return r;
        }
        r = kube_client_new(&p->env, p->auth, p->kubeconfig->server, name, &p->client);
        if (r < 0)
                return log_error_errno(p->env.log, r, "Failed to create a client of the API server %s: %m",
                                       p->kubeconfig->server);
        log_debug(p->env.log, "API server %s, %s", p->kubeconfig->server, kube_auth_describe(p->auth));
        return 0;
}

void kube_process_warn(const KubeProcess *p) {
        const char *remedy, *risk = kubeconfig_risk(p->kubeconfig, &remedy);

        if (risk)
                log_event(p->env.log, LOG_LEVEL_WARNING, MESSAGE_CREDENTIAL_AT_RISK, NULL, 0,
                          "API server %s: %s. %s", p->kubeconfig->server, risk, remedy);
}

int kube_process_reload(KubeProcess *p, char **ret_text) {
        _cleanup_(kubeconfig_freep) KubeConfig *fresh = NULL;
        _cleanup_free_ char *message = NULL;
        int r;

        r = p->paths ? kubeconfig_load_files(p->paths, &p->choice, &fresh, &message)
                     : read_in_cluster(&fresh, &message);
        if (r >= 0)
                r = kube_auth_reload(p->auth, fresh, &message);
        if (r >= 0)
                *ret_text = strf("credential read again: %s", kube_auth_describe(p->auth));
        else
                *ret_text =
                        strf("credential as before, %s: %s",
                             r == -EXDEV ? "restart to apply its kubeconfig" : "as it cannot be read again",
                             message ? message : "out of memory");
        return r;
}

void kube_process_done(KubeProcess *p) {
        kube_client_free(p->client);
        kube_auth_free(p->auth);
        kubeconfig_free(p->kubeconfig);
        strv_free(p->paths);
        child_runner_free(p->env.children);
        http_transport_free(p->env.transport);
        random_free(p->env.random);
        loop_free(p->env.loop);
        *p = (KubeProcess){};
}
