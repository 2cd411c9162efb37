/* SPDX-License-Identifier: Apache-2.0 */
#include "node-termination.h"

#include "budget-gate.h"
#include "claim-status.h"
#include "machine-facts.h"
#include "node-deadline.h"
#include "node-machine.h"
#include "node-pods.h"
#include "node-volumes.h"
#include "pauses.h"
#include "removal-drain.h"
#include "removal-writes.h"
#include "string-util.h"
#include "termination-marks.h"
#include "termination-report.h"

/* From the end of a wait until pods are told, on a busy API server. */
#define BEGIN_USEC (5 * USEC_PER_SEC)

struct NodeTermination {
        const TerminationContext *context;
        Env *env;
        char *name, *uid, *claim_name, *claim_uid;
        NodeTerminationState state;
        usec_t begun_usec; /* wall clock: node_termination_begun() */
        NodeDeadline deadline;
        BudgetGate *gate; /* in BUDGETS */
        NodeMachine machine;
        RemovalDrain drain;
        TerminationReport *report;
        ClaimStatus *status;
        usec_t lb_until_usec;
        NodeVolumes volumes; /* in VOLUMES */
        RemovalWrites writes;
        bool step_again, stepping;
};

static const char *const state_table[_NODE_TERMINATION_STATE_MAX] = {
        [NODE_TERMINATION_CHECKING] = "Checking",
        [NODE_TERMINATION_PAUSED] = REMOVAL_PAUSED,
        [NODE_TERMINATION_BUDGETS] = WAITING_FOR_BUDGET,
        [NODE_TERMINATION_CORDONING] = "Cordoning",
        [NODE_TERMINATION_PROTECTED] = "WaitingForProtected",
        [NODE_TERMINATION_LOAD_BALANCERS] = "LoadBalancers",
        [NODE_TERMINATION_DRAINING] = "Draining",
        [NODE_TERMINATION_VOLUMES] = "Volumes",
        [NODE_TERMINATION_TERMINATING] = "Terminating",
        [NODE_TERMINATION_FINISHING] = "Finished",
        [NODE_TERMINATION_DONE] = "Done",
};

#define TO(s) (1u << NODE_TERMINATION_##s)

/* The diagram of node-termination.h. Every state may find the machine gone. */
static const unsigned edges[_NODE_TERMINATION_STATE_MAX] = {
        [NODE_TERMINATION_CHECKING] = TO(PAUSED) | TO(BUDGETS) | TO(CORDONING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_PAUSED] = TO(BUDGETS) | TO(CORDONING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_BUDGETS] = TO(PAUSED) | TO(CORDONING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_CORDONING] = TO(PROTECTED) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_PROTECTED] = TO(LOAD_BALANCERS) | TO(TERMINATING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_LOAD_BALANCERS] = TO(DRAINING) | TO(TERMINATING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_DRAINING] = TO(VOLUMES) | TO(TERMINATING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_VOLUMES] = TO(TERMINATING) | TO(DRAINING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_TERMINATING] = TO(DRAINING) | TO(FINISHING) | TO(DONE),
        [NODE_TERMINATION_FINISHING] = TO(DONE),
};

const char *node_termination_state_to_string(NodeTerminationState s) {
        return s >= 0 && s < _NODE_TERMINATION_STATE_MAX ? state_table[s] : NULL;
}

static bool deadline_passed(const NodeTermination *t);
static const KubeNode *node_of(const NodeTermination *t);
static const KubeNodeClaim *claim_of(const NodeTermination *t);

/* Writes into the claim which pods the drain waits for, and which it lets stay. */
static void tell_blockers(NodeTermination *t) {
        const DrainBlocker *b;
        size_t n;

        if (!t->status || !t->drain.own)
                return;
        b = node_drain_blockers_and_returns(t->drain.own, &n);
        claim_status_set_blockers(t->status, node_drain_pods_left(t->drain.own), b, n);
}

