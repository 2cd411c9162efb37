/* SPDX-License-Identifier: Apache-2.0 */
/* Which new, cheaper node could take one node's place: a table; and, of any cluster, the coordinator's verdict beside the plan's. */
#include <stdio.h>

#include "cluster-maker.h"
#include "cmocka-test.h"
#include "disruption-cheaper.h"
#include "disruption-rig.h"
#include "outlook-judge.h"
#include "string-util.h"

#define TYPE(t) "'labels':{'pool':'a','node.kubernetes.io/instance-type':'" t "','zone':'z1','topology.kubernetes.io/zone':'z1'}"
#define IN(t, zone, more) "'labels':{'pool':'a','node.kubernetes.io/instance-type':'" t "','topology.kubernetes.io/zone':'" zone "'," more "}"
#define S_IN(zone) "{'instanceType':'s','zone':'" zone "','price':1.5,'allocatable':{'cpu':'4'}}"
#define REGION(r) "'topology.kubernetes.io/region':'" r "'"
#define SPOT(t) "'labels':{'pool':'a','karpenter.sh/capacity-type':'spot','node.kubernetes.io/instance-type':'" t "'}"
#define POOL(consolidation, offerings) \
        "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'" consolidation "}},'offerings':[" offerings "]"
#define L "{'instanceType':'l','price':4}"
#define M "{'instanceType':'m','price':3,'allocatable':{'cpu':'6'}}"
#define S "{'instanceType':'s','price':1.5,'allocatable':{'cpu':'4'}}"
#define SPREAD_ZONES                                                                                                                \
        "'topologySpreadConstraints':[{'maxSkew':1,'topologyKey':'topology.kubernetes.io/zone','whenUnsatisfiable':'DoNotSchedule'," \
        "'labelSelector':{'matchLabels':{'app':'p'}}}]"

/* -- one node ------------------------------------------------------------------------------------------- */

