/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-auth.h"

#include "alloc-util.h"
#include "string-util.h"

struct KubeAuth {
        Loop *loop;
        List listeners;
        kube_auth_ready_t ready;
        void *userdata;
};

int kube_auth_new(Loop *l, Log *log, ChildRunner *children, const KubeConfig *config, kube_auth_ready_t ready, void *userdata,
                  KubeAuth **ret, char **reterr_message) {
        KubeAuth *a;

        assert(l);
        assert(config);
        assert(ret);

        if (config->cert_file || config->cert_data || config->token || config->token_file || config->exec_command)
                return -ENOTSUP;
        a = new0(KubeAuth, 1);
        if (!a)
                return -ENOMEM;
        a->loop = l;
        a->ready = ready;
        a->userdata = userdata;
        *ret = a;
        return 0;
}

KubeAuth *kube_auth_free(KubeAuth *a) {
        free(a);
        return NULL;
}

void kube_auth_listen(KubeAuth *a, KubeAuthListener *l) {
        list_append(&a->listeners, &l->listeners);
}

void kube_auth_unlisten(KubeAuth *a, KubeAuthListener *l) {
        list_remove(&a->listeners, &l->listeners);
}

bool kube_auth_get(KubeAuth *a, HttpTls **ret_tls, const char **ret_authorization) {
        *ret_tls = NULL;
        *ret_authorization = NULL;
        return true;
}

bool kube_auth_rejected(KubeAuth *a) {
        return false;
}

const char *kube_auth_problem(const KubeAuth *a) {
        return NULL;
}

const char *kube_auth_describe(const KubeAuth *a) {
        return "no credential";
}
