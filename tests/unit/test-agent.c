/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "agent-metrics.h"
#include "agent-rig.h"
#include "cmocka-test.h"
#include "json.h"
#include "marks.h"
#include "node-report.h"
#include "page.h"
#include "strv.h"

#define POLL_USEC (2 * USEC_PER_SEC)
#define LEAD_USEC (120 * USEC_PER_SEC)

#define assert_phase(r, expected) \
        do { \
                _cleanup_free_ char *_phase = agent_rig_phase(r); \
                assert_non_null(_phase); \
                assert_string_equal(_phase, expected); \
        } while (0)

#define assert_no_marks(r) \
        do { \
                assert_null(agent_rig_annotation(r, "vesper.sh/interruption")); \
                assert_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent")); \
                assert_null(agent_rig_condition(r, "DrainInProgress")); \
                assert_null(agent_rig_condition(r, "Drained")); \
                assert_null(fj_string(agent_rig_node(r), "metadata", "labels", \
                                      "node.kubernetes.io/exclude-from-external-load-balancers", NULL)); \
        } while (0)

/* All is off but what a person's word is remembered by. */
static void assert_released(AgentRig *r) {
        const char *text = agent_rig_annotation(r, "vesper.sh/interruption");

        assert_non_null(text);
        assert_non_null(strstr(text, "\"phase\":\"Released\""));
        assert_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
        assert_null(agent_rig_condition(r, "DrainInProgress"));
        assert_null(agent_rig_condition(r, "Drained"));
        assert_null(fj_string(agent_rig_node(r), "metadata", "labels",
                              "node.kubernetes.io/exclude-from-external-load-balancers", NULL));
}

static uint64_t n_evictions(AgentRig *r) {
        return fake_api_count_status(fake_cluster_api(r->cluster), FAKE_CREATE, FAKE_PODS, "eviction", 201);
}

/* An agent that has started, seen its node, and looked a few times. */
static AgentRig *calm_rig(void) {
        AgentRig *r = agent_rig_new();

        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(r->ready);
        assert_string_equal(agent_phase(r->agent), "Idle");
        return r;
}

TEST_CASE(test_calm) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        size_t gets = fake_imds_n_gets(r->imds), tokens = fake_imds_n_tokens(r->imds);
        _cleanup_free_ char *writes = NULL;

        agent_rig_run(r, USEC_PER_MINUTE);
        assert_in_range(fake_imds_n_gets(r->imds), gets + 30, gets + 60);
        assert_int_equal(fake_imds_n_tokens(r->imds), tokens);
        writes = agent_rig_writes(r);
        assert_string_equal(writes, "");
        assert_int_equal(r->n_writes, 0);
        assert_string_equal(r->status, "Idle: watching for notices on node n1");
}

TEST_CASE(test_main_path) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        _cleanup_free_ char *writes = NULL;

        agent_rig_add_pods(r, "web", 30);
        fake_add_pod(r->cluster, &(FakePod){ .name = "proxy",
                                             .node = RIG_NODE,
                                             .owner_kind = "DaemonSet",
                                             .owner = "proxy" });
        fake_add_pod(r->cluster, &(FakePod){ .name = "static-n1",
                                             .node = RIG_NODE,
                                             .owner_kind = "Node",
                                             .owner = RIG_NODE });
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, POLL_USEC + 500 * USEC_PER_MSEC);

        assert_true(agent_rig_unschedulable(r));
        assert_non_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
        assert_string_equal(fj_string(agent_rig_node(r), "metadata", "labels",
                                      "node.kubernetes.io/exclude-from-external-load-balancers", NULL),
                            "vesper");
        assert_int_equal(n_evictions(r), 30);
        assert_string_equal(agent_rig_condition(r, "DrainInProgress"), "True");
        assert_phase(r, "Draining");

        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_phase(r, "Drained");
        assert_string_equal(agent_rig_condition(r, "DrainInProgress"), "False");
        assert_string_equal(agent_rig_condition(r, "Drained"), "True");
        assert_int_equal(agent_rig_n_pods(r), 2);
        assert_int_equal(n_evictions(r), 30);
        assert_string_equal(r->cordon_delay, "0");
        writes = agent_rig_writes(r);
        assert_string_equal(
                writes,
                "patch /api/v1/nodes/n1 200; patch /api/v1/nodes/n1/status 200; patch /api/v1/nodes/n1 200; "
                "patch /api/v1/nodes/n1 200; patch /api/v1/nodes/n1/status 200");
        assert_true(agent_rig_has_event(r, "Node", "SpotInterruption"));
        assert_true(agent_rig_has_event(r, "Node", "Cordoned"));
        assert_true(agent_rig_has_event(r, "Node", "Drained"));
        assert_true(agent_rig_has_event(r, "Pod", "Evicted"));
        assert_true(agent_rig_has_event(r, "Node", "PodLeftAlone"));
        assert_true(agent_rig_said(
                r, "Pod default/static-n1 is neither evicted from node n1 nor waited for"));
        assert_true(agent_rig_said(r, "Node n1 is drained"));
        assert_non_null(strstr(r->status, "Drained: spot notice"));
}

