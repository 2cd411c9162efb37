/* SPDX-License-Identifier: Apache-2.0 */
/* What has to happen in time where nothing is in the way; and what is left when all is over. */
#include "sim-check-internal.h"

#include <inttypes.h>

#include "fake-controllers.h"
#include "page.h"
#include "sim-process.h"
#include "sim-queue.h"
#include "sim-seen.h"

#define LOOK_USEC USEC_PER_SEC
/* An announced end is acted upon after so long. */
#define SEEN_USEC (30 * USEC_PER_SEC)
/* T has passed, or a notice's time, so long ago: nothing may be left to do. */
#define LATE_USEC USEC_PER_MINUTE
/* A machine whose T has passed is told to end within this. */
#define T_USEC (20 * USEC_PER_SEC)

/* Nothing was in the way, and no Node or NodeClaim being deleted, for so long: no coordinator keeps anything. */
#define KEPT_USEC (10 * USEC_PER_SEC)
#define KEPT_LOOK_USEC (5 * USEC_PER_SEC)

/* -- what is known ----------------------------------------------------------------------------- */

static const char *annotation(SimCheck *c, size_t i, const char *key) {
        return sim_world_annotation(c->world, i, key);
}

static const char *phase_of(SimCheck *c, size_t i, cJSON **ret) {
        const char *text = annotation(c, i, "vesper.sh/interruption");

        *ret = text ? cJSON_Parse(text) : NULL;
        return strempty(fj_string(*ret, "phase", NULL));
}

/* An interruption stands on the Node, and no person has overruled it. */
static bool goes_on(SimCheck *c, size_t i) {
        cJSON *interruption;
        bool released = streq(phase_of(c, i, &interruption), "Released");

        cJSON_Delete(interruption);
        return !released && annotation(c, i, "vesper.sh/interruption");
}

bool sim_check_is_announced(SimCheck *c, size_t i) {
        const SimMachine *m = &c->world->machines[i];
        cJSON *interruption;
        bool released = streq(phase_of(c, i, &interruption), "Released"),
             is = !released && streq_ptr(fj_string(interruption, "action", NULL), "terminate") &&
                  streq_ptr(fj_string(interruption, "bootID", NULL), m->boot_id);

        cJSON_Delete(interruption);
        return is;
}

/* The deadline that stands on the Node, where both daemons read it. */
static usec_t told_deadline(SimCheck *c, size_t i) {
        const SimMachine *m = &c->world->machines[i];
        const char *copy = annotation(c, i, "vesper.sh/deadline");
        usec_t deadline = USEC_INFINITY, at;

        if (copy && rfc3339_parse(copy, &at) >= 0)
                deadline = at;
        if (m->noticed && goes_on(c, i))
                deadline = MIN(deadline, m->deadline_usec);
        if (sim_check_is_deleting(sim_world_claim(c->world, i)))
                deadline = MIN(deadline, m->forced_usec);
        return deadline;
}

static void note_since(usec_t *since, bool stands, usec_t now) {
        if (!stands)
                *since = 0;
        else if (*since == 0)
                *since = now;
}

static void learn(SimCheck *c, size_t i, usec_t now) {
        const SimMachine *m = &c->world->machines[i];
        SimSeen *seen = &c->seen[i];
        usec_t deadline = told_deadline(c, i);
        bool announced = sim_check_is_announced(c, i);

        if (m->noticed && seen->noticed_usec == 0 && !m->opened_by_admin)
                seen->opened_usec = 0;
        note_since(&seen->noticed_usec, m->noticed, now);
        note_since(&seen->announced_usec, announced, now);
        if (announced)
                seen->told_usec = now;
        if (sim_check_nodes_of(c, m) > 1)
                seen->shared_usec = now;
        note_since(&seen->deleted_usec, sim_check_is_deleting(sim_world_node(c->world, i)), now);
        if (deadline != seen->deadline_usec) {
                seen->deadline_usec = deadline;
                seen->deadline_since_usec = now;
        }
}

/* -- in time ----------------------------------------------------------------------------------- */

static bool agent_is_well(const SimMachine *m) {
        return m->agent && m->agent->life && m->agent->life->ready && !m->ended && !timer_is_armed(m->boot);
}

