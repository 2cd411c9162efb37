/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-queues.h"

#include <stdlib.h>

#include "coordinator-config.h"
#include "sim-check.h"
#include "sim-load.h"
#include "sim-process.h"
#include "sim-queue.h"
#include "strv.h"

#define SEC USEC_PER_SEC
#define MIN_USEC USEC_PER_MINUTE
#define N_ENTRIES 26u
#define N_FORGED 10u /* entries more, in worlds with a forger */
#define N_MORE 8u    /* machines more, of which the brake lets fewer than all go */
#define LOAD_USEC (6 * MIN_USEC)
#define SETTLE_USEC MIN_USEC
#define FOREIGN_ALIVE "i-0feedfeedfeedfee1"
#define FOREIGN_ENDED "i-0feedfeedfeedfee2"
#define FOREIGN_UNKNOWN "i-0feedfeedfeedfee3"

/* The machines, and how many there are of each sort. With a forger, N_MORE that never had an agent are before OUTSIDE. */
enum {
        AGENT_LIVES,
        AGENT_SLEEPS,
        AGENT_DIES,
        N_AGENTS,
        KEEPER = N_AGENTS + 2, /* behind two that never had an agent */
        OUTSIDE,
        LATE,
        N_LATE = 2,
        N_MACHINES = LATE + N_LATE,
};

/* For so long after what it says time's promises are not held. */
#define LEADER_USEC (60 * SEC) /* a Lease, a poll that the dead one takes messages with, ten seconds until they come again */
#define SQS_USEC (130 * SEC)   /* a request that hangs, and the longest pause between two polls */
#define API_USEC (120 * SEC)

#define N_ARGS 4u

typedef struct Entry {
        usec_t at_usec; /* since the load began */
        size_t act;
        uint64_t args[N_ARGS];
} Entry;

typedef struct Scene {
        SimWorld *w;
        Entry entries[N_ENTRIES + N_FORGED];
        size_t n_entries, n_more;
        Random *order; /* in which messages are given out */
        usec_t join_usec[N_LATE]; /* when their Nodes come; 0: not planned; USEC_INFINITY: they have */
} Scene;

static SimQueue *queue_of(Scene *s) {
        return s->w->queue;
}

static size_t n_machines(const Scene *s) {
        return N_MACHINES + s->n_more;
}

static size_t outside(const Scene *s) {
        return OUTSIDE + s->n_more;
}

static size_t first_late(const Scene *s) {
        return LATE + s->n_more;
}

static SimMachine *machine_at(Scene *s, uint64_t n) {
        return &s->w->machines[n % n_machines(s)];
}

static size_t index_of(Scene *s, const SimMachine *m) {
        return (size_t) (m - s->w->machines);
}

/* A message that ends one machine is about any but one. */
static SimMachine *machine_to_end(Scene *s, uint64_t n) {
        size_t i = n % (n_machines(s) - 1);

        return &s->w->machines[i < KEEPER ? i : i + 1];
}

static void plan_to_join(Scene *s, const SimMachine *m, usec_t in_usec) {
        size_t i = index_of(s, m);

        if (i >= first_late(s) && s->join_usec[i - first_late(s)] == 0)
                s->join_usec[i - first_late(s)] = sim_world_now(s->w) + in_usec;
}

static void send(Scene *s, const FakeAwsEvent *e, bool by_sns) {
        sim_queue_send(queue_of(s), e, by_sns);
}

/* -- what is announced --------------------------------------------------------------------------- */

/* args: machine; action, and whether the metadata tell, too; how late its Node joins */
static void play_spot(Scene *s, const uint64_t *args) {
        static const char *const actions[] = { "terminate", "terminate", "terminate", "stop", "hibernate" };
        const char *action = actions[args[1] % ELEMENTSOF(actions)];
        SimMachine *m = machine_to_end(s, args[0]);
        size_t i = index_of(s, m);
        usec_t before = m->deadline_usec;

        if (!sim_queue_has_room(queue_of(s), m->instance))
                action = "terminate";
        plan_to_join(s, m, args[2] % 180 * SEC);
        if (m->agent && streq(action, "terminate") && args[1] / 8 % 2 && !m->ended && m->noticed_boot == 0) {
                sim_world_notice(s->w, i, 120);
                m->deadline_usec = MIN(m->deadline_usec, before); /* the queue may have told of an earlier one */
        }
        send(s, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = m->instance, .action = action }, args[1] / 16 % 4 == 0);
        if (streq(action, "terminate") && args[1] / 64 % 4 > 0)
                sim_load_take(s->w, i, 120 * SEC);
}

