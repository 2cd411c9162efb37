/* SPDX-License-Identifier: Apache-2.0 */
#include "pem-check.h"

#include <limits.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "macro.h"

static void bio_freep(BIO **b) {
        BIO_free(*b);
}

static void x509_freep(X509 **x) {
        X509_free(*x);
}

static void evp_pkey_freep(EVP_PKEY **k) {
        EVP_PKEY_free(*k);
}

/* OpenSSL's own callback would ask at the terminal. */
static int no_password(char *buf, int size, int rwflag, void *userdata) {
        return -1;
}

static BIO *open_pem(const void *pem, size_t size) {
        return size <= INT_MAX ? BIO_new_mem_buf(pem, (int) size) : NULL;
}

static X509 *read_certificate(const void *pem, size_t size) {
        _cleanup_(bio_freep) BIO *b = open_pem(pem, size);

        return b ? PEM_read_bio_X509(b, NULL, no_password, NULL) : NULL;
}

static EVP_PKEY *read_key(const void *pem, size_t size) {
        _cleanup_(bio_freep) BIO *b = open_pem(pem, size);

        return b ? PEM_read_bio_PrivateKey(b, NULL, no_password, NULL) : NULL;
}

static usec_t end_of(const X509 *x) {
        struct tm tm;
        time_t t;

        if (ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm) != 1)
                return 0;
        t = timegm(&tm);
        return t > 0 ? (usec_t) t * USEC_PER_SEC : 0;
}

int pem_check_certificate(const void *pem, size_t size) {
        _cleanup_(x509_freep) X509 *x = read_certificate(pem, size);

        ERR_clear_error();
        return x ? 0 : -EBADMSG;
}

int pem_check_pair(const void *cert_pem, size_t cert_size, const void *key_pem, size_t key_size,
                   usec_t *ret_expires_usec) {
        _cleanup_(x509_freep) X509 *x = read_certificate(cert_pem, cert_size);
        _cleanup_(evp_pkey_freep) EVP_PKEY *key = read_key(key_pem, key_size);
        int pair = x && key ? X509_check_private_key(x, key) : 0;

        assert(ret_expires_usec);
        ERR_clear_error();
        if (!x || !key)
                return -EBADMSG;
        if (pair != 1)
                return -EKEYREJECTED;
        *ret_expires_usec = end_of(x);
        return 0;
}
