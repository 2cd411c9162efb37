/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "marks.h"

#define SEC USEC_PER_SEC
#define MANY 3000u
#define MANY_GO 400u

static const cJSON *pool(CoordinatorRig *r) {
        return fake_get(r->cluster, FAKE_NODEPOOLS, NULL, POOL);
}

static int64_t count(CoordinatorRig *r, const char *key) {
        return fj_int(pool(r), -1, "status", key, NULL);
}

static const char *message(CoordinatorRig *r, const char *type) {
        return strempty(fj_string(fj_find(fj_get(pool(r), "status", "conditions", NULL), "type", type), "message", NULL));
}

static void assert_says(CoordinatorRig *r, const char *ready, const char *why_ready, const char *progressing, const char *why) {
        assert_string_equal(rig_condition(pool(r), "Ready"), ready);
        assert_string_equal(rig_condition_reason(pool(r), "Ready"), why_ready);
        assert_string_equal(rig_condition(pool(r), "Progressing"), progressing);
        assert_string_equal(rig_condition_reason(pool(r), "Progressing"), why);
        assert_int_equal(count(r, "observedGeneration"), fj_int(pool(r), 0, "metadata", "generation", NULL));
}

static void assert_counts(CoordinatorRig *r, int64_t nodes, int64_t removing, int64_t blocked) {
        assert_int_equal(count(r, "nodes"), nodes);
        assert_int_equal(count(r, "removing"), removing);
        assert_int_equal(count(r, "blocked"), blocked);
}

static uint64_t writes(CoordinatorRig *r) {
        return fake_api_count(r->api, FAKE_PATCH, FAKE_NODEPOOLS, "status");
}

/* However many come or go at once: a write each two seconds, and those that say that it begins and ends. */
static void assert_writes(CoordinatorRig *r, uint64_t before, usec_t usec, unsigned n) {
        print_message("  %u nodes in %.1f s: %" PRIu64 " writes\n", n, (double) usec / 1e6, writes(r) - before);
        assert_true(writes(r) - before <= usec / (2 * SEC) + 4);
}

TEST_CASE(test_many) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        usec_t begin;
        uint64_t before;

        for (unsigned i = 0; i < MANY; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_add_node(r, name);
        }
        rig_start(r, 0);
        rig_run(r, 3 * SEC);
        before = writes(r);
        begin = loop_now(r->w.loop);
        fake_add_nodepool(r->cluster, POOL, NULL, NULL);
        rig_run(r, 1500 * MSEC);
        assert_says(r, "False", "Adopting", "True", "Adopting");
        while (count(r, "nodes") < MANY || !streq_ptr(rig_condition(pool(r), "Ready"), "True")) {
                rig_run(r, 100 * MSEC);
                assert_true(loop_now(r->w.loop) < begin + 5 * USEC_PER_MINUTE);
        }
        assert_counts(r, MANY, 0, 0);
        assert_says(r, "True", "Idle", "False", "Idle");
        assert_writes(r, before, loop_now(r->w.loop) - begin, MANY);

        before = writes(r);
        begin = loop_now(r->w.loop);
        for (unsigned i = 0; i < MANY_GO; i++) {
                _cleanup_free_ char *name = strf("n%u", i);

                rig_delete_node(r, name);
        }
        rig_run(r, 3 * SEC);
        assert_says(r, "False", "Removing", "True", "Removing");
        while (count(r, "nodes") > MANY - MANY_GO || !streq_ptr(rig_condition(pool(r), "Ready"), "True")) {
                rig_run(r, 100 * MSEC);
                assert_true(loop_now(r->w.loop) < begin + USEC_PER_HOUR);
        }
        assert_says(r, "True", "Idle", "False", "Idle");
        assert_writes(r, before, loop_now(r->w.loop) - begin, MANY_GO);
}

/* A node that cannot be drained stays cordoned and is told of; those behind it go. */
/* etcd is restored to when a node was gone, and the pool did not say so yet. No figure changes then, so only the older version of the pool
 * tells that its status is to be written again. */
TEST_CASE(test_restored) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;

        rig_begin(r, 2, NULL);
        rig_run(r, 10 * SEC);
        assert_counts(r, 2, 0, 0);
        rig_delete_node(r, "n1");
        assert_true(rig_wait_gone(r, "n1", USEC_PER_MINUTE));
        backup = fake_store_backup(fake_cluster_store(r->cluster)); /* the status follows within seconds */
        rig_run(r, 10 * SEC);
        assert_counts(r, 1, 0, 0);

        fake_cluster_restore(r->cluster, backup, 1000000000, SEC);
        assert_int_equal(count(r, "nodes"), 2);
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_counts(r, 1, 0, 0);
}

