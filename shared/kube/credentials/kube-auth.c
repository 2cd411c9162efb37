/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-auth.h"

#include <unistd.h>

#include "backoff.h"
#include "exec-credential.h"
#include "hashmap.h"
#include "log.h"
#include "pem-check.h"
#include "string-util.h"
#include "strv.h"
#include "watched-file.h"

/*
 * Two ways to a credential. Files (or data) are read when asked for: a stat() at most once a second, and
 * what changed is taken over only when it is whole: kubelet replaces certificate and key in one file, but
 * others write two, and a pair that does not match is a rotation in the middle. A plugin is run ahead of
 * time:
 *
 *      RUNNING --credential--> IDLE --max(60 s, 10 % of its life) before its end--> RUNNING
 *        | ^
 *        +-+ failure: again after 1 s .. 60 s; the old credential serves until its end
 *
 * A new TLS context makes new connections, so one is made only if what it holds differs.
 */

#define LOOK_USEC USEC_PER_SEC
#define TOKEN_REREAD_USEC USEC_PER_MINUTE
#define REJECTED_USEC (10 * USEC_PER_SEC)
#define EXEC_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define EXEC_AHEAD_USEC USEC_PER_MINUTE
/* However short the life of a credential, plugins are not run more often than this. */
#define EXEC_MIN_USEC (10 * USEC_PER_SEC)
#define TOKEN_BYTES_MAX (64u * 1024)
#define PROBLEM_BYTES_MAX 512u

struct KubeAuth {
        Loop *loop;
        Log *log;
        ChildRunner *children;
        KubeConfig *config;
        kube_auth_ready_t ready;
        void *userdata;
        List listeners;

        HttpTls *tls;        /* NULL for http:// */
        char *authorization; /* secret */
        char *description;
        char *problem;
        bool files_checked;
        usec_t files_checked_usec; /* after a 401 */

        WatchedFile ca, cert, key, token;
        usec_t checked_usec, token_read_usec;

        bool by_exec;
        bool have;           /* a plugin's credential is there */
        usec_t expires_usec; /* loop's clock */
        Child *child;
        Timer *refresh;
        Random *random;
        Backoff backoff;
};

static void erase_text(char **s) {
        if (*s)
                *s = erase_and_free(*s, strlen(*s));
}

/* Our copies while a TLS context is made. */
typedef struct PemSet {
        char *ca, *cert, *key;
        size_t ca_size, cert_size, key_size;
} PemSet;

static void pem_set_done(PemSet *p) {
        free(p->ca);
        free(p->cert);
        erase_and_free(p->key, p->key_size);
}

/* -- messages ------------------------------------------------------------------------------------------- */

/* Takes `text` (NULL: no memory for it). Told once, not once a second. */
static void set_problem(KubeAuth *a, char *text) {
        if (text && !streq_ptr(a->problem, text))
                log_debug(a->log, "No new credential, %s", text); /* a colon would hide the word after it */
        free(a->problem);
        a->problem = text;
}

static void describe(KubeAuth *a, usec_t cert_expires_usec) {
        const KubeConfig *c = a->config;
        _cleanup_strbuf_ StrBuf b = { 0 };
        char until[RFC3339_MAX];

        if (a->by_exec)
                strbuf_addf(&b, "exec plugin %s", c->exec_command);
        else if (c->cert_file || c->cert_data) {
                rfc3339_format(cert_expires_usec, until);
                strbuf_addf(&b, "client certificate %s (expires %s)",
                            c->cert_file ? c->cert_file : "of the kubeconfig", until);
        }
        if (!a->by_exec && (c->token_file || c->token))
                strbuf_addf(&b, "%stoken %s", b.size > 0 ? " and " : "",
                            c->token_file ? c->token_file : "of the kubeconfig");
        if (b.size == 0)
                strbuf_add(&b, "no credential");
        free(a->description);
        a->description = strbuf_steal(&b);
}

const char *kube_auth_describe(const KubeAuth *a) {
        assert(a);
        return strempty(a->description);
}

const char *kube_auth_problem(const KubeAuth *a) {
        assert(a);
        return a->problem;
}

/* -- TLS ------------------------------------------------------------------------------------------------ */

static bool server_is_https(const KubeAuth *a) {
        return startswith(strempty(a->config->server), "https://");
}

