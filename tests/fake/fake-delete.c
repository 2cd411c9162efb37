/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-handlers.h"

/*
 * apiserver/pkg/registry/rest/delete.go BeforeDelete() and store.go Delete(): a pod goes after its grace,
 * which a second delete may only shorten; everything goes at once unless finalizers hold it.
 */

typedef enum Mode {
        MODE_NOW,      /* no grace: finalizers alone decide */
        MODE_GRACEFUL, /* the object was changed and is to be written */
        MODE_PENDING,  /* going already, and not asked for less: nothing happens */
} Mode;

void fake_delete_options_done(FakeDeleteOptions *o) {
        free(o->uid);
        free(o->rv);
        free(o->propagation);
        *o = (FakeDeleteOptions){ 0 };
}

static bool check_options(const cJSON *json, FakeReply *reply) {
        const char *propagation = fj_string(json, "propagationPolicy", NULL);
        const cJSON *dry_run = fj_get(json, "dryRun", NULL), *v;
        _cleanup_errors_ FakeErrors e = { 0 };

        if (propagation && !streq(propagation, "Foreground") && !streq(propagation, "Background") &&
            !streq(propagation, "Orphan")) {
                _cleanup_free_ char *shown = MUST(strf("\"%s\"", propagation));

                fake_errors_add(&e, FAKE_ERROR_NOT_SUPPORTED, shown,
                                "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
                                "propagationPolicy");
        }
        cJSON_ArrayForEach (v, dry_run)
                if (!cJSON_IsString(v) || !streq(v->valuestring, "All")) {
                        _cleanup_free_ char *shown = fj_print(dry_run);

                        fake_errors_add(&e, FAKE_ERROR_NOT_SUPPORTED, shown, "supported values: \"All\"",
                                        "dryRun");
                }
        return fake_errors_reply_as(&e, "DeleteOptions.meta.k8s.io", "", reply);
}

static char *copy_or_null(const char *s) {
        return s ? MUST(strdup(s)) : NULL;
}

bool fake_delete_options_parse(const cJSON *json, FakeDeleteOptions *ret, FakeReply *reply) {
        const cJSON *grace = fj_get(json, "gracePeriodSeconds", NULL);

        *ret = (FakeDeleteOptions){ 0 };
        if (grace && !cJSON_IsNumber(grace) && !cJSON_IsNull(grace))
                return fake_reply_failure(reply, 500, NULL,
                                          "json: cannot unmarshal string into Go struct field "
                                          "DeleteOptions.gracePeriodSeconds of type int64");
        if (!check_options(json, reply))
                return false;

        ret->uid = copy_or_null(fj_string(json, "preconditions", "uid", NULL));
        ret->rv = copy_or_null(fj_string(json, "preconditions", "resourceVersion", NULL));
        ret->propagation = copy_or_null(fj_string(json, "propagationPolicy", NULL));
        ret->has_grace = cJSON_IsNumber(grace);
        ret->grace_sec = fj_int(json, 0, "gracePeriodSeconds", NULL);
        ret->dry_run = cJSON_GetArraySize(fj_get(json, "dryRun", NULL)) > 0;
        return true;
}

/* The body if there is one, else the query: never both. */
static bool options_of(const FakeRequest *r, FakeDeleteOptions *ret, FakeReply *reply) {
        _cleanup_cjson_ cJSON *json = NULL;
        const char *grace = fake_request_query(r, "gracePeriodSeconds"), *v;

        if (r->x->body_size > 0)
                return fake_request_json(r, &json, reply) && fake_delete_options_parse(json, ret, reply);

        json = MUST(cJSON_CreateObject());
        if (grace)
                fj_set_int(json, "gracePeriodSeconds", atoll(grace));
        if ((v = fake_request_query(r, "propagationPolicy")))
                fj_set_string(json, "propagationPolicy", v);
        if ((v = fake_request_query(r, "dryRun")))
                cJSON_AddItemToArray(fj_array(json, "dryRun"), MUST(cJSON_CreateString(v)));
        return fake_delete_options_parse(json, ret, reply);
}

