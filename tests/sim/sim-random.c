/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim-random [--trace] --seeds FROM COUNT: small worlds in which everything is drawn: size, budgets, grace
 * periods, what people and clouds do in three minutes, and what goes wrong meanwhile. Then the faults stop,
 * whoever is dead comes back, and all must come to its end. The first seed that fails is told, with its
 * trace and how to play it again.
 */
#include "sim-test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "hashmap.h"
#include "parse-util.h"

#define ACTION_USEC (180 * SEC)
#define SETTLE_SEC (15 * 60)

typedef struct Draw {
        SimWorld *w;
        Random *random;
} Draw;

static uint64_t below(Draw *d, uint64_t n) {
        return random_below(d->random, n);
}

static bool one_in(Draw *d, uint64_t n) {
        return below(d, n) == 0;
}

/* -- the world --------------------------------------------------------------------------------- */

static SimOptions draw_options(Draw *d) {
        SimOptions o = {
                .n_nodes = (unsigned) (4 + below(d, 4)),
                .n_pods = (unsigned) (4 + below(d, 17)),
                .stop_sec = (unsigned) below(d, 20),
                .grace_sec = (unsigned) (2 + below(d, 40)),
                .shutting_down_sec = (unsigned) below(d, 30),
                .n_coordinators = one_in(d, 4) ? 0 : 2,
        };

        o.pdb_min = one_in(d, 4) ? 0 : o.n_pods - (unsigned) below(d, 3);
        o.tgp_sec = one_in(d, 2) ? 0 : (unsigned) (10 + below(d, 300));
        o.n_agents = one_in(d, 4) && o.n_coordinators > 0 ? 0 : o.n_nodes - 2;
        o.no_pool = o.n_coordinators == 0;
        return o;
}

static SimChances draw_chances(Draw *d) {
        SimChances c = { 0 };

        if (one_in(d, 3))
                return c;
        c.error = (unsigned) below(d, 150);
        c.lie = (unsigned) below(d, 50);
        c.lose_request = (unsigned) below(d, 30);
        c.lose_reply = (unsigned) below(d, 30);
        c.refuse = (unsigned) below(d, 50);
        c.slow = (unsigned) below(d, 100);
        c.slow_max_usec = 1 + below(d, 5 * SEC);
        c.cloud = (unsigned) below(d, 100);
        return c;
}

/* -- what happens ------------------------------------------------------------------------------ */

/* The last two are left alone, so that there is always a place to go. */
static size_t draw_machine(Draw *d) {
        return below(d, d->w->n_machines - 2);
}

static bool is_in_service(Draw *d, size_t m) {
        return sim_world_node(d->w, m) && !is_being_deleted(d->w, machine_arg(m)) &&
               !d->w->machines[m].ended;
}

static void act_notice(Draw *d) {
        size_t m = draw_machine(d);

        if (is_in_service(d, m) && d->w->machines[m].deadline_usec == USEC_INFINITY)
                sim_world_notice(d->w, m, (unsigned) (20 + below(d, 101)));
}

/* It came to nothing after all. */
static void act_withdraw(Draw *d) {
        size_t m = draw_machine(d);

        if (d->w->machines[m].noticed)
                sim_world_withdraw(d->w, m);
}

static void act_delete(Draw *d) {
        size_t m = draw_machine(d);

        if (d->w->options.n_coordinators > 0 && is_in_service(d, m))
                sim_world_delete_node(d->w, m);
}

/* A cordon on top of one, or of a mark that says who cordoned, leaves no trace that anybody could honour:
 * not drawn. */
static void act_cordon(Draw *d) {
        size_t m = draw_machine(d);

        if (is_in_service(d, m) && !sim_world_unschedulable(d->w, m) &&
            !sim_world_annotation(d->w, m, "vesper.sh/cordoned-by-agent"))
                sim_world_admin_cordon(d->w, m);
}

static void act_uncordon(Draw *d) {
        size_t m = draw_machine(d);

        if (is_in_service(d, m) && sim_world_unschedulable(d->w, m))
                sim_world_admin_uncordon(d->w, m);
}

static void act_reboot(Draw *d) {
        size_t m = draw_machine(d);

        if (is_in_service(d, m) && !timer_is_armed(d->w->machines[m].boot))
                sim_world_reboot(d->w, m, (5 + below(d, 60)) * SEC);
}

