/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "fake-asg-request.h"
#include "fake-json.h"
#include "fake-query.h"
#include "parse-util.h"
#include "strv.h"

#define VERSION "2011-01-01"
#define NAMESPACE "http://autoscaling.amazonaws.com/doc/2011-01-01/"
#define MAX_SKEW_USEC (5 * USEC_PER_MINUTE)
#define IDS_MAX 50u
#define HEARTBEAT_USEC USEC_PER_HOUR
#define COOLDOWN_USEC (300 * USEC_PER_SEC)

const char *asg_param(const AsgRequest *r, const char *name) {
        return fake_query_get(&r->params, name);
}

/* -- answers ------------------------------------------------------------------------------------------- */

static void reply_error(AsgRequest *r, unsigned status, const char *code, const char *message) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_addf(&b, "<ErrorResponse xmlns=\"" NAMESPACE "\">\n  <Error>\n    <Type>%s</Type>\n    ",
                    status >= 500 ? "Receiver" : "Sender");
        fake_xml_add_element(&b, "Code", code);
        fake_xml_add_element(&b, "Message", message);
        strbuf_add(&b, "\n  </Error>\n  <RequestId>" FAKE_AWS_REQUEST_ID "</RequestId>\n</ErrorResponse>\n");
        fake_aws_front_reply(&r->f->front, r->x, status, "text/xml", NULL, strbuf_str(&b));
}

_printf_(2, 3) void asg_reply_invalid(AsgRequest *r, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);
        reply_error(r, 400, "ValidationError", strbuf_str(&b));
}

/* result NULL: the action has none, not even an empty one. */
void asg_reply(AsgRequest *r, const char *result) {
        const char *action = asg_param(r, "Action");
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_addf(&b, "<%sResponse xmlns=\"" NAMESPACE "\">\n", action);
        if (result)
                strbuf_addf(&b, "  <%sResult>%s</%sResult>\n", action, result, action);
        strbuf_addf(&b,
                    "  <ResponseMetadata>\n    <RequestId>" FAKE_AWS_REQUEST_ID
                    "</RequestId>\n  </ResponseMetadata>\n</%sResponse>\n",
                    action);
        fake_aws_front_reply(&r->f->front, r->x, 200, "text/xml", NULL, strbuf_str(&b));
}

void asg_reply_mismatch(AsgRequest *r, const char *message) {
        reply_error(r, 400, "IdempotentParameterMismatch", message);
}

/* -- parameters ---------------------------------------------------------------------------------------- */

/* False: the error was sent. */
bool asg_take_bool(AsgRequest *r, const char *name, bool required, bool *ret) {
        const char *text = asg_param(r, name);

        *ret = streq_ptr(text, "true");
        if (text ? *ret || streq(text, "false") : !required)
                return true;
        if (text)
                asg_reply_invalid(r,
                              "1 validation error detected: Value '%s' at '%s' failed to satisfy "
                              "constraint: Member "
                              "must be a boolean",
                              text, name);
        else
                asg_reply_invalid(
                        r,
                        "1 validation error detected: Value null at '%s' failed to satisfy constraint: "
                        "Member must not be null",
                        name);
        return false;
}

/* NULL: the error was sent. */
const char *asg_take_string(AsgRequest *r, const char *name) {
        const char *text = asg_param(r, name);

        if (isempty(text))
                asg_reply_invalid(
                        r,
                        "1 validation error detected: Value null at '%s' failed to satisfy constraint: "
                        "Member must not be null",
                        name);
        return isempty(text) ? NULL : text;
}

AsgGroup *asg_take_group(AsgRequest *r) {
        const char *name = asg_take_string(r, "AutoScalingGroupName");
        AsgGroup *g = name ? asg_find_group(r->f, name) : NULL;

        if (name && !g)
                asg_reply_invalid(r, "AutoScalingGroup name not found - AutoScalingGroup '%s' not found", name);
        return g;
}

typedef struct Page {
        uint64_t first, size;
} Page;

