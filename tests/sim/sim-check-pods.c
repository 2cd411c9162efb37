/* SPDX-License-Identifier: Apache-2.0 */
/* Pods: who may end one, when, and with how much grace. */
#include "sim-check-internal.h"

#include <inttypes.h>

#include "fake-controllers.h"
#include "fake-selector.h"
#include "sim-notices.h"
#include "sim-process.h"
#include "sim-queue.h"

/* A PDB's status follows its pods within this. */
#define STATUS_USEC (100 * USEC_PER_MSEC)
/* ... and who reads what, where nothing is in the way. */
#define VIEW_USEC (200 * USEC_PER_MSEC)
/* Whoever was told a deadline, or of a person's word, has acted upon it after so long. */
#define HEARD_USEC (15 * USEC_PER_SEC)
/* A watch from before etcd was restored tells nothing; after five minutes all is listed. A coordinator closes its nodes
 * anew then, or ten minutes after it did so last (object-writes.h); an agent reads its own before. */
#define REHEARD_USEC (13 * USEC_PER_MINUTE)
/* A machine's agent hears by D-Bus that its shutdown is cancelled. */
#define CANCEL_HEARD_USEC (10 * USEC_PER_MSEC)
/* A request gets there within this, if it does ("requests crawl"). */
#define WAY_USEC (6 * USEC_PER_SEC)
/* How long daemons wait for the answer of an eviction or a delete, and a moment to ask again. */
#define ANSWER_USEC (31 * USEC_PER_SEC)

static bool closed_to_pods(const cJSON *node) {
        return fj_true(node, "spec", "unschedulable", NULL) ||
               fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted");
}

static bool pod_healthy(const cJSON *pod) {
        return fake_condition_is(pod, "Ready", "True") && !sim_check_is_deleting(pod);
}

bool sim_check_pod_is_daemon(const cJSON *pod) {
        return streq_ptr(fj_string(fake_controller_of(pod), "kind", NULL), "DaemonSet") ||
               fj_string(pod, "metadata", "annotations", "kubernetes.io/config.mirror", NULL);
}

/* The key by which this pod opted out of drains; NULL: it did not. */
static const char *opt_out(const cJSON *pod) {
        static const char *const keys[][2] = {
                { "vesper.sh/do-not-evict", "true" },
                { "karpenter.sh/do-not-evict", "true" },
                { "karpenter.sh/do-not-disrupt", "true" },
                { "cluster-autoscaler.kubernetes.io/safe-to-evict", "false" },
        };

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq_ptr(fj_string(pod, "metadata", "annotations", keys[i][0], NULL), keys[i][1]) ||
                    streq_ptr(fj_string(pod, "metadata", "labels", keys[i][0], NULL), keys[i][1]))
                        return keys[i][0];
        return NULL;
}

/* -- one pod that a request of ours ends, or ends sooner --------------------------------------- */

typedef struct End {
        const SimMachine *machine;
        const cJSON *old, *new, *node;
        const char *name, *user;
        int64_t own, given;             /* grace, seconds */
        usec_t now, deadline, own_usec; /* wall clock */
        bool eviction, again, forced;
} End;

static SimAsked asked_about(const SimCheck *c, const End *e) {
        _cleanup_free_ char *pod = MUST(strf("%s/%s", fj_string(e->new, "metadata", "namespace", NULL), e->name));

        return sim_check_asked(c, pod);
}

/* The end of its machine was cancelled, or had come, when this had left. */
static bool was_under_way(const SimCheck *c, const End *e) {
        usec_t over = MAX(e->machine->cancelled_usec, e->machine->off_usec);

        return over > 0 && asked_about(c, e).last_usec <= over + CANCEL_HEARD_USEC;
}

