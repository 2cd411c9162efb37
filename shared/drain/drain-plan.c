/* SPDX-License-Identifier: Apache-2.0 */
#include "drain-plan.h"

#include "strv.h"

/* A request of ours may take so long to the API server. */
#define ON_ITS_WAY_USEC (5 * USEC_PER_SEC)
#define WARN_USEC (5 * USEC_PER_SEC)
#define WARN_FIRST_USEC USEC_PER_SEC

static const char *const action_table[_POD_ACTION_MAX] = {
        [POD_ACTION_NONE] = "none",   [POD_ACTION_WAIT] = "wait",     [POD_ACTION_HOLD] = "hold",
        [POD_ACTION_EVICT] = "evict", [POD_ACTION_DELETE] = "delete",
};

const char *pod_action_to_string(PodAction a) {
        return a < _POD_ACTION_MAX ? action_table[a] : NULL;
}

static bool class_is_waited_for(PodClass c) {
        switch (c) {
        case POD_CLASS_STATIC:
        case POD_CLASS_DAEMON:
        case POD_CLASS_TERMINAL:
                return false;
        case POD_CLASS_TERMINATING:
        case POD_CLASS_PROTECTED:
        case POD_CLASS_ORDINARY:
                return true;
        case _POD_CLASS_MAX:
        case _POD_CLASS_INVALID:
                break;
        }
        assert(false && "a pod of no class");
        return false;
}

/* When waiting for this terminating pod ends. */
static usec_t stuck_usec(const KubePod *pod, const DrainRules *rules) {
        return rules->stuck_after_usec == 0
                       ? USEC_INFINITY
                       : usec_add(pod->object.meta.deletion_usec, rules->stuck_after_usec);
}

static bool waits_for_class(PodClass c, const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec) {
        if (!class_is_waited_for(c) || pod_returns_stays(rules->returns, pod))
                return false;
        return c != POD_CLASS_TERMINATING || wall_now_usec < stuck_usec(pod, rules);
}

bool drain_waits_for(const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec) {
        return waits_for_class(pod_classify(pod, wall_now_usec, NULL, NULL), pod, rules, wall_now_usec);
}

bool drain_lets_stay(const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec) {
        DrainRules others = *rules;

        others.returns = NULL;
        return pod_returns_stays(rules->returns, pod) && drain_waits_for(pod, &others, wall_now_usec);
}

bool drain_may_finish(const KubePod *pod, usec_t wall_now_usec) {
        return pod_classify(pod, wall_now_usec, NULL, NULL) == POD_CLASS_TERMINATING &&
               !pod->needs_kubelet && strv_length(pod->object.meta.finalizers) == 0;
}

void drain_context_add(DrainContext *c, const KubePod *pod, const DrainRules *rules, usec_t wall_now_usec) {
        PodClass class = pod_classify(pod, wall_now_usec, NULL, NULL);

        if (!waits_for_class(class, pod, rules, wall_now_usec))
                return;
        if (class == POD_CLASS_PROTECTED)
                c->any_protected = true;
        if (!pod_is_critical(pod))
                c->any_non_critical = true;
}

usec_t drain_grace(int64_t grace_sec) {
        usec_t sec = (usec_t) MAX(grace_sec, INT64_C(0));

        return sec > USEC_INFINITY / USEC_PER_SEC ? USEC_INFINITY : sec * USEC_PER_SEC;
}

/* Returns the whole seconds until T, at least one: 0 would break at-most-one semantics. */
static int64_t seconds_left(usec_t deadline_usec, usec_t now_usec) {
        usec_t left = usec_sub(deadline_usec, now_usec) / USEC_PER_SEC;

        return (int64_t) MIN(MAX(left, (usec_t) 1), (usec_t) INT32_MAX);
}

/* Grace to ask for so that the pod is gone by T: its own (-1) where that fits. */
static int64_t clipped_grace(const KubePod *pod, usec_t deadline_usec, usec_t now_usec) {
        int64_t left;

        if (deadline_usec == USEC_INFINITY)
                return -1;
        left = seconds_left(deadline_usec, now_usec);
        return pod->grace_sec > left ? left : -1;
}

/* A shorter grace counts, at the API server, from when the deletion began: less than has passed since then, when the
 * request comes there, is no grace at all (apiserver/pkg/registry/rest BeforeDelete). */
static bool grace_would_be_over(const KubePod *pod, int64_t grace_sec, usec_t now_usec) {
        const ObjectMeta *m = &pod->object.meta;

        return usec_add(usec_sub(m->deletion_usec, drain_grace(m->deletion_grace_sec)),
                        drain_grace(grace_sec)) < usec_add(now_usec, ON_ITS_WAY_USEC);
}

