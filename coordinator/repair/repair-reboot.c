/* SPDX-License-Identifier: Apache-2.0 */
#include "repair-case.h"

#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "reboot-slots.h"
#include "string-util.h"
#include "termination-marks.h"

/* The reboot that repairs a node:
 *
 *      NONE --a rule is due--> ASKED --why_taken_back()--> TAKEN_BACK --it holds no slot, or its repair ends--> NONE
 *       | ^                     |  |
 *       | +-------proved--------+  +--failed--> FAILED --well for five minutes, or its case ends--> NONE
 *       +--the node says no boot id---------------^
 */

static const char *reboot_asked_of(const KubeNode *n) {
        return object_meta_annotation(&n->object.meta, ANNOTATION_REBOOT_FOR_REPAIR);
}

const char *repair_reboot_record(const KubeNodeClaim *claim) {
        return claim ? object_meta_annotation(&claim->object.meta, ANNOTATION_REBOOTED_FOR_REPAIR) : NULL;
}

bool repair_reboot_was_done(const KubeNode *n, const KubeNodeClaim *claim) {
        const char *ended = repair_reboot_record(claim);

        return boot_id_differs(ended, n->boot_id);
}

bool repair_reboot_has_slot(const Repairs *r, const KubeNode *n) {
        RebootCase c = {};
        bool holds = reboot_case_read(n, loop_wall(r->context->env->loop), r->context->config->reboot_slot_usec, &c) < 0 ||
                     c.request_state == REBOOT_REQUEST_HOLDS_SLOT;

        reboot_case_done(&c);
        return holds;
}

static bool asks_to_reboot(const Repairs *r, const KubeNode *n) {
        RebootCase c = {};
        bool asks = reboot_case_read(n, loop_wall(r->context->env->loop), r->context->config->reboot_slot_usec, &c) < 0 ||
                    c.request_state == REBOOT_REQUEST_WAITING || c.request_state == REBOOT_REQUEST_HOLDS_SLOT;

        reboot_case_done(&c);
        return asks;
}

/* boot_id NULL: takes the annotation off. False: the write could not be sent. */
static bool write_annotation(Repairs *r, const KubeNode *n, const char *what, const KubeKind *kind, const KubeObject *o, const char *annotation,
                             const char *boot_id) {
        _cleanup_free_ char *key = strf("node/%s", n->object.meta.name), *body = NULL;
        ObjectWrite w = { .what = what,
                          .target = { .kind = kind, .name = o->meta.name },
                          .state = o->meta.resource_version,
                          .reconcile_key = key };

        if (!key || termination_annotation_patch(o, annotation, boot_id, &body) < 0) {
                work_queue_note_lost(r->queue);
                return false;
        }
        return body && object_writes_patch(r->context->writes, &w, KUBE_PATCH_MERGE, body) > 0;
}

static bool write_request(Repairs *r, const KubeNode *n, const char *boot_id) {
        return write_annotation(r, n, "write the request for a reboot on", &kube_node_kind, &n->object, ANNOTATION_REBOOT_FOR_REPAIR, boot_id);
}

static bool write_record(Repairs *r, const KubeNode *n, const KubeNodeClaim *claim, const char *boot_id) {
        return write_annotation(r, n, "write the reboot of a repair on", &kube_node_claim_kind, &claim->object,
                                ANNOTATION_REBOOTED_FOR_REPAIR, boot_id);
}

void repair_reboot_begin(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodePool *pool, const RepairDomains *d, const RepairVerdict *v) {
        int k;

        if (!n->boot_id) { /* nobody could tell that it has booted */
                c->reboot = REPAIR_REBOOT_FAILED;
                return;
        }
        if (reboot_asked_of(n)) /* an earlier request is being taken off */
                return;
        k = free_and_strdup(&c->boot_id, n->boot_id);
        if (k >= 0)
                k = repair_brake_begin(r->brake, n->object.meta.uid, n->boot_id, d, repairs_now(r));
        if (k < 0 && k != -EEXIST) {
                c->boot_id = mfree(c->boot_id);
                work_queue_note_lost(r->queue);
                return;
        }
        c->reboot = REPAIR_REBOOT_ASKED;
        c->has_asked = false;
        c->not_before_usec = usec_add(repairs_now(r), REPAIR_TAKEN_UP_USEC);
        if (k >= 0)
                repairs_note_begun(r, n, pool, v);
        repairs_mark_node(r, c->node, repairs_now(r));
}

