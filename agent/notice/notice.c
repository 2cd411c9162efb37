/* SPDX-License-Identifier: Apache-2.0 */
#include "notice.h"

#include "json.h"
#include "string-util.h"

/* Ours are much shorter; what a stranger writes into an annotation shall not fill our memory and our log. */
#define ID_BYTES_MAX 256u
#define WORD_BYTES_MAX 64u
/* chrony and timesyncd drift less while a notice lasts; notes of it are in whole seconds. */
#define CLOCK_STEP_USEC (2 * USEC_PER_SEC)

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
        if (free_and_strdup(&copy->id, n->id) < 0 || free_and_strdup(&copy->source, n->source) < 0 ||
            free_and_strdup(&copy->action, n->action) < 0)
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

usec_t notice_announced(const Notice *n) {
        return n->announced_usec > 0 ? n->announced_usec : n->deadline_usec;
}

bool notice_take_nearer(Notice *known, const Notice *seen) {
        usec_t before = notice_announced(known), announced = MIN(before, notice_announced(seen)),
               deadline = MIN(known->deadline_usec, seen->deadline_usec);
        bool changed = announced != before || deadline != known->deadline_usec;

        known->deadline_usec = deadline;
        known->announced_usec = announced == deadline ? 0 : announced;
        return changed;
}

bool notice_clock_was_set(usec_t booted_usec, usec_t booted_later_usec) {
        return booted_usec > 0 && booted_later_usec > 0 &&
               usec_sub(MAX(booted_usec, booted_later_usec), MIN(booted_usec, booted_later_usec)) >
                       CLOCK_STEP_USEC;
}

static bool moves_with(const Notice *n, usec_t booted_usec) {
        return n->deadline_usec != USEC_INFINITY && notice_clock_was_set(n->booted_usec, booted_usec);
}

usec_t notice_deadline_by(const Notice *n, usec_t booted_usec) {
        assert(n);
        if (!moves_with(n, booted_usec))
                return n->deadline_usec;
        return booted_usec > n->booted_usec ? usec_add(n->deadline_usec, booted_usec - n->booted_usec)
                                            : usec_sub(n->deadline_usec, n->booted_usec - booted_usec);
}

bool notice_follow_clock(Notice *n, usec_t booted_usec) {
        usec_t announced;

        assert(n);
        if (!moves_with(n, booted_usec))
                return false;
        announced = n->kind == NOTICE_SHUTDOWN ? n->announced_usec : notice_announced(n);
        n->deadline_usec = notice_deadline_by(n, booted_usec);
        n->announced_usec = announced == n->deadline_usec ? 0 : announced;
        n->booted_usec = booted_usec;
        n->moved = true;
        return true;
}

/* What a machine gives to its own shutdown is judged by no clock. */
static bool was_judged_otherwise(const Notice *known, const Notice *seen) {
        return known->kind != NOTICE_SHUTDOWN &&
               (notice_clock_was_set(known->booted_usec, seen->booted_usec) ||
                (known->moved && seen->announced_usec == 0));
}

static void take_judgement(Notice *known, const Notice *seen) {
        usec_t announced = MIN(notice_announced(known), notice_announced(seen));

        known->deadline_usec = seen->announced_usec > 0 ? seen->deadline_usec : announced;
        known->announced_usec = announced == known->deadline_usec ? 0 : announced;
        known->booted_usec = seen->booted_usec;
        known->moved = false;
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
        if (known->kind == NOTICE_SHUTDOWN)
                changed = notice_follow_clock(known, seen->booted_usec) || changed;
        if (was_judged_otherwise(known, seen)) {
                take_judgement(known, seen);
                changed = true;
        } else
                changed = notice_take_nearer(known, seen) || changed;
        if (seen->not_before_usec != known->not_before_usec) {
                known->not_before_usec = seen->not_before_usec;
                changed = true;
        }
        *ret_changed = changed;
        return 0;
}

/* -- JSON --------------------------------------------------------------------------------------- */

