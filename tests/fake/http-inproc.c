/* SPDX-License-Identifier: Apache-2.0 */
#include "http-inproc.h"

#include <string.h>

#include "alloc-util.h"
#include "list.h"
#include "string-util.h"

/*
 * A call is two objects, as it is two machines in the world: InprocCall is the client's end, InprocExchange
 * the server's. Either may outlive the other: a request that was on its way when its client gave up still
 * arrives and takes effect, and an answer without a client is dropped. What the server says becomes
 * Deliveries in the call's queue, handed over when their time has come. Everything a client or a handler
 * hears comes from a timer, so nothing is delivered inside a call.
 *
 *      start --next iteration--> guard, fault hook --request delay--> handler
 *                                                                        |
 *                                          client <--reply delay-- deliveries
 *
 * Delays are constant within a call, so that a queue is always in order of time.
 */

/* Body of an answer other than 2xx to a stream that named no limit. */
#define STREAM_ERROR_BYTES_MAX (64u * 1024)

typedef struct InprocTransport InprocTransport;
typedef struct InprocCall InprocCall;
typedef struct InprocExchange InprocExchange;

typedef struct InprocRoute {
        ListNode routes;
        char *origin;
        http_handler_t handler;
        void *userdata;
        usec_t held_until_usec;
} InprocRoute;

/* A part of an answer: head, data and end are each optional. */
typedef struct Delivery {
        ListNode queue;
        usec_t at_usec;
        unsigned status; /* 0: no head */
        HttpHeader *headers;
        size_t n_headers;
        bool end;
        int error; /* with end */
        size_t size;
        char data[];
} Delivery;

struct InprocTransport {
        HttpTransport transport;
        Loop *loop;
        char *identity;
        HttpInprocHooks hooks;
        size_t n_calls; /* with those done but not freed */
        bool is_immediate;
        List routes;
        List calls;     /* until done */
        List exchanges; /* until answered, or the handler knows that the client is gone */
};

struct InprocCall {
        HttpCall call;
        InprocTransport *t;
        const InprocRoute *route; /* NULL: nobody is there */
        InprocExchange *exchange; /* NULL once the server has answered or the request is lost */
        ListNode calls;
        bool owned, in_callback, freed;
        bool finished;
        bool maybe_sent, watched;
        bool stream_begun;

        http_done_t done;
        int (*on_data)(const void *data, size_t size, void *userdata);
        void (*on_headers)(const HttpHeader *headers, size_t n_headers, void *userdata);
        void *userdata;
        size_t max_body_bytes;
        usec_t deadline_usec, stall_usec, answer_usec, started_usec, last_byte_usec;
        Timer *deadline;

        List queue; /* of Delivery */
        Timer *delivery;
        int failure; /* takes the place of the queue */
        const char *failure_text;

        unsigned status;
        HttpHeader *headers;
        size_t n_headers;
        StrBuf body;
};

typedef enum ExchangeStage {
        EXCHANGE_LEAVING,
        EXCHANGE_TRAVELLING,
        EXCHANGE_HANDLED,
} ExchangeStage;

struct InprocExchange {
        HttpExchange x;
        InprocTransport *t;
        InprocCall *call; /* NULL: the client has gone */
        ListNode exchanges;
        ExchangeStage stage;
        Timer *timer; /* to leave, to arrive, to learn that the client has gone */
        bool in_handler, ended;
        HttpFault fault;
        HttpRequest request; /* our copies; no tls */
        char *origin;        /* "http://host:port" */
        char *path, *query;
};

/* -- the server's end --------------------------------------------------------------------------------- */

static void exchange_free(InprocExchange *x) {
        if (x->call)
                x->call->exchange = NULL;
        list_remove(&x->t->exchanges, &x->exchanges);
        timer_free(x->timer);
        free((void *) x->request.url);
        free((void *) x->request.headers);
        free((void *) x->request.body);
        free(x->origin);
        free(x->path);
        free(x->query);
        free(x);
}

