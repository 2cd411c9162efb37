/* SPDX-License-Identifier: Apache-2.0 */
#include "selector.h"

#include "kube-object.h"
#include "string-util.h"

/*
 * The rules of k8s.io/apimachinery: pkg/apis/meta/v1/validation (what is refused) and pkg/labels (what
 * matches). A label that is absent satisfies NotIn and DoesNotExist.
 */

#define LABEL_NAME_BYTES_MAX 63u

typedef enum SelectorOp {
        SELECTOR_IN,
        SELECTOR_NOT_IN,
        SELECTOR_EXISTS,
        SELECTOR_DOES_NOT_EXIST,
        _SELECTOR_OP_MAX
} SelectorOp;

typedef struct Requirement {
        const char *key; /* interned, as the values */
        SelectorOp op;
        const char **values; /* sorted */
        size_t n_values;
} Requirement;

struct Selector {
        InternPool *pool;
        bool nothing; /* there was no selector at all */
        size_t n_values; /* of all requirements */
        size_t n_requirements;
        Requirement requirements[];
};

static const char *const op_table[_SELECTOR_OP_MAX] = {
        [SELECTOR_IN] = "In",
        [SELECTOR_NOT_IN] = "NotIn",
        [SELECTOR_EXISTS] = "Exists",
        [SELECTOR_DOES_NOT_EXIST] = "DoesNotExist",
};

