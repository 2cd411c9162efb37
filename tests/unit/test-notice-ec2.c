/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "ec2-events.h"
#include "fake-imds.h"
#include "http-inproc.h"
#include "log.h"
#include "notice-ec2.h"
#include "string-util.h"

#define ENDPOINT "http://169.254.169.254"
#define OTHER_ENDPOINT "http://[fd00:ec2::254]"
#define INSTANCE "i-0123456789abcdef0"
#define POLL_USEC (2 * USEC_PER_SEC)
#define T0 (UINT64_C(1800000000) * USEC_PER_SEC)

/* What a feed besides spot/instance-action said last. */
typedef struct SideLook {
        const char *feed;
        size_t n_looks, n;
        NoticePollResult result;
        Notice *notices[NOTICES_OF_FEED_MAX];
        usec_t at_usec, gap_usec;
        char why[256];
} SideLook;

/* A source, its instance, and what it said last. */
typedef struct Lookout {
        VirtualTime *time;
        Loop *loop, *cloud; /* the cloud's clock is right */
        Random *random;
        Log *log;
        HttpTransport *transport;
        FakeImds *imds;
        Env env;
        NoticeSource *source;

        size_t n_looks[NOTICE_POLL_UNKNOWN + 1], n_all;
        NoticePollResult look;
        Notice *notice;
        char why[512];
        usec_t answered_usec, at_usec, gap_usec;
        char warning[512];
        bool refused; /* nobody listens there */
        const char *no_route; /* to that endpoint; NULL: to each there is one */
        const char *silent;   /* what is sent there is lost */
        usec_t reply_delay_usec;
        SideLook sides[4];
} Lookout;

/* Of the other four, by their paths. */
static SideLook *side_of(Lookout *l, const char *feed) {
        for (size_t i = 0; i < ELEMENTSOF(l->sides); i++) {
                if (!l->sides[i].feed)
                        l->sides[i].feed = feed;
                if (streq(l->sides[i].feed, feed))
                        return &l->sides[i];
        }
        fail_msg("a feed too many: %s", feed);
        return NULL;
}

static void on_side_look(Lookout *l, const NoticeLook *look) {
        SideLook *side = side_of(l, look->feed);
        usec_t now = loop_now(l->loop);

        side->gap_usec = now - side->at_usec;
        side->at_usec = now;
        side->n_looks++;
        side->result = look->result;
        (void) snprintf(side->why, sizeof(side->why), "%s", strempty(look->why));
        for (size_t i = 0; i < side->n; i++)
                side->notices[i] = notice_free(side->notices[i]);
        side->n = look->n_notices;
        assert_true(side->n <= ELEMENTSOF(side->notices));
        for (size_t i = 0; i < look->n_notices; i++)
                assert_return_code(notice_copy(look->notices[i], &side->notices[i]), 0);
}

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        const Notice *notice = look->n_notices > 0 ? look->notices[0] : NULL;
        Lookout *l = userdata;
        usec_t now = loop_now(l->loop);

        if (!streq(look->feed, "spot/instance-action")) {
                on_side_look(l, look);
                return;
        }
        assert_int_equal(look->result == NOTICE_POLL_NOTICE, notice != NULL);
        assert_int_equal(look->result == NOTICE_POLL_UNKNOWN, look->why != NULL);
        l->n_looks[look->result]++;
        l->n_all++;
        l->look = look->result;
        l->answered_usec = look->answered_usec;
        l->gap_usec = now - l->at_usec;
        l->at_usec = now;
        (void) snprintf(l->why, sizeof(l->why), "%s", strempty(look->why));
        l->notice = notice_free(l->notice);
        if (notice)
                assert_return_code(notice_copy(notice, &l->notice), 0);
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Lookout *l = userdata;

        if (level <= LOG_LEVEL_WARNING)
                (void) snprintf(l->warning, sizeof(l->warning), "%s", text);
}

static void run(Lookout *l, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(l->time), usec);

        while (virtual_time_step(l->time, until) > 0)
                ;
        if (l->source)
                (void) assert_awake(l->loop, l->source->ops->next_wakeup, l->source);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        const Lookout *l = userdata;

        ret_fault->refuse = l->refused;
        ret_fault->no_route = l->no_route && startswith(request->url, l->no_route);
        ret_fault->lose_request = l->silent && startswith(request->url, l->silent);
        ret_fault->reply_delay_usec = l->reply_delay_usec;
}

static Lookout *lookout_new_with(const NoticeEc2Options *more) {
        const NoticeEc2Options options = {
                .endpoint = ENDPOINT, .poll_usec = POLL_USEC, .other_endpoint = more->other_endpoint, .allow_v1 = more->allow_v1
        };
        Lookout *l = new0(Lookout, 1);

        assert_non_null(l);
        assert_return_code(virtual_time_new(T0, &l->time), 0);
        assert_return_code(loop_new_virtual(l->time, &l->loop), 0);
        assert_return_code(loop_new_virtual(l->time, &l->cloud), 0);
        assert_return_code(random_new(1, &l->random), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &l->log), 0);
        log_set_hook(l->log, on_log, l);
        assert_return_code(http_inproc_new(l->loop, NULL,
                                           &(HttpInprocHooks){ .on_request = on_request, .userdata = l },
                                           &l->transport),
                           0);
        l->imds = fake_imds_new(l->cloud, INSTANCE);
        assert_return_code(http_inproc_route(l->transport, ENDPOINT, fake_imds_handle, l->imds), 0);
        if (more->other_endpoint)
                assert_return_code(http_inproc_route(l->transport, more->other_endpoint, fake_imds_handle, l->imds), 0);
        l->env = (Env){ .loop = l->loop,
                        .random = l->random,
                        .log = l->log,
                        .transport = l->transport,
                        .boot_id = "boot-1" };
        assert_return_code(notice_ec2_new(&l->env, &options, on_look, l, &l->source), 0);
        l->source->ops->start(l->source);
        return l;
}

static Lookout *lookout_new(void) {
        return lookout_new_with(&(NoticeEc2Options){ 0 });
}

static Lookout *lookout_free(Lookout *l) {
        notice_source_free(l->source);
        http_transport_free(l->transport);
        fake_imds_free(l->imds);
        log_free(l->log);
        random_free(l->random);
        loop_free(l->loop);
        loop_free(l->cloud);
        virtual_time_free(l->time);
        notice_free(l->notice);
        for (size_t i = 0; i < ELEMENTSOF(l->sides); i++)
                for (size_t k = 0; k < l->sides[i].n; k++)
                        notice_free(l->sides[i].notices[k]);
        free(l);
        return NULL;
}
DEFINE_FREEP(Lookout, lookout_free);

/* One that has looked and found nothing. */
static Lookout *calm_lookout(void) {
        Lookout *l = lookout_new();

        run(l, 5 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);
        return l;
}

/* -- pure --------------------------------------------------------------------------------------- */

