/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "file-util.h"
#include "http-server.h"
#include "string-util.h"
#include "tls-fixture.h"

#define PATIENCE_USEC (60 * USEC_PER_SEC)
#define BODY_MAX 1000

typedef struct World {
        Loop *loop;
        HttpServer *server;
        StrBuf handled;
        HttpExchange *held;
        unsigned n_gone;
        int fd;        /* a client that says what it is told, byte for byte */
        StrBuf answer; /* what it has heard */
        bool closed;   /* by the server */
} World;

static void on_gone(HttpExchange *x, void *userdata) {
        World *w = userdata;

        assert_ptr_equal(x, w->held);
        w->held = NULL;
        w->n_gone++;
}

static void handler(HttpExchange *x, void *userdata) {
        World *w = userdata;
        const char *a = http_header_find(x->headers, x->n_headers, "x-a");

        assert_int_equal(strlen(x->body), x->body_size); /* a NUL stands behind it */
        strbuf_addf(&w->handled, "%s:%s?%s:%s:%zu ", http_method_to_string(x->method), x->path, x->query,
                    a ? a : "-", x->body_size);
        assert_null(x->client_identity);
        if (streq(x->path, "/hold")) {
                x->on_gone = on_gone;
                x->userdata = w;
                w->held = x;
        } else {
                if (streq(x->path, "/answer")) {
                        HttpExchange *held = TAKE_PTR(w->held);

                        held->ops->reply(held, 200, NULL, 0, "answered", 8);
                }
                x->ops->reply(x, 200, NULL, 0, "hello", 5);
        }
}

static World *world_new(const HttpServerOptions *options) {
        static const HttpServerOptions defaults = { .address = "127.0.0.1",
                                                    .listen_fd = -EBADF,
                                                    .max_body_bytes = BODY_MAX };
        World *w = new0(World, 1);

        assert_non_null(w);
        w->fd = -EBADF;
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(http_server_new(w->loop, options ? options : &defaults, handler, w, &w->server),
                           0);
        return w;
}

static World *world_free(World *w) {
        closep(&w->fd);
        http_server_free(w->server);
        loop_free(w->loop);
        strbuf_done(&w->handled);
        strbuf_done(&w->answer);
        free(w);
        return NULL;
}
DEFINE_FREEP(World, world_free);

static void client_connect(World *w) {
        struct sockaddr_in in = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons(http_server_port(w->server)) };

        closep(&w->fd);
        strbuf_truncate(&w->answer, 0);
        w->closed = false;
        w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_return_code(connect(w->fd, (struct sockaddr *) &in, sizeof(in)), errno);
        assert_return_code(fcntl(w->fd, F_SETFL, O_NONBLOCK), errno);
}

/* Returns the number of this process's descriptors that listen on the port. */
static unsigned n_listening(uint16_t port) {
        unsigned n = 0;

        for (int fd = 3; fd < 1024; fd++) {
                struct sockaddr_in in = { 0 };
                socklen_t size = sizeof(in), one = sizeof(int);
                int listens = 0;

                n += getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &one) >= 0 && listens &&
                     getsockname(fd, (struct sockaddr *) &in, &size) >= 0 && in.sin_port == htons(port);
        }
        return n;
}

static void client_listen(World *w) {
        char buffer[65536];
        ssize_t n = w->closed ? -1 : recv(w->fd, buffer, sizeof(buffer), 0);

        if (n > 0)
                strbuf_add_n(&w->answer, buffer, (size_t) n);
        else if (n == 0 || (errno != EAGAIN && !w->closed))
                w->closed = true;
}

static void turn(World *w) {
        assert_true(loop_iterate(w->loop, 10 * USEC_PER_MSEC) >= 0);
        if (w->fd >= 0)
                client_listen(w);
}

static void client_say(World *w, const char *data, size_t size) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;

        while (size > 0 && !w->closed) {
                ssize_t n = send(w->fd, data, size, MSG_NOSIGNAL);

                assert_true(loop_now(w->loop) < deadline);
                if (n > 0) {
                        data += n;
                        size -= (size_t) n;
                }
                turn(w);
        }
}

/* Until the answer contains the text; NULL: until the server has closed. */
static void client_expect(World *w, const char *text) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;
        size_t seen = 0;

        while (text ? !strstr(strbuf_str(&w->answer) + seen, text) : !w->closed) {
                if (text && w->answer.size > strlen(text))
                        seen = w->answer.size - strlen(text);
                if (loop_now(w->loop) >= deadline)
                        fail_msg("expected %s, got: %s", text ? text : "the end", strbuf_str(&w->answer));
                turn(w);
        }
}

