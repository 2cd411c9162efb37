/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes: finalizers, cordons, what is said of notices and drains. */
#include <inttypes.h>

#include "sim-check-internal.h"

#include "fake-controllers.h"
#include "sim-notices.h"
#include "sim-process.h"
#include "sim-queue.h"

/* A spot notice that is not told any more is taken back so long after its time, not before. */
#define CANCEL_USEC (10 * USEC_PER_MINUTE)

/* What stood on a Node is news to somebody for so long. */
#define UNHEARD_USEC (5 * USEC_PER_MINUTE)

/* As long as a view may lie behind. */
#define READY_USEC (150 * USEC_PER_SEC)
/* The least time for which a charge stands behind a deletion that was let pass: half of its two minutes,
 * less what the answer takes. */
#define CHARGE_USEC (50 * USEC_PER_SEC)
/* As long as an answer of the cloud counts, and the patch may be under way. */
#define PROOF_USEC (50 * USEC_PER_SEC)
/* Within this a node that is Ready is in service again. */
#define BACK_USEC (60 * USEC_PER_SEC)
/* As long as it takes where nothing is in the way, and for what was under way. */
#define PAUSED_USEC (10 * USEC_PER_SEC)

static bool has_finalizer(const cJSON *o) {
        return o && fj_array_has(fj_get(o, "metadata", "finalizers", NULL), SIM_FINALIZER);
}

/* Of a Node or its claim: a Node without id has the id of its name. */
static SimMachine *machine_of(SimCheck *c, const cJSON *o) {
        const char *id = fj_string(o, "spec", "providerID", NULL), *slash = id ? strrchr(id, '/') : NULL;

        if (!id)
                return sim_world_machine_of(c->world, fj_string(o, "metadata", "name", NULL));
        for (size_t i = 0; slash && i < c->world->n_machines; i++) {
                SimMachine *m = &c->world->machines[i];

                if (streq(c->world->options.exec ? m->node : m->instance, slash + 1))
                        return m;
        }
        return NULL;
}

/* Returns true if a person has excluded the Node from vesper, removed the label of its NodePool or deleted
 * the NodePool, now or a moment ago. Returns false for a Node that is being deleted, which keeps its
 * finalizer. */
static bool was_let_go(const SimCheck *c, const SimMachine *m, const cJSON *old) {
        size_t i = sim_check_index(c, m);
        const cJSON *node = sim_world_node(c->world, i);

        return m->unmanaged_usec > 0 && !sim_check_is_deleting(node) &&
               (sim_world_is_unmanaged(c->world, i) || !fj_get(node, "metadata", "labels", "vesper.sh/pool", NULL) ||
                !fake_get(c->world->cluster, FAKE_NODEPOOLS, NULL, SIM_POOL) ||
                sim_world_now(c->world) < m->unmanaged_usec + READY_USEC);
}

void sim_check_brake(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new) {
        const SimMachine *m = machine_of(c, new ? new : old);

        if (m && c->world->queue)
                sim_brake_changed(sim_queue_brake(c->world->queue), sim_check_index(c, m), change->resource->id == FAKE_NODECLAIMS, old, new);
}

void sim_check_adopted(SimCheck *c, const cJSON *claim) {
        if (has_finalizer(claim) && *strempty(fj_string(claim, "status", "nodeUID", NULL)))
                (void) sim_check_entry(c->adopted, strempty(fj_string(claim, "metadata", "uid", NULL)), sizeof(uint8_t));
}

/* A claim is adopted when it names its Node; a finalizer alone makes nothing of it vesper's (standalone.h). A leader that was killed while it
 * adopted the Node may have left one. After a restore of etcd nobody knows whether the claim was adopted. */
static bool was_never_adopted(const SimCheck *c, const cJSON *claim) {
        return c->world->was_restored || !hashmap_get(c->adopted, strempty(fj_string(claim, "metadata", "uid", NULL)));
}

static bool another_has_the_machine(const SimCheck *c, const SimMachine *m, const cJSON *claim) {
        const cJSON *other = sim_world_claim(c->world, sim_check_index(c, m));

        return has_finalizer(other) && !streq_ptr(fj_string(other, "metadata", "uid", NULL), fj_string(claim, "metadata", "uid", NULL));
}

/* Returns true if the claim says that it was refused (vesper.sh/NotAdopted), and was never adopted or has made way for a pool's claim. Its
 * condition asks people to delete it, and nothing is ended by that. */
static bool was_refused(const SimCheck *c, const SimMachine *m, const cJSON *claim) {
        if (c->world->stock && another_has_the_machine(c, m, claim))
                return true; /* for which it was launched */
        return fake_condition_is(claim, "vesper.sh/NotAdopted", "True") &&
               (was_never_adopted(c, claim) || another_has_the_machine(c, m, claim));
}

void sim_check_finalizer(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new) {
        SimMachine *m = machine_of(c, old);

        if (!has_finalizer(old) || has_finalizer(new) || !sim_check_actor(c) || !m || was_let_go(c, m, old) ||
            !sim_check_instance_alive(c, m->instance))
                return;
        if (change->resource->id != FAKE_NODECLAIMS || !was_refused(c, m, old))
                sim_check_broken(c, "finalizer", "%s takes the finalizer off %s %s while %s is there",
                                 c->world->request->user, change->resource->kind,
                                 fj_string(old, "metadata", "name", NULL), m->instance);
        else if (!sim_world_node(c->world, sim_check_index(c, m)))
                c->seen[sim_check_index(c, m)].left_unmanaged = true; /* a person took its Node away before it was adopted */
}

