/* SPDX-License-Identifier: Apache-2.0 */
#include "staying-volumes.h"

#include "backoff.h"
#include "log.h"
#include "string-util.h"

#define LIST_MAX_BYTES (64u * 1024u * 1024u)

/* A claim that a pod which stays mounts. */
typedef struct StayingClaim {
        char *ns, *name;
        char *owner_uid; /* it counts only if that pod controls it: it was made for it; NULL: any claim of
                            that name */
        char *pv;        /* NULL: not known */
        bool read;       /* whatever came of it */
} StayingClaim;

struct StayingVolumes {
        KubeClient *client;
        Env *env;
        KubeRank rank;
        char *node;
        DrainRules rules;
        void (*changed)(void *userdata);
        void *userdata;
        bool listed;
        StayingClaim *claims;
        size_t n_claims, claims_allocated;
        KubeCall *call;
        Timer *timer; /* until it is tried again */
        Backoff backoff;
};

static void on_timer(Timer *t, void *userdata);

int staying_volumes_new(KubeClient *c, KubeRank rank, const char *node, const DrainRules *rules,
                        void (*changed)(void *userdata), void *userdata, StayingVolumes **ret) {
        _cleanup_(staying_volumes_freep) StayingVolumes *s = NULL;
        int r;

        assert(c && node && rules && changed && ret);
        s = new0(StayingVolumes, 1);
        if (!s)
                return -ENOMEM;
        s->client = c;
        s->env = kube_client_env(c);
        s->rank = rank;
        s->rules = *rules;
        s->changed = changed;
        s->userdata = userdata;
        s->backoff = (Backoff){ .base_usec = USEC_PER_SEC,
                                .cap_usec = 30 * USEC_PER_SEC,
                                .jitter_permille = 200 };
        r = free_and_strdup(&s->node, node);
        if (r < 0)
                return r;
        r = timer_new(s->env->loop, "staying-volumes", on_timer, s, &s->timer);
        if (r < 0)
                return r;
        timer_arm_in(s->timer, 0);

        *ret = TAKE_PTR(s);
        return 0;
}

static void staying_claim_done(StayingClaim *c) {
        free(c->ns);
        free(c->name);
        free(c->owner_uid);
        free(c->pv);
}

static void forget_claims(StayingVolumes *s) {
        for (size_t i = 0; i < s->n_claims; i++)
                staying_claim_done(s->claims + i);
        s->n_claims = 0;
}

StayingVolumes *staying_volumes_free(StayingVolumes *s) {
        if (!s)
                return NULL;
        kube_call_free(s->call);
        timer_free(s->timer);
        forget_claims(s);
        free(s->claims);
        free(s->node);
        return mfree(s);
}

bool staying_volumes_has(const StayingVolumes *s, const char *pv) {
        for (size_t i = 0; pv && i < s->n_claims; i++)
                if (streq_ptr(s->claims[i].pv, pv))
                        return true;
        return false;
}

static void try_again(StayingVolumes *s) {
        timer_arm_in(s->timer, backoff_next(&s->backoff, s->env->random));
}

/* -- the pods that stay --------------------------------------------------------------------------------- */

static int note_claim(StayingVolumes *s, const KubePod *pod, const PodClaim *claim) {
        const char *ns = strempty(pod->object.meta.ns),
                   *owner = claim->ephemeral ? pod->object.meta.uid : NULL;
        StayingClaim *c;

        for (size_t i = 0; i < s->n_claims; i++)
                if (streq(s->claims[i].ns, ns) && streq(s->claims[i].name, claim->name) &&
                    streq_ptr(s->claims[i].owner_uid, owner))
                        return 0;
        if (GREEDY_REALLOC(s->claims, s->claims_allocated, s->n_claims + 1) < 0)
                return -ENOMEM;
        c = s->claims + s->n_claims++;
        *c = (StayingClaim){};
        return free_and_strdup(&c->ns, ns) < 0 || free_and_strdup(&c->name, claim->name) < 0 ||
                               free_and_strdup(&c->owner_uid, owner) < 0
                       ? -ENOMEM
                       : 0;
}

static bool pod_stays(const StayingVolumes *s, const KubePod *pod) {
        usec_t now = loop_wall(s->env->loop);

        return pod_classify(pod, now, NULL, NULL) != POD_CLASS_TERMINAL &&
               !drain_waits_for(pod, &s->rules, now);
}

