/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "cmocka-test.h"
#include "ctl-cordon.h"
#include "ctl-drain.h"
#include "ctl-rig.h"
#include "ctl-verbs.h"
#include "fake-date.h"
#include "marks.h"

#define SEC USEC_PER_SEC

/* -- pure: words and when they are said ----------------------------------------------------------------- */

static const DrainBlocker going = { .ns = "shop", .name = "old", .uid = "1", .wait = POD_WAIT_TERMINATING, .detail = "",
                                    .message = "", .since_usec = 10 * SEC },
                          blocked = { .ns = "shop", .name = "web-1", .uid = "2", .wait = POD_WAIT_PDB,
                                      .detail = "web", .message = "needs 3", .since_usec = 65 * SEC },
                          later = { .ns = "shop", .name = "web-2", .uid = "3", .wait = POD_WAIT_PDB,
                                    .detail = "web", .message = "needs 3", .since_usec = 70 * SEC },
                          kept = { .ns = "x", .name = "job", .uid = "4", .wait = POD_WAIT_PROTECTED,
                                   .detail = "vesper.sh/do-not-evict", .message = "", .since_usec = 90 * SEC };

TEST_CASE(test_lines) {
        const DrainBlocker left[] = { going, later, blocked }, held[] = { blocked, kept }, strange[] = {
                { .ns = "a\x1b[2J", .name = "b\r", .uid = "5", .wait = POD_WAIT_TERMINATING, .detail = "", .message = "" } };
        const struct {
                DrainProgress p;
                const char *line, *stopped;
        } rows[] = {
                { { .node = "n", .state = CTL_DRAIN_READING }, "n: being read", "node n was not touched" },
                { { .node = "n", .state = CTL_DRAIN_CORDONING },
                  "n: being cordoned",
                  "node n may have been cordoned: 'vesperctl undrain n' opens it" },
                { { .node = "n", .state = CTL_DRAIN_LISTING, .is_cordoned = true, .is_ours = true },
                  "n: cordoned, its pods are being listed",
                  "node n stays cordoned; no pod was evicted; 'vesperctl undrain n' opens it" },
                { { .node = "n", .state = CTL_DRAIN_DRAINING, .is_cordoned = true, .is_ours = true, .left = left, .n_left = 3 },
                  "n: draining, 3 pods left; pod shop/web-1: BlockedByPDB web for 35s (needs 3. It is evicted once this "
                  "budget allows a disruption. More healthy pods elsewhere help, or a lower minAvailable.)",
                  "node n stays cordoned; 3 pods are left; 'vesperctl undrain n' opens it" },
                { { .node = "n", .state = CTL_DRAIN_DRAINING, .is_cordoned = true, .left = &going, .n_left = 1 },
                  "n: draining, 1 pod left; pod shop/old: Terminating for 90s",
                  "node n stays cordoned; 1 pod is left" },
                { { .node = "n", .state = CTL_DRAIN_DRAINING, .is_cordoned = true, .left = held, .n_left = 2 },
                  "n: draining, 2 pods left; pod x/job: Protected vesper.sh/do-not-evict for 10s (The pod opted out of drains "
                  "by this key: the node waits until the pod ends or the key goes.)",
                  "node n stays cordoned; 2 pods are left" },
                { { .node = "n", .state = CTL_DRAIN_DRAINED, .is_cordoned = true, .n_ended = 1, .took_usec = 12 * SEC },
                  "n: drained in 12s, 1 pod was ended",
                  "n: drained in 12s, 1 pod was ended" },
                { { .node = "n", .state = CTL_DRAIN_FAILED, .error = "there is no node 'n'" },
                  "n: failed after 0s: there is no node 'n'",
                  "n: failed after 0s: there is no node 'n'" },
                { { .node = "n", .state = CTL_DRAIN_TIMED_OUT, .is_cordoned = true, .is_ours = true, .left = strange,
                    .n_left = 1, .took_usec = 60 * SEC },
                  "n: gave up, --timeout is over, after 60s; it stays cordoned ('vesperctl undrain n' opens it); 1 pod is "
                  "left; pod a?[2J/b?: Terminating for 100s",
                  "node n stays cordoned; 1 pod is left; 'vesperctl undrain n' opens it" },
                { { .node = "n", .state = CTL_DRAIN_OPENED, .left = &going, .n_left = 1, .took_usec = SEC },
                  "n: gave up, somebody has made the node schedulable meanwhile, after 1s; 1 pod is left",
                  "n: gave up, somebody has made the node schedulable meanwhile, after 1s; 1 pod is left" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_strbuf_ StrBuf line = {}, stopped = {};

                drain_progress_add_line(&line, &rows[i].p, 100 * SEC);
                assert_string_equal(strbuf_str(&line), rows[i].line);
                drain_progress_add_stopped(&stopped, &rows[i].p);
                assert_string_equal(strbuf_str(&stopped), rows[i].stopped);
        }
}

TEST_CASE(test_cut) {
        _cleanup_strbuf_ StrBuf b = {};

        strbuf_add(&b, "first\n" "gr\xc3\xbc\xc3\x9f" "e");
        drain_progress_cut(&b, 6, 5);
        assert_string_equal(b.data, "first\n" "gr\xc3\xbc\xc3\x9f" "e");
        drain_progress_cut(&b, 6, 4);
        assert_string_equal(b.data, "first\n" "gr\xc3\xbc\xc3\x9f");
        drain_progress_cut(&b, 6, 3);
        assert_string_equal(b.data, "first\n" "gr\xc3\xbc");
}

TEST_CASE(test_news) {
        const DrainBlocker many[] = { blocked, kept };
        DrainProgress p = { .node = "n", .state = CTL_DRAIN_DRAINING, .left = &blocked, .n_left = 1 };
        DrainSaid said = {};

        assert_true(drain_progress_is_news(&said, &p, 100 * SEC));
        assert_false(drain_progress_is_news(&said, &p, 104 * SEC)); /* nothing is other */
        p.left = many;
        p.n_left = 2;
        assert_true(drain_progress_is_news(&said, &p, 104 * SEC));
        p.n_left = 1;
        assert_false(drain_progress_is_news(&said, &p, 106 * SEC)); /* other, but too soon */
        assert_true(drain_progress_is_news(&said, &p, 107 * SEC));
        assert_false(drain_progress_is_news(&said, &p, 166 * SEC));
        assert_true(drain_progress_is_news(&said, &p, 167 * SEC)); /* it holds for long */
        p.state = CTL_DRAIN_DRAINED;
        p.n_left = 0;
        assert_true(drain_progress_is_news(&said, &p, 167 * SEC));
        assert_false(drain_progress_is_news(&said, &p, 1000 * SEC));
}

TEST_CASE(test_json) {
        const DrainProgress list[] = {
                { .node = "a", .state = CTL_DRAIN_DRAINED, .is_cordoned = true, .n_ended = 3, .took_usec = 1500000 },
                { .node = "b", .state = CTL_DRAIN_EXPIRED, .left = &blocked, .n_left = 1 },
                { .node = "c", .state = CTL_DRAIN_FAILED, .error = "no" },
        };
        _cleanup_free_ char *json = drain_progress_json(list, ELEMENTSOF(list));

        assert_string_equal(
                json,
                "[{\"node\":\"a\",\"state\":\"Drained\",\"cordoned\":true,\"took\":\"1.500s\",\"podsEnded\":3,\"podsLeft\":[]},"
                "{\"node\":\"b\",\"state\":\"Expired\",\"cordoned\":false,\"took\":\"0.000s\",\"podsEnded\":0,\"podsLeft\":["
                "{\"pod\":\"shop/web-1\",\"reason\":\"BlockedByPDB\",\"detail\":\"web\",\"message\":\"needs 3\","
                "\"since\":\"1970-01-01T00:01:05Z\"}]},"
                "{\"node\":\"c\",\"state\":\"Failed\",\"cordoned\":false,\"took\":\"0.000s\",\"podsEnded\":0,\"podsLeft\":[],"
                "\"error\":\"no\"}]");
}

/* -- pure: whose cordon --------------------------------------------------------------------------------- */

#define OURS "'vesper.sh/cordoned-by-vesperctl':'{}'"
#define AGENTS "'vesper.sh/cordoned-by-agent':'{}'"
#define COORDINATORS "'vesper.sh/cordoned-by-coordinator':'{}'"
#define HEARD "'vesper.sh/heard':'{}'"
#define SHUT ",'spec':{'unschedulable':true}"
#define MARKED "'vesper.sh/cordoned-by-vesperctl':'{\\'why\\':\\'vesperctl drain\\'}'"

static char *with_quotes(const char *s) {
        char *text = strdup(s);

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return text;
}

TEST_CASE(test_cordons) {
        static const struct {
                const char *annotations, *meta, *rest;
                const char *cordon; /* NULL: nothing is sent */
                UncordonPlan plan;
                const char *uncordon; /* NULL: nothing is sent */
        } rows[] = {
                { "", "", "", "{'annotations':{" MARKED "}},'spec':{'unschedulable':true}}", UNCORDON_IS_OPEN, NULL },
                { "", "", SHUT, NULL, UNCORDON_IS_FOREIGN, NULL },
                { OURS, "", SHUT, NULL, UNCORDON_OPENS,
                  "{'annotations':{'vesper.sh/cordoned-by-vesperctl':null}},'spec':{'unschedulable':null}}" },
                { OURS, "", "", "{'annotations':{" MARKED "}},'spec':{'unschedulable':true}}", UNCORDON_UNMARKS,
                  "{'annotations':{'vesper.sh/cordoned-by-vesperctl':null}}}" },
                { AGENTS, "", SHUT, "{'annotations':{" MARKED "}},'spec':{'unschedulable':true}}", UNCORDON_IS_FOREIGN,
                  NULL },
                { COORDINATORS, "", SHUT, "{'annotations':{" MARKED "}},'spec':{'unschedulable':true}}",
                  UNCORDON_IS_FOREIGN, NULL },
                { OURS "," AGENTS, "", SHUT, NULL, UNCORDON_LEAVES,
                  "{'annotations':{'vesper.sh/cordoned-by-vesperctl':null}}}" },
                { OURS "," COORDINATORS, "", SHUT, NULL, UNCORDON_LEAVES,
                  "{'annotations':{'vesper.sh/cordoned-by-vesperctl':null}}}" },
                { COORDINATORS "," HEARD, "", SHUT, "{'annotations':{" MARKED "}},'spec':{'unschedulable':true}}", UNCORDON_OPENS,
                  "{'annotations':{}},'spec':{'unschedulable':null}}" },
                { OURS "," COORDINATORS "," HEARD, "", SHUT, NULL, UNCORDON_OPENS,
                  "{'annotations':{'vesper.sh/cordoned-by-vesperctl':null}},'spec':{'unschedulable':null}}" },
                { AGENTS "," COORDINATORS "," HEARD, "", SHUT, "{'annotations':{" MARKED "}},'spec':{'unschedulable':true}}",
                  UNCORDON_IS_FOREIGN, NULL },
                { OURS, ",'deletionTimestamp':'2027-01-15T08:00:00Z'", SHUT, NULL, UNCORDON_IS_DELETED, NULL },
        };
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert_return_code(intern_pool_new(&pool), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *raw = strf("{'metadata':{'name':'n','uid':'u','resourceVersion':'7'%s,'annotations':{%s}}%s}",
                                                rows[i].meta, rows[i].annotations, rows[i].rest);
                _cleanup_free_ char *text = with_quotes(raw), *body = NULL, *off = NULL;
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                KubeNode *n;

                print_message("  %s\n", raw);
                assert_return_code(json_parse(text, strlen(text), 1u << 16, &doc, NULL), 0);
                assert_return_code(kube_object_decode(&kube_node_kind, json_root(doc), pool, (KubeObject **) &n), 0);
                assert_int_equal(ctl_cordon_patch(n, &body), rows[i].cordon != NULL);
                if (body) {
                        _cleanup_free_ char *whole = strf("{'metadata':{'resourceVersion':'7',%s", rows[i].cordon + 1);
                        _cleanup_free_ char *expected = with_quotes(whole);

                        assert_string_equal(body, expected);
                }
                assert_int_equal(ctl_uncordon_plan(n, false), rows[i].plan);
                if (rows[i].uncordon) {
                        _cleanup_free_ char *whole = strf("{'metadata':{'resourceVersion':'7',%s", rows[i].uncordon + 1);
                        _cleanup_free_ char *expected = with_quotes(whole);

                        off = ctl_uncordon_patch(n, rows[i].plan);
                        assert_string_equal(off, expected);
                }
                kube_object_unref(&n->object);
        }
}

/* -- the verbs in a cluster ----------------------------------------------------------------------------- */

static void add_web(CtlRig *b, const char *node, size_t n, const char *annotations) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *name = strf("web-%s-%zu", node, i);

                fake_add_pod(b->w.cluster, &(FakePod){ .name = name, .node = node, .app = "web", .stop_sec = 1,
                                                       .annotations = annotations });
        }
}

