/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "claim-name.h"
#include "cmocka-test.h"
#include "compare-count.h"
#include "expected-file.h"
#include "explain-fetch.h"
#include "explain-rows.h"
#include "explain-told.h"
#include "fake-client.h"
#include "marks.h"
#include "strv.h"

#define NOW_SEC 1800000000 /* 2027-01-15T08:00:00Z */

/* -- pure: objects in, causes out ----------------------------------------------------------------------- */

typedef struct Bench {
        InternPool *pool;
        ExplainFacts facts;
} Bench;

static void bench_init(Bench *b) {
        *b = (Bench){ .facts = { .node_name = "w", .lease_ns = "v", .lease_name = "l", .knows_pods = true, .knows_pdbs = true, .knows_pools = true,
                                 .leader_seen_usec = (NOW_SEC - 2) * USEC_PER_SEC, .lease_usec = 15 * USEC_PER_SEC,
                                 .now_usec = NOW_SEC * USEC_PER_SEC } };
        b->facts.leader = strdup("coordinator-a");
        assert_return_code(intern_pool_new(&b->pool), 0);
}

static void bench_done(Bench *b) {
        explain_facts_done(&b->facts);
        intern_pool_free(b->pool);
}

static char *with_quotes(const char *json) {
        char *text = MUST(strdup(json));

        for (char *p = text; *p; p++)
                *p = *p == '\'' ? '"' : *p == '`' ? '\'' : *p;
        return text;
}

static KubeObject *decode(Bench *b, const KubeKind *kind, const char *json) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *text = with_quotes(json);
        KubeObject *o;

        assert_return_code(json_parse(text, strlen(text), 1u << 20, &doc, NULL), 0);
        assert_return_code(kube_object_decode(kind, json_root(doc), b->pool, &o), 0);
        return o;
}

static void put(Bench *b, const KubeKind *kind, const char *json) {
        const struct {
                const KubeKind *kind;
                ObjectList *list;
        } lists[] = {
                { &kube_node_claim_kind, &b->facts.claims }, { &kube_node_pool_kind, &b->facts.pools },
                { &kube_node_budget_kind, &b->facts.budgets }, { &kube_pod_kind, &b->facts.pods },
                { &kube_pdb_kind, &b->facts.pdbs }, { &kube_volume_attachment_kind, &b->facts.volumes },
        };

        if (kind == &kube_node_kind && b->facts.node)
                b->facts.new_node = decode(b, kind, json);
        else if (kind == &kube_node_kind)
                b->facts.node = decode(b, kind, json);
        else if (kind == &kube_namespace_kind)
                b->facts.pause_ns = decode(b, kind, json);
        else if (kind == &kube_webhook_configuration_kind)
                b->facts.webhook = decode(b, kind, json);
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                if (lists[i].kind == kind) {
                        ObjectList *l = lists[i].list;

                        assert_return_code(GREEDY_REALLOC(l->items, l->allocated, l->n_items + 1), 0);
                        l->items[l->n_items++] = decode(b, kind, json);
                }
}

/* "BlockedByPDB, (Deadline)": reasons in their order, what holds nothing in parentheses. */
static char *reasons_of(const ExplainCauses *c) {
        StrBuf b = {};

        for (size_t i = 0; i < c->n; i++)
                strbuf_addf(&b, "%s%s%s%s", i > 0 ? ", " : "", c->list[i].holds ? "" : "(", c->list[i].reason, c->list[i].holds ? "" : ")");
        return strbuf_steal(&b);
}

static bool write_files;

/* Returns what people read, and below it the figures and the times that only JSON has. */
static char *account_of(const ExplainFacts *f, const ExplainCauses *c) {
        _cleanup_free_ char *text = MUST(explain_text(f, c));
        StrBuf b = {};

        strbuf_add(&b, text);
        for (size_t i = 0; i < c->n; i++) {
                const ExplainCause *cause = c->list + i;
                char since[RFC3339_MAX] = "-";

                if (cause->since_usec > 0)
                        rfc3339_format(cause->since_usec, since);
                strbuf_addf(&b, "= %s since %s", cause->reason, since);
                for (size_t k = 0; k < cause->n_figures; k++)
                        strbuf_addf(&b, " %s=%lld", cause->figures[k].name, (long long) cause->figures[k].value);
                strbuf_add_char(&b, '\n');
        }
        return MUST(strbuf_steal(&b));
}

