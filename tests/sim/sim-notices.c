/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-notices.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "file-util.h"
#include "policy.h"
#include "sim-check-internal.h"
#include "sim-process.h"

#define SEC USEC_PER_SEC
#define MIN_USEC USEC_PER_MINUTE
#define MACHINES 4u
#define N_ACTS 24u
#define WORDS_MAX 64u
#define SETTLE_SEC 60u
/* The same in each process, so that traces of one seed are the same. */
#define DIRECTORY_FD 500
#define EVENTS "events/maintenance/scheduled"
#define CAPACITY "tags/instance/vesper.sh:capacity-block-end"
/* What is due is acted upon so long after its feed was asked, and what is over is undone. */
#define ACT_USEC (30 * SEC)
#define UNDO_USEC (120 * SEC)
/* A request may be under way for so long. */
#define WAY_USEC (40 * SEC)
#define LATE_USEC MIN_USEC
/* A metadata service that is in trouble is asked so seldom, and one that hangs is waited for. */
#define BACKOFF_USEC (40 * SEC)
/* Deadlines are counted from a Date in whole seconds. */
#define DATE_USEC (2 * SEC)
#define SPOT_OVER_USEC (10 * MIN_USEC)
#define CAPACITY_LEAD_USEC (30 * MIN_USEC)

typedef enum Feed { FEED_SPOT, FEED_LIFECYCLE, FEED_REBALANCE, FEED_EVENTS, FEED_CAPACITY, FEED_FILE, _FEED_MAX } Feed;

/* How long its agent may not have asked it. */
static const usec_t interval_usec[_FEED_MAX] = {
        [FEED_SPOT] = 2 * SEC,    [FEED_LIFECYCLE] = 8 * SEC,          [FEED_REBALANCE] = 14 * SEC,
        [FEED_EVENTS] = MIN_USEC, [FEED_CAPACITY] = 5 * USEC_PER_MINUTE, [FEED_FILE] = 2 * SEC,
};

typedef enum Verdict { VERDICT_NOTHING, VERDICT_CORDON, VERDICT_DRAIN } Verdict;

/* What is announced to a machine, and has been since nothing was. */
typedef struct Word {
        const SimMachine *machine;
        Feed feed;
        NoticeKind kind;
        char *id;           /* of what has one: events, and what the file says */
        const char *action; /* NULL: advice, or what nobody knows */
        const char *code;   /* of an event */
        const char *state;  /* of an event: "active", or how it is cancelled */
        usec_t at_usec;     /* wall clock; USEC_INFINITY: not said */
        usec_t least_usec;  /* the earliest that it ever was */
        usec_t first_usec, since_usec; /* when it was given, and when what it says changed last */
        usec_t over_usec;   /* when it was taken back; 0: it stands */
        unsigned boot;      /* of its machine, when it was taken back */
        bool acted;         /* its node was marked while it was due */
        unsigned served;    /* in that boot of its machine (from 1) its node was cordoned for it, and opened after its time; 0: in none */
} Word;

typedef struct Target {
        Word words[WORDS_MAX];
        size_t n;
        usec_t well_usec; /* since when its agent is */
        usec_t idle_usec; /* since when nothing calls for anything */
        usec_t garbage_until_usec; /* its file holds what is none; 0: it does not */
        usec_t metadata_until_usec; /* its metadata service is in trouble; 0: it is not */
        const char *lifecycle;
} Target;

struct SimNotices {
        SimWorld *w;
        PolicySettings policy;
        Target targets[MACHINES];
        char directory[64];
        int fd;
        unsigned n_made, n_drained;
        usec_t looked_usec;
};

static uint64_t draw(SimNotices *s, uint64_t below) {
        return random_below(s->w->random, below);
}

/* -- what it calls for --------------------------------------------------------------------------- */

static const PolicyRule *rule_of(const SimNotices *s, const Word *word) {
        bool reboot = word->kind == NOTICE_MAINTENANCE && streq_ptr(word->action, "reboot");

        return reboot && s->policy.has_reboot ? &s->policy.reboot : &s->policy.rules[word->kind];
}

static Verdict verdict_of(const SimNotices *s, const Word *word) {
        if (!word->action)
                return VERDICT_NOTHING;
        switch (rule_of(s, word)->verb) {
        case POLICY_NOW:
        case POLICY_BEFORE:
        case POLICY_WINDOW:
                return VERDICT_DRAIN;
        case POLICY_CORDON:
                return VERDICT_CORDON;
        case POLICY_REPORT:
        case POLICY_IGNORE:
        case _POLICY_VERB_MAX:
                break;
        }
        return VERDICT_NOTHING;
}

