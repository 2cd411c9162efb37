/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "kube-rig.h"
#include "leader-elector.h"
#include "log.h"

#define SEC USEC_PER_SEC
#define SEEDS 30u /* where what is asserted depends on the jitter of retries */
#define LEASE_PATH "/apis/coordination.k8s.io/v1/namespaces/vesper/leases"
#define LEASE_MAX_BYTES 65536u

/* -- a server of one Lease: compare-and-swap on the resourceVersion, and nothing else ------------------- */

typedef struct LeaseServer {
        VirtualTime *time;
        usec_t start_usec; /* every time below counts from here */
        char *lease;       /* NULL: absent */
        int64_t version;
} LeaseServer;

static JsonDoc *parse(const char *text) {
        JsonDoc *d;

        assert_return_code(json_parse(text, strlen(text), LEASE_MAX_BYTES, &d, NULL), 0);
        return d;
}

/* The lease becomes `text`, at the next resourceVersion. */
static void server_store(LeaseServer *s, const char *text) {
        _cleanup_(json_doc_freep) JsonDoc *doc = parse(text);
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        const Json *root = json_root(doc);

        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        JSON_FOREACH (m, json_get(root, "metadata"))
                if (!streq(json_key(m), "resourceVersion"))
                        json_add_value(w, json_key(m), m);
        json_addf(w, "resourceVersion", "%lld", (long long) ++s->version);
        json_close_object(w);
        JSON_FOREACH (f, root)
                if (!streq(json_key(f), "metadata"))
                        json_add_value(w, json_key(f), f);
        json_close_object(w);
        free(s->lease);
        s->lease = json_writer_steal(w, NULL);
        assert_non_null(s->lease);
}

static void reply(HttpExchange *x, unsigned status, const char *body) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json" } };

        x->ops->reply(x, status, headers, 1, body, strlen(body));
}

static void server_write(LeaseServer *s, HttpExchange *x, const char *body) {
        _cleanup_(json_doc_freep) JsonDoc *doc = parse(body);
        _cleanup_free_ char *version = strf("%lld", (long long) s->version);
        const char *seen =
                json_string_or_null(json_path(json_root(doc), "metadata", "resourceVersion", NULL));

        if (x->method == HTTP_POST && s->lease)
                reply(x, 409,
                      "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"exists\",\"code\":"
                      "409}");
        else if (x->method == HTTP_PUT && (!s->lease || !streq_ptr(seen, version)))
                reply(x, 409,
                      "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"changed\",\"code\":409}");
        else {
                server_store(s, body);
                reply(x, x->method == HTTP_POST ? 201 : 200, s->lease);
        }
}

static void serve(HttpExchange *x, void *userdata) {
        LeaseServer *s = userdata;
        _cleanup_free_ char *body = NULL;

        assert_string_equal(x->path, x->method == HTTP_POST ? LEASE_PATH : LEASE_PATH "/coordinator");
        if (x->method == HTTP_GET) {
                if (s->lease)
                        reply(x, 200, s->lease);
                else
                        reply(x, 404,
                              "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"none\",\"code\":"
                              "404}");
                return;
        }
        body = memdup_str(x->body, x->body_size);
        assert_non_null(body);
        server_write(s, x, body);
}

static char *lease_text(const LeaseServer *s, const char *field) {
        _cleanup_(json_doc_freep) JsonDoc *doc = parse(s->lease);

        return json_format(json_path(json_root(doc), "spec", field, NULL));
}

#define assert_lease(s, field, expected) \
        do { \
                _cleanup_free_ char *_text = lease_text((s), (field)); \
                assert_string_equal(_text, expected); \
        } while (0)

/* -- candidates ----------------------------------------------------------------------------------------- */

typedef struct Candidate {
        const char *identity;
        LeaseServer *server;
        RigHost *host;
        LeaderElector *elector;
        HttpFault write_faults[2]; /* of the next writes, before `fault` */
        size_t n_write_faults, next_write_fault;
        HttpFault fault;         /* of every request */
        HttpMethod fault_method; /* _INVALID: of any method */
        char releases_in;        /* gives up inside: "[" on_started, "]" on_stopped, "<" on_observed */
        StrBuf trace;            /* "G" "C" "P" as requests leave, "[" leads, "]" stopped, "<name>" seen */
        unsigned n_started, n_stopped, n_released;
        usec_t started_usec, stopped_usec, released_usec, last_request_usec;
        char *why;
        Log *log;
        StrBuf said; /* warnings and what follows them, "SECOND TEXT\n" each */
} Candidate;

static usec_t now(const Candidate *c) {
        return virtual_time_now(c->server->time) - c->server->start_usec;
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret, void *userdata) {
        Candidate *c = userdata;

        strbuf_add(&c->trace, request->method == HTTP_GET ? "G" : request->method == HTTP_POST ? "C" : "P");
        c->last_request_usec = now(c);
        if (request->method != HTTP_GET && c->next_write_fault < c->n_write_faults)
                *ret = c->write_faults[c->next_write_fault++];
        else if (c->fault_method == _HTTP_METHOD_INVALID || c->fault_method == request->method)
                *ret = c->fault;
}

static void on_released(void *userdata) {
        Candidate *c = userdata;

        c->n_released++;
        c->released_usec = now(c);
}

static void release_in(Candidate *c, char handler) {
        if (c->releases_in == handler)
                leader_elector_step_down(c->elector, on_released, c);
}

static void on_started(void *userdata) {
        Candidate *c = userdata;

        assert_true(leader_elector_is_leader(c->elector));
        strbuf_add(&c->trace, "[");
        c->n_started++;
        c->started_usec = now(c);
        release_in(c, '[');
}

static void on_stopped(const char *why, void *userdata) {
        Candidate *c = userdata;

        assert_false(leader_elector_is_leader(c->elector));
        strbuf_add(&c->trace, "]");
        c->n_stopped++;
        c->stopped_usec = now(c);
        assert_return_code(free_and_strdup(&c->why, why), 0);
        release_in(c, ']');
}

static void on_observed(const char *holder, void *userdata) {
        Candidate *c = userdata;

        assert_string_not_equal(holder, c->identity);
        strbuf_addf(&c->trace, "<%s>", holder);
        release_in(c, '<');
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Candidate *c = userdata;

        strbuf_addf(&c->said, "%" PRIu64 " %s\n", now(c) / SEC, text);
}

