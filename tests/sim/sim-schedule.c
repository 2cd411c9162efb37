/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-schedule.h"

#include <inttypes.h>
#include <stdio.h>

#include "fake-controllers.h"
#include "sim-check.h"
#include "sim-load.h"
#include "sim-process.h"
#include "sim-restore.h"
#include "sim-webhook.h"

/* After what was in the way everybody may need so long to find back. */
#define TROUBLE_USEC (75 * USEC_PER_SEC)
/* ... but a watch that spoke late has lost nothing. */
#define MUTE_TROUBLE_USEC (10 * USEC_PER_SEC)
/* So that its draws are not those of the other entries. */
#define GARBLING_SEED UINT64_C(0x70726f746f627566)
#define MUTE_SEED UINT64_C(0x6d7574656b696e64)
#define DELETES_SEED UINT64_C(0x64656c6574657321)
#define RUSH_SEED UINT64_C(0x7275736861686561)
#define SILENCE_SEED UINT64_C(0x6b7562656c657400)
#define LATE_SEED UINT64_C(0x6c617465616e7377)
#define OPENED_SEED UINT64_C(0x6f70656e6c617465)
#define RESTORE_SEED UINT64_C(0x657463647574696c)
#define PERSONS_SEED UINT64_C(0x706572736f6e7321)
#define STOPS_SEED UINT64_C(0x6b7562656c737470)
#define HOOKED_SEED UINT64_C(0x686f6f6b656421)
#define RIVALS_SEED UINT64_C(0x726976616c73212e)
#define TWINS_SEED UINT64_C(0x7477696e7477696e)

/* -- arguments --------------------------------------------------------------------------------- */

typedef enum ArgKind {
        ARG_NONE,
        ARG_MACHINE, /* the last two are left alone, so that there is always a place to go */
        ARG_PROCESS,
        ARG_WORKLOAD,
        ARG_NUMBER,
        ARG_SEC,
        ARG_MSEC,
        ARG_PERMILLE,
        ARG_CHOICE,
} ArgKind;

typedef struct Arg {
        ArgKind kind;
        const char *label;
        uint64_t min, max;
        const char *const *choices;
} Arg;

typedef struct Play {
        SimWorld *w;
        const SimEntry *entry;
        uint64_t v[SIM_ENTRY_ARGS];
} Play;

typedef struct Act {
        const char *name;
        unsigned weight; /* how often it is drawn, beside the others */
        void (*play)(const Play *p);
        Arg args[SIM_ENTRY_ARGS];
} Act;

static uint64_t arg_value(const Arg *a, const SimOptions *o, uint64_t drawn) {
        switch (a->kind) {
        case ARG_NONE:
                return 0;
        case ARG_MACHINE:
                return drawn % (o->n_nodes - 2);
        case ARG_PROCESS:
                return drawn % MAX(o->n_agents + o->n_coordinators, 1u);
        case ARG_WORKLOAD:
                return drawn % MAX(o->n_workloads, 1u);
        case ARG_NUMBER:
        case ARG_SEC:
        case ARG_MSEC:
        case ARG_PERMILLE:
        case ARG_CHOICE:
                return a->min + drawn % (a->max - a->min + 1);
        }
        return 0;
}

static void arg_print(const Arg *a, const SimOptions *o, uint64_t v, StrBuf *b) {
        strbuf_addf(b, "%s%s", a->label, *a->label ? " " : "");
        switch (a->kind) {
        case ARG_NONE:
                return;
        case ARG_MACHINE:
                strbuf_addf(b, "n%" PRIu64, v);
                return;
        case ARG_PROCESS:
                if (v < o->n_agents)
                        strbuf_addf(b, "agent-n%" PRIu64, v);
                else
                        strbuf_addf(b, "coordinator-%c", 'a' + (int) (v - o->n_agents));
                return;
        case ARG_WORKLOAD:
                strbuf_addf(b, "w%" PRIu64, v);
                return;
        case ARG_NUMBER:
                strbuf_addf(b, "%" PRIu64, v);
                return;
        case ARG_SEC:
                strbuf_addf(b, "%" PRIu64 " s", v);
                return;
        case ARG_MSEC:
                strbuf_addf(b, "%" PRIu64 ".%03" PRIu64 " s", v / 1000, v % 1000);
                return;
        case ARG_PERMILLE:
                strbuf_addf(b, "%" PRIu64 " permille", v);
                return;
        case ARG_CHOICE:
                strbuf_add(b, a->choices[v]);
                return;
        }
}

/* -- who is meant ------------------------------------------------------------------------------ */

static bool is_there(SimWorld *w, size_t m) {
        return sim_world_node(w, m) && !w->machines[m].ended;
}

static bool is_in_service(SimWorld *w, size_t m) {
        return is_there(w, m) && !fj_get(sim_world_node(w, m), "metadata", "deletionTimestamp", NULL);
}

static bool is_up(SimWorld *w, size_t m) {
        return !timer_is_armed(w->machines[m].boot) && !w->machines[m].crashed_for_good;
}

/* NULL: it does not run. */
static SimProcess *living(const Play *p, uint64_t i) {
        SimProcess *process = i < p->w->n_processes ? p->w->processes[i] : NULL;

        return process && process->life ? process : NULL;
}

static usec_t sec(uint64_t v) {
        return v * USEC_PER_SEC;
}

static usec_t msec(uint64_t v) {
        return v * USEC_PER_MSEC;
}

/* -- clouds ------------------------------------------------------------------------------------ */

