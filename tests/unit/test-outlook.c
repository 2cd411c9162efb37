/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"
#include "page.h"
#include "vanished-pods.h"

#define SEC USEC_PER_SEC
#define ROUND (11 * SEC)
#define CONSOLIDATE "{'consolidation':{'policy':'WhenUnderutilized'},'budgets':[]}"

static void set_disruption(CoordinatorRig *r, const char *disruption) {
        int64_t generation = fj_int(fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL), 0, "metadata", "generation", NULL);

        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'generation':%lld},'spec':{'disruption':%s}}",
                   (long long) generation + 1, disruption);
}

static void add_pod(CoordinatorRig *r, const char *name, const char *node, const char *cpu) {
        fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = node, .app = name, .owner_kind = "ReplicaSet", .owner = name });
        fake_merge(r->cluster, FAKE_PODS, "default", name,
                   "{'spec':{'containers':[{'name':'main','image':'app','resources':{'requests':{'cpu':'%s'}}}]}}", cpu);
}

static CoordinatorRig *new_rig(unsigned n_nodes) {
        CoordinatorRig *r = coordinator_rig_new();

        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_GC, false); /* pods name owners that are not there */
        rig_begin(r, n_nodes, NULL);
        rig_run(r, VANISHED_USEC); /* until it is known which pods left before the start */
        return r;
}

/* "True WouldGo" */
static void expect(CoordinatorRig *r, const char *node, const char *type, const char *expected) {
        const cJSON *claim = rig_claim(r, node);
        const char *status = rig_condition(claim, type);
        _cleanup_free_ char *got = status ? MUST(strf("%s %s", status, rig_condition_reason(claim, type))) : NULL;

        if (!streq_ptr(got, expected))
                fail_msg("%s of %s: '%s', expected '%s'", type, node, strempty(got), strempty(expected));
}

static const char *condition_field(CoordinatorRig *r, const char *node, const char *type, const char *field) {
        return strempty(fj_string(fj_find(fj_get(rig_claim(r, node), "status", "conditions", NULL), "type", type), field, NULL));
}

static uint64_t n_writes(CoordinatorRig *r) {
        return fake_api_count(r->api, FAKE_PATCH, FAKE_NODECLAIMS, "status");
}

static bool metrics_say(CoordinatorRig *r, const char *line) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, rig_leader(r)->coordinator, HTTP_GET, "/metrics");

        return strstr(p.body, line) != NULL;
}

static double round_age(CoordinatorRig *r) {
        return rig_metric(rig_leader(r), "vesper_coordinator_voluntary_disruption_round_age_seconds");
}

static void assert_nothing_went(CoordinatorRig *r) {
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_NODES, NULL), 0);
        assert_int_equal(fake_api_count(r->api, FAKE_DELETE, FAKE_NODECLAIMS, NULL), 0);
        assert_int_equal(rig_evictions(r, 0), 0);
}

