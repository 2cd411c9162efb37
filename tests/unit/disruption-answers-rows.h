/* SPDX-License-Identifier: Apache-2.0 */

/* The table of test-disruption-answers.c, which includes this file within it. */

        /* one node by itself, and among others */
        { "one node", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "2" } }, "" }, "without a",
          "fits: a p>b [1 pods, 1 waves, 30s]" },
        { "one node without room elsewhere",
          { { { "a", "4" }, { "b", "1" } }, { { "p", "a", "2" } }, "" }, "without a",
          "does not fit: a [1 pods, 1 waves, 30s]\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/p: of all nodes 1 not a destination, 1 resources, nearest b;" },
        { "two nodes without room elsewhere",
          { { { "a", "4" }, { "b", "4" }, { "c", "2" } }, { { "p", "a", "2" }, { "q", "b", "2" } }, "" },
          "without a,b",
          "does not fit: a b [2 pods, 1 waves, 30s]\n"
          "b: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/q: of all nodes 2 not a destination, 1 resources, nearest c;" },
        { "a node twice", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "2" } }, "" }, "without a,a",
          "fits: a p>b [1 pods, 1 waves, 30s]" },
        { "all nodes", { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "2" } }, "" }, "without a,b",
          "does not fit: a b [1 pods, 1 waves, 30s]\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 not a destination): x/p: of all nodes 2 not a destination;" },
        { "the first has an objection, the second has none",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } },
            { { "p", "a", "1", "'annotations':{'vesper.sh/do-not-evict':'true'}" } }, "" }, "without a,b",
          "fits, objections: a b p>c [1 pods, 1 waves, 30s]\n"
          "a: POD_OPT_OUT: pod x/p has opted out by vesper.sh/do-not-evict;" },
        { "the second has an objection, the first has none",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } },
            { { "p", "b", "1", "'annotations':{'vesper.sh/do-not-evict':'true'}" } }, "" }, "without a,b",
          "fits, objections: a b p>c [1 pods, 1 waves, 30s]\n"
          "b: POD_OPT_OUT: pod x/p has opted out by vesper.sh/do-not-evict;" },
        { "a pending pod has its place there, and finds another",
          { { { "a", "4" }, { "b", "2" }, { "c", "4" } }, { { "w", NULL, "3" }, { "p", "c", "1" } }, "" },
          "without a",
          "fits: a w(waits)>c [0 pods, 0 waves, 0s]" },
        { "a pending pod has its place there, and finds none",
          { { { "a", "4" }, { "b", "2" } }, { { "w", NULL, "3" } }, "" }, "without a",
          "does not fit: a [0 pods, 0 waves, 0s]\n"
          "a: NOMINATED: pending pod x/w has a place now, and would have none if node a went;" },
        { "a pending pod has its place on the second",
          { { { "a", "1" }, { "b", "4" }, { "c", "2" } }, { { "w", NULL, "3" } }, "" }, "without a,b",
          "does not fit: a b [0 pods, 0 waves, 0s]\n"
          "b: NOMINATED: pending pod x/w has a place now, and would have none if node b and the others went;" },
        { "pods of the first take the place of a pending one",
          { { { "a", "4" }, { "b", "4" } }, { { "w", NULL, "3" }, { "p", "a", "3" } }, "" }, "without a",
          "does not fit: a [1 pods, 1 waves, 30s]\n"
          "a: NOMINATED: pending pod x/w has a place now, and would have none if node a went;" },
        { "a pod on a node that goes already has its place there",
          { { { "a", "4", "'labels':{'pool':'a'},'deletionTimestamp':'" RIG_NOW "'" }, { "b", "4" },
            { "c", "4" } }, { { "p", "a", "3" } }, "" }, "without b",
          "fits: b p(waits)>c [0 pods, 0 waves, 0s]" },

        /* all that could go */
        { "all that could go",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } }, { { "p", "a", "1" }, { "q", "b", "1" },
            { "r", "c", "2" } }, "" }, "drainable",
          "fits: a b p>c q>c [2 pods, 1 waves, 30s]\n"
          "c: NOT_PLACED: 3 of its pods have no place on other nodes (3 not a destination): x/p: of all nodes 3 not "
          "a destination; x/q: of all nodes 3 not a destination; x/r: of all nodes 3 not a destination;" },
        { "none could go",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "3" }, { "q", "b", "3" } }, "" }, "drainable",
          "does not fit: [0 pods, 0 waves, 0s]\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/p: of all nodes 1 not a destination, 1 resources, nearest b;\n"
          "b: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/q: of all nodes 1 not a destination, 1 resources, nearest a;" },
        { "one of a pool and one of none",
          { { { "a", "4" }, { "b", "4", "'labels':{'any':'thing'}" }, { "c", "4" } }, { { "p", "a", "2" },
            { "q", "b", "2" }, { "r", "c", "3" } }, "" }, "drainable",
          "fits: a p>b [1 pods, 1 waves, 30s]\n"
          "b: NOT_PLACED: 2 of its pods have no place on other nodes (2 resources): x/p: of all nodes 2 not a "
          "destination, 1 resources, nearest c; x/q: of all nodes 2 not a destination, 1 resources, nearest c;\n"
          "c: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/r: of all nodes 2 not a destination, 1 resources, nearest b;" },
        { "all that could go, and more came",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "3" }, { "q", "b", "3" } }, "" },
          "with a:2 drainable",
          "fits: a b p>with-a-1 q>with-a-2 [2 pods, 1 waves, 30s]" },

        /* nodes that came */
        { "one more like a node",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "3" }, { "q", "b", "3" } }, "" },
          "with b:1 without a",
          "fits: a p>with-b-1 [1 pods, 1 waves, 30s]" },
        { "one more of an instance type, which is like the first initialized node of it",
          { { { "a", "2", RIG_TYPE("l"), UNINITIALIZED }, { "b", "4", RIG_TYPE("l") }, { "c", "8", RIG_TYPE("l") } },
            { { "p", "b", "3" }, { "q", "c", "8" } }, "" },
          "with l:1 without b",
          "fits: b p>with-l-1 [1 pods, 1 waves, 30s]" },
        { "one more of an offering",
          { { { "a", "4", RIG_TYPE("l") } }, { { "p", "a", "3" } }, "'offerings':[" OFFER("s", "1", "3") "]" },
          "with s:1 without a",
          "fits: a p>with-s-1 [1 pods, 1 waves, 30s]" },
        { "one more of an offering that is too small",
          { { { "a", "4", RIG_TYPE("l") } }, { { "p", "a", "3" } }, "'offerings':[" OFFER("s", "1", "2") "]" },
          "with s:1 without a",
          "does not fit: a [1 pods, 1 waves, 30s]\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/p: of all nodes 1 not a "
          "destination, 1 resources, nearest with-s-1;" },
        { "one more of an offering that says no size",
          { { { "a", "4", RIG_TYPE("l") } },
            { { "p", "a", "4" } }, "'offerings':[{'instanceType':'s','price':1}]" }, "with s:1 without a",
          "fits: a p>with-s-1 [1 pods, 1 waves, 30s]" },
        { "two kinds more",
          { { { "a", "4" }, { "b", "2" } }, { { "p", "a", "2" }, { "q", "b", "2" } }, "" },
          "with a:1 with b:1 without a,b",
          "fits: a b p>with-a-1 q>with-a-1 [2 pods, 1 waves, 30s]" },

        /* to roll a pool */
        { "all at once",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "3" },
            { "q", "b", "3" } }, "'disruption':{'budgets':[]}" }, "upgrade",
          "2 new, a b [2 pods, 1 waves, 30s]. 210s" },
        { "one by one",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } }, { { "p", "a", "3" },
            { "q", "b", "3" } }, "'disruption':{'budgets':[{'nodes':1}]}" }, "upgrade",
          "1 new, c [0 pods, 0 waves, 0s]; 1 new, a [1 pods, 1 waves, 30s]; 1 new, b [1 pods, 1 waves, 30s]. 600s" },
        { "another node, which stays",
          { { { "a", "4" }, { "b", "4", "'labels':{'any':'thing'}" } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[]}" }, "upgrade",
          "1 new, a [1 pods, 1 waves, 30s]. 210s" },
        { "a pod that stays with its node",
          { { { "a", "4", NAMED("a") }, { "b", "4", NAMED("b") } },
            { { "p", "a", "1", NULL, ON("a") } }, "'disruption':{'budgets':[]}" }, "upgrade",
          "1 new, b [0 pods, 0 waves, 0s]. 180s\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 2 not a destination, 2 node affinity;" },
        { "a pod that stays with its node, in a later wave",
          { { { "a", "4", NAMED("a") }, { "b", "4", NAMED("b") }, { "c", "4", NAMED("c") } },
            { { "p", "a", "1", NULL, ON("a") } }, "'disruption':{'budgets':[{'nodes':1}]}" }, "upgrade",
          "1 new, b [0 pods, 0 waves, 0s]; 1 new, c [0 pods, 0 waves, 0s]. 360s\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 3 not a destination, 3 node affinity;" },
        { "a pod that fits nowhere, alone",
          { { { "a", "4", "'labels':{'pool':'a','only':'here'}" } },
            { { "p", "a", "1", NULL, ONLY_ON_A } },
            "'disruption':{'budgets':[]}" }, "upgrade",
          "none. 0s\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 1 not a destination, 1 node affinity;" },
        { "a pod that fits nowhere, beside a node that may go",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "1", NULL, ONLY_ON_A } },
            "'disruption':{'budgets':[]}" }, "upgrade",
          "1 new, b [0 pods, 0 waves, 0s]. 180s\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 2 not a destination, 2 node affinity;" },
        { "a pod that fits nowhere, before a node that may go",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "1", NULL, ONLY_ON_A }, { "q1", "b", "1" }, { "q2", "b", "1" } },
            "'disruption':{'budgets':[]}" }, "upgrade",
          "1 new, b [2 pods, 1 waves, 30s]. 210s\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 1 not a destination, 2 node affinity;" },
        { "a NodeDisruptionBudget of one",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[]}", { NDB("'maxUnavailable':1") } }, "upgrade",
          "1 new, b [0 pods, 0 waves, 0s]; 1 new, c [0 pods, 0 waves, 0s]; 1 new, a [1 pods, 1 waves, 30s]. 570s" },
        { "a NodeDisruptionBudget of none",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[]}", { NDB("'maxUnavailable':0") } }, "upgrade",
          "none. 0s\n"
          "b: NODE_BUDGET: NodeDisruptionBudget nb (maxUnavailable 0) has no room: 2 of its 2 nodes are available, and 0 chosen already;\n"
          "a: NODE_BUDGET: NodeDisruptionBudget nb (maxUnavailable 0) has no room: 2 of its 2 nodes are available, and 0 chosen already;" },
        { "budgets of two reasons",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } },
            {}, "'disruption':{'budgets':[{'nodes':1,'reasons':['Empty']},{'nodes':2,'reasons':['Drifted']}]}" },
          "upgrade",
          "2 new, a b [0 pods, 0 waves, 0s]; 1 new, c [0 pods, 0 waves, 0s]. 360s" },
        { "a node that is being deleted",
          { { { "a", "4" }, { "b", "4", "'labels':{'pool':'a'},'deletionTimestamp':'" RIG_NOW "'" } },
            {}, "'disruption':{'budgets':[]}" }, "upgrade",
          "1 new, a [0 pods, 0 waves, 0s]. 180s\n"
          "b: DELETING: it is being deleted already;" },
        { "a limit that has room for one more",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[]},'limits':{'nodes':3}" }, "upgrade",
          "1 new, b [0 pods, 0 waves, 0s]; 1 new, a [1 pods, 1 waves, 30s]. 390s" },
        { "a limit that has no room",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[]},'limits':{'memory':'210Gi'}" }, "upgrade",
          "none. 0s\n"
          "b: POOL_LIMIT: one like it has to come first, but NodePool a may have 210Gi memory (spec.limits): "
          "its nodes, this one included, have 200Gi, and the new one would add 100Gi. Raise spec.limits.memory to at "
          "least 300Gi;\n"
          "a: POOL_LIMIT: one like it has to come first, but NodePool a may have 210Gi memory (spec.limits): "
          "its nodes, this one included, have 200Gi, and the new one would add 100Gi. Raise spec.limits.memory to at "
          "least 300Gi;" },
        { "a limit of half a CPU",
          { { { "a", "3500m" } }, {}, "'disruption':{'budgets':[]},'limits':{'cpu':'5500m'}" }, "upgrade",
          "none. 0s\n"
          "a: POOL_LIMIT: one like it has to come first, but NodePool a may have 5500m cpu (spec.limits): its nodes, "
          "this one included, have 3.5, and the new one would add 3.5. Raise spec.limits.cpu to at least 7;" },
        { "a limit of bytes",
          { { { "a", "3" } }, {}, "'disruption':{'budgets':[]},'limits':{'memory':'100001Mi'}" }, "upgrade",
          "none. 0s\n"
          "a: POOL_LIMIT: one like it has to come first, but NodePool a may have 100001Mi memory (spec.limits): "
          "its nodes, this one included, have 100Gi, and the new one would add 100Gi. Raise spec.limits.memory to at "
          "least 200Gi;" },
        { "a limit of something else",
          { { { "a", "3" } }, {}, "'disruption':{'budgets':[]},'limits':{'pods':'200'}" }, "upgrade",
          "none. 0s\n"
          "a: POOL_LIMIT: one like it has to come first, but NodePool a may have 200 pods (spec.limits): its nodes, "
          "this one included, have 110, and the new one would add 110. Raise spec.limits.pods to at least 220;" },

        /* the plan */
        { "the cheapest that is too small, and the next",
          { { { "a", "8", RIG_TYPE("l") } },
            { { "p", "a", "3" } }, RIG_UNDERUTILIZED ",'offerings':[" OFFER("l", "4", "8") "," OFFER("s", "1", "2") "," OFFER("m", "2", "4") "]" },
          "plan",
          "Consolidation/replace a p>new-1 [1 pods, 1 waves, 30s] +m 4>2 (its pods fit on other nodes and one new m, which saves 2 of its 4)" },
        { "two are replaced, one after the other",
          { { { "a", "8", RIG_TYPE("l") }, { "b", "8", RIG_TYPE("l") } }, { { "p", "a", "4" },
            { "q", "b", "4" } }, RIG_UNDERUTILIZED ",'offerings':[" OFFER("l", "4", "8") "," OFFER("s", "1", "2") "," OFFER("m", "2", "4") "]" },
          "plan",
          "Consolidation/single-node a p>b [1 pods, 1 waves, 30s] 4>0 (its 1 pod fits on other nodes)\n"
          "b: DESTINATION: 1 pod would come to it as the nodes before it go;" },
        { "three into one",
          { { { "a", "4" }, { "b", "4" }, { "c", "4" } }, { { "p", "a", "1" }, { "q", "b", "1" },
            { "r", "c", "1" } }, RIG_UNDERUTILIZED }, "plan",
          "Consolidation/multi-node a b p>c q>c [2 pods, 1 waves, 30s] (its 1 pod fits on other nodes) (its 1 pod fits on other nodes)\n"
          "c: DESTINATION: 2 pods would come to it as the nodes before it go;" },
        { "an empty one and one that fits",
          { { { "a", "4", RIG_TYPE("l") }, { "b", "4", RIG_TYPE("l") }, { "c", "4", RIG_TYPE("l") } },
            { { "p", "a", "1" },
            { "r", "c", "1" } }, "'disruption':{'budgets':[],'emptyAfter':'1h',"
              "'consolidation':{'policy':'WhenUnderutilized'}},'offerings':[" OFFER("l", "4", "4") "]" },
          "plan",
          "Emptiness/empty b [0 pods, 0 waves, 0s] 4>0 (empty since 2027-01-01T00:00:00Z or later); "
          "Consolidation/single-node a p>c [1 pods, 1 waves, 30s] 4>0 (its 1 pod fits on other nodes)\n"
          "c: DESTINATION: 1 pod would come to it as the nodes before it go;" },
        { "expired, and its pods fit nowhere",
          { { { "a", "4" }, { "b", "1" } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[],'expireAfter':'100h'}" }, "plan",
          "Expiration/empty b [0 pods, 0 waves, 0s] (expired since 2027-01-05T00:34:15Z); Expiration/ a p>new-1 [1 "
          "pods, 1 waves, 30s] +a (expired since 2027-01-04T19:09:04Z)" },
        { "expired by force",
          { { { "a", "4" } },
            { { "p", "a", "3", "'annotations':{'vesper.sh/do-not-evict':'true'}" } },
              "'disruption':{'budgets':[],'expireAfter':'100h','expireHardAfter':'200h'}" },
          "plan",
          "Expiration/hard deadline a p>new-1 [1 pods, 1 waves, 30s] +a (past its hard deadline since 2027-01-09T08:00:00Z)" },
        { "drifted, one at a time",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "1" } }, "'disruption':{'budgets':[{'nodes':1}],'drift':'Auto'},'template':{'labels':{'tier':'2'}}" },
          "plan",
          "Drift/empty b [0 pods, 0 waves, 0s] (it has no label tier, and spec.template says '2')\n"
          "a: BUDGET: budgets of NodePool a allow 1 of 2 nodes for Drifted, and 1 are unavailable or chosen already;" },
        { "empty, one at a time",
          { { { "a", "4" }, { "b", "4" } }, {}, "'disruption':{'budgets':[{'nodes':1}],'emptyAfter':'1h'}" },
          "plan",
          "Emptiness/empty a [0 pods, 0 waves, 0s] (empty since 2027-01-01T00:00:00Z or later)\n"
          "b: BUDGET: budgets of NodePool a allow 1 of 2 nodes for Empty, and 1 are unavailable or chosen already;" },
        { "pods would come to it",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "2" } }, RIG_UNDERUTILIZED },
          "plan",
          "Consolidation/single-node a p>b [1 pods, 1 waves, 30s] (its 1 pod fits on other nodes)\n"
          "b: DESTINATION: 1 pod would come to it as the nodes before it go;" },
        { "a pending pod needs one of two empty nodes",
          { { { "a", "4" }, { "b", "4" } },
            { { "w", NULL, "3" } }, "'disruption':{'budgets':[],'emptyAfter':'1h'}" }, "plan",
          "Emptiness/empty a w(waits)>b [0 pods, 0 waves, 0s] (empty since 2027-01-01T00:00:00Z or later)\n"
          "b: NOMINATED: with the nodes that go before it gone, pending pod x/w would have no place if node b went, too;" },
        { "more pods wait than empty nodes have room for",
          { { { "a", "4" }, { "b", "4" } }, { { "v", NULL, "3" },
            { "w", NULL, "3" } }, "'disruption':{'budgets':[],'emptyAfter':'1h'}" }, "plan",
          "\n"
          "a: NOMINATED: pending pod x/w has a place now, and would have none if node a went;\n"
          "b: NOMINATED: pending pod x/w has a place now, and would have none if node b went;" },
        { "a pod of its own is lost",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", "'labels':{}" },
            { "q", "b", "2" } }, RIG_UNDERUTILIZED }, "plan",
          "Consolidation/single-node a p>b [1 pods, 1 waves, 30s] (its 1 pod fits on other nodes)\n"
          "b: DESTINATION: 1 pod would come to it as the nodes before it go;" },
        { "the successor of a node that stays is not there",
          { { { "a", "2", "'labels':{'pool':'a','only':'here'}" }, { "b", "4" } },
            { { "p", "a", "2", NULL, ONLY_ON_A }, { "q", "b", "1", NULL, "'nodeSelector':{'only':'here'}" } },
            "'disruption':{'budgets':[]}" }, "upgrade",
          "none. 0s\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 1 not a destination, 2 node affinity;\n"
          "b: NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/q: of all nodes 1 not a "
          "destination, 1 node affinity, 1 resources, nearest a;" },
        { "both have expired, and the pods of one come to the other first",
          { { { "a", "4" }, { "b", "4" }, { "c", "1", "'labels':{'any':'thing'}" } }, { { "p", "a", "2" }, { "q", "b", "2" } },
            "'disruption':{'budgets':[],'expireAfter':'100h'}" }, "plan",
          "Expiration/ a p>b [1 pods, 1 waves, 30s] (expired since 2027-01-04T19:09:04Z); Expiration/ b p>new-1 "
          "q>new-1 [1 pods, 1 waves, 30s] +b (expired since 2027-01-05T00:34:15Z)\n"
          "c: NOT_MANAGED: it is not managed: no NodePool selects it;" },
        { "a pending pod has its place on a node that could be consolidated",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "3" }, { "w", NULL, "3" } }, RIG_UNDERUTILIZED }, "plan",
          "\n"
          "a: NOMINATED: pending pod x/w has a place now, and would have none if node a went;\n"
          "b: NOMINATED: pending pod x/w has a place now, and would have none if node b went;" },
        { "two pending pods have their places on a node that could be consolidated",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "3" }, { "v", NULL, "1500m" },
              { "w", NULL, "1500m" } }, RIG_UNDERUTILIZED }, "plan",
          "\n"
          "a: NOMINATED: pending pod x/v and 1 more have a place now, and would have none if node a went;\n"
          "b: NOMINATED: pending pod x/v and 1 more have a place now, and would have none if node b went;" },
        { "a pod of another scheduler",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "1", NULL, "'schedulerName':'mine'" } }, RIG_UNDERUTILIZED }, "plan",
          "Consolidation/empty b [0 pods, 0 waves, 0s] (empty since 2027-01-01T00:00:00Z or later)\n"
          "a: UNMODELLED: where pod x/p would go cannot be simulated: another scheduler places it (schedulerName);" },
        { "two pods of other schedulers",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, "'schedulerName':'mine'" },
            { "q", "a", "1", NULL, "'schedulerName':'yours'" } }, RIG_UNDERUTILIZED }, "plan",
          "Consolidation/empty b [0 pods, 0 waves, 0s] (empty since 2027-01-01T00:00:00Z or later)\n"
          "a: UNMODELLED: where pod x/p would go cannot be simulated: another scheduler places it (schedulerName); "
          "UNMODELLED: where pod x/q would go cannot be simulated: another scheduler places it (schedulerName);" },
        { "a pod of another scheduler, and one without a place",
          { { { "a", "4" }, { "b", "2" } }, { { "p", "a", "1", NULL, "'schedulerName':'mine'" },
            { "q", "a", "3" } }, "" }, "without a",
          "does not fit: a [2 pods, 1 waves, 30s]\n"
          "a: UNMODELLED: where pod x/p would go cannot be simulated: another scheduler places it (schedulerName); "
          "NOT_PLACED: 1 of its pods has no place on other nodes (1 resources): x/q: of all nodes 1 not a "
          "destination, 1 resources, nearest b;" },
        { "five pods without a place",
          { { { "a", "8" }, { "b", "500m" } }, { { "p1", "a", "1" }, { "p2", "a", "1" }, { "q1", "a", "1" },
            { "q2", "a", "1" }, { "r", "a", "1" } }, "" }, "without a",
          "does not fit: a [5 pods, 1 waves, 30s]\n"
          "a: NOT_PLACED: 5 of its pods have no place on other nodes (5 resources): x/p1: of all nodes 1 not a "
          "destination, 1 resources, nearest b; x/p2: of all nodes 1 not a destination, 1 resources, nearest b; "
          "x/q1: of all nodes 1 not a destination, 1 resources, nearest b; x/q2: of all nodes 1 not a destination, "
          "1 resources, nearest b; x/r: of all nodes 1 not a destination, 1 resources, nearest b;" },
        { "pods without a place for two reasons",
          { { { "a", "8" }, { "b", "500m" } }, { { "p1", "a", "1" },
            { "q", "a", "0", NULL, "'nodeSelector':{'no':'where'}" } }, "" }, "without a",
          "does not fit: a [2 pods, 1 waves, 30s]\n"
          "a: NOT_PLACED: 2 of its pods have no place on other nodes (1 node affinity, 1 resources): x/p1: "
          "of all nodes 1 not a destination, 1 resources, nearest b; x/q: of all nodes 1 not a destination, "
          "1 node affinity;" },
        { "a preference that would be lost",
          { { { "a", "4", "'labels':{'pool':'a','disk':'ssd'}" },
            { "b", "4", "'labels':{'any':'thing'}" } },
            { { "p", "a", "1", NULL, PREFERS_SSD } }, RIG_UNDERUTILIZED }, "plan",
          "\n"
          "a: PREFERENCE: pod x/p has a preferred node affinity which can prevent consolidation;\n"
          "b: NOT_MANAGED: it is not managed: no NodePool selects it;" },
        { "a preference that may be lost",
          { { { "a", "4", "'labels':{'pool':'a','disk':'ssd'}" },
            { "b", "4", "'labels':{'any':'thing'}" } },
            { { "p", "a", "1", NULL, PREFERS_SSD } }, "'disruption':{'budgets':[],"
              "'consolidation':{'policy':'WhenUnderutilized','preferences':'Ignore'}}" },
          "plan",
          "Consolidation/single-node a p>b [1 pods, 1 waves, 30s] (its 1 pod fits on other nodes)\n"
          "b: NOT_MANAGED: it is not managed: no NodePool selects it;" },
        { "a preference that would be lost, and who asks does not mind",
          { { { "a", "4", "'labels':{'pool':'a','disk':'ssd'}" },
            { "b", "4", "'labels':{'any':'thing'}" } },
            { { "p", "a", "1", NULL, PREFERS_SSD } }, RIG_UNDERUTILIZED }, "without a",
          "fits: a p>b [1 pods, 1 waves, 30s]" },
        { "drifted, and limits allow no successor",
          { { { "a", "4" } },
            { { "p", "a", "1" } }, "'disruption':{'budgets':[],'drift':'Auto'},'template':{'labels':{'tier':'2'}},'limits':{'nodes':1}" },
          "plan",
          "\n"
          "a: POOL_LIMIT: its pods have no place elsewhere, so that one like it has to come first, but NodePool a "
          "may have 1 node (spec.limits) and has 1, this one included. Raise spec.limits.nodes to at least 2; "
          "NOT_PLACED: 1 of its pods has no place on other nodes (1 not a destination): x/p: of all nodes 1 not a "
          "destination;" },
        { "drifted, and its successor is as the pool says",
          { { { "a", "4" } },
            { { "p", "a", "1", NULL, "'nodeSelector':{'tier':'2'}" } }, "'disruption':{'budgets':[],'drift':'Auto'},"
              "'template':{'labels':{'tier':'2'}}" },
          "plan",
          "Drift/ a p>new-1 [1 pods, 1 waves, 30s] +a (it has no label tier, and spec.template says '2')" },
        { "drifted, and a budget of pods holds it",
          { { { "a", "4" }, { "b", "4" } },
            { { "p", "a", "1" } }, "'disruption':{'budgets':[],'drift':'Auto'},'template':{'labels':{'tier':'2'}}",
              { RIG_PDB("x", "p", "'disruptionsAllowed':0") } },
          "plan",
          "Drift/empty b [0 pods, 0 waves, 0s] (it has no label tier, and spec.template says '2')\n"
          "a: PDB_BLOCKS: pdb x/x prevents pod evictions;" },
        { "drifted, a budget of pods holds it, and its drain has an end",
          { { { "a", "4" }, { "b", "4", "'labels':{'any':'thing'}" } },
            { { "p", "a", "1" } }, "'disruption':{'budgets':[],'drift':'Auto'},'template':{'labels':{'tier':'2'},"
              "'terminationGracePeriod':'1h'}", { RIG_PDB("x", "p", "'disruptionsAllowed':0") } },
          "plan",
          "Drift/ a p>b [1 pods, 1 waves, 30s, x] (it has no label tier, and spec.template says '2')\n"
          "b: NOT_MANAGED: it is not managed: no NodePool selects it;" },
        { "the dearer of two goes first",
          { { { "a", "4", RIG_TYPE("s") }, { "b", "4", RIG_TYPE("l") }, { "c", "2", "'labels':{'any':'thing'}" } },
            { { "p", "a", "2" },
            { "q", "b", "2" } }, "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized',"
              "'minimumSavings':'1%'}},'offerings':[" OFFER("l", "4", "4") "," OFFER("s", "1", "4") "]" },
          "plan",
          "Consolidation/single-node b q>a [1 pods, 1 waves, 30s] 4>0 (its 1 pod fits on other nodes)\n"
          "a: DESTINATION: 1 pod would come to it as the nodes before it go;\n"
          "c: NOT_MANAGED: it is not managed: no NodePool selects it;" },
        { "savings of just as much as is asked for",
          { { { "a", "8", RIG_TYPE("l") } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized',"
              "'minimumSavings':'50%'}},'offerings':[" OFFER("l", "4", "8") "," OFFER("s", "2", "4") "]" },
          "plan",
          "Consolidation/replace a p>new-1 [1 pods, 1 waves, 30s] +s 4>2 (its pods fit on other nodes and one new s, which saves 2 of its 4)" },
        { "savings of less than is asked for",
          { { { "a", "8", RIG_TYPE("l") } },
            { { "p", "a", "3" } }, "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized',"
              "'minimumSavings':'51%'}},'offerings':[" OFFER("l", "4", "8") "," OFFER("s", "2", "4") "]" },
          "plan",
          "\n"
          "a: SAVINGS_LOW: it costs 4, and s at 2 would save less than the 51 % that its pool asks for "
          "(minimumSavings); NOT_PLACED: 1 of its pods has no place on other nodes (1 not a destination): x/p: "
          "of all nodes 1 not a destination;" },
        { "two offerings of one price",
          { { { "a", "8", RIG_TYPE("l") } },
            { { "p", "a", "3" } }, RIG_UNDERUTILIZED ",'offerings':[" OFFER("l", "4", "8") "," OFFER("t", "2", "4") "," OFFER("s", "2", "4") "]" },
          "plan",
          "Consolidation/replace a p>new-1 [1 pods, 1 waves, 30s] +s 4>2 (its pods fit on other nodes and one new s, which saves 2 of its 4)" },
        { "two offerings of one type",
          { { { "a", "8", RIG_TYPE("l") } },
            { { "p", "a", "3" } }, RIG_UNDERUTILIZED ",'offerings':[" OFFER("l", "4", "8") ",{'instanceType':'s',"
              "'capacityType':'spot','price':2,'allocatable':{'cpu':'4'}},{'instanceType':'s',"
              "'capacityType':'on-demand','price':2,'allocatable':{'cpu':'4'}}]" },
          "plan",
          "Consolidation/replace a p>new-1 [1 pods, 1 waves, 30s] +s, on-demand 4>2 (its pods fit on other nodes and "
          "one new s, on-demand, which saves 2 of its 4)" },
        { "expired, and nothing takes its pods; another's successor does",
          { { { "a", "4" }, { "b", "4" } }, { { "p", "a", "1", NULL, ONLY_ON_A }, { "q1", "b", "2" }, { "q2", "b", "2" } },
            "'disruption':{'budgets':[],'expireAfter':'100h'}" }, "plan",
          "Expiration/ b q1>a q2>new-1 [2 pods, 1 waves, 30s] +b (expired since 2027-01-05T00:34:15Z)\n"
          "a: NOT_PLACED: 1 of its pods has no place on other nodes (1 node affinity): x/p: of all nodes 1 not a destination, 1 node affinity;" },
        { "a price of nothing", { { { "a", "4", RIG_TYPE("l") }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "2" } },
            RIG_UNDERUTILIZED ",'offerings':[" OFFER("l", "0", "4") "]" }, "plan",
          "Consolidation/single-node a p>b [1 pods, 1 waves, 30s] 0>0 (its 1 pod fits on other nodes)\n"
          "b: DESTINATION: 1 pod would come to it as the nodes before it go;" },
        { "of pods that ask for the same, the older is placed first",
          { { { "a", "8" }, { "b", "1" }, { "c", "1" } },
            { { "p", "a", "1", "'creationTimestamp':'2027-01-03T00:00:00Z'" },
              { "q", "a", "1", "'creationTimestamp':'2027-01-02T00:00:00Z'" } }, "" }, "without a",
          "fits: a q>b p>c [2 pods, 1 waves, 30s]" },
        { "of pods that ask for the same, the older is placed first, whatever it is called",
          { { { "a", "8" }, { "b", "1" }, { "c", "1" } },
            { { "p", "a", "1", "'creationTimestamp':'2027-01-02T00:00:00Z'" },
              { "q", "a", "1", "'creationTimestamp':'2027-01-03T00:00:00Z'" } }, "" }, "without a",
          "fits: a p>b q>c [2 pods, 1 waves, 30s]" },
        { "of pods that ask for as much CPU, the one of more memory is placed first",
          { { { "a", "8" }, { "b", "1" }, { "c", "1" } },
            { { "p", "a", "1" }, { "q", "a", "1", NULL, "'overhead':{'memory':'1Gi'}" } }, "" }, "without a",
          "fits: a q>b p>c [2 pods, 1 waves, 30s]" },
