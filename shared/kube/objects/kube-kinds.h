/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kinds that vesper reads, each in its file: kube-node.c, kube-pod.c, kube-pdb.c, kube-lease.c, kube-volume.c,
 * kube-vesper.c (NodePool, NodeClaim; kube-repair.c reads a pool's rules of repair, kube-disruption.c when nodes of it may go). Every decoder has a fuzz target. */

#include <regex.h>

#include "announced.h"
#include "interruption.h"
#include "kube-disruption.h"
#include "kube-object.h"
#include "list.h"
#include "selector.h"

/* -- Node ------------------------------------------------------------------------------------------------------------ */

struct Taint {
        const char *key, *value, *effect; /* interned; value may be "" */
        usec_t time_added_usec;           /* wall clock; 0 if absent. Whoever writes the list back must keep it */
};
bool taint_equal(const Taint *a, const Taint *b); /* in key, value and effect */

typedef enum ConditionStatus { CONDITION_UNKNOWN, CONDITION_FALSE, CONDITION_TRUE } ConditionStatus;

typedef struct Condition {
        const char *type, *reason; /* interned */
        const char *message;       /* a decoded one's is its own. Of a Node only those of vesper's own and KEP-5683's types; else NULL */
        ConditionStatus status;
        usec_t last_transition_usec; /* wall clock; 0 if absent */
        /* Decoded for vesper's own kinds only, whose list of conditions the coordinator writes back; 0 if
         * absent */
        int64_t observed_generation;
} Condition;

typedef struct NodeAddress {
        const char *type; /* interned: "InternalIP" */
        char *address;
} NodeAddress;

typedef struct KubeNode {
        KubeObject object;
        char *provider_id;  /* spec.providerID or NULL */
        char *named_id;     /* without providerID: MACHINE_ID_BY_NAME and its name; else NULL */
        bool unschedulable;
        Taint *taints;
        size_t n_taints;
        bool has_unread_taints; /* too many taints: none is kept, and no patch may write the list */
        Condition *conditions;
        size_t n_conditions;
        usec_t heartbeat_usec; /* lastHeartbeatTime of condition Ready: by its kubelet's clock; 0 if absent */
        char **volumes_in_use, **volumes_attached; /* names, NULL-terminated; each list in one allocation */
        char *boot_id;      /* status.nodeInfo.bootID; NULL: no kubelet has reported one */
        char *machine_id, *system_uuid; /* status.nodeInfo.machineID, .systemUUID; NULL if absent or empty */
        NodeAddress *addresses;         /* status.addresses: what its kubelet says */
        size_t n_addresses;
        int64_t kubelet_port; /* status.daemonEndpoints.kubeletEndpoint.Port: of its HTTPS server; 0: not said */
        Interruption *interruption;     /* ANNOTATION_INTERRUPTION, written in whatever boot; NULL: absent or unreadable */
        bool interruption_is_unreadable;
        Interruption *heard;            /* ANNOTATION_HEARD, likewise */
        AnnouncedList announced;        /* ANNOTATION_ANNOUNCED; empty: absent or unreadable */
        usec_t let_go_usec;             /* ANNOTATION_LET_GO, wall clock; 0: absent or unreadable */
} KubeNode;

extern const KubeKind kube_node_kind;
const Condition *kube_node_condition(const KubeNode *n, const char *type); /* NULL if absent */
bool kube_node_is_ready(const KubeNode *n);                                 /* Ready is True */
usec_t kube_node_ready_since(const KubeNode *n); /* lastTransitionTime of the condition Ready, wall clock; 0: absent */
/* Returns the agent's interruption, if it was written in the boot that the kubelet reports: an announcement does not bind a machine
 * that has booted since. NULL: there is none that can be read. Borrowed. */
const Interruption *kube_node_interruption(const KubeNode *n);
/* The same, if it is neither withdrawn nor released by a person. Borrowed. */
const Interruption *kube_node_standing_interruption(const KubeNode *n);
/* Returns the coordinator's drain (ANNOTATION_HEARD), if it was begun in that boot. NULL: there is none. Borrowed. */
const Interruption *kube_node_standing_heard(const KubeNode *n);
/* Returns true if i was written in another boot than the one that the kubelet reports. */
bool kube_node_has_booted_since(const KubeNode *n, const Interruption *i);
bool kube_node_is_unmanaged(const KubeNode *n); /* ANNOTATION_UNMANAGED is "true" */
/* Returns the id by which a claim names the Node's machine: spec.providerID, or "exec://NAME" if the Node has none. */
const char *kube_node_machine_id(const KubeNode *n);
/* The name of the Node in a machine id that names one (MACHINE_ID_BY_NAME); NULL: it does not, or is NULL. Borrowed. */
const char *machine_id_node_name(const char *id);
/* Returns the EC2 instance in a providerID ("i-1" of "aws:///eu-west-1a/i-1"), or NULL. Borrowed from id. */
const char *machine_id_ec2_instance(const char *id);
bool kube_node_has_taint(const KubeNode *n, const char *key, const char *effect); /* effect NULL: any */
/* The same boot, with or without dashes. NULL equals nothing. */
bool boot_id_equal(const char *a, const char *b);
/* Both are known, and they are not equal. */
bool boot_id_differs(const char *a, const char *b);

/* -- Namespace ------------------------------------------------------------------------------------------------------- */

extern const KubeKind kube_namespace_kind; /* a KubeObject; of its annotations vesper's */

/* -- what a webhook needs --------------------------------------------------------------------------------------------- */

/* A Secret with a certificate: of its data these, decoded; NULL: absent, or not base64. Keys are wiped when it is freed. */
typedef struct KubeCertificateSecret {
        KubeObject object;
        char *ca_crt, *ca_key, *tls_crt, *tls_key;
} KubeCertificateSecret;

extern const KubeKind kube_certificate_secret_kind;

typedef struct WebhookEntry {
        char *ca_bundle; /* base64, as the API server has it; NULL: none */
        char *service_ns, *service_name; /* where the API server asks; NULL: by a URL */
        bool fails_closed;      /* failurePolicy is Fail, or is not said: what cannot be asked about is refused */
} WebhookEntry;

typedef struct KubeWebhookConfiguration {
        KubeObject object;
        WebhookEntry *webhooks;
        size_t n_webhooks;
} KubeWebhookConfiguration;

extern const KubeKind kube_webhook_configuration_kind; /* ValidatingWebhookConfiguration */

/* -- Pod ------------------------------------------------------------------------------------------------------------- */

typedef enum PodPhase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_PHASE_UNKNOWN } PodPhase;

