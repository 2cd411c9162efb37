/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-fetch.h"

#include "claim-name.h"
#include "ctl-fetch.h"
#include "ctl-marks.h"
#include "ctl-say.h"
#include "marks.h"
#include "strv.h"

#define CALL_TIMEOUT_USEC (30 * USEC_PER_SEC)
#define WEBHOOK_CONFIGURATION "vesper-nodes"

static const KubeKind service_kind = {
        .group = "",
        .version = "v1",
        .plural = "services",
        .kind = "Service",
        .namespaced = true,
        .size = sizeof(KubeObject),
};

static const KubeKind daemon_set_kind = {
        .group = "apps",
        .version = "v1",
        .plural = "daemonsets",
        .kind = "DaemonSet",
        .namespaced = true,
        .size = sizeof(KubeObject),
};
/* Number of DaemonSets that are read for the pods of one node, which usually has a dozen. */
#define DAEMON_SETS_MAX 50u

typedef enum FetchRound {
        ROUND_CLAIM,
        ROUND_NODE,
        ROUND_CLAIMS_BY_NAME,
        ROUND_ALL_CLAIMS,
        ROUND_REPLACEMENTS,
        ROUND_NEW_NODE,
        _ROUND_MAX,
} FetchRound;

typedef struct Read Read;
struct Read {
        ExplainFetch *fetch;
        KubeTarget target; /* name NULL: a list */
        char *ns, *name;   /* of the target; owned */
        char *owner_key;   /* explain_owner_key() of the owner that this reads; NULL: no owner */
        const char *what;  /* for people: "who leads" */
        void (*take)(Read *read, const KubeReply *reply); /* of a success */
        void (*absent)(Read *read); /* 404 of one object; NULL: as if it had not been asked for */
        ObjectList *list;
        KubeObject **object;
        KubeCall *call;
};

struct ExplainFetch {
        KubeClient *client;
        ExplainFacts facts;
        Read **reads;
        size_t n_reads, allocated, pending;
        FetchRound round; /* that comes next */
        bool is_of_node;  /* "node/NODE": no NodeClaim is meant */
        bool knows_no_daemon_sets; /* the missing permission was reported once */
        int error;
        char *message;
        explain_fetched_t done;
        void *userdata;
};

static Read *read_free(Read *r) {
        kube_call_free(r->call);
        free(r->ns);
        free(r->name);
        free(r->owner_key);
        return mfree(r);
}

ExplainFetch *explain_fetch_free(ExplainFetch *f) {
        if (!f)
                return NULL;
        for (size_t i = 0; i < f->n_reads; i++)
                read_free(f->reads[i]);
        free(f->reads);
        explain_facts_done(&f->facts);
        free(f->message);
        return mfree(f);
}

/* -- one call ------------------------------------------------------------------------------------------- */

/* Keeps the first error. error: 0 is none. */
static void note_error(ExplainFetch *f, int error) {
        if (f->error >= 0)
                f->error = MIN(error, 0);
}

static void round_is_over(ExplainFetch *f);

static void note_unknown(Read *read, const ApiError *error) {
        ExplainFetch *f = read->fetch;
        _cleanup_free_ char *why = ctl_explain_error(error, read->target.name ? "get" : "list", &read->target);
        _cleanup_free_ char *text = why ? strf("%s is not known, because %s", read->what, why) : NULL;

        if (read->target.kind == &daemon_set_kind && f->knows_no_daemon_sets)
                return;
        f->knows_no_daemon_sets = f->knows_no_daemon_sets || read->target.kind == &daemon_set_kind;
        if (read->list == &f->facts.pdbs)
                f->facts.knows_pdbs = false;
        if (read->object == &f->facts.node) {
                note_error(f, api_error_to_errno(error));
                f->message = TAKE_PTR(why);
        } else if (!text || strv_extend(&f->facts.unknown, text) < 0)
                note_error(f, -ENOMEM);
}

