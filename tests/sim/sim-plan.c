/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-plan.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "hashmap.h"
#include "parse-util.h"
#include "sim-check.h"
#include "sim-load.h"
#include "sim-process.h"
#include "sim-restore.h"
#include "sim-shrink.h"

#define SEC USEC_PER_SEC
#define PODS_MAX 2000u
#define LOAD_USEC (180 * SEC)
#define MUTES 6u   /* in one world of three */
#define UNHEARD 4u /* in one of six, others */
#define LATE 3u    /* in one of four, others */
#define OPENED 2u  /* in one of six, others */
#define RESTORED 8u /* one of so many */
#define TWINS 6u   /* in one of eight, others: one is ended while another stays in few of them */
#define PERSONS 6u /* in one of six, others: who pause, keep nodes from vesper, and force */
#define HOOKS 2u   /* in one of eight, others: the evictions of a workload are answered by a webhook */
#define CLAIMED 5u /* one of so many that have coordinators: some nodes by claims of people */
#define CLAIMED_SEED UINT64_C(0x636c61696d656421)
#define RIVALS 4u
#define NARROW 16u /* one world of so many */
#define RUSHES 3u
#define CROWDED 12u /* one of so many that have coordinators */
#define REPAIRED_SEED UINT64_C(0x7265706169726564)
#define FALTERS 10u /* kubelets that falter, in such a world */
#define CROWDED_SEED UINT64_C(0x63726f7764656420)
#define REPAIRED 4u /* one of so many that have coordinators */
#define ASKED 4u /* one of so many that have coordinators */
#define ASKED_SEED UINT64_C(0x61736b65645f2121)
#define LIMITED 5u /* one of so many that have coordinators */
#define LIMITED_SEED UINT64_C(0x6c696d6974656420)
#define COMMANDED 6u /* one of so many that have coordinators */
#define COMMANDED_SEED UINT64_C(0x636f6d6d616e6473)
#define NARROW_SEED UINT64_C(0x6e6172726f772077)
/* The longest grace, five minutes until pods of a silent node are deleted, two until they are given up. */
#define SETTLE_USEC (25 * 60 * SEC)
/* Late misdeeds, after nothing is left to do; and what is mended only later: a claim that a new leader made
 * from an old look at a node has no node for two minutes, then it goes. */
#define AFTERMATH_USEC (240 * SEC)
/* Of what was done before etcd was restored to where it has to be done again, a coordinator thinks for ten minutes that
 * its view only lies behind. */
#define RESTORED_USEC (15 * 60 * SEC)
/* A spot notice that is not told any more counts as taken back so long after its deadline, not before. */
#define CANCEL_USEC (10 * 60 * SEC)

/* -- sizes ------------------------------------------------------------------------------------- */

/* The sizes of a world that can be made smaller. */
typedef struct Size {
        const char *name;
        size_t offset;
        unsigned min;
} Size;

#define OF_WORKLOAD(i, name, field) { "w" #i name, offsetof(SimOptions, workloads[i].field), 0 }
#define WORKLOAD(i) \
        OF_WORKLOAD(i, "", n_pods), OF_WORKLOAD(i, "-stop", stop_sec), OF_WORKLOAD(i, "-grace", grace_sec), \
                OF_WORKLOAD(i, "-opt-out", opt_out), OF_WORKLOAD(i, "-critical", critical), \
                OF_WORKLOAD(i, "-volumes", volumes), OF_WORKLOAD(i, "-budget", budgets[0].kind), \
                OF_WORKLOAD(i, "-budget2", budgets[1].kind)