typedef struct KubePod {
        KubeObject object;
        const char *node_name;      /* interned; NULL: not bound */
        const char *priority_class; /* interned or NULL */
        int64_t priority;
        int64_t grace_sec;          /* spec.terminationGracePeriodSeconds; 30 if absent */
        PodPhase phase;
        bool ready;                 /* condition Ready is True */
        bool is_static;             /* a mirror pod: annotation kubernetes.io/config.mirror or owner kind Node */
        bool is_daemon;             /* its controller is of kind DaemonSet, of any API group; or annotation
                                       cluster-autoscaler.kubernetes.io/daemonset-pod is "true" */
        bool tolerates_unschedulable; /* tolerates node.kubernetes.io/unschedulable:NoSchedule */
        bool tolerates_disrupted;   /* tolerates vesper.sh/disrupted:NoSchedule */
        usec_t start_usec;          /* status.startTime, wall clock; 0 if absent */
        bool needs_kubelet; /* when its containers have ended its kubelet has more to do than to say so:
                               volumes that outlive the pod, devices, a result to report. Always set but by
                               kube_own_pod_kind */
        /* Written by cluster-view.c only; zeroed by the decoder. */
        ListNode in_namespace; /* in the list of the bound pods of its namespace */
        bool pdb_is_known;     /* pdb_name says which PodDisruptionBudget matches it */
        const char *pdb_name;  /* interned; NULL: none, or several */
} KubePod;

extern const KubeKind kube_pod_kind;
/* The same for whoever lives on the pods' node: reads of the spec what only matters there, too. */
extern const KubeKind kube_own_pod_kind;
/* Do two states of a pod, of one pool, differ in nothing that is kept here, but for their resourceVersion? Most of what
 * kubelets write about pods is about what nobody here reads. */
bool kube_pod_says_same(const KubePod *a, const KubePod *b);

/* -- PodDisruptionBudget ---------------------------------------------------------------------------------------------- */

typedef struct KubePdb {
        KubeObject object;
        Selector *selector;        /* NULL when object.invalid */
        int64_t disruptions_allowed, current_healthy, desired_healthy, expected_pods;
        int64_t observed_generation;
        bool always_allow_unhealthy; /* unhealthyPodEvictionPolicy: AlwaysAllow */
        char *sync_failed;           /* message of condition DisruptionAllowed=False with reason SyncFailed; NULL: it does not say so */
} KubePdb;

