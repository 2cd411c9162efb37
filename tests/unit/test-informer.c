/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "informer.h"
#include "kube-rig.h"

/* A kind of which nothing but the metadata is kept. */
static const KubeKind node_kind = {
        .group = "",
        .version = "v1",
        .plural = "nodes",
        .kind = "Node",
        .size = sizeof(KubeObject),
};
static const KubeKind pod_kind = {
        .group = "",
        .version = "v1",
        .plural = "pods",
        .kind = "Pod",
        .namespaced = true,
        .size = sizeof(KubeObject),
};

#define OBJECT(name, version) OBJECT_UID(name, version, "u-" name)
#define OBJECT_UID(name, version, uid) \
        "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\",\"uid\":\"" uid "\"}}"
#define POD(ns, name, version) \
        "{\"metadata\":{\"namespace\":\"" ns "\",\"name\":\"" name "\",\"resourceVersion\":\"" version \
        "\",\"uid\":\"u\"}}"
#define LIST(version, items) \
        "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"" version "\"},\"items\":[" items "]}"
#define PAGE(version, token, items) \
        "{\"metadata\":{\"resourceVersion\":\"" version "\",\"continue\":\"" token "\"},\"items\":[" items \
        "]}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"
#define BOOKMARK(version) \
        EVENT("BOOKMARK", "{\"kind\":\"Node\",\"metadata\":{\"resourceVersion\":\"" version "\"}}")
#define STATUS(code, reason) \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":" \
        "\"no\"," \
        "\"reason\":\"" reason "\",\"code\":" code "}"
#define GONE STATUS("410", "Expired")

static Rig *rig_of(void *userdata) {
        return userdata;
}

/* "+a@1": a of resourceVersion 1 was added; "~a@1>2": modified; "-a@2": deleted. The store agrees with what
 * is told. */
static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        StrBuf *t = &rig_of(userdata)->trace;
        KubeObject *any = new ?: old;

        switch (e) {
        case INFORMER_ADDED:
                assert_null(old);
                strbuf_addf(t, " +%s@%s", new->meta.name, new->meta.resource_version);
                break;
        case INFORMER_MODIFIED:
                assert_string_equal(old->meta.name, new->meta.name);
                strbuf_addf(t, " ~%s@%s>%s", new->meta.name, old->meta.resource_version,
                            new->meta.resource_version);
                break;
        case INFORMER_DELETED:
                assert_null(new);
                strbuf_addf(t, " -%s@%s", old->meta.name, old->meta.resource_version);
                break;
        }
        assert_ptr_equal(informer_get(i, any->meta.ns, any->meta.name), new);
        informer_kick(i); /* of no effect in the middle of an answer */
}

static void on_synced(Informer *i, void *userdata) {
        assert_true(informer_synced(i));
        strbuf_add(&rig_of(userdata)->trace, " synced");
}

static void on_health(Informer *i, bool connected, const char *why, void *userdata) {
        assert_int_equal(informer_connected(i), connected);
        assert_int_equal(isempty(why), connected);
        strbuf_add(&rig_of(userdata)->trace, connected ? " up" : " down");
}

/* "list", "list(2,token)", "watch@7". */
static void describe(const HttpExchange *x, StrBuf *t) {
        _cleanup_free_ char *watch = rig_query(x, "watch"), *version = rig_query(x, "resourceVersion"),
                            *limit = rig_query(x, "limit"), *token = rig_query(x, "continue"),
                            *bookmarks = rig_query(x, "allowWatchBookmarks");

        assert_int_equal(x->method, HTTP_GET);
        if (watch) {
                assert_string_equal(bookmarks, "true");
                strbuf_addf(t, "watch@%s", version);
                return;
        }
        assert_null(version); /* consistent */
        strbuf_add(t, "list");
        if (!streq(limit, "500") || token)
                strbuf_addf(t, "(%s%s%s)", limit, token ? "," : "", strempty(token));
}

static Informer *informer_start(Rig *r, const KubeKind *kind, const InformerOptions *o) {
        InformerHandler h = {
                .on_event = on_event,
                .on_synced = on_synced,
                .on_health = on_health,
                .userdata = r,
        };
        Informer *i;

        r->describe = describe;
        assert_return_code(informer_new(r->host->client, kind, o, &h, &i), 0);
        assert_null(informer_resource_version(i));
        assert_false(informer_synced(i));
        return i;
}

static usec_t last_request_usec(const Rig *r) {
        return r->requests[r->n_requests - 1].at_usec;
}