static void check_place(SimCheck *c, const End *e) {
        const SimProcess *p = sim_check_actor(c);

        bool heard = c->world->queue && sim_queue_calls_for_drain(c->world->queue, sim_check_index(c, e->machine));

        if (e->deadline == USEC_INFINITY && !e->machine->has_event && !heard && e->node && !sim_check_is_deleting(e->node) && !was_under_way(c, e))
                sim_check_broken(c, "evicted", "%s ends pod %s of %s, for which nothing is announced", e->user,
                                 e->name, e->machine->node);
        /* When its time is over, a node goes whatever is left, even one that could not be cordoned. One that was opened since the request
         * left was closed then. */
        if (e->node && !closed_to_pods(e->node) && !e->machine->opened_by_admin && e->now < e->deadline &&
            !was_under_way(c, e) &&
            !sim_check_is_just_restored(c, p->kind == SIM_AGENT ? HEARD_USEC + WAY_USEC : REHEARD_USEC))
                sim_check_broken(c, "evicted", "%s ends pod %s of %s, which still takes pods", e->user, e->name,
                                 e->machine->node);
        if (c->world->notices && !sim_notices_may_drain(c->world->notices, sim_check_index(c, e->machine)))
                sim_check_broken(c, "notice", "%s ends pod %s of %s, and nothing that is announced calls for that", e->user, e->name,
                                 e->machine->node);
        if (p->kind == SIM_AGENT && sim_check_was_rebooted(e->machine) && !sim_faults_by_chance(c->world->faults))
                sim_check_broken(c, "evicted", "%s ends pod %s of %s for a notice of before its reboot", e->user,
                                 e->name, e->machine->node);
}

/* Whoever has a view knows of this pod's opt-out. */
static bool is_known(const SimCheck *c, const cJSON *pod) {
        const usec_t *since = hashmap_get(c->opted, strempty(fj_string(pod, "metadata", "uid", NULL)));

        return since && (*since < c->promise_usec || (sim_world_now(c->world) > *since + HEARD_USEC &&
                                                      sim_check_was_calm(c, HEARD_USEC)));
}

static void note_opt_out(SimCheck *c, const cJSON *old, const cJSON *new) {
        const char *uid = strempty(fj_string(new, "metadata", "uid", NULL));

        if (!streq_ptr(opt_out(old), opt_out(new)))
                *(usec_t *) sim_check_entry(c->opted, uid, sizeof(usec_t)) = sim_world_now(c->world);
}

/* An interruption waits for nobody; nor does one that is over, as long as that is news. */
static bool is_interrupted(const SimCheck *c, const End *e) {
        usec_t last = c->seen[sim_check_index(c, e->machine)].interrupted_usec;

        return sim_check_tells_of_end(e->node) ||
               (last > 0 && (sim_world_now(c->world) < last + HEARD_USEC + WAY_USEC ||
                             !sim_check_was_calm(c, HEARD_USEC + WAY_USEC)));
}

static void check_kind(SimCheck *c, const End *e) {
        const char *key = opt_out(e->new);

        if (sim_check_pod_is_daemon(e->new))
                sim_check_broken(c, "daemon", "%s ends pod %s of %s, a DaemonSet's or static one", e->user,
                                 e->name, e->machine->node);
        /* An agent acts upon interruptions alone. */
        if (key && !e->forced && !e->again && sim_check_actor(c)->kind == SIM_COORDINATOR &&
            is_known(c, e->new) && !is_interrupted(c, e))
                sim_check_broken(c, "protected", "%s ends pod %s of %s, which opted out by %s, and nothing forces",
                                 e->user, e->name, e->machine->node, key);
}

/* Had nothing been in the way, it would have been told at T minus its grace. */
static bool could_have_had_all(const SimCheck *c, const End *e) {
        const SimSeen *seen = &c->seen[sim_check_index(c, e->machine)];
        usec_t ago = usec_sub(e->now, usec_sub(e->deadline, e->own_usec)), created;
        usec_t since = seen->deadline_since_usec;

        /* A coordinator has no business with a node before it is being deleted. */
        if (sim_check_actor(c)->kind == SIM_COORDINATOR)
                since = seen->deleted_usec > 0 ? MAX(since, seen->deleted_usec) : sim_world_now(c->world);

        return e->deadline != USEC_INFINITY && seen->deadline_usec == e->deadline && sim_check_was_calm(c, ago + HEARD_USEC) &&
               since + HEARD_USEC + ago < sim_world_now(c->world) &&
               rfc3339_parse(strempty(fj_string(e->new, "metadata", "creationTimestamp", NULL)), &created) >= 0 &&
               created + HEARD_USEC + ago < e->now;
}

/* It has asked for this before, and may not know what became of that. */
static bool may_be_unsure(const SimCheck *c, const End *e) {
        usec_t now = sim_world_now(c->world), unsure = asked_about(c, e).unsure_usec,
               cut = sim_check_actor(c)->cut_usec;

        return (unsure > 0 && now < unsure + ANSWER_USEC) || (cut > 0 && now < cut + ANSWER_USEC);
}

/* When the node ends, as whoever ends the pod could read there when his request left; USEC_INFINITY: he may not know.
 * T: another leader may have written it, and an agent keeps to the earlier of the two. */
