/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Answers the API server's review (POST /admission) before a Node or NodeClaim is deleted. Every replica
 * answers. A deletion that the NodeDisruptionBudgets have room for is charged (budget-ledger.h) and allowed.
 * Any other deletion is refused, with the message of the budget. Exempt users (admission-exempt.h) pass.
 *
 * The answer comes within ANSWER_USEC. If the ledger does not answer in that time, it is HTTP 503, and the
 * API server applies the webhook's failurePolicy: Ignore lets the deletion pass, and the removal waits for
 * its budget undrained (node-termination.h).
 *
 * Name and uid come from the review; whatever else decides comes from the view's Node of that uid. A Node
 * that is not in the view is not charged: its deletion is refused with 503 while the Node may be newer than
 * the view (admission_may_be_newer()), and allowed otherwise. So a made-up review costs a budget no more
 * than an honest one of the same Node.
 *
 * A Node that a NodePool is about to adopt has no finalizer yet: its machine would be left behind. Its
 * deletion is refused for ADOPT_USEC at most, counted from the first try.
 */

#include "budget-ledger.h"
#include "http-message.h"
#include "http-server.h"

typedef struct NodeWebhook NodeWebhook;

typedef enum WebhookAnswer {
        WEBHOOK_ALLOWED,
        WEBHOOK_REFUSED,
        WEBHOOK_EXEMPT,     /* allowed: the user is exempt, or no budget concerns the object */
        WEBHOOK_UNADOPTED,  /* refused: a NodePool is to adopt the Node first */
        WEBHOOK_UNSEEN,     /* refused: the Node may be newer than the view */
        WEBHOOK_UNKNOWN,    /* no answer in time: failurePolicy decides */
        WEBHOOK_UNREADABLE, /* the request is no AdmissionReview, or its client is not known */
        _WEBHOOK_ANSWER_MAX,
} WebhookAnswer;

/* "allowed"; NULL behind the last. */
extern const char *const webhook_answer_names[_WEBHOOK_ANSWER_MAX + 1];

/* All borrowed; ns: the coordinator's own namespace, copied; exempt: patterns besides admission_exemptions,
 * or NULL. known_alone: clients that have not shown who they are get HTTP 401 (HttpFaceTls.client_ca). */
int node_webhook_new(KubeClient *c, const ClusterView *v, BudgetLedger *l, const char *ns,
                     char *const *exempt, bool known_alone, NodeWebhook **ret);
/* Every exchange has ended before. */
NodeWebhook *node_webhook_free(NodeWebhook *w);
DEFINE_FREEP(NodeWebhook, node_webhook_free);

/* HttpServerOptions.on_headers: 404, 405 or 401, or 0. */
unsigned node_webhook_check_headers(const HttpExchange *x, void *webhook, const char **ret_text);
void node_webhook_handle(HttpExchange *x, void *webhook); /* http_handler_t */
/* Answers since the start, by WebhookAnswer. */
const uint64_t *node_webhook_answers(const NodeWebhook *w);
/* Counts a refusal of the listener, and logs the address (refusal-log.h). HttpServerOptions.on_refused. */
void node_webhook_count_refusal(HttpRefusal why, const char *address, void *webhook);
/* Refusals since the start, by HttpRefusal. */
const uint64_t *node_webhook_refusals(const NodeWebhook *w);
/* "connection"; NULL behind the last. */
extern const char *const webhook_refusal_names[_HTTP_REFUSAL_MAX + 1];
/* Reports each review that waits for the ledger. */
void node_webhook_next_wakeup(const NodeWebhook *n, Wakeups *w);
