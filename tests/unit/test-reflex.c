/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "agent-metrics.h"
#include "agent-rig.h"
#include "cmocka-test.h"
#include "reflex.h"
#include "texts.h"

/* What no source of today leads to: notices that leave minutes, a machine that goes down, a way to the
 * network that comes back. */

#define NOTICE_ID "maintenance-1"

/* A reflex of its own beside an agent that has no source, on the same Node. */
typedef struct Bench {
        AgentRig *rig;
        Informer *nodes, *pods;
        Evictor *evictor;
        IntentLog *intents;
        NodeVoice *voice;
        Metrics *metrics;
        Reflex *reflex;
} Bench;

static void on_node(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Bench *b = userdata;

        reflex_see_node(b->reflex, (const KubeNode *) new);
}

static void on_pod(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Bench *b = userdata;

        reflex_see_pod(b->reflex, e, (const KubePod *) (new ? new : old));
}

static bool may_end_pods(void *userdata) {
        Bench *b = userdata;

        return reflex_may_end_pods(b->reflex);
}

static void bench_init(Bench *b) {
        const InformerHandler on_nodes = { .on_event = on_node, .userdata = b },
                              on_pods = { .on_event = on_pod, .userdata = b };
        ReflexContext c;

        *b = (Bench){ .rig = agent_rig_new() };
        b->rig->config.metadata_source = METADATA_SOURCE_NONE;
        agent_rig_add_pods(b->rig, "web", 3);
        agent_rig_start(b->rig);
        assert_return_code(informer_new(b->rig->client, &kube_node_kind,
                                        &(InformerOptions){ .field_selector = "metadata.name=" RIG_NODE },
                                        &on_nodes, &b->nodes),
                           0);
        assert_return_code(informer_new(b->rig->client, &kube_pod_kind,
                                        &(InformerOptions){ .field_selector = "spec.nodeName=" RIG_NODE },
                                        &on_pods, &b->pods),
                           0);
        assert_return_code(
                evictor_new(b->rig->client, &(EvictorOptions){ .permit = { may_end_pods, b } }, &b->evictor),
                0);
        assert_return_code(intent_log_new(&b->rig->env, &b->intents), 0);
        assert_return_code(node_voice_new(b->rig->client, RIG_NODE, &b->voice), 0);
        assert_return_code(agent_metrics_new(&b->metrics), 0);
        c = (ReflexContext){
                .env = &b->rig->env,
                .config = &b->rig->config,
                .client = b->rig->client,
                .evictor = b->evictor,
                .intents = b->intents,
                .voice = b->voice,
                .metrics = b->metrics,
                .pods = b->pods,
        };
        assert_return_code(reflex_new(&c, &b->reflex), 0);
        agent_rig_run(b->rig, USEC_PER_SEC);
}

static void bench_done(Bench *b) {
        reflex_free(b->reflex);
        informer_free(b->nodes);
        informer_free(b->pods);
        node_voice_free(b->voice);
        evictor_free(b->evictor);
        intent_log_free(b->intents);
        metrics_free(b->metrics);
        agent_rig_free(b->rig);
}
#define _cleanup_bench_ _cleanup_(bench_done)

static void begin(Bench *b, usec_t lead_usec, usec_t lb_wait_usec) {
        const PolicySettings settings = { .lb_wait_usec = lb_wait_usec }; /* all rules: now */
        const Notice n = {
                .id = (char *) (uintptr_t) NOTICE_ID,
                .kind = NOTICE_MAINTENANCE,
                .source = (char *) (uintptr_t) "test",
                .action = (char *) (uintptr_t) "reboot",
                .deadline_usec = usec_add(loop_now(b->rig->loop), lead_usec),
        };
        Plan plan = policy_decide(&n, &settings, loop_now(b->rig->loop), 0);

        assert_return_code(reflex_begin(b->reflex, &n, &plan, loop_now(b->rig->loop)), 0);
}

static void nearer(Bench *b, const char *id, usec_t lead_usec) {
        const Notice n = {
                .id = (char *) (uintptr_t) id,
                .kind = NOTICE_SPOT,
                .source = (char *) (uintptr_t) "test",
                .deadline_usec = usec_add(loop_now(b->rig->loop), lead_usec),
        };

        reflex_notice(b->reflex, &n, &(Plan){ .act = PLAN_DRAIN, .why = "a test" });
}

static size_t n_evictions(Bench *b) {
        return fake_api_count_status(fake_cluster_api(b->rig->cluster), FAKE_CREATE, FAKE_PODS, "eviction",
                                     201);
}

