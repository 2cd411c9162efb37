/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * disruption/: which nodes would go that nobody has asked to be removed, in which order, why, and what stands in the way of
 * the others. Pure: a snapshot and a simulator of it in, a plan out, and no file read but those of time zones that pools name; it
 * removes nothing. Calls simulate/, budget's
 * arithmetic and drain's pod classes; called by outlook/ and vesperctl.
 *
 *      disruption-scene.h    what all of it is judged by: of each node its pool, claim, price, pods that move; PDBs of pods
 *      disruption-budget.h   how many nodes a pool's budgets, its windows and NodeDisruptionBudgets let go now
 *      disruption-gate.h     whether a node may be a candidate at all: each reason against it, with its figures
 *      disruption-limit.h    whether a pool may have one more node
 *      disruption-cost.h     in which order candidates are tried
 *      disruption-cheaper.h  which new node of an offering of its pool could take a node's place
 *      disruption-drift.h    whether a node is as its pool says
 *      disruption-due.h      whether a node is due for a method, whatever the others do
 *      disruption-waves.h    in how many rounds PodDisruptionBudgets let pods go
 *      disruption-methods.h  expiration, drift, emptiness, consolidation
 *      disruption-plan.h     all of them, one after the other; and what would be if nodes went, or came
 *
 * disruption-scene.c: the facts that are the same for every method. Nodes and pods have the simulator's numbers.
 */

#include "budget-math.h"
#include "pod-class.h"
#include "simulator.h"

/* Behind what simulator_left_out_text() says. */
#define LEFT_OUT_NOTE                                                                                                                      \
        "Where some pods would go is not simulated: %s. Nodes that run such pods are not judged removable (UNMODELLED); all other nodes are " \
        "judged as ever. Fewer topologySpreadConstraints, (anti-)affinity terms or labels that differ from pod to pod bring it back. "        \
        "vesper(7), PLANNING."

typedef struct DisruptionPdb {
        const KubePdb *pdb;
        int64_t allowed;  /* evictions, now */
        bool is_never;    /* it allows none even while each of its pods is healthy */
} DisruptionPdb;

/* What a pool's schedules say of one reason at the snapshot's moment. */
typedef struct PoolHours {
        int64_t cap;             /* of the budget that is the least; INT64_MAX: none holds */
        bool is_outside_windows; /* the pool has windows, and none is open */
        bool is_unreadable;      /* a schedule or zone that cannot be read */
} PoolHours;

/* A new node that a pool could have. */
typedef struct PoolShape {
        const PoolOffering *offering;
        uint32_t like; /* a node, as which it would be but for what the offering says */
        unsigned likeness;
        const char *region; /* borrowed from a node of the offering's zone, where that is not like's; NULL: like's */
} PoolShape;

/* One of spec.limits. */
typedef struct PoolLimit {
        const char *resource, *said; /* the pool's */
        int64_t limit, used;         /* in thousandths of a CPU, bytes ...; used: by its nodes, as the plan leaves them */
} PoolLimit;

typedef struct DisruptionPool {
        const KubeNodePool *pool;
        PoolHours hours[_DISRUPTION_REASON_MAX];
        bool is_paused;
        int64_t n_nodes;   /* that are initialized */
        int64_t n_busy;    /* of these: not Ready, cordoned, or being deleted */
        int64_t n_leaving; /* being deleted */
        int64_t n_taken;   /* by the plan so far */
        PoolShape *shapes; /* the cheapest first; pool_find_shapes() */
        size_t n_shapes;
        bool knows_shapes;
        PoolLimit *limits;
        size_t n_limits;
} DisruptionPool;

/* A NodeDisruptionBudget. */
typedef struct DisruptionNodeBudget {
        const KubeNodeBudget *budget;
        BudgetFigures figures;
        int64_t n_taken; /* by the plan so far */
} DisruptionNodeBudget;

