/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of all sizes together on one connection, larger and smaller than the receive buffer: each call
 * gets its own bytes, whole. With a buffer smaller than a frame libcurl 7.88 dies here. They say their
 * length, or end by a frame of their own, as kube-apiserver's do: else libcurl may not notice an end
 * (http-curl.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "cmocka-test.h"
#include "h2-rig.h"
#include "string-util.h"

#define CALLS 40u
#define ROUNDS 25u
#define ANSWER_MAX_BYTES 60000u

typedef struct Crowd Crowd;

typedef struct Asker {
        Crowd *crowd;
        HttpCall *call;
        unsigned number;
        size_t size; /* of the answer */
        H2Stream *stream;
} Asker;

struct Crowd {
        H2World *world;
        bool lengths; /* are said */
        Asker askers[CALLS];
        unsigned n_waiting, n_done, n_wrong;
};

/* Of any two calls, and of any two places near each other, another. */
static char letter(unsigned number, size_t at) {
        return (char) ('!' + (number * 31 + at * 7 + at / 251) % 90);
}

static void answer(Asker *a) {
        char *text = malloc(a->size + 1);

        assert_non_null(text);
        for (size_t i = 0; i < a->size; i++)
                text[i] = letter(a->number, i);
        text[a->size] = 0;
        a->stream->ends_apart = !a->crowd->lengths;
        h2_stream_begin(a->stream, 200, a->crowd->lengths ? (int64_t) a->size : -1, NULL, NULL);
        h2_stream_data(a->stream, text);
        h2_stream_end(a->stream, false);
        free(text);
}

/* All are answered when all are there, so that their pieces come mixed. */
static bool take_request(H2Stream *s, void *userdata) {
        Crowd *crowd = userdata;
        unsigned long number = strtoul(s->path + strlen("/x?"), NULL, 10);

        assert_true(number < CALLS);
        crowd->askers[number].stream = s;
        if (++crowd->n_waiting == CALLS)
                for (unsigned i = 0; i < CALLS; i++)
                        answer(&crowd->askers[i]);
        return true;
}

static void on_answer(const HttpResponse *r, void *userdata) {
        Asker *a = userdata;
        bool right = r->error == 0 && r->status == 200 && r->body_size == a->size;

        for (size_t i = 0; right && i < a->size; i++)
                right = r->body[i] == letter(a->number, i);
        a->crowd->n_wrong += !right;
        a->crowd->n_done++;
}

static bool all_done(void *userdata) {
        const Crowd *crowd = userdata;

        return crowd->n_done == CALLS;
}

static void ask_together(Crowd *crowd, HttpTransport *transport) {
        H2World *w = crowd->world;

        crowd->n_waiting = crowd->n_done = 0;
        for (unsigned i = 0; i < CALLS; i++) {
                _cleanup_free_ char *url = strf("%s/x?%u", w->origin, i);
                HttpRequest q = { .method = i % 3 == 0 ? HTTP_POST : HTTP_GET,
                                  .url = url,
                                  .lane = HTTP_LANE_BULK,
                                  .timeout_usec = H2_PATIENCE_USEC,
                                  .max_response_bytes = i % 2 == 0 ? ANSWER_MAX_BYTES : 4u * 1024 * 1024,
                                  .tls = w->tls };
                Asker *a = &crowd->askers[i];

                *a = (Asker){ .crowd = crowd, .number = i };
                a->size = i % 4 == 0 ? random_below(w->random, ANSWER_MAX_BYTES)
                                     : random_below(w->random, 3000);
                assert_return_code(http_call_start(transport, &q, on_answer, a, &a->call), 0);
        }
        h2_run_until(w, all_done, crowd, "the end of all calls");
        for (unsigned i = 0; i < CALLS; i++)
                http_call_free(crowd->askers[i].call);
}

static void answers_stay_apart(void **state, bool lengths) {
        const HttpCurlOptions options = { .max_connections_per_host = 1 };
        Crowd crowd = { .lengths = lengths };
        HttpTransport *transport;

        crowd.world = h2_world_new(state, NULL);
        crowd.world->on_request = take_request;
        crowd.world->userdata = &crowd;
        assert_return_code(http_curl_new(crowd.world->loop, NULL, &options, &transport), 0);
        for (unsigned i = 0; i < ROUNDS; i++)
                ask_together(&crowd, transport);
        assert_int_equal(crowd.n_wrong, 0);
        assert_int_equal(h2_server_stats(crowd.world->server).accepted, 1);
        http_transport_free(transport);
        h2_world_free(crowd.world);
}

TEST_CASE(test_answers_with_length) {
        answers_stay_apart(state, true);
}

TEST_CASE(test_answers_without_length) {
        answers_stay_apart(state, false);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_answers_with_length),
                cmocka_unit_test(test_answers_without_length),
        };

        return cmocka_run_group_tests(tests, h2_certificates_new, h2_certificates_free);
}
