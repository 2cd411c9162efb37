/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "kube-scheduling.h"
#include "string-util.h"
#include "vanished-pods.h"

#define WALL (1800000000 * USEC_PER_SEC)
#define GRACE_SEC 30

/* What a pod's first letter says of its controller: its kind, and the label of its pods that ends its name. */
static const struct {
        char letter;
        const char *owner, *name, *hash;
} owners[] = {
        { 'a', "'apiVersion':'apps/v1','kind':'ReplicaSet'", "web-5d", "5d" }, { 'b', "'apiVersion':'apps/v1','kind':'ReplicaSet'", "web-7f", "7f" },
        { 'c', "'apiVersion':'apps/v1','kind':'ReplicaSet'", "app-7f", "7f" }, { 'h', "'apiVersion':'apps/v1','kind':'ReplicaSet'", "web-7f", "x" },
        { 'i', "'apiVersion':'apps/v1','kind':'ReplicaSet'", NULL, "7f" },
        { 'r', "'apiVersion':'example.com/v1','kind':'ReplicaSet'", "web-7f", "7f" },
        { 'w', "'apiVersion':'apps/v1','kind':'ReplicaSet'" },  { 'v', "'apiVersion':'apps/v1','kind':'ReplicaSet'" },
        { 's', "'apiVersion':'apps/v1','kind':'StatefulSet'" }, { 'j', "'apiVersion':'batch/v1','kind':'Job'" },
        { 'd', "'apiVersion':'apps/v1','kind':'DaemonSet'" },   { 'm', "'apiVersion':'v1','kind':'Node'" },
        { 'n', NULL },
};

/* made_sec, going_sec: after WALL; going_sec -1: it is not being deleted. */
static KubePod *make_pod(InternPool *pool, const char *name, const char *phase, unsigned made_sec, int going_sec) {
        char made[RFC3339_MAX], gone[RFC3339_MAX];
        _cleanup_free_ char *text = NULL, *owner = NULL, *going = NULL, *labels = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;

        for (size_t i = 0; i < ELEMENTSOF(owners); i++)
                if (owners[i].letter == *name && owners[i].owner) {
                        _cleanup_free_ char *called = owners[i].name ? strf("'name':'%s',", owners[i].name) : NULL;

                        owner = strf(",'ownerReferences':[{%s,%s'uid':'o-%c','controller':true}]", owners[i].owner, strempty(called), *name);
                        labels = owners[i].hash ? strf(",'labels':{'pod-template-hash':'%s'}", owners[i].hash) : NULL;
                }
        rfc3339_format(WALL + made_sec * USEC_PER_SEC, made);
        if (going_sec >= 0) {
                rfc3339_format(WALL + ((usec_t) going_sec + GRACE_SEC) * USEC_PER_SEC, gone);
                going = strf(",'deletionTimestamp':'%s','deletionGracePeriodSeconds':%d", gone, GRACE_SEC);
        }
        text = strf("{'metadata':{'namespace':'x','name':'%s','uid':'%s-%u','creationTimestamp':'%s'%s%s%s},'spec':{},'status':{'phase':'%s'}}", name,
                    name, made_sec, made, strempty(owner), strempty(labels), strempty(going), phase);
        assert_non_null(text);
        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        assert_return_code(json_parse(text, strlen(text), SIZE_MAX, &doc, NULL), 0);
        assert_return_code(kube_object_decode(&kube_scheduled_pod_kind, json_root(doc), pool, &o), 0);
        return (KubePod *) o;
}

/* -- in which order events come ------------------------------------------------------------------------- */

/* Words: "@5": it is second 5; "+w1": pod w1 comes, made now, "+w1/3": made in second 3; "~w1": it is seen to terminate, "~w1/3": since second 3;
 * "-w1": it is gone; "!w1": it has Succeeded; "=w1": another of that name, made now, is seen in its place. */
