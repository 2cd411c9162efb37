/* SPDX-License-Identifier: Apache-2.0 */
#include "certificate-plan.h"

#include <errno.h>
#include <string.h>

#include "alloc-util.h"
#include "string-util.h"

#define CA_NAME "vesper-webhook-ca"
#define CA_USEC (730 * USEC_PER_DAY)
#define SERVING_USEC (90 * USEC_PER_DAY)
/* So long before a new CA signs, and before the old one goes. */
#define KNOWN_USEC USEC_PER_HOUR
#define OLD_CA_USEC USEC_PER_DAY
#define PEM_END "-----END CERTIFICATE-----"

static char *erase_text(char *s) {
        if (s)
                erase_and_free(s, strlen(s));
        return NULL;
}

void certificate_set_done(CertificateSet *s) {
        s->bundle = mfree(s->bundle);
        s->certificate = mfree(s->certificate);
        s->ca_key = erase_text(s->ca_key);
        s->key = erase_text(s->key);
}

bool certificate_set_equal(const CertificateSet *a, const CertificateSet *b) {
        return streq_ptr(a->bundle, b->bundle) && streq_ptr(a->certificate, b->certificate) && streq_ptr(a->ca_key, b->ca_key) &&
               streq_ptr(a->key, b->key);
}

const char *certificate_step_to_string(CertificateStep s) {
        static const char *const texts[_CERTIFICATE_STEP_MAX] = {
                [CERTIFICATE_GOOD] = "kept",
                [CERTIFICATE_MAKE] = "made",
                [CERTIFICATE_REPLACE] = "replaced",
                [CERTIFICATE_NEW_CA] = "given a new CA, which signs nothing yet",
                [CERTIFICATE_SIGN] = "renewed",
                [CERTIFICATE_DROP_OLD_CA] = "freed of its old CA",
        };

        return s >= 0 && s < _CERTIFICATE_STEP_MAX ? texts[s] : NULL;
}

/* Behind the first certificate in it; NULL: it has one, or none. Borrowed. */
static const char *second_of(const char *bundle) {
        const char *end = strstr(strempty(bundle), PEM_END);

        return end ? strstr(end, "-----BEGIN CERTIFICATE-----") : NULL;
}

/* When two thirds of its life are over. */
static usec_t renewed_at(const CertificateTimes *t) {
        usec_t life = usec_sub(t->end_usec, t->made_usec);

        return usec_add(t->made_usec, life / 3 * 2);
}

static const char *what_is_wrong(const CertificateSet *s, usec_t now) {
        CertificateTimes ca, certificate;

        if (!certificate_times(s->bundle, &ca))
                return "ca.crt is no certificate";
        if (!certificate_has_key(s->bundle, s->ca_key))
                return "ca.key is not the key of the first certificate in ca.crt";
        if (!certificate_is_signed_by(s->bundle, s->bundle))
                return "the first certificate in ca.crt is none of a CA";
        if (now >= ca.end_usec)
                return "the CA has expired";
        if (!certificate_times(s->certificate, &certificate))
                return "tls.crt is no certificate";
        if (!certificate_has_key(s->certificate, s->key))
                return "tls.key is not the key of tls.crt";
        if (!certificate_is_signed_by(s->certificate, s->bundle) && !certificate_is_signed_by(s->certificate, second_of(s->bundle)))
                return "tls.crt is signed by none of ca.crt";
        return NULL;
}

