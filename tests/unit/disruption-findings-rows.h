/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The table of test-disruption-findings.c. ' stands for ". */

#include "disruption-gate.h"
#include "disruption-rig.h"

typedef enum Ask { ASK_GATE, ASK_BUDGETS, ASK_EXPIRY, ASK_DRIFT, ASK_EMPTINESS, ASK_CONSOLIDATION } Ask;

typedef struct FindingRow {
        const char *what;
        const char *meta, *spec, *ready; /* of node a, as in RigNode */
        const char *spec_b, *ready_b;    /* of node b, which is another node of the pool */
        const char *pool;                /* as in RigCluster */
        RigPod pods[4];
        const char *others[4];
        const char *unknown;             /* kind that was not read; NULL: all were */
        GateFlags flags;
        Ask ask;                         /* which function is called; ASK_GATE: gate_node() */
        DisruptionReason reason;         /* of ASK_BUDGETS */
        bool no_pool, lacks_waiting;
        bool takes_b;                    /* the plan has chosen node b */
        const char *want;                /* CODE [OBJECT] +SECONDS: TEXT; NULL: nothing is found */
} FindingRow;

#define LABELS "'labels':{'pool':'a'}"
#define ANNOTATED(a) LABELS ",'annotations':{" a "}"
#define OWNED "'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'o','uid':'u','controller':true}]"
#define OPTS_OUT(a) "'annotations':{" a "}," OWNED
#define OTHER_POOL(more) "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodePool','metadata':{'name':'z'" more \
        "},'spec':{'selector':{'matchLabels':{'pool':'a'}}}}"
#define LEASE_NAMESPACE(paused) \
        "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'vesper-system','annotations':{'vesper.sh/paused':'" paused "'}}}"
#define PAUSED_POOL(value) \
        "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodePool','metadata':{'name':'a','annotations':{'vesper.sh/paused':'" value \
        "'}},'spec':{'selector':{'matchLabels':{'pool':'a'}}}}"
#define STARTUP "'template':{'startupTaints':[{'key':'s','value':'v','effect':'NoSchedule'}]}"
#define PROMISED(name) { name, NULL, "1", NULL, NULL, "'phase':'Pending','nominatedNodeName':'a'" }
#define NDB(more) \
        "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'nb'}," \
        "'spec':{'selector':{'matchLabels':{'pool':'a'}}," more "}}"

#define CLAIM(meta, spec, status) \
        "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c'," meta "},'spec':{" spec \
        "},'status':{'nodeUID':'u-a'" status "}}"
#define CLAIM_SAYS(type, status) \
        CLAIM("'creationTimestamp':'" RIG_OLD "'", "", ",'conditions':[{'type':'" type "','status':'" status \
              "','lastTransitionTime':'2027-01-15T07:00:00Z'}]")