static void play_take_back(Scene *s, const uint64_t *args) {
        for (size_t i = 0; i < N_AGENTS; i++) {
                SimMachine *m = &s->w->machines[(args[0] + i) % N_AGENTS];

                if (m->noticed && !m->ended) {
                        sim_world_withdraw(s->w, index_of(s, m));
                        return;
                }
        }
}

static void play_rebalance(Scene *s, const uint64_t *args) {
        send(s, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_REBALANCE, .instance = machine_at(s, args[0])->instance }, args[1] % 4 == 0);
}

static void play_state(Scene *s, const uint64_t *args) {
        static const char *const states[] = { "pending", "running", "stopping", "stopped", "shutting-down", "terminated" };

        send(s,
             &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_STATE,
                              .instance = machine_to_end(s, args[0])->instance,
                              .action = states[args[1] % ELEMENTSOF(states)] },
             false);
}

/* args: a machine, and how many more; the code, its status, an instance that is nobody's; when; how late their Nodes join */
static void play_health(Scene *s, const uint64_t *args) {
        static const char *const codes[] = { "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
                                             "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED" };
        static const char *const statuses[] = { "upcoming", "upcoming", "upcoming", "open", "open" };
        static const char *const foreign[] = { NULL, NULL, FOREIGN_ENDED, FOREIGN_UNKNOWN };
        _cleanup_strv_free_ char **others = NULL;
        const char *nobody = foreign[args[1] / 64 % ELEMENTSOF(foreign)];
        usec_t lead = args[2] % 3 > 0 ? 5 * MIN_USEC + args[2] / 4 % 2400 * SEC : 5 * USEC_PER_HOUR + args[2] / 4 % 86400 * SEC;
        size_t n = args[0] / 64 % 3;
        int r = 0;

        if (!sim_queue_has_room(queue_of(s), machine_to_end(s, args[0])->instance))
                return;
        plan_to_join(s, machine_to_end(s, args[0]), args[3] % 60 * SEC);
        for (size_t k = 1; k <= n; k++) {
                SimMachine *m = machine_to_end(s, args[0] + k * (1 + args[3] / 64 % 3));

                if (!sim_queue_has_room(queue_of(s), m->instance))
                        continue;
                plan_to_join(s, m, args[3] % 60 * SEC);
                r = r < 0 ? r : strv_extend(&others, m->instance);
        }
        if (nobody && r >= 0)
                r = strv_extend(&others, nobody);
        assert(r >= 0);
        send(s,
             &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_HEALTH,
                              .instance = machine_to_end(s, args[0])->instance,
                              .others = others,
                              .action = codes[args[1] % ELEMENTSOF(codes)],
                              .status = statuses[args[1] / 8 % ELEMENTSOF(statuses)],
                              .until_wall_usec = sim_world_wall(s->w) + lead },
             false);
}

static void play_call_off(Scene *s, const uint64_t *args) {
        sim_queue_call_off(queue_of(s));
}

static void play_scale_in(Scene *s, const uint64_t *args) {
        FakeAwsEventKind kind = args[1] % 2 ? FAKE_AWS_EVENT_TERMINATE_ACTION : FAKE_AWS_EVENT_HOOK;

        (void) sim_queue_scale_in(queue_of(s), index_of(s, machine_to_end(s, args[0])), kind, args[1] / 2 % 3 == 0);
}

/* The group has no lifecycle hook "join": Auto Scaling refuses the coordinator's answer, which is no
 * error. */
static void play_launch(Scene *s, const uint64_t *args) {
        SimMachine *m = &s->w->machines[first_late(s) + args[0] % N_LATE];
        _cleanup_free_ char *token = MUST(strf("87654321-4321-4321-4321-%012zu", index_of(s, m)));

        plan_to_join(s, m, args[1] % 60 * SEC);
        send(s,
             &(FakeAwsEvent){
                     .kind = FAKE_AWS_EVENT_LAUNCH_ACTION, .instance = m->instance, .group = SIM_GROUP, .hook = "join", .token = token },
             args[1] / 64 % 2);
}

