/* SPDX-License-Identifier: Apache-2.0 */
#include "json-protobuf.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "json-internal.h"
#include "string-util.h"
#include "time-util.h"

/*
 * One walk, which checks and builds: what it takes for values and texts it cuts from pieces of memory that
 * never move, and nearly always one is enough (of a pod of 4 kB the shape keeps less than a hundred values).
 * What fails gives them back. How deep it goes depends on the shape, not on the message.
 */

/* Of a wire tag: three bits of type below the number, which has 29. */
#define WIRE_BITS 3
#define NUMBER_MAX ((UINT32_C(1) << 29) - 1)
/* "9999-12-31T23:59:59Z" */
#define TIME_MAX_SEC INT64_C(253402300799)
#define PIECE_BYTES_MIN ((size_t) 512)
#define PIECE_BYTES_FIRST_MAX ((size_t) 16 * 1024)
#define PIECE_BYTES_MAX ((size_t) 256 * 1024)

typedef struct Walk {
        const unsigned char *data; /* the whole, for offsets */
        unsigned depth;
        JsonPiece *pieces; /* the newest first */
        size_t next_bytes; /* how large the next one is to be */
        char *low, *high;  /* what is free of the newest: values come from below, texts from above */
        bool no_memory;    /* what has been made since is not whole */
        JsonError error;
} Walk;

/* One message under way. */
typedef struct Message {
        const ProtobufShape *shape;
        cJSON *object; /* whose members they are */
        uint32_t seen; /* by index of the shape */
        cJSON *members[PROTOBUF_FIELDS_MAX];
} Message;

/* -- the wire ------------------------------------------------------------------------------------------- */

static int cursor_fail(ProtobufCursor *c, const char *message) {
        c->message = message;
        return -EBADMSG;
}

static int take_long_varint(ProtobufCursor *c, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned shift = 0; c->p < c->end; shift += 7) {
                unsigned char byte = *c->p++;

                if (shift == 63 && byte > 1)
                        return cursor_fail(c, "a varint has more than 64 bits");
                value |= (uint64_t) (byte & 0x7f) << shift;
                if (byte < 0x80) {
                        *ret = value;
                        return 0;
                }
        }
        return cursor_fail(c, "a varint is cut off");
}

/* Most tags and sizes are one byte. */
static inline int take_varint(ProtobufCursor *c, uint64_t *ret) {
        if (c->p == c->end || *c->p >= 0x80)
                return take_long_varint(c, ret);
        *ret = *c->p++;
        return 0;
}

static int take_fixed(ProtobufCursor *c, size_t size) {
        if ((size_t) (c->end - c->p) < size)
                return cursor_fail(c, "a number is cut off");
        c->p += size;
        return 1;
}

static int take_bytes(ProtobufCursor *c, ProtobufValue *v) {
        uint64_t size;
        int r;

        r = take_varint(c, &size);
        if (r < 0)
                return r;
        if (size > (size_t) (c->end - c->p))
                return cursor_fail(c, "a field is longer than what is left");
        v->data = c->p;
        v->size = (size_t) size;
        c->p += size;
        return 1;
}

int protobuf_next(ProtobufCursor *c, ProtobufValue *ret) {
        uint64_t tag;
        int r;

        if (c->p == c->end)
                return 0;
        r = take_varint(c, &tag);
        if (r < 0)
                return r;
        if (tag >> WIRE_BITS == 0 || tag >> WIRE_BITS > NUMBER_MAX)
                return cursor_fail(c, "a field has no valid number");

        ret->number = (uint32_t) (tag >> WIRE_BITS);
        ret->wire = (ProtobufWire) (tag & ((1u << WIRE_BITS) - 1));
        switch (ret->wire) {
        case PROTOBUF_VARINT:
                r = take_varint(c, &ret->varint);
                return r < 0 ? r : 1;
        case PROTOBUF_FIXED64:
                return take_fixed(c, sizeof(uint64_t));
        case PROTOBUF_BYTES:
                return take_bytes(c, ret);
        case PROTOBUF_FIXED32:
                return take_fixed(c, sizeof(uint32_t));
        }
        return cursor_fail(c, "a field has an unknown wire type");
}

/* -- the tree ------------------------------------------------------------------------------------------- */

static int fail(Walk *w, const unsigned char *at, const char *message) {
        w->error = (JsonError){ .offset = (size_t) (at - w->data), .message = message };
        return -EBADMSG;
}

