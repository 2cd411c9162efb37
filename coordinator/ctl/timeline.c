/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl-say.h"
#include "marks.h"
#include "parse-util.h"
#include "strv.h"

#define LINE_BYTES_MAX (64u * 1024u)

static const char *const source_names[_TIMELINE_SOURCE_MAX] = {
        [TIMELINE_OBJECT] = "object", [TIMELINE_CONDITION] = "condition", [TIMELINE_WRITE] = "write",
        [TIMELINE_EVENT] = "event",   [TIMELINE_LOG] = "log",
};

const char *timeline_source_to_string(TimelineSource s) {
        return s < _TIMELINE_SOURCE_MAX ? source_names[s] : NULL;
}

int timeline_init(Timeline *t, const char *node) {
        *t = (Timeline){ .node = strdup(node) };
        return t->node ? 0 : -ENOMEM;
}

static void entry_done(TimelineEntry *e) {
        free(e->object);
        free(e->actor);
        free(e->reason);
        free(e->text);
        *e = (TimelineEntry){};
}

void timeline_done(Timeline *t) {
        for (size_t i = 0; i < t->n_entries; i++)
                entry_done(t->entries + i);
        free(t->entries);
        strv_free(t->missing);
        strv_free(t->successors);
        free(t->node);
        *t = (Timeline){};
}

int timeline_miss(Timeline *t, const char *sentence) {
        return strv_contains(t->missing, sentence) ? 0 : strv_extend(&t->missing, sentence);
}

/* -- taking --------------------------------------------------------------------------------------------- */

static int set_plain(char **dst, const char *s) {
        if (isempty(s))
                return 0;
        *dst = str_sanitize(s, TIMELINE_TEXT_MAX);
        return *dst ? 0 : -ENOMEM;
}

/* Texts are copied; a NULL is none. Without a time nothing is taken. */
static int add(Timeline *t, usec_t at_usec, TimelineSource source, const char *object, const char *actor,
               const char *reason, const char *text, int64_t count) {
        TimelineEntry *e;
        int r;

        if (at_usec == 0 || at_usec == USEC_INFINITY)
                return 0;
        if (t->of_source[source] >= TIMELINE_ENTRIES_MAX)
                return timeline_miss(t, "There is more than is shown here: of each source the first 20,000 entries are.");
        r = GREEDY_REALLOC(t->entries, t->allocated, t->n_entries + 1);
        if (r < 0)
                return r;
        e = t->entries + t->n_entries++;
        *e = (TimelineEntry){ .at_usec = at_usec, .source = source, .order = t->n_entries, .count = count };
        t->of_source[source]++;
        r = set_plain(&e->object, object);
        if (r >= 0)
                r = set_plain(&e->actor, actor);
        if (r >= 0)
                r = set_plain(&e->reason, reason);
        if (r >= 0)
                r = set_plain(&e->text, text);
        return r;
}

static usec_t time_of(const Json *o, const char *key) {
        const char *s = json_string_or_null(json_get(o, key));
        usec_t usec;

        return s && rfc3339_parse(s, &usec) >= 0 ? usec : 0;
}

static const char *text_of(const Json *o, const char *key) {
        return json_string_or_null(json_get(o, key));
}

static int take_condition(Timeline *t, const char *kind, const Json *c) {
        _cleanup_free_ char *text = strf("%s is %s%s%s", strempty(text_of(c, "type")), strempty(text_of(c, "status")),
                                         isempty(text_of(c, "message")) ? "" : ": ", strempty(text_of(c, "message")));

        return text ? add(t, time_of(c, "lastTransitionTime"), TIMELINE_CONDITION, kind, NULL, text_of(c, "reason"),
                          text, 0)
                    : -ENOMEM;
}

static int take_writer(Timeline *t, const char *kind, const Json *m) {
        const char *subresource = text_of(m, "subresource");
        _cleanup_free_ char *text = strf("last %s of %s%s", strempty(text_of(m, "operation")),
                                         subresource ? "its " : "it", strempty(subresource));

        return text ? add(t, time_of(m, "time"), TIMELINE_WRITE, kind, text_of(m, "manager"), NULL, text, 0) : -ENOMEM;
}

