/* SPDX-License-Identifier: Apache-2.0 */
#include "markup-text.h"
#include "plan-page.h"

/*
 * Two columns of boxes. In a box on the left a line for each arrow that begins there, in one on the right its room before and
 * after; lines of the left are in the order of steps, boxes of the right in that of the first arrow to each.
 */

#define SINGLE_MAX 30u /* of so many moves each has an arrow; of more, each pair of nodes */
#define ARROWS_MAX 100u
#define NAMED_MAX 12u  /* pods in what an arrow says on hover */
#define WIDTH 1000u
#define BOX_WIDTH 370u
#define HEAD_HEIGHT 26u
#define LINE_HEIGHT 20u
#define TARGET_HEIGHT 46u
#define GAP 12u
#define NAME_COLUMNS 40u

typedef struct FlowArrow {
        const PageMove *moves; /* all of one pair of nodes, or one */
        size_t n_moves;
        size_t target;         /* in targets[] */
        unsigned y;            /* where it begins */
} FlowArrow;

typedef struct FlowTarget {
        uint32_t node;
        size_t n_arrows, n_landed;
        unsigned y, height;
} FlowTarget;

typedef struct Flow {
        const PlanPage *page;
        FlowArrow *arrows;
        size_t n_arrows;
        FlowTarget *targets;
        size_t n_targets;
        size_t n_moves;       /* that are drawn */
        size_t n_pairs_left;  /* that are not */
        unsigned height;
} Flow;

static bool is_same_pair(const PageMove *a, const PageMove *b) {
        return a->step == b->step && a->move.from == b->move.from && a->move.to == b->move.to;
}

static size_t flow_target(Flow *f, uint32_t node) {
        for (size_t i = 0; i < f->n_targets; i++)
                if (f->targets[i].node == node)
                        return i;
        f->targets[f->n_targets] = (FlowTarget){ .node = node };
        return f->n_targets++;
}

static void flow_take(Flow *f) {
        const PlanPage *p = f->page;
        bool is_single = p->n_moves <= SINGLE_MAX;

        for (size_t i = 0, n; i < p->n_moves; i += n) {
                FlowArrow *a;

                for (n = 1; !is_single && i + n < p->n_moves && is_same_pair(p->moves + i, p->moves + i + n);)
                        n++;
                if (f->n_arrows == ARROWS_MAX) {
                        f->n_pairs_left++;
                        continue;
                }
                a = f->arrows + f->n_arrows++;
                *a = (FlowArrow){ .moves = p->moves + i, .n_moves = n, .target = flow_target(f, p->moves[i].move.to) };
                f->targets[a->target].n_arrows++;
                f->n_moves += n;
        }
}

static bool begins_box(const Flow *f, size_t i) {
        return i == 0 || f->arrows[i].moves->move.from != f->arrows[i - 1].moves->move.from ||
               f->arrows[i].moves->step != f->arrows[i - 1].moves->step;
}

static void flow_lay_out(Flow *f) {
        unsigned left = GAP, right = GAP;

        for (size_t i = 0; i < f->n_arrows; i++) {
                if (begins_box(f, i))
                        left += (i > 0 ? GAP : 0) + HEAD_HEIGHT;
                f->arrows[i].y = left + LINE_HEIGHT / 2;
                left += LINE_HEIGHT;
        }
        for (size_t i = 0; i < f->n_targets; i++) {
                FlowTarget *t = f->targets + i;

                t->y = right;
                t->height = MAX(TARGET_HEIGHT, (unsigned) t->n_arrows * 8 + 8);
                right += t->height + GAP;
        }
        f->height = MAX(left + GAP, right);
}

/* -- drawing -------------------------------------------------------------------------------------------- */

static void add_pod(StrBuf *b, const PlanPage *p, const PageMove *m, size_t columns) {
        const ObjectMeta *meta = &scene_pod(p->scene, m->move.pod)->object.meta;

        markup_add_textf(b, columns, "%s/%s", meta->ns, meta->name);
}

static void add_hover(StrBuf *b, const PlanPage *p, const FlowArrow *a) {
        strbuf_add(b, "<title>");
        markup_add_textf(b, 200, "%s to %s: ", scene_node_name(p->scene, a->moves->move.from), scene_node_name(p->scene, a->moves->move.to));
        for (size_t i = 0; i < MIN(a->n_moves, (size_t) NAMED_MAX); i++) {
                strbuf_add(b, i > 0 ? ", " : "");
                add_pod(b, p, a->moves + i, 120);
        }
        if (a->n_moves > NAMED_MAX)
                strbuf_addf(b, " and %zu more", a->n_moves - NAMED_MAX);
        strbuf_add(b, "</title>");
}

static void add_box(StrBuf *b, const char *class, unsigned x, unsigned y, unsigned height) {
        strbuf_addf(b, "<rect class=\"box %s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"6\"/>", class, x, y, BOX_WIDTH, height);
}

