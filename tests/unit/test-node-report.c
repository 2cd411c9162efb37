/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "agent-rig.h"
#include "cmocka-test.h"
#include "json.h"
#include "node-report.h"

/* A report of its own beside an agent that has nothing to do: what it makes of answers that come late, of a
 * Node that is another or none, and of news while it waits. */

#define LEAD_USEC (120 * USEC_PER_SEC)

typedef struct Bench {
        AgentRig *rig;
        NodeReport *report;
        unsigned n_cordoned, n_errors, n_undone;
        bool claimed, expects_undone;
} Bench;

static void on_cordoned(NodeReport *report, usec_t sent_usec, bool claimed, void *userdata) {
        Bench *b = userdata;

        b->n_cordoned++;
        b->claimed = claimed;
}

static void on_undone(NodeReport *report, bool uncordoned, void *userdata) {
        Bench *b = userdata;

        assert_true(b->expects_undone);
        b->n_undone++;
}

static void on_api(NodeReport *report, const ApiError *error, bool first, void *userdata) {
        Bench *b = userdata;

        b->n_errors += error != NULL;
}

static KubeNode *node_now(AgentRig *r) {
        _cleanup_free_ char *text = cJSON_PrintUnformatted(agent_rig_node(r));
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        KubeObject *o = NULL;

        assert_return_code(json_parse(text, strlen(text), 1 << 20, &doc, NULL), 0);
        assert_return_code(
                kube_object_decode(&kube_node_kind, json_root(doc), kube_client_pool(r->client), &o), 0);
        return (KubeNode *) o;
}

static void see(Bench *b) {
        KubeNode *n = node_now(b->rig);

        node_report_see(b->report, n);
        kube_object_unref(&n->object);
}

static void bench_init(Bench *b) {
        const NodeReportHandler handler = { on_cordoned, on_undone, on_api, b };

        *b = (Bench){ .rig = agent_rig_new() };
        b->rig->config.metadata_source = METADATA_SOURCE_NONE;
        agent_rig_start(b->rig);
        agent_rig_run(b->rig, USEC_PER_SEC);
        assert_return_code(node_report_new(b->rig->client, RIG_NODE, &handler, &b->report), 0);
        see(b);
        fake_api_log_reset(fake_cluster_api(b->rig->cluster));
}

static void bench_done(Bench *b) {
        fake_api_set_fault(fake_cluster_api(b->rig->cluster), NULL, NULL);
        node_report_free(b->report);
        agent_rig_free(b->rig);
}
#define _cleanup_bench_ _cleanup_(bench_done)

static void mark(Bench *b, const char *phase) {
        Notice n = { .id = (char *) (uintptr_t) "x",
                     .kind = NOTICE_SPOT,
                     .source = (char *) (uintptr_t) "ec2",
                     .deadline_usec = usec_add(loop_now(b->rig->loop), LEAD_USEC) };
        const NodeWish wish = { .notice = &n,
                                .phase = interruption_phase_from_string(phase),
                                .conditions = streq(phase, "Draining") ? NODE_CONDITIONS_DRAINING
                                                                       : NODE_CONDITIONS_NONE };

        assert_return_code(node_report_mark(b->report, &wish), 0);
}

static const char *message_of(Bench *b, const char *type) {
        return fj_string(fj_find(fj_get(agent_rig_node(b->rig), "status", "conditions", NULL), "type", type), "message", NULL);
}

static uint64_t n_gets(Bench *b, unsigned status) {
        return fake_api_count_status(fake_cluster_api(b->rig->cluster), FAKE_GET, FAKE_NODES, NULL, status);
}

/* The condition MaintenancePlanned has the plan's message, and the message of the wait once the node waits
 * for load balancers. The agent writes each message once. */
TEST_CASE(test_planned_then_waits_for_load_balancers) {
        static const char planned[] = " moves pods away in an hour", waits[] = "is about to move pods away";
        _cleanup_bench_ Bench b;
        Notice n = { .id = (char *) (uintptr_t) "x", .kind = NOTICE_MAINTENANCE,
                     .source = (char *) (uintptr_t) "ec2", .deadline_usec = USEC_INFINITY };
        const NodeWish wish = { .notice = &n, .phase = INTERRUPTION_CORDONED, .conditions = NODE_CONDITIONS_PLANNED, .message = waits };
        const FakeApi *api;

        bench_init(&b);
        api = fake_cluster_api(b.rig->cluster);
        assert_return_code(node_report_plan(b.report, NOTICE_MAINTENANCE, planned), 0);
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_string_equal(message_of(&b, "MaintenancePlanned"), "vesper-agent moves pods away in an hour");
        for (unsigned i = 0; i < 3; i++) {
                assert_return_code(node_report_mark(b.report, &wish), 0);
                agent_rig_run(b.rig, 10 * USEC_PER_SEC);
        }
        assert_string_equal(message_of(&b, "MaintenancePlanned"), waits);
        assert_int_equal(fake_api_count_status(api, FAKE_PATCH, FAKE_NODES, "status", 200), 2);
}

