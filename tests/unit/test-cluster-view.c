/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cluster-view.h"
#include "cmocka-test.h"
#include "fake-client.h"
#include "kube-scheduling.h"
#include "log.h"
#include "string-util.h"
#include "texts.h"

#define MSEC USEC_PER_MSEC

typedef struct Bench {
        FakeWorld w;
        Env env;
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        ClusterView *view;
        StrBuf trace;
        unsigned n_synced;
} Bench;

static void on_node(const char *node, void *userdata) {
        strbuf_addf(&((Bench *) userdata)->trace, " node:%s", node);
}

static void on_pool(const char *pool, void *userdata) {
        strbuf_addf(&((Bench *) userdata)->trace, " pool:%s", pool);
}

static void on_claim(const char *claim, void *userdata) {
        strbuf_addf(&((Bench *) userdata)->trace, " claim:%s", claim);
}

static void on_pod(const char *node, const KubePod *old, const KubePod *new, void *userdata) {
        const KubePod *p = new ? new : old;

        strbuf_addf(&((Bench *) userdata)->trace, " pod%s:%s@%s",
                    old && new ? ""
                    : new      ? "+"
                               : "-",
                    p->object.meta.name, node);
}

static void on_any_pod(const KubePod *old, const KubePod *new, void *userdata) {
        const KubePod *p = new ? new : old;

        assert_ptr_equal(p->object.kind, &kube_scheduled_pod_kind);
        if (!p->node_name)
                strbuf_addf(&((Bench *) userdata)->trace, " unbound:%s", p->object.meta.name);
}

static void on_pdb(const KubePdb *old, const KubePdb *new, void *userdata) {
        strbuf_addf(&((Bench *) userdata)->trace, " pdb%s:%s",
                    old && new ? ""
                    : new      ? "+"
                               : "-",
                    (new ? new : old)->object.meta.name);
}

static void on_synced(void *userdata) {
        ((Bench *) userdata)->n_synced++;
}

static void on_health(bool connected, const char *why, void *userdata) {
        strbuf_addf(&((Bench *) userdata)->trace, " health:%d", connected);
}

static void bench_init(Bench *b) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };

        *b = (Bench){};
        fake_world_init(&b->w, &quiet);
        assert_return_code(random_new(3, &b->random), 0);
        assert_return_code(http_inproc_new(b->w.loop, FAKE_ADMIN, NULL, &b->transport), 0);
        assert_return_code(http_inproc_route(b->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster),
                           0);
        b->env = (Env){ .loop = b->w.loop, .random = b->random, .transport = b->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(b->w.loop, NULL, NULL, config, NULL, NULL, &b->auth, &message), 0);
        assert_return_code(kube_client_new(&b->env, b->auth, FAKE_ORIGIN, "test", &b->client), 0);
}

static void bench_start(Bench *b) {
        ClusterViewHandler h = { .on_node_dirty = on_node,
                                 .on_pool_dirty = on_pool,
                                 .on_claim_dirty = on_claim,
                                 .on_pod = on_pod,
                                 .on_any_pod = on_any_pod,
                                 .on_pdb = on_pdb,
                                 .on_synced = on_synced,
                                 .on_health = on_health,
                                 .userdata = b };

        assert_return_code(cluster_view_new(b->client, "vesper-system", &h, &b->view), 0);
        assert_false(cluster_view_synced(b->view));
        fake_world_run(&b->w, USEC_PER_SEC);
        assert_true(cluster_view_synced(b->view));
        assert_int_equal(b->n_synced, 1);
        strbuf_truncate(&b->trace, 0);
}

static void bench_done(Bench *b) {
        cluster_view_free(b->view);
        kube_client_free(b->client);
        kube_auth_free(b->auth);
        http_transport_free(b->transport);
        random_free(b->random);
        fake_world_done(&b->w);
        strbuf_done(&b->trace);
}

/* Returns the nodes that became dirty within 100 ms. */
static void assert_dirty(Bench *b, const char *expected) {
        fake_world_run(&b->w, 100 * MSEC);
        assert_string_equal(strbuf_str(&b->trace), expected);
        strbuf_truncate(&b->trace, 0);
}

static void put_claim(Bench *b, const char *name, const char *instance, const char *node) {
        fake_put(b->w.cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'%s'},'spec':{'nodePool':'p','providerID':'aws:///us-east-1a/"
                          "%s'},"
                          "'status':{%s%s%s}}",
                          name, instance, node ? "'nodeName':'" : "", strempty(node), node ? "'" : ""));
}

static void put_volume(Bench *b, const char *name, const char *node) {
        fake_put(b->w.cluster, FAKE_VOLUMEATTACHMENTS,
                 fj_parse("{'metadata':{'name':'%s'},'spec':{'attacher':'x','nodeName':'%s','source':{}}}",
                          name, node));
}

static size_t n_pods(Bench *b, const char *node) {
        const KubePod *pod;
        size_t n = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_pods(b->view, node, &it, &pod);) {
                assert_string_equal(pod->node_name, node);
                n++;
        }
        return n;
}

static size_t n_volumes(Bench *b, const char *node) {
        const KubeVolumeAttachment *v;
        size_t n = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_volumes(b->view, node, &it, &v);)
                n++;
        return n;
}

static size_t n_all_pods(Bench *b) {
        const KubePod *pod;
        size_t n = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_all_pods(b->view, &it, &pod);)
                n++;
        return n;
}

