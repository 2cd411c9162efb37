/* SPDX-License-Identifier: Apache-2.0 */
#include "vanished-pods.h"

#include "hashmap.h"
#include "string-util.h"

#define LABEL_TEMPLATE_HASH "pod-template-hash"

typedef struct PodOwner PodOwner;

/* A pod that left, or one that came and took no other's place. */
typedef struct PodChange {
        ListNode by_age, of_owner;
        PodOwner *owner;
        KubeObject *pod;    /* a reference, to what it was then */
        bool has_left;
        usec_t seen_usec;
        usec_t moment_usec; /* by the API server's clock, in whole seconds; 0: not known */
} PodChange;

/* A controller, or all ReplicaSets of one Deployment, while there is anything of its pods to remember. */
struct PodOwner {
        char *key;
        List left, came;
};

struct VanishedPods {
        Hashmap *owners;
        List left, came;         /* the oldest first */
        usec_t incomplete_until_usec;
};

int vanished_pods_new(VanishedPods **ret) {
        _cleanup_(vanished_pods_freep) VanishedPods *v = new0(VanishedPods, 1);
        int r;

        if (!v)
                return -ENOMEM;
        r = hashmap_new(HASHMAP_BORROW_KEYS, &v->owners);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(v);
        return 0;
}

static void forget(VanishedPods *v, PodChange *c) {
        PodOwner *o = c->owner;

        list_remove(c->has_left ? &v->left : &v->came, &c->by_age);
        list_remove(c->has_left ? &o->left : &o->came, &c->of_owner);
        kube_object_unref(c->pod);
        free(c);
        if (o->left.size > 0 || o->came.size > 0)
                return;
        hashmap_remove(v->owners, o->key);
        free(o->key);
        free(o);
}

VanishedPods *vanished_pods_free(VanishedPods *v) {
        if (!v)
                return NULL;
        LIST_FOREACH (c, &v->left, PodChange, by_age)
                forget(v, c);
        LIST_FOREACH (c, &v->came, PodChange, by_age)
                forget(v, c);
        hashmap_free(v->owners);
        return mfree(v);
}

static void note_incomplete(VanishedPods *v, usec_t seen_usec) {
        v->incomplete_until_usec = MAX(v->incomplete_until_usec, usec_add(seen_usec, VANISHED_USEC));
}

/* NULL: nobody makes such a pod anew. */
static const OwnerRef *maker_of(const KubePod *pod) {
        const OwnerRef *o = object_meta_controller(&pod->object.meta);

        return pod->is_daemon || pod->is_static || !o || isempty(o->uid) ? NULL : o;
}

