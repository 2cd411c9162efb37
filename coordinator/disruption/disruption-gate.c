/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-gate.h"

#include "disruption-waves.h"
#include "parse-util.h"
#include "string-util.h"

static const char *const code_names[_GATE_CODE_MAX] = {
        [GATE_NOT_MANAGED] = "NOT_MANAGED",
        [GATE_DELETING] = "DELETING",
        [GATE_NOT_INITIALISED] = "NOT_INITIALISED",
        [GATE_NOMINATED] = "NOMINATED",
        [GATE_NODE_OPT_OUT] = "NODE_OPT_OUT",
        [GATE_POOL_INVALID] = "POOL_INVALID",
        [GATE_PAUSED] = "PAUSED",
        [GATE_SNAPSHOT_INCOMPLETE] = "SNAPSHOT_INCOMPLETE",
        [GATE_POD_OPT_OUT] = "POD_OPT_OUT",
        [GATE_NAKED_POD] = "NAKED_POD",
        [GATE_MULTI_PDB] = "MULTI_PDB",
        [GATE_PDB_IMPOSSIBLE] = "PDB_IMPOSSIBLE",
        [GATE_PDB_BLOCKS] = "PDB_BLOCKS",
        [GATE_DISABLED] = "DISABLED",
        [GATE_NOT_EXPIRED] = "NOT_EXPIRED",
        [GATE_NOT_DRIFTED] = "NOT_DRIFTED",
        [GATE_NOT_EMPTY] = "NOT_EMPTY",
        [GATE_WHEN_EMPTY_ONLY] = "WHEN_EMPTY_ONLY",
        [GATE_QUIET_PERIOD] = "QUIET_PERIOD",
        [GATE_DESTINATION] = "DESTINATION",
        [GATE_OUTSIDE_WINDOW] = "OUTSIDE_WINDOW",
        [GATE_BUDGET] = "BUDGET",
        [GATE_NODE_BUDGET] = "NODE_BUDGET",
        [GATE_UNMODELLED] = "UNMODELLED",
        [GATE_PRICE_UNKNOWN] = "PRICE_UNKNOWN",
        [GATE_NO_CHEAPER] = "NO_CHEAPER",
        [GATE_SPOT_TO_SPOT] = "SPOT_TO_SPOT",
        [GATE_SAVINGS_LOW] = "SAVINGS_LOW",
        [GATE_POOL_LIMIT] = "POOL_LIMIT",
        [GATE_NOT_PLACED] = "NOT_PLACED",
        [GATE_PREFERENCE] = "PREFERENCE",
};

/* Of nodes, with the value "true". */
static const struct {
        const char *key;
        bool consolidation_only;
} node_opt_outs[] = {
        { "karpenter.sh/do-not-disrupt", false },
        { "vesper.sh/do-not-consolidate", true },
        { "karpenter.sh/do-not-consolidate", true },
        { "cluster-autoscaler.kubernetes.io/scale-down-disabled", true },
};

const char *gate_code_to_string(GateCode c) {
        return c >= 0 && c < _GATE_CODE_MAX ? code_names[c] : NULL;
}

void gate_findings_done(GateFindings *f) {
        for (size_t i = 0; i < f->n_items; i++) {
                free(f->items[i].text);
                free(f->items[i].object);
        }
        free(f->items);
        *f = (GateFindings){};
}

void gate_add(GateFindings *f, GateCode code, const char *object, usec_t until_usec, char *text) {
        char *copy = object ? strdup(object) : NULL;

        if (!text || (object && !copy) || GREEDY_REALLOC(f->items, f->allocated, f->n_items + 1) < 0) {
                f->failed = true;
                free(text);
                free(copy);
                return;
        }
        f->items[f->n_items++] = (GateFinding){ .code = code, .text = text, .object = copy, .until_usec = until_usec };
}

const GateFinding *gate_first(const GateFindings *f) {
        return f->n_items > 0 ? f->items : NULL;
}

bool gate_has(const GateFindings *f, GateCode code) {
        for (size_t i = 0; i < f->n_items; i++)
                if (f->items[i].code == code)
                        return true;
        return false;
}

/* -- the node ------------------------------------------------------------------------------------------- */

static void gate_of_pool(const KubeNodePool *p, GateCode code, char *text, GateFindings *f) {
        _cleanup_free_ char *object = strf("nodepool %s", p->object.meta.name);

        if (object)
                gate_add(f, code, object, USEC_INFINITY, text);
        else {
                f->failed = true;
                free(text);
        }
}

