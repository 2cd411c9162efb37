/* SPDX-License-Identifier: Apache-2.0 */
#include "removal-drain.h"

static usec_t now_of(const RemovalDrain *d) {
        return loop_now(d->context->env->loop);
}

static usec_t wall_of(const RemovalDrain *d) {
        return loop_wall(d->context->env->loop);
}

static void requeue_at(const RemovalDrain *d, usec_t at_usec) {
        d->context->requeue(d->node, at_usec, d->context->userdata);
}

int removal_drain_init(RemovalDrain *d) {
        int r = pod_returns_new(&d->returns);

        if (r < 0)
                return r;
        d->rules.returns = d->returns;
        d->agent.moved_usec = now_of(d);
        return pod_warnings_new(d->context, d->node, false, &d->warnings);
}

void removal_drain_done(RemovalDrain *d) {
        removal_drain_stop(d);
        d->warnings = pod_warnings_free(d->warnings);
        d->returns = pod_returns_free(d->returns);
}

/* -- a drain of our own --------------------------------------------------------------------------------- */

static bool on_iterate(HashmapIterator *it, const KubePod **ret, void *userdata) {
        RemovalDrain *d = userdata;

        return cluster_view_iterate_pods(d->context->view, d->node, it, ret);
}

static const KubePdb *on_pdb_of(const KubePod *pod, void *userdata) {
        RemovalDrain *d = userdata;

        return cluster_view_pdb_of_pod(d->context->view, pod);
}

static void on_changed(NodeDrain *own, void *userdata) {
        RemovalDrain *d = userdata;

        d->changed(own, d->userdata);
}

static void on_pod(NodeDrain *own, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                   const EvictionReport *report, void *userdata) {
        RemovalDrain *d = userdata;

        termination_report_pod(d->report, e, pod, blocker, report, d->rules.deadline_usec);
        if (e == DRAIN_POD_EVICTED || e == DRAIN_POD_DELETED)
                d->context->moved(d->context->userdata);
}

static bool on_due(NodeDrain *own, const KubePod *pod, usec_t at_usec, void *userdata) {
        RemovalDrain *d = userdata;

        return pod_warnings_tell(d->warnings, pod, at_usec, d->rules.deadline_usec);
}

static void begin_drain(RemovalDrain *d, bool holds) {
        NodeDrainOptions o = {
                .node = d->node,
                .guard = d->context->guard,
                .rules = d->rules,
        };
        NodeDrainHandler h = { .on_changed = on_changed,
                               .on_pod = on_pod,
                               .on_due = on_due,
                               .pdb_of = on_pdb_of,
                               .iterate = on_iterate,
                               .userdata = d };

        if (d->own && (holds || !d->own_holds))
                return;
        d->own = node_drain_free(d->own);
        d->own_holds = holds;
        o.rules.holds = holds;
        if (node_drain_new(d->context->client, d->context->evictor, &o, &h, &d->own) < 0) {
                requeue_at(d, usec_add(now_of(d), USEC_PER_SEC));
                return;
        }
        node_drain_wake(d->own);
}

void removal_drain_begin(RemovalDrain *d) {
        begin_drain(d, false);
}

void removal_drain_begin_holding(RemovalDrain *d) {
        begin_drain(d, true);
}

void removal_drain_stop(RemovalDrain *d) {
        d->own = node_drain_free(d->own);
}

void removal_drain_set_rules(RemovalDrain *d, const DrainRules *rules) {
        d->rules = *rules;
        d->rules.returns = d->returns;
        if (!d->own)
                return;
        node_drain_set_protected(d->own, rules->protected_policy);
        node_drain_set_stuck_after(d->own, rules->stuck_after_usec);
}

void removal_drain_on_pod(RemovalDrain *d, const KubePod *old, const KubePod *new) {
        if (!d->own)
                return;
        if (new && !old)
                node_drain_pod_seen(d->own, new);
        else if (new)
                node_drain_pod_changed(d->own, new);
        else
                node_drain_pod_gone(d->own, old);
}

bool removal_drain_is_under_way(const RemovalDrain *d) {
        return d->own && node_drain_state(d->own) == NODE_DRAIN_DRAINING;
}

/* -- its agent's ---------------------------------------------------------------------------------------- */

/* True while the agent drains this node and gets on with it. */
static bool agent_is_draining(RemovalDrain *d, const KubeNode *n) {
        usec_t due = removal_drain_first_due(d), until;
        uint64_t pods = node_pods_fingerprint(d->context->view, d->node, &d->rules, wall_of(d));

        if (!agent_drain_moves(&d->agent, n, pods, now_of(d), &until) ||
            wall_of(d) >= due) /* what a deadline calls for is always ours, too */
                return false;
        requeue_at(d, until);
        if (due != USEC_INFINITY)
                requeue_at(d, loop_from_wall(d->context->env->loop, due));
        return true;
}

bool removal_drain_is_left_to_agent(RemovalDrain *d, const KubeNode *n, bool past_deadline) {
        usec_t next;

        if (d->own || past_deadline || !agent_is_draining(d, n)) {
                pod_warnings_agent_ended(d->warnings);
                return false;
        }
        next = pod_warnings_beside_agent(d->warnings, &d->rules);
        if (next != USEC_INFINITY)
                requeue_at(d, next);
        return true;
}

/* -- the pods, whoever drains them ---------------------------------------------------------------------- */

NodePodsCount removal_drain_count(const RemovalDrain *d) {
        return node_pods_count(d->context->view, d->node, &d->rules, wall_of(d));
}

usec_t removal_drain_first_due(const RemovalDrain *d) {
        return node_pods_first_due(d->context->view, d->node, &d->rules, wall_of(d));
}

bool removal_drain_waits_for_protected(const RemovalDrain *d) {
        return d->rules.protected_policy == PROTECTED_WAIT && removal_drain_count(d).protected > 0;
}
