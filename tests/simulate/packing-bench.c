/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How few nodes a fragmented cluster is left with: packing-bench [plain|mixed SEED]. 200 nodes of which all pods together ask for 35 %, no pod
 * for more than an eighth of a node, and two DaemonSets. Prints one line of JSON: the nodes that remain when nodes go one after the other,
 * in the order of candidates, as long as packing places all; packing and spreading; these and the adverse order, which is the product's
 * verdict; and of each choice what is left of it as one set. Beside them the lower bound of bin packing: no fewer nodes have as much
 * CPU, memory and pods beside their DaemonSets as the pods that move ask for.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cluster-maker.h"
#include "disruption-cost.h"
#include "disruption-plan.h"
#include "string-util.h"

#define NODES 200u

typedef enum Way { WAY_PACKED, WAY_BOTH, WAY_ANY_ORDER, _WAY_MAX } Way;

static bool accepts(const SimulateVerdict *v, Way way) {
        switch (way) {
        case WAY_PACKED:
                return v->fits_packed;
        case WAY_BOTH:
                return v->fits_packed && v->fits_spread;
        case WAY_ANY_ORDER:
        case _WAY_MAX:
                break;
        }
        return v->fits;
}

static void add_daemons(MadeCluster *c) {
        for (uint32_t i = 0; i < 2 * NODES; i++) {
                _cleanup_free_ char *text = strf(
                        "{\"metadata\":{\"name\":\"daemon-%u-%05u\",\"namespace\":\"kube-system\",\"uid\":\"d%u\",\"ownerReferences\":[{\"apiVersion\":"
                        "\"apps/v1\",\"kind\":\"DaemonSet\",\"name\":\"daemon-%u\",\"uid\":\"o%u\",\"controller\":true}]},\"spec\":{\"containers\":[{"
                        "\"name\":\"c\",\"resources\":{\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}}}],\"nodeName\":\"node-%05u\"},"
                        "\"status\":{\"phase\":\"Running\"}}",
                        i % 2, i / 2, i, i % 2, i % 2, 200 + i % 2 * 100, 256 + i % 2 * 256, i / 2);

                assert(text);
                cluster_put(c->snapshot, SNAPSHOT_PODS, text);
        }
}

/* What the pods that move ask for, by what a node has beside the others; rounded up. All nodes are the same here. */
static uint32_t lower_bound(const Simulator *s) {
        static const char *const resources[] = { "cpu", "memory", "pods" };
        uint32_t most = 0;

        for (size_t k = 0; k < ELEMENTSOF(resources); k++) {
                int64_t wanted = 0, room = simulator_allocatable(s, 0, resources[k]);

                for (uint32_t i = 0; i < simulator_n_pods(s); i++) {
                        int64_t one = k == 2 ? 1 : simulator_request(s, i, resources[k]);

                        if (simulator_pod_moves(s, i))
                                wanted += one;
                        else if (simulator_node_of(s, i) == 0)
                                room -= one;
                }
                most = MAX(most, (uint32_t) ((wanted + room - 1) / room));
        }
        return most;
}

/* It goes for good: its pods where packing has put them. */
static int take(Simulator *s, uint32_t node, const SimulateVerdict *v) {
        int r = simulator_remove_node(s, node);

        for (size_t i = 0; i < v->n_placements && r >= 0; i++)
                r = simulator_place(s, v->placements[i].pod, v->placements[i].node);
        return r;
}

static int choose(Simulator *s, const uint32_t *candidates, Way way, uint32_t *chosen, uint32_t *ret_n) {
        SimulatorMark mark = simulator_mark(s);
        int r = 0;

        *ret_n = 0;
        for (uint32_t i = 0; i < NODES && r >= 0; i++) {
                const SimulateOptions o = { .quick = true };
                SimulateVerdict v = {};

                r = simulate_removal(s, candidates + i, 1, &o, false, &v);
                if (r >= 0 && accepts(&v, way)) {
                        r = take(s, candidates[i], &v);
                        chosen[(*ret_n)++] = candidates[i];
                }
                simulate_verdict_done(&v);
        }
        simulator_undo(s, mark);
        return r;
}

/* The last that were chosen are dropped until the others can go as one set. */
static int settle(Simulator *s, const uint32_t *chosen, Way way, uint32_t *n) {
        bool fits = false;
        int r = 0;

        while (*n > 0 && r >= 0 && !fits) {
                const SimulateOptions o = { .quick = true };
                SimulateVerdict v = {};

                r = simulate_removal(s, chosen, *n, &o, false, &v);
                fits = r >= 0 && accepts(&v, way);
                *n -= !fits;
                simulate_verdict_done(&v);
        }
        return r;
}

static int measure(const MadeCluster *c, bool plain) {
        static const char *const names[_WAY_MAX] = { "packed", "both", "anyOrder" };
        _cleanup_(simulator_freep) Simulator *s = NULL;
        _cleanup_(disruption_scene_freep) DisruptionScene *scene = NULL;
        uint32_t candidates[NODES], chosen[NODES];
        int r = simulator_new(c->snapshot, &s);

        if (r >= 0)
                r = disruption_scene_new(c->snapshot, s, NULL, &scene);
        for (uint32_t i = 0; i < NODES; i++)
                candidates[i] = i;
        if (r >= 0)
                r = disruption_sort(scene, candidates, NODES);
        if (r < 0)
                return r;
        printf("{\"cluster\":\"%s\",\"nodes\":%u,\"pods\":%u,\"lowerBound\":%u", plain ? "plain" : "mixed", NODES, c->n_bound, lower_bound(s));
        for (Way way = 0; way < _WAY_MAX && r >= 0; way++) {
                uint32_t n;

                r = choose(s, candidates, way, chosen, &n);
                printf(",\"%s\":%u", names[way], NODES - n);
                if (r >= 0)
                        r = settle(s, chosen, way, &n);
                printf(",\"%sSet\":%u", names[way], NODES - n);
        }
        printf("}\n");
        return r;
}

int main(int argc, char **argv) {
        /* Of 16 CPUs a pod asks for 1.4 at most: 0.93 on average, half as much more or less. */
        ClusterShape shape = { .seed = 1, .n_nodes = NODES, .n_pods = 1200, .n_owners = 120, .fill_percent = 35, .plain = true };
        MadeCluster c = {};
        int r;

        if (argc == 3) {
                shape.plain = streq(argv[1], "plain");
                shape.seed = (uint64_t) atoi(argv[2]);
        }
        r = cluster_make(&shape, &c);
        if (r >= 0) {
                add_daemons(&c);
                r = measure(&c, shape.plain);
        }
        cluster_done(&c);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
