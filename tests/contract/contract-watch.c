/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: from a version on, in order, with bookmarks, and what comes when that version is forgotten. */
#include "contract-ask.h"

static void mark_node(Rig *r, const char *name, const char *label, const char *value) {
        _cleanup_answer_ Answer a =
                rig_merge(r, RIG_ADMIN, NODE(name), "{'metadata': {'labels': {'%s': %s%s%s}}}", label,
                          value ? "'" : "", value ?: "null", value ? "'" : "");

        assert_answer(a, 200, NULL);
}

static void delete_node(Rig *r, const char *name) {
        _cleanup_answer_ Answer a = rig_delete(r, RIG_ADMIN, NODE(name), NULL);

        assert_answer(a, 200, NULL);
}

/* The version of a list; free it. */
static char *version_now(Rig *r, KubeTarget t) {
        _cleanup_answer_ Answer a = rig_list(r, RIG_ADMIN, t, NULL);
        char *version;

        assert_answer(a, 200, NULL);
        version = strdup(answer_version(&a));
        assert_non_null(version);
        return version;
}

/* What happens between the list and the watch is not lost, and what comes later follows. */
TEST_CASE(watch_from_a_list) {
        Rig *r = *state;
        _cleanup_free_ char *version = version_now(r, NODE(NULL));
        _cleanup_watch_ RigWatch *w = NULL;

        rig_make_node(r, "watch-a");
        mark_node(r, "watch-a", "between", "list-and-watch");
        w = rig_watch(r, RIG_ADMIN, NODE(NULL), &(KubeWatchOptions){ .resource_version = version });
        assert_watch(w, "ADDED watch-a, MODIFIED watch-a");
        rig_make_node(r, "watch-b");
        mark_node(r, "watch-a", "between", NULL);
        delete_node(r, "watch-b");
        delete_node(r, "watch-a");
        assert_watch(w, "ADDED watch-b, MODIFIED watch-a, DELETED watch-b, DELETED watch-a");
        assert_false(w->out_of_order);
}

/* A patch that changes nothing is no event. */
TEST_CASE(no_event_without_change) {
        Rig *r = *state;
        _cleanup_free_ char *version = NULL;
        _cleanup_watch_ RigWatch *w = NULL;

        rig_make_node(r, "watch-same");
        mark_node(r, "watch-same", "a", "b");
        version = version_now(r, NODE(NULL));
        w = rig_watch(r, RIG_ADMIN, NODE(NULL), &(KubeWatchOptions){ .resource_version = version });
        mark_node(r, "watch-same", "a", "b");
        assert_watch(w, "");
        mark_node(r, "watch-same", "a", "c");
        assert_watch(w, "MODIFIED watch-same");
}

/* Who leaves a selection is deleted for those who watch it; who enters is added. */
TEST_CASE(watch_a_selection) {
        Rig *r = *state;
        _cleanup_free_ char *version = NULL;
        _cleanup_watch_ RigWatch *w = NULL;

        rig_make_node(r, "watch-in");
        rig_make_node(r, "watch-out");
        version = version_now(r, NODE(NULL));
        w = rig_watch(r, RIG_ADMIN, NODE(NULL),
                      &(KubeWatchOptions){ .resource_version = version, .label_selector = "watched=yes" });
        mark_node(r, "watch-out", "watched", "no");
        mark_node(r, "watch-in", "watched", "yes");
        mark_node(r, "watch-in", "more", "words");
        mark_node(r, "watch-in", "watched", NULL);
        mark_node(r, "watch-in", "watched", "yes");
        delete_node(r, "watch-out");
        delete_node(r, "watch-in");
        assert_watch(
                w, "ADDED watch-in, MODIFIED watch-in, DELETED watch-in, ADDED watch-in, DELETED watch-in");
        assert_false(w->out_of_order);
}

TEST_CASE(watch_by_field) {
        Rig *r = *state;
        _cleanup_free_ char *version = NULL, *a = NULL, *b = NULL;
        _cleanup_watch_ RigWatch *one = NULL, *mine = NULL;

        rig_make_namespace(r, "watch-fields");
        version = version_now(r, POD("watch-fields", NULL));
        one = rig_watch(
                r, RIG_ADMIN, POD("watch-fields", NULL),
                &(KubeWatchOptions){ .resource_version = version, .field_selector = "metadata.name=b" });
        mine = rig_watch(r, RIG_ADMIN, POD(NULL, NULL),
                         &(KubeWatchOptions){ .resource_version = version,
                                              .field_selector = "spec.nodeName=" RIG_NODE_NAME });
        a = rig_make_pending_pod(r, "watch-fields", "a", RIG_NODE_NAME, "x", "");
        b = rig_make_pending_pod(r, "watch-fields", "b", RIG_OTHER_NODE_NAME, "x", "");
        rig_set_pod_status(r, "watch-fields", "a", "Running", true);
        assert_watch(one, "ADDED b");
        assert_watch(mine, "ADDED a, MODIFIED a");
}

