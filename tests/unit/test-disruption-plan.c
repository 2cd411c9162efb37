/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-rig.h"
#include "string-util.h"

typedef struct Case {
        const char *what;
        RigCluster cluster;
        const char *want;
} Case;

#define WHEN_EMPTY "'disruption':{'budgets':[],'consolidation':{'policy':'WhenEmpty'}}"
#define ALLOWS(n) "'disruptionsAllowed':" #n ",'currentHealthy':3,'desiredHealthy':2,'expectedPods':3"
#define NAKED "'labels':{'app':'naked'}"
#define OPTED_OUT \
        "'annotations':{'karpenter.sh/do-not-evict':'true'},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet'," \
        "'name':'p','uid':'o','controller':true}]"
#define PROMISED(node) "'phase':'Pending','nominatedNodeName':'" node "'"
#define EMPTY "'disruption':{'budgets':[],'emptyAfter':'0s'}"
#define DAEMON "'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'o','controller':true}]"

static const Case cases[] = {
        { "a pool that asks for nothing keeps its nodes",
          { { { "a", "4" }, { "b", "4" } }, {}, "" }, "a: DISABLED; b: DISABLED" },
        { "without a pool nothing is managed",
          { { { "a", "4" } }, {}, NULL }, "a: NOT_MANAGED" },
        { "nor what two pools select",
          { { { "a", "4" } }, {}, RIG_UNDERUTILIZED,
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodePool','metadata':{'name':'b'},'spec':{'selector':{'matchLabels':{'pool':'a'}}}}" } },
          "a: NOT_MANAGED" },
        { "empty for long enough",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "b", "3" } }, "'disruption':{'budgets':[],'emptyAfter':'5m'}" },
          "Emptiness/empty a; b: NOT_EMPTY" },
        { "DaemonSet pods do not make it less empty",
          { { { "a", "4" } }, { { "d", "a", "1", DAEMON } }, "'disruption':{'budgets':[],'emptyAfter':'0s'}" },
          "Emptiness/empty a" },
        { "not for long enough",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'1000h'}" }, "a: QUIET_PERIOD" },
        { "a budget of one lets one go, the older first",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'2026-12-01T00:00:00Z'" } }, {},
            "'disruption':{'emptyAfter':'0s'}" },
          "Emptiness/empty b; a: BUDGET" },
        { "WhenEmpty leaves alone what is not",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "b", "1" } }, WHEN_EMPTY },
          "Consolidation/empty a; b: WHEN_EMPTY_ONLY" },
        { "a node goes whose pods fit elsewhere: that with fewer pods",
          { { { "a", "4" }, { "b", "4" } }, { { "p1", "a", "1" }, { "p2", "a", "1" }, { "q", "b", "1" } }, RIG_UNDERUTILIZED },
          "Consolidation/single-node b q>a; a: DESTINATION" },
        { "two at once",
          { { { "a", "4" }, { "b", "4" }, { "c", "8" } },
            { { "p", "a", "1" }, { "q", "b", "1" }, { "r1", "c", "1" }, { "r2", "c", "1" } },
            RIG_UNDERUTILIZED },
          "Consolidation/multi-node a b p>c q>c; c: DESTINATION" },
        { "... but one, where a budget allows one",
          { { { "a", "4" }, { "b", "4" }, { "c", "8" } },
            { { "p", "a", "1" }, { "q", "b", "1" }, { "r1", "c", "1" }, { "r2", "c", "1" } },
            "'disruption':{'budgets':[{'nodes':1}],'consolidation':{'policy':'WhenUnderutilized'}}" },
          "Consolidation/single-node a p>b; b: DESTINATION BUDGET; c: BUDGET" },
        { "one that cannot go holds no other up",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } },
            { { "p", "a", "1", NULL, "'nodeSelector':{'only':'here'}" }, { "q", "b", "1" }, { "r1", "c", "1" }, { "r2", "c", "1" } },
            RIG_UNDERUTILIZED },
          "Consolidation/multi-node b c q>a r1>a r2>a; a: DESTINATION" },
        { "a pod that opted out keeps its node",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", OPTED_OUT }, { "q", "b", "4" } }, RIG_UNDERUTILIZED },
          "a: POD_OPT_OUT; b: NOT_PLACED" },
        { "a PodDisruptionBudget that allows nothing now does",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "4" } }, RIG_UNDERUTILIZED, { RIG_PDB("web", "p", ALLOWS(0)) } },
          "a: PDB_BLOCKS; b: NOT_PLACED" },
        { "one that never will, too",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "4" } }, RIG_UNDERUTILIZED,
            { RIG_PDB("web", "p", "'disruptionsAllowed':0,'currentHealthy':1,'desiredHealthy':1,'expectedPods':1") } },
          "a: PDB_IMPOSSIBLE; b: NOT_PLACED" },
        { "one that allows one does not",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "3" } }, RIG_UNDERUTILIZED, { RIG_PDB("web", "p", ALLOWS(1)) } },
          "Consolidation/single-node a p>b; b: DESTINATION" },
        { "two for one pod are never evicted by",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "4" } }, RIG_UNDERUTILIZED,
            { RIG_PDB("one", "p", ALLOWS(1)), RIG_PDB("two", "p", ALLOWS(1)) } },
          "a: MULTI_PDB; b: NOT_PLACED" },
        { "pods without a controller go, and are lost",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NAKED }, { "q", "b", "3" } }, RIG_UNDERUTILIZED },
          "Consolidation/single-node a p>b; b: DESTINATION" },
        { "unless the pool says that they block",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NAKED }, { "q", "b", "4" } },
            "'disruption':{'budgets':[],'nakedPods':'Block','consolidation':{'policy':'WhenUnderutilized'}}" },
          "a: NAKED_POD; b: NOT_PLACED" },
        { "nothing happens in the quiet period",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "4" } },
            "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized','after':'1000h'}}" },
          "a: QUIET_PERIOD; b: QUIET_PERIOD" },
        { "a node that opted out of consolidation",
          { { { "a", "4", "'labels':{'pool':'a'},'annotations':{'karpenter.sh/do-not-consolidate':'true'}" }, { "b", "4" } },
            { { "p", "a", "1" }, { "q", "b", "4" } }, RIG_UNDERUTILIZED },
          "a: NODE_OPT_OUT; b: NOT_PLACED" },
        { "... may go when it is empty by emptyAfter",
          { { { "a", "4", "'labels':{'pool':'a'},'annotations':{'karpenter.sh/do-not-consolidate':'true'}" } }, {},
            "'disruption':{'budgets':[],'emptyAfter':'0s'}" },
          "Emptiness/empty a" },
        { "a node that opted out of all of it",
          { { { "a", "4", "'labels':{'pool':'a'},'annotations':{'karpenter.sh/do-not-disrupt':'true'}" } }, {},
            "'disruption':{'budgets':[],'emptyAfter':'0s'}" },
          "a: NODE_OPT_OUT" },
        { "expired: its pods go elsewhere",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, { { "p", "a", "1" } },
            "'disruption':{'budgets':[],'expireAfter':'100h'}" },
          "Expiration a p>b; b: NOT_EXPIRED" },
        { "expired, and no place: one like it comes first",
          { { { "a", "4" } }, { { "p", "a", "3" } }, "'disruption':{'budgets':[],'expireAfter':'100h'}" },
          "Expiration a p>new-1 +a" },
        { "... unless the limits of its pool allow none",
          { { { "a", "4" } }, { { "p", "a", "3" } }, "'disruption':{'budgets':[],'expireAfter':'100h'},'limits':{'cpu':'7'}" },
          "a: POOL_LIMIT NOT_PLACED" },
        { "... which hold nothing past its hard deadline",
          { { { "a", "4" } }, { { "p", "a", "3" } },
            "'disruption':{'budgets':[],'expireAfter':'100h','expireHardAfter':'200h'},'limits':{'cpu':'7'}" },
          "Expiration/hard deadline a" },
        { "expired, and held by a pod",
          { { { "a", "4" } }, { { "p", "a", "3", OPTED_OUT } }, "'disruption':{'budgets':[],'expireAfter':'100h'}" },
          "a: POD_OPT_OUT" },
        { "... which only slows a drain that ends by itself",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, { { "p", "a", "3", OPTED_OUT } },
            "'template':{'terminationGracePeriod':'1h'},'disruption':{'budgets':[],'expireAfter':'100h'}" },
          "Expiration a p>b; b: NOT_EXPIRED" },
        { "... and not at its hard deadline",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, { { "p", "a", "3", OPTED_OUT } },
            "'disruption':{'budgets':[{'nodes':0}],'expireAfter':'100h','expireHardAfter':'200h'}" },
          "Expiration/hard deadline a p>b; b: NOT_EXPIRED" },
        { "... though its pod fits nowhere, not even on one like it",
          { { { "a", "4" } }, { { "p", "a", "3", NULL, "'nodeSelector':{'x':'y'}" } },
            "'disruption':{'budgets':[],'expireAfter':'100h','expireHardAfter':'200h'}" },
          "Expiration/hard deadline a" },
        { "... and has no room for the pods of others from then on",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } },
            { { "p", "a", "1", NULL, "'nodeSelector':{'x':'y'}" }, { "q", "b", "1" } },
            "'disruption':{'budgets':[],'expireAfter':'100h','expireHardAfter':'200h',"
            "'consolidation':{'policy':'WhenUnderutilized'}}" },
          "Expiration/hard deadline a; b: NOT_PLACED" },
        { "... unless it has opted out itself",
          { { { "a", "4", "'labels':{'pool':'a'},'annotations':{'karpenter.sh/do-not-disrupt':'true'}" } }, {},
            "'disruption':{'budgets':[],'expireAfter':'100h','expireHardAfter':'200h'}" },
          "a: NODE_OPT_OUT" },
        { "drifted by a label",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a','tier':'2'}" } }, {},
            "'template':{'labels':{'tier':'2'}},'disruption':{'budgets':[],'drift':'Auto'}" },
          "Drift/empty a; b: NOT_DRIFTED" },
        { "drifted against a requirement, and needed: one like it comes first",
          { { { "a", "4" } }, { { "p", "a", "3" } },
            "'template':{'requirements':[{'key':'arch','operator':'In','values':['arm64']}]},'disruption':{'budgets':[],'drift':'Auto'}" },
          "Drift a p>new-1 +a" },
        { "a window that is not open",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s','windows':[{'schedule':'0 3 * * *','duration':'1h'}]}" },
          "a: OUTSIDE_WINDOW" },
        { "one that is",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s','windows':[{'schedule':'0 3 * * *','duration':'6h'}]}" },
          "Emptiness/empty a" },
        { "a budget of other hours, of another reason, and of none",
          { { { "a", "4" } }, {},
            "'disruption':{'budgets':[{'nodes':0,'schedule':'0 3 * * *','duration':'1h'},{'nodes':0,'reasons':['Drifted']}],'emptyAfter':'0s'}" },
          "Emptiness/empty a" },
        { "a zone that nobody knows keeps all",
          { { { "a", "4" } }, {},
            "'disruption':{'budgets':[{'nodes':5,'schedule':'0 3 * * *','duration':'1h','timeZone':'No/Where'}],'emptyAfter':'0s'}" },
          "a: BUDGET" },
        { "one at a time",
          { { { "a", "4" }, { "b", "4" } }, {}, "'disruption':{'budgets':[],'maxConcurrent':1,'emptyAfter':'0s'}" },
          "Emptiness/empty a; b: BUDGET" },
        { "a NodeDisruptionBudget",
          { { { "a", "4" }, { "b", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s'}",
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'n'},'spec':{'maxUnavailable':1,"
              "'selector':{'matchLabels':{'pool':'a'}}}}" } },
          "Emptiness/empty a; b: NODE_BUDGET" },
        { "paused",
          { { { "a", "4" } }, {}, NULL,
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodePool','metadata':{'name':'a','annotations':{'vesper.sh/paused':'true'}},"
              "'spec':{'selector':{'matchLabels':{'pool':'a'}},'disruption':{'budgets':[],'emptyAfter':'0s'}}}" } },
          "a: PAUSED" },
        { "paused for all, by the coordinator's namespace",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s'}",
            { "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'vesper-system','annotations':{'vesper.sh/paused':'true'}}}",
              "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'other','annotations':{'vesper.sh/paused':'true'}}}" } },
          "a: PAUSED" },
        { "another namespace pauses nothing",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s'}",
            { "{'apiVersion':'v1','kind':'Namespace','metadata':{'name':'other','annotations':{'vesper.sh/paused':'true'}}}" } },
          "Emptiness/empty a" },
        { "a pool that cannot be understood",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s','drift':'Sometimes'}" }, "a: POOL_INVALID" },
        { "a node that is let alone by its own annotation",
          { { { "a", "4", "'labels':{'pool':'a'},'annotations':{'vesper.sh/unmanaged':'true'}" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'0s'}" },
          "a: NOT_MANAGED" },
        { "not Ready, and not yet initialized",
          { { { "a", "4", NULL, NULL, "False" },
              { "b", "4", NULL, "'taints':[{'key':'node.cloudprovider.kubernetes.io/uninitialized','effect':'NoSchedule'}]" } },
            {}, "'disruption':{'budgets':[],'emptyAfter':'0s'}" },
          "a: NOT_INITIALISED; b: NOT_INITIALISED" },
        { "a taint that its pool's nodes begin with; one of another value is none",
          { { { "a", "4", NULL, "'taints':[{'key':'example.com/cni','value':'wait','effect':'NoSchedule'}]" },
              { "b", "4", NULL, "'taints':[{'key':'example.com/cni','value':'other','effect':'NoSchedule'}]" } },
            {}, "'disruption':{'budgets':[],'emptyAfter':'0s'},'template':{'startupTaints':[{'key':'example.com/cni','value':'wait','effect':'NoSchedule'}]}" },
          "Emptiness/empty b; a: NOT_INITIALISED" },
        { "its claim says since when it is empty: not for long",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'1h'}",
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c'},'spec':{'nodePool':'a','providerID':'x'},'status':{"
              "'nodeName':'a','nodeUID':'u-a','conditions':[{'type':'Empty','status':'True','lastTransitionTime':'2027-01-15T07:30:00Z'}]}}" } },
          "a: QUIET_PERIOD" },
        { "its claim says that it is not empty: pods have left only now",
          { { { "a", "4" } }, {}, "'disruption':{'budgets':[],'emptyAfter':'30m'}",
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c'},'spec':{'nodePool':'a','providerID':'x'},'status':{"
              "'nodeName':'a','nodeUID':'u-a','conditions':[{'type':'Empty','status':'False','lastTransitionTime':'" RIG_OLD "'}]}}" } },
          "a: QUIET_PERIOD" },
        { "... and for long enough; its machine is older than its Node, and expired",
          { { { "a", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, {},
            "'disruption':{'budgets':[],'emptyAfter':'10m','expireAfter':'100h'}",
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c','creationTimestamp':'" RIG_OLD "'},'spec':{"
              "'nodePool':'a','providerID':'x'},'status':{'nodeName':'a','nodeUID':'u-a'}}" } },
          "Expiration/empty a" },
        { "a claim's own deadline bounds its drain: an opted-out pod only slows it",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, { { "p", "a", "3", OPTED_OUT } },
            "'disruption':{'budgets':[],'expireAfter':'100h'}",
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeClaim','metadata':{'name':'c'},'spec':{'nodePool':'a','providerID':'x',"
              "'terminationGracePeriod':'1h'},'status':{'nodeName':'a','nodeUID':'u-a'}}" } },
          "Expiration a p>b; b: NOT_EXPIRED" },
        { "where a pod of another scheduler would go nobody knows",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, "'schedulerName':'own'" }, { "q", "b", "4" } }, RIG_UNDERUTILIZED },
          "a: UNMODELLED; b: NOT_PLACED" },
        { "cordoned nodes count against a budget",
          { { { "a", "4" }, { "b", "4", NULL, "'unschedulable':true" } }, { { "p", "b", "1" } },
            "'disruption':{'budgets':[{'nodes':1}],'emptyAfter':'0s'}" },
          "a: BUDGET; b: NOT_EMPTY" },
        { "... and need no room of it themselves",
          { { { "a", "4" }, { "b", "4", NULL, "'unschedulable':true" } }, { { "p", "a", "1" } },
            "'disruption':{'budgets':[{'nodes':1}],'emptyAfter':'0s'}" },
          "Emptiness/empty b; a: NOT_EMPTY" },
        { "a node that is promised to a pending pod stays, though it fits elsewhere; one of a DaemonSet goes with its node",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } }, { { "w", NULL, "1", NULL, NULL, PROMISED("a") }, { "d", NULL, "1", DAEMON, NULL, PROMISED("c") }, { "q", "b", "2" } }, EMPTY },
          "Emptiness/empty c; a: NOMINATED; b: NOT_EMPTY" },
        { "... nor is it consolidated; and the room is taken for others",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "w", NULL, "2", NULL, NULL, PROMISED("a") },
              { "q", "b", "2" } }, RIG_UNDERUTILIZED },
          "a: NOMINATED; b: NOT_PLACED" },
        { "... also where its victims are still there, and nothing is free",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "2", "'deletionTimestamp':'" RIG_NOW "','deletionGracePeriodSeconds':30,'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'p','uid':'o','controller':true}]" },
              { "w", NULL, "4", NULL, NULL, PROMISED("a") }, { "q", "b", "1" } }, RIG_UNDERUTILIZED },
          "a: NOMINATED; b: NOT_PLACED" },
        { "... but it expires: the pod has a place elsewhere",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, { { "w", NULL, "1", NULL, NULL, PROMISED("a") } },
            "'disruption':{'budgets':[],'expireAfter':'100h'}" },
          "Expiration/empty a w>b; b: NOT_EXPIRED" },
        { "... or a successor is there before",
          { { { "a", "4" }, { "b", "1", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } }, { { "w", NULL, "2", NULL, NULL, PROMISED("a") } },
            "'disruption':{'budgets':[],'expireAfter':'100h'}" },
          "Expiration/empty a w>new-1 +a; b: NOT_EXPIRED" },
        { "a promise of a node that takes no pods is none, nor is one that a bound pod still names",
          { { { "a", "4", NULL, "'unschedulable':true" }, { "b", "4" }, { "c", "4" } },
            { { "w", NULL, "1", NULL, NULL, PROMISED("a") }, { "q", "b", "1", NULL, NULL, "'phase':'Running','nominatedNodeName':'c'" } }, EMPTY },
          "Emptiness/empty a c; b: NOT_EMPTY" },
        { "an empty node stays that a pending pod needs: it fits on no other",
          { { { "a", "4" }, { "b", "4" } }, { { "w", NULL, "2" }, { "q", "b", "3" } }, EMPTY }, "a: NOMINATED; b: NOT_EMPTY" },
        { "... and goes where another takes it",
          { { { "a", "4" }, { "b", "4" } }, { { "w", NULL, "1" }, { "q", "b", "3" } }, EMPTY }, "Emptiness/empty a w>b; b: NOT_EMPTY" },
        { "each of two pending pods needs a node of its own: only the third is one too many",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } }, { { "v", NULL, "3" }, { "w", NULL, "3" } }, EMPTY },
          "Emptiness/empty a v>b; b: NOMINATED; c: NOMINATED" },
        { "one that no node takes needs none",
          { { { "a", "4" }, { "b", "4" } }, { { "w", NULL, "9" }, { "q", "b", "3" } }, EMPTY }, "Emptiness/empty a; b: NOT_EMPTY" },
        { "pods of a node that is going need a place as much",
          { { { "a", "4" }, { "b", "4" }, { "c", "4", "'labels':{'pool':'a'},'deletionTimestamp':'" RIG_NOW "','finalizers':['x/y']" } },
            { { "q", "b", "3" }, { "r", "c", "2" } }, EMPTY },
          "a: NOMINATED; b: NOT_EMPTY; c: DELETING NOT_EMPTY" },
        { "a pod that waits is not pushed out of its place by a larger one that moves",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "3" }, { "w", NULL, "2" }, { "q", "b", "1" } }, RIG_UNDERUTILIZED },
          "a: NOMINATED; b: NOMINATED" },
        { "a node whose pods fit elsewhere stays for one that waits",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "w", NULL, "3" }, { "q", "b", "2" } }, RIG_UNDERUTILIZED },
          "a: NOMINATED; b: NOT_PLACED" },
};

