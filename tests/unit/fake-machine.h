/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The D-Bus and netlink seams as a test plays them: signals and link changes come when it says so. */

#include "bus.h"
#include "netlink.h"

typedef struct FakeBus FakeBus;

FakeBus *fake_bus_new(void);
FakeBus *fake_bus_free(FakeBus *b); /* no slot of it may be left */
Bus *fake_bus_ops(FakeBus *b);
/* match_signal() fails so from now on; 0: it works. */
void fake_bus_refuse(FakeBus *b, int error);
/* To all who listen for this signal; returns how many. */
unsigned fake_bus_signal(FakeBus *b, const char *signal, const char *value);

typedef struct FakeNetlink {
        Netlink netlink;
        netlink_changed_t fn;
        void *userdata;
} FakeNetlink;

void fake_netlink_init(FakeNetlink *n);
void fake_netlink_change(FakeNetlink *n);
