/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * metrics/: Prometheus text from a table of families. Values live in the Metrics object of one process; labels are bounded
 * sets known in the code (never a node or pod name), so that nothing can grow without limit.
 */

#include <stddef.h>
#include <stdint.h>

#include "macro.h"
#include "string-util.h"

typedef struct Metrics Metrics;

typedef enum MetricType { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM } MetricType;

typedef struct MetricFamily {
        const char *name; /* "vesper_agent_evictions_total" */
        MetricType type;
        const char *help;
        const char *label;         /* NULL: none */
        const char *const *values; /* of the label, NULL-terminated */
        const double *buckets;     /* histogram: upper bounds, ascending, without +Inf */
        size_t n_buckets;
} MetricFamily;

/* The table must outlive the object; metrics are named by their index in it. */
int metrics_new(const MetricFamily *families, size_t n_families, Metrics **ret);
Metrics *metrics_free(Metrics *m);
DEFINE_FREEP(Metrics, metrics_free);

/* value_index: of the label's value; 0 without label. A NULL Metrics is fine: nothing is counted. */
void metrics_add(Metrics *m, size_t family, size_t value_index, uint64_t n);
void metrics_set(Metrics *m, size_t family, size_t value_index, double value);
void metrics_observe(Metrics *m, size_t family, size_t value_index, double value);
double metrics_value(const Metrics *m, size_t family, size_t value_index); /* a histogram's: its count */
/* Prometheus text format 0.0.4, the process's own figures (process_*) included. */
void metrics_format(const Metrics *m, StrBuf *b);
