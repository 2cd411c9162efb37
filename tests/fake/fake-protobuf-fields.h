/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which fields the fake writes (fake-protobuf.h): all of kube-field-list.h, in whose order they are. */

#include "fake-resource.h"

#include <stdint.h>

typedef enum FakeFieldType {
        FAKE_FIELD_TEXT,
        FAKE_FIELD_NUMBER,
        FAKE_FIELD_FLAG,
        FAKE_FIELD_MESSAGE,
        FAKE_FIELD_INLINE,         /* a message whose members stand in the outer object */
        FAKE_FIELD_TIME,           /* metav1.Time */
        FAKE_FIELD_QUANTITY,       /* resource.Quantity */
        FAKE_FIELD_NUMBER_OR_TEXT, /* intstr.IntOrString */
        FAKE_FIELD_RAW,            /* metav1.FieldsV1: JSON as text */
} FakeFieldType;

typedef enum FakeFieldUse {
        FAKE_FIELD_PLAIN,   /* written also when it is absent: no pointer in Go */
        FAKE_FIELD_POINTER, /* when it is there */
        FAKE_FIELD_LIST,
        FAKE_FIELD_MAP, /* with texts as keys */
} FakeFieldUse;

typedef struct FakeField {
        uint32_t number; /* ascending; 0: behind the last */
        const char *name;   /* NULL: FAKE_FIELD_INLINE */
        const char *unseen; /* why no real API server can be made to send it; NULL: it can */
        FakeFieldType type;
        FakeFieldUse use;
        const struct FakeField *of; /* of messages */
} FakeField;

extern const FakeField *const fake_fields_meta, *const fake_fields_list_meta, *const fake_fields_status;
/* NULL: no table. */
const FakeField *fake_fields_of(FakeResourceId id);
