/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cluster-maker.h"
#include "cmocka-test.h"
#include "simulate-rules-rows.h"
#include "simulator-internal.h"
#include "string-util.h"
#include "texts.h"

/*
 * Each rule of kube-scheduler by itself: pod p runs on node a, which goes, and node b is the only other node. A row says
 * what p asks for, what b is like, and whether p fits there, or the reason that it does not. Rows that stand together
 * differ by one fact.
 */

static char *json_of(const char *text) {
        char *s = strdup(text);

        assert_non_null(s);
        return text_quote(s);
}

static void put(Snapshot *s, SnapshotKind kind, char *text) {
        _cleanup_free_ char *owned = text, *json = json_of(owned);

        cluster_put(s, kind, json);
}

static void put_several(Snapshot *s, const char *objects) {
        _cleanup_free_ char *json = json_of(objects);

        cluster_put_several(s, json);
}

static void put_node(Snapshot *s, const char *name, const char *cpu, const char *labels, const Rule *row) {
        put(s, SNAPSHOT_NODES,
            strf("{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s',%s}},'spec':{%s},'status':{'allocatable':{"
                      "'cpu':'%s','memory':'8Gi','pods':'3'%s},'volumesAttached':[%s],'conditions':[{'type':'Ready','status':'True'}]}}",
                      name, name, labels ?: "'zone':'1'", row ? strempty(row->spec) : "", cpu, row ? strempty(row->allocatable) : "",
                      row ? strempty(row->attached) : ""));
}

static void put_pod(Snapshot *s, const char *name, const char *node, const char *meta, const char *spec) {
        put(s, SNAPSHOT_PODS,
            strf("{'metadata':{'name':'%s','uid':'%s',%s,'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet',"
                      "'name':'o','uid':'u','controller':true}]},'spec':{'nodeName':'%s',%s},'status':{'phase':'Running'}}",
                      name, name, meta ?: "'namespace':'x','labels':{'app':'p','rev':'1'}", node, spec ?: RULE_CPU("1")));
}

/* "fits", or the reason of node b or of the pod itself. */
static const char *outcome_of(const SimulateVerdict *v) {
        const SimulateUnplaced *u = v->unplaced;

        if (v->fits)
                return "fits";
        assert_true(v->n_unplaced > 0);
        if (u->unmodelled != POD_MODELLED)
                return pod_unmodelled_to_string(u->unmodelled);
        for (FitReason r = FIT_NOT_A_DESTINATION + 1; r < _FIT_REASON_MAX; r++)
                if (u->counts[r] > 0)
                        return fit_reason_to_string(r);
        assert_int_equal(u->counts[FIT_NOT_A_DESTINATION], 2);
        return "not a destination";
}

/* Makes the snapshot of the row and a simulator of it. */
static void make_row(const Rule *row, InternPool *pool, Snapshot **ret_snapshot, Simulator **ret) {
        Snapshot *snapshot;

        assert_return_code(snapshot_new(pool, 0, &snapshot), 0);
        put_node(snapshot, "a", "16", row->a, NULL);
        put_node(snapshot, "b", "4", row->labels, row);
        put_pod(snapshot, "p", "a", NULL, row->pod);
        if (row->q)
                put_pod(snapshot, "q", row->q_on_a ? "a" : "b", row->q, row->q_spec);
        if (row->objects)
                put_several(snapshot, row->objects);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                snapshot->is_known[k] = !row->unknown || !streq(row->unknown, snapshot_kube_kind(k)->plural);
        assert_return_code(simulator_new(snapshot, ret), 0);
        *ret_snapshot = snapshot;
}

/* Returns what is found about p when node a goes. */
static char *ask(const Rule *row, Simulator *s) {
        const SimulateOptions options = { .respect_preferences = row->wish };
        SimulateVerdict v;
        char *outcome;
        uint32_t a;

        assert_return_code(simulator_find_node(s, "a", &a), 0);
        assert_return_code(simulate_removal(s, &a, 1, &options, false, &v), 0);
        outcome = strdup(outcome_of(&v));
        assert_non_null(outcome);
        simulate_verdict_done(&v);
        return outcome;
}

static bool expect(const Rule *row, Simulator *s, const char *when, const char *want) {
        _cleanup_free_ char *outcome = ask(row, s);
        bool ok = streq(outcome, want);

        if (!ok)
                print_error("%s, %s: want '%s', got '%s'\n", row->what, when, want, outcome);
        return ok;
}

/* Returns what is found where q has never been. */
static char *ask_without_q(const Rule *row, InternPool *pool) {
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        Rule alone = *row;

        alone.q = NULL;
        make_row(&alone, pool, &snapshot, &s);
        return ask(&alone, s);
}

/* An answer leaves nothing that the next one could see, nor does a pod that goes; and it comes again as it was. */
static bool play_row(const Rule *row) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        _cleanup_free_ char *without_q = NULL;
        const KubeScheduledPod *object;
        uint32_t q = 0;

        assert_return_code(intern_pool_new(&pool), 0);
        make_row(row, pool, &snapshot, &s);
        if (!expect(row, s, "first", row->want) || !expect(row, s, "second", row->want))
                return false;
        if (!row->q)
                return true;
        while (!streq(simulator_pod(s, q)->pod.object.meta.name, "q"))
                q++;
        object = simulator_pod(s, q);
        without_q = ask_without_q(row, pool);
        simulator_forget_pod(s, q);
        if (!expect(row, s, "q went", without_q))
                return false;
        assert_return_code(simulator_add_pod(s, object, &q), 0);
        return expect(row, s, "q came again", row->want);
}

TEST_CASE(test_rules) {
        unsigned n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(rules); i++)
                n_wrong += !play_row(rules + i);
        assert_int_equal(n_wrong, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_rules) };

        return cmocka_run_group_tests_name("simulate-rules", tests, NULL, NULL);
}
