/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "reflex-wish.h"
#include "string-util.h"

#define SPOT NOTICE_SPOT
#define SHUTDOWN NOTICE_SHUTDOWN
#define MANUAL NOTICE_MANUAL
#define MAINTENANCE NOTICE_MAINTENANCE

/* What stands on the Node in each state, by why the machine ends. */
TEST_CASE(test_wish) {
        static const struct {
                ReflexState state;
                NoticeKind kind;
                bool only_cordon;
                const char *phase;
                DrainConditions conditions;
                const char *message; /* a part of it; NULL: none */
                const char *action;
        } rows[] = {
                { REFLEX_PLANNED, SPOT, false, "Cordoned", NODE_CONDITIONS_NONE, NULL },
                { REFLEX_PLANNED, SPOT, true, "Cordoned", NODE_CONDITIONS_NONE, NULL },
                { REFLEX_CORDONED, SPOT, false, "Cordoned", NODE_CONDITIONS_NONE, NULL },
                { REFLEX_CORDONED, SPOT, true, "Cordoned", NODE_CONDITIONS_PLANNED, "leaves those that are there" },
                { REFLEX_LB_WAIT, SPOT, false, "Cordoned", NODE_CONDITIONS_PLANNED, "is about to move this node's pods away: the machine" },
                { REFLEX_LB_WAIT, MANUAL, false, "Cordoned", NODE_CONDITIONS_PLANNED, "is about to move this node's pods away: somebody" },
                { REFLEX_DRAINING, SPOT, false, "Draining", NODE_CONDITIONS_DRAINING, "moves this node's pods away: the machine is about to end" },
                { REFLEX_DRAINING, SHUTDOWN, false, "Draining", NODE_CONDITIONS_DRAINING, "moves this node's pods away: this machine shuts down" },
                { REFLEX_DRAINING, MANUAL, false, "Draining", NODE_CONDITIONS_DRAINING, "moves this node's pods away: somebody" },
                { REFLEX_VOLUMES, SPOT, false, "Draining", NODE_CONDITIONS_DRAINING, "moves" },
                { REFLEX_DRAINED, SPOT, false, "Drained", NODE_CONDITIONS_DRAINED, "has moved this node's pods away: the machine is about to end" },
                { REFLEX_DRAINED, MANUAL, false, "Drained", NODE_CONDITIONS_DRAINED, "has moved this node's pods away: somebody" },
                { REFLEX_ENDING, SHUTDOWN, false, "Drained", NODE_CONDITIONS_DRAINED, "has moved this node's pods away: this machine shuts down" },
                { REFLEX_LB_WAIT, SHUTDOWN, false, "Cordoned", NODE_CONDITIONS_PLANNED,
                  "is about to move this node's pods away: this machine shuts down" },
                /* The machine comes back from some kinds of maintenance. */
                { REFLEX_LB_WAIT, MAINTENANCE, false, "Cordoned", NODE_CONDITIONS_PLANNED,
                  "is about to move this node's pods away: this machine is about to reboot", "reboot" },
                { REFLEX_DRAINING, MAINTENANCE, false, "Draining", NODE_CONDITIONS_DRAINING,
                  "moves this node's pods away: this machine is about to reboot", "reboot" },
                { REFLEX_DRAINED, MAINTENANCE, false, "Drained", NODE_CONDITIONS_DRAINED,
                  "has moved this node's pods away: this machine is about to reboot", "reboot" },
                { REFLEX_DRAINED, MAINTENANCE, false, "Drained", NODE_CONDITIONS_DRAINED, "maintenance of this machine is about to begin", "freeze" },
                { REFLEX_DRAINED, MAINTENANCE, false, "Drained", NODE_CONDITIONS_DRAINED, "the machine is about to end", "stop" },
                { REFLEX_DRAINED, MAINTENANCE, false, "Drained", NODE_CONDITIONS_DRAINED, "the machine is about to end", "terminate" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Notice n = { .id = (char *) "n", .kind = rows[i].kind, .action = (char *) (uintptr_t) rows[i].action };
                NodeWish w = reflex_wish(rows[i].state, &n, rows[i].only_cordon, 7);

                print_message("%s, %s\n", reflex_state_to_string(rows[i].state), notice_kind_to_string(rows[i].kind));
                assert_ptr_equal(w.notice, &n);
                assert_int_equal(w.pods_left, 7);
                assert_string_equal(interruption_phase_to_string(w.phase), rows[i].phase);
                assert_int_equal(w.conditions, rows[i].conditions);
                if (rows[i].message)
                        assert_non_null(strstr(w.message, rows[i].message));
                else
                        assert_null(w.message);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_wish),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