static void play_foreign(Scene *s, const uint64_t *args) {
        static const char *const instances[] = { FOREIGN_ALIVE, FOREIGN_ENDED, FOREIGN_UNKNOWN, FOREIGN_UNKNOWN };
        static const FakeAwsEventKind kinds[] = { FAKE_AWS_EVENT_SPOT, FAKE_AWS_EVENT_SPOT, FAKE_AWS_EVENT_REBALANCE, FAKE_AWS_EVENT_STATE };

        send(s,
             &(FakeAwsEvent){ .kind = kinds[args[1] % ELEMENTSOF(kinds)], .instance = instances[args[0] % ELEMENTSOF(instances)] }, false);
}

static void play_unreadable(Scene *s, const uint64_t *args) {
        static const char *const texts[] = { "{", "for somebody else", "[]", "{\"detail-type\":\"EC2 Spot Instance Interruption Warning\"}",
                                             "{\"Type\":\"Notification\",\"Message\":7}" };

        sim_queue_send_text(queue_of(s), texts[args[0] % ELEMENTSOF(texts)]);
}

/* -- a forger ------------------------------------------------------------------------------------ */

/* No group has that token: it lets go of nothing. */
static void forge_hook(Scene *s, SimMachine *m) {
        _cleanup_free_ char *token = MUST(strf("12345678-0000-4000-8000-%012zu", index_of(s, m)));

        if (sim_queue_has_room(queue_of(s), m->instance))
                sim_queue_forge(queue_of(s),
                                &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_TERMINATE_ACTION,
                                                 .instance = m->instance,
                                                 .group = SIM_GROUP,
                                                 .hook = "drain",
                                                 .token = token });
}

static void forge(Scene *s, SimMachine *m, uint64_t draw) {
        static const FakeAwsEventKind kinds[] = { FAKE_AWS_EVENT_SPOT,   FAKE_AWS_EVENT_SPOT,  FAKE_AWS_EVENT_SPOT,
                                                  FAKE_AWS_EVENT_HEALTH, FAKE_AWS_EVENT_STATE, FAKE_AWS_EVENT_TERMINATE_ACTION };
        static const char *const actions[_FAKE_AWS_EVENT_MAX][3] = {
                [FAKE_AWS_EVENT_SPOT] = { "terminate", "terminate", "stop" },
                [FAKE_AWS_EVENT_HEALTH] = { "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED", "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
                                            "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED" },
                [FAKE_AWS_EVENT_STATE] = { "stopping", "shutting-down", "shutting-down" },
        };
        FakeAwsEventKind kind = kinds[draw % ELEMENTSOF(kinds)];

        if (!sim_queue_has_room(queue_of(s), m->instance))
                return;
        plan_to_join(s, m, draw / 64 % 60 * SEC);
        if (kind == FAKE_AWS_EVENT_TERMINATE_ACTION)
                return forge_hook(s, m);
        sim_queue_forge(queue_of(s),
                        &(FakeAwsEvent){ .kind = kind,
                                         .instance = m->instance,
                                         .action = actions[kind][draw / 8 % 3],
                                         .until_wall_usec = sim_world_wall(s->w) + 2 * MIN_USEC + draw / 4096 % 2400 * SEC });
}

/* args: of which machines, and of how many; what */
static void play_forge(Scene *s, const uint64_t *args) {
        size_t n = n_machines(s) - 1, last = n - args[1] % 4;

        for (size_t k = 0; k < last; k++)
                forge(s, machine_to_end(s, args[0] + k), hash64((uint64_t[2]){ args[2], k }, 2 * sizeof(uint64_t)));
}

/* args: another time of how many scheduled changes of his */
static void play_forge_times(Scene *s, const uint64_t *args) {
        sim_queue_forge_times(queue_of(s), 1 + args[0] % 16, 3 * MIN_USEC + args[1] % 1200 * SEC);
}