TEST_CASE(test_left) {
        static const struct {
                const char *what, *action;
                int64_t time_sec; /* from first seen */
                int64_t left_sec;
                Ec2ClockVerdict verdict;
        } rows[] = {
                { "two minutes", "terminate", 120, 120, EC2_CLOCK_FINE },
                { "seen late", "terminate", 71, 71, EC2_CLOCK_FINE },
                { "one second is one second", "stop", 1, 1, EC2_CLOCK_FINE },
                { "further ahead than EC2 gives, by a Date that was cut", "terminate", 121, 120, EC2_CLOCK_FINE },
                { "further ahead than EC2 gives", "terminate", 122, 120, EC2_CLOCK_BEHIND },
                { "an hour ahead: the clock is slow", "stop", 3600, 120, EC2_CLOCK_BEHIND },
                { "this very moment", "terminate", 0, 30, EC2_CLOCK_AHEAD },
                { "an hour ago: the clock is fast, or it is stale", "terminate", -3600, 30,
                  EC2_CLOCK_AHEAD },
                { "hibernation has begun", "hibernate", 0, 10, EC2_CLOCK_FINE },
                { "hibernation, whatever its time says", "hibernate", 120, 10, EC2_CLOCK_FINE },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Ec2ClockVerdict verdict;
                usec_t time = T0 + (usec_t) (rows[i].time_sec * (int64_t) USEC_PER_SEC), left;

                print_message("%s\n", rows[i].what);
                left = notice_ec2_left(rows[i].action, time, T0, &verdict);
                assert_true(left == (usec_t) rows[i].left_sec * USEC_PER_SEC);
                assert_int_equal(verdict, rows[i].verdict);
        }
}

TEST_CASE(test_parse) {
        static const struct {
                const char *what, *text, *why;
        } rows[] = {
                { "as documented", "{\"action\": \"stop\", \"time\": \"2027-01-15T08:00:00Z\"}", NULL },
                { "more than documented",
                  "{\"action\":\"terminate\",\"time\":\"2027-01-15T08:00:00Z\",\"new\":[]}", NULL },
                { "not JSON", "<?xml version=\"1.0\"?>", "not JSON" },
                { "empty", "", "not JSON" },
                { "two values", "{} {}", "not JSON" },
                { "a key twice",
                  "{\"action\":\"stop\",\"action\":\"stop\",\"time\":\"2027-01-15T08:00:00Z\"}",
                  "not JSON" },
                { "no action", "{\"time\":\"2027-01-15T08:00:00Z\"}", "no action" },
                { "an action of another type", "{\"action\":[],\"time\":\"2027-01-15T08:00:00Z\"}",
                  "no action" },
                { "an action nobody knows", "{\"action\":\"dance\",\"time\":\"2027-01-15T08:00:00Z\"}",
                  "no action" },
                { "no time", "{\"action\":\"stop\"}", "no time" },
                { "a time that is none", "{\"action\":\"stop\",\"time\":\"soon\"}", "no time" },
                { "seconds since 1970", "{\"action\":\"stop\",\"time\":1800000000}", "no time" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *action = NULL;
                const char *why = NULL;
                usec_t time = 0;
                int r;

                print_message("%s\n", rows[i].what);
                r = notice_ec2_parse(rows[i].text, strlen(rows[i].text), &action, &time, &why);
                assert_int_equal(r, rows[i].why ? -EBADMSG : 0);
                if (rows[i].why)
                        assert_non_null(strstr(why, rows[i].why));
                else
                        assert_true(time == T0);
        }
}

TEST_CASE(test_instance_id) {
        static const struct {
                const char *id;
                bool valid;
        } rows[] = {
                { "i-0123456789abcdef0", true },
                { "i-12345678", true },
                { "i-1234567", false },
                { "i-", false },
                { "", false },
                { "i-0123456789ABCDEF0", false },
                { "0123456789abcdef0", false },
                { "i-0123 56789", false },
                { "i-0123456789abcdef0\n", false },
                { "<html>i-12345678", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(ec2_instance_id_is_valid(rows[i].id, strlen(rows[i].id)), rows[i].valid);
}

/* -- looking ------------------------------------------------------------------------------------ */

TEST_CASE(test_steady) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        size_t gets = fake_imds_n_gets(l->imds), looks = l->n_all;

        assert_int_equal(fake_imds_n_tokens(l->imds), 1);
        run(l, 100 * POLL_USEC);
        assert_int_equal(l->n_all, looks + 100);
        /* One request a poll, and at most one of the other feeds behind it: 50 + 20 + 4 in 200 s, and what a grid of 2 s
         * makes of 10. */
        assert_in_range(fake_imds_n_gets(l->imds), gets + 165, gets + 175);
        for (size_t i = 0; i < ELEMENTSOF(l->sides); i++)
                assert_int_equal(l->sides[i].result, NOTICE_POLL_NONE);
        assert_true(side_of(l, "autoscaling/target-lifecycle-state")->gap_usec <= 6 * USEC_PER_SEC);
        assert_true(side_of(l, "events/recommendations/rebalance")->gap_usec <= 12 * USEC_PER_SEC);
        assert_true(side_of(l, "events/maintenance/scheduled")->gap_usec <= 62 * USEC_PER_SEC);
        assert_int_equal(fake_imds_n_tokens(l->imds), 1);
        assert_int_equal(l->gap_usec, POLL_USEC);
}

TEST_CASE(test_notice) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        usec_t end = usec_add(loop_wall(l->loop), 120 * USEC_PER_SEC), deadline;

        fake_imds_set_action(l->imds, "terminate", end);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NOTICE);
        assert_string_equal(l->notice->id, INSTANCE "-terminate-boot-1");
        assert_string_equal(l->notice->source, "ec2");
        assert_string_equal(l->notice->action, "terminate");
        assert_int_equal(l->notice->kind, NOTICE_SPOT);
        assert_int_equal(l->notice->certainty, NOTICE_CERTAIN);
        deadline = l->notice->deadline_usec;
        assert_in_range(deadline, loop_from_wall(l->loop, end), loop_from_wall(l->loop, end) + USEC_PER_SEC);
        assert_true(l->notice->announced_usec == end);
        assert_false(l->notice->estimated);
        assert_true(l->answered_usec == l->at_usec);
        assert_string_equal(l->warning, "");

        /* Long after its time it is the same notice with the same deadline, and no clock is blamed. */
        run(l, 5 * USEC_PER_MINUTE);
        assert_int_equal(l->look, NOTICE_POLL_NOTICE);
        assert_true(l->notice->deadline_usec == deadline);
        assert_string_equal(l->warning, "");

        /* Its time moves: the same id. */
        end = usec_add(loop_wall(l->loop), 60 * USEC_PER_SEC);
        fake_imds_set_action(l->imds, "terminate", end);
        run(l, POLL_USEC);
        assert_string_equal(l->notice->id, INSTANCE "-terminate-boot-1");
        assert_in_range(l->notice->deadline_usec, loop_from_wall(l->loop, end),
                        loop_from_wall(l->loop, end) + USEC_PER_SEC);
}

