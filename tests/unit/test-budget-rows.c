/* SPDX-License-Identifier: Apache-2.0 */
#include "budget-bench.h"
#include "budget-charge-rows.h"
#include "budget-math-rows.h"
#include "budget-text-rows.h"

/*
 * The tables of the pure rules of budgets, played through the ledger. Each row builds a cluster in which
 * its facts hold. The decision is read from the status of the NodeDisruptionBudget, from the answer to the
 * request, and from the number of patches.
 */

#define CHARGE_TIME "2027-01-15T08:00:00Z"
#define FOR_USEC (20 * USEC_PER_MINUTE) /* expected length of a slot: unlike the time of a DELETE charge */

static const char *const kind_names[_NODE_CHARGE_KIND_MAX] = { [D] = "DELETE", [R] = "reboot",
                                                            [O] = "operation", [S] = "successor" };

/* Writes the only charge of the budget, for the node. holder NULL: a charge of an earlier version. */
static void put_charge(Bench *b, const char *budget, const char *node, const char *uid, NodeChargeKind kind,
                       const char *holder,
                       const char *before, const char *time, const char *until) {
        _cleanup_free_ char *of = holder ? strf("'kind':'%s','holder':'%s'", kind_names[kind], holder)
                                         : strf("'kind':'Deletion','holder':'webhook'"),
                            *held = before ? strf(",'heldBefore':'%s'", before) : strdup(""),
                            *stands = until ? strf(",'until':'%s'", until) : strdup("");

        fake_merge(b->w.cluster, FAKE_NDBS, NULL, budget,
                   "{'status':{'disruptedNodes':[{'name':'%s','uid':'%s','time':'%s',%s%s%s}]}}", node,
                   uid, time, of, held, stands);
}

static const cJSON *charge_json(Bench *b, const char *node) {
        return fj_find(fj_get(status(b, "b1"), "disruptedNodes", NULL), "name", node);
}

/* Asserts that a time of the charge is this far from now, give or take a few seconds. */
static void assert_charge_time(Bench *b, const char *node, const char *key, usec_t ahead_usec) {
        usec_t time, now = loop_wall(b->w.loop);

        assert_return_code(rfc3339_parse(strempty(fj_string(charge_json(b, node), key, NULL)), &time), 0);
        assert_in_range(time, now + ahead_usec - 3 * USEC_PER_SEC, now + ahead_usec);
}

/* -- who may have a charge ------------------------------------------------------------------------------ */

static const char *answer_name(BudgetAnswer a) {
        return budget_answer_names[a];
}

/* Asks for a charge of n0, whose charge has this age, and checks the ledger's decision. */
static void play_claim(NodeChargeKind kind, const char *holder, usec_t age_usec, NodeChargeKind asks,
                       const char *who, bool begun,
                       size_t replica, ChargeClaim claim) {
        _cleanup_free_ char *expected = NULL, *before = NULL, *after = NULL;
        char time[RFC3339_MAX];
        uint64_t n;
        Asked *a;
        Bench b;

        bench_init(&b, 5, "'maxUnavailable':1");
        if (begun)
                delete_node(&b, "n0");
        rfc3339_format(loop_wall(b.w.loop) - age_usec, time);
        if (holder)
                b.holders[kind] = holder;
        put_charge(&b, "b1", "n0", uid_of(&b, "n0"), kind, holder, NULL, time, NULL);
        run(&b, USEC_PER_SEC);
        before = charge_of(&b, "n0");
        n = n_patches(&b);
        a = ask_as(&b, replica, "n0", (BudgetAsk) { .kind = asks, .holder = who, .begun = begun,
                                                    .for_usec = FOR_USEC });
        run(&b, USEC_PER_SEC);
        after = charge_of(&b, "n0");
        assert_int_equal(a->n_answers, 1);
        assert_string_equal(answer_name(a->answer), claim == CHARGE_CLAIM_REFUSED ? "refused" : "admitted");
        assert_int_equal(n_patches(&b) - n, claim == CHARGE_CLAIM_REPLACE ? 1 : 0);
        if (claim == CHARGE_CLAIM_REPLACE) {
                expected = kind == D ? strf("%s %s", kind_names[asks], who) : strf("%s %s (%s)",
                                                            kind_names[asks], who, holder);
                assert_string_equal(after, expected);
                assert_charge_time(&b, "n0", "time", 0);
                assert_charge_time(&b, "n0", "until", BUDGET_CHARGE_USEC);
        } else
                assert_string_equal(after, before);
        assert_int_equal(n_charges(&b, "b1"), 1);
        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), 0);
        if (claim == CHARGE_CLAIM_REFUSED)
                assert_non_null(strstr(a->message, "allows no second disruption of node n0: "));
        bench_done(&b);
}

