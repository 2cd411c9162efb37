/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-launches.h"

#include "fake-controllers.h"
#include "sim-check.h"
#include "sim-load.h"
#include "sim-process.h"
#include "sim-reboots.h"
#include "sim-stock.h"

#define SEC USEC_PER_SEC
#define N_ACTS 20u
/* Machines that the world begins with, each with an agent, and machines that the cloud can launch. */
#define N_MACHINES 4u
#define N_STOCK 20u
#define SPOT_SEC 120u
/* A machine is asked for for 15 minutes, may appear for 10 more, and has 10 to become a node, three times. */
#define SUCCEEDED_USEC (120 * USEC_PER_MINUTE)
/* A machine that nobody waits for any more would appear within this. */
#define APPEARED_USEC (11 * USEC_PER_MINUTE)

typedef struct Launches {
        SimWorld *world;
        bool pool_may_change, pool_has_gone;
} Launches;

static uint64_t draw(SimWorld *w, uint64_t below) {
        return random_below(w->random, below);
}

static bool is_in_service(SimWorld *w, size_t machine) {
        const cJSON *node = sim_world_node(w, machine);

        return node && !w->machines[machine].ended && !fj_get(node, "metadata", "deletionTimestamp", NULL);
}

/* -- what happens to machines -------------------------------------------------------------------- */

static void interrupt(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        if (!is_in_service(w, machine) || m->noticed)
                return;
        m->replaced_usec = sim_world_now(w);
        sim_world_notice(w, machine, SPOT_SEC);
        sim_load_take(w, machine, SPOT_SEC * SEC);
}

/* Its group becomes smaller, on purpose. */
static void scale_in(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        if (!is_in_service(w, machine) || m->noticed)
                return;
        sim_trace_add(w->trace, "world", "%s is scaled in", m->node);
        m->noticed = m->has_event = true;
        m->noticed_boot = m->n_boots;
        fake_imds_set_text(m->imds, FAKE_IMDS_LIFECYCLE, "Terminated");
}

/* For longer than the rule of its repair, if there is one. */
static void stop_kubelet(SimWorld *w, size_t machine) {
        SimMachine *m = &w->machines[machine];

        if (w->options.repair_sec == 0 || !is_in_service(w, machine) || m->noticed)
                return;
        m->replaced_usec = sim_world_now(w);
        sim_load_stop_kubelet(w, machine, (60 + draw(w, 400)) * SEC);
}

static size_t any_machine(SimWorld *w) {
        return draw(w, 3) > 0 ? draw(w, N_MACHINES) : draw(w, w->n_machines);
}

/* -- what goes wrong ----------------------------------------------------------------------------- */

static void kill_leader(SimWorld *w, usec_t restart_usec) {
        SimProcess *p = sim_world_leader(w);

        if (p)
                sim_process_kill(p, restart_usec);
}

/* Within its next steps: between two calls. */
static void kill_leader_soon(SimWorld *w) {
        SimProcess *p = sim_world_leader(w);

        if (p)
                sim_process_plan_kill(p, &(SimKill){ .step = p->life->n_steps + 1 + draw(w, 120),
                                                     .restart_usec = (1 + draw(w, 40)) * SEC });
}

static void pause_leader(SimWorld *w) {
        SimProcess *p = sim_world_leader(w);

        if (p)
                sim_process_pause(p, (5 + draw(w, 60)) * SEC);
}

/* The other one leads, and hears of nothing that the one before has written last. */
static void change_deaf_leader(SimWorld *w) {
        SimProcess *leader = sim_world_leader(w);
        SimProcess *heir = sim_world_coordinator(w, leader == sim_world_coordinator(w, 0));

        if (!leader || !heir->life)
                return;
        sim_trace_add(w->trace, "world", "%s hears nothing", heir->name);
        fake_api_deafen(fake_cluster_api(w->cluster), heir->user,
                        sim_world_now(w) + (20 + draw(w, 100)) * SEC);
        sim_process_plan_kill(leader, &(SimKill){ .step = leader->life->n_steps + 1 + draw(w, 200),
                                                  .restart_usec = (30 + draw(w, 60)) * SEC });
}

