/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "fake-handlers.h"

/*
 * pods/eviction, to the letter of pkg/registry/core/pod/storage/eviction.go of 1.34:
 *
 *      body --name differs--> 400      admission --> 403 (NamespaceTerminating, another node's pod)
 *      pod gone --> 404
 *      Succeeded, Failed, Pending, terminating ---------------------------------> delete, no budget asked
 *      several budgets --> 500 without reason, permanent until somebody edits one
 *      not ready, AlwaysAllow, or the budget is whole without it -----------------> delete
 *      a webhook of the pod's (FAKE_EVICTION_WEBHOOK) answers, before a budget is asked --> its status
 *      budget not observed --> 429, Retry-After 10;  allows none --> 429;  negative or overfull --> 403
 *      else charged (disruptionsAllowed - 1, disruptedPods), then DisruptionTarget and delete --> 201
 */

#define WEBHOOK "pods.fake.vesper.test"
#define DISRUPTED_PODS_MAX 2000
#define VIOLATES "Cannot evict pod as it would violate the pod's disruption budget."

static bool check_body(const FakeRequest *r, const cJSON *body, FakeReply *reply) {
        const char *kind = fj_string(body, "kind", NULL), *version = fj_string(body, "apiVersion", NULL);
        const cJSON *grace = fj_get(body, "deleteOptions", "gracePeriodSeconds", NULL);

        if (grace && !cJSON_IsNumber(grace) && !cJSON_IsNull(grace))
                return fake_reply_bad_request(
                        reply, "Eviction in version \"v1\" cannot be handled as a Eviction: json: cannot "
                               "unmarshal string into Go struct field "
                               "DeleteOptions.deleteOptions.gracePeriodSeconds of type int64");

        if (version && !streq(version, "policy/v1") && !streq(version, "policy/v1beta1"))
                return fake_reply_bad_request(
                        reply,
                        "the API version in the data (%s) does not match the expected API "
                        "version (v1)",
                        version);
        if (kind && !streq(kind, "Eviction"))
                return fake_reply_bad_request(reply, "%s in version \"v1\" cannot be handled as a Eviction",
                                              kind);
        if (!streq(strempty(fj_string(body, "metadata", "name", NULL)), r->name))
                return fake_reply_bad_request(reply, "name in URL does not match name in Eviction object");
        if (!isempty(fj_string(body, "metadata", "namespace", NULL)) &&
            !streq(fj_string(body, "metadata", "namespace", NULL), r->ns))
                return fake_reply_bad_request(
                        reply, "the namespace of the provided object does not match the namespace "
                               "sent on the request");
        return true;
}

static bool ignores_budget(const cJSON *pod) {
        const char *phase = strempty(fj_string(pod, "status", "phase", NULL));

        return streq(phase, "Succeeded") || streq(phase, "Failed") || streq(phase, "Pending") ||
               fj_get(pod, "metadata", "deletionTimestamp", NULL);
}

static bool pod_ready(const cJSON *pod) {
        const cJSON *c = fj_find(fj_get(pod, "status", "conditions", NULL), "type", "Ready");

        return streq_ptr(fj_string(c, "status", NULL), "True");
}

/* The one that matches; *ret_n says how many do. */
static const cJSON *find_budget(FakeApi *a, const FakeRequest *r, const cJSON *pod, unsigned *ret_n) {
        const cJSON *pdb, *found = NULL;

        *ret_n = 0;
        FAKE_STORE_FOREACH (pdb, a->store, FAKE_PDBS, r->ns)
                if (fake_object_selector_matches(fj_get(pdb, "spec", "selector", NULL),
                                                 fj_get(pod, "metadata", "labels", NULL))) {
                        found = pdb;
                        (*ret_n)++;
                }
        return found;
}

/* -- the budget ---------------------------------------------------------------------------------------- */

