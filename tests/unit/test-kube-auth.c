/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "cmocka-test.h"
#include "fake-child.h"
#include "kube-auth.h"
#include "string-util.h"
#include "strv.h"

#define START_WALL (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define SEC USEC_PER_SEC
#define V1 "client.authentication.k8s.io/v1"

/* -- certificates of our own ---------------------------------------------------------------------------- */

typedef struct Pair {
        char *cert, *key; /* PEM */
} Pair;

static char *bio_text(BIO *b) {
        char *data, *text;
        long n = BIO_get_mem_data(b, &data);

        assert_true(n > 0);
        text = memdup_str(data, (size_t) n);
        assert_non_null(text);
        BIO_free(b);
        return text;
}

static Pair pair_new(long serial) {
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *x = X509_new();
        BIO *cert_pem = BIO_new(BIO_s_mem()), *key_pem = BIO_new(BIO_s_mem());
        Pair p;

        assert_non_null(key);
        assert_non_null(x);
        assert_int_equal(ASN1_INTEGER_set(X509_get_serialNumber(x), serial), 1);
        assert_non_null(X509_gmtime_adj(X509_getm_notBefore(x), -3600));
        assert_int_equal(ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "20301121050300Z"), 1);
        assert_int_equal(X509_set_pubkey(x, key), 1);
        assert_true(X509_sign(x, key, EVP_sha256()) > 0);
        assert_int_equal(PEM_write_bio_X509(cert_pem, x), 1);
        assert_int_equal(PEM_write_bio_PrivateKey(key_pem, key, NULL, NULL, 0, NULL, NULL), 1);
        p = (Pair){ bio_text(cert_pem), bio_text(key_pem) };
        X509_free(x);
        EVP_PKEY_free(key);
        return p;
}

static void pair_done(Pair *p) {
        free(p->cert);
        free(p->key);
}

/* -- a folder of files, one identity, virtual time ------------------------------------------------------ */

typedef struct World {
        char folder[64];
        Pair a, b;
        VirtualTime *time;
        Loop *loop;
        FakeChildren *children;
        KubeAuth *auth;
        char *message;
        unsigned n_ready, n_heard;
        KubeAuthListener listener;
        char *cert_file, *key_file, *ca_file, *token_file;
} World;

static void on_ready(void *userdata) {
        ((World *) userdata)->n_ready++;
}

static void on_heard(void *userdata) {
        ((World *) userdata)->n_heard++;
}

static char *file_path(const World *w, const char *name) {
        char *path = strf("%s/%s", w->folder, name);

        assert_non_null(path);
        return path;
}

static World *world_new(void) {
        World *w = new0(World, 1);

        assert_non_null(w);
        strcpy(w->folder, "/tmp/test-kube-auth-XXXXXX");
        assert_non_null(mkdtemp(w->folder));
        w->a = pair_new(1);
        w->b = pair_new(2);
        w->cert_file = file_path(w, "tls.crt");
        w->key_file = file_path(w, "tls.key");
        w->ca_file = file_path(w, "ca.crt");
        w->token_file = file_path(w, "token");
        assert_return_code(virtual_time_new(START_WALL, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        w->children = fake_children_new(w->loop);
        return w;
}

static World *world_free(World *w) {
        char *const files[] = { w->cert_file, w->key_file, w->ca_file, w->token_file };

        if (w->listener.ready && w->auth)
                kube_auth_unlisten(w->auth, &w->listener);
        kube_auth_free(w->auth);
        fake_children_free(w->children);
        loop_free(w->loop);
        virtual_time_free(w->time);
        for (size_t i = 0; i < ELEMENTSOF(files); i++) {
                (void) unlink(files[i]);
                free(files[i]);
        }
        (void) rmdir(w->folder);
        pair_done(&w->a);
        pair_done(&w->b);
        free(w->message);
        return mfree(w);
}
DEFINE_FREEP(World, world_free);

/* As kubelet and projected volumes do: a new file takes the name. */
static void put(const char *path, const char *text) {
        _cleanup_free_ char *fresh = strf("%s.new", path);
        FILE *f = fopen(fresh, "we");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_return_code(rename(fresh, path), errno);
}

static int start(World *w, const KubeConfig *c) {
        int r = kube_auth_new(w->loop, NULL, &w->children->runner, c, on_ready, w, &w->auth, &w->message);

        if (r >= 0) {
                w->listener = (KubeAuthListener){ .ready = on_heard, .userdata = w };
                kube_auth_listen(w->auth, &w->listener);
        }
        return r;
}

static void run_for(World *w, usec_t usec) {
        usec_t end = virtual_time_now(w->time) + usec;

        while (virtual_time_step(w->time, end) > 0)
                ;
}

static void assert_token(World *w, const char *expected) {
        const char *authorization;
        HttpTls *tls;

        assert_true(kube_auth_get(w->auth, &tls, &authorization));
        if (expected)
                assert_string_equal(authorization, expected);
        else
                assert_null(authorization);
}

static bool has_credential(World *w) {
        const char *authorization;
        HttpTls *tls;

        return kube_auth_get(w->auth, &tls, &authorization);
}

static HttpTls *assert_pair(World *w, const Pair *p) {
        const char *authorization;
        HttpTls *tls;

        assert_true(kube_auth_get(w->auth, &tls, &authorization));
        assert_non_null(tls);
        assert_string_equal(http_tls_config(tls)->client_cert_pem, p->cert);
        assert_string_equal(http_tls_config(tls)->client_key_pem, p->key);
        return tls;
}

/* -- files ---------------------------------------------------------------------------------------------- */

static KubeConfig cert_config(const World *w) {
        return (KubeConfig){
                .server = (char *) "https://api",
                .ca_file = w->ca_file,
                .cert_file = w->cert_file,
                .key_file = w->key_file,
                .tls_server_name = (char *) "kubernetes",
        };
}

TEST_CASE(test_none) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = { .server = (char *) "http://api" };
        const char *authorization;
        HttpTls *tls;

        assert_return_code(start(w, &c), 0);
        assert_true(kube_auth_get(w->auth, &tls, &authorization));
        assert_null(tls);
        assert_null(authorization);
        assert_string_equal(kube_auth_describe(w->auth), "no credential");
        assert_null(kube_auth_problem(w->auth));
        assert_false(kube_auth_rejected(w->auth));
}

TEST_CASE(test_certificate) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = cert_config(w);
        _cleanup_free_ char *expected =
                strf("client certificate %s (expires 2030-11-21T05:03:00Z)", w->cert_file);
        const HttpTlsConfig *t;

        put(w->ca_file, w->b.cert);
        put(w->cert_file, w->a.cert);
        put(w->key_file, w->a.key);
        assert_return_code(start(w, &c), 0);
        t = http_tls_config(assert_pair(w, &w->a));
        assert_string_equal(t->ca_pem, w->b.cert);
        assert_string_equal(t->server_name, "kubernetes");
        assert_false(t->insecure);
        assert_token(w, NULL);
        assert_string_equal(kube_auth_describe(w->auth), expected);
}

