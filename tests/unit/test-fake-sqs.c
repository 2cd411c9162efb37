/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-rig.h"
#include "cmocka-test.h"
#include "fake-json.h"
#include "fake-sqs.h"

#define URL "https://sqs.eu-west-1.amazonaws.com/"
#define QUEUE "https://sqs.eu-west-1.amazonaws.com/123456789012/q"
#define TYPE "application/x-amz-json-1.0"

typedef struct Room {
        CloudRig rig;
        FakeSqs *sqs;
        char handle[400]; /* of the message that came last */
} Room;

static int room_setup(void **state) {
        Room *r = new0(Room, 1);

        rig_init(&r->rig);
        r->sqs = fake_sqs_new(&(FakeSqsOptions) { .aws = { .loop = r->rig.loop,
                                                           .region = RIG_REGION,
                                                           .access_key_id = RIG_KEY,
                                                           .secret_access_key = RIG_SECRET },
                                                  .max_in_flight = 5 });
        fake_sqs_add_queue(r->sqs, &(FakeSqsQueue) { .name = "q" });
        rig_route(&r->rig, "https://sqs.eu-west-1.amazonaws.com", fake_sqs_handle, r->sqs);
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        rig_stop(&r->rig);
        fake_sqs_free(r->sqs);
        rig_done(&r->rig);
        free(r);
        return 0;
}