static void disturb_commands(SimWorld *w) {
        usec_t until = sim_world_now(w) + (20 + draw(w, 120)) * SEC;
        unsigned permille = 200 + (unsigned) draw(w, 700);

        for (unsigned i = 0; i < w->options.n_coordinators; i++)
                sim_faults_add(w->faults, &(SimWindow){ .kind = SIM_FAULT_CLOUD,
                                                        .until_usec = until,
                                                        .permille = permille,
                                                        .who = sim_world_coordinator(w, i)->name,
                                                        .seed = draw(w, 1000) });
}

/* One that has not become a node that takes pods. */
static void delete_new_claim(SimWorld *w) {
        const cJSON *claim;

        FAKE_FOREACH (claim, w->cluster, FAKE_NODECLAIMS, NULL)
                if (fj_get(claim, "spec", "replaces", NULL) &&
                    !fake_condition_is(claim, "Initialized", "True") &&
                    !fj_get(claim, "metadata", "deletionTimestamp", NULL)) {
                        _cleanup_free_ char *name = MUST(strdup(fj_string(claim, "metadata", "name", NULL)));

                        sim_trace_add(w->trace, "world", "a person deletes NodeClaim %s", name);
                        sim_check_claim_unwanted(w->check, claim);
                        fake_delete(w->cluster, FAKE_NODECLAIMS, NULL, name, -1);
                        return;
                }
}

static void change_pool(Launches *l) {
        SimWorld *w = l->world;

        if (!l->pool_may_change)
                return;
        l->pool_may_change = false;
        if (draw(w, 2)) {
                sim_trace_add(w->trace, "world", "the pool replaces no machines any more");
                fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                           "{'spec':{'disruption':{'onInterruption':'None'}}}");
                return;
        }
        sim_trace_add(w->trace, "world", "the pool is deleted");
        l->pool_has_gone = true;
        for (size_t i = 0; i < w->n_machines; i++)
                w->machines[i].unmanaged_usec = sim_world_now(w);
        fake_delete(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL, -1);
}

static void disturb(Launches *l) {
        SimWorld *w = l->world;

        switch (draw(w, 22)) {
        case 0 ... 3:
                interrupt(w, draw(w, N_MACHINES));
                break;
        case 4: /* a whole zone */
                for (size_t i = 0; i < N_MACHINES - 1; i++)
                        interrupt(w, i);
                break;
        case 5:
                scale_in(w, draw(w, N_MACHINES));
                break;
        case 6 ... 7:
                stop_kubelet(w, any_machine(w));
                break;
        case 8 ... 9:
                kill_leader(w, (1 + draw(w, 20000)) * USEC_PER_MSEC);
                break;
        case 10 ... 12:
                kill_leader_soon(w);
                break;
        case 13:
                pause_leader(w);
                break;
        case 14 ... 15:
                sim_reboots_trouble(w);
                break;
        case 16 ... 17:
                disturb_commands(w);
                break;
        case 18:
                delete_new_claim(w);
                break;
        case 19:
                change_pool(l);
                break;
        case 20 ... 21:
                change_deaf_leader(w);
                break;
        }
}

/* -- a life -------------------------------------------------------------------------------------- */

static bool is_adopted(SimWorld *w, size_t machine) {
        const cJSON *finalizers = fj_get(sim_world_node(w, machine), "metadata", "finalizers", NULL);

        return sim_world_claim(w, machine) && fj_array_has(finalizers, "vesper.sh/termination");
}

