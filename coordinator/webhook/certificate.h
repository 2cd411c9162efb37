/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Certificates that the webhook shows, and the CA that the API server knows them by: made and judged, as PEM texts. Elliptic
 * curve P-256. Times are of the wall clock, and given by the caller; randomness (keys, serial numbers) is OpenSSL's own.
 */

#include <stdbool.h>

#include "time-util.h"

/* A certificate begins so long before it is made: whoever checks it may have a clock that is a day behind. */
#define CERTIFICATE_BACKDATED_USEC (25 * USEC_PER_HOUR)

typedef struct CertificateTimes {
        usec_t made_usec; /* as said by its beginning: CERTIFICATE_BACKDATED_USEC after it */
        usec_t end_usec;
} CertificateTimes;

/* All texts are the caller's to free; keys with erase_and_free(). 0, -ENOMEM, -EIO (the library). */
int certificate_make_ca(const char *common_name, usec_t now_usec, usec_t lifetime_usec, char **ret_certificate, char **ret_key);
/* For TLS servers of these names (DNS names and addresses, at least one). -EBADMSG: the CA cannot be read. */
int certificate_make(const char *ca_certificate, const char *ca_key, char *const *names, usec_t now_usec, usec_t lifetime_usec,
                     char **ret_certificate, char **ret_key);

/* The times of the first certificate in it. False: it is none. */
bool certificate_times(const char *pem, CertificateTimes *ret);
bool certificate_has_key(const char *certificate, const char *key); /* it is that key's */
/* Signed by the first certificate in ca, which is one of a CA. Times do not matter. */
bool certificate_is_signed_by(const char *certificate, const char *ca);
bool certificate_covers(const char *certificate, char *const *names); /* each of them */
