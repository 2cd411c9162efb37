/* SPDX-License-Identifier: Apache-2.0 */
#include "intent-log.h"

#include "json.h"
#include "log.h"
#include "string-util.h"

#define RECORD_NAME "intent.json"
#define RECORD_VERSION 1
#define BOOT_ID_BYTES_MAX 64u
struct IntentLog {
        Env *env;
        IntentRecord record;
        bool failing; /* writing the record: said once */
        bool unknown; /* the record could not be read: it may say more than we know of, until it is written */
};

static const InterruptionPhase phase_table[_INTENT_PHASE_MAX] = {
        [INTENT_CORDONED] = INTERRUPTION_CORDONED, [INTENT_DRAINING] = INTERRUPTION_DRAINING, [INTENT_DRAINED] = INTERRUPTION_DRAINED,
        [INTENT_RELEASED] = INTERRUPTION_RELEASED, [INTENT_OVER] = INTERRUPTION_PHASE_NONE,
};

InterruptionPhase intent_phase_to_interruption(IntentPhase p) {
        assert(p >= 0 && p < _INTENT_PHASE_MAX);
        return phase_table[p];
}

IntentPhase intent_phase_of_interruption(InterruptionPhase p) {
        for (size_t i = 0; i < INTENT_OVER; i++)
                if (phase_table[i] == p)
                        return (IntentPhase) i;
        return _INTENT_PHASE_INVALID;
}

static const char *phase_to_string(IntentPhase p) {
        return p == INTENT_OVER ? "CordonOver" : interruption_phase_to_string(intent_phase_to_interruption(p));
}

static IntentPhase phase_from_string(const char *s) {
        return streq_ptr(s, "CordonOver") ? INTENT_OVER : intent_phase_of_interruption(interruption_phase_from_string(s));
}

/* -- the record --------------------------------------------------------------------------------- */

void intent_record_done(IntentRecord *r) {
        for (size_t i = 0; i < r->n_items; i++)
                notice_free(r->items[i].notice);
        r->n_items = 0;
        r->items = mfree(r->items);
        r->boot_id = mfree(r->boot_id);
}

static int parse_intent(const Json *o, Intent *ret) {
        _cleanup_(notice_freep) Notice *n = NULL;
        IntentPhase phase = phase_from_string(json_string_or_null(json_get(o, "phase")));
        const Json *since = json_get(o, "since");
        usec_t since_usec = 0;
        int r;

        if (phase < 0)
                return -EINVAL;
        r = notice_from_json(o, &n);
        if (r < 0)
                return r;
        if (!notice_is_complete(n))
                return -EINVAL;
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

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_int64(w, "version", RECORD_VERSION);
        json_add_string(w, "bootID", r->boot_id);
        json_open_array(w, "notices");
        for (size_t i = 0; i < r->n_items; i++) {
                json_open_object(w, NULL);
                notice_to_json(r->items[i].notice, w);
                json_add_string(w, "phase", phase_to_string(r->items[i].phase));
                json_add_time(w, "since", r->items[i].since_usec);
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

/* -- the record in the store -------------------------------------------------------------------- */

static void intent_log_write(IntentLog *l) {
        _cleanup_free_ char *text = NULL;
        int r;

        if (!l->env->state)
                return;
        text = intent_record_format(&l->record);
        r = text ? state_store_write(l->env->state, RECORD_NAME, text, strlen(text)) : -ENOMEM;
        if (r >= 0)
                l->unknown = false;
        if (r < 0 && !l->failing)
                log_warning_errno(l->env->log, r,
                                  "Failed to write the intent log: %m. "
                                  "The drain goes on; should the agent be restarted before this machine ends, it knows only what the Node's annotation says.");
        else if (r >= 0 && l->failing)
                log_notice(l->env->log, "The intent log can be written again.");
        l->failing = r < 0;
}

static void intent_log_read(IntentLog *l) {
        _cleanup_(intent_record_done) IntentRecord record = { 0 };
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = state_store_read(l->env->state, RECORD_NAME, &text, &size);
        if (r == -ENOENT)
                return;
        if (r >= 0)
                r = intent_record_parse(text, size, &record);
        if (r < 0) {
                l->unknown = true;
                log_warning_errno(
                        l->env->log, r,
                        "The intent log cannot be read, continuing without it: %m. "
                        "What was under way is taken from the Node's annotation; a notice that a person overruled may be acted upon again.");
                return;
        }
        if (!streq(record.boot_id, l->record.boot_id)) {
                log_debug(l->env->log, "The intent log is of an earlier boot, ignoring");
                return;
        }
        intent_record_done(&l->record);
        l->record = record;
        record = (IntentRecord){ 0 };
}

int intent_log_new(Env *env, IntentLog **ret) {
        _cleanup_(intent_log_freep) IntentLog *l = NULL;

        assert(env && env->boot_id && ret);
        l = new0(IntentLog, 1);
        if (!l)
                return -ENOMEM;

        l->env = env;
        l->record.items = new0(Intent, INTENTS_MAX);
        if (!l->record.items || free_and_strdup(&l->record.boot_id, env->boot_id) < 0)
                return -ENOMEM;
        if (env->state)
                intent_log_read(l);

        *ret = TAKE_PTR(l);
        return 0;
}

IntentLog *intent_log_free(IntentLog *l) {
        if (!l)
                return NULL;
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

/* One whose cordon is over, should there be any: a second cordon does less harm than a drain that a person has overruled. */
static Intent *least(IntentRecord *r) {
        for (size_t i = 0; i < r->n_items; i++)
                if (r->items[i].phase == INTENT_OVER)
                        return &r->items[i];
        return r->items;
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
                        drop(&l->record, least(&l->record));
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
                log_warning_errno(l->env->log, r, "Failed to note notice %s in the intent log, continuing: %m",
                                  n->id);
        else
                intent_log_write(l);
}

void intent_log_forget(IntentLog *l, const char *id) {
        Intent *i = find(&l->record, id);

        if (!i && !l->unknown)
                return;
        if (i)
                drop(&l->record, i);
        intent_log_write(l);
}