TEST_CASE(test_cheaper) {
        static const struct {
                const char *what, *want; /* want: NULL: none */
                RigCluster cluster;      /* node a is asked about */
        } cases[] = {
                { "its pod fits on one", "s", { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) } },
                { "the cheapest that does", "m", { { { "a", "8", TYPE("l") } }, { { "p", "a", "5" } }, POOL("", S "," L "," M) } },
                { "together with the nodes that there are", "s",
                  { { { "a", "8", TYPE("l") }, { "b", "4" } }, { { "p", "a", "3" }, { "q", "a", "3" } }, POOL("", L "," S) } },
                { "none has room", NULL, { { { "a", "8", TYPE("l") } }, { { "p", "a", "7" } }, POOL("", L "," M "," S) } },
                { "what costs as much is no cheaper", NULL,
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "7" } }, POOL("", L ",{'instanceType':'k','price':4,'allocatable':{'cpu':'8'}}") } },
                { "minimumSavings lets it", "s", { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL(",'minimumSavings':'62%'", L "," S) } },
                { "minimumSavings does not", NULL,
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL(",'minimumSavings':'63%'", L "," S) } },
                { "nobody knows what the node costs", NULL, { { { "a", "8", TYPE("x") } }, { { "p", "a", "3" } }, POOL("", L "," S) } },
                { "nobody knows what room the offering has", NULL,
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L ",{'instanceType':'s','price':1}") } },
                { "as a node of its type has", "s",
                  { { { "a", "8", TYPE("l") }, { "b", "4", TYPE("s") } },
                    { { "p", "a", "3" }, { "q", "b", "3" } },
                    POOL("", L ",{'instanceType':'s','price':1}") } },
                { "spot for spot", NULL,
                  { { { "a", "8", SPOT("l") } }, { { "p", "a", "3" } },
                    POOL("", "{'instanceType':'l','capacityType':'spot','price':4},{'instanceType':'s','capacityType':'spot','price':1,'allocatable':{'cpu':'4'}}") } },
                { "what may be spot, for spot", NULL, { { { "a", "8", SPOT("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) } },
                { "on-demand for spot, though spot is cheaper", "s, on-demand",
                  { { { "a", "8", SPOT("l") } }, { { "p", "a", "3" } },
                    POOL("", L ",{'instanceType':'s','capacityType':'spot','price':1,'allocatable':{'cpu':'4'}},"
                               "{'instanceType':'s','capacityType':'on-demand','price':2,'allocatable':{'cpu':'4'}}") } },
                { "where its pod may go", "s in z2",
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3", NULL, "'nodeSelector':{'topology.kubernetes.io/zone':'z2'}" } },
                    POOL("", L "," S ",{'instanceType':'s','zone':'z2','price':2,'allocatable':{'cpu':'4'}}") } },
                { "... and not where its volume is, whatever key the volume's driver has for zones", NULL,
                  { { { "a", "8", IN("l", "z1", "'topology.gke.io/zone':'z1'") } }, { { "p", "a", "3", NULL, "'nodeSelector':{'topology.gke.io/zone':'z1'}" } },
                    POOL("", L "," S_IN("z2")) } },
                { "... which is in that of the new one", "s in z2",
                  { { { "a", "8", IN("l", "z1", "'topology.gke.io/zone':'z1'") } }, { { "p", "a", "3", NULL, "'nodeSelector':{'topology.gke.io/zone':'z2'}" } },
                    POOL("", L "," S_IN("z2")) } },
                { "labels that say nothing of zones are those of a node like it", "s in z2",
                  { { { "a", "8", IN("l", "z1", "'rack':'1'") } }, { { "p", "a", "3", NULL, "'nodeSelector':{'rack':'1'}" } }, POOL("", L "," S_IN("z2")) } },
                { "... of the same zone, if there is one", "s in z2",
                  { { { "a", "8", IN("l", "z1", "'rack':'1'") }, { "b", "4", IN("s", "z1", "'rack':'1'") }, { "c", "2", IN("s", "z2", "'rack':'2'") } },
                    { { "p", "a", "3", NULL, "'nodeSelector':{'rack':'2'}" }, { "q", "c", "2" } },
                    POOL("", L "," S_IN("z2")) } },
                { "... and of the same capacity, before one of another", "s, on-demand",
                  { { { "a", "8", IN("l", "z1", "'rack':'1'") }, { "b", "2", IN("s", "z1", "'karpenter.sh/capacity-type':'spot','rack':'1'") },
                      { "c", "2", IN("s", "z1", "'karpenter.sh/capacity-type':'on-demand','rack':'2'") } },
                    { { "p", "a", "3", NULL, "'nodeSelector':{'rack':'2'}" } },
                    POOL("", L ",{'instanceType':'s','capacityType':'on-demand','price':1.5,'allocatable':{'cpu':'4'}}") } },
                { "a pod that wants spot capacity, by whatever label", NULL,
                  { { { "a", "8", IN("l", "z1", "'eks.amazonaws.com/capacityType':'SPOT'") } },
                    { { "p", "a", "3", NULL, "'nodeSelector':{'eks.amazonaws.com/capacityType':'SPOT'}" } },
                    POOL("", L ",{'instanceType':'s','capacityType':'on-demand','price':1.5,'allocatable':{'cpu':'4'}}") } },
                { "... or does not", "s, on-demand",
                  { { { "a", "8", IN("l", "z1", "'eks.amazonaws.com/capacityType':'SPOT'") } },
                    { { "p", "a", "3", NULL, "'nodeSelector':{'eks.amazonaws.com/capacityType':'ON_DEMAND'}" } },
                    POOL("", L ",{'instanceType':'s','capacityType':'on-demand','price':1.5,'allocatable':{'cpu':'4'}}") } },
                { "another zone of its region", "s in us-1b",
                  { { { "a", "8", IN("l", "us-1a", REGION("us-1")) } }, { { "p", "a", "3", NULL, "'nodeSelector':{'topology.kubernetes.io/region':'us-1'}" } },
                    POOL("", L "," S_IN("us-1b")) } },
                { "a zone of a region that nobody knows", NULL,
                  { { { "a", "8", IN("l", "us-1a", REGION("us-1")) } }, { { "p", "a", "3" } }, POOL("", L "," S_IN("eu-1a")) } },
                { "... that a node is in", "s in eu-1a",
                  { { { "a", "8", IN("l", "us-1a", REGION("us-1")) }, { "b", "1", "'labels':{'topology.kubernetes.io/zone':'eu-1a'," REGION("eu-1") "}" } },
                    { { "p", "a", "3", NULL, "'nodeSelector':{'topology.kubernetes.io/region':'eu-1'}" } },
                    POOL("", L "," S_IN("eu-1a")) } },
                { "... and where its pod may not go", NULL,
                  { { { "a", "8", IN("l", "us-1a", REGION("us-1")) }, { "b", "1", "'labels':{'topology.kubernetes.io/zone':'eu-1a'," REGION("eu-1") "}" } },
                    { { "p", "a", "3", NULL, "'nodeSelector':{'topology.kubernetes.io/region':'us-1'}" } },
                    POOL("", L "," S_IN("eu-1a")) } },
                { "its DaemonSet's pod takes its share of the new one", NULL,
                  { { { "a", "8", TYPE("l") } },
                    { { "p", "a", "3" }, { "d", "a", "2", "'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'d','controller':true}]" } },
                    POOL("", L "," S) } },
                { "a pod that cannot be simulated", NULL,
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3", NULL, "'schedulerName':'other'" } }, POOL("", L "," S) } },
                { "the pool's limits allow it", "s", { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) ",'limits':{'cpu':12}" } },
                { "they do not", NULL, { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) ",'limits':{'cpu':'11999m'}" } },
                { "nodes of other pools do not count", "s",
                  { { { "a", "8", TYPE("l") }, { "b", "2", "'labels':{}" } }, { { "p", "a", "3" } }, POOL("", L "," S) ",'limits':{'cpu':12}" } },
                { "of two resources one is enough", NULL,
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) ",'limits':{'cpu':100,'memory':'199Gi'}" } },
                { "as many nodes as there are", NULL, { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) ",'limits':{'nodes':1}" } },
                { "of a resource that no node has", "s",
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } }, POOL("", L "," S) ",'limits':{'nodes':2,'example.com/gpu':0}" } },
                { "limits allow a dearer one alone", "m",
                  { { { "a", "8", TYPE("l") } }, { { "p", "a", "3" } },
                    POOL("", L ",{'instanceType':'s','price':1,'allocatable':{'cpu':'6'}},{'instanceType':'m','price':2,'allocatable':{'cpu':'4'}}")
                    ",'limits':{'cpu':12}" } },
                { "a node has the name that it would have", "s",
                  { { { "a", "8", TYPE("l") }, { "new-1", "1" } }, { { "p", "a", "3" } }, POOL("", L "," S) } },
                /* Else zone z9 were a domain without pods, and nothing could be added to the others. */
                { "of one that did not do nothing is left", "m",
                  { { { "a", "8", TYPE("l") }, { "b", "3", TYPE("x") } },
                    { { "p1", "a", "5", NULL, SPREAD_ZONES }, { "p2", "b", "1", NULL, SPREAD_ZONES }, { "p3", "b", "1", NULL, SPREAD_ZONES } },
                    POOL("", L "," M ",{'instanceType':'s','zone':'z9','price':1,'allocatable':{'cpu':'4'}}") } },
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&cases[i].cluster);
                uint32_t n_nodes = simulator_n_nodes(r->simulator);

                for (unsigned again = 0; again < 2; again++) { /* it leaves the simulator as it was */
                        const PoolOffering *o = NULL;
                        _cleanup_free_ char *got = NULL;
                        int k = node_find_cheaper(r->scene, rig_number(r, "a"), &o);

                        assert_return_code(k, 0);
                        assert_int_equal(k, !!o);
                        got = o ? offering_text(o) : NULL;
                        if (!streq_ptr(got, cases[i].want))
                                fail_msg("%s: got '%s', expected '%s'", cases[i].what, strempty(got), strempty(cases[i].want));
                        assert_int_equal(simulator_n_nodes(r->simulator), n_nodes);
                        assert_int_equal(simulator_mark(r->simulator), 0);
                }
        }
}

