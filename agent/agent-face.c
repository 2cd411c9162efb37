/* SPDX-License-Identifier: Apache-2.0 */
#include "agent-face.h"

#include "log.h"
#include "string-util.h"

struct AgentFace {
        Env *env;
        const Reflex *reflex;
        const Reboot *reboot;
        AgentFaceHandler handler;
        BusSlot *object;
        Timer *timer;
        const char *told_state;
        size_t told_pods;
        usec_t told_deadline_usec;
};

static usec_t deadline_of(const AgentFace *f) {
        usec_t deadline = reflex_deadline(f->reflex);

        return deadline == USEC_INFINITY ? 0 : deadline;
}

static const char *state_of(const AgentFace *f) {
        static const char *const reboots[_REBOOT_STATE_MAX] = { "Idle", "RebootRequested", "RebootGranted",
                                                                "Rebooting" };
        ReflexState s = reflex_state(f->reflex);

        return s == REFLEX_IDLE ? reboots[reboot_state(f->reboot)] : reflex_state_to_string(s);
}

static char *get(const char *property, void *userdata) {
        const AgentFace *f = userdata;
        const Notice *n = reflex_notice_now(f->reflex);

        if (streq(property, "State"))
                return strdup(state_of(f));
        if (streq(property, "Notice"))
                return strdup(n ? n->id : "");
        if (streq(property, "PodsLeft"))
                return strf("%zu", reflex_pods_left(f->reflex));
        assert(streq(property, "Deadline"));
        return strf("%llu", (unsigned long long) deadline_of(f));
}

static int call(const char *method, const char **reterr_message, void *userdata) {
        AgentFace *f = userdata;

        if (streq(method, "Drain"))
                return f->handler.on_drain(reterr_message, f->handler.userdata);
        if (streq(method, "RequestReboot"))
                return f->handler.on_reboot(reterr_message, f->handler.userdata);
        assert(streq(method, "Cancel"));
        return f->handler.on_cancel(reterr_message, f->handler.userdata);
}

static const BusProperty properties[] = {
        { "State", 's' },
        { "Notice", 's' },
        { "PodsLeft", 't' },
        { "Deadline", 't' },
};

static const char *const methods[] = { "Drain", "Cancel", "RequestReboot", NULL };

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

static void on_timer(Timer *t, void *userdata) {
        AgentFace *f = userdata;
        const char *state = state_of(f);
        size_t pods = reflex_pods_left(f->reflex);
        usec_t deadline = deadline_of(f);

        if (state == f->told_state && pods == f->told_pods && deadline == f->told_deadline_usec)
                return;
        f->env->bus->ops->emit(f->object, state == f->told_state ? NULL : state);
        f->told_state = state;
        f->told_pods = pods;
        f->told_deadline_usec = deadline;
}

void agent_face_changed(AgentFace *f) {
        if (f->object)
                timer_arm_earlier(f->timer, 0);
}

int agent_face_new(Env *env, const Reflex *reflex, const Reboot *reboot, const AgentFaceHandler *h,
                   AgentFace **ret) {
        _cleanup_(agent_face_freep) AgentFace *f = NULL;
        int r;

        assert(env && reflex && reboot && h && h->on_drain && h->on_cancel && h->on_reboot && ret);
        f = new0(AgentFace, 1);
        if (!f)
                return -ENOMEM;
        f->env = env;
        f->reflex = reflex;
        f->reboot = reboot;
        f->told_state = reflex_state_to_string(REFLEX_IDLE);
        f->handler = *h;
        r = timer_new(env->loop, "agent-face", on_timer, f, &f->timer);
        if (r < 0)
                return r;
        if (env->bus) {
                r = env->bus->ops->publish(env->bus, &object, f, &f->object);
                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        log_warning_errno(env->log, r,
                                          "Failed to be on D-Bus as " AGENT_BUS_NAME
                                          ", going on without: %m");
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
