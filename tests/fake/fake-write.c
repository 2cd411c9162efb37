/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-handlers.h"
#include "fake-schema.h"
#include "fake-strategy.h"

/* create, update and patch, in the order of apiserver/pkg/registry/generic/registry/store.go: what is
 * refused first there is refused first here. */

#define GENERATED_ALPHABET "bcdfghjklmnpqrstvwxz2456789"

static bool check_dry_run(const FakeRequest *r, const char *options_kind, FakeReply *reply) {
        const char *v = fake_request_query(r, "dryRun");
        _cleanup_errors_ FakeErrors e = { 0 };
        _cleanup_free_ char *kind = NULL, *shown = NULL;

        if (!v || streq(v, "All"))
                return true;
        kind = MUST(strf("%s.meta.k8s.io", options_kind));
        shown = MUST(strf("[\"%s\"]", v));
        fake_errors_add(&e, FAKE_ERROR_NOT_SUPPORTED, shown, "supported values: \"All\"", "dryRun");
        return fake_errors_reply_as(&e, kind, "", reply);
}

static bool check_content_type(const FakeRequest *r, FakeReply *reply) {
        const char *type = http_header_find(r->x->headers, r->x->n_headers, "Content-Type");

        if (!type || startswith(type, "application/json"))
                return true;
        return fake_reply_failure(
                reply, 415, "UnsupportedMediaType",
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, application/yaml%s",
                r->resource->custom ? "" : ", application/vnd.kubernetes.protobuf");
}

/* kind and apiVersion of what came: absent is fine but for a custom object, else they must be ours. */
static bool check_kind(const FakeRequest *r, const cJSON *body, FakeReply *reply) {
        const char *kind = fj_string(body, "kind", NULL), *version = fj_string(body, "apiVersion", NULL);
        const char *expected = fake_resource_api_version(r->resource);

        if (!cJSON_IsObject(body))
                return fake_reply_bad_request(reply, "json: cannot unmarshal array into Go value");
        if (r->resource->custom && (isempty(kind) || isempty(version)))
                return fake_reply_bad_request(reply, "Object 'Kind' is missing");
        if (!isempty(version) && !streq(version, expected) && !r->resource->custom)
                return fake_reply_bad_request(
                        reply,
                        "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is "
                        "registered for version \"%s\" in scheme \"pkg/runtime/scheme.go:110\"",
                        r->resource->kind, version, r->resource->kind, r->resource->kind, version);
        if (!isempty(version) && !streq(version, expected))
                return fake_reply_bad_request(
                        reply,
                        "the API version in the data (%s) does not match the expected API "
                        "version (%s)",
                        version, expected);
        if (!isempty(kind) && !streq(kind, r->resource->kind))
                return fake_reply_bad_request(
                        reply,
                        "%s in version \"%s\" cannot be handled as a %s: converting (%s) to "
                        "(%s): unknown conversion",
                        kind, r->resource->version, r->resource->kind, kind, r->resource->kind);
        return true;
}

static bool check_namespace(const FakeRequest *r, cJSON *object, FakeReply *reply) {
        cJSON *meta = fj_object(object, "metadata");
        const char *ns = fj_string(meta, "namespace", NULL);

        if (!r->resource->namespaced) {
                fj_remove(meta, "namespace");
                return true;
        }
        if (isempty(ns))
                fj_set_string(meta, "namespace", r->ns);
        else if (!streq(ns, r->ns))
                return fake_reply_bad_request(
                        reply, "the namespace of the provided object does not match the namespace "
                               "sent on the request");
        return true;
}

/* The body as an object ready to be stored. */
static cJSON *take_body(const FakeRequest *r, FakeReply *reply) {
        _cleanup_cjson_ cJSON *body = NULL;

        if (!check_content_type(r, reply) || !fake_request_json(r, &body, reply) ||
            !check_kind(r, body, reply) || !fake_strategy_decode(r->resource, body, false, reply))
                return NULL;
        fake_strategy_normalise(r->resource, body);
        return check_namespace(r, body, reply) ? TAKE_PTR(body) : NULL;
}

/* -- create -------------------------------------------------------------------------------------------- */