static bool refuse_forbidden(FakeReply *reply, const char *name, const char *why) {
        cJSON *details;

        fake_reply_failure(reply, 403, "Forbidden", "poddisruptionbudget.policy \"%s\" is forbidden: %s",
                           name, why);
        details = fake_reply_details(reply);
        fj_set_string(details, "name", name);
        fj_set_string(details, "group", "policy");
        fj_set_string(details, "kind", "poddisruptionbudget");
        return false;
}

static bool refuse_unobserved(FakeReply *reply, const char *name) {
        _cleanup_free_ char *cause =
                MUST(strf("The disruption budget %s is still being processed by the server.", name));

        fake_reply_failure(reply, 429, "TooManyRequests", "%s", VIOLATES);
        fake_reply_add_cause(reply, "DisruptionBudget", cause, NULL);
        fake_reply_set_retry_after(reply, 10);
        return false;
}

static bool refuse_exhausted(FakeReply *reply, const cJSON *pdb, const char *name) {
        _cleanup_free_ char *cause = MUST(strf("The disruption budget %s needs %" PRIi64
                                               " healthy pods and has %" PRIi64 " currently",
                                               name, fj_int(pdb, 0, "status", "desiredHealthy", NULL),
                                               fj_int(pdb, 0, "status", "currentHealthy", NULL)));

        fake_reply_failure(reply, 429, "TooManyRequests", "%s", VIOLATES);
        fake_reply_add_cause(reply, "DisruptionBudget", cause, NULL);
        return false;
}

static void set_insufficient(FakeApi *a, cJSON *status) {
        cJSON *conditions = fj_array(status, "conditions"),
              *c = fj_find(conditions, "type", "DisruptionAllowed");
        char now[RFC3339_MAX];

        if (!c) {
                c = fj_parse("{'type':'DisruptionAllowed'}");
                cJSON_AddItemToArray(conditions, c);
        }
        if (!streq_ptr(fj_string(c, "status", NULL), "False"))
                fj_set_string(c, "lastTransitionTime", fake_store_timestamp(a->store, now));
        fj_set_string(c, "status", "False");
        fj_set_string(c, "reason", "InsufficientPods");
        fj_set_string(c, "message", "");
        fj_set_copy(c, "observedGeneration", fj_get(status, "observedGeneration", NULL));
}

static bool check_and_decrement(FakeApi *a, const FakeRequest *r, const cJSON *pdb, bool dry_run,
                                FakeReply *reply) {
        const char *name = fj_string(pdb, "metadata", "name", NULL);
        int64_t allowed = fj_int(pdb, 0, "status", "disruptionsAllowed", NULL);
        cJSON *new, *status;
        char now[RFC3339_MAX];

        if (fj_int(pdb, 0, "status", "observedGeneration", NULL) <
            fj_int(pdb, 0, "metadata", "generation", NULL))
                return refuse_unobserved(reply, name);
        if (allowed < 0)
                return refuse_forbidden(reply, name, "pdb disruptions allowed is negative");
        if (cJSON_GetArraySize(fj_get(pdb, "status", "disruptedPods", NULL)) > DISRUPTED_PODS_MAX)
                return refuse_forbidden(
                        reply, name,
                        "DisruptedPods map too big - too many evictions not confirmed by PDB "
                        "controller");
        if (allowed == 0)
                return refuse_exhausted(reply, pdb, name);
        if (dry_run)
                return true;

        new = fj_copy(pdb);
        status = fj_object(new, "status");
        fj_set_int(status, "disruptionsAllowed", allowed - 1);
        if (allowed == 1)
                set_insufficient(a, status);
        fj_set_string(fj_object(status, "disruptedPods"), r->name, fake_store_timestamp(a->store, now));
        fake_store_update(a->store, FAKE_PDBS, new);
        return true;
}

