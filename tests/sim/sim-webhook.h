/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The admission webhook in a simulated world: the API server asks some coordinator before a person's DELETE of a Node or a
 * NodeClaim, over a network of its own that loses and delays. Who does not run refuses the connection; who gets no CPU
 * gives no answer; who dies breaks off. failurePolicy is Ignore: such a deletion passes, and nothing is charged for it.
 */

#include "sim-world.h"

typedef struct SimWebhook SimWebhook;

/* Registers the webhook; the world's processes are there. */
SimWebhook *sim_webhook_new(SimWorld *w);
SimWebhook *sim_webhook_free(SimWebhook *h); /* after the cluster */
/* It is about to end; not registered: nothing. */
void sim_webhook_coordinator_dies(SimWebhook *h, const SimProcess *p);
/* A person deletes the Node, or its claim, once, and takes what comes for an answer. */
void sim_webhook_delete(SimWebhook *h, size_t machine, bool claim);
/* A person's DELETE of the machine's Node, which the coordinator is asked about and something else refuses
 * then: nothing is deleted. */
void sim_webhook_ask(SimWebhook *h, size_t machine);