static void play_notice(const Play *p) {
        SimWorld *w = p->w;
        size_t m = p->v[0];

        /* One to a boot: an id stands for one occurrence. */
        if (!is_there(w, m) || w->machines[m].noticed ||
            (w->machines[m].deadline_usec != USEC_INFINITY && w->machines[m].n_boots == w->machines[m].noticed_boot))
                return;
        sim_world_notice(w, m, (unsigned) p->v[1]);
        if (p->v[2] == 1)
                sim_load_take(w, m, sec(p->v[1]));
}

/* To one that is being deleted: the earlier of two deadlines counts. */
static void play_notice_deleted(const Play *p) {
        SimWorld *w = p->w;

        for (size_t i = 0; i < w->n_machines; i++) {
                size_t m = (p->v[0] + i) % w->n_machines;
                Play again = { w, p->entry, { m, p->v[1] } };

                if (is_there(w, m) && !is_in_service(w, m)) {
                        play_notice(&again);
                        return;
                }
        }
}

/* Without a word. */
static void play_take(const Play *p) {
        if (is_there(p->w, p->v[0]))
                sim_load_take(p->w, p->v[0], 0);
}

/* EC2 gives two minutes; whoever reads of more takes its own clock to be behind. */
#define NOTICE_MAX_SEC 120u

static void play_move_notice(const Play *p) {
        if (p->w->machines[p->v[0]].noticed && is_there(p->w, p->v[0]))
                sim_world_move_notice(p->w, p->v[0], MIN((unsigned) p->v[1], NOTICE_MAX_SEC));
}

/* It came to nothing after all. */
static void play_withdraw(const Play *p) {
        if (p->w->machines[p->v[0]].noticed)
                sim_world_withdraw(p->w, p->v[0]);
}

static void play_metadata(const Play *p) {
        FakeImds *imds = p->w->machines[p->v[0]].imds;
        unsigned n = (unsigned) p->v[2];

        switch (p->v[1]) {
        case 0:
                fake_imds_hang(imds, FAKE_IMDS_ALL, n);
                return;
        case 1:
                fake_imds_fail(imds, FAKE_IMDS_ALL, n, 503);
                return;
        case 2:
                fake_imds_garble(imds, FAKE_IMDS_DATA, n, "{\"action\":");
                return;
        case 3:
                fake_imds_revoke(imds);
                return;
        case 4:
                fake_imds_fail(imds, FAKE_IMDS_ALL, n, 404);
                return;
        case 5:
                fake_imds_garble(imds, FAKE_IMDS_DATA, n,
                                 "{\"action\":\"dance\",\"time\":\"2027-01-15T09:00:00Z\"}");
                return;
        case 6:
                fake_imds_garble(imds, FAKE_IMDS_DATA, n, "{\"action\":\"terminate\",\"time\":\"soon\"}");
                return;
        case 7:
                fake_imds_set_instance_id(imds, NULL);
                return;
        default:
                fake_imds_set_instance_id(imds, p->w->machines[p->v[0]].instance);
                return;
        }
}

/* Eventual consistency. Twice in a row nobody could tell from the truth. */
static void blink(SimWorld *w) {
        if (w->cloud_was_blind)
                return;
        w->cloud_was_blind = true;
        fake_ec2_garble(w->ec2, 1,
                        "<DescribeInstancesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">"
                        "<requestId>r</requestId><reservationSet/></DescribeInstancesResponse>");
}

static void play_cloud(const Play *p) {
        if (p->v[0] == 0)
                fake_ec2_throttle(p->w->ec2, (unsigned) p->v[1], 0);
        else if (p->v[0] == 2)
                blink(p->w);
        else if (p->v[0] == 1)
                fake_ec2_fail(p->w->ec2, (unsigned) p->v[1], 500, "InternalError",
                              "An internal error has occurred");
}

/* -- people ------------------------------------------------------------------------------------ */

static void play_delete(const Play *p) {
        if (p->w->options.n_coordinators == 0 || !is_in_service(p->w, p->v[0]) ||
            !fj_get(sim_world_node(p->w, p->v[0]), "metadata", "finalizers", NULL))
                return;
        if (p->w->webhook)
                sim_webhook_delete(p->w->webhook, p->v[0], p->entry->seed % 4 == 0);
        else
                sim_world_delete_node(p->w, p->v[0]);
}

/* Two Nodes say that they are one machine: this one, the other, or both are deleted. */
static void play_twins(const Play *p) {
        if (p->w->options.n_coordinators == 0 || !is_there(p->w, p->v[0]))
                return;
        sim_load_add_twin(p->w, p->v[0]);
        if (p->v[1] % 2 == 1)
                sim_load_delete_twin(p->w, p->v[0]);
        if (p->v[1] >= 2)
                play_delete(p);
}

/* A second claim of this machine comes, or goes. */
static void play_rival(const Play *p) {
        if (p->w->options.n_coordinators == 0 || p->w->options.no_pool)
                return;
        if (p->v[1] < 2)
                sim_load_add_rival(p->w, p->v[0]);
        else
                sim_load_delete_rival(p->w, p->v[0]);
}

/* Two of three pause, so that some are found paused; what is paused at the end of the load is resumed then. */
static void play_paused(const Play *p) {
        if (p->w->options.n_coordinators == 0 || p->w->options.no_pool)
                return;
        if (p->v[0] < 2)
                sim_load_pause(p->w, p->v[0] == 1, true);
        else
                for (int all = 0; all < 2; all++)
                        sim_load_pause(p->w, all, false);
}

