/* SPDX-License-Identifier: Apache-2.0 */
#include "http-server.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

#include "alloc-util.h"
#include "client-identity.h"
#include "connection-table.h"
#include "file-util.h"
#include "list.h"
#include "listen-address.h"
#include "parse-util.h"
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
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Of the client's connection, through all its requests. */
typedef struct ServerConnection {
        HttpServer *server;
        ConnectionEntry entry;
        usec_t end_usec; /* when it is cut if it is in the same phase then; USEC_INFINITY: never */
        bool begun;      /* end_usec counts from the beginning of a request that is not complete */
        struct MHD_Connection *mhd;
        sd_event_source *socket; /* enabled while suspended (EPOLLRDHUP), between two requests (EPOLLIN) */
        char *identity;
        bool identity_known;
        struct ServerExchange *exchange;
        struct ServerExchange *suspended;
} ServerConnection;

typedef struct ServerExchange {
        HttpExchange x;
        HttpServer *server;
        ServerConnection *connection;
        ListNode exchanges;
        char *path, *query;
        HttpHeader *headers;
        StrBuf body;
        size_t announced, received; /* bytes of the body: by Content-Length (0: not said), and so far */
        unsigned refused;           /* status to answer with when the body has come; 0: not refused */
        bool begun;                 /* headers seen */
        bool handled, in_handler;
        bool ended;  /* by the handler */
        bool gone;   /* by the client, or for want of memory */
        bool queued; /* the answer is the library's */
        struct MHD_Response *response;
        unsigned status;
        StrBuf out; /* of a stream, from `out_sent` on */
        size_t out_sent;
        bool broken; /* the stream ends in the middle */
} ServerExchange;

struct HttpServer {
        Loop *loop;
        struct MHD_Daemon *daemon;
        sd_event_source *io;
        Timer *timer;
        http_handler_t handler;
        void *userdata;
        HttpServerOptions limits; /* without the texts */
        Timer *end_timer;
        uint16_t port;
        int listen_fd; /* the library's; -EBADF once it accepts none any more */
        List exchanges;
        ConnectionTable connections;
        bool running; /* inside the library */
        bool again; /* a connection was resumed, or one of too many has left: the library sees that only when
                       it runs */
};

/* -- driving the library ------------------------------------------------------------------------------ */

static void server_run(HttpServer *s) {
        MHD_UNSIGNED_LONG_LONG msec;

        s->again = false;
        s->running = true;
        (void) MHD_run(s->daemon);
        s->running = false;

        if (s->again)
                timer_arm_in(s->timer, 0);
        else if (MHD_get_timeout(s->daemon, &msec) == MHD_YES)
                timer_arm_in(s->timer, (usec_t) msec * USEC_PER_MSEC);
        else
                timer_disarm(s->timer);
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        server_run(userdata);
        return 0;
}

static void on_timer(Timer *timer, void *userdata) {
        server_run(userdata);
}

/* -- limits ------------------------------------------------------------------------------------------- */

static void server_report_refusal(const HttpServer *s, HttpRefusal why) {
        if (s->limits.on_refused)
                s->limits.on_refused(why, s->userdata);
}

static void exchange_drop_body(ServerExchange *x) {
        strbuf_done(&x->body);
        connection_table_reserve(&x->server->connections, &x->connection->entry, 0);
}

/* The library closes a connection that its client has left, and a connection that was shut down looks like
 * that. */
static void connection_cut(ServerConnection *c) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

        if (c->exchange && c->entry.phase == CONNECTION_RECEIVING) {
                c->exchange->gone = true;
                exchange_drop_body(c->exchange);
        }
        connection_table_set_phase(&c->server->connections, &c->entry, CONNECTION_CUT, 0);
        c->end_usec = USEC_INFINITY;
        if (info)
                (void) shutdown(info->connect_fd, SHUT_RDWR);
}

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata);

static int connection_watch(ServerConnection *c, uint32_t events) {
        const union MHD_ConnectionInfo *info;
        int r;

        if (!c->socket) {
                info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
                if (!info)
                        return -ENOTCONN;
                r = sd_event_add_io(loop_sd_event(c->server->loop), &c->socket, info->connect_fd, events,
                                    on_socket, c);
                if (r < 0)
                        return r;
                (void) sd_event_source_set_description(c->socket, "http-server-socket");
        }
        r = sd_event_source_set_io_events(c->socket, events);
        return r < 0 ? r : sd_event_source_set_enabled(c->socket, SD_EVENT_ONESHOT);
}

