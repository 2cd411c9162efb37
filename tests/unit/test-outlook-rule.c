/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "disruption-rig.h"
#include "file-util.h"
#include "marks.h"
#include "outlook-feed.h"
#include "outlook-rule.h"
#include "string-util.h"
#include "strv.h"

#define MUST(p) ({ __typeof__(p) _p = (p); assert_non_null(_p); _p; })

#define OWNED "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'r','uid':'r','controller':true}]"
#define PDB(name, app, status)                                                                                                    \
        "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'name':'" name "','namespace':'x','generation':1},"   \
        "'spec':{'selector':{'matchLabels':{'app':'" app "'}}},'status':{'observedGeneration':1," status "}}"
#define CONSOLIDATE "'disruption':{'consolidation':{'policy':'WhenUnderutilized'},'budgets':[]"

/* -- one node ------------------------------------------------------------------------------------------- */

/* "Expired=False NOT_EXPIRED Drifted=True -": what is asked, in the order of methods. */
static char *judge_line(DisruptionRig *r, const char *node) {
        _cleanup_(node_judgement_done) NodeJudgement j = {};
        _cleanup_strbuf_ StrBuf b = {};

        assert_return_code(outlook_judge(r->scene, rig_number(r, node), &j), 0);
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++) {
                const MethodOutlook *o = j.methods + m;

                if (o->is_asked)
                        strbuf_addf(&b, "%s%s=%s %s", b.size > 0 ? " " : "", outlook_condition_type(m), o->holds ? "True" : "False",
                                    o->code == _GATE_CODE_INVALID ? "-" : gate_code_to_string(o->code));
        }
        return MUST(strbuf_steal(&b));
}

