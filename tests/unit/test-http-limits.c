/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "clock-skip.h"
#include "cmocka-test.h"
#include "connection-rows.h"
#include "file-util.h"
#include "http-server.h"
#include "loopback-client.h"
#include "string-util.h"
#include "tls-fixture.h"

#define PATIENCE_USEC USEC_PER_MINUTE /* only ends a test that hangs */
#define H " HTTP/1.1\r\nHost: a\r\n"
#define KIB 1024u
#define MIB (1024u * 1024)

/* A server, and what it did. */
typedef struct World {
        Loop *loop;
        HttpServer *server;
        size_t handled_bytes, most_bytes;
        size_t turn_bytes, most_turn_bytes; /* that the handler got in one iteration of the loop */
        unsigned n_handled, n_refused[_HTTP_REFUSAL_MAX];
        char refused_address[64], client_address[64]; /* of the last refusal, of the last request */
        StrBuf begun, handled; /* paths, in the order of their headers and as the handler got them */
        HttpExchange *held;    /* the last "/wait" */
} World;

static void on_gone(HttpExchange *x, void *userdata) {
        World *w = userdata;

        if (w->held == x)
                w->held = NULL;
}

static void handler(HttpExchange *x, void *userdata) {
        World *w = userdata;

        w->n_handled++;
        w->handled_bytes = x->body_size;
        w->turn_bytes += x->body_size;
        w->most_turn_bytes = MAX(w->most_turn_bytes, w->turn_bytes);
        (void) snprintf(w->client_address, sizeof(w->client_address), "%s", strempty(x->client_address));
        strbuf_add(&w->handled, x->path);
        if (streq(x->path, "/wait")) {
                x->on_gone = on_gone;
                x->userdata = w;
                w->held = x;
        } else if (streq(x->path, "/large")) {
                _cleanup_free_ char *body = new0(char, 16 * MIB);

                assert_non_null(body);
                x->ops->reply(x, 200, NULL, 0, body, 16 * MIB);
        } else
                http_reply_text(x, 200, "text/plain", "hello");
}

static void answer_held(World *w) {
        HttpExchange *x = TAKE_PTR(w->held);

        assert_non_null(x);
        http_reply_text(x, 200, "text/plain", "late");
}

static unsigned on_headers(const HttpExchange *x, void *userdata, const char **ret_text) {
        strbuf_add(&((World *) userdata)->begun, x->path);
        if (!streq(x->path, "/secret"))
                return 0;
        *ret_text = "who are you";
        return 401;
}

static void on_refused(HttpRefusal why, const char *address, void *userdata) {
        World *w = userdata;

        w->n_refused[why]++;
        (void) snprintf(w->refused_address, sizeof(w->refused_address), "%s", address);
}

static World *world_new(HttpServerOptions options) {
        World *w = new0(World, 1);

        assert_non_null(w);
        options.address = "127.0.0.1";
        options.listen_fd = -EBADF;
        options.displaces = true;
        options.on_headers = on_headers;
        options.on_refused = on_refused;
        if (options.max_body_bytes == 0)
                options.max_body_bytes = MIB;
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(http_server_new(w->loop, &options, handler, w, &w->server), 0);
        return w;
}

/* Nothing of a freed server is left in the loop. */
static void world_free(World *w) {
        http_server_free(w->server);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(loop_iterate(w->loop, 0), 0);
        loop_free(w->loop);
        strbuf_done(&w->begun);
        strbuf_done(&w->handled);
        free(w);
}

/* The server does nothing while its clients do nothing. */
static void assert_quiet(World *w) {
        for (unsigned i = 0; loop_iterate(w->loop, 0) > 0; i++)
                assert_true(i < 100);
}

static void turn(World *w) {
        w->turn_bytes = 0;
        assert_true(loop_iterate(w->loop, 5 * USEC_PER_MSEC) >= 0);
        w->most_bytes = MAX(w->most_bytes, http_server_body_bytes(w->server));
}

static void turns(World *w, unsigned n) {
        while (n-- > 0)
                turn(w);
}

static int client_new(World *w, unsigned host) {
        return loopback_client_new(http_server_port(w->server), host);
}

/* Sends as much as the server takes while the client is not refused. */
static void client_send(World *w, int fd, const void *data, size_t size) {
        const char *p = data;
        char byte;

        for (unsigned refused = 0; size > 0 && refused < 100;) {
                ssize_t n = send(fd, p, size, MSG_NOSIGNAL);

                if (n > 0) {
                        p += n;
                        size -= (size_t) n;
                        refused = 0;
                } else if (n < 0 && errno != EAGAIN)
                        return;
                else
                        refused++;
                turn(w);
                if (recv(fd, &byte, 1, MSG_PEEK) >= 0)
                        return;
        }
}

static void client_say(World *w, int fd, const char *text) {
        client_send(w, fd, text, strlen(text));
}

/* Waits until the server has answered with that status, or has closed without an answer (0). */
static void client_expect(World *w, int fd, unsigned status) {
        usec_t end = loop_now(w->loop) + PATIENCE_USEC;
        char answer[512] = "";
        ssize_t n;

        while ((n = recv(fd, answer, sizeof(answer) - 1, 0)) < 0 && errno == EAGAIN) {
                assert_true(loop_now(w->loop) < end);
                turn(w);
        }
        if (status == 0)
                assert_true(n <= 0);
        else {
                assert_true(n > 0);
                assert_int_equal(strtoul(answer + strlen("HTTP/1.1 "), NULL, 10), status);
        }
}

/* Sends a request with that body, of which so many bytes are missing; in chunks: so much that the size is
 * not known. */
static int client_post(World *w, unsigned host, size_t size, size_t missing, bool chunked) {
        _cleanup_free_ char *body = new0(char, size);
        int fd = client_new(w, host);
        char head[128];

        assert_non_null(body);
        memset(body, 'x', size);
        (void) snprintf(head, sizeof(head),
                        chunked ? "POST /a" H "Transfer-Encoding: chunked\r\n\r\n"
                                : "POST /a" H "Content-Length: %zu\r\n\r\n",
                        size);
        client_say(w, fd, head);
        if (!chunked) {
                client_send(w, fd, body, size - missing);
                return fd;
        }
        for (size_t done = 0; done < size - missing;) {
                size_t n = MIN((size_t) 16 * KIB, size - missing - done);

                (void) snprintf(head, sizeof(head), "%zx\r\n", n);
                client_say(w, fd, head);
                client_send(w, fd, body, n);
                client_say(w, fd, "\r\n");
                done += n;
        }
        if (missing == 0)
                client_say(w, fd, "0\r\n\r\n");
        return fd;
}

static size_t body_bytes(World *w) {
        turns(w, 5);
        return http_server_body_bytes(w->server);
}

/* -- tests ---------------------------------------------------------------------------------------------- */

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

/* The rates are so low that the buckets do not gain a token while a test runs. */
#define SLOW_RATES .bytes_per_sec = 1, .connections_per_sec = 0

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

/* Completes a request without a turn of the loop. */
static void client_finish(int fd) {
        assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
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
                cmocka_unit_test(test_connections_of_one_address),
                cmocka_unit_test(test_slow_clients),
                cmocka_unit_test(test_slow_handler),
                cmocka_unit_test(test_slow_clients_together),
                cmocka_unit_test(test_slow_reader),
                cmocka_unit_test(test_displaced),
                cmocka_unit_test(test_displaced_when_complete),
        };

        return cmocka_run_group_tests_name("http-limits", tests, NULL, NULL);
}
