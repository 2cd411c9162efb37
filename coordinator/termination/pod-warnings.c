/* SPDX-License-Identifier: Apache-2.0 */
#include "pod-warnings.h"

#include <inttypes.h>

#include "hashmap.h"
#include "node-pods.h"
#include "string-util.h"
#include "token-bucket.h"

struct PodWarnings {
        const TerminationContext *context;
        char *node;
        bool is_heard;
        Hashmap *told;             /* usec_t: the T that was told of on this pod, by uid */
        usec_t agent_drains_since; /* loop_now(); 0: it does not */
};

int pod_warnings_new(const TerminationContext *context, const char *node, bool is_heard, PodWarnings **ret) {
        _cleanup_(pod_warnings_freep) PodWarnings *w = new0(PodWarnings, 1);
        int r;

        assert(context && node && ret);
        if (!w)
                return -ENOMEM;
        w->context = context;
        w->is_heard = is_heard;
        if (free_and_strdup(&w->node, node) < 0)
                return -ENOMEM;
        r = hashmap_new(0, &w->told);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(w);
        return 0;
}

PodWarnings *pod_warnings_free(PodWarnings *w) {
        if (!w)
                return NULL;
        hashmap_free_with(w->told, mfree);
        free(w->node);
        free(w);
        return NULL;
}

static void note_told(PodWarnings *w, const char *uid, usec_t deadline_usec) {
        usec_t *told = hashmap_get(w->told, uid);

        if (!told) {
                told = new0(usec_t, 1);
                if (!told || hashmap_put(w->told, uid, told) < 0) {
                        free(told);
                        return; /* it may be told twice */
                }
        }
        *told = deadline_usec;
}

bool pod_warnings_tell(PodWarnings *w, const KubePod *pod, usec_t at_usec, usec_t deadline_usec) {
        EventObject o = event_object(&pod->object);
        char when[RFC3339_MAX], end[RFC3339_MAX];
        const usec_t *told = hashmap_get(w->told, pod->object.meta.uid);
        usec_t at;

        if (told && *told == deadline_usec)
                return true;
        if (!token_bucket_take(w->context->warnings, loop_now(w->context->env->loop), &at))
                return false;
        note_told(w, pod->object.meta.uid, deadline_usec);
        rfc3339_format(at_usec, when);
        rfc3339_format(deadline_usec, end);
        event_record(w->context->recorder, &o, EVENT_WARNING, "DeletionAtDeadline",
                     w->is_heard ? "Node %s is drained because the interruption queue announced that its machine may be gone from %s on: if this pod is still there at %s "
                                   "it is deleted, with what is left of its grace of %" PRIi64 " s. No PodDisruptionBudget and no opt-out holds it then"
                                 : "Node %s is being removed and goes at %s: if this pod is still there at %s it is deleted, with what is left of its grace of %" PRIi64 " s. "
                                   "No PodDisruptionBudget and no opt-out holds it then",
                     w->node, end, when, pod->grace_sec);
        return true;
}

usec_t pod_warnings_beside_agent(PodWarnings *w, const DrainRules *rules) {
        const ClusterView *view = w->context->view;
        Loop *loop = w->context->env->loop;
        usec_t now = loop_now(loop), wall = loop_wall(loop), at;
        DrainContext context = {};
        const KubePod *pod;

        if (rules->deadline_usec == USEC_INFINITY)
                return USEC_INFINITY;
        if (w->agent_drains_since == 0)
                w->agent_drains_since = now;
        at = drain_plan_warn_at(w->agent_drains_since,
                                loop_from_wall(loop, node_pods_first_due(view, w->node, rules, wall)));
        if (now < at)
                return at;
        for (HashmapIterator it = {}; cluster_view_iterate_pods(view, w->node, &it, &pod);)
                drain_context_add(&context, pod, rules, wall);
        for (HashmapIterator it = {}; cluster_view_iterate_pods(view, w->node, &it, &pod);) {
                PodPlan p = drain_plan_pod(pod, rules, &context, false, wall);
                usec_t due = drain_waits_for(pod, rules, wall) ? drain_plan_due(pod, &p, rules, wall) : USEC_INFINITY;

                if (due != USEC_INFINITY && !pod_warnings_tell(w, pod, due, rules->deadline_usec))
                        return usec_add(now, DRAIN_WARN_AGAIN_USEC);
        }
        return USEC_INFINITY;
}

void pod_warnings_agent_ended(PodWarnings *w) {
        w->agent_drains_since = 0;
}
