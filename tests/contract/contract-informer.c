/* SPDX-License-Identifier: Apache-2.0 */
/* The informer on a server that changes, breaks off, is away and forgets: in the end the copy is the
 * original, and the events have told the same story. */
#include "contract-ask.h"
#include "hashmap.h"
#include "informer.h"

/* Asserts nothing in a callback: it may be called after its case has failed. */
typedef struct Follower {
        Rig *rig;
        RigWho who;
        Informer *informer;
        Hashmap *known; /* by name, from the events alone */
        bool synced, contradiction;
        unsigned n_added, n_modified, n_deleted;
        const char *awaited; /* the resourceVersion that shall be seen of that name */
        const char *awaited_name;
} Follower;

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Follower *f = userdata;
        const char *name = (new ?: old)->meta.name;
        bool known = hashmap_get(f->known, name);

        switch (e) {
        case INFORMER_ADDED:
                f->n_added++;
                f->contradiction |= known || hashmap_put(f->known, name, f) < 0;
                break;
        case INFORMER_MODIFIED:
                f->n_modified++;
                f->contradiction |= !known || !streq(old->meta.uid, new->meta.uid) ||
                                    streq(old->meta.resource_version, new->meta.resource_version);
                break;
        case INFORMER_DELETED:
                f->n_deleted++;
                f->contradiction |= !known;
                (void) hashmap_remove(f->known, name);
                break;
        }
}

static void on_synced(Informer *i, void *userdata) {
        ((Follower *) userdata)->synced = true;
}

static bool is_synced(void *userdata) {
        return ((Follower *) userdata)->synced;
}

static Follower *follower_new(Rig *r, RigWho who, const KubeKind *kind, const InformerOptions *o) {
        Follower *f = new0(Follower, 1);
        InformerHandler h = { .on_event = on_event, .on_synced = on_synced, .userdata = f };

        assert_non_null(f);
        f->rig = r;
        f->who = who;
        assert_return_code(hashmap_new(0, &f->known), 0);
        assert_return_code(informer_new(rig_client(r, who), kind, o, &h, &f->informer), 0);
        assert_true(rig_wait(r, is_synced, f, RIG_PATIENCE_USEC));
        return f;
}

static Follower *follower_free(Follower *f) {
        if (!f)
                return NULL;
        informer_free(f->informer);
        hashmap_free(f->known);
        return mfree(f);
}
DEFINE_FREEP(Follower, follower_free);

static uint64_t lists_of(const Follower *f) {
        return kube_client_requests(rig_client(f->rig, f->who), KUBE_VERB_LIST);
}

/* -- nodes of a group ----------------------------------------------------------------------------- */

static void make(Rig *r, const char *group, const char *name) {
        _cleanup_answer_ Answer a =
                rig_create(r, RIG_ADMIN, NODE(NULL),
                           "{'metadata': {'name': '%s', 'labels': {'informer': '%s'}}}", name, group);

        assert_answer(a, 201, NULL);
}

static void change(Rig *r, const char *name, const char *value) {
        _cleanup_answer_ Answer a =
                rig_merge(r, RIG_ADMIN, NODE(name), "{'metadata': {'annotations': {'at': '%s'}}}", value);

        assert_answer(a, 200, NULL);
}

static void drop(Rig *r, const char *name) {
        _cleanup_answer_ Answer a = rig_delete(r, RIG_ADMIN, NODE(name), NULL);

        assert_answer(a, 200, NULL);
}

static bool follower_is_there(void *userdata) {
        Follower *f = userdata;
        const KubeObject *o = informer_get(f->informer, NULL, f->awaited_name);

        return o && streq(o->meta.resource_version, f->awaited);
}

/* Everything up to now has arrived: a last write is made, and seen. */
static void catch_up(Follower *f, const char *group, const char *name) {
        _cleanup_answer_ Answer a =
                rig_create(f->rig, RIG_ADMIN, NODE(NULL),
                           "{'metadata': {'name': '%s', 'labels': {'informer': '%s'}}}", name, group);

        assert_answer(a, 201, NULL);
        f->awaited = answer_version(&a);
        f->awaited_name = name;
        assert_true(rig_wait(f->rig, follower_is_there, f, RIG_PATIENCE_USEC));
}