/* Without a Date our own clock tells how much is left, once, and within what EC2 gives. */
TEST_CASE(test_without_date) {
        static const struct {
                const char *what;
                int64_t off_sec;  /* of our clock; the notice gives 100 s */
                usec_t left_sec;
                const char *warning;
        } rows[] = {
                { "ours is right", 0, 100, NULL },
                { "ours is slow", -600, 120, "the clock is behind" },
                { "ours is fast", 600, 30, "the clock is ahead" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(lookout_freep) Lookout *l = calm_lookout();
                usec_t deadline, began = loop_now(l->loop),
                                 announced = usec_add(loop_wall(l->loop), 100 * USEC_PER_SEC);

                print_message("%s\n", rows[i].what);
                fake_imds_tell_date(l->imds, false);
                loop_virtual_step_wall(l->loop, rows[i].off_sec * (int64_t) USEC_PER_SEC);
                fake_imds_set_action(l->imds, "stop", announced);
                run(l, POLL_USEC);
                deadline = l->notice->deadline_usec;
                assert_in_range(deadline - began, rows[i].left_sec * USEC_PER_SEC,
                                rows[i].left_sec * USEC_PER_SEC + POLL_USEC);
                assert_true(l->notice->estimated);
                /* Whoever has the right time is told what the cloud said. */
                assert_true(notice_announced(l->notice) == announced);
                if (rows[i].warning) {
                        assert_non_null(strstr(l->warning, rows[i].warning));
                        assert_non_null(strstr(l->warning, "check the time service"));
                } else
                        assert_string_equal(l->warning, "");
                l->warning[0] = 0;
                loop_virtual_step_wall(l->loop, 7 * (int64_t) USEC_PER_SEC);
                run(l, 10 * POLL_USEC);
                assert_true(l->notice->deadline_usec == deadline); /* it does not run away */
                assert_string_equal(l->warning, "");               /* said once */

                /* A Date tells better. */
                fake_imds_tell_date(l->imds, true);
                run(l, POLL_USEC);
                assert_false(l->notice->estimated);
                assert_in_range(l->notice->deadline_usec - began, 100 * USEC_PER_SEC, 101 * USEC_PER_SEC);
                deadline = l->notice->deadline_usec;
                fake_imds_tell_date(l->imds, false);
                run(l, 5 * USEC_PER_MINUTE);
                assert_true(l->notice->deadline_usec == deadline);
                assert_string_equal(l->warning, "");
        }
}

/* With a Date it does not matter what our clock says, nor that it is set while the notice stands. */
TEST_CASE(test_clock_is_set) {
        static const int64_t off_sec[][3] = { /* when the notice comes, 20 s and 40 s later */
                { -7200, 0, 0 }, { 1000, 0, 0 }, { -7200, -3600, 0 }, { 0, -3600, 0 }, { 0, 500, 1000 }, { -7200, 1000, 5 },
        };

        for (size_t i = 0; i < ELEMENTSOF(off_sec); i++) {
                _cleanup_(lookout_freep) Lookout *l = calm_lookout();
                usec_t began = loop_now(l->loop),
                       announced = usec_add(loop_wall(l->loop), 100 * USEC_PER_SEC);
                int64_t off = 0;

                fake_imds_set_action(l->imds, "stop", announced);
                for (size_t k = 0; k < ELEMENTSOF(off_sec[i]); k++) {
                        print_message("%d s off\n", (int) off_sec[i][k]);
                        loop_virtual_step_wall(l->loop, (off_sec[i][k] - off) * (int64_t) USEC_PER_SEC);
                        off = off_sec[i][k];
                        run(l, 20 * USEC_PER_SEC);
                        assert_in_range(l->notice->deadline_usec - began, 100 * USEC_PER_SEC, 101 * USEC_PER_SEC);
                        assert_int_equal(notice_announced(l->notice), announced);
                }
                assert_string_equal(l->warning, "");
        }
}

/* A Date that EC2 cannot have given is none. */
TEST_CASE(test_implausible_date) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        usec_t began = loop_now(l->loop), announced = usec_add(loop_wall(l->loop), 100 * USEC_PER_SEC);

        loop_virtual_step_wall(l->cloud, -3600 * (int64_t) USEC_PER_SEC);
        fake_imds_set_action(l->imds, "stop", announced);
        run(l, POLL_USEC);
        assert_true(l->notice->estimated);
        assert_in_range(l->notice->deadline_usec - began, 100 * USEC_PER_SEC, 101 * USEC_PER_SEC);
        loop_virtual_step_wall(l->cloud, 3600 * (int64_t) USEC_PER_SEC);
        run(l, POLL_USEC);
        assert_false(l->notice->estimated);
        assert_in_range(l->notice->deadline_usec - began, 100 * USEC_PER_SEC, 101 * USEC_PER_SEC);
}

/* What stands there is another time, another action, or the same again after nothing stood there: judged anew, each. */
TEST_CASE(test_next_notice) {
        static const struct {
                const char *what;
                const char *first, *second;
                int64_t first_sec, second_sec; /* from when each begins to stand there */
                bool same_time;                /* the second has the first's */
                bool none;                     /* nothing stands there in between */
                int64_t deadline_sec;          /* of the second, from when it began */
        } rows[] = {
                { "another time, which no clock of ours agrees with", "stop", "stop", 110, 7200, false, false, 120 },
                { "a time that agreed, then one long past", "stop", "stop", 110, -600, false, false, 30 },
                { "hibernation becomes a stop", "hibernate", "stop", 100, 0, true, false, 80 },
                { "a stop becomes hibernation", "stop", "hibernate", 100, 0, true, false, 10 },
                { "an old one, withdrawn and there again", "stop", "stop", -600, 0, true, true, 30 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(lookout_freep) Lookout *l = calm_lookout();
                usec_t first = loop_wall(l->loop) + (usec_t) (rows[i].first_sec * (int64_t) USEC_PER_SEC), now;

                print_message("%s\n", rows[i].what);
                fake_imds_set_action(l->imds, rows[i].first, first);
                run(l, 10 * USEC_PER_SEC);
                if (rows[i].none)
                        fake_imds_clear_action(l->imds);
                run(l, 10 * USEC_PER_SEC);
                now = loop_wall(l->loop);
                fake_imds_set_action(l->imds, rows[i].second,
                                     rows[i].same_time
                                             ? first
                                             : now + (usec_t) (rows[i].second_sec * (int64_t) USEC_PER_SEC));
                run(l, POLL_USEC);
                assert_int_equal(l->look, NOTICE_POLL_NOTICE);
                now = loop_from_wall(l->loop, now);
                assert_in_range(l->notice->deadline_usec, now + (usec_t) rows[i].deadline_sec * USEC_PER_SEC,
                                now + (usec_t) rows[i].deadline_sec * USEC_PER_SEC + POLL_USEC);
        }
}

/* Answers that take their time do not slow the looks down, and one that takes longer than a poll is not made good. */
TEST_CASE(test_slow_answers) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        size_t looks, tokens;

        l->reply_delay_usec = 1500 * USEC_PER_MSEC;
        run(l, 3 * POLL_USEC);
        looks = l->n_all;
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->n_all, looks + 20);
        assert_int_equal(l->gap_usec, POLL_USEC);
        assert_int_equal(l->answered_usec, l->at_usec);

        /* 401, a token, the question again: 4.5 s. */
        fake_imds_revoke(l->imds);
        looks = l->n_all;
        while (l->n_all == looks)
                run(l, 10 * USEC_PER_MSEC);
        l->reply_delay_usec = 0;
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        looks = l->n_all;
        run(l, POLL_USEC - 20 * USEC_PER_MSEC);
        assert_in_range(l->n_all - looks, 0, 1);

        /* A token's life counts from when it was asked for. */
        fake_imds_set_max_ttl(l->imds, 20);
        fake_imds_revoke(l->imds);
        run(l, 10 * POLL_USEC);
        l->reply_delay_usec = 900 * USEC_PER_MSEC;
        run(l, 10 * POLL_USEC);
        tokens = fake_imds_n_tokens(l->imds);
        run(l, 120 * USEC_PER_SEC);
        assert_in_range(fake_imds_n_tokens(l->imds) - tokens, 11, 13);
}