/* Synced with a@1 and b@2, watching from 10. */
static Informer *informer_standing(Rig *r) {
        Informer *i;

        rig_answer(r, 200, LIST("10", OBJECT("a", "1") "," OBJECT("b", "2")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, 0);
        assert_trace(r, "list +a@1 +b@2 up synced watch@10");
        return i;
}

/* -- one stream after a list ---------------------------------------------------------------------------- */

TEST_CASE(test_watch_events) {
        static const struct {
                const char *what, *lines, *expected, *version;
        } rows[] = {
                { "an object is added", EVENT("ADDED", OBJECT("c", "11")), "+c@11", "11" },
                { "an object is modified", EVENT("MODIFIED", OBJECT("a", "12")), "~a@1>12", "12" },
                { "added, but known already", EVENT("ADDED", OBJECT("a", "12")), "~a@1>12", "12" },
                { "told again what is known", EVENT("ADDED", OBJECT("a", "1")), "", "1" },
                { "an object is deleted", EVENT("DELETED", OBJECT("b", "13")), "-b@2", "13" },
                { "deleted, but never seen", EVENT("DELETED", OBJECT("x", "13")), "", "13" },
                { "a bookmark moves the point of resume", BOOKMARK("99"), "", "99" },
                { "another uid is another object", EVENT("MODIFIED", OBJECT_UID("a", "14", "new")),
                  "-a@1 +a@14", "14" },
                { "the end of a predecessor", EVENT("DELETED", OBJECT_UID("a", "14", "older")), "", "14" },
                { "of another kind: what was known stays",
                  EVENT("MODIFIED",
                        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"15\"}}"),
                  "", "15" },
                { "a type from the future", EVENT("RENAMED", OBJECT("a", "16")), "", "10" },
                { "several in one piece",
                  EVENT("DELETED", OBJECT("a", "11")) EVENT("ADDED", OBJECT("a", "12")), "-a@1 +a@12",
                  "12" },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = informer_standing(r);

                const KubeObject *before = informer_get(i, NULL, "a");

                print_message("%s\n", rows[k].what);
                rig_say(r, rows[k].lines);
                rig_run_for(r, 5 * USEC_PER_SEC);
                assert_trace(r, rows[k].expected);
                assert_string_equal(informer_resource_version(i), rows[k].version);
                if (isempty(rows[k].expected)) /* what nobody is told of is not another object either */
                        assert_ptr_equal(informer_get(i, NULL, "a"), before);
        }
}

TEST_CASE(test_resume_after_clean_end) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = informer_standing(r);
        usec_t end;

        rig_say(r, BOOKMARK("20"));
        rig_run_for(r, USEC_PER_MINUTE);
        rig_stream(r, EVENT("ADDED", OBJECT("c", "21")));
        rig_end(r, true);
        end = virtual_time_now(r->time);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "watch@20 +c@21");
        assert_int_equal(last_request_usec(r), end);
        assert_true(informer_connected(i));
}

/* -- the list ------------------------------------------------------------------------------------------- */

TEST_CASE(test_pages) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        HashmapIterator it = { 0 };
        KubeObject *o;

        rig_answer(r, 200, PAGE("10", "t+1/=", OBJECT("a", "1") "," OBJECT("b", "2")));
        rig_answer(r, 200, PAGE("10", "t2", OBJECT("c", "3") "," OBJECT("d", "4")));
        rig_answer(r, 200, LIST("12", OBJECT("e", "5")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, &(InformerOptions){ .page_size = 2 });
        rig_run_for(r, 0);
        assert_trace(r, "list(2) +a@1 +b@2 list(2,t+1/=) +c@3 +d@4 list(2,t2) +e@5 up synced watch@10");
        assert_int_equal(informer_size(i), 5);
        assert_true(informer_iterate(i, &it, &o));
        assert_string_equal(o->meta.name, "a");
        assert_string_equal(informer_get(i, NULL, "d")->meta.uid, "u-d");
        assert_null(informer_get(i, NULL, "f"));
}

/* Whoever may make objects makes large ones: 500 of them may be more than is ever taken. */
TEST_CASE(test_page_too_large) {
        enum { TOO_LARGE = 64 * 1024 * 1024 + 1 };
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        _cleanup_free_ char *large = calloc(1, TOO_LARGE);

        rig_answer_with(r, (RigAnswer){ .status = 200, .body = large, .body_size = TOO_LARGE });
        rig_answer_with(r, (RigAnswer){ .status = 200, .body = large, .body_size = TOO_LARGE });
        rig_answer(r, 200, LIST("12", OBJECT("e", "5")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, &(InformerOptions){ .page_size = 70 });
        rig_run_for(r, 0);
        assert_trace(r, "list(70) down");
        rig_run_for(r, 5 * USEC_PER_SEC);
        assert_trace(r, "list(35) list(17) +e@5 up synced watch@12");
}

TEST_CASE(test_token_expires) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer(r, 200, PAGE("10", "t1", OBJECT("a", "1") "," OBJECT("b", "2")));
        rig_answer(r, 410, GONE);
        rig_answer(r, 200, PAGE("20", "t3", OBJECT("a", "11")));
        rig_answer(r, 200, LIST("20", OBJECT("c", "12")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, &(InformerOptions){ .page_size = 2 });
        rig_run_for(r, 0);
        assert_trace(
                r, "list(2) +a@1 +b@2 list(2,t1) list(2) ~a@1>11 list(2,t3) +c@12 -b@2 up synced watch@20");
}

/* What was known before a relist is known throughout it. */
TEST_CASE(test_relist_interrupted) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = informer_standing(r);

        rig_run_for(r, USEC_PER_MINUTE);
        rig_answer(r, 200, PAGE("30", "t1", OBJECT("a", "1")));
        rig_answer(r, 503, STATUS("503", "ServiceUnavailable"));
        rig_say(r, EVENT("ERROR", GONE));
        rig_run_for(r, 100 * USEC_PER_MSEC);
        assert_trace(r, "list list(500,t1) down");
        assert_int_equal(informer_size(i), 2);

        /* The same page again; then its token has run out. */
        rig_answer(r, 410, GONE);
        rig_run_for(r, 300 * USEC_PER_MSEC);
        assert_trace(r, "list(500,t1)");
        assert_int_equal(informer_size(i), 2);

        rig_answer(r, 200, LIST("31", OBJECT("a", "1")));
        rig_stream(r, "");
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "list -b@2 up watch@31");
}

