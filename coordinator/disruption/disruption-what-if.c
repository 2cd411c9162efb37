/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-cost.h"
#include "disruption-methods.h"
#include "string-util.h"

void what_if_done(WhatIf *w) {
        for (size_t i = 0; w->lacks && i < w->n_nodes; i++)
                gate_findings_done(w->lacks + i);
        free(w->lacks);
        free(w->nodes);
        free(w->moves);
        *w = (WhatIf){};
}

/* -- nodes that came ------------------------------------------------------------------------------------ */

/* An offering of that instance type, and a node that one of it would be like. */
static bool find_shape(const DisruptionScene *s, const char *shape, const PoolOffering **ret, uint32_t *ret_like) {
        for (size_t k = 0; k < s->n_pools; k++) {
                const KubeNodePool *pool = s->pools[k].pool;

                for (size_t i = 0; i < pool->n_offerings; i++) {
                        if (!streq_ptr(pool->offerings[i].instance_type, shape))
                                continue;
                        for (uint32_t n = 0; n < s->n_nodes; n++)
                                if (s->nodes[n].pool == s->pools + k && simulator_node(s->simulator, n)->is_initialized) {
                                        *ret = pool->offerings + i;
                                        *ret_like = n;
                                        return true;
                                }
                }
        }
        return false;
}

/* Of the instance type, where no offering says it. */
static bool find_node_of_type(const DisruptionScene *s, const char *shape, uint32_t *ret) {
        for (uint32_t n = 0; n < s->n_nodes; n++)
                if (streq_ptr(object_meta_label(&scene_node(s, n)->object.meta, "node.kubernetes.io/instance-type"), shape) &&
                    simulator_node(s->simulator, n)->is_initialized) {
                        *ret = n;
                        return true;
                }
        return false;
}

int disruption_add_nodes(DisruptionScene *s, const char *shape, unsigned n) {
        const PoolOffering *o = NULL;
        uint32_t like, new;
        int r;

        if (simulator_find_node(s->simulator, shape, &like) < 0 && !find_node_of_type(s, shape, &like) &&
            !find_shape(s, shape, &o, &like))
                return -ENOENT;
        for (unsigned i = 1; n > 0; i++) {
                KeyValue type = { "node.kubernetes.io/instance-type", shape };
                KeyValues labels = { &type, 1 };
                _cleanup_free_ char *name = strf("with-%s-%u", shape, i);

                if (!name)
                        return -ENOMEM;
                r = simulator_add_node(s->simulator,
                                       &(SimulatorNewNode){ .name = name,
                                                            .like = like,
                                                            .labels = o ? &labels : NULL,
                                                            .allocatable = o && o->allocatable.n_items > 0 ? &o->allocatable : NULL },
                                       &new);
                if (r == -EEXIST) /* of an earlier --with for the same shape */
                        continue;
                if (r < 0)
                        return r;
                n--;
        }
        simulator_unseat_waiting(s->simulator);
        return simulator_seat_waiting(s->simulator);
}

/* -- nodes that went ------------------------------------------------------------------------------------ */

static int what_if_room(WhatIf *w, size_t n) {
        w->nodes = new0(uint32_t, n + 1);
        w->lacks = new0(GateFindings, n + 1);
        return w->nodes && w->lacks ? 0 : -ENOMEM;
}

static int fill_moves(const DisruptionScene *s, const SimulateVerdict *v, WhatIf *w) {
        w->moves = new0(PlanMove, v->n_placements + 1);
        if (!w->moves)
                return -ENOMEM;
        for (size_t i = 0; i < v->n_placements; i++) {
                uint32_t home = simulator_home_of(s->simulator, v->placements[i].pod);

                w->moves[w->n_moves++] = (PlanMove){ .pod = v->placements[i].pod,
                                                     .from = home,
                                                     .to = v->placements[i].node,
                                                     .waits = !is_node_of(w->nodes, w->n_nodes, home) };
        }
        return 0;
}

/* The pod's own; of one that waits, the node of its seat, or the first where pods of these nodes take that. */
static uint32_t blamed_node(const DisruptionScene *s, const SimulateUnplaced *u, const WhatIf *w) {
        uint32_t node = u->waits ? simulator_node_of(s->simulator, u->pod) : simulator_home_of(s->simulator, u->pod);

        return is_node_of(w->nodes, w->n_nodes, node) ? node : w->nodes[0];
}

/* Each unplaced pod is said at its own node. */
static void blame_nodes(const DisruptionScene *s, const SimulateVerdict *v, WhatIf *w) {
        for (size_t i = 0; i < w->n_nodes; i++) {
                SimulateVerdict part = { .fits_packed = v->fits_packed };

                part.unplaced = new0(SimulateUnplaced, v->n_unplaced + 1);
                if (!part.unplaced) {
                        w->lacks[i].failed = true;
                        return;
                }
                for (size_t k = 0; k < v->n_unplaced; k++)
                        if (blamed_node(s, v->unplaced + k, w) == w->nodes[i])
                                part.unplaced[part.n_unplaced++] = v->unplaced[k];
                gate_add_verdict(s, w->nodes[i], w->n_nodes > 1 ? GOES_AMONG_OTHERS : GOES_ALONE, &part, w->lacks + i);
                free(part.unplaced);
        }
}

