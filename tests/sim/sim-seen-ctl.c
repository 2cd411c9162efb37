/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the rows of `vesperctl status` and the causes of `vesperctl explain` with the world. Both are
 * computed from the world's objects. */
#include "sim-seen-internal.h"

#include "fake-controllers.h"
#include "fake-selector.h"
#include "sim-ctl.h"

/* Time after which `explain` has to name a PodDisruptionBudget that allows no eviction. */
#define CLOSED_USEC SIM_SEEN_LAG_USEC

typedef struct Objects {
        SimObserver *o;
        SimCtl ctl;
} Objects;

/* Returns true if no other Node names the same machine. */
static bool is_only_one(SimObserver *o, const cJSON *node) {
        const SimMachine *m = sim_world_machine_of(o->check->world,
                                                   strempty(fj_string(node, "metadata", "name", NULL)));

        return m && sim_check_nodes_of(o->check, m) == 1;
}

/* -- status ------------------------------------------------------------------------------------ */

static void compare(Objects *x, const char *what, const char *node, double shown, double low, double high) {
        _cleanup_free_ char *key = MUST(strf("%s of %s", what, node));

        sim_seen_compare(x->o, key, shown, low, high, SIM_SEEN_LAG_USEC);
}

static const cJSON *claim_of(Objects *x, const char *node) {
        SimWorld *w = x->o->check->world;
        const SimMachine *m = sim_world_machine_of(w, node);

        return m ? sim_world_claim(w, sim_check_index(x->o->check, m)) : NULL;
}

static bool has_mark(const cJSON *node) {
        static const char *const marks[] = { "vesper.sh/interruption", "vesper.sh/heard" };

        for (size_t i = 0; i < ELEMENTSOF(marks); i++)
                if (fj_string(node, "metadata", "annotations", marks[i], NULL))
                        return true;
        return false;
}

static const StatusRow *row_of(const StatusRows *rows, const char *node, size_t *ret_n) {
        const StatusRow *found = NULL;

        *ret_n = 0;
        for (size_t i = 0; i < rows->n_rows; i++)
                if (streq_ptr(rows->rows[i].node, node)) {
                        found = rows->rows + i;
                        ++*ret_n;
                }
        return found;
}

/* Compares the row's times with the deletionTimestamp and with the deadline that the world knows. Only for
 * worlds in which nothing else sets a deadline. */
static void look_at_times(Objects *x, const StatusRow *row, const cJSON *node, const cJSON *claim) {
        SimWorld *w = x->o->check->world;
        const SimMachine *m = sim_world_machine_of(w, row->node);
        usec_t deleted, end, shown = row->deadline_usec / USEC_PER_SEC;

        if (row->since_usec > usec_add(x->ctl.snapshot.now_usec, USEC_PER_SEC))
                sim_check_broken(x->o->check, "seen", "status shows %s since a time that is yet to come",
                                 row->node);
        if (!m || !claim || w->queue || w->notices || m->power || m->has_event || w->was_restored ||
            has_mark(node) ||
            m->forced_usec != USEC_INFINITY || w->options.tgp_sec == 0 ||
            rfc3339_parse(strempty(fj_string(claim, "metadata", "deletionTimestamp", NULL)), &deleted) < 0)
                return;
        end = deleted / USEC_PER_SEC + w->options.tgp_sec;
        compare(x, "the deadline in status", row->node, (double) shown, (double) end - 1, (double) end + 1);
}

static void look_at_row(Objects *x, const StatusRows *rows, const cJSON *node) {
        const char *name = fj_string(node, "metadata", "name", NULL);
        const cJSON *claim = claim_of(x, name);
        size_t n;
        const StatusRow *row = row_of(rows, name, &n);

        compare(x, "the number of rows in status", name, (double) n, sim_seen_is_ours(node) ||
                has_mark(node), 1);
        if (!row)
                return;
        look_at_times(x, row, node, claim);
        if (claim && sim_check_is_deleting(claim) && streq_ptr(row->phase, "Draining") &&
            row->pods_left >= 0)
                compare(x, "pods left in status", name, (double) row->pods_left,
                        (double) sim_seen_pods_alive(x->o, name),
                        (double) sim_seen_pods_left(x->o, name));
        if (claim && sim_check_is_deleting(claim))
                compare(x, "status says (1: Adopted)", name, streq_ptr(row->phase, "Adopted"), 0, 0);
}

