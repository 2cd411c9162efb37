/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "event-recorder.h"
#include "kube-rig.h"

#define SEC USEC_PER_SEC
#define BODY_MAX_BYTES 65536u
#define CREATED "{\"kind\":\"Event\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\"}}"

static const EventObject pod = {
        .api_version = "v1", .kind = "Pod", .ns = "web", .name = "web-1", .uid = "u-1"
};
static const EventObject successor = {
        .api_version = "v1", .kind = "Pod", .ns = "web", .name = "web-1", .uid = "u-9"
};
static const EventObject node = { .api_version = "v1", .kind = "Node", .name = "n1", .uid = "u-2" };

static EventRecorder *recorder_new(Rig *r) {
        EventRecorder *e;

        assert_return_code(event_recorder_new(r->host->client, "vesper-agent", "n1", &e), 0);
        return e;
}

static void answer_times(Rig *r, unsigned n, unsigned status) {
        for (unsigned i = 0; i < n; i++)
                rig_answer(r, status, CREATED);
}

/* The value at a path of a request's body, as compact JSON; "" if absent. Free it. */
static char *body_field(const Rig *r, size_t request, const char *a, const char *b) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *v;

        assert_true(request < r->n_requests);
        assert_return_code(json_parse(r->requests[request].body, strlen(r->requests[request].body),
                                      BODY_MAX_BYTES, &doc, NULL),
                           0);
        v = json_get(json_root(doc), a);
        v = b ? json_get(v, b) : v;
        return v ? json_format(v) : strdup("");
}

#define assert_body(rig, request, a, b, expected) \
        do { \
                _cleanup_free_ char *_value = body_field((rig), (request), (a), (b)); \
                assert_string_equal(_value, expected); \
        } while (0)

/* -- what is written ------------------------------------------------------------------------------------ */

TEST_CASE(test_fields) {
        static const struct {
                const char *what;
                EventObject object;
                EventType type;
                const char *path, *ns, *involved, *written_type, *name_begins;
        } rows[] = {
                { "about a pod",
                  { .api_version = "v1", .kind = "Pod", .ns = "web", .name = "web-1", .uid = "u-1" },
                  EVENT_NORMAL,
                  "/api/v1/namespaces/web/events",
                  "\"web\"",
                  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"namespace\":\"web\",\"name\":\"web-1\",\"uid\":"
                  "\"u-1\"}",
                  "\"Normal\"",
                  "\"web-1.06" },
                { "about a node",
                  { .api_version = "v1", .kind = "Node", .name = "n1", .uid = "u-2" },
                  EVENT_WARNING,
                  "/api/v1/namespaces/default/events",
                  "\"default\"",
                  "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"u-2\"}",
                  "\"Warning\"",
                  "\"n1.06" },
                { "about something of a group",
                  { .group = "vesper.sh",
                    .api_version = "v1alpha1",
                    .kind = "NodeClaim",
                    .name = "c1",
                    .uid = "u-3" },
                  EVENT_NORMAL,
                  "/api/v1/namespaces/default/events",
                  "\"default\"",
                  "{\"apiVersion\":\"vesper.sh/"
                  "v1alpha1\",\"kind\":\"NodeClaim\",\"name\":\"c1\",\"uid\":\"u-3\"}",
                  "\"Normal\"",
                  "\"c1.06" },
                { "about something without a uid",
                  { .api_version = "v1", .kind = "Node", .name = "n2" },
                  EVENT_NORMAL,
                  "/api/v1/namespaces/default/events",
                  "\"default\"",
                  "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n2\"}",
                  "\"Normal\"",
                  "\"n2.06" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
                _cleanup_free_ char *name = NULL;

                print_message("%s\n", rows[i].what);
                rig_answer(r, 201, CREATED);
                event_record(e, &rows[i].object, rows[i].type, "Drained", "All %d pods are gone", 30);
                assert_int_equal(event_recorder_pending(e), 1);
                assert_int_equal(r->n_requests, 0);
                rig_run_for(r, 0);
                assert_int_equal(event_recorder_pending(e), 0);
                assert_int_equal(r->n_requests, 1);
                assert_int_equal(r->requests[0].method, HTTP_POST);
                assert_string_equal(r->requests[0].path, rows[i].path);
                assert_body(r, 0, "apiVersion", NULL, "\"v1\"");
                assert_body(r, 0, "kind", NULL, "\"Event\"");
                assert_body(r, 0, "metadata", "namespace", rows[i].ns);
                assert_body(r, 0, "involvedObject", NULL, rows[i].involved);
                assert_body(r, 0, "type", NULL, rows[i].written_type);
                assert_body(r, 0, "reason", NULL, "\"Drained\"");
                assert_body(r, 0, "message", NULL, "\"All 30 pods are gone\"");
                assert_body(r, 0, "count", NULL, "1");
                assert_body(r, 0, "source", NULL, "{\"component\":\"vesper-agent\",\"host\":\"n1\"}");
                assert_body(r, 0, "reportingComponent", NULL, "\"vesper-agent\"");
                assert_body(r, 0, "reportingInstance", NULL, "\"n1\"");
                assert_body(r, 0, "firstTimestamp", NULL, "\"2027-01-15T08:00:00Z\"");
                assert_body(r, 0, "lastTimestamp", NULL, "\"2027-01-15T08:00:00Z\"");
                name = body_field(r, 0, "metadata", "name");
                assert_int_equal(strncmp(name, rows[i].name_begins, strlen(rows[i].name_begins)), 0);
        }
}

TEST_CASE(test_long_texts) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
        _cleanup_free_ char *message = NULL, *name = NULL;
        char long_name[254], long_text[3000];
        EventObject o = node;

        memset(long_name, 'x', 253);
        long_name[253] = 0;
        long_name[234] = '.'; /* just where the cut comes */
        long_name[233] = '-';
        o.name = long_name;
        memset(long_text, 'm', sizeof(long_text) - 1);
        long_text[sizeof(long_text) - 1] = 0;
        rig_answer(r, 201, CREATED);
        event_record(e, &o, EVENT_NORMAL, "Long", "%s", long_text);
        rig_run_for(r, 0);
        message = body_field(r, 0, "message", NULL);
        assert_int_equal(strlen(message), 1024 + 2);
        name = body_field(r, 0, "metadata", "name");
        assert_true(strlen(name) <= 253 + 2);
        name[strlen(name) - 1] = 0;
        assert_true(dns1123_subdomain_is_valid(name + 1));
}