/* Wall clock: from when on it is acted upon, if the machine ends then. */
static usec_t begin_of(const SimNotices *s, const Word *word, usec_t at_usec) {
        const PolicyRule *rule = rule_of(s, word);

        return rule->verb != POLICY_BEFORE || at_usec == USEC_INFINITY ? 0 : usec_sub(at_usec, rule->span_usec);
}

static usec_t bound_of(const Word *word) {
        return interval_usec[word->feed] + ACT_USEC;
}

/* The time for which it is only cordoned, counted from when its agent has first seen it in its present life. */
static usec_t span_of(const SimNotices *s, const Word *word) {
        return verdict_of(s, word) == VERDICT_CORDON ? rule_of(s, word)->span_usec : USEC_INFINITY;
}

/* When it is over for its agent; 0: it is not. */
static usec_t over_usec(const SimNotices *s, const Word *word) {
        usec_t outlived = usec_add(word->at_usec, SPOT_OVER_USEC), wall = sim_world_wall(s->w), now = sim_world_now(s->w);

        if (word->over_usec == 0 || word->feed != FEED_SPOT || word->boot != word->machine->n_boots) /* the next boot never saw it */
                return word->over_usec;
        return MAX(word->over_usec, outlived > wall ? usec_add(now, outlived - wall) : usec_sub(now, wall - outlived));
}

static bool is_over(const SimNotices *s, const Word *word, usec_t lag_usec) {
        usec_t over = over_usec(s, word);

        return over > 0 && sim_world_now(s->w) > usec_add(over, lag_usec);
}

static bool may(const SimNotices *s, size_t machine, Verdict verdict) {
        const Target *t = &s->targets[machine];

        for (size_t i = 0; i < t->n; i++) {
                const Word *word = &t->words[i];
                usec_t lag = bound_of(word) + WAY_USEC;

                if (verdict_of(s, word) >= verdict && word->served != word->machine->n_boots + 1 &&
                    begin_of(s, word, word->least_usec) <= usec_add(sim_world_wall(s->w), DATE_USEC) &&
                    (!is_over(s, word, lag) || !sim_check_was_calm(s->w->check, lag) || sim_world_now(s->w) < usec_add(t->well_usec, lag)))
                        return true;
        }
        return false;
}

bool sim_notices_may_cordon(const SimNotices *s, size_t machine) {
        return may(s, machine, VERDICT_CORDON);
}

bool sim_notices_may_drain(const SimNotices *s, size_t machine) {
        return may(s, machine, VERDICT_DRAIN);
}

/* -- what has to be so --------------------------------------------------------------------------- */

static unsigned rank_of(const char *action) {
        return streq_ptr(action, "terminate") ? 2 : streq_ptr(action, "stop") || streq_ptr(action, "hibernate") ? 1 : 0;
}

/* Since when its agent could have known, and it is due. */
static usec_t due_usec(const SimNotices *s, const Target *t, const Word *word) {
        usec_t begin = begin_of(s, word, word->at_usec), now = sim_world_now(s->w), wall = sim_world_wall(s->w);

        usec_t known = MAX(word->since_usec, t->well_usec);

        return begin > wall ? USEC_INFINITY : begin > 0 ? MAX(known, usec_sub(now, wall - begin)) : known;
}

static void check_word(SimNotices *s, size_t machine, Word *word, const cJSON *said) {
        SimMachine *m = &s->w->machines[machine];
        const char *kind = notice_kind_to_string(word->kind), *phase = strempty(fj_string(said, "phase", NULL));
        usec_t due = due_usec(s, &s->targets[machine], word), now = sim_world_now(s->w);
        bool drains = verdict_of(s, word) == VERDICT_DRAIN;

        word->acted = word->acted || (word->over_usec == 0 && due != USEC_INFINITY && sim_world_unschedulable(s->w, machine) &&
                                      streq_ptr(fj_string(said, "kind", NULL), kind));
        if (verdict_of(s, word) == VERDICT_NOTHING || is_over(s, word, 0) || (word->over_usec > 0 && !word->acted) || due == USEC_INFINITY ||
            now <= usec_add(due, bound_of(word)) || !sim_check_was_calm(s->w->check, bound_of(word)) ||
            now >= usec_add(word->first_usec, span_of(s, word)))
                return;
        if (!said || !sim_world_unschedulable(s->w, machine))
                sim_check_broken(s->w->check, "notice", "%s of %s is due for %d s, and its node is %s", kind, m->node,
                                 (int) ((now - due) / SEC), said ? "open" : "not marked");
        else if (drains && rank_of(word->action) > rank_of(fj_string(said, "action", NULL)))
                sim_check_broken(s->w->check, "notice", "%s of %s (%s) is due for %d s, and its node tells of %s alone", kind, m->node,
                                 word->action, (int) ((now - due) / SEC), strempty(fj_string(said, "action", NULL)));
        else if (drains && sim_world_wall(s->w) > usec_add(word->at_usec, LATE_USEC) &&
                 now > usec_add(due, bound_of(word) + LATE_USEC) && sim_check_was_calm(s->w->check, bound_of(word) + LATE_USEC) &&
                 !streq(phase, "Drained") && sim_world_pods_alive(s->w, machine) > 0)
                sim_check_broken(s->w->check, "late", "the time of %s of %s has passed, and its drain is at %s with %zu pods", kind,
                                 m->node, phase, sim_world_pods_alive(s->w, machine));
}