/* The same of a node that is being removed, and of its claim. */
TEST_CASE(test_restored_removal) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_(fake_backup_freep) FakeBackup *backup = NULL;

        rig_begin(r, 1, NULL);
        fake_add_pod(r->cluster, &(FakePod){ .name = "web", .node = "n0", .stuck = true });
        rig_run(r, SEC);
        rig_delete_node(r, "n0");
        rig_run(r, 300 * USEC_PER_MSEC);
        backup = fake_store_backup(fake_cluster_store(r->cluster));
        rig_run(r, 10 * SEC);
        assert_string_equal(fj_string(rig_claim(r, "n0"), "status", "phase", NULL), "Draining");

        fake_cluster_restore(r->cluster, backup, 1000000000, SEC);
        assert_string_not_equal(strempty(fj_string(rig_claim(r, "n0"), "status", "phase", NULL)), "Draining");
        assert_null(rig_condition(rig_node(r, "n0"), CONDITION_DRAIN_IN_PROGRESS));
        rig_run(r, 5 * USEC_PER_MINUTE);
        assert_string_equal(strempty(rig_condition(rig_node(r, "n0"), CONDITION_DRAIN_IN_PROGRESS)), "True");
        assert_string_equal(fj_string(rig_claim(r, "n0"), "status", "phase", NULL), "Draining");
}

/* The NodePool is edited while nobody leads. The new leader updates observedGeneration also in conditions
 * that are otherwise unchanged. */
TEST_CASE(test_generation_after_restart) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        static const char *const types[] = { "Ready", "Progressing", "Paused" };

        rig_begin(r, 1, NULL);
        for (int64_t generation = 2; generation <= 3; generation++) {
                rig_run(r, 10 * SEC);
                rig_stop(r, 0);
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'generation':%d}}", (int) generation);
                rig_start(r, 0);
                rig_run(r, 10 * SEC);
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "{'metadata':{'annotations':{'" ANNOTATION_PAUSED "':%s}}}",
                           generation == 2 ? "'true'" : "null");
                rig_run(r, 10 * SEC);
                assert_int_equal(count(r, "observedGeneration"), generation);
                for (size_t i = 0; i < ELEMENTSOF(types); i++)
                        assert_int_equal(fj_int(fj_find(fj_get(pool(r), "status", "conditions", NULL), "type", types[i]), -1,
                                                "observedGeneration", NULL),
                                         generation);
        }
}

TEST_CASE(test_stuck) {
        static const struct {
                const char *what, *annotations, *says, *event;
                CloudOutcome outcome;
                usec_t after_usec;
        } rows[] = {
                { "by a protected pod", "{'vesper.sh/do-not-evict':'true'}", "node n0 by pod default/stays, Protected", "DrainBlocked", CLOUD_OK, 30 * SEC },
                { "by its cloud", NULL, "node n0 by its cloud", "TerminationBlocked", CLOUD_PROTECTED, 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 10, NULL);
                rig_run(r, 3 * SEC);
                assert_counts(r, 10, 0, 0);
                rig_machine(r, "n0")->outcome = rows[i].outcome;
                if (rows[i].annotations)
                        fake_add_pod(r->cluster, &(FakePod){ .name = "stays", .node = "n0", .annotations = rows[i].annotations });
                rig_delete_node(r, "n0");
                rig_run(r, 28 * SEC);
                assert_int_equal(count(r, "removing"), 1);
                assert_int_equal(count(r, "blocked"), rows[i].after_usec == 0);
                assert_string_equal(rig_condition_reason(pool(r), "Ready"), rows[i].after_usec == 0 ? "Blocked" : "Removing");
                rig_run(r, 6 * SEC); /* nothing but time tells that */
                assert_counts(r, 10, 1, 1);
                for (unsigned k = 1; k < 9; k++) {
                        _cleanup_free_ char *name = strf("n%u", k);

                        rig_delete_node(r, name);
                }
                rig_run(r, USEC_PER_MINUTE);
                assert_counts(r, 2, 1, 1);
                assert_says(r, "False", "Blocked", "True", "Removing");
                assert_non_null(strstr(message(r, "Ready"), rows[i].says));
                assert_true(rig_has_event(r, "n0", rows[i].event));
                assert_int_equal(rig_metric(r->coordinators[0], "vesper_coordinator_removals_blocked"), 1);
                assert_true(fj_true(rig_node(r, "n0"), "spec", "unschedulable", NULL));
                assert_false(fj_true(rig_node(r, "n9"), "spec", "unschedulable", NULL));

                rig_machine(r, "n0")->outcome = CLOUD_OK;
                if (rows[i].annotations)
                        assert_true(fake_remove(r->cluster, FAKE_PODS, "default", "stays"));
                assert_true(rig_wait_gone(r, "n0", USEC_PER_HOUR));
                rig_run(r, 3 * SEC);
                assert_counts(r, 1, 0, 0);
                assert_says(r, "True", "Idle", "False", "Idle");
        }
}