/* The only writer of the state. */
static void node_termination_set_state(NodeTermination *t, NodeTerminationState to, const char *reason) {
        NodeTerminationState from = t->state;

        assert(edges[from] & (1u << to));
        t->state = to;
        if (to != NODE_TERMINATION_PROTECTED && to != NODE_TERMINATION_DRAINING &&
            to != NODE_TERMINATION_VOLUMES && !(to == NODE_TERMINATION_TERMINATING && !deadline_passed(t)))
                removal_drain_stop(&t->drain);
        t->gate = budget_gate_free(t->gate);
        if (from == NODE_TERMINATION_PAUSED)
                pauses_forget_node(t->context->pauses, t->name);
        if (from == NODE_TERMINATION_VOLUMES && to != NODE_TERMINATION_DRAINING && t->status) {
                claim_status_set_held(t->status, NULL, NULL, 0);
                tell_blockers(t);
        }
        node_volumes_done(&t->volumes);
        if (t->status && to != NODE_TERMINATION_DONE)
                claim_status_set_phase(t->status, state_table[to]);
        termination_report_phase(t->report, state_table[from], state_table[to], reason);
        if (from == NODE_TERMINATION_FINISHING)
                termination_report_finished(t->report, usec_sub(loop_wall(t->env->loop), t->begun_usec));
        if (to != NODE_TERMINATION_FINISHING)
                return;
        t->writes.finishing_usec = loop_now(t->env->loop);
        termination_report_finishing(t->report, t->status, removal_writes_is_anothers(&node_of(t)->object),
                                     claim_of(t) && removal_writes_is_anothers(&claim_of(t)->object));
}

static const KubeNode *node_of(const NodeTermination *t) {
        const KubeNode *n = cluster_view_node(t->context->view, t->name);

        return n && streq(n->object.meta.uid, t->uid) ? n : NULL;
}

/* One that was made anew under its name is none of ours: no machine of its own was ended. */
static const KubeNodeClaim *claim_of(const NodeTermination *t) {
        const KubeNodeClaim *claim =
                t->claim_name ? cluster_view_claim(t->context->view, t->claim_name) : NULL;

        return claim && streq(claim->object.meta.uid, t->claim_uid) ? claim : NULL;
}

/* Of what ends no pod and no machine. */
static KubeRank rank_of_the_end(const NodeTermination *t) {
        return removal_writes_rank(t->deadline.at_usec);
}

/* -- life ----------------------------------------------------------------------------------------------- */

static void on_machine(MachineEnd *m, void *userdata);
static void on_drain_changed(NodeDrain *d, void *userdata);

static const KubeNodeClaim *on_claim_now(void *userdata) {
        return claim_of(userdata);
}

static const KubeNodePool *pool_of(const ClusterView *v, const KubeNode *n, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = NULL;

        if (claim)
                return cluster_view_pool(v, strempty(claim->node_pool));
        (void) cluster_view_pool_of_node(v, n, &pool, NULL);
        return pool;
}

static DrainRules rules_of(const NodeTermination *t, const KubeNode *n) {
        return node_deadline_rules(&t->deadline, n, (ProtectedPolicy) t->context->config->protected_policy);
}

int node_termination_new(const TerminationContext *context, const KubeNode *node, NodeTermination **ret) {
        _cleanup_(node_termination_freep) NodeTermination *t = NULL;
        const KubeNodeClaim *claim;
        int r;

        assert(context && node && ret);
        t = new0(NodeTermination, 1);
        if (!t)
                return -ENOMEM;
        t->context = context;
        t->env = context->env;
        t->deadline = NODE_DEADLINE_NONE;
        t->begun_usec = node_termination_begun(node, loop_wall(t->env->loop));

        claim = cluster_view_claim_of_node(context->view, node);
        if (free_and_strdup(&t->name, node->object.meta.name) < 0 ||
            free_and_strdup(&t->uid, node->object.meta.uid) < 0 ||
            free_and_strdup(&t->claim_name, claim ? claim->object.meta.name : NULL) < 0 ||
            free_and_strdup(&t->claim_uid, claim ? claim->object.meta.uid : NULL) < 0)
                return -ENOMEM;
        t->writes = (RemovalWrites){ .context = context, .node = t->name };
        r = removal_writes_init(&t->writes);
        if (r < 0)
                return r;
        r = termination_report_new(context, t->name, t->uid, &t->report);
        if (r < 0)
                return r;
        t->machine = (NodeMachine){ .context = context, .node = t->name, .report = t->report };
        r = node_machine_init(&t->machine, node, claim, pool_of(context->view, node, claim), on_machine, t);
        if (r < 0)
                return r;
        if (claim) {
                r = claim_status_new(context->client, context->guard, t->claim_name, on_claim_now, t,
                                     context->progress, &t->status);
                if (r < 0)
                        return r;
                claim_status_set_node(t->status, t->name, t->uid);
        }
        t->drain = (RemovalDrain){ .context = context,
                                   .node = t->name,
                                   .report = t->report,
                                   .changed = on_drain_changed,
                                   .userdata = t,
                                   .rules = rules_of(t, node) };
        r = removal_drain_init(&t->drain);
        if (r < 0)
                return r;

        termination_report_started(t->report, claim);
        *ret = TAKE_PTR(t);
        return 0;
}

