/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-protobuf.h"

#include <strings.h>

#include "string-util.h"

static const char magic[4] = { 'k', '8', 's', 0 };

/* Of runtime.Unknown and of every list. */
enum {
        UNKNOWN_TYPE_META = 1,
        UNKNOWN_RAW = 2,
        LIST_ITEMS = 2,
        EVENT_TYPE = 1,
        EVENT_OBJECT = 2,
        RAW_EXTENSION_RAW = 1,
};

static const ProtobufField type_meta_fields[] = {
        { 1, "apiVersion", PROTOBUF_STRING },
        { 2, "kind", PROTOBUF_STRING },
};
static const ProtobufShape type_meta_shape = PROTOBUF_SHAPE(type_meta_fields);

static const ProtobufField list_fields[] = {
        { 1, "metadata", PROTOBUF_MESSAGE, false, &kube_shape_list_meta },
};
static const ProtobufShape list_shape = PROTOBUF_SHAPE(list_fields);

/* Of an object that is gone only its metadata is of use, which each kind has there. */
static const ProtobufField gone_fields[] = {
        { 1, "metadata", PROTOBUF_MESSAGE, false, &kube_shape_meta },
};
static const ProtobufShape gone_shape = PROTOBUF_SHAPE(gone_fields);

/* -- what came ------------------------------------------------------------------------------------------ */

bool kube_type_is_protobuf(const char *content_type) {
        static const char type[] = "application/vnd.kubernetes.protobuf";
        size_t n = sizeof(type) - 1;

        return content_type && strncasecmp(content_type, type, n) == 0 &&
               (content_type[n] == 0 || content_type[n] == ';' || content_type[n] == ' ');
}

bool kube_body_is_protobuf(const void *body, size_t size) {
        return size >= sizeof(magic) && memcmp(body, magic, sizeof(magic)) == 0;
}

static int fail(JsonError *reterr, size_t offset, const char *message) {
        if (reterr)
                *reterr = (JsonError){ .offset = offset, .message = message };
        return -EBADMSG;
}

/* -- envelopes ------------------------------------------------------------------------------------------ */

/* apiVersion and kind stand outside of the message; inline, both make one object. */
int kube_protobuf_object(const void *data, size_t size, size_t max_bytes, const ProtobufShape *shape,
                         JsonDoc **ret, JsonError *reterr) {
        const ProtobufField fields[] = {
                { UNKNOWN_TYPE_META, NULL, PROTOBUF_INLINE, false, &type_meta_shape },
                { UNKNOWN_RAW, NULL, PROTOBUF_INLINE, false, shape },
        };
        const ProtobufShape envelope = PROTOBUF_SHAPE(fields);
        int r;

        if (!kube_body_is_protobuf(data, size))
                return fail(reterr, 0, "not what begins with k8s and a NUL");
        r = json_from_protobuf((const char *) data + sizeof(magic), size - sizeof(magic), max_bytes,
                               &envelope, ret, reterr);
        if (r < 0 && r != -ENOMEM && reterr)
                reterr->offset += sizeof(magic);
        return r;
}

/* The last one of its number, as protobuf has it: 0; -ENODATA; -EBADMSG. */
static int find_bytes(const void *data, size_t size, uint32_t number, ProtobufValue *ret) {
        const unsigned char *begin = data;
        ProtobufCursor c = { .p = begin, .end = begin + size };
        bool found = false;
        ProtobufValue v;
        int r;

        while ((r = protobuf_next(&c, &v)) > 0) {
                if (v.number != number)
                        continue;
                if (v.wire != PROTOBUF_BYTES)
                        return -EBADMSG;
                *ret = v;
                found = true;
        }
        return r < 0 ? r : found ? 0 : -ENODATA;
}

static const char *event_type(const ProtobufValue *v) {
        static const char *const types[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };

        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (strlen(types[i]) == v->size && memcmp(types[i], v->data, v->size) == 0)
                        return types[i];
        return "";
}

static const ProtobufShape *event_shape(const char *type, const ProtobufShape *shape) {
        if (streq(type, "ERROR"))
                return &kube_shape_status;
        return streq(type, "DELETED") ? &gone_shape : shape;
}

int kube_protobuf_event(const void *data, size_t size, const ProtobufShape *shape, const char **ret_type,
                        JsonDoc **ret) {
        ProtobufValue type, object;
        int r;

        r = find_bytes(data, size, EVENT_TYPE, &type);
        if (r >= 0)
                r = find_bytes(data, size, EVENT_OBJECT, &object);
        if (r >= 0)
                r = find_bytes(object.data, object.size, RAW_EXTENSION_RAW, &object);
        if (r < 0)
                return -EBADMSG;
        *ret_type = event_type(&type);
        return kube_protobuf_object(object.data, object.size, object.size, event_shape(*ret_type, shape),
                                    ret, NULL);
}

static bool is_list_of(const Json *list, const KubeKind *kind) {
        const char *name = json_string_or_null(json_get(list, "kind"));
        const char *rest = name ? startswith(name, kind->kind) : NULL;

        return streq_ptr(rest, "List");
}

int kube_protobuf_split_items(const void *data, size_t size, size_t max_bytes, const KubeKind *kind,
                              json_item_t on_item, void *userdata, JsonDoc **ret_rest, JsonError *reterr) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        const unsigned char *begin = data;
        ProtobufValue list, v;
        ProtobufCursor c;
        int r;

        r = kube_protobuf_object(data, size, max_bytes, &list_shape, &rest, reterr);
        if (r < 0)
                return r;
        if (!is_list_of(json_root(rest), kind))
                return fail(reterr, 0, "a list of another kind");
        if (find_bytes(begin + sizeof(magic), size - sizeof(magic), UNKNOWN_RAW, &list) < 0)
                return fail(reterr, 0, "a list without content");

        c = (ProtobufCursor){ .p = list.data, .end = list.data + list.size };
        while ((r = protobuf_next(&c, &v)) > 0) {
                if (v.number != LIST_ITEMS)
                        continue;
                if (v.wire != PROTOBUF_BYTES)
                        return fail(reterr, (size_t) (c.p - begin), "a field has the wrong wire type");
                r = on_item((const char *) v.data, v.size, userdata);
                if (r < 0)
                        return r;
        }
        assert(r == 0); /* looked through before */
        *ret_rest = TAKE_PTR(rest);
        return 0;
}
