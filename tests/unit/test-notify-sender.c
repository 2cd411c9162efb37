/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "awake-check.h"
#include "cmocka-test.h"
#include "log.h"
#include "notify-receiver.h"
#include "notify-sender.h"
#include "refusing-transport.h"
#include "texts.h"

#define S USEC_PER_SEC
#define NOW (UINT64_C(1800000000) * S)

static const MetricFamily families[] = { NOTIFY_METRIC("t") };

typedef struct World {
        VirtualTime *time;
        Loop *loop;
        Random *random;
        Log *log;
        HttpTransport *transport;
        Metrics *metrics;
        Env env;
        NotifySettings settings;
        NotifySender *sender;
        Receiver receiver;
        HttpLane lane; /* of the last request */
        bool used_proxy;
        StrBuf said;
} World;

static void on_log(LogLevel level, const char *id, const char *text, const LogField *fields, size_t n_fields, void *userdata) {
        strbuf_addf(userdata, "%s\n", text);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        World *w = userdata;

        w->lane = request->lane;
        w->used_proxy = request->use_proxy;
}

static World *world_new(void) {
        World *w = new0(World, 1);
        const HttpInprocHooks hooks = { .on_request = on_request, .userdata = w };

        assert_non_null(w);
        w->receiver.status = 200;
        assert_return_code(virtual_time_new(NOW, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        assert_return_code(random_new(1, &w->random), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_DEBUG, "t", &w->log), 0);
        log_set_hook(w->log, on_log, &w->said);
        assert_return_code(http_inproc_new(w->loop, NULL, &hooks, &w->transport), 0);
        assert_return_code(http_inproc_route(w->transport, RECEIVER_ORIGIN, receiver_handle, &w->receiver), 0);
        assert_return_code(metrics_new(families, 1, &w->metrics), 0);
        w->env = (Env){ .loop = w->loop, .random = w->random, .log = w->log, .transport = w->transport };
        w->settings = (NotifySettings){ .url = (char *) RECEIVER_URL, .timeout_usec = 10 * S };
        return w;
}

static void start(World *w, size_t max_messages) {
        const NotifySenderOptions o = { .env = &w->env,
                                        .settings = &w->settings,
                                        .reporter = "vesper-agent",
                                        .metrics = w->metrics,
                                        .max_messages = max_messages,
                                        .max_bytes = max_messages > 1000 ? 8u * 1024 * 1024 : 128u * 1024 };

        assert_return_code(notify_sender_new(&o, &w->sender), 0);
}

static World *world_free(World *w) {
        notify_sender_free(w->sender);
        http_transport_free(w->transport);
        metrics_free(w->metrics);
        log_free(w->log);
        random_free(w->random);
        loop_free(w->loop);
        virtual_time_free(w->time);
        receiver_done(&w->receiver);
        strbuf_done(&w->said);
        return mfree(w);
}
DEFINE_FREEP(World, world_free);

static void check_awake(World *w) {
        if (w->sender)
                assert_true(assert_awake(w->loop, notify_sender_next_wakeup, w->sender) >= notify_sender_n_waiting(w->sender));
}

static void run(World *w, usec_t usec) {
        usec_t until = virtual_time_now(w->time) + usec;

        check_awake(w);
        while (virtual_time_step(w->time, until) > 0)
                ;
        check_awake(w);
}

static void tell(World *w, const char *node, NotifyPhase phase, usec_t left_usec) {
        notify_sender_tell(w->sender, &(NotifyFacts){ .phase = phase,
                                                      .node = node,
                                                      .node_uid = node,
                                                      .notice_id = "i-1",
                                                      .deadline_usec = left_usec == USEC_INFINITY ? left_usec : loop_wall(w->loop) + left_usec,
                                                      .pods_left = -1 });
}

static uint64_t counted(const World *w, NotifyOutcome outcome) {
        uint64_t n = 0;

        for (size_t p = 0; p < _NOTIFY_PHASE_MAX; p++)
                n += (uint64_t) metrics_value(w->metrics, 0, metrics_index(w->metrics, 0, (size_t[METRIC_LABELS_MAX]){ outcome, p }));
        return n;
}

#define assert_counts(w, sent, failed, dropped) \
        do { \
                assert_int_equal(counted(w, NOTIFY_OUTCOME_SENT), sent); \
                assert_int_equal(counted(w, NOTIFY_OUTCOME_FAILED), failed); \
                assert_int_equal(counted(w, NOTIFY_OUTCOME_DROPPED), dropped); \
        } while (0)

#define assert_got(w, expected) assert_string_equal(strbuf_str(&(w)->receiver.got), expected)

TEST_CASE(test_sent) {
        _cleanup_(world_freep) World *w = world_new();
        char key[NOTIFY_KEY_MAX];

        start(w, 32);
        tell(w, "n1", NOTIFY_NOTICED, 120 * S);
        assert_int_equal(w->receiver.n, 0); /* nothing leaves inside the call */
        tell(w, "n1", NOTIFY_CORDONED, 120 * S);
        tell(w, "n1", NOTIFY_DRAINED, 120 * S);
        assert_int_equal(assert_awake(w->loop, notify_sender_next_wakeup, w->sender), 4); /* three, and the turn of the first */
        run(w, S);
        assert_got(w, "n1 noticed 200\nn1 cordoned 200\nn1 drained 200\n");
        assert_int_equal(w->lane, HTTP_LANE_NOTIFY);
        assert_true(w->used_proxy);
        assert_int_equal(notify_sender_n_waiting(w->sender), 0);
        assert_counts(w, 3, 0, 0);
        assert_return_code(notify_key(&(NotifyFacts){ .phase = NOTIFY_DRAINED, .node_uid = "n1", .notice_id = "i-1" }, key), 0);
        assert_string_equal(w->receiver.key, key);
        assert_non_null(strstr(strbuf_str(&w->receiver.last), key));
        assert_non_null(strstr(strbuf_str(&w->receiver.last), "\"reporter\":\"vesper-agent\""));
        assert_string_equal(w->receiver.type, "application/json");
        assert_string_equal(w->receiver.signature, "");
        assert_string_equal(strbuf_str(&w->said), "");
}

TEST_CASE(test_nobody) {
        static char *phases[] = { (char *) "drained", NULL };
        _cleanup_(world_freep) World *w = world_new();

        notify_sender_tell(NULL, &(NotifyFacts){ .phase = NOTIFY_NOTICED });
        w->settings.url = NULL;
        start(w, 32);
        tell(w, "n1", NOTIFY_NOTICED, 120 * S);
        run(w, S);
        assert_int_equal(notify_sender_n_waiting(w->sender), 0);
        assert_counts(w, 0, 0, 0);
        print_message("told once a reload names somebody, and only what is to be told\n");
        w->settings.url = (char *) RECEIVER_URL;
        w->settings.phases = phases;
        notify_sender_reload(w->sender);
        tell(w, "n1", NOTIFY_NOTICED, 120 * S);
        tell(w, "n1", NOTIFY_DRAINED, 120 * S);
        run(w, S);
        assert_got(w, "n1 drained 200\n");
}

/* Down for a while: all of it comes later, in order, and the log says so once each way. */
TEST_CASE(test_down) {
        _cleanup_(world_freep) World *w = world_new();
        const char *first;

        start(w, 32);
        w->receiver.status = 503;
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        tell(w, "n1", NOTIFY_CORDONED, USEC_INFINITY);
        tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
        run(w, 5 * USEC_PER_MINUTE);
        assert_int_equal(notify_sender_n_waiting(w->sender), 3);
        assert_in_range(w->receiver.n, 5, 14); /* 1, 2, 4 ... 60 s apart */
        assert_null(strstr(strbuf_str(&w->receiver.got), "cordoned"));
        strbuf_truncate(&w->receiver.got, 0);
        w->receiver.status = 200;
        run(w, 2 * USEC_PER_MINUTE);
        assert_got(w, "n1 noticed 200\nn1 cordoned 200\nn1 drained 200\n");
        assert_counts(w, 3, 0, 0);
        first = strstr(strbuf_str(&w->said), "The receiver of [Notify] was not told that node n1 is in phase noticed: it answers with HTTP 503.");
        assert_non_null(first);
        assert_null(strstr(strchr(first, '\n'), "was not told"));
        assert_non_null(strstr(first, "takes messages again; 0 were lost meanwhile."));
        assert_null(strstr(strbuf_str(&w->said), "s3cr3t"));
}

TEST_CASE(test_retry_after) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        w->receiver.status = 429;
        w->receiver.retry_after = "90";
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        run(w, 89 * S);
        assert_int_equal(w->receiver.n, 1);
        w->receiver.retry_after = "86400"; /* five minutes are believed */
        run(w, 2 * S);
        assert_int_equal(w->receiver.n, 2);
        run(w, 5 * USEC_PER_MINUTE);
        assert_int_equal(w->receiver.n, 3);
}

