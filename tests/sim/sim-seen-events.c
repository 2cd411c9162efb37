/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of Events: the object of each Event exists or existed, the Event's count and times only grow, and
 * each occurrence is reported once. */
#include "sim-seen-internal.h"

#include <inttypes.h>

#include "fake-controllers.h"

/* Limit until which an Event is written. Events wait for their turn in the background, and "Drained" waits 5
 * s more. */
#define REPORTED_USEC SIM_SEEN_LAG_USEC

/* Reasons of Events that each leader reports once for each object. */
static const char *const once[] = { "TerminationStarted", "InstanceTerminated", "DeadlinePassed",
                                    "Evicted" };

/* Sum of the counts of one object's Events of one reason. */
typedef struct EventCount {
        int64_t n;
} EventCount;

/* -- objects ----------------------------------------------------------------------------------- */

void sim_seen_note_object(SimObserver *o, const FakeChange *change) {
        const cJSON *new = fake_version_json(change->new);
        const char *uid = fj_string(new, "metadata", "uid", NULL);
        char *text;
        int r;

        if (!uid || hashmap_contains(o->uids, uid))
                return;
        text = MUST(strf("%s %s", change->resource->kind, fj_string(new, "metadata", "name", NULL)));
        r = hashmap_put(o->uids, uid, text);
        assert(r >= 0);
}

static void _printf_(3, 4) event_is_wrong(SimObserver *o, const cJSON *event, const char *fmt, ...) {
        _cleanup_free_ char *by = MUST(strf("Event %s of %s '%s' ", fj_string(event, "reason", NULL),
                                            strempty(fj_string(event, "involvedObject", "name", NULL)),
                                            strempty(fj_string(event, "message", NULL))));
        va_list ap;

        va_start(ap, fmt);
        sim_check_broken_by(o->check, "seen", by, fmt, ap);
        va_end(ap);
}

static void check_object(SimObserver *o, const cJSON *event) {
        const char *uid = strempty(fj_string(event, "involvedObject", "uid", NULL)),
                *is = hashmap_get(o->uids, uid);
        _cleanup_free_ char *said = MUST(strf("%s %s",
                                              strempty(fj_string(event, "involvedObject", "kind", NULL)),
                                              strempty(fj_string(event, "involvedObject", "name", NULL))));

        if (!is)
                event_is_wrong(o, event, "names uid '%s', which no object has or had", uid);
        else if (!streq(is, said))
                event_is_wrong(o, event, "names uid %s, which is %s", uid, is);
}

/* -- count and times --------------------------------------------------------------------------- */

static usec_t time_of(const cJSON *event, const char *field) {
        usec_t at;

        return rfc3339_parse(strempty(fj_string(event, field, NULL)), &at) >= 0 ? at : 0;
}

static void check_count(SimObserver *o, const SimProcess *by, const cJSON *old, const cJSON *new) {
        int64_t was = fj_int(old, 0, "count", NULL), is = fj_int(new, 0, "count", NULL);
        usec_t first = time_of(new, "firstTimestamp"), last = time_of(new, "lastTimestamp");

        if (old ? is <= was : is != 1)
                event_is_wrong(o, new, "has a count of %" PRId64 " after %" PRId64, is, was);
        if (first == 0 || last < first ||
            last > usec_add(sim_world_wall(o->check->world), by->clock_ahead_usec) + USEC_PER_SEC)
                event_is_wrong(o, new, "is from %s to %s", strempty(fj_string(new, "firstTimestamp", NULL)),
                               strempty(fj_string(new, "lastTimestamp", NULL)));
        if (old && (first != time_of(old, "firstTimestamp") || last < time_of(old, "lastTimestamp")))
                event_is_wrong(o, new, "was from %s to %s before",
                               strempty(fj_string(old, "firstTimestamp", NULL)),
                               strempty(fj_string(old, "lastTimestamp", NULL)));
}

/* -- how often --------------------------------------------------------------------------------- */

static EventCount *count_of(SimObserver *o, const char *reason, const char *uid, const char *life) {
        _cleanup_free_ char *key = MUST(strf("%s %s %s", reason, uid, life));

        return sim_check_entry(o->told, key, sizeof(EventCount));
}

static bool is_reported_once(const char *reason) {
        for (size_t i = 0; i < ELEMENTSOF(once); i++)
                if (streq(reason, once[i]))
                        return true;
        return false;
}

/* Checks that no Event is repeated. Not after a restore of etcd: then the same things happen again. */
static void check_repeats(SimObserver *o, const SimProcess *by, const cJSON *old, const cJSON *new) {
        const char *reason = strempty(fj_string(new, "reason", NULL)),
                *uid = strempty(fj_string(new, "involvedObject", "uid", NULL));
        int64_t more = fj_int(new, 0, "count", NULL) - fj_int(old, 0, "count", NULL);
        _cleanup_free_ char *life = MUST(strf("%s %u %u", by->name, by->life->number, by->life->term));
        EventCount *of_life = count_of(o, reason, uid, life);

        of_life->n += more;
        if (of_life->n > 1 && is_reported_once(reason) && !o->check->world->was_restored &&
            sim_seen_counts(o, by->life)->is_exact)
                event_is_wrong(o, new, "is reported %" PRId64 " times, and has happened once", of_life->n);
}

