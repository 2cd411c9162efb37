/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "cmocka-test.h"
#include "http-inproc.h"
#include "string-util.h"

#define START_WALL (1700000000 * USEC_PER_SEC)
#define ORIGIN "http://api:80"

/* One client, one server, and what either has seen, as text. */
typedef struct World {
        VirtualTime *time;
        Loop *loop;
        HttpTransport *transport;
        HttpFault fault; /* of each request */
        StrBuf seen;
        HttpExchange *held; /* the handler keeps it when `hold` */
        bool hold;
        bool may_send;
        bool free_in_data, free_in_done;
        int data_result;
        unsigned n_done;
        usec_t done_at;
        HttpCall *call;
} World;

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        World *w = userdata;

        assert_true(startswith(request->url, "http://"));
        assert_memory_equal(request->url + strlen("http://"), peer, strlen(peer));
        assert_null(strchr(peer, '/'));
        *ret_fault = w->fault;
}

static void on_over(void *userdata) {
        strbuf_add(&((World *) userdata)->seen, "over ");
}

static void on_gone(HttpExchange *x, void *userdata) {
        World *w = userdata;

        assert_ptr_equal(x, w->held);
        w->held = NULL;
        strbuf_add(&w->seen, "gone ");
}

static void handler(HttpExchange *x, void *userdata) {
        static const HttpHeader header = { "X-Server", "here" };
        World *w = userdata;

        strbuf_addf(&w->seen, "%s:%s?%s:%.*s ", http_method_to_string(x->method), x->path, x->query,
                    (int) x->body_size, (const char *) x->body);
        if (w->hold) {
                x->on_gone = on_gone;
                x->userdata = w;
                w->held = x;
        } else
                x->ops->reply(x, 200, &header, 1, "hello", 5);
}

static int on_data(const void *data, size_t size, void *userdata) {
        World *w = userdata;

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

        assert_non_null(r->error_text);
        w->n_done++;
        w->done_at = virtual_time_now(w->time);
        if (r->error < 0)
                strbuf_addf(&w->seen, "%s%s ", strerrorname_np(-r->error), r->maybe_sent ? "?" : "");
        else
                strbuf_addf(&w->seen, "%u:%s ", r->status, r->body);
        if (w->free_in_done)
                w->call = http_call_free(w->call);
        assert_true(r->finished_usec >= r->started_usec);
}

static bool may_send(void *userdata) {
        World *w = userdata;

        return w->may_send;
}

static World *world_new(void) {
        World *w = new0(World, 1);
        HttpInprocHooks hooks = { .on_request = on_request, .on_over = on_over, .userdata = w };

        assert_non_null(w);
        w->may_send = true;
        assert_return_code(virtual_time_new(START_WALL, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->loop), 0);
        assert_return_code(http_inproc_new(w->loop, "CN=client", &hooks, &w->transport), 0);
        assert_return_code(http_inproc_route(w->transport, ORIGIN, handler, w), 0);
        return w;
}

static World *world_free(World *w) {
        http_call_free(w->call);
        http_transport_free(w->transport);
        loop_free(w->loop);
        virtual_time_free(w->time);
        strbuf_done(&w->seen);
        free(w);
        return NULL;
}
DEFINE_FREEP(World, world_free);

/* Everything up to and including that instant since the start. */
static void run_until(World *w, usec_t usec) {
        while (virtual_time_step(w->time, usec) > 0)
                ;
}

static HttpRequest request_of(World *w, bool stream) {
        return (HttpRequest){
                .method = HTTP_GET,
                .url = ORIGIN "/x?y=1",
                .timeout_usec = 10 * USEC_PER_SEC,
                .max_response_bytes = 10,
                .guard = { may_send, w },
                .on_data = stream ? on_data : NULL,
        };
}

static void start(World *w, const HttpRequest *request) {
        assert_return_code(http_call_start(w->transport, request, on_done, w, &w->call), 0);
        assert_string_equal(strbuf_str(&w->seen), ""); /* nothing inside the call */
}