/* After the machine's end it is no news; a message that is not wanted does not hold up the next. */
TEST_CASE(test_given_up) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        w->receiver.status = 500;
        tell(w, "n1", NOTIFY_NOTICED, 120 * S);
        run(w, 119 * S);
        assert_int_equal(notify_sender_n_waiting(w->sender), 1);
        run(w, 60 * S);
        assert_int_equal(notify_sender_n_waiting(w->sender), 0);
        assert_counts(w, 0, 1, 0);
        w->receiver.status = 400;
        tell(w, "n1", NOTIFY_CORDONED, 120 * S);
        run(w, S);
        assert_counts(w, 0, 2, 0);
        w->receiver.status = 204;
        tell(w, "n1", NOTIFY_DRAINED, 120 * S);
        run(w, S);
        assert_counts(w, 1, 2, 0);
        assert_non_null(strstr(strbuf_str(&w->said), "2 were lost meanwhile"));
}

static size_t times_said(const World *w, const char *text) {
        return text_count(strbuf_str(&w->said), text);
}

/* An hour after the last line, to the microsecond, a refusal is logged again. */
TEST_CASE(test_refused_is_logged_again) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        w->receiver.status = 400;
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        run(w, 0);
        assert_int_equal(times_said(w, "does not want"), 1);
        run(w, USEC_PER_HOUR - 1);
        tell(w, "n1", NOTIFY_CORDONED, USEC_INFINITY);
        run(w, 0);
        assert_counts(w, 0, 2, 0);
        assert_int_equal(times_said(w, "does not want"), 1);
        run(w, 1);
        tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
        run(w, 0);
        assert_int_equal(times_said(w, "does not want"), 2);
}