/* From now on it calls for nothing, also of an agent that is started later. */
static void see_served(SimNotices *s, size_t machine, Word *word, const cJSON *said) {
        usec_t end = usec_add(word->first_usec, usec_add(span_of(s, word), bound_of(word) + WAY_USEC));

        if (word->acted && !said && !sim_world_unschedulable(s->w, machine) && sim_world_now(s->w) > end &&
            sim_check_was_calm(s->w->check, bound_of(word) + WAY_USEC))
                word->served = word->machine->n_boots + 1;
}

static bool calls_for_something(const SimNotices *s, const Target *t, const Word *word) {
        usec_t from = MAX(word->first_usec, t->well_usec);

        return verdict_of(s, word) != VERDICT_NOTHING &&
               begin_of(s, word, word->least_usec) <= usec_add(sim_world_wall(s->w), DATE_USEC) && !is_over(s, word, bound_of(word)) &&
               sim_world_now(s->w) < usec_add(from, usec_add(span_of(s, word), bound_of(word)));
}

static void forget_words(Target *t) {
        for (size_t i = 0; i < t->n; i++)
                free(t->words[i].id);
        t->n = 0;
}

/* Nothing calls for anything any more. */
static void check_idle(SimNotices *s, size_t machine, const cJSON *said) {
        SimMachine *m = &s->w->machines[machine];
        Target *t = &s->targets[machine];
        usec_t now = sim_world_now(s->w);
        bool stands = false, calls = false;

        for (size_t i = 0; i < t->n; i++) {
                calls |= calls_for_something(s, t, &t->words[i]);
                stands |= !is_over(s, &t->words[i], bound_of(&t->words[i]));
        }
        if (calls)
                t->idle_usec = now;
        if (now <= usec_add(MAX(t->idle_usec, t->well_usec), UNDO_USEC) || !sim_check_was_calm(s->w->check, UNDO_USEC))
                return;
        if (said || sim_world_unschedulable(s->w, machine))
                sim_check_broken(s->w->check, "notice", "nothing is due on %s for %d s, and its node is %s", m->node,
                                 (int) ((now - t->idle_usec) / SEC), said ? "marked" : "closed");
        else if (!stands) {
                forget_words(t);
                m->deadline_usec = USEC_INFINITY;
        }
}

static bool is_well(const SimMachine *m) {
        return m->agent->life && m->agent->life->ready && !timer_is_armed(m->boot);
}

static void tell_file(SimNotices *s, size_t machine);
static void heal_metadata(SimNotices *s, size_t machine);

static void look(SimNotices *s) {
        usec_t now = sim_world_now(s->w);

        if (now < s->looked_usec + SEC)
                return;
        s->looked_usec = now;
        for (size_t i = 0; i < MACHINES; i++) {
                const char *text = sim_world_annotation(s->w, i, "vesper.sh/interruption");
                cJSON *said = text ? cJSON_Parse(text) : NULL;
                Target *t = &s->targets[i];

                s->n_drained += streq_ptr(fj_string(said, "phase", NULL), "Drained");
                if (t->garbage_until_usec > 0 && now >= t->garbage_until_usec) {
                        t->garbage_until_usec = 0;
                        tell_file(s, i);
                }
                if (t->metadata_until_usec > 0 && now >= t->metadata_until_usec)
                        heal_metadata(s, i);
                if (!is_well(&s->w->machines[i]))
                        t->well_usec = now;
                else {
                        for (size_t k = 0; k < t->n; k++) {
                                check_word(s, i, &t->words[k], said);
                                see_served(s, i, &t->words[k], said);
                        }
                        check_idle(s, i, said);
                }
                cJSON_Delete(said);
        }
}

static bool run(SimNotices *s, usec_t usec) {
        usec_t until = sim_world_now(s->w) + usec;

        while (sim_world_step(s->w, until))
                look(s);
        return !sim_world_violation(s->w);
}

/* -- how it is told ------------------------------------------------------------------------------ */

