/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Conditions that scenarios and stories wait for. Conditions of one machine get its index by
 * machine_arg(). */

#include "sim-process.h"
#include "sim-world.h"

#define SEC USEC_PER_SEC

static inline void *machine_arg(size_t machine) {
        return (void *) (uintptr_t) machine;
}

/* Returns the number of pods of the ReplicaSet, or of all workloads. */
static inline size_t pods_wanted(const SimWorld *w) {
        size_t n = w->options.n_pods;

        for (size_t i = 0; i < w->options.n_workloads; i++)
                n += w->options.workloads[i].n_pods;
        return n;
}

#define CONDITION(name, expression) \
        static inline bool name(SimWorld *w, void *userdata) { \
                size_t m _unused_ = (size_t) (uintptr_t) userdata; \
                return expression; \
        }

/* Conditions of one machine. */
CONDITION(is_cordoned, sim_world_unschedulable(w, m))
CONDITION(is_open, !sim_world_unschedulable(w, m))
CONDITION(is_tainted,
          fj_find(fj_get(sim_world_node(w, m), "spec", "taints", NULL), "key", "vesper.sh/disrupted"))
CONDITION(is_empty, sim_world_pods_on(w, m) == 0)
CONDITION(says_drained, sim_world_condition(w, m, "Drained", "True"))
CONDITION(is_ended, !sim_world_instance_alive(w, m))
CONDITION(is_gone, !sim_world_node(w, m))
CONDITION(is_adopted, sim_world_node(w, m) && sim_world_claim(w, m) &&
                              fj_array_has(fj_get(sim_world_node(w, m), "metadata", "finalizers", NULL),
                                           "vesper.sh/termination"))
CONDITION(is_being_deleted, fj_get(sim_world_node(w, m), "metadata", "deletionTimestamp", NULL))
CONDITION(claim_is_released, !sim_world_claim(w, m))
CONDITION(a_pod_is_going, sim_world_pods_going(w, m) > 0)
CONDITION(agent_is_ready, sim_world_agent(w, m)->life &&sim_world_agent(w, m)->life->ready)
/* Conditions of the whole world. */
CONDITION(somebody_leads, sim_world_leader(w))
CONDITION(pods_are_back, sim_world_pods_ready(w) == pods_wanted(w))
CONDITION(all_adopted, sim_world_all(w, is_adopted))
CONDITION(all_agents_ready, sim_world_all_agents(w, agent_is_ready))
