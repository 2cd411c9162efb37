/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption.h"

#include "string-util.h"

#define BYTES_MAX (16u * 1024u)
#define PHASE_BYTES_MAX 64u
#define BLOCKER_BYTES_MAX 400u /* two names of 253 bytes at the most, of which one is a namespace's of 63 */

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

/* Names of Kubernetes' objects and keys of their annotations: a kubelet may write anything here, and people read it on a terminal. */
static bool is_plain(const char *s) {
        return !isempty(s) && strlen(s) <= BLOCKER_BYTES_MAX &&
               s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/:=")] == 0;
}

int interruption_blocker_fill(InterruptionBlocker *ret, const char *pod, const char *reason, const char *detail) {
        *ret = (InterruptionBlocker){};
        if (!is_plain(pod) || !strchr(pod, '/') || !is_plain(reason))
                return -EBADMSG;
        ret->pod = strdup(pod);
        ret->reason = strdup(reason);
        ret->detail = strdup(is_plain(detail) ? detail : "");
        if (ret->pod && ret->reason && ret->detail)
                return 0;
        interruption_blocker_done(ret);
        return -ENOMEM;
}

void interruption_blocker_done(InterruptionBlocker *b) {
        free(b->pod);
        free(b->reason);
        free(b->detail);
        *b = (InterruptionBlocker){};
}

Interruption *interruption_free(Interruption *i) {
        if (!i)
                return NULL;
        for (size_t k = 0; k < i->n_blockers; k++)
                interruption_blocker_done(i->blockers + k);
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

static int read_blocker(const Json *o, Interruption *i) {
        int r;

        if (i->n_blockers >= INTERRUPTION_BLOCKERS_MAX)
                return 0;
        r = interruption_blocker_fill(i->blockers + i->n_blockers, json_string_or_null(json_get(o, "pod")),
                                      json_string_or_null(json_get(o, "reason")), json_string_or_null(json_get(o, "detail")));
        i->n_blockers += r >= 0;
        return r == -ENOMEM ? r : 0;
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
        JSON_FOREACH(b, json_get(o, "blockedBy")) {
                r = json_is_object(b) ? read_blocker(b, i) : 0;
                if (r < 0)
                        return r;
        }
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

static void write_blockers(JsonWriter *w, const InterruptionBlocker *b, size_t n) {
        json_open_array(w, "blockedBy");
        for (size_t i = 0; i < n && i < INTERRUPTION_BLOCKERS_MAX; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "pod", b[i].pod);
                json_add_string(w, "reason", b[i].reason);
                if (!isempty(b[i].detail))
                        json_add_string(w, "detail", b[i].detail);
                json_close_object(w);
        }
        json_close_array(w);
}

char *interruption_format_held(const Notice *n, InterruptionPhase phase, size_t pods_left, const char *boot_id, const InterruptionBlocker *b,
                               size_t n_blockers) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        notice_to_json(n, w);
        json_add_string(w, "phase", interruption_phase_to_string(phase));
        if (phase != INTERRUPTION_RELEASED)
                json_add_int64(w, "podsLeft", (int64_t) pods_left);
        json_add_string(w, "bootID", boot_id);
        if (n_blockers > 0)
                write_blockers(w, b, n_blockers);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *interruption_format(const Notice *n, InterruptionPhase phase, size_t pods_left, const char *boot_id) {
        return interruption_format_held(n, phase, pods_left, boot_id, NULL, 0);
}

bool interruption_delete_counts(InterruptionDelete d, const Notice *n) {
        switch (d) {
        case INTERRUPTION_DELETE_NEVER:
                break;
        case INTERRUPTION_DELETE_TERMINATE:
                return notice_ends_for_good(n);
        case INTERRUPTION_DELETE_ALWAYS:
                return notice_ends_machine(n) || (n->kind == NOTICE_MAINTENANCE && streq_ptr(n->source, NOTICE_SOURCE_QUEUE));
        }
        return false;
}

bool interruption_is_complete(const Interruption *i) {
        return notice_is_complete(i->notice) && i->phase != INTERRUPTION_PHASE_NONE && !isempty(i->boot_id);
}

bool interruption_is_overruled(const Interruption *i) {
        return i->phase == INTERRUPTION_RELEASED;
}

/* EC2 stops a retired instance that boots from EBS and terminates any other. The agent reports a stop, the queue an end. */
static bool is_retirement(const Notice *agents, const Notice *n) {
        return agents->kind == NOTICE_MAINTENANCE && n->kind == NOTICE_MAINTENANCE && notice_ends_machine(agents);
}

bool interruption_confirms(const Interruption *agents, const Notice *n) {
        static const bool is_of_cloud[_NOTICE_KIND_MAX] = {
                [NOTICE_SPOT] = true,
                [NOTICE_MAINTENANCE] = true,
                [NOTICE_SCALE_IN] = true,
                [NOTICE_CAPACITY_BLOCK] = true,
        };

        return agents && !interruption_is_over(agents) && agents->notice->kind >= 0 && is_of_cloud[agents->notice->kind] &&
               agents->notice->certainty == NOTICE_CERTAIN && (notice_rank(agents->notice) >= notice_rank(n) || is_retirement(agents->notice, n));
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
