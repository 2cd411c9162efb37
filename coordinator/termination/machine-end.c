/* SPDX-License-Identifier: Apache-2.0 */
#include "machine-end.h"

#include "backoff.h"
#include "log.h"
#include "machine-facts.h"
#include "string-util.h"

#define SECOND_DESCRIBE_USEC (10 * USEC_PER_SEC)
/* EC2 may not show an instance for minutes after it was started. */
#define YOUNG_USEC (10 * USEC_PER_MINUTE)
#define REPEAT_TERMINATE_USEC (60 * USEC_PER_SEC) /* accepted, and still there: say it again */
#define PROVED_USEC (10 * USEC_PER_SEC) /* a place that comes later finds whose machine it is proved anew */
/* The diagram of machine-end.h. */
typedef enum MachineStep {
        MACHINE_STEP_IDLE,     /* nothing was asked, or the end was put off */
        MACHINE_STEP_DESCRIBING,  /* a describe that was asked for is under way */
        MACHINE_STEP_DESCRIBE_DUE, /* the next one is due by the timer */
        MACHINE_STEP_DESCRIBED,   /* the last describe has been answered, and needs no second one */
        /* It is to end: from here on. */
        MACHINE_STEP_PROVING,  /* a describe under way that is to prove whose it is */
        MACHINE_STEP_RESERVED, /* a terminate is reserved, or on its way */
        MACHINE_STEP_ACCEPTED,  /* the next describe, or terminate, is due by the timer */
        MACHINE_STEP_WATCHING,  /* accepted, and a describe is under way */
        MACHINE_STEP_RETRYING,  /* from the beginning, by the timer */
        MACHINE_STEP_OVER,      /* it cannot come back */
        _MACHINE_STEP_MAX,
} MachineStep;

#define TO(s) (1u << MACHINE_STEP_##s)

static const unsigned edges[_MACHINE_STEP_MAX] = {
        [MACHINE_STEP_IDLE] = TO(DESCRIBING) | TO(PROVING) | TO(RESERVED),
        [MACHINE_STEP_DESCRIBING] = TO(DESCRIBED) | TO(DESCRIBE_DUE) | TO(PROVING) | TO(RESERVED),
        [MACHINE_STEP_DESCRIBE_DUE] = TO(DESCRIBING) | TO(PROVING) | TO(RESERVED),
        [MACHINE_STEP_DESCRIBED] = TO(DESCRIBING) | TO(PROVING) | TO(RESERVED),
        [MACHINE_STEP_PROVING] = TO(RESERVED) | TO(RETRYING) | TO(OVER) | TO(IDLE),
        [MACHINE_STEP_RESERVED] = TO(ACCEPTED) | TO(RETRYING) | TO(OVER) | TO(IDLE),
        [MACHINE_STEP_ACCEPTED] = TO(WATCHING) | TO(PROVING) | TO(RESERVED),
        [MACHINE_STEP_WATCHING] = TO(ACCEPTED) | TO(OVER),
        [MACHINE_STEP_RETRYING] = TO(PROVING) | TO(RESERVED) | TO(IDLE),
};

/* What says that the providerID is that of this Node's instance, besides a pool that believes providerIDs. */
typedef enum MachineProof {
        MACHINE_PROOF_NONE,
        MACHINE_PROOF_KEPT,  /* the last answer was about the instance that the claim keeps as proved */
        MACHINE_PROOF_NAMED, /* a describe of ours has proved it by name: it stays so */
} MachineProof;

struct MachineEnd {
        Env *env;
        CloudProvider *provider;
        HttpGuard guard;
        CloudMachine *machine;
        char *op_id, *pool, *kept_instance, *kept_region; /* kept: by its claim */
        usec_t born_usec;
        machine_changed_t changed;
        void *userdata;
        MachineStep step;
        CloudCall *call; /* DESCRIBING, PROVING, WATCHING: describe; RESERVED: terminate */
        CloudCall *look; /* RESERVED: a describe in its place, that proves anew whose machine it is */
        Timer *timer;
        MachineState state;
        bool off; /* PRESENT: the last answer says that it is shut off */
        MachineProof proof;
        bool trusted;        /* a setting: its pool believes providerIDs */
        usec_t asked_usec;   /* when the describe under way was begun */
        usec_t missing_usec; /* since when describes do not find it, and it is old enough; 0: it was found */
        usec_t accepted_usec;        /* ACCEPTED, WATCHING: when */
        char *problem;
        const char *problem_reason;
        Backoff fast, slow;
};