static const FakePod again = { .name = "again", .node = RIG_NODE, .owner_kind = "ReplicaSet", .owner = "again" };

/* The list that ends the drain falls between the third pod of a controller and its fourth: people are warned when that comes. */
TEST_CASE(test_comes_back_once_drained) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        fake_add_pod(r->cluster, &again);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        for (unsigned i = 0; i < 100 * 1000 && n_evictions(r) < 3; i++) {
                if (!fake_get(r->cluster, FAKE_PODS, "default", "again"))
                        fake_add_pod(r->cluster, &again);
                agent_rig_run(r, USEC_PER_MSEC);
        }
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_null(fake_get(r->cluster, FAKE_PODS, "default", "again"));
        assert_false(agent_rig_has_event(r, "Node", "PodComesBack"));
        fake_add_pod(r->cluster, &again);
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_int_equal(n_evictions(r), 3);
        assert_true(agent_rig_has_event(r, "Node", "PodComesBack"));
        assert_true(agent_rig_said(r, "pods of ReplicaSet again were ended there 3 times"));
}

/* -- what holds a drain ------------------------------------------------------------------------- */

/* Two pods that their budget does not let go, interrupted. */
static AgentRig *blocked_rig(void) {
        AgentRig *r = calm_rig();

        agent_rig_add_pods(r, "db", 2);
        fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2");
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Draining");
        assert_int_equal(agent_pods_left(r->agent), 2);
        return r;
}

TEST_CASE(test_blocked_until_deadline) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();

        assert_true(agent_rig_has_event(r, "Node", "DrainBlocked"));
        assert_true(agent_rig_said(r, "Pod default/db-0 cannot be evicted yet (BlockedByPDB db-budget): Cannot evict pod as it would violate the pod's disruption budget. It is evicted once this budget"));
        assert_true(agent_rig_said(r, "It is deleted when its time is up."));
        agent_rig_run(r, 75 * USEC_PER_SEC); /* 80 s after the notice: 40 s before it, 8 s before T - g */
        assert_int_equal(agent_rig_n_pods(r), 2);
        assert_false(agent_rig_has_event(r, "Node", "PodDeletedAtDeadline"));
        /* One probe at a time, slower and slower. */
        assert_in_range(
                fake_api_count_status(fake_cluster_api(r->cluster), FAKE_CREATE, FAKE_PODS, "eviction", 429),
                2, 20);

        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 0);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_true(agent_rig_has_event(r, "Node", "PodDeletedAtDeadline"));
        assert_true(agent_rig_has_event(r, "Pod", "PodDeletedAtDeadline"));
}

TEST_CASE(test_claim_deadline) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();
        char text[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), 45 * USEC_PER_SEC), text);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/deadline':'%s'}}}", text);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 2);
        assert_true(agent_rig_said(r, "came nearer"));
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

/* The clock was behind, so that a time was assumed; then it is put right. */
TEST_CASE(test_clock_is_put_right) {
        static const struct {
                const char *what;
                enum { SHOWN, HIDDEN, WITHDRAWN } notice; /* from then on */
        } rows[] = {
                { "the notice stands", SHOWN },
                { "metadata is away", HIDDEN },
                { "nothing is announced any more", WITHDRAWN },
        };
        const int64_t behind = 2 * (int64_t) USEC_PER_HOUR;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

                print_message("%s\n", rows[i].what);
                agent_rig_add_pods(r, "db", 2);
                fake_add_pdb(r->cluster, NULL, "db-budget", "db", true, "2");
                agent_rig_run(r, USEC_PER_SEC);
                loop_virtual_step_wall(r->loop, -behind);
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, 5 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Draining");

                if (rows[i].notice == HIDDEN)
                        fake_imds_hang(r->imds, FAKE_IMDS_ALL, UINT32_MAX);
                else if (rows[i].notice == WITHDRAWN)
                        fake_imds_clear_action(r->imds);
                loop_virtual_step_wall(r->loop, behind);
                agent_rig_run(r, 70 * USEC_PER_SEC);
                assert_int_equal(agent_rig_n_pods(r), 2); /* 75 s after the notice */
                assert_true(agent_rig_said(r, "The clock of this machine was set while a notice stands"));
                agent_rig_run(r, 25 * USEC_PER_SEC);
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_string_equal(agent_phase(r->agent), "Drained");
        }
}

/* T was another's than our notice's, and is over: the notice's own time counts again. */
TEST_CASE(test_claim_deadline_is_over) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();
        char text[RFC3339_MAX];

        rfc3339_format(usec_add(loop_wall(r->world.loop), 45 * USEC_PER_SEC), text);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/deadline':'%s'}}}", text);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/deadline':null}}}");
        agent_rig_run(r, 40 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 2);
        agent_rig_run(r, 60 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 0);
}

