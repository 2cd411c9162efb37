/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "alloc-coordinator.h"
#include "cmocka-test.h"
#include "fake-json.h"
#include "marks.h"
#include "queue-rig.h"

/*
 * The interruption queue tells of the end of one of two nodes, again and again, each time without another allocation of the
 * leader's. It may exit and be started again, and the message come again; but it is not deleted before the node's removal
 * has begun, and the other node stays. And of the end of a node of no pool, which is drained for that.
 */

#define LATE_USEC (3 * USEC_PER_MINUTE)
#define FREE "free"

void __wrap_fake_sqs_handle(HttpExchange *x, void *userdata);
void __real_fake_sqs_handle(HttpExchange *x, void *userdata);

void __wrap_fake_sqs_handle(HttpExchange *x, void *userdata) {
        alloc_fault_pause();
        __real_fake_sqs_handle(x, userdata);
        alloc_fault_resume();
}

static void send_spot(QueueRig *q, const char *node) {
        _cleanup_free_ char *instance = rig_instance(node);

        queue_rig_send(q, (FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = instance, .action = "terminate" });
}

/* NULL, or what was not as it should be. */
static const char *play_managed(QueueRig *q) {
        CoordinatorRig *r = q->rig;

        send_spot(q, "n0");
        for (usec_t t = 0; t < LATE_USEC && (rig_claim(r, "n0") || fake_sqs_n_messages(q->sqs, "q") > 0); t += USEC_PER_SEC)
                alloc_run_coordinator(r, USEC_PER_SEC);
        if (fake_sqs_n_messages(q->sqs, "q") > 0)
                return "the message is left";
        if (rig_claim(r, "n0"))
                return "the message is deleted, and the node stays";
        if (!rig_is_adopted(r, "n1"))
                return "the other node is not as it was";
        return NULL;
}

static void add_free_node(CoordinatorRig *r) {
        _cleanup_free_ char *instance = rig_instance(FREE);

        fake_ec2_run(r->ec2, instance, ZONE);
        fake_add_node(r->cluster, FREE, ZONE, instance, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = FREE, .grace_sec = 5, .stop_sec = 1 });
}

static bool is_drained(CoordinatorRig *r) {
        const char *heard = fj_string(rig_node(r, FREE), "metadata", "annotations", ANNOTATION_HEARD, NULL);

        return heard && strstr(heard, "\"phase\":\"Drained\"");
}

/* The same of a node of no pool, which is drained, and stays. */
static const char *play_free(QueueRig *q) {
        CoordinatorRig *r = q->rig;

        send_spot(q, FREE);
        for (usec_t t = 0; t < LATE_USEC && (!is_drained(r) || fake_sqs_n_messages(q->sqs, "q") > 0); t += USEC_PER_SEC)
                alloc_run_coordinator(r, USEC_PER_SEC);
        if (fake_sqs_n_messages(q->sqs, "q") > 0)
                return "the message is left";
        if (!is_drained(r) || fake_get(r->cluster, FAKE_PODS, "default", "web"))
                return "the message is deleted, and the node is not drained";
        if (!rig_node(r, FREE) || rig_claim(r, FREE) || rig_has_finalizer(rig_node(r, FREE)))
                return "the node is removed, and nobody wanted that";
        if (!rig_is_adopted(r, "n0"))
                return "the other node is not as it was";
        return NULL;
}

static const char *work(size_t fails_at, size_t *ret_n, char **ret_log, void *userdata) {
        const bool *is_free = userdata;
        const char *wrong;
        CoordinatorRig *r;
        QueueRig q;

        queue_rig_init(&q);
        r = q.rig;
        r->use_ec2 = true;
        r->settings[0] = *is_free ? (char *) "Queue.Unmanaged=drain" : NULL;
        rig_begin(r, 2, NULL);
        if (*is_free) {
                add_free_node(r);
                rig_run(r, USEC_PER_SEC);
        }
        alloc_fault_arm(fails_at);
        alloc_fault_pause();
        wrong = *is_free ? play_free(&q) : play_managed(&q);
        alloc_fault_resume();
        *ret_n = alloc_fault_disarm();
        *ret_log = strdup(strbuf_str(&r->coordinators[0]->said));
        queue_rig_done(&q);
        return wrong;
}

TEST_CASE(test_work) {
        alloc_sweep(work, &(bool){ false }, "the node goes, and its message with it");
}

TEST_CASE(test_node_of_no_pool) {
        alloc_sweep(work, &(bool){ true }, "the node is drained, and its message goes with that");
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work),
                cmocka_unit_test(test_node_of_no_pool),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
