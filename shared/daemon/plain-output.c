/* SPDX-License-Identifier: Apache-2.0 */
#include "plain-output.h"

#include <errno.h>
#include <unistd.h>

#include "file-util.h"

/* A snapshot of a cluster may have 100 MB. Output is filtered in pieces, so that no second copy is made. */
#define PIECE_BYTES (64u * 1024u)

/* Number of bytes at the beginning of s that are ASCII and stand for themselves. */
static size_t ascii_size(const char *s, size_t size) {
        size_t n = 0;

        while (n < size && ((s[n] >= 0x20 && s[n] < 0x7f) || s[n] == '\n' || s[n] == '\t'))
                n++;
        return n;
}

static void add_character(StrBuf *b, const char *s, size_t n, PlainOutputForm form) {
        if (n > 0 && !utf8_is_control(s, n))
                strbuf_add_n(b, s, n);
        else if (n > 0 && form == PLAIN_OUTPUT_JSON)
                strbuf_addf(b, "\\u%04x", utf8_code_point(s, n));
        else
                strbuf_add_char(b, '?');
}

/* Returns true if s may be the beginning of a character whose other bytes come with the next write. */
static bool is_incomplete(const char *s, size_t size) {
        unsigned char c = (unsigned char) *s;
        size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        return size < n;
}

/* Filters and writes s. An incomplete character at its end is kept for the next call, unless is_end. */
static int write_plain(PlainOutput *o, const char *s, size_t size, bool is_end) {
        _cleanup_strbuf_ StrBuf in = {}, out = {};
        size_t i = 0;

        strbuf_add_n(&in, o->rest, o->n_rest);
        strbuf_add_n(&in, s, size);
        if (in.failed)
                return -ENOMEM;
        o->n_rest = 0;
        while (i < in.size) {
                size_t n = ascii_size(in.data + i, in.size - i);

                strbuf_add_n(&out, in.data + i, n);
                i += n;
                if (i == in.size)
                        break;
                n = utf8_sequence_size(in.data + i, in.size - i);
                if (n == 0 && !is_end && is_incomplete(in.data + i, in.size - i)) {
                        o->n_rest = in.size - i;
                        memcpy(o->rest, in.data + i, o->n_rest);
                        break;
                }
                add_character(&out, in.data + i, n, o->form);
                i += MAX(n, (size_t) 1);
        }
        return out.failed ? -ENOMEM : write_all(o->fd, strbuf_str(&out), out.size);
}

/* For fopencookie(3): 0 means a failure. */
static ssize_t on_write(void *cookie, const char *s, size_t size) {
        for (size_t i = 0; i < size; i += PIECE_BYTES) {
                int r = write_plain(cookie, s + i, MIN(size - i, (size_t) PIECE_BYTES), false);

                if (r < 0) {
                        errno = -r;
                        return 0;
                }
        }
        return (ssize_t) size;
}

int plain_output_begin(PlainOutput *o, FILE **stream, int fd) {
        const cookie_io_functions_t functions = { .write = on_write };

        assert(o && stream && *stream);
        *o = (PlainOutput){ .stream = stream, .before = *stream, .fd = fd };
        (void) fflush(*stream);
        o->file = fopencookie(o, "w", functions);
        if (!o->file) {
                o->stream = NULL;
                return -ENOMEM;
        }
        (void) setvbuf(o->file, NULL, fd == STDERR_FILENO || isatty(fd) ? _IOLBF : _IOFBF, 0);
        *stream = o->file;
        return 0;
}

void plain_output_set_form(PlainOutput *o, PlainOutputForm form) {
        if (o->stream)
                (void) fflush(o->file);
        o->form = form;
}

int plain_output_end(PlainOutput *o) {
        int r = 0, k;

        if (!o->stream)
                return 0;
        *o->stream = o->before;
        if (fclose(o->file) != 0)
                r = errno > 0 ? -errno : -EIO;
        k = write_plain(o, NULL, 0, true);
        o->stream = NULL;
        return r < 0 ? r : k;
}
