/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>

#include "cloud-rig.h"
#include "cmocka-test.h"
#include "confirmation-client.h"
#include "fake-autoscaling.h"
#include "string-util.h"

#define A "i-0a"
#define B "i-0b"
#define C "i-0c"
#define UNKNOWN "i-0dddd"

static char *const asked[] = { (char *) A, (char *) B, NULL };

/* -- what an answer confirms ---------------------------------------------------------------------------- */

#define EC2(action, content) \
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<" action "Response xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">\n" \
        "    <requestId>59dbff89-35bd-4eac-99ed-be587EXAMPLE</requestId>\n    " content "\n</" action "Response>\n"
#define INSTANCES(items) EC2("DescribeInstances", "<reservationSet>" items "</reservationSet>")
#define INSTANCE(id, state) \
        "<item><reservationId>r-1</reservationId><ownerId>123456789012</ownerId><groupSet/><instancesSet><item><instanceId>" id \
        "</instanceId><instanceState><code>272</code><name>" state "</name></instanceState><privateDnsName/><blockDeviceMapping>" \
        "<item><deviceName>/dev/xvda</deviceName><ebs><status>attached</status></ebs></item></blockDeviceMapping><tagSet><item>" \
        "<key>Name</key><value>a &amp; b</value></item></tagSet></item></instancesSet></item>"
#define SPOTS(items) EC2("DescribeSpotInstanceRequests", "<spotInstanceRequestSet>" items "</spotInstanceRequestSet>")
#define SPOT(id, code) \
        "<item><spotInstanceRequestId>sir-1</spotInstanceRequestId><state>active</state><status><code>" code \
        "</code><updateTime>2027-01-15T08:00:00.000Z</updateTime><message>Your Spot instance is " code "</message></status>" \
        "<instanceId>" id "</instanceId><launchSpecification><imageId>ami-1</imageId></launchSpecification></item>"
#define STATUSES(items) EC2("DescribeInstanceStatus", "<instanceStatusSet>" items "</instanceStatusSet>")
#define STATUS(id, events) \
        "<item><instanceId>" id "</instanceId><availabilityZone>eu-west-1a</availabilityZone>" events "<instanceState><code>16</code>" \
        "<name>running</name></instanceState><systemStatus><status>ok</status><details><item><name>reachability</name><status>" \
        "passed</status></item></details></systemStatus></item>"
#define EVENT(code, description) \
        "<item><instanceEventId>instance-event-0d59937288b749b32</instanceEventId><code>" code "</code><description>" description \
        "</description><notBefore>2027-01-21T09:00:43.000Z</notBefore><notAfter>2027-01-21T09:17:23.000Z</notAfter></item>"
#define GROUP(content) \
        "<DescribeAutoScalingInstancesResponse xmlns=\"http://autoscaling.amazonaws.com/doc/2011-01-01/\">\n" \
        "  <DescribeAutoScalingInstancesResult>" content "</DescribeAutoScalingInstancesResult>\n" \
        "  <ResponseMetadata><RequestId>7c6e177f-f082-11e1-ac58-3714bEXAMPLE</RequestId></ResponseMetadata>\n" \
        "</DescribeAutoScalingInstancesResponse>\n"
#define MEMBERS(items) GROUP("<AutoScalingInstances>" items "</AutoScalingInstances>")
#define MEMBER(id, state) \
        "<member><LifecycleState>" state "</LifecycleState><InstanceId>" id "</InstanceId><HealthStatus>HEALTHY</HealthStatus>" \
        "<AutoScalingGroupName>workers</AutoScalingGroupName><ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>"

/* Writes "i-0a 2 words; i-0b 0 words", or the error. */
static char *parsed(ConfirmationQuestion q, const char *xml, size_t size, char **ret_next_token) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        Confirmations found = { 0 };
        int r;

        r = confirmation_parse(q, asked, xml, size, &found, ret_next_token);
        if (r < 0) {
                assert_int_equal(found.n, 0);
                return strf("%s", strerrordesc_np(-r));
        }
        for (size_t i = 0; i < found.n; i++)
                strbuf_addf(&b, "%s%s %u %s", i > 0 ? "; " : "", found.at[i].instance, found.at[i].rank, found.at[i].words);
        strbuf_add(&b, "");
        return strbuf_steal(&b);
}

static void expect_parsed(ConfirmationQuestion q, const char *what, const char *xml, const char *expected) {
        _cleanup_free_ char *token = NULL, *seen = parsed(q, xml, strlen(xml), &token);

        if (!streq_ptr(seen, expected) || token)
                fail_msg("%s: expected '%s', saw '%s', token %s", what, expected, strempty(seen), token ? token : "none");
}

