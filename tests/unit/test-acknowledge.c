/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "agent-rig.h"
#include "cmocka-test.h"
#include "fake-azure-metadata.h"
#include "string-util.h"

/* Scheduled events of Azure that are acknowledged by whole agents, when their node is drained. */

#define S USEC_PER_SEC
#define ACK_OK "vesper.sh/ack-ok"
#define REQUEST "vesper.sh/shutdown-request"
#define TAKEN "vesper.sh/reboot-taken"
#define VM "pool_7"

typedef struct Bench {
        AgentRig *r;
        FakeAzureEvents *events;
        FakeAzureMetadata *metadata;
        char *event;
} Bench;

static void run(Bench *b, usec_t usec) {
        usec_t until = virtual_time_now(b->r->world.time) + usec;

        while (agent_rig_run(b->r, until - virtual_time_now(b->r->world.time)))
                ;
}

static void bench_init(Bench *b, int acknowledge) {
        *b = (Bench){ .r = agent_rig_new() };
        b->events = fake_azure_events_new(b->r->world.loop);
        b->metadata = fake_azure_metadata_new(b->r->world.loop, b->events,
                                              &(FakeAzureMetadataOptions){ .name = VM, .scale_set = "pool", .instance = "7" });
        b->r->metadata = fake_azure_metadata_handle;
        b->r->metadata_userdata = b->metadata;
        b->r->config.metadata_source = METADATA_SOURCE_AZURE;
        b->r->config.acknowledge = acknowledge;
        assert_return_code(free_and_strdup(&b->r->config.policy[NOTICE_MAINTENANCE], "before:1h"), 0);
        agent_rig_add_pods(b->r, "web", 3);
        agent_rig_start(b->r);
        run(b, 10 * S);
        assert_true(b->r->ready);
}

static void bench_done(Bench *b) {
        agent_rig_kill(b->r); /* what hangs must be gone before */
        fake_azure_metadata_free(b->metadata);
        fake_azure_events_free(b->events);
        agent_rig_free(b->r);
        free(b->event);
}

static void announce(Bench *b, const char *type, const char *resources, usec_t lead_usec) {
        b->event = strdup(fake_azure_events_add(b->events, &(FakeAzureEvent){ .type = type, .resources = resources, .lead_usec = lead_usec }));
        assert_non_null(b->event);
        run(b, 120 * S);
}

static bool is_drained(Bench *b) {
        return streq(agent_phase(b->r->agent), "Drained");
}

static void set_ack_ok(Bench *b, const char *event) {
        fake_merge(b->r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'annotations':{'" ACK_OK "':%s%s%s}}}", event ? "'" : "",
                   event ? event : "null", event ? "'" : "");
        run(b, 120 * S);
}

/* Of this machine alone: once, when its node is empty. */
TEST_CASE(test_alone) {
        static const struct {
                const char *type;
                int acknowledge;
                size_t n;
        } rows[] = {
                { "Terminate", ACKNOWLEDGE_ALONE, 1 }, { "Redeploy", ACKNOWLEDGE_ALONE, 1 },  { "Reboot", ACKNOWLEDGE_ALL, 1 },
                { "Terminate", ACKNOWLEDGE_NO, 0 },    { "Freeze", ACKNOWLEDGE_ALONE, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Bench b;

                bench_init(&b, rows[i].acknowledge);
                announce(&b, rows[i].type, "POOL_7", 10 * USEC_PER_MINUTE);
                assert_int_equal(is_drained(&b), !streq(rows[i].type, "Freeze"));
                run(&b, 120 * S);
                assert_int_equal(fake_azure_events_n_approved(b.events), rows[i].n);
                bench_done(&b);
        }
}

/* Not before a budget lets the last pod go. */
TEST_CASE(test_not_before_drained) {
        Bench b;

        bench_init(&b, ACKNOWLEDGE_ALONE);
        fake_merge(b.r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'finalizers':['x.y/z']}}");
        announce(&b, "Redeploy", VM, 30 * USEC_PER_MINUTE);
        run(&b, 120 * S);
        assert_false(is_drained(&b));
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        fake_merge(b.r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'finalizers':null}}");
        run(&b, 120 * S);
        assert_true(is_drained(&b));
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);
}

