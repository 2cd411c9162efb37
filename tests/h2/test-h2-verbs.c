/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kube-call.h, verb by verb and fault by fault: how often a request reaches the server, how
 * often it takes effect, what its caller hears, and that the next call succeeds. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-test.h"
#include "h2-rig.h"
#include "kube-kinds.h"

/* -- the verbs, as the daemons use them ----------------------------------------------------------------- */

typedef enum Verb {
        VERB_GET,
        VERB_LIST,
        VERB_WATCH,
        VERB_PATCH_VERSION,
        VERB_PATCH,
        VERB_EVICT,
        VERB_CREATE_EVENT,
        VERB_DELETE,
        VERB_PUT_LEASE,
        _VERB_MAX,
} Verb;

typedef struct VerbInfo {
        const char *name, *counted; /* as the server counts it */
        HttpLane lane;
} VerbInfo;

static const VerbInfo verb_table[_VERB_MAX] = {
        [VERB_GET] = { "GET", "GET /api/v1/nodes/n", HTTP_LANE_URGENT },
        [VERB_LIST] = { "LIST", "GET /api/v1/pods", HTTP_LANE_BULK },
        [VERB_WATCH] = { "WATCH", "GET /api/v1/pods", HTTP_LANE_WATCH },
        [VERB_PATCH_VERSION] = { "PATCH with resourceVersion", "PATCH /api/v1/nodes/n", HTTP_LANE_URGENT },
        [VERB_PATCH] = { "PATCH", "PATCH /api/v1/nodes/n/status", HTTP_LANE_URGENT },
        [VERB_EVICT] = { "POST eviction", "POST /api/v1/namespaces/a/pods/p/eviction", HTTP_LANE_BULK },
        [VERB_CREATE_EVENT] = { "POST Event", "POST /api/v1/namespaces/a/pods", HTTP_LANE_BULK },
        [VERB_DELETE] = { "DELETE with uid", "DELETE /api/v1/namespaces/a/pods/p", HTTP_LANE_URGENT },
        [VERB_PUT_LEASE] = { "PUT Lease", "PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/l",
                             HTTP_LANE_URGENT },
};

typedef struct Outcome {
        H2World *world;
        KubeCall *call;
        bool done;
        unsigned n_events;
        char text[64];
        usec_t began_usec, ended_usec;
} Outcome;

static void on_done(const KubeReply *reply, void *userdata) {
        Outcome *o = userdata;

        o->done = true;
        o->ended_usec = loop_now(o->world->loop);
        if (!reply->error)
                (void) snprintf(o->text, sizeof(o->text), "%u", reply->status);
        else
                (void) snprintf(o->text, sizeof(o->text), "%s%s",
                                strerrorname_np(-api_error_to_errno(reply->error)),
                                reply->error->maybe_sent ? "?" : "");
}

static int on_event(const char *type, const Json *object, void *userdata) {
        Outcome *o = userdata;

        o->n_events++;
        return 0;
}

static void start(H2World *w, Verb verb, usec_t timeout_usec, Outcome *o) {
        static const char *const body = "{\"metadata\":{\"resourceVersion\":\"7\"}}";
        const KubeTarget node = { .kind = &kube_node_kind, .name = "n" },
                         node_status = { .kind = &kube_node_kind, .name = "n", .subresource = "status" },
                         pods = { .kind = &kube_pod_kind },
                         pods_of_a = { .kind = &kube_pod_kind, .ns = "a" },
                         pod = { .kind = &kube_pod_kind, .ns = "a", .name = "p" },
                         lease = { .kind = &kube_lease_kind, .ns = "a", .name = "l" };
        const KubeCallOptions options = { .lane = verb_table[verb].lane, .timeout_usec = timeout_usec };
        const KubeWatchOptions watch = { .resource_version = "7", .stall_usec = timeout_usec };
        const KubeDeleteOptions delete = { .uid = "u", .grace_sec = -1 };
        KubeClient *c = w->client;
        int r = -EINVAL;

        *o = (Outcome){ .world = w, .began_usec = loop_now(w->loop) };
        switch (verb) {
        case VERB_GET:
                r = kube_get(c, &node, &options, on_done, o, &o->call);
                break;
        case VERB_LIST:
                r = kube_list(c, &pods, NULL, &options, on_done, o, &o->call);
                break;
        case VERB_WATCH:
                r = kube_watch(c, &pods, &watch, on_event, on_done, o, &o->call);
                break;
        case VERB_PATCH_VERSION:
                r = kube_patch(c, &node, KUBE_PATCH_MERGE, body, &options, on_done, o, &o->call);
                break;
        case VERB_PATCH:
                r = kube_patch(c, &node_status, KUBE_PATCH_STRATEGIC, "{}", &options, on_done, o, &o->call);
                break;
        case VERB_EVICT:
                r = kube_evict(c, "a", "p", "u", -1, &options, on_done, o, &o->call);
                break;
        case VERB_CREATE_EVENT: /* any POST that creates by name */
                r = kube_create(c, &pods_of_a, "{}", &options, on_done, o, &o->call);
                break;
        case VERB_DELETE:
                r = kube_delete(c, &pod, &delete, &options, on_done, o, &o->call);
                break;
        case VERB_PUT_LEASE:
                r = kube_update(c, &lease, "{}", &options, on_done, o, &o->call);
                break;
        case _VERB_MAX:
                break;
        }
        assert_return_code(r, -r);
}

