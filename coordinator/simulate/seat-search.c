/* SPDX-License-Identifier: Apache-2.0 */
/* Who would take a pod: each node asked all filters; and the two nodes that schedulers choose, the first by name and the
 * freest. The first is looked for in blocks of nodes, of each of which it is known how much its freest has at most; the freest by score. */
#include "simulator-internal.h"

/* All filters that look at more than the template and the node's class. */
static FitReason fits_now(const Simulator *s, uint32_t pod, uint32_t node) {
        const SimulatorTemplate *t = s->templates + s->pods[pod].template;
        FitReason r = fit_resources(s, t->parsed, node);

        if (r == FIT_OK && t->parsed->n_ports > 0)
                r = fit_ports(s, t->parsed, node);
        if (r == FIT_OK && s->pods[pod].n_volumes > 0)
                r = fit_volumes(s, pod, node);
        if (r == FIT_OK)
                r = fit_spread(s, t, node);
        if (r == FIT_OK)
                r = fit_affinity(s, t, node);
        if (r == FIT_OK && s->respects_preferences)
                r = fit_preferences(s, pod, node);
        return r;
}

FitReason simulator_fits(Simulator *s, uint32_t pod, uint32_t node) {
        const SimulatorNode *n = s->nodes + node;
        FitReason r;

        if (!node_is_destination(n))
                return FIT_NOT_A_DESTINATION;
        r = fit_node(s, s->pods[pod].template, node);
        return r == FIT_OK ? fits_now(s, pod, node) : r;
}

/* How much of what it asks for is not there, in permille, resource by resource. */
static int64_t missing_permille(const Simulator *s, uint32_t pod, uint32_t node) {
        const PodTemplate *t = template_of(s, pod);
        int64_t sum = 0;

        for (size_t i = 0; i < t->n_requests; i++) {
                int64_t want = t->requests[i].amount, lack = want - s->free[t->requests[i].resource * s->nodes_allocated + node];

                if (lack > 0)
                        sum += MIN(lack / (want / 1000 + 1), 100000);
        }
        return sum;
}

void simulator_count_fits(Simulator *s, uint32_t pod, uint32_t counts[_FIT_REASON_MAX], uint32_t *ret_nearest) {
        FitReason best = FIT_NODE_AFFINITY;
        const uint64_t *mask = template_mask(s, s->pods[pod].template);
        uint32_t nearest = NOWHERE;
        int64_t least = INT64_MAX;

        for (size_t i = 0; i < _FIT_REASON_MAX; i++)
                counts[i] = 0;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                bool passes = mask[i / BLOCK_NODES] >> (i % BLOCK_NODES) & 1;
                FitReason r = s->score[i] == SCORE_NONE ? FIT_NOT_A_DESTINATION
                              : passes                  ? fits_now(s, pod, i)
                                                        : fit_node(s, s->pods[pod].template, i);
                int64_t lack = r == FIT_RESOURCES ? missing_permille(s, pod, i) : 0;

                counts[r]++;
                if (r > best || (r == best && r == FIT_RESOURCES && lack < least)) {
                        best = r;
                        nearest = i;
                        least = lack;
                }
        }
        if (ret_nearest)
                *ret_nearest = counts[FIT_OK] > 0 ? NOWHERE : nearest;
}

/* So much has to be free; of what a pod does not ask for there may be less than nothing. */
static int64_t least_free(const PodTemplate *t, uint32_t resource) {
        int64_t amount = pod_template_request(t, resource);

        return amount > 0 ? amount : INT64_MIN;
}

static void find_bounds(Simulator *s, uint32_t block) {
        uint32_t end = MIN((block + 1) * BLOCK_NODES, s->n_nodes);
        int64_t most_cpu = 0, most_memory = 0;

        for (uint32_t i = block * BLOCK_NODES; i < end; i++)
                if (s->score[i] != SCORE_NONE) {
                        most_cpu = MAX(most_cpu, s->free[RESOURCE_CPU * s->nodes_allocated + i]);
                        most_memory = MAX(most_memory, s->free[RESOURCE_MEMORY * s->nodes_allocated + i]);
                }
        s->block_cpu[block] = most_cpu;
        s->block_memory[block] = most_memory;
        s->block_has_changed[block] = false;
}

uint32_t simulator_first_fit(Simulator *s, uint32_t pod) {
        const int64_t *free_cpu = s->free + RESOURCE_CPU * s->nodes_allocated,
                      *free_memory = s->free + RESOURCE_MEMORY * s->nodes_allocated;
        const uint64_t *mask = template_mask(s, s->pods[pod].template);
        const PodTemplate *t = template_of(s, pod);
        int64_t cpu = least_free(t, RESOURCE_CPU), memory = least_free(t, RESOURCE_MEMORY);

        for (uint32_t block = 0; block * BLOCK_NODES < s->n_nodes; block++) {
                if (s->block_has_changed[block])
                        find_bounds(s, block);
                if (s->block_cpu[block] < cpu || s->block_memory[block] < memory)
                        continue;
                for (uint64_t nodes = mask[block]; nodes; nodes &= nodes - 1) {
                        uint32_t node = block * BLOCK_NODES + (uint32_t) __builtin_ctzll(nodes);

                        if (free_cpu[node] >= cpu && free_memory[node] >= memory && s->score[node] != SCORE_NONE &&
                            fits_now(s, pod, node) == FIT_OK)
                                return node;
                }
        }
        return NOWHERE;
}

/* The first by number of the nodes with that score that takes it; NOWHERE: none. */
static uint32_t first_of_score(const Simulator *s, uint32_t pod, int32_t score, const uint64_t *mask, int64_t cpu, int64_t memory) {
        const int64_t *free_cpu = s->free + RESOURCE_CPU * s->nodes_allocated,
                      *free_memory = s->free + RESOURCE_MEMORY * s->nodes_allocated;
        const uint64_t *all = s->by_score.nodes + (size_t) score * s->by_score.n_blocks,
                       *filled = s->by_score.blocks + (size_t) score * s->by_score.n_words;

        for (size_t word = 0; word < s->by_score.n_words; word++)
                for (uint64_t blocks = filled[word]; blocks; blocks &= blocks - 1) {
                        uint32_t block = (uint32_t) word * 64 + (uint32_t) __builtin_ctzll(blocks);

                        for (uint64_t nodes = all[block] & mask[block]; nodes; nodes &= nodes - 1) {
                                uint32_t node = block * BLOCK_NODES + (uint32_t) __builtin_ctzll(nodes);

                                if (free_cpu[node] >= cpu && free_memory[node] >= memory && fits_now(s, pod, node) == FIT_OK)
                                        return node;
                        }
                }
        return NOWHERE;
}

uint32_t simulator_freest_fit(Simulator *s, uint32_t pod) {
        const uint64_t *mask = template_mask(s, s->pods[pod].template);
        const PodTemplate *t = template_of(s, pod);
        int64_t cpu = least_free(t, RESOURCE_CPU), memory = least_free(t, RESOURCE_MEMORY);
        uint32_t node = NOWHERE;

        for (int32_t score = score_index_next(&s->by_score, SCORE_MAX + 1); score != SCORE_NONE && node == NOWHERE;
             score = score_index_next(&s->by_score, score))
                node = first_of_score(s, pod, score, mask, cpu, memory);
        return node;
}
