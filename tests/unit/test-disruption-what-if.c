/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cluster-maker.h"
#include "cmocka-test.h"
#include "disruption-rig.h"
#include "snapshot-anonymize.h"
#include "snapshot-file.h"
#include "string-util.h"

#define SPOT(t) "'labels':{'pool':'a','karpenter.sh/capacity-type':'spot','node.kubernetes.io/instance-type':'" t "'}"
#define OFFERINGS "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','price':1.5,'allocatable':{'cpu':'4'}}]"
#define OPTED_OUT \
        "'annotations':{'karpenter.sh/do-not-evict':'true'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet'," \
        "'name':'p','uid':'o','controller':true}]"

/* -- replacing ------------------------------------------------------------------------------------------ */

TEST_CASE(test_replacing) {
        static const struct {
                const char *what;
                RigCluster cluster;
                const char *want, *says; /* says: a piece of a sentence about the last node that stays */
        } cases[] = {
                { "one by a cheaper one",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3" } }, RIG_UNDERUTILIZED "," OFFERINGS },
                  "Consolidation/replace a p>new-1 +s", NULL },
                { "two by one",
                  { { { "a", "2", RIG_TYPE("l") }, { "b", "2", RIG_TYPE("l") } },
                    { { "p", "a", "2" }, { "q", "b", "2" } }, RIG_UNDERUTILIZED "," OFFERINGS },
                  "Consolidation/replace a b p>new-1 q>new-1 +s", NULL },
                { "none is cheaper that would do",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "7" } }, RIG_UNDERUTILIZED "," OFFERINGS },
                  "a: NO_CHEAPER NOT_PLACED", "can't replace with a cheaper node: it costs 4" },
                { "none is cheaper",
                  { { { "a", "4", RIG_TYPE("s") } }, { { "p", "a", "3" } }, RIG_UNDERUTILIZED "," OFFERINGS },
                  "a: NO_CHEAPER NOT_PLACED", "can't replace with a cheaper node: it costs 1.5, and the cheapest offering of its pool 1.5" },
                { "nobody knows what it costs",
                  { { { "a", "4", RIG_TYPE("xl") } }, { { "p", "a", "3" } }, RIG_UNDERUTILIZED "," OFFERINGS },
                  "a: PRICE_UNKNOWN NOT_PLACED", NULL },
                { "not enough is saved",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3" } },
                    "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized','minimumSavings':'80%'}}," OFFERINGS },
                  "a: SAVINGS_LOW NOT_PLACED", "less than the 80 %" },
                { "spot never takes the place of spot",
                  { { { "a", "8", SPOT("l") } }, { { "p", "a", "3" } },
                    RIG_UNDERUTILIZED ",'offerings':[{'instanceType':'l','capacityType':'spot','price':4},"
                                  "{'instanceType':'s','capacityType':'spot','price':1,'allocatable':{'cpu':'4'}}]" },
                  "a: SPOT_TO_SPOT NOT_PLACED", "spot capacity" },
                { "on-demand takes its place",
                  { { { "a", "8", SPOT("l") } }, { { "p", "a", "3" } },
                    RIG_UNDERUTILIZED ",'offerings':[{'instanceType':'l','capacityType':'spot','price':4},"
                                  "{'instanceType':'s','capacityType':'on-demand','price':1,'allocatable':{'cpu':'4'}}]" },
                  "Consolidation/replace a p>new-1 +s, on-demand", NULL },
                { "the limits of its pool allow no other",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3" } }, RIG_UNDERUTILIZED "," OFFERINGS ",'limits':{'cpu':'11','memory':'1Ti'}" },
                  "a: POOL_LIMIT NOT_PLACED",
                  "one new s would take its place, and save 2.5 of its 4, but NodePool a may have 11 cpu (spec.limits): its nodes, this one included, have 8, "
                  "and the new one would add 4. Raise spec.limits.cpu to at least 12" },
                { "nor memory",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3" } }, RIG_UNDERUTILIZED "," OFFERINGS ",'limits':{'memory':'150Gi'}" },
                  "a: POOL_LIMIT NOT_PLACED", "may have 150Gi memory (spec.limits): its nodes, this one included, have 100Gi, and the new one would add 100Gi. Raise spec.limits.memory to at least 200Gi" },
                { "nor nodes",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3" } }, RIG_UNDERUTILIZED "," OFFERINGS ",'limits':{'nodes':1}" },
                  "a: POOL_LIMIT NOT_PLACED", "NodePool a may have 1 node (spec.limits) and has 1, this one included. Raise spec.limits.nodes to at least 2" },
                { "limits would not, but none would do either",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "7" } }, RIG_UNDERUTILIZED "," OFFERINGS ",'limits':{'cpu':'8'}" },
                  "a: NO_CHEAPER NOT_PLACED", NULL },
                { "what has gone makes room for one more",
                  { { { "a", "6", RIG_TYPE("l") }, { "b", "6", RIG_TYPE("l") } },
                    { { "p", "a", "4" }, { "q", "b", "4" } },
                    RIG_UNDERUTILIZED "," OFFERINGS ",'limits':{'cpu':'16'}" },
                  "Consolidation/replace a p>new-1 +s; Consolidation/replace b q>new-2 +s", NULL },
                { "a budget holds it",
                  { { { "a", "8", RIG_TYPE("l") } }, { { "p", "a", "3" } },
                    "'disruption':{'budgets':[{'nodes':0}],'consolidation':{'policy':'WhenUnderutilized'}}," OFFERINGS },
                  "a: BUDGET NO_CHEAPER NOT_PLACED", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&cases[i].cluster);
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
                _cleanup_free_ char *line = NULL;

                print_message("  %s\n", cases[i].what);
                assert_return_code(disruption_plan_new(r->scene, &p), 0);
                line = rig_plan_line(r, p);
                assert_string_equal(line, cases[i].want);
                if (cases[i].says)
                        assert_non_null(strstr(gate_first(p->nodes[p->n_nodes - 1].lacks + PLAN_CONSOLIDATION)->text, cases[i].says));
        }
}