static bool is_done(void *userdata) {
        return ((Outcome *) userdata)->done;
}

/* A good watch stands: its first event is its success. */
static bool has_begun(void *userdata) {
        Outcome *o = userdata;

        return o->done || o->n_events > 0;
}

static void finish(Outcome *o, bool until_event) {
        h2_run_until(o->world, until_event ? has_begun : is_done, o, "the end of a call");
        o->call = kube_call_free(o->call);
}

/* -- what the table says -------------------------------------------------------------------------------- */

typedef enum Rule {
        RULE_ANSWERED, /* as if nothing had happened */
        RULE_LOST, /* GET and LIST are asked again, once; all others are told that it may have been sent */
        RULE_TOO_LARGE,
} Rule;

static const struct {
        Rule rule;
        bool effect; /* of each request that the fault struck */
} expectations[_H2_FAULT_MAX] = {
        [H2_NO_FAULT] = { RULE_ANSWERED, true },     [H2_REFUSED_STREAM] = { RULE_LOST, false },
        [H2_RESET_BEFORE] = { RULE_LOST, false },    [H2_RESET_AFTER] = { RULE_LOST, true },
        [H2_GOAWAY_ABOVE] = { RULE_LOST, false },    [H2_GOAWAY_BELOW] = { RULE_ANSWERED, true },
        [H2_GOAWAY_CALM] = { RULE_LOST, false },     [H2_NOTIFY_BEFORE] = { RULE_LOST, false },
        [H2_FIN_AFTER] = { RULE_LOST, true },        [H2_RST_AFTER] = { RULE_LOST, true },
        [H2_CUT_BODY] = { RULE_LOST, true },         [H2_CUT_BODY_FIN] = { RULE_LOST, true },
        [H2_HUGE_HEADER] = { RULE_TOO_LARGE, true }, [H2_TRAILERS] = { RULE_ANSWERED, true },
        [H2_INFORMED] = { RULE_ANSWERED, true },     [H2_ANSWER_THEN_FIN] = { RULE_ANSWERED, true },
};

static void warm_all(H2World *w) {
        for (HttpLane lane = 0; lane < _HTTP_LANE_MAX; lane++) {
                H2Call c;

                h2_call_start(w, &c, "/warm", (HttpRequest){ .lane = lane });
                h2_call_finish(&c);
                assert_string_equal(h2_call_outcome(&c), "200");
                assert_int_equal(c.http_version, 20);
        }
}

#define assert_seen(where, what, seen, expected) \
        do { \
                unsigned _seen = (seen), _expected = (expected); \
                if (_seen != _expected) \
                        fail_msg("%s: %u " what ", expected %u", where, _seen, _expected); \
        } while (0)

/* One call, struck once, and the same call again. On a fresh connection, and on one that was used before:
 * libcurl would resend on the latter by itself. */