/* A look that ended before it knew who had said 404 says nothing to the next one, which finds a notice. */
TEST_CASE(test_stranger_then_notice) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        size_t none, gets = fake_imds_n_gets(l->imds);

        fake_imds_revoke(l->imds);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        assert_in_range(fake_imds_n_gets(l->imds), gets + 3, gets + 4); /* 401, 404, who are you, another feed */

        fake_imds_revoke(l->imds);
        fake_imds_set_instance_id(l->imds, NULL);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        none = l->n_looks[NOTICE_POLL_NONE];
        fake_imds_set_instance_id(l->imds, INSTANCE);
        fake_imds_set_action(l->imds, "terminate", usec_add(loop_wall(l->loop), 120 * USEC_PER_SEC));
        run(l, 3 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NOTICE);
        assert_int_equal(l->n_looks[NOTICE_POLL_NONE], none);
}

/* Each answer and what it means. */
TEST_CASE(test_answers) {
        static const struct {
                const char *what;
                unsigned parts, status;
                const char *body;
                NoticePollResult look;
                const char *why;
        } rows[] = {
                { "404: there is none", FAKE_IMDS_DATA, 404, NULL, NOTICE_POLL_NONE, "" },
                { "403", FAKE_IMDS_DATA, 403, NULL, NOTICE_POLL_UNKNOWN, "switched off" },
                { "401 again and again", FAKE_IMDS_DATA, 401, NULL, NOTICE_POLL_UNKNOWN,
                  "401 in spite of a new session token" },
                { "429", FAKE_IMDS_DATA, 429, NULL, NOTICE_POLL_UNKNOWN, "throttling" },
                { "500", FAKE_IMDS_DATA, 500, NULL, NOTICE_POLL_UNKNOWN, "HTTP 500" },
                { "503", FAKE_IMDS_DATA, 503, NULL, NOTICE_POLL_UNKNOWN, "throttling" },
                { "302", FAKE_IMDS_DATA, 302, NULL, NOTICE_POLL_UNKNOWN, "HTTP 302" },
                { "204: nothing is no notice", FAKE_IMDS_DATA, 204, NULL, NOTICE_POLL_UNKNOWN, "HTTP 204" },
                { "200 with a page", FAKE_IMDS_DATA, 200, "<html>log in</html>", NOTICE_POLL_UNKNOWN,
                  "not JSON" },
                { "200 with nothing", FAKE_IMDS_DATA, 200, "", NOTICE_POLL_UNKNOWN, "not JSON" },
                { "no answer", FAKE_IMDS_DATA, 0, NULL, NOTICE_POLL_UNKNOWN, "no answer" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(lookout_freep) Lookout *l = calm_lookout();

                print_message("%s\n", rows[i].what);
                if (rows[i].body)
                        fake_imds_garble(l->imds, rows[i].parts, UINT32_MAX, rows[i].body);
                else if (rows[i].status > 0)
                        fake_imds_fail(l->imds, rows[i].parts, UINT32_MAX, rows[i].status);
                else
                        fake_imds_hang(l->imds, rows[i].parts, UINT32_MAX);
                run(l, 3 * POLL_USEC);
                assert_int_equal(l->look, rows[i].look);
                assert_non_null(strstr(l->why, rows[i].why));
                fake_imds_hang(l->imds, 0, 0);
                run(l, 20 * POLL_USEC);
                assert_int_equal(l->look, NOTICE_POLL_NONE);
        }
}

TEST_CASE(test_token_trouble) {
        static const struct {
                const char *what;
                unsigned status;
                const char *body, *why;
        } rows[] = {
                { "its answer is dropped one hop short", 0, NULL, "HttpPutResponseHopLimit" },
                { "switched off", 403, NULL, "switched off" },
                { "an old imitation", 404, NULL, "not an EC2 metadata service of version 2" },
                { "throttled", 503, NULL, "no session token: HTTP 503" },
                { "an empty token", 200, "", "what came is none" },
                { "a token with a line break", 200, "abc\r\nX-Evil: 1", "what came is none" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(lookout_freep) Lookout *l = lookout_new();

                print_message("%s\n", rows[i].what);
                if (rows[i].body)
                        fake_imds_garble(l->imds, FAKE_IMDS_TOKEN, UINT32_MAX, rows[i].body);
                else if (rows[i].status > 0)
                        fake_imds_fail(l->imds, FAKE_IMDS_TOKEN, UINT32_MAX, rows[i].status);
                else
                        fake_imds_hang(l->imds, FAKE_IMDS_TOKEN, UINT32_MAX);
                run(l, 3 * POLL_USEC);
                assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
                assert_non_null(strstr(l->why, rows[i].why));
                assert_int_equal(l->n_all, l->n_looks[NOTICE_POLL_UNKNOWN]);
        }
}

/* A token that is not theirs: 401, one new token, the question again, all within one look. */
TEST_CASE(test_revoked) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        size_t tokens = fake_imds_n_tokens(l->imds);

        fake_imds_revoke(l->imds);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        assert_int_equal(fake_imds_n_tokens(l->imds), tokens + 1);

        /* And the next time. */
        fake_imds_revoke(l->imds);
        run(l, POLL_USEC);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);
        assert_int_equal(fake_imds_n_tokens(l->imds), tokens + 2);

        fake_imds_garble(l->imds, FAKE_IMDS_TOKEN, UINT32_MAX, "not-a-token-of-theirs");
        fake_imds_revoke(l->imds);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(l->why, "401"));
}

/* Where the token is another one in each poll, the service proves who it is in each, and is asked for no side feed besides: the
 * question that is refused, the question again, the proof. */
TEST_CASE(test_proof_is_enough) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();

        for (unsigned i = 0; i < 70; i++) {
                size_t gets = fake_imds_n_gets(l->imds);

                fake_imds_revoke(l->imds);
                run(l, POLL_USEC);
                assert_int_equal(fake_imds_n_gets(l->imds) - gets, 3);
        }
        assert_int_equal(l->look, NOTICE_POLL_NONE);
}

/* A notice that comes by a new token waits for that proof, within the same look; and where the question for it gets no answer at
 * all, for no longer: the last proof counts. */
TEST_CASE(test_proof_of_a_notice) {
        static const struct {
                const char *instance;
                bool hangs;
                NoticePollResult look;
        } rows[] = { { INSTANCE, false, NOTICE_POLL_NOTICE }, { NULL, false, NOTICE_POLL_UNKNOWN }, { INSTANCE, true, NOTICE_POLL_NOTICE } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(lookout_freep) Lookout *l = calm_lookout();
                size_t gets = fake_imds_n_gets(l->imds), looks;

                l->reply_delay_usec = 100 * USEC_PER_MSEC;
                fake_imds_revoke(l->imds);
                fake_imds_set_instance_id(l->imds, rows[i].instance);
                fake_imds_set_action(l->imds, "terminate", usec_add(loop_wall(l->loop), 120 * USEC_PER_SEC));
                while (fake_imds_n_gets(l->imds) < gets + 2) /* refused, and again */
                        run(l, 10 * USEC_PER_MSEC);
                looks = l->n_all;
                if (rows[i].hangs)
                        fake_imds_hang(l->imds, FAKE_IMDS_DATA, 1);
                while (l->n_all == looks)
                        run(l, 10 * USEC_PER_MSEC);
                assert_int_equal(l->look, rows[i].look);
                /* The next look follows at once on one that took as long as their interval. */
                assert_int_equal(fake_imds_n_gets(l->imds), gets + 3 + rows[i].hangs);
                run(l, 3 * POLL_USEC);
                assert_int_equal(l->look, rows[i].look);
        }
}

