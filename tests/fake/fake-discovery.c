/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-handlers.h"
#include "strv.h"

/* /api, /apis and the lists of resources: enough for kubectl to find its way. */

static const char *const short_names[_FAKE_RESOURCE_MAX] = {
        [FAKE_NODES] = "no",      [FAKE_PODS] = "po",          [FAKE_NAMESPACES] = "ns",
        [FAKE_EVENTS] = "ev",     [FAKE_PVS] = "pv",           [FAKE_PVCS] = "pvc",
        [FAKE_PDBS] = "pdb",      [FAKE_REPLICASETS] = "rs",   [FAKE_DEPLOYMENTS] = "deploy",
        [FAKE_DAEMONSETS] = "ds", [FAKE_STATEFULSETS] = "sts", [FAKE_NDBS] = "ndb",
};

static void add_verbs(cJSON *resource, bool status) {
        static const char *const all[] = { "create", "delete", "deletecollection", "get",
                                           "list",   "patch",  "update",           "watch" };
        static const char *const of_status[] = { "get", "patch", "update" };
        cJSON *verbs = fj_array(resource, "verbs");

        for (size_t i = 0; i < (status ? ELEMENTSOF(of_status) : ELEMENTSOF(all)); i++)
                cJSON_AddItemToArray(verbs, MUST(cJSON_CreateString(status ? of_status[i] : all[i])));
}

static void add_resource(cJSON *resources, const FakeResource *r, const char *subresource) {
        _cleanup_free_ char *name =
                MUST(subresource ? strf("%s/%s", r->plural, subresource) : strdup(r->plural));
        cJSON *o = fj_parse("{'name':'%s','singularName':'','namespaced':%s,'kind':'%s'}", name,
                            r->namespaced ? "true" : "false", r->kind);

        if (!subresource && short_names[r->id])
                cJSON_AddItemToArray(fj_array(o, "shortNames"),
                                     MUST(cJSON_CreateString(short_names[r->id])));
        if (subresource && streq(subresource, "eviction")) {
                fj_set_string(o, "kind", "Eviction");
                fj_set_string(o, "group", "policy");
                fj_set_string(o, "version", "v1");
                cJSON_AddItemToArray(fj_array(o, "verbs"), MUST(cJSON_CreateString("create")));
        } else
                add_verbs(o, subresource);
        cJSON_AddItemToArray(resources, o);
}

/* NULL: no such group and version. */
static cJSON *resource_list(const char *api_version) {
        cJSON *list =
                fj_parse("{'kind':'APIResourceList','apiVersion':'v1','groupVersion':'%s'}", api_version);
        cJSON *resources = fj_array(list, "resources");

        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++) {
                const FakeResource *r = fake_resource(id);

                if (!streq(fake_resource_api_version(r), api_version))
                        continue;
                add_resource(resources, r, NULL);
                if (r->has_status)
                        add_resource(resources, r, "status");
                if (id == FAKE_PODS)
                        add_resource(resources, r, "eviction");
        }
        if (resources->child)
                return list;
        cJSON_Delete(list);
        return NULL;
}

static cJSON *group_list(void) {
        cJSON *list = fj_parse("{'kind':'APIGroupList','apiVersion':'v1','groups':[]}");
        cJSON *groups = fj_member(list, "groups");

        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++) {
                const FakeResource *r = fake_resource(id);

                if (isempty(r->group) || fj_find(groups, "name", r->group))
                        continue;
                cJSON_AddItemToArray(
                        groups, fj_parse("{'name':'%s','versions':[{'groupVersion':'%s','version':'%s'}],"
                                         "'preferredVersion':{'groupVersion':'%s','version':'%s'}}",
                                         r->group, fake_resource_api_version(r), r->version,
                                         fake_resource_api_version(r), r->version));
        }
        return list;
}

bool fake_discover(const char *path, FakeReply *reply) {
        _cleanup_cjson_ cJSON *json = NULL;
        const char *rest;

        if (streq(path, "/api"))
                json = fj_parse("{'kind':'APIVersions','versions':['v1'],'serverAddressByClientCIDRs':[]}");
        else if (streq(path, "/apis"))
                json = group_list();
        else if ((rest = startswith(path, "/apis/")) || (rest = startswith(path, "/api/")))
                json = resource_list(rest);
        return json && fake_reply_text(reply, 200, fj_print(json));
}
