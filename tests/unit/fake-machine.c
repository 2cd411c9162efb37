/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-machine.h"

#include <assert.h>

static void netlink_subscribe(Netlink *n, netlink_changed_t fn, void *userdata) {
        FakeNetlink *f = CONTAINER_OF(n, FakeNetlink, netlink);

        f->fn = fn;
        f->userdata = userdata;
}

static void netlink_done(Netlink *n) {
}

void fake_netlink_init(FakeNetlink *n) {
        static const NetlinkOps ops = { netlink_subscribe, netlink_done };

        *n = (FakeNetlink){ .netlink.ops = &ops };
}

void fake_netlink_change(FakeNetlink *n) {
        assert(n->fn);
        n->fn(n->userdata);
}