TEST_CASE(test_expired) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_add_pod(r->cluster, &(FakePod){ .name = "stuck", .node = RIG_NODE, .stuck = true });
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 125 * USEC_PER_SEC);
        assert_true(agent_rig_said(
                r, "The time for node n1 is up with 1 pods still on it: default/stuck (Terminating)"));
        assert_true(agent_rig_has_event(r, "Node", "DrainFailed"));
        assert_phase(r, "Draining");
        /* Late is better than never. */
        fake_delete(r->cluster, FAKE_PODS, "default", "stuck", 0);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
}

/* Long lists are cut short. */
TEST_CASE(test_many_of_them) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'status':{'volumesInUse':['v1','v2','v3','v4','v5','v6','v7']}}");
        for (unsigned i = 0; i < 8; i++) {
                _cleanup_free_ char *name = strf("stuck-%u", i);

                fake_add_pod(r->cluster, &(FakePod){ .name = name, .node = RIG_NODE, .stuck = true });
        }
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 125 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "with 8 pods still on it"));
        assert_true(agent_rig_said(r, " and 3 more."));
        for (unsigned i = 0; i < 8; i++) {
                _cleanup_free_ char *name = strf("stuck-%u", i);

                fake_delete(r->cluster, FAKE_PODS, "default", name, 0);
        }
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "waiting for volumes to be let go: v1, v2, v3, v4, v5 and 2 more."));
}

TEST_CASE(test_volumes) {
        static const struct {
                const char *what;
                bool let_go;
                const char *after_20_sec, *after_40_sec;
        } rows[] = {
                { "the kubelet lets go", true, "Drained", "Drained" },
                { "it never does", false, "Volumes", "Drained" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

                print_message("%s\n", rows[i].what);
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                           "{'status':{'volumesInUse':['csi/disk-1']}}");
                agent_rig_run(r, USEC_PER_SEC);
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, 5 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), "Volumes");
                assert_true(agent_rig_said(r, "waiting for volumes to be let go: csi/disk-1"));
                if (rows[i].let_go)
                        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                                   "{'status':{'volumesInUse':null}}");
                agent_rig_run(r, 15 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), rows[i].after_20_sec);
                agent_rig_run(r, 20 * USEC_PER_SEC);
                assert_string_equal(agent_phase(r->agent), rows[i].after_40_sec);
                assert_int_equal(agent_rig_said(r, "still in use: csi/disk-1"), !rows[i].let_go);
        }
}

/* -- whose cordon it is ------------------------------------------------------------------------- */

TEST_CASE(test_person_uncordons) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 2 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_released(r);
        assert_non_null(strstr(r->record, "Released"));

        /* The notice still stands, for hours: the person's word holds, also after a restart. */
        agent_rig_run(r, 20 * USEC_PER_SEC);
        agent_rig_kill(r);
        agent_rig_start(r);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_false(agent_rig_unschedulable(r));
        assert_released(r);
        assert_int_equal(agent_rig_n_pods(r), 2);
        assert_true(agent_rig_said(r, "is not acted upon"));
}

/* An etcd that was restored has the marks of a drain that a person had ended since. */
static char *interruption_patch(const char *text) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_open_object(w, "annotations");
        json_add_string(w, ANNOTATION_INTERRUPTION, text);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

TEST_CASE(test_marks_of_an_overruled_notice_come_back) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();
        _cleanup_free_ char *marks = interruption_patch(agent_rig_annotation(r, ANNOTATION_INTERRUPTION)), *released = NULL;

        assert_phase(r, "Draining");
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_released(r);
        released = interruption_patch(agent_rig_annotation(r, ANNOTATION_INTERRUPTION));

        for (unsigned round = 0; round < 3; round++) {
                if (round > 0) { /* a view that is late for a few seconds, twice, is none that stands for so long */
                        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "%s", marks);
                        agent_rig_run(r, 4 * USEC_PER_SEC);
                        assert_phase(r, "Draining");
                        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "%s", released);
                        agent_rig_run(r, 3 * USEC_PER_SEC);
                }
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "%s", marks);
                agent_rig_run(r, 4 * USEC_PER_SEC);
                assert_phase(r, "Draining");
                agent_rig_run(r, 10 * USEC_PER_SEC);
                assert_released(r);
                assert_false(agent_rig_unschedulable(r));
                assert_int_equal(agent_rig_n_pods(r), 2);
        }
}

/* What the disk lost stands on the Node; and it goes when the notice is over. */
TEST_CASE(test_person_uncordons_no_disk) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();

        r->disk_error = -EIO;
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 2 * USEC_PER_SEC);
        agent_rig_kill(r);
        agent_rig_start(r);
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_false(agent_rig_unschedulable(r));
        assert_released(r);
        assert_int_equal(agent_rig_n_pods(r), 2);

        /* Gone before its time says nothing: as for any other. */
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 5 * USEC_PER_MINUTE);
        assert_released(r);
        agent_rig_run(r, 10 * USEC_PER_MINUTE);
        assert_no_marks(r);
        assert_false(agent_rig_unschedulable(r));

        /* Another one is acted upon. */
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
}

