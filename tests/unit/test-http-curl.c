/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "clock-skip.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "http-curl-internal.h"
#include "http-server.h"
#include "string-util.h"
#include "texts.h"
#include "tls-fixture.h"

/* Limit of a wait for an answer, which may take long on a busy machine. */
#define PATIENCE_USEC (60 * USEC_PER_SEC)
/* Timeout of a call that must time out: the test skips this time once the request is sent. */
#define TIMEOUT_USEC (30 * USEC_PER_SEC)
/* What rests so long is read because of something else. */
#define REST_USEC USEC_PER_MINUTE

/* -- the client's side: a world with one loop, one transport, one server ------------------------------- */

typedef struct World {
        Loop *loop;
        HttpTransport *transport;
        HttpServer *server;
        StrBuf seen;        /* by the client */
        StrBuf handled;     /* by the server */
        HttpExchange *held; /* by the handler, for "/hold" */
        const char *identity; /* of the last request; compared, never read */
        unsigned n_done, n_data, n_gone;
        HttpCall *call;
        bool free_in_data, free_in_done, free_transport_in_done, start_in_done;
        int data_result;
        unsigned n_may_send; /* how often a guard says yes */
        usec_t started_usec, finished_usec;
} World;

static void run_until(World *w, const unsigned *counter, unsigned value) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;

        while (*counter < value) {
                assert_true(loop_now(w->loop) < deadline);
                assert_true(loop_iterate(w->loop, 100 * USEC_PER_MSEC) >= 0);
        }
}

static void run_for(World *w, usec_t usec) {
        usec_t end = loop_now(w->loop) + usec;

        for (usec_t now = loop_now(w->loop); now < end; now = loop_now(w->loop))
                assert_true(loop_iterate(w->loop, end - now) >= 0);
}

static void run_until_quiet(World *w) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;

        while (loop_iterate(w->loop, 100 * USEC_PER_MSEC) > 0)
                assert_true(loop_now(w->loop) < deadline);
}

/* Until the request to "/hold" is there. */
static void run_until_held(World *w) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;

        while (!w->held) {
                assert_true(loop_now(w->loop) < deadline);
                assert_true(loop_iterate(w->loop, 100 * USEC_PER_MSEC) >= 0);
        }
}

static void on_gone(HttpExchange *x, void *userdata) {
        World *w = userdata;

        assert_ptr_equal(x, w->held);
        w->held = NULL;
        w->n_gone++;
}

static void reply_text(HttpExchange *x, unsigned status, const char *text) {
        x->ops->reply(x, status, NULL, 0, text, strlen(text));
}

static void reply_stream(HttpExchange *x, bool whole) {
        static const HttpHeader header = { "X-Server", "here" };

        x->ops->stream_begin(x, 200, &header, 1);
        x->ops->stream_data(x, "one", 3);
        if (whole)
                x->ops->stream_data(x, "two", 3);
        x->ops->stream_end(x, whole);
}

static void reply_big(HttpExchange *x) {
        _cleanup_free_ char *big = new0(char, 300000);

        assert_non_null(big);
        memset(big, 'x', 300000);
        x->ops->reply(x, 200, NULL, 0, big, 300000);
}

static void reply_headers(HttpExchange *x) {
        static const char *const names[] = { "content-type", "User-Agent", "Expect", "X-Empty" };
        _cleanup_strbuf_ StrBuf text = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *value = http_header_find(x->headers, x->n_headers, names[i]);

                strbuf_addf(&text, "|%s", value ? value : "-");
        }
        reply_text(x, 200, strbuf_str(&text));
}

static void handler(HttpExchange *x, void *userdata) {
        static const HttpHeader location = { "Location", "/plain" };
        World *w = userdata;

        w->identity = x->client_identity;
        strbuf_addf(&w->handled, "%s:%s?%s:%.*s ", http_method_to_string(x->method), x->path, x->query,
                    (int) x->body_size, (const char *) x->body);
        if (streq(x->path, "/hold")) {
                assert_null(w->held);
                w->held = x;
                x->on_gone = on_gone;
                x->userdata = w;
        } else if (streq(x->path, "/redirect"))
                x->ops->reply(x, 302, &location, 1, NULL, 0);
        else if (streq(x->path, "/who"))
                reply_text(x, 200, strempty(x->client_identity));
        else if (streq(x->path, "/big"))
                reply_big(x);
        else if (streq(x->path, "/headers"))
                reply_headers(x);
        else if (streq(x->path, "/stream") || streq(x->path, "/break"))
                reply_stream(x, streq(x->path, "/stream"));
        else if (streq(x->path, "/error"))
                reply_text(x, 500, "sorry");
        else
                reply_text(x, 200, "hello");
}

static int on_data(const void *data, size_t size, void *userdata) {
        World *w = userdata;

        w->n_data++;
        strbuf_addf(&w->seen, "[%.*s]", (int) size, (const char *) data);
        if (w->free_in_data)
                w->call = http_call_free(w->call);
        return w->data_result;
}

static void on_headers(const HttpHeader *headers, size_t n_headers, void *userdata) {
        strbuf_addf(&((World *) userdata)->seen, "<%s>",
                    strempty(http_header_find(headers, n_headers, "X-Server")));
}

static void on_done(const HttpResponse *r, void *userdata) {
        World *w = userdata;

        w->n_done++;
        w->started_usec = r->started_usec;
        w->finished_usec = r->finished_usec;
        assert_true(r->finished_usec >= r->started_usec);
        assert_non_null(r->error_text);
        if (r->error < 0) {
                assert_true(r->error_text[0] != 0);
                strbuf_addf(&w->seen, "%s%s ", strerrorname_np(-r->error), r->maybe_sent ? "?" : "");
        } else
                strbuf_addf(&w->seen, "%u:%s ", r->status, r->body);
        if (w->start_in_done) {
                HttpRequest q = { .url = "http://127.0.0.1:1/",
                                  .timeout_usec = 1000000,
                                  .max_response_bytes = 1 };

                w->start_in_done = false;
                assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        }
        if (w->free_in_done)
                w->call = http_call_free(w->call);
        if (w->free_transport_in_done)
                w->transport = http_transport_free(w->transport);
        assert_int_equal(strlen(r->body), r->body_size); /* still there */
}

static bool may_send(void *userdata) {
        World *w = userdata;

        if (w->n_may_send == 0)
                return false;
        w->n_may_send--;
        return true;
}

static World *world_new(void) {
        static const HttpCurlOptions options = { .user_agent = "test/1",
                                                 .max_connections_per_host = 1,
                                                 .keep_tls_buffers = true, /* as the coordinator does */
                                                 .rest_usec = REST_USEC };
        World *w = new0(World, 1);

        assert_non_null(w);
        assert_return_code(loop_new(&w->loop), 0);
        assert_return_code(http_curl_new(w->loop, NULL, &options, &w->transport), 0);
        return w;
}

static World *world_free(World *w) {
        http_call_free(w->call);
        http_transport_free(w->transport);
        http_server_free(w->server);
        loop_free(w->loop);
        strbuf_done(&w->seen);
        strbuf_done(&w->handled);
        free(w);
        return NULL;
}
DEFINE_FREEP(World, world_free);

static World *world_new_with_server(void) {
        static const HttpServerOptions options = { .address = "127.0.0.1",
                                                   .listen_fd = -EBADF,
                                                   .max_body_bytes = 1000000 };
        World *w = world_new();

        assert_return_code(http_server_new(w->loop, &options, handler, w, &w->server), 0);
        return w;
}

static char *url_of(World *w, const char *scheme, const char *path) {
        char *url = strf("%s://127.0.0.1:%u%s", scheme, http_server_port(w->server), path);

        assert_non_null(url);
        return url;
}

static void start(World *w, const HttpRequest *q) {
        size_t before = w->seen.size;

        w->call = http_call_free(w->call);
        assert_return_code(http_call_start(w->transport, q, on_done, w, &w->call), 0);
        assert_int_equal(w->seen.size, before); /* nothing inside the call */
}