/* One phase is not wanted, the next is: that is said once an hour, and is no failure of the receiver. */
TEST_CASE(test_refused) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        for (unsigned i = 0; i < 10; i++) {
                w->receiver.status = 400;
                tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
                run(w, S);
                w->receiver.status = 200;
                tell(w, "n1", NOTIFY_CORDONED, USEC_INFINITY);
                run(w, S);
        }
        assert_counts(w, 10, 10, 0);
        assert_int_equal(times_said(w, "\n"), 1);
        assert_int_equal(times_said(w, "does not want the message that node n1 is in phase noticed: it answers with HTTP 400, and the message is dropped. The"), 1);
        run(w, USEC_PER_HOUR);
        w->receiver.status = 422;
        tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
        run(w, S);
        assert_int_equal(times_said(w, "HTTP 422, and the message is dropped. So were 9 others since that was said last."), 1);
        run(w, USEC_PER_HOUR);
        w->receiver.status = 413;
        for (unsigned i = 0; i < 3; i++) {
                tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
                run(w, S);
        }
        assert_int_equal(times_said(w, "HTTP 413, and the message is dropped. The"), 1); /* none but the first since then */
        run(w, USEC_PER_HOUR);
        w->receiver.status = 415;
        tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
        run(w, S);
        assert_int_equal(times_said(w, "HTTP 415, and the message is dropped. So were 2 others since that was said last."), 1);
        assert_int_equal(times_said(w, "is dropped"), 4);
        print_message("what was refused before a failure is not lost in it\n");
        w->receiver.status = 200;
        tell(w, "n1", NOTIFY_CORDONED, USEC_INFINITY);
        run(w, S);
        w->receiver.status = 503;
        tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
        run(w, S);
        w->receiver.status = 200;
        run(w, 2 * USEC_PER_MINUTE);
        assert_int_equal(times_said(w, "takes messages again; 0 were lost meanwhile."), 1);
}

