/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-check.h"

#include <inttypes.h>
#include <stdarg.h>

#include "fake-controllers.h"
#include "sim-process.h"

#define FINALIZER "vesper.sh/termination"
/* Deadlines are told in whole seconds, and daemons keep a margin of two before them. */
#define SLACK_USEC (4 * USEC_PER_SEC)
/* A PDB's status follows its pods within this. */
#define STATUS_USEC (100 * USEC_PER_MSEC)
/* From an answer that was given to its arrival, where nothing is slow. */
#define ANSWER_USEC (200 * USEC_PER_MSEC)

/* What one life of a process was told about one thing it asked for. */
typedef struct Told {
        bool clean;       /* the answer to the last request comes */
        usec_t done_usec; /* that request was carried out; 0: no */
} Told;

typedef struct Going {
        char *ns, *name, *node, *app;
        bool was_ready, forced;
} Going;

typedef struct Rate {
        usec_t second;
        unsigned n;
} Rate;

struct SimCheck {
        SimWorld *world;
        char *violation;
        Hashmap *told;       /* Told, by identity of the life and what it is about */
        Hashmap *rates;      /* Rate, by process */
        Hashmap *lease_sent; /* usec_t: when the last renewal of this user left */
        usec_t lease_end_usec;
        usec_t lost_usec; /* the last time that a pod was lost, or deleted, without a word to its budget */
        Going *going;     /* pods that a request of ours ends, in this step */
        size_t n_going, going_allocated;
        uint64_t n_requests, n_evictions, n_evicted;
};

static Hashmap *map_new(void) {
        Hashmap *m = NULL;
        int r = hashmap_new(0, &m);

        assert(r >= 0);
        return m;
}

static void on_change(const FakeChange *change, void *userdata);

SimCheck *sim_check_new(SimWorld *w) {
        SimCheck *c = MUST(new0(SimCheck, 1));

        c->world = w;
        c->told = map_new();
        c->rates = map_new();
        c->lease_sent = map_new();
        fake_store_observe(fake_cluster_store(w->cluster), on_change, c);
        return c;
}

static void going_clear(SimCheck *c) {
        for (size_t i = 0; i < c->n_going; i++) {
                free(c->going[i].ns);
                free(c->going[i].name);
                free(c->going[i].node);
                free(c->going[i].app);
        }
        c->n_going = 0;
}

SimCheck *sim_check_free(SimCheck *c) {
        if (!c)
                return NULL;
        going_clear(c);
        free(c->going);
        hashmap_free_with(c->told, mfree);
        hashmap_free_with(c->rates, mfree);
        hashmap_free_with(c->lease_sent, mfree);
        free(c->violation);
        return mfree(c);
}

const char *sim_check_violation(const SimCheck *c) {
        return c->violation;
}

void sim_check_fail(SimCheck *c, const char *fmt, ...) {
        va_list ap;
        int r;

        if (c->violation)
                return;
        va_start(ap, fmt);
        r = vasprintf(&c->violation, fmt, ap);
        va_end(ap);
        assert(r >= 0);
        sim_trace_add(c->world->trace, "CHECK", "%s", c->violation);
}

/* Of a map from texts to values of this size, made zeroed. */
static void *entry(Hashmap *m, const char *key, size_t size) {
        void *v = hashmap_get(m, key);
        int r;

        if (!v) {
                v = MUST(calloc(1, size));
                r = hashmap_put(m, key, v);
                assert(r >= 0);
        }
        return v;
}

/* -- who, and why ------------------------------------------------------------------------------ */

/* The daemon whose request is handled in this step; NULL: it is somebody else's doing. */
static SimProcess *actor(const SimCheck *c) {
        const SimRequest *r = c->world->request;

        if (!r || !r->user)
                return NULL;
        for (size_t i = 0; i < c->world->n_processes; i++)
                if (streq(c->world->processes[i]->user, r->user))
                        return c->world->processes[i];
        return NULL;
}

static const char *instance_of(const char *provider_id) {
        const char *slash = provider_id ? strrchr(provider_id, '/') : NULL;

        return slash ? slash + 1 : NULL;
}

static bool instance_alive(const SimCheck *c, const char *id) {
        const char *state = id ? fake_ec2_state(c->world->ec2, id) : NULL;

        return state && !streq(state, "shutting-down") && !streq(state, "terminated");
}

static size_t index_of(const SimCheck *c, const SimMachine *m) {
        return (size_t) (m - c->world->machines);
}

/* When this machine's pods have to be gone (wall clock): what the cloud announced, or what its claim's
 * deletion and the pool's grace period give. */
