/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that are launched in the place of others (sim-stock.h). */
#include "sim-check-internal.h"

#include "fake-controllers.h"
#include "sim-process.h"
#include "sim-stock.h"

/* A coordinator may act for so long upon a NodePool as it was. */
#define UNHEARD_USEC (150 * USEC_PER_SEC)
#define ATTEMPTS_MAX 3u

/* The op id of a launch, as it was when the command was called with it first. */
typedef struct SimToken {
        char *claim, *uid, *replaces;
} SimToken;

/* What is known of a NodeClaim whose machine may be replaced. */
typedef struct SimSuccession {
        const SimMachine *machine; /* NULL: its claim has named none yet */
        usec_t due_usec;   /* when a coordinator removed it for an end that its pool replaces; 0: none has */
        bool is_filled;    /* a machine in its place has become a node that takes pods */
        bool is_unwanted;  /* a person has deleted a claim in its place */
} SimSuccession;

static void *token_free(void *p) {
        SimToken *t = p;

        free(t->claim);
        free(t->uid);
        free(t->replaces);
        free(t);
        return NULL;
}

void sim_check_launches_free(SimCheck *c) {
        hashmap_free_with(c->tokens, token_free);
        hashmap_free_with(c->successions, mfree);
}

static const char *name_of(const cJSON *o) {
        return fj_string(o, "metadata", "name", NULL);
}

/* The claim that this one is in the place of; NULL: none. */
static const char *replaced_by(const cJSON *claim) {
        const cJSON *first = cJSON_GetArrayItem(fj_get(claim, "spec", "replaces", NULL), 0);

        return cJSON_IsString(first) ? first->valuestring : NULL;
}

bool sim_check_is_new_claim(const cJSON *claim) {
        return replaced_by(claim) && !fake_condition_is(claim, "Initialized", "True");
}

static SimSuccession *succession_of(SimCheck *c, const char *claim) {
        return sim_check_entry(c->successions, claim, sizeof(SimSuccession));
}

/* -- what changes -------------------------------------------------------------------------------- */

static bool pool_replaces(const cJSON *pool) {
        const char *word = fj_string(pool, "spec", "disruption", "onInterruption", NULL);

        return pool && !sim_check_is_deleting(pool) && streq_ptr(word, "Replace");
}

static bool pool_has_replaced(const SimCheck *c) {
        return c->pool_changed_usec == 0 || sim_world_now(c->world) < usec_add(c->pool_changed_usec, UNHEARD_USEC);
}

static bool is_coordinators_doing(const SimCheck *c) {
        const SimProcess *p = sim_check_actor(c);

        return p && p->kind == SIM_COORDINATOR;
}

/* A coordinator removes a machine for what its pool replaces machines for. */
static void note_due(SimCheck *c, const SimMachine *m, const cJSON *claim) {
        SimSuccession *s = succession_of(c, name_of(claim));

        if (s->due_usec == 0 && m->replaced_usec > 0 && !m->has_event && is_coordinators_doing(c) &&
            !sim_check_is_new_claim(claim) && c->pool_changed_usec == 0)
                s->due_usec = sim_world_now(c->world);
}

static void claim_changed(SimCheck *c, const cJSON *old, const cJSON *new) {
        const char *id = startswith(strempty(fj_string(new, "spec", "providerID", NULL)), "exec://");
        const char *replaced = replaced_by(new);
        SimSuccession *s = succession_of(c, name_of(new ? new : old));

        if (id)
                s->machine = sim_world_machine_of(c->world, id);
        if (replaced && fake_condition_is(new, "Initialized", "True"))
                succession_of(c, replaced)->is_filled = true;
        if (s->machine && old && !sim_check_is_deleting(old) && (!new || sim_check_is_deleting(new)))
                note_due(c, s->machine, old);
}

static void node_changed(SimCheck *c, const cJSON *old, const cJSON *new) {
        const SimMachine *m = sim_world_machine_of(c->world, name_of(new ? new : old));
        const cJSON *claim = m ? sim_world_claim(c->world, sim_check_index(c, m)) : NULL;

        if (claim && old && !sim_check_is_deleting(old) && new && sim_check_is_deleting(new) &&
            !sim_check_is_deleting(claim))
                note_due(c, m, claim);
}

void sim_check_launches_changed(SimCheck *c, const FakeChange *change, const cJSON *old,
                                const cJSON *new) {
        if (change->resource->id == FAKE_NODECLAIMS)
                claim_changed(c, old, new);
        else if (change->resource->id == FAKE_NODES)
                node_changed(c, old, new);
        else if (change->resource->id == FAKE_NODEPOOLS && pool_replaces(old) && !pool_replaces(new))
                c->pool_changed_usec = sim_world_now(c->world);
}

void sim_check_claim_unwanted(SimCheck *c, const cJSON *claim) {
        if (replaced_by(claim))
                succession_of(c, replaced_by(claim))->is_unwanted = true;
}

/* -- what is asked for --------------------------------------------------------------------------- */

static const cJSON *claim_with_token(const SimCheck *c, const char *op_id) {
        const cJSON *claim;

        FAKE_FOREACH (claim, c->world->cluster, FAKE_NODECLAIMS, NULL)
                if (streq_ptr(fj_string(claim, "status", "group", "token", NULL), op_id))
                        return claim;
        return NULL;
}

