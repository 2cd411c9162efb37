/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulation costs, on made-up clusters: simulate-bench [NODES PODS OWNERS FILL%]. Prints one line of JSON of what it
 * measured. Times are of CPU: it is one thread, and other work on the machine shall not count. The limit beside them is a loop
 * that compares every node's room with every pod's request, once.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cluster-maker.h"

#define CHANGES 20000u
#define NEW_OWNERS 50u

typedef struct Figures {
        uint32_t may_go, gone_together, n_templates, n_bound;
        double made_ms, singles_ms[3], together_ms, limit_ms, change_usec, new_owner_ms;
        size_t snapshot_bytes, simulator_bytes;
} Figures;

static double now_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

static int compare_all(uint32_t n_nodes, uint32_t n_pods, double *ret_ms) {
        int64_t *room = calloc(n_nodes + 1, sizeof(int64_t));
        uint64_t hits = 0;
        double begin = now_ms();

        if (!room)
                return -ENOMEM;
        for (uint32_t p = 0; p < n_pods; p++) {
                uint64_t n = 0;

                for (uint32_t i = 0; i < n_nodes; i++)
                        n += room[i] >= (int64_t) p;
                hits += n;
        }
        free(room);
        *ret_ms = now_ms() - begin;
        return hits > 0 ? 0 : -EINVAL; /* as many as there are nodes: of the first pod */
}

static size_t heap_bytes(void) {
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

/* Each node in the order of names; with keep those that went stay away. */
static int remove_each(Simulator *s, bool keep, uint32_t *ret_gone, double *ret_ms) {
        SimulateOptions options = { .quick = true };
        double begin = now_ms();

        *ret_gone = 0;
        for (uint32_t i = 0; i < simulator_n_nodes(s); i++) {
                SimulateVerdict v;
                int r = simulate_removal(s, &i, 1, &options, keep, &v);

                if (r < 0)
                        return r;
                *ret_gone += v.fits;
                simulate_verdict_done(&v);
        }
        *ret_ms = now_ms() - begin;
        return 0;
}

/* A pod goes and comes back, as it does when it is evicted: two changes. */
static int change_pods(Simulator *s, Figures *f) {
        double begin = now_ms();

        for (uint32_t i = 0; i < CHANGES / 2; i++) {
                uint32_t pod = (uint32_t) ((uint64_t) i * 7919 % simulator_n_pods(s));
                const KubeScheduledPod *object = simulator_pod(s, pod);
                int r;

                simulator_forget_pod(s, pod);
                r = simulator_change_pod(s, pod, object);
                if (r < 0)
                        return r;
        }
        f->change_usec = (now_ms() - begin) * 1000 / CHANGES;
        return 0;
}

static int add_owners(Simulator *s, MadeCluster *c, const ClusterShape *shape, Figures *f) {
        ClusterShape more = *shape;

        for (uint32_t i = 0; i < NEW_OWNERS; i++) {
                KubeObject *o;
                uint32_t number;
                double begin;
                int r;

                more.n_owners = shape->n_owners + i + 1;
                o = cluster_add_pod(c, &more, more.n_owners - 1, "node-00000");
                begin = now_ms();
                r = simulator_add_pod(s, (KubeScheduledPod *) o, &number);
                if (r < 0)
                        return r;
                f->new_owner_ms += (now_ms() - begin) / NEW_OWNERS;
        }
        return 0;
}

static int measure(const ClusterShape *shape, MadeCluster *c, Simulator **ret, Figures *f) {
        size_t before = heap_bytes();
        SimulatorMark mark;
        double begin = now_ms();
        int r = simulator_new(c->snapshot, ret);

        if (r < 0)
                return r;
        f->made_ms = now_ms() - begin;
        f->snapshot_bytes = before;
        f->simulator_bytes = heap_bytes() - before;
        f->n_templates = simulator_n_templates(*ret);
        for (size_t k = 0; k < 3 && r >= 0; k++)
                r = remove_each(*ret, false, &f->may_go, &f->singles_ms[k]);
        mark = simulator_mark(*ret);
        if (r >= 0)
                r = remove_each(*ret, true, &f->gone_together, &f->together_ms);
        simulator_undo(*ret, mark);
        if (r >= 0)
                r = change_pods(*ret, f);
        return r < 0 ? r : add_owners(*ret, c, shape, f);
}

static void print_figures(const ClusterShape *shape, const Figures *f) {
        printf("{\"nodes\":%u,\"pods\":%u,\"bound\":%u,\"templates\":%u,\"fillPercent\":%u,\"snapshotMB\":%.1f,\"simulatorMB\":%.1f,"
               "\"madeMs\":%.1f,\"singlesMs\":[%.1f,%.1f,%.1f],\"mayGo\":%u,\"togetherMs\":%.1f,\"goneTogether\":%u,"
               "\"limitMs\":%.1f,\"changeUs\":%.2f,\"newOwnerMs\":%.2f}\n",
               shape->n_nodes, shape->n_pods, f->n_bound, f->n_templates, shape->fill_percent, (double) f->snapshot_bytes / 1e6,
               (double) f->simulator_bytes / 1e6, f->made_ms, f->singles_ms[0], f->singles_ms[1], f->singles_ms[2], f->may_go,
               f->together_ms, f->gone_together, f->limit_ms, f->change_usec, f->new_owner_ms);
}

int main(int argc, char **argv) {
        ClusterShape shape = { .seed = 1, .n_nodes = 5000, .n_pods = 150000, .n_owners = 1500, .fill_percent = 65 };
        Simulator *s = NULL;
        MadeCluster c = {};
        Figures f = {};
        int r;

        if (argc == 5) {
                shape.n_nodes = (uint32_t) atoi(argv[1]);
                shape.n_pods = (uint32_t) atoi(argv[2]);
                shape.n_owners = (uint32_t) atoi(argv[3]);
                shape.fill_percent = (unsigned) atoi(argv[4]);
        }
        r = cluster_make(&shape, &c);
        f.n_bound = c.n_bound;
        if (r >= 0)
                r = compare_all(shape.n_nodes, shape.n_pods, &f.limit_ms);
        if (r >= 0)
                r = measure(&shape, &c, &s, &f);
        if (r >= 0)
                print_figures(&shape, &f);
        simulator_free(s);
        cluster_done(&c);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
