/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-controllers.h"

#include <stdlib.h>

#define DELAY_DEFAULT_USEC (5 * USEC_PER_MSEC)

typedef struct FakeQueueItem {
        FakeQueue *queue;
        Timer *timer;
        char key[];
} FakeQueueItem;

static const FakeController *const controllers[_FAKE_CONTROLLER_MAX] = {
        [FAKE_CONTROLLER_PDB] = &fake_pdb_controller,
        [FAKE_CONTROLLER_REPLICASET] = &fake_replicaset_controller,
        [FAKE_CONTROLLER_STATEFULSET] = &fake_statefulset_controller,
        [FAKE_CONTROLLER_VOLUME] = &fake_volume_controller,
        [FAKE_CONTROLLER_SCHEDULER] = &fake_scheduler_controller,
        [FAKE_CONTROLLER_KUBELET] = &fake_kubelet_controller,
        [FAKE_CONTROLLER_NODE_STATUS] = &fake_node_status_controller,
        [FAKE_CONTROLLER_NODE_TAINTS] = &fake_node_taints_controller,
        [FAKE_CONTROLLER_TAINT_EVICTION] = &fake_taint_eviction_controller,
        [FAKE_CONTROLLER_POD_GC] = &fake_pod_gc_controller,
        [FAKE_CONTROLLER_GC] = &fake_gc_controller,
        [FAKE_CONTROLLER_NAMESPACE] = &fake_namespace_controller,
};

/* -- the queue ----------------------------------------------------------------------------------------- */

static const FakeController *controller_of(const FakeQueue *q) {
        return controllers[q - q->cluster->queues];
}

static void *item_free(void *p) {
        FakeQueueItem *item = p;

        timer_free(item->timer);
        return mfree(item);
}

static void on_due(Timer *t, void *userdata) {
        FakeQueueItem *item = userdata;
        FakeQueue *q = item->queue;

        hashmap_remove(q->items, item->key);
        controller_of(q)->sync(q->cluster, q, item->key);
        item_free(item);
}

void fake_queue_add_in(FakeQueue *q, const char *key, usec_t delay_usec) {
        FakeQueueItem *item;
        size_t n = strlen(key) + 1;
        int r;

        if (!q->on)
                return;
        item = hashmap_get(q->items, key);
        if (!item) {
                item = MUST((FakeQueueItem *) calloc(1, sizeof(FakeQueueItem) + n));
                memcpy(item->key, key, n);
                item->queue = q;
                r = timer_new(q->cluster->loop, controller_of(q)->name, on_due, item, &item->timer);
                assert(r >= 0);
                r = hashmap_put(q->items, key, item);
                assert(r >= 0);
        }
        timer_arm_earlier(item->timer, usec_add(loop_now(q->cluster->loop), delay_usec));
}

usec_t fake_cluster_jitter(FakeCluster *c, usec_t usec, unsigned permille) {
        return c->options.even ? usec : random_jitter(c->random, usec, permille);
}

void fake_queue_add(FakeQueue *q, const char *key) {
        usec_t mean = q->cluster->options.delay_usec;

        fake_queue_add_in(q, key,
                          fake_cluster_jitter(q->cluster, mean > 0 ? mean : DELAY_DEFAULT_USEC, 500));
}

/* -- all of them --------------------------------------------------------------------------------------- */

static void on_change(const FakeChange *change, void *userdata) {
        FakeCluster *c = userdata;

        for (FakeControllerId id = 0; id < _FAKE_CONTROLLER_MAX; id++)
                controllers[id]->observe(c, &c->queues[id], change);
}

static Hashmap *map_new(void) {
        Hashmap *m = NULL;
        int r = hashmap_new(0, &m);

        assert(r >= 0);
        return m;
}

FakeCluster *fake_cluster_new(Loop *loop, Random *random, const FakeClusterOptions *options) {
        static const char *const namespaces[] = { "default", "kube-system", "kube-public",
                                                  "kube-node-lease" };
        FakeCluster *c = MUST(new0(FakeCluster, 1));

        c->loop = loop;
        c->random = random;
        c->options = options ? *options : (FakeClusterOptions){ 0 };
        c->store = fake_store_new(loop, c->options.history);
        c->authz = fake_authz_new();
        c->stopped = map_new();
        c->stops = map_new();
        c->node_pods = map_new();
        c->unbound = map_new();
        for (FakeControllerId id = 0; id < _FAKE_CONTROLLER_MAX; id++)
                c->queues[id] = (FakeQueue){ c, map_new(), !(c->options.controllers_off & 1u << id) };
        fake_store_observe(c->store, on_change, c);
        c->api = fake_api_new(loop, random, c->store, c->authz, &c->options.api);
        for (size_t i = 0; i < ELEMENTSOF(namespaces); i++)
                fake_put(c, FAKE_NAMESPACES,
                         fj_parse("{'metadata':{'name':'%s','labels':{'kubernetes.io/metadata.name':'%s'}},"
                                  "'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}",
                                  namespaces[i], namespaces[i]));
        return c;
}

