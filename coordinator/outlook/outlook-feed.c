/* SPDX-License-Identifier: Apache-2.0 */
#include "outlook-feed.h"

#include "log.h"
#include "outlook-kinds.h"
#include "string-util.h"
#include "strv.h"

#define REBUILD_MIN_USEC (10 * USEC_PER_SEC)
#define REBUILD_MAX_USEC USEC_PER_MINUTE
#define REBUILD_PER_POD_USEC UINT64_C(400) /* 125,000 pods: a minute */
#define RETRY_USEC (5 * USEC_PER_SEC)
#define PAUSE_USEC (10 * USEC_PER_MSEC) /* for others, between snapshot and simulator */
#define FRESH_USEC USEC_PER_SEC /* a snapshot that is not of the cluster as it is any more makes a simulator for so long */
#define SETTLE_USEC (200 * USEC_PER_MSEC) /* while lists are under way */

struct OutlookFeed {
        KubeClient *client;
        Env *env;
        const ClusterView *view;
        OutlookKinds *kinds;
        Snapshot *snapshot;     /* NULL: to be taken */
        Simulator *simulator;   /* NULL: to be made, of the snapshot */
        DisruptionScene *scene; /* of a round; NULL: none is under way */
        Hashmap *resting;       /* pod that runs on no node -> the simulator's number for it, + 1; of all others their node tells */
        Hashmap *vanished;      /* uid -> VanishedTwin, of pods whose successors are awaited */
        uint64_t n_rounds;
        Hashmap *pending;       /* pod -> its newest state, a reference; NULL: it is gone. What came during a round */
        bool is_stale;          /* the simulator is not of the cluster as it is */
        usec_t built_usec, taken_usec; /* loop_now(): when the snapshot was begun, and was complete */
        uint64_t n_built;
        usec_t first_usec;      /* the same: the first snapshot is taken then at the latest */
        void (*changed)(void *userdata);
        void *userdata;
};

/* What stands in the simulator for the successor of a pod. */
typedef struct VanishedTwin {
        KubeObject *pod; /* a reference */
        uint32_t number;
        uint64_t round;  /* when it was last awaited */
} VanishedTwin;

static void on_kinds_changed(void *userdata) {
        OutlookFeed *f = userdata;

        f->is_stale = true;
        f->changed(f->userdata);
}

int outlook_feed_new(KubeClient *c, const ClusterView *view, void (*changed)(void *userdata), void *userdata, OutlookFeed **ret) {
        _cleanup_(outlook_feed_freep) OutlookFeed *f = new0(OutlookFeed, 1);
        int r;

        if (!f)
                return -ENOMEM;
        f->client = c;
        f->env = kube_client_env(c);
        f->view = view;
        f->changed = changed;
        f->userdata = userdata;
        f->first_usec = usec_add(loop_now(f->env->loop), VANISHED_USEC);
        r = hashmap_new(0, &f->pending);
        if (r >= 0)
                r = outlook_kinds_new(c, on_kinds_changed, f, &f->kinds);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(f);
        return 0;
}

static void *unref_value(void *value) {
        return kube_object_unref(value);
}

static void *twin_free(void *twin) {
        kube_object_unref(((VanishedTwin *) twin)->pod);
        return mfree(twin);
}

static void feed_drop(OutlookFeed *f) {
        f->scene = disruption_scene_free(f->scene);
        f->simulator = simulator_free(f->simulator);
        f->snapshot = snapshot_free(f->snapshot);
        f->resting = hashmap_free(f->resting);
        f->vanished = hashmap_free_with(f->vanished, twin_free);
}

OutlookFeed *outlook_feed_free(OutlookFeed *f) {
        if (!f)
                return NULL;
        feed_drop(f);
        outlook_kinds_free(f->kinds);
        hashmap_free_with(f->pending, unref_value);
        return mfree(f);
}

/* -- nodes ---------------------------------------------------------------------------------------------- */

static bool taints_are_same(const KubeNode *a, const KubeNode *b) {
        if (a->n_taints != b->n_taints)
                return false;
        for (size_t i = 0; i < a->n_taints; i++)
                if (!taint_equal(a->taints + i, b->taints + i))
                        return false;
        return true;
}

