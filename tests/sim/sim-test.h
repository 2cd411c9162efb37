/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the scenarios share: conditions to wait for, and asserts that show seed, cause and trace. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim-check.h"
#include "sim-process.h"
#include "sim-world.h"

#define SEC USEC_PER_SEC

#define require(w, condition) \
        do { \
                if (!(condition)) { \
                        sim_world_report((w), #condition); \
                        fail(); \
                } \
        } while (0)
/* Within so many seconds. */
#define require_within(w, seconds, condition, machine) \
        require(w, sim_world_run_until(w, (seconds) *SEC, condition, machine_arg(machine)))
#define require_runs(w, usec) require(w, sim_world_run(w, usec))

static inline void *machine_arg(size_t machine) {
        return (void *) (uintptr_t) machine;
}

#define CONDITION(name, expression) \
        static inline bool name(SimWorld *w, void *userdata) { \
                size_t m _unused_ = (size_t) (uintptr_t) userdata; \
                return expression; \
        }

/* Of the machine. */
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
/* Of all. */
CONDITION(somebody_leads, sim_world_leader(w))
CONDITION(pods_are_back, sim_world_pods_ready(w) == w->options.n_pods)
CONDITION(all_adopted, sim_world_all(w, is_adopted))
CONDITION(all_agents_ready, sim_world_all_agents(w, agent_is_ready))

/* A world in which everybody knows everything. */
static inline SimWorld *settled_world(uint64_t seed, const SimOptions *o) {
        SimWorld *w = sim_world_new(seed, o);

        require_within(w, 10, pods_are_back, 0);
        require_within(w, 30, all_agents_ready, 0);
        if (o->n_coordinators > 0)
                require_within(w, 60, all_adopted, 0);
        require_runs(w, 3 * SEC);
        return w;
}

/* What a person would call an honest number: watches and Leases by the minute, and a few writes for each
 * pod. */
static inline uint64_t requests_allowed(const SimWorld *w) {
        usec_t minutes = (sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE + 1;

        return 400 + minutes * 150 + 12 * w->options.n_pods;
}
#define require_quiet(w) require(w, sim_check_quiet((w)->check, requests_allowed(w)))