/* As explain-fetch.c finds the Node of a claim. */
static void ask_for_claim(Bench *b, const char *name) {
        const KubeNodeClaim *claim;

        b->facts.claim_name = name;
        claim = MUST((KubeNodeClaim *) explain_claim(&b->facts));
        b->facts.node_name = claim->node_name;
        if (!claim->node_name)
                b->facts.node = kube_object_unref(b->facts.node);
}

static char *account_of_row(const Row *row) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *json = NULL, *reasons = NULL;
        char *text;
        Bench b;

        bench_init(&b);
        for (size_t k = 0; k < ELEMENTSOF(row->objects) && row->objects[k].kind; k++)
                put(&b, row->objects[k].kind, row->objects[k].json);
        if (row->leader)
                assert_return_code(free_and_strdup(&b.facts.leader, row->leader), 0);
        b.facts.knows_pods = !row->unknown_pods;
        b.facts.knows_claims = true;
        if (row->claim)
                ask_for_claim(&b, row->claim);
        assert_return_code(explain_make(&b.facts, &causes), 0);
        reasons = reasons_of(&causes);
        assert_string_equal(reasons, row->reasons);
        json = MUST(explain_json(&b.facts, &causes));
        for (size_t k = 0; k < causes.n; k++)
                assert_non_null(strstr(json, causes.list[k].message));
        text = account_of(&b.facts, &causes);
        bench_done(&b);
        return text;
}

TEST_CASE(test_rows) {
        _cleanup_free_ char *path = expected_file_path("expected/explain-rows.txt");
        _cleanup_strbuf_ StrBuf all = {};

        for (size_t i = 0; i < ELEMENTSOF(causes_table); i++) {
                _cleanup_free_ char *text = NULL;

                print_message("  %s\n", causes_table[i].what);
                text = account_of_row(causes_table + i);
                strbuf_addf(&all, "%s# %s\n%s", i > 0 ? "\n" : "", causes_table[i].what, text);
        }
        if (!path)
                skip();
        expected_file_compare(path, strbuf_str(&all), write_files);
}

/* A maximal node with its PDBs, pools and budgets needs at most a million comparisons. */
TEST_CASE(test_work) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *text = NULL;
        size_t before, spent;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, GOING);
        put(&b, &kube_node_claim_kind, CLAIM_IN("Draining"));
        for (int i = 0; i < 250; i++) {
                _cleanup_free_ char *pod = strf("{'metadata':{'namespace':'web','name':'p%d','labels':{'app':'a%d'}},'spec':{'nodeName':'w'},"
                                                "'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}", i, i % 100);

                put(&b, &kube_pod_kind, pod);
        }
        for (int i = 0; i < 100; i++) {
                _cleanup_free_ char *pdb = strf("{'metadata':{'namespace':'web','name':'a%d'},'spec':{'selector':{'matchLabels':{'app':'a%d'}}},'status':{"
                                                "'disruptionsAllowed':0,'currentHealthy':3,'desiredHealthy':3,'expectedPods':4}}", i, i);
                _cleanup_free_ char *pool = strf("{'metadata':{'name':'pool%d'},'spec':{'selector':{'matchLabels':{'pool':'%d'}}}}", i, i);
                _cleanup_free_ char *budget = strf("{'metadata':{'name':'b%d'},'spec':{'maxUnavailable':1,'selector':{'matchLabels':{'pool':'%d'}}}}", i, i);

                put(&b, &kube_pdb_kind, pdb);
                put(&b, &kube_node_pool_kind, pool);
                put(&b, &kube_node_budget_kind, budget);
        }
        before = n_compared();
        assert_return_code(explain_make(&b.facts, &causes), 0);
        text = explain_text(&b.facts, &causes);
        spent = n_compared() - before;
        print_message("  %zu comparisons\n", spent);
        assert_in_range(spent, 1, 1000000);
        assert_int_equal(causes.n, 101);
        bench_done(&b);
}

