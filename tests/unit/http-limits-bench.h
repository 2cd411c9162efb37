/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixture of tests of the limits of an HTTP server: a server that notes what it does, and clients on loopback. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "clock-skip.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "http-server.h"
#include "loopback-client.h"
#include "string-util.h"

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

static inline void on_gone(HttpExchange *x, void *userdata) {
        World *w = userdata;

        if (w->held == x)
                w->held = NULL;
}

static inline void handler(HttpExchange *x, void *userdata) {
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

static inline void answer_held(World *w) {
        HttpExchange *x = TAKE_PTR(w->held);

        assert_non_null(x);
        http_reply_text(x, 200, "text/plain", "late");
}

static inline unsigned on_headers(const HttpExchange *x, void *userdata, const char **ret_text) {
        strbuf_add(&((World *) userdata)->begun, x->path);
        if (!streq(x->path, "/secret"))
                return 0;
        *ret_text = "who are you";
        return 401;
}

static inline void on_refused(HttpRefusal why, const char *address, void *userdata) {
        World *w = userdata;

        w->n_refused[why]++;
        (void) snprintf(w->refused_address, sizeof(w->refused_address), "%s", address);
}

static inline World *world_new(HttpServerOptions options) {
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
static inline void world_free(World *w) {
        http_server_free(w->server);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal(loop_iterate(w->loop, 0), 0);
        loop_free(w->loop);
        strbuf_done(&w->begun);
        strbuf_done(&w->handled);
        free(w);
}

/* The server does nothing while its clients do nothing. */
static inline void assert_quiet(World *w) {
        for (unsigned i = 0; loop_iterate(w->loop, 0) > 0; i++)
                assert_true(i < 100);
}

static inline void turn(World *w) {
        w->turn_bytes = 0;
        assert_true(loop_iterate(w->loop, 5 * USEC_PER_MSEC) >= 0);
        w->most_bytes = MAX(w->most_bytes, http_server_body_bytes(w->server));
}

static inline void turns(World *w, unsigned n) {
        while (n-- > 0)
                turn(w);
}

static inline int client_new(World *w, unsigned host) {
        return loopback_client_new(http_server_port(w->server), host);
}

/* Sends as much as the server takes while the client is not refused. */
static inline void client_send(World *w, int fd, const void *data, size_t size) {
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

static inline void client_say(World *w, int fd, const char *text) {
        client_send(w, fd, text, strlen(text));
}

/* Waits until the server has answered with that status, or has closed without an answer (0). */
static inline void client_expect(World *w, int fd, unsigned status) {
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
static inline int client_post(World *w, unsigned host, size_t size, size_t missing, bool chunked) {
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

static inline size_t body_bytes(World *w) {
        turns(w, 5);
        return http_server_body_bytes(w->server);
}

/* Completes a request without a turn of the loop. */
static inline void client_finish(int fd) {
        assert_int_equal(send(fd, "x", 1, MSG_NOSIGNAL), 1);
}

/* The rates are so low that the buckets do not gain a token while a test runs. */
#define SLOW_RATES .bytes_per_sec = 1, .connections_per_sec = 0
