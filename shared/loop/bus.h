/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * D-Bus, as far as vesper needs it: read one property, call one method, hear one signal, be one object. A seam; the real one is sd-bus on
 * the system bus.
 *
 * When the connection is lost, what was asked ends with an error, and the bus is dialled again every second. Signals are
 * listened for on the new connection as on the old one; what was sent meanwhile is lost, and their slots hear -ESTALE.
 */

#include <stddef.h>

#include "loop.h"

typedef struct Bus Bus;
typedef struct BusSlot BusSlot;

/* error: 0 or a negative errno; value: the property as text (strings as they are, booleans "true"/"false", integers in
 * decimal), borrowed for the callback. For a signal: its arguments' basic values in the same form, in their order, out of
 * whatever they are wrapped in, with a space between. error of a signal:
 * -ESTALE: some may have been missed, ask for what they would have said; else it will never be heard. */
typedef void (*bus_value_t)(int error, const char *value, void *userdata);

/* One method call. types: of "sobiut"; args: one text for each, in the form of values. timeout_usec: USEC_INFINITY waits for
 * as long as the connection lives. */
typedef struct BusCall {
        const char *service, *path, *interface, *member, *types;
        const char *const *args;
        usec_t timeout_usec;
} BusCall;

/* What came of it, borrowed for the callback. */
typedef struct BusReply {
        int error;              /* 0 or a negative errno */
        const char *error_name; /* D-Bus' own, or "" */
        const char *error_message; /* for people, of who answered, or "" or NULL */
        char *const *values;    /* all basic values in their order, out of whatever they are wrapped in; NULL: none */
        int fd;                 /* the first one; dup it to keep it. -EBADF: none */
} BusReply;

typedef void (*bus_reply_t)(const BusReply *reply, void *userdata);

/* An object of ours, under a name of ours: static, and so is what it points to. Methods take and give nothing, and are
 * root's; there is one signal, with one text. */
typedef struct BusProperty {
        const char *name;
        char type; /* one of "stb" */
} BusProperty;

typedef struct BusObject {
        const char *name, *path, *interface;
        const BusProperty *properties; /* all that change, and say so */
        size_t n_properties;
        const char *const *methods; /* NULL-terminated */
        const char *signal;
        /* The present value as text, in the form of values; free it. NULL: out of memory. */
        char *(*get)(const char *property, void *userdata);
        /* 0, or a negative errno with *reterr_message (static) for whoever called. */
        int (*call)(const char *method, const char **reterr_message, void *userdata);
} BusObject;

typedef struct BusOps {
        int (*get_property)(Bus *b, const char *service, const char *path, const char *interface, const char *property,
                            bus_value_t fn, void *userdata, BusSlot **ret);
        int (*match_signal)(Bus *b, const char *service, const char *path, const char *interface, const char *signal,
                            bus_value_t fn, void *userdata, BusSlot **ret);
        int (*call)(Bus *b, const BusCall *call, bus_reply_t fn, void *userdata, BusSlot **ret);
        /* The name is asked for, and asked for again on a new connection; whether it is got is only logged by the broker. */
        int (*publish)(Bus *b, const BusObject *o, void *userdata, BusSlot **ret);
        /* object: of publish(). Tells whoever listens that all properties may have changed, and the signal with that text
         * (NULL: not the signal). Silently nothing while the bus is away. */
        void (*emit)(BusSlot *object, const char *text);
        void (*slot_free)(BusSlot *s);
        void (*free)(Bus *b);
} BusOps;

struct Bus {
        const BusOps *ops;
};
struct BusSlot {
        Bus *bus;
};

/* -ENOENT, -ECONNREFUSED where there is no system bus: callers go on without one. */
int bus_new_system(Loop *l, Bus **ret);
Bus *bus_free(Bus *b);
DEFINE_FREEP(Bus, bus_free);
BusSlot *bus_slot_free(BusSlot *s);
DEFINE_FREEP(BusSlot, bus_slot_free);