/* -- times in texts ---------------------------------------------------------------------------- */

static bool is_near(usec_t a, usec_t b) {
        return a != USEC_INFINITY && b != USEC_INFINITY && MAX(a, b) - MIN(a, b) <= USEC_PER_SEC;
}

/* Returns true if a notice or a person set this deadline, or the NodeClaim's grace period ends then. */
static bool is_time_of(SimObserver *o, const SimMachine *m, usec_t at) {
        SimWorld *w = o->check->world;
        const cJSON *claim = sim_world_claim(w, sim_check_index(o->check, m));
        usec_t deleted;

        for (size_t i = 0; i < m->n_told; i++)
                if (is_near(m->told_usec[i], at))
                        return true;
        if (rfc3339_parse(strempty(fj_string(claim, "metadata", "deletionTimestamp", NULL)),
                          &deleted) >= 0 &&
            is_near(deleted + w->options.tgp_sec * USEC_PER_SEC, at))
                return true;
        return is_near(m->deadline_usec, at) || is_near(m->forced_usec, at);
}

/* Checks the deadline in the Event's text. Only in worlds in which spot notices, people and the grace period
 * alone set deadlines. */
static void check_deadline(SimObserver *o, const cJSON *event) {
        const SimWorld *w = o->check->world;
        const char *at = strstr(strempty(fj_string(event, "message", NULL)), "goes at ");
        const SimMachine *m = sim_world_machine_of(o->check->world,
                                                   strempty(fj_string(event, "involvedObject", "name",
                                                                      NULL)));
        _cleanup_free_ char *text = NULL;
        usec_t said;

        if (!at || !m || w->queue || w->notices || m->power || m->has_event || w->was_restored ||
            !sim_check_was_calm(o->check, REPORTED_USEC))
                return;
        at += strlen("goes at ");
        text = MUST(memdup_str(at, strcspn(at, " ,;.")));
        if (rfc3339_parse(text, &said) < 0)
                event_is_wrong(o, event, "has no time that can be read");
        else if (!is_time_of(o, m, said))
                event_is_wrong(o, event, "names a time that nobody has set for %s", m->node);
}

void sim_seen_event_written(SimObserver *o, const cJSON *old, const cJSON *new) {
        const SimProcess *by = sim_seen_actor(o);

        if (!by || !new)
                return;
        check_object(o, new);
        check_count(o, by, old, new);
        check_repeats(o, by, old, new);
        check_deadline(o, new);
}

/* -- removals that are complete ---------------------------------------------------------------- */

void sim_seen_removal_ended(SimObserver *o, const SimLife *l, const cJSON *node) {
        _cleanup_free_ char *life = MUST(strf("%s %u %u", l->process->name, l->number, l->term));
        SimEnded *e;
        int r;

        r = GREEDY_REALLOC(o->ended, o->ended_allocated, o->n_ended + 1);
        assert(r >= 0);
        e = o->ended + o->n_ended++;
        *e = (SimEnded){ .uid = MUST(strdup(fj_string(node, "metadata", "uid", NULL))),
                         .node = MUST(strdup(fj_string(node, "metadata", "name", NULL))),
                         .life = TAKE_PTR(life),
                         .at_usec = sim_world_now(o->check->world),
                         .counts = sim_seen_counts(o, l) };
}

/* Checks that the completed removal has an Event TerminationStarted. Only if no other process took the
 * removal over, and no Event was lost. */
static void check_ended(SimObserver *o, const SimEnded *e) {
        if (e->counts->is_exact && !o->check->world->was_restored &&
            count_of(o, "TerminationStarted", e->uid, e->life)->n == 0)
                sim_check_broken(o->check, "seen",
                                 "Event TerminationStarted of %s is missing, whose removal ended %" PRIu64 " s ago",
                                 e->node,
                                 (sim_world_now(o->check->world) - e->at_usec) / USEC_PER_SEC);
}

void sim_seen_ended_done(SimEnded *e) {
        free(e->uid);
        free(e->node);
        free(e->life);
}

void sim_seen_look_at_events(SimObserver *o) {
        usec_t now = sim_world_now(o->check->world);

        while (o->n_ended > 0 && now > o->ended[0].at_usec + REPORTED_USEC) {
                check_ended(o, o->ended);
                sim_seen_ended_done(o->ended);
                memmove(o->ended, o->ended + 1, --o->n_ended * sizeof(SimEnded));
        }
}