/* Whoever may write an annotation, a name or a status must not reach the terminal or the shell of whoever reads. */
TEST_CASE(test_plain) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        _cleanup_free_ char *text = NULL;
        Bench b;

        bench_init(&b);
        put(&b, &kube_node_kind, NODE(OURS DELETED, READY, BLOCKED_BY("Cloud\\u001bDenied", "no\\u001b[2J\\nmore")));
        put(&b, &kube_node_claim_kind, CLAIM_IN("Terminating"));
        assert_return_code(strv_extend(&b.facts.unknown, "who\rleads"), 0);
        assert_return_code(explain_make(&b.facts, &causes), 0);
        text = explain_text(&b.facts, &causes);
        assert_non_null(strstr(text, "no?[2J?more"));
        assert_non_null(strstr(text, "\nNot known:\n   who?leads\n"));
        assert_null(strpbrk(text, "\x1b\r"));
        bench_done(&b);

        assert_true(explain_is_word("csi.aws.com/node-1"));
        assert_false(explain_is_word("a b") || explain_is_word("a'b") || explain_is_word("") || explain_is_word("-a") || explain_is_word("$x") || explain_is_word(NULL));
}

/* More than a few pods of one sort are counted. */
TEST_CASE(test_many) {
        static const struct {
                const char *what, *meta, *blocker; /* meta: members of metadata */
        } rows[] = {
                { "pods that opted out", ",'annotations':{'vesper.sh/do-not-evict':'true'}", NULL },
                { "pods of several PDBs", ",'labels':{'app':'web'}", NULL },
                { "pods that are being deleted", ",'deletionTimestamp':'2027-01-15T07:50:00Z'", NULL },
                { "pods that came back", "", "PodComesBack" },
                { "pods that report to be static", ",'annotations':{'kubernetes.io/config.mirror':'x'}", NULL },
                { "pods of which the coordinator reports", "", "Forbidden" },
        };
        static const int counts[] = { 5, 6, 7 };
        _cleanup_free_ char *path = expected_file_path("expected/explain-many.txt");
        _cleanup_strbuf_ StrBuf all = {};

        for (size_t i = 0; i < ELEMENTSOF(rows) * ELEMENTSOF(counts); i++) {
                const char *blocker = rows[i / ELEMENTSOF(counts)].blocker, *what = rows[i / ELEMENTSOF(counts)].what;
                _cleanup_(explain_causes_done) ExplainCauses causes = {};
                _cleanup_free_ char *claim = NULL, *text = NULL;
                int n = counts[i % ELEMENTSOF(counts)];
                _cleanup_strbuf_ StrBuf blockers = {};
                Bench b;

                bench_init(&b);
                put(&b, &kube_node_kind, GOING);
                for (int k = 0; k < n; k++) {
                        _cleanup_free_ char *pod = strf("{'metadata':{'namespace':'web','name':'p%d','uid':'p%d'%s},"
                                                        "'spec':{'nodeName':'w'},'status':{'phase':'Running'}}", k, k,
                                                              rows[i / ELEMENTSOF(counts)].meta);

                        put(&b, &kube_pod_kind, pod);
                        if (blocker)
                                strbuf_addf(&blockers, "%s{'pod':'web/p%d','reason':'%s','message':'m%d',"
                                            "'since':'2027-01-15T07:5%d:00Z'}", k > 0 ? "," : "", k, blocker, k, k);
                }
                put(&b, &kube_pdb_kind, PDB("web", "1", "1", "3", "2", "3"));
                put(&b, &kube_pdb_kind, PDB("web2", "1", "1", "3", "2", "3"));
                claim = strf(CLAIM(OURS DELETED, "", ",'phase':'Draining','podsLeft':%d,'blockers':[%s]"), n, strbuf_str(&blockers));
                put(&b, &kube_node_claim_kind, claim);
                assert_return_code(explain_make(&b.facts, &causes), 0);
                text = account_of(&b.facts, &causes);
                strbuf_addf(&all, "%s# %d %s\n%s", i > 0 ? "\n" : "", n, what, text);
                bench_done(&b);
        }
        if (!path)
                skip();
        expected_file_compare(path, strbuf_str(&all), write_files);
}