/* A notice that replaces another one in the middle of the drain, or after it, has a message of its own. */
TEST_CASE(test_message_of_another_notice) {
        static const struct {
                DrainConditions conditions;
                InterruptionPhase phase;
        } rows[] = { { NODE_CONDITIONS_DRAINING, INTERRUPTION_DRAINING }, { NODE_CONDITIONS_DRAINED, INTERRUPTION_DRAINED } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Notice notices[] = { { .id = (char *) (uintptr_t) "x", .kind = NOTICE_MAINTENANCE }, { .id = (char *) (uintptr_t) "y", .kind = NOTICE_SPOT } };
                static const char *const messages[] = { "vesper-agent: it reboots", "vesper-agent: it ends" };
                _cleanup_bench_ Bench b;

                bench_init(&b);
                for (size_t k = 0; k < 2; k++) {
                        notices[k].source = (char *) (uintptr_t) "ec2";
                        notices[k].deadline_usec = USEC_INFINITY;
                        assert_return_code(node_report_mark(b.report, &(NodeWish){ .notice = notices + k,
                                                                                   .phase = rows[i].phase,
                                                                                   .conditions = rows[i].conditions,
                                                                                   .message = messages[k] }),
                                           0);
                        agent_rig_run(b.rig, 10 * USEC_PER_SEC);
                        assert_string_equal(message_of(&b, "DrainInProgress"), messages[k]);
                        assert_string_equal(message_of(&b, "MaintenanceInProgress"), messages[k]);
                }
                agent_rig_run(b.rig, USEC_PER_MINUTE);
                assert_int_equal(fake_api_count_status(fake_cluster_api(b.rig->cluster), FAKE_PATCH, FAKE_NODES, "status", 200), 2);
        }
}

/* The cordoned Node was another one of that name. */
TEST_CASE(test_node_made_anew) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        mark(&b, "Cordoned");
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_int_equal(b.n_cordoned, 1);
        fake_remove(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE);
        fake_add_node(b.rig->cluster, RIG_NODE, NULL, RIG_INSTANCE, NULL);
        assert_false(agent_rig_unschedulable(b.rig));
        mark(&b, "Draining");
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_in_range(n_gets(&b, 200), 1, 3);
        assert_int_equal(b.n_cordoned, 2);
        assert_true(agent_rig_unschedulable(b.rig));
}

/* etcd is restored from a backup of before the notice: what stood there is said again. That a person un-cordoned is
 * told by marks that are still there. */
TEST_CASE(test_etcd_restored) {
        _cleanup_bench_ Bench b;
        _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;

        bench_init(&b);
        backup = fake_store_backup(fake_cluster_store(b.rig->cluster));
        mark(&b, "Cordoned");
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_int_equal(b.n_cordoned, 1);
        assert_true(node_report_is_cordoned(b.report));

        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
        see(&b);
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_int_equal(b.n_cordoned, 1);
        assert_false(agent_rig_unschedulable(b.rig));

        fake_cluster_restore(b.rig->cluster, backup, 0, USEC_PER_SEC);
        assert_false(agent_rig_unschedulable(b.rig));
        agent_rig_run(b.rig, 2 * USEC_PER_SEC);
        node_report_read(b.report); /* its version is below what was seen: so it is asked for */
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_int_equal(b.n_cordoned, 2);
        assert_true(agent_rig_unschedulable(b.rig));
        assert_true(node_report_is_cordoned(b.report));
}

/* At a patch of the Node. */
typedef struct Meddling {
        AgentRig *rig;
        unsigned n_patches;
        bool removes;      /* the first is refused, and then the Node is gone */
        bool busy;         /* the second is told to come back in 20 s */
        bool loses_answer; /* the first lands, its answer is lost; before the second a person un-cordons */
} Meddling;

