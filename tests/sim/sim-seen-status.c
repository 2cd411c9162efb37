/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of conditions when they are written, and of the numbers in the status of NodeClaims, NodePools and
 * NodeDisruptionBudgets. */
#include "sim-seen-internal.h"

#include <inttypes.h>

#include "fake-controllers.h"
#include "marks.h"

/* Limit until which a status is written after the change that it shows. Its time is the time of the
 * change. */
#define WRITTEN_USEC (30 * USEC_PER_SEC)
/* Maximum age of the object that a writer knows if nothing is in the way. */
#define VIEW_USEC (5 * USEC_PER_SEC)
/* Tolerance for times, which are whole seconds and are read just before they are written. */
#define ROUNDED_USEC (2 * USEC_PER_SEC)

#define ANY NULL /* the reason is another object's word: a resource's, a webhook's, a cloud's */

/* Reasons that vesper gives a condition, with a space between them. */
typedef struct Row {
        FakeResourceId id;
        const char *type, *reasons;
} Row;

static const Row rows[] = {
        { FAKE_NODES, "DrainInProgress", "VesperAgent VesperCoordinator" },
        { FAKE_NODES, "Drained", "VesperAgent VesperCoordinator" },
        { FAKE_NODES, "MaintenancePlanned",
          "AdminRequested NodeRepair MaintenanceWindow NodeShutdown VesperAgent VesperCoordinator" },
        { FAKE_NODES, "MaintenanceInProgress",
          "AdminRequested NodeRepair MaintenanceWindow NodeShutdown VesperAgent VesperCoordinator" },
        { FAKE_NODES, "GracefulNodeShutdownInProgress", "NodeShutdown DrainCompleted" },
        { FAKE_NODES, "vesper.sh/TerminationBlocked", ANY },
        { FAKE_NODECLAIMS, "Launched", "Adopted Launching Launched" },
        { FAKE_NODECLAIMS, "LaunchFailing", "LaunchUnknown LaunchFailed NoCapacity LaunchRefused Accepted Launched" },
        { FAKE_NODECLAIMS, "Registered", "Adopted" },
        { FAKE_NODECLAIMS, "Initialized", "NodeReady NodeNotReady" },
        { FAKE_NODECLAIMS, "Drained", "Drained Draining" },
        { FAKE_NODECLAIMS, "VolumesDetached", "Detached WaitEnded" },
        { FAKE_NODECLAIMS, "InstanceTerminating", "Accepted" },
        { FAKE_NODECLAIMS, "vesper.sh/IdentityProved", ANY },
        { FAKE_NODECLAIMS, "vesper.sh/NodeAbsent", ANY },
        { FAKE_NODECLAIMS, "vesper.sh/NotAdopted", ANY },
        { FAKE_NODECLAIMS, "Invalid", "NotUnderstood Resolved" },
        { FAKE_NODECLAIMS, "Expired", ANY },
        { FAKE_NODECLAIMS, "Drifted", ANY },
        { FAKE_NODECLAIMS, "Empty", ANY },
        { FAKE_NODECLAIMS, "Consolidatable", ANY },
        { FAKE_NODEPOOLS, "Conflicting", "NodeSelectedTwice Resolved" },
        { FAKE_NODEPOOLS, "Invalid", "NotUnderstood Resolved" },
        { FAKE_NODEPOOLS, "NodesNotAdopted", ANY },
        { FAKE_NODEPOOLS, "IdentityUnproved", "NotProved Resolved" },
        { FAKE_NODEPOOLS, "FieldsNotActedOn", "NotImplemented Resolved" },
        { FAKE_NODEPOOLS, "Paused", ANY },
        { FAKE_NODEPOOLS, "InterruptionsHeld", "QueueAlone Resolved" },
        { FAKE_NODEPOOLS, "RepairHeld", ANY },
        { FAKE_NODEPOOLS, "Progressing", "Removing Adopting Idle" },
        { FAKE_NODEPOOLS, "Ready",
          "Invalid Conflicting NodesNotAdopted IdentityUnproved Blocked Removing Adopting Idle" },
        { FAKE_NODEPOOLS, "Stalled", "Invalid Resolved" },
        { FAKE_NDBS, "DisruptionAllowed",
          "SufficientNodes InvalidAmount SelectsNothing NoNodes PercentageOfFewerNodes AllowsNone InsufficientNodes" },
        { FAKE_NDBS, "Invalid", "Valid InvalidSpec" },
        { FAKE_NDBS, "SelectorOpenToKubelets", "LabelOfKubelet SelectsNothing LabelsProtected" },
};

