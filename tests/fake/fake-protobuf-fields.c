/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-protobuf-fields.h"

#define TEXT FAKE_FIELD_TEXT, FAKE_FIELD_PLAIN
#define TEXT_KEPT TEXT
#define TEXT_POINTER FAKE_FIELD_TEXT, FAKE_FIELD_POINTER
#define TEXTS FAKE_FIELD_TEXT, FAKE_FIELD_LIST
#define TEXT_MAP FAKE_FIELD_TEXT, FAKE_FIELD_MAP
#define NUMBER FAKE_FIELD_NUMBER, FAKE_FIELD_PLAIN
#define NUMBER_POINTER FAKE_FIELD_NUMBER, FAKE_FIELD_POINTER
#define FLAG FAKE_FIELD_FLAG, FAKE_FIELD_PLAIN
#define FLAG_POINTER FAKE_FIELD_FLAG, FAKE_FIELD_POINTER
#define TIME FAKE_FIELD_TIME, FAKE_FIELD_PLAIN
#define TIME_POINTER FAKE_FIELD_TIME, FAKE_FIELD_POINTER
#define TIME_MAP FAKE_FIELD_TIME, FAKE_FIELD_MAP
#define QUANTITY_POINTER FAKE_FIELD_QUANTITY, FAKE_FIELD_POINTER
#define QUANTITY_MAP FAKE_FIELD_QUANTITY, FAKE_FIELD_MAP
#define NUMBER_OR_TEXT FAKE_FIELD_NUMBER_OR_TEXT, FAKE_FIELD_POINTER
#define RAW FAKE_FIELD_RAW, FAKE_FIELD_POINTER
#define MESSAGE_OF(message) FAKE_FIELD_MESSAGE, FAKE_FIELD_PLAIN, message##_fields
#define MESSAGE_POINTER(message) FAKE_FIELD_MESSAGE, FAKE_FIELD_POINTER, message##_fields
#define MESSAGES(message) FAKE_FIELD_MESSAGE, FAKE_FIELD_LIST, message##_fields
#define INLINE(message) FAKE_FIELD_INLINE, FAKE_FIELD_PLAIN, message##_fields

/* clang-format off */
#define MESSAGE(message) static const FakeField message##_fields[] = {
#define SENT(number, name, ...) { (number), (name), NULL, __VA_ARGS__ },
#define READ SENT
#define READ_OWN SENT
#define READ_SCHEDULED SENT
#define READ_BESIDES SENT
#define UNSEEN(number, name, reason, ...) { (number), (name), (reason), __VA_ARGS__ },
#define END(message) { 0 } };
/* clang-format on */
#include "kube-field-list.h"

const FakeField *const fake_fields_meta = ObjectMeta_fields;
const FakeField *const fake_fields_list_meta = ListMeta_fields;
const FakeField *const fake_fields_status = Status_fields;

const FakeField *fake_fields_of(FakeResourceId id) {
        static const FakeField *const tables[_FAKE_RESOURCE_MAX] = {
                [FAKE_NODES] = Node_fields,
                [FAKE_PODS] = Pod_fields,
                [FAKE_PDBS] = PodDisruptionBudget_fields,
                [FAKE_VOLUMEATTACHMENTS] = VolumeAttachment_fields,
                [FAKE_NAMESPACES] = Namespace_fields,
                [FAKE_PVS] = PersistentVolume_fields,
                [FAKE_PVCS] = PersistentVolumeClaim_fields,
                [FAKE_STORAGECLASSES] = StorageClass_fields,
                [FAKE_CSINODES] = CSINode_fields,
        };

        return tables[id];
}
