/* SPDX-License-Identifier: Apache-2.0 */
#include "plan-show.h"

#include "markup-text.h"
#include "plan-page.h"
#include "strv.h"

/*
 * A plan as one page for anybody: it asks for nothing beside itself (and forbids the browser to), has no script, follows the
 * reader's light or dark surroundings, and is well-formed XML as well. Each part has its bound and says what it has left out,
 * so that 5,000 nodes are less than 2 MB.
 */

#define STEPS_MAX 200u
#define MOVES_MAX 1000u
#define STAYING_MAX 500u
#define NAMED_MAX 8u /* nodes in one cell */
#define NAME_COLUMNS 80u
#define SENTENCE_COLUMNS 400u
#define NOTE_COLUMNS 1000u

static const char style[] =
        ":root{color-scheme:light dark;--page:#fff;--card:#f6f8fa;--line:#d0d7de;--text:#1f2328;--dim:#59636e;--track:#dfe4ea;"
        "--keep:#5c8ad6;--leave:#bc4c00;--come:#1a7f37;--refused:#b3261e;--new:#8250df}\n"
        "@media(prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--line:#30363d;--text:#e6edf3;--dim:#9198a1;"
        "--track:#2d333b;--keep:#4d7fd0;--leave:#f0883e;--come:#3fb950;--refused:#ff7b72;--new:#b392f0}}\n"
        "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--text);font:15px/1.45 system-ui,sans-serif}\n"
        "main{max-width:1160px;margin:0 auto;padding:24px 20px 48px;overflow-wrap:anywhere}\n"
        "h1{font-size:26px;line-height:1.25;margin:0 0 6px}h2{font-size:20px;margin:40px 0 8px}h3{font-size:16px;margin:22px 0 8px}"
        "h3.part{margin-top:32px}small{color:var(--dim);font-weight:400;font-size:13px;margin-left:6px}p{margin:6px 0}.dim{color:var(--dim);font-size:13px}\n"
        ".note{border-left:3px solid var(--leave);padding:2px 0 2px 10px}\n"
        ".numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(160px,1fr));gap:10px;margin:20px 0}\n"
        ".numbers div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 14px}\n"
        ".numbers b{display:block;font-size:21px;line-height:1.3}.numbers span{color:var(--dim);font-size:13px;display:block}\n"
        ".legend{display:flex;flex-wrap:wrap;gap:6px 22px;margin:10px 0;padding:0;list-style:none;font-size:13px}\n"
        ".legend i{display:inline-block;width:26px;height:12px;border-radius:3px;margin-right:7px;vertical-align:-1px}\n"
        ".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(330px,100%),1fr));gap:10px}\n"
        ".node{background:var(--card);border:1px solid var(--line);border-left:5px solid var(--keep);border-radius:8px;padding:9px 14px 10px;min-width:0}\n"
        ".node.goes{border-left-color:var(--leave)}.node.takes{border-left-color:var(--come)}.node.refused{border-left-color:var(--refused)}"
        ".node.new{border-left-color:var(--new)}\n"
        "h4{margin:0;font-size:14px}.mark{margin:0 0 6px;font-size:13px;color:var(--dim)}.goes .mark{color:var(--leave);font-weight:600}"
        ".takes .mark{color:var(--come);font-weight:600}.refused .mark{color:var(--refused);font-weight:600}.new .mark{color:var(--new);font-weight:600}\n"
        ".use{display:grid;grid-template-columns:58px 1fr 98px;gap:8px;align-items:center;font-size:12.5px}.what{color:var(--dim)}.figure{text-align:right;white-space:nowrap}\n"
        ".bar{display:flex;height:12px;border-radius:3px;overflow:hidden;background:var(--track)}.bar i{height:100%}\n"
        ".keep{background:var(--keep)}.come{background:var(--come)}.leave{background:repeating-linear-gradient(135deg,var(--leave) 0 5px,transparent 5px 8px)}"
        ".free{background:var(--track)}\n"
        ".why{margin:6px 0 0;font-size:13px;color:var(--dim)}\n"
        ".map{display:flex;flex-wrap:wrap;gap:3px}.tile{--c:var(--keep);width:14px;height:14px;border-radius:2px;"
        "background:linear-gradient(to top,var(--c) var(--f),var(--track) var(--f))}\n"
        ".tile.goes{--c:var(--leave);outline:2px solid var(--leave);outline-offset:-2px}.tile.takes{--c:var(--come)}.tile.refused{--c:var(--refused);outline:2px solid var(--refused);outline-offset:-2px}"
        ".tile.new{--c:var(--new)}.legend .tile{width:14px;height:14px;border-radius:2px;vertical-align:-2px}\n"
        ".f0{--f:0}.f1{--f:10%}.f2{--f:20%}.f3{--f:30%}.f4{--f:40%}.f5{--f:50%}.f6{--f:60%}.f7{--f:70%}.f8{--f:80%}.f9{--f:90%}.f10{--f:100%}\n"
        ".wide{overflow-x:auto;overflow-wrap:break-word}table{border-collapse:collapse;width:100%;font-size:14px}th,td{text-align:left;vertical-align:top;padding:7px 14px 7px 0;"
        "border-bottom:1px solid var(--line)}th{color:var(--dim);font-weight:600;font-size:13px;white-space:nowrap}td.n,th.n{text-align:right}.steps td:nth-child(n+3){min-width:11em}.reasons td:nth-child(2){min-width:15em}.reasons td:nth-child(n+3){min-width:13em}code{font-size:12px;color:var(--dim)}\n"
        "details{margin:10px 0}summary{cursor:pointer;color:var(--dim)}\n"
        ".flow{width:100%;min-width:760px;height:auto;max-width:1120px;font:13px system-ui,sans-serif;display:block}.flow text{fill:var(--text)}.flow .name{font-weight:600}"
        ".flow .dim{fill:var(--dim);font-size:12px}.flow .end{text-anchor:end}.box{fill:var(--card);stroke:var(--line)}.box.goes{stroke:var(--leave)}.box.takes{stroke:var(--come)}"
        ".box.new{stroke:var(--new)}.move path{fill:none;stroke:var(--dim);opacity:.6}.move .head{fill:var(--dim);stroke:none;opacity:1}"
        ".move:hover path{stroke:var(--leave);opacity:1}.move:hover .head{fill:var(--leave);stroke:none}\n"
        "footer{margin-top:44px;border-top:1px solid var(--line);padding-top:10px;color:var(--dim);font-size:13px}\n";