static bool take_page(AsgRequest *r, uint64_t limit, Page *ret) {
        const char *max = asg_param(r, "MaxRecords"), *token = asg_param(r, "NextToken");

        *ret = (Page) { .size = 50 };
        if (max && parse_uint64_range(max, 1, limit, &ret->size) < 0) {
                asg_reply_invalid(r,
                              "1 validation error detected: Value '%s' at 'maxRecords' failed to satisfy "
                              "constraint: Member must have value between 1 and %" PRIu64,
                              max, limit);
                return false;
        }
        if (token && (!startswith(token, "page+") || parse_uint64(token + 5, &ret->first) < 0)) {
                reply_error(r, 400, "InvalidNextToken", "The NextToken value is not valid.");
                return false;
        }
        return true;
}

/* -- describing ---------------------------------------------------------------------------------------- */

static void add_member(AsgRequest *r, StrBuf *b, const AsgMember *m, bool with_group) {
        const char *state = fake_ec2_state(r->f->ec2, m->id);
        bool sound = state && (streq(state, "running") || streq(state, "pending"));

        strbuf_add(b, "<member>");
        fake_xml_add_element(b, "InstanceId", m->id);
        fake_xml_add_element(b, "InstanceType", "m5.large");
        if (with_group)
                fake_xml_add_element(b, "AutoScalingGroupName", m->group->name);
        fake_xml_add_element(b, "AvailabilityZone", strempty(fake_ec2_zone(r->f->ec2, m->id)));
        fake_xml_add_element(b, "LifecycleState", m->state);
        /* One of the two calls shouts. What EC2 ended is called healthy until the health check. */
        fake_xml_add_element(b, "HealthStatus",
                             sound || !asg_is_ending(m) ? (with_group ? "HEALTHY" : "Healthy")
                                                        : (with_group ? "UNHEALTHY" : "Unhealthy"));
        fake_xml_add_element(b, "ProtectedFromScaleIn", m->protected ? "true" : "false");
        strbuf_add(b, "</member>\n");
}

static void describe_instances(AsgRequest *r) {
        _cleanup_strv_free_ char **ids = fake_query_list(&r->params, "InstanceIds.member");
        _cleanup_strbuf_ StrBuf b = { 0 };
        uint64_t n = 0;
        Page page;

        if (strv_length(ids) > IDS_MAX)
                return asg_reply_invalid(r, "The number of instance ids that may be passed in is limited to 50");
        if (!take_page(r, 50, &page))
                return;
        strbuf_add(&b, "<AutoScalingInstances>\n");
        LIST_FOREACH (g, &r->f->groups, AsgGroup, groups)
                LIST_FOREACH (m, &g->members, AsgMember, members) {
                        if (ids && !strv_contains(ids, m->id))
                                continue;
                        if (n >= page.first && n < page.first + page.size)
                                add_member(r, &b, m, true);
                        n++;
                }
        strbuf_add(&b, "</AutoScalingInstances>");
        if (n > page.first + page.size)
                strbuf_addf(&b, "<NextToken>page+%" PRIu64 "</NextToken>", page.first + page.size);
        asg_reply(r, strbuf_str(&b));
}

