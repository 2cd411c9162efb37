/* SPDX-License-Identifier: Apache-2.0 */
#include "bus-object.h"

#include "bus-message.h"
#include "string-util.h"
#include "strv.h"

struct PublishedObject {
        const BusObject *object;
        void *userdata;
        sd_bus_vtable *vtable;
        sd_bus_slot *slot, *name_slot;
};

static int on_get(sd_bus *bus, const char *path, const char *interface, const char *property,
                  sd_bus_message *reply, void *userdata, sd_bus_error *reterr) {
        PublishedObject *o = userdata;
        _cleanup_free_ char *text = o->object->get(property, o->userdata);
        char types[2] = { 0 };

        if (!text)
                return -ENOMEM;
        for (size_t i = 0; i < o->object->n_properties; i++)
                if (streq(o->object->properties[i].name, property))
                        types[0] = o->object->properties[i].type;
        return bus_message_append_texts(reply, types, (const char *const[]){ text });
}

/* Without the flag for the unprivileged sd-bus lets only root and us in. */
static int on_method(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        PublishedObject *o = userdata;
        const char *message = NULL;
        int r;

        r = o->object->call(sd_bus_message_get_member(m), &message, o->userdata);
        if (r < 0)
                return message ? sd_bus_error_set_errnof(reterr, -r, "%s", message) : r;
        return sd_bus_reply_method_return(m, "");
}

/* The broker's refusal is the broker's to say; without a handler sd-bus would drop the connection. */
static int on_named(sd_bus_message *m, void *userdata, sd_bus_error *reterr) {
        return 0;
}

static void make_vtable(PublishedObject *p) {
        static const char *const types[] = { ['s'] = "s", ['t'] = "t", ['b'] = "b" };
        const BusObject *o = p->object;
        sd_bus_vtable *v = p->vtable;

        *v++ = (sd_bus_vtable) SD_BUS_VTABLE_START(0);
        for (size_t i = 0; i < o->n_properties; i++)
                *v++ = (sd_bus_vtable) SD_BUS_PROPERTY(o->properties[i].name,
                                                       types[(int) o->properties[i].type], on_get, 0,
                                                       SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE);
        STRV_FOREACH (m, (char *const *) o->methods)
                *v++ = (sd_bus_vtable) SD_BUS_METHOD(*m, "", "", on_method, 0);
        *v++ = (sd_bus_vtable) SD_BUS_SIGNAL(o->signal, "s", 0);
        *v = (sd_bus_vtable) SD_BUS_VTABLE_END;
}

int published_object_new(const BusObject *o, void *userdata, PublishedObject **ret) {
        _cleanup_(published_object_freep) PublishedObject *p = new0(PublishedObject, 1);

        if (!p)
                return -ENOMEM;
        p->object = o;
        p->userdata = userdata;
        p->vtable = new0(sd_bus_vtable, o->n_properties + strv_length((char *const *) o->methods) + 3);
        if (!p->vtable)
                return -ENOMEM;
        make_vtable(p);
        *ret = TAKE_PTR(p);
        return 0;
}

void published_object_uninstall(PublishedObject *p) {
        p->slot = sd_bus_slot_unref(p->slot);
        p->name_slot = sd_bus_slot_unref(p->name_slot);
}

PublishedObject *published_object_free(PublishedObject *p) {
        if (!p)
                return NULL;
        published_object_uninstall(p);
        free(p->vtable);
        return mfree(p);
}

int published_object_install(PublishedObject *p, sd_bus *connection) {
        const BusObject *o = p->object;
        int r;

        r = sd_bus_add_object_vtable(connection, &p->slot, o->path, o->interface, p->vtable, p);
        if (r < 0)
                return r;
        return sd_bus_request_name_async(connection, &p->name_slot, o->name, 0, on_named, p);
}

void published_object_emit(PublishedObject *p, sd_bus *connection, const char *text) {
        const BusObject *o = p->object;
        _cleanup_strv_free_ char **names = NULL;

        for (size_t i = 0; i < o->n_properties; i++)
                if (strv_extend(&names, o->properties[i].name) < 0)
                        return;
        (void) sd_bus_emit_properties_changed_strv(connection, o->path, o->interface, names);
        if (text)
                (void) sd_bus_emit_signal(connection, o->path, o->interface, o->signal, "s", text);
}