static const char *plural(size_t n) {
        return n == 1 ? "" : "s";
}

/* -- what it says first --------------------------------------------------------------------------------- */

/* Nodes of the snapshot. */
static size_t n_old_nodes(const PlanPage *p) {
        return p->n_nodes - p->counts[PAGE_NEW];
}

static void add_headline(StrBuf *b, const PlanPage *p) {
        size_t n = n_old_nodes(p), n_goes = p->counts[PAGE_GOES];

        if (p->plan && n_goes == 0)
                strbuf_addf(b, "No node of %zu would be removed now", n);
        else if (p->plan)
                strbuf_addf(b, "%zu of %zu node%s would be removed now", n_goes, n, plural(n));
        else if (p->what_if->n_nodes == 0)
                strbuf_addf(b, "No node of %zu could go now", n);
        else if (p->what_if->n_nodes == 1)
                strbuf_add(b, n_goes > 0 ? "This node could go" : "This node could not go now");
        else
                strbuf_addf(b, "These %zu nodes could %sgo together%s", p->what_if->n_nodes, n_goes > 0 ? "" : "not ", n_goes > 0 ? "" : " now");
}

static void add_names(StrBuf *b, const PlanPage *p, const uint32_t *nodes, size_t n) {
        for (size_t i = 0; i < MIN(n, (size_t) NAMED_MAX); i++) {
                strbuf_add(b, i > 0 ? ", " : "");
                markup_add_text(b, scene_node_name(p->scene, nodes[i]), NAME_COLUMNS);
        }
        if (n > NAMED_MAX)
                strbuf_addf(b, " and %zu more", n - NAMED_MAX);
}