TEST_CASE(test_unreadable_items) {
        static const struct {
                const char *what, *items, *expected;
                unsigned undecodable;
        } rows[] = {
                { "of another kind: known ones stay", "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}",
                  "list -b@2 watch@20", 1 },
                { "without a name: nothing is deleted", "{\"metadata\":{\"uid\":\"7\"}}," OBJECT("b", "9"),
                  "list ~b@2>9 watch@20", 1 },
                { "twice the same key: nothing is deleted", "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
                  "list watch@20", 1 },
                { "not an object at all", "7,null", "list watch@20", 2 },
                { "the others are read", OBJECT("a", "1") ",{\"metadata\":{}}," OBJECT("c", "12"),
                  "list +c@12 watch@20", 1 },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = informer_standing(r);
                _cleanup_free_ char *body =
                        strf("{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[%s]}", rows[k].items);

                print_message("%s\n", rows[k].what);
                rig_answer(r, 200, body);
                rig_stream(r, "");
                rig_say(r, EVENT("ERROR", GONE));
                rig_run_for(r, 0);
                assert_trace(r, rows[k].expected);
                assert_int_equal(informer_undecodable(i), rows[k].undecodable);

                /* A clean list after that: whatever is not in it goes. */
                rig_run_for(r, USEC_PER_MINUTE);
                rig_answer(r, 200, LIST("30", OBJECT("z", "29")));
                rig_stream(r, "");
                rig_say(r, EVENT("ERROR", GONE));
                rig_run_for(r, 0);
                free(rig_take_trace(r));
                assert_int_equal(informer_size(i), 1);
                assert_non_null(informer_get(i, NULL, "z"));
                assert_int_equal(informer_undecodable(i), rows[k].undecodable);
        }
}

