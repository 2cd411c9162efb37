/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "fake-gce-metadata.h"
#include "http-inproc.h"
#include "notice-gce.h"
#include "refusing-transport.h"
#include "string-util.h"

#define ENDPOINT "http://169.254.169.254"
#define START (UINT64_C(1800000000) * USEC_PER_SEC)
#define POLL (2 * USEC_PER_SEC)
#define INSTANCE "4520031799277581759"

/* The source against the metadata server of a VM, on one virtual time. */

typedef struct Side {
        const char *feed;
        size_t n_looks, n;
        NoticePollResult result;
        Notice *notice;
        char why[512];
} Side;

typedef struct Bench {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        HttpTransport *transport;
        FakeGceMetadata *fake;
        Env env;
        NoticeSource *source;
        Side sides[4];
} Bench;

static Side *side(Bench *b, const char *feed) {
        for (size_t i = 0; i < ELEMENTSOF(b->sides); i++) {
                if (!b->sides[i].feed)
                        b->sides[i].feed = feed;
                if (streq(b->sides[i].feed, feed))
                        return &b->sides[i];
        }
        fail_msg("a feed too many: %s", feed);
        return NULL;
}

#define PREEMPTED side(&b, "instance/preempted")
#define EVENT side(&b, "instance/maintenance-event")
#define UPCOMING side(&b, "instance/upcoming-maintenance")
#define STOP side(&b, "instance/shutdown-details/stop-state")

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        Side *x = side(userdata, look->feed);

        x->n_looks++;
        x->result = look->result;
        (void) snprintf(x->why, sizeof(x->why), "%s", strempty(look->why));
        x->notice = notice_free(x->notice);
        x->n = look->n_notices;
        assert_in_range(x->n, 0, 1);
        if (x->n == 0)
                return;
        assert_return_code(notice_copy(look->notices[0], &x->notice), 0);
        assert_true(notice_source_announces(s, look->feed, x->notice));
}

static void bench_init(Bench *b, const FakeGceMetadataOptions *more) {
        FakeGceMetadataOptions options = more ? *more : (FakeGceMetadataOptions){ 0 };

        *b = (Bench){ 0 };
        options.name = "n1";
        options.id = INSTANCE;
        assert_return_code(virtual_time_new(START, &b->time), 0);
        assert_return_code(loop_new_virtual(b->time, &b->loop), 0);
        assert_return_code(random_new(1, &b->random), 0);
        assert_return_code(http_inproc_new(b->loop, NULL, NULL, &b->transport), 0);
        b->fake = fake_gce_metadata_new(b->loop, &options);
        assert_return_code(http_inproc_route(b->transport, ENDPOINT, fake_gce_metadata_handle, b->fake), 0);
        b->env = (Env){ .loop = b->loop, .random = b->random, .transport = b->transport, .boot_id = "boot-1", .version = "0" };
        assert_return_code(notice_gce_new(&b->env, &(NoticeGceOptions){ .endpoint = ENDPOINT, .poll_usec = POLL }, on_look, b, &b->source),
                           0);
        b->source->ops->start(b->source);
}

static void bench_done(Bench *b) {
        notice_source_free(b->source);
        http_transport_free(b->transport);
        fake_gce_metadata_free(b->fake);
        random_free(b->random);
        loop_free(b->loop);
        virtual_time_free(b->time);
        for (size_t i = 0; i < ELEMENTSOF(b->sides); i++)
                notice_free(b->sides[i].notice);
}

static void run(Bench *b, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(b->time), usec);

        while (virtual_time_step(b->time, until) > 0)
                ;
        (void) assert_awake(b->loop, b->source->ops->next_wakeup, b->source);
}

/* -- calm ----------------------------------------------------------------------------------------- */

/* One request a minute for each feed, and each waits at the server. */
TEST_CASE(test_calm) {
        size_t gets;
        Bench b;

        bench_init(&b, &(FakeGceMetadataOptions){ .graceful_shutdown = true });
        run(&b, 10 * USEC_PER_SEC);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_NONE);
        assert_int_equal(EVENT->result, NOTICE_POLL_NONE);
        assert_int_equal(UPCOMING->result, NOTICE_POLL_NONE);
        assert_int_equal(STOP->result, NOTICE_POLL_NONE);
        assert_int_equal(fake_gce_metadata_n_waiting(b.fake), 4);
        gets = fake_gce_metadata_n_gets(b.fake);
        run(&b, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_gce_metadata_n_gets(b.fake) - gets, 36, 44);
        bench_done(&b);
}