/* The copy is what a list says now, and so is what the events have told. */
static void assert_is_the_original(Follower *f, const char *group) {
        _cleanup_free_ char *selector = strf("informer=%s", group);
        _cleanup_answer_ Answer a =
                rig_list(f->rig, RIG_ADMIN, NODE(NULL), &(KubeListOptions){ .label_selector = selector });
        const Json *items;

        assert_answer(a, 200, NULL);
        items = json_get(a.json, "items");
        JSON_FOREACH (item, items) {
                const char *name = json_string_or_null(json_path(item, "metadata", "name", NULL));
                const KubeObject *o = informer_get(f->informer, NULL, name);

                assert_non_null(o);
                assert_string_equal(
                        o->meta.resource_version,
                        json_string_or_null(json_path(item, "metadata", "resourceVersion", NULL)));
                assert_string_equal(o->meta.uid,
                                    json_string_or_null(json_path(item, "metadata", "uid", NULL)));
                assert_non_null(hashmap_get(f->known, name));
        }
        assert_int_equal(informer_size(f->informer), json_size(items));
        assert_int_equal(hashmap_size(f->known), json_size(items));
        assert_false(f->contradiction);
        assert_int_equal(informer_undecodable(f->informer), 0);
}

/* -- cases ---------------------------------------------------------------------------------------- */

TEST_CASE(it_follows) {
        Rig *r = *state;
        _cleanup_(follower_freep) Follower *f = NULL;
        uint64_t lists = kube_client_requests(rig_client(r, RIG_HELD), KUBE_VERB_LIST);

        for (unsigned i = 0; i < 5; i++) {
                _cleanup_free_ char *name = strf("follow-%u", i);

                make(r, "follow", name);
        }
        f = follower_new(r, RIG_HELD, &kube_node_kind,
                         &(InformerOptions){ .label_selector = "informer=follow", .page_size = 2 });
        assert_int_equal(f->n_added, 5);
        assert_int_equal(lists_of(f) - lists, 3);
        assert_is_the_original(f, "follow");

        make(r, "follow", "follow-new");
        change(r, "follow-new", "1");
        change(r, "follow-2", "1");
        drop(r, "follow-0");
        drop(r, "follow-new");
        make(r, "follow", "follow-0");
        catch_up(f, "follow", "follow-last");
        assert_is_the_original(f, "follow");
        assert_int_equal(f->n_added, 8);
        assert_int_equal(f->n_modified, 2);
        assert_int_equal(f->n_deleted, 2);
        assert_int_equal(lists_of(f) - lists, 3);
}

static bool is_cut_off(void *userdata) {
        return !informer_connected(((Follower *) userdata)->informer);
}

/* Broken off and away for a while: it goes on where it was, without a list. */
TEST_CASE(it_goes_on_after_a_cut) {
        Rig *r = *state;
        _cleanup_(follower_freep) Follower *f = NULL;
        uint64_t lists;

        make(r, "cut", "cut-a");
        make(r, "cut", "cut-b");
        make(r, "cut", "cut-c");
        f = follower_new(r, RIG_HELD, &kube_node_kind,
                         &(InformerOptions){ .label_selector = "informer=cut" });
        lists = lists_of(f);
        rig_hold(r, true);
        drop(r, "cut-a");
        change(r, "cut-b", "1");
        drop(r, "cut-c");
        make(r, "cut", "cut-c");
        assert_true(rig_wait(r, is_cut_off, f, RIG_PATIENCE_USEC));
        assert_int_equal(f->n_deleted, 0);
        rig_hold(r, false);
        informer_kick(f->informer);
        catch_up(f, "cut", "cut-last");
        assert_is_the_original(f, "cut");
        assert_int_equal(f->n_deleted, 2);
        assert_int_equal(lists_of(f), lists);
}

