/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * policy.c: what to do about which notice. Pure: a notice and the configuration in, a plan out. [Policy] has a rule for
 * each kind that a machine or its cloud announces (agent.conf(5)):
 *
 *      now               cordoned and drained at once, against the deadline
 *      before:DURATION   ... so long before the machine may be gone; at once where that is not said
 *      window:CALENDAR/DURATION
 *                        ... in the first window that comes, as CALENDAR (calendar.h, with a zone behind it) and DURATION say:
 *                        at once if one is open. At the latest an hour before the machine may be gone, for a window may come too
 *                        late, or never; "before:DURATION" behind it says another time
 *      cordon            no new pod comes; what is there stays, until the notice is over
 *      cordon:DURATION   ... or so long
 *      report            a log line and an Event
 *      ignore            neither
 *
 * Of maintenance that is a reboot, Reboot= may say another of these, or
 *
 *      early             as Maintenance= says; and before that, as soon as the coordinator grants a slot, where that ends what
 *                        was announced (early-rule.h)
 *
 * A shutdown is drained at once, for somebody waits for the machine, and what people on this machine ask for as well: no
 * rule is asked. What is only advice is reported, but for rebalance recommendations, which have a rule. What leaves 5 minutes
 * or more waits [Drain] LoadBalancerWaitSec= between the cordon and the first eviction; not a scale-in without a time.
 */

#include "calendar.h"
#include "notice.h"

/* Kept of the time for the deletes at the end and for the last report. */
#define POLICY_MARGIN_USEC (2 * USEC_PER_SEC)

typedef enum PolicyVerb {
        POLICY_NOW,
        POLICY_BEFORE,
        POLICY_WINDOW,
        POLICY_CORDON,
        POLICY_REPORT,
        POLICY_IGNORE,
        _POLICY_VERB_MAX,
} PolicyVerb;

typedef struct PolicyRule {
        PolicyVerb verb;
        usec_t span_usec;   /* BEFORE, WINDOW: how long before the end at the latest; CORDON: USEC_INFINITY until the notice is over */
        usec_t window_usec; /* WINDOW: how long one is open */
        Calendar calendar;  /* WINDOW: when one opens; owned */
} PolicyRule;

/* Reads the file of a zone. 0; -EINVAL: *reterr_expected (static) says what would be a rule; -ENOMEM. */
int policy_rule_parse(const char *text, PolicyRule *ret, const char **reterr_expected);
void policy_rule_done(PolicyRule *rule);

/* The same of Reboot=; *ret_early: it is "early", which says nothing else. text NULL: -ENODATA. */
int policy_reboot_parse(const char *text, PolicyRule *ret, bool *ret_early, const char **reterr_expected);

typedef struct PolicySettings {
        usec_t lb_wait_usec;
        PolicyRule rules[_NOTICE_KIND_MAX];
        PolicyRule reboot; /* in place of rules[NOTICE_MAINTENANCE] where that is a reboot */
        bool has_reboot;   /* there is such a rule */
        bool early;        /* announced reboots are taken early */
} PolicySettings;

void policy_settings_done(PolicySettings *settings);

typedef enum PlanAct {
        PLAN_IGNORE,
        PLAN_REPORT, /* an Event and nothing else */
        PLAN_CORDON,
        PLAN_DRAIN,
} PlanAct;

typedef struct Plan {
        PlanAct act;
        usec_t begin_usec;   /* CORDON, DRAIN: boot-time clock; now or earlier: at once */
        usec_t span_usec;    /* CORDON: how long from its beginning; USEC_INFINITY: until the notice is over */
        usec_t lb_wait_usec; /* DRAIN: between cordon and first eviction */
        const char *why;     /* static, for people */
} Plan;

/* now_usec: boot-time clock. booted_usec: what the wall clock, as it is, said at the zero of that clock. */
Plan policy_decide(const Notice *n, const PolicySettings *settings, usec_t now_usec, usec_t booted_usec);
/* A reboot for which a slot was granted before its time: drained now, whatever its rule. */
Plan policy_plan_early(const Notice *n, const PolicySettings *settings, usec_t now_usec);
/* How long load balancers get if the node must be empty by then. */
usec_t policy_lb_wait(usec_t deadline_usec, usec_t lb_wait_usec, usec_t now_usec);

/* When the drain has to be over (boot-time clock): what was announced, or the coordinator's T (wall clock; 0: none)
 * if that is earlier than what was announced, less what the last calls need. USEC_INFINITY: never. */
usec_t policy_drain_deadline(const Notice *n, usec_t claim_deadline_usec, usec_t booted_usec);