static const char **sorted_names(char *const *l, size_t n) {
        const char **sorted = new0(const char *, n + 1);

        for (size_t i = 0; sorted && i < n; i++)
                sorted[i] = l[i];
        if (sorted)
                qsort(sorted, n, sizeof(*sorted), compare_strings);
        return sorted;
}

/* Compares two lists of names, ignoring their order. False on ENOMEM. Most updates of a Node leave the order
 * as it was. A kubelet can make the lists of any length, so in another order they are sorted. */
static bool names_are_same(char *const *a, char *const *b) {
        _cleanup_free_ const char **x = NULL, **y = NULL;
        size_t n = strv_length(a), n_same = 0;

        if (strv_length(b) != n)
                return false;
        while (n_same < n && streq(a[n_same], b[n_same]))
                n_same++;
        if (n_same == n)
                return true;
        x = sorted_names(a, n);
        y = sorted_names(b, n);
        if (!x || !y)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!streq(x[i], y[i]))
                        return false;
        return true;
}

bool node_judged_same(const KubeScheduledNode *a, const KubeScheduledNode *b) {
        const ObjectMeta *x = &a->node.object.meta, *y = &b->node.object.meta;

        return streq_ptr(x->uid, y->uid) && (x->deletion_usec > 0) == (y->deletion_usec > 0) &&
               streq_ptr(a->node.object.invalid, b->node.object.invalid) && key_values_are_same(&x->labels, &y->labels) &&
               key_values_are_same(&x->annotations, &y->annotations) && key_values_are_same(&a->allocatable, &b->allocatable) &&
               streq_ptr(a->kubelet_version, b->kubelet_version) && streq_ptr(a->os_image, b->os_image) &&
               a->is_initialized == b->is_initialized && a->node.unschedulable == b->node.unschedulable &&
               kube_node_is_ready(&a->node) == kube_node_is_ready(&b->node) && taints_are_same(&a->node, &b->node) &&
               names_are_same(a->node.volumes_attached, b->node.volumes_attached);
}

void outlook_feed_on_node(OutlookFeed *f, const KubeNode *old, const KubeNode *new) {
        if (old && new && node_judged_same((const KubeScheduledNode *) old, (const KubeScheduledNode *) new))
                return;
        f->is_stale = true;
        f->changed(f->userdata);
}

/* -- pods ----------------------------------------------------------------------------------------------- */

static bool find_number(const OutlookFeed *f, const char *key, uint32_t *ret) {
        const KubeObject *o = snapshot_get(f->snapshot, SNAPSHOT_PODS, key);
        uintptr_t number;

        if (!o)
                return false;
        if (simulator_find_running(f->simulator, (const KubeScheduledPod *) o, ret) >= 0)
                return true;
        number = (uintptr_t) hashmap_get(f->resting, key);
        assert(number > 0);
        *ret = (uint32_t) (number - 1);
        return true;
}

static int note_number(OutlookFeed *f, const char *key, uint32_t number) {
        if (!simulator_pod_runs(f->simulator, number))
                return hashmap_replace(f->resting, key, (void *) ((uintptr_t) number + 1), NULL);
        hashmap_remove(f->resting, key);
        return 0;
}

static void take_gone(OutlookFeed *f, const char *key, uint32_t number) {
        simulator_forget_pod(f->simulator, number);
        hashmap_remove(f->resting, key);
        kube_object_unref(hashmap_remove(f->snapshot->objects[SNAPSHOT_PODS], key));
}

static int take_new(OutlookFeed *f, const char *key, KubeObject *o) {
        uint32_t number;
        int r;

        r = simulator_add_pod(f->simulator, (const KubeScheduledPod *) o, &number);
        if (r >= 0)
                r = snapshot_put(f->snapshot, SNAPSHOT_PODS, o);
        return r < 0 ? r : note_number(f, key, number);
}

/* The simulator borrows the pod's older state until it has the newer. */
static int take_changed(OutlookFeed *f, const char *key, uint32_t number, KubeObject *o) {
        int r = simulator_change_pod(f->simulator, number, (const KubeScheduledPod *) o);

        if (r >= 0)
                r = snapshot_put(f->snapshot, SNAPSHOT_PODS, o);
        return r < 0 ? r : note_number(f, key, number);
}

