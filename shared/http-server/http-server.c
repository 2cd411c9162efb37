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
 * hang-up only).
 *
 * An exchange is made with the request line and freed when the library reports the request as completed,
 * whoever ended it; that is also where a handler that still held it learns that its client has gone.
 */

#define DEFAULT_MAX_CONNECTIONS 64
#define DEFAULT_IDLE_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define STREAM_BLOCK_BYTES 4096
/* A body that is too large is still read for so long, because a client that is cut off while it writes never
 * reads why. */
#define DISCARD_MAX_BYTES (1024u * 1024)
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* Of the client's connection, through all its requests. */
typedef struct ServerConnection {
        HttpServer *server;
        ListNode connections;
        usec_t end_usec; /* max_age_usec: when it is cut; USEC_INFINITY: never, or it has been */
        struct MHD_Connection *mhd;
        sd_event_source *hangup; /* enabled while suspended */
        char *identity;
        bool identity_known;
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
        bool begun, too_large; /* headers seen */
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
        void (*on_refused)(void *userdata);
        size_t max_body_bytes, max_connections;
        usec_t max_age_usec;
        Timer *age_timer;
        uint16_t port;
        int listen_fd; /* the library's; -EBADF once it accepts none any more */
        List exchanges;
        List connections; /* oldest first */
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

/* -- suspended connections ---------------------------------------------------------------------------- */

/* Without threads of its own, the library does not wake anybody up for this. */
static void exchange_resume(ServerExchange *x) {
        ServerConnection *c = x->connection;

        if (c->suspended != x)
                return;
        c->suspended = NULL;
        (void) sd_event_source_set_enabled(c->hangup, SD_EVENT_OFF);
        MHD_resume_connection(c->mhd);
        c->server->again = true;
        timer_arm_in(c->server->timer, 0);
}

static int on_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ServerConnection *c = userdata;

        if (c->suspended) {
                c->suspended->gone = true;
                exchange_resume(c->suspended);
        }
        return 0;
}

static int connection_watch_hangup(ServerConnection *c) {
        const union MHD_ConnectionInfo *info;
        int r;

        if (c->hangup)
                return sd_event_source_set_enabled(c->hangup, SD_EVENT_ON);

        info = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (!info)
                return -ENOTCONN;
        r = sd_event_add_io(loop_sd_event(c->server->loop), &c->hangup, info->connect_fd, EPOLLRDHUP,
                            on_hangup, c);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(c->hangup, "http-server-hangup");
        return 0;
}

/* Without the watch a client that leaves is noticed later: no reason to fail. */
static void exchange_suspend(ServerExchange *x) {
        MHD_suspend_connection(x->connection->mhd);
        x->connection->suspended = x;
        (void) connection_watch_hangup(x->connection);
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
        if (x->response)
                MHD_destroy_response(x->response);
        free(x->path);
        free(x->query);
        free(x->headers);
        strbuf_done(&x->body);
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
        return x;
}

static enum MHD_Result exchange_send(ServerExchange *x) {
        if (x->gone || !x->response)
                return MHD_NO;

        x->queued = true;
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

/* Headers are there, the body is not. */
static enum MHD_Result exchange_begin(ServerExchange *x, const char *method) {
        const char *length;
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
        x->too_large = n > x->server->max_body_bytes;
        if (x->too_large && n - x->server->max_body_bytes > DISCARD_MAX_BYTES)
                return exchange_refuse(x, MHD_HTTP_CONTENT_TOO_LARGE, "request body too large\n");
        return MHD_YES;
}

static enum MHD_Result exchange_take_body(ServerExchange *x, const char *data, size_t *size) {
        size_t n = *size, seen = x->body.size;

        *size = 0;
        if (x->queued)
                return MHD_YES;
        if (n > x->server->max_body_bytes + DISCARD_MAX_BYTES - seen)
                return MHD_NO;
        if (n > x->server->max_body_bytes - MIN(seen, x->server->max_body_bytes))
                x->too_large = true;
        strbuf_add_n(&x->body, data, n);
        return x->body.failed ? MHD_NO : MHD_YES;
}

static enum MHD_Result exchange_handle(ServerExchange *x) {
        if (x->too_large)
                return exchange_refuse(x, MHD_HTTP_CONTENT_TOO_LARGE, "request body too large\n");
        if (x->x.method < 0)
                return exchange_refuse(x, MHD_HTTP_NOT_IMPLEMENTED, "method not implemented\n");

