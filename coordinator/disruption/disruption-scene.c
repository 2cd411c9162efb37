/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-scene.h"

#include "disruption-budget.h"
#include "disruption-limit.h"
#include "drain-plan.h"
#include "marks.h"
#include "parse-util.h"
#include "string-util.h"

#define LABEL_INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define LABEL_ZONE "topology.kubernetes.io/zone"
#define CAPACITY_LABEL_EKS "eks.amazonaws.com/capacityType" /* in other words */
#define LEASE_NAMESPACE "vesper-system"

static const char *const capacity_labels[] = {
        "vesper.sh/capacity-type",
        "karpenter.sh/capacity-type",
        CAPACITY_LABEL_EKS,
};

DisruptionScene *disruption_scene_free(DisruptionScene *s) {
        if (!s)
                return NULL;
        for (uint32_t i = 0; s->template_pdbs && i < simulator_n_templates(s->simulator); i++)
                free(s->template_pdbs[i].items);
        free(s->template_pdbs);
        free(s->pod_classes);
        free(s->nodes);
        for (size_t i = 0; i < s->n_pools; i++) {
                free(s->pools[i].shapes);
                free(s->pools[i].limits);
        }
        free(s->pools);
        free(s->pdbs);
        free(s->node_budgets);
        return mfree(s);
}

/* -- pools ---------------------------------------------------------------------------------------------- */

static int scene_add_pools(DisruptionScene *s) {
        _cleanup_free_ KubeObject **objects = NULL;
        size_t n;
        int r;

        r = snapshot_sorted(s->snapshot, SNAPSHOT_NODE_POOLS, &objects, &n);
        if (r < 0)
                return r;
        s->pools = new0(DisruptionPool, n + 1);
        if (!s->pools)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                s->pools[s->n_pools++] = (DisruptionPool){
                        .pool = (const KubeNodePool *) objects[i],
                        .is_paused = annotation_is_true(object_meta_annotation(&objects[i]->meta, ANNOTATION_PAUSED)),
                };
        return 0;
}

static bool pool_selects(const KubeNodePool *p, const KubeNode *n) {
        return p->object.meta.deletion_usec == 0 && !selector_is_empty(p->selector) &&
               selector_matches(p->selector, &n->object.meta.labels);
}