static void wait_until_held(World *w) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;

        while (!w->held) {
                assert_true(loop_now(w->loop) < deadline);
                turn(w);
        }
}

static void wait_until_gone(World *w) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;

        while (w->n_gone == 0) {
                assert_true(loop_now(w->loop) < deadline);
                turn(w);
        }
}

#define H " HTTP/1.1\r\nHost: a\r\n"

/* One row is one request on a fresh connection. */
TEST_CASE(test_requests) {
        static const struct {
                const char *what, *request;
                size_t body; /* so many more bytes */
                const char *status, *handled;
        } rows[] = {
                { "a path stays undecoded", "GET /a%2Fb/%c3?x=%20&y" H "\r\n", 0, " 200 ",
                  "GET:/a%2Fb/%c3?x=%20&y:-:0 " },
                { "an empty query", "GET /a?" H "\r\n", 0, " 200 ", "GET:/a?:-:0 " },
                { "a query of question marks", "GET /a???" H "\r\n", 0, " 200 ", "GET:/a???:-:0 " },
                { "the absolute form", "GET http://host:1/a?b" H "\r\n", 0, " 200 ", "GET:/a?b:-:0 " },
                { "the absolute form without a path", "GET http://host:1?b" H "\r\n", 0, " 200 ",
                  "GET:/?b:-:0 " },
                { "a header", "GET /a" H "X-A: b\r\n\r\n", 0, " 200 ", "GET:/a?:b:0 " },
                { "an empty header", "GET /a" H "X-A:\r\n\r\n", 0, " 200 ", "GET:/a?::0 " },
                { "a body", "POST /a" H "Content-Length: 10\r\n\r\n", 10, " 200 ", "POST:/a?:-:10 " },
                { "a body in chunks",
                  "PATCH /a" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 0,
                  " 200 ", "PATCH:/a?:-:5 " },
                { "as large as allowed", "PUT /a" H "Content-Length: 1000\r\n\r\n", 1000, " 200 ",
                  "PUT:/a?:-:1000 " },
                { "larger than allowed", "PUT /a" H "Content-Length: 1001\r\n\r\n", 1001, " 413 ", "" },
                { "much larger than allowed", "PUT /a" H "Content-Length: 99999999\r\n\r\n", 0, " 413 ",
                  "" },
                { "larger than any number", "PUT /a" H "Content-Length: 99999999999999999999999\r\n\r\n", 0,
                  NULL, "" },
                { "asks before it sends too much",
                  "PUT /a" H "Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n", 0, " 413 ", "" },
                { "a method we do not know", "BREW /a" H "\r\n", 0, " 501 ", "" },
                { "no host", "GET /a HTTP/1.1\r\n\r\n", 0, " 400 ", "" },
                { "not HTTP", "\x16\x03\x01\r\n\r\n", 0, NULL, "" },
        };
        _cleanup_(world_freep) World *w = world_new(NULL);
        char body[2000];

        memset(body, 'x', sizeof(body));
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                strbuf_truncate(&w->handled, 0);
                client_connect(w);
                client_say(w, rows[i].request, strlen(rows[i].request));
                client_say(w, body, rows[i].body);
                client_expect(w, rows[i].status);
                assert_string_equal(strbuf_str(&w->handled), rows[i].handled);
        }
}

/* In chunks nobody knows beforehand how much it will be. */
TEST_CASE(test_large_in_chunks) {
        static const struct {
                const char *what;
                unsigned n_chunks;
                const char *status;
        } rows[] = {
                { "a little too large", 20, " 413 " },
                { "without end", 20000, NULL },
        };
        _cleanup_(world_freep) World *w = world_new(NULL);
        char chunk[110];

        (void) snprintf(chunk, sizeof(chunk), "64\r\n%0100d\r\n", 7);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                static const char head[] = "POST /a" H "Transfer-Encoding: chunked\r\n\r\n";
                _cleanup_strbuf_ StrBuf body = { 0 };

                print_message("%s\n", rows[i].what);
                for (unsigned k = 0; k < rows[i].n_chunks; k++)
                        strbuf_add(&body, chunk);
                strbuf_add(&body, "0\r\n\r\n");
                client_connect(w);
                client_say(w, head, strlen(head));
                client_say(w, strbuf_str(&body), body.size);
                client_expect(w, rows[i].status);
        }
        assert_string_equal(strbuf_str(&w->handled), "");
}

