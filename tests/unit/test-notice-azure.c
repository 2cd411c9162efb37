/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "fake-azure-metadata.h"
#include "http-inproc.h"
#include "log.h"
#include "notice-azure.h"
#include "refusing-transport.h"
#include "string-util.h"
#include "strv.h"

#define ENDPOINT "http://169.254.169.254"
#define START (UINT64_C(1800000000) * USEC_PER_SEC) /* Fri, 15 Jan 2027 08:00:00 GMT */
#define POLL (2 * USEC_PER_SEC)
#define VM "pool_7"

/* The source against the metadata of one VM and the events of its scale set, on one virtual time. */

typedef struct Bench {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        Log *log;
        HttpTransport *transport;
        FakeAzureEvents *events;
        FakeAzureMetadata *fake;
        Env env;
        NoticeSource *source;
        size_t n_looks, n;
        unsigned n_more; /* log lines about too many events */
        NoticePollResult result;
        Notice *notices[NOTICES_OF_FEED_MAX];
        char why[512], said[512];
} Bench;

static void forget(Bench *b) {
        for (size_t i = 0; i < b->n; i++)
                notice_free(b->notices[i]);
        b->n = 0;
}

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        Bench *b = userdata;

        b->n_looks++;
        b->result = look->result;
        (void) snprintf(b->why, sizeof(b->why), "%s", strempty(look->why));
        forget(b);
        for (size_t i = 0; i < look->n_notices; i++) {
                assert_return_code(notice_copy(look->notices[i], &b->notices[i]), 0);
                assert_true(notice_source_announces(s, look->feed, b->notices[i]));
        }
        b->n = look->n_notices;
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields, size_t n_fields, void *userdata) {
        Bench *b = userdata;

        (void) snprintf(b->said, sizeof(b->said), "%s", text);
        b->n_more += startswith(text, "Azure has scheduled more events") != NULL;
}

static void bench_init(Bench *b, usec_t first_call_usec) {
        const FakeAzureMetadataOptions options = { .name = VM, .scale_set = "pool", .instance = "7", .first_call_usec = first_call_usec };

        *b = (Bench){ 0 };
        assert_return_code(virtual_time_new(START, &b->time), 0);
        assert_return_code(loop_new_virtual(b->time, &b->loop), 0);
        assert_return_code(random_new(1, &b->random), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &b->log), 0);
        log_set_hook(b->log, on_log, b);
        assert_return_code(http_inproc_new(b->loop, NULL, NULL, &b->transport), 0);
        b->events = fake_azure_events_new(b->loop);
        b->fake = fake_azure_metadata_new(b->loop, b->events, &options);
        assert_return_code(http_inproc_route(b->transport, ENDPOINT, fake_azure_metadata_handle, b->fake), 0);
        b->env = (Env){ .loop = b->loop, .random = b->random, .log = b->log, .transport = b->transport, .boot_id = "b", .version = "0" };
        assert_return_code(
                notice_azure_new(&b->env, &(NoticeAzureOptions){ .endpoint = ENDPOINT, .poll_usec = POLL }, on_look, b, &b->source), 0);
        b->source->ops->start(b->source);
}

static void bench_done(Bench *b) {
        notice_source_free(b->source);
        http_transport_free(b->transport);
        fake_azure_metadata_free(b->fake);
        fake_azure_events_free(b->events);
        log_free(b->log);
        random_free(b->random);
        loop_free(b->loop);
        virtual_time_free(b->time);
        forget(b);
}

static void run(Bench *b, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(b->time), usec);

        while (virtual_time_step(b->time, until) > 0)
                ;
        assert_int_equal(assert_awake(b->loop, b->source->ops->next_wakeup, b->source), 1);
}

/* -- the document ------------------------------------------------------------------------------- */

/* Prints a line for each event: id, kind, action, how certain, its time (seconds after START), how it may begin early,
 * and the VMs that it names beside this one. */