static void add_lead(StrBuf *b, const PlanPage *p) {
        char time[RFC3339_MAX];

        rfc3339_format(p->scene->now_usec, time);
        strbuf_add(b, "<p>");
        if (p->plan && p->n_moves > 0)
                strbuf_addf(b, "Nobody has asked for it: this is what the NodePools allow (expiration, drift, empty nodes, consolidation). By "
                               "kube-scheduler's rules %s%zu pod%s that would have to move finds a place on another node%s. ",
                            p->n_moves == 1 ? "the " : "each of the ", p->n_moves, plural(p->n_moves), p->counts[PAGE_NEW] > 0 ? ", or on a new one that is there before" : "");
        else if (p->plan)
                strbuf_add(b, "This is about removals that nobody has asked for: what the NodePools allow (expiration, drift, empty nodes, consolidation). ");
        else if (p->what_if->n_nodes > 0) {
                strbuf_add(b, "Asked about: ");
                add_names(b, p, p->what_if->nodes, p->what_if->n_nodes);
                strbuf_addf(b, !p->what_if->fits            ? ". Not all %s pods would find a place elsewhere, or nobody can tell. "
                               : p->what_if->has_objections ? ". All %s pods would find a place elsewhere, but something else stands in the way. "
                                                            : ". All %s pods find a place elsewhere, by kube-scheduler's rules. ",
                            p->what_if->n_nodes == 1 ? "its" : "their");
        }
        strbuf_addf(b, "Nothing has been changed.</p>\n<p class=\"dim\">As of %s: %zu node%s, %u pod%s.</p>\n", time, n_old_nodes(p),
                    plural(n_old_nodes(p)), simulator_n_pods(p->scene->simulator), plural(simulator_n_pods(p->scene->simulator)));
        STRV_FOREACH(note, p->notes) {
                strbuf_add(b, "<p class=\"note\">");
                markup_add_text(b, *note, NOTE_COLUMNS);
                strbuf_add(b, "</p>\n");
        }
}

/* -- numbers -------------------------------------------------------------------------------------------- */

static void add_drain(StrBuf *b, const DrainEstimate *d) {
        if (d->n_waves == 0)
                strbuf_add(b, "nothing to drain");
        else if (d->is_endless)
                strbuf_add(b, "blocked now");
        else {
                strbuf_addf(b, "%zu wave%s, ", d->n_waves, plural(d->n_waves));
                plan_add_about(b, d->usec);
        }
}

/* All steps, one after the other. */
static DrainEstimate whole_drain(const PlanPage *p) {
        DrainEstimate all = {};

        if (!p->plan)
                return p->what_if->drain;
        for (size_t i = 0; i < p->plan->n_steps; i++) {
                const DrainEstimate *d = &p->plan->steps[i].drain;

                all.n_waves += d->n_waves;
                all.n_pods += d->n_pods;
                all.is_endless = all.is_endless || d->is_endless;
                all.usec = usec_add(all.usec, d->usec);
        }
        return all;
}

static void add_prices(StrBuf *b, const PlanPage *p) {
        int64_t before = 0, after = 0;
        size_t n_unknown = 0;

        for (size_t i = 0; p->plan && i < p->plan->n_steps; i++) {
                const PlanStep *step = p->plan->steps + i;

                if (step->price_before_micros < 0) {
                        n_unknown += step->n_nodes;
                        continue;
                }
                before += step->price_before_micros;
                after += MAX(step->price_after_micros, (int64_t) 0);
        }
        if (before == 0)
                return;
        strbuf_addf(b, "<div><b>%.6g saved</b><span>by the prices that the pools say: the nodes that go cost %.6g, ",
                    (double) (before - after) / PRICE_MICROS, (double) before / PRICE_MICROS);
        if (after > 0)
                strbuf_addf(b, "new ones in their place %.6g", (double) after / PRICE_MICROS);
        else
                strbuf_add(b, "and nothing takes their place");
        if (n_unknown > 0)
                strbuf_addf(b, "; without %zu node%s that no offering prices", n_unknown, plural(n_unknown));
        strbuf_add(b, "</span></div>\n");
}