static bool make_room(Walk *w, size_t n) {
        size_t bytes = MAX(w->next_bytes, sizeof(JsonPiece) + n);
        JsonPiece *piece;

        if (n <= (size_t) (w->high - w->low))
                return true;
        piece = malloc(bytes);
        if (!piece) {
                w->no_memory = true;
                return false;
        }
        piece->next = w->pieces;
        w->pieces = piece;
        w->low = (char *) (piece + 1);
        w->high = (char *) piece + bytes;
        w->next_bytes = MIN(2 * w->next_bytes, PIECE_BYTES_MAX);
        return true;
}

/* A member (or, without a name, an element) behind those that are there; NULL: no memory. */
static cJSON *add_child(Walk *w, cJSON *parent, const char *name) {
        cJSON *v;

        if (!make_room(w, sizeof(*v)))
                return NULL;
        v = (cJSON *) (void *) w->low;
        w->low += sizeof(*v);
        /* cJSON has no const; nobody writes there, and the piece is freed as one. */
        *v = (cJSON){ .string = (char *) (uintptr_t) name };
        if (!parent)
                return v;
        if (parent->child) {
                v->prev = parent->child->prev;
                v->prev->next = v;
        } else
                parent->child = v;
        parent->child->prev = v; /* as cJSON has it */
        return v;
}

#define REPLACEMENT_BYTES (sizeof(UTF8_REPLACEMENT) - 1)

/* Of what is text and no NUL at p, the bytes of its first character; 0: the first byte is neither. */
static size_t character_bytes(const unsigned char *p, size_t size) {
        return *p < 0x80 ? *p != 0 : json_utf8_size(p, size);
}

/* The bytes of a text when each byte that is none, and each NUL, has become U+FFFD. Most bytes are ASCII:
 * eight at a time. */
static size_t repaired_bytes(const unsigned char *p, size_t size) {
        const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
        const unsigned char *end = p + size;
        size_t bytes = 0, n;

        while (p < end) {
                uint64_t w;

                if ((size_t) (end - p) >= sizeof(w)) {
                        memcpy(&w, p, sizeof(w));
                        if (((w | (w - ones)) & highs) == 0) { /* no high bit, no borrow of a zero */
                                p += sizeof(w);
                                bytes += sizeof(w);
                                continue;
                        }
                }
                n = character_bytes(p, (size_t) (end - p));
                bytes += n > 0 ? n : REPLACEMENT_BYTES;
                p += n > 0 ? n : 1;
        }
        return bytes;
}

static char *copy_repaired(char *to, const unsigned char *p, size_t size) {
        const unsigned char *end = p + size;

        while (p < end) {
                size_t n = character_bytes(p, (size_t) (end - p));

                to = n > 0 ? mempcpy(to, p, n) : mempcpy(to, UTF8_REPLACEMENT, REPLACEMENT_BYTES);
                p += n > 0 ? n : 1;
        }
        return to;
}

/* A copy with its NUL; NULL: no memory. */
static char *put_text(Walk *w, const void *p, size_t size) {
        size_t n = repaired_bytes(p, size);
        char *end;

        if (!make_room(w, n + 1))
                return NULL;
        w->high -= n + 1;
        if (n != size)
                end = copy_repaired(w->high, p, size);
        else
                end = size > 0 ? mempcpy(w->high, p, size) : w->high;
        assert(end == w->high + n);
        *end = 0;
        return w->high;
}

static void set_string(Walk *w, cJSON *v, const void *p, size_t size) {
        char *text = put_text(w, p, size);

        if (!v)
                return;
        v->type = cJSON_String;
        v->valuestring = text;
}

static void set_number(cJSON *v, int64_t n) {
        if (!v)
                return;
        v->type = cJSON_Number;
        v->valuedouble = (double) n;
        v->valueint = n >= INT_MAX ? INT_MAX : n <= INT_MIN ? INT_MIN : (int) n;
}

static void set_type(cJSON *v, int type) {
        if (!v)
                return;
        v->type = type;
        v->valueint = type == cJSON_True;
}

/* -- values --------------------------------------------------------------------------------------------- */

static int next_field(Walk *w, ProtobufCursor *c, ProtobufValue *ret) {
        int r = protobuf_next(c, ret);

        return r < 0 ? fail(w, c->p, c->message) : r;
}

