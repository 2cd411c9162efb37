/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent, the coordinator and vesperctl drain do the same to the same pod. Each situation is one pod on a node, and what stands
 * around it. It is played three times: a person starts vesper-drain.service on the machine; the Node is deleted; a person runs vesperctl
 * drain. The agent may not list PodDisruptionBudgets, so it finds them out by one request after another.
 */
#include "agent-rig.h"
#include "cmocka-test.h"
#include "coordinator-rig.h"
#include "ctl-drain.h"

#define SEC USEC_PER_SEC
#define PLAYED_SEC 600u

typedef enum Drainer { BY_AGENT, BY_COORDINATOR, BY_CTL, _DRAINER_MAX } Drainer;

static const char *const drainer_names[_DRAINER_MAX] = { "agent", "coordinator", "vesperctl" };

typedef struct Situation {
        const char *what;
        void (*set)(FakeCluster *c, const char *node);
        void (*tick)(FakeCluster *c, const char *node); /* each second; NULL: nothing happens */
        struct {
                unsigned least, most;
        } asked[2];       /* eviction requests in PLAYED_SEC: of those who see PodDisruptionBudgets, of the agent */
        bool is_drained;  /* by then */
        bool is_left;     /* the pod runs all the same */
        const char *wait; /* what it is told to wait for; NULL: nothing */
} Situation;

/* -- situations ----------------------------------------------------------------------------------------- */

static void set_plain(FakeCluster *c, const char *node) {
        fake_add_pod(c, &(FakePod){ .name = "web", .node = node, .app = "web" });
}

static void set_done(FakeCluster *c, const char *node) {
        set_plain(c, node);
        fake_merge(c, FAKE_PODS, "default", "web", "{'status':{'phase':'Succeeded'}}");
}

static void set_daemon(FakeCluster *c, const char *node) {
        fake_add_pod(c, &(FakePod){ .name = "web", .node = node, .owner_kind = "DaemonSet", .owner = "ds" });
}

static void set_foreign_daemon(FakeCluster *c, const char *node) {
        set_daemon(c, node);
        fake_merge(c, FAKE_PODS, "default", "web",
                   "{'metadata':{'ownerReferences':[{'apiVersion':'apps.kruise.io/v1alpha1','kind':'DaemonSet','name':'ds','uid':'ds-uid','controller':true}]}}");
}

static void set_marked_daemon(FakeCluster *c, const char *node) {
        fake_add_pod(c, &(FakePod){ .name = "web", .node = node, .owner_kind = "NodeAgent", .owner = "x",
                                    .annotations = "{'cluster-autoscaler.kubernetes.io/daemonset-pod':'true'}" });
}

static void set_static(FakeCluster *c, const char *node) {
        fake_add_pod(c, &(FakePod){ .name = "web", .node = node, .annotations = "{'kubernetes.io/config.mirror':'x'}" });
}

static void set_another(FakeCluster *c, const char *node, bool is_ready) {
        set_plain(c, node);
        fake_add_node(c, "spare", NULL, "i-spare", NULL);
        fake_add_pod(c, &(FakePod){ .name = "web-2", .node = "spare", .app = "web", .unready = !is_ready });
        fake_add_pdb(c, "default", "web", "web", true, "1");
}

static void set_protected(FakeCluster *c, const char *node) {
        fake_add_pod(c, &(FakePod){ .name = "web", .node = node, .annotations = "{'vesper.sh/do-not-evict':'true'}" });
}

static void set_room(FakeCluster *c, const char *node) {
        set_another(c, node, true);
}

static void set_used_up(FakeCluster *c, const char *node) {
        set_another(c, node, false);
}

static void set_never(FakeCluster *c, const char *node) {
        set_plain(c, node);
        fake_add_pdb(c, "default", "web", "web", true, "1");
}

static void set_two_pdbs(FakeCluster *c, const char *node) {
        set_room(c, node);
        fake_add_pdb(c, "default", "web-too", "web", true, "1");
}

static void set_webhook(FakeCluster *c, const char *node) {
        fake_add_pod(c, &(FakePod){ .name = "web", .node = node, .app = "web", .annotations = "{'" FAKE_EVICTION_WEBHOOK "':'403 it is being migrated'}" });
}

static void make_dry_run(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        if (streq_ptr(request->subresource, "eviction"))
                ret_fault->status = 201;
}

static void set_dry_run(FakeCluster *c, const char *node) {
        set_plain(c, node);
        fake_api_set_fault(fake_cluster_api(c), make_dry_run, NULL);
}

