/* SPDX-License-Identifier: Apache-2.0 */
#include "admission-review.h"

#include "marks.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"

#define REVIEW_API_VERSION "admission.k8s.io/v1"
#define REVIEW_KIND "AdmissionReview"

/* -- what is asked -------------------------------------------------------------------------------------- */

/* -EBADMSG with the sentence in *reterr_message, or -ENOMEM. */
static int review_unreadable(char **reterr_message, const char *fmt, ...) _printf_(2, 3);

static int review_unreadable(char **reterr_message, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf s = { 0 };
        va_list ap;

        strbuf_add(&s, "The AdmissionReview cannot be read: ");
        va_start(ap, fmt);
        strbuf_addv(&s, fmt, ap);
        va_end(ap);
        strbuf_add_char(&s, '.');
        *reterr_message = strbuf_steal(&s);
        return *reterr_message ? -EBADMSG : -ENOMEM;
}

/* *ret becomes "" where the value is absent or null. path: for the sentence. */
static int review_string(const Json *v, const char *path, char **ret, char **reterr_message) {
        const char *s = "";
        int r;

        r = json_string(v, &s);
        if (r < 0 && r != -ENODATA)
                return review_unreadable(reterr_message, "%s is no string", path);
        if (strlen(s) > ADMISSION_STRING_BYTES_MAX)
                return review_unreadable(reterr_message, "%s is longer than %u bytes", path,
                                         ADMISSION_STRING_BYTES_MAX);
        return free_and_strdup(ret, s);
}

static int review_section(const Json *v, const char *path, char **reterr_message) {
        return json_is_object(v)
                       ? 0
                       : review_unreadable(reterr_message, "%s is %s", path, v ? "no object" : "missing");
}

