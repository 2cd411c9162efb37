/* SPDX-License-Identifier: Apache-2.0 */
#include "grown-json.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cmocka-test.h"
#include "string-util.h"

typedef struct Grower {
        size_t place;  /* that is to grow */
        size_t n_seen; /* places so far */
        Growth growth;
        size_t bytes;
        bool grown;
        char *path; /* of the place, once it was seen */
} Grower;

static const char *const growth_table[_GROWTH_MAX] = {
        [GROW_COPIES] = "copies",
        [GROW_DISTINCT] = "distinct copies",
        [GROW_EMPTY_TEXTS] = "empty texts",
        [GROW_EMPTY_OBJECTS] = "empty objects",
        [GROW_NUMBERS] = "numbers",
        [GROW_EMPTY_MEMBERS] = "empty members",
        [GROW_MEMBERS] = "members",
        [GROW_TEXT] = "text",
};

const char *growth_to_string(Growth g) {
        return growth_table[g];
}

/* A time or a status stays what it is, so that a reader does not give up at the first element. */
static bool text_is_of_a_table(const char *s) {
        return (isdigit((unsigned char) *s) && strchr(s, ':')) || streq(s, "True") || streq(s, "False") || streq(s, "In") || streq(s, "NotIn") ||
               streq(s, "Exists") || streq(s, "DoesNotExist");
}

/* number > 0: behind each text. */
static void write_copy(const Json *v, size_t number, const char *key, JsonWriter *w) {
        const char *s = json_string_or_null(v);

        if (json_is_object(v) || json_is_array(v)) {
                (json_is_object(v) ? json_open_object : json_open_array)(w, key);
                JSON_FOREACH (i, v)
                        write_copy(i, number, json_is_object(v) ? json_key(i) : NULL, w);
                (json_is_object(v) ? json_close_object : json_close_array)(w);
        } else if (s && number > 0 && !text_is_of_a_table(s))
                json_addf(w, key, "%s%zu", s, number);
        else
                json_add_value(w, key, v);
}

static char *copy_text(const Json *v) {
        return v ? json_format(v) : NULL;
}

/* How many of `text` (and a comma) are as many bytes as wanted. */
static size_t n_of(const Grower *g, size_t text_bytes) {
        return g->bytes / (text_bytes + 1) + 1;
}

static void grow_list(Grower *g, const Json *list, JsonWriter *w) {
        static const char *const raw[_GROWTH_MAX] = { [GROW_EMPTY_TEXTS] = "\"\"", [GROW_EMPTY_OBJECTS] = "{}", [GROW_NUMBERS] = "0" };
        const Json *first = json_first(list);
        _cleanup_free_ char *text = raw[g->growth] ? strdup(raw[g->growth]) : copy_text(first);

        if (!text || (g->growth > GROW_NUMBERS))
                return;
        g->grown = true;
        for (size_t i = 1, n = n_of(g, strlen(text)); i <= n; i++)
                if (g->growth == GROW_DISTINCT)
                        write_copy(first, i, NULL, w);
                else
                        json_add_raw(w, NULL, text);
}

static void grow_map(Grower *g, const Json *map, JsonWriter *w) {
        const Json *first = json_first(map);
        _cleanup_free_ char *text = g->growth == GROW_EMPTY_MEMBERS ? strdup("\"\"") : copy_text(first);

        if (!text || (g->growth != GROW_EMPTY_MEMBERS && g->growth != GROW_MEMBERS))
                return;
        g->grown = true;
        for (size_t i = 0, n = n_of(g, strlen(text) + 8); i < n; i++) {
                char key[32];

                snprintf(key, sizeof(key), "k%zu", i);
                json_add_raw(w, key, text);
        }
}

/* Returns true if the next place is the one that is to grow. */
static bool is_the_place(Grower *g, const char *path) {
        if (g->n_seen++ != g->place)
                return false;
        g->path = strdup(path);
        assert_non_null(g->path);
        return true;
}

static void write_value(Grower *g, const Json *v, const char *path, const char *key, JsonWriter *w);

static void write_members(Grower *g, const Json *v, const char *path, JsonWriter *w) {
        JSON_FOREACH (i, v) {
                _cleanup_free_ char *below =
                        json_is_object(v) ? strf("%s%s%s", path, *path ? "." : "", json_key(i)) : strdup(path);

                assert_non_null(below);
                write_value(g, i, below, json_is_object(v) ? json_key(i) : NULL, w);
        }
}

static char *write_inner_text(Grower *g, const char *s, const char *path) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *below = strf("%s()", path);

        if ((*s != '{' && *s != '[') || json_parse(s, strlen(s), SIZE_MAX, &doc, NULL) < 0)
                return strdup(s);
        assert_return_code(json_writer_new(&w), 0);
        write_value(g, json_root(doc), below, NULL, w);
        return json_writer_steal(w, NULL);
}

static void write_text(Grower *g, const char *s, const char *path, const char *key, JsonWriter *w) {
        bool here = is_the_place(g, path);
        _cleanup_free_ char *text = NULL;

        if (here && g->growth == GROW_TEXT) {
                size_t n = strlen(s);

                text = malloc(n + g->bytes + 1);
                assert_non_null(text);
                memcpy(text, s, n);
                memset(text + n, 'x', g->bytes);
                text[n + g->bytes] = 0;
                g->grown = true;
        } else
                text = write_inner_text(g, s, path);
        assert_non_null(text);
        json_add_string(w, key, text);
}

static void write_value(Grower *g, const Json *v, const char *path, const char *key, JsonWriter *w) {
        if (json_is_object(v)) {
                bool here = is_the_place(g, path);

                json_open_object(w, key);
                write_members(g, v, path, w);
                if (here)
                        grow_map(g, v, w);
                json_close_object(w);
        } else if (json_is_array(v)) {
                bool here = is_the_place(g, path);

                json_open_array(w, key);
                write_members(g, v, path, w);
                if (here)
                        grow_list(g, v, w);
                json_close_array(w);
        } else if (json_is_string(v))
                write_text(g, json_string_or_null(v), path, key, w);
        else
                json_add_value(w, key, v);
}

char *grown_json(const char *template, size_t place, Growth g, size_t bytes, char **ret_path) {
        Grower grower = { .place = place, .growth = g, .bytes = bytes };
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(json_parse(template, strlen(template), SIZE_MAX, &doc, NULL), 0);
        assert_return_code(json_writer_new(&w), 0);
        write_value(&grower, json_root(doc), "", NULL, w);
        text = json_writer_steal(w, NULL);
        assert_non_null(text);
        *ret_path = grower.path;
        return grower.grown ? TAKE_PTR(text) : NULL;
}