/* One row is one call through one fault; `seen` is what server and client notice, in order. */
TEST_CASE(test_faults) {
        static const struct {
                const char *what;
                HttpFault fault;
                const char *seen;
                usec_t done_sec;
        } rows[] = {
                { "a plain call", { 0 }, "GET:/x?y=1: 200:hello ", 0 },
                { "delays both ways add up",
                  { .request_delay_usec = 2000000, .reply_delay_usec = 3000000 },
                  "GET:/x?y=1: 200:hello ",
                  5 },
                { "a lost request times out", { .lose_request = true }, "ETIMEDOUT? ", 10 },
                { "a lost reply has taken effect", { .lose_reply = true }, "GET:/x?y=1: ETIMEDOUT? ", 10 },
                { "a refused connection", { .refuse = true }, "ECONNREFUSED ", 0 },
                { "slower than the time-out, and still it arrives",
                  { .request_delay_usec = 20 * USEC_PER_SEC },
                  "ETIMEDOUT? GET:/x?y=1: ",
                  10 },
                { "an answer that comes too late is dropped",
                  { .reply_delay_usec = 20 * USEC_PER_SEC },
                  "GET:/x?y=1: ETIMEDOUT? ",
                  10 },
                { "something in between answers",
                  { .status = 429, .retry_after = "7", .reply_delay_usec = 1000000 },
                  "429: ",
                  1 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                HttpRequest q = request_of(w, false);
                usec_t began = virtual_time_now(w->time);

                print_message("%s\n", rows[i].what);
                w->fault = rows[i].fault;
                start(w, &q);
                assert_int_equal(http_inproc_pending(w->transport), 1);
                run_until(w, USEC_INFINITY);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_int_equal(w->n_done, 1);
                assert_int_equal(w->done_at - began, rows[i].done_sec * USEC_PER_SEC);
                assert_int_equal(http_inproc_pending(w->transport), 0);
        }
}

typedef enum Act {
        ACT_NONE,
        ACT_REPLY_BIG,
        ACT_STREAM,       /* two pieces, clean end */
        ACT_STREAM_BREAK, /* a piece, then the connection breaks */
        ACT_STREAM_HANG,  /* a piece, then silence */
        ACT_STREAM_ERROR, /* a stream of 500 */
        ACT_CUT,          /* a piece, then all streams are cut */
        ACT_CUT_EARLY,    /* all streams are cut, then the whole answer */
        ACT_CANCEL,
        ACT_FREE_TRANSPORT,
} Act;

static void act(World *w, Act a) {
        HttpExchange *x = w->held;

        assert_non_null(x);
        switch (a) {
        case ACT_NONE:
                return;
        case ACT_REPLY_BIG:
                x->ops->reply(x, 200, NULL, 0, "hello hello", 11);
                return;
        case ACT_STREAM:
        case ACT_STREAM_BREAK:
        case ACT_STREAM_HANG:
        case ACT_STREAM_ERROR:
        case ACT_CUT:
                x->ops->stream_begin(x, a == ACT_STREAM_ERROR ? 500 : 200, NULL, 0);
                x->ops->stream_data(x, "one", 3);
                if (a == ACT_CUT) {
                        run_until(w, virtual_time_now(w->time));
                        http_inproc_cut_streams(w->transport);
                } else if (a == ACT_STREAM || a == ACT_STREAM_ERROR) {
                        x->ops->stream_data(x, "two", 3);
                        x->ops->stream_end(x, true);
                } else if (a == ACT_STREAM_BREAK)
                        x->ops->stream_end(x, false);
                return;
        case ACT_CUT_EARLY:
                http_inproc_cut_streams(w->transport);
                x->ops->reply(x, 200, NULL, 0, "x", 1);
                return;
        case ACT_CANCEL:
                w->call = http_call_free(w->call);
                return;
        case ACT_FREE_TRANSPORT:
                w->call = http_call_free(w->call);
                w->transport = http_transport_free(w->transport);
                return;
        }
}

/* The handler keeps the exchange and acts a second later. */
TEST_CASE(test_later) {
        static const struct {
                const char *what;
                bool stream;
                Act act;
                const char *seen;
                unsigned n_done;
        } rows[] = {
                { "no answer at all", false, ACT_NONE, "ETIMEDOUT? gone ", 1 },
                { "a body larger than allowed", false, ACT_REPLY_BIG, "EMSGSIZE? ", 1 },
                { "a stream", true, ACT_STREAM, "[one][two]200: ", 1 },
                { "a stream to one who wants the whole", false, ACT_STREAM, "200:onetwo ", 1 },
                { "a stream that breaks", true, ACT_STREAM_BREAK, "[one]ECONNRESET? ", 1 },
                { "a stream that falls silent", true, ACT_STREAM_HANG, "[one]ETIMEDOUT? gone ", 1 },
                { "an error is not for on_data", true, ACT_STREAM_ERROR, "500:onetwo ", 1 },
                { "all streams cut", true, ACT_CUT, "[one]ECONNRESET? gone ", 1 },
                { "a call that does not stream yet is not cut", true, ACT_CUT_EARLY, "[x]200: ", 1 },
                { "cancelled", false, ACT_CANCEL, "gone ", 0 },
                { "a dying client", true, ACT_FREE_TRANSPORT, "gone ", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                HttpRequest q = request_of(w, rows[i].stream);

                print_message("%s\n", rows[i].what);
                w->hold = true;
                start(w, &q);
                run_until(w, virtual_time_now(w->time) + USEC_PER_SEC);
                assert_string_equal(strbuf_str(&w->seen), "GET:/x?y=1: ");
                strbuf_truncate(&w->seen, 0);

                act(w, rows[i].act);
                run_until(w, USEC_INFINITY);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_int_equal(w->n_done, rows[i].n_done);
        }
}

/* Told once, before the first piece. */
TEST_CASE(test_headers_of_streams) {
        static const HttpHeader header = { "X-Server", "here" };
        _cleanup_(world_freep) World *w = world_new();
        HttpRequest q = request_of(w, true);

        q.on_headers = on_headers;
        w->hold = true;
        start(w, &q);
        run_until(w, virtual_time_now(w->time));
        w->held->ops->stream_begin(w->held, 200, &header, 1);
        w->held->ops->stream_data(w->held, "one", 3);
        w->held->ops->stream_data(w->held, "two", 3);
        w->held->ops->stream_end(w->held, true);
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "GET:/x?y=1: <here>[one][two]200: ");
}

TEST_CASE(test_stall) {
        _cleanup_(world_freep) World *w = world_new();
        HttpRequest q = request_of(w, true);
        usec_t began = virtual_time_now(w->time);

        q.timeout_usec = USEC_INFINITY;
        q.stall_usec = 5 * USEC_PER_SEC;
        w->hold = true;
        start(w, &q);
        run_until(w, began);
        w->held->ops->stream_begin(w->held, 200, NULL, 0);
        for (usec_t at = 4; at <= 12; at += 4) {
                run_until(w, began + at * USEC_PER_SEC);
                w->held->ops->stream_data(w->held, "x", 1);
        }
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "GET:/x?y=1: [x][x][x]ETIMEDOUT? gone ");
        assert_int_equal(w->done_at - began, 17 * USEC_PER_SEC);
}

