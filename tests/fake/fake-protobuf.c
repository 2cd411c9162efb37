/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-protobuf.h"

#include <endian.h>
#include <strings.h>

#include "fake-json.h"
#include "fake-protobuf-fields.h"
#include "time-util.h"

typedef enum Wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } Wire;

/* Above all that Kubernetes has given out so far. */
#define STRANGE_NUMBER 9000u

typedef struct Writer {
        StrBuf *b;
        bool strange;
} Writer;

/* -- the wire ------------------------------------------------------------------------------------------ */

#define VARINT_MAX 10u

static inline char *format_varint(char *to, uint64_t v) {
        for (; v >= 0x80; v >>= 7)
                *to++ = (char) (v | 0x80);
        *to++ = (char) v;
        return to;
}

static inline char *format_tag(char *to, uint32_t number, Wire wire) {
        return format_varint(to, (uint64_t) number << 3 | wire);
}

/* Where n more bytes may be written. Most of what is written is a few bytes. */
static inline char *room(StrBuf *b, size_t n) {
        if (b->allocated - b->size <= n) {
                strbuf_make_room(b, n);
                assert(!b->failed);
        }
        return b->data + b->size;
}

static inline void written(StrBuf *b, const char *end) {
        b->size = (size_t) (end - b->data);
}

static void put_tag(StrBuf *b, uint32_t number, Wire wire) {
        written(b, format_tag(room(b, VARINT_MAX), number, wire));
}

static void put_varint(StrBuf *b, uint64_t v) {
        written(b, format_varint(room(b, VARINT_MAX), v));
}

static void put_number(StrBuf *b, uint32_t number, int64_t v) {
        char *to = room(b, 2 * VARINT_MAX);

        written(b, format_varint(format_tag(to, number, WIRE_VARINT), (uint64_t) v));
}

static void put_bytes(StrBuf *b, uint32_t number, const void *p, size_t size) {
        char *to = room(b, 2 * VARINT_MAX + size);

        to = format_varint(format_tag(to, number, WIRE_BYTES), size);
        written(b, mempcpy(to, p, size));
}

static void put_text(StrBuf *b, uint32_t number, const char *s) {
        put_bytes(b, number, strempty(s), strlen(strempty(s)));
}

/* What follows becomes the content of this field, whose size end() puts in front. */
static size_t begin(StrBuf *b, uint32_t number) {
        put_tag(b, number, WIRE_BYTES);
        return b->size;
}

static void end(StrBuf *b, size_t at) {
        size_t size = b->size - at, n;
        char text[VARINT_MAX];

        n = (size_t) (format_varint(text, size) - text);
        (void) room(b, n);
        memmove(b->data + at + n, b->data + at, size);
        memcpy(b->data + at, text, n);
        b->size += n;
}

/* -- values -------------------------------------------------------------------------------------------- */

static const char *text_of(const cJSON *v) {
        return cJSON_IsString(v) ? v->valuestring : "";
}

static int64_t number_of(const cJSON *v) {
        return cJSON_IsNumber(v) ? (int64_t) v->valuedouble : 0;
}

/* An empty one is no time. */
static void put_time(StrBuf *b, uint32_t number, const cJSON *v) {
        size_t at = begin(b, number);
        usec_t t;

        if (cJSON_IsString(v) && rfc3339_parse(v->valuestring, &t) >= 0) {
                put_number(b, 1, (int64_t) (t / USEC_PER_SEC));
                put_number(b, 2, 0);
        }
        end(b, at);
}

static void put_quantity(StrBuf *b, uint32_t number, const cJSON *v) {
        size_t at = begin(b, number);

        put_text(b, 1, text_of(v));
        end(b, at);
}

static void put_number_or_text(StrBuf *b, uint32_t number, const cJSON *v) {
        size_t at = begin(b, number);

        put_number(b, 1, cJSON_IsString(v));
        put_number(b, 2, number_of(v));
        put_text(b, 3, text_of(v));
        end(b, at);
}

static void put_raw(StrBuf *b, uint32_t number, const cJSON *v) {
        _cleanup_free_ char *text = fj_print(v);
        size_t at = begin(b, number);

        put_text(b, 1, text);
        end(b, at);
}

