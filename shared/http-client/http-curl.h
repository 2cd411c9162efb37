/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HttpTransport on libcurl's multi interface in the loop's sd-event. Traps it deals with: reference list in http-curl.c. */

#include "http-transport.h"

typedef struct HttpCurlOptions {
        const char *user_agent;
        unsigned max_connections_per_host; /* of each lane; 0: 4 for bulk, 2 else */
} HttpCurlOptions;

typedef struct Log Log;

int http_curl_new(Loop *l, Log *log, const HttpCurlOptions *options, HttpTransport **ret);
