/* SPDX-License-Identifier: Apache-2.0 */
#include "machine-end.h"

#include "backoff.h"
#include "log.h"
#include "string-util.h"

#define SECOND_LOOK_USEC USEC_PER_SEC
#define REPEAT_TERMINATE_USEC (60 * USEC_PER_SEC) /* accepted, and still there: say it again */
/* How long others wait for an owner who cannot give his word. */
#define TURN_USEC (10 * USEC_PER_SEC)

struct MachineEnd {
        Env *env;
        CloudProvider *provider;
        HttpGuard guard;
        char *provider_id, *op_id, *pool;
        machine_changed_t changed;
        void *userdata;
        MachineState state;
        bool answered, terminating;
        bool turn, asks; /* `call` is a turn to terminate; it has come */
        usec_t word_until_usec;
        bool word_aged;       /* the terminate under way was not sent for that */
        bool first_gone;      /* one look said gone */
        usec_t accepted_usec; /* when terminate was accepted last; 0: not */
        char *problem;
        const char *problem_reason;
        CloudCall *call;
        Timer *timer;
        Backoff fast, slow;
};

static void on_timer(Timer *t, void *userdata);

int machine_end_new(Env *env, CloudProvider *provider, HttpGuard guard, const char *provider_id,
                    const char *op_id, const char *pool, machine_changed_t changed, void *userdata,
                    MachineEnd **ret) {
        _cleanup_(machine_end_freep) MachineEnd *m = NULL;
        int r;

        assert(env && provider && provider_id && op_id && changed && ret);
        m = new0(MachineEnd, 1);
        if (!m)
                return -ENOMEM;
        m->env = env;
        m->provider = provider;
        m->guard = guard;
        m->changed = changed;
        m->userdata = userdata;
        m->fast = (Backoff){ .base_usec = USEC_PER_SEC,
                             .cap_usec = 60 * USEC_PER_SEC,
                             .jitter_permille = 200 };
        m->slow = (Backoff){ .base_usec = 30 * USEC_PER_SEC,
                             .cap_usec = 5 * USEC_PER_MINUTE,
                             .jitter_permille = 200 };
        if (free_and_strdup(&m->provider_id, provider_id) < 0 || free_and_strdup(&m->op_id, op_id) < 0 ||
            free_and_strdup(&m->pool, strempty(pool)) < 0)
                return -ENOMEM;
        r = timer_new(env->loop, "machine-end", on_timer, m, &m->timer);
        if (r < 0)
                return r;

        *ret = TAKE_PTR(m);
        return 0;
}

MachineEnd *machine_end_free(MachineEnd *m) {
        if (!m)
                return NULL;
        cloud_call_free(m->call);
        timer_free(m->timer);
        free(m->provider_id);
        free(m->op_id);
        free(m->pool);
        free(m->problem);
        free(m);
        return NULL;
}

static void set_problem(MachineEnd *m, const char *reason, const char *message) {
        m->problem_reason = reason;
        (void) free_and_strdup(&m->problem, reason ? strempty(message) : NULL);
}

/* NULL: no trouble. */
static const char *outcome_reason(CloudOutcome o) {
        switch (o) {
        case CLOUD_OK:
                return NULL;
        case CLOUD_RETRY:
                return "CloudUnavailable";
        case CLOUD_PROTECTED:
                return "TerminationProtected";
        case CLOUD_DENIED:
                return "CloudDenied";
        case CLOUD_INVALID:
                return "CloudRefused";
        case _CLOUD_OUTCOME_MAX:
                break;
        }
        assert(false && "a cloud call without outcome");
        return NULL;
}

static void retry_later(MachineEnd *m, const CloudResult *result) {
        bool passing = result->outcome == CLOUD_RETRY || result->outcome == CLOUD_OK;
        usec_t delay = backoff_next(passing ? &m->fast : &m->slow, m->env->random);

        timer_arm_in(m->timer, MAX(delay, result->retry_after_usec));
}

/* -- looking -------------------------------------------------------------------------------------------- */

static void note_state(MachineEnd *m, InstanceState s) {
        switch (s) {
        case INSTANCE_PRESENT:
                m->state = MACHINE_PRESENT;
                break;
        case INSTANCE_TERMINATING:
                m->state = MACHINE_ENDING;
                break;
        case INSTANCE_GONE:
                if (m->first_gone || m->accepted_usec > 0)
                        m->state = MACHINE_GONE;
                break;
        case INSTANCE_UNKNOWN:
                m->state = MACHINE_UNKNOWN;
                break;
        case _INSTANCE_STATE_MAX:
        case _INSTANCE_STATE_INVALID:
                assert(false && "an instance in no state");
        }
        m->first_gone = s == INSTANCE_GONE;
}

