/* SPDX-License-Identifier: Apache-2.0 */
#include "plan-show.h"

#include <inttypes.h>

#include "hashmap.h"
#include "string-util.h"
#include "strv.h"

/* -- parts ---------------------------------------------------------------------------------------------- */

void json_add_notes(JsonWriter *w, char *const *unknown) {
        json_open_array(w, "notes");
        STRV_FOREACH(i, unknown)
                json_add_string(w, NULL, *i);
        json_close_array(w);
}

void json_add_findings(JsonWriter *w, const char *key, const GateFindings *f) {
        json_open_array(w, key);
        for (size_t i = 0; i < f->n_items; i++) {
                const GateFinding *g = f->items + i;

                json_open_object(w, NULL);
                json_add_string(w, "code", gate_code_to_string(g->code));
                json_add_string(w, "object", g->object);
                json_add_string(w, "text", g->text);
                if (g->until_usec != USEC_INFINITY)
                        json_add_time(w, "until", g->until_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static void add_pod_name(JsonWriter *w, const char *key, const DisruptionScene *s, uint32_t pod) {
        const ObjectMeta *m = &scene_pod(s, pod)->object.meta;

        json_addf(w, key, "%s/%s", m->ns, m->name);
}

static void add_moves(JsonWriter *w, const DisruptionScene *s, const PlanMove *moves, size_t n) {
        json_open_array(w, "moves");
        for (size_t i = 0; i < n; i++) {
                json_open_object(w, NULL);
                add_pod_name(w, "pod", s, moves[i].pod);
                if (moves[i].from == NO_NODE)
                        json_add_null(w, "from");
                else
                        json_add_string(w, "from", scene_node_name(s, moves[i].from));
                if (moves[i].waits)
                        json_add_bool(w, moves[i].from == NO_NODE ? "pending" : "leaving", true);
                json_add_string(w, "to", scene_node_name(s, moves[i].to));
                json_close_object(w);
        }
        json_close_array(w);
}

/* Longer than can be told: none. */
static void add_seconds(JsonWriter *w, usec_t usec) {
        if (usec != USEC_INFINITY)
                json_add_int64(w, "seconds", (int64_t) (usec / USEC_PER_SEC));
}

static void add_drain(JsonWriter *w, const DrainEstimate *d) {
        json_open_object(w, "drain");
        json_add_int64(w, "pods", (int64_t) d->n_pods);
        json_add_int64(w, "waves", (int64_t) d->n_waves);
        if (d->pdb)
                json_addf(w, "pdb", "%s/%s", d->pdb->pdb->object.meta.ns, d->pdb->pdb->object.meta.name);
        if (d->is_endless)
                json_add_bool(w, "blocked", true);
        else
                add_seconds(w, d->usec);
        json_close_object(w);
}

static void begin(JsonWriter *w, const DisruptionScene *s, char *const *unknown) {
        json_open_object(w, NULL);
        json_open_object(w, "snapshot");
        json_add_time(w, "taken", s->now_usec);
        json_add_int64(w, "nodes", s->n_nodes);
        json_add_int64(w, "pods", simulator_n_pods(s->simulator));
        json_open_array(w, "unknown");
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                if (!s->snapshot->is_known[k])
                        json_add_string(w, NULL, snapshot_kube_kind(k)->plural);
        json_close_array(w);
        json_add_notes(w, unknown);
        json_close_object(w);
}

/* The text with its own digest as the last member. */
static char *end(JsonWriter *w) {
        _cleanup_free_ char *json = NULL;
        size_t size;

        json_close_object(w);
        json = json_writer_steal(w, &size);
        if (!json)
                return NULL;
        json[size - 1] = 0; /* its closing brace */
        return strf("%s,\"digest\":\"%016" PRIx64 "\"}", json, hash64(json, size - 1));
}

/* -- the plan ------------------------------------------------------------------------------------------- */

static void add_step(JsonWriter *w, const DisruptionScene *s, const PlanStep *step) {
        json_open_object(w, NULL);
        json_add_string(w, "method", plan_method_to_string(step->method));
        json_add_string(w, "how", step->how);
        json_open_array(w, "nodes");
        for (size_t i = 0; i < step->n_nodes; i++) {
                const DisruptionNode *n = s->nodes + step->nodes[i];

                json_open_object(w, NULL);
                json_add_string(w, "name", scene_node_name(s, step->nodes[i]));
                json_add_string(w, "pool", n->pool ? n->pool->pool->object.meta.name : NULL);
                json_add_string(w, "why", step->why[i]);
                json_close_object(w);
        }
        json_close_array(w);
        add_moves(w, s, step->moves, step->n_moves);
        if (step->replacement != NO_NODE) {
                json_open_object(w, "replacement");
                json_add_string(w, "name", scene_node_name(s, step->replacement));
                json_add_string(w, "like", step->replacement_like);
                json_close_object(w);
        }
        if (step->price_before_micros >= 0) {
                json_open_object(w, "price");
                price_write(w, "before", step->price_before_micros);
                price_write(w, "after", step->price_after_micros);
                json_close_object(w);
        }
        add_drain(w, &step->drain);
        json_add_int64(w, "nakedPods", (int64_t) step->n_naked);
        json_close_object(w);
}

static void add_staying(JsonWriter *w, const DisruptionPlan *p, uint32_t node) {
        const DisruptionNode *n = p->scene->nodes + node;

        json_open_object(w, NULL);
        json_add_string(w, "name", scene_node_name(p->scene, node));
        json_add_string(w, "pool", n->pool ? n->pool->pool->object.meta.name : NULL);
        json_add_string(w, "nearest", plan_method_to_string(plan_nearest_method(p, node)));
        json_open_object(w, "lacks");
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                if (p->nodes[node].lacks[m].n_items > 0)
                        json_add_findings(w, plan_method_to_string(m), p->nodes[node].lacks + m);
        json_close_object(w);
        json_close_object(w);
}

char *plan_json(const DisruptionPlan *p, char *const *unknown) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        begin(w, p->scene, unknown);
        json_open_array(w, "steps");
        for (size_t i = 0; i < p->n_steps; i++)
                add_step(w, p->scene, p->steps + i);
        json_close_array(w);
        json_open_array(w, "staying");
        for (uint32_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].step == NO_STEP)
                        add_staying(w, p, i);
        json_close_array(w);
        return end(w);
}

/* -- what would be -------------------------------------------------------------------------------------- */

/* Nodes, and what each lacks. */
static void add_lacking(JsonWriter *w, const char *key, const DisruptionScene *s, const uint32_t *nodes, const GateFindings *lacks,
                        size_t n) {
        json_open_array(w, key);
        for (size_t i = 0; i < n; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "name", scene_node_name(s, nodes[i]));
                json_add_findings(w, "lacks", lacks + i);
                json_close_object(w);
        }
        json_close_array(w);
}