TEST_CASE(test_identity) {
        static const struct {
                const char *provider_id;
                NoticeIdentity identity;
        } rows[] = {
                { "gce://fake-project/us-central1-a/n1", NOTICE_IDENTITY_SAME },
                { "gce://example.com:proj/us-central1-b/n1", NOTICE_IDENTITY_SAME },
                { "gce://fake-project/us-central1-a/n2", NOTICE_IDENTITY_OTHER },
                { "gce://fake-project/us-central1-a/", NOTICE_IDENTITY_UNKNOWN },
                { "gce:n1", NOTICE_IDENTITY_UNKNOWN },
                { "aws:///us-east-1a/n2", NOTICE_IDENTITY_UNKNOWN },
        };
        const char *name;
        Bench b;

        bench_init(&b, NULL);
        assert_int_equal(notice_source_identity(b.source, rows[2].provider_id, &name), NOTICE_IDENTITY_UNKNOWN);
        run(&b, 10 * USEC_PER_SEC);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].provider_id);
                assert_int_equal(notice_source_identity(b.source, rows[i].provider_id, &name), rows[i].identity);
                assert_string_equal(name, "n1");
        }
        bench_done(&b);
}

/* The name is not told, as by a metadata server that is not up yet: notices are read all the same, and it is asked for until it is told; the
 * feeds are read at once then, by whoever this is, and a deadline stays where it was. */
TEST_CASE(test_name_comes_late) {
        const char *provider_id = "gce://fake-project/us-central1-a/n2", *name;
        usec_t deadline;
        size_t gets, looks;
        Bench b;

        bench_init(&b, NULL);
        fake_gce_metadata_set_name(b.fake, NULL);
        run(&b, 10 * USEC_PER_SEC);
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_UNKNOWN);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_NONE);
        run(&b, 10 * USEC_PER_MINUTE);
        gets = fake_gce_metadata_n_gets(b.fake);
        run(&b, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_gce_metadata_n_gets(b.fake) - gets, 60, 75); /* four feeds, and two questions, each about once a minute */

        fake_gce_metadata_set_preempted(b.fake, true);
        run(&b, 10 * USEC_PER_SEC);
        deadline = PREEMPTED->notice->deadline_usec;
        looks = PREEMPTED->n_looks;
        fake_gce_metadata_set_name(b.fake, "n1");
        notice_source_kick(b.source);
        run(&b, USEC_PER_SEC);
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_OTHER);
        assert_int_equal(PREEMPTED->n_looks, looks + 1);
        assert_true(PREEMPTED->notice->deadline_usec == deadline);
        gets = fake_gce_metadata_n_gets(b.fake);
        run(&b, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_gce_metadata_n_gets(b.fake) - gets, 36, 44); /* the feeds alone */
        bench_done(&b);
}

/* Each way in which nothing is planned; and a VM that has no graceful shutdown. */
TEST_CASE(test_nothing_planned) {
        static const FakeGceUpcoming ways[] = { FAKE_GCE_UPCOMING_EMPTY, FAKE_GCE_UPCOMING_NONE, FAKE_GCE_UPCOMING_ERROR,
                                                FAKE_GCE_UPCOMING_UNAVAILABLE, FAKE_GCE_UPCOMING_ABSENT };

        for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                Bench b;

                bench_init(&b, NULL);
                fake_gce_metadata_set_upcoming_none(b.fake, ways[i]);
                run(&b, 10 * USEC_PER_SEC);
                assert_int_equal(UPCOMING->result, NOTICE_POLL_NONE);
                assert_int_equal(STOP->result, NOTICE_POLL_NONE);
                bench_done(&b);
        }
}

/* -- notices -------------------------------------------------------------------------------------- */

TEST_CASE(test_preempted) {
        usec_t deadline, seen;
        Bench b;

        bench_init(&b, &(FakeGceMetadataOptions){ .spot = true });
        run(&b, 30 * USEC_PER_SEC);
        seen = loop_now(b.loop);
        fake_gce_metadata_set_preempted(b.fake, true);
        run(&b, 20 * USEC_PER_MSEC); /* it hangs at the server: told at once */
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_NOTICE);
        assert_string_equal(PREEMPTED->notice->id, INSTANCE "-preempted-boot-1");
        assert_int_equal(PREEMPTED->notice->kind, NOTICE_SPOT);
        assert_string_equal(PREEMPTED->notice->action, "stop");
        deadline = PREEMPTED->notice->deadline_usec;
        assert_in_range(deadline, seen + 29 * USEC_PER_SEC, seen + 31 * USEC_PER_SEC);
        run(&b, 3 * USEC_PER_MINUTE);
        assert_true(PREEMPTED->notice->deadline_usec == deadline);
        assert_false(notice_source_may_cancel(b.source, PREEMPTED->notice, deadline + 9 * USEC_PER_MINUTE));
        assert_true(notice_source_may_cancel(b.source, PREEMPTED->notice, deadline + 11 * USEC_PER_MINUTE));
        bench_done(&b);
}

