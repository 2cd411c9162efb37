/* SPDX-License-Identifier: Apache-2.0 */
#include "certificate-keeper.h"

#include <string.h>

#include "alloc-util.h"
#include "informer.h"
#include "kube-kinds.h"
#include "log.h"
#include "string-util.h"

#define RETRY_USEC (5 * USEC_PER_SEC)
/* A clock may be set. */
#define LOOK_USEC CERTIFICATE_KEEPER_WAKEUP_USEC

struct CertificateKeeper {
        KubeClient *client;
        Env *env;
        char *ns, *name;
        char *selector; /* of the Secret by its name */
        char *const *names;
        void (*changed)(void *userdata);
        void *userdata;
        Informer *informer;
        CertificateSet set;
        bool has_set, leads, bundle_stands;
        HttpGuard guard;
        KubeCall *call;
        bool news;            /* since the last decision: the watch may tell all before the answer to the call */
        CertificateStep step; /* of the call */
        char *told;           /* the last failure */
        bool heard;           /* the API server was asked for its time */
        usec_t heard_usec;    /* loop_now(): when it answered */
        usec_t server_usec;   /* what it said; 0: nothing */
        Timer *timer;
};

static void decide(CertificateKeeper *k);

static void tell_failure(CertificateKeeper *k, const char *what, const char *why) {
        if (streq_ptr(k->told, why))
                return;
        (void) free_and_strdup(&k->told, why);
        log_warning(k->env->log, "Failed to %s Secret %s/%s with the webhook's certificate, retrying: %s", what, k->ns, k->name, why);
}

/* -- time ----------------------------------------------------------------------------------------------- */

/* The API server's clock: it trusts what is made here, or does not. 0: it has told no time. */
static usec_t server_now(const CertificateKeeper *k) {
        usec_t since = usec_sub(loop_now(k->env->loop), k->heard_usec);

        return k->server_usec > 0 ? usec_add(k->server_usec, since) : 0;
}

/* Nothing has expired before two clocks agree on it: one that is years ahead, here or there, would have a CA
 * replaced that every API server trusts, by one that none knows yet. */
static usec_t judged_now(const CertificateKeeper *k) {
        return MIN(loop_machine_wall(k->env->loop), server_now(k));
}

static void on_time(const KubeReply *reply, void *userdata) {
        CertificateKeeper *k = userdata;
        usec_t date = reply->response ? http_date(reply->response) : 0;

        if (reply->status == 0) {
                tell_failure(k, "read", strempty(reply->error->message));
                timer_arm_in(k->timer, RETRY_USEC);
                k->call = kube_call_free(k->call);
                return;
        }
        k->call = kube_call_free(k->call);
        if (date == 0)
                tell_failure(k, "judge the age of",
                             "the API server's answers have no Date. Nothing is renewed before they have one");
        k->heard = true;
        k->heard_usec = loop_now(k->env->loop);
        k->server_usec = date;
        decide(k);
}

static bool time_is_known(const CertificateKeeper *k) {
        return k->heard && loop_now(k->env->loop) < usec_add(k->heard_usec, LOOK_USEC);
}

/* Any answer has a Date. This one needs no permission that the informer does not need. */
static void ask_time(CertificateKeeper *k) {
        KubeTarget t = { .kind = &kube_certificate_secret_kind, .ns = k->ns };
        KubeListOptions l = { .field_selector = k->selector, .resource_version = "0" };
        KubeCallOptions o = { .lane = HTTP_LANE_BULK };
        int r = kube_list(k->client, &t, &l, &o, on_time, k, &k->call);

        if (r < 0) {
                log_warning_errno(k->env->log, r, "Failed to ask the API server for its time, retrying: %m");
                timer_arm_in(k->timer, RETRY_USEC);
        }
}

/* -- writing -------------------------------------------------------------------------------------------- */

/* False: no memory. */
static bool add_data(JsonWriter *w, const char *key, const char *text) {
        char *encoded = base64_encode(text, strlen(text));

        if (!encoded)
                return false;
        json_add_string(w, key, encoded);
        erase_and_free(encoded, strlen(encoded));
        return true;
}

