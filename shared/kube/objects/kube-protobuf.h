/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the API server's protobuf is wrapped in (apimachinery: pkg/runtime/serializer/protobuf, and the
 * generated.proto of pkg/runtime and pkg/apis/meta/v1). Private to kube/.
 *
 *      an object, a list, a Status    "k8s\0", then runtime.Unknown {typeMeta, raw};
 *                                     raw is the message
 *      an event of a watch            metav1.WatchEvent {type, object {raw}}, without
 *                                     the four bytes; raw is the above
 *
 * All of them come out as the JSON that the API server would have written, without what their shape does not
 * name.
 */

#include "json-protobuf.h"
#include "kube-object.h"

/* Of the kinds it has protobuf for, an API server answers in the first type of these that it speaks. */
#define KUBE_ACCEPT_PROTOBUF "application/vnd.kubernetes.protobuf, application/json"

/* Says a Content-Type so (";stream=watch" may follow)? NULL: no. */
bool kube_type_is_protobuf(const char *content_type);
/* Begins it with the four bytes? No JSON and no text does. */
bool kube_body_is_protobuf(const void *body, size_t size);

/* What decoders look at, of kube-field-list.h. The kinds have theirs in KubeKind.shape. */
extern const ProtobufShape kube_shape_meta, kube_shape_list_meta, kube_shape_status;
extern const ProtobufShape kube_shape_node, kube_shape_pod, kube_shape_own_pod, kube_shape_pdb,
        kube_shape_volume_attachment, kube_shape_namespace;
/* As kube-scheduler looks at them; the last five are parts of these. */
extern const ProtobufShape kube_shape_scheduled_pod, kube_shape_scheduled_node, kube_shape_volume,
        kube_shape_scheduled_claim, kube_shape_storage_class, kube_shape_csi_node;
extern const ProtobufShape kube_shape_affinity, kube_shape_toleration, kube_shape_spread,
        kube_shape_node_selector, kube_shape_topology_term;

/* "k8s\0" and what follows, with apiVersion and kind. -EBADMSG, -E2BIG, -ENOMEM. */
int kube_protobuf_object(const void *data, size_t size, size_t max_bytes, const ProtobufShape *shape,
                         JsonDoc **ret, JsonError *reterr);
/* One event; *ret_type is static, "" for one of a later API. The object of an ERROR is a Status, and of
 * one that is DELETED there is its metadata. */
int kube_protobuf_event(const void *data, size_t size, const ProtobufShape *shape, const char **ret_type,
                        JsonDoc **ret);
/* As json_split_items(), for a list of that kind: an item is the message of one object, without an envelope.
 * The items are looked at one by one as on_item is called; all else is checked before. */
int kube_protobuf_split_items(const void *data, size_t size, size_t max_bytes, const KubeKind *kind,
                              json_item_t on_item, void *userdata, JsonDoc **ret_rest, JsonError *reterr);