/* Hangs for ever: as many requests as are allowed, as much memory, and what is dropped is the oldest. */
TEST_CASE(test_hangs) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 8);
        w->receiver.status = 0;
        for (unsigned i = 0; i < 100; i++) {
                char node[8];

                (void) snprintf(node, sizeof(node), "n%u", i);
                tell(w, node, NOTIFY_NOTICED, USEC_INFINITY);
                if (i == 3)
                        run(w, S); /* four are under way */
        }
        run(w, 5 * S);
        assert_int_equal(w->receiver.n_open_max, NOTIFY_IN_FLIGHT_MAX);
        assert_int_equal(notify_sender_n_in_flight(w->sender), NOTIFY_IN_FLIGHT_MAX);
        assert_int_equal(notify_sender_n_waiting(w->sender), 8);
        assert_counts(w, 0, 0, 92);
        run(w, USEC_PER_MINUTE); /* time-outs: one at a time from now on */
        assert_true(notify_sender_n_in_flight(w->sender) <= 1);
        w->receiver.status = 200;
        strbuf_truncate(&w->receiver.got, 0);
        run(w, 10 * USEC_PER_MINUTE);
        assert_counts(w, 8, 0, 92);
        assert_non_null(strstr(strbuf_str(&w->receiver.got), "n0 noticed 200\n"));
        assert_non_null(strstr(strbuf_str(&w->receiver.got), "n99 noticed 200\n"));
        assert_null(strstr(strbuf_str(&w->receiver.got), "n50 "));
        assert_non_null(strstr(strbuf_str(&w->said), "92 were lost meanwhile"));
}

/* Bodies count as well as messages. */
TEST_CASE(test_bytes) {
        _cleanup_strbuf_ StrBuf t = { 0 };
        _cleanup_(world_freep) World *w = world_new();

        for (unsigned i = 0; i < 8192; i++)
                strbuf_add_char(&t, 'x');
        w->settings.template_text = t.data;
        start(w, 1000);
        w->receiver.status = 0;
        for (unsigned i = 0; i < 100; i++)
                tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        assert_int_equal(notify_sender_n_waiting(w->sender), 128 * 1024 / 8192);
        assert_counts(w, 0, 0, 100 - 128 * 1024 / 8192);
}

/* A request that is under way when its message is no news any more ends by its own answer. */
TEST_CASE(test_in_flight_at_the_end) {
        _cleanup_(world_freep) World *w = world_new();

        w->settings.timeout_usec = 300 * S;
        start(w, 32);
        w->receiver.status = 0;
        tell(w, "n1", NOTIFY_NOTICED, 120 * S);
        run(w, 290 * S);
        assert_int_equal(notify_sender_n_in_flight(w->sender), 1);
        assert_counts(w, 0, 0, 0);
        run(w, 20 * S);
        assert_int_equal(notify_sender_n_waiting(w->sender), 0);
        assert_int_equal(notify_sender_n_in_flight(w->sender), 0);
        assert_counts(w, 0, 1, 0);
        assert_int_equal(w->receiver.n, 1);
}

/* Nothing can be dropped while all messages are under way. */
TEST_CASE(test_no_room) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, NOTIFY_IN_FLIGHT_MAX);
        w->receiver.status = 0;
        for (unsigned i = 0; i < NOTIFY_IN_FLIGHT_MAX; i++) {
                char node[8];

                (void) snprintf(node, sizeof(node), "n%u", i);
                tell(w, node, NOTIFY_NOTICED, USEC_INFINITY);
        }
        run(w, S);
        assert_int_equal(notify_sender_n_in_flight(w->sender), NOTIFY_IN_FLIGHT_MAX);
        tell(w, "late", NOTIFY_NOTICED, USEC_INFINITY);
        assert_counts(w, 0, 0, 1);
        assert_int_equal(notify_sender_n_waiting(w->sender), NOTIFY_IN_FLIGHT_MAX);
}

