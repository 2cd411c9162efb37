/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "markup-text.h"
#include "strv.h"
#include "timeline.h"

/*
 * The timeline as one picture: a lane with a mark for each entry, one below the other where several nodes are meant, and
 * below them a line for each. It needs nothing beside itself, and follows the reader's light or dark surroundings.
 */

#define WIDTH 1080u
#define MARGIN 24u
#define AXIS_Y 84u
#define LANE_HEIGHT 46u
#define LANE_NAME_HEIGHT 16u /* below its line, where there are several */
#define FIRST_ROW_Y 132u
#define ROW_HEIGHT 22u
#define ROWS_MAX 200u
#define TEXT_COLUMNS 118u /* of what happened, in its line */
#define NAMES_COLUMNS 60u /* of the nodes, in the heading */
#define TICKS 5u

static const char style[] =
        "<style>svg{background:#fff;font:13px system-ui,sans-serif}text{fill:#1f2328}.dim{fill:#656d76}"
        ".time{font-family:ui-monospace,monospace;font-size:12px;fill:#656d76}.word{font-weight:600}"
        "line{stroke:#d0d7de}.object{fill:#8250df}.condition{fill:#1a7f37}.write{fill:#8c959f}"
        ".event{fill:#0969da}.log{fill:#bc4c00}"
        "@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.dim,.time{fill:#8d96a0}"
        "line{stroke:#30363d}.object{fill:#a371f7}.condition{fill:#3fb950}.event{fill:#4493f8}.log{fill:#f0883e}}"
        "</style>\n";

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

static void add_ticks(StrBuf *b, unsigned y, unsigned text_y, usec_t begin_usec, usec_t span) {
        const double width = WIDTH - 2 * MARGIN;

        for (unsigned i = 0; i < TICKS; i++) {
                double x = MARGIN + width * i / (TICKS - 1);

                strbuf_addf(b, "<line x1=\"%.1f\" y1=\"%u\" x2=\"%.1f\" y2=\"%u\"/>", x, y, x, y + 6);
                strbuf_addf(b, "<text class=\"time\" x=\"%.1f\" y=\"%u\" text-anchor=\"%s\">", x, text_y,
                            i == 0 ? "start" : i == TICKS - 1 ? "end" : "middle");
                add_offset(b, begin_usec, begin_usec + span * i / (TICKS - 1));
                strbuf_add(b, "</text>\n");
        }
}