/* May free the fetch: the last act. */
static void on_read(const KubeReply *reply, void *userdata) {
        Read *read = userdata;
        ExplainFetch *f = read->fetch;

        read->call = kube_call_free(read->call);
        if (!reply->error)
                read->take(read, reply);
        else if (reply->error->http != 404 || !read->target.name)
                note_unknown(read, reply->error);
        else if (read->absent)
                read->absent(read);
        if (--f->pending == 0)
                round_is_over(f);
}

static void take_list(Read *read, const KubeReply *reply) {
        note_error(read->fetch, ctl_take_list(read->fetch->client, reply, read->target.kind, read->list));
}

static void take_object(Read *read, const KubeReply *reply) {
        note_error(read->fetch, kube_object_decode(read->target.kind, reply->object, kube_client_pool(read->fetch->client), read->object));
}

/* Texts are copied but `what`. */
static Read *read_new(ExplainFetch *f, const KubeKind *kind, const char *ns, const char *name,
                      const char *what) {
        Read *read = new0(Read, 1);

        if (!read || GREEDY_REALLOC(f->reads, f->allocated, f->n_reads + 1) < 0 || free_and_strdup(&read->ns, ns) < 0 ||
            free_and_strdup(&read->name, name) < 0) {
                note_error(f, -ENOMEM);
                return read ? read_free(read) : NULL;
        }
        read->fetch = f;
        read->what = what;
        read->target = (KubeTarget){ .kind = kind, .ns = read->ns, .name = read->name };
        f->reads[f->n_reads++] = read;
        return read;
}

static void send_read(ExplainFetch *f, Read *read, const KubeListOptions *options) {
        const KubeCallOptions o = { .timeout_usec = CALL_TIMEOUT_USEC, .lane = HTTP_LANE_BULK };
        int r = read->target.name ? kube_get(f->client, &read->target, &o, on_read, read, &read->call)
                                  : kube_list(f->client, &read->target, options, &o, on_read, read,
                                              &read->call);

        if (r < 0)
                note_error(f, r);
        else
                f->pending++;
}

static Read *read_list(ExplainFetch *f, const KubeKind *kind, const char *ns, const char *what,
                       ObjectList *list, const char *field_selector) {
        Read *read = read_new(f, kind, ns, NULL, what);

        if (!read)
                return NULL;
        read->take = take_list;
        read->list = list;
        send_read(f, read, &(KubeListOptions){ .field_selector = field_selector });
        return read;
}

static void read_object(ExplainFetch *f, const KubeKind *kind, const char *ns, const char *name,
                        const char *what, KubeObject **object,
                        void (*take)(Read *read, const KubeReply *reply), void (*absent)(Read *read)) {
        Read *read = read_new(f, kind, ns, name, what);

        if (!read)
                return;
        read->take = take;
        read->absent = absent;
        read->object = object;
        send_read(f, read, NULL);
}

/* -- the first round ------------------------------------------------------------------------------------ */

static void take_pods(Read *read, const KubeReply *reply) {
        read->fetch->facts.knows_pods = true;
        take_list(read, reply);
}

static void take_pools(Read *read, const KubeReply *reply) {
        read->fetch->facts.knows_pools = true;
        take_list(read, reply);
}

static void take_lease(Read *read, const KubeReply *reply) {
        ExplainFacts *facts = &read->fetch->facts;

        note_error(read->fetch, ctl_read_lease(reply->object, &facts->leader, &facts->leader_seen_usec, &facts->lease_usec));
}

static void lease_is_absent(Read *read) {
        if (free_and_strdup(&read->fetch->facts.leader, "") < 0)
                note_error(read->fetch, -ENOMEM);
}

