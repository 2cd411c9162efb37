/* SPDX-License-Identifier: Apache-2.0 */
#include "node-identity.h"

#include <ctype.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "file-util.h"
#include "string-util.h"

#define PEM_BYTES_MAX (1024u * 1024)
#define USER_PREFIX "system:node:"

static void bio_freep(BIO **b) {
        BIO_free(*b);
}

static void x509_freep(X509 **x) {
        X509_free(*x);
}

int node_identity_from_pem(const void *pem, size_t size, char **ret) {
        _cleanup_(x509_freep) X509 *x = NULL;
        _cleanup_(bio_freep) BIO *b = NULL;
        const char *name;
        char cn[512];
        int n;

        assert(ret);
        if (size > PEM_BYTES_MAX)
                return -ENOENT;
        b = BIO_new_mem_buf(pem, (int) size);
        if (!b)
                return -ENOMEM;
        x = PEM_read_bio_X509(b, NULL, NULL, NULL);
        ERR_clear_error();
        if (!x)
                return -ENOENT;
        n = X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, cn, sizeof(cn));
        if (n < 0 || (size_t) n != strlen(cn))
                return -ENOENT;
        name = startswith(cn, USER_PREFIX);
        if (isempty(name))
                return -ENOENT;
        *ret = strdup(name);
        return *ret ? 0 : -ENOMEM;
}

static int from_certificate(const KubeConfig *config, char **ret) {
        _cleanup_free_ char *pem = NULL;
        size_t size;

        if (config->cert_data)
                return node_identity_from_pem(config->cert_data, config->cert_data_size, ret);
        if (!config->cert_file || read_file(config->cert_file, PEM_BYTES_MAX, &pem, &size) < 0)
                return -ENOENT;
        return node_identity_from_pem(pem, size, ret);
}

static int from_host_name(char **ret) {
        char name[HOST_NAME_MAX + 1] = "";

        if (gethostname(name, sizeof(name) - 1) < 0)
                return -errno;
        for (char *c = name; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        *ret = strdup(name);
        return *ret ? 0 : -ENOMEM;
}

int node_identity_find(const KubeConfig *config, const char *configured, char **ret, const char **ret_from) {
        _cleanup_free_ char *name = NULL;
        int r;

        if (configured) {
                *ret_from = "NodeName=";
                name = strdup(configured);
                r = name ? 0 : -ENOMEM;
        } else {
                *ret_from = "the client certificate";
                r = from_certificate(config, &name);
                if (r == -ENOENT) {
                        *ret_from = "the host name";
                        r = from_host_name(&name);
                }
        }
        if (r < 0)
                return r;
        if (!dns1123_subdomain_is_valid(name))
                return -EINVAL;
        *ret = TAKE_PTR(name);
        return 0;
}
