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
 *
 * A probe is one short request on a connection of its own. Loopback and unix sockets have no limit per
 * address: there everybody, the kubelet included, comes from the same one.
 */

#include "http-server.h"

typedef enum HttpFace { HTTP_FACE_METRICS, HTTP_FACE_HEALTH, _HTTP_FACE_MAX } HttpFace;

/* listen: of listen-address.h, at default_address if it names none, or "unix:/PATH". 0; -EINVAL: it is no
 * such text; -ENOMEM; or as http_server_new(). */
int http_face_new(Loop *l, HttpFace face, const char *listen, const char *default_address,
                  http_handler_t handler, void *userdata, HttpServer **ret);
