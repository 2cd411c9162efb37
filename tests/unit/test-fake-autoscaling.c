/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-rig.h"
#include "cmocka-test.h"
#include "fake-autoscaling.h"
#include "string-util.h"

#define URL "https://autoscaling.eu-west-1.amazonaws.com/"
#define FORM "application/x-www-form-urlencoded; charset=utf-8"
#define A "i-0a"
#define B "i-0b"
#define C "i-0c"

typedef struct Room {
        CloudRig rig;
        FakeEc2 *ec2;
        FakeAutoscaling *asg;
        char token[64], token_hook[64]; /* of the last lifecycle action */
        char launched[64];
        unsigned n_lifecycle, n_launched, n_terminated;
} Room;

static void on_event(const FakeAsgEvent *e, void *userdata) {
        Room *r = userdata;

        switch (e->kind) {
        case FAKE_ASG_LIFECYCLE_ACTION:
                r->n_lifecycle++;
                (void) snprintf(r->token, sizeof(r->token), "%s", e->token);
                (void) snprintf(r->token_hook, sizeof(r->token_hook), "%s", e->hook);
                break;
        case FAKE_ASG_LAUNCHED:
                r->n_launched++;
                (void) snprintf(r->launched, sizeof(r->launched), "%s", e->instance);
                break;
        case FAKE_ASG_TERMINATED:
                r->n_terminated++;
                break;
        }
}

/* Group "g" of 2 to 4 with three members in two zones. */
static int room_setup(void **state) {
        Room *r = new0(Room, 1);

        rig_init(&r->rig);
        r->ec2 = fake_ec2_new(&(FakeEc2Options) {
                .loop = r->rig.loop, .region = RIG_REGION, .shutting_down_usec = 30 * USEC_PER_SEC });
        r->asg = fake_autoscaling_new(&(FakeAutoscalingOptions) { .aws = { .loop = r->rig.loop,
                                                                           .region = RIG_REGION,
                                                                           .access_key_id = RIG_KEY,
                                                                           .secret_access_key = RIG_SECRET },
                                                                  .ec2 = r->ec2,
                                                                  .on_event = on_event,
                                                                  .userdata = r });
        fake_ec2_run(r->ec2, A, "eu-west-1a");
        fake_ec2_run(r->ec2, B, "eu-west-1a");
        fake_ec2_run(r->ec2, C, "eu-west-1b");
        fake_autoscaling_add_group(
                r->asg, &(FakeAsgGroup) { .name = "g", .zones = "eu-west-1a eu-west-1b", .max = 4 });
        fake_autoscaling_attach(r->asg, "g", A);
        fake_autoscaling_attach(r->asg, "g", B);
        fake_autoscaling_attach(r->asg, "g", C);
        rig_route(&r->rig, "https://autoscaling.eu-west-1.amazonaws.com", fake_autoscaling_handle, r->asg);
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        rig_stop(&r->rig);
        fake_autoscaling_free(r->asg);
        fake_ec2_free(r->ec2);
        rig_done(&r->rig);
        free(r);
        return 0;
}

/* "Action=X&..." with the version; checks the answer. */
static void expect(Room *r, const char *form, unsigned status, const char *part) {
        _cleanup_free_ char *body = strf("%s&Version=2011-01-01", form);
        _cleanup_ask_ CloudAsk a = { 0 };

        rig_start_aws(&r->rig, &a, "autoscaling", URL, FORM, NULL, body, NULL);
        rig_wait(&r->rig, &a);
        ask_expect(&a, form, status, part);
}

static void terminate(Room *r, const char *id, bool decrement, unsigned status, const char *part) {
        _cleanup_free_ char *form = strf(
                "Action=TerminateInstanceInAutoScalingGroup&InstanceId=%s&ShouldDecrementDesiredCapacity=%s",
                id, decrement ? "true" : "false");

        expect(r, form, status, part);
}

static void expect_lifecycle(Room *r, const char *id, const char *state) {
        const char *seen = fake_autoscaling_lifecycle(r->asg, id);

        if (!streq_ptr(seen, state))
                fail_msg("%s: expected %s, saw %s", id, state ? state : "no member",
                         seen ? seen : "no member");
}

/* -- who is let in ------------------------------------------------------------------------------------- */