/* The watch shows the agent's last report on the drained node before the report itself is answered. */
TEST_CASE(test_late_answer) {
        Bench b;

        bench_init(&b, ACKNOWLEDGE_ALONE);
        b.r->patch_reply_delay_usec = 500 * USEC_PER_MSEC;
        announce(&b, "Redeploy", VM, 30 * USEC_PER_MINUTE);
        for (unsigned i = 0; i < 600 && agent_rig_n_pods(b.r) > 0; i++)
                run(&b, S / 10);
        /* no heartbeat changes the Node after that */
        fake_cluster_set_kubelet(b.r->cluster, RIG_NODE, false);
        run(&b, 8 * S);
        assert_true(is_drained(&b));
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);
}

/* With others: never by itself, and on the coordinator's word for this event alone. */
TEST_CASE(test_with_others) {
        Bench b;

        bench_init(&b, ACKNOWLEDGE_ALL);
        announce(&b, "Redeploy", "pool_3," VM, 30 * USEC_PER_MINUTE);
        assert_true(is_drained(&b));
        assert_non_null(strstr(agent_rig_annotation(b.r, "vesper.sh/interruption"), "\"resources\":[\"pool_3\",\"" VM "\"]"));
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        set_ack_ok(&b, "602D9444-D2CD-49C7-8624-999999999999");
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        set_ack_ok(&b, b.event);
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);

        bench_init(&b, ACKNOWLEDGE_ALONE);
        announce(&b, "Redeploy", "pool_3," VM, 30 * USEC_PER_MINUTE);
        set_ack_ok(&b, b.event);
        assert_true(is_drained(&b));
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        bench_done(&b);
}

/* It is told again until it is taken. */
TEST_CASE(test_again) {
        Bench b;

        bench_init(&b, ACKNOWLEDGE_ALONE);
        announce(&b, "Terminate", VM, 15 * USEC_PER_MINUTE);
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);

        bench_init(&b, ACKNOWLEDGE_ALONE);
        fake_merge(b.r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'finalizers':['x.y/z']}}");
        announce(&b, "Terminate", VM, 15 * USEC_PER_MINUTE);
        fake_azure_metadata_fail(b.metadata, FAKE_AZURE_EVENTS, 3, 500);
        fake_merge(b.r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'finalizers':null}}");
        run(&b, 180 * S);
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);
}

/* Announced for later, asked for, and granted; the test is the coordinator. */
static void be_granted(Bench *b) {
        cJSON *request;
        char until[RFC3339_MAX];

        assert_return_code(free_and_strdup(&b->r->config.policy_reboot, "early"), 0);
        agent_reconfigured(b->r->agent);
        announce(b, "Reboot", VM, 5 * USEC_PER_HOUR);
        assert_false(agent_rig_unschedulable(b->r));
        assert_int_equal(fake_azure_events_n_approved(b->events), 0);
        request = cJSON_Parse(agent_rig_annotation(b->r, REQUEST));
        assert_non_null(request);
        assert_string_equal(fj_string(request, "event", NULL), b->event);
        assert_null(fj_string(request, "by", NULL));
        rfc3339_format(loop_wall(b->r->world.loop) + 2400 * S, until);
        fake_merge(b->r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/shutdown-granted':'{\\\"id\\\":\\\"%s\\\",\\\"until\\\":\\\"%s\\\"}'}}}",
                   fj_string(request, "id", NULL), until);
        cJSON_Delete(request);
}

/* A reboot of this machine alone is taken early by its acknowledgement, in a slot. */
TEST_CASE(test_early) {
        Bench b;

        bench_init(&b, ACKNOWLEDGE_ALONE);
        be_granted(&b);
        run(&b, 180 * S);
        assert_true(is_drained(&b));
        assert_string_equal(agent_rig_annotation(b.r, TAKEN), b.event);
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);
}

