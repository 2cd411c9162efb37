/* SPDX-License-Identifier: Apache-2.0 */
#include "intent-log.h"

#include "json.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define RECORD_NAME "intent.json"
#define RECORD_VERSION 1
#define SOON_USEC (50 * USEC_PER_MSEC)
#define BOOT_ID_BYTES_MAX 64u
/* A throttled disk may take so long for what a patient store does not wait for: nobody need get up for it.
 */
#define HANGS_USEC (2 * USEC_PER_SEC)

struct IntentLog {
        Env *env;
        IntentRecord record;
        Timer *timer;
        bool failing; /* the disk: said once */

        Timer *hangs;
        bool late;        /* the disk owes us an answer */
        usec_t late_usec; /* ... since then */
        bool said_hangs;
        bool unread;      /* what it owes us is the record: nothing is written over it */
        bool unwritten;   /* ... as soon as that came */
        bool unknown;     /* it could not be read: it may say more than we know of, until it is written */
        char **forgotten; /* ... though the record may have them */
        void (*on_late)(void *userdata);
        void *userdata;
};

static const char *const phase_table[_INTENT_PHASE_MAX] = {
        [INTENT_CORDONED] = "Cordoned",
        [INTENT_DRAINING] = "Draining",
        [INTENT_DRAINED] = "Drained",
        [INTENT_RELEASED] = "Released",
};

const char *intent_phase_to_string(IntentPhase p) {
        return p >= 0 && p < _INTENT_PHASE_MAX ? phase_table[p] : NULL;
}

IntentPhase intent_phase_from_string(const char *s) {
        for (size_t i = 0; s && i < ELEMENTSOF(phase_table); i++)
                if (streq(s, phase_table[i]))
                        return (IntentPhase) i;
        return _INTENT_PHASE_INVALID;
}

/* -- the record --------------------------------------------------------------------------------- */

static void record_clear(IntentRecord *r) {
        for (size_t i = 0; i < r->n_items; i++)
                notice_free(r->items[i].notice);
        r->n_items = 0;
}

void intent_record_done(IntentRecord *r) {
        record_clear(r);
        r->items = mfree(r->items);
        r->boot_id = mfree(r->boot_id);
}

static int parse_intent(const Json *o, Intent *ret) {
        _cleanup_(notice_freep) Notice *n = NULL;
        IntentPhase phase = intent_phase_from_string(json_string_or_null(json_get(o, "phase")));
        const Json *since = json_get(o, "since");
        usec_t since_usec = 0;
        int r;

        if (phase < 0)
                return -EINVAL;
        r = notice_from_json(o, &n);
        if (r < 0)
                return r;
        if (since && json_parse_rfc3339(since, &since_usec) < 0)
                return -EINVAL;
        *ret = (Intent){ .notice = TAKE_PTR(n), .phase = phase, .since_usec = since_usec };
        return 0;
}

static int parse_intents(const Json *list, IntentRecord *record) {
        int r;

        if (!json_is_array(list) || json_size(list) > INTENTS_MAX)
                return -EINVAL;
        record->items = new0(Intent, INTENTS_MAX);
        if (!record->items)
                return -ENOMEM;
        JSON_FOREACH (o, list) {
                r = parse_intent(o, &record->items[record->n_items]);
                if (r < 0)
                        return r;
                record->n_items++;
        }
        return 0;
}

int intent_record_parse(const char *data, size_t size, IntentRecord *ret) {
        _cleanup_(intent_record_done) IntentRecord record = { 0 };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *boot_id;
        int64_t version;
        int r;

        assert(ret);
        r = json_parse(data, size, STATE_RECORD_MAX_BYTES, &doc, NULL);
        if (r < 0)
                return r;
        if (json_int64(json_get(json_root(doc), "version"), &version) < 0 || version < 1)
                return -EINVAL;
        if (version > RECORD_VERSION)
                return -ENOTSUP;

        boot_id = json_string_or_null(json_get(json_root(doc), "bootID"));
        if (isempty(boot_id) || strlen(boot_id) > BOOT_ID_BYTES_MAX)
                return -EINVAL;
        r = free_and_strdup(&record.boot_id, boot_id);
        if (r < 0)
                return r;
        r = parse_intents(json_get(json_root(doc), "notices"), &record);
        if (r < 0)
                return r;

        *ret = record;
        record = (IntentRecord){ 0 };
        return 0;
}

