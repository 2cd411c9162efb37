/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-events.h"

#include <stdlib.h>

#include "fake-azure-metadata.h"
#include "sim-check.h"
#include "sim-power.h"
#include "sim-reboots.h"

#define SEC USEC_PER_SEC
#define N_ACTS 16u
#define MACHINES 4u
#define FEED "events/maintenance/scheduled"
#define LEAD_USEC (30 * USEC_PER_HOUR)
/* Of a node that was drained when the request left, and may not be any more when it arrives. */
#define UNDER_WAY_USEC (30 * SEC)
#define SETTLE_SEC 60u

/* A machine, and what is announced to it. */
typedef struct Target {
        char *event;           /* that stands; NULL: none */
        char *drained_for;     /* its node was drained for that */
        usec_t drained_usec;   /* when that was so last */
        char *taken[N_ACTS + 1]; /* events for which the cloud was told to reboot it */
        size_t n_taken;
} Target;

typedef struct Scene {
        SimWorld *w;
        bool azure;
        Target targets[MACHINES];
        unsigned n_made, n_early, n_acknowledged;
} Scene;

static uint64_t draw(Scene *s, uint64_t below) {
        return random_below(s->w->random, below);
}

/* -- what is so ---------------------------------------------------------------------------------- */

static cJSON *parsed(Scene *s, size_t machine, const char *key) {
        const char *text = sim_world_annotation(s->w, machine, key);

        return text ? cJSON_Parse(text) : NULL;
}

/* Its Node says so, and it is. */
static void note_drained(Scene *s, size_t machine) {
        cJSON *said = parsed(s, machine, "vesper.sh/interruption");
        const char *id = said ? fj_string(said, "id", NULL) : NULL;
        Target *t = &s->targets[machine];

        if (id && streq_ptr(fj_string(said, "phase", NULL), "Drained") && sim_world_unschedulable(s->w, machine) &&
            sim_world_pods_on(s->w, machine) == 0) {
                t->drained_usec = sim_world_now(s->w);
                if (!streq_ptr(t->drained_for, id)) {
                        free(t->drained_for);
                        t->drained_for = MUST(strdup(id));
                }
        }
        cJSON_Delete(said);
}

static bool was_drained_for(Scene *s, size_t machine, const char *event) {
        const Target *t = &s->targets[machine];

        return streq_ptr(t->drained_for, event) && sim_world_now(s->w) <= usec_add(t->drained_usec, UNDER_WAY_USEC);
}

static bool run(Scene *s, usec_t usec) {
        usec_t until = sim_world_now(s->w) + usec;

        while (sim_world_step(s->w, until)) {
                sim_power_look(s->w);
                for (size_t i = 0; i < MACHINES; i++)
                        note_drained(s, i);
        }
        return !sim_world_violation(s->w);
}

/* -- what clouds do ------------------------------------------------------------------------------ */

static void forget_event(Scene *s, size_t machine) {
        Target *t = &s->targets[machine];

        if (t->event && !s->azure)
                sim_events_complete(s->w, machine);
        t->event = mfree(t->event);
}

static void note_taken(Scene *s, size_t machine, const char *event) {
        Target *t = &s->targets[machine];

        for (size_t i = 0; i < t->n_taken; i++)
                if (streq(t->taken[i], event))
                        sim_check_fail(s->w->check, "early: %s is rebooted a second time for %s", s->w->machines[machine].node, event);
        assert(t->n_taken < ELEMENTSOF(t->taken) || sim_world_violation(s->w));
        if (t->n_taken < ELEMENTSOF(t->taken))
                t->taken[t->n_taken++] = MUST(strdup(event));
}

/* withdrawn: its agent was started anew while the cloud was being told, and takes off what it finds. */
static void reboot(Scene *s, size_t machine, bool withdrawn) {
        if (!sim_power_shutdown(s->w, machine, "reboot", true))
                return;
        s->n_early++;
        if (withdrawn)
                s->w->machines[machine].deadline_usec = USEC_INFINITY;
}