/* The handler is done with it; but it may be on the stack. */
static void exchange_end(InprocExchange *x) {
        if (x->call)
                x->call->exchange = NULL;
        x->call = NULL;
        x->ended = true;
        if (!x->in_handler)
                exchange_free(x);
}

static void exchange_lose_client(InprocExchange *x) {
        x->call->exchange = NULL;
        x->call = NULL;
        if (x->stage == EXCHANGE_LEAVING)
                exchange_free(x);
        else if (x->stage == EXCHANGE_HANDLED)
                timer_arm_in(x->timer, 0);
}

/* -- the client's end --------------------------------------------------------------------------------- */

static void delivery_free(Delivery *d) {
        free(d->headers);
        free(d);
}

static void call_clear_queue(InprocCall *c) {
        LIST_FOREACH (d, &c->queue, Delivery, queue) {
                list_remove(&c->queue, &d->queue);
                delivery_free(d);
        }
}

/* Out of the world, but the memory stays until call_destroy(). */
static void call_stop(InprocCall *c) {
        if (c->finished)
                return;

        c->finished = true;
        list_remove(&c->t->calls, &c->calls);
        c->deadline = timer_free(c->deadline);
        c->delivery = timer_free(c->delivery);
        call_clear_queue(c);
        if (c->exchange)
                exchange_lose_client(c->exchange);
        if (c->watched)
                c->t->hooks.on_over(c->t->hooks.userdata);
}

static void call_destroy(InprocCall *c) {
        call_stop(c);
        c->t->n_calls--;
        free(c->headers);
        strbuf_done(&c->body);
        free(c);
}

static void call_leave_callback(InprocCall *c) {
        c->in_callback = false;
        if (c->freed || (c->finished && !c->owned))
                call_destroy(c);
}

/* in_callback is set. */
static void call_finish(InprocCall *c, int error, const char *error_text) {
        HttpResponse response = {
                .error = error,
                .error_text = error_text,
                .maybe_sent = c->maybe_sent,
                .body = "",
                .started_usec = c->started_usec,
                .finished_usec = loop_now(c->t->loop),
        };

        call_stop(c);
        if (error == 0) {
                response.status = c->status;
                response.headers = c->headers;
                response.n_headers = c->n_headers;
                response.body = strbuf_str(&c->body);
                response.body_size = c->body.size;
        }
        c->done(&response, c->userdata);
}

/* Ends the call in the next iteration, with nothing delivered before. */
static void call_fail(InprocCall *c, int error, bool maybe_sent, const char *error_text) {
        call_clear_queue(c);
        c->failure = error;
        c->failure_text = error_text;
        c->maybe_sent = maybe_sent;
        timer_arm_in(c->delivery, 0);
        if (c->exchange)
                exchange_lose_client(c->exchange);
}

static void call_take_data(InprocCall *c, const char *data, size_t size) {
        int r;

        c->last_byte_usec = loop_now(c->t->loop);
        if (c->on_data && c->status / 100 == 2) {
                if (c->on_headers)
                        c->on_headers(c->headers, c->n_headers, c->userdata);
                c->on_headers = NULL;
                r = c->on_data(data, size, c->userdata);
                if (r < 0 && !c->freed)
                        call_finish(c, r, "The receiver of the stream ended it");
                return;
        }

        if (size > c->max_body_bytes - c->body.size) {
                call_finish(c, -EMSGSIZE, "The answer is larger than allowed");
                return;
        }
        strbuf_add_n(&c->body, data, size);
        if (c->body.failed)
                call_finish(c, -ENOMEM, "Out of memory");
}

static void call_take(InprocCall *c, Delivery *d) {
        if (d->status != 0) {
                c->status = d->status;
                free(c->headers);
                c->headers = TAKE_PTR(d->headers);
                c->n_headers = d->n_headers;
                c->last_byte_usec = loop_now(c->t->loop);
        }
        if (d->size > 0)
                call_take_data(c, d->data, d->size);
        if (d->end && !c->finished && !c->freed)
                call_finish(c, d->error, d->error < 0 ? "The connection broke" : "");
}