static bool is_alphanumeric(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* [A-Za-z0-9] ([-A-Za-z0-9_.]* [A-Za-z0-9])?, at most 63. */
static bool label_name_is_valid(const char *s) {
        size_t n = strlen(s);

        if (n == 0 || n > LABEL_NAME_BYTES_MAX || !is_alphanumeric(s[0]) || !is_alphanumeric(s[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_alphanumeric(s[i]) && !strchr("-_.", s[i]))
                        return false;
        return true;
}

bool label_value_is_valid(const char *s) {
        return *s == 0 || label_name_is_valid(s);
}

static int label_key_check(const char *key) {
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *prefix = NULL;

        if (!slash)
                return label_name_is_valid(key) ? 0 : -EINVAL;
        prefix = memdup_str(key, (size_t) (slash - key));
        if (!prefix)
                return -ENOMEM;
        return dns1123_subdomain_is_valid(prefix) && label_name_is_valid(slash + 1) ? 0 : -EINVAL;
}

static int requirement_set_key(Requirement *q, InternPool *pool, const char *key) {
        int r = label_key_check(key);

        if (r < 0)
                return r;
        q->key = intern(pool, key);
        return q->key ? 0 : -ENOMEM;
}

/* There must be room. */
static int requirement_add_value(Requirement *q, InternPool *pool, const Json *v) {
        const char *value;

        if (json_string(v, &value) < 0 || !label_value_is_valid(value))
                return -EINVAL;
        q->values[q->n_values] = intern(pool, value);
        if (!q->values[q->n_values])
                return -ENOMEM;
        q->n_values++;
        return 0;
}

static int parse_match_label(Requirement *q, InternPool *pool, const Json *v) {
        int r;

        q->op = SELECTOR_IN;
        q->values = new0(const char *, 1);
        if (!q->values)
                return -ENOMEM;
        r = requirement_set_key(q, pool, json_key(v));
        return r < 0 ? r : requirement_add_value(q, pool, v);
}

static int parse_op(const char *s, SelectorOp *ret) {
        for (size_t i = 0; i < ELEMENTSOF(op_table); i++)
                if (streq(s, op_table[i])) {
                        *ret = (SelectorOp) i;
                        return 0;
                }
        return -EINVAL;
}

static int parse_expression(Selector *s, Requirement *q, InternPool *pool, const Json *v) {
        const Json *values = json_get(v, "values");
        const char *key, *op;
        bool wants_values;
        int r;

        if (json_string(json_get(v, "key"), &key) < 0 || json_string(json_get(v, "operator"), &op) < 0 ||
            (values && !json_is_null(values) && !json_is_array(values)))
                return -EINVAL;
        r = parse_op(op, &q->op);
        if (r < 0)
                return r;
        r = requirement_set_key(q, pool, key);
        if (r < 0)
                return r;

        wants_values = q->op == SELECTOR_IN || q->op == SELECTOR_NOT_IN;
        if (wants_values != (json_size(values) > 0))
                return -EINVAL;
        if (!wants_values)
                return 0;

        s->n_values += json_size(values);
        if (s->n_values > SELECTOR_VALUES_MAX)
                return -E2BIG;
        q->values = new0(const char *, json_size(values));
        if (!q->values)
                return -ENOMEM;
        JSON_FOREACH (i, values) {
                r = requirement_add_value(q, pool, i);
                if (r < 0)
                        return r;
        }
        qsort(q->values, q->n_values, sizeof(*q->values), compare_strings);
        return 0;
}

int selector_parse(const Json *json, InternPool *pool, Selector **ret) {
        const Json *labels = json_get(json, "matchLabels"),
                   *expressions = json_get(json, "matchExpressions");
        _cleanup_(selector_freep) Selector *s = NULL;
        bool nothing = !json || json_is_null(json);
        int r;

        assert(pool);
        assert(ret);

        if (!nothing && !json_is_object(json))
                return -EINVAL;
        if ((labels && !json_is_null(labels) && !json_is_object(labels)) ||
            (expressions && !json_is_null(expressions) && !json_is_array(expressions)))
                return -EINVAL;

        if (json_size(labels) + json_size(expressions) > SELECTOR_REQUIREMENTS_MAX)
                return -E2BIG;
        s = calloc(1, sizeof(Selector) + (json_size(labels) + json_size(expressions)) * sizeof(Requirement));
        if (!s)
                return -ENOMEM;
        s->pool = pool;
        s->nothing = nothing;

        JSON_FOREACH (i, labels) {
                r = parse_match_label(s->requirements + s->n_requirements++, pool, i);
                if (r < 0)
                        return r;
        }
        JSON_FOREACH (i, expressions) {
                r = parse_expression(s, s->requirements + s->n_requirements++, pool, i);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(s);
        return 0;
}

Selector *selector_free(Selector *s) {
        if (!s)
                return NULL;

        for (size_t i = 0; i < s->n_requirements; i++) {
                Requirement *q = s->requirements + i;

                for (size_t k = 0; k < q->n_values; k++)
                        intern_unref(s->pool, q->values[k]);
                intern_unref(s->pool, q->key);
                free(q->values);
        }
        free(s);
        return NULL;
}

static bool requirement_has_value(const Requirement *q, const char *value) {
        return q->n_values > 0 &&
               bsearch(&value, q->values, q->n_values, sizeof(*q->values), compare_strings);
}

static bool requirement_matches(const Requirement *q, const KeyValues *labels) {
        const char *value = key_values_get(labels, q->key);

        switch (q->op) {
        case SELECTOR_IN:
                return value && requirement_has_value(q, value);
        case SELECTOR_NOT_IN:
                return !value || !requirement_has_value(q, value);
        case SELECTOR_EXISTS:
                return value;
        case SELECTOR_DOES_NOT_EXIST:
                return !value;
        case _SELECTOR_OP_MAX:
                break;
        }
        assert(false && "a requirement without an operator");
        return false;
}

bool selector_matches(const Selector *s, const KeyValues *labels) {
        assert(labels);
        if (!s || s->nothing || labels->unread)
                return false;
        for (size_t i = 0; i < s->n_requirements; i++)
                if (!requirement_matches(s->requirements + i, labels))
                        return false;
        return true;
}

int selector_gather_keys(const Selector *s, Hashmap *keys) {
        int r = 0;

        for (size_t i = 0; s && i < s->n_requirements && r >= 0; i++)
                r = hashmap_replace(keys, s->requirements[i].key, NULL, NULL);
        return r;
}

bool selector_keeps_to_keys(const Selector *s, const Hashmap *keys) {
        for (size_t i = 0; s && i < s->n_requirements; i++)
                if (!hashmap_contains(keys, s->requirements[i].key))
                        return false;
        return true;
}

bool selector_is_empty(const Selector *s) {
        return !s || s->n_requirements == 0;
}

static void requirement_write(const Requirement *q, JsonWriter *w) {
        json_open_object(w, NULL);
        json_add_string(w, "key", q->key);
        json_add_string(w, "operator", op_table[q->op]);
        if (q->n_values > 0) {
                json_open_array(w, "values");
                for (size_t i = 0; i < q->n_values; i++)
                        json_add_string(w, NULL, q->values[i]);
                json_close_array(w);
        }
        json_close_object(w);
}

void selector_write(const Selector *s, JsonWriter *w, const char *key) {
        if (!s || s->nothing)
                return;
        json_open_object(w, key);
        if (s->n_requirements > 0) {
                json_open_array(w, "matchExpressions");
                for (size_t i = 0; i < s->n_requirements; i++)
                        requirement_write(s->requirements + i, w);
                json_close_array(w);
        }
        json_close_object(w);
}