static void add_room_number(StrBuf *b, const PlanPage *p, const char *what, bool is_cpu) {
        PageRoom before = {}, after = {};

        for (size_t i = 0; i < p->n_nodes; i++) {
                const PageNode *n = p->nodes + i;
                const PageRoom *r = is_cpu ? &n->cpu : &n->memory;

                if (n->role != PAGE_NEW)
                        before.has += r->has;
                if (n->role != PAGE_GOES)
                        after.has += r->has;
                before.before += r->before;
                after.after += r->after;
        }
        if (before.has <= 0 || after.has <= 0)
                return;
        strbuf_addf(b, "<div><b>%lld\xc2\xa0%%", (long long) page_percent(before.before, before.has));
        if (p->counts[PAGE_GOES] > 0 || p->counts[PAGE_NEW] > 0)
                strbuf_addf(b, " \xe2\x86\x92 %lld\xc2\xa0%%", (long long) page_percent(after.after, after.has));
        strbuf_addf(b, "</b><span>of the nodes&#39; %s is asked for by pods</span></div>\n", what);
}

static void add_numbers(StrBuf *b, const PlanPage *p) {
        size_t n = n_old_nodes(p), n_naked = 0;
        DrainEstimate drain = whole_drain(p);

        strbuf_addf(b, "<div class=\"numbers\">\n<div><b>%zu", n);
        if (p->counts[PAGE_GOES] > 0 || p->counts[PAGE_NEW] > 0)
                strbuf_addf(b, " \xe2\x86\x92 %zu", p->n_nodes - p->counts[PAGE_GOES]);
        strbuf_add(b, "</b><span>nodes");
        if (p->counts[PAGE_NEW] > 0)
                strbuf_addf(b, ", %zu of them new", p->counts[PAGE_NEW]);
        strbuf_add(b, "</span></div>\n");
        add_prices(b, p);
        add_room_number(b, p, "CPU", true);
        add_room_number(b, p, "memory", false);
        for (size_t i = 0; p->plan && i < p->plan->n_steps; i++)
                n_naked += p->plan->steps[i].n_naked;
        if (drain.n_pods > 0) {
                strbuf_addf(b, "<div><b>%zu</b><span>pod%s to evict", drain.n_pods, plural(drain.n_pods));
                if (n_naked > 0)
                        strbuf_addf(b, "; %zu without a controller would not come again", n_naked);
                strbuf_add(b, "</span></div>\n<div><b>");
                if (drain.is_endless)
                        strbuf_add(b, "drain blocked</b><span>by a PodDisruptionBudget that allows no eviction now</span></div>\n");
                else {
                        plan_add_about(b, drain.usec);
                        strbuf_addf(b, "</b><span>to drain%s, in %zu wave%s: PodDisruptionBudgets say how many pods go at once</span></div>\n",
                                    p->plan ? " all of them, one step after the other" : "", drain.n_waves, plural(drain.n_waves));
                }
        }
        strbuf_add(b, "</div>\n");
}

static void add_legend(StrBuf *b, const PlanPage *p) {
        strbuf_add(b, "<p class=\"dim\">A bar is what one node has; the filled part is what its pods ask for (their requests, not what they really use).</p>\n<ul class=\"legend\">"
                      "<li><i class=\"keep\"></i>in use before and after</li>");
        if (p->counts[PAGE_GOES] > 0)
                strbuf_add(b, "<li><i class=\"leave\"></i>leaves this node</li>");
        if (p->n_moves + p->n_waiting > 0)
                strbuf_add(b, "<li><i class=\"come\"></i>comes to this node</li>");
        strbuf_add(b, "<li><i class=\"free\"></i>free</li></ul>\n");
}

/* -- tables --------------------------------------------------------------------------------------------- */

static void add_steps(StrBuf *b, const PlanPage *p) {
        size_t n = p->plan ? p->plan->n_steps : 0;

        if (n == 0)
                return;
        strbuf_add(b, "<h2>In this order</h2>\n<div class=\"wide\"><table class=\"steps\"><tr><th class=\"n\">Step</th><th>Nodes</th><th>Method</th><th>Why</th><th>Drain</th></tr>\n");
        for (size_t i = 0; i < MIN(n, (size_t) STEPS_MAX); i++) {
                const PlanStep *step = p->plan->steps + i;

                strbuf_addf(b, "<tr><td class=\"n\">%zu</td><td>", i + 1);
                add_names(b, p, step->nodes, step->n_nodes);
                strbuf_addf(b, "</td><td>%s: %s</td><td>%s", plan_method_to_string(step->method), page_method_words(step->method),
                            step->n_nodes > 1 ? "of the first: " : "");
                markup_add_text(b, step->n_nodes > 0 ? strempty(step->why[0]) : "", SENTENCE_COLUMNS);
                if (step->replacement_like) {
                        strbuf_add(b, "; first one new node, like ");
                        markup_add_text(b, step->replacement_like, NAME_COLUMNS);
                }
                strbuf_add(b, "</td><td>");
                add_drain(b, &step->drain);
                if (step->drain.pdb) {
                        strbuf_addf(b, " (%s", step->drain.is_endless ? "by PodDisruptionBudget " : "the narrowest PodDisruptionBudget is ");
                        markup_add_textf(b, NAME_COLUMNS, "%s/%s", step->drain.pdb->pdb->object.meta.ns, step->drain.pdb->pdb->object.meta.name);
                        strbuf_add(b, ")");
                }
                strbuf_add(b, "</td></tr>\n");
        }
        strbuf_add(b, "</table></div>\n");
        if (n > STEPS_MAX)
                strbuf_addf(b, "<p class=\"dim\">%zu more step%s in -o json.</p>\n", n - STEPS_MAX, n - STEPS_MAX == 1 ? " is" : "s are");
}

