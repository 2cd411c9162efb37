/* SPDX-License-Identifier: Apache-2.0 */
#include "notices.h"

#include "agent-metrics.h"
#include "log.h"
#include "node-marks.h"
#include "notice-sources.h"
#include "policy.h"
#include "string-util.h"

/* At the start, and once more when the Node is known. */
#define SOURCES_MAX (2 * NOTICE_SOURCES_MAX)
#define FEEDS_MAX 24u
#define STANDING_MAX 128u
#define SOURCE_FAILING_LOOKS 3u
/* A watch that is late brings its news by then. */
#define MARKS_BACK_USEC (5 * USEC_PER_SEC)
#define FOREIGN_AGAIN_USEC USEC_PER_HOUR

typedef struct Feed {
        NoticeSource *source;
        const char *name;
        unsigned unknown_polls; /* in a row */
} Feed;

/* A notice that the last answer of its feed has shown. */
typedef struct Standing {
        Notice *notice;
        Feed *feed;
        usec_t answered_usec; /* of the look that showed it first */
        bool shown;           /* by the look that is taken in now */
        bool spoken;          /* that it is not acted upon, or not yet, has been said */
        bool counted;         /* the metric counts it */
        bool over;            /* the time for which [Policy] cordons has passed: it is only drained for */
} Standing;

struct Notices {
        NoticesContext c;
        PolicySettings policy; /* as the configuration has it */
        NoticeSource *sources[SOURCES_MAX];
        size_t n_sources;
        Feed feeds[FEEDS_MAX];
        size_t n_feeds;
        Standing *standing; /* STANDING_MAX, oldest first */
        size_t n_standing;
        Timer *timer;
        bool settled;
        char *provider_id;           /* of the Node; NULL: not known yet */
        const NoticeSource *foreign; /* it answers for another machine, as has been said; NULL: none does */
        usec_t foreign_said_usec;    /* that, the last time */
        bool id_said;                /* that the providerID is another machine's */
        char *early; /* id of the one that is taken before its time; NULL: none is */
        bool early_is_held;
        usec_t marks_back_usec; /* since when marks of an overruled notice stand on the Node; 0: they do not */
};

/* -- what was dealt with before ------------------------------------------------------------------ */

/* Why a notice that was dealt with before is left alone; NULL: it is new. */
static const char *dealt_with(const Notices *n, const Notice *notice) {
        const Intent *known = intent_log_find(n->c.intents, notice->id);
        const KubeNode *node = reflex_node(n->c.reflex);

        if (!known)
                return NULL;
        switch (known->phase) {
        case INTENT_RELEASED:
                return "somebody made the node schedulable again while it was acted upon";
        case INTENT_DRAINED:
                if (node && known->since_usec > 0 && node->object.meta.creation_usec > known->since_usec)
                        return NULL; /* the Node was made anew since: open, and with new pods */
                return "the node was drained for it, and its marks were removed since";
        case INTENT_CORDONED:
        case INTENT_DRAINING:
        case INTENT_OVER: /* only cordons: is_over() */
        case _INTENT_PHASE_MAX:
        case _INTENT_PHASE_INVALID:
                break;
        }
        return NULL;
}

static bool is_in_force(const Notices *n, const Notice *notice) {
        const Notice *now = reflex_notice_now(n->c.reflex);

        return now && streq(now->id, notice->id);
}

/* It was dealt with before, and what is acted upon now is not it. */
static bool is_overruled(const Notices *n, const Notice *notice) {
        return reflex_notice_now(n->c.reflex) && !is_in_force(n, notice) && notice->kind != NOTICE_SHUTDOWN &&
               dealt_with(n, notice);
}

/* -- the plan ----------------------------------------------------------------------------------- */

static Plan plan_for(const Notices *n, const Notice *notice) {
        usec_t now_usec = loop_now(n->c.env->loop);

        if (n->early && streq(n->early, notice->id))
                return policy_plan_early(notice, &n->policy, now_usec);
        return policy_decide(notice, &n->policy, now_usec, loop_to_wall(n->c.env->loop, 0));
}

void notices_reconfigured(Notices *n) {
        PolicySettings settings;
        int r;

        r = agent_config_policy(n->c.config, &settings);
        if (r < 0) {
                log_error_errno(n->c.env->log, r, "Failed to take over [Policy] anew, what it said before stays in force until the next reload: %m");
                return;
        }
        policy_settings_done(&n->policy);
        n->policy = settings;
}