char *what_if_json(const DisruptionScene *s, const WhatIf *x, const GateFindings *lacks_of_others, char *const *unknown) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        begin(w, s, unknown);
        json_add_bool(w, "fits", x->fits);
        json_add_bool(w, "canGo", x->fits && !x->has_objections);
        add_lacking(w, "nodes", s, x->nodes, x->lacks, x->n_nodes);
        add_moves(w, s, x->moves, x->n_moves);
        add_drain(w, &x->drain);
        if (lacks_of_others) {
                json_open_array(w, "staying");
                for (uint32_t i = 0; i < s->n_nodes; i++) {
                        if (lacks_of_others[i].n_items == 0)
                                continue;
                        json_open_object(w, NULL);
                        json_add_string(w, "name", scene_node_name(s, i));
                        json_add_findings(w, "lacks", lacks_of_others + i);
                        json_close_object(w);
                }
                json_close_array(w);
        }
        return end(w);
}

char *upgrade_json(const DisruptionScene *s, const UpgradePlan *u, char *const *unknown) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        begin(w, s, unknown);
        json_add_string(w, "pool", u->pool->object.meta.name);
        json_open_array(w, "waves");
        for (size_t i = 0; i < u->n_waves; i++) {
                json_open_object(w, NULL);
                json_open_array(w, "nodes");
                for (size_t k = 0; k < u->waves[i].n_nodes; k++)
                        json_add_string(w, NULL, scene_node_name(s, u->waves[i].nodes[k]));
                json_close_array(w);
                json_add_int64(w, "newNodes", u->waves[i].n_new);
                add_drain(w, &u->waves[i].drain);
                json_close_object(w);
        }
        json_close_array(w);
        if (!u->is_endless)
                add_seconds(w, u->usec);
        json_add_bool(w, "cut", u->is_cut);
        add_lacking(w, "blocked", s, u->blocked, u->lacks, u->n_blocked);
        return end(w);
}
