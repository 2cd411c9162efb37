/* SPDX-License-Identifier: Apache-2.0 */
#include "http-limits-bench.h"

/* Limits of an HTTP server on the bodies of requests, and the turns in which it handles them. */

/* Clients that send all but the last byte of a large body, from one address or two, and those who want an
 * answer meanwhile. */
TEST_CASE(test_half_sent_bodies) {
        static const struct {
                const char *what;
                bool chunked;
                size_t attackers_bytes;
                unsigned n_hosts;
        } rows[] = {
                { "one address, announced", false, MIB, 1 },
                { "one address, in chunks", true, MIB, 1 },
                { "three addresses, announced", false, MIB, 3 },
                { "three addresses, in chunks", true, MIB, 3 },
                { "three addresses, many small ones", false, 128 * KIB, 3 },
        };
        enum { N = 48, BOUND = 4 * MIB };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w =
                        world_new((HttpServerOptions) { .max_connections = 64, .max_bodies_bytes = BOUND });
                int fds[N], fd;

                print_message("  %s\n", rows[i].what);
                for (size_t k = 0; k < N; k++)
                        fds[k] = client_post(w, 2 + (unsigned) k % rows[i].n_hosts, rows[i].attackers_bytes,
                                             1, rows[i].chunked);
                assert_int_equal(w->n_handled, 0);
                assert_in_range(w->most_bytes, BOUND / 2, BOUND);
                assert_true(w->n_refused[HTTP_REFUSED_BODIES] + w->n_refused[HTTP_REFUSED_DISPLACED] >=
                            N / 4);

                for (unsigned chunked = 0; chunked < 2; chunked++) {
                        print_message("    a small one of another address, and of theirs\n");
                        for (unsigned host = 1; host <= 2; host++) {
                                fd = client_post(w, host, 20 * KIB, 0, chunked);
                                client_expect(w, fd, 200);
                                assert_int_equal(w->handled_bytes, 20 * KIB);
                                closep(&fd);
                        }
                }
                print_message("    a large one of another address\n");
                fd = client_post(w, 1, 900 * KIB, 0, false);
                client_expect(w, fd, 200);
                closep(&fd);
                assert_int_equal(w->n_handled, 5);
                assert_in_range(w->most_bytes, BOUND / 2, BOUND);

                for (size_t k = 0; k < N; k++)
                        closep(fds + k);
                while (http_server_n_connections(w->server) > 0)
                        turn(w);
                assert_int_equal(http_server_body_bytes(w->server), 0);
                world_free(w);
        }
}

/* The bytes of a body are reserved when it is announced, until the handler answers. A body in chunks reserves what its
 * buffer takes. */
TEST_CASE(test_reserved_bytes) {
        World *w = world_new((HttpServerOptions) { 0 });
        _cleanup_free_ char *body = new0(char, 6000);
        _cleanup_strbuf_ StrBuf buffer = { 0 };
        int fd = client_new(w, 1);

        assert_non_null(body);
        memset(body, 'x', 6000);
        client_say(w, fd, "POST /wait" H "Content-Length: 5000\r\n\r\n");
        assert_int_equal(body_bytes(w), 5001);
        client_send(w, fd, body, 4999);
        assert_int_equal(body_bytes(w), 5001);
        assert_null(w->held);
        client_send(w, fd, body, 1);
        assert_int_equal(body_bytes(w), 5001);
        answer_held(w);
        client_expect(w, fd, 200);
        assert_int_equal(body_bytes(w), 0);
        assert_int_equal(http_server_n_connections(w->server), 1);
        assert_quiet(w);

        print_message("  in chunks, as the second request of the connection\n");
        client_say(w, fd, "POST /wait" H "Transfer-Encoding: chunked\r\n\r\n3e8\r\n");
        assert_int_equal(body_bytes(w), 0);
        client_send(w, fd, body, 1000);
        assert_int_equal(body_bytes(w), 1001);
        strbuf_make_room(&buffer, 1000);
        client_say(w, fd, "\r\n3e8\r\n");
        client_send(w, fd, body, 1000);
        assert_int_equal(body_bytes(w), MAX(2001u, 2 * buffer.allocated));
        client_say(w, fd, "\r\n0\r\n\r\n");
        assert_int_equal(body_bytes(w), MAX(2001u, 2 * buffer.allocated));
        answer_held(w);
        client_expect(w, fd, 200);
        assert_int_equal(body_bytes(w), 0);
        closep(&fd);
        world_free(w);
}

