/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-selector.h"

#include <ctype.h>
#include <stdlib.h>

#include "strv.h"

void fake_selector_done(FakeSelector *s) {
        for (size_t i = 0; i < s->n_items; i++) {
                free(s->items[i].key);
                strv_free(s->items[i].values);
        }
        free(s->items);
        *s = (FakeSelector){ 0 };
}

/* Takes key and values. */
static void add(FakeSelector *s, char *key, FakeOperator operator, char ** values) {
        int r = GREEDY_REALLOC(s->items, s->allocated, s->n_items + 1);

        assert(r >= 0);
        s->items[s->n_items++] = (FakeRequirement){ MUST(key), operator, values };
}

static char **one(const char *value, size_t size) {
        _cleanup_free_ char *copy = MUST(memdup_str(value, size));
        char **l = NULL;
        int r = strv_extend(&l, copy);

        assert(r >= 0);
        return l;
}

/* -- labels -------------------------------------------------------------------------------------------- */

static const char *skip_space(const char *p) {
        while (isspace((unsigned char) *p))
                p++;
        return p;
}

/* A key or a value: everything up to a character of the grammar. */
static const char *word_end(const char *p) {
        while (*p && !isspace((unsigned char) *p) && !strchr(",=!()", *p))
                p++;
        return p;
}

static bool take_word(const char **p, const char *word) {
        size_t n = strlen(word);

        if (strncmp(*p, word, n) != 0 || word_end(*p) != *p + n)
                return false;
        *p = skip_space(*p + n);
        return true;
}

/* "(a, b)" at *p. */
static bool parse_set(const char **p, char ***ret) {
        char **values = NULL;

        if (**p != '(')
                return false;
        (*p)++;
        for (;;) {
                const char *begin = skip_space(*p), *end = word_end(begin);
                _cleanup_free_ char *word = MUST(memdup_str(begin, (size_t) (end - begin)));
                int r = strv_extend(&values, word);

                assert(r >= 0);
                *p = skip_space(end);
                if (**p == ',') {
                        (*p)++;
                        continue;
                }
                if (**p != ')')
                        break;
                *p = skip_space(*p + 1);
                *ret = values;
                return true;
        }
        strv_free(values);
        return false;
}

static bool parse_requirement(const char **p, FakeSelector *ret) {
        bool negated = **p == '!';
        const char *begin = skip_space(negated ? *p + 1 : *p), *end = word_end(begin);
        size_t size = (size_t) (end - begin);
        FakeOperator operator= negated ? FAKE_NOT_EXISTS : FAKE_EXISTS;
        char **values = NULL;

        if (size == 0)
                return false;
        *p = skip_space(end);

        if (!negated && (**p == '=' || (**p == '!' && (*p)[1] == '='))) {
                const char *value;

                operator= ** p == '!' ? FAKE_NOT_IN : FAKE_IN;
                *p += (*p)[1] == '=' ? 2 : 1;
                value = skip_space(*p);
                *p = word_end(value);
                values = one(value, (size_t) (*p - value));
                *p = skip_space(*p);
        } else if (!negated && take_word(p, "in")) {
                operator= FAKE_IN;
                if (!parse_set(p, &values))
                        return false;
        } else if (!negated && take_word(p, "notin")) {
                operator= FAKE_NOT_IN;
                if (!parse_set(p, &values))
                        return false;
        }
        add(ret, memdup_str(begin, size), operator, values);
        return true;
}

bool fake_label_selector_parse(const char *text, FakeSelector *ret, char **reterr) {
        const char *p = skip_space(text);
        FakeSelector s = { 0 };

        while (*p) {
                if (!parse_requirement(&p, &s) || (*p != ',' && *p != 0)) {
                        fake_selector_done(&s);
                        *reterr = MUST(strf("unable to parse requirement: '%s'", text));
                        return false;
                }
                if (*p == ',')
                        p = skip_space(p + 1);
        }
        *ret = s;
        return true;
}

static bool requirement_holds(const FakeRequirement *r, const char *value) {
        switch (r->operator) {
        case FAKE_IN:
                return value && strv_contains(r->values, value);
        case FAKE_NOT_IN:
                return !value || !strv_contains(r->values, value);
        case FAKE_EXISTS:
                return value;
        case FAKE_NOT_EXISTS:
                return !value;
        }
        return false;
}

bool fake_label_selector_matches(const FakeSelector *s, const cJSON *labels) {
        for (size_t i = 0; i < s->n_items; i++)
                if (!requirement_holds(&s->items[i], fj_string(labels, s->items[i].key, NULL)))
                        return false;
        return true;
}

/* -- fields -------------------------------------------------------------------------------------------- */

