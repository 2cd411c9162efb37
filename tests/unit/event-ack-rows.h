/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of Nodes and the event "e" of several machines. The test event-ack-rule plays each row with the pure
 * rule. The test reboot-rows shows such Nodes to a coordinator, and reads from them whether the event may be
 * acknowledged.
 */

#include "event-ack-rule.h"

static char vm_a[] = "vm-a", vm_b[] = "VM-B", vm_c[] = "vm-c", many[] = NOTICE_RESOURCES_TOO_MANY;
static char *both[] = { vm_a, vm_b, NULL }, *three[] = { vm_a, vm_b, vm_c, NULL }, *too_many[] = { vm_a, many, NULL };

typedef struct EventAckRow {
        const char *what;
        EventAckNode nodes[4];
        size_t n;
        const char *why; /* reason for the wait; NULL: the event may be acknowledged */
} EventAckRow;

static const EventAckRow event_ack_rows[] = {
        { "both drained", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, true, NULL } }, 2, NULL },
        { "... beside another", { { "n1", "vm-a", "e", both, true, NULL },
                                  { "n2", "vm-b", "e", both, true, NULL },
                                  { "n3", "vm-c", NULL, NULL, false, NULL } },
          3, NULL },
        { "one drains", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, false, NULL } },
          2, "node n2 (machine VM-B) is not drained" },
        { "one knows nothing of it", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", NULL, NULL, false, NULL } }, 2, "node n2" },
        { "one is drained for another", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "f", both, true, NULL } }, 2, "node n2" },
        { "one is no node", { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "", "e", both, true, NULL } },
          2, "machine VM-B, which it names, is no node" },
        { "agents differ: all that any names count",
          { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", three, true, NULL },
            { "n3", "vm-c", NULL, NULL, false, NULL } },
          3, "node n3" },
        { "two Nodes are one machine",
          { { "n1", "vm-a", "e", both, true, NULL }, { "n2", "vm-b", "e", both, true, NULL },
            { "n3", "vm-b", NULL, NULL, false, NULL } },
          3, "node n3" },
        { "more than are looked at", { { "n1", "vm-a", "e", too_many, true, NULL } }, 1, "more machines than" },
        { "nobody says", { { "n1", "vm-a", "f", both, true, NULL } }, 1, "no agent says" },
        { "nothing there", { { NULL } }, 0, "no agent says" },
};
