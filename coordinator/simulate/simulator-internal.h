/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of a Simulator, for the files of this room. Arrays of nodes and pods by number; what many decisions read of all
 * nodes (free room, scores) lies in arrays of its own. Who changes anything writes it to the log of simulator_undo().
 */

#include "domain-groups.h"
#include "pod-template.h"
#include "score-index.h"

#define NOWHERE UINT32_MAX

typedef struct VolumeUse {
        uint32_t volume; /* Simulator.volumes */
        uint32_t n_pods;
} VolumeUse;

typedef struct PortUse {
        const HostPort *port; /* borrowed from the pod's template */
        uint32_t pod;
} PortUse;

typedef struct SimulatorNode {
        const KubeScheduledNode *object; /* of one that was added: of the node it is like */
        const char *name;                /* interned */
        KeyValues labels;                /* those of object, borrowed; or its own */
        bool owns_labels;
        uint32_t class_number;           /* nodes that are the same to selectors and taints */
        uint32_t first_pod;              /* the pods on it now: Simulator.pods[].next */
        uint32_t n_unsettled;            /* pods on it in the snapshot that are being resized, or cannot be read: what room there is is open */
        bool is_leaving;                 /* being deleted, or its end is announced */
        bool is_asked_about;             /* by the removal under way */
        bool takes_pods;                 /* initialized, not cordoned, not being deleted */
        bool is_removed;
        PortUse *ports;
        size_t n_ports, ports_allocated;
        VolumeUse *volumes;
        size_t n_volumes, volumes_allocated;
        const KubeCsiNode *csi; /* NULL: no limits are known */
        uint32_t *home_pods;    /* pods on it in the snapshot */
        size_t n_home_pods, home_pods_allocated;
} SimulatorNode;

/* A volume that a pod mounts by a claim. */
typedef struct SimulatorVolume {
        const char *driver, *handle; /* interned: what it is counted as on a node; NULL: it is not counted */
        NodeTerms affinity;          /* where it can be used; without items: everywhere */
        bool has_affinity;
        const char *zone, *region;   /* interned: labels of the PersistentVolume, values of one or of several with "__" between */
        bool is_unusable;            /* missing, or not bound and not to be */
        bool is_for_one;             /* ReadWriteOncePod */
        uint32_t n_users;            /* pods that mount it; of one that is for one pod, two: who gets it is open */
} SimulatorVolume;

typedef struct SimulatorPod {
        const KubeScheduledPod *object;
        uint32_t template;
        uint32_t node, next, previous; /* where it stands now, in the list of that node's pods */
        uint32_t home;                 /* in the snapshot; NOWHERE: it is pending */
        uint32_t promised;             /* pending: the node that status.nominatedNodeName says; NOWHERE: none, or it takes no pods */
        bool moves;
        bool is_vanished;              /* simulator_add_vanished() */
        bool is_seated;                /* it stands where it would if nothing else went, which is not its home */
        bool is_successor;             /* it stands for the pod that will be made in its place */
        bool is_terminating;
        bool unsettles;                /* its node takes no pods: SimulatorNode.n_unsettled */
        PodUnmodelled unmodelled;
        uint32_t *volumes;             /* Simulator.volumes */
        uint32_t n_volumes;
        usec_t creation_usec;
        uint64_t uid_head;             /* the first bytes of its uid, as a number that sorts as they do */
        uint64_t held_preferences;     /* a bit each, preferences_that_hold() */
} SimulatorPod;

/* A template and the groups that concern it. */
typedef struct SimulatorTemplate {
        PodTemplate *parsed;
        uint32_t *counted;  /* groups in which pods of this template count */
        size_t n_counted, counted_allocated;
        uint32_t *spread, *affinity, *anti_affinity; /* groups of its own rules: one per hard rule or term */
        size_t n_spread, n_affinity, n_anti_affinity;
        uint32_t *soft_spread, *soft_affinity, *soft_anti_affinity; /* of its preferences: one per rule or term */
        size_t n_soft_spread;
        uint32_t n_pods;    /* that have it: as many may count in a group */
        uint64_t weight;    /* of its rules, in comparisons with one template; 0: none are looked at */
        uint32_t *inverse;  /* GROUP_OWNERS of anti-affinity terms that match pods of this template */
        size_t n_inverse, inverse_allocated;
        bool matches_itself; /* all terms of its required affinity match it */
        bool asks_for_name;  /* its node affinity names nodes: no class has a verdict */
        uint32_t n_preferences;
        uint8_t *verdicts;   /* by class: 0 not known yet, else 1 + FitReason */
        uint64_t *mask;      /* a bit per node whose class takes it, a word per block: of the first n_masked nodes */
        uint32_t n_masked;
        uint32_t drops_seen; /* Simulator.n_drops, as the mask knows it */
        int64_t n_refusing;  /* nodes whose class does not take it; -1: not counted yet */
        int64_t pickiness;   /* how few nodes take it, for the order of an adverse try */
        uint32_t picky_at;   /* pass of which that is; 0: none */
        uint32_t failed_at;  /* likewise, in which no node took one of these */
} SimulatorTemplate;

