/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "markup-text.h"
#include "plan-page.h"

#define CARDS_ALL_MAX 60u /* nodes of a cluster that are shown without a map */
#define CARDS_MAX 60u     /* beside a map: of nodes that change, and half as many that take their pods */
#define TILES_MAX 6000u
#define NAME_COLUMNS 63u
#define SENTENCE_COLUMNS 240u
#define HOVER_MAX 6u /* sentences that are said on hover */

static bool is_small(const PlanPage *p) {
        return p->n_nodes <= CARDS_ALL_MAX;
}

/* -- a bar ---------------------------------------------------------------------------------------------- */

static void add_segment(StrBuf *b, const char *class, int64_t size, int64_t has) {
        if (size > 0)
                strbuf_addf(b, "<i class=\"%s\" style=\"width:%.1f%%\"></i>", class, (double) MIN(size, has) / (double) has * 100);
}

static void add_amount(StrBuf *b, int64_t amount, bool is_cpu) {
        if (is_cpu)
                strbuf_addf(b, "%.6g", (double) amount / 1000);
        else
                strbuf_addf(b, "%.1f", (double) amount / (1024.0 * 1024 * 1024));
}

/* Both figures where they are different. */
static void add_figure(StrBuf *b, const PageNode *n, const PageRoom *r) {
        int64_t before = page_percent(r->before, r->has), after = page_percent(r->after, r->has);

        if (n->role == PAGE_GOES)
                strbuf_addf(b, "%" PRId64 "\xc2\xa0%% \xe2\x86\x92 gone", before);
        else if (n->role == PAGE_NEW)
                strbuf_addf(b, "new \xe2\x86\x92 %" PRId64 "\xc2\xa0%%", after);
        else if (r->before != r->after)
                strbuf_addf(b, "%" PRId64 "\xc2\xa0%% \xe2\x86\x92 %" PRId64 "\xc2\xa0%%", before, after);
        else
                strbuf_addf(b, "%" PRId64 "\xc2\xa0%%", before);
}

/* What stays in use, what is freed, what comes: side by side. */
static void add_bar(StrBuf *b, const PageNode *n, const char *what, const PageRoom *r, bool is_cpu) {
        if (r->has <= 0)
                return;
        strbuf_addf(b, "<div class=\"use\" title=\"%s: its pods ask for ", what);
        add_amount(b, r->before, is_cpu);
        strbuf_add(b, " of ");
        add_amount(b, r->has, is_cpu);
        strbuf_add(b, is_cpu ? " cores" : " GiB");
        if (n->role != PAGE_GOES && r->before != r->after) {
                strbuf_add(b, ", afterwards for ");
                add_amount(b, r->after, is_cpu);
        }
        strbuf_addf(b, "\"><span class=\"what\">%s</span><span class=\"bar\">", what);
        add_segment(b, "keep", MIN(r->before, r->after), r->has);
        add_segment(b, "leave", r->before - r->after, r->has);
        add_segment(b, "come", r->after - r->before, r->has);
        strbuf_add(b, "</span><span class=\"figure\">");
        add_figure(b, n, r);
        strbuf_add(b, "</span></div>");
}

/* -- a card --------------------------------------------------------------------------------------------- */

static void add_mark(StrBuf *b, const PlanPage *p, const PageNode *n) {
        strbuf_add(b, "<p class=\"mark\">");
        switch (n->role) {
        case PAGE_GOES:
                if (n->of_step) {
                        strbuf_addf(b, "Goes in step %zu: %s", n->step, plan_method_to_string(n->of_step->method));
                        if (n->of_step->how)
                                strbuf_addf(b, " (%s)", n->of_step->how);
                } else
                        strbuf_add(b, "Could go");
                if (n->n_out > 0)
                        strbuf_addf(b, ", %zu pod%s move%s", n->n_out, n->n_out == 1 ? "" : "s", n->n_out == 1 ? "s" : "");
                if (n->of_step && n->of_step->drain.n_waves > 0 && !n->of_step->drain.is_endless)
                        strbuf_addf(b, " in %zu wave%s", n->of_step->drain.n_waves, n->of_step->drain.n_waves == 1 ? "" : "s");
                break;
        case PAGE_REFUSED:
                strbuf_add(b, p->what_if && p->what_if->n_nodes == 1 ? "Could not go now" : "Could not go now with the others");
                break;
        case PAGE_NEW:
                if (n->of_step && n->of_step->replacement == n->number)
                        strbuf_addf(b, "New, first of step %zu", n->step);
                else
                        strbuf_add(b, "As if it were there");
                break;
        case PAGE_TAKES:
                strbuf_addf(b, "Stays, and takes %zu pod%s", n->n_in, n->n_in == 1 ? "" : "s");
                break;
        case PAGE_STAYS:
                strbuf_add(b, "Stays");
                break;
        case _PAGE_ROLE_MAX:
                break;
        }
        strbuf_add(b, "</p>");
}