/* Returns what the client saw of one call. If the call has a timeout of its own ("/hold"), the test skips that
 * time once the server has the request. */
static const char *call(World *w, HttpRequest q, const char *scheme, const char *path) {
        _cleanup_free_ char *url = url_of(w, scheme, path);
        usec_t timeout_usec = q.timeout_usec;
        unsigned n = w->n_done;

        q.url = url;
        if (q.timeout_usec == 0)
                q.timeout_usec = PATIENCE_USEC;
        if (q.max_response_bytes == 0)
                q.max_response_bytes = 1000;
        strbuf_truncate(&w->seen, 0);
        strbuf_truncate(&w->handled, 0);
        start(w, &q);
        if (timeout_usec > 0) {
                run_until_held(w);
                clock_skip(timeout_usec);
        }
        run_until(w, &w->n_done, n + 1);
        return strbuf_str(&w->seen);
}

/* -- a peer that says what it is told, byte for byte ---------------------------------------------------- */

typedef struct RawServer {
        World *w;
        int fd;
        uint16_t port;
        sd_event_source *io;
        struct {
                int fd;
                sd_event_source *io;
        } clients[8];
        unsigned n_accepted, n_requests;
        const char *
                answers[4]; /* to each request; NULL or "" closes; "\1" stays silent; "\2..." closes after */
} RawServer;

static int on_raw_client(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        RawServer *raw = userdata;
        const char *answer;
        char buffer[4096];
        ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        bool close_after;

        if (n <= 0) {
                (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
                return 0;
        }
        assert_true(raw->n_requests < ELEMENTSOF(raw->answers));
        answer = strempty(raw->answers[raw->n_requests++]);
        if (answer[0] == 1)
                return 0;
        close_after = answer[0] == 0 || answer[0] == 2;
        answer += answer[0] == 2;
        assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), strlen(answer));
        if (close_after) {
                (void) shutdown(fd, SHUT_RDWR);
                (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
        }
        return 0;
}

static int on_raw_accept(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        RawServer *raw = userdata;
        unsigned n = raw->n_accepted++;

        assert_true(n < ELEMENTSOF(raw->clients));
        raw->clients[n].fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        assert_return_code(raw->clients[n].fd, errno);
        assert_return_code(sd_event_add_io(loop_sd_event(raw->w->loop), &raw->clients[n].io,
                                           raw->clients[n].fd, EPOLLIN, on_raw_client, raw),
                           0);
        return 0;
}

static RawServer *raw_server_new(World *w) {
        RawServer *raw = new0(RawServer, 1);
        struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(in);

        assert_non_null(raw);
        raw->w = w;
        raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_return_code(bind(raw->fd, (struct sockaddr *) &in, size), errno);
        assert_return_code(getsockname(raw->fd, (struct sockaddr *) &in, &size), errno);
        assert_return_code(listen(raw->fd, 10), errno);
        raw->port = ntohs(in.sin_port);
        assert_return_code(
                sd_event_add_io(loop_sd_event(w->loop), &raw->io, raw->fd, EPOLLIN, on_raw_accept, raw), 0);
        return raw;
}

static RawServer *raw_server_free(RawServer *raw) {
        for (unsigned i = 0; i < raw->n_accepted; i++) {
                sd_event_source_disable_unref(raw->clients[i].io);
                (void) close(raw->clients[i].fd);
        }
        sd_event_source_disable_unref(raw->io);
        closep(&raw->fd);
        free(raw);
        return NULL;
}
DEFINE_FREEP(RawServer, raw_server_free);

/* -- tests ---------------------------------------------------------------------------------------------- */

/* One row is one call to our own server. */
TEST_CASE(test_calls) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json" }, { "X-Empty", "" } };
        static const struct {
                const char *what;
                HttpMethod method;
                const char *path, *body;
                bool stream, with_headers;
                const char *seen, *handled;
        } rows[] = {
                { "GET", HTTP_GET, "/plain?a=%2F&b", NULL, false, false, "200:hello ",
                  "GET:/plain?a=%2F&b: " },
                { "a path is sent as it is", HTTP_GET, "/a/../%41", NULL, false, false, "200:hello ",
                  "GET:/a/../%41?: " },
                { "HEAD", HTTP_HEAD, "/plain", NULL, false, false, "200: ", "HEAD:/plain?: " },
                { "POST", HTTP_POST, "/plain", "abc", false, false, "200:hello ", "POST:/plain?:abc " },
                { "POST without a body", HTTP_POST, "/plain", "", false, false, "200:hello ",
                  "POST:/plain?: " },
                { "PUT", HTTP_PUT, "/plain", "abc", false, false, "200:hello ", "PUT:/plain?:abc " },
                { "PATCH", HTTP_PATCH, "/plain", "abc", false, false, "200:hello ", "PATCH:/plain?:abc " },
                { "DELETE", HTTP_DELETE, "/plain", NULL, false, false, "200:hello ", "DELETE:/plain?: " },
                { "DELETE with options", HTTP_DELETE, "/plain", "abc", false, false, "200:hello ",
                  "DELETE:/plain?:abc " },
                { "an error is an answer", HTTP_GET, "/error", NULL, false, false, "500:sorry ",
                  "GET:/error?: " },
                { "no redirect is followed", HTTP_GET, "/redirect", NULL, false, false,
                  "302: ", "GET:/redirect?: " },
                { "no header is invented", HTTP_POST, "/headers", "abc", false, false, "200:|-|test/1|-|- ",
                  "POST:/headers?:abc " },
                { "headers of the caller", HTTP_POST, "/headers", "abc", false, true,
                  "200:|application/json|test/1|-| ", "POST:/headers?:abc " },
                { "larger than allowed", HTTP_GET, "/big", NULL, false, false, "EMSGSIZE? ", "GET:/big?: " },
                { "pieces put together", HTTP_GET, "/stream", NULL, false, false, "200:onetwo ",
                  "GET:/stream?: " },
                { "a stream", HTTP_GET, "/stream", NULL, true, false, "[onetwo]200: ", "GET:/stream?: " },
                { "a stream that breaks", HTTP_GET, "/break", NULL, true, false, "[one]ECONNRESET? ",
                  "GET:/break?: " },
                { "a whole that breaks", HTTP_GET, "/break", NULL, false, false, "ECONNRESET? ",
                  "GET:/break?: " },
                { "an error is not for on_data", HTTP_GET, "/error", NULL, true, false, "500:sorry ",
                  "GET:/error?: " },
        };
        _cleanup_(world_freep) World *w = world_new_with_server();

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                HttpRequest q = {
                        .method = rows[i].method,
                        .body = rows[i].body,
                        .body_size = strlen(strempty(rows[i].body)),
                        .headers = headers,
                        .n_headers = rows[i].with_headers ? ELEMENTSOF(headers) : 0,
                        .on_data = rows[i].stream ? on_data : NULL,
                        .lane = (HttpLane) (i % _HTTP_LANE_MAX),
                };

                print_message("%s\n", rows[i].what);
                assert_string_equal(call(w, q, "http", rows[i].path), rows[i].seen);
                assert_string_equal(strbuf_str(&w->handled), rows[i].handled);
                w->call = http_call_free(w->call);
        }
}

/* Told once, before the first piece; of an error answer they are the response's. */
TEST_CASE(test_headers_of_streams) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        const HttpRequest q = { .on_data = on_data, .on_headers = on_headers };

        assert_string_equal(call(w, q, "http", "/stream"), "<here>[onetwo]200: ");
        w->call = http_call_free(w->call);
        assert_string_equal(call(w, q, "http", "/plain"), "<>[hello]200: ");
        w->call = http_call_free(w->call);
        assert_string_equal(call(w, q, "http", "/error"), "500:sorry ");
        w->call = http_call_free(w->call);
}

