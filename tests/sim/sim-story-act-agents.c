/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-story-acts.h"

#include <limits.h>

#include "fake-azure-metadata.h"
#include "sim-check.h"
#include "sim-events.h"
#include "sim-load.h"
#include "sim-power.h"

/* Acts of stories in which an agent has a policy of its own, or its machine is Azure's. */


/* -- notices ------------------------------------------------------------------------------------ */

/* Moves the event that the agent has written on its Node. */
static void move_event(SimWorld *w, size_t m, usec_t in_usec) {
        cJSON *said = cJSON_Parse(sim_world_annotation(w, m, "vesper.sh/interruption"));

        sim_events_schedule(w, m, fj_string(said, "id", NULL), "instance-stop", sim_world_wall(w) + in_usec);
        cJSON_Delete(said);
}
void act_bring_event_near(SimWorld *w, size_t m) {
        move_event(w, m, 20 * USEC_PER_MINUTE);
}
void act_bring_event_nearer(SimWorld *w, size_t m) {
        move_event(w, m, 4 * USEC_PER_MINUTE);
}
void act_complete_event(SimWorld *w, size_t m) {
        sim_events_complete(w, m);
}
void act_stop_kubelet_for_a_while(SimWorld *w, size_t m) {
        sim_check_trouble(w->check, 4 * USEC_PER_MINUTE);
        sim_load_stop_kubelet(w, m, 4 * USEC_PER_MINUTE);
}
void act_kill_agent_for_a_while(SimWorld *w, size_t m) {
        sim_process_kill(w->machines[m].agent, 45 * SEC);
}
void act_silence_bus(SimWorld *w, size_t m) {
        sim_power_set_bus(w, m, false);
}
void act_mend_bus(SimWorld *w, size_t m) {
        sim_power_set_bus(w, m, true);
}
/* Nobody reaches the API server for 25 seconds. */
void act_take_api_away(SimWorld *w, size_t m) {
        sim_check_trouble(w->check, 75 * SEC);
        fake_api_away_until(fake_cluster_api(w->cluster), sim_world_now(w) + 25 * SEC);
}
void act_cancel_shutdown(SimWorld *w, size_t m) {
        (void) sim_power_cancel(w, m);
}
void act_set_clock_ahead(SimWorld *w, size_t m) {
        sim_process_set_clock(w->machines[m].agent, 7 * (int64_t) SEC);
}
void act_set_clock_right(SimWorld *w, size_t m) {
        sim_process_set_clock(w->machines[m].agent, 0);
}

/* -- pods and Nodes ----------------------------------------------------------------------------- */

/* Adds two pods without a controller. */
void act_add_bare_pods(SimWorld *w, size_t m) {
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *name = MUST(strf("web-%u", 90 + i));

                fake_add_pod(w->cluster, &(FakePod){ .name = name, .node = w->machines[m].node, .app = "bare", .stop_sec = 3 });
        }
}
void act_bind_late_pod(SimWorld *w, size_t m) {
        sim_world_bind_late_pod(w, m, "web-99", true);
}
void act_remove_late_pod(SimWorld *w, size_t m) {
        if (fake_get(w->cluster, FAKE_PODS, "default", "web-99"))
                fake_delete(w->cluster, FAKE_PODS, "default", "web-99", 0);
}
static void set_volumes(SimWorld *w, size_t m, const char *volumes) {
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node, "{'status':{'volumesInUse':%s}}", volumes);
}
void act_use_volumes(SimWorld *w, size_t m) {
        set_volumes(w, m, "['csi/disk-1','csi/disk-2']");
}
void act_free_volume(SimWorld *w, size_t m) {
        set_volumes(w, m, "['csi/disk-2']");
}
void act_free_volumes(SimWorld *w, size_t m) {
        set_volumes(w, m, "null");
}
void act_remove_interruption(SimWorld *w, size_t m) {
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node, "{'metadata':{'annotations':{'vesper.sh/interruption':null}}}");
}
void act_remove_node(SimWorld *w, size_t m) {
        fake_remove(w->cluster, FAKE_NODES, NULL, w->machines[m].node);
}
/* Makes the Node that the kubelet registers after the Node was removed. */
void act_register_node(SimWorld *w, size_t m) {
        fake_add_node(w->cluster, w->machines[m].node, SIM_ZONE, w->machines[m].instance, NULL);
        fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[m].node, "{'status':{'nodeInfo':{'bootID':'%s'}}}", w->machines[m].boot_id);
}

/* -- what [Policy] says ------------------------------------------------------------------------- */

static void set_agents(SimWorld *w, const char *policy) {
        for (size_t i = 0; i < w->options.n_agents; i++) {
                AgentConfig *c = &w->machines[i].agent->agent_config;

                sim_process_set_text(&c->policy[NOTICE_MAINTENANCE], policy);
                sim_process_set_text(&c->policy[NOTICE_CAPACITY_BLOCK], policy);
                fake_imds_set_text(w->machines[i].imds, FAKE_IMDS_LIFECYCLE, "InService");
                sim_process_kill(w->machines[i].agent, SEC);
        }
}

