/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <stdio.h>

#include "fake-strategy.h"
#include "fake-webhook.h"

/* What kube-apiserver refuses with 422, as far as a client like ours could run into it; messages of
 * apimachinery/pkg/util/validation and pkg/apis/.../validation. */

#define NAME_RULE \
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " \
        "and must start " \
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " \
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
#define LABEL_VALUE_RULE \
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " \
        "and must start and " \
        "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for " \
        "validation is " \
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define QUALIFIED_RULE \
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with " \
        "an alphanumeric " \
        "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " \
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define ANNOTATIONS_MAX (256u * 1024)

/* [A-Za-z0-9] at both ends, [-A-Za-z0-9_.] between. */
static bool is_name_part(const char *s, size_t size) {
        if (size == 0 || size > 63 || !isalnum((unsigned char) s[0]) ||
            !isalnum((unsigned char) s[size - 1]))
                return false;
        for (size_t i = 0; i < size; i++)
                if (!isalnum((unsigned char) s[i]) && !strchr("-_.", s[i]))
                        return false;
        return true;
}

static const char *check_qualified(const char *key) {
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *prefix = NULL;

        if (!slash)
                return is_name_part(key, strlen(key)) ? NULL : QUALIFIED_RULE;
        prefix = MUST(memdup_str(key, (size_t) (slash - key)));
        if (!dns1123_subdomain_is_valid(prefix))
                return "prefix part " NAME_RULE;
        return is_name_part(slash + 1, strlen(slash + 1)) ? NULL : QUALIFIED_RULE;
}

static void add_quoted(FakeErrors *e, const char *value, const char *detail, const char *field) {
        _cleanup_free_ char *quoted = MUST(strf("\"%s\"", value));

        fake_errors_add(e, FAKE_ERROR_INVALID, quoted, detail, "%s", field);
}

static void check_maps(FakeErrors *e, const cJSON *meta) {
        const cJSON *v;
        size_t total = 0;

        cJSON_ArrayForEach (v, fj_get(meta, "labels", NULL)) {
                const char *why = check_qualified(v->string);

                if (why)
                        add_quoted(e, v->string, why, "metadata.labels");
                if (v->valuestring[0] && !is_name_part(v->valuestring, strlen(v->valuestring)))
                        add_quoted(e, v->valuestring,
                                   strlen(v->valuestring) > 63 ? "must be no more than 63 characters"
                                                               : LABEL_VALUE_RULE,
                                   "metadata.labels");
        }
        cJSON_ArrayForEach (v, fj_get(meta, "annotations", NULL)) {
                const char *why = check_qualified(v->string);

                if (why)
                        add_quoted(e, v->string, why, "metadata.annotations");
                total += strlen(v->string) + strlen(v->valuestring);
        }
        if (total > ANNOTATIONS_MAX)
                fake_errors_add(e, FAKE_ERROR_TOO_LONG, NULL, "may not be more than 262144 bytes",
                                "metadata.annotations");
}

static void check_owners(FakeErrors *e, const cJSON *meta) {
        static const char *const required[] = { "apiVersion", "kind", "name", "uid" };
        const cJSON *o;

        cJSON_ArrayForEach (o, fj_get(meta, "ownerReferences", NULL))
                for (size_t i = 0; i < ELEMENTSOF(required); i++)
                        if (isempty(fj_string(o, required[i], NULL)))
                                fake_errors_add(e, FAKE_ERROR_INVALID, "\"\"",
                                                i == 0 ? "version must not be empty" : "must not be empty",
                                                "metadata.ownerReferences.%s", required[i]);
}

/* Built-in kinds want a domain in front, but for the words of Kubernetes' own. */
static void check_finalizers(FakeErrors *e, const FakeResource *r, const cJSON *finalizers) {
        const cJSON *f;
        int i = 0;

        cJSON_ArrayForEach (f, finalizers) {
                const char *name = f->valuestring, *why = check_qualified(name);
                bool standard = streq(name, "kubernetes") || streq(name, "orphan") ||
                                streq(name, "foregroundDeletion");
                _cleanup_free_ char *field = MUST(strf("metadata.finalizers[%d]", i++));

                if (why)
                        add_quoted(e, name, why, "metadata.finalizers");
                else if (!r->custom && !standard && !strchr(name, '/'))
                        add_quoted(e, name,
                                   "name is neither a standard finalizer name nor is it fully qualified",
                                   field);
        }
}