static bool is_due(const Notices *n, const Plan *plan) {
        return plan->begin_usec <= loop_now(n->c.env->loop);
}

bool notices_only_cordon(const Notices *n, const Notice *notice) {
        return plan_for(n, notice).act == PLAN_CORDON;
}

/* When the time for which the node is only cordoned is over. Of the notice in force the reflex knows since when: its feed may
 * have left it out in between, or an agent before this one have begun. */
static usec_t cordon_end(const Notices *n, const Standing *s, const Plan *plan) {
        usec_t since = is_in_force(n, s->notice) ? reflex_only_cordoned_since(n->c.reflex) : USEC_INFINITY;

        return plan->act == PLAN_CORDON ? usec_add(MIN(since, s->answered_usec), plan->span_usec) : USEC_INFINITY;
}

/* The same of a notice in force that its feed does not show any more, though that takes nothing back (of a spot notice).
 * USEC_INFINITY: there is none such, or it is cordoned until it is over. */
static usec_t unseen_cordon_end(const Notices *n) {
        usec_t since = reflex_only_cordoned_since(n->c.reflex);
        Plan plan;

        if (since == USEC_INFINITY || notices_is_standing(n, reflex_notice_now(n->c.reflex)->id))
                return USEC_INFINITY;
        plan = plan_for(n, reflex_notice_now(n->c.reflex));
        return plan.act == PLAN_CORDON ? usec_add(since, plan.span_usec) : USEC_INFINITY;
}

/* Returns true if *done was not set, and sets it. NULL: always true. */
static bool is_first(bool *done) {
        if (done && *done)
                return false;
        if (done)
                *done = true;
        return true;
}

/* s: NULL if no feed shows the notice. */
static void count(Notices *n, const Notice *notice, Standing *s) {
        if (is_first(s ? &s->counted : NULL))
                metrics_add(n->c.metrics, AGENT_METRIC_NOTICES, (size_t) notice->kind, 1);
}

static bool is_over(const Standing *s, const Plan *plan) {
        return s->over && plan->act == PLAN_CORDON;
}

/* -- acting ------------------------------------------------------------------------------------- */

static int begin(Notices *n, const Notice *notice, usec_t answered_usec, Standing *s) {
        Plan plan = plan_for(n, notice);
        int r;

        r = reflex_begin(n->c.reflex, notice, &plan, answered_usec);
        if (r < 0)
                return r;
        n->c.on_begun(n->c.userdata);
        count(n, notice, s);
        return 0;
}

int notices_begin(Notices *n, const Notice *notice, usec_t answered_usec) {
        return begin(n, notice, answered_usec, NULL);
}

/* s: NULL if no feed shows the notice. Then each call is logged and counted. */
static void act(Notices *n, const Notice *notice, const Plan *plan, usec_t answered_usec, Standing *s) {
        bool *spoken = s ? &s->spoken : NULL;
        const char *why;
        int r;

        if (n->c.config->dry_run) {
                if (is_first(spoken)) {
                        count(n, notice, s);
                        node_voice_notice_only(n->c.voice, notice, plan->act == PLAN_DRAIN
                                ? "this is a dry run (DryRun=yes); the node would be cordoned and drained now"
                                : "this is a dry run (DryRun=yes); the node would be cordoned now");
                }
                return;
        }
        if (reflex_state(n->c.reflex) != REFLEX_IDLE) {
                if (!is_overruled(n, notice) && reflex_notice(n->c.reflex, notice, plan))
                        count(n, notice, s);
                return;
        }
        why = dealt_with(n, notice);
        if (why) {
                if (is_first(spoken))
                        node_voice_notice_ignored(n->c.voice, notice, why);
                return;
        }
        r = begin(n, notice, answered_usec, s);
        if (r < 0)
                log_error_errno(n->c.env->log, r, "Failed to act upon notice %s, retrying at the next look: %m", notice->id);
}

void notices_act(Notices *n, const Notice *notice, usec_t answered_usec) {
        Plan plan = plan_for(n, notice);

        act(n, notice, &plan, answered_usec, NULL);
}

/* First in the intent log, then on the Node: neither a crash in between nor an agent that is started later cordons again. */
static void end_cordon(Notices *n, const Notice *notice) {
        intent_log_note(n->c.intents, notice, INTENT_OVER, 0);
        if (is_in_force(n, notice))
                reflex_cancel(n->c.reflex, "the time for which [Policy] cordons the node has passed");
}