static void generate_name(FakeApi *a, const FakeRequest *r, cJSON *meta) {
        const char *prefix = fj_string(meta, "generateName", NULL);

        if (!isempty(fj_string(meta, "name", NULL)) || isempty(prefix))
                return;
        for (unsigned i = 0; i < 8; i++) {
                char suffix[6] = "";
                _cleanup_free_ char *name = NULL;

                for (unsigned k = 0; k < 5; k++)
                        suffix[k] =
                                GENERATED_ALPHABET[random_below(a->random, sizeof(GENERATED_ALPHABET) - 1)];
                name = MUST(strf("%s%s", prefix, suffix));
                fj_set_string(meta, "name", name);
                if (!fake_store_get(a->store, r->resource->id, r->ns, name))
                        return;
        }
}

static bool check_schema(FakeApi *a, const FakeRequest *r, cJSON *new, const cJSON *old, FakeReply *reply) {
        const cJSON *schema = a->schemas[r->resource->id];
        _cleanup_errors_ FakeErrors e = { 0 };

        if (schema)
                fake_schema_validate(schema, new, old, &e);
        return fake_errors_reply(&e, r->resource, strempty(fj_string(new, "metadata", "name", NULL)), reply);
}

/* Takes the object. */
static void create(FakeApi *a, const FakeRequest *r, cJSON *taken, FakeReply *reply) {
        _cleanup_cjson_ cJSON *object = taken;
        cJSON *meta = fj_object(object, "metadata");
        FakeVersion *old;
        char uid[UUID_MAX];
        const char *name;

        if (!isempty(fj_string(meta, "resourceVersion", NULL))) {
                fake_reply_failure(reply, 500, NULL,
                                   "resourceVersion should not be set on objects to be created");
                return;
        }
        if (!fake_admit(a->store, r, object, NULL, reply))
                return;
        if (!fake_callout_names(r, meta)) {
                generate_name(a, r, meta);
                random_uuid(a->random, uid);
                fj_set_string(meta, "uid", uid);
        }
        fake_strategy_prepare_create(a->store, r->resource, object);
        if (a->schemas[r->resource->id])
                fake_schema_prune(a->schemas[r->resource->id], object);
        if (!fake_strategy_validate_create(r->resource, object, reply) ||
            !check_schema(a, r, object, NULL, reply) ||
            !fake_validate(a, r, object, NULL, r->dry_run, reply))
                return;

        name = fj_string(meta, "name", NULL);
        old = fake_store_version(a->store, r->resource->id, r->ns, name);
        if (old) {
                fake_reply_exists(reply, r->resource, name);
                if (fj_get(old->json, "metadata", "deletionTimestamp", NULL)) {
                        _cleanup_free_ char *message = MUST(strf("object is being deleted: %s",
                                                                 fj_string(reply->status, "message", NULL)));

                        fj_set_string(reply->status, "message", message);
                }
                return;
        }
        if (r->dry_run) {
                fake_reply_text(reply, 201, fake_object_print(r->resource, object));
                return;
        }
        fake_reply_text(reply, 201,
                        fake_version_print(r->resource,
                                           fake_store_create(a->store, r->resource->id, TAKE_PTR(object))));
}

void fake_handle_create(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        cJSON *body;

        if (!check_dry_run(r, "CreateOptions", reply))
                return;
        body = take_body(r, reply);
        if (body)
                create(a, r, body, reply);
}

/* -- update -------------------------------------------------------------------------------------------- */

static bool check_version(const FakeRequest *r, cJSON *new, const FakeVersion *old, FakeReply *reply) {
        const char *rv = fj_string(new, "metadata", "resourceVersion", NULL);
        _cleanup_errors_ FakeErrors e = { 0 };

        if (isempty(rv)) {
                if (r->resource->unconditional)
                        return true;
                fake_errors_add(&e, FAKE_ERROR_INVALID, "0", "must be specified for an update",
                                "metadata.resourceVersion");
                return fake_errors_reply_as(&e, fake_resource_qualified(r->resource), r->name, reply);
        }
        return streq(rv, fj_string(old->json, "metadata", "resourceVersion", NULL)) ||
               fake_reply_stale(reply, r->resource, r->name);
}

/* store.go ShouldDeleteDuringUpdate(): the last finalizer went. */
static bool should_delete(const FakeResource *resource, const cJSON *new, const cJSON *old) {
        if (!fj_get(old, "metadata", "deletionTimestamp", NULL) ||
            fj_get(new, "metadata", "finalizers", NULL))
                return false;
        if (resource->id == FAKE_NAMESPACES &&
            cJSON_GetArraySize(fj_get(new, "spec", "finalizers", NULL)) > 0)
                return false;
        return fj_int(old, 0, "metadata", "deletionGracePeriodSeconds", NULL) == 0;
}