/* -- who becomes dirty ---------------------------------------------------------------------------------- */

TEST_CASE(test_dirty) {
        Bench b;

        bench_init(&b);
        fake_add_node(b.w.cluster, "a", NULL, "i-1", NULL);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "old", .node = "a" });
        bench_start(&b);

        fake_add_node(b.w.cluster, "b", NULL, "i-2", NULL);
        assert_dirty(&b, " node:b");
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = "a", .app = "web" });
        assert_dirty(&b, " pod+:web@a");
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "pending", .app = "web" });
        assert_dirty(&b, " unbound:pending");
        assert_int_equal(n_all_pods(&b), 3);
        fake_merge(b.w.cluster, FAKE_PODS, "default", "pending", "{'spec':{'nodeName':'b'}}");
        assert_dirty(&b, " pod+:pending@b");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'status':{'phase':'Failed'}}");
        assert_dirty(&b, " pod:web@a");

        print_message("  of a pod what nobody reads, and what is read: told once, as any other change\n");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'status':{'podIP':'10.0.0.7'}}");
        assert_dirty(&b, " pod:web@a");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web", "{'metadata':{'annotations':{'x/y':'z'}}}");
        assert_dirty(&b, " pod:web@a");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "web",
                   "{'metadata':{'annotations':{'vesper.sh/do-not-evict':'true'}}}");
        assert_dirty(&b, " pod:web@a");

        print_message("  a PDB: by its spec the nodes of its pods, by its status nobody\n");
        fake_add_pdb(b.w.cluster, NULL, "pdb", "web", true, "1");
        fake_world_run(&b.w, 100 * MSEC);
        assert_true(startswith(strbuf_str(&b.trace), " pdb+:pdb"));
        assert_non_null(strstr(strbuf_str(&b.trace), " node:a"));
        assert_non_null(strstr(strbuf_str(&b.trace), " node:b"));
        strbuf_truncate(&b.trace, 0);
        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb", "{'status':{'disruptionsAllowed':1}}");
        assert_dirty(&b, " pdb:pdb");
        for (int pass = 1; pass >= 0; pass--) { /* unready pods begin, or cease, to pass it by */
                fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb",
                           "{'status':{'currentHealthy':%d,'desiredHealthy':2}}", pass ? 2 : 1);
                assert_dirty(&b, " pdb:pdb node:b node:a");
        }
        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb", "{'status':{'currentHealthy':0}}");
        assert_dirty(&b, " pdb:pdb");
        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb",
                   "{'spec':{'selector':{'matchLabels':{'app':'none'}}}}");
        assert_dirty(&b, " pdb:pdb node:b node:a"); /* those it left, too */
        fake_remove(b.w.cluster, FAKE_PDBS, "default", "pdb");
        assert_dirty(&b, " pdb-:pdb");

        print_message("  a volume, a claim, a pool\n");
        put_volume(&b, "v", "b");
        assert_dirty(&b, " node:b");
        fake_remove(b.w.cluster, FAKE_VOLUMEATTACHMENTS, NULL, "v");
        assert_dirty(&b, " node:b");
        put_claim(&b, "nc-1", "i-1", NULL);
        assert_dirty(&b, " claim:nc-1 node:a");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "a", "{'metadata':{'labels':{'x':'y'}}}");
        assert_dirty(&b, " node:a claim:nc-1");
        fake_remove(b.w.cluster, FAKE_NODECLAIMS, NULL, "nc-1");
        assert_dirty(&b, " claim:nc-1 node:a");
        put_claim(&b, "nc-9", "i-9", "gone"); /* of a Node that left before it */
        assert_dirty(&b, " claim:nc-9");
        fake_remove(b.w.cluster, FAKE_NODECLAIMS, NULL, "nc-9");
        assert_dirty(&b, " claim:nc-9");
        fake_add_nodepool(b.w.cluster, "p", NULL, NULL);
        assert_dirty(&b, " pool:p");

        print_message("  all that goes\n");
        fake_remove(b.w.cluster, FAKE_PODS, "default", "web");
        assert_dirty(&b, " pod-:web@a");
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "a");
        assert_dirty(&b, " node:a");
        bench_done(&b);
}

/* -- indexes -------------------------------------------------------------------------------------------- */

TEST_CASE(test_pods_and_volumes) {
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p1", .node = "a" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p1", .ns = "kube-system", .node = "a" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p2", .node = "b" });
        put_volume(&b, "v1", "a");
        put_volume(&b, "v2", "a");
        bench_start(&b);
        assert_int_equal(n_pods(&b, "a"), 2);
        assert_int_equal(n_pods(&b, "b"), 1);
        assert_int_equal(n_pods(&b, "c"), 0);
        assert_int_equal(n_volumes(&b, "a"), 2);

        fake_remove(b.w.cluster, FAKE_PODS, "kube-system", "p1");
        fake_remove(b.w.cluster, FAKE_VOLUMEATTACHMENTS, NULL, "v1");
        fake_merge(b.w.cluster, FAKE_PODS, "default", "p2", "{'metadata':{'labels':{'x':'y'}}}");
        fake_world_run(&b.w, 100 * MSEC);
        assert_int_equal(n_pods(&b, "a"), 1);
        assert_int_equal(n_pods(&b, "b"), 1);
        assert_int_equal(n_volumes(&b, "a"), 1);

        print_message("  through a relist after a gap\n");
        fake_api_cut_watches(fake_cluster_api(b.w.cluster));
        fake_remove(b.w.cluster, FAKE_PODS, "default", "p2");
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p3", .node = "b" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p4", .node = "b" });
        fake_cluster_compact(b.w.cluster);
        fake_world_run(&b.w, 30 * USEC_PER_SEC);
        assert_int_equal(n_pods(&b, "b"), 2);
        bench_done(&b);
}

