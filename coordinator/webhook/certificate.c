/* SPDX-License-Identifier: Apache-2.0 */
#include "certificate.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "alloc-util.h"
#include "string-util.h"
#include "strv.h"

#define SERIAL_BYTES 16u

static void bio_freep(BIO **p) {
        (void) BIO_free(*p);
}

static void x509_freep(X509 **p) {
        X509_free(*p);
}

static void key_freep(EVP_PKEY **p) {
        EVP_PKEY_free(*p);
}

/* -- PEM ------------------------------------------------------------------------------------------------ */

static char *bio_text(BIO *bio) {
        char *data;
        long size = BIO_get_mem_data(bio, &data);
        char *text = size > 0 ? malloc((size_t) size + 1) : NULL;

        if (text) {
                memcpy(text, data, (size_t) size);
                text[size] = 0;
        }
        return text;
}

static X509 *read_certificate(const char *pem) {
        _cleanup_(bio_freep) BIO *bio = pem ? BIO_new_mem_buf(pem, -1) : NULL;

        return bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
}

/* No passphrase is asked for. */
static int no_passphrase(char *buffer, int size, int for_writing, void *userdata) {
        return -1;
}

static EVP_PKEY *read_key(const char *pem) {
        _cleanup_(bio_freep) BIO *bio = pem ? BIO_new_mem_buf(pem, -1) : NULL;

        return bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
}

static int write_both(X509 *x, EVP_PKEY *key, char **ret_certificate, char **ret_key) {
        _cleanup_(bio_freep) BIO *public = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_secmem());
        char *certificate, *k;

        if (!public || !secret || PEM_write_bio_X509(public, x) != 1 ||
            PEM_write_bio_PKCS8PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) != 1)
                return -EIO;
        certificate = bio_text(public);
        k = bio_text(secret);
        if (!certificate || !k) {
                free(certificate);
                if (k)
                        erase_and_free(k, strlen(k));
                return -ENOMEM;
        }
        *ret_certificate = certificate;
        *ret_key = k;
        return 0;
}

/* -- making --------------------------------------------------------------------------------------------- */

static bool set_time(ASN1_TIME *t, usec_t usec) {
        return ASN1_TIME_adj(t, (time_t) (usec / USEC_PER_SEC), 0, 0);
}

static bool set_serial(X509 *x) {
        unsigned char bytes[SERIAL_BYTES];
        BIGNUM *n;
        bool done;

        if (RAND_bytes(bytes, sizeof(bytes)) != 1)
                return false;
        bytes[0] &= 0x7f; /* not negative */
        n = BN_bin2bn(bytes, sizeof(bytes), NULL);
        done = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x));
        BN_free(n);
        return done;
}

static bool add_extension(X509 *x, X509 *issuer, int id, const char *value) {
        X509V3_CTX context;
        X509_EXTENSION *e;
        bool done;

        X509V3_set_ctx_nodb(&context);
        X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
        e = X509V3_EXT_conf_nid(NULL, &context, id, value);
        done = e && X509_add_ext(x, e, -1) == 1;
        X509_EXTENSION_free(e);
        return done;
}

static bool set_name(X509_NAME *name, const char *common_name) {
        return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *) common_name, -1, -1, 0) == 1;
}

/* All but its extensions, issuer and signature. */
static X509 *begin(EVP_PKEY *key, const char *common_name, usec_t now, usec_t lifetime) {
        _cleanup_(x509_freep) X509 *x = X509_new();

        if (!x || X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
            !set_time(X509_getm_notBefore(x), usec_sub(now, CERTIFICATE_BACKDATED_USEC)) ||
            !set_time(X509_getm_notAfter(x), usec_add(now, lifetime)) || !set_name(X509_get_subject_name(x), common_name) ||
            X509_set_pubkey(x, key) != 1)
                return NULL;
        return TAKE_PTR(x);
}

static bool sign(X509 *x, X509 *issuer, EVP_PKEY *issuer_key) {
        return X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1 && X509_sign(x, issuer_key, EVP_sha256()) > 0;
}

