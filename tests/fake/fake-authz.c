/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-authz.h"

#include <stdlib.h>
#include <strings.h>

#include "strv.h"

typedef struct Rule {
        char *subject, *group, *ns;
        char **verbs, **resources, **names; /* names NULL: all */
} Rule;

struct FakeAuthz {
        Hashmap *tokens; /* identities */
        Rule *rules;
        size_t n_rules, rules_allocated;
};

FakeAuthz *fake_authz_new(void) {
        FakeAuthz *a = MUST(new0(FakeAuthz, 1));
        int r = hashmap_new(0, &a->tokens);

        assert(r >= 0);
        return a;
}

FakeAuthz *fake_authz_free(FakeAuthz *a) {
        if (!a)
                return NULL;

        hashmap_free_with(a->tokens, mfree);
        for (size_t i = 0; i < a->n_rules; i++) {
                free(a->rules[i].subject);
                free(a->rules[i].group);
                free(a->rules[i].ns);
                strv_free(a->rules[i].verbs);
                strv_free(a->rules[i].resources);
                strv_free(a->rules[i].names);
        }
        free(a->rules);
        return mfree(a);
}

void fake_authz_add_token(FakeAuthz *a, const char *token, const char *identity) {
        void *old = NULL;
        int r = hashmap_replace(a->tokens, token, MUST(strdup(identity)), &old);

        assert(r >= 0);
        free(old);
}

void fake_authz_allow_named(FakeAuthz *a, const char *subject, const char *verbs, const char *group,
                            const char *resources, const char *ns, const char *names) {
        Rule rule = { .subject = MUST(strdup(subject)), .group = MUST(strdup(group)) };
        int r = GREEDY_REALLOC(a->rules, a->rules_allocated, a->n_rules + 1);

        assert(r >= 0);
        r = strv_split(verbs, ",", &rule.verbs);
        assert(r >= 0);
        r = strv_split(resources, ",", &rule.resources);
        assert(r >= 0);
        r = names ? strv_split(names, ",", &rule.names) : 0;
        assert(r >= 0);
        rule.ns = ns ? MUST(strdup(ns)) : NULL;
        a->rules[a->n_rules++] = rule;
}

void fake_authz_allow(FakeAuthz *a, const char *subject, const char *verbs, const char *group,
                      const char *resources, const char *ns) {
        fake_authz_allow_named(a, subject, verbs, group, resources, ns, NULL);
}

/* -- authentication ------------------------------------------------------------------------------------ */

static void add_group(FakeUser *u, const char *group) {
        int r = strv_extend(&u->groups, group);

        assert(r >= 0);
}

static bool user_from_identity(const char *identity, FakeUser *ret) {
        _cleanup_strv_free_ char **parts = NULL;
        int r = strv_split(identity, ",", &parts);

        assert(r >= 0);
        STRV_FOREACH (p, parts) {
                const char *v;

                if ((v = startswith(*p, "CN=")) && !ret->name)
                        ret->name = MUST(strdup(v));
                else if ((v = startswith(*p, "O=")))
                        add_group(ret, v);
        }
        if (ret->name)
                add_group(ret, "system:authenticated");
        return ret->name;
}

bool fake_authz_authenticate(const FakeAuthz *a, const HttpExchange *x, FakeUser *ret) {
        const char *authorization = http_header_find(x->headers, x->n_headers, "Authorization");
        const char *token = authorization ? startswith(authorization, "Bearer ") : NULL;
        const char *identity = x->client_identity;

        if (!identity && token)
                identity = hashmap_get(a->tokens, token);
        return identity && user_from_identity(identity, ret);
}

static void fake_user_done(FakeUser *u) {
        free(u->name);
        strv_free(u->groups);
        *u = (FakeUser){};
}

static bool may_impersonate(const FakeAuthz *a, const FakeUser *u, const char *resource, const char *name) {
        if (strv_contains(u->groups, "system:masters"))
                return true;
        for (size_t i = 0; i < a->n_rules; i++) {
                const Rule *rule = a->rules + i;

                if ((streq(rule->subject, u->name) || strv_contains(u->groups, rule->subject)) && *rule->group == 0 &&
                    strv_contains(rule->verbs, "impersonate") && strv_contains(rule->resources, resource) &&
                    (!rule->names || strv_contains(rule->names, name)))
                        return true;
        }
        return false;
}