TEST_CASE(test_savings_are_told) {
        const RigCluster c = { .nodes = { { "a", "8", RIG_TYPE("l") } }, .pods = { { "p", "a", "3" } }, .pool = RIG_UNDERUTILIZED "," OFFERINGS };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        assert_int_equal(p->steps[0].price_before_micros, 4 * PRICE_MICROS);
        assert_int_equal(p->steps[0].price_after_micros, 3 * PRICE_MICROS / 2);
}

/* -- preferences ---------------------------------------------------------------------------------------- */

#define APART "'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'podAffinityTerm':{" \
              "'topologyKey':'kubernetes.io/hostname','labelSelector':{'matchLabels':{'app':'p'}}}}]}}"
#define HOST(n) "'labels':{'pool':'a','kubernetes.io/hostname':'" n "'}"

TEST_CASE(test_preferences) {
        const RigCluster c = { .nodes = { { "a", "4", HOST("a") }, { "b", "4", HOST("b") } },
                               .pods = { { "p1", "a", "1", NULL, APART }, { "p2", "b", "1", NULL, APART } },
                               .pool = RIG_UNDERUTILIZED };
        RigCluster ignoring = c;
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c), *other = NULL;
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL, *q = NULL;
        _cleanup_free_ char *line = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        assert_int_equal(p->n_steps, 0);
        assert_int_equal(gate_first(p->nodes[0].lacks + PLAN_CONSOLIDATION)->code, GATE_PREFERENCE);
        assert_string_equal(gate_first(p->nodes[0].lacks + PLAN_CONSOLIDATION)->text,
                            "pod x/p1 has a preferred Anti-Affinity which can prevent consolidation");

        ignoring.pool = "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized','preferences':'Ignore'}}";
        other = disruption_rig_new(&ignoring);
        assert_return_code(disruption_plan_new(other->scene, &q), 0);
        line = rig_plan_line(other, q);
        assert_string_equal(line, "Consolidation/single-node a p1>b; b: DESTINATION");
}

