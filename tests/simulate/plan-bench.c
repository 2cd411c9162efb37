/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a plan costs, on made-up clusters whose pools have every method on: plan-bench [NODES PODS OWNERS FILL% BUDGETS [OFFERINGS]].
 * BUDGETS is JSON, or "default". Prints one line of JSON of what it measured, in CPU time of one thread: the simulator made of objects that
 * are read already, what the plan needs besides (scene), the plan, its bytes as JSON, what `explain --simulate` makes of a node, and what
 * the coordinator judges of each node in a round.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cluster-maker.h"
#include "explain-outlook.h"
#include "outlook-judge.h"
#include "plan-show.h"
#include "string-util.h"

#define EXPLAINED 5u

typedef struct Figures {
        double made_ms, scene_ms, plan_ms, json_ms, explain_ms, explain_most_ms;
        double round_ms, judge_most_ms;
        size_t n_gone[_PLAN_METHOD_MAX], n_steps, n_moves, n_replacements, n_consolidatable, n_unconsolidatable;
        uint64_t digest;
} Figures;

static double now_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* How long it took, and from when on the next thing takes. */
static double lap(double *begin) {
        double now = now_ms(), took = now - *begin;

        *begin = now;
        return took;
}

static void count_steps(const DisruptionPlan *p, Figures *f) {
        f->n_steps = p->n_steps;
        for (size_t i = 0; i < p->n_steps; i++) {
                f->n_gone[p->steps[i].method] += p->steps[i].n_nodes;
                f->n_moves += p->steps[i].n_moves;
                f->n_replacements += p->steps[i].replacement != NO_NODE;
        }
}

static int measure_plan(const Snapshot *snapshot, Figures *f) {
        _cleanup_(simulator_freep) Simulator *simulator = NULL;
        _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *json = NULL;
        double begin = now_ms();
        int r = simulator_new(snapshot, &simulator);

        f->made_ms = lap(&begin);
        if (r >= 0)
                r = disruption_scene_new(snapshot, simulator, NULL, &s);
        f->scene_ms = lap(&begin);
        if (r >= 0)
                r = disruption_plan_new(s, &p);
        f->plan_ms = lap(&begin);
        if (r < 0)
                return r;
        json = plan_json(p, NULL);
        f->json_ms = lap(&begin);
        if (!json)
                return -ENOMEM;
        f->digest = hash64(json, strlen(json));
        count_steps(p, f);
        return 0;
}

/* Of nodes all over the cluster, each as if nothing else had been asked; the text is part of it. */
static int measure_explain(const Snapshot *snapshot, Figures *f) {
        int r = 0;

        for (uint32_t i = 0; i < EXPLAINED && r >= 0; i++) {
                _cleanup_(simulator_freep) Simulator *simulator = NULL;
                _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
                _cleanup_(node_outlook_done) NodeOutlook o = {};
                _cleanup_free_ char *text = NULL;
                double begin, took;

                r = simulator_new(snapshot, &simulator);
                begin = now_ms();
                if (r >= 0)
                        r = disruption_scene_new(snapshot, simulator, NULL, &s);
                if (r >= 0)
                        r = node_outlook_make(s, scene_node_name(s, s->n_nodes / EXPLAINED * i), &o);
                if (r < 0)
                        break;
                text = node_outlook_text(&o, NULL);
                took = lap(&begin);
                if (!text)
                        r = -ENOMEM;
                f->explain_ms += took / EXPLAINED;
                f->explain_most_ms = MAX(f->explain_most_ms, took);
        }
        return r;
}

/* A whole round of the outlook, without what it writes. */
static int measure_round(const Snapshot *snapshot, Figures *f) {
        _cleanup_(simulator_freep) Simulator *simulator = NULL;
        _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
        int r = simulator_new(snapshot, &simulator);

        if (r >= 0)
                r = disruption_scene_new(snapshot, simulator, NULL, &s);
        for (uint32_t i = 0; r >= 0 && i < s->n_nodes; i++) {
                _cleanup_(node_judgement_done) NodeJudgement j = {};
                const MethodOutlook *o = j.methods + PLAN_CONSOLIDATION;
                double begin = now_ms(), took;

                r = outlook_judge(s, i, &j);
                took = lap(&begin);
                f->round_ms += took;
                f->judge_most_ms = MAX(f->judge_most_ms, took);
                f->n_consolidatable += o->is_asked && o->holds;
                f->n_unconsolidatable += o->is_asked && !o->holds && o->code >= GATE_UNMODELLED;
        }
        return r;
}

int main(int argc, char **argv) {
        ClusterShape shape = { .seed = 1, .n_nodes = 5000, .n_pods = 150000, .n_owners = 1500, .fill_percent = 65 };
        const char *budgets = NULL;
        MadeCluster c = {};
        Figures f = {};
        int r;

        if (argc == 6 || argc == 7) {
                shape.n_nodes = (uint32_t) atoi(argv[1]);
                shape.n_pods = (uint32_t) atoi(argv[2]);
                shape.n_owners = (uint32_t) atoi(argv[3]);
                shape.fill_percent = (unsigned) atoi(argv[4]);
                budgets = streq(argv[5], "default") ? NULL : argv[5];
                shape.n_offerings = argc == 7 ? (unsigned) atoi(argv[6]) : 0;
        }
        r = cluster_make(&shape, &c);
        if (r >= 0) {
                cluster_add_pools(&c, &shape, budgets);
                r = measure_plan(c.snapshot, &f);
        }
        if (r >= 0)
                r = measure_explain(c.snapshot, &f);
        if (r >= 0)
                r = measure_round(c.snapshot, &f);
        if (r >= 0)
                printf("{\"nodes\":%u,\"pods\":%u,\"bound\":%u,\"madeMs\":%.1f,\"sceneMs\":%.1f,\"planMs\":%.1f,\"jsonMs\":%.1f,"
                       "\"explainMs\":%.2f,\"explainMostMs\":%.2f,\"roundMs\":%.1f,\"judgeMostMs\":%.2f,\"consolidatable\":%zu,\"unconsolidatable\":%zu,\"steps\":%zu,\"moves\":%zu,\"replacements\":%zu,"
                       "\"gone\":{\"Expiration\":%zu,\"Drift\":%zu,\"Emptiness\":%zu,\"Consolidation\":%zu},\"digest\":\"%016llx\"}\n",
                       shape.n_nodes, shape.n_pods, c.n_bound, f.made_ms, f.scene_ms, f.plan_ms, f.json_ms, f.explain_ms, f.explain_most_ms,
                       f.round_ms, f.judge_most_ms, f.n_consolidatable, f.n_unconsolidatable, f.n_steps, f.n_moves, f.n_replacements, f.n_gone[PLAN_EXPIRATION], f.n_gone[PLAN_DRIFT], f.n_gone[PLAN_EMPTINESS],
                       f.n_gone[PLAN_CONSOLIDATION], (unsigned long long) f.digest);
        cluster_done(&c);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
