/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cluster-maker.h"
#include "cmocka-test.h"
#include "simulate-rules-rows.h"
#include "simulator-internal.h"
#include "string-util.h"

/*
 * Each rule of kube-scheduler by itself: pod p runs on node a, which goes, and node b is the only other node. A row says
 * what p asks for, what b is like, and whether p fits there, or the reason that it does not. Rows that stand together
 * differ by one fact.
 */

static char *json_of(const char *text) {
        char *s = strdup(text);

        assert_non_null(s);
        for (char *c = s; *c; c++)
                if (*c == '\'')
                        *c = '"';
        return s;
}

static void put(Snapshot *s, SnapshotKind kind, char *text) {
        _cleanup_free_ char *owned = text, *json = json_of(owned);

        cluster_put(s, kind, json);
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

static void put_objects(Snapshot *s, const char *objects) {
        _cleanup_free_ char *text = strf("[%s]", objects), *list = json_of(text);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        assert_return_code(json_parse(list, strlen(list), 1 << 20, &doc, NULL), 0);
        JSON_FOREACH (v, json_root(doc)) {
                _cleanup_free_ char *one = json_format(v);

                cluster_put(s, snapshot_kind_of(json_string_or_null(json_get(v, "apiVersion")), json_string_or_null(json_get(v, "kind"))), one);
        }
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

static bool play_row(const Rule *row) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        const SimulateOptions options = { .respect_preferences = row->wish };
        uint32_t a;
        bool ok = true;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(snapshot_new(pool, 0, &snapshot), 0);
        put_node(snapshot, "a", "16", row->a, NULL);
        put_node(snapshot, "b", "4", row->labels, row);
        put_pod(snapshot, "p", "a", NULL, row->pod);
        if (row->q)
                put_pod(snapshot, "q", row->q_on_a ? "a" : "b", row->q, row->q_spec);
        if (row->objects)
                put_objects(snapshot, row->objects);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                snapshot->is_known[k] = !row->unknown || !streq(row->unknown, snapshot_kube_kind(k)->plural);
        assert_return_code(simulator_new(snapshot, &s), 0);
        assert_return_code(simulator_find_node(s, "a", &a), 0);
        for (unsigned round = 0; round < 2 && ok; round++) { /* the first leaves nothing that the second could see */
                SimulateVerdict v;

                assert_return_code(simulate_removal(s, &a, 1, &options, false, &v), 0);
                ok = streq(outcome_of(&v), row->want);
                if (!ok)
                        print_error("%s: want '%s', got '%s'\n", row->what, row->want, outcome_of(&v));
                simulate_verdict_done(&v);
        }
        return ok;
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