/* -- what if -------------------------------------------------------------------------------------------- */

static const RigCluster three = {
        .nodes = { { "a", "4", RIG_TYPE("l") }, { "b", "4", "'labels':{'any':'thing'}" }, { "c", "4" } },
        .pods = { { "p", "a", "2" }, { "q", "b", "2" }, { "r", "c", "2" }, { "kept", "c", "1", OPTED_OUT } },
        .pool = "",
};

TEST_CASE(test_without) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&three);
        char *one[] = { (char *) "a", (char *) "a" }, *two[] = { (char *) "a", (char *) "b" }, *kept[] = { (char *) "c" },
             *none[] = { (char *) "z" };
        const char *unknown = NULL;
        WhatIf w;

        print_message("  one, whoever's it is\n");
        assert_return_code(disruption_without(r->scene, one, 2, &w, &unknown), 0);
        assert_true(w.fits && !w.has_objections);
        assert_int_equal(w.n_nodes, 1);
        assert_int_equal(w.n_moves, 1);
        assert_string_equal(scene_node_name(r->scene, w.moves[0].to), "b");
        what_if_done(&w);

        print_message("  not two: whose pod has no place is said at its node\n");
        assert_return_code(disruption_without(r->scene, two, 2, &w, &unknown), 0);
        assert_false(w.fits);
        assert_int_equal(w.n_moves, 0);
        assert_int_equal(w.lacks[0].n_items + w.lacks[1].n_items, 2);
        assert_true(gate_has(w.lacks, GATE_NOT_PLACED) && gate_has(w.lacks + 1, GATE_NOT_PLACED));
        what_if_done(&w);

        print_message("  a pod that opted out\n");
        assert_return_code(disruption_without(r->scene, kept, 1, &w, &unknown), 0);
        assert_true(w.fits && w.has_objections);
        what_if_done(&w);

        print_message("  one that is not there\n");
        assert_int_equal(disruption_without(r->scene, none, 1, &w, &unknown), -ENOENT);
        assert_string_equal(unknown, "z");
}

TEST_CASE(test_with) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&three), *other = disruption_rig_new(&three);
        char *two[] = { (char *) "a", (char *) "b" };
        const char *unknown = NULL;
        WhatIf w;

        assert_return_code(disruption_add_nodes(r->scene, "c", 1), 0);
        assert_return_code(disruption_without(r->scene, two, 2, &w, &unknown), 0);
        assert_true(w.fits);
        assert_string_equal(scene_node_name(r->scene, w.moves[0].to), "with-c-1");
        what_if_done(&w);
        assert_int_equal(disruption_add_nodes(r->scene, "nothing", 1), -ENOENT);
        /* more of them, numbered on */
        assert_return_code(disruption_add_nodes(r->scene, "c", 2), 0);
        assert_int_equal(simulator_n_nodes(r->simulator), 3 + 1 + 2);
        for (uint32_t i = 3; i < 6; i++) {
                _cleanup_free_ char *name = strf("with-c-%u", i - 2);

                assert_string_equal(scene_node_name(r->scene, i), name);
        }
        /* by instance type */
        assert_return_code(disruption_add_nodes(other->scene, "l", 2), 0);
        assert_return_code(disruption_without(other->scene, two, 2, &w, &unknown), 0);
        assert_true(w.fits);
        what_if_done(&w);
}