static void say(World *w, const char *text) {
        client_say(w, text, strlen(text));
}

TEST_CASE(test_later) {
        static const HttpHeader header = { "X-Later", "yes" };
        _cleanup_(world_freep) World *w = world_new(NULL);

        client_connect(w);
        say(w, "GET /hold" H "\r\n");
        wait_until_held(w);
        w->held->ops->reply(w->held, 201, &header, 1, "late", 4);
        client_expect(w, "\r\n\r\nlate");
        assert_non_null(strstr(strbuf_str(&w->answer), " 201 "));
        assert_non_null(strstr(strbuf_str(&w->answer), "X-Later: yes\r\n"));

        w->held = NULL; /* the same connection again */
        say(w, "GET /hold" H "\r\nGET /next" H "\r\n");
        wait_until_held(w);
        assert_string_equal(strbuf_str(&w->handled), "GET:/hold?:-:0 GET:/hold?:-:0 ");
        w->held->ops->reply(w->held, 200, NULL, 0, "first", 5);
        client_expect(w, "first");
        client_expect(w, "hello");
        assert_int_equal(w->n_gone, 0);
}

/* A request of one client answers that of another one. */
TEST_CASE(test_answered_by_another) {
        _cleanup_(world_freep) World *w = world_new(NULL);
        int other;

        client_connect(w);
        say(w, "GET /hold" H "\r\n");
        wait_until_held(w);
        other = TAKE_FD(w->fd);
        client_connect(w);
        say(w, "GET /answer" H "\r\n");
        client_expect(w, "hello");
        closep(&w->fd);
        w->fd = other;
        strbuf_truncate(&w->answer, 0);
        client_expect(w, "answered");
        assert_int_equal(w->n_gone, 0);
}

