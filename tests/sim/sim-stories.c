/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-stories.h"

#include <inttypes.h>

#include "coordinator-config.h"
#include "sim-check.h"
#include "sim-load.h"
#include "sim-power.h"
#include "sim-queue.h"
#include "sim-reboots.h"
#include "sim-webhook.h"
#include "strv.h"

#define REST_SEC 120u
#define REST_MAX_SEC 900u
#define SETTLE_SEC 180u
/* A round begins at a multiple of this, so that what is done now and then falls into each round at the same moment; and as long
 * after the last one, or the start of the daemons, so that no slot for a reboot, and no other thing of theirs, is left. */
#define ROUND_USEC (10 * USEC_PER_MINUTE)
#define AFTER_USEC (USEC_PER_SEC / 2) /* not in the moment in which all kubelets send a heartbeat */

/* -- acts -------------------------------------------------------------------------------------- */

static void give_notice(SimWorld *w, size_t m) {
        sim_world_notice(w, m, 120);
}
static void end_machine(SimWorld *w, size_t m) {
        sim_load_take(w, m, 0);
}
static void delete_claim(SimWorld *w, size_t m) {
        sim_load_delete_claim(w, m);
}
static void fall_ill(SimWorld *w, size_t m) {
        sim_world_set_ill(w, m, true);
}
static void be_well(SimWorld *w, size_t m) {
        sim_world_set_ill(w, m, false);
}
static void stop_kubelet(SimWorld *w, size_t m) {
        sim_load_stop_kubelet(w, m, USEC_INFINITY);
}
static void ask_reboot(SimWorld *w, size_t m) {
        (void) sim_reboots_ask(w, m, "RequestReboot");
}
static void take_back_reboot(SimWorld *w, size_t m) {
        (void) sim_reboots_ask(w, m, "CancelReboot");
}
static void power_off(SimWorld *w, size_t m) {
        (void) sim_power_shutdown(w, m, "reboot", true);
}
static void pause_removals(SimWorld *w, size_t m) {
        sim_load_pause(w, true, true);
}
static void resume_removals(SimWorld *w, size_t m) {
        sim_load_pause(w, true, false);
}
static void unmanage(SimWorld *w, size_t m) {
        sim_load_unmanage(w, m, true);
}
static void manage(SimWorld *w, size_t m) {
        sim_load_unmanage(w, m, false);
}
static void set_pool(SimWorld *w, size_t m, const char *pool) {
        w->machines[m].unmanaged_usec = sim_world_now(w);
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node, "{'metadata':{'labels':{'vesper.sh/pool':%s}}}", pool);
}
static void leave_pool(SimWorld *w, size_t m) {
        set_pool(w, m, "null");
}
static void join_pool(SimWorld *w, size_t m) {
        set_pool(w, m, "'" SIM_POOL "'");
}
static void force(SimWorld *w, size_t m) {
        sim_load_force(w, m, 30);
}
static void block_pods(SimWorld *w, size_t m) {
        sim_world_set_pdb_min(w, w->options.n_pods);
}
static void free_pods(SimWorld *w, size_t m) {
        sim_world_set_pdb_min(w, w->options.pdb_min);
}
static void tear_node(SimWorld *w, size_t m) {
        sim_load_tear_node(w, m);
}
static void switch_off(SimWorld *w, size_t m) {
        sim_load_switch_off(w, m, 6 * USEC_PER_MINUTE);
}
static void ask_webhook(SimWorld *w, size_t m) {
        sim_webhook_delete(w->webhook, m, false);
}
static void hold_budget(SimWorld *w, size_t m) {
        sim_webhook_ask(w->webhook, (m + 1) % w->options.n_agents);
}

/* A change is another one in each round. */
static void announce(SimWorld *w, size_t m, FakeAwsEventKind kind, usec_t in_usec) {
        _cleanup_free_ char *change = MUST(strf("%016" PRIx64, sim_world_now(w)));

        sim_queue_send(w->queue,
                       &(FakeAwsEvent){ .kind = kind,
                                        .instance = w->machines[m].instance,
                                        .communication = change,
                                        .until_wall_usec = sim_world_wall(w) + in_usec },
                       false);
}
static void announce_spot(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_SPOT, 0);
}
static void announce_change(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_HEALTH, 5 * USEC_PER_HOUR);
}
static void announce_rebalance(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_REBALANCE, 0);
}
static void call_off(SimWorld *w, size_t m) {
        sim_queue_call_off(w->queue);
}
static void scale_in(SimWorld *w, size_t m) {
        (void) sim_queue_scale_in(w->queue, m, FAKE_AWS_EVENT_TERMINATE_ACTION, false);
}