static void on_timer(Timer *t, void *userdata);

int machine_end_new(Env *env, const MachineEndOptions *o, MachineEnd **ret) {
        _cleanup_(machine_end_freep) MachineEnd *m = NULL;
        int r;

        assert(env && o && o->provider && o->machine && o->op_id && o->changed && ret);
        m = new0(MachineEnd, 1);
        if (!m)
                return -ENOMEM;
        m->env = env;
        m->provider = o->provider;
        m->guard = o->guard;
        m->born_usec = o->born_usec;
        m->changed = o->changed;
        m->userdata = o->userdata;
        m->fast = (Backoff){ .base_usec = USEC_PER_SEC,
                             .cap_usec = 60 * USEC_PER_SEC,
                             .jitter_permille = 200 };
        m->slow = (Backoff){ .base_usec = 30 * USEC_PER_SEC,
                             .cap_usec = 5 * USEC_PER_MINUTE,
                             .jitter_permille = 200 };
        m->machine = cloud_machine_copy(o->machine);
        if (!m->machine || free_and_strdup(&m->op_id, o->op_id) < 0 ||
            free_and_strdup(&m->pool, strempty(o->pool)) < 0)
                return -ENOMEM;
        if (o->identity && o->identity->method &&
            (free_and_strdup(&m->kept_instance, o->identity->instance_id) < 0 ||
             free_and_strdup(&m->kept_region, o->identity->region) < 0))
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
        cloud_call_free(m->look);
        timer_free(m->timer);
        cloud_machine_free(m->machine);
        free(m->op_id);
        free(m->pool);
        free(m->kept_instance);
        free(m->kept_region);
        free(m->problem);
        free(m);
        return NULL;
}

