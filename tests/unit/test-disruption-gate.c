/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-cost.h"
#include "disruption-drift.h"
#include "disruption-due.h"
#include "disruption-methods.h"
#include "disruption-rig.h"
#include "string-util.h"

#define OWNED "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'p','uid':'o','controller':true}]"

/* -- every code with its sentence ----------------------------------------------------------------------- */

static void expect_finding(const GateFindings *f, GateCode code, const char *object, const char *text) {
        for (size_t i = 0; i < f->n_items; i++)
                if (f->items[i].code == code && streq_ptr(f->items[i].object, object)) {
                        assert_string_equal(f->items[i].text, text);
                        return;
                }
        fail_msg("no %s", gate_code_to_string(code));
}

static const RigCluster crowded = {
        .nodes = { { "a", "8", "'labels':{'pool':'a'},'deletionTimestamp':'" RIG_NOW "','annotations':{'karpenter.sh/do-not-disrupt':'true',"
                          "'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'}" } },
        .pods = { { "one", "a", "1", "'labels':{'app':'one'}," OWNED },
                  { "two", "a", "1", "'labels':{'app':'two'}," OWNED },
                  { "many", "a", "1", "'labels':{'app':'many'}," OWNED },
                  { "slow", "a", "1", "'annotations':{'karpenter.sh/do-not-disrupt':'1000h'}," OWNED },
                  { "kept", "a", "1", "'annotations':{'vesper.sh/do-not-evict':'true'}," OWNED },
                  { "ended", "a", "1", "'annotations':{'vesper.sh/do-not-evict':'true'}," OWNED, NULL, "'phase':'Succeeded'" },
                  { "naked", "a", "1", "'labels':{'app':'one'}" } },
        .pool = "'disruption':{'nakedPods':'Block'}",
        .others = { RIG_PDB("one", "one", "'disruptionsAllowed':0,'currentHealthy':1,'desiredHealthy':1,'expectedPods':2"),
                    RIG_PDB("two", "two", "'disruptionsAllowed':0,'currentHealthy':1,'desiredHealthy':3,'expectedPods':3"),
                    RIG_PDB("m1", "many", "'disruptionsAllowed':1"), RIG_PDB("m2", "many", "'disruptionsAllowed':1") },
};

TEST_CASE(test_all_findings) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&crowded);
        _cleanup_(gate_findings_done) GateFindings f = {}, forced = {}, waiting = {};
        _cleanup_free_ char *codes = NULL, *forced_codes = NULL, *waiting_codes = NULL;

        gate_node(r->scene, 0, GATE_FOR_CONSOLIDATION, &f);
        codes = rig_codes(&f);
        /* In the order of the codes, each object once: two pods are held by pdb x/one. */
        assert_string_equal(codes, "DELETING NODE_OPT_OUT NODE_OPT_OUT POD_OPT_OUT POD_OPT_OUT NAKED_POD MULTI_PDB PDB_IMPOSSIBLE PDB_BLOCKS");
        expect_finding(&f, GATE_PDB_BLOCKS, "pdb x/one", "pdb x/one prevents pod evictions");
        expect_finding(&f, GATE_PDB_IMPOSSIBLE, "pdb x/two", "pdb x/two can never allow an eviction: it wants 3 of 3 pods healthy");
        expect_finding(&f, GATE_MULTI_PDB, "pod x/many",
                       "pod x/many is selected by 2 PodDisruptionBudgets, of which the API server evicts none: m1, m2");
        expect_finding(&f, GATE_POD_OPT_OUT, "pod x/kept", "pod x/kept has opted out by vesper.sh/do-not-evict");
        expect_finding(&f, GATE_POD_OPT_OUT, "pod x/slow", "pod x/slow has opted out by karpenter.sh/do-not-disrupt");
        expect_finding(&f, GATE_NAKED_POD, "pod x/naked",
                       "pod x/naked has no controller that would make it anew, and the pool says nakedPods: Block");
        for (size_t i = 0; i < f.n_items; i++) /* it lapses */
                assert_int_equal(f.items[i].until_usec != USEC_INFINITY, streq_ptr(f.items[i].object, "pod x/slow"));

        gate_node(r->scene, 0, GATE_BY_FORCE, &forced);
        forced_codes = rig_codes(&forced);
        assert_string_equal(forced_codes, "DELETING NODE_OPT_OUT");
        gate_node(r->scene, 0, GATE_PODS_MAY_WAIT, &waiting);
        waiting_codes = rig_codes(&waiting);
        assert_string_equal(waiting_codes, "DELETING NODE_OPT_OUT NAKED_POD");
}