/* A pending pod that no node takes takes its room on one that is added. */
TEST_CASE(test_with_pending) {
        static const RigCluster c = { { { "a", "4" }, { "b", "2" } }, { { "p", "b", "2" }, { "w", NULL, "3" }, { "q", "a", "3" } }, "" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        char *b[] = { (char *) "b" };
        const char *unknown = NULL;
        WhatIf w;

        assert_return_code(disruption_add_nodes(r->scene, "a", 1), 0);
        assert_return_code(disruption_without(r->scene, b, 1, &w, &unknown), 0);
        assert_false(w.fits);
        assert_true(gate_has(w.lacks, GATE_NOT_PLACED));
        what_if_done(&w);
        assert_return_code(disruption_add_nodes(r->scene, "b", 1), 0);
        assert_return_code(disruption_without(r->scene, b, 1, &w, &unknown), 0);
        assert_true(w.fits);
        what_if_done(&w);
}

/* An offering that no node is of. */
TEST_CASE(test_with_offering) {
        RigCluster c = three;
        _cleanup_(disruption_rig_freep) DisruptionRig *r = NULL;
        char *all[] = { (char *) "a", (char *) "b", (char *) "c" };
        const char *unknown = NULL;
        WhatIf w;

        c.pool = "'offerings':[{'instanceType':'xl','price':9,'allocatable':{'cpu':'32'}}]";
        r = disruption_rig_new(&c);
        assert_return_code(disruption_add_nodes(r->scene, "xl", 1), 0);
        assert_return_code(disruption_without(r->scene, all, 3, &w, &unknown), 0);
        assert_true(w.fits);
        for (size_t i = 0; i < w.n_moves; i++)
                assert_string_equal(scene_node_name(r->scene, w.moves[i].to), "with-xl-1");
        what_if_done(&w);
}

TEST_CASE(test_all_drainable) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&three);
        GateFindings *lacks;
        WhatIf w;

        assert_return_code(disruption_all_drainable(r->scene, &w, &lacks), 0);
        assert_true(w.fits);
        assert_int_equal(w.n_nodes, 1); /* a and b are alike, and c has a pod that opted out */
        assert_string_equal(scene_node_name(r->scene, w.nodes[0]), "a");
        assert_true(gate_has(lacks + 1, GATE_NOT_PLACED) && gate_has(lacks + 2, GATE_POD_OPT_OUT));
        assert_int_equal(lacks[0].n_items, 0);
        for (uint32_t i = 0; i < r->scene->n_nodes; i++)
                gate_findings_done(lacks + i);
        free(lacks);
        what_if_done(&w);
}

TEST_CASE(test_upgrade) {
        const RigCluster c = {
                .nodes = { { "a", "4" }, { "b", "4" }, { "c", "4" }, { "d", "4" }, { "e", "4" } },
                .pods = { { "p1", "a", "3" }, { "p2", "b", "3" }, { "p3", "c", "3" }, { "kept", "d", "1", OPTED_OUT } },
                .pool = "'disruption':{'budgets':[{'nodes':2}]}",
                .others = { RIG_PDB("web", "p", "'disruptionsAllowed':1,'currentHealthy':3,'desiredHealthy':2,'expectedPods':3") },
        };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        UpgradePlan u;

        assert_int_equal(disruption_upgrade(r->scene, "none", &u), -ENOENT);
        assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
        assert_int_equal(u.n_waves, 2);
        assert_int_equal(u.waves[0].n_nodes, 2); /* e is empty, and goes first, with a */
        assert_string_equal(scene_node_name(r->scene, u.waves[0].nodes[0]), "e");
        assert_int_equal(u.waves[0].drain.n_waves, 1);
        assert_int_equal(u.waves[1].drain.n_waves, 2); /* b and c, by a budget of one */
        assert_int_equal(u.n_blocked, 1);
        assert_string_equal(scene_node_name(r->scene, u.blocked[0]), "d");
        assert_true(gate_has(u.lacks, GATE_POD_OPT_OUT));
        assert_int_equal(u.usec, 2 * MACHINE_START_USEC + (30 + 60) * USEC_PER_SEC + SUCCESSOR_USEC);
        upgrade_plan_done(&u);
}