/* What fails in the middle of a list: asked for again with the same token, or from its beginning. */
TEST_CASE(test_page_fails) {
        static const struct {
                unsigned status;
                const char *retry_after;
                const char *again;
                usec_t earliest_usec, latest_usec;
        } rows[] = {
                { 401, NULL, "list(2,t1)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { 403, NULL, "list(2,t1)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { 408, NULL, "list(2,t1)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { 429, "7", "list(2,t1)", 7 * USEC_PER_SEC, 7 * USEC_PER_SEC },
                { 429, "86400", "list(2,t1)", USEC_PER_MINUTE, USEC_PER_MINUTE },
                { 500, NULL, "list(2,t1)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { 504, NULL, "list(2,t1)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { 400, NULL, "list(2)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { 404, NULL, "list(2)", 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = NULL;
                _cleanup_free_ char *expected = strf("%s +b@2 up synced watch@10", rows[k].again);
                size_t failed;

                print_message("HTTP %u\n", rows[k].status);
                rig_answer(r, 200, PAGE("10", "t1", OBJECT("a", "1")));
                rig_answer_later(r, rows[k].status, rows[k].retry_after);
                if (rows[k].status == 401) /* the credential is looked at, and the request sent again */
                        rig_answer_later(r, rows[k].status, rows[k].retry_after);
                rig_answer(r, 200, LIST("10", OBJECT("a", "1") "," OBJECT("b", "2")));
                rig_stream(r, "");
                i = informer_start(r, &node_kind, &(InformerOptions){ .page_size = 2 });
                rig_run_for(r, 100 * USEC_PER_MSEC);
                assert_trace(r, rows[k].status == 401 ? "list(2) +a@1 list(2,t1) list(2,t1) down"
                                                      : "list(2) +a@1 list(2,t1) down");
                failed = r->n_requests;
                rig_run_for(r, 10 * USEC_PER_MINUTE);
                {
                        _cleanup_free_ char *trace = rig_take_trace(r);

                        assert_non_null(startswith(trace, expected));
                }
                assert_in_range(r->requests[failed].at_usec - r->requests[failed - 1].at_usec,
                                rows[k].earliest_usec, rows[k].latest_usec);
        }
}

/* 410 for a list that begins has nothing to begin anew with: it waits, as after any refusal. */
TEST_CASE(test_first_page_is_gone) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = NULL;

        rig_answer(r, 410, GONE);
        rig_answer(r, 200, LIST("10", OBJECT("a", "1")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, 199 * USEC_PER_MSEC);
        assert_trace(r, "list down");
        rig_run_for(r, 101 * USEC_PER_MSEC);
        assert_trace(r, "list +a@1 up synced watch@10");
}

/* A page that came is forgiveness: the next failure waits as short as the first. */
TEST_CASE(test_page_forgives) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = NULL;

        for (unsigned n = 0; n < 5; n++)
                rig_answer_later(r, 500, NULL);
        rig_answer(r, 200, PAGE("10", "t1", OBJECT("a", "1")));
        rig_answer_later(r, 500, NULL);
        rig_answer(r, 200, LIST("10", OBJECT("b", "2")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "list down list list list list list +a@1 list(500,t1) list(500,t1) +b@2 up synced "
                        "watch@10");
        assert_in_range(r->requests[7].at_usec - r->requests[6].at_usec, 200 * USEC_PER_MSEC,
                        300 * USEC_PER_MSEC);
}

/* A list that makes no sense is asked for again, later; what is known stays. */
TEST_CASE(test_unreadable_list) {
        static const struct {
                const char *what;
                unsigned status;
                const char *body;
        } rows[] = {
                { "not JSON", 200, "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" },
                { "no resourceVersion", 200, "{\"metadata\":{},\"items\":[]}" },
                { "forbidden", 403, STATUS("403", "Forbidden") },
                { "the kind is not installed", 404, "404 page not found" },
                { "broken inside", 500, "" },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = informer_standing(r);

                print_message("%s\n", rows[k].what);
                rig_answer(r, rows[k].status, rows[k].body);
                rig_answer(r, 200, LIST("21", OBJECT("b", "2")));
                rig_stream(r, "");
                rig_say(r, EVENT("ERROR", GONE));
                rig_run_for(r, 199 * USEC_PER_MSEC);
                assert_trace(r, "list down");
                assert_int_equal(informer_size(i), 2);
                rig_run_for(r, 101 * USEC_PER_MSEC);
                assert_trace(r, "list -a@1 up watch@21");
        }
}

/* -- relist --------------------------------------------------------------------------------------------- */

TEST_CASE(test_gone) {
        static const struct {
                const char *what, *items, *expected;
        } rows[] = {
                { "nothing has changed", OBJECT("a", "1") "," OBJECT("b", "2"), "list watch@20" },
                { "one has vanished", OBJECT("b", "2"), "list -a@1 watch@20" },
                { "all have vanished", "", "list -a@1 -b@2 watch@20" },
                { "one changed, one is new", OBJECT("a", "15") "," OBJECT("b", "2") "," OBJECT("c", "16"),
                  "list ~a@1>15 +c@16 watch@20" },
                { "one is another under the same name", OBJECT_UID("a", "15", "new") "," OBJECT("b", "2"),
                  "list -a@1 +a@15 watch@20" },
        };

        for (size_t k = 0; k < 2 * ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = informer_standing(r);
                _cleanup_free_ char *body = strf(
                        "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[%s]}", rows[k / 2].items);
                bool by_status = k % 2 == 1;

                print_message("%s, told by %s\n", rows[k / 2].what,
                              by_status ? "the HTTP status" : "an ERROR event");
                rig_run_for(r, USEC_PER_MINUTE);
                if (by_status) {
                        rig_answer(r, 410, GONE);
                        rig_end(r, true);
                        rig_answer(r, 200, body);
                } else {
                        rig_answer(r, 200, body);
                        rig_say(r, EVENT("ERROR", GONE));
                }
                rig_stream(r, "");
                rig_run_for(r, 0);
                if (by_status) {
                        _cleanup_free_ char *expected = strf("watch@10 %s", rows[k / 2].expected);

                        assert_trace(r, expected);
                } else
                        assert_trace(r, rows[k / 2].expected);
                assert_true(informer_connected(i));
        }
}

/* A server that calls each of its own lists too old is not asked in a circle. */
TEST_CASE(test_gone_again_and_again) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        size_t n;

        for (unsigned k = 0; k < 20; k++) {
                rig_answer(r, 200, LIST("10", OBJECT("a", "1")));
                rig_stream(r, EVENT("ERROR", GONE));
        }
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, 100 * USEC_PER_MSEC);
        assert_trace(r, "list +a@1 up synced watch@10 list watch@10 down");
        rig_run_for(r, 2 * USEC_PER_MINUTE);
        n = r->n_requests;
        /* Two each time: 0.25 0.5 1 2 4 8 16 30 30 s, give or take a fifth. */
        assert_in_range(n, 4 + 2 * 8, 4 + 2 * 10);
}

/* -- failures of the watch ------------------------------------------------------------------------------ */

/* A silent watch is begun again from the last bookmark; silence alone is no bad news, a next watch that
 * fails is. */
TEST_CASE(test_stall) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = informer_standing(r);
        usec_t said;

        rig_run_for(r, 100 * USEC_PER_SEC);
        rig_say(r, BOOKMARK("11"));
        said = virtual_time_now(r->time);
        rig_run_for(r, 150 * USEC_PER_SEC - 1);
        assert_trace(r, "");
        rig_stream(r, "");
        rig_run_for(r, 1);
        assert_trace(r, "watch@11");
        assert_int_equal(last_request_usec(r), said + 150 * USEC_PER_SEC);
        assert_int_equal(r->n_open, 1);
        rig_run_for(r, 20 * USEC_PER_SEC);
        assert_trace(r, "");
        assert_true(informer_connected(i));
}

/* etcd was restored from a backup: its versions begin again below those that were seen. */
#define TOO_LARGE \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":" \
        "\"Timeout: Too large resource version: 10, current: 4\",\"reason\":\"Timeout\",\"details\":{\"causes\":[{" \
        "\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}]," \
        "\"retryAfterSeconds\":1},\"code\":504}"

TEST_CASE(test_restored) {
        static const struct {
                const char *what;
                unsigned status; /* of the next watch; 0: an ERROR event of this one */
        } rows[] = { { "told by the HTTP status", 504 }, { "told by an ERROR event", 0 } };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = informer_standing(r);

                print_message("%s\n", rows[k].what);
                rig_run_for(r, USEC_PER_MINUTE);
                if (rows[k].status != 0)
                        rig_answer(r, rows[k].status, TOO_LARGE);
                rig_answer(r, 200, LIST("4", OBJECT("a", "3")));
                rig_stream(r, EVENT("ADDED", OBJECT("c", "5")));
                if (rows[k].status != 0)
                        rig_end(r, true);
                else
                        rig_say(r, EVENT("ERROR", TOO_LARGE));
                rig_run_for(r, 5 * USEC_PER_SEC);
                assert_trace(r, rows[k].status != 0 ? "watch@10 down list ~a@1>3 -b@2 up watch@4 +c@5"
                                                    : "down list ~a@1>3 -b@2 up watch@4 +c@5");
                assert_true(informer_connected(i));
        }
}

/* The API server takes such a watch, and tells it nothing. */
TEST_CASE(test_restored_in_silence) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);

        rig_run_for(r, USEC_PER_MINUTE);
        rig_say(r, BOOKMARK("11"));
        rig_stream(r, "");
        rig_end(r, true);
        rig_stream(r, "");
        rig_run_for(r, 300 * USEC_PER_SEC - 1);
        assert_trace(r, "watch@11 watch@11");
        rig_answer(r, 200, LIST("4", OBJECT("a", "3")));
        rig_stream(r, BOOKMARK("4"));
        rig_run_for(r, 1);
        assert_trace(r, "list ~a@1>3 -b@2 watch@4");

        print_message("a silence after a word is one of the path\n");
        rig_stream(r, "");
        rig_run_for(r, 150 * USEC_PER_SEC);
        assert_trace(r, "watch@4");
}