TEST_CASE(test_plans) {
        size_t n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&cases[i].cluster);
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
                _cleanup_free_ char *line = NULL;

                print_message("  %s\n", cases[i].what);
                assert_return_code(disruption_plan_new(r->scene, &p), 0);
                line = rig_plan_line(r, p);
                assert_non_null(line);
                if (!streq(line, cases[i].want))
                        n_wrong++, print_message("    want %s\n    have %s\n", cases[i].want, line);
        }
        assert_int_equal(n_wrong, 0);
}

/* A pod that waits is named, and with what it would be without a place. */
TEST_CASE(test_waiting_is_told) {
        static const struct {
                RigCluster cluster;
                const char *node, *says;
        } rows[] = {
                { { { { "a", "4" }, { "b", "4" } }, { { "w", NULL, "2" }, { "q", "b", "3" } }, EMPTY }, "a",
                  "pending pod x/w has a place now, and would have none if node a went" },
                { { { { "a", "4" }, { "b", "4" }, { "c", "4" } }, { { "v", NULL, "3" }, { "w", NULL, "3" } }, EMPTY }, "c",
                  "with the nodes that go before it gone, pending pod x/w would have no place if node c went, too" },
                { { { { "a", "4" }, { "b", "4" }, { "c", "4", "'labels':{'pool':'a'},'deletionTimestamp':'" RIG_NOW "','finalizers':['x/y']" } },
                    { { "q", "b", "3" }, { "r", "c", "2" } }, EMPTY }, "a",
                  "pod x/r, whose node c is going, has a place now, and would have none if node a went" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rows[i].cluster);
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;

                assert_return_code(disruption_plan_new(r->scene, &p), 0);
                assert_string_equal(gate_first(p->nodes[rig_number(r, rows[i].node)].lacks + PLAN_EMPTINESS)->text, rows[i].says);
        }
}