static void connection_unwatch(ServerConnection *c) {
        if (c->socket)
                (void) sd_event_source_set_enabled(c->socket, SD_EVENT_OFF);
}

static void connection_set_end(ServerConnection *c, usec_t in_usec) {
        c->end_usec = usec_add(loop_now(c->server->loop), in_usec);
        timer_arm_earlier(c->server->end_timer, c->end_usec);
}

/* Starts the time until a request is complete, unless it runs already: from the connection's beginning, with
 * its TLS handshake, from the first byte of a later request, or, where that was missed, from its request
 * line. */
static void connection_begin_request(ServerConnection *c) {
        if (c->begun)
                return;
        c->begun = true;
        connection_set_end(c, c->server->limits.request_timeout_usec);
}

static void connection_enter(ServerConnection *c, ConnectionPhase phase) {
        HttpServer *s = c->server;

        if (c->entry.phase == CONNECTION_CUT)
                return;
        connection_table_set_phase(&s->connections, &c->entry, phase, loop_now(s->loop));
        if (s->limits.request_timeout_usec == 0)
                return;
        connection_unwatch(c);
        if (phase == CONNECTION_RECEIVING) {
                connection_begin_request(c);
                return;
        }
        c->begun = false;
        c->end_usec = USEC_INFINITY;
        if (phase != CONNECTION_HANDLED)
                connection_set_end(c, s->limits.idle_timeout_usec);
        if (phase == CONNECTION_IDLE)
                (void) connection_watch(c, EPOLLIN);
}

static void on_end(Timer *timer, void *userdata) {
        HttpServer *s = userdata;
        usec_t now = loop_now(s->loop);

        LIST_FOREACH (e, &s->connections.entries, ConnectionEntry, entries) {
                ServerConnection *c = CONTAINER_OF(e, ServerConnection, entry);

                if (c->end_usec <= now) {
                        if (c->begun)
                                server_report_refusal(s, HTTP_REFUSED_SLOW);
                        connection_cut(c);
                } else if (c->end_usec != USEC_INFINITY)
                        timer_arm_earlier(s->end_timer, c->end_usec);
        }
}

static void connection_displace(ConnectionEntry *e) {
        ServerConnection *c = CONTAINER_OF(e, ServerConnection, entry);

        server_report_refusal(c->server, HTTP_REFUSED_DISPLACED);
        connection_cut(c);
}

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
                connection_displace(displaced);
        }
        connection_table_reserve(&s->connections, e, need);
        return true;
}

/* -- suspended connections ---------------------------------------------------------------------------- */

/* Without threads of its own, the library does not wake anybody up for this. */
static void exchange_resume(ServerExchange *x) {
        ServerConnection *c = x->connection;

        if (c->suspended != x)
                return;
        c->suspended = NULL;
        connection_unwatch(c);
        MHD_resume_connection(c->mhd);
        c->server->again = true;
        timer_arm_in(c->server->timer, 0);
}

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ServerConnection *c = userdata;

        if (c->suspended) {
                c->suspended->gone = true;
                exchange_resume(c->suspended);
        } else if (c->entry.phase == CONNECTION_IDLE)
                connection_begin_request(c);
        return 0;
}

/* Without the watch a client that leaves is noticed later: no reason to fail. */
static void exchange_suspend(ServerExchange *x) {
        MHD_suspend_connection(x->connection->mhd);
        x->connection->suspended = x;
        (void) connection_watch(x->connection, EPOLLRDHUP);
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
        exchange_resume(x);
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
        exchange_suspend(x);
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
        exchange_resume(x);
}

static void server_stream_data(HttpExchange *exchange, const void *data, size_t size) {
        ServerExchange *x = CONTAINER_OF(exchange, ServerExchange, x);

        assert(!x->ended);
        if (size == 0 || x->gone)
                return;
        strbuf_add_n(&x->out, data, size);
        exchange_resume(x);
}

static void server_stream_end(HttpExchange *exchange, bool clean) {
        ServerExchange *x = CONTAINER_OF(exchange, ServerExchange, x);

        assert(!x->ended);
        x->ended = true;
        x->broken = !clean;
        exchange_resume(x);
}