static usec_t deadline_of(const SimCheck *c, const SimMachine *m) {
        const cJSON *claim = sim_world_claim(c->world, index_of(c, m));
        const char *deleted = fj_string(claim, "metadata", "deletionTimestamp", NULL);
        usec_t at;

        if (!deleted || c->world->options.tgp_sec == 0 || rfc3339_parse(deleted, &at) < 0)
                return m->deadline_usec;
        return MIN(m->deadline_usec, at + c->world->options.tgp_sec * USEC_PER_SEC);
}

static bool has_finalizer(const cJSON *o) {
        return o && fj_array_has(fj_get(o, "metadata", "finalizers", NULL), FINALIZER);
}

/* -- changes of the store ---------------------------------------------------------------------- */

static void check_finalizer(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new) {
        const char *instance = instance_of(fj_string(old, "spec", "providerID", NULL));

        if (has_finalizer(old) && !has_finalizer(new) && actor(c) && instance_alive(c, instance))
                sim_check_fail(c, "%s takes the finalizer off %s %s while %s is there",
                               c->world->request->user, change->resource->kind,
                               fj_string(old, "metadata", "name", NULL), instance);
}

static void check_cordon(SimCheck *c, const cJSON *old, const cJSON *new) {
        bool was = fj_true(old, "spec", "unschedulable", NULL),
             is = fj_true(new, "spec", "unschedulable", NULL);
        const SimMachine *m = sim_world_machine_of(c->world, fj_string(new, "metadata", "name", NULL));

        if (!m || !actor(c) || !old)
                return;
        if (was && !is && m->cordoned_by_admin)
                sim_check_fail(c, "%s undoes a person's cordon of %s", c->world->request->user, m->node);
        if (!was && is && m->opened_by_admin && !fj_get(new, "metadata", "deletionTimestamp", NULL))
                sim_check_fail(c, "%s cordons %s again, which a person opened", c->world->request->user,
                               m->node);
}

static void note_lease(SimCheck *c, const cJSON *new) {
        const usec_t *sent;

        if (!actor(c) || !streq_ptr(fj_string(new, "metadata", "namespace", NULL), "vesper-system"))
                return;
        sent = hashmap_get(c->lease_sent, c->world->request->user);
        if (sent)
                c->lease_end_usec =
                        *sent + (usec_t) fj_int(new, 0, "spec", "leaseDurationSeconds", NULL) * USEC_PER_SEC;
}

static bool closed_to_pods(const cJSON *node) {
        return fj_true(node, "spec", "unschedulable", NULL) ||
               fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted");
}

static const char *app_of(const cJSON *pod) {
        return fj_string(pod, "metadata", "labels", "app", NULL);
}

static bool pod_healthy(const cJSON *pod) {
        return fake_condition_is(pod, "Ready", "True") &&
               !fj_get(pod, "metadata", "deletionTimestamp", NULL);
}

/* A request of ours makes this pod go, or go sooner. */
static void check_pod_end(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        const cJSON *node = sim_world_node(c->world, index_of(c, m));
        const char *name = fj_string(new, "metadata", "name", NULL), *user = c->world->request->user;
        int64_t own = fj_int(new, 30, "spec", "terminationGracePeriodSeconds", NULL);
        int64_t given = fj_int(new, own, "metadata", "deletionGracePeriodSeconds", NULL);
        usec_t now = sim_world_wall(c->world), end = deadline_of(c, m),
               own_usec = (usec_t) own * USEC_PER_SEC;
        bool eviction = c->world->request->subresource,
             again = fj_get(old, "metadata", "deletionTimestamp", NULL);
        bool forced = end != USEC_INFINITY && now + own_usec + SLACK_USEC >= end;

        if (end == USEC_INFINITY && node && !fj_get(node, "metadata", "deletionTimestamp", NULL))
                sim_check_fail(c, "%s ends pod %s of %s, for which nothing is announced", user, name,
                               m->node);
        if (node && !closed_to_pods(node) && !m->opened_by_admin)
                sim_check_fail(c, "%s ends pod %s of %s, which still takes pods", user, name, m->node);
        if ((!eviction || again || given < own) && !forced)
                sim_check_fail(c, "%s %s pod %s with %" PRIi64 " s of %" PRIi64 " s before its time", user,
                               eviction ? "evicts" : "deletes", name, given, own);
        /* Who was not told that the pod is going already, and asks again, counts from the wrong moment: no
         * fault of its. */
        if (again && sim_faults_by_chance(c->world->faults))
                return;
        if (usec_add(now + (usec_t) given * USEC_PER_SEC, SLACK_USEC) < MIN(now + own_usec, end))
                sim_check_fail(c, "%s gives pod %s %" PRIi64 " s though there is more time", user, name,
                               given);
        if (again)
                return;
        if (forced)
                c->lost_usec = sim_world_now(c->world);
        if (GREEDY_REALLOC(c->going, c->going_allocated, c->n_going + 1) < 0)
                return;
        c->going[c->n_going++] = (Going){
                .ns = strdup(fj_string(new, "metadata", "namespace", NULL)),
                .name = strdup(name),
                .node = strdup(m->node),
                .app = app_of(new) ? strdup(app_of(new)) : NULL,
                .was_ready = pod_healthy(old),
                .forced = forced,
        };
}

