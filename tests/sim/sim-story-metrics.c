/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-story-metrics.h"

#include <stdlib.h>

#include "page.h"
#include "sim-process.h"
#include "strv.h"

/* Families whose numbers depend on how long a round lasts, and not on what happens in it. */
static const char *const periodic[] = {
        "process_cpu_seconds_total",
        "vesper_coordinator_api_requests_total",
        "vesper_coordinator_queue_answers_total",
        "vesper_coordinator_removals_blocked_seconds_total",
        "vesper_agent_polls_total",
};

static bool is_periodic(const char *family) {
        for (size_t i = 0; i < ELEMENTSOF(periodic); i++)
                if (streq(family, periodic[i]))
                        return true;
        return false;
}

/* Adds the series of the page that only grow: counters, and the number of values of each histogram. */
static void add_page(SimCounters *c, const char *daemon, const char *page) {
        _cleanup_strv_free_ char **lines = NULL;
        _cleanup_free_ char *counter = NULL, *count = NULL;

        assert(strv_split(page, "\n", &lines) >= 0);
        STRV_FOREACH(line, lines) {
                const char *type = startswith(*line, "# TYPE ");
                size_t n = strcspn(*line, "{ "), n_series = strcspn(*line, "}") + 1;

                if (type) {
                        _cleanup_free_ char *family = MUST(strndup(type, strcspn(type, " ")));

                        counter = mfree(counter);
                        count = mfree(count);
                        if (endswith(*line, " counter") && !is_periodic(family))
                                counter = TAKE_PTR(family);
                        else if (endswith(*line, " histogram"))
                                count = MUST(strf("%s_count", family));
                }
                if (**line == '#' || !((counter && strlen(counter) == n && startswith(*line, counter)) ||
                                       (count && strlen(count) == n && startswith(*line, count))))
                        continue;
                if ((*line)[n] != '{')
                        n_series = n;
                _cleanup_free_ char *key = MUST(strf("%s %.*s", daemon, (int) n_series, *line));

                cJSON_AddNumberToObject(c, key, strtod(*line + n_series, NULL));
        }
}

SimCounters *sim_counters_take(SimWorld *w, size_t machine) {
        SimCounters *c = MUST(cJSON_CreateObject());

        for (size_t i = 0; i < w->n_processes; i++) {
                const SimProcess *p = w->processes[i];
                bool is_agent = p->kind == SIM_AGENT;
                _cleanup_free_ char *daemon = NULL;

                if (!p->life || !p->life->ready || (is_agent && p->machine != &w->machines[machine]))
                        continue;
                _cleanup_page_ Page page = is_agent
                        ? page_ask(agent_handle_metrics, p->life->agent, HTTP_GET, "/metrics")
                        : page_ask(coordinator_handle, p->life->coordinator, HTTP_GET, "/metrics");

                daemon = MUST(strf("%s/%u", p->name, p->life->number));
                add_page(c, daemon, page.body);
        }
        return c;
}

static int compare_lines(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

char *sim_counters_since(SimCounters *before, SimWorld *w, size_t machine) {
        SimCounters *now = sim_counters_take(w, machine), *sums = MUST(cJSON_CreateObject());
        _cleanup_strv_free_ char **lines = NULL;
        const cJSON *item;
        char *text;

        cJSON_ArrayForEach(item, now) {
                const cJSON *then = cJSON_GetObjectItemCaseSensitive(before, item->string);
                double n = item->valuedouble - (then ? then->valuedouble : 0);
                const char *series = strchr(item->string, ' ') + 1;
                cJSON *sum = cJSON_GetObjectItemCaseSensitive(sums, series);

                if (n == 0)
                        continue;
                if (sum)
                        cJSON_SetNumberValue(sum, sum->valuedouble + n);
                else
                        cJSON_AddNumberToObject(sums, series, n);
        }
        cJSON_ArrayForEach(item, sums) {
                _cleanup_free_ char *line = MUST(strf("%s %g", item->string, item->valuedouble));

                assert(strv_extend(&lines, line) >= 0);
        }
        if (lines)
                qsort(lines, strv_length(lines), sizeof(*lines), compare_lines);
        text = lines ? strv_join(lines, "\n") : strdup("(nothing)");
        cJSON_Delete(before);
        cJSON_Delete(now);
        cJSON_Delete(sums);
        return MUST(text);
}