static void gate_pool(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionNode *n = s->nodes + node;
        const KubeNodePool *p = n->pool ? n->pool->pool : NULL;

        if (!p)
                gate_add(f, GATE_NOT_MANAGED, NULL, USEC_INFINITY, strf("it is not managed: %s", n->unmanaged));
        else if (p->object.invalid)
                gate_of_pool(p, GATE_POOL_INVALID,
                             strf("NodePool %s cannot be understood: %s", p->object.meta.name, p->object.invalid), f);
        if (p && n->pool->is_paused)
                gate_of_pool(p, GATE_PAUSED, strf("removals of NodePool %s are paused", p->object.meta.name), f);
        else if (p && s->is_all_paused)
                gate_add(f, GATE_PAUSED, NULL, USEC_INFINITY, strdup("all removals are paused"));
}

static void gate_node_opt_out(const KubeNode *n, GateFlags flags, GateFindings *f) {
        for (size_t i = 0; i < ELEMENTSOF(node_opt_outs); i++)
                if ((flags & GATE_FOR_CONSOLIDATION || !node_opt_outs[i].consolidation_only) &&
                    annotation_is_true(object_meta_annotation(&n->object.meta, node_opt_outs[i].key)))
                        gate_add(f, GATE_NODE_OPT_OUT, NULL, USEC_INFINITY,
                                 strf("the node has opted out by annotation %s", node_opt_outs[i].key));
}

/* A taint that new nodes of its pool begin with, and lose once they are ready for pods. */
static const Taint *startup_taint_of(const DisruptionNode *n, const KubeNode *node) {
        const PoolTemplate *t = n->pool ? &n->pool->pool->template : NULL;

        for (size_t i = 0; t && i < t->n_startup_taints; i++)
                for (size_t k = 0; k < node->n_taints; k++)
                        if (taint_equal(t->startup_taints + i, node->taints + k))
                                return node->taints + k;
        return NULL;
}

static void gate_state(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const KubeScheduledNode *n = simulator_node(s->simulator, node);
        const Taint *taint = startup_taint_of(s->nodes + node, &n->node);

        if (n->node.object.meta.deletion_usec > 0)
                gate_add(f, GATE_DELETING, NULL, USEC_INFINITY, strdup("it is being deleted already"));
        if (!kube_node_is_ready(&n->node))
                gate_add(f, GATE_NOT_INITIALISED, NULL, USEC_INFINITY, strdup("it is not Ready"));
        else if (!n->is_initialized)
                gate_add(f, GATE_NOT_INITIALISED, NULL, USEC_INFINITY, strdup("it has a taint of nodes that are not yet initialized"));
        else if (taint)
                gate_add(f, GATE_NOT_INITIALISED, NULL, USEC_INFINITY,
                         strf("it still has the taint %s:%s, which spec.template.startupTaints of its pool says", taint->key, taint->effect));
}

/* -- pods that wait for it ------------------------------------------------------------------------------ */

static char *pod_object(const KubePod *p) {
        return strf("pod %s/%s", p->object.meta.ns, p->object.meta.name);
}

static void gate_promises(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionNode *n = s->nodes + node;
        _cleanup_free_ char *object = NULL;
        _cleanup_strbuf_ StrBuf b = {};

        if (simulator_has_more_waiting(s->simulator))
                gate_add(f, GATE_NOMINATED, NULL, USEC_INFINITY,
                         strdup("more pods wait for a node than are simulated, and any of them may need it"));
        else if (s->lacks_waiting)
                gate_add(f, GATE_NOMINATED, NULL, USEC_INFINITY,
                         strdup("not all pods are known that were evicted in the last minute, and their successors may need it"));
        if (n->n_promised == 0)
                return;
        object = pod_object(scene_pod(s, n->first_promised));
        if (!object) {
                f->failed = true;
                return;
        }
        strbuf_addf(&b, "it is promised to pending %s (status.nominatedNodeName)", object);
        if (n->n_promised > 1)
                strbuf_addf(&b, ", and to %zu more", n->n_promised - 1);
        gate_add(f, GATE_NOMINATED, object, USEC_INFINITY, strbuf_steal(&b));
}

/* -- its pods ------------------------------------------------------------------------------------------- */