NodeTermination *node_termination_free(NodeTermination *t) {
        if (!t)
                return NULL;
        removal_drain_done(&t->drain);
        budget_gate_free(t->gate);
        if (t->state == NODE_TERMINATION_PAUSED)
                pauses_forget_node(t->context->pauses, t->name);
        node_volumes_done(&t->volumes);
        node_machine_done(&t->machine);
        removal_writes_done(&t->writes);
        claim_status_free(t->status);
        termination_report_free(t->report);
        free(t->name);
        free(t->uid);
        free(t->claim_name);
        free(t->claim_uid);
        node_deadline_done(&t->deadline);
        free(t);
        return NULL;
}

/* -- the deadline --------------------------------------------------------------------------------------- */

static void update_rules(NodeTermination *t, const KubeNode *n, const KubeNodeClaim *claim) {
        bool moved = node_deadline_update(&t->deadline, n, claim, loop_wall(t->env->loop));
        DrainRules rules = rules_of(t, n);
        usec_t at = t->deadline.at_usec;

        removal_drain_set_rules(&t->drain, &rules);
        if (t->drain.own)
                node_drain_set_deadline(t->drain.own, at);
        if (!moved)
                return;
        termination_report_deadline(t->report, at, node_deadline_source(&t->deadline));
        if (t->status)
                claim_status_set_deadline(t->status, at);
}

static bool deadline_passed(const NodeTermination *t) {
        return node_deadline_passed(&t->deadline, loop_wall(t->env->loop));
}

static void requeue_at(NodeTermination *t, usec_t at_usec) {
        t->context->requeue(t->name, at_usec, t->context->userdata);
}

static void requeue_at_deadline(NodeTermination *t) {
        if (t->deadline.at_usec != USEC_INFINITY && !deadline_passed(t))
                requeue_at(t, loop_from_wall(t->env->loop, t->deadline.at_usec));
}

/* -- the drain ------------------------------------------------------------------------------------------ */

static void on_drain_changed(NodeDrain *d, void *userdata) {
        NodeTermination *t = userdata;

        /* Volumes hold the removal then, and are named. */
        if (t->state != NODE_TERMINATION_VOLUMES || t->volumes.n_waited == 0 || node_drain_pods_left(d) > 0)
                tell_blockers(t);
        node_termination_step(t);
}

/* -- the steps: each returns true if it brought the state forward --------------------------------------- */

static bool machine_is_lost(const NodeTermination *t, const KubeNode *n) {
        return t->machine.end && node_machine_is_lost(machine_end_state(t->machine.end), kube_node_is_ready(n));
}

/* T is near: what holds the removal up before it has begun is not waited for any longer, or its pods would not get the
 * grace that they have until then. Looked at again when that is so. A pod whose grace is longer than all the time from the
 * deletion to T has no say: who may make pods must not end a pause. */
static bool deadline_calls(const NodeTermination *t, const KubeNode *n) {
        usec_t whole = usec_sub(t->deadline.at_usec, n->object.meta.deletion_usec);
        usec_t due = node_pods_first_due_of(t->context->view, t->name, &t->drain.rules, whole, loop_wall(t->env->loop));
        usec_t begin = usec_sub(due, BEGIN_USEC);

        if (deadline_passed(t) || loop_wall(t->env->loop) >= begin)
                return true;
        if (begin != USEC_INFINITY)
                t->context->requeue(t->name, loop_from_wall(t->env->loop, begin), t->context->userdata);
        return false;
}

