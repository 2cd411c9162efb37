/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "kubeconfig.h"
#include "string-util.h"

/* Either a configuration with an address, or a sentence of one line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *copy = NULL;
        _cleanup_free_ char *message = NULL;
        int r;

        r = kubeconfig_parse((const char *) data, size, "/etc/vesper", &c, &message);
        if (r < 0) {
                assert(r == -EBADMSG || r == -ENOTSUP || r == -E2BIG);
                assert(!c && startswith(message, "kubeconfig:"));
                for (const char *p = message; *p; p++)
                        assert((unsigned char) *p >= ' ');
                return 0;
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
        return 0;
}