TEST_CASE(test_text) {
        const PoolOffering o = { .instance_type = "m6i.large", .zone = "z1", .capacity_type = "spot", .price_micros = 1500000 };
        _cleanup_free_ char *one = replaced_text(&o, 4000000, 1), *two = replaced_text(&o, 8000000, 2);

        assert_string_equal(one, "its pods fit on other nodes and one new m6i.large in z1, spot, which saves 2.5 of its 4");
        assert_string_equal(two, "its pods fit on other nodes and one new m6i.large in z1, spot, which saves 6.5 of the 8 that these 2 nodes cost");
}

/* No node takes longer than so many shapes do: the cheapest are tried. */
TEST_CASE(test_bound) {
        _cleanup_strbuf_ StrBuf b = {};
        RigCluster c = { .nodes = { { "a", "128", TYPE("l") } }, .pods = { { "p", "a", "65" } } };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = NULL;
        const PoolOffering *o;

        strbuf_add(&b, "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}},'offerings':[{'instanceType':'l','price':100}");
        for (unsigned i = SHAPES_MAX + 1; i > 0; i--)
                strbuf_addf(&b, ",{'instanceType':'of-%u','price':%u,'allocatable':{'cpu':'%u'}}", i, i, i);
        strbuf_add(&b, "]");
        c.pool = b.data;
        r = disruption_rig_new(&c);
        assert_int_equal(node_find_cheaper(r->scene, 0, &o), 0); /* the last of them would do */
        assert_int_equal(r->scene->pools[0].n_shapes, SHAPES_MAX);
        assert_string_equal(r->scene->pools[0].shapes[SHAPES_MAX - 1].offering->instance_type, "of-64");
}

