/* SPDX-License-Identifier: Apache-2.0 */
#include "http-server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "alloc-util.h"
#include "file-util.h"
#include "listen-address.h"
#include "parse-util.h"
#include "server-connection.h"
#include "string-util.h"

/*
 * libmicrohttpd without threads: its epoll descriptor is one io source of the loop, and what it waits for is
 * one timer.
 *
 *      request line -> headers -> body -> handler --+--> answered at once -----------> sent -> completed
 *                                                   +--> suspended until it answers -> sent -> completed
 *                                                   +--> stream: suspended while it has nothing to send
 *
 * While a connection is suspended the library does not look at its socket, and would not notice that the
 * client has left until there is something to say. A second io source on the same descriptor does (on its
 * hang-up only). Between two requests the same source sees the first byte of the next one, of which the
 * library says nothing before the request line is complete.
 *
 * An exchange is made with the request line and freed when the library reports the request as completed,
 * whoever ended it; that is also where a handler that still held it learns that its client has gone.
 */

#define DEFAULT_MAX_CONNECTIONS 64
#define DEFAULT_IDLE_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define STREAM_BLOCK_BYTES 4096
/* Connections that were cut and that the library has not closed yet, at most: it accepts ten at most before
 * it serves the others. */
#define CUT_MAX 32u
/* Maximum number of bytes that are read and dropped of a body that is refused while it comes: a client that
 * is cut off while it writes never reads why. */
#define DISCARD_MAX_BYTES (1024u * 1024)
#define RATE_TEXT "too many bytes of requests of this address\n"
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* -- driving the library ------------------------------------------------------------------------------ */

/* Takes room for the body in this turn (max_turn_bytes). */
static bool exchange_take_turn(ServerExchange *x) {
        HttpServer *s = x->server;

        if (s->limits.max_turn_bytes > 0 && s->turn_bytes > 0 &&
            s->turn_bytes + x->body.size > s->limits.max_turn_bytes)
                return false;
        s->turn_bytes += x->body.size;
        return true;
}

static void exchange_leave_waiting(ServerExchange *x) {
        if (x->turn != EXCHANGE_TURN_WAITS)
                return;
        list_remove(&x->server->waiting, &x->waiting);
        x->turn = EXCHANGE_TURN_TAKEN;
}

/* Begins a turn with the requests that have waited longest. A timer begins none: several rounds of timers may
 * run before the loop dispatches a descriptor. */
static void server_begin_turn(HttpServer *s) {
        s->turn_bytes = 0;
        LIST_FOREACH (x, &s->waiting, ServerExchange, waiting) {
                if (!x->gone && !exchange_take_turn(x))
                        return;
                exchange_leave_waiting(x);
                server_exchange_resume(x);
        }
}

static void server_run(HttpServer *s) {
        MHD_UNSIGNED_LONG_LONG msec;

        s->again = false;
        s->running = true;
        (void) MHD_run(s->daemon);
        s->running = false;

        if (s->waiting.size > 0)
                (void) sd_event_source_set_enabled(s->turn, SD_EVENT_ONESHOT);
        if (s->again)
                timer_arm_in(s->timer, 0);
        else if (MHD_get_timeout(s->daemon, &msec) == MHD_YES)
                timer_arm_in(s->timer, (usec_t) msec * USEC_PER_MSEC);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        server_begin_turn(userdata);
        server_run(userdata);
        return 0;
}

static int on_turn(sd_event_source *source, void *userdata) {
        server_begin_turn(userdata);
        server_run(userdata);
        return 0;
}

static void on_timer(Timer *timer, void *userdata) {
        server_run(userdata);
}

/* -- limits ------------------------------------------------------------------------------------------- */

/* Reserves the memory that a body of so many bytes takes in a StrBuf, which doubles when it grows. */
static bool exchange_reserve(ServerExchange *x, size_t body_bytes) {
        HttpServer *s = x->server;
        ConnectionEntry *e = &x->connection->entry, *displaced;
        size_t need = body_bytes + 1;

        if (need <= e->body_bytes)
                return true;
        need = MAX(need, 2 * x->body.allocated);
        while (s->limits.max_bodies_bytes > 0 &&
               s->connections.body_bytes - e->body_bytes + need > s->limits.max_bodies_bytes) {
                displaced = connection_table_find_displaced_body(&s->connections, e, need);
                if (!displaced)
                        return false;
                server_connection_displace(CONTAINER_OF(displaced, ServerConnection, entry));
        }
        connection_table_reserve(&s->connections, e, need);
        return true;
}