static bool blob_equal(const void *a, size_t a_size, const void *b, size_t b_size) {
        return !a == !b && (!a || (a_size == b_size && memcmp(a, b, a_size) == 0));
}

static bool tls_holds(const HttpTls *t, const PemSet *p) {
        const HttpTlsConfig *c = http_tls_config(t);

        return blob_equal(c->ca_pem, c->ca_pem_size, p->ca, p->ca_size) &&
               blob_equal(c->client_cert_pem, c->client_cert_pem_size, p->cert, p->cert_size) &&
               blob_equal(c->client_key_pem, c->client_key_pem_size, p->key, p->key_size);
}

static int make_tls(KubeAuth *a, const PemSet *p) {
        const HttpTlsConfig config = {
                .ca_pem = p->ca,
                .ca_pem_size = p->ca_size,
                .client_cert_pem = p->cert,
                .client_cert_pem_size = p->cert_size,
                .client_key_pem = p->key,
                .client_key_pem_size = p->key_size,
                .server_name = a->config->tls_server_name,
                .insecure = a->config->insecure_skip_tls_verify,
        };
        HttpTls *tls;
        int r;

        if (!server_is_https(a) || (a->tls && tls_holds(a->tls, p)))
                return 0;
        r = http_tls_new(&config, &tls);
        if (r < 0)
                return r;
        http_tls_unref(a->tls);
        a->tls = tls;
        return 0;
}

/* Takes the message; -ENOMEM where there is none. */
static int pem_problem(int error, char **ret_problem, char *message) {
        if (!message)
                return -ENOMEM;
        *ret_problem = message;
        return error;
}

/* From the file if there is one, else a copy of the data. */
static int load_pem(WatchedFile *f, const void *data, size_t data_size, char **ret, size_t *ret_size,
                    char **ret_problem) {
        int r;

        if (data) {
                *ret = memdup_str(data, data_size);
                *ret_size = data_size;
                return *ret ? 0 : -ENOMEM;
        }
        r = watched_file_read(f, ret, ret_size);
        if (r < 0 && r != -ENOMEM)
                return pem_problem(r, ret_problem,
                                   strf("%s: %s", f->path, strerrordesc_np(-r) ?: "cannot be read"));
        return r;
}

static int load_ca(KubeAuth *a, PemSet *p, char **ret_problem) {
        const KubeConfig *c = a->config;
        int r = load_pem(&a->ca, c->ca_data, c->ca_data_size, &p->ca, &p->ca_size, ret_problem);

        if (r >= 0 && p->ca && pem_check_certificate(p->ca, p->ca_size) < 0)
                return pem_problem(-EBADMSG, ret_problem,
                                   strf("%s: no certificate in PEM",
                                        a->ca.path ? a->ca.path : "certificate-authority-data"));
        return r;
}

static int load_pair(KubeAuth *a, PemSet *p, usec_t *ret_expires_usec, char **ret_problem) {
        const KubeConfig *c = a->config;
        const char *cert_name = a->cert.path ? a->cert.path : "client-certificate-data";
        const char *key_name = a->key.path ? a->key.path : "client-key-data";
        int r;

        r = load_pem(&a->cert, c->cert_data, c->cert_data_size, &p->cert, &p->cert_size, ret_problem);
        if (r >= 0)
                r = load_pem(&a->key, c->key_data, c->key_data_size, &p->key, &p->key_size, ret_problem);
        if (r < 0 || !p->cert || !p->key)
                return r;

        r = pem_check_pair(p->cert, p->cert_size, p->key, p->key_size, ret_expires_usec);
        if (r == -EKEYREJECTED)
                return pem_problem(r, ret_problem,
                                   strf("%s does not belong to the certificate %s", key_name, cert_name));
        if (r < 0)
                return pem_problem(r, ret_problem,
                                   strf("%s and %s: not a certificate and a key without password, in PEM",
                                        cert_name, key_name));
        return 0;
}

static int load_tls(KubeAuth *a, char **ret_problem) {
        _cleanup_(pem_set_done) PemSet p = { 0 };
        usec_t expires = 0;
        int r;

        r = load_ca(a, &p, ret_problem);
        if (r >= 0)
                r = load_pair(a, &p, &expires, ret_problem);
        if (r >= 0)
                r = make_tls(a, &p);
        if (r < 0)
                return r;

        watched_file_take(&a->ca);
        watched_file_take(&a->cert);
        watched_file_take(&a->key);
        describe(a, expires);
        return 0;
}