TEST_CASE(test_object_of_a_decoded_one) {
        static const KubeKind claim = { .group = "vesper.sh", .version = "v1alpha1", .kind = "NodeClaim" };
        char name[] = "c1", uid[] = "u";
        KubeObject o = { .kind = &claim, .meta = { .name = name, .uid = uid } };
        EventObject e = event_object(&o);

        assert_string_equal(e.group, "vesper.sh");
        assert_string_equal(e.api_version, "v1alpha1");
        assert_string_equal(e.kind, "NodeClaim");
        assert_null(e.ns);
        assert_ptr_equal(e.name, name);
        assert_ptr_equal(e.uid, uid);
}

/* -- repeats -------------------------------------------------------------------------------------------- */

TEST_CASE(test_repeats_become_a_count) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
        _cleanup_free_ char *name = NULL, *path = NULL;
        usec_t start = virtual_time_now(r->time);

        answer_times(r, 10, 200);
        for (unsigned i = 0; i < 6; i++) {
                event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                rig_run_for(r, 5 * SEC);
        }
        rig_run_for(r, 29 * SEC);
        assert_trace(r, "POST /api/v1/namespaces/web/events");
        rig_run_for(r, SEC);
        name = body_field(r, 0, "metadata", "name");
        name[strlen(name) - 1] = 0;
        path = strf("PATCH /api/v1/namespaces/web/events/%s", name + 1);
        assert_trace(r, path);
        assert_int_equal(r->requests[1].at_usec, start + 60 * SEC);
        assert_string_equal(r->requests[1].body, "{\"count\":6,\"lastTimestamp\":\"2027-01-15T08:00:25Z\"}");
        assert_string_equal(r->requests[1].content_type, "application/merge-patch+json");

        /* Nothing new: nothing to tell. Then one more, a minute after the last write or later. */
        rig_run_for(r, 5 * USEC_PER_MINUTE);
        assert_trace(r, "");
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        rig_run_for(r, 0);
        assert_trace(r, path);
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        rig_run_for(r, 59 * SEC);
        assert_trace(r, "");
        rig_run_for(r, SEC);
        assert_trace(r, path);
        assert_body(r, 3, "count", NULL, "8");
}