static const Row *row_of(FakeResourceId id, const char *type) {
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (rows[i].id == id && streq(rows[i].type, type))
                        return rows + i;
        return NULL;
}

static bool has_word(const char *list, const char *word) {
        size_t n = strlen(word);

        for (const char *at = list; (at = strstr(at, word)); at += n)
                if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
                        return true;
        return false;
}

/* -- conditions as they are written ------------------------------------------------------------ */

typedef struct Written {
        SimObserver *o;
        const SimProcess *by;
        const char *object;
        const cJSON *old, *new; /* the object */
        const cJSON *was, *is;  /* the condition; was NULL: it is new */
        const char *type;
} Written;

static void _printf_(2, 3) condition_is_wrong(const Written *x, const char *fmt, ...) {
        _cleanup_free_ char *by = MUST(strf("condition %s of %s, as %s writes it, ", x->type, x->object,
                                            x->by->name));
        va_list ap;

        va_start(ap, fmt);
        sim_check_broken_by(x->o->check, "seen", by, fmt, ap);
        va_end(ap);
}

static bool same_status(const cJSON *a, const cJSON *b) {
        return a && streq(strempty(fj_string(a, "status", NULL)), strempty(fj_string(b, "status", NULL)));
}

/* Kubernetes' API conventions: lastTransitionTime is when the status changed last. */
static void check_since(const Written *x) {
        usec_t since, was = 0, wall = usec_add(sim_world_wall(x->o->check->world), x->by->clock_ahead_usec);

        if (rfc3339_parse(strempty(fj_string(x->is, "lastTransitionTime", NULL)), &since) < 0) {
                condition_is_wrong(x, "has no lastTransitionTime");
                return;
        }
        (void) rfc3339_parse(strempty(fj_string(x->was, "lastTransitionTime", NULL)), &was);
        if (!same_status(x->was, x->is) &&
            since > wall + ROUNDED_USEC) /* or another process wrote the time by its own clock */
                condition_is_wrong(x, "began %" PRIu64 " s from now", (since - wall) / USEC_PER_SEC);
        if (x->o->check->world->was_restored || !sim_check_was_calm(x->o->check, VIEW_USEC))
                return;
        if (same_status(x->was, x->is) && since != was)
                condition_is_wrong(x, "began at %s, and at %s before, while its status stays %s",
                                   fj_string(x->is, "lastTransitionTime", NULL),
                                   strempty(fj_string(x->was, "lastTransitionTime", NULL)),
                                   fj_string(x->is, "status", NULL));
        if (x->was && !same_status(x->was, x->is) && since + WRITTEN_USEC < wall &&
            sim_check_was_calm(x->o->check, WRITTEN_USEC))
                condition_is_wrong(x, "began %" PRIu64 " s ago, and was %s until now",
                                   (wall - since) / USEC_PER_SEC,
                                   strempty(fj_string(x->was, "status", NULL)));
}

static void check_generation(const Written *x) {
        int64_t said = fj_int(x->is, 0, "observedGeneration", NULL),
                is = fj_int(x->new, 0, "metadata", "generation", NULL);

        if (said > is)
                condition_is_wrong(x, "is of generation %" PRId64 ", and the object's is %" PRId64, said,
                                   is);
}

