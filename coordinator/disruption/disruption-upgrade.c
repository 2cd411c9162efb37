/* SPDX-License-Identifier: Apache-2.0 */
#include "disruption-cost.h"
#include "disruption-limit.h"
#include "disruption-methods.h"
#include "string-util.h"

/*
 * To roll a pool: wave after wave, as many nodes as its budgets let go for drift at once; each is replaced by one like it, and
 * its pods may go there. PodDisruptionBudgets say in how many rounds the pods of a wave go.
 */

void upgrade_plan_done(UpgradePlan *u) {
        for (size_t i = 0; i < u->n_waves; i++)
                free(u->waves[i].nodes);
        free(u->waves);
        for (size_t i = 0; i < u->n_blocked; i++)
                gate_findings_done(u->lacks + i);
        free(u->lacks);
        free(u->blocked);
        *u = (UpgradePlan){};
}

static DisruptionPool *find_pool(DisruptionScene *s, const char *name) {
        for (size_t i = 0; i < s->n_pools; i++)
                if (streq(s->pools[i].pool->object.meta.name, name))
                        return s->pools + i;
        return NULL;
}

static int add_blocked(UpgradePlan *u, uint32_t node, GateFindings *f) {
        if (f->failed)
                return -ENOMEM;
        u->blocked[u->n_blocked] = node;
        u->lacks[u->n_blocked++] = *f;
        *f = (GateFindings){};
        return 0;
}

/* Nodes of the pool that may go at all, in the order of candidates. */
static int find_candidates(DisruptionScene *s, const DisruptionPool *pool, UpgradePlan *u, uint32_t *nodes, size_t *ret_n) {
        int r = 0;

        *ret_n = 0;
        for (uint32_t i = 0; i < s->n_nodes && r >= 0; i++) {
                GateFlags flags = scene_drain_is_bounded(s, i) ? GATE_PODS_MAY_WAIT : 0;
                _cleanup_(gate_findings_done) GateFindings f = {};

                if (s->nodes[i].pool != pool)
                        continue;
                gate_node(s, i, flags, &f);
                if (f.n_items > 0 || f.failed)
                        r = add_blocked(u, i, &f);
                else
                        nodes[(*ret_n)++] = i;
        }
        return r < 0 ? r : disruption_sort(s, nodes, *ret_n);
}

/* A successor comes, and the node goes. 1: done; 0: blocked. */
static int replace_node(DisruptionScene *s, DisruptionPool *pool, uint32_t node, GoesWith with, UpgradePlan *u) {
        const SimulateOptions o = {};
        _cleanup_(gate_findings_done) GateFindings f = {};
        SimulateVerdict v = {};
        uint32_t new;
        int r;

        r = scene_add_node(s, &(SimulatorNewNode){ .like = node, .labels = &pool->pool->template.labels }, &new);
        if (r == -E2BIG)
                u->is_cut = true;
        if (r == -E2BIG || r == -EINVAL)
                return 1;
        if (r < 0)
                return r;
        r = simulate_removal(s->simulator, &node, 1, &o, true, &v);
        if (r >= 0 && v.fits) {
                pool_count_node(s, pool, node, NULL, 1);
                r = 1;
        } else if (r >= 0) {
                gate_add_verdict(s, node, with, &v, &f);
                scene_drop_node(s, new);
                r = add_blocked(u, node, &f);
        }
        simulate_verdict_done(&v);
        return r;
}

/* Room of NodeDisruptionBudgets counts anew for each wave: successors are Ready by then, and their predecessors gone. Those that were not
 * read may have none. */
static bool has_room(DisruptionScene *s, const DisruptionPool *pool, uint32_t node) {
        return s->snapshot->is_known[SNAPSHOT_NODE_BUDGETS] && pool_allowance(pool, DISRUPTION_DRIFTED).allowed > 0 &&
               !node_budget_without_room(s, node) && pool_limits_allow(s, pool, node, NULL);
}

static int one_wave(DisruptionScene *s, DisruptionPool *pool, const uint32_t *nodes, size_t n, UpgradePlan *u,
                    size_t *ret_seen) {
        UpgradeWave wave = { .nodes = new0(uint32_t, n + 1) };
        size_t i;
        int r = wave.nodes ? 0 : -ENOMEM;

        for (i = 0; i < n && r >= 0 && has_room(s, pool, nodes[i]); i++) {
                r = replace_node(s, pool, nodes[i], u->n_waves > 0 || wave.n_nodes > 0 ? GOES_AFTER_OTHERS : GOES_ALONE, u);
                if (r <= 0)
                        continue;
                wave.nodes[wave.n_nodes++] = nodes[i];
                wave.n_new++;
                disruption_count_taken(s, nodes[i], 1);
        }
        for (size_t k = 0; k < wave.n_nodes; k++) {
                disruption_count_taken(s, wave.nodes[k], -1);
                pool_count_node(s, pool, wave.nodes[k], NULL, -1);
        }
        *ret_seen = i;
        if (r >= 0)
                r = drain_estimate(s, wave.nodes, wave.n_nodes, &wave.drain);
        if (r < 0 || wave.n_nodes == 0) {
                free(wave.nodes);
                return MIN(r, 0);
        }
        u->usec = usec_add(u->usec, usec_add(wave.drain.usec, MACHINE_START_USEC));
        u->is_endless = u->is_endless || wave.drain.is_endless;
        u->waves[u->n_waves++] = wave;
        return 0;
}

/* Nothing may go now, and nothing in the plan changes that. */
static int block_rest(DisruptionScene *s, const uint32_t *nodes, size_t n, UpgradePlan *u) {
        int r = 0;

        for (size_t i = 0; i < n && r >= 0; i++) {
                _cleanup_(gate_findings_done) GateFindings f = {};

                gate_budgets(s, nodes[i], DISRUPTION_DRIFTED, &f);
                gate_add_limit(s, s->nodes[nodes[i]].pool, nodes[i], NULL, strdup("one like it has to come first"), &f);
                r = add_blocked(u, nodes[i], &f);
        }
        return r;
}

int disruption_upgrade(DisruptionScene *s, const char *name, UpgradePlan *ret) {
        DisruptionPool *pool = find_pool(s, name);
        _cleanup_free_ uint32_t *nodes = new0(uint32_t, (size_t) s->n_nodes + 1);
        UpgradePlan u = {};
        size_t n, seen;
        int r;

        if (!pool)
                return -ENOENT;
        if (pool->pool->object.invalid)
                return -EBADMSG;
        u.pool = pool->pool;
        u.waves = new0(UpgradeWave, (size_t) s->n_nodes + 1);
        u.blocked = new0(uint32_t, (size_t) s->n_nodes + 1);
        u.lacks = new0(GateFindings, (size_t) s->n_nodes + 1);
        r = nodes && u.waves && u.blocked && u.lacks ? find_candidates(s, pool, &u, nodes, &n) : -ENOMEM;
        for (size_t at = 0; r >= 0 && at < n; at += seen) {
                r = one_wave(s, pool, nodes + at, n - at, &u, &seen);
                if (r >= 0 && seen == 0) {
                        r = block_rest(s, nodes + at, n - at, &u);
                        break;
                }
        }
        if (r < 0)
                upgrade_plan_done(&u);
        else
                *ret = u;
        return r;
}
