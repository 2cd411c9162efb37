/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "kube-scheduling.h"
#include "kubelet-labels.h"
#include "string-util.h"

/* Until they are gone the kubelet, its network or its cloud has not said all there is to say. */
static const char *const startup_taints[] = {
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/network-unavailable",
};

static bool is_initialized(const KubeNode *n) {
        for (size_t i = 0; i < ELEMENTSOF(startup_taints); i++)
                if (kube_node_has_taint(n, startup_taints[i], NULL))
                        return false;
        return kube_node_is_ready(n);
}

static int scheduled_node_decode(KubeObject *o, const Json *json, InternPool *pool) {
        KubeScheduledNode *n = (KubeScheduledNode *) o;
        Decoder d = { .object = o, .pool = pool };
        const Json *info;
        int r;

        r = kube_node_decode(o, json, pool);
        if (r == -ENOMEM)
                return r;
        decode_key_values(&d, json_path(json, "status", "allocatable", NULL), "status.allocatable", true, NULL,
                          &n->allocatable);
        n->is_initialized = is_initialized(&n->node);
        info = json_path(json, "status", "nodeInfo", NULL);
        decode_interned(&d, json_get(info, "kubeletVersion"), "status.nodeInfo.kubeletVersion", &n->kubelet_version);
        decode_interned(&d, json_get(info, "osImage"), "status.nodeInfo.osImage", &n->os_image);
        return decoder_finish(&d);
}

static void scheduled_node_done(KubeObject *o, InternPool *pool) {
        KubeScheduledNode *n = (KubeScheduledNode *) o;

        key_values_done(&n->allocatable, pool);
        intern_unref(pool, n->kubelet_version);
        intern_unref(pool, n->os_image);
        kube_node_done(o, pool);
}

static const JsonOmit unread[] = { { "metadata", "managedFields" }, { "status", "images" } };

const KubeKind kube_scheduled_node_kind = {
        .group = "",
        .version = "v1",
        .plural = "nodes",
        .kind = "Node",
        .size = sizeof(KubeScheduledNode),
        .decode = scheduled_node_decode,
        .done = scheduled_node_done,
        .annotation_wanted = kube_node_annotation_wanted,
        .label_kept = label_key_is_protected_from_kubelets,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_scheduled_node,
};