TEST_CASE(test_judge) {
        static const struct {
                const char *what, *expected;
                RigCluster cluster;
        } rows[] = {
                { "no pool asks", "", { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "" } },
                { "it fits elsewhere", "Empty=False NOT_EMPTY Consolidatable=True -",
                  { .nodes = { { "a", "4" }, { "b", "4" } }, .pods = { { "p", "a", "1" } }, .pool = CONSOLIDATE "}" } },
                { "it fits nowhere", "Empty=False NOT_EMPTY Consolidatable=False NOT_PLACED",
                  { .nodes = { { "a", "4" }, { "b", "2" } }, .pods = { { "p", "a", "3" } }, .pool = CONSOLIDATE "}" } },
                { "nothing is cheaper", "Empty=False NOT_EMPTY Consolidatable=False NO_CHEAPER",
                  { .nodes = { { "a", "4", "'labels':{'pool':'a','node.kubernetes.io/instance-type':'big'}" }, { "b", "2" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = CONSOLIDATE "},'offerings':[{'instanceType':'big','price':1}]" } },
                { "something is cheaper, and would take it", "Empty=False NOT_EMPTY Consolidatable=True -",
                  { .nodes = { { "a", "4", "'labels':{'pool':'a','node.kubernetes.io/instance-type':'big'}" }, { "b", "2" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = CONSOLIDATE "},'offerings':[{'instanceType':'big','price':1},{'instanceType':'small','price':0.5,'allocatable':{'cpu':'3'}}]" } },
                { "something is cheaper, and would not", "Empty=False NOT_EMPTY Consolidatable=False NO_CHEAPER",
                  { .nodes = { { "a", "4", "'labels':{'pool':'a','node.kubernetes.io/instance-type':'big'}" }, { "b", "2" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = CONSOLIDATE "},'offerings':[{'instanceType':'big','price':1},{'instanceType':'small','price':0.5,'allocatable':{'cpu':'2'}}]" } },
                { "something is cheaper, and nobody knows what room it has", "Empty=False NOT_EMPTY Consolidatable=False NO_CHEAPER",
                  { .nodes = { { "a", "4", "'labels':{'pool':'a','node.kubernetes.io/instance-type':'big'}" }, { "b", "2" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = CONSOLIDATE "},'offerings':[{'instanceType':'big','price':1},{'instanceType':'small','price':0.5}]" } },
                { "a PDB without room", "Empty=False NOT_EMPTY Consolidatable=False PDB_BLOCKS",
                  { .nodes = { { "a", "4" }, { "b", "4" } },
                    .pods = { { "p", "a", "1" } },
                    .pool = CONSOLIDATE "}",
                    .others = { PDB("one", "p", "'disruptionsAllowed':0,'currentHealthy':1,'desiredHealthy':1,'expectedPods':2") } } },
                { "the node opts out of consolidation: emptiness asks nothing of it", "Empty=True - Consolidatable=False NODE_OPT_OUT",
                  { .nodes = { { "a", "4", "'labels':{'pool':'a'},'annotations':{'vesper.sh/do-not-consolidate':'true'}" }, { "b", "4" } },
                    .pool = "'disruption':{'emptyAfter':'1m','consolidation':{'policy':'WhenUnderutilized'},'budgets':[]}" } },
                { "empty, and its pool has no budget", "Empty=True BUDGET",
                  { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'emptyAfter':'1m','budgets':[{'nodes':0}]}" } },
                { "not empty for long enough", "Empty=True QUIET_PERIOD",
                  { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'emptyAfter':'8760h','budgets':[]}" } },
                { "expired, with a pod that holds it", "Expired=True POD_OPT_OUT",
                  { .nodes = { { "a", "4" }, { "b", "4" } },
                    .pods = { { "p", "a", "1", "'annotations':{'vesper.sh/do-not-evict':'true'}," OWNED } },
                    .pool = "'disruption':{'expireAfter':'1h','budgets':[]}" } },
                { "past its hard deadline nothing holds it", "Expired=True -",
                  { .nodes = { { "a", "4" }, { "b", "4" } },
                    .pods = { { "p", "a", "1", "'annotations':{'vesper.sh/do-not-evict':'true'}," OWNED } },
                    .pool = "'disruption':{'expireHardAfter':'1h','budgets':[{'nodes':0}]}" } },
                { "expired, and its pool has no budget", "Expired=True BUDGET",
                  { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'expireAfter':'1h','budgets':[{'nodes':0}]}" } },
                { "drifted, and its pool has no budget", "Drifted=True BUDGET",
                  { .nodes = { { "a", "4" }, { "b", "4" } },
                    .pool = "'disruption':{'drift':'Auto','budgets':[{'nodes':0}]},'template':{'labels':{'x':'y'}}" } },
                { "expired, and its pool may have no successor, which it needs", "Expired=True POOL_LIMIT",
                  { .nodes = { { "a", "4" }, { "b", "2" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = "'disruption':{'expireAfter':'1h','budgets':[]},'limits':{'cpu':'9'}" } },
                { "expired, and its pool may have one", "Expired=True -",
                  { .nodes = { { "a", "4" }, { "b", "2" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = "'disruption':{'expireAfter':'1h','budgets':[]},'limits':{'cpu':'10'}" } },
                { "expired, and needs none", "Expired=True -",
                  { .nodes = { { "a", "4" }, { "b", "4" } },
                    .pods = { { "p", "a", "3" } },
                    .pool = "'disruption':{'expireAfter':'1h','budgets':[]},'limits':{'cpu':'1'}" } },
                { "young, and as its pool says", "Expired=False NOT_EXPIRED Drifted=False NOT_DRIFTED",
                  { .nodes = { { "a", "4" }, { "b", "4" } }, .pool = "'disruption':{'expireAfter':'8760h','drift':'Auto','budgets':[]}" } },
                { "drifted", "Drifted=True -",
                  { .nodes = { { "a", "4" }, { "b", "4" } },
                    .pool = "'disruption':{'drift':'Auto','budgets':[]},'template':{'labels':{'x':'y'}}" } },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rows[i].cluster);
                _cleanup_free_ char *line = judge_line(r, "a"), *again = judge_line(r, "a");

                if (!streq(line, rows[i].expected))
                        fail_msg("%s: got '%s', expected '%s'", rows[i].what, line, rows[i].expected);
                assert_string_equal(line, again); /* it leaves the simulator as it was */
                assert_int_equal(simulator_mark(r->simulator), 0);
        }
}

TEST_CASE(test_words) {
        char reason[OUTLOOK_REASON_MAX];

        outlook_reason(GATE_PDB_BLOCKS, reason);
        assert_string_equal(reason, "PdbBlocks");
        outlook_reason(_GATE_CODE_INVALID, reason);
        assert_string_equal(reason, "WouldGo");
        for (GateCode c = 0; c < _GATE_CODE_MAX; c++) {
                outlook_reason(c, reason);
                assert_in_range(strlen(reason), 4, OUTLOOK_REASON_MAX - 2);
                assert_true(outlook_word(c) > OUTLOOK_WOULD_GO); /* none was forgotten */
        }
        assert_int_equal(outlook_word(_GATE_CODE_INVALID), OUTLOOK_WOULD_GO);
}

/* -- what is written ------------------------------------------------------------------------------------ */

static KubeNodeClaim *claim_of(InternPool *pool, const char *conditions) {
        _cleanup_free_ char *text = strf("{\"metadata\":{\"name\":\"c\"},\"status\":{\"conditions\":[%s]}}", conditions);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o;

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_parse(text, strlen(text), SIZE_MAX, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_node_claim_kind, json_root(doc), pool, &o), 0);
        return (KubeNodeClaim *) o;
}

static void take(NodeMemo *m, PlanMethod method, bool holds, GateCode code, const char *text, usec_t wall_usec) {
        NodeJudgement j = {};

        j.methods[method] = (MethodOutlook){ .is_asked = true, .holds = holds, .code = code, .text = MUST(strdup(text)), .until_usec = USEC_INFINITY };
        assert_return_code(node_memo_take(m, &j, wall_usec), 0);
}

#define NOW (100 * USEC_PER_HOUR)
#define SAID(status, reason, message) \
        "{'type':'Consolidatable','status':'" status "','reason':'" reason "','message':'" message "','lastTransitionTime':'" RIG_OLD "'}"

TEST_CASE(test_writes) {
        static const struct {
                const char *what, *said;
                bool holds, is_asked;
                GateCode code;
                const char *text;
                usec_t told_ago_usec;
                OutlookWrite expected;
                const char *dropped;
        } rows[] = {
                { "nothing was said", "", true, true, _GATE_CODE_INVALID, "t", 0, OUTLOOK_WRITE_NOW, NULL },
                { "the same", SAID("True", "WouldGo", "t"), true, true, _GATE_CODE_INVALID, "t", 0, OUTLOOK_WRITE_NOTHING, NULL },
                { "another status", SAID("True", "WouldGo", "t"), false, true, GATE_BUDGET, "t", 0, OUTLOOK_WRITE_NOW, NULL },
                { "another reason", SAID("False", "PdbBlocks", "t"), false, true, GATE_BUDGET, "t", 0, OUTLOOK_WRITE_NOW, NULL },
                { "another message", SAID("False", "Budget", "1 of 3"), false, true, GATE_BUDGET, "2 of 3", 14 * USEC_PER_MINUTE,
                  OUTLOOK_WRITE_LATER, NULL },
                { "another message after a while", SAID("False", "Budget", "1 of 3"), false, true, GATE_BUDGET, "2 of 3",
                  15 * USEC_PER_MINUTE, OUTLOOK_WRITE_NOW, NULL },
                { "not asked any more", SAID("False", "Budget", "1 of 3"), false, false, 0, NULL, 0, OUTLOOK_WRITE_NOW, "Consolidatable" },
                { "not asked, and nothing is there", "", false, false, 0, NULL, 0, OUTLOOK_WRITE_NOTHING, NULL },
                { "what others say is no concern", "{'type':'Launched','status':'True','reason':'Adopted'}", false, false, 0, NULL, 0,
                  OUTLOOK_WRITE_NOTHING, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(intern_pool_freep) InternPool *pool = NULL;
                _cleanup_(node_memo_freep) NodeMemo *m = NULL;
                _cleanup_(outlook_wish_done) OutlookWish w = {};
                KubeNodeClaim *claim;
                int r;

                assert_return_code(intern_pool_new(&pool), 0);
                claim = claim_of(pool, rows[i].said);
                assert_return_code(node_memo_new("n", "u", NOW - rows[i].told_ago_usec, &m), 0);
                if (rows[i].is_asked)
                        take(m, PLAN_CONSOLIDATION, rows[i].holds, rows[i].code, rows[i].text, 7);
                r = outlook_wish(claim, i % 2 == 0 || rows[i].is_asked ? m : NULL, NOW, &w); /* or without a memo at all */
                if (r != (int) rows[i].expected)
                        fail_msg("%s: got %d, expected %d", rows[i].what, r, (int) rows[i].expected);
                assert_int_equal(w.n_conditions, rows[i].is_asked);
                if (rows[i].is_asked)
                        assert_int_equal(w.conditions[0].last_transition_usec, 7);
                if (!streq_ptr(w.dropped[0], rows[i].dropped))
                        fail_msg("%s: drops %s", rows[i].what, w.dropped[0]);
                kube_object_unref(&claim->object);
        }
}

/* What a claim says of it is what was wished, wherever it is cut. */
TEST_CASE(test_long_message) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(node_memo_freep) NodeMemo *m = NULL;
        _cleanup_(outlook_wish_done) OutlookWish first = {}, second = {};
        _cleanup_free_ char *condition = NULL;
        char text[OUTLOOK_MESSAGE_MAX + 8] = {};
        KubeNodeClaim *silent, *told;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(node_memo_new("n", "u", NOW, &m), 0);
        memset(text, 'x', OUTLOOK_MESSAGE_MAX - 1);
        strcpy(text + OUTLOOK_MESSAGE_MAX - 1, "\xc3\xbc\xc3\xbc");
        take(m, PLAN_CONSOLIDATION, false, GATE_BUDGET, text, 7);
        silent = claim_of(pool, "");
        assert_int_equal(outlook_wish(silent, m, NOW, &first), OUTLOOK_WRITE_NOW);
        assert_in_range(strlen(first.messages[0]), OUTLOOK_MESSAGE_MAX - 8, OUTLOOK_MESSAGE_MAX);
        condition = MUST(strf("{'type':'Consolidatable','status':'False','reason':'Budget','message':'%s'}", first.messages[0]));
        told = claim_of(pool, condition);
        assert_int_equal(outlook_wish(told, m, NOW, &second), OUTLOOK_WRITE_NOTHING);
        kube_object_unref(&silent->object);
        kube_object_unref(&told->object);
}

#define EMPTY(status, at) "{'type':'Empty','status':'" status "','reason':'r','message':'m','lastTransitionTime':'2027-01-15T08:" at "Z'}"

/* A pod that came and went between two looks is not overlooked, however late the claim says so: whoever counts emptyAfter counts
 * from the time after it. */
TEST_CASE(test_empty_anew) {
        static const struct {
                const char *what;
                unsigned at_sec; /* after RIG_NOW */
                const char *said;
                bool pod_came, pod_is_there;
                unsigned since_sec; /* by which it is judged */
                bool holds;
                unsigned memo_sec; /* since when that holds */
        } rows[] = {
                { "nothing is said yet", 0, "", false, false, 0, true, 0 },
                { "and is not while its write is late", 10, "", false, false, 0, true, 0 },
                { "its claim says so", 20, EMPTY("True", "00:00"), false, false, 0, true, 0 },
                { "a pod came and went", 30, EMPTY("True", "00:00"), true, false, 30, false, 30 },
                { "which its claim does not say yet", 40, EMPTY("True", "00:00"), false, false, 40, false, 30 },
                { "now it does", 50, EMPTY("False", "00:30"), false, false, 50, true, 50 },
                { "empty, by its claim", 60, EMPTY("True", "00:50"), false, false, 50, true, 50 },
                { "a pod is there", 70, EMPTY("True", "00:50"), true, true, 70, false, 70 },
                { "it went before its claim said so", 80, EMPTY("True", "00:50"), false, false, 80, false, 70 },
                { "its claim says it", 90, EMPTY("False", "01:10"), false, false, 90, true, 90 },
                { "a pod came and went before its claim says that it is empty", 100, EMPTY("False", "01:10"), true, false, 100, true, 100 },
                { "then that write arrives", 110, EMPTY("True", "01:30"), false, false, 110, false, 110 },
                { "and the next", 120, EMPTY("False", "01:50"), false, false, 120, true, 120 },
                { "a pod is there again", 130, EMPTY("True", "02:00"), true, true, 130, false, 130 },
                { "the clock is set back", 60, EMPTY("False", "02:10"), false, false, 60, true, 60 },
                { "and counts", 70, EMPTY("True", "01:00"), false, false, 60, true, 60 },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(node_memo_freep) NodeMemo *m = NULL;
        const MethodOutlook *o;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(node_memo_new("n", "u", NOW, &m), 0);
        o = m->judgement.methods + PLAN_EMPTINESS;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t now = RIG_NOW_USEC + rows[i].at_sec * USEC_PER_SEC + 7 /* claims have whole seconds */, since;
                KubeNodeClaim *claim = claim_of(pool, rows[i].said);

                m->was_occupied = rows[i].pod_came;
                since = (node_memo_empty_since(m, claim, now) - RIG_NOW_USEC) / USEC_PER_SEC;
                take(m, PLAN_EMPTINESS, !rows[i].pod_is_there, rows[i].pod_is_there ? GATE_NOT_EMPTY : _GATE_CODE_INVALID, "t", now);
                if (since != rows[i].since_sec || o->holds != rows[i].holds ||
                    (m->since_usec[PLAN_EMPTINESS] - RIG_NOW_USEC) / USEC_PER_SEC != rows[i].memo_sec ||
                    (m->candidate_since_usec > 0) != rows[i].holds)
                        fail_msg("%s: since %u, holds %d since %u, would go since %u", rows[i].what, (unsigned) since, o->holds,
                                 (unsigned) ((m->since_usec[PLAN_EMPTINESS] - RIG_NOW_USEC) / USEC_PER_SEC),
                                 (unsigned) (m->candidate_since_usec / USEC_PER_SEC));
                assert_int_equal(o->code, rows[i].holds ? _GATE_CODE_INVALID : GATE_NOT_EMPTY);
                kube_object_unref(&claim->object);
        }
}

TEST_CASE(test_events) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(node_memo_freep) NodeMemo *m = NULL, *late = NULL;
        _cleanup_free_ char *first = NULL, *third = NULL, *other = NULL;
        KubeNodeClaim *silent, *told;

        assert_return_code(intern_pool_new(&pool), 0);
        silent = claim_of(pool, "");
        told = claim_of(pool, SAID("False", "PdbBlocks", "t"));
        assert_return_code(node_memo_new("n", "u", NOW, &m), 0);
        assert_return_code(node_memo_new("n", "u", NOW, &late), 0);
        take(m, PLAN_CONSOLIDATION, false, GATE_PDB_BLOCKS, "pdb x/one prevents pod evictions", 1);
        first = outlook_event(m, silent, NOW);
        assert_string_equal(first, "pdb x/one prevents pod evictions (PDB_BLOCKS)");
        assert_null(outlook_event(m, told, NOW + OUTLOOK_EVENT_USEC - 1));
        third = outlook_event(m, told, NOW + OUTLOOK_EVENT_USEC);
        assert_non_null(third);
        take(m, PLAN_CONSOLIDATION, false, GATE_NO_CHEAPER, "can't replace with a cheaper node: it costs 1", 1);
        other = outlook_event(m, told, NOW + OUTLOOK_EVENT_USEC);
        assert_string_equal(other, "can't replace with a cheaper node: it costs 1 (NO_CHEAPER)");
        take(m, PLAN_CONSOLIDATION, false, GATE_PDB_BLOCKS, "pdb x/one prevents pod evictions", 1);
        assert_null(outlook_event(m, told, NOW + OUTLOOK_EVENT_USEC + 1)); /* each code has its own time */

        print_message("  what passes by itself is no Event, nor what would go\n");
        take(m, PLAN_CONSOLIDATION, false, GATE_QUIET_PERIOD, "t", 1);
        assert_null(outlook_event(m, silent, NOW + OUTLOOK_EVENT_USEC));
        take(m, PLAN_CONSOLIDATION, true, _GATE_CODE_INVALID, "t", 1);
        assert_null(outlook_event(m, silent, NOW + OUTLOOK_EVENT_USEC));

        print_message("  what an earlier leader has told is not told at once\n");
        take(late, PLAN_CONSOLIDATION, false, GATE_PDB_BLOCKS, "pdb x/one prevents pod evictions", 1);
        assert_null(outlook_event(late, told, NOW));
        assert_null(outlook_event(late, told, NOW + 1));
        kube_object_unref(&silent->object);
        kube_object_unref(&told->object);
}

/* -- which change of a node counts ---------------------------------------------------------------------- */

TEST_CASE(test_node_judged_same) {
#define NODE(meta, spec, ready, more)                                                                                        \
        "{'metadata':{'name':'n','uid':'u'" meta "},'spec':{" spec "},'status':{'allocatable':{'cpu':'4'},"                   \
        "'conditions':[{'type':'Ready','status':'" ready "','lastHeartbeatTime':'" more "'}]}}"
#define ATTACHED(names)                                                                                                      \
        "{'metadata':{'name':'n','uid':'u'},'status':{'allocatable':{'cpu':'4'},'volumesAttached':[{'name':'" names "'}],"   \
        "'conditions':[{'type':'Ready','status':'True'}]}}"
        static const struct {
                const char *text;
                bool same;
                const char *before; /* NULL: of nothing but allocatable, and Ready */
        } rows[] = {
                { NODE("", "", "True", RIG_NOW), true }, /* a heartbeat */
                { NODE(",'annotations':{'x':'y'}", "", "True", RIG_OLD), true },
                { NODE(",'labels':{'x':'y'}", "", "True", RIG_OLD), false },
                { NODE(",'annotations':{'karpenter.sh/do-not-disrupt':'true'}", "", "True", RIG_OLD), false },
                { NODE(",'deletionTimestamp':'" RIG_NOW "'", "", "True", RIG_OLD), false },
                { NODE("", "'unschedulable':true", "True", RIG_OLD), false },
                { NODE("", "'taints':[{'key':'k','effect':'NoSchedule'}]", "True", RIG_OLD), false },
                { NODE("", "", "False", RIG_OLD), false },
                { "{'metadata':{'name':'n','uid':'u'},'status':{'allocatable':{'cpu':'4'},'nodeInfo':{'kubeletVersion':'v1.35.0'},"
                  "'conditions':[{'type':'Ready','status':'True'}]}}", false },
                { "{'metadata':{'name':'n','uid':'u'},'status':{'allocatable':{'cpu':'8'},'conditions':[{'type':'Ready','status':'True'}]}}", false },
                { "{'metadata':{'name':'n','uid':'v'},'status':{'allocatable':{'cpu':'4'},'conditions':[{'type':'Ready','status':'True'}]}}", false },
                { ATTACHED("v1"), false },
                { ATTACHED("v1"), true, ATTACHED("v1") },
                { ATTACHED("v1"), false, ATTACHED("v2") },
                { ATTACHED("v1'},{'name':'v2"), true, ATTACHED("v2'},{'name':'v1") }, /* in another order */
        };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(NULL);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeObject *a, *b;

                rig_put_object(r, SNAPSHOT_NODES, rows[i].before ?: NODE("", "", "True", RIG_OLD));
                a = kube_object_ref(snapshot_get(r->snapshot, SNAPSHOT_NODES, "n"));
                rig_put_object(r, SNAPSHOT_NODES, rows[i].text);
                b = snapshot_get(r->snapshot, SNAPSHOT_NODES, "n");
                if (node_judged_same((KubeScheduledNode *) a, (KubeScheduledNode *) b) != rows[i].same)
                        fail_msg("%s: the same is %d", rows[i].text, !rows[i].same);
                kube_object_unref(a);
        }
}

/* vesper(7) says of each code its word. */
TEST_CASE(test_manual) {
        _cleanup_free_ char *text = NULL, *path = strf("%s/packaging/man/vesper.7", strempty(getenv("VESPER_SOURCE")));
        const char *table;
        char *end;
        size_t size;

        if (!getenv("VESPER_SOURCE"))
                skip();
        assert_return_code(read_file(path, 1u << 20, &text, &size), 0);
        table = MUST(strstr(text, "\nThe metric vesper_coordinator_voluntary_disruption_nodes counts nodes by fewer words"));
        end = MUST(strstr(table, "\n.SH "));
        *end = 0;
        for (GateCode c = 0; c < _GATE_CODE_MAX; c++) {
                const char *word = outlook_word_names[outlook_word(c)], *name = gate_code_to_string(c);
                bool found = false;

                for (const char *row = strstr(table, "\n.TP\n"); row && !found; row = strstr(row, "\n.TP\n")) {
                        const char *codes = MUST(strchr(row += strlen("\n.TP\n"), '\n')), *last = strstr(codes, "\n.TP\n") ?: end;
                        _cleanup_free_ char *words = MUST(memdup_str(row, (size_t) (codes - row))),
                                            *names = MUST(memdup_str(codes + 1, (size_t) (last - codes - 1)));
                        _cleanup_strv_free_ char **w = NULL, **n = NULL;

                        assert_return_code(strv_split(words, ", \n", &w), 0);
                        assert_return_code(strv_split(names, ", \n", &n), 0);
                        for (size_t i = 0; n[i] && !found; i++) /* of several words each stands where its code does */
                                found = streq(n[i], name) && streq(w[strv_length(w) == 1 ? 0 : i], word);
                }
                if (!found)
                        fail_msg("vesper(7) does not say that %s is %s", name, word);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_judge),      cmocka_unit_test(test_words),  cmocka_unit_test(test_writes),
                cmocka_unit_test(test_long_message), cmocka_unit_test(test_empty_anew), cmocka_unit_test(test_events), cmocka_unit_test(test_node_judged_same),
                cmocka_unit_test(test_manual),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
