/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-brake.h"

#include "sim-check-internal.h"
#include "sim-process.h"
#include "string-util.h"

#define SEC USEC_PER_SEC
/* The rule of vesper(7). */
#define AT_LEAST 10u
#define PERCENT 10u
#define WINDOW_USEC (10 * USEC_PER_MINUTE)
/* A notice is written so much later than it was received, at most. */
#define WRITTEN_USEC USEC_PER_MINUTE
/* EC2 shows what the queue announces up to so much later. */
#define SHOWN_USEC (20 * SEC)
/* A coordinator asks AWS again after at most so long. */
#define CONFIRMED_USEC (80 * SEC)
#define ANNOUNCED "vesper.sh/announced"

/* A sign of a machine's end that EC2 shows at at_usec. */
typedef struct Sign {
        size_t message, machine;
        FakeAwsEventKind kind;
        char *change, *code;
        usec_t at_usec, until_usec;
        usec_t shown_usec; /* 0: not yet */
        bool is_over;
} Sign;

/* Facts about one machine. Times are of the simulation; 0: never. */
typedef struct Machine {
        bool is_sent;           /* the queue has announced something */
        usec_t shown_usec;      /* the cloud has shown its end */
        usec_t reported_usec;   /* its agent has */
        usec_t deleted_usec;    /* somebody who is no coordinator has deleted its Node or claim */
        usec_t let_go_usec;     /* a person has let go what was held */
        usec_t stands_usec;     /* a coordinator wrote a notice as one that stands, the last time */
        usec_t held_usec;       /* since when it has a held notice */
        usec_t acted_usec;      /* a coordinator has acted, for what was written then */
        usec_t gone_usec;       /* neither Node nor claim is left */
        char *stands_by, *acted_by; /* the leadership that wrote that */
} Machine;

struct SimBrake {
        SimWorld *world;
        Machine *machines;
        Sign *signs;
        size_t n_signs, allocated;
};

SimBrake *sim_brake_new(SimWorld *w) {
        SimBrake *b = MUST(new0(SimBrake, 1));

        b->world = w;
        b->machines = MUST(new0(Machine, w->n_machines + 1));
        return b;
}

SimBrake *sim_brake_free(SimBrake *b) {
        if (!b)
                return NULL;
        for (size_t i = 0; i < b->n_signs; i++) {
                free(b->signs[i].change);
                free(b->signs[i].code);
        }
        for (size_t i = 0; i < b->world->n_machines; i++) {
                free(b->machines[i].stands_by);
                free(b->machines[i].acted_by);
        }
        free(b->signs);
        free(b->machines);
        return mfree(b);
}

/* Returns the announced notices of a claim or Node. Free them. */
static cJSON *read_list(const cJSON *o) {
        const char *text = fj_string(o, "metadata", "annotations", ANNOUNCED, NULL);

        return text ? cJSON_Parse(text) : NULL;
}

static const cJSON *object_of(const SimBrake *b, size_t machine) {
        const cJSON *claim = sim_world_claim(b->world, machine);

        return claim ? claim : sim_world_node(b->world, machine);
}

static bool is_held(const cJSON *notice) {
        return streq_ptr(fj_string(notice, "state", NULL), "Held");
}

static bool has_held(const cJSON *list) {
        const cJSON *notice;

        cJSON_ArrayForEach (notice, fj_get(list, "notices", NULL))
                if (is_held(notice))
                        return true;
        return false;
}

bool sim_brake_has_held(SimBrake *b, size_t machine) {
        cJSON *list = read_list(object_of(b, machine));
        bool held = has_held(list);

        cJSON_Delete(list);
        return held;
}

static size_t limit_of(const SimBrake *b) {
        return MAX((size_t) AT_LEAST, b->world->n_machines * PERCENT / 100);
}

/* -- what the cloud shows ------------------------------------------------------------------------ */

static size_t machine_of(const SimBrake *b, const char *instance) {
        for (size_t i = 0; i < b->world->n_machines; i++)
                if (streq(b->world->machines[i].instance, instance))
                        return i;
        return SIZE_MAX;
}

