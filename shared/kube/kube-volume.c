/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"
#include "kube-decode.h"

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

const KubeKind kube_volume_attachment_kind = {
        .group = "storage.k8s.io",
        .version = "v1",
        .plural = "volumeattachments",
        .kind = "VolumeAttachment",
        .size = sizeof(KubeVolumeAttachment),
        .decode = volume_attachment_decode,
        .done = volume_attachment_done,
};