/* -- why something is deleted ------------------------------------------------------------------ */

static void check_claim_chosen(SimCheck *c, const cJSON *claim) {
        const SimMachine *m = machine_of(c, claim);
        size_t i = m ? sim_check_index(c, m) : 0;
        const cJSON *node = m ? sim_world_node(c->world, i) : NULL;

        if (sim_check_is_new_claim(claim))
                return;
        if (m && c->world->queue && sim_queue_calls_for_end(c->world->queue, i))
                return;
        if (m && !c->world->options.leave_interrupted &&
            (sim_check_is_announced(c, i) ||
             (c->seen[i].told_usec > 0 && sim_world_now(c->world) < c->seen[i].told_usec + UNHEARD_USEC)))
                return;
        if (node && !sim_check_is_deleting(node) && sim_check_instance_alive(c, m->instance))
                sim_check_broken(c, "chosen", "%s deletes the claim of %s, which nobody asked for: %s is there",
                                 c->world->request->user, m->node, m->instance);
}

static bool is_cordoned_by_a_person(const cJSON *node) {
        const cJSON *annotations = fj_get(node, "metadata", "annotations", NULL);

        return cJSON_IsTrue(fj_get(node, "spec", "unschedulable", NULL)) && !fj_get(annotations, "vesper.sh/cordoned-by-agent", NULL) &&
               !fj_get(annotations, "vesper.sh/cordoned-by-coordinator", NULL);
}

/* What the cloud said of a machine may be so old when its node is deleted. */
#define OFF_USEC (40 * USEC_PER_SEC)

/* By its own Node, as it stands there when it is deleted. What was so before etcd was restored is not known. */
static void check_repaired(SimCheck *c, const SimMachine *m, const cJSON *node) {
        const SimSeen *seen = &c->seen[sim_check_index(c, m)];
        usec_t due = usec_add(seen->ready_usec, c->world->options.repair_sec * USEC_PER_SEC);

        if (fake_condition_is(node, "Ready", "True"))
                sim_check_broken(c, "repair", "%s deletes %s, which is Ready, and whose claim nobody deletes",
                                 c->world->request->user, m->node);
        else if (sim_world_now(c->world) < due && !c->world->was_restored)
                sim_check_broken(c, "repair", "%s deletes %s, which was Ready %.1f s ago", c->world->request->user, m->node,
                                 (double) (sim_world_now(c->world) - seen->ready_usec) / USEC_PER_SEC);
        else if (sim_check_tells_of_end(node))
                sim_check_broken(c, "repair", "%s deletes %s, which tells of its end", c->world->request->user, m->node);
        else if (is_cordoned_by_a_person(node))
                sim_check_broken(c, "repair", "%s deletes %s, which a person has cordoned", c->world->request->user, m->node);
        else if (streq_ptr(fake_ec2_state(c->world->ec2, m->instance), "stopped") && sim_world_now(c->world) > usec_add(m->stopped_usec, OFF_USEC))
                sim_check_broken(c, "repair", "%s deletes %s, whose machine is off", c->world->request->user, m->node);
}

/* The annotation by which a coordinator asks an agent for the reboot that repairs its node. */
#define FOR_REPAIR "vesper.sh/reboot-for-repair"
/* An agent that has not asked for a slot so long after that is away. */
#define TAKEN_UP_USEC (5 * USEC_PER_MINUTE)
/* A node that falls ill less than so long after it was well is ill of the same. */
#define SAME_ILLNESS_USEC (5 * USEC_PER_MINUTE)

/* Returns a name for this coordinator while it leads: what it has seen of nodes ends with that. */
static char *leadership_of(const SimProcess *p) {
        return MUST(strf("%s/%u/%u", p->user, p->life ? p->life->number : 0, p->life ? p->life->term : 0));
}

/* The boot id that the claim says its node was asked to end; NULL: none. */
static const char *recorded_reboot(const SimCheck *c, const SimMachine *m) {
        return fj_string(sim_world_claim(c->world, sim_check_index(c, m)), "metadata", "annotations", "vesper.sh/rebooted-for-repair", NULL);
}

static void note_illness(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        SimSeen *seen = &c->seen[sim_check_index(c, m)];
        const char *was_asked = fj_string(old, "metadata", "annotations", FOR_REPAIR, NULL);
        const char *is_asked = fj_string(new, "metadata", "annotations", FOR_REPAIR, NULL);
        bool was = fake_condition_is(old, SIM_ILLNESS, "True"), is = fake_condition_is(new, SIM_ILLNESS, "True");

        if (was != is) {
                seen->ill_usec = is ? sim_world_now(c->world) : 0;
                seen->booted_usec = 0;
                if (is && sim_world_now(c->world) >= usec_add(seen->well_usec, SAME_ILLNESS_USEC))
                        seen->repairer_boot = mfree(seen->repairer_boot);
                seen->well_usec = is ? 0 : sim_world_now(c->world);
        }
        if (seen->booted_usec == 0 && !streq_ptr(fj_string(old, "status", "nodeInfo", "bootID", NULL), fj_string(new, "status", "nodeInfo", "bootID", NULL)))
                seen->booted_usec = sim_world_now(c->world);
        if (streq_ptr(was_asked, m->boot_id) || streq_ptr(is_asked, m->boot_id)) {
                seen->marked_boot = m->n_boots;
                seen->marked_usec = sim_world_now(c->world);
        }
}