TEST_CASE(test_refusals) {
        static const struct {
                const char *what;
                RigSigning signing;
                const char *form, *code;
                unsigned status;
        } rows[] = {
                { "unsigned", { .unsigned_ = true }, "", "MissingAuthenticationToken", 403 },
                { "unknown key", { .key = "AKIANOBODY" }, "", "InvalidClientTokenId", 403 },
                { "another's secret", { .secret = "x" }, "", "SignatureDoesNotMatch", 403 },
                { "a token nobody gave", { .token = "x" }, "", "InvalidClientTokenId", 403 },
                { "wrong region", { .region = "eu-west-2" }, "", "valid region, not 'eu-west-2'", 403 },
                { "wrong service", { .service = "ec2" }, "", "correct service: 'autoscaling'", 403 },
                { "4 minutes off",
                  { .skew_usec = 4 * 60 * 1000000ll },
                  "Action=DescribeAutoScalingInstances&Version=2011-01-01",
                  "AutoScalingInstances",
                  200 },
                { "6 minutes off: no RequestExpired here",
                  { .skew_usec = 6 * 60 * 1000000ll },
                  "",
                  "<Code>SignatureDoesNotMatch</Code>",
                  403 },
                { "no such action",
                  { 0 },
                  "Action=DeleteEverything&Version=2011-01-01",
                  "<Code>InvalidAction</Code>",
                  400 },
                { "EC2's version",
                  { 0 },
                  "Action=DescribeAutoScalingInstances&Version=2016-11-15",
                  "InvalidAction",
                  400 },
                { "an unknown parameter",
                  { 0 },
                  "Action=DescribeAutoScalingInstances&Version=2011-01-01&InstanceId.1=i-0a",
                  "InstanceId.1 is not recognized",
                  400 },
                { "a parameter twice",
                  { 0 },
                  "Action=SetDesiredCapacity&Version=2011-01-01&DesiredCapacity=1&DesiredCapacity=2",
                  "MalformedQueryString",
                  400 },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ask_ CloudAsk a = { 0 };

                rig_start_aws(&r->rig, &a, "autoscaling", URL, FORM, NULL, rows[i].form, &rows[i].signing);
                rig_wait(&r->rig, &a);
                ask_expect(&a, rows[i].what, rows[i].status, rows[i].code);
        }
        fake_aws_front_expire_keys(fake_autoscaling_front(r->asg), "ExpiredToken");
        expect(r, "Action=DescribeAutoScalingInstances", 403, "<Code>ExpiredToken</Code>");
        assert_int_equal(fake_autoscaling_front(r->asg)->n_refused, 8);
}

/* Neither EC2's wrapper nor its spelling of the request's id. */
TEST_CASE(test_error_document) {
        Room *r = *state;

        terminate(r, "i-0dead", false, 400,
                  "<ErrorResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\">\n  <Error>\n"
                  "    <Type>Sender</Type>\n    <Code>ValidationError</Code><Message>Instance Id not found "
                  "- No "
                  "managed instance found for instance ID: i-0dead</Message>\n  </Error>\n  <RequestId>");
        fake_troubles_add(fake_autoscaling_troubles(r->asg), &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                                                              .n = 1,
                                                                              .status = 500,
                                                                              .code = "ResourceContention",
                                                                              .message = "Try again." });
        terminate(r, A, false, 500, "<Type>Receiver</Type>");
        fake_autoscaling_throttle(r->asg, 1);
        terminate(r, A, false, 400, "<Code>Throttling</Code>");
        expect_lifecycle(r, A, "InService");
}

/* -- describing ---------------------------------------------------------------------------------------- */

