/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-status.h"

#include <stdio.h>

#include "fake-protobuf.h"

void fake_reply_done(FakeReply *r) {
        cJSON_Delete(r->status);
        free(r->text);
        *r = (FakeReply){ 0 };
}

bool fake_reply_text(FakeReply *r, unsigned code, char *json) {
        fake_reply_done(r);
        r->code = code;
        r->text = MUST(json);
        r->size = strlen(json);
        return code < 300;
}

void fake_reply_protobuf(FakeReply *r, unsigned code, StrBuf *b) {
        size_t size = b->size;

        fake_reply_done(r);
        r->code = code;
        r->text = MUST(strbuf_steal(b));
        r->size = size;
        r->content_type = FAKE_PROTOBUF;
}

/* The order of keys is the server's. */
static void begin(FakeReply *r, unsigned code, const char *status, const char *message, const char *reason) {
        fake_reply_done(r);
        r->code = code;
        r->status = fj_parse("{'kind':'Status','apiVersion':'v1','metadata':{}}");
        fj_set_string(r->status, "status", status);
        if (message)
                fj_set_string(r->status, "message", message);
        if (reason)
                fj_set_string(r->status, "reason", reason);
}

static bool failure(FakeReply *r, unsigned code, const char *reason, const FakeResource *resource,
                    const char *name, const char *kind, const char *message) {
        cJSON *details;

        begin(r, code, "Failure", message, reason);
        if (resource) {
                details = fj_object(r->status, "details");
                if (!isempty(name))
                        fj_set_string(details, "name", name);
                if (!isempty(resource->group))
                        fj_set_string(details, "group", resource->group);
                fj_set_string(details, "kind", kind);
        }
        fj_set_int(r->status, "code", code);
        return false;
}

static char *format(const char *fmt, va_list ap) _printf_(1, 0);

static char *format(const char *fmt, va_list ap) {
        char *s = NULL;
        int r = vasprintf(&s, fmt, ap);

        assert(r >= 0);
        return s;
}

bool fake_reply_failure(FakeReply *r, unsigned code, const char *reason, const char *fmt, ...) {
        _cleanup_free_ char *message = NULL;
        va_list ap;

        va_start(ap, fmt);
        message = format(fmt, ap);
        va_end(ap);
        return failure(r, code, reason, NULL, NULL, NULL, message);
}

bool fake_reply_not_found(FakeReply *r, const FakeResource *resource, const char *name) {
        _cleanup_free_ char *message =
                MUST(strf("%s \"%s\" not found", fake_resource_qualified(resource), name));

        return failure(r, 404, "NotFound", resource, name, resource->plural, message);
}

bool fake_reply_exists(FakeReply *r, const FakeResource *resource, const char *name) {
        _cleanup_free_ char *message =
                MUST(strf("%s \"%s\" already exists", fake_resource_qualified(resource), name));

        return failure(r, 409, "AlreadyExists", resource, name, resource->plural, message);
}

bool fake_reply_conflict(FakeReply *r, const FakeResource *resource, const char *name, const char *fmt,
                         ...) {
        _cleanup_free_ char *why = NULL, *message = NULL;
        va_list ap;

        va_start(ap, fmt);
        why = format(fmt, ap);
        va_end(ap);
        message = MUST(strf("Operation cannot be fulfilled on %s \"%s\": %s",
                            fake_resource_qualified(resource), name, why));
        return failure(r, 409, "Conflict", resource, name, resource->plural, message);
}

bool fake_reply_stale(FakeReply *r, const FakeResource *resource, const char *name) {
        return fake_reply_conflict(r, resource, name,
                                   "the object has been modified; please apply your changes to the "
                                   "latest version and try again");
}

bool fake_reply_forbidden(FakeReply *r, const FakeResource *resource, const char *name, const char *fmt,
                          ...) {
        _cleanup_free_ char *why = NULL, *message = NULL;
        va_list ap;

        va_start(ap, fmt);
        why = format(fmt, ap);
        va_end(ap);
        if (isempty(name))
                message = MUST(strf("%s is forbidden: %s", fake_resource_qualified(resource), why));
        else
                message = MUST(
                        strf("%s \"%s\" is forbidden: %s", fake_resource_qualified(resource), name, why));
        return failure(r, 403, "Forbidden", resource, name, resource->plural, message);
}

bool fake_reply_bad_request(FakeReply *r, const char *fmt, ...) {
        _cleanup_free_ char *message = NULL;
        va_list ap;

        va_start(ap, fmt);
        message = format(fmt, ap);
        va_end(ap);
        return failure(r, 400, "BadRequest", NULL, NULL, NULL, message);
}

bool fake_reply_expired(FakeReply *r, const char *fmt, ...) {
        _cleanup_free_ char *message = NULL;
        va_list ap;

        va_start(ap, fmt);
        message = format(fmt, ap);
        va_end(ap);
        return failure(r, 410, "Expired", NULL, NULL, NULL, message);
}

