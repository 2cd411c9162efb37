/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "exec-credential.h"
#include "fuzz-draw.h"
#include "pem-check.h"
#include "string-util.h"

static const char template[] =
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
        "v1\",\"spec\":{\"interactive\":false},"
        "\"status\":{\"expirationTimestamp\":\"2027-01-15T08:14:00Z\",\"token\":\"k8s-aws-v1.abc\"}}";

/* A plugin's output: a credential that can stand in a header, or a sentence. */
static void check(const char *data, size_t size) {
        _cleanup_(exec_credential_done) ExecCredential e = { 0 };
        _cleanup_free_ char *message = NULL;
        usec_t until;
        int r;

        r = exec_credential_parse(data, size, "client.authentication.k8s.io/v1", &e, &message);
        if (r < 0) {
                assert(r == -EBADMSG && !isempty(message));
                assert(!e.token && !e.cert_pem && !e.key_pem);
                return;
        }
        assert(!message);
        assert(e.token || e.cert_pem);
        assert(!e.cert_pem == !e.key_pem);
        for (const char *p = strempty(e.token); *p; p++)
                assert((unsigned char) *p > ' ' && (unsigned char) *p < 0x7f);
        if (e.cert_pem)
                (void) pem_check_pair(e.cert_pem, strlen(e.cert_pem), e.key_pem, strlen(e.key_pem), &until);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *bent = NULL;

        if (draw_is_text(data, size))
                check((const char *) data, size);
        else {
                bent = draw_bent_json(&d, template);
                check(bent, strlen(bent));
        }
        return 0;
}
