/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * server-connection.c: one client's connection to an HttpServer, private to http-server.c: its phase, its
 * deadline, its socket while the library does not look at it, and the name in its certificate.
 */

#include <microhttpd.h>
#include <systemd/sd-event.h>

#include "connection-table.h"
#include "http-server.h"
#include "list.h"
#include "string-util.h"

/* A client's connection, through all its requests. */
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

/* A complete request and the turn in which the handler gets it: HttpServerOptions.max_turn_bytes. */
typedef enum ExchangeTurn {
        EXCHANGE_TURN_NONE,  /* the request has not asked for a turn */
        EXCHANGE_TURN_WAITS, /* the exchange is in HttpServer.waiting, and suspended unless its client has gone */
        EXCHANGE_TURN_TAKEN,
} ExchangeTurn;

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
        bool rated;                 /* per_address has admitted its body */
        ExchangeTurn turn;
        ListNode waiting;
        bool handled;
        bool ended;  /* by the handler */
        bool gone;   /* by the client, or for want of memory */
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
        HttpServerOptions limits; /* its texts are the caller's, and used no more */
        Timer *end_timer;
        uint16_t port;
        int listen_fd; /* the library's; -EBADF once it accepts none any more */
        List exchanges;
        ConnectionTable connections;
        AddressRates *rates;   /* NULL: no limits */
        List waiting;          /* exchanges that wait for a turn, oldest first */
        size_t turn_bytes;     /* of bodies that the handler gets in this turn */
        sd_event_source *turn; /* enabled while exchanges wait for the next turn */
        bool running; /* inside the library */
        bool again; /* a connection was resumed, or one of too many has left: the library sees that only when
                       it runs */
};

/* Reports that a limit has refused the client. */
void server_connection_report_refusal(const ServerConnection *c, HttpRefusal why);

/* Returns NULL on ENOMEM. */
ServerConnection *server_connection_new(HttpServer *s, struct MHD_Connection *mhd);
void server_connection_free(ServerConnection *c);
ServerConnection *server_connection_of(struct MHD_Connection *mhd); /* NULL: it has none for want of memory */
/* Verifies the client's certificate, once per connection, because a chain of certificates takes long. 0 or
 * -ENOMEM. */
int server_connection_identify(ServerConnection *c);
/* Sets the phase, and the deadline and the watch of the socket that belong to the phase. */
void server_connection_enter(ServerConnection *c, ConnectionPhase phase);
/* Cuts the connection for another one, and reports that. */
void server_connection_displace(ServerConnection *c);
/* HttpServer.end_timer: cuts the connections whose deadline has passed. userdata: the HttpServer. */
void server_connections_on_end(Timer *timer, void *userdata);

/* Frees the body, and gives its bytes back to the table of connections. */
void server_exchange_drop_body(ServerExchange *x);
/* The library does not look at a suspended connection. A client that leaves meanwhile resumes the exchange,
 * which is gone then. */
void server_exchange_suspend(ServerExchange *x);
void server_exchange_resume(ServerExchange *x); /* does nothing if it is not suspended */