TEST_CASE(test_maintenance) {
        Bench b;

        bench_init(&b, &(FakeGceMetadataOptions){ .gpu = true });
        run(&b, 10 * USEC_PER_SEC);
        fake_gce_metadata_set_maintenance(b.fake, "TERMINATE_ON_HOST_MAINTENANCE");
        run(&b, 20 * USEC_PER_MSEC);
        assert_int_equal(EVENT->result, NOTICE_POLL_NOTICE);
        assert_int_equal(EVENT->notice->kind, NOTICE_MAINTENANCE);
        assert_int_equal(EVENT->notice->certainty, NOTICE_CERTAIN);
        assert_string_equal(EVENT->notice->action, "stop");
        assert_true(notice_source_may_cancel(b.source, EVENT->notice, 0));
        assert_false(notice_source_announces(b.source, "instance/upcoming-maintenance", EVENT->notice));
        fake_gce_metadata_set_maintenance(b.fake, "MIGRATE_ON_HOST_MAINTENANCE");
        run(&b, 3 * USEC_PER_SEC);
        assert_int_equal(EVENT->notice->certainty, NOTICE_ADVISORY);
        fake_gce_metadata_set_maintenance(b.fake, "NONE");
        run(&b, 3 * USEC_PER_SEC);
        assert_int_equal(EVENT->result, NOTICE_POLL_NONE);
        fake_gce_metadata_set_maintenance(b.fake, "SOMETHING_NEW");
        run(&b, 3 * USEC_PER_SEC);
        assert_int_equal(EVENT->result, NOTICE_POLL_UNKNOWN);
        bench_done(&b);
}

TEST_CASE(test_upcoming) {
        usec_t begin;
        Bench b;

        bench_init(&b, NULL);
        run(&b, 10 * USEC_PER_SEC);
        begin = usec_add(loop_wall(b.loop), 7 * USEC_PER_DAY);
        begin -= begin % USEC_PER_SEC;
        fake_gce_metadata_set_upcoming(b.fake, "SCHEDULED", "PENDING", begin, begin + 4 * USEC_PER_HOUR, true);
        run(&b, 70 * USEC_PER_SEC);
        assert_int_equal(UPCOMING->result, NOTICE_POLL_NOTICE);
        assert_true(UPCOMING->notice->announced_usec == begin);
        assert_in_range(UPCOMING->notice->deadline_usec, loop_from_wall(b.loop, begin) - USEC_PER_SEC,
                        loop_from_wall(b.loop, begin) + USEC_PER_SEC);
        /* 503 takes back nothing that is known. */
        fake_gce_metadata_restart(b.fake, 5 * USEC_PER_SEC);
        run(&b, USEC_PER_SEC);
        assert_int_equal(UPCOMING->result, NOTICE_POLL_UNKNOWN);
        run(&b, 2 * USEC_PER_MINUTE);
        assert_int_equal(UPCOMING->result, NOTICE_POLL_NOTICE);
        fake_gce_metadata_withdraw(b.fake);
        run(&b, 2 * USEC_PER_MINUTE);
        assert_int_equal(UPCOMING->result, NOTICE_POLL_NONE);
        bench_done(&b);
}

TEST_CASE(test_stop) {
        Bench b;

        bench_init(&b, &(FakeGceMetadataOptions){ .graceful_shutdown = true });
        run(&b, 10 * USEC_PER_SEC);
        fake_gce_metadata_set_stop_state(b.fake, "PENDING_STOP", 600);
        run(&b, 20 * USEC_PER_MSEC);
        assert_int_equal(STOP->result, NOTICE_POLL_NOTICE);
        assert_string_equal(STOP->notice->action, "stop");
        assert_true(notice_source_announces(b.source, "instance/shutdown-details/stop-state", STOP->notice));
        bench_done(&b);
}

