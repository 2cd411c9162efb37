/* SPDX-License-Identifier: Apache-2.0 */
#include "watch-lines.h"

static int tell(const char *line, size_t size, watch_line_t on_line, void *userdata) {
        if (size > 0 && line[size - 1] == '\r')
                size--;
        return size > 0 ? on_line(line, size, userdata) : 0;
}

static int keep(WatchLines *w, const char *data, size_t size) {
        if (size > WATCH_LINE_BYTES_MAX - w->rest.size)
                return -EMSGSIZE;
        strbuf_add_n(&w->rest, data, size);
        return w->rest.failed ? -ENOMEM : 0;
}

int watch_lines_feed(WatchLines *w, const char *data, size_t size, watch_line_t on_line, void *userdata) {
        int r;

        assert(w);
        assert(on_line);

        while (size > 0) {
                const char *newline = memchr(data, '\n', size);
                size_t n = newline ? (size_t) (newline - data) : size;

                if (n > WATCH_LINE_BYTES_MAX)
                        return -EMSGSIZE;
                if (!newline || w->rest.size > 0) {
                        r = keep(w, data, n);
                        if (r < 0 || !newline)
                                return r;
                        r = tell(w->rest.data, w->rest.size, on_line, userdata);
                        if (w->rest.allocated > WATCH_REST_KEPT_BYTES_MAX)
                                strbuf_done(&w->rest);
                        else
                                strbuf_truncate(&w->rest, 0);
                } else
                        r = tell(data, n, on_line, userdata);
                if (r < 0)
                        return r;
                data += n + 1;
                size -= n + 1;
        }
        return 0;
}

void watch_lines_done(WatchLines *w) {
        strbuf_done(&w->rest);
}