TEST_CASE(test_stream) {
        static const struct {
                const char *what;
                bool clean;
                const char *end;
        } rows[] = {
                { "that ends", true, "\r\n0\r\n\r\n" },
                { "that breaks", false, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new(NULL);

                print_message("%s\n", rows[i].what);
                client_connect(w);
                say(w, "GET /hold" H "\r\n");
                wait_until_held(w);
                w->held->ops->stream_begin(w->held, 200, NULL, 0);
                client_expect(w, "\r\n\r\n");
                w->held->ops->stream_data(w->held, "one", 3);
                client_expect(w, "3\r\none\r\n");
                w->held->ops->stream_data(w->held, "", 0);
                w->held->ops->stream_data(w->held, "two", 3);
                w->held->ops->stream_data(w->held, "three", 5);
                client_expect(w, "twothree");
                w->held->ops->stream_data(w->held, "last", 4);
                w->held->ops->stream_end(w->held, rows[i].clean);
                client_expect(w, "last");
                client_expect(w, rows[i].end);
                assert_int_equal(!strstr(strbuf_str(&w->answer), "\r\n0\r\n"), !rows[i].clean);
                assert_int_equal(w->n_gone, 0); /* the handler had ended it */
        }
}

/* More than a socket takes, to a client that reads slowly. */
TEST_CASE(test_large_stream) {
        _cleanup_(world_freep) World *w = world_new(NULL);
        _cleanup_free_ char *piece = new0(char, 1000000);

        assert_non_null(piece);
        memset(piece, 'x', 1000000);
        client_connect(w);
        say(w, "GET /hold" H "\r\n");
        wait_until_held(w);
        w->held->ops->stream_begin(w->held, 200, NULL, 0);
        for (unsigned i = 0; i < 8; i++)
                w->held->ops->stream_data(w->held, piece, 1000000);
        w->held->ops->stream_end(w->held, true);
        client_expect(w, "\r\n0\r\n\r\n");
        assert_true(w->answer.size > 8000000);
}

typedef enum Leave {
        LEAVE_BEFORE_ANSWER,
        LEAVE_IN_STREAM,
        LEAVE_IN_BODY,
        LEAVE_SERVER_FREED,
} Leave;

/* The handler hears of it although it says nothing. */
TEST_CASE(test_gone) {
        static const struct {
                const char *what;
                Leave leave;
                unsigned n_gone;
        } rows[] = {
                { "before the answer", LEAVE_BEFORE_ANSWER, 1 },
                { "in a silent stream", LEAVE_IN_STREAM, 1 },
                { "in the body of the request, of which the handler does not know yet", LEAVE_IN_BODY, 0 },
                { "the server itself goes", LEAVE_SERVER_FREED, 1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new(NULL);

                print_message("%s\n", rows[i].what);
                client_connect(w);
                if (rows[i].leave == LEAVE_IN_BODY) {
                        say(w, "POST /hold" H "Content-Length: 10\r\n\r\nabc");
                        closep(&w->fd);
                        for (unsigned k = 0; k < 20; k++)
                                turn(w);
                        assert_null(w->held);
                        assert_int_equal(w->n_gone, 0);
                        continue;
                }

                say(w, "GET /hold" H "\r\n");
                wait_until_held(w);
                if (rows[i].leave == LEAVE_IN_STREAM) {
                        w->held->ops->stream_begin(w->held, 200, NULL, 0);
                        w->held->ops->stream_data(w->held, "one", 3);
                        client_expect(w, "one");
                }
                if (rows[i].leave == LEAVE_SERVER_FREED)
                        w->server = http_server_free(w->server);
                else
                        closep(&w->fd);
                wait_until_gone(w);
                assert_int_equal(w->n_gone, rows[i].n_gone);
        }
}

TEST_CASE(test_idle_timeout) {
        static const HttpServerOptions options = { .address = "127.0.0.1",
                                                   .listen_fd = -EBADF,
                                                   .max_body_bytes = BODY_MAX,
                                                   .idle_timeout_usec = USEC_PER_SEC };
        _cleanup_(world_freep) World *w = world_new(&options);
        usec_t began = loop_now(w->loop);

        client_connect(w);
        say(w, "GET /slow"); /* and no more */
        client_expect(w, NULL);
        assert_in_range(loop_now(w->loop) - began, 900 * USEC_PER_MSEC, PATIENCE_USEC);
}

TEST_CASE(test_listen) {
        _cleanup_(test_cert_freep) TestCert *ca = test_cert_new(NULL, NULL, "ca", NULL);
        const struct {
                const char *what;
                HttpServerOptions options;
                int error;
        } rows[] = {
                { "no address", { .listen_fd = -EBADF, .max_body_bytes = 1 }, -EINVAL },
                { "a name", { .listen_fd = -EBADF, .address = "localhost", .max_body_bytes = 1 }, -EINVAL },
                { "not ours",
                  { .listen_fd = -EBADF, .address = "192.0.2.1", .max_body_bytes = 1 },
                  -EADDRNOTAVAIL },
                { "a certificate without its key",
                  { .listen_fd = -EBADF,
                    .address = "127.0.0.1",
                    .max_body_bytes = 1,
                    .cert_pem = ca->cert_pem },
                  -EINVAL },
                { "a key that is none",
                  { .listen_fd = -EBADF,
                    .address = "127.0.0.1",
                    .max_body_bytes = 1,
                    .cert_pem = ca->cert_pem,
                    .key_pem = "x" },
                  -EIO },
                { "clients verified without TLS",
                  { .listen_fd = -EBADF,
                    .address = "127.0.0.1",
                    .max_body_bytes = 1,
                    .client_ca_pem = ca->cert_pem },
                  -EINVAL },
        };
        _cleanup_(loop_freep) Loop *loop = NULL;
        HttpServer *server = NULL;

        assert_return_code(loop_new(&loop), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                assert_int_equal(http_server_new(loop, &rows[i].options, handler, NULL, &server),
                                 rows[i].error);
                assert_null(server);
        }
}

/* A socket handed over, as systemd does. */
TEST_CASE(test_listen_fd) {
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(in);
        HttpServerOptions options = { .max_body_bytes = BODY_MAX };
        World *w;

        options.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_return_code(bind(options.listen_fd, (struct sockaddr *) &in, size), errno);
        assert_return_code(listen(options.listen_fd, 5), errno);
        assert_return_code(getsockname(options.listen_fd, (struct sockaddr *) &in, &size), errno);

        w = world_new(&options);
        assert_int_equal(http_server_port(w->server), ntohs(in.sin_port));
        client_connect(w);
        say(w, "GET /a" H "\r\n");
        client_expect(w, "hello");
        world_free(w);
        assert_int_equal(fcntl(options.listen_fd, F_GETFD), -1); /* closed with the server */
}

/* A successor on the same socket: what is open there ends with its answer, and whoever connects is served by the new one. */
TEST_CASE(test_retired) {
        HttpServerOptions options = { .max_body_bytes = BODY_MAX };
        HttpServer *old;
        World *w = world_new(NULL);
        uint16_t port = http_server_port(w->server);
        int open_fd;

        client_connect(w);
        say(w, "GET /hold" H "\r\n");
        wait_until_held(w);
        open_fd = TAKE_FD(w->fd);

        old = w->server;
        options.listen_fd = http_server_dup_socket(old);
        assert_true(options.listen_fd >= 0);
        assert_return_code(http_server_new(w->loop, &options, handler, w, &w->server), 0);
        assert_int_equal(n_listening(port), 2);
        http_server_retire(old);
        assert_int_equal(n_listening(port), 1);
        assert_int_equal(http_server_dup_socket(old), -EBADF);
        assert_int_equal(http_server_port(old), http_server_port(w->server));
        assert_int_equal(http_server_n_connections(old), 1);

        print_message("  a new connection is the successor's, and stays open\n");
        client_connect(w);
        for (unsigned i = 0; i < 2; i++) {
                say(w, "GET /a" H "\r\n");
                client_expect(w, "hello");
                assert_false(w->closed);
                strbuf_truncate(&w->answer, 0);
        }
        assert_int_equal(http_server_n_connections(w->server), 1);

        print_message("  an old one ends with its answer\n");
        closep(&w->fd);
        w->fd = open_fd;
        strbuf_truncate(&w->answer, 0);
        w->held->ops->reply(w->held, 200, NULL, 0, "hello", 5);
        w->held = NULL;
        client_expect(w, "hello");
        client_expect(w, NULL);
        assert_non_null(strstr(strbuf_str(&w->answer), "Connection: close"));
        assert_int_equal(http_server_n_connections(old), 0);
        http_server_free(old);
        world_free(w);
}

static void free_server(HttpExchange *x, void *userdata) {
        World *w = userdata;

        w->server = http_server_free(w->server);
}

/* A handler that frees its server is a bug, which ends the process. */
TEST_CASE(test_freed_by_its_handler) {
        int status;
        pid_t pid = fork();

        assert_return_code(pid, errno);
        if (pid == 0) {
                HttpServerOptions options = { .address = "127.0.0.1", .listen_fd = -EBADF, .max_body_bytes = BODY_MAX };
                World *w = world_new(NULL);

                (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* no core file */
                (void) fclose(stderr); /* the failed assertion */
                http_server_free(w->server);
                if (http_server_new(w->loop, &options, free_server, w, &w->server) < 0)
                        _exit(1);
                client_connect(w);
                say(w, "GET /a" H "\r\n");
                (void) alarm(PATIENCE_USEC / USEC_PER_SEC);
                for (;;)
                        turn(w);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

static int another_client(World *w) {
        client_connect(w);
        return TAKE_FD(w->fd);
}

static void turns(World *w, unsigned n) {
        while (n-- > 0)
                turn(w);
}

/* Clients beyond the limit wait for a place. test-http-limits has those that displace others. */
TEST_CASE(test_limit) {
        enum { LIMIT = 8, MORE = 5 };
        const HttpServerOptions options = { .address = "127.0.0.1",
                                            .listen_fd = -EBADF,
                                            .max_body_bytes = BODY_MAX,
                                            .max_connections = LIMIT };
        World *w = world_new(&options);
        int fds[LIMIT + MORE];

        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                fds[i] = another_client(w);
                turns(w, 3);
        }
        assert_int_equal(http_server_n_connections(w->server), LIMIT);
        for (size_t i = 0; i < ELEMENTSOF(fds); i++) {
                char byte;

                assert_int_equal(recv(fds[i], &byte, 1, 0), -1);
        }

        print_message("  one leaves: there is room again\n");
        closep(fds + 0);
        turns(w, 10);
        closep(fds + LIMIT);
        w->fd = TAKE_FD(fds[LIMIT + 1]);
        say(w, "GET /a" H "\r\n");
        client_expect(w, "hello");
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                closep(fds + i);
        world_free(w);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_requests),     cmocka_unit_test(test_large_in_chunks),
                cmocka_unit_test(test_later),        cmocka_unit_test(test_answered_by_another),
                cmocka_unit_test(test_stream),
                cmocka_unit_test(test_large_stream), cmocka_unit_test(test_gone),
                cmocka_unit_test(test_idle_timeout), cmocka_unit_test(test_listen),
                cmocka_unit_test(test_listen_fd),    cmocka_unit_test(test_retired),
                cmocka_unit_test(test_freed_by_its_handler),
                cmocka_unit_test(test_limit),
        };
        return cmocka_run_group_tests_name("http-server", tests, NULL, NULL);
}
