/* SPDX-License-Identifier: Apache-2.0 */
#include "event-message.h"

#include <inttypes.h>

#include "hashmap.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define WORD_MAX_BYTES 256u
#define ARN_NAME_MAX_BYTES 255u
#define SPOT_LEAD_USEC (2 * USEC_PER_MINUTE)
#define INSTANCE_ID_MAX_BYTES 64u
/* Maximum length of an event's id: the id of a notice, "ID/INSTANCE", then fits into NOTICE_ID_BYTES_MAX. */
#define ID_MAX_BYTES 160u
/* Part of a longer id that stays readable before its hash. */
#define ID_HEAD_BYTES 128

static_assert(ID_MAX_BYTES + 1 + INSTANCE_ID_MAX_BYTES <= NOTICE_ID_BYTES_MAX,
              "An annotation can hold the id of each notice");
static_assert(ID_HEAD_BYTES + 1 + 16 <= ID_MAX_BYTES, "A shortened id is no longer than others");

const char *const event_message_kind_names[_EVENT_MESSAGE_KIND_MAX + 1] = {
        [EVENT_MESSAGE_SPOT] = "spot",
        [EVENT_MESSAGE_REBALANCE] = "rebalance",
        [EVENT_MESSAGE_STATE_CHANGE] = "state-change",
        [EVENT_MESSAGE_HEALTH] = "health",
        [EVENT_MESSAGE_ASG_TERMINATE] = "asg-terminate",
        [EVENT_MESSAGE_ASG_LAUNCH] = "asg-launch",
        [EVENT_MESSAGE_CAPACITY_BLOCK] = "capacity-block",
        [EVENT_MESSAGE_TEST] = "test",
        [EVENT_MESSAGE_UNKNOWN] = "unknown",
};

void event_message_done(EventMessage *m) {
        free(m->id);
        free(m->source);
        free(m->detail_type);
        free(m->account);
        free(m->region);
        strv_free(m->instances);
        free(m->action);
        free(m->group);
        free(m->hook);
        free(m->token);
        free(m->reservation);
        *m = (EventMessage){ 0 };
}

/* -- members -------------------------------------------------------------------------------------------- */

static int read_bounded(const Json *o, const char *key, size_t max_bytes, char **ret) {
        const char *text = strempty(json_string_or_null(json_get(o, key)));

        return strlen(text) > max_bytes ? -EBADMSG : free_and_strdup(ret, text);
}

static int read_word(const Json *o, const char *key, char **ret) {
        return read_bounded(o, key, WORD_MAX_BYTES, ret);
}

/* Keeps an id that is too long as its head and a hash: each copy of the event still gives the same id, and
 * another event another. */
static int keep_id(const char *text, char **ret) {
        _cleanup_free_ char *id = NULL;
        int n = ID_HEAD_BYTES;

        if (strlen(text) <= ID_MAX_BYTES)
                return free_and_strdup(ret, text);
        while ((text[n] & 0xc0) == 0x80) /* inside a character of UTF-8 */
                n--;
        id = strf("%.*s~%016" PRIx64, n, text, hash64(text, strlen(text)));
        return id ? free_and_strdup(ret, id) : -ENOMEM;
}

static int read_id(const Json *o, const char *key, char **ret) {
        return keep_id(strempty(json_string_or_null(json_get(o, key))), ret);
}

/* RFC 3339, or as HTTP writes a date. */
static usec_t read_time(const Json *o, const char *key) {
        const char *text = json_string_or_null(json_get(o, key));
        usec_t at;

        return text && (rfc3339_parse(text, &at) >= 0 || http_date_parse(text, &at) >= 0) ? at : 0;
}

static unsigned read_page(const Json *o, const char *key) {
        const char *text = json_string_or_null(json_get(o, key));
        uint64_t n;

        return text && parse_uint64_range(text, 1, 100000, &n) >= 0 ? (unsigned) n : 1;
}

static bool is_instance(const char *s) {
        const char *rest = startswith(s, "i-");

        return rest && *rest && strlen(s) <= INSTANCE_ID_MAX_BYTES &&
               strspn(rest, "0123456789abcdef") == strlen(rest);
}

static int add_instance(EventMessage *m, const char *id) {
        return id && is_instance(id) ? strv_extend(&m->instances, id) : -EBADMSG;
}

/* -- kinds ---------------------------------------------------------------------------------------------- */

static int read_spot(const Json *detail, EventMessage *m) {
        int r = add_instance(m, json_string_or_null(json_get(detail, "instance-id")));

        if (r >= 0)
                r = read_bounded(detail, "instance-action", NOTICE_WORD_BYTES_MAX, &m->action);
        if (r < 0)
                return r;
        m->not_before_usec = read_time(detail, "instance-termination-time");
        /* A hibernation begins at once. */
        if (m->not_before_usec == 0 && m->sent_usec > 0 && !streq(m->action, "hibernate"))
                m->not_before_usec = usec_add(m->sent_usec, SPOT_LEAD_USEC);
        return isempty(m->action) ? -EBADMSG : 0;
}

