/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The same as watch-lines.h for a watch in protobuf: each event follows its size in four bytes, big-endian
 * (apimachinery: pkg/util/framer). Private to kube/. */

#include "watch-lines.h"

typedef struct WatchFrames {
        StrBuf rest; /* of a frame that has begun, its size included */
} WatchFrames;

/* on_frame gets what follows the size. -EMSGSIZE for a frame above WATCH_LINE_BYTES_MAX, -ENOMEM, or what
 * on_frame returned. */
int watch_frames_feed(WatchFrames *w, const char *data, size_t size, watch_line_t on_frame, void *userdata);
void watch_frames_done(WatchFrames *w);