static void tell_events(SimNotices *s, size_t machine) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        const Target *t = &s->targets[machine];
        char when[RFC3339_MAX];
        bool any = false;

        strbuf_addf(&b, "[");
        for (size_t i = 0; i < t->n; i++) {
                const Word *word = &t->words[i];

                if (word->feed != FEED_EVENTS || !word->state)
                        continue;
                rfc3339_format(word->at_usec, when);
                strbuf_addf(&b, "%s{\"EventId\":\"%s\",\"Code\":\"%s\",\"State\":\"%s\",\"NotBefore\":\"%s\"}", any ? "," : "",
                            word->id, word->code, word->state, when);
                any = true;
        }
        strbuf_addf(&b, "]");
        fake_imds_set_text(s->w->machines[machine].imds, EVENTS, strbuf_str(&b));
}

/* text NULL: it is not there. Nobody reads it meanwhile. */
static void put_file(SimNotices *s, size_t machine, const char *text) {
        _cleanup_free_ char *name = MUST(strf("%s.json", s->w->machines[machine].node));
        _cleanup_close_ int fd = text ? openat(s->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

        if (!text)
                (void) unlinkat(s->fd, name, 0);
        else if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t) strlen(text))
                assert(false && "a file of notices that cannot be written");
}

static void tell_file(SimNotices *s, size_t machine) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        const Target *t = &s->targets[machine];
        char when[RFC3339_MAX];
        size_t n = 0;

        strbuf_addf(&b, "[");
        for (size_t i = 0; i < t->n; i++) {
                const Word *word = &t->words[i];

                if (word->feed != FEED_FILE || word->over_usec > 0)
                        continue;
                strbuf_addf(&b, "%s{\"id\":\"%s\",\"kind\":\"%s\"", n++ > 0 ? "," : "", word->id, notice_kind_to_string(word->kind));
                if (word->action)
                        strbuf_addf(&b, ",\"action\":\"%s\"", word->action);
                else
                        strbuf_addf(&b, ",\"advisory\":true");
                if (word->at_usec != USEC_INFINITY) {
                        rfc3339_format(word->at_usec, when);
                        strbuf_addf(&b, ",\"deadline\":\"%s\"", when);
                }
                strbuf_addf(&b, "}");
        }
        strbuf_addf(&b, "]");
        put_file(s, machine, n > 0 ? strbuf_str(&b) : NULL);
}

static void tell(SimNotices *s, size_t machine, const Word *word) {
        FakeImds *imds = s->w->machines[machine].imds;
        _cleanup_free_ char *body = NULL;
        char when[RFC3339_MAX];
        bool stands = word->over_usec == 0;

        switch (word->feed) {
        case FEED_SPOT:
                if (stands)
                        fake_imds_set_action(imds, word->action, word->at_usec);
                else
                        fake_imds_clear_action(imds);
                break;
        case FEED_LIFECYCLE:
                fake_imds_set_text(imds, FAKE_IMDS_LIFECYCLE, stands ? "Terminated" : "InService");
                break;
        case FEED_REBALANCE:
                rfc3339_format(sim_world_wall(s->w), when);
                body = MUST(strf("{\"noticeTime\":\"%s\"}", when));
                fake_imds_set_text(imds, FAKE_IMDS_REBALANCE, stands ? body : NULL);
                break;
        case FEED_EVENTS:
                tell_events(s, machine);
                break;
        case FEED_CAPACITY:
                rfc3339_format(usec_add(word->at_usec, CAPACITY_LEAD_USEC), when);
                fake_imds_set_text(imds, CAPACITY, stands ? when : NULL);
                break;
        case FEED_FILE:
                s->targets[machine].garbage_until_usec = 0;
                tell_file(s, machine);
                break;
        case _FEED_MAX:
                break;
        }
}

static Word *standing_in(SimNotices *s, size_t machine, Feed feed) {
        Target *t = &s->targets[machine];

        for (size_t i = t->n; i-- > 0;)
                if (t->words[i].feed == feed && t->words[i].over_usec == 0)
                        return &t->words[i];
        return NULL;
}

/* Of a feed that has one at most. */
static void tell_alone(SimNotices *s, size_t machine, Feed feed) {
        const Word over = { .feed = feed, .over_usec = 1 }, *standing = standing_in(s, machine, feed);

        tell(s, machine, standing ? standing : &over);
}

/* -- what is announced --------------------------------------------------------------------------- */

static void set_time(SimNotices *s, size_t machine, Word *word, usec_t at_usec) {
        SimMachine *m = &s->w->machines[machine];

        if (at_usec != USEC_INFINITY)
                at_usec = at_usec / SEC * SEC; /* as it is told */
        word->at_usec = at_usec;
        word->least_usec = MIN(word->least_usec, at_usec);
        word->since_usec = sim_world_now(s->w);
        if (verdict_of(s, word) != VERDICT_NOTHING)
                m->deadline_usec = MIN(m->deadline_usec, at_usec);
}

