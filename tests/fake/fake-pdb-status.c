/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"

/*
 * pkg/controller/disruption: status of PodDisruptionBudgets. maxUnavailable and percentages count against
 * the scale of the pods' controllers; a pod whose controller is not found makes the budget fail safe:
 * nothing may be disrupted.
 */

#define DELETION_TIMEOUT_USEC (2 * USEC_PER_MINUTE)

typedef struct Numbers {
        int64_t expected, desired, healthy;
        const char *error; /* fail safe */
} Numbers;

static bool pdb_matches(const cJSON *pdb, const cJSON *pod) {
        return fake_object_selector_matches(fj_get(pdb, "spec", "selector", NULL),
                                            fj_get(pod, "metadata", "labels", NULL));
}

static void mark_for_pod(FakeCluster *c, FakeQueue *q, const cJSON *pod) {
        const char *ns = fj_string(pod, "metadata", "namespace", NULL);
        const cJSON *pdb;

        FAKE_STORE_FOREACH (pdb, c->store, FAKE_PDBS, ns)
                if (pdb_matches(pdb, pod)) {
                        _cleanup_free_ char *key = fake_object_key(pdb);

                        fake_queue_add(q, key);
                }
}

static void mark_all(FakeCluster *c, FakeQueue *q, const char *ns) {
        const cJSON *pdb;

        FAKE_STORE_FOREACH (pdb, c->store, FAKE_PDBS, ns) {
                _cleanup_free_ char *key = fake_object_key(pdb);

                fake_queue_add(q, key);
        }
}

static void resync(FakeCluster *c, FakeQueue *q) {
        mark_all(c, q, NULL);
}

/* Nothing that count() looks at: in large clusters the most of what kubelets write. */
static bool counts_the_same(const cJSON *old, const cJSON *new) {
        return fake_condition_is(old, "Ready", "True") == fake_condition_is(new, "Ready", "True") &&
               !fj_get(old, "metadata", "deletionTimestamp", NULL) ==
                       !fj_get(new, "metadata", "deletionTimestamp", NULL) &&
               fj_equal(fj_get(old, "metadata", "labels", NULL), fj_get(new, "metadata", "labels", NULL)) &&
               fj_equal(fj_get(old, "metadata", "ownerReferences", NULL),
                        fj_get(new, "metadata", "ownerReferences", NULL));
}

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        if (change->resource->id == FAKE_PODS && change->old && change->new &&
            counts_the_same(change->old->json, change->new->json))
                return;
        if (change->resource->id == FAKE_PDBS && change->new) {
                _cleanup_free_ char *key = fake_change_key(change);

                fake_queue_add(q, key);
        } else if (change->resource->id == FAKE_PODS) {
                if (change->old)
                        mark_for_pod(c, q, change->old->json);
                if (change->new)
                        mark_for_pod(c, q, change->new->json);
        } else if (change->resource->id == FAKE_REPLICASETS || change->resource->id == FAKE_STATEFULSETS ||
                   change->resource->id == FAKE_DEPLOYMENTS)
                mark_all(c, q, fj_string(fake_change_object(change), "metadata", "namespace", NULL));
}

/* -- counting ------------------------------------------------------------------------------------------ */

/* The scale of a pod's controller; -1: not found. */
static int64_t scale_of(FakeCluster *c, const char *ns, const cJSON *owner) {
        static const struct {
                const char *kind;
                FakeResourceId id;
        } kinds[] = {
                { "ReplicaSet", FAKE_REPLICASETS },
                { "StatefulSet", FAKE_STATEFULSETS },
                { "Deployment", FAKE_DEPLOYMENTS },
        };
        const char *kind = fj_string(owner, "kind", NULL), *name = fj_string(owner, "name", NULL);

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (streq_ptr(kind, kinds[i].kind)) {
                        const cJSON *o = fake_store_get(c->store, kinds[i].id, ns, name);

                        if (o &&
                            streq_ptr(fj_string(o, "metadata", "uid", NULL), fj_string(owner, "uid", NULL)))
                                return fj_int(o, 1, "spec", "replicas", NULL);
                }
        return -1;
}

/* The sum over all controllers of matching pods, each once. */
static int64_t expected_scale(FakeCluster *c, const cJSON *pdb, Numbers *n) {
        const char *ns = fj_string(pdb, "metadata", "namespace", NULL);
        _cleanup_(hashmap_freep) Hashmap *seen = NULL;
        int64_t sum = 0;
        const cJSON *pod;
        int r = hashmap_new(0, &seen);

        assert(r >= 0);
        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, ns) {
                const cJSON *owner = pdb_matches(pdb, pod) ? fake_controller_of(pod) : NULL;
                const char *uid = fj_string(owner, "uid", NULL);
                int64_t scale;

                if (!uid || hashmap_put(seen, uid, n) == -EEXIST)
                        continue;
                scale = scale_of(c, ns, owner);
                if (scale < 0)
                        n->error = "found no controllers for pod";
                else
                        sum += scale;
        }
        return sum;
}