/* named: it is one of several. */
static void add_lane(StrBuf *b, const Timeline *t, bool named, unsigned y, usec_t begin_usec, usec_t span) {
        const double width = WIDTH - 2 * MARGIN;

        strbuf_addf(b, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\"/>\n", MARGIN, y, WIDTH - MARGIN, y);
        if (named) {
                strbuf_addf(b, "<text class=\"dim\" x=\"%u\" y=\"%u\">", MARGIN, y + 14);
                markup_add_text(b, t->node, SIZE_MAX);
                strbuf_add(b, "</text>\n");
        }
        for (size_t i = 0; i < t->n_entries; i++) {
                const TimelineEntry *e = t->entries + i;

                if (e->at_usec < begin_usec || e->source == TIMELINE_WRITE)
                        continue;
                strbuf_addf(b, "<rect class=\"%s\" x=\"%.1f\" y=\"%u\" width=\"2\" height=\"20\"/>\n",
                            timeline_source_to_string(e->source),
                            MARGIN + width * ((double) (e->at_usec - begin_usec) / (double) span) - 1, y - 20);
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
                markup_add_text(b, head, SIZE_MAX);
        if (s[bytes])
                strbuf_add(b, "\xe2\x80\xa6");
}

/* node: NULL where there is only one. */
static void add_row(StrBuf *b, const char *node, const TimelineEntry *e, usec_t begin_usec, unsigned y) {
        /* "Node Node worker-1 is drained": a sentence that begins with its object needs no other mention of it. */
        const char *object = e->object && !e->reason && startswith(strempty(e->text), e->object) ? "" : strempty(e->object);
        size_t used = strlen(object) + strlen(strempty(e->reason)) + strlen(strempty(node));

        strbuf_addf(b, "<text class=\"time\" x=\"%u\" y=\"%u\" text-anchor=\"end\">", MARGIN + 96, y);
        add_offset(b, begin_usec, e->at_usec);
        strbuf_addf(b, "</text><circle class=\"%s\" cx=\"%u\" cy=\"%u\" r=\"4\"/>",
                    timeline_source_to_string(e->source), MARGIN + 112, y - 4);
        strbuf_addf(b, "<text x=\"%u\" y=\"%u\">", MARGIN + 126, y);
        if (node) {
                markup_add_text(b, node, SIZE_MAX);
                strbuf_add_char(b, ' ');
        }
        if (*object) {
                strbuf_add(b, "<tspan class=\"dim\">");
                markup_add_text(b, object, SIZE_MAX);
                strbuf_add(b, "</tspan> ");
        }
        if (e->reason) {
                strbuf_add(b, "<tspan class=\"word\">");
                markup_add_text(b, e->reason, SIZE_MAX);
                strbuf_add(b, "</tspan> ");
        }
        if (e->actor && e->source == TIMELINE_WRITE) {
                markup_add_text(b, e->actor, SIZE_MAX);
                strbuf_add(b, ": ");
        }
        add_cut(b, strempty(e->text), used < TEXT_COLUMNS ? TEXT_COLUMNS - used : 1);
        if (e->count > 1)
                strbuf_addf(b, " (%lld times)", (long long) e->count);
        strbuf_add(b, "<title>");
        markup_add_text(b, strempty(e->text), SIZE_MAX);
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

static void add_head(StrBuf *b, const Timeline *nodes, size_t n, unsigned height, usec_t begin_usec) {
        _cleanup_strbuf_ StrBuf names = {};
        char when[RFC3339_MAX];

        strbuf_addf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\">\n", WIDTH,
                    height, WIDTH, height);
        strbuf_add(b, style);
        strbuf_addf(b, "<text class=\"word\" x=\"%u\" y=\"38\" font-size=\"18\">%s ", MARGIN, n == 1 ? "Node" : "Nodes");
        for (size_t i = 0; i < n; i++)
                strbuf_addf(&names, "%s%s", i > 0 ? ", " : "", nodes[i].node);
        add_cut(b, strbuf_str(&names), NAMES_COLUMNS);
        b->failed |= names.failed;
        strbuf_add(b, "</text>");
        if (begin_usec != USEC_INFINITY) {
                rfc3339_format_micro(begin_usec, when);
                strbuf_addf(b, "<text class=\"dim\" x=\"%u\" y=\"58\">+0 is %s. Events and conditions are told in whole seconds.</text>", MARGIN, when);
        }
        add_legend(b);
}

static void add_note(StrBuf *b, unsigned y, const char *node, const char *sentence) {
        strbuf_addf(b, "<text class=\"dim\" x=\"%u\" y=\"%u\">", MARGIN, y);
        if (node) {
                markup_add_text(b, node, SIZE_MAX);
                strbuf_add(b, ": ");
        }
        add_cut(b, sentence, 2 * TEXT_COLUMNS);
        strbuf_add(b, "</text>\n");
}

/* The node whose next entry is the earliest; n: none has one. */
static size_t earliest(const Timeline *nodes, size_t n, const size_t *next) {
        size_t best = n;

        for (size_t i = 0; i < n; i++)
                if (next[i] < nodes[i].n_entries &&
                    (best == n || nodes[i].entries[next[i]].at_usec < nodes[best].entries[next[best]].at_usec))
                        best = i;
        return best;
}

/* Below the last one. */
static unsigned add_rows(StrBuf *b, const Timeline *nodes, size_t n, size_t rows, usec_t begin_usec, unsigned y) {
        _cleanup_free_ size_t *next = new0(size_t, n); /* of each node's entries */

        b->failed |= !next;
        for (size_t i = 0; next && i < rows; i++, y += ROW_HEIGHT) {
                size_t of = earliest(nodes, n, next);

                add_row(b, n > 1 ? nodes[of].node : NULL, nodes[of].entries + next[of]++, begin_usec, y);
        }
        return y;
}

char *timeline_svg(const Timeline *nodes, size_t n) {
        unsigned axis_y = AXIS_Y + LANE_HEIGHT * (unsigned) (n - 1), name_height = n > 1 ? LANE_NAME_HEIGHT : 0;
        unsigned y = axis_y + name_height + FIRST_ROW_Y - AXIS_Y;
        usec_t begin_usec = USEC_INFINITY, end_usec = 0, span;
        size_t all = 0, rows, notes = 0;
        StrBuf b = {};

        for (size_t i = 0; i < n; i++) {
                all += nodes[i].n_entries;
                notes += strv_length(nodes[i].missing);
                begin_usec = MIN(begin_usec, axis_begin(nodes + i));
                if (nodes[i].n_entries > 0)
                        end_usec = MAX(end_usec, nodes[i].entries[nodes[i].n_entries - 1].at_usec);
        }
        rows = MIN(all, (size_t) ROWS_MAX);
        notes += all > rows;
        span = MAX(usec_sub(end_usec, begin_usec), (usec_t) 1);

        add_head(&b, nodes, n, y + ROW_HEIGHT * (unsigned) (rows + notes) + MARGIN, begin_usec);
        for (size_t i = 0; i < n && all > 0; i++)
                add_lane(&b, nodes + i, n > 1, AXIS_Y + LANE_HEIGHT * (unsigned) i, begin_usec, span);
        if (all > 0)
                add_ticks(&b, axis_y, axis_y + name_height + 22, begin_usec, span);
        y = add_rows(&b, nodes, n, rows, begin_usec, y);
        if (all > rows) {
                strbuf_addf(&b, "<text class=\"dim\" x=\"%u\" y=\"%u\">%zu more %s in the text and in the JSON.</text>\n",
                            MARGIN, y, all - rows, all - rows == 1 ? "is" : "are");
                y += ROW_HEIGHT;
        }
        for (size_t i = 0; i < n; i++)
                STRV_FOREACH(sentence, nodes[i].missing) {
                        add_note(&b, y, n > 1 ? nodes[i].node : NULL, *sentence);
                        y += ROW_HEIGHT;
                }
        strbuf_add(&b, "</svg>\n");
        return strbuf_steal(&b);
}