/* Counted by budgets, and not refused. */
static bool passes_uncharged(const NodeTermination *t, const KubeNode *n) {
        return deadline_calls(t, n) || node_deadline_has_notice(&t->deadline) || budget_node_passes(n);
}

static void on_gate(void *userdata) {
        node_termination_step(userdata);
}

/* A person has paused its pool, or all, or that was so and others come first. */
static bool is_held_by_pause(NodeTermination *t, const KubeNode *n) {
        const KubeNodePool *pool = pool_of(t->context->view, n, claim_of(t));
        _cleanup_free_ char *message = NULL;

        if (pauses_let_begin(t->context->pauses, n, pool, t->begun_usec, &message))
                return false;
        if (t->state != NODE_TERMINATION_PAUSED)
                node_termination_set_state(t, NODE_TERMINATION_PAUSED, "removals are paused");
        termination_report_held(t->report, t->status, REMOVAL_PAUSED, strempty(message));
        return true;
}

/* Nothing holds it any more. */
static void begin_to_cordon(NodeTermination *t, const KubeNode *n, const char *why) {
        node_termination_set_state(t, NODE_TERMINATION_CORDONING, why);
        termination_report_begins(t->report, !node_deadline_has_notice(&t->deadline));
}

/* Nothing holds it but a budget of nodes. */
static void begin(NodeTermination *t, const KubeNode *n, const char *why) {
        const BudgetAsk ask = budget_ask_delete(n, true);

        if (passes_uncharged(t, n) || !budget_ledger_concerns(t->context->ledger, &ask))
                begin_to_cordon(t, n, why);
        else
                node_termination_set_state(t, NODE_TERMINATION_BUDGETS, "a NodeDisruptionBudget is asked for it");
}

static bool step_checking(NodeTermination *t, const KubeNode *n) {
        if (t->machine.end && !kube_node_is_ready(n) && !machine_end_has_answered(t->machine.end) &&
            !deadline_passed(t))
                return false;
        if (!passes_uncharged(t, n) && is_held_by_pause(t, n))
                return true;
        begin(t, n, "it is to be terminated");
        return true;
}

static bool step_paused(NodeTermination *t, const KubeNode *n) {
        bool held = !passes_uncharged(t, n) && is_held_by_pause(t, n);

        if (!held) {
                termination_report_unblocked(t->report, t->status);
                begin(t, n, "no pause holds it any more");
        }
        return !held;
}

static bool step_budgets(NodeTermination *t, const KubeNode *n) {
        const char *reason = passes_uncharged(t, n) ? "no budget holds it any more" : NULL;

        if (!reason && pauses_is_paused(t->context->pauses, pool_of(t->context->view, n, claim_of(t)))) {
                termination_report_unblocked(t->report, t->status);
                return is_held_by_pause(t, n);
        }
        if (!reason && !t->gate && budget_gate_new(t->context, on_gate, t, &t->gate) < 0) {
                requeue_at(t, usec_add(loop_now(t->env->loop), USEC_PER_SEC));
                return false;
        }
        if (!reason && budget_gate_is_passed(t->gate, n))
                reason = "its NodeDisruptionBudgets allow it";
        if (reason) {
                termination_report_unblocked(t->report, t->status);
                begin_to_cordon(t, n, reason);
                return true;
        }
        if (budget_gate_message(t->gate))
                termination_report_held(t->report, t->status, WAITING_FOR_BUDGET, budget_gate_message(t->gate));
        return false;
}

/* Load balancers let go when the drain is to begin, not while the node waits for protected pods: it goes on
 * being used until they are gone. */
static int marks_patch(NodeTermination *t, const KubeNode *n, char **ret_body) {
        bool waits = t->state <= NODE_TERMINATION_PROTECTED && removal_drain_waits_for_protected(&t->drain);

        return (waits ? termination_hold_patch : termination_cordon_patch)(n, "node is being deleted",
                                                                           t->deadline.at_usec, ret_body);
}

