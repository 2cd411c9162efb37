/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-handlers.h"

/* Merge patch (RFC 7386) and JSON patch (RFC 6902, with the leniencies of evanphx/json-patch that the server
 * uses). */

typedef enum PatchType { PATCH_JSON, PATCH_MERGE, PATCH_STRATEGIC, _PATCH_MAX } PatchType;

static const char *const patch_types[_PATCH_MAX] = {
        [PATCH_JSON] = "application/json-patch+json",
        [PATCH_MERGE] = "application/merge-patch+json",
        [PATCH_STRATEGIC] = "application/strategic-merge-patch+json",
};

/* -- merge patch --------------------------------------------------------------------------------------- */

static void merge(cJSON *target, const cJSON *patch) {
        const cJSON *p;

        cJSON_ArrayForEach (p, patch) {
                cJSON *t = fj_member(target, p->string);

                if (cJSON_IsNull(p))
                        fj_remove(target, p->string);
                else if (cJSON_IsObject(p)) {
                        if (!cJSON_IsObject(t))
                                t = fj_set(target, p->string, MUST(cJSON_CreateObject()));
                        merge(t, p);
                } else
                        fj_set_copy(target, p->string, p);
        }
}

/* -- JSON patch ---------------------------------------------------------------------------------------- */

/* Whatever cannot be applied is told to the client in the same words. */
static bool cannot(FakeReply *reply) {
        fake_reply_failure(reply, 422, "Invalid",
                           "the server rejected our request due to an error in our request");
        (void) fake_reply_details(reply);
        return false;
}

static char *unescape(const char *s, size_t size) {
        char *out = MUST(new0(char, size + 1));
        size_t n = 0;

        for (size_t i = 0; i < size; i++)
                if (s[i] == '~' && i + 1 < size && (s[i + 1] == '0' || s[i + 1] == '1'))
                        out[n++] = s[++i] == '0' ? '~' : '/';
                else
                        out[n++] = s[i];
        return out;
}

/* An index into an array; `end` allows one past the last and "-". -1: none. */
static int array_index(const cJSON *array, const char *token, bool end) {
        int n = cJSON_GetArraySize(array), i;

        if (end && streq(token, "-"))
                return n;
        if (!token[0] || strspn(token, "0123456789") != strlen(token) || strlen(token) > 6)
                return -1;
        i = atoi(token);
        return i < n || (end && i == n) ? i : -1;
}

static cJSON *step(cJSON *container, const char *token) {
        int i;

        if (cJSON_IsObject(container))
                return fj_member(container, token);
        i = cJSON_IsArray(container) ? array_index(container, token, false) : -1;
        return i >= 0 ? cJSON_GetArrayItem(container, i) : NULL;
}

/* Splits at the last '/': the container (NULL if it is not there) and the unescaped last token. */
static cJSON *find_parent(cJSON *root, const char *path, char **ret_last) {
        const char *last = path ? strrchr(path, '/') : NULL, *p = path;
        cJSON *at = root;

        *ret_last = NULL;
        if (!last)
                return NULL;
        while (at && p < last) {
                const char *end = strchr(p + 1, '/');
                _cleanup_free_ char *token = unescape(p + 1, (size_t) (end - p - 1));

                at = step(at, token);
                p = end;
        }
        *ret_last = unescape(last + 1, strlen(last + 1));
        return cJSON_IsObject(at) || cJSON_IsArray(at) ? at : NULL;
}

/* value is taken. */
static bool insert(cJSON *root, const char *path, cJSON *value) {
        _cleanup_free_ char *last = NULL;
        cJSON *parent = find_parent(root, path, &last);
        int i;

        if (cJSON_IsObject(parent)) {
                fj_set(parent, last, value);
                return true;
        }
        i = parent ? array_index(parent, last, true) : -1;
        if (i < 0) {
                cJSON_Delete(value);
                return false;
        }
        if (i == cJSON_GetArraySize(parent))
                cJSON_AddItemToArray(parent, value);
        else
                cJSON_InsertItemInArray(parent, i, value);
        return true;
}

static cJSON *detach(cJSON *root, const char *path) {
        _cleanup_free_ char *last = NULL;
        cJSON *parent = find_parent(root, path, &last), *v = parent ? step(parent, last) : NULL;

        return v ? cJSON_DetachItemViaPointer(parent, v) : NULL;
}

