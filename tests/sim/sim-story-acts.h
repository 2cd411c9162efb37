/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The acts and conditions of which stories are made (sim-stories.c). An act is done to the machine of the
 * round. */

#include "sim-conditions.h"
#include "loop.h"

/* -- acts -------------------------------------------------------------------------------------- */

void act_give_notice(SimWorld *w, size_t m);
void act_end_machine(SimWorld *w, size_t m);
void act_delete_claim(SimWorld *w, size_t m);
void act_fall_ill(SimWorld *w, size_t m);
void act_be_well(SimWorld *w, size_t m);
void act_stop_kubelet(SimWorld *w, size_t m);
void act_ask_reboot(SimWorld *w, size_t m);
void act_take_back_reboot(SimWorld *w, size_t m);
void act_power_off(SimWorld *w, size_t m);
void act_pause_removals(SimWorld *w, size_t m);
void act_resume_removals(SimWorld *w, size_t m);
void act_unmanage(SimWorld *w, size_t m);
void act_manage(SimWorld *w, size_t m);
void act_leave_pool(SimWorld *w, size_t m);
void act_join_pool(SimWorld *w, size_t m);
void act_force(SimWorld *w, size_t m);
void act_block_pods(SimWorld *w, size_t m);
void act_free_pods(SimWorld *w, size_t m);
void act_tear_node(SimWorld *w, size_t m);
void act_switch_off(SimWorld *w, size_t m);
void act_ask_webhook(SimWorld *w, size_t m);
void act_hold_budget(SimWorld *w, size_t m);
void act_schedule_maintenance(SimWorld *w, size_t m);
void act_schedule_reboot(SimWorld *w, size_t m);
void act_reboot_for_event(SimWorld *w, size_t m);
void act_end_block(SimWorld *w, size_t m);
void act_recommend_rebalance(SimWorld *w, size_t m);
void act_garble_notices(SimWorld *w, size_t m);
void act_garble_metadata(SimWorld *w, size_t m);
void act_repair_metadata(SimWorld *w, size_t m);
void act_schedule_in_azure(SimWorld *w, size_t m);
void act_reboot_in_azure(SimWorld *w, size_t m);
void act_let_group_end(SimWorld *w, size_t m);
void act_kill_agent(SimWorld *w, size_t m);
void act_kill_leader(SimWorld *w, size_t m);
void act_drain_by_hand(SimWorld *w, size_t m);
void act_cancel_drain(SimWorld *w, size_t m);
void act_reboot(SimWorld *w, size_t m);
void act_let_go_of_pods(SimWorld *w, size_t m);
void act_stop_next_kubelet(SimWorld *w, size_t m);
void act_delete_pool(SimWorld *w, size_t m);
void act_make_pool(SimWorld *w, size_t m);
void act_make_rival(SimWorld *w, size_t m);
void act_delete_rival(SimWorld *w, size_t m);
void act_schedule_shutdown(SimWorld *w, size_t m);
void act_unschedule_shutdown(SimWorld *w, size_t m);
void act_set_disruption(SimWorld *w, size_t m);
void act_unset_disruption(SimWorld *w, size_t m);
void act_announce_reboot(SimWorld *w, size_t m);
void act_repeat_message(SimWorld *w, size_t m);
void act_stop_by_state(SimWorld *w, size_t m);
void act_scale_in_by_sns(SimWorld *w, size_t m);
void act_announce_spot(SimWorld *w, size_t m);
void act_announce_change(SimWorld *w, size_t m);
void act_announce_rebalance(SimWorld *w, size_t m);
void act_call_off(SimWorld *w, size_t m);
void act_set_delete_never(SimWorld *w, size_t m);
void act_set_delete_back(SimWorld *w, size_t m);
void act_label_terminable(SimWorld *w, size_t m);
void act_add_bare_pod(SimWorld *w, size_t m);
void act_set_empty_after(SimWorld *w, size_t m);
void act_empty(SimWorld *w, size_t m);
void act_scale_in(SimWorld *w, size_t m);
void act_send_rubbish(SimWorld *w, size_t m);
void act_schedule_stop(SimWorld *w, size_t m);
void act_bring_event_near(SimWorld *w, size_t m);
void act_bring_event_nearer(SimWorld *w, size_t m);
void act_kill_agent_for_a_while(SimWorld *w, size_t m);
void act_silence_bus(SimWorld *w, size_t m);
void act_mend_bus(SimWorld *w, size_t m);
void act_take_api_away(SimWorld *w, size_t m);
void act_use_volumes(SimWorld *w, size_t m);
void act_free_volume(SimWorld *w, size_t m);
void act_free_volumes(SimWorld *w, size_t m);
void act_remove_interruption(SimWorld *w, size_t m);
void act_fail_azure(SimWorld *w, size_t m);
void act_mend_azure(SimWorld *w, size_t m);
void act_complete_event(SimWorld *w, size_t m);
void act_stop_kubelet_for_a_while(SimWorld *w, size_t m);
void act_cancel_shutdown(SimWorld *w, size_t m);
void act_set_clock_ahead(SimWorld *w, size_t m);
void act_set_clock_right(SimWorld *w, size_t m);
void act_add_bare_pods(SimWorld *w, size_t m);
void act_bind_late_pod(SimWorld *w, size_t m);
void act_remove_late_pod(SimWorld *w, size_t m);
void act_remove_node(SimWorld *w, size_t m);
void act_register_node(SimWorld *w, size_t m);
void act_announce_redeploy(SimWorld *w, size_t m);
void act_announce_azure_reboot(SimWorld *w, size_t m);
void act_announce_redeploy_of_two(SimWorld *w, size_t m);