/* Named by the kind, as there. */
bool fake_check_preconditions(const FakeResource *resource, const cJSON *object, const FakeDeleteOptions *o,
                              FakeReply *reply) {
        const char *name = fj_string(object, "metadata", "name", NULL);
        const char *uid = strempty(fj_string(object, "metadata", "uid", NULL));
        const char *rv = strempty(fj_string(object, "metadata", "resourceVersion", NULL));
        _cleanup_free_ char *why = NULL, *message = NULL;
        cJSON *details;

        if (o->uid && !streq(o->uid, uid))
                why = MUST(strf("the UID in the precondition (%s) does not match the UID in record (%s). "
                                "The object might "
                                "have been deleted and then recreated",
                                o->uid, uid));
        else if (o->rv && !streq(o->rv, rv))
                why = MUST(strf("the ResourceVersion in the precondition (%s) does not match the "
                                "ResourceVersion in record "
                                "(%s). The object might have been modified",
                                o->rv, rv));
        if (!why)
                return true;

        message = MUST(strf("Operation cannot be fulfilled on %s \"%s\": %s",
                            fake_resource_qualified_kind(resource), name, why));
        fake_reply_failure(reply, 409, "Conflict", "%s", message);
        details = fake_reply_details(reply);
        fj_set_string(details, "name", name);
        if (!isempty(resource->group))
                fj_set_string(details, "group", resource->group);
        fj_set_string(details, "kind", resource->kind);
        return false;
}

/* -- grace --------------------------------------------------------------------------------------------- */

static void set_deletion(cJSON *meta, usec_t at_wall_usec, int64_t grace_sec) {
        char text[RFC3339_MAX];

        rfc3339_format(at_wall_usec, text);
        fj_set_string(meta, "deletionTimestamp", text);
        fj_set_int(meta, "deletionGracePeriodSeconds", grace_sec);
}

static Mode shorten(FakeApi *a, cJSON *meta, FakeDeleteOptions *o) {
        int64_t was = fj_int(meta, 0, "deletionGracePeriodSeconds", NULL), period = o->grace_sec;
        usec_t now = loop_wall(a->loop), at = 0;
        int r;

        if (was == 0)
                return MODE_NOW;
        if (!o->has_grace || period >= was)
                return MODE_PENDING;

        r = rfc3339_parse(strempty(fj_string(meta, "deletionTimestamp", NULL)), &at);
        assert(r >= 0);
        at = usec_add(usec_sub(at, (usec_t) was * USEC_PER_SEC), (usec_t) period * USEC_PER_SEC);
        if (at < now) {
                at = now;
                if (period != 0)
                        period = 1;
        }
        set_deletion(meta, at, period);
        return MODE_GRACEFUL;
}

/* pkg/registry/core/pod CheckGracefulDelete() */
static int64_t pod_grace(const cJSON *pod, const FakeDeleteOptions *o) {
        const char *phase = strempty(fj_string(pod, "status", "phase", NULL));
        int64_t grace =
                o->has_grace ? o->grace_sec : fj_int(pod, 0, "spec", "terminationGracePeriodSeconds", NULL);

        if (isempty(fj_string(pod, "spec", "nodeName", NULL)) || streq(phase, "Failed") ||
            streq(phase, "Succeeded"))
                return 0;
        return grace < 0 ? 1 : grace;
}

static void bump_generation(cJSON *meta) {
        int64_t generation = fj_int(meta, 0, "generation", NULL);

        if (generation > 0)
                fj_set_int(meta, "generation", generation + 1);
}

static Mode before_delete(FakeApi *a, const FakeResource *resource, cJSON *object, FakeDeleteOptions *o) {
        cJSON *meta = fj_object(object, "metadata");

        if (o->has_grace && o->grace_sec < 0)
                o->grace_sec = 1;
        if (resource->id != FAKE_PODS)
                return MODE_NOW;
        if (fj_member(meta, "deletionTimestamp"))
                return shorten(a, meta, o);

        o->grace_sec = pod_grace(object, o);
        o->has_grace = true;
        set_deletion(meta, usec_add(loop_wall(a->loop), (usec_t) o->grace_sec * USEC_PER_SEC), o->grace_sec);
        bump_generation(meta);
        return MODE_GRACEFUL;
}