static void on_delivery(Timer *timer, void *userdata) {
        InprocCall *c = userdata;

        if (c->failure == 0 && c->route && loop_now(c->t->loop) < c->route->held_until_usec) {
                timer_arm(c->delivery, c->route->held_until_usec);
                return;
        }
        c->in_callback = true;
        if (c->failure < 0)
                call_finish(c, c->failure, c->failure_text);

        while (!c->finished && !c->freed && c->queue.first) {
                Delivery *d = LIST_ENTRY(c->queue.first, Delivery, queue);

                if (d->at_usec > loop_now(c->t->loop)) {
                        timer_arm(c->delivery, d->at_usec);
                        break;
                }
                list_remove(&c->queue, &d->queue);
                call_take(c, d);
                delivery_free(d);
        }
        call_leave_callback(c);
}

static usec_t call_silence(const InprocCall *c) {
        return c->status > 0 || c->answer_usec == 0 ? c->stall_usec : c->answer_usec;
}

static void call_arm_deadline(InprocCall *c) {
        usec_t at = c->deadline_usec;

        if (call_silence(c) > 0)
                at = MIN(at, usec_add(c->last_byte_usec, call_silence(c)));
        timer_arm(c->deadline, at);
}

static void on_deadline(Timer *timer, void *userdata) {
        InprocCall *c = userdata;
        usec_t now = loop_now(c->t->loop);
        bool stalled = call_silence(c) > 0 && now >= usec_add(c->last_byte_usec, call_silence(c));

        if (now < c->deadline_usec && !stalled) {
                call_arm_deadline(c);
                return;
        }

        c->in_callback = true;
        call_finish(c, -ETIMEDOUT, stalled && c->status > 0 ? "The stream fell silent" : "No answer in time");
        call_leave_callback(c);
}

/* `delay` counts from now. Never fails: without memory, the call does. */
static void call_deliver(InprocCall *c, usec_t delay, unsigned status, const HttpHeader *headers,
                         size_t n_headers, const void *data, size_t size, bool end, int error) {
        Delivery *d;

        if (c->failure < 0)
                return;

        d = calloc(1, sizeof(Delivery) + size);
        if (!d || http_headers_copy(headers, n_headers, &d->headers) < 0) {
                free(d);
                call_fail(c, -ENOMEM, true, "Out of memory");
                return;
        }

        d->at_usec = usec_add(loop_now(c->t->loop), delay);
        d->status = status;
        d->n_headers = n_headers;
        d->end = end;
        d->error = error;
        d->size = size;
        if (size > 0)
                memcpy(d->data, data, size);
        list_append(&c->queue, &d->queue);
        timer_arm_earlier(c->delivery, d->at_usec);
}

/* -- what a handler may do ---------------------------------------------------------------------------- */

static void exchange_say(InprocExchange *x, unsigned status, const HttpHeader *headers, size_t n_headers,
                         const void *data, size_t size, bool end, int error) {
        if (!x->call || x->fault.lose_reply)
                return;
        if (x->x.method == HTTP_HEAD)
                size = 0;
        call_deliver(x->call, x->fault.reply_delay_usec, status, headers, n_headers, data, size, end, error);
}

static void inproc_reply(HttpExchange *exchange, unsigned status, const HttpHeader *headers,
                         size_t n_headers, const void *body, size_t body_size) {
        InprocExchange *x = CONTAINER_OF(exchange, InprocExchange, x);

        exchange_say(x, status, headers, n_headers, body, body_size, true, 0);
        exchange_end(x);
}

static void inproc_stream_begin(HttpExchange *exchange, unsigned status, const HttpHeader *headers,
                                size_t n_headers) {
        InprocExchange *x = CONTAINER_OF(exchange, InprocExchange, x);

        if (x->call)
                x->call->stream_begun = true;
        exchange_say(x, status, headers, n_headers, NULL, 0, false, 0);
}

static void inproc_stream_data(HttpExchange *exchange, const void *data, size_t size) {
        InprocExchange *x = CONTAINER_OF(exchange, InprocExchange, x);

        exchange_say(x, 0, NULL, 0, data, size, false, 0);
}

