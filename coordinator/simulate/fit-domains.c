/* SPDX-License-Identifier: Apache-2.0 */
/* kube-scheduler's PodTopologySpread and InterPodAffinity, over the counts of domain-groups.h; and the preferences of a pod
 * that hold where it runs now. */
#include "simulator-internal.h"

static uint32_t domain_of(const Simulator *s, const DomainGroup *g, uint32_t node) {
        return s->keys.items[g->key].domain_of[node];
}

FitReason fit_spread(const Simulator *s, const SimulatorTemplate *t, uint32_t node) {
        for (size_t i = 0; i < t->n_spread; i++) {
                const DomainGroup *g = s->groups + t->spread[i];
                uint32_t domain = domain_of(s, g, node);

                if (domain == NO_DOMAIN || !domain_group_allows(g, domain))
                        return FIT_SPREAD;
        }
        return FIT_OK;
}

static bool has_pod(const Simulator *s, uint32_t group, uint32_t node) {
        const DomainGroup *g = s->groups + group;
        uint32_t domain = domain_of(s, g, node);

        return domain != NO_DOMAIN && g->count[domain] > 0;
}

/* All keys on the node, and a pod that matches all terms in each of its domains; or, for the first of a group that looks
 * for its own kind, none of these anywhere. */
static bool affinity_holds(const Simulator *s, const SimulatorTemplate *t, uint32_t node) {
        bool everywhere = true;
        int64_t total = 0;

        for (size_t i = 0; i < t->n_affinity; i++) {
                const DomainGroup *g = s->groups + t->affinity[i];

                if (domain_of(s, g, node) == NO_DOMAIN)
                        return false;
                everywhere &= has_pod(s, t->affinity[i], node);
                total += g->total;
        }
        return everywhere || (total == 0 && t->matches_itself);
}

FitReason fit_affinity(const Simulator *s, const SimulatorTemplate *t, uint32_t node) {
        if (t->n_affinity > 0 && !affinity_holds(s, t, node))
                return FIT_AFFINITY;
        for (size_t i = 0; i < t->n_anti_affinity; i++)
                if (has_pod(s, t->anti_affinity[i], node))
                        return FIT_ANTI_AFFINITY;
        for (size_t i = 0; i < t->n_inverse; i++)
                if (has_pod(s, t->inverse[i], node))
                        return FIT_ANTI_AFFINITY;
        for (size_t i = 0; i < s->n_closing && !pod_lacks_rules(t->parsed->unmodelled); i++)
                if (has_pod(s, s->closing[i], node))
                        return FIT_ANTI_AFFINITY;
        return FIT_OK;
}

/* -- preferences ------------------------------------------------------------------------------------------ */

/* In one order: node affinity, ScheduleAnyway, affinity, anti-affinity. Those past the 64th are not looked at. */
typedef struct Bits {
        uint64_t set;
        unsigned n;
} Bits;

static void bits_add(Bits *b, bool holds) {
        if (b->n < 64)
                b->set |= (uint64_t) holds << b->n;
        b->n++;
}

uint64_t preferences_that_hold(const Simulator *s, uint32_t pod, uint32_t node) {
        const SimulatorTemplate *t = s->templates + s->pods[pod].template;
        const PodTemplate *p = t->parsed;
        const SimulatorNode *n = s->nodes + node;
        Bits bits = {};

        for (size_t i = 0; i < p->preferred.n_items; i++)
                bits_add(&bits, node_term_matches(p->preferred.items + i, &n->labels, n->name));
        for (size_t i = 0; i < t->n_soft_spread; i++) {
                const DomainGroup *g = s->groups + t->soft_spread[i];
                uint32_t domain = domain_of(s, g, node);

                bits_add(&bits, domain != NO_DOMAIN && domain_group_allows(g, domain));
        }
        for (size_t i = 0; i < p->preferred_affinity.n_items; i++)
                bits_add(&bits, has_pod(s, t->soft_affinity[i], node));
        for (size_t i = 0; i < p->preferred_anti_affinity.n_items; i++)
                bits_add(&bits, !has_pod(s, t->soft_anti_affinity[i], node));
        return bits.set;
}

FitReason fit_preferences(const Simulator *s, uint32_t pod, uint32_t node) {
        uint64_t held = s->pods[pod].held_preferences;

        return held == 0 || (held & ~preferences_that_hold(s, pod, node)) == 0 ? FIT_OK : FIT_PREFERENCE;
}