static const char *code_of(const FakeAwsEvent *e) {
        if (e->kind == FAKE_AWS_EVENT_SPOT)
                return streq_ptr(e->action, "stop") || streq_ptr(e->action, "hibernate") ? "marked-for-stop" : "marked-for-termination";
        if (e->kind != FAKE_AWS_EVENT_HEALTH)
                return "Terminating:Wait"; /* its group does so by itself */
        return !e->action || streq(e->action, "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED")         ? "instance-retirement"
               : streq(e->action, "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED") ? "instance-stop"
                                                                                       : "system-reboot";
}

static void show_now(SimBrake *b, Sign *s) {
        const char *instance = b->world->machines[s->machine].instance;

        if (s->is_over || !sim_check_instance_alive(b->world->check, instance))
                return;
        sim_trace_add(b->world->trace, "cloud", "%s shows %s", instance, s->code);
        if (s->kind == FAKE_AWS_EVENT_SPOT)
                fake_ec2_set_spot_status(b->world->ec2, instance, s->code);
        else if (s->kind == FAKE_AWS_EVENT_HEALTH)
                fake_ec2_schedule(b->world->ec2, instance, s->change, s->code, s->until_usec);
        s->shown_usec = b->machines[s->machine].shown_usec = sim_world_now(b->world);
}

static void add_sign(SimBrake *b, size_t n, const FakeAwsEvent *e, const char *instance) {
        size_t i = machine_of(b, instance);
        uint64_t draw = hash64((uint64_t[2]){ b->world->seed, n }, 2 * sizeof(uint64_t));
        bool is_late = e->kind == FAKE_AWS_EVENT_SPOT || e->kind == FAKE_AWS_EVENT_HEALTH;
        Sign *s;
        int r;

        if (i == SIZE_MAX)
                return;
        r = GREEDY_REALLOC(b->signs, b->allocated, b->n_signs + 1);
        assert(r >= 0);
        s = &b->signs[b->n_signs++];
        *s = (Sign){ .message = n,
                     .machine = i,
                     .kind = e->kind,
                     .change = MUST(strdup(strempty(e->communication))),
                     .code = MUST(strdup(code_of(e))),
                     .until_usec = e->until_wall_usec,
                     .at_usec = sim_world_now(b->world) + (is_late && draw % 2 ? draw / 2 % SHOWN_USEC : 0) };
        if (s->at_usec <= sim_world_now(b->world)) {
                show_now(b, s);
                s->at_usec = USEC_INFINITY;
        }
}

void sim_brake_show(SimBrake *b, size_t n, const FakeAwsEvent *e) {
        bool is_hook = e->kind == FAKE_AWS_EVENT_TERMINATE_ACTION || e->kind == FAKE_AWS_EVENT_HOOK;

        if ((!is_hook && e->kind != FAKE_AWS_EVENT_SPOT && e->kind != FAKE_AWS_EVENT_HEALTH) || streq_ptr(e->status, "closed"))
                return;
        add_sign(b, n, e, e->instance);
        for (char *const *other = e->others; other && *other; other++)
                add_sign(b, n, e, *other);
}

void sim_brake_call_off(SimBrake *b, const char *instance, const char *change) {
        size_t i = machine_of(b, instance);

        for (size_t k = 0; k < b->n_signs; k++)
                if (b->signs[k].machine == i && streq(b->signs[k].change, change))
                        b->signs[k].is_over = true;
        if (i != SIZE_MAX && fake_ec2_has_event(b->world->ec2, instance, change))
                fake_ec2_describe_event(b->world->ec2, instance, change, "[Canceled] it is called off");
}

void sim_brake_note_sent(SimBrake *b, size_t machine) {
        b->machines[machine].is_sent = true;
}

void sim_brake_let_go(SimBrake *b, size_t machine) {
        const cJSON *claim = sim_world_claim(b->world, machine);
        const SimMachine *m = &b->world->machines[machine];
        char text[RFC3339_MAX];

        rfc3339_format(sim_world_wall(b->world), text);
        sim_trace_add(b->world->trace, "world", "a person lets go what is held of %s", m->node);
        b->machines[machine].let_go_usec = sim_world_now(b->world);
        fake_merge(b->world->cluster, claim ? FAKE_NODECLAIMS : FAKE_NODES, NULL, claim ? fj_string(claim, "metadata", "name", NULL) : m->node,
                   "{'metadata':{'annotations':{'vesper.sh/let-go':'%s'}}}", text);
}

