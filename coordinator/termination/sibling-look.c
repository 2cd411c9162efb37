/* SPDX-License-Identifier: Apache-2.0 */
#include "sibling-look.h"

#include "string-util.h"

static void on_described(const CloudResult *result, void *userdata) {
        sibling_look_done(userdata);
}

void sibling_look(SiblingLook *s, CloudProvider *provider, const ClusterView *view, const char *except_uid) {
        const KubeNode *n;

        if (s->call || !provider->ops->proves_identity)
                return;
        for (HashmapIterator it = {}; cluster_view_iterate_nodes(view, &it, &n);) {
                if (streq_ptr(n->object.meta.uid, except_uid) || !n->provider_id || !kube_node_is_ready(n) ||
                    !provider->ops->owns(provider, n->provider_id))
                        continue;
                (void) cloud_describe(provider,
                                      &(CloudMachine){ .provider_id = n->provider_id,
                                                       .node = n->object.meta.name },
                                      on_described, s, &s->call);
                return;
        }
}

void sibling_look_done(SiblingLook *s) {
        s->call = cloud_call_free(s->call);
}
