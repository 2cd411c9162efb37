/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules between pods may cost, shared out among the namespaces that write them; and those that are left out. */
#include <string.h>

#include "alloc-util.h"
#include "simulator-internal.h"
#include "string-util.h"

#define NAMED_MAX 5u /* in a sentence */

const SimulatorBounds simulator_bounds = { .work = UINT64_C(64) * 1000 * 1000, .bytes = UINT64_C(192) << 20 };

/* The templates of one namespace. */
typedef struct RuleOwner {
        const char *ns; /* interned */
        uint32_t *templates;
        size_t n_templates, allocated;
        uint64_t work; /* of comparing its rules with the templates that they may be about; 0: it has none */
        uint64_t cost; /* work, and what looking at nodes costs: an estimate */
} RuleOwner;

typedef struct RuleOwners {
        RuleOwner *items;
        size_t n_items, allocated;
        Hashmap *numbers; /* namespace -> its place + 1 */
} RuleOwners;

static void rule_owners_done(RuleOwners *o) {
        for (size_t i = 0; i < o->n_items; i++)
                free(o->items[i].templates);
        free(o->items);
        hashmap_free(o->numbers);
}

static int find_or_add_owner(RuleOwners *o, const char *ns, RuleOwner **ret) {
        uintptr_t number = (uintptr_t) hashmap_get(o->numbers, ns);
        int r = 0;

        if (number == 0) {
                r = GREEDY_REALLOC(o->items, o->allocated, o->n_items + 1);
                if (r < 0)
                        return r;
                o->items[o->n_items] = (RuleOwner){ .ns = ns };
                number = ++o->n_items;
                r = hashmap_put(o->numbers, ns, (void *) number);
        }
        *ret = o->items + number - 1;
        return r;
}

static int gather_owners(Simulator *s, RuleOwners *o) {
        int r = hashmap_new(HASHMAP_BORROW_KEYS, &o->numbers);

        for (uint32_t i = 0; i < s->n_templates && r >= 0; i++) {
                RuleOwner *owner;

                simulator_weigh_template(s, i);
                r = find_or_add_owner(o, s->templates[i].parsed->ns, &owner);
                if (r >= 0)
                        r = GREEDY_REALLOC(owner->templates, owner->allocated, owner->n_templates + 1);
                if (r >= 0)
                        owner->templates[owner->n_templates++] = i;
        }
        return r;
}

static void estimate_cost(const Simulator *s, RuleOwner *o) {
        uint64_t n_nodes = s->n_nodes;

        for (size_t i = 0; i < o->n_templates; i++) {
                const SimulatorTemplate *t = s->templates + o->templates[i];

                o->work += t->weight * (t->parsed->reaches_out ? s->n_templates : o->n_templates);
                o->cost += t->weight * n_nodes;
        }
        o->cost += o->work;
}

static int compare_owners(const void *a, const void *b) {
        const RuleOwner *x = a, *y = b;

        return x->cost != y->cost ? (x->cost < y->cost ? -1 : 1) : strcmp(x->ns, y->ns);
}

/* -- one namespace ------------------------------------------------------------------------------------------ */

static int connect_owner(Simulator *s, const RuleOwner *o, uint32_t rules) {
        int r = 0;

        if (s->templates[rules].parsed->reaches_out)
                for (uint32_t i = 0; i < s->n_templates && r >= 0; i++)
                        r = simulator_connect(s, rules, i);
        else
                for (size_t i = 0; i < o->n_templates && r >= 0; i++)
                        r = simulator_connect(s, rules, o->templates[i]);
        return r;
}

static int make_groups_of(Simulator *s, const RuleOwner *o) {
        int r = simulator_charge_work(s, o->work);

        for (size_t i = 0; i < o->n_templates && r >= 0; i++)
                if (s->templates[o->templates[i]].weight > 0)
                        r = simulator_group_template(s, o->templates[i]);
        for (size_t i = 0; i < o->n_templates && r >= 0; i++)
                if (s->templates[o->templates[i]].weight > 0)
                        r = connect_owner(s, o, o->templates[i]);
        return r;
}

static void forget_rules(SimulatorTemplate *t) {
        t->weight = 0;
        t->n_spread = t->n_soft_spread = t->n_affinity = t->n_anti_affinity = 0;
        t->n_preferences = 0;
        t->matches_itself = false;
        if (t->parsed->unmodelled == POD_MODELLED)
                t->parsed->unmodelled = POD_TOO_MANY_RULES;
}

static int leave_out(Simulator *s, const RuleOwner *o) {
        int r = GREEDY_REALLOC(s->left_out, s->left_out_allocated, s->n_left_out + 1);

        if (r < 0)
                return r;
        s->left_out[s->n_left_out++] = o->ns;
        for (size_t i = 0; i < o->n_templates; i++)
                forget_rules(s->templates + o->templates[i]);
        return 0;
}

/* Work that was done is spent, what it has made is memory again. */
static int try_owner(Simulator *s, const RuleOwner *o) {
        size_t n_keys = s->keys.n_items;
        uint32_t n_groups = s->n_groups;
        uint64_t bytes = s->spent.bytes;
        int r = make_groups_of(s, o);

        if (r != -E2BIG)
                return r;
        simulator_drop_groups(s, n_groups, n_keys);
        s->spent.bytes = bytes;
        return leave_out(s, o);
}