/* The only writer of the step: what the old one waited for is dropped. */
static void machine_set_step(MachineEnd *m, MachineStep to) {
        assert(edges[m->step] & (1u << to));
        m->call = cloud_call_free(m->call);
        m->look = cloud_call_free(m->look);
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
        case CLOUD_NO_CAPACITY:
        case CLOUD_AT_MINIMUM:
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

/* -- whose it is ---------------------------------------------------------------------------------------- */

static void note_identity(MachineEnd *m, const CloudResult *result) {
        const CloudIdentity *i = &result->identity;

        if (i->method)
                m->proof = MACHINE_PROOF_NAMED;
        else if (m->proof != MACHINE_PROOF_NAMED)
                m->proof = m->kept_instance && streq_ptr(m->kept_instance, i->instance_id) &&
                                           streq_ptr(m->kept_region, i->region)
                                   ? MACHINE_PROOF_KEPT
                                   : MACHINE_PROOF_NONE;
}

bool machine_end_is_proved(const MachineEnd *m) {
        return !m->provider->ops->proves_identity || m->proof != MACHINE_PROOF_NONE || m->trusted;
}

bool machine_end_is_proved_anew(const MachineEnd *m) {
        return !m->provider->ops->proves_identity || m->proof == MACHINE_PROOF_NAMED || m->trusted;
}

void machine_end_trust(MachineEnd *m, bool trusted) {
        bool now = trusted && !m->trusted, not_any_more = m->trusted && !trusted;

        m->trusted = trusted;
        if (now && m->step == MACHINE_STEP_RETRYING && streq_ptr(m->problem_reason, "IdentityUnproved"))
                timer_arm_in(m->timer, 0);
        /* The describe that led here may have counted for nothing but that. */
        else if (not_any_more && m->provider->ops->proves_identity && m->step == MACHINE_STEP_RESERVED &&
                 cloud_call_hold(m->call))
                machine_set_step_for(m, MACHINE_STEP_RETRYING, 0);
}

static void set_unproved(MachineEnd *m, const CloudResult *result) {
        _cleanup_free_ char *text = NULL;

        text = machine_unproved_message(result->unproved, m->pool);
        set_problem(m, "IdentityUnproved", text);
}

/* -- describing ----------------------------------------------------------------------------------------- */

/* It was not there, for all that this describe can say. */
static void note_missing(MachineEnd *m) {
        if (m->missing_usec == 0)
                m->missing_usec = loop_now(m->env->loop);
        m->state = m->asked_usec >= usec_add(m->missing_usec, SECOND_DESCRIBE_USEC) ? MACHINE_MISSING
                                                                                : MACHINE_UNKNOWN;
        if (m->state == MACHINE_MISSING)
                set_problem(m, "MachineMissing",
                            "The cloud does not find this machine, but its Node is Ready: the cloud is asked for it again until one of the two changes");
}

static void note_not_found(MachineEnd *m) {
        if (loop_wall(m->env->loop) >= usec_add(m->born_usec, YOUNG_USEC)) {
                note_missing(m);
                return;
        }
        m->missing_usec = 0;
        m->state = MACHINE_UNKNOWN;
        set_problem(m, "CloudUnknown",
                    "The cloud does not find this machine; in its first 10 minutes that may be because it is new: it is asked for again");
}

static void note_state(MachineEnd *m, const CloudResult *result) {
        bool proved = machine_end_is_proved(m);

        m->off = result->state == INSTANCE_OFF;
        switch (result->state) {
        case INSTANCE_PRESENT:
        case INSTANCE_OFF:
                m->missing_usec = 0;
                m->state = MACHINE_PRESENT;
                return;
        case INSTANCE_TERMINATING:
                m->missing_usec = 0;
                m->state = proved ? MACHINE_ENDING : MACHINE_UNKNOWN;
                if (!proved)
                        set_unproved(m, result);
                return;
        case INSTANCE_GONE:
                if (proved)
                        m->state = MACHINE_GONE;
                else
                        note_missing(m);
                if (!proved)
                        set_unproved(m, result);
                return;
        case INSTANCE_NOT_FOUND:
                note_not_found(m);
                return;
        case INSTANCE_UNKNOWN:
                m->missing_usec = 0;
                m->state = MACHINE_UNKNOWN;
                return;
        case _INSTANCE_STATE_MAX:
        case _INSTANCE_STATE_INVALID:
                break;
        }
        assert(false && "an instance in no state");
}

static void note_described(MachineEnd *m, const CloudResult *result) {
        if (result->outcome == CLOUD_OK) {
                set_problem(m, result->state == INSTANCE_UNKNOWN ? "CloudUnknown" : NULL, result->message);
                note_identity(m, result);
                note_state(m, result);
        } else {
                m->missing_usec = 0;
                m->off = false;
                m->state = MACHINE_UNKNOWN;
                set_problem(m, outcome_reason(result->outcome), result->message);
        }
}

/* One describe did not find it: when the second one is due, from now; 0: none is. */
static usec_t second_describe_delay(const MachineEnd *m) {
        if (m->missing_usec == 0 || m->state == MACHINE_MISSING)
                return 0;
        return MAX(usec_sub(usec_add(m->missing_usec, SECOND_DESCRIBE_USEC), loop_now(m->env->loop)), 1u);
}

static int machine_describe(MachineEnd *m, cloud_done_t done, CloudCall **ret) {
        m->asked_usec = loop_now(m->env->loop);
        return cloud_describe(m->provider, m->machine, done, m, ret);
}

static void on_described(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        note_described(m, result);
        if (second_describe_delay(m) > 0)
                machine_set_step_for(m, MACHINE_STEP_DESCRIBE_DUE, second_describe_delay(m));
        else
                machine_set_step(m, MACHINE_STEP_DESCRIBED);
        m->changed(m, m->userdata);
}

static void machine_describe_now(MachineEnd *m) {
        machine_set_step(m, MACHINE_STEP_DESCRIBING);
        if (machine_describe(m, on_described, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_DESCRIBE_DUE, USEC_PER_SEC);
}

void machine_end_describe(MachineEnd *m) {
        if (m->step == MACHINE_STEP_IDLE || m->step == MACHINE_STEP_DESCRIBED)
                machine_describe_now(m);
}

/* -- ending --------------------------------------------------------------------------------------------- */

static void machine_reserve(MachineEnd *m);

/* Where the second describe decides it comes when that is due, and else by the backoff. */
static usec_t next_describe_delay(MachineEnd *m, const CloudResult *result) {
        usec_t second = second_describe_delay(m);

        return second > 0 ? second : retry_delay(m, result);
}

/* True: it is there, and the Node's. */
static bool note_proved(MachineEnd *m, const CloudResult *result) {
        bool ours = result->identity.method || m->trusted;

        note_described(m, result);
        if (m->state == MACHINE_PRESENT && !ours)
                set_unproved(m, result);
        if (m->state == MACHINE_PRESENT && ours)
                return true;
        if (is_over(m))
                machine_set_step(m, MACHINE_STEP_OVER);
        else
                machine_set_step_for(m, MACHINE_STEP_RETRYING, next_describe_delay(m, result));
        return false;
}

static void on_proved(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        if (note_proved(m, result))
                machine_reserve(m);
        m->changed(m, m->userdata);
}

static void on_proved_in_place(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        if (note_proved(m, result))
                m->look = cloud_call_free(m->look);
        m->changed(m, m->userdata);
}

/* The first step of a termination, and of each repetition. */
static void machine_begin_to_end(MachineEnd *m) {
        if (!m->provider->ops->proves_identity) {
                machine_reserve(m);
                return;
        }
        machine_set_step(m, MACHINE_STEP_PROVING);
        if (machine_describe(m, on_proved, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_RETRYING, USEC_PER_SEC);
}

static void on_watched(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        note_described(m, result);
        if (is_over(m))
                machine_set_step(m, MACHINE_STEP_OVER);
        else
                machine_set_step_for(m, MACHINE_STEP_ACCEPTED, next_describe_delay(m, result));
        m->changed(m, m->userdata);
}

static void machine_watch(MachineEnd *m) {
        machine_set_step(m, MACHINE_STEP_WATCHING);
        if (machine_describe(m, on_watched, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_ACCEPTED, USEC_PER_SEC);
}

/* Whatever state is told with it: an answer without error says that the cloud took the request, or had nothing to
 * end. That it does not find the machine only describes can say. */
static void note_accepted(MachineEnd *m, const CloudResult *result) {
        m->accepted_usec = loop_now(m->env->loop);
        backoff_reset(&m->fast);
        backoff_reset(&m->slow);
        if (result->state != INSTANCE_NOT_FOUND)
                note_state(m, result);
        if (is_over(m))
                machine_set_step(m, MACHINE_STEP_OVER);
        else
                machine_set_step_for(m, MACHINE_STEP_ACCEPTED, retry_delay(m, result));
}

static void on_terminated(const CloudResult *result, void *userdata) {
        MachineEnd *m = userdata;

        set_problem(m, outcome_reason(result->outcome), result->message);
        if (result->outcome == CLOUD_OK)
                note_accepted(m, result);
        else
                machine_set_step_for(m, MACHINE_STEP_RETRYING, retry_delay(m, result));
        m->changed(m, m->userdata);
}

static void on_asked(void *userdata) {
        MachineEnd *m = userdata;

        if (m->provider->ops->proves_identity && loop_now(m->env->loop) > usec_add(m->asked_usec, PROVED_USEC) &&
            machine_describe(m, on_proved_in_place, &m->look) < 0)
                machine_set_step_for(m, MACHINE_STEP_RETRYING, USEC_PER_SEC);
        else if (!m->look)
                m->changed(m, m->userdata);
}

static void machine_reserve(MachineEnd *m) {
        const CloudReservation reservation = { .operation = CLOUD_TERMINATE,
                                               .machine = m->machine,
                                               .op_id = m->op_id,
                                               .pool = m->pool,
                                               .guard = m->guard,
                                               .prove = on_asked,
                                               .done = on_terminated,
                                               .userdata = m };

        machine_set_step(m, MACHINE_STEP_RESERVED);
        if (cloud_reserve(m->provider, &reservation, &m->call) < 0)
                machine_set_step_for(m, MACHINE_STEP_RETRYING, USEC_PER_SEC);
}

void machine_end_confirm(MachineEnd *m, usec_t until_usec) {
        if (machine_end_asks(m))
                cloud_call_send(m->call, until_usec);
}

static void on_timer(Timer *t, void *userdata) {
        MachineEnd *m = userdata;
        usec_t now = loop_now(m->env->loop);

        switch (m->step) {
        case MACHINE_STEP_DESCRIBE_DUE:
                machine_describe_now(m);
                return;
        case MACHINE_STEP_ACCEPTED:
                if (now < usec_add(m->accepted_usec, REPEAT_TERMINATE_USEC))
                        machine_watch(m);
                else
                        machine_begin_to_end(m);
                return;
        case MACHINE_STEP_RETRYING:
                machine_begin_to_end(m);
                return;
        case MACHINE_STEP_IDLE:
        case MACHINE_STEP_DESCRIBING:
        case MACHINE_STEP_DESCRIBED:
        case MACHINE_STEP_PROVING:
        case MACHINE_STEP_RESERVED:
        case MACHINE_STEP_WATCHING:
        case MACHINE_STEP_OVER:
        case _MACHINE_STEP_MAX:
                break;
        }
        assert(false && "a timer in a step that has none");
}

void machine_end_terminate(MachineEnd *m) {
        if (m->step >= MACHINE_STEP_PROVING)
                return;
        m->state = MACHINE_UNKNOWN; /* what a describe once said does not stand in for this answer */
        m->off = false;
        m->missing_usec = 0;
        machine_begin_to_end(m); /* a describe under way has nothing to say any more */
}

bool machine_end_asks(const MachineEnd *m) {
        return m->step == MACHINE_STEP_RESERVED && m->call->asked && !m->look;
}

bool machine_end_hold(MachineEnd *m) {
        switch (m->step) {
        case MACHINE_STEP_IDLE:
        case MACHINE_STEP_DESCRIBING:
        case MACHINE_STEP_DESCRIBE_DUE:
        case MACHINE_STEP_DESCRIBED:
                return true;
        case MACHINE_STEP_RESERVED:
                if (!cloud_call_hold(m->call))
                        return false;
                machine_set_step(m, MACHINE_STEP_IDLE);
                return true;
        case MACHINE_STEP_PROVING:
        case MACHINE_STEP_RETRYING:
                machine_set_step(m, MACHINE_STEP_IDLE);
                return true;
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

bool machine_end_is_off(const MachineEnd *m) {
        return m->state == MACHINE_PRESENT && m->off && machine_end_is_proved(m);
}

bool machine_end_has_answered(const MachineEnd *m) {
        return m->step == MACHINE_STEP_DESCRIBED;
}

const char *machine_end_problem(const MachineEnd *m, const char **ret_reason) {
        if (ret_reason)
                *ret_reason = m->problem_reason;
        return m->problem_reason ? strempty(m->problem) : NULL;
}

/* -- tests ---------------------------------------------------------------------------------------------- */

static const char *const step_names[_MACHINE_STEP_MAX] = {
        [MACHINE_STEP_IDLE] = "idle",
        [MACHINE_STEP_DESCRIBING] = "describing",
        [MACHINE_STEP_DESCRIBE_DUE] = "a describe is due",
        [MACHINE_STEP_DESCRIBED] = "described",
        [MACHINE_STEP_PROVING] = "proving",
        [MACHINE_STEP_RESERVED] = "reserved",
        [MACHINE_STEP_ACCEPTED] = "accepted",
        [MACHINE_STEP_WATCHING] = "accepted, describing",
        [MACHINE_STEP_RETRYING] = "retrying",
        [MACHINE_STEP_OVER] = "over",
};

bool machine_end_will_report(const MachineEnd *m) {
        return m->step != MACHINE_STEP_IDLE && m->step != MACHINE_STEP_DESCRIBED && m->step != MACHINE_STEP_OVER &&
               !machine_end_asks(m);
}

void machine_end_next_wakeup(const MachineEnd *m, Wakeups *w) {
        if (!machine_end_will_report(m))
                return;
        wakeups_unfinished(w, "machine", m->op_id, step_names[m->step], MACHINE_END_WAKEUP_USEC);
        wakeups_timer(w, m->timer);
        wakeups_await(w, m->call);
}