/* Of an earlier boot: it goes with it. */
TEST_CASE(test_released_before_reboot) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 2 * USEC_PER_SEC);
        assert_released(r);
        agent_rig_kill(r);
        fake_imds_clear_action(r->imds);
        agent_rig_reboot(r);
        agent_rig_start(r);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_no_marks(r);
}

/* The watch of the Node is silent: what the agent reads after a conflict tells it, too (seed 6826). */
TEST_CASE(test_person_uncordons_unheard) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_add_pod(r->cluster,
                     &(FakePod){ .name = "web", .node = RIG_NODE, .grace_sec = 60, .stop_sec = 20 });
        agent_rig_run(r, USEC_PER_SEC);
        r->lost = "/nodes?watch";
        fake_api_cut_watches(fake_cluster_api(r->cluster));
        agent_rig_run(r, 2 * USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_run(r, 25 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 0);
        assert_phase(r, "Released");
        assert_false(agent_rig_unschedulable(r));
        assert_string_equal(agent_phase(r->agent), "Idle");
        agent_rig_add_pods(r, "new", 1);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_int_equal(agent_rig_n_pods(r), 1);
}

TEST_CASE(test_person_uncordons_while_down) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();

        agent_rig_kill(r);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        agent_rig_start(r);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_false(agent_rig_unschedulable(r));
        assert_released(r);
        assert_non_null(strstr(r->record, "Released"));
}

TEST_CASE(test_cordon_found) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':true}}");
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        assert_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
        assert_true(agent_rig_said(r, "had been cordoned by somebody else"));

        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 15 * USEC_PER_MINUTE);
        assert_no_marks(r);
        assert_true(agent_rig_unschedulable(r));
}

TEST_CASE(test_coordinator_cordoned_too) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/"
                   "cordoned-by-coordinator':'{}'}},'spec':{'unschedulable':true}}");
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_non_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 15 * USEC_PER_MINUTE);
        assert_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
        assert_true(agent_rig_unschedulable(r));
        assert_non_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-coordinator"));
}

TEST_CASE(test_foreign_label) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'labels':{'node.kubernetes.io/"
                   "exclude-from-external-load-balancers':'true'}}}");
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        fake_imds_clear_action(r->imds);
        agent_rig_run(r, 15 * USEC_PER_MINUTE);
        assert_false(agent_rig_unschedulable(r));
        assert_string_equal(fj_string(agent_rig_node(r), "metadata", "labels",
                                      "node.kubernetes.io/exclude-from-external-load-balancers", NULL),
                            "true");
}

/* -- the end of it ------------------------------------------------------------------------------ */

TEST_CASE(test_cancelled) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        fake_imds_clear_action(r->imds);
        agent_rig_run(r,
                      11 * USEC_PER_MINUTE); /* the deadline was at 2 min: 404 says nothing before 12 min */
        assert_phase(r, "Drained");
        agent_rig_run(r, 2 * USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Idle");
        assert_false(agent_rig_unschedulable(r));
        assert_no_marks(r);
        assert_true(agent_rig_has_event(r, "Node", "InterruptionCancelled"));

        /* The next one is another occurrence, though its id is the same. */
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
}

/* Nothing but "positively none" cancels. */
TEST_CASE(test_unknown_cancels_nothing) {
        static const struct {
                const char *what;
                unsigned status;
                const char *body;
        } rows[] = {
                { "500", 500, NULL },
                { "403", 403, NULL },
                { "401", 401, NULL },
                { "404 by a stranger", 404, NULL },
                { "garbage", 200, "<html>welcome to the guest network</html>" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

                print_message("%s\n", rows[i].what);
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                fake_imds_clear_action(r->imds);
                if (rows[i].status == 404) {
                        fake_imds_set_instance_id(r->imds, NULL);
                        fake_imds_revoke(
                                r->imds); /* the session ends: who is there has to prove himself again */
                } else if (rows[i].body)
                        fake_imds_garble(r->imds, FAKE_IMDS_DATA, UINT32_MAX, rows[i].body);
                else
                        fake_imds_fail(r->imds, FAKE_IMDS_DATA, UINT32_MAX, rows[i].status);
                agent_rig_run(r, 30 * USEC_PER_MINUTE);
                assert_phase(r, "Drained");
                assert_true(agent_rig_unschedulable(r));
                assert_true(agent_rig_said(r, "has given no usable answer 3 times in a row"));
        }
}

/* Three looks in a row that tell nothing are told, once, and their end. */
TEST_CASE(test_source_falls_silent) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_imds_fail(r->imds, FAKE_IMDS_DATA, 2, 500);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_false(agent_rig_said(r, "no usable answer"));
        fake_imds_fail(r->imds, FAKE_IMDS_DATA, UINT32_MAX, 500);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "Source ec2 has given no usable answer 3 times in a row ("));
        assert_false(agent_rig_said(r, "answers again"));
        fake_imds_fail(r->imds, FAKE_IMDS_DATA, 0, 500);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "Source ec2 answers again"));
        /* Not by the id whose explanation in the journal's catalogue is that it does not. */
        assert_non_null(strstr(strbuf_str(&r->events), "- Source ec2 answers again"));
}