TEST_CASE(test_life) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);
        _cleanup_free_ char *since = NULL;

        add_pod(r, "web", "n0", "1");
        add_pod(r, "big", "n1", "3500m");
        rig_run(r, ROUND);
        print_message("  no pool asks: nothing is said, and nothing more is watched\n");
        for (size_t i = 0; i < 3; i++)
                expect(r, (const char *[]){ "n0", "n1", "n2" }[i], CLAIM_CONSOLIDATABLE, NULL);
        assert_int_equal(fake_api_count(r->api, FAKE_LIST, FAKE_PVCS, NULL), 0);
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"would_go\"} 0\n"));

        print_message("  it asks\n");
        set_disruption(r, CONSOLIDATE);
        rig_run(r, 3 * SEC);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        assert_string_equal(condition_field(r, "n0", CLAIM_CONSOLIDATABLE, "message"), "its 1 pod fits on other nodes");
        expect(r, "n0", CLAIM_EMPTY, "False NotEmpty");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "True WouldGo"); /* n2 is empty */
        expect(r, "n2", CLAIM_EMPTY, "True WouldGo");
        expect(r, "n2", CLAIM_CONSOLIDATABLE, "True WouldGo");
        expect(r, "n0", CLAIM_EXPIRED, NULL);
        expect(r, "n0", CLAIM_DRIFTED, NULL);
        expect(r, "n0", CLAIM_INITIALIZED, "True NodeReady"); /* what others say stays */
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"underutilized\",code=\"would_go\"} 3\n"));
        since = MUST(strdup(condition_field(r, "n2", CLAIM_EMPTY, "lastTransitionTime")));

        print_message("  a pod comes to n2: no room is left for what n1 runs; since when n2 is empty begins anew\n");
        add_pod(r, "more", "n2", "2");
        rig_run(r, ROUND);
        expect(r, "n2", CLAIM_EMPTY, "False NotEmpty");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False NotPlaced");
        assert_true(rig_event_says(r, "n1", "Unconsolidatable", "(NOT_PLACED)"));
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"underutilized\",code=\"no_feasible_schedule\"} 1\n"));
        fake_remove(r->cluster, FAKE_PODS, "default", "more");
        rig_run(r, ROUND);
        expect(r, "n2", CLAIM_EMPTY, "True WouldGo");
        assert_string_not_equal(condition_field(r, "n2", CLAIM_EMPTY, "lastTransitionTime"), since);

        print_message("  a node opts out, and its pool is paused\n");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'annotations':{'vesper.sh/do-not-consolidate':'true'}}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False NodeOptOut");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'annotations':{'vesper.sh/paused':'true'}}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False Paused");
        expect(r, "n2", CLAIM_EMPTY, "True Paused");

        print_message("  it asks no more\n");
        set_disruption(r, "null");
        rig_run(r, 2 * ROUND);
        for (size_t i = 0; i < 3; i++) {
                expect(r, (const char *[]){ "n0", "n1", "n2" }[i], CLAIM_CONSOLIDATABLE, NULL);
                expect(r, (const char *[]){ "n0", "n1", "n2" }[i], CLAIM_EMPTY, NULL);
                expect(r, (const char *[]){ "n0", "n1", "n2" }[i], CLAIM_INITIALIZED, "True NodeReady");
        }
        assert_nothing_went(r);
}

/* One new node of the pool's offerings takes the place of another, unless the pool's limits forbid it. */
TEST_CASE(test_cheaper) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        add_pod(r, "big", "n0", "3500m");
        add_pod(r, "more", "n1", "3500m");
        fake_merge(r->cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'labels':{'node.kubernetes.io/instance-type':'m5.large'}}}");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL,
                   "{'spec':{'offerings':[{'instanceType':'m5.large','price':4},{'instanceType':'m6i.large','zone':'z','capacityType':'spot','price':1.5,"
                   "'allocatable':{'cpu':'4'}}]}}");
        set_disruption(r, CONSOLIDATE);
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        assert_string_equal(condition_field(r, "n0", CLAIM_CONSOLIDATABLE, "message"),
                            "its pods fit on other nodes and one new m6i.large in z, spot, which saves 2.5 of its 4");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False PriceUnknown");

        print_message("  pods come and go: the simulator that has tried a node goes on\n");
        add_pod(r, "late", "n0", "400m");
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        fake_remove(r->cluster, FAKE_PODS, "default", "big");
        rig_run(r, 16 * USEC_PER_MINUTE); /* another message alone waits so long */
        assert_string_equal(condition_field(r, "n0", CLAIM_CONSOLIDATABLE, "message"), "its 1 pod fits on other nodes");
        add_pod(r, "big", "n0", "3500m");

        print_message("  limits\n");
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'generation':7},'spec':{'limits':{'cpu':'11'}}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False PoolLimit");
        assert_true(rig_event_says(r, "n0", "Unconsolidatable", "(POOL_LIMIT)"));
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"underutilized\",code=\"pool_limit\"} 1\n"));
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'generation':8},'spec':{'limits':{'cpu':'12'}}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        assert_nothing_went(r);
}