/* Bodies whose handler is at work do not give way, so the last byte of the bound decides. */
TEST_CASE(test_bound_of_bodies) {
        World *w = world_new((HttpServerOptions) { .max_bodies_bytes = 1000 });
        int fds[4];

        for (unsigned i = 0; i < 2; i++) {
                fds[i] = client_new(w, 1);
                client_say(w, fds[i], "POST /wait" H "Content-Length: 9\r\n\r\n123456789");
        }
        assert_int_equal(body_bytes(w), 20);
        fds[2] = client_post(w, 1, 979, 1, false);
        assert_int_equal(body_bytes(w), 1000);
        client_send(w, fds[2], "x", 1);
        client_expect(w, fds[2], 200);
        fds[3] = client_post(w, 1, 980, 980, false);
        client_expect(w, fds[3], 503);
        assert_int_equal(w->n_refused[HTTP_REFUSED_BODIES], 1);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                closep(fds + i);
        world_free(w);
}

/* A body that is too large by 1 MiB at most is read to its end, so that its client reads the answer. */
TEST_CASE(test_discarded_bodies) {
        static const struct {
                const char *what;
                size_t size, sent;
                bool chunked;
                unsigned status; /* 0: the connection is closed; 1: nothing yet */
        } rows[] = {
                { "the most that is read", 2 * MIB, 0, false, 1 },
                { "one byte more", 2 * MIB + 1, 0, false, 413 },
                { "as large as allowed, in chunks", MIB, MIB, true, 200 },
                { "one byte more, in chunks", MIB + 1, MIB + 1, true, 413 },
                { "the most that is read, in chunks", 2 * MIB, 2 * MIB, true, 413 },
                { "too much, in chunks", 2 * MIB + 1, 2 * MIB + 1, true, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w = world_new((HttpServerOptions) { 0 });
                int fd = client_post(w, 1, rows[i].size, rows[i].size - rows[i].sent, rows[i].chunked);
                char byte;

                print_message("  %s\n", rows[i].what);
                if (rows[i].status != 1)
                        client_expect(w, fd, rows[i].status);
                turns(w, 5);
                if (rows[i].status == 1)
                        assert_int_equal(recv(fd, &byte, 1, 0), -1);
                assert_int_equal(w->n_handled, rows[i].status == 200);
                assert_int_equal(w->n_refused[HTTP_REFUSED_SIZE], rows[i].status != 200);
                assert_int_equal(http_server_body_bytes(w->server), 0);
                closep(&fd);
                world_free(w);
        }
}

/* No byte is kept of a body that is refused, nor of one that the handler has read. */
TEST_CASE(test_kept_bytes) {
        static const struct {
                const char *what, *head;
                size_t sent;
                unsigned status;
                bool kept;
        } rows[] = {
                { "a body that is read", "POST /a" H "Content-Length: 1000000\r\n\r\n", 1000000, 200, true },
                { "of somebody unknown, before it is sent",
                  "POST /secret" H "Content-Length: 1000000\r\n\r\n", 0, 401, false },
                { "of somebody unknown, in chunks", "POST /secret" H "Transfer-Encoding: chunked\r\n\r\n", 0,
                  401, false },
                { "a little too large", "POST /a" H "Content-Length: 1500000\r\n\r\n", 1500000, 413, false },
                { "much too large", "POST /a" H "Content-Length: 99999999\r\n\r\n", 0, 413, false },
                { "the handler waits", "POST /wait" H "Content-Length: 1000\r\n\r\n", 1000, 0, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w = world_new((HttpServerOptions) { .drop_bodies = true });
                _cleanup_free_ char *body = new0(char, rows[i].sent + 1);
                int fd = client_new(w, 1);

                assert_non_null(body);
                print_message("  %s\n", rows[i].what);
                client_say(w, fd, rows[i].head);
                client_send(w, fd, body, rows[i].sent / 2);
                client_send(w, fd, body, rows[i].sent - rows[i].sent / 2);
                if (rows[i].status > 0)
                        client_expect(w, fd, rows[i].status);
                turns(w, 3);
                assert_int_equal(w->n_handled, rows[i].kept);
                if (w->held) {
                        assert_null(w->held->body);
                        assert_int_equal(w->held->body_size, 0);
                }
                assert_int_equal(w->n_refused[HTTP_REFUSED_SIZE], rows[i].status == 413);
                assert_int_equal(w->most_bytes > 0, rows[i].kept);
                assert_int_equal(http_server_body_bytes(w->server), 0);
                closep(&fd);
                world_free(w);
        }
}

/* A body in chunks shows its size only while it comes. */
TEST_CASE(test_large_in_chunks_is_not_kept) {
        World *w = world_new((HttpServerOptions) { .max_body_bytes = 64 * KIB });
        int fd = client_post(w, 1, 512 * KIB, 0, true);

        client_expect(w, fd, 413);
        assert_int_equal(w->n_refused[HTTP_REFUSED_SIZE], 1);
        assert_in_range(w->most_bytes, 32 * KIB, 128 * KIB);
        assert_int_equal(http_server_body_bytes(w->server), 0);
        closep(&fd);
        world_free(w);
}

TEST_CASE(test_requests_of_one_address) {
        World *w = world_new((HttpServerOptions) { .max_requests_per_address = 3 });
        int fds[5];

        for (unsigned i = 0; i < 3; i++) {
                fds[i] = client_new(w, 2);
                client_say(w, fds[i],
                           i < 2 ? "POST /a" H "Content-Length: 10\r\n\r\nabc" : "GET /wait" H "\r\n");
        }
        print_message("  one more of that address, and one of another\n");
        fds[3] = client_post(w, 2, 10, 0, false);
        client_expect(w, fds[3], 503);
        assert_int_equal(w->n_refused[HTTP_REFUSED_ADDRESS], 1);
        assert_string_equal(w->refused_address, "127.0.0.2");
        fds[4] = client_post(w, 1, 10, 0, false);
        client_expect(w, fds[4], 200);
        assert_string_equal(w->client_address, "127.0.0.1");
        closep(fds + 3);

        print_message("  when one is answered there is room again\n");
        client_say(w, fds[0], "defghij");
        client_expect(w, fds[0], 200);
        fds[3] = client_post(w, 2, 10, 0, false);
        client_expect(w, fds[3], 200);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                closep(fds + i);
        world_free(w);
}

/* Bodies of one address beyond its rate are refused, large ones before small ones. */
TEST_CASE(test_bytes_of_one_address) {
        for (unsigned chunked = 0; chunked < 2; chunked++) {
                World *w = world_new((HttpServerOptions) { .max_body_bytes = 512 * KIB,
                                                           .per_address = { .burst_bytes = 2 * MIB,
                                                                            .small_body_bytes = 64 * KIB,
                                                                            SLOW_RATES } });
                unsigned n_large = 0, n_small = 0;
                int fd;

                print_message("  %s\n", chunked ? "in chunks" : "announced");
                for (unsigned i = 0; i < 6; i++) {
                        fd = client_post(w, 2, 500 * KIB, 0, chunked);
                        client_expect(w, fd, i < 2 ? 200 : 503);
                        closep(&fd);
                        n_large = w->n_handled;
                }
                assert_int_equal(n_large, 2);
                assert_int_equal(w->n_refused[HTTP_REFUSED_RATE], 4);
                assert_string_equal(w->refused_address, "127.0.0.2");
                print_message("    another address\n");
                fd = client_post(w, 1, 500 * KIB, 0, chunked);
                client_expect(w, fd, 200);
                closep(&fd);
                print_message("    small ones of the same address\n");
                for (unsigned i = 0; i < 100; i++) {
                        fd = client_post(w, 2, 20 * KIB, 0, chunked);
                        client_expect(w, fd, i < 52 ? 200 : 503);
                        closep(&fd);
                        n_small = w->n_handled - n_large - 1;
                }
                assert_int_equal(n_small, 52); /* 2 MiB - 2 * 500 KiB are 1,048 KiB */
                clock_skip(20 * KIB * USEC_PER_SEC);
                turn(w);
                fd = client_post(w, 2, 20 * KIB, 0, chunked);
                client_expect(w, fd, 200);
                closep(&fd);
                world_free(w);
        }
}

/* Requests that are complete at once are handled in several turns. An iteration of the loop may have the rest
 * of one turn and the beginning of the next. */
TEST_CASE(test_bytes_of_one_turn) {
        enum { N = 10, BOUND = 256 * KIB };
        static const struct {
                const char *what;
                size_t size, most;
        } rows[] = {
                { "each is larger than the bound", 900 * KIB, 900 * KIB },
                { "several fit", 100 * KIB, 200 * KIB },
                { "all fit", 10 * KIB, 100 * KIB },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w = world_new((HttpServerOptions) { .max_turn_bytes = BOUND });
                int fds[N];

                print_message("  %s\n", rows[i].what);
                for (unsigned k = 0; k < N; k++)
                        fds[k] = client_post(w, 1 + k % 3, rows[i].size, 1, false);
                turns(w, 5);
                assert_int_equal(w->n_handled, 0);
                for (unsigned k = 0; k < N; k++)
                        client_finish(fds[k]);
                for (unsigned k = 0; k < N; k++) {
                        client_expect(w, fds[k], 200);
                        closep(fds + k);
                }
                assert_int_equal(w->n_handled, N);
                assert_in_range(w->most_turn_bytes, rows[i].most / 2, 2 * rows[i].most);
                world_free(w);
        }
}

/* Requests that come at once get their turns in the order in which they were complete. A small one that would fit
 * does not overtake a large one. Waiting for a turn is not the client's slowness. */
TEST_CASE(test_order_of_turns) {
        enum { N = 8 };
        World *w = world_new((HttpServerOptions) { .max_turn_bytes = 120, .request_timeout_usec = 5 * USEC_PER_SEC });
        char body[100];
        int fds[N];

        memset(body, 'x', sizeof(body));
        for (unsigned k = 0; k < N; k++) {
                fds[k] = client_new(w, 1 + k % 3);
                turns(w, 3);
        }
        for (unsigned k = 0; k < N; k++) {
                _cleanup_free_ char *text = strf("POST /%c" H "Content-Length: %d\r\n\r\n%.*s", (int) ('a' + k),
                                                 k % 2 ? 90 : 4, k % 2 ? 90 : 4, body);

                assert_int_equal(send(fds[k], text, strlen(text), MSG_NOSIGNAL), strlen(text));
        }
        while (w->n_handled == 0)
                turn(w);
        assert_in_range(w->n_handled, 1, 3); /* 90 and two of 4; another 90 does not fit, another 4 would */
        clock_skip(20 * USEC_PER_SEC);
        for (unsigned k = 0; k < N; k++) {
                client_expect(w, fds[k], 200);
                closep(fds + k);
        }
        assert_int_equal(w->begun.size, 2 * N);
        assert_string_equal(strbuf_str(&w->handled), strbuf_str(&w->begun));
        assert_int_equal(w->n_refused[HTTP_REFUSED_SLOW], 0);
        world_free(w);
}

/* Bodies that together are as large as the bound get one turn. */
TEST_CASE(test_bound_of_turns) {
        for (unsigned more = 0; more < 2; more++) {
                World *w = world_new((HttpServerOptions) { .max_turn_bytes = 1000 });
                int fds[2];

                for (unsigned k = 0; k < 2; k++)
                        fds[k] = client_post(w, 1, 500 + more * k, 1, false);
                turns(w, 5);
                for (unsigned k = 0; k < 2; k++)
                        client_finish(fds[k]);
                while (w->n_handled == 0)
                        turn(w);
                assert_int_equal(w->n_handled, 2 - more);
                for (unsigned k = 0; k < 2; k++) {
                        client_expect(w, fds[k], 200);
                        closep(fds + k);
                }
                world_free(w);
        }
}

/* Clients that leave while their requests wait for a turn, and a server that ends then. */
TEST_CASE(test_gone_before_its_turn) {
        enum { N = 10 };

        for (unsigned leaves = 0; leaves < 2; leaves++) {
                World *w = world_new((HttpServerOptions) { .max_turn_bytes = 1 });
                int fds[N];

                for (unsigned k = 0; k < N; k++)
                        fds[k] = client_post(w, 1, 1000, 1, false);
                turns(w, 5);
                for (unsigned k = 0; k < N; k++)
                        client_finish(fds[k]);
                while (w->n_handled == 0)
                        turn(w);
                assert_in_range(w->n_handled, 1, N / 2);
                for (unsigned k = 0; leaves && k < N; k++)
                        closep(fds + k);
                while (leaves && http_server_n_connections(w->server) > 0)
                        turn(w);
                assert_int_equal(http_server_body_bytes(w->server) > 0, !leaves);
                world_free(w);
                for (unsigned k = 0; !leaves && k < N; k++)
                        closep(fds + k);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_half_sent_bodies),
                cmocka_unit_test(test_reserved_bytes),
                cmocka_unit_test(test_bound_of_bodies),
                cmocka_unit_test(test_discarded_bodies),
                cmocka_unit_test(test_kept_bytes),
                cmocka_unit_test(test_large_in_chunks_is_not_kept),
                cmocka_unit_test(test_requests_of_one_address),
                cmocka_unit_test(test_bytes_of_one_address),
                cmocka_unit_test(test_bytes_of_one_turn),
                cmocka_unit_test(test_order_of_turns),
                cmocka_unit_test(test_bound_of_turns),
                cmocka_unit_test(test_gone_before_its_turn),
        };

        return cmocka_run_group_tests_name("http-bodies", tests, NULL, NULL);
}
