/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-world.h"

#include <inttypes.h>

#include "fake-azure-metadata.h"
#include "fake-controllers.h"
#include "hashmap.h"
#include "sim-check.h"
#include "sim-exec.h"
#include "sim-power.h"
#include "sim-process.h"
#include "sim-queue.h"
#include "sim-restore.h"
#include "sim-stock.h"
#include "sim-webhook.h"

#define HEARTBEAT_USEC (10 * USEC_PER_SEC)
#define START_WALL_USEC (UINT64_C(1800000000) * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */
#define LATENCY_SEED UINT64_C(0x6c6174656e637921)
#define OVERDUE_USEC (2 * USEC_PER_MINUTE)
#define STEPS_IN_INSTANT_MAX 20000u

/* -- requests, one a step ---------------------------------------------------------------------- */

static SimRequest *request_free(SimRequest *r) {
        if (!r)
                return NULL;
        free(r->user);
        free(r->subresource);
        free(r->ns);
        free(r->name);
        return mfree(r);
}

static char *copy(const char *s) {
        return s ? MUST(strdup(s)) : NULL;
}

static const char *process_of_user(const SimWorld *w, const char *user) {
        for (size_t i = 0; i < w->n_processes; i++)
                if (w->processes[i] && streq_ptr(w->processes[i]->user, user))
                        return w->processes[i]->name;
        return NULL;
}

static void on_api(const FakeRequest *request, FakeApiFault *ret_fault, void *userdata) {
        SimWorld *w = userdata;

        request_free(w->request);
        w->request = MUST(new0(SimRequest, 1));
        *w->request = (SimRequest){
                .user = copy(request->user.name),
                .subresource = copy(request->subresource),
                .ns = copy(request->ns),
                .name = copy(request->name),
        };
        if (sim_faults_on_api(w->faults, process_of_user(w, request->user.name), request, ret_fault)) {
                sim_check_note_lie(w->check);
                sim_trace_add(w->trace, "fault", "the next is carried out, and the answer is %u",
                              ret_fault->status);
        }
}

/* That is what is on its way to the agent. */
static void open_what_was_read(SimWorld *w, const FakeLogEntry *e) {
        for (size_t i = 0; i < w->n_machines; i++) {
                SimMachine *m = &w->machines[i];

                if (m->opens_usec == 0 || !m->noticed || !m->agent || !streq(m->agent->user, e->user) ||
                    e->verb != FAKE_GET || !e->resource || e->resource->id != FAKE_NODES ||
                    !sim_world_unschedulable(w, i) || !sim_world_annotation(w, i, "vesper.sh/interruption") ||
                    fj_get(sim_world_node(w, i), "metadata", "deletionTimestamp", NULL))
                        continue;
                fake_api_mute(fake_cluster_api(w->cluster), FAKE_NODES, usec_add(sim_world_now(w), m->opens_usec));
                m->opens_usec = 0;
                sim_world_admin_uncordon(w, i);
                return;
        }
}

static void finish_step(SimWorld *w) {
        FakeApi *api = fake_cluster_api(w->cluster);
        const FakeLogEntry *e = NULL;

        if (fake_api_log_size(api) != w->n_log) {
                w->n_log = fake_api_log_size(api);
                e = fake_api_log_at(api, w->n_log - 1);
                sim_trace_add(w->trace, "api", "%s %s %s%s%s: %u", e->user, e->method, e->path,
                              *e->query ? "?" : "", e->query, e->status);
        }
        sim_check_after_step(w->check, e ? e->status : 0);
        w->request = request_free(w->request);
        if (e)
                open_what_was_read(w, e);
}

/* -- time -------------------------------------------------------------------------------------- */

static SimProcess *process_of_loop(SimWorld *w, const Loop *l) {
        for (size_t i = 0; l && l != w->loop && i < w->n_processes; i++)
                if (w->processes[i]->life && w->processes[i]->life->loop == l)
                        return w->processes[i];
        return NULL;
}

/* Somebody arms a timer for now, again and again. */
static void check_spinning(SimWorld *w, const SimProcess *p) {
        usec_t now = sim_world_now(w);

        w->n_in_instant = now == w->instant_usec ? w->n_in_instant + 1 : 1;
        w->instant_usec = now;
        if (w->n_in_instant > STEPS_IN_INSTANT_MAX)
                sim_check_fail(w->check, "time stands still: %s spins", p ? p->name : "a server");
}

bool sim_world_step(SimWorld *w, usec_t limit_usec) {
        SimProcess *p = process_of_loop(w, virtual_time_next(w->time, limit_usec));

        if (virtual_time_step(w->time, limit_usec) == 0)
                return false;
        w->n_steps++;
        finish_step(w);
        check_spinning(w, p);
        if (p)
                sim_process_after_step(p);
        if (p)
                sim_check_asleep(w->check, p);
        return !sim_world_violation(w);
}