extern const KubeKind kube_pdb_kind;
bool kube_pdb_matches(const KubePdb *pdb, const KubePod *pod); /* same namespace, and the selector says so */
/* Returns true if unready pods that the PDB matches are evicted regardless of it. */
bool kube_pdb_lets_unready_pass(const KubePdb *pdb);
/* Would the API server evict this pod, which it matches, without asking it? Pending, terminal, terminating, or unready
 * and let pass. */
bool kube_pdb_passes_by(const KubePdb *pdb, const KubePod *pod);
/* Evictions that it allows now. A status that its controller has not brought up to date allows none, as the API server
 * sees it. */
int64_t kube_pdb_allowed(const KubePdb *pdb);
/* Returns true if the PDB allows no eviction as it stands, however healthy its pods are: its desiredHealthy is no less than its
 * expectedPods, or kube-controller-manager cannot count them (SyncFailed). */
bool kube_pdb_never_allows(const KubePdb *pdb);

/* -- Lease, VolumeAttachment, PersistentVolumeClaim
 * -------------------------------------------------------------------------------------------- */

extern const KubeKind kube_lease_kind; /* leader election reads the raw JSON; see leader-elector.h */

typedef struct KubeVolumeAttachment {
        KubeObject object;
        const char *node_name; /* interned */
        char *pv_name;         /* NULL: inline */
        bool attached;
} KubeVolumeAttachment;

extern const KubeKind kube_volume_attachment_kind;

typedef struct KubePersistentVolumeClaim {
        KubeObject object;
        char *volume_name; /* spec.volumeName, of the PersistentVolume; NULL: not bound */
} KubePersistentVolumeClaim;

extern const KubeKind kube_pvc_kind;

/* A PersistentVolumeClaim that a pod mounts. */
typedef struct PodClaim {
        char *name;
        bool ephemeral; /* made for this pod, and controlled by it: one of that name that is not is another's
                         */
} PodClaim;

/* Reads the PersistentVolumeClaims of a Pod in JSON. Free *ret with pod_claims_free(). -EINVAL: its volumes
 * cannot be read; -E2BIG: more than DECODE_LIST_MAX of them have a claim; -ENOMEM. */
int pod_claims_decode(const Json *pod, PodClaim **ret, size_t *ret_n);
void pod_claims_free(PodClaim *claims, size_t n);

/* -- vesper.sh/v1alpha1 ---------------------------------------------------------------------------------------------------- */

typedef enum DeletionPolicy { DELETION_POLICY_RELEASE, DELETION_POLICY_DELETE } DeletionPolicy;

typedef enum RepairStatus {
        REPAIR_STATUS_NOT_TRUE, /* False or Unknown */
        REPAIR_STATUS_TRUE,
        REPAIR_STATUS_FALSE,
        REPAIR_STATUS_UNKNOWN,
        _REPAIR_STATUS_MAX,
} RepairStatus;

typedef enum RepairAction {
        REPAIR_ACTION_REPLACE, /* the node is deleted */
        REPAIR_ACTION_REBOOT,
        REPAIR_ACTION_NONE, /* what matches is left alone */
        _REPAIR_ACTION_MAX,
} RepairAction;

/* A rule of spec.repair: the action of a pool for nodes with this condition. */
typedef struct RepairRule {
        char *condition;         /* its type */
        RepairStatus status;
        char *reason;            /* NULL: any */
        regex_t *reason_pattern; /* the same, to be searched for in a condition's reason; NULL: any */
        usec_t after_usec;       /* so long the condition must have had that status */
        RepairAction action;
} RepairRule;

typedef struct KubeNodePool {
        KubeObject object;
        Selector *selector;             /* of nodes; NULL when object.invalid; an empty one selects nothing */
        usec_t termination_grace_usec;  /* spec.template.terminationGracePeriod; USEC_INFINITY: unset */
        PoolTemplate template;          /* spec.template, the rest of it */
        PoolDisruption disruption;
        PoolOffering *offerings;
        size_t n_offerings;
        KeyValues limits;               /* spec.limits: of each resource what all nodes of the pool may have; quantities that can be read */
        int64_t weight;                 /* of several pools that could have one more node the greatest has it */
        char *provider_name, *provider_group;
        bool trusts_provider_ids;       /* spec.provider.identity is ProviderID */
        DeletionPolicy deletion_policy;
        RepairRule *repair;             /* spec.repair; unset: not Ready for 15 minutes is replaced */
        size_t n_repair;
        Condition *conditions;
        size_t n_conditions;
} KubeNodePool;

