/* SPDX-License-Identifier: Apache-2.0 */
/* What one stream's or one connection's fault does to the others: at the transport, many calls at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "cmocka-test.h"
#include "h2-rig.h"

#define CALLS_MAX 64
/* Timeout of a call that must time out: the test skips this time once the request is sent. Other calls have
 * twice as much. */
#define TIMEOUT_USEC (H2_PATIENCE_USEC / 2)

/* -- helpers -------------------------------------------------------------------------------------------- */

/* Requests for /hold... get no answer from the server until the test gives one. */
static bool hold(H2Stream *s, void *userdata) {
        return strncmp(s->path, "/hold", 5) == 0;
}

static void bulk(H2World *w, H2Call *c, const char *path) {
        h2_call_start(w, c, path, (HttpRequest){ .lane = HTTP_LANE_BULK });
}

#define assert_outcome(c, expected) \
        do { \
                if (!streq(h2_call_outcome(c), (expected))) \
                        fail_msg("a call ended with %s, expected %s", h2_call_outcome(c), (expected)); \
        } while (0)

static void finish_with(H2Call *c, const char *expected) {
        h2_call_finish(c);
        assert_outcome(c, expected);
}

typedef struct Requests {
        H2World *world;
        unsigned n;
} Requests;

static bool have_requests(void *userdata) {
        const Requests *r = userdata;

        return h2_server_stats(r->world->server).requests >= r->n;
}

/* The server has seen so many requests since it began. */
static void wait_requests(H2World *w, unsigned n) {
        Requests r = { w, n };

        h2_run_until(w, have_requests, &r, "requests at the server");
}

static bool have_client_resets(void *userdata) {
        const Requests *r = userdata;

        return h2_server_stats(r->world->server).client_resets >= r->n;
}

static bool is_told(void *userdata) {
        return have_client_resets(userdata) ||
               h2_server_stats(((Requests *) userdata)->world->server).open == 0;
}

static bool have_pongs(void *userdata) {
        const Requests *r = userdata;

        return h2_server_stats(r->world->server).pongs >= r->n;
}

static void warm(H2World *w, HttpLane lane) {
        H2Call c;

        h2_call_start(w, &c, "/warm", (HttpRequest){ .lane = lane });
        finish_with(&c, "200");
        assert_int_equal(c.http_version, 20);
}

/* -- GOAWAY --------------------------------------------------------------------------------------------- */

/* Of six streams in flight three are below the last one: those are answered, the others were not served. The
 * three come through on the old connection while a new call already uses another. */
TEST_CASE(goaway_splits_the_streams) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call calls[6], next;
        H2Stream *third;

        w->on_request = hold;
        warm(w, HTTP_LANE_BULK);
        for (unsigned i = 0; i < 6; i++) {
                bulk(w, calls + i, "/hold");
                wait_requests(w, 2 + i);
        }
        assert_int_equal(w->last_connection, 1);

        third = h2_server_find(w->server, 4);
        h2_connection_goaway(third->connection, third->id, NGHTTP2_NO_ERROR);
        for (unsigned i = 3; i < 6; i++)
                finish_with(calls + i, "ECONNRESET?");
        bulk(w, &next, "/next");
        finish_with(&next, "200");
        assert_int_not_equal(w->last_connection, 1);
        for (unsigned i = 0; i < 3; i++) {
                assert_false(calls[i].done);
                h2_stream_respond(h2_server_find(w->server, 2 + i), 200, "{}");
                finish_with(calls + i, "200");
        }
        assert_int_equal(h2_server_stats(w->server).requests, 8); /* nothing was sent twice */
}

/* As a server begins its shutdown: all of the streams may end, new ones are not wanted. */
TEST_CASE(goaway_beside_a_watch) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call watch, calls[3];

        w->on_request = hold;
        h2_call_start(w, &watch, "/hold", (HttpRequest){ .lane = HTTP_LANE_WATCH });
        wait_requests(w, 1);
        h2_stream_begin(h2_server_find(w->server, 1), 200, -1, NULL, NULL);
        h2_stream_data(h2_server_find(w->server, 1), "one");
        h2_connection_goaway(h2_server_connection(w->server, 1), INT32_MAX, NGHTTP2_NO_ERROR);
        h2_run_until_quiet(w);
        assert_false(watch.done);
        assert_int_equal(watch.n_data, 3);

        for (unsigned i = 0; i < 3; i++) {
                h2_call_start(w, calls + i, "/next", (HttpRequest){ .lane = HTTP_LANE_WATCH });
                h2_call_finish(calls + i);
                print_message("  call %u after GOAWAY: %s on connection %u\n", i + 1,
                              h2_call_outcome(calls + i), w->last_connection);
        }
        assert_outcome(calls + 2, "200");
        assert_outcome(calls + 1, "200");
        assert_outcome(calls + 0, "200");
        h2_stream_data(h2_server_find(w->server, 1), "two");
        h2_stream_end(h2_server_find(w->server, 1), false);
        finish_with(&watch, "200");
        assert_int_equal(watch.n_data, 6);
}