TEST_CASE(test_token_life) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        size_t unknown;

        /* Renewed at half-life, and nobody notices. */
        run(l, 21600 / 2 * USEC_PER_SEC - 20 * USEC_PER_SEC);
        assert_int_equal(fake_imds_n_tokens(l->imds), 1);
        run(l, 30 * USEC_PER_SEC);
        assert_int_equal(fake_imds_n_tokens(l->imds), 2);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);

        /* A renewal that fails costs nothing while the old one is good, and is tried again. */
        fake_imds_fail(l->imds, FAKE_IMDS_TOKEN, 5, 503);
        run(l, 21600 / 2 * USEC_PER_SEC - 60 * USEC_PER_SEC);
        assert_int_equal(fake_imds_n_tokens(l->imds), 2);
        run(l, 100 * USEC_PER_SEC);
        assert_in_range(fake_imds_n_tokens(l->imds), 2 + 1, 2 + 2); /* once a minute */
        run(l, 10 * USEC_PER_MINUTE);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);
        assert_int_equal(fake_imds_n_tokens(l->imds), 2 + 5 + 1);

        /* A server that grants less is believed. */
        fake_imds_set_max_ttl(l->imds, 60);
        fake_imds_revoke(l->imds);
        run(l, 10 * USEC_PER_SEC);
        unknown = fake_imds_n_tokens(l->imds);
        run(l, 10 * USEC_PER_MINUTE);
        assert_in_range(fake_imds_n_tokens(l->imds), unknown + 17, unknown + 20);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);
}

/* A token that lives no longer than the pause between two looks is asked for anew, and not used up. */
TEST_CASE(test_short_tokens) {
        _cleanup_(lookout_freep) Lookout *l = lookout_new();
        size_t tokens;

        fake_imds_set_max_ttl(l->imds, 1);
        run(l, 5 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        tokens = fake_imds_n_tokens(l->imds);
        run(l, 10 * POLL_USEC);
        assert_int_equal(fake_imds_n_tokens(l->imds), tokens + 10);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);
}

TEST_CASE(test_nobody_listens) {
        _cleanup_(lookout_freep) Lookout *l = lookout_new();

        l->refused = true;
        run(l, 3 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(l->why, "no session token: "));
        assert_null(strstr(l->why, "HttpPutResponseHopLimit")); /* that is for answers that get lost */
        l->refused = false;
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
}

/* An instance with IPv6 alone: what has no route is not asked, and its other address is, in the same poll. That is kept for
 * as long as it answers: a machine whose IPv4 comes late finds back to it. */
TEST_CASE(test_other_endpoint) {
        _cleanup_(lookout_freep) Lookout *l = lookout_new_with(&(NoticeEc2Options){ .other_endpoint = OTHER_ENDPOINT });
        size_t tokens;

        l->no_route = ENDPOINT;
        run(l, 5 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        assert_int_equal(l->n_looks[NOTICE_POLL_UNKNOWN], 0);
        tokens = fake_imds_n_tokens(l->imds);
        fake_imds_set_action(l->imds, "terminate", usec_add(loop_wall(l->cloud), 120 * USEC_PER_SEC));
        run(l, 5 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NOTICE);
        assert_int_equal(fake_imds_n_tokens(l->imds), tokens); /* it stays there */

        l->silent = OTHER_ENDPOINT;
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        l->no_route = NULL;
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NOTICE);

        /* To neither of both, and one comes back. */
        l->no_route = "http://";
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        l->no_route = OTHER_ENDPOINT;
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NOTICE);
}

/* A service of version 1 alone, as it is strict and as it is not. */
typedef struct OldService {
        unsigned status; /* of its answers to a PUT; 0: none comes */
        bool wants_token;
        unsigned n_puts, n_gets;
} OldService;

static void on_old_service(HttpExchange *x, void *userdata) {
        OldService *o = userdata;

        if (x->method == HTTP_PUT) {
                o->n_puts++;
                if (o->status > 0)
                        http_reply_text(x, o->status, "text/plain", o->status == 200 ? "token" : "no");
                return;
        }
        o->n_gets++;
        if (o->wants_token && !http_header_find(x->headers, x->n_headers, "x-aws-ec2-metadata-token"))
                http_reply_text(x, 401, "text/plain", "");
        else if (streq(x->path, "/latest/meta-data/instance-id"))
                http_reply_text(x, 200, "text/plain", INSTANCE);
        else
                http_reply_text(x, 404, "text/plain", "");
}

TEST_CASE(test_version_1) {
        static const unsigned refusals[] = { 403, 404, 405, 0 };

        for (size_t i = 0; i < ELEMENTSOF(refusals); i++)
                for (int allow = 0; allow <= 1; allow++) {
                        Lookout *l = lookout_new_with(&(NoticeEc2Options){ .allow_v1 = allow });
                        OldService old = { .status = refusals[i] };

                        print_message("%u, %s\n", refusals[i], allow ? "allowed" : "not allowed");
                        assert_return_code(http_inproc_route(l->transport, ENDPOINT, on_old_service, &old), 0);
                        run(l, 10 * POLL_USEC);
                        assert_int_equal(l->look, allow ? NOTICE_POLL_NONE : NOTICE_POLL_UNKNOWN);
                        assert_int_equal(old.n_gets > 0, allow);
                        if (allow) {
                                assert_int_equal(old.n_puts, 1); /* not at each poll */
                                old.status = 200;
                                run(l, 11 * USEC_PER_MINUTE);
                                assert_int_equal(old.n_puts, 2); /* it is asked for again, and has one now */
                                old.wants_token = true;
                                run(l, 10 * POLL_USEC);
                                assert_int_equal(l->look, NOTICE_POLL_NONE);
                                assert_int_equal(old.n_puts, 2);
                        }
                        lookout_free(l);
                }
}

/* 404 says "none" only where an instance says who it is. */
TEST_CASE(test_stranger) {
        static const char *const ids[] = { NULL, "", "host-17", "<html>" };

        for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
                _cleanup_(lookout_freep) Lookout *l = lookout_new();

                fake_imds_set_instance_id(l->imds, ids[i]);
                run(l, 5 * POLL_USEC);
                assert_int_equal(l->n_looks[NOTICE_POLL_NONE], 0);
                assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
                assert_non_null(strstr(l->why, "gives no instance id"));

                /* And again by each new token. */
                fake_imds_set_instance_id(l->imds, INSTANCE);
                run(l, 20 * POLL_USEC);
                assert_int_equal(l->look, NOTICE_POLL_NONE);
                fake_imds_set_instance_id(l->imds, ids[i]);
                run(l, 5 * POLL_USEC);
                assert_int_equal(l->look, NOTICE_POLL_NONE);
                fake_imds_revoke(l->imds);
                run(l, 2 * POLL_USEC);
                assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        }
}