static void add_group(AsgRequest *r, StrBuf *b, const AsgGroup *g) {
        char created[RFC3339_MAX];

        rfc3339_format(g->created_wall_usec, created);
        strbuf_add(b, "<member>");
        fake_xml_add_element(b, "AutoScalingGroupName", g->name);
        strbuf_addf(b,
                    "<AutoScalingGroupARN>arn:aws:autoscaling:%s:%s:autoScalingGroup:"
                    "930d940e-891e-4781-a11a-7b0acd480f03:autoScalingGroupName/",
                    strempty(r->f->front.region), r->f->front.account);
        fake_xml_add_escaped(b, g->name);
        strbuf_addf(b,
                    "</AutoScalingGroupARN><MinSize>%u</MinSize><MaxSize>%u</MaxSize>"
                    "<DesiredCapacity>%u</DesiredCapacity><DefaultCooldown>%" PRIu64 "</DefaultCooldown>\n"
                    "<AvailabilityZones>",
                    g->min, g->max, g->desired, g->cooldown_usec / USEC_PER_SEC);
        STRV_FOREACH (zone, g->zones)
                fake_xml_add_element(b, "member", *zone);
        strbuf_add(b, "</AvailabilityZones><LoadBalancerNames/><HealthCheckType>EC2</HealthCheckType>"
                      "<HealthCheckGracePeriod>0</HealthCheckGracePeriod>\n<Instances>\n");
        LIST_FOREACH (m, &g->members, AsgMember, members)
                add_member(r, b, m, false);
        strbuf_add(b, "</Instances><SuspendedProcesses>");
        for (AsgProcess i = 0; i < _ASG_PROCESS_MAX; i++)
                if (g->suspended & (1u << i)) {
                        strbuf_add(b, "<member>");
                        fake_xml_add_element(b, "ProcessName", asg_process_names[i]);
                        fake_xml_add_element(b, "SuspensionReason", "User suspended");
                        strbuf_add(b, "</member>");
                }
        strbuf_addf(b,
                    "</SuspendedProcesses><CreatedTime>%s</CreatedTime><Tags/><TerminationPolicies><member>Default</"
                    "member>"
                    "</TerminationPolicies><NewInstancesProtectedFromScaleIn>false"
                    "</NewInstancesProtectedFromScaleIn></member>\n",
                    created);
}

static void describe_groups(AsgRequest *r) {
        _cleanup_strv_free_ char **names = fake_query_list(&r->params, "AutoScalingGroupNames.member");
        _cleanup_strbuf_ StrBuf b = { 0 };
        uint64_t n = 0;
        Page page;

        if (!take_page(r, 100, &page))
                return;
        strbuf_add(&b, "<AutoScalingGroups>\n");
        LIST_FOREACH (g, &r->f->groups, AsgGroup, groups) {
                if (names && !strv_contains(names, g->name))
                        continue;
                if (n >= page.first && n < page.first + page.size)
                        add_group(r, &b, g);
                n++;
        }
        strbuf_add(&b, "</AutoScalingGroups>");
        if (n > page.first + page.size)
                strbuf_addf(&b, "<NextToken>page+%" PRIu64 "</NextToken>", page.first + page.size);
        asg_reply(r, strbuf_str(&b));
}

static void describe_hooks(AsgRequest *r) {
        _cleanup_strv_free_ char **names = fake_query_list(&r->params, "LifecycleHookNames.member");
        _cleanup_strbuf_ StrBuf b = { 0 };
        const AsgGroup *g = asg_take_group(r);

        if (!g)
                return;
        strbuf_add(&b, "<LifecycleHooks>\n");
        LIST_FOREACH (h, &g->hooks, AsgHook, hooks) {
                uint64_t sec = h->heartbeat_usec / USEC_PER_SEC;

                if (names && !strv_contains(names, h->name))
                        continue;
                strbuf_add(&b, "<member>");
                fake_xml_add_element(&b, "AutoScalingGroupName", g->name);
                fake_xml_add_element(&b, "LifecycleHookName", h->name);
                fake_xml_add_element(&b, "LifecycleTransition",
                                     h->launching ? "autoscaling:EC2_INSTANCE_LAUNCHING"
                                                  : "autoscaling:EC2_INSTANCE_TERMINATING");
                strbuf_addf(&b,
                            "<HeartbeatTimeout>%" PRIu64 "</HeartbeatTimeout><GlobalTimeout>%" PRIu64
                            "</GlobalTimeout>",
                            sec, MIN(UINT64_C(172800), 100 * sec));
                fake_xml_add_element(&b, "DefaultResult", h->abandon ? "ABANDON" : "CONTINUE");
                strbuf_add(&b, "</member>\n");
        }
        strbuf_add(&b, "</LifecycleHooks>");
        asg_reply(r, strbuf_str(&b));
}

/* -- changing ------------------------------------------------------------------------------------------ */