/* Fractions are passed over, as metav1.Time does. */
static int read_time(Walk *w, const ProtobufValue *from, cJSON *v) {
        ProtobufCursor c = { .p = from->data, .end = from->data + from->size };
        ProtobufValue part;
        char text[RFC3339_MAX];
        int64_t seconds = 0;
        int r;

        if (from->size == 0) {
                set_type(v, cJSON_NULL);
                return 0;
        }
        while ((r = next_field(w, &c, &part)) > 0) {
                if (part.number != 1)
                        continue;
                if (part.wire != PROTOBUF_VARINT)
                        return fail(w, c.p, "a time's seconds are no varint");
                seconds = (int64_t) part.varint;
        }
        if (r < 0)
                return r;
        if (seconds < 0 || seconds > TIME_MAX_SEC)
                set_string(w, v, text, (size_t) snprintf(text, sizeof(text), "@%" PRIi64, seconds));
        else {
                rfc3339_format((usec_t) seconds * USEC_PER_SEC, text);
                set_string(w, v, text, strlen(text));
        }
        return 0;
}

/* resource.Quantity: its text is field 1, the last one counts; an empty message is an empty text. */
static int unwrap_quantity(Walk *w, ProtobufValue *v) {
        ProtobufCursor c = { .p = v->data, .end = v->data + v->size };
        ProtobufValue part, text = { .data = v->data };
        int r;

        while ((r = next_field(w, &c, &part)) > 0) {
                if (part.number != 1)
                        continue;
                if (part.wire != PROTOBUF_BYTES)
                        return fail(w, c.p, "a quantity is no text");
                text = part;
        }
        *v = text;
        return r;
}

/* A message {key = 1, value = 2} for each; either may be left out. */
static int read_entry(Walk *w, const ProtobufValue *from, bool of_quantities, cJSON *map) {
        ProtobufCursor c = { .p = from->data, .end = from->data + from->size };
        ProtobufValue part, parts[2] = { { .data = from->data }, { .data = from->data } };
        cJSON *v;
        int r;

        while ((r = next_field(w, &c, &part)) > 0) {
                if (part.number > 2)
                        continue;
                if (part.wire != PROTOBUF_BYTES)
                        return fail(w, c.p, "a map's key or value is no text");
                parts[part.number - 1] = part;
        }
        if (r >= 0 && of_quantities)
                r = unwrap_quantity(w, parts + 1);
        if (r < 0)
                return r;
        v = add_child(w, map, put_text(w, parts[0].data, parts[0].size));
        set_string(w, v, parts[1].data, parts[1].size);
        return 0;
}

static int read_message(Walk *w, const ProtobufShape *shape, const unsigned char *data, size_t size,
                        cJSON *object);

static int read_value(Walk *w, const ProtobufField *f, const ProtobufValue *from, cJSON *v) {
        switch (f->type) {
        case PROTOBUF_STRING:
        case PROTOBUF_STRING_KEPT:
                set_string(w, v, from->data, from->size);
                return 0;
        case PROTOBUF_INT:
                set_number(v, (int64_t) from->varint);
                return 0;
        case PROTOBUF_BOOL:
                set_type(v, from->varint != 0 ? cJSON_True : cJSON_False);
                return 0;
        case PROTOBUF_MESSAGE:
        case PROTOBUF_INLINE:
                set_type(v, cJSON_Object);
                return read_message(w, f->shape, from->data, from->size, v);
        case PROTOBUF_MAP:
        case PROTOBUF_QUANTITY_MAP:
                set_type(v, cJSON_Object);
                return read_entry(w, from, f->type == PROTOBUF_QUANTITY_MAP, v);
        case PROTOBUF_TIME:
                return read_time(w, from, v);
        }
        assert(false && "a shape with a type that is none");
        return -EBADMSG;
}

static bool is_map(const ProtobufField *f) {
        return f->type == PROTOBUF_MAP || f->type == PROTOBUF_QUANTITY_MAP;
}

/* Where the value goes: a new member, the one that is there already, or an element of it. */
static cJSON *place(Walk *w, Message *m, size_t index) {
        const ProtobufField *f = m->shape->fields + index;
        uint32_t bit = UINT32_C(1) << index;
        cJSON *v;

        if (!(m->seen & bit)) {
                m->seen |= bit;
                m->members[index] = add_child(w, m->object, f->name);
                if (f->repeated)
                        set_type(m->members[index], cJSON_Array);
        }
        v = m->members[index];
        if (f->repeated)
                return add_child(w, v, NULL);
        if (v && !is_map(f)) /* the last one counts */
                *v = (cJSON){ .next = v->next, .prev = v->prev, .string = v->string };
        return v;
}

