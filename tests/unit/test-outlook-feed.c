/* SPDX-License-Identifier: Apache-2.0 */
/* Pods come, move, end and go at any moment: before the snapshot, between it and its simulator, in a round, after it. What is judged is
 * the cluster as it was when the round began. */
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-client.h"
#include "outlook-feed.h"
#include "string-util.h"

#define N_PODS 12u
#define N_NODES 3u
#define WATCHES_USEC (200 * USEC_PER_MSEC) /* until they have told */

typedef struct Bench {
        FakeWorld w;
        Env env;
        Random *random, *dice;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        ClusterView *view;
        OutlookFeed *feed;
        unsigned n_labels; /* given to nodes so far */
} Bench;

static void on_dirty(const char *name, void *userdata) {
}

static void on_any_pod(const KubePod *old, const KubePod *new, void *userdata) {
        Bench *b = userdata;

        if (b->feed)
                outlook_feed_on_pod(b->feed, old, new);
}

static void on_node(const KubeNode *old, const KubeNode *new, void *userdata) {
        Bench *b = userdata;

        if (b->feed)
                outlook_feed_on_node(b->feed, old, new);
}

static void on_pod(const char *node, const KubePod *old, const KubePod *new, void *userdata) {
}

static void on_pdb(const KubePdb *old, const KubePdb *new, void *userdata) {
}

static void on_synced(void *userdata) {
}

static void on_changed(void *userdata) {
}

static void bench_init(Bench *b, uint64_t seed) {
        const ClusterViewHandler h = { .on_node_dirty = on_dirty, .on_pool_dirty = on_dirty, .on_claim_dirty = on_dirty,
                                       .on_pod = on_pod, .on_pdb = on_pdb, .on_any_pod = on_any_pod, .on_node = on_node, .on_synced = on_synced, .userdata = b };
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };

        *b = (Bench){};
        fake_world_init(&b->w, &quiet);
        assert_return_code(random_new(3, &b->random), 0);
        assert_return_code(random_new(seed, &b->dice), 0);
        assert_return_code(http_inproc_new(b->w.loop, FAKE_ADMIN, NULL, &b->transport), 0);
        assert_return_code(http_inproc_route(b->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster), 0);
        b->env = (Env){ .loop = b->w.loop, .random = b->random, .transport = b->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(b->w.loop, NULL, NULL, config, NULL, NULL, &b->auth, &message), 0);
        assert_return_code(kube_client_new(&b->env, b->auth, FAKE_ORIGIN, "test", &b->client), 0);
        for (unsigned i = 0; i < N_NODES; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                fake_put(b->w.cluster, FAKE_NODES, fj_parse("{'metadata':{'name':'%s'},'status':{'allocatable':{'cpu':'4','pods':'99'}}}", name));
        }
        assert_return_code(cluster_view_new(b->client, "vesper-system", &h, &b->view), 0);
        fake_world_run(&b->w, USEC_PER_SEC);
        assert_true(cluster_view_synced(b->view));
        assert_return_code(outlook_feed_new(b->client, b->view, on_changed, b, &b->feed), 0);
}

static void bench_done(Bench *b) {
        outlook_feed_free(b->feed);
        cluster_view_free(b->view);
        kube_client_free(b->client);
        kube_auth_free(b->auth);
        http_transport_free(b->transport);
        random_free(b->random);
        random_free(b->dice);
        fake_world_done(&b->w);
}

/* One of a few pods comes, to a node, to one that there is not, or to none; is bound then; is another; has run; or goes. */
static void change_some_pod(Bench *b) {
        _cleanup_free_ char *name = strf("p%u", (unsigned) random_below(b->dice, N_PODS)), *node = strf("n%u", (unsigned) random_below(b->dice, N_NODES));
        const cJSON *pod = fake_get(b->w.cluster, FAKE_PODS, "x", name);
        bool is_bound = pod && fj_get(pod, "spec", "nodeName", NULL);

        if (!pod)
                fake_put(b->w.cluster, FAKE_PODS, fj_parse("{'metadata':{'name':'%s','namespace':'x'},'spec':{'nodeName':%s,'containers':[{'name':'c'}]},'status':{'phase':'Pending'}}",
                                                           name, (const char *[]){ "'n0'", "'n1'", "'none'", "null" }[random_below(b->dice, 4)]));
        else if (random_below(b->dice, 3) == 0)
                fake_remove(b->w.cluster, FAKE_PODS, "x", name);
        else if (!is_bound)
                fake_merge(b->w.cluster, FAKE_PODS, "x", name, "{'spec':{'nodeName':'%s'}}", node);
        else {
                bool succeeded = random_below(b->dice, 2);

                fake_merge(b->w.cluster, FAKE_PODS, "x", name, "{'metadata':{'labels':{'round':'%u'}},'status':{'phase':'%s'}}",
                           (unsigned) random_below(b->dice, 1000), succeeded ? "Succeeded" : "Running");
        }
}