TEST_CASE(test_describe) {
        static const struct {
                const char *form;
                unsigned status;
                const char *part;
        } rows[] = {
                { "Action=DescribeAutoScalingInstances&InstanceIds.member.1=i-0a", 200,
                  "<InstanceId>i-0a</InstanceId><InstanceType>m5.large</InstanceType>"
                  "<AutoScalingGroupName>g</AutoScalingGroupName><AvailabilityZone>eu-west-1a</"
                  "AvailabilityZone>"
                  "<LifecycleState>InService</LifecycleState><HealthStatus>HEALTHY</HealthStatus>"
                  "<ProtectedFromScaleIn>false</ProtectedFromScaleIn>" },
                /* unknown ids are simply missing */
                { "Action=DescribeAutoScalingInstances&InstanceIds.member.1=i-0dead", 200,
                  "<AutoScalingInstances>\n</AutoScalingInstances>" },
                { "Action=DescribeAutoScalingInstances&MaxRecords=2", 200, "<NextToken>page+2</NextToken>" },
                { "Action=DescribeAutoScalingInstances&MaxRecords=2&NextToken=page%2B2", 200, "i-0c" },
                { "Action=DescribeAutoScalingInstances&MaxRecords=51", 400, "ValidationError" },
                { "Action=DescribeAutoScalingInstances&NextToken=x", 400, "InvalidNextToken" },
                { "Action=DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=g", 200,
                  "<MinSize>0</MinSize><MaxSize>4</MaxSize><DesiredCapacity>3</DesiredCapacity>" },
                { "Action=DescribeAutoScalingGroups&AutoScalingGroupNames.member.1=none", 200,
                  "<AutoScalingGroups>\n</AutoScalingGroups>" },
                { "Action=DescribeLifecycleHooks&AutoScalingGroupName=none", 400,
                  "AutoScalingGroup name not found" },
                { "Action=DescribeLifecycleHooks&AutoScalingGroupName=g", 200,
                  "<LifecycleHookName>drain</LifecycleHookName>"
                  "<LifecycleTransition>autoscaling:EC2_INSTANCE_TERMINATING</LifecycleTransition>"
                  "<HeartbeatTimeout>300</HeartbeatTimeout><GlobalTimeout>30000</GlobalTimeout>"
                  "<DefaultResult>ABANDON</DefaultResult>" },
        };
        Room *r = *state;
        StrBuf many = { 0 };

        fake_autoscaling_add_hook(
                r->asg, "g",
                &(FakeAsgHook) { .name = "drain", .heartbeat_usec = 300 * USEC_PER_SEC, .abandon = true });
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                expect(r, rows[i].form, rows[i].status, rows[i].part);

        strbuf_add(&many, "Action=DescribeAutoScalingInstances");
        for (unsigned i = 1; i <= 51; i++)
                strbuf_addf(&many, "&InstanceIds.member.%u=i-0%u", i, i);
        expect(r, strbuf_str(&many), 400, "limited to 50");
        strbuf_done(&many);

        print_message("  a state that nobody has heard of\n");
        fake_autoscaling_set_lifecycle(r->asg, A, "ReplacingRootVolume:Wait");
        expect(r, rows[0].form, 200, "<LifecycleState>ReplacingRootVolume:Wait</LifecycleState>");
}

/* -- ending an instance -------------------------------------------------------------------------------- */

TEST_CASE(test_terminate_refused) {
        Room *r = *state;

        expect(r, "Action=TerminateInstanceInAutoScalingGroup&InstanceId=i-0a", 400,
               "ShouldDecrementDesiredCapacity");
        expect(r, "Action=TerminateInstanceInAutoScalingGroup&ShouldDecrementDesiredCapacity=true", 400,
               "InstanceId");
        fake_autoscaling_protect(r->asg, A, true);
        terminate(r, A, true, 400, "protected from scale-in");
        fake_autoscaling_protect(r->asg, A, false);
        fake_autoscaling_set_lifecycle(r->asg, A, "Warmed:Running");
        terminate(r, A, true, 400, "warm pool");
        fake_autoscaling_set_lifecycle(r->asg, A, "InService");
        fake_ec2_set_state(r->ec2, A, "terminated");
        terminate(r, A, true, 400, "already terminated");
        assert_int_equal(fake_autoscaling_desired(r->asg, "g"), 3);
}

TEST_CASE(test_terminate) {
        Room *r = *state;

        terminate(r, A, true, 200, "<StatusCode>InProgress</StatusCode><Progress>0</Progress>");
        expect_lifecycle(r, A, "Terminating");
        assert_string_equal(fake_ec2_state(r->ec2, A), "shutting-down");
        assert_int_equal(fake_autoscaling_desired(r->asg, "g"), 2);
        rig_run_for(&r->rig, 10 * USEC_PER_MINUTE);
        expect_lifecycle(r, A, NULL);
        assert_int_equal(r->n_launched, 0); /* decremented: nothing comes instead */
        terminate(r, A, true, 400, "No managed instance found");

        print_message("  without the decrement it is replaced\n");
        terminate(r, B, false, 200, NULL);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_int_equal(r->n_launched, 1);
        assert_string_equal(fake_ec2_state(r->ec2, r->launched), "running");
        expect_lifecycle(r, r->launched, "InService");
        assert_int_equal(fake_autoscaling_n_active(r->asg, "g"), 2);
        assert_int_equal(fake_ec2_n_alive(r->ec2), 2);
}