TEST_CASE(test_backoff) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        usec_t longest = 0;
        size_t looks;

        fake_imds_fail(l->imds, FAKE_IMDS_ALL, UINT32_MAX, 503);
        for (unsigned i = 0; i < 60; i++) {
                size_t before = l->n_all;

                run(l, POLL_USEC);
                if (l->n_all > before)
                        longest = MAX(longest, l->gap_usec);
        }
        assert_in_range(longest, 4 * POLL_USEC, 8 * POLL_USEC);

        /* The network came back: at once. */
        fake_imds_fail(l->imds, 0, 0, 0);
        notice_source_kick(l->source);
        run(l, 0);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        run(l, POLL_USEC);
        assert_int_equal(l->gap_usec, POLL_USEC);
        /* Without a backoff a kick changes nothing. */
        looks = l->n_all;
        notice_source_kick(l->source);
        run(l, POLL_USEC - 1);
        assert_int_equal(l->n_all, looks);
        run(l, 1);
        assert_int_equal(l->gap_usec, POLL_USEC);

        /* What failed before says nothing of the next failure; and after a kick nor does that. */
        fake_imds_fail(l->imds, FAKE_IMDS_ALL, UINT32_MAX, 503);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        looks = l->n_all;
        run(l, POLL_USEC * 12 / 10);
        assert_int_equal(l->n_all, looks + 1);
        run(l, 60 * POLL_USEC);
        notice_source_kick(l->source);
        run(l, 0);
        looks = l->n_all;
        run(l, POLL_USEC * 12 / 10);
        assert_int_equal(l->n_all, looks + 1);

        /* One look at a time, be it kicked. */
        run(l, 60 * POLL_USEC);
        fake_imds_fail(l->imds, 0, 0, 0);
        fake_imds_hang(l->imds, FAKE_IMDS_ALL, UINT32_MAX);
        looks = fake_imds_n_gets(l->imds) + fake_imds_n_tokens(l->imds);
        while (fake_imds_n_gets(l->imds) + fake_imds_n_tokens(l->imds) == looks)
                run(l, USEC_PER_MSEC);
        notice_source_kick(l->source);
        run(l, 10 * USEC_PER_MSEC);
        assert_int_equal(fake_imds_n_gets(l->imds) + fake_imds_n_tokens(l->imds), looks + 1);

        /* It comes back by itself: what failed before says nothing of the next failure. */
        fake_imds_hang(l->imds, 0, 0);
        run(l, 20 * POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        fake_imds_fail(l->imds, FAKE_IMDS_ALL, UINT32_MAX, 503);
        run(l, POLL_USEC);
        assert_int_equal(l->look, NOTICE_POLL_UNKNOWN);
        looks = l->n_all;
        run(l, POLL_USEC * 12 / 10);
        assert_int_equal(l->n_all, looks + 1);
}

/* Two that start together do not look together. */
TEST_CASE(test_start_jitter) {
        const NoticeEc2Options options = { .endpoint = ENDPOINT, .poll_usec = POLL_USEC };
        _cleanup_(lookout_freep) Lookout *l = lookout_new();
        NoticeSource *second;
        usec_t first_at;

        l->source = notice_source_free(l->source);
        assert_return_code(notice_ec2_new(&l->env, &options, on_look, l, &l->source), 0);
        assert_return_code(notice_ec2_new(&l->env, &options, on_look, l, &second), 0);
        l->source->ops->start(l->source);
        second->ops->start(second);
        while (l->n_all < 1)
                assert_int_equal(virtual_time_step(l->time, USEC_INFINITY), 1);
        first_at = l->at_usec;
        while (l->n_all < 2)
                assert_int_equal(virtual_time_step(l->time, USEC_INFINITY), 1);
        assert_true(l->at_usec > first_at + 10 * USEC_PER_MSEC);
        assert_true(l->at_usec < first_at + POLL_USEC);
        notice_source_free(second);
}

TEST_CASE(test_may_cancel) {
        _cleanup_(lookout_freep) Lookout *l = lookout_new();
        const Notice n = { .deadline_usec = T0 }, nearer = { .deadline_usec = T0 - USEC_PER_MINUTE, .own_deadline_usec = T0 };

        assert_false(notice_source_may_cancel(l->source, &n, T0 - 1));
        assert_false(notice_source_may_cancel(l->source, &n, T0 + 10 * USEC_PER_MINUTE - 1));
        assert_true(notice_source_may_cancel(l->source, &n, T0 + 10 * USEC_PER_MINUTE));
        /* Another notice has brought its time nearer. */
        assert_false(notice_source_may_cancel(l->source, &nearer, T0 + 10 * USEC_PER_MINUTE - 1));
        assert_true(notice_source_may_cancel(l->source, &nearer, T0 + 10 * USEC_PER_MINUTE));
}

TEST_CASE(test_identity) {
        static const struct {
                const char *provider_id;
                NoticeIdentity identity;
        } rows[] = {
                { "aws:///us-east-1a/i-0123456789abcdef0", NOTICE_IDENTITY_SAME },
                { "aws:////i-0123456789abcdef0", NOTICE_IDENTITY_SAME },
                { "i-0123456789abcdef0", NOTICE_IDENTITY_SAME },
                { "aws:///us-east-1a/i-0123456789abcdef1", NOTICE_IDENTITY_OTHER },
                { "aws:///us-east-1a/i-0123456789abcdef", NOTICE_IDENTITY_OTHER },
                { "aws:///us-east-1a/fargate-10.0.0.1", NOTICE_IDENTITY_UNKNOWN },
                { "aws:///us-east-1a/", NOTICE_IDENTITY_UNKNOWN },
                { "eks-hybrid:///us-east-1/c/mi-0123456789abcdef0", NOTICE_IDENTITY_UNKNOWN },
                { "exec://i-0123456789abcdef1", NOTICE_IDENTITY_UNKNOWN },
                { "/", NOTICE_IDENTITY_UNKNOWN },
                { "", NOTICE_IDENTITY_UNKNOWN },
        };
        const char *name;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("'%s'\n", rows[i].provider_id);
                assert_int_equal(notice_ec2_identity("i-0123456789abcdef0", rows[i].provider_id), rows[i].identity);
        }
        /* Before it was asked, and of a Node that names no machine. */
        _cleanup_(lookout_freep) Lookout *l = lookout_new();

        assert_int_equal(notice_source_identity(l->source, rows[3].provider_id, &name), NOTICE_IDENTITY_UNKNOWN);
        assert_int_equal(notice_source_identity(l->source, NULL, &name), NOTICE_IDENTITY_UNKNOWN);
}

/* -- the other feeds ---------------------------------------------------------------------------- */

#define EVENT(id, code, state, not_before) \
        "{\"EventId\": \"" id "\", \"Code\": \"" code "\", \"State\": \"" state "\", \"NotBefore\": \"" not_before \
        "\", \"NotAfter\": \"21 Jan 2027 09:17:23 GMT\", \"Description\": \"scheduled\"}"

