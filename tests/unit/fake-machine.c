/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-machine.h"

#include <stdlib.h>
#include <string.h>

#include "fake-json.h"
#include "list.h"
#include "string-util.h"

struct FakeBus {
        Bus bus;
        List slots;
        int refusal;
};

typedef struct Slot {
        BusSlot slot;
        ListNode node;
        FakeBus *bus;
        char *signal;
        bus_value_t fn;
        void *userdata;
} Slot;

static int bus_get_property(Bus *b, const char *service, const char *path, const char *interface,
                            const char *property, bus_value_t fn, void *userdata, BusSlot **ret) {
        return -EOPNOTSUPP;
}

static int bus_match_signal(Bus *b, const char *service, const char *path, const char *interface,
                            const char *signal, bus_value_t fn, void *userdata, BusSlot **ret) {
        FakeBus *f = CONTAINER_OF(b, FakeBus, bus);
        Slot *s;

        if (f->refusal < 0)
                return f->refusal;
        s = new0(Slot, 1);
        if (!s)
                return -ENOMEM;
        s->signal = strdup(signal);
        if (!s->signal) {
                free(s);
                return -ENOMEM;
        }
        s->slot.bus = b;
        s->bus = f;
        s->fn = fn;
        s->userdata = userdata;
        list_append(&f->slots, &s->node);
        *ret = &s->slot;
        return 0;
}

static void bus_slot_done(BusSlot *slot) {
        Slot *s = CONTAINER_OF(slot, Slot, slot);

        list_remove(&s->bus->slots, &s->node);
        free(s->signal);
        free(s);
}

static void bus_done(Bus *b) {
}

FakeBus *fake_bus_new(void) {
        static const BusOps ops = { bus_get_property, bus_match_signal, bus_slot_done, bus_done };
        FakeBus *b = MUST(new0(FakeBus, 1));

        b->bus.ops = &ops;
        return b;
}

FakeBus *fake_bus_free(FakeBus *b) {
        if (b)
                assert(b->slots.size == 0);
        free(b);
        return NULL;
}

Bus *fake_bus_ops(FakeBus *b) {
        return &b->bus;
}

void fake_bus_refuse(FakeBus *b, int error) {
        b->refusal = error;
}

unsigned fake_bus_signal(FakeBus *b, const char *signal, const char *value) {
        unsigned n = 0;

        LIST_FOREACH (s, &b->slots, Slot, node)
                if (streq(s->signal, signal)) {
                        s->fn(0, value, s->userdata);
                        n++;
                }
        return n;
}

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