static void candidate_init(Candidate *c, LeaseServer *s, const char *identity, uint64_t seed) {
        HttpInprocHooks hooks = { .on_request = on_request, .userdata = c };
        LeaderConfig config = { .ns = "vesper", .name = "coordinator", .identity = identity };
        LeaderHandler handler = { on_started, on_stopped, on_observed, c };

        *c = (Candidate){ .identity = identity, .server = s, .fault_method = _HTTP_METHOD_INVALID };
        c->host = rig_host_new(s->time, seed, &hooks, serve, s);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &c->log), 0);
        log_set_hook(c->log, on_log, c);
        c->host->env.log = c->log;
        assert_return_code(leader_elector_new(c->host->client, &config, &handler, &c->elector), 0);
}

static void candidate_done(Candidate *c) {
        leader_elector_free(c->elector);
        rig_host_free(c->host);
        log_free(c->log);
        strbuf_done(&c->trace);
        strbuf_done(&c->said);
        free(c->why);
}

static bool may_send(const Candidate *c) {
        HttpGuard g = leader_elector_guard(c->elector);
        bool answer = g.may_send(g.userdata);

        assert_int_equal(answer, leader_elector_is_leader(c->elector));
        return answer;
}

typedef struct World {
        LeaseServer server;
        Candidate a, b;
} World;

static World *world_new_seeded(uint64_t seed) {
        World *w = new0(World, 1);

        assert_non_null(w);
        assert_return_code(virtual_time_new(RIG_START_WALL, &w->server.time), 0);
        w->server.start_usec = virtual_time_now(w->server.time);
        candidate_init(&w->a, &w->server, "a", 2 * seed);
        candidate_init(&w->b, &w->server, "b", 2 * seed + 1);
        return w;
}

static World *world_new(void) {
        return world_new_seeded(7);
}

static World *world_free(World *w) {
        candidate_done(&w->a);
        candidate_done(&w->b);
        free(w->server.lease);
        virtual_time_free(w->server.time);
        return mfree(w);
}
DEFINE_FREEP(World, world_free);

/* At every instant, at most one may send. */
static void run_until(World *w, usec_t at_usec) {
        while (virtual_time_step(w->server.time, w->server.start_usec + at_usec) > 0)
                assert_false(may_send(&w->a) && may_send(&w->b));
        assert_false(may_send(&w->a) && may_send(&w->b));
}

static usec_t world_now(const World *w) {
        return virtual_time_now(w->server.time) - w->server.start_usec;
}

static void run_for(World *w, usec_t usec) {
        run_until(w, world_now(w) + usec);
}

static void assert_candidate_trace(Candidate *c, const char *expected) {
        _cleanup_free_ char *trace = strbuf_steal(&c->trace);

        assert_string_equal(trace, expected);
}

/* a leads since now. */
static World *world_led_seeded(uint64_t seed) {
        World *w = world_new_seeded(seed);

        leader_elector_start(w->a.elector);
        run_for(w, 0);
        assert_candidate_trace(&w->a, "GC[");
        assert_true(may_send(&w->a));
        return w;
}

static World *world_led(void) {
        return world_led_seeded(7);
}

static void put_lease(World *w, const char *spec) {
        _cleanup_free_ char *text =
                strf("{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{"
                     "\"namespace\":\"vesper\",\"name\":\"coordinator\",\"uid\":\"u1\"},\"spec\":%s}",
                     spec);

        server_store(&w->server, text);
}

/* -- one candidate -------------------------------------------------------------------------------------- */

TEST_CASE(test_first_lease) {
        _cleanup_(world_freep) World *w = world_led();
        _cleanup_(json_doc_freep) JsonDoc *doc = parse(w->server.lease);

        assert_string_equal(json_string_or_null(json_path(json_root(doc), "metadata", "name", NULL)),
                            "coordinator");
        assert_string_equal(json_string_or_null(json_path(json_root(doc), "metadata", "namespace", NULL)),
                            "vesper");
        assert_lease(&w->server, "holderIdentity", "\"a\"");
        assert_lease(&w->server, "leaseDurationSeconds", "15");
        assert_lease(&w->server, "acquireTime", "\"2027-01-15T08:00:00.000000Z\"");
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:00.000000Z\"");
        assert_lease(&w->server, "leaseTransitions", "0");
        assert_string_equal(leader_elector_holder(w->a.elector), "a");
}

TEST_CASE(test_renewal) {
        _cleanup_(world_freep) World *w = world_led();

        run_for(w, 2 * SEC - 1);
        assert_candidate_trace(&w->a, "");
        run_for(w, 1);
        assert_candidate_trace(&w->a, "P");
        assert_lease(&w->server, "acquireTime", "\"2027-01-15T08:00:00.000000Z\"");
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:02.000000Z\"");
        run_for(w, 18 * SEC);
        assert_candidate_trace(&w->a, "PPPPPPPPP");
        assert_lease(&w->server, "leaseTransitions", "0");
        assert_int_equal(w->a.n_stopped, 0);
}

/* How long a candidate that sees this lease for the first time waits before it takes it. */
TEST_CASE(test_takeover) {
        static const struct {
                const char *what, *spec;
                usec_t earliest_usec, latest_usec; /* a try may come up to 2.2 retry periods late */
                const char *transitions;
        } rows[] = {
                { "an ancient one, for its whole duration",
                  "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15,\"renewTime\":\"2001-01-01T00:00:"
                  "00.000000Z\","
                  "\"acquireTime\":\"2001-01-01T00:00:00.000000Z\",\"leaseTransitions\":7}",
                  15 * SEC, 15 * SEC + 4400 * USEC_PER_MSEC, "8" },
                { "one from the future, no longer",
                  "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15,\"renewTime\":\"2999-01-01T00:00:"
                  "00.000000Z\"}",
                  15 * SEC, 15 * SEC + 4400 * USEC_PER_MSEC, "1" },
                { "for the duration that is written, not ours",
                  "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":60}", 60 * SEC,
                  60 * SEC + 4400 * USEC_PER_MSEC, "1" },
                { "with a duration below nothing: not at all",
                  "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":-15,\"leaseTransitions\":3}", 0, 0, "4" },
                { "without a duration: not at all", "{\"holderIdentity\":\"x\",\"leaseTransitions\":3}", 0,
                  0, "4" },
                { "released: not at all",
                  "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,\"leaseTransitions\":3}", 0, 0, "4" },
                { "nobody's: not at all", "{\"leaseDurationSeconds\":15}", 0, 0, "1" },
                { "empty: not at all", "{}", 0, 0, "1" },
                { "our own: not at all",
                  "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15,\"leaseTransitions\":3}", 0, 0,
                  "3" },
        };

        for (size_t i = 0; i < SEEDS * ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new_seeded(i % SEEDS);

                if (i % SEEDS == 0)
                        print_message("%s\n", rows[i / SEEDS].what);
                put_lease(w, rows[i / SEEDS].spec);
                leader_elector_start(w->a.elector);
                run_for(w, 2 * USEC_PER_MINUTE);
                assert_int_equal(w->a.n_started, 1);
                assert_in_range(w->a.started_usec, rows[i / SEEDS].earliest_usec,
                                rows[i / SEEDS].latest_usec);
                assert_lease(&w->server, "leaseTransitions", rows[i / SEEDS].transitions);
                assert_lease(&w->server, "leaseDurationSeconds", "15");
                {
                        _cleanup_free_ char *acquired = lease_text(&w->server, "acquireTime");

                        assert_non_null(startswith(acquired, "\"2027-01-15T08:0")); /* not another's */
                }
        }
}