/* -- all of them -------------------------------------------------------------------------------------------- */

/* A quarter is left for pods that come later: the namespace that comes last may take all that is shared out, and then none could come that counts
 * in a rule of anybody without everything being made anew. */
static uint64_t share_of(uint64_t spent, uint64_t bound, size_t n_left) {
        uint64_t shared = bound - bound / 4;

        return spent >= shared ? spent : spent + (shared - spent) / n_left;
}

/* Those that need the least first: what they leave of their share is the others'. */
static int share_out(Simulator *s, RuleOwners *o) {
        size_t n_left = 0;
        int r = 0;

        for (size_t i = 0; i < o->n_items; i++) {
                estimate_cost(s, o->items + i);
                n_left += o->items[i].work > 0;
        }
        if (o->n_items > 1)
                qsort(o->items, o->n_items, sizeof(RuleOwner), compare_owners);
        for (size_t i = 0; i < o->n_items && r >= 0; i++) {
                if (o->items[i].work == 0)
                        continue;
                s->share = (SimulatorBounds){ share_of(s->spent.work, s->bounds.work, n_left),
                                              share_of(s->spent.bytes, s->bounds.bytes, n_left) };
                r = try_owner(s, o->items + i);
                n_left--;
        }
        return r;
}

int simulator_left_out_text(const Simulator *s, char **ret) {
        _cleanup_(strbuf_done) StrBuf b = {};
        size_t n = MIN(s->n_left_out, NAMED_MAX);

        *ret = NULL;
        if (n == 0)
                return 0;
        strbuf_addf(&b, "namespace%s ", s->n_left_out == 1 ? "" : "s");
        for (size_t i = 0; i < n; i++)
                strbuf_addf(&b, "%s'%s'", i == 0 ? "" : i + 1 < s->n_left_out ? ", " : " and ", s->left_out[i]);
        if (s->n_left_out > n)
                strbuf_addf(&b, " and %zu more", s->n_left_out - n);
        strbuf_addf(&b, " %s " TOO_MANY_RULES_TEXT, s->n_left_out == 1 ? "has" : "have");
        *ret = strbuf_steal(&b);
        return *ret ? 0 : -ENOMEM;
}

static bool leaves_out(const Simulator *s, const char *ns) {
        return s->n_left_out > 0 &&
               bsearch(&ns, s->left_out, s->n_left_out, sizeof(const char *), compare_strings);
}

/* Its rules are not looked at: its own, or those of all its namespace. */
static bool is_closed(const Simulator *s, const PodTemplate *p) {
        return p->rules_are_unread || leaves_out(s, p->ns);
}

/* Closing adds about as many groups as nodes have labels; no namespace pays for that. */
static int close_all(Simulator *s) {
        int r = 0;

        if (s->n_left_out > 1)
                qsort(s->left_out, s->n_left_out, sizeof(const char *), compare_strings);
        s->share = (SimulatorBounds){ UINT64_MAX, UINT64_MAX };
        for (uint32_t i = 0; i < s->n_templates && r >= 0; i++)
                if (s->templates[i].parsed->anti_affinity.n_items > 0 && is_closed(s, s->templates[i].parsed))
                        r = simulator_close_domains(s, i);
        return r;
}

int simulator_make_groups(Simulator *s) {
        RuleOwners owners = {};
        int r;

        for (uint32_t i = 0; i < s->n_pods; i++)
                s->templates[s->pods[i].template].n_pods++;
        r = gather_owners(s, &owners);
        if (r >= 0)
                r = share_out(s, &owners);
        if (r >= 0)
                r = close_all(s);
        rule_owners_done(&owners);
        s->share = s->bounds;
        s->spent.work = 0; /* what comes later is work of another moment */
        return r;
}

/* -- a template that comes later --------------------------------------------------------------------------- */

static int join_groups(Simulator *s, uint32_t number) {
        uint32_t first = s->n_groups;
        int r = simulator_group_template(s, number);

        for (uint32_t i = 0; i < s->n_templates && r >= 0; i++)
                r = simulator_connect(s, number, i);
        if (r >= 0 && first < s->n_groups)
                simulator_count_placed(s, first);
        return r;
}

int simulator_make_groups_of_new(Simulator *s) {
        uint32_t number = s->n_templates - 1;
        const PodTemplate *p = s->templates[number].parsed;
        uint64_t work = 0;
        int r;

        if (!is_closed(s, p))
                simulator_weigh_template(s, number);
        for (uint32_t i = 0; i < s->n_templates; i++) {
                uint64_t mine = s->templates[number].weight, others = s->templates[i].weight;
                const PodTemplate *o = s->templates[i].parsed;

                work += o->ns == p->ns ? mine + others : (p->reaches_out ? mine : 0) + (o->reaches_out ? others : 0);
        }
        r = simulator_charge_work(s, work);
        for (uint32_t i = 0; i < number && r >= 0; i++)
                r = simulator_connect(s, i, number);
        if (r < 0)
                return r;
        if (!is_closed(s, p))
                return join_groups(s, number);
        forget_rules(s->templates + number);
        return simulator_close_domains(s, number);
}
