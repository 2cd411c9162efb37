/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of the proof of a repair by reboot. The test repair-brake plays each row with the pure rule. The test
 * repair-rows shows the same to a coordinator, and reads from its metrics how the repair ends.
 */

#include "repair-brake.h"

/* State of the node, minute by minute after its repair began. */
typedef struct RepairShown {
        unsigned at_min;
        const char *boot_id;
        bool ready, ails;
} RepairShown;

typedef struct RepairRebootRow {
        const char *what;
        RepairShown shown[4];
        unsigned ended_min;
        bool proved;
        const char *unplayed; /* why no cluster can be in this state; NULL: one can */
} RepairRebootRow;

static const RepairRebootRow repair_reboot_rows[] = {
        { "Ready and well for five minutes", { { 2, "b1", true, false } }, 7, true },
        { "well without a reboot proves nothing", { { 2, "b0", true, false } }, 30, false,
          "a node that no rule is about any more is not asked to reboot" },
        { "nor does a node whose boot nobody knows", { { 2, NULL, true, false } }, 30, false },
        { "it boots, and is not Ready", { { 2, "b1", false, false } }, 30, false },
        { "Ready, and shows for five minutes what it showed before", { { 2, "b1", true, true } }, 7, false },
        { "well a little later", { { 2, "b1", true, true }, { 4, "b1", true, false } }, 9, true },
        { "well in the last moment, and not for long", { { 2, "b1", true, true }, { 6, "b1", true, false }, { 8, "b1", true, true } }, 8, false },
        { "not Ready in between: anew", { { 2, "b1", true, true }, { 6, "b1", false, true }, { 7, "b1", true, false } }, 12, true },
        { "another boot still", { { 2, "b1", true, false }, { 4, "b2", true, false } }, 7, true },
};
