/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-fetch.h"

#include "claim-name.h"
#include "ctl-marks.h"
#include "ctl-say.h"
#include "marks.h"
#include "string-util.h"

#define PAGE 500u
#define CALL_TIMEOUT_USEC (30 * USEC_PER_SEC)

typedef struct ListFetch {
        CtlFetch *fetch;
        const KubeKind *kind;
        ObjectList *list;
        KubeCall *call;
} ListFetch;

/* A Node by its name, then its claim. */
typedef struct NodeFetch {
        CtlFetch *fetch;
        const char *name;
        KubeCall *call;
} NodeFetch;

struct CtlFetch {
        KubeClient *client;
        CtlFetchOptions options;
        CtlSnapshot snapshot;
        ListFetch nodes, claims;
        NodeFetch *named;
        bool wants_all_claims; /* a named Node has a claim of another name */
        KubeCall *lease, *ns;
        unsigned pending;
        int error;
        char *message;
        ctl_fetched_t done;
        void *userdata;
};

static void on_page(const KubeReply *reply, void *userdata);

CtlFetch *ctl_fetch_free(CtlFetch *f) {
        if (!f)
                return NULL;
        for (size_t i = 0; f->named && i < f->options.n_nodes; i++)
                kube_call_free(f->named[i].call);
        free(f->named);
        kube_call_free(f->nodes.call);
        kube_call_free(f->claims.call);
        kube_call_free(f->lease);
        kube_call_free(f->ns);
        ctl_snapshot_done(&f->snapshot);
        free(f->message);
        free(f);
        return NULL;
}

static int list_page(ListFetch *l, const char *token);

/* True: what is known does not suffice, and more was asked for. */
static bool asks_for_more(CtlFetch *f) {
        if (!f->wants_all_claims || f->error < 0)
                return false;
        f->wants_all_claims = false;
        if (list_page(&f->claims, NULL) < 0) {
                f->error = -ENOMEM;
                return false;
        }
        f->pending++;
        return true;
}

/* The done callback may free the fetch: last act of every caller. */
static void one_is_over(CtlFetch *f) {
        CtlSnapshot snapshot;

        if (--f->pending > 0 || asks_for_more(f))
                return;
        snapshot = f->snapshot;
        f->snapshot = (CtlSnapshot){};
        snapshot.now_usec = loop_server_wall(kube_client_env(f->client)->loop);
        f->done(f->error, f->message, &snapshot, f->userdata);
}

/* The first failure is told. */
static void note_failure(CtlFetch *f, int error, char *message) {
        if (f->error < 0) {
                free(message);
                return;
        }
        f->error = error;
        free(f->message);
        f->message = message;
}

/* Who may not read them sees what the agents say; where they are not installed there are none. */
static char *claims_unknown(const ApiError *e) {
        return e->http == 404
                       ? strdup("NodeClaims are not installed in this cluster (no nodeclaims.vesper.sh): what is shown is what vesper-agents say on their Nodes.")
                       : strf("NodeClaims are not shown, what vesper-agents say on their Nodes is: you may not read nodeclaims.vesper.sh (%s). ClusterRole vesper-viewer has that permission.",
                              e->message);
}

/* True: it is no failure. */
static bool claims_may_be_absent(CtlFetch *f, const KubeKind *kind, const ApiError *e) {
        if (f->options.claims_may_be_uninstalled && kind == &kube_node_claim_kind && e->http == 404) {
                f->snapshot.no_claims = true;
                return true;
        }
        if (!f->options.claims_optional || kind != &kube_node_claim_kind || (e->http != 404 && e->http != 403))
                return false;
        if (!f->snapshot.unknown)
                f->snapshot.unknown = claims_unknown(e);
        return true;
}

static int list_page(ListFetch *l, const char *token) {
        KubeTarget target = { .kind = l->kind };
        KubeListOptions list = { .limit = PAGE, .continue_token = token };
        KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC, .lane = HTTP_LANE_BULK };

        return kube_list(l->fetch->client, &target, &list, &call, on_page, l, &l->call);
}

