/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-reboots.h"

#include "hashmap.h"
#include "sim-check.h"
#include "sim-power.h"
#include "sim-webhook.h"

#define SEC USEC_PER_SEC
#define N_ACTS 30u
#define SLOW_SEED UINT64_C(0x736c6f7764726169)
/* It comes before those who asked earlier. */
#define IMPATIENT 3u

const SimOptions sim_reboots_options = {
        .n_nodes = 4,
        .n_pods = 12,
        .pdb_min = 8,
        .stop_sec = 3,
        .grace_sec = 20,
        .n_agents = 4,
        .n_coordinators = 2,
        .no_pool = true,
};

static bool is_back(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++)
                if (!w->machines[i].agent->life || !w->machines[i].agent->life->ready)
                        return false;
        return sim_world_pods_ready(w) == w->options.n_pods;
}

bool sim_reboots_settle(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++) {
                (void) sim_power_attach(w, i,
                                        &(SimPowerOptions){ .max_usec = 2 * USEC_PER_MINUTE,
                                                            .away_usec = (i + 1) * 20 * SEC });
                sim_world_agent(w, i)->agent_config.reboot_patience_usec =
                        SIM_REBOOTS_PATIENCE_USEC / (i == IMPATIENT ? 2 : 1);
        }
        for (size_t i = 0; i < w->options.n_coordinators; i++)
                sim_world_coordinator(w, i)->coordinator_config.reboot_slot_usec = SIM_REBOOTS_SLOT_USEC;
        return sim_power_run(w, 60 * SEC) && is_back(w) && sim_world_leader(w);
}

bool sim_reboots_ask(SimWorld *w, size_t machine, const char *method) {
        sim_trace_add(w->trace, "world", "%s of %s", method, w->machines[machine].node);
        if (streq(method, "RequestReboot"))
                w->machines[machine].by_hand_boot = w->machines[machine].n_boots;
        return fake_power_call_unit(sim_power_machine(w, machine), method) >= 0;
}

bool sim_reboots_none(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (sim_world_annotation(w, i, "vesper.sh/shutdown-request") ||
                    sim_world_annotation(w, i, "vesper.sh/shutdown-granted"))
                        return false;
        return true;
}

/* -- by chance --------------------------------------------------------------------------------- */

static uint64_t draw(SimWorld *w, uint64_t below) {
        return random_below(w->random, below);
}

/* Of a coordinator any; an agent's requests are not late, as one that arrives after the boot is not what
 * this is about. */
void sim_reboots_trouble(SimWorld *w) {
        static const SimFaultKind kinds[] = { SIM_FAULT_ERROR,        SIM_FAULT_LIE,
                                              SIM_FAULT_LOSE_REQUEST, SIM_FAULT_LOSE_REPLY,
                                              SIM_FAULT_PARTITION,    SIM_FAULT_SLOW };
        bool coordinator = draw(w, 3) > 0;
        SimProcess *p = coordinator ? sim_world_coordinator(w, draw(w, 2))
                                    : sim_world_agent(w, draw(w, w->options.n_agents));
        SimWindow window = { .kind = kinds[draw(w, ELEMENTSOF(kinds) - (coordinator ? 0 : 1))],
                             .until_usec = (1 + draw(w, 60)) * SEC,
                             .permille = 400,
                             .max_usec = 12 * SEC,
                             .who = p->name,
                             .seed = draw(w, 1000) };

        sim_check_trouble(w->check, 180 * SEC);
        if (window.kind == SIM_FAULT_PARTITION)
                window.permille = 1000;
        if (draw(w, 4) == 0)
                fake_api_stall_watches(fake_cluster_api(w->cluster),
                                       sim_world_now(w) + (1 + draw(w, 90)) * SEC);
        else
                sim_faults_add(w->faults, &window);
}

/* Bits of the machines that have a grant. */
static uint64_t granted(SimWorld *w) {
        uint64_t bits = 0;

        for (size_t i = 0; i < w->n_machines; i++)
                bits |= (uint64_t) (sim_world_annotation(w, i, "vesper.sh/shutdown-granted") != NULL) << i;
        return bits;
}