/* -- how many streams ----------------------------------------------------------------------------------- */

/* On a new connection the client does not know the limit yet (nghttp2 assumes 100, and what does not fit on
 * one connection makes libcurl open another). What is too much the server refuses, without effect: RFC 9113
 * section 8.7. libcurl does not say so, hence "may have been sent". */
static unsigned burst(H2World *w, H2Call *calls, unsigned n, const char *path) {
        unsigned n_refused = 0, n_good = 0;
        _cleanup_free_ char *counted = strf("POST %s", path);

        assert_non_null(counted);
        for (unsigned i = 0; i < n; i++)
                h2_call_start(w, calls + i, path,
                              (HttpRequest){ .method = HTTP_POST, .lane = HTTP_LANE_BULK });
        for (unsigned i = 0; i < n; i++) {
                h2_call_finish(calls + i);
                if (calls[i].error == 0) {
                        assert_outcome(calls + i, "200");
                        n_good++;
                } else {
                        assert_outcome(calls + i, "ECONNRESET?");
                        n_refused++;
                }
        }
        assert_int_equal(h2_count(w, counted).effects, n_good);
        assert_int_equal(h2_count(w, counted).requests, n_good);
        return n_refused;
}

TEST_CASE(few_streams_from_the_start) {
        _cleanup_(h2_world_freep) H2World *w =
                h2_world_new(state, &(H2ServerOptions){ .max_concurrent_streams = 2 });
        H2Call calls[CALLS_MAX];

        print_message("  all at once: %u of %d refused\n", burst(w, calls, CALLS_MAX, "/many"), CALLS_MAX);
        warm(w, HTTP_LANE_BULK);
        assert_int_equal(burst(w, calls, 2, "/few"), 0);
        assert_in_range(h2_server_stats(w->server).most_streams, 1, 2);
        assert_in_range(h2_server_stats(w->server).open, 1, 4);
}

/* By our own wish, in the bulk lane: the same calls, spread over connections. */
TEST_CASE(few_streams_on_each_connection) {
        const HttpCurlOptions options = { .max_connections_per_host = 8, .max_bulk_streams = 3 };
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call held[12], calls[CALLS_MAX];

        http_transport_free(w->transport);
        assert_return_code(http_curl_new(w->loop, NULL, &options, &w->transport), 0);
        w->env.transport = w->transport;
        w->on_request = hold;
        for (unsigned i = 0; i < ELEMENTSOF(held); i++)
                bulk(w, held + i, "/hold");
        wait_requests(w, ELEMENTSOF(held));
        assert_int_equal(h2_server_stats(w->server).most_streams, 3);
        assert_in_range(h2_server_stats(w->server).open, 4, 8);
        for (unsigned i = 0; i < ELEMENTSOF(held); i++)
                h2_stream_respond(h2_server_find(w->server, 1 + i), 200, "{}");
        for (unsigned i = 0; i < ELEMENTSOF(held); i++)
                finish_with(held + i, "200");
        assert_int_equal(burst(w, calls, CALLS_MAX, "/many"), 0);
        assert_int_equal(h2_server_stats(w->server).most_streams, 3);
        assert_in_range(h2_server_stats(w->server).open, 4, 8);
}

/* Five are open when the limit falls to two: none of them is given up, and what comes later gets through. */
TEST_CASE(streams_shrink) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call held[5], calls[20];

        w->on_request = hold;
        warm(w, HTTP_LANE_BULK);
        for (unsigned i = 0; i < 5; i++)
                bulk(w, held + i, "/hold");
        wait_requests(w, 6);
        h2_connection_set_max_streams(h2_server_connection(w->server, 1), 2);
        h2_server_set_max_streams(w->server, 2);
        h2_run_until_quiet(w);
        warm(w, HTTP_LANE_BULK); /* on another connection */
        assert_int_not_equal(w->last_connection, 1);
        (void) burst(w, calls, ELEMENTSOF(calls), "/x");
        for (unsigned i = 0; i < 5; i++) {
                assert_false(held[i].done);
                h2_stream_respond(h2_server_find(w->server, 2 + i), 200, "{}");
                finish_with(held + i, "200");
        }
        assert_int_equal(burst(w, calls, 2, "/y"), 0);
        assert_int_equal(h2_count(w, "GET /hold").requests, 5);
}

