/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-source.h"

#include "string-util.h"

/* A Date is cut to its second, and older than its answer by what that took on its way: what is left is less than is
 * counted, and the least that any look has counted is nearest. Less of a difference is no news. */
#define NEARER_USEC (250 * USEC_PER_MSEC)
/* A cloud withdraws no spot notice on paper; what is still absent so long after its time was withdrawn in fact. */
#define CANCEL_AFTER_USEC (10 * USEC_PER_MINUTE)

NoticeSource *notice_source_free(NoticeSource *s) {
        if (s)
                s->ops->free(s);
        return NULL;
}

const Notice *notice_set_find(const NoticeSet *s, const char *id) {
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->items[i]->id, id))
                        return s->items[i];
        return NULL;
}

void notice_set_done(NoticeSet *s) {
        for (size_t i = 0; i < s->n; i++)
                notice_free(s->items[i]);
        s->n = 0;
}

void notice_source_kick(NoticeSource *s) {
        if (s->ops->kick)
                s->ops->kick(s);
}

bool notice_source_announces(const NoticeSource *s, const char *feed, const Notice *n) {
        return streq(n->source, s->ops->name) && (!s->ops->announces || s->ops->announces(s, feed, n));
}

bool notice_source_may_cancel(const NoticeSource *s, const Notice *n, usec_t now_usec) {
        return !s->ops->may_cancel || s->ops->may_cancel(s, n, now_usec);
}

NoticeIdentity notice_source_identity(const NoticeSource *s, const char *provider_id, const char **ret_name) {
        *ret_name = NULL;
        return s->ops->identity && !isempty(provider_id) ? s->ops->identity(s, provider_id, ret_name) : NOTICE_IDENTITY_UNKNOWN;
}

bool notice_source_is_of_machine(const NoticeSource *s, const Notice *n) {
        return streq(n->source, s->ops->name) && s->ops->is_of_machine && s->ops->is_of_machine(s, n);
}

void notice_source_ask_identity(NoticeSource *s) {
        if (s->ops->ask_identity)
                s->ops->ask_identity(s);
}

bool notice_source_cloud_may_cancel(const NoticeSource *s, const Notice *n, usec_t now_usec) {
        if (n->kind != NOTICE_SPOT)
                return true;
        return notice_own_deadline(n) != USEC_INFINITY &&
               now_usec >= usec_add(notice_own_deadline(n), CANCEL_AFTER_USEC);
}

usec_t notice_source_pause(Backoff *b, Random *random) {
        return MIN(backoff_next(b, random), b->cap_usec);
}

void notice_source_unknown(NoticeSource *s, const char *feed, const char *why, usec_t answered_usec) {
        const NoticeLook look = {
                .feed = feed, .result = NOTICE_POLL_UNKNOWN, .why = why, .answered_usec = answered_usec
        };

        assert(s && feed && why);
        s->on_look(s, &look, s->userdata);
}

void notice_source_found(NoticeSource *s, const char *feed, Notice *const *notices, size_t n_notices,
                         usec_t answered_usec) {
        const NoticeLook look = {
                .feed = feed,
                .result = n_notices > 0 ? NOTICE_POLL_NOTICE : NOTICE_POLL_NONE,
                .notices = notices,
                .n_notices = n_notices,
                .answered_usec = answered_usec,
        };

        assert(s && feed && n_notices <= NOTICES_OF_FEED_MAX);
        s->on_look(s, &look, s->userdata);
}

Notice *notice_source_make(const NoticeSource *s, NoticeKind kind, const char *id, const char *action) {
        _cleanup_(notice_freep) Notice *n = new0(Notice, 1);

        assert(s && id);
        if (!n)
                return NULL;
        n->kind = kind;
        n->deadline_usec = USEC_INFINITY;
        if (free_and_strdup(&n->id, id) < 0 || free_and_strdup(&n->source, s->ops->name) < 0 ||
            free_and_strdup(&n->action, action) < 0)
                return NULL;
        return TAKE_PTR(n);
}

void notice_source_judge(const Loop *loop, Notice *n, const Notice *standing, usec_t time_usec, usec_t date_usec,
                         usec_t answered_usec, usec_t lead_usec) {
        usec_t left = date_usec > 0 ? usec_sub(time_usec, date_usec) : USEC_INFINITY;

        assert(loop && n);
        n->announced_usec = time_usec;
        n->estimated = date_usec == 0 || left > usec_add(lead_usec, USEC_PER_SEC);
        if (n->estimated)
                left = usec_sub(time_usec, loop_to_wall(loop, answered_usec));
        n->deadline_usec = usec_add(answered_usec, MIN(left, lead_usec));
        if (standing && standing->announced_usec == time_usec)
                notice_source_keep(n, standing, false);
}

void notice_source_keep(Notice *n, const Notice *standing, bool begun) {
        if (!begun && !n->estimated &&
            (standing->estimated || usec_add(n->deadline_usec, NEARER_USEC) < standing->deadline_usec))
                return;
        n->deadline_usec = standing->deadline_usec;
        n->estimated = standing->estimated;
}