char *intent_record_format(const IntentRecord *r) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char text[RFC3339_MAX];

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_int64(w, "version", RECORD_VERSION);
        json_add_string(w, "bootID", r->boot_id);
        json_open_array(w, "notices");
        for (size_t i = 0; i < r->n_items; i++) {
                json_open_object(w, NULL);
                notice_to_json(r->items[i].notice, w);
                json_add_string(w, "phase", intent_phase_to_string(r->items[i].phase));
                if (r->items[i].since_usec > 0) {
                        rfc3339_format(r->items[i].since_usec, text);
                        json_add_string(w, "since", text);
                }
                json_close_object(w);
        }
        json_close_array(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* -- the notices in memory ---------------------------------------------------------------------- */

static Intent *find(const IntentRecord *r, const char *id) {
        for (size_t i = 0; i < r->n_items; i++)
                if (streq(r->items[i].notice->id, id))
                        return &r->items[i];
        return NULL;
}

static void drop(IntentRecord *r, Intent *i) {
        Intent *end = r->items + r->n_items--;

        notice_free(i->notice);
        memmove(i, i + 1, (size_t) (end - i - 1) * sizeof(Intent));
}

/* The record of before; what is known of a notice since is newer, but a shutdown has no more time than was
 * given out first. A full log forgets its oldest. What is left out here must go from the disk, too: a
 * restart would bring it back. */
static void take_in(IntentLog *l, IntentRecord *before) {
        size_t n_before = before->n_items;

        for (size_t i = before->n_items; i-- > 0;) {
                const Notice *n = before->items[i].notice;
                bool forgotten = strv_contains(l->forgotten, n->id);
                Intent *newer = find(&l->record, n->id);

                if (newer && !forgotten && n->kind == NOTICE_SHUTDOWN)
                        newer->notice->deadline_usec =
                                MIN(newer->notice->deadline_usec,
                                    notice_deadline_by(n, newer->notice->booted_usec));
                if (newer || forgotten)
                        drop(before, &before->items[i]);
        }
        while (before->n_items + l->record.n_items > INTENTS_MAX)
                drop(before, before->items);
        l->unwritten |= before->n_items < n_before;
        memmove(l->record.items + before->n_items, l->record.items, l->record.n_items * sizeof(Intent));
        for (size_t i = 0; i < before->n_items; i++)
                l->record.items[i] = before->items[i];
        l->record.n_items += before->n_items;
        before->n_items = 0;
}

/* -- the disk ----------------------------------------------------------------------------------- */

#define WITHOUT_RECORD \
        "should the agent be restarted before this machine ends, it knows only what the Node's annotation " \
        "says"

static void on_hangs(Timer *t, void *userdata) {
        IntentLog *l = userdata;

        l->said_hangs = true;
        if (l->unread)
                log_warning(l->env->log, "The disk under StateDirectory= hangs: the intent log cannot be "
                                         "read, going on without it. "
                                         "What was under way is taken from the Node's annotation; a notice "
                                         "that a person overruled "
                                         "may be acted upon again. What it says is taken in when the disk "
                                         "answers. If it does not, "
                                         "look at the disk ('journalctl -k'); a drain does not need it.");
        else
                log_warning(l->env->log,
                            "The disk under StateDirectory= hangs: the intent log is not written. The drain "
                            "goes on; " WITHOUT_RECORD ". It is written when the disk answers. If it does "
                            "not, look at the disk ('journalctl -k').");
}

static void disk_owes(IntentLog *l, usec_t say_usec) {
        if (l->late)
                return;
        l->late = true;
        l->late_usec = loop_now(l->env->loop);
        timer_arm_in(l->hangs, say_usec);
}

/* then: what came of what it owed. */
static void disk_answered(IntentLog *l, const char *then) {
        char text[DURATION_MAX];

        timer_disarm(l->hangs);
        if (l->said_hangs)
                log_notice(l->env->log,
                           "The disk under StateDirectory= answers again, after %s: the intent log %s.",
                           duration_format(usec_sub(loop_now(l->env->loop), l->late_usec), text), then);
        l->late = l->said_hangs = false;
}

static const char *write_outcome(int r) {
        return r >= 0 ? "is written" : "cannot be written";
}

static void written(IntentLog *l, int r) {
        if (r >= 0)
                l->unknown = false;
        if (r < 0 && !l->failing)
                log_warning_errno(l->env->log, r,
                                  "Failed to write the intent log: %m. The drain goes on; " WITHOUT_RECORD
                                  ".");
        else if (r >= 0 && l->failing)
                log_notice(l->env->log, "The intent log can be written again.");
        l->failing = r < 0;
}

static void intent_log_write(IntentLog *l) {
        _cleanup_free_ char *text = NULL;
        int r;

        timer_disarm(l->timer);
        if (!l->env->state)
                return;
        l->unwritten = l->unread;
        if (l->unread)
                return;
        text = intent_record_format(&l->record);
        if (!text) {
                written(l, -ENOMEM); /* what the disk owes, it still does */
                return;
        }
        r = state_store_write(l->env->state, RECORD_NAME, text, strlen(text));
        if (r == STATE_LATE) {
                disk_owes(l, HANGS_USEC);
                return;
        }
        if (l->late)
                disk_answered(l, write_outcome(r));
        written(l, r);
}

static void on_timer(Timer *t, void *userdata) {
        intent_log_write(userdata);
}

static void intent_log_parse(IntentLog *l, int r, const char *text, size_t size) {
        _cleanup_(intent_record_done) IntentRecord record = { 0 };

        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = intent_record_parse(text, size, &record);
        if (r < 0) {
                l->unknown = true;
                log_warning_errno(
                        l->env->log, r,
                        "The intent log cannot be read, going on without it: %m. What was under way is "
                        "taken from the "
                        "Node's annotation; a notice that a person overruled may be acted upon again.");
                return;
        }
        if (!streq(record.boot_id, l->record.boot_id)) {
                log_debug(l->env->log, "The intent log is of an earlier boot, ignoring");
                return;
        }
        take_in(l, &record);
}

static void intent_log_read(IntentLog *l) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = state_store_read(l->env->state, RECORD_NAME, &text, &size);
        l->unread = r == STATE_LATE;
        if (l->unread)
                disk_owes(l, 0);
        else
                intent_log_parse(l, r, text, size);
}