/* -- token ---------------------------------------------------------------------------------------------- */

static int set_token(KubeAuth *a, const char *token) {
        char *authorization = strf("Bearer %s", token);

        if (!authorization)
                return -ENOMEM;
        erase_text(&a->authorization);
        a->authorization = authorization;
        return 0;
}

static bool token_is_valid(const char *s) {
        if (*s == 0 || strlen(s) > TOKEN_BYTES_MAX)
                return false;
        for (; *s; s++)
                if ((unsigned char) *s <= ' ' || (unsigned char) *s >= 0x7f)
                        return false;
        return true;
}

static int load_token(KubeAuth *a, char **ret_problem) {
        char *text, *token;
        size_t size;
        int r;

        if (!a->token.path)
                return a->config->token ? set_token(a, a->config->token) : 0;

        a->token_read_usec = loop_now(a->loop);
        r = watched_file_read(&a->token, &text, &size);
        if (r < 0)
                return r == -ENOMEM ? r
                                    : pem_problem(r, ret_problem,
                                                  strf("%s: %s", a->token.path,
                                                       strerrordesc_np(-r) ?: "cannot be read"));
        token = strlen(text) == size ? strstrip(text) : text + size; /* a NUL inside: not a text */
        if (token_is_valid(token))
                r = set_token(a, token);
        else
                r = pem_problem(-EBADMSG, ret_problem, strf("%s: no token in it", a->token.path));
        erase_and_free(text, size);
        if (r >= 0)
                watched_file_take(&a->token);
        return r;
}

/* -- files: asked each time ----------------------------------------------------------------------------- */

static void check_files(KubeAuth *a, bool force) {
        usec_t now = loop_now(a->loop);
        char *problem = NULL;
        int r = 0;

        if (!force && now < usec_add(a->checked_usec, LOOK_USEC))
                return;
        a->checked_usec = now;

        if (force || watched_file_changed(&a->ca) || watched_file_changed(&a->cert) ||
            watched_file_changed(&a->key))
                r = load_tls(a, &problem);
        if (r >= 0 && a->token.path &&
            (force || watched_file_changed(&a->token) ||
             now >= usec_add(a->token_read_usec, TOKEN_REREAD_USEC)))
                r = load_token(a, &problem);
        /* What is in use stays in use; the next look comes in a second. */
        if (r < 0)
                set_problem(a, problem ? problem : strdup("out of memory"));
        else
                a->problem = mfree(a->problem);
}

/* -- exec plugin ---------------------------------------------------------------------------------------- */

static void notify(KubeAuth *a) {
        if (a->ready)
                a->ready(a->userdata);
        LIST_FOREACH (l, &a->listeners, KubeAuthListener, listeners)
                l->ready(l->userdata);
}

/* What a person can do something with: the last line that the plugin wrote to stderr. */
static char *last_line(const char *errors) {
        _cleanup_free_ char *copy = strdup(strempty(errors));
        char *line, *end, *clean;

        if (!copy)
                return NULL;
        line = strstrip(copy);
        end = strrchr(line, '\n');
        clean = str_sanitize(end ? end + 1 : line, PROBLEM_BYTES_MAX);
        if (clean)
                log_redact(clean);
        return clean;
}

static char *exec_failure(const KubeAuth *a, const ChildResult *result) {
        const char *command = a->config->exec_command, *hint = a->config->exec_install_hint;
        _cleanup_free_ char *line = last_line(result->errors), *clean_hint = NULL;

        if (!line)
                return NULL;
        switch (result->error) {
        case 0:
                return strf("exec plugin %s: exit status %d%s%s", command, result->exit_status,
                            *line ? ": " : "", line);
        case -ETIMEDOUT:
                return strf("exec plugin %s: no answer in %u s", command,
                            (unsigned) (EXEC_TIMEOUT_USEC / USEC_PER_SEC));
        case -ENOENT:
                clean_hint = str_sanitize(strempty(hint), PROBLEM_BYTES_MAX);
                return strf("exec plugin %s: not found%s%s", command, isempty(clean_hint) ? "" : "; ",
                            strempty(clean_hint));
        default:
                return strf("exec plugin %s: %s", command, strerrordesc_np(-result->error) ?: "failed");
        }
}

static void exec_failed(KubeAuth *a, char *problem) {
        set_problem(a, problem ? problem : strdup("out of memory"));
        timer_arm_in(a->refresh, backoff_next(&a->backoff, a->random));
}

