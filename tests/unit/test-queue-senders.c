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

/* One sender floods the queue, from behind many others, and is seen. */
TEST_CASE(test_most) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        QueueSenders s;
        char source[32];

        assert_return_code(coordinator_metrics_new(&m), 0);
        assert_return_code(queue_senders_init(&s, m), 0);
        for (unsigned i = 0; i < 100; i++) {
                (void) snprintf(source, sizeof(source), "s%u", i);
                queue_senders_count(&s, source, "1", 10);
                if (i >= 50)
                        queue_senders_count(&s, "flood", "2", 1000);
        }
        assert_shows(m, MESSAGES("flood/2", "50"), true);
        assert_shows(m, BYTES("flood/2", "50000"), true);
        assert_shows(m, MESSAGES("s99/1", "1"), true);
        assert_shows(m, MESSAGES("s50/1", "1"), false);
        /* seven others have a place */
        assert_shows(m, MESSAGES("other", "93"), true);
        assert_shows(m, BYTES("other", "930"), true);

        print_message("the next leadership of this process begins anew, and no counter goes back\n");
        queue_senders_done(&s);
        assert_return_code(queue_senders_init(&s, m), 0);
        assert_shows(m, "sender=\"flood/2\"", false);
        assert_shows(m, MESSAGES("other", "150"), true);
        queue_senders_done(&s);
}

/* A sender chooses its own words. */
TEST_CASE(test_words) {
        _cleanup_(metrics_freep) Metrics *m = NULL;
        char name[300];
        QueueSenders s;

        memset(name, 'x', sizeof(name));
        name[sizeof(name) - 1] = 0;
        assert_return_code(coordinator_metrics_new(&m), 0);
        assert_return_code(queue_senders_init(&s, m), 0);
        queue_senders_count(&s, NULL, "", 1);
        queue_senders_count(&s, "a\"} 1\n\x1b[2J", "1", 1);
        queue_senders_count(&s, name, name, 1);
        assert_shows(m, MESSAGES("(none)/(none)", "1"), true);
        assert_shows(m, "\x1b", false);
        assert_shows(m, "{sender=\"a\\\"} 1", true);
        name[100] = 0;
        assert_shows(m, name, false);
        queue_senders_done(&s);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_most),
                cmocka_unit_test(test_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