static SimMachine *held_machine(Scene *s, uint64_t n) {
        for (size_t k = 0; k < n_machines(s); k++)
                if (sim_brake_has_held(sim_queue_brake(queue_of(s)), (n + k) % n_machines(s)))
                        return machine_at(s, n + k);
        return NULL;
}

/* Forges lifecycle hooks of held machines, which are drained by now. */
static void play_forge_hooks(Scene *s, const uint64_t *args) {
        for (size_t k = 0; k < n_machines(s); k++)
                if (sim_brake_has_held(sim_queue_brake(queue_of(s)), k) && k != KEEPER && (k == outside(s) || (args[0] >> k) % 2))
                        forge_hook(s, &s->w->machines[k]);
}

/* A person believes it. */
static void play_let_go(Scene *s, const uint64_t *args) {
        const SimMachine *m = held_machine(s, args[0]);

        if (m)
                sim_brake_let_go(sim_queue_brake(queue_of(s)), index_of(s, m));
}

/* Somebody takes the machine for a reason of their own. */
static void play_delete_claim(Scene *s, const uint64_t *args) {
        const SimMachine *m = held_machine(s, args[0]);

        if (m && index_of(s, m) != KEEPER)
                sim_load_delete_claim(s->w, index_of(s, m));
}

/* A person opens what stays drained for a false scale-in: no group takes back that it lets go of an instance, so vesper waits for ever. */
static void open_forged(Scene *s) {
        for (size_t i = 0; i < n_machines(s); i++) {
                const char *outside_says = i == outside(s) ? sim_world_annotation(s->w, i, "vesper.sh/announced") : NULL;
                bool scales_in = outside_says && strstr(outside_says, "scale-in");

                if ((scales_in || sim_brake_has_held(sim_queue_brake(queue_of(s)), i)) && sim_world_instance_alive(s->w, i) &&
                    sim_world_unschedulable(s->w, i))
                        sim_world_admin_uncordon(s->w, i);
        }
}

/* -- how messages come --------------------------------------------------------------------------- */

static void play_repeat(Scene *s, const uint64_t *args) {
        sim_queue_repeat(queue_of(s));
}

static void play_duplicate(Scene *s, const uint64_t *args) {
        fake_sqs_duplicate(sim_queue_sqs(queue_of(s)), SIM_QUEUE, 1 + args[0] % 5);
}

static void play_shuffle(Scene *s, const uint64_t *args) {
        fake_sqs_shuffle(sim_queue_sqs(queue_of(s)), SIM_QUEUE, args[0] % 3 ? s->order : NULL);
}

/* -- what goes wrong ----------------------------------------------------------------------------- */

/* args: which service and operation; how; how often */
static void play_cloud_trouble(Scene *s, const uint64_t *args) {
        static const char *const of_sqs[] = { "ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", NULL };
        static const char *const of_groups[] = { "CompleteLifecycleAction", "RecordLifecycleActionHeartbeat", NULL };
        static const FakeTrouble troubles[] = {
                { .kind = FAKE_TROUBLE_FAIL, .status = 500, .code = "InternalError", .message = "Something is wrong." },
                { .kind = FAKE_TROUBLE_FAIL, .status = 403, .code = "AccessDenied", .message = "No." },
                { .kind = FAKE_TROUBLE_FAIL, .status = 400, .code = "RequestThrottled", .message = "Too many." },
                { .kind = FAKE_TROUBLE_BODY, .status = 200, .body = "<html>" },
                { .kind = FAKE_TROUBLE_HANG },
                { .kind = FAKE_TROUBLE_LOSE },
        };
        FakeTrouble trouble = troubles[args[1] % ELEMENTSOF(troubles)];
        bool groups = args[0] % 3 == 0;

        trouble.n = 1 + args[2] % 4;
        trouble.operation = groups ? of_groups[args[0] / 4 % ELEMENTSOF(of_groups)] : of_sqs[args[0] / 4 % ELEMENTSOF(of_sqs)];
        sim_trace_add(s->w->trace, "cloud", "the next %u of %s go wrong: %d", trouble.n, trouble.operation ? trouble.operation : "any", trouble.kind);
        fake_troubles_add(groups ? fake_autoscaling_troubles(sim_queue_groups(queue_of(s))) : fake_sqs_troubles(sim_queue_sqs(queue_of(s))),
                          &trouble);
        sim_check_trouble(s->w->check, trouble.n * 30 * SEC + SQS_USEC);
}