static bool never(SimWorld *w, void *userdata) {
        return false;
}

bool sim_world_run(SimWorld *w, usec_t usec) {
        (void) sim_world_run_until(w, usec, never, NULL);
        return !sim_world_violation(w);
}

bool sim_world_run_until(SimWorld *w, usec_t at_most_usec, sim_condition_t condition, void *userdata) {
        usec_t end = sim_world_now(w) + at_most_usec;

        while (!condition(w, userdata))
                if (!sim_world_step(w, end))
                        return false;
        return !sim_world_violation(w);
}

const char *sim_world_violation(const SimWorld *w) {
        return sim_check_violation(w->check);
}

usec_t sim_world_now(const SimWorld *w) {
        return virtual_time_now(w->time);
}

usec_t sim_world_wall(const SimWorld *w) {
        return loop_wall(w->loop);
}

void sim_world_report(const SimWorld *w, const char *what) {
        const char *lines = getenv("SIM_TRACE_LINES");

        sim_trace_print_tail(w->trace, stderr, lines ? strtoul(lines, NULL, 10) : 60);
        fprintf(stderr, "seed %" PRIu64 ": %s: %s\n", w->seed, what,
                sim_world_violation(w) ? sim_world_violation(w) : "did not come to pass in time");
}

/* -- making a world ---------------------------------------------------------------------------- */

uint64_t sim_world_derive(const SimWorld *w, const char *name, unsigned n) {
        _cleanup_free_ char *text = MUST(strf("%" PRIu64 "/%s/%u", w->seed, name, n));

        return hash64(text, strlen(text));
}

FakeEncoding sim_world_draw_encoding(uint64_t seed) {
        static const FakeEncoding of[] = { FAKE_ENCODING_PROTOBUF, FAKE_ENCODING_PROTOBUF,
                                           FAKE_ENCODING_JSON, FAKE_ENCODING_EITHER };

        return of[(hash64(&seed, sizeof(seed)) >> 32) % ELEMENTSOF(of)];
}

SimLatency sim_world_draw_latency(uint64_t seed) {
        uint64_t h = hash64((uint64_t[2]){ LATENCY_SEED, seed }, 2 * sizeof(uint64_t)) >> 16;

        return h % 6 == 0 ? SIM_LATENCY_MEDIUM : h % 6 == 1 ? SIM_LATENCY_SLOW : SIM_LATENCY_FAST;
}

static void allow(SimWorld *w, const char *verbs, const char *group, const char *resources, const char *ns) {
        fake_authz_allow(fake_cluster_authz(w->cluster), "vesper", verbs, group, resources, ns);
}

/* packaging/manifests/coordinator/rbac.yaml */
static void allow_coordinators(SimWorld *w) {
        allow(w, "list,watch,patch,delete", "", "nodes", NULL);
        fake_authz_allow_named(fake_cluster_authz(w->cluster), "vesper", "list,watch", "", "namespaces", NULL, "vesper-system");
        allow(w, "patch", "", "nodes/status", NULL);
        allow(w, "list,watch,delete", "", "pods", NULL);
        allow(w, "create", "", "pods/eviction", NULL);
        allow(w, "patch", "", "pods/status", NULL);
        allow(w, "create,patch", "", "events", NULL);
        allow(w, "list,watch", "policy", "poddisruptionbudgets", NULL);
        allow(w, "list,watch", "storage.k8s.io", "volumeattachments", NULL);
        allow(w, "get,list,watch", "", "persistentvolumeclaims", NULL);
        allow(w, "list,watch", "", "persistentvolumes,namespaces", NULL);
        allow(w, "list,watch", "storage.k8s.io", "storageclasses,csinodes", NULL);
        allow(w, "list,watch,create,patch,delete", "vesper.sh", "nodeclaims", NULL);
        allow(w, "patch", "vesper.sh", "nodeclaims/status,nodepools/status,nodedisruptionbudgets/status", NULL);
        allow(w, "get,list,watch", "vesper.sh", "nodedisruptionbudgets", NULL);
        allow(w, "list,watch,patch", "vesper.sh", "nodepools", NULL);
        allow(w, "create,get,update", "coordination.k8s.io", "leases", "vesper-system");
}

static void make_servers(SimWorld *w) {
        FakeEc2Options ec2 = {
                .loop = w->loop,
                .region = w->options.endpoint_region,
                .access_key_id = w->options.endpoint_region ? NULL : "AKIAIOSFODNN7EXAMPLE",
                .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                .shutting_down_usec = w->options.shutting_down_sec * USEC_PER_SEC,
        };
        FakeClusterOptions cluster = { 0 };

        cluster.even = w->options.latency == SIM_LATENCY_EVEN;
        cluster.detach_usec = w->options.detach_sec * USEC_PER_SEC;
        cluster.api.encoding = (FakeEncoding) w->options.encoding;
        w->cluster = fake_cluster_new(w->loop, w->cluster_random, &cluster);
        fake_api_lag_watches(fake_cluster_api(w->cluster), w->options.watch_lag_msec * USEC_PER_MSEC);
        w->ec2 = fake_ec2_new(&ec2);
        allow_coordinators(w);
        fake_put(w->cluster, FAKE_NAMESPACES,
                 fj_parse("{'metadata':{'name':'vesper-system'},"
                          "'spec':{'finalizers':['kubernetes']},'status':{'phase':'Active'}}"));
}