FakeCluster *fake_cluster_free(FakeCluster *c) {
        if (!c)
                return NULL;

        fake_api_free(c->api);
        for (FakeControllerId id = 0; id < _FAKE_CONTROLLER_MAX; id++)
                hashmap_free_with(c->queues[id].items, item_free);
        hashmap_free_with(c->stopped, mfree);
        hashmap_free_with(c->stops, mfree);
        hashmap_free_with(c->node_pods, mfree);
        hashmap_free(c->unbound);
        fake_authz_free(c->authz);
        fake_store_free(c->store);
        return mfree(c);
}

void fake_cluster_handle(HttpExchange *x, void *cluster) {
        FakeCluster *c = cluster;

        fake_api_handle(x, c->api);
}

FakeApi *fake_cluster_api(FakeCluster *c) {
        return c->api;
}

FakeStore *fake_cluster_store(FakeCluster *c) {
        return c->store;
}

FakeAuthz *fake_cluster_authz(FakeCluster *c) {
        return c->authz;
}

void fake_cluster_compact(FakeCluster *c) {
        fake_store_compact(c->store);
        fake_watches_changed(c->api);
}

void fake_cluster_restore(FakeCluster *c, const FakeBackup *b, uint64_t bump, usec_t away_usec) {
        fake_api_away_until(c->api, usec_add(loop_now(c->loop), away_usec));
        fake_api_cut_watches(c->api);
        fake_store_restore(c->store, b, bump);
        for (FakeControllerId id = 0; id < _FAKE_CONTROLLER_MAX; id++)
                if (c->queues[id].on)
                        controllers[id]->resync(c, &c->queues[id]);
}

void fake_cluster_set_controller(FakeCluster *c, FakeControllerId id, bool on) {
        FakeQueue *q = &c->queues[id];
        FakeQueueItem *item;

        if (q->on == on)
                return;
        q->on = on;
        if (on) {
                controllers[id]->resync(c, q);
                return;
        }
        HASHMAP_FOREACH (item, q->items)
                item_free(item);
        hashmap_clear(q->items);
}

/* -- what several need --------------------------------------------------------------------------------- */

char *fake_change_key(const FakeChange *change) {
        return fake_object_key(fake_change_object(change));
}

bool fake_key_split(const char *key, char **ret_ns, char **ret_name) {
        const char *slash = strchr(key, '/');

        if (!slash)
                return false;
        *ret_ns = MUST(memdup_str(key, (size_t) (slash - key)));
        *ret_name = MUST(strdup(slash + 1));
        return true;
}

/* value NULL: it shall not be there. */
static bool replace_string(cJSON *o, const char *key, const char *value) {
        if (streq_ptr(fj_string(o, key, NULL), value))
                return false;
        if (value)
                fj_set_string(o, key, value);
        else
                fj_remove(o, key);
        return true;
}

bool fake_set_condition(const FakeStore *s, cJSON *status, const char *type, const char *value,
                        const char *reason, const char *message) {
        cJSON *conditions = fj_array(status, "conditions"), *c = fj_find(conditions, "type", type);
        char now[RFC3339_MAX];
        bool changed = !c;

        if (!c) {
                c = fj_parse("{'type':'%s'}", type);
                cJSON_AddItemToArray(conditions, c);
        }
        if (replace_string(c, "status", value)) {
                fj_set_string(c, "lastTransitionTime", fake_store_timestamp(s, now));
                changed = true;
        }
        changed |= replace_string(c, "reason", reason);
        changed |= replace_string(c, "message", message);
        return changed;
}

bool fake_condition_is(const cJSON *object, const char *type, const char *value) {
        const cJSON *c = fj_find(fj_get(object, "status", "conditions", NULL), "type", type);

        return streq_ptr(fj_string(c, "status", NULL), value);
}

const cJSON *fake_controller_of(const cJSON *object) {
        const cJSON *o;

        cJSON_ArrayForEach (o, fj_get(object, "metadata", "ownerReferences", NULL))
                if (fj_true(o, "controller", NULL))
                        return o;
        return NULL;
}

bool fake_pod_is_terminal(const cJSON *pod) {
        const char *phase = strempty(fj_string(pod, "status", "phase", NULL));

        return streq(phase, "Succeeded") || streq(phase, "Failed");
}

/* core/v1 Toleration.ToleratesTaint() */
bool fake_tolerates(const cJSON *pod, const cJSON *taint) {
        const char *key = strempty(fj_string(taint, "key", NULL)),
                   *effect = strempty(fj_string(taint, "effect", NULL));
        const char *value = strempty(fj_string(taint, "value", NULL));
        const cJSON *t;

        cJSON_ArrayForEach (t, fj_get(pod, "spec", "tolerations", NULL)) {
                const char *k = strempty(fj_string(t, "key", NULL)),
                           *e = strempty(fj_string(t, "effect", NULL));
                const char *op = fj_string(t, "operator", NULL);

                if ((e[0] && !streq(e, effect)) || (k[0] && !streq(k, key)))
                        continue;
                if (streq_ptr(op, "Exists") || streq(strempty(fj_string(t, "value", NULL)), value))
                        return true;
        }
        return false;
}

char *fake_random_suffix(Random *r, char ret[6]) {
        static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";

        for (unsigned i = 0; i < 5; i++)
                ret[i] = alphabet[random_below(r, sizeof(alphabet) - 1)];
        ret[5] = 0;
        return ret;
}