TEST_CASE(test_upcoming_texts) {
        static const struct {
                const char *body;
                int r;
        } rows[] = {
                { "{}", 0 },
                { "NONE", 0 },
                { "NONE\n", 0 },
                { "\"NONE\"", 0 },
                { "{\"error\":\"no notifications have been received yet, try again later\"}", 0 },
                { "{\"window_start_time\":\"2027-01-21T09:00:00Z\"}", 1 },
                { "{\"type\":\"SCHEDULED\",\"windowStartTime\":\"2027-01-21T09:00:00Z\"}", 1 },
                { "{\"type\":\"SCHEDULED\"}", -EBADMSG },
                { "{\"window_start_time\":\"soon\"}", -EBADMSG },
                { "{\"window_start_time\":7}", -EBADMSG },
                { "[]", -EBADMSG },
                { "", -EBADMSG },
                { "<html>", -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *why = NULL;
                usec_t begin = 0;

                print_message("'%s'\n", rows[i].body);
                assert_int_equal(notice_gce_parse_upcoming(rows[i].body, strlen(rows[i].body), &begin, &why), rows[i].r);
                assert_true(rows[i].r >= 0 || why);
        }
}

/* -- any answer ----------------------------------------------------------------------------------- */

/* A server that gives one answer to one path, and nothing to the other feeds. */
typedef struct Server {
        const char *path; /* below instance/ */
        unsigned status;
        const char *body;
        const char *flavor, *etag; /* NULL: no such header */
        unsigned n;                /* requests of that path */
        char query[160];           /* of the last one */
} Server;

static void on_server(HttpExchange *x, void *userdata) {
        static const struct {
                const char *path, *body;
        } usual[] = { { "id", INSTANCE "\n" }, { "name", "n1\n" }, { "preempted", "FALSE" }, { "maintenance-event", "NONE" },
                      { "upcoming-maintenance", "NONE" }, { "shutdown-details/stop-state", "ENABLED" } };
        const char *path = startswith(x->path, "/computeMetadata/v1/instance/");
        HttpHeader headers[2];
        Server *s = userdata;
        size_t n = 0;

        assert_non_null(path);
        assert_string_equal(strempty(http_header_find(x->headers, x->n_headers, "Metadata-Flavor")), "Google");
        if (streq(path, s->path)) {
                s->n++;
                (void) snprintf(s->query, sizeof(s->query), "%s", x->query);
                if (s->flavor)
                        headers[n++] = (HttpHeader){ "Metadata-Flavor", s->flavor };
                if (s->etag)
                        headers[n++] = (HttpHeader){ "ETag", s->etag };
                x->ops->reply(x, s->status, headers, n, s->body, strlen(s->body));
                return;
        }
        headers[n++] = (HttpHeader){ "Metadata-Flavor", "Google" };
        for (size_t i = 0; i < ELEMENTSOF(usual); i++)
                if (streq(path, usual[i].path)) {
                        x->ops->reply(x, 200, headers, n, usual[i].body, strlen(usual[i].body));
                        return;
                }
        fail_msg("a request of %s", path);
}

/* The last look of a feed, and its notice: id, kind, action, how certain, seconds until its deadline and its announced time. */
static char *print_side(const Bench *b, const Side *x) {
        const Notice *n = x->notice;
        _cleanup_strbuf_ StrBuf t = { 0 };

        if (x->result == NOTICE_POLL_UNKNOWN)
                return strf("unknown: %s", x->why);
        if (!n)
                return strdup("none");
        strbuf_addf(&t, "%s %s %s%s", n->id, notice_kind_to_string(n->kind), n->action, n->certainty == NOTICE_ADVISORY ? " advice" : "");
        if (n->deadline_usec != USEC_INFINITY)
                strbuf_addf(&t, " deadline %+lld", ((long long) loop_to_wall(b->loop, n->deadline_usec) - (long long) START + 500000) / 1000000);
        if (n->announced_usec > 0)
                strbuf_addf(&t, " announced %+lld", ((long long) n->announced_usec - (long long) START + 500000) / 1000000);
        if (n->not_before_usec > 0)
                strbuf_addf(&t, " from %+lld", ((long long) n->not_before_usec - (long long) START) / 1000000);
        strbuf_add(&t, n->estimated ? " estimated" : "");
        return strbuf_steal(&t);
}

static void serve(Bench *b, Server *s) {
        assert_return_code(http_inproc_route(b->transport, ENDPOINT, on_server, s), 0);
}

#define HEX64 "0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCD"
#define ID20 "12345678901234567890"
#define NAME63 "abcdefghijklmnopqrstuvwxyz-0123456789-abcdefghijklmnopqrstuvwxy"
#define GOOGLE .flavor = "Google"

TEST_CASE(test_answers) {
        static const char stranger[] = "unknown: what answers is no metadata server of Compute Engine: it does not say Metadata-Flavor: Google";
        static const char preempted[] = INSTANCE "-preempted-boot-1 spot stop deadline +30 announced +30 estimated";
        static const struct {
                Server server;
                const char *expected;
                const char *etag; /* of the next request */
                bool is_slow;     /* the next request follows after a minute or a backoff, not after a poll */
        } rows[] = {
                { { "preempted", 200, "FALSE", GOOGLE }, "none", "0", false },
                { { "preempted", 200, "FALSE \r\n", GOOGLE, .etag = "ab" }, "none", "ab", false },
                { { "preempted", 200, "TRUE", GOOGLE }, preempted, "0", false },
                { { "preempted", 200, "TRUE\n", GOOGLE, .etag = HEX64 }, preempted, HEX64, false },
                { { "preempted", 200, "TRUE", GOOGLE, .etag = HEX64 "0" }, preempted, "0", false },
                { { "preempted", 200, "TRUE", GOOGLE, .etag = "x&y=1" }, preempted, "0", false },
                { { "preempted", 200, "TRUE", GOOGLE, .etag = "" }, preempted, "0", false },
                { { "preempted", 200, "TRUEST", GOOGLE }, "unknown: instance/preempted says neither TRUE nor FALSE", "0", true },
                { { "preempted", 200, "", GOOGLE }, "unknown: instance/preempted says neither TRUE nor FALSE", "0", true },
                { { "preempted", 200, "TRUE" }, stranger, "0", true },
                { { "preempted", 200, "TRUE", .flavor = "Goggle" }, "unknown: HTTP 200", "0", true },
                { { "preempted", 404, "", GOOGLE, .etag = "ab" },
                  "unknown: there is no instance/preempted: GKE's metadata server for pods hides it; "
                  "the agent has to run on the host's network", "0", true },
                { { "preempted", 503, "", GOOGLE }, "unknown: HTTP 503", "0", true },
                { { "maintenance-event", 200, "NONE", GOOGLE }, "none", "0", false },
                { { "maintenance-event", 200, "MIGRATE_ON_HOST_MAINTENANCE", GOOGLE, .etag = "e1" },
                  INSTANCE "-maintenance-e1 maintenance migrate advice", "e1", false },
                { { "maintenance-event", 200, "TERMINATE_ON_HOST_MAINTENANCE\n", GOOGLE, .etag = "e2" },
                  INSTANCE "-maintenance-e2 maintenance stop", "e2", false },
                { { "maintenance-event", 200, "none", GOOGLE, .etag = "e2" },
                  "unknown: instance/maintenance-event says nothing that is known", "0", true },
                { { "maintenance-event", 404, "", GOOGLE },
                  "unknown: there is no instance/maintenance-event: GKE's metadata server for pods hides it; "
                  "the agent has to run on the host's network", "0",
                  true },
                { { "upcoming-maintenance", 200, "{\"window_start_time\":\"2027-01-15T09:00:00Z\"}", GOOGLE, .etag = "e3" },
                  INSTANCE "-upcoming-2027-01-15T09:00:00Z maintenance maintenance deadline +3600 announced +3600 "
                          "from +3600 estimated", "e3", false },
                { { "upcoming-maintenance", 200, "{\"error\":\"no\",\"window_start_time\":\"2027-01-15T09:00:00Z\"}", GOOGLE }, "none", "0", false },
                { { "upcoming-maintenance", 200, "{\"window_start_time\":7}", GOOGLE },
                  "unknown: instance/upcoming-maintenance has a window without a begin that can be read", "0", true },
                { { "upcoming-maintenance", 200, "7", GOOGLE },
                  "unknown: instance/upcoming-maintenance is no window, and does not say that there is none", "0", true },
                { { "upcoming-maintenance", 200, "{", GOOGLE }, "unknown: instance/upcoming-maintenance is no JSON", "0", true },
                { { "upcoming-maintenance", 404, "", GOOGLE, .etag = "e3" }, "none", "0", true },
                { { "upcoming-maintenance", 503, "", GOOGLE }, "none", "0", true },
                { { "upcoming-maintenance", 500, "", GOOGLE }, "unknown: HTTP 500", "0", true },
                { { "upcoming-maintenance", 404, "" }, stranger, "0", true },
                { { "shutdown-details/stop-state", 200, "PENDING_STOP", GOOGLE, .etag = "e4" }, INSTANCE "-stop-e4 maintenance stop", "e4", false },
                { { "shutdown-details/stop-state", 200, "STOPPING_SOMEHOW", GOOGLE }, "none", "0", false },
                { { "shutdown-details/stop-state", 200, HEX64, GOOGLE }, "none", "0", false },
                { { "shutdown-details/stop-state", 200, HEX64 "0", GOOGLE }, "unknown: instance/shutdown-details/stop-state is no word", "0", true },
                { { "shutdown-details/stop-state", 200, "", GOOGLE }, "unknown: instance/shutdown-details/stop-state is no word", "0", true },
                { { "shutdown-details/stop-state", 404, "", GOOGLE }, "none", "0", true },
                { { "shutdown-details/stop-state", 503, "", GOOGLE }, "unknown: HTTP 503", "0", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *feed = strf("instance/%s", rows[i].server.path), *text = NULL, *query = NULL;
                Server s = rows[i].server;
                Bench b;

                print_message("%s: %u %s\n", s.path, s.status, s.body);
                bench_init(&b, NULL);
                serve(&b, &s);
                run(&b, 61 * USEC_PER_SEC);
                text = print_side(&b, side(&b, feed));
                assert_string_equal(text, rows[i].expected);
                query = strf("wait_for_change=true&last_etag=%s&timeout_sec=60%s", rows[i].etag,
                             streq(s.path, "upcoming-maintenance") ? "&alt=json" : "");
                assert_string_equal(s.query, query);
                if (rows[i].is_slow)
                        assert_in_range(s.n, 1, 7);
                else
                        assert_in_range(s.n, 29, 31);
                for (size_t k = 0; k < ELEMENTSOF(b.sides); k++)
                        if (b.sides[k].feed && !streq(b.sides[k].feed, feed))
                                assert_int_equal(b.sides[k].result, NOTICE_POLL_NONE);
                bench_done(&b);
        }
}

/* A feed that fails, answers, and fails again does in the second round what it did in the first. A feed that a VM does not have
 * waits for no version of it. */
TEST_CASE(test_fails_again) {
        unsigned n[2] = { 0, 0 };
        Server s = { "upcoming-maintenance", 200, "NONE", GOOGLE, .etag = "ab" };
        Bench b;

        bench_init(&b, NULL);
        serve(&b, &s);
        run(&b, 10 * USEC_PER_SEC);
        for (unsigned round = 0; round < 2; round++) {
                s.status = 500;
                run(&b, 4 * USEC_PER_SEC);
                assert_int_equal(UPCOMING->result, NOTICE_POLL_UNKNOWN);
                n[round] = s.n;
                run(&b, 20 * USEC_PER_SEC);
                n[round] = s.n - n[round];
                run(&b, 10 * USEC_PER_MINUTE);
                s.status = 200;
                run(&b, 2 * USEC_PER_MINUTE);
                assert_int_equal(UPCOMING->result, NOTICE_POLL_NONE);
                assert_non_null(strstr(s.query, "last_etag=ab"));
        }
        print_message("%u and %u requests\n", n[0], n[1]);
        assert_in_range(n[0], 2, 4);
        assert_in_range(n[1], n[0] - 1, n[0] + 1);
        s.status = 404;
        run(&b, 10 * USEC_PER_SEC);
        assert_int_equal(UPCOMING->result, NOTICE_POLL_NONE);
        run(&b, 2 * USEC_PER_MINUTE);
        assert_non_null(strstr(s.query, "last_etag=0"));
        bench_done(&b);
}

/* Somebody doubts that this is the Node's VM: id and name are asked for again, once a minute at most. The same answer changes nothing,
 * and another one has all feeds read anew. */
TEST_CASE(test_name_is_doubted) {
        static const char provider_id[] = "gce://fake-project/us-central1-a/n1";
        Server s = { "name", 200, "n1", GOOGLE };
        const char *name;
        size_t looks;
        Bench b;

        bench_init(&b, NULL);
        serve(&b, &s);
        run(&b, 30 * USEC_PER_SEC);
        assert_int_equal(s.n, 1);
        b.source->ops->ask_identity(b.source); /* half a minute after the last question */
        run(&b, 35 * USEC_PER_SEC);
        assert_int_equal(s.n, 1);
        looks = PREEMPTED->n_looks;
        for (unsigned i = 0; i < 30; i++) {
                b.source->ops->ask_identity(b.source);
                run(&b, USEC_PER_SEC);
        }
        assert_int_equal(s.n, 2);
        assert_int_equal(PREEMPTED->n_looks, looks + 15);
        s.body = "other";
        run(&b, 45 * USEC_PER_SEC);
        assert_int_equal(s.n, 2); /* nobody doubts it */
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_SAME);
        looks = PREEMPTED->n_looks;
        b.source->ops->ask_identity(b.source);
        run(&b, USEC_PER_SEC / 10);
        assert_int_equal(s.n, 3);
        assert_in_range(PREEMPTED->n_looks, looks + 1, looks + 2);
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_OTHER);
        assert_string_equal(name, "other");
        s.body = "n1"; /* a shorter one */
        run(&b, USEC_PER_MINUTE);
        b.source->ops->ask_identity(b.source);
        run(&b, USEC_PER_SEC);
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_SAME);
        assert_string_equal(name, "n1");
        s.body = "n2"; /* one as long */
        run(&b, USEC_PER_MINUTE);
        b.source->ops->ask_identity(b.source);
        run(&b, USEC_PER_SEC);
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_OTHER);

        print_message("a name that is not told any more is none that changes\n");
        s.status = 500;
        run(&b, USEC_PER_MINUTE);
        b.source->ops->ask_identity(b.source);
        run(&b, 10 * USEC_PER_MINUTE);
        assert_int_equal(s.n, 6);
        assert_int_equal(notice_source_identity(b.source, provider_id, &name), NOTICE_IDENTITY_OTHER);
        bench_done(&b);
}