TEST_CASE(test_provider_ids) {
        const KubeNode *a, *n;
        bool several;
        Bench b;

        bench_init(&b);
        fake_add_node(b.w.cluster, "a", NULL, "i-1", NULL);
        fake_add_node(b.w.cluster, "late", NULL, NULL, NULL);
        put_claim(&b, "nc-1", "i-1", NULL);
        bench_start(&b);
        a = cluster_view_node(b.view, "a");
        assert_string_equal(cluster_view_claim_of_node(b.view, a)->object.meta.name, "nc-1");
        assert_ptr_equal(cluster_view_node_of_provider_id(b.view, "aws:///us-east-1a/i-1", &several), a);
        assert_false(several);
        assert_null(cluster_view_node_of_provider_id(b.view, "aws:///us-east-1a/i-9", &several));
        assert_null(cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "late")));

        print_message("  a node that gets its providerID later\n");
        put_claim(&b, "nc-2", "i-2", NULL);
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "late", "{'spec':{'providerID':'aws:///us-east-1a/i-2'}}");
        fake_world_run(&b.w, 100 * MSEC);
        n = cluster_view_node(b.view, "late");
        assert_string_equal(cluster_view_claim_of_node(b.view, n)->object.meta.name, "nc-2");

        print_message("  two claims: the one that is not being deleted\n");
        fake_put(b.w.cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'nc-0','finalizers':['a/"
                          "b'],'deletionTimestamp':'2026-01-01T00:00:00Z'},"
                          "'spec':{'nodePool':'p','providerID':'aws:///us-east-1a/i-2'}}"));
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(cluster_view_claim_of_node(b.view, n)->object.meta.name, "nc-2");

        print_message("  ... even where only that one names the node, and the first of two that are alike\n");
        fake_merge(b.w.cluster, FAKE_NODECLAIMS, NULL, "nc-0", "{'status':{'nodeName':'late'}}");
        put_claim(&b, "nc-3", "i-2", NULL);
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(cluster_view_claim_of_node(b.view, n)->object.meta.name, "nc-2");

        print_message("  ... be it the first of them\n");
        fake_add_node(b.w.cluster, "other", NULL, "i-5", NULL);
        fake_put(b.w.cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'nc-4','finalizers':['a/"
                          "b'],'deletionTimestamp':'2026-01-01T00:00:00Z'},"
                          "'spec':{'nodePool':'p','providerID':'aws:///us-east-1a/i-5'},'status':{'nodeName':'other'}}"));
        fake_world_run(&b.w, 100 * MSEC);
        put_claim(&b, "nc-5", "i-5", NULL);
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(
                cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "other"))->object.meta.name, "nc-5");

        print_message("  a claim that names a Node of another machine is of this one all the same\n");
        fake_merge(b.w.cluster, FAKE_NODECLAIMS, NULL, "nc-1", "{'status':{'nodeName':'late'}}");
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(
                cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "a"))->object.meta.name, "nc-1");

        print_message("  a node whose providerID is another one is found by that, and by no other\n");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "late", "{'spec':{'providerID':'aws:///us-east-1a/i-7'}}");
        fake_world_run(&b.w, 100 * MSEC);
        assert_null(cluster_view_node_of_provider_id(b.view, "aws:///us-east-1a/i-2", NULL));
        assert_non_null(cluster_view_node_of_provider_id(b.view, "aws:///us-east-1a/i-7", NULL));

        print_message("  two nodes: each its own\n");
        fake_add_node(b.w.cluster, "twin", NULL, "i-1", NULL);
        fake_merge(b.w.cluster, FAKE_NODECLAIMS, NULL, "nc-1", "{'status':{'nodeName':'a'}}");
        fake_world_run(&b.w, 100 * MSEC);
        (void) cluster_view_node_of_provider_id(b.view, "aws:///us-east-1a/i-1", &several);
        assert_true(several);
        assert_null(cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "twin")));
        assert_string_equal(
                cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "a"))->object.meta.name,
                "nc-1");
        print_message("  ... as the claim was made, while its status is still to come\n");
        fake_merge(b.w.cluster, FAKE_NODECLAIMS, NULL, "nc-1", "{'spec':{'nodeName':'a'},'status':null}");
        fake_world_run(&b.w, 100 * MSEC);
        assert_null(cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "twin")));
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "a");
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(
                cluster_view_claim_of_node(b.view, cluster_view_node(b.view, "twin"))->object.meta.name,
                "nc-1");
        bench_done(&b);
}

/* exec://NAME stands for the Node of that name alone, whoever else writes it as its providerID. */
TEST_CASE(test_ids_by_name) {
        const KubeNode *named;
        bool several;
        Bench b;

        bench_init(&b);
        fake_add_node(b.w.cluster, "liar", NULL, NULL, NULL);
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "liar", "{'spec':{'providerID':'exec://v'}}");
        bench_start(&b);
        assert_null(cluster_view_node_of_provider_id(b.view, "exec://v", &several));
        assert_false(several);
        fake_add_node(b.w.cluster, "v", NULL, NULL, NULL);
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "v", "{'spec':{'providerID':'exec://v'}}");
        fake_world_run(&b.w, 100 * MSEC);
        named = cluster_view_node_of_provider_id(b.view, "exec://v", &several);
        assert_ptr_equal(named, cluster_view_node(b.view, "v"));
        assert_false(several);
        bench_done(&b);
}