/* Acts on the whole world, for SimStory.prepare and SimStory.warm. */
void act_try_reboot(SimWorld *w);
void act_drain_unmanaged(SimWorld *w);
void act_let_agents_wait(SimWorld *w);
void act_move_to_azure(SimWorld *w);
void act_let_agents_drain(SimWorld *w);
void act_run_dry(SimWorld *w);
void act_let_agents_cordon(SimWorld *w);
void act_let_agents_cordon_for_a_while(SimWorld *w);
void act_take_reboots_early(SimWorld *w);
void act_take_reboots_in_vain(SimWorld *w);
void act_take_reboots_without_coordinator(SimWorld *w);
void act_use_azure(SimWorld *w);
void act_use_azure_early(SimWorld *w);
void act_use_azure_for_several(SimWorld *w);

/* -- conditions -------------------------------------------------------------------------------- */

static inline bool is_off(const SimWorld *w, size_t m) {
        return timer_is_armed(w->machines[m].boot);
}

CONDITION(is_back, sim_world_condition(w, m, "Ready", "True") && is_open(w, userdata) && pods_are_back(w, NULL) &&
                           !sim_world_annotation(w, m, "vesper.sh/interruption"))
CONDITION(is_removed, is_gone(w, userdata) && claim_is_released(w, userdata) && is_ended(w, userdata) && pods_are_back(w, NULL))
CONDITION(is_blocked, sim_world_condition(w, m, "DrainInProgress", "True") && sim_world_pods_on(w, m) > 0)
CONDITION(is_granted, sim_world_annotation(w, m, "vesper.sh/shutdown-granted"))
CONDITION(is_down, is_off(w, m) || !sim_world_condition(w, m, "Ready", "True"))
/* The agent has drained the node for an event that EC2 has scheduled. */
CONDITION(says_event, strstr(strempty(sim_world_annotation(w, m, "vesper.sh/interruption")), "instance-event-"))
CONDITION(asks_for_slot, sim_world_annotation(w, m, "vesper.sh/shutdown-request"))
CONDITION(asks_for_nothing,
          !sim_world_annotation(w, m, "vesper.sh/shutdown-request") && !sim_world_annotation(w, m, "vesper.sh/shutdown-granted"))
CONDITION(is_to_reboot, sim_world_annotation(w, m, "vesper.sh/reboot-for-repair"))
CONDITION(is_let_go, !fj_array_has(fj_get(sim_world_node(w, m), "metadata", "finalizers", NULL), "vesper.sh/termination") &&
                             claim_is_released(w, userdata))
CONDITION(is_announced, fj_get(sim_world_claim(w, m), "metadata", "annotations", "vesper.sh/announced", NULL))
CONDITION(is_out_of_service,
          fj_find(fj_get(sim_world_node(w, m), "spec", "taints", NULL), "key", "node.kubernetes.io/out-of-service"))
CONDITION(is_kept_closed, is_cordoned(w, userdata) && !sim_world_annotation(w, m, "vesper.sh/interruption"))
CONDITION(is_pool_gone, !fake_get(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL) && sim_world_all(w, is_let_go))