static void on_patch(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        Meddling *m = userdata;

        if (request->verb != FAKE_PATCH || !request->resource || request->resource->id != FAKE_NODES ||
            request->subresource)
                return;
        m->n_patches++;
        if (m->removes && m->n_patches == 1) {
                ret_fault->status = 409;
                fake_remove(m->rig->cluster, FAKE_NODES, NULL, RIG_NODE);
        } else if (m->loses_answer && m->n_patches == 1)
                *ret_fault = (FakeApiFault){ .drop = true, .takes_effect = true };
        else if (m->busy && m->n_patches == 2)
                *ret_fault = (FakeApiFault){ .status = 429, .retry_after_sec = 20 };
        else if (m->loses_answer && m->n_patches == 2)
                fake_merge(m->rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'spec':{'unschedulable':null}}");
}

TEST_CASE(test_node_goes) {
        _cleanup_bench_ Bench b;
        Meddling m = { .removes = true };

        bench_init(&b);
        m.rig = b.rig;
        fake_api_set_fault(fake_cluster_api(b.rig->cluster), on_patch, &m);
        mark(&b, "Cordoned");
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_int_equal(n_gets(&b, 404), 1);
        assert_null(node_report_view(b.report));
        agent_rig_run(b.rig, USEC_PER_MINUTE);
        assert_int_equal(m.n_patches, 1); /* nothing to write on */

        fake_add_node(b.rig->cluster, RIG_NODE, NULL, RIG_INSTANCE, NULL);
        see(&b);
        agent_rig_run(b.rig, USEC_PER_SEC);
        assert_int_equal(b.n_cordoned, 1);
        assert_true(agent_rig_unschedulable(b.rig));
}

/* Another due change is no reason to try before the time that the server asked for. */
TEST_CASE(test_due_in_a_wait) {
        _cleanup_bench_ Bench b;
        Meddling m = { .busy = true };

        bench_init(&b);
        m.rig = b.rig;
        fake_api_set_fault(fake_cluster_api(b.rig->cluster), on_patch, &m);
        mark(&b, "Cordoned");
        agent_rig_run(b.rig, USEC_PER_MSEC);
        assert_int_equal(b.n_cordoned, 1);
        mark(&b, "Draining");
        agent_rig_run(b.rig, 19 * USEC_PER_SEC);
        assert_int_equal(m.n_patches, 2);
        agent_rig_run(b.rig, 2 * USEC_PER_SEC);
        assert_int_equal(m.n_patches, 3);
        assert_non_null(strstr(agent_rig_annotation(b.rig, "vesper.sh/interruption"), "Draining"));
}

/* The cordon landed, its answer was lost, and the watch is late: when the Node is read again, a person has
 * un-cordoned it. Their word holds. */
TEST_CASE(test_uncordoned_before_the_answer) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        Meddling m = { .rig = r, .loses_answer = true };

        agent_rig_add_pods(r, "web", 2);
        agent_rig_start(r);
        agent_rig_run(r, 10 * USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(r->cluster), on_patch, &m);
        fake_api_stall_watches(fake_cluster_api(r->cluster),
                               usec_add(virtual_time_now(r->world.time), 5 * USEC_PER_SEC));
        agent_rig_notice(r, LEAD_USEC);
        agent_rig_run(r, 30 * USEC_PER_SEC);
        fake_api_set_fault(fake_cluster_api(r->cluster), NULL, NULL);
        assert_true(m.n_patches >= 2);
        assert_false(agent_rig_unschedulable(r));
        assert_non_null(strstr(agent_rig_annotation(r, "vesper.sh/interruption"), "Released"));
        assert_null(agent_rig_annotation(r, "vesper.sh/cordoned-by-agent"));
        assert_non_null(strstr(r->record, "Released"));
        assert_int_equal(agent_rig_n_pods(r), 2);
}