/* The client speaks before it knows the limit. */
TEST_CASE(settings_come_late) {
        _cleanup_(h2_world_freep) H2World *w =
                h2_world_new(state, &(H2ServerOptions){ .max_concurrent_streams = 1,
                                                        .settings_delay_usec = 200 * USEC_PER_MSEC });
        H2Call calls[10];

        assert_in_range(burst(w, calls, 10, "/early"), 0, 9);
        warm(w, HTTP_LANE_BULK);
        assert_int_equal(burst(w, calls, 1, "/late"), 0);
}

/* -- a stalled stream beside live ones ------------------------------------------------------------------ */

TEST_CASE(stalled_beside_live) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call stalled, calls[20];
        Requests one_reset = { w, 1 };

        w->on_request = hold;
        warm(w, HTTP_LANE_BULK);
        h2_call_start(w, &stalled, "/hold",
                      (HttpRequest){ .method = HTTP_POST,
                                     .lane = HTTP_LANE_BULK,
                                     .timeout_usec = TIMEOUT_USEC });
        for (unsigned i = 0; i < 20; i++)
                bulk(w, calls + i, i < 19 ? "/x" : "/hold/live");
        wait_requests(w, 2 + 20);
        for (unsigned i = 0; i < 19; i++)
                finish_with(calls + i, "200");
        h2_skip(w, TIMEOUT_USEC);
        finish_with(&stalled, "ETIMEDOUT?");
        assert_in_range(stalled.ended_usec - stalled.began_usec, TIMEOUT_USEC, TIMEOUT_USEC + H2_PATIENCE_USEC);
        assert_false(calls[19].done);
        h2_stream_respond(h2_server_find(w->server, 22), 200, "{}");
        finish_with(calls + 19, "200");
        assert_int_equal(h2_server_stats(w->server).accepted, 1);
        /* The server learns of it: by RST_STREAM, or with the connection that nobody needs any more. */
        h2_run_until(w, is_told, &one_reset, "word of the call that was given up");
        assert_int_equal(h2_count(w, "POST /hold").requests, 1);
}

TEST_CASE(cancelled_beside_live) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call cancelled, live, next;
        Requests one_reset = { w, 1 };

        w->on_request = hold;
        bulk(w, &live, "/hold");
        wait_requests(w, 1);
        bulk(w, &cancelled, "/hold");
        wait_requests(w, 2);
        h2_call_cancel(&cancelled);
        bulk(w, &next, "/x"); /* libcurl says RST_STREAM with the next word on this connection */
        finish_with(&next, "200");
        h2_run_until(w, have_client_resets, &one_reset, "RST_STREAM for the call that was cancelled");
        h2_stream_respond(h2_server_find(w->server, 1), 200, "{}");
        finish_with(&live, "200");
        assert_int_equal(h2_server_stats(w->server).accepted, 1);
}

/* -- a dead connection ---------------------------------------------------------------------------------- */

/* Nobody answers there, but the kernel acknowledges: only deadlines tell. Calls overlap all the time, so
 * that the connection is never without one; those begun after the first deadline has passed must not go
 * there. */
TEST_CASE(dead_under_steady_load) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call calls[40];
        unsigned n_good = 0, n_wrong = 0;
        usec_t first_failure = USEC_INFINITY;

        warm(w, HTTP_LANE_URGENT);
        h2_connection_freeze(h2_server_connection(w->server, 1));
        for (unsigned i = 0; i < ELEMENTSOF(calls); i++) {
                h2_call_start(w, calls + i, "/x", (HttpRequest){ .timeout_usec = TIMEOUT_USEC });
                h2_skip(w, TIMEOUT_USEC / 10);
        }
        for (unsigned i = 0; i < ELEMENTSOF(calls); i++) {
                h2_call_finish(calls + i);
                n_good += calls[i].error == 0;
                n_wrong += calls[i].error < 0 && !streq(h2_call_outcome(calls + i), "ETIMEDOUT?");
                if (calls[i].error < 0)
                        first_failure = MIN(first_failure, calls[i].ended_usec);
        }
        for (unsigned i = 0; i < ELEMENTSOF(calls); i++)
                n_wrong += calls[i].error < 0 && calls[i].began_usec > first_failure;
        if (n_wrong > 0)
                fail_msg("%u calls began after the first time-out had told that the connection is dead, and "
                         "were "
                         "sent there all the same, or ended otherwise; %u of %zu came through",
                         n_wrong, n_good, ELEMENTSOF(calls));
        assert_in_range(n_good, 1, ELEMENTSOF(calls) - 1);
}