bool fake_authz_impersonate(const FakeAuthz *a, FakeRequest *r, char **ret_reason) {
        const HttpExchange *x = r->x;
        FakeUser other = {};

        for (size_t i = 0; i < x->n_headers; i++) {
                bool is_user = strcasecmp(x->headers[i].name, "Impersonate-User") == 0;
                const char *name = x->headers[i].value, *resource = is_user ? "users" : "groups";

                if (!is_user && strcasecmp(x->headers[i].name, "Impersonate-Group") != 0)
                        continue;
                if (!may_impersonate(a, &r->user, resource, name)) {
                        *ret_reason = MUST(strf("%s \"%s\" is forbidden: User \"%s\" cannot impersonate resource \"%s\" in API group \"\" at the cluster scope",
                                                resource, name, r->user.name, resource));
                        fake_user_done(&other);
                        return false;
                }
                if (is_user)
                        other.name = MUST(strdup(name));
                else
                        add_group(&other, name);
        }
        if (!other.name) {
                fake_user_done(&other);
                return true;
        }
        add_group(&other, "system:authenticated");
        fake_user_done(&r->user);
        r->user = other;
        return true;
}

/* -- authorization ------------------------------------------------------------------------------------- */

const char *fake_user_node(const FakeUser *u) {
        return u->name && strv_contains(u->groups, "system:nodes") ? startswith(u->name, "system:node:")
                                                                   : NULL;
}

static bool list_has(char **list, const char *word) {
        return strv_contains(list, "*") || strv_contains(list, word);
}

static bool rule_allows(const Rule *rule, const FakeRequest *r) {
        _cleanup_free_ char *resource =
                r->subresource ? MUST(strf("%s/%s", r->plural, r->subresource)) : MUST(strdup(r->plural));

        return (streq(rule->subject, r->user.name) || strv_contains(r->user.groups, rule->subject)) &&
               (streq(rule->group, "*") || streq(rule->group, r->group)) &&
               (!rule->ns || streq_ptr(rule->ns, r->ns)) &&
               list_has(rule->verbs, strempty(fake_verb_to_string(r->verb))) &&
               list_has(rule->resources, resource) &&
               (!rule->names || strv_contains(rule->names, fake_request_authz_name(r)));
}

static bool rules_allow(const FakeAuthz *a, const FakeRequest *r) {
        for (size_t i = 0; i < a->n_rules; i++)
                if (rule_allows(&a->rules[i], r))
                        return true;
        return false;
}

static bool is_read(FakeVerb v) {
        return v == FAKE_GET || v == FAKE_LIST || v == FAKE_WATCH;
}

static bool pod_uses_claim(const cJSON *pod, const char *claim) {
        const cJSON *v;

        cJSON_ArrayForEach (v, fj_get(pod, "spec", "volumes", NULL))
                if (streq_ptr(fj_string(v, "persistentVolumeClaim", "claimName", NULL), claim))
                        return true;
        return false;
}

static bool claim_related(const FakeStore *s, const char *ns, const char *claim, const char *node) {
        const cJSON *pod;

        FAKE_STORE_FOREACH_NODE_POD (pod, s, node)
                if (streq_ptr(fj_string(pod, "metadata", "namespace", NULL), ns) && pod_uses_claim(pod, claim))
                        return true;
        return false;
}

/* The authorizer's graph: does a path lead from the object to the node? */
static bool related(const FakeStore *s, const FakeRequest *r, const char *node) {
        const cJSON *o = r->name && r->resource ? fake_store_get(s, r->resource->id, r->ns, r->name) : NULL;

        if (!o)
                return false;
        if (r->resource->id == FAKE_PODS || r->resource->id == FAKE_VOLUMEATTACHMENTS)
                return streq_ptr(fj_string(o, "spec", "nodeName", NULL), node);
        if (r->resource->id == FAKE_PVCS)
                return claim_related(s, r->ns, r->name, node);
        if (r->resource->id == FAKE_PVS) {
                const char *ns = fj_string(o, "spec", "claimRef", "namespace", NULL);
                const char *claim = fj_string(o, "spec", "claimRef", "name", NULL);

                return ns && claim && claim_related(s, ns, claim, node);
        }
        return false;
}

static bool because(char **ret_reason, char *reason) {
        *ret_reason = MUST(reason);
        return false;
}

static bool check_get_related(const FakeStore *s, const FakeRequest *r, const char *node,
                              char **ret_reason) {
        if (r->verb != FAKE_GET)
                return because(ret_reason, strdup("can only get individual resources of this type"));
        if (r->subresource)
                return because(ret_reason, strdup("cannot get subresource"));
        if (!related(s, r, node))
                return because(ret_reason,
                               strf("no relationship found between node '%s' and this object", node));
        return true;
}