/* The forger has made up the hook: its group denies it, and the coordinator calls the notice off. */
static bool is_denied(const SimBrake *b, size_t n, size_t machine, const cJSON *notice) {
        if (!streq_ptr(fj_string(notice, "state", NULL), "CalledOff") || !streq_ptr(fj_string(notice, "kind", NULL), "scale-in"))
                return false;
        for (size_t k = 0; k < b->n_signs; k++)
                if (b->signs[k].message == n && b->signs[k].machine == machine)
                        return false;
        return true;
}

usec_t sim_brake_due_usec(const SimBrake *b, size_t n, size_t machine, const cJSON *notice, usec_t due_usec) {
        const Machine *m = &b->machines[machine];
        usec_t shown = USEC_INFINITY;
        usec_t let_go = m->let_go_usec > 0 && m->let_go_usec >= m->held_usec ? m->let_go_usec : USEC_INFINITY;

        if (streq_ptr(fj_string(notice, "state", NULL), "Overruled")) /* a person has opened the Node in spite of it */
                return USEC_INFINITY;
        if (is_denied(b, n, machine, notice))
                return USEC_INFINITY;
        if (!is_held(notice) || due_usec == USEC_INFINITY)
                return due_usec;
        for (size_t k = 0; k < b->n_signs; k++)
                if (b->signs[k].message == n && b->signs[k].machine == machine && b->signs[k].shown_usec > 0 && !b->signs[k].is_over)
                        shown = usec_add(b->signs[k].shown_usec, CONFIRMED_USEC);
        return MAX(due_usec, MIN(shown, let_go));
}

/* -- what stands on claims and Nodes ------------------------------------------------------------- */

/* Names the leadership of this process; free it. NULL: nobody's. */
static char *leadership_of(const SimProcess *p) {
        return p && p->life ? MUST(strf("%s %u %u", p->user, p->life->number, p->life->term)) : NULL;
}

static bool stands(const cJSON *notice) {
        return notice && isempty(fj_string(notice, "state", NULL));
}

static size_t n_sent(const SimBrake *b) {
        size_t n = 0;

        for (size_t i = 0; i < b->world->n_machines; i++)
                n += b->machines[i].is_sent;
        return n;
}

/* Sets the deadline of the machine from a notice that stands. A held notice has no deadline. */
static void bind(SimBrake *b, size_t machine, const cJSON *notice) {
        SimMachine *m = &b->world->machines[machine];
        usec_t at;

        if (rfc3339_parse(strempty(fj_string(notice, "deadline", NULL)), &at) >= 0)
                m->deadline_usec = MIN(m->deadline_usec, at);
}

/* The cloud, the agent or a person has confirmed something of this machine. */
static bool is_known(const Machine *m) {
        return m->shown_usec > 0 || m->reported_usec > 0 || m->let_go_usec > 0;
}

static void note_list(SimBrake *b, size_t machine, const cJSON *was, const cJSON *is) {
        Machine *m = &b->machines[machine];
        SimProcess *p = sim_check_actor(b->world->check);
        const cJSON *notice, *before;

        cJSON_ArrayForEach (notice, fj_get(is, "notices", NULL)) {
                before = fj_find(fj_get(was, "notices", NULL), "id", strempty(fj_string(notice, "id", NULL)));
                if (is_held(notice) && !is_held(before) && p && n_sent(b) <= limit_of(b))
                        sim_check_broken(b->world->check, "brake",
                                         "%s holds what is announced of %s, and the queue has announced something of only %zu machines", p->user,
                                         b->world->machines[machine].node, n_sent(b));
                if (stands(notice) && is_held(before) && p && !is_known(m) &&
                    sim_check_instance_alive(b->world->check, b->world->machines[machine].instance))
                        sim_check_broken(b->world->check, "brake", "%s lets go %s, which neither the cloud nor a person confirms", p->user,
                                         strempty(fj_string(notice, "id", NULL)));
                if (stands(notice) || (is_held(notice) && m->let_go_usec > 0 && m->let_go_usec >= m->held_usec && m->held_usec > 0))
                        bind(b, machine, notice);
                if (!stands(notice) || !p ||
                    (stands(before) && streq_ptr(fj_string(notice, "deadline", NULL), fj_string(before, "deadline", NULL))))
                        continue;
                m->stands_usec = sim_world_now(b->world);
                free(m->stands_by);
                m->stands_by = leadership_of(p);
        }
        if (!has_held(is))
                m->held_usec = 0;
        else if (m->held_usec == 0)
                m->held_usec = sim_world_now(b->world);
}