static int review_user(const Json *user, AdmissionReview *ret, char **reterr_message) {
        const Json *groups = json_get(user, "groups");
        size_t n = 0;
        int r;

        if (user && !json_is_object(user) && !json_is_null(user))
                return review_unreadable(reterr_message, "request.userInfo is no object");
        r = review_string(json_get(user, "username"), "request.userInfo.username", &ret->username,
                          reterr_message);
        if (r < 0)
                return r;
        if (groups && !json_is_array(groups) && !json_is_null(groups))
                return review_unreadable(reterr_message, "request.userInfo.groups is no array");
        if (json_size(groups) > ADMISSION_GROUPS_MAX)
                return review_unreadable(reterr_message, "request.userInfo.groups has more than %u entries",
                                         ADMISSION_GROUPS_MAX);
        if (json_size(groups) == 0)
                return 0;

        ret->groups = new0(char *, json_size(groups) + 1);
        if (!ret->groups)
                return -ENOMEM;
        JSON_FOREACH (g, groups) {
                r = review_string(g, "request.userInfo.groups", ret->groups + n++, reterr_message);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int review_subject(const Json *request, AdmissionReview *ret, char **reterr_message) {
        const Json *resource = json_get(request, "resource");
        int r;

        r = review_string(json_get(request, "operation"), "request.operation", &ret->operation,
                          reterr_message);
        if (r >= 0)
                r = review_section(resource, "request.resource", reterr_message);
        if (r >= 0)
                r = review_string(json_get(resource, "group"), "request.resource.group", &ret->group,
                                  reterr_message);
        if (r >= 0)
                r = review_string(json_get(resource, "resource"), "request.resource.resource",
                                  &ret->resource, reterr_message);
        if (r >= 0)
                r = review_string(json_get(request, "subResource"), "request.subResource", &ret->subresource,
                                  reterr_message);
        if (r < 0)
                return r;

        ret->subject = ADMISSION_OTHER;
        if (!streq(ret->operation, "DELETE") || !isempty(ret->subresource))
                return 0;
        if (streq(ret->group, kube_node_kind.group) && streq(ret->resource, kube_node_kind.plural))
                ret->subject = ADMISSION_NODE_DELETE;
        else if (streq(ret->group, kube_node_claim_kind.group) &&
                 streq(ret->resource, kube_node_claim_kind.plural))
                ret->subject = ADMISSION_CLAIM_DELETE;
        return 0;
}

/* An object of which some field cannot be read (KubeObject.invalid) is one all the same. */
static int review_object(const Json *old, InternPool *pool, AdmissionReview *ret, char **reterr_message) {
        const KubeKind *kind = NULL;
        int r;

        switch (ret->subject) {
        case ADMISSION_OTHER:
                return 0;
        case ADMISSION_NODE_DELETE:
                kind = &kube_node_kind;
                break;
        case ADMISSION_CLAIM_DELETE:
                kind = &kube_node_claim_kind;
                break;
        case _ADMISSION_SUBJECT_MAX:
                break;
        }
        assert(kind);

        r = review_section(old, "request.oldObject", reterr_message);
        if (r < 0)
                return r;
        r = kube_object_decode(kind, old, pool, &ret->object);
        if (r == -EINVAL)
                return review_unreadable(reterr_message, "request.oldObject is no %s of %s%s%s with a name",
                                         kind->kind, kind->group, kind->group[0] ? "/" : "", kind->version);
        if (r < 0)
                return r;
        if (isempty(ret->object->meta.uid))
                return review_unreadable(reterr_message, "request.oldObject.metadata.uid is missing");
        if (strlen(ret->object->meta.uid) > NODE_CHARGE_UID_BYTES_MAX)
                return review_unreadable(reterr_message,
                                         "request.oldObject.metadata.uid is longer than %u bytes",
                                         NODE_CHARGE_UID_BYTES_MAX);
        if (strlen(ret->object->meta.name) > NODE_CHARGE_NAME_BYTES_MAX)
                return review_unreadable(reterr_message,
                                         "request.oldObject.metadata.name is longer than %u bytes",
                                         NODE_CHARGE_NAME_BYTES_MAX);
        return 0;
}

static int review_request(const Json *request, InternPool *pool, AdmissionReview *ret,
                          char **reterr_message) {
        int r;

        r = review_section(request, "request", reterr_message);
        if (r >= 0)
                r = review_string(json_get(request, "uid"), "request.uid", &ret->uid, reterr_message);
        if (r < 0)
                return r;
        if (isempty(ret->uid))
                return review_unreadable(reterr_message, "request.uid is missing");
        r = json_bool(json_get(request, "dryRun"), &ret->dry_run);
        if (r < 0 && r != -ENODATA)
                return review_unreadable(reterr_message, "request.dryRun is neither true nor false");
        r = review_subject(request, ret, reterr_message);
        if (r >= 0)
                r = review_user(json_get(request, "userInfo"), ret, reterr_message);
        return r < 0 ? r : review_object(json_get(request, "oldObject"), pool, ret, reterr_message);
}

static int review_document(const char *body, size_t size, InternPool *pool, AdmissionReview *ret,
                           char **reterr_message) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *version, *kind;
        JsonError error = { 0 };
        const Json *root;
        int r;

        r = json_parse_without(body, size, ADMISSION_BODY_BYTES_MAX, NULL, &doc, &error);
        if (r == -E2BIG) {
                r = review_unreadable(reterr_message, "it is larger than %u bytes",
                                      ADMISSION_BODY_BYTES_MAX);
                return r == -EBADMSG ? -E2BIG : r;
        }
        if (r == -EBADMSG)
                return review_unreadable(reterr_message, "%s, at byte %zu", strempty(error.message),
                                         error.offset);
        if (r < 0)
                return r;

        root = json_root(doc);
        version = json_string_or_null(json_get(root, "apiVersion"));
        kind = json_string_or_null(json_get(root, "kind"));
        if (!streq_ptr(version, REVIEW_API_VERSION) || !streq_ptr(kind, REVIEW_KIND))
                return review_unreadable(reterr_message, "it is no " REVIEW_KIND " of " REVIEW_API_VERSION);
        return review_request(json_get(root, "request"), pool, ret, reterr_message);
}

int admission_review_parse(const char *body, size_t size, InternPool *pool, AdmissionReview *ret,
                           char **reterr_message) {
        int r;

        assert(body && pool && ret && reterr_message);
        *ret = (AdmissionReview) { 0 };
        *reterr_message = NULL;
        r = review_document(body, size, pool, ret, reterr_message);
        if (r < 0)
                admission_review_done(ret);
        return r;
}

void admission_review_done(AdmissionReview *r) {
        if (!r)
                return;
        free(r->uid);
        free(r->operation);
        free(r->group);
        free(r->resource);
        free(r->subresource);
        free(r->username);
        strv_free(r->groups);
        kube_object_unref(r->object);
        *r = (AdmissionReview) { 0 };
}

bool admission_may_be_newer(const char *version, const char *seen_version) {
        uint64_t v, seen;

        return parse_uint64(strempty(version), &v) < 0 || parse_uint64(strempty(seen_version), &seen) < 0 ||
               v > seen;
}

/* -- what is answered ----------------------------------------------------------------------------------- */

static void answer_open(JsonWriter *w, const char *uid, bool allowed) {
        json_open_object(w, NULL);
        json_add_string(w, "apiVersion", REVIEW_API_VERSION);
        json_add_string(w, "kind", REVIEW_KIND);
        json_open_object(w, "response");
        json_add_string(w, "uid", uid);
        json_add_bool(w, "allowed", allowed);
}

static char *answer_close(JsonWriter *w) {
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* A text for one line: the API server drops a warning with a control character in it. */
static int answer_add_line(JsonWriter *w, const char *key, const char *text, size_t max_bytes) {
        _cleanup_free_ char *line = str_sanitize(text, max_bytes);

        if (!line)
                return -ENOMEM;
        json_add_string(w, key, line);
        return 0;
}

char *admission_allow(const char *uid, const char *const *warnings, size_t n_warnings) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(uid && n_warnings <= ADMISSION_WARNINGS_MAX);
        if (json_writer_new(&w) < 0)
                return NULL;
        answer_open(w, uid, true);
        if (n_warnings > 0) {
                json_open_array(w, "warnings");
                for (size_t i = 0; i < n_warnings; i++)
                        if (answer_add_line(w, NULL, warnings[i], ADMISSION_WARNING_BYTES_MAX) < 0)
                                return NULL;
                json_close_array(w);
        }
        return answer_close(w);
}

static char *refuse(const char *uid, int64_t code, const char *reason, const char *message) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(uid && message);
        if (json_writer_new(&w) < 0)
                return NULL;
        answer_open(w, uid, false);
        json_open_object(w, "status");
        json_add_string(w, "status", "Failure");
        json_add_int64(w, "code", code);
        json_add_string(w, "reason", reason);
        if (answer_add_line(w, "message", message, ADMISSION_MESSAGE_BYTES_MAX) < 0)
                return NULL;
        json_close_object(w);
        return answer_close(w);
}

char *admission_refuse(const char *uid, const char *message) {
        return refuse(uid, 429, "TooManyRequests", message);
}

char *admission_unavailable(const char *uid, const char *message) {
        return refuse(uid, 503, "ServiceUnavailable", message);
}
