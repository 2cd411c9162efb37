/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "marks.h"
#include "string-util.h"

#define DEFAULT_GRACE_SEC 30 /* corev1.DefaultTerminationGracePeriodSeconds */
/* Of pods of which a controller of another kind than DaemonSet runs one on each node; the Cluster Autoscaler reads it, too. */
#define ANNOTATION_DAEMON_POD "cluster-autoscaler.kubernetes.io/daemonset-pod"

static const char *const annotations_wanted[] = {
        "vesper.sh/do-not-evict",
        "karpenter.sh/do-not-evict",
        "karpenter.sh/do-not-disrupt",
        "cluster-autoscaler.kubernetes.io/safe-to-evict",
        ANNOTATION_MIRROR,
        ANNOTATION_DAEMON_POD,
};

static const char *const phase_table[] = {
        [POD_PENDING] = "Pending", [POD_RUNNING] = "Running",       [POD_SUCCEEDED] = "Succeeded",
        [POD_FAILED] = "Failed",   [POD_PHASE_UNKNOWN] = "Unknown",
};

static void decode_phase(Decoder *d, const Json *v, PodPhase *ret) {
        _cleanup_free_ char *s = NULL;

        decode_string(d, v, "status.phase", &s);
        for (size_t i = 0; s && i < ELEMENTSOF(phase_table); i++)
                if (streq(s, phase_table[i]))
                        *ret = (PodPhase) i;
}

static bool condition_is_ready(const Json *c) {
        return streq_ptr(json_string_or_null(json_get(c, "type")), "Ready") &&
               streq_ptr(json_string_or_null(json_get(c, "status")), "True");
}

static void decode_ready(Decoder *d, const Json *v, bool *ret) {
        const Json *list = decode_array(d, v, "status.conditions");

        JSON_FOREACH (c, list)
                if (condition_is_ready(c))
                        *ret = true;
}

/* corev1.Toleration.ToleratesTaint() for a taint KEY:NoSchedule without a value. */
static bool tolerates(const Json *t, const char *taint_key) {
        const char *key = strempty(json_string_or_null(json_get(t, "key")));
        const char *effect = strempty(json_string_or_null(json_get(t, "effect")));
        const char *op = strempty(json_string_or_null(json_get(t, "operator")));
        const char *value = strempty(json_string_or_null(json_get(t, "value")));

        if (!json_is_object(t) || (*effect && !streq(effect, "NoSchedule")) ||
            (*key && !streq(key, taint_key)))
                return false;
        if (streq(op, "Exists"))
                return true;
        return *key && (*op == 0 || streq(op, "Equal")) && *value == 0;
}

static void decode_tolerations(Decoder *d, const Json *v, KubePod *p) {
        const Json *list = decode_array(d, v, "spec.tolerations");

        JSON_FOREACH (t, list) {
                p->tolerates_unschedulable |= tolerates(t, TAINT_UNSCHEDULABLE);
                p->tolerates_disrupted |= tolerates(t, TAINT_DISRUPTED);
        }
}

static bool has_owner_node(const ObjectMeta *m) {
        for (size_t i = 0; i < m->n_owners; i++)
                if (streq_ptr(m->owners[i].kind, "Node") && streq_ptr(m->owners[i].api_version, "v1"))
                        return true;
        return false;
}

static bool owned_by_daemon_set(const ObjectMeta *m) {
        const OwnerRef *o = object_meta_controller(m);

        return o && streq_ptr(o->kind, "DaemonSet");
}

/* Nothing of these is left to write back or to take down when the containers have ended. */
static bool volume_is_passing(const Json *volume) {
        static const char *const sources[] = { "configMap", "downwardAPI", "emptyDir", "hostPath",
                                               "image",     "projected",   "secret" };

        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                if (json_is_object(json_get(volume, sources[i])))
                        return true;
        return false;
}

static bool needs_kubelet(const Json *spec) {
        const char *restart = json_string_or_null(json_get(spec, "restartPolicy"));
        const Json *volumes = json_get(spec, "volumes");

        if (!streq_ptr(restart, "Always") || json_get(spec, "resourceClaims"))
                return true;
        JSON_FOREACH (v, volumes)
                if (!volume_is_passing(v))
                        return true;
        return false;
}