/* -- as the plan ---------------------------------------------------------------------------------------- */

typedef struct Counts {
        unsigned nodes, fit, replaced, stay[_GATE_CODE_MAX];
} Counts;

/* Each third node is spot capacity; each sixth is of a type that has no price. */
static void vary_nodes(MadeCluster *c, uint32_t n) {
        _cleanup_free_ KubeObject **nodes = NULL;
        size_t n_nodes;

        assert_return_code(snapshot_sorted(c->snapshot, SNAPSHOT_NODES, &nodes, &n_nodes), 0);
        assert_int_equal(n_nodes, n);
        for (uint32_t i = 0; i < n; i++) {
                KeyValues *labels = &nodes[i]->meta.labels;

                labels->items = realloc(labels->items, (labels->n_items + 1) * sizeof(KeyValue));
                assert_non_null(labels->items);
                for (size_t k = 0; k < labels->n_items && i % 6 == 5; k++)
                        if (streq(labels->items[k].key, "node.kubernetes.io/instance-type")) {
                                intern_unref(c->pool, labels->items[k].value);
                                labels->items[k].value = intern(c->pool, "huge");
                        }
                if (i % 3 == 0)
                        assert_return_code(key_values_add(labels, c->pool, "vesper.sh/capacity-type", "spot"), 0);
                key_values_sort(labels);
        }
}