/* Silent watches that stood for 20 s count as silence, and shorter ones do not. */
TEST_CASE(test_restored_in_short_watches) {
        for (unsigned early_usec = 0; early_usec < 2; early_usec++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);

                rig_run_for(r, USEC_PER_MINUTE);
                rig_say(r, BOOKMARK("11"));
                for (unsigned k = 0; k < 15; k++) {
                        rig_stream(r, "");
                        rig_end(r, true);
                        rig_run_for(r, 20 * USEC_PER_SEC - early_usec);
                        assert_trace(r, "watch@11");
                }
                rig_stream(r, "");
                if (early_usec == 0)
                        rig_answer(r, 200, LIST("4", OBJECT("a", "3")));
                rig_end(r, true);
                rig_run_for(r, USEC_PER_SEC);
                {
                        _cleanup_free_ char *trace = rig_take_trace(r);

                        assert_string_equal(early_usec > 0 ? trace : startswith(trace, "list") ? "list" : trace,
                                            early_usec > 0 ? "watch@11" : "list");
                }
        }
}

/* Something on the way breaks each connection on which nothing comes; an API server that is away breaks them, too. */
TEST_CASE(test_restored_in_pieces) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);

        for (unsigned k = 0; k < 4; k++) {
                rig_run_for(r, USEC_PER_MINUTE);
                rig_stream(r, "");
                rig_end(r, false);
                rig_run_for(r, USEC_PER_SEC);
                assert_trace(r, k == 0 ? "down watch@10" : "up down watch@10");
        }
        rig_run_for(r, USEC_PER_MINUTE);
        rig_answer(r, 200, LIST("4", OBJECT("a", "3")));
        rig_stream(r, BOOKMARK("4"));
        rig_end(r, false);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "up down list ~a@1>3 -b@2 up watch@4");

        print_message("one that is away has said nothing either\n");
        rig_end(r, false);
        for (unsigned k = 0; k < 40; k++)
                rig_answer(r, 503, "{}");
        rig_stream(r, "");
        rig_run_for(r, 10 * USEC_PER_MINUTE);
        assert_null(strstr(strbuf_str(&r->trace), "list"));
        strbuf_truncate(&r->trace, 0);
}

/* The next page of a list is of that future, too: no such page will ever come. */
TEST_CASE(test_restored_between_pages) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = NULL;

        rig_answer(r, 200, PAGE("10", "t1", OBJECT("a", "7")));
        rig_answer(r, 504, TOO_LARGE);
        rig_answer(r, 200, PAGE("4", "u1", OBJECT("a", "3")));
        rig_answer(r, 200, LIST("4", OBJECT("b", "2")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, 5 * USEC_PER_SEC);
        assert_trace(r, "list +a@7 list(500,t1) down list ~a@7>3 list(500,u1) +b@2 up synced watch@4");
}

TEST_CASE(test_watch_fails) {
        static const struct {
                const char *what;
                unsigned status; /* of the next watch; 0: the stream breaks */
                const char *retry_after;
                usec_t earliest_usec, latest_usec;
                const char *expected;
        } rows[] = {
                { "the connection breaks", 0, NULL, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC,
                  "down watch@10 up +c@11" },
                { "the server has too much to do", 429, "7", 7 * USEC_PER_SEC, 7 * USEC_PER_SEC,
                  "watch@10 down watch@10 up +c@11" },
                { "the server fails", 500, NULL, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC,
                  "watch@10 down watch@10 up +c@11" },
                { "not allowed for a moment", 403, NULL, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC,
                  "watch@10 down watch@10 up +c@11" },
                { "the server gives up on us", 408, NULL, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC,
                  "watch@10 down watch@10 up +c@11" },
                { "the server asks for a day", 503, "86400", USEC_PER_MINUTE, USEC_PER_MINUTE,
                  "watch@10 down watch@10 up +c@11" },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);
                usec_t failed;

                print_message("%s\n", rows[k].what);
                rig_run_for(r, USEC_PER_MINUTE);
                failed = virtual_time_now(r->time);
                if (rows[k].status != 0)
                        rig_answer_later(r, rows[k].status, rows[k].retry_after);
                rig_stream(r, EVENT("ADDED", OBJECT("c", "11")));
                rig_end(r, rows[k].status != 0);
                rig_run_for(r, MAX(30 * USEC_PER_SEC, rows[k].latest_usec));
                assert_trace(r, rows[k].expected);
                assert_in_range(last_request_usec(r) - failed, rows[k].earliest_usec, rows[k].latest_usec);
        }
}

TEST_CASE(test_watch_refused_for_good) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);

        rig_run_for(r, USEC_PER_MINUTE);
        rig_answer(r, 400, STATUS("400", "BadRequest"));
        rig_answer(r, 200, LIST("5", OBJECT("a", "1")));
        rig_stream(r, "");
        rig_end(r, true);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "watch@10 down list -b@2 up watch@5");
}

