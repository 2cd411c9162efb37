/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "heard-conditions.h"
#include "marks.h"
#include "pod-names.h"
#include "string-util.h"

#define NOW (UINT64_C(1790000000) * USEC_PER_SEC)
#define ANNOUNCED ": the interruption queue announced the end of its machine (spot, terminate) by 2026-09-21T14:13:20Z"
#define US CONDITION_REASON_COORDINATOR

enum { P, M, D, E }; /* planned, in progress, drain, drained */

static Notice spot = { .id = (char *) "e", .kind = NOTICE_SPOT, .action = (char *) "terminate", .announced_usec = NOW },
              reboot = { .id = (char *) "r", .kind = NOTICE_MAINTENANCE, .action = (char *) "reboot", .announced_usec = NOW + USEC_PER_HOUR },
              window = { .id = (char *) "w", .kind = NOTICE_MAINTENANCE };
static Announced of_spot[] = { { .notice = &spot } }, of_window[] = { { .notice = &spot, .state = ANNOUNCED_CALLED_OFF }, { .notice = &window } },
                 of_two[] = { { .notice = &spot }, { .notice = &reboot } };
static const AnnouncedList announced_spot = { of_spot, 1 }, announced_window = { of_window, 2 }, announced_two = { of_two, 2 };

/* What the four types say, a letter each: True, False, nothing (-), as it was (=). */
static void assert_says(HeardSay say, const char *before, const char *expected) {
        const HeardWords words = { .announced = &announced_spot };

        for (size_t i = 0; i < HEARD_CONDITIONS; i++) {
                Condition said = { .type = heard_condition_type(i),
                                   .reason = US,
                                   .message = "vesper-coordinator says something else",
                                   .status = before[i] == 'T' ? CONDITION_TRUE : CONDITION_FALSE },
                          c;
                _cleanup_free_ char *message = NULL;
                int r = heard_condition(say, i, before[i] == '-' ? NULL : &said, &words, &c, &message);
                char seen = r == 0 ? '=' : c.status == CONDITION_TRUE ? 'T' : 'F';

                assert_return_code(r, 0);
                if (seen != expected[i])
                        fail_msg("%d of %s: %s says %c in place of %c", say, before, heard_condition_type(i), seen, expected[i]);
                if (r > 0 && (!startswith(message, "vesper-coordinator ") || !streq(c.type, heard_condition_type(i))))
                        fail_msg("%s: %s", c.type, message);
        }
}