static void look_at_status(Objects *x) {
        const cJSON *node;
        StatusRows rows;
        int r;

        r = status_rows_make(&x->ctl.snapshot, &rows);
        assert(r >= 0);
        FAKE_FOREACH (node, x->o->check->world->cluster, FAKE_NODES, NULL)
                if (is_only_one(x->o, node))
                        look_at_row(x, &rows, node);
        status_rows_done(&rows);
}

/* -- explain ----------------------------------------------------------------------------------- */

/* Returns the cause about this object that holds, or NULL. Arguments that are NULL match everything. */
static const ExplainCause *cause_of(const ExplainCauses *c, const char *kind, const char *name,
                                    const char *reason) {
        for (size_t i = 0; i < c->n; i++)
                if (c->list[i].holds && (!kind || streq_ptr(c->list[i].kind, kind)) &&
                    (!name || streq_ptr(c->list[i].name, name)) &&
                    (!reason || streq_ptr(c->list[i].reason, reason)))
                        return c->list + i;
        return NULL;
}

static double figure_of(const ExplainCause *c, const char *name) {
        for (size_t i = 0; i < c->n_figures; i++)
                if (streq(c->figures[i].name, name))
                        return (double) c->figures[i].value;
        return -1;
}

static size_t n_budgets_of(SimWorld *w, const cJSON *pod) {
        const cJSON *pdb;
        size_t n = 0;

        FAKE_FOREACH (pdb, w->cluster, FAKE_PDBS, fj_string(pod, "metadata", "namespace", NULL))
                n += fake_object_selector_matches(fj_get(pdb, "spec", "selector", NULL),
                                                  fj_get(pod, "metadata", "labels", NULL));
        return n;
}

/* Returns the number of pods on the node that only this PodDisruptionBudget keeps from eviction. */
static int64_t pods_held_by(SimWorld *w, const cJSON *pdb, const char *node) {
        const cJSON *pod;
        int64_t n = 0;

        FAKE_FOREACH (pod, w->cluster, FAKE_PODS, fj_string(pdb, "metadata", "namespace", NULL))
                n += streq_ptr(fj_string(pod, "spec", "nodeName", NULL), node) &&
                !sim_check_is_deleting(pod) && !fake_pod_is_terminal(pod) &&
                     !sim_check_pod_is_daemon(pod) && fake_condition_is(pod, "Ready", "True") &&
                     !fj_get(pod, "metadata", "annotations", "vesper.sh/do-not-evict", NULL) &&
                     fake_object_selector_matches(fj_get(pdb, "spec", "selector", NULL),
                                                  fj_get(pod, "metadata", "labels", NULL)) &&
                     n_budgets_of(w, pod) == 1;
        return n;
}

static void look_at_pdb(Objects *x, const ExplainCauses *causes, const cJSON *pdb, const char *node) {
        const char *name = fj_string(pdb, "metadata", "name", NULL);
        _cleanup_free_ char *key = fake_object_key(pdb),
                *what = MUST(strf("explain names PodDisruptionBudget %s as a cause", key));
        const usec_t *closed = hashmap_get(x->o->check->closed, key);
        int64_t held = pods_held_by(x->o->check->world, pdb, node);
        const ExplainCause *c = cause_of(causes, "PodDisruptionBudget", name, NULL);

        if (held == 0 || !closed || *closed == 0 ||
            sim_world_now(x->o->check->world) < *closed + CLOSED_USEC)
                return;
        compare(x, what, node, c != NULL, 1, 1);
        if (!c)
                return;
        compare(x, "'healthy' in explain", node, figure_of(c, "healthy"),
                (double) fj_int(pdb, 0, "status", "currentHealthy", NULL),
                (double) fj_int(pdb, 0, "status", "currentHealthy", NULL));
        compare(x, "'needed' in explain", node, figure_of(c, "needed"),
                (double) fj_int(pdb, 0, "status", "desiredHealthy", NULL),
                (double) fj_int(pdb, 0, "status", "desiredHealthy", NULL));
        compare(x, "'pods' in explain", node, figure_of(c, "pods"), (double) held,
                (double) fake_count(x->o->check->world->cluster, FAKE_PODS));
}