static void reply_activity(AsgRequest *r, const AsgMember *m) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        char id[ASG_TOKEN_MAX], now[RFC3339_MAX];

        asg_new_id(r->f, id);
        rfc3339_format(fake_aws_front_wall(&r->f->front), now);
        strbuf_addf(&b, "<Activity><ActivityId>%s</ActivityId>", id);
        fake_xml_add_element(&b, "AutoScalingGroupName", m->group->name);
        strbuf_addf(
                &b,
                "<Description>Terminating EC2 instance: %s</Description><Cause>At %s instance %s was taken "
                "out of service in response to a user request.</Cause><StartTime>%s</StartTime>"
                "<StatusCode>InProgress</StatusCode><Progress>0</Progress><Details>{}</Details></Activity>",
                m->id, now, m->id, now);
        asg_reply(r, strbuf_str(&b));
}

static void terminate_instance(AsgRequest *r) {
        const char *id = asg_take_string(r, "InstanceId"), *state;
        AsgMember *m;
        bool decrement;

        if (!id || !asg_take_bool(r, "ShouldDecrementDesiredCapacity", true, &decrement))
                return;
        m = asg_find_member(r->f, id);
        if (!m)
                return asg_reply_invalid(
                        r, "Instance Id not found - No managed instance found for instance ID: %s", id);
        state = fake_ec2_state(r->f->ec2, id);
        if (!asg_is_ending(m) && (!state || streq(state, "terminated")))
                return asg_reply_invalid(r, "The instance %s is already terminated.", id);
        if (startswith(m->state, "Warmed:"))
                return asg_reply_invalid(r, "The instance %s is in a warm pool (%s).", id, m->state);
        if (m->protected)
                return asg_reply_invalid(r, "The instance %s is protected from scale-in.", id);
        if (decrement && m->group->desired <= m->group->min)
                return asg_reply_invalid(
                        r,
                        "Currently, desiredSize equals minSize (%u). Terminating instance without "
                        "replacement will violate group's min size constraint. Either set "
                        "shouldDecrementDesiredCapacity flag to false or lower group's min size.",
                        m->group->min);
        /* Also for one that is terminating already: the trap. */
        m->group->desired -= decrement;
        reply_activity(r, m);
        asg_terminate(r->f, m);
}

static void set_desired_capacity(AsgRequest *r) {
        AsgGroup *g = asg_take_group(r);
        const char *text;
        uint64_t desired;
        bool honor;

        if (!g)
                return;
        text = asg_take_string(r, "DesiredCapacity");
        if (!text || !asg_take_bool(r, "HonorCooldown", false, &honor))
                return;
        if (parse_uint64(text, &desired) < 0)
                return asg_reply_invalid(r, "'%s' is no DesiredCapacity", text);
        if (desired > g->max)
                return asg_reply_invalid(r,
                                     "New SetDesiredCapacity value %" PRIu64
                                     " is above max value %u for the AutoScalingGroup.",
                                     desired, g->max);
        if (desired < g->min)
                return asg_reply_invalid(r,
                                     "New SetDesiredCapacity value %" PRIu64
                                     " is below min value %u for the AutoScalingGroup.",
                                     desired, g->min);
        if (honor && g->last_activity_usec != USEC_INFINITY &&
            loop_now(r->f->front.loop) < usec_add(g->last_activity_usec, g->cooldown_usec))
                return reply_error(r, 400, "ScalingActivityInProgress",
                                   "Scaling activity is in progress and the cooldown has not ended.");
        g->desired = (unsigned) desired;
        asg_reply(r, NULL);
}