/* JSON with ' for ". */
static char *json(const char *text) {
        char *s = strdup(text);

        for (char *p = s; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return s;
}

static void start(Room *r, CloudAsk *a, const char *operation, const char *text) {
        _cleanup_free_ char *target = strf("AmazonSQS.%s", operation), *body = json(text);

        rig_start_aws(&r->rig, a, "sqs", URL, TYPE, target, body, NULL);
}

static void keep_handle(Room *r, const CloudAsk *a) {
        _cleanup_cjson_ cJSON *o = cJSON_Parse(a->body);
        const cJSON *messages = fj_member(o, "Messages");
        const char *handle = fj_string(cJSON_GetArrayItem(messages, 0), "ReceiptHandle", NULL);

        if (handle)
                (void) snprintf(r->handle, sizeof(r->handle), "%s", handle);
}

static void expect(Room *r, const char *operation, const char *text, unsigned status, const char *part) {
        _cleanup_ask_ CloudAsk a = { 0 };

        start(r, &a, operation, text);
        rig_wait(&r->rig, &a);
        ask_expect(&a, text, status, part);
        keep_handle(r, &a);
}

/* An operation on the handle r->handle, with more members behind. */
static void expect_handle(Room *r, const char *operation, const char *more, unsigned status,
                          const char *part) {
        _cleanup_free_ char *text = strf("{'QueueUrl':'" QUEUE "','ReceiptHandle':'%s'%s}", r->handle, more);

        expect(r, operation, text, status, part);
}

#define RECEIVE "{'QueueUrl':'" QUEUE "'}"

TEST_CASE(test_refusals) {
        static const struct {
                const char *what;
                RigSigning signing;
                const char *type, *target, *body, *part;
                unsigned status;
        } rows[] = {
                { "unsigned",
                  { .unsigned_ = true },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  RECEIVE,
                  "#MissingAuthenticationTokenException",
                  403 },
                { "unknown key",
                  { .key = "AKIANOBODY" },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  RECEIVE,
                  "#UnrecognizedClientException",
                  403 },
                { "wrong region",
                  { .region = "eu-west-2" },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  RECEIVE,
                  "not 'eu-west-2'",
                  403 },
                { "wrong service",
                  { .service = "ec2" },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  RECEIVE,
                  "#InvalidSignatureException",
                  403 },
                { "6 minutes off",
                  { .skew_usec = 6 * 60 * 1000000ll },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  RECEIVE,
                  "Signature expired",
                  403 },
                { "no such operation",
                  { 0 },
                  TYPE,
                  "AmazonSQS.Drain",
                  RECEIVE,
                  "#UnknownOperationException",
                  400 },
                { "JSON 1.1",
                  { 0 },
                  "application/x-amz-json-1.1",
                  "AmazonSQS.ReceiveMessage",
                  RECEIVE,
                  "#UnknownOperationException",
                  400 },
                { "another service's target",
                  { 0 },
                  TYPE,
                  "DynamoDB_20120810.GetItem",
                  RECEIVE,
                  "#UnknownOperationException",
                  400 },
                { "no JSON", { 0 }, TYPE, "AmazonSQS.ReceiveMessage", "{", "#SerializationException", 400 },
                { "an unknown member",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'" QUEUE "','Wait':1}",
                  "no member Wait",
                  400 },
                { "no queue",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{}",
                  "must contain the parameter QueueUrl",
                  400 },
                { "no such queue",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'https://sqs.eu-west-1.amazonaws.com/123456789012/x'}",
                  "{\"__type\":\"com.amazonaws.sqs#QueueDoesNotExist\"",
                  400 },
                { "another account's",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'https://sqs.eu-west-1.amazonaws.com/999999999999/q'}",
                  "QueueDoesNotExist",
                  400 },
                { "another region's address",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'https://sqs.eu-west-2.amazonaws.com/123456789012/q'}",
                  "#InvalidAddress",
                  400 },
                { "no address",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'q'}",
                  "#InvalidAddress",
                  400 },
                { "eleven messages",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'" QUEUE "','MaxNumberOfMessages':11}",
                  "#InvalidParameterValueException",
                  400 },
                { "a wait too long",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'" QUEUE "','WaitTimeSeconds':21}",
                  "WaitTimeSeconds",
                  400 },
                { "hidden too long",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'" QUEUE "','VisibilityTimeout':43201}",
                  "VisibilityTimeout",
                  400 },
                { "a number in a string",
                  { 0 },
                  TYPE,
                  "AmazonSQS.ReceiveMessage",
                  "{'QueueUrl':'" QUEUE "','WaitTimeSeconds':'20'}",
                  "#SerializationException",
                  400 },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *body = json(rows[i].body);
                _cleanup_ask_ CloudAsk a = { 0 };

                rig_start_aws(&r->rig, &a, "sqs", URL, rows[i].type, rows[i].target, body, &rows[i].signing);
                rig_wait(&r->rig, &a);
                ask_expect(&a, rows[i].what, rows[i].status, rows[i].part);
                if (streq(rows[i].what, "no such queue"))
                        assert_string_equal(ask_header(&a, "x-amzn-query-error"),
                                            "AWS.SimpleQueueService.NonExistentQueue;Sender");
        }
        fake_sqs_throttle(r->sqs, 1);
        expect(r, "ReceiveMessage", RECEIVE, 400, "com.amazonaws.sqs#RequestThrottled");
}

TEST_CASE(test_queue_url) {
        Room *r = *state;

        expect(r, "GetQueueUrl", "{'QueueName':'q'}", 200, "{\"QueueUrl\":\"" QUEUE "\"}");
        expect(r, "GetQueueUrl", "{'QueueName':'x'}", 400, "QueueDoesNotExist");
        expect(r, "GetQueueUrl", "{'QueueName':'q','QueueOwnerAWSAccountId':'999999999999'}", 400,
               "QueueDoesNotExist");
}