static char *print_events(const char *body) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        ScheduledEvent *events = (ScheduledEvent *) &b; /* what a failure leaves is nothing */
        const char *why = NULL;
        bool more = true;
        size_t n = 7;
        int r;

        r = azure_events_parse(body, strlen(body), VM, 3, &events, &n, &more, &why);
        if (r < 0) {
                assert_int_equal(r, -EBADMSG);
                assert_null(events);
                assert_int_equal(n, 0);
                assert_false(more);
                return strf("%s\n", why);
        }
        for (size_t i = 0; i < n; i++) {
                const ScheduledEvent *e = &events[i];

                strbuf_addf(&b, "%s %s %s%s", e->id, notice_kind_to_string(e->kind), e->action, e->advisory ? " advice" : "");
                if (e->not_before_usec > 0)
                        strbuf_addf(&b, " +%llu", (unsigned long long) ((e->not_before_usec - START) / USEC_PER_SEC));
                strbuf_add(&b, e->early == NOTICE_EARLY_ACK ? " ack" : e->early == NOTICE_EARLY_NEVER ? "" : " ?");
                STRV_FOREACH (name, e->resources)
                        strbuf_addf(&b, " [%s]", *name);
                strbuf_add(&b, "\n");
        }
        if (more)
                strbuf_add(&b, "more\n");
        scheduled_events_free(events, n);
        return MUST(strbuf_steal(&b));
}

#define ID64 "0123456789012345678901234567890123456789012345678901234567890123"
#define NAME80 ID64 "0123456789012345"
#define EVENT(id, type, status, resources, more) \
        "{\"EventId\":\"" id "\",\"EventType\":\"" type "\",\"EventStatus\":\"" status "\",\"Resources\":[" resources "]" more "}"
#define AT(time) ",\"NotBefore\":\"Fri, 15 Jan 2027 " time " GMT\""
#define OWN "\"pool_7\""