/* Of each third cluster pools have limits: some allow a small node more, some a medium one, too, some none. */
static void add_pools(MadeCluster *c, uint64_t seed, uint32_t n_nodes) {
        static const char *const savings[] = { "0%", "30%", "60%" };

        c->snapshot->taken_usec = RIG_NOW_USEC;
        for (char zone = 'a'; zone <= 'c'; zone++) {
                uint32_t n = (n_nodes + 2 - (uint32_t) (zone - 'a')) / 3;
                _cleanup_free_ char *limits = seed % 3 == 0 ? strf(",\"limits\":{\"cpu\":%u,\"nodes\":\"20\"}", n * 16 + (unsigned) (seed % 4) * 4)
                                                            : strdup("");
                _cleanup_free_ char *text =
                        strf("{\"metadata\":{\"name\":\"zone-%c\"},\"spec\":{\"selector\":{\"matchLabels\":{\"topology.kubernetes.io/zone\":\"zone-%c\"}},"
                             "\"disruption\":{\"budgets\":[],\"consolidation\":{\"policy\":\"WhenUnderutilized\",\"minimumSavings\":\"%s\",\"preferences\":\"%s\"}},"
                             "\"offerings\":[{\"instanceType\":\"large\",\"capacityType\":\"%s\",\"price\":4},{\"instanceType\":\"large\",\"price\":3.9},"
                             "{\"instanceType\":\"medium\",\"zone\":\"zone-%c\",\"price\":2.2,\"allocatable\":{\"cpu\":\"9\",\"memory\":\"32Gi\"}},"
                             "{\"instanceType\":\"medium\",\"capacityType\":\"on-demand\",\"price\":%s,\"allocatable\":{\"cpu\":\"9\",\"memory\":\"32Gi\"}},"
                             "{\"instanceType\":\"small\",\"zone\":\"elsewhere\",\"price\":1,\"allocatable\":{\"cpu\":\"5\",\"memory\":\"16Gi\"}},"
                             "{\"instanceType\":\"small\",\"capacityType\":\"spot\",\"price\":1.5,\"allocatable\":{\"cpu\":\"5\",\"memory\":\"16Gi\"}}]%s}}",
                             zone, zone, savings[seed % 3], seed % 2 == 0 ? "Respect" : "Ignore", zone == 'c' ? "on-demand" : "spot",
                             (int) ('a' + (zone - 'a' + seed) % 3), seed % 4 == 0 ? "5" : "2.6", strempty(limits));

                assert_non_null(text);
                cluster_put(c->snapshot, SNAPSHOT_NODE_POOLS, text);
        }
}

/* What a plan says of the node by itself, of a simulator that nobody has touched. */
static void compare_node(const MadeCluster *c, uint32_t node, const MethodOutlook *o, const char *where, Counts *counts) {
        DisruptionRig r = { .snapshot = c->snapshot };
        const GateFinding *first;
        DisruptionPlan *p;
        const char *text;
        bool goes;

        rig_judge(&r);
        assert_return_code(disruption_plan_node(r.scene, node, &p), 0);
        goes = p->nodes[node].step != NO_STEP;
        first = gate_first(p->nodes[node].lacks + PLAN_CONSOLIDATION);
        text = goes ? p->steps[p->nodes[node].step].why[0] : first ? first->text : "nothing";
        if (goes != o->holds || !streq(text, o->text) || (!goes && first && first->code != o->code))
                fail_msg("%s: the coordinator says %s '%s', the plan %s '%s'", where, o->holds ? "yes" : "no", o->text, goes ? "yes" : "no", text);
        counts->nodes++;
        counts->fit += goes && p->steps[p->nodes[node].step].replacement == NO_NODE;
        counts->replaced += goes && p->steps[p->nodes[node].step].replacement != NO_NODE;
        if (!goes)
                counts->stay[o->code]++;
        disruption_plan_free(p);
        disruption_scene_free(r.scene);
        simulator_free(r.simulator);
}

/* One simulator for all nodes on one side, as in a round; on the other a new one for each. */
TEST_CASE(test_as_the_plan) {
        Counts counts = {};

        for (uint64_t seed = 1; seed <= 70; seed++) {
                const ClusterShape shape = { .seed = seed,
                                             .n_nodes = 5 + (uint32_t) (seed % 8),
                                             .n_pods = 20 + (uint32_t) (seed % 5) * 10,
                                             .n_owners = 20,
                                             .fill_percent = 50 + (unsigned) (seed * 7 % 55) };
                DisruptionRig r = {};
                MadeCluster c;

                assert_return_code(cluster_make(&shape, &c), 0);
                vary_nodes(&c, shape.n_nodes);
                add_pools(&c, seed, shape.n_nodes);
                r.snapshot = c.snapshot;
                rig_judge(&r);
                for (uint32_t i = 0; i < shape.n_nodes; i++) {
                        _cleanup_free_ char *where = strf("seed %llu, node %u", (unsigned long long) seed, i);
                        _cleanup_(node_judgement_done) NodeJudgement j = {};

                        assert_non_null(where);
                        assert_return_code(outlook_judge(r.scene, i, &j), 0);
                        assert_true(j.methods[PLAN_CONSOLIDATION].is_asked);
                        compare_node(&c, i, j.methods + PLAN_CONSOLIDATION, where, &counts);
                }
                disruption_scene_free(r.scene);
                simulator_free(r.simulator);
                cluster_done(&c);
        }
        print_message("%u nodes: %u fit on others, %u are replaced; of those that stay %u have nothing cheaper, %u are spot for spot, %u save too little, "
                      "%u are held by limits\n",
                      counts.nodes, counts.fit, counts.replaced, counts.stay[GATE_NO_CHEAPER], counts.stay[GATE_SPOT_TO_SPOT],
                      counts.stay[GATE_SAVINGS_LOW], counts.stay[GATE_POOL_LIMIT]);
        assert_true(counts.stay[GATE_POOL_LIMIT] > 3);
        assert_true(counts.fit > 30 && counts.replaced > 10 && counts.stay[GATE_NO_CHEAPER] > 30 && counts.stay[GATE_SPOT_TO_SPOT] > 0);
}