/* Returns "Node", or "NodeClaim nc-1" where the claim is a successor's. */
static char *object_name(const Timeline *t, const char *kind, const char *name) {
        if (streq_ptr(kind, "NodeClaim") && strv_contains(t->successors, strempty(name)))
                return strf("NodeClaim %s", name);
        return strdup(strempty(kind));
}

int timeline_take_object(Timeline *t, const Json *object) {
        const Json *meta = json_get(object, "metadata"), *status = json_get(object, "status");
        _cleanup_free_ char *name = object_name(t, text_of(object, "kind"), text_of(meta, "name"));
        const char *kind = strempty(name);
        int r;

        if (!name)
                return -ENOMEM;
        r = add(t, time_of(meta, "creationTimestamp"), TIMELINE_OBJECT, kind, NULL, "Created", "It was created", 0);
        if (r >= 0)
                r = add(t, time_of(meta, "deletionTimestamp"), TIMELINE_OBJECT, kind, NULL, "Deleted",
                        "Its deletion was asked for", 0);
        JSON_FOREACH(c, json_get(status, "conditions"))
                if (r >= 0)
                        r = take_condition(t, kind, c);
        JSON_FOREACH(m, json_get(meta, "managedFields"))
                if (r >= 0)
                        r = take_writer(t, kind, m);
        return r;
}

/* "Node", or "Pod web/web-1" where it is not the node itself. */
static char *event_object_name(const Timeline *t, const Json *involved) {
        const char *kind = strempty(text_of(involved, "kind")), *ns = text_of(involved, "namespace");

        if (streq(kind, "Node") || streq(kind, "NodeClaim"))
                return object_name(t, kind, text_of(involved, "name"));
        return strf("%s %s%s%s", kind, strempty(ns), ns ? "/" : "", strempty(text_of(involved, "name")));
}

int timeline_take_event(Timeline *t, const Json *event) {
        _cleanup_free_ char *object = event_object_name(t, json_get(event, "involvedObject"));
        usec_t first = time_of(event, "firstTimestamp"), last = time_of(event, "lastTimestamp");
        const char *actor = text_of(event, "reportingComponent");
        int64_t count = 0;
        int r;

        if (!object)
                return -ENOMEM;
        if (isempty(actor))
                actor = text_of(json_get(event, "source"), "component");
        (void) json_int64(json_get(event, "count"), &count);
        if (first == 0)
                first = time_of(event, "eventTime");
        r = add(t, first, TIMELINE_EVENT, object, actor, text_of(event, "reason"), text_of(event, "message"), 0);
        if (r >= 0 && last > first && count > 1)
                r = add(t, last, TIMELINE_EVENT, object, actor, text_of(event, "reason"), text_of(event, "message"),
                        count);
        return r;
}

/* "1737014400000000": microseconds, as the journal has them. */
static usec_t journal_time(const Json *line) {
        const char *s = text_of(line, "__REALTIME_TIMESTAMP");
        int64_t usec;

        return s && parse_int64(s, &usec) >= 0 && usec > 0 ? (usec_t) usec : 0;
}

int timeline_take_log_line(Timeline *t, const char *text, size_t size) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *object = NULL;
        const Json *line;
        const char *pod, *reason;
        usec_t at;
        int r;

        if (size == 0 || size > LINE_BYTES_MAX || text[0] != '{')
                return 0;
        r = json_parse(text, size, LINE_BYTES_MAX, &doc, NULL);
        if (r == -ENOMEM)
                return r;
        line = r < 0 ? NULL : json_root(doc);
        if (!streq_ptr(text_of(line, "NODE"), t->node) && !streq_ptr(text_of(line, "node"), t->node))
                return 0;
        at = journal_time(line);
        if (at == 0)
                at = time_of(line, "time");
        pod = text_of(line, "POD") ?: text_of(line, "pod");
        object = pod ? strf("Pod %s", pod) : strdup("Node");
        if (!object)
                return -ENOMEM;
        reason = text_of(line, "REASON") ?: text_of(line, "reason");
        if (reason && strchr(reason, ' '))
                reason = NULL; /* a phrase, which the message has, too */
        r = add(t, at, TIMELINE_LOG, object, text_of(line, "SYSLOG_IDENTIFIER") ?: text_of(line, "logger"), reason, text_of(line, "MESSAGE") ?: text_of(line, "msg"), 0);
        return r < 0 ? r : at > 0;
}

