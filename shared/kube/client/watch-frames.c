/* SPDX-License-Identifier: Apache-2.0 */
#include "watch-frames.h"

#include <endian.h>

#define SIZE_BYTES sizeof(uint32_t)

/* Bytes of the frame that begins at p, its size included, as far as `have` bytes tell: the size itself is
 * the first thing to be had. */
static int frame_bytes(const char *p, size_t have, size_t *ret) {
        uint32_t size;

        *ret = SIZE_BYTES;
        if (have < SIZE_BYTES)
                return 0;
        memcpy(&size, p, sizeof(size));
        size = be32toh(size);
        if (size > WATCH_LINE_BYTES_MAX)
                return -EMSGSIZE;
        *ret += size;
        return 0;
}

/* Takes from the piece what the frame that has begun still needs. */
static int keep(WatchFrames *w, const char **data, size_t *size, size_t wanted) {
        size_t n = MIN(wanted - w->rest.size, *size);

        strbuf_add_n(&w->rest, *data, n);
        *data += n;
        *size -= n;
        return w->rest.failed ? -ENOMEM : 0;
}

static int tell_kept(WatchFrames *w, watch_line_t on_frame, void *userdata) {
        int r = on_frame(w->rest.data + SIZE_BYTES, w->rest.size - SIZE_BYTES, userdata);

        if (w->rest.allocated > WATCH_REST_KEPT_BYTES_MAX)
                strbuf_done(&w->rest);
        else
                strbuf_truncate(&w->rest, 0);
        return r;
}

int watch_frames_feed(WatchFrames *w, const char *data, size_t size, watch_line_t on_frame, void *userdata) {
        size_t n;
        int r;

        assert(w);
        assert(on_frame);

        while (size > 0) {
                bool begun = w->rest.size > 0;

                r = frame_bytes(begun ? w->rest.data : data, begun ? w->rest.size : size, &n);
                if (r < 0)
                        return r;
                if (!begun && size >= SIZE_BYTES && size >= n) {
                        r = on_frame(data + SIZE_BYTES, n - SIZE_BYTES, userdata);
                        data += n;
                        size -= n;
                } else {
                        r = keep(w, &data, &size, n);
                        if (r >= 0)
                                r = frame_bytes(w->rest.data, w->rest.size, &n);
                        if (r >= 0 && w->rest.size >= SIZE_BYTES && w->rest.size == n)
                                r = tell_kept(w, on_frame, userdata);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

void watch_frames_done(WatchFrames *w) {
        strbuf_done(&w->rest);
}
