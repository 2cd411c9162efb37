/* SPDX-License-Identifier: Apache-2.0 */
#include "client-identity.h"

#include <gnutls/x509.h>
#include <stdbool.h>
#include <string.h>

#include "alloc-util.h"

static bool peer_is_trusted(gnutls_session_t session) {
        gnutls_typed_vdata_st purpose = {
                .type = GNUTLS_DT_KEY_PURPOSE_OID,
                .data = (void *) GNUTLS_KP_TLS_WWW_CLIENT,
        };
        unsigned status;

        return gnutls_certificate_verify_peers(session, &purpose, 1, &status) >= 0 && status == 0;
}

static int subject_of(const gnutls_datum_t *der, char **ret) {
        gnutls_datum_t dn = { 0 };
        gnutls_x509_crt_t crt;
        int r = -ENOMEM;

        if (gnutls_x509_crt_init(&crt) < 0)
                return -ENOMEM;

        if (gnutls_x509_crt_import(crt, der, GNUTLS_X509_FMT_DER) >= 0 &&
            gnutls_x509_crt_get_dn3(crt, &dn, 0) >= 0) {
                /* A NUL in a name must not make a shorter name of it. */
                if (memchr(dn.data, 0, dn.size))
                        r = 0;
                else {
                        *ret = memdup_str(dn.data, dn.size);
                        r = *ret ? 0 : -ENOMEM;
                }
                gnutls_free(dn.data);
        }
        gnutls_x509_crt_deinit(crt);
        return r;
}

int client_identity_verify(gnutls_session_t session, char **ret) {
        const gnutls_datum_t *chain;
        unsigned n = 0;

        *ret = NULL;
        chain = gnutls_certificate_get_peers(session, &n);
        if (!chain || n == 0 || !peer_is_trusted(session))
                return 0;
        return subject_of(chain, ret);
}
