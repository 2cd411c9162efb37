/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"

/* Keeps as many pods as spec.replicas says: those that are going or done do not count. */

static void mark_owner(FakeQueue *q, const cJSON *pod) {
        const cJSON *owner = fake_controller_of(pod);
        _cleanup_free_ char *key = NULL;

        if (!streq_ptr(fj_string(owner, "kind", NULL), "ReplicaSet"))
                return;
        key = MUST(strf("%s/%s", fj_string(pod, "metadata", "namespace", NULL),
                        fj_string(owner, "name", NULL)));
        fake_queue_add(q, key);
}

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        if (change->resource->id == FAKE_REPLICASETS && change->new) {
                _cleanup_free_ char *key = fake_change_key(change);

                fake_queue_add(q, key);
        } else if (change->resource->id == FAKE_PODS)
                mark_owner(q, fake_change_object(change));
}

static void resync(FakeCluster *c, FakeQueue *q) {
        const cJSON *rs;

        FAKE_STORE_FOREACH (rs, c->store, FAKE_REPLICASETS, NULL) {
                _cleanup_free_ char *key = fake_object_key(rs);

                fake_queue_add(q, key);
        }
}

static bool is_ours(const cJSON *pod, const char *uid) {
        return streq_ptr(fj_string(fake_controller_of(pod), "uid", NULL), uid);
}

static bool is_active(const cJSON *pod) {
        return !fake_pod_is_terminal(pod) && !fj_get(pod, "metadata", "deletionTimestamp", NULL);
}

/* From the template, as a client would create it: the strategy's defaults come on top. */
static void create_pod(FakeCluster *c, const cJSON *rs) {
        const cJSON *template = fj_get(rs, "spec", "template", NULL);
        const char *ns = fj_string(rs, "metadata", "namespace", NULL),
                   *name = fj_string(rs, "metadata", "name", NULL);
        _cleanup_cjson_ cJSON *body = fj_parse("{}");
        _cleanup_free_ char *text = NULL;
        char suffix[6];
        cJSON *meta;

        fj_set_copy(body, "metadata", fj_get(template, "metadata", NULL));
        fj_set_copy(body, "spec", fj_get(template, "spec", NULL));
        meta = fj_object(body, "metadata");
        text = MUST(strf("%s-%s", name, fake_random_suffix(c->random, suffix)));
        fj_set_string(meta, "name", text);
        fj_set_string(meta, "generateName", name);
        fj_set_string(meta, "namespace", ns);
        cJSON_AddItemToArray(fj_array(meta, "ownerReferences"),
                             fj_parse("{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'%s','uid':'%s',"
                                      "'controller':true,'blockOwnerDeletion':true}",
                                      name, fj_string(rs, "metadata", "uid", NULL)));
        if (!fake_store_get(c->store, FAKE_PODS, ns, text))
                fake_create(c, FAKE_PODS, TAKE_PTR(body));
}

/* Those that run nowhere yet first. */
static char *choose_victim(FakeCluster *c, const char *ns, const char *uid) {
        const cJSON *pod, *victim = NULL;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, ns) {
                if (!is_ours(pod, uid) || !is_active(pod))
                        continue;
                if (!victim || (!fj_string(pod, "spec", "nodeName", NULL) &&
                                fj_string(victim, "spec", "nodeName", NULL)))
                        victim = pod;
        }
        return victim ? MUST(strdup(fj_string(victim, "metadata", "name", NULL))) : NULL;
}

static void write_status(FakeCluster *c, const char *ns, const char *name, const char *uid) {
        cJSON *new = fj_copy(fake_store_get(c->store, FAKE_REPLICASETS, ns, name)),
              *status = fj_object(new, "status");
        int64_t replicas = 0, ready = 0;
        const cJSON *pod;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, ns)
                if (is_ours(pod, uid) && is_active(pod)) {
                        replicas++;
                        ready += fake_condition_is(pod, "Ready", "True");
                }
        fj_set_int(status, "replicas", replicas);
        fj_set_int(status, "readyReplicas", ready);
        fj_set_int(status, "availableReplicas", ready);
        fj_set_copy(status, "observedGeneration", fj_get(new, "metadata", "generation", NULL));
        fake_store_update(c->store, FAKE_REPLICASETS, new);
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_free_ char *ns = NULL, *name = NULL, *uid = NULL;
        const cJSON *rs, *pod;
        int64_t have = 0, want;

        fake_key_split(key, &ns, &name);
        rs = fake_store_get(c->store, FAKE_REPLICASETS, ns, name);
        if (!rs || fj_get(rs, "metadata", "deletionTimestamp", NULL))
                return;

        uid = MUST(strdup(fj_string(rs, "metadata", "uid", NULL)));
        want = fj_int(rs, 1, "spec", "replicas", NULL);
        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, ns)
                have += is_ours(pod, uid) && is_active(pod);

        for (; have < want; have++)
                create_pod(c, rs);
        for (; have > want; have--) {
                _cleanup_free_ char *victim = choose_victim(c, ns, uid);

                fake_delete(c, FAKE_PODS, ns, victim, -1);
        }
        write_status(c, ns, name, uid);
}

const FakeController fake_replicaset_controller = { "fake-replicaset", observe, sync, resync };