TEST_CASE(test_documents) {
        static const char bad[] = "the document has an event without id, type, status or resources that can be read\n";
        static const char untimed[] = "the document has an event of this VM without a NotBefore that can be read\n";
        static const struct {
                const char *what, *events, *expected;
        } rows[] = {
                { "no event", "", "" },
                { "one reboot", EVENT("a", "Reboot", "Scheduled", OWN, AT("08:15:00")), "a maintenance reboot +900 ack\n" },
                { "a reboot that has started", EVENT("a", "Reboot", "Started", OWN, ",\"NotBefore\":\"\""), "a maintenance reboot ack\n" },
                { "a started one whose time can be read", EVENT("a", "Reboot", "Started", OWN, AT("08:15:00")), "a maintenance reboot ack\n" },
                { "a started one without a time", EVENT("a", "Reboot", "Started", OWN, ""), "a maintenance reboot ack\n" },
                { "a scheduled one without a time", EVENT("a", "Reboot", "Scheduled", OWN, ""), untimed },
                { "a time that is none", EVENT("a", "Reboot", "Scheduled", OWN, ",\"NotBefore\":\"soon\""), untimed },
                { "a reboot of several VMs", EVENT("a", "Reboot", "Scheduled", "\"pool_3\"," OWN ",\"pool_5\"", AT("08:15:00")),
                  "a maintenance reboot +900 [pool_3] [pool_7] [pool_5]\n" },
                { "a reboot of the same VM twice", EVENT("a", "Reboot", "Scheduled", OWN ",\"POOL_7\"", AT("08:15:00")),
                  "a maintenance reboot +900 ack\n" },
                { "other VMs alone", EVENT("a", "Reboot", "Scheduled", "\"pool_3\",\"pool_70\"", AT("08:15:00")), "" },
                { "other VMs, and no time", EVENT("a", "Reboot", "Scheduled", "\"pool_3\"", ""), "" },
                { "no VM", EVENT("a", "Reboot", "Scheduled", "", AT("08:15:00")), "" },
                { "a name that is none", EVENT("a", "Reboot", "Scheduled", OWN ",\"pool 3\"", AT("08:15:00")),
                  "a maintenance reboot +900 [pool_7] [" NOTICE_RESOURCES_TOO_MANY "]\n" },
                { "an empty name", EVENT("a", "Reboot", "Scheduled", OWN ",\"\"", AT("08:15:00")),
                  "a maintenance reboot +900 [pool_7] [" NOTICE_RESOURCES_TOO_MANY "]\n" },
                { "a name that is a number", EVENT("a", "Reboot", "Scheduled", OWN ",7", AT("08:15:00")),
                  "a maintenance reboot +900 [pool_7] [" NOTICE_RESOURCES_TOO_MANY "]\n" },
                { "the longest name", EVENT("a", "Reboot", "Scheduled", OWN ",\"" NAME80 "\"", AT("08:15:00")),
                  "a maintenance reboot +900 [pool_7] [" NAME80 "]\n" },
                { "a longer name", EVENT("a", "Reboot", "Scheduled", OWN ",\"" NAME80 "x\"", AT("08:15:00")),
                  "a maintenance reboot +900 [pool_7] [" NOTICE_RESOURCES_TOO_MANY "]\n" },
                { "types", EVENT("a", "Preempt", "Scheduled", OWN, AT("08:00:30")) "," EVENT("b", "Terminate", "Scheduled", OWN, AT("08:00:40")) ","
                                   EVENT("c", "Redeploy", "Scheduled", OWN, AT("08:00:50")),
                  "a spot stop +30\nb scale-in terminate +40\nc maintenance redeploy +50\n" },
                { "more types", EVENT("a", "Freeze", "Scheduled", OWN, AT("08:00:30")) "," EVENT("b", "Relocate", "Scheduled", OWN, AT("08:00:40")),
                  "a maintenance freeze advice +30\nb maintenance maintenance advice +40\n" },
                { "an id twice", EVENT("a", "Freeze", "Scheduled", OWN, AT("08:00:30")) "," EVENT("a", "Reboot", "Scheduled", OWN, AT("08:00:40")),
                  "a maintenance freeze advice +30\n" },
                { "as many as are read",
                  EVENT("a", "Freeze", "Started", OWN, "") "," EVENT("b", "Freeze", "Started", OWN, "") "," EVENT("c", "Freeze", "Started", OWN, ""),
                  "a maintenance freeze advice\nb maintenance freeze advice\nc maintenance freeze advice\n" },
                { "one more, and one of another VM",
                  EVENT("a", "Freeze", "Started", OWN, "") "," EVENT("b", "Freeze", "Started", OWN, "") "," EVENT("c",
                          "Freeze", "Started", OWN, "") ","
                          EVENT("d", "Freeze", "Started", OWN, "") "," EVENT("e", "Freeze", "Started", "\"pool_3\"", ""),
                  "a maintenance freeze advice\nb maintenance freeze advice\nc maintenance freeze advice\nmore\n" },
                { "the longest id", EVENT(ID64, "Freeze", "Started", OWN, ""), ID64 " maintenance freeze advice\n" },
                { "a longer id", EVENT(ID64 "4", "Freeze", "Started", OWN, ""), bad },
                { "an empty id", EVENT("", "Freeze", "Started", OWN, ""), bad },
                { "an id that would end its string", EVENT("a\\\"", "Freeze", "Started", OWN, ""), bad },
                { "no id", "{\"EventType\":\"Freeze\",\"EventStatus\":\"Started\",\"Resources\":[]}", bad },
                { "no type", "{\"EventId\":\"a\",\"EventStatus\":\"Started\",\"Resources\":[]}", bad },
                { "no status", "{\"EventId\":\"a\",\"EventType\":\"Freeze\",\"Resources\":[]}", bad },
                { "no resources", "{\"EventId\":\"a\",\"EventType\":\"Freeze\",\"EventStatus\":\"Started\"}", bad },
                { "a bad one behind a good one", EVENT("a", "Freeze", "Started", OWN, "") ",7", bad },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *body = strf("{\"DocumentIncarnation\":1,\"Events\":[%s]}", rows[i].events);
                _cleanup_free_ char *text = print_events(body);

                print_message("%s\n", rows[i].what);
                assert_string_equal(text, rows[i].expected);
        }
}