/* Compares the annotation with the version of the Node that its writer has decided on (old). */
static void check_reboot_asked(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        const char *boot_id = fj_string(new, "metadata", "annotations", FOR_REPAIR, NULL);
        usec_t after = c->world->options.repair_reboot_sec * USEC_PER_SEC, now = sim_world_now(c->world);
        SimSeen *seen = &c->seen[sim_check_index(c, m)];
        const SimProcess *p = sim_check_actor(c);
        _cleanup_free_ char *leadership = NULL;

        if (!p || !boot_id || streq_ptr(fj_string(old, "metadata", "annotations", FOR_REPAIR, NULL), boot_id))
                return;
        leadership = leadership_of(p);
        if (!streq_ptr(fj_string(old, "status", "nodeInfo", "bootID", NULL), boot_id))
                sim_check_broken(c, "repair", "%s asks for the end of boot %s of %s, which is over", p->user, boot_id, m->node);
        else if (seen->ill_usec == 0 || now < usec_add(seen->ill_usec, after))
                sim_check_broken(c, "repair", "%s asks for a reboot of %s, which %s", p->user, m->node,
                                 seen->ill_usec == 0 ? "is well" : "has not been ill for as long as the rule says");
        else if (now < usec_add(seen->booted_usec, after) && !c->world->was_restored)
                sim_check_broken(c, "repair", "%s asks for a reboot of %s, which has booted %.1f s ago", p->user, m->node,
                                 (double) (now - seen->booted_usec) / USEC_PER_SEC);
        else if (sim_check_tells_of_end(old) || sim_check_is_deleting(old) || is_cordoned_by_a_person(old))
                sim_check_broken(c, "repair", "%s asks for a reboot of %s, which tells of its end, or is a person's", p->user, m->node);
        else if (seen->repairer_boot && !streq(seen->repairer_boot, boot_id) && !c->world->was_restored)
                sim_check_broken(c, "repair", "%s asks for a second reboot of %s for one illness", p->user, m->node);
        else if (!streq_ptr(recorded_reboot(c, m), boot_id))
                sim_check_broken(c, "repair", "%s asks for a reboot of %s, and its claim does not say so", p->user, m->node);
        free(seen->repairer);
        seen->repairer = TAKE_PTR(leadership);
        free(seen->repairer_boot);
        seen->repairer_boot = MUST(strdup(boot_id));
        seen->repairer_usec = now;
}

/* Checks that the time of the rule Replace is over, and that a reboot did not help, or did not come when this leader had asked for it. */
static void check_replaced_after_reboot(SimCheck *c, const SimMachine *m, const cJSON *node) {
        usec_t after = 2 * c->world->options.repair_reboot_sec * USEC_PER_SEC, now = sim_world_now(c->world);
        const SimSeen *seen = &c->seen[sim_check_index(c, m)];
        const char *user = c->world->request->user, *boot_id = fj_string(node, "status", "nodeInfo", "bootID", NULL);
        _cleanup_free_ char *leadership = leadership_of(sim_check_actor(c));
        const char *recorded = recorded_reboot(c, m);

        if (seen->ill_usec == 0 || now < usec_add(seen->ill_usec, after))
                sim_check_broken(c, "repair", "%s deletes %s, which %s", user, m->node,
                                 seen->ill_usec == 0 ? "is well" : "has not been ill for as long as its rule says");
        else if (!recorded || (streq_ptr(recorded, boot_id) && !streq_ptr(seen->repairer, leadership)))
                sim_check_broken(c, "repair", "%s deletes %s, and has not had it rebooted first", user, m->node);
        else if (streq_ptr(seen->repairer_boot, boot_id) && now < usec_add(seen->repairer_usec, TAKEN_UP_USEC))
                sim_check_broken(c, "repair", "%s deletes %s, whose agent had less than five minutes to ask for its reboot", user, m->node);
        else if (sim_check_tells_of_end(node) || is_cordoned_by_a_person(node))
                sim_check_broken(c, "repair", "%s deletes %s, which tells of its end, or is a person's", user, m->node);
}

static void check_node_chosen(SimCheck *c, const cJSON *node) {
        const SimMachine *m = sim_world_machine_of(c->world, fj_string(node, "metadata", "name", NULL));

        if (!m || sim_check_is_deleting(sim_world_claim(c->world, sim_check_index(c, m))) ||
            streq_ptr(fj_string(node, "metadata", "labels", "karpenter.sh/lifecycle-phase", NULL),
                      "terminable"))
                return;
        if (c->world->options.repair_reboot_sec > 0)
                check_replaced_after_reboot(c, m, node);
        else if (c->world->options.repair_sec == 0 || c->world->options.no_pool)
                sim_check_broken(c, "chosen", "%s deletes node %s, whose claim nobody deletes",
                                 c->world->request->user, m->node);
        else
                check_repaired(c, m, node);
}

