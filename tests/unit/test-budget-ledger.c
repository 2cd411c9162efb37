/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-bench.h"
#include "budget-draft.h"

TEST_CASE(test_figures) {
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':2");
        assert_int_equal(figure(&b, "b1", "expectedNodes"), 5);
        assert_int_equal(figure(&b, "b1", "currentAvailable"), 5);
        assert_int_equal(figure(&b, "b1", "desiredAvailable"), 3);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        assert_int_equal(figure(&b, "b1", "observedGeneration"), 1);
        assert_int_equal(n_patches(&b), 1);

        print_message("  not written again while nothing changes\n");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "n1", "{'metadata':{'annotations':{'x':'y'}}}");
        run(&b, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_patches(&b), 1);

        print_message("  within a second of a change\n");
        set_ready(&b, "n1", false);
        run(&b, USEC_PER_SEC);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 1);
        fake_add_node(b.w.cluster, "n9", NULL, NULL, "a");
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "n2");
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "n3", "{'metadata':{'labels':{'vesper.sh/pool':'b'}}}");
        run(&b, USEC_PER_SEC);
        assert_int_equal(figure(&b, "b1", "expectedNodes"), 4);
        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'metadata':{'generation':2},'spec':{'maxUnavailable':'x'}}");
        run(&b, USEC_PER_SEC);
        assert_int_equal(figure(&b, "b1", "observedGeneration"), 2);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        assert_string_equal(fj_string(fj_find(fj_get(status(&b, "b1"), "conditions", NULL), "type", "Invalid"), "status", NULL), "True");

        print_message("  a hundred changes in a second are few writes\n");
        before = n_patches(&b);
        for (size_t i = 0; i < 100; i++) {
                set_ready(&b, "n4", i % 2 == 0);
                run(&b, 10 * USEC_PER_MSEC);
        }
        assert_in_range(n_patches(&b) - before, 1, 6);
        bench_done(&b);
}

TEST_CASE(test_fifty_at_once) {
        size_t admitted = 0;
        uint64_t before;
        Bench b;

        bench_init(&b, 50, "'maxUnavailable':3");
        before = n_patches(&b);
        for (size_t i = 0; i < 50; i++) {
                _cleanup_free_ char *name = strf("n%zu", i);

                (void) ask(&b, i % N_REPLICAS, name);
        }
        run(&b, 2 * USEC_PER_SEC);
        for (size_t i = 0; i < 50; i++) {
                assert_true(b.asks[i].answered);
                assert_int_not_equal(b.asks[i].answer, BUDGET_UNKNOWN);
                admitted += b.asks[i].answer == BUDGET_ADMITTED;
                if (b.asks[i].answer == BUDGET_REFUSED)
                        assert_non_null(strstr(b.asks[i].message, "NodeDisruptionBudget b1 allows no disruption of node n"));
        }
        assert_int_equal(admitted, 3);
        assert_int_equal(n_charges(&b, "b1"), 3);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        print_message("  %llu patches\n", (unsigned long long) (n_patches(&b) - before));
        assert_in_range(n_patches(&b) - before, 1, 6);
        bench_done(&b);
}