static void check_pod(SimCheck *c, const cJSON *old, const cJSON *new) {
        const SimMachine *m =
                sim_world_machine_of(c->world, strempty(fj_string(new, "spec", "nodeName", NULL)));
        const char *was = fj_string(old, "metadata", "deletionTimestamp", NULL);
        const char *is = fj_string(new, "metadata", "deletionTimestamp", NULL);

        if (!actor(c) && pod_healthy(old) && !pod_healthy(new))
                c->lost_usec = sim_world_now(c->world);
        if (!m || !actor(c) || !is || streq_ptr(was, is))
                return;
        check_pod_end(c, m, old, new);
}

static void trace_change(SimCheck *c, const FakeChange *change) {
        const cJSON *o = change->new ? change->new->json : change->old->json;
        const char *text = change->new ? fake_version_text(change->new) : "";

        sim_trace_add(c->world->trace, "store", "%s %s/%s %s rv %" PRIu64 " %016" PRIx64,
                      change->resource->plural, strempty(fj_string(o, "metadata", "namespace", NULL)),
                      fj_string(o, "metadata", "name", NULL),
                      !change->new  ? "gone"
                      : change->old ? "changed"
                                    : "new",
                      change->rv, hash64(text, strlen(text)));
}

static void on_change(const FakeChange *change, void *userdata) {
        SimCheck *c = userdata;
        const cJSON *old = change->old ? change->old->json : NULL,
                    *new = change->new ? change->new->json : NULL;

        trace_change(c, change);
        if (change->resource->id == FAKE_NODES || change->resource->id == FAKE_NODECLAIMS)
                check_finalizer(c, change, old, new);
        if (change->resource->id == FAKE_NODES && new)
                check_cordon(c, old, new);
        if (change->resource->id == FAKE_LEASES && new)
                note_lease(c, new);
        /* A pod that goes at once was marked before; one whose grace is 0 from the start never had a node.
         */
        if (change->resource->id == FAKE_PODS && old && new)
                check_pod(c, old, new);
}

/* -- budgets: when the step is over ------------------------------------------------------------ */

static void check_budget(SimCheck *c, const Going *g, const cJSON *pdb) {
        const char *app = fj_string(pdb, "spec", "selector", "matchLabels", "app", NULL);
        int64_t healthy = 0, min = fj_int(pdb, 0, "spec", "minAvailable", NULL);
        const cJSON *pod;

        if (!streq_ptr(app, g->app) || g->forced || !g->was_ready)
                return;
        /* The API server grants by a status that is a moment old, and only evictions are charged there. */
        if (c->lost_usec > 0 && sim_world_now(c->world) < c->lost_usec + STATUS_USEC)
                return;
        FAKE_FOREACH (pod, c->world->cluster, FAKE_PODS, g->ns)
                if (streq_ptr(app_of(pod), app))
                        healthy += pod_healthy(pod);
        if (healthy < min)
                sim_check_fail(c,
                               "pod %s of %s was ended against its budget: %" PRIi64 " of %" PRIi64
                               " are healthy",
                               g->name, g->node, healthy, min);
}

/* -- requests ---------------------------------------------------------------------------------- */

static void check_rate(SimCheck *c, const SimLife *life) {
        Rate *rate = entry(c->rates, life->process->name, sizeof(Rate));
        usec_t second = sim_world_now(c->world) / USEC_PER_SEC;

        if (rate->second != second)
                *rate = (Rate){ .second = second };
        if (++rate->n > SIM_CHECK_PER_SECOND)
                sim_check_fail(c, "%s sends more than %u requests in a second", life->process->name,
                               SIM_CHECK_PER_SECOND);
}

/* Reads, the Lease itself and Events are not guarded. */
static bool is_guarded(const HttpRequest *request, const char *peer) {
        if (streq(peer, "ec2.sim"))
                return request->body && memmem(request->body, request->body_size, "TerminateInstances", 18);
        return streq(peer, "api") && request->method != HTTP_GET && !strstr(request->url, "/leases") &&
               !strstr(request->url, "/events");
}

