/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "certificate-plan.h"
#include "fuzz-draw.h"
#include "string-util.h"

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)

static char *names[] = { (char *) "vesper-webhook.vesper-system.svc", NULL };

/* A good set, made once: what of it is kept, and what is bent, the bytes draw. */
static const CertificateSet *good(void) {
        static CertificateSet made;

        if (!made.bundle)
                assert(certificate_plan_apply(CERTIFICATE_MAKE, NULL, names, NOW, &made) >= 0);
        return &made;
}

static char *bent(Draw *d, const char *text) {
        switch (draw_below(d, 4)) {
        case 0:
                return strdup(text);
        case 1:
                return draw_bent_lines(d, text);
        case 2:
                return draw_text(d);
        default:
                return NULL;
        }
}

/* What is in a Secret is shown only if it serves, replaced if it is of no use, and whatever a step makes serves. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        CertificateSet s = { bent(&d, good()->bundle), bent(&d, good()->ca_key), bent(&d, good()->certificate), bent(&d, good()->key) };
        usec_t now = NOW + draw_below(&d, 1000) * USEC_PER_DAY;
        CertificatePlan p = certificate_plan(&s, names, draw_bool(&d), now);
        CertificateSet next = { 0 };

        assert(p.step != CERTIFICATE_MAKE);
        assert((p.step == CERTIFICATE_REPLACE) == !isempty(p.reason));
        assert(p.step != CERTIFICATE_GOOD || p.until_usec > now);
        if (certificate_set_serves(&s, names, now))
                assert(p.step != CERTIFICATE_REPLACE && certificate_has_key(s.certificate, s.key));
        if (certificate_plan_apply(p.step, &s, names, now, &next) >= 0) {
                if (p.step == CERTIFICATE_REPLACE || p.step == CERTIFICATE_SIGN)
                        assert(certificate_set_serves(&next, names, now));
                certificate_set_done(&next);
        }
        certificate_set_done(&s);
        return 0;
}
