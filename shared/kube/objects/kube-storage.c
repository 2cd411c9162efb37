/* SPDX-License-Identifier: Apache-2.0 */
/* Of storage, what decides where the pods that use it may run. */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "kube-scheduling.h"
#include "string-util.h"

/* An empty one is none. */
static void decode_storage_class(Decoder *d, const Json *v, const char **ret) {
        decode_interned(d, v, "spec.storageClassName", ret);
        if (*ret && **ret == 0) {
                intern_unref(d->pool, *ret);
                *ret = NULL;
        }
}

static bool says(Decoder *d, const Json *v, const char *path, const char *wanted) {
        _cleanup_free_ char *s = NULL;

        decode_string(d, v, path, &s);
        return streq_ptr(s, wanted);
}

/* -- PersistentVolume ----------------------------------------------------------------------------------- */

static int volume_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec"), *csi = json_get(spec, "csi");
        KubeVolume *v = (KubeVolume *) o;

        decode_storage_class(&d, json_get(spec, "storageClassName"), &v->storage_class);
        decode_copy_text(&d, json_path(spec, "nodeAffinity", "required", NULL), "spec.nodeAffinity.required",
                         &kube_shape_node_selector, false, &v->node_affinity);
        decode_string(&d, json_get(csi, "driver"), "spec.csi.driver", &v->csi_driver);
        decode_string(&d, json_get(csi, "volumeHandle"), "spec.csi.volumeHandle", &v->csi_handle);
        return decoder_finish(&d);
}

static void volume_done(KubeObject *o, InternPool *pool) {
        KubeVolume *v = (KubeVolume *) o;

        intern_unref(pool, v->storage_class);
        free(v->node_affinity);
        free(v->csi_driver);
        free(v->csi_handle);
}

static const JsonOmit unread[] = { { "metadata", "managedFields" } };

const KubeKind kube_volume_kind = {
        .group = "",
        .version = "v1",
        .plural = "persistentvolumes",
        .kind = "PersistentVolume",
        .size = sizeof(KubeVolume),
        .decode = volume_decode,
        .done = volume_done,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_volume,
};

/* -- PersistentVolumeClaim ------------------------------------------------------------------------------ */

static int scheduled_claim_decode(KubeObject *o, const Json *json, InternPool *pool) {
        KubeScheduledClaim *c = (KubeScheduledClaim *) o;
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec"), *modes;
        int r;

        r = kube_pvc_decode(o, json, pool);
        if (r == -ENOMEM)
                return r;
        decode_storage_class(&d, json_get(spec, "storageClassName"), &c->storage_class);
        modes = decode_array(&d, json_get(spec, "accessModes"), "spec.accessModes");
        JSON_FOREACH (i, modes)
                c->one_pod_only |= says(&d, i, "spec.accessModes", "ReadWriteOncePod");
        return decoder_finish(&d);
}

static void scheduled_claim_done(KubeObject *o, InternPool *pool) {
        intern_unref(pool, ((KubeScheduledClaim *) o)->storage_class);
        kube_pvc_done(o, pool);
}

const KubeKind kube_scheduled_claim_kind = {
        .group = "",
        .version = "v1",
        .plural = "persistentvolumeclaims",
        .kind = "PersistentVolumeClaim",
        .namespaced = true,
        .size = sizeof(KubeScheduledClaim),
        .decode = scheduled_claim_decode,
        .done = scheduled_claim_done,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_scheduled_claim,
};

/* -- StorageClass --------------------------------------------------------------------------------------- */

static int storage_class_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        KubeStorageClass *c = (KubeStorageClass *) o;

        decode_interned(&d, json_get(json, "provisioner"), "provisioner", &c->provisioner);
        c->waits_for_consumer =
                says(&d, json_get(json, "volumeBindingMode"), "volumeBindingMode", "WaitForFirstConsumer");
        decode_copy_text(&d, json_get(json, "allowedTopologies"), "allowedTopologies", &kube_shape_topology_term, true,
                         &c->allowed_topologies);
        return decoder_finish(&d);
}

static void storage_class_done(KubeObject *o, InternPool *pool) {
        KubeStorageClass *c = (KubeStorageClass *) o;

        intern_unref(pool, c->provisioner);
        free(c->allowed_topologies);
}

const KubeKind kube_storage_class_kind = {
        .group = "storage.k8s.io",
        .version = "v1",
        .plural = "storageclasses",
        .kind = "StorageClass",
        .size = sizeof(KubeStorageClass),
        .decode = storage_class_decode,
        .done = storage_class_done,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_storage_class,
};

/* -- CSINode -------------------------------------------------------------------------------------------- */

static void decode_driver(Decoder *d, const Json *v, CsiDriverLimit *ret) {
        ret->volumes = -1;
        decode_interned(d, json_get(v, "name"), "spec.drivers.name", &ret->driver);
        decode_int64(d, json_path(v, "allocatable", "count", NULL), "spec.drivers.allocatable.count", &ret->volumes);
        if (!ret->driver && !d->failed)
                decoder_invalid(d, "a driver in spec.drivers has no name");
}

static int csi_node_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *list = decode_array(&d, json_path(json, "spec", "drivers", NULL), "spec.drivers");
        KubeCsiNode *n = (KubeCsiNode *) o;

        n->drivers = decode_room(&d, list, "spec.drivers", DECODE_LIST_MAX, sizeof(CsiDriverLimit));
        JSON_FOREACH (i, n->drivers ? list : NULL)
                decode_driver(&d, i, n->drivers + n->n_drivers++);
        return decoder_finish(&d);
}

static void csi_node_done(KubeObject *o, InternPool *pool) {
        KubeCsiNode *n = (KubeCsiNode *) o;

        for (size_t i = 0; i < n->n_drivers; i++)
                intern_unref(pool, n->drivers[i].driver);
        free(n->drivers);
}

const KubeKind kube_csi_node_kind = {
        .group = "storage.k8s.io",
        .version = "v1",
        .plural = "csinodes",
        .kind = "CSINode",
        .size = sizeof(KubeCsiNode),
        .decode = csi_node_decode,
        .done = csi_node_done,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_csi_node,
};