TEST_CASE(test_events) {
        static const struct {
                const char *what, *body;
                int r;
                size_t n;
                const char *action; /* of the first; NULL: it has none */
                const char *time;
        } rows[] = {
                { "as documented", "[" EVENT("instance-event-0d5", "system-reboot", "active", "21 Jan 2027 09:00:43 GMT") "]", 0, 1,
                  "reboot", "2027-01-21T09:00:43Z" },
                { "one digit of the day", "[" EVENT("instance-event-1", "instance-stop", "active", "1 Feb 2027 00:00:00 GMT") "]", 0,
                  1, "stop", "2027-02-01T00:00:00Z" },
                { "a time as in other answers", "[" EVENT("a", "instance-retirement", "active", "2027-01-21T09:00:43Z") "]", 0, 1,
                  "stop", "2027-01-21T09:00:43Z" },
                { "maintenance", "[" EVENT("a", "system-maintenance", "active", "21 Jan 2027 09:00:43 GMT") "]", 0, 1, "maintenance",
                  "2027-01-21T09:00:43Z" },
                { "an instance's reboot", "[" EVENT("a", "instance-reboot", "active", "21 Jan 2027 09:00:43 GMT") "]", 0, 1, "reboot",
                  "2027-01-21T09:00:43Z" },
                { "a code that nobody knows", "[" EVENT("a", "instance-relocation", "active", "21 Jan 2027 09:00:43 GMT") "]", 0, 1,
                  NULL, "2027-01-21T09:00:43Z" },
                { "a state that nobody knows", "[" EVENT("a", "instance-stop", "pending", "21 Jan 2027 09:00:43 GMT") "]", 0, 1, "stop",
                  "2027-01-21T09:00:43Z" },
                { "completed and canceled",
                  "[" EVENT("a", "instance-stop", "completed", "21 Jan 2027 09:00:43 GMT") ","
                      EVENT("b", "instance-stop", "canceled", "") "]", 0, 0, NULL, NULL },
                { "the same one twice",
                  "[" EVENT("a", "instance-stop", "active", "21 Jan 2027 09:00:43 GMT") ","
                      EVENT("a", "instance-stop", "active", "21 Jan 2027 09:00:43 GMT") "]", 0, 1, "stop", "2027-01-21T09:00:43Z" },
                { "none", "[]", 0, 0, NULL, NULL },
                { "nothing at all", "", 0, 0, NULL, NULL },
                { "no list", "{}", -EBADMSG, 0, NULL, NULL },
                { "no JSON", "<html>", -EBADMSG, 0, NULL, NULL },
                { "no time", "[" EVENT("a", "instance-stop", "active", "soon") "]", -EBADMSG, 0, NULL, NULL },
                { "no id", "[" EVENT("", "instance-stop", "active", "21 Jan 2027 09:00:43 GMT") "]", -EBADMSG, 0, NULL, NULL },
                { "an id of a stranger", "[" EVENT("a b", "instance-stop", "active", "21 Jan 2027 09:00:43 GMT") "]", -EBADMSG, 0, NULL,
                  NULL },
                { "a number", "[7]", -EBADMSG, 0, NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *why = NULL;
                ScheduledEvent *events;
                char time[RFC3339_MAX];
                size_t n;
                bool more;

                print_message("%s\n", rows[i].what);
                assert_int_equal(ec2_events_parse(rows[i].body, strlen(rows[i].body), 8, &events, &n, &more, &why), rows[i].r);
                assert_int_equal(n, rows[i].n);
                assert_false(more);
                if (rows[i].r < 0)
                        assert_non_null(why);
                if (n > 0) {
                        assert_true(streq_ptr(events[0].action, rows[i].action));
                        rfc3339_format(events[0].not_before_usec, time);
                        assert_string_equal(time, rows[i].time);
                }
                scheduled_events_free(events, n);
        }
}

TEST_CASE(test_more_events_than_fit) {
        const char *body = "[" EVENT("a", "instance-stop", "active", "21 Jan 2027 09:00:43 GMT") ","
                EVENT("b", "instance-stop", "active", "21 Jan 2027 09:00:43 GMT") "]", *why;
        ScheduledEvent *events;
        size_t n;
        bool more;

        assert_return_code(ec2_events_parse(body, strlen(body), 1, &events, &n, &more, &why), 0);
        assert_int_equal(n, 1);
        assert_true(more);
        scheduled_events_free(events, n);
}

TEST_CASE(test_lifecycle) {
        static const struct {
                const char *body;
                int r;
                bool goes;
        } rows[] = {
                { "InService", 0, false },          { "Terminated", 0, true },       { "Terminated\n", 0, true },
                { "Warmed:Terminated", 0, true },   { "Warmed:Stopped", 0, false },  { "Detached", 0, false },
                { "Standby", 0, false },            { "SomethingNew", 0, false },    { "", -EBADMSG, false },
                { "<html>", -EBADMSG, false },      { "Terminated now", -EBADMSG, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *why;
                bool goes = false;

                assert_int_equal(ec2_lifecycle_parse(rows[i].body, strlen(rows[i].body), &goes, &why), rows[i].r);
                assert_int_equal(goes, rows[i].goes);
        }
}

/* Each of the other feeds announces, takes back, and says nothing while it cannot be read. */
TEST_CASE(test_side_feeds) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        SideLook *events = NULL, *rebalance, *lifecycle;
        usec_t in_a_day = usec_add(loop_wall(l->loop), USEC_PER_DAY);
        _cleanup_free_ char *body = NULL;
        char time[RFC3339_MAX];

        rfc3339_format(in_a_day, time);
        body = strf("[{\"EventId\": \"instance-event-7\", \"Code\": \"system-reboot\", \"State\": \"active\", \"NotBefore\": \"%s\"}]",
                    time);
        fake_imds_set_text(l->imds, "events/maintenance/scheduled", body);
        fake_imds_set_text(l->imds, "events/recommendations/rebalance", "{\"noticeTime\":\"2026-10-26T08:22:00Z\"}");
        fake_imds_set_text(l->imds, "autoscaling/target-lifecycle-state", "Terminated");
        run(l, 70 * USEC_PER_SEC);
        events = side_of(l, "events/maintenance/scheduled");
        rebalance = side_of(l, "events/recommendations/rebalance");
        lifecycle = side_of(l, "autoscaling/target-lifecycle-state");

        assert_int_equal(events->n, 1);
        assert_string_equal(events->notices[0]->id, "instance-event-7");
        assert_int_equal(events->notices[0]->kind, NOTICE_MAINTENANCE);
        assert_string_equal(events->notices[0]->action, "reboot");
        assert_true(events->notices[0]->announced_usec == in_a_day - in_a_day % USEC_PER_SEC);
        assert_in_range(events->notices[0]->deadline_usec, loop_from_wall(l->loop, in_a_day) - USEC_PER_SEC,
                        loop_from_wall(l->loop, in_a_day) + USEC_PER_SEC);
        assert_false(events->notices[0]->estimated);
        assert_int_equal(rebalance->n, 1);
        assert_string_equal(rebalance->notices[0]->id, INSTANCE "-rebalance-2026-10-26T08:22:00Z");
        assert_int_equal(rebalance->notices[0]->certainty, NOTICE_ADVISORY);
        assert_true(rebalance->notices[0]->deadline_usec == USEC_INFINITY);
        assert_int_equal(lifecycle->n, 1);
        assert_string_equal(lifecycle->notices[0]->id, INSTANCE "-scale-in-boot-1");
        assert_string_equal(lifecycle->notices[0]->action, "terminate");
        assert_int_equal(l->look, NOTICE_POLL_NONE); /* of spot, by itself */

        fake_imds_set_text(l->imds, "events/maintenance/scheduled", "{}");
        fake_imds_set_text(l->imds, "autoscaling/target-lifecycle-state", "InService");
        run(l, 70 * USEC_PER_SEC);
        assert_int_equal(events->result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(events->why, "is no JSON list"));
        assert_int_equal(lifecycle->result, NOTICE_POLL_NONE);
        fake_imds_set_text(l->imds, "events/maintenance/scheduled", NULL);
        run(l, 70 * USEC_PER_SEC);
        assert_int_equal(events->result, NOTICE_POLL_NONE);
}

/* The end of a Capacity Block, from the instance's tag: EC2 begins to terminate half an hour before it. One that is moved is
 * another notice; what cannot be read takes nothing back. */
TEST_CASE(test_capacity_block) {
        static const struct {
                const char *body;
                int r;
        } rows[] = {
                { "2027-01-21T11:30:00Z", 0 },    { "2027-01-21T11:30:00Z\n", 0 }, { " 2027-01-21T12:30:00+01:00 ", 0 },
                { "2027-01-21", -EBADMSG },       { "", -EBADMSG },                { "tomorrow", -EBADMSG },
                { "2027-01-21T11:30:00Z 2027-01-21T11:30:00Z 2027-01-21T11:30:00Z 2027-01-21T11:30:00Z", -EBADMSG },
        };
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        usec_t end = usec_add(loop_wall(l->cloud), 5 * USEC_PER_HOUR), at;
        char time[RFC3339_MAX];
        const char *why;
        SideLook *block;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                assert_int_equal(ec2_capacity_end_parse(rows[i].body, strlen(rows[i].body), &at, &why), rows[i].r);
                assert_true(rows[i].r < 0 || at == UINT64_C(1800531000) * USEC_PER_SEC);
        }

        block = side_of(l, "tags/instance/vesper.sh:capacity-block-end");
        assert_int_equal(block->result, NOTICE_POLL_NONE);
        end -= end % USEC_PER_SEC;
        rfc3339_format(end, time);
        fake_imds_set_text(l->imds, "tags/instance/vesper.sh:capacity-block-end", time);
        run(l, 6 * USEC_PER_MINUTE);
        assert_int_equal(block->n, 1);
        assert_int_equal(block->notices[0]->kind, NOTICE_CAPACITY_BLOCK);
        assert_string_equal(block->notices[0]->action, "terminate");
        assert_true(startswith(block->notices[0]->id, INSTANCE "-capacity-block-"));
        assert_true(block->notices[0]->announced_usec == end - 30 * USEC_PER_MINUTE);
        assert_in_range(block->notices[0]->deadline_usec, loop_from_wall(l->loop, end) - 30 * USEC_PER_MINUTE - USEC_PER_SEC,
                        loop_from_wall(l->loop, end) - 30 * USEC_PER_MINUTE + USEC_PER_SEC);

        fake_imds_set_text(l->imds, "tags/instance/vesper.sh:capacity-block-end", "when it ends");
        run(l, 6 * USEC_PER_MINUTE);
        assert_int_equal(block->result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(block->why, "vesper.sh:capacity-block-end is no time"));
        rfc3339_format(end + USEC_PER_DAY, time);
        fake_imds_set_text(l->imds, "tags/instance/vesper.sh:capacity-block-end", time);
        run(l, 6 * USEC_PER_MINUTE);
        assert_non_null(strstr(block->notices[0]->id, time));
        fake_imds_set_text(l->imds, "tags/instance/vesper.sh:capacity-block-end", NULL);
        run(l, 6 * USEC_PER_MINUTE);
        assert_int_equal(block->result, NOTICE_POLL_NONE);
}