static void on_page(const KubeReply *reply, void *userdata) {
        ListFetch *l = userdata;
        _cleanup_free_ char *token = NULL;
        int r;

        l->call = kube_call_free(l->call);
        if (reply->error) {
                const KubeTarget target = { .kind = l->kind };

                if (!claims_may_be_absent(l->fetch, l->kind, reply->error))
                        note_failure(l->fetch, api_error_to_errno(reply->error),
                                     ctl_explain_error(reply->error, "list", &target));
                one_is_over(l->fetch);
                return;
        }
        r = ctl_take_page(l->fetch->client, reply, l->kind, l->list, &token);
        if (r >= 0 && token)
                r = list_page(l, token);
        if (r < 0)
                note_failure(l->fetch, r, strf("the list of %s cannot be understood", l->kind->plural));
        if (r < 0 || !token)
                one_is_over(l->fetch);
}

int ctl_read_lease(const Json *lease, char **ret_leader, usec_t *ret_seen_usec, usec_t *ret_lease_usec) {
        const Json *spec = json_get(lease, "spec");
        const char *renewed = json_string_or_null(json_get(spec, "renewTime"));
        int64_t seconds = 0;

        if (renewed)
                (void) rfc3339_parse(renewed, ret_seen_usec);
        (void) json_int64(json_get(spec, "leaseDurationSeconds"), &seconds);
        *ret_lease_usec = (usec_t) MIN(MAX(seconds, INT64_C(0)), (int64_t) INT32_MAX) * USEC_PER_SEC;
        return free_and_strdup(ret_leader, strempty(json_string_or_null(json_get(spec, "holderIdentity"))));
}

static void on_lease(const KubeReply *reply, void *userdata) {
        CtlFetch *f = userdata;

        f->lease = kube_call_free(f->lease);
        if (reply->error && reply->error->http == 404)
                f->snapshot.leader = strdup("");
        else if (reply->error) {
                unsigned http = reply->error->http;

                f->snapshot.leader_refused = http >= 400 && http < 500 && http != 409 && http != 429;
        }
        if (reply->error && reply->error->http != 404 && !f->message)
                f->message = strf("who leads is not known: %s", reply->error->message);
        if (!reply->error)
                (void) ctl_read_lease(reply->object, &f->snapshot.leader, &f->snapshot.leader_seen_usec, &f->snapshot.lease_usec);
        one_is_over(f);
}

/* Reads the pause of all removals from the namespace of the Lease. If there is none, nothing is paused. */
static void on_namespace(const KubeReply *reply, void *userdata) {
        CtlFetch *f = userdata;
        KubeObject *o = NULL;
        int r = 0;

        f->ns = kube_call_free(f->ns);
        if (reply->error && reply->error->http != 404)
                f->snapshot.pause_unknown = strf("Whether all removals are paused is not known: %s",
                                                 strempty(reply->error->message));
        else if (!reply->error)
                r = kube_object_decode(&kube_namespace_kind, reply->object, kube_client_pool(f->client), &o);
        if (r >= 0 && o)
                r = pause_mark_read(&o->meta, &f->snapshot.pause);
        if (r < 0)
                note_failure(f, r, strf("Failed to decode Namespace %s", f->options.lease_ns));
        kube_object_unref(o);
        one_is_over(f);
}

/* -- named nodes ---------------------------------------------------------------------------------------- */

static void on_claim(const KubeReply *reply, void *userdata) {
        NodeFetch *n = userdata;
        const KubeTarget target = { .kind = &kube_node_claim_kind };
        CtlFetch *f = n->fetch;

        n->call = kube_call_free(n->call);
        if (!reply->error) {
                if (ctl_take_object(f->client, reply->object, &kube_node_claim_kind, &f->snapshot.claims) < 0)
                        note_failure(f, -EBADMSG, strf("the NodeClaim of node %s cannot be understood", n->name));
        } else if (reply->error->http == 404)
                f->wants_all_claims = true;
        else if (!claims_may_be_absent(f, &kube_node_claim_kind, reply->error))
                note_failure(f, api_error_to_errno(reply->error), ctl_explain_error(reply->error, "get", &target));
        one_is_over(f);
}