/* -- pools ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_pools) {
        static const struct {
                const char *what, *node;
                PoolMatch match;
                const char *pool;
        } rows[] = {
                { "none", "nobodys", POOL_MATCH_NONE, NULL },
                { "one", "web", POOL_MATCH_ONE, "web" },
                { "two, the first by name", "both", POOL_MATCH_SEVERAL, "gpu" },
                { "one that cannot be understood matches nothing", "broken", POOL_MATCH_NONE, NULL },
                { "one that is being deleted matches nothing", "going", POOL_MATCH_NONE, NULL },
                { "an empty selector matches nothing", "empty", POOL_MATCH_NONE, NULL },
        };
        Bench b;

        bench_init(&b);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                fake_add_node(b.w.cluster, rows[i].node, NULL, NULL, NULL);
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "web", "{'metadata':{'labels':{'web':'y'}}}");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "both", "{'metadata':{'labels':{'web':'y','gpu':'y'}}}");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "broken", "{'metadata':{'labels':{'broken':'y'}}}");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "going", "{'metadata':{'labels':{'going':'y'}}}");
        fake_put(b.w.cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'web'},'spec':{'selector':{'matchLabels':{'web':'y'}}}}"));
        fake_put(b.w.cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'gpu'},'spec':{'selector':{'matchExpressions':"
                          "[{'key':'gpu','operator':'Exists'}]}}}"));
        fake_put(b.w.cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'all'},'spec':{'selector':{}}}"));
        fake_put(b.w.cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'broken'},'spec':{'selector':{'matchExpressions':"
                          "[{'key':'broken','operator':'Like'}]}}}"));
        fake_put(b.w.cluster, FAKE_NODEPOOLS,
                 fj_parse("{'metadata':{'name':'going','finalizers':['a/"
                          "b'],'deletionTimestamp':'2026-01-01T00:00:00Z'},"
                          "'spec':{'selector':{'matchLabels':{'going':'y'}}}}"));
        bench_start(&b);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const KubeNodePool *pool = NULL, *other = NULL;

                print_message("  %s\n", rows[i].what);
                assert_int_equal(cluster_view_pool_of_node(b.view, cluster_view_node(b.view, rows[i].node),
                                                           &pool, &other),
                                 rows[i].match);
                assert_true(streq_ptr(pool ? pool->object.meta.name : NULL, rows[i].pool));
                assert_int_equal(other != NULL, rows[i].match == POOL_MATCH_SEVERAL);
        }
        bench_done(&b);
}

/* -- PDBs ----------------------------------------------------------------------------------------------- */

