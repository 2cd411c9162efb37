/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch stream cut into its lines, whatever pieces the network hands over. Private to kube/. */

#include "string-util.h"

#define WATCH_LINE_BYTES_MAX (8u * 1024 * 1024)
/* A line may be large once; what it needed is not kept for the hours that follow. */
#define WATCH_REST_KEPT_BYTES_MAX (64u * 1024)

typedef struct WatchLines {
        StrBuf rest; /* of a line that has begun */
} WatchLines;

/* Without the newline, not NUL-terminated; borrowed. Returning < 0 stops. */
typedef int (*watch_line_t)(const char *line, size_t size, void *userdata);

/* -EMSGSIZE for a line above the limit, -ENOMEM, or what on_line returned. Empty lines are passed over. */
int watch_lines_feed(WatchLines *w, const char *data, size_t size, watch_line_t on_line, void *userdata);
void watch_lines_done(WatchLines *w);