/* A list that fills its places has the last one for those that nobody knows. */
TEST_CASE(test_many_resources) {
        for (size_t n = NOTICE_RESOURCES_MAX - 2; n <= NOTICE_RESOURCES_MAX + 1; n++) {
                _cleanup_strbuf_ StrBuf b = { 0 };
                ScheduledEvent *events = NULL;
                const char *why;
                size_t n_events;
                bool more;

                strbuf_add(&b, "{\"Events\":[{\"EventId\":\"a\",\"EventType\":\"Reboot\",\"EventStatus\":\"Started\",\"Resources\":[" OWN);
                for (size_t k = 1; k < n; k++)
                        strbuf_addf(&b, ",\"vm-%zu\"", k);
                strbuf_add(&b, "]}]}");
                assert_return_code(azure_events_parse(strbuf_str(&b), b.size, VM, 3, &events, &n_events, &more, &why), 0);
                assert_int_equal(n_events, 1);
                assert_int_equal(strv_length(events->resources), MIN(n, NOTICE_RESOURCES_MAX));
                assert_int_equal(strv_contains(events->resources, NOTICE_RESOURCES_TOO_MANY), n >= NOTICE_RESOURCES_MAX);
                scheduled_events_free(events, n_events);
        }
}

/* -- the source --------------------------------------------------------------------------------- */

/* The first answer takes its time, and nothing is said meanwhile; then one request a poll. */
TEST_CASE(test_first_call) {
        size_t n;
        Bench b;

        bench_init(&b, 110 * USEC_PER_SEC);
        run(&b, 100 * USEC_PER_SEC);
        assert_int_equal(b.n_looks, 0);
        assert_non_null(strstr(b.said, "scheduled events of VM " VM ", which switches them on for it"));
        run(&b, 20 * USEC_PER_SEC);
        assert_int_equal(b.result, NOTICE_POLL_NONE);
        n = fake_azure_metadata_n_requests(b.fake);
        run(&b, 20 * POLL);
        assert_in_range(fake_azure_metadata_n_requests(b.fake) - n, 19, 21);
        bench_done(&b);
}

TEST_CASE(test_each_type) {
        static const struct {
                const char *type;
                NoticeKind kind;
                const char *action;
                NoticeCertainty certainty;
        } rows[] = {
                { "Preempt", NOTICE_SPOT, "stop", NOTICE_CERTAIN },
                { "Terminate", NOTICE_SCALE_IN, "terminate", NOTICE_CERTAIN },
                { "Reboot", NOTICE_MAINTENANCE, "reboot", NOTICE_CERTAIN },
                { "Redeploy", NOTICE_MAINTENANCE, "redeploy", NOTICE_CERTAIN },
                { "Freeze", NOTICE_MAINTENANCE, "freeze", NOTICE_ADVISORY },
                { "Relocate", NOTICE_MAINTENANCE, "maintenance", NOTICE_ADVISORY }, /* of a later day */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                usec_t at, deadline;
                const char *id;
                Bench b;

                print_message("%s\n", rows[i].type);
                bench_init(&b, 0);
                run(&b, 10 * USEC_PER_SEC);
                assert_int_equal(b.result, NOTICE_POLL_NONE);
                id = fake_azure_events_add(b.events, &(FakeAzureEvent){ .type = rows[i].type, .resources = "pool_3,POOL_7",
                                                                        .duration_sec = -1, .lead_usec = 15 * USEC_PER_MINUTE });
                at = usec_add(loop_wall(b.loop), 15 * USEC_PER_MINUTE);
                run(&b, 2 * POLL);
                assert_int_equal(b.result, NOTICE_POLL_NOTICE);
                assert_string_equal(b.notices[0]->id, id);
                assert_int_equal(b.notices[0]->kind, rows[i].kind);
                assert_string_equal(b.notices[0]->action, rows[i].action);
                assert_int_equal(b.notices[0]->certainty, rows[i].certainty);
                assert_in_range(b.notices[0]->announced_usec, at - USEC_PER_SEC, at + USEC_PER_SEC);
                deadline = b.notices[0]->deadline_usec;
                /* Started: it says no time any more, and the time that it said stays. */
                run(&b, 20 * USEC_PER_MINUTE);
                assert_int_equal(b.result, NOTICE_POLL_NOTICE);
                assert_in_range(b.notices[0]->deadline_usec, deadline - 2 * USEC_PER_SEC, deadline + 2 * USEC_PER_SEC);
                assert_int_equal(notice_source_may_cancel(b.source, b.notices[0], loop_now(b.loop)), rows[i].kind != NOTICE_SPOT);
                fake_azure_events_clear(b.events);
                run(&b, 2 * POLL);
                assert_int_equal(b.result, NOTICE_POLL_NONE);
                bench_done(&b);
        }
}

