/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz-draw.h"
#include "kubeconfig.h"
#include "string-util.h"

static const char template[] =
        "apiVersion: v1\nkind: Config\ncurrent-context: c1\npreferences: {}\nclusters:\n- name: k1\n  "
        "cluster:\n"
        "    server: https://10.0.0.1:6443\n    tls-server-name: api\n    certificate-authority: ca.crt\n"
        "contexts:\n- name: c1\n  context: {cluster: k1, user: u1, namespace: default}\n"
        "users:\n- name: u1\n  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
        "      command: aws\n      args: [eks, \"get-token\", 'x']\n      env:\n      - name: A\n        "
        "value: b\n"
        "      provideClusterInfo: true\n      installHint: >-\n        get it\n- name: u2\n  user:\n    "
        "token: t\n"
        "    client-certificate-data: Zm9v\n    client-key-data: YmFy\n";

/* Either a configuration with an address, or a sentence of one line. */
static void check(const char *data, size_t size) {
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *copy = NULL;
        _cleanup_free_ char *message = NULL;
        int r;

        r = kubeconfig_parse(data, size, "/etc/vesper", &c, &message);
        if (r < 0) {
                assert(r == -EBADMSG || r == -ENOTSUP || r == -E2BIG);
                assert(!c && startswith(message, "kubeconfig:"));
                for (const char *p = message; *p; p++)
                        assert((unsigned char) *p >= ' ');
                return;
        }
        assert(!message);
        assert(startswith(c->server, "http://") || startswith(c->server, "https://"));
        assert(!strpbrk(c->server, " \r\n@?#"));
        assert((c->cert_file || c->cert_data) == (c->key_file || c->key_data));
        assert(!c->token || !strpbrk(c->token, "\r\n"));
        assert(!c->proxy_url);

        assert(kubeconfig_copy(c, &copy) == 0);
        assert(streq(copy->server, c->server));
        assert(streq_ptr(copy->token, c->token));
        assert(copy->n_exec_env == c->n_exec_env);
        assert(copy->ca_data_size == c->ca_data_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check((const char *) data, size);
        else {
                bent = draw_bent_lines(&d, template);
                check(bent, strlen(bent));
        }
        return 0;
}
