/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-strategy.h"

#include "fake-webhook.h"

/* -- decoding ------------------------------------------------------------------------------------------ */

static const cJSON *not_a_string(const cJSON *container) {
        const cJSON *v;

        cJSON_ArrayForEach (v, container)
                if (!cJSON_IsString(v) && !cJSON_IsNull(v))
                        return v;
        return NULL;
}

/* metav1.MicroTime: exactly six decimals. */
static bool is_micro_time(const cJSON *v) {
        usec_t t;

        if (!v || cJSON_IsNull(v))
                return true;
        return cJSON_IsString(v) && strlen(v->valuestring) >= 27 && v->valuestring[19] == '.' &&
               strspn(v->valuestring + 20, "0123456789") == 6 && rfc3339_parse(v->valuestring, &t) >= 0;
}

static bool is_time(const cJSON *v) {
        usec_t t;

        return !v || cJSON_IsNull(v) || (cJSON_IsString(v) && rfc3339_parse(v->valuestring, &t) >= 0);
}

static const char *bad_time(const FakeResource *r, const cJSON *object) {
        const cJSON *c;

        if (r->id == FAKE_LEASES) {
                if (!is_micro_time(fj_get(object, "spec", "renewTime", NULL)))
                        return "spec.renewTime";
                if (!is_micro_time(fj_get(object, "spec", "acquireTime", NULL)))
                        return "spec.acquireTime";
        }
        if (r->id == FAKE_EVENTS) {
                if (!is_micro_time(fj_get(object, "eventTime", NULL)))
                        return "eventTime";
                if (!is_time(fj_get(object, "firstTimestamp", NULL)) ||
                    !is_time(fj_get(object, "lastTimestamp", NULL)))
                        return "lastTimestamp";
        }
        if (!r->custom)
                cJSON_ArrayForEach (c, fj_get(object, "status", "conditions", NULL))
                        if (!is_time(fj_get(c, "lastTransitionTime", NULL)) ||
                            !is_time(fj_get(c, "lastHeartbeatTime", NULL)))
                                return "status.conditions.lastTransitionTime";
        return NULL;
}

/* Of the Go types only what our patches touch. */
static const struct {
        FakeResourceId id;
        const char *key; /* in spec */
        int type;        /* of cJSON; cJSON_True: any bool */
} typed_fields[] = {
        { FAKE_LEASES, "holderIdentity", cJSON_String },
        { FAKE_LEASES, "leaseDurationSeconds", cJSON_Number },
        { FAKE_LEASES, "leaseTransitions", cJSON_Number },
        { FAKE_NODES, "unschedulable", cJSON_True },
        { FAKE_NODES, "providerID", cJSON_String },
        { FAKE_NODES, "taints", cJSON_Array },
        { FAKE_PODS, "nodeName", cJSON_String },
        { FAKE_PODS, "terminationGracePeriodSeconds", cJSON_Number },
};

static const char *wrong_type(const FakeResource *r, const cJSON *object) {
        for (size_t i = 0; i < ELEMENTSOF(typed_fields); i++) {
                const cJSON *v = r->id == typed_fields[i].id
                                         ? fj_get(object, "spec", typed_fields[i].key, NULL)
                                         : NULL;
                bool right = typed_fields[i].type == cJSON_True
                                     ? cJSON_IsBool(v)
                                     : v && (v->type & 0xff) == typed_fields[i].type;

                if (v && !cJSON_IsNull(v) && !right)
                        return typed_fields[i].key;
        }
        return NULL;
}