extern const KubeKind kube_node_pool_kind;
/* Writes the rules as the array spec.repair, which reads back as the same rules. */
void repair_rules_write(const RepairRule *rules, size_t n, JsonWriter *w, const char *key);

typedef struct ClaimBlocker {
        char *pod, *reason, *pdb; /* "ns/name"; PascalCase word; "ns/name" or NULL */
        char *message;            /* for people, or NULL */
        usec_t since_usec;        /* wall clock */
} ClaimBlocker;

/* The identity of the instance, which the cloud has proved once (status.identity). */
typedef struct ClaimIdentity {
        char *instance_id, *region; /* region: NULL where the provider has none */
        char *method;               /* NULL: nothing was proved yet */
} ClaimIdentity;

/* What was asked of the cloud for a claim (status.group), before it was asked. */
typedef struct ClaimRequest {
        char *token;                      /* the op id; NULL: nothing was asked yet */
        char *like, *zone, *capacity_type; /* of the machine that is asked for; NULL: not said */
        usec_t since_usec, time_usec;     /* wall clock: of the first request, of the last; 0: absent */
        char *answer;                     /* of the last: a word of cloud_answer_names; NULL: none came, or it was not written */
        char *message;                    /* the cloud's own words, or NULL */
        bool unresolved;                  /* this request, or an earlier one, may have launched a machine */
} ClaimRequest;

/* Returns true if the cloud may have launched a machine for the request that is not known yet. */
bool claim_request_is_open(const ClaimRequest *r);

typedef struct KubeNodeClaim {
        KubeObject object;
        char *node_pool;                /* NULL: a person made it, for no pool (kube_node_claim_is_standalone()) */
        char *provider_id;              /* NULL: a machine that is asked for, and not known yet */
        char **replaces;                /* spec.replaces: claims whose machines this one takes the place of; NULL: it was adopted */
        int64_t attempt;                /* spec.attempt: counts the machines that were asked for in their place; 1 if absent */
        char *made_for;                 /* spec.nodeName: the Node that was adopted, or is to be; NULL: not told */
        char *system_uuid, *machine_id; /* spec: as that Node had them then; NULL if it had none */
        ClaimIdentity identity;
        usec_t termination_grace_usec; /* USEC_INFINITY: unset = wait for ever; 0 = force at once */
        usec_t expire_after_usec;
        usec_t force_deadline_usec;    /* ANNOTATION_FORCE_DEADLINE, wall clock; USEC_INFINITY: none that can be read */
        char *node_name, *node_uid;    /* status */
        char *phase;
        usec_t deadline_usec;          /* status.deadline, wall clock; 0 if absent */
        char *last_cloud_error;
        int64_t pods_left;             /* status.podsLeft; -1 if absent */
        ClaimBlocker *blockers;
        size_t n_blockers;
        Condition *conditions;
        size_t n_conditions;
        ClaimRequest request;          /* status.group */
        char *successor;               /* status.successor.claim: the claim that takes its place; NULL: none was asked for */
        bool successor_is_made;        /* that claim was made: if it is not there, it has gone */
        AnnouncedList announced;       /* ANNOTATION_ANNOUNCED; empty: absent or unreadable */
        usec_t let_go_usec;            /* ANNOTATION_LET_GO, wall clock; 0: absent or unreadable */
} KubeNodeClaim;

extern const KubeKind kube_node_claim_kind;

/* Why a node is disrupted. */
typedef enum NodeChargeKind {
        NODE_CHARGE_DELETE,    /* holder: the user who deletes the Node or its NodeClaim */
        NODE_CHARGE_REBOOT,    /* holder: the id of the request that has the reboot slot */
        NODE_CHARGE_OPERATION, /* holder: the uid of the NodeDisruption */
        NODE_CHARGE_SUCCESSOR, /* holder: the uid of the new NodeClaim; name and uid are the claim's */
        _NODE_CHARGE_KIND_MAX,
} NodeChargeKind;

/* Values of status.disruptedNodes[].kind: "DELETE"; NULL behind the last. */
extern const char *const kube_charge_kind_names[_NODE_CHARGE_KIND_MAX + 1];

