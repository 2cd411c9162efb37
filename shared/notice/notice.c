/* SPDX-License-Identifier: Apache-2.0 */
#include "notice.h"

#include "string-util.h"
#include "strv.h"

/* Bounds the memory and the log that an annotation of a stranger can fill. */
#define RESOURCE_BYTES_MAX 80u
/* A hundred years, exact in any reader of JSON. */
#define UPTIME_MAX_USEC (INT64_C(36525) * 24 * 3600 * 1000000)

static const char *const kind_table[_NOTICE_KIND_MAX] = {
        [NOTICE_SPOT] = "spot",
        [NOTICE_REBALANCE] = "rebalance",
        [NOTICE_MAINTENANCE] = "maintenance",
        [NOTICE_SCALE_IN] = "scale-in",
        [NOTICE_CAPACITY_BLOCK] = "capacity-block",
        [NOTICE_SHUTDOWN] = "shutdown",
        [NOTICE_MANUAL] = "manual",
};

static const char *const by_hand_table[_BY_HAND_MAX] = {
        [BY_HAND_DRAIN] = "drain",
        [BY_HAND_FORCE] = "force",
};

const char *notice_kind_to_string(NoticeKind k) {
        return k >= 0 && k < _NOTICE_KIND_MAX ? kind_table[k] : NULL;
}

NoticeKind notice_kind_from_string(const char *s) {
        for (size_t i = 0; s && i < ELEMENTSOF(kind_table); i++)
                if (streq(s, kind_table[i]))
                        return (NoticeKind) i;
        return _NOTICE_KIND_INVALID;
}

Notice *notice_free(Notice *n) {
        if (!n)
                return NULL;
        free(n->id);
        free(n->source);
        free(n->action);
        strv_free(n->resources);
        return mfree(n);
}

int notice_copy(const Notice *n, Notice **ret) {
        _cleanup_(notice_freep) Notice *copy = NULL;

        assert(n && n->id && ret);
        copy = new0(Notice, 1);
        if (!copy)
                return -ENOMEM;

        *copy = *n;
        copy->id = copy->source = copy->action = NULL;
        copy->resources = NULL;
        if (free_and_strdup(&copy->id, n->id) < 0 || free_and_strdup(&copy->source, n->source) < 0 ||
            free_and_strdup(&copy->action, n->action) < 0)
                return -ENOMEM;
        copy->resources = n->resources ? strv_copy(n->resources) : NULL;
        if (n->resources && !copy->resources)
                return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}

bool notice_waits_for_protected(const Notice *n) {
        assert(n);
        return n->kind == NOTICE_MANUAL && n->by_hand != BY_HAND_FORCE;
}

bool notice_ends_machine(const Notice *n) {
        assert(n);
        return streq_ptr(n->action, "terminate") || streq_ptr(n->action, "stop") ||
               streq_ptr(n->action, "hibernate");
}

bool notice_ends_for_good(const Notice *n) {
        assert(n);
        return streq_ptr(n->action, "terminate");
}

unsigned notice_rank(const Notice *n) {
        return notice_ends_for_good(n) ? 2 : notice_ends_machine(n) ? 1 : 0;
}

bool notice_outranks(const Notice *a, const Notice *b) {
        assert(a && b);
        return notice_rank(a) > notice_rank(b);
}

bool notice_is_complete(const Notice *n) {
        assert(n);
        return !isempty(n->id) && !isempty(n->source) && n->kind >= 0 && n->by_hand >= 0;
}

usec_t notice_announced(const Notice *n) {
        return n->announced_usec > 0 ? n->announced_usec : USEC_INFINITY;
}

usec_t notice_window_end(const Notice *n) {
        usec_t announced = notice_announced(n);

        return announced == USEC_INFINITY ? announced
                                          : MIN(MAX(n->until_usec, announced), usec_add(announced, NOTICE_WINDOW_MAX_USEC));
}

usec_t notice_own_deadline(const Notice *n) {
        return n->own_deadline_usec > 0 ? n->own_deadline_usec : n->deadline_usec;
}

static bool take_announced(Notice *known, const Notice *seen) {
        if (notice_announced(seen) >= notice_announced(known))
                return false;
        known->announced_usec = seen->announced_usec;
        return true;
}

