/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-story-acts.h"

#include <inttypes.h>
#include <limits.h>

#include "coordinator-config.h"
#include "sim-check.h"
#include "sim-events.h"
#include "sim-load.h"
#include "sim-power.h"
#include "sim-queue.h"
#include "sim-reboots.h"
#include "sim-webhook.h"
#include "strv.h"

void act_give_notice(SimWorld *w, size_t m) {
        sim_world_notice(w, m, 120);
}
void act_end_machine(SimWorld *w, size_t m) {
        sim_load_take(w, m, 0);
}
void act_delete_claim(SimWorld *w, size_t m) {
        sim_load_delete_claim(w, m);
}
void act_fall_ill(SimWorld *w, size_t m) {
        sim_world_set_ill(w, m, true);
}
void act_be_well(SimWorld *w, size_t m) {
        sim_world_set_ill(w, m, false);
}
void act_stop_kubelet(SimWorld *w, size_t m) {
        sim_load_stop_kubelet(w, m, USEC_INFINITY);
}
void act_ask_reboot(SimWorld *w, size_t m) {
        (void) sim_reboots_ask(w, m, "RequestReboot");
}
void act_take_back_reboot(SimWorld *w, size_t m) {
        (void) sim_reboots_ask(w, m, "CancelReboot");
}
void act_power_off(SimWorld *w, size_t m) {
        (void) sim_power_shutdown(w, m, "reboot", true);
}
void act_pause_removals(SimWorld *w, size_t m) {
        sim_load_pause(w, true, true);
}
void act_resume_removals(SimWorld *w, size_t m) {
        sim_load_pause(w, true, false);
}
void act_unmanage(SimWorld *w, size_t m) {
        sim_load_unmanage(w, m, true);
}
void act_manage(SimWorld *w, size_t m) {
        sim_load_unmanage(w, m, false);
}
static void set_pool(SimWorld *w, size_t m, const char *pool) {
        w->machines[m].unmanaged_usec = sim_world_now(w);
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node, "{'metadata':{'labels':{'vesper.sh/pool':%s}}}", pool);
}
void act_leave_pool(SimWorld *w, size_t m) {
        set_pool(w, m, "null");
}
void act_join_pool(SimWorld *w, size_t m) {
        set_pool(w, m, "'" SIM_POOL "'");
}
void act_force(SimWorld *w, size_t m) {
        sim_load_force(w, m, 30);
}
void act_block_pods(SimWorld *w, size_t m) {
        sim_world_set_pdb_min(w, w->options.n_pods);
}
void act_free_pods(SimWorld *w, size_t m) {
        sim_world_set_pdb_min(w, w->options.pdb_min);
}
void act_tear_node(SimWorld *w, size_t m) {
        sim_load_tear_node(w, m);
}
void act_switch_off(SimWorld *w, size_t m) {
        sim_load_switch_off(w, m, 6 * USEC_PER_MINUTE);
}
void act_ask_webhook(SimWorld *w, size_t m) {
        sim_webhook_delete(w->webhook, m, false);
}
void act_hold_budget(SimWorld *w, size_t m) {
        sim_webhook_ask(w->webhook, (m + 1) % w->options.n_agents);
}

void act_kill_agent(SimWorld *w, size_t m) {
        sim_process_kill(w->machines[m].agent, SEC);
}
void act_kill_leader(SimWorld *w, size_t m) {
        sim_process_kill(sim_world_leader(w), USEC_PER_MINUTE);
}
void act_drain_by_hand(SimWorld *w, size_t m) {
        w->machines[m].has_event = true;
        sim_check_taken_back(w->check, &w->machines[m]); /* an earlier notice of this boot */
        (void) fake_power_call_unit(sim_power_machine(w, m), "Drain");
}
void act_cancel_drain(SimWorld *w, size_t m) {
        (void) fake_power_call_unit(sim_power_machine(w, m), "CancelDrain");
}
void act_reboot(SimWorld *w, size_t m) {
        sim_world_reboot(w, m, 30 * SEC);
}
void act_let_go_of_pods(SimWorld *w, size_t m) {
        sim_load_unprotect_pods(w);
}
void act_stop_next_kubelet(SimWorld *w, size_t m) {
        sim_load_stop_kubelet(w, (m + 1) % w->options.n_agents, 3 * USEC_PER_MINUTE);
}

