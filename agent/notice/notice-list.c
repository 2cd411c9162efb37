/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-list.h"

#include "string-util.h"

#define BODY_BYTES_MAX 65536u
#define ID_BYTES_MAX 128u
#define ACTION_BYTES_MAX 32u

static bool is_word(const char *s, size_t max, const char *more) {
        size_t n = strlen(s);

        for (size_t i = 0; i < n; i++)
                if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') || (s[i] >= '0' && s[i] <= '9') ||
                      strchr(more, s[i])))
                        return false;
        return n > 0 && n <= max;
}

/* What shutdowns and people on this machine announce by other ways is no kind of a list. */
static NoticeKind kind_of(const char *text) {
        NoticeKind k = text ? notice_kind_from_string(text) : NOTICE_MAINTENANCE;

        return k == NOTICE_SHUTDOWN || k == NOTICE_MANUAL ? _NOTICE_KIND_INVALID : k;
}

/* An absent member leaves *ret. -EBADMSG: it is no text. */
static int take_text(const Json *o, const char *member, const char **ret) {
        const char *text;
        int r;

        r = json_string(json_get(o, member), &text);
        if (r == -ENODATA)
                return 0;
        if (r < 0)
                return -EBADMSG;
        *ret = text;
        return 0;
}

static int parse_one(const NoticeSource *source, const Loop *clock, const Json *o, usec_t answered_usec, const NoticeSet *known,
                     Notice **ret, const char **reterr_why) {
        const char *id = NULL, *kind_text = NULL, *action = "reboot", *deadline = NULL;
        _cleanup_(notice_freep) Notice *n = NULL;
        bool advisory = false;
        usec_t at_usec = 0;
        NoticeKind kind;
        int r;

        *reterr_why = "a notice is a JSON object with texts id, kind, action and deadline, and advisory true or false";
        if (!json_is_object(o) || take_text(o, "id", &id) < 0 || take_text(o, "kind", &kind_text) < 0 ||
            take_text(o, "action", &action) < 0 || take_text(o, "deadline", &deadline) < 0)
                return -EBADMSG;
        r = json_bool(json_get(o, "advisory"), &advisory);
        if (r < 0 && r != -ENODATA)
                return -EBADMSG;
        *reterr_why = "a notice needs an id of letters, digits and -_.:/@ (128 at most)";
        if (!id || !is_word(id, ID_BYTES_MAX, "-_.:/@"))
                return -EBADMSG;
        *reterr_why = "an action is one word of letters, digits and - (32 at most)";
        if (!is_word(action, ACTION_BYTES_MAX, "-"))
                return -EBADMSG;
        *reterr_why = "a deadline is a time such as 2027-01-21T09:00:00Z";
        if (deadline && rfc3339_parse(deadline, &at_usec) < 0)
                return -EBADMSG;

        kind = kind_of(kind_text);
        n = notice_source_make(source, kind < 0 ? NOTICE_MAINTENANCE : kind, id, action);
        if (!n)
                return -ENOMEM;
        n->certainty = advisory || kind < 0 ? NOTICE_ADVISORY : NOTICE_CERTAIN;
        if (n->certainty == NOTICE_CERTAIN && streq(action, "reboot"))
                n->early = NOTICE_EARLY_MACHINE;
        if (at_usec > 0)
                notice_source_judge(clock, n, notice_set_find(known, id), at_usec, 0, answered_usec, USEC_INFINITY);
        *ret = TAKE_PTR(n);
        return 0;
}

static int add(NoticeSet *l, const NoticeSource *source, const Loop *clock, const Json *o, usec_t answered_usec,
               const NoticeSet *known, const char **reterr_why) {
        Notice *n;
        int r;

        if (l->n == NOTICES_OF_FEED_MAX) {
                *reterr_why = "more than 32 notices at once";
                return -EBADMSG;
        }
        r = parse_one(source, clock, o, answered_usec, known, &n, reterr_why);
        if (r < 0)
                return r;
        if (notice_set_find(l, n->id)) {
                notice_free(n);
                *reterr_why = "two notices with one id";
                return -EBADMSG;
        }
        l->items[l->n++] = n;
        return 0;
}

int notice_list_parse(const NoticeSource *source, const Loop *clock, const char *body, size_t size, usec_t answered_usec,
                      const NoticeSet *known, NoticeSet *ret, const char **reterr_why) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        NoticeSet l = { 0 };
        int r;

        assert(source && clock && known && ret && reterr_why);
        r = json_parse(body, size, BODY_BYTES_MAX, &doc, NULL);
        if (r < 0) {
                *reterr_why = size > BODY_BYTES_MAX ? "more than 64 KiB" : "no JSON";
                return r == -ENOMEM ? r : -EBADMSG;
        }
        if (json_is_array(json_root(doc)))
                JSON_FOREACH (o, json_root(doc)) {
                        r = add(&l, source, clock, o, answered_usec, known, reterr_why);
                        if (r < 0)
                                break;
                }
        else
                r = add(&l, source, clock, json_root(doc), answered_usec, known, reterr_why);
        if (r < 0) {
                notice_set_done(&l);
                return r;
        }
        *ret = l;
        return 0;
}
