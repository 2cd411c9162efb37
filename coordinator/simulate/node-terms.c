/* SPDX-License-Identifier: Apache-2.0 */
#include "node-terms.h"

#include "alloc-util.h"
#include "parse-util.h"
#include "selector.h"
#include "string-util.h"

static const char *const operator_table[_NODE_OPERATOR_MAX] = {
        [NODE_IN] = "In",
        [NODE_NOT_IN] = "NotIn",
        [NODE_EXISTS] = "Exists",
        [NODE_DOES_NOT_EXIST] = "DoesNotExist",
        [NODE_GT] = "Gt",
        [NODE_LT] = "Lt",
};

static int operator_parse(const Json *v, NodeOperator *ret) {
        const char *s = json_string_or_null(v);

        for (size_t i = 0; i < ELEMENTSOF(operator_table); i++)
                if (streq_ptr(s, operator_table[i])) {
                        *ret = (NodeOperator) i;
                        return 0;
                }
        return -EINVAL;
}

static int requirement_take_values(NodeRequirement *q, const Json *values, InternPool *pool) {
        if (values && !json_is_null(values) && !json_is_array(values))
                return -EINVAL;
        if (json_size(values) == 0)
                return 0;
        q->values = new0(const char *, json_size(values));
        if (!q->values)
                return -ENOMEM;
        JSON_FOREACH (v, values) {
                const char *s;

                if (json_string(v, &s) < 0)
                        return -EINVAL;
                q->values[q->n_values] = intern(pool, s);
                if (!q->values[q->n_values])
                        return -ENOMEM;
                q->n_values++;
        }
        return 0;
}

static int requirement_check(NodeRequirement *q, bool of_name) {
        switch (q->operator) {
        case NODE_IN:
        case NODE_NOT_IN:
                return q->n_values == 0 || (of_name && q->n_values != 1) ? -EINVAL : 0;
        case NODE_EXISTS:
        case NODE_DOES_NOT_EXIST:
                return q->n_values > 0 || of_name ? -EINVAL : 0;
        case NODE_GT:
        case NODE_LT:
                return q->n_values != 1 || of_name ? -EINVAL : 0;
        case _NODE_OPERATOR_MAX:
                break;
        }
        return -EINVAL;
}

static int requirement_parse(const Json *v, bool of_name, InternPool *pool, NodeRequirement *ret) {
        const char *key = json_string_or_null(json_get(v, "key"));
        int r;

        if (isempty(key) || (of_name && !streq(key, "metadata.name")))
                return -EINVAL;
        r = operator_parse(json_get(v, "operator"), &ret->operator);
        if (r < 0)
                return r;
        if (!of_name) {
                ret->key = intern(pool, key);
                if (!ret->key)
                        return -ENOMEM;
        }
        r = requirement_take_values(ret, json_get(v, "values"), pool);
        return r < 0 ? r : requirement_check(ret, of_name);
}

/* What the API server takes and kube-scheduler cannot read. */
static bool requirement_is_sound(NodeRequirement *q) {
        if (!q->key)
                return true;
        for (size_t i = 0; i < q->n_values; i++)
                if (!label_value_is_valid(q->values[i]))
                        return false;
        return (q->operator != NODE_GT && q->operator != NODE_LT) || parse_int64(q->values[0], &q->number) >= 0;
}

static int term_take(NodeTerm *t, const Json *list, bool of_name, InternPool *pool) {
        if (list && !json_is_null(list) && !json_is_array(list))
                return -EINVAL;
        JSON_FOREACH (v, list) {
                NodeRequirement *q = t->requirements + t->n_requirements++;
                int r = requirement_parse(v, of_name, pool, q);

                if (r < 0)
                        return r;
                t->matches_nothing |= !requirement_is_sound(q);
        }
        return 0;
}

int node_term_parse(const Json *term, InternPool *pool, NodeTerm *ret) {
        const Json *labels = json_get(term, "matchExpressions"), *fields = json_get(term, "matchFields");
        size_t n = json_size(labels) + json_size(fields);
        int r;

        *ret = (NodeTerm){};
        if (!json_is_object(term))
                return -EINVAL;
        if (n > 0) {
                ret->requirements = new0(NodeRequirement, n);
                if (!ret->requirements)
                        return -ENOMEM;
        }
        r = term_take(ret, labels, false, pool);
        return r < 0 ? r : term_take(ret, fields, true, pool);
}

