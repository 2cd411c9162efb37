/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The netlink seam as a test plays it: link changes come when it says so. */

#include "netlink.h"

typedef struct FakeNetlink {
        Netlink netlink;
        netlink_changed_t fn;
        void *userdata;
} FakeNetlink;

void fake_netlink_init(FakeNetlink *n);
void fake_netlink_change(FakeNetlink *n);
