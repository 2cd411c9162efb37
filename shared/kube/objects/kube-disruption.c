/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-disruption.h"

#include "calendar.h"
#include "kube-decode.h"
#include "kube-scheduling.h"
#include "parse-util.h"
#include "string-util.h"

/* What the CRD takes. */
#define BUDGETS_MAX 32u
#define OFFERINGS_MAX 512u
#define REQUIREMENTS_MAX 64u
#define VALUES_MAX 128u
#define LABELS_MAX 64u
#define TAINTS_MAX 32u
#define PRICE_MAX 1e9

#define DEFAULT_BUDGET_PERCENT 10

static const char *const reason_names[_DISRUPTION_REASON_MAX] = {
        [DISRUPTION_EXPIRED] = "Expired",
        [DISRUPTION_DRIFTED] = "Drifted",
        [DISRUPTION_EMPTY] = "Empty",
        [DISRUPTION_UNDERUTILIZED] = "Underutilized",
};

static const char *const policy_names[_CONSOLIDATION_POLICY_MAX] = {
        [CONSOLIDATION_NEVER] = "Never",
        [CONSOLIDATION_WHEN_EMPTY] = "WhenEmpty",
        [CONSOLIDATION_WHEN_UNDERUTILIZED] = "WhenUnderutilized",
};

static const char *const operator_names[_POOL_OPERATOR_MAX] = {
        [POOL_OPERATOR_IN] = "In",           [POOL_OPERATOR_NOT_IN] = "NotIn",
        [POOL_OPERATOR_EXISTS] = "Exists",   [POOL_OPERATOR_DOES_NOT_EXIST] = "DoesNotExist",
        [POOL_OPERATOR_GT] = "Gt",           [POOL_OPERATOR_LT] = "Lt",
};

const char *disruption_reason_to_string(DisruptionReason r) {
        return r >= 0 && r < _DISRUPTION_REASON_MAX ? reason_names[r] : NULL;
}

const char *consolidation_policy_to_string(ConsolidationPolicy p) {
        return p < _CONSOLIDATION_POLICY_MAX ? policy_names[p] : NULL;
}

const char *pool_operator_to_string(PoolOperator o) {
        return o < _POOL_OPERATOR_MAX ? operator_names[o] : NULL;
}

/* -- small parts ---------------------------------------------------------------------------------------- */

/* The index of the text; absent: `unset`. A text that is none of them makes the object invalid. */
static size_t decode_word(Decoder *d, const Json *v, const char *path, const char *const *names, size_t n_names,
                          size_t unset) {
        _cleanup_free_ char *s = NULL;

        decode_string(d, v, path, &s);
        if (!s)
                return unset;
        for (size_t i = 0; i < n_names; i++)
                if (streq(s, names[i]))
                        return i;
        decoder_invalid(d, "%s is none of its choices", path);
        return unset;
}

static int key_value_compare(const void *a, const void *b) {
        return strcmp(((const KeyValue *) a)->key, ((const KeyValue *) b)->key);
}

/* Of a text or, where a quantity stands, an integer. */
static const char *decode_value(Decoder *d, const Json *v, const char *path) {
        _cleanup_free_ char *number = NULL;
        const char *s = json_string_or_null(v), *value;
        int64_t n;

        if (!s) {
                if (json_int64(v, &n) < 0) {
                        decoder_invalid(d, "a value of %s is no text", path);
                        return NULL;
                }
                s = number = strf("%lld", (long long) n);
        }
        value = s ? intern(d->pool, s) : NULL;
        if (!value)
                d->failed = true;
        return value;
}

static void decode_map(Decoder *d, const Json *v, const char *path, KeyValues *ret) {
        if (!v || json_is_null(v))
                return;
        if (!json_is_object(v)) {
                decoder_invalid(d, "%s is no map", path);
                return;
        }
        ret->items = decode_room(d, v, path, LABELS_MAX, sizeof(KeyValue));
        if (!ret->items)
                return;
        JSON_FOREACH(i, v) {
                KeyValue *kv = ret->items + ret->n_items;
                const char *value = decode_value(d, i, path), *key = value ? intern(d->pool, json_key(i)) : NULL;

                if (!key) {
                        intern_unref(d->pool, value);
                        d->failed = d->failed || value;
                        continue;
                }
                *kv = (KeyValue){ key, value };
                ret->n_items++;
        }
        qsort(ret->items, ret->n_items, sizeof(KeyValue), key_value_compare);
}

