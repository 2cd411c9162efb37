/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "budget-bench.h"
#include "texts.h"

/*
 * The ledger of charges over time: remains of a first round, other answers of the API server, the number of
 * writes, reads and answers, and replicas while nobody leads.
 */

#define S USEC_PER_SEC

/* -- other answers -------------------------------------------------------------------------------------- */

/* The answer to the first n patches of a status. */
typedef struct Answers {
        FakeApiFault fault;
        unsigned n, n_left;
} Answers;

static void on_fault(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        Answers *a = userdata;

        if (q->verb != FAKE_PATCH || !q->resource || q->resource->id != FAKE_NDBS || a->n_left == 0)
                return;
        a->n_left--;
        *ret_fault = a->fault;
}

static unsigned n_warnings(const Bench *b) {
        unsigned n = 0;

        for (size_t i = 0; i < N_REPLICAS; i++)
                n += text_count(strbuf_str(&b->replicas[i].said), "Failed to write the status of NodeDisruptionBudget b1");
        return n;
}

typedef struct AnswerRow {
        const char *what;
        FakeApiFault fault;
        unsigned n;
        unsigned n_patches, n_reads, n_warnings; /* numbers of one round */
        usec_t least_usec, most_usec;            /* until the answer to the request */
} AnswerRow;

/* Takes one charge while the API server answers as the row says. */
static void play_answers(Bench *b, const AnswerRow *row, Answers *answers, const char *node) {
        FakeApi *api = fake_cluster_api(b->w.cluster);
        uint64_t patches = n_patches(b), reads = fake_api_count(api, FAKE_GET, FAKE_NDBS, NULL);
        usec_t begin = loop_now(b->w.loop);
        unsigned warnings = n_warnings(b);
        Asked *a;

        answers->n_left = row->n;
        a = ask_as(b, 1, node, (BudgetAsk) { .timeout_usec = 60 * S });
        while (!a->answered)
                run(b, 5 * USEC_PER_MSEC);
        assert_string_equal(budget_answer_names[a->answer], "admitted");
        assert_in_range(loop_now(b->w.loop) - begin, row->least_usec, row->most_usec);
        assert_charge(b, node, "DELETE alice");
        assert_int_equal(answers->n_left, 0);
        assert_int_equal(n_patches(b) - patches, row->n_patches);
        assert_int_equal(fake_api_count(api, FAKE_GET, FAKE_NDBS, NULL) - reads, row->n_reads);
        assert_int_equal(n_warnings(b) - warnings, row->n_warnings);
        run(b, S);
        assert_int_equal(a->n_answers, 1);
}

