/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-ctl.h"

#include <errno.h>
#include <stdlib.h>

#include "explain-told.h"
#include "json.h"
#include "kube-scheduling.h"
#include "timeline.h"

#define OBJECT_BYTES_MAX (1024u * 1024u)
#define LEASE_NS "vesper-system"
#define LEASE_NAME "vesper-coordinator"
#define WEBHOOK_CONFIGURATION "vesper-nodes"

/* -- objects ----------------------------------------------------------------------------------- */

static void add_objects(SimWorld *w, SimCtl *c, ObjectList *list, FakeResourceId id, const KubeKind *kind) {
        const FakeStore *store = fake_cluster_store(w->cluster);

        for (size_t i = 0; i < fake_store_size(store, id); i++) {
                const char *text = fake_version_text(fake_store_at(store, id, i));
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                int r;

                r = json_parse(text, strlen(text), OBJECT_BYTES_MAX, &doc, NULL);
                assert(r >= 0);
                r = GREEDY_REALLOC(list->items, list->allocated, list->n_items + 1);
                assert(r >= 0);
                r = kube_object_decode(kind, json_root(doc), c->pool, &list->items[list->n_items]);
                assert(r >= 0);
                list->n_items++;
        }
}

static void add_ref(ObjectList *list, KubeObject *object) {
        int r;

        r = GREEDY_REALLOC(list->items, list->allocated, list->n_items + 1);
        assert(r >= 0);
        list->items[list->n_items++] = kube_object_ref(object);
}

static void add_all(ObjectList *to, const ObjectList *from) {
        for (size_t i = 0; i < from->n_items; i++)
                add_ref(to, from->items[i]);
}

/* Returns a reference of the caller's own; NULL: there is none. */
static KubeObject *find_object(const ObjectList *list, const char *name) {
        for (size_t i = 0; i < list->n_items; i++)
                if (streq(list->items[i]->meta.name, name))
                        return kube_object_ref(list->items[i]);
        return NULL;
}

static void read_lease(SimWorld *w, CtlSnapshot *s) {
        const cJSON *lease = fake_get(w->cluster, FAKE_LEASES, LEASE_NS, LEASE_NAME);

        s->leader = MUST(strdup(strempty(fj_string(lease, "spec", "holderIdentity", NULL))));
        s->lease_usec = (usec_t) fj_int(lease, 15, "spec", "leaseDurationSeconds", NULL) * USEC_PER_SEC;
        (void) rfc3339_parse(strempty(fj_string(lease, "spec", "renewTime", NULL)), &s->leader_seen_usec);
}

void sim_ctl_read(SimWorld *w, SimCtl *ret) {
        KubeObject *ns;
        int r;

        *ret = (SimCtl){};
        r = intern_pool_new(&ret->pool);
        assert(r >= 0);
        add_objects(w, ret, &ret->snapshot.nodes, FAKE_NODES, &kube_node_kind);
        add_objects(w, ret, &ret->snapshot.claims, FAKE_NODECLAIMS, &kube_node_claim_kind);
        add_objects(w, ret, &ret->pools, FAKE_NODEPOOLS, &kube_node_pool_kind);
        add_objects(w, ret, &ret->budgets, FAKE_NDBS, &kube_node_budget_kind);
        add_objects(w, ret, &ret->pods, FAKE_PODS, &kube_pod_kind);
        add_objects(w, ret, &ret->pdbs, FAKE_PDBS, &kube_pdb_kind);
        add_objects(w, ret, &ret->volumes, FAKE_VOLUMEATTACHMENTS, &kube_volume_attachment_kind);
        add_objects(w, ret, &ret->namespaces, FAKE_NAMESPACES, &kube_namespace_kind);
        add_objects(w, ret, &ret->webhooks, FAKE_WEBHOOKS, &kube_webhook_configuration_kind);
        read_lease(w, &ret->snapshot);
        ret->snapshot.now_usec = sim_world_wall(w);
        ns = find_object(&ret->namespaces, LEASE_NS);
        r = ns ? pause_mark_read(&ns->meta, &ret->snapshot.pause) : 0;
        assert(r >= 0);
        kube_object_unref(ns);
}

void sim_ctl_done(SimCtl *c) {
        ctl_snapshot_done(&c->snapshot);
        object_list_done(&c->pools);
        object_list_done(&c->budgets);
        object_list_done(&c->pods);
        object_list_done(&c->pdbs);
        object_list_done(&c->volumes);
        object_list_done(&c->namespaces);
        object_list_done(&c->webhooks);
        c->pool = intern_pool_free(c->pool);
}