/* Notes that all Nodes have left, or have joined, the NodePool. */
static void note_pool_changes(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                w->machines[i].unmanaged_usec = sim_world_now(w);
}
void act_delete_pool(SimWorld *w, size_t m) {
        sim_load_pause(w, false, true);
        note_pool_changes(w);
        fake_delete(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL, -1);
}
void act_make_pool(SimWorld *w, size_t m) {
        w->paused_usec[false] = 0;
        note_pool_changes(w);
        fake_add_nodepool(w->cluster, SIM_POOL, NULL, "ec2");
}
void act_make_rival(SimWorld *w, size_t m) {
        sim_load_add_rival(w, m);
}
void act_delete_rival(SimWorld *w, size_t m) {
        sim_load_delete_rival(w, m);
}
void act_schedule_shutdown(SimWorld *w, size_t m) {
        fake_power_schedule(sim_power_machine(w, m), "reboot", sim_world_wall(w) + USEC_PER_HOUR);
}
void act_unschedule_shutdown(SimWorld *w, size_t m) {
        fake_power_schedule(sim_power_machine(w, m), NULL, 0);
}
void act_set_disruption(SimWorld *w, size_t m) {
        fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                   "{'spec':{'template':{'labels':{'drifted':'yes'}},'disruption':{'emptyAfter':'1s','expireAfter':'10s',"
                   "'drift':'Auto','budgets':[]}}}");
}
void act_set_empty_after(SimWorld *w, size_t m) {
        fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL,
                   "{'spec':{'disruption':{'emptyAfter':'45s','budgets':[]}}}");
}
/* Deletes the pods of the node. The node takes no other pods meanwhile. */
void act_empty(SimWorld *w, size_t m) {
        const cJSON *pod;
        _cleanup_strv_free_ char **names = NULL;

        sim_world_admin_cordon(w, m);
        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default") {
                int r = streq_ptr(fj_string(pod, "spec", "nodeName", NULL), w->machines[m].node)
                                ? strv_extend(&names, fj_string(pod, "metadata", "name", NULL))
                                : 0;

                assert(r >= 0);
        }
        STRV_FOREACH(name, names)
                fake_delete(w->cluster, FAKE_PODS, "default", *name, 0);
}
void act_label_terminable(SimWorld *w, size_t m) {
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node,
                   "{'metadata':{'labels':{'karpenter.sh/lifecycle-phase':'terminable'}}}");
}
void act_add_bare_pod(SimWorld *w, size_t m) {
        fake_add_pod(w->cluster,
                     &(FakePod){ .name = "bare", .node = w->machines[m].node, .grace_sec = 20, .stop_sec = 5 });
}
void act_unset_disruption(SimWorld *w, size_t m) {
        fake_merge(w->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL, "{'spec':{'template':null,'disruption':null}}");
}

/* -- notices that agents read ------------------------------------------------------------------ */

#define MAINTENANCE_SEC 240u
#define EARLY_USEC (30 * USEC_PER_HOUR)
/* Lead time of a notice for a Capacity Block. Agents ask for the block's end every five minutes, so two
 * answers may fail. */
#define BLOCK_SEC 900u
/* EC2 begins to end the instances this long before the block ends */
#define BLOCK_LEAD_USEC (30 * USEC_PER_MINUTE)
#define BLOCK "tags/instance/vesper.sh:capacity-block-end"

/* Schedules an event with an id of its own in each round. */
static void schedule(SimWorld *w, size_t m, const char *code, usec_t in_usec) {
        _cleanup_free_ char *id = MUST(strf("instance-event-%016" PRIx64, sim_world_now(w)));

        sim_events_schedule(w, m, id, code, sim_world_wall(w) + in_usec);
}
void act_schedule_maintenance(SimWorld *w, size_t m) {
        schedule(w, m, "system-maintenance", MAINTENANCE_SEC * SEC);
}
void act_schedule_stop(SimWorld *w, size_t m) {
        schedule(w, m, "instance-stop", USEC_PER_HOUR);
}
void act_schedule_reboot(SimWorld *w, size_t m) {
        fake_ec2_set_reboot_migration(w->ec2, w->machines[m].instance, true);
        schedule(w, m, "system-reboot", EARLY_USEC);
}
void act_reboot_for_event(SimWorld *w, size_t m) {
        sim_world_reboot(w, m, 30 * SEC);
        sim_events_complete(w, m);
}
static void set_metadata_time(SimWorld *w, size_t m, const char *path, const char *before, usec_t at_usec, const char *after) {
        _cleanup_free_ char *text = NULL;
        char when[RFC3339_MAX];

        rfc3339_format(at_usec, when);
        text = MUST(strf("%s%s%s", before, when, after));
        w->machines[m].has_event = true;
        fake_imds_set_text(w->machines[m].imds, path, text);
}
void act_end_block(SimWorld *w, size_t m) {
        set_metadata_time(w, m, BLOCK, "", sim_world_wall(w) + BLOCK_LEAD_USEC + BLOCK_SEC * SEC, "");
}
void act_recommend_rebalance(SimWorld *w, size_t m) {
        set_metadata_time(w, m, FAKE_IMDS_REBALANCE, "{\"noticeTime\":\"", sim_world_wall(w), "\"}");
}
void act_garble_notices(SimWorld *w, size_t m) {
        fake_imds_set_action_text(w->machines[m].imds, "{\"action\": \"terminate\"}");
}
void act_garble_metadata(SimWorld *w, size_t m) {
        fake_imds_garble(w->machines[m].imds, FAKE_IMDS_ALL, UINT_MAX, "<html>");
}
void act_repair_metadata(SimWorld *w, size_t m) {
        fake_imds_garble(w->machines[m].imds, FAKE_IMDS_ALL, 0, NULL);
}
void act_schedule_in_azure(SimWorld *w, size_t m) {
        _cleanup_free_ char *id = MUST(strf("azure-event-%016" PRIx64, sim_world_now(w))), *vm = sim_events_vm(m);

        w->machines[m].has_event = true;
        (void) fake_azure_events_add(w->azure, &(FakeAzureEvent){ .id = id, .type = "Reboot", .resources = vm, .duration_sec = -1,
                                                                  .lead_usec = MAINTENANCE_SEC * SEC });
}
void act_reboot_in_azure(SimWorld *w, size_t m) {
        sim_world_reboot(w, m, 30 * SEC);
        fake_azure_events_clear(w->azure);
}
void act_let_group_end(SimWorld *w, size_t m) {
        w->machines[m].has_event = true;
        fake_imds_set_text(w->machines[m].imds, FAKE_IMDS_LIFECYCLE, "Terminated");
}

