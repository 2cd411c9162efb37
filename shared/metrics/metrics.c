/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "alloc-util.h"
#include "metrics-internal.h"
#include "string-util.h"

/* One line of a counter or gauge; one label value's buckets of a histogram. */
typedef struct Series {
        uint64_t count;    /* counter; observations of a histogram */
        double value;      /* gauge; sum of a histogram */
        uint64_t *buckets; /* histogram: observations at or below each bound, not cumulated */
} Series;

typedef struct Family {
        const MetricFamily *meta;
        Series *series;
        size_t n_series;
        char **names; /* n_named of them, each NULL until it has one */
} Family;

struct Metrics {
        Family *families;
        size_t n_families;
};

static const char *const type_table[] = {
        [METRIC_COUNTER] = "counter",
        [METRIC_GAUGE] = "gauge",
        [METRIC_HISTOGRAM] = "histogram",
};

size_t metric_labels(const MetricFamily *f, MetricLabel ret[METRIC_LABELS_MAX]) {
        size_t n = 0;

        if (f->label && f->n_named == 0)
                ret[n++] = (MetricLabel){ f->label, f->values };
        for (const MetricLabel *l = f->more; l && l->name; l++) {
                assert(n > 0 && n < METRIC_LABELS_MAX);
                ret[n++] = *l;
        }
        return n;
}

static size_t count_values(const MetricLabel *l) {
        size_t n = 0;

        assert(l->values);
        while (l->values[n])
                n++;
        return n;
}

/* One for each combination of values. */
static size_t count_series(const MetricFamily *f) {
        MetricLabel labels[METRIC_LABELS_MAX];
        size_t n_labels = metric_labels(f, labels), n = f->n_named > 0 ? f->n_named : 1;

        for (size_t i = 0; i < n_labels; i++)
                n *= count_values(labels + i);
        return n;
}

static int family_init(Family *f, const MetricFamily *meta) {
        f->meta = meta;
        f->n_series = count_series(meta);
        f->series = new0(Series, f->n_series);
        if (!f->series)
                return -ENOMEM;
        if (meta->n_named > 0) {
                assert(meta->label && meta->type != METRIC_HISTOGRAM);
                f->names = new0(char *, meta->n_named);
                return f->names ? 0 : -ENOMEM;
        }
        if (meta->type != METRIC_HISTOGRAM)
                return 0;

        for (size_t i = 1; i < meta->n_buckets; i++)
                assert(meta->buckets[i - 1] < meta->buckets[i]);
        for (size_t i = 0; i < f->n_series; i++) {
                f->series[i].buckets = new0(uint64_t, meta->n_buckets + 1);
                if (!f->series[i].buckets)
                        return -ENOMEM;
        }
        return 0;
}

int metrics_new(const MetricFamily *families, size_t n_families, Metrics **ret) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        int r;

        assert(families || n_families == 0);
        assert(ret);

        m = new0(Metrics, 1);
        if (!m)
                return -ENOMEM;
        m->families = new0(Family, n_families + 1);
        if (!m->families)
                return -ENOMEM;
        for (size_t i = 0; i < n_families; i++) {
                m->n_families = i + 1;
                r = family_init(m->families + i, families + i);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(m);
        return 0;
}

Metrics *metrics_free(Metrics *m) {
        if (!m)
                return NULL;
        for (size_t i = 0; i < m->n_families; i++) {
                for (size_t k = 0; m->families[i].series && k < m->families[i].n_series; k++)
                        free(m->families[i].series[k].buckets);
                for (size_t k = 0; m->families[i].names && k < m->families[i].n_series; k++)
                        free(m->families[i].names[k]);
                free(m->families[i].names);
                free(m->families[i].series);
        }
        free(m->families);
        free(m);
        return NULL;
}

static Series *find_series(const Metrics *m, size_t family, size_t value_index) {
        assert(family < m->n_families);
        assert(value_index < m->families[family].n_series);
        return m->families[family].series + value_index;
}

size_t metrics_index(const Metrics *m, size_t family, const size_t values[METRIC_LABELS_MAX]) {
        MetricLabel labels[METRIC_LABELS_MAX];
        size_t n_labels, index = 0;

        if (!m)
                return 0;
        assert(family < m->n_families);
        n_labels = metric_labels(m->families[family].meta, labels);
        for (size_t i = 0; i < n_labels; i++) {
                assert(values[i] < count_values(labels + i));
                index = index * count_values(labels + i) + values[i];
        }
        return index;
}

int metrics_name(Metrics *m, size_t family, size_t value_index, const char *name) {
        int r;

        if (!m)
                return 0;
        assert(family < m->n_families && value_index < m->families[family].meta->n_named);
        r = free_and_strdup(&m->families[family].names[value_index], name);
        if (r >= 0)
                m->families[family].series[value_index] = (Series){};
        return r;
}

void metrics_add(Metrics *m, size_t family, size_t value_index, uint64_t n) {
        if (!m)
                return;
        assert(family < m->n_families && m->families[family].meta->type == METRIC_COUNTER);
        find_series(m, family, value_index)->count += n;
}

void metrics_set(Metrics *m, size_t family, size_t value_index, double value) {
        if (!m)
                return;
        assert(family < m->n_families && m->families[family].meta->type == METRIC_GAUGE);
        find_series(m, family, value_index)->value = value;
}