void repair_reboot_note(Repairs *r, const RepairCase *c, const KubeNode *n, const KubeNodePool *pool) {
        repair_brake_see_rebooted(r->brake, n->object.meta.uid, n->boot_id, kube_node_is_ready(n) && n->object.meta.deletion_usec == 0,
                                  repair_sight_ails(c->sight, pool), repairs_now(r));
}

/* Returns why the request for a reboot is withdrawn; NULL: it stands. */
static const char *why_taken_back(const Repairs *r, const RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        if (repair_reboot_was_done(n, claim))
                return "it was rebooted for that already, as its NodeClaim says";
        if (!repair_sight_ails(c->sight, pool))
                return "no rule of its NodePool asks for a repair any more";
        if (repair_is_vetoed(n))
                return "a person keeps the node from repair (" ANNOTATION_DO_NOT_REPAIR ", "
                        ANNOTATION_KARPENTER_DO_NOT_REPAIR " or " ANNOTATION_UNMANAGED ")";
        if (repair_is_cordoned_by_a_person(n))
                return "the node was cordoned by a person or a tool, who may be at work on its machine";
        if (!reboot_asked_of(n) && repair_is_left_alone(r, n, claim))
                return "the node is interrupted, being removed, or in a slot to reboot";
        return NULL;
}

#define ASKED_AGAIN "It is asked again when that is over and a rule of its NodePool is due still"

static void take_back(Repairs *r, RepairCase *c, const KubeNode *n, const char *why) {
        const char *late = repair_reboot_has_slot(r, n) ? ". It has a slot: a reboot that has begun by now goes on" : "";
        EventObject o = event_object(&n->object);

        c->reboot = REPAIR_REBOOT_TAKEN_BACK;
        event_record(r->context->recorder, &o, EVENT_NORMAL, "NodeRepair",
                     "Not asking its agent any more to reboot it: %s%s. " ASKED_AGAIN, why, late);
        log_event(r->context->env->log, LOG_LEVEL_NOTICE, MESSAGE_REPAIR_REBOOT_TAKEN_BACK, LOG_FIELDS({ "NODE", c->node }),
                  "Node %s: not asking its agent any more to reboot it: %s%s. " ASKED_AGAIN, c->node, why, late);
}

void repair_reboot_end(Repairs *r, RepairCase *c, RepairReboot state) {
        c->reboot = state;
        c->boot_id = mfree(c->boot_id);
        c->not_before_usec = 0;
        repairs_mark_node(r, c->node, repairs_now(r));
}

/* The claim says first that the node is rebooted. A leader whose view of the claim is old cannot write there, and asks for no reboot. */
static void ask_agent(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim) {
        if (!streq_ptr(repair_reboot_record(claim), c->boot_id))
                (void) write_record(r, n, claim, c->boot_id);
        else if (!reboot_asked_of(n) && write_request(r, n, c->boot_id))
                c->not_before_usec = usec_add(repairs_now(r), REPAIR_TAKEN_UP_USEC);
}

void repair_reboot_see(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        const char *why;

        repair_reboot_note(r, c, n, pool);
        c->has_asked = c->has_asked || asks_to_reboot(r, n);
        if (!boot_id_equal(c->boot_id, n->boot_id))
                return;
        why = c->reboot == REPAIR_REBOOT_ASKED ? why_taken_back(r, c, n, claim, pool) : NULL;
        if (why)
                take_back(r, c, n, why);
        if (c->reboot == REPAIR_REBOOT_ASKED)
                ask_agent(r, c, n, claim);
        else if (!repair_reboot_has_slot(r, n)) {
                repair_brake_cancel(r->brake, repair_sight_uid(c->sight));
                repair_reboot_end(r, c, REPAIR_REBOOT_NONE);
                c->not_before_usec = usec_add(repairs_now(r), REPAIRS_AGAIN_USEC); /* a veto may come and go often */
        }
}