/* Of the whole scale set: only what names this VM. Nothing is ever approved. */
TEST_CASE(test_neighbours) {
        Bench b;

        bench_init(&b, 0);
        run(&b, 10 * USEC_PER_SEC);
        (void) fake_azure_events_add(b.events, &(FakeAzureEvent){ .type = "Reboot", .resources = "pool_70,pool", .duration_sec = -1,
                                                                  .lead_usec = 15 * USEC_PER_MINUTE });
        run(&b, 2 * POLL);
        assert_int_equal(b.result, NOTICE_POLL_NONE);
        (void) fake_azure_events_add(b.events, &(FakeAzureEvent){ .type = "Reboot", .resources = VM, .duration_sec = -1,
                                                                  .lead_usec = 15 * USEC_PER_MINUTE });
        run(&b, 30 * USEC_PER_MINUTE);
        assert_int_equal(b.n, 1);
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        bench_done(&b);
}

TEST_CASE(test_trouble) {
        static const struct {
                const char *what, *body;
                unsigned status;
                const char *why;
        } rows[] = {
                { "empty", "", 200, "the document is empty" },
                { "no JSON", "<html>", 200, "no JSON" },
                { "no events", "{\"DocumentIncarnation\":1}", 200, "no list of events" },
                { "an event that cannot be read", "{\"Events\":[{\"EventId\":\"a\"}]}", 200, "without id, type, status or resources" },
                { "no time",
                  "{\"Events\":[{\"EventId\":\"a\",\"EventType\":\"Reboot\",\"EventStatus\":\"Scheduled\",\"Resources\":[\"pool_7\"],\"NotBefore\":\"\"}]}",
                  200, "without a NotBefore" },
                { "moves", NULL, 410, "HTTP 410" },
                { "too often", NULL, 429, "asks the metadata service too often" },
                { "ill", NULL, 500, "HTTP 500" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                size_t n;
                Bench b;

                print_message("%s\n", rows[i].what);
                bench_init(&b, 0);
                run(&b, 10 * USEC_PER_SEC);
                if (rows[i].body)
                        fake_azure_metadata_garble(b.fake, FAKE_AZURE_EVENTS, UINT_MAX, rows[i].body);
                else
                        fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, UINT_MAX, rows[i].status);
                run(&b, 3 * USEC_PER_MINUTE);
                assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
                assert_non_null(strstr(b.why, rows[i].why));
                n = fake_azure_metadata_n_requests(b.fake);
                run(&b, 10 * USEC_PER_MINUTE);
                assert_in_range(fake_azure_metadata_n_requests(b.fake) - n, 35, 55);
                fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, 0, 0);
                fake_azure_metadata_garble(b.fake, FAKE_AZURE_EVENTS, 0, NULL);
                notice_source_kick(b.source); /* the network is back: it does not wait out its backoff */
                run(&b, USEC_PER_SEC);
                assert_int_equal(b.result, NOTICE_POLL_NONE);
                bench_done(&b);
        }
}

/* Before it knows who it is nothing counts. */
TEST_CASE(test_no_name) {
        Bench b;

        bench_init(&b, 0);
        fake_azure_metadata_set_name(b.fake, NULL);
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(b.why, "no metadata service of Azure"));
        assert_false(fake_azure_metadata_is_watching(b.fake));
        fake_azure_metadata_set_name(b.fake, VM);
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.result, NOTICE_POLL_NONE);
        bench_done(&b);
}