static bool claims_are_at_rest(SimWorld *w) {
        const cJSON *claim;

        FAKE_FOREACH (claim, w->cluster, FAKE_NODECLAIMS, NULL)
                if (fj_get(claim, "metadata", "deletionTimestamp", NULL) ||
                    !fj_string(claim, "spec", "providerID", NULL) ||
                    (fj_get(claim, "spec", "replaces", NULL) &&
                     !fake_condition_is(claim, "Initialized", "True")))
                        return false;
        return true;
}

/* Returns true if no machine comes or goes. A pool that has gone leaves its nodes to others. */
static bool is_over(const Launches *l) {
        SimWorld *w = l->world;

        if (!claims_are_at_rest(w))
                return false;
        for (size_t i = 0; i < w->n_machines && !l->pool_has_gone; i++)
                if (sim_world_node(w, i) && (!is_in_service(w, i) || !is_adopted(w, i) ||
                                             !sim_world_condition(w, i, "Ready", "True")))
                        return false;
        return l->pool_has_gone ? fake_count(w->cluster, FAKE_NODECLAIMS) == 0 : true;
}

static bool run_until_over(const Launches *l) {
        usec_t until = sim_world_now(l->world) + SUCCEEDED_USEC;

        while (!is_over(l))
                if (sim_world_now(l->world) > until || !sim_world_run(l->world, 10 * SEC))
                        return false;
        return true;
}

static void stop_troubles(SimWorld *w) {
        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        sim_stock_stop_troubles(w->stock);
        sim_world_set_pdb_min(w, 0); /* there may be no node for these pods to go to */
        for (size_t i = 0; i < w->options.n_coordinators; i++)
                sim_process_plan_kill(sim_world_coordinator(w, i), &(SimKill){ 0 });
}

static uint64_t requests_allowed(const SimWorld *w) {
        return 1000 + ((sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE + 1) * 200 + 12 * w->options.n_pods;
}

static bool live(Launches *l, SimOutcome *o) {
        SimWorld *w = l->world;

        o->where = "the world settles";
        if (!sim_world_run(w, 60 * SEC) || !is_over(l) || !sim_world_leader(w))
                return false;

        o->where = "things happen";
        for (; o->n_entries < N_ACTS; o->n_entries++) {
                disturb(l);
                if (sim_world_violation(w) || !sim_world_run(w, draw(w, 60000) * USEC_PER_MSEC))
                        return false;
        }

        o->where = "all machines that go are replaced";
        stop_troubles(w);
        if (!sim_world_run(w, 4 * USEC_PER_MINUTE) || !run_until_over(l) ||
            !sim_world_run(w, APPEARED_USEC) || !run_until_over(l))
                return false;

        o->where = "nothing goes on";
        return sim_world_run(w, USEC_PER_MINUTE) && sim_check_quiet(w->check, requests_allowed(w));
}

void sim_launches_play(uint64_t seed, bool report, bool trace, SimOutcome *ret) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions options = {
                .n_nodes = N_MACHINES + N_STOCK,
                .n_late = N_STOCK,
                .n_stock = N_STOCK,
                .n_pods = 12,
                .pdb_min = 8,
                .stop_sec = 3,
                .grace_sec = 20,
                .n_agents = N_MACHINES,
                .n_coordinators = 2,
                .exec = 1,
                .no_find = seed % 5 == 0,
                .repair_sec = seed % 3 == 0 ? 60 : 0,
                .shutting_down_sec = (unsigned) (seed % 4 * 10),
                .encoding = sim_world_draw_encoding(seed),
                .latency = sim_world_draw_latency(seed),
        };
        Launches l = { .pool_may_change = seed % 4 == 1 };

        w = l.world = sim_world_new(seed, &options);
        fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                   "{'spec':{'disruption':{'onInterruption':'Replace','launchTimeout':'10m'},"
                   "'template':{'startupTaints':[{'key':'" SIM_STARTUP_TAINT "','effect':'NoSchedule'}]}}}");
        *ret = (SimOutcome){ 0 };
        ret->good = live(&l, ret);
        sim_outcome_read(w, report, trace, ret);
}