void sim_check_chosen(SimCheck *c, const FakeChange *change, const cJSON *old, const cJSON *new) {
        const SimProcess *p = sim_check_actor(c);

        if (!p || p->kind != SIM_COORDINATOR || !has_finalizer(old) || sim_check_is_deleting(old) ||
            (new && !sim_check_is_deleting(new)))
                return;
        if (change->resource->id == FAKE_NODECLAIMS)
                check_claim_chosen(c, old);
        else
                check_node_chosen(c, old);
}

/* The first had our finalizer before the second was made: whoever has seen the second has seen that. */
void sim_check_doubt(SimCheck *c, const cJSON *old, const cJSON *new) {
        const char *name = fj_string(new, "metadata", "name", NULL), *id = fj_string(new, "spec", "providerID", NULL);
        const cJSON *other;

        if (!sim_check_actor(c) || !old || has_finalizer(old) || !has_finalizer(new) || !startswith(name, SIM_RIVAL) || c->world->was_restored)
                return;
        FAKE_FOREACH (other, c->world->cluster, FAKE_NODECLAIMS, NULL)
                if (!streq(fj_string(other, "metadata", "name", NULL), name) && has_finalizer(other) &&
                    streq_ptr(fj_string(other, "spec", "providerID", NULL), id))
                        sim_check_broken(c, "doubt", "%s makes NodeClaim %s its own while %s of the same machine is",
                                         c->world->request->user, name, fj_string(other, "metadata", "name", NULL));
}

/* -- cordons ----------------------------------------------------------------------------------- */

static void check_cordon(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        bool was = fj_true(old, "spec", "unschedulable", NULL),
             is = fj_true(new, "spec", "unschedulable", NULL);

        if (was && !is && !sim_check_actor(c))
                c->seen[sim_check_index(c, m)].opened_usec = sim_world_now(c->world);
        if (!sim_check_actor(c))
                return;
        if (was && !is && m->cordoned_by_admin)
                sim_check_broken(c, "cordon", "%s undoes a person's cordon of %s", c->world->request->user,
                                 m->node);
        if (!was && is && m->opened_by_admin && !sim_check_is_deleting(new))
                sim_check_broken(c, "cordon", "%s cordons %s again, which a person opened",
                                 c->world->request->user, m->node);
        if (!was && is && c->world->notices && !sim_notices_may_cordon(c->world->notices, sim_check_index(c, m)))
                sim_check_broken(c, "notice", "%s cordons %s, and nothing that is announced calls for that", c->world->request->user,
                                 m->node);
}

/* -- machines that are off --------------------------------------------------------------------- */

static bool is_out_of_service(const cJSON *node) {
        return fj_find(fj_get(node, "spec", "taints", NULL), "key", "node.kubernetes.io/out-of-service");
}

static void check_out_of_service(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        const char *state = fake_ec2_state(c->world->ec2, m->instance);
        bool was_off = m->switched_on_usec > 0 && sim_world_now(c->world) < m->switched_on_usec + PROOF_USEC,
             is_off = !state || streq(state, "stopped") || streq(state, "terminated");

        if (!sim_check_actor(c) || is_out_of_service(old) || !is_out_of_service(new))
                return;
        if (!is_off && !was_off)
                sim_check_broken(c, "off", "%s says that %s is out of service, and %s is %s",
                                 c->world->request->user, m->node, m->instance, state);
        else if (fake_condition_is(old, "Ready", "True"))
                sim_check_broken(c, "off", "%s says that %s is out of service, which is Ready",
                                 c->world->request->user, m->node);
}

void sim_check_back_in_service(SimCheck *c, size_t i) {
        const cJSON *node = sim_world_node(c->world, i);
        usec_t due = usec_add(c->seen[i].ready_usec, BACK_USEC);

        if (!node || !fake_condition_is(node, "Ready", "True") || !is_out_of_service(node))
                return;
        if (!c->world->was_restored && sim_check_was_calm(c, BACK_USEC) && sim_world_now(c->world) > due)
                sim_check_broken(c, "off", "%s is Ready again for %d s, and still out of service",
                                 c->world->machines[i].node, (int) (BACK_USEC / USEC_PER_SEC));
}

/* -- the agent's annotation -------------------------------------------------------------------- */

static cJSON *interruption_of(const cJSON *node) {
        const char *text = fj_string(node, "metadata", "annotations", "vesper.sh/interruption", NULL);

        return text ? cJSON_Parse(text) : NULL;
}

bool sim_check_tells_of_end(const cJSON *node) {
        static const char *const actions[] = { "terminate", "stop", "hibernate" };
        const char *boot = fj_string(node, "status", "nodeInfo", "bootID", NULL), *action, *phase, *of;
        cJSON *interruption = interruption_of(node);
        bool ends = false;

        action = strempty(fj_string(interruption, "action", NULL));
        phase = strempty(fj_string(interruption, "phase", NULL));
        of = fj_string(interruption, "bootID", NULL);
        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                ends |= streq(action, actions[i]);
        ends = ends && !streq(phase, "Released") && !streq(phase, "Cancelled") &&
               (!boot || !of || streq(boot, of));
        cJSON_Delete(interruption);
        return ends;
}