static void set_boot_id(SimWorld *w, SimMachine *m) {
        m->n_boots++;
        if (m->noticed) /* this one sees it, too */
                m->noticed_boot = m->n_boots;
        snprintf(m->boot_id, sizeof(m->boot_id), "%016" PRIx64 "%016" PRIx64,
                 sim_world_derive(w, m->node, m->n_boots), hash64(m->node, strlen(m->node)));
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'status':{'nodeInfo':{'bootID':'%s'}}}",
                   m->boot_id);
}

static void on_boot(Timer *t, void *userdata) {
        SimMachine *m = userdata;
        SimWorld *w = m->world;

        sim_trace_add(w->trace, "world", "%s has booted", m->node);
        if (streq_ptr(fake_ec2_state(w->ec2, m->instance), "stopped")) {
                fake_ec2_set_state(w->ec2, m->instance, "running");
                m->switched_on_usec = sim_world_now(w);
        }
        if (!sim_world_node(w, (size_t) (m - w->machines)))
                return;
        m->crashed_for_good = false;
        if (m->agent)
                sim_disk_boot(m->agent->disk);
        if (m->power)
                sim_power_booted(m->power);
        set_boot_id(w, m);
        fake_cluster_set_kubelet(w->cluster, m->node, true);
        if (m->agent && !m->agent->life)
                sim_process_start(m->agent);
}

static void on_kubelet(Timer *t, void *userdata) {
        SimMachine *m = userdata;

        if (!m->ended && !m->crashed_for_good && !timer_is_armed(m->boot))
                fake_cluster_set_kubelet(m->world->cluster, m->node, true);
}

static void on_end(Timer *t, void *userdata) {
        SimMachine *m = userdata;
        SimWorld *w = m->world;

        sim_trace_add(w->trace, "world", "%s is no more", m->node);
        m->ended = true;
        timer_disarm(m->boot);
        timer_disarm(m->kubelet);
        if (m->agent)
                sim_process_kill(m->agent, USEC_INFINITY);
        fake_cluster_set_kubelet(w->cluster, m->node, false);
}

/* The cloud has taken the machine. */
static void on_taken(Timer *t, void *userdata) {
        SimMachine *m = userdata;

        if (m->ended)
                return;
        fake_ec2_set_state(m->world->ec2, m->instance, "terminated");
        on_end(t, m);
}

/* ... and its controller, that deletes Nodes without instance, has seen it. */
static void on_deleted(Timer *t, void *userdata) {
        SimMachine *m = userdata;
        const cJSON *node = sim_world_node(m->world, (size_t) (m - m->world->machines));

        if (node && !fj_get(node, "metadata", "deletionTimestamp", NULL))
                sim_world_delete_node(m->world, (size_t) (m - m->world->machines));
}

static void make_timer(SimMachine *m, const char *what, timer_fn fn, Timer **ret) {
        int r = timer_new(m->world->loop, what, fn, m, ret);

        assert(r >= 0);
}

/* Every second one is an hour old: what its cloud does not find is no new machine that is not visible yet. */
static void make_older(SimWorld *w, const SimMachine *m) {
        char when[RFC3339_MAX];

        rfc3339_format(usec_sub(sim_world_wall(w), USEC_PER_HOUR), when);
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'metadata':{'creationTimestamp':'%s'}}", when);
}

/* Nothing but their names tells some Nodes of such a pool from each other. */
static void name_for_command(SimWorld *w, const SimMachine *m) {
        if (sim_world_derive(w, m->node, 0) >> 16 & 1)
                fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'spec':{'providerID':'exec://%s'}}",
                           m->node);
}

void sim_world_make_claim(SimWorld *w, const SimMachine *m, const char *name) {
        _cleanup_free_ char *id = sim_world_provider_id(w, m);
        cJSON *claim = fj_parse("{'metadata':{'name':'%s'},'spec':{'providerID':'%s'}}", name, id);

        if (w->options.tgp_sec > 0 || w->options.tgp_zero) {
                _cleanup_free_ char *tgp = MUST(strf("%us", w->options.tgp_sec));

                fj_set_string(fj_object(claim, "spec"), "terminationGracePeriod", tgp);
        }
        fake_put(w->cluster, FAKE_NODECLAIMS, claim);
}