/* -- spec.disruption ------------------------------------------------------------------------------------ */

static void decode_reasons(Decoder *d, const Json *v, const char *path, unsigned *ret) {
        const Json *list = decode_array(d, v, path);

        JSON_FOREACH(i, list)
                *ret |= 1u << decode_word(d, i, path, reason_names, ELEMENTSOF(reason_names), 0);
}

/* Five fields or a macro. Whether there is such a zone depends on who reads it, and is looked at there. */
static void check_calendar(Decoder *d, const char *schedule, const char *path) {
        _cleanup_(calendar_done) Calendar c = {};
        const char *expected = NULL;
        int r = calendar_parse(schedule, &c, &expected);

        if (r == -ENOMEM)
                d->failed = true;
        else if (r < 0)
                decoder_invalid(d, "%s: schedule wants %s", path, expected);
}

static void decode_schedule(Decoder *d, const Json *v, const char *path, PoolSchedule *s) {
        _cleanup_free_ char *reasons = strf("%s.reasons", path), *schedule = strf("%s.schedule", path),
                            *duration = strf("%s.duration", path), *zone = strf("%s.timeZone", path);

        if (!reasons || !schedule || !duration || !zone) {
                d->failed = true;
                return;
        }
        decode_reasons(d, json_get(v, "reasons"), reasons, &s->reasons);
        decode_string(d, json_get(v, "schedule"), schedule, &s->schedule);
        decode_duration(d, json_get(v, "duration"), duration, false, &s->duration_usec);
        decode_string(d, json_get(v, "timeZone"), zone, &s->time_zone);
        if (!s->schedule != (s->duration_usec == 0))
                decoder_invalid(d, "%s: schedule and duration stand together", path);
        if (s->schedule)
                check_calendar(d, s->schedule, path);
        if (s->time_zone && !s->schedule)
                decoder_invalid(d, "%s: timeZone stands with a schedule", path);
}

static void pool_schedule_done(PoolSchedule *s) {
        free(s->schedule);
        free(s->time_zone);
}

static void decode_budgets(Decoder *d, const Json *v, PoolDisruption *p) {
        static const char path[] = "spec.disruption.budgets";
        const Json *list = decode_array(d, v, path);

        if (!v || json_is_null(v)) {
                p->budgets = new0(PoolBudget, 1);
                if (!p->budgets) {
                        d->failed = true;
                        return;
                }
                p->has_default_budget = true;
                p->budgets[p->n_budgets++].nodes = (NodeAmount){ NODE_AMOUNT_PERCENT, DEFAULT_BUDGET_PERCENT };
                return;
        }
        p->budgets = decode_room(d, list, path, BUDGETS_MAX, sizeof(PoolBudget));
        if (!p->budgets)
                return;
        JSON_FOREACH(i, list) {
                PoolBudget *b = p->budgets + p->n_budgets++;

                decode_amount(d, json_get(i, "nodes"), "spec.disruption.budgets.nodes", &b->nodes);
                if (b->nodes.unit == NODE_AMOUNT_UNSET)
                        decoder_invalid(d, "%s: nodes is missing", path);
                decode_schedule(d, i, path, &b->when);
        }
}

static void decode_windows(Decoder *d, const Json *v, PoolDisruption *p) {
        static const char path[] = "spec.disruption.windows";
        const Json *list = decode_array(d, v, path);

        p->windows = decode_room(d, list, path, BUDGETS_MAX, sizeof(PoolSchedule));
        if (!p->windows)
                return;
        JSON_FOREACH(i, list) {
                PoolSchedule *w = p->windows + p->n_windows++;

                decode_schedule(d, i, path, w);
                if (!w->schedule)
                        decoder_invalid(d, "%s: schedule is missing", path);
        }
}