/* A notice is cancelled by whoever gave it, and not before the machine has outlived it. */
static void check_cancelled(SimCheck *c, const SimMachine *m, const cJSON *was) {
        const SimSeen *seen = &c->seen[sim_check_index(c, m)];

        if (seen->opened_usec > 0 || !streq_ptr(fj_string(was, "bootID", NULL), m->boot_id) ||
            m->deadline_usec == USEC_INFINITY || c->world->notices)
                return;
        /* Nor does it know when that was, if its clock was wrong. */
        if (!sim_process_knows_time(m->agent) || m->agent->clock_wrong_usec > 0)
                return;
        /* What left before the next notice came, as of a shutdown, could not know of it. */
        if (m->noticed && (seen->noticed_usec == 0 || sim_world_now(c->world) < usec_add(seen->noticed_usec, CRAWL_USEC)))
                return;
        if (m->noticed || sim_world_wall(c->world) < m->deadline_usec + CANCEL_USEC - SIM_SLACK_USEC)
                sim_check_broken(c, "notice", "%s takes the notice off %s, which %s", c->world->request->user,
                                 m->node,
                                 m->noticed ? "is still announced" : "has not outlived it by ten minutes yet");
}

static void check_again(SimCheck *c, const SimMachine *m, const cJSON *is, const char *phase) {
        _cleanup_free_ char *key = MUST(strf("%s %s", strempty(fj_string(is, "id", NULL)),
                                             strempty(fj_string(is, "bootID", NULL))));
        SimSeen *seen = &c->seen[sim_check_index(c, m)];

        if (streq(phase, "Drained")) {
                free(seen->drained);
                seen->drained = TAKE_PTR(key);
        } else if (!streq(phase, "Released") && streq_ptr(seen->drained, key))
                sim_check_broken(c, "notice", "%s drains %s again (%s) for a notice it was drained for",
                                 c->world->request->user, m->node, phase);
}

void sim_check_taken_back(SimCheck *c, const SimMachine *m) {
        SimSeen *seen = &c->seen[sim_check_index(c, m)];

        seen->drained = mfree(seen->drained);
}

/* "Drained" is said after a consistent list that shows no pod to wait for. */
static void check_proven(SimCheck *c, const char *node, const char *what) {
        _cleanup_free_ char *key = MUST(strf("%s %s", c->world->request->user, node));
        const SimProof *proof = hashmap_get(c->proofs, key);

        if (!proof)
                sim_check_broken(c, "drained", "%s says %s of %s without having listed its pods consistently",
                                 c->world->request->user, what, node);
        else if (proof->left > 0)
                sim_check_broken(c, "drained", "%s says %s of %s, and its last list of the pods there had %zu",
                                 c->world->request->user, what, node, proof->left);
}

/* The same word after a reboot is about another life of the machine: by its id it can be told. */
static void check_id(SimCheck *c, const SimMachine *m, const cJSON *is) {
        const char *id = strempty(fj_string(is, "id", NULL)), *boot = strempty(fj_string(is, "bootID", NULL));

        if (streq_ptr(fj_string(is, "kind", NULL), "spot") && !strstr(id, boot))
                sim_check_broken(c, "notice", "%s says %s of %s, whose id %s does not tell boot %s", c->world->request->user,
                                 strempty(fj_string(is, "phase", NULL)), m->node, id, boot);
}

static void check_interruption(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        const SimProcess *p = sim_check_actor(c);
        cJSON *was, *is;
        const char *phase;

        if (!p || p->machine != m)
                return;
        was = interruption_of(old);
        is = interruption_of(new);
        phase = strempty(fj_string(is, "phase", NULL));
        if (was && !is && !streq_ptr(fj_string(was, "kind", NULL), "shutdown"))
                check_cancelled(c, m, was);
        if (is && (!streq_ptr(fj_string(was, "phase", NULL), phase) ||
                   !streq_ptr(fj_string(was, "bootID", NULL), fj_string(is, "bootID", NULL)))) {
                check_again(c, m, is, phase);
                check_id(c, m, is);
                /* It left with the boot that saw it. */
                if (sim_check_was_rebooted(m) && streq_ptr(fj_string(is, "bootID", NULL), m->boot_id))
                        sim_check_broken(c, "notice", "%s says %s of %s for a notice of before its reboot",
                                         c->world->request->user, phase, m->node);
                if (streq(phase, "Drained"))
                        check_proven(c, m->node, "phase Drained");
        }
        cJSON_Delete(was);
        cJSON_Delete(is);
        if (fake_condition_is(new, "Drained", "True") && !(old && fake_condition_is(old, "Drained", "True")))
                check_proven(c, m->node, "condition Drained");
}

/* -- slots to reboot --------------------------------------------------------------------------- */

static cJSON *parsed(const cJSON *node, const char *key) {
        const char *text = fj_string(node, "metadata", "annotations", key, NULL);

        return text ? cJSON_Parse(text) : NULL;
}