TEST_CASE(test_claim) {
        for (size_t i = 0; i < ELEMENTSOF(charge_claim_rows); i++)
                for (size_t replica = 0; replica < N_REPLICAS; replica++) {
                        const ChargeClaimRow *row = charge_claim_rows + i;

                        print_message("  %zu, replica %zu\n", i, replica);
                        if (row->begun && replica > 0)
                                continue; /* only the leader asks for a deletion that has begun */
                        play_claim(row->kind, row->holder, 0, row->asks, row->who, row->begun, replica,
                                   row->claim);
                }
}

TEST_CASE(test_renewal) {
        for (size_t i = 0; i < ELEMENTSOF(charge_renewal_rows); i++) {
                const ChargeRenewalRow *row = charge_renewal_rows + i;

                print_message("  %zu\n", i);
                if (row->age_usec % USEC_PER_SEC == USEC_PER_SEC - 1)
                        continue; /* the status has whole seconds */
                play_claim(row->kind, "x", row->age_usec, row->kind, "x", row->begun, 0, row->claim);
        }
}

/* A node without a charge: room decides, and each kind of charge has its own times. */
TEST_CASE(test_claim_without_charge) {
        for (NodeChargeKind kind = 0; kind < _NODE_CHARGE_KIND_MAX; kind++)
                for (unsigned room = 0; room < 2; room++) {
                        _cleanup_free_ char *expected = strf("%s x", kind_names[kind]);
                        uint64_t n;
                        Asked *a;
                        Bench b;

                        print_message("  %s, room for %u\n", kind_names[kind], room);
                        bench_init(&b, 5, room ? "'maxUnavailable':1" : "'maxUnavailable':0");
                        b.holders[kind] = "x";
                        n = n_patches(&b);
                        a = ask_as(&b, 0, "n0", (BudgetAsk) { .kind = kind, .holder = "x",
                                                            .for_usec = FOR_USEC });
                        run(&b, USEC_PER_SEC);
                        assert_int_equal(a->n_answers, 1);
                        assert_string_equal(answer_name(a->answer), room ? "admitted" : "refused");
                        assert_charge(&b, "n0", room ? expected : "");
                        assert_int_equal(n_patches(&b) - n, room);
                        if (room) {
                                assert_charge_time(&b, "n0", "time", 0);
                                assert_charge_time(&b, "n0", "until",
                                                   kind == D ? BUDGET_CHARGE_USEC : FOR_USEC);
                        }
                        bench_done(&b);
                }
}

/* -- when a charge ends --------------------------------------------------------------------------------- */

static void assert_fate(Bench *b, const ChargeFateRow *row, ChargeFate fate) {
        _cleanup_free_ char *stands = strf("%s x%s%s%s", kind_names[row->kind], row->held_before ? " (" : "",
                                           strempty(row->held_before),
                                           row->held_before ? ")" : "");

        assert_charge(b, "n0", fate == STANDS ? stands : fate == GOES_BACK ? "reboot slot-1" : "");
        if (fate == GOES_BACK)
                assert_charge_time(b, "n0", "time", 0);
}

/* Writes the charge, and runs until one second before the time of the row. */
static void begin_fate(Bench *b, const ChargeFateRow *row) {
        usec_t rest_usec = usec_sub(row->seen_usec, USEC_PER_SEC);
        char time[RFC3339_MAX], until[RFC3339_MAX];

        bench_init(b, 5, "'maxUnavailable':3");
        if (strchr(row->facts, 'd'))
                delete_node(b, "n0");
        if (strchr(row->facts, 'b'))
                b->holders[R] = "slot-1";
        if (row->kind != D && row->unheld_usec < row->seen_usec)
                b->holders[row->kind] = "x";
        if (row->kind != D && strchr(row->facts, 'h'))
                b->holders[row->kind] = "x";
        rfc3339_format(loop_wall(b->w.loop), time);
        rfc3339_format(loop_wall(b->w.loop) + row->lasts_usec, until);
        put_charge(b, "b1", "n0", strchr(row->facts, 'n') ? uid_of(b, "n0") : "u-gone", row->kind, "x",
                   row->held_before, time,
                   row->lasts_usec > 0 ? until : NULL);
        run(b, 20 * USEC_PER_MSEC);
        if (row->kind != D && row->unheld_usec > 0 && row->unheld_usec < row->seen_usec) {
                run(b, row->seen_usec - row->unheld_usec);
                b->holders[row->kind] = NULL;
                wake_ledgers(b, "n4", USEC_PER_MSEC); /* no event shows the ledger that a holder has left */
                rest_usec = row->unheld_usec - USEC_PER_SEC;
        }
        run(b, rest_usec);
}

