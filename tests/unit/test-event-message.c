/* SPDX-License-Identifier: Apache-2.0 */
#include "announced.h"
#include "cmocka-test.h"
#include "event-message.h"
#include "fake-aws-event.h"
#include "strv.h"

#define AT (UINT64_C(1790000000) * USEC_PER_SEC)
#define ID "i-0123456789abcdef0"

/* The messages that AWS documents, each by SNS as well. */
TEST_CASE(test_kinds) {
        static const struct {
                FakeAwsEvent event;
                EventMessageKind kind;
                const char *action;
                usec_t not_before_usec;
                NoticeKind notice; /* _INVALID: none */
        } rows[] = {
                { { .kind = FAKE_AWS_EVENT_SPOT }, EVENT_MESSAGE_SPOT, "terminate", AT + 2 * USEC_PER_MINUTE, NOTICE_SPOT },
                { { .kind = FAKE_AWS_EVENT_SPOT, .action = "hibernate" }, EVENT_MESSAGE_SPOT, "hibernate", 0, NOTICE_SPOT },
                { { .kind = FAKE_AWS_EVENT_RESERVATION, .until_wall_usec = AT + USEC_PER_HOUR }, EVENT_MESSAGE_SPOT, "terminate",
                  AT + USEC_PER_HOUR, NOTICE_SPOT },
                { { .kind = FAKE_AWS_EVENT_REBALANCE }, EVENT_MESSAGE_REBALANCE, "", 0, NOTICE_REBALANCE },
                { { .kind = FAKE_AWS_EVENT_STATE, .action = "stopping" }, EVENT_MESSAGE_STATE_CHANGE, "stopping", 0, NOTICE_SHUTDOWN },
                { { .kind = FAKE_AWS_EVENT_STATE, .action = "shutting-down" }, EVENT_MESSAGE_STATE_CHANGE, "shutting-down", 0, NOTICE_SHUTDOWN },
                { { .kind = FAKE_AWS_EVENT_STATE, .action = "stopped" }, EVENT_MESSAGE_STATE_CHANGE, "stopped", 0, _NOTICE_KIND_INVALID },
                { { .kind = FAKE_AWS_EVENT_HEALTH, .until_wall_usec = AT + USEC_PER_DAY }, EVENT_MESSAGE_HEALTH, "terminate",
                  AT + USEC_PER_DAY, NOTICE_MAINTENANCE },
                { { .kind = FAKE_AWS_EVENT_HEALTH, .action = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED", .until_wall_usec = AT },
                  EVENT_MESSAGE_HEALTH, "reboot", AT, NOTICE_MAINTENANCE },
                { { .kind = FAKE_AWS_EVENT_HEALTH, .action = "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED", .until_wall_usec = AT },
                  EVENT_MESSAGE_HEALTH, "stop", AT, NOTICE_MAINTENANCE },
                { { .kind = FAKE_AWS_EVENT_HEALTH, .status = "closed", .until_wall_usec = AT }, EVENT_MESSAGE_HEALTH, "terminate", AT,
                  NOTICE_MAINTENANCE },
                { { .kind = FAKE_AWS_EVENT_TERMINATE_ACTION, .group = "g", .hook = "h" }, EVENT_MESSAGE_ASG_TERMINATE, "", 0,
                  NOTICE_SCALE_IN },
                { { .kind = FAKE_AWS_EVENT_LAUNCH_ACTION, .group = "g", .hook = "h" }, EVENT_MESSAGE_ASG_LAUNCH, "", 0,
                  _NOTICE_KIND_INVALID },
                { { .kind = FAKE_AWS_EVENT_HOOK, .group = "g", .hook = "h" }, EVENT_MESSAGE_ASG_TERMINATE, "", 0, NOTICE_SCALE_IN },
                { { .kind = FAKE_AWS_EVENT_HOOK_TEST, .group = "g" }, EVENT_MESSAGE_TEST, "", 0, _NOTICE_KIND_INVALID },
                { { .kind = FAKE_AWS_EVENT_BLOCK, .until_wall_usec = AT }, EVENT_MESSAGE_CAPACITY_BLOCK, "", AT, _NOTICE_KIND_INVALID },
        };

        for (size_t i = 0; i < 2 * ELEMENTSOF(rows); i++) {
                FakeAwsEvent e = rows[i / 2].event;
                _cleanup_free_ char *text = NULL;
                _cleanup_(event_message_done) EventMessage m = { 0 };
                _cleanup_(notice_freep) Notice *n = NULL;
                int r;

                e.wall_usec = AT;
                e.instance = ID;
                text = i % 2 ? fake_aws_event_by_sns(&e) : fake_aws_event(&e);
                r = event_message_parse(text, strlen(text), &m);
                if (r < 0 || m.kind != rows[i / 2].kind || !streq(m.action, rows[i / 2].action) ||
                    m.not_before_usec != rows[i / 2].not_before_usec)
                        fail_msg("%s: %d, %d, '%s', %llu", text, r, (int) m.kind, strempty(m.action),
                                 (unsigned long long) m.not_before_usec);
                if (m.kind != EVENT_MESSAGE_CAPACITY_BLOCK && m.kind != EVENT_MESSAGE_TEST && m.kind != EVENT_MESSAGE_UNKNOWN)
                        assert_true(strv_length(m.instances) == 1 && streq(m.instances[0], ID));
                r = event_message_notice(&m, ID, &n);
                assert_int_equal(r < 0 ? _NOTICE_KIND_INVALID : n->kind, rows[i / 2].notice);
        }
}

/* Every message about one scheduled change gives the same notice, whichever copy it is, also the one that calls it off; another change
 * gives another. */
TEST_CASE(test_health_id) {
        static const struct {
                const char *what;
                FakeAwsEvent event;
                bool same;
        } rows[] = {
                { "a copy through another region", { .id = "copy", .envelope_region = "us-west-2" }, true },
                { "it is moved", { .id = "moved", .until_wall_usec = AT + USEC_PER_DAY }, true },
                { "it is called off", { .id = "closed", .status = "closed" }, true },
                { "another event", { .communication = "another" }, false },
        };
        FakeAwsEvent first = { .kind = FAKE_AWS_EVENT_HEALTH, .instance = ID, .wall_usec = AT, .until_wall_usec = AT + USEC_PER_HOUR };
        _cleanup_(notice_freep) Notice *known = NULL;

        for (size_t i = 0; i <= ELEMENTSOF(rows); i++) {
                FakeAwsEvent e = i == 0 ? first : rows[i - 1].event;
                _cleanup_free_ char *text = NULL;
                _cleanup_(event_message_done) EventMessage m = { 0 };
                _cleanup_(notice_freep) Notice *n = NULL;

                e.kind = first.kind;
                e.instance = first.instance;
                e.wall_usec = first.wall_usec;
                text = fake_aws_event(&e);
                assert_return_code(event_message_parse(text, strlen(text), &m), 0);
                assert_return_code(event_message_notice(&m, ID, &n), 0);
                if (i == 0) {
                        assert_int_equal(n->until_usec, first.until_wall_usec + 2 * USEC_PER_HOUR);
                        known = TAKE_PTR(n);
                } else if (streq(n->id, known->id) != rows[i - 1].same)
                        fail_msg("%s: %s, and it was %s", rows[i - 1].what, n->id, known->id);
        }
}

/* The detail of a scheduled change says where its instances are: the envelope may be of a copy. */
TEST_CASE(test_health_origin) {
#define ARN "\"eventArn\":\"arn:aws:health:"
        static const struct {
                const char *members, *account, *region;
        } rows[] = {
                { "", "1", "us-west-2" },
                { "\"affectedAccount\":\"2\",\"eventRegion\":\"us-east-1\",", "2", "us-east-1" },
                { "\"affectedAccount\":\"\",\"eventRegion\":\"\",", "1", "us-west-2" },
                { ARN "eu-west-1::event/EC2/X/X_1\",", "1", "eu-west-1" },
                { ARN "eu-west-1::event/EC2/X/X_1\",\"eventRegion\":\"us-east-1\",", "1", "us-east-1" },
                { ARN "global::event/EC2/X/X_1\",", "1", "" },
                { "\"eventRegion\":\"global\",", "1", "" },
                { "\"eventArn\":\"arn:aws-cn:health:cn-north-1::event/EC2/X/X_1\",", "1", "cn-north-1" },
                { "\"eventArn\":\"arn:\",", "1", "us-west-2" },
                { ARN ":event/EC2/X/X_1\",", "1", "us-west-2" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(event_message_done) EventMessage m = { 0 };
                _cleanup_free_ char *text = NULL;

                print_message("%s\n", rows[i].members);
                text = strf("{\"source\":\"aws.health\",\"detail-type\":\"AWS Health Event\",\"account\":\"1\","
                            "\"region\":\"us-west-2\",\"detail\":{%s\"service\":\"EC2\","
                            "\"eventTypeCategory\":\"scheduledChange\"}}",
                            rows[i].members);
                assert_return_code(event_message_parse(text, strlen(text), &m), 0);
                assert_string_equal(m.account, rows[i].account);
                assert_string_equal(m.region, rows[i].region);
        }
}

#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"

TEST_CASE(test_unreadable) {
        static const char *const texts[] = {
                "",
                "no JSON",
                "[]",
                "{}",
                "{\"detail\":{}}",
                "{\"source\":\"aws.ec2\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"detail\":{}}",
                "{\"source\":\"aws.ec2\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"detail\":{\"instance-id\":\"x\","
                "\"instance-action\":\"terminate\"}}",
                "{\"source\":\"aws.ec2\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"detail\":{\"instance-id\":\"" ID "\"}}",
                /* an action that no annotation could hold */
                "{\"source\":\"aws.ec2\",\"detail-type\":\"EC2 Spot Instance Interruption Warning\",\"detail\":{\"instance-id\":\"" ID "\","
                "\"instance-action\":\"" SIXTY_FOUR "x\"}}",
                "{\"Type\":\"Notification\",\"Message\":\"no JSON\"}",
                "{\"LifecycleTransition\":\"autoscaling:EC2_INSTANCE_TERMINATING\",\"EC2InstanceId\":\"" ID "\"}",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_(event_message_done) EventMessage m = { 0 };

                if (event_message_parse(texts[i], strlen(texts[i]), &m) != -EBADMSG || m.id || m.instances)
                        fail_msg("'%s' was read", texts[i]);
        }
}

/* A message that cannot be read names its sender, as far as that can be read. */
TEST_CASE(test_sender_of_unreadable) {
        static const struct {
                const char *text, *source, *account;
        } rows[] = {
                { "{\"source\":\"aws.ec2\",\"account\":\"21\",\"detail-type\":\"EC2 Instance Rebalance Recommendation\","
                  "\"detail\":{}}",
                  "aws.ec2", "21" },
                { "{\"source\":\"aws.ec2\",\"account\":7,\"detail\":{}}", "aws.ec2", "" },
                { "{\"AccountId\":\"21\",\"LifecycleTransition\":\"autoscaling:EC2_INSTANCE_TERMINATING\"}", "", "21" },
                { "no JSON", "", "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(event_message_done) EventMessage m = { 0 };

                print_message("%s\n", rows[i].text);
                assert_int_equal(event_message_parse(rows[i].text, strlen(rows[i].text), &m), -EBADMSG);
                assert_string_equal(strempty(m.source), rows[i].source);
                assert_string_equal(strempty(m.account), rows[i].account);
        }
}

/* -- in the annotation ---------------------------------------------------------------------------------- */

#define HUNDRED_SIXTY SIXTY_FOUR SIXTY_FOUR "01234567890123456789012345678901"

static void assert_same_notice(const Notice *a, const Notice *b) {
        assert_string_equal(a->id, b->id);
        assert_string_equal(a->source, b->source);
        assert_string_equal(a->action, b->action);
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->certainty, b->certainty);
        assert_int_equal(a->announced_usec, b->announced_usec);
        assert_int_equal(a->not_before_usec, b->not_before_usec);
        assert_int_equal(a->said_usec, b->said_usec);
        assert_int_equal(a->until_usec, b->until_usec);
}

/* Whatever a message says can be read, its notice stands in the annotation, and is the same when it is read
 * back. */
TEST_CASE(test_read_back) {
#define NINE "2026-11-25T09:00:00Z"
#define LAST "9999-12-31T23:59:59-23:00"
        static const struct {
                const char *what, *id, *action, *time, *end;
        } rows[] = {
                { "an ordinary one", "e", "stop", NINE, NINE },
                { "no id", "", "stop", NINE, NINE },
                { "the longest id", HUNDRED_SIXTY, "stop", NINE, NINE },
                { "an id that is too long", HUNDRED_SIXTY "x", "stop", NINE, NINE },
                { "the longest action", "e", SIXTY_FOUR, NINE, NINE },
                { "texts that are escaped", "\\u0001\\n\\\"\xc3\xa4", "\\u0001\\\"", NINE, NINE },
                { "parts of a second", "e", "stop", "2026-11-25T09:00:00.9Z", "2026-11-25T09:02:00.5Z" },
                { "the last of all times", "e", "stop", LAST, LAST },
                { "no times", "e", "stop", "soon", "later" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(announced_list_done) AnnouncedList l = {}, back = {};
                _cleanup_(event_message_done) EventMessage m = { 0 };
                _cleanup_free_ char *text = NULL, *written = NULL;
                _cleanup_(notice_freep) Notice *n = NULL;

                print_message("%s\n", rows[i].what);
                text = strf("{\"id\":\"%s\",\"source\":\"aws.ec2\",\"time\":\"%s\","
                            "\"detail-type\":\"EC2 Spot Instance Interruption Warning\","
                            "\"detail\":{\"instance-id\":\"" ID "\",\"instance-action\":\"%s\","
                            "\"instance-termination-time\":\"%s\"}}",
                            rows[i].id, rows[i].time, rows[i].action, rows[i].end);
                assert_return_code(event_message_parse(text, strlen(text), &m), 0);
                assert_return_code(event_message_notice(&m, ID, &n), 0);
                assert_return_code(announced_list_put(&l, n, ANNOUNCED_STANDS, NULL), 0);
                written = announced_list_format(&l);
                assert_return_code(announced_list_parse(written, &back), 0);
                assert_int_equal(back.n_items, 1);
                assert_same_notice(n, back.items[0].notice);
        }
}

/* Events whose ids differ only behind the part that is kept stay apart; each copy of one event gives one
 * notice. */
TEST_CASE(test_long_ids) {
        const char *const ids[] = { HUNDRED_SIXTY "x", HUNDRED_SIXTY "y", HUNDRED_SIXTY "x" };
        char *seen[ELEMENTSOF(ids)];

        for (size_t i = 0; i < ELEMENTSOF(ids); i++) {
                FakeAwsEvent e = { .kind = FAKE_AWS_EVENT_HEALTH, .instance = ID, .communication = ids[i] };
                _cleanup_free_ char *text = fake_aws_event(&e);
                _cleanup_(event_message_done) EventMessage m = { 0 };

                assert_return_code(event_message_parse(text, strlen(text), &m), 0);
                seen[i] = TAKE_PTR(m.id);
        }
        assert_string_not_equal(seen[0], seen[1]);
        assert_string_equal(seen[0], seen[2]);
        for (size_t i = 0; i < ELEMENTSOF(ids); i++)
                free(seen[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kinds),
                cmocka_unit_test(test_health_id),
                cmocka_unit_test(test_health_origin),
                cmocka_unit_test(test_unreadable),
                cmocka_unit_test(test_sender_of_unreadable),
                cmocka_unit_test(test_read_back),
                cmocka_unit_test(test_long_ids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