static void act_kill(Draw *d) {
        SimProcess *p = d->w->n_processes > 0 ? d->w->processes[below(d, d->w->n_processes)] : NULL;

        if (p && p->life)
                sim_process_kill(p, USEC_PER_MSEC + below(d, 20 * SEC));
}

static void act_kill_at_step(Draw *d) {
        SimProcess *p = d->w->n_processes > 0 ? d->w->processes[below(d, d->w->n_processes)] : NULL;

        if (p && p->life)
                sim_process_plan_kill(p, &(SimKill){ .step = p->life->n_steps + 1 + below(d, 100),
                                                     .restart_usec = USEC_PER_MSEC + below(d, 20 * SEC) });
}

static void act_kill_at_write(Draw *d) {
        SimProcess *p = d->w->n_processes > 0 ? d->w->processes[below(d, d->w->n_processes)] : NULL;

        if (p && p->life)
                sim_process_plan_kill(p, &(SimKill){ .write = p->life->n_writes + 1,
                                                     .fate = SIM_DISK_DIE_BEFORE + (SimDiskFate) below(d, 3),
                                                     .restart_usec = USEC_PER_MSEC + below(d, 20 * SEC) });
}

static void act_pause(Draw *d) {
        SimProcess *p = d->w->n_processes > 0 ? d->w->processes[below(d, d->w->n_processes)] : NULL;

        if (p && p->life)
                sim_process_pause(p, below(d, 40 * SEC));
}

static void act_pause_leader(Draw *d) {
        SimProcess *p = sim_world_leader(d->w);

        if (p)
                sim_process_pause(p, below(d, 60 * SEC));
}

static void act_cut(Draw *d) {
        fake_api_cut_watches(fake_cluster_api(d->w->cluster));
        if (one_in(d, 2))
                fake_cluster_compact(d->w->cluster);
}

static void act_stall(Draw *d) {
        fake_api_stall_watches(fake_cluster_api(d->w->cluster), sim_world_now(d->w) + below(d, 60 * SEC));
}

static void act_api_away(Draw *d) {
        fake_api_away_until(fake_cluster_api(d->w->cluster), sim_world_now(d->w) + below(d, 40 * SEC));
}

static void act_metadata(Draw *d) {
        FakeImds *imds = d->w->machines[draw_machine(d)].imds;
        unsigned n = 1 + (unsigned) below(d, 5);

        switch (below(d, 4)) {
        case 0:
                fake_imds_hang(imds, FAKE_IMDS_ALL, n);
                break;
        case 1:
                fake_imds_fail(imds, FAKE_IMDS_ALL, n, 503);
                break;
        case 2:
                fake_imds_garble(imds, FAKE_IMDS_DATA, n, "{\"action\":");
                break;
        default:
                fake_imds_revoke(imds);
                break;
        }
}

static void act_cloud(Draw *d) {
        if (one_in(d, 2))
                fake_ec2_throttle(d->w->ec2, 1 + (unsigned) below(d, 4), 0);
        else
                fake_ec2_fail(d->w->ec2, 1 + (unsigned) below(d, 4), 500, "InternalError",
                              "An internal error has occurred");
}

static void act_budget(Draw *d) {
        SimWorld *w = d->w;

        if (w->options.pdb_min > 0)
                sim_world_set_pdb_min(w, w->options.n_pods - (unsigned) below(d, 4));
}

static void act(Draw *d) {
        static void (*const often[])(Draw * d) = { act_notice, act_delete };
        static void (*const all[])(Draw * d) = {
                act_withdraw,     act_cordon,        act_uncordon, act_reboot,       act_kill,
                act_kill_at_step, act_kill_at_write, act_pause,    act_pause_leader, act_cut,
                act_stall,        act_api_away,      act_metadata, act_cloud,        act_budget,
        };

        if (one_in(d, 4))
                often[below(d, ELEMENTSOF(often))](d);
        else
                all[below(d, ELEMENTSOF(all))](d);
}

/* -- how it ends ------------------------------------------------------------------------------- */

/* Of a machine that was told to end, or whose node was deleted, nothing is left; one that may stay serves
 * again. */
static bool is_at_its_end(SimWorld *w, void *userdata) {
        size_t m = (size_t) (uintptr_t) userdata;

        if (!sim_world_node(w, m))
                return !sim_world_claim(w, m);
        return !is_being_deleted(w, userdata);
}

