/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * metrics/: Prometheus text from a table of families. Values live in the Metrics object of one process; labels are bounded
 * sets known in the code (never a node or pod name), so that nothing can grow without limit. A family may
 * have a bounded number of values that are named at run time (n_named).
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "macro.h"
#include "string-util.h"

typedef struct Metrics Metrics;

typedef enum MetricType { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM } MetricType;

typedef struct MetricLabel {
        const char *name;
        const char *const *values; /* NULL-terminated */
} MetricLabel;

#define METRIC_LABELS_MAX 3u

typedef struct MetricFamily {
        const char *name; /* "vesper_agent_evictions_total" */
        MetricType type;
        const char *help;
        const char *label;         /* NULL: none */
        const char *const *values; /* of the label, NULL-terminated */
        const double *buckets;     /* histogram: upper bounds, ascending, without +Inf */
        size_t n_buckets;
        size_t n_named; /* number of values that metrics_name() names; counter or gauge with one label */
        const MetricLabel *more; /* labels beside the first, up to one without a name; NULL: none */
} MetricFamily;

/* The table must outlive the object; metrics are named by their index in it. */
int metrics_new(const MetricFamily *families, size_t n_families, Metrics **ret);
Metrics *metrics_free(Metrics *m);
DEFINE_FREEP(Metrics, metrics_free);

/* The value_index of a series of a family with several labels: the index of each label's value, in their
 * order. */
size_t metrics_index(const Metrics *m, size_t family, const size_t values[METRIC_LABELS_MAX]);
/* Names a value of the label at run time. Copies name. A series appears once it has a name, and begins at 0
 * with each new name; NULL: it disappears. 0; -ENOMEM: nothing has changed. */
int metrics_name(Metrics *m, size_t family, size_t value_index, const char *name);
/* value_index: of the label's value; 0 without label. A NULL Metrics is fine: nothing is counted. */
void metrics_add(Metrics *m, size_t family, size_t value_index, uint64_t n);
void metrics_set(Metrics *m, size_t family, size_t value_index, double value);
void metrics_observe(Metrics *m, size_t family, size_t value_index, double value);
double metrics_value(const Metrics *m, size_t family, size_t value_index); /* a histogram's: its count */
/* Prometheus text format 0.0.4, the process's own figures (process_*) included. */
void metrics_format(const Metrics *m, StrBuf *b);
/* The file at template_path goes to f, and in the place of its line "@METRICS@" the families, in man(7).
 * -EINVAL: a template without that line. For packaging/meson.build. */
int metrics_reference(FILE *f, const char *template_path, const MetricFamily *families, size_t n_families);
