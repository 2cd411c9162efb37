/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-stock.h"

#include "fake-controllers.h"
#include "sim-check.h"

#define SEC USEC_PER_SEC
/* The last moment at which a machine may appear for which somebody was told "accepted" or "unknown". */
#define LATE_MAX_USEC (9 * USEC_PER_MINUTE)

struct SimStock {
        SimWorld *world;
        size_t first, next; /* machines: of the stock, and not launched yet */
        SimOrder **orders;
        size_t n_orders;
        bool is_calm;
};

SimStock *sim_stock_new(SimWorld *w, size_t first) {
        SimStock *s = MUST(new0(SimStock, 1));

        s->world = w;
        s->first = s->next = first;
        s->orders = MUST(new0(SimOrder *, w->n_machines * 8));
        for (size_t i = first; i < w->n_machines; i++)
                fake_ec2_set_state(w->ec2, w->machines[i].instance, "terminated");
        return s;
}

static void order_free(SimOrder *o) {
        timer_free(o->launch);
        timer_free(o->next);
        free(o->op_id);
        free(o);
}

SimStock *sim_stock_free(SimStock *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n_orders; i++)
                order_free(s->orders[i]);
        free(s->orders);
        free(s);
        return NULL;
}

bool sim_stock_has(const SimStock *s, const SimMachine *m) {
        return (size_t) (m - s->world->machines) >= s->next;
}

size_t sim_stock_n_orders(const SimStock *s) {
        return s->n_orders;
}

const SimOrder *sim_stock_order(const SimStock *s, size_t i) {
        return s->orders[i];
}

void sim_stock_stop_troubles(SimStock *s) {
        s->is_calm = true;
        for (size_t i = 0; i < s->n_orders; i++) {
                SimOrder *o = s->orders[i];

                o->n_refusals = 0;
                if (o->capacity_usec != USEC_INFINITY)
                        o->capacity_usec = 0;
        }
}

/* -- the machine --------------------------------------------------------------------------------- */

static usec_t draw(const SimOrder *o, const char *what, usec_t below) {
        _cleanup_free_ char *name = MUST(strf("%s/%s", o->op_id, what));

        return (sim_world_derive(o->stock->world, name, 0) >> 16) % below;
}

static size_t index_of(const SimOrder *o) {
        return (size_t) (o->machine - o->stock->world->machines);
}

static void vanish(SimOrder *o) {
        SimWorld *w = o->stock->world;

        sim_trace_add(w->trace, "cloud", "%s vanishes", o->machine->instance);
        fake_ec2_set_state(w->ec2, o->machine->instance, "terminated");
        o->machine->ended = true;
}

/* One update: the Node has its taints from the beginning. */
static void join(SimOrder *o) {
        SimWorld *w = o->stock->world;
        const char *taint = draw(o, "taint", 2) ? SIM_STARTUP_TAINT : "readiness.k8s.io/sim";
        bool is_tainted = o->machine_fate == SIM_MACHINE_TAINTED;

        sim_trace_add(w->trace, "world", "%s joins", o->machine->node);
        sim_world_join_launched(w, index_of(o), draw(o, "zone", 3) == 0 ? "us-east-1b" : SIM_ZONE,
                                is_tainted ? taint : NULL);
        if (is_tainted)
                timer_arm_in(o->next, (5 + draw(o, "untainted", 90)) * SEC);
}

static void on_next(Timer *t, void *userdata) {
        SimOrder *o = userdata;
        SimWorld *w = o->stock->world;

        if (!sim_world_instance_alive(w, index_of(o)))
                return;
        if (sim_world_node(w, index_of(o))) {
                sim_trace_add(w->trace, "world", "%s has started up", o->machine->node);
                fake_merge(w->cluster, FAKE_NODES, NULL, o->machine->node, "{'spec':{'taints':null}}");
        } else if (o->machine_fate == SIM_MACHINE_VANISHES)
                vanish(o);
        else if (o->machine_fate != SIM_MACHINE_STAYS_AWAY)
                join(o);
}

static void launch(SimOrder *o) {
        SimStock *s = o->stock;
        SimWorld *w = s->world;

        if (o->machine)
                return;
        assert(s->next < w->n_machines);
        o->machine = &w->machines[s->next++];
        sim_trace_add(w->trace, "cloud", "launches %s for %s", o->machine->instance, o->op_id);
        fake_ec2_set_state(w->ec2, o->machine->instance, "running");
        sim_check_launched(w->check, o);
        timer_arm_in(o->next, (2 + draw(o, "joined", 60)) * SEC);
}