/* The first byte is waited for by another clock. */
TEST_CASE(test_no_answer_begins) {
        static const struct {
                usec_t begins_sec, ends_sec;
                const char *seen;
        } rows[] = {
                { 0, 3, "GET:/x?y=1: ETIMEDOUT? gone " },
                { 2, 12, "GET:/x?y=1: ETIMEDOUT? gone " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                HttpRequest q = request_of(w, true);
                usec_t began = virtual_time_now(w->time);

                q.timeout_usec = USEC_INFINITY;
                q.stall_usec = 10 * USEC_PER_SEC;
                q.answer_usec = 3 * USEC_PER_SEC;
                w->hold = true;
                start(w, &q);
                run_until(w, began + rows[i].begins_sec * USEC_PER_SEC);
                if (rows[i].begins_sec > 0)
                        w->held->ops->stream_begin(w->held, 200, NULL, 0);
                run_until(w, USEC_INFINITY);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
                assert_int_equal(w->done_at - began, rows[i].ends_sec * USEC_PER_SEC);
        }
}

TEST_CASE(test_guard) {
        _cleanup_(world_freep) World *w = world_new();
        HttpRequest q = request_of(w, false);

        start(w, &q);
        w->may_send = false; /* between start and leaving */
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "ESTALE ");
}