/* A notice is of the VM whose id begins its own. */
TEST_CASE(test_is_of_machine) {
        static const struct {
                const char *id, *source;
                bool is_of;
        } rows[] = {
                { INSTANCE "-preempted-boot-0", "gce", true },   { INSTANCE "1-preempted-boot-0", "gce", false },
                { INSTANCE, "gce", false },                      { "45200-preempted-boot-0", "gce", false },
                { INSTANCE "-preempted-boot-0", "ec2", false },
        };
        Bench b;

        bench_init(&b, NULL);
        for (unsigned known = 0; known <= 1; known++) {
                for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                        const Notice n = { .id = (char *) rows[i].id, .source = (char *) rows[i].source };

                        assert_int_equal(notice_source_is_of_machine(b.source, &n), known && rows[i].is_of);
                }
                run(&b, 10 * USEC_PER_SEC);
        }
        bench_done(&b);
}

/* A request that cannot begin is no answer, and the next one follows: for the feeds, and for what VM this is. */
TEST_CASE(test_cannot_ask) {
        for (unsigned at_start = 0; at_start <= 1; at_start++) {
                HttpTransport refusing = REFUSING_TRANSPORT;
                Bench b;

                bench_init(&b, NULL);
                if (!at_start)
                        run(&b, 10 * USEC_PER_SEC);
                fake_gce_metadata_restart(b.fake, 1); /* what waits there ends */
                b.env.transport = &refusing;
                run(&b, 2 * USEC_PER_MINUTE);
                assert_int_equal(PREEMPTED->result, NOTICE_POLL_UNKNOWN);
                assert_string_equal(PREEMPTED->why, "out of memory");
                b.env.transport = b.transport;
                run(&b, 2 * USEC_PER_MINUTE);
                assert_int_equal(PREEMPTED->result, NOTICE_POLL_NONE);
                bench_done(&b);
        }
}