TEST_CASE(test_reboot) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        _cleanup_free_ char *old_boot = strdup(r->boot_id);

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");

        agent_rig_kill(r);
        fake_imds_clear_action(r->imds);
        agent_rig_reboot(r);
        /* The kubelet has not reported yet: what the API shows is of before. */
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'nodeInfo':{'bootID':'%s'}}}",
                   old_boot);
        agent_rig_start(r);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        assert_true(agent_rig_unschedulable(r));

        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'status':{'nodeInfo':{'bootID':'%s'}}}",
                   r->boot_id);
        agent_rig_run(r, 5 * USEC_PER_SEC);
        assert_false(agent_rig_unschedulable(r));
        assert_no_marks(r);
        assert_string_equal(agent_phase(r->agent), "Idle");
}

/* A node that is being deleted keeps its cordon: what stays is no work for each look. */
TEST_CASE(test_reboot_while_deleted) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_kill(r);
        fake_imds_clear_action(r->imds);
        agent_rig_reboot(r);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'finalizers':['vesper.sh/termination']}}");
        assert_true(fake_delete(r->cluster, FAKE_NODES, NULL, RIG_NODE, 0));
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
        assert_null(agent_rig_annotation(r, "vesper.sh/interruption"));
        assert_non_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));

        strbuf_truncate(&r->lines, 0);
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(strbuf_str(&r->lines), "");
        assert_string_equal(agent_phase(r->agent), "Idle");
}

/* A notice of the new boot takes the old marks over. */
TEST_CASE(test_reboot_into_notice) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_kill(r);
        agent_rig_reboot(r);
        fake_cluster_set_kubelet(r->cluster, RIG_NODE, false);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}");
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), r->boot_id));
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"), r->boot_id));
}

/* Somebody opened the node in between: an old mark is no word on a new notice. */
TEST_CASE(test_reboot_uncordoned_into_notice) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_kill(r);
        agent_rig_reboot(r);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        r->request_delay_usec = 20 * USEC_PER_MSEC;
        agent_rig_start(r);
        for (unsigned i = 0; i < 30; i++) {
                fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                           "{'metadata':{'annotations':{'beat':'%u'}}}", i);
                agent_rig_run(r, 100 * USEC_PER_MSEC);
        }
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
        assert_phase(r, "Drained");
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), r->boot_id));
}

TEST_CASE(test_node_made_anew) {
        _cleanup_(agent_rig_freep) AgentRig *r = blocked_rig();

        fake_remove(r->cluster, FAKE_NODES, NULL, RIG_NODE);
        fake_add_node(r->cluster, RIG_NODE, NULL, RIG_INSTANCE, NULL);
        agent_rig_run(r, 2 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
        assert_phase(r, "Draining");
}

/* The same while the agent does not run: what was drained was another Node. */
TEST_CASE(test_node_made_anew_while_down) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        agent_rig_kill(r);
        fake_remove(r->cluster, FAKE_NODES, NULL, RIG_NODE);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        fake_add_node(r->cluster, RIG_NODE, NULL, RIG_INSTANCE, NULL);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_unschedulable(r));
        assert_phase(r, "Drained");
}

/* -- trouble ------------------------------------------------------------------------------------ */

TEST_CASE(test_crashes) {
        static const char *const deaths[] = { [RIG_DEATH_BEFORE] = "before", [RIG_DEATH_AFTER] = "after" };

        for (RigDeath death = RIG_DEATH_BEFORE; death <= RIG_DEATH_AFTER; death++)
                for (size_t k = 1, died = 1; died > 0; k++) {
                        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

                        agent_rig_add_pods(r, "web", 5);
                        agent_rig_run(r, USEC_PER_SEC);
                        r->die_at_write = k;
                        r->death = death;
                        agent_rig_notice(r, LEAD_USEC);
                        died = agent_rig_run(r, 20 * USEC_PER_SEC);
                        print_message("dies %s write %zu: %s\n", deaths[death], k,
                                      died ? "yes" : "it never came to it");
                        if (died) {
                                agent_rig_run(r, USEC_PER_SEC);
                                agent_rig_start(r);
                                agent_rig_run(r, 20 * USEC_PER_SEC);
                        }
                        assert_string_equal(agent_phase(r->agent), "Drained");
                        assert_phase(r, "Drained");
                        assert_string_equal(agent_rig_condition(r, "Drained"), "True");
                        assert_int_equal(n_evictions(r), 5);
                        assert_int_equal(agent_rig_n_pods(r), 0);
                        assert_non_null(strstr(r->record, "Drained"));
                        if (!died)
                                assert_true(k > 2);
                }
}

