/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cloud-rig.h"
#include "cmocka-test.h"
#include "fake-sqs.h"
#include "log.h"
#include "sqs-client.h"
#include "sqs-url.h"

#define ORIGIN "https://sqs.eu-west-1.amazonaws.com"
#define QUEUE ORIGIN "/123456789012/q"

/* -- the URL -------------------------------------------------------------------------------------------- */

TEST_CASE(test_url) {
        static const struct {
                const char *url, *endpoint, *region;
        } rows[] = {
                { QUEUE, ORIGIN, "eu-west-1" },
                { "https://sqs.cn-north-1.amazonaws.com.cn/1/q", "https://sqs.cn-north-1.amazonaws.com.cn", "cn-north-1" },
                { "https://sqs.us-gov-west-1.amazonaws.com/1/q", "https://sqs.us-gov-west-1.amazonaws.com", "us-gov-west-1" },
                { "https://sqs.us-east-1.api.aws/1/q.fifo", "https://sqs.us-east-1.api.aws", "us-east-1" },
                { "https://sqs-fips.us-east-2.amazonaws.com/1/q", "https://sqs-fips.us-east-2.amazonaws.com", "us-east-2" },
                { "https://vpce-0a-b.sqs.eu-west-1.vpce.amazonaws.com/1/q", "https://vpce-0a-b.sqs.eu-west-1.vpce.amazonaws.com",
                  "eu-west-1" },
                { "https://eu-west-1.queue.amazonaws.com/1/q", "https://eu-west-1.queue.amazonaws.com", "eu-west-1" },
                { "https://queue.amazonaws.com/1/q", "https://queue.amazonaws.com", "us-east-1" },
                { "http://127.0.0.1:5000/1/q", "http://127.0.0.1:5000", NULL },
                { "http://[::1]:5000/1/q", "http://[::1]:5000", NULL },
                { "http://localhost/1/q", "http://localhost", NULL },
                { "https://queue.example/1/q", "https://queue.example", NULL },
                { "http://sqs.eu-west-1.amazonaws.com/1/q", NULL, NULL },
                { "http://127.0.0.1.example/1/q", NULL, NULL },
                { "http://localhost.example/1/q", NULL, NULL },
                { "https://user@sqs.eu-west-1.amazonaws.com/1/q", NULL, NULL },
                { ORIGIN, NULL, NULL },
                { ORIGIN "/", NULL, NULL },
                { ORIGIN "/q", NULL, NULL },
                { ORIGIN "/1/", NULL, NULL },
                { ORIGIN "/1/q?x", NULL, NULL },
                { ORIGIN "/1/q\"", NULL, NULL },
                { "/1/q", NULL, NULL },
                { "", NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sqs_url_done) SqsUrl u = { 0 };
                const char *why = NULL;
                int r = sqs_url_parse(rows[i].url, &u, &why);

                if (!rows[i].endpoint) {
                        if (r != -EINVAL || isempty(why))
                                fail_msg("'%s': %d", rows[i].url, r);
                        continue;
                }
                if (r != 0 || !streq(u.endpoint, rows[i].endpoint) || !streq_ptr(u.region, rows[i].region) ||
                    !streq(u.url, rows[i].url))
                        fail_msg("'%s': %d, %s, %s", rows[i].url, r, strempty(u.endpoint), strempty(u.region));
        }
}

/* The URL of a queue names its account and region. */
TEST_CASE(test_account) {
        static const struct {
                const char *url, *account;
        } rows[] = {
                { QUEUE, "123456789012" },
                { "https://sqs.us-east-1.amazonaws.com/000000000000/q.fifo", "000000000000" },
                { "http://127.0.0.1:5000/behind/a/path/123456789012/q", "123456789012" },
                { "http://127.0.0.1:5000/queue/q", NULL },
                { "http://127.0.0.1:5000//q", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sqs_url_done) SqsUrl u = { 0 };
                const char *why = NULL;

                print_message("%s\n", rows[i].url);
                assert_return_code(sqs_url_parse(rows[i].url, &u, &why), 0);
                assert_true(streq_ptr(u.account, rows[i].account));
        }
}

/* -- answers -------------------------------------------------------------------------------------------- */

#define MESSAGE(more) "{\"MessageId\":\"m\",\"ReceiptHandle\":\"r\",\"Body\":\"b\"" more "}"