/* With each other answer the charge ends as without it, only later. The second round is like the first. */
TEST_CASE(test_other_answers) {
        static const AnswerRow rows[] = {
                { "as always", { 0 }, 0, 1, 0, 0, 0, 50 * USEC_PER_MSEC },
                { "a conflict", { .status = 409 }, 1, 2, 1, 0, 0, 50 * USEC_PER_MSEC },
                { "two conflicts", { .status = 409 }, 2, 3, 2, 0, 200 * USEC_PER_MSEC, 650 * USEC_PER_MSEC },
                { "not found, though it is there", { .status = 404 }, 1, 2, 0, 0, 50 * USEC_PER_MSEC,
                  300 * USEC_PER_MSEC },
                { "the credential is refused, and read again", { .status = 401 }, 1, 1, 0, 0, 0,
                  50 * USEC_PER_MSEC },
                { "too many requests", { .status = 429, .retry_after_sec = 3 }, 1, 2, 0, 1, 3 * S,
                  3200 * USEC_PER_MSEC },
                { "an error", { .status = 500 }, 1, 2, 0, 1, 50 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { "unavailable, three times", { .status = 503 }, 3, 4, 0, 1, 350 * USEC_PER_MSEC,
                  1400 * USEC_PER_MSEC },
                { "no answer, nothing done", { .drop = true }, 1, 2, 1, 1, 50 * USEC_PER_MSEC,
                  300 * USEC_PER_MSEC },
                { "no answer, and done", { .drop = true, .takes_effect = true }, 1, 1, 1, 1,
                  50 * USEC_PER_MSEC, 700 * USEC_PER_MSEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Answers answers = { .fault = rows[i].fault };
                uint64_t before;
                Bench b;

                print_message("  %s\n", rows[i].what);
                bench_init(&b, 5, "'maxUnavailable':4");
                budget_ledger_follow(b.replicas[0].ledger); /* the leader's status is patches, too */
                fake_api_set_fault(fake_cluster_api(b.w.cluster), on_fault, &answers);
                for (unsigned round = 0; round < 3; round++) {
                        _cleanup_free_ char *node = strf("n%u", round);

                        print_message("    round %u\n", round);
                        play_answers(&b, rows + i, &answers, node);
                }
                assert_int_equal(n_charges(&b, "b1"), 3);
                print_message("    the budget allows none any more\n");
                fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'spec':{'maxUnavailable':0}}");
                run(&b, S);
                before = n_patches(&b);
                assert_int_equal(answer_of(&b, ask(&b, 1, "n3")), BUDGET_REFUSED);
                assert_int_equal(n_patches(&b), before);
                bench_done(&b);
        }
}

/* The API server refuses the content of a patch for good, or the moment is wrong: then the ledger tries again. */
TEST_CASE(test_refusals) {
        static const struct {
                unsigned status;
                bool is_final;
        } rows[] = { { 400, true }, { 403, true }, { 404, false }, { 405, true }, { 408, false }, { 409, false },
                     { 413, true }, { 422, true }, { 429, false }, { 499, true }, { 500, false }, { 503, false } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Answers answers = { .fault = { .status = rows[i].status, .message = "so it is" }, .n_left = 1 };
                uint64_t before;
                Asked *a;
                Bench b;

                print_message("  %u\n", rows[i].status);
                bench_init(&b, 5, "'maxUnavailable':4");
                budget_ledger_follow(b.replicas[0].ledger);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), on_fault, &answers);
                before = n_patches(&b);
                a = ask_as(&b, 1, "n0", (BudgetAsk) { .timeout_usec = 60 * S });
                run(&b, 5 * S);
                assert_int_equal(a->n_answers, 1);
                assert_string_equal(budget_answer_names[a->answer], rows[i].is_final ? "unknown" : "admitted");
                assert_int_equal(n_patches(&b) - before, rows[i].is_final ? 1 : 2);
                assert_int_equal(n_charges(&b, "b1"), rows[i].is_final ? 0 : 1);
                if (rows[i].is_final) {
                        _cleanup_free_ char *text = MUST(strf("(HTTP %u): so it is", rows[i].status));

                        assert_non_null(strstr(a->message, text));
                }
                assert_int_equal(n_warnings(&b), rows[i].status == 404 || rows[i].status == 409 ? 0 : 1);
                bench_done(&b);
        }
}

/* A person has to grant a permission, or to correct a policy: the ledger warns once, however many requests
 * are refused, until a patch succeeds. A refusal is news also after a warning that patches fail. */
