/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Protobuf read as the JSON that says the same, so that what decodes an object does not know which of the
 * two came. Of a message only what a shape names is looked at; everything else is skipped by its wire type.
 * The encoding: https://protobuf.dev/programming-guides/encoding/. The names and rules are those of
 * Kubernetes' generated Go code, which writes plain fields also when they are zero: an empty string counts
 * as absent, as JSON leaves it out, but in a list and where its type says otherwise.
 *
 * As strict as the JSON reader: a varint beyond 64 bits or cut off, a length beyond the end, field number 0,
 * groups and wire types without meaning, the wrong wire type for a field of the shape, and a key twice in one
 * map are refused. Not so a text that is no UTF-8 or holds a NUL: the API server stores an annotation's value
 * as it comes, and nobody who may write one shall hide a pod from its drain. Each such byte is read as U+FFFD,
 * as Go writes what is no UTF-8 into JSON. Of a field that is no list and comes twice the
 * last one counts; messages are not merged then, as no encoder of one object writes them in pieces.
 */

#include "json.h"

typedef enum ProtobufType {
        PROTOBUF_STRING,
        PROTOBUF_STRING_KEPT, /* also when it is empty, as in JSON: a pointer or a field without omitempty in
                                 Go */
        PROTOBUF_INT,         /* int32, int64 */
        PROTOBUF_BOOL,
        PROTOBUF_MESSAGE, /* an object, also when it is empty */
        PROTOBUF_INLINE, /* a message whose members are the outer object's, as an embedded struct of Go; once
                          */
        PROTOBUF_MAP,    /* map<string, string> */
        PROTOBUF_QUANTITY_MAP, /* map<string, resource.Quantity>: a message whose field 1 is the text */
        PROTOBUF_TIME, /* metav1.Time: RFC 3339 in seconds, as Go reads and writes it; an empty one is null.
                          What RFC 3339 or our reader of it has no year for becomes "@SECONDS", which is no
                          time */
} ProtobufType;

typedef struct ProtobufField ProtobufField;

typedef struct ProtobufShape {
        const ProtobufField *fields; /* at most PROTOBUF_FIELDS_MAX, by ascending number */
        size_t n_fields;
} ProtobufShape;

struct ProtobufField {
        uint32_t number;
        const char *name; /* NULL for PROTOBUF_INLINE */
        ProtobufType type;
        bool repeated;              /* a list: of STRING or MESSAGE */
        const ProtobufShape *shape; /* of MESSAGE and INLINE */
};

#define PROTOBUF_FIELDS_MAX 32u
#define PROTOBUF_SHAPE(table) \
        { .fields = (table), .n_fields = ELEMENTSOF(table) }

/* The document that json_parse() would make of the JSON with these members. -EBADMSG
 * (also deeper than JSON_MAX_DEPTH) with *reterr filled (reterr may be NULL), -E2BIG above max_bytes,
 * -ENOMEM. Keeps no reference to `data`; the names of the shape must outlive the document. */
int json_from_protobuf(const void *data, size_t size, size_t max_bytes, const ProtobufShape *shape,
                       JsonDoc **ret, JsonError *reterr);

/* -- field by field, for envelopes ----------------------------------------------------------------- */

typedef enum ProtobufWire {
        PROTOBUF_VARINT = 0,
        PROTOBUF_FIXED64 = 1,
        PROTOBUF_BYTES = 2,
        PROTOBUF_FIXED32 = 5
} ProtobufWire;

typedef struct ProtobufCursor {
        const unsigned char *p, *end; /* what is left */
        const char *message;          /* after -EBADMSG: what is wrong at p; static */
} ProtobufCursor;

typedef struct ProtobufValue {
        uint32_t number;
        ProtobufWire wire;
        uint64_t varint;           /* PROTOBUF_VARINT */
        const unsigned char *data; /* PROTOBUF_BYTES: borrowed */
        size_t size;
} ProtobufValue;

/* 1: a field; 0: that was all; -EBADMSG. */
int protobuf_next(ProtobufCursor *c, ProtobufValue *ret);