int kube_pod_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec"), *status = json_get(json, "status");
        KubePod *p = (KubePod *) o;

        p->grace_sec = DEFAULT_GRACE_SEC;
        p->phase = POD_PHASE_UNKNOWN;
        decode_interned(&d, json_get(spec, "nodeName"), "spec.nodeName", &p->node_name);
        if (p->node_name && *p->node_name == 0) {
                intern_unref(pool, p->node_name);
                p->node_name = NULL;
        }
        decode_interned(&d, json_get(spec, "priorityClassName"), "spec.priorityClassName",
                        &p->priority_class);
        decode_int64(&d, json_get(spec, "priority"), "spec.priority", &p->priority);
        decode_int64(&d, json_get(spec, "terminationGracePeriodSeconds"),
                     "spec.terminationGracePeriodSeconds", &p->grace_sec);
        p->grace_sec = p->grace_sec < 0 ? 1 : p->grace_sec; /* as the API server reads a negative one */
        decode_tolerations(&d, json_get(spec, "tolerations"), p);
        decode_phase(&d, json_get(status, "phase"), &p->phase);
        decode_ready(&d, json_get(status, "conditions"), &p->ready);
        decode_time(&d, json_get(status, "startTime"), "status.startTime", &p->start_usec);

        p->is_static = object_meta_annotation(&o->meta, ANNOTATION_MIRROR) || has_owner_node(&o->meta);
        p->is_daemon = owned_by_daemon_set(&o->meta) || streq_ptr(object_meta_annotation(&o->meta, ANNOTATION_DAEMON_POD), "true");
        p->needs_kubelet = o->kind != &kube_own_pod_kind || needs_kubelet(spec);
        return decoder_finish(&d);
}

void kube_pod_done(KubeObject *o, InternPool *pool) {
        KubePod *p = (KubePod *) o;

        intern_unref(pool, p->node_name);
        intern_unref(pool, p->priority_class);
        intern_unref(pool, p->pdb_name);
}

bool kube_pod_says_same(const KubePod *a, const KubePod *b) {
        return kube_object_says_same(&a->object, &b->object) && a->node_name == b->node_name &&
               a->priority_class == b->priority_class && a->priority == b->priority &&
               a->grace_sec == b->grace_sec && a->phase == b->phase && a->ready == b->ready &&
               a->is_static == b->is_static && a->is_daemon == b->is_daemon &&
               a->tolerates_unschedulable == b->tolerates_unschedulable &&
               a->tolerates_disrupted == b->tolerates_disrupted && a->start_usec == b->start_usec &&
               a->needs_kubelet == b->needs_kubelet && scheduled_pod_says_same(a, b);
}

bool kube_pod_annotation_wanted(const char *key) {
        for (size_t i = 0; i < ELEMENTSOF(annotations_wanted); i++)
                if (streq(key, annotations_wanted[i]))
                        return true;
        return false;
}

#define UNREAD \
        { "metadata", "managedFields" }, { "spec", "containers" }, { "spec", "initContainers" }, \
                { "spec", "affinity" }, { "status", "containerStatuses" }, { \
                "status", "initContainerStatuses" \
        }

static const JsonOmit unread[] = { { "spec", "volumes" }, UNREAD };
static const JsonOmit own_unread[] = { UNREAD };

#define POD_KIND(omits, of) \
        { \
                .group = "", .version = "v1", .plural = "pods", .kind = "Pod", .namespaced = true, \
                .size = sizeof(KubePod), .decode = kube_pod_decode, .done = kube_pod_done, \
                .annotation_wanted = kube_pod_annotation_wanted, .unread = omits, .n_unread = ELEMENTSOF(omits), \
                .shape = (of), \
        }

const KubeKind kube_pod_kind = POD_KIND(unread, &kube_shape_pod);
const KubeKind kube_own_pod_kind = POD_KIND(own_unread, &kube_shape_own_pod);
