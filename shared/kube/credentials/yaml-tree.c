/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml-tree.h"

#include <yaml.h>

#include "string-util.h"

typedef struct YamlBuilder {
        yaml_parser_t parser;
        YamlTree *path[YAML_DEPTH_MAX]; /* open lists and maps, the innermost last */
        size_t depth;
        YamlTree *root;
        char *key; /* read, waits for its value */
        size_t error_line;
        char *error;
} YamlBuilder;

static void scalar_done(YamlTree *t) {
        erase_and_free(t->text, t->text_size);
        free(t->key);
        free(t);
}

/* Children are unhooked before their parent goes, so no recursion: depth is bounded, but length is not. */
YamlTree *yaml_tree_free(YamlTree *t) {
        YamlTree *list = t;

        if (t)
                t->next = NULL;
        while (list) {
                YamlTree *head = list;

                if (head->first) {
                        head->last->next = head->next;
                        list = head->first;
                } else
                        list = head->next;
                scalar_done(head);
        }
        return NULL;
}

static bool text_is_null(const char *s) {
        static const char *const words[] = { "", "~", "null", "Null", "NULL" };

        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (streq(s, words[i]))
                        return true;
        return false;
}

bool yaml_tree_is_null(const YamlTree *t) {
        return !t || (t->type == YAML_SCALAR && t->plain && text_is_null(t->text));
}

static YamlTree *find_key(const YamlTree *t, const char *key) {
        for (YamlTree *i = t->first; i; i = i->next)
                if (streq(i->key, key))
                        return i;
        return NULL;
}

const YamlTree *yaml_tree_get(const YamlTree *t, const char *key) {
        YamlTree *found = t && t->type == YAML_MAP ? find_key(t, key) : NULL;

        return yaml_tree_is_null(found) ? NULL : found;
}

static int builder_refuse(YamlBuilder *b, size_t line, char *message) {
        if (!message)
                return -ENOMEM;
        free(b->error);
        b->error = message;
        b->error_line = line;
        return -EBADMSG;
}

static void builder_append(YamlBuilder *b, YamlTree *t) {
        YamlTree *parent = b->depth > 0 ? b->path[b->depth - 1] : NULL;

        if (!parent) {
                assert(!b->root);
                b->root = t;
                return;
        }
        if (parent->type == YAML_MAP)
                t->key = TAKE_PTR(b->key);
        if (parent->last)
                parent->last->next = t;
        else
                parent->first = t;
        parent->last = t;
        parent->n_children++;
}

/* The innermost open node is a map, and no key of it waits. */
static bool key_expected(const YamlBuilder *b) {
        return b->depth > 0 && b->path[b->depth - 1]->type == YAML_MAP && !b->key;
}

static int builder_key(YamlBuilder *b, const yaml_event_t *e) {
        const char *text = (const char *) e->data.scalar.value;
        size_t line = e->start_mark.line + 1;

        if (strlen(text) != e->data.scalar.length)
                return builder_refuse(b, line, strdup("a key contains a NUL"));
        if (find_key(b->path[b->depth - 1], text)) {
                _cleanup_free_ char *clean = str_sanitize(text, 64);

                return builder_refuse(b, line, clean ? strf("the key '%s' is there twice", clean) : NULL);
        }
        if (b->path[b->depth - 1]->n_children == YAML_KEYS_MAX)
                return builder_refuse(b, line, strf("more than %u keys in one map", YAML_KEYS_MAX));
        b->key = strdup(text);
        return b->key ? 0 : -ENOMEM;
}

static int builder_scalar(YamlBuilder *b, const yaml_event_t *e) {
        YamlTree *t;

        if (key_expected(b))
                return builder_key(b, e);
        if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
                return builder_refuse(b, e->start_mark.line + 1, strdup("a value contains a NUL"));

        t = new0(YamlTree, 1);
        if (!t)
                return -ENOMEM;
        t->type = YAML_SCALAR;
        t->line = e->start_mark.line + 1;
        t->plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        t->text_size = e->data.scalar.length;
        t->text = memdup_str(e->data.scalar.value, t->text_size);
        if (!t->text) {
                scalar_done(t);
                return -ENOMEM;
        }
        builder_append(b, t);
        return 0;
}

