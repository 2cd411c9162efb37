/* SPDX-License-Identifier: Apache-2.0 */
/* kube-scheduler's NodeResourcesFit: what a pod requests is at most what is free, resource by resource; and one more pod. */
#include "simulator-internal.h"

static int64_t *free_of(const Simulator *s, uint32_t resource, uint32_t node) {
        return s->free + (size_t) resource * s->nodes_allocated + node;
}

FitReason fit_resources(const Simulator *s, const PodTemplate *t, uint32_t node) {
        if (*free_of(s, RESOURCE_PODS, node) < 1)
                return FIT_RESOURCES;
        for (size_t i = 0; i < t->n_requests; i++)
                if (*free_of(s, t->requests[i].resource, node) < t->requests[i].amount)
                        return FIT_RESOURCES;
        return FIT_OK;
}

static int64_t permille_free(const Simulator *s, uint32_t resource, uint32_t node) {
        size_t at = (size_t) resource * s->nodes_allocated + node;
        int64_t whole = s->allocatable[at], free = s->free[at];

        if (whole <= 0 || free <= 0)
                return 0;
        /* Of large numbers the last bits are nothing to a permille. */
        return whole > INT64_MAX / 1000 ? free / (whole / 1000) : free * 1000 / whole;
}

void simulator_score_node(Simulator *s, uint32_t node) {
        const SimulatorNode *n = s->nodes + node;
        uint32_t block = node / BLOCK_NODES;

        s->block_is_loose[block] = true;
        if (!node_is_destination(n)) {
                s->score[node] = -1;
                return;
        }
        s->score[node] = (int32_t) (permille_free(s, RESOURCE_CPU, node) + permille_free(s, RESOURCE_MEMORY, node));
        s->block_score[block] = MAX(s->block_score[block], s->score[node]);
        s->block_cpu[block] = MAX(s->block_cpu[block], *free_of(s, RESOURCE_CPU, node));
        s->block_memory[block] = MAX(s->block_memory[block], *free_of(s, RESOURCE_MEMORY, node));
}

void simulator_count_room(Simulator *s, uint32_t pod, uint32_t node, int direction) {
        const PodTemplate *t = template_of(s, pod);

        *free_of(s, RESOURCE_PODS, node) -= direction;
        for (size_t i = 0; i < t->n_requests; i++)
                *free_of(s, t->requests[i].resource, node) -= direction * t->requests[i].amount;
        simulator_score_node(s, node);
}