static void gate_pod_opt_out(const DisruptionScene *s, uint32_t pod, GateFindings *f) {
        const KubePod *p = scene_pod(s, pod);
        _cleanup_free_ char *object = NULL;
        usec_t until = USEC_INFINITY;
        const char *key = NULL;

        if (scene_class_of(s, pod) != POD_CLASS_PROTECTED)
                return;
        (void) pod_classify(p, s->now_usec, &key, &until);
        object = pod_object(p);
        if (!object)
                f->failed = true;
        else
                gate_add(f, GATE_POD_OPT_OUT, object, until, strf("%s has opted out by %s", object, key));
}

static void gate_naked(const DisruptionScene *s, uint32_t node, const KubePod *p, GateFindings *f) {
        _cleanup_free_ char *object = NULL;

        if (!s->nodes[node].pool || !s->nodes[node].pool->pool->disruption.naked_pods_block ||
            object_meta_controller(&p->object.meta))
                return;
        object = pod_object(p);
        if (!object)
                f->failed = true;
        else
                gate_add(f, GATE_NAKED_POD, object, USEC_INFINITY,
                         strf("%s has no controller that would make it anew, and the pool says nakedPods: Block", object));
}

static void gate_several_pdbs(const KubePod *p, const PdbList *pdbs, GateFindings *f) {
        _cleanup_free_ char *object = pod_object(p);
        _cleanup_strbuf_ StrBuf b = {};

        if (!object) {
                f->failed = true;
                return;
        }
        strbuf_addf(&b, "%s is selected by %zu PodDisruptionBudgets, of which the API server evicts none:", object, pdbs->n_items);
        for (size_t i = 0; i < pdbs->n_items; i++)
                strbuf_addf(&b, "%s %s", i > 0 ? "," : "", pdbs->items[i]->pdb->object.meta.name);
        gate_add(f, GATE_MULTI_PDB, object, USEC_INFINITY, strbuf_steal(&b));
}

/* Each PDB once, however many of the node's pods it holds. */
static void gate_one_pdb(const DisruptionPdb *pdb, GateFindings *f) {
        const KubePdb *k = pdb->pdb;
        _cleanup_free_ char *object = strf("pdb %s/%s", k->object.meta.ns, k->object.meta.name);

        if (!object) {
                f->failed = true;
                return;
        }
        for (size_t i = 0; i < f->n_items; i++)
                if (streq_ptr(f->items[i].object, object))
                        return;
        if (pdb->is_never)
                gate_add(f, GATE_PDB_IMPOSSIBLE, object, USEC_INFINITY,
                         strf("%s can never allow an eviction: it wants %lld of %lld pods healthy", object,
                              (long long) k->desired_healthy, (long long) k->expected_pods));
        else
                gate_add(f, GATE_PDB_BLOCKS, object, USEC_INFINITY, strf("%s prevents pod evictions", object));
}

static void gate_pdbs(const DisruptionScene *s, uint32_t pod, GateFindings *f) {
        const PdbList *pdbs = scene_pdbs_of(s, pod);
        const KubePod *p = scene_pod(s, pod);

        if (scene_class_of(s, pod) != POD_CLASS_ORDINARY)
                return;
        if (pdbs->n_items > 1 && p->phase != POD_PENDING)
                gate_several_pdbs(p, pdbs, f);
        else if (pdbs->n_items == 1 && pdbs->items[0]->allowed == 0 && pdb_is_asked(pdbs->items[0], p))
                gate_one_pdb(pdbs->items[0], f);
}

static void gate_pods(const DisruptionScene *s, uint32_t node, GateFlags flags, GateFindings *f) {
        size_t n;
        const uint32_t *pods = simulator_pods_of(s->simulator, node, &n);

        if (!s->snapshot->is_known[SNAPSHOT_PDBS] && s->nodes[node].n_moving > 0 && !(flags & GATE_PODS_MAY_WAIT))
                gate_add(f, GATE_SNAPSHOT_INCOMPLETE, NULL, USEC_INFINITY,
                         strdup("PodDisruptionBudgets were not read, and any of its pods may be held by one"));
        for (size_t i = 0; i < n && !(flags & GATE_PODS_MAY_WAIT); i++)
                gate_pod_opt_out(s, pods[i], f);
        for (size_t i = 0; i < n && !(flags & GATE_UNMANAGED_TOO); i++)
                if (simulator_pod_moves(s->simulator, pods[i]))
                        gate_naked(s, node, scene_pod(s, pods[i]), f);
        for (size_t i = 0; i < n && !(flags & GATE_PODS_MAY_WAIT); i++)
                gate_pdbs(s, pods[i], f);
}

