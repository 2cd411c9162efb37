/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "cmocka-test.h"
#include "fake-gce-metadata.h"
#include "http-inproc.h"
#include "notice-gce.h"
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
                cmocka_unit_test(test_strangers),
                cmocka_unit_test(test_pace),
        };
        return cmocka_run_group_tests_name("notice-gce", tests, NULL, NULL);
}