TEST_CASE(test_certificate_rotates) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = cert_config(w);
        HttpTls *first;

        put(w->ca_file, w->b.cert);
        put(w->cert_file, w->a.cert);
        put(w->key_file, w->a.key);
        assert_return_code(start(w, &c), 0);
        first = assert_pair(w, &w->a);

        /* The certificate is there, its key is not: the old pair serves. */
        put(w->cert_file, w->b.cert);
        run_for(w, 5 * SEC);
        assert_ptr_equal(assert_pair(w, &w->a), first);
        assert_non_null(strstr(kube_auth_problem(w->auth), "does not belong to the certificate"));

        /* Within the same second nobody looks. */
        put(w->key_file, w->b.key);
        assert_ptr_equal(assert_pair(w, &w->a), first);
        run_for(w, SEC);
        assert_pair(w, &w->b);
        assert_null(kube_auth_problem(w->auth));

        /* In the middle of the next rotation a file is missing, then empty. */
        assert_return_code(unlink(w->key_file), errno);
        run_for(w, 5 * SEC);
        assert_pair(w, &w->b);
        put(w->key_file, "");
        run_for(w, 5 * SEC);
        assert_pair(w, &w->b);
        put(w->key_file, w->a.key);
        put(w->cert_file, w->a.cert);
        run_for(w, SEC);
        assert_pair(w, &w->a);
}

TEST_CASE(test_kubelet_file) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_free_ char *a = strf("%s%s", w->a.cert, w->a.key), *b = strf("%s%s", w->b.cert, w->b.key);
        const KubeConfig c = { .server = (char *) "https://api",
                               .cert_file = w->cert_file,
                               .key_file = w->cert_file };
        const Pair first = { a, a }, second = { b, b };

        put(w->cert_file, a);
        assert_return_code(start(w, &c), 0);
        assert_pair(w, &first);
        put(w->cert_file, b);
        run_for(w, SEC);
        assert_pair(w, &second);
}

TEST_CASE(test_same_content_same_connections) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = cert_config(w);
        HttpTls *first;

        put(w->ca_file, w->b.cert);
        put(w->cert_file, w->a.cert);
        put(w->key_file, w->a.key);
        assert_return_code(start(w, &c), 0);
        first = assert_pair(w, &w->a);
        put(w->cert_file, w->a.cert);
        run_for(w, SEC);
        assert_ptr_equal(assert_pair(w, &w->a), first);

        put(w->ca_file, w->a.cert);
        run_for(w, SEC);
        assert_string_equal(http_tls_config(assert_pair(w, &w->a))->ca_pem, w->a.cert);
}

TEST_CASE(test_embedded) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = {
                .server = (char *) "https://api",
                .insecure_skip_tls_verify = true,
                .cert_data = w->a.cert,
                .cert_data_size = strlen(w->a.cert),
                .key_data = w->a.key,
                .key_data_size = strlen(w->a.key),
        };

        assert_return_code(start(w, &c), 0);
        assert_true(http_tls_config(assert_pair(w, &w->a))->insecure);
        assert_string_equal(kube_auth_describe(w->auth),
                            "client certificate of the kubeconfig (expires 2030-11-21T05:03:00Z)");
}

TEST_CASE(test_token) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = { .server = (char *) "https://api", .token = (char *) "abc" };

        assert_return_code(start(w, &c), 0);
        assert_token(w, "Bearer abc");
        assert_string_equal(kube_auth_describe(w->auth), "token of the kubeconfig");
}

TEST_CASE(test_token_file) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = { .server = (char *) "https://api",
                               .ca_file = w->ca_file,
                               .token_file = w->token_file };
        _cleanup_free_ char *described = strf("token %s", w->token_file);

        put(w->ca_file, w->a.cert);
        put(w->token_file, "first\n");
        assert_return_code(start(w, &c), 0);
        assert_token(w, "Bearer first");
        assert_string_equal(kube_auth_describe(w->auth), described);

        put(w->token_file, "second");
        assert_token(w, "Bearer first"); /* not twice in a second */
        run_for(w, SEC);
        assert_token(w, "Bearer second");

        put(w->token_file, "");
        run_for(w, SEC);
        assert_token(w, "Bearer second");
        assert_non_null(strstr(kube_auth_problem(w->auth), "no token in it"));
        assert_return_code(unlink(w->token_file), errno);
        run_for(w, USEC_PER_HOUR);
        assert_token(w, "Bearer second");
        put(w->token_file, "third");
        run_for(w, SEC);
        assert_token(w, "Bearer third");
        assert_null(kube_auth_problem(w->auth));
}