static const Size sizes[] = {
        { "nodes", offsetof(SimOptions, n_nodes), 3 },
        { "agents", offsetof(SimOptions, n_agents), 0 },
        { "coordinators", offsetof(SimOptions, n_coordinators), 0 },
        { "tgp", offsetof(SimOptions, tgp_sec), 0 },
        { "leave-interrupted", offsetof(SimOptions, leave_interrupted), 0 },
        { "tgp-zero", offsetof(SimOptions, tgp_zero), 0 },
        { "shutting-down", offsetof(SimOptions, shutting_down_sec), 0 },
        { "detach", offsetof(SimOptions, detach_sec), 0 },
        { "encoding", offsetof(SimOptions, encoding), 0 },
        { "watch-lag", offsetof(SimOptions, watch_lag_msec), 0 },
        { "latency", offsetof(SimOptions, latency), 0 },
        { "evictions-at-once", offsetof(SimOptions, evictions_at_once), 0 },
        { "evictions-per-second", offsetof(SimOptions, evictions_per_second), 0 },
        { "terminations-per-minute", offsetof(SimOptions, terminations_per_minute), 0 },
        { "exec", offsetof(SimOptions, exec), 0 },
        { "exec-permille", offsetof(SimOptions, exec_permille), 0 },
        { "standalone", offsetof(SimOptions, standalone), 0 },
        { "node-budget", offsetof(SimOptions, node_budget), 0 },
        { "webhooks", offsetof(SimOptions, webhooks), 0 },
        { "repair", offsetof(SimOptions, repair_sec), 0 },
        { "outlook", offsetof(SimOptions, outlook), 0 },
        WORKLOAD(0),
        WORKLOAD(1),
        WORKLOAD(2),
        WORKLOAD(3),
        WORKLOAD(4),
        WORKLOAD(5),
        WORKLOAD(6),
        WORKLOAD(7),
};

static unsigned *size_of(SimOptions *o, const Size *s) {
        return (unsigned *) ((char *) o + s->offset);
}

/* Makes the sizes agree that depend on each other. */
static void fit(SimOptions *o) {
        o->n_agents = MIN(o->n_agents, o->n_nodes);
        o->no_pool = o->n_coordinators == 0;
}

int sim_plan_resize(SimPlan *p, const char *size, unsigned value) {
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
                if (streq(size, sizes[i].name)) {
                        if (value < sizes[i].min)
                                return -ERANGE;
                        *size_of(&p->options, &sizes[i]) = value;
                        fit(&p->options);
                        return 0;
                }
        return -ENOENT;
}

/* -- the draw ---------------------------------------------------------------------------------- */

static unsigned below(Random *r, unsigned n) {
        return (unsigned) random_below(r, n);
}

static bool one_in(Random *r, unsigned n) {
        return below(r, n) == 0;
}

/* A budget that lets go, most of the time; now and then none at all. */
static SimBudget draw_budget(Random *r, const SimWorkload *l) {
        SimBudget b = { .kind = SIM_BUDGET_MIN + below(r, 4) };

        if (l->kind == SIM_BARE)
                b.kind = SIM_BUDGET_MIN;
        if (b.kind == SIM_BUDGET_MIN)
                b.value = l->n_pods - MIN(below(r, 4), l->n_pods);
        else if (b.kind == SIM_BUDGET_MAX)
                b.value = below(r, 4);
        else if (b.kind == SIM_BUDGET_MIN_PERCENT)
                b.value = 50 + below(r, 51);
        else
                b.value = below(r, 51);
        return b;
}

static SimWorkload draw_workload(Random *r, unsigned n_pods) {
        SimWorkload l = {
                .kind = below(r, 10) < 6 ? SIM_REPLICASET : one_in(r, 4) ? SIM_BARE : SIM_STATEFULSET,
                .n_pods = 1 + below(r, n_pods),
                .stop_sec = below(r, 20),
                .grace_sec = one_in(r, 8) ? 60 + below(r, 600) : 2 + below(r, 40),
                .critical = one_in(r, 8),
        };

        /* Removals one at a time take long. */
        if (l.kind == SIM_STATEFULSET)
                l.n_pods = MIN(l.n_pods, 12u);
        l.volumes = l.kind == SIM_STATEFULSET && !one_in(r, 3);
        if (!one_in(r, 3))
                l.budgets[0] = draw_budget(r, &l);
        if (l.budgets[0].kind != SIM_BUDGET_NONE && one_in(r, 10))
                l.budgets[1] = draw_budget(r, &l);
        if (one_in(r, 12))
                l.opt_out = 1 + below(r, 5);
        return l;
}