/* A wave whose drain is blocked now leaves the whole without a time, whichever wave that is. */
TEST_CASE(test_upgrade_blocked_wave) {
        static const struct {
                int allowed[2]; /* by the PodDisruptionBudgets of the pods of a, and of b */
                bool is_endless;
        } rows[] = { { { 1, 1 }, false }, { { 0, 1 }, true }, { { 1, 0 }, true }, { { 0, 0 }, true } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" } }, .pods = { { "p", "a", "3" }, { "q", "b", "3" } },
                                 .pool = "'disruption':{'budgets':[{'nodes':1}]},'template':{'terminationGracePeriod':'1h'}" };
                _cleanup_free_ char *p = strf(RIG_PDB("p", "p", "'disruptionsAllowed':%d"), rows[i].allowed[0]),
                                    *q = strf(RIG_PDB("q", "q", "'disruptionsAllowed':%d"), rows[i].allowed[1]);
                _cleanup_(disruption_rig_freep) DisruptionRig *r = NULL;
                UpgradePlan u;

                c.others[0] = p;
                c.others[1] = q;
                r = disruption_rig_new(&c);
                assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
                assert_int_equal(u.n_waves, 2);
                assert_int_equal(u.n_blocked, 0);
                for (size_t k = 0; k < u.n_waves; k++)
                        assert_int_equal(u.waves[k].drain.is_endless, rows[i].allowed[u.waves[k].nodes[0]] == 0);
                assert_int_equal(u.is_endless, rows[i].is_endless);
                upgrade_plan_done(&u);
        }
}

/* Successors come first: as many at once as limits have room for. */
TEST_CASE(test_upgrade_within_limits) {
        static const struct {
                const char *limit;
                size_t n_waves, n_blocked;
        } rows[] = { { "12", 0, 3 }, { "16", 3, 0 }, { "19", 3, 0 }, { "23", 2, 0 }, { "20", 2, 0 }, { "24", 1, 0 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *pool = strf("'disruption':{'budgets':[]},'limits':{'cpu':'%s'}", rows[i].limit);
                const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" }, { "c", "4" } }, .pods = { { "p", "a", "3" } }, .pool = pool };
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
                UpgradePlan u;

                assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
                if (u.n_waves != rows[i].n_waves || u.n_blocked != rows[i].n_blocked)
                        fail_msg("limit %s: %zu waves, %zu blocked", rows[i].limit, u.n_waves, u.n_blocked);
                for (size_t k = 0; k < u.n_blocked; k++)
                        assert_true(gate_has(u.lacks + k, GATE_POOL_LIMIT));
                upgrade_plan_done(&u);
        }
}

/* No budget lets any go: all of them are named, and it ends. */
TEST_CASE(test_upgrade_without_budget) {
        const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'budgets':[{'nodes':0}]}" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        UpgradePlan u;

        assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
        assert_int_equal(u.n_waves, 0);
        assert_int_equal(u.n_blocked, 2);
        assert_true(gate_has(u.lacks, GATE_BUDGET));
        upgrade_plan_done(&u);
}

/* What was not read may have no room: nothing goes by it. */
TEST_CASE(test_upgrade_without_node_budgets) {
        const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'budgets':[]}" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        UpgradePlan u;

        r->snapshot->is_known[SNAPSHOT_NODE_BUDGETS] = false;
        assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
        assert_int_equal(u.n_waves, 0);
        assert_int_equal(u.n_blocked, 2);
        assert_true(gate_has(u.lacks, GATE_SNAPSHOT_INCOMPLETE));
        upgrade_plan_done(&u);
}

/* -- kept in a file, and shown to others ---------------------------------------------------------------- */

/* Codes and figures, whatever things are called. */
static char *shape_of(const DisruptionPlan *p) {
        _cleanup_strbuf_ StrBuf b = {};

        for (size_t i = 0; i < p->n_steps; i++) {
                const PlanStep *s = p->steps + i;

                strbuf_addf(&b, "%s/%s %zu nodes %zu moves %lld>%lld %zu waves %zu naked;", plan_method_to_string(s->method),
                            strempty(s->how), s->n_nodes, s->n_moves, (long long) s->price_before_micros,
                            (long long) s->price_after_micros, s->drain.n_waves, s->n_naked);
        }
        for (uint32_t i = 0; i < p->n_nodes; i++)
                for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++) {
                        _cleanup_free_ char *codes = rig_codes(p->nodes[i].lacks + m);

                        strbuf_addf(&b, " %s,", codes);
                }
        return strbuf_steal(&b);
}