TEST_CASE(test_fate) {
        for (size_t i = 0; i < ELEMENTSOF(charge_fate_rows); i++) {
                const ChargeFateRow *row = charge_fate_rows + i;
                bool is_released = strchr(row->facts, 'r'), is_due = row->fate != STANDS && !is_released;
                uint64_t n;
                Bench b;

                print_message("  %s\n", row->what);
                begin_fate(&b, row);
                n = n_patches(&b);
                assert_fate(&b, row, STANDS);
                if (is_released)
                        release(&b, 0, is_released && strchr(row->facts, 'n') ? "n0" : "n1", "x");
                if (row->fate == STANDS && row->left_usec != USEC_INFINITY) {
                        run(&b, row->left_usec - (row->seen_usec == 0 ? USEC_PER_SEC : 0));
                        assert_fate(&b, row, STANDS);
                        assert_int_equal(n_patches(&b), n);
                        is_due = true;
                } else if (row->fate == STANDS) {
                        run(&b, 3 * USEC_PER_HOUR);
                        assert_fate(&b, row, STANDS);
                        assert_int_equal(n_patches(&b), n);
                }
                run(&b, 2 * USEC_PER_SEC);
                assert_fate(&b, row, is_due && row->fate == STANDS ? (strchr(row->facts,
                                                            'b') ? GOES_BACK : ENDS) : row->fate);
                assert_int_equal(n_patches(&b) - n, is_due || is_released ? 1 : 0);
                bench_done(&b);
        }
}

/* -- what is counted ------------------------------------------------------------------------------------ */

static const char *reason_of(Bench *b, const char *budget, const char *type) {
        return strempty(fj_string(fj_find(fj_get(status(b, budget), "conditions", NULL), "type", type),
                                  "reason", NULL));
}

TEST_CASE(test_figures) {
        for (size_t i = 0; i < ELEMENTSOF(budget_figure_rows); i++) {
                const BudgetFigureRow *row = budget_figure_rows + i;
                Asked *a;
                Bench b;

                print_message("  %s, %lld of %lld\n", row->amount, (long long) row->available,
                              (long long) row->expected);
                if (row->expected > 100)
                        continue; /* more nodes than a test has */
                bench_init(&b, (size_t) row->expected, row->amount);
                for (int64_t n = row->available; n < row->expected; n++) {
                        _cleanup_free_ char *name = strf("n%lld", (long long) n);

                        set_ready(&b, name, false);
                }
                run(&b, USEC_PER_SEC);
                assert_int_equal(figure(&b, "b1", "expectedNodes"), row->expected);
                assert_int_equal(figure(&b, "b1", "currentAvailable"), row->available);
                assert_int_equal(figure(&b, "b1", "desiredAvailable"), row->desired);
                assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), row->allowed);
                assert_string_equal(reason_of(&b, "b1", "DisruptionAllowed"), row->reason);
                if (row->available > 0) {
                        a = ask(&b, 1, "n0");
                        run(&b, USEC_PER_SEC);
                        assert_string_equal(answer_name(a->answer),
                                            row->allowed > 0 ? "admitted" : "refused");
                        assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), MAX(row->allowed - 1,
                                                            INT64_C(0)));
                }
                bench_done(&b);
        }
}

