/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The cluster as kube-scheduler counts it: room of nodes, ports, volumes, pods by topology domain. Pods are taken off
 * nodes, placed on others, and all of it is taken back in reverse order: nothing is ever copied. Made of a snapshot, whose
 * objects it borrows.
 *
 * Nodes and pods have the numbers 0 .. n-1 in the order of their keys (names; "namespace/name"), so that equal snapshots
 * give equal answers.
 */

#include "snapshot.h"

typedef struct Simulator Simulator;

/* Why a node does not take a pod: the first filter that says no, in this order. */
typedef enum FitReason {
        FIT_OK,
        FIT_NOT_A_DESTINATION, /* the node leaves, is cordoned, deleted, not initialized, or one of its pods is being resized */
        FIT_TAINT,             /* a taint that the pod does not tolerate */
        FIT_NODE_AFFINITY,     /* nodeSelector, required node affinity */
        FIT_RESOURCES,         /* requests exceed what is free */
        FIT_PORTS,             /* a host port is taken */
        FIT_VOLUME,            /* one of its volumes cannot be used there: node affinity, zone, topology, or not bound */
        FIT_VOLUME_LIMIT,      /* as many volumes of that driver are attached as may be */
        FIT_SPREAD,            /* topologySpreadConstraints, DoNotSchedule */
        FIT_AFFINITY,          /* required pod affinity */
        FIT_ANTI_AFFINITY,     /* required pod anti-affinity, of the pod or of one that runs there */
        FIT_PREFERENCE,        /* a preference that holds now and would not there; only where preferences are respected */
        _FIT_REASON_MAX,
        _FIT_REASON_INVALID = -EINVAL,
} FitReason;

const char *fit_reason_to_string(FitReason r); /* "resources", "spread": for tables and JSON */

/* Why a pod cannot be simulated at all, whichever node. */
typedef enum PodUnmodelled {
        POD_MODELLED,
        POD_RESOURCE_CLAIMS,     /* dynamic resource allocation */
        POD_SCHEDULING_GATES,
        POD_GROUP,               /* a gang */
        POD_FOREIGN_SCHEDULER,
        POD_DISK_INSIDE,         /* a disk that is no PersistentVolume */
        POD_UNREADABLE,          /* a field that the scheduler reads cannot be understood */
        POD_SNAPSHOT_INCOMPLETE, /* it needs objects of a kind that the snapshot does not have */
        POD_TOO_MANY_RULES,      /* its namespace is left out: simulator_left_out() */
        POD_RULES_OVER_MAX,      /* more rules bind it to other pods than any pod may have (64) */
        POD_PORTS_OVER_MAX,      /* likewise host ports (256) */
        _POD_UNMODELLED_MAX,
} PodUnmodelled;

const char *pod_unmodelled_to_string(PodUnmodelled u); /* "RESOURCE_CLAIMS" */
const char *pod_unmodelled_text(PodUnmodelled u);      /* the same in words: "it has scheduling gates" */

/*
 * How many rules between pods tenants write (topologySpreadConstraints, pod affinity, pod anti-affinity) is bounded nowhere, and each
 * is compared with each kind of pods that it may be about. Three quarters of what that may cost are shared out among namespaces, those
 * with the least first, and the rest is for what comes later; one whose share is not enough is left out: its pods are POD_TOO_MANY_RULES. They count in the rules of others as ever, and
 * where they are, their anti-affinity that may be about other namespaces keeps away everybody. The same holds of one pod whose own rules are too
 * many (POD_RULES_OVER_MAX) or cannot be read (POD_UNREADABLE), and there of its anti-affinity about its own namespace, too; if a topologyKey
 * cannot be read, it keeps everybody off its node, its zone and its region. So no pod is given a seat that it would not have with all rules.
 */
#define TOO_MANY_RULES_TEXT "too many rules that bind pods to others"

typedef struct SimulatorBounds {
        uint64_t work;  /* comparisons, of some 30 ns each */
        uint64_t bytes; /* of counts */
} SimulatorBounds;

extern const SimulatorBounds simulator_bounds; /* what the leader's event loop, and its memory, can bear */