/* Which VM it is: without a number there is no feed; without a name the notices count, and the name is asked for again. */
TEST_CASE(test_who) {
        static const char provider_id[] = "gce://fake-project/us-central1-a/n1";
        static const struct {
                Server server;
                const char *why;      /* no notice can be seen; NULL: they can */
                const char *id;       /* in the id of a notice */
                const char *name;     /* "": not known */
                bool is_asked_again;
        } rows[] = {
                { { "id", 200, INSTANCE, GOOGLE }, NULL, INSTANCE, "n1", false },
                { { "id", 200, ID20 " \r\n", GOOGLE }, NULL, ID20, "n1", false },
                { { "id", 200, ID20 "1", GOOGLE }, "instance/id is no number", NULL, "", true },
                { { "id", 200, "", GOOGLE }, "instance/id is no number", NULL, "", true },
                { { "id", 200, "12 34", GOOGLE }, "instance/id is no number", NULL, "", true },
                { { "id", 200, "12x", GOOGLE }, "instance/id is no number", NULL, "", true },
                { { "id", 404, INSTANCE, GOOGLE }, "instance/id is no number", NULL, "", true },
                { { "id", 200, INSTANCE }, "does not say Metadata-Flavor: Google", NULL, "", true },
                { { "name", 200, "n2\n", GOOGLE }, NULL, INSTANCE, "n2", false },
                { { "name", 200, NAME63, GOOGLE }, NULL, INSTANCE, NAME63, false },
                { { "name", 200, NAME63 "z", GOOGLE }, NULL, INSTANCE, "", true },
                { { "name", 200, "", GOOGLE }, NULL, INSTANCE, "", true },
                { { "name", 200, "n1 n2", GOOGLE }, NULL, INSTANCE, "", true },
                { { "name", 200, "N1", GOOGLE }, NULL, INSTANCE, "", true },
                { { "name", 500, "n1", GOOGLE }, NULL, INSTANCE, "", true },
                { { "name", 200, "n1" }, NULL, INSTANCE, "", true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Server s = rows[i].server, preempted = { "preempted", 200, "TRUE", GOOGLE };
                const char *name = NULL;
                NoticeIdentity identity;
                Bench b;

                print_message("%s: %u '%s'\n", s.path, s.status, s.body);
                bench_init(&b, NULL);
                serve(&b, &s);
                run(&b, 10 * USEC_PER_MINUTE);
                identity = notice_source_identity(b.source, provider_id, &name);
                assert_string_equal(strempty(name), rows[i].name);
                assert_int_equal(identity, !rows[i].name[0]               ? NOTICE_IDENTITY_UNKNOWN
                                           : streq(rows[i].name, "n1") ? NOTICE_IDENTITY_SAME
                                                                          : NOTICE_IDENTITY_OTHER);
                if (rows[i].is_asked_again)
                        assert_in_range(s.n, 10, 20);
                else
                        assert_int_equal(s.n, 1);
                if (rows[i].why) {
                        assert_int_equal(PREEMPTED->result, NOTICE_POLL_UNKNOWN);
                        assert_non_null(strstr(PREEMPTED->why, rows[i].why));
                        assert_int_equal(EVENT->n_looks, 0);
                } else {
                        _cleanup_free_ char *id = strf("%s-preempted-boot-1", rows[i].id);

                        assert_int_equal(PREEMPTED->result, NOTICE_POLL_NONE);
                        serve(&b, &preempted);
                        run(&b, 10 * USEC_PER_SEC);
                        assert_string_equal(PREEMPTED->notice->id, id);
                }
                bench_done(&b);
        }
}

/* -- trouble -------------------------------------------------------------------------------------- */

TEST_CASE(test_strangers) {
        Bench b;

        /* Somebody else answers at that address. */
        bench_init(&b, NULL);
        fake_gce_metadata_set_stranger(b.fake, true);
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(PREEMPTED->why, "does not say Metadata-Flavor: Google"));
        fake_gce_metadata_set_stranger(b.fake, false);
        notice_source_kick(b.source);
        run(&b, 3 * USEC_PER_SEC);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_NONE);
        /* A notice, and then a stranger: nothing is taken back. */
        fake_gce_metadata_set_preempted(b.fake, true);
        run(&b, USEC_PER_SEC);
        fake_gce_metadata_set_stranger(b.fake, true);
        run(&b, 5 * USEC_PER_MINUTE);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_UNKNOWN);
        bench_done(&b);

        /* A pod on GKE, without the host's network. */
        bench_init(&b, NULL);
        fake_gce_metadata_intercept(b.fake, true);
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(PREEMPTED->why, "the host's network"));
        bench_done(&b);
}

