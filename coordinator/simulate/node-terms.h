/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which nodes a pod or a volume may be on: a NodeSelector of core/v1, that is an OR of terms, each an AND of requirements on
 * labels and on the Node's name. A term without requirements matches nothing; so do terms without a term. Rules of
 * k8s.io/component-helpers/scheduling/corev1/nodeaffinity: an absent label satisfies NotIn and DoesNotExist alone; Gt and Lt
 * compare whole numbers, and a label that is none satisfies neither. The API server takes values that no label can have; a
 * term with such a value matches nothing, whatever its operator.
 */

#include "kube-object.h"

typedef enum NodeOperator {
        NODE_IN,
        NODE_NOT_IN,
        NODE_EXISTS,
        NODE_DOES_NOT_EXIST,
        NODE_GT,
        NODE_LT,
        _NODE_OPERATOR_MAX,
} NodeOperator;

typedef struct NodeRequirement {
        const char *key;     /* interned; NULL: the Node's name */
        NodeOperator operator;
        const char **values; /* interned */
        size_t n_values;
        int64_t number;      /* of Gt and Lt */
} NodeRequirement;

typedef struct NodeTerm {
        NodeRequirement *requirements;
        size_t n_requirements;
        bool matches_nothing; /* one of its values cannot be a label's */
} NodeTerm;

typedef struct NodeTerms {
        NodeTerm *items;
        size_t n_items;
} NodeTerms;

/* array: nodeSelectorTerms. -EINVAL: what the API server would refuse; -ENOMEM. *ret is to be freed after a failure, too. */
int node_terms_parse(const Json *array, InternPool *pool, NodeTerms *ret);
/* One element of them. */
int node_term_parse(const Json *term, InternPool *pool, NodeTerm *ret);
/* allowedTopologies of a StorageClass: an array of {matchLabelExpressions: [{key, values}]}. */
int node_terms_parse_topologies(const Json *array, InternPool *pool, NodeTerms *ret);
void node_terms_done(NodeTerms *t, InternPool *pool);
void node_term_done(NodeTerm *t, InternPool *pool);

bool node_term_matches(const NodeTerm *t, const KeyValues *labels, const char *name);
bool node_terms_match(const NodeTerms *t, const KeyValues *labels, const char *name);
bool node_terms_ask_for_name(const NodeTerms *t);
size_t node_terms_size(const NodeTerms *t); /* how many requirements and values are compared with a node, at most */
