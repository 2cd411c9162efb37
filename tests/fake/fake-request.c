/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-request.h"

#include <stdlib.h>

#include "strv.h"

static const char *const verbs[_FAKE_VERB_MAX] = {
        [FAKE_GET] = "get",       [FAKE_LIST] = "list",
        [FAKE_WATCH] = "watch",   [FAKE_CREATE] = "create",
        [FAKE_UPDATE] = "update", [FAKE_PATCH] = "patch",
        [FAKE_DELETE] = "delete", [FAKE_DELETECOLLECTION] = "deletecollection",
};

const char *fake_verb_to_string(FakeVerb v) {
        return v >= 0 && v < _FAKE_VERB_MAX ? verbs[v] : NULL;
}

static char *decode_part(const char *s) {
        return fake_url_decode(s, strlen(s), false);
}

/* parts: behind the version. */
static void parse_parts(FakeRequest *r, char **parts) {
        size_t n = strv_length(parts);

        if (n == 0)
                return;
        if (streq(parts[0], "namespaces") && n > 1) {
                r->ns = decode_part(parts[1]);
                if (n > 2 && !streq(parts[2], "status") && !streq(parts[2], "finalize")) {
                        parts += 2;
                        n -= 2;
                }
        }
        r->plural = decode_part(parts[0]);
        if (n > 1)
                r->name = decode_part(parts[1]);
        if (n > 2)
                r->subresource = decode_part(parts[2]);
        r->is_resource = true;
}

static void parse_path(FakeRequest *r, const char *path) {
        _cleanup_strv_free_ char **parts = NULL;
        size_t n;
        int k = strv_split(path, "/", &parts);

        assert(k >= 0);
        n = strv_length(parts);
        if (n >= 3 && streq(parts[0], "api")) {
                r->group = MUST(strdup(""));
                r->version = decode_part(parts[1]);
                parse_parts(r, parts + 2);
        } else if (n >= 4 && streq(parts[0], "apis")) {
                r->group = decode_part(parts[1]);
                r->version = decode_part(parts[2]);
                parse_parts(r, parts + 3);
        }
        if (r->is_resource)
                r->resource = fake_resource_find(r->group, r->version, r->plural);
}

static FakeVerb verb_of(const FakeRequest *r, HttpMethod method) {
        switch (method) {
        case HTTP_GET:
        case HTTP_HEAD:
                if (r->name)
                        return FAKE_GET;
                return fake_request_flag(r, "watch") ? FAKE_WATCH : FAKE_LIST;
        case HTTP_POST:
                return FAKE_CREATE;
        case HTTP_PUT:
                return FAKE_UPDATE;
        case HTTP_PATCH:
                return FAKE_PATCH;
        case HTTP_DELETE:
                return r->name ? FAKE_DELETE : FAKE_DELETECOLLECTION;
        case _HTTP_METHOD_MAX:
        case _HTTP_METHOD_INVALID:
                break;
        }
        return _FAKE_VERB_INVALID;
}

static const char *method_word(HttpMethod method) {
        static const char *const words[_HTTP_METHOD_MAX] = {
                "get", "head", "post", "put", "patch", "delete"
        };

        return method >= 0 && method < _HTTP_METHOD_MAX ? words[method] : "";
}

void fake_request_init(FakeRequest *r, const HttpExchange *x) {
        const char *selector;

        *r = (FakeRequest){ .x = x, .method = method_word(x->method) };
        fake_query_init(&r->query, x->query);
        parse_path(r, x->path);
        r->verb = verb_of(r, x->method);
        r->dry_run = streq_ptr(fake_request_query(r, "dryRun"), "All");

        selector = fake_request_query(r, "fieldSelector");
        if (r->resource && selector && (r->verb == FAKE_LIST || r->verb == FAKE_WATCH)) {
                _cleanup_free_ char *error = NULL;
                FakeSelector s = { 0 };

                if (fake_field_selector_parse(r->resource, selector, &s, &error))
                        free_and_strdup(&r->selected_name, fake_field_selector_exact(&s, "metadata.name"));
                fake_selector_done(&s);
        }
}

void fake_request_done(FakeRequest *r) {
        free(r->user.name);
        strv_free(r->user.groups);
        free(r->group);
        free(r->version);
        free(r->plural);
        free(r->subresource);
        free(r->ns);
        free(r->name);
        free(r->selected_name);
        fake_query_done(&r->query);
        *r = (FakeRequest){ 0 };
}

const char *fake_request_query(const FakeRequest *r, const char *key) {
        return fake_query_get(&r->query, key);
}

bool fake_request_flag(const FakeRequest *r, const char *key) {
        const char *v = fake_request_query(r, key);

        return v && !streq(v, "false") && !streq(v, "0");
}

const char *fake_request_authz_name(const FakeRequest *r) {
        return r->name ? r->name : strempty(r->selected_name);
}

bool fake_request_json(const FakeRequest *r, cJSON **ret, FakeReply *reply) {
        const char *kind = r->resource ? r->resource->kind : "object";
        _cleanup_cjson_ cJSON *json = NULL;
        const char *end = NULL;

        if (r->x->body_size > 0)
                json = cJSON_ParseWithLengthOpts(r->x->body, r->x->body_size, &end, false);
        if (json) {
                const char *limit = (const char *) r->x->body + r->x->body_size;

                while (end < limit && strchr(" \t\r\n", *end))
                        end++;
                if (end == limit && (cJSON_IsObject(json) || cJSON_IsArray(json))) {
                        *ret = TAKE_PTR(json);
                        return true;
                }
        }
        return fake_reply_bad_request(
                reply,
                "the object provided is unrecognized (must be of type %s): couldn't get "
                "version/kind; json parse error",
                kind);
}