/* Dies at any moment of a drain, not only at writes: what is there afterwards is the same. */
/* The agent starts again in the middle of a drain. Until it has listed the pods, it reports the earlier
 * number. */
TEST_CASE(test_pods_left_after_crash) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        fake_add_pdb(r->cluster, NULL, "web-budget", "web", true, "3");
        agent_rig_add_pods(r, "web", 3);
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        agent_rig_kill(r);
        strbuf_truncate(&r->statuses, 0);
        agent_rig_start(r);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_non_null(strstr(strbuf_str(&r->statuses), "3 pods left"));
        assert_null(strstr(strbuf_str(&r->statuses), " 0 pods left"));
}

/* The service manager is told of a change alone. */
TEST_CASE(test_same_status_once) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        _cleanup_strv_free_ char **statuses = NULL;

        agent_rig_add_pods(r, "web", 3);
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 20 * USEC_PER_SEC);
        assert_return_code(strv_split(strbuf_str(&r->statuses), "\n", &statuses), 0);
        assert_true(strv_length(statuses) > 3);
        for (size_t i = 1; i < strv_length(statuses); i++)
                assert_string_not_equal(statuses[i - 1], statuses[i]);
}

TEST_CASE(test_crash_at_any_time) {
        for (usec_t after = 0; after < 8 * USEC_PER_SEC; after += 250 * USEC_PER_MSEC) {
                _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

                agent_rig_add_pods(r, "web", 5);
                r->request_delay_usec = 20 * USEC_PER_MSEC;
                agent_rig_run(r, USEC_PER_SEC);
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, after);
                agent_rig_kill(r);
                agent_rig_run(r, USEC_PER_SEC);
                agent_rig_start(r);
                agent_rig_run(r, 20 * USEC_PER_SEC);
                assert_phase(r, "Drained");
                assert_string_equal(agent_rig_condition(r, "Drained"), "True");
                assert_int_equal(agent_rig_n_pods(r), 0);
                assert_int_equal(n_evictions(r), 5);
        }
}

TEST_CASE(test_drained_once) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        _cleanup_free_ char *writes = NULL;

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        agent_rig_kill(r);
        /* Bound past the scheduler meanwhile: this notice has had its drain. */
        agent_rig_add_pods(r, "late", 1);
        fake_api_log_reset(fake_cluster_api(r->cluster));
        agent_rig_start(r);
        agent_rig_run(r, USEC_PER_MINUTE);
        assert_string_equal(agent_phase(r->agent), "Drained");
        assert_int_equal(n_evictions(r), 0);
        writes = agent_rig_writes(r);
        assert_string_equal(writes, "");
}

TEST_CASE(test_torn_record) {
        static const char *const records[] = { "", "{\"version\":1,\"boot", "{\"version\":9}", "[]",
                                               "\xff\xfe" };

        for (size_t i = 0; i < ELEMENTSOF(records); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

                r->record = strdup(records[i]);
                agent_rig_start(r);
                agent_rig_run(r, 5 * USEC_PER_SEC);
                assert_true(agent_rig_said(r, "The intent log cannot be read"));
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, 10 * USEC_PER_SEC);
                assert_phase(r, "Drained");
        }
}

TEST_CASE(test_failing_disk) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        r->disk_error = -ENOSPC;
        agent_rig_add_pods(r, "web", 3);
        agent_rig_run(r, USEC_PER_SEC);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        assert_true(agent_rig_said(r, "Failed to write the intent log: No space left on device"));
}

TEST_CASE(test_api_away) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        usec_t back;

        agent_rig_add_pods(r, "web", 3);
        agent_rig_run(r, USEC_PER_SEC);
        back = usec_add(virtual_time_now(r->world.time), USEC_PER_MINUTE);
        fake_api_away_until(fake_cluster_api(r->cluster), back);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 59 * USEC_PER_SEC);
        assert_string_equal(agent_phase(r->agent), "Planned");
        assert_false(agent_rig_unschedulable(r));
        assert_true(agent_rig_said(r, "The API server does not answer, retrying"));
        agent_rig_run(r, 2500 * USEC_PER_MSEC);
        assert_true(agent_rig_unschedulable(r));
        assert_true(agent_rig_said(r, "takes reports on node n1 again"));
        agent_rig_run(r, 45 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        assert_int_equal(agent_rig_n_pods(r), 0);
}

typedef struct PatchFault {
        unsigned n; /* how many more */
        FakeApiFault fault;
} PatchFault;

static void on_node_patch(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        PatchFault *f = userdata;

        if (request->verb == FAKE_PATCH && request->resource && request->resource->id == FAKE_NODES &&
            f->n > 0) {
                f->n--;
                *ret_fault = f->fault;
        }
}

