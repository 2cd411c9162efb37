/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What of generated.proto (k8s.io/api v0.34) the fake can write; fake-protobuf.h. */

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
        const char *name;
        FakeFieldType type;
        FakeFieldUse use;
        const struct FakeField *of; /* of messages */
} FakeField;

extern const FakeField fake_fields_meta[], fake_fields_list_meta[], fake_fields_status[];
/* NULL: no table. */
const FakeField *fake_fields_of(FakeResourceId id);