TEST_CASE(test_pdb_of_pod) {
        static const struct {
                const char *what, *pdb_spec, *pdb_status, *pod_phase, *pod_meta;
                bool ready, second, asked;
        } rows[] = {
                { "a healthy pod", "{}", "{}", "Running", "{}", true, false, true },
                { "two PDBs: the API server says so itself", "{}", "{}", "Running", "{}", true, true,
                  false },
                { "a pod that waits to start", "{}", "{}", "Pending", "{}", false, false, false },
                { "a pod that ended", "{}", "{}", "Succeeded", "{}", false, false, false },
                { "a pod that failed", "{}", "{}", "Failed", "{}", true, false, false },
                { "a pod on its way out", "{}", "{}", "Running",
                  "{'deletionTimestamp':'2026-01-01T00:00:00Z'}", true, false, false },
                { "not Ready, and enough others are healthy", "{}",
                  "{'currentHealthy':2,'desiredHealthy':2}", "Running", "{}", false, false, false },
                { "not Ready, and not enough are", "{}", "{'currentHealthy':1,'desiredHealthy':2}",
                  "Running", "{}", false, false, true },
                { "not Ready, none desired", "{}", "{'currentHealthy':0,'desiredHealthy':0}", "Running",
                  "{}", false, false, true },
                { "not Ready, always allowed", "{'unhealthyPodEvictionPolicy':'AlwaysAllow'}",
                  "{'currentHealthy':1,'desiredHealthy':2}", "Running", "{}", false, false, false },
                { "Ready under AlwaysAllow", "{'unhealthyPodEvictionPolicy':'AlwaysAllow'}", "{}", "Running",
                  "{}", true, false, true },
                { "another app's", "{'selector':{'matchLabels':{'app':'db'}}}", "{}", "Running", "{}", true,
                  false, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const KubePod *pod = NULL;
                const KubePdb *pdb;
                Bench b;

                print_message("  %s\n", rows[i].what);
                bench_init(&b);
                fake_add_pod(
                        b.w.cluster,
                        &(FakePod){ .name = "p", .node = "a", .app = "web", .unready = !rows[i].ready });
                fake_merge(b.w.cluster, FAKE_PODS, "default", "p", "{'metadata':%s,'status':{'phase':'%s'}}",
                           rows[i].pod_meta, rows[i].pod_phase);
                fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
                fake_merge(b.w.cluster, FAKE_PDBS, "default", "web", "{'spec':%s,'status':%s}",
                           rows[i].pdb_spec, rows[i].pdb_status);
                fake_add_pdb(b.w.cluster, "kube-system", "elsewhere", "web", true, "1");
                if (rows[i].second)
                        fake_add_pdb(b.w.cluster, NULL, "also", "web", true, "1");
                bench_start(&b);
                for (HashmapIterator it = {}; cluster_view_iterate_pods(b.view, "a", &it, &pod);)
                        break;
                assert_non_null(pod);
                pdb = cluster_view_pdb_of_pod(b.view, pod);
                assert_true(rows[i].asked ? pdb && streq(pdb->object.meta.name, "web") : !pdb);
                bench_done(&b);
        }
}

/* -- what a PDB's edit touches -------------------------------------------------------------------------- */

#define RANDOM_PODS 15u /* names of pods in each namespace */
#define RANDOM_NODES 5u
#define RANDOM_ROUNDS 400u

static const char *const some_ns[] = { "default", "kube-system", "team" };
static const char *const some_apps[] = { "web", "db", "none" };

#define DRAW(b, table) ((table)[random_below((b)->random, ELEMENTSOF(table))])

typedef struct Model {
        struct {
                const char *app; /* NULL: there is no such pod */
                int node;        /* -1: not bound */
        } pods[ELEMENTSOF(some_ns)][RANDOM_PODS];
        const char *pdb_apps[ELEMENTSOF(some_ns)]; /* NULL: there is no PDB */
} Model;

/* Removes the pod, makes it anew, labels it, or binds it. */
static void random_pod(Bench *b, Model *m) {
        size_t ns = (size_t) random_below(b->random, ELEMENTSOF(some_ns));
        size_t i = (size_t) random_below(b->random, ELEMENTSOF(m->pods[0]));
        const char *app = DRAW(b, some_apps);
        char name[32], node[32];

        (void) snprintf(name, sizeof(name), "p%zu", i);
        if (!m->pods[ns][i].app) {
                m->pods[ns][i].node = (int) random_below(b->random, RANDOM_NODES + 1) - 1;
                (void) snprintf(node, sizeof(node), "n%d", m->pods[ns][i].node);
                fake_add_pod(b->w.cluster, &(FakePod){ .ns = some_ns[ns], .name = name, .app = app,
                                                       .node = m->pods[ns][i].node < 0 ? NULL : node });
                m->pods[ns][i].app = app;
        } else if (random_below(b->random, 3) == 0) {
                fake_remove(b->w.cluster, FAKE_PODS, some_ns[ns], name);
                m->pods[ns][i].app = NULL;
        } else if (m->pods[ns][i].node < 0) {
                m->pods[ns][i].node = (int) random_below(b->random, RANDOM_NODES);
                fake_merge(b->w.cluster, FAKE_PODS, some_ns[ns], name, "{'spec':{'nodeName':'n%d'}}",
                           m->pods[ns][i].node);
        } else {
                fake_merge(b->w.cluster, FAKE_PODS, some_ns[ns], name, "{'metadata':{'labels':{'app':'%s'}}}", app);
                m->pods[ns][i].app = app;
        }
}

/* The PDB of a namespace comes, goes, or gets another selector; then its nodes are compared with the naive answer. */
static void random_pdb(Bench *b, Model *m) {
        size_t ns = (size_t) random_below(b->random, ELEMENTSOF(some_ns)), n_bound = 0;
        const char *old = m->pdb_apps[ns], *new = random_below(b->random, 4) == 0 ? NULL : DRAW(b, some_apps);
        bool expected[RANDOM_NODES] = {};
        uint64_t before = cluster_view_n_compared(b->view);

        if (new && old && streq(new, old))
                return; /* no edit */
        if (!new && !old)
                return;
        for (size_t i = 0; i < ELEMENTSOF(m->pods[ns]); i++) {
                const char *app = m->pods[ns][i].app;

                if (!app || m->pods[ns][i].node < 0)
                        continue;
                n_bound++;
                if ((old && streq(app, old)) || (new &&streq(app, new)))
                        expected[m->pods[ns][i].node] = true;
        }
        if (!new)
                fake_remove(b->w.cluster, FAKE_PDBS, some_ns[ns], "pdb");
        else if (!old)
                fake_add_pdb(b->w.cluster, some_ns[ns], "pdb", new, true, "1");
        else
                fake_merge(b->w.cluster, FAKE_PDBS, some_ns[ns], "pdb",
                           "{'spec':{'selector':{'matchLabels':{'app':'%s'}}}}", new);
        m->pdb_apps[ns] = new;

        fake_world_run(&b->w, 100 * MSEC);
        for (unsigned i = 0; i < RANDOM_NODES; i++) {
                char node[32];

                (void) snprintf(node, sizeof(node), " node:n%u", i);
                assert_int_equal(strstr(strbuf_str(&b->trace), node) != NULL, expected[i]);
        }
        assert_int_equal(cluster_view_n_compared(b->view) - before, n_bound);
        strbuf_truncate(&b->trace, 0);
}

/* Compares the cached PDB of each bound pod with the model. */
static void assert_pdbs(Bench *b, const Model *m) {
        const KubePod *pod;

        for (HashmapIterator it = {}; cluster_view_iterate_all_pods(b->view, &it, &pod);)
                for (size_t ns = 0; pod->node_name && ns < ELEMENTSOF(some_ns); ns++) {
                        const char *app = object_meta_label(&pod->object.meta, "app");
                        bool has = m->pdb_apps[ns] && streq_ptr(app, m->pdb_apps[ns]);

                        if (!streq_ptr(pod->object.meta.ns, some_ns[ns]) || pod->phase != POD_RUNNING || !pod->ready ||
                            pod->object.meta.deletion_usec > 0)
                                continue;
                        assert_true(!cluster_view_pdb_of_pod(b->view, pod) != has);
                }
}

TEST_CASE(test_pdb_random) {
        Model m = {};
        Bench b;

        bench_init(&b);
        bench_start(&b);
        for (unsigned round = 0; round < RANDOM_ROUNDS; round++) {
                for (unsigned n = (unsigned) random_below(b.random, 6); n > 0; n--)
                        random_pod(&b, &m);
                if (random_below(b.random, 20) == 0) { /* a relist brings what the watch missed */
                        fake_api_cut_watches(fake_cluster_api(b.w.cluster));
                        random_pod(&b, &m);
                        fake_cluster_compact(b.w.cluster);
                        fake_world_run(&b.w, 30 * USEC_PER_SEC);
                }
                fake_world_run(&b.w, 100 * MSEC);
                strbuf_truncate(&b.trace, 0);
                random_pdb(&b, &m);
                assert_pdbs(&b, &m);
        }
        bench_done(&b);
}

/* A drain asks for the PDB in every pass: a pod is compared with the PDBs of its namespace once. */
TEST_CASE(test_matched_once) {
        static const unsigned n_pdbs = 40;
        const KubePod *pod = NULL;
        Bench b;

        bench_init(&b);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p", .node = "a", .app = "web" });
        for (unsigned i = 0; i < n_pdbs; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "pdb-%u", i);
                fake_add_pdb(b.w.cluster, NULL, name, i == 7 ? "web" : "db", true, "1");
        }
        bench_start(&b);
        for (HashmapIterator it = {}; cluster_view_iterate_pods(b.view, "a", &it, &pod);)
                break;
        for (unsigned i = 0; i < 100; i++)
                assert_string_equal(cluster_view_pdb_of_pod(b.view, pod)->object.meta.name, "pdb-7");
        assert_int_equal(cluster_view_n_matched(b.view), n_pdbs);

        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb-7", "{'status':{'disruptionsAllowed':5}}");
        fake_world_run(&b.w, 100 * MSEC);
        assert_int_equal(cluster_view_pdb_of_pod(b.view, pod)->disruptions_allowed, 5);
        assert_int_equal(cluster_view_n_matched(b.view), n_pdbs);

        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb-8", "{'spec':{'selector':{'matchLabels':{'app':'other'}}}}");
        fake_world_run(&b.w, 100 * MSEC);
        for (unsigned i = 0; i < 100; i++)
                assert_non_null(cluster_view_pdb_of_pod(b.view, pod));
        assert_int_equal(cluster_view_n_matched(b.view), n_pdbs);

        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb-7", "{'spec':{'selector':{'matchLabels':{'app':'other'}}}}");
        fake_world_run(&b.w, 100 * MSEC);
        for (unsigned i = 0; i < 100; i++)
                assert_null(cluster_view_pdb_of_pod(b.view, pod));
        assert_int_equal(cluster_view_n_matched(b.view), 2 * n_pdbs);
        bench_done(&b);
}

