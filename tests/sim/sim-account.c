/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-account.h"

#include <ctype.h>

#include "hashmap.h"
#include "sim-events.h"
#include "sim-process.h"
#include "strv.h"

#define LINES_MAX 20000u

/* Lines of one actor about one subject: an API object, a call to the cloud, or its log. */
typedef struct Line {
        char *subject;
        char *text;  /* without times and durations */
        char *exact; /* times as seconds since the round began, and durations as they are */
        bool is_unordered; /* pods and Events: their order differs from round to round */
        size_t at;
} Line;

/* The output of one verb of vesperctl. */
typedef struct Output {
        char *verb, *when;
        char *text, *exact; /* as those of a Line */
} Output;

struct SimAccount {
        SimWorld *world;
        Hashmap *names; /* name of a machine, claim or coordinator -> the word that replaces it, static */
        size_t machine;
        usec_t begun_wall_usec;
        Line *lines;
        size_t n_lines, allocated;
        Output *outputs;
        size_t n_outputs, outputs_allocated;
        StrBuf text;
        char **calls;
        Hashmap *known_calls;
        char *answered; /* the call that gets the test's answer instead of its own; NULL: none */
        HttpFault answer;
        unsigned n_answers;
};

SimAccount *sim_account_new(SimWorld *w) {
        SimAccount *a = MUST(new0(SimAccount, 1));
        int r = hashmap_new(0, &a->names);

        if (r >= 0)
                r = hashmap_new(0, &a->known_calls);
        assert(r >= 0);
        a->world = w;
        return a;
}

static void drop_lines(SimAccount *a) {
        for (size_t i = 0; i < a->n_lines; i++) {
                free(a->lines[i].subject);
                free(a->lines[i].text);
                free(a->lines[i].exact);
        }
        a->n_lines = 0;
        for (size_t i = 0; i < a->n_outputs; i++) {
                free(a->outputs[i].verb);
                free(a->outputs[i].when);
                free(a->outputs[i].text);
                free(a->outputs[i].exact);
        }
        a->n_outputs = 0;
}

SimAccount *sim_account_free(SimAccount *a) {
        if (!a)
                return NULL;
        drop_lines(a);
        free(a->lines);
        free(a->outputs);
        strbuf_done(&a->text);
        hashmap_free(a->names);
        hashmap_free(a->known_calls);
        strv_free(a->calls);
        free(a->answered);
        return mfree(a);
}

static void name(SimAccount *a, const char *of_world, const char *word) {
        int r;

        if (!of_world || !*of_world)
                return;
        r = hashmap_replace(a->names, of_world, (void *) word, NULL);
        assert(r >= 0);
}

/* Learns the names of machines, claims and coordinators. Called before each line, because claims and boots
 * come and go. */
static void name_machines(SimAccount *a) {
        SimWorld *w = a->world;

        for (size_t i = 0; i < w->n_machines; i++) {
                _cleanup_free_ char *vm = sim_events_vm(i);
                bool is_own = i == a->machine;

                name(a, w->machines[i].node, is_own ? "NODE" : "OTHER");
                name(a, w->machines[i].instance, is_own ? "INSTANCE" : "OTHER-INSTANCE");
                if (w->azure)
                        name(a, vm, is_own ? "VM" : "OTHER-VM");
                name(a, w->machines[i].boot_id, is_own ? "BOOT" : "OTHER-BOOT");
                name(a, fj_string(sim_world_claim(w, i), "metadata", "name", NULL), is_own ? "CLAIM" : "OTHER-CLAIM");
        }
        for (size_t i = 0; i < w->n_processes; i++)
                if (w->processes[i]->kind == SIM_COORDINATOR && w->processes[i]->life)
                        name(a, w->processes[i]->life->identity, "COORDINATOR");
}

void sim_account_begin(SimAccount *a, size_t machine) {
        drop_lines(a);
        a->calls = strv_free(a->calls);
        hashmap_clear(a->known_calls);
        a->machine = machine;
        a->begun_wall_usec = sim_world_wall(a->world) / USEC_PER_SEC * USEC_PER_SEC; /* the API has whole seconds */
        name_machines(a);
}

/* -- words ------------------------------------------------------------------------------------- */

/* Returns the size of the text's first characters that match the pattern; 0: they do not. In a pattern '0'
 * matches a digit, 'x' a hexadecimal digit, any other character itself. */
static size_t match(const char *text, const char *end, const char *pattern) {
        const char *p = text;

        for (; *pattern; pattern++, p++)
                if (p >= end || (*pattern == '0'   ? !isdigit((unsigned char) *p)
                                 : *pattern == 'x' ? !isxdigit((unsigned char) *p)
                                                   : *p != *pattern))
                        return 0;
        return (size_t) (p - text);
}