/* One that cannot be read has no claims that we know of. */
static int on_pod(const char *item, size_t size, void *userdata) {
        StayingVolumes *s = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        PodClaim *claims = NULL;
        size_t n = 0;
        int r;

        r = json_parse(item, size, LIST_MAX_BYTES, &doc, NULL);
        if (r >= 0)
                r = kube_object_decode(&kube_pod_kind, json_root(doc), kube_client_pool(s->client), &o);
        if (r >= 0 && pod_stays(s, (const KubePod *) o))
                r = pod_claims_decode(json_root(doc), &claims, &n);
        for (size_t i = 0; r >= 0 && i < n; i++)
                r = note_claim(s, (const KubePod *) o, claims + i);
        pod_claims_free(claims, n);
        return r == -ENOMEM ? r : 0;
}

static void on_listed(const KubeReply *reply, void *userdata) {
        StayingVolumes *s = userdata;
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        int r;

        r = reply->error ? api_error_to_errno(reply->error)
                         : json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, on_pod, s, &rest,
                                            NULL);
        s->call = kube_call_free(s->call);
        if (r < 0) {
                log_debug_errno(s->env->log, r, "Failed to list the pods of node %s, retrying: %m",
                                s->node);
                forget_claims(s);
                try_again(s);
                return;
        }
        s->listed = true;
        backoff_reset(&s->backoff);
        timer_arm_in(s->timer, 0);
}

static int list_pods(StayingVolumes *s) {
        _cleanup_free_ char *selector = strf("spec.nodeName=%s", s->node);
        KubeTarget target = { .kind = &kube_pod_kind };
        KubeListOptions list = { .field_selector = selector };
        KubeCallOptions call = { .lane = HTTP_LANE_BULK, .rank = s->rank };

        return selector ? kube_list(s->client, &target, &list, &call, on_listed, s, &s->call) : -ENOMEM;
}

/* -- their claims --------------------------------------------------------------------------------------- */

static StayingClaim *next_claim(const StayingVolumes *s) {
        for (size_t i = 0; i < s->n_claims; i++)
                if (!s->claims[i].read)
                        return s->claims + i;
        return NULL;
}

/* 0: read, as far as it can be. */
static int read_claim(StayingVolumes *s, StayingClaim *c, const Json *json) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        const KubePersistentVolumeClaim *pvc;
        const OwnerRef *owner;
        int r;

        r = kube_object_decode(&kube_pvc_kind, json, kube_client_pool(s->client), &o);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        pvc = (const KubePersistentVolumeClaim *) o;
        owner = object_meta_controller(&o->meta);
        if (c->owner_uid && !(owner && streq_ptr(owner->uid, c->owner_uid)))
                return 0;
        return free_and_strdup(&c->pv, pvc->volume_name);
}

static void on_claim(const KubeReply *reply, void *userdata) {
        StayingVolumes *s = userdata;
        StayingClaim *c = next_claim(s);
        unsigned http = reply->error ? reply->error->http : 0;
        int r;

        r = reply->error ? api_error_to_errno(reply->error) : read_claim(s, c, reply->object);
        s->call = kube_call_free(s->call);
        if (http == 403)
                log_warning(s->env->log,
                            "The coordinator may not read PersistentVolumeClaim %s/%s, which a pod that stays on node %s mounts: its volume is waited for. "
                            "Allow it to get persistentvolumeclaims",
                            c->ns, c->name, s->node);
        if (r < 0 && http != 403 && http != 404) {
                try_again(s);
                return;
        }
        c->read = true;
        backoff_reset(&s->backoff);
        timer_arm_in(s->timer, 0);
        if (c->pv)
                s->changed(s->userdata); /* may free us */
}

static int get_claim(StayingVolumes *s, const StayingClaim *c) {
        KubeTarget target = { .kind = &kube_pvc_kind, .ns = c->ns, .name = c->name };
        KubeCallOptions call = { .lane = HTTP_LANE_BULK, .rank = s->rank };

        return kube_get(s->client, &target, &call, on_claim, s, &s->call);
}

static void on_timer(Timer *t, void *userdata) {
        StayingVolumes *s = userdata;
        const StayingClaim *c = next_claim(s);
        int r = 0;

        if (s->call)
                return;
        if (!s->listed)
                r = list_pods(s);
        else if (c)
                r = get_claim(s, c);
        if (r < 0)
                try_again(s);
}
