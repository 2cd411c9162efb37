/* SPDX-License-Identifier: Apache-2.0 */
#include "rig-rounds.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "page.h"

#define N_NOTES_MAX 512u
/* Tolerance for the time of a line in another round: intervals have jitter, and watches some delay. */
#define SLACK_USEC (3 * USEC_PER_SEC)
#define SETTLE_USEC (6 * USEC_PER_MINUTE)
#define QUIET_USEC (10 * USEC_PER_MINUTE)

typedef struct Note {
        char *channel; /* "log", "patch nodes/status" */
        char *text;
        usec_t after_usec; /* since the begin of the round */
        size_t index;
} Note;

struct RigNotes {
        const RigRounds *rounds;
        const char *node;
        usec_t begin_usec;
        Note notes[N_NOTES_MAX];
        size_t n;
        unsigned n_writes;
};

typedef struct RigNotes RigNotes;

static void notes_done(RigNotes *s) {
        for (size_t i = 0; i < s->n; i++) {
                free(s->notes[i].channel);
                free(s->notes[i].text);
        }
        free(s);
}

/* Replaces each match of the pattern. Takes text. Free the result. */
static char *replace_pattern(char *text, const char *pattern, const char *with) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        const char *at = text;
        regmatch_t m;
        regex_t re;

        assert_int_equal(regcomp(&re, pattern, REG_EXTENDED), 0);
        for (; regexec(&re, at, 1, &m, 0) == 0; at += m.rm_eo) {
                assert_true(m.rm_eo > m.rm_so);
                strbuf_addf(&b, "%.*s%s", (int) m.rm_so, at, with);
        }
        strbuf_add(&b, at);
        regfree(&re);
        free(text);
        return MUST(strbuf_steal(&b));
}

static char *without_names(const char *node, const char *text) {
        static const struct {
                const char *pattern, *with;
        } rows[] = {
                { "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]+)?Z", "TIME" },
                { "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID" },
                { "\"resourceVersion\":\"[0-9]+\"", "\"resourceVersion\":RV" },
                { "\\.[0-9a-f]{13,}", ".EVENT" },
                { "i-0[0-9a-f]{16}", "INSTANCE" },
                { "nc-[0-9a-f]{16}", "CLAIM" },
                { "[ab]-[0-9]+\"", "LEADER\"" },
        };
        char *s = replace_pattern(MUST(strdup(text)), node, "NODE");

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                s = replace_pattern(s, rows[i].pattern, rows[i].with);
        return s;
}

static void note(CoordinatorRig *r, const char *channel, const char *text) {
        RigNotes *s = r->notes;

        assert_true(s->n < N_NOTES_MAX);
        s->notes[s->n] = (Note) { .channel = MUST(strdup(channel)),
                                  .text = without_names(s->node, text),
                                  .after_usec = virtual_time_now(r->w.time) - s->begin_usec,
                                  .index = s->n };
        s->n++;
}

void rig_note_log(CoordinatorRig *r, const char *text) {
        note(r, "log", text);
}

/* Returns the body with its conditions sorted by type, because their order in the list means nothing. Free
 * it. */
static char *body_text(const HttpExchange *x) {
        _cleanup_free_ char *text = MUST(strndup(strempty(x->body), x->body_size));
        cJSON *body = cJSON_Parse(text), *conditions = body ? (cJSON *) fj_get(body, "status", "conditions",
                                                            NULL) : NULL;
        cJSON *sorted = conditions ? cJSON_CreateArray() : NULL;
        char *printed;

        while (sorted && cJSON_GetArraySize(conditions) > 0) {
                int first = 0;

                for (int i = 1; i < cJSON_GetArraySize(conditions); i++)
                        if (strcmp(fj_string(cJSON_GetArrayItem(conditions, i), "type", NULL),
                                   fj_string(cJSON_GetArrayItem(conditions, first), "type", NULL)) < 0)
                                first = i;
                cJSON_AddItemToArray(sorted, cJSON_DetachItemFromArray(conditions, first));
        }
        if (sorted)
                cJSON_ReplaceItemInObject((cJSON *) fj_get(body, "status", NULL), "conditions", sorted);
        printed = body ? MUST(cJSON_PrintUnformatted(body)) : MUST(strdup(text));
        cJSON_Delete(body);
        return printed;
}

static void on_request(const FakeRequest *q, FakeApiFault *ret_fault, void *userdata) {
        bool is_read = q->verb == FAKE_GET || q->verb == FAKE_LIST || q->verb == FAKE_WATCH;
        _cleanup_free_ char *channel = NULL, *body = NULL, *text = NULL;
        CoordinatorRig *r = userdata;

        if (r->notes->rounds->fault)
                r->notes->rounds->fault(q, ret_fault, r->notes->rounds->fault_userdata);
        if (!streq_ptr(q->user.name, "vesper-coordinator") || (q->resource &&
                                                            q->resource->id == FAKE_LEASES) ||
            (is_read && (!q->selected_name || q->resource->id != FAKE_NODES)))
                return;
        r->notes->n_writes += !is_read;
        channel = MUST(strf("%s %s%s%s", q->method, strempty(q->plural), q->subresource ? "/" : "",
                            strempty(q->subresource)));
        body = body_text(q->x);
        text = MUST(strf("%s %s", strempty(q->name), body));
        note(r, channel, text);
}