static void play_unmanaged(const Play *p) {
        if (p->w->options.n_coordinators > 0 && is_in_service(p->w, p->v[0]))
                sim_load_unmanage(p->w, p->v[0], p->v[1] == 0);
}

static void play_forced(const Play *p) {
        if (p->w->options.n_coordinators > 0 && is_there(p->w, p->v[0]) && !is_in_service(p->w, p->v[0]) &&
            fj_get(sim_world_claim(p->w, p->v[0]), "metadata", "deletionTimestamp", NULL))
                sim_load_force(p->w, p->v[0], (unsigned) p->v[1]);
}

/* Several together, as a pool is renewed. */
static void play_rush(const Play *p) {
        for (size_t i = 0; i <= p->v[1]; i++) {
                Play one = { p->w, p->entry, { (p->v[0] + i) % (p->w->options.n_nodes - 2) } };

                play_delete(&one);
        }
}

/* By accident: a kubelet, or an editor, may do so. */
static void play_lose_finalizer(const Play *p) {
        if (p->w->options.n_coordinators > 0 && is_in_service(p->w, p->v[0]))
                fake_merge(p->w->cluster, FAKE_NODES, NULL, p->w->machines[p->v[0]].node,
                           "{'metadata':{'finalizers':null}}");
}

/* A cordon on top of one, or of a mark that says who cordoned, leaves no trace that anybody could honour:
 * passed over. */
static void play_cordon(const Play *p) {
        if (is_in_service(p->w, p->v[0]) && !sim_world_unschedulable(p->w, p->v[0]) &&
            !sim_world_annotation(p->w, p->v[0], "vesper.sh/cordoned-by-agent"))
                sim_world_admin_cordon(p->w, p->v[0]);
}

static void play_uncordon(const Play *p) {
        if (is_in_service(p->w, p->v[0]) && sim_world_unschedulable(p->w, p->v[0]))
                sim_world_admin_uncordon(p->w, p->v[0]);
}

/* The machine is dead, but its cloud says that it runs; somebody who wants to be rid of it reads no manual. */
static void play_tear(const Play *p) {
        /* Where another Node says that it is that machine, too, that is the one that is torn away. */
        if (p->w->options.n_coordinators > 0 && is_there(p->w, p->v[0]) && is_up(p->w, p->v[0]) &&
            p->w->machines[p->v[0]].twin_usec == 0)
                sim_load_tear_node(p->w, p->v[0]);
}

/* At a time when no watch tells anybody. */
static void play_uncordon_unheard(const Play *p) {
        if (!is_in_service(p->w, p->v[0]) || !sim_world_unschedulable(p->w, p->v[0]))
                return;
        fake_api_stall_watches(fake_cluster_api(p->w->cluster), sim_world_now(p->w) + sec(p->v[1]));
        sim_world_admin_uncordon(p->w, p->v[0]);
}

static void play_delete_claim(const Play *p) {
        if (is_in_service(p->w, p->v[0]) || !sim_world_node(p->w, p->v[0]))
                sim_load_delete_claim(p->w, p->v[0]);
}

static bool comes_back(const SimWorkload *l) {
        return l->n_pods > 0 && l->kind != SIM_BARE;
}

/* Nobody else counts the pods of bare ones: only as many as there are may be asked for. */
static void play_budget(const Play *p) {
        const SimWorkload *l = &p->w->options.workloads[p->v[0]];
        static const SimBudgetKind kinds[] = { SIM_BUDGET_MIN, SIM_BUDGET_MAX, SIM_BUDGET_MIN_PERCENT,
                                               SIM_BUDGET_MAX_PERCENT };
        SimBudget b = { kinds[p->v[1]], (unsigned) p->v[2] };

        if (p->w->options.n_workloads == 0 || l->n_pods == 0)
                return;
        if (!comes_back(l))
                b.kind = SIM_BUDGET_MIN;
        if (b.kind == SIM_BUDGET_MIN)
                b.value = l->n_pods - MIN(b.value, l->n_pods);
        else if (b.kind != SIM_BUDGET_MAX)
                b.value *= 20;
        sim_workload_set_budget(p->w, (unsigned) p->v[0], 0, &b);
}

static void play_scale(const Play *p) {
        const SimWorkload *l = &p->w->options.workloads[p->v[0]];

        if (p->w->options.n_workloads > 0 && comes_back(l))
                sim_workload_scale(p->w, (unsigned) p->v[0], (unsigned) (l->n_pods * p->v[1] / 100));
}

static void play_delete_pod(const Play *p) {
        sim_load_delete_pod(p->w, p->v[0], p->v[1] == 1);
}

static void play_finish_pod(const Play *p) {
        sim_load_finish_pod(p->w, p->v[0]);
}

static void play_protect_pod(const Play *p) {
        sim_load_protect_pod(p->w, p->v[0], (unsigned) p->v[1] + 1);
}

/* Until the load is over. */
static void play_hook(const Play *p) {
        static const char *const answers[] = { "403 it is being moved", "429 it is being moved", "500 no route to host",
                                               "400" };

        sim_load_hook_pods(p->w, p->v[0], answers[p->v[1]]);
}

static void play_late_pod(const Play *p) {
        _cleanup_free_ char *name = MUST(strf("late-%u", p->entry->number));

        if (is_there(p->w, p->v[0]))
                sim_world_bind_late_pod(p->w, p->v[0], name, p->entry->seed % 2);
}