/* What the simulator will be made of. */
static int put_in_snapshot(OutlookFeed *f, const char *key, KubeObject *new) {
        if (new)
                return snapshot_put(f->snapshot, SNAPSHOT_PODS, new);
        kube_object_unref(hashmap_remove(f->snapshot->objects[SNAPSHOT_PODS], key));
        return 0;
}

static void take_pod(OutlookFeed *f, const char *key, KubeObject *new) {
        uint32_t number;
        bool is_known = f->simulator && find_number(f, key, &number);
        int r = 0;

        if (!f->simulator)
                r = put_in_snapshot(f, key, new);
        else if (is_known && !new)
                take_gone(f, key, number);
        else if (is_known)
                r = take_changed(f, key, number, new);
        else if (new)
                r = take_new(f, key, new);
        if (r < 0) /* only a new one is of use now */
                feed_drop(f);
        else if (f->simulator && simulator_is_bloated(f->simulator))
                f->is_stale = true;
}

void outlook_feed_on_pod(OutlookFeed *f, const KubePod *old, const KubePod *new) {
        KubeObject *o = (KubeObject *) new;
        _cleanup_free_ char *key = NULL;
        void *before = NULL;

        if (old && new && kube_pod_says_same(old, new))
                return;
        f->changed(f->userdata);
        if (!f->snapshot)
                return;
        key = kube_object_key(new ? &new->object : &old->object);
        if (!key)
                f->is_stale = true;
        else if (!f->scene)
                take_pod(f, key, o);
        else if (hashmap_replace(f->pending, key, o, &before) < 0)
                f->is_stale = true;
        else {
                if (o)
                        kube_object_ref(o);
                kube_object_unref(before);
        }
}

static void take_pending(OutlookFeed *f) {
        const char *key;
        void *o;

        for (HashmapIterator it = {}; hashmap_iterate(f->pending, &it, &key, &o);) {
                if (f->snapshot)
                        take_pod(f, key, o);
                kube_object_unref(o);
        }
        hashmap_clear(f->pending);
}

/* -- what is read anew for each round ------------------------------------------------------------------- */

static void clear_kind(Snapshot *s, SnapshotKind kind) {
        KubeObject *o;

        HASHMAP_FOREACH(o, s->objects[kind])
                kube_object_unref(o);
        hashmap_clear(s->objects[kind]);
        s->is_known[kind] = true;
}

/* One walk of the view. */
#define PUT_ALL(f, type, iterate, kind, r)                                                             \
        do {                                                                                           \
                const type *_o;                                                                        \
                                                                                                       \
                clear_kind((f)->snapshot, kind);                                                       \
                for (HashmapIterator _it = {}; (r) >= 0 && iterate((f)->view, &_it, &_o);)             \
                        (r) = snapshot_put((f)->snapshot, kind, (KubeObject *) _o);                    \
        } while (0)

static int read_rules(OutlookFeed *f) {
        int r = 0;

        PUT_ALL(f, KubePdb, cluster_view_iterate_pdbs, SNAPSHOT_PDBS, r);
        PUT_ALL(f, KubeNodePool, cluster_view_iterate_pools, SNAPSHOT_NODE_POOLS, r);
        PUT_ALL(f, KubeNodeClaim, cluster_view_iterate_claims, SNAPSHOT_NODE_CLAIMS, r);
        PUT_ALL(f, KubeNodeBudget, cluster_view_iterate_budgets, SNAPSHOT_NODE_BUDGETS, r);
        return r;
}

/* Those of the snapshot come first. */
static int number_pods(OutlookFeed *f) {
        uint32_t n = (uint32_t) hashmap_size(f->snapshot->objects[SNAPSHOT_PODS]);
        int r = hashmap_new(0, &f->resting);

        for (uint32_t i = 0; r >= 0 && i < n; i++)
                if (!simulator_pod_runs(f->simulator, i)) {
                        _cleanup_free_ char *key = kube_object_key(&simulator_pod(f->simulator, i)->pod.object);

                        r = key ? note_number(f, key, i) : -ENOMEM;
                }
        return r;
}