/* When to run it again, so that no request ever waits for it. */
static usec_t refresh_time(usec_t now, usec_t expires_usec) {
        usec_t life, delay;

        if (expires_usec == USEC_INFINITY)
                return USEC_INFINITY;
        life = usec_sub(expires_usec, now);
        if (life == 0)
                return usec_add(now, EXEC_AHEAD_USEC);
        delay = usec_sub(life, MAX(EXEC_AHEAD_USEC, life / 10));
        delay = MAX(delay, life / 2);
        return usec_add(now, MAX(delay, EXEC_MIN_USEC));
}

static int exec_take(KubeAuth *a, const ExecCredential *e, char **ret_problem) {
        const char *command = a->config->exec_command;
        _cleanup_(pem_set_done) PemSet p = { 0 };
        usec_t cert_end, now = loop_now(a->loop);
        int r;

        if (e->cert_pem) {
                p.cert_size = strlen(e->cert_pem);
                p.key_size = strlen(e->key_pem);
                if (pem_check_pair(e->cert_pem, p.cert_size, e->key_pem, p.key_size, &cert_end) < 0)
                        return pem_problem(
                                -EBADMSG, ret_problem,
                                strf("exec plugin %s: clientCertificateData and clientKeyData are no pair",
                                     command));
                p.cert = memdup_str(e->cert_pem, p.cert_size);
                p.key = memdup_str(e->key_pem, p.key_size);
                if (!p.cert || !p.key)
                        return -ENOMEM;
        }
        r = load_ca(a, &p, ret_problem);
        if (r >= 0)
                r = make_tls(a, &p);
        if (r >= 0 && e->token)
                r = set_token(a, e->token);
        if (r < 0)
                return r;
        if (!e->token)
                erase_text(&a->authorization);

        /* One that has ended already was made by another clock than ours: the server is to decide. */
        a->expires_usec =
                e->expires_usec == USEC_INFINITY ? USEC_INFINITY : loop_from_wall(a->loop, e->expires_usec);
        timer_arm(a->refresh, refresh_time(now, a->expires_usec));
        if (a->expires_usec <= now)
                a->expires_usec = USEC_INFINITY;
        a->have = true;
        return 0;
}

static void on_exec_done(const ChildResult *result, void *userdata) {
        _cleanup_(exec_credential_done) ExecCredential e = { 0 };
        _cleanup_free_ char *wrong = NULL;
        KubeAuth *a = userdata;
        char *problem = NULL;
        int r;

        if (result->error < 0 || result->exit_status != 0)
                exec_failed(a, exec_failure(a, result));
        else {
                r = exec_credential_parse(result->output, result->output_size, a->config->exec_api_version,
                                          &e, &wrong);
                if (r >= 0)
                        r = exec_take(a, &e, &problem);
                if (wrong)
                        problem = strf("exec plugin %s: %s", a->config->exec_command, wrong);
                if (r < 0)
                        exec_failed(a, problem);
                else {
                        backoff_reset(&a->backoff);
                        a->problem = mfree(a->problem);
                        log_debug(a->log, "New credential from exec plugin %s", a->config->exec_command);
                }
        }
        a->child = child_free(a->child);
        notify(a);
}

static char **exec_argv(const KubeConfig *c) {
        _cleanup_strv_free_ char **argv = NULL;

        if (strv_extend(&argv, c->exec_command) < 0)
                return NULL;
        STRV_FOREACH (i, c->exec_args)
                if (strv_extend(&argv, *i) < 0)
                        return NULL;
        return TAKE_PTR(argv);
}

/* -errno if it could not even be started; a plugin that fails comes to on_exec_done(). */
static int exec_start(KubeAuth *a, char **ret_problem) {
        _cleanup_strv_free_ char **argv = exec_argv(a->config), **environment = NULL;
        _cleanup_(pem_set_done) PemSet p = { 0 };
        ChildRequest request = {
                .argv = argv,
                .max_output_bytes = EXEC_OUTPUT_BYTES_MAX,
                .timeout_usec = EXEC_TIMEOUT_USEC,
        };
        int r;

        assert(!a->child);
        if (!argv)
                return -ENOMEM;
        r = load_ca(a, &p, ret_problem);
        if (r >= 0)
                r = exec_environment(a->config, environ, p.ca, p.ca_size, &environment);
        if (r < 0)
                return r;
        request.environment = environment;
        return child_start(a->children, &request, on_exec_done, a, &a->child);
}

