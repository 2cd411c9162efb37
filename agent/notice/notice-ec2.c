/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-ec2.h"

#include <stdio.h>

#include "ec2-events.h"
#include "imds-client.h"
#include "json.h"
#include "log.h"
#include "string-util.h"

/*
 * One look:
 *
 *      poll due ---identity proven for this token---> asking spot/instance-action ---200---> NOTICE
 *         |                                                ^            |
 *         +---not yet---> asking instance-id ---i-...------+            +---404, same token---> NONE
 *                                 ^                                     |
 *                                 +------200 or 404, but by a new token-+
 */

#define SPOT_FEED "spot/instance-action"
#define LIFECYCLE_FEED "autoscaling/target-lifecycle-state"
#define REBALANCE_FEED "events/recommendations/rebalance"
#define EVENTS_FEED "events/maintenance/scheduled"
#define CAPACITY_FEED "tags/instance/vesper.sh:capacity-block-end"
/* So long before the end of a Capacity Block EC2 begins to terminate what runs in it. */
#define CAPACITY_LEAD_USEC (30 * USEC_PER_MINUTE)
#define LEAD_USEC (120 * USEC_PER_SEC)
#define STALE_LEAD_USEC (30 * USEC_PER_SEC)
#define HIBERNATE_LEAD_USEC (10 * USEC_PER_SEC)
/* A Date is cut to its second. */
#define DATE_USEC USEC_PER_SEC
#define BODY_BYTES_MAX 4096u

typedef enum SideFeed {
        SIDE_LIFECYCLE,
        SIDE_REBALANCE,
        SIDE_EVENTS,
        SIDE_CAPACITY,
        _SIDE_MAX,
        SIDE_NONE = _SIDE_MAX,
} SideFeed;

static const char *const side_path[_SIDE_MAX] = {
        [SIDE_LIFECYCLE] = LIFECYCLE_FEED,
        [SIDE_REBALANCE] = REBALANCE_FEED,
        [SIDE_EVENTS] = EVENTS_FEED,
        [SIDE_CAPACITY] = CAPACITY_FEED,
};

/* Polls of 2 s meet them; the most overdue is asked first. */
static const usec_t side_interval_usec[_SIDE_MAX] = {
        [SIDE_LIFECYCLE] = 4 * USEC_PER_SEC,
        [SIDE_REBALANCE] = 10 * USEC_PER_SEC,
        [SIDE_EVENTS] = USEC_PER_MINUTE,
        [SIDE_CAPACITY] = 5 * USEC_PER_MINUTE,
};

/* What a side feed announced when it answered last. */
typedef struct Side {
        usec_t due_usec;
        NoticeSet known;
        bool told_more; /* that there are more than that */
} Side;

typedef struct NoticeEc2 {
        NoticeSource source;
        Env *env;
        ImdsClient *imds;
        usec_t poll_usec;
        Timer *timer;
        Backoff backoff;
        bool looking;
        usec_t due_usec; /* of the present or next look */
        char instance_id[EC2_INSTANCE_ID_MAX + 1]; /* "": not known yet; in place, as a notice may wait for it */
        char firmware_instance[EC2_INSTANCE_ID_MAX + 1];
        unsigned proven_generation; /* of the token by which instance_id was answered; 0: never */
        bool absent;                /* this look has had its 404 */
        ImdsAnswer held;            /* ... or its 200, by a token whose server has to prove first who it is */
        char *held_body;            /* of that; NULL: there is none */
        bool asked_identity;        /* this look has, and asks for no side feed besides: two requests are enough */
        Notice *notice;             /* the last one seen */
        Side sides[_SIDE_MAX];
        SideFeed asked; /* behind the present poll, and not answered yet */
} NoticeEc2;

static void ask_side(NoticeEc2 *s);
static void on_identity(const ImdsAnswer *answer, void *userdata);
static void on_action(const ImdsAnswer *answer, void *userdata);