static bool is_unschedulable(CtlRig *b, const char *node) {
        return cJSON_IsTrue(fj_get(fake_get(b->w.cluster, FAKE_NODES, NULL, node), "spec", "unschedulable", NULL));
}

static const char *mark_of(CtlRig *b, const char *node) {
        return fj_string(fake_get(b->w.cluster, FAKE_NODES, NULL, node), "metadata", "annotations",
                         ANNOTATION_CORDONED_BY_VESPERCTL, NULL);
}

static uint64_t n_evictions(CtlRig *b, unsigned status) {
        return fake_api_count_status(ctl_rig_api(b), FAKE_CREATE, FAKE_PODS, "eviction", status);
}

/* Two nodes, and a budget with room for one pod that gets more room later: no eviction is refused. What holds nothing
 * stays. */
TEST_CASE(test_drain) {
        _cleanup_ctl_rig_ CtlRig b;
        const CtlOptions o = {};

        ctl_rig_init(&b, NULL);
        add_web(&b, "n1", 3, NULL);
        add_web(&b, "n2", 3, NULL);
        add_web(&b, "spare", 6, NULL);
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "plain", .node = "n1" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "ds", .node = "n1", .owner_kind = "DaemonSet", .owner = "ds" });
        fake_add_pod(b.w.cluster, &(FakePod){ .name = "static", .node = "n2", .owner_kind = "Node", .owner = "n2",
                                              .annotations = "{'kubernetes.io/config.mirror':'x'}" });
        fake_add_pdb(b.w.cluster, "default", "web", "web", true, "11");
        ctl_rig_run(&b, SEC);

        assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1 n2 n1"), 0);
        ctl_rig_run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.ctl.status, -1);
        assert_prints(&b, "n1: draining, ");
        assert_prints(&b, "PDBNeverAllows web for ");
        assert_int_equal(n_evictions(&b, 201), 2);
        assert_int_equal(n_evictions(&b, 429), 5); /* each of the others once: no controller makes successors, so it never allows one */

        fake_merge(b.w.cluster, FAKE_PDBS, "default", "web",
                   "{'metadata':{'generation':2},'spec':{'minAvailable':6}}");
        ctl_rig_run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.ctl.status, EXIT_SUCCESS);
        assert_int_equal(n_evictions(&b, 201), 7);
        assert_prints(&b, "n1: drained in ");
        assert_prints(&b, "n2: drained in ");
        assert_true(is_unschedulable(&b, "n1") && is_unschedulable(&b, "n2"));
        assert_string_equal(mark_of(&b, "n1"), "{\"why\":\"vesperctl drain\"}");
        assert_non_null(fake_get(b.w.cluster, FAKE_PODS, "default", "ds"));
        assert_non_null(fake_get(b.w.cluster, FAKE_PODS, "default", "static"));
        assert_string_equal(strempty(b.said[1]), "");
}

