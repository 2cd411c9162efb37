/* SPDX-License-Identifier: Apache-2.0 */
#include "http-transport.h"

#include <string.h>

#include "alloc-util.h"
#include "parse-util.h"
#include "string-util.h"

/* Longer than a year is no advice to a client. */
#define RETRY_AFTER_MAX_SEC (366u * 24 * 3600)

struct HttpTls {
        unsigned n_refs;
        HttpTlsConfig config; /* every pointer is our own copy */
};

/* -- TLS material ------------------------------------------------------------------------------------- */

static HttpTls *http_tls_free(HttpTls *t) {
        free((void *) t->config.ca_pem);
        free((void *) t->config.client_cert_pem);
        erase_and_free((void *) t->config.client_key_pem, t->config.client_key_pem_size);
        free((void *) t->config.server_name);
        free(t);
        return NULL;
}

/* NULL stays NULL. A NUL stands behind the copy: some PEM readers want a string. */
static int copy_blob(const void *data, size_t size, const void **ret) {
        *ret = NULL;
        if (!data)
                return 0;
        *ret = memdup_str(data, size);
        return *ret ? 0 : -ENOMEM;
}

int http_tls_new(const HttpTlsConfig *config, HttpTls **ret) {
        HttpTls *t;
        int r;

        assert(config);
        assert(ret);
        if (!config->client_cert_pem != !config->client_key_pem)
                return -EINVAL;

        t = new0(HttpTls, 1);
        if (!t)
                return -ENOMEM;

        t->n_refs = 1;
        t->config.ca_pem_size = config->ca_pem_size;
        t->config.client_cert_pem_size = config->client_cert_pem_size;
        t->config.client_key_pem_size = config->client_key_pem_size;
        t->config.insecure = config->insecure;

        r = copy_blob(config->ca_pem, config->ca_pem_size, &t->config.ca_pem);
        if (r >= 0)
                r = copy_blob(config->client_cert_pem, config->client_cert_pem_size,
                              &t->config.client_cert_pem);
        if (r >= 0)
                r = copy_blob(config->client_key_pem, config->client_key_pem_size,
                              &t->config.client_key_pem);
        if (r >= 0)
                r = free_and_strdup((char **) &t->config.server_name, config->server_name);
        if (r < 0) {
                http_tls_free(t);
                return r;
        }

        *ret = t;
        return 0;
}

HttpTls *http_tls_ref(HttpTls *t) {
        if (!t)
                return NULL;

        assert(t->n_refs > 0);
        t->n_refs++;
        return t;
}

HttpTls *http_tls_unref(HttpTls *t) {
        if (!t)
                return NULL;

        assert(t->n_refs > 0);
        if (--t->n_refs == 0)
                http_tls_free(t);
        return NULL;
}

const HttpTlsConfig *http_tls_config(const HttpTls *t) {
        assert(t);
        return &t->config;
}

/* -- dispatch ----------------------------------------------------------------------------------------- */

HttpTransport *http_transport_free(HttpTransport *t) {
        if (t)
                t->ops->free(t);
        return NULL;
}

/* Enough to keep request smuggling and plain mistakes out; the rest of a URL is for whoever resolves it. */
static bool url_is_valid(const char *url) {
        bool in_authority = true;
        const char *host;

        if (!url)
                return false;
        host = startswith(url, "http://");
        if (!host)
                host = startswith(url, "https://");
        if (!host || *host == 0 || strchr("/?#:@", *host))
                return false;

        for (const char *p = host; *p; p++) {
                if ((unsigned char) *p <= ' ' || *p == 0x7f || *p == '#')
                        return false;
                if (*p == '/' || *p == '?')
                        in_authority = false;
                else if (*p == '@' && in_authority) /* credentials have no place there: it is logged */
                        return false;
        }
        return true;
}

static bool header_is_valid(const HttpHeader *h) {
        if (isempty(h->name) || !h->value)
                return false;

        for (const char *p = h->name; *p; p++)
                if ((unsigned char) *p <= ' ' || *p == ':' || *p == 0x7f)
                        return false;
        return !strpbrk(h->value, "\r\n");
}

static bool request_is_valid(const HttpRequest *q) {
        if (!http_method_to_string(q->method) || (unsigned) q->lane >= _HTTP_LANE_MAX)
                return false;
        if (q->timeout_usec == 0 || (q->max_response_bytes == 0 && !q->on_data))
                return false;
        if (q->timeout_usec == USEC_INFINITY && (!q->on_data || q->stall_usec == 0))
                return false;
        if (q->body_size > 0 && !q->body)
                return false;

        for (size_t i = 0; i < q->n_headers; i++)
                if (!header_is_valid(q->headers + i))
                        return false;
        return url_is_valid(q->url);
}

int http_call_start(HttpTransport *t, const HttpRequest *request, http_done_t done, void *userdata,
                    HttpCall **ret) {
        assert(t);
        assert(request);
        assert(done);

        if (!request_is_valid(request))
                return -EINVAL;
        return t->ops->start(t, request, done, userdata, ret);
}

void http_transport_set_immediate(HttpTransport *t, bool is_immediate) {
        assert(t);
        t->ops->set_immediate(t, is_immediate);
}

HttpCall *http_call_free(HttpCall *c) {
        if (c)
                c->transport->ops->cancel(c);
        return NULL;
}

usec_t http_retry_after(const HttpResponse *r, usec_t wall_now_usec) {
        const char *value;
        uint64_t seconds;
        usec_t at;

        assert(r);
        value = http_header_find(r->headers, r->n_headers, "Retry-After");
        if (!value)
                return 0;
        if (parse_uint64_range(value, 0, RETRY_AFTER_MAX_SEC, &seconds) >= 0)
                return seconds * USEC_PER_SEC;
        if (http_date_parse(value, &at) < 0)
                return 0;

        at = usec_sub(at, wall_now_usec);
        return at <= RETRY_AFTER_MAX_SEC * USEC_PER_SEC ? at : 0;
}

usec_t http_date(const HttpResponse *r) {
        const char *value;
        usec_t at;

        assert(r);
        value = http_header_find(r->headers, r->n_headers, "Date");
        return value && http_date_parse(value, &at) >= 0 ? at : 0;
}
