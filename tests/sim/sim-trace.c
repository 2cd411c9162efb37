/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-trace.h"

#include <inttypes.h>
#include <stdarg.h>

#include "fake-json.h"
#include "hashmap.h"

struct SimTrace {
        const VirtualTime *time;
        usec_t start_usec;
        StrBuf text;
        size_t n_lines;
};

SimTrace *sim_trace_new(const VirtualTime *time) {
        SimTrace *t = MUST(new0(SimTrace, 1));

        t->time = time;
        t->start_usec = virtual_time_now(time);
        return t;
}

SimTrace *sim_trace_free(SimTrace *t) {
        if (!t)
                return NULL;
        strbuf_done(&t->text);
        return mfree(t);
}

void sim_trace_add(SimTrace *t, const char *who, const char *fmt, ...) {
        usec_t now = virtual_time_now(t->time) - t->start_usec;
        va_list ap;

        strbuf_addf(&t->text, "%6" PRIu64 ".%06" PRIu64 " %-14s ", now / USEC_PER_SEC, now % USEC_PER_SEC,
                    who);
        va_start(ap, fmt);
        strbuf_addv(&t->text, fmt, ap);
        va_end(ap);
        strbuf_add_char(&t->text, '\n');
        assert(!t->text.failed);
        t->n_lines++;
}

uint64_t sim_trace_hash(const SimTrace *t) {
        return hash64(strbuf_str(&t->text), t->text.size);
}

size_t sim_trace_n_lines(const SimTrace *t) {
        return t->n_lines;
}

const char *sim_trace_text(const SimTrace *t) {
        return strbuf_str(&t->text);
}

void sim_trace_print_tail(const SimTrace *t, FILE *f, size_t n_lines) {
        const char *start = strbuf_str(&t->text), *p = start + t->text.size;

        for (n_lines++; n_lines > 0 && p > start; n_lines--)
                for (p--; p > start && p[-1] != '\n'; p--)
                        ;
        fputs(p, f);
}