/* Most worlds are small: what goes wrong needs few. */
static SimOptions draw_options(Random *r) {
        unsigned sum = 0, size = below(r, 400), n_pods = size == 0 ? 700 : size < 10 ? 40 : 8;
        SimOptions o = {
                .n_nodes = size == 0 ? 30 + below(r, 21) : size < 10 ? 8 + below(r, 13) : 3 + below(r, 6),
                .shutting_down_sec = below(r, 30),
                .detach_sec = one_in(r, 4) ? 10 + below(r, 150) : 1 + below(r, 10),
                .n_coordinators = one_in(r, 4) ? 0 : 2,
                .n_workloads = 1 + below(r, size == 0 ? 8 : 4),
        };

        for (unsigned i = 0; i < o.n_workloads; i++) {
                o.workloads[i] = draw_workload(r, n_pods);
                o.workloads[i].n_pods = MIN(o.workloads[i].n_pods, PODS_MAX - sum);
                sum += o.workloads[i].n_pods;
        }
        if (one_in(r, 2))
                o.tgp_sec = 10 + below(r, one_in(r, 4) ? 1500 : 300);
        o.tgp_zero = one_in(r, 12);
        o.n_agents = one_in(r, 4) && o.n_coordinators > 0 ? 0 : o.n_nodes - below(r, 3);
        fit(&o);
        return o;
}

/* A coordinator that has to wait with its evictions, for an answer or for its rate: of more pods than elsewhere,
 * whose nodes are deleted together. */
static void narrow(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ NARROW_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;
        SimOptions *o = &p->options;

        if (h % NARROW != 0)
                return;
        h /= NARROW;
        o->n_coordinators = 2;
        o->n_nodes = MAX(o->n_nodes, 6u);
        o->evictions_at_once = (unsigned) (1 + h % 4);
        o->evictions_per_second = h / 4 % 3 == 0 ? 6 : 0;
        o->workloads[0].n_pods = (unsigned) (20 + h / 12 % 40);
        o->workloads[0].budgets[0].kind = o->workloads[0].budgets[1].kind = SIM_BUDGET_NONE;
        if (o->workloads[0].kind == SIM_STATEFULSET)
                o->workloads[0].kind = SIM_REPLICASET;
        fit(o);
        for (unsigned i = 0; i < RUSHES; i++)
                sim_schedule_add_rush(p->schedule, p->seed, i, LOAD_USEC);
}

/* Machines of nodes that are deleted together wait for each other at their cloud, for longer than what was proven of
 * their nodes is worth. */
static void crowd(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ CROWDED_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;

        if (h % CROWDED != 0 || p->options.n_coordinators == 0)
                return;
        p->options.terminations_per_minute = (unsigned) (4 + h / CROWDED % 17);
        sim_schedule_add_rush(p->schedule, p->seed, RUSHES, LOAD_USEC);
}

/* A command ends the machines, of several nodes together, and in most of these worlds goes wrong for a
 * while. */
static void command(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ COMMANDED_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;

        if (h % COMMANDED != 0 || p->options.n_coordinators == 0)
                return;
        p->options.exec = 1;
        p->options.terminations_per_minute = 0; /* of EC2 alone */
        if (h / COMMANDED % 4 > 0)
                p->options.exec_permille = (unsigned) (200 + h / (4 * COMMANDED) % 500);
        sim_schedule_add_rush(p->schedule, p->seed, RUSHES + 1, LOAD_USEC);
}

/* A budget of nodes, which holds removals up; several nodes are deleted together. */
static void limit(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ LIMITED_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;

        if (h % LIMITED != 0 || p->options.n_coordinators == 0)
                return;
        p->options.node_budget = (unsigned) (1 + h / LIMITED % 3);
        p->options.webhooks = h / (LIMITED * 3) % 3 > 0;
        for (unsigned i = 0; i <= p->options.webhooks; i++)
                sim_schedule_add_rush(p->schedule, p->seed, RUSHES + 2 + i, LOAD_USEC);
}

/* Nodes whose kubelets stop for long are replaced; some do so twice in a row, each time not for long enough. */
static void repair(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ REPAIRED_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;

        if (h % REPAIRED != 0 || p->options.n_coordinators == 0)
                return;
        p->options.repair_sec = (unsigned) (3 + h / REPAIRED % 12);
        for (unsigned i = 0; i < FALTERS; i++)
                sim_schedule_add_falter(p->schedule, p->seed, i, LOAD_USEC);
}