/* A pod that was deleted comes again, and needs room that nobody else may count on; a node that a pending pod was promised stays. */
TEST_CASE(test_who_waits) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);

        fake_cluster_set_controller(r->cluster, FAKE_CONTROLLER_SCHEDULER, false);
        add_pod(r, "small", "n0", "1");
        add_pod(r, "full", "n1", "3500m");
        add_pod(r, "big", "n2", "3500m");
        set_disruption(r, CONSOLIDATE);
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False NotPlaced");
        fake_remove(r->cluster, FAKE_PODS, "default", "big");
        print_message("  its successor has not come, and no other pod may count on its room\n");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False NotPlaced");
        expect(r, "n2", CLAIM_EMPTY, "True WouldGo"); /* it may never come */
        print_message("  nor does it: its set was scaled down\n");
        rig_run(r, 60 * SEC + ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");

        print_message("  a pending pod was promised n2\n");
        add_pod(r, "next", NULL, "1");
        fake_merge(r->cluster, FAKE_PODS, "default", "next", "{'status':{'phase':'Pending','nominatedNodeName':'n2'}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n2", CLAIM_EMPTY, "True Nominated");
        expect(r, "n2", CLAIM_CONSOLIDATABLE, "False Nominated");
        assert_string_equal(condition_field(r, "n2", CLAIM_EMPTY, "message"), "it is promised to pending pod default/next (status.nominatedNodeName)");
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"nominated\"} 1\n"));
        fake_merge(r->cluster, FAKE_PODS, "default", "next", "{'status':{'nominatedNodeName':null}}");
        rig_run(r, 2 * ROUND);
        print_message("  it was not, and fits on n0 as well\n");
        expect(r, "n2", CLAIM_EMPTY, "True WouldGo");
        assert_nothing_went(r);
}

static void refuse_status(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->resource && request->resource->id == FAKE_NODECLAIMS && request->verb == FAKE_PATCH)
                ret_fault->status = 503;
}

/* emptyAfter counts from when the coordinator has seen it, however long ago the node came, and however late a claim says it. */
TEST_CASE(test_empty_after) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        add_pod(r, "web", "n0", "1");
        rig_run(r, USEC_PER_HOUR);
        set_disruption(r, "{'emptyAfter':'30m','consolidation':{'policy':'WhenEmpty','after':'30m'},'budgets':[]}");
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_EMPTY, "False NotEmpty");
        expect(r, "n1", CLAIM_EMPTY, "True QuietPeriod"); /* nobody has seen since when */
        fake_remove(r->cluster, FAKE_PODS, "default", "web");
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_EMPTY, "True QuietPeriod");
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False QuietPeriod");
        rig_run(r, 30 * USEC_PER_MINUTE);
        expect(r, "n0", CLAIM_EMPTY, "True WouldGo");
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");

        print_message("  a pod comes and goes while claims cannot be written\n");
        fake_api_set_fault(r->api, refuse_status, NULL);
        add_pod(r, "more", "n0", "1");
        rig_run(r, ROUND);
        fake_remove(r->cluster, FAKE_PODS, "default", "more");
        rig_run(r, 2 * ROUND);
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"would_go\"} 1\n"));
        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, 2 * USEC_PER_MINUTE);
        expect(r, "n0", CLAIM_EMPTY, "True QuietPeriod");
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False QuietPeriod");
        expect(r, "n1", CLAIM_EMPTY, "True WouldGo");
        assert_nothing_went(r);
}

/* A pod that is gone leaves no trace in objects: the coordinator has seen it go. */
TEST_CASE(test_quiet_after_departure) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        add_pod(r, "stays", "n0", "1");
        add_pod(r, "leaves", "n0", "1");
        set_disruption(r, "{'consolidation':{'policy':'WhenUnderutilized','after':'30m'},'budgets':[]}");
        rig_run(r, USEC_PER_HOUR);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        fake_remove(r->cluster, FAKE_PODS, "default", "leaves");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False QuietPeriod");
        rig_run(r, 30 * USEC_PER_MINUTE);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");

        print_message("  one ends, and is cleared away later\n");
        add_pod(r, "ends", "n0", "1");
        rig_run(r, 40 * USEC_PER_MINUTE);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        fake_merge(r->cluster, FAKE_PODS, "default", "ends", "{'status':{'phase':'Succeeded'}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False QuietPeriod");
        rig_run(r, 30 * USEC_PER_MINUTE);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        fake_remove(r->cluster, FAKE_PODS, "default", "ends");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
}

