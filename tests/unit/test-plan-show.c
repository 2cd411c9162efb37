/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-rig.h"
#include "plan-show.h"
#include "string-util.h"

TEST_CASE(test_plan_table) {
        char *notes[] = { (char *) "pods are not \033[1mknown", NULL };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rig_plan_cluster);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_table(p, notes);
        assert_non_null(text);
        assert_string_equal(
                text,
                "Of 2027-01-15T08:00:00Z: 4 nodes, 3 pods.\n"
                "Note: pods are not ?[1mknown\n"
                "These would be removed now, in this order:\n"
                "\n"
                "STEP   METHOD                        NODE   POOL   WHY                                         DRAIN\n"
                "1      Emptiness (empty)             a      a      empty since 2027-01-01T00:00:00Z or later   nothing to drain\n"
                "2      Consolidation (single-node)   c      a      its 1 pod fits on other nodes               1 wave, about 30s\n"
                "By the pools' offerings these nodes cost 8, and what takes their place 0.\n"
                "\n"
                "Where pods would find a place:\n"
                "POD   FROM   TO\n"
                "x/q   c      d\n"
                "\n"
                "What stays, and why:\n"
                "NODE   POOL   METHOD          CODE          WHY\n"
                "b      a      Consolidation   NO_CHEAPER    can't replace with a cheaper node: it costs 4, and the cheapest offering of its pool 4 (and 1 more reason)\n"
                "d      -      -               NOT_MANAGED   it is not managed: no NodePool selects it\n"
                "\n"
                "Nothing has been changed: this release plans such removals, and carries none out.\n");
}

/* The table names step, method and drain of several nodes that go together in the first row only. */
TEST_CASE(test_nodes_of_one_step) {
        const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" }, { "c", "8" } },
                               .pods = { { "p", "a", "1" }, { "q", "b", "1" }, { "r1", "c", "1" }, { "r2", "c", "1" } },
                               .pool = RIG_UNDERUTILIZED };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_table(p, NULL);
        rig_expect(text, "1      Consolidation (multi-node)   a      a      its 1 pod fits on other nodes   1 wave, about 30s\n"
                         "-      -                            b      a      its 1 pod fits on other nodes   -\n");
}

/* Twice made it is the same, digest and all; another cluster has another. */
TEST_CASE(test_plan_json) {
        _cleanup_free_ char *first = NULL, *second = NULL, *other = NULL;
        RigCluster changed = rig_plan_cluster;

        changed.pods[2].cpu = "4";
        for (unsigned i = 0; i < 3; i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(i < 2 ? &rig_plan_cluster : &changed);
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                char **at = i == 0 ? &first : i == 1 ? &second : &other;

                assert_return_code(disruption_plan_new(r->scene, &p), 0);
                *at = plan_json(p, NULL);
                assert_non_null(*at);
                assert_return_code(json_parse(*at, strlen(*at), SIZE_MAX, &doc, NULL), 0);
                assert_int_equal(strlen(json_string_or_null(json_get(json_root(doc), "digest"))), 16);
        }
        assert_string_equal(first, second);
        assert_string_not_equal(first, other);
        assert_string_not_equal(first + strlen(first) - 18, other + strlen(other) - 18);
        rig_expect(first, "{\"method\":\"Consolidation\",\"how\":\"single-node\",\"nodes\":[{\"name\":\"c\",\"pool\":\"a\",\"why\":\"its 1 pod fits on other "
                      "nodes\"}],\"moves\":[{\"pod\":\"x/q\",\"from\":\"c\",\"to\":\"d\"}],\"price\":{\"before\":4.000000,\"after\":0.000000},"
                      "\"drain\":{\"pods\":1,\"waves\":1,\"seconds\":30},\"nakedPods\":0}");
        rig_expect(first, "{\"name\":\"d\",\"nearest\":\"Consolidation\",\"lacks\":{\"Consolidation\":[{\"code\":\"NOT_MANAGED\",");
}

