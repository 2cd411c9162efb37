/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-power.h"
#include "sim-reboots.h"
#include "sim-stories.h"
#include "strv.h"

#define REST_SEC 120u
#define REST_MAX_SEC 900u
#define SETTLE_SEC 180u
/* Interval at whose multiples rounds begin, so that periodic work comes at the same moment of each round. A
 * round also begins this long after the last one, or after the start of the daemons, so that no reboot slot,
 * and nothing else with a time limit, is left over. */
#define ROUND_USEC (10 * USEC_PER_MINUTE)
#define AFTER_USEC (USEC_PER_SEC / 2) /* not in the moment in which all kubelets send a heartbeat */

bool sim_story_run(const SimStory *s, SimWorld *w, usec_t usec) {
        return s->has_power ? sim_power_run(w, usec) : sim_world_run(w, usec);
}

/* Checks the condition once a second: stories do not depend on shorter times. */
static bool run_until(const SimStory *s, SimWorld *w, unsigned seconds, sim_condition_t until, size_t machine) {
        for (unsigned i = 0; !until(w, machine_arg(machine)); i++)
                if (i == seconds || !sim_story_run(s, w, SEC))
                        return false;
        return true;
}

size_t sim_story_machine(const SimStory *s, unsigned round) {
        return s->node == SIM_STORY_NODE_STAYS ? 0 : round;
}

/* Returns true if each agent whose machine exists has read its Node. */
static bool agents_are_ready(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++)
                if (sim_world_node(w, i) && !w->machines[i].ended && !agent_is_ready(w, machine_arg(i)))
                        return false;
        return true;
}

CONDITION(is_settled, pods_are_back(w, NULL) && agents_are_ready(w) && (w->options.n_coordinators == 0 || sim_world_leader(w)))
CONDITION(is_in_order, !sim_world_node(w, m) || sim_world_is_outside(w, m) || w->options.n_coordinators == 0 || is_adopted(w, userdata))

static bool settle(const SimStory *s, SimWorld *w) {
        if (!run_until(s, w, SETTLE_SEC, is_settled, 0))
                return false;
        for (size_t i = 0; i < w->n_machines; i++)
                if (!run_until(s, w, SETTLE_SEC, is_in_order, i))
                        return false;
        return sim_story_run(s, w, 2 * ROUND_USEC - sim_world_now(w) % ROUND_USEC + AFTER_USEC);
}

static bool settle_warm(const SimStory *s, SimWorld *w) {
        if (!s->warm)
                return settle(s, w);
        if (!settle(s, w))
                return false;
        s->warm(w);
        return settle(s, w);
}

SimWorld *sim_story_world(const SimStory *s, uint64_t seed) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions o = s->options;

        if (s->node == SIM_STORY_NODE_GOES) {
                o.n_late = SIM_STORY_ROUNDS;
                o.n_nodes += o.n_late;
        }
        o.latency = SIM_LATENCY_EVEN;
        w = sim_world_new(seed, &o);
        for (size_t i = 0; i < o.n_coordinators; i++)
                sim_world_coordinator(w, i)->coordinator_config.reboot_slot_usec = SIM_REBOOTS_SLOT_USEC;
        if (s->prepare)
                s->prepare(w);
        if (s->has_power)
                for (size_t i = 0; i < o.n_agents; i++)
                        (void) sim_power_attach(w, i, &(SimPowerOptions){ .max_usec = 2 * USEC_PER_MINUTE, .away_usec = 30 * SEC });
        if (settle_warm(s, w))
                return TAKE_PTR(w);
        sim_world_report(w, "the world does not settle");
        return NULL;
}

bool sim_story_play(const SimStory *s, SimWorld *w, unsigned round, unsigned patience, sim_step_ended_t on_step_ended, const char **ret_where) {
        size_t machine = sim_story_machine(s, round);

        for (size_t i = 0; i < ELEMENTSOF(s->steps) && s->steps[i].what; i++) {
                const SimStep *step = &s->steps[i];

                *ret_where = step->what;
                sim_trace_add(w->trace, "story", "%s", step->what);
                if (step->act)
                        step->act(w, machine);
                if (step->until ? !run_until(s, w, step->within_sec * patience, step->until, machine)
                                : !sim_story_run(s, w, step->within_sec * SEC))
                        return false;
                if (on_step_ended)
                        on_step_ended(w, machine, step->what);
        }
        *ret_where = "the round has ended";
        return sim_story_run(s, w, MIN((s->rest_sec > 0 ? s->rest_sec : REST_SEC) * patience, REST_MAX_SEC) * SEC);
}

/* Replaces all pods, so that each node has as many as before the first round. */
static void spread_pods(SimWorld *w) {
        const cJSON *pod;
        _cleanup_strv_free_ char **names = NULL;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default") {
                int r = strv_extend(&names, fj_string(pod, "metadata", "name", NULL));

                assert(r >= 0);
        }
        for (size_t i = 0; names && names[i]; i++)
                fake_delete(w->cluster, FAKE_PODS, "default", names[i], 0);
}

bool sim_story_next(const SimStory *s, SimWorld *w, unsigned round) {
        if (s->node == SIM_STORY_NODE_GOES)
                sim_world_join(w, s->options.n_nodes + round);
        if (!settle(s, w))
                return false;
        spread_pods(w);
        return settle(s, w);
}

bool sim_story_restart(const SimStory *s, SimWorld *w) {
        for (size_t i = 0; i < w->n_processes; i++)
                if (w->processes[i]->life)
                        sim_process_kill(w->processes[i], SEC);
        return sim_story_run(s, w, 30 * SEC) && settle_warm(s, w);
}
