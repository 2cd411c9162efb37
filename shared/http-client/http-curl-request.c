/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <string.h>
#include <strings.h>

#include "alloc-util.h"
#include "http-curl-internal.h"

/* What an easy handle is told of the request that it is to carry: headers, URL, TLS, method, body. */

typedef struct curl_slist curl_slist;

static inline void curl_urlp(CURLU **u) {
        curl_url_cleanup(*u);
}

static inline void curl_strp(char **s) {
        curl_free(*s);
}

static int slist_add(curl_slist **l, const char *s) {
        curl_slist *n;

        n = s ? curl_slist_append(*l, s) : NULL;
        if (!n)
                return -ENOMEM;
        *l = n;
        return 0;
}

static int call_add_header(CurlCall *c, const char *name, const char *value) {
        _cleanup_strbuf_ StrBuf line = { 0 };

        strbuf_make_room(&line, strlen(name) + strlen(value) + 2); /* a token is long */
        strbuf_add(&line, name);
        strbuf_add(&line,
                   value[0] == 0 ? ";" : ": "); /* "Name;" is how libcurl is told to send an empty one */
        strbuf_add(&line, value);
        return slist_add(&c->headers, line.failed ? NULL : line.data);
}

int curl_call_set_headers(CurlCall *c, const HttpRequest *q) {
        int r;

        for (size_t i = 0; i < q->n_headers; i++) {
                r = call_add_header(c, q->headers[i].name, q->headers[i].value);
                if (r < 0)
                        return r;
        }

        if (!c->has_body) /* libcurl invents neither, and each line is compared with all it might add */
                return 0;
        r = slist_add(&c->headers, "Expect:");
        if (r >= 0 && !http_header_find(q->headers, q->n_headers, "Content-Type"))
                r = slist_add(&c->headers, "Content-Type:");
        return r;
}

/* A TLS name other than the URL's host: the URL gets that name, and is connected to where it pointed before.
 */