/* -- machines and processes -------------------------------------------------------------------- */

static void play_reboot(const Play *p) {
        if (is_in_service(p->w, p->v[0]) && is_up(p->w, p->v[0]))
                sim_world_reboot(p->w, p->v[0], sec(p->v[1]));
}

/* So long, or for good. Now and then its cloud shows it to nobody, once; or says that it is stopped, for as long
 * as it is away. */
static void play_crash(const Play *p) {
        usec_t away = p->v[2] == 0 ? USEC_INFINITY : sec(p->v[1]);

        if (p->entry->seed % 2 == 0)
                blink(p->w);
        if (!is_there(p->w, p->v[0]) || !is_up(p->w, p->v[0]))
                return;
        if (p->entry->seed % 5 < 2)
                sim_load_switch_off(p->w, p->v[0], away);
        else
                sim_load_crash(p->w, p->v[0], away);
}

static void play_kubelet(const Play *p) {
        if (p->entry->seed % 2 == 0)
                blink(p->w);
        if (is_there(p->w, p->v[0]) && is_up(p->w, p->v[0]))
                sim_load_stop_kubelet(p->w, p->v[0], sec(p->v[1]));
}

/* So long that somebody asks for its machine. */
static void play_silence(const Play *p) {
        if (is_there(p->w, p->v[0]) && is_up(p->w, p->v[0]))
                sim_load_stop_kubelet(p->w, p->v[0], sec(p->v[1]));
}

/* About as long as it takes until its Node is not Ready, and a little longer: nearly what a pool repairs. */
static void play_falter(const Play *p) {
        if (is_there(p->w, p->v[0]) && is_up(p->w, p->v[0]))
                sim_load_stop_kubelet(p->w, p->v[0], sec(p->v[1]));
}

/* Not by how much, but how: seconds, minutes, more than a cloud's signatures allow, hours. */
static void play_clock(const Play *p) {
        static const int64_t off_sec[] = { 0, 5, -5, 70, -70, 1000, -1000, 7200, -7200 };

        if (p->v[0] < p->w->n_processes)
                sim_process_set_clock(p->w->processes[p->v[0]], off_sec[p->v[1]] * (int64_t) USEC_PER_SEC);
}

static void play_disk(const Play *p) {
        if (p->v[0] < p->w->n_processes)
                p->w->processes[p->v[0]]->failing_writes = (unsigned) p->v[1];
}

static void play_kill(const Play *p) {
        SimProcess *process = living(p, p->v[0]);

        if (process)
                sim_process_kill(process, msec(p->v[1]));
}

static void play_kill_at_step(const Play *p) {
        SimProcess *process = living(p, p->v[0]);

        if (process)
                sim_process_plan_kill(process, &(SimKill){ .step = process->life->n_steps + p->v[1],
                                                           .restart_usec = msec(p->v[2]) });
}

static void play_kill_at_write(const Play *p) {
        SimProcess *process = living(p, p->v[0]);

        if (process)
                sim_process_plan_kill(process, &(SimKill){ .write = process->life->n_writes + 1,
                                                           .fate = SIM_DISK_DIE_BEFORE + (SimDiskFate) p->v[1],
                                                           .restart_usec = msec(p->v[2]) });
}

static void play_pause(const Play *p) {
        SimProcess *process = living(p, p->v[0]);

        if (process)
                sim_process_pause(process, msec(p->v[1]));
}

static void play_pause_leader(const Play *p) {
        SimProcess *process = sim_world_leader(p->w);

        if (process)
                sim_process_pause(process, msec(p->v[0]));
}

/* In the middle of what it does. */
static void play_pause_leader_at_step(const Play *p) {
        SimProcess *process = sim_world_leader(p->w);

        if (process)
                sim_process_plan_pause(process, p->v[0], msec(p->v[1]));
}

/* -- the API server ---------------------------------------------------------------------------- */

static void play_cut(const Play *p) {
        fake_api_cut_watches(fake_cluster_api(p->w->cluster));
        if (p->v[0] == 1)
                fake_cluster_compact(p->w->cluster);
}

static void play_stall(const Play *p) {
        fake_api_stall_watches(fake_cluster_api(p->w->cluster), sim_world_now(p->w) + msec(p->v[0]));
}

static const FakeResourceId mute_kinds[] = { FAKE_NODES,      FAKE_PODS,      FAKE_PDBS,
                                             FAKE_NODECLAIMS, FAKE_NODEPOOLS, FAKE_VOLUMEATTACHMENTS };

static void play_mute(const Play *p) {
        fake_api_mute(fake_cluster_api(p->w->cluster), mute_kinds[p->v[0]],
                      sim_world_now(p->w) + msec(p->v[1]));
}

/* Somebody loses patience with a node that goes. */
static void play_deletes_unheard(const Play *p) {
        SimWorld *w = p->w;

        for (size_t i = 0; i < w->n_machines; i++) {
                size_t m = (p->v[0] + i) % w->n_machines;

                if (!is_there(w, m) || (is_in_service(w, m) && !w->machines[m].noticed))
                        continue;
                fake_api_mute(fake_cluster_api(w->cluster), FAKE_PODS, sim_world_now(w) + sec(p->v[1]));
                sim_load_delete_pods_of(w, m);
                return;
        }
}

static void play_disorder(const Play *p) {
        fake_api_disorder_watches(fake_cluster_api(p->w->cluster), sim_world_now(p->w) + sec(p->v[0]));
        if (p->v[1] == 1)
                fake_api_cut_watches(fake_cluster_api(p->w->cluster));
}