/* Away while the past was forgotten: a new list, and it tells what was lost meanwhile, deletes too. */
TEST_CASE(it_lists_again_after_410) {
        Rig *r = *state;
        _cleanup_(follower_freep) Follower *f = NULL;
        uint64_t lists;

        make(r, "gone", "gone-a");
        make(r, "gone", "gone-b");
        make(r, "gone", "gone-c");
        make(r, "gone", "gone-d");
        f = follower_new(r, RIG_HELD, &kube_node_kind,
                         &(InformerOptions){ .label_selector = "informer=gone", .page_size = 2 });
        lists = lists_of(f);
        rig_hold(r, true);
        drop(r, "gone-a");
        change(r, "gone-b", "1");
        drop(r, "gone-c");
        make(r, "gone", "gone-c"); /* another of the same name: deleted, then added */
        make(r, "gone", "gone-e");
        rig_compact(r);
        rig_hold(r, false);
        informer_kick(f->informer);
        catch_up(f, "gone", "gone-last");
        assert_is_the_original(f, "gone");
        assert_true(lists_of(f) > lists);
        assert_int_equal(f->n_deleted, 2);
        assert_int_equal(f->n_modified, 1);
        assert_null(informer_get(f->informer, NULL, "gone-a"));
}

/* The server itself goes and comes again while the informer watches. */
TEST_CASE(it_outlives_the_server) {
        Rig *r = *state;
        _cleanup_(follower_freep) Follower *f = NULL;

        make(r, "outlive", "outlive-a");
        f = follower_new(r, RIG_HELD, &kube_node_kind,
                         &(InformerOptions){ .label_selector = "informer=outlive" });
        change(r, "outlive-a", "1");
        rig_compact(r);
        change(r, "outlive-a", "2");
        catch_up(f, "outlive", "outlive-last");
        assert_is_the_original(f, "outlive");
        assert_int_equal(f->n_deleted, 0);
}

static bool has_later(void *userdata) {
        return informer_get(((Follower *) userdata)->informer, "informer-pods", "later");
}

/* With a node's own credential: its pods and no others, from any namespace. */
TEST_CASE(it_follows_the_pods_of_a_node) {
        Rig *r = *state;
        _cleanup_(follower_freep) Follower *f = NULL;
        _cleanup_free_ char *a = NULL, *b = NULL, *c = NULL;
        _cleanup_answer_ Answer gone = { 0 };

        rig_make_namespace(r, "informer-pods");
        a = rig_make_pod(r, "informer-pods", "mine", RIG_OTHER_NODE_NAME, "x");
        b = rig_make_pod(r, "informer-pods", "theirs", "nowhere", "x");
        f = follower_new(r, RIG_OTHER_NODE, &kube_pod_kind,
                         &(InformerOptions){ .field_selector = "spec.nodeName=" RIG_OTHER_NODE_NAME });
        assert_non_null(informer_get(f->informer, "informer-pods", "mine"));
        assert_null(informer_get(f->informer, "informer-pods", "theirs"));
        gone = rig_delete(r, RIG_ADMIN, POD("informer-pods", "mine"),
                          &(KubeDeleteOptions){ .grace_sec = 0 });
        assert_answer(gone, 200, NULL);
        c = rig_make_pod(r, "informer-pods", "later", RIG_OTHER_NODE_NAME, "x");
        assert_true(rig_wait(r, has_later, f, rig_limit(r, USEC_PER_SEC)));
        assert_null(informer_get(f->informer, "informer-pods", "mine"));
        assert_null(informer_get(f->informer, "informer-pods", "theirs"));
        assert_false(f->contradiction);
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(it_follows),
        cmocka_unit_test(it_goes_on_after_a_cut),
        cmocka_unit_test(it_lists_again_after_410),
        cmocka_unit_test(it_outlives_the_server),
        cmocka_unit_test(it_follows_the_pods_of_a_node),
};
CONTRACT_SUITE(informer, cases);