static const struct {
        const char *what, *events, *want;
} orders[] = {
        { "its successor is awaited from when it begins to terminate, and no longer than until that comes", "+w1 @20 ~w1", "w1" },
        { "", "+w1 @20 ~w1 +w2 @25 -w1", "" },
        { "gone at once", "+w1 @20 -w1", "w1" },
        { "gone, and then the successor", "+w1 @20 -w1 @22 +w2", "" },
        { "a StatefulSet makes the next one when this is gone", "+s1 @20 ~s1", "" },
        { "", "+s1 @20 ~s1 @25 -s1", "s1" },
        { "", "+s1 @20 ~s1 @25 -s1 +s1", "" },
        { "a new list: the successor first, then that its predecessor is gone", "+w1 @20 +w2/18 -w1", "" },
        { "", "+w1 @20 +w2/18 ~w1/17", "" },
        { "... but what was made before the deletion is no successor", "+w1 @20 +w2/15 ~w1/17", "w1" },
        { "", "+w1 @20 ~w1 +w2/15", "w1" },
        { "... nor is one that came long before", "+w1 @20 +w2 @40 -w1", "w1" },
        { "a new list: another of the same name", "+s1 @20 =s1", "" },
        { "two of one owner: one successor is one less, the older", "+w1 +w2 @20 -w1 @21 -w2 @22 +w3", "w2" },
        { "", "+w1 +w2 @20 -w1 -w2 +w3 +w4", "" },
        { "owners are told apart", "+w1 +v1 @20 -w1 -v1 +v2", "w1" },
        { "the successor is evicted itself", "+w1 @20 ~w1 +w2 @22 ~w2", "w2" },
        { "a set that is scaled down leaves no successor, and nothing for longer than a minute", "+w1 @20 ~w1 @79", "w1" },
        { "", "+w1 @20 ~w1 @80", "" },
        { "no successor: ended by itself", "+j1 @20 !j1 @21 -j1", "" },
        { "a Job's pod that has not ended has one", "+j1 @20 ~j1", "j1" },
        { "no successor: of a DaemonSet, static, without a controller", "+d1 +m1 +n1 @20 ~d1 -m1 -n1", "" },
        { "one that was seen terminating from the first is not known to lack one", "~w1/1 @20 -w1", "" },
        { "one that came and has ended is no successor", "+j1 @20 ~j1 !j2", "j1" },
        { "one that goes soon after it came is not its own successor", "+w1 @2 -w1", "w1" },
        { "... nor that of another, once it is awaited itself", "+w1 @20 +w2 -w2 -w1", "w2 w1" },
        { "a rolling update: surge, and when the new pods are ready, the old ones go", "+a1 +a2 @70 +b1 @100 ~a1 +b2 @120 ~a2", "" },
        { "... as long as old pods are awaited, and no longer", "+a1 @70 +b1 @129 ~a1", "" },
        { "", "+a1 @70 +b1 @130 ~a1", "a1" },
        { "... none above the wanted number: an old pod goes, a new one comes", "+a1 +a2 @70 ~a1 +b1 @100 ~a2 +b2", "" },
        { "all old pods go before the first new one comes", "+a1 +a2 @70 ~a1 ~a2 @75 -a1 -a2 +b1", "a2" },
        { "", "+a1 +a2 @70 ~a1 ~a2 @75 -a1 -a2 +b1 +b2", "" },
        { "... and goes wrong: back to the old ones", "+a1 @70 +b1 @80 ~b1", "b1" },
        { "a Deployment that is scaled down leaves no successors", "+a1 +a2 @70 ~a1 ~a2", "a1 a2" },
        { "one new pod is no successor of two old ones", "+a1 +a2 @70 +b1 @100 ~a1 ~a2", "a2" },
        { "scaled up, and one of the older pods is evicted: another will come", "+a1 @70 +a2 @72 ~a1", "a1" },
        { "evicted in a rolling update: its own ReplicaSet's pod is the successor, and the new one's that of another", "+a1 +a2 @70 ~a1 +a3 +b1 @90 ~a2", "" },
        { "Deployments are told apart, whatever hash they have", "+c1 @70 +b1 @80 ~c1", "c1" },
        { "a ReplicaSet whose name is none of a Deployment's is its own", "+h1 @70 +b1 @80 ~h1", "h1" },
        { "another kind of ReplicaSet, too", "+r1 @70 +b1 @80 ~r1", "r1" },
        { "... and one without a name", "+i1 @70 +b1 @80 ~i1", "i1" },
};

typedef struct Play {
        InternPool *pool;
        VanishedPods *v;
        KubePod *known[16];
        size_t n_known;
        unsigned now_sec;
} Play;