static char *shape_of_snapshot(const Snapshot *snapshot) {
        DisruptionRig r = { .snapshot = (Snapshot *) snapshot };
        DisruptionPlan *p = NULL;
        char *shape;

        rig_judge(&r);
        assert_return_code(disruption_plan_new(r.scene, &p), 0);
        shape = shape_of(p);
        assert_non_null(shape);
        disruption_plan_free(p);
        disruption_scene_free(r.scene);
        simulator_free(r.simulator);
        return shape;
}

TEST_CASE(test_kept_and_shown) {
        static const char *const pools[] = {
                "'weight':3,'disruption':{'budgets':[{'nodes':'60%'},{'nodes':9,'schedule':'0 1 * * *','duration':'2h','timeZone':'UTC'}],"
                "'windows':[{'reasons':['Underutilized'],'schedule':'0 8 * * *','duration':'1h'}],'consolidation':{'policy':'WhenUnderutilized',"
                "'minimumSavings':'10%','preferences':'Ignore','after':'5m'}},'offerings':[{'instanceType':'l','capacityType':'spot','price':4},"
                "{'instanceType':'s','capacityType':'on-demand','price':1,'allocatable':{'cpu':'4'}}]",
                "'disruption':{'budgets':[],'expireAfter':'100h','expireHardAfter':'2000h','drift':'Auto','maxConcurrent':1,'nakedPods':'Block'},"
                "'template':{'labels':{'tier':'2'},'taints':[{'key':'k','value':'v','effect':'NoSchedule'}],"
                "'requirements':[{'key':'gen','operator':'Gt','values':['3']}]}",
                ("'disruption':{'drift':'Auto','emptyAfter':'5m'},'template':{'labels':{'tier':'1'},'requirements':[{'key':'gen','operator':'Gt',"
                 "'values':['3']},{'key':'none','operator':'DoesNotExist'}]}"),
                RIG_UNDERUTILIZED "," OFFERINGS ",'limits':{'cpu':26,'example.com/own':'7','nodes':5}",
        };

        for (size_t i = 0; i < ELEMENTSOF(pools); i++) {
                const RigCluster c = {
                        .nodes = { { "a", "8", SPOT("l") },
                                   { "b", "8", "'labels':{'pool':'a','tier':'1','gen':'4','node.kubernetes.io/instance-type':'l'}" },
                                   { "c", "4", "'labels':{'pool':'a','tier':'2','gen':'2'}" }, { "d", "4", RIG_TYPE("s") } },
                        .pods = { { "p1", "a", "3" }, { "p2", "b", "3", "'labels':{'app':'p'}" }, { "q", "c", "1", OPTED_OUT } },
                        .pool = pools[i],
                        .others = { RIG_PDB("web", "p", "'disruptionsAllowed':1,'currentHealthy':2,'desiredHealthy':1,'expectedPods':2") },
                };
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
                _cleanup_(snapshot_freep) Snapshot *loaded = NULL, *anonymous = NULL;
                _cleanup_free_ char *text = NULL, *error = NULL, *want = NULL, *kept = NULL, *shown = NULL;
                size_t size;

                print_message("  pool %zu\n", i);
                want = shape_of_snapshot(r->snapshot);
                assert_return_code(snapshot_save(r->snapshot, &text, &size), 0);
                assert_return_code(snapshot_load(text, size, r->interned, &loaded, &error), 0);
                kept = shape_of_snapshot(loaded);
                assert_string_equal(kept, want);
                assert_return_code(snapshot_anonymize(r->snapshot, &anonymous), 0);
                shown = shape_of_snapshot(anonymous);
                assert_string_equal(shown, want);
        }
}