static void check_notice(SimCheck *c, size_t i, usec_t now) {
        const SimMachine *m = &c->world->machines[i];
        const SimSeen *seen = &c->seen[i];
        cJSON *interruption;
        const char *phase;

        if (seen->noticed_usec == 0 || !sim_world_node(c->world, i) || !agent_is_well(m) || seen->opened_usec > 0 ||
            m->opened_by_admin)
                return;
        phase = phase_of(c, i, &interruption);
        if (now > seen->noticed_usec + SEEN_USEC && sim_check_was_calm(c, SEEN_USEC) &&
            (!interruption || !sim_world_unschedulable(c->world, i)))
                sim_check_broken(c, "notice", "%s is to end, announced %" PRIu64 " s ago: its node is %s", m->node,
                                 (now - seen->noticed_usec) / USEC_PER_SEC,
                                 interruption ? "open" : "not marked");
        if (sim_world_wall(c->world) > m->deadline_usec + LATE_USEC && now > seen->noticed_usec + LATE_USEC &&
            sim_check_was_calm(c, LATE_USEC) && interruption && !streq(phase, "Drained"))
                sim_check_broken(c, "late", "the time of %s has passed, and the drain of its agent is at %s", m->node,
                                 phase);
        cJSON_Delete(interruption);
}

/* A person's word ends what the agent does, whatever the notice says. */
static void check_opened(SimCheck *c, size_t i, usec_t now) {
        const SimMachine *m = &c->world->machines[i];
        const SimSeen *seen = &c->seen[i];

        if (m->opened_by_admin && seen->opened_usec > 0 && now > seen->opened_usec + SEEN_USEC &&
            sim_check_was_calm(c, SEEN_USEC) && agent_is_well(m) && goes_on(c, i))
                sim_check_broken(c, "cordon", "a person opened %s %" PRIu64 " s ago, and its agent's drain still stands there",
                                 m->node, (now - seen->opened_usec) / USEC_PER_SEC);
}

static bool somebody_leads(SimCheck *c) {
        return sim_world_leader(c->world);
}

/* By a terminationGracePeriod that ends with the notice, and who leads can tell the time. */
static bool is_due(SimCheck *c, const SimMachine *m) {
        const SimOptions *o = &c->world->options;
        usec_t grace = o->tgp_sec * USEC_PER_SEC;

        if (o->tgp_sec == 0 && !o->tgp_zero)
                return true;
        return sim_process_knows_time(sim_world_leader(c->world)) &&
               sim_world_wall(c->world) > usec_add(usec_sub(m->deadline_usec, grace), SEEN_USEC);
}

/* A person keeps the node from vesper, or did within SEEN_USEC. A pool's claim goes then, and is made anew afterwards. A person's claim
 * stays, not adopted (standalone.h), and nothing is done for it. */
static bool is_kept_from_vesper(const SimCheck *c, size_t i, usec_t now) {
        const SimMachine *m = &c->world->machines[i];

        return sim_world_is_unmanaged(c->world, i) || (m->unmanaged_usec > 0 && now <= m->unmanaged_usec + SEEN_USEC);
}

/* What is told of its end is ended ahead of it. */
static void check_announced(SimCheck *c, size_t i, usec_t now) {
        const SimSeen *seen = &c->seen[i];
        const cJSON *claim = sim_world_claim(c->world, i);

        if (claim && !is_kept_from_vesper(c, i, now) && !sim_check_is_deleting(claim) && !c->world->options.leave_interrupted && seen->announced_usec > 0 &&
            now > seen->announced_usec + SEEN_USEC && somebody_leads(c) && is_due(c, &c->world->machines[i]) &&
            sim_check_was_calm(c, SEEN_USEC))
                sim_check_broken(c, "notice", "%s is to end, as its node has said for %" PRIu64 " s, and its claim stays",
                                 c->world->machines[i].node, (now - seen->announced_usec) / USEC_PER_SEC);
}

/* Where each waits until all others have had their turn at the cloud. */
static usec_t time_to_end(const SimCheck *c) {
        unsigned rate = c->world->options.terminations_per_minute;

        return T_USEC + (rate > 0 ? c->world->n_machines * USEC_PER_MINUTE / rate : 0);
}

/* "At T the node goes, whatever is left"; but for its machine where that is another's, too. */
static void check_deadline(SimCheck *c, size_t i, usec_t now) {
        const SimMachine *m = &c->world->machines[i];
        const SimSeen *seen = &c->seen[i];
        usec_t in = time_to_end(c);

        if (seen->deleted_usec > 0 && now > seen->deleted_usec + in && somebody_leads(c) &&
            seen->deadline_usec != USEC_INFINITY && sim_world_wall(c->world) > seen->deadline_usec + in &&
            now > seen->deadline_since_usec + in && (seen->shared_usec == 0 || now > seen->shared_usec + in) &&
            sim_check_was_calm(c, in) &&
            sim_check_instance_alive(c, m->instance))
                sim_check_broken(c, "late", "T of %s passed %" PRIu64 " s ago, and its instance has not been told to end",
                                 m->node, (sim_world_wall(c->world) - seen->deadline_usec) / USEC_PER_SEC);
}