TEST_CASE(test_identity) {
#define GROUP "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"
        static const struct {
                const char *provider_id;
                NoticeIdentity identity;
        } rows[] = {
                { GROUP "virtualMachineScaleSets/POOL/virtualMachines/7", NOTICE_IDENTITY_SAME },
                { GROUP "virtualMachines/Pool_7", NOTICE_IDENTITY_SAME },
                { GROUP "virtualMachineScaleSets/pool/virtualMachines/8", NOTICE_IDENTITY_OTHER },
                { GROUP "virtualMachines/pool", NOTICE_IDENTITY_OTHER },
                { GROUP "virtualMachines/", NOTICE_IDENTITY_UNKNOWN },
                { "aws:///us-east-1a/i-0123456789abcdef0", NOTICE_IDENTITY_UNKNOWN },
        };
        const char *name;
        Bench b;

        bench_init(&b, 0);
        assert_int_equal(notice_source_identity(b.source, rows[2].provider_id, &name), NOTICE_IDENTITY_UNKNOWN);
        run(&b, 10 * USEC_PER_SEC);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].provider_id);
                assert_int_equal(notice_source_identity(b.source, rows[i].provider_id, &name), rows[i].identity);
                assert_string_equal(name, VM);
        }
        bench_done(&b);
#undef GROUP
}

/* A source that fails, answers, and fails again does in the second round what it did in the first. */
TEST_CASE(test_fails_again) {
        size_t n[2], n_before;
        Bench b;

        bench_init(&b, 0);
        run(&b, 10 * USEC_PER_SEC);
        for (unsigned round = 0; round < 2; round++) {
                fake_azure_metadata_hang(b.fake, FAKE_AZURE_EVENTS, 1);
                run(&b, POLL + 2 * USEC_PER_SEC + USEC_PER_SEC / 10);
                assert_int_equal(b.result, NOTICE_POLL_UNKNOWN); /* only the first answer of all may take two minutes */
                assert_non_null(startswith(b.why, "no answer: "));
                run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.result, NOTICE_POLL_NONE);
                fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, UINT_MAX, 500);
                n[round] = fake_azure_metadata_n_requests(b.fake);
                run(&b, 20 * USEC_PER_SEC);
                n[round] = fake_azure_metadata_n_requests(b.fake) - n[round];
                run(&b, 10 * USEC_PER_MINUTE);
                fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, 0, 0);
                run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.result, NOTICE_POLL_NONE);
        }
        print_message("%zu and %zu requests\n", n[0], n[1]);

        print_message("a kick hurries a source that has failed, and no other, and starts no second request\n");
        fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, UINT_MAX, 500);
        run(&b, 10 * USEC_PER_MINUTE);
        n_before = fake_azure_metadata_n_requests(b.fake);
        fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, 0, 0);
        fake_azure_metadata_hang(b.fake, FAKE_AZURE_EVENTS, 1);
        notice_source_kick(b.source);
        run(&b, USEC_PER_SEC);
        notice_source_kick(b.source);
        run(&b, USEC_PER_SEC / 2);
        assert_int_equal(fake_azure_metadata_n_requests(b.fake), n_before + 1);
        run(&b, USEC_PER_MINUTE);
        n_before = fake_azure_metadata_n_requests(b.fake);
        notice_source_kick(b.source);
        run(&b, 10 * POLL);
        assert_in_range(fake_azure_metadata_n_requests(b.fake), n_before + 10, n_before + 10);
        assert_in_range(n[0], 3, 5);
        assert_in_range(n[1], n[0] - 1, n[0] + 1);
        bench_done(&b);
}

/* More events than a feed can have: that is logged once, and once more when it happens again. */
TEST_CASE(test_too_many_events) {
        static const FakeAzureEvent event = { .type = "Freeze", .resources = VM, .duration_sec = -1, .lead_usec = USEC_PER_HOUR };
        Bench b;

        bench_init(&b, 0);
        run(&b, 10 * USEC_PER_SEC);
        for (unsigned i = 0; i < NOTICES_OF_FEED_MAX; i++)
                (void) fake_azure_events_add(b.events, &event);
        run(&b, 5 * POLL);
        assert_int_equal(b.n, NOTICES_OF_FEED_MAX);
        assert_int_equal(b.n_more, 0);
        for (unsigned round = 1; round <= 2; round++) {
                _cleanup_free_ char *id = strdup(fake_azure_events_add(b.events, &event));

                run(&b, 5 * POLL);
                assert_int_equal(b.n, NOTICES_OF_FEED_MAX);
                assert_int_equal(b.n_more, round);
                assert_true(fake_azure_events_remove(b.events, id));
                run(&b, 5 * POLL);
                assert_int_equal(b.n, NOTICES_OF_FEED_MAX);
        }
        bench_done(&b);
}