void notice_to_json(const Notice *n, JsonWriter *w) {
        char text[RFC3339_MAX];

        assert(n && w);
        json_add_string(w, "id", n->id);
        json_add_string(w, "kind", notice_kind_to_string(n->kind));
        json_add_string(w, "source", n->source);
        json_add_string(w, "action", n->action);
        if (n->not_before_usec > 0) {
                rfc3339_format(n->not_before_usec, text);
                json_add_string(w, "notBefore", text);
        }
        if (notice_announced(n) != USEC_INFINITY) {
                rfc3339_format(notice_announced(n), text);
                json_add_string(w, "deadline", text);
        }
        if (n->deadline_usec != notice_announced(n) && n->deadline_usec != USEC_INFINITY) {
                rfc3339_format(n->deadline_usec, text);
                json_add_string(w, "ownDeadline", text);
        }
        if (n->booted_usec > 0 && n->deadline_usec != USEC_INFINITY &&
            (n->announced_usec > 0 || n->kind == NOTICE_SHUTDOWN)) {
                rfc3339_format(n->booted_usec, text);
                json_add_string(w, "ownBoot", text);
        }
        if (n->certainty == NOTICE_ADVISORY)
                json_add_bool(w, "advisory", true);
        if (n->by_hand != BY_HAND_NONE)
                json_add_string(w, "byHand", by_hand_table[n->by_hand]);
}

static int parse_kind(const Json *v, void *target) {
        NoticeKind k = notice_kind_from_string(json_string_or_null(v));

        if (k < 0)
                return -EINVAL;
        *(NoticeKind *) target = k;
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
        const char *text = json_string_or_null(v);

        for (size_t i = 0; i < ELEMENTSOF(by_hand_table); i++)
                if (by_hand_table[i] && streq_ptr(text, by_hand_table[i])) {
                        *(NoticeByHand *) target = (NoticeByHand) i;
                        return 0;
                }
        return -EINVAL;
}

int notice_from_json(const Json *o, Notice **ret) {
        static const JsonField fields[] = {
                { "id", json_parse_strdup, offsetof(Notice, id), true },
                { "kind", parse_kind, offsetof(Notice, kind), true },
                { "source", json_parse_strdup, offsetof(Notice, source), true },
                { "action", json_parse_strdup, offsetof(Notice, action), false },
                { "notBefore", json_parse_rfc3339, offsetof(Notice, not_before_usec), false },
                { "deadline", json_parse_rfc3339, offsetof(Notice, deadline_usec), false },
                { "ownDeadline", json_parse_rfc3339, offsetof(Notice, announced_usec), false },
                { "ownBoot", json_parse_rfc3339, offsetof(Notice, booted_usec), false },
                { "advisory", parse_advisory, offsetof(Notice, certainty), false },
                { "byHand", parse_by_hand, offsetof(Notice, by_hand), false },
        };
        _cleanup_(notice_freep) Notice *n = NULL;
        int r;

        assert(ret);
        n = new0(Notice, 1);
        if (!n)
                return -ENOMEM;

        n->deadline_usec = USEC_INFINITY;
        r = json_dispatch(o, fields, ELEMENTSOF(fields), n, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EINVAL;
        if (isempty(n->id) || strlen(n->id) > ID_BYTES_MAX || isempty(n->source) ||
            strlen(n->source) > WORD_BYTES_MAX || strlen(strempty(n->action)) > WORD_BYTES_MAX)
                return -EINVAL;
        if (n->announced_usec > 0) { /* read there: which is which */
                usec_t own = n->announced_usec;

                n->announced_usec = n->deadline_usec;
                n->deadline_usec = own;
        }
        if (n->kind == NOTICE_MANUAL && n->by_hand == BY_HAND_NONE && streq_ptr(n->action, "drain"))
                n->by_hand = BY_HAND_DRAIN;
        *ret = TAKE_PTR(n);
        return 0;
}

/* -- source ------------------------------------------------------------------------------------- */

NoticeSource *notice_source_free(NoticeSource *s) {
        if (s)
                s->ops->free(s);
        return NULL;
}