static void check_lease(SimCheck *c, const SimLife *life, const HttpRequest *request) {
        const cJSON *lease = fake_get(c->world->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator");
        const char *holder = strempty(fj_string(lease, "spec", "holderIdentity", NULL));

        if (!streq(holder, life->identity))
                sim_check_fail(c, "%s sends %s %s while %s leads", life->identity,
                               http_method_to_string(request->method), request->url, holder);
        else if (loop_now(life->loop) >= c->lease_end_usec)
                sim_check_fail(c, "%s sends %s %s after its lease", life->identity,
                               http_method_to_string(request->method), request->url);
}

/* Who was told: one life; of a coordinator during one leadership. */
static char *told_key(const SimLife *life, const char *what) {
        return MUST(strf("%s/%u/%u %s", life->process->user, life->number, life->term, what));
}

/* One life asks for one thing again: why, if it knows that it is done? */
static void check_again(SimCheck *c, const SimLife *life, const char *what, bool clean) {
        _cleanup_free_ char *key = told_key(life, what);
        Told *told = entry(c->told, key, sizeof(Told));

        if (told->done_usec > 0 && told->clean && sim_world_now(c->world) > told->done_usec + ANSWER_USEC &&
            !life->was_paused)
                sim_check_fail(c, "%s asks again for what it knows to be done: %s", life->process->name,
                               what);
        *told = (Told){ .clean = clean };
}

/* The present life of whoever asked was answered: it is done. */
static void note_done(SimCheck *c, const SimProcess *p, const char *what) {
        _cleanup_free_ char *key = p->life ? told_key(p->life, what) : NULL;
        Told *told = key ? hashmap_get(c->told, key) : NULL;

        if (told)
                told->done_usec = sim_world_now(c->world);
}

/* The first machine that a request to the cloud names; terminations name one each. */
static const SimMachine *machine_in(const SimCheck *c, const void *body, size_t size) {
        for (size_t i = 0; body && i < c->world->n_machines; i++) {
                const SimMachine *m = &c->world->machines[i];

                if (memmem(body, size, m->instance, strlen(m->instance)))
                        return m;
        }
        return NULL;
}

void sim_check_sent(SimCheck *c, const SimLife *life, const HttpRequest *request, const char *peer,
                    bool clean) {
        bool coordinator = life->process->kind == SIM_COORDINATOR;

        if (streq(peer, "api")) {
                c->n_requests++;
                check_rate(c, life);
        }
        if (coordinator && is_guarded(request, peer))
                check_lease(c, life, request);
        if (coordinator && strstr(request->url, "/leases"))
                *(usec_t *) entry(c->lease_sent, life->process->user, sizeof(usec_t)) =
                        sim_world_now(c->world);
        if (endswith(request->url, "/eviction")) {
                c->n_evictions++;
                check_again(c, life, request->url + strlen(SIM_API), clean);
        }
        if (streq(peer, "ec2.sim") && is_guarded(request, peer)) {
                const SimMachine *m = machine_in(c, request->body, request->body_size);

                if (m)
                        check_again(c, life, m->instance, clean);
        }
}

/* -- the cloud --------------------------------------------------------------------------------- */

static SimProcess *process_of_identity(SimWorld *w, const char *identity) {
        for (size_t i = 0; i < w->n_processes; i++) {
                _cleanup_free_ char *known = MUST(strf("CN=%s,O=vesper", w->processes[i]->user));

                if (streq_ptr(identity, known))
                        return w->processes[i];
        }
        return NULL;
}

/* An instance was told to end. */
static void check_end(SimCheck *c, const SimMachine *m) {
        const cJSON *node = sim_world_node(c->world, index_of(c, m)),
                    *claim = sim_world_claim(c->world, index_of(c, m));
        usec_t end = deadline_of(c, m);
        size_t left = sim_world_pods_alive(c->world, index_of(c, m));

        if (node && !fj_get(node, "metadata", "deletionTimestamp", NULL))
                sim_check_fail(c, "%s is ended, but node %s is not being deleted", m->instance, m->node);
        if (!node && !fj_get(claim, "metadata", "deletionTimestamp", NULL))
                sim_check_fail(c, "%s is ended, but neither its node nor its claim is being deleted",
                               m->instance);
        if (left > 0 && (end == USEC_INFINITY || sim_world_wall(c->world) + SLACK_USEC < end))
                sim_check_fail(c, "%s is ended with %zu pods left on %s", m->instance, left, m->node);
}

void sim_check_handle_ec2(HttpExchange *x, void *world) {
        SimWorld *w = world;
        const SimProcess *p = process_of_identity(w, x->client_identity);
        const SimMachine *m = machine_in(w->check, x->body, x->body_size);
        size_t before = m ? fake_ec2_n_terminations(w->ec2, m->instance) : 0;

        sim_trace_add(w->trace, "cloud", "%s asks %.*s", p ? p->name : "somebody", (int) x->body_size,
                      (const char *) x->body);
        fake_ec2_handle(x, w->ec2);
        if (!m || fake_ec2_n_terminations(w->ec2, m->instance) == before)
                return;
        sim_trace_add(w->trace, "cloud", "ends %s", m->instance);
        if (before == 0) {
                check_end(w->check, m);
                sim_world_machine_ends(w, index_of(w->check, m),
                                       w->options.shutting_down_sec * USEC_PER_SEC);
        }
        if (p)
                note_done(w->check, p, m->instance);
}

/* -- when a step is over ----------------------------------------------------------------------- */

static void note_eviction(SimCheck *c, const SimRequest *r) {
        _cleanup_free_ char *what = NULL;
        SimProcess *p = actor(c);

        if (!p || !streq_ptr(r->subresource, "eviction"))
                return;
        c->n_evicted++;
        what = MUST(strf("/api/v1/namespaces/%s/pods/%s/eviction", r->ns, r->name));
        note_done(c, p, what);
}

void sim_check_after_step(SimCheck *c, unsigned status) {
        const cJSON *pdb;

        if (c->n_going > 0)
                FAKE_FOREACH (pdb, c->world->cluster, FAKE_PDBS, NULL)
                        for (size_t i = 0; i < c->n_going; i++)
                                check_budget(c, &c->going[i], pdb);
        going_clear(c);
        if (status / 100 == 2 && c->world->request)
                note_eviction(c, c->world->request);
}

/* -- when all is over -------------------------------------------------------------------------- */

static const char *mark_on(const cJSON *node) {
        static const char *const conditions[] = { "DrainInProgress", "Drained",
                                                  "vesper.sh/TerminationBlocked" };
        const cJSON *a;

        cJSON_ArrayForEach (a, fj_get(node, "metadata", "annotations", NULL))
                if (startswith(a->string, "vesper.sh/"))
                        return a->string;
        for (size_t i = 0; i < ELEMENTSOF(conditions); i++)
                if (fj_find(fj_get(node, "status", "conditions", NULL), "type", conditions[i]))
                        return conditions[i];
        if (fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted"))
                return "taint vesper.sh/disrupted";
        if (fj_string(node, "metadata", "labels", "node.kubernetes.io/exclude-from-external-load-balancers",
                      NULL))
                return "node.kubernetes.io/exclude-from-external-load-balancers";
        return NULL;
}

static void check_rest(SimCheck *c, size_t i) {
        const SimMachine *m = &c->world->machines[i];
        const cJSON *node = sim_world_node(c->world, i);

        if (!node) {
                if (instance_alive(c, m->instance))
                        sim_check_fail(c, "%s is leaked: its node %s is gone", m->instance, m->node);
                if (sim_world_claim(c->world, index_of(c, m)))
                        sim_check_fail(c, "the claim of %s is left behind", m->node);
                return;
        }
        if (m->noticed || fj_get(node, "metadata", "deletionTimestamp", NULL))
                return;
        if (mark_on(node))
                sim_check_fail(c, "%s is left on %s, where nothing goes on", mark_on(node), m->node);
        if (fj_true(node, "spec", "unschedulable", NULL) && !m->cordoned_by_admin)
                sim_check_fail(c, "%s is left cordoned, where nothing goes on", m->node);
        if (m->cordoned_by_admin && !fj_true(node, "spec", "unschedulable", NULL))
                sim_check_fail(c, "%s has lost a person's cordon", m->node);
}

bool sim_check_quiet(SimCheck *c, uint64_t requests_max) {
        for (size_t i = 0; i < c->world->n_machines; i++)
                check_rest(c, i);
        if (c->n_requests > requests_max)
                sim_check_fail(c, "%" PRIu64 " requests were sent, more than %" PRIu64, c->n_requests,
                               requests_max);
        return !c->violation;
}

uint64_t sim_check_n_requests(const SimCheck *c) {
        return c->n_requests;
}

uint64_t sim_check_n_evictions(const SimCheck *c, uint64_t *ret_done) {
        if (ret_done)
                *ret_done = c->n_evicted;
        return c->n_evictions;
}