/* Some wait, since who leads has just begun to. Then somebody asks who comes first, is granted, and the
 * leader dies. Who leads next knows of the first, and has not heard of that one: his API server lies behind.
 */
static void leader_dies_unheard(SimWorld *w) {
        SimProcess *heir = sim_world_leader(w), *leader;
        uint64_t before;

        if (!heir)
                return;
        sim_check_trouble(w->check, 300 * SEC);
        sim_process_kill(heir, 2 * SEC);
        for (size_t i = 0; i < IMPATIENT; i++)
                (void) sim_reboots_ask(w, i, "RequestReboot");
        if (!sim_power_run(w, 20 * SEC))
                return;
        leader = sim_world_leader(w);
        if (!leader || leader == heir)
                return;
        sim_trace_add(w->trace, "world", "%s hears nothing", heir->name);
        fake_api_deafen(fake_cluster_api(w->cluster), heir->user, sim_world_now(w) + 180 * SEC);
        (void) sim_reboots_ask(w, IMPATIENT, "RequestReboot");
        before = granted(w);
        for (unsigned i = 0; i < 600 && !(granted(w) & ~before); i++)
                if (!sim_power_run(w, 100 * USEC_PER_MSEC))
                        return;
        if (leader->life)
                sim_process_plan_kill(leader, &(SimKill){ .step = leader->life->n_steps + 1 + draw(w, 20),
                                                          .restart_usec = (60 + draw(w, 60)) * SEC });
}

/* In a quarter of the worlds a drain takes longer than a machine that was told to reboot, and is still there without
 * one, is believed to. No clock is wrong there: an agent compares by it the times that the API server gives pods. */
static bool has_slow_drains(uint64_t seed) {
        return (hash64((uint64_t[2]){ SLOW_SEED, seed }, 2 * sizeof(uint64_t)) >> 16) % 4 == 0;
}

/* In every second world also the clocks of machines that are up are wrong: a slot's end, and how long a
 * request waits, are times of the day. */
static bool has_wrong_clocks(const SimWorld *w) {
        return !has_slow_drains(w->seed) && hash64(&w->seed, sizeof(w->seed)) >> 20 & 1;
}

/* Somebody sets the clock of a machine that goes down, or of any. Drawn apart. */
static void set_clocks(SimWorld *w, unsigned act) {
        static const int64_t off_sec[] = { 5, -5, 70, -70, 7200, -7200 };

        if (has_slow_drains(w->seed))
                return;
        for (size_t i = 0; i < w->n_machines; i++) {
                uint64_t h = hash64((uint64_t[3]){ w->seed, act, i }, 3 * sizeof(uint64_t)) >> 20;
                bool ends = fake_power_phase(sim_power_machine(w, i)) != FAKE_POWER_UP;
                bool may_be_wrong = ends || has_wrong_clocks(w);
                SimProcess *agent = sim_world_agent(w, i);

                if (may_be_wrong && h % 4 == 0)
                        sim_process_set_clock(agent, off_sec[h / 4 % ELEMENTSOF(off_sec)] * (int64_t) SEC);
                else if (agent->clock_off_usec != 0 && (!may_be_wrong || (!ends && h % 4 == 1)))
                        sim_process_set_clock(agent, 0);
        }
}

static void set_clocks_right(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                sim_process_set_clock(sim_world_agent(w, i), 0);
}

/* It is granted, and hears of that when its slot is over, and somebody else may have it; its clock is
 * behind, so that there the slot is not over yet. */
static void slot_ends_unheard(SimWorld *w, size_t machine) {
        SimProcess *agent = sim_world_agent(w, machine);
        usec_t late = (1 + draw(w, 60)) * SEC, behind = (1 + draw(w, 120)) * SEC;
        uint64_t bit = UINT64_C(1) << machine;

        sim_check_trouble(w->check, SIM_REBOOTS_SLOT_USEC + 180 * SEC);
        sim_trace_add(w->trace, "world", "%s hears nothing", agent->name);
        fake_api_deafen(fake_cluster_api(w->cluster), agent->user, USEC_INFINITY);
        (void) sim_reboots_ask(w, machine, "RequestReboot");
        for (unsigned i = 0; i < 300 && !(granted(w) & bit); i++)
                if (!sim_power_run(w, 100 * USEC_PER_MSEC))
                        return;
        if (granted(w) & bit) {
                sim_process_set_clock(agent, -(int64_t) (late + behind));
                (void) sim_reboots_ask(w, (machine + 1) % w->n_machines, "RequestReboot");
                (void) sim_power_run(w, SIM_REBOOTS_SLOT_USEC + late);
        }
        fake_api_deafen(fake_cluster_api(w->cluster), agent->user, sim_world_now(w));
}