/* -- finalizers ---------------------------------------------------------------------------------------- */

static void set_finalizer(cJSON *meta, const char *name, bool wanted) {
        cJSON *f = fj_member(meta, "finalizers"), *e, *next;

        if (wanted && !fj_array_has(f, name))
                cJSON_AddItemToArray(fj_array(meta, "finalizers"), MUST(cJSON_CreateString(name)));
        if (wanted || !f)
                return;
        for (e = f->child; e; e = next) {
                next = e->next;
                if (streq(e->valuestring, name))
                        cJSON_Delete(cJSON_DetachItemViaPointer(f, e));
        }
        if (!f->child)
                fj_remove(meta, "finalizers");
}

/* What the garbage collector is left to do. */
static void set_propagation(cJSON *object, const FakeDeleteOptions *o) {
        cJSON *meta = fj_object(object, "metadata");

        if (!o->propagation)
                return;
        set_finalizer(meta, "orphan", streq(o->propagation, "Orphan"));
        set_finalizer(meta, "foregroundDeletion", streq(o->propagation, "Foreground"));
}

static void mark_as_deleting(FakeApi *a, cJSON *object) {
        cJSON *meta = fj_object(object, "metadata");

        if (!fj_member(meta, "deletionTimestamp")) {
                bump_generation(meta);
                set_deletion(meta, loop_wall(a->loop), 0);
        }
        fj_set_int(meta, "deletionGracePeriodSeconds", 0);
}

/* -- delete -------------------------------------------------------------------------------------------- */

static void reply_gone(const FakeResource *resource, FakeVersion *v, FakeReply *reply) {
        cJSON *details;

        if (resource->delete_returns_object) {
                fake_reply_text(reply, 200, fake_version_print(resource, v));
                return;
        }
        details = MUST(cJSON_CreateObject());
        fj_set_string(details, "name", fj_string(v->json, "metadata", "name", NULL));
        if (!isempty(resource->group))
                fj_set_string(details, "group", resource->group);
        fj_set_string(details, "kind", resource->plural);
        fj_set_copy(details, "uid", fj_get(v->json, "metadata", "uid", NULL));
        fake_reply_success(reply, 200, details);
}

/* registry/core/namespace: first Terminating, gone when its own finalizers are. True: answered. */
static bool delete_namespace(FakeApi *a, FakeVersion *old, const FakeDeleteOptions *o, FakeReply *reply) {
        const FakeResource *resource = fake_resource(FAKE_NAMESPACES);
        cJSON *object;

        if (fj_get(old->json, "metadata", "deletionTimestamp", NULL)) {
                if (cJSON_GetArraySize(fj_get(old->json, "spec", "finalizers", NULL)) == 0)
                        return false;
                return fake_reply_text(reply, 200, fake_version_print(resource, old));
        }
        object = fj_copy(old->json);
        set_deletion(fj_object(object, "metadata"), loop_wall(a->loop), 0);
        fj_set_string(fj_object(object, "status"), "phase", "Terminating");
        if (o->dry_run) {
                fake_reply_text(reply, 200, fake_object_print(resource, object));
                cJSON_Delete(object);
                return true;
        }
        return fake_reply_text(
                reply, 200,
                fake_version_print(resource, fake_store_update(a->store, FAKE_NAMESPACES, object)));
}

static void remove_now(FakeApi *a, const FakeResource *resource, const char *ns, const char *name,
                       FakeReply *reply) {
        FakeVersion *last = fake_version_ref(fake_store_version(a->store, resource->id, ns, name));

        fake_store_delete(a->store, resource->id, ns, name);
        reply_gone(resource, last, reply);
        fake_version_unref(last);
}