static void trace_word(SimNotices *s, size_t machine, const Word *word, const char *what) {
        char when[RFC3339_MAX] = "-";

        if (word->at_usec != USEC_INFINITY)
                rfc3339_format(word->at_usec, when);
        sim_trace_add(s->w->trace, "giver", "%s to %s: %s %s, %s at %s%s", what, s->w->machines[machine].node,
                      notice_kind_to_string(word->kind), strempty(word->id), word->action ? word->action : "advice", when,
                      word->feed == FEED_FILE ? ", by its file" : "");
}

static void announce(SimNotices *s, size_t machine, Word word, usec_t in_usec) {
        Target *t = &s->targets[machine];
        usec_t at = in_usec == USEC_INFINITY ? USEC_INFINITY : usec_add(sim_world_wall(s->w), in_usec);

        if (t->n == WORDS_MAX) {
                free(word.id);
                return;
        }
        word.machine = &s->w->machines[machine];
        word.first_usec = sim_world_now(s->w);
        word.least_usec = USEC_INFINITY;
        set_time(s, machine, &word, at);
        t->words[t->n] = word;
        trace_word(s, machine, &word, "is given");
        tell(s, machine, &t->words[t->n++]);
}

static usec_t draw_lead(SimNotices *s) {
        return (60 + draw(s, 1500)) * SEC;
}

static void announce_event(SimNotices *s, size_t machine) {
        static const char *const codes[][2] = {
                { "system-reboot", "reboot" },      { "instance-reboot", "reboot" }, { "system-maintenance", "maintenance" },
                { "instance-retirement", "stop" }, { "instance-stop", "stop" },     { "instance-dance", NULL },
        };
        size_t i = draw(s, ELEMENTSOF(codes));

        announce(s, machine,
                 (Word){ .feed = FEED_EVENTS,
                         .kind = NOTICE_MAINTENANCE,
                         .id = MUST(strf("instance-event-%u", ++s->n_made)),
                         .code = codes[i][0],
                         .state = "active",
                         .action = codes[i][1] },
                 draw_lead(s));
}

static void announce_in_file(SimNotices *s, size_t machine) {
        static const NoticeKind kinds[] = { NOTICE_MAINTENANCE, NOTICE_SCALE_IN, NOTICE_CAPACITY_BLOCK };
        static const char *const actions[] = { "reboot", "stop", "terminate", NULL };

        usec_t lead_usec = draw(s, 4) == 0 ? USEC_INFINITY : draw_lead(s); /* before the call: compilers differ in its order */

        announce(s, machine,
                 (Word){ .feed = FEED_FILE,
                         .kind = kinds[draw(s, ELEMENTSOF(kinds))],
                         .id = MUST(strf("file-%u", ++s->n_made)),
                         .action = actions[draw(s, ELEMENTSOF(actions))] },
                 lead_usec);
}

/* Of a feed that has one at most. */
static void announce_alone(SimNotices *s, size_t machine, Feed feed) {
        static const NoticeKind kinds[_FEED_MAX] = { [FEED_SPOT] = NOTICE_SPOT,
                                                     [FEED_LIFECYCLE] = NOTICE_SCALE_IN,
                                                     [FEED_REBALANCE] = NOTICE_REBALANCE,
                                                     [FEED_CAPACITY] = NOTICE_CAPACITY_BLOCK };
        const Target *t = &s->targets[machine];

        if (standing_in(s, machine, feed))
                return;
        /* The same word in the same boot is one occurrence, unless all of the last one is forgotten. */
        for (size_t i = 0; i < t->n; i++)
                if (t->words[i].feed == feed && feed != FEED_REBALANCE && feed != FEED_CAPACITY)
                        return;
        sim_check_taken_back(s->w->check, &s->w->machines[machine]);
        announce(s, machine,
                 (Word){ .feed = feed, .kind = kinds[feed], .action = feed == FEED_REBALANCE ? "rebalance" : "terminate" },
                 feed == FEED_SPOT       ? 120 * SEC
                 : feed == FEED_CAPACITY ? draw_lead(s)
                                         : USEC_INFINITY);
}

static void take_back(SimNotices *s, size_t machine, Word *word) {
        static const char *const states[] = { "canceled", "completed", "Cancelled", NULL };

        trace_word(s, machine, word, "is taken back");
        word->over_usec = sim_world_now(s->w);
        word->boot = s->w->machines[machine].n_boots;
        word->state = states[draw(s, ELEMENTSOF(states))]; /* NULL: it is there no more */
        tell(s, machine, word);
}