TEST_CASE(test_unknown_fields_kept) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *metadata = NULL;

        server_store(
                &w->server,
                "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"coordinator\",\"labels\":{\"x\":\"y\"},"
                "\"uid\":\"u9\"},"
                "\"spec\":{\"strategy\":\"OldestEmulationVersion\",\"preferredHolder\":\"b\",\"odd\":{\"n\":"
                "[1,null]},"
                "\"acquireTime\":\"2001-01-01T00:00:00.000000Z\",\"holderIdentity\":\"a\"},\"more\":true}");
        leader_elector_start(w->a.elector);
        run_for(w, 20 * SEC);
        assert_true(may_send(&w->a));
        assert_lease(&w->server, "strategy", "\"OldestEmulationVersion\"");
        assert_lease(&w->server, "preferredHolder", "\"b\"");
        assert_lease(&w->server, "odd", "{\"n\":[1,null]}");
        assert_lease(&w->server, "acquireTime", "\"2001-01-01T00:00:00.000000Z\"");
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:20.000000Z\"");
        doc = parse(w->server.lease);
        metadata = json_format(json_path(json_root(doc), "metadata", "labels", NULL));
        assert_string_equal(metadata, "{\"x\":\"y\"}");
        assert_non_null(json_get(json_root(doc), "more"));
}

TEST_CASE(test_lease_that_makes_no_sense) {
        static const char *const specs[] = {
                "7",
                "{\"holderIdentity\":7}",
                "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":\"15\"}",
                "{\"leaseTransitions\":1.5}",
        };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", specs[i]);
                put_lease(w, specs[i]);
                leader_elector_start(w->a.elector);
                run_for(w, 10 * SEC);
                assert_int_equal(w->a.n_started, 0);
                assert_int_equal(w->server.version, 1);
                put_lease(w, "{}");
                run_for(w, 5 * SEC);
                assert_int_equal(w->a.n_started, 1);
        }
}

/* -- losing it ------------------------------------------------------------------------------------------ */

/* The last renewal left at 10 s and was answered after the delay; nothing gets through any more. */
TEST_CASE(test_renewals_fail) {
        static const struct {
                const char *what;
                usec_t reply_delay_usec, stop_usec;
                const char *why;
        } rows[] = {
                { "ten seconds after the round began", 0, 22 * SEC, "renew deadline passed" },
                { "a slow answer moves the round", 2 * SEC, 24 * SEC, "renew deadline passed" },
                { "but never past the end of the lease", 4 * SEC, 25 * SEC, "lease ended" },
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_led();
                bool refused = i % 2 == 1;

                print_message("%s, requests are %s\n", rows[i / 2].what, refused ? "refused" : "lost");
                run_until(w, 9 * SEC);
                w->a.fault = (HttpFault){ .reply_delay_usec = rows[i / 2].reply_delay_usec };
                run_until(w, 10 * SEC + rows[i / 2].reply_delay_usec);
                assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:10.000000Z\"");
                w->a.fault = (HttpFault){ .refuse = refused, .lose_request = !refused };
                run_until(w, rows[i / 2].stop_usec - 1);
                assert_true(may_send(&w->a));
                assert_int_equal(w->a.n_stopped, 0);
                run_until(w, rows[i / 2].stop_usec);
                assert_false(may_send(&w->a));
                assert_int_equal(w->a.n_stopped, 1);
                assert_string_equal(w->a.why, rows[i / 2].why);

                /* It stands for election again. */
                w->a.fault = (HttpFault){ 0 };
                run_for(w, 20 * SEC);
                assert_int_equal(w->a.n_started, 2);
                assert_true(may_send(&w->a));
        }
}

/* A renewal that fails for less than the deadline changes nothing. */
TEST_CASE(test_renewals_fail_for_a_while) {
        _cleanup_(world_freep) World *w = world_led();

        run_until(w, 11 * SEC);
        assert_candidate_trace(&w->a, "PPPPP");
        w->a.fault = (HttpFault){ .status = 503 };
        run_until(w, 19 * SEC);
        assert_candidate_trace(&w->a, "PGPGPGPG");
        w->a.fault = (HttpFault){ 0 };
        run_until(w, 23 * SEC);
        assert_candidate_trace(&w->a, "PP");
        assert_int_equal(w->a.n_stopped, 0);
}