/* A request that cannot begin is no answer, and the next one follows. */
TEST_CASE(test_cannot_ask) {
        HttpTransport refusing = REFUSING_TRANSPORT;
        Bench b;

        bench_init(&b, 0);
        run(&b, 10 * USEC_PER_SEC);
        b.env.transport = &refusing;
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
        assert_string_equal(b.why, "out of memory");
        assert_int_equal(b.source->ops->acknowledge(b.source, "a", NULL, NULL), -ENOMEM);
        b.env.transport = b.transport;
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.result, NOTICE_POLL_NONE);
        bench_done(&b);
}

/* Each way in which metadata does not tell the name, in the words that people read. */
TEST_CASE(test_name_trouble) {
        static const struct {
                unsigned status;
                const char *body; /* NULL: it hangs */
                const char *why;
        } rows[] = {
                { 404, "", "HTTP 404" },
                { 429, "", "HTTP 429: somebody on this machine asks the metadata service too often" },
                { 200, NULL, "no answer: " },
                { 200, "", "this is no metadata service of Azure: compute/name gives no name of a VM" },
                { 200, "pool 7", "this is no metadata service of Azure: compute/name gives no name of a VM" },
                { 200, NAME80 "x", "this is no metadata service of Azure: compute/name gives no name of a VM" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Bench b;

                bench_init(&b, 0);
                if (!rows[i].body)
                        fake_azure_metadata_hang(b.fake, FAKE_AZURE_INSTANCE, UINT_MAX);
                else if (rows[i].status == 200)
                        fake_azure_metadata_garble(b.fake, FAKE_AZURE_INSTANCE, UINT_MAX, rows[i].body);
                else
                        fake_azure_metadata_fail(b.fake, FAKE_AZURE_INSTANCE, UINT_MAX, rows[i].status);
                run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.result, NOTICE_POLL_UNKNOWN);
                assert_non_null(startswith(b.why, rows[i].why));
                assert_false(fake_azure_metadata_is_watching(b.fake));
                fake_azure_metadata_hang(b.fake, FAKE_AZURE_INSTANCE, 0);
                fake_azure_metadata_fail(b.fake, FAKE_AZURE_INSTANCE, 0, 0);
                fake_azure_metadata_garble(b.fake, FAKE_AZURE_INSTANCE, 0, NULL);
                run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.result, NOTICE_POLL_NONE);
                bench_done(&b);
        }
}

static void on_acknowledged(const char *why, void *userdata) {
        char **said = userdata;

        free(*said);
        *said = strdup(strempty(why));
}