static void disturb(SimWorld *w) {
        size_t i = draw(w, w->n_machines);
        SimProcess *coordinator = sim_world_coordinator(w, draw(w, 2));
        SimMachine *m = &w->machines[i];

        switch (draw(w, has_wrong_clocks(w) ? 17 : 15)) {
        case 0 ... 5:
                (void) sim_reboots_ask(w, i, "RequestReboot");
                break;
        case 6:
                (void) sim_reboots_ask(w, i, "CancelReboot");
                break;
        case 7:
                if (sim_power_cancel(w, i))
                        sim_process_set_clock(m->agent, 0);
                break;
        case 8:
                (void) sim_power_shutdown(w, i, "reboot", draw(w, 2) > 0);
                break;
        case 9:
                if (m->agent->life)
                        sim_process_kill(m->agent, (1 + draw(w, 3000)) * USEC_PER_MSEC);
                break;
        case 10:
        case 11:
                sim_check_trouble(w->check, 60 * SEC);
                if (coordinator->life)
                        sim_process_kill(coordinator, (1 + draw(w, 20000)) * USEC_PER_MSEC);
                break;
        case 12:
        case 13:
                sim_reboots_trouble(w);
                break;
        case 14:
                leader_dies_unheard(w);
                break;
        case 15:
        case 16:
                slot_ends_unheard(w, i);
                break;
        }
}

/* -- budgets ----------------------------------------------------------------------------------- */

#define BUDGET_SEED UINT64_C(0x6275646765746564)

/* In a quarter of the worlds a NodeDisruptionBudget holds reboots up, too, and a person's DELETE of a Node
 * passes the webhook now and then and fails after that: its charge and that of a slot are about the same
 * node. */
static uint64_t budget_draw(uint64_t seed, uint64_t act) {
        return hash64((uint64_t[3]) { BUDGET_SEED, seed, act }, 3 * sizeof(uint64_t)) >> 16;
}

static bool has_budget(uint64_t seed) {
        return budget_draw(seed, UINT64_MAX) % 4 == 0;
}

static void delete_in_vain(SimWorld *w, unsigned act) {
        uint64_t h = budget_draw(w->seed, act);

        if (w->webhook && h % 3 == 0)
                sim_webhook_ask(w->webhook, h / 4 % w->n_machines);
}

/* -- called off beside a notice ---------------------------------------------------------------- */

#define BESIDE_SEED UINT64_C(0x6265736964656974)
#define BESIDE_EVERY 12u /* acts */
#define NOTICE_SEC 120u
/* The metadata service is asked each two seconds. */
#define HEARD_USEC (5 * SEC)

/* In a quarter of the worlds. */
static bool has_notices(const SimWorld *w) {
        return (hash64((uint64_t[2]){ BESIDE_SEED, w->seed }, 2 * sizeof(uint64_t)) >> 16) % 4 == 0;
}

static bool is_calm(SimWorld *w, size_t machine) {
        const SimProcess *p = sim_world_agent(w, machine);

        return p->life && p->life->ready && !sim_faults_by_chance(w->faults) && sim_process_knows_time(p) &&
               fake_power_phase(sim_power_machine(w, machine)) == FAKE_POWER_UP && !timer_is_armed(w->machines[machine].boot);
}

/* It stands; what its Node says is of it, and of nothing else. */
static void check_notice_stands(SimWorld *w, size_t machine) {
        const char *text = sim_world_annotation(w, machine, "vesper.sh/interruption");

        if (!text || !strstr(text, "\"spot\"") || !sim_world_unschedulable(w, machine))
                sim_check_fail(w->check, "notice: the shutdown of %s is called off, and its spot notice stands: its node says '%s'",
                               w->machines[machine].node, strempty(text));
}

