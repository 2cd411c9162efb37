/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-repairs.h"

#include "sim-check.h"
#include "sim-power.h"
#include "sim-process.h"
#include "sim-reboots.h"

#define SEC USEC_PER_SEC
#define N_ACTS 24u
/* Machines with an agent. As many nodes join later, one for each that is replaced. */
#define N_MACHINES 4u
/* A node stays well for so long at least: a watch that says nothing meanwhile would hide the end of its illness. */
#define WELL_USEC (4 * USEC_PER_MINUTE)
/* Nodes are repaired one after the other. For each: its agent does not come within five minutes, or its reboot is proved after five
 * minutes; its replacement is announced; its pods go; its successor has to be Ready for five minutes. A repair that began before the
 * faults stopped may take thirty minutes to fail. */
#define REPAIRED_USEC (N_MACHINES * 20 * USEC_PER_MINUTE + 30 * USEC_PER_MINUTE)
/* Longer than it takes until a repair is proved. */
#define PROVED_USEC (6 * USEC_PER_MINUTE)

typedef struct Illness {
        unsigned boot;    /* n_boots of the boot that fell ill; 0: it is well */
        bool is_stubborn; /* a reboot does not end it */
        usec_t heals_usec; /* it has booted, and is well again then; 0: not yet */
        usec_t well_usec;  /* since when it is well */
} Illness;

typedef struct Repairs {
        SimWorld *world;
        Illness illnesses[N_MACHINES];
        size_t n_joined;
} Repairs;

static uint64_t draw(SimWorld *w, uint64_t below) {
        return random_below(w->random, below);
}

static bool is_in_service(SimWorld *w, size_t machine) {
        const cJSON *node = sim_world_node(w, machine);

        return node && !fj_get(node, "metadata", "deletionTimestamp", NULL);
}

/* -- illnesses --------------------------------------------------------------------------------- */

static void fall_ill(Repairs *r, size_t machine) {
        Illness *i = &r->illnesses[machine];
        SimWorld *w = r->world;

        if (!is_in_service(w, machine) || i->boot > 0 || timer_is_armed(w->machines[machine].boot) ||
            (i->well_usec > 0 && sim_world_now(w) < i->well_usec + WELL_USEC))
                return;
        *i = (Illness){ .boot = w->machines[machine].n_boots, .is_stubborn = draw(w, 4) == 0 };
        sim_world_set_ill(w, machine, true);
}

static void be_well(Repairs *r, size_t machine) {
        if (!is_in_service(r->world, machine) || r->illnesses[machine].boot == 0)
                return;
        r->illnesses[machine] = (Illness){ .well_usec = sim_world_now(r->world) };
        sim_world_set_ill(r->world, machine, false);
}

/* Ends an illness that a reboot cures. The Node shows that only some seconds after the boot. */
static void heal_booted(Repairs *r, size_t machine) {
        Illness *i = &r->illnesses[machine];
        SimWorld *w = r->world;

        if (i->boot == 0 || i->is_stubborn || w->machines[machine].n_boots == i->boot)
                return;
        if (i->heals_usec == 0)
                i->heals_usec = sim_world_now(w) + (1 + draw(w, 20)) * SEC;
        if (sim_world_now(w) >= i->heals_usec)
                be_well(r, machine);
}

static void join_successors(Repairs *r, bool all) {
        size_t n_gone = 0;

        for (size_t i = 0; i < N_MACHINES; i++)
                n_gone += all || !sim_world_node(r->world, i);
        for (; r->n_joined < n_gone; r->n_joined++)
                sim_world_join(r->world, N_MACHINES + r->n_joined);
}

/* False: violation. */
static bool run(Repairs *r, usec_t usec) {
        usec_t until = sim_world_now(r->world) + usec;

        while (sim_world_now(r->world) < until) {
                if (!sim_power_run(r->world, MIN(until - sim_world_now(r->world), SEC)))
                        return false;
                for (size_t i = 0; i < N_MACHINES; i++)
                        heal_booted(r, i);
                join_successors(r, false);
        }
        return true;
}

/* -- by chance --------------------------------------------------------------------------------- */

static void kill_agent(SimWorld *w, size_t machine, usec_t restart_usec) {
        if (w->machines[machine].agent->life)
                sim_process_kill(w->machines[machine].agent, restart_usec);
}

static void kill_coordinator(SimWorld *w, SimProcess *p) {
        sim_check_trouble(w->check, 60 * SEC);
        if (p && p->life)
                sim_process_kill(p, (1 + draw(w, 20000)) * USEC_PER_MSEC);
}

static void cordon_or_open(SimWorld *w, size_t machine) {
        if (w->machines[machine].cordoned_by_admin)
                sim_world_admin_uncordon(w, machine);
        else if (is_in_service(w, machine) && !sim_world_unschedulable(w, machine))
                sim_world_admin_cordon(w, machine);
}