/* Without a version: what is there comes first, as added. */
TEST_CASE(watch_from_now) {
        Rig *r = *state;
        _cleanup_watch_ RigWatch *unset = NULL, *zero = NULL;
        _cleanup_free_ char *version = NULL;

        rig_make_claim(r, "watch-now");
        version = version_now(r, CLAIM(NULL)); /* the cache is as new afterwards */
        unset = rig_watch(r, RIG_ADMIN, CLAIM(NULL),
                          &(KubeWatchOptions){ .field_selector = "metadata.name=watch-now" });
        zero = rig_watch(
                r, RIG_ADMIN, CLAIM(NULL),
                &(KubeWatchOptions){ .field_selector = "metadata.name=watch-now", .resource_version = "0" });
        assert_watch(unset, "ADDED watch-now");
        assert_watch(zero, "ADDED watch-now");
        /* And a bookmark says that this was all: not the one that comes each minute. */
        assert_true(rig_watch_wait_bookmark(unset, rig_limit(r, 2 * USEC_PER_SEC) / 2));
        assert_true(rig_watch_wait_bookmark(zero, rig_limit(r, 2 * USEC_PER_SEC) / 2));
        assert_true(unset->bookmark >= unset->version && zero->bookmark >= zero->version);
}

/* A custom object, from its creation to its end. */
TEST_CASE(watch_custom_objects) {
        Rig *r = *state;
        _cleanup_free_ char *version = version_now(r, CLAIM(NULL));
        _cleanup_watch_ RigWatch *w =
                rig_watch(r, RIG_ADMIN, CLAIM(NULL), &(KubeWatchOptions){ .resource_version = version });
        _cleanup_answer_ Answer status = { 0 }, gone = { 0 };

        rig_make_claim(r, "watch-claim");
        status = rig_merge(r, RIG_ADMIN, CLAIM_STATUS("watch-claim"), "{'status': {'phase': 'Adopted'}}");
        assert_answer(status, 200, NULL);
        gone = rig_delete(r, RIG_ADMIN, CLAIM("watch-claim"), NULL);
        assert_answer(gone, 200, NULL);
        assert_watch(w, "ADDED watch-claim, MODIFIED watch-claim, DELETED watch-claim");
}

/* A watch of a few seconds, in which news() happens early enough for its last bookmark, two seconds before
 * its end. A machine that is too busy for that gets more time. */
static RigWatch *watch_news(Rig *r, KubeTarget t, void (*news)(Rig *r, RigWatch *w, unsigned nth)) {
        Loop *loop = rig_env(r, RIG_ADMIN)->loop;

        for (unsigned timeout_sec = 6, nth = 0;; timeout_sec *= 2, nth++) {
                _cleanup_free_ char *version = version_now(r, t);
                _cleanup_watch_ RigWatch *w = NULL;
                usec_t began = loop_now(loop);

                w = rig_watch(
                        r, RIG_ADMIN, t,
                        &(KubeWatchOptions){ .resource_version = version, .timeout_sec = timeout_sec });
                news(r, w, nth);
                if (loop_now(loop) - began < (timeout_sec - 4) * USEC_PER_SEC)
                        return TAKE_PTR(w);
                if (timeout_sec > 60)
                        fail_msg("a few requests took more than %u s", timeout_sec - 4);
        }
}

static void news_of_a_node(Rig *r, RigWatch *w, unsigned nth) {
        _cleanup_free_ char *name = strf("watch-bookmark-%u", nth);

        assert_watch(w, "");
        rig_make_node(r, name);
}

/* The server ends a watch when its time is over: cleanly, with a bookmark before, if there is news since it
 * began. */
TEST_CASE(bookmark_before_the_end) {
        Rig *r = *state;
        _cleanup_watch_ RigWatch *w = watch_news(r, NODE(NULL), news_of_a_node), *next = NULL;
        _cleanup_free_ char *bookmark = NULL;

        assert_true(rig_watch_wait_bookmark(w, RIG_PATIENCE_USEC));
        assert_non_null(strstr(strbuf_str(&w->seen), "ADDED watch-bookmark-"));
        assert_true(w->bookmark >= w->version);
        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->error, 0);
        assert_int_equal(w->status, 200);
        assert_false(w->out_of_order);

        /* One goes on from there. */
        bookmark = strf("%llu", (unsigned long long) w->bookmark);
        mark_node(r, "watch-bookmark-0", "a", "b");
        next = rig_watch(r, RIG_ADMIN, NODE(NULL), &(KubeWatchOptions){ .resource_version = bookmark });
        assert_watch(next, "MODIFIED watch-bookmark-0");
}