static void on_log(LogLevel level, const char *id, const char *text, const LogField *fields, size_t n, void *userdata) {
        if (strstr(text, "PodDisruptionBudgets"))
                strbuf_addf(userdata, "%s %s\n", log_level_to_string(level), text);
}

static unsigned n_lines(const StrBuf *said, const char *part) {
        return text_count(strbuf_str(said), part);
}

/* In a namespace with too many PDBs the API server's answers decide, until one of the PDBs is deleted. The log
 * says both, and a tenant who does that again and again gets no more than twenty lines. */
TEST_CASE(test_too_many_pdbs) {
        _cleanup_(log_freep) Log *log = NULL;
        _cleanup_strbuf_ StrBuf said = {};
        const KubePod *pod = NULL;
        Bench b;

        bench_init(&b);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "view", &log), 0);
        log_set_hook(log, on_log, &said);
        b.env.log = log;
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "p", .node = "a", .app = "web" });
        fake_add_pdb(b.w.cluster, NULL, "web", "web", true, "1");
        for (unsigned i = 1; i < 1000; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "pdb-%u", i);
                fake_add_pdb(b.w.cluster, NULL, name, "db", true, "1");
        }
        bench_start(&b);
        for (HashmapIterator it = {}; cluster_view_iterate_pods(b.view, "a", &it, &pod);)
                break;
        assert_non_null(cluster_view_pdb_of_pod(b.view, pod));
        fake_add_pdb(b.w.cluster, NULL, "one-more", "db", true, "1");
        fake_world_run(&b.w, 100 * MSEC);
        assert_null(cluster_view_pdb_of_pod(b.view, pod));
        assert_int_equal(cluster_view_n_crowded_namespaces(b.view), 1);
        assert_int_equal(n_lines(&said, "warning Namespace default has more than 1,000 PodDisruptionBudgets"), 1);
        fake_add_pdb(b.w.cluster, NULL, "second-more", "db", true, "1");
        fake_remove(b.w.cluster, FAKE_PDBS, "default", "second-more");
        fake_world_run(&b.w, 100 * MSEC);
        assert_int_equal(n_lines(&said, "\n"), 1);
        fake_remove(b.w.cluster, FAKE_PDBS, "default", "one-more");
        fake_world_run(&b.w, 100 * MSEC);
        assert_non_null(cluster_view_pdb_of_pod(b.view, pod));
        assert_int_equal(cluster_view_n_crowded_namespaces(b.view), 0);
        assert_int_equal(n_lines(&said, "notice Namespace default has 1,000 PodDisruptionBudgets again"), 1);

        for (unsigned i = 0; i < 50; i++) {
                fake_add_pdb(b.w.cluster, NULL, "one-more", "db", true, "1");
                fake_remove(b.w.cluster, FAKE_PDBS, "default", "one-more");
                fake_world_run(&b.w, 10 * MSEC);
        }
        assert_in_range(n_lines(&said, "\n"), 3, 20);
        assert_int_equal(cluster_view_n_crowded_namespaces(b.view), 0);
        bench_done(&b);
}

