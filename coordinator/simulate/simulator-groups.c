/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups there are (domain-groups.h): one per rule of each template that spreads pods or binds them to others; which
 * pods count in which; and what a pod or a ghost does to them. All that tenants can make more of is charged before it is made. */
#include <string.h>

#include "alloc-util.h"
#include "marks.h"
#include "simulator-internal.h"

#define RULE_TEXT_BYTES 1024u /* so much of a template's text weighs like one more rule */

static int charge_budget(uint64_t *spent, uint64_t more, uint64_t max) {
        if (*spent > max || more > max - *spent)
                return -E2BIG;
        *spent += more;
        return 0;
}

int simulator_charge_work(Simulator *s, uint64_t n) {
        return charge_budget(&s->spent.work, n, s->share.work);
}

static int charge_bytes(Simulator *s, uint64_t n) {
        return charge_budget(&s->spent.bytes, n, s->share.bytes);
}

/* -- one group -------------------------------------------------------------------------------------------- */

static int charge_key(Simulator *s) {
        int r = charge_bytes(s, sizeof(TopologyKey) + s->n_nodes * sizeof(uint32_t));

        return r < 0 ? r : simulator_charge_work(s, s->n_nodes);
}

static int charge_group(Simulator *s, GroupKind kind, uint32_t n_domains) {
        uint64_t bytes = sizeof(DomainGroup) + n_domains * sizeof(int32_t);

        if (kind == GROUP_SPREAD)
                bytes += n_domains * sizeof(int32_t) + s->n_nodes / 8;
        return charge_bytes(s, bytes);
}

static int add_group(Simulator *s, GroupKind kind, uint32_t template, const char *key_name, uint32_t *ret) {
        DomainGroup *g;
        uint32_t key;
        size_t n_before = s->keys.n_items;
        int r = simulator_charge_work(s, n_before);

        if (r >= 0)
                r = topology_keys_find_or_add(&s->keys, s->pool, key_name, &key);
        if (r >= 0 && s->keys.n_items > n_before)
                r = charge_key(s);
        for (uint32_t i = 0; i < s->n_nodes && r >= 0 && s->keys.n_items > n_before; i++)
                r = topology_key_set_node(s->keys.items + key, i, &s->nodes[i].labels);
        if (r >= 0)
                r = charge_group(s, kind, s->keys.items[key].n_domains);
        if (r >= 0)
                r = GREEDY_REALLOC(s->groups, s->groups_allocated, (size_t) s->n_groups + 1);
        if (r < 0)
                return r;
        g = s->groups + s->n_groups;
        *g = (DomainGroup){ .kind = kind, .template = template, .key = key };
        *ret = s->n_groups++;
        return domain_group_grow(g, s->keys.items[key].n_domains);
}

static int note(Simulator *s, uint32_t **list, size_t *n, size_t *allocated, uint32_t group) {
        int r = charge_bytes(s, sizeof(uint32_t));

        if (r >= 0)
                r = GREEDY_REALLOC(*list, *allocated, *n + 1);
        if (r >= 0)
                (*list)[(*n)++] = group;
        return r;
}

/* -- nodes that make domains -------------------------------------------------------------------------------- */

/* Of all the template's hard rules, or of all others; their groups are there. */
static bool has_all_keys(const Simulator *s, const SimulatorTemplate *t, bool hard, uint32_t node) {
        const uint32_t *groups = hard ? t->spread : t->soft_spread;

        for (size_t i = 0, n = hard ? t->n_spread : t->n_soft_spread; i < n; i++)
                if (s->keys.items[s->groups[groups[i]].key].domain_of[node] == NO_DOMAIN)
                        return false;
        return true;
}

static bool is_eligible(const Simulator *s, uint32_t template, const SpreadRule *rule, uint32_t node) {
        const PodTemplate *t = s->templates[template].parsed;
        const SimulatorNode *n = s->nodes + node;

        return has_all_keys(s, s->templates + template, rule->is_hard, node) &&
               (!rule->honors_affinity || pod_template_matches_node(t, &n->labels, n->name)) &&
               (!rule->honors_taints ||
                pod_template_tolerates_all(t, n->object->node.taints, n->object->node.n_taints));
}

/* Of a GROUP_SPREAD. */
static const SpreadRule *rule_of(const Simulator *s, uint32_t group) {
        return s->templates[s->groups[group].template].parsed->spread + s->groups[group].rule;
}

static int set_eligible(Simulator *s, uint32_t group, uint32_t node) {
        DomainGroup *g = s->groups + group;

        if (!is_eligible(s, g->template, rule_of(s, group), node))
                return 0;
        return domain_group_set_eligible(g, node, s->keys.items[g->key].domain_of[node]);
}