static void make_standalone(SimWorld *w, const SimMachine *m) {
        _cleanup_free_ char *name = MUST(strf("own-%s", m->node));

        sim_world_make_claim(w, m, name);
}

bool sim_world_is_outside(const SimWorld *w, size_t machine) {
        size_t late = w->n_machines - w->options.n_late;

        return w->options.no_pool || (machine < late && machine + w->options.n_outside >= late);
}

static void start_daemon(SimWorld *w, const SimMachine *m) {
        _cleanup_free_ char *daemon = MUST(strf("proxy-%s", m->node));
        FakePod pod = { .ns = "kube-system", .name = daemon, .node = m->node, .owner_kind = "DaemonSet", .owner = "proxy" };

        fake_add_pod(w->cluster, &pod);
}

void sim_world_join_launched(SimWorld *w, size_t machine, const char *zone, const char *taint) {
        SimMachine *m = &w->machines[machine];
        cJSON *node = fake_make_node(w->cluster, m->node, zone, NULL, SIM_POOL), *spec = fj_object(node, "spec");
        _cleanup_free_ char *provider_id = sim_world_provider_id(w, m);

        fj_set_string(spec, "providerID", provider_id);
        if (taint)
                cJSON_AddItemToArray(fj_array(spec, "taints"), fj_parse("{'key':'%s','effect':'NoSchedule'}", taint));
        fake_put(w->cluster, FAKE_NODES, node);
        set_boot_id(w, m);
        start_daemon(w, m);
}

void sim_world_join(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        fake_add_node(w->cluster, m->node, SIM_ZONE, w->options.exec ? NULL : m->instance,
                      sim_world_is_outside(w, machine) ? NULL : SIM_POOL);
        if (w->options.exec)
                name_for_command(w, m);
        if (machine % 2 == 1)
                make_older(w, m);
        if (machine < w->options.standalone && !w->options.no_pool)
                make_standalone(w, m);
        set_boot_id(w, m);
        start_daemon(w, m);
}

static void make_machine(SimWorld *w, SimMachine *m, size_t i) {
        m->world = w;
        make_timer(m, "sim-boot", on_boot, &m->boot);
        make_timer(m, "sim-end", on_end, &m->end);
        make_timer(m, "sim-kubelet", on_kubelet, &m->kubelet);
        make_timer(m, "sim-taken", on_taken, &m->taken);
        make_timer(m, "sim-deleted", on_deleted, &m->deleted);
        m->node = MUST(strf("n%zu", i));
        m->deadline_usec = m->spot_usec = m->forced_usec = USEC_INFINITY;
        m->instance = copy(fake_ec2_run(w->ec2, NULL, SIM_ZONE));
        fake_ec2_set_private_dns_name(w->ec2, m->instance, m->node);
        m->imds = fake_imds_new(w->loop, m->instance);
        if (i + w->options.n_late < w->n_machines)
                sim_world_join(w, i);
}

static void make_pods(SimWorld *w) {
        const SimOptions *o = &w->options;

        if (o->n_pods == 0)
                return;
        if (o->pdb_min > 0) {
                _cleanup_free_ char *min = MUST(strf("%u", o->pdb_min));

                fake_add_pdb(w->cluster, NULL, "web", "web", true, min);
        }
        fake_add_replicaset(w->cluster, NULL, "web", "web", (int) o->n_pods);
        fake_merge(w->cluster, FAKE_REPLICASETS, "default", "web",
                   "{'spec':{'template':{'metadata':{'annotations':{'fake.vesper.sh/stop-seconds':'%u'}},"
                   "'spec':{'terminationGracePeriodSeconds':%u}}}}",
                   o->stop_sec, o->grace_sec > 0 ? o->grace_sec : 30);
}

static void make_processes(SimWorld *w) {
        unsigned n = 0;

        w->n_processes = w->options.n_agents + w->options.n_coordinators;
        w->processes = MUST(new0(SimProcess *, w->n_processes + 1));
        for (unsigned i = 0; i < w->options.n_agents; i++)
                w->processes[n++] = sim_process_new_agent(w, &w->machines[i]);
        for (unsigned i = 0; i < w->options.n_coordinators; i++)
                w->processes[n++] = sim_process_new_coordinator(w, i);
}

static void start_processes(SimWorld *w) {
        for (size_t i = 0; i < w->n_processes; i++) {
                sim_process_start(w->processes[i]);
                (void) sim_world_run(w, 10 * USEC_PER_MSEC + random_below(w->random, 300 * USEC_PER_MSEC));
        }
}

