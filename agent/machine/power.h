/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * power.c: what the machine says about its own end, by logind and PID 1; and our delay inhibitor.
 *
 * The machine ENDS when logind is preparing for a shutdown (the window in which delay inhibitors hold it up;
 * SystemState still says "running" then) or when PID 1 is "stopping" (the ordered stop; all that there is
 * when the shutdown went past logind: `systemctl start poweroff.target`, signals to PID 1, Ctrl-Alt-Del). A
 * stop of our unit alone is neither. It STAYS only as both have said so, or PID 1 where there is no logind: one
 * that is there and does not answer in time says nothing, changes nothing, and is asked again.
 *
 * The inhibitor's descriptor lies in the service manager's store, too (env.h), so that no instant of a
 * crash, a restart or an upgrade is without it. Its copies are all dropped to let the shutdown go on.
 *
 * Measured on systemd 252; org.freedesktop.login1(5), org.freedesktop.systemd1(5), systemd.service(5).
 */

#include "env.h"
#include "wakeup.h"

typedef enum PowerState {
        POWER_UNKNOWN, /* not both have answered yet */
        POWER_STAYS,
        POWER_ENDS,
        _POWER_STATE_MAX,
} PowerState;

/* What there is of time for whoever delays a shutdown. */
typedef struct PowerLimits {
        usec_t inhibit_delay_usec; /* logind's InhibitDelayMaxUSec; 0: there is no logind */
        usec_t job_timeout_usec;   /* of poweroff.target and reboot.target, the shorter; then PID 1 ends by
                                      force */
        bool stop_extendable;      /* our own stop in the ordered stop may be extended */
} PowerLimits;

typedef struct PowerBudget {
        usec_t total_usec;  /* so long may a shutdown be delayed by us, from its beginning */
        bool too_short;     /* the machine gives less than was asked for */
        const char *remedy; /* static, a sentence; NULL unless too_short */
} PowerBudget;

/* Pure. announced: logind announced it, so its delay comes before the ordered stop. max_usec: what is asked
 * for. */
PowerBudget power_budget(const PowerLimits *l, bool announced, usec_t max_usec);

typedef struct Power Power;

typedef struct PowerHandler {
        /* A look is over: also one that brought nothing new. */
        void (*on_state)(Power *p, PowerState s, void *userdata);
        /* Limits are known, and whether the kubelet inhibits shutdowns too (its own graceful node shutdown).
         */
        void (*on_limits)(Power *p, const PowerLimits *l, bool kubelet_inhibits, void *userdata);
        void *userdata;
} PowerHandler;

int power_new(Env *env, const PowerHandler *h, Power **ret);
/* The inhibitor stays in the store. */
Power *power_free(Power *p);
DEFINE_FREEP(Power, power_free);

/* Listens, and looks for the first time. Without a bus: STAYS, and limits of nothing. */
void power_start(Power *p);
/* Asks anew; on_state() follows within some seconds. */
void power_query(Power *p);
/* Whether shutdowns are to be inhibited: taken as soon as it can be, or let go at once. */
void power_hold(Power *p, bool hold);

PowerState power_state(const Power *p);
/* The last look was not: what is said is what was known before. It is asked again some seconds later. */
bool power_is_unanswered(const Power *p);
/* The shutdown under way was announced by logind, and PID 1 is not yet at it. */
bool power_is_announced(const Power *p);
/* What it will be: "poweroff", "reboot", "halt", "kexec", "soft-reboot"; "shutdown" where nobody says. */
const char *power_kind(const Power *p);
bool power_holds(const Power *p);
/* Reports each question without an answer, and an inhibitor that the agent wants and does not hold. */
void power_next_wakeup(const Power *p, Wakeups *w);
