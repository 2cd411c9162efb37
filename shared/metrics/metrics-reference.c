/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "alloc-util.h"
#include "metrics-internal.h"
#include "string-util.h"

/* The families as a manual page lists them. */

static const char *const type_words[] = {
        [METRIC_COUNTER] = "Counter",
        [METRIC_GAUGE] = "Gauge",
        [METRIC_HISTOGRAM] = "Histogram",
};

static void put_text(FILE *f, const char *text) {
        for (; *text; text++)
                if (*text == '-')
                        fputs("\\-", f);
                else if (*text == '\\')
                        fputs("\\e", f);
                else
                        fputc(*text, f);
}

static void put_family(FILE *f, const MetricFamily *family) {
        MetricLabel labels[METRIC_LABELS_MAX];
        size_t n = metric_labels(family, labels);

        fputs(".TP\n.B ", f);
        put_text(f, family->name);
        fprintf(f, "\n%s. ", type_words[family->type]);
        put_text(f, family->help);
        fputc('\n', f);
        if (family->n_named > 0)
                fprintf(f, "Label\n.BR %s :\n%zu value%s at most.\n", family->label, family->n_named, family->n_named > 1 ? "s" : "");
        for (size_t i = 0; i < n; i++) {
                fprintf(f, "Label\n.BR %s :\n", labels[i].name);
                for (const char *const *v = labels[i].values; *v; v++) {
                        put_text(f, *v);
                        fputs(v[1] ? ",\n" : ".\n", f);
                }
        }
}

int metrics_reference(FILE *f, const char *template_path, const MetricFamily *families, size_t n_families) {
        FILE *template = fopen(template_path, "re");
        size_t allocated = 0;
        bool found = false;
        char *line = NULL;

        if (!template)
                return -errno;
        while (getline(&line, &allocated, template) >= 0) {
                if (!streq(line, "@METRICS@\n")) {
                        fputs(line, f);
                        continue;
                }
                found = true;
                for (size_t i = 0; i < n_families; i++)
                        put_family(f, families + i);
        }
        free(line);
        fclose(template);
        return found ? 0 : -EINVAL;
}