static void check(void **state, H2Fault fault, Verb verb, bool kept) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        _cleanup_free_ char *where = strf("%s, %s, %s connection", verb_table[verb].name,
                                          h2_fault_to_string(fault), kept ? "kept" : "fresh");
        bool repeated = expectations[fault].rule == RULE_LOST && (verb == VERB_GET || verb == VERB_LIST);
        bool stands = verb == VERB_WATCH && fault == H2_NO_FAULT; /* it does not end by itself */
        const char *expected = expectations[fault].rule == RULE_TOO_LARGE              ? "EMSGSIZE?"
                               : expectations[fault].rule == RULE_ANSWERED || repeated ? "200"
                                                                                       : "ECONNRESET?";
        H2Count n;
        Outcome o;

        if (kept)
                warm_all(w);
        w->fault = fault;
        w->fault_times = 1;
        start(w, verb, 0, &o);
        finish(&o, stands);
        if (!streq(o.text, stands ? "" : expected))
                fail_msg("%s: the caller heard '%s', expected '%s'", where, o.text, expected);
        n = h2_count(w, verb_table[verb].counted);
        assert_seen(where, "requests", n.requests, repeated ? 2 : 1);
        assert_seen(where, "effects", n.effects, (expectations[fault].effect ? 1 : 0) + (repeated ? 1 : 0));

        start(w, verb, 0, &o);
        finish(&o, verb == VERB_WATCH);
        if (!streq(o.text, verb == VERB_WATCH ? "" : "200"))
                fail_msg("%s: the next call ended with '%s'", where, o.text);
        assert_seen(where, "requests with the next call", h2_count(w, verb_table[verb].counted).requests,
                    n.requests + 1);
}

TEST_CASE(every_verb_and_fault) {
        for (H2Fault fault = 0; fault < H2_SILENT; fault++)
                for (Verb verb = 0; verb < _VERB_MAX; verb++) {
                        check(state, fault, verb, false);
                        check(state, fault, verb, true);
                }
}

#define LIMIT_USEC (40 * USEC_PER_SEC)        /* more than calls have by default */
#define WATCH_ANSWER_USEC (19 * USEC_PER_SEC) /* Time that a watch waits for the first byte: kube-call.c */

static void assert_silent_until(const Outcome *o, Verb verb, H2Fault fault, usec_t usec) {
        if (!streq(o->text, "ETIMEDOUT?"))
                fail_msg("%s, %s: the caller heard '%s', expected ETIMEDOUT?", verb_table[verb].name,
                         h2_fault_to_string(fault), o->text);
        assert_in_range(o->ended_usec - o->began_usec, usec, usec + H2_PATIENCE_USEC);
}

/* The server is silent. A watch ends first, then each call at its own deadline. Later calls succeed. */
static void check_silence(void **state, H2Fault fault) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        Outcome calls[_VERB_MAX];

        warm_all(w);
        w->fault = fault;
        w->fault_times = _VERB_MAX;
        for (unsigned i = 1; fault == H2_FROZEN && i <= _HTTP_LANE_MAX; i++)
                h2_connection_freeze(h2_server_connection(w->server, i));
        for (Verb verb = 0; verb < _VERB_MAX; verb++)
                start(w, verb, LIMIT_USEC, calls + verb);
        h2_skip(w, WATCH_ANSWER_USEC);
        finish(calls + VERB_WATCH, false);
        assert_silent_until(calls + VERB_WATCH, VERB_WATCH, fault, WATCH_ANSWER_USEC);
        for (Verb verb = 0; verb < _VERB_MAX; verb++)
                assert_int_equal(calls[verb].done, verb == VERB_WATCH);
        h2_skip(w, LIMIT_USEC - WATCH_ANSWER_USEC);
        for (Verb verb = 0; verb < _VERB_MAX; verb++)
                if (verb != VERB_WATCH) {
                        finish(calls + verb, false);
                        assert_silent_until(calls + verb, verb, fault, LIMIT_USEC);
                }
        assert_int_equal(h2_server_stats(w->server).requests,
                         _HTTP_LANE_MAX + (fault == H2_FROZEN ? 0 : _VERB_MAX));

        w->fault_times = 0;
        for (Verb verb = 0; verb < _VERB_MAX; verb++) {
                start(w, verb, 0, calls + verb);
                finish(calls + verb, verb == VERB_WATCH);
                assert_string_equal(calls[verb].text, verb == VERB_WATCH ? "" : "200");
        }
}

TEST_CASE(stalled_streams) {
        check_silence(state, H2_SILENT);
}

TEST_CASE(dead_connections) {
        check_silence(state, H2_FROZEN);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_verb_and_fault),
                cmocka_unit_test(stalled_streams),
                cmocka_unit_test(dead_connections),
        };
        return cmocka_run_group_tests_name("h2-verbs", tests, h2_certificates_new, h2_certificates_free);
}
