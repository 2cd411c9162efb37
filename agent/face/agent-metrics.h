/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the agent counts, and what it answers to who asks: at [Metrics] Listen= paths /metrics and /healthz,
 * at [Health] Listen= the latter alone. */

#include "evictor.h"
#include "http-message.h"
#include "metrics.h"
#include "notice-source.h"

typedef enum AgentMetric {
        AGENT_METRIC_NOTICES,   /* by kind: first sightings */
        AGENT_METRIC_POLLS,     /* by result */
        AGENT_METRIC_EVICTIONS, /* by answer */
        AGENT_METRIC_PHASE,     /* by phase: 1 for the present one */
        AGENT_METRIC_PODS_LEFT,
        AGENT_METRIC_NOTICE_TO_CORDON, /* seconds */
        AGENT_METRIC_NOTICE_TO_DRAINED,
        AGENT_METRIC_API_ERRORS, /* by kind */
        AGENT_METRIC_SHUTDOWN_BUDGET, /* seconds */
        AGENT_METRIC_KUBELET_INHIBITS,
        AGENT_METRIC_KUBELET_UNHEALTHY,
        AGENT_METRIC_NO_ROUTE,
        AGENT_METRIC_ROUTE_CHANGES,
        AGENT_METRIC_NOTIFICATIONS, /* by outcome and phase */
        _AGENT_METRIC_MAX,
} AgentMetric;

typedef enum AgentApiError {
        AGENT_API_CONFLICT,    /* 409: somebody else wrote first */
        AGENT_API_REFUSED,     /* other 4xx: credential, admission */
        AGENT_API_UNREACHABLE, /* no answer, or 429, 5xx */
        _AGENT_API_ERROR_MAX,
} AgentApiError;

AgentApiError agent_api_error_kind(const ApiError *e);

/* As the manual page lists them. */
extern const MetricFamily agent_metric_families[_AGENT_METRIC_MAX];
int agent_metrics_new(Metrics **ret);

/* What answers on the socket. */
typedef struct AgentMetricsPage {
        Metrics *metrics;
        const Evictor *evictor;
        uint64_t evictions_told[_EVICTION_ANSWER_MAX];
} AgentMetricsPage;

/* Both are an http_handler_t. */
void agent_metrics_handle(HttpExchange *x, void *page);
void agent_health_handle(HttpExchange *x, void *unused);