TEST_CASE(test_lb_wait) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        begin(&b, 10 * USEC_PER_MINUTE, 30 * USEC_PER_SEC);
        agent_rig_run(b.rig, 29 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_LB_WAIT);
        assert_true(agent_rig_unschedulable(b.rig));
        assert_int_equal(n_evictions(&b), 0);
        assert_int_equal(reflex_pods_left(b.reflex), 3);
        assert_string_equal(agent_rig_condition(b.rig, "MaintenancePlanned"), "True");
        assert_null(agent_rig_condition(b.rig, "MaintenanceInProgress"));
        agent_rig_run(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
        assert_int_equal(n_evictions(&b), 3);
        assert_null(agent_rig_condition(b.rig, "MaintenancePlanned"));
        assert_string_equal(agent_rig_condition(b.rig, "MaintenanceInProgress"), "True");
        agent_rig_run(b.rig, 10 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);
        assert_int_equal(metrics_value(b.metrics, AGENT_METRIC_NOTICE_TO_DRAINED, 0), 1);
        assert_int_equal(metrics_value(b.metrics, AGENT_METRIC_PHASE, REFLEX_DRAINED), 1);
        assert_int_equal(metrics_value(b.metrics, AGENT_METRIC_PHASE, REFLEX_DRAINING), 0);
}

/* While it is true, GETs of the Node come to nothing. */
static void on_get(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (*(bool *) userdata && request->verb == FAKE_GET && request->resource &&
            request->resource->id == FAKE_NODES)
                ret_fault->status = 503;
}

static size_t n_reads(Bench *b) {
        return fake_api_count(fake_cluster_api(b->rig->cluster), FAKE_GET, FAKE_NODES, NULL);
}

static void answer_again(Bench *b, bool *failing) {
        *failing = false;
}

static void go_down(Bench *b, bool *failing) {
        reflex_machine_ends(b->reflex, usec_add(loop_wall(b->rig->loop), 9 * USEC_PER_MINUTE));
}

static void remove_node(Bench *b, bool *failing) {
        fake_remove(b->rig->cluster, FAKE_NODES, NULL, RIG_NODE);
}

/* What is known of the Node is old, as its drain is held up: it is read before a pod is ended. After a fresh
 * cordon nothing is read. */
TEST_CASE(test_node_is_read_first) {
        static const struct {
                const char *what;
                void (*then)(Bench *b, bool *failing);
        } rows[] = {
                { "reads go through again", answer_again },
                { "the machine goes down", go_down },
                { "the Node is gone", remove_node },
        };
        _cleanup_bench_ Bench fresh;

        bench_init(&fresh);
        begin(&fresh, 10 * USEC_PER_MINUTE, 0);
        agent_rig_run(fresh.rig, USEC_PER_SEC);
        assert_int_equal(n_evictions(&fresh), 3);
        assert_int_equal(n_reads(&fresh), 0);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                bool failing = false;
                _cleanup_bench_ Bench b;

                print_message("%s\n", rows[i].what);
                bench_init(&b);
                fake_add_pdb(b.rig->cluster, NULL, "budget", "web", true, "3");
                begin(&b, 10 * USEC_PER_MINUTE, 0);
                agent_rig_run(b.rig, USEC_PER_MINUTE);
                assert_int_equal(n_evictions(&b), 0);
                assert_in_range(n_reads(&b), 1, 4);

                failing = true;
                fake_api_set_fault(fake_cluster_api(b.rig->cluster), on_get, &failing);
                agent_rig_run(b.rig, 20 * USEC_PER_SEC);
                fake_remove(b.rig->cluster, FAKE_PDBS, "default", "budget");
                agent_rig_run(b.rig, 20 * USEC_PER_SEC);
                assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
                assert_int_equal(n_evictions(&b), 0);
                rows[i].then(&b, &failing);
                agent_rig_run(b.rig, 20 * USEC_PER_SEC);
                assert_int_equal(n_evictions(&b), 3);
                fake_api_set_fault(fake_cluster_api(b.rig->cluster), NULL, NULL);
        }
}

