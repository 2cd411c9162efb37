/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include "string-util.h"

/* Of a window that comes too late for the machine: as much as a notice of maintenance has without a window. */
#define WINDOW_BEFORE_USEC USEC_PER_HOUR
#define WINDOW_MIN_USEC USEC_PER_MINUTE
#define LONG_NOTICE_USEC (5 * USEC_PER_MINUTE)

static const char *const verb_table[_POLICY_VERB_MAX] = {
        [POLICY_NOW] = "now",       [POLICY_BEFORE] = "before", [POLICY_WINDOW] = "window",
        [POLICY_CORDON] = "cordon", [POLICY_REPORT] = "report", [POLICY_IGNORE] = "ignore",
};

/* -- the rules ---------------------------------------------------------------------------------- */

static int verb_from_string(const char *text, size_t size) {
        for (int i = 0; i < _POLICY_VERB_MAX; i++)
                if (strlen(verb_table[i]) == size && strncmp(verb_table[i], text, size) == 0)
                        return i;
        return -EINVAL;
}

static int span_parse(const char *text, usec_t *ret_usec, const char **reterr_expected) {
        if (duration_parse(text, ret_usec) >= 0 && *ret_usec > 0 && *ret_usec != USEC_INFINITY)
                return 0;
        *reterr_expected = "a duration such as 30min or 2h behind the colon";
        return -EINVAL;
}

/* The last slash: calendars and zones have some, too. A duration without unit could be the step of a calendar. */
static int window_parse_parts(char *text, PolicyRule *rule, const char **reterr_expected) {
        char *before = strstr(text, " before:"), *slash;
        size_t n;
        int r;

        rule->span_usec = WINDOW_BEFORE_USEC;
        if (before) {
                r = span_parse(before + strlen(" before:"), &rule->span_usec, reterr_expected);
                if (r < 0)
                        return r;
                *before = 0;
        }
        strstrip(text);
        n = strlen(text);
        slash = strrchr(text, '/');
        if (!slash || (text[n - 1] >= '0' && text[n - 1] <= '9') || duration_parse(slash + 1, &rule->window_usec) < 0 ||
            rule->window_usec < WINDOW_MIN_USEC || rule->window_usec == USEC_INFINITY) {
                *reterr_expected = "a calendar and how long the window is open, a minute or more and with its unit, such as window:0 3 * * sun/2h";
                return -EINVAL;
        }
        *slash = 0;
        return calendar_parse_zoned(text, TIME_ZONE_DIRECTORY, &rule->calendar, reterr_expected);
}

static int window_parse(const char *text, PolicyRule *rule, const char **reterr_expected) {
        _cleanup_free_ char *copy = strdup(text);

        return copy ? window_parse_parts(copy, rule, reterr_expected) : -ENOMEM;
}

int policy_rule_parse(const char *text, PolicyRule *ret, const char **reterr_expected) {
        size_t size = strcspn(text, ":");
        const char *behind = text[size] == ':' ? text + size + 1 : NULL;
        PolicyRule rule = { .span_usec = USEC_INFINITY };
        int verb = verb_from_string(text, size), r = 0;

        *reterr_expected = "now, before:DURATION, window:CALENDAR/DURATION, cordon, cordon:DURATION, report or ignore";
        if (verb < 0)
                return -EINVAL;
        rule.verb = (PolicyVerb) verb;
        if (behind && rule.verb != POLICY_BEFORE && rule.verb != POLICY_CORDON && rule.verb != POLICY_WINDOW)
                return -EINVAL;
        if (!behind && (rule.verb == POLICY_BEFORE || rule.verb == POLICY_WINDOW))
                return -EINVAL;
        if (rule.verb == POLICY_WINDOW)
                r = window_parse(behind, &rule, reterr_expected);
        else if (behind)
                r = span_parse(behind, &rule.span_usec, reterr_expected);
        if (r >= 0)
                *ret = rule;
        return r;
}

void policy_rule_done(PolicyRule *rule) {
        calendar_done(&rule->calendar);
}

void policy_settings_done(PolicySettings *settings) {
        for (size_t i = 0; i < _NOTICE_KIND_MAX; i++)
                policy_rule_done(&settings->rules[i]);
        policy_rule_done(&settings->reboot);
}

int policy_reboot_parse(const char *text, PolicyRule *ret, bool *ret_early, const char **reterr_expected) {
        int r;

        *ret_early = streq_ptr(text, "early");
        *reterr_expected = NULL;
        if (*ret_early)
                return 0;
        if (!text)
                return -ENODATA;
        r = policy_rule_parse(text, ret, reterr_expected);
        if (r < 0 && strchr(text, ':') == NULL)
                *reterr_expected = "early, now, before:DURATION, window:CALENDAR/DURATION, cordon, cordon:DURATION, report or ignore";
        return r;
}