/* Writes what before_delete() and the finalizers made of the object, and removes it if nothing holds it. */
static void carry_out(FakeApi *a, const FakeResource *resource, cJSON *object, Mode mode,
                      const FakeDeleteOptions *o, FakeReply *reply) {
        _cleanup_free_ char *ns = copy_or_null(fj_string(object, "metadata", "namespace", NULL));
        _cleanup_free_ char *name = MUST(copy_or_null(fj_string(object, "metadata", "name", NULL)));
        bool held = cJSON_GetArraySize(fj_get(object, "metadata", "finalizers", NULL)) > 0;
        FakeVersion *v;

        if (mode == MODE_NOW && held)
                mark_as_deleting(a, object);
        if (o->dry_run) {
                fake_reply_text(reply, 200, fake_object_print(resource, object));
                cJSON_Delete(object);
                return;
        }
        if (mode == MODE_NOW && !held) {
                cJSON_Delete(object);
                remove_now(a, resource, ns, name, reply);
                return;
        }
        v = fake_store_update(a->store, resource->id, object);
        if (held || (mode == MODE_GRACEFUL && o->grace_sec > 0))
                fake_reply_text(reply, 200, fake_version_print(resource, v));
        else
                remove_now(a, resource, ns, name, reply);
}

bool fake_write_delete(FakeApi *a, const FakeRequest *r, const char *ns, const char *name,
                       FakeDeleteOptions *o, bool admit, FakeReply *reply) {
        const FakeResource *resource = r->resource;
        FakeVersion *old = fake_store_version(a->store, resource->id, ns, name);
        cJSON *object;
        Mode mode;

        if (!old)
                return fake_reply_not_found(reply, resource, name);
        if (!fake_check_preconditions(resource, old->json, o, reply))
                return false;
        if (admit && !fake_admit(a->store, r, NULL, old->json, reply))
                return false;
        if (resource->id == FAKE_NAMESPACES) {
                bool going = fj_get(old->json, "metadata", "deletionTimestamp", NULL);

                if (!going && admit && !fake_validate(a, r, NULL, old->json, o->dry_run, reply))
                        return false;
                if (delete_namespace(a, old, o, reply))
                        return true;
        }

        object = fj_copy(old->json);
        mode = before_delete(a, resource, object, o);
        if (mode == MODE_PENDING) {
                cJSON_Delete(object);
                reply_gone(resource, old, reply);
                return true;
        }
        if (admit && !fake_validate(a, r, NULL, old->json, o->dry_run, reply)) {
                cJSON_Delete(object);
                return false;
        }
        set_propagation(object, o);
        carry_out(a, resource, object, mode, o, reply);
        return true;
}

void fake_handle_delete(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        FakeDeleteOptions o = { 0 };

        if (options_of(r, &o, reply))
                (void) fake_write_delete(a, r, r->ns, r->name, &o, true, reply);
        fake_delete_options_done(&o);
}

/* Every object that the selectors pick, one after the other; what a delete refuses ends it. */
void fake_handle_delete_collection(FakeApi *a, const FakeRequest *r, FakeReply *reply) {
        FakeSelector labels = { 0 }, fields = { 0 };
        FakeDeleteOptions o = { 0 };
        FakeVersion **all = NULL;
        size_t n = 0;

        if (!fake_selectors_of(r, &labels, &fields, reply))
                return;
        if (options_of(r, &o, reply)) {
                all = fake_store_snapshot(a->store, r->resource->id, fake_store_rv(a->store), &n);
                fake_reply_success(reply, 200, NULL);
        }
        for (size_t i = 0; i < n && reply->code < 300; i++) {
                const cJSON *json = all[i]->json;
                const char *ns = fj_string(json, "metadata", "namespace", NULL);
                FakeDeleteOptions each = o;
                FakeReply one = { 0 };

                if ((r->ns && !streq_ptr(ns, r->ns)) || !fake_field_selector_matches(&fields, json) ||
                    !fake_label_selector_matches(&labels, fj_get(json, "metadata", "labels", NULL)))
                        continue;
                if (fake_write_delete(a, r, ns, fj_string(json, "metadata", "name", NULL), &each, true,
                                      &one) ||
                    one.code == 404)
                        fake_reply_done(&one);
                else {
                        fake_reply_done(reply);
                        *reply = one;
                        break;
                }
        }
        fake_versions_free(all, n);
        fake_delete_options_done(&o);
        fake_selector_done(&labels);
        fake_selector_done(&fields);
}
