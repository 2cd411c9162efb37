/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * http-face.c: the servers of a daemon, each with its limits. Metrics and health are two servers on two
 * sockets: clients of the metrics may take every connection there, and a probe that found none would have
 * the daemon killed.
 *
 *               connections    idle for    a request is complete within    unanswered, per address
 *      metrics      32            60 s                 5 s                            -
 *      health       32             5 s                 5 s                            -
 *      webhook     512           100 s                 5 s                          256
 *
 * A connection beyond the limit displaces another (connection-table.h): first of the address that has most,
 * there the one that has waited longest for its client. The server accepts ten connections at most before it
 * reads from those that it has, so a probe, whose request comes right behind its connection, is answered
 * before 32 later ones displace it. These things remain:
 *
 *  - Clients at N addresses that open connections as fast as they can leave 1/(N + 1) of the connections to
 *    each further address. One connection is enough for a probe or a scraper. The webhook's other clients
 *    are the API servers, one to five addresses, or one address for all of them behind a NAT or
 *    konnectivity: 50 hostile pods leave an API server 10 reviews at once, and failurePolicy decides about
 *    the others. A client that can give itself more addresses counts as that many.
 *  - Hostile clients that come from the address of an API server (pods behind the same NAT, processes of its
 *    host) are told apart from it by the slowness of their requests alone, and share its 256 requests,
 *    its 16 MiB and its 200 new connections a second.
 *  - Loopback and unix sockets are one address for everybody: there only slowness and the order of arrival
 *    decide. The limit of 256 requests does not hold there, nor do the rates of an address.
 *  - Reviews and TLS handshakes cost the webhook processor time, about 20 ms for each MiB and a millisecond
 *    for each handshake. One address gets 16 MiB and 200 new connections a second (address-rates.h): a third
 *    and a fifth of a processor. There is no limit of all addresses together: without ClientCAFile=
 *    nothing tells a hostile address from that of an API server that has just started, so such a limit
 *    would keep the API server out as well. A NetworkPolicy keeps pods from connecting. With ClientCAFile= a
 *    request without a certificate ends at its headers.
 *
 * The API server asks the webhook over HTTP/1.1, may take a connection for each request, and keeps those
 * that are idle for 90 s. It waits 3 s for an answer: what the webhook refuses is refused at once, so that
 * the failurePolicy decides without that wait. All bodies that the webhook receives at one time take 32 MiB
 * at most (max_bodies_bytes); a review of a Node has some 10 KiB. The handler gets 1 MiB of them, or one larger
 * body, before the loop turns to its other work (max_turn_bytes). A server that was succeeded by another one
 * has limits of its own until its connections have ended.
 */

#include "http-server.h"

typedef enum HttpFace { HTTP_FACE_METRICS, HTTP_FACE_HEALTH, HTTP_FACE_WEBHOOK, _HTTP_FACE_MAX } HttpFace;

/* Certificate, key and CA (PEM) of an HTTPS server. Borrowed. client_ca: the server asks clients for a
 * certificate of this CA, see HttpExchange.client_identity; NULL: it asks for none. on_headers,
 * on_refused: as in HttpServerOptions. */
typedef struct HttpFaceTls {
        const char *certificate, *key, *client_ca;
        http_headers_fn on_headers;
        http_refused_fn on_refused;
} HttpFaceTls;

/* Starts a server on the socket of old, with another certificate. old is retired: the caller frees it when
 * it has no connection left. On failure nothing has changed. */
int http_face_succeed(Loop *l, HttpFace face, HttpServer *old, const HttpFaceTls *tls,
                      http_handler_t handler, void *userdata, HttpServer **ret);
/* Start a server. listen: a text of listen-address.h, at default_address if it names no address, or
 * "unix:/PATH". 0; -EINVAL: listen is no such text; -ENOMEM; or as http_server_new(). */
int http_face_new_tls(Loop *l, HttpFace face, const char *listen, const char *default_address,
                      const HttpFaceTls *tls, http_handler_t handler, void *userdata, HttpServer **ret);
int http_face_new(Loop *l, HttpFace face, const char *listen, const char *default_address,
                  http_handler_t handler, void *userdata, HttpServer **ret);