bool fake_strategy_decode(const FakeResource *r, const cJSON *object, bool patched, FakeReply *reply) {
        static const char *const maps[] = { "labels", "annotations", "finalizers" };
        _cleanup_free_ char *why = NULL;
        const cJSON *meta = fj_get(object, "metadata", NULL);
        const char *field = bad_time(r, object);

        if (meta && !cJSON_IsObject(meta))
                why = MUST(
                        strf("json: cannot unmarshal into Go struct field %s.metadata of type v1.ObjectMeta",
                             r->kind));
        for (size_t i = 0; !why && i < ELEMENTSOF(maps); i++)
                if (not_a_string(fj_get(meta, maps[i], NULL)))
                        why = MUST(strf("json: cannot unmarshal number into Go struct field "
                                        "ObjectMeta.metadata.%s of type "
                                        "string",
                                        maps[i]));
        if (!why && field)
                why = MUST(strf("parsing time at %s: cannot parse", field));
        field = wrong_type(r, object);
        if (!why && field)
                why = MUST(
                        strf("json: cannot unmarshal into Go struct field %sSpec.spec.%s", r->kind, field));
        if (!why)
                return true;

        if (patched) {
                _cleanup_errors_ FakeErrors e = { 0 };

                fake_errors_add(&e, FAKE_ERROR_INVALID, "\"...\"", why, "patch");
                return fake_errors_reply_as(&e, "", "", reply);
        }
        return fake_reply_bad_request(reply, "%s in version \"%s\" cannot be handled as a %s: %s", r->kind,
                                      r->version, r->kind, why);
}

static void drop_nulls(cJSON *v) {
        cJSON *child = v->child, *next;

        for (; child; child = next) {
                next = child->next;
                if (cJSON_IsNull(child) && cJSON_IsObject(v))
                        cJSON_Delete(cJSON_DetachItemViaPointer(v, child));
                else
                        drop_nulls(child);
        }
}

static void drop_empty(cJSON *o, const char *key) {
        const cJSON *v = fj_member(o, key);

        if (v && ((cJSON_IsArray(v) || cJSON_IsObject(v)) ? !v->child : cJSON_IsFalse(v)))
                fj_remove(o, key);
}

/* What the Go type has no field for is lost, where somebody might rely on the contrary. */
static void drop_unknown(const FakeResource *r, cJSON *spec) {
        static const char *const of_lease[] = { "holderIdentity",   "leaseDurationSeconds",
                                                "acquireTime",      "renewTime",
                                                "leaseTransitions", "strategy",
                                                "preferredHolder",  NULL };
        static const char *const of_node[] = { "podCIDR", "podCIDRs",     "providerID", "unschedulable",
                                               "taints",  "configSource", "externalID", NULL };
        const char *const *known = r->id == FAKE_LEASES ? of_lease : of_node;
        cJSON *child, *next;

        if (r->id != FAKE_LEASES && r->id != FAKE_NODES)
                return;
        for (child = spec ? spec->child : NULL; child; child = next) {
                bool found = false;

                next = child->next;
                for (const char *const *k = known; *k; k++)
                        found |= streq(*k, child->string);
                if (!found)
                        cJSON_Delete(cJSON_DetachItemViaPointer(spec, child));
        }
}

/* Go writes these times even when they are zero. */
static void show_null_times(const FakeResource *r, cJSON *object) {
        const char *second = r->id == FAKE_NODES ? "lastHeartbeatTime" : "lastProbeTime";
        cJSON *c;

        if (r->id != FAKE_NODES && r->id != FAKE_PODS)
                return;
        cJSON_ArrayForEach (c, fj_get(object, "status", "conditions", NULL)) {
                if (!fj_member(c, second))
                        fj_set(c, second, cJSON_CreateNull());
                if (!fj_member(c, "lastTransitionTime"))
                        fj_set(c, "lastTransitionTime", cJSON_CreateNull());
        }
}

void fake_strategy_normalise(const FakeResource *r, cJSON *object) {
        static const char *const of_meta[] = { "labels", "annotations", "finalizers", "ownerReferences",
                                               "managedFields" };
        cJSON *meta = fj_object(object, "metadata"), *spec = fj_member(object, "spec");

        drop_nulls(object);
        fj_remove(object, "kind");
        fj_remove(object, "apiVersion");
        fj_remove(meta, "managedFields");
        for (size_t i = 0; i < ELEMENTSOF(of_meta); i++)
                drop_empty(meta, of_meta[i]);
        if (streq_ptr(fj_string(meta, "namespace", NULL), ""))
                fj_remove(meta, "namespace");
        drop_unknown(r, spec);
        if (r->id == FAKE_NODES && spec) {
                drop_empty(spec, "unschedulable");
                drop_empty(spec, "taints");
        }
        if (r->id == FAKE_PODS && spec)
                drop_empty(spec, "hostNetwork");
        if (r->id == FAKE_WEBHOOKS)
                fake_webhook_config_default(object);
        show_null_times(r, object);
}

