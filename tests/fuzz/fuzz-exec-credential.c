/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "exec-credential.h"
#include "fuzz.h"
#include "pem-check.h"
#include "string-util.h"

/* A plugin's output: a credential that can stand in a header, or a sentence. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(exec_credential_done) ExecCredential e = { 0 };
        _cleanup_free_ char *message = NULL;
        usec_t until;
        int r;

        r = exec_credential_parse((const char *) data, size, "client.authentication.k8s.io/v1", &e,
                                  &message);
        if (r < 0) {
                assert(r == -EBADMSG && !isempty(message));
                assert(!e.token && !e.cert_pem && !e.key_pem);
                return 0;
        }
        assert(!message);
        assert(e.token || e.cert_pem);
        assert(!e.cert_pem == !e.key_pem);
        for (const char *p = strempty(e.token); *p; p++)
                assert((unsigned char) *p > ' ' && (unsigned char) *p < 0x7f);
        if (e.cert_pem)
                (void) pem_check_pair(e.cert_pem, strlen(e.cert_pem), e.key_pem, strlen(e.key_pem), &until);
        return 0;
}