TEST_CASE(test_what_is_a_repeat) {
        static const struct {
                const char *what;
                const EventObject *object;
                const char *reason, *message;
                usec_t after_usec;
                unsigned requests; /* within 90 s, with the first */
                HttpMethod last;
        } rows[] = {
                { "the same, at once", &pod, "Blocked", "no room", 0, 2, HTTP_PATCH },
                { "the same, just in time", &pod, "Blocked", "no room", 10 * USEC_PER_MINUTE - 1, 2,
                  HTTP_PATCH },
                { "the same, too late", &pod, "Blocked", "no room", 10 * USEC_PER_MINUTE, 2, HTTP_POST },
                { "another message", &pod, "Blocked", "no rooms", 0, 2, HTTP_POST },
                { "another reason", &pod, "Blocker", "no room", 0, 2, HTTP_POST },
                { "another object", &node, "Blocked", "no room", 0, 2, HTTP_POST },
                { "another object under the same name", &successor, "Blocked", "no room", 0, 2, HTTP_POST },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

                print_message("%s\n", rows[i].what);
                answer_times(r, 4, 201);
                event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                rig_run_for(r, rows[i].after_usec);
                event_record(e, rows[i].object, EVENT_NORMAL, rows[i].reason, "%s", rows[i].message);
                rig_run_for(r, 90 * SEC);
                assert_int_equal(r->n_requests, rows[i].requests);
                assert_int_equal(r->requests[r->n_requests - 1].method, rows[i].last);
        }
}

/* The count waits for the Event itself; an Event that never came to be begins anew, and so on. */
TEST_CASE(test_repeats_of_what_is_not_there) {
        static const struct {
                const char *what;
                unsigned statuses[10]; /* then 201 */
                const char *methods;   /* by four rounds of two minutes, the first with two of the same */
        } rows[] = {
                { "all is well", { 0 }, "CP P P P" },
                { "the Event was refused", { 403 }, "C C P P" },
                { "there is another of that name", { 409 }, "C C P P" },
                { "the Event has gone meanwhile", { 201, 404 }, "CP C P P" },
                { "the count is refused", { 201, 422 }, "CP C P P" },
                { "the count is refused after a failure", { 201, 500, 409 }, "CPP C P P" },
                { "the Event is lost", { 500, 500, 500, 500 }, "CCCC C P P" },
                { "the Event is lost twice",
                  { 500, 500, 500, 500, 500, 500, 500, 500 },
                  "CCCC CCCC C P" },
                { "a count is lost", { 201, 500, 500, 500, 500 }, "CPPPP P P P" },
                { "one count is lost after another was told",
                  { 201, 200, 500, 500, 500, 500 },
                  "CP PPPP P P" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
                _cleanup_strbuf_ StrBuf methods = { 0 };
                size_t told = 0;

                print_message("%s\n", rows[i].what);
                for (size_t k = 0; k < ELEMENTSOF(rows[i].statuses) && rows[i].statuses[k] != 0; k++)
                        rig_answer(r, rows[i].statuses[k], CREATED);
                answer_times(r, 10, 201);
                event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                for (unsigned round = 0; round < 4; round++) {
                        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                        rig_run_for(r, 2 * USEC_PER_MINUTE);
                        if (round > 0)
                                strbuf_add_char(&methods, ' ');
                        for (; told < r->n_requests; told++)
                                strbuf_add(&methods, r->requests[told].method == HTTP_POST ? "C" : "P");
                }
                assert_string_equal(strbuf_str(&methods), rows[i].methods);
        }
}

/* No count is sent for an Event that is still on its way. */
TEST_CASE(test_count_waits_for_the_event) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
        usec_t start = virtual_time_now(r->time);

        rig_answer_later(r, 429, "50");
        rig_answer_later(r, 429, "50");
        answer_times(r, 2, 201);
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        rig_run_for(r, 5 * USEC_PER_MINUTE);
        assert_int_equal(r->n_requests, 4);
        assert_int_equal(r->requests[2].method, HTTP_POST);
        assert_int_equal(r->requests[2].at_usec, start + 100 * SEC);
        assert_int_equal(r->requests[3].method, HTTP_PATCH);
        assert_int_equal(r->requests[3].at_usec, start + 100 * SEC);
}

