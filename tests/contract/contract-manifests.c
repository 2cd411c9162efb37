/* SPDX-License-Identifier: Apache-2.0 */
#include "contract-manifests.h"

#include <stdio.h>

#include "file-util.h"
#include "parse-util.h"
#include "yaml-tree.h"

#define MANIFEST_BYTES_MAX (64u * 1024)
#define SEPARATOR "\n---\n"

/* -- YAML as JSON --------------------------------------------------------------------------------- */

static cJSON *scalar_to_json(const YamlTree *t) {
        uint64_t n;

        if (yaml_tree_is_null(t))
                return MUST(cJSON_CreateNull());
        if (t->plain && (streq(t->text, "true") || streq(t->text, "false")))
                return MUST(cJSON_CreateBool(streq(t->text, "true")));
        if (t->plain && parse_uint64(t->text, &n) >= 0)
                return MUST(cJSON_CreateNumber((double) n));
        return MUST(cJSON_CreateString(t->text));
}

static cJSON *to_json(const YamlTree *t) {
        cJSON *v;

        if (t->type == YAML_SCALAR)
                return scalar_to_json(t);
        v = MUST(t->type == YAML_MAP ? cJSON_CreateObject() : cJSON_CreateArray());
        for (const YamlTree *child = t->first; child; child = child->next)
                if (t->type == YAML_MAP)
                        cJSON_AddItemToObject(v, child->key, to_json(child));
                else
                        cJSON_AddItemToArray(v, to_json(child));
        return v;
}

/* -- documents ------------------------------------------------------------------------------------ */

static void apply_crd(FakeCluster *c, const cJSON *crd) {
        const cJSON *version = cJSON_GetArrayItem(fj_get(crd, "spec", "versions", NULL), 0);
        const FakeResource *r = fake_resource_find(
                strempty(fj_string(crd, "spec", "group", NULL)), strempty(fj_string(version, "name", NULL)),
                strempty(fj_string(crd, "spec", "names", "plural", NULL)));
        const cJSON *schema = fj_get(version, "schema", "openAPIV3Schema", NULL);

        if (r && schema)
                fake_api_set_schema(fake_cluster_api(c), r->id, fj_copy(schema));
}

/* "a,b" of a list of words; NULL if there is none. */
static char *words_of(const cJSON *rule, const char *key) {
        const cJSON *list = fj_member(rule, key), *w;
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (!list)
                return NULL;
        cJSON_ArrayForEach (w, list)
                strbuf_addf(&b, "%s%s", b.size > 0 ? "," : "", w->valuestring);
        return MUST(strbuf_steal(&b));
}

static void apply_role(FakeCluster *c, const cJSON *role) {
        _cleanup_free_ char *subject = MUST(strf("system:serviceaccount:vesper-system:%s",
                                                 strempty(fj_string(role, "metadata", "name", NULL))));
        const cJSON *rule;

        cJSON_ArrayForEach (rule, fj_member(role, "rules")) {
                _cleanup_free_ char *verbs = MUST(words_of(rule, "verbs")),
                                    *group = MUST(words_of(rule, "apiGroups"));
                _cleanup_free_ char *resources = MUST(words_of(rule, "resources"));
                _cleanup_free_ char *names = words_of(rule, "resourceNames");

                fake_authz_allow_named(fake_cluster_authz(c), subject, verbs, group, resources,
                                       fj_string(role, "metadata", "namespace", NULL), names);
        }
}

static void apply_document(FakeCluster *c, const cJSON *document) {
        const char *kind = strempty(fj_string(document, "kind", NULL));

        if (streq(kind, "CustomResourceDefinition"))
                apply_crd(c, document);
        else if (streq(kind, "ClusterRole") || streq(kind, "Role"))
                apply_role(c, document);
        else if (streq(kind, "Namespace"))
                fake_put(c, FAKE_NAMESPACES, fj_copy(document));
}

static int apply_text(FakeCluster *c, const char *path, const char *text, size_t size) {
        _cleanup_(yaml_tree_freep) YamlTree *tree = NULL;
        _cleanup_free_ char *message = NULL;
        _cleanup_cjson_ cJSON *document = NULL;
        size_t line = 0;
        int r;

        r = yaml_tree_parse(text, size, &tree, &line, &message);
        if (r < 0)
                return fprintf(stderr, "%s: %s\n", path, strempty(message)), r;
        document = to_json(tree);
        apply_document(c, document);
        return 0;
}

static int apply_file(FakeCluster *c, const char *folder, const char *name) {
        _cleanup_free_ char *path = MUST(strf("%s/%s", folder, name)), *text = NULL;
        size_t size;
        int r;

        r = read_file(path, MANIFEST_BYTES_MAX, &text, &size);
        if (r < 0)
                return fprintf(stderr, "%s: %s\n", path, strerrordesc_np(-r)), r;

        for (const char *p = text; r >= 0 && p;) {
                const char *end = strstr(p, SEPARATOR);

                r = apply_text(c, path, p, end ? (size_t) (end - p) : strlen(p));
                p = end ? end + strlen(SEPARATOR) : NULL;
        }
        return r;
}

int contract_manifests_apply(const char *folder, FakeCluster *cluster) {
        static const char *const names[] = { "crds/nodeclaims.yaml", "crds/nodedisruptionbudgets.yaml",
                                             "crds/nodepools.yaml", "coordinator/rbac.yaml" };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(names); i++)
                r = apply_file(cluster, folder, names[i]);
        return r;
}