/* Pods that are gone, and whose controllers have not made their successors yet: as simulator_add_vanished() would add them, with the numbers after
 * those of the snapshot, in this order. Made with them, no simulator lacks the labels that their rules ask for, nor bytes: a namespace whose share
 * they exceed is left out. */
typedef struct AwaitedPods {
        KubeObject *const *pods; /* of kube_scheduled_pod_kind; borrowed as long as the simulator is there */
        size_t n;
} AwaitedPods;

/* -ENOMEM. What cannot be read in an object makes the pods concerned unmodelled, and is no failure. */
int simulator_new_within(const Snapshot *snapshot, const AwaitedPods *awaited, const SimulatorBounds *bounds, Simulator **ret);
/* The same within simulator_bounds, of the snapshot alone. */
int simulator_new(const Snapshot *snapshot, Simulator **ret);
Simulator *simulator_free(Simulator *s);
DEFINE_FREEP(Simulator, simulator_free);

uint32_t simulator_n_nodes(const Simulator *s);
const KubeScheduledNode *simulator_node(const Simulator *s, uint32_t node); /* of one that was added: of `like` */
const char *simulator_node_name(const Simulator *s, uint32_t node);
int simulator_find_node(const Simulator *s, const char *name, uint32_t *ret); /* -ENOENT */
uint32_t simulator_n_pods(const Simulator *s);
const KubeScheduledPod *simulator_pod(const Simulator *s, uint32_t pod); /* NULL: it went */
/* The pods that run on a node in the snapshot, by number; borrowed. */
const uint32_t *simulator_pods_of(const Simulator *s, uint32_t node, size_t *ret_n);
bool simulator_pod_runs(const Simulator *s, uint32_t pod); /* is it one of these? */
/* The number of one of these, of which the simulator has this very object: its node tells. -ENOENT. */
int simulator_find_running(const Simulator *s, const KubeScheduledPod *object, uint32_t *ret);
/* Must a seat be found for it when its node goes? Active (or terminating and a StatefulSet's, whose successor comes then),
 * neither of a DaemonSet nor static. */
bool simulator_pod_moves(const Simulator *s, uint32_t pod);
PodUnmodelled simulator_pod_unmodelled(const Simulator *s, uint32_t pod);
/* Namespaces whose rules are too many, by name; borrowed. */
const char *const *simulator_left_out(const Simulator *s, size_t *ret_n);
/* A sentence that names them; *ret NULL: there are none. -ENOMEM. */
int simulator_left_out_text(const Simulator *s, char **ret);
/* The template of the scheduler's view of it: equal numbers mean equal pods, but for volumes, and for labels that no selector of a pod or
 * PodDisruptionBudget of their namespace asks for, nor one that reaches out. */
uint32_t simulator_template_of(const Simulator *s, uint32_t pod);
uint32_t simulator_n_templates(const Simulator *s);

/* -- what is free, and who would take a pod, as the simulator stands now -------------------------------- */

/* In units of the resource (thousandths of a CPU, bytes); 0 of a resource that the node does not have. */
int64_t simulator_free_room(const Simulator *s, uint32_t node, const char *resource);
int64_t simulator_allocatable(const Simulator *s, uint32_t node, const char *resource);
int64_t simulator_request(const Simulator *s, uint32_t pod, const char *resource);
/* Would the node take the pod now? The pod itself must not be placed (simulator_take_off()). */
FitReason simulator_fits(Simulator *s, uint32_t pod, uint32_t node);
/* How many nodes say what: counts[FIT_OK] of them would take it. *ret_nearest (if wanted): the node that comes nearest
 * to taking it (the last filter; of resources the one that lacks least), UINT32_MAX if one takes it or none says more than
 * FIT_NODE_AFFINITY. */
void simulator_count_fits(Simulator *s, uint32_t pod, uint32_t counts[_FIT_REASON_MAX], uint32_t *ret_nearest);

/* -- what a watch brings ---------------------------------------------------------------------------------- */