/* The ten minutes count from when it was seen last. */
TEST_CASE(test_repeat_that_goes_on) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 10, 201);
        for (unsigned i = 0; i < 5; i++) {
                event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                rig_run_for(r, 6 * USEC_PER_MINUTE);
        }
        assert_int_equal(r->n_requests, 5);
        assert_body(r, 4, "count", NULL, "5");
        assert_body(r, 4, "lastTimestamp", NULL, "\"2027-01-15T08:24:00Z\"");
}

/* -- too many ------------------------------------------------------------------------------------------- */

TEST_CASE(test_spam_of_one_object) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 100, 201);
        for (unsigned i = 0; i < 60; i++) {
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
                rig_run_for(r, SEC);
        }
        assert_int_equal(r->n_requests, 25);
        event_record(e, &node, EVENT_NORMAL, "Other", "may speak");
        rig_run_for(r, SEC);
        assert_int_equal(r->n_requests, 26);

        /* One more for each five minutes since its first. */
        for (unsigned i = 0; i < 15; i++) {
                rig_run_for(r, USEC_PER_MINUTE);
                event_record(e, &pod, EVENT_NORMAL, "Spam", "later %u", i);
        }
        rig_run_for(r, 0);
        assert_int_equal(r->n_requests, 26 + 3);
}

/* A count that may not be told now is told when it may. */
TEST_CASE(test_count_waits_for_its_turn) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
        usec_t start = virtual_time_now(r->time);

        answer_times(r, 100, 201);
        for (unsigned i = 0; i < 25; i++)
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
        rig_run_for(r, SEC);
        event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", 3u);
        rig_run_for(r, 5 * USEC_PER_MINUTE - SEC - 10);
        assert_int_equal(r->n_requests, 25);
        rig_run_for(r, 20);
        assert_int_equal(r->n_requests, 26);
        assert_int_equal(r->requests[25].method, HTTP_PATCH);
        assert_in_range(r->requests[25].at_usec - start, 5 * USEC_PER_MINUTE - 10, 5 * USEC_PER_MINUTE + 10);
        assert_body(r, 25, "count", NULL, "2");
}

TEST_CASE(test_bounds) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        for (unsigned i = 0; i < 4; i++)
                rig_silence(r);
        answer_times(r, 400, 201);
        for (unsigned i = 0; i < 300; i++) {
                _cleanup_free_ char *name = strf("p%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
        }
        assert_int_equal(event_recorder_pending(e), 256);
        rig_run_for(r, SEC);
        assert_int_equal(r->n_requests, 4);
        assert_int_equal(event_recorder_pending(e), 256);
        /* The oldest 44 were pushed out. */
        assert_body(r, 0, "involvedObject", "name", "\"p44\"");

        /* Requests without an answer end by their time-out, and are tried again behind nobody. */
        rig_run_for(r, USEC_PER_MINUTE);
        assert_int_equal(event_recorder_pending(e), 0);
        assert_int_equal(r->n_requests, 256 + 4);
        assert_body(r, r->n_requests - 1, "count", NULL, "1");
}

/* However fast the API server is, 100 a second beyond a burst of 100. */
TEST_CASE(test_rate) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 400, 201);
        for (unsigned i = 0; i < 250; i++) {
                _cleanup_free_ char *name = strf("p%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
        }
        rig_run_for(r, 0);
        assert_int_equal(r->n_requests, 100);
        rig_run_for(r, SEC);
        assert_in_range(r->n_requests, 199, 201);
        rig_run_for(r, SEC);
        assert_int_equal(r->n_requests, 250);
}

/* What is pushed out begins anew when it is seen again. */
TEST_CASE(test_pushed_out) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
        EventObject first = { .api_version = "v1", .kind = "Pod", .ns = "web", .name = "p0", .uid = "p0" };

        for (unsigned i = 0; i < 257; i++) {
                _cleanup_free_ char *name = strf("p%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
        }
        answer_times(r, 300, 201);
        rig_run_for(r, 3 * SEC);
        assert_int_equal(r->n_requests, 256);
        event_record(e, &first, EVENT_NORMAL, "Evicted", "off it goes");
        rig_run_for(r, SEC);
        assert_int_equal(r->n_requests, 257);
        assert_int_equal(r->requests[256].method, HTTP_POST);
        assert_body(r, 256, "involvedObject", "name", "\"p0\"");
}