TEST_CASE(lanes_do_not_share_a_death) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call stuck, watch, urgent;

        w->on_request = hold;
        warm(w, HTTP_LANE_BULK);
        h2_connection_freeze(h2_server_connection(w->server, 1));
        bulk(w, &stuck, "/x");
        h2_call_start(w, &watch, "/hold", (HttpRequest){ .lane = HTTP_LANE_WATCH });
        wait_requests(w, 2);
        h2_stream_begin(h2_server_find(w->server, 2), 200, -1, NULL, NULL);
        h2_call_start(w, &urgent, "/x", (HttpRequest){ 0 });
        finish_with(&urgent, "200");
        h2_stream_data(h2_server_find(w->server, 2), "one");
        h2_stream_end(h2_server_find(w->server, 2), false);
        finish_with(&watch, "200");
        assert_false(stuck.done);
        h2_call_cancel(&stuck);
}

/* The peer takes the connection and does not go on with the handshake: nothing was sent, and that is
 * certain. Calls that wait for this very connection get another one when the first call gives it up. */
TEST_CASE(dead_before_the_handshake) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call first, waiting[3];

        h2_server_freeze_next(w->server, 1);
        h2_call_start(w, &first, "/x",
                      (HttpRequest){ .method = HTTP_PATCH, .timeout_usec = TIMEOUT_USEC });
        for (unsigned i = 0; i < 3; i++)
                h2_call_start(w, waiting + i, "/x", (HttpRequest){ .method = HTTP_PATCH });
        h2_skip(w, TIMEOUT_USEC);
        finish_with(&first, "ETIMEDOUT");
        for (unsigned i = 0; i < 3; i++)
                finish_with(waiting + i, "200");
        assert_int_equal(h2_count(w, "PATCH /x").requests, 3);
}

/* A watch on a dead connection beside others on the same: each is told by the stall rule, and the next is
 * not sent into the same silence. */
TEST_CASE(silent_watches) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call watches[3], next;

        w->on_request = hold;
        for (unsigned i = 0; i < 3; i++) {
                h2_call_start(w, watches + i, "/hold",
                              (HttpRequest){ .lane = HTTP_LANE_WATCH,
                                             .timeout_usec = USEC_INFINITY,
                                             .stall_usec = (i == 0 ? 1 : 5) * TIMEOUT_USEC });
                wait_requests(w, i + 1);
        }
        h2_connection_freeze(h2_server_connection(w->server, 1));
        h2_skip(w, TIMEOUT_USEC);
        finish_with(watches, "ETIMEDOUT?");
        h2_call_start(w, &next, "/x",
                      (HttpRequest){ .lane = HTTP_LANE_WATCH,
                                     .timeout_usec = USEC_INFINITY,
                                     .stall_usec = TIMEOUT_USEC });
        finish_with(&next, "200");
        assert_false(watches[1].done || watches[2].done);
        for (unsigned i = 1; i < 3; i++)
                h2_call_cancel(watches + i);
}

/* -- ends between requests ------------------------------------------------------------------------------ */

/* The client does not look at an idle connection until it needs it. */
TEST_CASE(closed_while_idle) {
        static const H2Close ways[] = { H2_CLOSE_NOTIFY, H2_CLOSE_FIN, H2_CLOSE_RST };
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);

        for (unsigned at_once = 0; at_once < 2; at_once++)
                for (size_t i = 0; i < ELEMENTSOF(ways); i++) {
                        H2Call post;

                        warm(w, HTTP_LANE_BULK);
                        h2_connection_close(h2_server_connection(w->server, w->last_connection), ways[i]);
                        if (!at_once)
                                h2_run_until_quiet(w);
                        h2_call_start(w, &post, "/x",
                                      (HttpRequest){ .method = HTTP_POST, .lane = HTTP_LANE_BULK });
                        finish_with(&post, "200");
                }
        assert_int_equal(h2_count(w, "POST /x").effects, 2 * ELEMENTSOF(ways));
}

/* libcurl counts how often it has begun anew, and gives up at five: of one call, not of a handle's life. */
TEST_CASE(closed_while_idle_often) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);

        for (unsigned i = 0; i < 14; i++) {
                H2Call post;

                warm(w, HTTP_LANE_BULK);
                h2_connection_close(h2_server_connection(w->server, w->last_connection), H2_CLOSE_NOTIFY);
                h2_call_start(w, &post, "/x", (HttpRequest){ .method = HTTP_POST, .lane = HTTP_LANE_BULK });
                finish_with(&post, "200");
        }
        assert_int_equal(h2_count(w, "POST /x").effects, 14);
}