/* A PodDisruptionBudget comes that tells pods of one StatefulSet apart, which nothing did before. */
TEST_CASE(test_own_labels) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);

        for (unsigned i = 0; i < 2; i++) {
                char name[8], node[8];

                snprintf(name, sizeof(name), "web-%u", i);
                snprintf(node, sizeof(node), "n%u", i);
                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = node, .app = "web", .owner_kind = "StatefulSet", .owner = "web" });
                fake_merge(r->cluster, FAKE_PODS, "default", name, "{'metadata':{'labels':{'statefulset.kubernetes.io/pod-name':'%s'}}}", name);
        }
        set_disruption(r, CONSOLIDATE);
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "True WouldGo");
        fake_add_pdb(r->cluster, NULL, "one", "web", true, "1");
        fake_merge(r->cluster, FAKE_PDBS, "default", "one", "{'spec':{'selector':{'matchLabels':{'app':null,'statefulset.kubernetes.io/pod-name':'web-1'}}}}");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False PdbImpossible");
        assert_nothing_went(r);
}

static unsigned n_events(CoordinatorRig *r, const char *node) {
        const cJSON *e;
        unsigned n = 0;

        FAKE_FOREACH (e, r->cluster, FAKE_EVENTS, NULL)
                n += streq_ptr(fj_string(e, "reason", NULL), "Unconsolidatable") &&
                     streq_ptr(fj_string(e, "involvedObject", "name", NULL), node);
        return n;
}

TEST_CASE(test_pdb) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        fake_add_pod(r->cluster, &(FakePod){ .name = "web-1", .node = "n0", .app = "web", .owner_kind = "ReplicaSet", .owner = "web" });
        fake_add_pod(r->cluster,
                     &(FakePod){ .name = "web-2", .node = "n1", .app = "web", .owner_kind = "ReplicaSet", .owner = "web", .unready = true });
        fake_add_pdb(r->cluster, NULL, "web", "web", true, "1");
        set_disruption(r, CONSOLIDATE);
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False PdbBlocks");
        assert_true(rig_event_says(r, "n0", "Unconsolidatable", "pdb default/web prevents pod evictions (PDB_BLOCKS)"));
        rig_run(r, 14 * USEC_PER_MINUTE);
        assert_int_equal(n_events(r, "n0"), 1);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_events(r, "n0"), 2);

        print_message("  it has room\n");
        fake_remove(r->cluster, FAKE_PDBS, "default", "web");
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        assert_nothing_went(r);
}

/* One a second after the first twenty; what is said is not said again, by this leader or the next. */
TEST_CASE(test_rate) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(60);
        uint64_t before = n_writes(r);
        const cJSON *claim;
        size_t n_said = 0;

        set_disruption(r, "{'emptyAfter':'720h'}");
        rig_run(r, 5 * SEC);
        assert_in_range(n_writes(r) - before, 20, 26);
        rig_run(r, USEC_PER_MINUTE);
        assert_int_equal(n_writes(r) - before, 60);
        FAKE_FOREACH (claim, r->cluster, FAKE_NODECLAIMS, NULL)
                n_said += streq_ptr(rig_condition_reason(claim, CLAIM_EMPTY), "QuietPeriod");
        assert_int_equal(n_said, 60);

        print_message("  heartbeats, and rounds that find nothing new\n");
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_writes(r) - before, 60);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_writes(r) - before, 60);

        print_message("  another leader\n");
        rig_start(r, 1);
        rig_run(r, 5 * SEC);
        rig_kill(r, 0);
        before = n_writes(r);
        rig_run(r, 10 * USEC_PER_MINUTE);
        assert_ptr_equal(rig_leader(r), r->coordinators[1]);
        assert_int_equal(n_writes(r) - before, 0);
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"quiet_period\"} 60\n"));
        assert_nothing_went(r);
}

static size_t n_silent(CoordinatorRig *r) {
        const cJSON *claim;
        size_t n = 0;

        FAKE_FOREACH (claim, r->cluster, FAKE_NODECLAIMS, NULL)
                n += !rig_condition(claim, CLAIM_EMPTY);
        return n;
}

#define TURNS 210u /* nodes: more than one turn judges */

static void note_round(const char *what, const char *name, const char *state, void *userdata) {
        if (streq(what, "outlook") && streq_ptr(state, "a round"))
                *(bool *) userdata = true;
}