TEST_CASE(test_first_act_fails) {
        static const struct {
                const char *what;
                PatchFault fault;
                usec_t within_usec;
                const char *said;
        } rows[] = {
                { "somebody else wrote first", { 1, { .status = 409 } }, 0, NULL },
                { "ten times in a row", { 10, { .status = 409 } }, 10 * USEC_PER_SEC, NULL },
                { "it landed, the answer was lost",
                  { 1, { .drop = true, .takes_effect = true } },
                  USEC_PER_SEC,
                  "does not answer" },
                { "it landed, the answer is a lie",
                  { 1, { .status = 500, .takes_effect = true } },
                  USEC_PER_SEC,
                  "HTTP 500" },
                { "the server is busy",
                  { 3, { .status = 429, .retry_after_sec = 30 } },
                  4 * USEC_PER_SEC,
                  "HTTP 429" },
                { "the credential is another node's",
                  { 2, { .status = 403 } },
                  2 * USEC_PER_SEC,
                  "must be the credential of this very node" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
                PatchFault f = rows[i].fault;

                print_message("%s\n", rows[i].what);
                fake_api_set_fault(fake_cluster_api(r->cluster), on_node_patch, &f);
                agent_rig_notice(r, LEAD_USEC);
                agent_rig_run(r, POLL_USEC + rows[i].within_usec);
                assert_true(agent_rig_unschedulable(r));
                agent_rig_run(r, 15 * USEC_PER_SEC);
                assert_phase(r, "Drained");
                assert_non_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
                if (rows[i].said)
                        assert_true(agent_rig_said(r, rows[i].said));
                fake_api_set_fault(fake_cluster_api(r->cluster), NULL, NULL);
        }
}

static KubeNode *node_of_version(AgentRig *r, const char *version) {
        _cleanup_cjson_ cJSON *copy = cJSON_Duplicate(agent_rig_node(r), true);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = NULL;
        KubeObject *o = NULL;

        assert_true(cJSON_ReplaceItemInObject(cJSON_GetObjectItem(copy, "metadata"), "resourceVersion",
                                              cJSON_CreateString(version)));
        text = cJSON_PrintUnformatted(copy);
        assert_return_code(json_parse(text, strlen(text), 1 << 20, &doc, NULL), 0);
        assert_return_code(
                kube_object_decode(&kube_node_kind, json_root(doc), kube_client_pool(r->client), &o), 0);
        return (KubeNode *) o;
}

static void on_cordoned(NodeReport *report, usec_t sent_usec, bool claimed, void *userdata) {
        *(bool *) userdata = claimed;
}

static void on_undone(NodeReport *report, bool uncordoned, void *userdata) {
}

static void on_api(NodeReport *report, const ApiError *error, bool first, void *userdata) {
}

/* After etcd was restored, versions count from an earlier number: what was known looks newer for ever. */
TEST_CASE(test_versions_went_back) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        Notice n = { .id = (char *) "x",
                     .kind = NOTICE_SPOT,
                     .source = (char *) "ec2",
                     .deadline_usec = USEC_INFINITY };
        const NodeWish wish = { .notice = &n, .phase = INTERRUPTION_CORDONED };
        bool cordoned = false;
        const NodeReportHandler handler = { on_cordoned, on_undone, on_api, &cordoned };
        KubeNode *known = node_of_version(r, "999999999");
        NodeReport *report;

        assert_return_code(node_report_new(r->client, RIG_NODE, &handler, &report), 0);
        node_report_see(report, known);
        fake_api_log_reset(fake_cluster_api(r->cluster));
        assert_return_code(node_report_mark(report, &wish), 0);
        agent_rig_run(r, USEC_PER_SEC);
        assert_true(cordoned);
        assert_in_range(fake_api_count_status(fake_cluster_api(r->cluster), FAKE_GET, FAKE_NODES, NULL, 200),
                        1, 2);
        node_report_free(report);
        kube_object_unref(&known->object);
}

/* The delay that is measured ends when the first patch leaves, not when one gets through. */
TEST_CASE(test_cordon_delay) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        PatchFault f = { 3, { .drop = true } };

        fake_api_set_fault(fake_cluster_api(r->cluster), on_node_patch, &f);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_phase(r, "Drained");
        assert_string_equal(r->cordon_delay, "0");
        fake_api_set_fault(fake_cluster_api(r->cluster), NULL, NULL);
}

TEST_CASE(test_notice_before_node) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();

        fake_remove(r->cluster, FAKE_NODES, NULL, RIG_NODE);
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_false(r->ready);
        assert_true(agent_rig_said(r, "There is no Node n1 yet"));
        fake_add_node(r->cluster, RIG_NODE, NULL, RIG_INSTANCE, NULL);
        agent_rig_run(r, USEC_PER_SEC);
        assert_true(r->ready);
        assert_true(agent_rig_unschedulable(r));
}

/* A cordon of ours without its reason, found at a start: what is announced will be announced again. */
TEST_CASE(test_reason_removed_while_down) {
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();

        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        agent_rig_kill(r);
        fake_imds_clear_action(r->imds);
        fake_merge(r->cluster, FAKE_NODES, NULL, RIG_NODE,
                   "{'metadata':{'annotations':{'vesper.sh/interruption':null}}}");
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        assert_true(agent_rig_said(r, "somebody removed or changed their reason"));
        assert_false(agent_rig_unschedulable(r));
        assert_no_marks(r);
        assert_string_equal(agent_phase(r->agent), "Idle");
}