static void on_launch(Timer *t, void *userdata) {
        launch(userdata);
}

/* -- orders -------------------------------------------------------------------------------------- */

static SimOrder *find_order(const SimStock *s, const char *op_id) {
        for (size_t i = 0; i < s->n_orders; i++)
                if (streq(s->orders[i]->op_id, op_id))
                        return s->orders[i];
        return NULL;
}

static void draw_fates(SimOrder *o) {
        static const SimOrderFate fates[] = {
                SIM_ORDER_DONE, SIM_ORDER_DONE,    SIM_ORDER_DONE,        SIM_ORDER_LATE,
                SIM_ORDER_LATE, SIM_ORDER_REFUSED, SIM_ORDER_NO_CAPACITY,
        };
        static const SimMachineFate machine_fates[] = {
                SIM_MACHINE_JOINS,   SIM_MACHINE_JOINS,      SIM_MACHINE_JOINS,
                SIM_MACHINE_TAINTED, SIM_MACHINE_STAYS_AWAY, SIM_MACHINE_VANISHES,
        };

        if (o->stock->is_calm)
                return;
        o->fate = fates[draw(o, "request", ELEMENTSOF(fates))];
        o->machine_fate = machine_fates[draw(o, "machine", ELEMENTSOF(machine_fates))];
        if (o->fate == SIM_ORDER_REFUSED)
                o->n_refusals = 1 + (unsigned) draw(o, "refusals", 4);
        if (o->fate == SIM_ORDER_NO_CAPACITY)
                o->capacity_usec = draw(o, "ever", 8) == 0
                                           ? USEC_INFINITY
                                           : sim_world_now(o->stock->world) + draw(o, "capacity", 300) * SEC;
}

static void make_timer(SimOrder *o, const char *name, timer_fn fn, Timer **ret) {
        int r = timer_new(o->stock->world->loop, name, fn, o, ret);

        assert(r >= 0);
}

static SimOrder *order_new(SimStock *s, const char *op_id) {
        SimOrder *o = MUST(new0(SimOrder, 1));

        assert(s->n_orders < s->world->n_machines * 8);
        *o = (SimOrder){ .stock = s, .op_id = MUST(strdup(op_id)) };
        make_timer(o, "sim-launch", on_launch, &o->launch);
        make_timer(o, "sim-joins", on_next, &o->next);
        s->orders[s->n_orders++] = o;
        draw_fates(o);
        return o;
}

/* A launch that is answered as late has no name yet, and neither have some of the others. */
static char *answer_of(const SimOrder *o, const char *word) {
        return o->machine ? MUST(strf("{\"launch\":\"%s\",\"providerID\":\"exec://%s\"}", word,
                                      o->machine->node))
                          : MUST(strf("{\"launch\":\"%s\"}", word));
}

static char *withhold(SimOrder *o, const char *answer) {
        o->is_withheld = true;
        return MUST(strdup(answer));
}

char *sim_stock_launch(SimStock *s, const cJSON *input) {
        const char *op_id = fj_string(input, "opId", NULL);
        SimOrder *o = find_order(s, op_id);
        usec_t now = sim_world_now(s->world);

        if (!o)
                o = order_new(s, op_id);
        if (o->machine)
                return answer_of(o, "accepted");
        if (o->n_refusals > 0) {
                o->n_refusals--;
                return withhold(o, o->n_refusals % 2
                                           ? "{\"launch\":\"refused\",\"error\":\"The quota is used up\"}"
                                           : "{\"launch\":\"later\",\"retryAfter\":7}");
        }
        if (now < o->capacity_usec || (s->next >= s->world->n_machines))
                return withhold(o, "{\"launch\":\"noCapacity\",\"error\":\"No such machine is free\"}");
        if (o->fate == SIM_ORDER_LATE && !s->is_calm) {
                if (!timer_is_armed(o->launch))
                        timer_arm_in(o->launch, 1 + draw(o, "late", LATE_MAX_USEC));
                return answer_of(o, draw(o, "unknown", 2) ? "unknown" : "accepted");
        }
        launch(o);
        return draw(o, "name", 3) == 0 ? MUST(strdup("{\"launch\":\"accepted\"}"))
                                       : answer_of(o, "accepted");
}

char *sim_stock_find(SimStock *s, const cJSON *input) {
        const SimOrder *o = find_order(s, fj_string(input, "opId", NULL));

        return o && o->machine ? MUST(strf("{\"providerID\":\"exec://%s\"}", o->machine->node))
                               : MUST(strdup("{\"providerID\":null}"));
}