static void check_condition(const Written *x, FakeResourceId id) {
        const Row *row = row_of(id, x->type);
        const char *reason = strempty(fj_string(x->is, "reason", NULL));

        if (!row && id == FAKE_NODES)
                return; /* the kubelet's */
        if (!row)
                condition_is_wrong(x, "has a type that no row names");
        else if (isempty(reason) || (row->reasons && !has_word(row->reasons, reason)))
                condition_is_wrong(x, "has reason '%s', which no row names", reason);
        check_generation(x);
        check_since(x);
}

void sim_seen_conditions_written(SimObserver *o, const FakeChange *change) {
        const cJSON *old = fake_version_json(change->old), *new = fake_version_json(change->new);
        FakeResourceId id = change->resource->id;
        _cleanup_free_ char *name = NULL;
        Written x = { .o = o, .by = sim_seen_actor(o), .old = old, .new = new };

        if (!x.by || !new || (id != FAKE_NODES && id != FAKE_NODECLAIMS && id != FAKE_NODEPOOLS &&
                              id != FAKE_NDBS))
                return;
        x.object = name = fake_object_key(new);
        cJSON_ArrayForEach (x.is, fj_get(new, "status", "conditions", NULL)) {
                x.type = strempty(fj_string(x.is, "type", NULL));
                x.was = fj_find(fj_get(old, "status", "conditions", NULL), "type", x.type);
                if (!x.was || !fj_equal(x.was, x.is))
                        check_condition(&x, id);
        }
}

/* -- counts as they are written ---------------------------------------------------------------- */

/* Checks the written number of pods. The number may be old: the writer knows pods by a watch, and writes
 * progress at a limited rate. */
static void check_pods_left(SimObserver *o, const char *what, const char *node, const cJSON *was,
                            const cJSON *is) {
        if (!node || !cJSON_IsNumber(is) || fj_equal(was, is) || o->check->world->was_restored ||
            !sim_check_was_calm(o->check, WRITTEN_USEC) ||
            sim_seen_pods_alive(o, node) < sim_seen_pods_left(o, node) ||
            sim_seen_pods_left_were(o, node, (int64_t) is->valuedouble, WRITTEN_USEC))
                return;
        sim_check_broken(o->check, "seen", "podsLeft in %s of %s is written as %g, and is %" PRId64 " now",
                         what, node, is->valuedouble,
                         sim_seen_pods_left(o, node));
}

void sim_seen_counts_written(SimObserver *o, const FakeChange *change) {
        const cJSON *old = fake_version_json(change->old), *new = fake_version_json(change->new);

        if (!sim_seen_actor(o) || !new)
                return;
        if (change->resource->id == FAKE_NODECLAIMS)
                check_pods_left(o, "the claim's status", fj_string(new, "status", "nodeName", NULL),
                                fj_get(old, "status", "podsLeft", NULL),
                                fj_get(new, "status", "podsLeft", NULL));
        if (change->resource->id == FAKE_NODES) {
                cJSON *was = sim_seen_annotation(old, "vesper.sh/interruption"),
                        *is = sim_seen_annotation(new, "vesper.sh/interruption");

                check_pods_left(o, "vesper.sh/interruption", fj_string(new, "metadata", "name", NULL),
                                fj_get(was, "podsLeft", NULL),
                                fj_get(is, "podsLeft", NULL));
                cJSON_Delete(was);
                cJSON_Delete(is);
        }
}

/* -- figures ----------------------------------------------------------------------------------- */

static void compare(SimObserver *o, const cJSON *object, const char *field, int64_t shown, int64_t truth) {
        _cleanup_free_ char *key = MUST(strf("%s of %s", field,
                                             fj_string(object, "metadata", "name", NULL)));

        sim_seen_compare(o, key, (double) shown, (double) truth, (double) truth, SIM_SEEN_LAG_USEC);
}

static void compare_pods_left(SimObserver *o, const char *where, const char *node, int64_t shown) {
        _cleanup_free_ char *key = MUST(strf("podsLeft in %s of %s", where, node));

        sim_seen_compare(o, key, (double) shown, (double) sim_seen_pods_alive(o, node),
                         (double) sim_seen_pods_left(o, node), SIM_SEEN_LAG_USEC);
}