static Word *draw_standing(SimNotices *s, size_t machine) {
        Target *t = &s->targets[machine];
        size_t at = t->n > 0 ? draw(s, t->n) : 0;

        for (size_t i = 0; i < t->n; i++)
                if (t->words[(at + i) % t->n].over_usec == 0)
                        return &t->words[(at + i) % t->n];
        return NULL;
}

static void move(SimNotices *s, size_t machine) {
        Word *word = draw_standing(s, machine);

        if (!word || (word->feed != FEED_EVENTS && word->feed != FEED_FILE) || word->at_usec == USEC_INFINITY)
                return;
        set_time(s, machine, word, usec_add(sim_world_wall(s->w), draw_lead(s)));
        trace_word(s, machine, word, "is moved");
        tell(s, machine, word);
}

static void take_back_all(SimNotices *s, size_t machine) {
        Target *t = &s->targets[machine];

        for (size_t i = 0; i < t->n; i++)
                if (t->words[i].over_usec == 0)
                        take_back(s, machine, &t->words[i]);
}

/* -- by chance ----------------------------------------------------------------------------------- */

static void garble_file(SimNotices *s, size_t machine) {
        static const char *const texts[] = { "", "{", "[{\"id\":\"x\"},{\"id\":\"x\"}]", "{\"id\":7}", "[{\"id\":\"y\",\"deadline\":\"soon\"}]" };
        usec_t lasts = (1 + draw(s, 60)) * SEC;

        put_file(s, machine, texts[draw(s, ELEMENTSOF(texts))]);
        sim_trace_add(s->w->trace, "giver", "the file of %s is no list", s->w->machines[machine].node);
        sim_check_trouble(s->w->check, lasts);
        s->targets[machine].garbage_until_usec = sim_world_now(s->w) + lasts;
}

static void trouble_metadata(SimNotices *s, size_t machine) {
        static const char *const bodies[] = { "", "<html>", "{}", "[1]", "Terminating soon!", "{\"noticeTime\":4}" };
        static const unsigned statuses[] = { 401, 403, 429, 500, 503 };
        FakeImds *imds = s->w->machines[machine].imds;
        usec_t lasts = (1 + draw(s, 60)) * SEC;
        uint64_t other;

        heal_metadata(s, machine);
        sim_check_trouble(s->w->check, usec_add(lasts, BACKOFF_USEC));
        s->targets[machine].metadata_until_usec = usec_add(sim_world_now(s->w), lasts);
        sim_trace_add(s->w->trace, "giver", "the metadata service of %s is in trouble", s->w->machines[machine].node);
        switch (draw(s, 4)) {
        case 0:
                fake_imds_hang(imds, FAKE_IMDS_ALL, UINT_MAX);
                break;
        case 1:
                fake_imds_fail(imds, FAKE_IMDS_DATA, UINT_MAX, statuses[draw(s, ELEMENTSOF(statuses))]);
                break;
        case 2:
                fake_imds_garble(imds, FAKE_IMDS_DATA, UINT_MAX, bodies[draw(s, ELEMENTSOF(bodies))]);
                break;
        case 3:
                other = draw(s, 3);
                fake_imds_set_instance_id(imds, other == 0   ? NULL
                                                : other == 1 ? "somebody"
                                                             : s->w->machines[(machine + 1) % MACHINES].instance);
                fake_imds_revoke(imds);
                if (other == 2) { /* and with that one's notices */
                        fake_imds_set_action(imds, "terminate", usec_add(sim_world_wall(s->w), 120 * SEC));
                        fake_imds_set_text(imds, FAKE_IMDS_LIFECYCLE, "Terminated");
                }
                break;
        }
}

static void heal_metadata(SimNotices *s, size_t machine) {
        SimMachine *m = &s->w->machines[machine];

        s->targets[machine].metadata_until_usec = 0;
        fake_imds_fail(m->imds, FAKE_IMDS_ALL, 0, 500);
        fake_imds_set_instance_id(m->imds, m->instance);
        fake_imds_revoke(m->imds);
        tell_alone(s, machine, FEED_SPOT);
        tell_alone(s, machine, FEED_LIFECYCLE);
}

static void trouble_api(SimNotices *s) {
        static const SimFaultKind kinds[] = { SIM_FAULT_ERROR,      SIM_FAULT_LIE,       SIM_FAULT_LOSE_REQUEST,
                                              SIM_FAULT_LOSE_REPLY, SIM_FAULT_PARTITION, SIM_FAULT_SLOW };
        SimWindow window = { .kind = kinds[draw(s, ELEMENTSOF(kinds))],
                             .until_usec = (1 + draw(s, 60)) * SEC,
                             .permille = 400,
                             .max_usec = 6 * SEC,
                             .who = sim_world_agent(s->w, draw(s, MACHINES))->name,
                             .seed = draw(s, 1000) };

        sim_check_trouble(s->w->check, 180 * SEC);
        if (window.kind == SIM_FAULT_PARTITION)
                window.permille = 1000;
        if (draw(s, 4) == 0)
                fake_api_stall_watches(fake_cluster_api(s->w->cluster), sim_world_now(s->w) + (1 + draw(s, 90)) * SEC);
        else
                sim_faults_add(s->w->faults, &window);
}