/* Who may not lead says so: after ten seconds, then every five minutes, and when it is over. */
TEST_CASE(test_refused_is_told) {
        static const struct {
                const char *what;
                HttpMethod method; /* what is refused; _INVALID: everything */
                unsigned status;
                const char *cause;
        } rows[] = {
                { "nothing is allowed", _HTTP_METHOD_INVALID, 403, "wants get, create and update" },
                { "reading alone is allowed", HTTP_POST, 403, "wants get, create and update" },
                { "the server is ill", _HTTP_METHOD_INVALID, 503, "Retrying every few seconds" },
                { "somebody is always faster", HTTP_POST, 409, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                _cleanup_free_ char *said = NULL, *again = NULL;
                char *second;

                print_message("%s\n", rows[i].what);
                w->a.fault = (HttpFault){ .status = rows[i].status };
                w->a.fault_method = rows[i].method;
                leader_elector_start(w->a.elector);
                run_until(w, 10 * SEC - 1);
                assert_int_equal(w->a.said.size, 0);
                run_until(w, 400 * SEC);
                w->a.fault = (HttpFault){ 0 };
                run_until(w, 420 * SEC);
                assert_int_equal(w->a.n_started, 1);
                said = strbuf_steal(&w->a.said);
                if (!rows[i].cause) {
                        assert_true(isempty(said));
                        continue;
                }
                assert_in_range(atoi(said), 10, 15);
                assert_non_null(strstr(said, "Lease 'vesper/coordinator'"));
                assert_non_null(strstr(said, rows[i].cause));
                second = strchr(said, '\n') + 1;
                assert_in_range(atoi(second), 310, 320);
                second = strchr(second, '\n') + 1;
                assert_in_range(atoi(second), 400, 406);
                assert_non_null(strstr(second, "can be read and written again\n"));
                run_until(w, 440 * SEC);
                again = strbuf_steal(&w->a.said);
                assert_true(isempty(again));
        }
}

/* A second time: what was told of the first says nothing about it. */
/* A failure is logged once it has lasted for the renew deadline. */
TEST_CASE(test_told_exactly) {
        for (unsigned early_usec = 0; early_usec < 2; early_usec++) {
                _cleanup_(world_freep) World *w = world_new();
                usec_t at = 10 * SEC - early_usec;

                w->a.fault = (HttpFault){ .status = 503 };
                leader_elector_start(w->a.elector);
                run_until(w, 6 * SEC);
                loop_virtual_pause(w->a.host->loop, w->server.start_usec + at);
                run_until(w, at - 1);
                assert_int_equal(w->a.said.size, 0);
                run_until(w, at);
                assert_int_equal(w->a.last_request_usec, at);
                assert_int_equal(w->a.said.size > 0, early_usec == 0);
        }
}

TEST_CASE(test_refused_again_is_told_again) {
        _cleanup_(world_freep) World *w = world_led();
        _cleanup_free_ char *first = NULL, *between = NULL, *second = NULL;

        w->a.fault = (HttpFault){ .status = 503 };
        run_for(w, 20 * SEC);
        w->a.fault = (HttpFault){ 0 };
        run_for(w, 10 * SEC);
        first = strbuf_steal(&w->a.said);
        assert_non_null(strstr(first, "cannot be read or written"));
        assert_non_null(strstr(first, "can be read and written again\n"));

        /* One failure is the weather, as at first. */
        w->a.fault = (HttpFault){ .status = 503 };
        run_for(w, 4 * SEC);
        w->a.fault = (HttpFault){ 0 };
        run_for(w, 10 * SEC);
        between = strbuf_steal(&w->a.said);
        assert_string_equal(strempty(between), "");

        w->a.fault = (HttpFault){ .status = 503 };
        run_for(w, 20 * SEC);
        second = strbuf_steal(&w->a.said);
        assert_non_null(strstr(strempty(second), "cannot be read or written"));
}

/* A follower, too, whose requests come through again while another holds the lease. */
TEST_CASE(test_follower_hears_again) {
        _cleanup_(world_freep) World *w = world_led();
        _cleanup_free_ char *said = NULL;

        leader_elector_start(w->b.elector);
        run_for(w, 10 * SEC);
        w->b.fault = (HttpFault){ .status = 503 };
        run_for(w, 30 * SEC);
        w->b.fault = (HttpFault){ 0 };
        run_for(w, 10 * SEC);
        said = strbuf_steal(&w->b.said);
        assert_non_null(strstr(strempty(said), "cannot be read or written"));
        assert_non_null(strstr(said, "can be read and written again\n"));
        assert_int_equal(w->b.n_started, 0);
}

/* Lost by proof, and the write that would get it back has no answer: one call at a time, however long. */
TEST_CASE(test_lost_and_no_answer) {
        static const char *const specs[] = { NULL, "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":15}" };

        for (size_t i = 0; i < ELEMENTSOF(specs); i++) {
                _cleanup_(world_freep) World *w = world_led();

                run_for(w, SEC);
                if (specs[i])
                        put_lease(w, specs[i]);
                else
                        w->server.lease = mfree(w->server.lease);
                w->a.fault = (HttpFault){ 0 };
                w->a.write_faults[0] = (HttpFault){ 0 };
                w->a.write_faults[1] = (HttpFault){ .lose_request = true };
                w->a.n_write_faults = 2;
                run_for(w, SEC + 5 * SEC - 1);
                assert_candidate_trace(&w->a, specs[i] ? "PG]P" : "PG]C");
                run_for(w, 10 * SEC);
                assert_true(may_send(&w->a));
                assert_int_equal(w->a.n_started, 2);
        }
}

/* The lease counts from the write, not from the read that went before it. */
TEST_CASE(test_valid_from_the_write) {
        _cleanup_(world_freep) World *w = world_new();

        w->a.fault = (HttpFault){ .reply_delay_usec = 3 * SEC };
        w->a.fault_method = HTTP_GET;
        leader_elector_start(w->a.elector);
        run_until(w, 3 * SEC);
        assert_candidate_trace(&w->a, "GC[");
        w->a.fault = (HttpFault){ .lose_request = true };
        w->a.fault_method = _HTTP_METHOD_INVALID;
        run_until(w, 15 * SEC - 1);
        assert_true(may_send(&w->a));
        run_until(w, 15 * SEC);
        assert_string_equal(w->a.why, "renew deadline passed");

        /* The same where the write is slow and the deadline is not what ends it. */
        {
                _cleanup_(world_freep) World *v = world_new();

                v->a.fault = (HttpFault){ .reply_delay_usec = 4 * SEC };
                leader_elector_start(v->a.elector);
                run_until(v, 8 * SEC);
                assert_candidate_trace(&v->a, "GC[");
                v->a.fault = (HttpFault){ .lose_request = true };
                run_until(v, 19 * SEC - 1);
                assert_true(may_send(&v->a));
                run_until(v, 19 * SEC);
                assert_false(may_send(&v->a));
                assert_string_equal(v->a.why, "lease ended");
        }
}

/* A renewal whose answer makes no sense may have landed or not: it is looked up. */
TEST_CASE(test_answer_that_makes_no_sense) {
        _cleanup_(world_freep) World *w = world_led();

        run_until(w, 3 * SEC);
        assert_candidate_trace(&w->a, "P");
        w->a.fault = (HttpFault){ .status = 200 };
        run_until(w, 5 * SEC);
        assert_candidate_trace(&w->a, "P");
        w->a.fault = (HttpFault){ 0 };
        run_until(w, 7 * SEC);
        assert_candidate_trace(&w->a, "GP");
        assert_int_equal(w->a.n_stopped, 0);
}

/* What ran out while nobody could be asked is read before it is written: another may hold it by now. */
TEST_CASE(test_run_out_is_read_first) {
        _cleanup_(world_freep) World *w = world_led();

        run_until(w, 3 * SEC);
        w->a.fault = (HttpFault){ .refuse = true };
        run_until(w, 60 * SEC);
        assert_int_equal(w->a.n_stopped, 1);
        strbuf_truncate(&w->a.trace, 0);
        run_until(w, 70 * SEC);
        assert_null(strchr(strbuf_str(&w->a.trace), 'P'));
        w->a.fault = (HttpFault){ 0 };
        strbuf_truncate(&w->a.trace, 0);
        run_until(w, 76 * SEC);
        assert_int_equal(strncmp(strbuf_str(&w->a.trace), "GP[", 3), 0);
}

/* A lease has run out at the end of its last microsecond: only until then its holder renews it unread, and
 * another candidate leaves it alone. */
TEST_CASE(test_run_out_exactly) {
        for (unsigned early_usec = 0; early_usec < 2; early_usec++) {
                _cleanup_(world_freep) World *w = world_led(), *other = world_new();
                usec_t end;

                print_message("  %u us before its end\n", early_usec);
                run_until(w, 3 * SEC);
                end = w->a.last_request_usec + 15 * SEC - early_usec;
                w->a.fault = (HttpFault){ .refuse = true };
                run_until(w, 14 * SEC);
                assert_int_equal(w->a.n_stopped, 1);
                w->a.fault = (HttpFault){ 0 };
                loop_virtual_pause(w->a.host->loop, w->server.start_usec + end);
                run_until(w, end - 1);
                strbuf_truncate(&w->a.trace, 0);
                run_until(w, end);
                assert_int_equal(strbuf_str(&w->a.trace)[0], early_usec > 0 ? 'P' : 'G');

                put_lease(other, "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15}");
                leader_elector_start(other->a.elector);
                run_until(other, 12 * SEC);
                end = 15 * SEC - early_usec;
                loop_virtual_pause(other->a.host->loop, other->server.start_usec + end);
                run_until(other, end - 1);
                strbuf_truncate(&other->a.trace, 0);
                run_until(other, end);
                assert_candidate_trace(&other->a, early_usec > 0 ? "G" : "GP[");
        }
}

TEST_CASE(test_lost_by_proof) {
        static const struct {
                const char *what, *spec; /* NULL: deleted */
                const char *trace, *why;
                bool leads_again;
        } rows[] = {
                { "another took it", "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15}", "PG<x>]",
                  "the lease was taken by 'x'", false },
                { "a person cleared it", "{\"holderIdentity\":\"\",\"leaseDurationSeconds\":15}", "PG]P[",
                  "the lease was cleared by somebody else", true },
                { "a person deleted it", NULL, "PG]C[", "the lease was deleted", true },
                { "a person touched it, and it is still ours",
                  "{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}", "PGP", NULL, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_led();

                print_message("%s\n", rows[i].what);
                run_for(w, SEC);
                if (rows[i].spec)
                        put_lease(w, rows[i].spec);
                else
                        w->server.lease = mfree(w->server.lease);
                run_for(w, SEC);
                assert_candidate_trace(&w->a, rows[i].trace);
                assert_true(streq_ptr(w->a.why, rows[i].why));
                assert_int_equal(may_send(&w->a), rows[i].leads_again);
        }
}

/* A renewal that landed, but whose answer was lost: the next try looks before it writes. */
TEST_CASE(test_lost_answer) {
        _cleanup_(world_freep) World *w = world_led();

        run_until(w, 3 * SEC);
        assert_candidate_trace(&w->a, "P");
        w->a.fault = (HttpFault){ .lose_reply = true };
        run_until(w, 5 * SEC);
        assert_candidate_trace(&w->a, "P");
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:04.000000Z\"");
        w->a.fault = (HttpFault){ 0 };
        run_until(w, 9 * SEC);
        assert_candidate_trace(&w->a, "GP");
        assert_lease(&w->server, "leaseTransitions", "0");
        run_until(w, 11 * SEC);
        assert_candidate_trace(&w->a, "P");
        assert_int_equal(w->a.n_stopped, 0);
}

/* The same for the write that would have made it leader: it is one, once it knows. */
TEST_CASE(test_lost_answer_of_the_first) {
        _cleanup_(world_freep) World *w = world_new();

        w->a.fault = (HttpFault){ .lose_reply = true };
        w->a.fault_method = HTTP_POST;
        leader_elector_start(w->a.elector);
        run_until(w, 5 * SEC);
        assert_candidate_trace(&w->a, "GC");
        assert_false(may_send(&w->a));
        run_until(w, 10 * SEC);
        assert_true(may_send(&w->a));
        assert_int_equal(w->a.n_started, 1);
        assert_lease(&w->server, "leaseTransitions", "0");
}

/* An answer that is late by no more than the request's limit counts from when the request left. */
TEST_CASE(test_valid_from_the_start_of_the_request) {
        _cleanup_(world_freep) World *w = world_led();

        run_until(w, 3 * SEC);
        w->a.fault = (HttpFault){ .request_delay_usec = 4 * SEC };
        run_until(w, 8 * SEC);
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:04.000000Z\"");
        w->a.fault = (HttpFault){ .refuse = true };
        run_until(w, 19 * SEC - 1);
        assert_true(may_send(&w->a));
        run_until(w, 19 * SEC);
        assert_false(may_send(&w->a));
}