/* A reload takes the receiver away, and another one names a receiver again: what waited meanwhile is sent at once. */
TEST_CASE(test_receiver_is_named_again) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        w->settings.url = NULL;
        notify_sender_reload(w->sender);
        run(w, USEC_PER_MINUTE);
        assert_got(w, "");
        assert_int_equal(notify_sender_n_waiting(w->sender), 1);
        w->settings.url = (char *) RECEIVER_URL;
        notify_sender_reload(w->sender);
        run(w, USEC_PER_SEC / 10);
        assert_got(w, "n1 noticed 200\n");
}

/* A request that cannot begin is a failure like any other. */
TEST_CASE(test_cannot_send) {
        HttpTransport refusing = REFUSING_TRANSPORT;
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        w->env.transport = &refusing;
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        tell(w, "n1", NOTIFY_DRAINED, USEC_INFINITY);
        run(w, USEC_PER_MINUTE);
        assert_int_equal(notify_sender_n_waiting(w->sender), 2);
        assert_int_equal(notify_sender_n_in_flight(w->sender), 0);
        assert_int_equal(times_said(w, "The receiver of [Notify] was not told that node n1 is in phase noticed: "), 1);
        assert_int_equal(times_said(w, "\n"), 1);
        w->env.transport = w->transport;
        run(w, 2 * USEC_PER_MINUTE);
        assert_got(w, "n1 noticed 200\nn1 drained 200\n");
        assert_int_equal(times_said(w, "takes messages again; 0 were lost meanwhile."), 1);
}

/* One node's trouble is not another's, and each one's order stands. */
TEST_CASE(test_nodes) {
        _cleanup_(world_freep) World *w = world_new();
        const char *text;

        start(w, 1000);
        for (unsigned i = 0; i < 200; i++) {
                char node[8];

                (void) snprintf(node, sizeof(node), "n%u", i);
                tell(w, node, NOTIFY_NOTICED, USEC_INFINITY);
                tell(w, node, NOTIFY_DRAINED, USEC_INFINITY);
        }
        run(w, S);
        assert_counts(w, 400, 0, 0);
        text = strbuf_str(&w->receiver.got);
        for (unsigned i = 0; i < 200; i++) {
                char noticed[32], drained[32];

                (void) snprintf(noticed, sizeof(noticed), "n%u noticed", i);
                (void) snprintf(drained, sizeof(drained), "n%u drained", i);
                assert_true(strstr(text, noticed) < strstr(text, drained));
        }
}

static void put(const char *path, const char *text) {
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

/* Each try has its own time and signature; a secret that cannot be read any more leaves the old one in force. */
TEST_CASE(test_signed) {
        char folder[] = "/tmp/notify-sender-XXXXXX", signature[NOTIFY_SIGNATURE_MAX], before[80];
        _cleanup_free_ char *secret = NULL, *headers = NULL;
        _cleanup_(world_freep) World *w = world_new();

        assert_non_null(mkdtemp(folder));
        secret = strf("%s/secret", folder);
        headers = strf("%s/headers", folder);
        put(secret, "key one\n");
        put(headers, "Content-Type: text/plain\nAuthorization: Bearer t0ken\n");
        w->settings.secret_file = secret;
        w->settings.headers_file = headers;
        start(w, 32);
        w->receiver.status = 503;
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        run(w, 100 * USEC_PER_MSEC);
        assert_string_equal(w->receiver.timestamp, "1800000000");
        assert_return_code(notify_sign("key one", 7, 1800000000, strbuf_str(&w->receiver.last), signature), 0);
        assert_string_equal(w->receiver.signature, signature);
        assert_string_equal(w->receiver.type, "text/plain");
        assert_string_equal(w->receiver.authorization, "Bearer t0ken");
        (void) snprintf(before, sizeof(before), "%s", w->receiver.signature);

        assert_return_code(unlink(secret), 0);
        notify_sender_reload(w->sender);
        assert_non_null(strstr(strbuf_str(&w->said), "SecretFile="));
        assert_non_null(strstr(strbuf_str(&w->said), "Others are told as before"));
        run(w, 3 * S);
        assert_string_not_equal(w->receiver.timestamp, "1800000000");
        assert_string_not_equal(w->receiver.signature, before);

        put(secret, "key two");
        notify_sender_reload(w->sender);
        w->receiver.status = 200;
        run(w, USEC_PER_MINUTE);
        assert_return_code(notify_sign("key two", 7, strtoull(w->receiver.timestamp, NULL, 10), strbuf_str(&w->receiver.last), signature), 0);
        assert_string_equal(w->receiver.signature, signature);
        assert_null(strstr(strbuf_str(&w->said), "t0ken"));
        assert_null(strstr(strbuf_str(&w->said), "key"));
        assert_null(strstr(strbuf_str(&w->said), "s3cr3t"));
        assert_return_code(unlink(secret), 0);
        assert_return_code(unlink(headers), 0);
        assert_return_code(rmdir(folder), 0);
}

/* Gone with calls under way. */
TEST_CASE(test_freed) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 32);
        w->receiver.status = 0;
        tell(w, "n1", NOTIFY_NOTICED, USEC_INFINITY);
        tell(w, "n2", NOTIFY_NOTICED, USEC_INFINITY);
        run(w, S);
        assert_int_equal(notify_sender_n_in_flight(w->sender), 2);
        w->sender = notify_sender_free(w->sender);
        run(w, USEC_PER_MINUTE);
        assert_int_equal(http_inproc_pending(w->transport), 0);
}

