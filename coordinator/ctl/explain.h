/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What holds a node now: objects in, causes out, in the order in which they have to be solved. Pure, and of that node's
 * objects alone: none of this grows with the cluster.
 *
 *      explain.c          the order; agent, queue, volumes, deadline
 *      explain-service.c  a node that is not being removed: who manages it, reboots, machines that are off
 *      explain-gates.c    what comes before its drain: leader, pauses, budgets of nodes
 *      explain-pods.c     its pods and their PodDisruptionBudgets
 *      explain-successor.c  the machine that takes its place, and the claim of one that is asked for
 *      explain-machine.c  what comes behind it: the cloud, and finalizers of others
 *      explain-text.c     for people, and as JSON
 *      explain-told.h     what the coordinator says of its going though nobody asked
 *      explain-fetch.c    which objects are read
 *
 * A node that is not being removed is held by nothing; then the first cause says who manages it.
 */

#include "ctl-status.h"
#include "explain-cause.h"

/* Each object is a reference of its own. What could not be read is absent, and `unknown` says why. */
typedef struct ExplainFacts {
        const char *node_name;             /* borrowed, from the caller or from `claims`; NULL: the claim that was asked for has no Node */
        const char *claim_name;            /* of the claim that was asked for by its own name; NULL: a Node was asked for; borrowed */
        const char *lease_ns, *lease_name; /* borrowed */
        KubeObject *node;                  /* NULL: there is none */
        ObjectList claims;                 /* that may be its */
        ObjectList replacements;           /* all claims, where the claim has a successor or is one, and `claims` are not all */
        KubeObject *new_node;              /* of the successor; NULL: there is none */
        ObjectList pools, budgets;         /* all of them; budgets: NodeDisruptionBudgets */
        ObjectList pods, pdbs;             /* bound to it; of their namespaces */
        ObjectList volumes;                /* VolumeAttachments: of any node */
        KubeObject *pause_ns;              /* the namespace of the Lease */
        KubeObject *webhook;               /* KubeWebhookConfiguration */
        char **missing_owners;             /* explain_owner_key() of DaemonSets that do not exist */
        bool service_is_missing;           /* that the webhook names */
        bool knows_pools, knows_pods, knows_pdbs;
        bool knows_claims;                 /* all of them: `claims` or `replacements` */
        char *leader;            /* as in CtlSnapshot */
        usec_t leader_seen_usec;
        usec_t lease_usec;
        char **unknown; /* sentences: what is not known, and why */
        usec_t now_usec; /* wall clock */
} ExplainFacts;

void explain_facts_done(ExplainFacts *f);

/* Returns "ns/name/uid" of an owner of a pod in this namespace. Free it; NULL on ENOMEM. */
char *explain_owner_key(const char *ns, const OwnerRef *o);

/* The NodeClaim of the node, or the one that was asked for; NULL: none is known. Borrowed. */
const KubeNodeClaim *explain_claim(const ExplainFacts *f);
/* The latest claim that takes the place of explain_claim(); NULL: there is none. Borrowed. */
const KubeNodeClaim *explain_successor_claim(const ExplainFacts *f);
/* Adds the causes to *ret, which must be empty. 0; -ENOENT: neither the Node nor a NodeClaim of it (or of that name) is there; -ENOMEM. */
int explain_make(const ExplainFacts *f, ExplainCauses *ret);
/* NULL on ENOMEM. */
char *explain_text(const ExplainFacts *f, const ExplainCauses *c);
char *explain_json(const ExplainFacts *f, const ExplainCauses *c);
