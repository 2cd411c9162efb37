/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-azure-metadata.h"
#include "http-inproc.h"
#include "log.h"
#include "notice-azure.h"
#include "string-util.h"

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
}

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
        }
        bench_done(&b);
#undef GROUP
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_first_call),
                cmocka_unit_test(test_each_type),
                cmocka_unit_test(test_neighbours),
                cmocka_unit_test(test_trouble),
                cmocka_unit_test(test_no_name),
                cmocka_unit_test(test_identity),
        };
        return cmocka_run_group_tests_name("notice-azure", tests, NULL, NULL);
}