static bool is_in_round(CoordinatorRig *r) {
        RigCoordinator *c = rig_leader(r);
        bool found = false;
        Wakeups w;

        wakeups_begin(&w, c->loop, awake_check_asleep, &found);
        w.reported = note_round;
        coordinator_next_wakeup(c->coordinator, &w);
        wakeups_end(&w);
        return found;
}

/* A change between two turns of a round is judged as soon as the next round may begin, not when one comes anyhow. */
TEST_CASE(test_change_in_a_round) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(TURNS);
        uint64_t before;

        set_disruption(r, "{'emptyAfter':'0s','budgets':[]}");
        add_pod(r, "web", "n1", "1");
        rig_run(r, 4 * USEC_PER_MINUTE); /* until each claim is written: no write that waits wakes the outlook */
        assert_int_equal(n_silent(r), 0);
        before = n_writes(r);
        add_pod(r, "more", "n1", "1");
        while (!is_in_round(r))
                rig_run(r, MSEC);
        add_pod(r, "second", "n0", "1");
        while (is_in_round(r))
                rig_run(r, MSEC);
        assert_int_equal(n_writes(r), before); /* nor does a write of this round */
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"would_go\"} 209\n"));
        rig_run(r, ROUND);
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"would_go\"} 208\n"));
}

/* Claims that change in every round, more of them than may be written, do not keep others from their turn. */
TEST_CASE(test_turns) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(60);
        char *names[15];
        const cJSON *claim;
        size_t n = 0;

        set_disruption(r, "{'emptyAfter':'0s','budgets':[]}");
        rig_run(r, SEC);
        FAKE_FOREACH (claim, r->cluster, FAKE_NODECLAIMS, NULL)
                if (n < ELEMENTSOF(names) && rig_condition(claim, CLAIM_EMPTY))
                        names[n++] = MUST(strdup(fj_string(claim, "status", "nodeName", NULL)));
        assert_int_equal(n, ELEMENTSOF(names)); /* the first of the order in which they are written */
        assert_in_range(n_silent(r), 30, 40);
        for (size_t i = 0; i < 8; i++) {
                for (size_t k = 0; k < n; k++)
                        fake_merge(r->cluster, FAKE_NODES, NULL, names[k], "{'metadata':{'annotations':{'karpenter.sh/do-not-disrupt':'%s'}}}",
                                   i % 2 == 0 ? "true" : "false");
                rig_run(r, ROUND);
        }
        assert_int_equal(n_silent(r), 0);
        for (size_t k = 0; k < n; k++)
                free(names[k]);
}

/* Rounds in which nothing changes come each five minutes, and have twenty Events: of more nodes than that makes in a quarter of an
 * hour, the last is told of all the same. */
TEST_CASE(test_turns_of_events) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(100);

        for (unsigned i = 0; i < 100; i++) {
                char name[16];

                snprintf(name, sizeof(name), "n%u", i);
                fake_merge(r->cluster, FAKE_NODES, NULL, name, "{'metadata':{'annotations':{'vesper.sh/do-not-consolidate':'true'}}}");
        }
        set_disruption(r, CONSOLIDATE);
        rig_run(r, USEC_PER_HOUR);
        assert_int_not_equal(n_events(r, "n99"), 0);
}

static void refuse_volumes(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->resource && (request->verb == FAKE_LIST || request->verb == FAKE_WATCH) &&
            (request->resource->id == FAKE_PVCS || request->resource->id == FAKE_CSINODES))
                ret_fault->status = 403;
}

/* n pods of a tenant, each with a label of its own and 64 rules; the first runs, the others have run. */
static void add_tenant(CoordinatorRig *r, unsigned n, const char *node) {
        _cleanup_strbuf_ StrBuf terms = {};

        for (unsigned i = 0; i < 64; i++)
                strbuf_addf(&terms, "%s{'topologyKey':'zone','labelSelector':{'matchExpressions':[{'key':'app','operator':'Exists'}]}}", i > 0 ? "," : "");
        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *name = MUST(strf("p%u", i));

                fake_add_pod(r->cluster, &(FakePod){ .ns = "tenant", .name = name, .node = node, .app = name, .owner_kind = "ReplicaSet", .owner = name });
                fake_merge(r->cluster, FAKE_PODS, "tenant", name, "{'spec':{'affinity':{'podAntiAffinity':{"
                           "'requiredDuringSchedulingIgnoredDuringExecution':[%s]}}},'status':{'phase':'%s'}}", strbuf_str(&terms), i == 0 ? "Running" : "Succeeded");
        }
}