static void on_reboot(const char *instance, void *userdata) {
        Scene *s = userdata;

        for (size_t i = 0; i < MACHINES; i++) {
                SimMachine *m = &s->w->machines[i];
                cJSON *asked = streq(m->instance, instance) ? parsed(s, i, "vesper.sh/shutdown-request") : NULL;
                const char *event = asked ? fj_string(asked, "event", NULL) : NULL;

                if (!streq(m->instance, instance))
                        continue;
                /* A request that is late may find that its agent has withdrawn. */
                if (!event)
                        event = s->targets[i].drained_for;
                sim_trace_add(s->w->trace, "cloud", "reboots %s, for %s", m->node, strempty(event));
                if (!event || !was_drained_for(s, i, event))
                        sim_check_fail(s->w->check, "early: the cloud is told to reboot %s for %s, and its node is not drained for that",
                                       m->node, strempty(event));
                else
                        note_taken(s, i, event);
                if (s->targets[i].event && !fake_ec2_has_event(s->w->ec2, instance, s->targets[i].event))
                        forget_event(s, i);
                reboot(s, i, !asked);
                cJSON_Delete(asked);
        }
}

static void on_approved(const char *id, const char *const *resources, size_t n, void *userdata) {
        Scene *s = userdata;

        sim_trace_add(s->w->trace, "cloud", "event %s is acknowledged", id);
        s->n_acknowledged++;
        for (size_t i = 0; i < MACHINES; i++) {
                _cleanup_free_ char *vm = sim_events_vm(i);
                bool named = false;

                for (size_t k = 0; k < n; k++)
                        named = named || streq(resources[k], vm);
                if (!named)
                        continue;
                if (!was_drained_for(s, i, id))
                        sim_check_fail(s->w->check, "acknowledged: event %s, which names %s, and its node is not drained for that", id,
                                       s->w->machines[i].node);
                reboot(s, i, !sim_world_annotation(s->w, i, "vesper.sh/interruption"));
        }
}

void sim_events_schedule(SimWorld *w, size_t machine, const char *id, const char *code, usec_t at_usec) {
        SimMachine *m = &w->machines[machine];
        _cleanup_free_ char *body = NULL;
        char when[RFC3339_MAX];

        rfc3339_format(at_usec, when);
        body = MUST(strf("[{\"EventId\":\"%s\",\"Code\":\"%s\",\"State\":\"active\",\"NotBefore\":\"%s\"}]", id, code, when));
        fake_imds_set_text(m->imds, FEED, body);
        fake_ec2_schedule(w->ec2, m->instance, id, code, at_usec);
        m->has_event = true;
        sim_trace_add(w->trace, "cloud", "announces %s to %s", id, m->node);
}

char *sim_events_vm(size_t machine) {
        return MUST(strf("pool_%zu", machine));
}

void sim_events_take_early(SimWorld *w, size_t machine) {
        AgentConfig *c = &w->machines[machine].agent->agent_config;

        sim_process_set_text(&c->policy_reboot, "early");
        sim_process_set_text(&c->policy[NOTICE_MAINTENANCE], "before:1h");
}

void sim_events_move_to_azure(SimWorld *w, size_t n, int acknowledge) {
        w->azure = fake_azure_events_new(w->loop);
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *vm = sim_events_vm(i), *number = MUST(strf("%zu", i));
                SimMachine *m = &w->machines[i];

                m->agent->agent_config.metadata_source = METADATA_SOURCE_AZURE;
                m->agent->agent_config.acknowledge = acknowledge;
                m->azure = fake_azure_metadata_new(w->loop, w->azure,
                                                   &(FakeAzureMetadataOptions){ .name = vm, .scale_set = "pool", .instance = number });
                m->metadata = fake_azure_metadata_handle;
                m->metadata_userdata = m->azure;
                fake_merge(w->cluster, FAKE_NODES, NULL, m->node,
                           "{'spec':{'providerID':'azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/"
                           "virtualMachineScaleSets/pool/virtualMachines/%s'}}",
                           number);
        }
}

