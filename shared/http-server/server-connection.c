/* SPDX-License-Identifier: Apache-2.0 */
#include "server-connection.h"

#include <microhttpd.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "alloc-util.h"
#include "client-identity.h"

void server_connection_report_refusal(const ServerConnection *c, HttpRefusal why) {
        const HttpServer *s = c->server;

        if (s->limits.on_refused)
                s->limits.on_refused(why, c->entry.address->text, s->userdata);
}

void server_exchange_drop_body(ServerExchange *x) {
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
                server_exchange_drop_body(c->exchange);
        }
        connection_table_set_phase(&c->server->connections, &c->entry, CONNECTION_CUT, 0);
        c->end_usec = USEC_INFINITY;
        if (info)
                (void) shutdown(info->connect_fd, SHUT_RDWR);
}

/* -- deadlines ---------------------------------------------------------------------------------------- */

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

/* -- the socket --------------------------------------------------------------------------------------- */

/* Without threads of its own, the library does not wake anybody up for this. */
void server_exchange_resume(ServerExchange *x) {
        ServerConnection *c = x->connection;

        if (c->suspended != x)
                return;
        c->suspended = NULL;
        MHD_resume_connection(c->mhd);
        c->server->again = true;
        timer_arm_in(c->server->timer, 0);
}

/* A watch stays on when its phase ends. When it fires in another phase, it changes nothing. */
static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ServerConnection *c = userdata;

        if (c->suspended) {
                c->suspended->gone = true;
                server_exchange_resume(c->suspended);
        } else if (c->entry.phase == CONNECTION_IDLE)
                connection_begin_request(c);
        return 0;
}

/* Watches the socket for the first of these events from now on. The loop may still have an event to dispatch
 * whose bytes the library has read already: disabling the source drops that event. */
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
        (void) sd_event_source_set_enabled(c->socket, SD_EVENT_OFF);
        r = sd_event_source_set_io_events(c->socket, events);
        return r < 0 ? r : sd_event_source_set_enabled(c->socket, SD_EVENT_ONESHOT);
}

/* Without the watch a client that leaves is noticed later: no reason to fail. */
void server_exchange_suspend(ServerExchange *x) {
        MHD_suspend_connection(x->connection->mhd);
        x->connection->suspended = x;
        (void) connection_watch(x->connection, EPOLLRDHUP);
}

/* -- phases ------------------------------------------------------------------------------------------- */

void server_connection_enter(ServerConnection *c, ConnectionPhase phase) {
        HttpServer *s = c->server;

        if (c->entry.phase == CONNECTION_CUT)
                return;
        connection_table_set_phase(&s->connections, &c->entry, phase, loop_now(s->loop));
        if (s->limits.request_timeout_usec == 0)
                return;
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

void server_connections_on_end(Timer *timer, void *userdata) {
        HttpServer *s = userdata;
        usec_t now = loop_now(s->loop);

        LIST_FOREACH (e, &s->connections.entries, ConnectionEntry, entries) {
                ServerConnection *c = CONTAINER_OF(e, ServerConnection, entry);

                if (c->end_usec <= now) {
                        if (c->begun)
                                server_connection_report_refusal(c, HTTP_REFUSED_SLOW);
                        connection_cut(c);
                } else if (c->end_usec != USEC_INFINITY)
                        timer_arm_earlier(s->end_timer, c->end_usec);
        }
}

void server_connection_displace(ServerConnection *c) {
        server_connection_report_refusal(c, HTTP_REFUSED_DISPLACED);
        connection_cut(c);
}

/* -- life --------------------------------------------------------------------------------------------- */

int server_connection_identify(ServerConnection *c) {
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

ServerConnection *server_connection_of(struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return info ? info->socket_context : NULL;
}

ServerConnection *server_connection_new(HttpServer *s, struct MHD_Connection *mhd) {
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
void server_connection_free(ServerConnection *c) {
        HttpServer *s = c->server;

        s->again |= s->connections.entries.size >= s->limits.max_connections;
        connection_table_remove(&s->connections, &c->entry);
        sd_event_source_disable_unref(c->socket);
        free(c->identity);
        free(c);
}