/* As kubelets write them, whose Node says nothing new otherwise. */
static void on_heartbeats(Timer *t, void *userdata) {
        SimWorld *w = userdata;
        char now[RFC3339_MAX];

        rfc3339_format(loop_wall(w->loop), now);
        for (size_t i = 0; i < w->n_machines; i++) {
                const cJSON *node = sim_world_node(w, i);
                cJSON *new, *ready;

                if (!node || !fake_cluster_kubelet_runs(w->cluster, w->machines[i].node))
                        continue;
                new = fj_copy(node);
                ready = (cJSON *) (uintptr_t) fj_find(fj_get(new, "status", "conditions", NULL), "type", "Ready");
                if (ready)
                        fj_set_string(ready, "lastHeartbeatTime", now);
                fake_put(w->cluster, FAKE_NODES, new);
        }
        timer_arm_in(t, HEARTBEAT_USEC);
}

static void set_repair(SimWorld *w) {
        const SimOptions *o = &w->options;
        int r;

        if ((o->repair_sec == 0 && o->repair_reboot_sec == 0) || o->no_pool)
                return;
        if (o->repair_reboot_sec > 0)
                fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                           "{'spec':{'repair':[{'condition':'" SIM_ILLNESS "','status':'True','after':'%us','action':'Reboot'},"
                           "{'condition':'" SIM_ILLNESS "','status':'True','after':'%us','action':'Replace'}]}}",
                           o->repair_reboot_sec, 2 * o->repair_reboot_sec);
        else
                fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                           "{'spec':{'repair':[{'condition':'Ready','status':'NotTrue','after':'%us','action':'Replace'}]}}", o->repair_sec);
        r = timer_new(w->loop, "sim-heartbeats", on_heartbeats, w, &w->heartbeats);
        assert(r >= 0);
        timer_arm_in(w->heartbeats, HEARTBEAT_USEC);
}

static void set_disruption(SimWorld *w) {
        if (w->options.outlook && !w->options.no_pool)
                fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                           "{'spec':{'template':{'labels':{'drifted':'yes'}},'disruption':{'emptyAfter':'1s','expireAfter':'10s','drift':'Auto',"
                           "'consolidation':{'policy':'WhenUnderutilized'},'budgets':[]}}}");
}

SimWorld *sim_world_new(uint64_t seed, const SimOptions *options) {
        _cleanup_free_ char *tgp = NULL;
        SimWorld *w = MUST(new0(SimWorld, 1));
        int r;

        w->seed = seed;
        w->options = *options;
        r = virtual_time_new(START_WALL_USEC, &w->time);
        assert(r >= 0);
        r = loop_new_virtual(w->time, &w->loop);
        assert(r >= 0);
        r = random_new(sim_world_derive(w, "world", 0), &w->random);
        assert(r >= 0);
        r = random_new(sim_world_derive(w, "cluster", 0), &w->cluster_random);
        assert(r >= 0);
        w->trace = sim_trace_new(w->time);
        w->faults = sim_faults_new(w->loop, sim_world_derive(w, "faults", 0));
        sim_faults_set_latency(w->faults, (SimLatency) options->latency);
        make_servers(w);
        w->check = sim_check_new(w);
        fake_api_set_fault(fake_cluster_api(w->cluster), on_api, w);

        tgp = options->tgp_sec > 0 || options->tgp_zero ? MUST(strf("%us", options->tgp_sec)) : NULL;
        if (!options->no_pool)
                fake_add_nodepool(w->cluster, SIM_POOL, tgp, options->exec ? "exec" : "ec2");
        if (options->node_budget > 0)
                fake_put(w->cluster, FAKE_NDBS,
                         fj_parse("{'metadata':{'name':'nodes','generation':1},'spec':{'maxUnavailable':%u,"
                                  "'selector':{'matchExpressions':[{'key':'%s','operator':'Exists'}]}}}",
                                  options->node_budget,
                                  options->no_pool ? "kubernetes.io/hostname" : "vesper.sh/pool"));
        w->n_machines = options->n_nodes;
        w->machines = MUST(new0(SimMachine, w->n_machines));
        for (size_t i = 0; i < w->n_machines; i++)
                make_machine(w, &w->machines[i], i);
        if (options->n_stock > 0)
                w->stock = sim_stock_new(w, w->n_machines - options->n_stock);
        set_repair(w);
        set_disruption(w);
        make_pods(w);
        for (unsigned i = 0; i < options->n_workloads; i++)
                sim_workload_make(w, i);
        (void) sim_world_run(w, 2 * USEC_PER_SEC);
        make_processes(w);
        if (w->options.queue)
                w->queue = sim_queue_new(w);
        if (w->options.webhooks && w->options.n_coordinators > 0)
                w->webhook = sim_webhook_new(w);
        start_processes(w);
        return w;
}

static void free_machines(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++) {
                timer_free(w->machines[i].boot);
                sim_power_free(w->machines[i].power);
                timer_free(w->machines[i].end);
                timer_free(w->machines[i].kubelet);
                timer_free(w->machines[i].taken);
                timer_free(w->machines[i].deleted);
                fake_imds_free(w->machines[i].imds);
                fake_azure_metadata_free(w->machines[i].azure);
                free(w->machines[i].node);
                free(w->machines[i].instance);
        }
        free(w->machines);
}

