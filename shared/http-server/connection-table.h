/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The connections of one server, grouped by the addresses of their clients, and which of them gives way to a
 * new one. Pure: the server cuts connections, this table only chooses.
 *
 * A place is taken from the address that has most, so N addresses that take all they can leave 1/(N + 1) of
 * the places to each further address. Clients behind one address cannot be told apart; among them the
 * connection that has waited longest for its client gives way. An API server needs its connection for
 * milliseconds until its request is complete, so an attacker behind the same address has to open as many
 * connections as there are places within these milliseconds.
 */

#include <netinet/in.h>

#include "list.h"
#include "time-util.h"

/* The edges: IDLE > RECEIVING > HANDLED > ANSWERED > IDLE; RECEIVING > ANSWERED if the server refuses the
 * request; any > CUT. */
typedef enum ConnectionPhase {
        CONNECTION_IDLE,      /* no request line was read: the connection is new, or between two requests */
        CONNECTION_RECEIVING, /* a request that is not complete */
        CONNECTION_HANDLED,   /* the handler has the request */
        CONNECTION_ANSWERED,  /* the answer is being sent */
        CONNECTION_CUT,       /* shut down; it has no place any more, and is about to be removed */
} ConnectionPhase;

typedef struct ClientAddress {
        ListNode addresses;
        struct in6_addr ip; /* IPv4 as ::ffff:a.b.c.d; clients of unix sockets share :: */
        char text[INET6_ADDRSTRLEN];
        size_t n_entries;
        size_t n_connections; /* without those that were cut */
        size_t n_requests;    /* RECEIVING to ANSWERED */
        size_t body_bytes;
} ClientAddress;

typedef struct ConnectionEntry {
        ListNode entries;
        ClientAddress *address;
        ConnectionPhase phase;
        usec_t since_usec; /* when it came into this phase */
        size_t body_bytes; /* reserved for the body of its request */
} ConnectionEntry;

typedef struct ConnectionTable {
        List entries; /* oldest connection first */
        List addresses;
        size_t n_connections, body_bytes; /* as in ClientAddress, of all */
} ConnectionTable;

/* Returns ClientAddress.ip. address: NULL for a unix socket. */
struct in6_addr client_address_ip(const struct sockaddr *address);
/* Writes the address as a text: "192.0.2.1", "2001:db8::1", "unix". address: NULL for a unix socket. */
void client_address_format(const struct sockaddr *address, char ret[static INET6_ADDRSTRLEN]);

/* address: NULL for a unix socket. 0 or -ENOMEM. The entry is the caller's, and is removed before it is
 * freed. */
int connection_table_add(ConnectionTable *t, ConnectionEntry *e, const struct sockaddr *address,
                         usec_t now_usec);
void connection_table_remove(ConnectionTable *t, ConnectionEntry *e);
/* CUT is final, and gives back the bytes. */
void connection_table_set_phase(ConnectionTable *t, ConnectionEntry *e, ConnectionPhase phase,
                                usec_t now_usec);
void connection_table_reserve(ConnectionTable *t, ConnectionEntry *e, size_t bytes); /* altogether */

/* Returns the connection that is to be cut for a new one of that address. Connections whose handler is at
 * work are the last choice, behind those of all addresses, and none of them gives way to another connection
 * of its own address. NULL: none. */
ConnectionEntry *connection_table_find_displaced(const ConnectionTable *t, const struct sockaddr *newcomer);
/* Returns the connection that is to be cut so that e may reserve so many bytes altogether: the largest
 * incomplete body of the address that has most bytes, if it is larger than that, or if its address keeps as
 * much as e's has then. NULL: none. */
ConnectionEntry *connection_table_find_displaced_body(const ConnectionTable *t, const ConnectionEntry *e,
                                                      size_t bytes);
