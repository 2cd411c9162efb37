/* SPDX-License-Identifier: Apache-2.0 */
#include "connection-rows.h"
#include "http-limits-bench.h"
#include "tls-fixture.h"

/* Limits of an HTTP server on connections: their rate, their number, and the time that a client may take. */

/* Connections of one address beyond its rate are closed before they cost a handshake. */
TEST_CASE(test_connections_of_one_address) {
        enum { N = 12, BURST = 5 };
        World *w = world_new((HttpServerOptions) { .per_address = { .burst_connections = BURST, SLOW_RATES } });
        unsigned n_closed = 0;
        int fd;

        for (unsigned i = 0; i < N; i++) {
                fd = client_new(w, 2);
                client_say(w, fd, "GET /a" H "\r\n");
                client_expect(w, fd, i < BURST ? 200 : 0);
                n_closed += loopback_client_is_closed(fd);
                closep(&fd);
        }
        assert_int_equal(n_closed, N - BURST);
        assert_int_equal(w->n_refused[HTTP_REFUSED_HANDSHAKES], N - BURST);
        assert_string_equal(w->refused_address, "127.0.0.2");
        fd = client_new(w, 1);
        client_say(w, fd, "GET /a" H "\r\n");
        client_expect(w, fd, 200);
        closep(&fd);
        world_free(w);
}

/* Skips time, half a second after each byte of the client's; until the server closes. */
static void skip_until_closed(World *w, int fd, const char *trickle) {
        for (unsigned n = 0; !loopback_client_is_closed(fd); n++) {
                if (n > 1000)
                        fail_msg("the connection is never closed");
                if (*trickle)
                        (void) send(fd, trickle, 1, MSG_NOSIGNAL);
                turns(w, 2);
                clock_skip(USEC_PER_SEC / 2);
                turns(w, 3);
        }
}

/* Requests that are not complete, and connections between two requests. */
TEST_CASE(test_slow_clients) {
        static const struct {
                const char *what;
                bool tls;
                const char *before; /* a request that is answered */
                usec_t pause_usec;  /* then */
                const char *said;
                const char *trickle;  /* then this twice a second */
                unsigned least, most; /* seconds, from the beginning or from the answer before */
        } rows[] = {
                { "nothing", false, NULL, 0, "", "", 5, 50 },
                { "nothing, and TLS is spoken here", true, NULL, 0, "", "", 5, 50 },
                { "half a TLS handshake, byte by byte", true, NULL, 0,
                  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "x", 5, 50 },
                { "a request line, byte by byte", false, NULL, 0, "G", "x", 5, 50 },
                { "headers, byte by byte", false, NULL, 0, "GET /a" H, "x", 5, 50 },
                { "a body, byte by byte", false, NULL, 0, "POST /a" H "Content-Length: 10000\r\n\r\n", "x",
                  5, 50 },
                { "a body in chunks, byte by byte", false, NULL, 0,
                  "POST /a" H "Transfer-Encoding: chunked\r\n\r\n1000\r\n", "x", 5, 50 },
                { "a second request, byte by byte", false, "GET /a" H "\r\n", 20 * USEC_PER_SEC,
                  "POST /a" H "Content-Length: 10000\r\n\r\n", "x", 25, 70 },
                { "the line of a second request, byte by byte", false, "GET /a" H "\r\n", 20 * USEC_PER_SEC,
                  "G", "x", 25, 70 },
                { "the line of a second request, after the first one had to wait", false, "GET /wait" H "\r\n",
                  20 * USEC_PER_SEC, "G", "x", 25, 70 },
                { "nothing behind the first request", false, "GET /a" H "\r\n", 95 * USEC_PER_SEC, "", "",
                  100, 1000 },
        };
        _cleanup_(test_cert_freep) TestCert *ca = test_cert_new(NULL, NULL, "ca", NULL);
        _cleanup_(test_cert_freep) TestCert *cert = test_cert_new(ca, NULL, "server", "IP:127.0.0.1");

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                World *w = world_new((HttpServerOptions) { .request_timeout_usec = 5 * USEC_PER_SEC,
                                                           .idle_timeout_usec = 100 * USEC_PER_SEC,
                                                           .cert_pem = rows[i].tls ? cert->cert_pem : NULL,
                                                           .key_pem = rows[i].tls ? cert->key_pem : NULL });
                int fd = client_new(w, 1);
                usec_t began;

                print_message("  %s\n", rows[i].what);
                turns(w, 3);
                began = loop_now(w->loop);
                if (rows[i].before) {
                        client_say(w, fd, rows[i].before);
                        while (w->n_handled == 0)
                                turn(w);
                        if (w->held)
                                answer_held(w);
                        client_expect(w, fd, 200);
                        assert_quiet(w);
                        began = loop_now(w->loop);
                        clock_skip(rows[i].pause_usec);
                        turns(w, 3);
                        assert_false(loopback_client_is_closed(fd));
                }
                client_say(w, fd, rows[i].said);
                skip_until_closed(w, fd, rows[i].trickle);
                /* The server may have begun to count a moment before the test. */
                assert_in_range((loop_now(w->loop) - began + USEC_PER_SEC / 10) / USEC_PER_SEC,
                                rows[i].least, rows[i].most);
                assert_int_equal(w->n_refused[HTTP_REFUSED_SLOW], rows[i].most < 100);
                closep(&fd);
                world_free(w);
        }
}