/* args: what, whose; for how long; how many of its requests; its seed */
static void play_window(Scene *s, const uint64_t *args) {
        static const SimFaultKind kinds[] = { SIM_FAULT_ERROR,     SIM_FAULT_LIE,  SIM_FAULT_LOSE_REQUEST, SIM_FAULT_LOSE_REPLY,
                                              SIM_FAULT_PARTITION, SIM_FAULT_SLOW, SIM_FAULT_CLOUD,        SIM_FAULT_PARTITION_CLOUD };
        SimFaultKind kind = kinds[args[0] % ELEMENTSOF(kinds)];
        usec_t lasts = (1 + args[1] % 40) * SEC;
        SimProcess *p = sim_world_coordinator(s->w, args[0] / 8 % 2);

        sim_check_trouble(s->w->check, lasts + API_USEC);
        sim_faults_add(s->w->faults,
                       &(SimWindow){ .kind = kind,
                                     .until_usec = sim_world_now(s->w) + lasts,
                                     .permille = kind == SIM_FAULT_PARTITION || kind == SIM_FAULT_PARTITION_CLOUD ? 1000 : 400,
                                     .max_usec = 6 * SEC,
                                     .who = p->name,
                                     .seed = args[3] });
}

/* args: how long; of what, or of all */
static void play_stall(Scene *s, const uint64_t *args) {
        static const FakeResourceId of[] = { FAKE_NODES, FAKE_NODECLAIMS, FAKE_PODS };
        usec_t until = sim_world_now(s->w) + (1 + args[0] % 60) * SEC;

        sim_check_trouble(s->w->check, until - sim_world_now(s->w) + API_USEC);
        sim_trace_add(s->w->trace, "api", "watches (%d) are mute", (int) (args[1] % 4));
        if (args[1] % 4 == 3)
                fake_api_stall_watches(fake_cluster_api(s->w->cluster), until);
        else
                fake_api_mute(fake_cluster_api(s->w->cluster), of[args[1] % 4], until);
}

static SimProcess *leader_or(Scene *s, uint64_t n) {
        SimProcess *p = sim_world_leader(s->w);

        return p ? p : sim_world_coordinator(s->w, n % 2);
}

/* args: at once, or after how many steps; how soon it is back */
static void play_kill_leader(Scene *s, const uint64_t *args) {
        SimProcess *p = leader_or(s, args[2]);
        usec_t back = (1 + args[1] % 20000) * USEC_PER_MSEC;

        if (!p->life)
                return;
        sim_check_trouble(s->w->check, back + LEADER_USEC);
        if (args[0] % 4 == 0)
                sim_process_kill(p, back);
        else
                sim_process_plan_kill(p, &(SimKill){ .step = p->life->n_steps + 1 + args[0] / 4 % 60, .restart_usec = back });
}

static void play_pause_leader(Scene *s, const uint64_t *args) {
        SimProcess *p = leader_or(s, args[2]);
        usec_t lasts = (5 + args[0] % 40) * SEC;

        if (!p->life)
                return;
        sim_check_trouble(s->w->check, lasts + LEADER_USEC);
        sim_process_plan_pause(p, 1 + args[1] % 60, lasts);
}

static void play_agent_sleeps(Scene *s, const uint64_t *args) {
        SimProcess *p = sim_world_agent(s->w, AGENT_SLEEPS);
        usec_t lasts = (5 + args[0] % 60) * SEC;

        if (!p->life)
                return;
        sim_check_trouble(s->w->check, lasts + 30 * SEC);
        sim_process_pause(p, lasts);
}

static void play_agent_dies(Scene *s, const uint64_t *args) {
        sim_check_trouble(s->w->check, 30 * SEC);
        sim_process_kill(sim_world_agent(s->w, AGENT_DIES), USEC_INFINITY);
}

