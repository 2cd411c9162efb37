/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "fuzz-draw.h"
#include "watch-lines.h"

static int on_line(const char *line, size_t size, void *userdata) {
        assert(size > 0 && !memchr(line, '\n', size));
        strbuf_add_n(userdata, line, size);
        strbuf_add_char(userdata, '\n');
        return 0;
}

/* The first byte says how many more draw where the pieces end; the lines are the same in one piece. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        WatchLines whole = { 0 }, cut = { 0 };
        StrBuf a = { 0 }, b = { 0 };
        Draw d = { data, size };
        size_t n_cuts = draw_byte(&d), piece;
        const char *text;

        n_cuts = MIN(n_cuts, d.size);
        text = (const char *) d.data + n_cuts;
        size = d.size - n_cuts;
        d.size = n_cuts;
        if (size == 0)
                return 0;
        assert(watch_lines_feed(&whole, text, size, on_line, &a) == 0);
        for (size_t i = 0; i < size; i += piece) {
                piece = n_cuts > 0 ? draw_piece(&d, size - i) : 1;
                assert(watch_lines_feed(&cut, text + i, piece, on_line, &b) == 0);
        }
        assert(streq(strbuf_str(&a), strbuf_str(&b)));
        assert(a.size == b.size);
        assert(whole.rest.size == cut.rest.size);

        watch_lines_done(&whole);
        watch_lines_done(&cut);
        strbuf_done(&a);
        strbuf_done(&b);
        return 0;
}