/* A tenant's pods with more rules than can be compared: a node that runs one of them stays, all others are judged; one sentence says why. */
TEST_CASE(test_left_out) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);
        const char *said;
        uint64_t before;

        add_pod(r, "web", "n1", "1");
        add_tenant(r, 1, "n2");
        set_disruption(r, CONSOLIDATE);
        rig_run(r, USEC_PER_HOUR);
        expect(r, "n0", CLAIM_EMPTY, "True WouldGo");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "True WouldGo");
        expect(r, "n2", CLAIM_CONSOLIDATABLE, "True WouldGo");
        add_tenant(r, 1200, "n2");
        rig_run(r, USEC_PER_HOUR);
        expect(r, "n0", CLAIM_EMPTY, "True WouldGo");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "True WouldGo");
        expect(r, "n2", CLAIM_CONSOLIDATABLE, "False Unmodelled");
        assert_non_null(strstr(condition_field(r, "n2", CLAIM_CONSOLIDATABLE, "message"), "pod tenant/p0 would go is not simulated: its namespace has too many rules"));
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"underutilized\",code=\"unknown\"} 1\n"));
        before = n_writes(r);
        rig_run(r, 2 * USEC_PER_HOUR);
        assert_int_equal(n_writes(r), before);
        said = strstr(strbuf_str(&rig_leader(r)->said), "is not simulated: namespace 'tenant' has too many rules that bind pods to others. Nodes that run such pods");
        assert_non_null(said);
        assert_null(strstr(said + 1, "is not simulated")); /* once */

        print_message("  they go, but for one\n");
        for (unsigned i = 1; i < 1200; i++) {
                _cleanup_free_ char *name = MUST(strf("p%u", i));

                fake_remove(r->cluster, FAKE_PODS, "tenant", name);
        }
        rig_run(r, USEC_PER_HOUR);
        expect(r, "n2", CLAIM_CONSOLIDATABLE, "True WouldGo");
        assert_nothing_went(r);
}

static void refuse_pods(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->resource && request->resource->id == FAKE_PODS)
                ret_fault->status = 503;
}

/* A cluster that does not let it read volumes: nodes whose pods have some are not judged to go, others are. */
TEST_CASE(test_without_permission) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(3);
        const char *said;

        fake_api_set_fault(r->api, refuse_volumes, NULL);
        add_pod(r, "web", "n0", "1");
        add_pod(r, "db", "n1", "1");
        fake_merge(r->cluster, FAKE_PODS, "default", "db", "{'spec':{'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'v'}}]}}");
        set_disruption(r, CONSOLIDATE);
        rig_run(r, 2 * ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False SnapshotIncomplete");
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "list and watch of persistentvolumeclaims for the coordinator"));
        for (int i = 0; i < 3; i++) { /* each change has the snapshot made anew */
                _cleanup_free_ char *name = MUST(strf("other%d", i));

                fake_put(r->cluster, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'%s'}}", name));
                rig_run(r, 3 * USEC_PER_MINUTE);
        }
        said = strstr(strbuf_str(&rig_leader(r)->said), "without persistentvolumeclaims");
        assert_non_null(said);
        assert_null(strstr(said + 1, "without persistentvolumeclaims")); /* once */

        print_message("  it is allowed\n");
        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, USEC_PER_MINUTE);
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False NotPlaced"); /* there is no such claim */

        print_message("  it is not any more: for two minutes what was read last stands\n");
        strbuf_truncate(&rig_leader(r)->said, 0);
        fake_api_set_fault(r->api, refuse_volumes, NULL);
        fake_api_cut_watches(r->api);
        rig_run(r, USEC_PER_MINUTE);
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False NotPlaced");
        assert_null(strstr(strbuf_str(&rig_leader(r)->said), "without persistentvolumeclaims"));
        rig_run(r, 2 * USEC_PER_MINUTE);
        expect(r, "n1", CLAIM_CONSOLIDATABLE, "False SnapshotIncomplete");
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        assert_non_null(strstr(strbuf_str(&rig_leader(r)->said), "without persistentvolumeclaims"));
        assert_nothing_went(r);
}