static usec_t said_deadline(const SimCheck *c, const End *e) {
        const SimSeen *seen = &c->seen[sim_check_index(c, e->machine)];
        const char *text = fj_string(e->node, "metadata", "annotations", "vesper.sh/interruption", NULL);
        const char *copy = fj_string(e->node, "metadata", "annotations", "vesper.sh/deadline", NULL);
        usec_t sent = asked_about(c, e).sent_usec, at = USEC_INFINITY, told;
        bool own = text && sim_check_actor(c)->kind == SIM_AGENT && sent > seen->said_usec;
        cJSON *interruption = own ? cJSON_Parse(text) : NULL;

        if (rfc3339_parse(strempty(fj_string(interruption, "deadline", NULL)), &at) < 0)
                at = USEC_INFINITY;
        if (copy && sim_check_was_calm(c, HEARD_USEC) && sent > seen->copied_usec + VIEW_USEC &&
            rfc3339_parse(copy, &told) >= 0)
                at = MIN(at, told);
        cJSON_Delete(interruption);
        return at;
}

static void check_grace(SimCheck *c, const End *e) {
        usec_t given_usec = (usec_t) e->given * USEC_PER_SEC, left = usec_sub(e->deadline, e->now);

        /* A request that was late: its node is gone, by a leader whose clock was ahead, and nothing runs there. */
        if (!e->node)
                return;
        if ((!e->eviction || e->again || e->given < e->own) && !e->forced)
                sim_check_broken(c, "grace", "%s %s pod %s with %" PRIi64 " s of %" PRIi64 " s before its time",
                                 e->user, e->eviction ? "evicts" : "deletes", e->name, e->given, e->own);
        /* Who was not told that the pod is going already, and asks again when he has waited for the answer, counts
         * from the wrong moment: no fault of its. */
        if (e->again && may_be_unsure(c, e))
                return;
        if (usec_add(e->now + given_usec, SIM_SLACK_USEC) < MIN(e->now + e->own_usec, e->deadline))
                sim_check_broken(c, "grace", "%s gives pod %s %" PRIi64 " s though there is more time: %" PRIu64
                                 " s are left, and it asks for %" PRIi64,
                                 e->user, e->name, e->given, left / USEC_PER_SEC, e->own);
        /* As it was when it left. */
        left = usec_sub(said_deadline(c, e), e->now - (sim_world_now(c->world) - asked_about(c, e).sent_usec));
        if (e->given > 1 && given_usec > usec_add(left, SIM_SLACK_USEC) &&
            sim_process_knows_time(sim_check_actor(c)))
                sim_check_broken(c, "grace", "%s gives pod %s %" PRIi64 " s, and by its own word the node ends in %" PRIu64,
                                 e->user, e->name, e->given, left / USEC_PER_SEC);
        if (!e->again && e->own > 6 && e->given < e->own - 6 && could_have_had_all(c, e))
                sim_check_broken(c, "grace", "%s gives pod %s %" PRIi64 " s of %" PRIi64
                                 ": it could have been told in time, nothing was in the way",
                                 e->user, e->name, e->given, e->own);
}

static void note_going(SimCheck *c, const End *e) {
        if (e->again)
                return;
        if (e->forced)
                c->lost_usec = sim_world_now(c->world);
        if (GREEDY_REALLOC(c->going, c->going_allocated, c->n_going + 1) < 0)
                return;
        c->going[c->n_going++] = (SimGoing){
                .ns = strdup(fj_string(e->new, "metadata", "namespace", NULL)),
                .name = strdup(e->name),
                .node = strdup(e->machine->node),
                .labels = cJSON_Duplicate(fj_get(e->new, "metadata", "labels", NULL), true),
                .was_ready = pod_healthy(e->old),
                .forced = e->forced,
        };
}

static void check_end(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        int64_t own = fj_int(new, 30, "spec", "terminationGracePeriodSeconds", NULL);
        usec_t own_usec = (usec_t) own * USEC_PER_SEC;
        End e = {
                .machine = m,
                .old = old,
                .new = new,
                .node = sim_world_node(c->world, sim_check_index(c, m)),
                .name = fj_string(new, "metadata", "name", NULL),
                .user = c->world->request->user,
                .own = own,
                .given = fj_int(new, own, "metadata", "deletionGracePeriodSeconds", NULL),
                .now = sim_world_wall(c->world),
                .deadline = sim_check_deadline(c, m),
                .own_usec = own_usec,
                .eviction = c->world->request->subresource,
                .again = sim_check_is_deleting(old),
        };
        bool too_late;

        /* Of a machine that is gone, and its Node or claim with it, nothing is left that could have more time: the request was on its
         * way. */
        too_late = m->ended && (!e.node || !sim_world_claim(c->world, sim_check_index(c, m)));
        e.forced = too_late ||
                   (e.deadline != USEC_INFINITY && e.now + own_usec + SIM_SLACK_USEC >= e.deadline);
        check_place(c, &e);
        check_kind(c, &e);
        if (!too_late)
                check_grace(c, &e);
        if (c->world->queue && e.node && !e.eviction && !e.again && sim_check_instance_alive(c, m->instance))
                sim_brake_acted(sim_queue_brake(c->world->queue), sim_check_index(c, m), sim_check_actor(c), "deletes a pod of");
        note_going(c, &e);
}