static size_t match_time(const char *p, const char *end) {
        size_t n = match(p, end, "0000-00-00T00:00:00");

        if (n == 0)
                return match(p, end, "00:00:00");
        if (p + n < end && p[n] == '.')
                for (n++; p + n < end && isdigit((unsigned char) p[n]); n++)
                        ;
        return p + n < end && p[n] == 'Z' ? n + 1 : n;
}

static size_t match_uid(const char *p, const char *end) {
        return match(p, end, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
}

/* Matches a number with its unit: "12 s", "1.5 s", "3min", "3m". */
static size_t match_duration(const char *p, const char *end) {
        static const char *const units[] = { "ms", "min", "s", "m", "h", "d", "seconds", "minutes", "hours" };
        const char *q = p;

        for (; q < end && (isdigit((unsigned char) *q) || *q == '.'); q++)
                ;
        if (q == p)
                return 0;
        if (q < end && *q == ' ')
                q++;
        for (size_t i = 0; i < ELEMENTSOF(units); i++) {
                size_t n = strlen(units[i]);

                if ((size_t) (end - q) >= n && memcmp(q, units[i], n) == 0 && (q + n == end || !isalnum((unsigned char) q[n])))
                        return (size_t) (q - p) + n;
        }
        return 0;
}

static bool is_joint(char c) {
        return c == '-' || c == '_';
}

static bool is_of_word(char c) {
        return isalnum((unsigned char) c) || is_joint(c);
}

static bool is_hex(const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isxdigit((unsigned char) p[i]))
                        return false;
        return n > 0;
}

static bool is_number(const char *p, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isdigit((unsigned char) p[i]))
                        return false;
        return n > 0;
}

/* Returns true for the name of a pod of the workloads "web" and "w0" to "w7": five letters, or a number,
 * follow the workload's name. */
static bool is_pod(const char *p, size_t n) {
        size_t prefix = n > 4 && memcmp(p, "web-", 4) == 0 ? 4 : n > 3 && p[0] == 'w' && isdigit((unsigned char) p[1]) && p[2] == '-' ? 3 : 0;

        return prefix > 0 && (n == prefix + 5 || is_number(p + prefix, n - prefix));
}

/* Returns the replacement of a word, or NULL if the word stays. key: the word before it. */
static const char *replace(const SimAccount *a, const char *p, size_t n, const char *key) {
        static const char *const counted[] = { "resourceVersion", "timeoutSeconds", "observedGeneration", "generation" };
        _cleanup_free_ char *word = MUST(strndup(p, n));
        const char *known = hashmap_get(a->names, word);

        if (known)
                return known;
        if (is_pod(p, n))
                return "POD";
        if (match_uid(p, p + n) == n)
                return "UID";
        if ((n >= 10 && is_hex(p, n)) || streq(key, "ReceiptHandle"))
                return "ID";
        if (is_number(p, n))
                for (size_t i = 0; i < ELEMENTSOF(counted); i++)
                        if (streq(key, counted[i]))
                                return "N";
        return NULL;
}

static size_t word_size(const char *p, const char *end) {
        size_t n = 0;

        for (; p + n < end && is_of_word(p[n]); n++)
                ;
        return n;
}

/* Adds the word at p, or its replacement. If only a part of a word like "i-0123-terminate-4567" is known,
 * replaces the longest known beginning. Returns the size of the text that was handled. */
static size_t add_word(const SimAccount *a, const char *p, const char *end, const char *key, StrBuf *b) {
        size_t size = word_size(p, end);

        for (size_t n = size; n > 0; n--) {
                const char *word = n == size || is_joint(p[n]) ? replace(a, p, n, key) : NULL;

                if (!word)
                        continue;
                strbuf_add(b, word);
                while (streq(key, "ReceiptHandle") && p + n < end && p[n] == '=') /* padding of base64 */
                        n++;
                return n;
        }
        for (size_t n = 1; n < size; n++)
                if (is_joint(p[n]))
                        size = n;
        strbuf_add_n(b, p, size);
        return size;
}

static void add_time(const SimAccount *a, const char *p, size_t n, StrBuf *b) {
        char text[64];
        usec_t usec;

        snprintf(text, sizeof(text), "%.*s", (int) n, p);
        if (rfc3339_parse(text, &usec) < 0)
                strbuf_add(b, "TIME");
        else
                strbuf_addf(b, "T%+lld", ((long long) usec - (long long) a->begun_wall_usec) / (long long) USEC_PER_SEC);
}

