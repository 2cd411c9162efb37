/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-metrics.h"

#include "notify-sender.h"
#include "reflex.h"

static const char *const kind_values[] = {
        [NOTICE_SPOT] = "spot",
        [NOTICE_REBALANCE] = "rebalance",
        [NOTICE_MAINTENANCE] = "maintenance",
        [NOTICE_SCALE_IN] = "scale-in",
        [NOTICE_CAPACITY_BLOCK] = "capacity-block",
        [NOTICE_SHUTDOWN] = "shutdown",
        [NOTICE_MANUAL] = "manual",
        [_NOTICE_KIND_MAX] = NULL,
};

static const char *const poll_values[] = {
        [NOTICE_POLL_NOTICE] = "notice",
        [NOTICE_POLL_NONE] = "none",
        [NOTICE_POLL_UNKNOWN] = "unknown",
        NULL,
};

static const char *const phase_values[] = {
        [REFLEX_IDLE] = "idle",       [REFLEX_PLANNED] = "planned",   [REFLEX_CORDONED] = "cordoned",
        [REFLEX_LB_WAIT] = "lb-wait", [REFLEX_DRAINING] = "draining", [REFLEX_VOLUMES] = "volumes",
        [REFLEX_DRAINED] = "drained", [REFLEX_ENDING] = "ending",     [REFLEX_CANCELLED] = "cancelled",
        [_REFLEX_STATE_MAX] = NULL,
};

static const char *const error_values[] = {
        [AGENT_API_CONFLICT] = "conflict",
        [AGENT_API_REFUSED] = "refused",
        [AGENT_API_UNREACHABLE] = "unreachable",
        [_AGENT_API_ERROR_MAX] = NULL,
};

static const double cordon_buckets[] = { 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60 };
static const double drained_buckets[] = { 0.25, 0.5, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 300 };

const MetricFamily agent_metric_families[_AGENT_METRIC_MAX] = {
        [AGENT_METRIC_NOTICES] = { "vesper_agent_notices_total", METRIC_COUNTER,
                                   "Announcements of this node's end, by kind.", "kind", kind_values, NULL,
                                   0 },
        [AGENT_METRIC_POLLS] = { "vesper_agent_polls_total", METRIC_COUNTER,
                                 "Polls of the notice source, by what they showed.", "result", poll_values,
                                 NULL, 0 },
        [AGENT_METRIC_EVICTIONS] = { "vesper_agent_evictions_total", METRIC_COUNTER,
                                     "Answers to evictions of this node's pods.", "answer",
                                     eviction_answer_names, NULL, 0 },
        [AGENT_METRIC_PHASE] = { "vesper_agent_phase", METRIC_GAUGE,
                                 "1 for the phase that this node's interruption is in.", "phase",
                                 phase_values, NULL, 0 },
        [AGENT_METRIC_PODS_LEFT] = { "vesper_agent_pods_left", METRIC_GAUGE,
                                     "Pods that the drain under way still waits for.", NULL, NULL, NULL, 0 },
        [AGENT_METRIC_NOTICE_TO_CORDON] = { "vesper_agent_notice_to_cordon_seconds", METRIC_HISTOGRAM,
                                            "From the answer that showed a notice to the acknowledged "
                                            "cordon.",
                                            NULL, NULL, cordon_buckets, ELEMENTSOF(cordon_buckets) },
        [AGENT_METRIC_NOTICE_TO_DRAINED] = { "vesper_agent_notice_to_drained_seconds", METRIC_HISTOGRAM,
                                             "From the answer that showed a notice to the drained node.",
                                             NULL, NULL, drained_buckets, ELEMENTSOF(drained_buckets) },
        [AGENT_METRIC_API_ERRORS] = { "vesper_agent_api_errors_total", METRIC_COUNTER,
                                      "Writes to the Node object that failed.", "kind", error_values, NULL,
                                      0 },
        [AGENT_METRIC_SHUTDOWN_BUDGET] = { "vesper_agent_shutdown_budget_seconds", METRIC_GAUGE,
                                           "The most time by which a shutdown of this machine is delayed "
                                           "for the drain "
                                           "of its node; 0: none.",
                                           NULL, NULL, NULL, 0 },
        [AGENT_METRIC_KUBELET_INHIBITS] = { "vesper_agent_kubelet_inhibits_shutdown", METRIC_GAUGE,
                                            "1: the kubelet's own graceful node shutdown is on, and kills "
                                            "pods while they "
                                            "are evicted.",
                                            NULL, NULL, NULL, 0 },
        [AGENT_METRIC_KUBELET_UNHEALTHY] = { "vesper_agent_kubelet_unhealthy", METRIC_GAUGE,
                                             "1: the kubelet's /healthz has failed four times in a row, and not answered twice "
                                             "since.",
                                             NULL, NULL, NULL, 0 },
        [AGENT_METRIC_NO_ROUTE] = { "vesper_agent_api_no_route", METRIC_GAUGE,
                                    "1: the last request to the API server found no route, or no address for its name.", NULL, NULL,
                                    NULL, 0 },
        [AGENT_METRIC_ROUTE_CHANGES] = { "vesper_agent_route_changes_total", METRIC_COUNTER,
                                         "Changes of links and routes after which waiting retries went out at once.", NULL, NULL, NULL,
                                         0 },
        [AGENT_METRIC_NOTIFICATIONS] = NOTIFY_METRIC("vesper_agent"),
};

int agent_metrics_new(Metrics **ret) {
        return metrics_new(agent_metric_families, ELEMENTSOF(agent_metric_families), ret);
}

AgentApiError agent_api_error_kind(const ApiError *e) {
        if (e->http == 409)
                return AGENT_API_CONFLICT;
        return e->http >= 400 && e->http < 500 && e->http != 429 ? AGENT_API_REFUSED : AGENT_API_UNREACHABLE;
}

/* -- the page ----------------------------------------------------------------------------------- */

/* The evictor keeps its own counts. */
static void take_evictions(AgentMetricsPage *p) {
        EvictorStats stats = evictor_stats(p->evictor);

        for (size_t i = 0; i < _EVICTION_ANSWER_MAX; i++) {
                metrics_add(p->metrics, AGENT_METRIC_EVICTIONS, i, stats.answers[i] - p->evictions_told[i]);
                p->evictions_told[i] = stats.answers[i];
        }
}

void agent_health_handle(HttpExchange *x, void *unused) {
        if (x->method != HTTP_GET && x->method != HTTP_HEAD)
                http_reply_text(x, 405, "text/plain", "only GET\n");
        else if (streq(x->path, "/healthz"))
                http_reply_text(x, 200, "text/plain", "ok\n");
        else
                http_reply_text(x, 404, "text/plain", "see /metrics and /healthz\n");
}

void agent_metrics_handle(HttpExchange *x, void *page) {
        AgentMetricsPage *p = page;
        StrBuf b = { 0 };
        _cleanup_free_ char *text = NULL;

        if (!streq(x->path, "/metrics") || (x->method != HTTP_GET && x->method != HTTP_HEAD)) {
                agent_health_handle(x, NULL);
                return;
        }
        take_evictions(p);
        metrics_format(p->metrics, &b);
        text = strbuf_steal(&b);
        if (text)
                http_reply_text(x, 200, "text/plain; version=0.0.4; charset=utf-8", text);
        else
                http_reply_text(x, 500, "text/plain", "out of memory\n");
}