/* The pool asks which nodes would go: each of them would. */
static void ask(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ ASKED_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;

        p->options.outlook = h % ASKED == 0 && p->options.n_coordinators > 0;
}

/* Some nodes are adopted by claims that people have made; of some machines they make a second one. */
static void claim(SimPlan *p) {
        uint64_t h = hash64((uint64_t[2]){ CLAIMED_SEED, p->seed }, 2 * sizeof(uint64_t)) >> 16;

        if (h % CLAIMED != 0 || p->options.n_coordinators == 0)
                return;
        p->options.standalone = (unsigned) (h / CLAIMED % 4);
        for (unsigned i = 0; i < RIVALS; i++)
                sim_schedule_add_rival(p->schedule, p->seed, i, LOAD_USEC);
}

SimPlan *sim_plan_draw(uint64_t seed) {
        SimPlan *p = MUST(new0(SimPlan, 1));
        Random *random = NULL;
        bool calm;
        int r = random_new(seed, &random);

        assert(r >= 0);
        p->seed = seed;
        p->options = draw_options(random);
        p->options.encoding = sim_world_draw_encoding(seed);
        p->options.watch_lag_msec = (hash64(&seed, sizeof(seed)) >> 48) % 2 == 0 ? 30 : 0;
        p->options.latency = sim_world_draw_latency(seed);
        p->options.leave_interrupted = (hash64(&seed, sizeof(seed)) >> 40) % 2;
        p->schedule = sim_schedule_draw(random, LOAD_USEC);
        if (hash64(&seed, sizeof(seed)) % 3 == 0)
                sim_schedule_add_garbling(p->schedule, seed, LOAD_USEC);
        for (unsigned i = 0; i < MUTES && hash64(&seed, sizeof(seed)) / 3 % 3 == 0; i++)
                sim_schedule_add_mute(p->schedule, seed, i, LOAD_USEC);
        for (unsigned i = 0; i < UNHEARD && hash64(&seed, sizeof(seed)) / 3 % 6 == 1; i++)
                sim_schedule_add_deletes_unheard(p->schedule, seed, i, LOAD_USEC);
        if (hash64(&seed, sizeof(seed)) / 18 % 5 == 0)
                sim_schedule_add_silence(p->schedule, seed);
        for (unsigned i = 0; i < LATE && hash64(&seed, sizeof(seed)) / 90 % 4 == 0; i++)
                sim_schedule_add_late_answers(p->schedule, seed, i, LOAD_USEC);
        for (unsigned i = 0; i < OPENED && hash64(&seed, sizeof(seed)) / 360 % 6 == 0; i++)
                sim_schedule_add_open_once_read(p->schedule, seed, i, LOAD_USEC);
        if (hash64(&seed, sizeof(seed)) / 2160 % RESTORED == 0)
                sim_schedule_add_restore(p->schedule, seed, LOAD_USEC);
        for (unsigned i = 0; i < TWINS && hash64(&seed, sizeof(seed)) / 17280 % 8 == 0; i++)
                sim_schedule_add_twins(p->schedule, seed, i, LOAD_USEC);
        for (unsigned i = 0; i < PERSONS && hash64(&seed, sizeof(seed)) / 138240 % 6 == 0; i++)
                sim_schedule_add_person(p->schedule, seed, i, LOAD_USEC);
        for (unsigned i = 0; i < HOOKS && (hash64(&seed, sizeof(seed)) >> 32) % 8 == 0; i++)
                sim_schedule_add_hook(p->schedule, seed, i, LOAD_USEC);
        narrow(p);
        crowd(p);
        command(p);
        limit(p);
        repair(p);
        ask(p);
        claim(p);
        p->keep = MUST(new0(bool, p->schedule->n + 1));
        /* In some nothing goes wrong: promises about time can be held there. */
        calm = one_in(random, 4);
        if (calm)
                p->options.exec_permille = 0;
        for (size_t i = 0; i < p->schedule->n; i++)
                p->keep[i] = !calm || sim_entry_is_load(&p->schedule->entries[i]);
        random_free(random);
        return p;
}