/*
 * One pod came, changed or went; nothing may be undone meanwhile (the log is empty). The object is borrowed from here on. Its
 * number stays, and that of one that went is not used again. A pod that the scheduler cannot tell from others of the cluster
 * costs microseconds; the first of a new kind is compared with the rules that may be about it, and costs milliseconds. Whatever changes
 * in another kind of object, a node above all, takes a new simulator.
 * 0; -ENOMEM, -E2BIG (bounds are reached; a new one leaves namespaces out) or -ESTALE (it asks for labels that nobody
 * asked for, of pods that there are), and then only a new simulator is of use.
 */
int simulator_add_pod(Simulator *s, const KubeScheduledPod *object, uint32_t *ret);
int simulator_change_pod(Simulator *s, uint32_t pod, const KubeScheduledPod *object);
/* That pod is gone, and its controller has not made its successor yet: one like it competes for seats as a pending pod does, and no removal
 * fails because it has none. -ENOMEM, -E2BIG, -ESTALE as above. */
int simulator_add_vanished(Simulator *s, const KubeScheduledPod *object, uint32_t *ret);
void simulator_forget_pod(Simulator *s, uint32_t pod);
/* Most of what it holds is of pods that went, or are another by now (numbers and templates stay): a new one would be smaller. */
bool simulator_is_bloated(const Simulator *s);
/* PodDisruptionBudgets that came to the snapshot tell pods apart that have one template: only a new one is of use. */
bool simulator_is_too_coarse(const Simulator *s);

/* -- changes, and taking them back ---------------------------------------------------------------------- */

typedef size_t SimulatorMark;

SimulatorMark simulator_mark(const Simulator *s);
/* Everything since the mark is undone, the latest first. */
void simulator_undo(Simulator *s, SimulatorMark mark);
/* The node takes no pod from now on and its pods that move are taken off it; its domains stay, as kube-scheduler counts
 * the node until its object is gone (a ghost). Its other pods stay on it. 0 or -ENOMEM. */
int simulator_remove_node(Simulator *s, uint32_t node);
/* A node that does not exist, for what would be if. */
typedef struct SimulatorNewNode {
        const char *name;
        uint32_t like;                /* a node: its labels, taints and allocatable, and room for its DaemonSet and static pods */
        const KeyValues *labels;      /* these are different, or more; NULL: none */
        const KeyValues *allocatable; /* these are different, as quantities; NULL: none */
} SimulatorNewNode;

/* It has the number after the last; simulator_undo() leaves it there. 0; -EINVAL: a quantity; -EEXIST; -E2BIG past 1,024 of them; -ENOMEM. */
int simulator_add_node(Simulator *s, const SimulatorNewNode *new, uint32_t *ret);
/* The one that was added last, without pods, is not there any more, and never was: unlike one that is removed, no ghost is left of it.
 * The log says nothing of it. */
void simulator_drop_node(Simulator *s, uint32_t node);
int simulator_take_off(Simulator *s, uint32_t pod);
int simulator_place(Simulator *s, uint32_t pod, uint32_t node);
/* Where it stands now; UINT32_MAX: nowhere. */
uint32_t simulator_node_of(const Simulator *s, uint32_t pod);
/* Does a pod stand there now that would have to find another seat? */
bool simulator_any_moves(const Simulator *s, uint32_t node);

/* -- pods that wait for a seat ---------------------------------------------------------------------------- */

/* Pods that kube-scheduler may place any moment, pending ones and those of nodes that are leaving, stand from then on where it would put
 * them, as far as nodes take them: unlogged, until a pod comes, changes or goes. Done once, by the first removal if not before. -ENOMEM. */
int simulator_seat_waiting(Simulator *s);
/* That is undone: nodes were added, and the log is empty. */
void simulator_unseat_waiting(Simulator *s);
/* There are more than are simulated, or than can be asked for in one go: what is free is not known. */
bool simulator_has_more_waiting(const Simulator *s);
/* The node that a pending pod was promised (status.nominatedNodeName), where its room counts as taken; UINT32_MAX: none. */
uint32_t simulator_promised_to(const Simulator *s, uint32_t pod);
/* Where it runs in the snapshot; UINT32_MAX: it is pending. */
uint32_t simulator_home_of(const Simulator *s, uint32_t pod);