static const FindingRow finding_rows[] = {
        /* which pool it is of */
        { .what = "a node of a pool" },
        { .what = "no pool", .no_pool = true,
          .want = "NOT_MANAGED: it is not managed: no NodePool selects it" },
        { .what = "no pool, and that is not asked", .no_pool = true, .flags = GATE_UNMANAGED_TOO },
        { .what = "pools that were not read", .no_pool = true, .unknown = "nodepools",
          .want = "NOT_MANAGED: it is not managed: NodePools are not known" },
        { .what = "a pool that selects others", .meta = "'labels':{'pool':'b'}",
          .want = "NOT_MANAGED: it is not managed: no NodePool selects it" },
        { .what = "two pools", .others = { OTHER_POOL("") },
          .want = "NOT_MANAGED: it is not managed: more than one NodePool selects it" },
        { .what = "two pools, one of which is being deleted",
          .others = { OTHER_POOL(",'deletionTimestamp':'" RIG_NOW "'") } },
        { .what = "unmanaged", .meta = ANNOTATED("'vesper.sh/unmanaged':'true'"),
          .want = "NOT_MANAGED: it is not managed: annotation vesper.sh/unmanaged says so" },
        { .what = "not unmanaged", .meta = ANNOTATED("'vesper.sh/unmanaged':'false'") },
        { .what = "a pool that nobody can read", .pool = "'disruption':{'budgets':[],'drift':'Sometimes'}",
          .want = "POOL_INVALID [nodepool a]: NodePool a cannot be understood: spec.disruption.drift is none of its choices" },
        { .what = "a paused pool", .no_pool = true, .others = { PAUSED_POOL("true") },
          .want = "PAUSED [nodepool a]: removals of NodePool a are paused" },
        { .what = "a pool that is not paused", .no_pool = true, .others = { PAUSED_POOL("false") } },
        { .what = "all are paused", .others = { LEASE_NAMESPACE("true") },
          .want = "PAUSED: all removals are paused" },
        { .what = "all are not paused", .others = { LEASE_NAMESPACE("false") } },
        { .what = "the pool, and all", .no_pool = true,
          .others = { PAUSED_POOL("true"), LEASE_NAMESPACE("true") },
          .want = "PAUSED [nodepool a]: removals of NodePool a are paused" },
        { .what = "all are paused, and no pool is asked", .others = { LEASE_NAMESPACE("true") },
          .flags = GATE_UNMANAGED_TOO },
        { .what = "all are paused, and it is of no pool", .no_pool = true,
          .others = { LEASE_NAMESPACE("true") },
          .want = "NOT_MANAGED: it is not managed: no NodePool selects it" },

        /* the node */
        { .what = "being deleted", .meta = LABELS ",'deletionTimestamp':'" RIG_NOW "'",
          .want = "DELETING: it is being deleted already" },
        { .what = "not Ready", .ready = "False", .want = "NOT_INITIALISED: it is not Ready" },
        { .what = "nobody knows whether it is Ready", .ready = "Unknown",
          .want = "NOT_INITIALISED: it is not Ready" },
        { .what = "the cloud has not seen it yet",
          .spec = "'taints':[{'key':'node.cloudprovider.kubernetes.io/uninitialized','value':'true','effect':'NoSchedule'}]",
          .want = "NOT_INITIALISED: it has a taint of nodes that are not yet initialized" },
        { .what = "a taint of its beginning", .pool = STARTUP,
          .spec = "'taints':[{'key':'s','value':'v','effect':'NoSchedule'}]",
          .want = "NOT_INITIALISED: it still has the taint s:NoSchedule, which spec.template.startupTaints of its pool says" },
        { .what = "a taint of its beginning, behind another", .pool = STARTUP,
          .spec = "'taints':[{'key':'t','effect':'NoExecute'},{'key':'s','value':'v','effect':'NoSchedule'}]",
          .want = "NOT_INITIALISED: it still has the taint s:NoSchedule, which spec.template.startupTaints of its pool says" },
        { .what = "another effect", .pool = STARTUP,
          .spec = "'taints':[{'key':'s','value':'v','effect':'NoExecute'}]" },
        { .what = "the same taint without such a pool",
          .spec = "'taints':[{'key':'s','value':'v','effect':'NoSchedule'}]" },
        { .what = "a taint of its beginning, and not Ready", .pool = STARTUP,
          .spec = "'taints':[{'key':'s','value':'v','effect':'NoSchedule'}]", .ready = "False",
          .want = "NOT_INITIALISED: it is not Ready" },
        { .what = "opted out", .meta = ANNOTATED("'karpenter.sh/do-not-disrupt':'true'"),
          .want = "NODE_OPT_OUT: the node has opted out by annotation karpenter.sh/do-not-disrupt" },
        { .what = "opted out by another value", .meta = ANNOTATED("'karpenter.sh/do-not-disrupt':'yes'") },
        { .what = "opted out of consolidation", .meta = ANNOTATED("'vesper.sh/do-not-consolidate':'true'"),
          .flags = GATE_FOR_CONSOLIDATION,
          .want = "NODE_OPT_OUT: the node has opted out by annotation vesper.sh/do-not-consolidate" },
        { .what = "opted out of consolidation alone",
          .meta = ANNOTATED("'vesper.sh/do-not-consolidate':'true'") },
        { .what = "opted out of consolidation by Karpenter's name",
          .meta = ANNOTATED("'karpenter.sh/do-not-consolidate':'true'"), .flags = GATE_FOR_CONSOLIDATION,
          .want = "NODE_OPT_OUT: the node has opted out by annotation karpenter.sh/do-not-consolidate" },
        { .what = "opted out of a scale-down",
          .meta = ANNOTATED("'cluster-autoscaler.kubernetes.io/scale-down-disabled':'true'"),
          .flags = GATE_FOR_CONSOLIDATION,
          .want = "NODE_OPT_OUT: the node has opted out by annotation cluster-autoscaler.kubernetes.io/scale-down-disabled" },

        /* pods that wait for it */
        { .what = "promised to one", .pods = { PROMISED("w") }, .flags = GATE_FOR_GOOD,
          .want = "NOMINATED [pod x/w]: it is promised to pending pod x/w (status.nominatedNodeName)" },
        { .what = "promised to three", .pods = { PROMISED("w"), PROMISED("v"), PROMISED("u") },
          .flags = GATE_FOR_GOOD,
          .want = "NOMINATED [pod x/u]: it is promised to pending pod x/u (status.nominatedNodeName), and to 2 more" },
        { .what = "promised, and another comes in its place", .pods = { PROMISED("w") } },
        { .what = "not all are known that wait", .lacks_waiting = true, .flags = GATE_FOR_GOOD,
          .want = "NOMINATED: not all pods are known that were evicted in the last minute, and their successors may need it" },
        { .what = "not all are known that wait, and it is promised", .pods = { PROMISED("w") },
          .lacks_waiting = true, .flags = GATE_FOR_GOOD,
          .want = "NOMINATED: not all pods are known that were evicted in the last minute, and their successors may "
                  "need it; NOMINATED [pod x/w]: it is promised to pending pod x/w (status.nominatedNodeName)" },

        /* its pods */
        { .what = "a pod that opted out",
          .pods = { { "p", "a", "1", OPTS_OUT("'vesper.sh/do-not-evict':'true'") } },
          .want = "POD_OPT_OUT [pod x/p]: pod x/p has opted out by vesper.sh/do-not-evict" },
        { .what = "a pod that opted out for a time",
          .pods = { { "p", "a", "1", OPTS_OUT("'karpenter.sh/do-not-disrupt':'1000h'") } },
          .want = "POD_OPT_OUT [pod x/p] +2361600s: pod x/p has opted out by karpenter.sh/do-not-disrupt" },
        { .what = "a pod that opted out for a time that is over",
          .pods = { { "p", "a", "1", OPTS_OUT("'karpenter.sh/do-not-disrupt':'100h'") } } },
        { .what = "a pod that opted out, and may wait",
          .pods = { { "p", "a", "1", OPTS_OUT("'vesper.sh/do-not-evict':'true'") } },
          .flags = GATE_PODS_MAY_WAIT },
        { .what = "a pod that opted out, by force",
          .pods = { { "p", "a", "1", OPTS_OUT("'vesper.sh/do-not-evict':'true'") } },
          .flags = GATE_BY_FORCE },
        { .what = "a pod of its own", .pods = { { "p", "a", "1", "'labels':{}" } },
          .pool = "'disruption':{'nakedPods':'Block'}",
          .want = "NAKED_POD [pod x/p]: pod x/p has no controller that would make it anew, and the pool says nakedPods: Block" },
        { .what = "a pod of its own, which may be lost", .pods = { { "p", "a", "1", "'labels':{}" } },
          .pool = "'disruption':{'nakedPods':'Evict'}" },
        { .what = "a pod of its own, and no pool is asked", .pods = { { "p", "a", "1", "'labels':{}" } },
          .pool = "'disruption':{'nakedPods':'Block'}", .flags = GATE_UNMANAGED_TOO },
        { .what = "a pod of its own that has ended",
          .pods = { { "p", "a", "1", "'labels':{}", NULL, "'phase':'Failed'" } },
          .pool = "'disruption':{'nakedPods':'Block'}" },
        { .what = "a budget that allows one", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':1") } },
        { .what = "a budget that allows none", .pods = { { "p1", "a", "1" }, { "p2", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0") },
          .want = "PDB_BLOCKS [pdb x/x]: pdb x/x prevents pod evictions" },
        { .what = "a budget that allows none, and the pod may wait", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0") }, .flags = GATE_PODS_MAY_WAIT },
        { .what = "a budget that allows none, and the pod does not run yet",
          .pods = { { "p", "a", "1", NULL, NULL, "'phase':'Pending'" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0") } },
        { .what = "a budget of another app", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "q", "'disruptionsAllowed':0") } },
        { .what = "a budget of another namespace", .pods = { { "p", "a", "1" } },
          .others = { "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'namespace':'y',"
            "'name':'x'},'spec':{'selector':{'matchLabels':{'app':'p'}}},'status':{'disruptionsAllowed':0}}" } },
        { .what = "a budget that can allow none", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0,'desiredHealthy':3,'expectedPods':3") },
          .want = "PDB_IMPOSSIBLE [pdb x/x]: pdb x/x can never allow an eviction: it wants 3 of 3 pods healthy" },
        { .what = "a budget that can allow one of four", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0,'desiredHealthy':3,'expectedPods':4") },
          .want = "PDB_BLOCKS [pdb x/x]: pdb x/x prevents pod evictions" },
        { .what = "a budget that could allow none as it was before", .pods = { { "p", "a", "1" } },
          .others = { "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','metadata':{'namespace':'x','name':'x','generation':2},'spec':{"
                      "'selector':{'matchLabels':{'app':'p'}}},'status':{'observedGeneration':1,'disruptionsAllowed':0,"
                      "'desiredHealthy':3,'expectedPods':3}}" },
          .want = "PDB_BLOCKS [pdb x/x]: pdb x/x prevents pod evictions" },
        { .what = "a budget of no pods yet", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0,'desiredHealthy':0,'expectedPods':0") },
          .want = "PDB_BLOCKS [pdb x/x]: pdb x/x prevents pod evictions" },
        { .what = "two budgets, both with room", .pods = { { "p", "a", "1" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':1"),
                  RIG_PDB("y", "p", "'disruptionsAllowed':1") },
          .want = "MULTI_PDB [pod x/p]: pod x/p is selected by 2 PodDisruptionBudgets, of which the API server evicts none: x, y" },
        { .what = "two budgets, and the pod does not run yet",
          .pods = { { "p", "a", "1", NULL, NULL, "'phase':'Pending'" } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':1"), RIG_PDB("y", "p", "'disruptionsAllowed':1") } },
        { .what = "a pod that opted out, under a budget",
          .pods = { { "p", "a", "1", "'labels':{'app':'p'}," OPTS_OUT("'vesper.sh/do-not-evict':'true'") } },
          .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0") },
          .want = "POD_OPT_OUT [pod x/p]: pod x/p has opted out by vesper.sh/do-not-evict" },
        { .what = "budgets that were not read", .pods = { { "p", "a", "1" } },
          .unknown = "poddisruptionbudgets",
          .want = "SNAPSHOT_INCOMPLETE: PodDisruptionBudgets were not read, and any of its pods may be held by one" },
        { .what = "budgets that were not read, and no pod is there", .unknown = "poddisruptionbudgets" },
        { .what = "budgets that were not read, and pods may wait", .pods = { { "p", "a", "1" } },
          .unknown = "poddisruptionbudgets", .flags = GATE_PODS_MAY_WAIT },
        { .what = "a pod of a DaemonSet that opted out",
          .pods = { { "p", "a", "1",
                  "'annotations':{'vesper.sh/do-not-evict':'true'},'ownerReferences':[{'apiVersion':'apps/v1',"
                  "'kind':'DaemonSet','name':'o','uid':'u','controller':true}]"
                  } },
          .pool = "'disruption':{'nakedPods':'Block'}", .others = { RIG_PDB("x", "p", "'disruptionsAllowed':0") } },

        /* budgets of its pool, of two nodes */
#define OF_BUDGETS(p, r) .pool = "'disruption':{" p "}", .ask = ASK_BUDGETS, .reason = (r)
        { .what = "10 % of two, rounded up", OF_BUDGETS("", DISRUPTION_EMPTY) },
        { .what = "10 % of two, and one is chosen", OF_BUDGETS("", DISRUPTION_EMPTY), .takes_b = true,
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 1 of 2 nodes for Empty, and 1 are unavailable or chosen already" },
        { .what = "10 % of two, and one is cordoned", OF_BUDGETS("", DISRUPTION_EMPTY),
          .spec_b = "'unschedulable':true",
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 1 of 2 nodes for Empty, and 1 are unavailable or chosen already" },
        { .what = "10 % of two, and it is cordoned itself", OF_BUDGETS("", DISRUPTION_EMPTY),
          .spec = "'unschedulable':true" },
        { .what = "10 % of two, and it is not Ready itself", OF_BUDGETS("", DISRUPTION_EMPTY),
          .ready = "False" },
        { .what = "none", OF_BUDGETS("'budgets':[{'nodes':0}]", DISRUPTION_DRIFTED),
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 0 of 2 nodes for Drifted, and 0 are unavailable or chosen already" },
        { .what = "none, though it is cordoned itself", OF_BUDGETS("'budgets':[{'nodes':0}]", DISRUPTION_DRIFTED),
          .spec = "'unschedulable':true",
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 0 of 2 nodes for Drifted, and 1 are unavailable or chosen already" },
        { .what = "10 % of two, and one is not Ready", OF_BUDGETS("", DISRUPTION_EMPTY), .ready_b = "False",
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 1 of 2 nodes for Empty, and 1 are unavailable or chosen already" },
        { .what = "none, before more", OF_BUDGETS("'budgets':[{'nodes':0},{'nodes':4}]", DISRUPTION_DRIFTED),
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 0 of 2 nodes for Drifted, and 0 are unavailable or chosen already" },
        { .what = "none, behind more", OF_BUDGETS("'budgets':[{'nodes':4},{'nodes':0}]", DISRUPTION_DRIFTED),
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 0 of 2 nodes for Drifted, and 0 are unavailable or chosen already" },
        { .what = "none for another reason", OF_BUDGETS("'budgets':[{'nodes':0,'reasons':['Empty']}]", DISRUPTION_DRIFTED) },
        { .what = "one at a time, and none goes", OF_BUDGETS("'budgets':[],'maxConcurrent':1", DISRUPTION_EMPTY) },
        { .what = "one at a time, and one is chosen", OF_BUDGETS("'budgets':[],'maxConcurrent':1", DISRUPTION_EMPTY),
          .takes_b = true,
          .want = "BUDGET [nodepool a]: NodePool a lets 1 go at once (maxConcurrent), and 1 do" },
        { .what = "one at a time, and it is cordoned itself", OF_BUDGETS("'budgets':[],'maxConcurrent':1", DISRUPTION_EMPTY),
          .takes_b = true, .spec = "'unschedulable':true",
          .want = "BUDGET [nodepool a]: NodePool a lets 1 go at once (maxConcurrent), and 1 do" },
        { .what = "one at a time, and it is being deleted", OF_BUDGETS("'budgets':[],'maxConcurrent':1", DISRUPTION_EMPTY),
          .meta = LABELS ",'deletionTimestamp':'" RIG_NOW "'",
          .want = "BUDGET [nodepool a]: NodePool a lets 1 go at once (maxConcurrent), and 1 do" },
        { .what = "one at a time by both", OF_BUDGETS("'budgets':[{'nodes':1}],'maxConcurrent':1", DISRUPTION_EMPTY),
          .takes_b = true,
          .want = "BUDGET [nodepool a]: budgets of NodePool a allow 1 of 2 nodes for Empty, and 1 are unavailable or chosen already" },
        { .what = "a schedule that nobody can read", OF_BUDGETS("'budgets':[{'nodes':7,'schedule':'@daily',"
            "'duration':'1h','timeZone':'Mars/Olympus'}]", DISRUPTION_EMPTY),
          .want = "BUDGET [nodepool a]: a schedule or timeZone of NodePool a cannot be read, so that nothing goes" },
        { .what = "a schedule that nobody can read, for another reason",
          OF_BUDGETS("'budgets':[{'nodes':7,'schedule':'@daily','duration':'1h','timeZone':'Mars/Olympus',"
            "'reasons':['Drifted']}]", DISRUPTION_EMPTY) },
        { .what = "a window that nobody can read", OF_BUDGETS("'budgets':[],'windows':[{'schedule':'@daily',"
            "'duration':'1h','timeZone':'Mars/Olympus'}]", DISRUPTION_EMPTY),
          .want = "BUDGET [nodepool a]: a schedule or timeZone of NodePool a cannot be read, so that nothing goes" },
        { .what = "an unreadable one behind one that is", OF_BUDGETS("'budgets':[{'nodes':7,'schedule':'@daily',"
            "'duration':'1h','timeZone':'Mars/Olympus'},{'nodes':5}]", DISRUPTION_EMPTY),
          .want = "BUDGET [nodepool a]: a schedule or timeZone of NodePool a cannot be read, so that nothing goes" },
        { .what = "a window that is open", OF_BUDGETS("'budgets':[],'windows':[{'schedule':'0 7 * * *','duration':'2h'}]", DISRUPTION_EMPTY) },
        { .what = "a window that is shut", OF_BUDGETS("'budgets':[],'windows':[{'schedule':'0 9 * * *','duration':'2h'}]", DISRUPTION_EMPTY),
          .want = "OUTSIDE_WINDOW [nodepool a]: no window of NodePool a is open for Empty" },
        { .what = "a window that is shut, and it is cordoned itself",
          OF_BUDGETS("'budgets':[],'windows':[{'schedule':'0 9 * * *','duration':'2h'}]", DISRUPTION_EMPTY),
          .spec = "'unschedulable':true",
          .want = "OUTSIDE_WINDOW [nodepool a]: no window of NodePool a is open for Empty" },
        { .what = "a window that is open, and one that is shut",
          OF_BUDGETS("'budgets':[],'windows':[{'schedule':'0 7 * * *','duration':'2h'},{'schedule':'0 9 * * *',"
            "'duration':'2h'}]", DISRUPTION_EMPTY) },

        /* NodeDisruptionBudgets */
        { .what = "room for one", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'maxUnavailable':1") } },
        { .what = "room for one, and one is chosen", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'maxUnavailable':1") }, .takes_b = true,
          .want = "NODE_BUDGET [nodedisruptionbudget nb]: NodeDisruptionBudget nb (maxUnavailable 1) has no room: "
                  "2 of its 2 nodes are available, and 1 chosen already" },
        { .what = "room for one, and it is not Ready itself", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'maxUnavailable':1") }, .ready = "False" },
        { .what = "room for none", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'minAvailable':2") },
          .want = "NODE_BUDGET [nodedisruptionbudget nb]: NodeDisruptionBudget nb (minAvailable 2) has no room: "
                  "2 of its 2 nodes are available, and 0 chosen already" },
        { .what = "room for half", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'minAvailable':'50%'") } },
        { .what = "room for half, and one is chosen", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'minAvailable':'50%'") }, .takes_b = true,
          .want = "NODE_BUDGET [nodedisruptionbudget nb]: NodeDisruptionBudget nb (minAvailable 50%) has no room: "
                  "2 of its 2 nodes are available, and 1 chosen already" },
        { .what = "room for one, and the other is not Ready", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .ready_b = "False", .others = { NDB("'maxUnavailable':1") },
          .want = "NODE_BUDGET [nodedisruptionbudget nb]: NodeDisruptionBudget nb (maxUnavailable 1) has no room: "
                  "1 of its 2 nodes are available, and 0 chosen already" },
        { .what = "room for one, and the other is cordoned", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .spec_b = "'unschedulable':true", .others = { NDB("'maxUnavailable':1") } },
        { .what = "room for none, and it is being deleted", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .meta = LABELS ",'deletionTimestamp':'" RIG_NOW "'", .others = { NDB("'minAvailable':2") } },
        { .what = "room for none, of other nodes", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'nb'},'spec':{"
                  "'selector':{'matchLabels':{'pool':'z'}},'minAvailable':2}}" } },
        { .what = "room for one, and the other has it", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'maxUnavailable':1},'status':{'disruptedNodes':[{'name':'b','uid':'u-b'}]") },
          .want = "NODE_BUDGET [nodedisruptionbudget nb]: NodeDisruptionBudget nb (maxUnavailable 1) has no room: "
                  "1 of its 2 nodes are available, and 0 chosen already" },
        { .what = "room for one, and it has that itself", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'maxUnavailable':1},'status':{'disruptedNodes':[{'name':'a','uid':'u-a'}]") } },
        { .what = "room for one, and a node that is gone has it", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .others = { NDB("'maxUnavailable':1},'status':{'disruptedNodes':[{'name':'c','uid':'u-c'}]") } },
        { .what = "they were not read", OF_BUDGETS("'budgets':[]", DISRUPTION_EMPTY),
          .unknown = "nodedisruptionbudgets",
          .want = "SNAPSHOT_INCOMPLETE: NodeDisruptionBudgets were not read, and one may select it" },
        { .what = "no pool, and room for none", .no_pool = true, .ask = ASK_BUDGETS,
          .others = { NDB("'minAvailable':2") },
          .want = "NODE_BUDGET [nodedisruptionbudget nb]: NodeDisruptionBudget nb (minAvailable 2) has no room: "
                  "2 of its 2 nodes are available, and 0 chosen already" },

        /* expiration: it is 2027-01-15T08:00:00Z, and the nodes came on the first at midnight, 344 h ago */
#define EXPIRES(d) .pool = "'disruption':{'budgets':[]," d "}", .ask = ASK_EXPIRY
        { .what = "no expiration", .ask = ASK_EXPIRY,
          .want = "DISABLED: spec.disruption.expireAfter of its pool is not set" },
        { .what = "it expires in time", EXPIRES("'expireAfter':'720h'"),
          .want = "NOT_EXPIRED +1278544s: it expires at 2027-01-30T03:09:04Z" },
        { .what = "it has expired", EXPIRES("'expireAfter':'240h'"),
          .want = "due -449455s: expired since 2027-01-10T03:09:04Z" },
        { .what = "it has expired by the age of its claim", EXPIRES("'expireAfter':'720h'"),
          .others = { CLAIM("'creationTimestamp':'2026-11-01T00:00:00Z'", "", "") },
          .want = "due -3991855s: expired since 2026-11-30T03:09:04Z" },
        { .what = "its claim is younger", EXPIRES("'expireAfter':'240h'"),
          .others = { CLAIM("'creationTimestamp':'2027-01-10T00:00:00Z'", "", "") },
          .want = "due -449455s: expired since 2027-01-10T03:09:04Z" },
        { .what = "a claim of another node", EXPIRES("'expireAfter':'720h'"),
          .others = { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c',"
            "'creationTimestamp':'2026-11-01T00:00:00Z'},'spec':{},'status':{'nodeUID':'u-b'}}"
                  }, .want = "NOT_EXPIRED +1278544s: it expires at 2027-01-30T03:09:04Z" },
        { .what = "a short life, spread over nothing", EXPIRES("'expireAfter':'9s'"),
          .want = "due -1238391s: expired since 2027-01-01T00:00:08Z" },
        { .what = "past the hard deadline", EXPIRES("'expireAfter':'240h','expireHardAfter':'343h'"),
          .want = "due -449455s, by force: past its hard deadline since 2027-01-15T07:00:00Z" },
        { .what = "at the hard deadline", EXPIRES("'expireAfter':'240h','expireHardAfter':'344h'"),
          .want = "due -449455s, by force: past its hard deadline since 2027-01-15T08:00:00Z" },
        { .what = "before the hard deadline", EXPIRES("'expireAfter':'240h','expireHardAfter':'345h'"),
          .want = "due -449455s: expired since 2027-01-10T03:09:04Z" },
        { .what = "a hard deadline alone", EXPIRES("'expireHardAfter':'343h'"),
          .want = "due -3600s, by force: past its hard deadline since 2027-01-15T07:00:00Z" },
        { .what = "a hard deadline alone, to come", EXPIRES("'expireHardAfter':'345h'"),
          .want = "DISABLED: spec.disruption.expireAfter of its pool is not set" },

        /* drift */
#define DRIFTS(t) .pool = "'disruption':{'budgets':[],'drift':'Auto'},'template':{" t "}", .ask = ASK_DRIFT
        { .what = "no drift", .pool = "'template':{'labels':{'tier':'2'}}", .ask = ASK_DRIFT,
          .want = "DISABLED: spec.disruption.drift of its pool is not Auto" },
        { .what = "as it should be", DRIFTS("'labels':{'pool':'a'}"),
          .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "a label that it lacks", DRIFTS("'labels':{'pool':'a','tier':'2'}"),
          .want = "due -1238400s: it has no label tier, and spec.template says '2'" },
        { .what = "a label of another value", DRIFTS("'labels':{'tier':'2'}"),
          .meta = "'labels':{'pool':'a','tier':'1'}",
          .want = "due -1238400s: label tier is '1', and spec.template says '2'" },
        { .what = "an annotation that it lacks", DRIFTS("'annotations':{'vesper.sh/hash':'2'}"),
          .want = "due -1238400s: it has no annotation vesper.sh/hash, and spec.template says '2'" },
        { .what = "the second annotation", DRIFTS("'annotations':{'others.io/x':'1','vesper.sh/hash':'2'}"),
          .meta = ANNOTATED("'vesper.sh/hash':'1'"),
          .want = "due -1238400s: annotation vesper.sh/hash is '1', and spec.template says '2'" },
        { .what = "its annotation", DRIFTS("'annotations':{'vesper.sh/hash':'2'}"),
          .meta = ANNOTATED("'vesper.sh/hash':'2'"), .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "a taint that it lacks", DRIFTS("'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]"),
          .spec = "'taints':[{'key':'k','value':'w','effect':'NoSchedule'}]",
          .want = "due -1238400s: it has no taint k=v:NoSchedule, which spec.template says" },
        { .what = "its taint", DRIFTS("'taints':[{'key':'k','value':'v','effect':'NoSchedule'}]"),
          .spec = "'taints':[{'key':'k','value':'v','effect':'NoSchedule'},{'key':'l','effect':'NoSchedule'}]",
          .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "a required label that it lacks", DRIFTS("'requirements':[{'key':'gen','operator':'In','values':['3','4']}]"),
          .want = "due -1238400s: it has no label gen, and spec.template requires In 3, 4" },
        { .what = "a required label of another value", DRIFTS("'requirements':[{'key':'gen','operator':'Gt','values':['3']}]"),
          .meta = "'labels':{'pool':'a','gen':'3'}",
          .want = "due -1238400s: label gen is '3', and spec.template requires Gt 3" },
        { .what = "a required label", DRIFTS("'requirements':[{'key':'gen','operator':'Gt','values':['3']}]"),
          .meta = "'labels':{'pool':'a','gen':'4'}", .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "the second requirement", DRIFTS("'requirements':[{'key':'pool','operator':'Exists'},{'key':'pool','operator':'DoesNotExist'}]"),
          .want = "due -1238400s: label pool is 'a', and spec.template requires DoesNotExist" },
        { .what = "another kubelet", DRIFTS("'nodeInfo':{'kubeletVersion':'v1.34.0'}"),
          .want = "due -1238400s: its kubelet is v1.33.1, and spec.template.nodeInfo says v1.34.0" },
        { .what = "its kubelet", DRIFTS("'nodeInfo':{'kubeletVersion':'v1.33.1'}"),
          .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "another system", DRIFTS("'nodeInfo':{'osImage':'Debian GNU/Linux 13'}"),
          .want = "due -1238400s: its operating system is Debian GNU/Linux 12, and spec.template.nodeInfo says Debian GNU/Linux 13" },
        { .what = "another grace", DRIFTS("'terminationGracePeriod':'1h'"),
          .others = { CLAIM("'creationTimestamp':'" RIG_OLD "'", "'terminationGracePeriod':'2h'", "") },
          .want = "due -1238400s: its claim has terminationGracePeriod 2h, and spec.template says 1h" },
        { .what = "the same grace", DRIFTS("'terminationGracePeriod':'1h'"),
          .others = { CLAIM("'creationTimestamp':'" RIG_OLD "'", "'terminationGracePeriod':'1h'", "") },
          .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "a grace, and no claim", DRIFTS("'terminationGracePeriod':'1h'"),
          .want = "NOT_DRIFTED: it is as its pool says" },
        { .what = "drifted since its claim says so", DRIFTS("'labels':{'tier':'2'}"),
          .others = { CLAIM_SAYS("Drifted", "True") },
          .want = "due -3600s: it has no label tier, and spec.template says '2'" },
        { .what = "drifted, and its claim does not say so yet", DRIFTS("'labels':{'tier':'2'}"),
          .others = { CLAIM_SAYS("Drifted", "False") },
          .want = "due -1238400s: it has no label tier, and spec.template says '2'" },

        /* emptiness */
#define EMPTIES(after) .pool = "'disruption':{'budgets':[],'emptyAfter':'" after "'}", .ask = ASK_EMPTINESS
        { .what = "no emptiness", .ask = ASK_EMPTINESS,
          .want = "DISABLED: spec.disruption.emptyAfter of its pool is not set" },
        { .what = "empty for long enough", EMPTIES("344h") },
        { .what = "not empty for long enough", EMPTIES("345h"),
          .want = "QUIET_PERIOD +3600s: it has been empty since 2027-01-01T00:00:00Z or later, and may go at 2027-01-15T09:00:00Z" },
        { .what = "its claim says since when it is empty", EMPTIES("2h"),
          .others = { CLAIM_SAYS("Empty", "True") },
          .want = "QUIET_PERIOD +3600s: it has been empty since 2027-01-15T07:00:00Z, and may go at 2027-01-15T09:00:00Z" },
        { .what = "its claim says since when it is empty, long enough ago", EMPTIES("1h"),
          .others = { CLAIM_SAYS("Empty", "True") } },
        { .what = "its claim says that it is not empty", EMPTIES("1h"),
          .others = { CLAIM_SAYS("Empty", "False") },
          .want = "QUIET_PERIOD +3600s: it has been empty since 2027-01-15T08:00:00Z, and may go at 2027-01-15T09:00:00Z" },
        { .what = "its claim says that it is not empty, and now will do", EMPTIES("0s"),
          .others = { CLAIM_SAYS("Empty", "False") } },
        { .what = "its claim says that it is empty, and not since when", EMPTIES("345h"),
          .others = { CLAIM("'creationTimestamp':'" RIG_OLD "'", "", ",'conditions':[{'type':'Empty','status':'True'}]") },
          .want = "QUIET_PERIOD +3600s: it has been empty since 2027-01-01T00:00:00Z or later, and may go at 2027-01-15T09:00:00Z" },
        { .what = "it is older than it is Ready", EMPTIES("345h"), .meta = LABELS ",'creationTimestamp':'2026-12-01T00:00:00Z'",
          .want = "QUIET_PERIOD +3600s: it has been empty since 2027-01-01T00:00:00Z or later, and may go at 2027-01-15T09:00:00Z" },
        { .what = "it was Ready before it came", EMPTIES("1h"), .meta = LABELS ",'creationTimestamp':'2027-01-15T07:30:00Z'",
          .want = "QUIET_PERIOD +1800s: it has been empty since 2027-01-15T07:30:00Z or later, and may go at 2027-01-15T08:30:00Z" },
        { .what = "its claim does not know", EMPTIES("1h"), .others = { CLAIM_SAYS("Empty", "Unknown") } },
        { .what = "one pod", EMPTIES("1h"), .pods = { { "p", "a", "1" } },
          .want = "NOT_EMPTY: it runs 1 pod that would have to move" },
        { .what = "two pods", EMPTIES("1h"), .pods = { { "p", "a", "1" }, { "q", "a", "1" } },
          .want = "NOT_EMPTY: it runs 2 pods that would have to move" },
        { .what = "a pod that ended lately", EMPTIES("1h"),
          .pods = { { "p", "a", "1", "'creationTimestamp':'2027-01-15T07:30:00Z'," OWNED, NULL,
                  "'phase':'Succeeded'" } } },
        { .what = "a pod that began lately, and ended", EMPTIES("1h"),
          .pods = { { "p", "a", "1", "'creationTimestamp':'2027-01-15T05:30:00Z'," OWNED, NULL,
                  "'phase':'Succeeded','startTime':'2027-01-15T07:20:00Z'" } } },
        { .what = "a pod that is being deleted since lately", EMPTIES("1h"),
          .pods = { { "p", "a", "1",
                  "'deletionTimestamp':'2027-01-15T07:41:00Z','deletionGracePeriodSeconds':60," OWNED } },
          .want = "QUIET_PERIOD +2400s: it has been empty since 2027-01-15T07:40:00Z or later, and may go at 2027-01-15T08:40:00Z" },
        { .what = "a DaemonSet's pod that came lately", EMPTIES("1h"),
          .pods = { { "p", "a", "1",
                  "'creationTimestamp':'2027-01-15T07:30:00Z','ownerReferences':[{'apiVersion':'apps/v1',"
                  "'kind':'DaemonSet','name':'o','uid':'u','controller':true}]"
                  } } },
        { .what = "promised, and it would be empty", EMPTIES("1h"), .pods = { PROMISED("w") },
          .want = "NOMINATED [pod x/w]: it is promised to pending pod x/w (status.nominatedNodeName)" },
        { .what = "promised, and it is not empty", EMPTIES("1h"),
          .pods = { PROMISED("w"), { "p", "a", "1" } },
          .want = "NOT_EMPTY: it runs 1 pod that would have to move" },

        /* consolidation */
#define CONSOLIDATES(p) .pool = "'disruption':{'budgets':[],'consolidation':{" p "}}", .ask = ASK_CONSOLIDATION
        { .what = "no consolidation", .ask = ASK_CONSOLIDATION,
          .want = "DISABLED: spec.disruption.consolidation.policy of its pool is not set" },
        { .what = "it may go", CONSOLIDATES("'policy':'WhenUnderutilized'"), .pods = { { "p", "a", "1" } } },
        { .what = "empty nodes only, one pod", CONSOLIDATES("'policy':'WhenEmpty'"),
          .pods = { { "p", "a", "1" } },
          .want = "WHEN_EMPTY_ONLY: its pool consolidates empty nodes only, and it runs 1 pod that would have to move" },
        { .what = "empty nodes only, two pods", CONSOLIDATES("'policy':'WhenEmpty'"),
          .pods = { { "p", "a", "1" }, { "q", "a", "1" } },
          .want = "WHEN_EMPTY_ONLY: its pool consolidates empty nodes only, and it runs 2 pods that would have to move" },
        { .what = "empty nodes only, and it is", CONSOLIDATES("'policy':'WhenEmpty'") },
        { .what = "empty, and not for long enough", CONSOLIDATES("'policy':'WhenEmpty','after':'345h'"),
          .want = "QUIET_PERIOD +3600s: it has been empty since 2027-01-01T00:00:00Z or later, and may go at 2027-01-15T09:00:00Z" },
        { .what = "quiet, and not for long enough", CONSOLIDATES("'policy':'WhenUnderutilized','after':'345h'"),
          .pods = { { "p", "a", "1" } },
          .want = "QUIET_PERIOD +3600s: its pods changed, as far as is known, or it became Ready, "
                  "at 2027-01-01T00:00:00Z: it may go at 2027-01-15T09:00:00Z" },
        { .what = "quiet for just long enough", CONSOLIDATES("'policy':'WhenUnderutilized','after':'344h'"),
          .pods = { { "p", "a", "1" } } },
        { .what = "a pod came lately", CONSOLIDATES("'policy':'WhenUnderutilized','after':'1h'"),
          .pods = { { "p", "a", "1" }, { "q", "a", "1", "'creationTimestamp':'2027-01-15T07:30:00Z'," OWNED }
                  },
          .want = "QUIET_PERIOD +1800s: its pods changed, as far as is known, or it became Ready, "
                  "at 2027-01-15T07:30:00Z: it may go at 2027-01-15T08:30:00Z" },
        { .what = "a pod began lately", CONSOLIDATES("'policy':'WhenUnderutilized','after':'1h'"),
          .pods = { { "q", "a", "1", NULL, NULL, "'phase':'Running','startTime':'2027-01-15T07:10:00Z'" }, {
                  "p", "a", "1" } },
          .want = "QUIET_PERIOD +600s: its pods changed, as far as is known, or it became Ready, "
                  "at 2027-01-15T07:10:00Z: it may go at 2027-01-15T08:10:00Z" },
        { .what = "opted out of that", CONSOLIDATES("'policy':'WhenUnderutilized'"),
          .meta = ANNOTATED("'vesper.sh/do-not-consolidate':'true'"),
          .want = "NODE_OPT_OUT: the node has opted out by annotation vesper.sh/do-not-consolidate" },
        { .what = "promised", CONSOLIDATES("'policy':'WhenUnderutilized'"),
          .pods = { PROMISED("w"), { "p", "a", "1" } },
          .want = "NOMINATED [pod x/w]: it is promised to pending pod x/w (status.nominatedNodeName)" },
};