void sim_events_complete(SimWorld *w, size_t machine) {
        fake_imds_set_text(w->machines[machine].imds, FEED, "[]");
}

static void announce_ec2(Scene *s, size_t machine) {
        SimMachine *m = &s->w->machines[machine];
        Target *t = &s->targets[machine];

        forget_event(s, machine);
        t->event = MUST(strf("instance-event-%u", ++s->n_made));
        sim_events_schedule(s->w, machine, t->event, "system-reboot", usec_add(sim_world_wall(s->w), LEAD_USEC));
        fake_ec2_set_reboot_migration(s->w->ec2, m->instance, draw(s, 2) > 0);
}

/* Of one machine a reboot that may be taken early; of two what is drained for at once. */
static void announce_azure(Scene *s, size_t machine) {
        bool two = draw(s, 2) > 0;
        size_t other = (machine + 1) % MACHINES;
        _cleanup_free_ char *a = sim_events_vm(machine), *b = sim_events_vm(other), *both = MUST(strf("%s,%s", a, b));
        const FakeAzureEvent event = { .type = two ? "Redeploy" : "Reboot",
                                       .resources = two ? both : a,
                                       .lead_usec = two ? 50 * USEC_PER_MINUTE : LEAD_USEC,
                                       .lasts_usec = 10 * SEC };
        const char *id = fake_azure_events_add(s->w->azure, &event);

        s->w->machines[machine].has_event = true;
        if (two)
                s->w->machines[other].has_event = true;
        sim_trace_add(s->w->trace, "cloud", "announces %s, which names %s", id, event.resources);
}

static void announce(Scene *s, size_t machine) {
        if (s->azure)
                announce_azure(s, machine);
        else
                announce_ec2(s, machine);
}

static void call_off(Scene *s) {
        sim_trace_add(s->w->trace, "cloud", "calls all off");
        for (size_t i = 0; i < MACHINES; i++) {
                forget_event(s, i);
                s->w->machines[i].cancelled_usec = sim_world_now(s->w); /* what has left by then may be late */
        }
        if (s->azure)
                fake_azure_events_clear(s->w->azure);
}

/* -- by chance ----------------------------------------------------------------------------------- */

static void trouble(Scene *s) {
        static const SimFaultKind kinds[] = { SIM_FAULT_ERROR, SIM_FAULT_LIE, SIM_FAULT_LOSE_REQUEST, SIM_FAULT_LOSE_REPLY,
                                              SIM_FAULT_PARTITION, SIM_FAULT_SLOW };
        bool coordinator = draw(s, 3) > 0;
        SimProcess *p = coordinator ? sim_world_coordinator(s->w, draw(s, 2)) : sim_world_agent(s->w, draw(s, MACHINES));
        SimWindow window = { .kind = kinds[draw(s, ELEMENTSOF(kinds))],
                             .until_usec = (1 + draw(s, 60)) * SEC,
                             .permille = 400,
                             .max_usec = 6 * SEC,
                             .who = p->name,
                             .seed = draw(s, 1000) };

        sim_check_trouble(s->w->check, 180 * SEC);
        if (window.kind == SIM_FAULT_PARTITION)
                window.permille = 1000;
        if (draw(s, 4) == 0)
                fake_api_stall_watches(fake_cluster_api(s->w->cluster), sim_world_now(s->w) + (1 + draw(s, 90)) * SEC);
        else
                sim_faults_add(s->w->faults, &window);
}

static void disturb(Scene *s) {
        SimProcess *p;

        switch (draw(s, 12)) {
        case 0 ... 4:
                announce(s, draw(s, MACHINES));
                break;
        case 5:
        case 6:
                p = sim_world_agent(s->w, draw(s, MACHINES));
                if (p->life)
                        sim_process_kill(p, (1 + draw(s, 5000)) * USEC_PER_MSEC);
                break;
        case 7:
        case 8:
                p = draw(s, 2) > 0 && sim_world_leader(s->w) ? sim_world_leader(s->w) : sim_world_coordinator(s->w, draw(s, 2));
                sim_check_trouble(s->w->check, 60 * SEC);
                if (p->life)
                        sim_process_kill(p, (1 + draw(s, 20000)) * USEC_PER_MSEC);
                break;
        case 9:
        case 10:
                trouble(s);
                break;
        case 11:
                call_off(s);
                break;
        }
}