/* The box that begins with this arrow, and how many lines it has. */
static void add_source(StrBuf *b, const Flow *f, size_t first) {
        const FlowArrow *a = f->arrows + first;
        unsigned y = a->y - LINE_HEIGHT / 2 - HEAD_HEIGHT;
        size_t n = 1;

        while (first + n < f->n_arrows && !begins_box(f, first + n))
                n++;
        add_box(b, "goes", 0, y, HEAD_HEIGHT + (unsigned) n * LINE_HEIGHT + 4);
        strbuf_addf(b, "<text class=\"name\" x=\"12\" y=\"%u\">", y + 18);
        markup_add_text(b, scene_node_name(f->page->scene, a->moves->move.from), NAME_COLUMNS - 10);
        strbuf_add(b, "</text>");
        if (f->page->plan)
                strbuf_addf(b, "<text class=\"dim end\" x=\"%u\" y=\"%u\">step %zu</text>", BOX_WIDTH - 12, y + 18, a->moves->step);
        strbuf_add_char(b, '\n');
}

static void add_percents(StrBuf *b, const char *what, const PageRoom *r) {
        int64_t before = page_percent(r->before, r->has), after = page_percent(r->after, r->has);

        if (before < 0)
                return;
        strbuf_addf(b, "%s %lld\xc2\xa0%% \xe2\x86\x92 %lld\xc2\xa0%%", what, (long long) before, (long long) after);
}

static void add_target(StrBuf *b, const Flow *f, const FlowTarget *t) {
        const PageNode *n = page_node(f->page, t->node);

        add_box(b, page_role_class(n->role), WIDTH - BOX_WIDTH, t->y, t->height);
        strbuf_addf(b, "<text class=\"name\" x=\"%u\" y=\"%u\">", WIDTH - BOX_WIDTH + 16, t->y + 18);
        markup_add_text(b, n->name, NAME_COLUMNS);
        strbuf_addf(b, "</text><text class=\"dim\" x=\"%u\" y=\"%u\">", WIDTH - BOX_WIDTH + 16, t->y + 36);
        add_percents(b, "CPU", &n->cpu);
        strbuf_add(b, n->cpu.has > 0 && n->memory.has > 0 ? ", " : "");
        add_percents(b, "memory", &n->memory);
        strbuf_add(b, "</text>\n");
}

static void add_arrow(StrBuf *b, const Flow *f, FlowArrow *a) {
        FlowTarget *t = f->targets + a->target;
        unsigned y = t->y + (unsigned) (((double) t->n_landed + 0.5) * t->height / (double) t->n_arrows);
        unsigned from = BOX_WIDTH, to = WIDTH - BOX_WIDTH - 7, middle = WIDTH / 2;
        unsigned width = a->n_moves < 3 ? 2 : a->n_moves < 8 ? 3 : a->n_moves < 20 ? 5 : 7;

        t->n_landed++;
        strbuf_addf(b, "<g class=\"move\"><path d=\"M%u %uC%u %u %u %u %u %u\" style=\"stroke-width:%upx\"/>", from, a->y, middle, a->y,
                    middle, y, to, y, width);
        strbuf_addf(b, "<path class=\"head\" d=\"M%u %ul-9 -5v10z\"/>", to + 7, y);
        strbuf_addf(b, "<text x=\"24\" y=\"%u\">", a->y + 4);
        if (a->n_moves == 1)
                add_pod(b, f->page, a->moves, NAME_COLUMNS);
        else
                strbuf_addf(b, "%zu pods", a->n_moves);
        strbuf_add(b, "</text>");
        add_hover(b, f->page, a);
        strbuf_add(b, "</g>\n");
}

static void add_left_out(StrBuf *b, const Flow *f) {
        size_t left = f->page->n_moves - f->n_moves;

        if (f->page->n_moves > SINGLE_MAX)
                strbuf_addf(b, "<p class=\"dim\">There are %zu moves: those from one node to the same other node share one arrow; pods are named where the pointer rests on it.</p>\n",
                            f->page->n_moves);
        if (left > 0)
                strbuf_addf(b, "<p class=\"dim\">%zu more pair%s of nodes, with %zu move%s, %s not drawn; -o json has all moves.</p>\n", f->n_pairs_left,
                            f->n_pairs_left == 1 ? "" : "s", left, left == 1 ? "" : "s", f->n_pairs_left == 1 ? "is" : "are");
}

void plan_flow_add(StrBuf *b, const PlanPage *p) {
        FlowArrow arrows[ARROWS_MAX];
        FlowTarget targets[ARROWS_MAX];
        Flow f = { .page = p, .arrows = arrows, .targets = targets };

        flow_take(&f);
        if (f.n_arrows == 0)
                return;
        flow_lay_out(&f);
        strbuf_addf(b, "<div class=\"wide\"><svg class=\"flow\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-1 -1 %u %u\" role=\"img\">\n", WIDTH + 2, f.height + 2);
        for (size_t i = 0; i < f.n_arrows; i++)
                if (begins_box(&f, i))
                        add_source(b, &f, i);
        for (size_t i = 0; i < f.n_targets; i++)
                add_target(b, &f, f.targets + i);
        for (size_t i = 0; i < f.n_arrows; i++)
                add_arrow(b, &f, f.arrows + i);
        strbuf_add(b, "</svg></div>\n");
        add_left_out(b, &f);
}
