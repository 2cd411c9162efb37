/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>

#include "kube-decode.h"
#include "kube-protobuf.h"
#include "kubelet-labels.h"
#include "marks.h"
#include "string-util.h"
#include "strv.h"

static void decode_taints(Decoder *d, const Json *v, KubeNode *n) {
        const Json *list = decode_array(d, v, "spec.taints");

        n->taints = decode_room(d, list, "spec.taints", DECODE_LIST_MAX, sizeof(Taint));
        n->has_unread_taints = !n->taints && json_size(list) > 0;
        JSON_FOREACH (i, n->taints ? list : NULL) {
                Taint *t = n->taints + n->n_taints++;

                t->value = intern(d->pool, "");
                d->failed |= !t->value;
                decode_interned(d, json_get(i, "key"), "spec.taints.key", &t->key);
                decode_interned(d, json_get(i, "value"), "spec.taints.value", &t->value);
                decode_interned(d, json_get(i, "effect"), "spec.taints.effect", &t->effect);
                decode_time(d, json_get(i, "timeAdded"), "spec.taints.timeAdded", &t->time_added_usec);
                if (!d->failed && (!t->key || !t->effect))
                        decoder_invalid(d, "a taint in spec.taints has no key or effect");
        }
}

/* Kubelets leave out what they do not know by an empty text. */
static void decode_text(Decoder *d, const Json *v, const char *path, char **ret) {
        decode_string(d, v, path, ret);
        if (isempty(*ret))
                *ret = mfree(*ret);
}

static void decode_addresses(Decoder *d, const Json *v, KubeNode *n) {
        const Json *list = decode_array(d, v, "status.addresses");

        n->addresses = decode_room(d, list, "status.addresses", DECODE_LIST_MAX, sizeof(NodeAddress));
        JSON_FOREACH (i, n->addresses ? list : NULL) {
                NodeAddress *a = n->addresses + n->n_addresses++;

                decode_interned(d, json_get(i, "type"), "status.addresses.type", &a->type);
                decode_string(d, json_get(i, "address"), "status.addresses.address", &a->address);
        }
}

static void decode_node_info(Decoder *d, const Json *info, KubeNode *n) {
        decode_text(d, json_get(info, "bootID"), "status.nodeInfo.bootID", &n->boot_id);
        if (n->boot_id && strlen(n->boot_id) > BOOT_ID_BYTES_MAX) /* a UUID has 36; it stands in annotations that would be unreadable then */
                n->boot_id = mfree(n->boot_id);
        decode_text(d, json_get(info, "machineID"), "status.nodeInfo.machineID", &n->machine_id);
        decode_text(d, json_get(info, "systemUUID"), "status.nodeInfo.systemUUID", &n->system_uuid);
}

/* A heartbeat that cannot be read counts as absent. */
static void decode_heartbeat(const Json *conditions, usec_t *ret) {
        const char *type, *time;

        if (!json_is_array(conditions))
                return;
        JSON_FOREACH (i, conditions)
                if (json_string(json_get(i, "lastHeartbeatTime"), &time) >= 0 &&
                    json_string(json_get(i, "type"), &type) >= 0 && streq(type, "Ready"))
                        (void) rfc3339_parse(time, ret);
}

int kube_node_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec"), *status = json_get(json, "status");
        KubeNode *n = (KubeNode *) o;

        decode_text(&d, json_get(spec, "providerID"), "spec.providerID", &n->provider_id);
        if (!n->provider_id) {
                n->named_id = strf(MACHINE_ID_BY_NAME "%s", strempty(o->meta.name));
                d.failed = d.failed || !n->named_id;
        }
        decode_bool(&d, json_get(spec, "unschedulable"), "spec.unschedulable", &n->unschedulable);
        decode_taints(&d, json_get(spec, "taints"), n);
        decode_conditions(&d, json_get(status, "conditions"), &n->conditions, &n->n_conditions);
        decode_heartbeat(json_get(status, "conditions"), &n->heartbeat_usec);
        decode_names(&d, json_get(status, "volumesInUse"), "status.volumesInUse", NULL, SIZE_MAX,
                     &n->volumes_in_use);
        decode_names(&d, json_get(status, "volumesAttached"), "status.volumesAttached", "name", SIZE_MAX,
                     &n->volumes_attached);
        decode_node_info(&d, json_get(status, "nodeInfo"), n);
        decode_addresses(&d, json_get(status, "addresses"), n);
        decode_int64(&d, json_path(status, "daemonEndpoints", "kubeletEndpoint", "Port", NULL),
                     "status.daemonEndpoints.kubeletEndpoint.Port", &n->kubelet_port);
        n->interruption_is_unreadable = !decode_interruption(&d, ANNOTATION_INTERRUPTION, &n->interruption);
        (void) decode_interruption(&d, ANNOTATION_HEARD, &n->heard);
        decode_announced(&d, &n->announced, &n->let_go_usec);
        return decoder_finish(&d);
}