/* Each answer to an acknowledgement. Polls go on beside it. */
TEST_CASE(test_acknowledge) {
        static const struct {
                const char *what, *id;
                unsigned status; /* 0: the usual one */
                bool hangs;
                int error; /* of the call itself */
                const char *why;
                size_t n_approved;
        } rows[] = {
                { "taken", "azure-1", 0, false, 0, "", 1 },
                { "taken, without a body", "azure-1", 204, false, 0, "", 0 },
                { "moved", "azure-1", 300, false, 0, "HTTP 300", 0 },
                { "not known any more", "azure-2", 0, false, 0, "HTTP 400", 0 },
                { "too often", "azure-1", 429, false, 0, "HTTP 429: somebody on this machine asks the metadata service too often", 0 },
                { "ill", "azure-1", 500, false, 0, "HTTP 500", 0 },
                { "no answer", "azure-1", 0, true, 0, "no answer: ", 0 },
                { "no id", "a\"b", 0, false, -EINVAL, NULL, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *said = NULL;
                Bench b;

                print_message("%s\n", rows[i].what);
                bench_init(&b, 0);
                (void) fake_azure_events_add(b.events, &(FakeAzureEvent){ .id = "azure-1", .type = "Reboot", .resources = VM, .duration_sec = -1,
                                                                          .lead_usec = 15 * USEC_PER_MINUTE });
                run(&b, 10 * USEC_PER_SEC + USEC_PER_SEC / 3);
                assert_false(b.source->ops->acknowledges(b.source));
                if (rows[i].status > 0)
                        fake_azure_metadata_fail(b.fake, FAKE_AZURE_EVENTS, 1, rows[i].status);
                if (rows[i].hangs)
                        fake_azure_metadata_hang(b.fake, FAKE_AZURE_EVENTS, 1);
                assert_int_equal(b.source->ops->acknowledge(b.source, rows[i].id, on_acknowledged, &said), rows[i].error);
                assert_int_equal(b.source->ops->acknowledges(b.source), rows[i].error == 0);
                run(&b, 9 * USEC_PER_SEC);
                assert_int_equal(b.source->ops->acknowledges(b.source), rows[i].hangs);
                run(&b, 2 * USEC_PER_SEC);
                assert_false(b.source->ops->acknowledges(b.source));
                assert_int_equal(said != NULL, rows[i].why != NULL);
                if (rows[i].hangs)
                        assert_non_null(startswith(said, rows[i].why));
                else if (rows[i].why)
                        assert_string_equal(said, rows[i].why);
                assert_int_equal(fake_azure_events_n_approved(b.events), rows[i].n_approved);
                assert_int_equal(b.result, NOTICE_POLL_NOTICE);
                assert_int_equal(b.n, 1);
                bench_done(&b);
        }
}

/* The VM's name is asked for once, and again only when somebody doubts it, once a minute at most. Events of another VM than before
 * are none of the new one's. */
TEST_CASE(test_name_is_doubted) {
        size_t n;
        Bench b;

        bench_init(&b, 0);
        (void) fake_azure_events_add(b.events, &(FakeAzureEvent){ .type = "Reboot", .resources = VM,
                .duration_sec = -1, .lead_usec = USEC_PER_HOUR });
        run(&b, 30 * USEC_PER_SEC);
        assert_int_equal(b.n, 1);
        n = fake_azure_metadata_n_requests(b.fake);
        b.source->ops->ask_identity(b.source); /* half a minute after the last question */
        run(&b, 10 * POLL);
        assert_int_equal(fake_azure_metadata_n_requests(b.fake) - n, 10);
        run(&b, 15 * USEC_PER_SEC);
        n = fake_azure_metadata_n_requests(b.fake);
        b.said[0] = 0;
        b.source->ops->ask_identity(b.source); /* a minute after the last question */
        run(&b, 10 * POLL);
        assert_string_equal(b.said, ""); /* the same name */
        assert_int_equal(fake_azure_metadata_n_requests(b.fake) - n, 11);
        assert_int_equal(b.n, 1);
        b.source->ops->ask_identity(b.source);
        run(&b, 10 * POLL);
        assert_int_equal(fake_azure_metadata_n_requests(b.fake) - n, 21);
        fake_azure_metadata_set_name(b.fake, "pool_8");
        run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.n, 1); /* nobody doubts the name */
        b.said[0] = 0;
        b.source->ops->ask_identity(b.source);
        run(&b, 2 * POLL);
        assert_int_equal(b.result, NOTICE_POLL_NONE);
        assert_non_null(strstr(b.said, "scheduled events of VM pool_8, which"));
        fake_azure_metadata_set_name(b.fake, "p");
        run(&b, USEC_PER_MINUTE);
        b.source->ops->ask_identity(b.source);
        run(&b, 2 * POLL);
        assert_non_null(strstr(b.said, "scheduled events of VM p, which"));
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_call),
                cmocka_unit_test(test_each_type),
                cmocka_unit_test(test_neighbours),
                cmocka_unit_test(test_trouble),
                cmocka_unit_test(test_no_name),
                cmocka_unit_test(test_identity),
                cmocka_unit_test(test_documents),
                cmocka_unit_test(test_fails_again),
                cmocka_unit_test(test_cannot_ask),
                cmocka_unit_test(test_name_trouble),
                cmocka_unit_test(test_too_many_events),
                cmocka_unit_test(test_many_resources),
                cmocka_unit_test(test_acknowledge),
                cmocka_unit_test(test_name_is_doubted),
        };
        return cmocka_run_group_tests_name("notice-azure", tests, NULL, NULL);
}