TEST_CASE(test_idempotent) {
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        before = n_patches(&b);
        assert_int_equal(answer_of(&b, ask(&b, 0, "n0")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(n_charges(&b, "b1"), 1);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_REFUSED);
        assert_non_null(strstr(b.asks[b.n_asks - 1].message, "Unavailable is n0 (may be deleted since "));
        assert_in_range(n_patches(&b) - before, 0, 1);
        bench_done(&b);
}

TEST_CASE(test_passes) {
        uint64_t before;
        Asked *a;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        fake_add_node(b.w.cluster, "other", NULL, NULL, "z");
        set_ready(&b, "n0", false);
        run(&b, USEC_PER_SEC);
        print_message("  one that is unavailable, and one that no budget selects, without a charge\n");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "other")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_REFUSED);
        assert_int_equal(n_charges(&b, "b1"), 0);
        print_message("  dry-run charges nothing, and says the same\n");
        set_ready(&b, "n0", true);
        run(&b, USEC_PER_SEC);
        a = ask_as(&b, 1, "n1", (BudgetAsk){ .dry_run = true });
        assert_int_equal(answer_of(&b, a), BUDGET_ADMITTED);
        assert_int_equal(n_charges(&b, "b1"), 0);
        print_message("  ... also where another holder has charged the node, and where no room is left\n");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_ADMITTED);
        before = n_patches(&b);
        for (size_t i = 0; i < 3; i++) {
                const char *node = i == 2 ? "n2" : "n1";
                const BudgetAsk dry = { .kind = i == 0 ? NODE_CHARGE_REBOOT : NODE_CHARGE_DELETE,
                                        .holder = i == 0 ? "slot-1" : NULL, .dry_run = true };

                a = ask_as(&b, 1, node, dry);
                assert_int_equal(answer_of(&b, a), i == 1 ? BUDGET_ADMITTED : BUDGET_REFUSED);
                if (i != 1)
                        assert_non_null(strstr(a->message, i == 0 ? "allows no second disruption of node n1"
                                                                  : "allows no disruption of node n2 now"));
        }
        assert_int_equal(n_patches(&b), before);
        assert_int_equal(n_charges(&b, "b1"), 1);
        bench_done(&b);
}

TEST_CASE(test_all_or_none) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':2");
        put_budget(&b, "a0", "'maxUnavailable':1", "vesper.sh/pool");
        run(&b, USEC_PER_SEC);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(n_charges(&b, "a0"), 1);
        assert_int_equal(n_charges(&b, "b1"), 1);
        assert_int_equal(answer_of(&b, ask(&b, 0, "n1")), BUDGET_REFUSED);
        assert_non_null(strstr(b.asks[b.n_asks - 1].message, "NodeDisruptionBudget a0"));

        print_message("  the second refuses what the first has charged just now\n");
        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "a0", "{'metadata':{'generation':2},'spec':{'maxUnavailable':3}}");
        run(&b, USEC_PER_SEC);
        (void) ask(&b, 0, "n1");
        (void) ask(&b, 1, "n2");
        run(&b, 2 * USEC_PER_SEC);
        assert_int_equal((b.asks[2].answer == BUDGET_ADMITTED) + (b.asks[3].answer == BUDGET_ADMITTED), 1);
        assert_int_equal(n_charges(&b, "a0"), 2);
        assert_int_equal(n_charges(&b, "b1"), 2);
        bench_done(&b);
}

TEST_CASE(test_how_long) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':2");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_ADMITTED);
        delete_node(&b, "n1");
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(n_charges(&b, "b1"), 2);
        assert_int_equal(answer_of(&b, ask(&b, 0, "n2")), BUDGET_REFUSED);

        print_message("  one that was not deleted after all is free after two minutes\n");
        run(&b, 2 * USEC_PER_MINUTE);
        assert_int_equal(n_charges(&b, "b1"), 1);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 1);

        print_message("  one that is being deleted stays until it has gone\n");
        run(&b, USEC_PER_HOUR);
        assert_int_equal(n_charges(&b, "b1"), 1);
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "n1");
        run(&b, 2 * USEC_PER_MINUTE);
        assert_int_equal(n_charges(&b, "b1"), 0);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2); /* of the 4 that are left */

        print_message("  one that is given back is free at once\n");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n3")), BUDGET_ADMITTED);
        release(&b, 1, "n3", "alice");
        run(&b, USEC_PER_SEC);
        assert_int_equal(n_charges(&b, "b1"), 0);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        bench_done(&b);
}

