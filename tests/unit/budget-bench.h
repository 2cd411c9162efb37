/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fixture of tests of the budget ledger: two replicas of a coordinator, without its other parts, in a fake
 * cluster. */

#include "budget-ledger.h"
#include "cmocka-test.h"
#include "fake-client.h"
#include "log.h"
#include "string-util.h"

#define N_REPLICAS 2u
#define N_ASKS_MAX 64u

/* Replicas of a coordinator, each with a view and a ledger of its own; the first leads. */
typedef struct Replica {
        struct Bench *bench;
        Env env;
        Log *log;
        StrBuf said; /* its log */
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        ClusterView *view;
        BudgetLedger *ledger;
} Replica;

typedef struct Asked {
        BudgetRequest *request;
        bool answered;
        unsigned n_answers;
        BudgetAnswer answer;
        char *message;
} Asked;

typedef struct Bench {
        FakeWorld w;
        Replica replicas[N_REPLICAS];
        Asked asks[N_ASKS_MAX];
        size_t n_asks;
        /* By kind, the holder that the leader sees; NULL: none. */
        const char *holders[_NODE_CHARGE_KIND_MAX];
        const char *poison,
                *poisoned; /* the API server refuses patches of that budget with this text in them */
} Bench;

static inline void on_ignored(const char *name, void *userdata) {
}

static inline void on_pod(const char *node, const KubePod *old, const KubePod *new, void *userdata) {
}

static inline void on_pdb(const KubePdb *old, const KubePdb *new, void *userdata) {
}

static inline void on_synced(void *userdata) {
}

static inline void on_budget(const KubeNodeBudget *old, const KubeNodeBudget *new, void *userdata) {
        Replica *r = userdata;

        if (r->ledger)
                budget_ledger_see_budget(r->ledger, old, new);
}

static inline void on_node(const KubeNode *old, const KubeNode *new, void *userdata) {
        Replica *r = userdata;

        if (r->ledger)
                budget_ledger_see_node(r->ledger, old, new);
}

static inline void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                          size_t n_fields,
                          void *userdata) {
        strbuf_addf(&((Replica *) userdata)->said, "%s\n", text);
}

static inline void replica_init(Replica *r, Bench *b, uint64_t seed) {
        const ClusterViewHandler h = { .on_node_dirty = on_ignored, .on_pool_dirty = on_ignored,
                                       .on_claim_dirty = on_ignored,
                                       .on_pod = on_pod, .on_pdb = on_pdb, .on_budget = on_budget, .on_node = on_node,
                                       .on_synced = on_synced, .userdata = r };
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;

        *r = (Replica){ .bench = b };
        assert_return_code(random_new(seed, &r->random), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "c", &r->log), 0);
        log_set_hook(r->log, on_log, r);
        assert_return_code(http_inproc_new(b->w.loop, FAKE_ADMIN, NULL, &r->transport), 0);
        assert_return_code(http_inproc_route(r->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster),
                           0);
        r->env = (Env){ .loop = b->w.loop, .log = r->log, .random = r->random, .transport = r->transport,
                        .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(b->w.loop, NULL, NULL, config, NULL, NULL, &r->auth, &message), 0);
        assert_return_code(kube_client_new(&r->env, r->auth, FAKE_ORIGIN, "test", &r->client), 0);
        assert_return_code(cluster_view_new(r->client, "vesper-system", &h, &r->view), 0);
        assert_return_code(budget_ledger_new(r->client, r->view, &r->ledger), 0);
}

static inline bool on_holder(NodeChargeKind kind, const char *node, const char *holder, void *userdata) {
        const Bench *b = userdata;

        return streq_ptr(holder, b->holders[kind]);
}

static inline void run(Bench *b, usec_t usec) {
        fake_world_run(&b->w, usec);
}

static inline void put_budget(Bench *b, const char *name, const char *amount, const char *label) {
        fake_put(b->w.cluster, FAKE_NDBS,
                 fj_parse("{'metadata':{'name':'%s','generation':1},'spec':{%s,'selector':{'matchLabels':{'%s':'a'}}}}", name, amount,
                          label));
}

/* n nodes n0, n1, ... that the budgets of "vesper.sh/pool" select. */
static inline void bench_init(Bench *b, size_t n, const char *amount) {
        FakeClusterOptions quiet = { .controllers_off = FAKE_CONTROLLERS_ALL };

        *b = (Bench){};
        fake_world_init(&b->w, &quiet);
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *name = strf("n%zu", i);

                fake_add_node(b->w.cluster, name, NULL, NULL, "a");
        }
        put_budget(b, "b1", amount, "vesper.sh/pool");
        for (size_t i = 0; i < N_REPLICAS; i++)
                replica_init(b->replicas + i, b, i + 1);
        run(b, USEC_PER_SEC);
        assert_true(cluster_view_synced(b->replicas[0].view));
        budget_ledger_lead(b->replicas[0].ledger, (HttpGuard) { 0 },
                           &(BudgetHolders) { .holder_exists = on_holder, .userdata = b });
        run(b, USEC_PER_SEC);
}