static void read_node(ExplainFetch *f) {
        ExplainFacts *facts = &f->facts;
        _cleanup_free_ char *of_node = strf("spec.nodeName=%s", facts->node_name);
        Read *read;

        if (!of_node) {
                note_error(f, -ENOMEM);
                return;
        }
        read_object(f, &kube_node_kind, NULL, facts->node_name, "the Node", &facts->node, take_object, NULL);
        read = read_list(f, &kube_pod_kind, NULL, "which pods hold it", &facts->pods, of_node);
        if (read)
                read->take = take_pods;
}

/* Returns the Node that the claim stands for; NULL: it does not name one. */
static const char *node_of_claim(const KubeNodeClaim *c) {
        return c->node_name ?: c->made_for ?: machine_id_node_name(c->provider_id);
}

static void read_first(ExplainFetch *f) {
        ExplainFacts *facts = &f->facts;
        Read *read;

        if (facts->claim_name && facts->claims.n_items == 0)
                return; /* there is nothing to explain */
        if (facts->claim_name)
                facts->node_name = node_of_claim((const KubeNodeClaim *) facts->claims.items[0]);
        if (facts->node_name)
                read_node(f);
        read = read_list(f, &kube_node_pool_kind, NULL, "which NodePool manages it", &facts->pools, NULL);
        if (read)
                read->take = take_pools;
        (void) read_list(f, &kube_node_budget_kind, NULL, "which NodeDisruptionBudgets select it",
         &facts->budgets, NULL);
        read_object(f, &kube_lease_kind, facts->lease_ns, facts->lease_name, "who leads", NULL, take_lease,
                    lease_is_absent);
        read_object(f, &kube_namespace_kind, NULL, facts->lease_ns, "whether all removals are paused",
                    &facts->pause_ns, take_object, NULL);
        read_object(f, &kube_webhook_configuration_kind, NULL, WEBHOOK_CONFIGURATION,
                    "whether the webhook is asked", &facts->webhook, take_object, NULL);
}

/* -- the second round ----------------------------------------------------------------------------------- */

static void take_claim(Read *read, const KubeReply *reply) {
        ExplainFetch *f = read->fetch;

        note_error(f, ctl_take_object(f->client, reply->object, &kube_node_claim_kind, &f->facts.claims));
}

static void take_nothing(Read *read, const KubeReply *reply) {
}

static void service_is_absent(Read *read) {
        read->fetch->facts.service_is_missing = true;
}

static void read_claims_by_name(ExplainFetch *f) {
        const KubeNode *n = (const KubeNode *) f->facts.node;

        for (size_t i = 0; n && !f->facts.claim_name && i < f->facts.pools.n_items; i++) {
                _cleanup_free_ char *name = claim_name(f->facts.pools.items[i]->meta.name, kube_node_machine_id(n), strempty(n->object.meta.uid));

                if (name)
                        read_object(f, &kube_node_claim_kind, NULL, name, "its NodeClaim", NULL, take_claim,
                                    NULL);
                else
                        note_error(f, -ENOMEM);
        }
}

static bool namespace_was_before(const ObjectList *pods, size_t i) {
        for (size_t k = 0; k < i; k++)
                if (streq(pods->items[k]->meta.ns, pods->items[i]->meta.ns))
                        return true;
        return false;
}

/* They are known unless one of the lists fails: note_unknown(). */
static void read_pdbs(ExplainFetch *f) {
        const ObjectList *pods = &f->facts.pods;

        f->facts.knows_pdbs = true;
        for (size_t i = 0; i < pods->n_items; i++)
                if (!namespace_was_before(pods, i))
                        (void) read_list(f, &kube_pdb_kind, pods->items[i]->meta.ns,
                         "which PodDisruptionBudgets hold its pods", &f->facts.pdbs, NULL);
}

static void owner_is_absent(Read *read) {
        if (strv_extend(&read->fetch->facts.missing_owners, read->owner_key) < 0)
                note_error(read->fetch, -ENOMEM);
}

