/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-controllers.h"

/*
 * pkg/controller/volume/attachdetach and the external attacher, for claims that one node may have at a time:
 * a VolumeAttachment for each node and claim with a pod that needs it; deleted when no such pod is left
 * there, gone a while later. Keys are "node/claim".
 */

#define DETACH_DEFAULT_USEC (2 * USEC_PER_SEC)
#define RETRY_USEC (500 * USEC_PER_MSEC)
#define FINALIZER "external-attacher/ebs-csi-aws-com"

static const char *claim_of(const cJSON *volume) {
        return fj_string(volume, "persistentVolumeClaim", "claimName", NULL);
}

static char *attachment_name(const char *node, const char *claim) {
        return MUST(strf("va-%s-%s", node, claim));
}

static void mark(FakeQueue *q, const cJSON *pod) {
        const char *node = fj_string(pod, "spec", "nodeName", NULL);
        const cJSON *v;

        if (isempty(node))
                return;
        cJSON_ArrayForEach (v, fj_get(pod, "spec", "volumes", NULL))
                if (claim_of(v)) {
                        _cleanup_free_ char *key = MUST(strf("%s/%s", node, claim_of(v)));

                        fake_queue_add(q, key);
                }
}

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        if (change->resource->id == FAKE_PODS)
                mark(q, fake_change_object(change));
}

static void resync(FakeCluster *c, FakeQueue *q) {
        const cJSON *pod, *va;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, NULL)
                mark(q, pod);
        FAKE_STORE_FOREACH (va, c->store, FAKE_VOLUMEATTACHMENTS, NULL) {
                _cleanup_free_ char *key = MUST(strf("%s/%s", strempty(fj_string(va, "spec", "nodeName", NULL)),
                                                     strempty(fj_string(va, "spec", "source", "persistentVolumeName", NULL))));

                fake_queue_add(q, key);
        }
}

static bool is_needed(FakeCluster *c, const char *node, const char *claim) {
        const cJSON *pod, *v;

        FAKE_STORE_FOREACH_NODE_POD (pod, c->store, node) {
                if (fake_pod_is_terminal(pod))
                        continue;
                cJSON_ArrayForEach (v, fj_get(pod, "spec", "volumes", NULL))
                        if (streq_ptr(claim_of(v), claim))
                                return true;
        }
        return false;
}

static bool is_elsewhere(FakeCluster *c, const char *node, const char *claim) {
        const cJSON *va;

        FAKE_STORE_FOREACH (va, c->store, FAKE_VOLUMEATTACHMENTS, NULL)
                if (streq_ptr(fj_string(va, "spec", "source", "persistentVolumeName", NULL), claim) &&
                    !streq_ptr(fj_string(va, "spec", "nodeName", NULL), node))
                        return true;
        return false;
}

static void attach(FakeCluster *c, const char *name, const char *node, const char *claim) {
        fake_put(c, FAKE_VOLUMEATTACHMENTS,
                 fj_parse("{'metadata':{'name':'%s','finalizers':['" FINALIZER "']},"
                          "'spec':{'attacher':'ebs.csi.aws.com','nodeName':'%s',"
                          "'source':{'persistentVolumeName':'%s'}},'status':{'attached':true}}",
                          name, node, claim));
}

/* When what is to be detached is; whatever comes meanwhile has to wait for that. */
static usec_t detached_usec(FakeCluster *c, const cJSON *va) {
        usec_t usec = c->options.detach_usec > 0 ? c->options.detach_usec : DETACH_DEFAULT_USEC, at = 0;

        (void) rfc3339_parse(strempty(fj_string(va, "metadata", "deletionTimestamp", NULL)), &at);
        return at + usec;
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_free_ char *node = NULL, *claim = NULL, *name = NULL;
        usec_t now = loop_wall(c->loop);
        const cJSON *va;
        bool needed;

        fake_key_split(key, &node, &claim);
        name = attachment_name(node, claim);
        va = fake_store_get(c->store, FAKE_VOLUMEATTACHMENTS, NULL, name);
        needed = is_needed(c, node, claim);
        if (!va && needed && is_elsewhere(c, node, claim))
                fake_queue_add_in(q, key, RETRY_USEC);
        else if (!va && needed)
                attach(c, name, node, claim);
        else if (va && fj_get(va, "metadata", "deletionTimestamp", NULL) && now >= detached_usec(c, va)) {
                fake_remove(c, FAKE_VOLUMEATTACHMENTS, NULL, name);
                fake_queue_add(q, key);
        } else if (va && fj_get(va, "metadata", "deletionTimestamp", NULL))
                fake_queue_add_in(q, key, detached_usec(c, va) - now);
        else if (va && !needed) {
                fake_delete(c, FAKE_VOLUMEATTACHMENTS, NULL, name, -1);
                fake_queue_add(q, key);
        }
}

bool fake_volumes_attached(FakeCluster *c, const cJSON *pod) {
        const char *node = strempty(fj_string(pod, "spec", "nodeName", NULL));
        const cJSON *v;

        cJSON_ArrayForEach (v, fj_get(pod, "spec", "volumes", NULL)) {
                _cleanup_free_ char *name = claim_of(v) ? attachment_name(node, claim_of(v)) : NULL;
                const cJSON *va = name ? fake_store_get(c->store, FAKE_VOLUMEATTACHMENTS, NULL, name) : NULL;

                if (name && (!va || fj_get(va, "metadata", "deletionTimestamp", NULL)))
                        return false;
        }
        return true;
}

const FakeController fake_volume_controller = { "fake-volume", observe, sync, resync };