/* Its request is granted, the grant has not run out, and it is not back from its reboot yet. */
static bool holds_slot(SimCheck *c, const cJSON *node) {
        cJSON *asked = parsed(node, "vesper.sh/shutdown-request"),
              *granted = parsed(node, "vesper.sh/shutdown-granted");
        const char *id = fj_string(granted, "id", NULL), *until = fj_string(granted, "until", NULL);
        bool back = fake_condition_is(node, "Ready", "True") &&
                    !streq_ptr(fj_string(node, "status", "nodeInfo", "bootID", NULL),
                               fj_string(asked, "bootID", NULL));
        usec_t at = 0;
        bool holds = id && streq_ptr(fj_string(asked, "id", NULL), id) && until &&
                     rfc3339_parse(until, &at) >= 0 && at > sim_world_wall(c->world) && !back;

        cJSON_Delete(asked);
        cJSON_Delete(granted);
        return holds;
}

/* On a slot that has not run out its agent told it to reboot, and it is not back: whatever its Node says. */
static bool goes_on_slot(SimCheck *c, const cJSON *node) {
        SimMachine *m = sim_world_machine_of(c->world, fj_string(node, "metadata", "name", NULL));

        if (m && m->slot_until_usec > 0 && m->told_boot != m->n_boots && fake_condition_is(node, "Ready", "True"))
                m->slot_until_usec = 0;
        return m && m->slot_until_usec > sim_world_wall(c->world);
}

static void check_slot_is_charged(SimCheck *c, const cJSON *old, const cJSON *new);

static void check_slots(SimCheck *c, const cJSON *old, const cJSON *new) {
        unsigned held = 0, max = MAX(c->world->options.max_reboots, 1u);
        const cJSON *node;

        (void) goes_on_slot(c, new); /* not any more, if it is back */
        if (!holds_slot(c, new) || holds_slot(c, old))
                return;
        FAKE_FOREACH (node, c->world->cluster, FAKE_NODES, NULL)
                held += holds_slot(c, node) || goes_on_slot(c, node);
        if (held > max)
                sim_check_broken(c, "slots", "%s gets a slot to reboot, and now %u nodes have one of %u",
                                 fj_string(new, "metadata", "name", NULL), held, max);
        if (c->world->options.node_budget > 0)
                check_slot_is_charged(c, old, new);
}

/* How old the answer may be in which an agent reads, right before it reboots, that its Node asks for that. */
#define READ_USEC (6 * USEC_PER_SEC)

/* Checks that a person, or an annotation that names this boot, asks for the reboot. */
static void check_told_for_repair(SimCheck *c, const SimMachine *m) {
        const SimSeen *seen = &c->seen[sim_check_index(c, m)];
        const char *boot_id = sim_world_annotation(c->world, sim_check_index(c, m), FOR_REPAIR);

        if (!streq_ptr(boot_id, m->boot_id) && m->by_hand_boot != m->n_boots &&
            (seen->marked_boot != m->n_boots || sim_world_now(c->world) > usec_add(seen->marked_usec, READ_USEC)))
                sim_check_broken(c, "repair", "%s is told to reboot, and nobody has asked for the end of this boot", m->node);
}

void sim_check_told_to_reboot(SimCheck *c, SimMachine *m) {
        const cJSON *node = sim_world_node(c->world, sim_check_index(c, m));
        cJSON *granted = node ? parsed(node, "vesper.sh/shutdown-granted") : NULL;

        if (!node || !holds_slot(c, node))
                sim_check_broken(c, "slots", "%s is told to reboot, and does not hold a slot (any more)",
                                 m->node);
        if (c->world->options.repair_reboot_sec > 0)
                check_told_for_repair(c, m);
        if (rfc3339_parse(strempty(fj_string(granted, "until", NULL)), &m->slot_until_usec) < 0)
                m->slot_until_usec = 0;
        m->told_boot = m->n_boots;
        cJSON_Delete(granted);
}

/* -- budgets of nodes ---------------------------------------------------------------------------- */

static bool is_taken(const cJSON *node) {
        return fj_find(fj_get(node, "spec", "taints", NULL), "key", "vesper.sh/disrupted");
}

/* What ends by a notice or at its time, and what is not Ready, is counted and never held. */
static bool is_free_to_take(SimCheck *c, const SimMachine *m, const cJSON *old) {
        const SimSeen *seen = &c->seen[sim_check_index(c, m)];
        usec_t now = sim_world_now(c->world);

        return !fake_condition_is(old, "Ready", "True") || now < usec_add(seen->ready_usec, READY_USEC) || m->noticed ||
               sim_check_tells_of_end(old) || (seen->told_usec > 0 && now < usec_add(seen->told_usec, UNHEARD_USEC)) ||
               sim_check_deadline(c, m) != USEC_INFINITY;
}

static void check_taken(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        SimSeen *seen = &c->seen[sim_check_index(c, m)];
        unsigned n = 0;

        if (fake_condition_is(old, "Ready", "True") != fake_condition_is(new, "Ready", "True"))
                seen->ready_usec = sim_world_now(c->world);
        if (c->world->options.node_budget == 0 || c->world->was_restored || is_taken(old) || !is_taken(new) ||
            !sim_check_is_deleting(new) || is_free_to_take(c, m, old))
                return;
        free(seen->taken);
        seen->taken = MUST(strdup(fj_string(new, "metadata", "uid", NULL)));
        for (size_t i = 0; i < c->world->n_machines; i++) {
                const cJSON *node = sim_world_node(c->world, i);

                n += node && streq_ptr(c->seen[i].taken, fj_string(node, "metadata", "uid", NULL));
        }
        if (n > c->world->options.node_budget)
                sim_check_broken(c, "taken", "%s takes hold of %s, and %u nodes are in its hands that a budget has let go, of %u",
                                 c->world->request->user, m->node, n, c->world->options.node_budget);
}