/* "Not idempotent in desired capacity": and not below the minimum. */
TEST_CASE(test_decrement_twice) {
        Room *r = *state;

        fake_autoscaling_add_group(
                r->asg,
                &(FakeAsgGroup) { .name = "h", .zones = "eu-west-1a", .min = 1, .desired = 1, .max = 2 });
        terminate(r, A, true, 200, NULL);
        terminate(r, A, true, 200, NULL);
        assert_int_equal(fake_autoscaling_desired(r->asg, "g"), 1);

        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_int_equal(r->n_launched, 1); /* h's only one */
        terminate(r, r->launched, true, 400, "desiredSize equals minSize (1)");
        terminate(r, r->launched, false, 200, NULL);
}

/* A second look, once the group wants fewer than it has: it chooses itself. */
TEST_CASE(test_set_desired) {
        Room *r = *state;

        expect(r, "Action=SetDesiredCapacity&AutoScalingGroupName=g&DesiredCapacity=5", 400,
               "above max value 4");
        expect(r, "Action=SetDesiredCapacity&AutoScalingGroupName=x&DesiredCapacity=1", 400, "not found");
        fake_autoscaling_protect(r->asg, A, true);
        expect(r, "Action=SetDesiredCapacity&AutoScalingGroupName=g&DesiredCapacity=2", 200,
               "<SetDesiredCapacityResponse");
        expect_lifecycle(r, A, "InService");
        expect_lifecycle(r, B, "Terminating"); /* in the fuller zone */
        expect(r, "Action=SetDesiredCapacity&AutoScalingGroupName=g&DesiredCapacity=3&HonorCooldown=true",
               400, "<Code>ScalingActivityInProgress</Code>");
        rig_run_for(&r->rig, 300 * USEC_PER_SEC);
        expect(r, "Action=SetDesiredCapacity&AutoScalingGroupName=g&DesiredCapacity=3&HonorCooldown=true",
               200, NULL);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_int_equal(r->n_launched, 1);
}

/* Ended behind the group's back: noticed at the next health check, then replaced. */
TEST_CASE(test_health_check) {
        Room *r = *state;

        fake_ec2_terminate(r->ec2, A);
        rig_run_for(&r->rig, 59 * USEC_PER_SEC);
        expect_lifecycle(r, A, "InService");
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect_lifecycle(r, A, NULL); /* EC2 has ended it by now */
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_int_equal(r->n_launched, 1);
        assert_int_equal(fake_autoscaling_desired(r->asg, "g"), 3);
}

/* "Decrementing can also set off zone rebalancing that kills another instance." */
TEST_CASE(test_rebalance) {
        Room *r = *state;

        fake_ec2_run(r->ec2, "i-01", "eu-west-1a");
        fake_ec2_run(r->ec2, "i-02", "eu-west-1a");
        fake_ec2_run(r->ec2, "i-03", "eu-west-1b");
        fake_autoscaling_add_group(r->asg, &(FakeAsgGroup) { .name = "z",
                                                             .zones = "eu-west-1a eu-west-1b",
                                                             .max = 9,
                                                             .rebalances = true });
        fake_autoscaling_attach(r->asg, "z", "i-03");
        fake_autoscaling_attach(r->asg, "z", "i-01");
        fake_autoscaling_attach(r->asg, "z", "i-02");
        terminate(r, "i-03", true, 200, NULL);
        rig_run_for(&r->rig, 10 * USEC_PER_MINUTE);
        assert_int_equal(fake_autoscaling_desired(r->asg, "z"), 2);
        expect_lifecycle(r, "i-01", NULL);
        expect_lifecycle(r, "i-02", "InService");
        assert_string_equal(fake_ec2_zone(r->ec2, r->launched), "eu-west-1b");
}

/* -- hooks --------------------------------------------------------------------------------------------- */

#define BY_TOKEN "Action=%s&AutoScalingGroupName=g&LifecycleHookName=%s&LifecycleActionToken=%s%s"

