/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-authz.h"

/* plugin/pkg/admission/noderestriction and apiserver/pkg/admission/plugin/namespace/lifecycle, 1.34. */

static const char *object_name(const FakeRequest *r, const cJSON *new) {
        const char *name = r->name;

        if (!name)
                name = fj_string(new, "metadata", "name", NULL);
        if (!name)
                name = fj_string(new, "metadata", "generateName", NULL);
        return name ? name : "Unknown";
}

/* -- labels that a kubelet may set on its node --------------------------------------------------------- */

static bool domain_is(const char *domain, const char *suffix) {
        const char *end = endswith(domain, suffix);

        return end && (end == domain || end[-1] == '.');
}

static bool label_is_forbidden(const char *key) {
        static const char *const allowed[] = {
                "kubernetes.io/hostname",
                "topology.kubernetes.io/zone",
                "topology.kubernetes.io/region",
                "failure-domain.beta.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/region",
                "beta.kubernetes.io/instance-type",
                "node.kubernetes.io/instance-type",
                "kubernetes.io/os",
                "kubernetes.io/arch",
                "beta.kubernetes.io/os",
                "beta.kubernetes.io/arch",
        };
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *domain = NULL;

        if (!slash)
                return false;
        domain = MUST(memdup_str(key, (size_t) (slash - key)));
        if (domain_is(domain, "node-restriction.kubernetes.io"))
                return true;
        if (!domain_is(domain, "kubernetes.io") && !domain_is(domain, "k8s.io"))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(allowed); i++)
                if (streq(allowed[i], key))
                        return false;
        return !domain_is(domain, "kubelet.kubernetes.io") && !domain_is(domain, "node.kubernetes.io");
}

