/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Certificates for tests, made when they run. Include after cmocka.h. */

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "alloc-util.h"

typedef struct TestCert {
        X509 *x509;
        EVP_PKEY *key;
        char *cert_pem, *key_pem;
} TestCert;

static inline char *test_bio_steal(BIO *bio) {
        char *data, *copy;
        long n = BIO_get_mem_data(bio, &data);

        copy = memdup_str(data, (size_t) n);
        assert_non_null(copy);
        BIO_free(bio);
        return copy;
}

static inline void test_cert_extend(X509 *x, int nid, const char *value) {
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

        assert_non_null(e);
        assert_int_equal(X509_add_ext(x, e, -1), 1);
        X509_EXTENSION_free(e);
}

/* issuer NULL: a CA that signs itself. alt_names: "DNS:a,IP:127.0.0.1" of a server, NULL of a client. */
static inline TestCert *test_cert_new(const TestCert *issuer, const char *organization, const char *name,
                                      const char *alt_names) {
        TestCert *c = new0(TestCert, 1);
        X509_NAME *subject;
        BIO *bio;

        assert_non_null(c);
        c->key = EVP_EC_gen("P-256");
        c->x509 = X509_new();
        assert_true(c->key && c->x509);
        X509_set_version(c->x509, X509_VERSION_3);
        ASN1_INTEGER_set(X509_get_serialNumber(c->x509),
                         (long) (1 + strlen(name) * 1000 + (size_t) name[0]));
        X509_gmtime_adj(X509_getm_notBefore(c->x509), -3600);
        X509_gmtime_adj(X509_getm_notAfter(c->x509), 3600);
        X509_set_pubkey(c->x509, c->key);

        subject = X509_get_subject_name(c->x509);
        if (organization)
                X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const unsigned char *) organization,
                                           -1, -1, 0);
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *) name, -1, -1, 0);
        X509_set_issuer_name(c->x509, issuer ? X509_get_subject_name(issuer->x509) : subject);

        test_cert_extend(c->x509, NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
        if (!issuer)
                test_cert_extend(c->x509, NID_key_usage, "critical,keyCertSign,cRLSign");
        else
                test_cert_extend(c->x509, NID_ext_key_usage, alt_names ? "serverAuth" : "clientAuth");
        if (alt_names)
                test_cert_extend(c->x509, NID_subject_alt_name, alt_names);
        assert_true(X509_sign(c->x509, issuer ? issuer->key : c->key, EVP_sha256()) > 0);

        bio = BIO_new(BIO_s_mem());
        assert_int_equal(PEM_write_bio_X509(bio, c->x509), 1);
        c->cert_pem = test_bio_steal(bio);
        bio = BIO_new(BIO_s_mem());
        assert_int_equal(PEM_write_bio_PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL), 1);
        c->key_pem = test_bio_steal(bio);
        return c;
}

static inline TestCert *test_cert_free(TestCert *c) {
        X509_free(c->x509);
        EVP_PKEY_free(c->key);
        free(c->cert_pem);
        free(c->key_pem);
        free(c);
        return NULL;
}
DEFINE_FREEP(TestCert, test_cert_free);
