/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-rig.h"
#include "cmocka-test.h"
#include "fake-aws-event.h"
#include "fake-clouds.h"

#define FORM "application/x-www-form-urlencoded; charset=utf-8"
#define JSON "application/x-amz-json-1.0"

/* -- what queues hear ---------------------------------------------------------------------------------- */

/* One row per line of the table of events, and per oddity of AWS's own samples. */
TEST_CASE(test_events) {
        static const struct {
                const char *kind;
                FakeAwsEvent event;
                const char *part;
        } rows[] = {
                { "spot",
                  { .instance = "i-1" },
                  "{\"version\":\"0\",\"id\":\"12345678-1234-1234-1234-123456789012\",\"detail-type\":\"EC2 "
                  "Spot Instance "
                  "Interruption "
                  "Warning\",\"source\":\"aws.ec2\",\"account\":\"123456789012\",\"time\":\"2026-09-21T14:"
                  "13:20Z\","
                  "\"region\":\"us-east-1\",\"resources\":[\"arn:aws:ec2:us-east-1:123456789012:instance/"
                  "i-1\"],"
                  "\"detail\":{\"instance-id\":\"i-1\",\"instance-action\":\"terminate\"}}" },
                { "spot",
                  { .instance = "i-1", .action = "hibernate" },
                  "\"instance-action\":\"hibernate\"" },
                { "rebalance", { .instance = "i-1" }, "\"EC2 Instance Rebalance Recommendation\"" },
                { "state",
                  { .instance = "i-1", .action = "stopping" },
                  "\"detail\":{\"instance-id\":\"i-1\",\"state\":\"stopping\"}" },
                { "reservation",
                  { .instance = "i-1", .until_wall_usec = RIG_START_USEC + 60000000 },
                  "\"instance-termination-time\":\"2026-09-21T14:14:20Z\"" },
                { "block",
                  { .until_wall_usec = RIG_START_USEC },
                  "\"resources\":\"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/"
                  "cr-0123456789abcdef0\"" },
                { "health",
                  { .instance = "i-1", .until_wall_usec = RIG_START_USEC, .page = 2, .pages = 3 },
                  "\"startTime\":\"Mon, 21 Sep 2026 14:13:20 GMT\"" },
                { "health",
                  { .instance = "i-1", .page = 2, .pages = 3 },
                  "\"page\":\"2\",\"totalPages\":\"3\"" },
                { "health",
                  { .instance = "i-1", .status = "closed" },
                  "\"statusCode\":\"closed\",\"eventRegion\":\"us-east-1\"" },
                { "health",
                  { .instance = "i-1", .envelope_region = "us-west-2" },
                  "\"region\":\"us-west-2\"" },
                { "terminate-action",
                  { .instance = "i-1", .group = "g", .hook = "h", .token = "t" },
                  "\"detail\":{\"LifecycleActionToken\":\"t\",\"AutoScalingGroupName\":\"g\","
                  "\"LifecycleHookName\":\"h\","
                  "\"EC2InstanceId\":\"i-1\",\"LifecycleTransition\":\"autoscaling:EC2_INSTANCE_"
                  "TERMINATING\"" },
                { "launch-action",
                  { .instance = "i-1", .group = "g" },
                  "\"EC2 Instance-launch Lifecycle Action\"" },
                { "hook",
                  { .instance = "i-1", .group = "g", .hook = "h", .token = "t" },
                  "{\"LifecycleActionToken\":\"t\"" }, /* no envelope */
                { "hook-test", { .group = "g" }, "\"Event\":\"autoscaling:TEST_NOTIFICATION\"" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                FakeAwsEvent e = rows[i].event;
                _cleanup_free_ char *text = NULL;

                e.kind = fake_aws_event_kind_from_string(rows[i].kind);
                e.wall_usec = RIG_START_USEC;
                text = fake_aws_event(&e);
                if (!strstr(text, rows[i].part))
                        fail_msg("%s: expected '%s' in %s", rows[i].kind, rows[i].part, text);
        }
        {
                _cleanup_free_ char *text = fake_aws_event_by_sns(
                        &(FakeAwsEvent) { .kind = FAKE_AWS_EVENT_HOOK, .instance = "i-1" });

                assert_non_null(strstr(text, "\"Message\":\"{\\\"LifecycleActionToken\\\""));
        }
        assert_int_equal(fake_aws_event_kind_from_string("flood"), -EINVAL);
}

/* -- a world ------------------------------------------------------------------------------------------- */

static const char world_text[] =
        "{'instances':[{'id':'i-0a','group':'g'},{'id':'i-0b','group':'g'},{'id':'i-0c'},"
        "{'id':'vm-a','platform':'gce','zone':'us-central1-b','group':'mig'},"
        "{'id':'vm-b','platform':'azure'},{'id':'ss_7','platform':'azure','scaleSet':'ss','instance':'7'}],"
        "'autoscalingGroups':[{'name':'g','min':1,'max':3,'hooks':[{'name':'drain','heartbeatSec':300}]}],"
        "'queues':[{'name':'q','events':true},{'name':'quiet'}],"
        "'gce':{'project':'p','token':'t','groups':[{'name':'mig','scope':'regions/us-central1'}]},"
        "'azure':{'token':'t'}}";

typedef struct Room {
        CloudRig rig;
        Random *random;
        FakeEc2 *ec2;
        FakeClouds *clouds;
} Room;

static FakeClouds *make(Room *r, const char *text, const char **ret_why) {
        _cleanup_cjson_ cJSON *world = fj_parse("%s", text);
        FakeCloudsOptions options = {
                .loop = r->rig.loop,
                .random = r->random,
                .ec2 = r->ec2,
                .aws = { .loop = r->rig.loop,
                         .region = "us-east-1",
                         .access_key_id = RIG_KEY,
                         .secret_access_key = RIG_SECRET },
        };

        return fake_clouds_new(&options, world, ret_why);
}

static int room_setup(void **state) {
        Room *r = new0(Room, 1);
        const char *why;

        rig_init(&r->rig);
        assert_return_code(random_new(1, &r->random), 0);
        r->ec2 = fake_ec2_new(&(FakeEc2Options) {
                .loop = r->rig.loop, .region = "us-east-1", .shutting_down_usec = 30 * USEC_PER_SEC });
        fake_ec2_run(r->ec2, "i-0a", "us-east-1a");
        fake_ec2_run(r->ec2, "i-0b", "us-east-1a");
        fake_ec2_run(r->ec2, "i-0c", "us-east-1a");
        r->clouds = make(r, world_text, &why);
        if (!r->clouds)
                fail_msg("the world: %s", why);
        for (FakeCloudId id = 0; id < _FAKE_CLOUD_MAX; id++) {
                _cleanup_free_ char *origin = strf("http://%s", fake_cloud_name(id));

                rig_route(&r->rig, origin, fake_cloud_handler(id), fake_clouds_userdata(r->clouds, id));
        }
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        rig_stop(&r->rig);
        fake_clouds_free(r->clouds);
        fake_ec2_free(r->ec2);
        random_free(r->random);
        rig_done(&r->rig);
        free(r);
        return 0;
}

static void aws(Room *r, const char *service, const char *target, const char *body, unsigned status,
                const char *part) {
        static const RigSigning here = { .region = "us-east-1" };
        _cleanup_free_ char *url = strf("http://%s/", service), *text = strdup(body);
        _cleanup_ask_ CloudAsk a = { 0 };

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        rig_start_aws(&r->rig, &a, service, url, target ? JSON : FORM, target, text, &here);
        rig_wait(&r->rig, &a);
        ask_expect(&a, body, status, part);
}

static void rest(Room *r, const char *url, unsigned status, const char *part) {
        HttpHeader headers[] = { { "Authorization", "Bearer t" } };
        _cleanup_ask_ CloudAsk a = { 0 };

        rig_start(&r->rig, &a, HTTP_GET, url, headers, 1, NULL);
        rig_wait(&r->rig, &a);
        ask_expect(&a, url, status, part);
}

static void post(Room *r, const char *path, const char *text, const char *why, const char *answer) {
        _cleanup_cjson_ cJSON *o = fj_parse("%s", text), *seen = NULL;
        const char *wrong = fake_clouds_post(r->clouds, path, o, &seen);
        _cleanup_free_ char *printed = seen ? fj_print(seen) : NULL;

        if ((why && (!wrong || !strstr(wrong, why))) || (!why && wrong))
                fail_msg("%s %s: expected '%s', saw '%s'", path, text, strempty(why), strempty(wrong));
        if (answer && !streq_ptr(printed, answer))
                fail_msg("%s %s: expected %s, saw %s", path, text, answer, strempty(printed));
}

#define TERMINATE \
        "Action=TerminateInstanceInAutoScalingGroup&Version=2011-01-01&InstanceId=i-0a&" \
        "ShouldDecrementDesiredCapacity=true"
#define QUEUE "{'QueueUrl':'http://sqs/123456789012/q'}"
#define RECEIVE "AmazonSQS.ReceiveMessage"

TEST_CASE(test_world) {
        Room *r = *state;

        rest(r, "http://gce/compute/v1/projects/p/zones/us-central1-b/instances/vm-a", 200,
             "instanceGroupManagers/mig");
        rest(r,
             "http://azure/subscriptions/" FAKE_AZURE_SUBSCRIPTION
             "/resourceGroups/vesper-rg/providers/Microsoft.Compute/virtualMachineScaleSets/ss/"
             "virtualMachines/7?api-version=2024-07-01",
             200, "ss_7");
        print_message("  a hook's action is heard of in the queue that listens\n");
        aws(r, "autoscaling", NULL, TERMINATE, 200, NULL);
        aws(r, "sqs", RECEIVE, QUEUE, 200, "EC2 Instance-terminate Lifecycle Action");
        post(r, "/cloud/lifecycle", "{'instance':'i-0a'}", NULL, "{\"state\":\"Terminating:Wait\"}");
        post(r, "/cloud/lifecycle", "{'instance':'i-0c'}", NULL, "{\"state\":null}");
        aws(r, "sqs", RECEIVE, "{'QueueUrl':'http://sqs/123456789012/quiet'}", 200, "{}");
        print_message("  and so are terminations, whosever they are\n");
        fake_ec2_terminate(r->ec2, "i-0c");
        aws(r, "sqs", RECEIVE, QUEUE, 200, "shutting-down");
}

TEST_CASE(test_posts) {
        static const struct {
                const char *path, *text, *why;
        } rows[] = {
                { "/cloud/nothing", "{}", "no such command" },
                { "/cloud/fault", "{'cloud':'mars','kind':'fail'}", "cloud: ec2" },
                { "/cloud/fault", "{'cloud':'sqs','kind':'explode'}", "kind: fail" },
                { "/cloud/fault", "{'cloud':'sqs','kind':'fail','status':99}", "200 to 599" },
                { "/cloud/fault/clear", "{'cloud':'mars'}", "cloud: ec2" },
                { "/cloud/event", "{'queue':'x','kind':'spot'}", "none of that name" },
                { "/cloud/event", "{'queue':'q','kind':'flood'}", "kind: spot" },
                { "/cloud/message", "{'queue':'q'}", "a text" },
                { "/cloud/duplicate", "{}", "none of that name" },
                { "/cloud/shuffle", "{}", "none of that name" },
                { "/cloud/state",
                  "{'cloud':'gce','zone':'us-central1-a','instance':'none','state':'RUNNING'}",
                  "no such instance" },
                { "/cloud/state", "{'cloud':'azure','instance':'none','state':'stopped'}",
                  "no such machine" },
                { "/cloud/state", "{'cloud':'ec2','instance':'i-0a','state':'stopped'}", "gce or azure" },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                post(r, rows[i].path, rows[i].text, rows[i].why, NULL);

        print_message("  each cloud throttles in its own way\n");
        post(r, "/cloud/fault", "{'cloud':'autoscaling','kind':'throttle'}", NULL, NULL);
        aws(r, "autoscaling", NULL, TERMINATE, 400, "Throttling");
        post(r, "/cloud/fault", "{'cloud':'sqs','kind':'throttle','operation':'ReceiveMessage'}", NULL,
             NULL);
        aws(r, "sqs", RECEIVE, QUEUE, 400, "RequestThrottled");
        post(r, "/cloud/fault", "{'cloud':'gce','kind':'throttle'}", NULL, NULL);
        rest(r, "http://gce/compute/v1/projects/p/zones/us-central1-b/instances/vm-a", 403,
             "rateLimitExceeded");
        post(r, "/cloud/counts", "{'cloud':'gce','operation':'instances.get'}", NULL, "{\"requests\":1}");

        print_message("  faults that are taken back\n");
        post(r, "/cloud/fault", "{'cloud':'gce','kind':'hang','count':99}", NULL, NULL);
        post(r, "/cloud/fault/clear", "{'cloud':'gce'}", NULL, NULL);
        post(r, "/cloud/state",
             "{'cloud':'gce','zone':'us-central1-b','instance':'vm-a','state':'TERMINATED'}", NULL, NULL);
        rest(r, "http://gce/compute/v1/projects/p/zones/us-central1-b/instances/vm-a", 200, "TERMINATED");

        print_message("  messages and events\n");
        post(r, "/cloud/event", "{'queue':'q','kind':'spot','instance':'i-0a'}", NULL, NULL);
        aws(r, "sqs", RECEIVE, QUEUE, 200, "Spot Instance Interruption Warning");
        post(r, "/cloud/message", "{'queue':'q','body':'no JSON'}", NULL, NULL);
        aws(r, "sqs", RECEIVE, QUEUE, 200, "no JSON");
}

TEST_CASE(test_bad_worlds) {
        static const struct {
                const char *world, *why;
        } rows[] = {
                { "{'autoscalingGroups':[{}]}", "no name" },
                { "{'autoscalingGroups':[{'name':'g','hooks':[{}]}]}", "hook" },
                { "{'instances':[{'id':'i-0a','group':'none'}]}", "not there" },
                { "{'autoscalingGroups':[{'name':'g','max':0}],'instances':[{'id':'i-0a','group':'g'}]}",
                  "more instances than its max" },
                { "{'queues':[{'name':'q'},{'name':'q'}]}", "queue" },
                { "{'gce':{'groups':[{'name':'m','scope':'mars'}]}}", "scope" },
                { "{'instances':[{'id':'a','platform':'gce','zone':'mars-a'}]}", "zone that is not there" },
                { "{'instances':[{'id':'a','platform':'azure','scaleSet':'s'}]}", "instance id" },
                { "{'azure':{'scaleSets':[1]}}", "scale set" },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *why = NULL;

                assert_null(make(r, rows[i].world, &why));
                if (!strstr(why, rows[i].why))
                        fail_msg("%s: expected '%s', saw '%s'", rows[i].world, rows[i].why, why);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_events),
                cmocka_unit_test_setup_teardown(test_world, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_posts, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_bad_worlds, room_setup, room_teardown),
        };
        return cmocka_run_group_tests_name("fake-clouds", tests, NULL, NULL);
}