static int compare_keys(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Sorted, "a, b"; NULL if every changed label is allowed. */
static char *forbidden_labels(const cJSON *new, const cJSON *old) {
        size_t room = (size_t) cJSON_GetArraySize(new) + (size_t) cJSON_GetArraySize(old), n = 0;
        _cleanup_free_ const char **keys = MUST(new0(const char *, room + 1));
        _cleanup_strbuf_ StrBuf b = { 0 };
        const cJSON *l;

        cJSON_ArrayForEach (l, new)
                if (!fj_equal(l, fj_member(old, l->string)) && label_is_forbidden(l->string))
                        keys[n++] = l->string;
        cJSON_ArrayForEach (l, old)
                if (!fj_member(new, l->string) && label_is_forbidden(l->string))
                        keys[n++] = l->string;
        if (n == 0)
                return NULL;
        qsort(keys, n, sizeof(*keys), compare_keys);
        for (size_t i = 0; i < n; i++)
                strbuf_addf(&b, "%s%s", i > 0 ? ", " : "", keys[i]);
        return MUST(strbuf_steal(&b));
}

/* -- NodeRestriction ----------------------------------------------------------------------------------- */

static bool admit_node(const FakeRequest *r, const char *node, const cJSON *new, const cJSON *old,
                       FakeReply *reply) {
        const char *name = object_name(r, new);
        _cleanup_free_ char *labels = NULL;

        if (!streq(name, node))
                return fake_reply_forbidden(reply, r->resource, name,
                                            "node \"%s\" is not allowed to modify node \"%s\"", node, name);
        if (!new)
                return true;
        if (old && !fj_equal(fj_get(new, "spec", "taints", NULL), fj_get(old, "spec", "taints", NULL)))
                return fake_reply_forbidden(reply, r->resource, name,
                                            "node \"%s\" is not allowed to modify taints", node);
        if (old && !fj_equal(fj_get(new, "metadata", "ownerReferences", NULL),
                             fj_get(old, "metadata", "ownerReferences", NULL)))
                return fake_reply_forbidden(reply, r->resource, name,
                                            "node \"%s\" is not allowed to modify ownerReferences", node);

        labels = forbidden_labels(fj_get(new, "metadata", "labels", NULL),
                                  fj_get(old, "metadata", "labels", NULL));
        if (labels && old)
                return fake_reply_forbidden(reply, r->resource, name, "is not allowed to modify labels: %s",
                                            labels);
        if (labels)
                return fake_reply_forbidden(reply, r->resource, name,
                                            "node \"%s\" is not allowed to set the following labels: %s",
                                            node, labels);
        return true;
}

/* The lister of the plugin names the kind in the singular. */
static bool pod_not_found(FakeReply *reply, const char *name) {
        cJSON *details;

        fake_reply_failure(reply, 404, "NotFound", "pod \"%s\" not found", name);
        details = fake_reply_details(reply);
        fj_set_string(details, "name", name);
        fj_set_string(details, "kind", "pod");
        return false;
}

static bool admit_pod_create(const FakeRequest *r, const char *node, const cJSON *new, FakeReply *reply) {
        const char *name = object_name(r, new);
        const cJSON *owners = fj_get(new, "metadata", "ownerReferences", NULL);

        if (!fj_string(new, "metadata", "annotations", "kubernetes.io/config.mirror", NULL))
                return fake_reply_forbidden(
                        reply, r->resource, name,
                        "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"%s\" can "
                        "only create mirror pods",
                        node);
        if (!streq_ptr(fj_string(new, "spec", "nodeName", NULL), node))
                return fake_reply_forbidden(
                        reply, r->resource, name,
                        "node \"%s\" can only create pods with spec.nodeName set to itself", node);
        if (cJSON_GetArraySize(owners) != 1 || !streq_ptr(fj_string(owners->child, "kind", NULL), "Node") ||
            !streq_ptr(fj_string(owners->child, "name", NULL), node))
                return fake_reply_forbidden(
                        reply, r->resource, name,
                        "node \"%s\" can only create pods with an owner reference set to itself", node);
        return true;
}

static bool admit_pod(const FakeStore *s, const FakeRequest *r, const char *node, const cJSON *new,
                      FakeReply *reply) {
        const char *name = object_name(r, new), *bound;
        const cJSON *pod = fake_store_get(s, FAKE_PODS, r->ns, name);

        if (r->verb == FAKE_CREATE && !r->subresource)
                return admit_pod_create(r, node, new, reply);
        if (!pod)
                return pod_not_found(reply, name);

        bound = strempty(fj_string(pod, "spec", "nodeName", NULL));
        if (streq_ptr(r->subresource, "eviction"))
                return streq(bound, node) ||
                       fake_reply_forbidden(reply, r->resource, name,
                                            "node %s can only evict pods with spec.nodeName set to itself",
                                            node);
        if (streq_ptr(r->subresource, "status")) {
                if (!streq(bound, node))
                        return fake_reply_forbidden(
                                reply, r->resource, name,
                                "node \"%s\" can only update pod status for pods with spec.nodeName "
                                "set to itself",
                                node);
                return fj_equal(fj_get(pod, "metadata", "labels", NULL),
                                fj_get(new, "metadata", "labels", NULL)) ||
                       fake_reply_forbidden(reply, r->resource, name,
                                            "node \"%s\" cannot update labels through pod status", node);
        }
        if (r->verb == FAKE_DELETE)
                return streq(bound, node) ||
                       fake_reply_forbidden(
                               reply, r->resource, name,
                               "node \"%s\" can only delete pods with spec.nodeName set to itself", node);
        return fake_reply_forbidden(
                reply, r->resource, name,
                "unexpected operation \"UPDATE\", node \"%s\" can only create and delete mirror pods", node);
}

static bool admit_lease(const FakeRequest *r, const char *node, const cJSON *new, FakeReply *reply) {
        const char *name = object_name(r, new);

        return streq(name, node) ||
               fake_reply_forbidden(reply, r->resource, name,
                                    "can only access node lease with the same name as the requesting node");
}

static bool admit_kubelet(const FakeStore *s, const FakeRequest *r, const char *node, const cJSON *new,
                          const cJSON *old, FakeReply *reply) {
        if (r->resource->id == FAKE_NODES)
                return admit_node(r, node, new, old, reply);
        if (r->resource->id == FAKE_PODS)
                return admit_pod(s, r, node, new, reply);
        if (r->resource->id == FAKE_LEASES)
                return admit_lease(r, node, new, reply);
        return true;
}

/* -- NamespaceLifecycle -------------------------------------------------------------------------------- */

static bool admit_namespace(const FakeStore *s, const FakeRequest *r, const cJSON *new, FakeReply *reply) {
        static const char *const immortal[] = { "default", "kube-system", "kube-public" };
        const cJSON *ns;

        if (r->resource->id == FAKE_NAMESPACES) {
                for (size_t i = 0; r->verb == FAKE_DELETE && i < ELEMENTSOF(immortal); i++)
                        if (streq_ptr(r->name, immortal[i]))
                                return fake_reply_forbidden(reply, r->resource, r->name,
                                                            "this namespace may not be deleted");
                return true;
        }
        if (!r->resource->namespaced || r->verb == FAKE_DELETE || r->verb == FAKE_DELETECOLLECTION)
                return true;

        ns = fake_store_get(s, FAKE_NAMESPACES, NULL, r->ns);
        if (!ns)
                return fake_reply_not_found(reply, fake_resource(FAKE_NAMESPACES), r->ns);
        if (r->verb == FAKE_CREATE && streq_ptr(fj_string(ns, "status", "phase", NULL), "Terminating")) {
                _cleanup_free_ char *why = MUST(strf("namespace %s is being terminated", r->ns));

                fake_reply_forbidden(
                        reply, r->resource, object_name(r, new),
                        "unable to create new content in namespace %s because it is being terminated",
                        r->ns);
                fake_reply_add_cause(reply, "NamespaceTerminating", why, "metadata.namespace");
                return false;
        }
        return true;
}

bool fake_admit(const FakeStore *s, const FakeRequest *r, const cJSON *new, const cJSON *old,
                FakeReply *reply) {
        const char *node = fake_user_node(&r->user);

        return admit_namespace(s, r, new, reply) && (!node || admit_kubelet(s, r, node, new, old, reply));
}
