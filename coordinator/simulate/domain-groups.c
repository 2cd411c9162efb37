/* SPDX-License-Identifier: Apache-2.0 */
#include "domain-groups.h"

#include <string.h>

#include "alloc-util.h"

/* -- keys ----------------------------------------------------------------------------------------------- */

int topology_keys_find_or_add(TopologyKeys *keys, InternPool *pool, const char *name, uint32_t *ret) {
        TopologyKey *key;
        int r;

        for (size_t i = 0; i < keys->n_items; i++)
                if (keys->items[i].name == name) {
                        *ret = (uint32_t) i;
                        return 0;
                }
        r = GREEDY_REALLOC(keys->items, keys->allocated, keys->n_items + 1);
        if (r < 0)
                return r;
        key = keys->items + keys->n_items;
        *key = (TopologyKey){};
        r = hashmap_new(0, &key->values);
        if (r < 0)
                return r;
        key->name = intern(pool, name);
        if (!key->name) {
                hashmap_free(key->values);
                return -ENOMEM;
        }
        *ret = (uint32_t) keys->n_items++;
        return 0;
}

int topology_key_set_node(TopologyKey *key, uint32_t node, const KeyValues *labels) {
        const char *value = key_values_get(labels, key->name);
        uintptr_t number;
        int r = GREEDY_REALLOC(key->domain_of, key->allocated, (size_t) node + 1);

        if (r < 0)
                return r;
        key->domain_of[node] = NO_DOMAIN;
        if (!value)
                return 0;
        number = (uintptr_t) hashmap_get(key->values, value);
        if (number == 0) {
                number = key->n_domains + 1;
                r = hashmap_put(key->values, value, (void *) number);
                if (r < 0)
                        return r;
                key->n_domains++;
        }
        key->domain_of[node] = (uint32_t) (number - 1);
        return 0;
}

void topology_keys_drop(TopologyKeys *keys, InternPool *pool, size_t first) {
        while (keys->n_items > first) {
                TopologyKey *key = keys->items + --keys->n_items;

                intern_unref(pool, key->name);
                free(key->domain_of);
                hashmap_free(key->values);
        }
}

void topology_keys_done(TopologyKeys *keys, InternPool *pool) {
        topology_keys_drop(keys, pool, 0);
        free(keys->items);
        *keys = (TopologyKeys){};
}

/* -- groups --------------------------------------------------------------------------------------------- */

void domain_group_done(DomainGroup *g) {
        free(g->count);
        free(g->eligible);
        free(g->n_nodes);
        free(g->with_count);
        *g = (DomainGroup){};
}

static int grow_counts(int32_t **p, size_t before, size_t n) {
        int32_t *bigger = realloc(*p, n * sizeof(int32_t));

        if (!bigger)
                return -ENOMEM;
        memset(bigger + before, 0, (n - before) * sizeof(int32_t));
        *p = bigger;
        return 0;
}

int domain_group_grow(DomainGroup *g, uint32_t n_domains) {
        size_t n = n_domains > 0 ? n_domains : 1;
        int r;

        if (n <= g->domains_allocated)
                return 0;
        r = grow_counts(&g->count, g->domains_allocated, n);
        if (r >= 0 && g->kind == GROUP_SPREAD)
                r = grow_counts(&g->n_nodes, g->domains_allocated, n);
        if (r < 0)
                return r;
        g->domains_allocated = n;
        return 0;
}

bool domain_group_is_eligible(const DomainGroup *g, uint32_t node) {
        return g->kind != GROUP_SPREAD ||
               (node / 64 < g->eligible_words && (g->eligible[node / 64] >> (node % 64) & 1));
}

/* -- of domains that are, how many have so many pods; and the fewest -------------------------------------- */

int domain_group_reserve(DomainGroup *g, size_t n_more) {
        size_t before = g->with_count_allocated;
        int r = GREEDY_REALLOC(g->with_count, g->with_count_allocated, g->n_reserved + n_more + 1);

        if (r < 0)
                return r;
        if (g->with_count_allocated > before)
                memset(g->with_count + before, 0, (g->with_count_allocated - before) * sizeof(uint32_t));
        g->n_reserved += n_more;
        return 0;
}

void domain_group_release(DomainGroup *g) {
        assert(g->n_reserved > 0);
        g->n_reserved--;
}

static void find_minimum(DomainGroup *g) {
        if (g->n_domains == 0)
                return;
        while (g->with_count[g->minimum] == 0)
                g->minimum++;
}

void domain_group_count(DomainGroup *g, uint32_t domain, int n) {
        int32_t before = g->count[domain], after = before + n;

        assert(after >= 0);
        if (g->kind == GROUP_SPREAD && g->n_nodes[domain] > 0) {
                assert((size_t) after < g->with_count_allocated);
                g->with_count[before]--;
                g->with_count[after]++;
                if (after < g->minimum)
                        g->minimum = after;
                find_minimum(g);
        }
        g->count[domain] = after;
        g->total += n;
}

int domain_group_set_eligible(DomainGroup *g, uint32_t node, uint32_t domain) {
        size_t words = (size_t) node / 64 + 1;
        int r = domain_group_reserve(g, 0);

        if (r < 0)
                return r;
        if (g->eligible_words < words) {
                uint64_t *bigger = realloc(g->eligible, words * sizeof(uint64_t));

                if (!bigger)
                        return -ENOMEM;
                memset(bigger + g->eligible_words, 0, (words - g->eligible_words) * sizeof(uint64_t));
                g->eligible = bigger;
                g->eligible_words = words;
        }
        domain_group_restore_node(g, node, domain, 0);
        return 0;
}

void domain_group_drop_node(DomainGroup *g, uint32_t node, uint32_t domain, int32_t n_pods) {
        g->eligible[node / 64] &= ~(UINT64_C(1) << (node % 64));
        domain_group_count(g, domain, -n_pods);
        if (--g->n_nodes[domain] > 0)
                return;
        g->with_count[g->count[domain]]--;
        g->n_domains--;
        find_minimum(g);
}

void domain_group_restore_node(DomainGroup *g, uint32_t node, uint32_t domain, int32_t n_pods) {
        g->eligible[node / 64] |= UINT64_C(1) << (node % 64);
        if (g->n_nodes[domain]++ == 0) {
                int32_t count = g->count[domain];

                g->with_count[count]++;
                if (g->n_domains++ == 0 || count < g->minimum)
                        g->minimum = count;
        }
        domain_group_count(g, domain, n_pods);
}

bool domain_group_allows(const DomainGroup *g, uint32_t domain) {
        int64_t minimum = g->n_domains < g->min_domains || g->n_domains == 0 ? 0 : g->minimum;

        return g->count[domain] + g->counts_itself - minimum <= g->max_skew;
}