typedef struct DisruptionNode {
        DisruptionPool *pool;       /* NULL: no pool manages it */
        const KubeNodeClaim *claim; /* NULL: none is known */
        const char *unmanaged;      /* without pool: why; static */
        const PoolOffering *offering; /* what it is, by its labels; NULL: the pool says no price */
        size_t n_moving;            /* pods that a seat must be found for */
        size_t n_naked;             /* of these without a controller: they are lost */
        size_t n_promised;          /* pending pods that the scheduler has promised it to, those of DaemonSets apart */
        uint32_t first_promised;    /* of these, if there are any */
        usec_t created_usec;        /* the earlier of the Node's and the claim's */
        usec_t quiet_since_usec;    /* the last change to its pods that objects show, or since when it is Ready */
        usec_t empty_since_usec;    /* of a node without pods that move: by its claim, else the same; 0 of others */
        bool is_empty_since_known;  /* by its claim, or by who has watched it */
} DisruptionNode;

typedef struct PdbList {
        DisruptionPdb **items;
        size_t n_items;
} PdbList;

typedef struct DisruptionScene {
        const Snapshot *snapshot;
        Simulator *simulator;
        usec_t now_usec;
        DisruptionNode *nodes; /* as many as the simulator had when the scene was made */
        uint32_t n_nodes;
        DisruptionPool *pools;
        size_t n_pools;
        DisruptionPdb *pdbs;
        size_t n_pdbs;
        DisruptionNodeBudget *node_budgets;
        size_t n_node_budgets;
        PdbList *template_pdbs; /* by template */
        uint8_t *pod_classes;   /* 1 + PodClass, of those that were asked for; scene_class_of() */
        bool is_all_paused;
        bool lacks_waiting; /* not all pods are known that went a moment ago: their successors may need any node */
        unsigned n_added; /* by scene_add_node() */
} DisruptionScene;

typedef struct SceneOptions {
        const char *zone_directory; /* of the time zones' files; NULL: that of the system */
        const char *lease_ns;       /* whose annotation pauses all removals; NULL: vesper-system */
} SceneOptions;

/* Borrows snapshot and simulator, which must be of that snapshot, with nothing removed or added, and seats what waits (simulator_seat_waiting()); pods that a watch has brought may
 * have come, changed and gone, but not while there is a scene. -ENOMEM; -ENODATA: nodes or pods are not known. */
int disruption_scene_new(const Snapshot *snapshot, Simulator *simulator, const SceneOptions *options, DisruptionScene **ret);
DisruptionScene *disruption_scene_free(DisruptionScene *s);
DEFINE_FREEP(DisruptionScene, disruption_scene_free);

/* A new node, with a name that none has (`name` is not asked); simulator_add_node(), but for -EEXIST. */
int scene_add_node(DisruptionScene *s, const SimulatorNewNode *new, uint32_t *ret);
/* The one that was added last has never been. */
void scene_drop_node(DisruptionScene *s, uint32_t node);

static inline const KubeNode *scene_node(const DisruptionScene *s, uint32_t node) {
        return &simulator_node(s->simulator, node)->node;
}
static inline const char *scene_node_name(const DisruptionScene *s, uint32_t node) {
        return simulator_node_name(s->simulator, node);
}
static inline const KubePod *scene_pod(const DisruptionScene *s, uint32_t pod) {
        return &simulator_pod(s->simulator, pod)->pod;
}
/* Of a node without pods that move: whoever has watched it knows better than objects. */
static inline void scene_set_empty_since(DisruptionNode *n, usec_t wall_usec) {
        n->empty_since_usec = wall_usec;
        n->is_empty_since_known = true;
}
PodClass scene_class_of(const DisruptionScene *s, uint32_t pod); /* at the snapshot's moment */
/* PodDisruptionBudgets that select the pod. */
const PdbList *scene_pdbs_of(const DisruptionScene *s, uint32_t pod);
/* Where pods of it could be evicted until there is no time left: its drain ends by itself, whatever they say. */
bool scene_drain_is_bounded(const DisruptionScene *s, uint32_t node);
/* -1: not known. */
static inline int64_t scene_price_micros(const DisruptionScene *s, uint32_t node) {
        return s->nodes[node].offering ? s->nodes[node].offering->price_micros : -1;
}
const char *scene_capacity_type(const KubeNode *n); /* NULL: no label says so */
const char *scene_capacity_label(const char *key, const char *type); /* what that label of such a node says; NULL: it does not say it */