/* -- fetching ------------------------------------------------------------------------------------------- */

typedef struct Fetched {
        bool done;
        char *message, *reasons, *unknown, *account;
        int result;
        bool knows_pdbs;
} Fetched;

static void on_fetched(const char *message, ExplainFacts *facts, void *userdata) {
        _cleanup_(explain_causes_done) ExplainCauses causes = {};
        Fetched *f = userdata;

        assert_false(f->done);
        f->done = true;
        f->message = message ? strdup(message) : NULL;
        if (!message) {
                f->result = explain_make(facts, &causes);
                f->reasons = reasons_of(&causes);
                f->unknown = strv_join(facts->unknown, "\n");
                f->knows_pdbs = facts->knows_pdbs;
                f->account = account_of(facts, &causes);
        }
        explain_facts_done(facts);
}

/* What was asked for, in its order: "get nodes, list pods". */
static void on_request(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        static const char *const verbs[] = { [FAKE_GET] = "get", [FAKE_LIST] = "list" };
        StrBuf *b = userdata;

        assert_true(r->verb == FAKE_GET || r->verb == FAKE_LIST); /* it changes nothing */
        if (r->resource && r->resource->id == FAKE_PODS)
                assert_non_null(startswith(fake_request_query(r, "fieldSelector"), "spec.nodeName=n"));
        strbuf_addf(b, "%s%s %s", b->size > 0 ? ", " : "", verbs[r->verb], r->plural);
}

static void fetch_in(FakeWorld *w, const char *identity, const char *node, Fetched *fetched) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *trouble = NULL;
        HttpTransport *transport;
        ExplainFetch *fetch;
        KubeClient *client;
        KubeAuth *auth;
        Env env;

        assert_return_code(http_inproc_new(w->loop, identity, NULL, &transport), 0);
        assert_return_code(http_inproc_route(transport, FAKE_ORIGIN, fake_cluster_handle, w->cluster), 0);
        env = (Env){ .loop = w->loop, .random = w->random, .transport = transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(w->loop, NULL, NULL, config, NULL, NULL, &auth, &trouble), 0);
        assert_return_code(kube_client_new(&env, auth, FAKE_ORIGIN, "t", &client), 0);
        assert_return_code(explain_fetch_new(client, node, "v", "l", on_fetched, fetched, &fetch), 0);
        fake_world_run(w, USEC_PER_SEC / 2);
        assert_true(fetched->done);
        explain_fetch_free(fetch);
        kube_client_free(client);
        kube_auth_free(auth);
        http_transport_free(transport);
}

static void fetched_done(Fetched *f) {
        free(f->message);
        free(f->reasons);
        free(f->unknown);
        free(f->account);
}

#define FIRST "get nodes, list pods, list nodepools, list nodedisruptionbudgets, get leases, get namespaces, get validatingwebhookconfigurations"

static void fill(FakeCluster *c, const char *node_uid, bool named) {
        _cleanup_free_ char *name = claim_name("web", "aws:///us-east-1a/n7", node_uid);

        fake_put(c, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'v'},'status':{'phase':'Active'}}"));
        fake_put(c, FAKE_LEASES, fj_parse("{'metadata':{'name':'l','namespace':'v'},'spec':{'holderIdentity':'somebody','leaseDurationSeconds':15,"
                                          "'renewTime':'2090-01-01T00:00:00.000000Z'}}"));
        fake_put(c, FAKE_NODECLAIMS, fj_parse("{'metadata':{'name':'%s','finalizers':['vesper.sh/termination']},'spec':{'nodePool':'web','providerID':'aws:///us-east-1a/n7'},"
                                              "'status':{'nodeName':'n7','phase':'Adopted'}}", named ? name : "nc-before"));
        fake_put(c, FAKE_WEBHOOKS, fj_parse("{'metadata':{'name':'vesper-nodes'},'webhooks':[{'name':'a.b.c','failurePolicy':'Fail','clientConfig':{'caBundle':'eA==',"
                                            "'service':{'namespace':'v','name':'s'}},'sideEffects':'None','admissionReviewVersions':['v1']}]}"));
        fake_add_nodepool(c, "web", NULL, NULL);
        fake_add_pod(c, &(FakePod){ .name = "p", .node = "n7", .app = "web" });
}