static bool check_node_nodes(const FakeRequest *r, const char *node, char **ret_reason) {
        const char *name = fake_request_authz_name(r);

        if (streq_ptr(r->subresource, "status"))
                return r->verb == FAKE_UPDATE || r->verb == FAKE_PATCH;
        if (r->subresource)
                return false;
        if (r->verb == FAKE_CREATE || r->verb == FAKE_UPDATE || r->verb == FAKE_PATCH)
                return true; /* admission narrows it */
        if (!is_read(r->verb))
                return false;
        if (streq(name, node))
                return true;
        if (isempty(name))
                return because(ret_reason,
                               strf("node '%s' cannot read all nodes, only its own Node object", node));
        return because(ret_reason, strf("node '%s' cannot read '%s', only its own Node object", node, name));
}

static bool check_node_pods(const FakeStore *s, const FakeRequest *r, const char *node, char **ret_reason) {
        if (streq_ptr(r->subresource, "status"))
                return r->verb == FAKE_UPDATE || r->verb == FAKE_PATCH;
        if (streq_ptr(r->subresource, "eviction"))
                return r->verb == FAKE_CREATE;
        if (r->subresource)
                return false;
        if (r->verb == FAKE_GET)
                return check_get_related(s, r, node, ret_reason);
        if (r->verb == FAKE_LIST || r->verb == FAKE_WATCH) {
                const char *selector = fake_request_query(r, "fieldSelector");
                _cleanup_free_ char *error = NULL;
                FakeSelector f = { 0 };
                bool own = selector && fake_field_selector_parse(r->resource, selector, &f, &error) &&
                           streq_ptr(fake_field_selector_exact(&f, "spec.nodeName"), node);

                fake_selector_done(&f);
                return own || because(ret_reason,
                                      strdup("can only list/watch pods with spec.nodeName field selector"));
        }
        return r->verb == FAKE_CREATE || r->verb == FAKE_DELETE;
}

static bool check_node_leases(const FakeRequest *r, const char *node, char **ret_reason) {
        if (r->verb == FAKE_LIST || r->verb == FAKE_WATCH || r->verb == FAKE_DELETECOLLECTION)
                return because(ret_reason,
                               strdup("can only get, create, update, patch, or delete a node lease"));
        if (!streq_ptr(r->ns, "kube-node-lease"))
                return because(ret_reason,
                               strdup("can only access leases in the \"kube-node-lease\" system namespace"));
        if (r->verb != FAKE_CREATE && !streq_ptr(r->name, node))
                return because(
                        ret_reason,
                        strdup("can only access node lease with the same name as the requesting node"));
        return true;
}

static bool check_node(const FakeStore *s, const FakeRequest *r, const char *node, char **ret_reason) {
        if (!r->resource)
                return false;

        switch (r->resource->id) {
        case FAKE_NODES:
                return check_node_nodes(r, node, ret_reason);
        case FAKE_PODS:
                return check_node_pods(s, r, node, ret_reason);
        case FAKE_LEASES:
                return check_node_leases(r, node, ret_reason);
        case FAKE_PVS:
        case FAKE_PVCS:
        case FAKE_VOLUMEATTACHMENTS:
                return check_get_related(s, r, node, ret_reason);
        case FAKE_EVENTS:
                return !r->subresource &&
                       (r->verb == FAKE_CREATE || r->verb == FAKE_UPDATE || r->verb == FAKE_PATCH);
        case FAKE_NAMESPACES:
        case FAKE_PDBS:
        case FAKE_REPLICASETS:
        case FAKE_DEPLOYMENTS:
        case FAKE_DAEMONSETS:
        case FAKE_STATEFULSETS:
        case FAKE_NODEPOOLS:
        case FAKE_NODECLAIMS:
        case FAKE_NDBS:
        case FAKE_SECRETS:
        case FAKE_WEBHOOKS:
        case FAKE_STORAGECLASSES:
        case FAKE_CSINODES:
        case _FAKE_RESOURCE_MAX:
        case _FAKE_RESOURCE_INVALID:
                return false;
        }
        return false;
}

bool fake_authz_check(const FakeAuthz *a, const FakeStore *s, const FakeRequest *r, char **ret_reason) {
        const char *node = fake_user_node(&r->user);

        *ret_reason = NULL;
        if (strv_contains(r->user.groups, "system:masters"))
                return true;
        if (!r->is_resource) /* system:public-info-viewer and system:discovery */
                return streq(r->method, "get");
        if (rules_allow(a, r))
                return true;
        return node && check_node(s, r, node, ret_reason);
}
