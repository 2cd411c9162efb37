/* SPDX-License-Identifier: Apache-2.0 */
#include "ca-bundle.h"

#include <string.h>

#include "informer.h"
#include "kube-kinds.h"
#include "log.h"
#include "string-util.h"

#define RETRY_USEC (5 * USEC_PER_SEC)

struct CaBundle {
        KubeClient *client;
        Env *env;
        char *name;
        void (*changed)(void *userdata);
        void *userdata;
        Informer *informer;
        char *wanted; /* base64; NULL: not known yet */
        bool leads;
        HttpGuard guard;
        KubeCall *call;
        bool news; /* since the last look: the watch may tell it before the answer to the call */
        char *told;
        Timer *timer;
};

static const KubeWebhookConfiguration *configuration_of(const CaBundle *b) {
        return (const KubeWebhookConfiguration *) informer_get(b->informer, NULL, b->name);
}

static bool has_it(const CaBundle *b, const KubeWebhookConfiguration *c) {
        for (size_t i = 0; i < c->n_webhooks; i++)
                if (!streq_ptr(c->webhooks[i].ca_bundle, b->wanted))
                        return false;
        return true;
}

bool ca_bundle_stands(const CaBundle *b) {
        const KubeWebhookConfiguration *c = configuration_of(b);

        return b->wanted && informer_synced(b->informer) && (!c || has_it(b, c));
}

static void tell_failure(CaBundle *b, const char *what, const char *why) {
        if (streq_ptr(b->told, why))
                return;
        (void) free_and_strdup(&b->told, why);
        log_warning(b->env->log,
                    "Failed to %s ValidatingWebhookConfiguration %s, retrying: %s. "
                    "Without its caBundle the API server trusts no answer of the webhook, and its failurePolicy decides",
                    what, b->name, why);
}

static void on_written(const KubeReply *reply, void *userdata) {
        CaBundle *b = userdata;

        timer_arm_in(b->timer,
                     MAX(b->news ? 0 : RETRY_USEC, reply->error ? reply->error->retry_after_usec : 0));
        if (!reply->error) {
                b->told = mfree(b->told);
                log_notice(b->env->log, "The webhook's CA was written into ValidatingWebhookConfiguration %s", b->name);
        } else if (reply->status != 409 && reply->status != 422) /* another version by now */
                tell_failure(b, "write the webhook's CA into", strempty(reply->error->message));
        b->call = kube_call_free(b->call);
}

/* Each by its place: a JSON patch, that fails where the object is another by now. */
static char *patch_body(const CaBundle *b, const KubeWebhookConfiguration *c) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_array(w, NULL);
        json_open_object(w, NULL);
        json_add_string(w, "op", "test");
        json_add_string(w, "path", "/metadata/resourceVersion");
        json_add_string(w, "value", c->object.meta.resource_version);
        json_close_object(w);
        for (size_t i = 0; i < c->n_webhooks; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "op", "add");
                json_addf(w, "path", "/webhooks/%zu/clientConfig/caBundle", i);
                json_add_string(w, "value", b->wanted);
                json_close_object(w);
        }
        json_close_array(w);
        return json_writer_steal(w, NULL);
}

static void write_bundle(CaBundle *b, const KubeWebhookConfiguration *c) {
        KubeTarget t = { .kind = &kube_webhook_configuration_kind, .name = b->name };
        KubeCallOptions o = { .lane = HTTP_LANE_BULK, .guard = b->guard };
        _cleanup_free_ char *body = patch_body(b, c);
        int r = body ? kube_patch(b->client, &t, KUBE_PATCH_JSON, body, &o, on_written, b, &b->call) : -ENOMEM;

        if (r < 0) {
                log_warning_errno(b->env->log, r, "Failed to write the webhook's CA into ValidatingWebhookConfiguration %s, retrying: %m",
                                  b->name);
                timer_arm_in(b->timer, RETRY_USEC);
        }
}

/* Returns true if the leader has to write the caBundle into a webhook of the configuration. */
static bool must_write(const CaBundle *b, const KubeWebhookConfiguration *c) {
        return b->leads && b->wanted && c && !has_it(b, c);
}

static void on_timer(Timer *t, void *userdata) {
        CaBundle *b = userdata;
        const KubeWebhookConfiguration *c = configuration_of(b);

        if (!b->call) {
                b->news = false;
                if (must_write(b, c))
                        write_bundle(b, c);
                else
                        b->told = mfree(b->told); /* the next failure is logged again */
        }
        b->changed(b->userdata);
}

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        CaBundle *b = userdata;

        b->news = true;
        timer_arm_in(b->timer, 0);
}

static void on_synced(Informer *i, void *userdata) {
        timer_arm_in(((CaBundle *) userdata)->timer, 0);
}

static void on_health(Informer *i, bool connected, const char *why, void *userdata) {
        if (!connected)
                tell_failure(userdata, "read", why);
        else
                timer_arm_in(((CaBundle *) userdata)->timer, 0);
}

int ca_bundle_new(KubeClient *c, const char *configuration, void (*changed)(void *userdata), void *userdata, CaBundle **ret) {
        _cleanup_(ca_bundle_freep) CaBundle *b = new0(CaBundle, 1);
        _cleanup_free_ char *only = strf("metadata.name=%s", configuration);
        InformerHandler h = { .on_event = on_event, .on_synced = on_synced, .on_health = on_health, .userdata = b };
        int r;

        assert(c && configuration && changed && ret);
        if (!b || !only || free_and_strdup(&b->name, configuration) < 0)
                return -ENOMEM;
        b->client = c;
        b->env = kube_client_env(c);
        b->changed = changed;
        b->userdata = userdata;
        r = timer_new(b->env->loop, "ca-bundle", on_timer, b, &b->timer);
        if (r >= 0)
                r = informer_new(c, &kube_webhook_configuration_kind, &(InformerOptions){ .field_selector = only }, &h, &b->informer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(b);
        return 0;
}

CaBundle *ca_bundle_free(CaBundle *b) {
        if (!b)
                return NULL;
        kube_call_free(b->call);
        informer_free(b->informer);
        timer_free(b->timer);
        free(b->name);
        free(b->wanted);
        free(b->told);
        return mfree(b);
}

int ca_bundle_set(CaBundle *b, const char *pem) {
        char *encoded = base64_encode(pem, strlen(pem));

        if (!encoded)
                return -ENOMEM;
        free(b->wanted);
        b->wanted = encoded;
        timer_arm_in(b->timer, 0);
        return 0;
}

void ca_bundle_lead(CaBundle *b, const HttpGuard *guard) {
        b->leads = guard;
        b->guard = guard ? *guard : (HttpGuard){ 0 };
        timer_arm_in(b->timer, 0);
}

void ca_bundle_next_wakeup(const CaBundle *b, Wakeups *w) {
        informer_next_wakeup(b->informer, w);
        if (!must_write(b, configuration_of(b)))
                return;
        wakeups_unfinished(w, "caBundle of configuration", b->name, "to be written", CA_BUNDLE_WAKEUP_USEC);
        wakeups_timer(w, b->timer);
        wakeups_await(w, b->call);
}