/* What the policy makes of it now. */
static void consider(Notices *n, Standing *s) {
        Plan plan = plan_for(n, s->notice);

        if (is_over(s, &plan) || plan.act == PLAN_IGNORE)
                return;
        if (plan.act == PLAN_REPORT) {
                if (is_first(&s->spoken)) {
                        count(n, s->notice, s);
                        node_voice_notice_only(n->c.voice, s->notice, plan.why);
                }
                return;
        }
        if (loop_now(n->c.env->loop) >= cordon_end(n, s, &plan)) {
                s->over = true;
                end_cordon(n, s->notice);
                return;
        }
        if (is_due(n, &plan)) {
                act(n, s->notice, &plan, s->answered_usec, s);
                return;
        }
        /* Its time moved away, or it was taken over by a graver one that is gone: what is begun goes on. */
        if (is_in_force(n, s->notice))
                (void) reflex_notice(n->c.reflex, s->notice, &plan);
        else if (is_first(&s->spoken)) {
                count(n, s->notice, s);
                node_voice_notice_planned(n->c.voice, s->notice, loop_to_wall(n->c.env->loop, plan.begin_usec),
                                          n->c.may_take_early(s->notice, n->c.userdata));
        }
}

/* Returns the next time at which a setting of [Policy] requires an action; USEC_INFINITY: none. */
static usec_t next_plan_usec(const Notices *n) {
        usec_t now = loop_now(n->c.env->loop), next = unseen_cordon_end(n);

        for (size_t i = 0; i < n->n_standing; i++) {
                const Standing *s = &n->standing[i];
                Plan plan = plan_for(n, s->notice);
                usec_t end = cordon_end(n, s, &plan);

                if (is_over(s, &plan) || plan.act < PLAN_CORDON)
                        continue;
                if (plan.begin_usec > now)
                        next = MIN(next, plan.begin_usec);
                if (end > now)
                        next = MIN(next, end);
        }
        return next;
}

static void plan_timer(Notices *n) {
        timer_arm(n->timer, next_plan_usec(n)); /* USEC_INFINITY disarms it */
}

static void consider_all(Notices *n) {
        if (!n->settled)
                return;
        for (size_t i = 0; i < n->n_standing; i++)
                consider(n, &n->standing[i]);
        if (loop_now(n->c.env->loop) >= unseen_cordon_end(n))
                end_cordon(n, reflex_notice_now(n->c.reflex));
        plan_timer(n);
        n->c.on_planned(n->c.userdata);
}

static void on_timer(Timer *t, void *userdata) {
        consider_all(userdata);
}

void notices_wake(Notices *n) {
        if (n->settled && n->n_standing > 0)
                timer_arm(n->timer, loop_now(n->c.env->loop));
}

const Notice *notices_stand(const Notices *n) {
        const Notice *found = NULL;

        for (size_t i = 0; i < n->n_standing; i++) {
                const Standing *s = &n->standing[i];
                Plan plan = plan_for(n, s->notice);

                if (plan.act == PLAN_DRAIN && is_due(n, &plan) && !n->c.config->dry_run && !is_in_force(n, s->notice) &&
                    !dealt_with(n, s->notice) && (!found || notice_outranks(s->notice, found)))
                        found = s->notice;
        }
        return found;
}

const Notice *notices_planned(const Notices *n, usec_t *ret_begin_usec) {
        const Notice *found = NULL;

        *ret_begin_usec = USEC_INFINITY;
        for (size_t i = 0; i < n->n_standing; i++) {
                const Standing *s = &n->standing[i];
                Plan plan = plan_for(n, s->notice);

                if (plan.act < PLAN_CORDON || is_over(s, &plan) || is_due(n, &plan) || plan.begin_usec >= *ret_begin_usec)
                        continue;
                *ret_begin_usec = plan.begin_usec;
                found = s->notice;
        }
        return found;
}

/* -- taken early -------------------------------------------------------------------------------- */

static const Standing *find_id(const Notices *n, const char *id) {
        for (size_t i = 0; i < n->n_standing; i++)
                if (streq(n->standing[i].notice->id, id))
                        return &n->standing[i];
        return NULL;
}

bool notices_takes_early(const Notices *n) {
        return n->policy.early;
}

