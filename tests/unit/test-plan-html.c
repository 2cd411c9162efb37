/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cmocka-test.h"
#include "disruption-rig.h"
#include "markup-text.h"
#include "plan-page.h"
#include "plan-show.h"
#include "string-util.h"
#include "texts.h"

#define NBSP "\xc2\xa0"
#define DAEMON "'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'o','controller':true}]"
#define ARROW " \xe2\x86\x92 "

/* -- text ----------------------------------------------------------------------------------------------- */

TEST_CASE(test_text) {
        static const struct {
                const char *from, *to;
        } rows[] = {
                { "", "" },
                { "ip-10-0-0-1.eu", "ip-10-0-0-1.eu" },
                { "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;" },
                { "\" onload=\"x", "&quot; onload=&quot;x" },
                { "it's & co", "it&#39;s &amp; co" },
                { "&lt;", "&amp;lt;" },
                { "]]>", "]]&gt;" },
                { "a\033[1mb\001\177c\r\n\td", "a?[1mb??c???d" },
                { "\xc2\x85x", "?x" },                  /* C1 */
                { "\xe2\x80\xaex", "?x" },              /* right-to-left override */
                { "gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x99\x82", "gr\xc3\xbc\xc3\x9f\xe2\x82\xac\xf0\x9f\x99\x82" },
                { "a\xff\xfe!", "a?" "?!" },
                { "a\xc3", "a?" },                      /* cut */
                { "a\xf0\x9f", "a??" },
                { "\xc0\xbc", "??" },                   /* overlong < */
                { "\xed\xa0\x80", "???" },              /* a surrogate */
                { "\xef\xbf\xbe\xef\xbf\xbf!", "?" "?!" }, /* what XML forbids */
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf b = {};

                markup_add_text(&b, rows[i].from, SIZE_MAX);
                assert_string_equal(strbuf_str(&b), rows[i].to);
        }
}

TEST_CASE(test_text_is_cut) {
        _cleanup_strbuf_ StrBuf b = {};

        markup_add_text(&b, "\xc3\xbc<\xc3\xbcx", 3);
        markup_add_text(&b, "abc", 3);
        markup_add_textf(&b, 2, "%s/%s", "n", "<p>");
        assert_string_equal(strbuf_str(&b), "\xc3\xbc&lt;\xc3\xbc\xe2\x80\xa6" "abc" "n/\xe2\x80\xa6");
}

/* -- figures -------------------------------------------------------------------------------------------- */

static void check_node(const DisruptionRig *r, const PlanPage *p, const char *name, PageRole role, int64_t before, int64_t after, size_t n_out, size_t n_in) {
        const PageNode *n = page_node(p, rig_number(r, name));

        print_message("  %s\n", name);
        assert_non_null(n);
        assert_string_equal(n->name, name);
        assert_int_equal(n->role, role);
        assert_int_equal(n->cpu.before, before);
        assert_int_equal(n->cpu.after, after);
        assert_int_equal(n->n_out, n_out);
        assert_int_equal(n->n_in, n_in);
}

/* The plan has been carried out in the simulator when its page is made; what is said of before is as it was. */
TEST_CASE(test_rooms_of_plan) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rig_plan_cluster);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_(plan_page_done) PlanPage page = {};
        int64_t before[4];

        for (uint32_t i = 0; i < 4; i++)
                before[i] = 4000 - simulator_free_room(r->simulator, i, "cpu");
        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        assert_return_code(plan_page_of_plan(p, NULL, &page), 0);
        assert_int_equal(page.n_nodes, 4);
        assert_int_equal(page.n_moves, 1);
        check_node(r, &page, "a", PAGE_GOES, 0, 0, 0, 0);
        check_node(r, &page, "b", PAGE_STAYS, 2000, 2000, 0, 0);
        check_node(r, &page, "c", PAGE_GOES, 3000, 0, 1, 0);
        check_node(r, &page, "d", PAGE_TAKES, 0, 3000, 0, 1);
        for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(page_node(&page, i)->cpu.before, before[i]);
        /* by pool, those that go first; without a pool last */
        assert_string_equal(page.nodes[0].name, "a");
        assert_string_equal(page.nodes[1].name, "c");
        assert_string_equal(page.nodes[2].name, "b");
        assert_string_equal(page.nodes[3].name, "d");
}

