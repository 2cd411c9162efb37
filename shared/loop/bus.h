/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* D-Bus, as far as vesper needs it: read one property, hear one signal. A seam; the real one is sd-bus on the system bus. */

#include <stddef.h>

#include "loop.h"

typedef struct Bus Bus;
typedef struct BusSlot BusSlot;

/* error: 0 or a negative errno; value: the property as text (strings as they are, booleans "true"/"false", integers in
 * decimal), borrowed for the callback. For a signal: its first argument in the same form, or "". */
typedef void (*bus_value_t)(int error, const char *value, void *userdata);

typedef struct BusOps {
        int (*get_property)(Bus *b, const char *service, const char *path, const char *interface, const char *property,
                            bus_value_t fn, void *userdata, BusSlot **ret);
        int (*match_signal)(Bus *b, const char *service, const char *path, const char *interface, const char *signal,
                            bus_value_t fn, void *userdata, BusSlot **ret);
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
