/* SPDX-License-Identifier: Apache-2.0 */
#include "ec2-events.h"

#include "json.h"
#include "string-util.h"

#define BODY_BYTES_MAX 32768u
#define ID_BYTES_MAX 128u
#define STATE_BYTES_MAX 64u
#define TIME_BYTES_MAX 64u

/* -- times -------------------------------------------------------------------------------------- */

int ec2_event_time_parse(const char *text, usec_t *ret_wall_usec) {
        return gmt_date_parse(text, ret_wall_usec) >= 0 ? 0 : rfc3339_parse(text, ret_wall_usec);
}

/* -- scheduled events --------------------------------------------------------------------------- */

/* A retirement stops what boots from EBS and terminates the rest; stop is what leaves most in place. */
static const char *action_of_code(const char *code) {
        static const struct {
                const char *code, *action;
        } codes[] = {
                { "instance-reboot", "reboot" },         { "system-reboot", "reboot" },
                { "system-maintenance", "maintenance" }, { "instance-retirement", "stop" },
                { "instance-stop", "stop" },
        };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (streq(codes[i].code, code))
                        return codes[i].action;
        return NULL;
}

static bool id_is_valid(const char *id) {
        size_t n = strlen(id);

        return n > 0 && n <= ID_BYTES_MAX && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static bool is_over(const Json *item) {
        const char *state = json_string_or_null(json_get(item, "State"));

        return state && (strcasecmp(state, "completed") == 0 || strcasecmp(state, "canceled") == 0 ||
                         strcasecmp(state, "cancelled") == 0);
}

static int read_event(const Json *item, const void *userdata, ScheduledEvent *ret, const char **reterr_why) {
        const char *id = json_string_or_null(json_get(item, "EventId"));
        const char *code = json_string_or_null(json_get(item, "Code"));
        const char *not_before = json_string_or_null(json_get(item, "NotBefore"));

        *reterr_why = "events/maintenance/scheduled has an event without an id, a code or a time that can be read";
        if (!id || !id_is_valid(id) || !code)
                return -EBADMSG;
        if (is_over(item))
                return 0;
        if (!not_before || ec2_event_time_parse(not_before, &ret->not_before_usec) < 0)
                return -EBADMSG;
        ret->kind = NOTICE_MAINTENANCE;
        ret->action = action_of_code(code);
        /* Rebooted by a call of EC2's the instance moves to another host, which ends the event. That of instance-reboot
         * stays open, whoever else reboots the instance. */
        ret->early = streq(code, "system-reboot") ? NOTICE_EARLY_CLOUD : NOTICE_EARLY_NEVER;
        ret->id = strdup(id);
        return ret->id ? 1 : -ENOMEM;
}

int ec2_events_parse(const char *body, size_t size, size_t max, ScheduledEvent **ret, size_t *ret_n, bool *ret_more,
                     const char **reterr_why) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        *ret = NULL;
        *ret_n = 0;
        *ret_more = false;
        if (size == 0)
                return 0;
        *reterr_why = "events/maintenance/scheduled is no JSON list";
        r = json_parse(body, size, BODY_BYTES_MAX, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (!json_is_array(json_root(doc)))
                return -EBADMSG;
        return scheduled_events_read(json_root(doc), max, read_event, NULL, ret, ret_n, ret_more, reterr_why);
}

/* -- rebalance, lifecycle ----------------------------------------------------------------------- */

int ec2_rebalance_parse(const char *body, size_t size, usec_t *ret_wall_usec, const char **reterr_why) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *time;
        int r;

        *reterr_why = "events/recommendations/rebalance has no time that can be read";
        r = json_parse(body, size, BODY_BYTES_MAX, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        time = json_string_or_null(json_get(json_root(doc), "noticeTime"));
        return time && rfc3339_parse(time, ret_wall_usec) >= 0 ? 0 : -EBADMSG;
}

int ec2_lifecycle_parse(const char *body, size_t size, bool *ret_goes, const char **reterr_why) {
        char state[STATE_BYTES_MAX + 1];

        *reterr_why = "autoscaling/target-lifecycle-state is no state";
        if (size == 0 || size > STATE_BYTES_MAX)
                return -EBADMSG;
        memcpy(state, body, size);
        state[size] = 0;
        strstrip(state);
        if (strlen(state) == 0 ||
            strspn(state, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz:") != strlen(state))
                return -EBADMSG;
        *ret_goes = streq(state, "Terminated") || streq(state, "Warmed:Terminated");
        return 0;
}

/* -- a Capacity Block --------------------------------------------------------------------------- */

int ec2_capacity_end_parse(const char *body, size_t size, usec_t *ret_wall_usec, const char **reterr_why) {
        char time[TIME_BYTES_MAX + 1];

        *reterr_why = "the instance's tag vesper.sh:capacity-block-end is no time such as 2027-01-21T11:30:00Z";
        if (size > TIME_BYTES_MAX)
                return -EBADMSG;
        memcpy(time, body, size);
        time[size] = 0;
        return rfc3339_parse(strstrip(time), ret_wall_usec) >= 0 ? 0 : -EBADMSG;
}