/* The limits are for clients: a handler may take longer, also if the client has sent its next request already. */
TEST_CASE(test_slow_handler) {
        World *w = world_new((HttpServerOptions) { .request_timeout_usec = 5 * USEC_PER_SEC,
                                                   .idle_timeout_usec = 10 * USEC_PER_SEC });
        int fd = client_new(w, 1);

        client_say(w, fd, "GET /a" H "\r\n");
        client_expect(w, fd, 200);
        client_say(w, fd, "GET /wait" H "\r\n");
        while (w->n_handled < 2)
                turn(w);
        client_say(w, fd, "GET /b" H "\r\n");
        assert_quiet(w);
        clock_skip(USEC_PER_MINUTE);
        turns(w, 10);
        assert_false(loopback_client_is_closed(fd));
        assert_int_equal(w->n_handled, 2);
        answer_held(w);
        while (w->n_handled < 3)
                turn(w);
        assert_string_equal(strbuf_str(&w->handled), "/a/wait/b");
        closep(&fd);
        world_free(w);
}

/* Each client has its own limit. */
TEST_CASE(test_slow_clients_together) {
        enum { N = 4 };
        World *w = world_new((HttpServerOptions) { .request_timeout_usec = 5 * USEC_PER_SEC });
        int fds[N];

        for (unsigned i = 0; i < N; i++) {
                fds[i] = client_new(w, 1);
                client_say(w, fds[i], "GET /a");
                clock_skip(USEC_PER_SEC);
                turns(w, 3);
        }
        for (unsigned i = 0; i < N; i++) {
                for (unsigned k = 0; k < N; k++)
                        assert_int_equal(loopback_client_is_closed(fds[k]), k < i);
                clock_skip(USEC_PER_SEC);
                turn(w); /* the next time may come before the library has closed a connection */
        }
        assert_int_equal(w->n_refused[HTTP_REFUSED_SLOW], N);
        for (unsigned i = 0; i < N; i++) {
                assert_true(loopback_client_is_closed(fds[i]));
                closep(fds + i);
        }
        assert_quiet(w);
        world_free(w);
}

/* A client connects in the moment in which another client sends a small request on an idle connection. The
 * server reads the request before the loop reports its first byte. The connection is idle again by then, and
 * stays open. */
TEST_CASE(test_request_read_with_new_client) {
        static const char request[] = "GET /a" H "\r\n";
        World *w = world_new((HttpServerOptions) { .request_timeout_usec = 5 * USEC_PER_SEC,
                                                   .idle_timeout_usec = 100 * USEC_PER_SEC });
        int fd = client_new(w, 1), other;

        client_say(w, fd, request);
        client_expect(w, fd, 200);
        assert_quiet(w);
        other = client_new(w, 1);
        assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
        client_expect(w, fd, 200);
        assert_quiet(w);
        client_say(w, other, request);
        client_expect(w, other, 200);
        clock_skip(20 * USEC_PER_SEC);
        turns(w, 3);
        assert_false(loopback_client_is_closed(fd));
        assert_false(loopback_client_is_closed(other));
        assert_int_equal(w->n_refused[HTTP_REFUSED_SLOW], 0);
        closep(&fd);
        closep(&other);
        world_free(w);
}

/* A client that reads a large answer little by little is cut after idle_timeout_usec, although bytes go to it all the
 * time, and is not reported. */