/* One that two pools select is adopted by neither. */
static void find_pool(DisruptionScene *s, const KubeNode *n, DisruptionNode *node) {
        if (kube_node_is_unmanaged(n)) {
                node->unmanaged = "annotation " ANNOTATION_UNMANAGED " says so";
                return;
        }
        node->unmanaged = s->snapshot->is_known[SNAPSHOT_NODE_POOLS] ? "no NodePool selects it" : "NodePools are not known";
        for (size_t i = 0; i < s->n_pools; i++) {
                if (!pool_selects(s->pools[i].pool, n))
                        continue;
                if (node->pool) {
                        node->pool = NULL;
                        node->unmanaged = "more than one NodePool selects it";
                        return;
                }
                node->pool = s->pools + i;
        }
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

const char *scene_capacity_type(const KubeNode *n) {
        for (size_t i = 0; i < ELEMENTSOF(capacity_labels); i++) {
                const char *value = object_meta_label(&n->object.meta, capacity_labels[i]);

                if (value)
                        return streq(value, "SPOT") ? "spot" : streq(value, "ON_DEMAND") ? "on-demand" : value;
        }
        return NULL;
}

const char *scene_capacity_label(const char *key, const char *type) {
        for (size_t i = 0; i < ELEMENTSOF(capacity_labels); i++)
                if (streq(key, capacity_labels[i]))
                        return !streq(key, CAPACITY_LABEL_EKS) ? type : streq(type, "spot") ? "SPOT" : streq(type, "on-demand") ? "ON_DEMAND" : type;
        return NULL;
}

static bool offering_fits(const char *wanted, const char *is) {
        return !wanted || streq_ptr(wanted, is);
}

/* The first that says nothing else than the node's labels. */
static const PoolOffering *find_offering(const KubeNodePool *p, const KubeNode *n) {
        const char *type = object_meta_label(&n->object.meta, LABEL_INSTANCE_TYPE),
                   *zone = object_meta_label(&n->object.meta, LABEL_ZONE), *capacity = scene_capacity_type(n);

        for (size_t i = 0; i < p->n_offerings; i++) {
                const PoolOffering *o = p->offerings + i;

                if (streq_ptr(o->instance_type, type) && offering_fits(o->zone, zone) && offering_fits(o->capacity_type, capacity))
                        return o;
        }
        return NULL;
}

/* When it came or began to go. */
static usec_t pod_event_usec(const KubePod *p) {
        const ObjectMeta *m = &p->object.meta;
        usec_t came = MAX(m->creation_usec, p->start_usec),
               began_to_go = m->deletion_usec > 0 ? usec_sub(m->deletion_usec, drain_grace(m->deletion_grace_sec)) : 0;

        return MAX(came, began_to_go);
}

static void count_pods(DisruptionScene *s, uint32_t number, DisruptionNode *node) {
        size_t n;
        const uint32_t *pods = simulator_pods_of(s->simulator, number, &n);

        for (size_t i = 0; i < n; i++) {
                const KubePod *p = scene_pod(s, pods[i]);

                if (p->is_daemon || p->is_static)
                        continue;
                node->quiet_since_usec = MAX(node->quiet_since_usec, pod_event_usec(p));
                if (!simulator_pod_moves(s->simulator, pods[i]))
                        continue;
                node->n_moving++;
                if (!object_meta_controller(&p->object.meta))
                        node->n_naked++;
        }
}

static void count_promises(DisruptionScene *s) {
        for (uint32_t i = 0; i < simulator_n_pods(s->simulator); i++) {
                uint32_t node = simulator_promised_to(s->simulator, i);

                if (node == UINT32_MAX || !simulator_pod_moves(s->simulator, i))
                        continue;
                if (s->nodes[node].n_promised++ == 0)
                        s->nodes[node].first_promised = i;
        }
}

static void find_times(const KubeNode *n, DisruptionNode *node) {
        node->created_usec = n->object.meta.creation_usec;
        if (node->claim && node->claim->object.meta.creation_usec > 0)
                node->created_usec = MIN(node->created_usec, node->claim->object.meta.creation_usec);
        node->quiet_since_usec = MAX(n->object.meta.creation_usec, kube_node_ready_since(n));
}

/* Where its claim says that it is not empty, pods have left since that was written: its time begins now. */
static void find_emptiness(const DisruptionScene *s, DisruptionNode *node) {
        const Condition *empty = node->claim ? kube_node_claim_condition(node->claim, CLAIM_EMPTY) : NULL;

        if (node->n_moving > 0)
                return;
        if (empty && empty->status == CONDITION_TRUE && empty->last_transition_usec > 0)
                scene_set_empty_since(node, empty->last_transition_usec);
        else if (empty && empty->status == CONDITION_FALSE)
                scene_set_empty_since(node, s->now_usec);
        else
                node->empty_since_usec = node->quiet_since_usec;
}

/* What holds of each node of a pool once for all of them. */
static void count_in_pool(const DisruptionScene *s, uint32_t number, DisruptionPool *pool) {
        const KubeNode *n = scene_node(s, number);
        bool is_leaving = n->object.meta.deletion_usec > 0;

        if (is_leaving)
                pool->n_leaving++;
        if (!simulator_node(s->simulator, number)->is_initialized && kube_node_is_ready(n))
                return;
        pool->n_nodes++;
        if (is_leaving || n->unschedulable || !kube_node_is_ready(n))
                pool->n_busy++;
}

static int scene_add_nodes(DisruptionScene *s) {
        _cleanup_(hashmap_freep) Hashmap *claims = NULL;
        KubeNodeClaim *c;
        int r;

        s->n_nodes = simulator_n_nodes(s->simulator);
        s->nodes = new0(DisruptionNode, (size_t) s->n_nodes + 1);
        r = s->nodes ? hashmap_new(HASHMAP_BORROW_KEYS, &claims) : -ENOMEM;
        if (r < 0)
                return r;
        HASHMAP_FOREACH(c, s->snapshot->objects[SNAPSHOT_NODE_CLAIMS])
                if (c->node_uid && hashmap_put(claims, c->node_uid, c) == -ENOMEM)
                        return -ENOMEM;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                DisruptionNode *node = s->nodes + i;
                const KubeNode *n = scene_node(s, i);

                node->claim = n->object.meta.uid ? hashmap_get(claims, n->object.meta.uid) : NULL;
                find_pool(s, n, node);
                find_times(n, node);
                count_pods(s, i, node);
                find_emptiness(s, node);
                if (!node->pool)
                        continue;
                node->offering = find_offering(node->pool->pool, n);
                count_in_pool(s, i, node->pool);
        }
        count_promises(s);
        return simulator_seat_waiting(s->simulator);
}

