/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-power.h"

#include "http-inproc.h"
#include "sim-check.h"

/* Everything else that stops, and the last steps. */
#define SLACK_USEC (4 * USEC_PER_SEC)
#define RESTART_USEC USEC_PER_SEC
/* An agent that has begun holds it after so long. */
#define TAKEN_USEC (2 * USEC_PER_SEC)

struct SimPower {
        SimWorld *world;
        SimMachine *machine;
        SimPowerOptions options;
        FakePower *fake;
        FakeRunningPods running_pods;
        Timer *sigterm; /* of the present life, in its own loop */
        Bus *bus;
        usec_t since_usec; /* when the present life began, or the bus came back */
        usec_t away_usec;  /* the API server was out of somebody's reach last */
        usec_t bus_usec;   /* its bus was silent last; 0: never was */
        bool no_bus;
        bool held; /* since the machine is up: from then on no instant is without it, whether an agent runs or not */
        unsigned n_off;
};

static SimPower *power_of(SimWorld *w, size_t machine) {
        assert(w->machines[machine].power);
        return w->machines[machine].power;
}

FakePower *sim_power_machine(SimWorld *w, size_t machine) {
        return power_of(w, machine)->fake;
}

unsigned sim_power_n_off(SimWorld *w, size_t machine) {
        return power_of(w, machine)->n_off;
}

/* -- the unit ---------------------------------------------------------------------------------- */

static void on_stopped(void *userdata) {
        SimPower *p = userdata;
        SimProcess *agent = p->machine->agent;

        sim_trace_add(p->world->trace, agent->name, "has ended");
        agent->kill.restart_usec =
                fake_power_phase(p->fake) == FAKE_POWER_STOPPING ? USEC_INFINITY : RESTART_USEC / 10;
        agent->life->dying = true;
}

static void on_sigterm_timer(Timer *t, void *userdata) {
        SimPower *p = userdata;

        sim_trace_add(p->world->trace, p->machine->agent->name, "gets SIGTERM");
        agent_ask_stop(p->machine->agent->life->agent, on_stopped, p);
}

static void on_sigterm(void *userdata) {
        SimPower *p = userdata;

        if (p->sigterm)
                timer_arm_in(p->sigterm, 0);
}

static void on_sigkill(void *userdata) {
        SimPower *p = userdata;

        sim_process_kill(p->machine->agent, USEC_INFINITY);
}

static FakePower *fake_of(void *life) {
        return ((SimLife *) life)->process->machine->power->fake;
}

static int store_fd(const char *name, int fd, void *life) {
        return fake_power_store_fd(name, fd, fake_of(life));
}

static int take_fd(const char *name, void *life) {
        return fake_power_take_fd(name, fake_of(life));
}

static void forget_fd(const char *name, void *life) {
        fake_power_forget_fd(name, fake_of(life));
}

void sim_power_equip(SimPower *p, SimLife *l) {
        int r;

        p->bus = fake_power_bus(p->fake, l->loop);
        r = timer_new(l->loop, "sim-sigterm", on_sigterm_timer, p, &p->sigterm);
        assert(r >= 0);
        p->since_usec = sim_world_now(p->world);
        l->env.bus = p->bus;
        l->env.store_fd = store_fd;
        l->env.take_stored_fd = take_fd;
        l->env.forget_fd = forget_fd;
        l->env.stop_extendable = true;
        if (p->options.running_pods) {
                r = http_inproc_route(l->transport, "https://127.0.0.1:10250", fake_running_pods_handle, &p->running_pods);
                assert(r >= 0);
        }
        fake_power_unit_started(p->fake);
}

/* The unit is not started again once PID 1 stops all. */
void sim_power_unequip(SimPower *p, SimLife *l) {
        p->sigterm = timer_free(p->sigterm);
        p->bus = bus_free(p->bus);
        fake_power_unit_ended(p->fake, true);
        if (fake_power_phase(p->fake) >= FAKE_POWER_STOPPING)
                timer_disarm(p->machine->agent->restart);
}

void sim_power_notify(SimPower *p, const char *text) {
        fake_power_notify(p->fake, text);
}

/* -- the machine ------------------------------------------------------------------------------- */

static usec_t budget(const SimPower *p) {
        return MIN(p->options.max_usec, p->options.limits.job_timeout_usec);
}

static void on_off(void *userdata) {
        SimPower *p = userdata;
        usec_t took = fake_power_off(p->fake) - fake_power_began(p->fake);
        /* Whom nobody told cannot keep to it. */
        usec_t told = fake_power_off(p->fake) - MIN(MAX(fake_power_began(p->fake), p->bus_usec), fake_power_off(p->fake));

        p->n_off++;
        sim_trace_add(p->world->trace, "world", "%s is off after %llu ms", p->machine->node,
                      (unsigned long long) (took / USEC_PER_MSEC));
        if (told > budget(p) + SLACK_USEC)
                sim_check_fail(p->world->check,
                               "power: %s was off only %llu ms after its shutdown began, and may be delayed "
                               "by %llu",
                               p->machine->node, (unsigned long long) (took / USEC_PER_MSEC),
                               (unsigned long long) (budget(p) / USEC_PER_MSEC));
        if (fake_power_was_forced(p->fake))
                sim_check_fail(p->world->check, "power: the agent of %s had to be killed", p->machine->node);
        sim_process_set_clock(p->machine->agent, 0); /* a boot sets it right */
        sim_world_reboot(p->world, (size_t) (p->machine - p->world->machines), p->options.away_usec);
        p->machine->deadline_usec = USEC_INFINITY;
        p->machine->off_usec = sim_world_now(p->world);
}

