/* SPDX-License-Identifier: Apache-2.0 */
/* What kube-disruption.c reads of a NodePool, as JSON that it reads as the same. */
#include <inttypes.h>
#include <stdio.h>

#include "kube-kinds.h"

static void write_duration(JsonWriter *w, const char *key, usec_t usec) {
        if (usec != USEC_INFINITY)
                json_addf(w, key, "%" PRIu64 "s", usec / USEC_PER_SEC);
}

static void write_map(JsonWriter *w, const char *key, const KeyValues *kv) {
        if (kv->n_items == 0)
                return;
        json_open_object(w, key);
        for (size_t i = 0; i < kv->n_items; i++)
                json_add_string(w, kv->items[i].key, kv->items[i].value);
        json_close_object(w);
}

/* -- spec.template -------------------------------------------------------------------------------------- */

static void write_taints(JsonWriter *w, const char *key, const Taint *taints, size_t n) {
        if (n == 0)
                return;
        json_open_array(w, key);
        for (size_t i = 0; i < n; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "key", taints[i].key);
                json_add_string(w, "value", taints[i].value);
                json_add_string(w, "effect", taints[i].effect);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_requirements(JsonWriter *w, const PoolTemplate *t) {
        if (t->n_requirements == 0)
                return;
        json_open_array(w, "requirements");
        for (size_t i = 0; i < t->n_requirements; i++) {
                const PoolRequirement *r = t->requirements + i;

                json_open_object(w, NULL);
                json_add_string(w, "key", r->key);
                json_add_string(w, "operator", pool_operator_to_string(r->operator));
                json_open_array(w, "values");
                for (size_t k = 0; k < r->n_values; k++)
                        json_add_string(w, NULL, r->values[k]);
                json_close_array(w);
                json_close_object(w);
        }
        json_close_array(w);
}

void pool_template_write(const PoolTemplate *t, usec_t termination_grace_usec, JsonWriter *w, const char *key) {
        json_open_object(w, key);
        write_map(w, "labels", &t->labels);
        write_map(w, "annotations", &t->annotations);
        write_taints(w, "taints", t->taints, t->n_taints);
        write_taints(w, "startupTaints", t->startup_taints, t->n_startup_taints);
        write_requirements(w, t);
        if (t->kubelet_version || t->os_image) {
                json_open_object(w, "nodeInfo");
                json_add_string(w, "kubeletVersion", t->kubelet_version);
                json_add_string(w, "osImage", t->os_image);
                json_close_object(w);
        }
        write_duration(w, "terminationGracePeriod", termination_grace_usec);
        json_close_object(w);
}

/* -- spec.disruption ------------------------------------------------------------------------------------ */

static void write_amount(JsonWriter *w, const char *key, const NodeAmount *a) {
        if (a->unit == NODE_AMOUNT_NODES)
                json_add_int64(w, key, a->value);
        else if (a->unit == NODE_AMOUNT_PERCENT)
                json_addf(w, key, "%" PRId64 "%%", a->value);
}

static void write_schedule(JsonWriter *w, const PoolSchedule *s) {
        if (s->reasons != 0) {
                json_open_array(w, "reasons");
                for (DisruptionReason r = 0; r < _DISRUPTION_REASON_MAX; r++)
                        if (s->reasons & 1u << r)
                                json_add_string(w, NULL, disruption_reason_to_string(r));
                json_close_array(w);
        }
        json_add_string(w, "schedule", s->schedule);
        if (s->duration_usec > 0)
                write_duration(w, "duration", s->duration_usec);
        json_add_string(w, "timeZone", s->time_zone);
}

static void write_budgets(JsonWriter *w, const PoolDisruption *d) {
        if (d->has_default_budget)
                return;
        json_open_array(w, "budgets");
        for (size_t i = 0; i < d->n_budgets; i++) {
                json_open_object(w, NULL);
                write_amount(w, "nodes", &d->budgets[i].nodes);
                write_schedule(w, &d->budgets[i].when);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_windows(JsonWriter *w, const PoolDisruption *d) {
        if (d->n_windows == 0)
                return;
        json_open_array(w, "windows");
        for (size_t i = 0; i < d->n_windows; i++) {
                json_open_object(w, NULL);
                write_schedule(w, d->windows + i);
                json_close_object(w);
        }
        json_close_array(w);
}

static void write_consolidation(JsonWriter *w, const PoolDisruption *d) {
        json_open_object(w, "consolidation");
        json_add_string(w, "policy", consolidation_policy_to_string(d->consolidation));
        if (d->consolidate_after_usec > 0)
                write_duration(w, "after", d->consolidate_after_usec);
        if (d->minimum_savings_permille > 0)
                json_addf(w, "minimumSavings", "%" PRId64 "%%", d->minimum_savings_permille / 10);
        json_add_string(w, "preferences", d->ignores_preferences ? "Ignore" : NULL);
        json_close_object(w);
}

void pool_disruption_write(const PoolDisruption *d, JsonWriter *w, const char *key) {
        json_open_object(w, key);
        write_duration(w, "emptyAfter", d->empty_after_usec);
        write_duration(w, "expireAfter", d->expire_after_usec);
        write_duration(w, "expireHardAfter", d->expire_hard_after_usec);
        json_add_string(w, "drift", d->drift ? "Auto" : NULL);
        write_consolidation(w, d);
        json_add_string(w, "nakedPods", d->naked_pods_block ? "Block" : NULL);
        if (d->max_concurrent > 0)
                json_add_int64(w, "maxConcurrent", d->max_concurrent);
        write_budgets(w, d);
        write_windows(w, d);
        json_add_string(w, "onInterruption", on_interruption_to_string(d->on_interruption));
        if (d->launch_timeout_usec != LAUNCH_TIMEOUT_USEC)
                write_duration(w, "launchTimeout", d->launch_timeout_usec);
        json_close_object(w);
}

/* -- spec.offerings ------------------------------------------------------------------------------------- */

void price_write(JsonWriter *w, const char *key, int64_t micros) {
        char text[48];

        snprintf(text, sizeof(text), "%" PRId64 ".%06" PRId64, micros / PRICE_MICROS, micros % PRICE_MICROS);
        json_add_raw(w, key, text);
}

void pool_offerings_write(const PoolOffering *o, size_t n, JsonWriter *w, const char *key) {
        if (n == 0)
                return;
        json_open_array(w, key);
        for (size_t i = 0; i < n; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "instanceType", o[i].instance_type);
                json_add_string(w, "zone", o[i].zone);
                json_add_string(w, "capacityType", o[i].capacity_type);
                price_write(w, "price", o[i].price_micros);
                write_map(w, "allocatable", &o[i].allocatable);
                json_add_string(w, "group", o[i].group);
                json_close_object(w);
        }
        json_close_array(w);
}

/* -- spec.limits ---------------------------------------------------------------------------------------- */

void pool_limits_write(const KeyValues *limits, JsonWriter *w, const char *key) {
        write_map(w, key, limits);
}
