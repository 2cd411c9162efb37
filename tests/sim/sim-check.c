/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-check-internal.h"

#include <inttypes.h>
#include <stdarg.h>

#include "fake-controllers.h"
#include "sim-process.h"
#include "sim-queue.h"
#include "sim-seen.h"

static Hashmap *map_new(void) {
        Hashmap *m = NULL;
        int r = hashmap_new(0, &m);

        assert(r >= 0);
        return m;
}

static void on_change(const FakeChange *change, void *userdata);

static void on_ended(const cJSON *pod, void *userdata) {
        SimCheck *c = userdata;

        (void) sim_check_entry(c->ended, strempty(fj_string(pod, "metadata", "uid", NULL)), sizeof(uint8_t));
}

SimCheck *sim_check_new(SimWorld *w) {
        SimCheck *c = MUST(new0(SimCheck, 1));

        c->world = w;
        c->told = map_new();
        c->rates = map_new();
        c->lease_sent = map_new();
        c->proofs = map_new();
        c->asked = map_new();
        c->bound = map_new();
        c->closed = map_new();
        c->requested = map_new();
        c->opted = map_new();
        c->ended = map_new();
        c->adopted = map_new();
        c->tokens = map_new();
        c->successions = map_new();
        c->containers = (FakeContainerWatch){ .on_ended = on_ended, .userdata = c };
        fake_cluster_watch_containers(w->cluster, &c->containers);
        c->observer = sim_observer_new(c);
        c->seen = MUST(new0(SimSeen, w->options.n_nodes + 1));
        c->trouble_usec = c->promise_usec = USEC_INFINITY;
        fake_store_observe(fake_cluster_store(w->cluster), on_change, c);
        return c;
}

SimCheck *sim_check_free(SimCheck *c) {
        if (!c)
                return NULL;
        sim_check_going_clear(c);
        sim_observer_free(c->observer);
        free(c->going);
        for (size_t i = 0; i < c->world->options.n_nodes; i++) {
                free(c->seen[i].drained);
                free(c->seen[i].taken);
                free(c->seen[i].admitted);
                free(c->seen[i].repairer);
                free(c->seen[i].repairer_boot);
        }
        free(c->seen);
        hashmap_free_with(c->told, mfree);
        hashmap_free_with(c->rates, mfree);
        hashmap_free_with(c->lease_sent, mfree);
        hashmap_free_with(c->proofs, mfree);
        hashmap_free_with(c->asked, mfree);
        hashmap_free_with(c->bound, mfree);
        hashmap_free_with(c->closed, mfree);
        hashmap_free_with(c->requested, mfree);
        hashmap_free_with(c->opted, mfree);
        hashmap_free_with(c->ended, mfree);
        hashmap_free_with(c->adopted, mfree);
        sim_check_launches_free(c);
        free(c->violation);
        return mfree(c);
}

const char *sim_check_violation(const SimCheck *c) {
        return c->violation;
}

void sim_check_broken_by(SimCheck *c, const char *what, const char *by, const char *fmt, va_list ap) {
        _cleanup_free_ char *text = NULL;
        int r;

        if (c->violation)
                return;
        r = vasprintf(&text, fmt, ap);
        assert(r >= 0);
        c->violation = MUST(strf("%s: %s%s (at %.3f s)", what, by, text,
                                 (double) sim_world_now(c->world) / (double) USEC_PER_SEC));
        sim_trace_add(c->world->trace, "CHECK", "%s", c->violation);
}

void sim_check_fail(SimCheck *c, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        sim_check_broken_by(c, "run", "", fmt, ap);
        va_end(ap);
}

void sim_check_broken(SimCheck *c, const char *what, const char *fmt, ...) {
        va_list ap;

        va_start(ap, fmt);
        sim_check_broken_by(c, what, "", fmt, ap);
        va_end(ap);
}

void *sim_check_entry(Hashmap *m, const char *key, size_t size) {
        void *v = hashmap_get(m, key);
        int r;

        if (!v) {
                v = MUST(calloc(1, size));
                r = hashmap_put(m, key, v);
                assert(r >= 0);
        }
        return v;
}

/* -- who, and why ------------------------------------------------------------------------------ */

