/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"
#include "strv.h"

/* What goes because something else went: pods of a node that is gone or out of service, dependents of a
 * deleted owner, the content of a namespace. */

#define POD_GC_DEFAULT_USEC (40 * USEC_PER_SEC)
#define POD_GC_PERIOD_USEC (20 * USEC_PER_SEC)

static void resync_nothing(FakeCluster *c, FakeQueue *q) {
}

/* -- pods without a node (pkg/controller/podgc) -------------------------------------------------------- */

static bool out_of_service(const cJSON *node) {
        return fj_find(fj_get(node, "spec", "taints", NULL), "key", "node.kubernetes.io/out-of-service") &&
               !fake_condition_is(node, "Ready", "True");
}

static void observe_pod_gc(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        usec_t delay = c->options.pod_gc_usec > 0 ? c->options.pod_gc_usec : POD_GC_DEFAULT_USEC;

        if (change->resource->id == FAKE_NODES && !change->new)
                fake_queue_add_in(q, fj_string(change->old->json, "metadata", "name", NULL), delay);
        else if (change->resource->id == FAKE_NODES && out_of_service(change->new->json))
                fake_queue_add(q, fj_string(change->new->json, "metadata", "name", NULL));
        else if (change->resource->id == FAKE_PODS && change->new) {
                const char *name = fj_string(change->new->json, "spec", "nodeName", NULL);
                const cJSON *node = isempty(name) ? NULL : fake_store_get(c->store, FAKE_NODES, NULL, name);

                if (!isempty(name) && !node)
                        fake_queue_add_in(q, name, delay);
                else if (node && out_of_service(node) &&
                         fj_get(change->new->json, "metadata", "deletionTimestamp", NULL))
                        fake_queue_add_in(q, name, POD_GC_PERIOD_USEC);
        }
}

static void resync_pod_gc(FakeCluster *c, FakeQueue *q) {
        const cJSON *pod;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, NULL) {
                const char *node = fj_string(pod, "spec", "nodeName", NULL);

                if (!isempty(node) && !fake_store_get(c->store, FAKE_NODES, NULL, node))
                        fake_queue_add(q, node);
        }
}

/* One at a time: a delete ends the walk over the store. */
static bool remove_one(FakeCluster *c, const char *node, bool terminating_only) {
        const cJSON *pod;

        FAKE_STORE_FOREACH_NODE_POD (pod, c->store, node) {
                _cleanup_free_ char *ns = NULL, *name = NULL;
                bool held, going;

                held = cJSON_GetArraySize(fj_get(pod, "metadata", "finalizers", NULL)) > 0;
                going = fj_get(pod, "metadata", "deletionTimestamp", NULL);
                if ((terminating_only && !going) ||
                    (held && going && fj_int(pod, 1, "metadata", "deletionGracePeriodSeconds", NULL) == 0))
                        continue;
                ns = MUST(strdup(fj_string(pod, "metadata", "namespace", NULL)));
                name = MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
                fake_delete(c, FAKE_PODS, ns, name, 0);
                return true;
        }
        return false;
}

static void sync_pod_gc(FakeCluster *c, FakeQueue *q, const char *key) {
        const cJSON *node = fake_store_get(c->store, FAKE_NODES, NULL, key);

        if (node && !out_of_service(node))
                return;
        while (remove_one(c, key, node))
                ;
}

const FakeController fake_pod_gc_controller = { "fake-pod-gc", observe_pod_gc, sync_pod_gc, resync_pod_gc };

/* -- owners and deletion finalizers (pkg/controller/garbagecollector) ---------------------------------- */

static bool has_gc_finalizer(const cJSON *object) {
        const cJSON *f = fj_get(object, "metadata", "finalizers", NULL);

        return fj_array_has(f, "foregroundDeletion") || fj_array_has(f, "orphan");
}

/* Keys: "id uid ns name" of what went or is to be let go. */
static void observe_gc(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        const cJSON *object = fake_change_object(change);
        _cleanup_free_ char *key = NULL;

        if (change->new &&
            (!fj_get(object, "metadata", "deletionTimestamp", NULL) || !has_gc_finalizer(object)))
                return;
        key = MUST(strf("%d %s %s %s", change->resource->id,
                        strempty(fj_string(object, "metadata", "uid", NULL)),
                        fj_string(object, "metadata", "namespace", NULL)
                                ? fj_string(object, "metadata", "namespace", NULL)
                                : "-",
                        fj_string(object, "metadata", "name", NULL)));
        fake_queue_add(q, key);
}