/* 1: asked for; 0: there is none of that name to ask for. */
static int ask_claim(NodeFetch *n, const KubeNode *node) {
        const char *pool = object_meta_label(&node->object.meta, LABEL_NODE_POOL);
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC, .lane = HTTP_LANE_BULK };
        KubeTarget target = { .kind = &kube_node_claim_kind };
        _cleanup_free_ char *name = NULL;
        int r;

        if (!object_meta_has_finalizer(&node->object.meta, FINALIZER_TERMINATION))
                return 0;
        if (!pool) {
                n->fetch->wants_all_claims = true;
                return 0;
        }
        name = claim_name(pool, kube_node_machine_id(node), strempty(node->object.meta.uid));
        if (!name)
                return -ENOMEM;
        target.name = name;
        r = kube_get(n->fetch->client, &target, &call, on_claim, n, &n->call);
        return r < 0 ? r : 1;
}

static void on_named(const KubeReply *reply, void *userdata) {
        NodeFetch *n = userdata;
        const KubeTarget target = { .kind = &kube_node_kind, .name = n->name };
        CtlFetch *f = n->fetch;
        ObjectList *nodes = &f->snapshot.nodes;
        int r;

        n->call = kube_call_free(n->call);
        if (reply->error) {
                note_failure(f, api_error_to_errno(reply->error),
                             reply->error->http == 404 ? strf("there is no Node %s", n->name)
                                                       : ctl_explain_error(reply->error, "get", &target));
                one_is_over(f);
                return;
        }
        r = ctl_take_object(f->client, reply->object, &kube_node_kind, nodes);
        if (r >= 0)
                r = ask_claim(n, (const KubeNode *) nodes->items[nodes->n_items - 1]);
        if (r < 0)
                note_failure(f, r, strf("Node %s cannot be understood", n->name));
        if (r <= 0)
                one_is_over(f);
}

static int fetch_named(CtlFetch *f) {
        f->named = new0(NodeFetch, f->options.n_nodes);
        if (!f->named)
                return -ENOMEM;
        f->snapshot.named = true;
        f->pending = (unsigned) f->options.n_nodes;
        for (size_t i = 0; i < f->options.n_nodes; i++) {
                const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC, .lane = HTTP_LANE_BULK };
                const KubeTarget target = { .kind = &kube_node_kind, .name = f->options.nodes[i] };
                int r;

                f->named[i] = (NodeFetch){ .fetch = f, .name = f->options.nodes[i] };
                r = kube_get(f->client, &target, &call, on_named, &f->named[i], &f->named[i].call);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int fetch_all(CtlFetch *f) {
        int r;

        f->pending = 2;
        r = list_page(&f->nodes, NULL);
        return r < 0 ? r : list_page(&f->claims, NULL);
}

int ctl_fetch_new(KubeClient *c, const CtlFetchOptions *options, ctl_fetched_t done, void *userdata, CtlFetch **ret) {
        _cleanup_(ctl_fetch_freep) CtlFetch *f = NULL;
        KubeTarget ns = { .kind = &kube_namespace_kind, .name = options->lease_ns };
        KubeTarget lease = { .kind = &kube_lease_kind, .ns = options->lease_ns, .name = options->lease_name };
        int r;

        assert(c && options->lease_ns && options->lease_name && done && ret);
        f = new0(CtlFetch, 1);
        if (!f)
                return -ENOMEM;
        f->client = c;
        f->done = done;
        f->userdata = userdata;
        f->options = *options;
        f->nodes = (ListFetch){ .fetch = f, .kind = &kube_node_kind, .list = &f->snapshot.nodes };
        f->claims = (ListFetch){ .fetch = f, .kind = &kube_node_claim_kind, .list = &f->snapshot.claims };
        r = options->nodes ? fetch_named(f) : fetch_all(f);
        if (r < 0)
                return r;
        f->pending += 2;
        r = kube_get(c, &lease, NULL, on_lease, f, &f->lease);
        if (r >= 0)
                r = kube_get(c, &ns, NULL, on_namespace, f, &f->ns);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(f);
        return 0;
}