/* -- memory of pods ------------------------------------------------------------------------------------- */

TEST_CASE(test_costliest_namespace) {
        size_t n_pods, bytes, before;
        Bench b;

        bench_init(&b);
        bench_start(&b);
        assert_null(cluster_view_costliest_namespace(b.view, &n_pods, &bytes));
        for (unsigned i = 0; i < 3; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "p-%u", i);
                fake_add_pod(b.w.cluster, &(FakePod){ .ns = "many", .name = name, .node = "a", .app = "web" });
        }
        fake_add_pod(b.w.cluster, &(FakePod){ .ns = "large", .name = "p", .app = "web", .pending = true });
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(cluster_view_costliest_namespace(b.view, &n_pods, &bytes), "many");
        assert_int_equal(n_pods, 3);
        before = bytes;

        /* Forty labels that nobody else has. */
        for (unsigned i = 0; i < 40; i++)
                fake_merge(b.w.cluster, FAKE_PODS, "large", "p",
                           "{'metadata':{'labels':{'a-label-of-its-own-%u':'a-value-of-its-own-%u'}}}", i, i);
        fake_world_run(&b.w, 100 * MSEC);
        assert_string_equal(cluster_view_costliest_namespace(b.view, &n_pods, &bytes), "large");
        assert_int_equal(n_pods, 1);
        assert_true(bytes > before && bytes > 40 * strlen("a-label-of-its-own-a-value-of-its-own"));
        fake_remove(b.w.cluster, FAKE_PODS, "large", "p");
        fake_world_run(&b.w, USEC_PER_MINUTE);
        assert_string_equal(cluster_view_costliest_namespace(b.view, &n_pods, &bytes), "many");
        assert_int_equal(bytes, before);
        bench_done(&b);
}

/* 300 pods elsewhere, three here, of which one is not bound: two are compared. */
TEST_CASE(test_pdb_of_few) {
        Bench b;

        bench_init(&b);
        for (unsigned i = 0; i < 300; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "many-%u", i);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .ns = "kube-system", .node = "a", .app = "web" });
        }
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = "b", .app = "web" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "db", .node = "c", .app = "db" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "pending", .app = "web" });
        bench_start(&b);

        fake_add_pdb(b.w.cluster, NULL, "pdb", "web", true, "1");
        assert_dirty(&b, " pdb+:pdb node:b");
        assert_int_equal(cluster_view_n_compared(b.view), 2);
        fake_merge(b.w.cluster, FAKE_PDBS, "default", "pdb", "{'status':{'disruptionsAllowed':1}}");
        assert_dirty(&b, " pdb:pdb");
        assert_int_equal(cluster_view_n_compared(b.view), 2);
        fake_add_pdb(b.w.cluster, "empty", "pdb", "web", true, "1");
        assert_dirty(&b, " pdb+:pdb");
        assert_int_equal(cluster_view_n_compared(b.view), 2);
        bench_done(&b);
}

/* -- health --------------------------------------------------------------------------------------------- */

TEST_CASE(test_health) {
        Bench b;

        bench_init(&b);
        bench_start(&b);
        assert_true(cluster_view_healthy(b.view));
        fake_api_away_until(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 30 * USEC_PER_SEC);
        fake_world_run(&b.w, 10 * USEC_PER_SEC);
        assert_string_equal(strbuf_str(&b.trace), " health:0");
        assert_false(cluster_view_healthy(b.view));
        fake_world_run(&b.w, 20 * USEC_PER_SEC + MSEC);
        cluster_view_kick(b.view);
        fake_world_run(&b.w, 30 * USEC_PER_SEC);
        assert_string_equal(strbuf_str(&b.trace), " health:0 health:1");
        assert_int_equal(b.n_synced, 1);
        bench_done(&b);
}

static void refuse_pods(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->resource && r->resource->id == FAKE_PODS)
                fault->status = 503;
}

/* With one of six watches down the view is not whole. It is whole again when that watch stands. */
TEST_CASE(test_health_of_one) {
        Bench b;

        bench_init(&b);
        bench_start(&b);
        for (unsigned round = 0; round < 2; round++) {
                fake_world_run(&b.w, USEC_PER_MINUTE);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), refuse_pods, NULL);
                fake_api_cut_watches(fake_cluster_api(b.w.cluster));
                fake_world_run(&b.w, USEC_PER_MINUTE);
                assert_string_equal(strbuf_str(&b.trace), " health:0");
                fake_api_set_fault(fake_cluster_api(b.w.cluster), NULL, NULL);
                fake_world_run(&b.w, 2 * USEC_PER_MINUTE);
                assert_string_equal(strbuf_str(&b.trace), " health:0 health:1");
                strbuf_truncate(&b.trace, 0);
        }
        bench_done(&b);
}