static void check_meta(FakeErrors *e, const FakeResource *r, const cJSON *object) {
        const cJSON *meta = fj_get(object, "metadata", NULL);
        const char *name = fj_string(meta, "name", NULL);

        if (isempty(name))
                fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, "name or generateName is required",
                                "metadata.name");
        else if (!dns1123_subdomain_is_valid(name))
                add_quoted(e, name, NAME_RULE, "metadata.name");
        if (r->namespaced && isempty(fj_string(meta, "namespace", NULL)))
                fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, NULL, "metadata.namespace");
        check_maps(e, meta);
        check_owners(e, meta);
        check_finalizers(e, r, fj_get(meta, "finalizers", NULL));
}

/* -- kinds --------------------------------------------------------------------------------------------- */

static void check_taints(FakeErrors *e, const cJSON *node) {
        const cJSON *taints = fj_get(node, "spec", "taints", NULL), *t, *before;
        int i = 0;

        cJSON_ArrayForEach (t, taints) {
                const char *key = strempty(fj_string(t, "key", NULL)),
                           *effect = fj_string(t, "effect", NULL);
                const char *why = check_qualified(key);
                _cleanup_free_ char *shown = MUST(strf("\"%s\"", strempty(effect)));

                if (why)
                        fake_errors_add(e, FAKE_ERROR_INVALID, "\"\"", why, "metadata.taints[%d].key", i);
                if (isempty(effect))
                        fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, NULL, "metadata.taints[%d].effect", i);
                else if (!streq(effect, "NoSchedule") && !streq(effect, "PreferNoSchedule") &&
                         !streq(effect, "NoExecute"))
                        fake_errors_add(
                                e, FAKE_ERROR_NOT_SUPPORTED, shown,
                                "supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"",
                                "metadata.taints[%d].effect", i);
                for (before = taints->child; before != t; before = before->next)
                        if (streq(strempty(fj_string(before, "key", NULL)), key) &&
                            streq_ptr(fj_string(before, "effect", NULL), effect))
                                fake_errors_add(e, FAKE_ERROR_DUPLICATE, "{}",
                                                "taints must be unique by key and effect pair",
                                                "metadata.taints[%d]", i);
                i++;
        }
}

static void check_pod(FakeErrors *e, const cJSON *pod) {
        const cJSON *containers = fj_get(pod, "spec", "containers", NULL), *c;
        int i = 0;

        if (cJSON_GetArraySize(containers) == 0)
                fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, NULL, "spec.containers");
        cJSON_ArrayForEach (c, containers) {
                if (isempty(fj_string(c, "name", NULL)))
                        fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, NULL, "spec.containers[%d].name", i);
                if (isempty(fj_string(c, "image", NULL)))
                        fake_errors_add(e, FAKE_ERROR_REQUIRED, NULL, NULL, "spec.containers[%d].image", i);
                i++;
        }
}

static void check_pdb(FakeErrors *e, const cJSON *pdb) {
        const cJSON *spec = fj_get(pdb, "spec", NULL);
        _cleanup_free_ char *shown = spec ? fj_print(spec) : MUST(strdup("{}"));

        if (fj_member(spec, "minAvailable") && fj_member(spec, "maxUnavailable"))
                fake_errors_add(e, FAKE_ERROR_INVALID, shown,
                                "minAvailable and maxUnavailable cannot be both set", "spec");
}

static void check_lease(FakeErrors *e, const cJSON *lease) {
        const cJSON *duration = fj_get(lease, "spec", "leaseDurationSeconds", NULL);

        if (cJSON_IsNumber(duration) && duration->valuedouble <= 0)
                fake_errors_add(e, FAKE_ERROR_INVALID, "0", "must be greater than 0",
                                "spec.leaseDurationSeconds");
        if (fj_int(lease, 0, "spec", "leaseTransitions", NULL) < 0)
                fake_errors_add(e, FAKE_ERROR_INVALID, "-1", "must be greater than or equal to 0",
                                "spec.leaseTransitions");
}

static void check_event(FakeErrors *e, const cJSON *event) {
        const char *ns = fj_string(event, "metadata", "namespace", NULL);
        const char *involved = strempty(fj_string(event, "involvedObject", "namespace", NULL));
        bool fine = isempty(involved) ? streq_ptr(ns, "default") : streq_ptr(ns, involved);

        if (fj_string(event, "eventTime", NULL) && isempty(involved) && streq_ptr(ns, "kube-system"))
                fine = true;
        if (!fine)
                add_quoted(e, involved, "does not match event.namespace", "involvedObject.namespace");
}

static void check_kind(FakeErrors *e, const FakeResource *r, const cJSON *object) {
        if (r->id == FAKE_NODES)
                check_taints(e, object);
        else if (r->id == FAKE_PODS)
                check_pod(e, object);
        else if (r->id == FAKE_PDBS)
                check_pdb(e, object);
        else if (r->id == FAKE_LEASES)
                check_lease(e, object);
        else if (r->id == FAKE_EVENTS)
                check_event(e, object);
        else if (r->id == FAKE_WEBHOOKS)
                fake_webhook_config_validate(object, e);
}