static PodPlan plan_terminating(const KubePod *pod, const DrainRules *rules, usec_t now_usec) {
        PodPlan p = { .action = POD_ACTION_WAIT,
                      .pod_class = POD_CLASS_TERMINATING,
                      .grace_sec = -1,
                      .next_usec = stuck_usec(pod, rules) };
        int64_t left;
        usec_t goal;

        if (rules->deadline_usec == USEC_INFINITY)
                return p;

        goal = MAX(rules->deadline_usec, usec_add(now_usec, USEC_PER_SEC));
        if (pod->object.meta.deletion_usec < usec_add(goal, USEC_PER_SEC))
                return p;
        left = seconds_left(rules->deadline_usec, now_usec);
        if (left > 1 && grace_would_be_over(pod, left, now_usec)) {
                p.next_usec = MIN(p.next_usec, usec_sub(rules->deadline_usec, USEC_PER_SEC));
                return p;
        }
        p.action = POD_ACTION_DELETE;
        p.grace_sec = left;
        return p;
}

static bool must_hold(const KubePod *pod, PodClass c, const DrainRules *rules, const DrainContext *context) {
        if (rules->holds || (rules->protected_policy == PROTECTED_WAIT && context->any_protected))
                return true;
        if (rules->protected_policy == PROTECTED_OTHERS && c == POD_CLASS_PROTECTED)
                return true;
        return pod_is_critical(pod) && context->any_non_critical;
}

static PodPlan plan_standing(const KubePod *pod, PodPlan p, const DrainRules *rules,
                             const DrainContext *context, bool refused, usec_t now_usec) {
        usec_t force_usec = rules->deadline_usec == USEC_INFINITY
                                    ? USEC_INFINITY
                                    : usec_sub(rules->deadline_usec, drain_grace(pod->grace_sec));

        if (now_usec >= force_usec &&
            (refused || !rules->evict_first || must_hold(pod, p.pod_class, rules, context))) {
                p.action = POD_ACTION_DELETE;
                p.grace_sec = clipped_grace(pod, rules->deadline_usec, now_usec);
                return p;
        }
        p.next_usec = MIN(p.next_usec, now_usec >= force_usec ? USEC_INFINITY : force_usec);
        if (must_hold(pod, p.pod_class, rules, context)) {
                p.action = POD_ACTION_HOLD;
                return p;
        }
        p.action = POD_ACTION_EVICT;
        p.grace_sec = clipped_grace(pod, rules->deadline_usec, now_usec);
        /* While it is not taken, less is left with each second, as soon as its own does not fit. */
        if (p.grace_sec > 1)
                p.next_usec = MIN(p.next_usec, usec_add(now_usec, USEC_PER_SEC));
        else if (p.grace_sec == -1 && now_usec == force_usec)
                p.next_usec = MIN(p.next_usec, usec_add(now_usec, 1));
        return p;
}

PodPlan drain_plan_pod(const KubePod *pod, const DrainRules *rules, const DrainContext *context,
                       bool refused, usec_t wall_now_usec) {
        PodPlan p = { .action = POD_ACTION_NONE, .grace_sec = -1, .next_usec = USEC_INFINITY };

        assert(pod && rules && context);

        p.pod_class = pod_classify(pod, wall_now_usec, &p.protected_by, &p.next_usec);
        if (!waits_for_class(p.pod_class, pod, rules, wall_now_usec)) {
                p.next_usec = USEC_INFINITY;
                return p;
        }
        if (p.pod_class == POD_CLASS_TERMINATING)
                return plan_terminating(pod, rules, wall_now_usec);
        return plan_standing(pod, p, rules, context, refused, wall_now_usec);
}

usec_t drain_plan_due(const KubePod *pod, const PodPlan *plan, const DrainRules *rules, usec_t wall_now_usec) {
        usec_t deadline = rules->deadline_usec, due = USEC_INFINITY;

        if (deadline == USEC_INFINITY)
                return USEC_INFINITY;
        if (plan->action == POD_ACTION_HOLD || plan->action == POD_ACTION_EVICT)
                due = usec_sub(deadline, drain_grace(pod->grace_sec));
        else if (plan->action == POD_ACTION_WAIT &&
                 pod->object.meta.deletion_usec > usec_add(deadline, USEC_PER_SEC))
                due = usec_sub(deadline, USEC_PER_SEC); /* its grace is cut, but not yet: drain-plan.h */
        return due > wall_now_usec ? due : USEC_INFINITY;
}

usec_t drain_plan_warn_at(usec_t met_usec, usec_t due_usec) {
        usec_t at = MIN(usec_add(met_usec, WARN_USEC), usec_sub(due_usec, WARN_USEC));

        return MAX(at, usec_add(met_usec, WARN_FIRST_USEC));
}