/* -- pods that left --------------------------------------------------------------------------------------- */

static bool knows_all_vanished(const Bench *b) {
        return !vanished_pods_are_incomplete(cluster_view_vanished(b->view));
}

/* Until a minute after the first list nobody knows who left before it; the same goes for a list that follows a watch whose history is lost, and
 * not for a watch that goes on where another ended. */
TEST_CASE(test_vanished_before) {
        Bench b;

        bench_init(&b);
        bench_start(&b);
        assert_false(knows_all_vanished(&b));
        fake_world_run(&b.w, VANISHED_USEC - 2 * USEC_PER_SEC);
        assert_false(knows_all_vanished(&b));
        fake_world_run(&b.w, 2 * USEC_PER_SEC);
        assert_true(knows_all_vanished(&b));

        fake_api_cut_watches(fake_cluster_api(b.w.cluster));
        fake_world_run(&b.w, 30 * USEC_PER_SEC);
        assert_true(cluster_view_healthy(b.view));
        assert_true(knows_all_vanished(&b));

        fake_api_away_until(fake_cluster_api(b.w.cluster), loop_now(b.w.loop) + 10 * USEC_PER_SEC);
        fake_put(b.w.cluster, FAKE_PODS, fj_parse("{'metadata':{'name':'p','namespace':'x'},'spec':{'containers':[{'name':'c'}]}}"));
        fake_cluster_compact(b.w.cluster);
        fake_world_run(&b.w, VANISHED_USEC);
        assert_true(cluster_view_healthy(b.view));
        assert_false(knows_all_vanished(&b));
        fake_world_run(&b.w, VANISHED_USEC);
        assert_true(knows_all_vanished(&b));
        bench_done(&b);
}

/* A providerID of EC2 names an instance; no other does. */
TEST_CASE(test_instance_of_id) {
        static const struct {
                const char *provider_id, *instance;
        } rows[] = {
                { "aws:///eu-central-1a/i-1", "i-1" },
                { "aws://i-1", "i-1" },
                { "aws:///eu-central-1a/i-12", "i-12" },
                { "aws:///i-1/i-2", "i-2" },
                { "aws:///eu-central-1a/i-1/", NULL },
                { "aws://", NULL },
                { "gce://project/zone/i-1", NULL },
                { "i-1", NULL },
                { "", NULL },
                { NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].provider_id ? rows[i].provider_id : "no providerID");
                assert_true(streq_ptr(machine_id_ec2_instance(rows[i].provider_id), rows[i].instance));
        }
}

/* The view finds instances of EC2 in any zone, by Node and by NodeClaim, as long as these exist. */
TEST_CASE(test_instances) {
        const KubeNodeClaim *claim;
        const KubeNode *node;
        Bench b;

        bench_init(&b);
        bench_start(&b);
        fake_put(b.w.cluster, FAKE_NODES,
                 fj_parse("{'metadata':{'name':'a'},'spec':{'providerID':'aws:///z1/i-1'}}"));
        fake_put(b.w.cluster, FAKE_NODES,
                 fj_parse("{'metadata':{'name':'b'},'spec':{'providerID':'gce://p/z/i-2'}}"));
        fake_put(b.w.cluster, FAKE_NODECLAIMS,
                 fj_parse("{'metadata':{'name':'c'},'spec':{'providerID':'aws:///z2/i-1'}}"));
        fake_world_run(&b.w, USEC_PER_SEC);
        assert_true(cluster_view_iterate_nodes_of_instance(b.view, "i-1", &(HashmapIterator){}, &node));
        assert_string_equal(node->object.meta.name, "a");
        assert_true(cluster_view_iterate_claims_of_instance(b.view, "i-1", &(HashmapIterator){}, &claim));
        assert_string_equal(claim->object.meta.name, "c");
        assert_false(cluster_view_iterate_nodes_of_instance(b.view, "i-2", &(HashmapIterator){}, &node));
        assert_false(cluster_view_iterate_nodes_of_instance(b.view, "i-10", &(HashmapIterator){}, &node));
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "a");
        fake_world_run(&b.w, USEC_PER_SEC);
        assert_false(cluster_view_iterate_nodes_of_instance(b.view, "i-1", &(HashmapIterator){}, &node));
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_dirty),        cmocka_unit_test(test_pods_and_volumes),
                cmocka_unit_test(test_provider_ids), cmocka_unit_test(test_instance_of_id),
                cmocka_unit_test(test_instances),    cmocka_unit_test(test_ids_by_name),
                cmocka_unit_test(test_pools),
                cmocka_unit_test(test_pdb_of_pod),   cmocka_unit_test(test_pdb_random), cmocka_unit_test(test_pdb_of_few),
                cmocka_unit_test(test_matched_once), cmocka_unit_test(test_too_many_pdbs), cmocka_unit_test(test_costliest_namespace),
                cmocka_unit_test(test_health),
                cmocka_unit_test(test_health_of_one),
                cmocka_unit_test(test_vanished_before),
        };
        return cmocka_run_group_tests_name("cluster-view", tests, NULL, NULL);
}