SimPlan *sim_plan_free(SimPlan *p) {
        if (!p)
                return NULL;
        sim_schedule_free(p->schedule);
        free(p->keep);
        return mfree(p);
}

int sim_plan_keep(SimPlan *p, const char *numbers) {
        memset(p->keep, 0, p->schedule->n * sizeof(bool));
        while (*numbers) {
                char *end;
                unsigned long n = strtoul(numbers, &end, 10);

                if (end == numbers || n >= p->schedule->n || (*end && *end != ','))
                        return -EINVAL;
                p->keep[n] = true;
                numbers = *end ? end + 1 : end;
        }
        return 0;
}

/* -- how it ends ------------------------------------------------------------------------------- */

static bool pods_are_back(SimWorld *w, void *userdata) {
        for (unsigned i = 0; i < w->options.n_workloads; i++)
                if (!sim_workload_is_back(w, i))
                        return false;
        return true;
}

static bool is_adopted(SimWorld *w, void *userdata) {
        size_t m = (size_t) (uintptr_t) userdata;
        const cJSON *node = sim_world_node(w, m);

        return node && sim_world_claim(w, m) &&
               fj_array_has(fj_get(node, "metadata", "finalizers", NULL), "vesper.sh/termination");
}

static bool all_adopted(SimWorld *w, void *userdata) {
        return sim_world_all(w, is_adopted);
}

/* It went before the cloud could prove whose it was: that no record is shown any more says nothing then, and what is left
 * is a person's to take away (IdentityUnproved). */
static bool was_never_proved(SimWorld *w, size_t m) {
        return !w->options.exec && !fj_get(sim_world_claim(w, m), "status", "identity", NULL);
}

/* Nothing is left of a machine that was told to end, or whose node was deleted. */
static bool is_at_its_end(SimWorld *w, void *userdata) {
        size_t m = (size_t) (uintptr_t) userdata;
        const cJSON *node = sim_world_node(w, m);

        if (!node)
                return !sim_world_claim(w, m);
        if (w->machines[m].ended && was_never_proved(w, m))
                return true;
        return !w->machines[m].ended && !fj_get(node, "metadata", "deletionTimestamp", NULL) &&
               !timer_is_armed(w->machines[m].boot);
}

static bool all_at_their_end(SimWorld *w, void *userdata) {
        return sim_world_all(w, is_at_its_end);
}

/* A node that may stay serves again. */
static bool serves_again(SimWorld *w, void *userdata) {
        size_t m = (size_t) (uintptr_t) userdata;

        return !sim_world_node(w, m) ||
               (!sim_world_annotation(w, m, "vesper.sh/interruption") &&
                sim_world_unschedulable(w, m) == w->machines[m].cordoned_by_admin);
}

static bool all_serve_again(SimWorld *w, void *userdata) {
        return sim_world_all(w, serves_again);
}

/* A person does what IdentityUnproved asks for: nothing proves that the machine has gone, and its pods hold others up. */
static void person_takes_away(SimWorld *w, size_t m) {
        const cJSON *claim = sim_world_claim(w, m);
        _cleanup_free_ char *name = claim ? MUST(strdup(fj_string(claim, "metadata", "name", NULL))) : NULL;

        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node, "{'metadata':{'finalizers':null}}");
        (void) fake_delete(w->cluster, FAKE_NODES, NULL, w->machines[m].node, -1);
        if (!name)
                return;
        fake_merge(w->cluster, FAKE_NODECLAIMS, NULL, name, "{'metadata':{'finalizers':null}}");
        (void) fake_delete(w->cluster, FAKE_NODECLAIMS, NULL, name, -1);
}

