/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What kube-scheduler reads of a pod, parsed once for all pods whose KubeScheduledPod.scheduling is the same text, and whose labels
 * are as far as any selector asks for them: of 150,000 pods there are a few thousand.
 */

#include "node-terms.h"
#include "read-labels.h"
#include "selector.h"
#include "simulator.h"

/* Resources by number: the first four of every cluster, then others as they are met. CPU counts in thousandths, memory
 * and ephemeral storage in bytes, all others in whole units. */
typedef enum ResourceNumber {
        RESOURCE_CPU,
        RESOURCE_MEMORY,
        RESOURCE_EPHEMERAL_STORAGE,
        RESOURCE_PODS,
        _RESOURCE_FIXED_MAX,
} ResourceNumber;

#define RESOURCES_MAX 256u
/* More than anybody has, and little enough that all pods of a node can be added up. */
#define AMOUNT_MAX (INT64_C(1) << 48)

typedef struct ResourceTable {
        const char *names[RESOURCES_MAX]; /* interned */
        uint32_t n;
        InternPool *pool;
} ResourceTable;

int resource_table_init(ResourceTable *t, InternPool *pool);
void resource_table_done(ResourceTable *t);
/* -E2BIG: more resources than anybody has; -ENOMEM. */
int resource_table_number(ResourceTable *t, const char *name, uint32_t *ret);
int resource_table_find(const ResourceTable *t, const char *name, uint32_t *ret); /* -ENOENT */

typedef struct ResourceAmount {
        uint32_t resource;
        int64_t amount; /* > 0 */
} ResourceAmount;

typedef struct HostPort {
        const char *protocol, *ip; /* interned; ip NULL: every address */
        int64_t port;
} HostPort;

typedef struct Toleration {
        const char *key, *value, *effect; /* interned; key NULL: all keys; effect NULL: all effects */
        bool exists;                      /* operator Exists: any value */
} Toleration;

typedef struct SpreadRule {
        const char *key;  /* interned */
        bool is_hard;     /* DoNotSchedule; else ScheduleAnyway */
        int64_t max_skew, min_domains;
        bool honors_affinity, honors_taints; /* of which nodes the domains are made */
        Selector *selector; /* NULL selects nothing */
        KeyValues also;     /* of matchLabelKeys: labels that a pod must have, too */
} SpreadRule;

/* A term of (anti-)affinity to pods. */
typedef struct PodTerm {
        const char *key; /* interned; topologyKey */
        Selector *selector;
        const char **namespaces; /* interned */
        size_t n_namespaces;
        Selector *namespace_selector; /* NULL: there is none */
} PodTerm;

typedef struct PodTerms {
        PodTerm *items;
        size_t n_items;
} PodTerms;

typedef struct PodTemplate {
        PodUnmodelled unmodelled;
        const char *text; /* interned; pod_template_text() */
        bool rules_are_unread; /* they are too many, or cannot be read: anti_affinity has the keys alone, and of the other rules nothing is looked at */
        bool reaches_out; /* some of its rules are about pods of other namespaces, too */
        const char *ns;   /* interned */
        KeyValues labels; /* those that selectors ask for */
        int64_t priority;
        ResourceAmount *requests; /* ascending by resource; one pod is not among them */
        size_t n_requests;
        HostPort *ports;
        size_t n_ports;
        Toleration *tolerations;
        size_t n_tolerations;
        KeyValues node_selector;
        bool has_required; /* required node affinity */
        NodeTerms required;
        NodeTerms preferred; /* preferred node affinity, a term each */
        SpreadRule *spread;
        size_t n_spread;
        PodTerms affinity, anti_affinity;                     /* required */
        PodTerms preferred_affinity, preferred_anti_affinity; /* weights are not looked at */
} PodTemplate;

/* The pod's scheduling and, in a second line, those of its labels that are asked for; without any, scheduling alone. NULL: -ENOMEM. */
char *pod_template_text(const KubeScheduledPod *pod, const ReadLabels *read_labels);
/* Such a text; one that cannot be understood gives a template that is POD_UNREADABLE, without
 * namespace if not even that can be read. What its rules ask for of pods' labels is added to
 * read_labels: by a rule that reaches out, for all namespaces. -ENOMEM. */
int pod_template_parse(const char *text, InternPool *pool, ResourceTable *resources, ReadLabels *read_labels, PodTemplate **ret);
PodTemplate *pod_template_free(PodTemplate *t, InternPool *pool); /* returns NULL */

/* What it asks for of a resource; 0: nothing. */
int64_t pod_template_request(const PodTemplate *t, uint32_t resource);
/* Does the template tolerate this taint? (corev1.Toleration.ToleratesTaint) */
bool pod_template_tolerates(const PodTemplate *t, const char *key, const char *value, const char *effect);
/* Taints of a Node whose effect is NoSchedule or NoExecute. */
bool pod_template_tolerates_all(const PodTemplate *t, const Taint *taints, size_t n_taints);
/* nodeSelector and required node affinity. */
bool pod_template_matches_node(const PodTemplate *t, const KeyValues *labels, const char *name);
/* Does the rule count such a pod where it runs? One whose selector is {} counts nobody. */
bool spread_rule_counts(const SpreadRule *rule, const PodTemplate *of, const PodTemplate *pod);
/* Does it count its own pod as the one that comes? Here {} matches. */
bool spread_rule_counts_itself(const SpreadRule *rule, const PodTemplate *of);
/*
 * namespace_labels: of the pod's namespace; NULL: not known. A namespace selector that asks for the absence of labels is read in
 * two ways: kube-scheduler 1.34 lets it match any namespace when the pod that comes is the one with the term (its
 * InterPodAffinity loses what it has found out about namespaces). broadly: as either way would have it, and unknown ones,
 * too; else as both would.
 */
bool pod_term_matches(const PodTerm *term, const PodTemplate *pod, const KeyValues *namespace_labels, bool broadly);
/* Is its namespace selector one of these? */
bool pod_term_is_ambiguous(const PodTerm *term);
/* May it be about pods of other namespaces than this one (interned), where its own pods are? */
bool pod_term_reaches_out(const PodTerm *term, const char *ns);