static void play_api_away(const Play *p) {
        fake_api_away_until(fake_cluster_api(p->w->cluster), sim_world_now(p->w) + msec(p->v[0]));
}

/* -- the way to it ----------------------------------------------------------------------------- */

static void add_window(const Play *p, SimFaultKind kind, uint64_t permille, usec_t usec, usec_t max_usec,
                       const SimProcess *who) {
        sim_faults_add(p->w->faults, &(SimWindow){ .kind = kind,
                                                   .until_usec = sim_world_now(p->w) + usec,
                                                   .permille = (unsigned) permille,
                                                   .max_usec = max_usec,
                                                   .who = who ? who->name : NULL,
                                                   .seed = p->entry->seed });
}

static void play_errors(const Play *p) {
        static const SimFaultKind kinds[] = { SIM_FAULT_ERROR,        SIM_FAULT_FLOW_CONTROL,
                                              SIM_FAULT_LIE,          SIM_FAULT_REFUSE,
                                              SIM_FAULT_LOSE_REQUEST, SIM_FAULT_LOSE_REPLY,
                                              SIM_FAULT_CLOUD };

        add_window(p, kinds[p->v[0]], p->v[1], sec(p->v[2]), 0, NULL);
}

/* Everybody asks again. */
static void play_garble(const Play *p) {
        add_window(p, SIM_FAULT_GARBLED, p->v[0], sec(p->v[1]), 0, NULL);
        fake_api_cut_watches(fake_cluster_api(p->w->cluster));
}

static void play_slow(const Play *p) {
        add_window(p, SIM_FAULT_SLOW, p->v[1], sec(p->v[2]), msec(p->v[0]), NULL);
}

/* Lists and reads of one node's pods, of Nodes: what they say was true when they were answered. */
static void play_late_answers(const Play *p) {
        add_window(p, SIM_FAULT_LATE_ANSWER, p->v[1], sec(p->v[2]), msec(p->v[0]), NULL);
}

static void close_budgets(const Play *p) {
        for (unsigned i = 0; i < p->w->options.n_workloads; i++)
                play_budget(&(Play){ p->w, p->entry, { i, 0, 0 } });
}

/* Since that backup a machine is told of its end, and budgets hold its pods until its time comes. */
static void play_restore(const Play *p) {
        sim_restore_plan(p->w, (SimRestoreKind) p->v[0], sec(p->v[1]));
        if (!is_in_service(p->w, p->v[2]) || sim_world_unschedulable(p->w, p->v[2]))
                return;
        close_budgets(p);
        play_notice(&(Play){ p->w, p->entry, { p->v[2], NOTICE_MAX_SEC } });
}

/* A machine is to end, and budgets hold its pods. A person opens its node just when its agent has read that, whose
 * answer takes almost as long as it waits; no watch tells. */
static void play_open_once_read(const Play *p) {
        SimWorld *w = p->w;
        size_t m = p->v[0];

        if (!is_in_service(w, m) || !w->machines[m].agent)
                return;
        play_notice(&(Play){ w, p->entry, { m, NOTICE_MAX_SEC } });
        close_budgets(p);
        add_window(p, SIM_FAULT_LATE_ANSWER, 1000, sec(p->v[2]), msec(p->v[1]), w->machines[m].agent);
        sim_world_open_once_read(w, m, sec(p->v[2]));
}

static void play_turn_away(const Play *p) {
        add_window(p, SIM_FAULT_TURNED_AWAY, p->v[0], sec(p->v[1]), 0, NULL);
}

/* Whatever is the way of Leases, and of nothing else: it gets slow, and then nothing comes any more. */
static void play_lease(const Play *p) {
        usec_t turn = sim_world_now(p->w) + sec(p->v[1]);

        add_window(p, SIM_FAULT_LEASE_SLOW, 1000, sec(p->v[1]), msec(p->v[0]), NULL);
        sim_faults_add(p->w->faults, &(SimWindow){ .kind = SIM_FAULT_LEASE_LOST,
                                                   .from_usec = turn,
                                                   .until_usec = turn + sec(p->v[2]),
                                                   .permille = 1000,
                                                   .seed = p->entry->seed });
}

static void play_partition(const Play *p) {
        SimProcess *who = p->v[0] < p->w->n_processes ? p->w->processes[p->v[0]] : NULL;

        if (!who)
                return;
        add_window(p, SIM_FAULT_PARTITION, 1000, sec(p->v[1]), 0, who);
        if (p->v[2] == 0)
                sim_process_hold(who, SIM_API, sec(p->v[1]));
        else
                sim_process_cut_streams(who);
}

static void play_partition_cloud(const Play *p) {
        SimProcess *who = p->v[0] < p->w->n_processes ? p->w->processes[p->v[0]] : NULL;

        if (who)
                add_window(p, SIM_FAULT_PARTITION_CLOUD, 1000, sec(p->v[1]), 0, who);
}

/* -- all of them ------------------------------------------------------------------------------- */

static const char *const metadata_choices[] = { "hangs", "answers 503", "answers half a JSON",
                                                "forgets its tokens", "answers 404", "dances",
                                                "says soon", "has no instance-id", "knows its instance-id" };
static const char *const taken_choices[] = { "", "and it does" };
static const char *const budget_choices[] = { "all but", "at most", "percent/20 up", "percent/20 at most" };
static const char *const forced_choices[] = { "", "by force" };
static const char *const opt_out_choices[] = { "do-not-evict", "label do-not-evict", "karpenter's do-not-evict",
                                               "do-not-disrupt", "safe-to-evict=false" };