static void inproc_stream_end(HttpExchange *exchange, bool clean) {
        InprocExchange *x = CONTAINER_OF(exchange, InprocExchange, x);

        exchange_say(x, 0, NULL, 0, NULL, 0, true, clean ? 0 : -ECONNRESET);
        exchange_end(x);
}

static const HttpExchangeOps exchange_ops = {
        .reply = inproc_reply,
        .stream_begin = inproc_stream_begin,
        .stream_data = inproc_stream_data,
        .stream_end = inproc_stream_end,
};

/* -- the way of a request ----------------------------------------------------------------------------- */

static InprocRoute *find_route(InprocTransport *t, const char *origin) {
        LIST_FOREACH (route, &t->routes, InprocRoute, routes)
                if (streq(route->origin, origin))
                        return route;
        return NULL;
}

static void exchange_arrive(InprocExchange *x) {
        InprocRoute *route = find_route(x->t, x->origin);

        if (x->fault.refuse || x->fault.no_route || !route || !route->handler) {
                if (x->call)
                        call_fail(x->call, x->fault.no_route ? -EHOSTUNREACH : -ECONNREFUSED, false,
                                  x->fault.no_route ? "No route to host" : "Connection refused");
                x->stage = EXCHANGE_HANDLED;
                exchange_end(x);
                return;
        }

        x->stage = EXCHANGE_HANDLED;
        x->in_handler = true;
        route->handler(&x->x, route->userdata);
        x->in_handler = false;
        if (x->ended)
                exchange_free(x);
        else if (!x->call)
                timer_arm_in(x->timer, 0);
}

/* The last moment: from here on the request is out of the client's hands. */
static void exchange_leave(InprocExchange *x) {
        InprocTransport *t = x->t;
        InprocCall *c = x->call;
        const HttpGuard *guard = &x->request.guard;

        if (guard->may_send && !guard->may_send(guard->userdata)) {
                call_fail(c, -ESTALE, false,
                          "Not sent: the guard refused it"); /* takes the exchange with it */
                return;
        }

        x->stage = EXCHANGE_TRAVELLING;
        c->route = find_route(t, x->origin);
        c->started_usec = loop_now(t->loop);
        c->maybe_sent = true;
        if (t->hooks.on_request)
                t->hooks.on_request(&x->request, strstr(x->origin, "://") + 3, &x->fault, t->hooks.userdata);
        c->watched = x->fault.watched;

        if (x->fault.lose_request)
                exchange_end(x);
        else if (x->fault.status != 0) {
                HttpHeader retry_after = { "Retry-After", x->fault.retry_after };

                call_deliver(c, usec_add(x->fault.request_delay_usec, x->fault.reply_delay_usec),
                             x->fault.status, &retry_after, x->fault.retry_after ? 1 : 0, NULL, 0, true, 0);
                exchange_end(x);
        } else if (x->fault.request_delay_usec > 0)
                timer_arm_in(x->timer, x->fault.request_delay_usec);
        else
                exchange_arrive(x);
}

/* The handler's end of it, too. */
static void exchange_tell_gone(InprocExchange *x) {
        x->in_handler = true; /* whatever it calls in there, we free */
        if (x->x.on_gone)
                x->x.on_gone(&x->x, x->x.userdata);
        exchange_free(x);
}

static void on_exchange_timer(Timer *timer, void *userdata) {
        InprocExchange *x = userdata;

        switch (x->stage) {
        case EXCHANGE_LEAVING:
                exchange_leave(x);
                return;
        case EXCHANGE_TRAVELLING:
                exchange_arrive(x);
                return;
        case EXCHANGE_HANDLED:
                exchange_tell_gone(x);
                return;
        }
}

/* -- making both ends --------------------------------------------------------------------------------- */