TEST_CASE(test_fetch) {
        static const struct {
                const char *what, *node, *resources; /* that may be read; NULL: all */
                bool other_claim;
                const char *reasons, *unknown[3], *message, *requests;
        } rows[] = {
                { "all is well", "n7", NULL, false, "(InService), (WebhookWithoutService)", {}, NULL, FIRST ", get nodeclaims, list poddisruptionbudgets, get services" },
                { "a claim of before", "n7", NULL, true, "(InService), (WebhookWithoutService)", {}, NULL,
                  FIRST ", get nodeclaims, list poddisruptionbudgets, get services, list nodeclaims" },
                { "no such node", "n9999", NULL, false, "", {}, NULL, NULL },
                { "nothing but the node", "n7", "nodes", false, "(NotSelected)",
                  { "which pods hold it is not known, because you may not list pods", "which NodePool manages it is not known", "its NodeClaim is not known, because you may not list nodeclaims" }, NULL, NULL },
                { "not even that", "n7", "pods", false, NULL, {}, "you may not get Node 'n7'", NULL },
                { "no Lease", "n7", "nodes,pods,nodepools,nodedisruptionbudgets,namespaces,validatingwebhookconfigurations,nodeclaims,poddisruptionbudgets,services", false,
                  "(InService), (WebhookWithoutService)", { "who leads is not known, because you may not get Lease 'v/l'" }, NULL, NULL },
                { "no PDBs", "n7", "nodes,pods,nodepools,nodedisruptionbudgets,namespaces,validatingwebhookconfigurations,nodeclaims,leases,services", false,
                  "(InService), (WebhookWithoutService)", { "which PodDisruptionBudgets hold its pods is not known, because you may not list poddisruptionbudgets in namespace 'default'" }, NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *identity = strf("CN=p,O=%s", rows[i].resources ? "people" : "system:masters");
                _cleanup_strbuf_ StrBuf requests = {};
                Fetched fetched = {};
                FakeWorld w;

                print_message("  %s\n", rows[i].what);
                fake_world_init(&w, NULL);
                for (int n = 0; n < 50; n++) {
                        char name[16];

                        snprintf(name, sizeof(name), "n%d", n);
                        fake_add_node(w.cluster, name, NULL, name, "web");
                }
                fake_merge(w.cluster, FAKE_NODES, NULL, "n7", "{'metadata':{'finalizers':['vesper.sh/termination']}}");
                fill(w.cluster, fj_string(fake_get(w.cluster, FAKE_NODES, NULL, "n7"), "metadata", "uid", NULL), !rows[i].other_claim);
                if (rows[i].resources)
                        fake_authz_allow(fake_cluster_authz(w.cluster), "people", "get,list", "*", rows[i].resources, NULL);
                fake_api_set_fault(fake_cluster_api(w.cluster), on_request, &requests);

                fetch_in(&w, identity, rows[i].node, &fetched);
                assert_true(rows[i].message ? fetched.message && strstr(fetched.message, rows[i].message) : !fetched.message);
                if (rows[i].reasons)
                        assert_string_equal(fetched.reasons, rows[i].reasons);
                for (size_t k = 0; k < 3 && rows[i].unknown[k]; k++)
                        assert_non_null(strstr(fetched.unknown, rows[i].unknown[k]));
                if (!rows[i].message && !rows[i].unknown[0])
                        assert_string_equal(fetched.unknown, "");
                if (rows[i].requests)
                        assert_string_equal(strbuf_str(&requests), rows[i].requests);
                if (rows[i].reasons)
                        assert_int_equal(fetched.knows_pdbs, !strstr(fetched.unknown, "PodDisruptionBudgets"));
                assert_int_equal(fetched.result, streq(rows[i].node, "n7") ? 0 : -ENOENT);

                fetched_done(&fetched);
                fake_world_done(&w);
        }
}

/* -- the rows, with the objects in a cluster ------------------------------------------------------------- */

static void no_pods(const FakeRequest *r, FakeApiFault *fault, void *userdata) {
        if (r->resource && r->resource->id == FAKE_PODS)
                fault->status = 403;
}

/* Adds the DaemonSet that owns a pod, which the rows do not list. */
static void put_owner(FakeCluster *c, const cJSON *pod) {
        const cJSON *owner = cJSON_GetArrayItem(fj_get(pod, "metadata", "ownerReferences", NULL), 0);

        if (streq_ptr(fj_string(owner, "kind", NULL), "DaemonSet"))
                fake_put(c, FAKE_DAEMONSETS,
                         fj_parse("{'metadata':{'name':'%s','namespace':'web','uid':'%s'}}", fj_string(owner, "name", NULL),
                                  fj_string(owner, "uid", NULL)));
}

/* Gives the NodeClaim its exact name if the Node lacks the finalizer: then the fetch looks for no other name. */
static void name_claim(FakeCluster *c, cJSON *claim, char **ret_name) {
        const cJSON *node = fake_get(c, FAKE_NODES, NULL, "w");

        if (!node || fj_array_has(fj_get(node, "metadata", "finalizers", NULL), FINALIZER_TERMINATION))
                return;
        *ret_name = MUST(claim_name("a", "aws:///z/i-1", "u"));
        fj_set_string(fj_object(claim, "metadata"), "name", *ret_name);
}

static void put_row(FakeCluster *c, const Row *row, char **ret_claim) {
        char renewed[RFC3339_MAX];

        rfc3339_format((NOW_SEC - 2) * USEC_PER_SEC, renewed);
        fake_put(c, FAKE_NAMESPACES, fj_parse("{'metadata':{'name':'v'}}"));
        fake_put(c, FAKE_LEASES,
                 fj_parse("{'metadata':{'name':'l','namespace':'v'},'spec':{'holderIdentity':'%s','leaseDurationSeconds':15,'renewTime':'%s'}}",
                          row->leader ?: "coordinator-a", renewed));
        for (size_t k = 0; k < ELEMENTSOF(row->objects) && row->objects[k].kind; k++) {
                const KubeKind *kind = row->objects[k].kind;
                _cleanup_free_ char *text = with_quotes(row->objects[k].json);
                cJSON *object = MUST(cJSON_Parse(text));

                put_owner(c, object);
                if (kind == &kube_node_claim_kind)
                        name_claim(c, object, ret_claim);
                fake_put(c, fake_resource_find(kind->group, kind->version, kind->plural)->id, object);
        }
        if (row->unknown_pods)
                fake_api_set_fault(fake_cluster_api(c), no_pods, NULL);
}

static char *replace(const char *text, const char *from, const char *to) {
        StrBuf b = {};

        for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
                strbuf_add_n(&b, text, (size_t) (at - text));
                strbuf_add(&b, to);
        }
        strbuf_add(&b, text);
        return MUST(strbuf_steal(&b));
}