static int read_field(Walk *w, Message *m, size_t index, const ProtobufValue *from) {
        const ProtobufField *f = m->shape->fields + index;
        bool seen = m->seen & UINT32_C(1) << index;

        if (f->type == PROTOBUF_INLINE) {
                if (seen)
                        return fail(w, from->data, "a message that has to come once comes twice");
                m->seen |= UINT32_C(1) << index;
                return read_message(w, f->shape, from->data, from->size, m->object);
        }
        if (f->type == PROTOBUF_STRING && !f->repeated && from->size == 0) {
                if (seen)
                        set_type(place(w, m, index), cJSON_NULL);
                return 0;
        }
        return read_value(w, f, from, place(w, m, index));
}

static bool wire_fits(const ProtobufField *f, ProtobufWire wire) {
        return wire ==
               (f->type == PROTOBUF_INT || f->type == PROTOBUF_BOOL ? PROTOBUF_VARINT : PROTOBUF_BYTES);
}

/* Entries of a map need not come together, so this is asked at the end. */
static int check_maps(Walk *w, const Message *m, const unsigned char *data) {
        for (size_t i = 0; i < m->shape->n_fields; i++) {
                const cJSON *duplicate = NULL;
                int r;

                if (!is_map(m->shape->fields + i) || !(m->seen & UINT32_C(1) << i))
                        continue;
                r = json_find_duplicate_member(m->members[i], &duplicate);
                if (r < 0)
                        return r;
                if (duplicate)
                        return fail(w, data, "duplicate key");
        }
        return 0;
}

static int read_fields(Walk *w, Message *m, const unsigned char *data, size_t size) {
        ProtobufCursor c = { .p = data, .end = data + size };
        const ProtobufShape *shape = m->shape;
        size_t i = 0; /* encoders write in ascending order: the search goes on where it was */
        ProtobufValue v;
        int r;

        while ((r = next_field(w, &c, &v)) > 0) {
                if (i > 0 && shape->fields[i - 1].number >= v.number)
                        i = 0;
                while (i < shape->n_fields && shape->fields[i].number < v.number)
                        i++;
                if (i == shape->n_fields || shape->fields[i].number != v.number)
                        continue;
                if (!wire_fits(shape->fields + i, v.wire))
                        return fail(w, c.p, "a field has the wrong wire type");
                r = read_field(w, m, i, &v);
                if (r < 0 || w->no_memory)
                        return r < 0 ? r : -ENOMEM;
        }
        return r;
}

static int read_message(Walk *w, const ProtobufShape *shape, const unsigned char *data, size_t size,
                        cJSON *object) {
        Message m;
        int r;

        assert(shape->n_fields <= PROTOBUF_FIELDS_MAX);
        if (w->depth == JSON_MAX_DEPTH)
                return fail(w, data, "nested too deeply");
        m.shape = shape;
        m.object = object;
        m.seen = 0; /* members are what was seen */

        w->depth++;
        r = read_fields(w, &m, data, size);
        w->depth--;
        if (r >= 0)
                r = check_maps(w, &m, data);
        return r;
}

static int walk(Walk *w, const void *data, size_t size, const ProtobufShape *shape, JsonDoc **ret) {
        cJSON *root = add_child(w, NULL, NULL);
        int r;

        if (!root)
                return -ENOMEM;
        set_type(root, cJSON_Object);
        r = read_message(w, shape, data, size, root);
        return r < 0 ? r : json_doc_new_of_pieces(root, w->pieces, ret);
}

static size_t first_piece_bytes(size_t message_bytes) {
        if (message_bytes >= PIECE_BYTES_FIRST_MAX / 4)
                return PIECE_BYTES_FIRST_MAX;
        return PIECE_BYTES_MIN + 3 * message_bytes;
}

int json_from_protobuf(const void *data, size_t size, size_t max_bytes, const ProtobufShape *shape,
                       JsonDoc **ret, JsonError *reterr) {
        Walk w = { .data = data, .next_bytes = first_piece_bytes(size) };
        int r;

        assert(data || size == 0);
        assert(shape);
        assert(ret);
        if (size > max_bytes) {
                w.error = (JsonError){ .offset = max_bytes, .message = "too large" };
                r = -E2BIG;
        } else {
                r = walk(&w, data, size, shape, ret);
                if (r < 0)
                        json_pieces_free(w.pieces);
        }
        if (r < 0 && r != -ENOMEM && reterr)
                *reterr = w.error;
        return r;
}