static inline void bench_done(Bench *b) {
        for (size_t i = 0; i < b->n_asks; i++) {
                budget_request_free(b->asks[i].request);
                free(b->asks[i].message);
        }
        for (size_t i = 0; i < N_REPLICAS; i++) {
                Replica *r = b->replicas + i;

                budget_ledger_free(r->ledger);
                cluster_view_free(r->view);
                kube_client_free(r->client);
                kube_auth_free(r->auth);
                http_transport_free(r->transport);
                random_free(r->random);
                log_free(r->log);
                strbuf_done(&r->said);
        }
        fake_world_done(&b->w);
}

static inline void on_answered(BudgetAnswer answer, const char *message, void *userdata) {
        Asked *a = userdata;

        a->answered = true;
        a->n_answers++;
        a->answer = answer;
        assert_return_code(free_and_strdup(&a->message, message), 0);
}

static inline Asked *ask_as(Bench *b, size_t replica, const char *node, BudgetAsk ask) {
        Asked *a = b->asks + b->n_asks++;

        assert_in_range(b->n_asks, 1, N_ASKS_MAX);
        ask.node = cluster_view_node(b->replicas[replica].view, node);
        assert_non_null(ask.node);
        ask.holder = ask.holder ? ask.holder : "alice"; /* kind 0: a DELETE */
        assert_return_code(budget_ledger_ask(b->replicas[replica].ledger, &ask, on_answered, a, &a->request),
                           0);
        assert_false(a->answered);
        return a;
}

static inline Asked *ask(Bench *b, size_t replica, const char *node) {
        return ask_as(b, replica, node, (BudgetAsk){ 0 });
}

static inline BudgetAnswer answer_of(Bench *b, Asked *a) {
        run(b, USEC_PER_SEC);
        assert_true(a->answered);
        return a->answer;
}

static inline const cJSON *status(Bench *b, const char *name) {
        return fj_get(fake_get(b->w.cluster, FAKE_NDBS, NULL, name), "status", NULL);
}

static inline int64_t figure(Bench *b, const char *name, const char *key) {
        return fj_int(status(b, name), -1, key, NULL);
}

static inline const char *uid_of(Bench *b, const char *node) {
        return fj_string(fake_get(b->w.cluster, FAKE_NODES, NULL, node), "metadata", "uid", NULL);
}

static inline void release(Bench *b, size_t replica, const char *node, const char *holder) {
        budget_ledger_release(b->replicas[replica].ledger, uid_of(b, node), holder);
}

/* Returns the charge of the node in budget b1, like "DELETE alice (slot-1)"; "": none. Free it. */
static inline char *charge_of(Bench *b, const char *node) {
        const cJSON *c = fj_find(fj_get(status(b, "b1"), "disruptedNodes", NULL), "name", node);
        const char *before = fj_string(c, "heldBefore", NULL);

        if (!c)
                return strdup("");
        return strf("%s %s%s%s%s", fj_string(c, "kind", NULL), strempty(fj_string(c, "holder", NULL)),
                    before ? " (" : "", strempty(before), before ? ")" : "");
}

#define assert_charge(b, node, expected) \
        ({ \
                _cleanup_free_ char *_c = charge_of((b), (node)); \
                assert_string_equal(_c, (expected)); \
        })

static inline int n_charges(Bench *b, const char *name) {
        return cJSON_GetArraySize(fj_get(status(b, name), "disruptedNodes", NULL));
}

static inline uint64_t n_patches(const Bench *b) {
        uint64_t n = 0;

        for (size_t i = 0; i < N_REPLICAS; i++)
                n += budget_ledger_n_patches(b->replicas[i].ledger);
        return n;
}

static inline void set_ready(Bench *b, const char *node, bool ready) {
        fake_merge(b->w.cluster, FAKE_NODES, NULL, node,
                   "{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}",
                   ready ? "True" : "False");
}

/* Makes the ledgers evaluate their charges: changes whether another node is Ready. */
static inline void wake_ledgers(Bench *b, const char *node, usec_t usec) {
        set_ready(b, node, !kube_node_is_ready(cluster_view_node(b->replicas[0].view, node)));
        run(b, usec);
}

/* Deletes the Node as a person does. The Node has our finalizer. */
static inline void delete_node(Bench *b, const char *node) {
        fake_merge(b->w.cluster, FAKE_NODES, NULL, node,
                   "{'metadata':{'finalizers':['vesper.sh/termination']}}");
        assert_true(fake_delete(b->w.cluster, FAKE_NODES, NULL, node, -1));
        run(b, USEC_PER_SEC);
}
