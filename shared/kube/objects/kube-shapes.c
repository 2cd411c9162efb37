/* SPDX-License-Identifier: Apache-2.0 */
/* Of kube-field-list.h what decoders look at, three times: as of every object, as of a node's own pods, and as kube-scheduler
 * looks at them. */
#include "kube-protobuf.h"

#define TEXT PROTOBUF_STRING
#define TEXT_KEPT PROTOBUF_STRING_KEPT
#define TEXT_POINTER PROTOBUF_STRING_KEPT
#define TEXTS PROTOBUF_STRING, true
#define TEXT_MAP PROTOBUF_MAP
#define QUANTITY_MAP PROTOBUF_QUANTITY_MAP
#define NUMBER PROTOBUF_INT
#define NUMBER_POINTER PROTOBUF_INT
#define FLAG PROTOBUF_BOOL
#define FLAG_POINTER PROTOBUF_BOOL
#define TIME PROTOBUF_TIME
#define TIME_POINTER PROTOBUF_TIME
#define MESSAGE_OF(message) PROTOBUF_MESSAGE, false, &SHAPE_OF(message)
#define MESSAGE_POINTER(message) PROTOBUF_MESSAGE, false, &SHAPE_OF(message)
#define MESSAGES(message) PROTOBUF_MESSAGE, true, &SHAPE_OF(message)
#define INLINE(message) PROTOBUF_INLINE, false, &SHAPE_OF(message)

/* clang-format off */
/* A table ends with a row that does not count, for C has no empty arrays. */
#define MESSAGE(message) static const ProtobufField FIELDS_OF(message)[] = {
#define READ(number, name, ...) { (number), (name), __VA_ARGS__ },
#define SENT(number, name, ...)
#define UNSEEN(number, name, reason, ...)
#define END(message) { 0 } }; \
        __attribute__((unused)) static const ProtobufShape SHAPE_OF(message) = SHAPE(message);
#define SHAPE(message) { .fields = FIELDS_OF(message), .n_fields = ELEMENTSOF(FIELDS_OF(message)) - 1 }
/* clang-format on */

/* Messages that no shape leads to are the tests' alone, and left out by the compiler. */
#define FIELDS_OF(message) message##_fields
#define SHAPE_OF(message) message##_shape
#define READ_OWN(number, name, ...)
#define READ_SCHEDULED(number, name, ...)
#define READ_BESIDES(number, name, ...)
#include "kube-field-list.h"

const ProtobufShape kube_shape_meta = SHAPE(ObjectMeta);
const ProtobufShape kube_shape_list_meta = SHAPE(ListMeta);
const ProtobufShape kube_shape_status = SHAPE(Status);
const ProtobufShape kube_shape_node = SHAPE(Node);
const ProtobufShape kube_shape_pod = SHAPE(Pod);
const ProtobufShape kube_shape_pdb = SHAPE(PodDisruptionBudget);
const ProtobufShape kube_shape_volume_attachment = SHAPE(VolumeAttachment);
const ProtobufShape kube_shape_namespace = SHAPE(Namespace);

#undef FIELDS_OF
#undef SHAPE_OF
#undef READ_OWN
#undef READ_BESIDES
#define FIELDS_OF(message) own_##message##_fields
#define SHAPE_OF(message) own_##message##_shape
#define READ_OWN READ
#define READ_BESIDES READ
#include "kube-field-list.h"

const ProtobufShape kube_shape_own_pod = SHAPE(Pod);

#undef FIELDS_OF
#undef SHAPE_OF
#undef READ_OWN
#undef READ_SCHEDULED
#define FIELDS_OF(message) scheduled_##message##_fields
#define SHAPE_OF(message) scheduled_##message##_shape
#define READ_OWN(number, name, ...)
#define READ_SCHEDULED READ
#include "kube-field-list.h"

const ProtobufShape kube_shape_scheduled_pod = SHAPE(Pod);
const ProtobufShape kube_shape_scheduled_node = SHAPE(Node);
const ProtobufShape kube_shape_volume = SHAPE(PersistentVolume);
const ProtobufShape kube_shape_scheduled_claim = SHAPE(PersistentVolumeClaim);
const ProtobufShape kube_shape_storage_class = SHAPE(StorageClass);
const ProtobufShape kube_shape_csi_node = SHAPE(CSINode);
const ProtobufShape kube_shape_affinity = SHAPE(Affinity);
const ProtobufShape kube_shape_toleration = SHAPE(Toleration);
const ProtobufShape kube_shape_spread = SHAPE(TopologySpreadConstraint);
const ProtobufShape kube_shape_node_selector = SHAPE(NodeSelector);
const ProtobufShape kube_shape_topology_term = SHAPE(TopologySelectorTerm);