/* -- conditions -------------------------------------------------------------------------------- */

static bool is_off(const SimWorld *w, size_t m) {
        return timer_is_armed(w->machines[m].boot);
}

CONDITION(is_back, sim_world_condition(w, m, "Ready", "True") && is_open(w, userdata) && pods_are_back(w, NULL) &&
                           !sim_world_annotation(w, m, "vesper.sh/interruption"))
CONDITION(is_removed, is_gone(w, userdata) && claim_is_released(w, userdata) && is_ended(w, userdata) && pods_are_back(w, NULL))
CONDITION(is_blocked, sim_world_condition(w, m, "DrainInProgress", "True") && sim_world_pods_on(w, m) > 0)
CONDITION(is_granted, sim_world_annotation(w, m, "vesper.sh/shutdown-granted"))
CONDITION(is_down, is_off(w, m) || !sim_world_condition(w, m, "Ready", "True"))
CONDITION(asks_for_nothing,
          !sim_world_annotation(w, m, "vesper.sh/shutdown-request") && !sim_world_annotation(w, m, "vesper.sh/shutdown-granted"))
CONDITION(is_to_reboot, sim_world_annotation(w, m, "vesper.sh/reboot-for-repair"))
CONDITION(is_let_go, !fj_array_has(fj_get(sim_world_node(w, m), "metadata", "finalizers", NULL), "vesper.sh/termination") &&
                             claim_is_released(w, userdata))
CONDITION(is_announced, fj_get(sim_world_claim(w, m), "metadata", "annotations", "vesper.sh/announced", NULL))
CONDITION(is_out_of_service,
          fj_find(fj_get(sim_world_node(w, m), "spec", "taints", NULL), "key", "node.kubernetes.io/out-of-service"))

/* -- the table --------------------------------------------------------------------------------- */

/* Before its first grant a leader reads all Nodes. */
static void try_reboot(SimWorld *w) {
        size_t last = w->options.n_agents - 1;

        ask_reboot(w, last);
        (void) sim_power_run(w, SEC);
        take_back_reboot(w, last);
}

static void drain_unmanaged(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_coordinators; i++)
                sim_world_coordinator(w, i)->coordinator_config.queue_unmanaged = QUEUE_UNMANAGED_DRAIN;
        sim_queue_drain_unmanaged(w->queue);
}

#define PODS .n_pods = 8, .pdb_min = 6, .stop_sec = 3, .grace_sec = 20
#define POOL_OF(coordinators) .n_nodes = 4, .n_coordinators = coordinators, .shutting_down_sec = 4, PODS
#define POOL POOL_OF(2)
#define POOL_WITH_AGENTS POOL, .n_agents = 4
#define AGENTS_ALONE .n_nodes = 3, .n_agents = 3, .no_pool = true, PODS