/* A reboot that was announced is done, and a machine that comes back was not taken; the rest stands in the next boot. */
static void reboot(SimNotices *s, size_t machine) {
        Target *t = &s->targets[machine];

        if (!is_well(&s->w->machines[machine]))
                return;
        for (size_t i = 0; i < t->n; i++)
                if (t->words[i].over_usec == 0 && (t->words[i].feed == FEED_SPOT || streq_ptr(t->words[i].action, "reboot")))
                        take_back(s, machine, &t->words[i]);
        sim_check_trouble(s->w->check, 60 * SEC);
        sim_world_reboot(s->w, machine, (5 + draw(s, 60)) * SEC);
}

static void disturb(SimNotices *s) {
        size_t machine = draw(s, MACHINES);
        Word *word;

        switch (draw(s, 24)) {
        case 0 ... 4:
                announce_event(s, machine);
                break;
        case 5 ... 8:
                announce_in_file(s, machine);
                break;
        case 9: /* two that disagree */
                announce_event(s, machine);
                announce_in_file(s, machine);
                break;
        case 10:
                announce_alone(s, machine, FEED_REBALANCE);
                break;
        case 11:
                announce_alone(s, machine, FEED_LIFECYCLE);
                break;
        case 12:
                announce_alone(s, machine, draw(s, 2) > 0 ? FEED_CAPACITY : FEED_SPOT);
                break;
        case 13:
        case 14:
                move(s, machine);
                break;
        case 15 ... 17:
                word = draw_standing(s, machine);
                if (word)
                        take_back(s, machine, word);
                break;
        case 18:
                take_back_all(s, machine);
                break;
        case 19:
                garble_file(s, machine);
                break;
        case 20:
                trouble_metadata(s, machine);
                break;
        case 21:
                trouble_api(s);
                break;
        case 22:
                if (s->w->machines[machine].agent->life)
                        sim_process_kill(s->w->machines[machine].agent, (1 + draw(s, 5000)) * USEC_PER_MSEC);
                break;
        case 23:
                reboot(s, machine);
                break;
        }
}

/* -- a life -------------------------------------------------------------------------------------- */

static void draw_policy(SimNotices *s) {
        static const char *const rules[] = { "now",      "now",         "before:2min", "before:10min", "before:1h", "cordon",
                                             "cordon:3min", "report", "ignore" };
        const char *of[_NOTICE_KIND_MAX] = { 0 }, *of_reboots = draw(s, 2) > 0 ? rules[draw(s, ELEMENTSOF(rules))] : NULL;
        const char *expected;
        int r = 0;

        for (size_t k = 0; k < _NOTICE_KIND_MAX; k++)
                if (k != NOTICE_SHUTDOWN && k != NOTICE_MANUAL)
                        of[k] = rules[draw(s, ELEMENTSOF(rules))];
        for (size_t i = 0; i < MACHINES; i++) {
                AgentConfig *c = &s->w->machines[i].agent->agent_config;

                for (size_t k = 0; k < _NOTICE_KIND_MAX && r >= 0; k++)
                        r = of[k] ? free_and_strdup(&c->policy[k], of[k]) : 0;
                if (r >= 0)
                        r = free_and_strdup(&c->policy_reboot, of_reboots);
                assert(r >= 0);
        }
        for (size_t k = 0; k < _NOTICE_KIND_MAX && r >= 0; k++) {
                if (!of[k])
                        continue;
                sim_trace_add(s->w->trace, "world", "[Policy] %s: %s", notice_kind_to_string((NoticeKind) k), of[k]);
                r = policy_rule_parse(of[k], &s->policy.rules[k], &expected);
        }
        if (r >= 0 && of_reboots) {
                sim_trace_add(s->w->trace, "world", "[Policy] Reboot=%s", of_reboots);
                s->policy.has_reboot = true;
                r = policy_rule_parse(of_reboots, &s->policy.reboot, &expected);
        }
        assert(r >= 0);
}

/* Agents read their configuration when they start. */
static void equip(SimNotices *s) {
        draw_policy(s);
        for (size_t i = 0; i < MACHINES; i++) {
                SimMachine *m = &s->w->machines[i];
                _cleanup_free_ char *path = MUST(strf("/proc/self/fd/%d/%s.json", s->fd, m->node));
                int r = free_and_strdup(&m->agent->agent_config.file_path, path);

                assert(r >= 0);
                fake_imds_set_text(m->imds, FAKE_IMDS_LIFECYCLE, "InService");
                m->has_event = true;
                sim_process_kill(m->agent, (1 + i) * 100 * USEC_PER_MSEC);
        }
        s->w->notices = s;
}

