/* SPDX-License-Identifier: Apache-2.0 */
#include "early-rule.h"

#include "interruption.h"
#include "marks.h"
#include "reboot-taken.h"
#include "string-util.h"

/* What the coordinator has the cloud reboot is a pool's. */
static bool is_adopted(const KubeNode *n) {
        return object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) &&
               object_meta_label(&n->object.meta, LABEL_NODE_POOL);
}

bool early_was_taken(const Notice *n, const KubeNode *node) {
        return reboot_taken_has(object_meta_annotation(&node->object.meta, ANNOTATION_REBOOT_TAKEN), n->id);
}

static const char *why_way_is_closed(const Notice *n, const EarlyFacts *f) {
        switch (n->early) {
        case NOTICE_EARLY_NEVER:
                return "a reboot before its time would not end it";
        case NOTICE_EARLY_CLOUD:
                return is_adopted(f->node) ? NULL : "no NodePool has adopted this node, so the coordinator does not have its machine rebooted";
        case NOTICE_EARLY_ACK:
                if (f->acknowledge == ACKNOWLEDGE_NO)
                        return "[Metadata] Acknowledge=no";
                return n->resources ? "it is for other machines, too" : NULL;
        case NOTICE_EARLY_MACHINE:
                return f->has_bus ? NULL : "the agent runs without a system bus to reach logind by";
        }
        return "it is not known what would end it";
}

const char *early_why_left(const Notice *n, const EarlyFacts *f) {
        assert(n && f && f->node);
        if (!f->wanted)
                return "[Policy] Reboot= does not say early";
        if (n->kind != NOTICE_MAINTENANCE || n->certainty != NOTICE_CERTAIN || !streq_ptr(n->action, "reboot"))
                return "it is no certain reboot";
        if (early_was_taken(n, f->node))
                return "it was taken early once, and stands all the same";
        if (f->node->object.meta.deletion_usec > 0)
                return "the Node is being deleted";
        if (f->is_due)
                return "its time has come";
        if (f->is_refused)
                return "it was asked for, and came to nothing";
        return why_way_is_closed(n, f);
}

const char *acknowledge_why_not(const Notice *n, int acknowledge, const KubeNode *node) {
        assert(n && node);
        if (!streq_ptr(n->source, "azure"))
                return "its cloud takes no acknowledgement";
        if (acknowledge == ACKNOWLEDGE_NO)
                return "[Metadata] Acknowledge=no";
        if (n->certainty != NOTICE_CERTAIN)
                return "it is only advice";
        if (!n->resources)
                return NULL;
        if (acknowledge != ACKNOWLEDGE_ALL)
                return "it is for other machines, too ([Metadata] Acknowledge=alone)";
        return streq_ptr(object_meta_annotation(&node->object.meta, ANNOTATION_ACK_OK), n->id)
                       ? NULL
                       : "it is for other machines, too, and the coordinator does not say that all of them are drained";
}

const char *acknowledge_why_not_drained(const Notice *n, const KubeNode *node, const char *boot_id) {
        const Interruption *i = kube_node_interruption(node);

        if (!i || !streq(i->notice->id, n->id) || i->phase != INTERRUPTION_DRAINED || !boot_id_equal(i->boot_id, boot_id))
                return "its Node does not say that it is drained for it";
        return node->unschedulable ? NULL : "its Node is schedulable";
}
