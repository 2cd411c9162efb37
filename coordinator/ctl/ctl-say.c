/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-say.h"

#include <ctype.h>

#include "kube-kinds.h"

/* -- what did not work ---------------------------------------------------------------------------------- */

/* "Node 'worker-1'", "pods in namespace 'web'" */
static void add_target(StrBuf *b, const KubeTarget *t) {
        if (t->ns && t->name)
                strbuf_addf(b, "%s '%s/%s'", t->kind->kind, t->ns, t->name);
        else if (t->name)
                strbuf_addf(b, "%s '%s'", t->kind->kind, t->name);
        else if (t->ns)
                strbuf_addf(b, "%s in namespace '%s'", t->kind->plural, t->ns);
        else
                strbuf_add(b, t->kind->plural);
}

/* Of the two that packaging has for people (manifests/coordinator/people.yaml). tests/unit/check-verbs.py holds it to them. */
static const char *shipped_role(const char *verb, const KubeTarget *t) {
        if (t->kind == &kube_lease_kind && !streq_ptr(t->name, "vesper-coordinator"))
                return NULL; /* they name the objects of a usual installation */
        if (t->kind == &kube_namespace_kind && t->name && !streq(t->name, "vesper-system"))
                return NULL;
        return startswith(verb, "get") || startswith(verb, "list") || startswith(verb, "watch") ? "vesper-viewer" : "vesper-operator";
}

static void add_permission(StrBuf *b, const char *verb, const KubeTarget *t) {
        const char *role = shipped_role(verb, t);

        strbuf_addf(b, "a role with {apiGroups: [\"%s\"], resources: [%s%s%s], verbs: [%s]} would allow it",
                    strempty(t->kind->group), t->kind->plural, t->subresource ? "/" : "",
                    strempty(t->subresource), verb);
        if (role)
                strbuf_addf(b, ", as vesper's ClusterRole %s does", role);
}

/* Acting as another is refused before what was to be done is looked at: 'cannot impersonate resource "users"'. */
static bool add_impersonation(StrBuf *b, const ApiError *e) {
        const char *what = e->message ? strstr(e->message, " cannot impersonate resource \"") : NULL;

        if (!what)
                return false;
        what = strchr(what, '"') + 1;
        strbuf_addf(b, "you may not act as another (--as): %s; a role with {apiGroups: [\"%s\"], resources: [%.*s], verbs: [impersonate]} "
                       "would allow it", e->message, startswith(what, "uids") ? "authentication.k8s.io" : "", (int) strcspn(what, "\""), what);
        return true;
}

char *ctl_explain_error(const ApiError *e, const char *verb, const KubeTarget *t) {
        _cleanup_strbuf_ StrBuf b = {};

        assert(e && verb && t && t->kind);
        if (e->http == 404 && !t->name) {
                strbuf_addf(&b, "this cluster does not know %s", t->kind->plural);
                if (streq(t->kind->group, "vesper.sh"))
                        strbuf_add(&b, ": install vesper's CustomResourceDefinitions first");
        } else if (e->http == 404) {
                strbuf_add(&b, "there is no ");
                add_target(&b, t);
        } else if (e->http == 403 && add_impersonation(&b, e)) {
                ; /* all is said */
        } else if (e->http == 403) {
                strbuf_addf(&b, "you may not %s ", verb);
                add_target(&b, t);
                strbuf_addf(&b, ": %s; ", strempty(e->message));
                add_permission(&b, verb, t);
        } else if (e->http == 401)
                strbuf_addf(&b, "the API server does not accept this credential: %s", strempty(e->message));
        else if (e->http == 0)
                strbuf_addf(&b, "the API server does not answer: %s. Which one is asked say --kubeconfig (or KUBECONFIG) and --context",
                            strempty(e->message));
        else {
                strbuf_addf(&b, "failed to %s ", verb);
                add_target(&b, t);
                strbuf_addf(&b, ": %s", strempty(e->message));
        }
        return strbuf_steal(&b);
}

/* -- ages, cells, tables -------------------------------------------------------------------------------- */

void ctl_add_age(StrBuf *b, usec_t usec) {
        static const struct {
                usec_t unit_usec, below_usec;
                char letter;
        } units[] = {
                { USEC_PER_SEC, 2 * USEC_PER_MINUTE, 's' },
                { USEC_PER_MINUTE, 2 * USEC_PER_HOUR, 'm' },
                { USEC_PER_HOUR, 2 * USEC_PER_DAY, 'h' },
                { USEC_PER_DAY, USEC_INFINITY, 'd' },
        };

        for (size_t i = 0; i < ELEMENTSOF(units); i++)
                if (usec < units[i].below_usec) {
                        strbuf_addf(b, "%llu%c", (unsigned long long) (usec / units[i].unit_usec),
                                    units[i].letter);
                        return;
                }
}

/* By its first byte; what is no sequence is one byte. */
static size_t sequence_size(const char *s, size_t size) {
        unsigned char c = (unsigned char) *s;
        size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

        return n <= size && utf8_is_valid(s, n) ? n : 1;
}