int certificate_make_ca(const char *common_name, usec_t now_usec, usec_t lifetime_usec, char **ret_certificate, char **ret_key) {
        _cleanup_(key_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
        _cleanup_(x509_freep) X509 *x = key ? begin(key, common_name, now_usec, lifetime_usec) : NULL;

        if (!x || X509_set_issuer_name(x, X509_get_subject_name(x)) != 1 ||
            !add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
            !add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") ||
            !add_extension(x, x, NID_subject_key_identifier, "hash") || !sign(x, x, key))
                return -EIO;
        return write_both(x, key, ret_certificate, ret_key);
}

static bool is_address(const char *name) {
        ASN1_OCTET_STRING *a = a2i_IPADDRESS(name);

        ASN1_OCTET_STRING_free(a);
        return a;
}

/* "DNS:a,IP:::1" */
static char *alternative_names(char *const *names) {
        _cleanup_strbuf_ StrBuf b = {};

        STRV_FOREACH(name, names)
                strbuf_addf(&b, "%s%s:%s", b.size > 0 ? "," : "", is_address(*name) ? "IP" : "DNS", *name);
        return b.size > 0 ? strbuf_steal(&b) : NULL;
}

int certificate_make(const char *ca_certificate, const char *ca_key, char *const *names, usec_t now_usec, usec_t lifetime_usec,
                     char **ret_certificate, char **ret_key) {
        _cleanup_(x509_freep) X509 *ca = read_certificate(ca_certificate), *x = NULL;
        _cleanup_(key_freep) EVP_PKEY *signer = read_key(ca_key), *key = EVP_EC_gen("P-256");
        _cleanup_free_ char *alternatives = alternative_names(names);

        if (!ca || !signer)
                return -EBADMSG;
        if (!alternatives)
                return -ENOMEM;
        x = key ? begin(key, "vesper-webhook", now_usec, lifetime_usec) : NULL;
        if (!x || !add_extension(x, ca, NID_basic_constraints, "critical,CA:FALSE") ||
            !add_extension(x, ca, NID_key_usage, "critical,digitalSignature") ||
            !add_extension(x, ca, NID_ext_key_usage, "serverAuth") || !add_extension(x, ca, NID_subject_alt_name, alternatives) ||
            !add_extension(x, ca, NID_authority_key_identifier, "keyid") || !sign(x, ca, signer))
                return -EIO;
        return write_both(x, key, ret_certificate, ret_key);
}

/* -- judging -------------------------------------------------------------------------------------------- */

static bool time_of(const ASN1_TIME *t, usec_t *ret) {
        struct tm tm;
        time_t sec;

        if (ASN1_TIME_to_tm(t, &tm) != 1)
                return false;
        sec = timegm(&tm);
        *ret = sec > 0 ? (usec_t) sec * USEC_PER_SEC : 0;
        return true;
}

bool certificate_times(const char *pem, CertificateTimes *ret) {
        _cleanup_(x509_freep) X509 *x = read_certificate(pem);
        usec_t begins;

        if (!x || !time_of(X509_get0_notBefore(x), &begins) || !time_of(X509_get0_notAfter(x), &ret->end_usec))
                return false;
        ret->made_usec = usec_add(begins, CERTIFICATE_BACKDATED_USEC);
        return true;
}

bool certificate_has_key(const char *certificate, const char *key) {
        _cleanup_(x509_freep) X509 *x = read_certificate(certificate);
        _cleanup_(key_freep) EVP_PKEY *k = read_key(key);

        return x && k && X509_check_private_key(x, k) == 1;
}

bool certificate_is_signed_by(const char *certificate, const char *ca) {
        _cleanup_(x509_freep) X509 *x = read_certificate(certificate), *issuer = read_certificate(ca);

        return x && issuer && X509_check_ca(issuer) == 1 && X509_check_issued(issuer, x) == X509_V_OK &&
               X509_verify(x, X509_get0_pubkey(issuer)) == 1;
}

bool certificate_covers(const char *certificate, char *const *names) {
        _cleanup_(x509_freep) X509 *x = read_certificate(certificate);

        if (!x)
                return false;
        STRV_FOREACH(name, names)
                if ((is_address(*name) ? X509_check_ip_asc(x, *name, 0) : X509_check_host(x, *name, 0, 0, NULL)) != 1)
                        return false;
        return true;
}
