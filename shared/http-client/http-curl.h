/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HttpTransport on libcurl's multi interface in the loop's sd-event. The traps it deals with are listed in
 * http-curl.c. */

#include "http-transport.h"

typedef struct HttpCurlOptions {
        const char *user_agent;
        /* Of each lane; 0: 4 for bulk, 2 for urgent. Watches have no limit: over HTTP/1.1 each holds one. */
        unsigned max_connections_per_host;
        /* Of the bulk lane, on one HTTP/2 connection; 0: 100. Whenever a connection can be read, libcurl
         * tries each call that waits there, by a system call each: 100 under way cost a third less CPU on
         * four connections or more, and 50 kB for each of these. */
        unsigned max_bulk_streams;
        /* Keeps TLS buffers between two reads: 33 kB a connection, for a tenth of the CPU of a busy one. */
        bool keep_tls_buffers;
        /* Coalesced watches: a connection that brings something more than once in so long, again and again, is
         * read so often. It wakes the process up no more than that, and most of what a small event costs is
         * to wake up, with cold caches. The first ten readings are for nothing, and what is large does not
         * wait. At most a minute; 0: they are like all others, and share their connections. */
        usec_t rest_usec;
} HttpCurlOptions;

typedef struct Log Log;

int http_curl_new(Loop *l, Log *log, const HttpCurlOptions *options, HttpTransport **ret);