/* Another notice, or the coordinator's T, leaves too little for that. */
TEST_CASE(test_lb_wait_cut_short) {
        static const struct {
                const char *what, *id;
                usec_t lead_usec;
                bool drains;
        } rows[] = {
                { "another notice that leaves two minutes", "spot-1", 120 * USEC_PER_SEC, true },
                { "the same notice, now nearer", NOTICE_ID, 120 * USEC_PER_SEC, true },
                { "another one that leaves eight", "spot-1", 8 * USEC_PER_MINUTE, false },
                { "a later one", "spot-1", USEC_PER_HOUR, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_bench_ Bench b;

                print_message("%s\n", rows[i].what);
                bench_init(&b);
                begin(&b, 10 * USEC_PER_MINUTE, 30 * USEC_PER_SEC);
                agent_rig_run(b.rig, USEC_PER_SEC);
                nearer(&b, rows[i].id, rows[i].lead_usec);
                assert_int_equal(reflex_state(b.reflex), rows[i].drains ? REFLEX_DRAINING : REFLEX_LB_WAIT);
                agent_rig_run(b.rig, USEC_PER_SEC);
                assert_int_equal(n_evictions(&b), rows[i].drains ? 3 : 0);
                assert_string_equal(reflex_notice_now(b.reflex)->id, NOTICE_ID);
                assert_int_equal(agent_rig_said(b.rig, "came nearer"), rows[i].lead_usec < 10 * USEC_PER_MINUTE);
        }
}

TEST_CASE(test_cancelled_on_the_way) {
        static const struct {
                const char *what;
                usec_t after_usec, lb_wait_usec;
                ReflexState state;
        } rows[] = {
                { "before the cordon is answered", 0, 0, REFLEX_PLANNED },
                { "while load balancers let go", USEC_PER_SEC, 30 * USEC_PER_SEC, REFLEX_LB_WAIT },
                { "in the drain", USEC_PER_SEC, 0, REFLEX_DRAINING },
                { "drained", 20 * USEC_PER_SEC, 0, REFLEX_DRAINED },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_bench_ Bench b;

                print_message("%s\n", rows[i].what);
                bench_init(&b);
                begin(&b, 10 * USEC_PER_MINUTE, rows[i].lb_wait_usec);
                if (rows[i].after_usec > 0)
                        agent_rig_run(b.rig, rows[i].after_usec);
                assert_int_equal(reflex_state(b.reflex), rows[i].state);
                reflex_cancel(b.reflex, "it was withdrawn");
                assert_int_equal(reflex_state(b.reflex), REFLEX_CANCELLED);
                agent_rig_run(b.rig, 2 * USEC_PER_SEC);
                assert_int_equal(reflex_state(b.reflex), REFLEX_IDLE);
                assert_null(intent_log_find(b.intents, NOTICE_ID));
                if (rows[i].state == REFLEX_PLANNED)
                        continue; /* its patch may have landed after all: the source's next "none" takes that
                                     off */
                assert_false(agent_rig_unschedulable(b.rig));
                assert_null(agent_rig_annotation(b.rig, "vesper.sh/interruption"));
                assert_null(agent_rig_condition(b.rig, "DrainInProgress"));
                assert_null(agent_rig_condition(b.rig, "Drained"));
        }
}

/* A machine that goes down waits for no load balancer; when it stays, the notice has its own deadline again. */
TEST_CASE(test_machine_ends_and_stays) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        begin(&b, 10 * USEC_PER_MINUTE, 30 * USEC_PER_SEC);
        agent_rig_run(b.rig, USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_LB_WAIT);
        reflex_machine_ends(b.reflex, usec_add(loop_wall(b.rig->loop), 9 * USEC_PER_MINUTE));
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
        agent_rig_run(b.rig, 20 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_ENDING);
        reflex_machine_stays(b.reflex);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED); /* for the notice, which stands */
        assert_true(agent_rig_unschedulable(b.rig));
        reflex_cancel(b.reflex, "it was withdrawn");
        agent_rig_run(b.rig, USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_IDLE);
        assert_false(agent_rig_unschedulable(b.rig));
}

/* Once the machine goes down nothing is undone, whenever that was seen. */
TEST_CASE(test_machine_ends) {
        static const usec_t seen_after[] = { USEC_PER_SEC, 20 * USEC_PER_SEC };

        for (size_t i = 0; i < ELEMENTSOF(seen_after); i++) {
                _cleanup_bench_ Bench b;

                bench_init(&b);
                begin(&b, 2 * USEC_PER_MINUTE, 0);
                agent_rig_run(b.rig, seen_after[i]);
                reflex_machine_ends(b.reflex, USEC_INFINITY);
                reflex_machine_ends(b.reflex, USEC_INFINITY);
                agent_rig_run(b.rig, 20 * USEC_PER_SEC);
                assert_int_equal(reflex_state(b.reflex), REFLEX_ENDING);
                reflex_cancel(b.reflex, "it was withdrawn");
                agent_rig_run(b.rig, USEC_PER_SEC);
                assert_int_equal(reflex_state(b.reflex), REFLEX_ENDING);
                assert_true(agent_rig_unschedulable(b.rig));
                assert_int_equal(n_evictions(&b), 3);
        }
}

