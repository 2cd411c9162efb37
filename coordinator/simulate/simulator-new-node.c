/* SPDX-License-Identifier: Apache-2.0 */
/* A node that does not exist, for what would be if. */
#include "alloc-util.h"
#include "simulator-internal.h"
#include "string-util.h"

static const char *replaced(const SimulatorNewNode *new, const char *key) {
        const char *value = new->labels ? key_values_get(new->labels, key) : NULL;

        return value ?: streq(key, "kubernetes.io/hostname") ? new->name : NULL;
}

static int make_labels(Simulator *s, SimulatorNode *n, const SimulatorNewNode *new) {
        const KeyValues *old = &s->nodes[new->like].labels;
        size_t n_new = new->labels ? new->labels->n_items : 0;
        int r = 0;

        n->labels.items = new0(KeyValue, old->n_items + n_new + 1);
        if (!n->labels.items)
                return -ENOMEM;
        n->owns_labels = true;
        for (size_t i = 0; i < old->n_items && r >= 0; i++)
                r = key_values_add(&n->labels, s->pool, old->items[i].key,
                                   replaced(new, old->items[i].key) ?: old->items[i].value);
        for (size_t i = 0; i < n_new && r >= 0; i++)
                if (!key_values_get(old, new->labels->items[i].key))
                        r = key_values_add(&n->labels, s->pool, new->labels->items[i].key, new->labels->items[i].value);
        if (r >= 0) /* else one may have no key */
                key_values_sort(&n->labels);
        return r;
}

static int make_room(Simulator *s, uint32_t node, const SimulatorNewNode *new) {
        for (uint32_t i = 0; i < s->resources.n; i++)
                s->allocatable[i * s->nodes_allocated + node] = s->allocatable[i * s->nodes_allocated + new->like];
        for (size_t i = 0; new->allocatable && i < new->allocatable->n_items; i++) {
                const KeyValue *a = new->allocatable->items + i;
                uint32_t resource;
                int64_t amount;
                int r;

                if (resource_table_find(&s->resources, a->key, &resource) < 0)
                        continue; /* nobody asks for it */
                r = quantity_parse(a->value, resource == RESOURCE_CPU, QUANTITY_ROUND_DOWN, &amount);
                if (r < 0)
                        return r;
                s->allocatable[resource * s->nodes_allocated + node] = MIN(amount, AMOUNT_MAX);
        }
        for (uint32_t i = 0; i < s->resources.n; i++)
                s->free[i * s->nodes_allocated + node] = s->allocatable[i * s->nodes_allocated + node];
        return 0;
}

/* Pods of DaemonSets and static ones will be there, too. */
static void make_way(Simulator *s, uint32_t node, uint32_t like) {
        const SimulatorNode *old = s->nodes + like;

        for (size_t i = 0; i < old->n_home_pods; i++) {
                const KubePod *p = &s->pods[old->home_pods[i]].object->pod;

                if (p->is_daemon || p->is_static)
                        simulator_count_room(s, old->home_pods[i], node, 1);
        }
}

static int fill_node(Simulator *s, uint32_t number, const SimulatorNewNode *new) {
        SimulatorNode *n = s->nodes + number;
        int r;

        n->object = s->nodes[new->like].object;
        n->first_pod = NOWHERE;
        n->csi = s->nodes[new->like].csi;
        r = make_labels(s, n, new);
        if (r >= 0)
                r = make_room(s, number, new);
        return r < 0 ? r : simulator_name_node(s, number, new->name);
}

int simulator_add_node(Simulator *s, const SimulatorNewNode *new, uint32_t *ret) {
        uint32_t number = s->n_nodes;
        int r;

        if (number == s->nodes_allocated)
                return -E2BIG;
        if (hashmap_contains(s->node_numbers, new->name))
                return -EEXIST;
        r = fill_node(s, number, new);
        if (r < 0) {
                simulator_node_done(s->nodes + number, s->pool);
                s->nodes[number] = (SimulatorNode){};
                return r;
        }
        s->n_nodes++;
        r = simulator_classify_added(s, number);
        if (r >= 0)
                r = simulator_add_node_to_groups(s, number);
        if (r < 0) {
                simulator_drop_node(s, number);
                return r;
        }
        s->nodes[number].takes_pods = true;
        simulator_score_node(s, number);
        make_way(s, number, new->like);
        *ret = number;
        return 0;
}

/* What was made for its class and its domains stays: the next one like it finds it there. */
void simulator_drop_node(Simulator *s, uint32_t node) {
        SimulatorNode *n = s->nodes + node;

        assert(node + 1 == s->n_nodes && node >= s->n_first_nodes && n->first_pod == NOWHERE && !n->is_removed);
        n->takes_pods = false;
        simulator_score_node(s, node);
        simulator_drop_node_of_groups(s, node);
        hashmap_remove(s->node_numbers, n->name);
        simulator_node_done(n, s->pool);
        *n = (SimulatorNode){};
        s->n_nodes--;
        s->n_drops++;
}