bool fake_strategy_validate_create(const FakeResource *r, const cJSON *object, FakeReply *reply) {
        _cleanup_errors_ FakeErrors e = { 0 };

        check_kind(&e, r, object);
        check_meta(&e, r, object);
        return fake_errors_reply(&e, r, strempty(fj_string(object, "metadata", "name", NULL)), reply);
}

/* -- updates ------------------------------------------------------------------------------------------- */

static void check_immutable(FakeErrors *e, const cJSON *new, const cJSON *old, const char *key) {
        const cJSON *is = fj_get(new, "metadata", key, NULL), *was = fj_get(old, "metadata", key, NULL);
        _cleanup_free_ char *shown = NULL;

        if (fj_equal(is, was))
                return;
        shown = is ? fj_print(is) : MUST(strdup("null"));
        fake_errors_add(e, FAKE_ERROR_INVALID, shown, "field is immutable", "metadata.%s", key);
}

static void check_new_finalizers(FakeErrors *e, const cJSON *new, const cJSON *old) {
        const cJSON *was = fj_get(old, "metadata", "finalizers", NULL), *f;
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (!fj_get(old, "metadata", "deletionTimestamp", NULL))
                return;
        cJSON_ArrayForEach (f, fj_get(new, "metadata", "finalizers", NULL))
                if (!fj_array_has(was, f->valuestring))
                        strbuf_addf(&b, "%s\"%s\"", b.size > 0 ? ", " : "", f->valuestring);
        if (b.size > 0) {
                _cleanup_free_ char *detail =
                        MUST(strf("no new finalizers can be added if the object is being deleted, "
                                  "found new finalizers []string{%s}",
                                  strbuf_str(&b)));

                fake_errors_add(e, FAKE_ERROR_FORBIDDEN, NULL, detail, "metadata.finalizers");
        }
}

static void check_node_update(FakeErrors *e, const cJSON *new, const cJSON *old) {
        const char *was = fj_string(old, "spec", "providerID", NULL);

        if (!isempty(was) && !streq_ptr(was, fj_string(new, "spec", "providerID", NULL)))
                fake_errors_add(e, FAKE_ERROR_FORBIDDEN, NULL,
                                "node updates may not change providerID except from \"\" to valid",
                                "spec.providerID");
}

/* Of a pod's spec only images, activeDeadlineSeconds and more tolerations may change. */
static void check_pod_update(FakeErrors *e, const cJSON *new, const cJSON *old) {
        static const char *const mutable[] = { "activeDeadlineSeconds", "tolerations", "schedulingGates" };
        _cleanup_cjson_ cJSON *a = NULL, *b = NULL;
        const cJSON *x = fj_get(new, "spec", NULL), *y = fj_get(old, "spec", NULL);
        cJSON *c;

        if (fj_equal(x, y))
                return;
        a = x ? fj_copy(x) : MUST(cJSON_CreateObject());
        b = y ? fj_copy(y) : MUST(cJSON_CreateObject());
        for (size_t i = 0; i < ELEMENTSOF(mutable); i++) {
                fj_remove(a, mutable[i]);
                fj_remove(b, mutable[i]);
        }
        cJSON_ArrayForEach (c, fj_member(a, "containers"))
                fj_remove(c, "image");
        cJSON_ArrayForEach (c, fj_member(b, "containers"))
                fj_remove(c, "image");
        if (!fj_equal(a, b))
                fake_errors_add(e, FAKE_ERROR_FORBIDDEN, NULL,
                                "pod updates may not change fields other than `spec.containers[*].image`,"
                                "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec."
                                "tolerations` (only "
                                "additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
                                "(allow it to be "
                                "set to 1 if it was previously negative)",
                                "spec");
}

bool fake_strategy_validate_update(const FakeResource *r, const char *subresource, const cJSON *new,
                                   const cJSON *old, FakeReply *reply) {
        static const char *const immutable[] = { "name", "namespace", "uid", "deletionTimestamp",
                                                 "deletionGracePeriodSeconds" };
        _cleanup_errors_ FakeErrors e = { 0 };

        check_meta(&e, r, new);
        check_new_finalizers(&e, new, old);
        for (size_t i = 0; i < ELEMENTSOF(immutable); i++)
                check_immutable(&e, new, old, immutable[i]);
        if (!subresource) {
                check_kind(&e, r, new);
                if (r->id == FAKE_NODES)
                        check_node_update(&e, new, old);
                else if (r->id == FAKE_PODS)
                        check_pod_update(&e, new, old);
        }
        return fake_errors_reply(&e, r, strempty(fj_string(old, "metadata", "name", NULL)), reply);
}
