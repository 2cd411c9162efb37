/* SPDX-License-Identifier: Apache-2.0 */
#include "contract-rbac.h"

#include <stdio.h>

#include "file-util.h"
#include "yaml-tree.h"

#define MANIFEST_BYTES_MAX (64u * 1024)

static const char *text_of(const YamlTree *t, const char *key) {
        const YamlTree *v = yaml_tree_get(t, key);

        return v && v->type == YAML_SCALAR ? v->text : NULL;
}

/* "a,b" of a list of words; NULL if there is none. */
static char *words_of(const YamlTree *rule, const char *key) {
        const YamlTree *list = yaml_tree_get(rule, key);
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (!list)
                return NULL;
        for (const YamlTree *w = list->first; w; w = w->next)
                strbuf_addf(&b, "%s%s", b.size > 0 ? "," : "", w->text);
        return MUST(strbuf_steal(&b));
}

static void add_rule(FakeAuthz *authz, const char *subject, const char *ns, const YamlTree *rule) {
        _cleanup_free_ char *verbs = MUST(words_of(rule, "verbs")), *group = MUST(words_of(rule, "apiGroups"));
        _cleanup_free_ char *resources = MUST(words_of(rule, "resources")), *names = words_of(rule, "resourceNames");

        fake_authz_allow_named(authz, subject, verbs, group, resources, ns, names);
}

static void add_role(FakeAuthz *authz, const YamlTree *role) {
        const YamlTree *metadata = yaml_tree_get(role, "metadata"), *rules = yaml_tree_get(role, "rules");
        _cleanup_free_ char *subject =
                MUST(strf("system:serviceaccount:vesper-system:%s", strempty(text_of(metadata, "name"))));

        for (const YamlTree *rule = rules ? rules->first : NULL; rule; rule = rule->next)
                add_rule(authz, subject, text_of(metadata, "namespace"), rule);
}

static int add_document(FakeAuthz *authz, const char *path, const char *text, size_t size) {
        _cleanup_(yaml_tree_freep) YamlTree *tree = NULL;
        _cleanup_free_ char *message = NULL;
        const char *kind;
        size_t line = 0;
        int r;

        r = yaml_tree_parse(text, size, &tree, &line, &message);
        if (r < 0)
                return fprintf(stderr, "%s: %s\n", path, strempty(message)), r;
        kind = text_of(tree, "kind");
        if (streq_ptr(kind, "ClusterRole") || streq_ptr(kind, "Role"))
                add_role(authz, tree);
        return 0;
}

int contract_rbac_load(const char *path, FakeAuthz *authz) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r;

        r = read_file(path, MANIFEST_BYTES_MAX, &text, &size);
        if (r < 0)
                return fprintf(stderr, "%s: %s\n", path, strerrordesc_np(-r)), r;

        for (const char *p = text; r >= 0 && p;) {
                const char *end = strstr(p, "\n---\n");

                r = add_document(authz, path, p, end ? (size_t) (end - p) : strlen(p));
                p = end ? end + strlen("\n---\n") : NULL;
        }
        return r;
}
