/* SPDX-License-Identifier: Apache-2.0 */
#include "plan-show.h"

#include "ctl-say.h"
#include "string-util.h"
#include "strv.h"

/* Rows of moves that a person reads; JSON has all. */
#define MOVES_MAX 40u

/* A name that came from a file of somebody's. */
static void add_plain(StrBuf *b, const char *text) {
        size_t from = b->size;

        strbuf_add(b, text);
        ctl_make_plain(b, from);
}

static void add_head(StrBuf *b, const DisruptionScene *s) {
        char time[RFC3339_MAX];

        rfc3339_format(s->now_usec, time);
        strbuf_addf(b, "Of %s: %u node%s, %u pod%s.\n", time, s->n_nodes, s->n_nodes == 1 ? "" : "s",
                    simulator_n_pods(s->simulator), simulator_n_pods(s->simulator) == 1 ? "" : "s");
}

static void add_unknown(StrBuf *b, char *const *unknown) {
        STRV_FOREACH(i, unknown) {
                size_t from = b->size;

                strbuf_addf(b, "Note: %s", *i);
                ctl_make_plain(b, from);
                strbuf_add_char(b, '\n');
        }
}

void plan_add_about(StrBuf *b, usec_t usec) {
        char text[DURATION_MAX];

        if (usec == USEC_INFINITY)
                strbuf_add(b, "longer than can be told");
        else
                strbuf_addf(b, "about %s", duration_format(usec, text));
}

void plan_add_from(StrBuf *b, const DisruptionScene *s, const PlanMove *m) {
        if (m->from == NO_NODE)
                strbuf_add(b, "(pending)");
        else
                strbuf_addf(b, "%s%s", scene_node_name(s, m->from), m->waits ? " (leaving)" : "");
}

static void add_drain(CtlTable *t, const DrainEstimate *d) {
        _cleanup_strbuf_ StrBuf b = {};

        if (d->n_waves == 0)
                strbuf_add(&b, "nothing to drain");
        else {
                if (d->is_endless)
                        strbuf_add(&b, "blocked now");
                else {
                        strbuf_addf(&b, "%zu wave%s, ", d->n_waves, d->n_waves == 1 ? "" : "s");
                        plan_add_about(&b, d->usec);
                }
                if (d->pdb)
                        strbuf_addf(&b, " (pdb %s/%s)", d->pdb->pdb->object.meta.ns, d->pdb->pdb->object.meta.name);
        }
        ctl_table_add(t, strbuf_str(&b));
        t->failed = t->failed || b.failed;
}

static void add_moves(StrBuf *b, const DisruptionScene *s, const PlanMove *moves, size_t n) {
        CtlTable t = CTL_TABLE(3);

        if (n == 0)
                return;
        strbuf_add(b, "\nWhere pods would find a place:\n");
        ctl_table_add(&t, "POD");
        ctl_table_add(&t, "FROM");
        ctl_table_add(&t, "TO");
        for (size_t i = 0; i < MIN(n, MOVES_MAX); i++) {
                const ObjectMeta *m = &scene_pod(s, moves[i].pod)->object.meta;
                _cleanup_strbuf_ StrBuf from = {};

                plan_add_from(&from, s, moves + i);
                ctl_table_addf(&t, "%s/%s", m->ns, m->name);
                ctl_table_add(&t, strbuf_str(&from));
                t.failed = t.failed || from.failed;
                ctl_table_add(&t, scene_node_name(s, moves[i].to));
        }
        ctl_table_print(&t, b);
        ctl_table_done(&t);
        if (n > MOVES_MAX)
                strbuf_addf(b, "... and %zu more, which -o json has.\n", n - MOVES_MAX);
}

/* -- the plan ------------------------------------------------------------------------------------------- */

static void add_steps(StrBuf *b, const DisruptionPlan *p) {
        CtlTable t = CTL_TABLE(6);
        const DisruptionScene *s = p->scene;

        ctl_table_add(&t, "STEP");
        ctl_table_add(&t, "METHOD");
        ctl_table_add(&t, "NODE");
        ctl_table_add(&t, "POOL");
        ctl_table_add(&t, "WHY");
        ctl_table_add(&t, "DRAIN");
        for (size_t i = 0; i < p->n_steps; i++)
                for (size_t k = 0; k < p->steps[i].n_nodes; k++) {
                        const PlanStep *step = p->steps + i;
                        const DisruptionPool *pool = s->nodes[step->nodes[k]].pool;

                        if (k == 0) {
                                ctl_table_addf(&t, "%zu", i + 1);
                                ctl_table_addf(&t, "%s%s%s%s", plan_method_to_string(step->method), step->how ? " (" : "",
                                               step->how ?: "", step->how ? ")" : "");
                        } else {
                                ctl_table_add(&t, NULL);
                                ctl_table_add(&t, NULL);
                        }
                        ctl_table_add(&t, scene_node_name(s, step->nodes[k]));
                        ctl_table_add(&t, pool ? pool->pool->object.meta.name : NULL);
                        ctl_table_add(&t, step->why[k]);
                        if (k == 0)
                                add_drain(&t, &step->drain);
                        else
                                ctl_table_add(&t, NULL);
                }
        ctl_table_print(&t, b);
        ctl_table_done(&t);
}