/* So many pieces of JSON with commas between. */
static char *repeat(const char *text, unsigned n) {
        _cleanup_strbuf_ StrBuf b = {};

        for (unsigned i = 0; i < n; i++)
                strbuf_addf(&b, "%s%s", i > 0 ? "," : "", text);
        return strbuf_steal(&b);
}

/* One more than a pod may have: it stays where it is, and the reason is said in words. */
TEST_CASE(test_limit_is_told) {
        static const struct {
                const char *before, *piece, *after; /* members of the pod's spec */
                unsigned max;
                const char *says;
        } rows[] = {
                { "'topologySpreadConstraints':[", "{'maxSkew':9,'topologyKey':'zone','whenUnsatisfiable':'ScheduleAnyway','labelSelector':{}}", "]", 64,
                  "where pod x/p would go cannot be simulated: more than 64 rules bind it to other pods" },
                { "'initContainers':[{'name':'i','restartPolicy':'Always','ports':[", "{'containerPort':1,'hostPort':1}", "]}]", 256,
                  "where pod x/p would go cannot be simulated: it has more than 256 host ports" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (unsigned over = 0; over <= 1; over++) {
                        _cleanup_free_ char *pieces = repeat(rows[i].piece, rows[i].max + over), *spec = strf("%s%s%s", rows[i].before, strempty(pieces), rows[i].after);
                        RigCluster c = { { { "a", "4" }, { "b", "8" } }, { { "p", "a", "1", NULL, spec }, { "q", "b", "5" } }, RIG_UNDERUTILIZED };
                        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
                        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;

                        assert_return_code(disruption_plan_new(r->scene, &p), 0);
                        assert_int_equal(p->n_steps, 1 - over);
                        if (over)
                                assert_string_equal(gate_first(p->nodes[rig_number(r, "a")].lacks + PLAN_CONSOLIDATION)->text, rows[i].says);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plans),
                cmocka_unit_test(test_waiting_is_told),
                cmocka_unit_test(test_limit_is_told),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
