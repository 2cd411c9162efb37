/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-webhook.h"

#include "strv.h"

/* pkg/apis/admissionregistration/v1/defaults.go and .../validation/validation.go */

#define TIMEOUT_SEC_MAX 30

static void default_string(cJSON *o, const char *key, const char *value) {
        if (!fj_member(o, key))
                fj_set_string(o, key, value);
}

void fake_webhook_config_default(cJSON *config) {
        cJSON *w, *rule;

        cJSON_ArrayForEach (w, fj_get(config, "webhooks", NULL)) {
                if (!cJSON_IsObject(w))
                        continue;
                default_string(w, "failurePolicy", "Fail");
                default_string(w, "matchPolicy", "Equivalent");
                fj_object(w, "namespaceSelector");
                fj_object(w, "objectSelector");
                if (!fj_member(w, "timeoutSeconds"))
                        fj_set_int(w, "timeoutSeconds", 10);
                cJSON_ArrayForEach (rule, fj_get(w, "rules", NULL))
                        if (cJSON_IsObject(rule))
                                default_string(rule, "scope", "*");
                if (fj_get(w, "clientConfig", "service", NULL) &&
                    !fj_get(w, "clientConfig", "service", "port", NULL))
                        fj_set_int(fj_object(fj_object(w, "clientConfig"), "service"), "port", 443);
        }
}

/* -- validation ---------------------------------------------------------------------------------------- */

static void refuse(FakeErrors *e, FakeErrorType type, const char *value, const char *detail, const char *at,
                   const char *field) {
        _cleanup_free_ char *shown = value ? MUST(strf("\"%s\"", value)) : NULL;

        fake_errors_add(e, type, shown, detail, "%s.%s", at, field);
}

static void check_choice(FakeErrors *e, const cJSON *o, const char *key, const char *const choices[],
                         const char *at) {
        const char *value = fj_string(o, key, NULL);
        _cleanup_strbuf_ StrBuf b = { 0 };

        for (size_t i = 0; choices[i]; i++) {
                if (streq_ptr(value, choices[i]))
                        return;
                strbuf_addf(&b, "%s\"%s\"", i > 0 ? ", " : "supported values: ", choices[i]);
        }
        refuse(e, FAKE_ERROR_NOT_SUPPORTED, strempty(value), strbuf_str(&b), at, key);
}

static void check_name(FakeErrors *e, const cJSON *webhooks, const cJSON *w, const char *at) {
        const char *name = fj_string(w, "name", NULL);
        size_t dots = 0;

        if (isempty(name)) {
                refuse(e, FAKE_ERROR_REQUIRED, NULL, NULL, at, "name");
                return;
        }
        for (const char *p = name; *p; p++)
                dots += *p == '.';
        if (dots < 2 || !dns1123_subdomain_is_valid(name))
                refuse(e, FAKE_ERROR_INVALID, name,
                       "should be a domain with at least three segments separated by dots", at, "name");
        for (const cJSON *before = webhooks->child; before != w; before = before->next)
                if (streq_ptr(fj_string(before, "name", NULL), name))
                        refuse(e, FAKE_ERROR_DUPLICATE, name, NULL, at, "name");
}

static void check_client(FakeErrors *e, const cJSON *w, const char *at) {
        const char *url = fj_string(w, "clientConfig", "url", NULL);
        const cJSON *service = fj_get(w, "clientConfig", "service", NULL);

        if (!url == !service)
                refuse(e, FAKE_ERROR_REQUIRED, NULL, "exactly one of url or service is required", at,
                       "clientConfig");
        else if (url && !startswith(url, "https://"))
                refuse(e, FAKE_ERROR_INVALID, url,
                       "'https' is the only allowed URL scheme; desired format: https://host[/path]", at,
                       "clientConfig.url");
        else if (url && strpbrk(url, "?#"))
                refuse(e, FAKE_ERROR_INVALID, url,
                       "query parameters and fragments are not permitted; desired format: "
                       "https://host[/path]",
                       at, "clientConfig.url");
        else if (service && (isempty(fj_string(service, "name", NULL)) ||
                             isempty(fj_string(service, "namespace", NULL))))
                refuse(e, FAKE_ERROR_REQUIRED, NULL, "service name and namespace are required", at,
                       "clientConfig.service");
}