/* Every value that AWS's documentation has. NULL: it confirms nothing. */
TEST_CASE(test_values) {
        static const struct {
                ConfirmationQuestion q;
                const char *value, *expected;
        } rows[] = {
                { CONFIRMATION_INSTANCE_STATE, "pending", NULL },
                { CONFIRMATION_INSTANCE_STATE, "running", NULL },
                { CONFIRMATION_INSTANCE_STATE, "stopping", "1 EC2 reports the instance as stopping" },
                { CONFIRMATION_INSTANCE_STATE, "stopped", "1 EC2 reports the instance as stopped" },
                { CONFIRMATION_INSTANCE_STATE, "shutting-down", "2 EC2 reports the instance as shutting-down" },
                { CONFIRMATION_INSTANCE_STATE, "terminated", "2 EC2 reports the instance as terminated" },
                { CONFIRMATION_INSTANCE_STATE, "of next year", NULL },
                { CONFIRMATION_INSTANCE_STATE, "", NULL },

                { CONFIRMATION_SPOT_REQUEST, "pending-evaluation", NULL },
                { CONFIRMATION_SPOT_REQUEST, "bad-parameters", NULL },
                { CONFIRMATION_SPOT_REQUEST, "capacity-not-available", NULL },
                { CONFIRMATION_SPOT_REQUEST, "price-too-low", NULL },
                { CONFIRMATION_SPOT_REQUEST, "not-scheduled-yet", NULL },
                { CONFIRMATION_SPOT_REQUEST, "launch-group-constraint", NULL },
                { CONFIRMATION_SPOT_REQUEST, "az-group-constraint", NULL },
                { CONFIRMATION_SPOT_REQUEST, "placement-group-constraint", NULL },
                { CONFIRMATION_SPOT_REQUEST, "constraint-not-fulfillable", NULL },
                { CONFIRMATION_SPOT_REQUEST, "limit-exceeded", NULL },
                { CONFIRMATION_SPOT_REQUEST, "schedule-expired", NULL },
                { CONFIRMATION_SPOT_REQUEST, "canceled-before-fulfillment", NULL },
                { CONFIRMATION_SPOT_REQUEST, "system-error", NULL },
                { CONFIRMATION_SPOT_REQUEST, "pending-fulfillment", NULL },
                { CONFIRMATION_SPOT_REQUEST, "fulfilled", NULL },
                { CONFIRMATION_SPOT_REQUEST, "request-canceled-and-instance-running", NULL },
                { CONFIRMATION_SPOT_REQUEST, "instance-stopped-by-user", NULL },
                { CONFIRMATION_SPOT_REQUEST, "marked-for-stop", "1 its Spot request is marked-for-stop" },
                { CONFIRMATION_SPOT_REQUEST, "marked-for-stop-by-experiment", "1 its Spot request is marked-for-stop-by-experiment" },
                { CONFIRMATION_SPOT_REQUEST, "instance-stopped-by-price", "1 its Spot request is instance-stopped-by-price" },
                { CONFIRMATION_SPOT_REQUEST, "instance-stopped-no-capacity", "1 its Spot request is instance-stopped-no-capacity" },
                { CONFIRMATION_SPOT_REQUEST, "instance-stopped-capacity-oversubscribed",
                  "1 its Spot request is instance-stopped-capacity-oversubscribed" },
                { CONFIRMATION_SPOT_REQUEST, "instance-stopped-by-experiment", "1 its Spot request is instance-stopped-by-experiment" },
                { CONFIRMATION_SPOT_REQUEST, "marked-for-termination", "2 its Spot request is marked-for-termination" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-by-price", "2 its Spot request is instance-terminated-by-price" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-by-schedule", "2 its Spot request is instance-terminated-by-schedule" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-by-service", "2 its Spot request is instance-terminated-by-service" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-by-user", "2 its Spot request is instance-terminated-by-user" },
                { CONFIRMATION_SPOT_REQUEST, "spot-instance-terminated-by-user", "2 its Spot request is spot-instance-terminated-by-user" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-no-capacity", "2 its Spot request is instance-terminated-no-capacity" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-capacity-oversubscribed",
                  "2 its Spot request is instance-terminated-capacity-oversubscribed" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-launch-group-constraint",
                  "2 its Spot request is instance-terminated-launch-group-constraint" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-by-experiment",
                  "2 its Spot request is instance-terminated-by-experiment" },
                { CONFIRMATION_SPOT_REQUEST, "instance-terminated-by-moonlight", NULL },

                { CONFIRMATION_EVENTS, "instance-reboot", "0 EC2 has scheduled instance-reboot for the instance" },
                { CONFIRMATION_EVENTS, "system-reboot", "0 EC2 has scheduled system-reboot for the instance" },
                { CONFIRMATION_EVENTS, "system-maintenance", "0 EC2 has scheduled system-maintenance for the instance" },
                { CONFIRMATION_EVENTS, "instance-stop", "1 EC2 has scheduled instance-stop for the instance" },
                { CONFIRMATION_EVENTS, "instance-retirement", "2 EC2 has scheduled instance-retirement for the instance" },
                { CONFIRMATION_EVENTS, "instance-party", NULL },

                { CONFIRMATION_GROUP, "Pending", NULL },
                { CONFIRMATION_GROUP, "Pending:Wait", NULL },
                { CONFIRMATION_GROUP, "Pending:Proceed", NULL },
                { CONFIRMATION_GROUP, "Quarantined", NULL },
                { CONFIRMATION_GROUP, "InService", NULL },
                { CONFIRMATION_GROUP, "Detaching", NULL },
                { CONFIRMATION_GROUP, "Detached", NULL },
                { CONFIRMATION_GROUP, "EnteringStandby", NULL },
                { CONFIRMATION_GROUP, "Standby", NULL },
                { CONFIRMATION_GROUP, "ReplacingRootVolume:Wait", NULL },
                { CONFIRMATION_GROUP, "RootVolumeReplaced", NULL },
                { CONFIRMATION_GROUP, "Terminating:Retained", NULL },
                { CONFIRMATION_GROUP, "Warmed:Pending:Wait", NULL },
                { CONFIRMATION_GROUP, "Warmed:Running", NULL },
                { CONFIRMATION_GROUP, "Warmed:Terminating:Retained", NULL },
                { CONFIRMATION_GROUP, "Warmed:Stopped", "1 its Auto Scaling group reports Warmed:Stopped" },
                { CONFIRMATION_GROUP, "Warmed:Hibernated", "1 its Auto Scaling group reports Warmed:Hibernated" },
                { CONFIRMATION_GROUP, "Terminating", "2 its Auto Scaling group reports Terminating" },
                { CONFIRMATION_GROUP, "Terminating:Wait", "2 its Auto Scaling group reports Terminating:Wait" },
                { CONFIRMATION_GROUP, "Terminating:Proceed", "2 its Auto Scaling group reports Terminating:Proceed" },
                { CONFIRMATION_GROUP, "Terminated", "2 its Auto Scaling group reports Terminated" },
                { CONFIRMATION_GROUP, "Warmed:Terminating", "2 its Auto Scaling group reports Warmed:Terminating" },
                { CONFIRMATION_GROUP, "Warmed:Terminating:Wait", "2 its Auto Scaling group reports Warmed:Terminating:Wait" },
                { CONFIRMATION_GROUP, "Warmed:Terminating:Proceed", "2 its Auto Scaling group reports Warmed:Terminating:Proceed" },
                { CONFIRMATION_GROUP, "Warmed:Terminated", "2 its Auto Scaling group reports Warmed:Terminated" },
        };
        static const char *const templates[_CONFIRMATION_QUESTION_MAX] = {
                [CONFIRMATION_INSTANCE_STATE] = INSTANCES(INSTANCE(A, "VALUE")),
                [CONFIRMATION_SPOT_REQUEST] = SPOTS(SPOT(A, "VALUE")),
                [CONFIRMATION_EVENTS] = STATUSES(STATUS(A, "<eventsSet>" EVENT("VALUE", "d") "</eventsSet>")),
                [CONFIRMATION_GROUP] = MEMBERS(MEMBER(A, "VALUE")),
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *expected = rows[i].expected ? strf(A " %s", rows[i].expected) : strdup("");
                _cleanup_strbuf_ StrBuf xml = { 0 };
                const char *rest = templates[rows[i].q];

                for (const char *at; (at = strstr(rest, "VALUE")); rest = at + strlen("VALUE")) {
                        strbuf_add_n(&xml, rest, (size_t) (at - rest));
                        strbuf_add(&xml, rows[i].value);
                }
                strbuf_add(&xml, rest);
                expect_parsed(rows[i].q, rows[i].value, strbuf_str(&xml), expected);
        }
}