void repair_reboot_await_request(Repairs *r, RepairCase *c, const KubeNode *n) {
        c->not_before_usec = usec_add(repairs_now(r), REPAIRS_AGAIN_USEC);
        if (!boot_id_equal(c->boot_id, n->boot_id) || asks_to_reboot(r, n))
                return;
        if (c->reboot == REPAIR_REBOOT_ASKED && reboot_asked_of(n))
                repair_brake_fail(r->brake, repair_sight_uid(c->sight), repairs_now(r), repairs_on_ended, r);
        else /* the request is not written yet, or not taken off */
                repairs_mark_node(r, c->node, repairs_now(r));
}

static const char *why_reboot_failed(const Repairs *r, const RepairCase *c, const KubeNode *n) {
        if (!boot_id_equal(c->boot_id, n->boot_id))
                return "It was rebooted to be repaired, and is not well: it is not Ready, or shows what a rule of its NodePool is about";
        if (repair_reboot_has_slot(r, n))
                return "It has a slot to reboot, and was not rebooted within half an hour: its agent waits for pods, "
                        "of which its journal tells (journalctl -u vesper-agent)";
        if (asks_to_reboot(r, n))
                return "It was to be rebooted, and has not got a slot within half an hour. Events of the Node say why";
        if (c->has_asked)
                return "It was to be rebooted, and its agent has taken its request for a slot back: "
                        "its journal says why (journalctl -u vesper-agent)";
        return "It was to be rebooted, and its agent has not asked for a slot within five minutes: it is away, or set to RepairReboots=no";
}

void repair_reboot_report_failed(Repairs *r, const RepairCase *c) {
        const KubeNode *n = cluster_view_node(r->context->view, c->node);
        EventObject o;

        if (!n)
                return;
        o = event_object(&n->object);
        event_record(r->context->recorder, &o, EVENT_WARNING, "NodeRepair",
                     "%s. It is not asked again for what it shows. If a rule of its NodePool with action Replace "
                     "matches, that decides next; else the node stays "
                     "as it is, and 'kubectl delete node %s' has it replaced",
                     why_reboot_failed(r, c, n), c->node);
        log_warning(r->context->env->log, "Node %s: %s", c->node, why_reboot_failed(r, c, n));
}

void repair_reboot_forget(Repairs *r, RepairCase *c, const KubeNode *n, const KubeNodeClaim *claim, const KubeNodePool *pool) {
        usec_t now = repairs_now(r), over;

        if (!repair_reboot_record(claim) || !kube_node_is_ready(n) || repair_sight_ails(c->sight, pool)) {
                c->well_usec = USEC_INFINITY;
                return;
        }
        c->well_usec = MIN(c->well_usec, now);
        over = usec_add(c->well_usec, REPAIR_PROOF_USEC);
        if (repairs_view_trouble(r))
                over = MAX(over, usec_add(now, REPAIRS_AGAIN_USEC));
        if (now < over) {
                repairs_mark_node(r, c->node, over);
                return;
        }
        if (c->boot_id) /* its repair is about to be proved */
                return;
        c->reboot = REPAIR_REBOOT_NONE;
        (void) write_record(r, n, claim, NULL);
}

/* The agent withdraws its request for a slot, and says that the Events tell why. */
static void tell_new_leader(Repairs *r, const KubeNode *n) {
        EventObject o = event_object(&n->object);

        event_record(r->context->recorder, &o, EVENT_NORMAL, "NodeRepair",
                     "The request of an earlier leader to reboot this node is taken off. The coordinator that leads "
                     "now counts the fault anew, and asks again if "
                     "it lasts and the node was not rebooted for it");
}

void repair_reboot_tidy(Repairs *r, const KubeNode *n) {
        const char *asked = reboot_asked_of(n);
        const RepairCase *c = hashmap_get(r->cases, n->object.meta.name);

        if (!asked || !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) ||
            (c && boot_id_equal(c->boot_id, asked) && boot_id_equal(n->boot_id, asked) && c->reboot == REPAIR_REBOOT_ASKED))
                return;
        if (write_request(r, n, NULL) && !(c && c->boot_id))
                tell_new_leader(r, n);
}