static void on_described(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;
        bool over;

        m->call = cloud_call_free(m->call);
        m->answered = true;
        if (result->outcome == CLOUD_OK) {
                note_state(m, result->state);
                set_problem(m, result->state == INSTANCE_UNKNOWN ? "CloudUnknown" : NULL, result->message);
        } else {
                m->state = MACHINE_UNKNOWN;
                m->first_gone = false;
                set_problem(m, outcome_reason(result->outcome), result->message);
        }

        over = m->state == MACHINE_ENDING || m->state == MACHINE_GONE;
        if (m->first_gone && !over)
                timer_arm_in(m->timer, SECOND_LOOK_USEC);
        else if (m->terminating && !over)
                retry_later(m, result);
        m->changed(m, m->userdata);
}

static void describe(MachineEnd *m) {
        if (cloud_describe(m->provider, m->provider_id, on_described, m, &m->call) < 0)
                timer_arm_in(m->timer, USEC_PER_SEC);
}

void machine_end_look(MachineEnd *m) {
        if (m->call || m->terminating || timer_is_armed(m->timer))
                return;
        describe(m);
}

/* -- ending --------------------------------------------------------------------------------------------- */

static void on_terminated(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        m->call = cloud_call_free(m->call);
        set_problem(m, outcome_reason(result->outcome),
                    m->word_aged ? "The way to the cloud took too long for what was last seen of the node: "
                                   "it is looked at again"
                                 : result->message);
        if (result->outcome == CLOUD_OK && result->state == INSTANCE_UNKNOWN) {
                /* "not found" where it may only not be visible: proves nothing, and may be said for ever */
                m->accepted_usec = 0;
                m->state = MACHINE_UNKNOWN;
                m->first_gone = false;
                set_problem(m, "CloudUnknown", result->message);
        } else if (result->outcome == CLOUD_OK) {
                m->accepted_usec = loop_now(m->env->loop);
                backoff_reset(&m->fast);
                backoff_reset(&m->slow);
                note_state(m, result->state);
        }
        if (m->state != MACHINE_ENDING && m->state != MACHINE_GONE)
                retry_later(m, result);
        m->changed(m, m->userdata);
}

static void drop_turn(MachineEnd *m) {
        m->call = cloud_call_free(m->call);
        m->turn = m->asks = false;
        timer_disarm(m->timer);
}

static void on_turn(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        if (result->outcome == CLOUD_OK) {
                m->asks = true;
                timer_arm_in(m->timer, TURN_USEC);
        } else {
                set_problem(m, outcome_reason(result->outcome), result->message);
                drop_turn(m);
                retry_later(m, result);
        }
        m->changed(m, m->userdata);
}

static void take_turn(MachineEnd *m) {
        drop_turn(m);
        m->turn = cloud_turn(m->provider, m->provider_id, on_turn, m, &m->call) >= 0;
        if (!m->turn)
                timer_arm_in(m->timer, USEC_PER_SEC);
}

static bool may_send(void *userdata) {
        MachineEnd *m = userdata;

        m->word_aged = loop_now(m->env->loop) > m->word_until_usec;
        return !m->word_aged && (!m->guard.may_send || m->guard.may_send(m->guard.userdata));
}

void machine_end_confirm(MachineEnd *m, usec_t until_usec) {
        HttpGuard guard = { may_send, m };

        if (!m->asks)
                return;
        m->turn = m->asks = m->word_aged = false;
        m->word_until_usec = until_usec;
        timer_disarm(m->timer);
        if (cloud_terminate(m->call, m->op_id, m->pool, &guard, on_terminated, m) < 0) {
                m->call = cloud_call_free(m->call);
                timer_arm_in(m->timer, USEC_PER_SEC);
        }
}

static void on_timer(Timer *t, void *userdata) {
        MachineEnd *m = userdata;
        usec_t now = loop_now(m->env->loop);

        if (m->call && !m->asks)
                return;
        if (m->asks || (m->terminating &&
                        (m->accepted_usec == 0 || now >= usec_add(m->accepted_usec, REPEAT_TERMINATE_USEC))))
                take_turn(m);
        else
                describe(m);
}

void machine_end_terminate(MachineEnd *m) {
        if (m->terminating)
                return;
        m->terminating = true;
        m->state = MACHINE_UNKNOWN; /* what a look once said does not stand in for this answer */
        m->first_gone = false;
        take_turn(m); /* a look under way has nothing to say any more */
}

bool machine_end_asks(const MachineEnd *m) {
        return m->asks;
}

bool machine_end_hold(MachineEnd *m) {
        if (!m->terminating)
                return true;
        if (((m->call || m->accepted_usec > 0) && !m->turn) || m->state == MACHINE_ENDING ||
            m->state == MACHINE_GONE)
                return false;
        m->terminating = false;
        drop_turn(m);
        return true;
}

MachineState machine_end_state(const MachineEnd *m) {
        return m->state;
}

bool machine_end_has_answered(const MachineEnd *m) {
        return m->answered && !(m->first_gone && m->state != MACHINE_GONE);
}

const char *machine_end_problem(const MachineEnd *m, const char **ret_reason) {
        if (ret_reason)
                *ret_reason = m->problem_reason;
        return m->problem_reason ? strempty(m->problem) : NULL;
}