TEST_CASE(test_answers) {
        static const char no[] = "Bad message";
        static const struct {
                const char *what;
                ConfirmationQuestion q;
                const char *xml, *expected;
        } rows[] = {
                { "none", CONFIRMATION_INSTANCE_STATE, EC2("DescribeInstances", "<reservationSet/>"), "" },
                { "two, and another's", CONFIRMATION_INSTANCE_STATE,
                  INSTANCES(INSTANCE(C, "terminated") INSTANCE(B, "stopped") INSTANCE(A, "terminated")),
                  B " 1 EC2 reports the instance as stopped; " A " 2 EC2 reports the instance as terminated" },
                { "only another's", CONFIRMATION_INSTANCE_STATE, INSTANCES(INSTANCE(C, "terminated")), "" },
                { "an id that goes on", CONFIRMATION_INSTANCE_STATE, INSTANCES(INSTANCE(A "0", "terminated")), "" },
                { "listed twice", CONFIRMATION_INSTANCE_STATE, INSTANCES(INSTANCE(A, "terminated") INSTANCE(A, "stopped")),
                  A " 2 EC2 reports the instance as terminated" },
                { "an event of a higher rank that comes later", CONFIRMATION_EVENTS,
                  STATUSES(STATUS(A, "<eventsSet>" EVENT("instance-reboot", "d") "<item><code>instance-retirement</code><notBefore>2027-02-01T09:00:43.000Z"
                                     "</notBefore></item></eventsSet>")),
                  A " 0 EC2 has scheduled instance-reboot for the instance; " A " 2 EC2 has scheduled instance-retirement for the instance" },
                { "events without a time that can be read", CONFIRMATION_EVENTS,
                  STATUSES(STATUS(A, "<eventsSet><item><code>instance-stop</code></item><item><code>instance-stop</code><notBefore>soon</notBefore></item></eventsSet>")), "" },
                { "no state", CONFIRMATION_INSTANCE_STATE,
                  INSTANCES("<item><instancesSet><item><instanceId>" A "</instanceId></item></instancesSet></item>"), "" },
                { "two ids", CONFIRMATION_INSTANCE_STATE,
                  INSTANCES("<item><instancesSet><item><instanceId>" A "</instanceId><instanceId>" B "</instanceId></item></instancesSet>"
                            "</item>"), no },
                { "two names of a state", CONFIRMATION_INSTANCE_STATE,
                  INSTANCES("<item><instancesSet><item><instanceId>" A "</instanceId><instanceState><name>running</name><name>terminated"
                            "</name></instanceState></item></instancesSet></item>"), no },
                { "an instance in the wrong place", CONFIRMATION_INSTANCE_STATE,
                  EC2("DescribeInstances", "<reservationSet/><instancesSet><item><instanceId>" A "</instanceId><instanceState><name>"
                      "terminated</name></instanceState></item></instancesSet>"), "" },
                { "no list", CONFIRMATION_INSTANCE_STATE, EC2("DescribeInstances", ""), no },
                { "the answer to another question", CONFIRMATION_INSTANCE_STATE, SPOTS(""), no },
                { "a longer name", CONFIRMATION_INSTANCE_STATE, EC2("DescribeInstancesX", "<reservationSet/>"), no },
                { "an open request", CONFIRMATION_SPOT_REQUEST,
                  SPOTS("<item><status><code>marked-for-termination</code></status></item>" SPOT(A, "marked-for-stop")),
                  A " 1 its Spot request is marked-for-stop" },
                { "the fault of a request", CONFIRMATION_SPOT_REQUEST,
                  SPOTS("<item><instanceId>" A "</instanceId><fault><code>marked-for-termination</code></fault></item>"), "" },
                { "no events", CONFIRMATION_EVENTS, STATUSES(STATUS(A, "") STATUS(B, "<eventsSet/>")), "" },
                { "the worst event", CONFIRMATION_EVENTS,
                  STATUSES(STATUS(A, "<eventsSet>" EVENT("system-reboot", "d") EVENT("instance-stop", "d") EVENT("instance-reboot", "d")
                                  "</eventsSet>")),
                  A " 1 EC2 has scheduled instance-stop for the instance" },
                { "completed and canceled", CONFIRMATION_EVENTS,
                  STATUSES(STATUS(A, "<eventsSet>" EVENT("instance-stop", "[Completed] The instance is running on degraded hardware")
                                  EVENT("instance-stop", " [Canceled] d") "</eventsSet>")), "" },
                { "one completed, one to come", CONFIRMATION_EVENTS,
                  STATUSES(STATUS(A, "<eventsSet>" EVENT("instance-stop", "[Completed] d") EVENT("instance-reboot", "Completed")
                                  "</eventsSet>")),
                  A " 0 EC2 has scheduled instance-reboot for the instance" },
                { "the state of a status", CONFIRMATION_EVENTS,
                  STATUSES("<item><instanceId>" A "</instanceId><instanceState><name>terminated</name></instanceState></item>"), "" },
                { "no members", CONFIRMATION_GROUP, GROUP("<AutoScalingInstances/>"), "" },
                { "no list of members", CONFIRMATION_GROUP, GROUP(""), no },
                { "members, and another's", CONFIRMATION_GROUP, MEMBERS(MEMBER(C, "Terminating") MEMBER(A, "Terminating:Wait")),
                  A " 2 its Auto Scaling group reports Terminating:Wait" },
                { "nothing", CONFIRMATION_GROUP, "", no },
                { "a text", CONFIRMATION_GROUP, "upstream connect error", no },
                { "the page of a proxy", CONFIRMATION_GROUP,
                  "<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>i-0a Terminating:Wait</body></html>", no },
                { "a page that is XML", CONFIRMATION_INSTANCE_STATE, "<html><body><p>" INSTANCES("") "</p></body></html>", no },
                { "an error", CONFIRMATION_INSTANCE_STATE,
                  "<Response><Errors><Error><Code>InternalError</Code><Message>m</Message></Error></Errors></Response>", no },
                { "cut off", CONFIRMATION_INSTANCE_STATE,
                  "<DescribeInstancesResponse><reservationSet>" INSTANCE(A, "terminated") "</reservationSet>", no },
                { "something behind it", CONFIRMATION_INSTANCE_STATE, INSTANCES(INSTANCE(A, "terminated")) "<a/>", no },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                expect_parsed(rows[i].q, rows[i].what, rows[i].xml, rows[i].expected);
}

/* An answer above the limit is refused, whatever it says; one below it is read. */
TEST_CASE(test_huge_answers) {
        static const struct {
                size_t bytes;
                const char *expected;
        } rows[] = {
                { 7u << 20, A " 2 EC2 reports the instance as terminated" },
                { 9u << 20, "Bad message" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf xml = { 0 };

                strbuf_add(&xml, "<DescribeInstancesResponse><reservationSet>" INSTANCE(A, "terminated"));
                while (xml.size < rows[i].bytes)
                        strbuf_add(&xml, INSTANCE(C, "running"));
                strbuf_add(&xml, "</reservationSet></DescribeInstancesResponse>");
                expect_parsed(CONFIRMATION_INSTANCE_STATE, "huge", strbuf_str(&xml), rows[i].expected);
        }
}

/* Each page adds to the pages before it. */
TEST_CASE(test_pages_add_up) {
        static const struct {
                const char *xml, *token;
                size_t n;
                unsigned rank; /* of A */
        } rows[] = {
                { EC2("DescribeInstances", "<reservationSet>" INSTANCE(A, "stopped") "</reservationSet><nextToken>a&lt;=b</nextToken>"),
                  "a<=b", 1, 1 },
                { EC2("DescribeInstances", "<reservationSet>" INSTANCE(A, "running") INSTANCE(B, "stopped") "</reservationSet><nextToken/>"),
                  NULL, 2, 1 },
                { EC2("DescribeInstances", "<reservationSet>" INSTANCE(A, "terminated") "</reservationSet>"), NULL, 2, 2 },
                { EC2("DescribeInstances", "<reservationSet/><nextToken>a</nextToken><nextToken>b</nextToken>"), "refused", 2, 2 },
        };
        Confirmations found = { 0 };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *token = NULL;
                int r = confirmation_parse(CONFIRMATION_INSTANCE_STATE, asked, rows[i].xml, strlen(rows[i].xml), &found, &token);

                print_message("page %zu\n", i);
                assert_int_equal(r, streq_ptr(rows[i].token, "refused") ? -EBADMSG : 0);
                assert_true(r < 0 || streq_ptr(token, rows[i].token));
                assert_int_equal(found.n, rows[i].n);
                assert_string_equal(found.at[0].instance, A);
                assert_int_equal(found.at[0].rank, rows[i].rank);
        }
}

TEST_CASE(test_forms) {
        static const struct {
                ConfirmationQuestion q;
                const char *token, *expected;
        } rows[] = {
                { CONFIRMATION_INSTANCE_STATE, NULL,
                  "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=instance-id&Filter.1.Value.1=i-0a&Filter.1.Value.2=i-0b" },
                { CONFIRMATION_SPOT_REQUEST, "a&b=",
                  "Action=DescribeSpotInstanceRequests&Version=2016-11-15&Filter.1.Name=instance-id&Filter.1.Value.1=i-0a"
                  "&Filter.1.Value.2=i-0b&NextToken=a%26b%3D" },
                { CONFIRMATION_EVENTS, NULL,
                  "Action=DescribeInstanceStatus&Version=2016-11-15&IncludeAllInstances=true&MaxResults=1000&Filter.1.Name=event.code"
                  "&Filter.1.Value.1=instance-reboot&Filter.1.Value.2=system-reboot&Filter.1.Value.3=system-maintenance"
                  "&Filter.1.Value.4=instance-retirement&Filter.1.Value.5=instance-stop" },
                { CONFIRMATION_GROUP, NULL,
                  "Action=DescribeAutoScalingInstances&Version=2011-01-01&InstanceIds.member.1=i-0a&InstanceIds.member.2=i-0b" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *form = confirmation_form(rows[i].q, asked, rows[i].token);

                assert_non_null(form);
                assert_string_equal(form, rows[i].expected);
        }
}

/* -- calls ---------------------------------------------------------------------------------------------- */

typedef struct Room {
        CloudRig rig;
        FakeEc2 *ec2;
        FakeAutoscaling *groups;
        Random *random;
        Env env;
        SqsClient *sqs;
        ConfirmationClient *client;
        ConfirmationCall *call;
        bool may_send;
        unsigned n_answered;
        ConfirmationOutcome outcome;
        usec_t retry_after_usec;
        char message[500], confirmed[2000]; /* "i-0a 2 words; " */
} Room;

static const char *on_getenv(const char *name, void *userdata) {
        return streq(name, "AWS_ACCESS_KEY_ID") ? RIG_KEY : streq(name, "AWS_SECRET_ACCESS_KEY") ? RIG_SECRET : NULL;
}

/* The queue is in another region than the instances. */
static int room_setup(void **state) {
        const SqsConfig config = { .url = "https://sqs.us-east-1.amazonaws.com/123456789012/q", .getenv = on_getenv };
        Room *r = new0(Room, 1);
        const char *message;

        rig_init(&r->rig);
        assert_return_code(random_new(7, &r->random), 0);
        r->env = (Env){ .loop = r->rig.loop, .random = r->random, .transport = r->rig.transport };
        r->ec2 = fake_ec2_new(&(FakeEc2Options){ .loop = r->rig.loop,
                                                 .region = RIG_REGION,
                                                 .access_key_id = RIG_KEY,
                                                 .secret_access_key = RIG_SECRET,
                                                 .shutting_down_usec = 30 * USEC_PER_SEC });
        r->groups = fake_autoscaling_new(&(FakeAutoscalingOptions){ .aws = { .loop = r->rig.loop,
                                                                             .region = RIG_REGION,
                                                                             .access_key_id = RIG_KEY,
                                                                             .secret_access_key = RIG_SECRET },
                                                                    .ec2 = r->ec2 });
        fake_ec2_run(r->ec2, A, "eu-west-1a");
        fake_ec2_run(r->ec2, B, "eu-west-1a");
        fake_ec2_run(r->ec2, C, "eu-west-1b");
        fake_autoscaling_add_group(r->groups, &(FakeAsgGroup){ .name = "g", .zones = "eu-west-1a eu-west-1b", .max = 4 });
        fake_autoscaling_attach(r->groups, "g", A);
        fake_autoscaling_attach(r->groups, "g", B);
        fake_autoscaling_attach(r->groups, "g", C);
        rig_route(&r->rig, "https://ec2.eu-west-1.amazonaws.com", fake_ec2_handle, r->ec2);
        rig_route(&r->rig, "https://autoscaling.eu-west-1.amazonaws.com", fake_autoscaling_handle, r->groups);
        assert_return_code(sqs_client_new(&r->env, &config, &r->sqs, &message), 0);
        assert_return_code(confirmation_client_new(&r->env, r->sqs, RIG_REGION, NULL, &r->client), 0);
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        confirmation_call_free(r->call);
        confirmation_client_free(r->client);
        sqs_client_free(r->sqs);
        rig_stop(&r->rig);
        fake_autoscaling_free(r->groups);
        fake_ec2_free(r->ec2);
        random_free(r->random);
        rig_done(&r->rig);
        free(r);
        return 0;
}

static void on_done(const ConfirmationResult *result, void *userdata) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        Room *r = userdata;

        r->n_answered++;
        r->outcome = result->outcome;
        r->retry_after_usec = result->retry_after_usec;
        (void) snprintf(r->message, sizeof(r->message), "%s", result->message);
        for (size_t i = 0; i < result->n_confirmed; i++)
                strbuf_addf(&b, "%s %u %s; ", result->confirmed[i].instance, result->confirmed[i].rank, result->confirmed[i].words);
        (void) snprintf(r->confirmed, sizeof(r->confirmed), "%s", strbuf_str(&b));
        r->call = confirmation_call_free(r->call);
}

/* About all instances that there are, and one that EC2 does not know. */
static void ask(Room *r, ConfirmationQuestion q, const HttpGuard *guard) {
        char *const all[] = { (char *) UNKNOWN, (char *) A, (char *) B, (char *) C, NULL };

        r->n_answered = 0;
        assert_return_code(confirmation_ask(r->client, q, all, guard, on_done, r, &r->call), 0);
        for (unsigned i = 0; i < 400 && r->n_answered == 0; i++)
                rig_run_for(&r->rig, USEC_PER_SEC / 10);
        assert_int_equal(r->n_answered, 1);
}

static void expect(Room *r, ConfirmationQuestion q, const char *confirmed) {
        ask(r, q, NULL);
        if (r->outcome != CONFIRMATION_OK || *r->message || !streq(r->confirmed, confirmed))
                fail_msg("%s: outcome %d, '%s', confirmed '%s'", confirmation_permission(q), r->outcome, r->message, r->confirmed);
}

TEST_CASE(test_states) {
        Room *r = *state;

        expect(r, CONFIRMATION_INSTANCE_STATE, "");
        fake_ec2_terminate(r->ec2, A);
        fake_ec2_set_state(r->ec2, B, "stopping");
        expect(r, CONFIRMATION_INSTANCE_STATE,
               A " 2 EC2 reports the instance as shutting-down; " B " 1 EC2 reports the instance as stopping; ");
        rig_run_for(&r->rig, 40 * USEC_PER_SEC); /* within the minute after which its group would check B */
        expect(r, CONFIRMATION_INSTANCE_STATE,
               A " 2 EC2 reports the instance as terminated; " B " 1 EC2 reports the instance as stopping; ");
}

TEST_CASE(test_spot_requests) {
        Room *r = *state;

        expect(r, CONFIRMATION_SPOT_REQUEST, "");
        fake_ec2_set_spot_status(r->ec2, A, "fulfilled");
        fake_ec2_set_spot_status(r->ec2, B, "marked-for-termination");
        fake_ec2_set_spot_status(r->ec2, C, "marked-for-stop");
        expect(r, CONFIRMATION_SPOT_REQUEST,
               B " 2 its Spot request is marked-for-termination; " C " 1 its Spot request is marked-for-stop; ");
}

TEST_CASE(test_events) {
        Room *r = *state;

        expect(r, CONFIRMATION_EVENTS, "");
        fake_ec2_schedule(r->ec2, A, "instance-event-1", "system-reboot", RIG_START_USEC + USEC_PER_DAY);
        fake_ec2_schedule(r->ec2, B, "instance-event-2", "instance-stop", RIG_START_USEC + USEC_PER_DAY);
        fake_ec2_set_state(r->ec2, B, "stopped");
        fake_ec2_schedule(r->ec2, C, "instance-event-3", "instance-stop", RIG_START_USEC + USEC_PER_DAY);
        fake_ec2_describe_event(r->ec2, C, "instance-event-3", "[Completed] The instance is running on degraded hardware");
        expect(r, CONFIRMATION_EVENTS,
               A " 0 EC2 has scheduled system-reboot for the instance; " B " 1 EC2 has scheduled instance-stop for the instance; ");
}

TEST_CASE(test_groups) {
        Room *r = *state;

        expect(r, CONFIRMATION_GROUP, "");
        fake_autoscaling_set_lifecycle(r->groups, A, "Terminating:Wait");
        fake_autoscaling_set_lifecycle(r->groups, B, "Standby");
        fake_autoscaling_set_lifecycle(r->groups, C, "Warmed:Stopped");
        expect(r, CONFIRMATION_GROUP,
               A " 2 its Auto Scaling group reports Terminating:Wait; " C " 1 its Auto Scaling group reports Warmed:Stopped; ");
}

/* Returns a page that is not the last. */
static const char first_page[] =
        EC2("DescribeInstances", "<reservationSet>" INSTANCE(B, "stopped") "</reservationSet><nextToken>page+1</nextToken>");

/* All pages count. What the pages before a failure confirm is confirmed. */
TEST_CASE(test_pages) {
        Room *r = *state;

        fake_ec2_set_page_size(r->ec2, 1);
        fake_ec2_set_state(r->ec2, A, "stopped");
        fake_ec2_set_state(r->ec2, C, "stopped");
        expect(r, CONFIRMATION_INSTANCE_STATE,
               A " 1 EC2 reports the instance as stopped; " C " 1 EC2 reports the instance as stopped; ");
        assert_int_equal(fake_ec2_n_requests(r->ec2, "DescribeInstances"), 3);

        fake_ec2_garble(r->ec2, 1, first_page);
        fake_troubles_add(fake_ec2_troubles(r->ec2), &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                                                     .n = 1,
                                                                     .status = 500,
                                                                     .code = "InternalError",
                                                                     .message = "because" });
        ask(r, CONFIRMATION_INSTANCE_STATE, NULL);
        assert_int_equal(r->outcome, CONFIRMATION_RETRY);
        assert_string_equal(r->message, "ec2:DescribeInstances: InternalError: because");
        assert_string_equal(r->confirmed, B " 1 EC2 reports the instance as stopped; ");
}