/* -- order ---------------------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b) {
        const TimelineEntry *x = a, *y = b;

        if (x->at_usec != y->at_usec)
                return x->at_usec < y->at_usec ? -1 : 1;
        return x->order < y->order ? -1 : 1;
}

static bool say_the_same(const TimelineEntry *a, const TimelineEntry *b) {
        return a->at_usec == b->at_usec && a->count == b->count && streq_ptr(a->object, b->object) &&
               streq_ptr(a->reason, b->reason) && streq_ptr(a->text, b->text);
}

void timeline_sort(Timeline *t) {
        size_t n = 0;

        if (t->n_entries == 0)
                return;
        qsort(t->entries, t->n_entries, sizeof(TimelineEntry), by_time);
        for (size_t i = 0; i < t->n_entries; i++) {
                if (n > 0 && say_the_same(t->entries + n - 1, t->entries + i))
                        entry_done(t->entries + i);
                else if (n++ != i) {
                        t->entries[n - 1] = t->entries[i];
                        t->entries[i] = (TimelineEntry){};
                }
        }
        t->n_entries = n;
}

/* -- text and JSON -------------------------------------------------------------------------------------- */

char *timeline_text(const Timeline *t) {
        _cleanup_(ctl_table_done) CtlTable table = CTL_TABLE(5);
        StrBuf b = {};

        strbuf_addf(&b, "Node %s\n", t->node);
        if (t->n_entries > 0) {
                static const char *const heads[] = { "TIME", "SOURCE", "OBJECT", "BY", "WHAT" };

                for (size_t i = 0; i < ELEMENTSOF(heads); i++)
                        ctl_table_add(&table, heads[i]);
        }
        for (size_t i = 0; i < t->n_entries; i++) {
                const TimelineEntry *e = t->entries + i;
                char when[RFC3339_MAX], often[32] = "";

                rfc3339_format_micro(e->at_usec, when);
                if (e->count > 1)
                        snprintf(often, sizeof(often), " (%lld times)", (long long) e->count);
                ctl_table_add(&table, when);
                ctl_table_add(&table, source_names[e->source]);
                ctl_table_add(&table, e->object);
                ctl_table_add(&table, e->actor);
                ctl_table_addf(&table, "%s%s%s%s", strempty(e->reason), e->reason ? ": " : "", strempty(e->text), often);
        }
        ctl_table_print(&table, &b);
        STRV_FOREACH(sentence, t->missing)
                strbuf_addf(&b, "\n%s", *sentence);
        if (t->missing)
                strbuf_add_char(&b, '\n');
        return strbuf_steal(&b);
}

char *timeline_json(const Timeline *t) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_string(w, "node", t->node);
        json_open_array(w, "entries");
        for (size_t i = 0; i < t->n_entries; i++) {
                const TimelineEntry *e = t->entries + i;
                char when[RFC3339_MAX];

                rfc3339_format_micro(e->at_usec, when);
                json_open_object(w, NULL);
                json_add_string(w, "time", when);
                json_add_string(w, "source", source_names[e->source]);
                json_add_string(w, "object", e->object);
                json_add_string(w, "actor", e->actor);
                json_add_string(w, "reason", e->reason);
                json_add_string(w, "text", e->text);
                if (e->count > 1)
                        json_add_int64(w, "count", e->count);
                json_close_object(w);
        }
        json_close_array(w);
        json_open_array(w, "missing");
        STRV_FOREACH(sentence, t->missing)
                json_add_string(w, NULL, *sentence);
        json_close_array(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}