/* Pods of that node that are not on their way out. */
static size_t n_running(FakeCluster *c, const char *node) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, c, FAKE_PODS, "default")
                n += streq_ptr(fj_string(pod, "spec", "nodeName", NULL), node) && !fj_get(pod, "metadata", "deletionTimestamp", NULL);
        return n;
}

/* Its controller makes it for this node, anew as soon as the one before is on its way out. */
static void put_back(FakeCluster *c, const char *node) {
        _cleanup_free_ char *name = strf("web-%llu", (unsigned long long) fake_api_count(fake_cluster_api(c), FAKE_CREATE, FAKE_PODS, "eviction"));

        if (n_running(c, node) == 0)
                fake_add_pod(c, &(FakePod){ .name = name, .node = node, .owner_kind = "Pinned", .owner = "p", .stop_sec = 3 });
}

static const Situation situations[] = {
        { "a pod", set_plain, NULL, { { 1, 1 }, { 1, 1 } }, true, false, NULL },
        { "a pod that is done", set_done, NULL, { { 0, 0 }, { 0, 0 } }, true, true, NULL },
        { "a daemon's", set_daemon, NULL, { { 0, 0 }, { 0, 0 } }, true, true, NULL },
        { "a daemon's of another API group", set_foreign_daemon, NULL, { { 0, 0 }, { 0, 0 } }, true, true, NULL },
        { "one that says so by its annotation", set_marked_daemon, NULL, { { 0, 0 }, { 0, 0 } }, true, true, NULL },
        { "a static pod's mirror", set_static, NULL, { { 0, 0 }, { 0, 0 } }, true, true, NULL },
        { "one that opted out", set_protected, NULL, { { 0, 0 }, { 0, 0 } }, false, true, "Protected" },
        { "a budget with room", set_room, NULL, { { 1, 1 }, { 1, 1 } }, true, false, NULL },
        { "a budget that is used up", set_used_up, NULL, { { 0, 1 }, { 2, 65 } }, false, true, "BlockedByPDB" },
        { "a budget that never allows", set_never, NULL, { { 2, 3 }, { 2, 65 } }, false, true, "PDB" },
        { "two budgets", set_two_pdbs, NULL, { { 1, 4 }, { 1, 4 } }, false, true, "SeveralPDBs" },
        { "a webhook refuses", set_webhook, NULL, { { 2, 60 }, { 2, 60 } }, false, true, "EvictionWebhook" },
        { "a webhook makes a dry run", set_dry_run, NULL, { { 6, 8 }, { 6, 8 } }, false, true, "EvictionWithoutEffect" },
        { "its controller puts it back", put_back, put_back, { { 3, 3 }, { 3, 3 } }, true, true, NULL },
};

/* -- who drains ----------------------------------------------------------------------------------------- */

static void check(const Situation *s, FakeCluster *c, const char *node, Drainer by, bool is_drained, const char *said) {
        uint64_t n = fake_api_count(fake_cluster_api(c), FAKE_CREATE, FAKE_PODS, "eviction");
        bool is_left = n_running(c, node) > 0;

        if (n < s->asked[by == BY_AGENT].least || n > s->asked[by == BY_AGENT].most)
                fail_msg("%s, %s: %llu eviction requests", s->what, drainer_names[by], (unsigned long long) n);
        if (is_drained != s->is_drained || (is_left != s->is_left && !(by == BY_COORDINATOR && is_drained)))
                fail_msg("%s, %s: %s, and the pod is %s", s->what, drainer_names[by], is_drained ? "drained" : "not drained", is_left ? "there" : "gone");
        if (s->wait && !strstr(said, s->wait))
                fail_msg("%s, %s: says %s", s->what, drainer_names[by], said);
}

static void play_agent(const Situation *s) {
        _cleanup_(agent_rig_freep) AgentRig *r = agent_rig_new();
        _cleanup_free_ char *phase = NULL;

        s->set(r->cluster, RIG_NODE);
        agent_rig_start(r);
        (void) agent_rig_run(r, 5 * SEC);
        assert_int_equal(fake_power_call_unit(r->power, "Drain"), 0);
        for (unsigned i = 0; i < PLAYED_SEC; i++) {
                (void) agent_rig_run(r, SEC);
                if (s->tick)
                        s->tick(r->cluster, RIG_NODE);
        }
        phase = agent_rig_phase(r);
        check(s, r->cluster, RIG_NODE, BY_AGENT, streq_ptr(phase, "Drained"), strbuf_str(&r->lines));
}

