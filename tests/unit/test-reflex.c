/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent-metrics.h"
#include "agent-rig.h"
#include "reflex.h"

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
        const PolicySettings settings = { .lb_wait_usec = lb_wait_usec };
        const Notice n = {
                .id = (char *) (uintptr_t) NOTICE_ID,
                .kind = NOTICE_MAINTENANCE,
                .source = (char *) (uintptr_t) "test",
                .action = (char *) (uintptr_t) "reboot",
                .deadline_usec = usec_add(loop_wall(b->rig->loop), lead_usec),
        };
        Plan plan = policy_decide(&n, &settings, loop_wall(b->rig->loop));

        assert_return_code(reflex_begin(b->reflex, &n, &plan, loop_now(b->rig->loop)), 0);
}

static void nearer(Bench *b, const char *id, usec_t lead_usec) {
        const Notice n = {
                .id = (char *) (uintptr_t) id,
                .kind = NOTICE_SPOT,
                .source = (char *) (uintptr_t) "test",
                .deadline_usec = usec_add(loop_wall(b->rig->loop), lead_usec),
        };

        reflex_notice(b->reflex, &n);
}

static size_t n_evictions(Bench *b) {
        return fake_api_count_status(fake_cluster_api(b->rig->cluster), FAKE_CREATE, FAKE_PODS, "eviction",
                                     201);
}

static void test_lb_wait(void **state) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        begin(&b, 10 * USEC_PER_MINUTE, 30 * USEC_PER_SEC);
        agent_rig_run(b.rig, 29 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_LB_WAIT);
        assert_true(agent_rig_unschedulable(b.rig));
        assert_int_equal(n_evictions(&b), 0);
        assert_int_equal(reflex_pods_left(b.reflex), 3);
        agent_rig_run(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(reflex_state(b.reflex), REFLEX_DRAINING);
        assert_int_equal(n_evictions(&b), 3);
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
static void test_node_is_read_first(void **state) {
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
static void test_lb_wait_cut_short(void **state) {
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
        }
}

static void test_cancelled_on_the_way(void **state) {
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
static void test_machine_ends_and_stays(void **state) {
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
static void test_machine_ends(void **state) {
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
static void test_pod_comes_while_volumes_are_waited_for(void **state) {
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
static void test_told_only(void **state) {
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

static void test_kick(void **state) {
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

static void test_names(void **state) {
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
                cmocka_unit_test(test_names),
        };
        return cmocka_run_group_tests_name("reflex", tests, NULL, NULL);
}