static const char *const crash_choices[] = { "for good", "", "" };
static const char *const clock_choices[] = { "right",        "5 s ahead",    "5 s behind",
                                             "70 s ahead",   "70 s behind",  "1000 s ahead",
                                             "1000 s behind", "2 h ahead",   "2 h behind" };
static const char *const partition_choices[] = { "in silence", "with a reset" };
static const char *const cloud_choices[] = { "throttles", "answers 500", "shows no machine once" };
static const char *const fate_choices[] = { "nothing of it lasts", "it lasts" };
static const char *const cut_choices[] = { "", "and the history compacted" };
static const char *const disorder_choices[] = { "", "and cut" };
static const char *const mute_choices[] = { "nodes",      "pods",      "poddisruptionbudgets",
                                            "nodeclaims", "nodepools", "volumeattachments" };
static const char *const twin_choices[] = { "of a Node", "of a Node, deleted", "of a Node that is deleted", "of a Node, both deleted" };
static const char *const rival_choices[] = { "comes", "comes, too", "goes" };
static const char *const paused_choices[] = { "are paused", "of all pools are paused", "are resumed" };
static const char *const hook_choices[] = { "with 403", "with 429", "with nothing", "without explanation" };
static const char *const unmanaged_choices[] = { "none of vesper's", "vesper's" };
static const char *const restore_choices[] = { "plainly", "with a bump", "and all restart" };
static const char *const error_choices[] = { "errors",         "flow control",   "lies",      "refused connections",
                                             "lost requests", "lost answers", "cloud faults" };

#define MACHINE { .kind = ARG_MACHINE, .label = "" }
#define WORKLOAD { .kind = ARG_WORKLOAD, .label = "" }
#define PROCESS { .kind = ARG_PROCESS, .label = "" }
#define SECONDS(l, a, b) { .kind = ARG_SEC, .label = l, .min = a, .max = b }
#define MILLISECONDS(l, a, b) { .kind = ARG_MSEC, .label = l, .min = a, .max = b }
#define NUMBER(l, a, b) { .kind = ARG_NUMBER, .label = l, .min = a, .max = b }
#define PERMILLE(a, b) { .kind = ARG_PERMILLE, .label = "", .min = a, .max = b }
#define CHOICE(c) { .kind = ARG_CHOICE, .label = "", .max = ELEMENTSOF(c) - 1, .choices = c }