static void make_directory(SimNotices *s) {
        int fd;

        strcpy(s->directory, "/tmp/sim-notices-XXXXXX");
        if (!mkdtemp(s->directory))
                assert(false && "no directory in /tmp");
        fd = open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert(fd >= 0);
        s->fd = fcntl(fd, F_DUPFD_CLOEXEC, DIRECTORY_FD);
        assert(s->fd >= 0);
        close(fd);
}

static void scene_done(SimNotices *s) {
        for (size_t i = 0; i < MACHINES; i++) {
                put_file(s, i, NULL);
                forget_words(&s->targets[i]);
        }
        close(s->fd);
        (void) rmdir(s->directory);
        policy_settings_done(&s->policy);
        s->w->notices = NULL;
}

static bool is_all_over(SimNotices *s) {
        for (size_t i = 0; i < MACHINES; i++)
                if (sim_world_annotation(s->w, i, "vesper.sh/interruption") || sim_world_unschedulable(s->w, i) ||
                    !is_well(&s->w->machines[i]))
                        return false;
        return sim_world_pods_ready(s->w) == s->w->options.n_pods;
}

static bool end_all(SimNotices *s) {
        for (size_t i = 0; i < MACHINES; i++)
                take_back_all(s, i);
        return run(s, SPOT_OVER_USEC + 8 * MIN_USEC) && is_all_over(s);
}

/* Nobody is in anybody's way: each kind by its rule, one by one. */
static bool give_each(SimNotices *s, SimOutcome *o) {
        unsigned before = s->n_drained;

        for (Feed feed = 0; feed < _FEED_MAX; feed++) {
                size_t machine = feed % MACHINES;
                Word *word;

                o->where = "one of each is given";
                if (feed == FEED_EVENTS)
                        announce_event(s, machine);
                else if (feed == FEED_FILE)
                        announce_in_file(s, machine);
                else
                        announce_alone(s, machine, feed);
                if (!run(s, (feed == FEED_CAPACITY ? 6 : 3) * MIN_USEC))
                        return false;
                word = standing_in(s, machine, feed);
                if (word)
                        take_back(s, machine, word);
        }
        /* A scale-in has no time: what is to be drained for it is, at once. A world in which nothing happens shows nothing. */
        if (s->policy.rules[NOTICE_SCALE_IN].verb <= POLICY_BEFORE && s->n_drained == before)
                sim_check_fail(s->w->check, "one of each was given, and no node said that it is drained");
        o->where = "all of them are over";
        return end_all(s);
}

static uint64_t requests_allowed(const SimWorld *w) {
        return 1000 + (sim_world_now(w) / USEC_PER_MINUTE + 1) * 300;
}

static bool live(SimNotices *s, SimOutcome *o) {
        SimWorld *w = s->w;

        equip(s);
        o->where = "the world settles";
        if (!run(s, SETTLE_SEC * SEC) || !is_all_over(s))
                return false;
        sim_check_promise(w->check);

        o->where = "things happen";
        for (; o->n_entries < N_ACTS; o->n_entries++) {
                disturb(s);
                if (sim_world_violation(w) || !run(s, draw(s, 90000) * USEC_PER_MSEC))
                        return false;
        }

        o->where = "all comes to its end";
        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        for (size_t i = 0; i < MACHINES; i++)
                heal_metadata(s, i);
        if (!end_all(s) || !give_each(s, o))
                return false;
        return sim_check_quiet(w->check, requests_allowed(w));
}

void sim_notices_play(uint64_t seed, bool report, bool trace, SimOutcome *ret) {
        static const SimOptions options = {
                .n_nodes = MACHINES, .n_pods = 12, .pdb_min = 8, .stop_sec = 3, .grace_sec = 20, .n_agents = MACHINES, .no_pool = true,
        };
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions o = options;
        SimNotices s = { 0 };

        if (seed % 2) {
                o.no_pool = false;
                o.n_coordinators = 2;
                o.leave_interrupted = 1;
        }
        o.encoding = sim_world_draw_encoding(seed);
        o.latency = sim_world_draw_latency(seed);
        s.w = w = sim_world_new(seed, &o);
        make_directory(&s);
        *ret = (SimOutcome){ 0 };
        ret->good = live(&s, ret);
        sim_outcome_read(w, report, trace, ret);
        for (size_t i = 0; i < MACHINES; i++)
                sim_process_kill(w->machines[i].agent, USEC_INFINITY);
        scene_done(&s);
}