/* Nothing may come any more, and something does: a static pod's mirror, or a binding that was on its way. */
TEST_CASE(test_pod_comes_while_volumes_are_waited_for) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'volumesInUse':['csi/disk-1']}}");
        begin(&b, 5 * USEC_PER_MINUTE, 0);
        agent_rig_run(b.rig, 10 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_VOLUMES);
        agent_rig_add_pods(b.rig, "late", 1);
        agent_rig_run(b.rig, USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
        assert_int_equal(n_evictions(&b), 4);
        agent_rig_run(b.rig, 10 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_VOLUMES);
        assert_int_equal(agent_rig_n_pods(b.rig), 0);

        /* The end comes nearer: so does the end of this wait. */
        nearer(&b, NOTICE_ID, 15 * USEC_PER_SEC);
        agent_rig_run(b.rig, USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_VOLUMES);
        agent_rig_run(b.rig, 14 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);
}

/* A notice that nothing is done about is told. */
TEST_CASE(test_told_only) {
        _cleanup_bench_ Bench b;
        const Notice n = {
                .id = (char *) (uintptr_t) "rebalance-1",
                .kind = NOTICE_REBALANCE,
                .source = (char *) (uintptr_t) "test",
                .deadline_usec = USEC_INFINITY,
        };

        bench_init(&b);
        node_voice_notice_only(b.voice, &n, "it is a recommendation");
        agent_rig_run(b.rig, 2 * USEC_PER_SEC);
        assert_true(agent_rig_said(b.rig, "nothing is moved, as it is a recommendation."));
        assert_true(agent_rig_has_event(b.rig, "Node", "RebalanceRecommendation"));
}

TEST_CASE(test_kick) {
        _cleanup_bench_ Bench b;
        usec_t back;

        bench_init(&b);
        begin(&b, 2 * USEC_PER_MINUTE, 0);
        agent_rig_run(b.rig, 20 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);
        /* Away for long: the undo backs off to seconds; a link that comes up ends the wait. */
        back = usec_add(virtual_time_now(b.rig->world.time), USEC_PER_MINUTE);
        fake_api_away_until(fake_cluster_api(b.rig->cluster), back);
        reflex_cancel(b.reflex, "it was withdrawn");
        agent_rig_run(b.rig, 60 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_CANCELLED);
        reflex_kick(b.reflex);
        agent_rig_run(b.rig, 100 * USEC_PER_MSEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_IDLE);
        assert_false(agent_rig_unschedulable(b.rig));
}

/* -- deadlines that come and go ------------------------------------------------------------------------------ */

#define SEC USEC_PER_SEC

static usec_t wall(Bench *b) {
        return loop_wall(b->rig->loop);
}

static usec_t boot(Bench *b) {
        return loop_now(b->rig->loop);
}

static size_t n_deletes(Bench *b) {
        return fake_api_count_status(fake_cluster_api(b->rig->cluster), FAKE_DELETE, FAKE_PODS, NULL, 200);
}

/* In a drain that a budget holds up: its pods have 30 s of grace, and are deleted so long before the deadline, two seconds of
 * which are kept. */
static void begin_blocked(Bench *b, usec_t lead_usec) {
        bench_init(b);
        fake_add_pdb(b->rig->cluster, NULL, "budget", "web", true, "3");
        begin(b, lead_usec, 0);
        agent_rig_run(b->rig, SEC);
        assert_int_equal(reflex_state(b->reflex), REFLEX_DRAINING);
        assert_int_equal(n_evictions(b), 0);
}

/* Runs until the first delete; how long from `from` on the wall clock. */
static usec_t deleted_after(Bench *b, usec_t from, usec_t at_most_usec) {
        for (usec_t t = 0; t < at_most_usec && n_deletes(b) == 0; t += SEC / 2)
                agent_rig_run(b->rig, SEC / 2);
        return n_deletes(b) > 0 ? wall(b) - from : USEC_INFINITY;
}