static void play_coordinator(const Situation *s) {
        _cleanup_(coordinator_rig_freep) CoordinatorRig *r = coordinator_rig_new();
        _cleanup_free_ char *status = NULL;
        bool is_drained = false;

        s->set(r->cluster, "n0");
        rig_begin(r, 1, NULL);
        rig_delete_node(r, "n0");
        for (unsigned i = 0; i < PLAYED_SEC && !is_drained; i++) {
                rig_run(r, SEC);
                is_drained = rig_machine(r, "n0")->n_terminated > 0;
                if (s->tick && !is_drained)
                        s->tick(r->cluster, "n0");
        }
        status = rig_claim(r, "n0") ? cJSON_PrintUnformatted(fj_get(rig_claim(r, "n0"), "status", NULL)) : strdup("");
        check(s, r->cluster, "n0", BY_COORDINATOR, is_drained, strempty(status));
}

typedef struct CtlRun {
        FakeWorld w;
        Loop *loop;
        Random *random;
        HttpTransport *transport;
        KubeAuth *auth;
        Env env;
        KubeClient *client;
        CtlEvictions *evictions;
        CtlDrain *drain;
} CtlRun;

static void on_ready(const char *why_not, void *userdata) {
        CtlRun *r = userdata;

        if (r->drain)
                ctl_drain_see_budgets(r->drain);
}

static void on_budgets_changed(void *userdata) {
        on_ready(NULL, userdata);
}

static void on_changed(CtlDrain *d, void *userdata) {
}

static void on_note(CtlDrain *d, const char *text, void *userdata) {
        print_message("    %s\n", text);
}

static void play_ctl(const Situation *s) {
        _cleanup_(kubeconfig_freep) KubeConfig *config = NULL;
        _cleanup_free_ char *message = NULL, *told = NULL;
        CtlDrainOptions o = { .protected_policy = PROTECTED_WAIT, .deadline_usec = USEC_INFINITY, .timeout_usec = USEC_INFINITY };
        DrainProgress p;
        CtlRun r = {};

        fake_world_init(&r.w, NULL);
        assert_return_code(loop_new_virtual(r.w.time, &r.loop), 0);
        assert_return_code(random_new(5, &r.random), 0);
        assert_return_code(http_inproc_new(r.loop, FAKE_ADMIN, NULL, &r.transport), 0);
        assert_return_code(http_inproc_route(r.transport, FAKE_ORIGIN, fake_cluster_handle, r.w.cluster), 0);
        r.env = (Env){ .loop = r.loop, .random = r.random, .transport = r.transport, .version = "0" };
        assert_return_code(kubeconfig_plain(FAKE_ORIGIN, &config), 0);
        assert_return_code(kube_auth_new(r.loop, NULL, NULL, config, NULL, NULL, &r.auth, &message), 0);
        assert_return_code(kube_client_new(&r.env, r.auth, FAKE_ORIGIN, "vesperctl", &r.client), 0);
        fake_add_node(r.w.cluster, "n1", NULL, "i-1", NULL);
        s->set(r.w.cluster, "n1");
        assert_return_code(ctl_evictions_new(r.client, &(CtlEvictionsHandler){ on_ready, on_budgets_changed, &r }, &r.evictions), 0);
        assert_return_code(ctl_drain_new(r.client, r.evictions, "n1", &o, &(CtlDrainHandler){ on_changed, on_note, &r }, &r.drain), 0);
        for (unsigned i = 0; i < PLAYED_SEC && !ctl_drain_state_is_end(ctl_drain_progress(r.drain).state); i++) {
                (void) virtual_time_step(r.w.time, virtual_time_now(r.w.time) + SEC);
                if (s->tick)
                        s->tick(r.w.cluster, "n1");
        }
        p = ctl_drain_progress(r.drain);
        told = drain_progress_json(&p, 1);
        check(s, r.w.cluster, "n1", BY_CTL, p.state == CTL_DRAIN_DRAINED, strempty(told));
        ctl_drain_free(r.drain);
        ctl_evictions_free(r.evictions);
        kube_client_free(r.client);
        kube_auth_free(r.auth);
        http_transport_free(r.transport);
        random_free(r.random);
        loop_free(r.loop);
        fake_world_done(&r.w);
}

TEST_CASE(test_alike) {
        for (size_t i = 0; i < ELEMENTSOF(situations); i++) {
                print_message("  %s\n", situations[i].what);
                play_agent(situations + i);
                play_coordinator(situations + i);
                play_ctl(situations + i);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_alike),
        };
        return cmocka_run_group_tests_name("drain-alike", tests, NULL, NULL);
}