static void on_instant(Timer *t, void *userdata) {
        Candidate *c = userdata;

        strbuf_add(&c->trace, may_send(c) ? "+" : "-");
}

/* The guard is right by itself, before the elector's own timer has run. */
TEST_CASE(test_guard_at_the_end) {
        _cleanup_(world_freep) World *w = world_led();
        _cleanup_(timer_freep) Timer *before = NULL, *at = NULL;

        run_until(w, 9 * SEC);
        assert_return_code(timer_new(w->a.host->loop, "before", on_instant, &w->a, &before), 0);
        assert_return_code(timer_new(w->a.host->loop, "at", on_instant, &w->a, &at), 0);
        timer_arm(before, w->server.start_usec + 25 * SEC - 1);
        timer_arm(at, w->server.start_usec + 25 * SEC);
        w->a.fault = (HttpFault){ .reply_delay_usec = 4 * SEC };
        run_until(w, 14 * SEC);
        w->a.fault = (HttpFault){ .lose_request = true };
        run_until(w, 17 * SEC);
        strbuf_truncate(&w->a.trace, 0);
        run_until(w, 25 * SEC);
        assert_candidate_trace(&w->a, "G+-]");
}

/* Writes that may have landed, one after the other: each next step begins by looking. */
TEST_CASE(test_looks_before_it_writes_again) {
        static const struct {
                const char *what;
                HttpFault writes[2];
                size_t n_writes;
                HttpFault reads;
                const char *until_9, *then;
        } rows[] = {
                { "the renewal is lost, then the look fails",
                  { { .lose_reply = true } },
                  1,
                  { .status = 503 },
                  "PGG",
                  "GP" },
                { "the renewal is refused, the next one lost",
                  { { .status = 500 }, { .lose_reply = true } },
                  2,
                  { 0 },
                  "PGPGP",
                  "P" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_led();

                print_message("%s\n", rows[i].what);
                run_until(w, 3 * SEC);
                assert_candidate_trace(&w->a, "P");
                memcpy(w->a.write_faults, rows[i].writes, sizeof(rows[i].writes));
                w->a.n_write_faults = rows[i].n_writes;
                w->a.fault = rows[i].reads;
                w->a.fault_method = HTTP_GET;
                run_until(w, 10 * SEC);
                assert_candidate_trace(&w->a, rows[i].until_9);
                w->a.fault = (HttpFault){ 0 };
                run_until(w, 12 * SEC);
                assert_candidate_trace(&w->a, rows[i].then);
                assert_int_equal(w->a.n_stopped, 0);
        }
}

/* The deadline passes while a renewal is under way: whether it landed has to be looked up. */
TEST_CASE(test_looks_after_the_deadline) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                _cleanup_(world_freep) World *w = world_led_seeded(seed);

                run_until(w, 3 * SEC);
                w->a.fault = (HttpFault){ .status = 503 };
                run_until(w, 11 * SEC);
                w->a.fault = (HttpFault){ .lose_reply = true };
                run_until(w, 14 * SEC);
                assert_int_equal(w->a.n_stopped, 1);
                assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:12.000000Z\"");
                w->a.fault = (HttpFault){ 0 };
                strbuf_truncate(&w->a.trace, 0);
                run_until(w, 18400 * USEC_PER_MSEC);
                assert_int_equal(strncmp(strbuf_str(&w->a.trace), "GP[", 3), 0);
        }
}