/* A machine that goes down first has less time than the notice says; when it stays after all, the pods have theirs again. */
TEST_CASE(test_shutdown_comes_and_goes) {
        _cleanup_bench_ Bench b;
        usec_t start, notice;

        begin_blocked(&b, 10 * USEC_PER_MINUTE);
        start = wall(&b);
        notice = reflex_deadline(b.reflex);
        assert_in_range(notice - start, 9 * USEC_PER_MINUTE, 10 * USEC_PER_MINUTE);
        reflex_machine_ends(b.reflex, boot(&b) + 120 * SEC);
        assert_int_equal(reflex_deadline(b.reflex), start + 118 * SEC);
        reflex_machine_ends(b.reflex, boot(&b) + 200 * SEC); /* it has been said by when */
        assert_int_equal(reflex_deadline(b.reflex), start + 118 * SEC);
        agent_rig_run(b.rig, 60 * SEC);
        assert_int_equal(n_deletes(&b), 0);
        reflex_machine_stays(b.reflex);
        assert_int_equal(reflex_deadline(b.reflex), notice);
        assert_in_range(deleted_after(&b, start, 10 * USEC_PER_MINUTE), 8 * USEC_PER_MINUTE, 10 * USEC_PER_MINUTE);

        print_message("once more, and that one is for real\n");
        {
                _cleanup_bench_ Bench c;

                begin_blocked(&c, 20 * USEC_PER_MINUTE);
                start = wall(&c);
                reflex_machine_ends(c.reflex, boot(&c) + 120 * SEC);
                reflex_machine_stays(c.reflex);
                agent_rig_run(c.rig, 120 * SEC);
                assert_int_equal(n_deletes(&c), 0);
                start = wall(&c);
                reflex_machine_ends(c.reflex, boot(&c) + 10 * USEC_PER_MINUTE);
                reflex_machine_ends(c.reflex, boot(&c) + 120 * SEC); /* nearer */
                assert_int_equal(reflex_deadline(c.reflex), start + 118 * SEC);
                assert_in_range(deleted_after(&c, start, 10 * USEC_PER_MINUTE), 80 * SEC, 92 * SEC);
        }
}

/* It says so once, in the middle of a drain. */
TEST_CASE(test_shutdown_in_a_drain) {
        _cleanup_bench_ Bench b;
        usec_t start;

        begin_blocked(&b, 10 * USEC_PER_MINUTE);
        agent_rig_run(b.rig, 20 * SEC);
        start = wall(&b);
        reflex_machine_ends(b.reflex, boot(&b) + 120 * SEC);
        assert_in_range(deleted_after(&b, start, 10 * USEC_PER_MINUTE), 80 * SEC, 92 * SEC);
}

/* It goes down by so much of its own time, whatever the wall clock is set to. */
TEST_CASE(test_clock_is_set_in_a_shutdown) {
        _cleanup_bench_ Bench b;
        usec_t start;

        begin_blocked(&b, 10 * USEC_PER_HOUR);
        start = loop_now(b.rig->loop);
        reflex_machine_ends(b.reflex, boot(&b) + 120 * SEC);
        agent_rig_run(b.rig, 10 * SEC);
        loop_virtual_step_wall(b.rig->loop, (int64_t) USEC_PER_HOUR);
        reflex_clock_was_set(b.reflex);
        agent_rig_run(b.rig, 60 * SEC);
        assert_int_equal(n_deletes(&b), 0);
        (void) deleted_after(&b, 0, 10 * USEC_PER_MINUTE);
        assert_in_range(loop_now(b.rig->loop) - start, 80 * SEC, 92 * SEC);
}

/* Another's word of when the machine goes down is no notice. */
TEST_CASE(test_shutdown_is_no_nearer_notice) {
        _cleanup_bench_ Bench b;
        usec_t before;
        Notice n = { .id = (char *) (uintptr_t) "shutdown-1",
                     .kind = NOTICE_SHUTDOWN,
                     .source = (char *) (uintptr_t) "logind" };

        begin_blocked(&b, 10 * USEC_PER_MINUTE);
        n.deadline_usec = boot(&b) + USEC_PER_MINUTE;
        before = reflex_deadline(b.reflex);
        reflex_notice(b.reflex, &n, &(Plan){ .act = PLAN_DRAIN, .why = "a test" });
        assert_int_equal(reflex_deadline(b.reflex), before);
}

static size_t n_node_patches(const Bench *b) {
        return fake_api_count(fake_cluster_api(b->rig->cluster), FAKE_PATCH, FAKE_NODES, NULL);
}