/* A leader that dies right when AWS sends a message may lose the message. */
static void play_spot_and_kill(Scene *s, const uint64_t *args) {
        play_spot(s, args);
        play_kill_leader(s, (const uint64_t[N_ARGS]){ args[3], args[2], args[1] });
}

typedef struct Act {
        unsigned weight;
        void (*play)(Scene *s, const uint64_t *args);
} Act;

static const Act acts[] = {
        { 5, play_spot },      { 3, play_spot_and_kill },  { 2, play_take_back },     { 3, play_rebalance },    { 2, play_state },
        { 5, play_health },    { 5, play_scale_in },       { 2, play_launch },        { 4, play_foreign },      { 2, play_unreadable },
        { 2, play_repeat },    { 2, play_duplicate },      { 1, play_shuffle },       { 3, play_cloud_trouble }, { 3, play_window },
        { 2, play_stall },     { 2, play_kill_leader },    { 2, play_pause_leader },  { 1, play_agent_sleeps }, { 1, play_agent_dies },
        { 5, play_call_off },
};

/* Further acts of worlds with a forger. Each of these worlds plays the first act at least once. */
static const Act forged_acts[] = {
        { 3, play_forge }, { 3, play_forge_times }, { 2, play_let_go }, { 2, play_delete_claim }, { 2, play_kill_leader },
        { 2, play_forge_hooks }, { 1, play_pause_leader }, { 1, play_repeat }, { 2, play_spot }, { 1, play_scale_in },
};

/* -- the draw ------------------------------------------------------------------------------------ */

/* Returns the index of an act, drawn by weight. */
static size_t draw_act(Random *r, const Act *table, size_t n_acts) {
        uint64_t total = 0, n;
        size_t i = 0;

        for (size_t k = 0; k < n_acts; k++)
                total += table[k].weight;
        for (n = random_below(r, total); n >= table[i].weight; i++)
                n -= table[i].weight;
        return i;
}

static int compare_entries(const void *a, const void *b) {
        usec_t x = ((const Entry *) a)->at_usec, y = ((const Entry *) b)->at_usec;

        return (x > y) - (x < y);
}

static void draw_forger(Scene *s, Random *r) {
        s->n_more = N_MORE;
        for (size_t i = 0; i < N_FORGED; i++) {
                Entry *e = &s->entries[s->n_entries++];

                *e = (Entry){ .at_usec = random_below(r, i == 0 ? LOAD_USEC / 2 : LOAD_USEC),
                              .act = ELEMENTSOF(acts) + (i == 0 ? 0 : draw_act(r, forged_acts, ELEMENTSOF(forged_acts))) };
                for (size_t k = 0; k < N_ARGS; k++)
                        e->args[k] = random_below(r, UINT64_C(1) << 40);
        }
        qsort(s->entries, s->n_entries, sizeof(Entry), compare_entries);
}

static void play_entry(Scene *s, const Entry *e) {
        if (e->act < ELEMENTSOF(acts))
                acts[e->act].play(s, e->args);
        else
                forged_acts[e->act - ELEMENTSOF(acts)].play(s, e->args);
}

static void draw_entries(Scene *s, Random *r) {
        s->n_entries = N_ENTRIES;
        for (size_t i = 0; i < N_ENTRIES; i++) {
                s->entries[i] = (Entry){ .at_usec = random_below(r, LOAD_USEC), .act = draw_act(r, acts, ELEMENTSOF(acts)) };
                for (size_t k = 0; k < N_ARGS; k++)
                        s->entries[i].args[k] = random_below(r, UINT64_C(1) << 40);
        }
        qsort(s->entries, N_ENTRIES, sizeof(Entry), compare_entries);
}

static void draw_options(SimOptions *o, uint64_t seed, Random *r) {
        static const unsigned graces[] = { 0, 0, 60, 600 };

        *o = (SimOptions){ .n_nodes = N_MACHINES,
                           .n_agents = N_AGENTS,
                           .n_coordinators = 2,
                           .n_late = N_LATE,
                           .n_outside = 1,
                           .queue = 1,
                           .n_pods = 12,
                           .pdb_min = 10,
                           .stop_sec = 20,
                           .grace_sec = 60,
                           .tgp_sec = graces[random_below(r, ELEMENTSOF(graces))],
                           .leave_interrupted = random_below(r, 8) == 0,
                           .encoding = sim_world_draw_encoding(seed),
                           .latency = sim_world_draw_latency(seed),
                           .watch_lag_msec = random_below(r, 2) ? 20 : 0 };
}

