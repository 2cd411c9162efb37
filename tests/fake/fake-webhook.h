/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ValidatingWebhookConfiguration, the pure part: which webhooks a write concerns, what they are asked, and
 * what their answer means (apiserver/pkg/admission/plugin/webhook of 1.34). matchPolicy needs no work here:
 * every resource is served in one version. matchConditions are refused: CEL is not spoken. A delete with
 * grace 0 asks once here; the real server asks up to three times for a pod.
 */

#include "fake-request.h"
#include "fake-store.h"

/* A write as admission sees it: new NULL is a delete, old NULL a create. */
typedef struct FakeWrite {
        const FakeRequest *request;
        const cJSON *new, *old;
        bool dry_run;
} FakeWrite;

const char *fake_write_operation(const FakeWrite *w);

/* -- the configuration: fake-webhook-config.c ----------------------------------------------------------- */

/* What the API server presets. */
void fake_webhook_config_default(cJSON *config);
void fake_webhook_config_validate(const cJSON *config, FakeErrors *e);

/* -- one webhook --------------------------------------------------------------------------------------- */

/* Rules and selectors fit. */
bool fake_webhook_concerns(const FakeStore *s, const cJSON *webhook, const FakeWrite *w);
/* It may be asked about a dry run. */
bool fake_webhook_takes_dry_run(const cJSON *webhook);
bool fake_webhook_may_fail(const cJSON *webhook); /* failurePolicy Ignore */
usec_t fake_webhook_timeout(const cJSON *webhook);
/* With "?timeout=10s"; free it. */
char *fake_webhook_url(const cJSON *webhook);
/* The AdmissionReview; free it. */
char *fake_webhook_review(const FakeWrite *w, const char *uid);

/* What came back. NULL: it can be used; else why not (free it). */
char *fake_webhook_check_response(const cJSON *review, const char *uid);
/* Of a usable one that does not allow: false, and the reply says so. */
bool fake_webhook_reply(const char *name, const cJSON *review, FakeReply *reply);