/* Two looks at one notice count what is left to within a second: nothing is written for that, and it holds all the same. */
TEST_CASE(test_nearer_by_a_look) {
        _cleanup_bench_ Bench b;
        _cleanup_(notice_freep) Notice *n = NULL;
        const Plan plan = { .act = PLAN_DRAIN, .why = "a test" };
        size_t patches;

        begin_blocked(&b, 10 * USEC_PER_MINUTE);
        agent_rig_run(b.rig, 30 * SEC);
        assert_return_code(notice_copy(reflex_notice_now(b.reflex), &n), 0);
        patches = n_node_patches(&b);
        n->deadline_usec -= 900 * USEC_PER_MSEC;
        reflex_notice(b.reflex, n, &plan);
        agent_rig_run(b.rig, SEC);
        assert_int_equal(n_node_patches(&b), patches);
        assert_int_equal(reflex_notice_now(b.reflex)->deadline_usec, n->deadline_usec);
        n->deadline_usec -= 3 * SEC;
        reflex_notice(b.reflex, n, &plan);
        agent_rig_run(b.rig, SEC);
        assert_int_equal(n_node_patches(&b), patches + 1);
}

static void set_claim_deadline(Bench *b, usec_t at) {
        char text[RFC3339_MAX];

        rfc3339_format(at, text);
        if (at > 0)
                fake_merge(b->rig->cluster, FAKE_NODES, NULL, RIG_NODE,
                           "{'metadata':{'annotations':{'vesper.sh/deadline':'%s'}}}", text);
        else
                fake_merge(b->rig->cluster, FAKE_NODES, NULL, RIG_NODE,
                           "{'metadata':{'annotations':{'vesper.sh/deadline':null}}}");
        agent_rig_run(b->rig, 100 * USEC_PER_MSEC);
}

/* The coordinator's T: known from the first moment, taken back, set again, and not the next interruption's. */
TEST_CASE(test_claim_deadline) {
        _cleanup_bench_ Bench b;
        usec_t start, claim, notice;

        bench_init(&b);
        fake_add_pdb(b.rig->cluster, NULL, "budget", "web", true, "3");
        start = wall(&b);
        claim = (start / SEC + 200) * SEC;
        set_claim_deadline(&b, claim);
        begin(&b, 10 * USEC_PER_MINUTE, 0);
        assert_in_range(reflex_deadline(b.reflex), claim - 2 * SEC, claim);
        agent_rig_run(b.rig, SEC);
        set_claim_deadline(&b, 0);
        notice = reflex_deadline(b.reflex);
        assert_true(notice > start + 9 * USEC_PER_MINUTE);
        set_claim_deadline(&b, claim);
        assert_in_range(reflex_deadline(b.reflex), claim - 2 * SEC, claim);
        set_claim_deadline(&b, claim + 60 * SEC); /* later than before */
        assert_in_range(reflex_deadline(b.reflex), claim + 58 * SEC, claim + 60 * SEC);

        reflex_cancel(b.reflex, "it was withdrawn");
        agent_rig_run(b.rig, 2 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_IDLE);
        assert_null(reflex_notice_now(b.reflex));
        assert_int_equal(reflex_deadline(b.reflex), USEC_INFINITY);
        set_claim_deadline(&b, 0);
        start = wall(&b);
        begin(&b, 10 * USEC_PER_MINUTE, 0);
        assert_true(reflex_deadline(b.reflex) > start + 9 * USEC_PER_MINUTE);
}

/* It cuts the wait for load balancers short, too. */
TEST_CASE(test_claim_deadline_while_load_balancers_let_go) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        begin(&b, USEC_PER_HOUR, 30 * SEC);
        agent_rig_run(b.rig, SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_LB_WAIT);
        set_claim_deadline(&b, wall(&b) + 20 * USEC_PER_MINUTE);
        assert_int_equal(reflex_state(b.reflex), REFLEX_LB_WAIT);
        set_claim_deadline(&b, wall(&b) + 120 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
}

/* What is seen before our cordon is answered are the marks of an earlier boot, on a node that was opened since: nobody has
 * overruled this one. */
TEST_CASE(test_marks_of_before) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/cordoned-by-agent':'{\\'bootID\\':\\'old\\'}'}}}");
        agent_rig_run(b.rig, SEC);
        b.rig->request_delay_usec = 500 * USEC_PER_MSEC;
        begin(&b, 10 * USEC_PER_MINUTE, 0);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'labels':{'x':'y'}}}");
        agent_rig_run(b.rig, 100 * USEC_PER_MSEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_PLANNED);
        agent_rig_run(b.rig, 30 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);
        assert_true(agent_rig_unschedulable(b.rig));
}