SimProcess *sim_check_actor(const SimCheck *c) {
        const SimRequest *r = c->world->request;

        if (!r || !r->user)
                return NULL;
        for (size_t i = 0; i < c->world->n_processes; i++)
                if (streq(c->world->processes[i]->user, r->user))
                        return c->world->processes[i];
        return NULL;
}

bool sim_check_instance_alive(const SimCheck *c, const char *id) {
        const char *state = id ? fake_ec2_state(c->world->ec2, id) : NULL;

        return state && !streq(state, "shutting-down") && !streq(state, "terminated");
}

size_t sim_check_index(const SimCheck *c, const SimMachine *m) {
        return (size_t) (m - c->world->machines);
}

bool sim_check_is_deleting(const cJSON *o) {
        return fj_get(o, "metadata", "deletionTimestamp", NULL);
}

static usec_t deadline_now(const SimCheck *c, const SimMachine *m) {
        const cJSON *claim = sim_world_claim(c->world, sim_check_index(c, m));
        const char *deleted = fj_string(claim, "metadata", "deletionTimestamp", NULL);
        usec_t said = MIN(m->deadline_usec, m->forced_usec), at;

        if (!deleted || (c->world->options.tgp_sec == 0 && !c->world->options.tgp_zero) ||
            rfc3339_parse(deleted, &at) < 0)
                return said;
        return MIN(said, at + c->world->options.tgp_sec * USEC_PER_SEC);
}

usec_t sim_check_deadline(const SimCheck *c, const SimMachine *m) {
        usec_t known = c->seen[sim_check_index(c, m)].restored_deadline_usec, now = deadline_now(c, m);

        return known > 0 ? MIN(known, now) : now;
}

void sim_check_restoring(SimCheck *c) {
        void *told;

        for (size_t i = 0; i < c->world->n_machines; i++) {
                usec_t at = sim_check_deadline(c, &c->world->machines[i]);

                c->seen[i].restored_deadline_usec = at == USEC_INFINITY ? 0 : at;
                c->seen[i].drained = mfree(c->seen[i].drained);
        }
        HASHMAP_FOREACH (told, c->told)
                free(told);
        hashmap_clear(c->told);
        c->restored_usec = sim_world_now(c->world);
}

bool sim_check_is_just_restored(const SimCheck *c, usec_t usec) {
        return c->restored_usec > 0 && sim_world_now(c->world) < usec_add(c->restored_usec, usec);
}

/* -- what is in the way ------------------------------------------------------------------------ */

void sim_check_promise(SimCheck *c) {
        c->trouble_usec = c->promise_usec = sim_world_now(c->world);
}

void sim_check_trouble(SimCheck *c, usec_t usec) {
        if (c->trouble_usec != USEC_INFINITY)
                c->trouble_usec = MAX(c->trouble_usec, usec_add(sim_world_now(c->world), usec));
}

bool sim_check_was_calm(const SimCheck *c, usec_t usec) {
        if (c->trouble_usec != USEC_INFINITY && sim_faults_by_chance(c->world->faults))
                ((SimCheck *) c)->trouble_usec = MAX(c->trouble_usec, sim_world_now(c->world));
        return sim_world_now(c->world) >= usec_add(c->trouble_usec, usec);
}

/* -- changes of the store ---------------------------------------------------------------------- */

static void trace_change(SimCheck *c, const FakeChange *change) {
        const cJSON *o = change->new ? change->new->json : change->old->json;
        const char *text = change->new ? fake_version_text(change->new) : "";

        sim_trace_add(c->world->trace, "store", "%s %s/%s %s rv %" PRIu64 " %016" PRIx64,
                      change->resource->plural, strempty(fj_string(o, "metadata", "namespace", NULL)),
                      fj_string(o, "metadata", "name", NULL),
                      !change->new  ? "gone"
                      : change->old ? "changed"
                                    : "new",
                      change->rv, hash64(text, strlen(text)));
}

static void note_volume(SimCheck *c, const cJSON *old, const cJSON *new) {
        const char *node = fj_string(new ? new : old, "spec", "nodeName", NULL);
        SimMachine *m = sim_world_machine_of(c->world, strempty(node));
        SimSeen *seen = m ? &c->seen[sim_check_index(c, m)] : NULL;

        if (!seen || (old && new))
                return;
        seen->n_volumes = new ? seen->n_volumes + 1 : seen->n_volumes - 1;
        seen->volumes_usec = sim_world_now(c->world);
}