static void add_moves(StrBuf *b, const PlanPage *p) {
        size_t n = p->n_moves + p->n_waiting;

        if (n == 0)
                return;
        strbuf_add(b, "<h2>Where the pods go</h2>\n<p class=\"dim\">One way that works; kube-scheduler may find another.</p>\n");
        plan_flow_add(b, p);
        if (p->n_waiting > 0)
                strbuf_addf(b, "<p>%zu more pod%s that wait%s for a node (pending, or on a node that is leaving already) %s another.</p>\n",
                            p->n_waiting, plural(p->n_waiting), p->n_waiting == 1 ? "s" : "", p->n_waiting == 1 ? "has a place on a node that goes, and finds" : "have places on nodes that go, and find");
        strbuf_addf(b, "<details><summary>All of them as a table (%zu)</summary><div class=\"wide\"><table><tr><th>Pod</th><th>From</th><th>To</th></tr>\n", n);
        for (size_t i = 0; i < MIN(n, (size_t) MOVES_MAX); i++) {
                const PlanMove *m = &p->moves[i].move;
                const ObjectMeta *pod = &scene_pod(p->scene, m->pod)->object.meta;
                _cleanup_strbuf_ StrBuf from = {};

                plan_add_from(&from, p->scene, m);
                b->failed = b->failed || from.failed;
                strbuf_add(b, "<tr><td>");
                markup_add_textf(b, 2 * NAME_COLUMNS, "%s/%s", pod->ns, pod->name);
                strbuf_add(b, "</td><td>");
                markup_add_text(b, strbuf_str(&from), NAME_COLUMNS);
                strbuf_add(b, "</td><td>");
                markup_add_text(b, scene_node_name(p->scene, m->to), NAME_COLUMNS);
                strbuf_add(b, "</td></tr>\n");
        }
        strbuf_add(b, "</table></div>");
        if (n > MOVES_MAX)
                strbuf_addf(b, "<p class=\"dim\">%zu more %s in -o json.</p>", n - MOVES_MAX, n - MOVES_MAX == 1 ? "is" : "are");
        strbuf_add(b, "</details>\n");
}

/* Nodes that lack it: how many, some of their names, and one sentence. */
static void add_code(StrBuf *b, const PlanPage *p, GateCode code) {
        uint32_t named[NAMED_MAX];
        const char *sentence = NULL;
        size_t n = 0;

        for (size_t i = 0; i < p->n_nodes; i++) {
                const GateFindings *f = p->nodes[i].lacks;

                for (size_t k = 0; f && k < f->n_items; k++) {
                        if (f->items[k].code != code)
                                continue;
                        if (n < NAMED_MAX)
                                named[n] = p->nodes[i].number;
                        sentence = sentence ?: f->items[k].text;
                        n++;
                        break;
                }
        }
        if (n == 0)
                return;
        strbuf_addf(b, "<tr><td class=\"n\">%zu</td><td>%s<br/><code>%s</code></td><td>", n, page_code_words(code), gate_code_to_string(code));
        markup_add_text(b, sentence, SENTENCE_COLUMNS);
        strbuf_add(b, "</td><td>");
        add_names(b, p, named, MIN(n, (size_t) NAMED_MAX));
        if (n > NAMED_MAX)
                strbuf_addf(b, " and %zu more", n - NAMED_MAX);
        strbuf_add(b, "</td></tr>\n");
}