/* Who watches a call is told once that it is over, before its caller is; what never left is not under way.
 */
TEST_CASE(test_over) {
        static const struct {
                const char *what;
                HttpFault fault;
                usec_t cancelled; /* so long after; 0: not */
                bool stays;       /* the guard keeps it */
                const char *seen;
        } rows[] = {
                { "answered", { .watched = true }, 0, false, "GET:/x?y=1: over 200:hello " },
                { "not watched", { .watched = false }, 0, false, "GET:/x?y=1: 200:hello " },
                { "lost", { .watched = true, .lose_request = true }, 0, false, "over ETIMEDOUT? " },
                { "refused", { .watched = true, .refuse = true }, 0, false, "over ECONNREFUSED " },
                { "cancelled on its way",
                  { .watched = true, .request_delay_usec = 5 },
                  2,
                  false,
                  "over GET:/x?y=1: " },
                { "cancelled before its answer comes",
                  { .watched = true, .reply_delay_usec = 5 },
                  2,
                  false,
                  "GET:/x?y=1: over " },
                { "never sent", { .watched = true }, 0, true, "ESTALE " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                HttpRequest q = request_of(w, false);

                print_message("%s\n", rows[i].what);
                w->fault = rows[i].fault;
                w->may_send = !rows[i].stays;
                start(w, &q);
                if (rows[i].cancelled > 0) {
                        run_until(w, usec_add(virtual_time_now(w->time), rows[i].cancelled));
                        w->call = http_call_free(w->call);
                }
                run_until(w, USEC_INFINITY);
                w->call = http_call_free(w->call);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
        }
}

TEST_CASE(test_free_in_callbacks) {
        static const struct {
                const char *what;
                bool in_data, in_done;
                int data_result;
                const char *seen;
        } rows[] = {
                { "freed with the first piece", true, false, 0, "[one]gone " },
                { "freed with the first piece, which is also refused", true, false, -EIO, "[one]gone " },
                { "refused, then freed at the end", false, true, -EIO, "[one]EIO? gone " },
                { "refused only", false, false, -EBADMSG, "[one]EBADMSG? gone " },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(world_freep) World *w = world_new();
                HttpRequest q = request_of(w, true);

                print_message("%s\n", rows[i].what);
                w->hold = true;
                w->free_in_data = rows[i].in_data;
                w->free_in_done = rows[i].in_done;
                w->data_result = rows[i].data_result;
                start(w, &q);
                run_until(w, virtual_time_now(w->time));
                strbuf_truncate(&w->seen, 0);
                act(w, ACT_STREAM_HANG);
                w->held->ops->stream_data(w->held, "two", 3);
                run_until(w, USEC_INFINITY);
                assert_string_equal(strbuf_str(&w->seen), rows[i].seen);
        }
}

TEST_CASE(test_without_slot) {
        _cleanup_(world_freep) World *w = world_new();
        HttpRequest q = request_of(w, false);

        q.method = HTTP_PATCH;
        q.url = ORIGIN;
        q.body = "abc";
        q.body_size = 3;
        assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "PATCH:/?:abc 200:hello ");

        /* The transport may go before it. */
        assert_return_code(http_call_start(w->transport, &q, on_done, w, NULL), 0);
        w->transport = http_transport_free(w->transport);
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "PATCH:/?:abc 200:hello ");
}

TEST_CASE(test_routes) {
        _cleanup_(world_freep) World *w = world_new();
        HttpRequest q = request_of(w, false);

        q.url = "http://api:8/x";
        start(w, &q);
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "ECONNREFUSED ");
        w->call = http_call_free(w->call);
        strbuf_truncate(&w->seen, 0);

        assert_return_code(http_inproc_route(w->transport, ORIGIN, NULL, NULL), 0);
        q.url = ORIGIN "/x";
        start(w, &q);
        run_until(w, USEC_INFINITY);
        assert_string_equal(strbuf_str(&w->seen), "ECONNREFUSED ");
}