/* By token, or by the instance; NULL: the error was sent. */
static AsgAction *take_action(AsgRequest *r, AsgMember **ret) {
        const AsgGroup *g = asg_take_group(r);
        const char *hook = g ? asg_take_string(r, "LifecycleHookName") : NULL;
        const char *token = asg_param(r, "LifecycleActionToken"), *id = asg_param(r, "InstanceId");

        if (!hook)
                return NULL;
        if (!token && !id) {
                asg_reply_invalid(r, "Either the lifecycle action token or the instance id must be provided.");
                return NULL;
        }
        if (token && strlen(token) != ASG_TOKEN_MAX - 1) {
                asg_reply_invalid(r,
                              "1 validation error detected: Value '%s' at 'lifecycleActionToken' failed to "
                              "satisfy "
                              "constraint: Member must have length equal to 36",
                              token);
                return NULL;
        }
        LIST_FOREACH (m, &g->members, AsgMember, members)
                LIST_FOREACH (a, &m->actions, AsgAction, actions)
                        if (streq(a->hook->name, hook) && (!token || streq(a->token, token)) &&
                            (!id || streq(m->id, id))) {
                                *ret = m;
                                return a;
                        }
        if (token)
                asg_reply_invalid(r, "No active Lifecycle Action found with token %s", token);
        else
                asg_reply_invalid(r, "No active Lifecycle Action found with instance ID %s", id);
        return NULL;
}

static void complete_action(AsgRequest *r) {
        const char *result = asg_param(r, "LifecycleActionResult");
        AsgMember *m;
        AsgAction *a;

        if (!streq_ptr(result, "CONTINUE") && !streq_ptr(result, "ABANDON"))
                return asg_reply_invalid(r, "LifecycleActionResult must be CONTINUE or ABANDON, not '%s'.",
                                     strempty(result));
        a = take_action(r, &m);
        if (!a)
                return;
        asg_complete(r->f, m, a, streq(result, "ABANDON"));
        asg_reply(r, "");
}

static void record_heartbeat(AsgRequest *r) {
        AsgMember *m;
        AsgAction *a = take_action(r, &m);

        if (!a)
                return;
        a->deadline_usec = usec_add(loop_now(r->f->front.loop), a->hook->heartbeat_usec);
        asg_reply(r, "");
}

/* -- a request ----------------------------------------------------------------------------------------- */

static const struct Action {
        const char *name;
        const char *params[9]; /* stricter than the real service, which passes over what it does not know */
        void (*act)(AsgRequest *r);
} actions[] = {
        { "DescribeAutoScalingGroups",
          { "Action", "Version", "AutoScalingGroupNames.", "MaxRecords", "NextToken" },
          describe_groups },
        { "DescribeAutoScalingInstances",
          { "Action", "Version", "InstanceIds.", "MaxRecords", "NextToken" },
          describe_instances },
        { "DescribeLifecycleHooks",
          { "Action", "Version", "AutoScalingGroupName", "LifecycleHookNames." },
          describe_hooks },
        { "TerminateInstanceInAutoScalingGroup",
          { "Action", "Version", "InstanceId", "ShouldDecrementDesiredCapacity" },
          terminate_instance },
        { "SetDesiredCapacity",
          { "Action", "Version", "AutoScalingGroupName", "DesiredCapacity", "HonorCooldown" },
          set_desired_capacity },
        { "CompleteLifecycleAction",
          { "Action", "Version", "AutoScalingGroupName", "LifecycleHookName", "LifecycleActionResult",
            "LifecycleActionToken", "InstanceId" },
          complete_action },
        { "RecordLifecycleActionHeartbeat",
          { "Action", "Version", "AutoScalingGroupName", "LifecycleHookName", "LifecycleActionToken",
            "InstanceId" },
          record_heartbeat },
        { "DetachInstances",
          { "Action", "Version", "AutoScalingGroupName", "InstanceIds.", "ShouldDecrementDesiredCapacity" },
          asg_detach_instances },
        { "EnterStandby",
          { "Action", "Version", "AutoScalingGroupName", "InstanceIds.", "ShouldDecrementDesiredCapacity" },
          asg_enter_standby },
        { "ExitStandby", { "Action", "Version", "AutoScalingGroupName", "InstanceIds." }, asg_exit_standby },
        { "LaunchInstances",
          { "Action", "Version", "AutoScalingGroupName", "RequestedCapacity", "ClientToken", "AvailabilityZones.", "SubnetIds.",
            "RetryStrategy" },
          asg_launch_instances },
        { "SetInstanceProtection",
          { "Action", "Version", "AutoScalingGroupName", "InstanceIds.", "ProtectedFromScaleIn" },
          asg_set_instance_protection },
        { "SuspendProcesses", { "Action", "Version", "AutoScalingGroupName", "ScalingProcesses." }, asg_suspend_processes },
        { "ResumeProcesses", { "Action", "Version", "AutoScalingGroupName", "ScalingProcesses." }, asg_resume_processes },
};

