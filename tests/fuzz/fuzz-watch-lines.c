/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "fuzz.h"
#include "watch-lines.h"

static int on_line(const char *line, size_t size, void *userdata) {
        assert(size > 0 && !memchr(line, '\n', size));
        strbuf_add_n(userdata, line, size);
        strbuf_add_char(userdata, '\n');
        return 0;
}

/* The first byte says how large the pieces are; the lines are the same in one piece. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        WatchLines whole = { 0 }, cut = { 0 };
        StrBuf a = { 0 }, b = { 0 };
        const char *text = (const char *) data + 1;
        size_t step;

        if (size == 0)
                return 0;
        step = (size_t) data[0] + 1;
        size--;
        assert(watch_lines_feed(&whole, text, size, on_line, &a) == 0);
        for (size_t i = 0; i < size; i += step)
                assert(watch_lines_feed(&cut, text + i, MIN(step, size - i), on_line, &b) == 0);
        assert(streq(strbuf_str(&a), strbuf_str(&b)));
        assert(a.size == b.size);
        assert(whole.rest.size == cut.rest.size);

        watch_lines_done(&whole);
        watch_lines_done(&cut);
        strbuf_done(&a);
        strbuf_done(&b);
        return 0;
}