/* -- any cluster ---------------------------------------------------------------------------------------- */

/* Step after step can go, each as one set, by a simulator that knows nothing of the choice; budgets are kept; and each node
 * that stays has its reasons. */
static void check_random(uint64_t seed, int budget) {
        const ClusterShape shape = { .seed = seed,
                                     .n_nodes = 20 + (uint32_t) (seed % 30),
                                     .n_pods = 150 + (uint32_t) (seed % 7) * 60,
                                     .n_owners = 25,
                                     .fill_percent = 20 + (unsigned) (seed * 13 % 60) };
        _cleanup_free_ char *pool = NULL, *first = NULL;
        MadeCluster c;

        assert_return_code(cluster_make(&shape, &c), 0);
        pool = strf("{\"metadata\":{\"name\":\"main\"},\"spec\":{\"selector\":{\"matchLabels\":{\"pool\":\"main\"}},\"disruption\":{"
                    "\"budgets\":[{\"nodes\":%d}],\"emptyAfter\":\"0s\",\"consolidation\":{\"policy\":\"WhenUnderutilized\"}}}}",
                    budget);
        assert_non_null(pool);
        cluster_put(c.snapshot, SNAPSHOT_NODE_POOLS, pool);
        for (unsigned round = 0; round < 2; round++) {
                DisruptionRig r = { .snapshot = c.snapshot };
                _cleanup_(simulator_freep) Simulator *fresh = NULL;
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
                _cleanup_free_ char *line = NULL;
                size_t n = 0;

                rig_judge(&r);
                assert_return_code(disruption_plan_new(r.scene, &p), 0);
                assert_return_code(simulator_new(c.snapshot, &fresh), 0);
                for (size_t i = 0; i < p->n_steps; i++) {
                        const SimulateOptions o = { .respect_preferences = true };
                        SimulateVerdict v = {};

                        assert_return_code(simulate_removal(fresh, p->steps[i].nodes, p->steps[i].n_nodes, &o, true, &v), 0);
                        assert_true(v.fits);
                        assert_int_equal(v.n_placements, p->steps[i].n_moves);
                        for (size_t k = 0; k < v.n_placements; k++)
                                assert_int_equal(v.placements[k].node, p->steps[i].moves[k].to);
                        simulate_verdict_done(&v);
                        n += p->steps[i].n_nodes;
                }
                assert_true((int) n <= budget);
                for (uint32_t i = 0; i < p->n_nodes; i++)
                        assert_int_equal(p->nodes[i].step == NO_STEP, p->nodes[i].lacks[PLAN_CONSOLIDATION].n_items > 0);
                line = rig_plan_line(&r, p);
                if (first)
                        assert_string_equal(line, first); /* the same snapshot, the same plan */
                else
                        first = TAKE_PTR(line);
                p = disruption_plan_free(p);
                disruption_scene_free(r.scene);
                simulator_free(r.simulator);
        }
        cluster_done(&c);
}

TEST_CASE(test_random) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
                print_message("  seed %llu\n", (unsigned long long) seed);
                check_random(seed, seed % 3 == 0 ? 2 : 1000);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_replacing),      cmocka_unit_test(test_savings_are_told), cmocka_unit_test(test_preferences),
                cmocka_unit_test(test_without),        cmocka_unit_test(test_with), cmocka_unit_test(test_with_pending),             cmocka_unit_test(test_with_offering),
                cmocka_unit_test(test_all_drainable),  cmocka_unit_test(test_upgrade),          cmocka_unit_test(test_upgrade_within_limits),
                cmocka_unit_test(test_upgrade_blocked_wave),
                cmocka_unit_test(test_upgrade_without_budget),
                cmocka_unit_test(test_upgrade_without_node_budgets),
                cmocka_unit_test(test_kept_and_shown), cmocka_unit_test(test_random),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