/* Adds the time, duration or word that begins at p. Returns its size. */
static size_t add_value(const SimAccount *a, const char *p, const char *end, const char *key, bool is_exact, StrBuf *b) {
        size_t n;

        if ((n = match_time(p, end)) > 0) {
                if (is_exact)
                        add_time(a, p, n, b);
                else
                        strbuf_add(b, "TIME");
        } else if (!is_exact && match_uid(p, end) == 0 && (n = match_duration(p, end)) > 0)
                strbuf_add(b, "DURATION");
        else
                n = add_word(a, p, end, key, b);
        return n;
}

static char *normalize(const SimAccount *a, const char *text, size_t size, bool is_exact) {
        const char *p = text, *end = text + size;
        _cleanup_strbuf_ StrBuf b = { 0 };
        char key[32] = "";

        while (p < end) {
                size_t n;

                if (match(p, end, "%xx")) {
                        strbuf_add_n(&b, p, n = 3);
                } else if (!is_of_word(*p) || is_joint(*p)) {
                        strbuf_add_char(&b, *p == '\n' ? ' ' : *p);
                        n = 1;
                } else {
                        n = add_value(a, p, end, key, is_exact, &b);
                        snprintf(key, sizeof(key), "%.*s", (int) n, p);
                }
                p += n;
        }
        assert(!b.failed);
        return MUST(strdup(strbuf_str(&b)));
}

/* -- lines ------------------------------------------------------------------------------------- */

/* Returns the name of the process's role. All coordinators share one name, because another one may lead, or
 * answer the webhook, in the next round. */
static const char *actor(const SimAccount *a, const SimProcess *p) {
        if (p->kind == SIM_COORDINATOR)
                return "coordinator";
        return p->machine == &a->world->machines[a->machine] ? "agent" : "other agents";
}

static void add(SimAccount *a, const SimProcess *p, const char *about, bool is_unordered, const char *text, size_t size) {
        _cleanup_free_ char *subject = normalize(a, about, strlen(about), false);
        int r = GREEDY_REALLOC(a->lines, a->allocated, a->n_lines + 1);

        assert(r >= 0 && a->n_lines < LINES_MAX);
        a->lines[a->n_lines] = (Line){
                .subject = MUST(strf("%s: %s", actor(a, p), subject)),
                .text = normalize(a, text, size, false),
                .exact = normalize(a, text, size, true),
                .at = a->n_lines,
                .is_unordered = is_unordered || strstr(subject, "POD"),
        };
        a->n_lines++;
}

static bool is_left_out(const HttpRequest *request) {
        static const char *const of_the_moment[] = { "/leases", "watch=true", "limit=500", "169.254.169.254",
                                                     "//127.0.0.1", "/127.0.0.1:10250", "/version" };

        for (size_t i = 0; i < ELEMENTSOF(of_the_moment); i++)
                if (strstr(request->url, of_the_moment[i]))
                        return true;
        return request->body_size > 0 && memmem(request->body, request->body_size, "WaitTimeSeconds", strlen("WaitTimeSeconds"));
}

/* Adds a line like "Normal Drained of Node n1, count 1: ..." */
static void add_event(SimAccount *a, const SimProcess *p, const HttpRequest *request) {
        cJSON *event = cJSON_ParseWithLength(request->body, request->body_size);
        _cleanup_free_ char *line = MUST(strf("%s %s of %s %s, count %d: %s", strempty(fj_string(event, "type", NULL)),
                                              strempty(fj_string(event, "reason", NULL)),
                                              strempty(fj_string(event, "involvedObject", "kind", NULL)),
                                              strempty(fj_string(event, "involvedObject", "name", NULL)),
                                              (int) cJSON_GetNumberValue(fj_get(event, "count", NULL)),
                                              strempty(fj_string(event, "message", NULL))));

        add(a, p, "Events", true, line, strlen(line));
        cJSON_Delete(event);
}

/* Returns a text like "PATCH nodes/n1/status", without the host, the API group and the query that names the
 * writer. */
static char *subject_of(const HttpRequest *request) {
        static const char *const prefixes[] = { "api/api/v1/", "api/apis/vesper.sh/v1alpha1/", "api/apis/policy/v1/", "api/" };
        const char *url = request->url + strcspn(request->url, ":"), *writer;

        url += strspn(url, ":/");
        for (size_t i = 0; i < ELEMENTSOF(prefixes); i++)
                if (startswith(url, prefixes[i])) {
                        url += strlen(prefixes[i]);
                        break;
                }
        writer = strstr(url, "?fieldManager=");
        return MUST(strf("%s %.*s", http_method_to_string(request->method), (int) (writer ? (size_t) (writer - url) : strlen(url)), url));
}