/* "15%": thousandths. */
static void decode_savings(Decoder *d, const Json *v, int64_t *ret) {
        NodeAmount amount = {};

        decode_amount(d, v, "spec.disruption.consolidation.minimumSavings", &amount);
        if (amount.unit == NODE_AMOUNT_PERCENT)
                *ret = amount.value * 10;
        else if (amount.unit == NODE_AMOUNT_NODES)
                decoder_invalid(d, "spec.disruption.consolidation.minimumSavings is no percentage");
}

static void decode_consolidation(Decoder *d, const Json *v, PoolDisruption *p) {
        static const char *const preferences[] = { "Respect", "Ignore" };

        p->consolidation = (ConsolidationPolicy) decode_word(d, json_get(v, "policy"),
                                                             "spec.disruption.consolidation.policy", policy_names,
                                                             ELEMENTSOF(policy_names), CONSOLIDATION_NEVER);
        decode_duration(d, json_get(v, "after"), "spec.disruption.consolidation.after", false, &p->consolidate_after_usec);
        decode_savings(d, json_get(v, "minimumSavings"), &p->minimum_savings_permille);
        p->ignores_preferences = decode_word(d, json_get(v, "preferences"), "spec.disruption.consolidation.preferences",
                                             preferences, ELEMENTSOF(preferences), 0) == 1;
}

/* No word that can be written stands for "unset". */
static const char *const on_interruption_names[_ON_INTERRUPTION_MAX] = { "", "Replace", "None" };

const char *on_interruption_to_string(OnInterruption o) {
        return o == ON_INTERRUPTION_UNSET ? NULL : on_interruption_names[o];
}

void decode_pool_disruption(Decoder *d, const Json *v, PoolDisruption *ret) {
        static const char *const drifts[] = { "Never", "Auto" }, *const naked[] = { "Evict", "Block" };

        ret->empty_after_usec = ret->expire_after_usec = ret->expire_hard_after_usec = USEC_INFINITY;
        decode_duration(d, json_get(v, "emptyAfter"), "spec.disruption.emptyAfter", true, &ret->empty_after_usec);
        decode_duration(d, json_get(v, "expireAfter"), "spec.disruption.expireAfter", true, &ret->expire_after_usec);
        decode_duration(d, json_get(v, "expireHardAfter"), "spec.disruption.expireHardAfter", true,
                        &ret->expire_hard_after_usec);
        ret->drift = decode_word(d, json_get(v, "drift"), "spec.disruption.drift", drifts, ELEMENTSOF(drifts), 0) == 1;
        decode_consolidation(d, json_get(v, "consolidation"), ret);
        ret->naked_pods_block = decode_word(d, json_get(v, "nakedPods"), "spec.disruption.nakedPods", naked,
                                            ELEMENTSOF(naked), 0) == 1;
        decode_int64(d, json_get(v, "maxConcurrent"), "spec.disruption.maxConcurrent", &ret->max_concurrent);
        if (ret->max_concurrent < 0) {
                decoder_invalid(d, "spec.disruption.maxConcurrent is negative");
                ret->max_concurrent = 0;
        }
        decode_budgets(d, json_get(v, "budgets"), ret);
        decode_windows(d, json_get(v, "windows"), ret);
        ret->on_interruption = (OnInterruption) decode_word(d, json_get(v, "onInterruption"), "spec.disruption.onInterruption",
                                                            on_interruption_names, ELEMENTSOF(on_interruption_names),
                                                            ON_INTERRUPTION_UNSET);
        ret->launch_timeout_usec = LAUNCH_TIMEOUT_USEC;
        decode_duration(d, json_get(v, "launchTimeout"), "spec.disruption.launchTimeout", false, &ret->launch_timeout_usec);
}

void pool_disruption_done(PoolDisruption *p) {
        for (size_t i = 0; i < p->n_budgets; i++)
                pool_schedule_done(&p->budgets[i].when);
        free(p->budgets);
        for (size_t i = 0; i < p->n_windows; i++)
                pool_schedule_done(p->windows + i);
        free(p->windows);
}

/* -- spec.template -------------------------------------------------------------------------------------- */

