/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulation costs, on made-up clusters: simulate-bench [NODES PODS OWNERS FILL%]. Prints what it measured; the
 * limit beside it is a loop over an array, in the same minute.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cluster-maker.h"

/* Of CPU: one thread, and other work on the machine does not count. */
static double now_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* So many comparisons of a number with an array of 5,000: what looking at every node for every pod would cost at least. */
static double calibrate(uint32_t n_nodes, uint32_t n_pods) {
        int64_t *free_room = calloc(n_nodes + 1, sizeof(int64_t));
        volatile uint64_t hits = 0;
        double begin = now_ms();

        for (uint32_t p = 0; p < n_pods; p++) {
                uint64_t n = 0;

                for (uint32_t i = 0; i < n_nodes; i++)
                        n += free_room[i] >= (int64_t) p;
                hits += n;
        }
        free(free_room);
        return now_ms() - begin;
}

static size_t heap_bytes(void) {
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

/* A pod goes and comes back elsewhere, as it does when it is evicted: two changes. */
static int bench_changes(Simulator *s, MadeCluster *c, const ClusterShape *shape) {
        const uint32_t n = 20000;
        ClusterShape more = *shape;
        double begin = now_ms(), known, new_owners = 0;
        uint32_t number;
        int r = 0;

        for (uint32_t i = 0; i < n && r >= 0; i++) {
                uint32_t pod = (uint32_t) ((uint64_t) i * 7919 % simulator_n_pods(s));
                const KubeScheduledPod *object = simulator_pod(s, pod);

                simulator_forget_pod(s, pod);
                r = simulator_change_pod(s, pod, object);
        }
        known = (now_ms() - begin) * 1000 / (2 * n);
        for (uint32_t i = 0; i < 50 && r >= 0; i++) {
                KubeObject *o;

                more.n_owners = shape->n_owners + i + 1;
                o = cluster_add_pod(c, &more, more.n_owners - 1, "node-00000");
                begin = now_ms();
                r = simulator_add_pod(s, (KubeScheduledPod *) o, &number);
                new_owners += now_ms() - begin;
        }
        printf("  a pod's change: %.1f us; the first pod of a new owner: %.1f ms\n", known, new_owners / 50);
        return r;
}

static int bench(const ClusterShape *shape) {
        MadeCluster c;
        Simulator *s;
        double begin = now_ms(), made, single[3] = {}, many, limit = calibrate(shape->n_nodes, shape->n_pods);
        size_t before, after;
        uint32_t yes = 0, together = 0;
        SimulateOptions options = { .quick = true };
        SimulatorMark mark;
        int r = cluster_make(shape, &c);

        if (r < 0)
                return r;
        printf("%u nodes, %u pods (%u bound) of %u owners, %u %% of CPU asked for; made in %.0f ms\n", shape->n_nodes,
               shape->n_pods, c.n_bound, shape->n_owners, shape->fill_percent, now_ms() - begin);
        before = heap_bytes();
        begin = now_ms();
        r = simulator_new(c.snapshot, &s);
        made = now_ms() - begin;
        after = heap_bytes();
        for (size_t k = 0; r >= 0 && k < 3; k++) {
                yes = 0;
                begin = now_ms();
                for (uint32_t i = 0; r >= 0 && i < simulator_n_nodes(s); i++) {
                        SimulateVerdict v;

                        r = simulate_removal(s, &i, 1, &options, false, &v);
                        yes += r >= 0 && v.fits;
                        if (r >= 0)
                                simulate_verdict_done(&v);
                }
                single[k] = now_ms() - begin;
        }
        begin = now_ms();
        mark = simulator_mark(s);
        for (uint32_t i = 0; r >= 0 && i < simulator_n_nodes(s); i++) {
                SimulateVerdict v;

                r = simulate_removal(s, &i, 1, &options, true, &v);
                together += r >= 0 && v.fits;
                if (r >= 0)
                        simulate_verdict_done(&v);
        }
        many = now_ms() - begin;
        simulator_undo(s, mark);
        printf("  simulator made in %.0f ms, %.1f MB beside the snapshot's %.1f MB; %u templates\n", made,
               (double) (after - before) / 1e6, (double) before / 1e6, simulator_n_templates(s));
        printf("  each node by itself: %.1f %.1f %.1f ms for all (%u may go); every node for every pod, compared once: %.1f ms\n",
               single[0], single[1], single[2], yes, limit);
        printf("  one after the other, kept: %.1f ms (%u gone together)\n", many, together);
        if (r >= 0)
                r = bench_changes(s, &c, shape);
        simulator_free(s);
        cluster_done(&c);
        return r;
}

int main(int argc, char **argv) {
        ClusterShape shape = { .seed = 1, .n_nodes = 5000, .n_pods = 150000, .n_owners = 1500, .fill_percent = 65 };

        if (argc == 5) {
                shape.n_nodes = (uint32_t) atoi(argv[1]);
                shape.n_pods = (uint32_t) atoi(argv[2]);
                shape.n_owners = (uint32_t) atoi(argv[3]);
                shape.fill_percent = (unsigned) atoi(argv[4]);
        }
        return bench(&shape) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