TEST_CASE(test_selectors) {
        for (size_t i = 0; i < ELEMENTSOF(budget_selector_rows); i++) {
                const BudgetSelectorRow *row = budget_selector_rows + i;
                _cleanup_free_ char *text = NULL;
                uint64_t n;
                Bench b;

                print_message("  %s\n", row->selector);
                bench_init(&b, 1, "'maxUnavailable':1");
                n = n_patches(&b);
                fake_put(b.w.cluster, FAKE_NDBS,
                         fj_parse("{'metadata':{'name':'b2','generation':1},'spec':{'maxUnavailable':2,'selector':%s}}", row->selector));
                run(&b, 10 * USEC_PER_SEC);
                text = cJSON_PrintUnformatted(status(&b, "b2"));
                assert_non_null(strstr(text, row->expected));
                assert_string_equal(reason_of(&b, "b2", "DisruptionAllowed"), streq(row->selector,
                                                            "{}") ? "SelectsNothing" : "NoNodes");
                assert_int_equal(n_patches(&b) - n, 1);
                bench_done(&b);
        }
}

/* Returns the conditions of the budget, each as "TYPE STATUS REASON: MESSAGE". Free it. */
static char *conditions_of(Bench *b, const char *budget) {
        _cleanup_strbuf_ StrBuf text = { 0 };
        const cJSON *c;

        cJSON_ArrayForEach(c, fj_get(status(b, budget), "conditions", NULL))
                strbuf_addf(&text, "%s %s %s%s%s\n", fj_string(c, "type", NULL), fj_string(c, "status", NULL),
                            fj_string(c, "reason", NULL), fj_string(c, "message", NULL) ? ": " : "",
                            strempty(fj_string(c, "message", NULL)));
        return strbuf_steal(&text);
}

/* The conditions of a budget that changes: each is written once, and its time is that of its last change of status. */
TEST_CASE(test_conditions) {
        static const struct {
                const char *amount, *conditions;
                const char *since; /* letters: the conditions whose status changes */
        } rows[] = {
                { "'maxUnavailable':1", "DisruptionAllowed True SufficientNodes\nInvalid False Valid\n", "dis" },
                { "'maxUnavailable':2", "DisruptionAllowed True SufficientNodes\nInvalid False Valid\n", "" },
                { "'maxUnavailable':0", "DisruptionAllowed False AllowsNone\nInvalid False Valid\n", "d" },
                { "'maxUnavailable':null,'minAvailable':'80%'",
                  "DisruptionAllowed False PercentageOfFewerNodes\nInvalid False Valid\n", "" },
                { "'minAvailable':null,'maxUnavailable':'x'",
                  "DisruptionAllowed False InvalidAmount\nInvalid True InvalidSpec: ", "i" },
                { "'maxUnavailable':1", "DisruptionAllowed True SufficientNodes\nInvalid False Valid\n", "di" },
        };
        static const char *const types[] = { "DisruptionAllowed", "Invalid", "SelectorOpenToKubelets" };
        char since[ELEMENTSOF(types)][RFC3339_MAX];
        Bench b;

        bench_init(&b, 3, rows[0].amount);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *conditions = NULL;
                char now[RFC3339_MAX];

                print_message("  %s\n", rows[i].amount);
                if (i > 0)
                        run(&b, 17 * USEC_PER_SEC);
                rfc3339_format(loop_wall(b.w.loop), now);
                if (i > 0) {
                        fake_merge(b.w.cluster, FAKE_NDBS, NULL, "b1", "{'metadata':{'generation':%zu},'spec':{%s}}", i + 1,
                                   rows[i].amount);
                        run(&b, 500 * USEC_PER_MSEC);
                }
                conditions = conditions_of(&b, "b1");
                assert_non_null(startswith(conditions, rows[i].conditions));
                assert_non_null(strstr(conditions, "SelectorOpenToKubelets True LabelOfKubelet: A kubelet may set "));
                for (size_t k = 0; k < ELEMENTSOF(types); k++) {
                        const char *at = fj_string(fj_find(fj_get(status(&b, "b1"), "conditions", NULL), "type", types[k]),
                                                   "lastTransitionTime", NULL);

                        if (i == 0)
                                strcpy(since[k], at);
                        else if (strchr(rows[i].since, "dis"[k]))
                                strcpy(since[k], now);
                        assert_string_equal(at, since[k]);
                }
        }
        bench_done(&b);
}

/* Plays the row's node beside a second node, one of which may be unavailable. The column `ending` is not
 * played: the ledger does not use it. */