        x->x.body = strbuf_str(&x->body);
        x->x.body_size = x->body.size;
        x->handled = true;
        x->in_handler = true;
        x->server->handler(&x->x, x->server->userdata);
        x->in_handler = false;

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
        if (x->connection->suspended == x)
                x->connection->suspended = NULL;
        if (x->handled && !x->ended && x->x.on_gone)
                x->x.on_gone(&x->x, x->x.userdata);
        exchange_free(x);
}

/* -- one connection ----------------------------------------------------------------------------------- */

/* The library closes what its client has left, and that is what this looks like. */
static void connection_cut(ServerConnection *c) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);

        c->end_usec = USEC_INFINITY;
        if (info)
                (void) shutdown(info->connect_fd, SHUT_RDWR);
}

static void on_age(Timer *timer, void *userdata) {
        HttpServer *s = userdata;
        usec_t now = loop_now(s->loop);

        LIST_FOREACH (c, &s->connections, ServerConnection, connections) {
                if (c->end_usec <= now)
                        connection_cut(c);
                else if (c->end_usec != USEC_INFINITY)
                        timer_arm_earlier(s->age_timer, c->end_usec);
        }
}

static ServerConnection *connection_new(HttpServer *s, struct MHD_Connection *mhd) {
        ServerConnection *c = new0(ServerConnection, 1);

        if (!c)
                return NULL;
        *c = (ServerConnection){ .server = s, .mhd = mhd, .end_usec = USEC_INFINITY };
        list_append(&s->connections, &c->connections);
        if (s->max_age_usec > 0) {
                c->end_usec = usec_add(loop_now(s->loop), s->max_age_usec);
                timer_arm_earlier(s->age_timer, c->end_usec);
        }
        return c;
}

/* While there are as many as there may be, the library listens no more, and begins to do so again at its
 * next run: without one that would be never, if all leave together. */
static void connection_free(ServerConnection *c) {
        HttpServer *s = c->server;

        s->again |= s->connections.size >= s->max_connections;
        list_remove(&c->server->connections, &c->connections);
        sd_event_source_disable_unref(c->hangup);
        free(c->identity);
        free(c);
}

/* Asked before the library takes it; at a limit of its own it would not even listen, and so has a higher one. */
static enum MHD_Result on_accepted(void *userdata, const struct sockaddr *address, socklen_t size) {
        HttpServer *s = userdata;

        if (!s->on_refused || s->connections.size < s->max_connections)
                return MHD_YES;
        s->on_refused(s->userdata);
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
        if (usec == 0)
                usec = DEFAULT_IDLE_TIMEOUT_USEC;
        return (unsigned) MIN(usec_add(usec, USEC_PER_SEC - 1) / USEC_PER_SEC, (usec_t) 24 * 3600);
}

/* The library closes the descriptor: when it stops, and when it fails to start. */
static int server_start_daemon(HttpServer *s, const HttpServerOptions *o, int fd) {
        const struct MHD_OptionItem plain[] = {
                { MHD_OPTION_LISTEN_SOCKET, fd, NULL },
                { MHD_OPTION_URI_LOG_CALLBACK, (intptr_t) on_request_line, s },
                { MHD_OPTION_NOTIFY_COMPLETED, (intptr_t) on_completed, s },
                { MHD_OPTION_NOTIFY_CONNECTION, (intptr_t) on_connection, s },
                { MHD_OPTION_CONNECTION_LIMIT, (intptr_t) s->max_connections + !!s->on_refused, NULL },
                { MHD_OPTION_PER_IP_CONNECTION_LIMIT, o->max_per_address, NULL },
                { MHD_OPTION_CONNECTION_TIMEOUT, idle_timeout_sec(o->idle_timeout_usec), NULL },
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
                r = timer_new(l, "http-server-age", on_age, s, &s->age_timer);
        if (r < 0) {
                (void) close(fd);
                return r;
        }
        s->loop = l;
        s->handler = handler;
        s->userdata = userdata;
        s->max_body_bytes = options->max_body_bytes;
        s->max_connections =
                options->max_connections > 0 ? options->max_connections : DEFAULT_MAX_CONNECTIONS;
        s->max_age_usec = options->max_age_usec;
        s->on_refused = options->on_refused;
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
        assert(s->exchanges.size == 0 && s->connections.size == 0);
        timer_free(s->timer);
        timer_free(s->age_timer);
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
        return s->connections.size;
}

uint16_t http_server_port(const HttpServer *s) {
        return s->port;
}