/* One row is one peer that misbehaves. */
TEST_CASE(test_bad_peers) {
        static const struct {
                const char *what, *scheme, *answer, *seen;
        } rows[] = {
                { "closes without an answer", "http", "", "ECONNRESET? " },
                { "dies in the headers", "http", "\2HTTP/1.1 200 OK\r\nContent-Le", "ECONNRESET? " },
                { "dies in the body", "http", "\2HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
                  "ECONNRESET? " },
                { "dies in a chunk", "http",
                  "\2HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", "ECONNRESET? " },
                { "speaks no HTTP", "http", "\2SSH-2.0-OpenSSH_9.2\r\n", "EPROTO? " },
                { "speaks no TLS", "https", "\2HTTP/1.1 400 Bad Request\r\n\r\n", "EPROTO " },
                { "closes in the handshake", "https", "", "ECONNRESET " },
                { "is silent", "http", "\1", "ETIMEDOUT? " },
                { "is silent in the handshake", "https", "\1", "ETIMEDOUT " },
                { "has something to say first", "http",
                  "HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
                  "200:hi " },
                { "dies in the headers behind that", "http",
                  "\2HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Le", "ECONNRESET? " },
                { "has nothing to say", "http", "HTTP/1.1 204 No Content\r\n\r\n", "204: " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
                _cleanup_free_ char *url = strf("%s://127.0.0.1:%u/", rows[i].scheme, raw->port);
                bool silent = startswith(rows[i].seen, "ETIMEDOUT");
                HttpRequest q = { .url = url,
                                  .timeout_usec = silent ? TIMEOUT_USEC : PATIENCE_USEC,
                                  .max_response_bytes = 100 };

                print_message("%s\n", rows[i].what);
                raw->answers[0] = rows[i].answer;
                start(w, &q);
                run_until(w, &raw->n_requests, 1);
                if (silent)
                        clock_skip(TIMEOUT_USEC);
                run_until(w, &w->n_done, 1);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_int_equal(raw->n_requests, 1);
        }
}

static void on_done_with_headers(const HttpResponse *r, void *userdata) {
        World *w = userdata;

        for (size_t i = 0; i < r->n_headers; i++)
                strbuf_addf(&w->seen, "<%s=%s>", r->headers[i].name, r->headers[i].value);
        on_done(r, userdata);
}

/* Of the answer itself, not of what came before it; and nothing of the answer before. */
TEST_CASE(test_headers_of_the_last) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

        raw->answers[0] = "HTTP/1.1 103 Early Hints\r\nX-A: early\r\nX-B: early\r\n\r\n"
                          "HTTP/1.1 200 OK\r\nX-C:  c \r\nContent-Length: 2\r\n\r\nhi";
        raw->answers[1] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nX-D:\r\n\r\n";
        raw->answers[2] = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        for (unsigned i = 0; i < 3; i++) {
                assert_return_code(http_call_start(w->transport, &q, on_done_with_headers, w, &w->call), 0);
                run_until(w, &w->n_done, i + 1);
                w->call = http_call_free(w->call);
        }
        assert_string_equal(strbuf_str(&w->seen), "<X-C=c><Content-Length=2>200:hi "
                                                  "<Content-Length=0><X-D=>404: "
                                                  "<Content-Length=1>200:x ");
}

/* A request that waited for its connection began when it left. */
TEST_CASE(test_begins_when_it_leaves) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *hold = url_of(w, "http", "/hold"), *plain = url_of(w, "http", "/plain");
        HttpRequest q = { .url = hold,
                          .lane = HTTP_LANE_BULK,
                          .timeout_usec = PATIENCE_USEC,
                          .max_response_bytes = 100 };
        usec_t answered;

        assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        run_until_held(w);
        q.url = plain;
        assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        run_for(w, 50 * USEC_PER_MSEC);
        answered = loop_now(w->loop);
        reply_text(TAKE_PTR(w->held), 200, "late");
        run_until(w, &w->n_done, 1);
        assert_true(w->started_usec < answered && w->finished_usec >= answered);
        run_until(w, &w->n_done, 2);
        assert_string_equal(strbuf_str(&w->seen), "200:late 200:hello ");
        assert_true(w->started_usec >= answered);
}

/* Pieces that come one by one: the headers are told once, and who wants no more ends it then, whatever else is wrong. */
TEST_CASE(test_stream_in_pieces) {
        static const struct {
                const char *what, *begin, *more;
                int data_result;
                const char *seen;
        } rows[] = {
                { "two pieces", "HTTP/1.1 200 OK\r\nX-Server: here\r\nContent-Length: 6\r\n\r\none", "two", 0,
                  "<here>[one][two]200: " },
                { "refused while more is to come", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none", NULL, -ECANCELED,
                  "<>[one]ECANCELED? " },
                { "refused, and broken too", "\2HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none", NULL, -ECANCELED,
                  "<>[one]ECANCELED? " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
                _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
                HttpRequest q = { .url = url,
                                  .timeout_usec = PATIENCE_USEC,
                                  .on_data = on_data,
                                  .on_headers = on_headers };
                usec_t began = loop_now(w->loop);

                print_message("%s\n", rows[i].what);
                raw->answers[0] = rows[i].begin;
                w->data_result = rows[i].data_result;
                start(w, &q);
                run_until(w, &w->n_data, 1);
                if (rows[i].more)
                        assert_int_equal(send(raw->clients[0].fd, rows[i].more, 3, MSG_NOSIGNAL), 3);
                run_until(w, &w->n_done, 1);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_in_range(w->finished_usec, began, loop_now(w->loop));
        }
}

/* It is the sum of the pieces that may not be larger. */
TEST_CASE(test_large_in_pieces) {
        _cleanup_(world_freep) World *w = world_new_with_server();

        assert_string_equal(call(w, (HttpRequest){ .max_response_bytes = 299999 }, "http", "/big"), "EMSGSIZE? ");
        w->call = http_call_free(w->call);
        (void) call(w, (HttpRequest){ .max_response_bytes = 300000 }, "http", "/big");
        assert_int_equal(w->seen.size, strlen("200: ") + 300000);
}

#define N_AGAIN 50u

static void on_done_again(const HttpResponse *r, void *userdata) {
        const HttpRequest q = { .url = "http://127.0.0.1:1/",
                                .timeout_usec = PATIENCE_USEC,
                                .max_response_bytes = 1,
                                .guard = { may_send, userdata } };
        World *w = userdata;

        assert_int_equal(r->error, -ESTALE);
        if (++w->n_done < N_AGAIN)
                assert_return_code(http_call_start(w->transport, &q, on_done_again, w, NULL), 0);
}

/* Who asks again at each failure does so to the end, and the loop gets its turn in between. */
TEST_CASE(test_again_at_each_failure) {
        _cleanup_(world_freep) World *w = world_new();
        const HttpRequest q = { .url = "http://127.0.0.1:1/",
                                .timeout_usec = PATIENCE_USEC,
                                .max_response_bytes = 1,
                                .guard = { may_send, w } };

        assert_return_code(http_call_start(w->transport, &q, on_done_again, w, NULL), 0);
        assert_true(loop_iterate(w->loop, PATIENCE_USEC) >= 0);
        assert_in_range(w->n_done, 1, N_AGAIN / 2);
        run_until(w, &w->n_done, N_AGAIN);
        run_until_quiet(w);
        assert_int_equal(w->n_done, N_AGAIN);
}

TEST_CASE(test_refused) {
        _cleanup_(world_freep) World *w = world_new();
        RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

        raw_server_free(raw); /* nobody listens there any more */
        w->start_in_done = true;
        start(w, &q);
        run_until(w, &w->n_done, 2);
        assert_string_equal(strbuf_str(&w->seen), "ECONNREFUSED ECONNREFUSED ");
}

/* No name server is asked: no name has so long a label. */
TEST_CASE(test_no_such_host) {
        static const char url[] = "http://"
                                  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                  ".test/";
        _cleanup_(world_freep) World *w = world_new();
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

        start(w, &q);
        run_until(w, &w->n_done, 1);
        assert_string_equal(strbuf_str(&w->seen), "EHOSTUNREACH ");
}

TEST_CASE(test_large_headers) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        _cleanup_strbuf_ StrBuf answer = { 0 };
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

        strbuf_add(&answer, "HTTP/1.1 200 OK\r\n");
        for (unsigned i = 0; i < 2000; i++)
                strbuf_addf(&answer, "X-Header-%u: some value or other\r\n", i);
        raw->answers[0] = strbuf_str(&answer);
        start(w, &q);
        run_until(w, &w->n_done, 1);
        assert_string_equal(strbuf_str(&w->seen), "EMSGSIZE? ");
}

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