TEST_CASE(test_rooms_of_what_if) {
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rig_plan_cluster);
        char *names[] = { (char *) "b" };
        const char *unknown;

        for (unsigned refused = 0; refused < 2; refused++) {
                _cleanup_(plan_page_done) PlanPage page = {};
                WhatIf w;

                r->snapshot->is_known[SNAPSHOT_PDBS] = !refused;
                assert_return_code(disruption_without(r->scene, names, 1, &w, &unknown), 0);
                assert_return_code(plan_page_of_what_if(r->scene, &w, NULL, NULL, &page), 0);
                if (refused) {
                        check_node(r, &page, "b", PAGE_REFUSED, 2000, 2000, 0, 0);
                        check_node(r, &page, "a", PAGE_STAYS, 0, 0, 0, 0);
                        assert_non_null(page_node(&page, rig_number(r, "b"))->lacks);
                } else {
                        check_node(r, &page, "b", PAGE_GOES, 2000, 0, 2, 0);
                        check_node(r, &page, "a", PAGE_TAKES, 0, 2000, 0, 2);
                }
                what_if_done(&w);
        }
}

/* The pods of DaemonSets that a new node begins with are not there before the plan. */
TEST_CASE(test_new_node_was_empty) {
        const RigCluster c = { .nodes = { { "a", "8", RIG_TYPE("l") } },
                               .pods = { { "p", "a", "3" }, { "d", "a", "0.5", DAEMON } },
                               .pool = "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}},"
                                       "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','zone':'z1','price':1.5,'allocatable':{'cpu':'4'}}]" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_(plan_page_done) PlanPage page = {};

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        assert_return_code(plan_page_of_plan(p, NULL, &page), 0);
        check_node(r, &page, "a", PAGE_GOES, 3500, 0, 1, 0);
        for (size_t i = 0; i < page.n_nodes; i++)
                if (page.nodes[i].role == PAGE_NEW) {
                        assert_int_equal(page.nodes[i].cpu.before, 0);
                        assert_int_equal(page.nodes[i].cpu.after, 3500);
                        assert_int_equal(page.nodes[i].n_in, 1);
                        return;
                }
        fail_msg("no new node");
}

/* -- pages ---------------------------------------------------------------------------------------------- */

TEST_CASE(test_plan) {
        char *notes[] = { (char *) "pods are <not> \033known", NULL };
        _cleanup_free_ char *first = NULL, *second = NULL;

        for (unsigned i = 0; i < 2; i++) {
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&rig_plan_cluster);
                _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
                char **at = i == 0 ? &first : &second;

                assert_return_code(disruption_plan_new(r->scene, &p), 0);
                *at = plan_html(p, notes);
                assert_non_null(*at);
        }
        assert_string_equal(first, second);
        rig_expect(first, "<h1>2 of 4 nodes would be removed now</h1>");
        rig_expect(first, "<p class=\"note\">pods are &lt;not&gt; ?known</p>");
        rig_expect(first, "<b>4" ARROW "2</b><span>nodes</span>");
        rig_expect(first, "<b>31" NBSP "%" ARROW "63" NBSP "%</b><span>of the nodes&#39; CPU");
        rig_expect(first, "<b>8 saved</b>");
        rig_expect(first, "Goes in step 1: Emptiness (empty)</p>");
        rig_expect(first, "Goes in step 2: Consolidation (single-node), 1 pod moves in 1 wave</p>");
        rig_expect(first, "CPU: its pods ask for 3 of 4 cores\"");
        rig_expect(first, "<i class=\"leave\" style=\"width:75.0%\"></i></span><span class=\"figure\">75" NBSP "%" ARROW "gone</span>");
        rig_expect(first, "<i class=\"come\" style=\"width:75.0%\"></i></span><span class=\"figure\">0" NBSP "%" ARROW "75" NBSP "%</span>");
        rig_expect(first, "<td>x/q</td><td>c</td><td>d</td>");
        rig_expect(first, "<code>NO_CHEAPER</code></td>");
        rig_expect(first, "<code>NOT_MANAGED</code></td>");
        assert_int_equal(text_count(first, "<article "), 4);
        assert_int_equal(text_count(first, "<g class=\"move\">"), 1);
        assert_null(strstr(first, "<script"));
        assert_null(strstr(first, "src="));
        assert_null(strstr(first, "url("));
}

