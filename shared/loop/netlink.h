/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Links and routes: told when a way to the network may have come back, so that a waiting retry need not wait. A seam; the
 * real one is libnl (RTNLGRP_LINK, _IPV4_ROUTE, _IPV6_ROUTE). */

#include "loop.h"

typedef struct Netlink Netlink;

typedef void (*netlink_changed_t)(void *userdata);

typedef struct NetlinkOps {
        void (*subscribe)(Netlink *n, netlink_changed_t fn, void *userdata); /* one subscriber; NULL ends it */
        void (*free)(Netlink *n);
} NetlinkOps;

struct Netlink {
        const NetlinkOps *ops;
};

int netlink_new(Loop *l, Netlink **ret);
Netlink *netlink_free(Netlink *n);
DEFINE_FREEP(Netlink, netlink_free);