static void look_at_drain(Objects *x, const ExplainCauses *causes, const char *node) {
        const cJSON *pdb;

        FAKE_FOREACH (pdb, x->o->check->world->cluster, FAKE_PDBS, NULL)
                look_at_pdb(x, causes, pdb, node);
}

/* Checks that `explain` names the pause if a person has paused removals, and this one has not begun. */
static void look_at_pause(Objects *x, const ExplainCauses *causes, const cJSON *node) {
        const SimWorld *w = x->o->check->world;
        const char *name = fj_string(node, "metadata", "name", NULL);
        bool pool = fj_get(claim_of(x, name), "spec", "nodePool", NULL), begun;

        begun = fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted") ||
                has_mark(node) || !fake_condition_is(node, "Ready", "True");
        if (!begun && (w->paused_usec[1] > 0 || (pool && w->paused_usec[0] > 0)))
                compare(x, "explain names the pause as a cause", name,
                        cause_of(causes, NULL, NULL, "Paused") != NULL, 1, 1);
}

static void look_at_causes(Objects *x, const ExplainCauses *causes, const cJSON *node) {
        const char *name = fj_string(node, "metadata", "name", NULL);
        const cJSON *claim = claim_of(x, name);

        if (!sim_check_is_deleting(node) && !(claim && sim_check_is_deleting(claim)) && !has_mark(node)) {
                if (!fj_string(node, "metadata", "annotations", "vesper.sh/shutdown-request", NULL) &&
                    !x->o->check->world->queue)
                        compare(x, "the number of causes that hold, in explain,", name,
                                explain_causes_first(causes) != NULL, 0, 0);
                return;
        }
        for (size_t i = 0; i < causes->n; i++)
                if (causes->list[i].since_usec > usec_add(x->ctl.snapshot.now_usec, USEC_PER_SEC))
                        sim_check_broken(x->o->check, "seen",
                                         "explain shows cause %s of %s since a time that is yet to come",
                                         causes->list[i].reason, name);
        if (!sim_check_is_deleting(node) || !sim_seen_is_ours(node))
                return;
        compare(x, "the number of causes in explain", name, (double) causes->n, 1, 1000);
        look_at_pause(x, causes, node);
        if (claim && streq_ptr(fj_string(claim, "status", "phase", NULL), "Draining"))
                look_at_drain(x, causes, name);
}

static void look_at_explain(Objects *x, const cJSON *node) {
        ExplainCauses causes = {};
        ExplainFacts facts;
        int r;

        sim_ctl_facts(&x->ctl, fj_string(node, "metadata", "name", NULL), &facts);
        r = explain_make(&facts, &causes);
        assert(r >= 0);
        look_at_causes(x, &causes, node);
        explain_causes_done(&causes);
        explain_facts_done(&facts);
}

void sim_seen_look_at_ctl(SimObserver *o) {
        SimWorld *w = o->check->world;
        const cJSON *node;
        Objects x = { .o = o };

        if (!sim_world_leader(w))
                return;
        sim_ctl_read(w, &x.ctl);
        look_at_status(&x);
        FAKE_FOREACH (node, w->cluster, FAKE_NODES, NULL)
                if (is_only_one(o, node))
                        look_at_explain(&x, node);
        sim_ctl_done(&x.ctl);
}