/* intstr.GetScaledValueFromIntOrPercent(), rounding up. */
static int64_t scaled(const cJSON *v, int64_t total) {
        if (cJSON_IsNumber(v))
                return (int64_t) v->valuedouble;
        return (strtoll(strempty(v->valuestring), NULL, 10) * total + 99) / 100;
}

static void count_expected(FakeCluster *c, const cJSON *pdb, int64_t matching, Numbers *n) {
        const cJSON *max = fj_get(pdb, "spec", "maxUnavailable", NULL),
                    *min = fj_get(pdb, "spec", "minAvailable", NULL);

        if (max) {
                n->expected = expected_scale(c, pdb, n);
                n->desired = MAX(n->expected - scaled(max, n->expected), (int64_t) 0);
        } else if (cJSON_IsString(min)) {
                n->expected = expected_scale(c, pdb, n);
                n->desired = scaled(min, n->expected);
        } else if (min) {
                n->expected = matching;
                n->desired = scaled(min, 0);
        }
}

/* It was evicted, and is still to go: a budget counts it no more, for a while. */
static bool still_disrupted(FakeQueue *q, const char *key, const cJSON *was, const cJSON *pod, usec_t now,
                            cJSON *disrupted) {
        const char *name = fj_string(pod, "metadata", "name", NULL), *since = fj_string(was, name, NULL);
        usec_t at;

        if (!since || rfc3339_parse(since, &at) < 0 || at + DELETION_TIMEOUT_USEC <= now)
                return false;
        fj_set_string(disrupted, name, since);
        fake_queue_add_in(q, key, at + DELETION_TIMEOUT_USEC - now + USEC_PER_MSEC);
        return true;
}

/* One walk over the budget's pods; `disrupted` keeps the entries that still count. */
static Numbers count(FakeCluster *c, FakeQueue *q, const cJSON *pdb, const char *key, cJSON *disrupted) {
        const cJSON *was = fj_get(pdb, "status", "disruptedPods", NULL), *pod;
        const char *ns = fj_string(pdb, "metadata", "namespace", NULL);
        usec_t now = loop_wall(c->loop);
        int64_t matching = 0;
        Numbers n = { 0 };

        for (size_t i = fake_store_first(c->store, FAKE_PODS, ns);
             (pod = fake_store_in_ns(c->store, FAKE_PODS, ns, i)); i++) {
                FakeHealth health;

                if (!pdb_matches(pdb, pod))
                        continue;
                matching++;
                health = fake_version_health(fake_store_at(c->store, FAKE_PODS, i));
                if (health != FAKE_GOING && !(was && still_disrupted(q, key, was, pod, now, disrupted)))
                        n.healthy += health == FAKE_READY;
        }
        count_expected(c, pdb, matching, &n);
        return n;
}

/* -- writing ------------------------------------------------------------------------------------------- */

static void set_allowed(FakeCluster *c, cJSON *status, const Numbers *n) {
        int64_t allowed = n->expected <= 0 ? 0 : MAX(n->healthy - n->desired, (int64_t) 0);

        fj_set_int(status, "currentHealthy", n->healthy);
        fj_set_int(status, "desiredHealthy", n->desired);
        fj_set_int(status, "expectedPods", n->expected);
        fj_set_int(status, "disruptionsAllowed", allowed);
        fake_set_condition(c->store, status, "DisruptionAllowed", allowed > 0 ? "True" : "False",
                           allowed > 0 ? "SufficientPods" : "InsufficientPods", "");
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_free_ char *ns = NULL, *name = NULL;
        cJSON *new, *status, *disrupted;
        const cJSON *pdb;
        Numbers n;

        fake_key_split(key, &ns, &name);
        pdb = fake_store_get(c->store, FAKE_PDBS, ns, name);
        if (!pdb)
                return;

        disrupted = MUST(cJSON_CreateObject());
        n = count(c, q, pdb, key, disrupted);
        new = fj_copy(pdb);
        status = fj_object(new, "status");
        if (n.error) {
                fj_set_int(status, "disruptionsAllowed", 0);
                fake_set_condition(c->store, status, "DisruptionAllowed", "False", "SyncFailed", n.error);
                cJSON_Delete(disrupted);
        } else {
                set_allowed(c, status, &n);
                fj_set_copy(status, "observedGeneration", fj_get(pdb, "metadata", "generation", NULL));
                fj_set_copy(fj_find(fj_get(status, "conditions", NULL), "type", "DisruptionAllowed"),
                            "observedGeneration", fj_get(pdb, "metadata", "generation", NULL));
                if (disrupted->child)
                        fj_set(status, "disruptedPods", disrupted);
                else {
                        fj_remove(status, "disruptedPods");
                        cJSON_Delete(disrupted);
                }
        }
        fake_store_update(c->store, FAKE_PDBS, new);
}

const FakeController fake_pdb_controller = { "fake-pdb", observe, sync, resync };
