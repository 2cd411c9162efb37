/* SPDX-License-Identifier: Apache-2.0 */
#include "machine-end.h"

#include "backoff.h"
#include "log.h"
#include "string-util.h"

#define SECOND_LOOK_USEC USEC_PER_SEC
#define REPEAT_TERMINATE_USEC (60 * USEC_PER_SEC) /* accepted, and still there: say it again */
/* How long others wait for an owner who cannot give his word. */
#define TURN_USEC (10 * USEC_PER_SEC)

/* The diagram of machine-end.h. */
typedef enum MachineStep {
        MACHINE_STEP_IDLE,
        MACHINE_STEP_LOOKING,  /* a describe that was asked for is under way */
        MACHINE_STEP_LOOK_DUE, /* the next one is due by the timer */
        /* It is to end: from here on. */
        MACHINE_STEP_WAITING,  /* for its turn */
        MACHINE_STEP_ASKING,   /* its turn has come: for the owner's word, by the timer for so long */
        MACHINE_STEP_SENT,     /* the terminate is on its way */
        MACHINE_STEP_ACCEPTED, /* the next describe, or terminate, is due by the timer */
        MACHINE_STEP_WATCHING, /* accepted, and a describe is under way */
        MACHINE_STEP_RETRYING, /* from the beginning, by the timer */
        MACHINE_STEP_OVER,     /* it cannot come back */
        _MACHINE_STEP_MAX,
} MachineStep;

#define TO(s) (1u << MACHINE_STEP_##s)

static const unsigned edges[_MACHINE_STEP_MAX] = {
        [MACHINE_STEP_IDLE] = TO(LOOKING) | TO(LOOK_DUE) | TO(WAITING) | TO(RETRYING),
        [MACHINE_STEP_LOOKING] = TO(IDLE) | TO(LOOK_DUE) | TO(WAITING) | TO(RETRYING),
        [MACHINE_STEP_LOOK_DUE] = TO(LOOKING) | TO(LOOK_DUE) | TO(WAITING) | TO(RETRYING),
        [MACHINE_STEP_WAITING] = TO(ASKING) | TO(RETRYING) | TO(IDLE),
        [MACHINE_STEP_ASKING] = TO(SENT) | TO(WAITING) | TO(RETRYING) | TO(IDLE),
        [MACHINE_STEP_SENT] = TO(ACCEPTED) | TO(RETRYING) | TO(OVER),
        [MACHINE_STEP_ACCEPTED] = TO(WATCHING) | TO(WAITING) | TO(RETRYING) | TO(ACCEPTED),
        [MACHINE_STEP_WATCHING] = TO(ACCEPTED) | TO(OVER),
        [MACHINE_STEP_RETRYING] = TO(WAITING) | TO(RETRYING) | TO(IDLE),
};

