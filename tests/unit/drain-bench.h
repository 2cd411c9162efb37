/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tests of a node's drain stand on: one drain of node-a in a fake cluster, whose pods an informer of its own shows. */

#include "cmocka-test.h"
#include "fake-client.h"
#include "informer.h"
#include "node-drain.h"
#include "string-util.h"

#define MSEC USEC_PER_MSEC
#define NODE "node-a"

/* One drain of node-a in a fake cluster whose pods its own informer shows. */
typedef struct Bench {
        FakeWorld w;
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        KubeClient *client;
        Env env;
        Informer *informer;
        Evictor *evictor;
        NodeDrain *drain;
        PodReturns *returns;
        StrBuf trace;      /* "evicted a; blocked b BlockedByPDB web; ..." */
        const char *ended; /* the pod whose containers have */
        const char *pdb;   /* what pdb_of says of every pod; NULL: nobody knows */
        const char *pdb_app; /* ... of this label app; NULL: of any */
        KubePdb known_pdb;
        bool know_pdbs;
        unsigned n_changed;
        unsigned n_unanswered; /* evictions that were told without an answer */
        usec_t late_usec; /* answers to reads come so much after they were true */
        usec_t eviction_reply_usec; /* before we hear how an eviction was answered */
        bool no_permit, no_lead;    /* what the evictor, and the guard of its deletes, are told */
} Bench;

static inline void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        Bench *b = userdata;

        if (strstr(request->url, "/eviction"))
                ret_fault->reply_delay_usec = b->eviction_reply_usec;
        else if (request->method == HTTP_GET && !strstr(request->url, "watch="))
                ret_fault->reply_delay_usec = b->late_usec;
}

static inline bool on_permit(void *userdata) {
        return !((Bench *) userdata)->no_permit;
}

static inline bool on_may_send(void *userdata) {
        return !((Bench *) userdata)->no_lead;
}

static inline void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Bench *b = userdata;

        if (!b->drain)
                return;
        if (e == INFORMER_ADDED)
                node_drain_pod_seen(b->drain, (KubePod *) new);
        else if (e == INFORMER_DELETED)
                node_drain_pod_gone(b->drain, (KubePod *) old);
        else
                node_drain_pod_changed(b->drain, (KubePod *) new);
}

static inline void run_for(Bench *b, usec_t usec) {
        fake_world_run(&b->w, usec);
}

static inline void bench_init(Bench *b) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL;
        InformerOptions options = { .field_selector = "spec.nodeName=" NODE };
        InformerHandler handler = { .on_event = on_event, .userdata = b };
        EvictorOptions evictor = { .permit = { on_permit, b } };
        HttpInprocHooks hooks = { .on_request = on_request, .userdata = b };

        *b = (Bench){};
        fake_world_init(&b->w, NULL);
        assert_return_code(random_new(5, &b->random), 0);
        assert_return_code(http_inproc_new(b->w.loop, FAKE_ADMIN, &hooks, &b->transport), 0);
        assert_return_code(http_inproc_route(b->transport, FAKE_ORIGIN, fake_cluster_handle, b->w.cluster),
                           0);
        b->env = (Env){ .loop = b->w.loop, .random = b->random, .transport = b->transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(b->w.loop, NULL, NULL, config, NULL, NULL, &b->auth, &message), 0);
        assert_return_code(kube_client_new(&b->env, b->auth, FAKE_ORIGIN, "test", &b->client), 0);
        assert_return_code(informer_new(b->client, &kube_own_pod_kind, &options, &handler, &b->informer), 0);
        assert_return_code(evictor_new(b->client, &evictor, &b->evictor), 0);
        assert_return_code(pod_returns_new(&b->returns), 0);
        fake_add_node(b->w.cluster, NODE, NULL, "i-1", NULL);
        fake_add_node(b->w.cluster, "node-b", NULL, "i-2", NULL);
}

static inline void bench_done(Bench *b) {
        node_drain_free(b->drain);
        pod_returns_free(b->returns);
        evictor_free(b->evictor);
        informer_free(b->informer);
        kube_client_free(b->client);
        kube_auth_free(b->auth);
        http_transport_free(b->transport);
        random_free(b->random);
        fake_world_done(&b->w);
        strbuf_done(&b->trace);
}

static inline void on_changed(NodeDrain *d, void *userdata) {
        Bench *b = userdata;

        b->n_changed++;
}