typedef enum UndoKind { UNDO_PLACE, UNDO_TAKE_OFF, UNDO_REMOVE } UndoKind;

typedef struct UndoEntry {
        UndoKind kind;
        bool was_successor;
        uint32_t pod; /* of UNDO_REMOVE: the node */
        uint32_t node;
} UndoEntry;

struct Simulator {
        const Snapshot *snapshot;
        InternPool *pool;
        ResourceTable resources;

        SimulatorNode *nodes;
        size_t nodes_allocated;
        uint32_t n_nodes, n_first_nodes; /* those of the snapshot come first */
        uint32_t n_drops;                /* nodes that were added, and are not there any more */
        Hashmap *node_numbers; /* name -> number + 1 */
        int64_t *free;         /* [resource * nodes_allocated + node] */
        int64_t *allocatable;  /* likewise */
        int32_t *score;        /* how free a node is, in permille of CPU and memory together; SCORE_NONE: takes nothing */
        ScoreIndex by_score;
        int64_t *block_cpu, *block_memory; /* as much as any node of the block has free */
        bool *block_has_changed;           /* since they were looked up */

        uint32_t n_classes, classes_allocated; /* for so many each template has room */
        Hashmap *classes;      /* what nodes of a class have in common, as text -> number + 1 */
        Hashmap *asked_labels; /* keys by which nodes are told apart: keys of templates */

        SimulatorPod *pods;
        size_t pods_allocated;
        uint32_t n_pods, n_gone; /* numbers in use; of pods that went */
        Hashmap *template_numbers; /* PodTemplate.text -> number + 1 */
        ReadLabels *read_labels;   /* what rules and PodDisruptionBudgets asked for when it was made: by other labels no pods are told apart */
        bool is_too_coarse;        /* a rule that came later asks for others */
        SimulatorTemplate *templates;
        size_t templates_allocated;
        uint32_t n_templates, n_first_templates; /* those that it was made with */

        SimulatorVolume *volumes;
        size_t volumes_allocated;
        uint32_t n_volumes;
        Hashmap *volume_numbers; /* "driver\nhandle" or the key of a claim -> number + 1 */

        TopologyKeys keys;
        DomainGroup *groups;
        size_t groups_allocated;
        uint32_t n_groups;
        SimulatorBounds bounds;              /* of what may be spent on groups, when it is made and on what comes later */
        SimulatorBounds spent, share;        /* on groups so far; what may be spent now */
        const char **left_out;               /* namespaces whose rules are too many, by name; interned by their templates */
        size_t n_left_out, left_out_allocated;
        uint32_t *closing;                   /* GROUP_OWNERS of anti-affinity that is not looked at, one per key: it keeps everybody away */
        size_t n_closing, closing_allocated;
        Hashmap *closing_of;                 /* label of nodes -> that group + 1, or NULL; NULL: nothing was to be closed yet */
        uint32_t *taint_groups; /* groups whose domains are made of nodes with tolerated taints only */
        size_t n_taint_groups, taint_groups_allocated;

        uint32_t *competitors; /* pods that will be placed any moment, by the order of placing; waiting-pods.c */
        size_t n_competitors;
        bool knows_competitors, has_more_competitors;
        uint64_t search_work_max; /* what finding them may cost, in looks of a pod at a node */

        UndoEntry *log;
        size_t n_log, log_allocated;
        uint32_t pass;             /* of placing: SimulatorTemplate.failed_at, .picky_at */
        bool respects_preferences;
};

static inline const PodTemplate *template_of(const Simulator *s, uint32_t pod) {
        return s->templates[s->pods[pod].template].parsed;
}

/* It may compete for seats, without any of its rules: where it would go nobody knows. */
static inline bool pod_lacks_rules(PodUnmodelled u) {
        return u == POD_TOO_MANY_RULES || u == POD_RULES_OVER_MAX;
}

static inline bool node_is_destination(const SimulatorNode *n) {
        return n->takes_pods && n->n_unsettled == 0 && !n->is_removed;
}

/* When its node is removed, it has to find another seat. */
static inline bool simulator_is_mover(const SimulatorPod *p) {
        return p->moves && !p->is_vanished;
}

/* Where it stands from the beginning; NOWHERE: it is pending. */
static inline uint32_t simulator_first_seat(const SimulatorPod *p) {
        return p->home != NOWHERE ? p->home : p->promised;
}

/* -- parts of simulator_new() --------------------------------------------------------------------------- */