static int feed_take_snapshot(OutlookFeed *f) {
        int r;

        feed_drop(f);
        f->built_usec = loop_now(f->env->loop);
        r = snapshot_new(kube_client_pool(f->client), loop_wall(f->env->loop), &f->snapshot);
        if (r >= 0)
                PUT_ALL(f, KubeNode, cluster_view_iterate_nodes, SNAPSHOT_NODES, r);
        if (r >= 0)
                PUT_ALL(f, KubePod, cluster_view_iterate_all_pods, SNAPSHOT_PODS, r);
        if (r >= 0)
                r = outlook_kinds_put(f->kinds, f->snapshot);
        f->is_stale = false;
        f->taken_usec = loop_now(f->env->loop);
        return r < 0 ? r : 0;
}

static int note_twin(OutlookFeed *f, const KubePod *pod, uint32_t number) {
        VanishedTwin *t = new0(VanishedTwin, 1);
        int r;

        if (!t)
                return -ENOMEM;
        t->pod = kube_object_ref((KubeObject *) pod);
        t->number = number;
        t->round = f->n_rounds;
        r = hashmap_put(f->vanished, strempty(t->pod->meta.uid), t);
        if (r < 0)
                twin_free(t);
        return r;
}

/* One uid once: what the API server says of two pods is two. */
static int note_awaited(OutlookFeed *f, const VanishedPods *v, KubeObject **pods, size_t *n) {
        uint32_t first = (uint32_t) hashmap_size(f->snapshot->objects[SNAPSHOT_PODS]);
        const ListNode *it = NULL;
        const KubePod *pod;
        int r = hashmap_new(HASHMAP_BORROW_KEYS, &f->vanished);

        while (r >= 0 && vanished_pods_iterate(v, &it, &pod))
                if (!hashmap_contains(f->vanished, strempty(pod->object.meta.uid))) {
                        pods[*n] = (KubeObject *) pod;
                        r = note_twin(f, pod, first + (uint32_t) (*n)++);
                }
        return r;
}

/* Made with all pods whose successors are awaited: of what their rules ask for it lacks nothing. */
static int feed_make_simulator(OutlookFeed *f) {
        const VanishedPods *v = cluster_view_vanished(f->view);
        _cleanup_free_ KubeObject **pods = new0(KubeObject *, vanished_pods_size(v) + 1);
        size_t n = 0;
        int r;

        f->simulator = simulator_free(f->simulator);
        f->resting = hashmap_free(f->resting);
        f->vanished = hashmap_free_with(f->vanished, twin_free);
        r = pods ? note_awaited(f, v, pods, &n) : -ENOMEM;
        if (r >= 0)
                r = simulator_new_within(f->snapshot, &(AwaitedPods){ pods, n }, &simulator_bounds, &f->simulator);
        if (r >= 0)
                r = number_pods(f);
        f->n_built += r >= 0;
        return r;
}

/* A node may have changed since the snapshot was taken. Until a simulator is made of it that is a moment, unless the view is not whole meanwhile or
 * a list is under way: then what it says of nodes and volumes is minutes old. */
static bool snapshot_is_outdated(const OutlookFeed *f, usec_t now_usec) {
        return !f->simulator && f->is_stale && usec_add(f->taken_usec, FRESH_USEC) < now_usec;
}

static usec_t rebuild_usec(const OutlookFeed *f) {
        usec_t pause = REBUILD_PER_POD_USEC * (f->snapshot ? hashmap_size(f->snapshot->objects[SNAPSHOT_PODS]) : 0);

        return usec_add(f->built_usec, MIN(REBUILD_MIN_USEC + pause, REBUILD_MAX_USEC));
}

static int take_vanished(OutlookFeed *f, const KubePod *pod) {
        const char *uid = strempty(pod->object.meta.uid);
        VanishedTwin *t = hashmap_get(f->vanished, uid);
        uint32_t number;
        int r;

        if (t) {
                t->round = f->n_rounds;
                return 0;
        }
        r = simulator_add_vanished(f->simulator, (const KubeScheduledPod *) pod, &number);
        return r < 0 ? r : note_twin(f, pod, number);
}