static const char *condition_status(const cJSON *object, const char *type) {
        return fj_string(fj_find(fj_get(object, "status", "conditions", NULL), "type", type), "status",
                         NULL);
}

/* Compares the status of the NodeClaim with the objects that it describes. */
static void look_at_claim(SimObserver *o, const cJSON *claim) {
        const char *node = fj_string(claim, "status", "nodeName", NULL),
                *phase = strempty(fj_string(claim, "status", "phase", NULL));
        const cJSON *object = node ? fake_get(o->check->world->cluster, FAKE_NODES, NULL, node) : NULL;

        if (!object || !sim_seen_is_ours(claim))
                return;
        if (sim_check_is_deleting(claim) && fj_get(claim, "status", "podsLeft", NULL) &&
            streq(phase, "Draining"))
                compare_pods_left(o, "the claim's status", node,
                                  fj_int(claim, -1, "status", "podsLeft", NULL));
        if (!sim_check_is_deleting(claim) && !sim_check_is_deleting(object))
                compare(o, claim, "status.phase (1: Adopted)", streq(phase, "Adopted"), !sim_check_is_new_claim(claim));
}

static bool is_held(const cJSON *object) {
        cJSON *list = sim_seen_annotation(object, "vesper.sh/announced");
        bool held = fj_find(fj_get(list, "notices", NULL), "state", "Held");

        cJSON_Delete(list);
        return held;
}

static const char *status_word(bool is) {
        return is ? "True" : "False";
}

/* Compares a condition with the truth. A missing condition counts as false. */
static void compare_condition(SimObserver *o, const cJSON *object, const char *type, bool truth) {
        _cleanup_free_ char *key = MUST(strf("condition %s of %s", type,
                                             fj_string(object, "metadata", "name", NULL)));

        sim_seen_compare_text(o, key, condition_status(object, type) ?: "False", status_word(truth),
                              SIM_SEEN_LAG_USEC);
}

static const char *condition_message(const cJSON *object, const char *type) {
        return strempty(fj_string(fj_find(fj_get(object, "status", "conditions", NULL), "type", type),
                                  "message", NULL));
}

static void look_at_pool(SimObserver *o, const cJSON *pool) {
        const char *name = fj_string(pool, "metadata", "name", NULL);
        int64_t nodes = 0, removing = 0, held = 0, shown_held;
        const cJSON *claim;

        FAKE_FOREACH (claim, o->check->world->cluster, FAKE_NODECLAIMS, NULL) {
                if (!streq_ptr(fj_string(claim, "spec", "nodePool", NULL), name))
                        continue;
                nodes += !sim_check_is_new_claim(claim) || fj_get(claim, "status", "nodeName", NULL);
                removing += sim_check_is_deleting(claim);
                held += !sim_check_is_deleting(claim) && is_held(claim);
        }
        compare(o, pool, "status.nodes", fj_int(pool, -1, "status", "nodes", NULL), nodes);
        compare(o, pool, "status.removing", fj_int(pool, -1, "status", "removing", NULL), removing);
        compare(o, pool, "status.observedGeneration", fj_int(pool, -1, "status", "observedGeneration", NULL),
                fj_int(pool, 0, "metadata", "generation", NULL));
        compare_condition(o, pool, "InterruptionsHeld", held > 0);
        compare_condition(o, pool, "Paused", o->check->world->paused_usec[0] > 0 ||
                          o->check->world->paused_usec[1] > 0);
        if (held > 0 && sscanf(strempty(strstr(condition_message(pool, "InterruptionsHeld"),
                                               "announced for ")),
                               "announced for %" SCNd64 " node", &shown_held) == 1)
                compare(o, pool, "number of nodes in condition InterruptionsHeld", shown_held, held);
}