/* "http://host:80/a?b" into "http://host:80", "/a" and "b". */
static int exchange_split_url(InprocExchange *x, const char *url) {
        const char *host = strstr(url, "://") + 3;
        size_t n = (size_t) (host - url) + strcspn(host, "/?");
        char *mark;

        x->origin = memdup_str(url, n);
        x->path = strf("%s%s", url[n] == '/' ? "" : "/", url + n);
        if (!x->origin || !x->path)
                return -ENOMEM;

        mark = strchr(x->path, '?');
        x->query = strdup(mark ? mark + 1 : "");
        if (!x->query)
                return -ENOMEM;
        if (mark)
                *mark = 0;
        return 0;
}

static int exchange_new(InprocTransport *t, const HttpRequest *request, InprocExchange **ret) {
        InprocExchange *x;
        HttpHeader *headers = NULL;
        int r;

        x = new0(InprocExchange, 1);
        if (!x)
                return -ENOMEM;

        x->t = t;
        list_append(&t->exchanges, &x->exchanges);
        x->request = *request;
        x->request.tls = NULL;
        x->request.url = strdup(request->url);
        x->request.body = memdup_str(request->body, request->body_size);
        r = http_headers_copy(request->headers, request->n_headers, &headers);
        x->request.headers = headers;
        if (r >= 0)
                r = exchange_split_url(x, request->url);
        if (r >= 0)
                r = timer_new(t->loop, "http-inproc-exchange", on_exchange_timer, x, &x->timer);
        if (r < 0 || !x->request.url || !x->request.body) {
                exchange_free(x);
                return r < 0 ? r : -ENOMEM;
        }

        x->x = (HttpExchange){
                .ops = &exchange_ops,
                .method = request->method,
                .path = x->path,
                .query = x->query,
                .headers = headers,
                .n_headers = request->n_headers,
                .body = x->request.body,
                .body_size = request->body_size,
                .client_identity = t->identity,
        };
        *ret = x;
        return 0;
}

static int inproc_start(HttpTransport *transport, const HttpRequest *request, http_done_t done,
                        void *userdata, HttpCall **ret) {
        InprocTransport *t = CONTAINER_OF(transport, InprocTransport, transport);
        usec_t now = loop_now(t->loop);
        InprocCall *c;
        int r;

        c = new0(InprocCall, 1);
        if (!c)
                return -ENOMEM;

        c->call.transport = transport;
        c->t = t;
        t->n_calls++;
        list_append(&t->calls, &c->calls);
        c->owned = !!ret;
        c->done = done;
        c->on_data = request->on_data;
        c->on_headers = request->on_headers;
        c->userdata = userdata;
        c->max_body_bytes =
                request->max_response_bytes > 0 ? request->max_response_bytes : STREAM_ERROR_BYTES_MAX;
        c->deadline_usec = usec_add(now, request->timeout_usec);
        c->stall_usec = request->stall_usec;
        c->answer_usec = request->answer_usec;
        c->started_usec = c->last_byte_usec = now;

        r = timer_new(t->loop, "http-inproc-deadline", on_deadline, c, &c->deadline);
        if (r >= 0)
                r = timer_new(t->loop, "http-inproc-delivery", on_delivery, c, &c->delivery);
        if (r >= 0)
                r = exchange_new(t, request, &c->exchange);
        if (r < 0) {
                call_destroy(c);
                return r;
        }

        c->exchange->call = c;
        timer_arm_in(c->exchange->timer, 0);
        call_arm_deadline(c);
        if (ret)
                *ret = &c->call;
        return 0;
}

static void inproc_cancel(HttpCall *call) {
        InprocCall *c = CONTAINER_OF(call, InprocCall, call);

        assert(c->owned && !c->freed);
        if (!c->in_callback) {
                call_destroy(c);
                return;
        }
        call_stop(c);
        c->freed = true;
}

/* -- the transport ------------------------------------------------------------------------------------ */

static void route_free(InprocTransport *t, InprocRoute *route) {
        list_remove(&t->routes, &route->routes);
        free(route->origin);
        free(route);
}