TEST_CASE(test_send_and_receive) {
        static const char receive[] =
                "{'QueueUrl':'" QUEUE
                "','MessageSystemAttributeNames':['SentTimestamp','ApproximateReceiveCount']}";
        Room *r = *state;

        print_message("  nothing there: the key is absent\n");
        expect(r, "ReceiveMessage", RECEIVE, 200, "{}");
        expect(r, "SendMessage", "{'QueueUrl':'" QUEUE "','MessageBody':''}", 400, "MessageBody");
        expect(r, "SendMessage", "{'QueueUrl':'" QUEUE "','MessageBody':'hello'}", 200,
               "\"MD5OfMessageBody\":\"5d41402abc4b2a76b9719d911017c592\"");
        expect(r, "ReceiveMessage", receive, 200,
               "\"MD5OfBody\":\"5d41402abc4b2a76b9719d911017c592\",\"Body\":\"hello\",\"Attributes\":"
               "{\"SentTimestamp\":\"1790000000000\",\"ApproximateReceiveCount\":\"1\"}");

        print_message("  hidden for 30 s, then there again, counted\n");
        rig_run_for(&r->rig, 29 * USEC_PER_SEC);
        expect(r, "ReceiveMessage", RECEIVE, 200, "{}");
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect(r, "ReceiveMessage", receive, 200, "\"ApproximateReceiveCount\":\"2\"");
        expect_handle(r, "DeleteMessage", "", 200, NULL);
        assert_int_equal(fake_sqs_n_messages(r->sqs, "q"), 0);
        expect_handle(r, "DeleteMessage", "", 200, NULL); /* again: fine */

        print_message("  short retention\n");
        fake_sqs_add_queue(r->sqs, &(FakeSqsQueue) { .name = "short", .retention_usec = 300 * USEC_PER_SEC });
        fake_sqs_send(r->sqs, "short", "x");
        rig_run_for(&r->rig, 300 * USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_messages(r->sqs, "short"), 0);
}

TEST_CASE(test_handles) {
        char old[400];
        Room *r = *state;

        fake_sqs_send(r->sqs, "q", "hello");
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        memcpy(old, r->handle, sizeof(old));

        print_message("  of nobody\n");
        expect(r, "DeleteMessage", "{'QueueUrl':'" QUEUE "','ReceiptHandle':'x'}", 400,
               "#ReceiptHandleIsInvalid");
        expect(r, "ChangeMessageVisibility",
               "{'QueueUrl':'" QUEUE "','ReceiptHandle':'x','VisibilityTimeout':1}", 400,
               "#ReceiptHandleIsInvalid");

        print_message("  longer, at most 12 hours since the receive\n");
        expect_handle(r, "ChangeMessageVisibility", "", 400, "VisibilityTimeout");
        expect_handle(r, "ChangeMessageVisibility", ",'VisibilityTimeout':43201", 400, "VisibilityTimeout");
        rig_run_for(&r->rig, 20 * USEC_PER_SEC);
        expect_handle(r, "ChangeMessageVisibility", ",'VisibilityTimeout':43200", 400, "43200 seconds");
        expect_handle(r, "ChangeMessageVisibility", ",'VisibilityTimeout':60", 200, NULL);
        rig_run_for(&r->rig, 59 * USEC_PER_SEC);
        expect(r, "ReceiveMessage", RECEIVE, 200, "{}");
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        expect_handle(r, "ChangeMessageVisibility", ",'VisibilityTimeout':60", 400, "#MessageNotInflight");

        print_message("  a delete with an old one succeeds, and the message comes again\n");
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        assert_string_not_equal(r->handle, old);
        memcpy(r->handle, old, sizeof(old));
        expect_handle(r, "DeleteMessage", "", 200, NULL);
        assert_int_equal(fake_sqs_n_messages(r->sqs, "q"), 1);
        rig_run_for(&r->rig, 31 * USEC_PER_SEC);
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        expect_handle(r, "ChangeMessageVisibility", ",'VisibilityTimeout':0", 200, NULL);
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        expect_handle(r, "DeleteMessage", "", 200, NULL);
        expect_handle(r, "ChangeMessageVisibility", ",'VisibilityTimeout':1", 400, "does not exist");
}

