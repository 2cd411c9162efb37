/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook-server.h"

#include <string.h>

#include "alloc-util.h"
#include "ca-bundle.h"
#include "certificate-keeper.h"
#include "file-util.h"
#include "http-face.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define PEM_MAX_BYTES (256u << 10)
#define LOOK_USEC USEC_PER_MINUTE
/* A connection that is never idle ends with its next answer; one that is idle sooner than this. */
#define RETIRED_USEC (3 * USEC_PER_MINUTE)
#define RETIRED_MAX 4u

struct WebhookServer {
        Env *env;
        const CoordinatorConfig *config;
        NodeWebhook *webhook;
        HttpServer *server;              /* NULL: it has no certificate yet */
        HttpServer *retired[RETIRED_MAX]; /* newest first */
        usec_t retired_usec[RETIRED_MAX];
        char *certificate, *key, *client_ca; /* as shown */
        bool file_told;                      /* that the files cannot be used now */
        char **names;
        CertificateKeeper *keeper;
        CaBundle *bundle;
        Timer *timer;
};

static char *erase_text(char *s) {
        if (s)
                erase_and_free(s, strlen(s));
        return NULL;
}

/* -- the listener --------------------------------------------------------------------------------------- */

static void drop_retired(WebhookServer *s, size_t i) {
        s->retired[i] = http_server_free(s->retired[i]);
}

static void retire(WebhookServer *s, HttpServer *old) {
        drop_retired(s, RETIRED_MAX - 1);
        memmove(s->retired + 1, s->retired, (RETIRED_MAX - 1) * sizeof(*s->retired));
        memmove(s->retired_usec + 1, s->retired_usec, (RETIRED_MAX - 1) * sizeof(*s->retired_usec));
        s->retired[0] = old;
        s->retired_usec[0] = loop_now(s->env->loop);
}

/* No exchange is under way inside a timer. */
static void drop_old_ones(WebhookServer *s) {
        for (size_t i = 0; i < RETIRED_MAX; i++)
                if (s->retired[i] && (http_server_n_connections(s->retired[i]) == 0 ||
                                      loop_now(s->env->loop) > usec_add(s->retired_usec[i], RETIRED_USEC)))
                        drop_retired(s, i);
}

static int show(WebhookServer *s, const char *certificate, const char *key) {
        const HttpFaceTls tls = { certificate, key, s->client_ca, node_webhook_check_headers,
                                  node_webhook_count_refusal };
        HttpServer *server;
        int r;

        if (s->server && streq_ptr(s->certificate, certificate) && streq_ptr(s->key, key))
                return 0;
        r = s->server ? http_face_succeed(s->env->loop, HTTP_FACE_WEBHOOK, s->server, &tls, node_webhook_handle, s->webhook, &server)
                      : http_face_new_tls(s->env->loop, HTTP_FACE_WEBHOOK, s->config->webhook_listen, "*", &tls, node_webhook_handle,
                                          s->webhook, &server);
        if (r < 0)
                return log_error_errno(s->env->log, r, "Failed to serve the webhook at [Webhook] Listen=%s with its certificate: %m",
                                       s->config->webhook_listen);
        if (s->server) {
                retire(s, s->server);
                log_info(s->env->log, "The webhook shows another certificate from now on");
        }
        s->server = server;
        s->key = erase_text(s->key);
        if (free_and_strdup(&s->certificate, certificate) < 0 || free_and_strdup(&s->key, key) < 0)
                s->certificate = mfree(s->certificate); /* it is shown once more */
        return 1;
}

/* -- files ---------------------------------------------------------------------------------------------- */

static int read_pem(WebhookServer *s, const char *key, const char *path, char **ret) {
        size_t size;
        int r = read_file(path, PEM_MAX_BYTES, ret, &size);

        if (r < 0 && !s->file_told)
                log_error_errno(s->env->log, r, "Failed to read %s ([Webhook] %s=): %m", path, key);
        return r;
}

