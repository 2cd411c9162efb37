/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet-client.h"

#include "file-util.h"
#include "string-util.h"

#define PORT_DEFAULT 10250u
/* Where the kubelet keeps the certificate that it has signed for itself. */
#define OWN_CERTIFICATE "/var/lib/kubelet/pki/kubelet.crt"
#define PEM_BYTES_MAX (64u * 1024u)
#define TEXT_BYTES_MAX 120u

struct KubeletClient {
        Env *env;
        KubeAuth *auth;
        char *node;
        unsigned port;
        /* Kept while nothing changes that it is made of, as another HttpTls would make another connection. */
        HttpTls *tls;
        HttpTls *of_api;   /* the credential for the API server of which tls is made */
        char *certificate; /* the kubelet's own, of which tls is made; NULL: none */
};

static int make_tls(KubeletClient *c, const char *own, HttpTls **ret) {
        HttpTlsConfig config = *http_tls_config(c->of_api);
        _cleanup_free_ char *both = NULL;

        if (own) {
                both = strf("%s\n%.*s", own, (int) config.ca_pem_size, config.ca_pem ? (const char *) config.ca_pem : "");
                if (!both)
                        return -ENOMEM;
                config.ca_pem = both;
                config.ca_pem_size = strlen(both);
        }
        config.server_name = c->node;
        config.insecure = false;
        return http_tls_new(&config, ret);
}

/* of_api NULL: the API server speaks plain HTTP, so there is no certificate to show; the system's authorities count. */
static int refresh_tls(KubeletClient *c, HttpTls *of_api) {
        _cleanup_free_ char *own = NULL;
        HttpTls *tls = NULL;
        size_t size;
        int r;

        if (of_api)
                (void) read_file(OWN_CERTIFICATE, PEM_BYTES_MAX, &own, &size);
        if (of_api == c->of_api && streq_ptr(own, c->certificate))
                return 0;
        c->tls = http_tls_unref(c->tls);
        http_tls_unref(c->of_api);
        c->of_api = of_api ? http_tls_ref(of_api) : NULL;
        if (of_api) {
                r = make_tls(c, own, &tls);
                if (r < 0) {
                        c->of_api = http_tls_unref(c->of_api);
                        return r;
                }
        }
        c->tls = tls;
        free(c->certificate);
        c->certificate = TAKE_PTR(own);
        return 0;
}

void kubelet_client_set_port(KubeletClient *c, int64_t port) {
        if (port > 0 && port <= UINT16_MAX)
                c->port = (unsigned) port;
}

int kubelet_client_get(KubeletClient *c, const char *path, usec_t timeout_usec, size_t max_response_bytes, http_done_t fn,
                       void *userdata, HttpCall **ret) {
        _cleanup_free_ char *url = NULL;
        HttpHeader header = { .name = "Authorization" };
        HttpRequest request = { .method = HTTP_GET,
                                .headers = &header,
                                .lane = HTTP_LANE_BULK,
                                .timeout_usec = timeout_usec,
                                .max_response_bytes = max_response_bytes };
        HttpTls *of_api;
        int r;

        if (!kube_auth_get(c->auth, &of_api, &header.value))
                return -EAGAIN;
        r = refresh_tls(c, of_api);
        if (r < 0)
                return r;
        url = strf("https://127.0.0.1:%u%s", c->port, path);
        if (!url)
                return -ENOMEM;
        request.url = url;
        request.n_headers = header.value ? 1 : 0;
        request.tls = c->tls;
        return http_call_start(c->env->transport, &request, fn, userdata, ret);
}

char *kubelet_answer_text(const HttpResponse *r) {
        _cleanup_free_ char *line = NULL;
        const char *said = r->error < 0 ? r->error_text : r->body;
        char *clean;

        line = memdup_str(said, strcspn(said, "\r\n"));
        clean = line ? str_sanitize(line, TEXT_BYTES_MAX) : NULL;
        if (!clean || r->error < 0)
                return clean;
        free(TAKE_PTR(line));
        line = strf("HTTP %u: %s", r->status, clean);
        free(clean);
        return TAKE_PTR(line);
}

int kubelet_client_new(Env *env, KubeAuth *auth, const char *node, KubeletClient **ret) {
        _cleanup_(kubelet_client_freep) KubeletClient *c = NULL;

        assert(env && auth && node && ret);
        c = new0(KubeletClient, 1);
        if (!c)
                return -ENOMEM;
        c->env = env;
        c->auth = auth;
        c->port = PORT_DEFAULT;
        c->node = strdup(node);
        if (!c->node)
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}

KubeletClient *kubelet_client_free(KubeletClient *c) {
        if (!c)
                return NULL;
        http_tls_unref(c->tls);
        http_tls_unref(c->of_api);
        free(c->certificate);
        free(c->node);
        return mfree(c);
}
