/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-handlers.h"

/*
 * Strategic merge patch, apimachinery/pkg/util/strategicpatch: as a merge patch, but a few lists are merged,
 * element by element with a key or as sets of words; all others (taints and tolerations among them) are
 * replaced. Directives: $patch (replace, delete, merge) in objects and elements,
 * $deleteFromPrimitiveList/FIELD, $setElementOrder/FIELD (order only), $retainKeys.
 */

#define ORDER "$setElementOrder/"
#define DELETE_FROM "$deleteFromPrimitiveList/"

/* The patchMergeKey tags of k8s.io/api; "": a set of words. By the path from the object, any index left out.
 */
static const struct {
        const char *path, *key;
} merged_lists[] = {
        { "metadata.finalizers", "" },
        { "metadata.ownerReferences", "uid" },
        { "status.conditions", "type" },
        { "status.addresses", "type" },
        { "status.podIPs", "ip" },
        { "status.hostIPs", "ip" },
        { "spec.containers", "name" },
        { "spec.initContainers", "name" },
        { "spec.volumes", "name" },
        { "spec.imagePullSecrets", "name" },
        { "spec.hostAliases", "ip" },
        { "spec.containers.env", "name" },
        { "spec.containers.ports", "containerPort" },
        { "spec.containers.volumeMounts", "mountPath" },
};

static const char *merge_key(const char *path) {
        for (size_t i = 0; i < ELEMENTSOF(merged_lists); i++)
                if (streq(merged_lists[i].path, path))
                        return merged_lists[i].key;
        return NULL;
}

static bool merge_object(cJSON *target, const cJSON *patch, const char *path, FakeReply *reply);

static char *sub_path(const char *path, const char *key) {
        return MUST(path[0] ? strf("%s.%s", path, key) : strdup(key));
}

/* -- order --------------------------------------------------------------------------------------------- */

/* Where an element stands in a list, by its key (or by itself); -1: nowhere. */
static int place_of(const cJSON *list, const char *key, const cJSON *e) {
        const cJSON *value = key[0] ? fj_member(e, key) : e, *other;
        int i = 0;

        cJSON_ArrayForEach (other, list) {
                if (fj_equal(key[0] ? fj_member(other, key) : other, value))
                        return i;
                i++;
        }
        return -1;
}

/* normalizeElementOrder(): what the patch names keeps the patch's order, the rest its own; in between, what
 * stood in front before stays in front, and what is new comes first. */
static void reorder(cJSON *list, const char *key, const cJSON *order, const cJSON *before) {
        int n = cJSON_GetArraySize(list), n_named = cJSON_GetArraySize(order), at = 0;
        _cleanup_free_ cJSON **named = MUST(new0(cJSON *, (size_t) n_named + 1));
        _cleanup_free_ cJSON **rest = MUST(new0(cJSON *, (size_t) n + 1));
        cJSON **r = rest;
        int n_rest = 0;

        while (list->child) {
                cJSON *e = cJSON_DetachItemViaPointer(list, list->child);
                int place = place_of(order, key, e);

                if (place >= 0 && !named[place])
                        named[place] = e;
                else
                        rest[n_rest++] = e;
        }
        for (;;) {
                while (at < n_named && !named[at])
                        at++;
                if (at == n_named && !*r)
                        return;
                if (at < n_named && *r) {
                        int left = place_of(before, key, *r), right = place_of(before, key, named[at]);

                        cJSON_AddItemToArray(list,
                                             left >= 0 && right >= 0 && left < right ? *r++ : named[at++]);
                } else
                        cJSON_AddItemToArray(list, *r ? *r++ : named[at++]);
        }
}

/* -- sets of words ------------------------------------------------------------------------------------- */

static void merge_words(cJSON *target, const char *key, const cJSON *words, const cJSON *order) {
        cJSON *list = fj_array(target, key);
        _cleanup_cjson_ cJSON *before = fj_copy(list);
        const cJSON *w;

        cJSON_ArrayForEach (w, words)
                if (cJSON_IsString(w) && !fj_array_has(list, w->valuestring))
                        cJSON_AddItemToArray(list, fj_copy(w));
        reorder(list, "", order ? order : words, before);
}

static bool delete_words(cJSON *target, const char *key, const cJSON *words, FakeReply *reply) {
        cJSON *list = fj_member(target, key), *e, *next;

        if (!cJSON_IsArray(words))
                return fake_reply_bad_request(reply, "invalid patch format of primitive list");
        for (e = list ? list->child : NULL; e; e = next) {
                next = e->next;
                if (cJSON_IsString(e) && fj_array_has(words, e->valuestring))
                        cJSON_Delete(cJSON_DetachItemViaPointer(list, e));
        }
        return true;
}

/* -- lists of objects ---------------------------------------------------------------------------------- */