static const cJSON *lookup(cJSON *root, const char *path) {
        _cleanup_free_ char *last = NULL;
        cJSON *parent = find_parent(root, path, &last);

        return parent ? step(parent, last) : NULL;
}

/* A detached member keeps its name; as a value it has none. */
static cJSON *nameless_copy(const cJSON *v) {
        cJSON *copy = fj_copy(v);

        if (copy->string && !(copy->type & cJSON_StringIsConst))
                cJSON_free(copy->string);
        copy->string = NULL;
        return copy;
}

static bool operate(cJSON *root, const char *op, const char *path, const char *from, const cJSON *value) {
        const cJSON *there = lookup(root, path), *source = from ? lookup(root, from) : NULL;
        cJSON *copy;

        if (streq(op, "test")) /* null is there where nothing is */
                return there ? value && fj_equal(there, value) : !value || cJSON_IsNull(value);
        if (streq(op, "add"))
                return value && insert(root, path, nameless_copy(value));
        if (streq(op, "remove")) {
                copy = detach(root, path);
                cJSON_Delete(copy);
                return copy;
        }
        if (streq(op, "replace")) {
                if (!there || !value)
                        return false;
                cJSON_Delete(detach(root, path));
                return insert(root, path, nameless_copy(value));
        }
        if (!source || (!streq(op, "move") && !streq(op, "copy")))
                return false;
        copy = nameless_copy(source);
        if (streq(op, "move"))
                cJSON_Delete(detach(root, from));
        return insert(root, path, copy);
}

bool fake_json_patch_apply(cJSON **object, const cJSON *operations, FakeReply *reply) {
        const cJSON *o;

        if (!cJSON_IsArray(operations))
                return fake_reply_bad_request(
                        reply, "error decoding patch: json: cannot unmarshal object into Go value of "
                               "type []handlers.jsonPatchOp");
        cJSON_ArrayForEach (o, operations) {
                const char *op = fj_string(o, "op", NULL), *path = fj_string(o, "path", NULL);

                if (!op || !path ||
                    !operate(*object, op, path, fj_string(o, "from", NULL), fj_get(o, "value", NULL)))
                        return cannot(reply);
        }
        return true;
}

/* -- which --------------------------------------------------------------------------------------------- */

static PatchType patch_type(const FakeRequest *r) {
        const char *type = strempty(http_header_find(r->x->headers, r->x->n_headers, "Content-Type"));

        for (PatchType t = 0; t < _PATCH_MAX; t++) {
                const char *rest = startswith(type, patch_types[t]);

                if (rest && (*rest == 0 || *rest == ';'))
                        return t == PATCH_STRATEGIC && r->resource->custom ? _PATCH_MAX : t;
        }
        return _PATCH_MAX;
}

cJSON *fake_patch_apply(const FakeRequest *r, const cJSON *current, FakeReply *reply) {
        _cleanup_cjson_ cJSON *patch = NULL, *object = NULL;
        PatchType type = patch_type(r);
        bool done = true;

        if (type == _PATCH_MAX && !r->resource->custom) {
                fake_reply_failure(reply, 415, "UnsupportedMediaType", "415: Unsupported Media Type");
                (void) fake_reply_details(reply);
                return NULL;
        }
        if (type == _PATCH_MAX) {
                fake_reply_failure(reply, 415, "UnsupportedMediaType",
                                   "the body of the request was in an unknown format - accepted media types "
                                   "include: %s, "
                                   "%s, application/apply-patch+yaml",
                                   patch_types[PATCH_JSON], patch_types[PATCH_MERGE]);
                return NULL;
        }
        if (!current) {
                fake_reply_not_found(reply, r->resource, r->name);
                return NULL;
        }
        if (!fake_request_json(r, &patch, reply))
                return NULL;

        object = fj_copy(current);
        if (type == PATCH_JSON)
                done = fake_json_patch_apply(&object, patch, reply);
        else if (!cJSON_IsObject(patch))
                done = fake_reply_bad_request(
                        reply, "error decoding patch: json: cannot unmarshal array into Go value of "
                               "type map[string]interface {}");
        else if (type == PATCH_MERGE)
                merge(object, patch);
        else
                done = fake_strategic_apply(object, patch, reply);
        return done ? TAKE_PTR(object) : NULL;
}