static void take_owner(Read *read, const KubeReply *reply) {
        const char *uid = json_string_or_null(json_path(reply->object, "metadata", "uid", NULL));

        if (!streq_ptr(uid, strrchr(read->owner_key, '/') + 1))
                owner_is_absent(read);
}

/* Returns the DaemonSet of Kubernetes' own that is the controller of the pod; NULL: there is none. */
static const OwnerRef *daemon_set_of(const KubeObject *pod) {
        const OwnerRef *o = object_meta_controller(&pod->meta);

        if (!o || !o->uid || !streq_ptr(o->kind, "DaemonSet") || !startswith(strempty(o->api_version), "apps/"))
                return NULL;
        return dns1123_subdomain_is_valid(strempty(o->name)) ? o : NULL;
}

static bool daemon_set_is_read(const ExplainFetch *f, const char *key) {
        for (size_t i = 0; i < f->n_reads; i++)
                if (streq_ptr(f->reads[i]->owner_key, key))
                        return true;
        return false;
}

/* Reads the DaemonSets that the pods name as their controllers, to find those that do not exist. */
static void read_daemon_sets(ExplainFetch *f) {
        const ObjectList *pods = &f->facts.pods;
        size_t n = 0;

        for (size_t i = 0; i < pods->n_items && n < DAEMON_SETS_MAX; i++) {
                const OwnerRef *o = daemon_set_of(pods->items[i]);
                _cleanup_free_ char *key = o ? explain_owner_key(pods->items[i]->meta.ns, o) : NULL;
                Read *read;

                if (o && !key)
                        note_error(f, -ENOMEM);
                if (!key || daemon_set_is_read(f, key))
                        continue;
                n++;
                read = read_new(f, &daemon_set_kind, pods->items[i]->meta.ns, o->name,
                                "whether the DaemonSets of its pods are there");
                if (!read)
                        return;
                read->take = take_owner;
                read->absent = owner_is_absent;
                read->owner_key = TAKE_PTR(key);
                send_read(f, read, NULL);
        }
}

static void read_service(ExplainFetch *f) {
        const KubeWebhookConfiguration *w = (const KubeWebhookConfiguration *) f->facts.webhook;

        if (w && w->n_webhooks > 0 && w->webhooks[0].service_name)
                read_object(f, &service_kind, w->webhooks[0].service_ns, w->webhooks[0].service_name,
                            "whether the webhook's Service is there", NULL, take_nothing, service_is_absent);
}

/* -- the third and the fourth round --------------------------------------------------------------------- */

static bool waits_for_volumes(const ExplainFacts *facts) {
        for (size_t i = 0; i < facts->claims.n_items; i++)
                if (streq_ptr(((const KubeNodeClaim *) facts->claims.items[i])->phase, "Volumes"))
                        return true;
        return false;
}

static void take_claims(Read *read, const KubeReply *reply) {
        read->fetch->facts.knows_claims = true;
        take_list(read, reply);
}

static void read_claims(ExplainFetch *f, const char *what, ObjectList *list) {
        Read *read = read_list(f, &kube_node_claim_kind, NULL, what, list, NULL);

        if (read)
                read->take = take_claims;
}

/* Its claim was made for the Node when that had another uid, or there is no Node to make the name of. */
static void read_all_claims(ExplainFetch *f) {
        const KubeObject *n = f->facts.node;

        if (f->facts.claims.n_items == 0 && !f->facts.claim_name && (!n || object_meta_has_finalizer(&n->meta, FINALIZER_TERMINATION)))
                read_claims(f, "its NodeClaim", &f->facts.claims);
}