/* A file system that shows no change by stat() (a write in place within its clock's tick). */
TEST_CASE(test_token_file_every_minute) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = { .server = (char *) "http://api", .token_file = w->token_file };
        struct timespec times[2];
        struct stat st;
        FILE *f;

        put(w->token_file, "first");
        assert_return_code(start(w, &c), 0);
        assert_return_code(stat(w->token_file, &st), errno);
        f = fopen(w->token_file, "r+e");
        assert_non_null(f);
        assert_true(fputs("other", f) >= 0);
        assert_int_equal(fclose(f), 0);
        times[0] = st.st_atim;
        times[1] = st.st_mtim;
        assert_return_code(utimensat(AT_FDCWD, w->token_file, times, 0), errno);

        run_for(w, 50 * SEC);
        assert_token(w, "Bearer first");
        run_for(w, 10 * SEC);
        assert_token(w, "Bearer other");
}

/* Whatever of a file is another one, it is read; what is the same is not (that is the minute's). */
TEST_CASE(test_what_is_a_change) {
        static const struct {
                const char *what, *then;
                bool in_place;
                struct timespec later; /* of its time */
                bool seen;
        } rows[] = {
                { "another file of the same size and time", "other", false, { 0 }, true },
                { "the same file, of another size", "longer", true, { 0 }, true },
                { "the same file, a nanosecond later", "other", true, { .tv_nsec = 1 }, true },
                { "the same file, a second later", "other", true, { .tv_sec = 1 }, true },
                { "in nothing", "other", true, { 0 }, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                _cleanup_free_ char *kept = strf("%s.kept", w->token_file),
                                    *expected = strf("Bearer %s", rows[i].seen ? rows[i].then : "first");
                const KubeConfig c = { .server = (char *) "http://api", .token_file = w->token_file };
                struct timespec times[2];
                struct stat st;

                print_message("%s\n", rows[i].what);
                put(w->token_file, "first");
                assert_return_code(stat(w->token_file, &st), errno);
                st.st_mtim.tv_nsec = 5;
                times[0] = times[1] = st.st_mtim;
                assert_return_code(utimensat(AT_FDCWD, w->token_file, times, 0), errno);
                assert_return_code(start(w, &c), 0);
                if (rows[i].in_place) {
                        FILE *f = fopen(w->token_file, "r+e");

                        assert_non_null(f);
                        assert_true(fputs(rows[i].then, f) >= 0);
                        assert_int_equal(fclose(f), 0);
                } else {
                        assert_return_code(link(w->token_file, kept), errno); /* its inode is not free */
                        put(w->token_file, rows[i].then);
                        assert_return_code(unlink(kept), errno);
                }
                times[1].tv_sec += rows[i].later.tv_sec;
                times[1].tv_nsec += rows[i].later.tv_nsec;
                assert_return_code(utimensat(AT_FDCWD, w->token_file, times, 0), errno);
                run_for(w, SEC);
                assert_token(w, expected);
        }
}

TEST_CASE(test_rejected_looks_at_once) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = { .server = (char *) "http://api", .token_file = w->token_file };

        put(w->token_file, "first");
        assert_return_code(start(w, &c), 0);
        put(w->token_file, "second");
        assert_token(w, "Bearer first");
        assert_false(kube_auth_rejected(w->auth));
        assert_token(w, "Bearer second");

        put(w->token_file, "third");
        assert_false(kube_auth_rejected(w->auth));
        assert_token(w, "Bearer second");
        run_for(w, 10 * SEC - 1);
        assert_token(w, "Bearer third"); /* it is looked at once a second anyway */
        put(w->token_file, "fourth");
        assert_false(kube_auth_rejected(w->auth));
        assert_token(w, "Bearer third");
        run_for(w, 1);
        assert_false(kube_auth_rejected(w->auth));
        assert_token(w, "Bearer fourth");
}