static const struct Action *find_action(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (streq_ptr(name, actions[i].name))
                        return &actions[i];
        return NULL;
}

/* True: the request is answered, or never will be. */
static bool play_trouble(AsgRequest *r, const char *action) {
        const FakeTrouble *t = fake_troubles_take(r->f->front.troubles, action, &r->x);

        if (t && t->kind == FAKE_TROUBLE_BODY)
                fake_aws_front_reply(&r->f->front, r->x, t->status, "text/xml", NULL, t->body);
        else if (t)
                reply_error(r, t->status, t->code, t->message);
        return t || !r->x;
}

static void handle(AsgRequest *r) {
        static const char *const services[] = { "autoscaling", NULL };
        const char *type = http_header_find(r->x->headers, r->x->n_headers, "Content-Type"), *unknown;
        const struct Action *a;
        FakeAwsRefusal refusal;
        FakeAwsScope scope;

        if (r->x->method != HTTP_POST || !streq(r->x->path, "/") || *r->x->query || !type ||
            !startswith(type, "application/x-www-form-urlencoded"))
                return reply_error(r, 400, "MalformedQueryString",
                                   "Only POST / with a form is played here.");
        if (!fake_aws_front_admit(&r->f->front, r->x, services, &scope, &refusal)) {
                fake_aws_refusal_as_query(&refusal);
                return reply_error(r, refusal.status, refusal.code, refusal.message);
        }
        if (r->params.repeated)
                return reply_error(r, 400, "MalformedQueryString", "A parameter was given twice.");
        a = find_action(asg_param(r, "Action"));
        if (!a || !streq_ptr(asg_param(r, "Version"), VERSION)) {
                _cleanup_free_ char *message =
                        MUST(strf("Could not find operation %s for version %s", strempty(asg_param(r, "Action")),
                                  strempty(asg_param(r, "Version"))));

                return reply_error(r, 400, "InvalidAction", message);
        }
        asg_run(r->f);
        if (play_trouble(r, a->name))
                return;
        unknown = fake_query_unknown(&r->params, a->params, ELEMENTSOF(a->params));
        if (unknown)
                return asg_reply_invalid(r, "The parameter %s is not recognized", unknown);
        a->act(r);
        asg_run(r->f);
}

void fake_autoscaling_handle(HttpExchange *x, void *fake_autoscaling) {
        AsgRequest r = { .f = fake_autoscaling, .x = x };

        fake_query_init_form(&r.params, x);
        handle(&r);
        fake_query_done(&r.params);
}

/* -- what tests do ------------------------------------------------------------------------------------- */

static void on_timer(Timer *t, void *userdata) {
        asg_run(userdata);
}

FakeAutoscaling *fake_autoscaling_new(const FakeAutoscalingOptions *o) {
        FakeAutoscaling *f = MUST(new0(FakeAutoscaling, 1));
        FakeAwsFrontOptions aws = o->aws;
        int r;

        aws.max_skew_usec = MAX_SKEW_USEC;
        fake_aws_front_init(&f->front, &aws);
        f->ec2 = o->ec2;
        f->health_check_usec = o->health_check_usec > 0 ? o->health_check_usec : USEC_PER_MINUTE;
        f->replace_usec = o->replace_usec > 0 ? o->replace_usec : 10 * USEC_PER_SEC;
        f->launch_usec = o->launch_usec > 0 ? o->launch_usec : 30 * USEC_PER_SEC;
        f->on_event = o->on_event;
        f->userdata = o->userdata;
        r = timer_new(aws.loop, "fake-autoscaling", on_timer, f, &f->timer);
        assert(r >= 0);
        f->watch = (FakeEc2Watch) { .changed = asg_on_ec2_change, .userdata = f };
        fake_ec2_watch(f->ec2, &f->watch);
        return f;
}