/* A watch without a byte is nothing unusual: whoever waits for bookmarks alone cuts healthy watches. */
TEST_CASE(no_bookmark_without_news) {
        Rig *r = *state;
        _cleanup_free_ char *version = version_now(r, NDB(NULL));
        _cleanup_watch_ RigWatch *w =
                rig_watch(r, RIG_ADMIN, NDB(NULL),
                          &(KubeWatchOptions){ .resource_version = version, .timeout_sec = 4 });

        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->error, 0);
        assert_int_equal(w->n_bookmarks, 0);
        assert_int_equal(w->seen.size, 0);
}

static void news_of_other_kinds(Rig *r, RigWatch *w, unsigned nth) {
        _cleanup_free_ char *name = strf("watch-quiet-%u", nth), *later = NULL;

        assert_watch(w, "");
        rig_make_claim(r, name);
        for (unsigned i = 0; i < 5; i++) {
                rig_make_node(r, "watch-noise");
                delete_node(r, "watch-noise");
        }
        later = version_now(r, CLAIM(NULL));
}

/* A bookmark is newer than the last event of its kind, where others changed: that is its use. (The API
 * server learns of others' changes when etcd notifies it of its progress: here because of a consistent
 * list.) */
TEST_CASE(bookmark_counts_other_kinds) {
        Rig *r = *state;
        _cleanup_watch_ RigWatch *w = watch_news(r, CLAIM(NULL), news_of_other_kinds);

        assert_true(rig_watch_wait_bookmark(w, RIG_PATIENCE_USEC));
        assert_non_null(strstr(strbuf_str(&w->seen), "ADDED watch-quiet-"));
        assert_true(w->bookmark > w->version);
}

/* 200, then an event that says 410. */
TEST_CASE(watch_from_the_forgotten) {
        Rig *r = *state;
        _cleanup_free_ char *version = version_now(r, NODE(NULL));
        _cleanup_watch_ RigWatch *w = NULL;

        rig_make_node(r, "watch-forgotten");
        mark_node(r, "watch-forgotten", "a", "b");
        rig_compact(r);
        w = rig_watch(r, RIG_ADMIN, NODE(NULL), &(KubeWatchOptions){ .resource_version = version });
        assert_watch(w, "ERROR 410");
        assert_string_equal(w->error_reason, "Expired");
        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->error, 0);
}

/* Of a version that is not yet, as of before etcd was restored from a backup: taken, and told nothing. Whoever waits there
 * waits for as long as it takes to get there, and is not told what has happened until then. */
TEST_CASE(watch_from_the_future) {
        Rig *r = *state;
        _cleanup_watch_ RigWatch *w = rig_watch(r, RIG_ADMIN, NODE(NULL),
                                                &(KubeWatchOptions){ .resource_version = "999999999",
                                                                     .timeout_sec = 6 });

        rig_make_node(r, "watch-future");
        mark_node(r, "watch-future", "a", "b");
        assert_watch(w, "");
        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->error, 0);
        assert_int_equal(w->n_bookmarks, 0);
        assert_int_equal(w->seen.size, 0);
}

TEST_CASE(watch_from_nonsense) {
        Rig *r = *state;
        _cleanup_answer_ Answer a = rig_http(
                r, RIG_ADMIN, HTTP_GET, "/api/v1/nodes?watch=true&resourceVersion=nonsense", NULL, NULL);

        assert_true(a.status >= 400);
        assert_int_equal(a.error.http, a.status);
}

/* A broken connection is an error for who watches, and nothing is lost by it. */
TEST_CASE(watch_is_cut) {
        Rig *r = *state;
        _cleanup_free_ char *version = version_now(r, NODE(NULL)), *seen = NULL;
        _cleanup_watch_ RigWatch *w = NULL, *again = NULL;

        w = rig_watch(r, RIG_ADMIN, NODE(NULL), &(KubeWatchOptions){ .resource_version = version });
        rig_make_node(r, "watch-cut");
        assert_watch(w, "ADDED watch-cut");
        rig_cut(r);
        assert_true(rig_watch_wait_end(w));
        assert_int_equal(w->error, -ECONNRESET);

        mark_node(r, "watch-cut", "a", "b");
        seen = strf("%llu", (unsigned long long) w->version);
        again = rig_watch(r, RIG_ADMIN, NODE(NULL), &(KubeWatchOptions){ .resource_version = seen });
        assert_watch(again, "MODIFIED watch-cut");
}

static const struct CMUnitTest cases[] = {
        cmocka_unit_test(watch_from_a_list),
        cmocka_unit_test(no_event_without_change),
        cmocka_unit_test(watch_a_selection),
        cmocka_unit_test(watch_by_field),
        cmocka_unit_test(watch_from_now),
        cmocka_unit_test(watch_custom_objects),
        cmocka_unit_test(bookmark_before_the_end),
        cmocka_unit_test(no_bookmark_without_news),
        cmocka_unit_test(bookmark_counts_other_kinds),
        cmocka_unit_test(watch_from_the_forgotten),
        cmocka_unit_test(watch_from_the_future),
        cmocka_unit_test(watch_from_nonsense),
        cmocka_unit_test(watch_is_cut),
};
CONTRACT_SUITE(watch, cases);