/* A server that always has one more page is asked for a bounded number of them. */
TEST_CASE(test_endless_pages) {
        Room *r = *state;

        fake_ec2_garble(r->ec2, UINT_MAX, first_page);
        ask(r, CONFIRMATION_INSTANCE_STATE, NULL);
        assert_int_equal(r->outcome, CONFIRMATION_RETRY);
        assert_string_equal(r->message, "ec2:DescribeInstances: the answer has too many pages");
        assert_string_equal(r->confirmed, B " 1 EC2 reports the instance as stopped; ");
        assert_in_range(fake_ec2_n_requests(r->ec2, "DescribeInstances"), 2, 20);
}

TEST_CASE(test_failures) {
        static const struct {
                const char *what;
                FakeTrouble trouble;
                ConfirmationOutcome outcome;
                usec_t retry_after_usec;
                const char *message;
        } rows[] = {
                { "throttled",
                  { .kind = FAKE_TROUBLE_FAIL, .n = 1, .status = 503, .code = "RequestLimitExceeded", .message = "Request limit exceeded.",
                    .retry_after_usec = 4 * USEC_PER_SEC },
                  CONFIRMATION_RETRY, 4 * USEC_PER_SEC, "ec2:DescribeSpotInstanceRequests: RequestLimitExceeded: Request limit exceeded." },
                { "no permission",
                  { .kind = FAKE_TROUBLE_FAIL, .n = 1, .status = 403, .code = "UnauthorizedOperation",
                    .message = "You are not authorized\nto perform this operation. Encoded authorization failure message: abc" },
                  CONFIRMATION_DENIED, 0, "ec2:DescribeSpotInstanceRequests: UnauthorizedOperation: You are not authorized?to perform this "
                                          "operation." },
                { "the page of a proxy",
                  { .kind = FAKE_TROUBLE_BODY, .n = 1, .status = 200, .body = "<html><body>Sign in</body></html>" },
                  CONFIRMATION_RETRY, 0, "ec2:DescribeSpotInstanceRequests: the answer is not AWS's" },
                { "the error of a proxy",
                  { .kind = FAKE_TROUBLE_BODY, .n = 1, .status = 502, .body = "<html><body>Bad gateway</body></html>" },
                  CONFIRMATION_RETRY, 0, "ec2:DescribeSpotInstanceRequests: the answer is not AWS's (HTTP 502)" },
                { "the refusal of a proxy",
                  { .kind = FAKE_TROUBLE_BODY, .n = 1, .status = 403, .body = "no" },
                  CONFIRMATION_DENIED, 0, "ec2:DescribeSpotInstanceRequests: the answer is not AWS's (HTTP 403)" },
                { "no connection", { .kind = FAKE_TROUBLE_HANG, .n = 1 }, CONFIRMATION_RETRY, 0, "ec2:DescribeSpotInstanceRequests: " },
        };
        Room *r = *state;

        fake_ec2_set_spot_status(r->ec2, A, "marked-for-termination");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                fake_troubles_add(fake_ec2_troubles(r->ec2), &rows[i].trouble);
                ask(r, CONFIRMATION_SPOT_REQUEST, NULL);
                if (r->outcome != rows[i].outcome || r->retry_after_usec != rows[i].retry_after_usec || *r->confirmed ||
                    !startswith(r->message, rows[i].message) || strpbrk(r->message, "\r\n"))
                        fail_msg("%s: outcome %d, %llu us, '%s', confirmed '%s'", rows[i].what, r->outcome,
                                 (unsigned long long) r->retry_after_usec, r->message, r->confirmed);
        }
        expect(r, CONFIRMATION_SPOT_REQUEST, A " 2 its Spot request is marked-for-termination; ");
}