/* A server that lets nobody wait, or fails: it is asked no oftener than each poll, and less and less often. */
TEST_CASE(test_pace) {
        size_t gets;
        Bench b;

        bench_init(&b, NULL);
        run(&b, 10 * USEC_PER_SEC);
        fake_gce_metadata_garble(b.fake, FAKE_GCE_ALL, UINT_MAX, "FALSE");
        fake_gce_metadata_restart(b.fake, 1);
        run(&b, 2 * USEC_PER_MINUTE);
        gets = fake_gce_metadata_n_gets(b.fake);
        run(&b, 10 * USEC_PER_MINUTE);
        /* preempted and stop-state, which find that it says nothing: 300 times; the other two, to which it makes no sense: once a
         * minute each, or somewhat oftener. */
        assert_in_range(fake_gce_metadata_n_gets(b.fake) - gets, 600, 640);
        fake_gce_metadata_garble(b.fake, FAKE_GCE_ALL, 0, NULL);
        fake_gce_metadata_fail(b.fake, FAKE_GCE_ALL, UINT_MAX, 500);
        run(&b, 5 * USEC_PER_MINUTE);
        gets = fake_gce_metadata_n_gets(b.fake);
        run(&b, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_gce_metadata_n_gets(b.fake) - gets, 30, 60);
        fake_gce_metadata_fail(b.fake, FAKE_GCE_ALL, 0, 0);
        notice_source_kick(b.source); /* the network is back: it does not wait out its backoff */
        run(&b, USEC_PER_SEC);
        assert_int_equal(PREEMPTED->result, NOTICE_POLL_NONE);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_calm),
                cmocka_unit_test(test_identity),
                cmocka_unit_test(test_name_comes_late),
                cmocka_unit_test(test_nothing_planned),
                cmocka_unit_test(test_preempted),
                cmocka_unit_test(test_maintenance),
                cmocka_unit_test(test_upcoming),
                cmocka_unit_test(test_stop),
                cmocka_unit_test(test_upcoming_texts),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_who),
                cmocka_unit_test(test_fails_again),
                cmocka_unit_test(test_cannot_ask),
                cmocka_unit_test(test_name_is_doubted),
                cmocka_unit_test(test_is_of_machine),
                cmocka_unit_test(test_strangers),
                cmocka_unit_test(test_pace),
        };
        return cmocka_run_group_tests_name("notice-gce", tests, NULL, NULL);
}