SimWorld *sim_world_free(SimWorld *w) {
        if (!w)
                return NULL;
        for (size_t i = 0; i < w->n_processes; i++)
                sim_process_kill(w->processes[i], USEC_INFINITY);
        sim_exec_forget(w);
        sim_stock_free(w->stock);
        LIST_FOREACH (l, &w->corpses, SimLife, corpses) {
                list_remove(&w->corpses, &l->corpses);
                sim_life_free(l);
        }
        for (size_t i = 0; i < w->n_processes; i++)
                sim_process_free(w->processes[i]);
        free(w->processes);
        sim_restore_forget(w);
        timer_free(w->heartbeats);
        free_machines(w);
        fake_azure_events_free(w->azure);
        fake_cluster_free(w->cluster);
        sim_webhook_free(w->webhook);
        sim_queue_free(w->queue);
        fake_ec2_free(w->ec2);
        sim_check_free(w->check);
        request_free(w->request);
        sim_faults_free(w->faults);
        sim_trace_free(w->trace);
        random_free(w->random);
        random_free(w->cluster_random);
        loop_free(w->loop);
        virtual_time_free(w->time);
        return mfree(w);
}

/* -- what people, clouds and kubelets do ------------------------------------------------------- */

SimProcess *sim_world_agent(SimWorld *w, size_t machine) {
        return w->machines[machine].agent;
}

SimProcess *sim_world_coordinator(SimWorld *w, size_t i) {
        return w->processes[w->options.n_agents + i];
}

SimProcess *sim_world_leader(SimWorld *w) {
        const cJSON *lease = fake_get(w->cluster, FAKE_LEASES, "vesper-system", "vesper-coordinator");
        const char *holder = fj_string(lease, "spec", "holderIdentity", NULL);

        for (size_t i = 0; i < w->options.n_coordinators; i++) {
                SimProcess *p = sim_world_coordinator(w, i);

                if (p->life && streq_ptr(p->life->identity, holder))
                        return p;
        }
        return NULL;
}

void sim_world_notice(SimWorld *w, size_t machine, unsigned in_sec) {
        SimMachine *m = &w->machines[machine];

        if (!m->noticed)
                sim_check_taken_back(w->check, m); /* an earlier notice of this boot, which was withdrawn */
        m->noticed_boot = m->n_boots;
        m->opened_by_admin = false; /* that was about something else */
        m->told_usec[0] = m->spot_usec = sim_world_wall(w) + in_sec * USEC_PER_SEC;
        /* A shutdown that is on may end it sooner. */
        m->deadline_usec = m->power && m->noticed ? MIN(m->deadline_usec, m->spot_usec) : m->spot_usec;
        m->n_told = 1;
        m->noticed = true;
        sim_trace_add(w->trace, "world", "%s is to end in %u s", m->node, in_sec);
        fake_imds_set_action(m->imds, "terminate", m->spot_usec);
}

/* Of the times that the notice has named, the earliest that stood on the Node. */
static usec_t earliest_said(const SimMachine *m, usec_t said_usec) {
        for (size_t i = 0; i < m->n_told; i++)
                if (m->told_usec[i] / USEC_PER_SEC == said_usec / USEC_PER_SEC)
                        return m->told_usec[i];
        return USEC_INFINITY;
}

void sim_world_note_said(SimWorld *w, size_t machine, usec_t deadline_usec) {
        SimMachine *m = &w->machines[machine];

        m->deadline_usec = MIN(m->deadline_usec, earliest_said(m, deadline_usec));
}

void sim_world_move_notice(SimWorld *w, size_t machine, unsigned in_sec) {
        SimMachine *m = &w->machines[machine];
        const char *text = sim_world_annotation(w, machine, "vesper.sh/interruption");
        cJSON *said = text ? cJSON_Parse(text) : NULL;
        usec_t at = sim_world_wall(w) + in_sec * USEC_PER_SEC, deadline;

        sim_trace_add(w->trace, "world", "%s is to end in %u s instead", m->node, in_sec);
        fake_imds_set_action(m->imds, "terminate", at);
        m->deadline_usec = m->spot_usec = at;
        if (rfc3339_parse(strempty(fj_string(said, "deadline", NULL)), &deadline) >= 0)
                sim_world_note_said(w, machine, deadline);
        cJSON_Delete(said);
        if (m->n_told == ELEMENTSOF(m->told_usec)) /* the oldest is long known, or never will be */
                memmove(m->told_usec, m->told_usec + 1, --m->n_told * sizeof(usec_t));
        m->told_usec[m->n_told++] = at;
}