void ctl_make_plain(StrBuf *b, size_t from) {
        for (size_t i = from, n; b->data && !b->failed && i < b->size; i += n) {
                n = sequence_size(b->data + i, b->size - i);
                if (utf8_is_control(b->data + i, n) || (n == 1 && (unsigned char) b->data[i] >= 0x80))
                        memset(b->data + i, '?', n);
        }
}

static void take_cell(CtlTable *t, StrBuf *b) {
        char *cell;

        if (b->size == 0)
                strbuf_add(b, "-");
        ctl_make_plain(b, 0);
        cell = strbuf_steal(b);
        if (!cell || GREEDY_REALLOC(t->cells, t->allocated, t->n_cells + 1) < 0) {
                t->failed = true;
                free(cell);
                return;
        }
        t->cells[t->n_cells++] = cell;
}

void ctl_table_add(CtlTable *t, const char *cell) {
        _cleanup_strbuf_ StrBuf b = {};

        strbuf_add(&b, strempty(cell));
        take_cell(t, &b);
}

void ctl_table_addf(CtlTable *t, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = {};
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        take_cell(t, &b);
}

static size_t column_width(const CtlTable *t, size_t column) {
        size_t width = 0;

        for (size_t i = column; i < t->n_cells; i += t->n_columns)
                width = MAX(width, strlen(t->cells[i]));
        return width;
}

void ctl_table_print(const CtlTable *t, StrBuf *b) {
        _cleanup_free_ size_t *width = new0(size_t, t->n_columns);

        assert(t->n_cells % t->n_columns == 0 || t->failed);
        if (!width || t->failed) {
                b->failed = true;
                return;
        }
        for (size_t c = 0; c < t->n_columns; c++)
                width[c] = column_width(t, c);
        for (size_t i = 0; i < t->n_cells; i++) {
                size_t c = i % t->n_columns;
                bool is_last = c + 1 == t->n_columns;

                strbuf_add(b, t->cells[i]);
                for (size_t k = strlen(t->cells[i]); !is_last && k < width[c] + 3; k++)
                        strbuf_add_char(b, ' ');
                if (is_last)
                        strbuf_add_char(b, '\n');
        }
}

void ctl_table_done(CtlTable *t) {
        for (size_t i = 0; i < t->n_cells; i++)
                free(t->cells[i]);
        free(t->cells);
        *t = (CtlTable)CTL_TABLE(t->n_columns);
}

/* -- YAML ----------------------------------------------------------------------------------------------- */

/* What no reader of YAML, old or new, takes for anything but this text. */
static bool is_plain_scalar(const char *s) {
        static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "null", "y", "n", "~" };

        if (!isalpha((unsigned char) *s))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcasecmp(s, words[i]) == 0)
                        return false;
        for (const char *p = s; *p; p++)
                if (!isalnum((unsigned char) *p) && !strchr("-_./", *p))
                        return false;
        return true;
}

static void add_scalar(StrBuf *b, const Json *v) {
        const char *s = json_string_or_null(v);
        _cleanup_free_ char *text = NULL;

        if (s && is_plain_scalar(s)) {
                strbuf_add(b, s);
                return;
        }
        text = json_format(v); /* JSON's scalars, {} and [] are YAML's */
        if (text)
                strbuf_add(b, text);
        else
                b->failed = true;
}

static void add_key(StrBuf *b, const char *key) {
        if (is_plain_scalar(key))
                strbuf_add(b, key);
        else {
                strbuf_add_char(b, '"');
                for (const char *p = key; *p; p++)
                        strbuf_addf(b, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
                strbuf_add_char(b, '"');
        }
        strbuf_add_char(b, ':');
}

/* The cursor stands where the first line is to go on. */
static void add_yaml(StrBuf *b, const Json *v, unsigned depth) {
        bool is_first = true;

        if (json_size(v) == 0) {
                add_scalar(b, v);
                strbuf_add_char(b, '\n');
                return;
        }
        JSON_FOREACH(child, v) {
                bool nested = json_size(child) > 0;

                if (!is_first)
                        for (unsigned i = 0; i < depth; i++)
                                strbuf_add(b, "  ");
                is_first = false;
                if (json_is_array(v))
                        strbuf_add(b, "- ");
                else {
                        add_key(b, json_key(child));
                        strbuf_add_char(b, nested ? '\n' : ' ');
                        for (unsigned i = 0; nested && i <= depth; i++)
                                strbuf_add(b, "  ");
                }
                add_yaml(b, child, depth + 1);
        }
}

void ctl_yaml(StrBuf *b, const Json *value) {
        add_yaml(b, value, 0);
}

char *ctl_format_json(const char *json, bool yaml) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_strbuf_ StrBuf b = {};

        if (!yaml)
                return strf("%s\n", json);
        if (json_parse(json, strlen(json), SIZE_MAX, &doc, NULL) < 0)
                return NULL;
        ctl_yaml(&b, json_root(doc));
        return strbuf_steal(&b);
}