/* What they announce is theirs, and nobody else's answer says anything about it. */
TEST_CASE(test_who_announces) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        static const struct {
                const char *feed;
                NoticeKind kind;
        } rows[] = {
                { "spot/instance-action", NOTICE_SPOT },
                { "autoscaling/target-lifecycle-state", NOTICE_SCALE_IN },
                { "events/recommendations/rebalance", NOTICE_REBALANCE },
                { "events/maintenance/scheduled", NOTICE_MAINTENANCE },
                { "tags/instance/vesper.sh:capacity-block-end", NOTICE_CAPACITY_BLOCK },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                for (size_t k = 0; k < ELEMENTSOF(rows); k++)
                        assert_int_equal(notice_source_announces(l->source, rows[i].feed,
                                                                 &(Notice){ .kind = rows[k].kind, .source = (char *) (uintptr_t) "ec2" }),
                                         i == k);
}

/* A feed that hangs holds up no poll. */
TEST_CASE(test_side_hangs) {
        _cleanup_(lookout_freep) Lookout *l = calm_lookout();
        size_t looks = l->n_all;

        l->reply_delay_usec = 900 * USEC_PER_MSEC; /* two answers in a poll take as long as the poll, nearly */
        run(l, 20 * POLL_USEC);
        assert_in_range(l->n_all - looks, 19, 20);
        l->reply_delay_usec = 1100 * USEC_PER_MSEC;
        run(l, 20 * POLL_USEC);
        assert_in_range(l->n_all - looks, 38, 40);
        assert_int_equal(l->look, NOTICE_POLL_NONE);
        assert_int_equal(side_of(l, "autoscaling/target-lifecycle-state")->result, NOTICE_POLL_UNKNOWN);
        assert_non_null(strstr(side_of(l, "autoscaling/target-lifecycle-state")->why, "before the next poll"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events),
                cmocka_unit_test(test_more_events_than_fit),
                cmocka_unit_test(test_lifecycle),
                cmocka_unit_test(test_side_feeds),
                cmocka_unit_test(test_capacity_block),
                cmocka_unit_test(test_who_announces),
                cmocka_unit_test(test_other_endpoint),
                cmocka_unit_test(test_version_1),
                cmocka_unit_test(test_side_hangs),
                cmocka_unit_test(test_proof_is_enough),
                cmocka_unit_test(test_proof_of_a_notice),
                cmocka_unit_test(test_left),      cmocka_unit_test(test_parse),
                cmocka_unit_test(test_instance_id),   cmocka_unit_test(test_steady),
                cmocka_unit_test(test_notice),        cmocka_unit_test(test_without_date),
                cmocka_unit_test(test_clock_is_set),  cmocka_unit_test(test_next_notice),
                cmocka_unit_test(test_implausible_date), cmocka_unit_test(test_slow_answers),
                cmocka_unit_test(test_stranger_then_notice), cmocka_unit_test(test_answers),
                cmocka_unit_test(test_token_trouble), cmocka_unit_test(test_revoked),
                cmocka_unit_test(test_token_life),    cmocka_unit_test(test_stranger),
                cmocka_unit_test(test_short_tokens),  cmocka_unit_test(test_nobody_listens),
                cmocka_unit_test(test_backoff),       cmocka_unit_test(test_start_jitter),
                cmocka_unit_test(test_may_cancel),
                cmocka_unit_test(test_identity),
        };
        return cmocka_run_group_tests_name("notice-ec2", tests, NULL, NULL);
}
