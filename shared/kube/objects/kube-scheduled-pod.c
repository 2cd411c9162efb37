/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "kube-scheduling.h"
#include "parse-util.h"
#include "string-util.h"

/*
 * The text that kube-scheduling.h describes. What is copied of the spec is copied by the shapes of kube-field-list.h, which are
 * also what protobuf is read by: so both ways give the same text, and a field that kube-scheduler learns to read is added there
 * and nowhere else.
 */

#define DEFAULT_SCHEDULER "default-scheduler" /* corev1.DefaultSchedulerName */
#define ANNOTATION_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

/* -- containers ----------------------------------------------------------------------------------------- */

static int64_t host_port(Decoder *d, const Json *port) {
        int64_t n = 0;

        decode_int64(d, json_get(port, "hostPort"), "spec.containers.ports.hostPort", &n);
        return n;
}

static void write_port(Decoder *d, const Json *port, JsonWriter *w) {
        int64_t n = host_port(d, port);
        _cleanup_free_ char *ip = NULL, *protocol = NULL;

        if (n == 0)
                return;
        decode_string(d, json_get(port, "hostIP"), "spec.containers.ports.hostIP", &ip);
        decode_string(d, json_get(port, "protocol"), "spec.containers.ports.protocol", &protocol);
        json_open_object(w, NULL);
        json_add_int64(w, "hostPort", n);
        json_add_string(w, "hostIP", isempty(ip) ? NULL : ip);
        json_add_string(w, "protocol", isempty(protocol) ? NULL : protocol);
        json_close_object(w);
}

static bool has_host_port(Decoder *d, const Json *ports) {
        bool found = false;

        JSON_FOREACH (i, ports)
                found |= host_port(d, i) != 0;
        return found;
}

static bool is_sidecar(Decoder *d, const Json *container) {
        _cleanup_free_ char *policy = NULL;

        decode_string(d, json_get(container, "restartPolicy"), "restartPolicy of a container", &policy);
        return streq_ptr(policy, "Always");
}

/* Nothing, if it asks for nothing. */
static void write_container(Decoder *d, const Json *container, bool init, JsonWriter *w) {
        const Json *requests = json_path(container, "resources", "requests", NULL);
        const Json *ports = decode_array(d, json_get(container, "ports"), "spec.containers.ports");
        bool has_port = has_host_port(d, ports), sidecar = is_sidecar(d, container) && init,
             asks = has_port || decode_copy_map_has(requests, true);

        if (asks)
                json_open_object(w, NULL);
        (void) decode_copy_map(d, requests, "spec.containers.resources.requests", true, w, "requests");
        if (has_port) {
                json_open_array(w, "ports");
                JSON_FOREACH (i, ports)
                        write_port(d, i, w);
                json_close_array(w);
        }
        if (asks && sidecar)
                json_add_bool(w, "always", true);
        if (asks)
                json_close_object(w);
}

/* -- what no simulation understands --------------------------------------------------------------------- */

static bool is_set(const Json *v) {
        return v && !json_is_null(v);
}

static bool is_of_group(const KubeObject *o, const Json *spec) {
        return !isempty(object_meta_label(&o->meta, "scheduling.x-k8s.io/pod-group")) ||
               !isempty(object_meta_label(&o->meta, "pod-group.scheduling.sigs.k8s.io")) ||
               is_set(json_get(spec, "workloadRef")) || is_set(json_get(spec, "schedulingGroup"));
}

/* Where such a volume may be attached stands in no PersistentVolume. */
static bool has_disk(const Json *volumes) {
        static const char *const sources[] = { "gcePersistentDisk", "awsElasticBlockStore", "azureDisk", "iscsi",
                                               "rbd" };
        bool found = false;

        JSON_FOREACH (v, volumes)
                for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                        found |= is_set(json_get(v, sources[i]));
        return found;
}

static void write_unmodelled(Decoder *d, const KubeScheduledPod *p, const Json *spec, JsonWriter *w) {
        const Json *claims = decode_array(d, json_get(spec, "resourceClaims"), "spec.resourceClaims");
        const Json *gates = decode_array(d, json_get(spec, "schedulingGates"), "spec.schedulingGates");
        bool gated = json_size(gates) > 0 && !p->pod.node_name, grouped = is_of_group(&p->pod.object, spec),
             disk = has_disk(json_get(spec, "volumes"));

        if (json_size(claims) == 0 && !gated && !grouped && !disk)
                return;
        json_open_array(w, "unmodelled");
        if (json_size(claims) > 0)
                json_add_string(w, NULL, "resourceClaims");
        if (gated)
                json_add_string(w, NULL, "schedulingGates");
        if (grouped)
                json_add_string(w, NULL, "podGroup");
        if (disk)
                json_add_string(w, NULL, "disk");
        json_close_array(w);
}

/* -- the whole ------------------------------------------------------------------------------------------ */