/* All sentences for the pointer, the first one's words for the eye. */
static void add_lacks(StrBuf *b, const PageNode *n) {
        const GateFinding *first = n->lacks ? gate_first(n->lacks) : NULL;

        if (!first)
                return;
        strbuf_add(b, "<p class=\"why\" title=\"");
        for (size_t i = 0; i < MIN(n->lacks->n_items, (size_t) HOVER_MAX); i++) {
                strbuf_addf(b, "%s%s: ", i > 0 ? "&#10;" : "", gate_code_to_string(n->lacks->items[i].code));
                markup_add_text(b, n->lacks->items[i].text, SENTENCE_COLUMNS);
        }
        strbuf_addf(b, "\">Why %s: %s", n->role == PAGE_REFUSED ? "not" : "it stays", page_code_words(first->code));
        if (n->lacks->n_items > 1)
                strbuf_addf(b, " (and %zu more reason%s)", n->lacks->n_items - 1, n->lacks->n_items == 2 ? "" : "s");
        strbuf_add(b, "</p>");
}

static void add_card(StrBuf *b, const PlanPage *p, const PageNode *n) {
        strbuf_addf(b, "<article class=\"node %s\"><h4 title=\"", page_role_class(n->role));
        markup_add_text(b, n->name, 253);
        strbuf_add(b, "\">");
        markup_add_text(b, n->name, NAME_COLUMNS);
        strbuf_add(b, "</h4>");
        add_mark(b, p, n);
        add_bar(b, n, "CPU", &n->cpu, true);
        add_bar(b, n, "memory", &n->memory, false);
        if (n->why) {
                strbuf_add(b, "<p class=\"why\">");
                markup_add_text(b, n->why, SENTENCE_COLUMNS);
                strbuf_add(b, "</p>");
        } else if (n->role == PAGE_NEW && n->of_step && n->of_step->replacement_like) {
                strbuf_add(b, "<p class=\"why\">like ");
                markup_add_text(b, n->of_step->replacement_like, SENTENCE_COLUMNS);
                strbuf_add(b, "</p>");
        }
        add_lacks(b, n);
        strbuf_add(b, "</article>\n");
}

/* -- a map ---------------------------------------------------------------------------------------------- */

/* How full by the fuller of its two: in tenths, 0 to 10. A node that goes as it is now. */
static unsigned tile_level(const PageNode *n) {
        bool goes = n->role == PAGE_GOES;
        int64_t cpu = page_percent(goes ? n->cpu.before : n->cpu.after, n->cpu.has),
                memory = page_percent(goes ? n->memory.before : n->memory.after, n->memory.has);
        int64_t fuller = MAX(cpu, memory);

        return fuller < 0 ? 0 : fuller > 100 ? 10 : (unsigned) (fuller + 5) / 10;
}

static void add_tile_figure(StrBuf *b, const PageNode *n, const char *what, const PageRoom *r) {
        if (r->has <= 0)
                return;
        strbuf_addf(b, ", %s ", what);
        add_figure(b, n, r);
}

static const char *const tile_words[_PAGE_ROLE_MAX] = {
        [PAGE_GOES] = "goes", [PAGE_REFUSED] = "could not go", [PAGE_NEW] = "new", [PAGE_TAKES] = "stays, and takes pods", [PAGE_STAYS] = "stays",
};

static void add_tile(StrBuf *b, const PageNode *n) {
        strbuf_addf(b, "<i class=\"tile %s f%u\" title=\"", page_role_class(n->role), tile_level(n));
        markup_add_text(b, n->name, NAME_COLUMNS);
        strbuf_addf(b, ": %s", tile_words[n->role]);
        if (n->step > 0 && n->of_step)
                strbuf_addf(b, " in step %zu", n->step);
        add_tile_figure(b, n, "CPU", &n->cpu);
        add_tile_figure(b, n, "memory", &n->memory);
        if (n->lacks && gate_first(n->lacks))
                strbuf_addf(b, " (%s)", gate_code_to_string(gate_first(n->lacks)->code));
        strbuf_add(b, "\"></i>");
}

/* -- pools ---------------------------------------------------------------------------------------------- */

static size_t pool_end(const PlanPage *p, size_t from) {
        size_t to = from + 1;

        while (to < p->n_nodes && streq_ptr(p->nodes[to].pool, p->nodes[from].pool))
                to++;
        return to;
}

static void add_count(StrBuf *b, size_t n, const char *words) {
        if (n > 0)
                strbuf_addf(b, ", %zu %s", n, words);
}