/* What a scraper reads. */
TEST_CASE(test_metrics_page) {
        static const struct {
                HttpMethod method;
                const char *path, *body;
                unsigned status;
        } rows[] = {
                { HTTP_GET, "/healthz", "ok\n", 200 },
                { HTTP_HEAD, "/healthz", "ok\n", 200 },
                { HTTP_GET, "/", "see /metrics and /healthz\n", 404 },
                { HTTP_POST, "/metrics", "only GET\n", 405 },
        };
        _cleanup_(agent_rig_freep) AgentRig *r = calm_rig();
        _cleanup_(metrics_freep) Metrics *m = NULL;
        _cleanup_(evictor_freep) Evictor *e = NULL;
        _cleanup_page_ Page p = { 0 };
        AgentMetricsPage page = { 0 };

        assert_return_code(agent_metrics_new(&m), 0);
        assert_return_code(evictor_new(r->client, NULL, &e), 0);
        page = (AgentMetricsPage){ .metrics = m, .evictor = e };
        metrics_add(m, AGENT_METRIC_POLLS, NOTICE_POLL_UNKNOWN, 3);
        metrics_observe(m, AGENT_METRIC_NOTICE_TO_CORDON, 0, 0.015);
        p = page_ask(agent_metrics_handle, &page, HTTP_GET, "/metrics");
        assert_int_equal(p.status, 200);
        assert_true(startswith(p.type, "text/plain; version=0.0.4"));
        assert_non_null(strstr(p.body, "vesper_agent_polls_total{result=\"unknown\"} 3\n"));
        assert_non_null(strstr(p.body, "vesper_agent_notice_to_cordon_seconds_bucket{le=\"0.02\"} 1\n"));
        assert_non_null(strstr(p.body, "vesper_agent_evictions_total{answer=\"BlockedByPDB\"} 0\n"));
        assert_non_null(strstr(p.body, "vesper_agent_phase{phase=\"lb-wait\"} 0\n"));

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_page_ Page q = page_ask(agent_metrics_handle, &page, rows[i].method, rows[i].path);

                assert_int_equal(q.status, rows[i].status);
                assert_string_equal(q.body, rows[i].body);
        }

        print_message("the health listener tells no metrics\n");
        for (size_t i = 0; i < 2; i++) {
                _cleanup_page_ Page q =
                        page_ask(agent_health_handle, NULL, HTTP_GET, i == 0 ? "/healthz" : "/metrics");

                assert_int_equal(q.status, i == 0 ? 200 : 404);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_calm),
                cmocka_unit_test(test_main_path),
                cmocka_unit_test(test_comes_back_once_drained),
                cmocka_unit_test(test_blocked_until_deadline),
                cmocka_unit_test(test_claim_deadline),
                cmocka_unit_test(test_clock_is_put_right),
                cmocka_unit_test(test_claim_deadline_is_over),
                cmocka_unit_test(test_expired),
                cmocka_unit_test(test_many_of_them),
                cmocka_unit_test(test_reason_removed_while_down),
                cmocka_unit_test(test_volumes),
                cmocka_unit_test(test_person_uncordons),
                cmocka_unit_test(test_marks_of_an_overruled_notice_come_back),
                cmocka_unit_test(test_person_uncordons_no_disk),
                cmocka_unit_test(test_released_before_reboot),
                cmocka_unit_test(test_person_uncordons_unheard),
                cmocka_unit_test(test_person_uncordons_while_down),
                cmocka_unit_test(test_cordon_found),
                cmocka_unit_test(test_coordinator_cordoned_too),
                cmocka_unit_test(test_foreign_label),
                cmocka_unit_test(test_cancelled),
                cmocka_unit_test(test_unknown_cancels_nothing),
                cmocka_unit_test(test_reboot),
                cmocka_unit_test(test_reboot_while_deleted),
                cmocka_unit_test(test_reboot_into_notice),
                cmocka_unit_test(test_reboot_uncordoned_into_notice),
                cmocka_unit_test(test_node_made_anew),
                cmocka_unit_test(test_node_made_anew_while_down),
                cmocka_unit_test(test_crashes),
                cmocka_unit_test(test_pods_left_after_crash), cmocka_unit_test(test_same_status_once), cmocka_unit_test(test_crash_at_any_time),
                cmocka_unit_test(test_drained_once),
                cmocka_unit_test(test_torn_record),
                cmocka_unit_test(test_source_falls_silent),
                cmocka_unit_test(test_failing_disk),
                cmocka_unit_test(test_api_away),
                cmocka_unit_test(test_first_act_fails),
                cmocka_unit_test(test_versions_went_back),
                cmocka_unit_test(test_cordon_delay),
                cmocka_unit_test(test_notice_before_node),
                cmocka_unit_test(test_metrics_page),
        };
        return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
