/* SPDX-License-Identifier: Apache-2.0 */
#include "alloc-util.h"
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "string-util.h"

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
        .shape = &kube_shape_volume_attachment,
};

/* -- claims --------------------------------------------------------------------------------------------- */

int kube_pvc_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        KubePersistentVolumeClaim *c = (KubePersistentVolumeClaim *) o;

        decode_string(&d, json_path(json, "spec", "volumeName", NULL), "spec.volumeName", &c->volume_name);
        return decoder_finish(&d);
}

void kube_pvc_done(KubeObject *o, InternPool *pool) {
        free(((KubePersistentVolumeClaim *) o)->volume_name);
}

/* Read one by one, as JSON. */
const KubeKind kube_pvc_kind = {
        .group = "",
        .version = "v1",
        .plural = "persistentvolumeclaims",
        .kind = "PersistentVolumeClaim",
        .namespaced = true,
        .size = sizeof(KubePersistentVolumeClaim),
        .decode = kube_pvc_decode,
        .done = kube_pvc_done,
};

/* 1: *ret is the claim of this volume; 0: it has none. */
static int volume_claim(const Json *volume, const char *pod, PodClaim *ret) {
        const char *name = json_string_or_null(json_get(volume, "name"));
        const Json *source = json_get(volume, "persistentVolumeClaim");

        *ret = (PodClaim){};
        if (json_is_object(source)) {
                const char *claim = json_string_or_null(json_get(source, "claimName"));

                if (isempty(claim))
                        return -EINVAL;
                ret->name = strdup(claim);
        } else if (json_is_object(json_get(volume, "ephemeral"))) {
                if (isempty(name) || isempty(pod))
                        return -EINVAL;
                ret->name = strf("%s-%s", pod, name);
                ret->ephemeral = true;
        } else
                return json_is_object(volume) ? 0 : -EINVAL;
        return ret->name ? 1 : -ENOMEM;
}

int pod_claims_decode(const Json *pod, PodClaim **ret, size_t *ret_n) {
        const char *name = json_string_or_null(json_path(pod, "metadata", "name", NULL));
        const Json *volumes = json_path(pod, "spec", "volumes", NULL);
        PodClaim *claims;
        size_t n = 0;

        assert(ret && ret_n);
        *ret = NULL;
        *ret_n = 0;
        if (!volumes || json_is_null(volumes))
                return 0;
        if (!json_is_array(volumes))
                return -EINVAL;
        claims = new0(PodClaim, MIN(json_size(volumes), (size_t) DECODE_LIST_MAX) + 1);
        if (!claims)
                return -ENOMEM;
        JSON_FOREACH (v, volumes) {
                int r = n > DECODE_LIST_MAX ? -E2BIG : volume_claim(v, name, claims + n);

                if (r < 0) {
                        pod_claims_free(claims, n);
                        return r;
                }
                n += (size_t) r;
        }
        *ret = claims;
        *ret_n = n;
        return 0;
}

void pod_claims_free(PodClaim *claims, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(claims[i].name);
        free(claims);
}