void act_let_agents_wait(SimWorld *w) {
        set_agents(w, "before:2min");
}
/* Load balancers get so long that an event can come nearer meanwhile. */
void act_let_agents_drain(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++)
                w->machines[i].agent->agent_config.lb_wait_usec = 5 * USEC_PER_MINUTE;
        set_agents(w, "now");
}
void act_run_dry(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++) {
                w->machines[i].agent->agent_config.dry_run = true;
                sim_process_kill(w->machines[i].agent, SEC);
        }
}
void act_let_agents_cordon(SimWorld *w) {
        set_agents(w, "cordon");
}
void act_let_agents_cordon_for_a_while(SimWorld *w) {
        set_agents(w, "cordon:90s");
}

/* Lets agents take reboots early, by a cloud that does not reboot a machine which it is told to reboot. */
void act_take_reboots_in_vain(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++) {
                sim_events_take_early(w, i);
                w->machines[i].agent->agent_config.reboot_patience_usec = 5 * USEC_PER_MINUTE;
        }
}

/* The same of Nodes of a NodePool whose coordinator does not run. */
void act_take_reboots_without_coordinator(SimWorld *w) {
        act_take_reboots_in_vain(w);
        for (size_t i = 0; i < w->options.n_agents; i++)
                fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[i].node,
                           "{'metadata':{'finalizers':['vesper.sh/termination'],'labels':{'vesper.sh/nodepool':'" SIM_POOL "'}}}");
}

/* Reboots the machine as the cloud does, which ends the event. */
static void on_cloud_reboots(const char *instance, void *userdata) {
        SimWorld *w = userdata;

        for (size_t i = 0; i < w->n_machines; i++)
                if (streq(w->machines[i].instance, instance)) {
                        (void) sim_power_shutdown(w, i, "reboot", true);
                        sim_events_complete(w, i);
                }
}

static void set_reboots_early(SimWorld *w) {
        for (size_t i = 0; i < w->options.n_agents; i++)
                sim_process_set_text(&w->machines[i].agent->agent_config.policy_reboot, "early");
}

void act_take_reboots_early(SimWorld *w) {
        set_reboots_early(w);
        fake_ec2_on_reboot(w->ec2, on_cloud_reboots, w);
}

/* -- Azure -------------------------------------------------------------------------------------- */

/* Reboots each machine that the approved event names. */
static void on_approved(const char *id, const char *const *resources, size_t n, void *userdata) {
        SimWorld *w = userdata;

        for (size_t i = 0; i < w->options.n_agents; i++) {
                _cleanup_free_ char *vm = sim_events_vm(i);

                for (size_t k = 0; k < n; k++)
                        if (streq(resources[k], vm))
                                (void) sim_power_shutdown(w, i, "reboot", true);
        }
}

/* Events that name one machine are acknowledged, and none else. */
void act_move_to_azure(SimWorld *w) {
        sim_events_move_to_azure(w, w->options.n_agents, ACKNOWLEDGE_ALL);
        act_let_agents_wait(w);
}
static void use_azure(SimWorld *w, Acknowledge acknowledge) {
        sim_events_move_to_azure(w, w->options.n_agents, acknowledge);
        fake_azure_events_on_approve(w->azure, on_approved, w);
        set_agents(w, "before:1h");
}
void act_use_azure(SimWorld *w) {
        use_azure(w, ACKNOWLEDGE_ALONE);
}
void act_use_azure_early(SimWorld *w) {
        act_use_azure(w);
        set_reboots_early(w);
}
void act_use_azure_for_several(SimWorld *w) {
        use_azure(w, ACKNOWLEDGE_ALL);
}

static void announce(SimWorld *w, size_t m, const char *type, const char *resources, usec_t lead_usec) {
        fake_azure_events_add(w->azure, &(FakeAzureEvent){ .type = type, .resources = resources, .lead_usec = lead_usec, .lasts_usec = 10 * SEC });
        w->machines[m].has_event = true;
}
void act_announce_redeploy(SimWorld *w, size_t m) {
        _cleanup_free_ char *vm = sim_events_vm(m);

        announce(w, m, "Redeploy", vm, 15 * USEC_PER_MINUTE);
}
void act_announce_azure_reboot(SimWorld *w, size_t m) {
        _cleanup_free_ char *vm = sim_events_vm(m);

        announce(w, m, "Reboot", vm, 30 * USEC_PER_HOUR);
}
void act_announce_redeploy_of_two(SimWorld *w, size_t m) {
        size_t other = (m + 1) % w->options.n_agents;
        _cleanup_free_ char *a = sim_events_vm(m), *b = sim_events_vm(other), *both = MUST(strf("%s,%s", a, b));

        w->machines[other].has_event = true;
        announce(w, m, "Redeploy", both, 40 * USEC_PER_MINUTE);
}
void act_fail_azure(SimWorld *w, size_t m) {
        fake_azure_metadata_fail(w->machines[m].azure, FAKE_AZURE_EVENTS, UINT_MAX, 500);
}
void act_mend_azure(SimWorld *w, size_t m) {
        fake_azure_metadata_fail(w->machines[m].azure, FAKE_AZURE_EVENTS, 0, 500);
}