/* An API server that was restored from a backup knows no such version (yet): what it has is listed. */
TEST_CASE(test_version_too_large) {
        static const struct {
                const char *what, *body;
                usec_t earliest_usec, latest_usec;
        } rows[] = {
                { "at once",
                  "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"Too large resource version: 10, "
                  "current: 5\",\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                  "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}]},\"code\":504}",
                  200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC },
                { "when the server wants it",
                  "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"Too large resource version: 10, "
                  "current: 5\",\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":"
                  "\"ResourceVersionTooLarge\",\"message\":\"Too large resource version\"}],"
                  "\"retryAfterSeconds\":3},\"code\":504}",
                  3 * USEC_PER_SEC, 3 * USEC_PER_SEC },
        };

        for (size_t k = 0; k < 2 * ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);
                bool by_event = k % 2 == 1;
                usec_t failed;

                print_message("%s, told by %s\n", rows[k / 2].what,
                              by_event ? "an ERROR event" : "the HTTP status");
                rig_run_for(r, USEC_PER_MINUTE);
                failed = virtual_time_now(r->time);
                if (by_event) {
                        _cleanup_free_ char *line =
                                strf("{\"type\":\"ERROR\",\"object\":%s}\n", rows[k / 2].body);

                        rig_say(r, line);
                } else {
                        rig_answer(r, 504, rows[k / 2].body);
                        rig_end(r, true);
                }
                rig_answer(r, 200, LIST("5", OBJECT("a", "4")));
                rig_stream(r, "");
                rig_run_for(r, 5 * USEC_PER_SEC);
                assert_trace(r, by_event ? "down list ~a@1>4 -b@2 up watch@5"
                                         : "watch@10 down list ~a@1>4 -b@2 up watch@5");
                assert_in_range(last_request_usec(r) - failed, rows[k / 2].earliest_usec,
                                rows[k / 2].latest_usec);
        }
}

/* What ended one watch says nothing of the next. */
TEST_CASE(test_next_watch_ends_otherwise) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = informer_standing(r);

        /* One that brought something may be as short as it likes... */
        rig_run_for(r, USEC_PER_MINUTE);
        rig_end(r, true);
        rig_stream(r, EVENT("ADDED", OBJECT("c", "11")));
        rig_run_for(r, 0);
        rig_end(r, true);
        rig_stream(r, "");
        rig_run_for(r, 0);
        assert_trace(r, "watch@10 +c@11 watch@11");
        assert_true(informer_connected(i));

        /* ... its successor, which brought nothing, may not. */
        rig_end(r, true);
        rig_run_for(r, 0);
        assert_trace(r, "down");
        rig_stream(r, BOOKMARK("12"));
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "watch@11 up");

        /* An ERROR once, then an end without one. */
        rig_answer(r, 200, LIST("20", OBJECT("a", "1")));
        rig_stream(r, "");
        rig_say(r, EVENT("ERROR", GONE));
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "list -b@2 -c@11 watch@20");
        rig_stream(r, "");
        rig_end(r, true);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "watch@20");
}

TEST_CASE(test_stall_of_its_own) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer(r, 200, LIST("10", OBJECT("a", "1")));
        rig_stream(r, "");
        rig_stream(r, "");
        i = informer_start(r, &node_kind, &(InformerOptions){ .stall_usec = 30 * USEC_PER_SEC });
        rig_run_for(r, 20 * USEC_PER_SEC);
        rig_say(r, BOOKMARK("11"));
        rig_run_for(r, 30 * USEC_PER_SEC - 1);
        assert_trace(r, "list +a@1 up synced watch@10");
        rig_run_for(r, 1);
        assert_trace(r, "watch@11");
        assert_true(informer_connected(i));
}

/* A line that nobody would send: not asked for from the same point again. */
TEST_CASE(test_line_too_long) {
        enum { TOO_LONG = 8 * 1024 * 1024 + 1 };
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);
        _cleanup_free_ char *line = malloc(TOO_LONG);

        memset(line, ' ', TOO_LONG);
        rig_answer(r, 200, LIST("20", OBJECT("a", "1")));
        rig_stream(r, "");
        rig_say_bytes(r, line, TOO_LONG);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "down list -b@2 up watch@20");
}

TEST_CASE(test_line_that_is_no_json) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);

        rig_answer(r, 200, LIST("20", OBJECT("a", "1") "," OBJECT("b", "2")));
        rig_stream(r, "");
        rig_say(r, EVENT("ADDED", OBJECT("c", "11")) "{\"type\":\"ADD\n");
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "+c@11 down list -c@11 up watch@20");
}

/* What stood is forgiven: neither an old 410 nor old failures slow down the answer to new ones. */
TEST_CASE(test_forgiven) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);
        usec_t failed;

        for (unsigned k = 0; k < 2; k++) {
                rig_answer(r, 200, LIST("20", OBJECT("a", "1")));
                rig_stream(r, BOOKMARK("21"));
                rig_say(r, EVENT("ERROR", GONE));
                rig_run_for(r, 0);
                assert_trace(r, k == 0 ? "list -b@2 watch@20" : "list watch@20");
        }

        rig_end(r, false);
        for (unsigned k = 0; k < 5; k++)
                rig_answer_later(r, 500, NULL);
        rig_stream(r, BOOKMARK("22"));
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "down watch@21 watch@21 watch@21 watch@21 watch@21 watch@21 up");
        rig_end(r, false);
        failed = virtual_time_now(r->time);
        rig_stream(r, "");
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "down watch@22");
        assert_in_range(last_request_usec(r) - failed, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC);
}

TEST_CASE(test_short_watches_back_off) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = informer_standing(r);

        rig_run_for(r, USEC_PER_MINUTE);
        for (unsigned k = 0; k < 10; k++) {
                usec_t end = virtual_time_now(r->time),
                       base = MIN(250 * USEC_PER_MSEC << k, 30 * USEC_PER_SEC);

                rig_stream(r, "");
                rig_end(r, true);
                if (k == 0) {
                        /* The one that stood long ends well; only its successor is short. */
                        rig_run_for(r, 0);
                        rig_stream(r, "");
                        rig_end(r, true);
                }
                while (r->n_open == 0)
                        assert_int_equal(virtual_time_step(r->time, USEC_INFINITY), 1);
                assert_in_range(last_request_usec(r) - end, base * 8 / 10, base * 12 / 10);
        }
        assert_false(informer_connected(i));
}