static void exec_start_or_retry(KubeAuth *a) {
        char *problem = NULL;
        int r;

        timer_disarm(a->refresh);
        r = exec_start(a, &problem);
        if (r < 0)
                exec_failed(a, problem ? problem
                                       : strf("exec plugin %s: %s", a->config->exec_command,
                                              strerrordesc_np(-r) ?: "cannot be started"));
}

static void on_refresh(Timer *t, void *userdata) {
        KubeAuth *a = userdata;

        if (!a->child)
                exec_start_or_retry(a);
}

static int exec_setup(KubeAuth *a, char **ret_problem) {
        const KubeConfig *c = a->config;
        _cleanup_(pem_set_done) PemSet p = { 0 };
        uint64_t seed;
        int r;

        if (!a->children)
                return pem_problem(-ENOTSUP, ret_problem, strdup("exec plugins cannot be run here"));
        r = load_ca(a, &p, ret_problem);
        if (r < 0)
                return r;

        /* Only spreads the retries of many nodes. */
        seed = hash64(c->exec_command, strlen(c->exec_command)) ^ loop_now(a->loop) ^ loop_wall(a->loop);
        r = random_new(seed, &a->random);
        if (r >= 0)
                r = timer_new(a->loop, "exec plugin", on_refresh, a, &a->refresh);
        if (r < 0)
                return r;
        a->backoff = (Backoff){
                .base_usec = USEC_PER_SEC,
                .cap_usec = USEC_PER_MINUTE,
                .jitter_permille = 200,
        };
        describe(a, 0);
        exec_start_or_retry(a);
        return 0;
}

/* -- face ----------------------------------------------------------------------------------------------- */

/* As client-go: a token that is there makes the plugin superfluous; a plugin goes before a certificate. */
static bool uses_plugin(const KubeConfig *c) {
        return c->exec_command && !c->token && !c->token_file;
}

static int setup(KubeAuth *a, char **ret_problem) {
        const KubeConfig *c = a->config;
        int r;

        a->ca.path = c->ca_data ? NULL : c->ca_file;
        a->cert.path = c->cert_data ? NULL : c->cert_file;
        a->key.path = c->key_data ? NULL : c->key_file;
        a->token.path = c->token_file;
        a->by_exec = uses_plugin(c);
        if (a->by_exec)
                return exec_setup(a, ret_problem);

        a->checked_usec = loop_now(a->loop);
        r = load_tls(a, ret_problem);
        return r < 0 ? r : load_token(a, ret_problem);
}

int kube_auth_new(Loop *l, Log *log, ChildRunner *children, const KubeConfig *config,
                  kube_auth_ready_t ready, void *userdata, KubeAuth **ret, char **reterr_message) {
        _cleanup_(kube_auth_freep) KubeAuth *a = NULL;
        char *problem = NULL;
        int r;

        assert(l);
        assert(config);
        assert(ret);

        a = new0(KubeAuth, 1);
        if (!a)
                return -ENOMEM;
        a->loop = l;
        a->log = log;
        a->children = children;
        a->ready = ready;
        a->userdata = userdata;
        a->expires_usec = USEC_INFINITY;

        r = kubeconfig_copy(config, &a->config);
        if (r >= 0)
                r = setup(a, &problem);
        if (r < 0) {
                if (reterr_message)
                        *reterr_message = problem;
                else
                        free(problem);
                return r;
        }
        *ret = TAKE_PTR(a);
        return 0;
}

/* -- reload --------------------------------------------------------------------------------------------- */

static bool same_server(const KubeConfig *a, const KubeConfig *b) {
        return streq(a->server, b->server) && streq_ptr(a->tls_server_name, b->tls_server_name) &&
               a->insecure_skip_tls_verify == b->insecure_skip_tls_verify;
}

