/* SPDX-License-Identifier: Apache-2.0 */
#include "vanished-pods.h"

#include "hashmap.h"
#include "string-util.h"

typedef struct PodOwner PodOwner;

/* A pod that left, or one that came and took no other's place. */
typedef struct PodChange {
        ListNode by_age, of_owner;
        PodOwner *owner;
        KubeObject *pod;    /* a reference; NULL: of one that came */
        usec_t seen_usec;
        usec_t moment_usec; /* by the API server's clock, in whole seconds; 0: not known */
} PodChange;

/* A controller, while there is anything of its pods to remember. */
struct PodOwner {
        char *uid;
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

        list_remove(c->pod ? &v->left : &v->came, &c->by_age);
        list_remove(c->pod ? &o->left : &o->came, &c->of_owner);
        kube_object_unref(c->pod);
        free(c);
        if (o->left.size > 0 || o->came.size > 0)
                return;
        hashmap_remove(v->owners, o->uid);
        free(o->uid);
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

void vanished_pods_expire(VanishedPods *v, usec_t now_usec) {
        LIST_FOREACH (c, &v->left, PodChange, by_age)
                if (usec_add(c->seen_usec, VANISHED_USEC) <= now_usec)
                        forget(v, c);
        LIST_FOREACH (c, &v->came, PodChange, by_age)
                if (usec_add(c->seen_usec, VANISHED_EARLY_USEC) <= now_usec)
                        forget(v, c);
        if (v->incomplete_until_usec <= now_usec)
                v->incomplete_until_usec = 0;
}

static void note_incomplete(VanishedPods *v, usec_t seen_usec) {
        v->incomplete_until_usec = MAX(v->incomplete_until_usec, usec_add(seen_usec, VANISHED_USEC));
}

static PodOwner *find_or_add_owner(VanishedPods *v, const char *uid) {
        PodOwner *o = hashmap_get(v->owners, uid);

        if (o)
                return o;
        o = new0(PodOwner, 1);
        if (!o)
                return NULL;
        o->uid = strdup(uid);
        if (o->uid && hashmap_put(v->owners, o->uid, o) >= 0)
                return o;
        free(o->uid);
        return mfree(o);
}

/* pod NULL: one came. */
static void remember(VanishedPods *v, const char *uid, const KubePod *pod, usec_t moment_usec, usec_t now_usec) {
        List *list = pod ? &v->left : &v->came;
        PodChange *oldest = LIST_ENTRY(list->first, PodChange, by_age), *c;
        PodOwner *o;

        if (list->size == VANISHED_MAX) {
                if (pod)
                        note_incomplete(v, oldest->seen_usec);
                forget(v, oldest);
        }
        c = new0(PodChange, 1);
        o = c ? find_or_add_owner(v, uid) : NULL;
        if (!o) {
                free(c);
                if (pod) /* one that came and is forgotten only lets another be awaited for too long */
                        note_incomplete(v, now_usec);
                return;
        }
        c->owner = o;
        c->pod = pod ? kube_object_ref((KubeObject *) pod) : NULL;
        c->seen_usec = now_usec;
        c->moment_usec = moment_usec;
        list_append(list, &c->by_age);
        list_append(pod ? &o->left : &o->came, &c->of_owner);
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

/* One that came is its successor only if it was made afterwards. */
static void see_leave(VanishedPods *v, const OwnerRef *maker, const KubePod *pod, usec_t now_usec) {
        PodOwner *o = hashmap_get(v->owners, maker->uid);
        usec_t moment = deletion_moment(pod);

        if (o)
                LIST_FOREACH (c, &o->came, PodChange, of_owner)
                        if (c->moment_usec >= moment && usec_add(c->seen_usec, VANISHED_EARLY_USEC) > now_usec) {
                                forget(v, c);
                                return;
                        }
        remember(v, maker->uid, pod, moment, now_usec);
}

static void see_come(VanishedPods *v, const OwnerRef *maker, const KubePod *pod, usec_t now_usec) {
        PodOwner *o = hashmap_get(v->owners, maker->uid);
        usec_t made = pod->object.meta.creation_usec;

        if (o)
                LIST_FOREACH (c, &o->left, PodChange, of_owner)
                        if (made >= c->moment_usec) {
                                forget(v, c);
                                return;
                        }
        remember(v, maker->uid, NULL, made, now_usec);
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
