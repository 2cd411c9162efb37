/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"

/*
 * pkg/controller/statefulset with podManagementPolicy OrderedReady: names that stay, one at a time from the
 * lowest, each only when those before it are Running and Ready; a pod is made again only when the one of its
 * name is gone; from the highest when there are too many.
 */

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        const cJSON *object = fake_change_object(change), *owner;

        if (change->resource->id == FAKE_STATEFULSETS && change->new) {
                _cleanup_free_ char *key = fake_change_key(change);

                fake_queue_add(q, key);
        } else if (change->resource->id == FAKE_PODS && (owner = fake_controller_of(object)) &&
                   streq_ptr(fj_string(owner, "kind", NULL), "StatefulSet")) {
                _cleanup_free_ char *key = MUST(strf("%s/%s", fj_string(object, "metadata", "namespace", NULL),
                                                     fj_string(owner, "name", NULL)));

                fake_queue_add(q, key);
        }
}

static void resync(FakeCluster *c, FakeQueue *q) {
        const cJSON *set;

        FAKE_STORE_FOREACH (set, c->store, FAKE_STATEFULSETS, NULL) {
                _cleanup_free_ char *key = fake_object_key(set);

                fake_queue_add(q, key);
        }
}

static char *pod_name(const char *set, int64_t ordinal) {
        return MUST(strf("%s-%lld", set, (long long) ordinal));
}

/* A claim from volumeClaimTemplates keeps its name with the pod's. */
static void add_claims(cJSON *spec, const cJSON *set, const char *pod) {
        const cJSON *t;

        cJSON_ArrayForEach (t, fj_get(set, "spec", "volumeClaimTemplates", NULL)) {
                const char *name = fj_string(t, "metadata", "name", NULL);

                cJSON_AddItemToArray(fj_array(spec, "volumes"),
                                     fj_parse("{'name':'%s','persistentVolumeClaim':{'claimName':'%s-%s'}}",
                                              name, name, pod));
        }
}

static void create_pod(FakeCluster *c, const cJSON *set, int64_t ordinal) {
        const cJSON *template = fj_get(set, "spec", "template", NULL);
        const char *name = fj_string(set, "metadata", "name", NULL);
        _cleanup_free_ char *pod = pod_name(name, ordinal);
        _cleanup_cjson_ cJSON *body = fj_parse("{}");
        cJSON *meta;

        fj_set_copy(body, "metadata", fj_get(template, "metadata", NULL));
        fj_set_copy(body, "spec", fj_get(template, "spec", NULL));
        meta = fj_object(body, "metadata");
        fj_set_string(meta, "name", pod);
        fj_set_string(meta, "namespace", fj_string(set, "metadata", "namespace", NULL));
        fj_set_string(fj_object(meta, "labels"), "statefulset.kubernetes.io/pod-name", pod);
        cJSON_AddItemToArray(fj_array(meta, "ownerReferences"),
                             fj_parse("{'apiVersion':'apps/v1','kind':'StatefulSet','name':'%s','uid':'%s',"
                                      "'controller':true,'blockOwnerDeletion':true}",
                                      name, fj_string(set, "metadata", "uid", NULL)));
        add_claims(fj_object(body, "spec"), set, pod);
        fake_create(c, FAKE_PODS, TAKE_PTR(body));
}

/* True: this one is as it should be, and the next may be looked at. */
static bool settle(FakeCluster *c, const cJSON *set, const char *ns, int64_t ordinal) {
        _cleanup_free_ char *name = pod_name(fj_string(set, "metadata", "name", NULL), ordinal);
        const cJSON *pod = fake_store_get(c->store, FAKE_PODS, ns, name);

        if (!pod)
                create_pod(c, set, ordinal);
        else if (fake_pod_is_terminal(pod) && !fj_get(pod, "metadata", "deletionTimestamp", NULL))
                fake_delete(c, FAKE_PODS, ns, name, -1);
        else
                return fake_condition_is(pod, "Ready", "True") &&
                       !fj_get(pod, "metadata", "deletionTimestamp", NULL);
        return false;
}

/* The highest ordinal that a pod of it has; -1: none. There may be gaps below. */
static int64_t highest(FakeCluster *c, const cJSON *set, const char *ns) {
        const char *uid = fj_string(set, "metadata", "uid", NULL);
        int64_t max = -1;
        const cJSON *pod;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, ns)
                if (streq_ptr(fj_string(fake_controller_of(pod), "uid", NULL), uid)) {
                        const char *name = fj_string(pod, "metadata", "name", NULL);

                        max = MAX(max, (int64_t) strtoll(strrchr(name, '-') + 1, NULL, 10));
                }
        return max;
}

/* One at a time, from the highest. */
static void shorten(FakeCluster *c, const cJSON *set, const char *ns, int64_t want) {
        int64_t last = highest(c, set, ns);
        _cleanup_free_ char *name = pod_name(fj_string(set, "metadata", "name", NULL), last);

        if (last >= want &&
            !fj_get(fake_store_get(c->store, FAKE_PODS, ns, name), "metadata", "deletionTimestamp", NULL))
                fake_delete(c, FAKE_PODS, ns, name, -1);
}

static void write_status(FakeCluster *c, const char *ns, const char *name) {
        cJSON *new = fj_copy(fake_store_get(c->store, FAKE_STATEFULSETS, ns, name)),
              *status = fj_object(new, "status");
        int64_t replicas = 0, ready = 0;

        for (;; replicas++) {
                _cleanup_free_ char *pod_id = pod_name(name, replicas);
                const cJSON *pod = fake_store_get(c->store, FAKE_PODS, ns, pod_id);

                if (!pod)
                        break;
                ready += fake_condition_is(pod, "Ready", "True");
        }
        fj_set_int(status, "replicas", replicas);
        fj_set_int(status, "readyReplicas", ready);
        fj_set_copy(status, "observedGeneration", fj_get(new, "metadata", "generation", NULL));
        fake_store_update(c->store, FAKE_STATEFULSETS, new);
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_free_ char *ns = NULL, *name = NULL;
        int64_t ordinal = 0, want;
        const cJSON *set;

        fake_key_split(key, &ns, &name);
        set = fake_store_get(c->store, FAKE_STATEFULSETS, ns, name);
        if (!set || fj_get(set, "metadata", "deletionTimestamp", NULL))
                return;
        want = fj_int(set, 1, "spec", "replicas", NULL);
        while (ordinal < want && settle(c, set, ns, ordinal))
                ordinal++;
        if (ordinal == want)
                shorten(c, set, ns, want);
        write_status(c, ns, name);
}

const FakeController fake_statefulset_controller = { "fake-statefulset", observe, sync, resync };