static int judge_set(DisruptionScene *s, WhatIf *w) {
        const SimulateOptions o = {};
        SimulateVerdict v = {};
        int r;

        r = simulate_removal(s->simulator, w->nodes, w->n_nodes, &o, false, &v);
        if (r >= 0) {
                w->fits = v.fits;
                if (v.fits)
                        r = fill_moves(s, &v, w);
                else
                        blame_nodes(s, &v, w);
        }
        simulate_verdict_done(&v);
        return r < 0 ? r : drain_estimate(s, w->nodes, w->n_nodes, &w->drain);
}

int disruption_without(DisruptionScene *s, char *const *names, size_t n, WhatIf *ret, const char **reterr_name) {
        WhatIf w = {};
        int r = what_if_room(&w, n);

        for (size_t i = 0; i < n && r >= 0; i++) {
                uint32_t node;
                bool is_there = false;

                if (simulator_find_node(s->simulator, names[i], &node) < 0) {
                        *reterr_name = names[i];
                        r = -ENOENT;
                        break;
                }
                for (size_t k = 0; k < w.n_nodes; k++)
                        is_there = is_there || w.nodes[k] == node;
                if (is_there)
                        continue;
                w.nodes[w.n_nodes++] = node;
                gate_node(s, node, GATE_UNMANAGED_TOO, w.lacks + w.n_nodes - 1);
                w.has_objections = w.has_objections || w.lacks[w.n_nodes - 1].n_items > 0;
        }
        if (r >= 0)
                r = judge_set(s, &w);
        for (size_t i = 0; i < w.n_nodes && r >= 0; i++)
                if (w.lacks[i].failed)
                        r = -ENOMEM;
        if (r < 0)
                what_if_done(&w);
        else
                *ret = w;
        return r;
}

/* -- all that could go ---------------------------------------------------------------------------------- */

/* Of nodes without a finding as many as fit together; what does not fit has its findings then. */
static int choose_drainable(DisruptionScene *s, const uint32_t *candidates, size_t n, GateFindings *lacks, WhatIf *w) {
        const SimulateOptions quick = { .quick = true }, whole = {};
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++) {
                SimulateVerdict v = {};

                r = simulate_removal(s->simulator, candidates + i, 1, &quick, true, &v);
                if (r >= 0 && v.fits)
                        w->nodes[w->n_nodes++] = candidates[i];
                else if (r >= 0) {
                        simulate_verdict_done(&v);
                        r = simulate_removal(s->simulator, candidates + i, 1, &whole, false, &v);
                        if (r >= 0)
                                gate_add_verdict(s, candidates[i], w->n_nodes > 0 ? GOES_AFTER_OTHERS : GOES_ALONE, &v, lacks + candidates[i]);
                }
                simulate_verdict_done(&v);
        }
        return r;
}

/* Until they fit as one set, the last that was chosen is dropped. */
static int settle_set(DisruptionScene *s, GateFindings *lacks, WhatIf *w) {
        int r = 0;

        while (w->n_nodes > 0) {
                r = judge_set(s, w);
                if (r < 0 || w->fits)
                        break;
                for (size_t i = 0; i < w->n_nodes; i++)
                        gate_findings_done(w->lacks + i);
                w->n_nodes--;
                gate_add(lacks + w->nodes[w->n_nodes], GATE_NOT_PLACED, NULL, USEC_INFINITY,
                         strdup("its pods have no place on other nodes once the others are gone"));
        }
        return r;
}

int disruption_all_drainable(DisruptionScene *s, WhatIf *ret, GateFindings **ret_lacks_of_others) {
        SimulatorMark mark = simulator_mark(s->simulator);
        _cleanup_free_ uint32_t *candidates = new0(uint32_t, (size_t) s->n_nodes + 1);
        GateFindings *lacks = new0(GateFindings, (size_t) s->n_nodes + 1);
        WhatIf w = {};
        size_t n = 0;
        int r = candidates && lacks ? what_if_room(&w, s->n_nodes) : -ENOMEM;

        for (uint32_t i = 0; i < s->n_nodes && r >= 0; i++) {
                gate_node(s, i, GATE_UNMANAGED_TOO, lacks + i);
                if (lacks[i].n_items == 0)
                        candidates[n++] = i;
        }
        if (r >= 0)
                r = disruption_sort(s, candidates, n);
        if (r >= 0)
                r = choose_drainable(s, candidates, n, lacks, &w);
        simulator_undo(s->simulator, mark);
        if (r >= 0)
                r = settle_set(s, lacks, &w);
        for (uint32_t i = 0; i < s->n_nodes && r >= 0; i++)
                if (lacks[i].failed)
                        r = -ENOMEM;
        if (r >= 0) {
                *ret = w;
                *ret_lacks_of_others = lacks;
                return 0;
        }
        for (uint32_t i = 0; lacks && i < s->n_nodes; i++)
                gate_findings_done(lacks + i);
        free(lacks);
        what_if_done(&w);
        return r;
}
