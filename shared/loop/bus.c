/* SPDX-License-Identifier: Apache-2.0 */
#include "bus.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <systemd/sd-bus.h>

#include "alloc-util.h"

#define NUMBER_MAX 32

typedef struct SystemBus {
        Bus bus;
        sd_bus *connection;
        size_t n_slots;
} SystemBus;

typedef struct SystemBusSlot {
        BusSlot base;
        sd_bus_slot *slot;
        bus_value_t fn;
        void *userdata;
} SystemBusSlot;

static SystemBus *to_system(Bus *b) {
        return CONTAINER_OF(b, SystemBus, bus);
}

/* What sd_bus_message_read_basic() writes to. */
typedef union BasicValue {
        const char *text;
        int boolean;
        uint8_t byte;
        int16_t i16;
        uint16_t u16;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
} BasicValue;

/* Reads the next argument as text. `number` holds it if it is no string. -EBADMSG: of a type that has no
 * such form. */
static int read_as_text(sd_bus_message *m, char number[NUMBER_MAX], const char **ret) {
        BasicValue v = { 0 };
        char type;
        int r;

        r = sd_bus_message_peek_type(m, &type, NULL);
        if (r < 0)
                return r;
        if (r == 0) {
                *ret = "";
                return 0;
        }
        if (!strchr("sogbynqiuxt", type))
                return -EBADMSG;
        r = sd_bus_message_read_basic(m, type, &v);
        if (r < 0)
                return r;

        *ret = number;
        switch (type) {
        case 'b':
                *ret = v.boolean ? "true" : "false";
                break;
        case 'y':
                (void) snprintf(number, NUMBER_MAX, "%" PRIu8, v.byte);
                break;
        case 'n':
                (void) snprintf(number, NUMBER_MAX, "%" PRId16, v.i16);
                break;
        case 'q':
                (void) snprintf(number, NUMBER_MAX, "%" PRIu16, v.u16);
                break;
        case 'i':
                (void) snprintf(number, NUMBER_MAX, "%" PRId32, v.i32);
                break;
        case 'u':
                (void) snprintf(number, NUMBER_MAX, "%" PRIu32, v.u32);
                break;
        case 'x':
                (void) snprintf(number, NUMBER_MAX, "%" PRId64, v.i64);
                break;
        case 't':
                (void) snprintf(number, NUMBER_MAX, "%" PRIu64, v.u64);
                break;
        default: /* the three kinds of string */
                *ret = v.text;
        }
        return 0;
}

/* Error of a reply: 0 or a negative errno. */
static int reply_error(sd_bus_message *m) {
        int error;

        if (!sd_bus_message_is_method_error(m, NULL))
                return 0;
        error = sd_bus_message_get_errno(m);
        return error > 0 ? -error : -EIO;
}

/* The property's value is wrapped: v. */
static int read_property(sd_bus_message *m, char number[NUMBER_MAX], const char **ret) {
        const char *contents;
        char type;
        int r;

        r = reply_error(m);
        if (r < 0)
                return r;
        r = sd_bus_message_peek_type(m, &type, &contents);
        if (r < 0)
                return r;
        if (r == 0 || type != SD_BUS_TYPE_VARIANT)
                return -EBADMSG;
        r = sd_bus_message_enter_container(m, SD_BUS_TYPE_VARIANT, contents);
        if (r < 0)
                return r;
        return read_as_text(m, number, ret);
}

static int on_property(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        SystemBusSlot *s = userdata;
        char number[NUMBER_MAX];
        const char *value = "";
        int r;

        r = read_property(m, number, &value);
        s->fn(r < 0 ? r : 0, r < 0 ? "" : value, s->userdata); /* may free the slot */
        return 0;
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        SystemBusSlot *s = userdata;
        char number[NUMBER_MAX];
        const char *value = "";

        /* A signal whose argument has no text is still a signal. */
        if (read_as_text(m, number, &value) < 0)
                value = "";
        s->fn(0, value, s->userdata); /* may free the slot */
        return 0;
}

/* Without this handler sd-bus would drop the whole connection when a match is refused. */
static int on_match_installed(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        SystemBusSlot *s = userdata;
        int r;

        r = reply_error(m);
        if (r < 0)
                s->fn(r, "", s->userdata);
        return 0;
}

static int slot_new(Bus *b, bus_value_t fn, void *userdata, SystemBusSlot **ret) {
        SystemBusSlot *s;

        assert(fn);
        s = new0(SystemBusSlot, 1);
        if (!s)
                return -ENOMEM;
        s->base.bus = b;
        s->fn = fn;
        s->userdata = userdata;
        to_system(b)->n_slots++;
        *ret = s;
        return 0;
}

static void system_slot_free(BusSlot *slot) {
        SystemBusSlot *s = CONTAINER_OF(slot, SystemBusSlot, base);

        sd_bus_slot_unref(s->slot);
        to_system(slot->bus)->n_slots--;
        free(s);
}

static int system_get_property(Bus *b, const char *service, const char *path, const char *interface,
                               const char *property, bus_value_t fn, void *userdata, BusSlot **ret) {
        _cleanup_(bus_slot_freep) BusSlot *slot = NULL;
        SystemBusSlot *s;
        int r;

        r = slot_new(b, fn, userdata, &s);
        if (r < 0)
                return r;
        slot = &s->base;
        r = sd_bus_call_method_async(to_system(b)->connection, &s->slot, service, path,
                                     "org.freedesktop.DBus.Properties", "Get", on_property, s, "ss",
                                     interface, property);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(slot);
        return 0;
}

static int system_match_signal(Bus *b, const char *service, const char *path, const char *interface,
                               const char *signal, bus_value_t fn, void *userdata, BusSlot **ret) {
        _cleanup_(bus_slot_freep) BusSlot *slot = NULL;
        SystemBusSlot *s;
        int r;

        r = slot_new(b, fn, userdata, &s);
        if (r < 0)
                return r;
        slot = &s->base;
        r = sd_bus_match_signal_async(to_system(b)->connection, &s->slot, service, path, interface, signal,
                                      on_signal, on_match_installed, s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(slot);
        return 0;
}

static void system_free(Bus *b) {
        SystemBus *s = to_system(b);

        assert(s->n_slots == 0);
        if (s->connection)
                (void) sd_bus_detach_event(s->connection);
        /* Closed without flushing: a flush may block, and nothing we send is worth that. */
        sd_bus_close_unref(s->connection);
        free(s);
}

static const BusOps system_ops = {
        .get_property = system_get_property,
        .match_signal = system_match_signal,
        .slot_free = system_slot_free,
        .free = system_free,
};

int bus_new_system(Loop *l, Bus **ret) {
        _cleanup_(bus_freep) Bus *bus = NULL;
        SystemBus *s;
        int r;

        assert(l);
        assert(ret);
        if (!loop_sd_event(l))
                return -EOPNOTSUPP;

        s = new0(SystemBus, 1);
        if (!s)
                return -ENOMEM;
        s->bus.ops = &system_ops;
        bus = &s->bus;

        r = sd_bus_open_system_with_description(&s->connection, "vesper");
        if (r < 0)
                return r;
        r = sd_bus_attach_event(s->connection, loop_sd_event(l), SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}

Bus *bus_free(Bus *b) {
        if (b)
                b->ops->free(b);
        return NULL;
}

BusSlot *bus_slot_free(BusSlot *s) {
        if (s)
                s->bus->ops->slot_free(s);
        return NULL;
}
