/* SPDX-License-Identifier: Apache-2.0 */
#include "notify-settings.h"

#include "file-util.h"
#include "log-catalog.h"
#include "string-util.h"
#include "strv.h"

/* -- pure --------------------------------------------------------------------------------------- */

const char *notify_url_fault(const char *url) {
        const char *host = startswith(url, "https://");

        if (!host)
                host = startswith(url, "http://");
        if (!host)
                return "it begins with neither http:// nor https://";
        if (strlen(url) > NOTIFY_URL_MAX_BYTES)
                return "it is longer than 2048 bytes";
        for (const char *p = url; *p; p++)
                if ((unsigned char) *p <= ' ' || (unsigned char) *p >= 0x7f)
                        return "it has white space, or bytes that are no ASCII";
        if (strchr("/?#", host[0])) /* also at the end of the text */
                return "it names no host";
        if (strchr(url, '#'))
                return "it has a fragment, behind #";
        if (memchr(host, '@', strcspn(host, "/?")))
                return "it has a user name: HeadersFile= may hold an Authorization";
        return NULL;
}

/* RFC 9110 5.6.2 */
static bool is_token(const char *s) {
        static const char others[] = "!#$%&'*+-.^_`|~";

        for (const char *p = s; *p; p++)
                if (!(*p >= '0' && *p <= '9') && !(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') && !strchr(others, *p))
                        return false;
        return s[0] != 0;
}

/* Of the request's frame, and those that say who a message is from and which one it is. */
static bool is_ours(const char *name) {
        static const char *const names[] = { "Host",       "Content-Length", "Transfer-Encoding", "Connection", "Expect",
                                             "TE",         "Trailer",        "Upgrade",           "User-Agent", "Keep-Alive",
                                             "Idempotency-Key" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (strcasecmp(names[i], name) == 0)
                        return true;
        return strncasecmp(name, "X-Vesper-", strlen("X-Vesper-")) == 0;
}

static const char *add_header(NotifyHeaders *h, char *line) {
        char *colon = strchr(line, ':'), *value;

        if (!colon)
                return "a line is no \"Name: value\"";
        *colon = 0;
        value = strstrip(colon + 1);
        if (!is_token(line))
                return "a header's name is none";
        if (is_ours(line))
                return "it sets a header that vesper sets itself, or that belongs to the connection";
        for (const char *p = value; *p; p++)
                if (((unsigned char) *p < ' ' && *p != '\t') || *p == 0x7f)
                        return "a header's value has control characters";
        if (value[0] == 0)
                return "a header has no value";
        if (http_header_find(h->list, h->n, line))
                return "a header is there twice";
        if (h->n == NOTIFY_HEADERS_MAX)
                return "it has more than 16 headers";
        h->list[h->n++] = (HttpHeader){ line, value };
        return NULL;
}

void notify_headers_done(NotifyHeaders *h) {
        h->text = erase_and_free(h->text, h->text_size);
        *h = (NotifyHeaders){ 0 };
}

int notify_headers_parse(const char *text, size_t size, NotifyHeaders *ret, const char **reterr_reason) {
        NotifyHeaders h = { .text = memdup_str(text, size), .text_size = size };
        char *rest = h.text, *line;

        *ret = (NotifyHeaders){ 0 };
        if (!h.text)
                return -ENOMEM;
        *reterr_reason = size > NOTIFY_FILE_MAX_BYTES ? "it is larger than 64 KiB" : memchr(text, 0, size) ? "it contains a NUL" : NULL;
        while (!*reterr_reason && (line = strsep(&rest, "\n"))) {
                line = strstrip(line);
                if (line[0] && line[0] != '#')
                        *reterr_reason = add_header(&h, line);
        }
        if (*reterr_reason) {
                notify_headers_done(&h);
                return -EINVAL;
        }
        *ret = h;
        return 0;
}

/* -- the settings ------------------------------------------------------------------------------- */

static int refuse(Log *log, const char *key, const char *fault) {
        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0, "[Notify] %s= cannot be used: %s.", key,
                        fault);
}

int notify_settings_check(const NotifySettings *s, Log *log) {
        if (s->url && s->url_file)
                return refuse(log, "Url", "UrlFile= is set as well, and only one of them can be meant");
        if (s->template_text && s->template_file)
                return refuse(log, "Template", "TemplateFile= is set as well, and only one of them can be meant");
        if (s->url && notify_url_fault(s->url))
                return refuse(log, "Url", notify_url_fault(s->url));
        if (s->template_text) {
                _cleanup_(notify_template_freep) NotifyTemplate *t = NULL;
                const char *reason;
                size_t at;
                int r;

                r = notify_template_parse(s->template_text, strlen(s->template_text), &t, &reason, &at);
                if (r == -EINVAL)
                        return refuse(log, "Template", reason);
                if (r < 0)
                        return r;
        }
        STRV_FOREACH(phase, s->phases)
                if (notify_phase_from_string(*phase) < 0)
                        return log_full(log, LOG_LEVEL_ERROR, -EINVAL, MESSAGE_CONFIGURATION_REFUSED, NULL, 0,
                                        "[Notify] Phases=%s is no phase: expected some of %s.", *phase, NOTIFY_PHASES_HELP);
        return 0;
}

/* -- the plan ----------------------------------------------------------------------------------- */

void notify_plan_done(NotifyPlan *p) {
        p->url = erase_and_free(p->url, p->url ? strlen(p->url) : 0);
        p->body = notify_template_free(p->body);
        notify_headers_done(&p->headers);
        p->secret = erase_and_free(p->secret, p->secret_size);
        p->tls = http_tls_unref(p->tls);
        *p = (NotifyPlan){ 0 };
}

/* One file of the section. text NULL: out of memory. */
typedef struct NotifyFile {
        const char *key, *name, *credentials;
        char **text; /* of what is wrong */
} NotifyFile;

static int file_fault(const NotifyFile *f, int error, const char *reason) {
        *f->text = strf("[Notify] %s=%s cannot be used: %s", f->key, f->name, reason);
        return *f->text ? error : -ENOMEM;
}

static int file_read(const NotifyFile *f, size_t max_bytes, char **ret, size_t *ret_size) {
        _cleanup_free_ char *path = NULL;
        int r;

        if (strchr(f->name, '/'))
                path = strdup(f->name);
        else if (f->credentials)
                path = strf("%s/%s", f->credentials, f->name);
        else
                return file_fault(f, -ENOENT,
                                  "a name without a slash is a credential, and the service manager has given none (LoadCredential=)");
        if (!path)
                return -ENOMEM;
        r = read_file(path, max_bytes, ret, ret_size);
        if (r == -ENOMEM)
                return r;
        return r < 0 ? file_fault(f, r, r == -E2BIG ? "it is too large" : strerror(-r)) : 0;
}

static int load_url(const NotifySettings *s, const NotifyFile *f, NotifyPlan *p) {
        char *text = NULL, *stripped;
        const char *fault;
        size_t size;
        bool has_nul;
        int r;

        if (!s->url_file)
                return s->url ? free_and_strdup(&p->url, s->url) : 0;
        r = file_read(f, NOTIFY_URL_MAX_BYTES + 2, &text, &size);
        if (r < 0)
                return r;
        has_nul = strlen(text) != size;
        stripped = strstrip(text);
        fault = has_nul ? "it contains a NUL" : notify_url_fault(stripped);
        r = fault ? file_fault(f, -EINVAL, fault) : free_and_strdup(&p->url, stripped);
        erase_and_free(text, size);
        return r;
}

static int load_template(const NotifySettings *s, const NotifyFile *f, NotifyPlan *p) {
        _cleanup_free_ char *text = NULL, *where = NULL;
        const char *reason;
        size_t size, at;
        int r;

        if (s->template_file)
                r = file_read(f, NOTIFY_TEMPLATE_MAX_BYTES, &text, &size);
        else if (s->template_text) {
                text = strdup(s->template_text);
                size = strlen(s->template_text);
                r = text ? 0 : -ENOMEM;
        } else
                return 0;
        if (r < 0)
                return r;
        r = notify_template_parse(text, size, &p->body, &reason, &at);
        if (r != -EINVAL)
                return r;
        where = strf("%s (at byte %zu)", reason, at);
        return where ? file_fault(f, r, where) : -ENOMEM;
}

static int load_headers(const NotifyFile *f, NotifyPlan *p) {
        const char *reason;
        char *text = NULL;
        size_t size;
        int r;

        r = file_read(f, NOTIFY_FILE_MAX_BYTES, &text, &size);
        if (r < 0)
                return r;
        r = notify_headers_parse(text, size, &p->headers, &reason);
        erase_and_free(text, size);
        return r == -EINVAL ? file_fault(f, r, reason) : r;
}

static int load_secret(const NotifyFile *f, NotifyPlan *p) {
        int r;

        r = file_read(f, NOTIFY_FILE_MAX_BYTES, &p->secret, &p->secret_size);
        if (r < 0)
                return r;
        if (p->secret_size > 0 && p->secret[p->secret_size - 1] == '\n')
                p->secret_size--;
        return p->secret_size == 0 ? file_fault(f, -EINVAL, "it is empty") : 0;
}

static int load_ca(const NotifyFile *f, NotifyPlan *p) {
        _cleanup_free_ char *pem = NULL;
        HttpTlsConfig config = { 0 };
        int r;

        r = file_read(f, NOTIFY_FILE_MAX_BYTES, &pem, &config.ca_pem_size);
        if (r < 0)
                return r;
        if (!strstr(pem, "-----BEGIN CERTIFICATE-----"))
                return file_fault(f, -EINVAL, "it holds no certificate in PEM");
        config.ca_pem = pem;
        return http_tls_new(&config, &p->tls);
}

static int load(const NotifySettings *s, const char *credentials, NotifyPlan *p, char **text) {
#define FILE_OF(key, name) (&(const NotifyFile){ key, name, credentials, text })
        int r;

        r = load_url(s, FILE_OF("UrlFile", s->url_file), p);
        if (r < 0 || !p->url) /* nobody is told: nothing else is asked for */
                return r;
        r = load_template(s, FILE_OF(s->template_file ? "TemplateFile" : "Template", s->template_file ? s->template_file : "..."), p);
        if (r >= 0 && s->headers_file)
                r = load_headers(FILE_OF("HeadersFile", s->headers_file), p);
        if (r >= 0 && s->secret_file)
                r = load_secret(FILE_OF("SecretFile", s->secret_file), p);
        if (r >= 0 && s->ca_file)
                r = load_ca(FILE_OF("CAFile", s->ca_file), p);
        return r;
#undef FILE_OF
}

int notify_plan_load(const NotifySettings *s, const char *credentials, NotifyPlan *ret, char **reterr_text) {
        NotifyPlan p = { .timeout_usec = s->timeout_usec };
        int r;

        *ret = (NotifyPlan){ 0 };
        *reterr_text = NULL;
        STRV_FOREACH(phase, s->phases) {
                NotifyPhase at = notify_phase_from_string(*phase);

                if (at >= 0)
                        p.phases |= 1u << at;
        }
        if (!s->phases)
                p.phases = (1u << _NOTIFY_PHASE_MAX) - 1;
        r = load(s, credentials, &p, reterr_text);
        if (r < 0) {
                notify_plan_done(&p);
                return r;
        }
        *ret = p;
        return 0;
}