static const Act acts[] = {
        { "notice", 10, play_notice, { MACHINE, SECONDS("in", 20, 120), CHOICE(taken_choices) } },
        { "notice to a deleted", 5, play_notice_deleted, { MACHINE, SECONDS("in", 10, 90) } },
        { "notice moves", 3, play_move_notice, { MACHINE, SECONDS("in", 1, 200) } },
        { "machine is taken", 2, play_take, { MACHINE } },
        { "delete node", 10, play_delete, { MACHINE } },
        { "finalizer is lost", 2, play_lose_finalizer, { MACHINE } },
        { "withdraw notice", 4, play_withdraw, { MACHINE } },
        { "cordon", 4, play_cordon, { MACHINE } },
        { "un-cordon", 4, play_uncordon, { MACHINE } },
        { "un-cordon unheard", 4, play_uncordon_unheard, { MACHINE, SECONDS("for", 20, 140) } },
        { "Node is torn away", 2, play_tear, { MACHINE } },
        { "reboot", 4, play_reboot, { MACHINE, SECONDS("for", 5, 64) } },
        { "kill", 4, play_kill, { PROCESS, MILLISECONDS("back in", 1, 20000) } },
        { "kill at step", 4, play_kill_at_step, { PROCESS, NUMBER("after", 1, 100), MILLISECONDS("back in", 1, 20000) } },
        { "kill at write", 4, play_kill_at_write, { PROCESS, CHOICE(fate_choices), MILLISECONDS("back in", 1, 20000) } },
        { "pause", 4, play_pause, { PROCESS, MILLISECONDS("for", 0, 40000) } },
        { "pause leader", 4, play_pause_leader, { MILLISECONDS("for", 0, 60000) } },
        { "pause leader at step", 5, play_pause_leader_at_step, { NUMBER("after", 1, 60), MILLISECONDS("for", 12000, 50000) } },
        { "cut watches", 4, play_cut, { CHOICE(cut_choices) } },
        { "stall watches", 4, play_stall, { MILLISECONDS("for", 0, 60000) } },
        { "API away", 4, play_api_away, { MILLISECONDS("for", 0, 40000) } },
        { "metadata", 4, play_metadata, { MACHINE, CHOICE(metadata_choices), NUMBER("times", 1, 5) } },
        { "cloud", 4, play_cloud, { CHOICE(cloud_choices), NUMBER("times", 1, 4) } },
        { "budget", 5, play_budget, { WORKLOAD, CHOICE(budget_choices), NUMBER("", 0, 4) } },
        { "scale", 5, play_scale, { WORKLOAD, NUMBER("to percent", 0, 200) } },
        { "delete pod", 3, play_delete_pod, { NUMBER("number", 0, 1000), CHOICE(forced_choices) } },
        { "pod is done", 3, play_finish_pod, { NUMBER("number", 0, 1000) } },
        { "protect pod", 3, play_protect_pod, { NUMBER("number", 0, 1000), CHOICE(opt_out_choices) } },
        { "late pod", 3, play_late_pod, { MACHINE } },
        { "delete claim", 2, play_delete_claim, { MACHINE } },
        { "crash", 4, play_crash, { MACHINE, SECONDS("for", 10, 600), CHOICE(crash_choices) } },
        { "kubelet stops", 3, play_kubelet, { MACHINE, SECONDS("for", 5, 300) } },
        { "clock", 4, play_clock, { PROCESS, CHOICE(clock_choices) } },
        { "disk fails", 3, play_disk, { PROCESS, NUMBER("writes", 1, 20) } },
        { "watches in disorder", 4, play_disorder, { SECONDS("for", 5, 120), CHOICE(disorder_choices) } },
        { "partition", 5, play_partition, { PROCESS, SECONDS("for", 1, 90), CHOICE(partition_choices) } },
        { "partition of cloud", 3, play_partition_cloud, { PROCESS, SECONDS("for", 1, 90) } },
        { "requests fail", 6, play_errors, { CHOICE(error_choices), PERMILLE(5, 150), SECONDS("for", 2, 120) } },
        { "evictions turned away", 4, play_turn_away, { PERMILLE(200, 1000), SECONDS("for", 2, 60) } },
        { "Lease gets lost", 3, play_lease, { MILLISECONDS("after", 2000, 4900), SECONDS("for", 3, 20), SECONDS("and lost for", 5, 60) } },
        { "requests crawl", 3, play_slow, { MILLISECONDS("up to", 1, 5000), PERMILLE(5, 300), SECONDS("for", 2, 120) } },
        { "protobuf is cut", 0, play_garble, { PERMILLE(20, 1000), SECONDS("for", 5, 60) } }, /* drawn apart */
        { "one kind is unheard", 0, play_mute, { CHOICE(mute_choices), MILLISECONDS("for", 0, 60000) } }, /* so is this */
        { "deletes are unheard", 0, play_deletes_unheard, { MACHINE, SECONDS("for", 10, 90) } }, /* and this */
        { "delete nodes", 0, play_rush, { MACHINE, NUMBER("and as many of the next as", 1, 5) } }, /* and this */
        { "answers are late", 0, play_late_answers, { MILLISECONDS("up to", 4000, 14500), PERMILLE(200, 1000), SECONDS("for", 20, 90) } }, /* and this */
        { "opened once read", 0, play_open_once_read, { MACHINE, MILLISECONDS("reads take up to", 3000, 4900), SECONDS("for", 30, 90) } }, /* and this */
        { "etcd is restored", 0, play_restore, { CHOICE(restore_choices), SECONDS("from a backup of now in", 1, 60), { .kind = ARG_MACHINE, .label = "which does not tell of the end of" } } }, /* and this */
        { "twins", 0, play_twins, { MACHINE, CHOICE(twin_choices) } }, /* and this */
        { "a second claim", 0, play_rival, { MACHINE, CHOICE(rival_choices) } }, /* and this */
        { "removals", 0, play_paused, { CHOICE(paused_choices) } }, /* and this */
        { "a node is", 0, play_unmanaged, { MACHINE, CHOICE(unmanaged_choices) } }, /* and this */
        { "removal is forced", 0, play_forced, { MACHINE, SECONDS("in", 0, 120) } }, /* and this */
        { "a webhook answers for", 0, play_hook, { WORKLOAD, CHOICE(hook_choices) } }, /* and this */
        { "kubelet falters", 0, play_falter, { MACHINE, SECONDS("for", 41, 62) } }, /* where a pool repairs */
        { "kubelet is silent", 0, play_silence, { MACHINE, SECONDS("for", 170, 300) } }, /* and this, early */
};

/* -- the schedule ------------------------------------------------------------------------------ */

static unsigned draw_act(Random *random) {
        uint64_t sum = 0, at;

        for (size_t i = 0; i < ELEMENTSOF(acts); i++)
                sum += acts[i].weight;
        at = random_below(random, sum);
        for (unsigned i = 0; i < ELEMENTSOF(acts); at -= acts[i++].weight)
                if (at < acts[i].weight)
                        return i;
        return 0;
}

static void draw_entry(SimEntry *e, Random *random) {
        e->seed = random_u64(random);
        for (size_t i = 0; i < SIM_ENTRY_ARGS; i++)
                e->args[i] = random_u64(random);
}

SimSchedule *sim_schedule_draw(Random *random, usec_t length_usec) {
        SimSchedule *s = MUST(new0(SimSchedule, 1));
        usec_t at = 0;

        while (at < length_usec) {
                int r = GREEDY_REALLOC(s->entries, s->allocated, s->n + 1);
                SimEntry *e;

                assert(r >= 0);
                e = &s->entries[s->n];
                *e = (SimEntry){ .number = (unsigned) s->n, .at_usec = at, .act = draw_act(random) };
                draw_entry(e, random);
                s->n++;
                /* Things come together more often than evenly. */
                at += random_below(random, random_below(random, 3) == 0 ? 300 * USEC_PER_MSEC
                                                                        : 20 * USEC_PER_SEC);
        }
        return s;
}

