/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "alloc-util.h"
#include "kube-decode.h"
#include "string-util.h"

/* -- Secret --------------------------------------------------------------------------------------------- */

static void decode_data(Decoder *d, const Json *data, const char *key, char **ret) {
        char *text = NULL;
        void *bytes;
        size_t size;

        decode_string(d, json_get(data, key), key, &text);
        if (!text)
                return;
        if (base64_decode(text, strlen(text), &bytes, &size) >= 0)
                *ret = bytes;
        erase_and_free(text, strlen(text));
}

static int certificate_secret_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *data = json_get(json, "data");
        KubeCertificateSecret *s = (KubeCertificateSecret *) o;

        decode_data(&d, data, "ca.crt", &s->ca_crt);
        decode_data(&d, data, "ca.key", &s->ca_key);
        decode_data(&d, data, "tls.crt", &s->tls_crt);
        decode_data(&d, data, "tls.key", &s->tls_key);
        return decoder_finish(&d);
}

static void certificate_secret_done(KubeObject *o, InternPool *pool) {
        KubeCertificateSecret *s = (KubeCertificateSecret *) o;

        free(s->ca_crt);
        free(s->tls_crt);
        if (s->ca_key)
                erase_and_free(s->ca_key, strlen(s->ca_key));
        if (s->tls_key)
                erase_and_free(s->tls_key, strlen(s->tls_key));
}

const KubeKind kube_certificate_secret_kind = {
        .group = "",
        .version = "v1",
        .plural = "secrets",
        .kind = "Secret",
        .namespaced = true,
        .size = sizeof(KubeCertificateSecret),
        .decode = certificate_secret_decode,
        .done = certificate_secret_done,
};

/* -- ValidatingWebhookConfiguration --------------------------------------------------------------------- */

static int webhook_configuration_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *list = decode_array(&d, json_get(json, "webhooks"), "webhooks");
        KubeWebhookConfiguration *c = (KubeWebhookConfiguration *) o;

        c->webhooks = decode_room(&d, list, "webhooks", DECODE_LIST_MAX, sizeof(WebhookEntry));
        JSON_FOREACH(i, c->webhooks ? list : NULL) {
                WebhookEntry *e = c->webhooks + c->n_webhooks++;
                const Json *service = json_path(i, "clientConfig", "service", NULL);
                _cleanup_free_ char *policy = NULL;

                decode_string(&d, json_path(i, "clientConfig", "caBundle", NULL), "webhooks.clientConfig.caBundle", &e->ca_bundle);
                decode_string(&d, json_get(service, "namespace"), "webhooks.clientConfig.service.namespace", &e->service_ns);
                decode_string(&d, json_get(service, "name"), "webhooks.clientConfig.service.name", &e->service_name);
                decode_string(&d, json_get(i, "failurePolicy"), "webhooks.failurePolicy", &policy);
                e->fails_closed = !policy || streq(policy, "Fail");
        }
        return decoder_finish(&d);
}

static void webhook_configuration_done(KubeObject *o, InternPool *pool) {
        KubeWebhookConfiguration *c = (KubeWebhookConfiguration *) o;

        for (size_t i = 0; i < c->n_webhooks; i++) {
                free(c->webhooks[i].ca_bundle);
                free(c->webhooks[i].service_ns);
                free(c->webhooks[i].service_name);
        }
        free(c->webhooks);
}

const KubeKind kube_webhook_configuration_kind = {
        .group = "admissionregistration.k8s.io",
        .version = "v1",
        .plural = "validatingwebhookconfigurations",
        .kind = "ValidatingWebhookConfiguration",
        .size = sizeof(KubeWebhookConfiguration),
        .decode = webhook_configuration_decode,
        .done = webhook_configuration_done,
};