static int call_rename_host(CurlCall *c, const HttpRequest *q, CURLU *u, const char *name) {
        _cleanup_(curl_strp) char *host = NULL, *port = NULL;
        _cleanup_free_ char *to = NULL, *authority = NULL;
        int r;

        if (curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
            curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
                return -ENOMEM;
        if (curl_url_set(u, CURLUPART_HOST, name, 0) != CURLUE_OK)
                return -EINVAL;

        to = strf("%s:%s:%s:%s", name, port, host, port);
        r = slist_add(&c->connect_to, to);
        if (r < 0 || http_header_find(q->headers, q->n_headers, "Host"))
                return r;

        authority = streq(port, "443") ? strdup(host) : strf("%s:%s", host, port);
        return authority ? call_add_header(c, "Host", authority) : -ENOMEM;
}

/* Where libcurl could read this origin before, and no byte behind it is one that it refuses. */
static bool url_was_read(const CurlCall *c, const char *url) {
        const char *p = c->t->origin ? startswith(url, c->t->origin) : NULL;

        if (!p || *p != '/')
                return false;
        while (*p > ' ' && *p < 0x7f)
                p++;
        return *p == 0;
}

/* Memory short: the next one is read whole again. */
static void note_origin(CurlCall *c, const char *url) {
        const char *host = startswith(url, "https://"), *end = host ? strchr(host, '/') : NULL;

        if (end) {
                free(c->t->origin);
                c->t->origin = strndup(url, (size_t) (end - url));
        }
}

static bool host_is_address(CURLU *u) {
        _cleanup_(curl_strp) char *host = NULL;
        struct in_addr in;

        return curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
               (host[0] == '[' || inet_pton(AF_INET, host, &in) == 1);
}

/* An address stays what it is: libcurl need not look through its cache of names, after each call, for what
 * has grown old. */
int curl_call_set_plain_url(CurlCall *c, const HttpRequest *q) {
        CURLUcode e;

        c->plain_url = strdup(q->url);
        c->plain_parts = curl_url();
        if (!c->plain_url || !c->plain_parts)
                return -ENOMEM;
        e = curl_url_set(c->plain_parts, CURLUPART_URL, q->url, CURLU_PATH_AS_IS);
        if (e != CURLUE_OK)
                return e == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
        curl_easy_setopt(c->easy, CURLOPT_CURLU, c->plain_parts);
        if (host_is_address(c->plain_parts))
                curl_easy_setopt(c->easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
        return 0;
}

int curl_call_set_url(CurlCall *c, const HttpRequest *q) {
        _cleanup_(curl_urlp) CURLU *u = NULL;
        _cleanup_(curl_strp) char *url = NULL;
        const char *name = q->tls ? http_tls_config(q->tls)->server_name : NULL;
        CURLUcode e;
        int r;

        if (!name && url_was_read(c, q->url)) {
                curl_easy_setopt(c->easy, CURLOPT_URL, q->url);
                return 0;
        }
        u = curl_url();
        if (!u)
                return -ENOMEM;
        e = curl_url_set(u, CURLUPART_URL, q->url, CURLU_PATH_AS_IS);
        if (e != CURLUE_OK)
                return e == CURLUE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;

        if (!c->https || !name) {
                curl_easy_setopt(c->easy, CURLOPT_URL, q->url);
                note_origin(c, q->url);
                return 0;
        }

        r = call_rename_host(c, q, u, name);
        if (r < 0)
                return r;
        if (curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK)
                return -ENOMEM;
        curl_easy_setopt(c->easy, CURLOPT_URL, url);
        curl_easy_setopt(c->easy, CURLOPT_CONNECT_TO, c->connect_to);
        return 0;
}

static void call_set_blob(CurlCall *c, CURLoption option, const void *data, size_t size) {
        struct curl_blob blob = {
                .data = (void *) data,
                .len = size,
                .flags = CURL_BLOB_NOCOPY, /* the HttpTls lives as long as the call */
        };

        if (data)
                curl_easy_setopt(c->easy, option, &blob);
}

/* libcurl asks OpenSSL to give its buffers back after each read. */
static CURLcode on_ssl_context(CURL *easy, void *context, void *userdata) {
        SSL_CTX_clear_mode(context, SSL_MODE_RELEASE_BUFFERS);
        return CURLE_OK;
}

void curl_call_set_tls(CurlCall *c) {
        const HttpTlsConfig *config = c->tls ? http_tls_config(c->tls) : NULL;
        char *bundle = NULL;

        curl_easy_setopt(c->easy, CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(c->easy, CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);
        if (c->t->keep_tls_buffers)
                curl_easy_setopt(c->easy, CURLOPT_SSL_CTX_FUNCTION, on_ssl_context);
        if (!config || !config->ca_pem) {
                if (curl_easy_getinfo(c->easy, CURLINFO_CAINFO, &bundle) == CURLE_OK && bundle)
                        curl_easy_setopt(c->easy, CURLOPT_CAPATH, NULL);
                if (!config)
                        return;
        } else {
                curl_easy_setopt(c->easy, CURLOPT_CAINFO, NULL);
                curl_easy_setopt(c->easy, CURLOPT_CAPATH, NULL);
        }

        call_set_blob(c, CURLOPT_CAINFO_BLOB, config->ca_pem, config->ca_pem_size);
        call_set_blob(c, CURLOPT_SSLCERT_BLOB, config->client_cert_pem, config->client_cert_pem_size);
        call_set_blob(c, CURLOPT_SSLKEY_BLOB, config->client_key_pem, config->client_key_pem_size);
        if (config->insecure) {
                curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYPEER, 0L);
                curl_easy_setopt(c->easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
}

void curl_call_set_body(CurlCall *c, const HttpRequest *q) {
        if (!c->has_body)
                return;
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) q->body_size);
        curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, c->body); /* not copied */
}

void curl_call_set_method(CurlCall *c, const HttpRequest *q) {
        if (q->method == HTTP_HEAD) {
                curl_easy_setopt(c->easy, CURLOPT_NOBODY, 1L);
                return;
        }
        curl_call_set_body(c, q);
        if (q->method != HTTP_GET || c->has_body)
                curl_easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, http_method_to_string(q->method));
}