int scene_add_node(DisruptionScene *s, const SimulatorNewNode *new, uint32_t *ret) {
        SimulatorNewNode named = *new;
        int r;

        for (unsigned i = s->n_added + 1;; i++) {
                _cleanup_free_ char *name = strf("new-%u", i);

                if (!name)
                        return -ENOMEM;
                named.name = name;
                r = simulator_add_node(s->simulator, &named, ret);
                if (r != -EEXIST)
                        break;
        }
        s->n_added += r >= 0;
        return r;
}

void scene_drop_node(DisruptionScene *s, uint32_t node) {
        simulator_drop_node(s->simulator, node);
        s->n_added--;
}

/* -- PodDisruptionBudgets ------------------------------------------------------------------------------- */

static int pdb_list_add(PdbList *l, DisruptionPdb *pdb) {
        DisruptionPdb **items = realloc(l->items, (l->n_items + 1) * sizeof(DisruptionPdb *));

        if (!items)
                return -ENOMEM;
        l->items = items;
        l->items[l->n_items++] = pdb;
        return 0;
}

/* PDBs are sorted by key, so those of a namespace stand together: the place of its first. */
static int index_namespaces(DisruptionScene *s, Hashmap *first) {
        for (size_t i = s->n_pdbs; i > 0; i--)
                if (hashmap_replace(first, s->pdbs[i - 1].pdb->object.meta.ns, s->pdbs + i - 1, NULL) < 0)
                        return -ENOMEM;
        return 0;
}

static int match_template(DisruptionScene *s, const Hashmap *first, uint32_t pod) {
        PdbList *l = s->template_pdbs + simulator_template_of(s->simulator, pod);
        const KubePod *p = scene_pod(s, pod);
        DisruptionPdb *at = hashmap_get(first, p->object.meta.ns);

        for (; at && at < s->pdbs + s->n_pdbs && streq_ptr(at->pdb->object.meta.ns, p->object.meta.ns); at++)
                if (kube_pdb_matches(at->pdb, p) && pdb_list_add(l, at) < 0)
                        return -ENOMEM;
        return 0;
}

static int scene_add_pdbs(DisruptionScene *s) {
        _cleanup_free_ KubeObject **objects = NULL;
        _cleanup_(hashmap_freep) Hashmap *first = NULL;
        _cleanup_free_ bool *is_matched = new0(bool, (size_t) simulator_n_templates(s->simulator) + 1);
        size_t n;
        int r;

        r = is_matched ? snapshot_sorted(s->snapshot, SNAPSHOT_PDBS, &objects, &n) : -ENOMEM;
        if (r >= 0)
                r = hashmap_new(HASHMAP_BORROW_KEYS, &first);
        if (r < 0)
                return r;
        s->pdbs = new0(DisruptionPdb, n + 1);
        s->template_pdbs = new0(PdbList, (size_t) simulator_n_templates(s->simulator) + 1);
        if (!s->pdbs || !s->template_pdbs)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const KubePdb *pdb = (const KubePdb *) objects[i];

                s->pdbs[s->n_pdbs++] = (DisruptionPdb){
                        .pdb = pdb,
                        .allowed = MAX(kube_pdb_allowed(pdb), INT64_C(0)),
                        .is_never = pdb->observed_generation >= pdb->object.meta.generation && pdb->expected_pods > 0 &&
                                    pdb->desired_healthy >= pdb->expected_pods,
                };
        }
        r = index_namespaces(s, first);
        for (uint32_t i = 0; r >= 0 && i < simulator_n_pods(s->simulator); i++) {
                uint32_t t = simulator_template_of(s->simulator, i);

                if (is_matched[t] || !simulator_pod(s->simulator, i)) /* of one that went nothing is left but its number */
                        continue;
                r = match_template(s, first, i);
                is_matched[t] = true;
        }
        return r;
}