/* What a row has no room for. */
static void add_step_notes(StrBuf *b, const DisruptionPlan *p) {
        int64_t before = 0, after = 0;

        for (size_t i = 0; i < p->n_steps; i++) {
                const PlanStep *step = p->steps + i;

                if (step->replacement_like) {
                        strbuf_addf(b, "Step %zu needs one new node first, like ", i + 1);
                        add_plain(b, step->replacement_like);
                        strbuf_add(b, "; it would be ready before anything is drained.\n");
                }
                if (step->n_naked > 0)
                        strbuf_addf(b, "Step %zu ends %zu pod%s without a controller, which nothing makes anew.\n", i + 1,
                                    step->n_naked, step->n_naked == 1 ? "" : "s");
                if (step->price_before_micros >= 0) {
                        before += step->price_before_micros;
                        after += step->price_after_micros;
                }
        }
        if (before > 0)
                strbuf_addf(b, "By the pools' offerings these nodes cost %.6g, and what takes their place %.6g.\n",
                            (double) before / PRICE_MICROS, (double) after / PRICE_MICROS);
}

static void add_all_moves(StrBuf *b, const DisruptionPlan *p) {
        _cleanup_free_ PlanMove *all = NULL;
        size_t n = 0;

        for (size_t i = 0; i < p->n_steps; i++)
                n += p->steps[i].n_moves;
        all = new0(PlanMove, n + 1);
        if (!all) {
                b->failed = true;
                return;
        }
        n = 0;
        for (size_t i = 0; i < p->n_steps; i++)
                for (size_t k = 0; k < p->steps[i].n_moves; k++)
                        all[n++] = p->steps[i].moves[k];
        add_moves(b, p->scene, all, n);
}

static void add_finding_cells(CtlTable *t, const GateFindings *f) {
        const GateFinding *first = gate_first(f);

        ctl_table_add(t, first ? gate_code_to_string(first->code) : NULL);
        if (first && f->n_items > 1)
                ctl_table_addf(t, "%s (and %zu more reason%s)", first->text, f->n_items - 1, f->n_items == 2 ? "" : "s");
        else
                ctl_table_add(t, first ? first->text : NULL);
}

static void add_staying(StrBuf *b, const DisruptionPlan *p) {
        CtlTable t = CTL_TABLE(5);
        size_t n = 0;

        ctl_table_add(&t, "NODE");
        ctl_table_add(&t, "POOL");
        ctl_table_add(&t, "METHOD");
        ctl_table_add(&t, "CODE");
        ctl_table_add(&t, "WHY");
        for (uint32_t i = 0; i < p->n_nodes; i++) {
                const DisruptionPool *pool = p->scene->nodes[i].pool;
                PlanMethod m;

                if (p->nodes[i].step != NO_STEP)
                        continue;
                m = plan_nearest_method(p, i);
                ctl_table_add(&t, scene_node_name(p->scene, i));
                ctl_table_add(&t, pool ? pool->pool->object.meta.name : NULL);
                ctl_table_add(&t, pool ? plan_method_to_string(m) : NULL);
                add_finding_cells(&t, p->nodes[i].lacks + m);
                n++;
        }
        if (n > 0) {
                strbuf_add(b, "\nWhat stays, and why:\n");
                ctl_table_print(&t, b);
        }
        ctl_table_done(&t);
}

char *plan_table(const DisruptionPlan *p, char *const *unknown) {
        _cleanup_strbuf_ StrBuf b = {};

        add_head(&b, p->scene);
        add_unknown(&b, unknown);
        if (p->n_steps == 0)
                strbuf_add(&b, "No node would be removed now.\n");
        else {
                strbuf_add(&b, "These would be removed now, in this order:\n\n");
                add_steps(&b, p);
                add_step_notes(&b, p);
                add_all_moves(&b, p);
        }
        add_staying(&b, p);
        strbuf_add(&b, "\nNothing has been changed: this release plans such removals, and carries none out.\n");
        return strbuf_steal(&b);
}

/* -- what would be -------------------------------------------------------------------------------------- */

static void add_lacks(StrBuf *b, const DisruptionScene *s, const uint32_t *nodes, const GateFindings *lacks, size_t n) {
        CtlTable t = CTL_TABLE(3);

        ctl_table_add(&t, "NODE");
        ctl_table_add(&t, "CODE");
        ctl_table_add(&t, "WHY");
        for (size_t i = 0; i < n; i++)
                for (size_t k = 0; k < lacks[i].n_items; k++) {
                        ctl_table_add(&t, scene_node_name(s, nodes ? nodes[i] : (uint32_t) i));
                        ctl_table_add(&t, gate_code_to_string(lacks[i].items[k].code));
                        ctl_table_add(&t, lacks[i].items[k].text);
                }
        if (t.n_cells > 3) {
                strbuf_add_char(b, '\n');
                ctl_table_print(&t, b);
        }
        ctl_table_done(&t);
}