TEST_CASE(test_rows_fetched) {
        static const FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };

        for (size_t i = 0; i < ELEMENTSOF(causes_table); i++) {
                _cleanup_free_ char *expected = account_of_row(causes_table + i), *claim = NULL, *seen = NULL, *asked = NULL;
                Fetched fetched = {};
                FakeWorld w;

                print_message("  %s\n", causes_table[i].what);
                fake_world_init(&w, &quiet);
                loop_virtual_step_wall(w.loop, (int64_t) (NOW_SEC * USEC_PER_SEC) - (int64_t) loop_wall(w.loop));
                put_row(w.cluster, causes_table + i, &claim);
                asked = causes_table[i].claim ? strf("nodeclaim/%s", causes_table[i].claim) : strdup("w");
                fetch_in(&w, "CN=p,O=system:masters", asked, &fetched);
                assert_null(fetched.message);
                assert_string_equal(fetched.reasons, causes_table[i].reasons);
                assert_int_equal(fetched.unknown[0] != 0, causes_table[i].unknown_pods);
                seen = replace(fetched.account, claim ?: "nc-1", "nc-1");
                if (!causes_table[i].unknown_pods)
                        assert_string_equal(seen, expected);
                fetched_done(&fetched);
                fake_world_done(&w);
        }
}