TEST_CASE(test_slow_reader) {
        World *w = world_new((HttpServerOptions) { .request_timeout_usec = 5 * USEC_PER_SEC,
                                                   .idle_timeout_usec = 100 * USEC_PER_SEC });
        int fd = client_new(w, 1);
        static char text[256 * KIB];
        unsigned n = 0;

        client_say(w, fd, "GET /large" H "\r\n");
        while (w->n_handled == 0)
                turn(w);
        for (; http_server_n_connections(w->server) > 0 && n < 1000; n++) {
                (void) recv(fd, text, sizeof(text), 0);
                clock_skip(10 * USEC_PER_SEC);
                turns(w, 3);
        }
        assert_in_range(n, 5, 15);
        assert_int_equal(w->n_refused[HTTP_REFUSED_SLOW], 0);
        closep(&fd);
        world_free(w);
}

/* The last byte of a request comes together with the client that displaces it: the handler does not get the
 * request. */
TEST_CASE(test_displaced_when_complete) {
        World *w = world_new((HttpServerOptions) { .max_connections = 1 });
        int first = client_post(w, 2, 10, 1, false), second;

        turns(w, 3);
        second = client_new(w, 3);
        client_finish(first);
        client_say(w, second, "GET /a" H "\r\n");
        client_expect(w, second, 200);
        assert_int_equal(w->n_handled, 1);
        assert_int_equal(w->n_refused[HTTP_REFUSED_DISPLACED], 1);
        assert_true(loopback_client_is_closed(first));
        closep(&first);
        closep(&second);
        world_free(w);
}

/* Connects a client of the row, which sends nothing, sends a part of its body, or waits for the handler. */
static int client_in_phase(World *w, const char *triplet) {
        int fd = client_new(w, 2u + (unsigned) (triplet[0] - 'a'));

        turns(w, 2);
        if (triplet[1] == 'r')
                client_say(w, fd, "POST /a" H "Content-Length: 10\r\n\r\nabc");
        else if (triplet[1] == 'h')
                client_say(w, fd, "GET /wait" H "\r\n");
        turns(w, 2);
        return fd;
}

/* All connections are taken, and another client comes. */
TEST_CASE(test_displaced) {
        for (size_t i = 0; i < ELEMENTSOF(connection_rows); i++) {
                const struct ConnectionRow *r = connection_rows + i;
                unsigned n = (unsigned) (strlen(r->table) + 1) / 4, host = 2u + (unsigned) (r->newcomer - 'a');
                _cleanup_free_ char *address = NULL;
                int fds[8], fd;
                World *w;

                /* No client of IPv4 has an address in IPv6's form, or stays in the phases s and x. */
                if (n == 0 || strpbrk(r->table, "sxA"))
                        continue;
                print_message("  %s\n", r->what);
                w = world_new((HttpServerOptions) { .max_connections = n });
                for (unsigned k = 0; k < n; k++)
                        fds[k] = client_in_phase(w, r->table + 4 * k);
                assert_int_equal(http_server_n_connections(w->server), n);
                fd = client_new(w, host);
                client_say(w, fd, "GET /a" H "\r\n");
                client_expect(w, fd, r->displaced < 0 ? 0 : 200);
                turns(w, 5);
                for (int k = 0; k < (int) n; k++)
                        assert_int_equal(loopback_client_is_closed(fds[k]), k == r->displaced);
                assert_int_equal(w->n_refused[HTTP_REFUSED_DISPLACED], r->displaced >= 0);
                assert_int_equal(w->n_refused[HTTP_REFUSED_CONNECTION], r->displaced < 0);
                if (r->displaced >= 0)
                        host = 2u + (unsigned) (r->table[4 * r->displaced] - 'a');
                address = strf("127.0.0.%u", host);
                /* The address is of the refused newcomer, or of the connection that gave way. */
                assert_string_equal(w->refused_address, address);
                closep(&fd);
                for (unsigned k = 0; k < n; k++)
                        closep(fds + k);
                world_free(w);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_connections_of_one_address),
                cmocka_unit_test(test_slow_clients),
                cmocka_unit_test(test_slow_handler),
                cmocka_unit_test(test_slow_clients_together),
                cmocka_unit_test(test_request_read_with_new_client),
                cmocka_unit_test(test_slow_reader),
                cmocka_unit_test(test_displaced_when_complete),
                cmocka_unit_test(test_displaced),
        };

        return cmocka_run_group_tests_name("http-limits", tests, NULL, NULL);
}
