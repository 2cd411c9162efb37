/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-check-internal.h"

#include "sim-process.h"
#include "wakeup.h"

/* Checks that each unfinished thing of a daemon has something that wakes it, by the daemon's own report
 * (wakeup.h). So a missing wake-up is found at once, also in worlds that never wait for its result. */

#define ASK_USEC USEC_PER_SEC

typedef struct Asked {
        SimCheck *check;
        const SimProcess *process;
} Asked;

static void on_asleep(const char *text, void *userdata) {
        const Asked *a = userdata;

        sim_check_broken(a->check, "asleep", "%s: %s", a->process->name, text);
}

static bool may_be_asked(const SimProcess *p) {
        usec_t now = sim_world_now(p->world);

        return p->life && !p->life->dying && (p->life->agent || p->life->coordinator) &&
                now >= p->life->paused_until_usec &&
               now >= usec_add(p->asked_usec, ASK_USEC);
}

/* Called after a step of the process: no callback of the process is running. */
void sim_check_asleep(SimCheck *c, SimProcess *p) {
        Asked asked = { c, p };
        Wakeups w;

        if (!may_be_asked(p))
                return;
        p->asked_usec = sim_world_now(c->world);
        wakeups_begin(&w, p->life->loop, on_asleep, &asked);
        if (p->life->coordinator)
                coordinator_next_wakeup(p->life->coordinator, &w);
        else
                agent_next_wakeup(p->life->agent, &w);
        wakeups_end(&w);
}