static int builder_open(YamlBuilder *b, const yaml_event_t *e, YamlType type) {
        YamlTree *t;

        if (key_expected(b))
                return builder_refuse(b, e->start_mark.line + 1, strdup("a key is no text"));
        if (b->depth == YAML_DEPTH_MAX)
                return builder_refuse(b, e->start_mark.line + 1, strdup("nested too deeply"));
        t = new0(YamlTree, 1);
        if (!t)
                return -ENOMEM;
        t->type = type;
        t->line = e->start_mark.line + 1;
        builder_append(b, t);
        b->path[b->depth++] = t;
        return 0;
}

/* 1: the end. Tags other than the implied ones would say that a text is something else: refused, as no
 * kubeconfig has any. */
static int builder_event(YamlBuilder *b, const yaml_event_t *e) {
        size_t line = e->start_mark.line + 1;

        switch (e->type) {
        case YAML_SCALAR_EVENT:
                if (e->data.scalar.tag)
                        return builder_refuse(b, line, strdup("tags are not supported"));
                return builder_scalar(b, e);
        case YAML_SEQUENCE_START_EVENT:
                if (e->data.sequence_start.tag)
                        return builder_refuse(b, line, strdup("tags are not supported"));
                return builder_open(b, e, YAML_LIST);
        case YAML_MAPPING_START_EVENT:
                if (e->data.mapping_start.tag)
                        return builder_refuse(b, line, strdup("tags are not supported"));
                return builder_open(b, e, YAML_MAP);
        case YAML_SEQUENCE_END_EVENT:
        case YAML_MAPPING_END_EVENT:
                b->depth--;
                return 0;
        case YAML_ALIAS_EVENT:
                return builder_refuse(b, line, strdup("aliases (*name) are not supported"));
        case YAML_DOCUMENT_START_EVENT:
                return b->root ? builder_refuse(b, line, strdup("more than one document")) : 0;
        case YAML_STREAM_END_EVENT:
                return 1;
        case YAML_NO_EVENT:
        case YAML_STREAM_START_EVENT:
        case YAML_DOCUMENT_END_EVENT:
                return 0;
        }
        return 0;
}

static int builder_run(YamlBuilder *b) {
        for (;;) {
                yaml_event_t e;
                int r;

                if (!yaml_parser_parse(&b->parser, &e)) {
                        if (b->parser.error == YAML_MEMORY_ERROR)
                                return -ENOMEM;
                        return builder_refuse(
                                b, b->parser.problem_mark.line + 1,
                                strf("no YAML: %s", b->parser.problem ? b->parser.problem : "unreadable"));
                }
                r = builder_event(b, &e);
                if (e.type == YAML_SCALAR_EVENT)
                        explicit_bzero(e.data.scalar.value, e.data.scalar.length);
                yaml_event_delete(&e);
                if (r != 0)
                        return r;
        }
}

int yaml_tree_parse(const char *data, size_t size, YamlTree **ret, size_t *reterr_line,
                    char **reterr_message) {
        YamlBuilder b = { 0 };
        int r;

        assert(data || size == 0);
        assert(ret);
        assert(reterr_line);
        assert(reterr_message);

        if (!yaml_parser_initialize(&b.parser))
                return -ENOMEM;
        yaml_parser_set_input_string(&b.parser, (const unsigned char *) (data ? data : ""), size);
        r = builder_run(&b);
        yaml_parser_delete(&b.parser);
        free(b.key);

        if (r > 0 && !b.root) {
                b.root = new0(YamlTree, 1);
                r = b.root ? 1 : -ENOMEM;
                if (b.root) {
                        b.root->type = YAML_MAP;
                        b.root->line = 1;
                }
        }
        if (r < 0) {
                yaml_tree_free(b.root);
                *reterr_line = b.error_line;
                *reterr_message = b.error;
                return r;
        }
        free(b.error);
        *ret = b.root;
        return 0;
}