bool fake_write_update(FakeApi *a, const FakeRequest *r, cJSON *taken, FakeVersion *old, FakeReply *reply) {
        _cleanup_cjson_ cJSON *new = taken;
        const FakeResource *resource = r->resource;

        if (!fake_admit(a->store, r, new, old->json, reply) || !check_version(r, new, old, reply))
                return false;

        if (a->schemas[resource->id])
                fake_schema_prune(a->schemas[resource->id], new);
        fake_strategy_prepare_update(resource, r->subresource, new, old->json);
        if (!fake_strategy_validate_update(resource, r->subresource, new, old->json, reply) ||
            !check_schema(a, r, new, old->json, reply))
                return false;
        fj_set_copy(fj_object(new, "metadata"), "resourceVersion",
                    fj_get(old->json, "metadata", "resourceVersion", NULL));
        if (!fake_validate(a, r, new, old->json, r->dry_run, reply))
                return false;

        if (r->dry_run)
                return fake_reply_text(reply, 200, fake_object_print(resource, new));
        if (should_delete(resource, new, old->json)) {
                fake_reply_text(reply, 200, fake_object_print(resource, new));
                fake_store_delete(a->store, resource->id, r->ns, r->name);
                return true;
        }
        return fake_reply_text(
                reply, 200,
                fake_version_print(resource, fake_store_update(a->store, resource->id, TAKE_PTR(new))));
}

static bool check_name(const FakeRequest *r, const cJSON *object, FakeReply *reply) {
        const char *name = strempty(fj_string(object, "metadata", "name", NULL));

        return streq(name, r->name) ||
               fake_reply_bad_request(reply,
                                      "the name of the object (%s) does not match the name on the URL (%s)",
                                      name, r->name);
}

/* PUT: a uid in the body is a precondition of the storage, a name must be there. */
void fake_handle_update(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        FakeVersion *old = fake_store_version(a->store, r->resource->id, r->ns, r->name);
        const char *uid, *is;
        cJSON *body;

        if (!check_dry_run(r, "UpdateOptions", reply))
                return;
        body = take_body(r, reply);
        if (!body)
                return;
        if (!check_name(r, body, reply)) {
                cJSON_Delete(body);
                return;
        }

        uid = fj_string(body, "metadata", "uid", NULL);
        is = old ? fj_string(old->json, "metadata", "uid", NULL) : "";
        if (!old && !r->resource->create_on_put) {
                cJSON_Delete(body);
                fake_reply_not_found(reply, r->resource, r->name);
        } else if (!isempty(uid) && !streq(uid, is)) {
                fake_reply_conflict(reply, r->resource, r->name,
                                    "StorageError: invalid object, Code: 4, Key: /registry/%s/%s/%s, "
                                    "ResourceVersion: 0, "
                                    "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID "
                                    "in object meta: "
                                    "%s",
                                    r->resource->plural, strempty(r->ns), r->name, uid, is);
                cJSON_Delete(body);
        } else if (!old) {
                fj_remove(fj_object(body, "metadata"), "resourceVersion");
                create(a, r, body, reply);
        } else
                (void) fake_write_update(a, r, body, old, reply);
}

/* -- patch --------------------------------------------------------------------------------------------- */

void fake_handle_patch(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        FakeVersion *old = fake_store_version(a->store, r->resource->id, r->ns, r->name);
        _cleanup_cjson_ cJSON *current = NULL, *patched = NULL;
        _cleanup_free_ char *text = NULL;

        if (!check_dry_run(r, "PatchOptions", reply))
                return;
        text = old ? fake_version_print(r->resource, old) : NULL;
        current = text ? MUST(cJSON_Parse(text)) : NULL;
        patched = fake_patch_apply(r, current, reply);
        if (!patched || !fake_strategy_decode(r->resource, patched, true, reply))
                return;

        fake_strategy_normalise(r->resource, patched);
        if (check_namespace(r, patched, reply) && check_name(r, patched, reply))
                (void) fake_write_update(a, r, TAKE_PTR(patched), old, reply);
}