/* On a busy machine the watch tells that a pod is gone before the answer to its eviction is there: it counts all the same. */
TEST_CASE(test_drain_counts_all) {
        const CtlOptions o = {};

        for (usec_t late = 0; late <= 2 * SEC; late += SEC / 2) {
                _cleanup_ctl_rig_ CtlRig b;

                ctl_rig_init(&b, NULL);
                b.eviction_reply_usec = late;
                for (unsigned i = 0; i < 30; i++) {
                        _cleanup_free_ char *name = strf("web-%u", i);

                        fake_add_pod(b.w.cluster, &(FakePod){ .name = name, .node = "n1", .app = "web", .stop_sec = i % 2 });
                }
                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.ctl.status, EXIT_SUCCESS);
                assert_prints(&b, ", 30 pods were ended");
        }
}

TEST_CASE(test_drain_json) {
        _cleanup_ctl_rig_ CtlRig b;
        const CtlOptions o = {};

        ctl_rig_init(&b, NULL);
        add_web(&b, "n1", 2, NULL);
        assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_JSON, &o, "n1 nobody"), 0);
        ctl_rig_run(&b, USEC_PER_MINUTE);
        assert_int_equal(b.ctl.status, EXIT_FAILURE);
        assert_prints(&b, "[{\"node\":\"n1\",\"state\":\"Drained\",\"cordoned\":true,");
        assert_prints(&b, "\"podsEnded\":2,\"podsLeft\":[]}");
        assert_prints(&b, "{\"node\":\"nobody\",\"state\":\"Failed\",\"cordoned\":false,");
        assert_null(strstr(b.said[0], "draining"));
}