/* -- before creation ----------------------------------------------------------------------------------- */

static void default_string(cJSON *o, const char *key, const char *value) {
        if (isempty(fj_string(o, key, NULL)))
                fj_set_string(o, key, value);
}

static void default_int(cJSON *o, const char *key, int64_t value) {
        if (!fj_member(o, key))
                fj_set_int(o, key, value);
}

/* Admission DefaultTolerationSeconds: five minutes on a node that went away. */
static void add_default_toleration(cJSON *spec, const char *key) {
        const cJSON *t;

        cJSON_ArrayForEach (t, fj_get(spec, "tolerations", NULL)) {
                const char *k = fj_string(t, "key", NULL), *effect = fj_string(t, "effect", NULL);

                if ((isempty(k) || streq(k, key)) && (isempty(effect) || streq(effect, "NoExecute")))
                        return;
        }
        cJSON_AddItemToArray(
                fj_array(spec, "tolerations"),
                fj_parse("{'key':'%s','operator':'Exists','effect':'NoExecute','tolerationSeconds':300}",
                         key));
}

static void prepare_pod(cJSON *pod) {
        cJSON *spec = fj_object(pod, "spec");
        const char *class = fj_string(spec, "priorityClassName", NULL);

        default_string(spec, "restartPolicy", "Always");
        default_string(spec, "dnsPolicy", "ClusterFirst");
        default_string(spec, "schedulerName", "default-scheduler");
        default_int(spec, "terminationGracePeriodSeconds", 30);
        fj_object(spec, "securityContext");
        add_default_toleration(spec, "node.kubernetes.io/not-ready");
        add_default_toleration(spec, "node.kubernetes.io/unreachable");
        if (streq_ptr(class, "system-node-critical"))
                default_int(spec, "priority", 2000001000);
        else if (streq_ptr(class, "system-cluster-critical"))
                default_int(spec, "priority", 2000000000);
        else
                default_int(spec, "priority", 0);
        default_string(spec, "preemptionPolicy", "PreemptLowerPriority");
        fj_set(pod, "status", fj_parse("{'phase':'Pending','qosClass':'BestEffort'}"));
}

static void prepare_namespace(cJSON *ns) {
        const char *name = fj_string(ns, "metadata", "name", NULL);

        fj_set(ns, "spec", fj_parse("{'finalizers':['kubernetes']}"));
        fj_set(ns, "status", fj_parse("{'phase':'Active'}"));
        if (name)
                fj_set_string(fj_object(fj_object(ns, "metadata"), "labels"), "kubernetes.io/metadata.name",
                              name);
}

static void prepare_replicaset(cJSON *rs) {
        default_int(fj_object(rs, "spec"), "replicas", 1);
        fj_set(rs, "status", fj_parse("{'replicas':0}"));
}

/* Go writes these texts even when they are empty. */
static void show_node_info(cJSON *node) {
        static const char *const texts[] = { "machineID",      "systemUUID",       "bootID",
                                             "kernelVersion",  "osImage",          "containerRuntimeVersion",
                                             "kubeletVersion", "kubeProxyVersion", "operatingSystem",
                                             "architecture" };
        cJSON *info = fj_object(fj_object(node, "status"), "nodeInfo");

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (!fj_member(info, texts[i]))
                        fj_set_string(info, texts[i], "");
}

/* Admission TaintNodesByCondition: a new node takes no pods until its lifecycle controller has looked at it.
 */
static void prepare_node(cJSON *node) {
        cJSON *taints = fj_array(fj_object(node, "spec"), "taints");

        show_node_info(node);
        if (!fj_find(taints, "key", "node.kubernetes.io/not-ready"))
                cJSON_AddItemToArray(
                        taints, fj_parse("{'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'}"));
}