/* -- a node that has never been ------------------------------------------------------------------------- */

static uint64_t all_answers(Simulator *s, uint32_t n) {
        uint64_t hash = 0;

        for (uint32_t i = 0; i < n; i++) {
                const SimulateOptions o = { .respect_preferences = true };
                SimulateVerdict v;

                assert_return_code(simulate_removal(s, &i, 1, &o, false, &v), 0);
                hash = hash * 31 + v.fits;
                for (size_t k = 0; k < v.n_sequence; k++)
                        hash = hash * 31 + v.sequence[k].pod * 131 + v.sequence[k].node;
                for (size_t k = 0; k < v.n_unplaced; k++)
                        for (size_t m = 0; m < _FIT_REASON_MAX; m++)
                                hash = hash * 31 + v.unplaced[k].counts[m] + 7 * v.unplaced[k].nearest;
                simulate_verdict_done(&v);
        }
        return hash;
}

/* Added, asked about, and dropped: all that the simulator says is as before, whatever stood at its place in between. */
TEST_CASE(test_dropped) {
        unsigned changed = 0;

        for (uint64_t seed = 1; seed <= 40; seed++) {
                const ClusterShape shape = { .seed = seed, .n_nodes = 6, .n_pods = 50, .n_owners = 20, .fill_percent = 50 + (unsigned) (seed % 5) * 10 };
                _cleanup_(simulator_freep) Simulator *s = NULL;
                uint64_t before;
                MadeCluster c;

                assert_return_code(cluster_make(&shape, &c), 0);
                assert_return_code(simulator_new(c.snapshot, &s), 0);
                before = all_answers(s, shape.n_nodes);
                for (unsigned i = 0; i < 4; i++) {
                        KeyValue items[] = { { "disk", i % 2 == 0 ? "ssd" : "tape" }, { "topology.kubernetes.io/zone", i < 2 ? "zone-x" : "zone-a" } },
                                 rooms[] = { { "cpu", "40" } };
                        uint32_t node, other;

                        assert_return_code(simulator_add_node(s,
                                                              &(SimulatorNewNode){ .name = i == 3 ? "other" : "new",
                                                                                   .like = i,
                                                                                   .labels = &(KeyValues){ items, ELEMENTSOF(items) },
                                                                                   .allocatable = &(KeyValues){ rooms, i % 2 } },
                                                              &node),
                                           0);
                        changed += all_answers(s, shape.n_nodes) != before;
                        simulator_drop_node(s, node);
                        assert_int_equal(simulator_find_node(s, "new", &other), -ENOENT);
                        if (all_answers(s, shape.n_nodes) != before)
                                fail_msg("seed %llu, node %u has left something behind", (unsigned long long) seed, i);
                }
                s = simulator_free(s);
                cluster_done(&c);
        }
        assert_true(changed > 100);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cheaper),     cmocka_unit_test(test_text),    cmocka_unit_test(test_bound),
                cmocka_unit_test(test_as_the_plan), cmocka_unit_test(test_dropped),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