/* Of nodes that are there and report: what is not Ready needs no charge, and keeps the one it has. */
static unsigned count_charged(SimCheck *c, const cJSON *budget) {
        const cJSON *charge;
        unsigned n = 0;

        cJSON_ArrayForEach (charge, fj_get(budget, "status", "disruptedNodes", NULL)) {
                const cJSON *node = fake_get(c->world->cluster, FAKE_NODES, NULL, strempty(fj_string(charge, "name", NULL)));

                n += node && streq_ptr(fj_string(node, "metadata", "uid", NULL), fj_string(charge, "uid", NULL)) &&
                     fake_condition_is(node, "Ready", "True");
        }
        return n;
}

static const cJSON *charge_of(const cJSON *budget, const cJSON *node) {
        return fj_find(fj_get(budget, "status", "disruptedNodes", NULL), "uid",
                       strempty(fj_string(node, "metadata", "uid", NULL)));
}

/* Returns true if the holder has the charge, or had it before a DELETE took it over. */
static bool is_held_by(const cJSON *charge, const char *holder) {
        return charge && (streq_ptr(fj_string(charge, "holder", NULL), holder) ||
                          streq_ptr(fj_string(charge, "heldBefore", NULL), holder));
}

/* A leader that has not seen the deletion takes the charge off after two minutes. */
#define UNSEEN_DELETION_USEC (180 * USEC_PER_SEC)

static void check_holder(SimCheck *c, const cJSON *node, const cJSON *was, const cJSON *is) {
        const char *who = c->world->request ? strempty(c->world->request->user) : "nobody",
                   *name = fj_string(node, "metadata", "name", NULL);
        cJSON *granted = parsed(node, "vesper.sh/shutdown-granted");
        const char *slot = fj_string(granted, "id", NULL);
        usec_t deleted;

        if (slot && is_held_by(was, slot) && !is_held_by(is, slot) && holds_slot(c, node))
                sim_check_broken(c, "holder", "%s takes the charge of slot %s off, which %s holds", who,
                                 slot, name);
        if (!is &&
            rfc3339_parse(strempty(fj_string(node, "metadata", "deletionTimestamp", NULL)), &deleted) >= 0 &&
            sim_world_wall(c->world) > usec_add(deleted, UNSEEN_DELETION_USEC))
                sim_check_broken(c, "holder", "%s takes the charge of %s off, which is being deleted", who,
                                 name);
        cJSON_Delete(granted);
}

static void check_holders(SimCheck *c, const cJSON *old, const cJSON *new) {
        const cJSON *charge;

        cJSON_ArrayForEach (charge, fj_get(old, "status", "disruptedNodes", NULL)) {
                const cJSON *node = fake_get(c->world->cluster, FAKE_NODES, NULL,
                                             strempty(fj_string(charge, "name", NULL)));

                if (node &&
                    streq_ptr(fj_string(node, "metadata", "uid", NULL), fj_string(charge, "uid", NULL)))
                        check_holder(c, node, charge, charge_of(new, node));
        }
}

static void check_slot_is_charged(SimCheck *c, const cJSON *old, const cJSON *new) {
        const SimMachine *m = sim_world_machine_of(c->world, fj_string(new, "metadata", "name", NULL));
        const cJSON *budget = fake_get(c->world->cluster, FAKE_NDBS, NULL, "nodes");
        cJSON *granted = parsed(new, "vesper.sh/shutdown-granted");

        if (budget && !c->world->was_restored && !is_taken(old) && !is_free_to_take(c, m, old) &&
            !is_held_by(charge_of(budget, new), strempty(fj_string(granted, "id", NULL))))
                sim_check_broken(c, "holder",
                                 "%s gets a slot to reboot, and no budget has charged it for that", m->node);
        cJSON_Delete(granted);
}

void sim_check_charges(SimCheck *c, const cJSON *old, const cJSON *new) {
        unsigned was = count_charged(c, old), is = count_charged(c, new);

        if (new && !c->world->was_restored && is > was && is > c->world->options.node_budget)
                sim_check_broken(c, "charged", "%s charges nodes of a NodeDisruptionBudget: %u after %u, and it allows %u",
                                 c->world->request ? strempty(c->world->request->user) : "nobody", is, was,
                                 c->world->options.node_budget);
        if (new && !c->world->was_restored)
                check_holders(c, old, new);
}

/* Of those that were admitted: it is being deleted, or may be any moment. What begins later has to ask anew. */
static bool is_admitted(SimCheck *c, size_t i) {
        const SimSeen *seen = &c->seen[i];
        const cJSON *node = sim_world_node(c->world, i);
        usec_t deleted;

        if (!seen->admitted || !streq_ptr(fj_string(node, "metadata", "uid", NULL), seen->admitted))
                return false;
        if (rfc3339_parse(strempty(fj_string(node, "metadata", "deletionTimestamp", NULL)), &deleted) < 0)
                deleted = sim_world_wall(c->world);
        return deleted < usec_add(seen->admitted_usec, CHARGE_USEC);
}

