/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A BusObject on a connection of sd-bus. Private to loop/. */

#include <systemd/sd-bus.h>

#include "bus.h"

typedef struct PublishedObject PublishedObject;

int published_object_new(const BusObject *o, void *userdata, PublishedObject **ret);
PublishedObject *published_object_free(PublishedObject *o);
DEFINE_FREEP(PublishedObject, published_object_free);
int published_object_install(PublishedObject *o, sd_bus *connection);
void published_object_uninstall(PublishedObject *o);
void published_object_emit(PublishedObject *o, sd_bus *connection, const char *text);
