/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes of the Secret that holds the webhook's certificate, and of its CA. Pure, but for the keys that are made.
 *
 *   ca.crt   one CA, or two while one takes over: the newer first. The API server trusts both (caBundle)
 *   ca.key   of the first
 *   tls.crt, tls.key   what each replica shows, signed by one of them
 *
 * A certificate serves 90 days, and is made anew when two thirds of that are over; a CA two years, likewise. A new CA signs
 * nothing before it has stood in the caBundle for an hour; the old one leaves it a day after nothing that it signed is shown
 * any more. So at no time is a certificate shown that an API server does not trust, however late it hears of a change within
 * that hour.
 */

#include "certificate.h"

/* Each a text in PEM, or NULL. */
typedef struct CertificateSet {
        char *bundle, *ca_key, *certificate, *key;
} CertificateSet;

void certificate_set_done(CertificateSet *s); /* keys are wiped */
bool certificate_set_equal(const CertificateSet *a, const CertificateSet *b);

typedef enum CertificateStep {
        CERTIFICATE_GOOD,        /* nothing is to be done */
        CERTIFICATE_MAKE,        /* of nothing: a CA, and what it signs */
        CERTIFICATE_REPLACE,     /* the same, for what is there is of no use */
        CERTIFICATE_NEW_CA,      /* the CA grows old: another one before it */
        CERTIFICATE_SIGN,        /* what is shown grows old, has other names, or the CA is another by now */
        CERTIFICATE_DROP_OLD_CA, /* nothing that it signed is shown any more */
        _CERTIFICATE_STEP_MAX,
} CertificateStep;

const char *certificate_step_to_string(CertificateStep s); /* for a log line: "made", "replaced" */

typedef struct CertificatePlan {
        CertificateStep step;
        usec_t until_usec;  /* GOOD: wall clock, when to look again */
        const char *reason; /* REPLACE: what is wrong. Static */
} CertificatePlan;

/* s NULL: there is no Secret. names: at least one. bundle_stands: the API server has been given s->bundle, or asks no webhook
 * of ours. */
CertificatePlan certificate_plan(const CertificateSet *s, char *const *names, bool bundle_stands, usec_t now_usec);
/* Carries the step out on a copy. 0, -ENOMEM, -EIO, -EBADMSG. */
int certificate_plan_apply(CertificateStep step, const CertificateSet *s, char *const *names, usec_t now_usec,
                           CertificateSet *ret);
/* It may be shown: a key that fits, signed by one of the bundle, covers the names, and has not ended. */
bool certificate_set_serves(const CertificateSet *s, char *const *names, usec_t now_usec);