/* Deletions that passed uncharged go in their order, as room appears. */
TEST_CASE(test_begun) {
        const BudgetAsk begun = { .begun = true };
        Bench b;

        bench_init(&b, 6, "'maxUnavailable':2");
        for (size_t i = 0; i < 4; i++) {
                _cleanup_free_ char *name = strf("n%zu", i);

                delete_node(&b, name);
                run(&b, 2 * USEC_PER_SEC);
        }
        /* They wait, undrained: so far none of them is away. */
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        for (size_t i = 4; i > 0; i--) {
                _cleanup_free_ char *name = strf("n%zu", i - 1);

                (void) ask_as(&b, 0, name, begun);
        }
        run(&b, USEC_PER_SEC);
        /* The first two came first to the ledger; from then on the order of deletion counts. */
        assert_int_equal(b.asks[0].answer, BUDGET_ADMITTED);
        assert_int_equal(b.asks[1].answer, BUDGET_ADMITTED);
        assert_int_equal(b.asks[2].answer, BUDGET_REFUSED);
        assert_int_equal(b.asks[3].answer, BUDGET_REFUSED);
        assert_int_equal(n_charges(&b, "b1"), 2);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        run(&b, 5 * USEC_PER_MINUTE);
        assert_int_equal(b.asks[3].answer, BUDGET_REFUSED);
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "n3");
        run(&b, USEC_PER_SEC);
        assert_int_equal(b.asks[3].answer, BUDGET_ADMITTED); /* n0 */
        assert_int_equal(b.asks[2].answer, BUDGET_REFUSED);
        fake_delete(b.w.cluster, FAKE_NDBS, NULL, "b1", -1);
        run(&b, USEC_PER_SEC);
        assert_int_equal(b.asks[2].answer, BUDGET_ADMITTED);
        bench_done(&b);
}

/* A webhook has charged it, and whoever leads sees its deletion, and that another node is away, before that charge. */
TEST_CASE(test_charged_by_another) {
        Asked *a;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        fake_api_mute(fake_cluster_api(b.w.cluster), FAKE_NDBS, usec_add(loop_now(b.w.loop), 20 * USEC_PER_SEC));
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        set_ready(&b, "n4", false);
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "n0", "{'metadata':{'finalizers':['vesper.sh/termination']}}");
        assert_true(fake_delete(b.w.cluster, FAKE_NODES, NULL, "n0", -1));
        while (kube_node_is_ready(cluster_view_node(b.replicas[0].view, "n4")) ||
               cluster_view_node(b.replicas[0].view, "n0")->object.meta.deletion_usec == 0)
                run(&b, 100);
        a = ask_as(&b, 0, "n0", (BudgetAsk){ .begun = true });
        run(&b, 30 * USEC_PER_SEC);
        assert_int_equal(a->answer, BUDGET_ADMITTED);
        bench_done(&b);
}

TEST_CASE(test_no_leader) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        budget_ledger_follow(b.replicas[0].ledger);
        put_budget(&b, "c2", "'maxUnavailable':1", "vesper.sh/pool");
        run(&b, USEC_PER_SEC);
        print_message("  what the last leader counted is enough, and what none has is not\n");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_REFUSED);
        assert_non_null(strstr(b.asks[0].message, "not yet by the budget's status: try again in a moment"));
        fake_remove(b.w.cluster, FAKE_NDBS, NULL, "c2");
        run(&b, USEC_PER_SEC);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_REFUSED);
        bench_done(&b);
}

/* A budget that is closed to new charges admits no drained node either, however many of them there are. */
TEST_CASE(test_closed) {
        static const struct {
                const char *what;
                bool is_leader, is_stale, is_full, admits;
        } rows[] = {
                { "of a follower, as the status says", false, false, false, true },
                { "of a follower, and the status is of an earlier generation", false, true, false, false },
                { "of a follower, with as many charges as the CRD takes", false, false, true, false },
                { "of a leader, and the status is of an earlier generation", true, true, false, true },
                { "of a leader, with as many charges as the CRD takes", true, false, true, false },
        };
        NodeCharge *charges = new0(NodeCharge, BUDGET_CHARGES_MAX);
        const ClusterView *view;
        Bench b;

        assert_non_null(charges);
        bench_init(&b, 5, "'maxUnavailable':3");
        for (size_t i = 0; i < 3; i++) {
                _cleanup_free_ char *name = strf("n%zu", i);

                fake_merge(b.w.cluster, FAKE_NODES, NULL, name,
                           "{'metadata':{'annotations':{'vesper.sh/cordoned-by-vesperctl':'x'}},"
                           "'spec':{'unschedulable':true}}");
        }
        run(&b, USEC_PER_SEC);
        view = b.replicas[0].view;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNodeBudget budget = *cluster_view_budget(view, "b1");
                BudgetDraft d;

                print_message("  %s\n", rows[i].what);
                if (rows[i].is_stale)
                        budget.observed_generation--;
                if (rows[i].is_full) {
                        budget.charges = charges;
                        budget.n_charges = BUDGET_CHARGES_MAX;
                }
                budget_draft_init(&d, view, &budget, rows[i].is_leader);
                assert_int_equal(budget_draft_has_room(&d, cluster_view_node(view, "n0")), rows[i].admits);
        }
        bench_done(&b);
        free(charges);
}

