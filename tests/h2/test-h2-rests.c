/* SPDX-License-Identifier: Apache-2.0 */
/* A coalesced watch by TLS and HTTP/2: one reading after a rest brings all that lies there, however many
 * records and frames it came in. It would be ten of them a second otherwise. */
#include <string.h>

#include "cmocka-test.h"
#include "h2-rig.h"
#include "http-curl-internal.h"

#define PIECES 50u

typedef struct CoalescedWatch {
        H2World *world;
        H2Call call;
        H2Stream *stream;
        size_t goal;
} CoalescedWatch;

static bool take_request(H2Stream *s, void *userdata) {
        CoalescedWatch *p = userdata;

        p->stream = s;
        h2_stream_begin(s, 200, -1, NULL, NULL);
        h2_stream_data(s, "x");
        return true;
}

static bool has_come(void *userdata) {
        const CoalescedWatch *p = userdata;

        return p->call.n_data >= p->goal;
}

static bool is_done(void *userdata) {
        return ((const CoalescedWatch *) userdata)->call.done;
}

static bool is_resting(void *userdata) {
        const CoalescedWatch *p = userdata;
        const CurlTransport *t = CONTAINER_OF(p->world->transport, CurlTransport, transport);

        return timer_is_armed(t->coalesced->rested);
}

static void run_until_come(CoalescedWatch *p, size_t goal) {
        p->goal = goal;
        h2_run_until(p->world, has_come, p, "what was sent");
}

static void speak_until_it_rests(CoalescedWatch *p) {
        while (!is_resting(p)) {
                h2_stream_data(p->stream, "x");
                run_until_come(p, p->call.n_data + 1);
        }
}

/* Each in a record of its own, and PINGs between them. */
static void say_much(CoalescedWatch *p) {
        for (unsigned i = 0; i < PIECES; i++) {
                if (i % 5 == 0)
                        h2_connection_ping(p->stream->connection);
                h2_stream_data(p->stream, "y");
                h2_run_for(p->world, USEC_PER_MSEC);
        }
        h2_run_until_quiet(p->world);
}

/* And no more than one. */
static void read_once(CoalescedWatch *p) {
        assert_true(is_resting(p));
        http_transport_set_immediate(p->world->transport, true);
        http_transport_set_immediate(p->world->transport, false);
        assert_false(is_resting(p));
}

TEST_CASE(test_a_reading_brings_all) {
        const HttpCurlOptions options = { .rest_usec = USEC_PER_MINUTE };
        HttpTransport *before;
        CoalescedWatch p = { .world = h2_world_new(state, NULL) };
        H2World *w = p.world;
        size_t n;

        before = w->transport;
        assert_return_code(http_curl_new(w->loop, NULL, &options, &w->transport), 0);
        w->on_request = take_request;
        w->userdata = &p;
        h2_call_start(w, &p.call, "/x",
                      (HttpRequest){ .lane = HTTP_LANE_WATCH,
                                     .coalesced = true,
                                     .timeout_usec = USEC_INFINITY,
                                     .stall_usec = 2 * H2_PATIENCE_USEC });
        run_until_come(&p, 1);
        h2_skip(w, 5 * USEC_PER_SEC); /* libcurl has a timer for each new connection, and reads when it fires */
        speak_until_it_rests(&p);
        n = p.call.n_data;

        say_much(&p);
        assert_int_equal(p.call.n_data, n);
        read_once(&p);
        h2_run_until(w, is_resting, &p, "the end of the reading");
        assert_int_equal(p.call.n_data, n + PIECES);

        say_much(&p);
        h2_stream_end(p.stream, false);
        h2_run_until_quiet(w);
        assert_int_equal(p.call.n_data, n + PIECES);
        read_once(&p);
        h2_run_until(w, is_done, &p, "the end of the watch");
        assert_string_equal(h2_call_outcome(&p.call), "200");
        assert_int_equal(p.call.n_data, n + 2 * PIECES);

        h2_call_cancel(&p.call);
        http_transport_free(w->transport);
        w->transport = before;
        h2_world_free(w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_reading_brings_all),
        };

        return cmocka_run_group_tests(tests, h2_certificates_new, h2_certificates_free);
}