TEST_CASE(goaway_while_idle) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call post;

        warm(w, HTTP_LANE_BULK);
        h2_connection_goaway(h2_server_connection(w->server, 1), -1, NGHTTP2_NO_ERROR);
        h2_run_until_quiet(w);
        h2_call_start(w, &post, "/x", (HttpRequest){ .method = HTTP_POST, .lane = HTTP_LANE_BULK });
        finish_with(&post, "200");
        assert_int_equal(w->last_connection, 2);
}

/* -- PING ----------------------------------------------------------------------------------------------- */

/* Answered while a call is under way. An idle connection is not looked at: a server that pings and closes
 * loses nothing of ours. */
TEST_CASE(pings) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call held, next;
        Requests one = { w, 1 };

        w->on_request = hold;
        bulk(w, &held, "/hold");
        wait_requests(w, 1);
        h2_connection_ping(h2_server_connection(w->server, 1));
        h2_run_until(w, have_pongs, &one, "the answer to a PING");
        h2_stream_respond(h2_server_find(w->server, 1), 200, "{}");
        finish_with(&held, "200");

        h2_connection_ping(h2_server_connection(w->server, 1));
        h2_run_until_quiet(w);
        print_message("  on an idle connection %u of 1 PINGs was answered\n",
                      h2_server_stats(w->server).pongs - 1);
        if (h2_server_connection(w->server, 1))
                h2_connection_close(h2_server_connection(w->server, 1), H2_CLOSE_NOTIFY);
        bulk(w, &next, "/x");
        finish_with(&next, "200");
}

/* -- flow control --------------------------------------------------------------------------------------- */

#define BIG_BYTES (48u * 1024 * 1024) /* libcurl grants 32 MB at a time */

/* A list larger than any window, with small answers beside it. */
static bool big(H2Stream *s, void *userdata) {
        if (!streq(s->path, "/big"))
                return false;
        h2_stream_begin(s, 200, BIG_BYTES, NULL, NULL);
        h2_stream_fill(s, BIG_BYTES);
        h2_stream_end(s, false);
        return true;
}

TEST_CASE(a_list_larger_than_the_window) {
        _cleanup_(h2_world_freep) H2World *w = h2_world_new(state, NULL);
        H2Call list, calls[10];

        w->on_request = big;
        h2_call_start(w, &list, "/big",
                      (HttpRequest){ .lane = HTTP_LANE_BULK, .max_response_bytes = BIG_BYTES });
        wait_requests(w, 1);
        for (unsigned i = 0; i < 10; i++)
                bulk(w, calls + i, "/x");
        for (unsigned i = 0; i < 10; i++)
                finish_with(calls + i, "200");
        finish_with(&list, "200");
        assert_int_equal(list.body_size, BIG_BYTES);
}

/* A server that takes 100 bytes at a time, and one that takes none: the one call ends by its deadline. */
TEST_CASE(uploads_wait_for_the_window) {
        _cleanup_(h2_world_freep) H2World *w =
                h2_world_new(state, &(H2ServerOptions){ .upload_window = 100 });
        char body[20000];
        H2Call patch, live;

        memset(body, 'b', sizeof(body));
        h2_call_start(w, &patch, "/x",
                      (HttpRequest){ .method = HTTP_PATCH,
                                     .lane = HTTP_LANE_BULK,
                                     .body = body,
                                     .body_size = sizeof(body) });
        finish_with(&patch, "200");
        bulk(w, &live, "/live");
        finish_with(&live, "200");
        assert_int_equal(h2_count(w, "PATCH /x").effects, 1);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(goaway_splits_the_streams),
                cmocka_unit_test(goaway_beside_a_watch),
                cmocka_unit_test(few_streams_from_the_start),
                cmocka_unit_test(few_streams_on_each_connection),
                cmocka_unit_test(streams_shrink),
                cmocka_unit_test(settings_come_late),
                cmocka_unit_test(stalled_beside_live),
                cmocka_unit_test(cancelled_beside_live),
                cmocka_unit_test(dead_under_steady_load),
                cmocka_unit_test(lanes_do_not_share_a_death),
                cmocka_unit_test(dead_before_the_handshake),
                cmocka_unit_test(silent_watches),
                cmocka_unit_test(closed_while_idle),
                cmocka_unit_test(closed_while_idle_often),
                cmocka_unit_test(goaway_while_idle),
                cmocka_unit_test(pings),
                cmocka_unit_test(a_list_larger_than_the_window),
                cmocka_unit_test(uploads_wait_for_the_window),
        };
        return cmocka_run_group_tests_name("h2-faults", tests, h2_certificates_new, h2_certificates_free);
}