/* Its kubelet has stopped all its containers. */
static bool has_ended(const SimCheck *c, const cJSON *pod) {
        return hashmap_contains(c->ended, strempty(fj_string(pod, "metadata", "uid", NULL)));
}

void sim_check_pod(SimCheck *c, const cJSON *old, const cJSON *new) {
        const SimMachine *m =
                sim_world_machine_of(c->world, strempty(fj_string(new, "spec", "nodeName", NULL)));
        const char *was = fj_string(old, "metadata", "deletionTimestamp", NULL);
        const char *is = fj_string(new, "metadata", "deletionTimestamp", NULL);

        note_opt_out(c, old, new);
        if (m && !fj_string(old, "spec", "nodeName", NULL))
                *(usec_t *) sim_check_entry(c->bound, strempty(fj_string(new, "metadata", "uid", NULL)),
                                            sizeof(usec_t)) = sim_world_now(c->world);
        if (!old)
                return;
        if (!sim_check_actor(c) && pod_healthy(old) && !pod_healthy(new))
                c->lost_usec = sim_world_now(c->world);
        /* One that is done needs no time. */
        if (m && sim_check_actor(c) && is && !streq_ptr(was, is) && !fake_pod_is_terminal(old) &&
            !has_ended(c, old))
                check_end(c, m, old, new);
}

/* One that was on its way out already; what never ran, or is done, needs no kubelet. */
void sim_check_pod_gone(SimCheck *c, const cJSON *pod) {
        const SimProcess *p = sim_check_actor(c);

        if (p && sim_check_is_deleting(pod) &&
            streq_ptr(fj_string(pod, "status", "phase", NULL), "Running") && !has_ended(c, pod))
                sim_check_broken(c, "running", "%s takes pod %s off the API, whose containers run", p->user,
                                 fj_string(pod, "metadata", "name", NULL));
}

/* -- budgets: when the step is over ------------------------------------------------------------ */

static void check_budget(SimCheck *c, const SimGoing *g, const cJSON *pdb) {
        const cJSON *selector = fj_get(pdb, "spec", "selector", NULL), *pod;
        int64_t healthy = 0, min = fj_int(pdb, 0, "status", "desiredHealthy", NULL);

        if (g->forced || !g->was_ready || !streq_ptr(fj_string(pdb, "metadata", "namespace", NULL), g->ns) ||
            !fake_object_selector_matches(selector, g->labels))
                return;
        /* The API server grants by a status that is a moment old, and only evictions are charged there. */
        if (c->lost_usec > 0 && sim_world_now(c->world) < c->lost_usec + STATUS_USEC)
                return;
        FAKE_FOREACH (pod, c->world->cluster, FAKE_PODS, g->ns)
                if (fake_object_selector_matches(selector, fj_get(pod, "metadata", "labels", NULL)))
                        healthy += pod_healthy(pod);
        if (healthy < min)
                sim_check_broken(c, "budget",
                                 "pod %s of %s was ended against its budget %s: %" PRIi64 " are healthy, of %" PRIi64
                                 " that must be",
                                 g->name, g->node, fj_string(pdb, "metadata", "name", NULL), healthy, min);
}

void sim_check_budgets(SimCheck *c) {
        const cJSON *pdb;

        if (c->n_going > 0)
                FAKE_FOREACH (pdb, c->world->cluster, FAKE_PDBS, NULL)
                        for (size_t i = 0; i < c->n_going; i++)
                                check_budget(c, &c->going[i], pdb);
        sim_check_going_clear(c);
}

void sim_check_going_clear(SimCheck *c) {
        for (size_t i = 0; i < c->n_going; i++) {
                free(c->going[i].ns);
                free(c->going[i].name);
                free(c->going[i].node);
                cJSON_Delete(c->going[i].labels);
        }
        c->n_going = 0;
}