TEST_CASE(test_rows) {
        static const struct {
                HeardSay say;
                const char *before, *expected; /* planned, in progress, drain, drained */
        } rows[] = {
                { HEARD_SAY_NOTHING, "TTTT", "====" },
                { HEARD_SAY_PLANNED, "----", "T===" },
                { HEARD_SAY_PLANNED, "FTTT", "TFFF" },
                { HEARD_SAY_BEHIND_AGENT, "FTT-", "TFF=" },
                { HEARD_SAY_HANDED_OVER, "FTT-", "TFF=" },
                { HEARD_SAY_DRAINING, "----", "=TT=" },
                { HEARD_SAY_DRAINING, "T---", "FTT=" },
                { HEARD_SAY_DRAINING, "FFFT", "=TTF" },
                { HEARD_SAY_DRAINED, "FTT-", "=TFT" },
                { HEARD_SAY_DRAINED, "----", "=T=T" },
                { HEARD_SAY_EXPIRED, "FTT-", "=TFF" },
                { HEARD_SAY_OVERRULED, "TTT-", "FFF=" },
                { HEARD_SAY_OVER, "-TFT", "=F=F" },
                { HEARD_SAY_OVER, "FFFF", "====" },
                { HEARD_SAY_AGENTS, "TTTT", "F===" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_says(rows[i].say, rows[i].before, rows[i].expected);
}

static void assert_text(HeardSay say, size_t type, const Condition *said, const HeardWords *words, const char *reason, const char *expected) {
        _cleanup_free_ char *message = NULL;
        Condition c;

        assert_int_equal(heard_condition(say, type, said, words, &c, &message), expected != NULL);
        if (!expected)
                return;
        assert_string_equal(message, expected);
        assert_string_equal(c.reason, reason);
}

TEST_CASE(test_texts) {
        static const char how_far[] = "2 pods are left";
        const HeardWords words = { .announced = &announced_spot, .how_far = how_far }, no_figures = { .announced = &announced_spot },
                         open = { .announced = &announced_window }, two = { .announced = &announced_two, .deletes = INTERRUPTION_DELETE_TERMINATE };
        Condition said = { .type = CONDITION_DRAINED, .status = CONDITION_TRUE, .reason = US, .message = "figures of another leader" };
        Condition planned = { .type = CONDITION_MAINTENANCE_PLANNED, .status = CONDITION_TRUE, .reason = US, .message = "vesper-coordinator" };

        assert_text(HEARD_SAY_DRAINING, D, NULL, &words, US,
                    "vesper-coordinator evicts this node's pods, and does not end its machine for that" ANNOUNCED "; 2 pods are left");
        print_message("figures stand in one type, so that the others change with what is said alone\n");
        assert_text(HEARD_SAY_DRAINING, M, NULL, &words, US,
                    "vesper-coordinator evicts this node's pods, and does not end its machine for that" ANNOUNCED);
        print_message("the reason of a maintenance is the cause, and nothing is said of a time that is not known\n");
        assert_text(HEARD_SAY_DRAINING, M, NULL, &open, CONDITION_REASON_WINDOW,
                    "vesper-coordinator evicts this node's pods, and does not end its machine for that"
                    ": the interruption queue announced a change of its machine (maintenance)");
        assert_text(HEARD_SAY_DRAINING, D, NULL, &open, US,
                    "vesper-coordinator evicts this node's pods, and does not end its machine for that"
                    ": the interruption queue announced a change of its machine (maintenance)");
        print_message("all that stands is told, and what is done for it\n");
        assert_text(HEARD_SAY_LATER, P, NULL, &two, US,
                    "vesper-coordinator acts when that comes near ([Interruption] BeforeSec=)" ANNOUNCED ", for which the NodeClaim is deleted and the machine ended"
                    ", and then a change of its machine (maintenance, reboot) by 2026-09-21T15:13:20Z, for which the node is drained and kept");
        assert_text(HEARD_SAY_DRAINING, M, NULL, &two, US, "vesper-coordinator evicts this node's pods, and does not end its machine for that" ANNOUNCED);
        print_message("a later leader does not write its ignorance over figures, and figures over anything\n");
        assert_text(HEARD_SAY_DRAINED, E, &said, &no_figures, NULL, NULL);
        assert_text(HEARD_SAY_DRAINED, E, &said, &words, US,
                    "vesper-coordinator has drained this node, and does not end its machine for that" ANNOUNCED "; 2 pods are left");
        print_message("what is over tells of no notice\n");
        assert_text(HEARD_SAY_AGENTS, P, &planned, &words, US, "vesper-coordinator leaves this node to its agent, which drains it");
        said.message = "vesper-coordinator has drained this node, and does not end its machine for that" ANNOUNCED "; 2 pods are left";
        assert_text(HEARD_SAY_DRAINED, E, &said, &words, NULL, NULL);
}

/* Each sentence as a person reads it, who knows nothing of this node. */
TEST_CASE(test_sentences) {
        static const struct {
                HeardSay say;
                size_t type;
                const char *text;
        } rows[] = {
                { HEARD_SAY_PLANNED, P, "waits, before it drains this node, until load balancers have let go of it" ANNOUNCED },
                { HEARD_SAY_BEHIND_AGENT, P, "waits, before it drains this node, until its agent, which drains it now, makes no more progress" ANNOUNCED },
                { HEARD_SAY_HANDED_OVER, P,
                  "no longer drains this node by itself: a NodePool selects it now, or its NodeClaim is deleted so that the node is removed" ANNOUNCED },
                { HEARD_SAY_LATER, P, "acts when that comes near ([Interruption] BeforeSec=)" ANNOUNCED ", for which the node is drained and kept" },
                { HEARD_SAY_EXPIRED, E, "stopped draining this node, as the announced time has passed" ANNOUNCED },
                { HEARD_SAY_OVERRULED, D, "stopped draining this node: somebody made it schedulable, and vesper does not act again on what was due by then" },
        };
        const HeardWords words = { .announced = &announced_spot };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = strf("vesper-coordinator %s", rows[i].text);
                const Condition said = { .type = heard_condition_type(rows[i].type), .status = CONDITION_TRUE, .reason = US, .message = (char *) "m" };

                assert_text(rows[i].say, rows[i].type, &said, &words, US, text);
        }
}

TEST_CASE(test_how_far) {
        const DrainBlocker blockers[] = {
                { .ns = "default", .name = "a", .wait = POD_WAIT_TERMINATING, .detail = "" },
                { .ns = "default", .name = "b", .wait = POD_WAIT_PDB, .detail = "web" },
                { .ns = "default", .name = "c", .wait = POD_WAIT_FORBIDDEN, .detail = "" },
                { .ns = "default", .name = "d", .wait = POD_WAIT_PROTECTED, .detail = "k" },
                { .ns = "default", .name = "e", .wait = POD_WAIT_PROTECTED, .detail = "k" },
                { .ns = "default", .name = "f", .wait = POD_WAIT_PROTECTED, .detail = "k" },
        };
        char *text;

#define ASSERT_TEXT(call, expected) \
        do { \
                text = call; \
                assert_string_equal(text, expected); \
                free(text); \
        } while (0)

        ASSERT_TEXT(heard_pods_left_text(1, blockers, 1), "1 pod is left");
        ASSERT_TEXT(heard_pods_left_text(2, blockers, 2), "2 pods are left, and it waits for default/b (BlockedByPDB web)");
        ASSERT_TEXT(heard_pods_left_text(6, blockers, 6),
                    "6 pods are left, and it waits for default/b (BlockedByPDB web), default/c (Forbidden), default/d (Protected k) and 2 more");
        ASSERT_TEXT(heard_drained_text(NOW, NOW + 90 * USEC_PER_SEC, 12, 0),
                    "no pod is left to wait for, 1min 30s after this leader began to drain it at 2026-09-21T14:13:20Z: 12 evicted");
        ASSERT_TEXT(heard_drained_text(NOW, NOW, 0, 2), "no pod is left to wait for, 0s after this leader began to drain it at 2026-09-21T14:13:20Z: 0 evicted, "
                                                        "2 deleted without asking their PodDisruptionBudgets");
}

/* A Node with one condition of another writer's. */
TEST_CASE(test_writers) {
        static const struct {
                const char *what, *type, *reason, *message;
                ConditionStatus status;
                bool agents, is_free, stands;
        } rows[] = {
                { "the agent drains", CONDITION_DRAIN_IN_PROGRESS, CONDITION_REASON_AGENT, "spot", CONDITION_TRUE, true, false, false },
                { "the agent has drained", CONDITION_DRAINED, CONDITION_REASON_AGENT, "spot", CONDITION_TRUE, true, false, false },
                { "the agent's drain has ended", CONDITION_DRAIN_IN_PROGRESS, CONDITION_REASON_AGENT, "m", CONDITION_FALSE, true, false, false },
                { "the agent plans", CONDITION_MAINTENANCE_PLANNED, CONDITION_REASON_WINDOW, "vesper-agent waits", CONDITION_TRUE, false, false, false },
                { "a person's plan", CONDITION_MAINTENANCE_PLANNED, CONDITION_REASON_ADMIN, "theirs", CONDITION_TRUE, false, false, false },
                { "a person's plan is over", CONDITION_MAINTENANCE_PLANNED, CONDITION_REASON_ADMIN, "theirs", CONDITION_FALSE, false, true, false },
                { "somebody else drains", CONDITION_DRAIN_IN_PROGRESS, "Theirs", "m", CONDITION_TRUE, false, true, false },
                { "we plan", CONDITION_MAINTENANCE_PLANNED, CONDITION_REASON_WINDOW, "vesper-coordinator waits", CONDITION_TRUE, false, true, true },
                { "we have drained", CONDITION_DRAINED, US, "m", CONDITION_TRUE, false, true, true },
                { "we drain no more", CONDITION_DRAIN_IN_PROGRESS, US, "m", CONDITION_FALSE, false, true, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Condition c = { .type = rows[i].type, .status = rows[i].status, .reason = rows[i].reason, .message = rows[i].message };
                KubeNode n = { .conditions = &c, .n_conditions = 1 };

                if (heard_conditions_are_agents(&n) != rows[i].agents || heard_condition_is_free(&n, rows[i].type) != rows[i].is_free ||
                    heard_conditions_stand(&n) != rows[i].stands)
                        fail_msg("%s", rows[i].what);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_texts),
                cmocka_unit_test(test_sentences),
                cmocka_unit_test(test_how_far),
                cmocka_unit_test(test_writers),
        };

        return cmocka_run_group_tests_name("heard-conditions", tests, NULL, NULL);
}