/* Who is forgotten is who was not heard of for longest, not who was heard of first. */
TEST_CASE(test_memory_is_of_the_latest) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 1200, 201);
        for (unsigned i = 0; i < 25; i++)
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
        rig_run_for(r, 0);
        for (unsigned i = 0; i < 1010; i++) {
                _cleanup_free_ char *name = strf("p%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
                rig_run_for(r, SEC / 100);
                if (i == 900) {
                        /* Counted, and refused: heard of, both. */
                        event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", 0u);
                        event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", 99u);
                }
        }
        assert_int_equal(r->n_requests, 25 + 1010);
        for (unsigned i = 0; i < 30; i++) {
                _cleanup_free_ char *name = strf("q%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
                rig_run_for(r, SEC / 100);
        }
        assert_int_equal(r->n_requests, 25 + 1010 + 30);
        event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", 0u); /* known: counted */
        event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", 99u); /* new, and its speaker has no token */
        rig_run_for(r, 0);
        assert_int_equal(r->n_requests, 25 + 1010 + 30);
}

/* An old Event told anew is one more that the object says. */
TEST_CASE(test_spam_of_old_events) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 100, 201);
        for (unsigned i = 0; i < 25; i++)
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
        rig_run_for(r, 11 * USEC_PER_MINUTE); /* two tokens */
        for (unsigned i = 0; i < 5; i++)
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
        rig_run_for(r, 0);
        assert_int_equal(r->n_requests, 25 + 2);
}

/* So are the objects: who was not heard of for 1,024 others may speak again. */
TEST_CASE(test_speakers_are_bounded) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 1100, 201);
        for (unsigned i = 0; i < 26; i++)
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
        rig_run_for(r, 0);
        assert_int_equal(r->n_requests, 25);
        for (unsigned i = 0; i < 1024; i++) {
                _cleanup_free_ char *name = strf("p%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
                rig_run_for(r, SEC / 100);
        }
        assert_int_equal(r->n_requests, 25 + 1024);
        event_record(e, &pod, EVENT_NORMAL, "Spam", "again");
        rig_run_for(r, 0);
        assert_int_equal(r->n_requests, 25 + 1024 + 1);
}

/* 1,024 are remembered; the oldest is told anew. */
TEST_CASE(test_memory_is_bounded) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        answer_times(r, 1030, 201);
        for (unsigned i = 0; i < 1025; i++) {
                _cleanup_free_ char *name = strf("p%u", i);
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
                rig_run_for(r, SEC / 100);
        }
        assert_int_equal(r->n_requests, 1025);
        for (unsigned i = 0; i < 2; i++) {
                /* p1024 is remembered, p0 is not. */
                const char *name = i == 0 ? "p1024" : "p0";
                EventObject o = {
                        .api_version = "v1", .kind = "Pod", .ns = "web", .name = name, .uid = name
                };

                event_record(e, &o, EVENT_NORMAL, "Evicted", "off it goes");
                rig_run_for(r, SEC / 100);
                assert_int_equal(r->n_requests, 1025 + i);
        }
}

/* -- answers -------------------------------------------------------------------------------------------- */

TEST_CASE(test_answers) {
        static const struct {
                const char *what;
                unsigned status; /* of all answers; 0: none comes */
                unsigned requests;
        } rows[] = {
                { "taken", 201, 1 },
                { "forbidden", 403, 1 },
                { "no such namespace", 404, 1 },
                { "there is one of that name", 409, 1 },
                { "not valid", 422, 1 },
                { "too many requests", 429, 4 },
                { "the server is ill", 500, 4 },
                { "the server is away", 503, 4 },
                { "no answer at all", 0, 4 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

                print_message("%s\n", rows[i].what);
                if (rows[i].status != 0)
                        answer_times(r, 10, rows[i].status);
                event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                rig_run_for(r, 5 * USEC_PER_MINUTE);
                assert_int_equal(r->n_requests, rows[i].requests);
                assert_int_equal(event_recorder_pending(e), 0);
                for (size_t k = 1; k < r->n_requests; k++) {
                        assert_string_equal(r->requests[k].body, r->requests[0].body);
                        assert_in_range(r->requests[k].at_usec - r->requests[k - 1].at_usec,
                                        800 * USEC_PER_MSEC << (k - 1),
                                        10 * SEC + (1200 * USEC_PER_MSEC << (k - 1)));
                }
        }
}

TEST_CASE(test_retry_after) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
        usec_t start = virtual_time_now(r->time);

        rig_answer_later(r, 429, "30");
        rig_answer(r, 201, CREATED);
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        rig_run_for(r, USEC_PER_MINUTE);
        assert_int_equal(r->n_requests, 2);
        assert_int_equal(r->requests[1].at_usec, start + 30 * SEC);
}