/* Somebody else writes the Node between our read and our patch. */
static void change_before_patch(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        CtlRig *b = userdata;

        if (r->verb == FAKE_PATCH && r->resource && r->resource->id == FAKE_NODES && b->n_faults > 0) {
                b->n_faults--;
                fake_merge(b->w.cluster, FAKE_NODES, NULL, r->name, "{'metadata':{'labels':{'x':'%u'}}}", b->n_faults);
        }
}

TEST_CASE(test_conflict) {
        static const struct {
                unsigned n_conflicts;
                int status;
        } rows[] = { { 3, EXIT_SUCCESS }, { 100, EXIT_FAILURE } };
        const CtlOptions o = {};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ctl_rig_ CtlRig b;

                ctl_rig_init(&b, NULL);
                add_web(&b, "n1", 2, NULL);
                fake_api_set_fault(ctl_rig_api(&b), change_before_patch, &b);
                b.n_faults = rows[i].n_conflicts;
                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.ctl.status, rows[i].status);
                assert_int_equal(fake_api_count_status(ctl_rig_api(&b), FAKE_PATCH, FAKE_NODES, NULL, 409),
                                 MIN(rows[i].n_conflicts, 10u));
                assert_int_equal(is_unschedulable(&b, "n1"), rows[i].status == EXIT_SUCCESS);
                assert_int_equal(n_evictions(&b, 0), rows[i].status == EXIT_SUCCESS ? 2 : 0);
        }
}