static void change_some(Bench *b) {
        for (uint64_t n = random_below(b->dice, 4); n > 0; n--)
                change_some_pod(b);
        fake_world_run(&b->w, 5 * USEC_PER_MSEC);
}

/* Each pod with what is told of it, sorted. */
static int compare_texts(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static char *join_sorted(char **texts, size_t n) {
        _cleanup_strbuf_ StrBuf all = {};

        if (n > 0)
                qsort(texts, n, sizeof(char *), compare_texts);
        for (size_t i = 0; i < n; i++) {
                strbuf_addf(&all, "%s\n", texts[i]);
                free(texts[i]);
        }
        return strbuf_steal(&all) ?: strdup("");
}

static char *pod_text(const KubePod *p) {
        return strf("%s/%s@%s %d %s", p->object.meta.ns, p->object.meta.name, strempty(p->node_name), (int) p->phase, p->object.meta.resource_version);
}

static char *say_view(const Bench *b) {
        char *texts[N_PODS];
        const KubePod *p;
        size_t n = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_all_pods(b->view, &it, &p);)
                texts[n++] = pod_text(p);
        return join_sorted(texts, n);
}

static char *say_simulator(const Simulator *s) {
        char *texts[N_PODS];
        size_t n = 0;

        for (uint32_t i = 0; i < simulator_n_pods(s); i++) {
                const KubeScheduledPod *p = simulator_pod(s, i);
                uint32_t node;

                if (!p)
                        continue;
                assert_in_range(n, 0, N_PODS - 1);
                texts[n++] = pod_text(&p->pod);
                if (simulator_pod_runs(s, i)) { /* it is found where it stands */
                        assert_int_equal(simulator_find_running(s, p, &node), 0);
                        assert_int_equal(node, i);
                } else
                        assert_int_equal(simulator_find_running(s, p, &node), -ENOENT);
        }
        return join_sorted(texts, n);
}

TEST_CASE(test_any_moment) {
        unsigned n_rounds = 0, n_between = 0;

        for (uint64_t seed = 1; seed <= 20; seed++) {
                Bench b;

                bench_init(&b, seed);
                for (unsigned step = 0; step < 120; step++) {
                        DisruptionScene *scene = NULL;
                        usec_t at = 0;
                        int r;

                        if (random_below(b.dice, 3) == 0)
                                fake_merge(b.w.cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'n':'%u'}}}", b.n_labels++);
                        change_some(&b);
                        r = outlook_feed_begin(b.feed, &scene, &at);
                        assert_in_range(r, 0, 1);
                        if (r > 0) {
                                _cleanup_free_ char *then = say_view(&b), *before = say_simulator(scene->simulator), *after = NULL;

                                assert_string_equal(before, then);
                                change_some(&b);
                                after = say_simulator(scene->simulator);
                                assert_string_equal(after, before);
                                outlook_feed_end(b.feed);
                                n_rounds++;
                        } else {
                                assert_true(at > loop_now(b.w.loop));
                                if (at <= loop_now(b.w.loop) + 10 * USEC_PER_MSEC) {
                                        change_some(&b); /* between snapshot and simulator, if it is that */
                                        n_between++;
                                }
                                if (at > loop_now(b.w.loop))
                                        fake_world_run(&b.w, at - loop_now(b.w.loop));
                        }
                }
                bench_done(&b);
        }
        print_message("%u rounds, %u times something came between the parts\n", n_rounds, n_between);
        assert_true(n_rounds > 500 && n_between > 100);
}

/* NULL: none has begun after a minute. */
static DisruptionScene *next_round(Bench *b) {
        usec_t until = usec_add(loop_now(b->w.loop), USEC_PER_MINUTE), at = 0;
        DisruptionScene *scene = NULL;

        while (loop_now(b->w.loop) < until) {
                assert_in_range(outlook_feed_begin(b->feed, &scene, &at), 0, 1);
                if (scene)
                        return scene;
                fake_world_run(&b->w, at - loop_now(b->w.loop));
        }
        return NULL;
}

/* A snapshot whose simulator could not be made for long, as lists were under way, is taken anew if a node has changed since; one that was taken a
 * moment ago makes its simulator, whatever changes. */