/* A machine begins to go down, and is called off; before that, meanwhile or later its cloud announces its end. Budgets
 * hold its pods all that time: what of it they have the notice alone says. Then it reboots. */
static void called_off_beside_notice(SimWorld *w, unsigned act) {
        uint64_t h = hash64((uint64_t[3]){ BESIDE_SEED, w->seed, act }, 3 * sizeof(uint64_t)) >> 16;
        size_t machine = h % w->n_machines;
        usec_t on = (1 + h / 16 % 70) * SEC;
        unsigned when = (unsigned) (h / 2048 % 3);

        if (!is_calm(w, machine) || w->machines[machine].noticed || sim_world_annotation(w, machine, "vesper.sh/interruption"))
                return;
        sim_world_set_pdb_min(w, w->options.n_pods);
        if (when == 0)
                sim_world_notice(w, machine, NOTICE_SEC);
        if (!sim_power_run(w, h / 8192 % 4 * SEC) || !sim_power_shutdown(w, machine, "reboot", true))
                return;
        if (when == 1 && sim_power_run(w, on / 2))
                sim_world_notice(w, machine, NOTICE_SEC);
        if (!sim_power_run(w, when == 1 ? on / 2 : on) || !sim_power_cancel(w, machine))
                return;
        if (when == 2 && sim_power_run(w, h / 32768 % 20 * SEC))
                sim_world_notice(w, machine, NOTICE_SEC);
        if (!sim_power_run(w, HEARD_USEC))
                return;
        if (is_calm(w, machine))
                check_notice_stands(w, machine);
        if (sim_power_run(w, NOTICE_SEC * SEC))
                (void) sim_power_shutdown(w, machine, "reboot", true);
}

/* -- a life ------------------------------------------------------------------------------------ */

/* Watches and Leases by the minute, and a few writes for each pod and reboot. */
static uint64_t requests_allowed(const SimWorld *w) {
        return 400 + ((sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE + 1) * 150 + 12 * w->options.n_pods;
}

static bool live(SimWorld *w, SimOutcome *o) {
        o->where = "the world settles";
        if (!sim_reboots_settle(w))
                return false;

        o->where = "things happen";
        for (; o->n_entries < N_ACTS; o->n_entries++) {
                disturb(w);
                set_clocks(w, o->n_entries);
                delete_in_vain(w, (unsigned) o->n_entries);
                if (has_notices(w) && o->n_entries % BESIDE_EVERY == BESIDE_EVERY / 2) {
                        called_off_beside_notice(w, (unsigned) o->n_entries);
                        sim_world_set_pdb_min(w, w->options.pdb_min);
                }
                if (sim_world_violation(w) || !sim_power_run(w, draw(w, 30000) * USEC_PER_MSEC))
                        return false;
        }

        o->where = "all comes to its end";
        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        set_clocks_right(w);
        if (!sim_power_run(w, SIM_REBOOTS_PATIENCE_USEC + 2 * SIM_REBOOTS_SLOT_USEC) ||
            !sim_reboots_none(w) || !is_back(w))
                return false;

        o->where = "nothing goes on";
        return sim_check_quiet(w->check, requests_allowed(w));
}

void sim_reboots_play(uint64_t seed, bool report, bool trace, SimOutcome *ret) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions options = sim_reboots_options;

        if (has_slow_drains(seed)) {
                options.stop_sec = 70;
                options.grace_sec = 90;
        }
        if (has_budget(seed)) {
                options.node_budget = (unsigned) (1 + seed % 2);
                options.webhooks = 1;
        }
        options.max_reboots = (unsigned) (1 + seed % 3 / 2);
        options.encoding = sim_world_draw_encoding(seed);
        options.latency = sim_world_draw_latency(seed);
        w = sim_world_new(seed, &options);
        *ret = (SimOutcome){ 0 };
        ret->good = live(w, ret);
        sim_outcome_read(w, report, trace, ret);
}