/* A cordon that was there before is drained under, and never claimed; those of vesper are joined. */
TEST_CASE(test_cordoned_before) {
        static const struct {
                const char *node, *says;
                bool marked;
        } rows[] = {
                { "{'spec':{'unschedulable':true}}",
                  "node 'n1' was cordoned by somebody who left no mark (kubectl cordon, an autoscaler), not by vesperctl "
                  "drain: it is drained all the same, and 'vesperctl undrain n1' will not open it\n",
                  false },
                { "{'metadata':{'annotations':{" AGENTS ",'vesper.sh/interruption':"
                  "'{\\\"id\\\":\\\"x\\\",\\\"kind\\\":\\\"spot\\\",\\\"source\\\":\\\"ec2\\\",\\\"action\\\":\\\"terminate\\\",\\\"phase\\\":\\\"Draining\\\","
                  "\\\"deadline\\\":\\\"2026-01-01T00:02:00Z\\\"}'}},'spec':{'unschedulable':true}}",
                  "vesper-agent drains node 'n1', too", true },
                { "{'metadata':{'annotations':{" COORDINATORS "},'finalizers':['vesper.sh/termination'],"
                  "'deletionTimestamp':'2026-01-01T00:00:00Z'},'spec':{'unschedulable':true}}",
                  "node 'n1' is being deleted: vesper-coordinator drains it, too", true },
        };
        const CtlOptions o = {};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ctl_rig_ CtlRig b;

                ctl_rig_init(&b, NULL);
                add_web(&b, "n1", 1, NULL);
                fake_merge(b.w.cluster, FAKE_NODES, NULL, "n1", "%s", rows[i].node);
                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_complains(&b, rows[i].says);
                assert_int_equal(b.ctl.status, EXIT_SUCCESS);
                assert_int_equal(mark_of(&b, "n1") != NULL, rows[i].marked);
                assert_int_equal(n_evictions(&b, 0), 1);
        }
}

TEST_CASE(test_protected) {
        static const struct {
                const char *policy;
                unsigned n_before; /* evicted while the protected pod is */
        } rows[] = { { NULL, 0 }, { "wait", 0 }, { "others", 2 }, { "ignore", 3 } };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const CtlOptions o = { .protected_policy = rows[i].policy };
                _cleanup_ctl_rig_ CtlRig b;

                ctl_rig_init(&b, NULL);
                add_web(&b, "n1", 2, NULL);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "job", .node = "n1",
                                                      .annotations = "{'vesper.sh/do-not-evict':'true'}" });
                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_int_equal(n_evictions(&b, 201), rows[i].n_before);
                assert_int_equal(b.ctl.status, rows[i].n_before == 3 ? EXIT_SUCCESS : -1);
                if (rows[i].n_before == 3)
                        continue;
                assert_prints(&b, "pod default/job: Protected vesper.sh/do-not-evict");
                fake_merge(b.w.cluster, FAKE_PODS, "default", "job",
                           "{'metadata':{'annotations':{'vesper.sh/do-not-evict':null}}}");
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.ctl.status, EXIT_SUCCESS);
        }
}

/* What --timeout gives up stays cordoned, and nothing is evicted any more. */
TEST_CASE(test_timeout) {
        const CtlOptions o = { .timeout = "30s" };
        _cleanup_ctl_rig_ CtlRig b;

        ctl_rig_init(&b, NULL);
        add_web(&b, "n1", 2, NULL);
        fake_add_pdb(b.w.cluster, "default", "web", "web", true, "2");
        ctl_rig_run(&b, SEC);
        assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
        ctl_rig_run(&b, 29 * SEC);
        assert_int_equal(b.ctl.status, -1);
        ctl_rig_run(&b, 2 * SEC);
        assert_int_equal(b.ctl.status, EXIT_FAILURE);
        assert_complains(&b, "vesperctl: n1: gave up, --timeout is over, after 30s; it stays cordoned ('vesperctl undrain n1' opens it); 2 "
                             "pods are left; pod default/web-n1-0: PDBNeverAllows web for ");
        assert_true(is_unschedulable(&b, "n1"));
        assert_int_equal(n_evictions(&b, 201), 0);
}

/* By T - grace what its budget holds is deleted; what does not go by T is named. */
TEST_CASE(test_deadline) {
        static const struct {
                bool stuck;
                int status;
                const char *says;
        } rows[] = {
                { false, EXIT_SUCCESS, "n1: drained in 30s, 2 pods were ended" },
                { true, EXIT_FAILURE, "n1: gave up, --deadline has passed, after 90s; it stays cordoned ('vesperctl undrain n1' "
                                      "opens it); 1 pod is left; pod default/stuck: Terminating" },
        };
        const CtlOptions o = { .deadline = "1m" };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ctl_rig_ CtlRig b;

                ctl_rig_init(&b, NULL);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "a", .node = "n1", .app = "web" });
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "stuck", .node = "n1", .app = "web", .stuck = rows[i].stuck });
                fake_add_pdb(b.w.cluster, "default", "web", "web", true, "2");
                ctl_rig_run(&b, SEC);
                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, 29 * SEC);
                assert_int_equal(fake_api_count(ctl_rig_api(&b), FAKE_DELETE, FAKE_PODS, NULL), 0);
                ctl_rig_run(&b, 2 * SEC);
                assert_int_equal(fake_api_count(ctl_rig_api(&b), FAKE_DELETE, FAKE_PODS, NULL), 2);
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.ctl.status, rows[i].status);
                ctl_rig_assert_says(&b, rows[i].stuck, rows[i].says);
        }
}