/* A Lease counts until its duration is over; without a time of renewal, whoever holds it leads. */
TEST_CASE(test_leader) {
        static const struct {
                const char *leader;
                usec_t seen_ago_sec, lease_sec; /* seen_ago_sec 0: never */
                const char *reasons;
                usec_t since_ago_sec;
        } rows[] = {
                { "a", 14, 15, "(InService)", 0 },          { "a", 15, 15, "(InService)", 0 },
                { "a", 17, 15, "(InService), (NoLeader)", 2 }, { "a", 0, 15, "(InService)", 0 },
                { "", 5, 15, "(InService), (NoLeader)", 0 }, { NULL, 17, 15, "(InService)", 0 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(explain_causes_done) ExplainCauses causes = {};
                _cleanup_free_ char *reasons = NULL;
                usec_t since;
                Bench b;

                bench_init(&b);
                free(b.facts.leader);
                b.facts.leader = rows[i].leader ? strdup(rows[i].leader) : NULL;
                b.facts.leader_seen_usec = rows[i].seen_ago_sec ? b.facts.now_usec - rows[i].seen_ago_sec * USEC_PER_SEC : 0;
                b.facts.lease_usec = rows[i].lease_sec * USEC_PER_SEC;
                put(&b, &kube_node_kind, IN_SERVICE);
                put(&b, &kube_node_claim_kind, CLAIM(OURS, "", ""));
                assert_return_code(explain_make(&b.facts, &causes), 0);
                reasons = reasons_of(&causes);
                assert_string_equal(reasons, rows[i].reasons);
                since = causes.list[causes.n - 1].since_usec;
                assert_int_equal(since > 0 ? (b.facts.now_usec - since) / USEC_PER_SEC : 0, rows[i].since_ago_sec);
                bench_done(&b);
        }
}

/* What the coordinator says of a node in service; nothing where it says nothing. */
TEST_CASE(test_told) {
#define SAYS ",'conditions':[{'type':'Launched','status':'True','reason':'Adopted'},"                                              \
             "{'type':'Consolidatable','status':'False','reason':'PdbBlocks','message':'pdb web/web \\u001b[2Jprevents pod evictions'," \
             "'lastTransitionTime':'2027-01-15T07:55:00Z'},{'type':'Empty','status':'False','reason':'NotEmpty','message':'it runs 2 pods'}]"
        static const struct {
                const char *claim, *text, *json;
        } rows[] = {
                { NULL, "", "[]" },
                { CLAIM(OURS, "", ""), "", "[]" },
                { CLAIM(OURS, "", SAYS),
                  "\nWhether it would go though nobody asked, as the coordinator says on NodeClaim nc-1 (nothing is removed for that):\n\n"
                  "CONDITION        STATUS   FOR   REASON      WHY\n"
                  "Empty            False    -     NotEmpty    it runs 2 pods\n"
                  "Consolidatable   False    5m    PdbBlocks   pdb web/web ?[2Jprevents pod evictions\n",
                  "[{\"type\":\"Empty\",\"status\":\"False\",\"reason\":\"NotEmpty\",\"message\":\"it runs 2 pods\"},"
                  "{\"type\":\"Consolidatable\",\"status\":\"False\",\"reason\":\"PdbBlocks\",\"message\":\"pdb web/web \\u001b[2Jprevents pod evictions\","
                  "\"since\":\"2027-01-15T07:55:00Z\"}]" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *text = NULL, *json = NULL;
                Bench b;

                bench_init(&b);
                put(&b, &kube_node_kind, IN_SERVICE);
                if (rows[i].claim)
                        put(&b, &kube_node_claim_kind, rows[i].claim);
                text = explain_told_text(&b.facts);
                json = explain_told_json(&b.facts);
                assert_string_equal(text, rows[i].text);
                assert_string_equal(json, rows[i].json);
                bench_done(&b);
        }
}

int main(int argc, char **argv) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows), cmocka_unit_test(test_work), cmocka_unit_test(test_plain), cmocka_unit_test(test_many),
                cmocka_unit_test(test_fetch), cmocka_unit_test(test_rows_fetched), cmocka_unit_test(test_told), cmocka_unit_test(test_leader),
        };

        write_files = expected_file_is_written(argc, argv);
        return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