FakeAutoscaling *fake_autoscaling_free(FakeAutoscaling *f) {
        if (!f)
                return NULL;
        fake_ec2_unwatch(f->ec2, &f->watch);
        LIST_FOREACH (g, &f->groups, AsgGroup, groups)
                asg_group_free(f, g);
        timer_free(f->timer);
        fake_aws_front_done(&f->front);
        return mfree(f);
}

static AsgGroup *must_group(const FakeAutoscaling *f, const char *name) {
        return MUST(asg_find_group(f, name));
}

static AsgMember *must_member(const FakeAutoscaling *f, const char *instance) {
        return MUST(asg_find_member(f, instance));
}

void fake_autoscaling_add_group(FakeAutoscaling *f, const FakeAsgGroup *o) {
        AsgGroup *g = MUST(new0(AsgGroup, 1));
        int r;

        assert(!asg_find_group(f, o->name) && o->desired <= o->max);
        g->name = MUST(strdup(o->name));
        r = strv_split(o->zones, " ", &g->zones);
        assert(r >= 0 && strv_length(g->zones) > 0);
        g->min = o->min;
        g->desired = o->desired;
        g->max = o->max;
        g->cooldown_usec = o->cooldown_usec > 0 ? o->cooldown_usec : COOLDOWN_USEC;
        g->rebalances = o->rebalances;
        g->last_activity_usec = g->launch_usec = USEC_INFINITY;
        g->created_wall_usec = fake_aws_front_wall(&f->front);
        list_append(&f->groups, &g->groups);
        asg_run(f);
}

void fake_autoscaling_attach(FakeAutoscaling *f, const char *group, const char *instance) {
        AsgGroup *g = must_group(f, group);

        assert(fake_ec2_state(f->ec2, instance) && !asg_find_member(f, instance) && g->desired < g->max);
        g->desired++;
        asg_add_member(f, g, instance, "InService");
        asg_run(f);
}

void fake_autoscaling_add_hook(FakeAutoscaling *f, const char *group, const FakeAsgHook *o) {
        AsgHook *h = MUST(new0(AsgHook, 1));

        h->name = MUST(strdup(o->name));
        h->launching = o->launching;
        h->abandon = o->abandon;
        h->heartbeat_usec = o->heartbeat_usec > 0 ? o->heartbeat_usec : HEARTBEAT_USEC;
        list_append(&must_group(f, group)->hooks, &h->hooks);
}

void fake_autoscaling_protect(FakeAutoscaling *f, const char *instance, bool protect) {
        must_member(f, instance)->protected = protect;
}

void fake_autoscaling_set_lifecycle(FakeAutoscaling *f, const char *instance, const char *state) {
        asg_set_state(must_member(f, instance), state);
        asg_run(f);
}

const char *fake_autoscaling_lifecycle(FakeAutoscaling *f, const char *instance) {
        const AsgMember *m;

        asg_run(f);
        m = asg_find_member(f, instance);
        return m ? m->state : NULL;
}

unsigned fake_autoscaling_desired(FakeAutoscaling *f, const char *group) {
        return must_group(f, group)->desired;
}

size_t fake_autoscaling_n_active(FakeAutoscaling *f, const char *group) {
        asg_run(f);
        return asg_n_active(must_group(f, group));
}

bool fake_autoscaling_has_room(const FakeAutoscaling *f, const char *group) {
        const AsgGroup *g = must_group(f, group);

        return g->desired < g->max;
}

bool fake_autoscaling_has_group(const FakeAutoscaling *f, const char *group) {
        return asg_find_group(f, group);
}

FakeTroubles *fake_autoscaling_troubles(FakeAutoscaling *f) {
        return f->front.troubles;
}

FakeAwsFront *fake_autoscaling_front(FakeAutoscaling *f) {
        return &f->front;
}

void fake_autoscaling_throttle(FakeAutoscaling *f, unsigned n) {
        fake_troubles_add(f->front.troubles, &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                                              .n = n,
                                                              .status = 400,
                                                              .code = "Throttling",
                                                              .message = "Rate exceeded" });
}
