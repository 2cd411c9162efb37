/* SPDX-License-Identifier: Apache-2.0 */
#include "api-error.h"

#include "kube-protobuf.h"
#include "string-util.h"

#define MESSAGE_BYTES_MAX 1024u
#define WORD_BYTES_MAX 256u
#define WEBHOOK_NAME_BYTES_MAX 253u
/* A Status is small; of anything larger only the HTTP status counts. */
#define STATUS_BYTES_MAX (1024u * 1024)

void api_error_done(ApiError *e) {
        if (!e)
                return;

        for (size_t i = 0; i < e->n_causes; i++) {
                free(e->causes[i].reason);
                free(e->causes[i].message);
                free(e->causes[i].field);
        }
        free(e->causes);
        free(e->reason);
        free(e->message);
        *e = (ApiError){ 0 };
}

/* A copy fit for people; NULL stays NULL. */
static int copy_text(const char *s, size_t max_bytes, char **ret) {
        if (!s)
                return 0;
        *ret = str_sanitize(s, max_bytes);
        return *ret ? 0 : -ENOMEM;
}

static int copy_member(const Json *o, const char *key, size_t max_bytes, char **ret) {
        return copy_text(json_string_or_null(json_get(o, key)), max_bytes, ret);
}

static int copy_causes(const Json *list, ApiError *e) {
        size_t n = json_is_array(list) ? MIN(json_size(list), (size_t) API_ERROR_CAUSES_MAX) : 0;
        const Json *v;
        int r;

        if (n == 0)
                return 0;
        e->causes = new0(ApiCause, n);
        if (!e->causes)
                return -ENOMEM;

        for (v = json_first(list); e->n_causes < n; v = json_next(v)) {
                ApiCause *c = e->causes + e->n_causes++;

                r = copy_member(v, "reason", WORD_BYTES_MAX, &c->reason);
                if (r >= 0)
                        r = copy_member(v, "message", MESSAGE_BYTES_MAX, &c->message);
                if (r >= 0)
                        r = copy_member(v, "field", WORD_BYTES_MAX, &c->field);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int fill_from_status(const Json *status, ApiError *e) {
        const Json *details = json_get(status, "details");
        int64_t seconds;
        int r;

        if (!streq_ptr(json_string_or_null(json_get(status, "kind")), "Status"))
                return 0;
        if (json_int64(json_get(details, "retryAfterSeconds"), &seconds) >= 0 && seconds > 0)
                e->retry_after_usec = MAX(e->retry_after_usec, (usec_t) MIN(seconds, INT32_MAX) * USEC_PER_SEC);

        r = copy_member(status, "reason", WORD_BYTES_MAX, &e->reason);
        if (r >= 0)
                r = copy_member(status, "message", MESSAGE_BYTES_MAX, &e->message);
        return r < 0 ? r : copy_causes(json_get(details, "causes"), e);
}

/* No Status: an API server's plain text, or something in between that answers in HTML. */
static int message_from_text(const char *body, ApiError *e) {
        _cleanup_free_ char *text = NULL;

        if (!isempty(body) && *body != '<' && *body != '{') {
                text = strndup(body, MESSAGE_BYTES_MAX);
                if (!text)
                        return -ENOMEM;
        }
        e->message = text && *strstrip(text) ? str_sanitize(strstrip(text), MESSAGE_BYTES_MAX)
                                             : strf("HTTP status %u without a message", e->http);
        return e->message ? 0 : -ENOMEM;
}

static int status_parse(const char *body, size_t size, JsonDoc **ret) {
        int r = kube_body_is_protobuf(body, size)
                        ? kube_protobuf_object(body, size, STATUS_BYTES_MAX, &kube_shape_status, ret, NULL)
                        : json_parse(body, size, STATUS_BYTES_MAX, ret, NULL);

        return r == -ENOMEM ? r : 0;
}

int api_error_from_body(unsigned http, const char *body, size_t size, usec_t retry_after_header_usec,
                        ApiError *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(api_error_done) ApiError e = { .http = http, .retry_after_usec = retry_after_header_usec };
        _cleanup_free_ char *text = NULL;
        int r;

        assert(ret);
        assert(body || size == 0);

        r = size > 0 ? status_parse(body, size, &doc) : 0;
        if (r < 0)
                return r;
        r = doc ? fill_from_status(json_root(doc), &e) : 0;
        if (r < 0)
                return r;
        e.retry_after_usec = MIN(e.retry_after_usec, API_RETRY_AFTER_MAX_USEC);

        if (isempty(e.message)) {
                e.message = mfree(e.message);
                if (kube_body_is_protobuf(body, size))
                        size = 0; /* no text for people */
                text = memdup_str(size > 0 ? body : "", MIN(size, (size_t) MESSAGE_BYTES_MAX));
                if (!text)
                        return -ENOMEM;
                r = message_from_text(text, &e);
                if (r < 0)
                        return r;
        }
        *ret = e;
        e = (ApiError){ 0 };
        return 0;
}

int api_error_from_transport(int error, const char *text, bool maybe_sent, ApiError *ret) {
        ApiError e = { .error = error, .maybe_sent = maybe_sent };

        assert(error < 0);
        assert(ret);
        e.message = isempty(text) ? strdup(strerrordesc_np(-error) ?: "the call failed")
                                  : str_sanitize(text, MESSAGE_BYTES_MAX);
        if (!e.message)
                return -ENOMEM;
        *ret = e;
        return 0;
}

/* `"NAME" REST`: the REST, with the name in *ret; NULL: no such name. */
static const char *read_quoted_name(const char *s, ApiWebhook *ret) {
        size_t n;

        if (!s || *s != '"')
                return NULL;
        n = strspn(s + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");
        if (n == 0 || n > WEBHOOK_NAME_BYTES_MAX || s[n + 1] != '"')
                return NULL;
        *ret = (ApiWebhook){ .name = s + 1, .name_size = n };
        return s + n + 2;
}

bool api_error_is_of_webhook(const ApiError *e, ApiWebhook *ret) {
        ApiWebhook hook = {};
        const char *denied, *failed;

        assert(e && ret);
        if (!e->message)
                return false;
        denied = read_quoted_name(startswith(e->message, "admission webhook "), &hook);
        if (denied && startswith(denied, " denied the request"))
                hook.words = startswith(denied, " denied the request: ") ?: denied + 1;
        else {
                failed = read_quoted_name(
                        startswith(e->message, "Internal error occurred: failed calling webhook "), &hook);
                hook.words = failed ? startswith(failed, ": ") : NULL;
        }
        if (isempty(hook.words))
                return false;
        *ret = hook;
        return true;
}

bool api_error_has_cause(const ApiError *e, const char *reason) {
        assert(reason);
        for (size_t i = 0; e && i < e->n_causes; i++)
                if (streq_ptr(e->causes[i].reason, reason))
                        return true;
        return false;
}

int api_error_to_errno(const ApiError *e) {
        assert(e);
        switch (e->http) {
        case 0:
                return e->error < 0 ? e->error : -EIO;
        case 404:
                return -ENOENT;
        case 409:
                return streq_ptr(e->reason, "AlreadyExists") ? -EEXIST : -EBUSY;
        case 401:
        case 403:
                return -EACCES;
        case 410:
                return -ESTALE;
        case 400:
        case 422:
                return -EINVAL;
        case 429:
        case 503:
                return -EAGAIN;
        default:
                return -EREMOTEIO;
        }
}
