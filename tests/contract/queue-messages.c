/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of the interruption queue, for queue_template.py:
 *
 *      queue-messages samples   prints one message for each event that EventBridge sends, one per line
 *      queue-messages read      reads such lines, and prints the kind of each message
 */
#include <stdio.h>

#include "event-message.h"
#include "fake-aws-event.h"

#define INSTANCE "i-0123456789abcdef0"
/* Wall clock of the samples. The parser does not compare it with the present time. */
#define AT (UINT64_C(1790000000) * USEC_PER_SEC)

static void print_samples(void) {
        for (FakeAwsEventKind kind = 0; kind < _FAKE_AWS_EVENT_MAX; kind++) {
                const FakeAwsEvent e = { .kind = kind,
                                         .wall_usec = AT,
                                         .until_wall_usec = AT + USEC_PER_DAY,
                                         .instance = INSTANCE,
                                         .group = "workers",
                                         .hook = "drain" };
                _cleanup_free_ char *text = NULL;

                if (kind == FAKE_AWS_EVENT_HOOK || kind == FAKE_AWS_EVENT_HOOK_TEST)
                        continue; /* a lifecycle hook sends these itself, without EventBridge */
                text = fake_aws_event(&e);
                printf("%s\n", text);
        }
}

static int print_kinds(void) {
        _cleanup_free_ char *line = NULL;
        size_t allocated = 0;

        for (ssize_t n; (n = getline(&line, &allocated, stdin)) > 0;) {
                _cleanup_(event_message_done) EventMessage m = { 0 };
                int r = event_message_parse(line, (size_t) n, &m);

                if (r < 0)
                        return fprintf(stderr, "%s: %s", strerrordesc_np(-r), line), EXIT_FAILURE;
                printf("%s\n", event_message_kind_names[m.kind]);
        }
        return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
        if (argc == 2 && streq(argv[1], "samples"))
                return print_samples(), EXIT_SUCCESS;
        if (argc == 2 && streq(argv[1], "read"))
                return print_kinds();
        fprintf(stderr, "Usage: queue-messages samples|read\n");
        return 2;
}
