/* SPDX-License-Identifier: Apache-2.0 */
/* Who would take a pod: each node asked all filters; and the two nodes that schedulers choose, the first by name and the
 * freest. They are looked for in blocks of nodes, of each of which it is known how much its freest has at most. */
#include <string.h>

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
        uint32_t nearest = NOWHERE;
        int64_t least = INT64_MAX;

        for (size_t i = 0; i < _FIT_REASON_MAX; i++)
                counts[i] = 0;
        for (uint32_t i = 0; i < s->n_nodes; i++) {
                FitReason r = simulator_fits(s, pod, i);
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

/* Of these nodes of a block, by a bit each: those that have as much CPU and memory free. */
static uint64_t nodes_with_room(Simulator *s, uint32_t block, uint64_t mask, int64_t cpu, int64_t memory) {
        const int64_t *free_cpu = s->free + RESOURCE_CPU * s->nodes_allocated + block * BLOCK_NODES,
                      *free_memory = s->free + RESOURCE_MEMORY * s->nodes_allocated + block * BLOCK_NODES;
        const int32_t *score = s->score + block * BLOCK_NODES;
        uint32_t n = MIN(BLOCK_NODES, s->n_nodes - block * BLOCK_NODES);
        uint64_t found = 0;

        for (uint32_t i = 0; i < n; i++)
                found |= (uint64_t) (score[i] >= 0 && free_cpu[i] >= cpu && free_memory[i] >= memory) << i;
        return found & mask;
}

static void find_bounds(Simulator *s, uint32_t block) {
        uint32_t end = MIN((block + 1) * BLOCK_NODES, s->n_nodes);
        int64_t most_cpu = 0, most_memory = 0;

        for (uint32_t i = block * BLOCK_NODES; i < end; i++)
                if (s->score[i] >= 0) {
                        most_cpu = MAX(most_cpu, s->free[RESOURCE_CPU * s->nodes_allocated + i]);
                        most_memory = MAX(most_memory, s->free[RESOURCE_MEMORY * s->nodes_allocated + i]);
                }
        s->block_cpu[block] = most_cpu;
        s->block_memory[block] = most_memory;
}

uint32_t simulator_first_fit(Simulator *s, uint32_t pod) {
        const uint64_t *mask = template_mask(s, s->pods[pod].template);
        const PodTemplate *t = template_of(s, pod);
        int64_t cpu = pod_template_request(t, RESOURCE_CPU), memory = pod_template_request(t, RESOURCE_MEMORY);

        for (uint32_t block = 0; block * BLOCK_NODES < s->n_nodes; block++) {
                uint64_t found;

                if (s->block_cpu[block] < cpu || s->block_memory[block] < memory || mask[block] == 0)
                        continue;
                found = nodes_with_room(s, block, UINT64_MAX, cpu, memory);
                if (found == 0)
                        find_bounds(s, block);
                for (found &= mask[block]; found; found &= found - 1) {
                        uint32_t node = block * BLOCK_NODES + (uint32_t) __builtin_ctzll(found);

                        if (fits_now(s, pod, node) == FIT_OK)
                                return node;
                }
        }
        return NOWHERE;
}

/* The block that may have a node freer than `best`, or one as free with a lower number; NOWHERE: none. */
static uint32_t freest_block(const Simulator *s, uint32_t n_blocks, int32_t best, uint32_t node) {
        uint32_t found = NOWHERE;
        int32_t score = best;

        for (uint32_t i = 0; i < n_blocks; i++)
                if (s->block_score[i] >= score && !s->block_seen[i] &&
                    (s->block_score[i] > score || (found == NOWHERE && node != NOWHERE && i < node / BLOCK_NODES))) {
                        found = i;
                        score = s->block_score[i];
                }
        return found;
}

/* The freest of these nodes of a block, the first by number among equals, if it is freer than `found`, or as free and
 * before it, and has so much CPU and memory. */
static uint32_t freer_in_block(const Simulator *s, uint32_t block, uint64_t nodes, uint32_t found, int64_t cpu, int64_t memory) {
        const int64_t *free_cpu = s->free + RESOURCE_CPU * s->nodes_allocated,
                      *free_memory = s->free + RESOURCE_MEMORY * s->nodes_allocated;
        int32_t best = found == NOWHERE ? -1 : s->score[found];
        uint32_t better = NOWHERE;

        for (; nodes; nodes &= nodes - 1) {
                uint32_t node = block * BLOCK_NODES + (uint32_t) __builtin_ctzll(nodes);

                if ((s->score[node] > best || (s->score[node] == best && better == NOWHERE && node < found)) &&
                    s->score[node] >= 0 && free_cpu[node] >= cpu && free_memory[node] >= memory) {
                        best = s->score[node];
                        better = node;
                }
        }
        return better;
}

static void find_highest_score(Simulator *s, uint32_t block) {
        uint32_t end = MIN((block + 1) * BLOCK_NODES, s->n_nodes);
        int32_t most = -1;

        for (uint32_t i = block * BLOCK_NODES; i < end; i++)
                most = MAX(most, s->score[i]);
        s->block_score[block] = most;
        s->block_is_loose[block] = false;
}

uint32_t simulator_freest_fit(Simulator *s, uint32_t pod) {
        const uint64_t *mask = template_mask(s, s->pods[pod].template);
        const PodTemplate *t = template_of(s, pod);
        int64_t cpu = pod_template_request(t, RESOURCE_CPU), memory = pod_template_request(t, RESOURCE_MEMORY);
        uint32_t n_blocks = (s->n_nodes + BLOCK_NODES - 1) / BLOCK_NODES, found = NOWHERE, block;

        memset(s->block_seen, 0, n_blocks * sizeof(bool));
        while ((block = freest_block(s, n_blocks, found == NOWHERE ? -1 : s->score[found], found)) != NOWHERE) {
                uint64_t nodes = mask[block];
                uint32_t node;

                s->block_seen[block] = true;
                if (s->block_is_loose[block])
                        find_highest_score(s, block);
                while ((node = freer_in_block(s, block, nodes, found, cpu, memory)) != NOWHERE) {
                        if (fits_now(s, pod, node) == FIT_OK) {
                                found = node;
                                break;
                        }
                        nodes &= ~(UINT64_C(1) << (node % BLOCK_NODES));
                }
        }
        return found;
}
