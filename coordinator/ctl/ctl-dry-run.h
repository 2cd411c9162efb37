/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `vesperctl drain` would do to one node, by the word of the API server: the cordon and the eviction of
 * each pod that is to go are sent with dryRun=All, so that permissions, budgets and webhooks are asked, and
 * nothing changes.
 *
 * Each pod is asked about by itself: a budget with room for one lets each of its pods pass, as it would one
 * after the other.
 */

#include "drain-plan.h"
#include "kube-client.h"
#include "string-util.h"

typedef enum DryRunVerdict {
        DRY_RUN_GOES,       /* the eviction would be accepted */
        DRY_RUN_IS_GOING,   /* it is being deleted already */
        DRY_RUN_LEFT_ALONE, /* DaemonSet, static, or finished */
        DRY_RUN_PROTECTED,  /* it opted out of drains, and is waited for */
        DRY_RUN_REFUSED,
        _DRY_RUN_VERDICT_MAX,
        _DRY_RUN_VERDICT_INVALID = -EINVAL,
} DryRunVerdict;

const char *dry_run_verdict_to_string(DryRunVerdict v); /* "Evicted", "Refused" */

typedef struct DryRunPod {
        char *ns, *name;
        DryRunVerdict verdict;
        const char *reason; /* static: "BlockedByPDB", "DaemonSet", the key of PROTECTED; "" */
        char *by;            /* what refuses; NULL: none */
        const char *by_kind; /* static: what that is, "budget" or "webhook" */
        char *message;       /* the server's or the webhook's words; NULL: none */
} DryRunPod;

typedef struct DryRunNode {
        char *name;
        char *error;  /* why nothing could be asked; else NULL */
        char *cordon; /* what would become of the cordon, in words */
        bool cordon_is_refused;
        DryRunPod *pods;
        size_t n_pods;
} DryRunNode;

bool dry_run_node_would_drain(const DryRunNode *n); /* the cordon is fine, and all of its pods would go */
/* A table with the node's line above it; not of one with an error. */
void dry_run_node_add_table(StrBuf *b, const DryRunNode *n);
/* An array of objects; NULL on ENOMEM. */
char *dry_run_json(const DryRunNode *const *nodes, size_t n);

typedef struct CtlDryRun CtlDryRun;

/* Once, from the loop. result: borrowed, until the dry run is freed. May free it as its last act. */
typedef void (*ctl_dry_run_done_t)(CtlDryRun *d, const DryRunNode *result, void *userdata);

int ctl_dry_run_new(KubeClient *c, const char *node, ProtectedPolicy policy, ctl_dry_run_done_t done,
                    void *userdata, CtlDryRun **ret);
CtlDryRun *ctl_dry_run_free(CtlDryRun *d);
DEFINE_FREEP(CtlDryRun, ctl_dry_run_free);