static bool step_cordoning(NodeTermination *t, const KubeNode *n) {
        _cleanup_free_ char *body = NULL;
        int r;

        r = marks_patch(t, n, &body);
        if (r == 0) {
                termination_report_cordoned(t->report);
                node_termination_set_state(t, NODE_TERMINATION_PROTECTED,
                                           "cordon and taint are acknowledged");
                return true;
        }
        /* At T nothing holds it: not even an API server that refuses the cordon. It is tried on. */
        if (deadline_passed(t) && removal_writes_cordon_fails(&t->writes, n)) {
                node_termination_set_state(t, NODE_TERMINATION_PROTECTED,
                                           "the deadline has passed, uncordoned");
                return true;
        }
        if (r > 0)
                removal_writes_cordon(&t->writes, n, body);
        else if (r < 0)
                requeue_at(t, usec_add(loop_now(t->env->loop), USEC_PER_SEC));
        return false;
}

/* The deadline may come or move after the cordon, and load balancers let go later: the Node follows. */
static void keep_marks(NodeTermination *t, const KubeNode *n) {
        _cleanup_free_ char *body = NULL;

        if (marks_patch(t, n, &body) > 0)
                removal_writes_cordon(&t->writes, n, body);
}

static bool end_at_deadline(NodeTermination *t) {
        if (!deadline_passed(t))
                return false;
        /* Deletes at T are still to be answered; the drain says when they are. */
        if (removal_drain_is_under_way(&t->drain))
                return false;
        if (!t->drain.own && removal_drain_count(&t->drain).waited > 0) {
                removal_drain_begin(&t->drain);
                if (t->drain.own && t->state == NODE_TERMINATION_PROTECTED)
                        return false;
        }
        termination_report_expired(t->report, t->drain.own);
        node_termination_set_state(t, NODE_TERMINATION_TERMINATING, "the deadline has passed");
        return true;
}

static bool step_protected(NodeTermination *t, const KubeNode *n) {
        if (!removal_drain_waits_for_protected(&t->drain)) {
                if (t->drain.own && !deadline_passed(t) && node_drain_awaits_answers(t->drain.own))
                        return false;
                if (t->drain.own)
                        node_drain_tell_unanswered(t->drain.own);
                removal_drain_stop(&t->drain);
                t->lb_until_usec = removal_drain_count(&t->drain).waited == 0
                                           ? 0
                                           : usec_add(loop_now(t->env->loop), t->context->config->lb_wait_usec);
                node_termination_set_state(t, NODE_TERMINATION_LOAD_BALANCERS,
                                           "it waits for no protected pod");
                return true;
        }
        if (end_at_deadline(t))
                return true;
        /* The drain of this wait evicts nothing: the next drain would not know of its evictions, and would send them again. */
        removal_drain_begin_holding(&t->drain);
        return false;
}

static bool step_load_balancers(NodeTermination *t, const KubeNode *n) {
        usec_t now = loop_now(t->env->loop), due = removal_drain_first_due(&t->drain);

        /* Inside the time that is left: no pod's grace is spent on it. */
        if (now < t->lb_until_usec && loop_wall(t->env->loop) < due) {
                requeue_at(t, t->lb_until_usec);
                if (due != USEC_INFINITY)
                        requeue_at(t, loop_from_wall(t->env->loop, due));
                return false;
        }
        node_termination_set_state(t, NODE_TERMINATION_DRAINING, "the wait for load balancers is over");
        return true;
}

static bool step_draining(NodeTermination *t, const KubeNode *n) {
        if (removal_drain_is_left_to_agent(&t->drain, n, deadline_passed(t)))
                return false;
        removal_drain_begin(&t->drain);
        if (!t->drain.own)
                return false;

        switch (node_drain_state(t->drain.own)) {
        case NODE_DRAIN_DRAINED:
                termination_report_drained(t->report, t->status);
                node_volumes_begin(&t->volumes, loop_now(t->env->loop));
                node_termination_set_state(t, NODE_TERMINATION_VOLUMES,
                                           "one consistent list shows no pod to wait for");
                return true;
        case NODE_DRAIN_EXPIRED:
                return end_at_deadline(t);
        case NODE_DRAIN_DRAINING:
                termination_report_draining(t->report);
                return false;
        case NODE_DRAIN_PROVING:
                return false;
        case _NODE_DRAIN_STATE_MAX:
        case _NODE_DRAIN_STATE_INVALID:
                break;
        }
        assert(false && "a drain in no state");
        return false;
}