/* One connection serves one call after the other; if it dies under one, that call is not sent again. */
TEST_CASE(test_connection_is_kept) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

        raw->answers[0] = raw->answers[1] = raw->answers[3] = ANSWER;
        for (unsigned i = 0; i < 4; i++) {
                start(w, &q);
                run_until(w, &w->n_done, i + 1);
        }
        assert_string_equal(strbuf_str(&w->seen), "200:hi 200:hi ECONNRESET? 200:hi ");
        assert_int_equal(raw->n_requests, 4);
        assert_int_equal(raw->n_accepted, 2 + 1); /* libcurl connects to try again before we can say no */
}

/* The client's end of the only connection to the server. */
static int client_socket(const World *w) {
        for (int fd = 3; fd < 1024; fd++) {
                struct sockaddr_in in = { 0 };
                socklen_t size = sizeof(in);

                if (getpeername(fd, (struct sockaddr *) &in, &size) >= 0 && in.sin_family == AF_INET &&
                    ntohs(in.sin_port) == http_server_port(w->server))
                        return fd;
        }
        fail_msg("no connection");
        return -1;
}

static int socket_option(int fd, int level, int option) {
        socklen_t size = sizeof(int);
        int value = -1;

        assert_return_code(getsockopt(fd, level, option, &value, &size), errno);
        return value;
}

/* The kernel notices a peer that is gone, except on connections to the machine's metadata, which end with their answers. */
TEST_CASE(test_socket_options) {
        for (HttpLane lane = 0; lane < _HTTP_LANE_MAX; lane++) {
                _cleanup_(world_freep) World *w = world_new_with_server();
                bool lasting = lane != HTTP_LANE_METADATA;
                int fd;

                print_message("  lane %d\n", (int) lane);
                assert_string_equal(call(w, (HttpRequest){ .lane = lane }, "http", "/plain"), "200:hello ");
                fd = client_socket(w);
                assert_int_equal(socket_option(fd, IPPROTO_TCP, TCP_NODELAY) != 0, lasting);
                assert_int_equal(socket_option(fd, SOL_SOCKET, SO_KEEPALIVE) != 0, lasting);
                if (lasting) {
                        assert_int_equal(socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 10);
                        assert_int_equal(socket_option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
                }
                assert_int_equal(socket_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT),
                                 !lasting ? 0 : lane == HTTP_LANE_URGENT ? 6000 : 15000);
        }
}

/* A connection on which nobody answers is not used again. */
TEST_CASE(test_silent_connection_is_dropped) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        HttpRequest q = { .url = url, .max_response_bytes = 100 };

        raw->answers[0] = raw->answers[2] = ANSWER;
        raw->answers[1] = "\1";
        for (unsigned i = 0; i < 3; i++) {
                q.timeout_usec = i == 1 ? TIMEOUT_USEC : PATIENCE_USEC;
                start(w, &q);
                run_until(w, &raw->n_requests, i + 1);
                if (i == 1)
                        clock_skip(TIMEOUT_USEC);
                run_until(w, &w->n_done, i + 1);
        }
        assert_string_equal(strbuf_str(&w->seen), "200:hi ETIMEDOUT? 200:hi ");
        assert_int_equal(raw->n_accepted, 2);
}

/* What the loop's epoll has; each connection of a RawServer is there twice. */
static unsigned count_watched(World *w) {
        _cleanup_free_ char *path = strf("/proc/self/fdinfo/%d", sd_event_get_fd(loop_sd_event(w->loop)));
        _cleanup_free_ char *text = NULL;

        assert_non_null(path);
        assert_return_code(read_file(path, 65536, &text, NULL), 0);
        return text_count(text, "tfd:");
}

/* A connection without a call stays watched: the next call costs nothing there, what is said unasked does
 * not keep us awake, and its end is seen and answered. */
TEST_CASE(test_idle_connection_is_watched) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };
        unsigned before = count_watched(w);

        raw->answers[0] = raw->answers[1] = raw->answers[2] = ANSWER;
        for (unsigned i = 0; i < 2; i++) {
                start(w, &q);
                run_until(w, &w->n_done, i + 1);
                run_until_quiet(w);
                assert_int_equal(count_watched(w), before + 2);
        }
        assert_int_equal(raw->n_accepted, 1);

        print_message("it speaks unasked\n");
        assert_int_equal(send(raw->clients[0].fd, "x", 1, MSG_NOSIGNAL), 1);
        run_until_quiet(w);
        assert_int_equal(count_watched(w), before + 2);

        print_message("it ends\n");
        assert_return_code(shutdown(raw->clients[0].fd, SHUT_WR), errno);
        run_until_quiet(w);
        assert_int_equal(count_watched(w), before); /* by us, and by the server that heard our end */

        start(w, &q);
        run_until(w, &w->n_done, 3);
        assert_string_equal(strbuf_str(&w->seen), "200:hi 200:hi 200:hi ");
        assert_int_equal(raw->n_accepted, 2);
}

#define LAST_ANSWER "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"

/* As EC2's metadata service does: each look has a connection of its own, and leaves nothing behind. */
TEST_CASE(test_connection_ends_with_its_answer) {
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        const CurlTransport *t = CONTAINER_OF(w->transport, CurlTransport, transport);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        HttpRequest q = { .url = url,
                          .lane = HTTP_LANE_METADATA,
                          .timeout_usec = PATIENCE_USEC,
                          .max_response_bytes = 100 };
        unsigned before = count_watched(w);

        for (unsigned i = 0; i < 3; i++) {
                const CurlCall *kept = t->kept;

                raw->answers[i] = LAST_ANSWER;
                start(w, &q);
                run_until(w, &w->n_done, i + 1);
                w->call = http_call_free(w->call);
                run_until_quiet(w);
                assert_int_equal(count_watched(w), before);
                assert_true(i == 0 || (kept && t->kept == kept));
        }
        assert_string_equal(strbuf_str(&w->seen), "404:no 404:no 404:no ");
        assert_int_equal(raw->n_accepted, 3);
}

