/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * By what the API server knows the webhook: the leader writes the CA into each webhook of one ValidatingWebhookConfiguration,
 * which people install without it, and writes it again where somebody has taken it out. Nothing else of the object is
 * touched. Where there is no such object nothing is written: no API server asks.
 */

#include "kube-client.h"
#include "wakeup.h"

/* Bound of the timer of a caBundle that has to be written: the longest Retry-After. */
#define CA_BUNDLE_WAKEUP_USEC API_RETRY_AFTER_MAX_USEC

typedef struct CaBundle CaBundle;

/* changed: ca_bundle_stands() may be another. */
int ca_bundle_new(KubeClient *c, const char *configuration, void (*changed)(void *userdata), void *userdata, CaBundle **ret);
CaBundle *ca_bundle_free(CaBundle *b);
DEFINE_FREEP(CaBundle, ca_bundle_free);

int ca_bundle_set(CaBundle *b, const char *pem); /* from now on; -ENOMEM */
void ca_bundle_lead(CaBundle *b, const HttpGuard *guard); /* NULL: another leads */
/* Each webhook of the configuration has it, or there is no such configuration. */
bool ca_bundle_stands(const CaBundle *b);

/* Reports a caBundle that has to be written, and the informer. */
void ca_bundle_next_wakeup(const CaBundle *b, Wakeups *w);