/* -- two of them ---------------------------------------------------------------------------------------- */

TEST_CASE(test_both_at_once) {
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
                _cleanup_(world_freep) World *w = world_new_seeded(seed);

                leader_elector_start(w->a.elector);
                leader_elector_start(w->b.elector);
                run_for(w, USEC_PER_MINUTE);
                assert_int_equal(w->a.n_started + w->b.n_started, 1);
                assert_int_equal(w->a.n_stopped + w->b.n_stopped, 0);
        }
}

/* A leader dies; the other takes over after a full lease without a change, as seen by its own clock. */
TEST_CASE(test_leader_dies) {
        static const struct {
                const char *what;
                int64_t wall_step_usec;
        } rows[] = {
                { "their clocks agree", 0 },
                { "the follower's is an hour ahead", 3600 * (int64_t) SEC },
                { "the follower's is an hour behind", -3600 * (int64_t) SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_led();
                usec_t seen;

                print_message("%s\n", rows[i].what);
                loop_virtual_step_wall(w->b.host->loop, rows[i].wall_step_usec);
                leader_elector_start(w->b.elector);
                run_until(w, 60 * SEC);
                assert_int_equal(w->b.n_started, 0);
                assert_string_equal(leader_elector_holder(w->b.elector), "a");

                w->a.fault = (HttpFault){ .lose_request = true };
                run_until(w, 62 * SEC); /* the renewal at 60 was the last that counted */
                run_until(w, 65 * SEC);
                seen = w->b.last_request_usec; /* b has seen that renewal by now */
                run_until(w, 2 * USEC_PER_MINUTE);
                assert_int_equal(w->b.n_started, 1);
                assert_true(w->b.started_usec >= 75 * SEC);
                assert_true(w->b.started_usec <= seen + 15 * SEC + 4400 * USEC_PER_MSEC);
                assert_lease(&w->server, "leaseTransitions", "1");
                assert_int_equal(w->a.n_stopped, 1);
                assert_true(w->a.stopped_usec < w->b.started_usec);
        }
}

static void on_first_after_pause(Timer *t, void *userdata) {
        Candidate *c = userdata;

        assert_false(may_send(c));
        strbuf_add(&c->trace, "!");
}

/* A leader that gets no CPU for longer than its lease knows that it leads no more, before it does anything.
 */
TEST_CASE(test_paused_leader) {
        _cleanup_(world_freep) World *w = world_led();
        _cleanup_(timer_freep) Timer *first = NULL;

        leader_elector_start(w->b.elector);
        run_until(w, 31 * SEC);
        assert_return_code(timer_new(w->a.host->loop, "first", on_first_after_pause, &w->a, &first), 0);
        timer_arm(first, w->server.start_usec + 31 * SEC + 1);
        loop_virtual_pause(w->a.host->loop, w->server.start_usec + 90 * SEC);
        strbuf_truncate(&w->a.trace, 0);
        run_until(w, 90 * SEC);
        assert_int_equal(w->b.n_started, 1);
        assert_true(w->b.started_usec < 60 * SEC);
        assert_int_equal(strncmp(strbuf_str(&w->a.trace), "!", 1), 0);
        run_until(w, 95 * SEC);
        assert_int_equal(w->a.n_stopped, 1);
        assert_int_equal(w->a.stopped_usec, 90 * SEC);
        assert_true(may_send(&w->b));
        assert_int_equal(w->a.n_started, 1);
        assert_string_equal(leader_elector_holder(w->a.elector), "b");
}

/* The answer to the last renewal waits for a process that sleeps: it must not wake up as leader. */
TEST_CASE(test_paused_with_an_answer_waiting) {
        _cleanup_(world_freep) World *w = world_led();

        run_until(w, 3 * SEC);
        w->a.fault = (HttpFault){ .reply_delay_usec = SEC };
        run_until(w, 4 * SEC + SEC / 2);
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:04.000000Z\"");
        w->a.fault = (HttpFault){ .lose_request = true };
        leader_elector_start(w->b.elector);
        loop_virtual_pause(w->a.host->loop, w->server.start_usec + 40 * SEC);
        run_until(w, 40 * SEC);
        assert_int_equal(w->a.n_stopped, 1);
        assert_int_equal(w->a.n_started, 1);
        assert_false(may_send(&w->a));
        assert_true(may_send(&w->b));
}

