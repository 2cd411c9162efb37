/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-face.h"

#include "hashmap.h"
#include "log.h"
#include "string-util.h"

struct AgentFace {
        Env *env;
        const Reflex *reflex;
        const Reboot *reboot;
        ByHand *by_hand;
        BusSlot *object;
        Timer *timer;
        const char *told_state;
        uint64_t told; /* a hash of all properties */
};

static usec_t deadline_of(const AgentFace *f) {
        usec_t deadline = reflex_deadline(f->reflex);

        return deadline == USEC_INFINITY ? 0 : deadline;
}

static const char *state_of(const AgentFace *f) {
        static const char *const reboots[_REBOOT_STATE_MAX] = {
                [REBOOT_NONE] = "Idle",
                [REBOOT_ASKED] = "RebootRequested",
                [REBOOT_HELD] = "RebootHeld",
                [REBOOT_GRANTED] = "RebootGranted",
                [REBOOT_TAKEN] = "RebootGranted",
                [REBOOT_REBOOTING] = "Rebooting",
        };
        ReflexState s = reflex_state(f->reflex);

        return s == REFLEX_IDLE ? reboots[reboot_state(f->reboot)] : reflex_state_to_string(s);
}

/* -- properties --------------------------------------------------------------------------------- */

static char *get_state(const AgentFace *f) {
        return strdup(state_of(f));
}

static char *get_notice(const AgentFace *f) {
        const Notice *n = reflex_notice_now(f->reflex);

        return strdup(n ? n->id : "");
}

static char *get_pods_left(const AgentFace *f) {
        return strf("%zu", reflex_pods_left(f->reflex));
}

static char *get_deadline(const AgentFace *f) {
        return strf("%llu", (unsigned long long) deadline_of(f));
}

static char *get_drain_state(const AgentFace *f) {
        return strdup(by_hand_drain_state(f->by_hand));
}

static char *get_drain_reason(const AgentFace *f) {
        return by_hand_drain_reason(f->by_hand);
}

static char *get_reboot_state(const AgentFace *f) {
        return strdup(by_hand_reboot_state(f->by_hand));
}

static char *get_reboot_reason(const AgentFace *f) {
        return by_hand_reboot_reason(f->by_hand);
}

static const BusProperty properties[] = {
        { "State", 's' },       { "Notice", 's' },      { "PodsLeft", 't' },    { "Deadline", 't' },
        { "DrainState", 's' },  { "DrainReason", 's' }, { "RebootState", 's' }, { "RebootReason", 's' },
};

static char *(*const getters[])(const AgentFace *f) = {
        get_state,       get_notice,       get_pods_left,    get_deadline,
        get_drain_state, get_drain_reason, get_reboot_state, get_reboot_reason,
};

static char *get(const char *property, void *userdata) {
        for (size_t i = 0; i < ELEMENTSOF(properties); i++)
                if (streq(property, properties[i].name))
                        return getters[i](userdata);
        assert(false && "a property that was not published");
        return NULL;
}

/* -- methods ------------------------------------------------------------------------------------ */

static int call(const char *method, const char **reterr_message, void *userdata) {
        AgentFace *f = userdata;

        if (streq(method, "Drain") || streq(method, "ForceDrain"))
                return by_hand_drain(f->by_hand, streq(method, "ForceDrain"), reterr_message);
        if (streq(method, "RequestReboot") || streq(method, "ForceReboot"))
                return by_hand_reboot(f->by_hand, streq(method, "ForceReboot"), reterr_message);
        if (streq(method, "CancelDrain"))
                return by_hand_cancel_drain(f->by_hand, reterr_message);
        assert(streq(method, "CancelReboot"));
        return by_hand_cancel_reboot(f->by_hand, reterr_message);
}

static const char *const methods[] = { "Drain",         "ForceDrain",  "CancelDrain",
                                       "RequestReboot", "ForceReboot", "CancelReboot", NULL };

static const BusObject object = {
        .name = AGENT_BUS_NAME,
        .path = AGENT_BUS_PATH,
        .interface = AGENT_BUS_INTERFACE,
        .properties = properties,
        .n_properties = ELEMENTSOF(properties),
        .methods = methods,
        .signal = "StateChanged",
        .get = get,
        .call = call,
};

/* -- telling ------------------------------------------------------------------------------------ */

static uint64_t hash_properties(const AgentFace *f) {
        uint64_t parts[ELEMENTSOF(getters)];

        for (size_t i = 0; i < ELEMENTSOF(getters); i++) {
                _cleanup_free_ char *text = getters[i](f);

                parts[i] = hash64(strempty(text), strlen(strempty(text)));
        }
        return hash64(parts, sizeof(parts));
}

static void on_timer(Timer *t, void *userdata) {
        AgentFace *f = userdata;
        uint64_t now = hash_properties(f);
        const char *state = state_of(f);

        if (now == f->told)
                return;
        f->env->bus->ops->emit(f->object, state == f->told_state ? NULL : state);
        f->told_state = state;
        f->told = now;
}

void agent_face_changed(AgentFace *f) {
        if (f->object)
                timer_arm_earlier(f->timer, 0);
}

int agent_face_new(Env *env, const Reflex *reflex, const Reboot *reboot, ByHand *by_hand, AgentFace **ret) {
        _cleanup_(agent_face_freep) AgentFace *f = NULL;
        int r;

        assert(env && reflex && reboot && by_hand && ret);
        f = new0(AgentFace, 1);
        if (!f)
                return -ENOMEM;
        f->env = env;
        f->reflex = reflex;
        f->reboot = reboot;
        f->by_hand = by_hand;
        f->told_state = reflex_state_to_string(REFLEX_IDLE);
        r = timer_new(env->loop, "agent-face", on_timer, f, &f->timer);
        if (r < 0)
                return r;
        if (env->bus) {
                r = env->bus->ops->publish(env->bus, &object, f, &f->object);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_warning_errno(env->log, r,
                                          "Failed to acquire the name %s on D-Bus, continuing without it: %m",
                                          AGENT_BUS_NAME);
        }
        *ret = TAKE_PTR(f);
        return 0;
}

AgentFace *agent_face_free(AgentFace *f) {
        if (!f)
                return NULL;
        bus_slot_free(f->object);
        timer_free(f->timer);
        return mfree(f);
}