static cJSON *find_element(cJSON *list, const char *key, const cJSON *value) {
        cJSON *e;

        cJSON_ArrayForEach (e, list)
                if (fj_equal(fj_member(e, key), value))
                        return e;
        return NULL;
}

static bool list_is_replaced(const cJSON *patch) {
        const cJSON *e;

        cJSON_ArrayForEach (e, patch)
                if (streq_ptr(fj_string(e, "$patch", NULL), "replace"))
                        return true;
        return false;
}

static bool merge_element(cJSON *list, const char *key, const cJSON *e, const char *path, FakeReply *reply) {
        const cJSON *value = fj_get(e, key, NULL);
        const char *directive = fj_string(e, "$patch", NULL);
        cJSON *there;

        if (!value) {
                _cleanup_free_ char *shown = fj_print(e);

                fake_reply_failure(reply, 500, NULL, "map: %s does not contain declared merge key: %s",
                                   shown, key);
                return false;
        }
        there = find_element(list, key, value);
        if (streq_ptr(directive, "delete")) {
                if (there)
                        cJSON_Delete(cJSON_DetachItemViaPointer(list, there));
                return true;
        }
        if (!there) {
                there = MUST(cJSON_CreateObject());
                cJSON_AddItemToArray(list, there);
        }
        return merge_object(there, e, path, reply);
}

static bool merge_list(cJSON *target, const char *name, const char *key, const cJSON *patch,
                       const cJSON *order, const char *path, FakeReply *reply) {
        _cleanup_cjson_ cJSON *before = NULL;
        const cJSON *e;
        cJSON *list;

        if (list_is_replaced(patch)) {
                list = fj_set(target, name, MUST(cJSON_CreateArray()));
                cJSON_ArrayForEach (e, patch)
                        if (!fj_member(e, "$patch"))
                                cJSON_AddItemToArray(list, fj_copy(e));
                return true;
        }
        list = fj_array(target, name);
        before = fj_copy(list);
        cJSON_ArrayForEach (e, patch)
                if (!merge_element(list, key, e, path, reply))
                        return false;
        reorder(list, key, order ? order : patch, before);
        return true;
}

/* -- objects ------------------------------------------------------------------------------------------- */

static void clear(cJSON *o) {
        while (o->child)
                cJSON_Delete(cJSON_DetachItemViaPointer(o, o->child));
}

static void retain_keys(cJSON *target, const cJSON *keys) {
        cJSON *m, *next;

        for (m = target->child; m; m = next) {
                next = m->next;
                if (!fj_array_has(keys, m->string))
                        cJSON_Delete(cJSON_DetachItemViaPointer(target, m));
        }
}

static bool merge_member(cJSON *target, const cJSON *patch, const cJSON *p, const char *path,
                         FakeReply *reply) {
        const char *name = p->string, *key, *rest;
        _cleanup_free_ char *inner = sub_path(path, name), *order = MUST(strf("%s%s", ORDER, name));
        cJSON *t = fj_member(target, name);

        if (streq(name, "$patch") || startswith(name, ORDER))
                return true;
        if (streq(name, "$retainKeys")) {
                retain_keys(target, p);
                return true;
        }
        if ((rest = startswith(name, DELETE_FROM)))
                return delete_words(target, rest, p, reply);
        if (cJSON_IsNull(p)) {
                fj_remove(target, name);
                return true;
        }
        if (cJSON_IsObject(p)) {
                if (!cJSON_IsObject(t) || streq(inner, "spec.selector"))
                        t = fj_set(target, name, MUST(cJSON_CreateObject()));
                return merge_object(t, p, inner, reply);
        }
        key = cJSON_IsArray(p) ? merge_key(inner) : NULL;
        if (!key)
                fj_set_copy(target, name, p);
        else if (!key[0])
                merge_words(target, name, p, fj_member(patch, order));
        else
                return merge_list(target, name, key, p, fj_member(patch, order), inner, reply);
        return true;
}

static bool merge_object(cJSON *target, const cJSON *patch, const char *path, FakeReply *reply) {
        const char *directive = fj_string(patch, "$patch", NULL);
        const cJSON *p;

        if (directive && (streq(directive, "replace") || streq(directive, "delete")))
                clear(target);
        else if (directive && !streq(directive, "merge")) {
                fake_reply_failure(reply, 500, NULL, "Unknown patch type %s", directive);
                return false;
        }
        if (streq_ptr(directive, "delete"))
                return true;
        cJSON_ArrayForEach (p, patch)
                if (!merge_member(target, patch, p, path, reply))
                        return false;
        return true;
}

bool fake_strategic_apply(cJSON *object, const cJSON *patch, FakeReply *reply) {
        return merge_object(object, patch, "", reply);
}