const Notice *notices_standing(const Notices *n, const char *id) {
        const Standing *s = find_id(n, id);

        return s ? s->notice : NULL;
}

bool notices_is_standing(const Notices *n, const char *id) {
        return find_id(n, id) != NULL;
}

bool notices_is_due(const Notices *n, const char *id) {
        const Standing *s = find_id(n, id);
        Plan plan;

        if (!s)
                return false;
        plan = policy_decide(s->notice, &n->policy, loop_now(n->c.env->loop),
                             loop_to_wall(n->c.env->loop, 0));
        return plan.act >= PLAN_CORDON && !is_over(s, &plan) && is_due(n, &plan);
}

const Notice *notices_find_early(const Notices *n, notices_may_t may, void *userdata) {
        for (size_t i = 0; i < n->n_standing; i++)
                if (n->standing[i].notice->early != NOTICE_EARLY_NEVER && may(n->standing[i].notice, userdata))
                        return n->standing[i].notice;
        return NULL;
}

int notices_set_early(Notices *n, const char *id, const char *why) {
        _cleanup_free_ char *before = NULL;
        const Notice *now = reflex_notice_now(n->c.reflex);

        if (streq_ptr(n->early, id))
                return 0;
        if (!id) {
                before = TAKE_PTR(n->early);
                n->early_is_held = false;
                if (now && streq(now->id, before) && !notices_is_due(n, before))
                        reflex_cancel(n->c.reflex, why);
                return 0;
        }
        if (free_and_strdup(&n->early, id) < 0)
                return -ENOMEM;
        consider_all(n);
        return 0;
}

void notices_hold_early(Notices *n, bool held) {
        n->early_is_held = held;
}

int notices_acknowledge(Notices *n, const char *id, notice_acknowledged_t done, void *userdata) {
        const Standing *s = find_id(n, id);
        NoticeSource *source = s ? s->feed->source : NULL;

        if (!source)
                return -ENOENT;
        return source->ops->acknowledge ? source->ops->acknowledge(source, id, done, userdata) : -EOPNOTSUPP;
}

/* -- what a look says --------------------------------------------------------------------------- */

static void stand_down(Notices *n, size_t i) {
        notice_free(n->standing[i].notice);
        memmove(&n->standing[i], &n->standing[i + 1], (n->n_standing - i - 1) * sizeof(Standing));
        n->n_standing--;
}

static Standing *find_standing(Notices *n, const Feed *feed, const char *id) {
        for (size_t i = 0; i < n->n_standing; i++)
                if (n->standing[i].feed == feed && streq(n->standing[i].notice->id, id))
                        return &n->standing[i];
        return NULL;
}

static int stand_up(Notices *n, Feed *feed, const Notice *notice, usec_t answered_usec) {
        const Intent *known = intent_log_find(n->c.intents, notice->id);
        Standing s = { .feed = feed,
                       .answered_usec = answered_usec,
                       .shown = true,
                       .over = known && known->phase == INTENT_OVER };
        int r;

        if (n->n_standing == STANDING_MAX)
                return -E2BIG;
        r = notice_copy(notice, &s.notice);
        if (r >= 0)
                n->standing[n->n_standing++] = s;
        return r;
}

/* The newest word of its feed holds: a time that is moved away is another time. What has been begun keeps the nearest
 * (reflex_notice()). */
static int take_again(Standing *s, const Notice *notice) {
        Notice *copy;
        int r;

        s->shown = true;
        r = notice_copy(notice, &copy);
        if (r < 0)
                return r;
        notice_free(s->notice);
        s->notice = copy;
        return 0;
}

static void take_in(Notices *n, Feed *feed, const NoticeLook *look) {
        for (size_t i = 0; i < n->n_standing; i++)
                n->standing[i].shown = false;
        for (size_t i = 0; i < look->n_notices; i++) {
                Standing *known = find_standing(n, feed, look->notices[i]->id);
                int r = known ? take_again(known, look->notices[i])
                              : stand_up(n, feed, look->notices[i], look->answered_usec);

                if (r < 0)
                        log_warning_errno(n->c.env->log, r, "Failed to take in notice %s of %s, retrying at the next look: %m",
                                          look->notices[i]->id, feed->source->ops->name);
        }
        for (size_t i = n->n_standing; i-- > 0;)
                if (n->standing[i].feed == feed && !n->standing[i].shown)
                        stand_down(n, i);
}

