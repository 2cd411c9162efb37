/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "coordinator-metrics.h"
#include "queue-senders.h"

static void assert_shows(const Metrics *m, const char *line, bool expected) {
        _cleanup_strbuf_ StrBuf text = {};

        metrics_format(m, &text);
        if (!strstr(strbuf_str(&text), line) == expected)
                fail_msg("%s: %s", expected ? "missing" : "shown", line);
}

#define MESSAGES(sender, n) "vesper_coordinator_queue_sender_messages_total{sender=\"" sender "\"} " n "\n"
#define BYTES(sender, n) "vesper_coordinator_queue_sender_bytes_total{sender=\"" sender "\"} " n "\n"

#define OWN "111111111111"
#define SECOND "222222222222"
#define STRANGER "999999999999"

static char *others[] = { (char *) SECOND, NULL };
static const QueueOrigin origin = { .account = OWN, .accounts = others };
static const QueueOrigin own_unknown = { .accounts = others }; /* [Queue] Url= says no account */

/* Only the sources of AWS that vesper reads, for accounts that the configuration names, have a series. */
TEST_CASE(test_named) {
        static const struct {
                const char *source, *account;
                const QueueOrigin *origin;
                const char *name;
        } rows[] = {
                { "aws.ec2", OWN, &origin, "aws.ec2/" OWN },
                { "aws.health", SECOND, &origin, "aws.health/" SECOND },
                { "aws.autoscaling", OWN, &origin, "aws.autoscaling/" OWN },
                { "", OWN, &origin, "(none)/" OWN }, /* a lifecycle hook's own message has no source */
                { NULL, OWN, &origin, "(none)/" OWN },
                { "aws.ec2", STRANGER, &origin, "other" },
                { "aws.ec2", "", &origin, "other" },
                { NULL, NULL, &origin, "other" },
                { "aws.ec3", OWN, &origin, "other" },
                { "a\"} 1\n\x1b[2J", OWN, &origin, "other" },
                { "aws.ec2", OWN, &own_unknown, "other" },
                { "aws.ec2", SECOND, &own_unknown, "aws.ec2/" SECOND },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(metrics_freep) Metrics *m = NULL;
                _cleanup_free_ char *line = strf("sender_bytes_total{sender=\"%s\"} 7\n", rows[i].name);
                QueueSenders s;

                print_message("row %zu\n", i);
                assert_non_null(line);
                assert_return_code(coordinator_metrics_new(&m), 0);
                assert_return_code(queue_senders_init(&s, m), 0);
                queue_senders_count(&s, rows[i].source, rows[i].account, rows[i].origin, 7);
                assert_shows(m, line, true);
                queue_senders_done(&s);
        }
}

/* A sender that invents a source and an account for each message adds no series. */
TEST_CASE(test_invented) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        QueueSenders s;
        char word[32];

        assert_return_code(coordinator_metrics_new(&m), 0);
        assert_return_code(queue_senders_init(&s, m), 0);
        for (unsigned i = 0; i < 1000; i++) {
                (void) snprintf(word, sizeof(word), "%012u", i);
                queue_senders_count(&s, "aws.ec2", word, &origin, 10);
                queue_senders_count(&s, word, OWN, &origin, 10);
        }
        assert_shows(m, MESSAGES("other", "2000"), true);
        assert_shows(m, "sender=\"aws", false);
        assert_shows(m, "sender=\"0", false);
        queue_senders_done(&s);
}

/* With more accounts than places, the senders of the most bytes keep theirs. */
TEST_CASE(test_most) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        char names[100][16], *accounts[101] = {};
        QueueOrigin many = { .account = OWN, .accounts = accounts };
        QueueSenders s;

        assert_return_code(coordinator_metrics_new(&m), 0);
        assert_return_code(queue_senders_init(&s, m), 0);
        for (unsigned i = 0; i < 100; i++) {
                (void) snprintf(names[i], sizeof(names[i]), "%012u", i);
                accounts[i] = names[i];
        }
        for (unsigned i = 0; i < 100; i++) {
                queue_senders_count(&s, "aws.ec2", names[i], &many, 10);
                if (i >= 50)
                        queue_senders_count(&s, "aws.health", OWN, &many, 1000);
        }
        assert_shows(m, MESSAGES("aws.health/" OWN, "50"), true);
        assert_shows(m, BYTES("aws.health/" OWN, "50000"), true);
        assert_shows(m, MESSAGES("aws.ec2/000000000099", "1"), true);
        assert_shows(m, MESSAGES("aws.ec2/000000000050", "1"), false);
        /* seven others have a place */
        assert_shows(m, MESSAGES("other", "93"), true);
        assert_shows(m, BYTES("other", "930"), true);

        print_message("the next leadership of this process begins anew, and no counter goes back\n");
        queue_senders_done(&s);
        assert_return_code(queue_senders_init(&s, m), 0);
        assert_shows(m, "sender=\"aws.health/" OWN "\"", false);
        assert_shows(m, MESSAGES("other", "150"), true);
        queue_senders_done(&s);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_most),
                cmocka_unit_test(test_named),
                cmocka_unit_test(test_invented),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