/* A question that is asked again goes out as it was; another is never mistaken for it. */
TEST_CASE(test_same_question_again) {
        static const struct {
                const char *what;
                HttpRequest q;
                const char *path, *seen;
                bool same; /* as the row before */
        } rows[] = {
                { "the first", { .n_headers = 1 }, "/headers", "200:|-|test/1|-|one " },
                { "the same", { .n_headers = 1 }, "/headers", "200:|-|test/1|-|one ", true },
                { "in another lane",
                  { .n_headers = 1, .lane = HTTP_LANE_BULK },
                  "/headers",
                  "200:|-|test/1|-|one ",
                  true },
                { "a header's value", { .n_headers = 2 }, "/headers", "200:|-|test/1|-|two " },
                { "the same", { .n_headers = 2 }, "/headers", "200:|-|test/1|-|two ", true },
                { "no header", { 0 }, "/headers", "200:|-|test/1|-|- " },
                { "one more", { .n_headers = 1 }, "/headers", "200:|-|test/1|-|one " },
                { "the URL", { .n_headers = 1 }, "/headers?x", "200:|-|test/1|-|one " },
                { "the same, not found", { .n_headers = 1 }, "/error", "500:sorry " },
                { "the same, not found", { .n_headers = 1 }, "/error", "500:sorry ", true },
                { "a method", { .n_headers = 1, .method = HTTP_DELETE }, "/error", "500:sorry " },
                { "a body",
                  { .n_headers = 1, .method = HTTP_PUT, .body = "b", .body_size = 1 },
                  "/headers",
                  "200:|-|test/1|-|one " },
                { "a larger limit", { .max_response_bytes = 400000 }, "/headers", "200:|-|test/1|-|- " },
                { "no time", { .timeout_usec = TIMEOUT_USEC }, "/hold", "ETIMEDOUT? " },
                { "the first", { .n_headers = 1 }, "/headers", "200:|-|test/1|-|one " },
                { "the same, and too large",
                  { .n_headers = 1, .max_response_bytes = 5 },
                  "/headers",
                  "EMSGSIZE? ",
                  true },
                { "the same", { .n_headers = 1 }, "/headers", "200:|-|test/1|-|one ", true },
        };
        static const HttpHeader one[] = { { "X-Empty", "one" } }, two[] = { { "X-Empty", "two" } };
        _cleanup_(world_freep) World *w = world_new_with_server();
        const CurlTransport *t = CONTAINER_OF(w->transport, CurlTransport, transport);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const CurlCall *before = t->kept; /* asks the next one, if that is the same */
                HttpRequest q = rows[i].q;

                print_message("%s\n", rows[i].what);
                q.headers = q.n_headers == 2 ? two : one;
                q.n_headers = q.n_headers > 0;
                assert_string_equal(call(w, q, "http", rows[i].path), rows[i].seen);
                w->call = http_call_free(w->call);
                assert_true(!rows[i].same || (before && t->kept == before));
        }
}

/* Of two that ask the same together one is kept, and of one that is asked again before its owner let go of
 * it, none is mistaken for the other. */
TEST_CASE(test_same_question_at_once) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        const CurlTransport *t = CONTAINER_OF(w->transport, CurlTransport, transport);
        _cleanup_free_ char *url = url_of(w, "http", "/plain");
        const HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

        for (unsigned round = 0; round < 3; round++) {
                HttpCall *calls[3] = { 0 };

                strbuf_truncate(&w->seen, 0);
                w->n_done = 0;
                assert_return_code(http_call_start(w->transport, &q, on_done, w, &calls[0]), 0);
                assert_return_code(http_call_start(w->transport, &q, on_done, w, &calls[1]), 0);
                run_until(w, &w->n_done, 2);
                assert_return_code(http_call_start(w->transport, &q, on_done, w, &calls[2]), 0);
                run_until(w, &w->n_done, 3);
                assert_string_equal(strbuf_str(&w->seen), "200:hello 200:hello 200:hello ");
                for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
                        http_call_free(calls[i]);
                        assert_ptr_equal(t->kept, CONTAINER_OF(calls[i], CurlCall, call));
                }
                assert_in_range(t->n_idle, 2, 3); /* handles */
        }
}

/* Of an address libcurl is told that it never grows old. */
TEST_CASE(test_host_by_address_or_name) {
        static const char *const hosts[] = { "127.0.0.1", "localhost", "localhost", "127.0.0.1", "127.1" };
        _cleanup_(world_freep) World *w = world_new_with_server();

        for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
                _cleanup_free_ char *url = strf("http://%s:%u/plain", hosts[i], http_server_port(w->server));
                HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };

                print_message("%s\n", url);
                strbuf_truncate(&w->seen, 0);
                w->n_done = 0;
                start(w, &q);
                run_until(w, &w->n_done, 1);
                assert_string_equal(strbuf_str(&w->seen), "200:hello ");
        }
}

TEST_CASE(test_timeout) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        HttpRequest q = { .timeout_usec = TIMEOUT_USEC };
        usec_t began = loop_now(w->loop);

        assert_string_equal(call(w, q, "http", "/hold"), "ETIMEDOUT? ");
        assert_in_range(w->finished_usec - began, TIMEOUT_USEC, TIMEOUT_USEC + PATIENCE_USEC);
        run_until(w, &w->n_gone, 1); /* the server notices */
}

TEST_CASE(test_cancel_in_flight) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/hold");
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 1 };

        start(w, &q);
        run_until_held(w);
        w->call = http_call_free(w->call);
        run_until(w, &w->n_gone, 1);
        run_for(w, 20 * USEC_PER_MSEC);
        assert_int_equal(w->n_done, 0);

        start(w, &q); /* and before it has begun */
        w->call = http_call_free(w->call);
        run_for(w, 20 * USEC_PER_MSEC);
        assert_int_equal(w->n_done, 0);
}

TEST_CASE(test_free_in_callbacks) {
        static const struct {
                const char *what;
                bool in_data, in_done, transport_in_done;
                int data_result;
                const char *seen;
        } rows[] = {
                { "freed with the first piece", true, false, false, 0, "[onetwo]" },
                { "freed with the first piece, which is also refused", true, false, false, -EIO,
                  "[onetwo]" },
                { "freed at the end", false, true, false, 0, "[onetwo]200: " },
                { "refused, then freed", false, true, false, -EBADMSG, "[onetwo]EBADMSG? " },
                { "freed with the whole transport", false, true, true, 0, "[onetwo]200: " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new_with_server();
                _cleanup_free_ char *url = url_of(w, "http", "/stream");
                HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .on_data = on_data };

                print_message("%s\n", rows[i].what);
                w->free_in_data = rows[i].in_data;
                w->free_in_done = rows[i].in_done;
                w->free_transport_in_done = rows[i].transport_in_done;
                w->data_result = rows[i].data_result;
                start(w, &q);
                run_until(w, &w->n_data, 1);
                if (rows[i].in_data)
                        run_for(w, 20 * USEC_PER_MSEC); /* nothing is to come */
                else
                        run_until(w, &w->n_done, 1);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_null(w->call);
        }
}

/* Two calls on a lane with one connection: the second waits for the first. */
TEST_CASE(test_guard) {
        static const struct {
                const char *what;
                unsigned n_may_send;
                const char *seen, *handled;
        } rows[] = {
                { "no from the beginning", 0, "ESTALE 200:ok ", "GET:/hold?: " },
                { "yes, but no longer when its turn comes", 1, "200:ok ESTALE ", "GET:/hold?: " },
                { "yes", 2, "200:ok 200:hello ", "GET:/hold?: POST:/guarded?: " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new_with_server();
                _cleanup_free_ char *first = url_of(w, "http", "/hold"),
                                    *second = url_of(w, "http", "/guarded");
                HttpRequest q = { .url = first,
                                  .timeout_usec = PATIENCE_USEC,
                                  .max_response_bytes = 10,
                                  .lane = HTTP_LANE_BULK };

                print_message("%s\n", rows[i].what);
                w->n_may_send = rows[i].n_may_send;
                assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
                q.url = second;
                q.method = HTTP_POST;
                q.guard = (HttpGuard){ may_send, w };
                start(w, &q);
                run_until_held(w);
                run_for(w, 50 * USEC_PER_MSEC);
                w->held->ops->reply(w->held, 200, NULL, 0, "ok", 2);
                run_until(w, &w->n_done, 2);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_string_equal(strbuf_str(&w->handled), rows[i].handled);
                assert_int_equal(w->n_may_send, 0);
        }
}

/* A stream without a timeout lives as long as data arrives. The server sends data every half stall_usec, five
 * times, and then nothing. */
TEST_CASE(test_stall) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/hold");
        HttpRequest q = { .url = url,
                          .timeout_usec = USEC_INFINITY,
                          .stall_usec = TIMEOUT_USEC,
                          .lane = HTTP_LANE_WATCH,
                          .on_data = on_data };

        start(w, &q);
        run_until_held(w);
        w->held->ops->stream_begin(w->held, 200, NULL, 0);
        for (unsigned i = 0; i < 5; i++) {
                clock_skip(TIMEOUT_USEC / 2);
                run_for(w, 5 * USEC_PER_MSEC);
                w->held->ops->stream_data(w->held, "x", 1);
                run_until(w, &w->n_data, i + 1);
        }
        clock_skip(TIMEOUT_USEC / 2);
        run_for(w, 5 * USEC_PER_MSEC);
        assert_string_equal(strbuf_str(&w->seen), "[x][x][x][x][x]");
        clock_skip(TIMEOUT_USEC / 2);
        run_until(w, &w->n_gone, 1);
        assert_string_equal(strbuf_str(&w->seen), "[x][x][x][x][x]ETIMEDOUT? ");
}