/* version NULL: to be created. */
static char *secret_body(const CertificateKeeper *k, const CertificateSet *s, const char *version) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        if (!version) {
                json_add_string(w, "apiVersion", "v1");
                json_add_string(w, "kind", "Secret");
                json_add_string(w, "type", "Opaque");
        }
        json_open_object(w, "metadata");
        if (version)
                json_add_string(w, "resourceVersion", version);
        else
                json_add_string(w, "name", k->name);
        json_close_object(w);
        json_open_object(w, "data");
        if (!add_data(w, "ca.crt", s->bundle) || !add_data(w, "ca.key", s->ca_key) || !add_data(w, "tls.crt", s->certificate) ||
            !add_data(w, "tls.key", s->key))
                return NULL;
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static void on_written(const KubeReply *reply, void *userdata) {
        CertificateKeeper *k = userdata;
        const ApiError *e = reply->error;

        /* The timer is only a fallback: the watch shows the written Secret sooner. */
        timer_arm_in(k->timer, MAX(k->news ? 0 : RETRY_USEC, e ? e->retry_after_usec : 0));
        if (!e) {
                k->told = mfree(k->told);
                log_notice(k->env->log, "The webhook's certificate in Secret %s/%s was %s", k->ns, k->name,
                           certificate_step_to_string(k->step));
        } else if (reply->status == 409)
                log_debug(k->env->log, "Another replica was faster to write Secret %s/%s", k->ns, k->name);
        else
                tell_failure(k, "write", strempty(e->message));
        k->call = kube_call_free(k->call);
}

static void write_secret(CertificateKeeper *k, const CertificateSet *s, const KubeObject *old) {
        KubeTarget t = { .kind = &kube_certificate_secret_kind, .ns = k->ns, .name = old ? k->name : NULL };
        KubeCallOptions o = { .lane = HTTP_LANE_BULK };
        char *body = secret_body(k, s, old ? old->meta.resource_version : NULL);
        int r = body ? 0 : -ENOMEM;

        if (old && k->step != CERTIFICATE_MAKE)
                o.guard = k->guard;
        if (r >= 0)
                r = old ? kube_patch(k->client, &t, KUBE_PATCH_MERGE, body, &o, on_written, k, &k->call)
                        : kube_create(k->client, &t, body, &o, on_written, k, &k->call);
        if (body)
                erase_and_free(body, strlen(body));
        if (r < 0) {
                log_warning_errno(k->env->log, r, "Failed to write Secret %s/%s, retrying: %m", k->ns, k->name);
                timer_arm_in(k->timer, RETRY_USEC);
        }
}

/* -- deciding ------------------------------------------------------------------------------------------- */

/* Of texts that the object keeps. */
static CertificateSet set_of(const KubeCertificateSecret *s) {
        return (CertificateSet){ s->ca_crt, s->ca_key, s->tls_crt, s->tls_key };
}

/* As the chart makes the Secret, so that it goes with the release. */
static bool set_is_blank(const CertificateSet *s) {
        return !s->bundle && !s->ca_key && !s->certificate && !s->key;
}

static int copy_set(const CertificateSet *s, CertificateSet *ret) {
        return certificate_plan_apply(CERTIFICATE_GOOD, s, NULL, 0, ret);
}

/* What serves is shown from now on; what does not leaves what was shown before. */
static void take(CertificateKeeper *k, const CertificateSet *s, usec_t now) {
        CertificateSet copy = { 0 };

        if (k->has_set && certificate_set_equal(&k->set, s))
                return;
        if (!certificate_set_serves(s, k->names, now) && (k->has_set || !certificate_set_serves(s, NULL, now)))
                return;
        if (copy_set(s, &copy) < 0)
                return;
        if (!streq_ptr(k->set.bundle, copy.bundle))
                k->bundle_stands = false;
        certificate_set_done(&k->set);
        k->set = copy;
        k->has_set = true;
        k->changed(k->userdata);
}

/* What was lost is put back as it was, if somebody still has it; else it is made, and begins by the API server's
 * clock. */
static void carry_out(CertificateKeeper *k, const CertificateSet *s, CertificatePlan p, const KubeObject *old, usec_t now) {
        bool lost = (p.step == CERTIFICATE_MAKE || p.step == CERTIFICATE_REPLACE) && k->has_set &&
                    certificate_set_serves(&k->set, NULL, now);
        usec_t made = k->server_usec > 0 ? server_now(k) : loop_wall(k->env->loop);
        CertificateSet next = { 0 };
        int r = lost ? copy_set(&k->set, &next) : certificate_plan_apply(p.step, s, k->names, made, &next);

        if (r < 0) {
                log_warning_errno(k->env->log, r, "Failed to make a certificate for the webhook, retrying: %m");
                timer_arm_in(k->timer, RETRY_USEC);
                return;
        }
        if (p.reason)
                log_warning(k->env->log, "Secret %s/%s is of no use as the webhook's certificate: %s. It is %s", k->ns, k->name, p.reason,
                            lost ? "put back as it was" : "replaced");
        k->step = p.step;
        write_secret(k, &next, old);
        certificate_set_done(&next);
}