static bool take_deadline(Notice *known, const Notice *seen) {
        if (known->deadline_usec == seen->deadline_usec && known->estimated == seen->estimated)
                return false;
        known->deadline_usec = seen->deadline_usec;
        known->estimated = seen->estimated;
        return true;
}

/* Returns true if seen only estimates a deadline that known has counted from a Date, and is announced for no earlier time. */
static bool knows_no_better(const Notice *seen, const Notice *known) {
        return seen->estimated && !known->estimated && notice_announced(seen) >= notice_announced(known);
}

bool notice_take_nearer(Notice *known, const Notice *seen) {
        bool nearer = seen->deadline_usec < known->deadline_usec && !knows_no_better(seen, known), changed = take_announced(known, seen);

        if (nearer)
                known->own_deadline_usec = notice_own_deadline(known);
        return (nearer && take_deadline(known, seen)) || changed;
}

bool notice_names_same(const Notice *a, const Notice *b) {
        size_t n = strv_length(a->resources);

        if (strv_length(b->resources) != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!streq(a->resources[i], b->resources[i]))
                        return false;
        return true;
}

/* 1: they are others now. */
static int take_resources(Notice *known, const Notice *seen) {
        char **copy;

        if (notice_names_same(known, seen))
                return 0;
        copy = seen->resources ? strv_copy(seen->resources) : NULL;
        if (seen->resources && !copy)
                return -ENOMEM;
        strv_free(known->resources);
        known->resources = copy;
        return 1;
}

int notice_merge(Notice *known, const Notice *seen, bool *ret_changed) {
        bool changed = false;
        int r;

        assert(known && seen && ret_changed && streq(known->id, seen->id));
        if (!streq_ptr(known->action, seen->action)) {
                r = free_and_strdup(&known->action, seen->action);
                if (r < 0)
                        return r;
                changed = true;
        }
        /* A deadline before the announced time came from another notice (notice_take_nearer()). */
        if (known->estimated && !seen->estimated && notice_announced(seen) <= notice_announced(known))
                changed = take_deadline(known, seen) || changed;
        else if (knows_no_better(seen, known))
                ;
        else if (seen->deadline_usec < known->deadline_usec)
                changed = take_deadline(known, seen) || changed;
        if (known->own_deadline_usec > 0)
                known->own_deadline_usec = seen->deadline_usec;
        changed = take_announced(known, seen) || changed;
        if (seen->not_before_usec != known->not_before_usec) {
                known->not_before_usec = seen->not_before_usec;
                changed = true;
        }
        r = take_resources(known, seen);
        if (r < 0)
                return r;
        changed = changed || r > 0;
        known->early = seen->early;
        *ret_changed = changed;
        return 0;
}

/* -- JSON --------------------------------------------------------------------------------------- */

void notice_to_json(const Notice *n, JsonWriter *w) {
        assert(n && w);
        json_add_string(w, "id", n->id);
        json_add_string(w, "kind", notice_kind_to_string(n->kind));
        json_add_string(w, "source", n->source);
        json_add_string(w, "action", n->action);
        json_add_time(w, "notBefore", n->not_before_usec);
        json_add_time(w, "deadline", n->announced_usec);
        json_add_time(w, "said", n->said_usec);
        json_add_time(w, "until", n->until_usec);
        json_add_time(w, "received", n->received_usec);
        if (n->deadline_usec != USEC_INFINITY)
                json_add_int64(w, "deadlineUptimeUsec", (int64_t) MIN(n->deadline_usec, (usec_t) UPTIME_MAX_USEC));
        if (n->own_deadline_usec > 0)
                json_add_int64(w, "ownDeadlineUptimeUsec", (int64_t) MIN(n->own_deadline_usec, (usec_t) UPTIME_MAX_USEC));
        if (n->estimated)
                json_add_bool(w, "estimated", true);
        if (n->certainty == NOTICE_ADVISORY)
                json_add_bool(w, "advisory", true);
        if (n->by_hand != BY_HAND_NONE)
                json_add_string(w, "byHand", by_hand_table[n->by_hand]);
        if (n->resources) {
                json_open_array(w, "resources");
                STRV_FOREACH (name, n->resources)
                        json_add_string(w, NULL, *name);
                json_close_array(w);
        }
}