TEST_CASE(test_denied_by_autoscaling) {
        Room *r = *state;

        fake_troubles_add(fake_autoscaling_troubles(r->groups), &(FakeTrouble){ .kind = FAKE_TROUBLE_FAIL,
                                                                                .n = 1,
                                                                                .status = 403,
                                                                                .code = "AccessDenied",
                                                                                .message = "User is not authorized" });
        ask(r, CONFIRMATION_GROUP, NULL);
        assert_int_equal(r->outcome, CONFIRMATION_DENIED);
        assert_string_equal(r->message, "autoscaling:DescribeAutoScalingInstances: AccessDenied: User is not authorized");
        fake_autoscaling_throttle(r->groups, 1);
        ask(r, CONFIRMATION_GROUP, NULL);
        assert_int_equal(r->outcome, CONFIRMATION_RETRY);
}

static bool on_may_send(void *userdata) {
        Room *r = userdata;

        return r->may_send;
}

TEST_CASE(test_guard) {
        Room *r = *state;
        const HttpGuard guard = { .may_send = on_may_send, .userdata = r };

        ask(r, CONFIRMATION_INSTANCE_STATE, &guard);
        assert_int_equal(r->outcome, CONFIRMATION_RETRY);
        assert_int_equal(fake_ec2_n_requests(r->ec2, "DescribeInstances"), 0);
        r->may_send = true;
        ask(r, CONFIRMATION_INSTANCE_STATE, &guard);
        assert_int_equal(r->outcome, CONFIRMATION_OK);
}