static void decode_template_taints(Decoder *d, const Json *v, const char *path, Taint **ret, size_t *ret_n) {
        const Json *list = decode_array(d, v, path);

        *ret = decode_room(d, list, path, TAINTS_MAX, sizeof(Taint));
        if (!*ret)
                return;
        JSON_FOREACH(i, list) {
                Taint *t = *ret + (*ret_n)++;

                decode_interned(d, json_get(i, "key"), path, &t->key);
                decode_interned(d, json_get(i, "value"), path, &t->value);
                decode_interned(d, json_get(i, "effect"), path, &t->effect);
                if (!t->value)
                        t->value = intern(d->pool, "");
                if (!t->value)
                        d->failed = true;
                if (!d->failed && (!t->key || !t->effect))
                        decoder_invalid(d, "%s: a taint has no key or effect", path);
        }
}

static void template_taints_free(Taint *t, size_t n, InternPool *pool) {
        for (size_t i = 0; i < n; i++) {
                intern_unref(pool, t[i].key);
                intern_unref(pool, t[i].value);
                intern_unref(pool, t[i].effect);
        }
        free(t);
}

/* As many values as its operator takes. */
static bool requirement_is_whole(const PoolRequirement *r) {
        int64_t n;

        switch (r->operator) {
        case POOL_OPERATOR_IN:
        case POOL_OPERATOR_NOT_IN:
                return r->n_values > 0;
        case POOL_OPERATOR_EXISTS:
        case POOL_OPERATOR_DOES_NOT_EXIST:
                return r->n_values == 0;
        case POOL_OPERATOR_GT:
        case POOL_OPERATOR_LT:
                return r->n_values == 1 && parse_int64(r->values[0], &n) >= 0;
        case _POOL_OPERATOR_MAX:
                break;
        }
        return false;
}

static void decode_requirement(Decoder *d, const Json *v, const char *path, PoolRequirement *r) {
        const Json *values = decode_array(d, json_get(v, "values"), path);

        decode_interned(d, json_get(v, "key"), path, &r->key);
        r->operator = (PoolOperator) decode_word(d, json_get(v, "operator"), path, operator_names,
                                                        ELEMENTSOF(operator_names), _POOL_OPERATOR_MAX);
        r->values = decode_room(d, values, path, VALUES_MAX, sizeof(char *));
        JSON_FOREACH(i, r->values ? values : NULL) {
                decode_interned(d, i, path, r->values + r->n_values);
                if (r->values[r->n_values])
                        r->n_values++;
        }
        if (!d->failed && (!r->key || !requirement_is_whole(r)))
                decoder_invalid(d, "%s has one that is no requirement", path);
}

static void decode_requirements(Decoder *d, const Json *v, PoolTemplate *t) {
        static const char path[] = "spec.template.requirements";
        const Json *list = decode_array(d, v, path);

        t->requirements = decode_room(d, list, path, REQUIREMENTS_MAX, sizeof(PoolRequirement));
        JSON_FOREACH(i, t->requirements ? list : NULL)
                decode_requirement(d, i, path, t->requirements + t->n_requirements++);
}

void decode_pool_template(Decoder *d, const Json *v, PoolTemplate *ret) {
        const Json *info;

        decode_map(d, json_get(v, "labels"), "spec.template.labels", &ret->labels);
        decode_map(d, json_get(v, "annotations"), "spec.template.annotations", &ret->annotations);
        decode_template_taints(d, json_get(v, "taints"), "spec.template.taints", &ret->taints, &ret->n_taints);
        decode_template_taints(d, json_get(v, "startupTaints"), "spec.template.startupTaints", &ret->startup_taints,
                               &ret->n_startup_taints);
        decode_requirements(d, json_get(v, "requirements"), ret);
        info = json_get(v, "nodeInfo");
        decode_interned(d, json_get(info, "kubeletVersion"), "spec.template.nodeInfo.kubeletVersion", &ret->kubelet_version);
        decode_interned(d, json_get(info, "osImage"), "spec.template.nodeInfo.osImage", &ret->os_image);
}