/* Starts over if the name is not that of a Node but of a NodeClaim. */
static bool restart_with_claim(ExplainFetch *f) {
        const ExplainFacts *facts = &f->facts;
        const char *name = facts->node_name, *lease_ns = facts->lease_ns, *lease_name = facts->lease_name;
        bool is_claim = false;

        for (size_t i = 0; i < facts->claims.n_items; i++)
                is_claim = is_claim || streq(facts->claims.items[i]->meta.name, strempty(name));
        if (!is_claim || facts->claim_name || f->is_of_node || facts->node || explain_claim(facts))
                return false;
        for (size_t i = 0; i < f->n_reads; i++)
                read_free(f->reads[i]);
        f->n_reads = 0;
        explain_facts_done(&f->facts);
        f->facts = (ExplainFacts){ .claim_name = name, .lease_ns = lease_ns, .lease_name = lease_name };
        f->round = ROUND_CLAIM;
        return true;
}

static void read_replacements(ExplainFetch *f) {
        const KubeNodeClaim *claim = explain_claim(&f->facts);

        if (claim && (claim->successor || claim->replaces) && !f->facts.knows_claims)
                read_claims(f, "which NodeClaim takes its place", &f->facts.replacements);
}

static void read_new_node(ExplainFetch *f) {
        const KubeNodeClaim *successor = explain_successor_claim(&f->facts);

        if (successor && successor->node_name)
                read_object(f, &kube_node_kind, NULL, successor->node_name, "the successor's Node", &f->facts.new_node, take_object, NULL);
}

static void finish(ExplainFetch *f) {
        ExplainFacts facts = f->facts;
        const char *message = f->message ?: f->error == -ENOMEM ? "out of memory" : "what the API server answers cannot be understood";

        if (f->error < 0) {
                facts = (ExplainFacts){};
                f->done(message, &facts, f->userdata);
                return;
        }
        f->facts = (ExplainFacts){};
        facts.now_usec = loop_server_wall(kube_client_env(f->client)->loop);
        f->done(NULL, &facts, f->userdata);
}

static void begin_round(ExplainFetch *f) {
        switch (f->round++) {
        case ROUND_CLAIM:
                if (f->facts.claim_name)
                        read_object(f, &kube_node_claim_kind, NULL, f->facts.claim_name, "the NodeClaim", NULL, take_claim, NULL);
                return;
        case ROUND_NODE:
                read_first(f);
                return;
        case ROUND_CLAIMS_BY_NAME:
                read_claims_by_name(f);
                read_pdbs(f);
                read_daemon_sets(f);
                read_service(f);
                return;
        case ROUND_ALL_CLAIMS:
                read_all_claims(f);
                return;
        case ROUND_REPLACEMENTS:
                if (restart_with_claim(f))
                        return;
                if (waits_for_volumes(&f->facts))
                        (void) read_list(f, &kube_volume_attachment_kind, NULL, "which volumes are attached", &f->facts.volumes, NULL);
                read_replacements(f);
                return;
        case ROUND_NEW_NODE:
                read_new_node(f);
                return;
        case _ROUND_MAX:
                break;
        }
        assert(false && "a round too many");
}

static void round_is_over(ExplainFetch *f) {
        while (f->pending == 0 && f->round < _ROUND_MAX && f->error >= 0)
                begin_round(f);
        if (f->pending == 0)
                finish(f);
}

int explain_fetch_new(KubeClient *c, const char *name, const char *lease_ns, const char *lease_name,
                      explain_fetched_t done, void *userdata, ExplainFetch **ret) {
        _cleanup_(explain_fetch_freep) ExplainFetch *f = new0(ExplainFetch, 1);

        assert(c && name && lease_ns && lease_name && done && ret);
        if (!f)
                return -ENOMEM;
        f->client = c;
        f->done = done;
        f->userdata = userdata;
        f->facts = (ExplainFacts){ .lease_ns = lease_ns, .lease_name = lease_name, .claim_name = startswith(name, "nodeclaim/") };
        f->is_of_node = startswith(name, "node/");
        if (!f->facts.claim_name)
                f->facts.node_name = startswith(name, "node/") ?: name;
        while (f->pending == 0 && f->error >= 0)
                begin_round(f);
        if (f->error < 0)
                return f->error;

        *ret = TAKE_PTR(f);
        return 0;
}