TEST_CASE(test_refused_again) {
        static const struct {
                const char *what;
                unsigned status;
                bool leads, fails_before;
        } rows[] = {
                { "no permission", 403, false, false },
                { "invalid", 422, false, false },
                { "invalid, after an error", 422, false, true },
                { "no permission, and the ledger leads", 403, true, false },
                { "invalid, and the ledger leads", 422, true, false },
                { "invalid, after an error, and the ledger leads", 422, true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                unsigned n = rows[i].fails_before ? 2 : 1;
                size_t replica = rows[i].leads ? 0 : 1;
                Answers answers = { .n_left = 0 };
                Bench b;

                print_message("  %s\n", rows[i].what);
                bench_init(&b, 6, "'maxUnavailable':4");
                if (!rows[i].leads)
                        budget_ledger_follow(b.replicas[0].ledger);
                fake_api_set_fault(fake_cluster_api(b.w.cluster), on_fault, &answers);
                for (unsigned round = 1; round <= 2; round++) {
                        _cleanup_free_ char *node = strf("n%u", round);
                        Asked *first = ask(&b, replica, node);

                        answers.fault.status = rows[i].fails_before ? 500 : rows[i].status;
                        answers.n_left = UINT_MAX;
                        run(&b, 20 * USEC_PER_MSEC);
                        assert_int_equal(n_warnings(&b), n * (round - 1) + 1);
                        answers.fault.status = rows[i].status;
                        assert_int_equal(answer_of(&b, first), BUDGET_UNKNOWN);
                        assert_int_equal(n_warnings(&b), n * round);
                        for (unsigned k = 0; k < 2; k++) {
                                if (!rows[i].leads)
                                        wake_ledgers(&b, "n5", 2 * S);
                                assert_int_equal(answer_of(&b, ask(&b, replica, node)), BUDGET_UNKNOWN);
                        }
                        assert_int_equal(n_warnings(&b), n * round);
                        answers.n_left = 0;
                        assert_int_equal(answer_of(&b, ask(&b, replica, node)), BUDGET_ADMITTED);
                }
                bench_done(&b);
        }
}

/* The ledger forgets a release once its charge is gone: the same holder is charged again, by another replica. */
TEST_CASE(test_charged_again) {
        Bench b;

        bench_init(&b, 6, "'maxUnavailable':3");
        for (unsigned round = 0; round < 2; round++) {
                assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
                assert_charge(&b, "n0", "DELETE alice");
                wake_ledgers(&b, "n5", 2 * S);
                assert_charge(&b, "n0", "DELETE alice");
                release(&b, 0, "n0", "alice");
                run(&b, S);
                assert_charge(&b, "n0", "");
        }
        bench_done(&b);
}

static void refuse_lists(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        if ((q->verb == FAKE_LIST || q->verb == FAKE_WATCH) && q->resource && q->resource->id == FAKE_NDBS)
                ret_fault->status = 503;
}

/* etcd was restored, and versions count from an earlier number. The view has the state of before for a while: the
 * ledger goes by what it reads, and after that by the view again. */
TEST_CASE(test_restored) {
        _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;
        FakeApi *api;
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        api = fake_cluster_api(b.w.cluster);
        budget_ledger_follow(b.replicas[0].ledger);
        backup = fake_store_backup(fake_cluster_store(b.w.cluster));
        for (unsigned i = 0; i < 20; i++)
                fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'metadata':{'annotations':{'x':'%u'}}}", i);
        run(&b, S);
        fake_api_set_fault(api, refuse_lists, NULL);
        fake_cluster_restore(b.w.cluster, backup, 0, 100 * USEC_PER_MSEC);
        run(&b, S);
        for (unsigned i = 0; i < 2; i++) {
                before = n_patches(&b);
                assert_int_equal(answer_of(&b, ask(&b, 1, i ? "n1" : "n0")), BUDGET_ADMITTED);
                assert_int_equal(n_charges(&b, "b1"), 1 + (int) i);
                assert_int_equal(n_patches(&b) - before, i ? 1 : 2);
        }
        print_message("  the view has it, and what comes after\n");
        fake_api_set_fault(api, NULL, NULL);
        run(&b, 60 * S);
        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'metadata':{'generation':2},'spec':{'maxUnavailable':2}}");
        run(&b, S);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n2")), BUDGET_REFUSED);
        assert_int_equal(n_charges(&b, "b1"), 2);
        bench_done(&b);
}

/* etcd was restored, and has lost a charge that the view did not have yet: the node is charged again. */
TEST_CASE(test_restored_after_a_charge) {
        const BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT, .holder = "slot-1" };
        _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        budget_ledger_follow(b.replicas[0].ledger);
        backup = fake_store_backup(fake_cluster_store(b.w.cluster));
        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'metadata':{'annotations':{'x':'y'}}}");
        run(&b, S);
        fake_api_mute(fake_cluster_api(b.w.cluster), FAKE_NDBS, usec_add(loop_now(b.w.loop), 10 * S));
        assert_int_equal(answer_of(&b, ask_as(&b, 1, "n0", slot)), BUDGET_ADMITTED);
        assert_charge(&b, "n0", "reboot slot-1");
        fake_cluster_restore(b.w.cluster, backup, 0, 100 * USEC_PER_MSEC);
        run(&b, 10 * USEC_PER_MINUTE); /* the view lists the budgets again */
        assert_charge(&b, "n0", "");
        assert_int_equal(answer_of(&b, ask_as(&b, 1, "n0", slot)), BUDGET_ADMITTED);
        assert_charge(&b, "n0", "reboot slot-1");
        bench_done(&b);
}