/* Pods whose successors have not come take part in the simulation until they do, or are not awaited any more. */
static int take_all_vanished(OutlookFeed *f) {
        const VanishedPods *v = cluster_view_vanished(f->view);
        const ListNode *it = NULL;
        const KubePod *pod;
        VanishedTwin *t;
        int r = 0;

        f->n_rounds++;
        while (r >= 0 && vanished_pods_iterate(v, &it, &pod))
                r = take_vanished(f, pod);
        if (r < 0)
                return r;
        HASHMAP_FOREACH (t, f->vanished)
                if (t->round != f->n_rounds) {
                        simulator_forget_pod(f->simulator, t->number);
                        hashmap_remove(f->vanished, strempty(t->pod->meta.uid));
                        twin_free(t);
                }
        return 0;
}

/*
 * One whose rules ask for labels that nobody asked for, or that exceeds what rules may cost, makes a new simulator necessary, once in a round, and
 * of the same snapshot. If the round waited for a snapshot instead, the next one would lack what the next such pod asks for, and a tenant that
 * deletes one a minute would end all judgement.
 */
static int refresh_vanished(OutlookFeed *f) {
        int r = take_all_vanished(f);

        if (r != -ESTALE && r != -E2BIG)
                return r;
        r = feed_make_simulator(f);
        return r < 0 ? r : take_all_vanished(f);
}

static int feed_refresh(OutlookFeed *f) {
        const SceneOptions o = { .lease_ns = cluster_view_pause_namespace(f->view) };
        int r = read_rules(f);

        if (r >= 0 && (!f->simulator || simulator_is_too_coarse(f->simulator)))
                r = feed_make_simulator(f);
        if (r >= 0)
                r = refresh_vanished(f);
        if (r < 0)
                return r;
        f->snapshot->taken_usec = loop_wall(f->env->loop);
        r = disruption_scene_new(f->snapshot, f->simulator, &o, &f->scene);
        if (r < 0)
                return r;
        f->scene->is_all_paused = cluster_view_is_paused(f->view); /* whether its namespace may be read with all others or not */
        f->scene->lacks_waiting = vanished_pods_are_incomplete(cluster_view_vanished(f->view));
        return 1;
}

/* For a minute after the start nobody knows which pods left before: what claims say from then is truer than that any node may be needed. No
 * longer, however many leave in that minute. 0: nothing is waited for. */
static usec_t first_at_usec(const OutlookFeed *f, usec_t now_usec) {
        usec_t until = vanished_pods_incomplete_until(cluster_view_vanished(f->view));

        return f->n_built > 0 || now_usec >= f->first_usec ? 0 : MIN(until, f->first_usec);
}

int outlook_feed_begin(OutlookFeed *f, DisruptionScene **ret, usec_t *ret_at_usec) {
        usec_t now = loop_now(f->env->loop);
        int r;

        assert(!f->scene);
        *ret_at_usec = first_at_usec(f, now);
        if (*ret_at_usec > 0)
                return 0;
        if (!outlook_kinds_settled(f->kinds, ret_at_usec)) {
                *ret_at_usec = MIN(*ret_at_usec, usec_add(now, SETTLE_USEC));
                return 0;
        }
        *ret_at_usec = rebuild_usec(f);
        if (f->snapshot && !(f->simulator && f->is_stale) && !snapshot_is_outdated(f, now))
                r = feed_refresh(f);
        else if (f->n_built > 0 && now < *ret_at_usec && (f->simulator || !f->snapshot))
                return 0;
        else {
                r = feed_take_snapshot(f);
                *ret_at_usec = usec_add(loop_now(f->env->loop), PAUSE_USEC);
        }
        if (r < 0) {
                feed_drop(f);
                *ret_at_usec = usec_add(now, RETRY_USEC);
        }
        *ret = f->scene;
        return r;
}

bool outlook_feed_awaits(const OutlookFeed *f) {
        return f->scene && (hashmap_size(f->vanished) > 0 || f->scene->lacks_waiting);
}

void outlook_feed_end(OutlookFeed *f) {
        f->scene = disruption_scene_free(f->scene);
        take_pending(f);
}
