/* SPDX-License-Identifier: Apache-2.0 */
#include "bus.h"

#include "bus-message.h"
#include "bus-object.h"
#include "list.h"
#include "string-util.h"
#include "strv.h"

#define REDIAL_USEC USEC_PER_SEC
#define LOCAL "org.freedesktop.DBus.Local"

typedef struct SystemBus {
        Bus bus;
        Loop *loop;
        sd_bus *connection; /* NULL: lost, and not yet back */
        List slots;
        Timer *redial;
} SystemBus;

/* A signal that is listened for: kept over connections. */
typedef struct Match {
        char *service, *path, *interface, *signal;
        bool stale; /* to be told that it may have missed something */
} Match;

typedef struct SystemBusSlot {
        BusSlot base;
        ListNode node;
        sd_bus_slot *slot;
        bus_value_t fn;
        bus_reply_t on_reply;
        void *userdata;
        Match *match;       /* NULL: a question, or */
        PublishedObject *object;
} SystemBusSlot;

static SystemBus *to_system(Bus *b) {
        return CONTAINER_OF(b, SystemBus, bus);
}

/* -- what comes --------------------------------------------------------------------------------- */

/* The property's value is wrapped: v. */
static int read_property(sd_bus_message *m, char **ret) {
        const char *contents;
        char type;
        int r;

        r = bus_message_error(m);
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
        return bus_message_read_text(m, ret);
}

static int on_property(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        _cleanup_free_ char *value = NULL;
        SystemBusSlot *s = userdata;
        int r;

        r = read_property(m, &value);
        s->fn(r < 0 ? r : 0, r < 0 ? "" : value, s->userdata); /* may free the slot */
        return 0;
}

static int on_call_reply(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        const sd_bus_error *error = sd_bus_message_get_error(m);
        _cleanup_strv_free_ char **values = NULL;
        SystemBusSlot *s = userdata;
        BusReply reply = { .error = bus_message_error(m), .fd = -EBADF };
        int r = 0;

        if (reply.error == 0)
                r = bus_message_read_all(m, &values, &reply.fd);
        if (r < 0)
                reply.error = r;
        reply.error_name = strempty(error ? error->name : NULL);
        reply.error_message = strempty(error ? error->message : NULL);
        reply.values = values;
        s->on_reply(&reply, s->userdata); /* may free the slot */
        return 0;
}

static int on_signal(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        _cleanup_strv_free_ char **values = NULL;
        _cleanup_free_ char *text = NULL;
        SystemBusSlot *s = userdata;
        int fd;

        /* A signal whose arguments have no text is still a signal. */
        if (bus_message_read_all(m, &values, &fd) >= 0 && values)
                text = strv_join(values, " ");
        s->fn(0, strempty(text), s->userdata); /* may free the slot */
        return 0;
}

/* Without this handler sd-bus would drop the whole connection when a match is refused. */
static int on_match_installed(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        SystemBusSlot *s = userdata;
        int r;

        r = bus_message_error(m);
        /* The connection that ends answers everything with an error; that is not the broker's refusal. */
        if (r < 0 && !sd_bus_message_is_method_error(m, SD_BUS_ERROR_NO_REPLY))
                s->fn(r, "", s->userdata);
        return 0;
}

/* -- slots -------------------------------------------------------------------------------------- */

static int slot_new(Bus *b, void *userdata, SystemBusSlot **ret) {
        SystemBusSlot *s;

        s = new0(SystemBusSlot, 1);
        if (!s)
                return -ENOMEM;
        s->base.bus = b;
        s->userdata = userdata;
        list_append(&to_system(b)->slots, &s->node);
        *ret = s;
        return 0;
}

static Match *match_free(Match *m) {
        if (!m)
                return NULL;
        free(m->service);
        free(m->path);
        free(m->interface);
        free(m->signal);
        return mfree(m);
}

static void system_slot_free(BusSlot *slot) {
        SystemBusSlot *s = CONTAINER_OF(slot, SystemBusSlot, base);

        sd_bus_slot_unref(s->slot);
        list_remove(&to_system(slot->bus)->slots, &s->node);
        match_free(s->match);
        published_object_free(s->object);
        free(s);
}

static int system_get_property(Bus *b, const char *service, const char *path, const char *interface,
                               const char *property, bus_value_t fn, void *userdata, BusSlot **ret) {
        _cleanup_(bus_slot_freep) BusSlot *slot = NULL;
        SystemBusSlot *s;
        int r;

        assert(fn);
        if (!to_system(b)->connection)
                return -ENOTCONN;
        r = slot_new(b, userdata, &s);
        if (r < 0)
                return r;
        slot = &s->base;
        s->fn = fn;
        r = sd_bus_call_method_async(to_system(b)->connection, &s->slot, service, path,
                                     "org.freedesktop.DBus.Properties", "Get", on_property, s, "ss",
                                     interface, property);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(slot);
        return 0;
}

