/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot-object.h"

#include "string-util.h"

#define DEFAULT_GRACE_SEC 30 /* corev1.DefaultTerminationGracePeriodSeconds */

/* -- what many kinds have ------------------------------------------------------------------------------- */

void snapshot_write_conditions(JsonWriter *w, const KubeObject *o) {
        size_t n;
        const Condition *list = kube_object_conditions(o, &n);

        if (n == 0)
                return;
        json_open_array(w, "conditions");
        for (size_t i = 0; i < n; i++)
                condition_write(w, list + i, 0, 0);
        json_close_array(w);
}

static void write_map(JsonWriter *w, const char *key, const KeyValues *map) {
        if (map->n_items == 0)
                return;
        json_open_object(w, key);
        for (size_t i = 0; i < map->n_items; i++)
                json_add_string(w, map->items[i].key, map->items[i].value);
        json_close_object(w);
}

static void write_names(JsonWriter *w, const char *key, char *const *names, const char *member) {
        if (!names || !*names)
                return;
        json_open_array(w, key);
        for (char *const *s = names; *s; s++)
                if (member) {
                        json_open_object(w, NULL);
                        json_add_string(w, member, *s);
                        json_close_object(w);
                } else
                        json_add_string(w, NULL, *s);
        json_close_array(w);
}

