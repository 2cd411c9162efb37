/* SPDX-License-Identifier: Apache-2.0 */
#include "cmocka-test.h"
#include "node-machine.h"

/* What the cloud has said of a machine, and whether its kubelet reports: does the Node go without a drain, and does its removal
 * go on once the end was asked for? */
TEST_CASE(test_end) {
        static const struct {
                const char *name;
                MachineState machine;
                bool is_ready, is_lost, cannot_come_back;
        } rows[] = {
                { "nobody has asked", MACHINE_UNKNOWN, true, false, false },
                { "nobody has asked, and the node is silent", MACHINE_UNKNOWN, false, false, false },
                { "it runs", MACHINE_PRESENT, true, false, false },
                { "it runs, or is off, and the node is silent", MACHINE_PRESENT, false, false, false },
                { "it is about to end, and its kubelet still reports", MACHINE_ENDING, true, false, true },
                { "it is about to end: until it is gone its pods may run", MACHINE_ENDING, false, false, true },
                { "it is gone, and its kubelet's last word is Ready", MACHINE_GONE, true, false, true },
                { "it is gone", MACHINE_GONE, false, true, true },
                { "the cloud does not find it, and its kubelet reports", MACHINE_MISSING, true, false, false },
                { "the cloud does not find it, and the node is silent", MACHINE_MISSING, false, true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].name);
                assert_int_equal(node_machine_is_lost(rows[i].machine, rows[i].is_ready), rows[i].is_lost);
                assert_int_equal(node_machine_cannot_come_back(rows[i].machine, rows[i].is_ready),
                                 rows[i].cannot_come_back);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