void sim_ctl_facts(const SimCtl *c, const char *node, ExplainFacts *ret) {
        *ret = (ExplainFacts){ .node_name = node,
                               .lease_ns = LEASE_NS,
                               .lease_name = LEASE_NAME,
                               .node = find_object(&c->snapshot.nodes, node),
                               .pause_ns = find_object(&c->namespaces, LEASE_NS),
                               .webhook = find_object(&c->webhooks, WEBHOOK_CONFIGURATION),
                               .knows_pools = true,
                               .knows_pods = true,
                               .knows_pdbs = true,
                               .leader = MUST(strdup(c->snapshot.leader)),
                               .leader_seen_usec = c->snapshot.leader_seen_usec,
                               .lease_usec = c->snapshot.lease_usec,
                               .now_usec = c->snapshot.now_usec };
        add_all(&ret->claims, &c->snapshot.claims);
        add_all(&ret->pools, &c->pools);
        add_all(&ret->budgets, &c->budgets);
        add_all(&ret->pdbs, &c->pdbs);
        add_all(&ret->volumes, &c->volumes);
        for (size_t i = 0; i < c->pods.n_items; i++)
                if (streq_ptr(((const KubePod *) c->pods.items[i])->node_name, node))
                        add_ref(&ret->pods, c->pods.items[i]);
}

/* -- texts ------------------------------------------------------------------------------------- */

char *sim_ctl_explain(SimWorld *w, const char *node) {
        _cleanup_(sim_ctl_done) SimCtl c;
        _cleanup_(explain_facts_done) ExplainFacts facts = {};
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *held = NULL, *voluntary = NULL;
        int r;

        sim_ctl_read(w, &c);
        sim_ctl_facts(&c, node, &facts);
        r = explain_make(&facts, &causes);
        if (r == -ENOENT)
                return MUST(strdup("(neither the Node nor a NodeClaim of it is there)"));
        assert(r >= 0);
        held = MUST(explain_text(&facts, &causes));
        voluntary = MUST(explain_told_text(&facts));
        return MUST(strf("%s%s", held, voluntary));
}

/* Keeps what a snapshot of the named node has. */
static void keep_node(CtlSnapshot *s, const char *node) {
        ObjectList nodes = {}, claims = {};

        for (size_t i = 0; i < s->nodes.n_items; i++)
                if (streq(s->nodes.items[i]->meta.name, node))
                        add_ref(&nodes, s->nodes.items[i]);
        for (size_t i = 0; i < s->claims.n_items; i++)
                if (streq_ptr(((const KubeNodeClaim *) s->claims.items[i])->node_name, node))
                        add_ref(&claims, s->claims.items[i]);
        object_list_done(&s->nodes);
        object_list_done(&s->claims);
        s->nodes = nodes;
        s->claims = claims;
        s->named = true;
}

char *sim_ctl_status(SimWorld *w, const char *node) {
        _cleanup_(sim_ctl_done) SimCtl c;
        _cleanup_(status_rows_done) StatusRows rows = {};
        int r;

        sim_ctl_read(w, &c);
        keep_node(&c.snapshot, node);
        if (c.snapshot.nodes.n_items == 0)
                return MUST(strdup("(the Node is gone)"));
        r = status_rows_make(&c.snapshot, &rows);
        assert(r >= 0);
        return MUST(status_rows_table(&rows, &c.snapshot));
}

/* Adds the objects of this kind for which names() returns true. */
static void add_to_timeline(SimWorld *w, FakeResourceId id,
                            bool (*names)(SimWorld *w, const cJSON *object, const char *node),
                            const char *node, int (*take)(Timeline *t, const Json *object), Timeline *t) {
        const FakeStore *store = fake_cluster_store(w->cluster);

        for (size_t i = 0; i < fake_store_size(store, id); i++) {
                FakeVersion *version = fake_store_at(store, id, i);
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_free_ char *text = NULL;
                int r;

                if (!names(w, fake_version_json(version), node))
                        continue;
                text = MUST(fake_version_print(fake_resource(id), version));
                r = json_parse(text, strlen(text), OBJECT_BYTES_MAX, &doc, NULL);
                assert(r >= 0);
                r = take(t, json_root(doc));
                assert(r >= 0);
        }
}

static bool is_node(SimWorld *w, const cJSON *object, const char *node) {
        (void) w;
        return streq_ptr(fj_string(object, "metadata", "name", NULL), node);
}

static bool claim_names_node(SimWorld *w, const cJSON *claim, const char *node) {
        (void) w;
        return streq_ptr(fj_string(claim, "status", "nodeName", NULL), node) ||
               streq_ptr(fj_string(claim, "spec", "nodeName", NULL), node);
}

static bool event_names_node(SimWorld *w, const cJSON *event, const char *node) {
        const char *kind = strempty(fj_string(event, "involvedObject", "kind", NULL)),
                   *name = strempty(fj_string(event, "involvedObject", "name", NULL));

        if (streq(kind, "NodeClaim"))
                return claim_names_node(w, fake_get(w->cluster, FAKE_NODECLAIMS, NULL, name), node);
        return streq(kind, "Node") && streq(name, node);
}

char *sim_ctl_timeline(SimWorld *w, const char *node) {
        _cleanup_(timeline_done) Timeline t = {};
        int r = timeline_init(&t, node);

        assert(r >= 0);
        add_to_timeline(w, FAKE_NODES, is_node, node, timeline_take_object, &t);
        add_to_timeline(w, FAKE_NODECLAIMS, claim_names_node, node, timeline_take_object, &t);
        add_to_timeline(w, FAKE_EVENTS, event_names_node, node, timeline_take_event, &t);
        timeline_sort(&t);
        return MUST(timeline_text(&t));
}