/* While a watch is down nothing is judged, and nothing is written. */
TEST_CASE(test_view) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);
        uint64_t before;

        set_disruption(r, CONSOLIDATE);
        add_pod(r, "web", "n0", "1");
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "True WouldGo");
        fake_api_set_fault(r->api, refuse_pods, NULL);
        fake_api_cut_watches(r->api);
        rig_run(r, SEC);
        before = n_writes(r);
        fake_merge(r->cluster, FAKE_NODES, NULL, "n1", "{'spec':{'unschedulable':true}}");
        rig_run(r, 2 * USEC_PER_MINUTE);
        assert_int_equal(n_writes(r), before);
        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, USEC_PER_MINUTE);
        expect(r, "n0", CLAIM_CONSOLIDATABLE, "False NotPlaced");
        assert_nothing_went(r);
}

static void hold_volumes(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (request->resource && request->resource->id == FAKE_PVCS)
                ret_fault->delay_usec = USEC_PER_HOUR;
}

/* The age of a judgement that has never been made counts from when it was first asked for. */
TEST_CASE(test_no_round_yet) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        assert_true(metrics_say(r, "voluntary_disruption_round_age_seconds 0\n"));
        fake_api_set_fault(r->api, hold_volumes, NULL);
        set_disruption(r, CONSOLIDATE);
        rig_run(r, 30 * SEC);
        assert_string_equal(condition_field(r, "n0", CLAIM_EMPTY, "status"), "");
        assert_true(round_age(r) > 28 && round_age(r) < 31);
        rig_run(r, USEC_PER_MINUTE); /* it is judged without them */
        expect(r, "n0", CLAIM_EMPTY, "True WouldGo");
        assert_false(metrics_say(r, "voluntary_disruption_round_age_seconds 0\n"));
        fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'spec':{'disruption':null}}");
        rig_run(r, SEC);
        assert_true(metrics_say(r, "voluntary_disruption_round_age_seconds 0\n"));
}

/* A pool that asks while its nodes are being adopted, and a node that comes later: neither waits for a round that comes anyhow. */
TEST_CASE(test_new_nodes) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        set_disruption(r, CONSOLIDATE);
        rig_add_node(r, "n0");
        rig_start(r, 0);
        rig_run(r, VANISHED_USEC + 2 * ROUND);
        expect(r, "n0", CLAIM_EMPTY, "True WouldGo");
        fake_api_set_fault(r->api, refuse_status, NULL); /* its claim says only after the next round that it is adopted */
        rig_add_node(r, "n1");
        rig_run(r, 3 * ROUND);
        fake_api_set_fault(r->api, NULL, NULL);
        rig_run(r, 90 * SEC);
        expect(r, "n1", CLAIM_EMPTY, "True WouldGo");
}

/* A claim that is going is its removal's. */
TEST_CASE(test_removal) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = new_rig(2);

        set_disruption(r, CONSOLIDATE);
        rig_run(r, ROUND);
        expect(r, "n0", CLAIM_EMPTY, "True WouldGo");
        rig_delete_node(r, "n0");
        assert_true(rig_wait_gone(r, "n0", USEC_PER_MINUTE));
        rig_run(r, ROUND);
        expect(r, "n1", CLAIM_EMPTY, "True WouldGo");
        assert_true(metrics_say(r, "vesper_coordinator_voluntary_disruption_nodes{method=\"empty\",code=\"would_go\"} 1\n"));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_life), cmocka_unit_test(test_cheaper), cmocka_unit_test(test_who_waits), cmocka_unit_test(test_empty_after), cmocka_unit_test(test_quiet_after_departure), cmocka_unit_test(test_pdb), cmocka_unit_test(test_own_labels),  cmocka_unit_test(test_rate), cmocka_unit_test(test_turns), cmocka_unit_test(test_change_in_a_round), cmocka_unit_test(test_turns_of_events),
                cmocka_unit_test(test_without_permission), cmocka_unit_test(test_left_out), cmocka_unit_test(test_view), cmocka_unit_test(test_no_round_yet), cmocka_unit_test(test_removal), cmocka_unit_test(test_new_nodes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
