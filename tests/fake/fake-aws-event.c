/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-aws-event.h"

#include <stdio.h>

#define NO_ID "12345678-1234-1234-1234-123456789012"

static const struct {
        const char *name, *source, *type;
} kinds[_FAKE_AWS_EVENT_MAX] = {
        [FAKE_AWS_EVENT_SPOT] = { "spot", "aws.ec2", "EC2 Spot Instance Interruption Warning" },
        [FAKE_AWS_EVENT_REBALANCE] = { "rebalance", "aws.ec2", "EC2 Instance Rebalance Recommendation" },
        [FAKE_AWS_EVENT_STATE] = { "state", "aws.ec2", "EC2 Instance State-change Notification" },
        [FAKE_AWS_EVENT_RESERVATION] = { "reservation", "aws.ec2",
                                         "EC2 Capacity Reservation Instance Interruption Warning" },
        [FAKE_AWS_EVENT_BLOCK] = { "block", "aws.ec2", "Capacity Block Reservation Expiration Warning" },
        [FAKE_AWS_EVENT_HEALTH] = { "health", "aws.health", "AWS Health Event" },
        [FAKE_AWS_EVENT_TERMINATE_ACTION] = { "terminate-action", "aws.autoscaling",
                                              "EC2 Instance-terminate Lifecycle Action" },
        [FAKE_AWS_EVENT_LAUNCH_ACTION] = { "launch-action", "aws.autoscaling",
                                           "EC2 Instance-launch Lifecycle Action" },
        [FAKE_AWS_EVENT_HOOK] = { "hook", NULL, NULL },
        [FAKE_AWS_EVENT_HOOK_TEST] = { "hook-test", NULL, NULL },
};

FakeAwsEventKind fake_aws_event_kind_from_string(const char *s) {
        for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
                if (streq_ptr(s, kinds[i].name))
                        return (FakeAwsEventKind) i;
        return _FAKE_AWS_EVENT_INVALID;
}

static const char *or_else(const char *s, const char *otherwise) {
        return s ? s : otherwise;
}

static const char *account_of(const FakeAwsEvent *e) {
        return or_else(e->account, "123456789012");
}

static const char *region_of(const FakeAwsEvent *e) {
        return or_else(e->region, "us-east-1");
}

static void set_time(cJSON *o, const char *key, usec_t wall_usec) {
        char text[RFC3339_MAX];

        rfc3339_format(wall_usec, text);
        fj_set_string(o, key, text);
}

/* "Sat, 05 Jun 2016 15:10:09 GMT" */
static void set_http_time(cJSON *o, const char *key, usec_t wall_usec) {
        time_t at = (time_t) (wall_usec / USEC_PER_SEC);
        char text[64];
        struct tm tm;
        size_t n;

        gmtime_r(&at, &tm);
        n = strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        assert(n > 0);
        fj_set_string(o, key, text);
}

static void add_entity(cJSON *o, const char *instance, usec_t wall_usec) {
        cJSON *entity = fj_parse("{'status':'IMPAIRED','tags':{}}");

        fj_set_string(entity, "entityValue", strempty(instance));
        set_http_time(entity, "lastUpdatedTime", wall_usec);
        cJSON_AddItemToArray(fj_array(o, "affectedEntities"), entity);
}