/* Both are written one after the other: halves of two pairs are no pair. */
static int show_files(WebhookServer *s) {
        _cleanup_free_ char *certificate = NULL;
        char *key = NULL;
        int r;

        r = read_pem(s, "CertificateFile", s->config->webhook_certificate, &certificate);
        if (r >= 0)
                r = read_pem(s, "KeyFile", s->config->webhook_key, &key);
        if (r >= 0 && !certificate_has_key(certificate, key)) {
                r = -EBADMSG;
                if (!s->file_told)
                        log_error(s->env->log, "%s ([Webhook] KeyFile=) is not the key of the certificate %s ([Webhook] CertificateFile=)",
                                  s->config->webhook_key, s->config->webhook_certificate);
        }
        if (r >= 0)
                r = show(s, certificate, key);
        (void) erase_text(key);
        s->file_told = r < 0;
        return r;
}

/* -- a Secret ------------------------------------------------------------------------------------------- */

static void on_set(void *userdata) {
        WebhookServer *s = userdata;
        const CertificateSet *set = certificate_keeper_set(s->keeper);

        if (ca_bundle_set(s->bundle, set->bundle) < 0)
                log_warning(s->env->log, "Failed to keep the webhook's CA: out of memory");
        (void) show(s, set->certificate, set->key);
}

static void on_bundle(void *userdata) {
        WebhookServer *s = userdata;

        certificate_keeper_set_bundle_stands(s->keeper, ca_bundle_stands(s->bundle));
}

static int keep_secret(WebhookServer *s, KubeClient *c) {
        _cleanup_free_ char *service = strf("vesper-webhook.%s.svc", s->config->lease_namespace);
        CertificateKeeperOptions o = { .ns = s->config->lease_namespace,
                                       .name = s->config->webhook_secret,
                                       .changed = on_set,
                                       .userdata = s };
        int r = service ? strv_extend(&s->names, service) : -ENOMEM;

        STRV_FOREACH(name, s->config->webhook_names)
                if (r >= 0)
                        r = strv_extend(&s->names, *name);
        o.names = s->names;
        if (r >= 0)
                r = ca_bundle_new(c, s->config->webhook_configuration, on_bundle, s, &s->bundle);
        return r < 0 ? r : certificate_keeper_new(c, &o, &s->keeper);
}

/* -- life ----------------------------------------------------------------------------------------------- */

static void on_timer(Timer *t, void *userdata) {
        WebhookServer *s = userdata;

        drop_old_ones(s);
        if (!s->keeper)
                (void) show_files(s);
        else if (certificate_keeper_set(s->keeper))
                on_set(s); /* an address in use a minute ago may be free by now */
        timer_arm_in(s->timer, LOOK_USEC);
}

int webhook_server_new(KubeClient *c, const CoordinatorConfig *config, NodeWebhook *webhook, WebhookServer **ret) {
        _cleanup_(webhook_server_freep) WebhookServer *s = new0(WebhookServer, 1);
        int r;

        if (!s)
                return -ENOMEM;
        s->env = kube_client_env(c);
        s->config = config;
        s->webhook = webhook;
        r = timer_new(s->env->loop, "webhook-server", on_timer, s, &s->timer);
        if (r >= 0 && !isempty(config->webhook_client_ca))
                r = read_pem(s, "ClientCAFile", config->webhook_client_ca, &s->client_ca);
        if (r >= 0)
                r = isempty(config->webhook_secret) ? show_files(s) : keep_secret(s, c);
        if (r < 0)
                return r;
        timer_arm_in(s->timer, LOOK_USEC);
        *ret = TAKE_PTR(s);
        return 0;
}

WebhookServer *webhook_server_free(WebhookServer *s) {
        if (!s)
                return NULL;
        http_server_free(s->server);
        for (size_t i = 0; i < RETIRED_MAX; i++)
                drop_retired(s, i);
        certificate_keeper_free(s->keeper);
        ca_bundle_free(s->bundle);
        timer_free(s->timer);
        strv_free(s->names);
        free(s->certificate);
        (void) erase_text(s->key);
        free(s->client_ca);
        return mfree(s);
}

void webhook_server_lead(WebhookServer *s, const HttpGuard *guard) {
        if (!s->keeper)
                return;
        certificate_keeper_lead(s->keeper, guard);
        ca_bundle_lead(s->bundle, guard);
}

void webhook_server_next_wakeup(const WebhookServer *s, Wakeups *w) {
        wakeups_unfinished(w, "listener of", "the webhook", s->server ? "listens" : "has no certificate",
                           LOOK_USEC);
        wakeups_timer(w, s->timer);
        if (!s->keeper)
                return;
        certificate_keeper_next_wakeup(s->keeper, w);
        ca_bundle_next_wakeup(s->bundle, w);
}