static KubePod **find_known(Play *p, const char *name) {
        for (size_t i = 0; i < p->n_known; i++)
                if (p->known[i] && streq(p->known[i]->object.meta.name, name))
                        return p->known + i;
        assert_true(p->n_known < ELEMENTSOF(p->known));
        p->known[p->n_known] = NULL;
        return p->known + p->n_known++;
}

static void play_event(Play *p, char *word) {
        char op = *word++, *slash = strchr(word, '/');
        unsigned sec = slash ? (unsigned) atoi(slash + 1) : p->now_sec;
        KubePod **known, *old, *new = NULL;

        if (slash)
                *slash = 0;
        if (op == '@') {
                p->now_sec = (unsigned) atoi(word);
                vanished_pods_expire(p->v, p->now_sec * USEC_PER_SEC);
                return;
        }
        known = find_known(p, word);
        old = *known;
        if (op != '-')
                new = make_pod(p->pool, word, op == '!' ? "Succeeded" : "Running",
                               op == '+' || op == '=' || !old ? sec : (unsigned) ((old->object.meta.creation_usec - WALL) / USEC_PER_SEC),
                               op == '~' ? (int) sec : -1);
        vanished_pods_see(p->v, old, new, p->now_sec * USEC_PER_SEC);
        kube_object_unref((KubeObject *) old);
        *known = new;
}

static char *names_of(const VanishedPods *v) {
        _cleanup_strbuf_ StrBuf b = {};
        const ListNode *it = NULL;
        const KubePod *pod;

        strbuf_add(&b, "");
        while (vanished_pods_iterate(v, &it, &pod))
                strbuf_addf(&b, "%s%s", b.size > 0 ? " " : "", pod->object.meta.name);
        return strbuf_steal(&b);
}

static void play_done(Play *p) {
        for (size_t i = 0; i < p->n_known; i++)
                kube_object_unref((KubeObject *) p->known[i]);
        vanished_pods_free(p->v);
        intern_pool_free(p->pool);
}