/* Dropping the slot cancels, before the first page and between two. */
TEST_CASE(test_cancel) {
        static const char *const first_pages[] = { NULL, first_page };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(first_pages); i++) {
                fake_ec2_garble(r->ec2, first_pages[i] ? 1 : 0, first_page);
                fake_troubles_add(fake_ec2_troubles(r->ec2), &(FakeTrouble){ .kind = FAKE_TROUBLE_HANG, .n = 1 });
                assert_return_code(confirmation_ask(r->client, CONFIRMATION_INSTANCE_STATE, asked, NULL, on_done, r, &r->call), 0);
                rig_run_for(&r->rig, USEC_PER_SEC);
                r->call = confirmation_call_free(r->call);
                rig_run_for(&r->rig, USEC_PER_MINUTE);
                assert_int_equal(r->n_answered, 0);
                assert_int_equal(fake_ec2_n_requests(r->ec2, "DescribeInstances"), i == 0 ? 1 : 3);
        }
}

TEST_CASE(test_refused_batches) {
        static const struct {
                const char *what, *id;
                size_t n;
        } rows[] = {
                { "none", A, 0 },
                { "too many", A, CONFIRMATION_BATCH_MAX + 1 },
                { "another kind of machine", "fargate-ip-10-0-0-1", 1 },
                { "a providerID", "aws:///eu-west-1a/i-0a", 1 },
                { "a wild card", "i-*", 1 },
                { "a parameter", "i-0a&DryRun=true", 1 },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *ids[CONFIRMATION_BATCH_MAX + 2] = { 0 };

                for (size_t k = 0; k < rows[i].n; k++)
                        ids[k] = (char *) rows[i].id;
                print_message("%s\n", rows[i].what);
                assert_int_equal(confirmation_ask(r->client, CONFIRMATION_GROUP, ids, NULL, on_done, r, &r->call), -EINVAL);
                assert_null(r->call);
        }
}