static void write_owners(JsonWriter *w, const ObjectMeta *m) {
        if (m->n_owners == 0)
                return;
        json_open_array(w, "ownerReferences");
        for (size_t i = 0; i < m->n_owners; i++) {
                const OwnerRef *o = m->owners + i;

                json_open_object(w, NULL);
                json_add_string(w, "apiVersion", o->api_version);
                json_add_string(w, "kind", o->kind);
                json_add_string(w, "name", o->name);
                json_add_string(w, "uid", o->uid);
                if (o->controller)
                        json_add_bool(w, "controller", true);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_meta(JsonWriter *w, const ObjectMeta *m) {
        json_open_object(w, "metadata");
        json_add_string(w, "name", m->name);
        json_add_string(w, "namespace", m->ns);
        json_add_string(w, "uid", m->uid);
        if (m->generation != 0)
                json_add_int64(w, "generation", m->generation);
        json_add_time(w, "creationTimestamp", m->creation_usec);
        json_add_time(w, "deletionTimestamp", m->deletion_usec);
        if (m->deletion_grace_sec != -1)
                json_add_int64(w, "deletionGracePeriodSeconds", m->deletion_grace_sec);
        write_map(w, "labels", &m->labels);
        write_map(w, "annotations", &m->annotations);
        write_owners(w, m);
        write_names(w, "finalizers", m->finalizers, NULL);
        json_close_object(w);
}

/* -- Pod ------------------------------------------------------------------------------------------------ */

/* From {requests, ports, always} back to a container. */
static void write_container(JsonWriter *w, const Json *c) {
        bool always = false;

        json_open_object(w, NULL);
        if (json_get(c, "requests")) {
                json_open_object(w, "resources");
                json_add_value(w, "requests", json_get(c, "requests"));
                json_close_object(w);
        }
        json_add_value(w, "ports", json_get(c, "ports"));
        (void) json_bool(json_get(c, "always"), &always);
        json_add_string(w, "restartPolicy", always ? "Always" : NULL);
        json_close_object(w);
}

static void write_containers(JsonWriter *w, const char *key, const Json *list) {
        if (json_size(list) == 0)
                return;
        json_open_array(w, key);
        JSON_FOREACH (i, list)
                write_container(w, i);
        json_close_array(w);
}

static bool has_word(const Json *unmodelled, const char *word) {
        JSON_FOREACH (i, unmodelled)
                if (streq_ptr(json_string_or_null(i), word))
                        return true;
        return false;
}

/* A list with one element of which nothing is told. */
static void write_something(JsonWriter *w, const char *key) {
        json_open_array(w, key);
        json_open_object(w, NULL);
        json_close_object(w);
        json_close_array(w);
}

static void write_unmodelled(JsonWriter *w, const KubeObject *o, const Json *unmodelled) {
        if (has_word(unmodelled, "resourceClaims"))
                write_something(w, "resourceClaims");
        if (has_word(unmodelled, "schedulingGates"))
                write_something(w, "schedulingGates");
        /* Its labels may say so already. */
        if (has_word(unmodelled, "podGroup") && isempty(object_meta_label(&o->meta, "scheduling.x-k8s.io/pod-group")) &&
            isempty(object_meta_label(&o->meta, "pod-group.scheduling.sigs.k8s.io"))) {
                json_open_object(w, "workloadRef");
                json_close_object(w);
        }
}

/* The name of an ephemeral volume's claim is the pod's, a dash, and the volume's. */
static void write_claim(JsonWriter *w, const KubeObject *pod, const PodClaim *c) {
        const char *rest = startswith(c->name, pod->meta.name);

        json_open_object(w, NULL);
        if (c->ephemeral)
                json_add_string(w, "name", rest && *rest == '-' ? rest + 1 : c->name);
        json_open_object(w, c->ephemeral ? "ephemeral" : "persistentVolumeClaim");
        if (!c->ephemeral)
                json_add_string(w, "claimName", c->name);
        json_close_object(w);
        json_close_object(w);
}

static void write_volumes(JsonWriter *w, const KubeScheduledPod *p, bool has_disk) {
        if (p->n_claims == 0 && !has_disk)
                return;
        json_open_array(w, "volumes");
        for (size_t i = 0; i < p->n_claims; i++)
                write_claim(w, &p->pod.object, p->claims + i);
        if (has_disk) {
                json_open_object(w, NULL);
                json_open_object(w, "rbd"); /* any of these disks says the same */
                json_close_object(w);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_scheduling(JsonWriter *w, const KubeScheduledPod *p, const Json *text) {
        const Json *unmodelled = json_get(text, "unmodelled");

        json_add_string(w, "schedulerName", json_string_or_null(json_get(text, "scheduler")));
        write_containers(w, "containers", json_get(text, "containers"));
        write_containers(w, "initContainers", json_get(text, "init"));
        if (json_get(text, "podRequests")) {
                json_open_object(w, "resources");
                json_add_value(w, "requests", json_get(text, "podRequests"));
                json_close_object(w);
        }
        json_add_value(w, "overhead", json_get(text, "overhead"));
        json_add_value(w, "nodeSelector", json_get(text, "nodeSelector"));
        json_add_value(w, "affinity", json_get(text, "affinity"));
        json_add_value(w, "tolerations", json_get(text, "tolerations"));
        json_add_value(w, "topologySpreadConstraints", json_get(text, "topologySpreadConstraints"));
        write_unmodelled(w, &p->pod.object, unmodelled);
        write_volumes(w, p, has_word(unmodelled, "disk"));
}

static const char *phase_to_string(PodPhase phase) {
        switch (phase) {
        case POD_PENDING:
                return "Pending";
        case POD_RUNNING:
                return "Running";
        case POD_SUCCEEDED:
                return "Succeeded";
        case POD_FAILED:
                return "Failed";
        case POD_PHASE_UNKNOWN:
                break;
        }
        return NULL; /* as it is without one */
}

static void write_pod_status(JsonWriter *w, const KubeScheduledPod *scheduled) {
        const KubePod *p = &scheduled->pod;
        bool is_resizing = scheduled->is_resizing;

        json_open_object(w, "status");
        json_add_string(w, "phase", phase_to_string(p->phase));
        json_add_string(w, "nominatedNodeName", scheduled->nominated_node);
        json_add_time(w, "startTime", p->start_usec);
        if (p->ready || is_resizing) {
                json_open_array(w, "conditions");
                if (p->ready)
                        condition_write(w, &(Condition){ .type = "Ready", .status = CONDITION_TRUE }, 0, 0);
                if (is_resizing)
                        condition_write(w, &(Condition){ .type = "PodResizeInProgress", .status = CONDITION_TRUE }, 0, 0);
                json_close_array(w);
        }
        json_close_object(w);
}

static void write_pod(JsonWriter *w, const KubeScheduledPod *p, const Json *scheduling) {
        json_open_object(w, "spec");
        json_add_string(w, "nodeName", p->pod.node_name);
        json_add_string(w, "priorityClassName", p->pod.priority_class);
        if (p->pod.priority != 0)
                json_add_int64(w, "priority", p->pod.priority);
        if (p->pod.grace_sec != DEFAULT_GRACE_SEC)
                json_add_int64(w, "terminationGracePeriodSeconds", p->pod.grace_sec);
        write_scheduling(w, p, scheduling);
        json_close_object(w);
        write_pod_status(w, p);
}

/* -- Node ----------------------------------------------------------------------------------------------- */

static void write_taints(JsonWriter *w, const KubeNode *n) {
        if (n->n_taints == 0)
                return;
        json_open_array(w, "taints");
        for (size_t i = 0; i < n->n_taints; i++) {
                const Taint *t = n->taints + i;

                json_open_object(w, NULL);
                json_add_string(w, "key", t->key);
                json_add_string(w, "value", isempty(t->value) ? NULL : t->value);
                json_add_string(w, "effect", t->effect);
                json_add_time(w, "timeAdded", t->time_added_usec);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_node(JsonWriter *w, const KubeScheduledNode *n) {
        json_open_object(w, "spec");
        json_add_string(w, "providerID", n->node.provider_id);
        if (n->node.unschedulable)
                json_add_bool(w, "unschedulable", true);
        write_taints(w, &n->node);
        json_close_object(w);
        json_open_object(w, "status");
        write_map(w, "allocatable", &n->allocatable);
        snapshot_write_conditions(w, &n->node.object);
        write_names(w, "volumesInUse", n->node.volumes_in_use, NULL);
        write_names(w, "volumesAttached", n->node.volumes_attached, "name");
        if (n->kubelet_version || n->os_image) {
                json_open_object(w, "nodeInfo");
                json_add_string(w, "kubeletVersion", n->kubelet_version);
                json_add_string(w, "osImage", n->os_image);
                json_close_object(w);
        }
        json_close_object(w);
}

/* -- others --------------------------------------------------------------------------------------------- */

static void write_pdb(JsonWriter *w, const KubePdb *p) {
        json_open_object(w, "spec");
        selector_write(p->selector, w, "selector");
        json_add_string(w, "unhealthyPodEvictionPolicy", p->always_allow_unhealthy ? "AlwaysAllow" : NULL);
        json_close_object(w);
        json_open_object(w, "status");
        json_add_int64(w, "disruptionsAllowed", p->disruptions_allowed);
        json_add_int64(w, "currentHealthy", p->current_healthy);
        json_add_int64(w, "desiredHealthy", p->desired_healthy);
        json_add_int64(w, "expectedPods", p->expected_pods);
        json_add_int64(w, "observedGeneration", p->observed_generation);
        json_close_object(w);
}

static void write_volume(JsonWriter *w, const KubeVolume *v) {
        json_open_object(w, "spec");
        json_add_string(w, "storageClassName", v->storage_class);
        if (v->csi_driver || v->csi_handle) {
                json_open_object(w, "csi");
                json_add_string(w, "driver", v->csi_driver);
                json_add_string(w, "volumeHandle", v->csi_handle);
                json_close_object(w);
        }
        if (v->node_affinity) {
                json_open_object(w, "nodeAffinity");
                json_add_raw(w, "required", v->node_affinity);
                json_close_object(w);
        }
        json_close_object(w);
}

static void write_volume_claim(JsonWriter *w, const KubeScheduledClaim *c) {
        json_open_object(w, "spec");
        json_add_string(w, "volumeName", c->claim.volume_name);
        json_add_string(w, "storageClassName", c->storage_class);
        if (c->one_pod_only) {
                json_open_array(w, "accessModes");
                json_add_string(w, NULL, "ReadWriteOncePod");
                json_close_array(w);
        }
        json_close_object(w);
}

static void write_storage_class(JsonWriter *w, const KubeStorageClass *c) {
        json_add_string(w, "provisioner", c->provisioner);
        json_add_string(w, "volumeBindingMode", c->waits_for_consumer ? "WaitForFirstConsumer" : NULL);
        json_add_raw(w, "allowedTopologies", c->allowed_topologies);
}

static void write_csi_node(JsonWriter *w, const KubeCsiNode *n) {
        json_open_object(w, "spec");
        json_open_array(w, "drivers");
        for (size_t i = 0; i < n->n_drivers; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "name", n->drivers[i].driver);
                if (n->drivers[i].volumes != -1) {
                        json_open_object(w, "allocatable");
                        json_add_int64(w, "count", n->drivers[i].volumes);
                        json_close_object(w);
                }
                json_close_object(w);
        }
        json_close_array(w);
        json_close_object(w);
}

static void write_rest(JsonWriter *w, const KubeObject *o, const Json *scheduling) {
        if (o->kind == &kube_scheduled_pod_kind)
                write_pod(w, (const KubeScheduledPod *) o, scheduling);
        else if (o->kind == &kube_scheduled_node_kind)
                write_node(w, (const KubeScheduledNode *) o);
        else if (o->kind == &kube_pdb_kind)
                write_pdb(w, (const KubePdb *) o);
        else if (o->kind == &kube_volume_kind)
                write_volume(w, (const KubeVolume *) o);
        else if (o->kind == &kube_scheduled_claim_kind)
                write_volume_claim(w, (const KubeScheduledClaim *) o);
        else if (o->kind == &kube_storage_class_kind)
                write_storage_class(w, (const KubeStorageClass *) o);
        else if (o->kind == &kube_csi_node_kind)
                write_csi_node(w, (const KubeCsiNode *) o);
        else if (o->kind != &kube_namespace_kind)
                (void) snapshot_vesper_write(w, o);
}

int snapshot_object_write(JsonWriter *w, const KubeObject *o) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        if (o->kind == &kube_scheduled_pod_kind) {
                const char *text = ((const KubeScheduledPod *) o)->scheduling;
                int r = json_parse(text, strlen(text), SIZE_MAX, &doc, NULL);

                if (r < 0)
                        return r == -ENOMEM ? r : -EINVAL; /* our own text can be read */
        }
        json_open_object(w, NULL);
        json_addf(w, "apiVersion", "%s%s%s", o->kind->group, *o->kind->group ? "/" : "", o->kind->version);
        json_add_string(w, "kind", o->kind->kind);
        write_meta(w, &o->meta);
        write_rest(w, o, doc ? json_root(doc) : NULL);
        json_add_string(w, SNAPSHOT_UNREADABLE, o->invalid);
        json_close_object(w);
        return 0;
}
