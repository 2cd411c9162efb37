/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "strv.h"
#include "timeline.h"

/*
 * The timeline as one picture: an axis with a mark for each entry, and below it a line for each. It needs nothing
 * beside itself, and follows the reader's light or dark surroundings.
 */

#define WIDTH 1080u
#define MARGIN 24u
#define AXIS_Y 84u
#define FIRST_ROW_Y 132u
#define ROW_HEIGHT 22u
#define ROWS_MAX 200u
#define TEXT_COLUMNS 118u /* of what happened, in its line */
#define TICKS 5u

static const char style[] =
        "<style>svg{background:#fff;font:13px system-ui,sans-serif}text{fill:#1f2328}.dim{fill:#656d76}"
        ".time{font-family:ui-monospace,monospace;font-size:12px;fill:#656d76}.word{font-weight:600}"
        "line{stroke:#d0d7de}.object{fill:#8250df}.condition{fill:#1a7f37}.write{fill:#8c959f}"
        ".event{fill:#0969da}.log{fill:#bc4c00}"
        "@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.dim,.time{fill:#8d96a0}"
        "line{stroke:#30363d}.object{fill:#a371f7}.condition{fill:#3fb950}.event{fill:#4493f8}.log{fill:#f0883e}}"
        "</style>\n";

/* As text of XML. What XML cannot hold at all is no part of a plain text (str_sanitize()). */
static void add_text(StrBuf *b, const char *s) {
        for (; *s; s++)
                if (*s == '<')
                        strbuf_add(b, "&lt;");
                else if (*s == '&')
                        strbuf_add(b, "&amp;");
                else if (*s == '>')
                        strbuf_add(b, "&gt;");
                else if (*s == '"')
                        strbuf_add(b, "&quot;");
                else
                        strbuf_add_char(b, *s);
}

/* "+1.234 s", "+3 min 2 s", "-2 d 4 h": from the axis' beginning. */
static void add_offset(StrBuf *b, usec_t from_usec, usec_t at_usec) {
        bool before = at_usec < from_usec;
        usec_t usec = before ? from_usec - at_usec : at_usec - from_usec;
        unsigned long long s = usec / USEC_PER_SEC;

        strbuf_add_char(b, before ? '-' : '+');
        if (s < 60)
                strbuf_addf(b, "%llu.%03llu s", s, (unsigned long long) (usec % USEC_PER_SEC / USEC_PER_MSEC));
        else if (s < 3600)
                strbuf_addf(b, "%llu min %llu s", s / 60, s % 60);
        else if (s < 86400)
                strbuf_addf(b, "%llu h %llu min", s / 3600, s % 3600 / 60);
        else
                strbuf_addf(b, "%llu d %llu h", s / 86400, s % 86400 / 3600);
}

/* Where the axis begins: with the first of what people look for, not with the creation of a Node weeks ago. */
static usec_t axis_begin(const Timeline *t) {
        usec_t begin = USEC_INFINITY;

        for (size_t i = 0; i < t->n_entries; i++) {
                const TimelineEntry *e = t->entries + i;

                if (e->source == TIMELINE_EVENT || e->source == TIMELINE_LOG ||
                    (e->source == TIMELINE_OBJECT && streq_ptr(e->reason, "Deleted")))
                        begin = MIN(begin, e->at_usec);
        }
        return begin == USEC_INFINITY && t->n_entries > 0 ? t->entries[0].at_usec : begin;
}

static void add_axis(StrBuf *b, const Timeline *t, usec_t begin_usec, usec_t end_usec) {
        usec_t span = MAX(end_usec - begin_usec, (usec_t) 1);
        const double width = WIDTH - 2 * MARGIN;

        strbuf_addf(b, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\"/>\n", MARGIN, AXIS_Y, WIDTH - MARGIN, AXIS_Y);
        for (unsigned i = 0; i < TICKS; i++) {
                double x = MARGIN + width * i / (TICKS - 1);

                strbuf_addf(b, "<line x1=\"%.1f\" y1=\"%u\" x2=\"%.1f\" y2=\"%u\"/>", x, AXIS_Y, x, AXIS_Y + 6);
                strbuf_addf(b, "<text class=\"time\" x=\"%.1f\" y=\"%u\" text-anchor=\"%s\">", x, AXIS_Y + 22,
                            i == 0 ? "start" : i == TICKS - 1 ? "end" : "middle");
                add_offset(b, begin_usec, begin_usec + span * i / (TICKS - 1));
                strbuf_add(b, "</text>\n");
        }
        for (size_t i = 0; i < t->n_entries; i++) {
                const TimelineEntry *e = t->entries + i;

                if (e->at_usec < begin_usec || e->source == TIMELINE_WRITE)
                        continue;
                strbuf_addf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%u\" width=\"2\" height=\"20\"/>\n",
                            timeline_source_to_string(e->source),
                            MARGIN + width * ((double) (e->at_usec - begin_usec) / (double) span) - 1, AXIS_Y - 20);
        }
}

