/* SPDX-License-Identifier: Apache-2.0 */
#include "explain-cause.h"

#include <assert.h>
#include <ctype.h>

static void cause_done(ExplainCause *c) {
        free(c->reason);
        free(c->ns);
        free(c->name);
        free(c->message);
        free(c->command);
        free(c->says);
        *c = (ExplainCause){};
}

void explain_causes_done(ExplainCauses *c) {
        for (size_t i = 0; i < c->n; i++)
                cause_done(c->list + i);
        free(c->list);
        cause_done(&c->scratch);
        *c = (ExplainCauses){};
}

const ExplainCause *explain_causes_first(const ExplainCauses *c) {
        for (size_t i = 0; i < c->n; i++)
                if (c->list[i].holds)
                        return c->list + i;
        return NULL;
}

static void copy(ExplainCauses *c, char **to, const char *text) {
        if (free_and_strdup(to, text) < 0)
                c->failed = true;
}

ExplainCause *explain_cause_add(ExplainCauses *c, bool holds, const char *reason, const char *kind,
                                const char *ns, const char *name, usec_t since_usec) {
        ExplainCause *cause = &c->scratch;

        assert(c && reason && kind && name);
        if (GREEDY_REALLOC(c->list, c->allocated, c->n + 1) >= 0)
                cause = c->list + c->n++;
        else {
                c->failed = true;
                cause_done(cause);
        }
        *cause = (ExplainCause){ .holds = holds, .kind = kind, .since_usec = since_usec };
        copy(c, &cause->reason, reason);
        copy(c, &cause->ns, ns);
        copy(c, &cause->name, name);
        return cause;
}

static void add_text(ExplainCauses *c, char **to, const char *fmt, va_list ap) _printf_(3, 0);
static void add_text(ExplainCauses *c, char **to, const char *fmt, va_list ap) {
        StrBuf b = {};

        if (*to)
                strbuf_addf(&b, "%s ", *to);
        strbuf_addv(&b, fmt, ap);
        free(*to);
        *to = strbuf_steal(&b);
        if (!*to)
                c->failed = true;
}

void explain_cause_say(ExplainCauses *c, ExplainCause *cause, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        add_text(c, &cause->message, fmt, ap);
        va_end(ap);
}

void explain_cause_advise(ExplainCauses *c, ExplainCause *cause, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        add_text(c, &cause->says, fmt, ap);
        va_end(ap);
}

void explain_cause_set_command(ExplainCauses *c, ExplainCause *cause, const char *fmt, ...) {
        va_list ap;

        assert(!cause->command);
        va_start(ap, fmt);
        add_text(c, &cause->command, fmt, ap);
        va_end(ap);
}

void explain_cause_count(ExplainCause *cause, const char *name, int64_t value) {
        assert(cause->n_figures < EXPLAIN_FIGURES_MAX);
        cause->figures[cause->n_figures++] = (ExplainFigure){ name, value };
}

bool explain_is_word(const char *s) {
        if (isempty(s) || *s == '-')
                return false;
        for (; *s; s++)
                if (!isascii(*s) || (!isalnum((unsigned char) *s) && !strchr("._/:-", *s)))
                        return false;
        return true;
}
