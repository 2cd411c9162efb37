/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-reboot-rule.h"

#include "interruption.h"
#include "marks.h"
#include "reboot-taken.h"
#include "string-util.h"

static bool is_drained_for(const KubeNode *n, const char *event) {
        const Interruption *i = kube_node_interruption(n);

        return i && streq(i->notice->id, event) && i->notice->kind == NOTICE_MAINTENANCE && streq_ptr(i->notice->action, "reboot") &&
               i->phase == INTERRUPTION_DRAINED && boot_id_equal(i->boot_id, n->boot_id);
}

CloudRebootVerdict cloud_reboot_judge(const KubeNode *n, const RebootCase *c, usec_t wall_usec, const char **ret_why) {
        const char *taken = object_meta_annotation(&n->object.meta, ANNOTATION_REBOOT_TAKEN);

        assert(n && c && ret_why);
        *ret_why = NULL;
        if (!c->by_cloud || c->request_state != REBOOT_REQUEST_HOLDS_SLOT || !boot_id_equal(c->boot_id, n->boot_id))
                return CLOUD_REBOOT_NONE;
        if (n->object.meta.deletion_usec > 0)
                *ret_why = "the Node is being deleted";
        else if (!object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION) ||
                 !object_meta_label(&n->object.meta, LABEL_NODE_POOL))
                *ret_why = "no NodePool has adopted the node";
        else if (c->granted_until_usec <= usec_add(wall_usec, CLOUD_REBOOT_REST_USEC))
                *ret_why = "its slot is nearly over";
        else if (!taken || !reboot_taken_has(taken, c->event))
                *ret_why = "its agent has not noted on the Node that it takes this reboot early";
        else if (!is_drained_for(n, c->event) || !n->unschedulable)
                *ret_why = "its agent does not say that it is drained for that";
        else
                return c->is_sent ? CLOUD_REBOOT_SENT : CLOUD_REBOOT_DUE;
        return CLOUD_REBOOT_WAITS;
}