static void add_health(const FakeAwsEvent *e, cJSON *o) {
        const char *code = or_else(e->action, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED");
        _cleanup_free_ char *arn = MUST(strf("arn:aws:health:%s::event/EC2/%s/%s_%s", region_of(e), code,
                                             code, or_else(e->communication, NO_ID)));
        _cleanup_free_ char *page = MUST(strf("%u", e->page > 0 ? e->page : 1)),
                            *pages = MUST(strf("%u", e->pages > 0 ? e->pages : 1));

        fj_set_string(o, "eventArn", arn);
        fj_set_string(o, "service", "EC2");
        fj_set_string(o, "eventTypeCode", code);
        fj_set_string(o, "eventTypeCategory", "scheduledChange");
        fj_set_string(o, "eventScopeCode", "ACCOUNT_SPECIFIC");
        fj_set_string(o, "communicationId", or_else(e->communication, NO_ID));
        set_http_time(o, "startTime", e->until_wall_usec);
        set_http_time(o, "endTime", usec_add(e->until_wall_usec, e->window_usec > 0 ? e->window_usec : 2 * USEC_PER_HOUR));
        set_http_time(o, "lastUpdatedTime", e->wall_usec);
        fj_set_string(o, "statusCode", or_else(e->status, "upcoming"));
        fj_set_string(o, "eventRegion", region_of(e));
        fj_set(o, "eventDescription",
               fj_parse("[{'language':'en_US','latestDescription':'A change is planned.'}]"));
        add_entity(o, e->instance, e->wall_usec);
        for (char *const *other = e->others; other && *other; other++)
                add_entity(o, *other, e->wall_usec);
        fj_set_string(o, "affectedAccount", account_of(e));
        fj_set_string(o, "page", page);
        fj_set_string(o, "totalPages", pages);
}

static void add_action(const FakeAwsEvent *e, cJSON *o, bool launching) {
        fj_set_string(o, "LifecycleActionToken", or_else(e->token, "87654321-4321-4321-4321-210987654321"));
        fj_set_string(o, "AutoScalingGroupName", strempty(e->group));
        fj_set_string(o, "LifecycleHookName", strempty(e->hook));
        fj_set_string(o, "EC2InstanceId", strempty(e->instance));
        fj_set_string(o, "LifecycleTransition",
                      launching ? "autoscaling:EC2_INSTANCE_LAUNCHING"
                                : "autoscaling:EC2_INSTANCE_TERMINATING");
        fj_set_string(o, "NotificationMetadata", "additional-info");
        fj_set_string(o, "Origin", launching ? "EC2" : "AutoScalingGroup");
        fj_set_string(o, "Destination", launching ? "AutoScalingGroup" : "EC2");
}

static void add_detail(const FakeAwsEvent *e, cJSON *o) {
        switch (e->kind) {
        case FAKE_AWS_EVENT_SPOT:
                fj_set_string(o, "instance-id", strempty(e->instance));
                fj_set_string(o, "instance-action", or_else(e->action, "terminate"));
                break;
        case FAKE_AWS_EVENT_REBALANCE:
                fj_set_string(o, "instance-id", strempty(e->instance));
                break;
        case FAKE_AWS_EVENT_STATE:
                fj_set_string(o, "instance-id", strempty(e->instance));
                fj_set_string(o, "state", or_else(e->action, "terminated"));
                break;
        case FAKE_AWS_EVENT_RESERVATION:
                fj_set_string(o, "instance-id", strempty(e->instance));
                fj_set_string(o, "instance-action", or_else(e->action, "terminate"));
                set_time(o, "instance-termination-time", e->until_wall_usec);
                fj_set_string(o, "availability-zone-id", "use1-az1");
                fj_set_string(o, "instance-lifecycle", "interruptible-capacity-reservation");
                break;
        case FAKE_AWS_EVENT_BLOCK:
                fj_set_string(o, "capacity-reservation-id", or_else(e->reservation, "cr-0123456789abcdef0"));
                set_time(o, "end-date", e->until_wall_usec);
                break;
        case FAKE_AWS_EVENT_HEALTH:
                add_health(e, o);
                break;
        case FAKE_AWS_EVENT_TERMINATE_ACTION:
        case FAKE_AWS_EVENT_LAUNCH_ACTION:
        case FAKE_AWS_EVENT_HOOK:
                add_action(e, o, e->kind == FAKE_AWS_EVENT_LAUNCH_ACTION);
                break;
        case FAKE_AWS_EVENT_HOOK_TEST:
                fj_set_string(o, "AutoScalingGroupName", strempty(e->group));
                fj_set_string(o, "Event", "autoscaling:TEST_NOTIFICATION");
                break;
        case _FAKE_AWS_EVENT_MAX:
        case _FAKE_AWS_EVENT_INVALID:
                assert(false && "no kind of event");
        }
}

/* What a hook sends itself: no envelope, the same members at the top. */
static cJSON *bare(const FakeAwsEvent *e) {
        cJSON *o = MUST(cJSON_CreateObject());

        add_detail(e, o);
        fj_set_string(o, "Service", "AWS Auto Scaling");
        set_time(o, "Time", e->wall_usec);
        fj_set_string(o, "RequestId", or_else(e->id, NO_ID));
        fj_set_string(o, "AccountId", account_of(e));
        return o;
}

static void set_resources(const FakeAwsEvent *e, cJSON *o) {
        _cleanup_free_ char *arn = NULL;

        if (e->kind == FAKE_AWS_EVENT_BLOCK) {
                arn = MUST(strf("arn:aws:ec2:%s:%s:capacity-reservation/%s", region_of(e), account_of(e),
                                or_else(e->reservation, "cr-0123456789abcdef0")));
                fj_set_string(o, "resources", arn);
                return;
        }
        if (e->kind == FAKE_AWS_EVENT_TERMINATE_ACTION || e->kind == FAKE_AWS_EVENT_LAUNCH_ACTION)
                arn = MUST(strf("arn:aws:autoscaling:%s:%s:autoScalingGroup:" NO_ID
                                ":autoScalingGroupName/%s",
                                region_of(e), account_of(e), strempty(e->group)));
        else if (e->kind == FAKE_AWS_EVENT_HEALTH)
                arn = MUST(strdup(strempty(e->instance)));
        else
                arn = MUST(strf("arn:aws:ec2:%s:%s:instance/%s", region_of(e), account_of(e),
                                strempty(e->instance)));
        cJSON_AddItemToArray(fj_array(o, "resources"), MUST(cJSON_CreateString(arn)));
}

static cJSON *enveloped(const FakeAwsEvent *e) {
        cJSON *o = fj_parse("{'version':'0'}");

        fj_set_string(o, "id", or_else(e->id, NO_ID));
        fj_set_string(o, "detail-type", kinds[e->kind].type);
        fj_set_string(o, "source", kinds[e->kind].source);
        fj_set_string(o, "account", account_of(e));
        set_time(o, "time", e->wall_usec);
        fj_set_string(o, "region", or_else(e->envelope_region, region_of(e)));
        set_resources(e, o);
        add_detail(e, fj_object(o, "detail"));
        return o;
}

char *fake_aws_event(const FakeAwsEvent *e) {
        _cleanup_cjson_ cJSON *o = NULL;

        assert(e->kind >= 0 && e->kind < _FAKE_AWS_EVENT_MAX);
        o = kinds[e->kind].source ? enveloped(e) : bare(e);
        return fj_print(o);
}

char *fake_aws_event_by_sns(const FakeAwsEvent *e) {
        _cleanup_free_ char *message = fake_aws_event(e), *topic = NULL;
        _cleanup_cjson_ cJSON *o = fj_parse("{'Type':'Notification'}");

        topic = MUST(strf("arn:aws:sns:%s:%s:lifecycle", region_of(e), account_of(e)));
        fj_set_string(o, "MessageId", or_else(e->id, NO_ID));
        fj_set_string(o, "TopicArn", topic);
        fj_set_string(o, "Message", message);
        set_time(o, "Timestamp", e->wall_usec);
        return fj_print(o);
}
