/* SPDX-License-Identifier: Apache-2.0 */
#include "plan-page.h"

#include <stdlib.h>

static const char *const role_classes[_PAGE_ROLE_MAX] = {
        [PAGE_GOES] = "goes",
        [PAGE_REFUSED] = "refused",
        [PAGE_NEW] = "new",
        [PAGE_TAKES] = "takes",
        [PAGE_STAYS] = "stays",
};

const char *page_role_class(PageRole r) {
        return role_classes[r];
}

static const char *const code_words[_GATE_CODE_MAX] = {
        [GATE_NOT_MANAGED] = "no NodePool manages it",
        [GATE_DELETING] = "it is being deleted already",
        [GATE_NOT_INITIALISED] = "it is not Ready, or still has a taint of new nodes",
        [GATE_NOMINATED] = "a pod that waits for a node needs it",
        [GATE_NODE_OPT_OUT] = "an annotation of the node forbids it",
        [GATE_POOL_INVALID] = "its NodePool cannot be understood",
        [GATE_PAUSED] = "removals are paused",
        [GATE_SNAPSHOT_INCOMPLETE] = "something that decides it was not read",
        [GATE_POD_OPT_OUT] = "a pod forbids its own eviction",
        [GATE_NAKED_POD] = "a pod has no controller, and would be lost",
        [GATE_MULTI_PDB] = "several PodDisruptionBudgets select one pod",
        [GATE_PDB_IMPOSSIBLE] = "a PodDisruptionBudget can never allow an eviction",
        [GATE_PDB_BLOCKS] = "a PodDisruptionBudget allows no eviction now",
        [GATE_DISABLED] = "its pool does not ask for such removals",
        [GATE_NOT_EXPIRED] = "it is not old enough to expire",
        [GATE_NOT_DRIFTED] = "it is as its pool says",
        [GATE_NOT_EMPTY] = "it runs pods that would have to move",
        [GATE_WHEN_EMPTY_ONLY] = "its pool consolidates nothing but empty nodes",
        [GATE_QUIET_PERIOD] = "its pods changed too short a time ago",
        [GATE_DESTINATION] = "pods would come to it as other nodes go",
        [GATE_OUTSIDE_WINDOW] = "the windows of its pool are closed now",
        [GATE_BUDGET] = "the budgets of its pool let no more nodes go now",
        [GATE_NODE_BUDGET] = "a NodeDisruptionBudget lets no more nodes go now",
        [GATE_UNMODELLED] = "where a pod of it would go cannot be told",
        [GATE_PRICE_UNKNOWN] = "what it costs is not known",
        [GATE_NO_CHEAPER] = "no cheaper node would do",
        [GATE_SPOT_TO_SPOT] = "nothing but other spot capacity is cheaper",
        [GATE_SAVINGS_LOW] = "what is cheaper saves too little",
        [GATE_POOL_LIMIT] = "the limits of its pool allow no new node for it",
        [GATE_NOT_PLACED] = "not all of its pods have a place elsewhere",
        [GATE_PREFERENCE] = "a preference of a pod would not hold any more",
};

const char *page_code_words(GateCode c) {
        return code_words[c];
}

static const char *const method_words[_PLAN_METHOD_MAX] = {
        [PLAN_EXPIRATION] = "it is as old as its pool lets nodes become",
        [PLAN_DRIFT] = "it is not as its pool says any more",
        [PLAN_EMPTINESS] = "no pod of it would have to move",
        [PLAN_CONSOLIDATION] = "its pods fit elsewhere, or on something cheaper",
};

const char *page_method_words(PlanMethod m) {
        return method_words[m];
}

int64_t page_percent(int64_t asked, int64_t has) {
        return has <= 0 ? -1 : (int64_t) ((double) asked / (double) has * 100 + 0.5);
}

void plan_page_done(PlanPage *p) {
        free(p->nodes);
        free(p->index);
        free(p->moves);
        *p = (PlanPage){};
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

static PageNode *page_add(PlanPage *p, uint32_t number, PageRole role) {
        const DisruptionScene *s = p->scene;
        const DisruptionPool *pool = number < s->n_nodes ? s->nodes[number].pool : NULL;
        PageNode *n = p->nodes + p->n_nodes;

        *n = (PageNode){ .number = number,
                         .name = scene_node_name(s, number),
                         .pool = pool ? pool->pool->object.meta.name : NULL,
                         .role = role };
        p->index[number] = (uint32_t) p->n_nodes++;
        return n;
}

/* As the simulator stands now, but for moves. */
static PageRoom room_now(const Simulator *s, uint32_t node, const char *resource) {
        int64_t has = simulator_allocatable(s, node, resource), asked = has - simulator_free_room(s, node, resource);

        return (PageRoom){ has, asked, asked };
}

static int page_init(PlanPage *p, const DisruptionScene *s, char *const *notes) {
        size_t n = simulator_n_nodes(s->simulator);

        p->scene = s;
        p->notes = notes;
        p->nodes = new0(PageNode, n + 1);
        p->index = new0(uint32_t, n + 1);
        if (!p->nodes || !p->index)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                p->index[i] = NO_NODE;
        return 0;
}

static void take_rooms(PlanPage *p) {
        const Simulator *s = p->scene->simulator;

        for (size_t i = 0; i < p->n_nodes; i++) {
                PageNode *n = p->nodes + i;

                n->cpu = room_now(s, n->number, "cpu");
                n->memory = room_now(s, n->number, "memory");
        }
}

/* What does not exist yet holds nothing before: neither pods that come, nor those of DaemonSets that it begins with. */
static void empty_new_nodes(PlanPage *p) {
        for (size_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].role == PAGE_NEW)
                        p->nodes[i].cpu.before = p->nodes[i].memory.before = 0;
}