/* What it is given, the CA included. */
static bool same_plugin(const KubeConfig *a, const KubeConfig *b) {
        if (!streq_ptr(a->exec_command, b->exec_command) ||
            !streq_ptr(a->exec_api_version, b->exec_api_version) || a->n_exec_env != b->n_exec_env ||
            strv_length(a->exec_args) != strv_length(b->exec_args) ||
            a->exec_provide_cluster_info != b->exec_provide_cluster_info ||
            !streq_ptr(a->ca_file, b->ca_file) ||
            !blob_equal(a->ca_data, a->ca_data_size, b->ca_data, b->ca_data_size))
                return false;
        for (size_t i = 0; i < strv_length(a->exec_args); i++)
                if (!streq(a->exec_args[i], b->exec_args[i]))
                        return false;
        for (size_t i = 0; i < a->n_exec_env; i++)
                if (!streq(a->exec_env[i].name, b->exec_env[i].name) ||
                    !streq(a->exec_env[i].value, b->exec_env[i].value))
                        return false;
        return true;
}

static bool same_tls(const HttpTls *a, const HttpTls *b) {
        const HttpTlsConfig *c;

        if (!a || !b)
                return a == b;
        c = http_tls_config(b);
        return tls_holds(a, &(PemSet){ .ca = (char *) c->ca_pem,
                                       .ca_size = c->ca_pem_size,
                                       .cert = (char *) c->client_cert_pem,
                                       .cert_size = c->client_cert_pem_size,
                                       .key = (char *) c->client_key_pem,
                                       .key_size = c->client_key_pem_size });
}

/* Both are by files or data; `other`, to be freed, gets what was in use. Connections stay where nothing of
 * theirs changed. */
static void take_from(KubeAuth *a, KubeAuth *other) {
        if (!same_tls(a->tls, other->tls))
                SWAP(a->tls, other->tls);
        SWAP(a->authorization, other->authorization);
        SWAP(a->description, other->description);
        SWAP(a->config, other->config);
        SWAP(a->ca, other->ca);
        SWAP(a->cert, other->cert);
        SWAP(a->key, other->key);
        SWAP(a->token, other->token);
        a->checked_usec = other->checked_usec;
        a->token_read_usec = other->token_read_usec;
        a->problem = mfree(a->problem);
}

int kube_auth_reload(KubeAuth *a, const KubeConfig *fresh, char **reterr_message) {
        _cleanup_(kube_auth_freep) KubeAuth *other = NULL;
        int r;

        assert(a && fresh && reterr_message);
        if (!same_server(a->config, fresh))
                return pem_problem(-EXDEV, reterr_message,
                                   strdup("it names another server, or another way to prove the server"));
        if (a->by_exec != uses_plugin(fresh) || (a->by_exec && !same_plugin(a->config, fresh)))
                return pem_problem(-EXDEV, reterr_message, strdup("it names another exec plugin"));
        if (a->by_exec) {
                if (!a->child)
                        exec_start_or_retry(a);
                return 0;
        }
        r = kube_auth_new(a->loop, a->log, a->children, fresh, NULL, NULL, &other, reterr_message);
        if (r < 0)
                return r;
        take_from(a, other);
        notify(a);
        return 0;
}

KubeAuth *kube_auth_free(KubeAuth *a) {
        if (!a)
                return NULL;

        assert(a->listeners.size == 0);
        child_free(a->child);
        timer_free(a->refresh);
        random_free(a->random);
        http_tls_unref(a->tls);
        erase_text(&a->authorization);
        free(a->description);
        free(a->problem);
        kubeconfig_free(a->config);
        free(a);
        return NULL;
}

void kube_auth_listen(KubeAuth *a, KubeAuthListener *l) {
        assert(a);
        assert(l->ready);
        list_append(&a->listeners, &l->listeners);
}

void kube_auth_unlisten(KubeAuth *a, KubeAuthListener *l) {
        assert(a);
        list_remove(&a->listeners, &l->listeners);
}

bool kube_auth_get(KubeAuth *a, HttpTls **ret_tls, const char **ret_authorization) {
        assert(a);
        assert(ret_tls);
        assert(ret_authorization);

        if (!a->by_exec)
                check_files(a, false);
        else if (!a->have || loop_now(a->loop) >= a->expires_usec)
                return false;
        *ret_tls = a->tls;
        *ret_authorization = a->authorization;
        return true;
}

bool kube_auth_rejected(KubeAuth *a) {
        usec_t now;

        assert(a);
        now = loop_now(a->loop);
        if (a->child)
                return true;
        if (a->files_checked && now < usec_add(a->files_checked_usec, REJECTED_USEC))
                return false;

        a->files_checked = true;
        a->files_checked_usec = now;
        if (a->by_exec)
                exec_start_or_retry(a);
        else
                check_files(a, true);
        return a->child;
}