#define NODE_CHARGES_MAX 2000u /* maxItems of status.disruptedNodes in the CRD */
/* Maximum length of a holder and of heldBefore, in bytes. The CRD allows as many characters. */
#define NODE_CHARGE_HOLDER_BYTES_MAX 253u
/* Maximum lengths of a Node's name and uid in a charge, in bytes: as the CRD has them. */
#define NODE_CHARGE_NAME_BYTES_MAX 253u
#define NODE_CHARGE_UID_BYTES_MAX 64u

/* A disruption of a node that a budget has admitted: an item of status.disruptedNodes. */
typedef struct NodeCharge {
        char *name, *uid; /* of the Node */
        NodeChargeKind kind;
        char *holder;      /* who holds the charge; NULL: not known, as in the charges of earlier versions */
        char *held_before; /* the holder from whom a DELETE took the charge over; NULL: none */
        usec_t time_usec;  /* wall clock: when the holder was charged */
        usec_t until_usec; /* wall clock: expected end of a DELETE or reboot charge; 0: unset */
} NodeCharge;

typedef struct KubeNodeBudget {
        KubeObject object;
        Selector *selector;                        /* null, {} and one that cannot be read select nothing */
        NodeAmount min_available, max_unavailable; /* exactly one is set, or the budget is object.invalid */
        int64_t expected_nodes, current_available, desired_available, disruptions_allowed;
        int64_t observed_generation;               /* -1: absent */
        NodeCharge *charges;
        size_t n_charges;
        Condition *conditions;
        size_t n_conditions;
} KubeNodeBudget;

/* NodeDisruptionBudget: how many of a set of nodes may be unavailable at once. */
extern const KubeKind kube_node_budget_kind;
bool kube_node_budget_matches(const KubeNodeBudget *b, const KubeNode *n);
const NodeCharge *kube_node_budget_charge(const KubeNodeBudget *b, const char *node_uid); /* NULL: none */
const Condition *kube_node_claim_condition(const KubeNodeClaim *c, const char *type);
/* A person's, of no pool. */
bool kube_node_claim_is_standalone(const KubeNodeClaim *c);
/* Our finalizer is on it, and its status names the Node that was adopted by it. */
bool kube_node_claim_is_adopted(const KubeNodeClaim *c);
/* vesper asked the cloud for its machine. A person may write spec.replaces, and not that. */
bool kube_node_claim_is_launched(const KubeNodeClaim *c);
/* vesper asked for its machine, and that has not become a node yet that takes pods. */
bool kube_node_claim_is_new(const KubeNodeClaim *c);
const Condition *kube_node_pool_condition(const KubeNodePool *p, const char *type);

/* -- shared by the decoders ------------------------------------------------------------------------------------------------- */

/* Decodes a list of conditions. is_written_back: the coordinator writes the whole list back, so the messages
 * of all types and observedGeneration are decoded, too. */
int conditions_decode(const Json *array, bool is_written_back, InternPool *pool, Condition **ret, size_t *ret_n);
void conditions_free(Condition *c, size_t n, InternPool *pool);
ConditionStatus condition_status_from_string(const char *s);
const char *condition_status_to_string(ConditionStatus s); /* "True", "False", "Unknown" */
const Condition *condition_find(const Condition *list, size_t n, const char *type); /* NULL if absent */
/* status.conditions of a Node, NodeClaim, NodePool or NodeDisruptionBudget, borrowed; of other kinds none. */
const Condition *kube_object_conditions(const KubeObject *o, size_t *ret_n);
/* Does the object say so already? The time apart. */
bool condition_is_said(const KubeObject *o, const Condition *c);
/* Returns true for the types of a drain (marks.h) whose reason is the cause: MaintenancePlanned,
 * MaintenanceInProgress, GracefulNodeShutdownInProgress. */
bool condition_tells_cause(const char *type);
/* Returns true if the agent, or the coordinator, wrote the condition: by its reason, or by its message if the reason is the cause. NULL: false. */
bool condition_is_of_agent(const Condition *c);
bool condition_is_of_coordinator(const Condition *c);
/* lastTransitionTime of one that has this status now; old: what it was before, or NULL. */
usec_t condition_since(const Condition *old, ConditionStatus status, usec_t wall_now_usec);
/* Writes an element of status.conditions. A reason or message of NULL, a time or generation of 0 is left out; Nodes
 * have a heartbeat, our own kinds an observedGeneration. */
void condition_write(JsonWriter *w, const Condition *c, usec_t heartbeat_usec, int64_t generation);