TEST_CASE(test_no_answer) {
        Asked *a;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        fake_api_away_until(fake_cluster_api(b.w.cluster), usec_add(loop_now(b.w.loop), USEC_PER_MINUTE));
        a = ask_as(&b, 1, "n0", (BudgetAsk){ .timeout_usec = 2 * USEC_PER_SEC });
        run(&b, 3 * USEC_PER_SEC);
        assert_true(a->answered);
        assert_int_equal(a->answer, BUDGET_UNKNOWN);
        bench_done(&b);
}

/* A DELETE takes the charge of a reboot slot over, and whichever ends first takes nothing from the other. */
TEST_CASE(test_delete_over_reboot) {
        const BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT, .holder = "slot-1", .for_usec = USEC_PER_HOUR };
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        b.holders[NODE_CHARGE_REBOOT] = "slot-1";
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n0", slot)), BUDGET_ADMITTED);
        assert_charge(&b, "n0", "reboot slot-1");
        print_message("  in one patch, and without room\n");
        before = n_patches(&b);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(n_patches(&b) - before, 1);
        assert_charge(&b, "n0", "DELETE alice (slot-1)");
        assert_int_equal(n_charges(&b, "b1"), 1);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        assert_int_equal(answer_of(&b, ask(&b, 0, "n1")), BUDGET_REFUSED);

        print_message("  given back, since no deletion comes\n");
        run(&b, 3 * USEC_PER_MINUTE);
        assert_charge(&b, "n0", "reboot slot-1");

        print_message("  the slot ends, and the deletion is still to come\n");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        b.holders[NODE_CHARGE_REBOOT] = NULL;
        release(&b, 0, "n0", "slot-1");
        run(&b, USEC_PER_SEC);
        assert_charge(&b, "n0", "DELETE alice");
        delete_node(&b, "n0");
        run(&b, USEC_PER_HOUR);
        assert_charge(&b, "n0", "DELETE alice");
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        bench_done(&b);
}

/* A deletion that passed uncharged takes the charge of a slot over for good. */
TEST_CASE(test_begun_over_reboot) {
        const BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT, .holder = "slot-1" };
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        b.holders[NODE_CHARGE_REBOOT] = "slot-1";
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n0", slot)), BUDGET_ADMITTED);
        delete_node(&b, "n0");
        assert_int_equal(
                answer_of(&b, ask_as(&b, 0, "n0",
                                     (BudgetAsk) { .begun = true, .holder = BUDGET_HOLDER_COORDINATOR })),
                BUDGET_ADMITTED);
        assert_charge(&b, "n0", "DELETE vesper-coordinator (slot-1)");
        release(&b, 0, "n0", "slot-1");
        run(&b, USEC_PER_HOUR);
        assert_charge(&b, "n0", "DELETE vesper-coordinator");
        bench_done(&b);
}