TEST_CASE(test_nothing_to_do) {
        const RigCluster c = { .nodes = { { "a", "4" } }, .pool = "" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_table(p, NULL);
        rig_expect(text, "Of 2027-01-15T08:00:00Z: 1 node, 0 pods.\nNo node would be removed now.\n");
        rig_expect(text, "DISABLED");
}

TEST_CASE(test_naked_and_replaced) {
        const RigCluster c = { .nodes = { { "a", "8", RIG_TYPE("l") } },
                               .pods = { { "p", "a", "3", "'labels':{'app':'p'}" } },
                               .pool = "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}},"
                                       "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','zone':'z1','price':1.5,'allocatable':{'cpu':'4'}}]" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL, *json = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_table(p, NULL);
        json = plan_json(p, NULL);
        rig_expect(text, "Step 1 needs one new node first, like s in z1; it would be ready before anything is drained.\n");
        rig_expect(text, "Step 1 ends 1 pod without a controller, which nothing makes anew.\n");
        rig_expect(text, "these nodes cost 4, and what takes their place 1.5.\n");
        rig_expect(json, "\"replacement\":{\"name\":\"new-1\",\"like\":\"s in z1\"},\"price\":{\"before\":4.000000,\"after\":1.500000}");
}

/* Pod w is pending; it has its seat on a by the step before, and finds another one when a goes, too: no move from there, where it never ran. */
TEST_CASE(test_pending_moves) {
        const RigCluster c = { .nodes = { { "a", "4" },
                                          { "b", "4", "'labels':{'pool':'a'},'creationTimestamp':'2026-12-01T00:00:00Z'" },
                                          { "c", "8", "'labels':{'pool':'a'},'creationTimestamp':'" RIG_NOW "'" } },
                               .pods = { { "p", "a", "1" }, { "q", "b", "1" }, { "w", NULL, "1" } },
                               .pool = "'disruption':{'budgets':[],'expireAfter':'100h'}" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL, *json = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        assert_int_equal(p->n_steps, 2);
        text = plan_table(p, NULL);
        json = plan_json(p, NULL);
        assert_non_null(text);
        assert_non_null(json);
        rig_expect(text, "x/w   (pending)   c\n");
        rig_expect(json, "{\"pod\":\"x/w\",\"from\":null,\"pending\":true,\"to\":\"c\"}");
        rig_expect(json, "\"drain\":{\"pods\":1,");
}

/* On a stand p, and the seats of w, which is pending, and of r, whose node is leaving: p alone is drained, and moves from there. */
TEST_CASE(test_waiting_of_what_if) {
        const RigCluster c = { .nodes = { { "a", "4" },
                                          { "b", "4" },
                                          { "c", "4", "'labels':{'pool':'a'},'deletionTimestamp':'" RIG_NOW "','finalizers':['x/y']" } },
                               .pods = { { "p", "a", "1" }, { "w", NULL, "1" }, { "r", "c", "1" } },
                               .pool = "" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        char *names[] = { (char *) "a" };
        _cleanup_free_ char *text = NULL, *json = NULL, *page = NULL;
        const char *unknown;
        WhatIf w;

        assert_return_code(disruption_without(r->scene, names, 1, &w, &unknown), 0);
        text = what_if_table(r->scene, &w, NULL, NULL);
        json = what_if_json(r->scene, &w, NULL, NULL);
        page = what_if_html(r->scene, &w, NULL, NULL);
        rig_expect(text, "Its 1 pod would go in 1 wave");
        rig_expect(text, "x/p   a             b\n");
        rig_expect(text, "x/w   (pending)     b\n");
        rig_expect(text, "x/r   c (leaving)   b\n");
        rig_expect(json, "{\"pod\":\"x/p\",\"from\":\"a\",\"to\":\"b\"}");
        rig_expect(json, "{\"pod\":\"x/w\",\"from\":null,\"pending\":true,\"to\":\"b\"}");
        rig_expect(json, "{\"pod\":\"x/r\",\"from\":\"c\",\"leaving\":true,\"to\":\"b\"}");
        rig_expect(page, "<p class=\"mark\">Could go, 1 pod moves</p>");
        rig_expect(page, "<b>1</b><span>pod to evict");
        rig_expect(page, "<span class=\"figure\">25\xc2\xa0% \xe2\x86\x92 gone</span>"); /* what p asks for, of a */
        rig_expect(page, "2 more pods that wait for a node (pending, or on a node that is leaving already) have places on nodes that go, and find another.");
        rig_expect(page, "<td>x/w</td><td>(pending)</td><td>b</td>");
        rig_expect(page, "<p class=\"mark\">Stays, and takes 3 pods</p>");
        assert_null(strstr(page, "c to b"));
        what_if_done(&w);
}

/* An empty node, on which a pending pod has its seat. */
TEST_CASE(test_seat_of_empty) {
        const RigCluster c = { .nodes = { { "a", "4" }, { "b", "4" } },
                               .pods = { { "w", NULL, "1" }, { "q", "b", "3" } },
                               .pool = "'disruption':{'budgets':[],'emptyAfter':'0s'}" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL, *page = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_table(p, NULL);
        page = plan_html(p, NULL);
        rig_expect(text, "nothing to drain\n");
        rig_expect(text, "x/w   (pending)   b\n");
        rig_expect(page, "1 more pod that waits for a node");
        assert_null(strstr(page, "pod moves"));
        assert_null(strstr(page, "that would have to move finds"));
}

/* A node that runs pods is not said to come nearest to emptiness, whatever else stands against it. */
TEST_CASE(test_nearest) {
        static const struct {
                RigCluster cluster;
                const char *says;
        } rows[] = {
                { { { { "a", "4" }, { "b", "4" } },
                    { { "p", "a", "1" }, { "w", NULL, "1", NULL, NULL, "'phase':'Pending','nominatedNodeName':'a'" }, { "q", "b", "3" } },
                    "'disruption':{'budgets':[],'emptyAfter':'0s','consolidation':{'policy':'WhenUnderutilized'}}" },
                  "\na      a      Consolidation   NOMINATED" },
                { { { { "a", "4", "'labels':{'pool':'a'},'annotations':{'karpenter.sh/do-not-disrupt':'true'}" }, { "b", "4" } }, { { "p", "a", "1" }, { "q", "b", "3" } },
                    "'disruption':{'budgets':[],'emptyAfter':'0s','consolidation':{'policy':'WhenUnderutilized'}}" },
                  "\na      a      Consolidation   NODE_OPT_OUT" },
                { { { { "a", "4" }, { "b", "4" } },
                    { { "p", "a", "1" }, { "w", NULL, "1", NULL, NULL, "'phase':'Pending','nominatedNodeName':'a'" }, { "q", "b", "3" } },
                    "'disruption':{'budgets':[],'emptyAfter':'0s'}" },
                  "\na      a      Emptiness   NOT_EMPTY   it runs 1 pod that would have to move\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rows[i].cluster);
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
                _cleanup_free_ char *text = NULL;

                assert_return_code(disruption_plan_new(r->scene, &p), 0);
                text = plan_table(p, NULL);
                rig_expect(text, rows[i].says);
        }
}

TEST_CASE(test_what_if) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rig_plan_cluster);
        char *names[] = { (char *) "b" }, *many[] = { (char *) "b", (char *) "c" };
        _cleanup_free_ char *text = NULL, *json = NULL, *no = NULL, *no_json = NULL;
        const char *unknown;
        WhatIf w;

        assert_return_code(disruption_without(r->scene, names, 1, &w, &unknown), 0);
        text = what_if_table(r->scene, &w, NULL, NULL);
        json = what_if_json(r->scene, &w, NULL, NULL);
        rig_expect(text, "This node could go: b.\nIts 2 pods would go in 2 waves, in about 1min 30s; pdb x/web is the narrowest.\n");
        rig_expect(json, "\"fits\":true,\"canGo\":true,\"nodes\":[{\"name\":\"b\",\"lacks\":[]}]");
        rig_expect(json, "\"drain\":{\"pods\":2,\"waves\":2,\"pdb\":\"x/web\",\"seconds\":90}");
        what_if_done(&w);

        assert_return_code(disruption_add_nodes(r->scene, "a", 0), 0);
        r->snapshot->is_known[SNAPSHOT_PDBS] = false;
        assert_return_code(disruption_without(r->scene, many, 2, &w, &unknown), 0);
        no = what_if_table(r->scene, &w, NULL, NULL);
        no_json = what_if_json(r->scene, &w, NULL, NULL);
        rig_expect(no, "These could not go as things are, though all their pods would find a place.\n");
        rig_expect(no, "\nNODE   CODE                  WHY\nb      SNAPSHOT_INCOMPLETE   PodDisruptionBudgets were not read");
        rig_expect(no_json, "\"unknown\":[\"poddisruptionbudgets\"]");
        rig_expect(no_json, "\"fits\":true,\"canGo\":false");
        what_if_done(&w);
}

TEST_CASE(test_upgrade) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rig_plan_cluster);
        _cleanup_free_ char *text = NULL, *json = NULL;
        UpgradePlan u;

        assert_return_code(disruption_upgrade(r->scene, "a", &u), 0);
        text = upgrade_table(r->scene, &u, NULL);
        json = upgrade_json(r->scene, &u, NULL);
        rig_expect(text, "To roll NodePool a, each node replaced by one like it: 3 nodes in 1 wave, about 4min 30s");
        rig_expect(text, "1      a, c, b   2 waves, about 1min 30s (pdb x/web)\n");
        rig_expect(json, "\"pool\":\"a\",\"waves\":[{\"nodes\":[\"a\",\"c\",\"b\"],\"newNodes\":3,");
        rig_expect(json, "\"seconds\":270,\"cut\":false,\"blocked\":[],\"digest\":");
        upgrade_plan_done(&u);
}

TEST_CASE(test_longer_than_can_be_told) {
        RigCluster c = rig_plan_cluster;
        _cleanup_(disruption_rig_freep) DisruptionRig *r = NULL, *rolled = NULL;
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL, *json = NULL, *page = NULL, *upgrade = NULL, *upgrade_text = NULL;
        UpgradePlan u;

        c.pods[2].spec = "'terminationGracePeriodSeconds':18446744073710";
        rolled = disruption_rig_new(&c);
        assert_return_code(disruption_upgrade(rolled->scene, "a", &u), 0);
        upgrade = upgrade_json(rolled->scene, &u, NULL);
        upgrade_text = upgrade_table(rolled->scene, &u, NULL);
        rig_expect(upgrade, "\"pdb\":\"x/web\"}}],\"cut\":false"); /* seconds of neither */
        rig_expect(upgrade_text, "3 nodes in 1 wave, longer than can be told with 3min");
        upgrade_plan_done(&u);
        r = disruption_rig_new(&c);
        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_table(p, NULL);
        json = plan_json(p, NULL);
        page = plan_html(p, NULL);
        rig_expect(text, "its 1 pod fits on other nodes               1 wave, longer than can be told\n");
        rig_expect(json, "\"drain\":{\"pods\":1,\"waves\":1},\"nakedPods\":0}");
        rig_expect(page, "<b>longer than can be told</b><span>to drain");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plan_table), cmocka_unit_test(test_nodes_of_one_step),        cmocka_unit_test(test_plan_json), cmocka_unit_test(test_nothing_to_do),
                cmocka_unit_test(test_naked_and_replaced), cmocka_unit_test(test_waiting_of_what_if), cmocka_unit_test(test_seat_of_empty), cmocka_unit_test(test_nearest),
                cmocka_unit_test(test_what_if),   cmocka_unit_test(test_upgrade), cmocka_unit_test(test_longer_than_can_be_told),
                cmocka_unit_test(test_pending_moves),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