static void disturb(Repairs *r) {
        SimWorld *w = r->world;
        size_t i = draw(w, N_MACHINES);

        switch (draw(w, 16)) {
        case 0 ... 5:
                fall_ill(r, i);
                break;
        case 6:
                be_well(r, i);
                break;
        case 7:
                (void) sim_reboots_ask(w, i, draw(w, 3) > 0 ? "RequestReboot" : "CancelReboot");
                break;
        case 8:
                kill_agent(w, i, (1 + draw(w, 3000)) * USEC_PER_MSEC);
                break;
        case 9: /* for longer than the five minutes that it has to ask for its reboot; where its machine goes down, PID 1 starts it again at once */
                if (fake_power_phase(sim_power_machine(w, i)) == FAKE_POWER_UP)
                        kill_agent(w, i, (6 + draw(w, 3)) * USEC_PER_MINUTE);
                break;
        case 10 ... 12:
                kill_coordinator(w, sim_world_leader(w));
                break;
        case 13:
                kill_coordinator(w, sim_world_coordinator(w, draw(w, 2)));
                break;
        case 14:
                sim_reboots_trouble(w);
                break;
        case 15:
                cordon_or_open(w, i);
                break;
        }
}

/* -- a life ------------------------------------------------------------------------------------ */

static bool is_adopted(SimWorld *w, size_t machine) {
        return sim_world_claim(w, machine) && fj_array_has(fj_get(sim_world_node(w, machine), "metadata", "finalizers", NULL), "vesper.sh/termination");
}

/* Returns true if no node is ill, no node is being deleted, and nothing is left of a reboot. */
static bool is_over(Repairs *r) {
        SimWorld *w = r->world;

        for (size_t i = 0; i < w->n_machines; i++) {
                const SimMachine *m = &w->machines[i];

                if (!sim_world_node(w, i) && !sim_world_claim(w, i))
                        continue;
                if (!is_in_service(w, i) || !is_adopted(w, i) || sim_world_condition(w, i, SIM_ILLNESS, "True") ||
                    sim_world_annotation(w, i, "vesper.sh/reboot-for-repair") || !sim_world_condition(w, i, "Ready", "True") ||
                    (m->agent && (!m->agent->life || !m->agent->life->ready)))
                        return false;
        }
        return sim_reboots_none(w) && sim_world_pods_ready(w) == w->options.n_pods;
}

static void stop_troubles(Repairs *r) {
        SimWorld *w = r->world;

        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        for (size_t i = 0; i < N_MACHINES; i++)
                if (w->machines[i].cordoned_by_admin && sim_world_node(w, i))
                        sim_world_admin_uncordon(w, i);
}

static bool run_until_over(Repairs *r) {
        usec_t until = sim_world_now(r->world) + REPAIRED_USEC;

        while (!is_over(r))
                if (sim_world_now(r->world) > until || !run(r, 10 * SEC))
                        return false;
        return true;
}

/* Watches and Leases by the minute, and a few writes for each pod and reboot. */
static uint64_t requests_allowed(const SimWorld *w) {
        return 400 + ((sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE + 1) * 150 + 12 * w->options.n_pods;
}

static bool live(Repairs *r, SimOutcome *o) {
        SimWorld *w = r->world;

        o->where = "the world settles";
        if (!sim_reboots_settle(w) || !run(r, 30 * SEC) || !is_over(r))
                return false;

        o->where = "things happen";
        for (; o->n_entries < N_ACTS; o->n_entries++) {
                disturb(r);
                if (sim_world_violation(w) || !run(r, draw(w, 60000) * USEC_PER_MSEC))
                        return false;
        }

        o->where = "all ill nodes are repaired";
        stop_troubles(r);
        if (!run_until_over(r))
                return false;
        join_successors(r, true);
        if (!run(r, PROVED_USEC) || !is_over(r))
                return false;

        o->where = "nothing goes on";
        return sim_check_quiet(w->check, requests_allowed(w));
}

/* In a quarter of the worlds one machine's agent does not take up reboots for repair. */
static void set_refusing(SimWorld *w) {
        uint64_t h = sim_world_derive(w, "refuses", 0) >> 16;

        if (h % 4 == 0)
                sim_world_agent(w, h / 4 % N_MACHINES)->agent_config.repair_reboots = false;
}

void sim_repairs_play(uint64_t seed, bool report, bool trace, SimOutcome *ret) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions options = sim_reboots_options;
        Repairs r = {};

        options.no_pool = false;
        options.n_late = N_MACHINES;
        options.n_nodes = 2 * N_MACHINES;
        options.n_agents = N_MACHINES;
        options.max_reboots = (unsigned) (1 + seed % 2);
        options.node_budget = (unsigned) (seed / 2 % 3);
        options.encoding = sim_world_draw_encoding(seed);
        options.latency = sim_world_draw_latency(seed);
        options.repair_reboot_sec = (unsigned) (30 + seed / 6 % 7 * 10);
        w = r.world = sim_world_new(seed, &options);
        set_refusing(w);
        *ret = (SimOutcome){ 0 };
        ret->good = live(&r, ret);
        sim_outcome_read(w, report, trace, ret);
}