static int terms_new(const Json *array, NodeTerms *ret) {
        *ret = (NodeTerms){};
        if (!json_is_array(array))
                return -EINVAL;
        if (json_size(array) == 0)
                return 0;
        ret->items = new0(NodeTerm, json_size(array));
        return ret->items ? 0 : -ENOMEM;
}

int node_terms_parse(const Json *array, InternPool *pool, NodeTerms *ret) {
        int r = terms_new(array, ret);

        if (r < 0)
                return r;
        JSON_FOREACH (v, array) {
                r = node_term_parse(v, pool, ret->items + ret->n_items++);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int topology_parse(const Json *v, InternPool *pool, NodeRequirement *ret) {
        const char *key = json_string_or_null(json_get(v, "key"));
        int r;

        if (isempty(key))
                return -EINVAL;
        ret->operator = NODE_IN;
        ret->key = intern(pool, key);
        if (!ret->key)
                return -ENOMEM;
        r = requirement_take_values(ret, json_get(v, "values"), pool);
        return r < 0 ? r : requirement_check(ret, false);
}

int node_terms_parse_topologies(const Json *array, InternPool *pool, NodeTerms *ret) {
        int r = terms_new(array, ret);

        if (r < 0)
                return r;
        JSON_FOREACH (v, array) {
                const Json *list = json_get(v, "matchLabelExpressions");
                NodeTerm *t = ret->items + ret->n_items++;

                if (!json_is_array(list) || json_size(list) == 0)
                        return -EINVAL;
                t->requirements = new0(NodeRequirement, json_size(list));
                if (!t->requirements)
                        return -ENOMEM;
                JSON_FOREACH (q, list) {
                        r = topology_parse(q, pool, t->requirements + t->n_requirements++);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

void node_term_done(NodeTerm *t, InternPool *pool) {
        for (size_t i = 0; i < t->n_requirements; i++) {
                NodeRequirement *q = t->requirements + i;

                for (size_t k = 0; k < q->n_values; k++)
                        intern_unref(pool, q->values[k]);
                free(q->values);
                intern_unref(pool, q->key);
        }
        free(t->requirements);
        *t = (NodeTerm){};
}

void node_terms_done(NodeTerms *t, InternPool *pool) {
        for (size_t i = 0; i < t->n_items; i++)
                node_term_done(t->items + i, pool);
        free(t->items);
        *t = (NodeTerms){};
}

static bool requirement_has(const NodeRequirement *q, const char *value) {
        for (size_t i = 0; i < q->n_values; i++)
                if (streq(q->values[i], value))
                        return true;
        return false;
}

static bool requirement_matches(const NodeRequirement *q, const KeyValues *labels, const char *name) {
        const char *value = q->key ? key_values_get(labels, q->key) : name;
        int64_t number;

        switch (q->operator) {
        case NODE_IN:
                return value && requirement_has(q, value);
        case NODE_NOT_IN:
                return !value || !requirement_has(q, value);
        case NODE_EXISTS:
                return value;
        case NODE_DOES_NOT_EXIST:
                return !value;
        case NODE_GT:
                return value && parse_int64(value, &number) >= 0 && number > q->number;
        case NODE_LT:
                return value && parse_int64(value, &number) >= 0 && number < q->number;
        case _NODE_OPERATOR_MAX:
                break;
        }
        return false;
}

bool node_term_matches(const NodeTerm *t, const KeyValues *labels, const char *name) {
        for (size_t i = 0; i < t->n_requirements; i++)
                if (!requirement_matches(t->requirements + i, labels, name))
                        return false;
        return t->n_requirements > 0 && !t->matches_nothing;
}

bool node_terms_match(const NodeTerms *t, const KeyValues *labels, const char *name) {
        for (size_t i = 0; i < t->n_items; i++)
                if (node_term_matches(t->items + i, labels, name))
                        return true;
        return false;
}

bool node_terms_ask_for_name(const NodeTerms *t) {
        for (size_t i = 0; i < t->n_items; i++)
                for (size_t k = 0; k < t->items[i].n_requirements; k++)
                        if (!t->items[i].requirements[k].key)
                                return true;
        return false;
}

size_t node_terms_size(const NodeTerms *t) {
        size_t n = 0;

        for (size_t i = 0; i < t->n_items; i++)
                for (size_t k = 0; k < t->items[i].n_requirements; k++)
                        n += 1 + t->items[i].requirements[k].n_values;
        return n;
}
