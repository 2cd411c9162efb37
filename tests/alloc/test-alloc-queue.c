/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "alloc-coordinator.h"
#include "fake-aws-event.h"
#include "fake-sqs.h"

/*
 * The interruption queue tells of the end of one of two nodes, again and again, each time without another allocation of the
 * leader's. It may exit and be started again, and the message come again; but it is not deleted before the node's removal
 * has begun, and the other node stays.
 */

#define LATE_USEC (3 * USEC_PER_MINUTE)

void __wrap_fake_sqs_handle(HttpExchange *x, void *userdata);
void __real_fake_sqs_handle(HttpExchange *x, void *userdata);

void __wrap_fake_sqs_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_sqs_handle(x, userdata);
        alloc_fault_resume();
}

static void send_spot(CoordinatorRig *r, FakeSqs *sqs, const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);
        _cleanup_free_ char *body = fake_aws_event(&(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = instance, .action = "terminate",
                                                                    .wall_usec = loop_wall(r->w.loop) });

        fake_sqs_send(sqs, "q", body);
}

/* NULL, or what was not as it should be. */
static const char *play(CoordinatorRig *r, FakeSqs *sqs) {
        send_spot(r, sqs, "n0");
        for (usec_t t = 0; t < LATE_USEC && (rig_claim(r, "n0") || fake_sqs_n_messages(sqs, "q") > 0); t += USEC_PER_SEC)
                alloc_run_coordinator(r, USEC_PER_SEC);
        if (fake_sqs_n_messages(sqs, "q") > 0)
                return "the message is left";
        if (rig_claim(r, "n0"))
                return "the message is deleted, and the node stays";
        if (!rig_is_adopted(r, "n1"))
                return "the other node is not as it was";
        return NULL;
}

static const char *work(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        CoordinatorRig *r = coordinator_rig_new();
        FakeSqs *sqs = fake_sqs_new(
                &(FakeSqsOptions){ .aws = { .loop = r->w.loop, .region = "us-east-1", .max_skew_usec = USEC_PER_HOUR } });
        const char *wrong;

        fake_sqs_add_queue(sqs, &(FakeSqsQueue){ .name = "q" });
        r->use_ec2 = true;
        r->queue_handler = fake_sqs_handle;
        r->queue = sqs;
        rig_begin(r, 2, NULL);
        alloc_fault_arm(fails_at);
        alloc_fault_pause();
        wrong = play(r, sqs);
        alloc_fault_resume();
        *ret_n = alloc_fault_disarm();
        *ret_log = strdup(strbuf_str(&r->coordinators[0]->said));
        for (size_t i = 0; i < ELEMENTSOF(r->coordinators); i++)
                rig_kill(r, i); /* who polls goes before the queue */
        fake_sqs_free(sqs);
        coordinator_rig_free(r);
        return wrong;
}

static void test_work(void **state) {
        alloc_sweep(work, NULL, "the node goes, and its message with it");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