/* One that is not even begun is not waited for so long. */
TEST_CASE(test_no_answer_begins) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/hold");
        HttpRequest q = { .url = url,
                          .timeout_usec = USEC_INFINITY,
                          .stall_usec = USEC_PER_HOUR,
                          .answer_usec = TIMEOUT_USEC,
                          .lane = HTTP_LANE_WATCH,
                          .on_data = on_data };
        usec_t began = loop_now(w->loop);

        start(w, &q);
        run_until_held(w);
        clock_skip(TIMEOUT_USEC);
        run_until(w, &w->n_done, 1);
        assert_string_equal(strbuf_str(&w->seen), "ETIMEDOUT? ");
        assert_true(w->finished_usec - began >= q.answer_usec);
        run_until(w, &w->n_gone, 1);

        print_message("  one that is begun in time\n");
        q.answer_usec = USEC_PER_HOUR;
        q.stall_usec = TIMEOUT_USEC;
        start(w, &q);
        run_until_held(w);
        w->held->ops->stream_begin(w->held, 200, NULL, 0);
        w->held->ops->stream_data(w->held, "x", 1);
        run_until(w, &w->n_data, 1);
        clock_skip(TIMEOUT_USEC);
        run_until(w, &w->n_done, 2);
        assert_string_equal(strbuf_str(&w->seen), "ETIMEDOUT? [x]ETIMEDOUT? ");
        assert_true(w->finished_usec - w->started_usec < q.answer_usec);
}

/* What it waits for a connection is no silence of who is to answer. */
TEST_CASE(test_answer_is_awaited_from_the_question) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/hold");
        HttpRequest before = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 100 };
        HttpRequest q = { .url = url,
                          .timeout_usec = USEC_INFINITY,
                          .stall_usec = USEC_PER_HOUR,
                          .answer_usec = TIMEOUT_USEC,
                          .on_data = on_data };

        before.lane = q.lane = HTTP_LANE_URGENT; /* of one connection */
        assert_return_code(http_call_start(w->transport, &before, on_done, w, NULL), 0);
        run_until_held(w);
        start(w, &q);
        clock_skip(TIMEOUT_USEC / 2);
        run_for(w, 5 * USEC_PER_MSEC);
        reply_text(TAKE_PTR(w->held), 200, "hello");
        run_until_held(w);
        clock_skip(TIMEOUT_USEC);
        run_until(w, &w->n_done, 2);
        assert_string_equal(strbuf_str(&w->seen), "200:hello ETIMEDOUT? ");
        assert_true(w->finished_usec - w->started_usec >= q.answer_usec);
}

/* -- coalesced streams ------------------------------------------------------------------------------------ */

static const CurlLane *coalesced_lane(World *w) {
        return CONTAINER_OF(w->transport, CurlTransport, transport)->coalesced;
}

static void begin_patient(World *w, const char *url) {
        HttpRequest q = { .url = url,
                          .timeout_usec = USEC_INFINITY,
                          .stall_usec = PATIENCE_USEC,
                          .lane = HTTP_LANE_WATCH,
                          .coalesced = true,
                          .on_data = on_data };

        start(w, &q);
}

static bool is_resting(World *w) {
        return timer_is_armed(coalesced_lane(w)->rested);
}

/* At most so many pieces, each of which is read before the next is sent, until the connection rests. How
 * many were. */
static unsigned speak(World *w, unsigned n_max) {
        unsigned n = 0;

        while (n < n_max && !is_resting(w)) {
                w->held->ops->stream_data(w->held, "x", 1);
                run_until(w, &w->n_data, w->n_data + 1);
                n++;
        }
        return n;
}

static void run_until_seen(World *w, const char *first, const char *last) {
        usec_t deadline = loop_now(w->loop) + PATIENCE_USEC;
        const char *p;

        while (!(p = strstr(strbuf_str(&w->seen), first)) || !strstr(p, last)) {
                assert_true(loop_now(w->loop) < deadline);
                assert_true(loop_iterate(w->loop, 100 * USEC_PER_MSEC) >= 0);
        }
}

TEST_CASE(test_patient_stream_rests) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/hold"), *plain = url_of(w, "http", "/plain");
        HttpRequest q = { .url = plain,
                          .timeout_usec = PATIENCE_USEC,
                          .max_response_bytes = 100,
                          .lane = HTTP_LANE_WATCH };
        unsigned n;

        begin_patient(w, url);
        run_until_held(w);
        w->held->ops->stream_begin(w->held, 200, NULL, 0);
        assert_in_range(speak(w, 20), 5, 10);
        n = w->n_data;

        print_message("what comes now lies there, and another watch does not wait for it\n");
        w->held->ops->stream_data(w->held, "y", 1);
        w->held->ops->stream_data(w->held, "z", 1);
        assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        run_until(w, &w->n_done, 1);
        run_for(w, 50 * USEC_PER_MSEC);
        assert_int_equal(w->n_data, n);

        print_message("it is read when the rest is over, and the connection rests again\n");
        run_until_seen(w, "[y", "z]");
        assert_in_range(speak(w, 20), 0, 1);

        print_message("somebody begins to wait for it\n");
        w->held->ops->stream_data(w->held, "u", 1);
        w->held->ops->stream_data(w->held, "v", 1);
        http_transport_set_immediate(w->transport, true);
        run_until_seen(w, "[u", "v]");
        assert_int_equal(speak(w, 20), 20);

        print_message("and ceases to\n");
        http_transport_set_immediate(w->transport, false);
        assert_int_equal(speak(w, 20), 1);
        w->server = http_server_free(w->server);
        run_for(w, 50 * USEC_PER_MSEC);
        assert_int_equal(w->n_done, 1);
        http_transport_set_immediate(w->transport, true);
        run_until(w, &w->n_done, 2);
        assert_non_null(endswith(strbuf_str(&w->seen), "ECONNRESET? "));
}

/* It goes away while its connection rests. */
TEST_CASE(test_patient_stream_is_dropped) {
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(world_freep) World *w = world_new_with_server();
                _cleanup_free_ char *url = url_of(w, "http", "/hold");

                begin_patient(w, url);
                run_until_held(w);
                w->held->ops->stream_begin(w->held, 200, NULL, 0);
                (void) speak(w, 20);
                assert_true(is_resting(w));
                if (i == 0)
                        continue; /* with all else */
                w->call = http_call_free(w->call);
                run_until(w, &w->n_gone, 1);
                if (i == 1)
                        continue;
                http_transport_set_immediate(w->transport, true);
                begin_patient(w, url);
                run_until_held(w);
                w->held->ops->stream_begin(w->held, 200, NULL, 0);
                assert_int_equal(speak(w, 20), 20);
        }
}

/* What a server cannot get rid of for long it will end the watch for: a reading that brought much is
 * followed by another. */
TEST_CASE(test_patient_stream_of_much) {
        static char much[256 * 1024];
        _cleanup_(world_freep) World *w = world_new();
        _cleanup_(raw_server_freep) RawServer *raw = raw_server_new(w);
        _cleanup_free_ char *url = strf("http://127.0.0.1:%u/", raw->port);
        unsigned n_much = 0, n_little = 0;

        raw->answers[0] = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nx";
        begin_patient(w, url);
        run_until(w, &w->n_data, 1);
        while (n_much < 20 || n_little < 20) {
                size_t size = n_much < 20 ? sizeof(much) : 1;
                unsigned before = w->n_data;

                if (is_resting(w)) {
                        http_transport_set_immediate(w->transport, true);
                        http_transport_set_immediate(w->transport, false);
                }
                (void) send(raw->clients[0].fd, much, size, MSG_DONTWAIT | MSG_NOSIGNAL);
                run_until(w, &w->n_data, before + 1);
                strbuf_truncate(&w->seen, 0);
                if (coalesced_lane(w)->n_bytes > 128 * 1024) {
                        n_much++;
                        assert_false(is_resting(w));
                } else
                        n_little += is_resting(w);
        }
}