/* The agent promises an early reboot only if it may acknowledge the event, and then it asks for a slot. */
TEST_CASE(test_early_promise) {
        static const struct {
                const char *resources;
                int acknowledge;
                bool promised;
        } rows[] = {
                { VM, ACKNOWLEDGE_ALONE, true },
                { VM, ACKNOWLEDGE_NO, false },
                { "pool_3," VM, ACKNOWLEDGE_ALL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Bench b;

                bench_init(&b, rows[i].acknowledge);
                assert_return_code(free_and_strdup(&b.r->config.policy_reboot, "early"), 0);
                agent_reconfigured(b.r->agent);
                announce(&b, "Reboot", rows[i].resources, 5 * USEC_PER_HOUR);
                assert_true(agent_rig_said(b.r, "stays in service until "));
                assert_int_equal(agent_rig_said(b.r, ", or until a coordinator lets its machine reboot early"),
                                 rows[i].promised);
                assert_int_equal(agent_rig_annotation(b.r, REQUEST) != NULL, rows[i].promised);
                bench_done(&b);
        }
}

static void start_anew(Bench *b) {
        agent_rig_kill(b->r);
        run(b, 3 * S);
        agent_rig_start(b->r);
}

/* Acknowledged, and the agent starts anew: Azure may reboot the machine at any moment, also where the event is gone by then. No pod
 * comes in between, and after ten minutes without a reboot pods come again. While the event stands the new agent says once more
 * that it may begin, which is nothing new to Azure. */
TEST_CASE(test_early_restart_acknowledged) {
        for (int gone = 0; gone < 2; gone++) {
                Bench b;

                bench_init(&b, ACKNOWLEDGE_ALONE);
                be_granted(&b);
                run(&b, 180 * S);
                assert_int_equal(fake_azure_events_n_approved(b.events), 1);
                if (gone)
                        assert_true(fake_azure_events_remove(b.events, b.event));
                start_anew(&b);
                for (unsigned i = 0; i < 9; i++) {
                        run(&b, USEC_PER_MINUTE);
                        assert_true(is_drained(&b));
                        assert_true(agent_rig_unschedulable(b.r));
                        assert_int_equal(agent_rig_n_pods(b.r), 0);
                        assert_non_null(agent_rig_annotation(b.r, REQUEST));
                }
                assert_int_equal(fake_azure_events_n_approved(b.events), gone ? 1 : 2);
                run(&b, 2 * USEC_PER_MINUTE);
                assert_null(agent_rig_annotation(b.r, REQUEST));
                assert_int_equal(agent_rig_unschedulable(b.r), !gone); /* one that has begun, and stands, is drained for by its rule */
                bench_done(&b);
        }
}

/* Not drained yet, or drained and the acknowledgement not taken yet, when the agent starts anew. The first is undone, once for all;
 * the second may have been taken, and its answer lost: it stays drained, and is told again. */
TEST_CASE(test_early_restart_before) {
        Bench b;

        bench_init(&b, ACKNOWLEDGE_ALONE);
        fake_merge(b.r->cluster, FAKE_PODS, "default", "web-0", "{'metadata':{'finalizers':['x.y/z']}}");
        be_granted(&b);
        run(&b, 180 * S);
        assert_string_equal(agent_rig_annotation(b.r, TAKEN), b.event);
        assert_false(is_drained(&b));
        start_anew(&b);
        run(&b, 120 * S);
        assert_string_equal(agent_phase(b.r->agent), "Idle");
        assert_false(agent_rig_unschedulable(b.r));
        run(&b, 2 * USEC_PER_HOUR);
        assert_null(agent_rig_annotation(b.r, REQUEST));
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        bench_done(&b);

        bench_init(&b, ACKNOWLEDGE_ALONE);
        be_granted(&b);
        fake_azure_metadata_fail(b.metadata, FAKE_AZURE_EVENTS, UINT_MAX, 500);
        run(&b, 180 * S);
        assert_true(is_drained(&b));
        assert_int_equal(fake_azure_events_n_approved(b.events), 0);
        start_anew(&b);
        run(&b, 60 * S);
        assert_true(is_drained(&b));
        assert_int_equal(agent_rig_n_pods(b.r), 0);
        fake_azure_metadata_fail(b.metadata, FAKE_AZURE_EVENTS, 0, 500);
        run(&b, 180 * S);
        assert_true(is_drained(&b));
        assert_int_equal(fake_azure_events_n_approved(b.events), 1);
        bench_done(&b);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alone), cmocka_unit_test(test_not_before_drained),
                        cmocka_unit_test(test_late_answer), cmocka_unit_test(test_with_others),
                cmocka_unit_test(test_again), cmocka_unit_test(test_early), cmocka_unit_test(test_early_promise),
                cmocka_unit_test(test_early_restart_acknowledged),
                cmocka_unit_test(test_early_restart_before),
        };

        return cmocka_run_group_tests_name("acknowledge", tests, NULL, NULL);
}