static void check_asked_for(SimCheck *c, const SimProcess *p, const SimToken *t) {
        const SimSuccession *s = succession_of(c, t->replaces);

        if (!s->machine || s->machine->replaced_usec == 0)
                sim_check_broken(c, "launch",
                                 "%s asks for a machine in the place of %s, and nobody has announced its end",
                                 p->name, s->machine ? s->machine->node : t->replaces);
        else if (!pool_has_replaced(c))
                sim_check_broken(c, "launch",
                                 "%s asks for a machine in the place of %s, and the pool does not replace it",
                                 p->name, s->machine->node);
}

void sim_check_launch_sent(SimCheck *c, const SimProcess *p, const cJSON *input) {
        const char *op_id = strempty(fj_string(input, "opId", NULL));
        const cJSON *claim = claim_with_token(c, op_id);
        const char *uid = fj_string(claim, "metadata", "uid", NULL);
        SimToken *known, *t;

        if (!claim || !replaced_by(claim)) {
                sim_check_broken(c, "launch", "%s asks for a machine by %s, which no claim carries", p->name,
                                 op_id);
                return;
        }
        HASHMAP_FOREACH (known, c->tokens)
                if (streq_ptr(known->uid, uid) && hashmap_get(c->tokens, op_id) != known)
                        sim_check_broken(c, "launch", "%s asks for a second machine for %s, by %s", p->name,
                                         name_of(claim), op_id);
        t = sim_check_entry(c->tokens, op_id, sizeof(SimToken));
        if (!t->uid)
                *t = (SimToken){ .claim = MUST(strdup(name_of(claim))),
                                 .uid = MUST(strdup(uid)),
                                 .replaces = MUST(strdup(replaced_by(claim))) };
        check_asked_for(c, p, t);
}

void sim_check_launched(SimCheck *c, const SimOrder *o) {
        const SimToken *t = hashmap_get(c->tokens, o->op_id);

        assert(t);
        for (size_t i = 0; i < sim_stock_n_orders(c->world->stock); i++) {
                const SimOrder *other = sim_stock_order(c->world->stock, i);
                const SimToken *of = hashmap_get(c->tokens, other->op_id);

                if (other != o && other->machine && of && streq(of->replaces, t->replaces) &&
                    sim_check_instance_alive(c, other->machine->instance))
                        sim_check_broken(c, "launch",
                                         "%s is launched in the place of %s, and so is %s, which lives",
                                         o->machine->node, t->replaces, other->machine->node);
        }
}

/* -- when all is over ---------------------------------------------------------------------------- */

static unsigned claims_of(const SimCheck *c, const SimMachine *m) {
        _cleanup_free_ char *id = sim_world_provider_id(c->world, m);
        const cJSON *claim;
        unsigned n = 0;

        FAKE_FOREACH (claim, c->world->cluster, FAKE_NODECLAIMS, NULL)
                n += streq_ptr(fj_string(claim, "spec", "providerID", NULL), id);
        return n;
}

/* A command without find cannot name a machine that it has launched late. If that does not join, only a
 * person can find it. */
static bool is_lost(const SimCheck *c, const SimOrder *o) {
        const SimToken *t = hashmap_get(c->tokens, o->op_id);

        return c->world->options.no_find && !succession_of((SimCheck *) c, t->claim)->machine &&
               !sim_world_node(c->world, sim_check_index(c, o->machine));
}

static void check_machine(SimCheck *c, const SimOrder *o) {
        size_t i = sim_check_index(c, o->machine);
        unsigned n = claims_of(c, o->machine);
        bool is_released = c->pool_changed_usec > 0 && sim_world_node(c->world, i);

        if (!sim_check_instance_alive(c, o->machine->instance))
                return;
        if (is_lost(c, o))
                c->seen[i].left_unmanaged = true;
        else if (n != 1 && !is_released)
                sim_check_broken(c, "launch", "%s was launched by %s and lives, and %u claims name it",
                                 o->machine->node, o->op_id, n);
}

/* The cloud had no machine to give, or three that became no node. */
static bool cloud_had_none(const SimCheck *c, const char *replaced) {
        unsigned n_bad = 0;

        for (size_t i = 0; i < sim_stock_n_orders(c->world->stock); i++) {
                const SimOrder *o = sim_stock_order(c->world->stock, i);
                const SimToken *t = hashmap_get(c->tokens, o->op_id);

                if (!streq(t->replaces, replaced))
                        continue;
                if (!o->machine && o->is_withheld)
                        return true;
                n_bad += o->machine && (o->machine_fate == SIM_MACHINE_STAYS_AWAY ||
                                        o->machine_fate == SIM_MACHINE_VANISHES);
        }
        return n_bad >= ATTEMPTS_MAX;
}

void sim_check_launches_rest(SimCheck *c) {
        const SimSuccession *s;
        const char *name;

        for (size_t i = 0; i < sim_stock_n_orders(c->world->stock); i++)
                if (sim_stock_order(c->world->stock, i)->machine)
                        check_machine(c, sim_stock_order(c->world->stock, i));
        for (HashmapIterator it = {}; hashmap_iterate(c->successions, &it, &name, (void **) &s);)
                if (s->due_usec > 0 && !s->is_filled && !s->is_unwanted && c->pool_changed_usec == 0 &&
                    !cloud_had_none(c, name))
                        sim_check_broken(c, "launch",
                                         "%s was removed at %.3f s, and nothing is in its place (%s)",
                                         s->machine->node, (double) s->due_usec / USEC_PER_SEC, name);
}
