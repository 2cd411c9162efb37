/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"
#include "kube-decode.h"
#include "kube-protobuf.h"

static int volume_attachment_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec");
        KubeVolumeAttachment *v = (KubeVolumeAttachment *) o;

        decode_interned(&d, json_get(spec, "nodeName"), "spec.nodeName", &v->node_name);
        decode_string(&d, json_path(spec, "source", "persistentVolumeName", NULL),
                      "spec.source.persistentVolumeName", &v->pv_name);
        decode_bool(&d, json_path(json, "status", "attached", NULL), "status.attached", &v->attached);
        return decoder_finish(&d);
}

static void volume_attachment_done(KubeObject *o, InternPool *pool) {
        KubeVolumeAttachment *v = (KubeVolumeAttachment *) o;

        intern_unref(pool, v->node_name);
        free(v->pv_name);
}

/* k8s.io/api: storage/v1/generated.proto */
static const ProtobufField source_fields[] = { { 1, "persistentVolumeName", PROTOBUF_STRING_KEPT } };
static const ProtobufShape source_shape = PROTOBUF_SHAPE(source_fields);

static const ProtobufField spec_fields[] = {
        { 2, "source", PROTOBUF_MESSAGE, false, &source_shape },
        { 3, "nodeName", PROTOBUF_STRING_KEPT },
};
static const ProtobufShape spec_shape = PROTOBUF_SHAPE(spec_fields);

static const ProtobufField status_fields[] = { { 1, "attached", PROTOBUF_BOOL } };
static const ProtobufShape status_shape = PROTOBUF_SHAPE(status_fields);

static const ProtobufField attachment_fields[] = {
        { 1, "metadata", PROTOBUF_MESSAGE, false, &kube_shape_meta },
        { 2, "spec", PROTOBUF_MESSAGE, false, &spec_shape },
        { 3, "status", PROTOBUF_MESSAGE, false, &status_shape },
};
static const ProtobufShape attachment_shape = PROTOBUF_SHAPE(attachment_fields);

const KubeKind kube_volume_attachment_kind = {
        .group = "storage.k8s.io",
        .version = "v1",
        .plural = "volumeattachments",
        .kind = "VolumeAttachment",
        .size = sizeof(KubeVolumeAttachment),
        .decode = volume_attachment_decode,
        .done = volume_attachment_done,
        .shape = &attachment_shape,
};