static int finding_compare(const void *a, const void *b) {
        const GateFinding *x = a, *y = b;

        if (x->code != y->code)
                return x->code < y->code ? -1 : 1;
        return strcmp(strempty(x->object), strempty(y->object)) ?: strcmp(x->text, y->text);
}

void gate_sort(GateFindings *f, size_t from) {
        if (f->n_items > from)
                qsort(f->items + from, f->n_items - from, sizeof(GateFinding), finding_compare);
}

void gate_node(const DisruptionScene *s, uint32_t node, GateFlags flags, GateFindings *f) {
        size_t before = f->n_items;

        if (!(flags & GATE_UNMANAGED_TOO))
                gate_pool(s, node, f);
        gate_state(s, node, f);
        if (flags & GATE_FOR_GOOD)
                gate_promises(s, node, f);
        gate_node_opt_out(scene_node(s, node), flags, f);
        if (!(flags & GATE_BY_FORCE))
                gate_pods(s, node, flags, f);
        gate_sort(f, before);
}

/* -- budgets -------------------------------------------------------------------------------------------- */

/* One that is unavailable already is counted: its removal makes nothing worse. */
static bool is_counted_already(const KubeNode *n, const PoolAllowance *a) {
        return (n->unschedulable || !kube_node_is_ready(n)) && a->hours->cap > 0 && !a->hours->is_unreadable &&
               !a->hours->is_outside_windows && !a->is_one_at_a_time;
}

static void gate_pool_budget(const DisruptionPool *p, const KubeNode *n, DisruptionReason reason, GateFindings *f) {
        const char *name = p->pool->object.meta.name, *why = disruption_reason_to_string(reason);
        PoolAllowance a = pool_allowance(p, reason);

        if (a.allowed > 0 || is_counted_already(n, &a))
                return;
        if (a.hours->is_unreadable)
                gate_of_pool(p->pool, GATE_BUDGET,
                             strf("a schedule or timeZone of NodePool %s cannot be read, so that nothing goes", name), f);
        else if (a.hours->is_outside_windows)
                gate_of_pool(p->pool, GATE_OUTSIDE_WINDOW, strf("no window of NodePool %s is open for %s", name, why), f);
        else if (a.is_one_at_a_time)
                gate_of_pool(p->pool, GATE_BUDGET,
                             strf("NodePool %s lets %lld go at once (maxConcurrent), and %lld do", name,
                                  (long long) p->pool->disruption.max_concurrent, (long long) (p->n_leaving + p->n_taken)),
                             f);
        else
                gate_of_pool(p->pool, GATE_BUDGET,
                             strf("budgets of NodePool %s allow %lld of %lld nodes for %s, and %lld are unavailable or chosen already",
                                  name, (long long) a.hours->cap, (long long) p->n_nodes, why, (long long) (p->n_busy + p->n_taken)),
                             f);
}

static void gate_node_budget(const DisruptionScene *s, uint32_t node, GateFindings *f) {
        const DisruptionNodeBudget *b = node_budget_without_room(s, node);
        _cleanup_free_ char *object = b ? strf("nodedisruptionbudget %s", b->budget->object.meta.name) : NULL,
                            *amount = b ? budget_amount_format(b->budget) : NULL;

        if (!s->snapshot->is_known[SNAPSHOT_NODE_BUDGETS])
                gate_add(f, GATE_SNAPSHOT_INCOMPLETE, NULL, USEC_INFINITY,
                         strdup("NodeDisruptionBudgets were not read, and one may select it"));
        if (!b)
                return;
        if (!object || !amount)
                f->failed = true;
        else
                gate_add(f, GATE_NODE_BUDGET, object, USEC_INFINITY,
                         strf("NodeDisruptionBudget %s (%s) has no room: %lld of its %lld nodes are available, and %lld chosen already",
                              b->budget->object.meta.name, amount, (long long) b->figures.available,
                              (long long) b->figures.expected, (long long) b->n_taken));
}

void gate_budgets(const DisruptionScene *s, uint32_t node, DisruptionReason reason, GateFindings *f) {
        if (s->nodes[node].pool)
                gate_pool_budget(s->nodes[node].pool, scene_node(s, node), reason, f);
        gate_node_budget(s, node, f);
}