static int parse_kind(const Json *v, void *target) {
        const char *text;
        int r;

        r = json_string(v, &text);
        if (r >= 0)
                *(NoticeKind *) target = notice_kind_from_string(text);
        return r;
}

static int parse_uptime(const Json *v, void *target) {
        int64_t usec;
        int r;

        r = json_int64(v, &usec);
        if (r < 0)
                return r;
        if (usec < 0 || usec > UPTIME_MAX_USEC)
                return -EINVAL;
        *(usec_t *) target = (usec_t) usec;
        return 0;
}

static int parse_advisory(const Json *v, void *target) {
        bool advisory;
        int r;

        r = json_bool(v, &advisory);
        if (r < 0)
                return r;
        *(NoticeCertainty *) target = advisory ? NOTICE_ADVISORY : NOTICE_CERTAIN;
        return 0;
}

static int parse_by_hand(const Json *v, void *target) {
        const char *text;
        int r;

        r = json_string(v, &text);
        if (r < 0)
                return r;
        *(NoticeByHand *) target = _BY_HAND_INVALID;
        for (size_t i = 0; i < ELEMENTSOF(by_hand_table); i++)
                if (by_hand_table[i] && streq(text, by_hand_table[i]))
                        *(NoticeByHand *) target = (NoticeByHand) i;
        return 0;
}

static int parse_resources(const Json *v, void *target) {
        _cleanup_strv_free_ char **names = NULL;
        char ***to = target;
        const char *text;
        int r;

        if (!json_is_array(v))
                return -EINVAL;
        JSON_FOREACH (o, v) {
                r = json_string(o, &text);
                if (r < 0)
                        return r;
                if (isempty(text) || strlen(text) > RESOURCE_BYTES_MAX || strv_length(names) == NOTICE_RESOURCES_MAX)
                        return -EINVAL;
                r = strv_extend(&names, text);
                if (r < 0)
                        return r;
        }
        strv_free(*to);
        *to = TAKE_PTR(names);
        return 0;
}

int notice_from_json(const Json *o, Notice **ret) {
        static const JsonField fields[] = {
                { "id", json_parse_strdup, offsetof(Notice, id), false },
                { "kind", parse_kind, offsetof(Notice, kind), false },
                { "source", json_parse_strdup, offsetof(Notice, source), false },
                { "action", json_parse_strdup, offsetof(Notice, action), false },
                { "notBefore", json_parse_rfc3339, offsetof(Notice, not_before_usec), false },
                { "deadline", json_parse_rfc3339, offsetof(Notice, announced_usec), false },
                { "said", json_parse_rfc3339, offsetof(Notice, said_usec), false },
                { "until", json_parse_rfc3339, offsetof(Notice, until_usec), false },
                { "received", json_parse_rfc3339, offsetof(Notice, received_usec), false },
                { "deadlineUptimeUsec", parse_uptime, offsetof(Notice, deadline_usec), false },
                { "ownDeadlineUptimeUsec", parse_uptime, offsetof(Notice, own_deadline_usec), false },
                { "estimated", json_parse_bool, offsetof(Notice, estimated), false },
                { "advisory", parse_advisory, offsetof(Notice, certainty), false },
                { "byHand", parse_by_hand, offsetof(Notice, by_hand), false },
                { "resources", parse_resources, offsetof(Notice, resources), false },
        };
        _cleanup_(notice_freep) Notice *n = NULL;
        int r;

        assert(ret);
        n = new0(Notice, 1);
        if (!n)
                return -ENOMEM;

        n->kind = _NOTICE_KIND_INVALID;
        n->deadline_usec = USEC_INFINITY;
        r = json_dispatch(o, fields, ELEMENTSOF(fields), n, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EINVAL;
        if (strlen(strempty(n->id)) > NOTICE_ID_BYTES_MAX || strlen(strempty(n->source)) > NOTICE_WORD_BYTES_MAX ||
            strlen(strempty(n->action)) > NOTICE_WORD_BYTES_MAX)
                return -EINVAL;
        if ((!n->id && !(n->id = strdup(""))) || (!n->source && !(n->source = strdup(""))))
                return -ENOMEM;
        if (n->kind == NOTICE_MANUAL && n->by_hand == BY_HAND_NONE && streq_ptr(n->action, "drain"))
                n->by_hand = BY_HAND_DRAIN;
        *ret = TAKE_PTR(n);
        return 0;
}