/* Each method asks, and opt-outs are searched for among all labels and annotations. */
PodClass scene_class_of(const DisruptionScene *s, uint32_t pod) {
        uint8_t *known = s->pod_classes + pod;

        if (*known == 0)
                *known = (uint8_t) (1 + pod_classify(scene_pod(s, pod), s->now_usec, NULL, NULL));
        return (PodClass) (*known - 1);
}

const PdbList *scene_pdbs_of(const DisruptionScene *s, uint32_t pod) {
        return s->template_pdbs + simulator_template_of(s->simulator, pod);
}

/* -- NodeDisruptionBudgets ------------------------------------------------------------------------------ */

static BudgetFigures count_node_budget(const DisruptionScene *s, const KubeNodeBudget *b) {
        int64_t expected = 0, available = 0;

        for (uint32_t i = 0; i < s->n_nodes; i++) {
                const KubeNode *n = scene_node(s, i);

                if (!kube_node_budget_matches(b, n))
                        continue;
                expected++;
                if (budget_node_is_available(n) &&
                    !kube_node_budget_charge(b, strempty(n->object.meta.uid)))
                        available++;
        }
        return budget_figures(b, expected, available);
}

static int scene_add_node_budgets(DisruptionScene *s) {
        _cleanup_free_ KubeObject **objects = NULL;
        size_t n;
        int r;

        r = snapshot_sorted(s->snapshot, SNAPSHOT_NODE_BUDGETS, &objects, &n);
        if (r < 0)
                return r;
        s->node_budgets = new0(DisruptionNodeBudget, n + 1);
        if (!s->node_budgets)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const KubeNodeBudget *b = (const KubeNodeBudget *) objects[i];

                s->node_budgets[s->n_node_budgets++] = (DisruptionNodeBudget){ .budget = b, .figures = count_node_budget(s, b) };
        }
        return 0;
}

bool scene_drain_is_bounded(const DisruptionScene *s, uint32_t node) {
        const DisruptionNode *n = s->nodes + node;

        if (n->claim)
                return n->claim->termination_grace_usec != USEC_INFINITY;
        return n->pool && n->pool->pool->termination_grace_usec != USEC_INFINITY;
}

static bool is_paused_for_all(const Snapshot *snapshot, const char *lease_ns) {
        const KubeObject *ns = snapshot_get(snapshot, SNAPSHOT_NAMESPACES, lease_ns ?: LEASE_NAMESPACE);

        return ns && annotation_is_true(object_meta_annotation(&ns->meta, ANNOTATION_PAUSED));
}

int disruption_scene_new(const Snapshot *snapshot, Simulator *simulator, const SceneOptions *options, DisruptionScene **ret) {
        _cleanup_(disruption_scene_freep) DisruptionScene *s = NULL;
        int r;

        assert(snapshot && simulator && ret);
        if (!snapshot->is_known[SNAPSHOT_NODES] || !snapshot->is_known[SNAPSHOT_PODS])
                return -ENODATA;
        s = new0(DisruptionScene, 1);
        if (!s)
                return -ENOMEM;
        s->snapshot = snapshot;
        s->simulator = simulator;
        s->now_usec = snapshot->taken_usec;
        s->is_all_paused = is_paused_for_all(snapshot, options ? options->lease_ns : NULL);
        s->pod_classes = new0(uint8_t, (size_t) simulator_n_pods(simulator) + 1);
        r = s->pod_classes ? scene_add_pools(s) : -ENOMEM;
        if (r >= 0)
                r = scene_add_nodes(s);
        if (r >= 0)
                r = scene_add_pdbs(s);
        if (r >= 0)
                r = scene_add_node_budgets(s);
        for (size_t i = 0; i < s->n_pools && r >= 0; i++) {
                r = pool_read_hours(s->pools + i, options ? options->zone_directory : NULL, s->now_usec);
                if (r >= 0)
                        r = pool_read_limits(s, s->pools + i);
        }
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}