CertificatePlan certificate_plan(const CertificateSet *s, char *const *names, bool bundle_stands, usec_t now_usec) {
        const char *second, *wrong = s ? what_is_wrong(s, now_usec) : NULL;
        CertificateTimes ca, certificate;
        usec_t may_sign, renewed;

        if (!s)
                return (CertificatePlan){ .step = CERTIFICATE_MAKE };
        if (wrong)
                return (CertificatePlan){ .step = CERTIFICATE_REPLACE, .reason = wrong };
        (void) certificate_times(s->bundle, &ca);
        (void) certificate_times(s->certificate, &certificate);
        second = second_of(s->bundle);
        renewed = renewed_at(&certificate);
        may_sign = second ? usec_add(ca.made_usec, KNOWN_USEC) : 0;

        if (!certificate_is_signed_by(s->certificate, s->bundle)) {
                if (!bundle_stands)
                        may_sign = MAX(may_sign, usec_add(now_usec, USEC_PER_MINUTE));
                return now_usec >= may_sign ? (CertificatePlan){ .step = CERTIFICATE_SIGN }
                                            : (CertificatePlan){ .step = CERTIFICATE_GOOD, .until_usec = may_sign };
        }
        if (now_usec >= renewed || !certificate_covers(s->certificate, names))
                return (CertificatePlan){ .step = CERTIFICATE_SIGN };
        if (second) {
                usec_t gone = usec_add(certificate.made_usec, OLD_CA_USEC);

                return now_usec >= gone ? (CertificatePlan){ .step = CERTIFICATE_DROP_OLD_CA }
                                        : (CertificatePlan){ .step = CERTIFICATE_GOOD, .until_usec = MIN(gone, renewed) };
        }
        if (now_usec >= renewed_at(&ca))
                return (CertificatePlan){ .step = CERTIFICATE_NEW_CA };
        return (CertificatePlan){ .step = CERTIFICATE_GOOD, .until_usec = MIN(renewed, renewed_at(&ca)) };
}

static int copy_text(char **to, const char *from) {
        *to = from ? strdup(from) : NULL;
        return from && !*to ? -ENOMEM : 0;
}

static int certificate_set_copy(const CertificateSet *s, CertificateSet *ret) {
        if (copy_text(&ret->bundle, s->bundle) < 0 || copy_text(&ret->ca_key, s->ca_key) < 0 ||
            copy_text(&ret->certificate, s->certificate) < 0 || copy_text(&ret->key, s->key) < 0)
                return -ENOMEM;
        return 0;
}

static int sign_anew(CertificateSet *s, char *const *names, usec_t now) {
        s->certificate = mfree(s->certificate);
        s->key = erase_text(s->key);
        return certificate_make(s->bundle, s->ca_key, names, now, SERVING_USEC, &s->certificate, &s->key);
}

static int add_ca(CertificateSet *s, usec_t now) {
        _cleanup_free_ char *old = s->bundle, *ca = NULL;
        int r;

        s->bundle = NULL;
        s->ca_key = erase_text(s->ca_key);
        r = certificate_make_ca(CA_NAME, now, CA_USEC, &ca, &s->ca_key);
        if (r < 0)
                return r;
        s->bundle = strf("%s%s", ca, strempty(old));
        return s->bundle ? 0 : -ENOMEM;
}

static void drop_old_ca(CertificateSet *s) {
        char *second = (char *) second_of(s->bundle);

        if (second)
                *second = 0;
}

int certificate_plan_apply(CertificateStep step, const CertificateSet *s, char *const *names, usec_t now_usec, CertificateSet *ret) {
        CertificateSet made = { 0 };
        int r = 0;

        if (step != CERTIFICATE_MAKE && step != CERTIFICATE_REPLACE)
                r = certificate_set_copy(s, &made);
        else
                r = add_ca(&made, now_usec);
        if (r >= 0 && step == CERTIFICATE_NEW_CA)
                r = add_ca(&made, now_usec);
        if (r >= 0 && step == CERTIFICATE_DROP_OLD_CA)
                drop_old_ca(&made);
        if (r >= 0 && (step == CERTIFICATE_MAKE || step == CERTIFICATE_REPLACE || step == CERTIFICATE_SIGN))
                r = sign_anew(&made, names, now_usec);
        if (r < 0) {
                certificate_set_done(&made);
                return r;
        }
        *ret = made;
        return 0;
}

bool certificate_set_serves(const CertificateSet *s, char *const *names, usec_t now_usec) {
        CertificateTimes t;

        return !what_is_wrong(s, now_usec) && certificate_times(s->certificate, &t) && now_usec < t.end_usec &&
               certificate_covers(s->certificate, names);
}
