/* SPDX-License-Identifier: Apache-2.0 */
#include "connection-table.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-util.h"

struct in6_addr client_address_ip(const struct sockaddr *address) {
        struct in6_addr ip = IN6ADDR_ANY_INIT;

        if (address && address->sa_family == AF_INET6)
                ip = ((const struct sockaddr_in6 *) address)->sin6_addr;
        else if (address && address->sa_family == AF_INET) {
                ip.s6_addr[10] = ip.s6_addr[11] = 0xff;
                memcpy(ip.s6_addr + 12, &((const struct sockaddr_in *) address)->sin_addr, 4);
        }
        return ip;
}

void client_address_format(const struct sockaddr *address, char ret[static INET6_ADDRSTRLEN]) {
        struct in6_addr ip = client_address_ip(address);

        if (IN6_IS_ADDR_UNSPECIFIED(&ip))
                strcpy(ret, "unix");
        else if (IN6_IS_ADDR_V4MAPPED(&ip))
                (void) inet_ntop(AF_INET, ip.s6_addr + 12, ret, INET6_ADDRSTRLEN);
        else
                (void) inet_ntop(AF_INET6, &ip, ret, INET6_ADDRSTRLEN);
}

static ClientAddress *table_find_address(const ConnectionTable *t, const struct in6_addr *ip) {
        LIST_FOREACH (a, &t->addresses, ClientAddress, addresses)
                if (memcmp(&a->ip, ip, sizeof(*ip)) == 0)
                        return a;
        return NULL;
}

int connection_table_add(ConnectionTable *t, ConnectionEntry *e, const struct sockaddr *address,
                         usec_t now_usec) {
        struct in6_addr ip = client_address_ip(address);
        ClientAddress *a = table_find_address(t, &ip);

        if (!a) {
                a = new0(ClientAddress, 1);
                if (!a)
                        return -ENOMEM;
                a->ip = ip;
                client_address_format(address, a->text);
                list_append(&t->addresses, &a->addresses);
        }
        *e = (ConnectionEntry) { .address = a, .since_usec = now_usec };
        list_append(&t->entries, &e->entries);
        a->n_entries++;
        a->n_connections++;
        t->n_connections++;
        return 0;
}

void connection_table_remove(ConnectionTable *t, ConnectionEntry *e) {
        ClientAddress *a = e->address;

        connection_table_set_phase(t, e, CONNECTION_CUT, 0);
        list_remove(&t->entries, &e->entries);
        if (--a->n_entries > 0)
                return;
        list_remove(&t->addresses, &a->addresses);
        free(a);
}

static bool phase_has_request(ConnectionPhase phase) {
        return phase == CONNECTION_RECEIVING || phase == CONNECTION_HANDLED || phase == CONNECTION_ANSWERED;
}

void connection_table_set_phase(ConnectionTable *t, ConnectionEntry *e, ConnectionPhase phase,
                                usec_t now_usec) {
        ClientAddress *a = e->address;

        if (e->phase == CONNECTION_CUT)
                return;
        a->n_requests -= phase_has_request(e->phase);
        a->n_requests += phase_has_request(phase);
        e->phase = phase;
        e->since_usec = now_usec;
        if (phase != CONNECTION_CUT)
                return;
        connection_table_reserve(t, e, 0);
        a->n_connections--;
        t->n_connections--;
}

void connection_table_reserve(ConnectionTable *t, ConnectionEntry *e, size_t bytes) {
        t->body_bytes += bytes - e->body_bytes;
        e->address->body_bytes += bytes - e->body_bytes;
        e->body_bytes = bytes;
}

/* a: NULL for any. */
static ConnectionEntry *oldest_of(const ConnectionTable *t, const ClientAddress *a, bool handled) {
        ConnectionEntry *oldest = NULL;

        LIST_FOREACH (e, &t->entries, ConnectionEntry, entries)
                if ((!a || e->address == a) && e->phase != CONNECTION_CUT &&
                    (e->phase == CONNECTION_HANDLED) == handled &&
                    (!oldest || e->since_usec < oldest->since_usec))
                        oldest = e;
        return oldest;
}

ConnectionEntry *connection_table_find_displaced(const ConnectionTable *t, const struct sockaddr *newcomer) {
        struct in6_addr ip = client_address_ip(newcomer);
        const ClientAddress *own = table_find_address(t, &ip), *most = own;
        ConnectionEntry *e;

        LIST_FOREACH (a, &t->addresses, ClientAddress, addresses)
                if (!most || a->n_connections > most->n_connections)
                        most = a;
        if (!most)
                return NULL;
        e = oldest_of(t, most, false);
        if (!e)
                e = oldest_of(t, NULL, false);
        return e || most == own ? e : oldest_of(t, most, true);
}

ConnectionEntry *connection_table_find_displaced_body(const ConnectionTable *t, const ConnectionEntry *e,
                                                      size_t bytes) {
        const ClientAddress *own = e->address, *most = own;
        ConnectionEntry *largest = NULL;

        LIST_FOREACH (a, &t->addresses, ClientAddress, addresses)
                if (a->body_bytes > most->body_bytes)
                        most = a;
        LIST_FOREACH (i, &t->entries, ConnectionEntry, entries)
                if (i->address == most && i != e && i->phase == CONNECTION_RECEIVING &&
                    (!largest || i->body_bytes > largest->body_bytes))
                        largest = i;
        if (!largest || largest->body_bytes == 0)
                return NULL;
        if (largest->body_bytes > bytes)
                return largest;
        return most != own && most->body_bytes - largest->body_bytes >=
                                       own->body_bytes - e->body_bytes + bytes
                       ? largest
                       : NULL;
}
