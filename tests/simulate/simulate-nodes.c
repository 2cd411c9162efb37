/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the simulation about each node of a cluster by itself:
 *
 *      simulate-nodes FILE               one JSON line per node, in the order of their names
 *      simulate-nodes --time N FILE      how long that takes, N times over, without the reasons
 *
 * FILE is what `kubectl get ... -o json` prints: a List. For tests/scheduler, which asks kube-scheduler's own code the
 * same, and for the benchmarks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "file-util.h"
#include "simulate.h"
#include "simulator-internal.h"
#include "snapshot-file.h"
#include "string-util.h"

static void write_counts(JsonWriter *w, const SimulateUnplaced *u) {
        json_open_object(w, "reasons");
        for (size_t i = 0; i < _FIT_REASON_MAX; i++)
                if (u->counts[i] > 0)
                        json_add_int64(w, fit_reason_to_string((FitReason) i), u->counts[i]);
        json_close_object(w);
}

static void write_pod(JsonWriter *w, const char *key, const Simulator *s, uint32_t pod) {
        const ObjectMeta *m = &simulator_pod(s, pod)->pod.object.meta;

        json_addf(w, key, "%s/%s", m->ns, m->name);
}

static void write_verdict(JsonWriter *w, const Simulator *s, uint32_t node, const SimulateVerdict *v) {
        bool unmodelled = false;

        json_open_object(w, NULL);
        json_add_string(w, "node", simulator_node_name(s, node));
        json_add_string(w, "verdict", v->fits ? "yes" : "no");
        json_open_array(w, "placements");
        for (size_t i = 0; i < v->n_sequence; i++) {
                json_open_object(w, NULL);
                write_pod(w, "pod", s, v->sequence[i].pod);
                json_add_string(w, "node", simulator_node_name(s, v->sequence[i].node));
                json_close_object(w);
        }
        json_close_array(w);
        json_open_array(w, "competitors");
        for (size_t i = 0; i < s->n_competitors; i++)
                if (s->pods[s->competitors[i]].home != node && s->pods[s->competitors[i]].promised == NOWHERE)
                        write_pod(w, NULL, s, s->competitors[i]);
        json_close_array(w);
        for (size_t i = 0; i < v->n_unplaced; i++)
                unmodelled |= v->unplaced[i].unmodelled != POD_MODELLED;
        if (!v->fits)
                json_add_string(w, "code", unmodelled ? "UNMODELLED" : "NOT_PLACED");
        json_add_bool(w, "packed", v->fits_packed);
        json_add_bool(w, "spread", v->fits_spread);
        json_open_array(w, "unplaced");
        for (size_t i = 0; i < v->n_unplaced; i++) {
                json_open_object(w, NULL);
                write_pod(w, "pod", s, v->unplaced[i].pod);
                json_add_string(w, "unmodelled", pod_unmodelled_to_string(v->unplaced[i].unmodelled));
                write_counts(w, v->unplaced + i);
                json_close_object(w);
        }
        json_close_array(w);
        json_close_object(w);
}

static int print_all(Simulator *s) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        SimulateOptions options = {};
        int r = json_writer_new(&w);

        for (uint32_t i = 0; i < simulator_n_nodes(s) && r >= 0; i++) {
                _cleanup_free_ char *line = NULL;
                SimulateVerdict v;

                r = simulate_removal(s, &i, 1, &options, false, &v);
                if (r < 0)
                        break;
                write_verdict(w, s, i, &v);
                simulate_verdict_done(&v);
                line = json_writer_steal(w, NULL);
                if (!line || puts(line) < 0)
                        r = -ENOMEM;
        }
        return r;
}

static double seconds(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static int time_all(Simulator *s, unsigned n) {
        SimulateOptions options = { .quick = true };

        for (unsigned k = 0; k < n; k++) {
                double begin = seconds();
                uint32_t yes = 0;

                for (uint32_t i = 0; i < simulator_n_nodes(s); i++) {
                        SimulateVerdict v;
                        int r = simulate_removal(s, &i, 1, &options, false, &v);

                        if (r < 0)
                                return r;
                        yes += v.fits;
                        simulate_verdict_done(&v);
                }
                printf("%u nodes, %u pods, %u templates: %u may go, %.1f ms\n", simulator_n_nodes(s), simulator_n_pods(s),
                       simulator_n_templates(s), yes, (seconds() - begin) * 1000);
        }
        return 0;
}

static int simulate_file(const char *path, unsigned times) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(snapshot_freep) Snapshot *snapshot = NULL;
        _cleanup_(simulator_freep) Simulator *s = NULL;
        _cleanup_free_ char *text = NULL, *passed_over = NULL, *why = NULL;
        double begin;
        size_t size;
        int r = intern_pool_new(&pool);

        if (r >= 0)
                r = read_file(path, SNAPSHOT_BYTES_MAX, &text, &size);
        if (r >= 0)
                r = snapshot_load_list(text, size, 0, pool, &snapshot, &passed_over, &why);
        if (why)
                fprintf(stderr, "%s\n", why);
        if (r < 0)
                return r;
        for (size_t i = 0; i < _SNAPSHOT_KIND_MAX; i++)
                snapshot->is_known[i] = true;
        begin = seconds();
        r = simulator_new(snapshot, &s);
        if (r < 0)
                return r;
        if (times == 0)
                return print_all(s);
        printf("made in %.1f ms\n", (seconds() - begin) * 1000);
        return time_all(s, times);
}

int main(int argc, char **argv) {
        unsigned times = argc == 4 && streq(argv[1], "--time") ? (unsigned) atoi(argv[2]) : 0;
        int r;

        if (argc != 2 && times == 0) {
                fprintf(stderr, "usage: %s [--time N] FILE\n", argv[0]);
                return EXIT_FAILURE;
        }
        r = simulate_file(argv[argc - 1], times);
        if (r < 0)
                fprintf(stderr, "%s: %s\n", argv[argc - 1], strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