TEST_CASE(test_server_dies) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/hold");
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .on_data = on_data };

        start(w, &q);
        run_until_held(w);
        w->held->ops->stream_begin(w->held, 200, NULL, 0);
        w->held->ops->stream_data(w->held, "x", 1);
        run_until(w, &w->n_data, 1);
        w->server = http_server_free(w->server);
        assert_int_equal(w->n_gone, 1);
        run_until(w, &w->n_done, 1);
        assert_string_equal(strbuf_str(&w->seen), "[x]ECONNRESET? ");
}

/* More at once than there are connections, on all lanes; calls without a slot. */
TEST_CASE(test_many) {
        _cleanup_(world_freep) World *w = world_new_with_server();
        _cleanup_free_ char *url = url_of(w, "http", "/plain");
        HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 10 };

        for (unsigned i = 0; i < 300; i++) {
                q.lane = i % 2 == 0 ? HTTP_LANE_BULK : HTTP_LANE_URGENT;
                assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        }
        run_until(w, &w->n_done, 300);
        assert_int_equal(w->seen.size, 300 * strlen("200:hello "));

        /* Nobody hears of those that end with the transport. */
        for (unsigned i = 0; i < 3; i++)
                assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        w->transport = http_transport_free(w->transport);
        run_for(w, 20 * USEC_PER_MSEC);
        assert_int_equal(w->n_done, 300);
}

/* -- TLS ------------------------------------------------------------------------------------------------ */

typedef struct Authority {
        TestCert *ca, *other_ca, *server, *node, *node2, *stranger;
} Authority;

static int authority_new(void **state) {
        Authority *a = new0(Authority, 1);

        assert_non_null(a);
        a->ca = test_cert_new(NULL, NULL, "ca", NULL);
        a->other_ca = test_cert_new(NULL, NULL, "other-ca", NULL);
        a->server = test_cert_new(a->ca, NULL, "server", "DNS:kubernetes,IP:127.0.0.1");
        a->node = test_cert_new(a->ca, "system:nodes", "system:node:n1", NULL);
        a->node2 = test_cert_new(a->ca, "system:nodes", "system:node:n2", NULL);
        a->stranger = test_cert_new(a->other_ca, "system:nodes", "system:node:n1", NULL);
        *state = a;
        return 0;
}

static int authority_free(void **state) {
        Authority *a = *state;

        test_cert_free(a->ca);
        test_cert_free(a->other_ca);
        test_cert_free(a->server);
        test_cert_free(a->node);
        test_cert_free(a->node2);
        test_cert_free(a->stranger);
        free(a);
        return 0;
}

static HttpTls *tls_of(const TestCert *ca, const TestCert *client, const char *server_name, bool insecure) {
        HttpTlsConfig config = {
                .ca_pem = ca ? ca->cert_pem : NULL,
                .ca_pem_size = ca ? strlen(ca->cert_pem) : 0,
                .client_cert_pem = client ? client->cert_pem : NULL,
                .client_cert_pem_size = client ? strlen(client->cert_pem) : 0,
                .client_key_pem = client ? client->key_pem : NULL,
                .client_key_pem_size = client ? strlen(client->key_pem) : 0,
                .server_name = server_name,
                .insecure = insecure,
        };
        HttpTls *tls;

        assert_return_code(http_tls_new(&config, &tls), 0);
        return tls;
}

static World *world_new_with_tls_server(const Authority *a) {
        HttpServerOptions options = {
                .address = "127.0.0.1",
                .listen_fd = -EBADF,
                .max_body_bytes = 1000000,
                .cert_pem = a->server->cert_pem,
                .key_pem = a->server->key_pem,
                .client_ca_pem = a->ca->cert_pem,
        };
        World *w = world_new();

        assert_return_code(http_server_new(w->loop, &options, handler, w, &w->server), 0);
        return w;
}

TEST_CASE(test_tls) {
        const Authority *a = *state;
        const struct {
                const char *what;
                const TestCert *ca, *client;
                const char *server_name;
                bool insecure;
                const char *seen;
        } rows[] = {
                { "without a certificate one is nobody", a->ca, NULL, NULL, false, "200: " },
                { "a node", a->ca, a->node, NULL, false, "200:CN=system:node:n1,O=system:nodes " },
                { "another node, whose call must not go out on the connection of the first", a->ca, a->node2,
                  NULL, false, "200:CN=system:node:n2,O=system:nodes " },
                { "nobody again", a->ca, NULL, NULL, false, "200: " },
                { "of an authority that the server does not know", a->ca, a->stranger, NULL, false,
                  "200: " },
                { "the name of the server", a->ca, a->node, "kubernetes", false,
                  "200:CN=system:node:n1,O=system:nodes " },
                { "not the name of the server", a->ca, a->node, "example.org", false, "EKEYREJECTED " },
                { "an authority that did not sign it", a->other_ca, a->node, NULL, false, "EKEYREJECTED " },
                { "the system's authorities neither", NULL, NULL, NULL, false, "EKEYREJECTED " },
                { "unless nothing is verified", NULL, a->node2, NULL, true,
                  "200:CN=system:node:n2,O=system:nodes " },
        };
        _cleanup_(world_freep) World *w = world_new_with_tls_server(a);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(http_tls_unrefp) HttpTls *tls =
                        tls_of(rows[i].ca, rows[i].client, rows[i].server_name, rows[i].insecure);

                print_message("%s\n", rows[i].what);
                assert_string_equal(call(w, (HttpRequest){ .tls = tls }, "https", "/who"), rows[i].seen);
        }
}

/* The handle of a call by TLS serves the next one that is like it: with the URL, body and owner of that one.
 * A row's `same`: it is the handle of the row before. */