static inline void on_pod(NodeDrain *d, DrainPodEvent e, const KubePod *pod, const DrainBlocker *blocker,
                   const EvictionReport *report, void *userdata) {
        static const char *const words[] = { [DRAIN_POD_EVICTED] = "evicted",
                                             [DRAIN_POD_BLOCKED] = "blocked",
                                             [DRAIN_POD_DELETED] = "deleted",
                                             [DRAIN_POD_STAYS] = "stays",
                                             [DRAIN_POD_LEFT_ALONE] = "left alone",
                                             [DRAIN_POD_GONE] = "gone" };
        Bench *b = userdata;

        b->n_unanswered += e == DRAIN_POD_EVICTED && !report;
        assert_true(!report || e == DRAIN_POD_EVICTED || e == DRAIN_POD_BLOCKED);
        strbuf_addf(&b->trace, "%s%s %s", b->trace.size > 0 ? "; " : "", words[e], pod->object.meta.name);
        if (e == DRAIN_POD_BLOCKED)
                strbuf_addf(&b->trace, " %s%s%s", pod_wait_to_string(blocker->wait), blocker->detail[0] ? " " : "",
                            blocker->detail);
}

static inline const KubePdb *on_pdb_of(const KubePod *pod, void *userdata) {
        Bench *b = userdata;

        b->known_pdb.object.meta.name = (char *) b->pdb;
        return b->pdb && (!b->pdb_app || streq_ptr(object_meta_label(&pod->object.meta, "app"), b->pdb_app)) ? &b->known_pdb : NULL;
}

static inline bool on_has_ended(const KubePod *pod, void *userdata) {
        Bench *b = userdata;

        return streq_ptr(b->ended, pod->object.meta.name);
}

static inline bool on_iterate(HashmapIterator *it, const KubePod **ret, void *userdata) {
        return informer_iterate(((Bench *) userdata)->informer, it, (KubeObject **) ret);
}

/* deadline_sec: from now; 0: none. */
static inline void begin(Bench *b, int64_t deadline_sec, ProtectedPolicy policy, bool evict_first) {
        usec_t now = loop_wall(b->w.loop);
        NodeDrainOptions o = {
                .node = NODE,
                .guard = { on_may_send, b },
                .rules = { .returns = b->returns,
                           .protected_policy = policy,
                           .evict_first = evict_first,
                           .deadline_usec = deadline_sec > 0 ? now + (usec_t) deadline_sec * USEC_PER_SEC
                                                             : USEC_INFINITY },
        };
        NodeDrainHandler h = { .on_changed = on_changed,
                               .on_pod = on_pod,
                               .iterate = on_iterate,
                               .has_ended = on_has_ended,
                               .pdb_of = b->know_pdbs ? on_pdb_of : NULL,
                               .userdata = b };

        assert_true(informer_synced(b->informer));
        assert_return_code(node_drain_new(b->client, b->evictor, &o, &h, &b->drain), 0);
        node_drain_wake(b->drain);
}

static inline uint64_t n_evictions(Bench *b) {
        return fake_api_count(fake_cluster_api(b->w.cluster), FAKE_CREATE, FAKE_PODS, "eviction");
}

static inline uint64_t n_deletes(Bench *b) {
        return fake_api_count(fake_cluster_api(b->w.cluster), FAKE_DELETE, FAKE_PODS, NULL);
}

static inline void assert_state(Bench *b, NodeDrainState s) {
        assert_string_equal(node_drain_state_to_string(node_drain_state(b->drain)),
                            node_drain_state_to_string(s));
}

static inline void assert_trace(Bench *b, const char *expected) {
        assert_string_equal(strbuf_str(&b->trace), expected);
        strbuf_truncate(&b->trace, 0);
}

/* "p BlockedByPDB web, q Terminating" */
static inline void assert_blockers(Bench *b, const char *expected) {
        _cleanup_strbuf_ StrBuf text = {};
        const DrainBlocker *list;
        size_t n;

        list = node_drain_blockers(b->drain, &n);
        assert_int_equal(n, node_drain_pods_left(b->drain));
        for (size_t i = 0; i < n; i++)
                strbuf_addf(&text, "%s%s %s%s%s", i > 0 ? ", " : "", list[i].name, pod_wait_to_string(list[i].wait),
                            list[i].detail[0] ? " " : "", list[i].detail);
        assert_string_equal(strbuf_str(&text), expected);
}

/* Seconds from now until the pod's deletionTimestamp; -1: it is not being deleted, or not there. */
static inline int64_t seconds_to_live(Bench *b, const char *pod) {
        const char *text = fj_string(fake_get(b->w.cluster, FAKE_PODS, "default", pod), "metadata",
                                     "deletionTimestamp", NULL);
        usec_t at;

        if (!text)
                return -1;
        assert_return_code(rfc3339_parse(text, &at), 0);
        return (int64_t) (at / USEC_PER_SEC) - (int64_t) (loop_wall(b->w.loop) / USEC_PER_SEC);
}
