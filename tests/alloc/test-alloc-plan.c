/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a plan fails once: it says so, and no node has gone or come by halves. */
#include <stdio.h>

#include "alloc-fault.h"
#include "cmocka-test.h"
#include "disruption-rig.h"
#include "string-util.h"

#define TYPE(t) "'labels':{'pool':'a','node.kubernetes.io/instance-type':'" t "'}"

typedef struct Case {
        const char *what;
        RigCluster cluster; /* one of its nodes goes, and one comes */
        const char *want;
} Case;

static const Case cases[] = {
        { "expired, with one like it first",
          { { { "a", "4", TYPE("l") } }, { { "p1", "a", "1" }, { "p2", "a", "2" } },
            "'disruption':{'budgets':[],'expireAfter':'24h'},'offerings':[{'instanceType':'l','price':4}]" },
          "Expiration a p2>new-1 p1>new-1 +a" },
        { "for a cheaper one",
          { { { "a", "8", TYPE("l") } }, { { "p1", "a", "1" }, { "p2", "a", "2" } },
            "'disruption':{'budgets':[{'nodes':'100%'}],'consolidation':{'policy':'WhenUnderutilized'}},"
            "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','price':1,'allocatable':{'cpu':'4'}}]",
            { "{'apiVersion':'vesper.sh/v1alpha1','kind':'NodeDisruptionBudget','metadata':{'name':'any'},'spec':{'selector':{'matchLabels':{'pool':'a'}},'maxUnavailable':1},"
              "'status':{'observedGeneration':1}}" } },
          "Consolidation/replace a p2>new-1 p1>new-1 +s" },
};

/* False: there are not so many allocations, and all is as it should be. */
static bool judge(const Case *c, size_t fails_at) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c->cluster);
        uint32_t n_nodes = simulator_n_nodes(r->simulator);
        DisruptionPlan *p = NULL;
        size_t n_gone;
        int k;

        alloc_fault_arm(fails_at);
        k = disruption_plan_new(r->scene, &p);
        (void) alloc_fault_disarm();
        if (!alloc_fault_fired()) {
                _cleanup_free_ char *line = rig_plan_line(r, p);

                assert_return_code(k, 0);
                assert_string_equal(line, c->want);
        } else if (k != -ENOMEM)
                fail_msg("%s: allocation %zu failing: expected -ENOMEM, got %d", c->what, fails_at, k);
        n_gone = simulator_mark(r->simulator) > 0;
        assert_int_equal(simulator_n_nodes(r->simulator), n_nodes + n_gone);
        assert_int_equal(r->scene->pools[0].n_taken, n_gone);
        assert_int_equal(simulator_any_moves(r->simulator, 0), !n_gone);
        disruption_plan_free(p);
        return alloc_fault_fired();
}

TEST_CASE(test_sweep) {
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                size_t n = 0;

                while (judge(cases + i, n + 1))
                        n++;
                print_message("%s: %zu allocations, each failed once\n", cases[i].what, n);
                assert_true(n > 30);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = { cmocka_unit_test(test_sweep) };

        return cmocka_run_group_tests_name("alloc-plan", tests, NULL, NULL);
}