static void on_settled(const StateSettled *s, void *userdata) {
        IntentLog *l = userdata;

        if (s->call != STATE_READ) {
                disk_answered(l, write_outcome(s->result));
                written(l, s->result);
                return;
        }
        disk_answered(l, s->result >= 0 ? "is read" : s->result == -ENOENT ? "is empty" : "cannot be read");
        l->unread = false;
        intent_log_parse(l, s->result, s->data, s->size);
        l->unwritten |= l->unknown && l->forgotten; /* it may be read after all, by the next life */
        l->forgotten = strv_free(l->forgotten);
        if (l->unwritten)
                intent_log_write(l);
        if (l->on_late)
                l->on_late(l->userdata);
}

void intent_log_on_late(IntentLog *l, void (*fn)(void *userdata), void *userdata) {
        l->on_late = fn;
        l->userdata = userdata;
}

int intent_log_new(Env *env, IntentLog **ret) {
        _cleanup_(intent_log_freep) IntentLog *l = NULL;
        int r;

        assert(env && env->boot_id && ret);
        l = new0(IntentLog, 1);
        if (!l)
                return -ENOMEM;

        l->env = env;
        l->record.items = new0(Intent, INTENTS_MAX);
        if (!l->record.items || free_and_strdup(&l->record.boot_id, env->boot_id) < 0)
                return -ENOMEM;
        r = timer_new(env->loop, "intent-log", on_timer, l, &l->timer);
        if (r >= 0)
                r = timer_new(env->loop, "intent-log-hangs", on_hangs, l, &l->hangs);
        if (r < 0)
                return r;
        if (env->state) {
                state_store_on_settled(env->state, on_settled, l);
                intent_log_read(l);
        }

        *ret = TAKE_PTR(l);
        return 0;
}

IntentLog *intent_log_free(IntentLog *l) {
        if (!l)
                return NULL;
        if (l->env->state)
                state_store_on_settled(l->env->state, NULL, NULL);
        timer_free(l->hangs);
        timer_free(l->timer);
        strv_free(l->forgotten);
        intent_record_done(&l->record);
        return mfree(l);
}

/* -- the notices -------------------------------------------------------------------------------- */

const Intent *intent_log_find(const IntentLog *l, const char *id) {
        return find(&l->record, id);
}

const Intent *intent_log_find_if(const IntentLog *l, bool (*over)(const Intent *i, void *userdata),
                                 void *userdata) {
        for (size_t i = 0; i < l->record.n_items; i++)
                if (over(&l->record.items[i], userdata))
                        return &l->record.items[i];
        return NULL;
}

/* Memory only. A full log forgets its oldest. */
static int keep(IntentLog *l, const Notice *n, IntentPhase phase, usec_t since_usec) {
        _cleanup_(notice_freep) Notice *copy = NULL;
        Intent *i = find(&l->record, n->id);
        int r;

        r = notice_copy(n, &copy);
        if (r < 0)
                return r;
        if (!i) {
                if (l->record.n_items == INTENTS_MAX)
                        drop(&l->record, l->record.items);
                i = &l->record.items[l->record.n_items++];
                *i = (Intent){ 0 };
        }
        notice_free(i->notice);
        *i = (Intent){ .notice = TAKE_PTR(copy), .phase = phase, .since_usec = since_usec };
        return 0;
}

void intent_log_note(IntentLog *l, const Notice *n, IntentPhase phase, usec_t since_usec) {
        int r = keep(l, n, phase, since_usec);

        if (r < 0)
                log_warning_errno(l->env->log, r, "Failed to note notice %s in the intent log, going on: %m",
                                  n->id);
        else
                intent_log_write(l);
}

void intent_log_note_soon(IntentLog *l, const Notice *n, IntentPhase phase, usec_t since_usec) {
        int r = keep(l, n, phase, since_usec);

        if (r < 0)
                log_warning_errno(l->env->log, r, "Failed to note notice %s in the intent log, going on: %m",
                                  n->id);
        else
                timer_arm_earlier(l->timer, usec_add(loop_now(l->env->loop), SOON_USEC));
}

void intent_log_forget(IntentLog *l, const char *id) {
        Intent *i = find(&l->record, id);

        /* For want of memory it comes back, and goes when its source says that it is over. */
        if (l->unread)
                (void) strv_extend(&l->forgotten, id);
        if (!i && !l->unknown)
                return;
        if (i)
                drop(&l->record, i);
        intent_log_write(l);
}