/* -- the interruption queue -------------------------------------------------------------------- */

/* Announces a change through the queue, with an id of its own in each round. */
static void announce(SimWorld *w, size_t m, FakeAwsEventKind kind, usec_t in_usec) {
        _cleanup_free_ char *change = MUST(strf("%016" PRIx64, sim_world_now(w)));

        sim_queue_send(w->queue,
                       &(FakeAwsEvent){ .kind = kind,
                                        .instance = w->machines[m].instance,
                                        .communication = change,
                                        .until_wall_usec = sim_world_wall(w) + in_usec },
                       false);
}
void act_announce_spot(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_SPOT, 0);
}
void act_announce_change(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_HEALTH, 5 * USEC_PER_HOUR);
}
void act_announce_rebalance(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_REBALANCE, 0);
}
/* Announces a change after which the machine comes back. */
void act_announce_reboot(SimWorld *w, size_t m) {
        _cleanup_free_ char *change = MUST(strf("%016" PRIx64, sim_world_now(w)));

        sim_queue_send(w->queue,
                       &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH,
                                        .instance = w->machines[m].instance,
                                        .action = "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED",
                                        .communication = change,
                                        .until_wall_usec = sim_world_wall(w) + MAINTENANCE_SEC * SEC },
                       false);
}
/* Sets [Interruption] Delete= of all coordinators, which then start anew. */
static void set_delete(SimWorld *w, InterruptionDelete delete) {
        for (unsigned i = 0; i < w->options.n_coordinators; i++) {
                SimProcess *p = sim_world_coordinator(w, i);

                p->coordinator_config.interruption_delete = delete;
                if (p->life)
                        sim_process_kill(p, SEC);
        }
}
void act_set_delete_never(SimWorld *w, size_t m) {
        set_delete(w, INTERRUPTION_DELETE_NEVER);
}
void act_set_delete_back(SimWorld *w, size_t m) {
        set_delete(w, INTERRUPTION_DELETE_TERMINATE);
}
void act_repeat_message(SimWorld *w, size_t m) {
        announce(w, m, FAKE_AWS_EVENT_SPOT, 0);
        sim_queue_repeat(w->queue);
}
void act_stop_by_state(SimWorld *w, size_t m) {
        sim_queue_send(w->queue, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_STATE, .instance = w->machines[m].instance, .action = "stopping" }, false);
}
void act_scale_in_by_sns(SimWorld *w, size_t m) {
        (void) sim_queue_scale_in(w->queue, m, FAKE_AWS_EVENT_HOOK, true);
}
void act_call_off(SimWorld *w, size_t m) {
        sim_queue_call_off(w->queue);
}
void act_send_rubbish(SimWorld *w, size_t m) {
        sim_queue_send_text(w->queue, "{\"version\":\"0\",\"source\":\"aws.ec2\"");
}
void act_scale_in(SimWorld *w, size_t m) {
        (void) sim_queue_scale_in(w->queue, m, FAKE_AWS_EVENT_TERMINATE_ACTION, false);
}

/* -- worlds ------------------------------------------------------------------------------------ */

/* Has a node ask for a reboot slot and withdraw the request, so that the leader makes its list of all Nodes,
 * which comes once before its first grant. */
void act_try_reboot(SimWorld *w) {
        size_t last = w->options.n_agents - 1;

        act_ask_reboot(w, last);
        (void) sim_power_run(w, SEC);
        act_take_back_reboot(w, last);
}

void act_drain_unmanaged(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_coordinators; i++)
                sim_world_coordinator(w, i)->coordinator_config.queue_unmanaged = QUEUE_UNMANAGED_DRAIN;
        sim_queue_drain_unmanaged(w->queue);
}