/* --deadline is a time from now, whatever this machine's clock and the API server's show. */
TEST_CASE(test_deadline_by_another_clock) {
        static const int64_t off[] = { -3600 * (int64_t) SEC, 3600 * (int64_t) SEC };
        const CtlOptions o = { .deadline = "1m" };

        for (size_t i = 0; i < ELEMENTSOF(off); i++) {
                _cleanup_ctl_rig_ CtlRig b;
                char date[FAKE_DATE_MAX];

                ctl_rig_init(&b, NULL);
                fake_date_format((usec_t) ((int64_t) loop_wall(b.w.loop) + off[i]), date);
                fake_api_set_date(ctl_rig_api(&b), date);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "a", .node = "n1", .app = "web" });
                fake_add_pdb(b.w.cluster, "default", "web", "web", true, "1");
                for (unsigned sec = 0; sec < 35; sec++) {
                        fake_date_format((usec_t) ((int64_t) loop_wall(b.w.loop) + off[i]), date);
                        if (sec == 0)
                                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                        ctl_rig_run(&b, SEC);
                        assert_int_equal(fake_api_count(ctl_rig_api(&b), FAKE_DELETE, FAKE_PODS, NULL) > 0, sec >= 29);
                }
                fake_api_set_date(ctl_rig_api(&b), NULL);
        }
}

/* Whoever opens the node, or deletes it, has decided otherwise. */
TEST_CASE(test_opened) {
        const CtlOptions o = {};
        _cleanup_ctl_rig_ CtlRig b;

        ctl_rig_init(&b, NULL);
        add_web(&b, "n1", 2, NULL);
        add_web(&b, "n2", 2, NULL);
        fake_add_pdb(b.w.cluster, "default", "web", "web", true, "4");
        ctl_rig_run(&b, SEC);
        assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1 n2"), 0);
        ctl_rig_run(&b, 5 * SEC);
        fake_merge(b.w.cluster, FAKE_NODES, NULL, "n1", "{'spec':{'unschedulable':null}}");
        fake_remove(b.w.cluster, FAKE_NODES, NULL, "n2");
        fake_merge(b.w.cluster, FAKE_PDBS, "default", "web", "{'metadata':{'generation':2},'spec':{'minAvailable':0}}");
        ctl_rig_run(&b, 5 * SEC);
        assert_int_equal(b.ctl.status, EXIT_FAILURE);
        assert_complains(&b, "vesperctl: n1: gave up, somebody has made the node schedulable meanwhile, after 5s; 2 pods are left\n");
        assert_complains(&b, "vesperctl: n2: gave up, the Node was deleted meanwhile and nothing says whether its pods have stopped,");
        assert_null(mark_of(&b, "n1"));
        assert_false(is_unschedulable(&b, "n1"));
}

/* Dropped in the middle, as by Ctrl-C: nothing more leaves. */
TEST_CASE(test_dropped) {
        const CtlOptions o = {};
        _cleanup_ctl_rig_ CtlRig b;

        ctl_rig_init(&b, NULL);
        add_web(&b, "n1", 4, NULL);
        fake_add_pdb(b.w.cluster, "default", "web", "web", true, "3");
        ctl_rig_run(&b, SEC);
        assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
        ctl_rig_run(&b, 10 * SEC);
        assert_int_equal(n_evictions(&b, 201), 1);
        ctl_rig_end_verb(&b);
        fake_merge(b.w.cluster, FAKE_PDBS, "default", "web", "{'metadata':{'generation':2},'spec':{'minAvailable':0}}");
        ctl_rig_run(&b, USEC_PER_MINUTE);
        assert_int_equal(n_evictions(&b, 201), 1);
        assert_true(is_unschedulable(&b, "n1"));
}