/* What the agent is told by its machine is as good as any announcement. */
static void on_begun(void *userdata) {
        SimPower *p = userdata;

        p->machine->noticed = true;
        p->machine->opened_by_admin = false; /* that was about something else */
        p->machine->deadline_usec = MIN(p->machine->deadline_usec, sim_world_wall(p->world) + budget(p));
}

/* By its agent: nobody else there speaks D-Bus. */
static void on_told(void *userdata) {
        SimPower *p = userdata;

        sim_check_told_to_reboot(p->world->check, p->machine);
}

bool sim_power_shutdown(SimWorld *w, size_t machine, const char *kind, bool announced) {
        SimPower *p = power_of(w, machine);
        SimMachine *m = p->machine;

        if (m->ended || timer_is_armed(m->boot) || !fake_power_shutdown(p->fake, kind, announced))
                return false;
        sim_trace_add(w->trace, "world", "%s of %s, %s", kind, m->node,
                      announced ? "by logind" : "past logind");
        return true;
}

bool sim_power_cancel(SimWorld *w, size_t machine) {
        SimPower *p = power_of(w, machine);

        if (!fake_power_cancel(p->fake))
                return false;
        sim_trace_add(w->trace, "world", "the shutdown of %s is cancelled", p->machine->node);
        /* What the cloud has announced stands. */
        p->machine->noticed = p->machine->spot_usec != USEC_INFINITY;
        p->machine->deadline_usec = p->machine->spot_usec;
        p->machine->slot_until_usec = 0;
        p->machine->cancelled_usec = sim_world_now(w);
        return true;
}

void sim_power_restart_unit(SimWorld *w, size_t machine) {
        on_sigterm(power_of(w, machine));
}

void sim_power_set_bus(SimWorld *w, size_t machine, bool there) {
        SimPower *p = power_of(w, machine);

        sim_trace_add(w->trace, "world", "the bus of %s %s", p->machine->node,
                      there ? "answers" : "is silent");
        if (!there || p->no_bus)
                p->bus_usec = there ? sim_world_now(w) : USEC_INFINITY;
        p->no_bus = !there;
        p->since_usec = sim_world_now(w) + 5 * USEC_PER_SEC; /* it is asked for anew now and then */
        fake_power_set_bus(p->fake, there);
}

static bool has_reason(SimWorld *w, SimPower *p, size_t i) {
        const SimLife *l = p->machine->agent->life;

        /* Where nobody answers, an agent does not hear that a shutdown was cancelled. */
        if (fake_power_phase(p->fake) != FAKE_POWER_UP || timer_is_armed(p->machine->boot) || p->no_bus ||
            sim_world_now(w) < p->since_usec)
                p->held = false;
        else if (p->held)
                return true;
        else
                p->held = fake_power_is_inhibited(p->fake);
        if (!l || l->dying || p->no_bus || sim_world_now(w) < p->since_usec + TAKEN_USEC)
                return false;
        switch (fake_power_phase(p->fake)) {
        case FAKE_POWER_UP:
                return true;
        case FAKE_POWER_DELAY:
                return sim_world_pods_on(w, i) > 0 && p->away_usec < fake_power_began(p->fake) &&
                       sim_world_node(w, i) && !p->machine->opened_by_admin &&
                       sim_world_now(w) < fake_power_began(p->fake) + budget(p) - SLACK_USEC &&
                       sim_world_now(w) > fake_power_began(p->fake) + USEC_PER_SEC;
        case FAKE_POWER_STOPPING:
        case FAKE_POWER_OFF:
                break;
        }
        return false;
}

void sim_power_look(SimWorld *w) {
        for (size_t i = 0; i < w->n_machines; i++) {
                SimPower *p = w->machines[i].power;

                if (p && sim_faults_by_chance(w->faults))
                        p->away_usec = sim_world_now(w);
                if (p && has_reason(w, p, i) && !fake_power_is_inhibited(p->fake))
                        sim_check_fail(w->check, "inhibitor: %s is not inhibited, its agent runs",
                                       p->machine->node);
        }
}

bool sim_power_run(SimWorld *w, usec_t usec) {
        usec_t until = sim_world_now(w) + usec;

        while (sim_world_step(w, until))
                sim_power_look(w);
        return !sim_world_violation(w);
}

void sim_power_booted(SimPower *p) {
        fake_power_boot(p->fake);
}

SimPower *sim_power_attach(SimWorld *w, size_t machine, const SimPowerOptions *o) {
        const FakePowerLimits usual = { 600 * USEC_PER_SEC, 1800 * USEC_PER_SEC, 90 * USEC_PER_SEC };
        SimPower *p = MUST(new0(SimPower, 1));

        p->world = w;
        p->machine = &w->machines[machine];
        p->options = *o;
        if (p->options.limits.job_timeout_usec == 0)
                p->options.limits = usual;
        if (p->options.max_usec == 0)
                p->options.max_usec = 10 * USEC_PER_MINUTE;
        if (p->options.away_usec == 0)
                p->options.away_usec = 20 * USEC_PER_SEC;
        p->fake = fake_power_new(w->loop, &(FakePowerHooks){ on_sigterm, on_sigkill, on_off, on_begun, on_told, p });
        fake_power_set_limits(p->fake, &p->options.limits);
        p->running_pods = (FakeRunningPods){ .cluster = w->cluster, .node = p->machine->node };
        if (!o->cgroupfs)
                fake_power_set_pods(p->fake, w->cluster, p->machine->node);
        sim_process_kill(p->machine->agent, 0);
        p->machine->agent->agent_config.shutdown_max_usec = p->options.max_usec;
        p->machine->power = p;
        return p;
}

SimPower *sim_power_free(SimPower *p) {
        if (!p)
                return NULL;
        fake_power_free(p->fake);
        free(p->running_pods.body);
        return mfree(p);
}