/* Those that go first, by step; then by role and name. */
static int node_compare(const void *a, const void *b) {
        const PageNode *x = a, *y = b;

        if (!x->pool != !y->pool)
                return !x->pool ? 1 : -1;
        if (x->pool && !streq(x->pool, y->pool))
                return strcmp(x->pool, y->pool);
        if (x->role != y->role)
                return x->role < y->role ? -1 : 1;
        if (x->step != y->step)
                return x->step < y->step ? -1 : 1;
        return (x->number > y->number) - (x->number < y->number);
}

static void page_sort(PlanPage *p) {
        for (size_t i = 0; i < p->n_nodes; i++) {
                PageNode *n = p->nodes + i;

                if (n->role == PAGE_STAYS && n->n_in > 0)
                        n->role = PAGE_TAKES;
                p->counts[n->role]++;
        }
        qsort(p->nodes, p->n_nodes, sizeof(PageNode), node_compare);
        for (size_t i = 0; i < p->n_nodes; i++)
                p->index[p->nodes[i].number] = (uint32_t) i;
}

/* -- moves ---------------------------------------------------------------------------------------------- */

static int move_compare(const void *a, const void *b) {
        const PageMove *x = a, *y = b;

        if (x->move.waits != y->move.waits)
                return x->move.waits ? 1 : -1;
        if (x->step != y->step)
                return x->step < y->step ? -1 : 1;
        if (x->move.from != y->move.from)
                return x->move.from < y->move.from ? -1 : 1;
        if (x->move.to != y->move.to)
                return x->move.to < y->move.to ? -1 : 1;
        return (x->move.pod > y->move.pod) - (x->move.pod < y->move.pod);
}

/* Nodes that were added are no candidates: pods leave none but those of the snapshot, all of which are shown; where pods go is
 * shown, too. */
static PageNode *page_at(const PlanPage *p, uint32_t number) {
        assert(p->index[number] != NO_NODE);
        return p->nodes + p->index[number];
}

static void take_moves(PlanPage *p, size_t step, const PlanMove *moves, size_t n) {
        for (size_t i = 0; i < n; i++) {
                p->moves[p->n_moves + p->n_waiting] = (PageMove){ step, moves[i] };
                if (moves[i].waits)
                        p->n_waiting++;
                else {
                        p->n_moves++;
                        page_at(p, moves[i].from)->n_out++;
                }
                page_at(p, moves[i].to)->n_in++;
        }
}

/* What its pod asks for. */
static int64_t move_size(const PlanPage *p, const PageMove *m, const char *resource) {
        return simulator_request(p->scene->simulator, m->move.pod, resource);
}

/* -- a plan --------------------------------------------------------------------------------------------- */

/* Nodes that do not exist yet: what replaces others, and what --with has added and pods go to. */
static void add_new_nodes(PlanPage *p, const PlanStep *step, size_t number) {
        if (step->replacement != NO_NODE && p->index[step->replacement] == NO_NODE) {
                PageNode *n = page_add(p, step->replacement, PAGE_NEW);
                const DisruptionPool *pool = p->scene->nodes[step->nodes[0]].pool;

                n->step = number;
                n->of_step = step;
                n->pool = pool ? pool->pool->object.meta.name : NULL;
        }
        for (size_t i = 0; i < step->n_moves; i++)
                if (step->moves[i].to >= p->scene->n_nodes && p->index[step->moves[i].to] == NO_NODE)
                        page_add(p, step->moves[i].to, PAGE_NEW);
}

static void add_old_nodes(PlanPage *p, const DisruptionPlan *plan) {
        for (uint32_t i = 0; i < plan->n_nodes; i++) {
                uint32_t at = plan->nodes[i].step;
                PageNode *n = page_add(p, i, at == NO_STEP ? PAGE_STAYS : PAGE_GOES);

                if (at != NO_STEP) {
                        n->step = (size_t) at + 1;
                        n->of_step = plan->steps + at;
                        for (size_t k = 0; k < n->of_step->n_nodes; k++)
                                if (n->of_step->nodes[k] == i)
                                        n->why = n->of_step->why[k];
                } else {
                        PlanMethod m = plan_nearest_method(plan, i);

                        n->method = n->pool ? plan_method_to_string(m) : NULL;
                        n->lacks = plan->nodes[i].lacks + m;
                }
        }
}