static void put_message(const Writer *w, uint32_t number, const FakeField *fields, const cJSON *o);

static void put_value(const Writer *w, uint32_t number, const FakeField *f, const cJSON *v) {
        switch (f->type) {
        case FAKE_FIELD_TEXT:
                put_text(w->b, number, text_of(v));
                return;
        case FAKE_FIELD_NUMBER:
                put_number(w->b, number, number_of(v));
                return;
        case FAKE_FIELD_FLAG:
                put_number(w->b, number, cJSON_IsTrue(v));
                return;
        case FAKE_FIELD_MESSAGE:
        case FAKE_FIELD_INLINE:
                put_message(w, number, f->of, v);
                return;
        case FAKE_FIELD_TIME:
                put_time(w->b, number, v);
                return;
        case FAKE_FIELD_QUANTITY:
                put_quantity(w->b, number, v);
                return;
        case FAKE_FIELD_NUMBER_OR_TEXT:
                put_number_or_text(w->b, number, v);
                return;
        case FAKE_FIELD_RAW:
                put_raw(w->b, number, v);
                return;
        }
}

static void put_field(const Writer *w, const FakeField *f, const cJSON *v) {
        const cJSON *i;

        switch (f->use) {
        case FAKE_FIELD_PLAIN:
                put_value(w, f->number, f, v);
                return;
        case FAKE_FIELD_POINTER:
                if (v)
                        put_value(w, f->number, f, v);
                return;
        case FAKE_FIELD_LIST:
                cJSON_ArrayForEach (i, v)
                        put_value(w, f->number, f, i);
                return;
        case FAKE_FIELD_MAP:
                cJSON_ArrayForEach (i, v) {
                        size_t at = begin(w->b, f->number);

                        put_text(w->b, 1, i->string);
                        put_value(w, 2, f, i);
                        end(w->b, at);
                }
                return;
        }
}

/* -- messages ------------------------------------------------------------------------------------------ */

/* Absent and null are the same. */
static const cJSON *find_member(const cJSON *o, const char *name) {
        for (const cJSON *v = o ? o->child : NULL; v; v = v->next)
                if (v->string && *v->string == *name && streq(v->string, name))
                        return cJSON_IsNull(v) ? NULL : v;
        return NULL;
}