static bool is_withdrawn(const Notices *n, const Feed *feed, const Notice *notice) {
        if (!notice_source_announces(feed->source, feed->name, notice))
                return false;
        for (size_t i = 0; i < n->n_standing; i++)
                if (streq(n->standing[i].notice->id, notice->id))
                        return false;
        return notice_source_may_cancel(feed->source, notice, loop_now(n->c.env->loop));
}

typedef struct OverOf {
        const Notices *n;
        const Feed *feed;
} OverOf;

static bool intent_is_over(const Intent *i, void *userdata) {
        const OverOf *o = userdata;

        return is_withdrawn(o->n, o->feed, i->notice);
}

/* What a person overruled stands on the Node until it is over. */
static bool intent_is_overruled(const Intent *i, void *userdata) {
        const Notices *n = userdata;

        return i->phase == INTENT_RELEASED &&
               node_is_overruled(reflex_node(n->c.reflex), i->notice->id, n->c.env->boot_id);
}

/* The feed has answered, and does not show everything that was acted upon. */
static void withdraw(Notices *n, const Feed *feed) {
        const Notice *now = reflex_notice_now(n->c.reflex);
        const KubeNode *node = reflex_node(n->c.reflex);
        OverOf of = { n, feed };
        const Intent *i;

        if (now && is_withdrawn(n, feed, now) && !(n->early_is_held && streq_ptr(n->early, now->id)))
                reflex_cancel(n->c.reflex, "it is not announced any more, and the machine lives");
        if (reflex_state(n->c.reflex) != REFLEX_IDLE)
                return;
        /* The same id would now be another occurrence. */
        i = intent_log_find_if(n->c.intents, intent_is_over, &of);
        if (i)
                intent_log_forget(n->c.intents, i->notice->id);
        if (node && node_has_marks_to_undo(node) && n->n_standing == 0 && n->c.may_clean(n->c.userdata) &&
            !intent_log_find_if(n->c.intents, intent_is_overruled, n))
                reflex_clean(n->c.reflex, false, "nothing is announced that they could be of");
}

static bool intent_is_marked_anew(const Intent *i, void *userdata) {
        const Notices *n = userdata;

        return i->phase == INTENT_RELEASED &&
               node_is_marked_with(reflex_node(n->c.reflex), i->notice->id, n->c.env->boot_id);
}

/* The marks of a notice are on the Node, though a person overruled it and they were taken off: the view is late, or an
 * etcd was restored that had them. */
static void watch_overruled_marks(Notices *n) {
        usec_t now = loop_now(n->c.env->loop);

        if (!n->settled || reflex_state(n->c.reflex) != REFLEX_IDLE || !reflex_node(n->c.reflex) ||
            !n->c.may_clean(n->c.userdata) || !intent_log_find_if(n->c.intents, intent_is_marked_anew, n)) {
                n->marks_back_usec = 0;
                return;
        }
        if (n->marks_back_usec == 0)
                n->marks_back_usec = now;
        if (now < usec_add(n->marks_back_usec, MARKS_BACK_USEC))
                return;
        n->marks_back_usec = 0;
        reflex_clean(n->c.reflex, true, "somebody made the node schedulable again, and they were put back since");
}

static void count_look(Notices *n, Feed *feed, const NoticeLook *look) {
        const char *source = feed->source->ops->name;

        metrics_add(n->c.metrics, AGENT_METRIC_POLLS, (size_t) look->result, 1);
        if (look->result == NOTICE_POLL_UNKNOWN) {
                log_debug(n->c.env->log, "Source %s, %s: unknown: %s", source, feed->name, look->why);
                if (++feed->unknown_polls == SOURCE_FAILING_LOOKS)
                        node_voice_source_failing(n->c.voice, source, look->why, feed->unknown_polls);
                return;
        }
        if (feed->unknown_polls >= SOURCE_FAILING_LOOKS)
                node_voice_source_back(n->c.voice, source);
        feed->unknown_polls = 0;
}

static Feed *feed_of(Notices *n, NoticeSource *s, const char *name) {
        for (size_t i = 0; i < n->n_feeds; i++)
                if (n->feeds[i].source == s && streq(n->feeds[i].name, name))
                        return &n->feeds[i];
        assert(n->n_feeds < FEEDS_MAX);
        n->feeds[n->n_feeds] = (Feed){ .source = s, .name = name };
        return &n->feeds[n->n_feeds++];
}