/* What is wrong at the start is told at the start. */
TEST_CASE(test_refused) {
        static const struct {
                const char *what;
                const char *ca, *cert, *key, *token; /* NULL: no such file; "a" and "b": of that pair */
                bool by_token;
                int error;
                const char *message; /* %s is the folder */
        } rows[] = {
                { "no CA file", NULL, "a", "a", NULL, false, -ENOENT,
                  "%s/ca.crt: No such file or directory" },
                { "a CA that is none", "hello", "a", "a", NULL, false, -EBADMSG,
                  "%s/ca.crt: no certificate in PEM" },
                { "no certificate", "b", NULL, "a", NULL, false, -ENOENT,
                  "%s/tls.crt: No such file or directory" },
                { "no key", "b", "a", NULL, NULL, false, -ENOENT, "%s/tls.key: No such file or directory" },
                { "another key", "b", "a", "b", NULL, false, -EKEYREJECTED,
                  "%1$s/tls.key does not belong to the certificate %1$s/tls.crt" },
                { "a key that is none", "b", "a", "hello", NULL, false, -EBADMSG,
                  "%1$s/tls.crt and %1$s/tls.key: not a certificate and a key without password, in PEM" },
                { "no token file", "b", NULL, NULL, NULL, true, -ENOENT,
                  "%s/token: No such file or directory" },
                { "an empty token file", "b", NULL, NULL, "\n", true, -EBADMSG, "%s/token: no token in it" },
                { "a token of two words", "b", NULL, NULL, "a b", true, -EBADMSG,
                  "%s/token: no token in it" },
                { "a token of two lines", "b", NULL, NULL, "a\nX-Evil: b", true, -EBADMSG,
                  "%s/token: no token in it" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                KubeConfig c = cert_config(w);
                _cleanup_strbuf_ StrBuf expected = { 0 };
                const struct {
                        const char *path, *content, *a, *b;
                } files[] = {
                        { w->ca_file, rows[i].ca, w->a.cert, w->b.cert },
                        { w->cert_file, rows[i].cert, w->a.cert, w->b.cert },
                        { w->key_file, rows[i].key, w->a.key, w->b.key },
                        { w->token_file, rows[i].token, "a", "b" },
                };

                print_message("%s\n", rows[i].what);
                for (size_t k = 0; k < ELEMENTSOF(files); k++)
                        if (files[k].content)
                                put(files[k].path, streq(files[k].content, "a")   ? files[k].a
                                                   : streq(files[k].content, "b") ? files[k].b
                                                                                  : files[k].content);
                if (rows[i].by_token)
                        c = (KubeConfig){ .server = c.server,
                                          .ca_file = c.ca_file,
                                          .token_file = w->token_file };

                for (const char *p = rows[i].message; *p;) {
                        const char *rest = startswith(p, "%s") ?: startswith(p, "%1$s");

                        if (rest)
                                strbuf_add(&expected, w->folder);
                        else
                                strbuf_add_char(&expected, *p);
                        p = rest ? rest : p + 1;
                }
                assert_int_equal(start(w, &c), rows[i].error);
                assert_null(w->auth);
                assert_string_equal(w->message, strbuf_str(&expected));
        }
}

/* -- exec plugin, virtual time -------------------------------------------------------------------------- */

#define ANSWER(status) "{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{" status "}}"
#define TOKEN(t) ANSWER("\"token\":\"" t "\"")
#define TOKEN_UNTIL(t, until) ANSWER("\"token\":\"" t "\",\"expirationTimestamp\":\"" until "\"")

static int start_exec(World *w) {
        const KubeConfig c = {
                .server = (char *) "https://api",
                .exec_command = (char *) "login",
                .exec_api_version = (char *) V1,
                .exec_install_hint = (char *) "get it",
        };

        return start(w, &c);
}

static void answer(World *w, const char *output) {
        fake_children_answer(w->children, (FakeChildAnswer){ .after_usec = SEC, .output = output });
}

TEST_CASE(test_exec) {
        _cleanup_(world_freep) World *w = world_new();
        const char *authorization;
        HttpTls *tls;

        answer(w, TOKEN("t1"));
        assert_return_code(start_exec(w), 0);
        assert_false(has_credential(w));
        assert_int_equal(w->n_ready, 0);
        run_for(w, SEC);
        assert_int_equal(w->n_ready, 1);
        assert_int_equal(w->n_heard, 1);
        assert_true(kube_auth_get(w->auth, &tls, &authorization));
        assert_non_null(tls);
        assert_string_equal(authorization, "Bearer t1");
        assert_string_equal(kube_auth_describe(w->auth), "exec plugin login");
        assert_string_equal(w->children->argv, "login");
        assert_int_equal(w->children->timeout_usec, 30 * SEC);

        /* Without an end it is kept until the server says no. */
        run_for(w, 30 * USEC_PER_DAY);
        assert_int_equal(w->children->n_started, 1);
        answer(w, TOKEN("t2"));
        assert_true(kube_auth_rejected(w->auth));
        assert_true(kube_auth_rejected(w->auth)); /* that look is under way */
        assert_token(w, "Bearer t1");
        run_for(w, SEC);
        assert_token(w, "Bearer t2");
        assert_false(kube_auth_rejected(w->auth));
        assert_int_equal(w->children->n_started, 2);
}

/* When the next run begins, for a credential that came at 08:00:01. */
TEST_CASE(test_exec_refreshes_ahead) {
        static const struct {
                const char *what, *until;
                usec_t at_usec; /* since 08:00:00 */
                bool late;      /* it has ended already, by our clock */
        } rows[] = {
                { "an hour: a tenth ahead", "2027-01-15T09:00:01Z", SEC + 54 * USEC_PER_MINUTE },
                { "a quarter: a minute and a half ahead", "2027-01-15T08:15:01Z",
                  SEC + 13 * USEC_PER_MINUTE + 30 * SEC },
                { "five minutes: a minute ahead", "2027-01-15T08:05:01Z", SEC + 4 * USEC_PER_MINUTE },
                { "90 seconds: at half its life", "2027-01-15T08:01:31Z", SEC + 45 * SEC },
                { "5 seconds: not more often than every ten", "2027-01-15T08:00:06Z", SEC + 10 * SEC },
                { "ended already by our clock: in a minute", "2027-01-15T07:00:00Z", SEC + USEC_PER_MINUTE,
                  true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                _cleanup_free_ char *output =
                        strf(ANSWER("\"token\":\"t1\",\"expirationTimestamp\":\"%s\""), rows[i].until);

                print_message("%s\n", rows[i].what);
                answer(w, output);
                answer(w, TOKEN("t2"));
                assert_return_code(start_exec(w), 0);
                run_for(w, rows[i].at_usec - 1);
                assert_int_equal(w->children->n_started, 1);
                if (rows[i].late) /* the server is to decide */
                        assert_token(w, "Bearer t1");
                run_for(w, 1);
                assert_int_equal(w->children->n_started, 2);
                run_for(w, SEC);
                assert_token(w, "Bearer t2");
        }
}

TEST_CASE(test_exec_failing_keeps_the_old) {
        _cleanup_(world_freep) World *w = world_new();

        answer(w, TOKEN_UNTIL("t1", "2027-01-15T08:10:01Z"));
        for (size_t i = 0; i < 14; i++)
                fake_children_answer(
                        w->children,
                        (FakeChildAnswer){ .after_usec = SEC, .exit_status = 254, .errors = "throttled\n" });
        assert_return_code(start_exec(w), 0);

        /* It fails from 08:09:01 on, again and again, but ever more slowly. */
        run_for(w, 9 * USEC_PER_MINUTE + 30 * SEC);
        assert_token(w, "Bearer t1");
        assert_in_range(w->children->n_started, 3, 7);
        assert_string_equal(kube_auth_problem(w->auth), "exec plugin login: exit status 254: throttled");
        run_for(w, 30 * SEC);
        assert_token(w, "Bearer t1");
        run_for(w, SEC);
        assert_false(has_credential(w)); /* its end */
        assert_true(w->n_ready >= 3);    /* whoever waits is told that a look is over */
        run_for(w, 3 * USEC_PER_MINUTE);
        assert_in_range(w->children->n_started, 7, 13);
}

TEST_CASE(test_exec_recovers) {
        _cleanup_(world_freep) World *w = world_new();

        fake_children_answer(w->children, (FakeChildAnswer){ .start_error = -EAGAIN });
        fake_children_answer(w->children, (FakeChildAnswer){ .error = -ETIMEDOUT });
        answer(w, TOKEN("t1"));
        assert_return_code(start_exec(w), 0);
        assert_string_equal(kube_auth_problem(w->auth),
                            "exec plugin login: Resource temporarily unavailable");
        assert_false(has_credential(w));
        run_for(w, 10 * SEC);
        assert_token(w, "Bearer t1");
        assert_null(kube_auth_problem(w->auth));
}

/* What failed before a credential came says nothing of what fails after it. */
TEST_CASE(test_exec_fails_again) {
        _cleanup_(world_freep) World *w = world_new();
        usec_t failed;

        for (size_t i = 0; i < 5; i++)
                fake_children_answer(w->children, (FakeChildAnswer){ .exit_status = 1 });
        answer(w, TOKEN("t1"));
        fake_children_answer(w->children, (FakeChildAnswer){ .exit_status = 1 });
        answer(w, TOKEN("t2"));
        assert_return_code(start_exec(w), 0);
        run_for(w, 2 * USEC_PER_MINUTE);
        assert_token(w, "Bearer t1");
        assert_int_equal(w->children->n_started, 6);
        assert_true(kube_auth_rejected(w->auth));
        failed = virtual_time_now(w->time);
        while (w->children->n_started < 8)
                assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
        assert_in_range(virtual_time_now(w->time) - failed, 800 * USEC_PER_MSEC, 1200 * USEC_PER_MSEC);
        run_for(w, SEC);
        assert_token(w, "Bearer t2");
}

TEST_CASE(test_exec_bad_answers) {
        static const struct {
                const char *what;
                FakeChildAnswer answer;
                const char *problem;
        } rows[] = {
                { "not there", { .error = -ENOENT }, "exec plugin login: not found; get it" },
                { "no answer", { .error = -ETIMEDOUT }, "exec plugin login: no answer in 30 s" },
                { "a signal", { .error = -ECHILD }, "exec plugin login: No child processes" },
                { "a failure", { .exit_status = 1 }, "exec plugin login: exit status 1" },
                { "a failure that tells a secret",
                  { .exit_status = 1, .errors = "Authorization: Bearer abcdefghijklmnop" },
                  NULL },
                { "nothing", { .output = "" }, "exec plugin login: its output is no JSON" },
                { "a text", { .output = "token" }, "exec plugin login: its output is no JSON" },
                { "another kind",
                  { .output = "{\"kind\":\"Pod\"}" },
                  "exec plugin login: its output is no ExecCredential" },
                { "another version",
                  { .output = "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
                              "v1beta1\",\"status\":{}}" },
                  "exec plugin login: its apiVersion is not the one in the kubeconfig" },
                { "no status",
                  { .output = "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}" },
                  "exec plugin login: its output has no status" },
                { "an empty status",
                  { .output = ANSWER("") },
                  "exec plugin login: status holds neither a token nor a client certificate" },
                { "a token that is a number",
                  { .output = ANSWER("\"token\":7") },
                  "exec plugin login: a field of status is no text" },
                { "a token that would end the header",
                  { .output = TOKEN("a\\r\\nX: b") },
                  "exec plugin login: the token contains a character that no token has" },
                { "an end that is no time",
                  { .output = TOKEN_UNTIL("t", "soon") },
                  "exec plugin login: status.expirationTimestamp is no time" },
                { "a certificate without its key",
                  { .output = ANSWER("\"clientCertificateData\":\"x\"") },
                  "exec plugin login: of clientCertificateData and clientKeyData only one is there" },
                { "a key without its certificate",
                  { .output = ANSWER("\"token\":\"t\",\"clientKeyData\":\"x\"") },
                  "exec plugin login: of clientCertificateData and clientKeyData only one is there" },
                { "an empty token",
                  { .output = TOKEN("") },
                  "exec plugin login: status holds neither a token nor a client certificate" },
                { "a certificate that is none",
                  { .output = ANSWER("\"clientCertificateData\":\"x\",\"clientKeyData\":\"y\"") },
                  "exec plugin login: clientCertificateData and clientKeyData are no pair" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                fake_children_answer(w->children, rows[i].answer);
                answer(w, TOKEN("t1"));
                assert_return_code(start_exec(w), 0);
                run_for(w, SEC / 2);
                assert_false(has_credential(w));
                if (rows[i].problem)
                        assert_string_equal(kube_auth_problem(w->auth), rows[i].problem);
                else
                        assert_null(strstr(kube_auth_problem(w->auth), "abcdefghijklmnop"));
                run_for(w, 5 * SEC);
                assert_token(w, "Bearer t1");
        }
}

static char *json_lines(const char *pem) {
        StrBuf b = { 0 };

        for (; *pem; pem++)
                if (*pem == '\n')
                        strbuf_add(&b, "\\n");
                else
                        strbuf_add_char(&b, *pem);
        return strbuf_steal(&b);
}

TEST_CASE(test_exec_certificate) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_free_ char *cert = json_lines(w->a.cert), *key = json_lines(w->a.key), *output = NULL,
                            *both = NULL;
        const char *authorization;
        HttpTls *tls;

        output = strf(ANSWER("\"clientCertificateData\":\"%s\",\"clientKeyData\":\"%s\""), cert, key);
        answer(w, output);
        answer(w, output);
        assert_return_code(start_exec(w), 0);
        run_for(w, SEC);
        tls = assert_pair(w, &w->a);
        assert_token(w, NULL);

        /* The same again: connections stay. */
        assert_true(kube_auth_rejected(w->auth));
        run_for(w, SEC);
        assert_ptr_equal(assert_pair(w, &w->a), tls);

        /* A token beside it, then one alone, then the certificate alone: nothing of the last is left. */
        both = strf(ANSWER("\"token\":\"t\",\"clientCertificateData\":\"%s\",\"clientKeyData\":\"%s\""), cert,
                    key);
        answer(w, both);
        answer(w, TOKEN("u"));
        answer(w, output);
        run_for(w, 10 * SEC);
        assert_true(kube_auth_rejected(w->auth));
        run_for(w, SEC);
        assert_pair(w, &w->a);
        assert_token(w, "Bearer t");
        run_for(w, 10 * SEC);
        assert_true(kube_auth_rejected(w->auth));
        run_for(w, SEC);
        assert_token(w, "Bearer u");
        assert_true(kube_auth_get(w->auth, &tls, &authorization));
        assert_null(http_tls_config(tls)->client_cert_pem);
        run_for(w, 10 * SEC);
        assert_true(kube_auth_rejected(w->auth));
        run_for(w, SEC);
        assert_pair(w, &w->a);
        assert_token(w, NULL);
}

TEST_CASE(test_exec_environment) {
        _cleanup_(world_freep) World *w = world_new();
        KubeExecEnv env[] = { { (char *) "AWS_PROFILE", (char *) "node" },
                              { (char *) "KUBERNETES_EXEC_INFO", (char *) "not yours" } };
        char *args[] = { (char *) "get-token", (char *) "prod", NULL };
        const KubeConfig c = {
                .server = (char *) "https://api:6443",
                .tls_server_name = (char *) "kubernetes",
                .ca_data = (char *) w->a.cert,
                .ca_data_size = strlen(w->a.cert),
                .exec_command = (char *) "/bin/login",
                .exec_args = args,
                .exec_api_version = (char *) V1,
                .exec_env = env,
                .n_exec_env = ELEMENTSOF(env),
                .exec_provide_cluster_info = true,
        };
        _cleanup_free_ char *ca = base64_encode(w->a.cert, strlen(w->a.cert)), *info = NULL;

        assert_int_equal(clearenv(), 0);
        assert_return_code(setenv("AWS_PROFILE", "overridden", 1), errno);
        assert_return_code(setenv("AWS_REGION", "eu-central-1", 1), errno);
        assert_return_code(setenv("SECRET_OF_OURS", "x", 1), errno);
        assert_return_code(setenv("PATH", "/bin", 1), errno);
        assert_return_code(setenv("HOME", "/root", 1), errno);
        assert_return_code(start(w, &c), 0);
        assert_string_equal(w->children->argv, "/bin/login get-token prod");
        assert_string_equal(fake_children_env(w->children, "PATH"), "/bin");
        assert_string_equal(fake_children_env(w->children, "AWS_PROFILE"), "node");
        assert_string_equal(fake_children_env(w->children, "AWS_REGION"), "eu-central-1");
        assert_string_equal(fake_children_env(w->children, "HOME"), "/root");
        assert_null(fake_children_env(w->children, "SECRET_OF_OURS"));
        info = strf("{\"apiVersion\":\"" V1
                    "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false,\"cluster\":{"
                    "\"server\":\"https://"
                    "api:6443\",\"tls-server-name\":\"kubernetes\",\"certificate-authority-data\":\"%s\"}}}",
                    ca);
        assert_string_equal(fake_children_env(w->children, "KUBERNETES_EXEC_INFO"), info);
        assert_int_equal(strv_length(w->children->environment), 5);
}

TEST_CASE(test_exec_of_a_server_unverified) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = {
                .server = (char *) "https://api:6443",
                .insecure_skip_tls_verify = true,
                .exec_command = (char *) "/bin/login",
                .exec_api_version = (char *) V1,
                .exec_provide_cluster_info = true,
        };

        assert_return_code(start(w, &c), 0);
        assert_non_null(strstr(fake_children_env(w->children, "KUBERNETES_EXEC_INFO"),
                               "\"insecure-skip-tls-verify\":true"));
}

TEST_CASE(test_exec_without_cluster_info) {
        _cleanup_(world_freep) World *w = world_new();

        assert_return_code(start_exec(w), 0);
        assert_string_equal(fake_children_env(w->children, "KUBERNETES_EXEC_INFO"),
                            "{\"apiVersion\":\"" V1
                            "\",\"kind\":\"ExecCredential\",\"spec\":{\"interactive\":false}}");
}

/* As client-go: a token that is there makes the plugin superfluous. */
TEST_CASE(test_exec_superfluous) {
        for (size_t i = 0; i < 2; i++) {
                _cleanup_(world_freep) World *w = world_new();
                const KubeConfig c = {
                        .server = (char *) "https://api",
                        .token = i == 0 ? (char *) "abc" : NULL,
                        .token_file = i == 0 ? NULL : w->token_file,
                        .exec_command = (char *) "login",
                        .exec_api_version = (char *) V1,
                };

                put(w->token_file, "abc");
                assert_return_code(start(w, &c), 0);
                assert_token(w, "Bearer abc");
                assert_int_equal(w->children->n_started, 0);
        }
}

TEST_CASE(test_exec_without_runner) {
        _cleanup_(world_freep) World *w = world_new();
        const KubeConfig c = { .server = (char *) "https://api",
                               .exec_command = (char *) "login",
                               .exec_api_version = (char *) V1 };

        assert_int_equal(kube_auth_new(w->loop, NULL, NULL, &c, NULL, NULL, &w->auth, &w->message),
                         -ENOTSUP);
        assert_string_equal(w->message, "exec plugins cannot be run here");
}

/* -- a real plugin -------------------------------------------------------------------------------------- */

typedef struct Real {
        Loop *loop;
        Timer *timer;
        bool late;
} Real;

static void on_real_ready(void *userdata) {
        loop_exit(((Real *) userdata)->loop, 0);
}

static void on_late(Timer *t, void *userdata) {
        Real *r = userdata;

        r->late = true;
        loop_exit(r->loop, 0);
}

TEST_CASE(test_exec_real) {
        _cleanup_(world_freep) World *w = world_new();
        KubeExecEnv env[] = { { (char *) "WHO", (char *) "me" } };
        KubeConfig c = { .server = (char *) "https://api",
                         .exec_api_version = (char *) V1,
                         .exec_env = env,
                         .n_exec_env = 1 };
        Real real = { 0 };
        ChildRunner *children;
        KubeAuth *auth;
        const char *authorization;
        HttpTls *tls;

        /* Answers with what it was told. */
        put(w->token_file, "#!/bin/sh\n"
                           "case \"$KUBERNETES_EXEC_INFO\" in\n"
                           "*'\"interactive\":false'*) ;;\n"
                           "*) echo 'not told' >&2; exit 3 ;;\n"
                           "esac\n"
                           "printf '{\"apiVersion\":\"" V1
                           "\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"%s\"}}' \"$WHO\"\n");
        assert_return_code(chmod(w->token_file, 0700), errno);
        c.exec_command = w->token_file;

        assert_return_code(loop_new(&real.loop), 0);
        assert_return_code(child_runner_new(real.loop, &children), 0);
        assert_return_code(timer_new(real.loop, "late", on_late, &real, &real.timer), 0);
        timer_arm_in(real.timer, 100 * SEC);
        assert_return_code(
                kube_auth_new(real.loop, NULL, children, &c, on_real_ready, &real, &auth, &w->message), 0);
        assert_false(kube_auth_get(auth, &tls, &authorization));
        assert_return_code(loop_run(real.loop), 0);
        assert_false(real.late);
        assert_null(kube_auth_problem(auth));
        assert_true(kube_auth_get(auth, &tls, &authorization));
        assert_string_equal(authorization, "Bearer me");

        kube_auth_free(auth);
        child_runner_free(children);
        timer_free(real.timer);
        loop_free(real.loop);
}

/* -- reload --------------------------------------------------------------------------------------------- */

static int reload(World *w, const KubeConfig *c) {
        w->message = mfree(w->message);
        return kube_auth_reload(w->auth, c, &w->message);
}

TEST_CASE(test_reload_token) {
        _cleanup_(world_freep) World *w = world_new();
        KubeConfig c = { .server = (char *) "https://api", .token = (char *) "abc" };

        assert_return_code(start(w, &c), 0);
        c.token = (char *) "def";
        assert_return_code(reload(w, &c), 0);
        assert_token(w, "Bearer def");
        assert_int_equal(w->n_heard, 1);

        print_message("  one in a file, which is followed from then on\n");
        put(w->token_file, "ghi\n");
        c.token = NULL;
        c.token_file = w->token_file;
        assert_return_code(reload(w, &c), 0);
        assert_token(w, "Bearer ghi");
        put(w->token_file, "jkl\n");
        run_for(w, SEC);
        assert_token(w, "Bearer jkl");

        print_message("  what cannot be read changes nothing\n");
        c.token_file = (char *) "/nonexistent/token";
        assert_int_equal(reload(w, &c), -ENOENT);
        assert_non_null(strstr(w->message, "/nonexistent/token"));
        assert_token(w, "Bearer jkl");
        put(w->token_file, "mno\n");
        run_for(w, SEC);
        assert_token(w, "Bearer mno");

        print_message("  another server needs a restart\n");
        c.token_file = w->token_file;
        c.server = (char *) "https://other";
        assert_int_equal(reload(w, &c), -EXDEV);
        assert_non_null(strstr(w->message, "another server"));
        c.server = (char *) "https://api";
        c.insecure_skip_tls_verify = true;
        assert_int_equal(reload(w, &c), -EXDEV);
        c.insecure_skip_tls_verify = false;
        c.tls_server_name = (char *) "kubernetes";
        assert_int_equal(reload(w, &c), -EXDEV);
        assert_int_equal(w->n_heard, 2);
        assert_token(w, "Bearer mno");
}

TEST_CASE(test_reload_certificate) {
        _cleanup_(world_freep) World *w = world_new();
        KubeConfig c = cert_config(w);
        HttpTls *first;

        put(w->ca_file, w->b.cert);
        put(w->cert_file, w->a.cert);
        put(w->key_file, w->a.key);
        assert_return_code(start(w, &c), 0);
        first = assert_pair(w, &w->a);

        print_message("  the same keeps its connections\n");
        assert_return_code(reload(w, &c), 0);
        assert_ptr_equal(assert_pair(w, &w->a), first);

        print_message("  a pair that does not match is refused\n");
        c.key_file = NULL;
        c.key_data = w->b.key;
        c.key_data_size = strlen(w->b.key);
        assert_int_equal(reload(w, &c), -EKEYREJECTED);
        assert_non_null(strstr(w->message, "does not belong"));
        assert_ptr_equal(assert_pair(w, &w->a), first);

        print_message("  another pair, in the kubeconfig itself\n");
        c.cert_file = NULL;
        c.cert_data = w->b.cert;
        c.cert_data_size = strlen(w->b.cert);
        assert_return_code(reload(w, &c), 0);
        assert_pair(w, &w->b);
        assert_string_equal(kube_auth_describe(w->auth),
                            "client certificate of the kubeconfig (expires 2030-11-21T05:03:00Z)");
        put(w->cert_file, w->b.cert); /* nobody follows these any more */
        put(w->key_file, w->b.key);
        run_for(w, 5 * SEC);
        assert_pair(w, &w->b);
        assert_null(kube_auth_problem(w->auth));

        print_message("  another CA alone\n");
        c.ca_file = NULL;
        c.ca_data = w->a.cert;
        c.ca_data_size = strlen(w->a.cert);
        assert_return_code(reload(w, &c), 0);
        assert_string_equal(http_tls_config(assert_pair(w, &w->b))->ca_pem, w->a.cert);

        print_message("  a plugin instead needs a restart\n");
        c = (KubeConfig){ .server = (char *) "https://api",
                          .tls_server_name = (char *) "kubernetes",
                          .exec_command = (char *) "login",
                          .exec_api_version = (char *) V1 };
        assert_int_equal(reload(w, &c), -EXDEV);
        assert_non_null(strstr(w->message, "exec plugin"));
}

TEST_CASE(test_reload_exec) {
        _cleanup_(world_freep) World *w = world_new();
        char *arguments[] = { (char *) "eks", NULL };
        KubeExecEnv environment = { (char *) "AWS_PROFILE", (char *) "node" };
        KubeConfig c = { .server = (char *) "https://api",
                         .exec_command = (char *) "login",
                         .exec_api_version = (char *) V1,
                         .exec_args = arguments,
                         .exec_env = &environment,
                         .n_exec_env = 1 },
                   others[6];
        char *other_arguments[] = { (char *) "gke", NULL };
        KubeExecEnv other_environment = { (char *) "AWS_PROFILE", (char *) "other" };

        answer(w, TOKEN("t1"));
        assert_return_code(start(w, &c), 0);
        run_for(w, SEC);
        assert_token(w, "Bearer t1");

        answer(w, TOKEN("t2"));
        assert_return_code(reload(w, &c), 0);
        assert_return_code(reload(w, &c), 0); /* it runs already */
        assert_token(w, "Bearer t1");
        run_for(w, SEC);
        assert_token(w, "Bearer t2");
        assert_int_equal(w->children->n_started, 2);

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                others[i] = c;
        others[0].exec_command = (char *) "other";
        others[1].exec_args = other_arguments;
        others[2].exec_env = &other_environment;
        others[3].n_exec_env = 0;
        others[4].ca_file = (char *) "/ca";
        others[5].token = (char *) "instead";
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                assert_int_equal(reload(w, &others[i]), -EXDEV);
        assert_int_equal(w->children->n_started, 2);
        assert_token(w, "Bearer t2");
}

TEST_CASE(test_listeners) {
        _cleanup_(world_freep) World *w = world_new();
        KubeAuthListener second = { .ready = on_heard, .userdata = w };

        answer(w, TOKEN("t1"));
        assert_return_code(start_exec(w), 0);
        kube_auth_listen(w->auth, &second);
        run_for(w, SEC);
        assert_int_equal(w->n_heard, 2);
        kube_auth_unlisten(w->auth, &second);
        assert_true(kube_auth_rejected(w->auth));
        /* Freed while the plugin runs: nobody is told. */
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_none),
                cmocka_unit_test(test_certificate),
                cmocka_unit_test(test_certificate_rotates),
                cmocka_unit_test(test_kubelet_file),
                cmocka_unit_test(test_same_content_same_connections),
                cmocka_unit_test(test_embedded),
                cmocka_unit_test(test_token),
                cmocka_unit_test(test_token_file),
                cmocka_unit_test(test_token_file_every_minute),
                cmocka_unit_test(test_what_is_a_change),
                cmocka_unit_test(test_rejected_looks_at_once),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_exec),
                cmocka_unit_test(test_exec_refreshes_ahead),
                cmocka_unit_test(test_exec_failing_keeps_the_old),
                cmocka_unit_test(test_exec_recovers),
                cmocka_unit_test(test_exec_fails_again),
                cmocka_unit_test(test_exec_bad_answers),
                cmocka_unit_test(test_exec_certificate),
                cmocka_unit_test(test_exec_environment),
                cmocka_unit_test(test_exec_of_a_server_unverified),
                cmocka_unit_test(test_exec_without_cluster_info),
                cmocka_unit_test(test_exec_superfluous),
                cmocka_unit_test(test_exec_without_runner),
                cmocka_unit_test(test_exec_real),
                cmocka_unit_test(test_reload_token),
                cmocka_unit_test(test_reload_certificate),
                cmocka_unit_test(test_reload_exec),
                cmocka_unit_test(test_listeners),
        };
        return cmocka_run_group_tests_name("kube-auth", tests, NULL, NULL);
}