/* A watch without an event that lasted a second is no failure. */
TEST_CASE(test_how_short) {
        for (unsigned early_usec = 0; early_usec < 2; early_usec++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);

                rig_run_for(r, USEC_PER_MINUTE);
                rig_stream(r, "");
                rig_end(r, true);
                rig_run_for(r, USEC_PER_SEC - early_usec);
                rig_stream(r, "");
                rig_end(r, true);
                rig_run_for(r, 0);
                assert_trace(r, early_usec > 0 ? "watch@10 down" : "watch@10 watch@10");
        }
}

TEST_CASE(test_connection_cut) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = informer_standing(r);

        rig_run_for(r, USEC_PER_MINUTE);
        rig_stream(r, "");
        http_inproc_cut_streams(r->host->transport);
        rig_run_for(r, 300 * USEC_PER_MSEC);
        assert_trace(r, "down watch@10");
        rig_run_for(r, 19 * USEC_PER_SEC);
        assert_trace(r, "");
        assert_false(informer_connected(i));
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "up");
}

/* Its owner's writes are refused as old, and the watch says nothing: a list does. */
TEST_CASE(test_distrusted) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer(r, 200, LIST("10", OBJECT("a", "10")));
        rig_stream(r, "");
        rig_answer(r, 200, LIST("5", OBJECT("a", "4")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, NULL);
        informer_distrust(i);
        rig_run_for(r, USEC_PER_MINUTE - 1);
        assert_trace(r, "list +a@10 up synced watch@10");

        print_message("  not within a minute of the last list\n");
        informer_distrust(i);
        rig_run_for(r, 1);
        assert_trace(r, "");
        informer_distrust(i);
        informer_distrust(i);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "list ~a@10>4 watch@5");
        assert_true(informer_went_back(i));
        informer_distrust(i);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "");

        print_message("  where the next watch is waited for, the list comes first\n");
        rig_run_for(r, USEC_PER_MINUTE);
        rig_answer_later(r, 503, "20");
        rig_answer(r, 200, LIST("6", OBJECT("a", "6")));
        rig_stream(r, "");
        rig_run_for(r, 100 * USEC_PER_SEC);
        assert_trace(r, "watch@5 down");
        informer_distrust(i);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "list ~a@4>6 up watch@6");
        assert_false(informer_went_back(i));
}

/* -- kick, selectors, end ------------------------------------------------------------------------------- */

TEST_CASE(test_kick) {
        static const struct {
                const char *what;
                const char *retry_after;
                usec_t next_usec;
        } rows[] = {
                { "a backoff is cut short", NULL, 0 },
                { "what the server asked for is not", "20", 20 * USEC_PER_SEC },
        };

        for (size_t k = 0; k < ELEMENTSOF(rows); k++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(informer_freep) Informer *i = NULL;
                usec_t failed;

                print_message("%s\n", rows[k].what);
                for (unsigned n = 0; n < 8; n++)
                        rig_answer_later(r, 503, n == 7 ? rows[k].retry_after : NULL);
                rig_answer(r, 200, LIST("10", ""));
                rig_stream(r, "");
                i = informer_start(r, &node_kind, NULL);
                while (r->n_requests < 8)
                        assert_int_equal(virtual_time_step(r->time, USEC_INFINITY), 1);
                rig_run_for(r, 0);
                failed = virtual_time_now(r->time);
                assert_trace(r, "list down list list list list list list list");

                informer_kick(i);
                rig_run_for(r, rows[k].next_usec);
                assert_trace(r, "list up synced watch@10");
                assert_int_equal(last_request_usec(r), failed + rows[k].next_usec);
                informer_kick(i);
                rig_run_for(r, USEC_PER_SEC);
                assert_trace(r, "");
        }
}

/* The path is another one: the next failure waits as short as the first. */
TEST_CASE(test_kick_forgives) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        usec_t failed;

        for (unsigned n = 0; n < 8; n++)
                rig_answer_later(r, 503, NULL);
        i = informer_start(r, &node_kind, NULL);
        while (r->n_requests < 7)
                assert_int_equal(virtual_time_step(r->time, USEC_INFINITY), 1);
        rig_run_for(r, 0);
        informer_kick(i);
        rig_run_for(r, 0);
        failed = virtual_time_now(r->time);
        assert_int_equal(r->n_requests, 8);
        rig_answer(r, 200, LIST("10", ""));
        rig_stream(r, "");
        rig_run_for(r, USEC_PER_SEC);
        assert_in_range(r->requests[8].at_usec - failed, 200 * USEC_PER_MSEC, 300 * USEC_PER_MSEC);
}

/* A list that has just begun is not begun again, however long ago the last one was. */
TEST_CASE(test_kick_of_a_young_list) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer_later(r, 503, "20");
        rig_silence(r);
        rig_answer(r, 200, LIST("10", OBJECT("a", "1")));
        rig_stream(r, "");
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, 20 * USEC_PER_SEC);
        assert_trace(r, "list down list");
        rig_run_for(r, USEC_PER_SEC - 1);
        informer_kick(i);
        rig_run_for(r, 0);
        assert_trace(r, "");
        rig_run_for(r, 1);
        informer_kick(i);
        rig_run_for(r, 0);
        assert_trace(r, "list +a@1 up synced watch@10");
}