/* -- what a handler may do ---------------------------------------------------------------------------- */

static void exchange_set_response(ServerExchange *x, struct MHD_Response *response, unsigned status,
                                  const HttpHeader *headers, size_t n_headers) {
        if (!response) {
                x->gone = true;
                return;
        }
        x->response = response;
        x->status = status;
        for (size_t i = 0; i < n_headers; i++) /* refused are those that the library writes itself */
                (void) MHD_add_response_header(response, headers[i].name, headers[i].value);
        if (x->server->listen_fd < 0) /* retired: its clients come to the successor */
                (void) MHD_add_response_header(response, "Connection", "close");
}

static void server_reply(HttpExchange *exchange, unsigned status, const HttpHeader *headers,
                         size_t n_headers, const void *body, size_t body_size) {
        ServerExchange *x = CONTAINER_OF(exchange, ServerExchange, x);
        struct MHD_Response *response;

        assert(!x->ended && !x->response);
        response = MHD_create_response_from_buffer(body_size, (void *) (body ? body : ""),
                                                   MHD_RESPMEM_MUST_COPY);
        exchange_set_response(x, response, status, headers, n_headers);
        x->ended = true;
        server_exchange_resume(x);
}

static ssize_t on_stream_wanted(void *userdata, uint64_t position, char *buffer, size_t max) {
        ServerExchange *x = userdata;
        size_t n = MIN(max, x->out.size - x->out_sent);

        if (n > 0) {
                memcpy(buffer, x->out.data + x->out_sent, n);
                x->out_sent += n;
                if (x->out_sent == x->out.size) {
                        strbuf_truncate(&x->out, 0);
                        x->out_sent = 0;
                }
                return (ssize_t) n;
        }

        if (x->gone || x->out.failed || (x->ended && x->broken))
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (x->ended)
                return MHD_CONTENT_READER_END_OF_STREAM;
        server_exchange_suspend(x);
        return 0;
}

static void server_stream_begin(HttpExchange *exchange, unsigned status, const HttpHeader *headers,
                                size_t n_headers) {
        ServerExchange *x = CONTAINER_OF(exchange, ServerExchange, x);
        struct MHD_Response *response;

        assert(!x->ended && !x->response);
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, on_stream_wanted,
                                                     x, NULL);
        exchange_set_response(x, response, status, headers, n_headers);
        server_exchange_resume(x);
}

static void server_stream_data(HttpExchange *exchange, const void *data, size_t size) {
        ServerExchange *x = CONTAINER_OF(exchange, ServerExchange, x);

        assert(!x->ended);
        if (size == 0 || x->gone)
                return;
        strbuf_add_n(&x->out, data, size);
        server_exchange_resume(x);
}

static void server_stream_end(HttpExchange *exchange, bool clean) {
        ServerExchange *x = CONTAINER_OF(exchange, ServerExchange, x);

        assert(!x->ended);
        x->ended = true;
        x->broken = !clean;
        server_exchange_resume(x);
}

static const HttpExchangeOps exchange_ops = {
        .reply = server_reply,
        .stream_begin = server_stream_begin,
        .stream_data = server_stream_data,
        .stream_end = server_stream_end,
};

/* -- one request -------------------------------------------------------------------------------------- */

static void exchange_free(ServerExchange *x) {
        list_remove(&x->server->exchanges, &x->exchanges);
        exchange_leave_waiting(x);
        server_exchange_drop_body(x);
        MHD_destroy_response(x->response); /* NULL is fine */
        free(x->path);
        free(x->query);
        free(x->headers);
        strbuf_done(&x->out);
        free(x);
}