void metrics_observe(Metrics *m, size_t family, size_t value_index, double value) {
        const MetricFamily *f;
        Series *s;
        size_t i;

        if (!m)
                return;
        s = find_series(m, family, value_index);
        f = m->families[family].meta;
        assert(f->type == METRIC_HISTOGRAM);
        s->count++;
        s->value += value;
        for (i = 0; i < f->n_buckets && !(value <= f->buckets[i]);)
                i++;
        s->buckets[i]++;
}

double metrics_value(const Metrics *m, size_t family, size_t value_index) {
        const Series *s;

        if (!m)
                return 0;
        s = find_series(m, family, value_index);
        return m->families[family].meta->type == METRIC_GAUGE ? s->value : (double) s->count;
}

/* -- text, format 0.0.4 --------------------------------------------------------------------------------- */

/* Backslash and line feed are escaped everywhere, quotes only inside of quotes. */
static void add_escaped(StrBuf *b, const char *s, bool quoted) {
        for (; *s; s++)
                if (*s == '\\')
                        strbuf_add(b, "\\\\");
                else if (*s == '\n')
                        strbuf_add(b, "\\n");
                else if (*s == '"' && quoted)
                        strbuf_add(b, "\\\"");
                else
                        strbuf_add_char(b, *s);
}

void metrics_add_number(StrBuf *b, double value) {
        char text[32];

        if (isnan(value))
                strbuf_add(b, "NaN");
        else if (isinf(value))
                strbuf_add(b, value > 0 ? "+Inf" : "-Inf");
        else {
                for (int digits = 15; digits <= 17; digits++) {
                        (void) snprintf(text, sizeof(text), "%.*g", digits, value);
                        if (strtod(text, NULL) == value)
                                break;
                }
                strbuf_add(b, text);
        }
}

void metrics_add_header(StrBuf *b, const char *name, const char *type, const char *help) {
        strbuf_addf(b, "# HELP %s ", name);
        add_escaped(b, help, false);
        strbuf_addf(b, "\n# TYPE %s %s\n", name, type);
}

/* Of a series, each label with its value. */
static void add_labels(StrBuf *b, const Family *family, size_t value_index) {
        const MetricFamily *f = family->meta;
        MetricLabel labels[METRIC_LABELS_MAX];
        size_t n = metric_labels(f, labels), values[METRIC_LABELS_MAX];

        if (family->names) {
                strbuf_addf(b, "%s=\"", f->label);
                add_escaped(b, family->names[value_index], true);
                strbuf_add_char(b, '"');
                return;
        }
        for (size_t i = n; i-- > 0; value_index /= count_values(labels + i))
                values[i] = value_index % count_values(labels + i);
        for (size_t i = 0; i < n; i++) {
                strbuf_addf(b, "%s%s=\"", i > 0 ? "," : "", labels[i].name);
                add_escaped(b, labels[i].values[values[i]], true);
                strbuf_add_char(b, '"');
        }
}

/* name_suffix{label="value",le="bound"}, as much of it as there is, and a space. bound: NULL for none. */
static void add_series_name(StrBuf *b, const Family *family, size_t value_index, const char *suffix,
                            const double *bound) {
        const MetricFamily *f = family->meta;

        strbuf_addf(b, "%s%s", f->name, suffix);
        if (f->label || bound)
                strbuf_add_char(b, '{');
        add_labels(b, family, value_index);
        if (bound) {
                strbuf_add(b, f->label ? ",le=\"" : "le=\"");
                metrics_add_number(b, *bound);
                strbuf_add_char(b, '"');
        }
        strbuf_add(b, f->label || bound ? "} " : " ");
}

static void add_histogram(StrBuf *b, const Family *family, size_t value_index, const Series *s) {
        const MetricFamily *f = family->meta;
        const double infinity = INFINITY;
        uint64_t sum = 0;

        for (size_t i = 0; i <= f->n_buckets; i++) {
                sum += s->buckets[i];
                add_series_name(b, family, value_index, "_bucket",
                                i < f->n_buckets ? f->buckets + i : &infinity);
                strbuf_addf(b, "%" PRIu64 "\n", sum);
        }
        add_series_name(b, family, value_index, "_sum", NULL);
        metrics_add_number(b, s->value);
        strbuf_add_char(b, '\n');
        add_series_name(b, family, value_index, "_count", NULL);
        strbuf_addf(b, "%" PRIu64 "\n", s->count);
}

static void add_series(StrBuf *b, const Family *f, size_t value_index, const Series *s) {
        switch (f->meta->type) {
        case METRIC_COUNTER:
                add_series_name(b, f, value_index, "", NULL);
                strbuf_addf(b, "%" PRIu64 "\n", s->count);
                return;
        case METRIC_GAUGE:
                add_series_name(b, f, value_index, "", NULL);
                metrics_add_number(b, s->value);
                strbuf_add_char(b, '\n');
                return;
        case METRIC_HISTOGRAM:
                add_histogram(b, f, value_index, s);
                return;
        }
        assert(false && "a metric of no type");
}

void metrics_format(const Metrics *m, StrBuf *b) {
        assert(b);
        for (size_t i = 0; m && i < m->n_families; i++) {
                const Family *f = m->families + i;

                metrics_add_header(b, f->meta->name, type_table[f->meta->type], f->meta->help);
                for (size_t k = 0; k < f->n_series; k++)
                        if (!f->names || f->names[k])
                                add_series(b, f, k, f->series + k);
        }
        metrics_add_process(b);
}