/* At most so many columns; a character counts as one. */
static void add_cut(StrBuf *b, const char *s, size_t columns) {
        size_t n = 0, bytes = 0;
        _cleanup_free_ char *head = NULL;

        while (s[bytes] && n < columns) {
                bytes++;
                while (((unsigned char) s[bytes] & 0xc0) == 0x80)
                        bytes++;
                n++;
        }
        head = memdup_str(s, bytes);
        if (!head)
                b->failed = true;
        else
                add_text(b, head);
        if (s[bytes])
                strbuf_add(b, "\xe2\x80\xa6");
}

static void add_row(StrBuf *b, const TimelineEntry *e, usec_t begin_usec, unsigned y) {
        /* "Node Node worker-1 is drained": a sentence that begins with its object needs no other mention of it. */
        const char *object = e->object && !e->reason && startswith(strempty(e->text), e->object) ? "" : strempty(e->object);
        size_t used = strlen(object) + strlen(strempty(e->reason));

        strbuf_addf(b, "<text class=\"time\" x=\"%u\" y=\"%u\" text-anchor=\"end\">", MARGIN + 96, y);
        add_offset(b, begin_usec, e->at_usec);
        strbuf_addf(b, "</text><circle class=\"%s\" cx=\"%u\" cy=\"%u\" r=\"4\"/>",
                    timeline_source_to_string(e->source), MARGIN + 112, y - 4);
        strbuf_addf(b, "<text x=\"%u\" y=\"%u\">", MARGIN + 126, y);
        if (*object) {
                strbuf_add(b, "<tspan class=\"dim\">");
                add_text(b, object);
                strbuf_add(b, "</tspan> ");
        }
        if (e->reason) {
                strbuf_add(b, "<tspan class=\"word\">");
                add_text(b, e->reason);
                strbuf_add(b, "</tspan> ");
        }
        if (e->actor && e->source == TIMELINE_WRITE) {
                add_text(b, e->actor);
                strbuf_add(b, ": ");
        }
        add_cut(b, strempty(e->text), used < TEXT_COLUMNS ? TEXT_COLUMNS - used : 1);
        if (e->count > 1)
                strbuf_addf(b, " (%lld times)", (long long) e->count);
        strbuf_add(b, "<title>");
        add_text(b, strempty(e->text));
        strbuf_add(b, "</title></text>\n");
}

/* In one text, so that the reader's own font decides how wide it is. */
static void add_legend(StrBuf *b) {
        strbuf_addf(b, "<text class=\"dim\" x=\"%u\" y=\"38\" text-anchor=\"end\">", WIDTH - MARGIN);
        for (TimelineSource s = 0; s < _TIMELINE_SOURCE_MAX; s++) {
                const char *name = timeline_source_to_string(s);

                strbuf_addf(b, "<tspan class=\"%s\" dx=\"%d\">\xe2\x97\x8f</tspan> %s", name, s > 0 ? 14 : 0, name);
        }
        strbuf_add(b, "</text>\n");
}

static void add_head(StrBuf *b, const Timeline *t, unsigned height, usec_t begin_usec) {
        char when[RFC3339_MAX];

        strbuf_addf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n", WIDTH,
                    height, WIDTH, height);
        strbuf_add(b, style);
        strbuf_addf(b, "<text class=\"word\" x=\"%u\" y=\"38\" font-size=\"18\">Node ", MARGIN);
        add_text(b, t->node);
        strbuf_add(b, "</text>");
        if (begin_usec != USEC_INFINITY) {
                rfc3339_format_micro(begin_usec, when);
                strbuf_addf(b, "<text class=\"dim\" x=\"%u\" y=\"58\">+0 is %s. Events and conditions are told in whole seconds.</text>", MARGIN, when);
        }
        add_legend(b);
}

char *timeline_svg(const Timeline *t) {
        size_t rows = MIN(t->n_entries, (size_t) ROWS_MAX), more = t->n_entries - rows;
        size_t notes = strv_length(t->missing) + (more > 0);
        unsigned y = FIRST_ROW_Y, height = FIRST_ROW_Y + ROW_HEIGHT * (unsigned) (rows + notes) + MARGIN;
        usec_t begin_usec = axis_begin(t);
        StrBuf b = {};

        add_head(&b, t, height, begin_usec);
        if (t->n_entries > 0)
                add_axis(&b, t, begin_usec, t->entries[t->n_entries - 1].at_usec);
        for (size_t i = 0; i < rows; i++, y += ROW_HEIGHT)
                add_row(&b, t->entries + i, begin_usec, y);
        if (more > 0) {
                strbuf_addf(&b, "<text class=\"dim\" x=\"%u\" y=\"%u\">%zu more are in the text and in the JSON.</text>\n",
                            MARGIN, y, more);
                y += ROW_HEIGHT;
        }
        STRV_FOREACH(sentence, t->missing) {
                strbuf_addf(&b, "<text class=\"dim\" x=\"%u\" y=\"%u\">", MARGIN, y);
                add_cut(&b, *sentence, 2 * TEXT_COLUMNS);
                strbuf_add(&b, "</text>\n");
                y += ROW_HEIGHT;
        }
        strbuf_add(&b, "</svg>\n");
        return strbuf_steal(&b);
}