TEST_CASE(test_messages) {
        static const struct {
                const char *text;
                int expected; /* how many, or what is wrong */
                unsigned receives;
                usec_t sent_usec;
        } rows[] = {
                { "{}", 0, 0, 0 },
                { "{\"Messages\":null}", 0, 0, 0 },
                { "{\"Messages\":[]}", 0, 0, 0 },
                { "{\"Messages\":[" MESSAGE("") "]}", 1, 0, 0 },
                { "{\"Messages\":[" MESSAGE(",\"Attributes\":{\"SentTimestamp\":\"1500\",\"ApproximateReceiveCount\":\"3\"}") "]}", 1, 3,
                  1500 * USEC_PER_MSEC },
                { "{\"Messages\":[" MESSAGE(",\"Attributes\":{\"SentTimestamp\":\"soon\",\"ApproximateReceiveCount\":3}") "]}", 1, 0, 0 },
                { "{\"Messages\":[" MESSAGE("") ",{\"MessageId\":\"m\",\"Body\":\"b\"}]}", -EBADMSG, 0, 0 },
                { "{\"Messages\":[{\"MessageId\":\"\",\"ReceiptHandle\":\"r\",\"Body\":\"b\"}]}", -EBADMSG, 0, 0 },
                { "{\"Messages\":{}}", -EBADMSG, 0, 0 },
                { "[]", -EBADMSG, 0, 0 },
                { "", -EBADMSG, 0, 0 },
                { "{\"Messages\":[1,1,1,1,1,1,1,1,1,1,1]}", -EBADMSG, 0, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(sqs_messages_done) SqsMessages m = { 0 };
                int r = sqs_messages_parse(rows[i].text, strlen(rows[i].text), &m);

                if (r < 0 ? r != rows[i].expected || m.n > 0 : (int) m.n != rows[i].expected)
                        fail_msg("%s: %d, %zu", rows[i].text, r, m.n);
                if (m.n > 0 && (m.at[0].receives != rows[i].receives || m.at[0].sent_usec != rows[i].sent_usec))
                        fail_msg("%s: %u", rows[i].text, m.at[0].receives);
        }
}

TEST_CASE(test_failures) {
        static const struct {
                const char *text;
                int r;
                unsigned failed; /* of three */
        } rows[] = {
                { "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"2\"}],\"Failed\":[{\"Id\":\"1\",\"Code\":\"x\"}]}", 0, 2 },
                { "{\"Successful\":[{\"Id\":\"0\"},{\"Id\":\"1\"},{\"Id\":\"2\"}]}", 0, 0 },
                { "{\"Failed\":[]}", 0, 7 }, /* what is not called successful is not */
                { "{}", 0, 7 },
                { "{\"Successful\":[{\"Id\":\"x\"}]}", -EBADMSG, 7 },
                { "{\"Successful\":1}", -EBADMSG, 7 },
                { "no", -EBADMSG, 7 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                unsigned failed = 0;
                int r = sqs_failures_parse(rows[i].text, strlen(rows[i].text), 3, &failed);

                if (r != rows[i].r || failed != rows[i].failed)
                        fail_msg("%s: %d, %u", rows[i].text, r, failed);
        }
}

TEST_CASE(test_batch_next) {
#define MIB (1024u * 1024u)
        static const struct {
                unsigned asked;
                size_t answer_bytes;
                unsigned expected;
        } rows[] = {
                { 10, 0, 10 },         { 10, 8 * MIB, 10 }, { 10, SIZE_MAX, 5 }, { 5, SIZE_MAX, 2 },
                { 3, SIZE_MAX, 1 },    { 1, SIZE_MAX, 1 },  { 1, 2 * MIB, 2 },   { 1, 2 * MIB + 1, 1 },
                { 1, 6 * MIB, 1 },     { 4, 3 * MIB, 5 },   { 4, 4 * MIB, 4 },   { 9, 4096, 10 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (sqs_batch_next(rows[i].asked, rows[i].answer_bytes) != rows[i].expected)
                        fail_msg("%u, %zu bytes: %u", rows[i].asked, rows[i].answer_bytes,
                                 sqs_batch_next(rows[i].asked, rows[i].answer_bytes));
}

/* -- calls ---------------------------------------------------------------------------------------------- */

typedef struct Room {
        CloudRig rig;
        FakeSqs *sqs;
        Log *log;
        Random *random;
        Env env;
        SqsClient *client;
        SqsCall *call;
        bool answered;
        SqsOutcome outcome;
        unsigned failed;
        SqsMessages messages;
        char message[400];
} Room;

static const char *on_getenv(const char *name, void *userdata) {
        return streq(name, "AWS_ACCESS_KEY_ID") ? RIG_KEY : streq(name, "AWS_SECRET_ACCESS_KEY") ? RIG_SECRET : NULL;
}

static int room_setup(void **state) {
        Room *r = new0(Room, 1);
        const SqsConfig config = { .url = QUEUE, .getenv = on_getenv };
        const char *message;

        rig_init(&r->rig);
        assert_return_code(random_new(7, &r->random), 0);
        r->sqs = fake_sqs_new(&(FakeSqsOptions) { .aws = { .loop = r->rig.loop,
                                                           .region = RIG_REGION,
                                                           .access_key_id = RIG_KEY,
                                                           .secret_access_key = RIG_SECRET } });
        fake_sqs_add_queue(r->sqs, &(FakeSqsQueue) { .name = "q" });
        rig_route(&r->rig, ORIGIN, fake_sqs_handle, r->sqs);
        r->env = (Env){ .loop = r->rig.loop, .random = r->random, .transport = r->rig.transport };
        assert_return_code(sqs_client_new(&r->env, &config, &r->client, &message), 0);
        *state = r;
        return 0;
}

static int room_teardown(void **state) {
        Room *r = *state;

        sqs_messages_done(&r->messages);
        sqs_call_free(r->call);
        sqs_client_free(r->client);
        rig_stop(&r->rig);
        fake_sqs_free(r->sqs);
        random_free(r->random);
        rig_done(&r->rig);
        free(r);
        return 0;
}

static void on_done(SqsResult *result, void *userdata) {
        Room *r = userdata;

        r->answered = true;
        r->outcome = result->outcome;
        r->failed = result->failed;
        (void) snprintf(r->message, sizeof(r->message), "%s", result->message);
        if (result->messages) {
                r->messages = *result->messages;
                result->messages->n = 0;
        }
        r->call = sqs_call_free(r->call);
}

static void finish(Room *r) {
        for (unsigned i = 0; i < 400 && !r->answered; i++)
                rig_run_for(&r->rig, USEC_PER_SEC / 10);
        assert_true(r->answered);
}

static void receive(Room *r, unsigned wait_sec) {
        const SqsReceive how = { .wait_sec = wait_sec, .visibility_sec = 10, .max_messages = SQS_BATCH_MAX };

        r->answered = false;
        sqs_messages_done(&r->messages);
        assert_return_code(sqs_receive(r->client, &how, on_done, r, &r->call), 0);
        finish(r);
}

TEST_CASE(test_receives_and_deletes) {
        Room *r = *state;
        SqsEntry e[2];

        fake_sqs_send(r->sqs, "q", "one");
        fake_sqs_send(r->sqs, "q", "two \"\n\xc3\xa4");
        receive(r, 0);
        assert_int_equal(r->outcome, SQS_OK);
        assert_int_equal(r->messages.n, 2);
        assert_string_equal(r->messages.at[0].body, "one");
        assert_string_equal(r->messages.at[1].body, "two \"\n\xc3\xa4");
        assert_int_equal(r->messages.at[0].receives, 1);
        assert_true(r->messages.at[0].sent_usec >= RIG_START_USEC);

        r->answered = false;
        e[0] = (SqsEntry){ .receipt = r->messages.at[0].receipt };
        e[1] = (SqsEntry){ .receipt = "none of its" };
        assert_return_code(sqs_delete(r->client, e, 2, NULL, on_done, r, &r->call), 0);
        finish(r);
        assert_int_equal(r->outcome, SQS_OK);
        assert_int_equal(r->failed, 2);
        assert_int_equal(fake_sqs_n_messages(r->sqs, "q"), 1);
}

TEST_CASE(test_hides) {
        Room *r = *state;
        SqsEntry e = { .visibility_sec = 60 };

        fake_sqs_send(r->sqs, "q", "one");
        receive(r, 0);
        r->answered = false;
        e.receipt = r->messages.at[0].receipt;
        assert_return_code(sqs_hide(r->client, &e, 1, NULL, on_done, r, &r->call), 0);
        finish(r);
        assert_int_equal(r->failed, 0);
        rig_run_for(&r->rig, 50 * USEC_PER_SEC);
        receive(r, 0);
        assert_int_equal(r->messages.n, 0);
        receive(r, 20); /* a poll that waits for it */
        assert_int_equal(r->messages.n, 1);
        assert_int_equal(r->messages.at[0].receives, 2);
}

/* An empty poll is an answer, and no error. */
TEST_CASE(test_empty_poll) {
        Room *r = *state;
        usec_t before = rig_now(&r->rig);

        receive(r, 20);
        assert_int_equal(r->outcome, SQS_OK);
        assert_int_equal(r->messages.n, 0);
        assert_in_range(rig_now(&r->rig) - before, 20 * USEC_PER_SEC, 21 * USEC_PER_SEC);
}

TEST_CASE(test_errors) {
        static const struct {
                const char *code;
                unsigned status;
                SqsOutcome expected;
        } rows[] = {
                { "RequestThrottled", 400, SQS_RETRY },
                { "InternalError", 500, SQS_RETRY },
                { "KmsAccessDenied", 400, SQS_DENIED },
                { "AccessDeniedException", 403, SQS_DENIED },
                { "QueueDoesNotExist", 400, SQS_GONE },
        };
        Room *r = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                fake_troubles_add(fake_sqs_troubles(r->sqs), &(FakeTrouble) { .kind = FAKE_TROUBLE_FAIL,
                                                                              .operation = "ReceiveMessage",
                                                                              .n = 1,
                                                                              .status = rows[i].status,
                                                                              .code = rows[i].code,
                                                                              .message = "because" });
                receive(r, 0);
                if (r->outcome != rows[i].expected || !strstr(r->message, rows[i].code))
                        fail_msg("%s: %s, '%s'", rows[i].code, sqs_outcome_names[r->outcome], r->message);
        }
        receive(r, 0);
        assert_int_equal(r->outcome, SQS_OK);
}

/* Messages of the greatest size, of which no ten fit into an answer, are received in smaller numbers. */
TEST_CASE(test_too_large) {
        const SqsReceive one = { .visibility_sec = 10, .max_messages = 1 };
        char *body = malloc(SQS_BODY_MAX_BYTES + 1);
        Room *r = *state;

        assert_non_null(body);
        memset(body, '"', SQS_BODY_MAX_BYTES);
        body[SQS_BODY_MAX_BYTES] = 0;
        for (unsigned i = 0; i < SQS_BATCH_MAX; i++)
                fake_sqs_send(r->sqs, "q", body);
        receive(r, 0);
        assert_int_equal(r->outcome, SQS_TOO_LARGE);
        rig_run_for(&r->rig, 20 * USEC_PER_SEC);
        r->answered = false;
        assert_return_code(sqs_receive(r->client, &one, on_done, r, &r->call), 0);
        finish(r);
        assert_int_equal(r->outcome, SQS_OK);
        assert_int_equal(r->messages.n, 1);
        free(body);
}

/* The lease has ended: nothing leaves. */
static bool no(void *userdata) {
        return false;
}

TEST_CASE(test_guard) {
        const SqsEntry e = { .receipt = "any" };
        const HttpGuard guard = { .may_send = no };
        Room *r = *state;

        assert_return_code(sqs_delete(r->client, &e, 1, &guard, on_done, r, &r->call), 0);
        finish(r);
        assert_int_equal(r->outcome, SQS_RETRY);
        assert_int_equal(r->failed, 1);
}

TEST_CASE(test_region) {
        const SqsConfig config = { .url = "http://127.0.0.1:1/1/q" };
        const char *message = NULL;
        Room *r = *state;
        SqsClient *c;

        assert_int_equal(sqs_client_new(&r->env, &config, &c, &message), -EINVAL);
        assert_non_null(strstr(message, "Region="));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_url),
                cmocka_unit_test(test_account),
                cmocka_unit_test(test_messages),
                cmocka_unit_test(test_failures),
                cmocka_unit_test(test_batch_next),
                cmocka_unit_test_setup_teardown(test_receives_and_deletes, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_hides, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_empty_poll, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_errors, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_too_large, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_guard, room_setup, room_teardown),
                cmocka_unit_test_setup_teardown(test_region, room_setup, room_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