/* What http_call_start() itself refuses, whatever the transport. */
TEST_CASE(test_bad_requests) {
        static const HttpHeader bad_headers[] = {
                { "A", "b\r\nC: d" }, { "A b", "c" }, { "", "c" }, { "A", NULL }, { "A", "b\rC: d" }, { "A", "b\nC: d" }
        };
        static const struct {
                const char *what, *url;
                usec_t timeout_usec, stall_usec;
                bool stream;
                size_t max_bytes, body_size;
                const HttpHeader *header;
                HttpLane lane;
                HttpMethod method;
        } rows[] = {
                { "no URL", NULL, 1, 0, false, 1 },
                { "no scheme", "a/b", 1, 0, false, 1 },
                { "another scheme", "ftp://a/", 1, 0, false, 1 },
                { "no host", "http:///x", 1, 0, false, 1 },
                { "a space", "http://a/ b", 1, 0, false, 1 },
                { "a line break", "http://a/\r\nHost: b", 1, 0, false, 1 },
                { "a fragment", "http://a/#b", 1, 0, false, 1 },
                { "credentials", "http://me:secret@a/", 1, 0, false, 1 },
                { "credentials without a password", "https://me@a?x", 1, 0, false, 1 },
                { "no time-out", "http://a/", 0, 0, false, 1 },
                { "for ever, without a stream", "http://a/", USEC_INFINITY, 1, false, 1 },
                { "a stream for ever, without a limit", "http://a/", USEC_INFINITY, 0, true, 1 },
                { "no size", "http://a/", 1, 0, false, 0 },
                { "a size without a body", "http://a/", 1, 0, false, 1, 1 },
                { "a header that makes another", "http://a/", 1, 0, false, 1, 0, bad_headers },
                { "a header name of two words", "http://a/", 1, 0, false, 1, 0, bad_headers + 1 },
                { "a header without a name", "http://a/", 1, 0, false, 1, 0, bad_headers + 2 },
                { "a header without a value", "http://a/", 1, 0, false, 1, 0, bad_headers + 3 },
                { "a header that returns", "http://a/", 1, 0, false, 1, 0, bad_headers + 4 },
                { "a header of two lines", "http://a/", 1, 0, false, 1, 0, bad_headers + 5 },
                { "no such lane", "http://a/", 1, 0, false, 1, 0, NULL, _HTTP_LANE_MAX },
                { "no such method", "http://a/", 1, 0, false, 1, 0, NULL, 0, _HTTP_METHOD_MAX },
        };
        _cleanup_(world_freep) World *w = world_new();

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                HttpRequest q = {
                        .method = rows[i].method,
                        .url = rows[i].url,
                        .headers = rows[i].header,
                        .n_headers = rows[i].header ? 1 : 0,
                        .body_size = rows[i].body_size,
                        .lane = rows[i].lane,
                        .timeout_usec = rows[i].timeout_usec,
                        .stall_usec = rows[i].stall_usec,
                        .max_response_bytes = rows[i].max_bytes,
                        .on_data = rows[i].stream ? on_data : NULL,
                };

                print_message("%s\n", rows[i].what);
                assert_int_equal(http_call_start(w->transport, &q, on_done, w, &w->call), -EINVAL);
                assert_null(w->call);
        }
}

/* What is meant by none of them: an @ behind the host, a stream that may last but not fall silent. */
TEST_CASE(test_good_requests) {
        static const char *const urls[] = { "http://api:8/x@y", "http://api:8/?x=a@b", "http://api:8?a@b" };
        _cleanup_(world_freep) World *w = world_new();

        for (size_t i = 0; i < ELEMENTSOF(urls); i++) {
                HttpRequest q = { .url = urls[i],
                                  .timeout_usec = USEC_INFINITY,
                                  .stall_usec = USEC_PER_SEC,
                                  .on_data = on_data };

                print_message("%s\n", urls[i]);
                assert_return_code(http_call_start(w->transport, &q, on_done, w, &w->call), 0);
                w->call = http_call_free(w->call);
        }
}