/* Answers overtake the watch, so an older Node is not taken; but where the informer itself goes back, etcd was restored. */
TEST_CASE(test_older_nodes) {
        static const struct {
                const char *versions[3]; /* as the informer brings them */
                const char *view;
        } rows[] = {
                { { "900", "901", "902" }, "902" },
                { { "900", "900", "900" }, "900" },
                { { "900", "950", "700" }, "700" },
                { { "900", "700", "800" }, "800" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Bench b;

                bench_init(&b);
                for (size_t k = 0; k < ELEMENTSOF(rows[i].versions); k++) {
                        KubeNode *n = node_now(b.rig);

                        assert_return_code(free_and_strdup(&n->object.meta.resource_version, rows[i].versions[k]), 0);
                        node_report_see(b.report, n);
                        kube_object_unref(&n->object);
                }
                assert_string_equal(node_report_view(b.report)->object.meta.resource_version, rows[i].view);
                bench_done(&b);
        }
}

TEST_CASE(test_listed) {
        static const struct {
                const char *known, *shown, *list, *view;
        } rows[] = {
                { "228", "217", "1000000229", "217" }, /* restored, with a bump */
                { "228", "217", "220", "228" },        /* the list left before the answer */
                { "228", "217", "228", "217" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                KubeNode *shown;
                Bench b;

                bench_init(&b);
                shown = node_now(b.rig);
                assert_return_code(free_and_strdup(&shown->object.meta.resource_version, rows[i].shown), 0);
                node_report_see(b.report, shown);
                {
                        KubeNode *n = node_now(b.rig);

                        assert_return_code(free_and_strdup(&n->object.meta.resource_version, rows[i].known), 0);
                        node_report_see(b.report, n);
                        kube_object_unref(&n->object);
                }
                node_report_listed(b.report, shown, rows[i].list);
                assert_string_equal(node_report_view(b.report)->object.meta.resource_version, rows[i].view);
                kube_object_unref(&shown->object);
                bench_done(&b);
        }
}

/* etcd is restored to what the informer saw last: it does not go back, and will not reach what an answer brought. */
TEST_CASE(test_restored_to_what_the_informer_knows) {
        _cleanup_bench_ Bench b;
        _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;

        bench_init(&b);
        b.expects_undone = true;
        mark(&b, "Cordoned");
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        see(&b);
        backup = fake_store_backup(fake_cluster_store(b.rig->cluster));
        for (unsigned i = 0; i < 100; i++) /* the restored etcd does not come to the version of the answer */
                fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'labels':{'a':'%u'}}}", i);
        node_report_unmark(b.report);
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        assert_int_equal(b.n_undone, 1);
        assert_false(node_has_marks(node_report_view(b.report)));

        fake_cluster_restore(b.rig->cluster, backup, 0, 0);
        agent_rig_run(b.rig, 2 * USEC_PER_SEC);
        fake_merge(b.rig->cluster, FAKE_NODES, NULL, RIG_NODE, "{'metadata':{'labels':{'a':'b'}}}");
        see(&b);
        agent_rig_run(b.rig, 2 * USEC_PER_MINUTE);
        assert_true(node_has_marks(node_report_view(b.report)));

        print_message("  and it is not read again\n");
        fake_api_log_reset(fake_cluster_api(b.rig->cluster));
        agent_rig_run(b.rig, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_gets(&b, 200), 0);
}

/* The watch is mute, and nothing is restored: one read in a minute, for as long as that lasts. */
TEST_CASE(test_informer_is_behind) {
        _cleanup_bench_ Bench b;

        bench_init(&b);
        mark(&b, "Cordoned");
        agent_rig_run(b.rig, 5 * USEC_PER_SEC);
        fake_api_log_reset(fake_cluster_api(b.rig->cluster));
        agent_rig_run(b.rig, 10 * USEC_PER_MINUTE);
        assert_in_range(n_gets(&b, 200), 9, 10);
        assert_int_equal(b.n_cordoned, 1);
        see(&b);
        fake_api_log_reset(fake_cluster_api(b.rig->cluster));
        agent_rig_run(b.rig, 10 * USEC_PER_MINUTE);
        assert_int_equal(n_gets(&b, 200), 0);
        assert_int_equal(b.n_errors, 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_restored_to_what_the_informer_knows),
                cmocka_unit_test(test_informer_is_behind),
                cmocka_unit_test(test_older_nodes),
                cmocka_unit_test(test_listed),
                cmocka_unit_test(test_planned_then_waits_for_load_balancers),
                cmocka_unit_test(test_message_of_another_notice),
                cmocka_unit_test(test_node_made_anew),
                cmocka_unit_test(test_etcd_restored),
                cmocka_unit_test(test_node_goes),
                cmocka_unit_test(test_due_in_a_wait),
                cmocka_unit_test(test_uncordoned_before_the_answer),
        };
        return cmocka_run_group_tests_name("node-report", tests, NULL, NULL);
}