/* Returns the node whose claim comes first by its name. */
static const char *first_by_claim(CoordinatorRig *r, const char *a, const char *b) {
        const char *of_a = fj_string(rig_claim(r, a), "metadata", "name", NULL),
                   *of_b = fj_string(rig_claim(r, b), "metadata", "name", NULL);

        return strcmp(of_a, of_b) < 0 ? a : b;
}

static void add_held_pod(CoordinatorRig *r, const char *ns, const char *name, const char *node) {
        fake_add_pod(r->cluster, &(FakePod){ .ns = ns, .name = name, .node = node,
                                             .annotations = "{'vesper.sh/do-not-evict':'true'}" });
}

/* The pool names the claim that comes first, and the pod that has held its removal for the longest. */
TEST_CASE(test_held_by) {
        static const struct {
                const char *what;
                const char *first, *second; /* pods that hold n0; the second one 20 s after the first */
                bool at_once, two;          /* both pods in the same second; another node is held, too */
                const char *pod;
        } rows[] = {
                { "the older pod, by its name the last", "zz", "aa", false, false, "default/zz" },
                { "the older pod, by its name the first", "aa", "zz", false, false, "default/aa" },
                { "two pods at the same time", "aa", "zz", true, false, "default/aa" },
                { "two nodes", "aa", "zz", false, true, "default/aa" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
                _cleanup_free_ char *text = NULL;
                const char *node = "n0";

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 3, NULL);
                add_held_pod(r, NULL, rows[i].first, "n0");
                if (rows[i].two)
                        add_held_pod(r, "other", "aa", "n1");
                rig_run(r, SEC);
                if (rows[i].at_once)
                        add_held_pod(r, NULL, rows[i].second, "n0");
                rig_delete_node(r, "n0");
                if (rows[i].two)
                        rig_delete_node(r, "n1");
                rig_run(r, 20 * SEC);
                if (!rows[i].at_once)
                        add_held_pod(r, NULL, rows[i].second, "n0");
                rig_run(r, 40 * SEC);
                assert_counts(r, 3, rows[i].two ? 2 : 1, rows[i].two ? 2 : 1);
                if (rows[i].two)
                        node = first_by_claim(r, "n0", "n1");
                text = MUST(strf("%s held, the others go on: node %s by pod %s, Protected",
                                 rows[i].two ? "Removals are" : "A removal is", node,
                                 streq(node, "n0") ? rows[i].pod : "other/aa"));
                assert_string_equal(message(r, "Ready"), text);
        }
}

/* A fault of the pool makes it not Ready, whatever its nodes do, and is reported for the newest generation. */
TEST_CASE(test_problems) {
        static const struct {
                const char *what, *patch, *reason, *stalled, *back;
        } rows[] = {
                { "a selector that cannot be read",
                  "{'spec':{'selector':{'matchLabels':null,'matchExpressions':[{'key':'a','operator':'Near'}]}}}", "Invalid", "True",
                  "{'spec':{'selector':{'matchLabels':{'vesper.sh/pool':'" POOL "'},'matchExpressions':null}}}" },
                { "a provider that is not its nodes'", "{'spec':{'provider':{'name':'exec'}}}", "NodesNotAdopted", NULL,
                  "{'spec':{'provider':{'name':null}}}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();

                print_message("  %s\n", rows[i].what);
                rig_begin(r, 2, NULL);
                rig_run(r, 3 * SEC);
                assert_says(r, "True", "Idle", "False", "Idle");
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "%s", rows[i].patch);
                rig_add_node(r, "n2");
                rig_run(r, 5 * SEC);
                assert_says(r, "False", rows[i].reason, "False", "Idle");
                assert_true(strlen(message(r, "Ready")) > 0);
                assert_true(streq_ptr(rig_condition(pool(r), "Stalled"), rows[i].stalled));

                print_message("    it is mended\n");
                fake_merge(r->cluster, FAKE_NODEPOOLS, NULL, POOL, "%s", rows[i].back);
                rig_run(r, 5 * SEC);
                assert_counts(r, 3, 0, 0);
                assert_says(r, "True", "Idle", "False", "Idle");
                assert_true(streq_ptr(rig_condition(pool(r), "Stalled"), rows[i].stalled ? "False" : NULL));
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_restored),
                cmocka_unit_test(test_restored_removal),
                cmocka_unit_test(test_generation_after_restart), cmocka_unit_test(test_stuck),
                cmocka_unit_test(test_held_by), cmocka_unit_test(test_problems),
        };

        return cmocka_run_group_tests_name("pool-status", tests, NULL, NULL);
}