static void add_request(SimAccount *a, const SimProcess *p, const HttpRequest *request) {
        _cleanup_free_ char *subject = NULL;

        if (is_left_out(request))
                return;
        if (request->method == HTTP_POST && strstr(request->url, "/events?")) {
                add_event(a, p, request);
                return;
        }
        subject = subject_of(request);
        add(a, p, subject, false, request->body ? request->body : "", request->body_size);
}

/* -- other answers ----------------------------------------------------------------------------- */

/* Returns true if requests with other bodies are other calls. Evictions of one pod, Events, and writes of
 * one status are one call each. */
static bool tells_bodies_apart(const HttpRequest *request) {
        return !is_left_out(request) && request->method != HTTP_GET && !strstr(request->url, "/events?") && !strstr(request->url, "/eviction") &&
               !strstr(request->url, "/status?");
}

static char *call_of(const SimAccount *a, const SimProcess *p, const HttpRequest *request) {
        _cleanup_free_ char *subject = subject_of(request), *text = NULL;

        text = MUST(strf("%s: %s %.*s", actor(a, p), subject, tells_bodies_apart(request) ? (int) request->body_size : 0,
                         request->body ? (const char *) request->body : ""));
        return normalize(a, text, strlen(text), false);
}

bool sim_account_request(SimAccount *a, const SimProcess *p, const HttpRequest *request, HttpFault *ret_fault) {
        _cleanup_free_ char *call = NULL;
        int r;

        if (!a)
                return false;
        name_machines(a);
        add_request(a, p, request);
        call = call_of(a, p, request);
        if (!hashmap_contains(a->known_calls, call)) {
                r = hashmap_put(a->known_calls, call, a);
                if (r >= 0)
                        r = strv_extend(&a->calls, call);
                assert(r >= 0);
        }
        if (a->n_answers == 0 || !streq(call, a->answered))
                return false;
        a->n_answers--;
        *ret_fault = a->answer;
        return true;
}

char *const *sim_account_calls(const SimAccount *a) {
        static char *const none[] = { NULL };

        return a->calls ? a->calls : none;
}

void sim_account_answer(SimAccount *a, const char *call, const HttpFault *fault, unsigned n) {
        free(a->answered);
        a->answered = MUST(strdup(call));
        a->answer = *fault;
        a->n_answers = n;
}

unsigned sim_account_answers_left(const SimAccount *a) {
        return a->n_answers;
}

/* Sorts the members by name. A merge patch adds a member at the end, so the order shows which write came
 * first. */
static void sort_members(cJSON *o) {
        cJSON *sorted = cJSON_IsObject(o) ? cJSON_CreateObject() : NULL, *child;

        cJSON_ArrayForEach (child, o)
                sort_members(child);
        while (sorted && o->child) {
                const cJSON *first = o->child;

                cJSON_ArrayForEach (child, o)
                        if (strcmp(child->string, first->string) < 0)
                                first = child;
                cJSON_AddItemToObject(sorted, first->string, cJSON_DetachItemFromObjectCaseSensitive(o, first->string));
        }
        if (sorted) {
                o->child = sorted->child;
                sorted->child = NULL;
                cJSON_Delete(sorted);
        }
}

/* Adds the object without resourceVersion, managedFields and generation, which only show how often it
 * changed. */
static void add_object(const SimAccount *a, const FakeResource *resource, const cJSON *object, StrBuf *b) {
        static const char *const of_metadata[] = { "resourceVersion", "managedFields", "generation" };
        cJSON *o = fj_copy(object), *metadata = fj_object(o, "metadata");
        char *text, *line;

        for (size_t i = 0; i < ELEMENTSOF(of_metadata); i++)
                cJSON_DeleteItemFromObjectCaseSensitive(metadata, of_metadata[i]);
        sort_members(o);
        text = MUST(cJSON_PrintUnformatted(o));
        line = normalize(a, text, strlen(text), false);
        strbuf_addf(b, "%s %s\n", resource->kind, line);
        free(line);
        free(text);
        cJSON_Delete(o);
}

char *sim_account_state(SimAccount *a) {
        static const FakeResourceId resources[] = { FAKE_NODES, FAKE_NODECLAIMS, FAKE_NODEPOOLS, FAKE_NDBS };
        _cleanup_strbuf_ StrBuf b = { 0 };

        name_machines(a);
        for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
                const cJSON *o;

                FAKE_FOREACH (o, a->world->cluster, resources[i], NULL)
                        add_object(a, fake_resource(resources[i]), o, &b);
        }
        for (size_t i = 0; i < a->world->n_machines; i++)
                strbuf_addf(&b, "machine %zu %s\n", i, strempty(fake_ec2_state(a->world->ec2, a->world->machines[i].instance)));
        assert(!b.failed);
        return MUST(strdup(strbuf_str(&b)));
}

