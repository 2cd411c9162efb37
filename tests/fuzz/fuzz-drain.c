/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "drain-plan.h"
#include "eviction.h"
#include "fuzz-objects.h"
#include "string-util.h"

/*
 * Any pod under any rules: the plan is within its bounds, the same for the same question, and says when to
 * ask again: until then time alone does not change it. Any answer to an eviction means something, and a PDB
 * is named only where one refused.
 */

static bool plans_equal(const PodPlan *a, const PodPlan *b) {
        return a->action == b->action && a->pod_class == b->pod_class &&
               streq_ptr(a->protected_by, b->protected_by);
}

static void check_bounds(const KubePod *pod, const DrainRules *rules, const PodPlan *p, usec_t now) {
        usec_t left = usec_sub(rules->deadline_usec, now);

        assert(pod_action_to_string(p->action) && pod_class_to_string(p->pod_class));
        assert((p->pod_class == POD_CLASS_PROTECTED) == (p->protected_by != NULL));
        assert(p->grace_sec == -1 || p->grace_sec >= 1); /* never 0: that breaks at-most-one */
        if (p->action != POD_ACTION_EVICT && p->action != POD_ACTION_DELETE)
                assert(p->grace_sec == -1);
        if (rules->deadline_usec == USEC_INFINITY)
                assert(p->action != POD_ACTION_DELETE && p->grace_sec == -1);
        else if (p->grace_sec > 1)
                assert((usec_t) p->grace_sec <= left / USEC_PER_SEC);
        if (p->action == POD_ACTION_EVICT && p->grace_sec > 0)
                assert(p->grace_sec < pod->grace_sec);
        if (p->action == POD_ACTION_DELETE && p->pod_class != POD_CLASS_TERMINATING && pod->grace_sec > 0)
                assert((usec_t) pod->grace_sec >= left / USEC_PER_SEC); /* not before T - g */
}

static void check_plan(Draw *d) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        DrainRules rules = {
                .deadline_usec = draw_usec(d, FUZZ_NOW),
                .protected_policy = (ProtectedPolicy) draw_below(d, 3),
                .evict_first = draw_bool(d),
                .stuck_after_usec = draw_bool(d) ? 0 : draw_usec(d, USEC_PER_MINUTE),
        };
        DrainContext context = { draw_bool(d), draw_bool(d) };
        usec_t now = usec_add(FUZZ_NOW, draw_byte(d) * USEC_PER_SEC), later;
        bool refused = draw_bool(d);
        uint64_t drawn = draw_uint64(d);
        PodPlan p, again;
        KubeObject *o;

        assert(intern_pool_new(&pool) >= 0);
        o = fuzz_draw_object(d, &kube_pod_kind, fuzz_pod, pool);
        if (o) {
                const KubePod *pod = (const KubePod *) o;
                DrainContext folded = { 0 };

                p = drain_plan_pod(pod, &rules, &context, refused, now);
                again = drain_plan_pod(pod, &rules, &context, refused, now);
                assert(plans_equal(&p, &again) && p.grace_sec == again.grace_sec &&
                       p.next_usec == again.next_usec);
                check_bounds(pod, &rules, &p, now);
                assert((p.action == POD_ACTION_NONE) == !drain_waits_for(pod, &rules, now));
                assert(p.next_usec > now);
                drain_context_add(&folded, pod, &rules, now);
                assert(p.action != POD_ACTION_NONE || (!folded.any_protected && !folded.any_non_critical));

                /* What is held or waited for stays so until the instant that was named. */
                later = usec_add(now, p.next_usec == USEC_INFINITY ? drawn % (10 * USEC_PER_DAY)
                                                                   : drawn % (p.next_usec - now));
                if (p.action == POD_ACTION_HOLD) {
                        again = drain_plan_pod(pod, &rules, &context, refused, later);
                        assert(plans_equal(&p, &again));
                }
        }
        kube_object_unref(o);
        assert(intern_pool_size(pool) == 0);
}

/* -- answers to evictions ----------------------------------------------------------------------- */

static const char status[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":"
        "\"Cannot evict pod as it would violate the pod's disruption budget.\","
        "\"reason\":\"TooManyRequests\",\"details\":{\"causes\":[{\"reason\":\"DisruptionBudget\","
        "\"message\":\"The disruption budget web needs 3 healthy pods and has 3 currently\"},"
        "{\"reason\":\"NamespaceTerminating\",\"message\":\"m\",\"field\":\"metadata.namespace\"}],"
        "\"retryAfterSeconds\":10},\"code\":429}";
static const char several[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
                              "\"InternalError\",\"code\":500,"
                              "\"message\":\"This pod has more than one PodDisruptionBudget, which the "
                              "eviction subresource does not support.\"}";

static const char hooked[] =
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"code\":403,"
        "\"message\":\"admission webhook \\\"vm.example.com\\\" denied the request: it is being moved\","
        "\"details\":{\"retryAfterSeconds\":10}}";

static void check_answer(Draw *d) {
        static const unsigned statuses[] = { 429, 400, 401, 403, 404, 405, 409, 422,
                                             500, 502, 503, 504, 300, 418, 599 };
        unsigned http = draw_of(d, statuses);
        usec_t header = draw_bool(d) ? draw_byte(d) * USEC_PER_SEC : 0;
        _cleanup_free_ char *body = draw_bent_json(d, http == 500       ? several
                                                            : http % 2 == 0 ? hooked
                                                                            : status),
                            *by = NULL;
        _cleanup_(api_error_done) ApiError e = { 0 };
        EvictionAnswer a;
        ApiWebhook hook;

        assert(api_error_from_body(http, body, strlen(body), header, &e) == 0);
        a = eviction_classify(&e, &by);
        assert(eviction_answer_to_string(a));
        assert(a != EVICTION_ACCEPTED && a != EVICTION_NO_ANSWER);
        assert((a == EVICTION_WEBHOOK) == (e.message[0] && api_error_is_of_webhook(&e, &hook)));
        assert(a != EVICTION_WEBHOOK || by);
        assert(!by || a == EVICTION_BLOCKED_BY_PDB || a == EVICTION_PDB_NOT_OBSERVED || a == EVICTION_WEBHOOK);
        assert(!by || (*by && strlen(by) <= 253 && !strpbrk(by, " \n\x1b")));
        assert(*eviction_words(&e) && strlen(eviction_words(&e)) <= strlen(e.message));
        assert(eviction_answer_is_final(a) == (a != EVICTION_WEBHOOK && (http == 404 || http == 409)));
        assert(eviction_classify(&e, NULL) == a);
        assert(e.retry_after_usec >= MIN(header, API_RETRY_AFTER_MAX_USEC) && e.retry_after_usec <= API_RETRY_AFTER_MAX_USEC);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };

        if (draw_bool(&d))
                check_answer(&d);
        else
                check_plan(&d);
        return 0;
}