static void drain_again(NodeTermination *t, const char *reason) {
        termination_report_drains_again(t->report, t->status, reason);
        node_termination_set_state(t, NODE_TERMINATION_DRAINING, reason);
}

static void on_staying_changed(void *userdata) {
        node_termination_step(userdata);
}

static void find_staying_volumes(NodeTermination *t) {
        if (!t->volumes.staying && staying_volumes_new(t->context->client, rank_of_the_end(t), t->name, &t->drain.rules,
                                                       on_staying_changed, t, &t->volumes.staying) < 0)
                requeue_at(t, usec_add(loop_now(t->env->loop), USEC_PER_SEC));
}

/* A drain that goes on says itself what holds it. */
static void tell_volumes(NodeTermination *t) {
        size_t n = t->volumes.n_waited;
        _cleanup_free_ char *message = strf("%zu volume%s still attached to the drained node", n, n == 1 ? " is" : "s are");

        if (t->status)
                claim_status_set_held(t->status, VOLUMES_ATTACHED, strempty(message), loop_wall(t->env->loop));
}

static bool step_volumes(NodeTermination *t, const KubeNode *n) {
        usec_t now = loop_now(t->env->loop), until;

        if (removal_drain_is_under_way(&t->drain)) {
                drain_again(t, "a pod was bound to it after all");
                return true;
        }
        until = node_volumes_update(&t->volumes, t->context->view, t->name, now);
        if (now < until && !deadline_passed(t)) {
                tell_volumes(t);
                find_staying_volumes(t);
                requeue_at(t, until);
                return false;
        }
        termination_report_volumes(t->report, t->status, t->volumes.n_waited, t->volumes.n_staying);
        node_termination_set_state(t, NODE_TERMINATION_TERMINATING,
                                   t->volumes.n_waited > 0    ? "its volumes have had their time"
                                   : t->volumes.n_staying > 0 ? "no volume is attached but those of pods that stay"
                                                              : "no volume is attached");
        return true;
}

static bool step_terminating(NodeTermination *t, const KubeNode *n) {
        MachineEnd *end = t->machine.end;

        if (!end && machine_named_for_another(n)) {
                node_machine_tell_of_another(&t->machine, n, t->status);
                return false;
        }
        if (!end) {
                node_termination_set_state(t, NODE_TERMINATION_FINISHING,
                                           "it has no providerID: there is no machine to end");
                return true;
        }
        if (node_machine_cannot_come_back(machine_end_state(end), kube_node_is_ready(n))) {
                termination_report_machine_ended(t->report, t->status);
                node_termination_set_state(t, NODE_TERMINATION_FINISHING, "its machine cannot come back");
                return true;
        }
        /* The cloud may refuse for hours. */
        if (removal_drain_is_under_way(&t->drain) && !deadline_passed(t) && machine_end_hold(end)) {
                drain_again(t, "a pod was bound to it after all");
                return true;
        }
        /* T had passed by a clock that was ahead, and nothing has proved that no pod is left. */
        if (!t->drain.own && !deadline_passed(t)) {
                if (!machine_end_hold(end))
                        return false; /* its end is on its way */
                drain_again(t, "the clock was set back, and the deadline has not passed by it");
                return true;
        }
        node_machine_terminate(&t->machine, n, t->status, t->drain.own, deadline_passed(t));
        return false;
}

static bool step_finishing(NodeTermination *t, const KubeNode *n) {
        if (!removal_writes_finish(&t->writes, n, claim_of(t), t->status, rank_of_the_end(t)))
                return false;
        node_termination_set_state(t, NODE_TERMINATION_DONE, "its finalizers are off");
        return true;
}

static bool step_once(NodeTermination *t, const KubeNode *n) {
        switch (t->state) {
        case NODE_TERMINATION_CHECKING:
                return step_checking(t, n);
        case NODE_TERMINATION_PAUSED:
                return step_paused(t, n);
        case NODE_TERMINATION_BUDGETS:
                return step_budgets(t, n);
        case NODE_TERMINATION_CORDONING:
                return step_cordoning(t, n);
        case NODE_TERMINATION_PROTECTED:
                return step_protected(t, n);
        case NODE_TERMINATION_LOAD_BALANCERS:
                return step_load_balancers(t, n);
        case NODE_TERMINATION_DRAINING:
                return step_draining(t, n);
        case NODE_TERMINATION_VOLUMES:
                return step_volumes(t, n);
        case NODE_TERMINATION_TERMINATING:
                return step_terminating(t, n);
        case NODE_TERMINATION_FINISHING:
                return step_finishing(t, n);
        case NODE_TERMINATION_DONE:
                return false;
        case _NODE_TERMINATION_STATE_MAX:
        case _NODE_TERMINATION_STATE_INVALID:
                break;
        }
        assert(false && "a termination in no state");
        return false;
}

