/* SPDX-License-Identifier: Apache-2.0 */
#include "sibling-describe.h"

#include "string-util.h"

static void on_described(const CloudResult *result, void *userdata) {
        sibling_describe_free(userdata);
}

static bool is_of_service(const KubeNode *n, const CloudProvider *provider, const char *except_uid) {
        return !streq_ptr(n->object.meta.uid, except_uid) && n->provider_id && kube_node_is_ready(n) &&
               provider->ops->owns(provider, n->provider_id);
}

/* The one after so many others; NULL: there are not more. */
static const KubeNode *nth_sibling(const CloudProvider *provider, const ClusterView *view, const char *except_uid,
                                   size_t nth) {
        const KubeNode *n;
        size_t i = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(view, &it, &n);)
                if (is_of_service(n, provider, except_uid) && i++ == nth)
                        return n;
        return NULL;
}

void sibling_describe(SiblingDescribe *s, CloudProvider *provider, const ClusterView *view, const char *except_uid) {
        const KubeNode *n;

        if (s->call || !provider->ops->proves_identity)
                return;
        n = nth_sibling(provider, view, except_uid, s->next);
        if (!n) { /* all were asked: from the beginning */
                s->next = 0;
                n = nth_sibling(provider, view, except_uid, 0);
        }
        if (!n)
                return;
        s->next++;
        (void) cloud_describe(provider,
                              &(CloudMachine){ .provider_id = n->provider_id, .node = n->object.meta.name },
                              on_described, s, &s->call);
}

void sibling_describe_free(SiblingDescribe *s) {
        s->call = cloud_call_free(s->call);
}