/* -- what a coordinator lets go of ------------------------------------------------------------- */

/* Nobody but it would see what it keeps. */
static double kept_by(const SimProcess *p, const char **ret_family) {
        static const char *const families[] = { "vesper_coordinator_terminations",
                                                "vesper_coordinator_evictions_in_flight",
                                                "vesper_coordinator_evictions_waiting" };
        _cleanup_page_ Page page = page_ask(coordinator_handle, p->life->coordinator, HTTP_GET, "/metrics");

        for (size_t i = 0; i < ELEMENTSOF(families); i++)
                if (page_sum(&page, families[i]) > 0) {
                        *ret_family = families[i];
                        return page_sum(&page, families[i]);
                }
        return 0;
}

static void check_kept(SimCheck *c, usec_t now) {
        const cJSON *node;

        if (now < c->kept_usec || !sim_check_was_calm(c, KEPT_USEC))
                return;
        c->kept_usec = now + KEPT_LOOK_USEC;
        FAKE_FOREACH (node, c->world->cluster, FAKE_NODES, NULL)
                if (sim_check_is_deleting(node) || fj_string(node, "metadata", "annotations", "vesper.sh/heard", NULL))
                        c->deleted_usec = now; /* or is drained for the interruption queue */
        for (size_t i = 0; i < c->world->n_machines; i++)
                if (sim_check_is_deleting(sim_world_claim(c->world, i)))
                        c->deleted_usec = now;
        for (size_t i = 0; i < c->world->n_processes && now >= c->deleted_usec + KEPT_USEC; i++) {
                const SimProcess *p = c->world->processes[i];
                const char *family = NULL;
                double n = p->kind == SIM_COORDINATOR && p->life ? kept_by(p, &family) : 0;

                if (n > 0)
                        sim_check_broken(c, "kept", "%s says that its %s are %.0f, where nothing goes on",
                                         p->name, family, n);
        }
}

/* Volumes change with every step; the rest is looked at now and then. */
void sim_check_look(SimCheck *c) {
        usec_t now = sim_world_now(c->world);

        if (now < c->list_asked_usec)
                return;
        c->list_asked_usec = now + LOOK_USEC;
        for (size_t i = 0; i < c->world->n_machines; i++) {
                learn(c, i, now);
                check_notice(c, i, now);
                check_opened(c, i, now);
                check_deadline(c, i, now);
                check_announced(c, i, now);
                sim_check_back_in_service(c, i);
        }
        check_kept(c, now);
        if (c->world->queue)
                sim_queue_look(c->world->queue);
        sim_observer_look(c->observer);
}

/* -- when all is over -------------------------------------------------------------------------- */

/* The coordinator takes its own back by False, with the reason; agents take theirs off. */
static bool is_left(const cJSON *condition) {
        const char *reason = fj_string(condition, "reason", NULL);

        return condition && !(streq_ptr(fj_string(condition, "status", NULL), "False") &&
                              (streq_ptr(reason, "VesperCoordinator") || streq_ptr(reason, "MaintenanceWindow")));
}