/* -- a life -------------------------------------------------------------------------------------- */

static void join_who_is_due(Scene *s) {
        for (size_t i = 0; i < N_LATE; i++)
                if (s->join_usec[i] > 0 && s->join_usec[i] <= sim_world_now(s->w)) {
                        s->join_usec[i] = USEC_INFINITY;
                        if (sim_world_instance_alive(s->w, first_late(s) + i)) {
                                sim_trace_add(s->w->trace, "world", "%s joins", s->w->machines[first_late(s) + i].node);
                                sim_world_join(s->w, first_late(s) + i);
                        }
                }
}

static bool run(Scene *s, usec_t usec) {
        usec_t until = sim_world_now(s->w) + usec;

        do
                join_who_is_due(s);
        while (sim_world_step(s->w, until));
        return !sim_world_violation(s->w);
}

/* shared, always, drains, late: [Queue] Shared=, [Interruption] Delete=always, [Queue] Unmanaged=drain, [Interruption] BeforeSec=10min.
 * Nothing has been sent yet. */
static void equip(Scene *s, bool shared, bool always, bool drains, bool late) {
        SimWorld *w = s->w;

        fake_ec2_run(w->ec2, FOREIGN_ALIVE, SIM_ZONE);
        fake_ec2_run(w->ec2, FOREIGN_ENDED, SIM_ZONE);
        fake_ec2_terminate(w->ec2, FOREIGN_ENDED);
        for (size_t i = 0; i < 2; i++) {
                CoordinatorConfig *c = &sim_world_coordinator(w, i)->coordinator_config;

                c->queue_shared = shared;
                c->interruption_before_usec = late ? 10 * MIN_USEC : USEC_PER_HOUR;
                c->queue_unmanaged = drains ? QUEUE_UNMANAGED_DRAIN : QUEUE_UNMANAGED_REPORT;
                if (always && !w->options.leave_interrupted)
                        c->interruption_delete = INTERRUPTION_DELETE_ALWAYS;
        }
        if (s->n_more > 0)
                sim_queue_expect_forger(queue_of(s));
        if (drains)
                sim_queue_drain_unmanaged(queue_of(s));
        sim_trace_add(w->trace, "world", "[Queue] Shared=%d, Unmanaged=%d, [Interruption] Delete=%d, BeforeSec=%d min, terminationGracePeriod %u s",
                      shared, drains, sim_world_coordinator(w, 0)->coordinator_config.interruption_delete, late ? 10 : 60, w->options.tgp_sec);
}

static bool is_settled(Scene *s) {
        for (size_t i = 0; i < first_late(s); i++)
                if (i != outside(s) && !sim_world_claim(s->w, i))
                        return false;
        return sim_world_leader(s->w) && sim_world_pods_ready(s->w) == s->w->options.n_pods;
}

static bool somebody_goes(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (fj_get(sim_world_claim(w, i), "metadata", "deletionTimestamp", NULL))
                        return true;
        return false;
}

/* A machine that lives on keeps its marks for ten minutes after its time. */
static bool is_one_drained(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++)
                if (sim_world_instance_alive(w, i) && sim_world_annotation(w, i, "vesper.sh/heard") && !sim_queue_waits(w->queue, i))
                        return true;
        return false;
}