const SimStory sim_stories[] = {
        { .name = "node-deleted",
          .title = "A person deletes a Node of a NodePool",
          .options = { POOL_WITH_AGENTS },
          .steps = { { "the Node is deleted", sim_world_delete_node, is_removed, 90 } } },
        { .name = "claim-deleted",
          .title = "A person deletes the NodeClaim of a Node",
          .options = { POOL },
          .steps = { { "the NodeClaim is deleted", delete_claim, is_removed, 90 } } },
        { .name = "node-deleted-exec",
          .title = "A person deletes a Node whose provider is exec",
          .options = { POOL, .exec = 1 },
          .steps = { { "the Node is deleted", sim_world_delete_node, is_removed, 90 } } },
        { .name = "node-deleted-standalone",
          .title = "A person deletes a Node for which a person has made the NodeClaim",
          .options = { POOL, .standalone = SIM_STORY_ROUNDS },
          .steps = { { "the Node is deleted", sim_world_delete_node, is_removed, 90 } } },
        { .name = "drain-blocked",
          .title = "A PodDisruptionBudget blocks a removal for two minutes",
          .options = { POOL },
          .steps = { { "the budget is closed", block_pods, NULL, 5 },
                     { "the Node is deleted", sim_world_delete_node, is_blocked, 30 },
                     { "the drain waits", NULL, NULL, 120 },
                     { "the budget opens", free_pods, is_removed, 400 } } },
        { .name = "drain-forced",
          .title = "A person sets a deadline for a removal that a PodDisruptionBudget blocks",
          .options = { POOL },
          .steps = { { "the budget is closed", block_pods, NULL, 5 },
                     { "the Node is deleted", sim_world_delete_node, is_blocked, 30 },
                     { "a deadline is set", force, is_removed, 120 },
                     { "the budget opens", free_pods, NULL, 5 } } },
        { .name = "removals-paused",
          .title = "A Node is deleted while removals are paused, and then they go on",
          .options = { POOL },
          .steps = { { "removals are paused", pause_removals, NULL, 5 },
                     { "the Node is deleted", sim_world_delete_node, NULL, 60 },
                     { "removals go on", resume_removals, is_removed, 120 } } },
        { .name = "node-unmanaged",
          .title = "A person keeps a Node from vesper, and gives it back",
          .options = { POOL },
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the Node is annotated", unmanage, NULL, 60 }, { "the annotation goes", manage, is_adopted, 60 } } },
        { .name = "node-released",
          .title = "A Node leaves its NodePool, and joins it again",
          .options = { POOL },
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the label goes", leave_pool, is_let_go, 60 }, { "the label is there again", join_pool, is_adopted, 60 } } },
        { .name = "node-torn",
          .title = "A machine crashes, and somebody removes its Node past all finalizers",
          .options = { POOL },
          .steps = { { "the Node is torn away", tear_node, NULL, 200 }, { "its NodeClaim is deleted", delete_claim, is_removed, 200 } } },
        { .name = "machine-off",
          .title = "The cloud stops a machine for six minutes",
          .options = { POOL },
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the machine stops", switch_off, is_out_of_service, 400 }, { "it is back", NULL, is_back, 600 } } },
        { .name = "budget-full",
          .title = "A person deletes a Node while its NodeDisruptionBudget has no room, and once more",
          .options = { POOL_OF(1), .n_agents = 4, .node_budget = 1, .webhooks = 1 },
          .steps = { { "another Node holds the charge", hold_budget, NULL, 10 },
                     { "the deletion is refused", ask_webhook, NULL, 420 },
                     { "it is asked for again", ask_webhook, is_removed, 120 } } },
        { .name = "notice-withdrawn",
          .title = "A Spot interruption is withdrawn while the Node drains",
          .options = { AGENTS_ALONE },
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the notice is given", give_notice, is_cordoned, 30 },
                     { "the Node drains", NULL, says_drained, 90 },
                     { "the notice is withdrawn", sim_world_withdraw, is_back, 900 } } },
        { .name = "notice-of-pool",
          .title = "A Spot interruption of a Node of a NodePool",
          .options = { POOL_WITH_AGENTS },
          .steps = { { "the notice is given", give_notice, is_removed, 180 } } },
        { .name = "notice-overruled",
          .title = "A person un-cordons a Node in spite of a notice",
          .options = { .n_nodes = 3, .n_agents = 3, .no_pool = true, .n_workloads = 1, .workloads = { { .n_pods = 6, .stop_sec = 3, .grace_sec = 20, .opt_out = 1 } } },
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the notice is given", give_notice, is_cordoned, 30 },
                     { "the Node is un-cordoned", sim_world_admin_uncordon, NULL, 60 },
                     { "the notice is withdrawn", sim_world_withdraw, is_back, 900 } } },
        { .name = "shutdown",
          .title = "A person reboots a machine by systemctl",
          .options = { AGENTS_ALONE },
          .has_power = true,
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the reboot is announced", power_off, is_down, 90 }, { "the machine is back", NULL, is_back, 300 } } },
        { .name = "reboot-slot",
          .title = "A machine reboots in a slot of the coordinator",
          .options = { AGENTS_ALONE, .n_coordinators = 2 },
          .has_power = true,
          .node = SIM_STORY_NODE_STAYS,
          .warm = try_reboot,
          .steps = { { "the slot is asked for", ask_reboot, is_granted, 60 },
                     { "the machine goes down", NULL, is_down, 120 },
                     { "it is back", NULL, is_back, 300 },
                     { "the slot is given back", NULL, asks_for_nothing, 60 } } },
        { .name = "reboot-cancelled",
          .title = "Two machines ask for one slot, and the second changes its mind",
          .options = { AGENTS_ALONE, .n_coordinators = 2 },
          .has_power = true,
          .node = SIM_STORY_NODE_STAYS,
          .warm = try_reboot,
          .steps = { { "the slot is asked for", ask_reboot, is_granted, 60 },
                     { "that is taken back", take_back_reboot, asks_for_nothing, 60 },
                     { "the Node takes pods", NULL, is_back, 60 } } },
        { .name = "repair-replace",
          .title = "A Node is not Ready for too long, and is replaced",
          .options = { POOL, .repair_sec = 120 },
          .rest_sec = 900,
          .steps = { { "the kubelet stops", stop_kubelet, is_removed, 900 } } },
        { .name = "repair-reboot",
          .title = "A Node is ill, and a reboot helps",
          .options = { POOL_WITH_AGENTS, .repair_reboot_sec = 60 },
          .has_power = true,
          .node = SIM_STORY_NODE_STAYS,
          .warm = try_reboot,
          .rest_sec = 900,
          .steps = { { "the Node is ill", fall_ill, is_to_reboot, 300 },
                     { "it goes down", NULL, is_down, 300 },
                     { "the boot helps", be_well, is_back, 400 } } },
        { .name = "repair-in-vain",
          .title = "A Node is ill, and is replaced as a reboot does not help",
          .options = { POOL_WITH_AGENTS, .repair_reboot_sec = 60 },
          .has_power = true,
          .warm = try_reboot,
          .rest_sec = 900,
          .steps = { { "the Node is ill", fall_ill, is_removed, 1800 } } },
        { .name = "queue-spot",
          .title = "The interruption queue announces a Spot interruption",
          .options = { POOL, .queue = 1, .tgp_sec = 60 },
          .steps = { { "the message is sent", announce_spot, is_removed, 180 } } },
        { .name = "queue-change-called-off",
          .title = "The interruption queue announces a scheduled change, and calls it off",
          .options = { POOL, .queue = 1 },
          .node = SIM_STORY_NODE_NEXT,
          .steps = { { "the change is announced", announce_change, is_announced, 30 },
                     { "it is called off", call_off, NULL, 60 } } },
        { .name = "queue-rebalance",
          .title = "The interruption queue recommends a rebalance",
          .options = { POOL, .queue = 1 },
          .node = SIM_STORY_NODE_STAYS,
          .steps = { { "the message is sent", announce_rebalance, NULL, 60 } } },
        { .name = "queue-hook",
          .title = "An Auto Scaling group waits for its lifecycle hook",
          .options = { POOL, .queue = 1, .tgp_sec = 60 },
          .steps = { { "the group scales in", scale_in, is_removed, 240 } } },
        { .name = "queue-unmanaged",
          .title = "The interruption queue announces the end of a machine of no NodePool",
          .options = { .n_nodes = 4, .no_pool = true, .n_coordinators = 2, .queue = 1, PODS },
          .prepare = drain_unmanaged,
          .steps = { { "the message is sent", announce_spot, says_drained, 120 },
                     { "the machine ends", end_machine, NULL, 40 },
                     { "its Node is deleted", sim_world_delete_node, is_gone, 60 } } },
};
const size_t sim_n_stories = ELEMENTSOF(sim_stories);

/* -- playing ----------------------------------------------------------------------------------- */

bool sim_story_run(const SimStory *s, SimWorld *w, usec_t usec) {
        return s->has_power ? sim_power_run(w, usec) : sim_world_run(w, usec);
}

/* Looks once a second: stories do not depend on what happens within one. */
static bool run_until(const SimStory *s, SimWorld *w, unsigned seconds, sim_condition_t until, size_t machine) {
        for (unsigned i = 0; !until(w, machine_arg(machine)); i++)
                if (i == seconds || !sim_story_run(s, w, SEC))
                        return false;
        return true;
}

size_t sim_story_machine(const SimStory *s, unsigned round) {
        return s->node == SIM_STORY_NODE_STAYS ? 0 : round;
}

/* Each agent whose machine is there has read its Node. */
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

bool sim_story_play(const SimStory *s, SimWorld *w, unsigned round, unsigned patience, const char **ret_where) {
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
        }
        *ret_where = "the round has ended";
        return sim_story_run(s, w, MIN((s->rest_sec > 0 ? s->rest_sec : REST_SEC) * patience, REST_MAX_SEC) * SEC);
}

/* All pods start anew, so that each node has as many as before the first round. */
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