/* Deletes a pod of that owner which is not going yet. */
static bool delete_dependent(FakeCluster *c, const char *uid) {
        const cJSON *pod;

        for (size_t i = 0; (pod = fake_version_json(fake_store_owned_pod(c->store, uid, i))); i++) {
                _cleanup_free_ char *ns = NULL, *name = NULL;

                if (fj_get(pod, "metadata", "deletionTimestamp", NULL))
                        continue;
                ns = MUST(strdup(fj_string(pod, "metadata", "namespace", NULL)));
                name = MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
                fake_delete(c, FAKE_PODS, ns, name, -1);
                return true;
        }
        return false;
}

static void drop_gc_finalizers(FakeCluster *c, const FakeResource *r, const char *ns, const char *name) {
        static const char *const ours[] = { "foregroundDeletion", "orphan" };
        cJSON *new = fj_copy(fake_store_get(c->store, r->id, ns, name)), *meta = fj_object(new, "metadata"),
              *f, *e, *next;

        f = fj_array(meta, "finalizers");
        for (e = f->child; e; e = next) {
                next = e->next;
                if (streq(e->valuestring, ours[0]) || streq(e->valuestring, ours[1]))
                        cJSON_Delete(cJSON_DetachItemViaPointer(f, e));
        }
        if (f->child || fj_int(meta, 0, "deletionGracePeriodSeconds", NULL) > 0) {
                if (!f->child)
                        fj_remove(meta, "finalizers");
                fake_store_update(c->store, r->id, new);
                return;
        }
        cJSON_Delete(new);
        fake_store_delete(c->store, r->id, ns, name);
}

static void sync_gc(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_strv_free_ char **parts = NULL;
        const FakeResource *r;
        const cJSON *object;
        const char *ns;
        int k = strv_split(key, " ", &parts);

        assert(k >= 0 && strv_length(parts) == 4);
        r = fake_resource(atoi(parts[0]));
        ns = streq(parts[2], "-") ? NULL : parts[2];
        object = fake_store_get(c->store, r->id, ns, parts[3]);
        if (object && streq_ptr(fj_string(object, "metadata", "uid", NULL), parts[1])) {
                if (!has_gc_finalizer(object))
                        return;
                if (!fj_array_has(fj_get(object, "metadata", "finalizers", NULL), "orphan"))
                        while (delete_dependent(c, parts[1]))
                                ;
                drop_gc_finalizers(c, r, ns, parts[3]);
                return;
        }
        if (r->id == FAKE_REPLICASETS || r->id == FAKE_DAEMONSETS || r->id == FAKE_STATEFULSETS ||
            r->id == FAKE_NODES)
                while (delete_dependent(c, parts[1]))
                        ;
}

const FakeController fake_gc_controller = { "fake-gc", observe_gc, sync_gc, resync_nothing };

/* -- namespaces (pkg/controller/namespace) ------------------------------------------------------------- */

static void observe_namespace(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        const cJSON *object = fake_change_object(change);
        const char *ns = fj_string(object, "metadata", "namespace", NULL);

        if (change->resource->id == FAKE_NAMESPACES) {
                if (change->new &&fj_get(object, "metadata", "deletionTimestamp", NULL))
                        fake_queue_add(q, fj_string(object, "metadata", "name", NULL));
        } else if (ns && !change->new &&fj_get(fake_store_get(c->store, FAKE_NAMESPACES, NULL, ns),
                                               "metadata", "deletionTimestamp", NULL))
                fake_queue_add(q, ns);
}

/* True: something is left. */
static bool empty_namespace(FakeCluster *c, const char *ns) {
        bool left = false;

        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++) {
                size_t n = 0, i = fake_store_first(c->store, id, ns);
                FakeVersion **all;

                if (!fake_resource(id)->namespaced || !fake_store_in_ns(c->store, id, ns, i))
                        continue;
                all = fake_store_snapshot(c->store, id, fake_store_rv(c->store), &n);
                for (size_t k = 0; k < n; k++)
                        if (streq_ptr(fj_string(all[k]->json, "metadata", "namespace", NULL), ns) &&
                            !fj_get(all[k]->json, "metadata", "deletionTimestamp", NULL))
                                fake_delete(c, id, ns, fj_string(all[k]->json, "metadata", "name", NULL),
                                            -1);
                fake_versions_free(all, n);
                left |= fake_store_in_ns(c->store, id, ns, fake_store_first(c->store, id, ns)) != NULL;
        }
        return left;
}

static void sync_namespace(FakeCluster *c, FakeQueue *q, const char *key) {
        const cJSON *ns = fake_store_get(c->store, FAKE_NAMESPACES, NULL, key);

        if (ns && fj_get(ns, "metadata", "deletionTimestamp", NULL) && !empty_namespace(c, key))
                fake_store_delete(c->store, FAKE_NAMESPACES, NULL, key);
}

const FakeController fake_namespace_controller = { "fake-namespace", observe_namespace, sync_namespace,
                                                   resync_nothing };