TEST_CASE(test_old_snapshot) {
        static const struct {
                usec_t waits_usec;
                bool changes, is_cordoned; /* the node does; in the next round it is */
                unsigned n_parts;          /* until the round begins */
        } rows[] = {
                { 20 * USEC_PER_MSEC, true, false, 1 },
                { USEC_PER_MINUTE, true, true, 2 },
                { USEC_PER_MINUTE, false, false, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                DisruptionScene *scene = NULL;
                unsigned n_parts = 0;
                usec_t at = 0;
                Bench b;

                bench_init(&b, 1);
                fake_world_run(&b.w, VANISHED_USEC);
                assert_int_equal(outlook_feed_begin(b.feed, &scene, &at), 0);
                assert_int_equal(at, loop_now(b.w.loop) + 10 * USEC_PER_MSEC); /* the snapshot is there */
                if (rows[i].changes)
                        fake_merge(b.w.cluster, FAKE_NODES, NULL, "n0", "{'spec':{'unschedulable':true}}");
                fake_world_run(&b.w, rows[i].waits_usec);
                for (int r = 0; r == 0; n_parts++) {
                        assert_in_range(n_parts, 0, 9);
                        r = outlook_feed_begin(b.feed, &scene, &at);
                        assert_in_range(r, 0, 1);
                        if (r == 0)
                                fake_world_run(&b.w, at - loop_now(b.w.loop));
                }
                assert_int_equal(n_parts, rows[i].n_parts);
                assert_int_equal(simulator_node(scene->simulator, 0)->node.unschedulable, rows[i].is_cordoned);
                outlook_feed_end(b.feed);
                bench_done(&b);
        }
}

/* -- pods that vanished ----------------------------------------------------------------------------------- */

/* A pod that is spread by a label that no other asks for comes, and goes without grace. */
static void make_spread_vanish(Bench *b, unsigned n) {
        _cleanup_free_ char *name = strf("v%u", n);

        fake_put(b->w.cluster, FAKE_PODS,
                 fj_parse("{'metadata':{'name':'%s','namespace':'x','uid':'%s','labels':{'k%u':'v'},"
                          "'ownerReferences':[{'apiVersion':'v1','kind':'X','name':'%s','uid':'o%u','controller':true}]},'spec':{'containers':[{'name':'c'}],"
                          "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'kubernetes.io/hostname','whenUnsatisfiable':'DoNotSchedule',"
                          "'labelSelector':{'matchLabels':{'k%u':'v'}}}]}}",
                          name, name, n, name, n, n));
        fake_world_run(&b->w, WATCHES_USEC);
        fake_remove(b->w.cluster, FAKE_PODS, "x", name);
        fake_world_run(&b->w, WATCHES_USEC);
}

/* Until it is known who left before the view was complete, nothing is judged; afterwards not all is judged as if nobody knew. */
TEST_CASE(test_first_round) {
        DisruptionScene *scene = NULL;
        usec_t began, at = 0;
        Bench b;

        bench_init(&b, 1);
        began = loop_now(b.w.loop);
        assert_int_equal(outlook_feed_begin(b.feed, &scene, &at), 0);
        assert_in_range(at, began + VANISHED_USEC - USEC_PER_SEC, began + VANISHED_USEC);
        fake_world_run(&b.w, at - began - 1);
        assert_int_equal(outlook_feed_begin(b.feed, &scene, &at), 0);
        scene = next_round(&b);
        assert_non_null(scene);
        assert_false(outlook_feed_awaits(b.feed));
        outlook_feed_end(b.feed);
        bench_done(&b);
}

static size_t n_simulated(const Simulator *s) {
        size_t n = 0;

        for (uint32_t i = 0; i < simulator_n_pods(s); i++)
                n += simulator_pod(s, i) != NULL;
        return n;
}

/*
 * Such pods come and go one after another, so that there is always one whose label the simulator did not know: between two rounds, when a new
 * snapshot is due first, or in a round. Each round begins all the same, and has them all.
 */
TEST_CASE(test_vanished_with_rules_of_their_own) {
        for (unsigned in_round = 0; in_round < 2; in_round++) {
                DisruptionScene *scene;
                Bench b;

                bench_init(&b, 1);
                change_some_pod(&b);
                fake_world_run(&b.w, VANISHED_USEC); /* until all that left are known */
                for (unsigned i = 0; i < 5; i++) {
                        usec_t before = loop_now(b.w.loop);
                        unsigned n = i + !in_round;

                        if (!in_round)
                                make_spread_vanish(&b, i);
                        scene = next_round(&b);
                        if (!scene)
                                fail_msg("no round begins after %u pods have gone", n);
                        assert_in_range(loop_now(b.w.loop) - before, 0, in_round ? USEC_PER_SEC : 11 * USEC_PER_SEC);
                        assert_int_equal(n_simulated(scene->simulator), 1 + n);
                        assert_int_equal(outlook_feed_awaits(b.feed), n > 0);
                        if (in_round)
                                make_spread_vanish(&b, i);
                        assert_int_equal(n_simulated(scene->simulator), 1 + n);
                        outlook_feed_end(b.feed);
                }
                fake_world_run(&b.w, USEC_PER_MINUTE);
                scene = next_round(&b);
                assert_non_null(scene);
                assert_false(outlook_feed_awaits(b.feed));
                assert_int_equal(n_simulated(scene->simulator), 1);
                outlook_feed_end(b.feed);
                bench_done(&b);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_any_moment),
                cmocka_unit_test(test_first_round),
                cmocka_unit_test(test_old_snapshot),
                cmocka_unit_test(test_vanished_with_rules_of_their_own),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