static void hook_call(Room *r, const char *action, const char *hook, const char *result, unsigned status,
                      const char *part) {
        _cleanup_free_ char *form = strf(BY_TOKEN, action, hook, r->token, result);

        expect(r, form, status, part);
}

TEST_CASE(test_hook) {
        Room *r = *state;

        fake_autoscaling_add_hook(r->asg, "g",
                                  &(FakeAsgHook) { .name = "drain", .heartbeat_usec = 60 * USEC_PER_SEC });
        terminate(r, A, true, 200, NULL);
        expect_lifecycle(r, A, "Terminating:Wait");
        assert_string_equal(fake_ec2_state(r->ec2, A), "running");
        assert_int_equal(strlen(r->token), 36);
        assert_string_equal(r->token_hook, "drain");

        print_message("  heartbeats keep it, and a repeat opens nothing new\n");
        terminate(r, A, false, 200, NULL);
        assert_int_equal(r->n_lifecycle, 1);
        for (int i = 0; i < 5; i++) {
                rig_run_for(&r->rig, 50 * USEC_PER_SEC);
                hook_call(r, "RecordLifecycleActionHeartbeat", "drain", "", 200,
                          "RecordLifecycleActionHeartbeatResult");
        }
        expect_lifecycle(r, A, "Terminating:Wait");

        hook_call(r, "CompleteLifecycleAction", "drain", "&LifecycleActionResult=PERHAPS", 400,
                  "ValidationError");
        hook_call(r, "CompleteLifecycleAction", "other", "&LifecycleActionResult=CONTINUE", 400,
                  "No active Lifecycle Action found with token");
        hook_call(r, "CompleteLifecycleAction", "drain", "&LifecycleActionResult=CONTINUE", 200,
                  "CompleteLifecycleActionResult");
        expect_lifecycle(r, A, "Terminating:Proceed");
        assert_string_equal(fake_ec2_state(r->ec2, A), "shutting-down");
        hook_call(r, "CompleteLifecycleAction", "drain", "&LifecycleActionResult=CONTINUE", 400,
                  "No active Lifecycle Action found");
        expect(r,
               "Action=CompleteLifecycleAction&AutoScalingGroupName=g&LifecycleHookName=drain&InstanceId=i-"
               "0a&LifecycleActionResult=CONTINUE",
               400, "No active Lifecycle Action found with instance ID i-0a");
        expect(r,
               "Action=CompleteLifecycleAction&AutoScalingGroupName=g&LifecycleHookName=drain&"
               "LifecycleActionToken=x&LifecycleActionResult=CONTINUE",
               400, "length equal to 36");
}

TEST_CASE(test_hook_times_out) {
        Room *r = *state;

        fake_autoscaling_add_hook(r->asg, "g",
                                  &(FakeAsgHook) { .name = "drain", .heartbeat_usec = 30 * USEC_PER_SEC });
        terminate(r, A, true, 200, NULL);
        rig_run_for(&r->rig, 29 * USEC_PER_SEC);
        expect_lifecycle(r, A, "Terminating:Wait");
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect_lifecycle(r, A, "Terminating:Proceed");

        print_message("  and heartbeats help 100 times its length at most\n");
        terminate(r, B, true, 200, NULL);
        for (int i = 0; i < 103; i++) {
                rig_run_for(&r->rig, 29 * USEC_PER_SEC);
                hook_call(r, "RecordLifecycleActionHeartbeat", "drain", "", 200, NULL);
        }
        expect_lifecycle(r, B, "Terminating:Wait");
        rig_run_for(&r->rig, 14 * USEC_PER_SEC); /* 103 times 29, and 14: 3001 seconds */
        expect_lifecycle(r, B, "Terminating:Proceed");
}

