/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * http-face.c: where a daemon is looked at. Metrics and health are two servers on two sockets: whoever can
 * reach the metrics can hold every connection there, and a probe that finds none would have the daemon
 * killed.
 *
 *               connections    of one address    idle for    lives at most
 *      metrics      16                4             60 s           -
 *      health       32                8              5 s          10 s
 *      webhook     512                -            100 s           -
 *
 * The API server asks the webhook over HTTP/1.1, may take a connection for each request, keeps those that are idle for 90 s,
 * and all of them come from one address. It waits 3 s for an answer: a connection beyond the 512 is closed at once,
 * so that the failurePolicy decides without that wait. Beyond the other two limits a client waits.
 *
 * A probe is one short request on a connection of its own. Loopback and unix sockets have no limit per
 * address: there everybody, the kubelet included, comes from the same one.
 */

#include "http-server.h"

typedef enum HttpFace { HTTP_FACE_METRICS, HTTP_FACE_HEALTH, HTTP_FACE_WEBHOOK, _HTTP_FACE_MAX } HttpFace;

/* listen: of listen-address.h, at default_address if it names none, or "unix:/PATH". 0; -EINVAL: it is no
 * such text; -ENOMEM; or as http_server_new(). */
/* What a face shows over HTTPS: PEM texts. client_ca: clients are asked for a certificate of this CA, and their exchanges say
 * who they are; NULL: they are not. on_refused: as in HttpServerOptions. */
typedef struct HttpFaceTls {
        const char *certificate, *key, *client_ca;
        void (*on_refused)(void *userdata);
} HttpFaceTls;

int http_face_new_tls(Loop *l, HttpFace face, const char *listen, const char *default_address, const HttpFaceTls *tls,
                      http_handler_t handler, void *userdata, HttpServer **ret);
/* The same socket with another certificate: old is retired, and is to be freed when it has no connection left. Nothing has
 * changed where this fails. */
int http_face_succeed(Loop *l, HttpFace face, HttpServer *old, const HttpFaceTls *tls, http_handler_t handler, void *userdata,
                      HttpServer **ret);
int http_face_new(Loop *l, HttpFace face, const char *listen, const char *default_address,
                  http_handler_t handler, void *userdata, HttpServer **ret);