TEST_CASE(test_nodes) {
        for (size_t i = 0; i < ELEMENTSOF(budget_node_rows); i++) {
                const BudgetNodeRow *row = budget_node_rows + i;
                bool is_free = row->available || row->drained;
                Asked *a, *other;
                Bench b;

                print_message("  %s\n", row->what);
                bench_init(&b, 1, "'maxUnavailable':1");
                fake_put(b.w.cluster, FAKE_NODES,
                         fj_parse("{'metadata':{'name':'x','labels':{'vesper.sh/pool':'a'}%s%s},'spec':{%s},"
                                  "'status':{'nodeInfo':{'bootID':'b1'},'conditions':[{'type':'Ready','status':'%s'}]}}",
                                  row->meta[0] ? "," : "", row->meta, row->spec, row->ready));
                run(&b, USEC_PER_SEC);
                assert_int_equal(figure(&b, "b1", "expectedNodes"), 2);
                assert_int_equal(figure(&b, "b1", "currentAvailable"), row->available ? 2 : 1);
                assert_int_equal(figure(&b, "b1", "disruptionsAllowed"), row->available ? 1 : 0);
                a = ask(&b, 0, "x");
                run(&b, USEC_PER_SEC);
                assert_string_equal(answer_name(a->answer), row->passes || is_free ? "admitted" : "refused");
                assert_int_equal(n_charges(&b, "b1"), row->passes ? 0 : 1);
                assert_int_equal(figure(&b, "b1", "currentAvailable"), 1);
                other = ask(&b, 0, "n0");
                run(&b, USEC_PER_SEC);
                assert_string_equal(answer_name(other->answer), "refused");
                bench_done(&b);
        }
}

/* -- what people read ----------------------------------------------------------------------------------- */

#define PUT_NODE(b, name, meta, spec, ready, since) \
        fake_put((b)->w.cluster, FAKE_NODES, \
                 fj_parse("{'metadata':{'name':'%s','labels':{'team':'a'}%s},'spec':{%s},'status':{'conditions':[" \
                          "{'type':'Ready','status':'%s','lastTransitionTime':'%s'}]}}", \
                          name, meta, spec, ready, since))

static void put_user(Bench *b, int64_t i) {
        _cleanup_free_ char *name = strf("n%lld", (long long) i + 1);
        char since[RFC3339_MAX];
        usec_t at;

        assert_return_code(rfc3339_parse(CHARGE_TIME, &at), 0);
        rfc3339_format(at + (usec_t) i * USEC_PER_MINUTE, since);
        if (i == 0)
                PUT_NODE(b, name,
                         ",'finalizers':['vesper.sh/termination'],'deletionTimestamp':'" CHARGE_TIME "'",
                         "'taints':[{'key':'vesper.sh/disrupted','effect':'NoSchedule'}]", "True", "2026-01-01T00:00:00Z");
        else if (i == 2 || i == 3)
                PUT_NODE(b, name, "", "", "True", "2026-01-01T00:00:00Z");
        else
                PUT_NODE(b, name, ",'creationTimestamp':'2026-01-01T00:00:00Z'", "", "False", since);
}

/* Writes the charges of n1, n3 and n4, as far as these nodes exist. The charge of n1 has another time than
 * its deletion. */
static void put_user_charges(Bench *b, int64_t n) {
        _cleanup_free_ char *first = NULL, *third = NULL, *fourth = NULL;

        if (n < 1)
                return;
        b->holders[R] = "slot-1";
        first = strf("{'name':'n1','uid':'%s','time':'2027-01-15T07:00:00Z','kind':'DELETE','holder':'alice'}", uid_of(b, "n1"));
        third = n < 3 ? strdup("")
                      : strf(",{'name':'n3','uid':'%s','time':'2027-01-15T08:02:00Z','kind':'DELETE','holder':'alice'}",
                             uid_of(b, "n3"));
        fourth = n < 4 ? strdup("")
                       : strf(",{'name':'n4','uid':'%s','time':'2027-01-15T08:03:00Z','kind':'reboot','holder':'slot-1'}",
                              uid_of(b, "n4"));
        fake_merge(b->w.cluster, FAKE_NDBS, NULL, "web", "{'status':{'disruptedNodes':[%s%s%s]}}", first,
                   third, fourth);
}

/* Returns the row's text for a cluster. The row's node n5 has no time, but each NotReady Node of a cluster
 * has one. */