/* The URI as it came: the one handed to on_request() is decoded. */
static void *on_request_line(void *userdata, const char *uri, struct MHD_Connection *mhd) {
        HttpServer *s = userdata;
        ServerConnection *connection = server_connection_of(mhd);
        ServerExchange *x;
        const char *path = uri;
        size_t n;

        x = connection ? new0(ServerExchange, 1) : NULL;
        if (!x)
                return NULL;

        /* Absolute form, as proxies get it. */
        if (startswith(uri, "http://") || startswith(uri, "https://")) {
                path = strstr(uri, "://") + 3;
                path += strcspn(path, "/?");
        }
        n = strcspn(path, "?");
        x->server = s;
        x->connection = connection;
        list_append(&s->exchanges, &x->exchanges);
        x->path = n > 0 ? memdup_str(path, n) : strdup("/");
        x->query = strdup(path[n] == '?' ? path + n + 1 : "");
        if (!x->path || !x->query) {
                exchange_free(x);
                return NULL;
        }
        connection->exchange = x;
        server_connection_enter(connection, CONNECTION_RECEIVING);
        return x;
}

static enum MHD_Result exchange_send(ServerExchange *x) {
        if (x->gone || !x->response)
                return MHD_NO;

        server_connection_enter(x->connection, CONNECTION_ANSWERED);
        return MHD_queue_response(x->connection->mhd, x->status, x->response);
}

static enum MHD_Result exchange_refuse(ServerExchange *x, unsigned status, const char *text) {
        HttpHeader type = { "Content-Type", "text/plain" };

        server_reply(&x->x, status, &type, 1, text, strlen(text));
        return exchange_send(x);
}

static enum MHD_Result on_header(void *userdata, enum MHD_ValueKind kind, const char *name,
                                 const char *value) {
        ServerExchange *x = userdata;

        x->headers[x->x.n_headers++] = (HttpHeader){ name, strempty(value) };
        return MHD_YES;
}

static int exchange_take_headers(ServerExchange *x) {
        int n = MHD_get_connection_values(x->connection->mhd, MHD_HEADER_KIND, NULL, NULL);

        x->headers = new0(HttpHeader, n > 0 ? (size_t) n : 1);
        if (!x->headers)
                return -ENOMEM;
        if (n > 0)
                MHD_get_connection_values(x->connection->mhd, MHD_HEADER_KIND, on_header, x);
        x->x.headers = x->headers;
        return 0;
}

/* Returns true if the rate of the client's address admits the body, which has come: bytes that a client only announces cost its address nothing.
 * Reports a refusal. */
static bool exchange_take_rate(ServerExchange *x, size_t body_bytes) {
        HttpServer *s = x->server;

        x->rated = x->rated || !s->rates ||
                   address_rates_take_body(s->rates, &x->connection->entry.address->ip, body_bytes, loop_now(s->loop));
        if (!x->rated)
                server_connection_report_refusal(x->connection, HTTP_REFUSED_RATE);
        return x->rated;
}

static const char *refusal_text(unsigned status) {
        return status == MHD_HTTP_CONTENT_TOO_LARGE ? "request body too large\n"
                                                    : "too many requests are being received\n";
}

/* Returns the status with which a request is refused before its body comes; 0: none. */
static unsigned exchange_refused_at_headers(ServerExchange *x, const char **ret_text) {
        HttpServer *s = x->server;
        unsigned status = s->limits.on_headers ? s->limits.on_headers(&x->x, s->userdata, ret_text) : 0;

        if (status > 0)
                return status;
        if (x->announced > s->limits.max_body_bytes) {
                server_connection_report_refusal(x->connection, HTTP_REFUSED_SIZE);
                x->refused = MHD_HTTP_CONTENT_TOO_LARGE;
                *ret_text = refusal_text(x->refused);
                return x->announced - s->limits.max_body_bytes > DISCARD_MAX_BYTES ? x->refused : 0;
        }
        if (s->limits.max_requests_per_address > 0 &&
            x->connection->entry.address->n_requests > s->limits.max_requests_per_address) {
                server_connection_report_refusal(x->connection, HTTP_REFUSED_ADDRESS);
                *ret_text = "too many requests of this address are not answered yet\n";
                return MHD_HTTP_SERVICE_UNAVAILABLE;
        }
        if (x->announced > 0 && !exchange_reserve(x, x->announced)) {
                server_connection_report_refusal(x->connection, HTTP_REFUSED_BODIES);
                *ret_text = refusal_text(MHD_HTTP_SERVICE_UNAVAILABLE);
                return MHD_HTTP_SERVICE_UNAVAILABLE;
        }
        return 0;
}