/* People remove what stood in the way. */
static void stop_faults(SimWorld *w) {
        FakeApi *api = fake_cluster_api(w->cluster);

        sim_restore_now(w);
        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        fake_api_disorder_watches(api, 0);
        for (size_t i = 0; i < w->n_machines; i++) {
                sim_world_open_once_read(w, i, 0);
                /* The agent knows that the node was opened, takes its marks off, and does not know who cordoned it then. */
                if (w->machines[i].opening_lost && sim_world_node(w, i) && sim_world_unschedulable(w, i))
                        sim_world_admin_uncordon(w, i);
                if (w->machines[i].ended && sim_world_node(w, i) && was_never_proved(w, i))
                        person_takes_away(w, i);
        }
        sim_load_remove_twins(w);
        sim_load_take_annotations_off(w);
        sim_load_remove_idle_claims(w);
        sim_load_all_come_back(w);
        for (size_t i = 0; i < w->n_processes; i++) {
                SimProcess *p = w->processes[i];

                sim_process_plan_kill(p, &(SimKill){ 0 });
                p->pause_step = 0;
                sim_process_set_clock(p, 0);
                p->failing_writes = 0;
                if (!p->life && !(p->machine && (p->machine->ended || p->machine->crashed_for_good ||
                                                 timer_is_armed(p->machine->boot))))
                        sim_process_start(p);
        }
        for (unsigned i = 0; i < w->options.n_workloads; i++)
                sim_workload_let_go(w, i);
        sim_load_unprotect_pods(w);
}

/* How long until the last notice that was ever told may be forgotten. */
static usec_t withdraw_all(SimWorld *w) {
        usec_t now = sim_world_wall(w), until = now;

        for (size_t i = 0; i < w->n_machines; i++) {
                SimMachine *m = &w->machines[i];

                if (m->noticed)
                        sim_world_withdraw(w, i);
                if (m->deadline_usec == USEC_INFINITY || !m->agent || m->ended)
                        continue;
                until = MAX(until, m->deadline_usec + CANCEL_USEC);
                /* By a clock that was ahead it was later. */
                if (m->agent->clock_ahead_usec > 0)
                        until = MAX(until, now + m->agent->clock_ahead_usec + CANCEL_USEC);
        }
        return until - now;
}