void sim_check_admitted(SimCheck *c, const SimMachine *m) {
        size_t i = sim_check_index(c, m);
        const cJSON *node = sim_world_node(c->world, i);
        unsigned n = 0;

        if (!node || c->world->was_restored || is_free_to_take(c, m, node))
                return;
        free(c->seen[i].admitted);
        c->seen[i].admitted = MUST(strdup(fj_string(node, "metadata", "uid", NULL)));
        c->seen[i].admitted_usec = sim_world_wall(c->world);
        if (!streq_ptr(fj_string(charge_of(fake_get(c->world->cluster, FAKE_NDBS, NULL, "nodes"), node),
                                 "kind", NULL),
                       "DELETE"))
                sim_check_broken(c, "holder",
                                 "the deletion of %s is let pass, and no budget has charged it for that",
                                 m->node);
        for (size_t k = 0; k < c->world->n_machines; k++)
                n += is_admitted(c, k);
        if (n > c->world->options.node_budget)
                sim_check_broken(c, "admitted", "the deletion of %s is let pass as one of %u, and the budget allows %u", m->node, n,
                                 c->world->options.node_budget);
}

/* A person has paused removals, and whoever takes hold of it knows. */
static void check_paused(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        usec_t now = sim_world_now(c->world), lag = sim_check_was_calm(c, PAUSED_USEC) ? PAUSED_USEC : READY_USEC;
        /* Of no pool: none that is paused holds it. */
        bool standalone = !fj_get(sim_world_claim(c->world, sim_check_index(c, m)), "spec", "nodePool", NULL);

        if (c->world->was_restored || is_taken(old) || !is_taken(new) || !sim_check_is_deleting(new) || is_free_to_take(c, m, old))
                return;
        for (int all = standalone; all < 2; all++)
                if (c->world->paused_usec[all] > 0 && now > c->world->paused_usec[all] + lag)
                        sim_check_broken(c, "paused", "%s takes hold of %s, and removals are paused since %" PRIu64 " s ago",
                                         c->world->request->user, m->node, (now - c->world->paused_usec[all]) / USEC_PER_SEC);
}

/* -- deadlines that are told --------------------------------------------------------------------- */

static void note_deadlines(SimCheck *c, const SimMachine *m, const cJSON *old, const cJSON *new) {
        SimSeen *seen = &c->seen[sim_check_index(c, m)];
        cJSON *was = interruption_of(old), *is = interruption_of(new);
        usec_t deadline;

        if (sim_check_tells_of_end(old))
                seen->interrupted_usec = sim_world_now(c->world);
        /* What has passed already when it is told is doubted, and some time assumed: policy of the sources. */
        if (!streq_ptr(fj_string(was, "deadline", NULL), fj_string(is, "deadline", NULL)))
                seen->said_usec = rfc3339_parse(strempty(fj_string(is, "deadline", NULL)), &deadline) >= 0 &&
                                                  deadline > sim_world_wall(c->world)
                                          ? sim_world_now(c->world)
                                          : USEC_INFINITY;
        if (rfc3339_parse(strempty(fj_string(is, "deadline", NULL)), &deadline) >= 0)
                sim_world_note_said(c->world, sim_check_index(c, m), deadline);
        if (!streq_ptr(fj_string(old, "metadata", "annotations", "vesper.sh/deadline", NULL),
                       fj_string(new, "metadata", "annotations", "vesper.sh/deadline", NULL)))
                seen->copied_usec = sim_world_now(c->world);
        cJSON_Delete(was);
        cJSON_Delete(is);
}

void sim_check_node(SimCheck *c, const cJSON *old, const cJSON *new) {
        const SimMachine *m = sim_world_machine_of(c->world, fj_string(new, "metadata", "name", NULL));

        if (!m || !old)
                return;
        if (sim_check_tells_of_end(new))
                c->seen[sim_check_index(c, m)].told_usec = sim_world_now(c->world);
        check_cordon(c, m, old, new);
        check_interruption(c, m, old, new);
        check_slots(c, old, new);
        check_out_of_service(c, m, old, new);
        note_illness(c, m, old, new);
        if (c->world->options.repair_reboot_sec > 0)
                check_reboot_asked(c, m, old, new);
        check_taken(c, m, old, new);
        check_paused(c, m, old, new);
        note_deadlines(c, m, old, new);
}

void sim_check_node_gone(SimCheck *c, const cJSON *old) {
        const SimMachine *m = sim_world_machine_of(c->world, fj_string(old, "metadata", "name", NULL));

        if (m)
                c->seen[sim_check_index(c, m)].left_unmanaged =
                        m->unmanaged_usec > 0 && !has_finalizer(old) &&
                        (streq_ptr(fj_string(old, "metadata", "annotations", "vesper.sh/unmanaged", NULL), "true") ||
                         sim_world_now(c->world) < m->unmanaged_usec + READY_USEC); /* and was not adopted again */
}