/* The Node has left. Its claim goes, too, if its machine has; else claim and machine are orphan.c's. */
static void step_without_node(NodeTermination *t) {
        termination_report_node_gone(t->report);
        if (t->state != NODE_TERMINATION_FINISHING ||
            removal_writes_finish(&t->writes, NULL, claim_of(t), t->status, rank_of_the_end(t)))
                node_termination_set_state(t, NODE_TERMINATION_DONE, "its Node is gone");
}

/* Its pool says that spec.providerID is proof enough. */
static bool trusts_provider_id(const NodeTermination *t, const KubeNode *n, const KubeNodeClaim *claim) {
        const KubeNodePool *pool = pool_of(t->context->view, n, claim);

        return pool && pool->trusts_provider_ids;
}

void node_termination_step(NodeTermination *t) {
        const KubeNode *n;

        assert(t);
        if (t->stepping) { /* called back from inside a step: once more afterwards */
                t->step_again = true;
                return;
        }
        t->stepping = true;
        do {
                const KubeNodeClaim *claim = claim_of(t);

                t->step_again = false;
                n = node_of(t);
                if (!claim) /* it went before its Node: nothing is told of whatever has its name now */
                        t->status = claim_status_free(t->status);
                if (t->state == NODE_TERMINATION_DONE)
                        break;
                if (!n) {
                        step_without_node(t);
                        break;
                }
                update_rules(t, n, claim);
                termination_report_see_node(t->report);
                if (claim)
                        removal_writes_delete_claim(&t->writes, claim, rank_of_the_end(t));
                if (claim && t->status) {
                        claim_status_see(t->status);
                        claim_status_note_invalid(t->status, claim);
                }
                requeue_at_deadline(t);
                if (t->machine.end)
                        machine_end_trust(t->machine.end, trusts_provider_id(t, n, claim));
                if (t->state < NODE_TERMINATION_TERMINATING) {
                        if (t->machine.end && !kube_node_is_ready(n)) /* it may have lost its machine */
                                node_machine_describe(&t->machine);
                        if (t->state > NODE_TERMINATION_CORDONING) {
                                if (!n->unschedulable) /* etcd was restored: what comes now comes onto an open node */
                                        pod_returns_clear(t->drain.returns);
                                keep_marks(t, n);
                        }
                        if (machine_is_lost(t, n)) {
                                termination_report_machine_ended(t->report, t->status);
                                node_termination_set_state(t, NODE_TERMINATION_FINISHING,
                                                           "its machine is gone");
                        }
                }
                while (step_once(t, n))
                        t->step_again = false;
        } while (t->step_again);
        t->stepping = false;
        node_machine_tell_proof(&t->machine, t->status, t->drain.own, deadline_passed(t));
        if (t->state == NODE_TERMINATION_DONE) /* so that the owner frees us */
                requeue_at(t, loop_now(t->env->loop));
}

static void on_machine(MachineEnd *m, void *userdata) {
        NodeTermination *t = userdata;

        node_termination_step(t);
        if (t->state == NODE_TERMINATION_TERMINATING)
                node_machine_tell_problem(&t->machine, t->status);
}

void node_termination_reconsider(NodeTermination *t) {
        if (t->drain.own)
                node_drain_tell_later(t->drain.own);
        node_termination_step(t);
}

void node_termination_on_pod(NodeTermination *t, const KubePod *old, const KubePod *new) {
        removal_drain_on_pod(&t->drain, old, new);
}

bool node_termination_drains(const NodeTermination *t) {
        return t->state == NODE_TERMINATION_DRAINING && t->drain.own;
}