/* Headers are there, the body is not. */
static enum MHD_Result exchange_begin(ServerExchange *x, const char *method) {
        const char *length, *text = NULL;
        unsigned status;
        uint64_t n = 0;

        x->begun = true;
        x->x.ops = &exchange_ops;
        x->x.path = x->path;
        x->x.query = x->query;
        x->x.method = http_method_from_string(method);
        if (exchange_take_headers(x) < 0 || server_connection_identify(x->connection) < 0)
                return MHD_NO;
        x->x.client_identity = x->connection->identity;
        x->x.client_address = x->connection->entry.address->text;

        length = http_header_find(x->headers, x->x.n_headers, "Content-Length");
        if (length && parse_uint64(length, &n) < 0)
                return MHD_NO;
        x->announced = n;
        status = exchange_refused_at_headers(x, &text);
        return status > 0 ? exchange_refuse(x, status, text) : MHD_YES;
}

/* The rest of the body is read and dropped. */
static void exchange_refuse_later(ServerExchange *x, unsigned status) {
        x->refused = status;
        server_exchange_drop_body(x);
}

static enum MHD_Result exchange_take_body(ServerExchange *x, const char *data, size_t *size) {
        const HttpServerOptions *limits = &x->server->limits;
        size_t n = *size;

        *size = 0;
        if (n > limits->max_body_bytes + DISCARD_MAX_BYTES - x->received)
                return MHD_NO;
        x->received += n;
        if (x->refused > 0)
                return MHD_YES;
        if (x->received > limits->max_body_bytes) {
                server_connection_report_refusal(x->connection, HTTP_REFUSED_SIZE);
                exchange_refuse_later(x, MHD_HTTP_CONTENT_TOO_LARGE);
                return MHD_YES;
        }
        if (!exchange_reserve(x, x->received)) {
                server_connection_report_refusal(x->connection, HTTP_REFUSED_BODIES);
                exchange_refuse_later(x, MHD_HTTP_SERVICE_UNAVAILABLE);
                return MHD_YES;
        }
        strbuf_make_room(&x->body, MAX(n, x->announced - MIN(x->announced, x->body.size)));
        strbuf_add_n(&x->body, data, n);
        return x->body.failed ? MHD_NO : MHD_YES;
}

static enum MHD_Result exchange_handle(ServerExchange *x) {
        if (x->refused > 0)
                return exchange_refuse(x, x->refused, refusal_text(x->refused));
        if (x->x.method < 0)
                return exchange_refuse(x, MHD_HTTP_NOT_IMPLEMENTED, "method not implemented\n");

        if (!exchange_take_rate(x, x->body.size))
                return exchange_refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE, RATE_TEXT);
        if (x->turn == EXCHANGE_TURN_NONE && (x->server->waiting.size > 0 || !exchange_take_turn(x))) {
                x->turn = EXCHANGE_TURN_WAITS;
                list_append(&x->server->waiting, &x->waiting);
                server_connection_enter(x->connection, CONNECTION_HANDLED); /* the request is complete: the server is late, not the client */
                server_exchange_suspend(x);
                return MHD_YES;
        }

        x->x.body = strbuf_str(&x->body);
        x->x.body_size = x->body.size;
        x->handled = true;
        server_connection_enter(x->connection, CONNECTION_HANDLED);
        x->server->handler(&x->x, x->server->userdata);
        if (x->server->limits.drop_bodies) {
                x->x.body = NULL;
                x->x.body_size = 0;
                server_exchange_drop_body(x);
        }

        if (x->response || x->gone)
                return exchange_send(x);
        server_exchange_suspend(x);
        return MHD_YES;
}