static void add_apart(SimSchedule *s, void (*play)(const Play *p), uint64_t seed, usec_t length_usec) {
        SimEntry e = { 0 };
        Random *random;
        size_t at = 0;
        int r;

        r = random_new(seed, &random);
        assert(r >= 0);
        while (acts[e.act].play != play)
                e.act++;
        e.at_usec = random_below(random, length_usec);
        draw_entry(&e, random);
        random_free(random);

        r = GREEDY_REALLOC(s->entries, s->allocated, s->n + 1);
        assert(r >= 0);
        while (at < s->n && s->entries[at].at_usec <= e.at_usec)
                at++;
        memmove(s->entries + at + 1, s->entries + at, (s->n - at) * sizeof(SimEntry));
        s->entries[at] = e;
        s->n++;
        for (; at < s->n; at++)
                s->entries[at].number = (unsigned) at;
}

void sim_schedule_add_garbling(SimSchedule *s, uint64_t seed, usec_t length_usec) {
        add_apart(s, play_garble, seed ^ GARBLING_SEED, length_usec);
}

void sim_schedule_add_mute(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_mute, (seed ^ MUTE_SEED) + n, length_usec);
}

void sim_schedule_add_deletes_unheard(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_deletes_unheard, (seed ^ DELETES_SEED) + n, length_usec);
}

void sim_schedule_add_late_answers(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_late_answers, (seed ^ LATE_SEED) + n, length_usec);
}

void sim_schedule_add_open_once_read(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_open_once_read, (seed ^ OPENED_SEED) + n, length_usec);
}

void sim_schedule_add_restore(SimSchedule *s, uint64_t seed, usec_t length_usec) {
        add_apart(s, play_restore, seed ^ RESTORE_SEED, length_usec);
}

void sim_schedule_add_twins(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_twins, (seed ^ TWINS_SEED) + n, length_usec);
}

void sim_schedule_add_rival(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_rival, (seed ^ RIVALS_SEED) + n, length_usec);
}

void sim_schedule_add_person(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        static void (*const plays[])(const Play *p) = { play_paused, play_unmanaged, play_forced };

        add_apart(s, plays[n % ELEMENTSOF(plays)], (seed ^ PERSONS_SEED) + n, length_usec);
}

void sim_schedule_add_hook(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_hook, (seed ^ HOOKED_SEED) + n, length_usec);
}

void sim_schedule_add_falter(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_falter, (seed ^ STOPS_SEED) + n, length_usec);
}

void sim_schedule_add_silence(SimSchedule *s, uint64_t seed) {
        add_apart(s, play_silence, seed ^ SILENCE_SEED, 5 * USEC_PER_SEC);
}

void sim_schedule_add_rush(SimSchedule *s, uint64_t seed, unsigned n, usec_t length_usec) {
        add_apart(s, play_rush, (seed ^ RUSH_SEED) + n, length_usec);
}

SimSchedule *sim_schedule_free(SimSchedule *s) {
        if (!s)
                return NULL;
        free(s->entries);
        return mfree(s);
}

void sim_entry_print(const SimEntry *e, const SimOptions *o, StrBuf *b) {
        const Act *act = &acts[e->act];

        strbuf_addf(b, "%4" PRIu64 ".%03" PRIu64 "  #%-3u %-20s", e->at_usec / USEC_PER_SEC,
                    e->at_usec / USEC_PER_MSEC % 1000, e->number, act->name);
        for (size_t i = 0; i < SIM_ENTRY_ARGS && act->args[i].kind != ARG_NONE; i++) {
                strbuf_add(b, i == 0 ? " " : ", ");
                arg_print(&act->args[i], o, arg_value(&act->args[i], o, e->args[i]), b);
        }
}

/* What people and clouds usually do; anything else is in somebody's way. */
static bool is_load(const Act *act) {
        static void (*const load[])(const Play *p) = { play_notice,       play_withdraw,    play_delete,
                                                       play_cordon,       play_uncordon,    play_budget,
                                                       play_scale,        play_delete_pod,  play_finish_pod,
                                                       play_protect_pod,  play_late_pod,    play_delete_claim,
                                                       play_move_notice,  play_notice_deleted, play_rush,
                                                       play_twins,        play_paused,      play_unmanaged,
                                                       play_forced,       play_hook,
                                                       play_rival };

        for (size_t i = 0; i < ELEMENTSOF(load); i++)
                if (act->play == load[i])
                        return true;
        return false;
}

bool sim_entry_is_load(const SimEntry *e) {
        return is_load(&acts[e->act]);
}

/* How long it is in the way. */
static usec_t trouble_usec(const Act *act, const Play *p) {
        usec_t usec = 0;

        if (act->play == play_clock)
                return USEC_INFINITY;
        if (act->play == play_cloud) /* each time whoever asks it waits longer */
                return TROUBLE_USEC + p->v[1] * USEC_PER_MINUTE;
        for (size_t i = 0; i < SIM_ENTRY_ARGS; i++)
                if (act->args[i].kind == ARG_SEC)
                        usec = MAX(usec, sec(p->v[i]));
                else if (act->args[i].kind == ARG_MSEC)
                        usec = MAX(usec, msec(p->v[i]));
        return usec + (act->play == play_mute ? MUTE_TROUBLE_USEC : TROUBLE_USEC);
}

void sim_entry_play(SimWorld *w, const SimEntry *e) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        Play p = { .w = w, .entry = e };

        for (size_t i = 0; i < SIM_ENTRY_ARGS; i++)
                p.v[i] = arg_value(&acts[e->act].args[i], &w->options, e->args[i]);
        sim_entry_print(e, &w->options, &b);
        sim_trace_add(w->trace, "entry", "%s", strbuf_str(&b));
        if (!sim_entry_is_load(e))
                sim_check_trouble(w->check, trouble_usec(&acts[e->act], &p));
        acts[e->act].play(&p);
}
