/* SPDX-License-Identifier: Apache-2.0 */
#include "shared-machine.h"

#include "machine-facts.h"
#include "node-deadline.h"
#include "node-pods.h"
#include "string-util.h"

static bool node_needs_machine(const TerminationContext *context, const KubeNode *n) {
        usec_t now = loop_wall(context->env->loop);
        NodeDeadline deadline = NODE_DEADLINE_NONE;
        DrainRules rules;
        bool needs;

        if (n->object.meta.deletion_usec == 0)
                return true;
        (void) node_deadline_update(&deadline, n, cluster_view_claim_of_node(context->view, n), now);
        rules = node_deadline_rules(&deadline, n, (ProtectedPolicy) context->config->protected_policy);
        rules.returns = context->returns_of(n->object.meta.name, context->userdata);
        needs = !node_deadline_passed(&deadline, now) &&
                node_pods_count(context->view, n->object.meta.name, &rules, now).waited > 0;
        node_deadline_done(&deadline);
        return needs;
}

const KubeNode *shared_machine_needed_by(const TerminationContext *context, const KubeNode *n) {
        const KubeNode *other;
        bool several = false;

        if (n->provider_id)
                (void) cluster_view_node_of_provider_id(context->view, n->provider_id, &several);
        if (!several)
                return NULL;
        for (HashmapIterator it = {};
             cluster_view_iterate_nodes_of_provider_id(context->view, n->provider_id, &it, &other);)
                if (other != n && node_needs_machine(context, other))
                        return other;
        return NULL;
}

char *shared_machine_message(const KubeNode *n, const KubeNode *needed_by) {
        _cleanup_free_ char *id = str_sanitize(n->provider_id, MACHINE_ID_SHOWN_MAX);
        bool stays = needed_by->object.meta.deletion_usec == 0;

        return strf("Node %s has providerID %s, too, and %s, so its machine is not ended. "
                    "%s, or end the machine by other means: then all of them go",
                    needed_by->object.meta.name, strempty(id),
                    stays ? "is not being deleted" : "still has pods that its drain waits for",
                    stays ? "Delete the Nodes that are wrong" : "Wait for that drain");
}