/* The list may turn out empty: nothing asks for anything. */
static void write_containers(Decoder *d, const Json *v, const char *path, bool init, JsonWriter *w) {
        _cleanup_(json_writer_freep) JsonWriter *list = NULL;
        _cleanup_free_ char *text = NULL;

        v = decode_array(d, v, path);
        if (json_size(v) == 0)
                return;
        if (json_writer_new(&list) < 0) {
                d->failed = true;
                return;
        }
        json_open_array(list, NULL);
        JSON_FOREACH (i, v) {
                if (json_writer_size(list) > DECODE_COPY_BYTES_MAX) /* the whole is not kept then */
                        break;
                write_container(d, i, init, list);
        }
        json_close_array(list);
        text = json_writer_steal(list, NULL);
        if (!text)
                d->failed = true;
        else if (!streq(text, "[]"))
                json_add_raw(w, init ? "init" : "containers", text);
}

/* Writes the pod's requests, priority and schedulerName. */
static void write_needs(Decoder *d, const KubeScheduledPod *p, const Json *spec, JsonWriter *w) {
        _cleanup_free_ char *scheduler = NULL;

        decode_string(d, json_get(spec, "schedulerName"), "spec.schedulerName", &scheduler);
        if (p->pod.priority != 0)
                json_add_int64(w, "priority", p->pod.priority);
        if (!isempty(scheduler) && !streq(scheduler, DEFAULT_SCHEDULER))
                json_add_string(w, "scheduler", scheduler);
        write_containers(d, json_get(spec, "containers"), "spec.containers", false, w);
        write_containers(d, json_get(spec, "initContainers"), "spec.initContainers", true, w);
        (void) decode_copy_map(d, json_path(spec, "resources", "requests", NULL), "spec.resources.requests", true, w,
                               "podRequests");
        (void) decode_copy_map(d, json_get(spec, "overhead"), "spec.overhead", true, w, "overhead");
}

/* Writes the constraints on its node. */
static void write_constraints(Decoder *d, const KubeScheduledPod *p, const Json *spec, JsonWriter *w) {
        _cleanup_free_ char *affinity = NULL;

        decode_copy_text(d, json_get(spec, "affinity"), "spec.affinity", &kube_shape_affinity, false,
                         &affinity);
        (void) decode_copy_map(d, json_get(spec, "nodeSelector"), "spec.nodeSelector", false, w, "nodeSelector");
        if (affinity && !streq(affinity, "{}"))
                json_add_raw(w, "affinity", affinity);
        (void) decode_copy_list(d, json_get(spec, "tolerations"), "spec.tolerations", &kube_shape_toleration, w,
                                "tolerations");
        (void) decode_copy_list(d, json_get(spec, "topologySpreadConstraints"), "spec.topologySpreadConstraints",
                                &kube_shape_spread, w, "topologySpreadConstraints");
        write_unmodelled(d, p, spec, w);
}

typedef void (*write_part_t)(Decoder *d, const KubeScheduledPod *p, const Json *spec, JsonWriter *w);

/* Returns the text of one object. ns NULL: without a namespace; write NULL: nothing else. NULL: no memory
 * (d->failed). */
static char *part_text(Decoder *d, const KubeScheduledPod *p, const Json *spec, const char *ns,
                       write_part_t write) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char *text;

        if (json_writer_new(&w) < 0) {
                d->failed = true;
                return NULL;
        }
        json_open_object(w, NULL);
        json_add_string(w, "ns", ns);
        if (write)
                write(d, p, spec, w);
        json_close_object(w);
        text = json_writer_steal(w, NULL);
        d->failed |= !text;
        return text;
}

/* Returns one object with the members of both. NULL on ENOMEM. */
static char *joined(const char *first, const char *second) {
        if (streq(first, "{}"))
                return strdup(second);
        if (streq(second, "{}"))
                return strdup(first);
        return strf("%.*s,%s", (int) strlen(first) - 1, first, second + 1);
}

/* Writes, for constraints that are too large, one term of anti-affinity without a key if the pod has any
 * required term. A simulation then assumes that the pod may keep others out of any domain. */
static void write_cut_constraints(Decoder *d, const KubeScheduledPod *p, const Json *spec, JsonWriter *w) {
        static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";

        if (json_size(json_path(spec, "affinity", "podAntiAffinity", required, NULL)) == 0)
                return;
        json_open_object(w, "affinity");
        json_open_object(w, "podAntiAffinity");
        json_open_array(w, required);
        json_add_raw(w, NULL, "{}");
        json_close_array(w);
        json_close_object(w);
        json_close_object(w);
}

/* A pod whose text is too large still takes room on its node: its requests are kept if they alone are small
 * enough. */
static void decode_scheduling(Decoder *d, KubeScheduledPod *p, const Json *spec) {
        const char *ns = p->pod.object.meta.ns;
        _cleanup_free_ char *needs = part_text(d, p, spec, ns, write_needs),
                            *where = part_text(d, p, spec, NULL, write_constraints), *text = NULL;

        if (!needs || !where)
                return;
        if (d->is_cut || strlen(needs) + strlen(where) > DECODE_COPY_BYTES_MAX) {
                decoder_invalid(d, "spec: vesper keeps at most %u bytes of what kube-scheduler reads",
                                DECODE_COPY_BYTES_MAX);
                free(where);
                where = part_text(d, p, spec, NULL, write_cut_constraints);
        }
        if (strlen(needs) > DECODE_COPY_BYTES_MAX) {
                free(needs);
                needs = part_text(d, p, spec, ns, NULL);
        }
        text = needs && where ? joined(needs, where) : NULL;
        p->scheduling = text ? intern(d->pool, text) : NULL;
        d->failed |= !p->scheduling;
}