/* Called with the headers, with each piece of the body, at its end, and again after a suspension. A request
 * that was refused at its headers has its response, and is kept from the handler. No test sees that: this
 * version of the library does not call again once an answer is queued. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *mhd, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **context) {
        ServerExchange *x = *context;

        if (!x || x->gone)
                return MHD_NO;
        if (!x->begun)
                return exchange_begin(x, method);
        if (*upload_size > 0)
                return exchange_take_body(x, upload, upload_size);
        if (x->handled)
                return exchange_send(x);
        return x->response ? MHD_YES : exchange_handle(x);
}

static void on_completed(void *userdata, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode how) {
        ServerExchange *x = *context;

        if (!x)
                return;

        *context = NULL;
        x->gone = true;
        x->connection->exchange = NULL;
        server_connection_enter(x->connection, CONNECTION_IDLE);
        if (x->handled && !x->ended && x->x.on_gone)
                x->x.on_gone(&x->x, x->x.userdata);
        exchange_free(x);
}

static void server_report_not_accepted(const HttpServer *s, HttpRefusal why, const struct sockaddr *address) {
        char text[INET6_ADDRSTRLEN];

        client_address_format(address, text);
        if (s->limits.on_refused)
                s->limits.on_refused(why, text, s->userdata);
}

/* Called before the library takes a connection. At a limit of its own the library would not even listen, so
 * that limit is higher. */
static enum MHD_Result on_accepted(void *userdata, const struct sockaddr *address, socklen_t size) {
        HttpServer *s = userdata;
        struct in6_addr ip = client_address_ip(size > 0 ? address : NULL);
        ConnectionEntry *displaced;

        if (s->rates && !address_rates_take_connection(s->rates, &ip, loop_now(s->loop))) {
                server_report_not_accepted(s, HTTP_REFUSED_HANDSHAKES, size > 0 ? address : NULL);
                return MHD_NO;
        }
        if (!s->limits.displaces || s->connections.n_connections < s->limits.max_connections)
                return MHD_YES;
        displaced = s->connections.entries.size < s->limits.max_connections + CUT_MAX
                            ? connection_table_find_displaced(&s->connections, size > 0 ? address : NULL)
                            : NULL;
        if (displaced) {
                server_connection_displace(CONTAINER_OF(displaced, ServerConnection, entry));
                return MHD_YES;
        }
        server_report_not_accepted(s, HTTP_REFUSED_CONNECTION, size > 0 ? address : NULL);
        return MHD_NO;
}

static void on_connection(void *userdata, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        ServerConnection *c = *context;

        switch (code) {
        case MHD_CONNECTION_NOTIFY_STARTED:
                *context = server_connection_new(userdata, mhd);
                return;
        case MHD_CONNECTION_NOTIFY_CLOSED:
                if (c)
                        server_connection_free(c);
                return;
        }
}

/* -- the server --------------------------------------------------------------------------------------- */

static unsigned idle_timeout_sec(usec_t usec) {
        if (usec == USEC_INFINITY)
                return 0;
        return (unsigned) MIN(usec_add(usec, USEC_PER_SEC - 1) / USEC_PER_SEC, (usec_t) 24 * 3600);
}

/* The library closes the descriptor: when it stops, and when it fails to start. */
static int server_start_daemon(HttpServer *s, const HttpServerOptions *o, int fd) {
        const struct MHD_OptionItem plain[] = {
                { MHD_OPTION_LISTEN_SOCKET, fd, NULL },
                { MHD_OPTION_URI_LOG_CALLBACK, (intptr_t) on_request_line, s },
                { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t) on_completed, s },
                { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t) on_connection, s },
                { MHD_OPTION_CONNECTION_LIMIT,
                  (intptr_t) s->limits.max_connections + (s->limits.displaces ? (intptr_t) CUT_MAX + 1 : 0),
                  NULL },
                { MHD_OPTION_CONNECTION_TIMEOUT, idle_timeout_sec(s->limits.idle_timeout_usec), NULL },
                { MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
                { MHD_OPTION_END, 0, NULL },
        };
        const struct MHD_OptionItem tls[] = {
                { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *) TLS_PRIORITIES },
                { MHD_OPTION_HTTPS_MEM_CERT, 0, (void *) o->cert_pem },
                { MHD_OPTION_HTTPS_MEM_KEY, 0, (void *) o->key_pem },
                { o->client_ca_pem ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0,
                  (void *) o->client_ca_pem },
                { MHD_OPTION_END, 0, NULL },
        };
        unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;

        if (o->cert_pem)
                flags |= MHD_USE_TLS;
        s->daemon = MHD_start_daemon(flags, 0, on_accepted, s, on_request, s, MHD_OPTION_ARRAY, plain,
                                     o->cert_pem ? MHD_OPTION_ARRAY : MHD_OPTION_END, tls, MHD_OPTION_END);
        return s->daemon ? 0 : -EIO;
}