/* While the patch is under way that takes one charge off, the charge of another node stands. */
TEST_CASE(test_charged_beside_a_release) {
        Answers answers = { .fault = { .delay_usec = 2 * S }, .n_left = 1 };
        Asked *a;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        budget_ledger_follow(b.replicas[0].ledger);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_ADMITTED);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), on_fault, &answers);
        release(&b, 1, "n0", "alice");
        run(&b, 10 * USEC_PER_MSEC);
        assert_int_equal(answers.n_left, 0);
        a = ask(&b, 1, "n1");
        run(&b, 10 * USEC_PER_MSEC);
        assert_int_equal(a->n_answers, 1);
        assert_string_equal(budget_answer_names[a->answer], "admitted");
        run(&b, 3 * S);
        assert_charge(&b, "n0", "");
        assert_charge(&b, "n1", "DELETE alice");
        bench_done(&b);
}

/* Budgets are charged in the order of their names, one after the other. */
TEST_CASE(test_order) {
        static const char *const names[] = { "a9", "b1", "c0" };
        Answers answers = { .fault = { .delay_usec = S }, .n_left = 3 };
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        put_budget(&b, "c0", "'maxUnavailable':3", "vesper.sh/pool");
        put_budget(&b, "a9", "'maxUnavailable':3", "vesper.sh/pool");
        run(&b, S);
        budget_ledger_follow(b.replicas[0].ledger);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), on_fault, &answers);
        (void) ask(&b, 1, "n0");
        run(&b, 500 * USEC_PER_MSEC);
        for (unsigned i = 0; i <= 3; i++) {
                for (unsigned k = 0; k < 3; k++)
                        assert_int_equal(n_charges(&b, names[k]), k < i);
                assert_int_equal(b.asks[0].answered, i == 3);
                run(&b, 1100 * USEC_PER_MSEC);
        }
        bench_done(&b);
}

/* -- what waits ----------------------------------------------------------------------------------------- */

/* A request that has to wait is told the reason at once and then each minute, not more often if the ledger
 * evaluates the budget all the time. */
TEST_CASE(test_parked) {
        for (unsigned poked = 0; poked < 2; poked++) {
                Asked *first, *second;
                Bench b;

                print_message("  %s\n", poked ? "nodes change all the time" : "nothing changes");
                bench_init(&b, 7, "'maxUnavailable':2");
                set_ready(&b, "n4", false);
                set_ready(&b, "n6", false);
                delete_node(&b, "n0");
                delete_node(&b, "n1");
                first = ask_as(&b, 0, "n0", (BudgetAsk) { .begun = true });
                second = ask_as(&b, 0, "n1", (BudgetAsk) { .begun = true });
                run(&b, S);
                assert_int_equal(first->n_answers, 1);
                for (unsigned minute = 1; minute <= 4; minute++) {
                        for (unsigned i = 0; i < 5 && poked; i++)
                                wake_ledgers(&b, "n5", 2 * S);
                        run(&b, USEC_PER_MINUTE - (poked ? 10 * S : 0));
                        assert_string_equal(budget_answer_names[first->answer], "refused");
                        assert_int_equal(first->n_answers, 1 + minute);
                        assert_int_equal(second->n_answers, 1 + minute);
                }
                bench_done(&b);
        }
}

/* With room for one node the Node that was deleted first is admitted. The other one gets no answer before
 * its minute is over. */
