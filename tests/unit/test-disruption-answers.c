/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-rig.h"
#include "string-util.h"
#include "strv.h"

/*
 * The whole answer of the plan to a question about a small cluster: which nodes go, in which waves, where pods go, and
 * each finding with its text. Questions: "plan", "without A,B", "drainable", "upgrade", each after "with SHAPE:N ..." or without that.
 */

typedef struct Row {
        const char *what;
        RigCluster cluster;
        const char *question;
        const char *want;
} Row;

#define ON(node) "'nodeSelector':{'kubernetes.io/hostname':'" node "'}"
#define NAMED(n) "'labels':{'pool':'a','kubernetes.io/hostname':'" n "'}"
#define NDB(more) \
        "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'nb'},'spec':{" \
        "'selector':{'matchLabels':{'pool':'a'}}," more "}}"
#define ONLY_ON_A \
        "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" \
        "{'matchFields':[{'key':'metadata.name','operator':'In','values':['a']}]}]}}}"
#define UNINITIALIZED "'taints':[{'key':'node.cloudprovider.kubernetes.io/uninitialized','effect':'NoSchedule'}]"
#define PREFERS_SSD \
        "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':1,'preference':{" \
        "'matchExpressions':[{'key':'disk','operator':'In','values':['ssd']}]}}]}}"
#define OFFER(type, price, cpu) "{'instanceType':'" type "','price':" price ",'allocatable':{'cpu':'" cpu "'}}"

static const Row rows[] = {
#include "disruption-answers-rows.h"
};

/* -- answers as text ------------------------------------------------------------------------------------ */

static void add_findings(StrBuf *b, const DisruptionRig *r, uint32_t node, const GateFindings *f) {
        if (f->n_items == 0)
                return;
        strbuf_addf(b, "\n%s:", scene_node_name(r->scene, node));
        for (size_t i = 0; i < f->n_items; i++)
                strbuf_addf(b, " %s: %s;", gate_code_to_string(f->items[i].code), f->items[i].text);
}

static void add_nodes(StrBuf *b, const DisruptionRig *r, const uint32_t *nodes, size_t n) {
        for (size_t i = 0; i < n; i++)
                strbuf_addf(b, " %s", scene_node_name(r->scene, nodes[i]));
}

static void add_moves(StrBuf *b, const DisruptionRig *r, const PlanMove *moves, size_t n) {
        for (size_t i = 0; i < n; i++)
                strbuf_addf(b, " %s%s>%s", scene_pod(r->scene, moves[i].pod)->object.meta.name, moves[i].waits ? "(waits)" : "",
                            scene_node_name(r->scene, moves[i].to));
}

static void add_drain(StrBuf *b, const DrainEstimate *d) {
        strbuf_addf(b, " [%zu pods, %zu waves, %llds%s%s]", d->n_pods, d->n_waves, (long long) (d->usec / USEC_PER_SEC),
                    d->pdb ? ", " : "", d->pdb ? d->pdb->pdb->object.meta.name : "");
}

static void add_what_if(StrBuf *b, const DisruptionRig *r, const WhatIf *w) {
        strbuf_addf(b, "%s%s:", w->fits ? "fits" : "does not fit", w->has_objections ? ", objections" : "");
        add_nodes(b, r, w->nodes, w->n_nodes);
        add_moves(b, r, w->moves, w->n_moves);
        add_drain(b, &w->drain);
        for (size_t i = 0; i < w->n_nodes; i++)
                add_findings(b, r, w->nodes[i], w->lacks + i);
}

static void answer_without(StrBuf *b, const DisruptionRig *r, const char *list) {
        _cleanup_strv_free_ char **names = NULL;
        const char *unknown = NULL;
        WhatIf w;

        assert_return_code(strv_split(list, ",", &names), 0);
        assert_return_code(disruption_without(r->scene, names, strv_length(names), &w, &unknown), 0);
        add_what_if(b, r, &w);
        what_if_done(&w);
}

static void answer_drainable(StrBuf *b, const DisruptionRig *r) {
        GateFindings *others;
        WhatIf w;

        assert_return_code(disruption_all_drainable(r->scene, &w, &others), 0);
        add_what_if(b, r, &w);
        for (uint32_t i = 0; i < r->scene->n_nodes; i++) {
                add_findings(b, r, i, others + i);
                gate_findings_done(others + i);
        }
        free(others);
        what_if_done(&w);
}

static void answer_upgrade(StrBuf *b, const DisruptionRig *r) {
        UpgradePlan u;

        assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
        for (size_t i = 0; i < u.n_waves; i++) {
                strbuf_addf(b, "%s%u new,", i > 0 ? "; " : "", u.waves[i].n_new);
                add_nodes(b, r, u.waves[i].nodes, u.waves[i].n_nodes);
                add_drain(b, &u.waves[i].drain);
        }
        strbuf_addf(b, "%s %llds", u.n_waves > 0 ? "." : "none.", (long long) (u.usec / USEC_PER_SEC));
        for (size_t i = 0; i < u.n_blocked; i++)
                add_findings(b, r, u.blocked[i], u.lacks + i);
        upgrade_plan_done(&u);
}

static void answer_plan(StrBuf *b, const DisruptionRig *r) {
        DisruptionPlan *p = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        for (size_t i = 0; i < p->n_steps; i++) {
                const PlanStep *s = p->steps + i;

                strbuf_addf(b, "%s%s/%s", i > 0 ? "; " : "", plan_method_to_string(s->method), strempty(s->how));
                add_nodes(b, r, s->nodes, s->n_nodes);
                add_moves(b, r, s->moves, s->n_moves);
                add_drain(b, &s->drain);
                if (s->replacement_like)
                        strbuf_addf(b, " +%s", s->replacement_like);
                if (s->price_before_micros >= 0)
                        strbuf_addf(b, " %g>%g", (double) s->price_before_micros / PRICE_MICROS, (double) s->price_after_micros / PRICE_MICROS);
                for (size_t k = 0; k < s->n_nodes; k++)
                        strbuf_addf(b, " (%s)", s->why[k]);
        }
        for (uint32_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].step == NO_STEP)
                        add_findings(b, r, i, p->nodes[i].lacks + plan_nearest_method(p, i));
        disruption_plan_free(p);
}

static char *answer(const Row *row) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&row->cluster);
        _cleanup_strv_free_ char **words = NULL;
        _cleanup_strbuf_ StrBuf b = {};
        char **w;

        assert_return_code(strv_split(row->question, " ", &words), 0);
        for (w = words; streq(*w, "with"); w += 2) {
                char *colon = strchr(w[1], ':');

                *colon = 0;
                assert_return_code(disruption_add_nodes(r->scene, w[1], (unsigned) atoi(colon + 1)), 0);
        }
        if (streq(*w, "without"))
                answer_without(&b, r, w[1]);
        else if (streq(*w, "drainable"))
                answer_drainable(&b, r);
        else if (streq(*w, "upgrade"))
                answer_upgrade(&b, r);
        else
                answer_plan(&b, r);
        return b.size > 0 ? strbuf_steal(&b) : strdup("");
}

TEST_CASE(test_answers) {
        unsigned n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = answer(rows + i);

                assert_non_null(text);
                if (streq(text, strempty(rows[i].want)))
                        continue;
                print_error("%s\n%s\n--\n%s\n==\n", rows[i].what, strempty(rows[i].want), text);
                n_wrong++;
        }
        assert_int_equal(n_wrong, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = { cmocka_unit_test(test_answers) };

        return cmocka_run_group_tests_name("disruption-answers", tests, NULL, NULL);
}