TEST_CASE(test_long_poll) {
        static const char wait[] = "{'QueueUrl':'" QUEUE "','WaitTimeSeconds':20,'MaxNumberOfMessages':10}";
        _cleanup_ask_ CloudAsk first = { 0 }, second = { 0 }, third = { 0 }, fourth = { 0 };
        Room *r = *state;

        start(r, &first, "ReceiveMessage", wait);
        rig_run_for(&r->rig, 5 * USEC_PER_SEC);
        start(r, &second, "ReceiveMessage", wait);
        rig_run_for(&r->rig, 5 * USEC_PER_SEC);
        assert_false(first.answered || second.answered);
        assert_int_equal(fake_sqs_n_waiting(r->sqs, "q"), 2);

        print_message("  the first who waits gets it, at once\n");
        fake_sqs_send(r->sqs, "q", "hello");
        rig_run_for(&r->rig, USEC_PER_MSEC);
        assert_true(first.answered);
        ask_expect(&first, "long poll", 200, "hello");
        rig_run_for(&r->rig, 14 * USEC_PER_SEC);
        assert_false(second.answered);
        rig_run_for(&r->rig, 2 * USEC_PER_SEC);
        assert_true(second.answered);
        assert_string_equal(second.body, "{}");

        print_message("  what becomes visible again wakes too\n");
        start(r, &third, "ReceiveMessage", wait);
        rig_run_for(&r->rig, 15 * USEC_PER_SEC);
        assert_true(third.answered);
        ask_expect(&third, "visible again", 200, "hello");

        print_message("  who hangs up waits no more, and takes nothing\n");
        start(r, &fourth, "ReceiveMessage", wait);
        rig_run_for(&r->rig, USEC_PER_SEC);
        fourth.call = http_call_free(fourth.call);
        rig_run_for(&r->rig, USEC_PER_SEC);
        rig_run_for(&r->rig, USEC_PER_MINUTE);
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");

        print_message("  the queue's own wait\n");
        fake_sqs_add_queue(r->sqs, &(FakeSqsQueue) { .name = "slow", .wait_usec = 3 * USEC_PER_SEC });
        usec_t before = rig_now(&r->rig);
        expect(r, "ReceiveMessage", "{'QueueUrl':'https://sqs.eu-west-1.amazonaws.com/123456789012/slow'}",
               200, "{}");
        assert_true(rig_now(&r->rig) - before >= 3 * USEC_PER_SEC);
}

/* At least once, in no order. */
TEST_CASE(test_twice_and_shuffled) {
        static const char ten[] = "{'QueueUrl':'" QUEUE "','MaxNumberOfMessages':10,'VisibilityTimeout':0}";
        Random *random;
        Room *r = *state;
        bool moved = false;

        fake_sqs_send(r->sqs, "q", "hello");
        fake_sqs_duplicate(r->sqs, "q", 1);
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        expect(r, "ReceiveMessage", RECEIVE, 200, "{}");
        expect_handle(r, "DeleteMessage", "", 200, NULL);

        for (const char *body = "abcd"; *body; body++)
                fake_sqs_send(r->sqs, "q", (char[]) { *body, 0 });
        assert_return_code(random_new(7, &random), 0);
        fake_sqs_shuffle(r->sqs, "q", random);
        for (int i = 0; i < 10; i++) {
                _cleanup_ask_ CloudAsk a = { 0 };

                start(r, &a, "ReceiveMessage", "{'QueueUrl':'" QUEUE "','VisibilityTimeout':0}");
                rig_wait(&r->rig, &a);
                moved = moved || !strstr(a.body, "\"Body\":\"a\"");
        }
        assert_true(moved);
        fake_sqs_shuffle(r->sqs, "q", NULL);
        random_free(random);
        expect(r, "ReceiveMessage", ten, 200, "Messages");
}