static char *sentence_of(const BudgetSentenceRow *row) {
        const char *none = strstr(row->text, "n5 (is not Ready)");

        return none ? strf("%.*sn5 (is not Ready since 2027-01-15T08:04:00Z)%s", (int) (none - row->text),
                           row->text,
                           none + strlen("n5 (is not Ready)"))
                    : strdup(row->text);
}

TEST_CASE(test_sentences) {
        for (size_t i = 0; i < ELEMENTSOF(budget_sentence_rows); i++) {
                const BudgetSentenceRow *row = budget_sentence_rows + i;
                _cleanup_free_ char *expected = sentence_of(row), *amount = NULL;
                bool has_room = strstr(row->text, "By this coordinator's count there is room");
                const char *rest;
                Asked *a;
                Bench b;

                print_message("  %s\n", row->text);
                bench_init(&b, 0, "'maxUnavailable':1");
                amount = row->unit == NODE_AMOUNT_UNSET ? strdup("'minAvailable':'3 nodes'")
                                                        : strf("'%s':%s%lld%s",
                                                            row->is_min ? "minAvailable" : "maxUnavailable",
                                                               row->unit == NODE_AMOUNT_PERCENT ? "'" : "", (long long) row->value,
                                                               row->unit == NODE_AMOUNT_PERCENT ? "%'" : "");
                if (has_room) /* without a leader the status has no numbers */
                        budget_ledger_follow(b.replicas[0].ledger);
                for (int64_t n = row->n_unavailable; n > 0; n--) /* not in the order of the text */
                        put_user(&b, n - 1);
                for (int64_t n = row->n_unavailable + 1; n < row->expected; n++) {
                        _cleanup_free_ char *name = strf("other%lld", (long long) n);

                        PUT_NODE(&b, name, "", "", "True", "2026-01-01T00:00:00Z");
                }
                PUT_NODE(&b, "asked", ",'finalizers':['vesper.sh/termination']", "", "True",
                         "2026-01-01T00:00:00Z");
                put_budget(&b, "web", amount, "team");
                put_user_charges(&b, row->n_unavailable);
                if (row->begun)
                        assert_true(fake_delete(b.w.cluster, FAKE_NODES, NULL, "asked", -1));
                run(&b, USEC_PER_SEC);
                a = ask_as(&b, has_room ? 1 : 0, "asked", (BudgetAsk) { .begun = row->begun,
                                                            .holder = "bob" });
                run(&b, USEC_PER_SEC);
                assert_string_equal(answer_name(a->answer), "refused");
                rest = startswith(a->message,
                                  "NodeDisruptionBudget web allows no disruption of node asked now: ");
                assert_non_null(rest);
                assert_string_equal(rest, expected);
                bench_done(&b);
        }
}

TEST_CASE(test_held) {
        for (size_t i = 0; i < ELEMENTSOF(budget_held_rows); i++) {
                const NodeCharge *c = &budget_held_rows[i].charge;
                Asked *a;
                Bench b;

                print_message("  %s\n", budget_held_rows[i].text);
                bench_init(&b, 0, "'maxUnavailable':1");
                PUT_NODE(&b, "n9", "", "", "True", "2026-01-01T00:00:00Z");
                put_budget(&b, "web", "'maxUnavailable':1", "team");
                b.holders[c->kind] = c->holder;
                put_charge(&b, "web", "n9", uid_of(&b, "n9"), c->kind, c->holder, NULL, CHARGE_TIME, NULL);
                run(&b, USEC_PER_SEC);
                /* Nobody but a DELETE takes a charge over. */
                a = ask_as(&b, 1, "n9", (BudgetAsk) { .kind = S, .holder = "another" });
                run(&b, USEC_PER_SEC);
                assert_string_equal(answer_name(a->answer), "refused");
                assert_string_equal(a->message, budget_held_rows[i].text);
                bench_done(&b);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_claim),   cmocka_unit_test(test_renewal),   cmocka_unit_test(test_claim_without_charge),
                cmocka_unit_test(test_fate),    cmocka_unit_test(test_figures),   cmocka_unit_test(test_selectors),
                cmocka_unit_test(test_conditions), cmocka_unit_test(test_nodes),   cmocka_unit_test(test_sentences), cmocka_unit_test(test_held),
        };

        return cmocka_run_group_tests_name("budget-rows", tests, NULL, NULL);
}