/* Watches and Leases by the minute, and a few writes for each pod. */
static uint64_t requests_allowed(const SimWorld *w) {
        unsigned n_pods = w->options.n_nodes;

        for (unsigned i = 0; i < w->options.n_workloads; i++)
                n_pods += w->options.workloads[i].n_pods;
        return 3000 + 50 * n_pods + 200 * (sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE;
}

/* -- a life ------------------------------------------------------------------------------------ */

/* For a minute or two. */
static void disturb_commands(SimWorld *w) {
        uint64_t seed = sim_world_derive(w, "commands", 0) >> 16;
        usec_t from = sim_world_now(w) + seed % 60 * SEC;

        for (unsigned i = 0; w->options.exec_permille > 0 && i < w->options.n_coordinators; i++)
                sim_faults_add(w->faults, &(SimWindow){ .kind = SIM_FAULT_CLOUD,
                                                        .from_usec = from,
                                                        .until_usec = from + (60 + seed / 60 % 90) * SEC,
                                                        .permille = w->options.exec_permille,
                                                        .who = sim_world_coordinator(w, i)->name,
                                                        .seed = seed + i });
}

static bool play_load(const SimPlan *p, SimWorld *w, size_t *n_entries) {
        usec_t start = sim_world_now(w);

        for (size_t i = 0; i < p->schedule->n; i++) {
                const SimEntry *e = &p->schedule->entries[i];

                if (!p->keep[i])
                        continue;
                if (!sim_world_run(w, start + e->at_usec - sim_world_now(w)))
                        return false;
                (*n_entries)++;
                sim_entry_play(w, e);
        }
        return sim_world_run(w, start + LOAD_USEC - sim_world_now(w));
}

static bool live(const SimPlan *p, SimWorld *w, SimOutcome *o) {
        o->where = "the world settles";
        if (!sim_world_run_until(w, 120 * SEC, pods_are_back, NULL) ||
            (w->options.n_coordinators > 0 && !sim_world_run_until(w, 60 * SEC, all_adopted, NULL)))
                return false;

        sim_check_promise(w->check);
        o->where = "things happen";
        disturb_commands(w);
        if (!play_load(p, w, &o->n_entries))
                return false;

        o->where = "all comes to its end";
        stop_faults(w);
        /* A node that its notice has drained counts as unavailable. Nobody deletes it here, so its cloud has to take the notice back before a
         * budget of nodes admits the next removal. */
        if (w->options.node_budget > 0 && w->options.leave_interrupted)
                (void) withdraw_all(w);
        if (!sim_world_run_until(w, SETTLE_USEC, all_at_their_end, NULL) ||
            !sim_world_run_until(w, SETTLE_USEC, pods_are_back, NULL))
                return false;

        o->where = "what may stay serves again";
        if (!sim_world_run(w, withdraw_all(w)) || !sim_world_run_until(w, SETTLE_USEC, all_serve_again, NULL))
                return false;

        o->where = "nothing goes on";
        return sim_world_run(w, w->was_restored ? RESTORED_USEC : AFTERMATH_USEC) && sim_check_quiet(w->check, requests_allowed(w));
}

/* -- the planted violation --------------------------------------------------------------------- */

static void on_planted(const FakeChange *change, void *userdata) {
        SimWorld *w = userdata;
        const cJSON *pod = change->new ? change->new->json : NULL;

        if (change->resource->id == FAKE_PODS && pod && w->request && w->request->subresource &&
            fj_get(pod, "metadata", "deletionTimestamp", NULL) &&
            streq_ptr(fj_string(pod, "spec", "nodeName", NULL), "n1"))
                sim_check_fail(w->check, "planted: pod %s of n1 is evicted",
                               fj_string(pod, "metadata", "name", NULL));
}

void sim_outcome_read(const SimWorld *w, bool report, bool trace, SimOutcome *ret) {
        ret->violation = sim_world_violation(w) ? MUST(strdup(sim_world_violation(w))) : NULL;
        ret->hash = sim_trace_hash(w->trace);
        ret->n_steps = w->n_steps;
        ret->n_requests = sim_check_n_requests(w->check);
        ret->n_evictions = sim_check_n_evictions(w->check, NULL);
        ret->virtual_usec = sim_world_now(w) - 1000 * SEC;
        if (trace)
                fputs(sim_trace_text(w->trace), stdout);
        if (report && !ret->good)
                sim_world_report(w, ret->where);
}

void sim_plan_play(const SimPlan *p, bool report, bool trace, SimOutcome *ret) {
        _cleanup_(sim_world_freep) SimWorld *w = sim_world_new(p->seed, &p->options);

        *ret = (SimOutcome){ 0 };
        if (p->plant)
                fake_store_observe(fake_cluster_store(w->cluster), on_planted, w);
        ret->good = live(p, w, ret);
        sim_outcome_read(w, report, trace, ret);
}

void sim_outcome_done(SimOutcome *o) {
        o->violation = mfree(o->violation);
}

/* The words of a violation without names and numbers. */
static char *gist(const char *text) {
        _cleanup_free_ char *copy = MUST(strdup(strempty(text)));
        _cleanup_strbuf_ StrBuf b = { 0 };
        char *save = NULL;

        for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
                if (!strpbrk(word, "0123456789-/"))
                        strbuf_addf(&b, "%s ", word);
        return MUST(strdup(strbuf_str(&b)));
}

bool sim_outcome_same(const SimOutcome *a, const SimOutcome *b) {
        _cleanup_free_ char *x = gist(a->violation), *y = gist(b->violation);

        /* A wait is known by its place; a violation is the same at each place. */
        return !a->good && !b->good && !a->violation == !b->violation && streq(x, y) &&
               (a->violation || streq(a->where, b->where));
}

/* -- smaller ----------------------------------------------------------------------------------- */

typedef struct Search {
        SimPlan *plan;
        const SimOutcome *outcome;
        usec_t until_usec; /* real time */
        unsigned n_lives;
} Search;

static usec_t real_now(void) {
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (usec_t) t.tv_sec * USEC_PER_SEC + (usec_t) t.tv_nsec / 1000;
}

static int shows(const bool *keep, size_t n, void *userdata) {
        Search *s = userdata;
        SimPlan try = *s->plan;
        SimOutcome o;
        int same;

        if (real_now() >= s->until_usec)
                return -ETIME;
        s->n_lives++;
        try.keep = (bool *) keep;
        sim_plan_play(&try, false, false, &o);
        same = sim_outcome_same(&o, s->outcome);
        sim_outcome_done(&o);
        return same;
}

/* The smallest value by halving the way there; worlds are not monotonous, so it is only a local one. */
static int shrink_size(Search *s, const Size *size) {
        unsigned *value = size_of(&s->plan->options, size), low = size->min;

        while (low < *value) {
                SimOptions before = s->plan->options;
                unsigned middle = low + (*value - low) / 2;
                int r;

                *value = middle;
                fit(&s->plan->options);
                r = shows(s->plan->keep, s->plan->schedule->n, s);
                if (r > 0)
                        continue;
                s->plan->options = before;
                if (r < 0)
                        return r;
                low = middle + 1;
        }
        return 0;
}

unsigned sim_plan_shrink(SimPlan *p, const SimOutcome *outcome, usec_t at_most_usec) {
        Search s = { p, outcome, real_now() + at_most_usec, 0 };
        int r = sim_shrink(p->keep, p->schedule->n, shows, &s);

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(sizes); i++)
                r = shrink_size(&s, &sizes[i]);
        /* In a smaller world fewer things may be needed. */
        if (r >= 0)
                (void) sim_shrink(p->keep, p->schedule->n, shows, &s);
        return s.n_lives;
}