/* What a person may not do is said, with the rule that would allow it; without budgets it goes on. */
TEST_CASE(test_permissions) {
        static const struct {
                const char *verbs, *group, *resources; /* that are granted beside what follows it */
                int status;
                size_t stream;
                const char *says;
                bool cordoned;
        } rows[] = {
                { "get,list,watch", "", "pods", EXIT_FAILURE, 1, "you may not get Node 'n1'", false },
                { "get,list,watch,patch", "", "nodes", EXIT_FAILURE, 1,
                  "a role with {apiGroups: [\"\"], resources: [pods], verbs: [list, watch]} would allow it", false },
                { "get,list,watch", "", "nodes,pods", EXIT_FAILURE, 1, "you may not patch Node 'n1'", false },
                { "get,list,watch,patch", "", "nodes,pods", -1, 0,
                  ". The authorizer or an admission plugin refuses its eviction. A role with {apiGroups: [\"\"], resources: [pods/eviction], verbs: [create]} would allow it.)", true },
                { "get,list,watch,patch,create", "", "nodes,pods,pods/eviction", EXIT_SUCCESS, 1,
                  "you may not list, watch poddisruptionbudgets", true },
                { "get,list,watch,patch,create", "*", "nodes,pods,pods/eviction,poddisruptionbudgets", EXIT_SUCCESS, 0,
                  "n1: drained", true },
        };
        const CtlOptions o = {};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ctl_rig_ CtlRig b;

                print_message("  %s: %s\n", rows[i].verbs, rows[i].resources);
                ctl_rig_init(&b, "CN=jane,O=people");
                fake_authz_allow(fake_cluster_authz(b.w.cluster), "people", rows[i].verbs, rows[i].group,
                                 rows[i].resources, NULL);
                add_web(&b, "n1", 1, NULL);
                assert_return_code(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, USEC_PER_MINUTE);
                assert_int_equal(b.ctl.status, rows[i].status);
                ctl_rig_assert_says(&b, rows[i].stream, rows[i].says);
                assert_int_equal(is_unschedulable(&b, "n1"), rows[i].cordoned);
        }
}

TEST_CASE(test_bad_options) {
        static const struct {
                CtlOptions o;
                const char *says;
        } rows[] = {
                { { .timeout = "soon" }, "vesperctl: --timeout=soon: it is a duration such as 90s, 10m or 1h30m\n" },
                { { .deadline = "0" }, "vesperctl: --deadline=0: it is a duration" },
                { { .protected_policy = "perhaps" }, "--protected=perhaps: it is wait, others or ignore" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_ctl_rig_ CtlRig b;

                ctl_rig_init(&b, NULL);
                assert_int_equal(ctl_rig_start(&b, &verb_drain, CTL_OUTPUT_TABLE, &rows[i].o, "n1"), -EINVAL);
                assert_complains(&b, rows[i].says);
        }
}

/* The server's own word on each pod; nothing is changed. */
TEST_CASE(test_dry_run) {
        static const struct {
                bool held;
                CtlOutput output;
                const char *nodes, *policy;
                int status;
                const char *says;
        } rows[] = {
                { false, CTL_OUTPUT_TABLE, "n1", NULL, EXIT_SUCCESS,
                  "Node n1: would be cordoned\n"
                  "POD             VERDICT            WHY         MESSAGE\n"
                  "default/ds      left alone         DaemonSet   -\n"
                  "default/plain   would be evicted   -           -\n" },
                { true, CTL_OUTPUT_TABLE, "n2 n1", NULL, 3,
                  "Node n2: would be cordoned\n\nNode n1: would be cordoned\n"
                  "POD             VERDICT            WHY                                     MESSAGE\n"
                  "default/ds      left alone         DaemonSet                               -\n"
                  "default/job     waited for         vesper.sh/do-not-evict                  -\n"
                  "default/plain   would be evicted   -                                       -\n"
                  "default/vm      refused now        EvictionWebhook pods.fake.vesper.test   it moves\n"
                  "default/web     refused now        BlockedByPDB web                        The disruption budget web needs 1 "
                  "healthy pods and has 1 currently\n" },
                { true, CTL_OUTPUT_JSON, "n1 nobody", "ignore", EXIT_FAILURE,
                  "[{\"node\":\"n1\",\"wouldDrain\":false,\"cordon\":\"would be cordoned\",\"pods\":["
                  "{\"pod\":\"default/ds\",\"verdict\":\"LeftAlone\",\"reason\":\"DaemonSet\"},"
                  "{\"pod\":\"default/job\",\"verdict\":\"Evicted\"},{\"pod\":\"default/plain\",\"verdict\":\"Evicted\"},"
                  "{\"pod\":\"default/vm\",\"verdict\":\"Refused\",\"reason\":\"EvictionWebhook\","
                  "\"webhook\":\"pods.fake.vesper.test\",\"message\":\"it moves\"},"
                  "{\"pod\":\"default/web\",\"verdict\":\"Refused\",\"reason\":\"BlockedByPDB\",\"budget\":\"web\","
                  "\"message\":\"The disruption budget web needs 1 healthy pods and has 1 currently\"}]},"
                  "{\"node\":\"nobody\",\"wouldDrain\":false,\"error\":\"there is no Node 'nobody'\",\"pods\":[]}]\n" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const CtlOptions o = { .dry_run = true, .protected_policy = (char *) rows[i].policy };
                _cleanup_ctl_rig_ CtlRig b;
                uint64_t before;

                ctl_rig_init(&b, NULL);
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "ds", .node = "n1", .owner_kind = "DaemonSet", .owner = "ds" });
                fake_add_pod(b.w.cluster, &(FakePod){ .name = "plain", .node = "n1" });
                if (rows[i].held) {
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = "web", .node = "n1", .app = "web" });
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = "job", .node = "n1",
                                                              .annotations = "{'vesper.sh/do-not-evict':'true'}" });
                        fake_add_pod(b.w.cluster, &(FakePod){ .name = "vm", .node = "n1",
                                                              .annotations = "{'" FAKE_EVICTION_WEBHOOK "':'403 it moves'}" });
                        fake_add_pdb(b.w.cluster, "default", "web", "web", true, "1");
                }
                ctl_rig_run(&b, 5 * SEC);
                before = fake_store_rv(fake_cluster_store(b.w.cluster));
                assert_return_code(ctl_rig_start(&b, &verb_drain, rows[i].output, &o, rows[i].nodes), 0);
                ctl_rig_run(&b, 5 * SEC);
                assert_int_equal(b.ctl.status, rows[i].status);
                assert_string_equal(b.said[0], rows[i].says);
                assert_int_equal(fake_store_rv(fake_cluster_store(b.w.cluster)), before);
        }
}

