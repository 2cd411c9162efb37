/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include "parse-util.h"
#include "string-util.h"

#define LOOK_USEC (30 * USEC_PER_SEC)
#define ANSWER_USEC (2 * USEC_PER_SEC)

struct Schedule {
        Env *env;
        schedule_changed_t fn;
        void *userdata;
        BusSlot *slot;
        Timer *timer;
        const char *kind;
        usec_t at_usec;
};

/* "dry-reboot" and its like end nothing. */
static const char *kind_of(const char *type) {
        static const struct {
                const char *type, *kind;
        } kinds[] = {
                { "reboot", "reboot" },
                { "kexec", "reboot" },
                { "poweroff", "poweroff" },
                { "halt", "poweroff" },
        };

        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (streq_ptr(type, kinds[i].type))
                        return kinds[i].kind;
        return NULL;
}

/* (st): what, and when. An answer that cannot be had changes nothing. */
static void on_reply(const BusReply *reply, void *userdata) {
        Schedule *s = userdata;
        const char *kind = NULL;
        uint64_t at = 0;

        s->slot = bus_slot_free(s->slot);
        timer_arm_in(s->timer, LOOK_USEC);
        if (reply->error < 0 || !reply->values || !reply->values[0])
                return;
        if (reply->values[1] && parse_uint64(reply->values[1], &at) >= 0 && at > 0 && at != USEC_INFINITY)
                kind = kind_of(reply->values[0]);
        if (!kind)
                at = 0;
        if (kind == s->kind && at == s->at_usec)
                return;
        s->kind = kind;
        s->at_usec = at;
        s->fn(kind, at, s->userdata);
}

static void schedule_on_timer(Timer *t, void *userdata) {
        static const char *const args[] = { "org.freedesktop.login1.Manager", "ScheduledShutdown" };
        static const BusCall call = { "org.freedesktop.login1",
                                      "/org/freedesktop/login1",
                                      "org.freedesktop.DBus.Properties",
                                      "Get",
                                      "ss",
                                      args,
                                      ANSWER_USEC };
        Schedule *s = userdata;

        if (s->env->bus->ops->call(s->env->bus, &call, on_reply, s, &s->slot) < 0)
                timer_arm_in(s->timer, LOOK_USEC);
}

int schedule_new(Env *env, schedule_changed_t fn, void *userdata, Schedule **ret) {
        _cleanup_(schedule_freep) Schedule *s = NULL;
        int r;

        assert(env && fn && ret);
        s = new0(Schedule, 1);
        if (!s)
                return -ENOMEM;
        s->env = env;
        s->fn = fn;
        s->userdata = userdata;
        r = timer_new(env->loop, "schedule", schedule_on_timer, s, &s->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

Schedule *schedule_free(Schedule *s) {
        if (!s)
                return NULL;
        bus_slot_free(s->slot);
        timer_free(s->timer);
        return mfree(s);
}

void schedule_start(Schedule *s) {
        if (s->env->bus)
                timer_arm_in(s->timer, 0);
}

void schedule_next_wakeup(const Schedule *s, Wakeups *w) {
        if (!s->env->bus) /* without a system bus nothing is polled */
                return;
        wakeups_unfinished(w, "poll of", "logind's schedule", "", SCHEDULE_WAKEUP_USEC);
        wakeups_timer(w, s->timer);
        wakeups_await(w, s->slot);
}