static int server_attach(HttpServer *s) {
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
        int r;

        if (!info || info->epoll_fd < 0)
                return -EOPNOTSUPP;
        r = sd_event_add_io(loop_sd_event(s->loop), &s->io, info->epoll_fd, EPOLLIN, on_io, s);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(s->io, "http-server");
        r = sd_event_add_defer(loop_sd_event(s->loop), &s->turn, on_turn, s);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(s->turn, "http-server-turn");
        return sd_event_source_set_enabled(s->turn, SD_EVENT_OFF);
}

int http_server_new(Loop *l, const HttpServerOptions *options, http_handler_t handler, void *userdata,
                    HttpServer **ret) {
        _cleanup_(http_server_freep) HttpServer *s = NULL;
        int fd = options->listen_fd, r;

        assert(l && loop_sd_event(l));
        assert(handler);
        assert(ret);
        assert(options->max_body_bytes > 0);
        assert(options->per_address.burst_bytes == 0 ||
               options->max_body_bytes <= options->per_address.burst_bytes / 2);
        if (!options->cert_pem != !options->key_pem || (options->client_ca_pem && !options->cert_pem))
                return -EINVAL;

        if (fd < 0)
                fd = options->address ? listen_tcp(options->address, options->port) : -EINVAL;
        if (fd < 0)
                return fd;

        s = new0(HttpServer, 1);
        r = s ? timer_new(l, "http-server", on_timer, s, &s->timer) : -ENOMEM;
        if (r >= 0)
                r = timer_new(l, "http-server-end", server_connections_on_end, s, &s->end_timer);
        if (r >= 0 && (options->per_address.burst_bytes > 0 || options->per_address.burst_connections > 0)) {
                s->rates = new0(AddressRates, 1);
                if (s->rates)
                        s->rates->limits = options->per_address;
                else
                        r = -ENOMEM;
        }
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        s->loop = l;
        s->handler = handler;
        s->userdata = userdata;
        s->limits = *options;
        if (s->limits.max_connections == 0)
                s->limits.max_connections = DEFAULT_MAX_CONNECTIONS;
        if (s->limits.idle_timeout_usec == 0)
                s->limits.idle_timeout_usec = DEFAULT_IDLE_TIMEOUT_USEC;
        s->port = listen_port(fd);
        s->listen_fd = fd;
        r = server_start_daemon(s, options, fd);
        if (r < 0)
                return r;
        r = server_attach(s);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(s);
        return 0;
}

HttpServer *http_server_free(HttpServer *s) {
        if (!s)
                return NULL;

        assert(!s->running);
        sd_event_source_disable_unref(s->io);
        sd_event_source_disable_unref(s->turn);
        if (s->daemon) {
                /* The library takes a suspended connection at its end for a bug. */
                LIST_FOREACH(x, &s->exchanges, ServerExchange, exchanges) {
                        x->gone = true;
                        server_exchange_resume(x);
                }
                MHD_stop_daemon(s->daemon);
        }
        assert(s->exchanges.size == 0 && s->waiting.size == 0 && s->connections.entries.size == 0 && s->connections.body_bytes == 0);
        timer_free(s->timer);
        timer_free(s->end_timer);
        free(s->rates);
        free(s);
        return NULL;
}

int http_server_dup_socket(const HttpServer *s) {
        int fd = s->listen_fd < 0 ? -EBADF : fcntl(s->listen_fd, F_DUPFD_CLOEXEC, 3);

        return fd < 0 && s->listen_fd >= 0 ? -errno : fd;
}

void http_server_retire(HttpServer *s) {
        MHD_socket fd = MHD_quiesce_daemon(s->daemon);

        if (fd >= 0)
                (void) close(fd);
        s->listen_fd = -EBADF;
}

size_t http_server_n_connections(const HttpServer *s) {
        return s->connections.entries.size;
}

size_t http_server_body_bytes(const HttpServer *s) {
        return s->connections.body_bytes;
}

unsigned http_server_max_requests_per_address(const HttpServer *s) {
        return s->limits.max_requests_per_address;
}

uint16_t http_server_port(const HttpServer *s) {
        return s->port;
}
