/* SPDX-License-Identifier: Apache-2.0 */
#include "standalone.h"

#include "machine-facts.h"
#include "marks.h"
#include "status-patch.h"
#include "string-util.h"

static const char *refusal_by_rival(const KubeNodeClaim *c, const KubeNodeClaim *rival, const char *id, char **ret_message) {
        const char *name = rival->object.meta.name;

        if (!kube_node_claim_is_standalone(rival)) {
                *ret_message = strf("NodeClaim %s of NodePool %s has the machine %s: this claim is not acted on. Delete it, or have the "
                                    "NodePool let go of the Node first",
                                    name, rival->node_pool, id);
                return "ClaimOfPool";
        }
        *ret_message = kube_node_claim_is_adopted(rival) && !kube_node_claim_is_adopted(c)
                               ? strf("NodeClaim %s has adopted the Node with providerID %s: this claim is not acted on. Delete it", name, id)
                               : strf("NodeClaim %s has providerID %s, too: none of them is acted on. Delete all but one", name, id);
        return "ClaimsConflict";
}

static const char *refusal_by_provider(const CloudRegistry *cloud, const KubeNodeClaim *c, const char *id, char **ret_message) {
        const CloudProvider *p = cloud_registry_for(cloud, c->provider_id);
        _cleanup_free_ char *names = cloud_registry_names(cloud);

        if (!p->ops->owns(p, strempty(c->provider_id))) {
                *ret_message = strf("No provider of this coordinator (%s) can end a machine with providerID %s: its Node is not adopted",
                                    strempty(names), id);
                return "ForeignMachine";
        }
        if (cloud->n_providers > 1 && !p->ops->proves_identity) {
                *ret_message = strf("The machine would be provider '%s's, which asks for no proof, and with several providers it serves "
                                    "only NodePools that name it: its Node is not adopted. Make a NodePool with spec.provider.name: %s that selects it",
                                    p->ops->name, p->ops->name);
                return "OtherProvider";
        }
        return NULL;
}

/* The Node that this claim is for; NULL, with reason and message: none. */
static const KubeNode *node_to_adopt(const ClusterView *v, const KubeNodeClaim *c, const char *id, const char **ret_reason,
                                     char **ret_message) {
        bool several = false;
        const KubeNode *n = cluster_view_node_of_provider_id(v, c->provider_id, &several);

        if (several && c->made_for)
                n = cluster_view_node(v, c->made_for);
        if (!n || (several && !streq_ptr(n->provider_id, c->provider_id))) {
                *ret_reason = "NodeNotFound";
                *ret_message = strf("No Node%s%s has providerID %s: it is adopted once it has", several ? " of the name " : "",
                                    several ? c->made_for : "", id);
                return NULL;
        }
        if (several && !c->made_for) {
                *ret_reason = "SeveralNodes";
                *ret_message = strf("Several Nodes have providerID %s, and spec.nodeName does not say which: none is adopted. "
                                    "Make the claim anew with spec.nodeName",
                                    id);
                return NULL;
        }
        if (c->made_for && !streq(c->made_for, n->object.meta.name)) {
                *ret_reason = "OtherNode";
                *ret_message = strf("Node %s has providerID %s, and spec.nodeName is %s: it is not adopted. Make the claim anew with the "
                                    "right name, or with none",
                                    n->object.meta.name, id, c->made_for);
                return NULL;
        }
        return n;
}

const char *standalone_refusal(const ClusterView *view, const CloudRegistry *cloud, const KubeNodeClaim *claim,
                               char **ret_message) {
        _cleanup_free_ char *id = str_sanitize(strempty(claim->provider_id), MACHINE_ID_SHOWN_MAX);
        const KubeNodeClaim *rival = cluster_view_rival_of_claim(view, claim);
        const char *reason = NULL;
        const KubeNode *n;

        *ret_message = NULL;
        if (!kube_node_claim_is_standalone(claim))
                return NULL;
        if (rival)
                return refusal_by_rival(claim, rival, strempty(id), ret_message);
        if (kube_node_claim_is_adopted(claim))
                return NULL;
        n = node_to_adopt(view, claim, strempty(id), &reason, ret_message);
        if (!n)
                return reason;
        /* With our finalizer on it the Node was on its way to be adopted: its removal takes this claim along. */
        if (n->object.meta.deletion_usec > 0 && !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION)) {
                *ret_message = strf("Node %s is being deleted already: it is not adopted", n->object.meta.name);
                return "NodeDeleted";
        }
        if (kube_node_is_unmanaged(n)) {
                *ret_message = strf("Node %s is annotated " ANNOTATION_UNMANAGED ": it is adopted once the annotation is off",
                                    n->object.meta.name);
                return "NodeUnmanaged";
        }
        return refusal_by_provider(cloud, claim, strempty(id), ret_message);
}

int standalone_refusal_patch(const KubeNodeClaim *claim, const char *reason, const char *message, usec_t wall_now_usec,
                             char **ret_body) {
        Condition said = { .type = CLAIM_NOT_ADOPTED,
                           .status = CONDITION_TRUE,
                           .reason = reason,
                           .message = message,
                           .last_transition_usec = wall_now_usec };
        JsonWriter *w;

        if (streq_ptr(claim->phase, CLAIM_PHASE_NOT_ADOPTED) && condition_is_said(&claim->object, &said))
                return 0;
        w = status_patch_open(&claim->object);
        if (!w)
                return -ENOMEM;
        json_add_string(w, "phase", CLAIM_PHASE_NOT_ADOPTED);
        json_add_null(w, "nodeName");
        json_add_null(w, "nodeUID");
        status_patch_add_conditions(w, &claim->object, &said, 1, 0, (const char *const[]){ CLAIM_NODE_ABSENT, NULL });
        *ret_body = status_patch_close(w);
        return *ret_body ? 1 : -ENOMEM;
}