TEST_CASE(test_second_holder) {
        BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT, .holder = "slot-1" };
        Asked *a;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        for (size_t i = 0; i < N_REPLICAS; i++) {
                a = ask_as(&b, i, "n0", slot);
                assert_int_equal(answer_of(&b, a), BUDGET_REFUSED);
                assert_non_null(strstr(
                        a->message,
                        "NodeDisruptionBudget b1 allows no second disruption of node n0: its deletion by alice "
                        "was admitted at "));
        }
        a = ask_as(&b, 0, "n0", (BudgetAsk) { .holder = "bob" });
        assert_int_equal(answer_of(&b, a), BUDGET_REFUSED);
        assert_non_null(strstr(a->message, "alice"));
        print_message("  both at once: one of them\n");
        (void) ask(&b, 1, "n1");
        a = ask_as(&b, 0, "n1", slot);
        run(&b, USEC_PER_SEC);
        assert_true(a->answered && (a - 1)->answered);
        assert_int_equal((a - 1)->answer, BUDGET_ADMITTED);
        assert_charge(&b, "n1", a->answer == BUDGET_ADMITTED ? "DELETE alice (slot-1)" : "DELETE alice");
        print_message("  who has released a charge is charged again\n");
        slot.holder = b.holders[NODE_CHARGE_REBOOT] = "slot-2";
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n2", slot)), BUDGET_ADMITTED);
        release(&b, 0, "n2", "slot-2");
        a = ask_as(&b, 0, "n2", slot);
        assert_int_equal(answer_of(&b, a), BUDGET_ADMITTED);
        assert_charge(&b, "n2", "reboot slot-2");
        release(&b, 0, "n2", "slot-2");
        run(&b, 0);
        a = ask_as(&b, 0, "n2", slot); /* while the patch is under way that takes it off */
        assert_int_equal(answer_of(&b, a), BUDGET_ADMITTED);
        assert_charge(&b, "n2", "reboot slot-2");
        print_message("  another's release takes nothing\n");
        release(&b, 0, "n2", "slot-1");
        release(&b, 1, "n0", "bob");
        run(&b, USEC_PER_SEC);
        assert_charge(&b, "n2", "reboot slot-2");
        assert_charge(&b, "n0", "DELETE alice");
        bench_done(&b);
}

/* The charge of a slot stands while its holder is in the view, and no longer. */
TEST_CASE(test_missing_holder) {
        const BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT,
                                 .holder = "slot-1",
                                 .for_usec = 10 * USEC_PER_MINUTE };
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        b.holders[NODE_CHARGE_REBOOT] = "slot-1";
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n0", slot)), BUDGET_ADMITTED);
        run(&b, USEC_PER_HOUR);
        assert_charge(&b, "n0", "reboot slot-1");
        b.holders[NODE_CHARGE_REBOOT] = "slot-2";
        run(&b, 110 * USEC_PER_SEC);
        assert_charge(&b, "n0", "reboot slot-1");
        run(&b, 80 * USEC_PER_SEC);
        assert_charge(&b, "n0", "");
        bench_done(&b);
}

/* A user who deletes again when the charge is about to end has the whole time once more. */
TEST_CASE(test_renewed) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        run(&b, 100 * USEC_PER_SEC);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        run(&b, 110 * USEC_PER_SEC);
        assert_charge(&b, "n0", "DELETE alice");
        run(&b, 20 * USEC_PER_SEC);
        assert_charge(&b, "n0", "");
        bench_done(&b);
}

/* A charge of an earlier version is read, and ends by its time. */
TEST_CASE(test_earlier_version) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        fake_merge(
                b.w.cluster, FAKE_NDBS, NULL, "b1",
                "{'status':{'disruptedNodes':[{'name':'n0','uid':'%s','time':'2026-01-01T00:00:00Z','kind':'Reboot','holder':'reboot',"
                "'until':'2026-01-01T00:10:00Z'}]}}",
                uid_of(&b, "n0"));
        run(&b, USEC_PER_SEC);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_REFUSED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n0",
                                              (BudgetAsk) { .kind = NODE_CHARGE_REBOOT, .holder = "x" })),
                         BUDGET_REFUSED);
        run(&b, 9 * USEC_PER_MINUTE);
        assert_int_equal(n_charges(&b, "b1"), 1);
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(n_charges(&b, "b1"), 0);
        bench_done(&b);
}