void sim_world_withdraw(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        m->noticed = false;
        m->spot_usec = USEC_INFINITY;
        if (!m->ended) {
                timer_disarm(m->taken);
                timer_disarm(m->deleted);
        }
        sim_trace_add(w->trace, "world", "%s may stay", m->node);
        fake_imds_clear_action(m->imds);
}

void sim_world_delete_node(SimWorld *w, size_t machine) {
        sim_trace_add(w->trace, "world", "node %s is deleted", w->machines[machine].node);
        fake_delete(w->cluster, FAKE_NODES, NULL, w->machines[machine].node, -1);
}

void sim_world_admin_cordon(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        assert(!sim_world_unschedulable(w, machine));
        sim_trace_add(w->trace, "world", "a person cordons %s", m->node);
        m->cordoned_by_admin = true;
        m->opened_by_admin = false;
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'spec':{'unschedulable':true}}");
}

/* What a person reads there is of a boot that is over, and not what was announced since. */
static bool tells_of_another_notice(SimWorld *w, size_t machine) {
        const char *told = sim_world_annotation(w, machine, "vesper.sh/interruption");
        const SimMachine *m = &w->machines[machine];

        return m->noticed && m->noticed_boot == m->n_boots && told && !strstr(told, m->boot_id);
}

void sim_world_admin_uncordon(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        sim_trace_add(w->trace, "world", "a person un-cordons %s", m->node);
        m->cordoned_by_admin = false;
        /* Whoever had cordoned it, or knew it cordoned, and sees this, knows what a person wants. */
        m->opened_by_admin = (sim_world_annotation(w, machine, "vesper.sh/cordoned-by-agent") ||
                              sim_world_annotation(w, machine, "vesper.sh/interruption")) &&
                             !tells_of_another_notice(w, machine);
        m->opened_usec = sim_world_now(w);
        fake_merge(w->cluster, FAKE_NODES, NULL, m->node, "{'spec':{'unschedulable':null}}");
}

void sim_world_open_once_read(SimWorld *w, size_t machine, usec_t unheard_usec) {
        w->machines[machine].opens_usec = unheard_usec;
}

/* What runs there begins anew; what was going is gone. */
static void restart_pods(SimWorld *w, const char *node) {
        const cJSON *pod;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, NULL) {
                _cleanup_free_ char *ns = copy(fj_string(pod, "metadata", "namespace", NULL));
                _cleanup_free_ char *name = copy(fj_string(pod, "metadata", "name", NULL));

                if (streq_ptr(fj_string(pod, "spec", "nodeName", NULL), node) &&
                    streq_ptr(fj_string(pod, "status", "phase", NULL), "Running"))
                        fake_merge(w->cluster, FAKE_PODS, ns, name,
                                   "{'status':{'phase':'Pending','conditions':null}}");
        }
}

void sim_world_reboot(SimWorld *w, size_t machine, usec_t away_usec) {
        SimMachine *m = &w->machines[machine];

        sim_trace_add(w->trace, "world", "%s reboots", m->node);
        if (m->noticed)
                sim_world_withdraw(w, machine);
        if (m->agent)
                sim_process_kill(m->agent, USEC_INFINITY);
        fake_cluster_set_kubelet(w->cluster, m->node, false);
        restart_pods(w, m->node);
        timer_arm_in(m->boot, away_usec);
}

void sim_world_machine_ends(SimWorld *w, size_t machine, usec_t in_usec) {
        timer_arm_in(w->machines[machine].end, in_usec);
}

void sim_world_bind_late_pod(SimWorld *w, size_t machine, const char *name, bool tolerates) {
        FakePod pod = { .name = name, .node = w->machines[machine].node, .app = "late", .pending = true };

        sim_trace_add(w->trace, "world", "pod %s%s is bound to %s", name, tolerates ? ", which tolerates all," : "", pod.node);
        fake_add_pod(w->cluster, &pod);
        if (tolerates)
                fake_merge(w->cluster, FAKE_PODS, "default", name, "{'spec':{'tolerations':[{'operator':'Exists'}]}}");
}

void sim_world_set_pdb_min(SimWorld *w, unsigned min) {
        sim_trace_add(w->trace, "world", "the budget needs %u now", min);
        fake_merge(w->cluster, FAKE_PDBS, "default", "web", "{'spec':{'minAvailable':%u}}", min);
}

void sim_world_set_ill(SimWorld *w, size_t machine, bool ill) {
        cJSON *node = fj_copy(sim_world_node(w, machine));

        sim_trace_add(w->trace, "world", "%s is %s", w->machines[machine].node, ill ? "ill" : "well");
        (void) fake_set_condition(fake_cluster_store(w->cluster), fj_object(node, "status"), SIM_ILLNESS, ill ? "True" : "False",
                                  ill ? "DockerHung" : "KernelHasNoDeadlock", NULL);
        fake_put(w->cluster, FAKE_NODES, node);
}