TEST_CASE(test_nothing_to_do) {
        const RigCluster c = { .nodes = { { "a", "4" } }, .pool = "" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_html(p, NULL);
        rig_expect(text, "<h1>No node of 1 would be removed now</h1>");
        rig_expect(text, "<code>DISABLED</code>");
        assert_null(strstr(text, "<svg"));
        assert_null(strstr(text, "In this order"));
}

TEST_CASE(test_new_and_naked) {
        const RigCluster c = { .nodes = { { "a", "8", RIG_TYPE("l") } },
                               .pods = { { "p", "a", "3", "'labels':{'app':'p'}" } },
                               .pool = "'disruption':{'budgets':[],'consolidation':{'policy':'WhenUnderutilized'}},"
                                       "'offerings':[{'instanceType':'l','price':4},{'instanceType':'s','zone':'z1','price':1.5,'allocatable':{'cpu':'4'}}]" };
        _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
        _cleanup_(disruption_plan_freep) DisruptionPlan *p = NULL;
        _cleanup_free_ char *text = NULL;

        assert_return_code(disruption_plan_new(r->scene, &p), 0);
        text = plan_html(p, NULL);
        rig_expect(text, "<b>1" ARROW "1</b><span>nodes, 1 of them new</span>");
        rig_expect(text, "<article class=\"node new\"><h4 title=\"new-1\">new-1</h4><p class=\"mark\">New, first of step 1</p>");
        rig_expect(text, "new" ARROW "75" NBSP "%");
        rig_expect(text, "like s in z1");
        rig_expect(text, "1 without a controller would not come again");
        rig_expect(text, "<b>2.5 saved</b>");
}

TEST_CASE(test_what_if) {
        static const struct {
                const char *what, *node, *annotations;
                const char *says;
                const char *ready, *others_cpu; /* of b; NULL: True, 4 */
        } rows[] = {
                { "goes", "b", "", "<h1>This node could go</h1>" },
                { "goes, on the card", "b", "", "<p class=\"mark\">Could go, 1 pod moves</p>" },
                { "refused", "b", ",'annotations':{'vesper.sh/do-not-evict':'true'}", "<h1>This node could not go now</h1>" },
                { "refused, on the card", "b", ",'annotations':{'vesper.sh/do-not-evict':'true'}",
                  "<p class=\"mark\">Could not go now</p>" },
                { "the reason", "b", ",'annotations':{'vesper.sh/do-not-evict':'true'}",
                  "Why not: a pod forbids its own eviction</p>" },
                { "broken, and not new", "b", "", "Why not: it is not Ready, or still has a taint of new nodes</p>", .ready = "False" },
                { "no room elsewhere", "b", "", "Why not: not all of its pods have a place elsewhere</p>", .others_cpu = "500m" },
                { "what is not asked about has no reason", "b", "", "<p class=\"mark\">Stays</p>" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *meta = strf("'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'p','uid':'o','controller':true}]%s",
                                                 rows[i].annotations);
                const RigCluster c = { .nodes = { { "a", rows[i].others_cpu ?: "4" }, { "b", "4", .ready = rows[i].ready }, { "c", rows[i].others_cpu ?: "4" } },
                                       .pods = { { "p", "b", "1", meta } }, .pool = "" };
                _cleanup_(disruption_rig_freep) DisruptionRig *r = disruption_rig_new(&c);
                char *names[] = { (char *) rows[i].node };
                _cleanup_free_ char *text = NULL;
                const char *unknown;
                WhatIf w;

                print_message("  %s\n", rows[i].what);
                assert_return_code(disruption_without(r->scene, names, 1, &w, &unknown), 0);
                text = what_if_html(r->scene, &w, NULL, NULL);
                assert_non_null(text);
                rig_expect(text, rows[i].says);
                what_if_done(&w);
        }
}

/* Each code has its words, and no two the same. */
TEST_CASE(test_words) {
        for (GateCode c = 0; c < _GATE_CODE_MAX; c++) {
                assert_non_null(page_code_words(c));
                for (GateCode k = 0; k < c; k++)
                        assert_string_not_equal(page_code_words(c), page_code_words(k));
        }
        for (PlanMethod m = 0; m < _PLAN_METHOD_MAX; m++)
                assert_non_null(page_method_words(m));
        assert_int_equal(page_percent(1, 0), -1);
        assert_int_equal(page_percent(1, 3), 33);
        assert_int_equal(page_percent(INT64_MAX / 2, INT64_MAX), 50);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_text),          cmocka_unit_test(test_text_is_cut),   cmocka_unit_test(test_rooms_of_plan),
                cmocka_unit_test(test_rooms_of_what_if), cmocka_unit_test(test_new_node_was_empty), cmocka_unit_test(test_plan),       cmocka_unit_test(test_new_and_naked),
                cmocka_unit_test(test_what_if),       cmocka_unit_test(test_words), cmocka_unit_test(test_nothing_to_do),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