/* True: the pod may go. */
static bool ask_budget(FakeApi *a, const FakeRequest *r, const cJSON *pod, bool dry_run, FakeReply *reply) {
        unsigned n;
        const cJSON *pdb = find_budget(a, r, pod, &n);

        if (n == 0)
                return true;
        if (n > 1)
                return fake_reply_failure(reply, 500, NULL,
                                          "This pod has more than one PodDisruptionBudget, which the "
                                          "eviction subresource does not support.");
        if (!pod_ready(pod)) {
                int64_t desired = fj_int(pdb, 0, "status", "desiredHealthy", NULL);

                if (streq_ptr(fj_string(pdb, "spec", "unhealthyPodEvictionPolicy", NULL), "AlwaysAllow") ||
                    (desired > 0 && fj_int(pdb, 0, "status", "currentHealthy", NULL) >= desired))
                        return true;
        }
        return check_and_decrement(a, r, pdb, dry_run, reply);
}

/* -- the webhook --------------------------------------------------------------------------------------- */

/* "STATUS WORDS": refused so (no words: without explanation); "500" of a webhook that cannot be called. */
static bool ask_webhook(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        const cJSON *pod = fake_store_get(a->store, FAKE_PODS, r->ns, r->name);
        const char *says = fj_string(pod, "metadata", "annotations", FAKE_EVICTION_WEBHOOK, NULL);
        char *words;
        unsigned status;

        if (!says)
                return true;
        status = (unsigned) strtoul(says, &words, 10);
        if (status == 500)
                return fake_reply_failure(reply, 500, "InternalError",
                                          "Internal error occurred: failed calling webhook \"" WEBHOOK
                                          "\": failed to call webhook:%s", words);
        return fake_reply_failure(reply, status, NULL, "admission webhook \"" WEBHOOK "\" denied the request%s%s",
                                  *words ? ":" : " without explanation", words);
}

/* -- the pod ------------------------------------------------------------------------------------------- */

static void set_disruption_target(FakeApi *a, const cJSON *pod) {
        cJSON *new = fj_copy(pod), *conditions = fj_array(fj_object(new, "status"), "conditions");
        cJSON *c = fj_find(conditions, "type", "DisruptionTarget");
        char now[RFC3339_MAX];

        if (!c) {
                c = fj_parse("{'type':'DisruptionTarget'}");
                cJSON_AddItemToArray(conditions, c);
        }
        if (!streq_ptr(fj_string(c, "status", NULL), "True"))
                fj_set_string(c, "lastTransitionTime", fake_store_timestamp(a->store, now));
        fj_set_string(c, "status", "True");
        fj_set_string(c, "reason", "EvictionByEvictionAPI");
        fj_set_string(c, "message", "Eviction API: evicting");
        fake_store_update(a->store, FAKE_PODS, new);
}

static bool evict(FakeApi *a, const FakeRequest *r, const cJSON *eviction, FakeDeleteOptions *o,
                  FakeReply *reply) {
        const cJSON *pod;

        if (!fake_admit(a->store, r, NULL, NULL, reply) ||
            !fake_validate(a, r, eviction, NULL, o->dry_run, reply) || !ask_webhook(a, r, reply))
                return false;
        pod = fake_store_get(a->store, FAKE_PODS, r->ns, r->name);
        if (!pod)
                return fake_reply_not_found(reply, r->resource, r->name);
        if (!ignores_budget(pod) && !ask_budget(a, r, pod, o->dry_run, reply))
                return false;

        /* A budget may have been charged: a wrong precondition costs it a place, there as here. */
        if (!fake_check_preconditions(r->resource, pod, o, reply))
                return false;
        if (!o->dry_run)
                set_disruption_target(a, pod);
        o->rv = mfree(o->rv); /* it is the version we have just made */
        return fake_write_delete(a, r, r->ns, r->name, o, false, reply);
}

void fake_handle_evict(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        _cleanup_cjson_ cJSON *body = NULL;
        FakeDeleteOptions o = { 0 };

        if (!fake_request_json(r, &body, reply) || !check_body(r, body, reply) ||
            !fake_delete_options_parse(fj_get(body, "deleteOptions", NULL), &o, reply))
                return;
        o.dry_run |= r->dry_run;
        if (evict(a, r, body, &o, reply)) {
                fake_reply_success(reply, 201, NULL);
                fj_set_int(reply->status, "code", 201);
        }
        fake_delete_options_done(&o);
}