/* For terminating hooks both results end it; ABANDON skips the others. */
TEST_CASE(test_two_hooks) {
        Room *r = *state;

        fake_autoscaling_add_hook(r->asg, "g", &(FakeAsgHook) { .name = "drain" });
        fake_autoscaling_add_hook(r->asg, "g", &(FakeAsgHook) { .name = "logs" });
        terminate(r, A, true, 200, NULL);
        assert_int_equal(r->n_lifecycle, 2);
        expect(r,
               "Action=CompleteLifecycleAction&AutoScalingGroupName=g&LifecycleHookName=drain&InstanceId=i-"
               "0a&LifecycleActionResult=CONTINUE",
               200, NULL);
        expect_lifecycle(r, A, "Terminating:Wait");
        expect(r,
               "Action=CompleteLifecycleAction&AutoScalingGroupName=g&LifecycleHookName=logs&InstanceId=i-"
               "0a&LifecycleActionResult=CONTINUE",
               200, NULL);
        expect_lifecycle(r, A, "Terminating:Proceed");

        terminate(r, B, true, 200, NULL);
        expect(r,
               "Action=CompleteLifecycleAction&AutoScalingGroupName=g&LifecycleHookName=drain&InstanceId=i-"
               "0b&LifecycleActionResult=ABANDON",
               200, NULL);
        expect_lifecycle(r, B, "Terminating:Proceed");
}

TEST_CASE(test_launch_hook) {
        static const char complete[] =
                "Action=CompleteLifecycleAction&AutoScalingGroupName=g&LifecycleHookName=boot"
                "&LifecycleActionToken=%s&LifecycleActionResult=%s";
        Room *r = *state;
        _cleanup_free_ char *abandon = NULL, *go_on = NULL;

        fake_autoscaling_add_hook(r->asg, "g", &(FakeAsgHook) { .name = "boot", .launching = true });
        expect(r, "Action=SetDesiredCapacity&AutoScalingGroupName=g&DesiredCapacity=4", 200, NULL);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_int_equal(r->n_lifecycle, 1);
        assert_int_equal(r->n_launched, 0);
        expect(r, "Action=DescribeAutoScalingInstances", 200, "Pending:Wait");
        abandon = strf(complete, r->token, "ABANDON");
        expect(r, abandon, 200, NULL);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_int_equal(r->n_lifecycle, 2); /* another is tried */
        go_on = strf(complete, r->token, "CONTINUE");
        expect(r, go_on, 200, NULL);
        assert_int_equal(r->n_launched, 1);
        assert_int_equal(fake_autoscaling_n_active(r->asg, "g"), 4);
}

/* -- what gets lost ------------------------------------------------------------------------------------ */

TEST_CASE(test_lost_and_hung) {
        static const char form[] =
                "Action=TerminateInstanceInAutoScalingGroup&Version=2011-01-01&InstanceId=i-0a"
                "&ShouldDecrementDesiredCapacity=true";
        _cleanup_ask_ CloudAsk hung = { 0 }, lost = { 0 };
        Room *r = *state;

        fake_troubles_add(fake_autoscaling_troubles(r->asg),
                          &(FakeTrouble) { .kind = FAKE_TROUBLE_HANG,
                                           .n = 1,
                                           .operation = "TerminateInstanceInAutoScalingGroup" });
        fake_troubles_add(fake_autoscaling_troubles(r->asg),
                          &(FakeTrouble) { .kind = FAKE_TROUBLE_LOSE,
                                           .n = 1,
                                           .operation = "TerminateInstanceInAutoScalingGroup" });
        expect(r, "Action=DescribeAutoScalingGroups", 200, NULL); /* not meant */
        rig_start_aws(&r->rig, &hung, "autoscaling", URL, FORM, NULL, form, NULL);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        assert_false(hung.answered);
        expect_lifecycle(r, A, "InService");
        rig_start_aws(&r->rig, &lost, "autoscaling", URL, FORM, NULL, form, NULL);
        rig_run_for(&r->rig, USEC_PER_SEC);
        assert_false(lost.answered);
        expect_lifecycle(r, A, "Terminating");
        assert_int_equal(fake_troubles_n_requests(fake_autoscaling_troubles(r->asg),
                                                  "TerminateInstanceInAutoScalingGroup"),
                         2);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, room_setup, room_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                TEST(test_refusals),       TEST(test_error_document),
                TEST(test_describe),       TEST(test_terminate_refused),
                TEST(test_terminate),      TEST(test_decrement_twice),
                TEST(test_set_desired),    TEST(test_health_check),
                TEST(test_rebalance),      TEST(test_hook),
                TEST(test_hook_times_out), TEST(test_two_hooks),
                TEST(test_launch_hook),    TEST(test_lost_and_hung),
        };
        return cmocka_run_group_tests_name("fake-autoscaling", tests, NULL, NULL);
}