TEST_CASE(test_room_for_one) {
        Asked *first, *second;
        unsigned n;
        Bench b;

        bench_init(&b, 6, "'maxUnavailable':1");
        set_ready(&b, "n4", false);
        delete_node(&b, "n1");
        run(&b, 2 * S);
        delete_node(&b, "n0");
        second = ask_as(&b, 0, "n0", (BudgetAsk) { .begun = true });
        first = ask_as(&b, 0, "n1", (BudgetAsk) { .begun = true });
        run(&b, 10 * S);
        n = second->n_answers;
        set_ready(&b, "n4", true);
        run(&b, 5 * S);
        assert_string_equal(budget_answer_names[first->answer], "admitted");
        assert_string_equal(budget_answer_names[second->answer], "refused");
        assert_int_equal(second->n_answers, n);
        assert_int_equal(n_charges(&b, "b1"), 1);
        bench_done(&b);
}

/* Each charge of a refused patch is tried by itself. Meanwhile the room is gone: each request gets that answer at once. */
TEST_CASE(test_refused_without_room) {
        Answers answers = { .fault = { .status = 422, .delay_usec = 300 * USEC_PER_MSEC }, .n_left = 1 };
        Asked *asks[3];
        Bench b;

        bench_init(&b, 6, "'maxUnavailable':3");
        budget_ledger_follow(b.replicas[0].ledger);
        fake_api_set_fault(fake_cluster_api(b.w.cluster), on_fault, &answers);
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                asks[i] = ask(&b, 1, node);
        }
        run(&b, 100 * USEC_PER_MSEC);
        for (unsigned i = 3; i < 6; i++) {
                _cleanup_free_ char *node = strf("n%u", i);

                set_ready(&b, node, false);
        }
        run(&b, S);
        for (unsigned i = 0; i < 3; i++) {
                assert_int_equal(asks[i]->n_answers, 1);
                assert_string_equal(budget_answer_names[asks[i]->answer], "refused");
        }
        assert_int_equal(answers.n_left, 0);
        assert_int_equal(n_charges(&b, "b1"), 0);
        bench_done(&b);
}

/* Two nodes are drained at once. The room that a drained node leaves is used only once. */
TEST_CASE(test_drained_at_once) {
        Asked *asks[2];
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        for (unsigned i = 0; i < 2; i++)
                fake_merge(b.w.cluster, FAKE_NODES, NULL, i ? "n1" : "n0",
                           "{'metadata':{'annotations':{'vesper.sh/cordoned-by-vesperctl':'x'}},'spec':{'unschedulable':true}}");
        run(&b, S);
        asks[0] = ask(&b, 0, "n0");
        asks[1] = ask(&b, 0, "n1");
        run(&b, S);
        assert_int_equal((asks[0]->answer == BUDGET_ADMITTED) + (asks[1]->answer == BUDGET_ADMITTED), 1);
        assert_int_equal(n_charges(&b, "b1"), 1);
        bench_done(&b);
}

/* -- figures -------------------------------------------------------------------------------------------- */

/* The second change comes too soon after the first write, and no event follows: a timer has to write it. */
TEST_CASE(test_two_changes) {
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        before = n_patches(&b);
        set_ready(&b, "n1", false);
        run(&b, 50 * USEC_PER_MSEC);
        set_ready(&b, "n2", false);
        run(&b, S);
        assert_int_equal(figure(&b, "b1", "currentAvailable"), 3);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 1);
        assert_int_equal(n_patches(&b) - before, 2);
        bench_done(&b);
}

/* A new generation with the same figures is written once. */
TEST_CASE(test_generation) {
        uint64_t before;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        before = n_patches(&b);
        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'metadata':{'generation':2}}");
        run(&b, 10 * S);
        assert_int_equal(figure(&b, "b1", "observedGeneration"), 2);
        assert_int_equal(n_patches(&b) - before, 1);
        bench_done(&b);
}

/* -- leaders -------------------------------------------------------------------------------------------- */