/* A call that hangs in a dead path is begun again, once; one that is doing well is not. */
TEST_CASE(test_kick_of_a_call) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer_later(r, 503, NULL);
        rig_silence(r);
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, 2 * USEC_PER_SEC);
        assert_trace(r, "list down list");
        rig_answer(r, 200, LIST("10", OBJECT("a", "1")));
        rig_stream(r, "");
        informer_kick(i);
        informer_kick(i);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "list +a@1 up synced watch@10");
        informer_kick(i);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_trace(r, "");
        assert_int_equal(r->n_open, 1);

        rig_silence(r);
        rig_end(r, false);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "down watch@10");
        informer_kick(i);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, ""); /* too young */
        rig_stream(r, BOOKMARK("11"));
        informer_kick(i);
        rig_run_for(r, 0);
        assert_trace(r, "watch@10 up");
        assert_int_equal(r->n_open, 1);
}

TEST_CASE(test_namespace_and_selectors) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        InformerOptions o = { .ns = "web",
                              .label_selector = "app in (x,y)",
                              .field_selector = "spec.nodeName=n1" };

        rig_answer(r, 200, LIST("10", POD("web", "a", "1")));
        rig_stream(r, EVENT("DELETED", POD("web", "a", "2")) EVENT("ADDED", POD("web", "b", "3")));
        i = informer_start(r, &pod_kind, &o);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "list +a@1 up synced watch@10 -a@1 +b@3");
        assert_non_null(informer_get(i, "web", "b"));
        assert_null(informer_get(i, "other", "b"));
        for (size_t k = 0; k < r->n_requests; k++) {
                HttpExchange x = { .query = r->requests[k].query };
                _cleanup_free_ char *labels = rig_query(&x, "labelSelector"),
                                    *fields = rig_query(&x, "fieldSelector");

                assert_string_equal(r->requests[k].path, "/api/v1/namespaces/web/pods");
                assert_string_equal(labels, "app in (x,y)");
                assert_string_equal(fields, "spec.nodeName=n1");
        }
}

/* Watches are asked to end by the server at different times. */
TEST_CASE(test_watch_timeout) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) _unused_ Informer *i = informer_standing(r);
        bool differ = false;
        unsigned long first = 0;

        for (unsigned k = 0; k < 10; k++) {
                HttpExchange x = { .query = r->requests[r->n_requests - 1].query };
                _cleanup_free_ char *timeout = rig_query(&x, "timeoutSeconds");
                unsigned long sec;

                assert_non_null(timeout);
                sec = strtoul(timeout, NULL, 10);
                assert_in_range(sec, 6 * 60, 10 * 60);
                differ |= k > 0 && sec != first;
                first = sec;
                rig_run_for(r, USEC_PER_MINUTE);
                rig_say(r, BOOKMARK("10"));
                rig_stream(r, "");
                rig_end(r, true);
                rig_run_for(r, USEC_PER_SEC);
        }
        assert_true(differ);
}

TEST_CASE(test_freed_on_the_way) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        Informer *i;

        rig_answer(r, 200, LIST("10", OBJECT("a", "1")));
        i = informer_start(r, &node_kind, NULL);
        informer_free(i);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "");

        rig_silence(r);
        r->next_answer = 1;
        i = informer_start(r, &node_kind, NULL);
        rig_run_for(r, USEC_PER_SEC);
        informer_free(i);
        rig_run_for(r, USEC_PER_SEC);
        assert_trace(r, "list");
        assert_int_equal(r->n_open, 0);
        assert_null(informer_free(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_watch_events),
                cmocka_unit_test(test_resume_after_clean_end),
                cmocka_unit_test(test_pages),
                cmocka_unit_test(test_page_too_large),
                cmocka_unit_test(test_token_expires),
                cmocka_unit_test(test_relist_interrupted),
                cmocka_unit_test(test_unreadable_items),
                cmocka_unit_test(test_unreadable_list),
                cmocka_unit_test(test_page_fails),
                cmocka_unit_test(test_first_page_is_gone),
                cmocka_unit_test(test_page_forgives),
                cmocka_unit_test(test_gone),
                cmocka_unit_test(test_gone_again_and_again),
                cmocka_unit_test(test_stall),
                cmocka_unit_test(test_restored),
                cmocka_unit_test(test_restored_in_silence),
                cmocka_unit_test(test_restored_in_short_watches),
                cmocka_unit_test(test_restored_in_pieces),
                cmocka_unit_test(test_restored_between_pages),
                cmocka_unit_test(test_watch_fails),
                cmocka_unit_test(test_watch_refused_for_good),
                cmocka_unit_test(test_version_too_large),
                cmocka_unit_test(test_next_watch_ends_otherwise),
                cmocka_unit_test(test_stall_of_its_own),
                cmocka_unit_test(test_line_too_long),
                cmocka_unit_test(test_line_that_is_no_json),
                cmocka_unit_test(test_forgiven),
                cmocka_unit_test(test_short_watches_back_off),
                cmocka_unit_test(test_how_short),
                cmocka_unit_test(test_connection_cut),
                cmocka_unit_test(test_distrusted),
                cmocka_unit_test(test_kick),
                cmocka_unit_test(test_kick_forgives),
                cmocka_unit_test(test_kick_of_a_young_list),
                cmocka_unit_test(test_kick_of_a_call),
                cmocka_unit_test(test_namespace_and_selectors),
                cmocka_unit_test(test_watch_timeout),
                cmocka_unit_test(test_freed_on_the_way),
        };
        return cmocka_run_group_tests_name("informer", tests, NULL, NULL);
}
