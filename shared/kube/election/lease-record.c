/* SPDX-License-Identifier: Apache-2.0 */
#include "lease-record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "kube-kinds.h"
#include "string-util.h"

#define LEASE_OBJECT_MAX_BYTES (1024u * 1024u)

/* The fields of spec that are ours to write; all others are copied. */
static const char *const own_fields[] = {
        "holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions",
};

static bool is_own_field(const char *key) {
        for (size_t i = 0; i < ELEMENTSOF(own_fields); i++)
                if (streq(own_fields[i], key))
                        return true;
        return false;
}

/* An absent number is 0, as in client-go. */
static int int_or_zero(const Json *v, int64_t *ret) {
        int r = json_int64(v, ret);

        if (r == -ENODATA)
                *ret = 0;
        return r == -ENODATA ? 0 : r;
}

int lease_record_parse(const Json *lease, LeaseRecord *ret) {
        const Json *spec = json_get(lease, "spec");
        _cleanup_(lease_record_done) LeaseRecord record = { 0 };
        const char *holder = "";
        int64_t duration;
        int r;

        assert(ret);
        if (isempty(json_string_or_null(json_path(lease, "metadata", "resourceVersion", NULL))))
                return -EINVAL;
        if (spec && !json_is_null(spec) && !json_is_object(spec))
                return -EINVAL;

        r = json_string(json_get(spec, "holderIdentity"), &holder);
        if (r < 0 && r != -ENODATA)
                return -EINVAL;
        r = int_or_zero(json_get(spec, "leaseDurationSeconds"), &duration);
        if (r < 0)
                return -EINVAL;
        r = int_or_zero(json_get(spec, "leaseTransitions"), &record.transitions);
        if (r < 0)
                return -EINVAL;

        record.duration_usec = duration > 0 ? (usec_t) MIN(duration, (int64_t) INT32_MAX) * USEC_PER_SEC : 0;
        record.holder = strdup(strempty(holder));
        record.spec = spec ? json_format(spec) : strdup("");
        record.object = json_format(lease);
        if (!record.holder || !record.spec || !record.object)
                return -ENOMEM;

        *ret = record;
        record = (LeaseRecord){ 0 };
        return 0;
}

void lease_record_done(LeaseRecord *r) {
        free(r->holder);
        free(r->spec);
        free(r->object);
        *r = (LeaseRecord){ 0 };
}

/* old: the spec as last read, or NULL. */
static void add_spec(JsonWriter *w, const Json *old, const LeaseClaim *c) {
        const Json *acquired = c->keep_acquired ? json_get(old, "acquireTime") : NULL;
        char now[RFC3339_MAX];

        rfc3339_format_micro(c->now_wall_usec, now);
        json_open_object(w, "spec");
        json_add_string(w, "holderIdentity", c->holder);
        json_add_int64(w, "leaseDurationSeconds", c->duration_sec);
        if (json_is_string(acquired))
                json_add_value(w, "acquireTime", acquired);
        else
                json_add_string(w, "acquireTime", now);
        json_add_string(w, "renewTime", now);
        json_add_int64(w, "leaseTransitions", c->transitions);
        if (json_is_object(old))
                JSON_FOREACH (field, old)
                        if (!is_own_field(json_key(field)))
                                json_add_value(w, json_key(field), field);
        json_close_object(w);
}

char *lease_body_create(const char *ns, const char *name, const LeaseClaim *c) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;

        json_open_object(w, NULL);
        json_addf(w, "apiVersion", "%s/%s", kube_lease_kind.group, kube_lease_kind.version);
        json_add_string(w, "kind", kube_lease_kind.kind);
        json_open_object(w, "metadata");
        json_add_string(w, "namespace", ns);
        json_add_string(w, "name", name);
        json_close_object(w);
        add_spec(w, NULL, c);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *lease_body_update(const LeaseRecord *r, const LeaseClaim *c) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(r && r->object);
        if (json_parse(r->object, strlen(r->object), LEASE_OBJECT_MAX_BYTES, &doc, NULL) < 0 ||
            json_writer_new(&w) < 0)
                return NULL;

        json_open_object(w, NULL);
        JSON_FOREACH (field, json_root(doc))
                if (!streq(json_key(field), "spec"))
                        json_add_value(w, json_key(field), field);
        add_spec(w, json_get(json_root(doc), "spec"), c);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}