/* -- whose metadata it is ------------------------------------------------------------------------ */

static void say_foreign(Notices *n, const NoticeSource *s, const char *name) {
        usec_t now = loop_now(n->c.env->loop);

        if (n->foreign == s && now < usec_add(n->foreign_said_usec, FOREIGN_AGAIN_USEC))
                return;
        n->foreign = s;
        n->foreign_said_usec = now;
        node_voice_foreign_metadata(n->c.voice, s->ops->name, name, n->provider_id);
}

/* Said when it begins, again while it lasts, and when it is over. */
static bool is_foreign(Notices *n, NoticeSource *s) {
        const char *name;
        NoticeIdentity identity = notice_source_identity(s, n->provider_id, &name);

        if (identity == NOTICE_IDENTITY_OTHER) {
                say_foreign(n, s, name);
                notice_source_ask_identity(s);
        } else if (identity != NOTICE_IDENTITY_UNKNOWN && n->foreign == s) {
                n->foreign = NULL;
                node_voice_source_back(n->c.voice, s->ops->name);
        }
        if (identity == NOTICE_IDENTITY_FIRMWARE && is_first(&n->id_said))
                node_voice_foreign_provider_id(n->c.voice, name, n->provider_id);
        return identity == NOTICE_IDENTITY_OTHER;
}

static void cancel_foreign(Notices *n) {
        const Notice *now = reflex_notice_now(n->c.reflex);

        if (!(n->early_is_held && now && streq_ptr(n->early, now->id)))
                reflex_cancel(n->c.reflex, "it was announced by the metadata of another machine");
}

/* of_machine: of what stands only that which by its id this metadata has announced: the rest it announced when it was this machine's. */
static void disown(Notices *n, const NoticeSource *s, bool of_machine) {
        bool in_force = false;

        for (size_t i = n->n_standing; i-- > 0;) {
                const Standing *x = &n->standing[i];

                if (x->feed->source == s && (!of_machine || notice_source_is_of_machine(s, x->notice))) {
                        in_force = in_force || is_in_force(n, x->notice);
                        stand_down(n, i);
                }
        }
        if (in_force)
                cancel_foreign(n);
}

/* What an agent before this one has begun does not stand; its id may say that it was begun by this metadata. */
static void disown_resumed(Notices *n, const NoticeSource *s) {
        const Notice *now = reflex_notice_now(n->c.reflex);

        if (now && notice_source_is_of_machine(s, now))
                cancel_foreign(n);
}

void notices_see_provider_id(Notices *n, const char *provider_id) {
        assert(n->settled);
        if (isempty(provider_id) || streq_ptr(n->provider_id, provider_id))
                return;
        if (free_and_strdup(&n->provider_id, provider_id) < 0)
                return; /* with the next change of the Node */
        n->id_said = false;
        for (size_t i = 0; i < n->n_sources; i++)
                if (is_foreign(n, n->sources[i]))
                        disown(n, n->sources[i], false);
        consider_all(n);
}

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        Notices *n = userdata;
        Feed *feed = feed_of(n, s, look->feed);
        bool is_of_other = look->result != NOTICE_POLL_UNKNOWN && is_foreign(n, s);
        size_t before = n->n_standing;

        if (is_of_other) {
                metrics_add(n->c.metrics, AGENT_METRIC_POLLS, NOTICE_POLL_UNKNOWN, 1);
                disown(n, s, true);
                disown_resumed(n, s);
        } else if (look->result != NOTICE_POLL_UNKNOWN) {
                take_in(n, feed, look);
                if (before > 0 || n->n_standing > 0) /* else there is nothing to say, as before */
                        consider_all(n);
                if (n->settled)
                        withdraw(n, feed);
        }
        watch_overruled_marks(n);
        if (!is_of_other)
                count_look(n, feed, look);
        n->c.on_looked(n->c.userdata);
}

/* -- sources ------------------------------------------------------------------------------------ */

static int add_sources(Notices *n, MetadataSource cloud, bool others) {
        const NoticeSourcesOptions options = {
                .env = n->c.env, .config = n->c.config, .cloud = cloud, .others = others, .on_look = on_look, .userdata = n
        };
        size_t before = n->n_sources;
        int r;

        assert(before + NOTICE_SOURCES_MAX <= ELEMENTSOF(n->sources));
        r = notice_sources_make(&options, n->sources + before, &n->n_sources);
        for (size_t i = before; i < n->n_sources; i++)
                n->sources[i]->ops->start(n->sources[i]);
        return r;
}