static const HttpExchangeOps exchange_ops = {
        .reply = server_reply,
        .stream_begin = server_stream_begin,
        .stream_data = server_stream_data,
        .stream_end = server_stream_end,
};

/* -- one request -------------------------------------------------------------------------------------- */

static ServerConnection *connection_of(struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

static void exchange_free(ServerExchange *x) {
        list_remove(&x->server->exchanges, &x->exchanges);
        exchange_drop_body(x);
        if (x->response)
                MHD_destroy_response(x->response);
        free(x->path);
        free(x->query);
        free(x->headers);
        strbuf_done(&x->out);
        free(x);
}

/* The URI as it came: the one handed to on_request() is decoded. */
static void *on_request_line(void *userdata, const char *uri, struct MHD_Connection *mhd) {
        HttpServer *s = userdata;
        ServerConnection *connection = connection_of(mhd);
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
        connection_enter(connection, CONNECTION_RECEIVING);
        return x;
}

static enum MHD_Result exchange_send(ServerExchange *x) {
        if (x->gone || !x->response)
                return MHD_NO;

        x->queued = true;
        connection_enter(x->connection, CONNECTION_ANSWERED);
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

/* Once per connection: checking a chain of certificates is dear. */
static int connection_identify(ServerConnection *c) {
        const union MHD_ConnectionInfo *info;
        int r;

        if (c->identity_known)
                return 0;

        info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        if (info && info->tls_session) {
                r = client_identity_verify(info->tls_session, &c->identity);
                if (r < 0)
                        return r;
        }
        c->identity_known = true;
        return 0;
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
                x->refused = MHD_HTTP_CONTENT_TOO_LARGE;
                *ret_text = refusal_text(x->refused);
                return x->announced - s->limits.max_body_bytes > DISCARD_MAX_BYTES ? x->refused : 0;
        }
        if (s->limits.max_requests_per_address > 0 &&
            x->connection->entry.address->n_requests > s->limits.max_requests_per_address) {
                server_report_refusal(s, HTTP_REFUSED_ADDRESS);
                *ret_text = "too many requests of this address are not answered yet\n";
                return MHD_HTTP_SERVICE_UNAVAILABLE;
        }
        if (x->announced > 0 && !exchange_reserve(x, x->announced)) {
                server_report_refusal(s, HTTP_REFUSED_BODIES);
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
        if (exchange_take_headers(x) < 0 || connection_identify(x->connection) < 0)
                return MHD_NO;
        x->x.client_identity = x->connection->identity;

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
        exchange_drop_body(x);
}

static enum MHD_Result exchange_take_body(ServerExchange *x, const char *data, size_t *size) {
        const HttpServerOptions *limits = &x->server->limits;
        size_t n = *size;

        *size = 0;
        if (x->queued)
                return MHD_YES;
        if (n > limits->max_body_bytes + DISCARD_MAX_BYTES - x->received)
                return MHD_NO;
        x->received += n;
        if (x->refused > 0)
                return MHD_YES;
        if (x->received > limits->max_body_bytes) {
                exchange_refuse_later(x, MHD_HTTP_CONTENT_TOO_LARGE);
                return MHD_YES;
        }
        if (!exchange_reserve(x, x->received)) {
                server_report_refusal(x->server, HTTP_REFUSED_BODIES);
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

        x->x.body = strbuf_str(&x->body);
        x->x.body_size = x->body.size;
        x->handled = true;
        x->in_handler = true;
        connection_enter(x->connection, CONNECTION_HANDLED);
        x->server->handler(&x->x, x->server->userdata);
        x->in_handler = false;
        if (x->server->limits.drop_bodies) {
                x->x.body = NULL;
                x->x.body_size = 0;
                exchange_drop_body(x);
        }

        if (x->response || x->gone)
                return exchange_send(x);
        exchange_suspend(x);
        return MHD_YES;
}

/* Called with the headers, with each piece of the body, at its end, and again after a suspension. */
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
        if (x->queued)
                return MHD_YES;
        return x->handled ? exchange_send(x) : exchange_handle(x);
}

static void on_completed(void *userdata, struct MHD_Connection *mhd, void **context,
                         enum MHD_RequestTerminationCode how) {
        ServerExchange *x = *context;

        if (!x)
                return;

        *context = NULL;
        x->gone = true;
        x->connection->exchange = NULL;
        if (x->connection->suspended == x)
                x->connection->suspended = NULL;
        connection_enter(x->connection, CONNECTION_IDLE);
        if (x->handled && !x->ended && x->x.on_gone)
                x->x.on_gone(&x->x, x->x.userdata);
        exchange_free(x);
}

/* -- one connection ----------------------------------------------------------------------------------- */

static ServerConnection *connection_new(HttpServer *s, struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        ServerConnection *c = new0(ServerConnection, 1);

        if (!c)
                return NULL;
        *c = (ServerConnection){ .server = s, .mhd = mhd, .end_usec = USEC_INFINITY };
        if (connection_table_add(&s->connections, &c->entry, info ? info->client_addr : NULL,
                                 loop_now(s->loop)) < 0)
                return mfree(c);
        if (s->limits.request_timeout_usec > 0)
                connection_begin_request(c);
        return c;
}

/* While there are as many as there may be, the library listens no more, and begins to do so again at its
 * next run: without one that would be never, if all leave together. */
static void connection_free(ServerConnection *c) {
        HttpServer *s = c->server;

        s->again |= s->connections.entries.size >= s->limits.max_connections;
        connection_table_remove(&s->connections, &c->entry);
        sd_event_source_disable_unref(c->socket);
        free(c->identity);
        free(c);
}

/* Called before the library takes a connection. At a limit of its own the library would not even listen, so
 * that limit is higher. */
static enum MHD_Result on_accepted(void *userdata, const struct sockaddr *address, socklen_t size) {
        HttpServer *s = userdata;
        ConnectionEntry *displaced;

        if (!s->limits.displaces || s->connections.n_connections < s->limits.max_connections)
                return MHD_YES;
        displaced = s->connections.entries.size < s->limits.max_connections + CUT_MAX
                            ? connection_table_find_displaced(&s->connections, size > 0 ? address : NULL)
                            : NULL;
        if (displaced) {
                connection_displace(displaced);
                return MHD_YES;
        }
        server_report_refusal(s, HTTP_REFUSED_CONNECTION);
        return MHD_NO;
}

static void on_connection(void *userdata, struct MHD_Connection *mhd, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        ServerConnection *c = *context;

        switch (code) {
        case MHD_CONNECTION_NOTIFY_STARTED:
                *context = connection_new(userdata, mhd);
                return;
        case MHD_CONNECTION_NOTIFY_CLOSED:
                if (c)
                        connection_free(c);
                *context = NULL;
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
        return 0;
}

int http_server_new(Loop *l, const HttpServerOptions *options, http_handler_t handler, void *userdata,
                    HttpServer **ret) {
        _cleanup_(http_server_freep) HttpServer *s = NULL;
        int fd = options->listen_fd, r;

        assert(l && loop_sd_event(l));
        assert(handler);
        assert(ret);
        assert(options->max_body_bytes > 0);
        if (!options->cert_pem != !options->key_pem || (options->client_ca_pem && !options->cert_pem))
                return -EINVAL;

        if (fd < 0)
                fd = options->address ? listen_tcp(options->address, options->port) : -EINVAL;
        if (fd < 0)
                return fd;

        s = new0(HttpServer, 1);
        r = s ? timer_new(l, "http-server", on_timer, s, &s->timer) : -ENOMEM;
        if (r >= 0)
                r = timer_new(l, "http-server-end", on_end, s, &s->end_timer);
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        s->loop = l;
        s->handler = handler;
        s->userdata = userdata;
        s->limits = *options;
        s->limits.address = s->limits.cert_pem = s->limits.key_pem = s->limits.client_ca_pem = NULL;
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
        if (s->daemon) {
                /* The library takes a suspended connection at its end for a bug. */
                LIST_FOREACH(x, &s->exchanges, ServerExchange, exchanges) {
                        x->gone = true;
                        exchange_resume(x);
                }
                MHD_stop_daemon(s->daemon);
        }
        assert(s->exchanges.size == 0 && s->connections.entries.size == 0 && s->connections.body_bytes == 0);
        timer_free(s->timer);
        timer_free(s->end_timer);
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