/* Each waits for itself, however long the server wants another to wait. */
TEST_CASE(test_retry_after_of_several) {
        static const struct {
                const char *first, *second; /* Retry-After */
                usec_t first_usec, second_usec;
        } rows[] = {
                { "10", "40", 10 * SEC, 40 * SEC },
                { "40", "10", 40 * SEC, 10 * SEC },
                { "3600", "10", 60 * SEC, 10 * SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(rig_freep) Rig *r = rig_new();
                _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);
                usec_t start = virtual_time_now(r->time);

                rig_answer_later(r, 429, rows[i].first);
                rig_answer_later(r, 429, rows[i].second);
                answer_times(r, 4, 201);
                event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
                event_record(e, &node, EVENT_NORMAL, "Blocked", "no room");
                rig_run_for(r, SEC);
                event_record(e, &successor, EVENT_NORMAL, "Blocked", "no room");
                rig_run_for(r, 0);
                assert_int_equal(r->n_requests, 3);
                assert_int_equal(r->requests[2].at_usec, start + SEC); /* behind nobody */
                rig_run_for(r, 2 * USEC_PER_MINUTE);
                assert_int_equal(r->n_requests, 5);
                assert_int_equal(r->requests[3].at_usec, start + MIN(rows[i].first_usec, rows[i].second_usec));
                assert_int_equal(r->requests[4].at_usec, start + MAX(rows[i].first_usec, rows[i].second_usec));
        }
}

/* A post whose answer was lost finds itself there: it is counted on as any other. */
TEST_CASE(test_landed_unanswered) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(event_recorder_freep) EventRecorder *e = recorder_new(r);

        rig_silence(r);
        rig_answer(r, 409,
                   "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"exists\",\"code\":409}");
        rig_answer(r, 200, CREATED);
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        event_record(e, &pod, EVENT_NORMAL, "Blocked", "no room");
        rig_run_for(r, 2 * USEC_PER_MINUTE);
        assert_int_equal(r->n_requests, 3);
        assert_int_equal(r->requests[2].method, HTTP_PATCH);
        assert_body(r, 2, "count", NULL, "2");
}

TEST_CASE(test_freed_on_the_way) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        EventRecorder *e = recorder_new(r);

        for (unsigned i = 0; i < 20; i++)
                event_record(e, &pod, EVENT_NORMAL, "Spam", "number %u", i);
        rig_run_for(r, SEC);
        assert_int_equal(event_recorder_pending(e), 20);
        event_recorder_free(e);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_int_equal(r->n_requests, 4);
        assert_int_equal(r->n_open, 0);
        assert_null(event_recorder_free(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_fields),
                cmocka_unit_test(test_long_texts),
                cmocka_unit_test(test_object_of_a_decoded_one),
                cmocka_unit_test(test_repeats_become_a_count),
                cmocka_unit_test(test_what_is_a_repeat),
                cmocka_unit_test(test_repeats_of_what_is_not_there),
                cmocka_unit_test(test_count_waits_for_the_event),
                cmocka_unit_test(test_repeat_that_goes_on),
                cmocka_unit_test(test_spam_of_one_object),
                cmocka_unit_test(test_count_waits_for_its_turn),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_rate),
                cmocka_unit_test(test_pushed_out),
                cmocka_unit_test(test_memory_is_of_the_latest),
                cmocka_unit_test(test_spam_of_old_events),
                cmocka_unit_test(test_memory_is_bounded),
                cmocka_unit_test(test_speakers_are_bounded),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_retry_after),
                cmocka_unit_test(test_retry_after_of_several),
                cmocka_unit_test(test_landed_unanswered),
                cmocka_unit_test(test_freed_on_the_way),
        };
        return cmocka_run_group_tests_name("event-recorder", tests, NULL, NULL);
}
