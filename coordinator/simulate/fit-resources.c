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

/* Of amounts that are AMOUNT_MAX at most. */
static int32_t permille_free(const Simulator *s, uint32_t resource, uint32_t node) {
        size_t at = (size_t) resource * s->nodes_allocated + node;
        int64_t whole = s->allocatable[at], free = s->free[at];

        return whole <= 0 || free <= 0 ? 0 : (int32_t) (MIN(free, whole) * 1000 / whole);
}

void simulator_score_node(Simulator *s, uint32_t node) {
        int32_t before = s->score[node], score = SCORE_NONE;

        if (node_is_destination(s->nodes + node))
                score = permille_free(s, RESOURCE_CPU, node) + permille_free(s, RESOURCE_MEMORY, node);
        s->score[node] = score;
        s->block_has_changed[node / BLOCK_NODES] = true;
        score_index_move(&s->by_score, node, before, score);
}

void simulator_count_room(Simulator *s, uint32_t pod, uint32_t node, int direction) {
        const PodTemplate *t = template_of(s, pod);

        *free_of(s, RESOURCE_PODS, node) -= direction;
        for (size_t i = 0; i < t->n_requests; i++)
                *free_of(s, t->requests[i].resource, node) -= direction * t->requests[i].amount;
        simulator_score_node(s, node);
}