/* -- log and service manager ------------------------------------------------------------------- */

void sim_account_log(SimAccount *a, const SimProcess *p, LogLevel level, const char *text) {
        _cleanup_free_ char *line = NULL;

        if (!a)
                return;
        name_machines(a);
        line = MUST(strf("<%d> %s", (int) level, text));
        add(a, p, "log", true, line, strlen(line));
}

void sim_account_notify(SimAccount *a, const SimProcess *p, const char *text) {
        if (!a)
                return;
        name_machines(a);
        add(a, p, "notify", false, text, strlen(text));
}

/* -- output of vesperctl ----------------------------------------------------------------------- */

/* Adds a line without its spaces at the end. Behind its first word each run of spaces becomes two. */
static void add_output_line(StrBuf *b, const char *line) {
        const char *p = line + strspn(line, " ");

        if (*p == '\0')
                return;
        strbuf_add(b, "        ");
        strbuf_add_n(b, line, (size_t) (p - line));
        while (*p) {
                size_t word = strcspn(p, " "), spaces = strspn(p + word, " ");

                strbuf_add_n(b, p, word);
                p += word + spaces;
                if (*p)
                        strbuf_add_n(b, "  ", MIN(spaces, (size_t) 2));
        }
        strbuf_add_char(b, '\n');
}

static char *normalize_output(const SimAccount *a, char *const *lines, bool is_exact) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        STRV_FOREACH(line, lines) {
                _cleanup_free_ char *normal = normalize(a, *line, strlen(*line), is_exact);

                add_output_line(&b, normal);
        }
        assert(!b.failed);
        return MUST(strdup(strbuf_str(&b)));
}

static const Output *last_output(const SimAccount *a, const char *verb) {
        for (size_t i = a->n_outputs; i > 0; i--)
                if (streq(a->outputs[i - 1].verb, verb) && *a->outputs[i - 1].text)
                        return &a->outputs[i - 1];
        return NULL;
}

void sim_account_add_output(SimAccount *a, const char *verb, const char *when, const char *text) {
        _cleanup_strv_free_ char **lines = NULL;
        const Output *last;
        Output o;
        int r;

        name_machines(a);
        r = strv_split(text, "\n", &lines);
        if (r >= 0)
                r = GREEDY_REALLOC(a->outputs, a->outputs_allocated, a->n_outputs + 1);
        assert(r >= 0);
        o = (Output){
                .verb = MUST(strdup(verb)),
                .when = MUST(strdup(when)),
                .text = normalize_output(a, lines, false),
                .exact = normalize_output(a, lines, true),
        };
        last = last_output(a, verb);
        if (last && streq(last->text, o.text))
                *o.text = *o.exact = '\0';
        a->outputs[a->n_outputs++] = o;
}

static void add_outputs(SimAccount *a, bool has_times) {
        for (size_t i = 0; i < a->n_outputs; i++) {
                const Output *o = &a->outputs[i];
                const char *text = has_times ? o->exact : o->text;

                strbuf_addf(&a->text, "%s after: %s\n%s", o->verb, o->when, *text ? text : "        (as before)\n");
        }
}

/* -- the text ---------------------------------------------------------------------------------- */

static int compare(const void *x, const void *y) {
        const Line *a = x, *b = y;
        int r = strcmp(a->subject, b->subject);

        if (r == 0 && a->is_unordered && b->is_unordered)
                r = strcmp(a->text, b->text);
        return r != 0 ? r : a->at < b->at ? -1 : 1;
}

const char *sim_account_text(SimAccount *a, bool has_times) {
        const char *subject = "";

        qsort(a->lines, a->n_lines, sizeof(*a->lines), compare);
        strbuf_done(&a->text);
        a->text = (StrBuf){ 0 };
        for (size_t i = 0; i < a->n_lines; i++) {
                const Line *l = &a->lines[i];

                if (!streq(l->subject, subject))
                        strbuf_addf(&a->text, "%s\n", l->subject);
                strbuf_addf(&a->text, "        %s\n", *l->text == 0 ? "(no body)" : has_times ? l->exact : l->text);
                subject = l->subject;
        }
        add_outputs(a, has_times);
        assert(!a->text.failed);
        return strbuf_str(&a->text);
}