static bool is_forgiving(const PodTemplate *t) {
        return pod_template_tolerates(t, TAINT_UNSCHEDULABLE, NULL, "NoSchedule") &&
               pod_template_tolerates(t, TAINT_DISRUPTED, NULL, "NoSchedule");
}

/* -- the groups of a template ------------------------------------------------------------------------------- */

static int make_spread(Simulator *s, uint32_t number) {
        SimulatorTemplate *t = s->templates + number;
        const PodTemplate *p = t->parsed;

        if (p->n_spread == 0)
                return 0;
        t->spread = new0(uint32_t, p->n_spread);
        t->soft_spread = new0(uint32_t, p->n_spread);
        if (!t->spread || !t->soft_spread)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_spread; i++) {
                const SpreadRule *rule = p->spread + i;
                uint32_t group;
                int r = add_group(s, GROUP_SPREAD, number, rule->key, &group);

                if (r < 0)
                        return r;
                if (rule->is_hard)
                        t->spread[t->n_spread++] = group;
                else
                        t->soft_spread[t->n_soft_spread++] = group;
                s->groups[group].rule = (uint32_t) i;
                s->groups[group].max_skew = rule->max_skew;
                s->groups[group].min_domains = rule->is_hard ? rule->min_domains : 1;
                s->groups[group].counts_itself = spread_rule_counts_itself(rule, p);
        }
        return 0;
}

/* Nodes are eligible by all rules of the template together, so the groups come first. */
static int make_spread_domains(Simulator *s, uint32_t first) {
        int r = 0;

        for (uint32_t group = first; group < s->n_groups && r >= 0; group++) {
                const PodTemplate *p = s->templates[s->groups[group].template].parsed;

                r = simulator_charge_work(s, s->n_nodes * (1 + p->n_spread / 8));
                for (uint32_t node = 0; node < s->n_nodes && r >= 0; node++)
                        r = set_eligible(s, group, node);
                if (r >= 0 && rule_of(s, group)->honors_taints && !is_forgiving(p))
                        r = note(s, &s->taint_groups, &s->n_taint_groups, &s->taint_groups_allocated, group);
        }
        return r;
}