int notices_start(Notices *n) {
        MetadataSource cloud = metadata_source_known(n->c.config);
        int r;

        r = add_sources(n, cloud, true);
        if (r < 0)
                return r;
        if (cloud != METADATA_SOURCE_NONE && n->c.config->metadata_source == METADATA_SOURCE_AUTO)
                log_info(n->c.env->log, "This is a machine of %s by what its firmware says: its notices are read.",
                         metadata_source_name(cloud));
        return 0;
}

/* The firmware comes first: a providerID is what somebody has told the kubelet. */
static void find_cloud(Notices *n, const char *provider_id) {
        MetadataSource by_dmi = n->c.config->detected_cloud, by_id = metadata_source_of_provider_id(provider_id);
        int r;

        if (n->c.config->metadata_source != METADATA_SOURCE_AUTO)
                return;
        if (by_dmi != METADATA_SOURCE_NONE) {
                if (by_id != METADATA_SOURCE_NONE && by_id != by_dmi)
                        log_warning(n->c.env->log,
                                    "The firmware of this machine is that of %s, and the providerID of its node (%s) that of %s. The notices of %s are read; [Metadata] Source= says which to read.",
                                    metadata_source_name(by_dmi), provider_id, metadata_source_name(by_id),
                                    metadata_source_name(by_dmi));
                return;
        }
        if (by_id == METADATA_SOURCE_NONE) {
                log_info(n->c.env->log,
                         "Neither the firmware of this machine nor the providerID of its node (%s) names a cloud whose notices are known: no metadata service is read.",
                         provider_id ? provider_id : "none");
                return;
        }
        log_info(n->c.env->log, "This is a machine of %s by the providerID of its node: its notices are read.",
                 metadata_source_name(by_id));
        r = add_sources(n, by_id, false);
        if (r < 0)
                log_error_errno(n->c.env->log, r, "Failed to begin to read the notices of %s: %m", metadata_source_name(by_id));
}

void notices_settle(Notices *n, const char *provider_id) {
        n->settled = true;
        find_cloud(n, provider_id);
        notices_see_provider_id(n, provider_id);
        consider_all(n);
}

void notices_kick(Notices *n) {
        for (size_t i = 0; i < n->n_sources; i++)
                notice_source_kick(n->sources[i]);
}

/* -- new, free ---------------------------------------------------------------------------------- */

int notices_new(const NoticesContext *context, Notices **ret) {
        _cleanup_(notices_freep) Notices *n = NULL;
        int r;

        assert(context && context->on_begun && context->may_clean && context->may_take_early && context->on_planned &&
               context->on_looked && ret);
        n = new0(Notices, 1);
        if (!n)
                return -ENOMEM;
        n->c = *context;
        r = agent_config_policy(n->c.config, &n->policy);
        if (r < 0)
                return r;
        n->standing = new0(Standing, STANDING_MAX);
        if (!n->standing)
                return -ENOMEM;
        r = timer_new(n->c.env->loop, "notices", on_timer, n, &n->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(n);
        return 0;
}

Notices *notices_free(Notices *n) {
        if (!n)
                return NULL;
        for (size_t i = 0; i < n->n_sources; i++)
                notice_source_free(n->sources[i]);
        for (size_t i = 0; i < n->n_standing; i++)
                notice_free(n->standing[i].notice);
        free(n->standing);
        free(n->early);
        free(n->provider_id);
        timer_free(n->timer);
        policy_settings_done(&n->policy);
        return mfree(n);
}

/* -- tests -------------------------------------------------------------------------------------- */

bool notices_acknowledges(const Notices *n) {
        for (size_t i = 0; i < n->n_sources; i++)
                if (n->sources[i]->ops->acknowledges && n->sources[i]->ops->acknowledges(n->sources[i]))
                        return true;
        return false;
}

void notices_next_wakeup(const Notices *n, Wakeups *w) {
        usec_t next = n->settled ? next_plan_usec(n) : USEC_INFINITY;

        for (size_t i = 0; i < n->n_sources; i++)
                n->sources[i]->ops->next_wakeup(n->sources[i], w);
        if (next == USEC_INFINITY)
                return;
        wakeups_unfinished(w, "next act of", "[Policy]", "", usec_sub(next, w->now_usec));
        wakeups_timer(w, n->timer);
}