/* A replica that becomes leader again restarts the time limit of a charge. */
TEST_CASE(test_leads_again) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        run(&b, 100 * S);
        budget_ledger_follow(b.replicas[0].ledger);
        run(&b, 10 * S);
        budget_ledger_lead(b.replicas[0].ledger, (HttpGuard) { 0 },
                           &(BudgetHolders) { .holder_exists = on_holder, .userdata = &b });
        run(&b, 118 * S);
        assert_charge(&b, "n0", "DELETE alice");
        run(&b, 4 * S);
        assert_charge(&b, "n0", "");
        bench_done(&b);
}

/* While watches are down a missing holder may exist. The time limit begins when the watches are up again. */
TEST_CASE(test_watches_down) {
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        b.holders[NODE_CHARGE_REBOOT] = "slot-1";
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n0", (BudgetAsk) { .kind = NODE_CHARGE_REBOOT,
                                                            .holder = "slot-1" })),
                         BUDGET_ADMITTED);
        b.holders[NODE_CHARGE_REBOOT] = NULL;
        run(&b, 65 * S);
        fake_api_away_until(fake_cluster_api(b.w.cluster), usec_add(loop_now(b.w.loop), 150 * S));
        run(&b, 150 * S);
        for (unsigned i = 0; i < 60 && !cluster_view_healthy(b.replicas[0].view); i++)
                run(&b, S);
        assert_true(cluster_view_healthy(b.replicas[0].view));
        run(&b, 10 * S);
        assert_charge(&b, "n0", "reboot slot-1");
        run(&b, 150 * S);
        assert_charge(&b, "n0", "");
        bench_done(&b);
}

/* While nobody leads, replicas spend the room that the last leader counted, and give back only room that is
 * free for certain. */
TEST_CASE(test_without_leader) {
        const BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT, .holder = "slot-1" };
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':3");
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 3);
        budget_ledger_follow(b.replicas[0].ledger);
        print_message("  charged, and taken over\n");
        assert_int_equal(answer_of(&b, ask_as(&b, 1, "n0", slot)), BUDGET_ADMITTED);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_charge(&b, "n0", "DELETE alice (slot-1)");
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        print_message("  released\n");
        assert_int_equal(answer_of(&b, ask(&b, 1, "n1")), BUDGET_ADMITTED);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 1);
        release(&b, 1, "n1", "alice");
        run(&b, S);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        print_message("  by the replica's own count there is less room than the status says\n");
        set_ready(&b, "n3", false);
        set_ready(&b, "n4", false);
        run(&b, S);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 2);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n2")), BUDGET_REFUSED);
        bench_done(&b);
}

/* A charge that is taken over gives no room back, although the replica counts more room than the last
 * leader's status. */
TEST_CASE(test_taken_over_without_leader) {
        const BudgetAsk slot = { .kind = NODE_CHARGE_REBOOT, .holder = "slot-1" };
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':2");
        b.holders[NODE_CHARGE_REBOOT] = "slot-1";
        set_ready(&b, "n4", false);
        run(&b, S);
        assert_int_equal(answer_of(&b, ask_as(&b, 0, "n0", slot)), BUDGET_ADMITTED);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        budget_ledger_follow(b.replicas[0].ledger);
        set_ready(&b, "n4", true);
        run(&b, S);
        assert_int_equal(answer_of(&b, ask(&b, 1, "n0")), BUDGET_ADMITTED);
        assert_charge(&b, "n0", "DELETE alice (slot-1)");
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_other_answers),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_refused_again),
                cmocka_unit_test(test_charged_again),
                cmocka_unit_test(test_restored),
                cmocka_unit_test(test_restored_after_a_charge),
                cmocka_unit_test(test_charged_beside_a_release),
                cmocka_unit_test(test_order),
                cmocka_unit_test(test_parked),
                cmocka_unit_test(test_room_for_one),
                cmocka_unit_test(test_refused_without_room),
                cmocka_unit_test(test_drained_at_once),
                cmocka_unit_test(test_two_changes),
                cmocka_unit_test(test_generation),
                cmocka_unit_test(test_leads_again),
                cmocka_unit_test(test_watches_down),
                cmocka_unit_test(test_without_leader),
                cmocka_unit_test(test_taken_over_without_leader),
        };

        return cmocka_run_group_tests_name("budget-rounds", tests, NULL, NULL);
}