static void add_pool_head(StrBuf *b, const PlanPage *p, size_t from, size_t to) {
        size_t counts[_PAGE_ROLE_MAX] = {}, n;

        for (size_t i = from; i < to; i++)
                counts[p->nodes[i].role]++;
        n = to - from - counts[PAGE_NEW];
        strbuf_add(b, "<h3>");
        if (p->nodes[from].pool) {
                strbuf_add(b, "NodePool ");
                markup_add_text(b, p->nodes[from].pool, NAME_COLUMNS);
        } else
                strbuf_add(b, "In no NodePool");
        strbuf_addf(b, " <small>%zu node%s", n, n == 1 ? "" : "s");
        add_count(b, counts[PAGE_GOES], counts[PAGE_GOES] == 1 ? "goes" : "go");
        add_count(b, counts[PAGE_REFUSED], "could not go");
        add_count(b, counts[PAGE_NEW], "new");
        add_count(b, counts[PAGE_TAKES], counts[PAGE_TAKES] == 1 ? "takes pods" : "take pods");
        strbuf_add(b, "</small></h3>\n");
}

static void add_map(StrBuf *b, const PlanPage *p) {
        strbuf_add(b, "<p class=\"dim\">Each square is a node, filled as far as the fuller of its CPU and memory; one that goes as it is now, another as it would be "
                      "then. Its name and figures are shown where the pointer rests on it.</p>\n<ul class=\"legend\">");
        for (PageRole r = 0; r < _PAGE_ROLE_MAX; r++)
                if (p->counts[r] > 0)
                        strbuf_addf(b, "<li><i class=\"tile %s f5\"></i>%s</li>", page_role_class(r), tile_words[r]);
        strbuf_add(b, "</ul>\n");
        for (size_t from = 0, to; from < p->n_nodes && from < TILES_MAX; from = to) {
                to = pool_end(p, from);
                add_pool_head(b, p, from, to);
                strbuf_add(b, "<div class=\"map\">");
                for (size_t i = from; i < MIN(to, (size_t) TILES_MAX); i++)
                        add_tile(b, p->nodes + i);
                strbuf_add(b, "</div>\n");
        }
        if (p->n_nodes > TILES_MAX)
                strbuf_addf(b, "<p class=\"dim\">%zu more node%s not drawn; -o json has all nodes.</p>\n", p->n_nodes - TILES_MAX,
                            p->n_nodes - TILES_MAX == 1 ? " is" : "s are");
}

/* Room for cards beside a map. */
typedef struct CardRoom {
        size_t of_changed, of_takers;
        size_t n_left_out, n_empty;
} CardRoom;

static bool card_take_room(CardRoom *room, const PlanPage *p, const PageNode *n) {
        size_t *of = n->role == PAGE_TAKES ? &room->of_takers : &room->of_changed;

        if (is_small(p))
                return true;
        if (n->role == PAGE_STAYS)
                return false;
        if (n->role == PAGE_GOES && n->n_out == 0) {
                room->n_empty++;
                return false;
        }
        if (*of == 0) {
                room->n_left_out++;
                return false;
        }
        --*of;
        return true;
}

static void add_pool(StrBuf *b, const PlanPage *p, size_t from, size_t to, CardRoom *room) {
        bool is_open = false;

        for (size_t i = from; i < to; i++) {
                if (!card_take_room(room, p, p->nodes + i))
                        continue;
                if (!is_open) {
                        add_pool_head(b, p, from, to);
                        strbuf_add(b, "<div class=\"cards\">\n");
                }
                is_open = true;
                add_card(b, p, p->nodes + i);
        }
        if (is_open)
                strbuf_add(b, "</div>\n");
}

void plan_cards_add(StrBuf *b, const PlanPage *p) {
        size_t n_changed = p->counts[PAGE_GOES] + p->counts[PAGE_REFUSED] + p->counts[PAGE_NEW];
        CardRoom room = { .of_changed = CARDS_MAX, .of_takers = CARDS_MAX / 2 };

        if (!is_small(p)) {
                add_map(b, p);
                if (n_changed > 0)
                        strbuf_add(b, "<h3 class=\"part\">One by one: nodes that something becomes of</h3>\n");
        }
        for (size_t from = 0, to; from < p->n_nodes; from = to) {
                to = pool_end(p, from);
                add_pool(b, p, from, to, &room);
        }
        if (room.n_empty > 0)
                strbuf_addf(b, "<p class=\"dim\">%zu more node%s from which no pod moves: on the map, and below with %s step.</p>\n", room.n_empty,
                            room.n_empty == 1 ? " goes" : "s go", room.n_empty == 1 ? "its" : "their");
        if (room.n_left_out > 0)
                strbuf_addf(b, "<p class=\"dim\">%zu more node%s on the map alone.</p>\n", room.n_left_out,
                            room.n_left_out == 1 ? " that goes, is new or takes pods is" : "s that go, are new or take pods are");
}