/* The simulator has done all of it. A node that is gone has lost its pods that move; another has what has come. */
static void rooms_before_plan(PlanPage *p) {
        const Simulator *s = p->scene->simulator;

        for (size_t i = 0; i < p->n_nodes; i++) {
                PageNode *n = p->nodes + i;
                size_t n_pods;
                const uint32_t *pods = simulator_pods_of(s, n->number, &n_pods);

                if (n->role != PAGE_GOES)
                        continue;
                for (size_t k = 0; k < n_pods; k++)
                        if (simulator_pod_moves(s, pods[k])) {
                                n->cpu.before += simulator_request(s, pods[k], "cpu");
                                n->memory.before += simulator_request(s, pods[k], "memory");
                        }
                n->cpu.after = n->memory.after = 0;
        }
        for (size_t i = 0; i < p->n_moves + p->n_waiting; i++) {
                const PageMove *m = p->moves + i;
                PageNode *to = page_at(p, m->move.to);

                if (to->role == PAGE_GOES) /* the pod went on from there, and was none of its own */
                        continue;
                to->cpu.before -= move_size(p, m, "cpu");
                to->memory.before -= move_size(p, m, "memory");
        }
}

int plan_page_of_plan(const DisruptionPlan *plan, char *const *notes, PlanPage *ret) {
        PlanPage p = { .plan = plan };
        size_t n = 0;
        int r = page_init(&p, plan->scene, notes);

        for (size_t i = 0; i < plan->n_steps; i++)
                n += plan->steps[i].n_moves;
        p.moves = new0(PageMove, n + 1);
        if (r < 0 || !p.moves) {
                plan_page_done(&p);
                return -ENOMEM;
        }
        add_old_nodes(&p, plan);
        for (size_t i = 0; i < plan->n_steps; i++)
                add_new_nodes(&p, plan->steps + i, i + 1);
        for (size_t i = 0; i < plan->n_steps; i++)
                take_moves(&p, i + 1, plan->steps[i].moves, plan->steps[i].n_moves);
        qsort(p.moves, p.n_moves + p.n_waiting, sizeof(PageMove), move_compare);
        take_rooms(&p);
        rooms_before_plan(&p);
        empty_new_nodes(&p);
        page_sort(&p);
        *ret = p;
        return 0;
}

/* -- what would be -------------------------------------------------------------------------------------- */

/* The simulator has done none of it. Pods that wait have their seats there, on nodes that go. */
static void rooms_after_what_if(PlanPage *p) {
        for (size_t i = 0; i < p->n_moves + p->n_waiting; i++) {
                const PageMove *m = p->moves + i;
                PageNode *to = page_at(p, m->move.to);

                if (m->move.waits) {
                        PageNode *seat = page_at(p, simulator_node_of(p->scene->simulator, m->move.pod));

                        seat->cpu.before -= move_size(p, m, "cpu");
                        seat->memory.before -= move_size(p, m, "memory");
                }
                to->cpu.after += move_size(p, m, "cpu");
                to->memory.after += move_size(p, m, "memory");
        }
        for (size_t i = 0; i < p->n_nodes; i++)
                if (p->nodes[i].role == PAGE_GOES)
                        p->nodes[i].cpu.after = p->nodes[i].memory.after = 0;
}

int plan_page_of_what_if(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *notes, PlanPage *ret) {
        bool goes = w->fits && !w->has_objections;
        PlanPage p = { .what_if = w };
        int r = page_init(&p, s, notes);

        p.moves = new0(PageMove, w->n_moves + 1);
        if (r < 0 || !p.moves) {
                plan_page_done(&p);
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < simulator_n_nodes(s->simulator); i++) {
                PageNode *n = page_add(&p, i, i < s->n_nodes ? PAGE_STAYS : PAGE_NEW);

                if (lacks_of_others && i < s->n_nodes && lacks_of_others[i].n_items > 0)
                        n->lacks = lacks_of_others + i;
        }
        for (size_t i = 0; i < w->n_nodes; i++) {
                PageNode *n = p.nodes + p.index[w->nodes[i]];

                n->role = goes ? PAGE_GOES : PAGE_REFUSED;
                n->step = goes ? 1 : 0;
                n->lacks = w->lacks[i].n_items > 0 ? w->lacks + i : NULL;
        }
        if (goes)
                take_moves(&p, 1, w->moves, w->n_moves);
        qsort(p.moves, p.n_moves + p.n_waiting, sizeof(PageMove), move_compare);
        take_rooms(&p);
        rooms_after_what_if(&p);
        empty_new_nodes(&p);
        page_sort(&p);
        *ret = p;
        return 0;
}