/* -- what can be seen -------------------------------------------------------------------------- */

const cJSON *sim_world_node(SimWorld *w, size_t machine) {
        return fake_get(w->cluster, FAKE_NODES, NULL, w->machines[machine].node);
}

bool sim_world_is_unmanaged(SimWorld *w, size_t machine) {
        return streq_ptr(fj_string(sim_world_node(w, machine), "metadata", "annotations", "vesper.sh/unmanaged", NULL), "true");
}

char *sim_world_provider_id(const SimWorld *w, const SimMachine *m) {
        return w->options.exec ? MUST(strf("exec://%s", m->node))
                               : MUST(strf("aws:///" SIM_ZONE "/%s", m->instance));
}

static bool has_finalizer(const cJSON *o) {
        return fj_array_has(fj_get(o, "metadata", "finalizers", NULL), "vesper.sh/termination");
}

/* Higher is better: a pool's, then one that was adopted, then one that is no second of another. */
static int claim_rank(const cJSON *claim) {
        return 4 * (fj_get(claim, "spec", "nodePool", NULL) != NULL) + 2 * has_finalizer(claim) +
               !startswith(fj_string(claim, "metadata", "name", NULL), SIM_RIVAL);
}

const cJSON *sim_world_claim(SimWorld *w, size_t machine) {
        _cleanup_free_ char *provider_id = sim_world_provider_id(w, &w->machines[machine]);
        const cJSON *claim, *found = NULL;

        FAKE_FOREACH (claim, w->cluster, FAKE_NODECLAIMS, NULL)
                if (streq_ptr(fj_string(claim, "spec", "providerID", NULL), provider_id) &&
                    (!found || claim_rank(claim) > claim_rank(found)))
                        found = claim;
        return found;
}

bool sim_world_all(SimWorld *w, sim_condition_t of_machine) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (!of_machine(w, (void *) (uintptr_t) i))
                        return false;
        return true;
}

bool sim_world_all_agents(SimWorld *w, sim_condition_t of_machine) {
        for (size_t i = 0; i < w->options.n_agents; i++)
                if (!of_machine(w, (void *) (uintptr_t) i))
                        return false;
        return true;
}

SimMachine *sim_world_machine_of(SimWorld *w, const char *node) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (streq_ptr(w->machines[i].node, node))
                        return &w->machines[i];
        return NULL;
}

bool sim_world_instance_alive(SimWorld *w, size_t machine) {
        const char *state = fake_ec2_state(w->ec2, w->machines[machine].instance);

        return streq_ptr(state, "running") || streq_ptr(state, "stopped");
}

static bool is_waited_for(const cJSON *pod, const char *node) {
        return streq_ptr(fj_string(pod, "spec", "nodeName", NULL), node) && !fake_pod_is_terminal(pod) &&
               !streq_ptr(fj_string(fake_controller_of(pod), "kind", NULL), "DaemonSet");
}

size_t sim_world_pods_on(SimWorld *w, size_t machine) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, NULL)
                n += is_waited_for(pod, w->machines[machine].node);
        return n;
}

size_t sim_world_pods_going(SimWorld *w, size_t machine) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, NULL)
                n += is_waited_for(pod, w->machines[machine].node) &&
                     fj_get(pod, "metadata", "deletionTimestamp", NULL);
        return n;
}

static bool is_overdue(SimWorld *w, const cJSON *pod) {
        const char *text = fj_string(pod, "metadata", "deletionTimestamp", NULL);
        usec_t at;

        return text && rfc3339_parse(text, &at) >= 0 && sim_world_wall(w) >= at + OVERDUE_USEC;
}

size_t sim_world_pods_alive(SimWorld *w, size_t machine) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, NULL)
                n += is_waited_for(pod, w->machines[machine].node) && !is_overdue(w, pod);
        return n;
}

size_t sim_world_pods_ready(SimWorld *w) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                n += fake_condition_is(pod, "Ready", "True") &&
                     !fj_get(pod, "metadata", "deletionTimestamp", NULL);
        return n;
}

bool sim_world_unschedulable(SimWorld *w, size_t machine) {
        return fj_true(sim_world_node(w, machine), "spec", "unschedulable", NULL);
}

bool sim_world_condition(SimWorld *w, size_t machine, const char *type, const char *status) {
        const cJSON *node = sim_world_node(w, machine);

        return node && fake_condition_is(node, type, status);
}

const char *sim_world_annotation(SimWorld *w, size_t machine, const char *key) {
        return fj_string(sim_world_node(w, machine), "metadata", "annotations", key, NULL);
}

size_t sim_world_events(SimWorld *w, const char *reason) {
        const cJSON *event;
        size_t n = 0;

        FAKE_FOREACH (event, w->cluster, FAKE_EVENTS, NULL)
                n += streq_ptr(fj_string(event, "reason", NULL), reason);
        return n;
}
