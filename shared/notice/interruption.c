/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption.h"

#include "string-util.h"

#define BYTES_MAX (16u * 1024u)
#define PHASE_BYTES_MAX 64u
#define BOOT_ID_BYTES_MAX 64u

static const char *const phase_table[_INTERRUPTION_PHASE_MAX] = {
        [INTERRUPTION_PHASE_NONE] = "",
        [INTERRUPTION_PLANNED] = "Planned",
        [INTERRUPTION_CORDONED] = "Cordoned",
        [INTERRUPTION_DRAINING] = "Draining",
        [INTERRUPTION_VOLUMES] = "Volumes",
        [INTERRUPTION_DRAINED] = "Drained",
        [INTERRUPTION_ENDING] = "Ending",
        [INTERRUPTION_CANCELLED] = "Cancelled",
        [INTERRUPTION_RELEASED] = "Released",
        [INTERRUPTION_LATER] = "",
};

const char *interruption_phase_to_string(InterruptionPhase p) {
        return p < _INTERRUPTION_PHASE_MAX ? phase_table[p] : NULL;
}

InterruptionPhase interruption_phase_from_string(const char *s) {
        for (unsigned i = 0; i < INTERRUPTION_LATER; i++)
                if (streq(strempty(s), phase_table[i]))
                        return (InterruptionPhase) i;
        return INTERRUPTION_LATER;
}

Interruption *interruption_free(Interruption *i) {
        if (!i)
                return NULL;
        notice_free(i->notice);
        free(i->boot_id);
        return mfree(i);
}

typedef struct Members {
        char *phase, *boot_id;
        int64_t pods_left;
} Members;

static void members_done(Members *m) {
        free(m->phase);
        free(m->boot_id);
}

static int read_members(const Json *o, Interruption *i) {
        static const JsonField fields[] = {
                { "phase", json_parse_strdup, offsetof(Members, phase), false },
                { "podsLeft", json_parse_int64, offsetof(Members, pods_left), false },
                { "bootID", json_parse_strdup, offsetof(Members, boot_id), false },
        };
        _cleanup_(members_done) Members m = { .pods_left = -1 };
        int r;

        r = json_dispatch(o, fields, ELEMENTSOF(fields), &m, NULL);
        if (r >= 0)
                r = notice_from_json(o, &i->notice);
        if (r < 0)
                return r;
        if (!m.boot_id && !(m.boot_id = strdup("")))
                return -ENOMEM;
        if (strlen(strempty(m.phase)) > PHASE_BYTES_MAX || strlen(m.boot_id) > BOOT_ID_BYTES_MAX)
                return -EBADMSG;
        i->phase = interruption_phase_from_string(m.phase);
        i->pods_left = m.pods_left;
        i->boot_id = TAKE_PTR(m.boot_id);
        return 0;
}

int interruption_parse(const char *text, Interruption **ret) {
        _cleanup_(interruption_freep) Interruption *i = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        assert(text && ret);
        *ret = NULL;
        i = new0(Interruption, 1);
        if (!i)
                return -ENOMEM;
        r = json_parse(text, strlen(text), BYTES_MAX, &doc, NULL);
        if (r >= 0)
                r = json_is_object(json_root(doc)) ? read_members(json_root(doc), i) : -EBADMSG;
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        *ret = TAKE_PTR(i);
        return 0;
}

char *interruption_format(const Notice *n, InterruptionPhase phase, size_t pods_left, const char *boot_id) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        notice_to_json(n, w);
        json_add_string(w, "phase", interruption_phase_to_string(phase));
        json_add_int64(w, "podsLeft", (int64_t) pods_left);
        json_add_string(w, "bootID", boot_id);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *interruption_format_of_claim(const Notice *n) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        notice_to_json(n, w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

bool interruption_is_complete(const Interruption *i) {
        return notice_is_complete(i->notice) && i->phase != INTERRUPTION_PHASE_NONE && !isempty(i->boot_id);
}

bool interruption_is_overruled(const Interruption *i) {
        return i->phase == INTERRUPTION_RELEASED;
}

bool interruption_is_over(const Interruption *i) {
        return interruption_is_overruled(i) || i->phase == INTERRUPTION_CANCELLED;
}

bool interruption_is_draining(const Interruption *i) {
        switch (i->phase) {
        case INTERRUPTION_PLANNED:
        case INTERRUPTION_CORDONED:
        case INTERRUPTION_DRAINING:
        case INTERRUPTION_LATER:
                return true;
        case INTERRUPTION_PHASE_NONE:
        case INTERRUPTION_VOLUMES:
        case INTERRUPTION_DRAINED:
        case INTERRUPTION_ENDING:
        case INTERRUPTION_CANCELLED:
        case INTERRUPTION_RELEASED:
        case _INTERRUPTION_PHASE_MAX:
                break;
        }
        return false;
}

bool interruption_has_drained(const Interruption *i) {
        return i->phase == INTERRUPTION_DRAINED || i->phase == INTERRUPTION_ENDING;
}