/* The slot of a reboot that an earlier version has charged ends: its charge names no holder, and goes all the same. */
TEST_CASE(test_earlier_version_is_released) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1",
                   "{'status':{'disruptedNodes':[{'name':'n0','uid':'%s','time':'2026-01-01T00:00:00Z','kind':'Reboot','holder':'reboot',"
                   "'until':'2026-01-01T00:45:00Z'}]}}",
                   uid_of(&b, "n0"));
        run(&b, USEC_PER_SEC);
        assert_int_equal(n_charges(&b, "b1"), 1);
        release(&b, 0, "n1", "request-7");
        run(&b, USEC_PER_SEC);
        assert_int_equal(n_charges(&b, "b1"), 1);
        release(&b, 0, "n0", "request-7");
        run(&b, USEC_PER_SEC);
        assert_int_equal(n_charges(&b, "b1"), 0);
        bench_done(&b);
}

static void refuse_poison(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        const Bench *b = userdata;

        if (request->verb == FAKE_PATCH && streq_ptr(request->name, b->poisoned) &&
            strstr(request->x->body, b->poison)) {
                ret_fault->status = 422;
                ret_fault->message = "too long: may not be more than 64 bytes";
        }
}

/* A charge that the API server refuses takes no other along. */
TEST_CASE(test_refused_patch) {
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':4");
        put_budget(&b, "a0", "'maxUnavailable':4", "vesper.sh/pool");
        run(&b, USEC_PER_SEC);
        b.poison = "mallory";
        b.poisoned = "a0";
        fake_api_set_fault(fake_cluster_api(b.w.cluster), refuse_poison, &b);
        before = n_patches(&b);
        (void) ask_as(&b, 1, "n0", (BudgetAsk) { .holder = "mallory" });
        for (size_t i = 1; i < 4; i++) {
                _cleanup_free_ char *name = strf("n%zu", i);

                (void) ask(&b, 1, name);
        }
        run(&b, 2 * USEC_PER_SEC);
        for (size_t i = 0; i < 4; i++) {
                assert_true(b.asks[i].answered);
                assert_int_equal(b.asks[i].answer, i == 0 ? BUDGET_UNKNOWN : BUDGET_ADMITTED);
        }
        assert_non_null(
                strstr(b.asks[0].message,
                       "The API server refuses the charge of node n0 in NodeDisruptionBudget a0 (HTTP 422): "
                       "too long: may not be more than 64 bytes"));
        assert_int_equal(n_charges(&b, "a0"), 3);
        assert_int_equal(n_charges(&b, "b1"), 3);
        /* In a0 all four, then each alone; in b1 as they come; and figures. */
        assert_in_range(n_patches(&b) - before, 1 + 4 + 1, 16);
        before = n_patches(&b);
        run(&b, 10 * USEC_PER_MINUTE);
        assert_in_range(n_patches(&b) - before, 0, 4); /* the charges end */

        print_message("  refused by the second budget: the first gives its charge back\n");
        b.poisoned = "b1";
        assert_int_equal(answer_of(&b, ask_as(&b, 1, "n4", (BudgetAsk) { .holder = "mallory" })),
                         BUDGET_UNKNOWN);
        run(&b, USEC_PER_SEC);
        assert_int_equal(n_charges(&b, "a0"), 0);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n4")), BUDGET_ADMITTED);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_figures),
                cmocka_unit_test(test_fifty_at_once),
                cmocka_unit_test(test_idempotent),
                cmocka_unit_test(test_passes),
                cmocka_unit_test(test_all_or_none),
                cmocka_unit_test(test_how_long),
                cmocka_unit_test(test_begun),
                cmocka_unit_test(test_charged_by_another),
                cmocka_unit_test(test_no_leader),
                cmocka_unit_test(test_closed),
                cmocka_unit_test(test_no_answer),
                cmocka_unit_test(test_delete_over_reboot),
                cmocka_unit_test(test_begun_over_reboot),
                cmocka_unit_test(test_second_holder),
                cmocka_unit_test(test_missing_holder),
                cmocka_unit_test(test_renewed),
                cmocka_unit_test(test_earlier_version),
                cmocka_unit_test(test_earlier_version_is_released),
                cmocka_unit_test(test_refused_patch),
        };
        return cmocka_run_group_tests_name("budget-ledger", tests, NULL, NULL);
}
