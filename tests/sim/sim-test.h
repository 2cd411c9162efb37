/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asserts that print seed, cause and trace, and the worlds in which the scenarios begin. */

#include "cmocka-test.h"
#include "fake-controllers.h"
#include "sim-check.h"
#include "sim-conditions.h"

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

/* Options of a world of three nodes with agents, a PDB over all pods, and two replicas. */
#define THREE_NODES \
        .n_nodes = 3, .n_pods = 9, .pdb_min = 8, .stop_sec = 2, .grace_sec = 20, .tgp_sec = 600, \
        .n_agents = 3, .n_coordinators = 2

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

/* Two ReplicaSets of two, of which a PDB each lets one go at a time. */
#define CROSSING \
        .workloads = { { .n_pods = 2, .stop_sec = 3, .grace_sec = 20, .budgets = { { SIM_BUDGET_MAX, 1 } } }, \
                       { .n_pods = 2, .stop_sec = 3, .grace_sec = 20, .budgets = { { SIM_BUDGET_MAX, 1 } } } }, \
        .n_workloads = 2

static inline size_t crossing_pods_on(SimWorld *w, const char *workload, size_t machine) {
        const cJSON *pod;
        size_t n = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default")
                n += streq_ptr(fj_string(pod, "metadata", "labels", "app", NULL), workload) &&
                     fake_condition_is(pod, "Ready", "True") &&
                     streq_ptr(fj_string(pod, "spec", "nodeName", NULL), w->machines[machine].node);
        return n;
}

CONDITION(crossing_pods_have_moved,
          pods_are_back(w, NULL) && crossing_pods_on(w, "w0", 0) + crossing_pods_on(w, "w0", 1) == 0 &&
                  crossing_pods_on(w, "w1", 0) + crossing_pods_on(w, "w1", 1) == 0)

/* One pod of this ReplicaSet that may be moved: it is not the only one on one of the first two nodes. */
static inline char *crossing_pod_to_move(SimWorld *w, const char *workload) {
        const cJSON *pod;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, "default") {
                bool alone = false;

                if (!streq_ptr(fj_string(pod, "metadata", "labels", "app", NULL), workload))
                        continue;
                for (size_t m = 0; m < 2; m++)
                        alone |= streq_ptr(fj_string(pod, "spec", "nodeName", NULL), w->machines[m].node) &&
                                 crossing_pods_on(w, workload, m) == 1;
                if (!alone)
                        return MUST(strdup(fj_string(pod, "metadata", "name", NULL)));
        }
        return NULL;
}

/* A node that takes pods, alone; NULL: all do. */
static inline void open_only(SimWorld *w, const char *node) {
        for (size_t i = 0; i < w->n_machines; i++)
                fake_merge(w->cluster, FAKE_NODES, NULL, w->machines[i].node, "{'spec':{'unschedulable':%s}}",
                           !node || streq(node, w->machines[i].node) ? "null" : "true");
}

/* Settled so that of each ReplicaSet one pod is on each of the first two nodes: where these drain together, each waits for
 * the other twice. */
static inline SimWorld *crossing_world(uint64_t seed, const SimOptions *o) {
        SimWorld *w = settled_world(seed, o);

        for (size_t i = 0; i < 4; i++) {
                const char *workload = i < 2 ? "w0" : "w1";
                _cleanup_free_ char *pod = NULL;

                if (crossing_pods_on(w, workload, i % 2) > 0)
                        continue;
                pod = crossing_pod_to_move(w, workload);
                require(w, pod);
                open_only(w, w->machines[i % 2].node);
                fake_delete(w->cluster, FAKE_PODS, "default", pod, 0);
                require_within(w, 20, pods_are_back, 0);
        }
        open_only(w, NULL);
        require_runs(w, 3 * SEC);
        for (size_t m = 0; m < 2; m++)
                require(w, crossing_pods_on(w, "w0", m) == 1 && crossing_pods_on(w, "w1", m) == 1);
        return w;
}

/* What a person would call an honest number: watches and Leases by the minute, and a few writes for each
 * pod. */
static inline uint64_t requests_allowed(const SimWorld *w) {
        usec_t minutes = (sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE + 1;

        return 400 + minutes * 150 + 12 * w->options.n_pods;
}
#define require_quiet(w) require(w, sim_check_quiet((w)->check, requests_allowed(w)))