TEST_CASE(test_orders) {
        size_t n_wrong = 0;

        for (size_t i = 0; i < ELEMENTSOF(orders); i++) {
                _cleanup_free_ char *events = strdup(orders[i].events), *names = NULL;
                char *rest = NULL;
                Play p = {};

                assert_return_code(intern_pool_new(&p.pool), 0);
                assert_return_code(vanished_pods_new(&p.v), 0);
                for (char *word = strtok_r(events, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
                        play_event(&p, word);
                names = names_of(p.v);
                if (!streq_ptr(names, orders[i].want))
                        n_wrong++, print_message("  %s: %s: want '%s', have '%s'\n", orders[i].what, orders[i].events, orders[i].want, strempty(names));
                assert_false(vanished_pods_are_incomplete(p.v));
                play_done(&p);
        }
        assert_int_equal(n_wrong, 0);
}

/* -- as many as there are holes, whatever happens ------------------------------------------------------- */

#define REPLICAS 4u

typedef struct World {
        InternPool *pool;
        VanishedPods *v;
        KubePod *seen[3 * REPLICAS];  /* by the watch; NULL: none stands there */
        KubePod *there[3 * REPLICAS]; /* in truth */
        unsigned n_made, now_sec;
        bool is_cut; /* the watch is */
} World;

static void tell(World *w, size_t i) {
        KubePod *old = w->seen[i], *new = w->there[i];

        vanished_pods_see(w->v, old, new, w->now_sec * USEC_PER_SEC);
        kube_object_unref((KubeObject *) old);
        w->seen[i] = new ? (KubePod *) kube_object_ref((KubeObject *) new) : NULL;
}

/* A place is of one owner for ever: first letters of its pods. */
static void step(World *w, size_t i) {
        static const char letters[] = "wsj";
        _cleanup_free_ char *name = NULL;

        if (w->there[i])
                kube_object_unref((KubeObject *) TAKE_PTR(w->there[i]));
        else {
                name = strf("%c%u", letters[i / REPLICAS], w->n_made++);
                w->there[i] = make_pod(w->pool, name, "Running", w->now_sec, -1);
        }
        if (!w->is_cut)
                tell(w, i);
}

/* A new list tells of all places, in whatever order. */
static void reconnect(World *w) {
        size_t first = (size_t) rand() % ELEMENTSOF(w->there), stride = (size_t[]){ 1, 5, 7, 11 }[rand() % 4];

        for (size_t i = 0; i < ELEMENTSOF(w->there); i++) {
                size_t k = (first + i * stride) % ELEMENTSOF(w->there);

                if (w->seen[k] != w->there[k])
                        tell(w, k);
        }
        w->is_cut = false;
}

static size_t n_holes(const World *w) {
        size_t n = 0;

        for (size_t i = 0; i < ELEMENTSOF(w->there); i++)
                n += !w->there[i];
        return n;
}

static void play_world(unsigned seed) {
        World w = {};

        srand(seed);
        assert_return_code(intern_pool_new(&w.pool), 0);
        assert_return_code(vanished_pods_new(&w.v), 0);
        for (size_t i = 0; i < ELEMENTSOF(w.there); i++)
                step(&w, i);
        w.now_sec = 20; /* these came early enough */
        vanished_pods_expire(w.v, w.now_sec * USEC_PER_SEC);
        for (unsigned n = 0; n < 60; n++) {
                w.now_sec += rand() % 4 == 0;
                if (!w.is_cut && rand() % 12 == 0)
                        w.is_cut = true;
                else if (w.is_cut && rand() % 6 == 0)
                        reconnect(&w);
                else
                        step(&w, (size_t) rand() % ELEMENTSOF(w.there));
                vanished_pods_expire(w.v, w.now_sec * USEC_PER_SEC);
                if (!w.is_cut && vanished_pods_size(w.v) != n_holes(&w))
                        fail_msg("seed %u, step %u: %zu pods are remembered, and %zu have no successor", seed, n, vanished_pods_size(w.v), n_holes(&w));
        }
        for (size_t i = 0; i < ELEMENTSOF(w.there); i++) {
                kube_object_unref((KubeObject *) w.there[i]);
                kube_object_unref((KubeObject *) w.seen[i]);
        }
        vanished_pods_free(w.v);
        intern_pool_free(w.pool);
}

TEST_CASE(test_random) {
        for (unsigned seed = 1; seed <= 300; seed++)
                play_world(seed);
}

/* -- how many ------------------------------------------------------------------------------------------- */

/* A thousand go, then another two thousand. */
TEST_CASE(test_bound) {
        static KubePod *pods[3 * VANISHED_MAX];
        InternPool *pool;
        VanishedPods *v;

        assert_return_code(intern_pool_new(&pool), 0);
        assert_return_code(vanished_pods_new(&v), 0);
        for (unsigned i = 0; i < ELEMENTSOF(pods); i++) {
                _cleanup_free_ char *name = strf("%c%u", i % 2 == 0 ? 'w' : 'v', i);

                pods[i] = make_pod(pool, name, "Running", i, -1);
                vanished_pods_see(v, NULL, pods[i], USEC_PER_SEC);
        }
        assert_int_equal(vanished_pods_size(v), 0);
        for (unsigned i = 0; i < ELEMENTSOF(pods); i++) {
                vanished_pods_see(v, pods[i], NULL, i < VANISHED_MAX ? 12 * USEC_PER_SEC : 20 * USEC_PER_SEC);
                assert_int_equal(vanished_pods_size(v), MIN(i + 1, VANISHED_MAX));
                assert_int_equal(vanished_pods_are_incomplete(v), i >= VANISHED_MAX);
        }
        print_message("  those that went last are remembered, and a later one was dropped: not complete until its time is over\n");
        vanished_pods_expire(v, 12 * USEC_PER_SEC + VANISHED_USEC);
        assert_int_equal(vanished_pods_size(v), VANISHED_MAX);
        assert_true(vanished_pods_are_incomplete(v));
        vanished_pods_expire(v, 20 * USEC_PER_SEC + VANISHED_USEC);
        assert_int_equal(vanished_pods_size(v), 0);
        assert_false(vanished_pods_are_incomplete(v));
        for (size_t i = 0; i < ELEMENTSOF(pods); i++)
                kube_object_unref((KubeObject *) pods[i]);
        vanished_pods_free(v);
        intern_pool_free(pool);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_orders),
                cmocka_unit_test(test_random),
                cmocka_unit_test(test_bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