/* What pkg/apis/.../conversion.go of each kind knows. */
static const char *const known_fields[_FAKE_RESOURCE_MAX][12] = {
        [FAKE_NODES] = { "metadata.name", "spec.unschedulable" },
        [FAKE_PODS] = { "metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy",
                        "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
                        "status.podIP", "status.nominatedNodeName" },
        [FAKE_NAMESPACES] = { "metadata.name", "status.phase" },
        [FAKE_EVENTS] = { "metadata.name", "metadata.namespace", "involvedObject.kind",
                          "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "reason",
                          "reportingComponent", "type" },
};

static bool field_is_known(const FakeResource *r, const char *key, char **reterr) {
        if (!known_fields[r->id][0]) {
                if (streq(key, "metadata.name") || streq(key, "metadata.namespace"))
                        return true;
                *reterr = MUST(strf("\"%s\" is not a known field selector: only \"metadata.name\", "
                                    "\"metadata.namespace\"",
                                    key));
                return false;
        }
        for (size_t i = 0; i < ELEMENTSOF(known_fields[0]) && known_fields[r->id][i]; i++)
                if (streq(known_fields[r->id][i], key))
                        return true;
        *reterr = MUST(strf("field label not supported: %s", key));
        return false;
}

bool fake_field_selector_parse(const FakeResource *r, const char *text, FakeSelector *ret, char **reterr) {
        _cleanup_strv_free_ char **terms = NULL;
        FakeSelector s = { 0 };
        int k = strv_split(text, ",", &terms);

        assert(k >= 0);
        STRV_FOREACH (term, terms) {
                const char *eq = strchr(*term, '=');
                bool negated = eq && eq > *term && eq[-1] == '!';
                _cleanup_free_ char *key = NULL;

                if (!eq || eq == *term) {
                        *reterr = MUST(strf("invalid selector: '%s'; can't understand '%s'", text, *term));
                        fake_selector_done(&s);
                        return false;
                }
                key = MUST(memdup_str(*term, (size_t) (eq - *term) - (negated ? 1 : 0)));
                if (!field_is_known(r, key, reterr)) {
                        fake_selector_done(&s);
                        return false;
                }
                eq += eq[1] == '=' ? 2 : 1;
                add(&s, TAKE_PTR(key), negated ? FAKE_NOT_IN : FAKE_IN, one(eq, strlen(eq)));
        }
        *ret = s;
        return true;
}

/* Absent fields are empty, booleans are words, as in the field sets of the strategies. */
static const char *field_value(const cJSON *object, const char *path) {
        const char *dot = strchr(path, '.');
        const cJSON *v;

        if (dot) {
                char head[32];
                size_t n = MIN((size_t) (dot - path), sizeof(head) - 1);

                memcpy(head, path, n);
                head[n] = 0;
                v = fj_get(object, head, dot + 1, NULL);
        } else
                v = fj_member(object, path);

        if (cJSON_IsString(v))
                return v->valuestring;
        if (cJSON_IsBool(v) ||
            (!v && (streq(path, "spec.unschedulable") || streq(path, "spec.hostNetwork"))))
                return cJSON_IsTrue(v) ? "true" : "false";
        return "";
}

bool fake_field_selector_matches(const FakeSelector *s, const cJSON *object) {
        for (size_t i = 0; i < s->n_items; i++)
                if (!requirement_holds(&s->items[i], field_value(object, s->items[i].key)))
                        return false;
        return true;
}

const char *fake_field_selector_exact(const FakeSelector *s, const char *key) {
        for (size_t i = 0; i < s->n_items; i++)
                if (s->items[i].operator== FAKE_IN && streq(s->items[i].key, key) && s->items[i].values)
                        return s->items[i].values[0];
        return NULL;
}

/* -- LabelSelector objects ----------------------------------------------------------------------------- */

static bool expression_matches(const cJSON *e, const cJSON *labels) {
        const char *key = fj_string(e, "key", NULL), *operator= fj_string(e, "operator", NULL);
        const cJSON *values = fj_get(e, "values", NULL);
        const char *value = key ? fj_string(labels, key, NULL) : NULL;

        if (!key || !operator)
                return false;
        if (streq(operator, "In"))
                return value && fj_array_has(values, value);
        if (streq(operator, "NotIn"))
                return cJSON_GetArraySize(values) > 0 && (!value || !fj_array_has(values, value));
        if (streq(operator, "Exists"))
                return value;
        if (streq(operator, "DoesNotExist"))
                return !value;
        return false;
}

bool fake_object_selector_matches(const cJSON *selector, const cJSON *labels) {
        const cJSON *e;

        if (!cJSON_IsObject(selector))
                return false;
        cJSON_ArrayForEach (e, fj_get(selector, "matchLabels", NULL)) {
                const char *value = fj_string(labels, e->string, NULL);

                if (!cJSON_IsString(e) || !value || !streq(value, e->valuestring))
                        return false;
        }
        cJSON_ArrayForEach (e, fj_get(selector, "matchExpressions", NULL))
                if (!expression_matches(e, labels))
                        return false;
        return true;
}