struct MachineEnd {
        Env *env;
        CloudProvider *provider;
        HttpGuard guard;
        char *provider_id, *op_id, *pool;
        machine_changed_t changed;
        void *userdata;
        MachineStep step;
        CloudCall *call; /* LOOKING, WATCHING: describe; WAITING, ASKING: the turn; SENT: terminate */
        Timer *timer;
        MachineState state;
        bool answered;
        bool first_gone; /* one look said gone */
        usec_t word_until_usec;
        bool word_aged;       /* the terminate under way was not sent for that */
        usec_t accepted_usec; /* ACCEPTED, WATCHING: when */
        char *problem;
        const char *problem_reason;
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

/* The only writer of the step: what the old one waited for is dropped, but that a turn is kept until it is used. */
static void machine_set_step(MachineEnd *m, MachineStep to) {
        bool keeps_call = to == MACHINE_STEP_ASKING || to == MACHINE_STEP_SENT;

        assert(edges[m->step] & (1u << to));
        if (!keeps_call)
                m->call = cloud_call_free(m->call);
        timer_disarm(m->timer);
        m->step = to;
}

static void machine_set_step_for(MachineEnd *m, MachineStep to, usec_t usec) {
        machine_set_step(m, to);
        timer_arm_in(m->timer, usec);
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

static usec_t retry_delay(MachineEnd *m, const CloudResult *result) {
        bool passing = result->outcome == CLOUD_RETRY || result->outcome == CLOUD_OK;
        usec_t delay = backoff_next(passing ? &m->fast : &m->slow, m->env->random);

        return MAX(delay, result->retry_after_usec);
}

static bool is_over(const MachineEnd *m) {
        return m->state == MACHINE_ENDING || m->state == MACHINE_GONE;
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

static void note_described(MachineEnd *m, const CloudResult *result) {
        m->answered = true;
        if (result->outcome == CLOUD_OK) {
                note_state(m, result->state);
                set_problem(m, result->state == INSTANCE_UNKNOWN ? "CloudUnknown" : NULL, result->message);
        } else {
                m->state = MACHINE_UNKNOWN;
                m->first_gone = false;
                set_problem(m, outcome_reason(result->outcome), result->message);
        }
}

static void on_looked(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        note_described(m, result);
        if (m->first_gone && !is_over(m))
                machine_set_step_for(m, MACHINE_STEP_LOOK_DUE, SECOND_LOOK_USEC);
        else
                machine_set_step(m, MACHINE_STEP_IDLE);
        m->changed(m, m->userdata);
}

static void machine_look_now(MachineEnd *m) {
        machine_set_step(m, MACHINE_STEP_LOOKING);
        if (cloud_describe(m->provider, m->provider_id, on_looked, m, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_LOOK_DUE, USEC_PER_SEC);
}

void machine_end_look(MachineEnd *m) {
        if (m->step == MACHINE_STEP_IDLE)
                machine_look_now(m);
}

/* -- ending --------------------------------------------------------------------------------------------- */

static void on_watched(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        note_described(m, result);
        if (is_over(m))
                machine_set_step(m, MACHINE_STEP_OVER);
        else
                machine_set_step_for(m, MACHINE_STEP_ACCEPTED, retry_delay(m, result));
        m->changed(m, m->userdata);
}

static void machine_watch(MachineEnd *m) {
        machine_set_step(m, MACHINE_STEP_WATCHING);
        if (cloud_describe(m->provider, m->provider_id, on_watched, m, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_ACCEPTED, USEC_PER_SEC);
}

/* Whatever state is told with it: an answer without error says that the cloud took the request. */
static void note_accepted(MachineEnd *m, const CloudResult *result) {
        m->accepted_usec = loop_now(m->env->loop);
        backoff_reset(&m->fast);
        backoff_reset(&m->slow);
        note_state(m, result->state);
        if (is_over(m))
                machine_set_step(m, MACHINE_STEP_OVER);
        else
                machine_set_step_for(m, MACHINE_STEP_ACCEPTED, retry_delay(m, result));
}

static void on_terminated(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        set_problem(m, outcome_reason(result->outcome),
                    m->word_aged ? "The way to the cloud took too long for what was last seen of the node: "
                                   "it is looked at again"
                                 : result->message);
        if (result->outcome == CLOUD_OK)
                note_accepted(m, result);
        else
                machine_set_step_for(m, MACHINE_STEP_RETRYING, retry_delay(m, result));
        m->changed(m, m->userdata);
}

static void on_turn(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        if (result->outcome == CLOUD_OK)
                machine_set_step_for(m, MACHINE_STEP_ASKING, TURN_USEC);
        else {
                set_problem(m, outcome_reason(result->outcome), result->message);
                machine_set_step_for(m, MACHINE_STEP_RETRYING, retry_delay(m, result));
        }
        m->changed(m, m->userdata);
}

static void machine_take_turn(MachineEnd *m) {
        machine_set_step(m, MACHINE_STEP_WAITING);
        if (cloud_turn(m->provider, m->provider_id, on_turn, m, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_RETRYING, USEC_PER_SEC);
}

static bool may_send(void *userdata) {
        MachineEnd *m = userdata;

        m->word_aged = loop_now(m->env->loop) > m->word_until_usec;
        return !m->word_aged && (!m->guard.may_send || m->guard.may_send(m->guard.userdata));
}

void machine_end_confirm(MachineEnd *m, usec_t until_usec) {
        HttpGuard guard = { may_send, m };

        if (m->step != MACHINE_STEP_ASKING)
                return;
        m->word_aged = false;
        m->word_until_usec = until_usec;
        machine_set_step(m, MACHINE_STEP_SENT);
        if (cloud_terminate(m->call, m->op_id, m->pool, &guard, on_terminated, m) < 0)
                machine_set_step_for(m, MACHINE_STEP_RETRYING, USEC_PER_SEC);
}

static void on_timer(Timer *t, void *userdata) {
        MachineEnd *m = userdata;
        usec_t now = loop_now(m->env->loop);

        switch (m->step) {
        case MACHINE_STEP_LOOK_DUE:
                machine_look_now(m);
                return;
        case MACHINE_STEP_ACCEPTED:
                if (now < usec_add(m->accepted_usec, REPEAT_TERMINATE_USEC))
                        machine_watch(m);
                else
                        machine_take_turn(m);
                return;
        case MACHINE_STEP_ASKING:
        case MACHINE_STEP_RETRYING:
                machine_take_turn(m);
                return;
        case MACHINE_STEP_IDLE:
        case MACHINE_STEP_LOOKING:
        case MACHINE_STEP_WAITING:
        case MACHINE_STEP_SENT:
        case MACHINE_STEP_WATCHING:
        case MACHINE_STEP_OVER:
        case _MACHINE_STEP_MAX:
                break;
        }
        assert(false && "a timer in a step that has none");
}

void machine_end_terminate(MachineEnd *m) {
        if (m->step >= MACHINE_STEP_WAITING)
                return;
        m->state = MACHINE_UNKNOWN; /* what a look once said does not stand in for this answer */
        m->first_gone = false;
        machine_take_turn(m); /* a look under way has nothing to say any more */
}

bool machine_end_asks(const MachineEnd *m) {
        return m->step == MACHINE_STEP_ASKING;
}

bool machine_end_hold(MachineEnd *m) {
        switch (m->step) {
        case MACHINE_STEP_IDLE:
        case MACHINE_STEP_LOOKING:
        case MACHINE_STEP_LOOK_DUE:
                return true;
        case MACHINE_STEP_WAITING:
        case MACHINE_STEP_ASKING:
        case MACHINE_STEP_RETRYING:
                machine_set_step(m, MACHINE_STEP_IDLE);
                return true;
        case MACHINE_STEP_SENT:
        case MACHINE_STEP_ACCEPTED:
        case MACHINE_STEP_WATCHING:
        case MACHINE_STEP_OVER:
                return false;
        case _MACHINE_STEP_MAX:
                break;
        }
        assert(false && "a machine in no step");
        return false;
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