static bool has_ended(const KubePod *pod) {
        return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

/* When its deletion was asked for; 0: it was not seen to be. */
static usec_t deletion_moment(const KubePod *pod) {
        const ObjectMeta *m = &pod->object.meta;

        return m->deletion_usec == 0 ? 0 : usec_sub(m->deletion_usec, (usec_t) MAX(m->deletion_grace_sec, INT64_C(0)) * USEC_PER_SEC);
}

static bool is_of_stateful_set(const OwnerRef *maker) {
        return streq_ptr(maker->kind, "StatefulSet") && startswith(strempty(maker->api_version), "apps/");
}

void vanished_pods_note_gap(VanishedPods *v, usec_t now_usec) {
        note_incomplete(v, now_usec);
}

/* -- of which Deployment -------------------------------------------------------------------------------- */

/* How much of the ReplicaSet's name is its Deployment's; 0: no Deployment has made it. Its name ends in the hash that its pods are labelled with. */
static size_t deployment_length(const OwnerRef *maker, const KubePod *pod) {
        const char *hash = key_values_get(&pod->object.meta.labels, LABEL_TEMPLATE_HASH), *name = strempty(maker->name);
        size_t n = strlen(name), n_hash = strlen(strempty(hash));

        if (!streq_ptr(maker->kind, "ReplicaSet") || !startswith(strempty(maker->api_version), "apps/") || n_hash == 0 || n < n_hash + 2)
                return 0;
        return name[n - n_hash - 1] == '-' && streq(name + n - n_hash, hash) ? n - n_hash - 1 : 0;
}

/* A namespace, and what names of Kubernetes do not have in them: no tenant's owner is another's. */
static char *owner_key(const OwnerRef *maker, const KubePod *pod) {
        size_t n = deployment_length(maker, pod);

        return n > 0 ? strf("%s/%.*s", strempty(pod->object.meta.ns), (int) n, maker->name) : strf("%s/uid/%s", strempty(pod->object.meta.ns), maker->uid);
}

static const OwnerRef *maker_of_change(const PodChange *c) {
        return object_meta_controller(&c->pod->meta);
}

static bool is_of(const PodChange *c, const OwnerRef *maker) {
        return streq_ptr(maker_of_change(c)->uid, maker->uid);
}

/* -- what is remembered, and for how long ------------------------------------------------------------------ */

/* The new pods of a rolling update come first, and the old ones go only once these are ready. */
static usec_t came_until(const PodChange *c) {
        bool of_deployment = deployment_length(maker_of_change(c), (const KubePod *) c->pod) > 0;

        return usec_add(c->seen_usec, of_deployment ? VANISHED_USEC : VANISHED_EARLY_USEC);
}

void vanished_pods_expire(VanishedPods *v, usec_t now_usec) {
        LIST_FOREACH (c, &v->left, PodChange, by_age)
                if (usec_add(c->seen_usec, VANISHED_USEC) <= now_usec)
                        forget(v, c);
        LIST_FOREACH (c, &v->came, PodChange, by_age)
                if (came_until(c) <= now_usec)
                        forget(v, c);
        if (v->incomplete_until_usec <= now_usec)
                v->incomplete_until_usec = 0;
}

static PodOwner *find_or_add_owner(VanishedPods *v, const char *key) {
        PodOwner *o = hashmap_get(v->owners, key);

        if (o)
                return o;
        o = new0(PodOwner, 1);
        if (!o)
                return NULL;
        o->key = strdup(key);
        if (o->key && hashmap_put(v->owners, o->key, o) >= 0)
                return o;
        free(o->key);
        return mfree(o);
}

static void remember(VanishedPods *v, const char *key, const KubePod *pod, bool has_left, usec_t moment_usec, usec_t now_usec) {
        List *list = has_left ? &v->left : &v->came;
        PodChange *oldest = LIST_ENTRY(list->first, PodChange, by_age), *c;
        PodOwner *o;

        if (list->size == VANISHED_MAX) {
                if (has_left)
                        note_incomplete(v, oldest->seen_usec);
                forget(v, oldest);
        }
        c = new0(PodChange, 1);
        o = c && key ? find_or_add_owner(v, key) : NULL;
        if (!o) {
                free(c);
                if (has_left) /* one that came and is forgotten only lets another be awaited for too long */
                        note_incomplete(v, now_usec);
                return;
        }
        c->owner = o;
        c->pod = kube_object_ref((KubeObject *) pod);
        c->has_left = has_left;
        c->seen_usec = now_usec;
        c->moment_usec = moment_usec;
        list_append(list, &c->by_age);
        list_append(has_left ? &o->left : &o->came, &c->of_owner);
}

/* -- what is seen ------------------------------------------------------------------------------------------- */

/*
 * Of the same ReplicaSet or other controller, one that came is its successor only if it was made afterwards. Of another ReplicaSet of the
 * Deployment it is the one that a rolling update made in its place, however long before.
 */
static bool may_have_replaced(const PodChange *c, const OwnerRef *maker, usec_t moment_usec, usec_t now_usec) {
        if (!is_of(c, maker))
                return came_until(c) > now_usec;
        return c->moment_usec >= moment_usec && usec_add(c->seen_usec, VANISHED_EARLY_USEC) > now_usec;
}

static void see_leave(VanishedPods *v, const OwnerRef *maker, const KubePod *pod, usec_t now_usec) {
        _cleanup_free_ char *key = owner_key(maker, pod);
        PodOwner *o = key ? hashmap_get(v->owners, key) : NULL;
        PodChange *successor = NULL, *itself = NULL;
        usec_t moment = deletion_moment(pod);

        if (o)
                LIST_FOREACH (c, &o->came, PodChange, of_owner) {
                        if (streq_ptr(c->pod->meta.uid, pod->object.meta.uid))
                                itself = c;
                        else if (may_have_replaced(c, maker, moment, now_usec) && (!successor || (is_of(c, maker) && !is_of(successor, maker))))
                                successor = c;
                }
        if (!successor)
                remember(v, key, pod, true, moment, now_usec);
        else
                forget(v, successor);
        if (itself)
                forget(v, itself);
}

/* The oldest of its own ReplicaSet, or other controller, before one of another ReplicaSet of its Deployment. */
static PodChange *find_replaced(const PodOwner *o, const OwnerRef *maker, usec_t made_usec) {
        PodChange *other = NULL;

        LIST_FOREACH (c, &o->left, PodChange, of_owner) {
                if (made_usec < c->moment_usec)
                        continue;
                if (is_of(c, maker))
                        return c;
                other = other ?: c;
        }
        return other;
}

static void see_come(VanishedPods *v, const OwnerRef *maker, const KubePod *pod, usec_t now_usec) {
        _cleanup_free_ char *key = owner_key(maker, pod);
        PodOwner *o = key ? hashmap_get(v->owners, key) : NULL;
        usec_t made = pod->object.meta.creation_usec;
        PodChange *replaced = o ? find_replaced(o, maker, made) : NULL;

        if (replaced)
                forget(v, replaced);
        else
                remember(v, key, pod, false, made, now_usec);
}

static void see_one(VanishedPods *v, const KubePod *old, const KubePod *new, usec_t now_usec) {
        const OwnerRef *maker = maker_of(old ?: new);
        bool was_going = old && old->object.meta.deletion_usec > 0, is_going = !new || new->object.meta.deletion_usec > 0;

        if (!maker)
                return;
        if (!old && new && !is_going && !has_ended(new))
                see_come(v, maker, new, now_usec);
        if (!old || has_ended(old))
                return;
        if (is_of_stateful_set(maker) ? !new : is_going && !was_going)
                see_leave(v, maker, new ?: old, now_usec);
}

void vanished_pods_see(VanishedPods *v, const KubePod *old, const KubePod *new, usec_t now_usec) {
        if (!old || !new || streq_ptr(old->object.meta.uid, new->object.meta.uid)) {
                see_one(v, old, new, now_usec);
                return;
        }
        see_one(v, old, NULL, now_usec); /* another of that name, and the end of the first was not seen */
        see_one(v, NULL, new, now_usec);
}

bool vanished_pods_iterate(const VanishedPods *v, const ListNode **it, const KubePod **ret) {
        *it = *it ? (*it)->next : v->left.first;
        if (!*it)
                return false;
        *ret = (const KubePod *) CONTAINER_OF((ListNode *) *it, PodChange, by_age)->pod;
        return true;
}

size_t vanished_pods_size(const VanishedPods *v) {
        return v->left.size;
}

bool vanished_pods_are_incomplete(const VanishedPods *v) {
        return v->incomplete_until_usec > 0;
}

usec_t vanished_pods_incomplete_until(const VanishedPods *v) {
        return v->incomplete_until_usec;
}