void fake_strategy_prepare_create(const FakeStore *s, const FakeResource *r, cJSON *object) {
        cJSON *meta = fj_object(object, "metadata");
        char now[RFC3339_MAX];

        fj_set_string(meta, "creationTimestamp", fake_store_timestamp(s, now));
        fj_remove(meta, "deletionTimestamp");
        fj_remove(meta, "deletionGracePeriodSeconds");
        fj_remove(meta, "generation");
        if (r->has_generation)
                fj_set_int(meta, "generation", 1);
        if (r->has_status && r->id != FAKE_NODES)
                fj_remove(object, "status");

        if (r->id == FAKE_PODS)
                prepare_pod(object);
        else if (r->id == FAKE_NAMESPACES)
                prepare_namespace(object);
        else if (r->id == FAKE_NODES)
                prepare_node(object);
        else if (r->id == FAKE_REPLICASETS)
                prepare_replicaset(object);
        else if (r->id == FAKE_PDBS)
                fj_set(object, "status",
                       fj_parse("{'currentHealthy':0,'desiredHealthy':0,'disruptionsAllowed':0,"
                                "'expectedPods':0}"));
}

/* -- before an update ---------------------------------------------------------------------------------- */

/* Takes everything of `old` but its status. */
static void keep_all_but_status(cJSON *new, const cJSON *old) {
        cJSON *status = cJSON_DetachItemFromObjectCaseSensitive(new, "status"), *child;

        while (new->child)
                cJSON_Delete(cJSON_DetachItemViaPointer(new, new->child));
        for (child = old->child; child; child = child->next)
                if (!streq(child->string, "status"))
                        fj_set_copy(new, child->string, child);
        if (status)
                fj_set(new, "status", status);
}

static bool same_but_metadata(const cJSON *a, const cJSON *b) {
        const cJSON *m;

        cJSON_ArrayForEach (m, a)
                if (!streq(m->string, "metadata") && !fj_equal(m, fj_member(b, m->string)))
                        return false;
        cJSON_ArrayForEach (m, b)
                if (!streq(m->string, "metadata") && !fj_member(a, m->string))
                        return false;
        return true;
}

/* rest.BeforeUpdate(): what no update can change. */
static void keep_system_fields(cJSON *new, const cJSON *old) {
        cJSON *meta = fj_object(new, "metadata");
        const cJSON *was = fj_get(old, "metadata", NULL);

        fj_set_copy(meta, "generation", fj_member(was, "generation"));
        if (isempty(fj_string(meta, "uid", NULL)))
                fj_set_copy(meta, "uid", fj_member(was, "uid"));
        fj_set_copy(meta, "creationTimestamp", fj_member(was, "creationTimestamp"));
        if (fj_member(was, "deletionTimestamp"))
                fj_set_copy(meta, "deletionTimestamp", fj_member(was, "deletionTimestamp"));
        if (fj_member(was, "deletionGracePeriodSeconds") && !fj_member(meta, "deletionGracePeriodSeconds"))
                fj_set_copy(meta, "deletionGracePeriodSeconds",
                            fj_member(was, "deletionGracePeriodSeconds"));
}

void fake_strategy_prepare_update(const FakeResource *r, const char *subresource, cJSON *new,
                                  const cJSON *old) {
        bool status = streq_ptr(subresource, "status");

        if (status && (r->custom || r->id == FAKE_VOLUMEATTACHMENTS))
                keep_all_but_status(new, old);
        else if (status)
                fj_set_copy(new, "spec", fj_member(old, "spec"));
        else if (r->has_status)
                fj_set_copy(new, "status", fj_member(old, "status"));
        keep_system_fields(new, old);

        if (status && r->id == FAKE_PODS)
                fj_set_copy(fj_object(new, "metadata"), "ownerReferences",
                            fj_get(old, "metadata", "ownerReferences", NULL));
        if (!status && r->has_generation && !same_but_metadata(new, old))
                fj_set_int(fj_object(new, "metadata"), "generation",
                           fj_int(old, 0, "metadata", "generation", NULL) + 1);
}