/* It would have become leader while it slept: too late. */
TEST_CASE(test_paused_before_the_first_answer) {
        _cleanup_(world_freep) World *w = world_new();

        w->a.write_faults[0] = (HttpFault){ .reply_delay_usec = SEC };
        w->a.n_write_faults = 1;
        leader_elector_start(w->a.elector);
        run_until(w, SEC / 2);
        assert_lease(&w->server, "holderIdentity", "\"a\"");
        loop_virtual_pause(w->a.host->loop, w->server.start_usec + 40 * SEC);
        leader_elector_start(w->b.elector);
        run_until(w, 39 * SEC);
        assert_true(may_send(&w->b));
        run_until(w, 60 * SEC);
        assert_int_equal(w->a.n_started, 0);
        assert_true(may_send(&w->b));
}

/* The same without another candidate: the next try is quick. */
TEST_CASE(test_paused_alone_before_the_first_answer) {
        _cleanup_(world_freep) World *w = world_new();

        w->a.write_faults[0] = (HttpFault){ .reply_delay_usec = SEC };
        w->a.n_write_faults = 1;
        leader_elector_start(w->a.elector);
        run_until(w, SEC / 2);
        loop_virtual_pause(w->a.host->loop, w->server.start_usec + 40 * SEC);
        run_until(w, 40 * SEC + USEC_PER_MSEC);
        assert_int_equal(w->a.n_started, 1);
        assert_true(may_send(&w->a));
}

/* -- release -------------------------------------------------------------------------------------------- */

TEST_CASE(test_release_hands_over) {
        _cleanup_(world_freep) World *w = world_led();

        leader_elector_start(w->b.elector);
        run_until(w, 9 * SEC);
        strbuf_truncate(&w->a.trace, 0);
        leader_elector_step_down(w->a.elector, on_released, &w->a);
        assert_false(may_send(&w->a));
        assert_int_equal(w->a.n_released, 0);
        run_for(w, 0);
        assert_int_equal(w->a.n_released, 1);
        assert_candidate_trace(&w->a, "GP");
        assert_lease(&w->server, "holderIdentity", "\"\"");
        assert_lease(&w->server, "leaseDurationSeconds", "1");
        assert_lease(&w->server, "leaseTransitions", "0");
        assert_lease(&w->server, "renewTime", "\"2027-01-15T08:00:09.000000Z\"");
        assert_lease(&w->server, "acquireTime", "\"2027-01-15T08:00:09.000000Z\"");

        run_for(w, 4400 * USEC_PER_MSEC);
        assert_true(may_send(&w->b));
        assert_lease(&w->server, "leaseTransitions", "1");
        run_for(w, USEC_PER_MINUTE);
        assert_candidate_trace(&w->a, "");
        assert_int_equal(w->a.n_stopped, 0);
}

TEST_CASE(test_release_comes_to_an_end) {
        static const struct {
                const char *what;
                bool started;
                HttpFault fault;
                bool at_puts;      /* only */
                const char *other; /* who holds it by then */
                const char *trace;
                usec_t after_usec;
        } rows[] = {
                { "never stood for election", false, { 0 }, false, NULL, "", 0 },
                { "another holds it",
                  true,
                  { 0 },
                  false,
                  "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15}",
                  "G<x>",
                  0 },
                { "no answer", true, { .lose_request = true }, false, NULL, "G", 2 * SEC },
                { "nobody there", true, { .refuse = true }, false, NULL, NULL, 2 * SEC },
                { "the server is ill", true, { .status = 500 }, false, NULL, "GGGGGGGGGG", 2 * SEC },
                { "its write is refused",
                  true,
                  { .status = 500 },
                  true,
                  NULL,
                  "GPGPGPGPGPGPGPGPGPGP",
                  2 * SEC },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = rows[i].started ? world_led() : world_new();
                usec_t asked;

                print_message("%s\n", rows[i].what);
                run_for(w, SEC);
                if (rows[i].other)
                        put_lease(w, rows[i].other);
                w->a.fault = rows[i].fault;
                if (rows[i].at_puts)
                        w->a.fault_method = HTTP_PUT;
                asked = world_now(w);
                leader_elector_step_down(w->a.elector, on_released, &w->a);
                assert_int_equal(w->a.n_released, 0);
                run_for(w, 10 * SEC);
                assert_int_equal(w->a.n_released, 1);
                assert_int_equal(w->a.released_usec, asked + rows[i].after_usec);
                if (rows[i].trace)
                        assert_candidate_trace(&w->a, rows[i].trace);
        }
}