TEST_CASE(test_incomplete) {
        const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" } }, .pods = { { "p", "a", "1" } }, .pool = "" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(gate_findings_done) GateFindings f = {}, empty = {};

        r->snapshot->is_known[SNAPSHOT_PDBS] = false;
        rig_judge(r);
        gate_node(r->scene, rig_number(r, "a"), 0, &f);
        assert_true(gate_has(&f, GATE_SNAPSHOT_INCOMPLETE));
        gate_node(r->scene, rig_number(r, "b"), 0, &empty); /* no pod of it depends on them */
        assert_int_equal(empty.n_items, 0);

        r->snapshot->is_known[SNAPSHOT_NODE_BUDGETS] = false; /* which any removal is bounded by */
        gate_budgets(r->scene, rig_number(r, "b"), DISRUPTION_EMPTY, &empty);
        assert_true(gate_has(&empty, GATE_SNAPSHOT_INCOMPLETE));

        r->snapshot->is_known[SNAPSHOT_PODS] = false;
        r->scene = disruption_scene_free(r->scene);
        assert_int_equal(disruption_scene_new(r->snapshot, r->simulator, NULL, &r->scene), -ENODATA);
}

/* -- budgets of a pool, by the hour --------------------------------------------------------------------- */

TEST_CASE(test_allowances) {
        static const struct {
                const char *disruption;
                DisruptionReason reason;
                int64_t allowed; /* -1: as many as there are */
        } rows[] = {
                { "", DISRUPTION_EMPTY, 1 }, /* 10 % of six, rounded up, less none */
                { "'budgets':[]", DISRUPTION_EMPTY, -1 },
                { "'budgets':[{'nodes':'50%'}]", DISRUPTION_EMPTY, 3 },
                { "'budgets':[{'nodes':4},{'nodes':2}]", DISRUPTION_EMPTY, 2 },
                { "'budgets':[{'nodes':4},{'nodes':2,'reasons':['Drifted']}]", DISRUPTION_EMPTY, 4 },
                { "'budgets':[{'nodes':4},{'nodes':2,'reasons':['Drifted']}]", DISRUPTION_DRIFTED, 2 },
                /* It is Friday, 08:00 UTC, and 09:00 in Berlin. */
                { "'budgets':[{'nodes':0,'schedule':'0 8 * * 5','duration':'1h'}]", DISRUPTION_EMPTY, 0 },
                { "'budgets':[{'nodes':0,'schedule':'0 8 * * 4','duration':'1h'}]", DISRUPTION_EMPTY, -1 },
                { "'budgets':[{'nodes':0,'schedule':'0 9 * * 5','duration':'1h'}]", DISRUPTION_EMPTY, -1 },
                { "'budgets':[{'nodes':0,'schedule':'0 9 * * 5','duration':'1h','timeZone':'Etc/UTC'}]", DISRUPTION_EMPTY, -1 },
                { "'budgets':[{'nodes':7,'schedule':'@daily','duration':'1h','timeZone':'Mars/Olympus'}]", DISRUPTION_EMPTY, 0 },
                { "'budgets':[],'windows':[{'schedule':'0 7 * * *','duration':'2h'}]", DISRUPTION_EMPTY, -1 },
                { "'budgets':[],'windows':[{'schedule':'0 7 * * *','duration':'30m'}]", DISRUPTION_EMPTY, 0 },
                { "'budgets':[],'windows':[{'schedule':'0 7 * * *','duration':'2h','reasons':['Expired']}]", DISRUPTION_EMPTY, 0 },
                { "'budgets':[],'maxConcurrent':2", DISRUPTION_EMPTY, 2 },
                { "'budgets':[{'nodes':1}],'maxConcurrent':2", DISRUPTION_EMPTY, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *pool = strf("'disruption':{%s}", rows[i].disruption);
                const RigCluster c = { .nodes = { { "a", "1" }, { "b", "1" }, { "c", "1" }, { "d", "1" }, { "e", "1" }, { "f", "1" } },
                                       .pool = pool };
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
                PoolAllowance a = pool_allowance(r->scene->pools, rows[i].reason);

                print_message("  %s\n", rows[i].disruption);
                assert_int_equal(a.allowed == INT64_MAX ? -1 : a.allowed, rows[i].allowed);
        }
}

/* Nodes that are unavailable use a budget up, and one that the plan takes is counted once. */
TEST_CASE(test_busy) {
        const RigCluster c = { .nodes = { { "a", "1" }, { "b", "1", NULL, "'unschedulable':true" }, { "c", "1" }, { "d", "1" } },
                               .pool = "'disruption':{'budgets':[{'nodes':3}]}" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        DisruptionPool *pool = r->scene->pools;

        assert_int_equal(pool_allowance(pool, DISRUPTION_EMPTY).allowed, 2);
        disruption_count_taken(r->scene, rig_number(r, "a"), 1);
        assert_int_equal(pool_allowance(pool, DISRUPTION_EMPTY).allowed, 1);
        disruption_count_taken(r->scene, rig_number(r, "b"), 1); /* it is cordoned: counted already */
        assert_int_equal(pool_allowance(pool, DISRUPTION_EMPTY).allowed, 1);
        disruption_count_taken(r->scene, rig_number(r, "a"), -1);
        assert_int_equal(pool_allowance(pool, DISRUPTION_EMPTY).allowed, 2);
}

/* -- costs, drift, expiry, waves ------------------------------------------------------------------------- */

TEST_CASE(test_eviction_cost) {
        static const struct {
                int64_t deletion_cost, priority, cost;
        } rows[] = {
                { 0, 0, EVICTION_COST_ONE },
                { INT64_C(1) << 27, 0, 2 * EVICTION_COST_ONE },
                { 0, INT64_C(1) << 25, 2 * EVICTION_COST_ONE },
                { -(INT64_C(1) << 27), 0, 0 },
                { INT64_MAX, INT64_MAX, 10 * EVICTION_COST_ONE },
                { INT64_MIN, INT64_MIN, -10 * EVICTION_COST_ONE },
                { 0, 2000001000, 10 * EVICTION_COST_ONE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const KubeScheduledPod p = { .pod.priority = rows[i].priority, .deletion_cost = rows[i].deletion_cost };

                assert_int_equal(eviction_cost(&p), rows[i].cost);
        }
}

#define SAVINGS \
        "'disruption':{'consolidation':{'minimumSavings':'1%'}},'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','price':2}]"

TEST_CASE(test_order) {
        static const struct {
                const char *what, *pool, *a, *b; /* metadata of both */
                RigPod pods[4];
                const char *first, *other;
        } rows[] = {
                { "less life, though younger", "'disruption':{'expireAfter':'720h'}", NULL,
                  "'labels':{'pool':'z'},'creationTimestamp':'2026-12-17T00:00:00Z'", {}, "a",
                  "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodePool','metadata':{'name':'z'},'spec':{'selector':{'matchLabels':{'pool':'z'}}}}" },
                { "fewer pods", "", NULL, NULL, { { "p1", "a", "1" }, { "p2", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "lower priority", "", NULL, NULL,
                  { { "p", "a", "1", NULL, "'priority':1000000" }, { "q", "b", "1", NULL, "'priority':10" } }, "b" },
                { "soon to expire", "'disruption':{'expireAfter':'720h'}", NULL,
                  "'labels':{'pool':'a'},'creationTimestamp':'2026-12-17T00:00:00Z'", { { "p", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "the older", "", NULL, "'labels':{'pool':'a'},'creationTimestamp':'2026-12-17T00:00:00Z'",
                  { { "p", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "by name", "", NULL, NULL, { { "p", "a", "1" }, { "q", "b", "1" } }, "a" },
                { "the dearer for each pod, where savings are asked for",
                  "'disruption':{'consolidation':{'minimumSavings':'1%'}},'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','price':1}]",
                  "'labels':{'pool':'a','node.kubernetes.io/instance-type':'s'}", "'labels':{'pool':'a','node.kubernetes.io/instance-type':'l'}",
                  { { "p", "a", "1" }, { "q1", "b", "1" }, { "q2", "b", "1" } }, "b" },
                { "as dear for each pod: fewer pods", SAVINGS, RIG_TYPE("s"), RIG_TYPE("l"),
                  { { "p", "a", "1" }, { "q1", "b", "1" }, { "q2", "b", "1" },
                  { "q3", "b", "1" } }, "a" },
                { "as dear for each pod, the other way round", SAVINGS, RIG_TYPE("l"), RIG_TYPE("s"), { { "p1", "a", "1" }, { "p2", "a", "1" },
                  { "p3", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "as dear, and as many pods: by name", SAVINGS, RIG_TYPE("s"), RIG_TYPE("s"), { { "p", "a", "1" }, { "q", "b", "1" } }, "a" },
                { "as dear, and as many pods: the older", SAVINGS, RIG_TYPE("s"), RIG_TYPE("s") ",'creationTimestamp':'2026-12-17T00:00:00Z'",
                  { { "p", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "one whose price is known", SAVINGS, RIG_TYPE("x"), RIG_TYPE("s"), { { "p", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "one whose price is known, of more pods", SAVINGS, RIG_TYPE("s"), RIG_TYPE("x"),
                  { { "p1", "a", "1" }, { "p2", "a", "1" }, { "q", "b", "1" } }, "a" },
                { "no price is known: fewer pods", SAVINGS, RIG_TYPE("x"), RIG_TYPE("x"),
                  { { "p1", "a", "1" }, { "p2", "a", "1" }, { "q", "b", "1" } }, "b" },
                { "prices do not count where no savings are asked for", "'offerings':[{'instanceType':'l','price':4},"
                  "{'instanceType':'s','price':1}]", RIG_TYPE("s"),
                  RIG_TYPE("l"), { { "p", "a", "1" }, { "q", "b", "1" } }, "a" },
                { "pods that cost nothing to evict: less life", "'disruption':{'expireAfter':'720h'}", NULL,
                  "'labels':{'pool':'a'},'creationTimestamp':'2026-12-17T00:00:00Z'", {}, "b" },
                { "expired already", "'disruption':{'expireAfter':'720h'}", NULL, "'labels':{'pool':'a'},'creationTimestamp':'2026-11-17T00:00:00Z'",
                  { { "p", "a", "1" }, { "q1", "b", "1" }, { "q2", "b", "1" } }, "b" },
                { "nothing to evict, and more pods that stay", "", NULL, NULL, { { "p", "a", "1", "'labels':{'app':'p'},'annotations':{"
                  "'controller.kubernetes.io/pod-deletion-cost':'-134217728'},"
                  "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'o','uid':'u',"
                  "'controller':true}]" } }, "b" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                RigCluster c = { .nodes = { { "a", "4", rows[i].a }, { "b", "4", rows[i].b } }, .pool = rows[i].pool };
                _cleanup_(disruption_rig_freep) DisruptionRig *r = NULL;
                uint32_t nodes[] = { 0, 1 };

                print_message("  %s\n", rows[i].what);
                memcpy(c.pods, rows[i].pods, sizeof(rows[i].pods));
                c.others[0] = rows[i].other;
                r = disruption_rig_new(&c);
                assert_return_code(disruption_sort(r->scene, nodes, 2), 0);
                assert_string_equal(scene_node_name(r->scene, nodes[0]), rows[i].first);
        }
}

TEST_CASE(test_drift) {
        static const struct {
                const char *template, *meta, *spec, *why; /* NULL: none */
        } rows[] = {
                { "'labels':{'pool':'a'}", NULL, NULL, NULL },
                { "'labels':{'tier':'2'}", NULL, NULL, "it has no label tier, and spec.template says '2'" },
                { "'labels':{'tier':'2'}", "'labels':{'pool':'a','tier':'1'}", NULL, "label tier is '1', and spec.template says '2'" },
                { "'annotations':{'vesper.sh/hash':'2'}", NULL, NULL, "it has no annotation vesper.sh/hash, and spec.template says '2'" },
                { "'annotations':{'others.io/hash':'2'}", NULL, NULL, NULL }, /* nobody keeps those of a Node */
                { "'taints':[{'key':'gpu','effect':'NoSchedule'}]", NULL, NULL, "it has no taint gpu=:NoSchedule, which spec.template says" },
                { "'taints':[{'key':'gpu','effect':'NoSchedule'}]", NULL, "'taints':[{'key':'gpu','effect':'NoSchedule'}]", NULL },
                { "'startupTaints':[{'key':'cni','effect':'NoSchedule'}]", NULL, NULL, NULL },
                { "'requirements':[{'key':'arch','operator':'In','values':['arm64','amd64']}]", "'labels':{'pool':'a','arch':'amd64'}", NULL, NULL },
                { "'requirements':[{'key':'arch','operator':'In','values':['arm64','s390x']}]", "'labels':{'pool':'a','arch':'amd64'}", NULL,
                  "label arch is 'amd64', and spec.template requires In arm64, s390x" },
                { "'requirements':[{'key':'arch','operator':'Exists'}]", NULL, NULL, "it has no label arch, and spec.template requires Exists" },
                { "'nodeInfo':{'kubeletVersion':'v1.33.1','osImage':'Debian GNU/Linux 12'}", NULL, NULL, NULL },
                { "'nodeInfo':{'kubeletVersion':'v1.34.4'}", NULL, NULL, "its kubelet is v1.33.1, and spec.template.nodeInfo says v1.34.4" },
                { "'nodeInfo':{'kubeletVersion':'v1.33.1','osImage':'Debian GNU/Linux 13'}", NULL, NULL,
                  "its operating system is Debian GNU/Linux 12, and spec.template.nodeInfo says Debian GNU/Linux 13" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *pool = strf("'template':{%s}", rows[i].template), *why = NULL;
                const RigCluster c = { .nodes = { { "a", "4", rows[i].meta, rows[i].spec } }, .pool = pool };
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);

                print_message("  %s\n", rows[i].template);
                assert_return_code(node_drift(simulator_node(r->simulator, 0), NULL, r->scene->pools[0].pool, &why), 0);
                if (rows[i].why)
                        assert_string_equal(why, rows[i].why);
                else
                        assert_null(why);
        }
}

/* What a claim was made with is what counts until it goes. */
TEST_CASE(test_drift_of_grace) {
        const RigCluster c = { .nodes = { { "a", "4" } },
                               .pool = "'template':{'terminationGracePeriod':'30m'}",
                               .others = { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c'},'spec':{'nodePool':'a',"
                                           "'providerID':'x','terminationGracePeriod':'10m'},'status':{'nodeName':'a','nodeUID':'u-a'}}" } };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_free_ char *why = NULL;

        assert_return_code(node_drift(simulator_node(r->simulator, 0), r->scene->nodes[0].claim, r->scene->pools[0].pool, &why), 0);
        assert_string_equal(why, "its claim has terminationGracePeriod 10min, and spec.template says 30min");
}

TEST_CASE(test_expiry) {
        const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'expireAfter':'1000h','expireHardAfter':'1100h'}" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        usec_t created = r->scene->nodes[0].created_usec, a = node_expires_usec(r->scene, 0), b = node_expires_usec(r->scene, 1);

        /* Never later than it says, a day at most before, and not both at once. */
        assert_true(a <= created + 1000 * USEC_PER_HOUR && a > created + 976 * USEC_PER_HOUR);
        assert_true(b <= created + 1000 * USEC_PER_HOUR && b > created + 976 * USEC_PER_HOUR);
        assert_int_not_equal(a, b);
        assert_int_equal(a, node_expires_usec(r->scene, 0));
        assert_int_equal(node_expires_hard_usec(r->scene, 0), created + 1100 * USEC_PER_HOUR);

        /* The node is due from that moment on. */
        for (int i = -1; i <= 1; i++) {
                _cleanup_(gate_findings_done) GateFindings f = {};
                NodeDue due = {};

                r->scene->now_usec = i < 0 ? a - 1 : a + (usec_t) i;
                assert_int_equal(node_due_by_expiry(r->scene, 0, &due, &f), i >= 0);
                assert_int_equal(due.since_usec, i >= 0 ? a : 0);
                free(due.why);
        }
}

/* Of pods, anybody writes it. */
TEST_CASE(test_endless_grace) {
        const RigCluster c = {
                .nodes = { { "a", "8" } },
                .pods = { { "p", "a", "1", NULL, "'terminationGracePeriodSeconds':18446744073710" },
                          { "q", "a", "1", "'deletionTimestamp':'" RIG_NOW "','deletionGracePeriodSeconds':18446744073710" } },
                .pool = "",
        };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        uint32_t node = 0;
        DrainEstimate e;

        assert_return_code(drain_estimate(r->scene, &node, 1, &e), 0);
        assert_int_equal(e.n_waves, 1);
        assert_true(e.usec == USEC_INFINITY);
        assert_true(r->scene->nodes[0].quiet_since_usec < RIG_NOW_USEC - USEC_PER_DAY);
}

TEST_CASE(test_waves) {
        const RigCluster c = {
                .nodes = { { "a", "8" }, { "b", "8" } },
                .pods = { { "p1", "a", "1" }, { "p2", "a", "1" }, { "p3", "a", "1" }, { "q", "a", "1", NULL, "'terminationGracePeriodSeconds':60" },
                          { "p4", "b", "1" }, { "p5", "b", "1", NULL, NULL, "'phase':'Pending'" } },
                .pool = "",
                .others = { RIG_PDB("web", "p", "'disruptionsAllowed':2,'currentHealthy':5,'desiredHealthy':3,'expectedPods':5") },
        };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        uint32_t nodes[] = { 0, 1 };
        DrainEstimate one, both, none;

        assert_return_code(drain_estimate(r->scene, nodes, 1, &one), 0);
        assert_int_equal(one.n_waves, 2); /* three by twos */
        assert_int_equal(one.n_pods, 4);
        assert_string_equal(one.pdb->pdb->object.meta.name, "web");
        assert_int_equal(one.usec, 2 * 60 * USEC_PER_SEC + SUCCESSOR_USEC);
        assert_return_code(drain_estimate(r->scene, nodes, 2, &both), 0);
        assert_int_equal(both.n_waves, 2); /* four: the pod that has not begun to run is let go */
        assert_return_code(drain_estimate(r->scene, NULL, 0, &none), 0);
        assert_int_equal(none.n_waves, 0);
        assert_int_equal(none.usec, 0);
}

/* Each app has some pods on the node, and a PodDisruptionBudget. The one that lets the fewest go in a wave is named; the first of those
 * that are alike. */
TEST_CASE(test_narrowest_budget) {
        static const struct {
                const char *what;
                struct {
                        unsigned n_pods;
                        int allowed; /* -1: there is no budget */
                } apps[3];
                size_t n_waves;
                const char *pdb; /* NULL: none is named */
                bool is_endless;
        } rows[] = {
                { "one wave: no budget is narrow", { { 3, 3 }, { 1, 1 } }, 1, NULL, false },
                { "a budget with room for all but one", { { 3, 2 }, { 1, 1 } }, 2, "a", false },
                { "room for two thirds, and for half", { { 3, 2 }, { 4, 1 } }, 4, "b", false },
                { "the same number of waves", { { 3, 1 }, { 6, 2 } }, 3, "a", false },
                { "a wave more", { { 3, 1 }, { 7, 2 } }, 4, "b", false },
                { "one that allows none, before one of more waves", { { 4, 1 }, { 2, 0 } }, 4, "b", true },
                { "one that allows none, behind one of more waves", { { 2, 0 }, { 4, 1 } }, 4, "a", true },
                { "one that allows none for one pod", { { 1, 0 } }, 1, "a", true },
                { "two that allow none", { { 1, 0 }, { 5, 1 }, { 3, 0 } }, 5, "c", true },
                { "two that allow none, alike", { { 5, 1 }, { 2, 0 }, { 2, 0 } }, 5, "b", true },
                { "one that allows none for pods of other nodes", { { 2, 1 }, { 0, 0 } }, 2, "a", false },
                { "no budget", { { 2, -1 } }, 1, NULL, false },
        };
        static const char names[] = "abc";
        uint32_t node = 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *owned[RIG_ROWS + ELEMENTSOF(rows[i].apps)] = {};
                RigCluster c = { .nodes = { { "n", "16" } }, .pool = "" };
                size_t n = 0, n_owned = 0, n_pdbs = 0;
                DrainEstimate e;

                print_message("  %s\n", rows[i].what);
                for (size_t k = 0; k < ELEMENTSOF(rows[i].apps); k++) {
                        for (unsigned j = 0; j < rows[i].apps[k].n_pods; j++) {
                                owned[n_owned] = strf("%c%u", names[k], j);
                                c.pods[n++] = (RigPod){ owned[n_owned++], "n", "1" };
                        }
                        if (rows[i].apps[k].allowed < 0)
                                continue;
                        owned[n_owned] = strf(RIG_PDB("%c", "%c", "'disruptionsAllowed':%d,'currentHealthy':9,'desiredHealthy':1,'expectedPods':9"),
                                              names[k], names[k], rows[i].apps[k].allowed);
                        c.others[n_pdbs++] = owned[n_owned++];
                }
                {
                        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);

                        assert_return_code(drain_estimate(r->scene, &node, 1, &e), 0);
                        assert_int_equal(e.n_pods, n);
                        assert_int_equal(e.n_waves, rows[i].n_waves);
                        assert_int_equal(e.is_endless, rows[i].is_endless);
                        assert_string_equal(e.pdb ? e.pdb->pdb->object.meta.name : "none", rows[i].pdb ? rows[i].pdb : "none");
                        assert_int_equal(e.usec, rows[i].n_waves * 30 * USEC_PER_SEC + (rows[i].n_waves - 1) * SUCCESSOR_USEC);
                }
                for (size_t k = 0; k < n_owned; k++)
                        free(owned[k]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_narrowest_budget),
                cmocka_unit_test(test_all_findings), cmocka_unit_test(test_incomplete),     cmocka_unit_test(test_allowances),
                cmocka_unit_test(test_busy),         cmocka_unit_test(test_eviction_cost),  cmocka_unit_test(test_order),
                cmocka_unit_test(test_drift),        cmocka_unit_test(test_drift_of_grace), cmocka_unit_test(test_expiry),
                cmocka_unit_test(test_waves),        cmocka_unit_test(test_endless_grace),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