/* -- a life -------------------------------------------------------------------------------------- */

static void equip(Scene *s) {
        if (s->azure) {
                sim_events_move_to_azure(s->w, MACHINES, ACKNOWLEDGE_ALL);
                fake_azure_events_on_approve(s->w->azure, on_approved, s);
        } else
                fake_ec2_on_reboot(s->w->ec2, on_reboot, s);
        for (size_t i = 0; i < MACHINES; i++)
                sim_events_take_early(s->w, i);
}

static void scene_done(Scene *s) {
        for (size_t i = 0; i < MACHINES; i++) {
                Target *t = &s->targets[i];

                free(t->event);
                free(t->drained_for);
                for (size_t k = 0; k < t->n_taken; k++)
                        free(t->taken[k]);
        }
}

static bool is_over(Scene *s) {
        for (size_t i = 0; i < MACHINES; i++)
                if (sim_world_annotation(s->w, i, "vesper.sh/shutdown-request") || sim_world_annotation(s->w, i, "vesper.sh/shutdown-granted") ||
                    sim_world_annotation(s->w, i, "vesper.sh/interruption") || sim_world_annotation(s->w, i, "vesper.sh/ack-ok") ||
                    sim_world_unschedulable(s->w, i) || !s->w->machines[i].agent->life)
                        return false;
        return sim_world_pods_ready(s->w) == s->w->options.n_pods;
}

/* Nobody is in anybody's way: one is taken, whatever came before. */
static bool take_one(Scene *s, SimOutcome *o) {
        unsigned early = s->n_early;

        o->where = "a last one is announced";
        announce(s, 0);
        for (unsigned i = 0; i < 60 && s->n_early == early; i++)
                if (!run(s, 30 * SEC))
                        return false;
        return s->n_early > early && run(s, 240 * SEC);
}

static bool live(Scene *s, SimOutcome *o) {
        SimWorld *w = s->w;

        equip(s);
        o->where = "the world settles";
        if (!sim_reboots_settle(w) || !run(s, SETTLE_SEC * SEC))
                return false;

        o->where = "things happen";
        for (; o->n_entries < N_ACTS; o->n_entries++) {
                disturb(s);
                if (sim_world_violation(w) || !run(s, draw(s, 150000) * USEC_PER_MSEC))
                        return false;
        }

        o->where = "all comes to its end";
        sim_faults_stop(w->faults);
        sim_faults_set_latency(w->faults, (SimLatency) MIN(w->options.latency, (unsigned) SIM_LATENCY_MEDIUM));
        call_off(s);
        if (!run(s, SIM_REBOOTS_PATIENCE_USEC + 2 * SIM_REBOOTS_SLOT_USEC) || !is_over(s))
                return false;
        if (!take_one(s, o))
                return false;
        o->where = "nothing goes on";
        call_off(s);
        return run(s, SIM_REBOOTS_PATIENCE_USEC) && is_over(s);
}

void sim_events_play(uint64_t seed, bool report, bool trace, SimOutcome *ret) {
        _cleanup_(sim_world_freep) SimWorld *w = NULL;
        SimOptions options = sim_reboots_options;
        Scene s = { .azure = seed % 2 };

        options.max_reboots = 1 + seed / 2 % 2;
        options.no_pool = s.azure;
        options.encoding = sim_world_draw_encoding(seed);
        options.latency = sim_world_draw_latency(seed);
        s.w = w = sim_world_new(seed, &options);
        *ret = (SimOutcome){ 0 };
        ret->good = live(&s, ret);
        sim_outcome_read(w, report, trace, ret);
        for (size_t i = 0; i < MACHINES; i++) /* what hangs must be gone before */
                if (w->machines[i].agent->life)
                        sim_process_kill(w->machines[i].agent, USEC_INFINITY);
        scene_done(&s);
}