void pool_template_done(PoolTemplate *t, InternPool *pool) {
        key_values_done(&t->labels, pool);
        key_values_done(&t->annotations, pool);
        template_taints_free(t->taints, t->n_taints, pool);
        template_taints_free(t->startup_taints, t->n_startup_taints, pool);
        for (size_t i = 0; i < t->n_requirements; i++) {
                PoolRequirement *r = t->requirements + i;

                intern_unref(pool, r->key);
                for (size_t k = 0; k < r->n_values; k++)
                        intern_unref(pool, r->values[k]);
                free(r->values);
        }
        free(t->requirements);
        intern_unref(pool, t->kubelet_version);
        intern_unref(pool, t->os_image);
}

bool pool_requirement_holds(const PoolRequirement *r, const KeyValues *labels) {
        const char *value = key_values_get(labels, r->key);
        bool is_listed = false;
        int64_t is, bound;

        for (size_t i = 0; value && i < r->n_values; i++)
                is_listed = is_listed || streq(value, r->values[i]);
        switch (r->operator) {
        case POOL_OPERATOR_IN:
                return is_listed;
        case POOL_OPERATOR_NOT_IN:
                return !is_listed;
        case POOL_OPERATOR_EXISTS:
                return value;
        case POOL_OPERATOR_DOES_NOT_EXIST:
                return !value;
        case POOL_OPERATOR_GT:
        case POOL_OPERATOR_LT:
                if (!value || r->n_values != 1 || parse_int64(value, &is) < 0 || parse_int64(r->values[0], &bound) < 0)
                        return false;
                return r->operator == POOL_OPERATOR_GT ? is > bound : is < bound;
        case _POOL_OPERATOR_MAX:
                break;
        }
        return false;
}

/* -- spec.offerings ------------------------------------------------------------------------------------- */

static void decode_price(Decoder *d, const Json *v, int64_t *ret) {
        double price;

        if (json_double(v, &price) < 0 || !(price >= 0 && price <= PRICE_MAX))
                decoder_invalid(d, "spec.offerings.price is no number from 0 to %.0f", PRICE_MAX);
        else
                *ret = (int64_t) (price * PRICE_MICROS + 0.5);
}

void decode_pool_offerings(Decoder *d, const Json *v, PoolOffering **ret, size_t *ret_n) {
        static const char path[] = "spec.offerings";
        const Json *list = decode_array(d, v, path);

        *ret = decode_room(d, list, path, OFFERINGS_MAX, sizeof(PoolOffering));
        JSON_FOREACH(i, *ret ? list : NULL) {
                PoolOffering *o = *ret + (*ret_n)++;

                decode_interned(d, json_get(i, "instanceType"), "spec.offerings.instanceType", &o->instance_type);
                decode_interned(d, json_get(i, "zone"), "spec.offerings.zone", &o->zone);
                decode_interned(d, json_get(i, "capacityType"), "spec.offerings.capacityType", &o->capacity_type);
                decode_price(d, json_get(i, "price"), &o->price_micros);
                decode_map(d, json_get(i, "allocatable"), "spec.offerings.allocatable", &o->allocatable);
                decode_string(d, json_get(i, "group"), "spec.offerings.group", &o->group);
                if (!d->failed && isempty(o->instance_type))
                        decoder_invalid(d, "spec.offerings.instanceType is missing");
        }
}

void pool_offerings_free(PoolOffering *o, size_t n, InternPool *pool) {
        for (size_t i = 0; i < n; i++) {
                intern_unref(pool, o[i].instance_type);
                intern_unref(pool, o[i].zone);
                intern_unref(pool, o[i].capacity_type);
                key_values_done(&o[i].allocatable, pool);
                free(o[i].group);
        }
        free(o);
}

/* -- spec.limits ---------------------------------------------------------------------------------------- */

void decode_pool_limits(Decoder *d, const Json *v, KeyValues *ret) {
        int64_t amount;

        decode_map(d, v, "spec.limits", ret);
        for (size_t i = 0; i < ret->n_items && !d->failed; i++)
                if (quantity_parse(ret->items[i].value, streq(ret->items[i].key, "cpu"), QUANTITY_ROUND_DOWN, &amount) < 0)
                        decoder_invalid(d, "spec.limits.%s is no quantity", ret->items[i].key);
}