void sim_brake_changed(SimBrake *b, size_t machine, bool is_claim, const cJSON *old, const cJSON *new) {
        Machine *m = &b->machines[machine];
        const char *report = fj_string(new, "metadata", "annotations", "vesper.sh/interruption", NULL);
        cJSON *was = read_list(old), *is = read_list(new);
        SimProcess *p = sim_check_actor(b->world->check);
        usec_t now = sim_world_now(b->world);

        if (report && !strstr(report, "\"phase\":\"Released\""))
                m->reported_usec = now;
        if ((!p || p->kind != SIM_COORDINATOR) && (!new || (sim_check_is_deleting(new) && !sim_check_is_deleting(old))))
                m->deleted_usec = now;
        if (new && (is_claim || !sim_world_claim(b->world, machine)))
                note_list(b, machine, was, is);
        if (!new && !sim_world_node(b->world, machine) && !sim_world_claim(b->world, machine))
                m->gone_usec = now;
        if (new && is_claim && old && sim_check_is_deleting(new) && !sim_check_is_deleting(old) &&
            sim_check_instance_alive(b->world->check, b->world->machines[machine].instance))
                sim_brake_acted(b, machine, p, "deletes the claim of");
        cJSON_Delete(was);
        cJSON_Delete(is);
}

/* -- what is done -------------------------------------------------------------------------------- */

/* Somebody else than the queue announces the end of this machine, or wants it. */
static bool is_excused(const Machine *m) {
        return is_known(m) || m->deleted_usec > 0;
}

/* The first time that this leadership has written anything. */
static usec_t first_usec(const SimBrake *b, const char *leadership) {
        usec_t first = USEC_INFINITY;

        for (size_t i = 0; i < b->world->n_machines; i++)
                if (streq_ptr(b->machines[i].acted_by, leadership))
                        first = MIN(first, b->machines[i].acted_usec);
        return first;
}

/* Machines that were acted for, of which this leadership knew when it wrote on the last of them. */
static size_t count_within(const SimBrake *b, const Machine *last) {
        size_t n = 0;

        for (size_t i = 0; i < b->world->n_machines; i++) {
                const Machine *m = &b->machines[i];

                n += m->acted_usec > 0 && m->acted_usec <= last->acted_usec &&
                     usec_add(m->acted_usec, WINDOW_USEC - WRITTEN_USEC) > last->acted_usec &&
                     (streq_ptr(m->acted_by, last->acted_by) || m->gone_usec == 0 || m->gone_usec > first_usec(b, last->acted_by));
        }
        return n;
}

void sim_brake_acted(SimBrake *b, size_t machine, const SimProcess *who, const char *what) {
        Machine *m = &b->machines[machine];

        if (!who || who->kind != SIM_COORDINATOR || is_excused(m) || m->acted_usec > 0)
                return;
        if (m->held_usec > 0 && m->stands_usec == 0)
                sim_check_broken(b->world->check, "brake", "%s %s %s, of which the queue announces only what is held", who->name, what,
                                 b->world->machines[machine].node);
        m->acted_usec = m->stands_usec > 0 ? m->stands_usec : sim_world_now(b->world);
        m->acted_by = m->stands_by ? MUST(strdup(m->stands_by)) : leadership_of(who);
        for (size_t i = 0; i < b->world->n_machines; i++)
                if (b->machines[i].acted_usec > 0 && count_within(b, &b->machines[i]) > limit_of(b))
                        sim_check_broken(b->world->check, "brake",
                                         "%s %s %s, and only the queue announces it, of more than %zu machines within ten minutes", who->name,
                                         what, b->world->machines[machine].node, limit_of(b));
}

/* -- each second --------------------------------------------------------------------------------- */

void sim_brake_look(SimBrake *b) {
        for (size_t k = 0; k < b->n_signs; k++)
                if (b->signs[k].at_usec <= sim_world_now(b->world)) {
                        show_now(b, &b->signs[k]);
                        b->signs[k].at_usec = USEC_INFINITY;
                }
}