/* One of each wire type. */
static void put_strange_fields(StrBuf *b) {
        put_number(b, STRANGE_NUMBER, -1);
        put_tag(b, STRANGE_NUMBER + 1, WIRE_FIXED64);
        strbuf_add_n(b, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
        put_bytes(b, STRANGE_NUMBER + 2, "\x0a\x7f\0k8s", 6);
        put_tag(b, STRANGE_NUMBER + 3, WIRE_FIXED32);
        strbuf_add_n(b, "\x0a\xff\xff\xff", 4);
}

/* Whoever wrote to a real server is noted there. */
static void put_manager(StrBuf *b) {
        size_t at = begin(b, 17), time, fields;

        put_text(b, 1, "fake");
        put_text(b, 2, "Update");
        put_text(b, 3, "v1");
        time = begin(b, 4);
        put_number(b, 1, 1800000000);
        put_number(b, 2, 0);
        end(b, time);
        put_text(b, 6, "FieldsV1");
        fields = begin(b, 7);
        put_text(b, 1, "{\"f:metadata\":{\"f:labels\":{\".\":{}}}}");
        end(b, fields);
        put_text(b, 8, "");
        end(b, at);
}

static void put_fields(const Writer *w, const FakeField *fields, const cJSON *o) {
        for (const FakeField *f = fields; f->number != 0; f++)
                put_field(w, f, f->type == FAKE_FIELD_INLINE ? o : find_member(o, f->name));
        if (fields == fake_fields_meta && !find_member(o, "managedFields"))
                put_manager(w->b);
        if (w->strange)
                put_strange_fields(w->b);
}

static void put_message(const Writer *w, uint32_t number, const FakeField *fields, const cJSON *o) {
        size_t at = begin(w->b, number);

        put_fields(w, fields, o);
        end(w->b, at);
}

void fake_protobuf_add_message(StrBuf *to, const FakeResource *r, const cJSON *object, bool strange) {
        put_fields(&(Writer){ to, strange }, MUST(fake_fields_of(r->id)), object);
        assert(!to->failed);
}

/* -- envelopes ----------------------------------------------------------------------------------------- */

/* Up to the content of raw, which is to follow. */
static void put_unknown_head(StrBuf *b, const char *api_version, const char *kind, const char *suffix,
                             size_t raw_size) {
        size_t at;

        strbuf_add_n(b, "k8s", 4);
        at = begin(b, 1);
        put_text(b, 1, api_version);
        put_tag(b, 2, WIRE_BYTES);
        put_varint(b, strlen(kind) + strlen(suffix));
        strbuf_add(b, kind);
        strbuf_add(b, suffix);
        end(b, at);
        put_tag(b, 2, WIRE_BYTES);
        put_varint(b, raw_size);
}

static void put_unknown_tail(StrBuf *b) {
        put_text(b, 3, ""); /* contentEncoding */
        put_text(b, 4, ""); /* contentType */
        assert(!b->failed);
}

void fake_protobuf_add_item(StrBuf *items, const void *message, size_t size) {
        put_bytes(items, 2, message, size);
}

void fake_protobuf_add_list(StrBuf *to, const FakeResource *r, const cJSON *meta, const StrBuf *items) {
        _cleanup_strbuf_ StrBuf head = { 0 };

        put_message(&(Writer){ &head, false }, 1, fake_fields_list_meta, meta);
        strbuf_make_room(to, head.size + items->size + 128);
        put_unknown_head(to, fake_resource_api_version(r), r->kind, "List", head.size + items->size);
        strbuf_add_n(to, head.data, head.size);
        strbuf_add_n(to, strbuf_str(items), items->size);
        put_unknown_tail(to);
}

/* Four bytes of size, and what stands in front of the object. */
static size_t begin_event(StrBuf *b, const char *type) {
        size_t at = b->size;

        strbuf_add_n(b, "\0\0\0", 4);
        put_text(b, 1, type);
        return at;
}

static void end_event(StrBuf *b, size_t at, bool cut) {
        uint32_t size;

        if (cut)
                strbuf_truncate(b, b->size - (b->size - at) / 3);
        size = htobe32((uint32_t) (b->size - at - sizeof(size)));
        assert(!b->failed);
        memcpy(b->data + at, &size, sizeof(size));
}

void fake_protobuf_add_event(StrBuf *to, const char *type, const FakeResource *r, const void *message,
                             size_t size, bool cut) {
        size_t at = begin_event(to, type), object = begin(to, 2), raw = begin(to, 1);

        put_unknown_head(to, fake_resource_api_version(r), r->kind, "", size);
        strbuf_add_n(to, message, size);
        put_unknown_tail(to);
        end(to, raw);
        end(to, object);
        end_event(to, at, cut);
}

void fake_protobuf_add_status(StrBuf *to, const cJSON *status) {
        _cleanup_strbuf_ StrBuf message = { 0 };

        put_fields(&(Writer){ &message, false }, fake_fields_status, status);
        put_unknown_head(to, "v1", "Status", "", message.size);
        strbuf_add_n(to, strbuf_str(&message), message.size);
        put_unknown_tail(to);
}

void fake_protobuf_add_error(StrBuf *to, const cJSON *status) {
        size_t at = begin_event(to, "ERROR"), object = begin(to, 2), raw = begin(to, 1);

        fake_protobuf_add_status(to, status);
        end(to, raw);
        end(to, object);
        end_event(to, at, false);
}

/* -- what is asked for --------------------------------------------------------------------------------- */

static bool begins_with(const char *s, const char *type) {
        size_t n = strlen(type);

        return strncasecmp(s, type, n) == 0 && strchr(",; ", s[n]);
}

bool fake_protobuf_is_asked(const HttpExchange *x) {
        const char *accept = http_header_find(x->headers, x->n_headers, "Accept");

        for (const char *p = accept; p; p = strchr(p, ',')) {
                p += strspn(p, ", ");
                if (begins_with(p, FAKE_PROTOBUF))
                        return true;
                if (begins_with(p, "application/json") || begins_with(p, "*/*"))
                        return false;
        }
        return false;
}

bool fake_protobuf_has(const FakeResource *r) {
        return fake_fields_of(r->id);
}