static void note_pdb(SimCheck *c, const cJSON *pdb) {
        _cleanup_free_ char *key = fake_object_key(pdb);
        usec_t *since = sim_check_entry(c->closed, key, sizeof(usec_t));

        if (fj_int(pdb, 0, "status", "disruptionsAllowed", NULL) > 0)
                *since = 0;
        else if (fj_int(pdb, 0, "metadata", "generation", NULL) !=
                 fj_int(pdb, 0, "status", "observedGeneration", NULL))
                *since = sim_world_now(c->world); /* what was asked of the old one says nothing of this one */
        else if (*since == 0)
                *since = sim_world_now(c->world);
}

/* What a budget asks for has changed, and its status does not say so yet. */
static bool changes_budgets(const FakeChange *change, const cJSON *old, const cJSON *new) {
        FakeResourceId id = change->resource->id;

        return (id == FAKE_PDBS || id == FAKE_REPLICASETS || id == FAKE_STATEFULSETS) &&
               !fj_equal(fj_get(old, "spec", NULL), fj_get(new, "spec", NULL));
}

static void on_change(const FakeChange *change, void *userdata) {
        SimCheck *c = userdata;
        const cJSON *old = change->old ? change->old->json : NULL,
                    *new = change->new ? change->new->json : NULL;

        trace_change(c, change);
        sim_observer_changed(c->observer, change);
        if (c->world->stock)
                sim_check_launches_changed(c, change, old, new);
        if (changes_budgets(change, old, new))
                c->lost_usec = sim_world_now(c->world);
        if (change->resource->id == FAKE_NODES || change->resource->id == FAKE_NODECLAIMS) {
                sim_check_brake(c, change, old, new);
                sim_check_finalizer(c, change, old, new);
                sim_check_chosen(c, change, old, new);
        }
        if (change->resource->id == FAKE_NODECLAIMS && new) {
                sim_check_adopted(c, new);
                sim_check_doubt(c, old, new);
        }
        if (change->resource->id == FAKE_NODECLAIMS && old && new && c->world->queue)
                sim_queue_claim_changed(c->world->queue, old, new);
        if ((change->resource->id == FAKE_NODES || change->resource->id == FAKE_NODECLAIMS) &&
            (!new || sim_check_is_deleting(new)))
                c->deleted_usec = sim_world_now(c->world);
        if (change->resource->id == FAKE_NODES && new)
                sim_check_node(c, old, new);
        else if (change->resource->id == FAKE_NODES)
                sim_check_node_gone(c, old);
        if (change->resource->id == FAKE_NDBS)
                sim_check_charges(c, old, new);
        if (change->resource->id == FAKE_LEASES && new)
                sim_check_lease_written(c, old, new);
        if (change->resource->id == FAKE_VOLUMEATTACHMENTS)
                note_volume(c, old, new);
        if (change->resource->id == FAKE_PDBS && new)
                note_pdb(c, new);
        /* A pod that goes at once was marked before; one whose grace is 0 from the start never had a node.
         */
        if (change->resource->id == FAKE_PODS && new && !old) /* restored, its kubelet runs it anew */
                free(hashmap_remove(c->ended, strempty(fj_string(new, "metadata", "uid", NULL))));
        if (change->resource->id == FAKE_PODS && new)
                sim_check_pod(c, old, new);
        else if (change->resource->id == FAKE_PODS)
                sim_check_pod_gone(c, old);
}

void sim_check_after_step(SimCheck *c, unsigned status) {
        sim_check_budgets(c);
        sim_check_answered(c, status);
        sim_observer_answered(c->observer, status);
        sim_check_leaders(c);
        sim_check_look(c);
}

uint64_t sim_check_n_requests(const SimCheck *c) {
        return c->n_requests;
}

uint64_t sim_check_n_evictions(const SimCheck *c, uint64_t *ret_done) {
        if (ret_done)
                *ret_done = c->n_evicted;
        return c->n_evictions;
}