bool node_termination_awaits_pods(const NodeTermination *t) {
        return (t->state == NODE_TERMINATION_PROTECTED || t->state == NODE_TERMINATION_DRAINING) &&
               (!t->drain.own || node_drain_awaits_pods(t->drain.own));
}

void node_termination_blocked_by(const NodeTermination *t, bool ret[_BLOCKED_BY_MAX]) {
        const char *machine = termination_report_blocked_reason(t->report);
        const DrainBlocker *b = NULL;
        size_t n = 0;

        memset(ret, 0, _BLOCKED_BY_MAX * sizeof(bool));
        if (t->drain.own)
                b = node_drain_blockers(t->drain.own, &n);
        for (size_t i = 0; i < n; i++)
                blocked_by_pod(b + i, loop_wall(t->env->loop), ret);
        if (t->state == NODE_TERMINATION_VOLUMES && t->volumes.n_waited > 0)
                ret[BLOCKED_BY_VOLUMES_ATTACHED] = true;
        if (machine)
                ret[blocked_by_from_reason(machine)] = true;
}

NodeTerminationState node_termination_state(const NodeTermination *t) {
        return t->state;
}

PodReturns *node_termination_returns(const NodeTermination *t) {
        return t->drain.returns;
}

const char *node_termination_claim(const NodeTermination *t) {
        return t->claim_name;
}

const char *node_termination_uid(const NodeTermination *t) {
        return t->uid;
}

usec_t node_termination_begun(const KubeNode *n, usec_t wall_now_usec) {
        usec_t deleted = n->object.meta.deletion_usec;

        return wall_now_usec < usec_add(deleted, 2 * USEC_PER_SEC) ? wall_now_usec : deleted;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static bool drain_will_report(const NodeDrain *d) {
        return d && node_drain_will_report(d);
}

/* Returns true if something besides the key and the answers to writes wakes the removal in its state. */
static bool has_other_wakeup(const NodeTermination *t, const KubeNode *n) {
        switch (t->state) {
        case NODE_TERMINATION_PAUSED:
                return pauses_has_node(t->context->pauses, t->name);
        case NODE_TERMINATION_PROTECTED:
        case NODE_TERMINATION_DRAINING:
                return drain_will_report(t->drain.own);
        case NODE_TERMINATION_TERMINATING:
                /* The providerID names another Node: the removal waits until a person changes it. */
                if (!t->machine.end)
                        return n && machine_named_for_another(n);
                return machine_end_will_report(t->machine.end) ||
                       (machine_end_asks(t->machine.end) && drain_will_report(t->drain.own));
        case NODE_TERMINATION_CHECKING:
        case NODE_TERMINATION_BUDGETS:
        case NODE_TERMINATION_CORDONING:
        case NODE_TERMINATION_LOAD_BALANCERS:
        case NODE_TERMINATION_VOLUMES:
        case NODE_TERMINATION_FINISHING:
        case NODE_TERMINATION_DONE:
        case _NODE_TERMINATION_STATE_MAX:
        case _NODE_TERMINATION_STATE_INVALID:
                break;
        }
        return false;
}

void node_termination_next_wakeup(const NodeTermination *t, const WorkQueue *queue, Wakeups *w) {
        usec_t lb_usec = t->state == NODE_TERMINATION_LOAD_BALANCERS ? t->context->config->lb_wait_usec : 0;
        const KubeNode *n = node_of(t);

        wakeups_unfinished(w, "removal of node", t->name, state_table[t->state],
                           MAX(NODE_TERMINATION_WAKEUP_USEC, lb_usec));
        wakeups_key(w, queue, t->writes.key);
        wakeups_await(w, has_other_wakeup(t, n));
        wakeups_await(w, object_writes_are_under_way(t->context->writes, &kube_node_kind, NULL, t->name));
        wakeups_await(w, t->claim_name &&
                      object_writes_are_under_way(t->context->writes, &kube_node_claim_kind, NULL,
                                                  t->claim_name));
        if (t->gate)
                budget_gate_add_wakeup(t->gate, w);
        if (t->drain.own)
                node_drain_next_wakeup(t->drain.own, w);
        if (t->machine.end)
                machine_end_next_wakeup(t->machine.end, w);
        if (t->status)
                claim_status_next_wakeup(t->status, w);
        termination_report_next_wakeup(t->report, w);
}