static void add_each_reason(StrBuf *b, const PlanPage *p) {
        size_t n = 0;

        for (size_t i = 0; i < p->n_nodes; i++) {
                const PageNode *node = p->nodes + i;

                if (!node->lacks || node->lacks->n_items == 0 || n++ >= STAYING_MAX)
                        continue;
                strbuf_add(b, "<tr><td>");
                markup_add_text(b, node->name, NAME_COLUMNS);
                strbuf_addf(b, "</td><td>%s</td><td>", strempty(node->method));
                for (size_t k = 0; k < MIN(node->lacks->n_items, (size_t) NAMED_MAX); k++) {
                        strbuf_addf(b, "%s<code>%s</code> ", k > 0 ? "<br/>" : "", gate_code_to_string(node->lacks->items[k].code));
                        markup_add_text(b, node->lacks->items[k].text, SENTENCE_COLUMNS);
                }
                strbuf_add(b, "</td></tr>\n");
        }
        strbuf_add(b, "</table></div>");
        if (n > STAYING_MAX)
                strbuf_addf(b, "<p class=\"dim\">%zu more node%s in -o json.</p>", n - STAYING_MAX, n - STAYING_MAX == 1 ? " is" : "s are");
}

static void add_reasons(StrBuf *b, const PlanPage *p) {
        size_t n = 0;

        for (size_t i = 0; i < p->n_nodes; i++)
                n += p->nodes[i].lacks && p->nodes[i].lacks->n_items > 0;
        if (n == 0)
                return;
        strbuf_add(b, p->plan || p->counts[PAGE_REFUSED] == 0 ? "<h2>Why the other nodes stay</h2>\n" : "<h2>What stands in the way</h2>\n");
        if (p->plan)
                strbuf_add(b, "<p class=\"dim\">Each by the method that comes nearest to removing it. A node may have several reasons.</p>\n");
        strbuf_add(b, "<div class=\"wide\"><table class=\"reasons\"><tr><th class=\"n\">Nodes</th><th>Reason</th><th>In full, of the first</th><th>Which</th></tr>\n");
        for (GateCode c = 0; c < _GATE_CODE_MAX; c++)
                add_code(b, p, c);
        strbuf_addf(b, "</table></div>\n<details><summary>Each of these nodes with all its reasons (%zu)</summary><div class=\"wide\"><table><tr><th>Node</th><th>%s</th><th>Reasons</th></tr>\n",
                    n, p->plan ? "Method" : "");
        add_each_reason(b, p);
        strbuf_add(b, "</details>\n");
}

/* -- the page ------------------------------------------------------------------------------------------- */

static char *page_html(const PlanPage *p) {
        _cleanup_strbuf_ StrBuf b = {};

        strbuf_add(&b, "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; style-src &#39;unsafe-inline&#39;; img-src data:\"/>\n"
                       "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<link rel=\"icon\" href=\"data:,\"/>\n<title>vesper plan: ");
        add_headline(&b, p);
        strbuf_addf(&b, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
        add_headline(&b, p);
        strbuf_add(&b, "</h1>\n");
        add_lead(&b, p);
        add_numbers(&b, p);
        strbuf_add(&b, "<h2>Nodes</h2>\n");
        add_legend(&b, p);
        plan_cards_add(&b, p);
        add_steps(&b, p);
        add_moves(&b, p);
        add_reasons(&b, p);
        strbuf_add(&b, "<footer>Made by vesperctl plan -o html. The same snapshot gives the same page; -o json has all figures and reasons.</footer>\n"
                       "</main>\n</body>\n</html>\n");
        return strbuf_steal(&b);
}

char *plan_html(const DisruptionPlan *p, char *const *unknown) {
        _cleanup_(plan_page_done) PlanPage page = {};

        return plan_page_of_plan(p, unknown, &page) < 0 ? NULL : page_html(&page);
}

char *what_if_html(const DisruptionScene *s, const WhatIf *w, const GateFindings *lacks_of_others, char *const *unknown) {
        _cleanup_(plan_page_done) PlanPage page = {};

        return plan_page_of_what_if(s, w, lacks_of_others, unknown, &page) < 0 ? NULL : page_html(&page);
}