static void add_names(StrBuf *b, const DisruptionScene *s, const uint32_t *nodes, size_t n) {
        size_t from = b->size;

        for (size_t i = 0; i < n; i++)
                strbuf_addf(b, "%s%s", i > 0 ? ", " : "", scene_node_name(s, nodes[i]));
        ctl_make_plain(b, from);
}

static void add_whole_drain(StrBuf *b, const WhatIf *w) {
        const DrainEstimate *d = &w->drain;

        if (d->n_waves == 0)
                return;
        strbuf_addf(b, "%s %zu pod%s ", w->n_nodes == 1 ? "Its" : "Their", d->n_pods, d->n_pods == 1 ? "" : "s");
        if (d->is_endless)
                strbuf_addf(b, "cannot %sgo now: ", d->n_pods == 1 ? "" : "all ");
        else {
                strbuf_addf(b, "would go in %zu wave%s, in ", d->n_waves, d->n_waves == 1 ? "" : "s");
                plan_add_about(b, d->usec);
        }
        if (d->pdb) {
                strbuf_addf(b, "%spdb ", d->is_endless ? "" : "; ");
                add_plain(b, d->pdb->pdb->object.meta.ns);
                strbuf_add_char(b, '/');
                add_plain(b, d->pdb->pdb->object.meta.name);
                strbuf_add(b, d->is_endless ? " allows no eviction" : " is the narrowest");
        }
        strbuf_add(b, ".\n");
}

char *what_if_table(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *unknown) {
        _cleanup_strbuf_ StrBuf b = {};

        add_head(&b, s);
        add_unknown(&b, unknown);
        if (w->n_nodes == 0)
                strbuf_add(&b, "No node could go.\n");
        else if (w->fits && !w->has_objections) {
                strbuf_add(&b, w->n_nodes == 1 ? "This node could go: " : "These could go together: ");
                add_names(&b, s, w->nodes, w->n_nodes);
                strbuf_add(&b, ".\n");
        } else
                strbuf_addf(&b, "%s could not go as things are%s.\n", w->n_nodes == 1 ? "This node" : "These",
                            !w->fits ? "" : w->n_nodes == 1 ? ", though all its pods would find a place" : ", though all their pods would find a place");
        add_whole_drain(&b, w);
        add_lacks(&b, s, w->nodes, w->lacks, w->n_nodes);
        if (lacks_of_others)
                add_lacks(&b, s, NULL, lacks_of_others, s->n_nodes);
        add_moves(&b, s, w->moves, w->n_moves);
        strbuf_add(&b, "\nNothing has been changed.\n");
        return strbuf_steal(&b);
}

char *upgrade_table(const DisruptionScene *s, const UpgradePlan *u, char *const *unknown) {
        _cleanup_strbuf_ StrBuf b = {};
        CtlTable t = CTL_TABLE(3);
        size_t n = 0;

        add_head(&b, s);
        add_unknown(&b, unknown);
        ctl_table_add(&t, "WAVE");
        ctl_table_add(&t, "NODES");
        ctl_table_add(&t, "DRAIN");
        for (size_t i = 0; i < u->n_waves; i++) {
                _cleanup_strbuf_ StrBuf names = {};

                add_names(&names, s, u->waves[i].nodes, u->waves[i].n_nodes);
                ctl_table_addf(&t, "%zu", i + 1);
                ctl_table_add(&t, strbuf_str(&names));
                t.failed = t.failed || names.failed;
                add_drain(&t, &u->waves[i].drain);
                n += u->waves[i].n_nodes;
        }
        strbuf_add(&b, "To roll NodePool ");
        add_plain(&b, u->pool->object.meta.name);
        strbuf_addf(&b, ", each node replaced by one like it: %zu node%s in %zu wave%s", n, n == 1 ? "" : "s",
                    u->n_waves, u->n_waves == 1 ? "" : "s");
        if (u->is_endless)
                strbuf_add(&b, ". How long that takes is not known: a PodDisruptionBudget allows no eviction now.\n");
        else {
                strbuf_add(&b, ", ");
                plan_add_about(&b, u->usec);
                strbuf_add(&b, " with 3min for a machine to start in each wave.\n");
        }
        if (u->is_cut)
                strbuf_add(&b, "Only the first thousand successors were simulated; the others are counted, and not tried.\n");
        if (u->n_waves > 0) {
                strbuf_add_char(&b, '\n');
                ctl_table_print(&t, &b);
        }
        ctl_table_done(&t);
        if (u->n_blocked > 0) {
                strbuf_addf(&b, "\n%zu node%s could not go as things are:\n", u->n_blocked, u->n_blocked == 1 ? "" : "s");
                add_lacks(&b, s, u->blocked, u->lacks, u->n_blocked);
        }
        strbuf_add(&b, "\nNothing has been changed.\n");
        return strbuf_steal(&b);
}