static int system_call(Bus *b, const BusCall *call, bus_reply_t fn, void *userdata, BusSlot **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(bus_slot_freep) BusSlot *slot = NULL;
        SystemBusSlot *s;
        int r;

        assert(call && fn);
        if (!to_system(b)->connection)
                return -ENOTCONN;
        r = slot_new(b, userdata, &s);
        if (r < 0)
                return r;
        slot = &s->base;
        s->on_reply = fn;
        r = sd_bus_message_new_method_call(to_system(b)->connection, &m, call->service, call->path,
                                           call->interface, call->member);
        if (r >= 0)
                r = bus_message_append_texts(m, call->types, call->args);
        if (r >= 0)
                r = sd_bus_call_async(to_system(b)->connection, &s->slot, m, on_call_reply, s,
                                      call->timeout_usec);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(slot);
        return 0;
}

static int match_install(SystemBus *b, SystemBusSlot *s) {
        const Match *m = s->match;

        return sd_bus_match_signal_async(b->connection, &s->slot, m->service, m->path, m->interface,
                                         m->signal, on_signal, on_match_installed, s);
}

static int system_match_signal(Bus *b, const char *service, const char *path, const char *interface,
                               const char *signal, bus_value_t fn, void *userdata, BusSlot **ret) {
        _cleanup_(bus_slot_freep) BusSlot *slot = NULL;
        SystemBusSlot *s;
        int r;

        assert(fn);
        r = slot_new(b, userdata, &s);
        if (r < 0)
                return r;
        slot = &s->base;
        s->fn = fn;
        s->match = new0(Match, 1);
        if (!s->match || free_and_strdup(&s->match->service, service) < 0 ||
            free_and_strdup(&s->match->path, path) < 0 ||
            free_and_strdup(&s->match->interface, interface) < 0 ||
            free_and_strdup(&s->match->signal, signal) < 0)
                return -ENOMEM;
        if (to_system(b)->connection) {
                r = match_install(to_system(b), s);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(slot);
        return 0;
}

static int system_publish(Bus *b, const BusObject *o, void *userdata, BusSlot **ret) {
        _cleanup_(bus_slot_freep) BusSlot *slot = NULL;
        SystemBusSlot *s;
        int r;

        assert(o);
        r = slot_new(b, userdata, &s);
        if (r < 0)
                return r;
        slot = &s->base;
        r = published_object_new(o, userdata, &s->object);
        if (r >= 0 && to_system(b)->connection)
                r = published_object_install(s->object, to_system(b)->connection);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(slot);
        return 0;
}

static void system_emit(BusSlot *object, const char *text) {
        SystemBusSlot *s = CONTAINER_OF(object, SystemBusSlot, base);

        if (to_system(object->bus)->connection)
                published_object_emit(s->object, to_system(object->bus)->connection, text);
}

/* -- the connection ----------------------------------------------------------------------------- */

/* Closed without flushing: a flush may block, and nothing we send is worth that. */
static void hang_up(SystemBus *b) {
        if (!b->connection)
                return;
        LIST_FOREACH (s, &b->slots, SystemBusSlot, node) {
                s->slot = sd_bus_slot_unref(s->slot);
                if (s->object)
                        published_object_uninstall(s->object);
        }
        (void) sd_bus_detach_event(b->connection);
        b->connection = sd_bus_close_unref(b->connection);
}

static int on_disconnected(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        SystemBus *b = userdata;

        timer_arm_earlier(b->redial, 0); /* not within a callback of what it takes down */
        return 0;
}

static int dial(SystemBus *b) {
        int r;

        r = sd_bus_open_system_with_description(&b->connection, "vesper");
        if (r >= 0)
                r = sd_bus_match_signal(b->connection, NULL, LOCAL, "/org/freedesktop/DBus/Local", LOCAL,
                                        "Disconnected", on_disconnected, b);
        if (r >= 0)
                r = sd_bus_attach_event(b->connection, loop_sd_event(b->loop), SD_EVENT_PRIORITY_NORMAL);
        if (r < 0)
                hang_up(b);
        return r;
}

static SystemBusSlot *find_stale(SystemBus *b) {
        LIST_FOREACH (s, &b->slots, SystemBusSlot, node)
                if (s->match && s->match->stale)
                        return s;
        return NULL;
}

static int listen_again(SystemBus *b) {
        LIST_FOREACH (s, &b->slots, SystemBusSlot, node) {
                int r = s->match    ? match_install(b, s)
                        : s->object ? published_object_install(s->object, b->connection)
                                    : 0;

                if (r < 0)
                        return r;
                if (s->match)
                        s->match->stale = true;
        }
        return 0;
}

static void on_redial(Timer *t, void *userdata) {
        SystemBus *b = userdata;
        SystemBusSlot *s;
        int r;

        hang_up(b);
        r = dial(b);
        if (r >= 0)
                r = listen_again(b);
        if (r < 0) {
                hang_up(b);
                timer_arm_in(t, REDIAL_USEC);
                return;
        }
        /* Any slot may be freed by what it hears. */
        while ((s = find_stale(b))) {
                s->match->stale = false;
                s->fn(-ESTALE, "", s->userdata);
        }
}

static void system_free(Bus *b) {
        SystemBus *s = to_system(b);

        assert(s->slots.size == 0);
        hang_up(s);
        timer_free(s->redial);
        free(s);
}

static const BusOps system_ops = {
        .get_property = system_get_property,
        .match_signal = system_match_signal,
        .call = system_call,
        .publish = system_publish,
        .emit = system_emit,
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
        s->loop = l;
        bus = &s->bus;

        r = timer_new(l, "bus-redial", on_redial, s, &s->redial);
        if (r < 0)
                return r;
        r = dial(s);
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
