/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-returns.h"

#include "hashmap.h"
#include "string-util.h"

/* Maximum number of controllers that are counted per node. The pods of others are evicted as often as they come. */
#define CONTROLLERS_MAX 4096u

typedef struct Controller {
        size_t n_seen; /* its pods that this look has met */
        size_t n_now; /* ... and that are not on their way out */
        size_t width; /* the most of them at once: the size of one round; at least 1 */
        size_t n_ended;
        bool is_warned_of;
} Controller;

typedef struct SeenPod {
        Controller *controller; /* NULL: it is not counted */
        size_t round; /* 1: it was there before a pod of its controller was ended; 0: the look that has met it goes on */
        bool was_alive; /* a look has met it, and it was not on its way out */
        bool is_ended;
        unsigned generation;
} SeenPod;

struct PodReturns {
        Hashmap *controllers; /* "NAMESPACE/UID" of a controller; "NAMESPACE/": pods without one -> Controller */
        Hashmap *pods;        /* uid -> SeenPod */
        unsigned generation;
};

int pod_returns_new(PodReturns **ret) {
        _cleanup_(pod_returns_freep) PodReturns *r = new0(PodReturns, 1);
        int k;

        if (!r)
                return -ENOMEM;
        k = hashmap_new(0, &r->controllers);
        if (k >= 0)
                k = hashmap_new(0, &r->pods);
        if (k < 0)
                return k;
        *ret = TAKE_PTR(r);
        return 0;
}

PodReturns *pod_returns_free(PodReturns *r) {
        if (!r)
                return NULL;
        hashmap_free_with(r->controllers, mfree);
        hashmap_free_with(r->pods, mfree);
        return mfree(r);
}

static void map_clear(Hashmap *m) {
        void *value;

        HASHMAP_FOREACH (value, m)
                free(value);
        hashmap_clear(m);
}

void pod_returns_clear(PodReturns *r) {
        map_clear(r->controllers);
        map_clear(r->pods);
}

/* With the namespace, since a pod may name any uid as its controller's. What makes pods without a controller gives them the names that
 * it likes, so those of one namespace count together. NULL on ENOMEM. */
static char *key_of(const KubePod *pod) {
        const OwnerRef *owner = object_meta_controller(&pod->object.meta);

        return strf("%s/%s", strempty(pod->object.meta.ns), owner ? strempty(owner->uid) : "");
}

static Controller *controller_of(const PodReturns *r, const KubePod *pod) {
        _cleanup_free_ char *key = key_of(pod);

        return key ? hashmap_get(r->controllers, key) : NULL;
}

static Controller *controller_add(PodReturns *r, const KubePod *pod) {
        _cleanup_free_ char *key = key_of(pod);
        Controller *c = key ? hashmap_get(r->controllers, key) : NULL;

        if (c || !key || hashmap_size(r->controllers) >= CONTROLLERS_MAX)
                return c;
        c = new0(Controller, 1);
        if (c && hashmap_put(r->controllers, key, c) < 0)
                c = mfree(c);
        if (c)
                c->width = 1;
        return c;
}

/* The round of a pod that is met now. */
static size_t round_now(const Controller *c) {
        return c ? 1 + (c->n_ended + c->width - 1) / c->width : 1;
}

static void end_one(SeenPod *seen) {
        if (!seen->controller || seen->is_ended)
                return;
        seen->controller->n_ended++;
        seen->is_ended = true;
}

void pod_returns_begin(PodReturns *r) {
        Controller *c;

        r->generation++;
        HASHMAP_FOREACH (c, r->controllers)
                c->n_seen = c->n_now = 0;
}

static SeenPod *pod_add(PodReturns *r, const KubePod *pod) {
        SeenPod *seen = hashmap_get(r->pods, pod->object.meta.uid);

        if (seen)
                return seen;
        seen = new0(SeenPod, 1);
        if (seen && hashmap_put(r->pods, pod->object.meta.uid, seen) < 0)
                seen = mfree(seen);
        return seen;
}

void pod_returns_see(PodReturns *r, const KubePod *pod) {
        Controller *c;
        SeenPod *seen;

        if (pod->is_daemon || pod->is_static)
                return;
        seen = pod_add(r, pod);
        c = controller_add(r, pod);
        if (!seen)
                return;
        seen->controller = c;
        seen->generation = r->generation;
        if (!c)
                return;
        c->n_seen++;
        if (pod->object.meta.deletion_usec > 0) {
                if (seen->was_alive)
                        end_one(seen); /* often the watch is faster than the answer to the eviction */
                return;
        }
        seen->was_alive = true;
        if (seen->is_ended)
                return; /* its successor may be there already */
        c->n_now++;
        c->width = MAX(c->width, c->n_now);
}

void pod_returns_end(PodReturns *r) {
        const char *key;
        SeenPod *seen;
        void *value;

        for (HashmapIterator it = {}; hashmap_iterate(r->pods, &it, &key, &value);) {
                seen = value;
                if (seen->generation == r->generation)
                        continue;
                if (seen->was_alive)
                        end_one(seen);
                hashmap_remove(r->pods, key);
                free(seen);
        }
        HASHMAP_FOREACH (seen, r->pods)
                seen->round = seen->round > 0 ? seen->round : round_now(seen->controller);
        for (HashmapIterator it = {}; hashmap_iterate(r->controllers, &it, &key, &value);)
                if (((Controller *) value)->n_seen == 0 && ((Controller *) value)->n_ended == 0) {
                        hashmap_remove(r->controllers, key);
                        free(value);
                }
}

void pod_returns_note_ended(PodReturns *r, const KubePod *pod) {
        SeenPod *seen = hashmap_get(r->pods, pod->object.meta.uid);

        if (seen)
                end_one(seen);
}

bool pod_returns_stays(const PodReturns *r, const KubePod *pod) {
        const SeenPod *seen;

        if (!r)
                return false;
        seen = hashmap_get(r->pods, pod->object.meta.uid);
        return (seen && seen->round > 0 ? seen->round : round_now(controller_of(r, pod))) > POD_ROUNDS_MAX;
}

bool pod_returns_should_warn(PodReturns *r, const KubePod *pod) {
        Controller *c = controller_of(r, pod);

        if (!c || c->is_warned_of)
                return false;
        c->is_warned_of = true;
        return true;
}

char *pod_returns_format(const KubePod *pod, const char *node) {
        const ObjectMeta *m = &pod->object.meta;
        const OwnerRef *owner = object_meta_controller(m);
        _cleanup_free_ char *who = owner ? strf("%s %s", owner->kind, owner->name) : strdup("its creator");

        return who ? strf("Pod %s/%s is on node %s again: pods of %s were ended there %u times, and came back in spite of the cordon (spec.nodeName, or a "
                          "toleration). vesper does not evict it again and does not wait for it; it runs on until the machine ends. To end it, scale "
                          "%s down, or take spec.nodeName or the toleration out of its pods",
                          strempty(m->ns), m->name, node, who, POD_ROUNDS_MAX, who)
                   : NULL;
}
