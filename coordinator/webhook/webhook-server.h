/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the webhook is served, and with which certificate: of files ([Webhook] CertificateFile=, looked at each minute; by
 * cert-manager or a person), or of a Secret that vesper makes and renews ([Webhook] CertificateSecret=), whose CA the leader
 * writes into the ValidatingWebhookConfiguration. Another certificate is taken up without a restart: a successor takes the
 * socket over, and connections under way end as they began.
 */

#include "coordinator-config.h"
#include "node-webhook.h"
#include "wakeup.h"

typedef struct WebhookServer WebhookServer;

/* All borrowed. With files it listens when this returns; with a Secret as soon as that is there. What failed is logged. */
int webhook_server_new(KubeClient *c, const CoordinatorConfig *config, NodeWebhook *webhook, WebhookServer **ret);
WebhookServer *webhook_server_free(WebhookServer *s);
DEFINE_FREEP(WebhookServer, webhook_server_free);
void webhook_server_lead(WebhookServer *s, const HttpGuard *guard); /* NULL: another leads */
void webhook_server_next_wakeup(const WebhookServer *s, Wakeups *w);