/* A process that dies takes what it had not sent yet with it; handlers see its connections close. */
static void inproc_free(HttpTransport *transport) {
        InprocTransport *t = CONTAINER_OF(transport, InprocTransport, transport);

        LIST_FOREACH (c, &t->calls, InprocCall, calls) {
                assert(!c->owned);
                call_destroy(c);
        }
        assert(t->n_calls == 0);
        while (t->exchanges.first) {
                InprocExchange *x = LIST_ENTRY(t->exchanges.first, InprocExchange, exchanges);

                x->in_handler = true;
                if (x->stage == EXCHANGE_HANDLED && x->x.on_gone)
                        x->x.on_gone(&x->x, x->x.userdata);
                exchange_free(x);
        }
        while (t->routes.first)
                route_free(t, LIST_ENTRY(t->routes.first, InprocRoute, routes));
        free(t->identity);
        free(t);
}

/* Nothing costs anything here: pieces come as they are sent. */
static void inproc_set_immediate(HttpTransport *transport, bool is_immediate) {
        CONTAINER_OF(transport, InprocTransport, transport)->is_immediate = is_immediate;
}

static const HttpTransportOps inproc_ops = {
        .start = inproc_start,
        .cancel = inproc_cancel,
        .set_immediate = inproc_set_immediate,
        .free = inproc_free,
};

int http_inproc_new(Loop *l, const char *identity, const HttpInprocHooks *hooks, HttpTransport **ret) {
        InprocTransport *t;
        int r;

        assert(l);
        assert(ret);
        t = new0(InprocTransport, 1);
        if (!t)
                return -ENOMEM;

        t->transport.ops = &inproc_ops;
        t->loop = l;
        if (hooks)
                t->hooks = *hooks;
        r = free_and_strdup(&t->identity, identity);
        if (r < 0) {
                free(t);
                return r;
        }
        *ret = &t->transport;
        return 0;
}

int http_inproc_route(HttpTransport *transport, const char *origin, http_handler_t handler, void *userdata) {
        InprocTransport *t = CONTAINER_OF(transport, InprocTransport, transport);
        InprocRoute *route;

        assert(transport->ops == &inproc_ops);
        route = find_route(t, origin);
        if (!route) {
                route = new0(InprocRoute, 1);
                if (!route)
                        return -ENOMEM;
                route->origin = strdup(origin);
                if (!route->origin) {
                        free(route);
                        return -ENOMEM;
                }
                list_append(&t->routes, &route->routes);
        }

        route->handler = handler;
        route->userdata = userdata;
        return 0;
}

void http_inproc_hold(HttpTransport *transport, const char *origin, usec_t until_usec) {
        InprocTransport *t = CONTAINER_OF(transport, InprocTransport, transport);
        InprocRoute *route;

        assert(transport->ops == &inproc_ops);
        route = find_route(t, origin);
        if (route)
                route->held_until_usec = until_usec;
}

void http_inproc_cut_streams(HttpTransport *transport) {
        InprocTransport *t = CONTAINER_OF(transport, InprocTransport, transport);

        assert(transport->ops == &inproc_ops);
        LIST_FOREACH (c, &t->calls, InprocCall, calls)
                if (c->stream_begun && c->failure == 0)
                        call_fail(c, -ECONNRESET, true, "The connection broke");
}

void http_inproc_break(HttpTransport *transport, const char *origin) {
        InprocTransport *t = CONTAINER_OF(transport, InprocTransport, transport);

        assert(transport->ops == &inproc_ops);
        LIST_FOREACH (x, &t->exchanges, InprocExchange, exchanges) {
                if (x->stage != EXCHANGE_HANDLED || !streq(x->origin, origin))
                        continue;
                if (x->call)
                        call_fail(x->call, -ECONNRESET, true, "The connection broke");
                exchange_tell_gone(x);
        }
}

bool http_inproc_is_immediate(const HttpTransport *transport) {
        assert(transport->ops == &inproc_ops);
        return CONTAINER_OF(transport, const InprocTransport, transport)->is_immediate;
}

size_t http_inproc_pending(const HttpTransport *transport) {
        const InprocTransport *t = CONTAINER_OF(transport, const InprocTransport, transport);

        assert(transport->ops == &inproc_ops);
        return t->calls.size;
}