TEST_CASE(test_undrain) {
        static const struct {
                const char *node;
                bool yes;
                int status;
                size_t stream;
                const char *says;
                bool closed, marked;
        } rows[] = {
                { "{}", false, EXIT_SUCCESS, 0, "Node n1 is schedulable.\n", false, false },
                { "{'metadata':{'annotations':{" OURS "}},'spec':{'unschedulable':true}}", false, EXIT_SUCCESS, 0,
                  "Node n1 is schedulable again.\n", false, false },
                { "{'metadata':{'annotations':{" OURS "}}}", false, EXIT_SUCCESS, 0,
                  "Node n1 was schedulable already; the mark of vesperctl drain is off.\n", false, false },
                { "{'metadata':{'annotations':{" OURS "," AGENTS "}},'spec':{'unschedulable':true}}", false, EXIT_SUCCESS,
                  0, "Node n1 stays cordoned by another part of vesper", true, false },
                { "{'spec':{'unschedulable':true}}", false, EXIT_FAILURE, 1,
                  "vesperctl: node 'n1' was cordoned by somebody who left no mark (kubectl cordon, an autoscaler), not by "
                  "vesperctl drain: it stays as it is. 'vesperctl undrain n1 --yes' opens it all the same\n",
                  true, false },
                { "{'metadata':{'annotations':{" COORDINATORS "}},'spec':{'unschedulable':true}}", false, EXIT_FAILURE, 1,
                  "was cordoned by vesper-coordinator, not by vesperctl drain", true, false },
                { "{'spec':{'unschedulable':true}}", true, EXIT_SUCCESS, 0, "Node n1 is schedulable again.\n", false,
                  false },
                { "{'metadata':{'annotations':{" OURS "},'finalizers':['a/b'],'deletionTimestamp':"
                  "'2026-01-01T00:00:00Z'},'spec':{'unschedulable':true}}",
                  true, EXIT_FAILURE, 1, "node 'n1' is being deleted: it stays as it is\n", true, true },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const CtlOptions o = { .yes = rows[i].yes };
                _cleanup_ctl_rig_ CtlRig b;

                print_message("  %s\n", rows[i].node);
                ctl_rig_init(&b, NULL);
                fake_merge(b.w.cluster, FAKE_NODES, NULL, "n1", "%s", rows[i].node);
                fake_api_set_fault(ctl_rig_api(&b), change_before_patch, &b);
                b.n_faults = 2;
                assert_return_code(ctl_rig_start(&b, &verb_undrain, CTL_OUTPUT_TABLE, &o, "n1"), 0);
                ctl_rig_run(&b, 10 * SEC);
                assert_int_equal(b.ctl.status, rows[i].status);
                ctl_rig_assert_says(&b, rows[i].stream, rows[i].says);
                assert_int_equal(is_unschedulable(&b, "n1"), rows[i].closed);
                assert_int_equal(mark_of(&b, "n1") != NULL, rows[i].marked);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),           cmocka_unit_test(test_cut),
                cmocka_unit_test(test_news),            cmocka_unit_test(test_json),
                cmocka_unit_test(test_cordons),         cmocka_unit_test(test_drain),
                cmocka_unit_test(test_drain_counts_all),
                cmocka_unit_test(test_drain_json),      cmocka_unit_test(test_conflict),
                cmocka_unit_test(test_cordoned_before), cmocka_unit_test(test_protected),
                cmocka_unit_test(test_timeout),         cmocka_unit_test(test_deadline),
                cmocka_unit_test(test_deadline_by_another_clock),
                cmocka_unit_test(test_opened),          cmocka_unit_test(test_dropped),
                cmocka_unit_test(test_permissions),     cmocka_unit_test(test_bad_options),
                cmocka_unit_test(test_dry_run),         cmocka_unit_test(test_undrain),
        };
        return cmocka_run_group_tests_name("ctl-drain", tests, NULL, NULL);
}
