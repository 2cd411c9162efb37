/* SPDX-License-Identifier: Apache-2.0 */
#include "exec-credential.h"

#include "json.h"
#include "string-util.h"
#include "strv.h"

#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* -- what the plugin is told ---------------------------------------------------------------------------- */

static void add_cluster(JsonWriter *w, const KubeConfig *c, const char *ca_base64) {
        json_open_object(w, "cluster");
        json_add_string(w, "server", c->server);
        json_add_string(w, "tls-server-name", c->tls_server_name);
        if (c->insecure_skip_tls_verify)
                json_add_bool(w, "insecure-skip-tls-verify", true);
        json_add_string(w, "certificate-authority-data", ca_base64);
        json_close_object(w);
}

static char *exec_info(const KubeConfig *c, const void *ca_pem, size_t ca_pem_size) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *ca = NULL;

        if (ca_pem && c->exec_provide_cluster_info) {
                ca = base64_encode(ca_pem, ca_pem_size);
                if (!ca)
                        return NULL;
        }
        if (json_writer_new(&w) < 0)
                return NULL;

        json_open_object(w, NULL);
        json_add_string(w, "apiVersion", c->exec_api_version);
        json_add_string(w, "kind", "ExecCredential");
        json_open_object(w, "spec");
        json_add_bool(w, "interactive", false);
        if (c->exec_provide_cluster_info)
                add_cluster(w, c, ca);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* Takes the place of a variable of the same name. */
static int environment_set(char ***environment, const char *name, const char *value) {
        _cleanup_free_ char *entry = strf("%s=%s", name, value);
        size_t n = strlen(name);

        if (!entry)
                return -ENOMEM;
        for (char **i = *environment; i && *i; i++)
                if (strncmp(*i, name, n) == 0 && (*i)[n] == '=') {
                        free(*i);
                        *i = TAKE_PTR(entry);
                        return 0;
                }
        return strv_extend(environment, entry);
}

static int environment_inherit(char ***environment, char *const *inherited) {
        int r = strv_extend(environment, DEFAULT_PATH);

        STRV_FOREACH (i, inherited) {
                const char *value = strchr(*i, '=');
                _cleanup_free_ char *name = NULL;

                if (r < 0)
                        return r;
                if (!value ||
                    (!startswith(*i, "PATH=") && !startswith(*i, "HOME=") && !startswith(*i, "AWS_")))
                        continue;
                name = memdup_str(*i, (size_t) (value - *i));
                r = name ? environment_set(environment, name, value + 1) : -ENOMEM;
        }
        return r;
}

int exec_environment(const KubeConfig *c, char *const *inherited, const void *ca_pem, size_t ca_pem_size,
                     char ***ret) {
        _cleanup_strv_free_ char **environment = NULL;
        _cleanup_free_ char *info = NULL;
        int r;

        assert(c);
        assert(ret);

        r = environment_inherit(&environment, inherited);
        for (size_t i = 0; r >= 0 && i < c->n_exec_env; i++)
                r = environment_set(&environment, c->exec_env[i].name, c->exec_env[i].value);
        if (r < 0)
                return r;

        info = exec_info(c, ca_pem, ca_pem_size);
        r = info ? environment_set(&environment, "KUBERNETES_EXEC_INFO", info) : -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(environment);
        return 0;
}

/* -- what it answers ------------------------------------------------------------------------------------ */

static void erase_text(char *s) {
        erase_and_free(s, s ? strlen(s) : 0);
}

void exec_credential_done(ExecCredential *e) {
        erase_text(e->token);
        free(e->cert_pem);
        erase_text(e->key_pem);
        *e = (ExecCredential){ 0 };
}

/* NULL is fine; another type than a string is not. */
static int take_text(const Json *v, char **ret) {
        const char *s;
        int r = json_string(v, &s);

        if (r == -ENODATA || (r >= 0 && *s == 0))
                return 0;
        return r < 0 ? -EBADMSG : free_and_strdup(ret, s);
}

static int take_time(const Json *v, usec_t *ret) {
        const char *s;
        int r = json_string(v, &s);

        if (r == -ENODATA)
                return 0;
        return r >= 0 && rfc3339_parse(s, ret) >= 0 ? 0 : -EBADMSG;
}

static bool token_is_valid(const char *s) {
        for (; *s; s++)
                if ((unsigned char) *s <= ' ' || (unsigned char) *s >= 0x7f)
                        return false;
        return true;
}

/* A static sentence about what is wrong, or NULL. */
static int take_status(const Json *status, ExecCredential *e, const char **ret_wrong) {
        int r;

        r = take_text(json_get(status, "token"), &e->token);
        if (r >= 0)
                r = take_text(json_get(status, "clientCertificateData"), &e->cert_pem);
        if (r >= 0)
                r = take_text(json_get(status, "clientKeyData"), &e->key_pem);
        if (r == -EBADMSG)
                *ret_wrong = "a field of status is no text";
        if (r < 0)
                return r;

        if (take_time(json_get(status, "expirationTimestamp"), &e->expires_usec) < 0)
                *ret_wrong = "status.expirationTimestamp is no time";
        else if (!e->cert_pem != !e->key_pem)
                *ret_wrong = "of clientCertificateData and clientKeyData only one is there";
        else if (!e->token && !e->cert_pem)
                *ret_wrong = "status holds neither a token nor a client certificate";
        else if (e->token && !token_is_valid(e->token))
                *ret_wrong = "the token contains a character that no token has";
        return *ret_wrong ? -EBADMSG : 0;
}

static int parse(const Json *root, const char *api_version, ExecCredential *e, const char **ret_wrong) {
        if (!streq_ptr(json_string_or_null(json_get(root, "kind")), "ExecCredential"))
                *ret_wrong = "its output is no ExecCredential";
        else if (!streq_ptr(json_string_or_null(json_get(root, "apiVersion")), api_version))
                *ret_wrong = "its apiVersion is not the one in the kubeconfig";
        else if (!json_is_object(json_get(root, "status")))
                *ret_wrong = "its output has no status";
        return *ret_wrong ? -EBADMSG : take_status(json_get(root, "status"), e, ret_wrong);
}

int exec_credential_parse(const char *output, size_t size, const char *api_version, ExecCredential *ret,
                          char **reterr_message) {
        _cleanup_(exec_credential_done) ExecCredential e = { .expires_usec = USEC_INFINITY };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *wrong = NULL;
        int r;

        assert(ret);
        assert(reterr_message);

        r = json_parse(output, size, EXEC_OUTPUT_BYTES_MAX, &doc, NULL);
        if (r == -EBADMSG || r == -E2BIG)
                wrong = "its output is no JSON";
        else if (r >= 0)
                r = parse(json_root(doc), api_version, &e, &wrong);
        if (r < 0) {
                if (!wrong)
                        return r;
                *reterr_message = strdup(wrong);
                return *reterr_message ? -EBADMSG : -ENOMEM;
        }
        *ret = e;
        e = (ExecCredential){ 0 };
        return 0;
}