/* -- counters ------------------------------------------------------------------------------------------- */

static double metric_before(const char *page, const char *line, size_t size) {
        for (const char *at = page; (at = strstr(at, "\nvesper_")); at++)
                if (strncmp(at + 1, line, size) == 0)
                        return strtod(at + 1 + size, NULL);
        return 0;
}

/* Notes the counters of reboots, repairs and budgets that have grown since the given metrics page. */
static void note_counters(CoordinatorRig *r, const char *before) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, rig_leader(r)->coordinator, HTTP_GET,
                                         "/metrics");

        for (const char *at = p.body; (at = strstr(at, "\nvesper_")); at++) {
                size_t size = strcspn(at + 1, " ");
                _cleanup_free_ char *name = MUST(strndup(at + 1, size)), *text = NULL;
                double grown = strtod(at + 1 + size, NULL) - metric_before(before, at + 1, size);

                if (!strstr(name, "_total") || grown == 0 ||
                    (!strstr(name, "reboot") && !strstr(name, "repair") && !strstr(name, "budget")))
                        continue;
                text = MUST(strf("%s +%g", name, grown));
                note(r, "counter", text);
        }
}

static char *counters(CoordinatorRig *r) {
        _cleanup_page_ Page p = page_ask(coordinator_handle, rig_leader(r)->coordinator, HTTP_GET,
                                         "/metrics");

        return MUST(strdup(p.body));
}

/* -- rounds --------------------------------------------------------------------------------------------- */

static int by_channel(const void *a, const void *b) {
        const Note *x = a, *y = b;
        int c = strcmp(x->channel, y->channel);

        return c != 0 ? c : x->index < y->index ? -1 : x->index > y->index;
}

static void run(CoordinatorRig *r, const RigRounds *rounds, usec_t usec) {
        if (rounds->run)
                rounds->run(r, usec);
        else
                rig_run(r, usec);
}

static RigNotes *play_round(CoordinatorRig *r, const RigRounds *rounds, size_t round) {
        _cleanup_free_ char *before = counters(r);
        RigNotes *s = MUST(new0(RigNotes, 1));
        unsigned n_writes;

        *s = (RigNotes) { .rounds = rounds, .node = rounds->nodes[round],
                          .begin_usec = virtual_time_now(r->w.time) };
        r->notes = s;
        fake_api_set_fault(r->api, on_request, r);
        rounds->play(r, s->node);
        note_counters(r, before);
        n_writes = s->n_writes;
        run(r, rounds, QUIET_USEC);
        assert_int_equal(s->n_writes, n_writes);
        fake_api_set_fault(r->api, NULL, NULL);
        r->notes = NULL;
        qsort(s->notes, s->n, sizeof(Note), by_channel);
        return s;
}

static void print_round(const RigNotes *s) {
        for (size_t i = 0; i < s->n; i++)
                print_message("    %7.1f  %s: %s\n", (double) s->notes[i].after_usec / USEC_PER_SEC,
                              s->notes[i].channel,
                              s->notes[i].text);
}

/* Returns the index of the first line in which the rounds differ; the size of the longer list if none
 * does. */
static size_t first_difference(const RigNotes *a, const RigNotes *b) {
        size_t n = MAX(a->n, b->n);

        for (size_t i = 0; i < n; i++) {
                const Note *x = a->notes + i, *y = b->notes + i;

                if (i >= MIN(a->n, b->n) || !streq(x->channel, y->channel) || !streq(x->text, y->text) ||
                    MAX(x->after_usec, y->after_usec) - MIN(x->after_usec, y->after_usec) > SLACK_USEC)
                        return i;
        }
        return n;
}

static void compare(const RigNotes *first, const RigNotes *other, const char *what) {
        size_t i = first_difference(first, other);

        if (i == MAX(first->n, other->n))
                return;
        print_message("  the first round:\n");
        print_round(first);
        print_message("  %s:\n", what);
        print_round(other);
        fail_msg("%s differs from the first round in line %zu", what, i + 1);
}

void rig_rounds(CoordinatorRig *r, const RigRounds *rounds) {
        RigNotes *notes[3];

        for (size_t i = 0; i < ELEMENTSOF(notes); i++) {
                if (i == 2) {
                        rig_stop(r, 0);
                        rig_start(r, 0);
                }
                if (i != 1 && rounds->begin) {
                        run(r, rounds, SETTLE_USEC);
                        rounds->begin(r);
                }
                run(r, rounds, SETTLE_USEC);
                notes[i] = play_round(r, rounds, i);
        }
        assert_true(notes[0]->n > 0);
        if (getenv("TEST_TRACE"))
                print_round(notes[0]);
        compare(notes[0], notes[1], "the second round");
        compare(notes[0], notes[2], "the round after the restart");
        for (size_t i = 0; i < ELEMENTSOF(notes); i++)
                notes_done(notes[i]);
}