static void check_rule(FakeErrors *e, const cJSON *rule, const char *at) {
        static const char *const lists[] = { "operations", "apiGroups", "apiVersions", "resources" };
        static const char *const operations[] = { "*", "CONNECT", "CREATE", "DELETE", "UPDATE" };
        static const char *const scopes[] = { "*", "Cluster", "Namespaced", NULL };
        const cJSON *o;

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                if (cJSON_GetArraySize(fj_get(rule, lists[i], NULL)) == 0)
                        refuse(e, FAKE_ERROR_REQUIRED, NULL, NULL, at, lists[i]);
        cJSON_ArrayForEach (o, fj_get(rule, "operations", NULL)) {
                bool known = false;

                for (size_t i = 0; i < ELEMENTSOF(operations); i++)
                        known |= streq_ptr(o->valuestring, operations[i]);
                if (!known)
                        refuse(e, FAKE_ERROR_NOT_SUPPORTED, o->valuestring,
                               "supported values: \"*\", \"CONNECT\", \"CREATE\", \"DELETE\", \"UPDATE\"",
                               at, "operations[0]");
        }
        check_choice(e, rule, "scope", scopes, at);
}

static void check_versions(FakeErrors *e, const cJSON *w, const char *at) {
        const cJSON *versions = fj_get(w, "admissionReviewVersions", NULL);

        if (cJSON_GetArraySize(versions) == 0)
                refuse(e, FAKE_ERROR_REQUIRED, NULL, "must specify one of v1, v1beta1", at,
                       "admissionReviewVersions");
        else if (!fj_array_has(versions, "v1") && !fj_array_has(versions, "v1beta1"))
                refuse(e, FAKE_ERROR_INVALID, "...", "must include at least one of v1, v1beta1", at,
                       "admissionReviewVersions");
        else if (!fj_array_has(versions, "v1"))
                refuse(e, FAKE_ERROR_FORBIDDEN, NULL, "the fake speaks v1 only", at,
                       "admissionReviewVersions");
}

static void check_webhook(FakeErrors *e, const cJSON *webhooks, const cJSON *w, const char *at) {
        static const char *const effects[] = { "None", "NoneOnDryRun", NULL };
        static const char *const policies[] = { "Fail", "Ignore", NULL };
        static const char *const matches[] = { "Equivalent", "Exact", NULL };
        int64_t timeout_sec = fj_int(w, 0, "timeoutSeconds", NULL);
        const cJSON *rule;
        unsigned i = 0;

        check_name(e, webhooks, w, at);
        cJSON_ArrayForEach (rule, fj_get(w, "rules", NULL)) {
                _cleanup_free_ char *place = MUST(strf("%s.rules[%u]", at, i++));

                check_rule(e, rule, place);
        }
        check_choice(e, w, "failurePolicy", policies, at);
        check_choice(e, w, "matchPolicy", matches, at);
        if (!fj_member(w, "sideEffects"))
                refuse(e, FAKE_ERROR_REQUIRED, NULL, "must specify one of None, NoneOnDryRun", at,
                       "sideEffects");
        else
                check_choice(e, w, "sideEffects", effects, at);
        if (timeout_sec < 1 || timeout_sec > TIMEOUT_SEC_MAX)
                refuse(e, FAKE_ERROR_INVALID, "...", "the timeout value must be between 1 and 30 seconds",
                       at, "timeoutSeconds");
        check_client(e, w, at);
        check_versions(e, w, at);
        if (cJSON_GetArraySize(fj_get(w, "matchConditions", NULL)) > 0)
                refuse(e, FAKE_ERROR_FORBIDDEN, NULL, "the fake does not evaluate CEL", at,
                       "matchConditions");
}

void fake_webhook_config_validate(const cJSON *config, FakeErrors *e) {
        const cJSON *webhooks = fj_get(config, "webhooks", NULL), *w;
        unsigned i = 0;

        cJSON_ArrayForEach (w, webhooks) {
                _cleanup_free_ char *at = MUST(strf("webhooks[%u]", i++));

                check_webhook(e, webhooks, w, at);
        }
}
