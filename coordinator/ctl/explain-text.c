/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "ctl-say.h"
#include "explain.h"
#include "json.h"
#include "strv.h"

/* -- for people ----------------------------------------------------------------------------------------- */

/* A line of its own, of which nothing moves the terminal's cursor. */
static void add_line(StrBuf *b, const char *fmt, ...) _printf_(2, 3);
static void add_line(StrBuf *b, const char *fmt, ...) {
        size_t before = b->size;
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(b, fmt, ap);
        va_end(ap);
        ctl_make_plain(b, before);
        strbuf_add_char(b, '\n');
}

/* "2. BlockedByPDB: PodDisruptionBudget web/web, for 5m" */
static void add_title(StrBuf *b, const ExplainCause *c, size_t number, usec_t now_usec) {
        _cleanup_strbuf_ StrBuf age = {};

        if (c->since_usec > 0 && c->since_usec <= now_usec)
                ctl_add_age(&age, now_usec - c->since_usec);
        add_line(b, "%zu. %s: %s %s%s%s%s%s%s", number, c->reason, c->kind, strempty(c->ns), c->ns ? "/" : "", c->name,
                 age.size > 0 ? ", for " : "", strbuf_str(&age), c->holds ? "" : " (holds nothing now)");
}

static void add_cause(StrBuf *b, const ExplainCause *c, size_t number, usec_t now_usec) {
        strbuf_add_char(b, '\n');
        add_title(b, c, number, now_usec);
        if (c->message)
                add_line(b, "   %s", c->message);
        if (c->command) {
                strbuf_add(b, "   To change that:\n");
                add_line(b, "       %s", c->command);
        }
        if (c->says)
                add_line(b, "   %s", c->says);
}

char *explain_text(const ExplainFacts *f, const ExplainCauses *c) {
        const ExplainCause *first = explain_causes_first(c);
        const char *name = f->node_name ?: f->claim_name;
        bool is_node = f->node_name;
        _cleanup_strbuf_ StrBuf b = {};

        if (first)
                add_line(&b, "%s %s is held, first by %s %s%s%s (%s).", is_node ? "Node" : kube_node_claim_kind.kind, name, first->kind,
                         strempty(first->ns), first->ns ? "/" : "", first->name, first->reason);
        else
                add_line(&b, "Nothing holds %s %s%s.", is_node ? "node" : kube_node_claim_kind.kind, name,
                         strv_length(f->unknown) > 0 ? ", as far as could be read" : "");
        for (size_t i = 0; i < c->n; i++)
                add_cause(&b, c->list + i, i + 1, f->now_usec);
        if (strv_length(f->unknown) > 0)
                strbuf_add(&b, "\nNot known:\n");
        STRV_FOREACH(u, f->unknown)
                add_line(&b, "   %s", *u);
        return strbuf_steal(&b);
}

/* -- JSON ----------------------------------------------------------------------------------------------- */

static void add_cause_json(JsonWriter *w, const ExplainCause *c) {
        json_open_object(w, NULL);
        json_add_string(w, "reason", c->reason);
        json_add_bool(w, "holds", c->holds);
        json_open_object(w, "object");
        json_add_string(w, "kind", c->kind);
        json_add_string(w, "namespace", c->ns);
        json_add_string(w, "name", c->name);
        json_close_object(w);
        json_add_string(w, "message", c->message);
        json_open_object(w, "figures");
        for (size_t i = 0; i < c->n_figures; i++)
                json_add_int64(w, c->figures[i].name, c->figures[i].value);
        json_close_object(w);
        json_add_time(w, "since", c->since_usec);
        if (c->command || c->says) {
                json_open_object(w, "fix");
                json_add_string(w, "command", c->command);
                json_add_string(w, "says", c->says);
                json_close_object(w);
        }
        json_close_object(w);
}

char *explain_json(const ExplainFacts *f, const ExplainCauses *c) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_string(w, "node", f->node_name);
        json_add_string(w, "nodeClaim", f->claim_name);
        json_add_bool(w, "held", explain_causes_first(c));
        json_open_array(w, "causes");
        for (size_t i = 0; i < c->n; i++)
                add_cause_json(w, c->list + i);
        json_close_array(w);
        json_open_array(w, "unknown");
        STRV_FOREACH(u, f->unknown)
                json_add_string(w, NULL, *u);
        json_close_array(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}
