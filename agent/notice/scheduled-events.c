/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduled-events.h"

#include "string-util.h"
#include "strv.h"

void scheduled_events_free(ScheduledEvent *events, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(events[i].id);
                strv_free(events[i].resources);
        }
        free(events);
}

static bool is_known(const ScheduledEvent *events, size_t n, const char *id) {
        for (size_t i = 0; i < n; i++)
                if (streq(events[i].id, id))
                        return true;
        return false;
}

static int read_list(const Json *list, size_t max, scheduled_event_read_t read, const void *userdata, ScheduledEvent *events,
                     size_t *n, bool *ret_more, const char **reterr_why) {
        JSON_FOREACH (o, list) {
                ScheduledEvent e = { 0 };
                int r = read(o, userdata, &e, reterr_why);

                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                if (is_known(events, *n, e.id) || *n == max) {
                        *ret_more = *ret_more || *n == max;
                        free(e.id);
                        strv_free(e.resources);
                } else
                        events[(*n)++] = e;
        }
        return 0;
}

int scheduled_events_read(const Json *list, size_t max, scheduled_event_read_t read, const void *userdata,
                          ScheduledEvent **ret, size_t *ret_n, bool *ret_more, const char **reterr_why) {
        ScheduledEvent *events = new0(ScheduledEvent, max);
        size_t n = 0;
        int r;

        *ret = NULL;
        *ret_n = 0;
        *ret_more = false;
        if (!events)
                return -ENOMEM;
        r = read_list(list, max, read, userdata, events, &n, ret_more, reterr_why);
        if (r < 0) {
                scheduled_events_free(events, n);
                return r;
        }
        *ret = events;
        *ret_n = n;
        return 0;
}

static Notice *announce(const NoticeSource *source, const Loop *loop, const ScheduledEvent *e, usec_t date_usec,
                        usec_t answered_usec, const Notice *standing) {
        Notice *n = notice_source_make(source, e->kind, e->id, e->action ? e->action : "maintenance");
        usec_t now = date_usec > 0 ? date_usec : loop_to_wall(loop, answered_usec);
        usec_t at = e->not_before_usec > 0 ? e->not_before_usec : standing ? MIN(standing->announced_usec, now) : now;

        if (!n)
                return NULL;
        n->certainty = e->advisory || !e->action ? NOTICE_ADVISORY : NOTICE_CERTAIN;
        n->not_before_usec = at;
        n->early = e->early;
        n->resources = e->resources ? strv_copy(e->resources) : NULL;
        if (e->resources && !n->resources)
                return notice_free(n);
        notice_source_judge(loop, n, standing, at, date_usec, answered_usec, USEC_INFINITY);
        return n;
}

int scheduled_events_announce(const NoticeSource *source, const Loop *loop, const ScheduledEvent *events, size_t n,
                              usec_t date_usec, usec_t answered_usec, const NoticeSet *known, NoticeSet *ret) {
        assert(n <= NOTICES_OF_FEED_MAX);
        for (ret->n = 0; ret->n < n; ret->n++) {
                const ScheduledEvent *e = events + ret->n;

                ret->items[ret->n] = announce(source, loop, e, date_usec, answered_usec, notice_set_find(known, e->id));
                if (!ret->items[ret->n]) {
                        notice_set_done(ret);
                        return -ENOMEM;
                }
        }
        return 0;
}