TEST_CASE(test_batch) {
        Room *r = *state;
        _cleanup_free_ char *good = NULL, *eleven = NULL;
        StrBuf b = { 0 };

        fake_sqs_send(r->sqs, "q", "hello");
        expect(r, "ReceiveMessage", RECEIVE, 200, "hello");
        print_message("  200, and some failed\n");
        good = strf("{'QueueUrl':'" QUEUE
                    "','Entries':[{'Id':'a','ReceiptHandle':'%s'},{'Id':'b','ReceiptHandle':'x'}]}",
                    r->handle);
        expect(r, "DeleteMessageBatch", good, 200,
               "{\"Successful\":[{\"Id\":\"a\"}],\"Failed\":[{\"Id\":\"b\",\"Code\":"
               "\"ReceiptHandleIsInvalid\"");
        assert_int_equal(fake_sqs_n_messages(r->sqs, "q"), 0);
        expect(r, "DeleteMessageBatch", "{'QueueUrl':'" QUEUE "','Entries':[]}", 400, "#EmptyBatchRequest");
        expect(r, "DeleteMessageBatch",
               "{'QueueUrl':'" QUEUE
               "','Entries':[{'Id':'a','ReceiptHandle':'x'},{'Id':'a','ReceiptHandle':'y'}]}",
               400, "#BatchEntryIdsNotDistinct");
        strbuf_add(&b, "{'QueueUrl':'" QUEUE "','Entries':[");
        for (int i = 0; i < 11; i++)
                strbuf_addf(&b, "%s{'Id':'%d','ReceiptHandle':'x'}", i > 0 ? "," : "", i);
        strbuf_add(&b, "]}");
        eleven = strbuf_steal(&b);
        expect(r, "DeleteMessageBatch", eleven, 400, "#TooManyEntriesInBatchRequest");
}

TEST_CASE(test_attributes_and_limit) {
        Room *r = *state;

        expect(r, "SendMessage", "{'QueueUrl':'" QUEUE "','MessageBody':'late','DelaySeconds':60}", 200,
               "MessageId");
        for (int i = 0; i < 7; i++)
                fake_sqs_send(r->sqs, "q", "hello");
        expect(r, "ReceiveMessage", "{'QueueUrl':'" QUEUE "','MaxNumberOfMessages':5}", 200, "hello");
        assert_int_equal(fake_sqs_n_in_flight(r->sqs, "q"), 5);
        expect(r, "GetQueueAttributes", "{'QueueUrl':'" QUEUE "','AttributeNames':['All']}", 200,
               "{\"Attributes\":{\"ApproximateNumberOfMessages\":\"2\","
               "\"ApproximateNumberOfMessagesNotVisible\":\"5\","
               "\"ApproximateNumberOfMessagesDelayed\":\"1\"");
        expect(r, "GetQueueAttributes", "{'QueueUrl':'" QUEUE "','AttributeNames':['QueueArn']}", 200,
               "{\"Attributes\":{\"QueueArn\":\"arn:aws:sqs:eu-west-1:123456789012:q\"}}");
        expect(r, "GetQueueAttributes", "{'QueueUrl':'" QUEUE "','AttributeNames':['Colour']}", 400,
               "#InvalidAttributeName");
        expect(r, "ReceiveMessage", RECEIVE, 400, "#OverLimit");
}

/* A receive that takes effect and whose answer is lost: the message is away until it is visible again. */
TEST_CASE(test_lost_answer) {
        _cleanup_ask_ CloudAsk lost = { 0 }, polling = { 0 };
        Room *r = *state;

        fake_sqs_send(r->sqs, "q", "hello");
        fake_troubles_add(fake_sqs_troubles(r->sqs), &(FakeTrouble) { .kind = FAKE_TROUBLE_LOSE, .n = 2 });
        start(r, &lost, "ReceiveMessage", RECEIVE);
        rig_run_for(&r->rig, USEC_PER_SEC);
        assert_false(lost.answered);
        assert_int_equal(fake_sqs_n_in_flight(r->sqs, "q"), 1);

        print_message("  also of a poll that is still waiting when the client goes\n");
        start(r, &polling, "ReceiveMessage", "{'QueueUrl':'" QUEUE "','WaitTimeSeconds':20}");
        rig_run_for(&r->rig, USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_waiting(r->sqs, "q"), 1);
        ask_done(&polling);
        rig_run_for(&r->rig, USEC_PER_SEC);
        assert_int_equal(fake_sqs_n_waiting(r->sqs, "q"), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, room_setup, room_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                TEST(test_refusals),
                TEST(test_queue_url),
                TEST(test_send_and_receive),
                TEST(test_handles),
                TEST(test_long_poll),
                TEST(test_twice_and_shuffled),
                TEST(test_batch),
                TEST(test_attributes_and_limit),
                TEST(test_lost_answer),
        };
        return cmocka_run_group_tests_name("fake-sqs", tests, NULL, NULL);
}