/* A pod that comes and goes while the proof is asked for: it is asked for again. */
TEST_CASE(test_pod_during_the_proof) {
        _cleanup_bench_ Bench b;
        size_t lists;

        bench_init(&b);
        begin(&b, 10 * USEC_PER_MINUTE, 0);
        agent_rig_run(b.rig, SEC);
        lists = fake_api_count(fake_cluster_api(b.rig->cluster), FAKE_LIST, FAKE_PODS, NULL);
        b.rig->request_delay_usec = 500 * USEC_PER_MSEC;
        while (reflex_pods_left(b.reflex) > 0)
                agent_rig_run(b.rig, 10 * USEC_PER_MSEC);
        agent_rig_run(b.rig, 50 * USEC_PER_MSEC);
        fake_add_pod(b.rig->cluster, &(FakePod){ .name = "brief", .node = RIG_NODE });
        fake_remove(b.rig->cluster, FAKE_PODS, "default", "brief");
        agent_rig_run(b.rig, 10 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);
        assert_int_equal(fake_api_count(fake_cluster_api(b.rig->cluster), FAKE_LIST, FAKE_PODS, NULL), lists + 2);
}

/* -- the next interruption ------------------------------------------------------------------------------------ */

static unsigned n_said(Bench *b, const char *part) {
        return text_count(strbuf_str(&b->rig->lines), part);
}

/* What the first one did, knew and said is over. A budget that gives way afterwards lets nobody go. */
TEST_CASE(test_next_interruption) {
        _cleanup_bench_ Bench b;
        usec_t first, second;

        begin_blocked(&b, 10 * USEC_PER_MINUTE);
        first = intent_log_find(b.intents, NOTICE_ID)->since_usec;
        assert_int_equal(metrics_value(b.metrics, AGENT_METRIC_PODS_LEFT, 0), 3);
        reflex_cancel(b.reflex, "it was withdrawn");
        assert_int_equal(metrics_value(b.metrics, AGENT_METRIC_PODS_LEFT, 0), 0);
        agent_rig_run(b.rig, 20 * SEC);
        assert_null(reflex_notice_now(b.reflex));
        fake_remove(b.rig->cluster, FAKE_PDBS, "default", "budget");
        agent_rig_run(b.rig, 60 * SEC);
        assert_int_equal(n_evictions(&b), 0);
        assert_int_equal(agent_rig_n_pods(b.rig), 3);

        fake_add_pdb(b.rig->cluster, NULL, "budget", "web", true, "3");
        begin(&b, 10 * USEC_PER_MINUTE, 30 * SEC);
        agent_rig_run(b.rig, SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_LB_WAIT);
        assert_int_equal(intent_log_find(b.intents, NOTICE_ID)->phase, INTENT_CORDONED);
        agent_rig_run(b.rig, 31 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
        assert_int_equal(intent_log_find(b.intents, NOTICE_ID)->phase, INTENT_DRAINING);
        second = intent_log_find(b.intents, NOTICE_ID)->since_usec;
        assert_true(second > first + 100 * SEC);
}

/* Its time is up with a pod that does not go: said once, and once more by the next. */
TEST_CASE(test_expires_again) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        fake_add_pod(b.rig->cluster,
                     &(FakePod){ .name = "stuck", .node = RIG_NODE, .stuck = true, .grace_sec = 1 });
        for (unsigned round = 1; round <= 2; round++) {
                fake_add_pod(b.rig->cluster,
                             &(FakePod){ .name = "late", .node = RIG_NODE, .stuck = true, .grace_sec = 1 });
                agent_rig_run(b.rig, SEC);
                begin(&b, 20 * SEC, 0);
                agent_rig_run(b.rig, 30 * SEC);
                assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
                fake_remove(b.rig->cluster, FAKE_PODS, "default", "late"); /* news, but no other end */
                agent_rig_run(b.rig, 2 * SEC);
                assert_int_equal(reflex_pods_left(b.reflex), 1);
                assert_int_equal(n_said(&b, " is up with "), round);
                reflex_cancel(b.reflex, "it was withdrawn");
                agent_rig_run(b.rig, 5 * SEC);
                assert_int_equal(reflex_state(b.reflex), REFLEX_IDLE);
        }
}

/* -- volumes ---------------------------------------------------------------------------------------------------- */

/* They are waited for while they move: thirty seconds from the last move, whatever else is written on the Node; and never
 * beyond the deadline. */