/* Sends n messages, two of each node, through a receiver that fails for down_usec first. Returns the number
 * of visits per request. */
static uint64_t steps_of(unsigned n, usec_t down_usec) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, n);
        w->receiver.status = 503;
        for (unsigned i = 0; i < n; i++) {
                char node[16];

                (void) snprintf(node, sizeof(node), "n%u", i % (n / 2));
                tell(w, node, i < n / 2 ? NOTIFY_NOTICED : NOTIFY_DRAINED, USEC_INFINITY);
        }
        run(w, down_usec);
        assert_int_equal(notify_sender_n_waiting(w->sender), n);
        w->receiver.status = 200;
        run(w, 10 * USEC_PER_MINUTE);
        assert_counts(w, n, 0, 0);
        assert_in_range(w->receiver.n, n, 100 * n);
        return notify_sender_n_steps(w->sender) / w->receiver.n;
}

/* The visits per request do not grow with the number of messages that wait. */
TEST_CASE(test_steps) {
        for (unsigned n = 64; n <= 1024; n *= 4) {
                uint64_t up = steps_of(n, 0), down = steps_of(n, 5 * S);

                print_message("%u messages: %" PRIu64 " visits per request, %" PRIu64 " after a failure\n", n, up, down);
                assert_true(up <= 4);
                assert_true(down <= 4);
        }
}

/* A full queue drops its oldest message without a walk over those that stay. */
TEST_CASE(test_steps_of_a_full_queue) {
        _cleanup_(world_freep) World *w = world_new();

        start(w, 1024);
        w->receiver.status = 0;
        for (unsigned i = 0; i < 4096; i++) {
                char node[16];

                (void) snprintf(node, sizeof(node), "n%u", i);
                tell(w, node, NOTIFY_NOTICED, USEC_INFINITY);
                if (i == 3)
                        run(w, S); /* four are under way, and stay the oldest */
        }
        assert_counts(w, 0, 0, 3072);
        assert_in_range(notify_sender_n_steps(w->sender), 3072, 4096 * (2 + NOTIFY_IN_FLIGHT_MAX));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sent),   cmocka_unit_test(test_nobody), cmocka_unit_test(test_down),
                cmocka_unit_test(test_retry_after), cmocka_unit_test(test_refused),
                        cmocka_unit_test(test_refused_is_logged_again), cmocka_unit_test(test_given_up),
                        cmocka_unit_test(test_hangs),
                cmocka_unit_test(test_bytes), cmocka_unit_test(test_in_flight_at_the_end),
                        cmocka_unit_test(test_cannot_send), cmocka_unit_test(test_no_room),
                        cmocka_unit_test(test_receiver_is_named_again),  cmocka_unit_test(test_nodes),
                        cmocka_unit_test(test_signed),
                cmocka_unit_test(test_freed),  cmocka_unit_test(test_steps),  cmocka_unit_test(test_steps_of_a_full_queue),
        };

        return cmocka_run_group_tests_name("notify-sender", tests, NULL, NULL);
}