/* The largest batch, of which each instance is confirmed. */
TEST_CASE(test_largest_batch) {
        char *ids[CONFIRMATION_BATCH_MAX + 1] = { 0 };
        Room *r = *state;

        for (size_t i = 0; i < CONFIRMATION_BATCH_MAX; i++) {
                ids[i] = strf("i-0e%03zx", i);
                assert_non_null(ids[i]);
                fake_ec2_run(r->ec2, ids[i], "eu-west-1a");
                fake_ec2_set_state(r->ec2, ids[i], "stopped");
        }
        assert_return_code(confirmation_ask(r->client, CONFIRMATION_INSTANCE_STATE, ids, NULL, on_done, r, &r->call), 0);
        for (size_t i = 0; i < CONFIRMATION_BATCH_MAX; i++)
                free(ids[i]); /* they were copied */
        rig_run_for(&r->rig, USEC_PER_SEC);
        assert_int_equal(r->n_answered, 1);
        assert_int_equal(r->outcome, CONFIRMATION_OK);
        assert_non_null(strstr(r->confirmed, "i-0e000 1"));
        assert_non_null(strstr(r->confirmed, "i-0e01f 1"));
}

TEST_CASE(test_bad_region) {
        ConfirmationClient *client = NULL;
        Room *r = *state;

        assert_int_equal(confirmation_client_new(&r->env, r->sqs, "eu-west-1.example/", NULL, &client), -EINVAL);
        assert_null(client);
}

#define CALL(f) cmocka_unit_test_setup_teardown(f, room_setup, room_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_values),   cmocka_unit_test(test_answers), cmocka_unit_test(test_huge_answers),
                cmocka_unit_test(test_pages_add_up), cmocka_unit_test(test_forms),
                CALL(test_states),               CALL(test_spot_requests),       CALL(test_events),
                CALL(test_groups),               CALL(test_pages),               CALL(test_endless_pages),
                CALL(test_failures),             CALL(test_denied_by_autoscaling), CALL(test_guard),
                CALL(test_cancel),               CALL(test_refused_batches),     CALL(test_largest_batch),
                CALL(test_bad_region),
        };

        return cmocka_run_group_tests_name("confirmation-client", tests, NULL, NULL);
}
