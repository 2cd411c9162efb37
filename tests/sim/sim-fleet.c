/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A fleet that is noticed at once: an agent on each node, all pods under one PDB that allows nothing at first, and within one
 * second a spot notice for every machine. No coordinator tells them of each other.
 *
 *      sim-fleet [NODES [PODS_PER_NODE [HELD_SEC]]]        1000, 10, 60
 *
 * After HELD_SEC the PDB allows all. Printed, as "KEY VALUE": how many evictions each pod was asked for until then (calls_per_pod),
 * how many requests of any kind, and by when all was gone. With every invariant of sim-check.h, of which the drained node at its
 * deadline is one; 1: one was broken, or not all was gone in time.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake-cluster.h"
#include "sim-check.h"
#include "sim-process.h"
#include "sim-world.h"

#define SEC USEC_PER_SEC
#define LEAD_SEC 120u
#define STOP_SEC 3u
#define GRACE_SEC 20u

static unsigned number(char **argv, int argc, int i, unsigned otherwise) {
        return i < argc ? (unsigned) strtoul(argv[i], NULL, 10) : otherwise;
}

static bool agent_is_ready(SimWorld *w, void *userdata) {
        SimProcess *agent = sim_world_agent(w, (size_t) (uintptr_t) userdata);

        return agent->life && agent->life->ready;
}

static bool all_are_ready(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (!agent_is_ready(w, (void *) (uintptr_t) i))
                        return false;
        return true;
}

/* Of no controller: no successor looks for a place on nodes that are all on their way out. */
static void make_pods(SimWorld *w, unsigned n) {
        _cleanup_free_ char *min = MUST(strf("%u", n));

        for (unsigned i = 0; i < n; i++) {
                _cleanup_free_ char *name = MUST(strf("web-%u", i));

                fake_add_pod(w->cluster, &(FakePod){ .name = name, .node = w->machines[i % w->n_machines].node, .app = "web", .grace_sec = GRACE_SEC, .stop_sec = STOP_SEC });
        }
        fake_add_pdb(w->cluster, NULL, "web", "web", true, min);
}

static size_t n_drained(SimWorld *w) {
        size_t n = 0;

        for (size_t i = 0; i < w->n_machines; i++)
                n += sim_world_condition(w, i, "Drained", "True");
        return n;
}

/* In steps of a second: what is asked costs a look at each node. */
static bool run_until(SimWorld *w, unsigned at_most_sec, bool (*holds)(SimWorld *w)) {
        for (unsigned i = 0; i < at_most_sec; i++) {
                if (holds(w))
                        return true;
                if (!sim_world_run(w, SEC))
                        return false;
        }
        return holds(w);
}

static bool all_are_drained(SimWorld *w) {
        return n_drained(w) == w->n_machines;
}

static bool notice_all(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++) {
                sim_world_notice(w, i, LEAD_SEC);
                if (!sim_world_run(w, SEC / w->n_machines))
                        return false;
        }
        return true;
}

static int failed(SimWorld *w, const char *what) {
        sim_world_report(w, what);
        sim_world_free(w);
        return 1;
}

int main(int argc, char **argv) {
        unsigned nodes = number(argv, argc, 1, 1000), pods = nodes * number(argv, argc, 2, 10), held_sec = number(argv, argc, 3, 60);
        const SimOptions options = { .n_nodes = nodes,
                                     .n_agents = nodes,
                                     .no_pool = true };
        SimWorld *w = sim_world_new(1, &options);
        uint64_t asked, done, requests;
        usec_t begin;

        make_pods(w, pods);
        if (!run_until(w, 120, all_are_ready) || !sim_world_run(w, 5 * SEC))
                return failed(w, "all agents run, and all pods");
        begin = sim_world_now(w);
        requests = sim_check_n_requests(w->check);
        if (!notice_all(w) || !sim_world_run(w, (held_sec - 1) * SEC))
                return failed(w, "the budget allows nothing");
        asked = sim_check_n_evictions(w->check, &done);
        printf("nodes %u\npods %u\nheld_sec %u\nevictions %" PRIu64 "\ncalls_per_pod %.3f\nrequests_per_node %.2f\n", nodes, pods, held_sec, asked,
               (double) asked / pods, (double) (sim_check_n_requests(w->check) - requests) / nodes);
        if (done > 0)
                return failed(w, "nothing is evicted while the budget allows nothing");
        sim_world_set_pdb_min(w, 0);
        if (!run_until(w, LEAD_SEC - held_sec, all_are_drained))
                return failed(w, "all nodes are drained by their deadline");
        (void) sim_check_n_evictions(w->check, &done);
        printf("drained_sec %.1f\nevicted %" PRIu64 "\ndrained_nodes %zu\n", (double) (sim_world_now(w) - begin) / SEC, done, n_drained(w));
        sim_world_free(w);
        return 0;
}