static int make_terms(Simulator *s, uint32_t number, GroupKind kind, const PodTerms *terms, uint32_t **ret) {
        if (terms->n_items == 0)
                return 0;
        *ret = new0(uint32_t, terms->n_items);
        if (!*ret)
                return -ENOMEM;
        for (size_t i = 0; i < terms->n_items; i++) {
                int r = add_group(s, kind, number, terms->items[i].key, *ret + i);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* -- who counts where ----------------------------------------------------------------------------------------- */

static const KeyValues *namespace_labels(const Simulator *s, const char *ns) {
        const KubeObject *o = snapshot_get(s->snapshot, SNAPSHOT_NAMESPACES, ns);

        return o ? &o->meta.labels : NULL;
}

static int reserve_places(Simulator *s, DomainGroup *g, uint32_t n) {
        int r = g->kind == GROUP_SPREAD ? charge_bytes(s, n * sizeof(uint32_t)) : 0;

        return r < 0 || g->kind != GROUP_SPREAD ? r : domain_group_reserve(g, n);
}

/* Pods of the template count in the group: those that there are have their places. */
static int counts(Simulator *s, uint32_t template, uint32_t group) {
        SimulatorTemplate *t = s->templates + template;
        int r = simulator_charge_work(s, t->n_pods);

        if (r >= 0)
                r = reserve_places(s, s->groups + group, t->n_pods);
        return r < 0 ? r : note(s, &t->counted, &t->n_counted, &t->counted_allocated, group);
}

static bool matches_all(const PodTerms *terms, const PodTemplate *p, const KeyValues *labels) {
        for (size_t i = 0; i < terms->n_items; i++)
                if (!pod_term_matches(terms->items + i, p, labels, false))
                        return false;
        return true;
}

static int count_spread(Simulator *s, const PodTemplate *of, const uint32_t *groups, size_t n_groups, uint32_t template) {
        const PodTemplate *p = s->templates[template].parsed;
        int r = 0;

        for (size_t i = 0; i < n_groups && r >= 0; i++)
                if (spread_rule_counts(rule_of(s, groups[i]), of, p))
                        r = counts(s, template, groups[i]);
        return r;
}

static int count_terms(Simulator *s, const PodTerms *terms, const uint32_t *groups, uint32_t template,
                       const KeyValues *labels) {
        const PodTemplate *p = s->templates[template].parsed;
        int r = 0;

        for (size_t i = 0; i < terms->n_items && r >= 0; i++)
                if (pod_term_matches(terms->items + i, p, labels, false))
                        r = counts(s, template, groups[i]);
        return r;
}

/* Both ways: what the term keeps away counts, and is itself kept away where an owner of the term is. A namespace that is
 * not known is taken for one that the term is about. */
static int count_anti_affinity(Simulator *s, uint32_t rules, uint32_t template, const KeyValues *labels) {
        const PodTerms *terms = &s->templates[rules].parsed->anti_affinity;
        const uint32_t *groups = s->templates[rules].anti_affinity;
        SimulatorTemplate *t = s->templates + template;
        int r = 0;

        for (size_t i = 0; i < terms->n_items && r >= 0; i++) {
                if (!pod_term_matches(terms->items + i, t->parsed, labels, true))
                        continue;
                r = counts(s, template, groups[i]);
                if (r >= 0)
                        r = note(s, &t->inverse, &t->n_inverse, &t->inverse_allocated, groups[terms->n_items + i]);
        }
        return r;
}

static bool is_ambiguous(const PodTerms *terms) {
        for (size_t i = 0; i < terms->n_items; i++)
                if (pod_term_is_ambiguous(terms->items + i))
                        return true;
        return false;
}

/* Which of the groups of the template `rules` count pods of `template`. */
static int connect(Simulator *s, uint32_t rules, uint32_t template) {
        const SimulatorTemplate *of = s->templates + rules;
        const PodTemplate *o = of->parsed, *p = s->templates[template].parsed;
        const KeyValues *labels = namespace_labels(s, p->ns);
        int r = count_spread(s, o, of->spread, of->n_spread, template);

        if (r >= 0)
                r = count_spread(s, o, of->soft_spread, of->n_soft_spread, template);
        if (r >= 0 && o->affinity.n_items > 0 && matches_all(&o->affinity, p, labels)) {
                for (size_t i = 0; i < o->affinity.n_items && r >= 0; i++)
                        r = counts(s, template, of->affinity[i]);
                if (rules == template)
                        s->templates[template].matches_itself = !is_ambiguous(&o->affinity);
        }
        if (r >= 0)
                r = count_anti_affinity(s, rules, template, labels);
        if (r >= 0)
                r = count_terms(s, &o->preferred_affinity, of->soft_affinity, template, labels);
        return r < 0 ? r : count_terms(s, &o->preferred_anti_affinity, of->soft_anti_affinity, template, labels);
}

static size_t count_rules(const PodTemplate *p) {
        return p->n_spread + p->affinity.n_items + p->anti_affinity.n_items + p->preferred_affinity.n_items +
               p->preferred_anti_affinity.n_items;
}

/* What it costs to compare a template's rules with another template. */
void simulator_weigh_template(Simulator *s, uint32_t template) {
        SimulatorTemplate *t = s->templates + template;
        size_t n = t->parsed->rules_are_unread ? 0 : count_rules(t->parsed);

        t->weight = n > 0 ? n + strlen(t->parsed->text) / RULE_TEXT_BYTES : 0;
}

static bool asks_for_namespaces(const PodTerms *t) {
        for (size_t i = 0; i < t->n_items; i++)
                if (!selector_is_empty(t->items[i].namespace_selector))
                        return true;
        return false;
}

/* Without the namespaces a rule that selects them says nothing. */
static void judge_rules(const Simulator *s, PodTemplate *p) {
        if (!s->snapshot->is_known[SNAPSHOT_NAMESPACES] && p->unmodelled == POD_MODELLED &&
            (asks_for_namespaces(&p->affinity) || asks_for_namespaces(&p->preferred_affinity)))
                p->unmodelled = POD_SNAPSHOT_INCOMPLETE;
}

int simulator_group_template(Simulator *s, uint32_t number) {
        SimulatorTemplate *t = s->templates + number;
        PodTemplate *p = t->parsed;
        PodTerms owners = p->anti_affinity;
        uint32_t first = s->n_groups;
        int r;

        judge_rules(s, p);
        r = make_spread(s, number);
        if (r >= 0)
                r = make_spread_domains(s, first);
        if (r >= 0)
                r = make_terms(s, number, GROUP_AFFINITY, &p->affinity, &t->affinity);
        t->n_affinity = t->affinity ? p->affinity.n_items : 0;
        if (r >= 0)
                r = make_terms(s, number, GROUP_TERM, &p->preferred_affinity, &t->soft_affinity);
        if (r >= 0)
                r = make_terms(s, number, GROUP_TERM, &p->preferred_anti_affinity, &t->soft_anti_affinity);
        if (r < 0 || owners.n_items == 0)
                return r;
        /* Behind the groups of the terms those of their owners. */
        t->anti_affinity = new0(uint32_t, 2 * owners.n_items);
        if (!t->anti_affinity)
                return -ENOMEM;
        for (size_t i = 0; i < owners.n_items && r >= 0; i++) {
                r = add_group(s, GROUP_TERM, number, owners.items[i].key, t->anti_affinity + i);
                if (r >= 0)
                        r = add_group(s, GROUP_OWNERS, number, owners.items[i].key,
                                      t->anti_affinity + owners.n_items + i);
                if (r >= 0)
                        r = counts(s, number, t->anti_affinity[owners.n_items + i]);
        }
        t->n_anti_affinity = owners.n_items;
        return r;
}

/* Rules of no weight are not looked at; and most are about pods of their own namespace only. */
int simulator_connect(Simulator *s, uint32_t rules, uint32_t template) {
        const PodTemplate *o = s->templates[rules].parsed, *p = s->templates[template].parsed;

        if (s->templates[rules].weight == 0 || (o->ns != p->ns && !o->reaches_out))
                return 0;
        return connect(s, rules, template);
}

static void drop_late(const uint32_t *groups, size_t *n, uint32_t first) {
        while (*n > 0 && groups[*n - 1] >= first)
                (*n)--;
}

void simulator_drop_groups(Simulator *s, uint32_t first, size_t first_key) {
        for (uint32_t i = 0; i < s->n_templates && first < s->n_groups; i++) {
                SimulatorTemplate *t = s->templates + i;

                drop_late(t->counted, &t->n_counted, first); /* groups that came last stand last */
                drop_late(t->inverse, &t->n_inverse, first);
        }
        drop_late(s->taint_groups, &s->n_taint_groups, first);
        while (s->n_groups > first)
                domain_group_done(s->groups + --s->n_groups);
        topology_keys_drop(&s->keys, s->pool, first_key);
}

/* -- rules that are not looked at -------------------------------------------------------------------------- */

static int gather_node_labels(Simulator *s) {
        int r = s->closing_of ? 0 : hashmap_new(0, &s->closing_of);

        for (uint32_t i = 0; i < s->n_nodes && r >= 0; i++)
                for (size_t k = 0; k < s->nodes[i].labels.n_items && r >= 0; k++) {
                        r = hashmap_put(s->closing_of, s->nodes[i].labels.items[k].key, NULL);
                        r = r == -EEXIST ? 0 : r;
                }
        return r;
}

/* The group of a key, one for all terms with it: whoever counts there keeps everybody away. */
static int find_or_add_closing(Simulator *s, uint32_t template, const char *key, uint32_t *ret) {
        uintptr_t number = (uintptr_t) hashmap_get(s->closing_of, key);
        int r;

        if (number > 0) {
                *ret = (uint32_t) (number - 1);
                return 0;
        }
        r = add_group(s, GROUP_OWNERS, template, key, ret);
        if (r >= 0)
                r = note(s, &s->closing, &s->n_closing, &s->closing_allocated, *ret);
        return r < 0 ? r : hashmap_replace(s->closing_of, key, (void *) ((uintptr_t) *ret + 1), NULL);
}

int simulator_close_domains(Simulator *s, uint32_t template) {
        const PodTemplate *p = s->templates[template].parsed;
        int r = s->closing_of ? 0 : gather_node_labels(s);

        for (size_t i = 0; i < p->anti_affinity.n_items && r >= 0; i++) {
                const PodTerm *term = p->anti_affinity.items + i;
                uint32_t group;

                /* Keys that no node has make no domains, and tenants may name as many as they like. */
                if ((!p->rules_are_unread && !pod_term_reaches_out(term, p->ns)) || !hashmap_contains(s->closing_of, term->key))
                        continue;
                r = find_or_add_closing(s, template, term->key, &group);
                if (r < 0 || s->groups[group].last_closed == template + 1)
                        continue;
                s->groups[group].last_closed = template + 1;
                r = counts(s, template, group);
        }
        return r;
}

/* -- pods that may count ---------------------------------------------------------------------------------- */

int simulator_reserve_groups(Simulator *s, uint32_t template) {
        SimulatorTemplate *t = s->templates + template;
        int r = 0;

        t->n_pods++;
        for (size_t i = 0; i < t->n_counted && r >= 0; i++)
                r = reserve_places(s, s->groups + t->counted[i], 1);
        return r;
}

void simulator_release_groups(Simulator *s, uint32_t template) {
        SimulatorTemplate *t = s->templates + template;

        t->n_pods--;
        for (size_t i = 0; i < t->n_counted; i++)
                if (s->groups[t->counted[i]].kind == GROUP_SPREAD) {
                        domain_group_release(s->groups + t->counted[i]);
                        s->spent.bytes -= sizeof(uint32_t);
                }
}

/* A pod that is on its way out is not spread against any more; its successor will be. */
static bool pod_counts_in(const SimulatorPod *p, const DomainGroup *g) {
        return g->kind != GROUP_SPREAD || !p->is_terminating || p->is_successor;
}

void simulator_count_placed(Simulator *s, uint32_t first) {
        for (uint32_t i = 0; i < s->n_pods; i++) {
                const SimulatorTemplate *t = s->templates + s->pods[i].template;
                uint32_t node = s->pods[i].node;

                for (size_t k = t->n_counted; node != NOWHERE && k > 0 && t->counted[k - 1] >= first; k--) {
                        DomainGroup *g = s->groups + t->counted[k - 1];
                        uint32_t domain = s->keys.items[g->key].domain_of[node];

                        if (domain != NO_DOMAIN && pod_counts_in(s->pods + i, g) && domain_group_is_eligible(g, node))
                                domain_group_count(g, domain, 1);
                }
        }
}

/* A node that was added behind the others. */
int simulator_add_node_to_groups(Simulator *s, uint32_t node) {
        int r = 0;

        for (size_t i = 0; i < s->keys.n_items && r >= 0; i++)
                r = topology_key_set_node(s->keys.items + i, node, &s->nodes[node].labels);
        for (uint32_t i = 0; i < s->n_groups && r >= 0; i++) {
                r = domain_group_grow(s->groups + i, s->keys.items[s->groups[i].key].n_domains);
                if (r >= 0 && s->groups[i].kind == GROUP_SPREAD)
                        r = set_eligible(s, i, node);
        }
        return r;
}

void simulator_drop_node_of_groups(Simulator *s, uint32_t node) {
        for (uint32_t i = 0; i < s->n_groups; i++) {
                DomainGroup *g = s->groups + i;

                if (g->kind == GROUP_SPREAD && domain_group_is_eligible(g, node))
                        domain_group_drop_node(g, node, s->keys.items[g->key].domain_of[node], 0);
        }
}

void simulator_groups_done(Simulator *s) {
        for (uint32_t i = 0; i < s->n_groups; i++)
                domain_group_done(s->groups + i);
        free(s->groups);
        free(s->taint_groups);
        free(s->left_out);
        free(s->closing);
        hashmap_free(s->closing_of);
        topology_keys_done(&s->keys, s->pool);
}

/* -- counting --------------------------------------------------------------------------------------------------- */

void simulator_count_domains(Simulator *s, uint32_t pod, uint32_t node, int direction) {
        const SimulatorPod *p = s->pods + pod;
        const SimulatorTemplate *t = s->templates + p->template;

        for (size_t i = 0; i < t->n_counted; i++) {
                DomainGroup *g = s->groups + t->counted[i];
                uint32_t domain = s->keys.items[g->key].domain_of[node];

                if (domain != NO_DOMAIN && pod_counts_in(p, g) && domain_group_is_eligible(g, node))
                        domain_group_count(g, domain, direction);
        }
}

static bool template_counts_in(const SimulatorTemplate *t, uint32_t group) {
        for (size_t i = 0; i < t->n_counted; i++)
                if (t->counted[i] == group)
                        return true;
        return false;
}

static int32_t pods_counted_on(const Simulator *s, uint32_t group, uint32_t node) {
        int32_t n = 0;

        for (uint32_t i = s->nodes[node].first_pod; i != NOWHERE; i = s->pods[i].next)
                n += pod_counts_in(s->pods + i, s->groups + group) &&
                     template_counts_in(s->templates + s->pods[i].template, group);
        return n;
}

void simulator_count_ghost(Simulator *s, uint32_t node, int direction) {
        for (size_t i = 0; i < s->n_taint_groups; i++) {
                uint32_t group = s->taint_groups[i];
                DomainGroup *g = s->groups + group;
                uint32_t domain = s->keys.items[g->key].domain_of[node];

                if (domain == NO_DOMAIN || !is_eligible(s, g->template, rule_of(s, group), node))
                        continue;
                if (direction > 0)
                        domain_group_drop_node(g, node, domain, pods_counted_on(s, group, node));
                else
                        domain_group_restore_node(g, node, domain, pods_counted_on(s, group, node));
        }
}