/* -- for people -------------------------------------------------------------------------------- */

static void print_workload(const SimWorkload *l, unsigned i, FILE *f) {
        static const char *const kinds[] = { "ReplicaSet", "StatefulSet", "bare pods" };

        if (l->n_pods == 0)
                return;
        fprintf(f, "\n  w%u: %s of %u, stop in %u s, grace %u s", i, kinds[l->kind], l->n_pods, l->stop_sec,
                l->grace_sec);
        for (unsigned k = 0; k < SIM_BUDGETS_MAX; k++)
                if (l->budgets[k].kind != SIM_BUDGET_NONE)
                        fprintf(f, ", %s %u%s", l->budgets[k].kind % 2 ? "minAvailable" : "maxUnavailable",
                                l->budgets[k].value, l->budgets[k].kind >= SIM_BUDGET_MIN_PERCENT ? " %" : "");
        if (l->opt_out > 0)
                fprintf(f, ", %s", sim_opt_out(l->opt_out));
        fprintf(f, "%s%s", l->critical ? ", critical" : "", l->volumes ? ", volumes" : "");
}

void sim_plan_print(const SimPlan *p, FILE *f) {
        fputs("its world:", f);
        for (size_t i = 0; !streq(sizes[i].name, "w0"); i++)
                fprintf(f, "%s %s %u", i > 0 ? "," : "", sizes[i].name,
                        *size_of((SimOptions *) &p->options, &sizes[i]));
        for (unsigned i = 0; i < p->options.n_workloads; i++)
                print_workload(&p->options.workloads[i], i, f);
        fputs("\nits schedule (seconds of the load, entry, what):\n", f);
        for (size_t i = 0; i < p->schedule->n; i++) {
                _cleanup_strbuf_ StrBuf b = { 0 };

                if (!p->keep[i])
                        continue;
                sim_entry_print(&p->schedule->entries[i], &p->options, &b);
                fprintf(f, "%s\n", strbuf_str(&b));
        }
}

char *sim_plan_arguments(const SimPlan *p) {
        _cleanup_(sim_plan_freep) SimPlan *drawn = sim_plan_draw(p->seed);
        _cleanup_strbuf_ StrBuf b = { 0 };
        bool all = true, first = true;

        strbuf_addf(&b, "--seed %" PRIu64, p->seed);
        if (p->plant)
                strbuf_add(&b, " --plant");
        for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
                unsigned value = *size_of((SimOptions *) &p->options, &sizes[i]);

                if (value != *size_of(&drawn->options, &sizes[i]))
                        strbuf_addf(&b, " --%s %u", sizes[i].name, value);
        }
        for (size_t i = 0; i < p->schedule->n; i++)
                all = all && p->keep[i];
        if (all)
                return MUST(strbuf_steal(&b));
        strbuf_add(&b, " --keep ");
        for (size_t i = 0; i < p->schedule->n; i++)
                if (p->keep[i]) {
                        strbuf_addf(&b, "%s%zu", first ? "" : ",", i);
                        first = false;
                }
        if (first)
                strbuf_add(&b, "''");
        return MUST(strbuf_steal(&b));
}
