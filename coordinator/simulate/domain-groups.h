/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pods counted by topology domain. A topology key (a label of nodes) parts the nodes into domains, one per value. A group
 * counts in each domain the pods that one rule of one template is about.
 */

#include "hashmap.h"
#include "kube-object.h"

#define NO_DOMAIN UINT32_MAX

typedef struct TopologyKey {
        const char *name;      /* interned */
        uint32_t *domain_of;   /* by node; NO_DOMAIN: the node does not have the label */
        size_t allocated;
        Hashmap *values;       /* label value -> domain + 1 */
        uint32_t n_domains;
} TopologyKey;

typedef struct TopologyKeys {
        TopologyKey *items;
        size_t n_items, allocated;
} TopologyKeys;

int topology_keys_find_or_add(TopologyKeys *keys, InternPool *pool, const char *name, uint32_t *ret);
/* Gives a node its domain. */
int topology_key_set_node(TopologyKey *key, uint32_t node, const KeyValues *labels);
/* Those from `first` on are gone. */
void topology_keys_drop(TopologyKeys *keys, InternPool *pool, size_t first);
void topology_keys_done(TopologyKeys *keys, InternPool *pool);

typedef enum GroupKind {
        GROUP_SPREAD,   /* pods that a rule of topologySpreadConstraints counts */
        GROUP_AFFINITY, /* pods that match all terms of a template's required affinity; one group per term, for its key */
        GROUP_TERM,     /* pods that one term matches */
        GROUP_OWNERS,   /* pods that have an anti-affinity term */
} GroupKind;

typedef struct DomainGroup {
        GroupKind kind;
        uint32_t template; /* whose rule it is */
        uint32_t key;
        int32_t *count;    /* pods, by domain */
        int64_t total;     /* in domains, all of them */
        size_t domains_allocated;
        uint32_t last_closed; /* of one that keeps everybody away: the template that came to it last, whose pods count once, and 1 more */

        /* of GROUP_SPREAD */
        uint32_t rule;          /* PodTemplate.spread of its template */
        uint64_t *eligible;     /* a bit per node: do its pods count, and does it make its domain one? */
        size_t eligible_words;
        int32_t *n_nodes;       /* eligible ones, by domain; a domain without any is none */
        uint32_t n_domains;     /* with eligible nodes */
        uint32_t *with_count;   /* how many of these domains have so many pods */
        size_t with_count_allocated;
        size_t n_reserved;      /* pods that there is room to count */
        int64_t minimum;        /* pods in the domain that has the fewest; undefined without domains */
        int64_t max_skew, min_domains;
        bool counts_itself;     /* the rule counts pods of its own template */
} DomainGroup;

void domain_group_done(DomainGroup *g);
/* Makes room for the domains of its key. 0 or -ENOMEM. */
int domain_group_grow(DomainGroup *g, uint32_t n_domains);
bool domain_group_is_eligible(const DomainGroup *g, uint32_t node);
int domain_group_set_eligible(DomainGroup *g, uint32_t node, uint32_t domain); /* a node that has no pods yet */
/* So many more pods will be counted at most: what follows needs no memory then. 0 or -ENOMEM. */
int domain_group_reserve(DomainGroup *g, size_t n_more);
void domain_group_release(DomainGroup *g); /* one that does not count is not to come any more */
/* n pods come (or go, below 0) in this domain. */
void domain_group_count(DomainGroup *g, uint32_t domain, int n);
/* The node, with so many pods that count, leaves its domain, or comes back. */
void domain_group_drop_node(DomainGroup *g, uint32_t node, uint32_t domain, int32_t n_pods);
void domain_group_restore_node(DomainGroup *g, uint32_t node, uint32_t domain, int32_t n_pods);
/* As kube-scheduler has it: pods in the domain, and one more if it counts itself, beyond the domain with the fewest. */
bool domain_group_allows(const DomainGroup *g, uint32_t domain);