/* Nobody is in anybody's way: whoever has not joined does, whoever is dead comes back; and one more is announced, by the queue alone. */
static bool end_all(Scene *s, SimOutcome *o) {
        SimWorld *w = s->w;
        bool ends = !w->options.leave_interrupted, went = true;

        o->where = "all comes to its end";
        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        fake_troubles_clear(fake_sqs_troubles(sim_queue_sqs(queue_of(s))));
        fake_troubles_clear(fake_autoscaling_troubles(sim_queue_groups(queue_of(s))));
        for (size_t i = 0; i < N_LATE; i++)
                plan_to_join(s, &w->machines[first_late(s) + i], 0);
        if (!sim_world_agent(w, AGENT_DIES)->life && !w->machines[AGENT_DIES].ended) { /* its marks are its own to take off */
                sim_check_trouble(w->check, 30 * SEC);
                sim_process_start(sim_world_agent(w, AGENT_DIES));
        }
        if (!run(s, 4 * MIN_USEC))
                return false;
        o->where = "a last one is announced";
        send(s, &(FakeAwsEvent){ .kind = FAKE_AWS_EVENT_SPOT, .instance = w->machines[KEEPER].instance }, false);
        if (!run(s, 4 * MIN_USEC) || (ends && sim_world_claim(w, KEEPER)))
                return false;
        /* A notice that the metadata service withdrew stays on the Node until the machine has outlived it,
         * unless the coordinator deletes its claim. */
        for (size_t i = 0; i < N_AGENTS; i++)
                if (sim_world_annotation(w, i, "vesper.sh/interruption") && !w->machines[i].noticed && !run(s, 6 * MIN_USEC))
                        return false;
        if (s->n_more > 0)
                open_forged(s);
        o->where = "scheduled changes come near";
        for (unsigned i = 0; i < 60 && sim_queue_is_awaited(queue_of(s), USEC_PER_HOUR); i++)
                if (!run(s, MIN_USEC))
                        return false;
        /* A removal may begin at any time, when a scheduled change comes near; and its pool tells of its end a moment later. */
        for (unsigned i = 0; i < 20 && went; i++) {
                went = somebody_goes(w);
                if (!run(s, 15 * SEC))
                        return false;
                went = went || somebody_goes(w);
        }
        o->where = "what was heard is outlived";
        for (unsigned i = 0; i < 70 && is_one_drained(w); i++) /* scheduled changes are up to 45 minutes ahead */
                if (!run(s, MIN_USEC))
                        return false;
        if (!run(s, 75 * SEC)) /* what was said of it goes behind it; and a message that has waited for that comes again */
                return false;
        o->where = "nothing goes on";
        sim_queue_check_left(queue_of(s));
        return true;
}

static uint64_t requests_allowed(const SimWorld *w) {
        return 2000 + (sim_world_now(w) / USEC_PER_MINUTE + 1) * 400;
}

static bool live(Scene *s, SimOutcome *o) {
        SimWorld *w = s->w;
        usec_t begin;

        o->where = "the world settles";
        if (!run(s, SETTLE_USEC) || !is_settled(s))
                return false;
        sim_check_promise(w->check);

        o->where = "things happen";
        begin = sim_world_now(w);
        for (; o->n_entries < s->n_entries; o->n_entries++) {
                const Entry *e = &s->entries[o->n_entries];

                if (!run(s, usec_sub(begin + e->at_usec, sim_world_now(w))))
                        return false;
                play_entry(s, e);
        }
        if (!run(s, MIN_USEC))
                return false;
        return end_all(s, o) && sim_check_quiet(w->check, requests_allowed(w));
}

void sim_queues_play(uint64_t seed, bool report, bool trace, SimOutcome *ret) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions options;
        Scene s = { 0 };
        Random *draws;
        bool shared, always, drains, late;
        int r = random_new(hash64((uint64_t[2]){ UINT64_C(0x717565756573), seed }, 2 * sizeof(uint64_t)), &draws);

        assert(r >= 0);
        r = random_new(seed, &s.order);
        assert(r >= 0);
        draw_options(&options, seed, draws);
        shared = random_below(draws, 4) == 0;
        always = random_below(draws, 3) == 0;
        draw_entries(&s, draws);
        drains = random_below(draws, 3) > 0; /* drawn last: the rest of a seed is as it was */
        late = random_below(draws, 2);
        if (random_below(draws, 6) == 0)
                draw_forger(&s, draws);
        options.n_nodes += (unsigned) s.n_more;
        random_free(draws);
        s.w = w = sim_world_new(seed, &options);
        equip(&s, shared, always, drains, late);
        *ret = (SimOutcome){ 0 };
        ret->good = live(&s, ret);
        sim_outcome_read(w, report, trace, ret);
        sim_world_free(TAKE_PTR(w)); /* the queue draws from what is freed now */
        random_free(s.order);
}