/* -- the decision ------------------------------------------------------------------------------- */

static Plan plan_drain(const Notice *n, const PolicySettings *settings, usec_t begin_usec, usec_t now_usec) {
        /* A group that lets go of its machine says not when, and may end it at any moment; its load balancers know. */
        bool any_moment = n->kind == NOTICE_SCALE_IN && n->deadline_usec == USEC_INFINITY;
        usec_t lb_wait = any_moment ? 0 : policy_lb_wait(n->deadline_usec, settings->lb_wait_usec, MAX(begin_usec, now_usec));

        return (Plan){
                .act = PLAN_DRAIN,
                .begin_usec = begin_usec,
                .lb_wait_usec = lb_wait,
                .why = begin_usec > now_usec ? "its time has not come"
                       : lb_wait > 0         ? "there is time for load balancers to let go"
                                             : "time is short",
        };
}

/* Boot-time clock; 0: one is open. Windows are of the wall clock, which this one follows when it is set. */
static usec_t window_begin(const PolicyRule *rule, usec_t now_usec, usec_t booted_usec) {
        usec_t wall_usec = usec_add(now_usec, booted_usec);

        return calendar_active(&rule->calendar, rule->window_usec, wall_usec)
                       ? 0
                       : usec_sub(calendar_next(&rule->calendar, wall_usec), booted_usec);
}

static Plan plan_by_rule(const Notice *n, const PolicySettings *settings, usec_t now_usec, usec_t booted_usec) {
        bool is_reboot = n->kind == NOTICE_MAINTENANCE && streq_ptr(n->action, "reboot");
        const PolicyRule *rule = is_reboot && settings->has_reboot ? &settings->reboot : &settings->rules[n->kind];
        usec_t latest = usec_sub(n->deadline_usec, rule->span_usec);

        switch (rule->verb) {
        case POLICY_NOW:
                return plan_drain(n, settings, 0, now_usec);
        case POLICY_BEFORE:
                return plan_drain(n, settings, n->deadline_usec == USEC_INFINITY ? 0 : latest, now_usec);
        case POLICY_WINDOW:
                return plan_drain(n, settings, MIN(latest, window_begin(rule, now_usec, booted_usec)), now_usec);
        case POLICY_CORDON:
                return (Plan){ .act = PLAN_CORDON, .span_usec = rule->span_usec, .why = "[Policy] says that its pods stay" };
        case POLICY_REPORT:
                return (Plan){ .act = PLAN_REPORT, .why = "[Policy] says that this kind of notice is only reported" };
        case POLICY_IGNORE:
                return (Plan){ .act = PLAN_IGNORE, .why = "[Policy] says that this kind of notice is ignored" };
        case _POLICY_VERB_MAX:
                break;
        }
        assert(false && "a rule without a verb");
        return (Plan){ .act = PLAN_REPORT, .why = "it has no rule" };
}

Plan policy_decide(const Notice *n, const PolicySettings *settings, usec_t now_usec, usec_t booted_usec) {
        assert(n && settings);
        if (n->kind == NOTICE_REBALANCE)
                return plan_by_rule(n, settings, now_usec, booted_usec);
        if (n->certainty == NOTICE_ADVISORY)
                return (Plan){ .act = PLAN_REPORT, .why = "it is a recommendation" };
        if (n->kind < 0 || n->kind >= _NOTICE_KIND_MAX)
                return (Plan){ .act = PLAN_REPORT, .why = "its kind is not known" };
        if (n->kind == NOTICE_SHUTDOWN)
                return (Plan){ .act = PLAN_DRAIN, .why = "the machine waits for it" };
        if (n->kind == NOTICE_MANUAL)
                return plan_drain(n, settings, 0, now_usec);
        return plan_by_rule(n, settings, now_usec, booted_usec);
}

Plan policy_plan_early(const Notice *n, const PolicySettings *settings, usec_t now_usec) {
        return plan_drain(n, settings, 0, now_usec);
}

usec_t policy_lb_wait(usec_t deadline_usec, usec_t lb_wait_usec, usec_t now_usec) {
        return usec_sub(deadline_usec, now_usec) >= LONG_NOTICE_USEC ? lb_wait_usec : 0;
}

usec_t policy_drain_deadline(const Notice *n, usec_t claim_deadline_usec, usec_t booted_usec) {
        usec_t deadline = n->deadline_usec;

        /* Both by clocks that are not ours: if T is no earlier than what was announced, the notice says it all. */
        if (claim_deadline_usec > 0 && claim_deadline_usec < notice_announced(n))
                deadline = MIN(deadline, usec_sub(claim_deadline_usec, booted_usec));
        return usec_sub(deadline, POLICY_MARGIN_USEC);
}