TEST_CASE(test_tls_handle_is_kept) {
        static const HttpHeader one[] = { { "X-Empty", "one" } }, two[] = { { "X-Empty", "two" } };
        const Authority *a = *state;
        const struct {
                const char *what;
                HttpMethod method;
                const char *path, *body;
                const HttpHeader *header;
                HttpLane lane;
                bool other_node, named, stream;
                const char *seen, *handled;
                bool same;
        } rows[] = {
                { "the first", HTTP_POST, "/plain", "abc", one, .seen = "200:hello ",
                  .handled = "POST:/plain?:abc " },
                { "another URL, another body", HTTP_POST, "/headers?x", "d", one,
                  .seen = "200:|-|test/1|-|one ", .handled = "POST:/headers?x:d ", .same = true },
                { "an empty body, another lane", HTTP_POST, "/plain", "", one, .lane = HTTP_LANE_BULK,
                  .seen = "200:hello ", .handled = "POST:/plain?: ", .same = true },
                { "not found", HTTP_POST, "/error", "abc", one, .seen = "500:sorry ",
                  .handled = "POST:/error?:abc ", .same = true },
                { "another header", HTTP_POST, "/headers", "abc", two, .seen = "200:|-|test/1|-|two ",
                  .handled = "POST:/headers?:abc " },
                { "no header", HTTP_POST, "/headers", "abc", NULL, .seen = "200:|-|test/1|-|- ",
                  .handled = "POST:/headers?:abc " },
                { "another method", HTTP_PATCH, "/plain", "abc", one, .seen = "200:hello ",
                  .handled = "PATCH:/plain?:abc " },
                { "one without a body", HTTP_GET, "/headers", NULL, one, .seen = "200:|-|test/1|-|one ",
                  .handled = "GET:/headers?: " },
                { "the same", HTTP_GET, "/plain", NULL, one, .seen = "200:hello ",
                  .handled = "GET:/plain?: ", .same = true },
                { "a DELETE", HTTP_DELETE, "/plain", NULL, one, .seen = "200:hello ",
                  .handled = "DELETE:/plain?: " },
                { "a DELETE with a body", HTTP_DELETE, "/plain", "o", one, .seen = "200:hello ",
                  .handled = "DELETE:/plain?:o " },
                { "HEAD is not kept", HTTP_HEAD, "/plain", NULL, one,
                  .seen = "200: ", .handled = "HEAD:/plain?: " },
                { "a GET after it", HTTP_GET, "/who", NULL, one,
                  .seen = "200:CN=system:node:n1,O=system:nodes ", .handled = "GET:/who?: " },
                { "somebody else", HTTP_GET, "/who", NULL, one, .other_node = true,
                  .seen = "200:CN=system:node:n2,O=system:nodes ", .handled = "GET:/who?: " },
                { "the server by name is not kept", HTTP_GET, "/who", NULL, one, .named = true,
                  .seen = "200:CN=system:node:n1,O=system:nodes ", .handled = "GET:/who?: " },
                { "nor a stream", HTTP_GET, "/stream", NULL, one, .stream = true,
                  .seen = "[onetwo]200: ", .handled = "GET:/stream?: " },
        };
        _cleanup_(world_freep) World *w = world_new_with_tls_server(a);
        const CurlTransport *t = CONTAINER_OF(w->transport, CurlTransport, transport);
        _cleanup_(http_tls_unrefp) HttpTls *node = tls_of(a->ca, a->node, NULL, false),
                                           *node2 = tls_of(a->ca, a->node2, NULL, false),
                                           *named = tls_of(a->ca, a->node, "kubernetes", false);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const CURL *before = i > 0 && t->n_ready_handles > 0
                                             ? t->ready_handles[t->n_ready_handles - 1].easy
                                             : NULL;
                size_t n_before = t->n_ready_handles;
                bool kept = rows[i].method != HTTP_HEAD && !rows[i].named && !rows[i].stream;
                HttpRequest q = {
                        .method = rows[i].method,
                        .body = rows[i].body,
                        .body_size = strlen(strempty(rows[i].body)),
                        .headers = rows[i].header,
                        .n_headers = rows[i].header ? 1 : 0,
                        .lane = rows[i].lane,
                        .tls = rows[i].other_node ? node2
                               : rows[i].named    ? named
                                                  : node,
                        .on_data = rows[i].stream ? on_data : NULL,
                };

                print_message("%s\n", rows[i].what);
                assert_string_equal(call(w, q, "https", rows[i].path), rows[i].seen);
                assert_string_equal(strbuf_str(&w->handled), rows[i].handled);
                w->call = http_call_free(w->call);
                if (rows[i].same)
                        assert_ptr_equal(t->ready_handles[t->n_ready_handles - 1].easy, before);
                if (rows[i].same || !kept)
                        assert_int_equal(t->n_ready_handles, n_before);
        }
}

/* The server verifies a client's certificate with the first request of its connection. */
TEST_CASE(test_identity_is_kept) {
        const Authority *a = *state;
        _cleanup_(world_freep) World *w = world_new_with_tls_server(a);
        _cleanup_(http_tls_unrefp) HttpTls *tls = tls_of(a->ca, a->node, NULL, false);
        const char *first = NULL;

        for (unsigned i = 0; i < 3; i++) {
                assert_string_equal(call(w, (HttpRequest){ .tls = tls }, "https", "/who"),
                                    "200:CN=system:node:n1,O=system:nodes ");
                w->call = http_call_free(w->call);
                assert_int_equal(http_server_n_connections(w->server), 1);
                if (i > 0)
                        assert_ptr_equal(w->identity, first);
                first = w->identity;
        }
}

/* No more of them than there is room for, whatever comes at once; and those that go let go of their keys. */
TEST_CASE(test_tls_handles_are_few) {
        const Authority *a = *state;
        _cleanup_(world_freep) World *w = world_new_with_tls_server(a);
        const CurlTransport *t = CONTAINER_OF(w->transport, CurlTransport, transport);

        for (unsigned i = 0; i < CURL_HANDLES_MAX + 3; i++) {
                _cleanup_(http_tls_unrefp) HttpTls *tls = tls_of(a->ca, a->node, NULL, false);

                assert_string_equal(call(w, (HttpRequest){ .tls = tls }, "https", "/plain"), "200:hello ");
                w->call = http_call_free(w->call);
                assert_int_equal(t->n_ready_handles, MIN(i + 1, CURL_HANDLES_MAX));
        }
        /* Fresh ones are among them. */
        for (unsigned i = 0; i < 3; i++) {
                assert_string_equal(call(w, (HttpRequest){ .method = HTTP_HEAD }, "https", "/plain"),
                                    "EKEYREJECTED ");
                w->call = http_call_free(w->call);
                assert_int_equal(t->n_idle + t->n_ready_handles, CURL_HANDLES_MAX);
        }
        /* An URL that cannot be one is refused at once, whatever was read before. */
        {
                _cleanup_free_ char *url = url_of(w, "https", "/a b");
                HttpRequest q = { .url = url, .timeout_usec = PATIENCE_USEC, .max_response_bytes = 1 };

                assert_int_equal(http_call_start(w->transport, &q, on_done, w, &w->call), -EINVAL);
        }
}

/* The call keeps the key material as long as it needs it; large bodies both ways. */
TEST_CASE(test_tls_bodies) {
        const Authority *a = *state;
        _cleanup_(world_freep) World *w = world_new_with_tls_server(a);
        _cleanup_free_ char *url = url_of(w, "https", "/big"), *body = new0(char, 300000);
        HttpRequest q = { .method = HTTP_POST,
                          .url = url,
                          .timeout_usec = PATIENCE_USEC,
                          .body = body,
                          .body_size = 300000,
                          .max_response_bytes = 300000 };

        memset(body, 'y', 300000);
        q.tls = tls_of(a->ca, a->node, NULL, false);
        start(w, &q);
        http_tls_unref(q.tls);
        run_until(w, &w->n_done, 1);
        assert_int_equal(w->seen.size, strlen("200: ") + 300000);
        assert_int_equal(w->handled.size, strlen("POST:/big?: ") + 300000);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_calls),
                cmocka_unit_test(test_headers_of_streams),
                cmocka_unit_test(test_bad_peers),
                cmocka_unit_test(test_headers_of_the_last),
                cmocka_unit_test(test_begins_when_it_leaves),
                cmocka_unit_test(test_stream_in_pieces),
                cmocka_unit_test(test_large_in_pieces),
                cmocka_unit_test(test_again_at_each_failure),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_no_such_host),
                cmocka_unit_test(test_large_headers),
                cmocka_unit_test(test_connection_is_kept),
                cmocka_unit_test(test_socket_options),
                cmocka_unit_test(test_silent_connection_is_dropped),
                cmocka_unit_test(test_idle_connection_is_watched),
                cmocka_unit_test(test_connection_ends_with_its_answer),
                cmocka_unit_test(test_same_question_again),
                cmocka_unit_test(test_same_question_at_once),
                cmocka_unit_test(test_host_by_address_or_name),
                cmocka_unit_test(test_timeout),
                cmocka_unit_test(test_cancel_in_flight),
                cmocka_unit_test(test_free_in_callbacks),
                cmocka_unit_test(test_guard),
                cmocka_unit_test(test_stall),
                cmocka_unit_test(test_no_answer_begins),
                cmocka_unit_test(test_answer_is_awaited_from_the_question),
                cmocka_unit_test(test_patient_stream_rests),
                cmocka_unit_test(test_patient_stream_is_dropped),
                cmocka_unit_test(test_patient_stream_of_much),
                cmocka_unit_test(test_server_dies),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_tls),
                cmocka_unit_test(test_tls_handle_is_kept),
                cmocka_unit_test(test_identity_is_kept),
                cmocka_unit_test(test_tls_handles_are_few),
                cmocka_unit_test(test_tls_bodies),
        };
        return cmocka_run_group_tests_name("http-curl", tests, authority_new, authority_free);
}