void fake_reply_success(FakeReply *r, unsigned code, cJSON *details) {
        begin(r, code, "Success", NULL, NULL);
        if (details)
                fj_set(r->status, "details", details);
}

/* Before "code", which stands last. */
cJSON *fake_reply_details(FakeReply *r) {
        cJSON *details = fj_member(r->status, "details"), *code;

        if (details)
                return details;
        code = cJSON_DetachItemFromObjectCaseSensitive(r->status, "code");
        details = fj_object(r->status, "details");
        if (code)
                fj_set(r->status, "code", code);
        return details;
}

void fake_reply_add_cause(FakeReply *r, const char *reason, const char *message, const char *field) {
        cJSON *cause = MUST(cJSON_CreateObject()), *causes = fj_array(fake_reply_details(r), "causes");

        if (reason)
                fj_set_string(cause, "reason", reason);
        fj_set_string(cause, "message", message);
        if (field)
                fj_set_string(cause, "field", field);
        cJSON_AddItemToArray(causes, cause);
}

void fake_reply_set_retry_after(FakeReply *r, unsigned seconds) {
        if (r->status)
                fj_set_int(fake_reply_details(r), "retryAfterSeconds", seconds);
        r->retry_after_sec = seconds;
}

/* -- field errors -------------------------------------------------------------------------------------- */

static const struct {
        const char *reason, *body;
        bool shows_value;
} error_types[] = {
        [FAKE_ERROR_REQUIRED] = { "FieldValueRequired", "Required value", false },
        [FAKE_ERROR_INVALID] = { "FieldValueInvalid", "Invalid value", true },
        [FAKE_ERROR_FORBIDDEN] = { "FieldValueForbidden", "Forbidden", false },
        [FAKE_ERROR_NOT_SUPPORTED] = { "FieldValueNotSupported", "Unsupported value", true },
        [FAKE_ERROR_DUPLICATE] = { "FieldValueDuplicate", "Duplicate value", true },
        [FAKE_ERROR_TOO_LONG] = { "FieldValueTooLong", "Too long", false },
};

void fake_errors_done(FakeErrors *e) {
        cJSON_Delete(e->causes);
        e->causes = NULL;
}

void fake_errors_add(FakeErrors *e, FakeErrorType type, const char *value, const char *detail,
                     const char *field_fmt, ...) {
        _cleanup_free_ char *field = NULL, *message = NULL;
        cJSON *cause, *other;
        va_list ap;

        va_start(ap, field_fmt);
        field = format(field_fmt, ap);
        va_end(ap);
        message = MUST(strf("%s%s%s%s%s", error_types[type].body, error_types[type].shows_value ? ": " : "",
                            error_types[type].shows_value ? strempty(value) : "",
                            isempty(detail) ? "" : ": ", strempty(detail)));

        if (!e->causes)
                e->causes = MUST(cJSON_CreateArray());
        cause = MUST(cJSON_CreateObject());
        fj_set_string(cause, "reason", error_types[type].reason);
        fj_set_string(cause, "message", message);
        fj_set_string(cause, "field", field);
        cJSON_ArrayForEach (other, e->causes)
                if (fj_equal(other, cause)) {
                        cJSON_Delete(cause);
                        return;
                }
        cJSON_AddItemToArray(e->causes, cause);
}

bool fake_errors_reply_as(FakeErrors *e, const char *qualified_kind, const char *name, FakeReply *r) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        _cleanup_free_ char *kind = MUST(strdup(qualified_kind));
        int n = cJSON_GetArraySize(e->causes);
        const cJSON *c;
        cJSON *details;
        char *dot;

        if (n == 0)
                return true;

        strbuf_addf(&b, "%s \"%s\" is invalid: %s", qualified_kind, name, n > 1 ? "[" : "");
        cJSON_ArrayForEach (c, e->causes)
                strbuf_addf(&b, "%s: %s%s", fj_string(c, "field", NULL), fj_string(c, "message", NULL),
                            c->next ? ", " : "");
        if (n > 1)
                strbuf_add_char(&b, ']');
        failure(r, 422, "Invalid", NULL, NULL, NULL, strbuf_str(&b));

        dot = strchr(kind, '.');
        if (dot)
                *dot = 0;
        details = fake_reply_details(r);
        if (!isempty(name))
                fj_set_string(details, "name", name);
        if (dot)
                fj_set_string(details, "group", dot + 1);
        fj_set_string(details, "kind", kind);
        fj_set(details, "causes", TAKE_PTR(e->causes));
        return false;
}

bool fake_errors_reply(FakeErrors *e, const FakeResource *resource, const char *name, FakeReply *r) {
        return fake_errors_reply_as(e, fake_resource_qualified_kind(resource), name, r);
}