static int read_rebalance(const Json *detail, EventMessage *m) {
        return add_instance(m, json_string_or_null(json_get(detail, "instance-id")));
}

static int read_state(const Json *detail, EventMessage *m) {
        int r = add_instance(m, json_string_or_null(json_get(detail, "instance-id")));

        if (r >= 0)
                r = read_word(detail, "state", &m->action);
        return r < 0 ? r : isempty(m->action) ? -EBADMSG : 0;
}

/* EC2 stops a retired instance that boots from EBS, and terminates one whose disk is in the host. */
static const char *action_of_code(const char *code) {
        static const struct {
                const char *part, *action;
        } codes[] = {
                { "_PERSISTENT_INSTANCE_RETIREMENT_", "stop" },
                { "_TERMINATION_", "terminate" }, { "_RETIREMENT_", "terminate" },    { "_STOP_", "stop" },
                { "_REBOOT_", "reboot" },         { "_MAINTENANCE_", "maintenance" },
        };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (strstr(code, codes[i].part))
                        return codes[i].action;
        return "maintenance";
}

/* The largest message has 40,000 entities. A map finds those that were named before: a search through a list
 * for each of them would take too long. */
static int read_entities(const Json *detail, EventMessage *m) {
        _cleanup_(hashmap_freep) Hashmap *seen = NULL;
        int r = hashmap_new(0, &seen);

        if (r < 0)
                return r;
        JSON_FOREACH (e, json_get(detail, "affectedEntities")) {
                const char *id = json_string_or_null(json_get(e, "entityValue"));

                if (!id || !is_instance(id) || hashmap_contains(seen, id))
                        continue; /* another kind of resource, or an instance that is named twice */
                if (hashmap_size(seen) >= EVENT_MESSAGE_INSTANCES_MAX)
                        return -EBADMSG;
                r = hashmap_put(seen, id, m);
                if (r >= 0)
                        r = strv_extend(&m->instances, id);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The same in every message about one scheduled change, also in the one that calls it off: what stands last in its ARN, or, of a message
 * without one, what its pages and copies have in common.
 * https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html */
static int read_health_id(const Json *detail, EventMessage *m) {
        const char *arn = strempty(json_string_or_null(json_get(detail, "eventArn"))), *slash = strrchr(arn, '/');
        const char *id = slash && slash[1] ? slash + 1 : strempty(json_string_or_null(json_get(detail, "communicationId")));

        return isempty(id) ? 0 : keep_id(id, &m->id);
}

/* "arn:aws-cn:health:cn-north-1::event/EC2/...": keeps its region, unless that is empty. */
static int read_arn_region(const Json *detail, char **ret) {
        const char *arn = startswith(strempty(json_string_or_null(json_get(detail, "eventArn"))), "arn:aws");
        const char *service = arn ? strstr(arn, ":health:") : NULL;
        const char *region = service ? service + strlen(":health:") : "";
        size_t n = strcspn(region, ":");
        char *copy;

        if (n == 0 || n > WORD_MAX_BYTES)
                return 0;
        copy = strndup(region, n);
        if (!copy)
                return -ENOMEM;
        free(*ret);
        *ret = copy;
        return 0;
}

/* A copy of the event may come through another region, and the one that an Organization's administrator gets
 * is about another account, so the detail says where the instances are. */
static int read_health_origin(const Json *detail, EventMessage *m) {
        int r = 0;

        if (!isempty(json_string_or_null(json_get(detail, "affectedAccount"))))
                r = read_word(detail, "affectedAccount", &m->account);
        if (r >= 0)
                r = isempty(json_string_or_null(json_get(detail, "eventRegion")))
                            ? read_arn_region(detail, &m->region)
                            : read_word(detail, "eventRegion", &m->region);
        if (r >= 0 && streq(strempty(m->region), "global"))
                r = free_and_strdup(&m->region, "");
        return r;
}

static int read_health(const Json *detail, EventMessage *m) {
        const char *service = strempty(json_string_or_null(json_get(detail, "service"))),
                   *category = strempty(json_string_or_null(json_get(detail, "eventTypeCategory"))),
                   *code = strempty(json_string_or_null(json_get(detail, "eventTypeCode")));
        int r;

        if (!streq(service, "EC2") || !streq(category, "scheduledChange")) {
                m->kind = EVENT_MESSAGE_UNKNOWN;
                return 0;
        }
        r = read_entities(detail, m);
        if (r >= 0)
                r = free_and_strdup(&m->action, action_of_code(code));
        if (r >= 0)
                r = read_health_origin(detail, m);
        if (r >= 0)
                r = read_health_id(detail, m);
        m->not_before_usec = read_time(detail, "startTime");
        m->not_after_usec = read_time(detail, "endTime");
        m->closed = streq(strempty(json_string_or_null(json_get(detail, "statusCode"))), "closed");
        m->page = read_page(detail, "page");
        m->pages = read_page(detail, "totalPages");
        return r;
}

static int read_hook(const Json *detail, EventMessage *m) {
        int r = add_instance(m, json_string_or_null(json_get(detail, "EC2InstanceId")));

        if (r >= 0)
                r = read_word(detail, "AutoScalingGroupName", &m->group);
        if (r >= 0)
                r = read_word(detail, "LifecycleHookName", &m->hook);
        if (r >= 0)
                r = read_word(detail, "LifecycleActionToken", &m->token);
        if (r < 0)
                return r;
        return isempty(m->group) || isempty(m->hook) ? -EBADMSG : 0;
}

/* https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html */
static int read_capacity_block(const Json *detail, EventMessage *m) {
        m->not_before_usec = read_time(detail, "end-date");
        return read_word(detail, "capacity-reservation-id", &m->reservation);
}

static const struct {
        const char *source, *type;
        EventMessageKind kind;
        int (*read)(const Json *detail, EventMessage *m);
} types[] = {
        { "aws.ec2", "EC2 Spot Instance Interruption Warning", EVENT_MESSAGE_SPOT, read_spot },
        { "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", EVENT_MESSAGE_SPOT,
          read_spot },
        /* documented by both names */
        { "aws.ec2", "Capacity Block Expiration Warning", EVENT_MESSAGE_CAPACITY_BLOCK, read_capacity_block },
        { "aws.ec2", "Capacity Block Reservation Expiration Warning", EVENT_MESSAGE_CAPACITY_BLOCK,
          read_capacity_block },
        { "aws.ec2", "EC2 Instance Rebalance Recommendation", EVENT_MESSAGE_REBALANCE, read_rebalance },
        { "aws.ec2", "EC2 Instance State-change Notification", EVENT_MESSAGE_STATE_CHANGE, read_state },
        { "aws.health", "AWS Health Event", EVENT_MESSAGE_HEALTH, read_health },
        { "aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", EVENT_MESSAGE_ASG_TERMINATE,
          read_hook },
        { "aws.autoscaling", "EC2 Instance-launch Lifecycle Action", EVENT_MESSAGE_ASG_LAUNCH, read_hook },
};

bool event_message_knows_source(const char *source) {
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(types[i].source, source))
                        return true;
        return false;
}

/* -- envelopes ------------------------------------------------------------------------------------------ */

static int read_envelope(const Json *o, EventMessage *m) {
        const char *type = json_get(o, "detail-type") ? "detail-type" : "detail_type";
        int r = read_word(o, "source", &m->source);

        if (r >= 0)
                r = read_word(o, "account", &m->account);
        if (r >= 0)
                r = read_word(o, type, &m->detail_type);
        if (r >= 0)
                r = read_id(o, "id", &m->id);
        if (r >= 0)
                r = read_word(o, "region", &m->region);
        if (r < 0)
                return r;
        m->sent_usec = read_time(o, "time");
        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                if (streq(m->source, types[i].source) && streq(m->detail_type, types[i].type)) {
                        m->kind = types[i].kind;
                        return types[i].read(json_get(o, "detail"), m);
                }
        m->kind = EVENT_MESSAGE_UNKNOWN;
        return isempty(m->detail_type) ? -EBADMSG : 0;
}

/* A hook's own. */
static int read_bare(const Json *o, EventMessage *m) {
        const char *transition = json_string_or_null(json_get(o, "LifecycleTransition"));
        int r;

        r = read_word(o, "AccountId", &m->account);
        if (r >= 0)
                r = read_id(o, "RequestId", &m->id);
        if (r < 0)
                return r;
        m->sent_usec = read_time(o, "Time");
        if (streq_ptr(json_string_or_null(json_get(o, "Event")), "autoscaling:TEST_NOTIFICATION")) {
                m->kind = EVENT_MESSAGE_TEST;
                return 0;
        }
        if (!transition)
                return -EBADMSG;
        m->kind = streq(transition, "autoscaling:EC2_INSTANCE_TERMINATING") ? EVENT_MESSAGE_ASG_TERMINATE
                  : streq(transition, "autoscaling:EC2_INSTANCE_LAUNCHING") ? EVENT_MESSAGE_ASG_LAUNCH
                                                                            : EVENT_MESSAGE_UNKNOWN;
        return m->kind == EVENT_MESSAGE_UNKNOWN ? 0 : read_hook(o, m);
}

static int read_message(const Json *o, EventMessage *m) {
        char **const words[] = { &m->id,     &m->source, &m->detail_type, &m->account, &m->region,
                                 &m->action, &m->group,  &m->hook,        &m->token,   &m->reservation };
        int r = json_get(o, "detail") ? read_envelope(o, m) : read_bare(o, m);

        for (size_t i = 0; i < ELEMENTSOF(words) && r >= 0; i++)
                if (!*words[i])
                        r = free_and_strdup(words[i], "");
        return r;
}

int event_message_parse(const char *data, size_t size, EventMessage *ret) {
        _cleanup_(event_message_done) EventMessage m = { .page = 1, .pages = 1 };
        _cleanup_(json_doc_freep) JsonDoc *outer = NULL, *inner = NULL;
        const char *passed_on;
        int r;

        assert(data && ret);
        *ret = (EventMessage){ 0 };
        r = json_parse(data, size, EVENT_MESSAGE_MAX_BYTES, &outer, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        passed_on = json_get(json_root(outer), "Type")
                            ? json_string_or_null(json_get(json_root(outer), "Message"))
                            : NULL;
        if (passed_on)
                r = json_parse(passed_on, strlen(passed_on), EVENT_MESSAGE_MAX_BYTES, &inner, NULL);
        if (r >= 0)
                r = read_message(json_root(inner ? inner : outer), &m);
        if (r < 0 && r != -ENOMEM) {
                ret->source = TAKE_PTR(m.source);
                ret->account = TAKE_PTR(m.account);
        }
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        *ret = m;
        m = (EventMessage){ 0 };
        return 0;
}

/* -- as a notice ---------------------------------------------------------------------------------------- */

static NoticeKind notice_kind_of(EventMessageKind kind) {
        switch (kind) {
        case EVENT_MESSAGE_SPOT:
                return NOTICE_SPOT;
        case EVENT_MESSAGE_REBALANCE:
                return NOTICE_REBALANCE;
        case EVENT_MESSAGE_HEALTH:
                return NOTICE_MAINTENANCE;
        case EVENT_MESSAGE_ASG_TERMINATE:
                return NOTICE_SCALE_IN;
        case EVENT_MESSAGE_STATE_CHANGE:
                return NOTICE_SHUTDOWN;
        case EVENT_MESSAGE_ASG_LAUNCH:
        case EVENT_MESSAGE_CAPACITY_BLOCK:
        case EVENT_MESSAGE_TEST:
        case EVENT_MESSAGE_UNKNOWN:
        case _EVENT_MESSAGE_KIND_MAX:
        case _EVENT_MESSAGE_KIND_INVALID:
                break;
        }
        return _NOTICE_KIND_INVALID;
}

/* Returns the time as an annotation holds it, in whole seconds: a notice that is read back has the times of
 * its message. */
static usec_t as_written(usec_t wall_usec) {
        char text[RFC3339_MAX];

        rfc3339_format(wall_usec, text);
        return rfc3339_parse(text, &wall_usec) < 0 ? 0 : wall_usec;
}

/* NULL: nothing ends. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html */
static const char *notice_action_of(const EventMessage *m) {
        if (m->kind == EVENT_MESSAGE_ASG_TERMINATE)
                return "terminate";
        if (m->kind != EVENT_MESSAGE_STATE_CHANGE)
                return m->action;
        return streq(m->action, "stopping") ? "stop" : streq(m->action, "shutting-down") ? "terminate" : NULL;
}

int event_message_notice(const EventMessage *m, const char *instance, Notice **ret) {
        _cleanup_(notice_freep) Notice *n = NULL;

        assert(m && instance && ret);
        if (notice_kind_of(m->kind) < 0 || !notice_action_of(m))
                return -ENODATA;
        n = new0(Notice, 1);
        if (!n)
                return -ENOMEM;
        n->kind = notice_kind_of(m->kind);
        n->deadline_usec = USEC_INFINITY;
        n->certainty = m->kind == EVENT_MESSAGE_REBALANCE ? NOTICE_ADVISORY : NOTICE_CERTAIN;
        n->announced_usec = as_written(m->not_before_usec);
        n->not_before_usec = m->kind == EVENT_MESSAGE_HEALTH ? n->announced_usec : 0;
        n->said_usec = as_written(m->sent_usec);
        n->until_usec = m->kind == EVENT_MESSAGE_HEALTH ? as_written(m->not_after_usec) : 0;
        n->id = strf("%s/%s", isempty(m->id) ? event_message_kind_names[m->kind] : m->id, instance);
        n->source = strdup(NOTICE_SOURCE_QUEUE);
        n->action = strdup(notice_action_of(m));
        if (!n->id || !n->source || !n->action)
                return -ENOMEM;
        *ret = TAKE_PTR(n);
        return 0;
}