TEST_CASE(test_release_inside_a_handler) {
        static const struct {
                const char *what;
                char handler;
                const char *then; /* the Lease of somebody else, after a second; NULL: requests are lost */
                const char *trace;
        } rows[] = {
                { "as soon as it leads", '[', NULL, "GC[GP" },
                { "when another took it", ']', "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15}",
                  "GC[PG<x>]G" },
                { "when another is seen", '<', "{\"holderIdentity\":\"x\",\"leaseDurationSeconds\":15}",
                  "GC[PG<x>G" },
                { "when it was deleted", ']', "", "GC[PG]G" },
                { "when the deadline has passed", ']', NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();

                print_message("%s\n", rows[i].what);
                w->a.releases_in = rows[i].handler;
                leader_elector_start(w->a.elector);
                run_for(w, SEC);
                if (!rows[i].then)
                        w->a.fault = (HttpFault){ .lose_request = true };
                else if (isempty(rows[i].then))
                        w->server.lease = mfree(w->server.lease);
                else
                        put_lease(w, rows[i].then);
                run_for(w, USEC_PER_MINUTE);
                assert_false(may_send(&w->a));
                assert_int_equal(w->a.n_released, 1);
                if (rows[i].trace)
                        assert_candidate_trace(&w->a, rows[i].trace);
        }
}

/* Somebody touched it between our read and our write: read again at once, not when the time is nearly up. */
TEST_CASE(test_release_meets_a_conflict) {
        _cleanup_(world_freep) World *w = world_led();

        run_for(w, SEC);
        w->a.write_faults[0] = (HttpFault){ .status = 409 };
        w->a.n_write_faults = 1;
        leader_elector_step_down(w->a.elector, on_released, &w->a);
        run_for(w, 0);
        assert_candidate_trace(&w->a, "GPGP");
        assert_int_equal(w->a.n_released, 1);
        assert_lease(&w->server, "holderIdentity", "\"\"");
}

/* A renewal is under way while it is given up: whichever lands first, nobody holds it in the end. */
TEST_CASE(test_release_during_a_renewal) {
        for (usec_t delay = 0; delay <= 400 * USEC_PER_MSEC; delay += 50 * USEC_PER_MSEC) {
                _cleanup_(world_freep) World *w = world_led();

                run_until(w, 2 * SEC - 1);
                w->a.fault = (HttpFault){ .request_delay_usec = delay };
                run_until(w, 2 * SEC);
                w->a.fault = (HttpFault){ .request_delay_usec = 100 * USEC_PER_MSEC };
                leader_elector_step_down(w->a.elector, on_released, &w->a);
                run_for(w, 5 * SEC);
                assert_int_equal(w->a.n_released, 1);
                assert_lease(&w->server, "holderIdentity", "\"\"");
        }
}

/* -- the rest ------------------------------------------------------------------------------------------- */

TEST_CASE(test_config) {
        static const struct {
                const char *what;
                LeaderConfig config;
                int expected;
        } rows[] = {
                { "the defaults", { "ns", "n", "id", 0, 0, 0 }, 0 },
                { "all given", { "ns", "n", "id", 60 * SEC, 40 * SEC, 5 * SEC }, 0 },
                { "a deadline as long as the lease",
                  { "ns", "n", "id", 10 * SEC, 10 * SEC, 2 * SEC },
                  -EINVAL },
                { "whole seconds count",
                  { "ns", "n", "id", 10 * SEC + 900000, 10 * SEC, 2 * SEC },
                  -EINVAL },
                { "no time for a second try", { "ns", "n", "id", 15 * SEC, 6 * SEC, 5 * SEC }, -EINVAL },
                { "a lease of less than a second", { "ns", "n", "id", 900000, 500000, 100000 }, -EINVAL },
                { "no identity", { "ns", "n", "", 0, 0, 0 }, -EINVAL },
                { "no name", { "ns", NULL, "id", 0, 0, 0 }, -EINVAL },
        };
        _cleanup_(rig_freep) Rig *r = rig_new();
        LeaderHandler handler = { .on_started = on_started, .on_stopped = on_stopped };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(leader_elector_freep) LeaderElector *e = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(leader_elector_new(r->host->client, &rows[i].config, &handler, &e),
                                 rows[i].expected);
                if (e)
                        assert_string_equal(leader_elector_holder(e), "");
        }
}

/* Tries of a follower are 2 to 4.4 s apart. */
TEST_CASE(test_acquire_jitter) {
        _cleanup_(world_freep) World *w = world_led();
        usec_t last = 0;
        unsigned short_waits = 0, long_waits = 0;

        leader_elector_start(w->b.elector);
        run_for(w, 0);
        for (unsigned i = 0; i < 100; i++) {
                last = w->b.last_request_usec;
                while (w->b.last_request_usec == last)
                        assert_int_equal(virtual_time_step(w->server.time, USEC_INFINITY), 1);
                assert_in_range(w->b.last_request_usec - last, 2 * SEC, 4400 * USEC_PER_MSEC);
                short_waits += w->b.last_request_usec - last < 2600 * USEC_PER_MSEC;
                long_waits += w->b.last_request_usec - last > 3800 * USEC_PER_MSEC;
        }
        assert_true(short_waits > 0 && long_waits > 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_lease),
                cmocka_unit_test(test_renewal),
                cmocka_unit_test(test_takeover),
                cmocka_unit_test(test_unknown_fields_kept),
                cmocka_unit_test(test_lease_that_makes_no_sense),
                cmocka_unit_test(test_renewals_fail),
                cmocka_unit_test(test_renewals_fail_for_a_while),
                cmocka_unit_test(test_refused_is_told),
                cmocka_unit_test(test_told_exactly),
                cmocka_unit_test(test_refused_again_is_told_again),
                cmocka_unit_test(test_follower_hears_again),
                cmocka_unit_test(test_lost_and_no_answer),
                cmocka_unit_test(test_valid_from_the_write),
                cmocka_unit_test(test_answer_that_makes_no_sense),
                cmocka_unit_test(test_run_out_is_read_first),
                cmocka_unit_test(test_run_out_exactly),
                cmocka_unit_test(test_lost_by_proof),
                cmocka_unit_test(test_lost_answer),
                cmocka_unit_test(test_lost_answer_of_the_first),
                cmocka_unit_test(test_valid_from_the_start_of_the_request),
                cmocka_unit_test(test_guard_at_the_end),
                cmocka_unit_test(test_looks_before_it_writes_again),
                cmocka_unit_test(test_looks_after_the_deadline),
                cmocka_unit_test(test_both_at_once),
                cmocka_unit_test(test_leader_dies),
                cmocka_unit_test(test_paused_leader),
                cmocka_unit_test(test_paused_with_an_answer_waiting),
                cmocka_unit_test(test_paused_before_the_first_answer),
                cmocka_unit_test(test_paused_alone_before_the_first_answer),
                cmocka_unit_test(test_release_hands_over),
                cmocka_unit_test(test_release_comes_to_an_end),
                cmocka_unit_test(test_release_inside_a_handler),
                cmocka_unit_test(test_release_meets_a_conflict),
                cmocka_unit_test(test_release_during_a_renewal),
                cmocka_unit_test(test_config),
                cmocka_unit_test(test_acquire_jitter),
        };
        return cmocka_run_group_tests_name("leader-elector", tests, NULL, NULL);
}
