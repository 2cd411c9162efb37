/* SPDX-License-Identifier: Apache-2.0 */
#include "node-machine.h"

#include "drain-proof.h"
#include "machine-facts.h"
#include "marks.h"
#include "shared-machine.h"
#include "string-util.h"
#include "token-bucket.h"

/* between looks at the cloud while the Node is not Ready */
#define MACHINE_LOOK_USEC (15 * USEC_PER_SEC)

static usec_t now_of(const NodeMachine *m) {
        return loop_now(m->context->env->loop);
}

static void requeue_at(const NodeMachine *m, usec_t at_usec) {
        m->context->requeue(m->node, at_usec, m->context->userdata);
}

/* -- the machine ---------------------------------------------------------------------------------------- */

int node_machine_init(NodeMachine *m, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool,
                      machine_changed_t changed, void *userdata) {
        /* Not of the claim, which may go between two leaders. */
        _cleanup_free_ char *op_id = strf("terminate-%s", n->object.meta.uid);
        MachineFacts facts;
        MachineEndOptions o = { .guard = m->context->guard,
                                .machine = &facts.machine,
                                .op_id = op_id,
                                .pool = claim ? claim->node_pool : NULL,
                                .identity = claim ? &claim->identity : NULL,
                                .changed = changed,
                                .userdata = userdata };

        if (!op_id)
                return -ENOMEM;
        if (!machine_facts_fill(&facts, m->context->cloud, n, claim, pool ? pool->provider_name : NULL))
                return 0;
        o.provider = facts.provider;
        o.born_usec = facts.born_usec;
        return machine_end_new(m->context->env, &o, &m->end);
}

void node_machine_done(NodeMachine *m) {
        m->end = machine_end_free(m->end);
}

bool node_machine_is_lost(MachineState s, bool is_ready) {
        return !is_ready && (s == MACHINE_GONE || s == MACHINE_MISSING);
}

bool node_machine_cannot_come_back(MachineState s, bool is_ready) {
        return s == MACHINE_ENDING || s == MACHINE_GONE || (s == MACHINE_MISSING && !is_ready);
}

void node_machine_describe(NodeMachine *m) {
        usec_t now = now_of(m), next = usec_add(m->described_usec, MACHINE_LOOK_USEC);

        if (m->described_usec == 0 || now >= next) {
                m->described_usec = now;
                machine_end_describe(m->end);
                next = usec_add(now, MACHINE_LOOK_USEC);
        }
        requeue_at(m, next);
}

/* -- its end -------------------------------------------------------------------------------------------- */

/* After T nothing is waited for. */
static void confirm_end(NodeMachine *m, NodeDrain *drain, bool past_deadline) {
        if (past_deadline)
                machine_end_confirm(m->end, USEC_INFINITY);
        else
                drain_proof_confirm(drain, m->end, now_of(m));
}

void node_machine_terminate(NodeMachine *m, const KubeNode *n, ClaimStatus *status, NodeDrain *drain, bool past_deadline) {
        const KubeNode *other = shared_machine_needed_by(m->context, n);
        usec_t at;

        m->is_shared = other && machine_end_hold(m->end);
        if (m->is_shared) {
                _cleanup_free_ char *message = shared_machine_message(n, other);

                termination_report_blocked(m->report, status, "MachineShared", strempty(message), true);
                node_machine_describe(m);
                return;
        }
        if (!m->rate_taken && !token_bucket_take(m->context->rate, now_of(m), &at)) {
                termination_report_rate_limited(m->report);
                requeue_at(m, at);
                return;
        }
        m->rate_taken = true;
        machine_end_terminate(m->end);
        confirm_end(m, drain, past_deadline);
}

/* -- what a person hears -------------------------------------------------------------------------------- */

/* What the cloud says against its end is told first. */
static bool lacks_proof(NodeMachine *m, const NodeDrain *drain, bool past_deadline) {
        usec_t at = drain_proof_overdue(drain);

        if (at == USEC_INFINITY || past_deadline || m->is_shared || (m->end && machine_end_problem(m->end, NULL)))
                return false;
        if (now_of(m) >= at)
                return true;
        requeue_at(m, at);
        return false;
}

void node_machine_tell_proof(NodeMachine *m, ClaimStatus *status, const NodeDrain *drain, bool past_deadline) {
        bool before = m->is_unproved;

        m->is_unproved = lacks_proof(m, drain, past_deadline);
        if (m->is_unproved)
                termination_report_blocked(m->report, status, DRAIN_PROOF_REASON, drain_proof_message, true);
        else if (before && !m->is_shared)
                termination_report_unblocked(m->report, status);
}

void node_machine_tell_problem(NodeMachine *m, ClaimStatus *status) {
        const char *reason, *problem;

        if (m->is_shared)
                return;
        problem = machine_end_problem(m->end, &reason);
        if (problem)
                termination_report_blocked(m->report, status, reason, problem, true);
        else if (!m->is_unproved)
                termination_report_unblocked(m->report, status);
}

/* Which machine is its own, nothing says. */
void node_machine_tell_of_another(NodeMachine *m, const KubeNode *n, ClaimStatus *status) {
        _cleanup_free_ char *id = str_sanitize(n->provider_id, MACHINE_ID_SHOWN_MAX), *message = NULL;

        message = strf("its providerID %s names the machine of another Node, which is not ended for this one. "
                       "End this Node's own machine, if it has one, by other means, and take " FINALIZER_TERMINATION " off the Node's finalizers",
                       strempty(id));
        termination_report_blocked(m->report, status, "MachineOfAnother", strempty(message), false);
}