TEST_CASE(test_retry_after) {
        static const struct {
                const char *what, *value;
                usec_t usec;
        } rows[] = {
                { "seconds", "120", 120 * USEC_PER_SEC },
                { "none", "0", 0 },
                { "a date ahead", "Tue, 14 Nov 2023 22:13:50 GMT", 30 * USEC_PER_SEC },
                { "a date behind", "Tue, 14 Nov 2023 22:13:10 GMT", 0 },
                { "a date far ahead", "Tue, 14 Nov 2034 22:13:10 GMT", 0 },
                { "words", "soon", 0 },
                { "less than nothing", "-5", 0 },
                { "a great many seconds", "99999999999999999999", 0 },
        };
        HttpResponse r = { 0 };

        assert_int_equal(http_retry_after(&r, START_WALL), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                HttpHeader headers[] = { { "Date", "x" }, { "retry-after", rows[i].value } };

                print_message("%s\n", rows[i].what);
                r.headers = headers;
                r.n_headers = 2;
                assert_int_equal(http_retry_after(&r, START_WALL), rows[i].usec);
        }
}

TEST_CASE(test_date) {
        static const struct {
                const char *what, *value;
                usec_t usec;
        } rows[] = {
                { "a date", "Tue, 14 Nov 2023 22:13:20 GMT", START_WALL },
                { "words", "today", 0 },
                { "nothing", "", 0 },
                { "another zone", "Tue, 14 Nov 2023 22:13:20 CET", 0 },
                { "another weekday", "Wed, 14 Nov 2023 22:13:20 GMT", 0 },
                { "more behind it", "Tue, 14 Nov 2023 22:13:20 GMT, Tue", 0 },
                { "the oldest", "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
        };
        HttpResponse r = { 0 };

        assert_int_equal(http_date(&r), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                HttpHeader headers[] = { { "Retry-After", "7" }, { "dAtE", rows[i].value } };

                print_message("%s\n", rows[i].what);
                r.headers = headers;
                r.n_headers = 2;
                assert_int_equal(http_date(&r), rows[i].usec);
        }
}

TEST_CASE(test_tls) {
        HttpTlsConfig config = { .ca_pem = "ca",
                                 .ca_pem_size = 2,
                                 .client_cert_pem = "cert",
                                 .client_cert_pem_size = 4,
                                 .server_name = "kubernetes" };
        HttpTls *a = NULL;

        assert_int_equal(http_tls_new(&config, &a), -EINVAL); /* a certificate without its key */
        config.client_cert_pem = NULL;
        config.client_key_pem = "key";
        config.client_key_pem_size = 3;
        assert_int_equal(http_tls_new(&config, &a), -EINVAL); /* a key without its certificate */
        config.client_cert_pem = "cert";
        assert_return_code(http_tls_new(&config, &a), 0);
        assert_ptr_equal(http_tls_ref(a), a);
        assert_null(http_tls_unref(a));
        assert_ptr_not_equal(http_tls_config(a)->client_key_pem, config.client_key_pem);
        assert_memory_equal(http_tls_config(a)->client_key_pem, "key", 3);
        assert_string_equal(http_tls_config(a)->server_name, "kubernetes");
        assert_null(http_tls_unref(a));
        assert_null(http_tls_unref(NULL));
}

TEST_CASE(test_methods) {
        for (HttpMethod m = 0; m < _HTTP_METHOD_MAX; m++)
                assert_int_equal(http_method_from_string(http_method_to_string(m)), m);
        assert_int_equal(http_method_from_string("get"), _HTTP_METHOD_INVALID);
        assert_int_equal(http_method_from_string(NULL), _HTTP_METHOD_INVALID);
        assert_null(http_method_to_string(_HTTP_METHOD_INVALID));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_faults),
                cmocka_unit_test(test_later),
                cmocka_unit_test(test_headers_of_streams),
                cmocka_unit_test(test_stall),
                cmocka_unit_test(test_no_answer_begins),
                cmocka_unit_test(test_guard),
                cmocka_unit_test(test_over),
                cmocka_unit_test(test_free_in_callbacks),
                cmocka_unit_test(test_without_slot),
                cmocka_unit_test(test_routes),
                cmocka_unit_test(test_bad_requests),
                cmocka_unit_test(test_good_requests),
                cmocka_unit_test(test_retry_after),
                cmocka_unit_test(test_date),
                cmocka_unit_test(test_tls),
                cmocka_unit_test(test_methods),
        };
        return cmocka_run_group_tests_name("http-inproc", tests, NULL, NULL);
}