/* waits: something was announced for later, and its drain has not begun. */
static const char *mark_on(const cJSON *node, bool waits) {
        static const char *const conditions[] = { "DrainInProgress", "Drained", "MaintenancePlanned",
                                                  "MaintenanceInProgress", "GracefulNodeShutdownInProgress",
                                                  "vesper.sh/TerminationBlocked" };
        const cJSON *a;

        cJSON_ArrayForEach (a, fj_get(node, "metadata", "annotations", NULL))
                if (startswith(a->string, "vesper.sh/") && !streq(a->string, "vesper.sh/reboot-taken") && /* that stays */
                    !streq(a->string, "vesper.sh/let-go") && /* a person's own */
                    !(waits && streq(a->string, "vesper.sh/announced")))
                        return a->string;
        for (size_t i = 0; i < ELEMENTSOF(conditions); i++)
                if (!(waits && streq(conditions[i], "MaintenancePlanned")) && is_left(fj_find(fj_get(node, "status", "conditions", NULL), "type", conditions[i])))
                        return conditions[i];
        if (fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted"))
                return "taint vesper.sh/disrupted";
        if (fj_string(node, "metadata", "labels", "node.kubernetes.io/exclude-from-external-load-balancers",
                      NULL))
                return "node.kubernetes.io/exclude-from-external-load-balancers";
        return NULL;
}

static void check_rest(SimCheck *c, size_t i) {
        const SimMachine *m = &c->world->machines[i];
        const cJSON *node = sim_world_node(c->world, i);
        bool waits = c->world->queue && sim_queue_waits(c->world->queue, i);

        if (!node) {
                if (sim_check_instance_alive(c, m->instance) && !c->seen[i].left_unmanaged)
                        sim_check_broken(c, "leak", "%s is leaked: its node %s is gone", m->instance, m->node);
                if (sim_world_claim(c->world, i))
                        sim_check_broken(c, "leak", "the claim of %s is left behind", m->node);
                return;
        }
        if (m->noticed || sim_check_is_deleting(node))
                return;
        /* Its Node is for a cloud controller manager to delete, which is not there. */
        if (sim_world_is_outside(c->world, i) && !c->world->options.no_pool && !sim_check_instance_alive(c, m->instance))
                return;
        if (c->world->options.n_coordinators > 0 && !c->world->options.no_pool && sim_world_claim(c->world, i) &&
            !fj_array_has(fj_get(node, "metadata", "finalizers", NULL), SIM_FINALIZER))
                sim_check_broken(c, "finalizer", "%s has lost its finalizer, and nobody put it back", m->node);
        if (mark_on(node, waits))
                sim_check_broken(c, "marks", "%s is left on %s, where nothing goes on", mark_on(node, waits), m->node);
        if (fj_true(node, "spec", "unschedulable", NULL) && !m->cordoned_by_admin)
                sim_check_broken(c, "marks", "%s is left cordoned, where nothing goes on", m->node);
        if (m->cordoned_by_admin && !fj_true(node, "spec", "unschedulable", NULL))
                sim_check_broken(c, "cordon", "%s has lost a person's cordon", m->node);
}

/* What stands in the status of the pool is what there is. */
static void check_pool(SimCheck *c) {
        const cJSON *pool = fake_get(c->world->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL), *claim;
        const cJSON *said = fj_get(pool, "status", "conditions", NULL);
        int64_t nodes = 0, removing = 0, told = fj_int(pool, -1, "status", "nodes", NULL);
        int64_t told_removing = fj_int(pool, -1, "status", "removing", NULL);

        if (!pool || sim_check_is_deleting(pool) || !somebody_leads(c))
                return;
        FAKE_FOREACH (claim, c->world->cluster, FAKE_NODECLAIMS, NULL)
                if (streq_ptr(fj_string(claim, "spec", "nodePool", NULL), SIM_POOL)) {
                        nodes++;
                        removing += sim_check_is_deleting(claim);
                }
        if (told != nodes || told_removing != removing)
                sim_check_broken(c, "pool",
                                 "its status says %" PRId64 " nodes, %" PRId64 " of them being removed; there are %" PRId64
                                 ", and %" PRId64,
                                 told, told_removing, nodes, removing);
        if (fj_int(pool, -1, "status", "blocked", NULL) > removing)
                sim_check_broken(c, "pool", "its status says that more removals are held than there are");
        if (fj_int(pool, -1, "status", "observedGeneration", NULL) !=
            fj_int(pool, 0, "metadata", "generation", NULL))
                sim_check_broken(c, "pool", "its status is not of its newest generation");
        if (streq_ptr(fj_string(fj_find(said, "type", "Ready"), "status", NULL), "True") &&
            !streq_ptr(fj_string(fj_find(said, "type", "Progressing"), "status", NULL), "False"))
                sim_check_broken(c, "pool", "it is Ready, and nodes come or go");
        if (removing > 0 && !streq_ptr(fj_string(fj_find(said, "type", "Progressing"), "status", NULL), "True"))
                sim_check_broken(c, "pool", "nodes are being removed, and it is not Progressing");
}

bool sim_check_quiet(SimCheck *c, uint64_t requests_max) {
        check_pool(c);
        if (c->world->stock)
                sim_check_launches_rest(c);
        for (size_t i = 0; i < c->world->n_machines; i++)
                check_rest(c, i);
        if (c->n_requests > requests_max)
                sim_check_broken(c, "storm", "%" PRIu64 " requests were sent, more than %" PRIu64, c->n_requests,
                                 requests_max);
        return !c->violation;
}