static void decide(CertificateKeeper *k) {
        const KubeObject *o;
        CertificateSet s;
        CertificatePlan p;
        usec_t now;

        if (k->call || !informer_synced(k->informer))
                return;
        k->news = false;
        if (!time_is_known(k)) {
                ask_time(k);
                return;
        }
        now = judged_now(k);
        o = informer_get(k->informer, k->ns, k->name);
        if (o) {
                s = set_of((const KubeCertificateSecret *) o);
                take(k, &s, now);
        }
        p = certificate_plan(o && !set_is_blank(&s) ? &s : NULL, k->names, k->bundle_stands, now);
        if (p.step == CERTIFICATE_GOOD) {
                timer_arm_in(k->timer, MIN(usec_sub(p.until_usec, now), LOOK_USEC));
                if (k->server_usec > 0)
                        k->told = mfree(k->told); /* the next failure is logged again */
        } else if (p.step == CERTIFICATE_MAKE || k->leads)
                carry_out(k, o ? &s : NULL, p, o, now);
        else
                timer_arm_in(k->timer, LOOK_USEC);
}

static void on_timer(Timer *t, void *userdata) {
        decide(userdata);
}

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        CertificateKeeper *k = userdata;

        k->news = true;
        timer_arm_in(k->timer, 0);
}

static void on_synced(Informer *i, void *userdata) {
        CertificateKeeper *k = userdata;

        timer_arm_in(k->timer, 0);
}

static void on_health(Informer *i, bool connected, const char *why, void *userdata) {
        CertificateKeeper *k = userdata;

        if (!connected)
                tell_failure(k, "read", why);
        else
                timer_arm_in(k->timer, 0);
}

/* -- life ----------------------------------------------------------------------------------------------- */

int certificate_keeper_new(KubeClient *c, const CertificateKeeperOptions *o, CertificateKeeper **ret) {
        _cleanup_(certificate_keeper_freep) CertificateKeeper *k = new0(CertificateKeeper, 1);
        InformerHandler h = { .on_event = on_event, .on_synced = on_synced, .on_health = on_health, .userdata = k };
        int r;

        assert(c && o && o->changed && ret);
        if (!k)
                return -ENOMEM;
        k->selector = strf("metadata.name=%s", o->name);
        if (!k->selector)
                return -ENOMEM;
        k->client = c;
        k->env = kube_client_env(c);
        k->names = o->names;
        k->changed = o->changed;
        k->userdata = o->userdata;
        if (free_and_strdup(&k->ns, o->ns) < 0 || free_and_strdup(&k->name, o->name) < 0)
                return -ENOMEM;
        r = timer_new(k->env->loop, "certificate-keeper", on_timer, k, &k->timer);
        if (r < 0)
                return r;
        r = informer_new(c, &kube_certificate_secret_kind,
                         &(InformerOptions){ .ns = o->ns, .field_selector = k->selector }, &h, &k->informer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(k);
        return 0;
}

CertificateKeeper *certificate_keeper_free(CertificateKeeper *k) {
        if (!k)
                return NULL;
        kube_call_free(k->call);
        informer_free(k->informer);
        timer_free(k->timer);
        certificate_set_done(&k->set);
        free(k->ns);
        free(k->name);
        free(k->selector);
        free(k->told);
        return mfree(k);
}

const CertificateSet *certificate_keeper_set(const CertificateKeeper *k) {
        return k->has_set ? &k->set : NULL;
}

void certificate_keeper_lead(CertificateKeeper *k, const HttpGuard *guard) {
        k->leads = guard;
        k->guard = guard ? *guard : (HttpGuard){ 0 };
        timer_arm_in(k->timer, 0);
}

void certificate_keeper_set_bundle_stands(CertificateKeeper *k, bool stands) {
        if (k->bundle_stands == stands)
                return;
        k->bundle_stands = stands;
        timer_arm_in(k->timer, 0);
}

void certificate_keeper_next_wakeup(const CertificateKeeper *k, Wakeups *w) {
        informer_next_wakeup(k->informer, w);
        if (!informer_synced(k->informer))
                return;
        wakeups_unfinished(w, "certificate in Secret", k->name, k->has_set ? "seen" : "not seen",
                           CERTIFICATE_KEEPER_WAKEUP_USEC);
        wakeups_timer(w, k->timer);
        wakeups_await(w, k->call);
}