/* The node takes pods and keeps them: Ready, its removal has not begun, and nothing drains it. */
static bool is_available(const cJSON *node) {
        static const char *const drains[] = { "vesper.sh/interruption", "vesper.sh/heard" };
        bool drained = fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted") ||
                       (fj_true(node, "spec", "unschedulable", NULL) &&
                        fj_string(node, "metadata", "annotations", "vesper.sh/cordoned-by-vesperctl", NULL));

        for (size_t i = 0; i < ELEMENTSOF(drains); i++)
                drained = drained || fj_string(node, "metadata", "annotations", drains[i], NULL);
        return fake_condition_is(node, "Ready", "True") && !drained &&
                (!sim_check_is_deleting(node) || sim_seen_is_ours(node));
}

static bool is_selected(const cJSON *budget, const cJSON *node) {
        const cJSON *label = cJSON_GetArrayItem(fj_get(budget, "spec", "selector", "matchExpressions", NULL),
                                                0);
        const char *key = fj_string(label, "key", NULL);

        return key && fj_string(node, "metadata", "labels", key, NULL);
}

static bool is_interrupted(const cJSON *node) {
        return fj_string(node, "metadata", "annotations", "vesper.sh/interruption", NULL) ||
               fj_string(node, "metadata", "annotations", "vesper.sh/heard", NULL);
}

static void look_at_budget(SimObserver *o, const cJSON *budget) {
        const cJSON *charges = fj_get(budget, "status", "disruptedNodes", NULL), *node;
        int64_t expected = 0, available = 0, desired, unsure = 0;

        FAKE_FOREACH (node, o->check->world->cluster, FAKE_NODES, NULL) {
                if (!is_selected(budget, node))
                        continue;
                expected++;
                unsure += is_interrupted(node);
                /* budget-math.h decides whether the node's notice already counts */
                available += is_available(node) &&
                !fj_find(charges, "uid", strempty(fj_string(node, "metadata", "uid", NULL)));
        }
        if (unsure > 0)
                return;
        desired = MAX(expected - fj_int(budget, 0, "spec", "maxUnavailable", NULL), INT64_C(0));
        compare(o, budget, "status.expectedNodes", fj_int(budget, -1, "status", "expectedNodes", NULL),
                expected);
        compare(o, budget, "status.currentAvailable", fj_int(budget, -1, "status", "currentAvailable", NULL),
                available);
        compare(o, budget, "status.desiredAvailable", fj_int(budget, -1, "status", "desiredAvailable", NULL),
                desired);
        compare(o, budget, "status.disruptionsAllowed",
                fj_int(budget, -1, "status", "disruptionsAllowed", NULL),
                MAX(available - desired, INT64_C(0)));
        compare_condition(o, budget, "DisruptionAllowed", available > desired);
}

static void look_at_node(SimObserver *o, const cJSON *node) {
        const char *name = fj_string(node, "metadata", "name", NULL);
        const SimMachine *m = sim_world_machine_of(o->check->world, name);
        cJSON *interruption = sim_seen_annotation(node, "vesper.sh/interruption");

        if (interruption && m && m->agent && m->agent->life && m->agent->life->ready && !m->ended &&
            streq_ptr(fj_string(interruption, "phase", NULL), "Draining") &&
            fj_get(interruption, "podsLeft", NULL))
                compare_pods_left(o, "vesper.sh/interruption", name,
                                  fj_int(interruption, -1, "podsLeft", NULL));
        cJSON_Delete(interruption);
}

void sim_seen_look_at_statuses(SimObserver *o) {
        SimWorld *w = o->check->world;
        const cJSON *object;

        FAKE_FOREACH (object, w->cluster, FAKE_NODES, NULL)
                look_at_node(o, object);
        if (!sim_world_leader(w))
                return;
        FAKE_FOREACH (object, w->cluster, FAKE_NODECLAIMS, NULL)
                look_at_claim(o, object);
        FAKE_FOREACH (object, w->cluster, FAKE_NODEPOOLS, NULL)
                look_at_pool(o, object);
        FAKE_FOREACH (object, w->cluster, FAKE_NDBS, NULL)
                look_at_budget(o, object);
}