void kube_node_done(KubeObject *o, InternPool *pool) {
        KubeNode *n = (KubeNode *) o;

        free(n->provider_id);
        free(n->named_id);
        for (size_t i = 0; i < n->n_taints; i++) {
                intern_unref(pool, n->taints[i].key);
                intern_unref(pool, n->taints[i].value);
                intern_unref(pool, n->taints[i].effect);
        }
        free(n->taints);
        conditions_free(n->conditions, n->n_conditions, pool);
        free(n->volumes_in_use);
        free(n->volumes_attached);
        free(n->boot_id);
        free(n->machine_id);
        free(n->system_uuid);
        for (size_t i = 0; i < n->n_addresses; i++) {
                intern_unref(pool, n->addresses[i].type);
                free(n->addresses[i].address);
        }
        free(n->addresses);
        interruption_free(n->interruption);
        interruption_free(n->heard);
        announced_list_done(&n->announced);
}

bool kube_node_annotation_wanted(const char *key) {
        return startswith(key, VESPER_GROUP "/") || startswith(key, "karpenter.sh/") ||
               streq(key, "cluster-autoscaler.kubernetes.io/scale-down-disabled");
}

static const JsonOmit unread[] = { { "metadata", "managedFields" }, { "status", "images" } };

const KubeKind kube_node_kind = {
        .group = "",
        .version = "v1",
        .plural = "nodes",
        .kind = "Node",
        .size = sizeof(KubeNode),
        .decode = kube_node_decode,
        .done = kube_node_done,
        .annotation_wanted = kube_node_annotation_wanted,
        .label_kept = label_key_is_protected_from_kubelets,
        .unread = unread,
        .n_unread = ELEMENTSOF(unread),
        .shape = &kube_shape_node,
};

bool kube_node_has_booted_since(const KubeNode *n, const Interruption *i) {
        return boot_id_differs(i->boot_id, n->boot_id);
}

const Interruption *kube_node_interruption(const KubeNode *n) {
        assert(n);
        return n->interruption && !kube_node_has_booted_since(n, n->interruption) ? n->interruption : NULL;
}

const Interruption *kube_node_standing_interruption(const KubeNode *n) {
        const Interruption *i = kube_node_interruption(n);

        return i && !interruption_is_over(i) ? i : NULL;
}

const Interruption *kube_node_standing_heard(const KubeNode *n) {
        return n->heard && !kube_node_has_booted_since(n, n->heard) && !interruption_is_over(n->heard) ? n->heard : NULL;
}

bool kube_node_is_unmanaged(const KubeNode *n) {
        return streq_ptr(object_meta_annotation(&n->object.meta, ANNOTATION_UNMANAGED), "true");
}

const Condition *kube_node_condition(const KubeNode *n, const char *type) {
        assert(n);
        return condition_find(n->conditions, n->n_conditions, type);
}

const char *kube_node_machine_id(const KubeNode *n) {
        assert(n);
        return n->provider_id ? n->provider_id : n->named_id;
}

const char *machine_id_node_name(const char *id) {
        return startswith(strempty(id), MACHINE_ID_BY_NAME);
}

const char *machine_id_ec2_instance(const char *id) {
        const char *slash = startswith(strempty(id), "aws://") ? strrchr(id, '/') : NULL;

        return slash && slash[1] ? slash + 1 : NULL;
}

usec_t kube_node_ready_since(const KubeNode *n) {
        const Condition *c = kube_node_condition(n, "Ready");

        return c ? c->last_transition_usec : 0;
}

bool kube_node_is_ready(const KubeNode *n) {
        const Condition *c = kube_node_condition(n, "Ready");

        return c && c->status == CONDITION_TRUE;
}

bool taint_equal(const Taint *a, const Taint *b) {
        return streq_ptr(a->key, b->key) && streq_ptr(a->value, b->value) && streq_ptr(a->effect, b->effect);
}

bool kube_node_has_taint(const KubeNode *n, const char *key, const char *effect) {
        assert(n);
        for (size_t i = 0; i < n->n_taints; i++)
                if (streq_ptr(n->taints[i].key, key) && (!effect || streq_ptr(n->taints[i].effect, effect)))
                        return true;
        return false;
}

bool boot_id_differs(const char *a, const char *b) {
        return !isempty(a) && !isempty(b) && !boot_id_equal(a, b);
}

bool boot_id_equal(const char *a, const char *b) {
        if (!a || !b)
                return false;
        for (;; a++, b++) {
                while (*a == '-')
                        a++;
                while (*b == '-')
                        b++;
                if (tolower((unsigned char) *a) != tolower((unsigned char) *b))
                        return false;
                if (*a == 0)
                        return true;
        }
}