/* -- pure --------------------------------------------------------------------------------------- */

bool ec2_instance_id_is_valid(const char *s, size_t size) {
        if (size < 10 || size > EC2_INSTANCE_ID_MAX || s[0] != 'i' || s[1] != '-')
                return false;
        for (size_t i = 2; i < size; i++)
                if (!((s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f')))
                        return false;
        return true;
}

NoticeIdentity notice_ec2_identity(const char *instance_id, const char *provider_id) {
        const char *slash = strrchr(provider_id, '/'), *id = slash ? slash + 1 : provider_id;

        if ((slash && !startswith(provider_id, "aws://")) || !ec2_instance_id_is_valid(id, strlen(id)))
                return NOTICE_IDENTITY_UNKNOWN;
        return streq(id, instance_id) ? NOTICE_IDENTITY_SAME : NOTICE_IDENTITY_OTHER;
}

usec_t notice_ec2_left(const char *action, usec_t time_usec, usec_t clock_usec, Ec2ClockVerdict *ret_verdict) {
        usec_t left = usec_sub(time_usec, clock_usec);

        *ret_verdict = EC2_CLOCK_FINE;
        if (streq(action, "hibernate"))
                return HIBERNATE_LEAD_USEC;
        if (left == 0) {
                *ret_verdict = EC2_CLOCK_AHEAD;
                return STALE_LEAD_USEC;
        }
        if (left > LEAD_USEC + DATE_USEC)
                *ret_verdict = EC2_CLOCK_BEHIND;
        return MIN(left, LEAD_USEC);
}

static bool action_is_known(const char *action) {
        return streq(action, "terminate") || streq(action, "stop") || streq(action, "hibernate");
}

int notice_ec2_parse(const char *body, size_t size, char **ret_action, usec_t *ret_time_usec,
                     const char **reterr_why) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *action, *time;
        usec_t time_usec;
        int r;

        r = json_parse(body, size, BODY_BYTES_MAX, &doc, NULL);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                *reterr_why = "spot/instance-action is not JSON";
                return -EBADMSG;
        }
        action = json_string_or_null(json_get(json_root(doc), "action"));
        time = json_string_or_null(json_get(json_root(doc), "time"));
        if (!action || !action_is_known(action)) {
                *reterr_why = "spot/instance-action names no action that is known";
                return -EBADMSG;
        }
        if (!time || rfc3339_parse(time, &time_usec) < 0) {
                *reterr_why = "spot/instance-action has no time that can be read";
                return -EBADMSG;
        }
        *ret_action = strdup(action);
        if (!*ret_action)
                return -ENOMEM;
        *ret_time_usec = time_usec;
        return 0;
}

/* -- the end of a look -------------------------------------------------------------------------- */

/* Later than asked for, should looks be slower than their interval: no two at once, and none to catch up. */
static void plan_next(NoticeEc2 *s, usec_t at_usec) {
        s->looking = false;
        s->due_usec = MAX(at_usec, loop_now(s->env->loop));
        timer_arm(s->timer, s->due_usec);
}

static void poll_failed(NoticeEc2 *s, const char *why, usec_t answered_usec) {
        plan_next(s, usec_add(loop_now(s->env->loop), notice_source_pause(&s->backoff, s->env->random)));
        notice_source_unknown(&s->source, SPOT_FEED, why, answered_usec);
}

static void poll_done(NoticeEc2 *s, usec_t answered_usec) {
        backoff_reset(&s->backoff);
        plan_next(s, usec_add(s->due_usec, s->poll_usec));
        notice_source_found(&s->source, SPOT_FEED, &s->notice, s->notice ? 1 : 0, answered_usec);
        if (!s->asked_identity)
                ask_side(s);
}

/* -- the notice --------------------------------------------------------------------------------- */

static void warn_about_clock(NoticeEc2 *s, Ec2ClockVerdict verdict, usec_t time_usec) {
        char theirs[RFC3339_MAX], ours[RFC3339_MAX];

        rfc3339_format(time_usec, theirs);
        rfc3339_format(loop_wall(s->env->loop), ours);
        log_warning(s->env->log,
                    "The spot notice says %s and the clock of this machine says %s: %s. "
                    "%s is assumed to be left; check the time service (chrony, systemd-timesyncd).",
                    theirs, ours,
                    verdict == EC2_CLOCK_AHEAD ? "the clock is ahead, or the notice is old"
                                               : "the clock is behind",
                    verdict == EC2_CLOCK_AHEAD ? "30 s" : "120 s");
}

/* Counted from the Date of the very answer that has the time: both are by the cloud's clock. Without one, or if
 * EC2 gives nobody so much time as that would leave, our own clock tells, once: it may be set at any moment.
 * standing: what is known already of this very time; NULL: it is seen for the first time. */
static void judge(NoticeEc2 *s, Notice *n, const Notice *standing, const ImdsAnswer *answer) {
        Ec2ClockVerdict verdict = EC2_CLOCK_BEHIND;
        usec_t left = 0;

        if (answer->date_usec > 0)
                left = notice_ec2_left(n->action, n->announced_usec, answer->date_usec, &verdict);
        if (verdict == EC2_CLOCK_BEHIND) {
                n->estimated = true;
                left = notice_ec2_left(n->action, n->announced_usec, loop_to_wall(s->env->loop, answer->answered_usec),
                                       &verdict);
        }
        n->deadline_usec = usec_add(answer->answered_usec, left);
        if (!standing) {
                if (n->estimated && verdict != EC2_CLOCK_FINE)
                        warn_about_clock(s, verdict, n->announced_usec);
                return;
        }
        /* What was assumed of a time that had passed, or of hibernation, began when that was first seen. */
        notice_source_keep(n, standing, verdict == EC2_CLOCK_AHEAD || streq(n->action, "hibernate"));
}

static int make_notice(NoticeEc2 *s, const char *action, usec_t time_usec, const ImdsAnswer *answer) {
        _cleanup_free_ char *id = strf("%s-%s-%s", s->instance_id, action, s->env->boot_id);
        Notice *n = id ? notice_source_make(&s->source, NOTICE_SPOT, id, action) : NULL;
        bool stands;

        if (!n)
                return -ENOMEM;
        n->announced_usec = time_usec;
        stands = s->notice && streq(s->notice->id, n->id) && s->notice->announced_usec == time_usec;
        judge(s, n, stands ? s->notice : NULL, answer);

        notice_free(s->notice);
        s->notice = n;
        return 0;
}

static void take_notice(NoticeEc2 *s, const ImdsAnswer *answer) {
        _cleanup_free_ char *action = NULL;
        const char *why = "out of memory";
        usec_t time_usec;
        int r;

        r = notice_ec2_parse(answer->body, answer->size, &action, &time_usec, &why);
        if (r >= 0)
                r = make_notice(s, action, time_usec, answer);
        if (r < 0)
                poll_failed(s, why, answer->answered_usec);
        else
                poll_done(s, answer->answered_usec);
}

static bool hold_notice(NoticeEc2 *s, const ImdsAnswer *answer) {
        free(s->held_body);
        s->held_body = memdup_str(answer->body, answer->size);
        s->held = *answer;
        return s->held_body;
}

static void take_held(NoticeEc2 *s) {
        _cleanup_free_ char *body = TAKE_PTR(s->held_body);
        ImdsAnswer answer = s->held;

        answer.body = body;
        take_notice(s, &answer);
}

static void take_none(NoticeEc2 *s, usec_t answered_usec) {
        s->notice = notice_free(s->notice);
        poll_done(s, answered_usec);
}

/* -- the questions ------------------------------------------------------------------------------ */

static bool identity_is_proven(const NoticeEc2 *s) {
        return s->instance_id[0] && s->proven_generation == imds_client_token_generation(s->imds);
}

static void ask(NoticeEc2 *s, const char *path, imds_done_t done) {
        if (imds_client_get(s->imds, path, done, s) < 0)
                poll_failed(s, "out of memory", loop_now(s->env->loop));
}

/* A notice that is held counts by the last proof, by who it was: no time is lost on what stumbles. */
static void identity_failed(NoticeEc2 *s, const char *why, usec_t answered_usec) {
        if (s->held_body && s->instance_id[0])
                take_held(s);
        else
                poll_failed(s, why, answered_usec);
}

static void ask_identity(NoticeEc2 *s) {
        s->asked_identity = true;
        if (imds_client_get(s->imds, "meta-data/instance-id", on_identity, s) < 0)
                identity_failed(s, "out of memory", loop_now(s->env->loop));
}

static void on_action(const ImdsAnswer *answer, void *userdata) {
        NoticeEc2 *s = userdata;

        switch (answer->outcome) {
        case IMDS_ANSWERED:
                /* The token was renewed on the way, maybe by another machine's metadata. */
                if (!identity_is_proven(s) && hold_notice(s, answer))
                        ask_identity(s);
                else
                        take_notice(s, answer);
                return;
        case IMDS_ABSENT:
                if (identity_is_proven(s)) {
                        take_none(s, answer->answered_usec);
                        return;
                }
                /* The token was renewed on the way: the 404 counts once its server has proved who it is. */
                s->absent = true;
                ask_identity(s);
                return;
        case IMDS_FAILED:
                poll_failed(s, answer->why, answer->answered_usec);
                return;
        }
        assert(false && "an answer of no kind");
}

static bool take_identity(NoticeEc2 *s, const ImdsAnswer *answer) {
        size_t size = answer->size;

        while (size > 0 && strchr(" \t\r\n", answer->body[size - 1]))
                size--;
        if (!ec2_instance_id_is_valid(answer->body, size))
                return false;
        memcpy(s->instance_id, answer->body, size);
        s->instance_id[size] = 0;
        s->proven_generation = imds_client_token_generation(s->imds);
        return true;
}

static void on_identity(const ImdsAnswer *answer, void *userdata) {
        NoticeEc2 *s = userdata;

        if (answer->outcome == IMDS_FAILED)
                identity_failed(s, answer->why, answer->answered_usec);
        else if (answer->outcome != IMDS_ANSWERED || !take_identity(s, answer))
                poll_failed(s, "this is no EC2 metadata service: meta-data/instance-id gives no instance id", answer->answered_usec);
        else if (s->absent)
                take_none(s, answer->answered_usec);
        else if (s->held_body)
                take_held(s);
        else
                ask(s, "meta-data/" SPOT_FEED, on_action);
}

/* -- the side feeds ------------------------------------------------------------------------------ */

/* Without a time: EC2 says none. Takes the id. */
static int side_add(NoticeEc2 *s, NoticeSet *fresh, NoticeKind kind, char *id, const char *action) {
        _cleanup_free_ char *taken = id;
        Notice *n = taken ? notice_source_make(&s->source, kind, taken, action) : NULL;

        if (!n)
                return -ENOMEM;
        fresh->items[fresh->n++] = n;
        return 0;
}

static int read_lifecycle(NoticeEc2 *s, Side *side, const ImdsAnswer *answer, NoticeSet *fresh, const char **reterr_why) {
        bool goes;
        int r;

        r = ec2_lifecycle_parse(answer->body, answer->size, &goes, reterr_why);
        if (r < 0 || !goes)
                return r;
        return side_add(s, fresh, NOTICE_SCALE_IN, strf("%s-scale-in-%s", s->instance_id, s->env->boot_id), "terminate");
}

/* It is given once, and does not end: the time at which it was given is none at which anything happens. */
static int read_rebalance(NoticeEc2 *s, Side *side, const ImdsAnswer *answer, NoticeSet *fresh, const char **reterr_why) {
        char given[RFC3339_MAX];
        usec_t given_usec;
        int r;

        r = ec2_rebalance_parse(answer->body, answer->size, &given_usec, reterr_why);
        if (r < 0)
                return r;
        rfc3339_format(given_usec, given);
        r = side_add(s, fresh, NOTICE_REBALANCE, strf("%s-rebalance-%s", s->instance_id, given), "rebalance");
        if (r >= 0)
                fresh->items[0]->certainty = NOTICE_ADVISORY;
        return r;
}

static int read_events(NoticeEc2 *s, Side *side, const ImdsAnswer *answer, NoticeSet *fresh, const char **reterr_why) {
        ScheduledEvent *events;
        size_t n;
        bool more;
        int r;

        r = ec2_events_parse(answer->body, answer->size, NOTICES_OF_FEED_MAX, &events, &n, &more, reterr_why);
        if (r < 0)
                return r;
        r = scheduled_events_announce(&s->source, s->env->loop, events, n, answer->date_usec, answer->answered_usec, &side->known,
                                      fresh);
        scheduled_events_free(events, n);
        if (more && !side->told_more)
                log_warning(s->env->log, "EC2 has scheduled more events for this instance than are looked at: the first %u are.",
                            NOTICES_OF_FEED_MAX);
        side->told_more = more;
        return r;
}

static int read_capacity(NoticeEc2 *s, Side *side, const ImdsAnswer *answer, NoticeSet *fresh, const char **reterr_why) {
        _cleanup_free_ char *id = NULL;
        char end[RFC3339_MAX];
        usec_t end_usec;
        int r;

        r = ec2_capacity_end_parse(answer->body, answer->size, &end_usec, reterr_why);
        if (r < 0)
                return r;
        rfc3339_format(end_usec, end);
        id = strf("%s-capacity-block-%s", s->instance_id, end);
        if (!id)
                return -ENOMEM;
        fresh->items[0] = notice_source_make(&s->source, NOTICE_CAPACITY_BLOCK, id, "terminate");
        if (!fresh->items[0])
                return -ENOMEM;
        fresh->n = 1;
        notice_source_judge(s->env->loop, fresh->items[0], notice_set_find(&side->known, id), usec_sub(end_usec, CAPACITY_LEAD_USEC),
                            answer->date_usec, answer->answered_usec, USEC_INFINITY);
        return 0;
}

static void side_unknown(NoticeEc2 *s, SideFeed which, const char *why, usec_t answered_usec) {
        s->asked = SIDE_NONE;
        notice_source_unknown(&s->source, side_path[which], why, answered_usec);
}

/* answer: NULL: there is none. */
static void side_answered(NoticeEc2 *s, SideFeed which, const ImdsAnswer *answer, usec_t answered_usec) {
        static int (*const read[_SIDE_MAX])(NoticeEc2 *s, Side *side, const ImdsAnswer *answer, NoticeSet *fresh,
                                            const char **reterr_why) = {
                [SIDE_LIFECYCLE] = read_lifecycle,
                [SIDE_REBALANCE] = read_rebalance,
                [SIDE_EVENTS] = read_events,
                [SIDE_CAPACITY] = read_capacity,
        };
        Side *side = &s->sides[which];
        const char *why = "out of memory";
        NoticeSet fresh = { 0 };
        int r = 0;

        if (answer)
                r = read[which](s, side, answer, &fresh, &why);
        if (r < 0) {
                side_unknown(s, which, r == -ENOMEM ? "out of memory" : why, answered_usec);
                return;
        }
        notice_set_done(&side->known);
        side->known = fresh;
        s->asked = SIDE_NONE;
        notice_source_found(&s->source, side_path[which], side->known.items, side->known.n, answered_usec);
}

static void on_side(const ImdsAnswer *answer, void *userdata) {
        NoticeEc2 *s = userdata;
        SideFeed which = s->asked;

        assert(which < _SIDE_MAX);
        switch (answer->outcome) {
        case IMDS_ANSWERED:
        case IMDS_ABSENT:
                if (identity_is_proven(s)) {
                        side_answered(s, which, answer->outcome == IMDS_ANSWERED ? answer : NULL, answer->answered_usec);
                        return;
                }
                s->sides[which].due_usec = loop_now(s->env->loop);
                side_unknown(s, which, "the session token was renewed on the way: asked again", answer->answered_usec);
                return;
        case IMDS_FAILED:
                side_unknown(s, which, answer->why, answer->answered_usec);
                return;
        }
        assert(false && "an answer of no kind");
}

static SideFeed most_overdue(const NoticeEc2 *s, usec_t now_usec) {
        SideFeed found = SIDE_NONE;

        for (SideFeed i = 0; i < _SIDE_MAX; i++)
                if (s->sides[i].due_usec <= now_usec &&
                    (found == SIDE_NONE || s->sides[i].due_usec < s->sides[found].due_usec))
                        found = i;
        return found;
}

/* Behind a poll that was answered, by a service that has proved who it is. */
static void ask_side(NoticeEc2 *s) {
        static const char *const paths[_SIDE_MAX] = {
                [SIDE_LIFECYCLE] = "meta-data/" LIFECYCLE_FEED,
                [SIDE_REBALANCE] = "meta-data/" REBALANCE_FEED,
                [SIDE_EVENTS] = "meta-data/" EVENTS_FEED,
                [SIDE_CAPACITY] = "meta-data/" CAPACITY_FEED,
        };
        usec_t now = loop_now(s->env->loop);
        SideFeed which = most_overdue(s, now);

        if (which == SIDE_NONE)
                return;
        s->sides[which].due_usec = usec_add(now, side_interval_usec[which]);
        s->asked = which;
        if (imds_client_get(s->imds, paths[which], on_side, s) < 0)
                side_unknown(s, which, "out of memory", now);
}

/* The next poll is due; its question takes the place of this one. */
static void drop_side(NoticeEc2 *s) {
        if (s->asked != SIDE_NONE)
                side_unknown(s, s->asked, "no answer before the next poll", loop_now(s->env->loop));
}

static void look(NoticeEc2 *s) {
        drop_side(s);
        s->looking = true;
        s->absent = false;
        s->held_body = mfree(s->held_body);
        s->asked_identity = false;
        if (identity_is_proven(s))
                ask(s, "meta-data/" SPOT_FEED, on_action);
        else
                ask_identity(s);
}

static void on_timer(Timer *t, void *userdata) {
        look(userdata);
}

/* -- NoticeSource ------------------------------------------------------------------------------- */

static NoticeEc2 *to_ec2(NoticeSource *s) {
        return CONTAINER_OF(s, NoticeEc2, source);
}

/* Somewhere within the first interval: a fleet that was started together does not march in step. */
static void ec2_start(NoticeSource *source) {
        NoticeEc2 *s = to_ec2(source);

        plan_next(s, usec_add(loop_now(s->env->loop), random_below(s->env->random, s->poll_usec)));
}

static void ec2_kick(NoticeSource *source) {
        NoticeEc2 *s = to_ec2(source);

        if (s->looking || s->backoff.failures == 0)
                return;
        backoff_reset(&s->backoff);
        plan_next(s, 0);
}

static bool ec2_announces(const NoticeSource *source, const char *feed, const Notice *n) {
        static const NoticeKind kinds[_SIDE_MAX] = {
                [SIDE_LIFECYCLE] = NOTICE_SCALE_IN,
                [SIDE_REBALANCE] = NOTICE_REBALANCE,
                [SIDE_EVENTS] = NOTICE_MAINTENANCE,
                [SIDE_CAPACITY] = NOTICE_CAPACITY_BLOCK,
        };

        for (SideFeed i = 0; i < _SIDE_MAX; i++)
                if (streq(feed, side_path[i]))
                        return n->kind == kinds[i];
        return n->kind == NOTICE_SPOT;
}

static NoticeIdentity ec2_identity(const NoticeSource *source, const char *provider_id, const char **ret_name) {
        const NoticeEc2 *s = CONTAINER_OF(source, NoticeEc2, source);
        NoticeIdentity identity;

        *ret_name = s->instance_id;
        if (!s->instance_id[0])
                return NOTICE_IDENTITY_UNKNOWN;
        identity = notice_ec2_identity(s->instance_id, provider_id);
        return identity == NOTICE_IDENTITY_OTHER && streq(s->instance_id, s->firmware_instance) ? NOTICE_IDENTITY_FIRMWARE : identity;
}

/* Scheduled events have ids of their own. */
static bool ec2_is_of_machine(const NoticeSource *source, const Notice *n) {
        const NoticeEc2 *s = CONTAINER_OF(source, NoticeEc2, source);
        const char *rest = s->instance_id[0] ? startswith(n->id, s->instance_id) : NULL;

        return rest && rest[0] == '-';
}

static void ec2_free(NoticeSource *source) {
        NoticeEc2 *s = to_ec2(source);

        imds_client_free(s->imds);
        timer_free(s->timer);
        free(s->held_body);
        notice_free(s->notice);
        for (SideFeed i = 0; i < _SIDE_MAX; i++)
                notice_set_done(&s->sides[i].known);
        free(s);
}

static const char *const ec2_feeds[] = { SPOT_FEED, LIFECYCLE_FEED, REBALANCE_FEED, EVENTS_FEED, CAPACITY_FEED, NULL };

static void ec2_next_wakeup(const NoticeSource *source, Wakeups *w) {
        const NoticeEc2 *s = CONTAINER_OF(source, NoticeEc2, source);

        wakeups_unfinished(w, "poll of", "ec2", s->looking ? "asking" : "waiting",
                           MAX(NOTICE_SOURCE_WAKEUP_USEC, s->poll_usec));
        wakeups_timer(w, s->timer);
        wakeups_await(w, s->looking && imds_client_is_asked(s->imds));
}

static const NoticeSourceOps ec2_ops = {
        .name = "ec2",
        .feeds = ec2_feeds,
        .start = ec2_start,
        .kick = ec2_kick,
        .announces = ec2_announces,
        .identity = ec2_identity,
        .is_of_machine = ec2_is_of_machine,
        .may_cancel = notice_source_cloud_may_cancel,
        .next_wakeup = ec2_next_wakeup,
        .free = ec2_free,
};

int notice_ec2_new(Env *env, const NoticeEc2Options *o, notice_look_t on_look, void *userdata,
                   NoticeSource **ret) {
        NoticeEc2 *s;
        int r;

        assert(env && env->boot_id && o && o->endpoint && o->poll_usec > 0 && on_look && ret);
        s = new0(NoticeEc2, 1);
        if (!s)
                return -ENOMEM;

        s->source = (NoticeSource){ .ops = &ec2_ops, .on_look = on_look, .userdata = userdata };
        s->env = env;
        s->poll_usec = o->poll_usec;
        s->asked = SIDE_NONE;
        (void) snprintf(s->firmware_instance, sizeof(s->firmware_instance), "%s", strempty(o->firmware_instance));
        s->backoff = NOTICE_SOURCE_BACKOFF(o->poll_usec, NOTICE_SOURCE_SLOWEST_POLLS * o->poll_usec);
        r = imds_client_new(env, o->endpoint, &s->imds);
        if (r >= 0 && o->other_endpoint)
                r = imds_client_set_other_endpoint(s->imds, o->other_endpoint);
        if (r >= 0 && o->allow_v1)
                imds_client_allow_v1(s->imds);
        if (r >= 0)
                r = timer_new(env->loop, "notice-ec2", on_timer, s, &s->timer);
        if (r < 0) {
                ec2_free(&s->source);
                return r;
        }
        *ret = &s->source;
        return 0;
}