static void decode_claims(Decoder *d, KubeScheduledPod *p, const Json *json) {
        int r = pod_claims_decode(json, &p->claims, &p->n_claims);

        if (r == -ENOMEM)
                d->failed = true;
        else if (r == -E2BIG)
                decoder_invalid(d, "spec.volumes has more than %u PersistentVolumeClaims", DECODE_LIST_MAX);
        else if (r < 0)
                decoder_invalid(d, "spec.volumes is no list of volumes");
}

/* Reads the cost as the ReplicaSet controller does: an int32 without a plus sign or leading zeros. */
static int64_t deletion_cost(const char *s) {
        bool is_plain = s && (streq(s, "0") || *s == '-' || (*s >= '1' && *s <= '9'));
        int64_t n;

        return is_plain && parse_int64(s, &n) >= 0 && n >= INT32_MIN && n <= INT32_MAX ? n : 0;
}

static bool is_resizing(const Json *conditions) {
        JSON_FOREACH (c, conditions) {
                const char *type = json_string_or_null(json_get(c, "type"));

                if ((streq_ptr(type, "PodResizePending") || streq_ptr(type, "PodResizeInProgress")) &&
                    streq_ptr(json_string_or_null(json_get(c, "status")), "True"))
                        return true;
        }
        return false;
}

static void decode_nominated_node(Decoder *d, KubeScheduledPod *p, const Json *v) {
        decode_interned(d, v, "status.nominatedNodeName", &p->nominated_node);
        if (p->nominated_node && *p->nominated_node == 0) {
                intern_unref(d->pool, p->nominated_node);
                p->nominated_node = NULL;
        }
}

static int scheduled_pod_decode(KubeObject *o, const Json *json, InternPool *pool) {
        KubeScheduledPod *p = (KubeScheduledPod *) o;
        Decoder d = { .object = o, .pool = pool };
        int r;

        r = kube_pod_decode(o, json, pool);
        if (r == -ENOMEM)
                return r;
        p->deletion_cost = deletion_cost(object_meta_annotation(&o->meta, ANNOTATION_DELETION_COST));
        p->is_resizing = is_resizing(json_path(json, "status", "conditions", NULL));
        decode_nominated_node(&d, p, json_path(json, "status", "nominatedNodeName", NULL));
        decode_claims(&d, p, json);
        decode_scheduling(&d, p, json_get(json, "spec"));
        o->kept_bytes += intern_own_bytes(p->scheduling) + p->n_claims * sizeof(PodClaim);
        return decoder_finish(&d);
}

static void scheduled_pod_done(KubeObject *o, InternPool *pool) {
        KubeScheduledPod *p = (KubeScheduledPod *) o;

        intern_unref(pool, p->scheduling);
        intern_unref(pool, p->nominated_node);
        pod_claims_free(p->claims, p->n_claims);
        kube_pod_done(o, pool);
}

static bool claims_are_same(const KubeScheduledPod *a, const KubeScheduledPod *b) {
        if (a->n_claims != b->n_claims)
                return false;
        for (size_t i = 0; i < a->n_claims; i++)
                if (!streq(a->claims[i].name, b->claims[i].name) || a->claims[i].ephemeral != b->claims[i].ephemeral)
                        return false;
        return true;
}

bool scheduled_pod_says_same(const KubePod *a, const KubePod *b) {
        const KubeScheduledPod *x = (const KubeScheduledPod *) a, *y = (const KubeScheduledPod *) b;

        if (a->object.kind != &kube_scheduled_pod_kind || b->object.kind != &kube_scheduled_pod_kind)
                return true;
        return x->scheduling == y->scheduling && key_values_are_same(&a->object.meta.labels, &b->object.meta.labels) &&
               x->deletion_cost == y->deletion_cost && x->is_resizing == y->is_resizing && x->nominated_node == y->nominated_node &&
               claims_are_same(x, y);
}

static bool annotation_wanted(const char *key) {
        return kube_pod_annotation_wanted(key) || streq(key, ANNOTATION_DELETION_COST);
}

static const JsonOmit unread[] = {
        { "metadata", "managedFields" },
        { "status", "containerStatuses" },
        { "status", "initContainerStatuses" },
};

const KubeKind kube_scheduled_pod_kind = {
        .group = "",
        .version = "v1",
        .plural = "pods",
        .kind = "Pod",
        .namespaced = true,
        .size = sizeof(KubeScheduledPod),
        .decode = scheduled_pod_decode,
        .done = scheduled_pod_done,
        .annotation_wanted = annotation_wanted,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_scheduled_pod,
};