int simulator_load_volumes(Simulator *s);          /* fit-volumes.c: after nodes and pods */
int simulator_load_volumes_of(Simulator *s, uint32_t pod);
void simulator_forget_volumes_of(Simulator *s, uint32_t pod);
/* What is attached to nodes beside the volumes of their pods: after these are placed. */
int simulator_load_attachments(Simulator *s);
int simulator_make_groups(Simulator *s);           /* simulator-namespaces.c: after nodes and templates, before pods are placed */
/* Of the template that came last, when pods are placed; -E2BIG. */
int simulator_make_groups_of_new(Simulator *s);
/* One more such pod may count; -E2BIG. */
int simulator_reserve_groups(Simulator *s, uint32_t template);
/* One such pod less. */
void simulator_release_groups(Simulator *s, uint32_t template);
int simulator_add_node_to_groups(Simulator *s, uint32_t node);
void simulator_drop_node_of_groups(Simulator *s, uint32_t node); /* without pods */
void simulator_groups_done(Simulator *s);
int simulator_classify_nodes(Simulator *s);        /* fit-node.c */
int simulator_classify_new(Simulator *s);          /* when the last template is new */
int simulator_classify_added(Simulator *s, uint32_t node); /* behind the others */

/* -- groups, namespace by namespace ------------------------------------------------------------------------ */

/* simulator-groups.c; -E2BIG: not within Simulator.share. */
int simulator_charge_work(Simulator *s, uint64_t n);
void simulator_weigh_template(Simulator *s, uint32_t template); /* SimulatorTemplate.weight */
int simulator_group_template(Simulator *s, uint32_t template);
/* Which groups of the template `rules` count pods of the other, and keep them away. */
int simulator_connect(Simulator *s, uint32_t rules, uint32_t template);
/* The groups from `first` on are gone again, and so are keys from `first_key` on. */
void simulator_drop_groups(Simulator *s, uint32_t first, size_t first_key);
/* The template's anti-affinity that is about other namespaces, too, keeps everybody away; all of it, if its namespace is not left out. */
int simulator_close_domains(Simulator *s, uint32_t template);
/* Pods that are placed count in the groups from `first` on, which came last. */
void simulator_count_placed(Simulator *s, uint32_t first);

/* -- one node (simulator.c) ---------------------------------------------------------------------------------- */

int simulator_name_node(Simulator *s, uint32_t node, const char *name);
void simulator_node_done(SimulatorNode *n, InternPool *pool);

/* -- one pod (simulator.c) --------------------------------------------------------------------------------- */

int simulator_fill_pod(Simulator *s, uint32_t pod, const KubeScheduledPod *object, bool is_vanished);
PodUnmodelled simulator_judge_pod(const Simulator *s, uint32_t pod);
int simulator_bring_pod(Simulator *s, uint32_t pod, uint32_t node);
void simulator_drop_pod(Simulator *s, uint32_t pod);

/* -- what a pod does to the counts ------------------------------------------------------------------------ */

/* direction: 1 it comes to the node, -1 it goes. */
void simulator_count_room(Simulator *s, uint32_t pod, uint32_t node, int direction); /* fit-resources.c */
void simulator_score_node(Simulator *s, uint32_t node);
int simulator_count_ports(Simulator *s, uint32_t pod, uint32_t node, int direction);
int simulator_count_volumes(Simulator *s, uint32_t pod, uint32_t node, int direction);
void simulator_count_domains(Simulator *s, uint32_t pod, uint32_t node, int direction); /* simulator-groups.c */
/* The node becomes a ghost (1), or is a node again (-1): of domains that are made of nodes without taints it is then none. */
void simulator_count_ghost(Simulator *s, uint32_t node, int direction);

extern const uint64_t simulator_search_work; /* waiting-pods.c: Simulator.search_work_max */

/* By the order in which pods are placed: the largest first. -ENOMEM. */
int simulator_sort_pods(Simulator *s, uint32_t *pods, size_t n);
/* If the node is leaving, its pods that have seats elsewhere are on it again; to be undone. */
int simulator_send_home(Simulator *s, uint32_t node);

/* The node that packing, or spreading, puts the pod on; NOWHERE: none takes it. */
uint32_t simulator_first_fit(Simulator *s, uint32_t pod);
uint32_t simulator_freest_fit(Simulator *s, uint32_t pod);

/* -- the filters: FIT_OK or their reason ------------------------------------------------------------------- */

FitReason fit_node(Simulator *s, uint32_t template, uint32_t node); /* FIT_TAINT, FIT_NODE_AFFINITY */
/* The nodes for which fit_node() says FIT_OK: a bit each. */
const uint64_t *template_mask(Simulator *s, uint32_t template);
FitReason fit_resources(const Simulator *s, const PodTemplate *t, uint32_t node);
FitReason fit_ports(const Simulator *s, const PodTemplate *t, uint32_t node);
FitReason fit_volumes(const Simulator *s, uint32_t pod, uint32_t node); /* FIT_VOLUME, FIT_VOLUME_LIMIT */
FitReason fit_spread(const Simulator *s, const SimulatorTemplate *t, uint32_t node);
FitReason fit_affinity(const Simulator *s, const SimulatorTemplate *t, uint32_t node); /* and FIT_ANTI_AFFINITY */
FitReason fit_preferences(const Simulator *s, uint32_t pod, uint32_t node);
/* Which preferences of the pod would hold on this node: a bit each. The pod must not be placed. */
uint64_t preferences_that_hold(const Simulator *s, uint32_t pod, uint32_t node);