static bool all_at_their_end(SimWorld *w, void *userdata) {
        return sim_world_all(w, is_at_its_end);
}

static void stop_faults(Draw *d) {
        SimWorld *w = d->w;

        sim_faults_chances(w->faults, &(SimChances){ 0 }, 0);
        for (size_t i = 0; i < w->n_processes; i++) {
                SimProcess *p = w->processes[i];

                sim_process_plan_kill(p, &(SimKill){ 0 });
                if (!p->life && !(p->machine && (p->machine->ended || timer_is_armed(p->machine->boot))))
                        sim_process_start(p);
        }
        if (w->options.pdb_min > 0)
                sim_world_set_pdb_min(w, w->options.n_pods - 1);
}

static bool play(Draw *d, const char **ret_where) {
        SimWorld *w = d->w;
        SimChances chances = draw_chances(d);
        usec_t end;

        *ret_where = "the world settles";
        if (!sim_world_run_until(w, 60 * SEC, pods_are_back, NULL) ||
            (w->options.n_coordinators > 0 && !sim_world_run_until(w, 60 * SEC, all_adopted, NULL)))
                return false;

        *ret_where = "things happen";
        end = sim_world_now(w) + ACTION_USEC;
        sim_faults_chances(w->faults, &chances, end);
        while (sim_world_now(w) < end) {
                act(d);
                if (!sim_world_run(w, one_in(d, 3) ? below(d, 300 * USEC_PER_MSEC) : below(d, 20 * SEC)))
                        return false;
        }

        *ret_where = "all comes to its end";
        stop_faults(d);
        if (!sim_world_run_until(w, SETTLE_SEC * SEC, all_at_their_end, NULL) ||
            !sim_world_run_until(w, SETTLE_SEC * SEC, pods_are_back, NULL))
                return false;

        *ret_where = "what may stay serves again";
        for (size_t i = 0; i < w->n_machines; i++)
                if (w->machines[i].noticed)
                        sim_world_withdraw(w, i);
        if (!sim_world_run(w, SETTLE_SEC * SEC))
                return false;
        return sim_check_quiet(w->check, 3000 + 50 * w->options.n_pods +
                                                 200 * (sim_world_now(w) - 1000 * SEC) / USEC_PER_MINUTE);
}

static bool play_seed(uint64_t seed, bool trace, uint64_t *hash) {
        _cleanup_(random_freep) Random *random = NULL;
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        Draw d = { 0 };
        SimOptions o;
        const char *where;
        bool good;

        if (random_new(seed, &random) < 0)
                return false;
        d.random = random;
        o = draw_options(&d);
        d.w = w = sim_world_new(seed, &o);
        good = play(&d, &where);
        if (trace)
                fputs(sim_trace_text(w->trace), stdout);
        if (!good) {
                sim_world_report(w, where);
                fprintf(stderr,
                        "its world: %u nodes, %u agents, %u coordinators, %u pods, budget %u, grace %u s, "
                        "stop %u s, T %u s\n",
                        o.n_nodes, o.n_agents, o.n_coordinators, o.n_pods, o.pdb_min, o.grace_sec,
                        o.stop_sec, o.tgp_sec);
                fprintf(stderr, "play it again: sim-random --trace --seeds %" PRIu64 " 1\n", seed);
        }
        *hash = hash64(&(uint64_t[2]){ *hash, sim_trace_hash(w->trace) }, 2 * sizeof(uint64_t));
        return good;
}

int main(int argc, char **argv) {
        bool trace = argc > 1 && streq(argv[1], "--trace");
        char **args = argv + 1 + trace;
        uint64_t from, count, hash = 0;

        if (argc != 4 + trace || !streq(args[0], "--seeds") || parse_uint64(args[1], &from) < 0 ||
            parse_uint64(args[2], &count) < 0) {
                fprintf(stderr, "usage: sim-random [--trace] --seeds FROM COUNT\n");
                return 2;
        }
        for (uint64_t seed = from; seed < from + count; seed++)
                if (!play_seed(seed, trace, &hash))
                        return 1;
        printf("seeds %" PRIu64 "..%" PRIu64 ": no violation; hash of their traces %016" PRIx64 "\n", from,
               from + count - 1, hash);
        return 0;
}
