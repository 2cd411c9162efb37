/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of metrics/. */

#include "metrics.h"

/* All labels of a family whose values are known; how many. */
size_t metric_labels(const MetricFamily *f, MetricLabel ret[METRIC_LABELS_MAX]);
/* "# HELP" and "# TYPE". */
void metrics_add_header(StrBuf *b, const char *name, const char *type, const char *help);
/* A number as Prometheus reads it back to the same double. */
void metrics_add_number(StrBuf *b, double value);
/* process_cpu_seconds_total and its like, from /proc. What cannot be read is left out. */
void metrics_add_process(StrBuf *b);