TEST_CASE(test_volumes) {
        _cleanup_bench_ Bench b, c;

        bench_init(&b);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'status':{'volumesInUse':['csi/disk-1','csi/disk-2']}}");
        begin(&b, 10 * USEC_PER_MINUTE, 0);
        agent_rig_run(b.rig, 10 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_VOLUMES);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'volumesInUse':['csi/disk-2']}}");
        for (unsigned i = 0; i < 29; i++) {
                agent_rig_run(b.rig, SEC);
                fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'labels':{'beat':'%u'}}}", i);
        }
        assert_int_equal(reflex_state(b.reflex), REFLEX_VOLUMES);
        agent_rig_run(b.rig, 2 * SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);

        bench_init(&c);
        fake_merge(c.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'volumesInUse':['csi/disk-1']}}");
        begin(&c, 20 * SEC, 0);
        agent_rig_run(c.rig, 17 * SEC);
        assert_int_equal(reflex_state(c.reflex), REFLEX_VOLUMES);
        agent_rig_run(c.rig, 2 * SEC);
        assert_int_equal(reflex_state(c.reflex), REFLEX_DRAINED);
}

/* -- a restart ---------------------------------------------------------------------------------------------------- */

/* What was known before is known: since when it drains, by when the coordinator wants it, and what was announced. */
TEST_CASE(test_resume) {
        _cleanup_bench_ Bench b;
        usec_t start, claim;
        Notice n = { .id = (char *) (uintptr_t) NOTICE_ID,
                     .kind = NOTICE_MAINTENANCE,
                     .source = (char *) (uintptr_t) "test",
                     .action = (char *) (uintptr_t) "reboot" };

        bench_init(&b);
        start = wall(&b);
        agent_rig_run(b.rig, 10 * SEC);
        /* Made after the drain began, on a node whose cordon it tolerates: it is evicted like the others. */
        fake_add_pod(b.rig->cluster, &(FakePod){ .name = "again", .node = RIG_NODE, .app = "again" });
        fake_merge(b.rig->cluster, FAKE_PODS, "default", "again", "{'spec':{'tolerations':[{'operator':'Exists'}]}}");
        claim = (start / SEC + 300) * SEC;
        set_claim_deadline(&b, claim);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':true}}");
        agent_rig_run(b.rig, 10 * SEC);
        n.deadline_usec = boot(&b) + 10 * USEC_PER_MINUTE;
        assert_return_code(reflex_resume(b.reflex, &n, INTENT_DRAINING, start, false), 0);
        assert_in_range(reflex_deadline(b.reflex), claim - 2 * SEC, claim);
        agent_rig_run(b.rig, 20 * SEC);
        assert_int_equal(n_evictions(&b), 4);
        assert_int_equal(agent_rig_n_pods(b.rig), 0);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINED);

        {
                _cleanup_bench_ Bench c;

                bench_init(&c);
                /* By an agent that noted no more than what was announced. */
                n.deadline_usec = USEC_INFINITY;
                n.announced_usec = wall(&c) + 10 * USEC_PER_MINUTE;
                assert_return_code(reflex_resume(c.reflex, &n, INTENT_CORDONED, 0, false), 0);
                assert_in_range(reflex_deadline(c.reflex), wall(&c) + 9 * USEC_PER_MINUTE,
                                wall(&c) + 10 * USEC_PER_MINUTE);
        }
}

TEST_CASE(test_names) {
        for (ReflexState s = 0; s < _REFLEX_STATE_MAX; s++)
                assert_non_null(reflex_state_to_string(s));
        assert_null(reflex_state_to_string(_REFLEX_STATE_MAX));
        assert_null(reflex_state_to_string(_REFLEX_STATE_INVALID));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lb_wait),
                cmocka_unit_test(test_node_is_read_first),
                cmocka_unit_test(test_lb_wait_cut_short),
                cmocka_unit_test(test_cancelled_on_the_way),
                cmocka_unit_test(test_machine_ends),
                cmocka_unit_test(test_machine_ends_and_stays),
                cmocka_unit_test(test_kick),
                cmocka_unit_test(test_told_only),
                cmocka_unit_test(test_pod_comes_while_volumes_are_waited_for),
                cmocka_unit_test(test_shutdown_comes_and_goes),
                cmocka_unit_test(test_clock_is_set_in_a_shutdown),
                cmocka_unit_test(test_nearer_by_a_look),
                cmocka_unit_test(test_shutdown_is_no_nearer_notice),
                cmocka_unit_test(test_shutdown_in_a_drain),
                cmocka_unit_test(test_claim_deadline),
                cmocka_unit_test(test_claim_deadline_while_load_balancers_let_go),
                cmocka_unit_test(test_marks_of_before),
                cmocka_unit_test(test_pod_during_the_proof),
                cmocka_unit_test(test_next_interruption),
                cmocka_unit_test(test_expires_again),
                cmocka_unit_test(test_volumes),
                cmocka_unit_test(test_resume),
                cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests_name("reflex", tests, NULL, NULL);
}
