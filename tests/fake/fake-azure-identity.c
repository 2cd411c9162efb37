/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-azure-identity.h"

#include <inttypes.h>

#include "list.h"
#include "strv.h"

#define SYSTEM "system-identity"
#define LIFE_USEC USEC_PER_HOUR
#define MARGIN_USEC (5 * USEC_PER_MINUTE)

typedef struct Token {
        ListNode tokens;
        char *text, *client_id, *resource;
        usec_t began_usec;
} Token;

struct FakeAzureIdentity {
        Loop *loop;
        char *vm_id;
        bool system;
        char **user;
        List tokens;
        uint64_t n_tokens;
};

FakeAzureIdentity *fake_azure_identity_new(Loop *loop, const char *vm_id, bool system,
                                           const char *const *user) {
        FakeAzureIdentity *i = MUST(new0(FakeAzureIdentity, 1));

        i->loop = loop;
        i->vm_id = MUST(strdup(vm_id));
        i->system = system;
        for (; user && *user; user++) {
                int r = strv_extend(&i->user, *user);

                assert(r >= 0);
        }
        return i;
}

FakeAzureIdentity *fake_azure_identity_free(FakeAzureIdentity *i) {
        if (!i)
                return NULL;
        LIST_FOREACH (t, &i->tokens, Token, tokens) {
                free(t->text);
                free(t->client_id);
                free(t->resource);
                free(t);
        }
        strv_free(i->user);
        free(i->vm_id);
        return mfree(i);
}

void fake_azure_identity_refuse(HttpExchange *x, const char *error, const char *description) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json; charset=utf-8" } };
        _cleanup_cjson_ cJSON *o = MUST(cJSON_CreateObject());
        _cleanup_free_ char *text = NULL;

        fj_set_string(o, "error", error);
        fj_set_string(o, "error_description", description);
        text = fj_print(o);
        x->ops->reply(x, 400, headers, ELEMENTSOF(headers), text, strlen(text));
}

static bool is_identity(const char *client_id, const FakeQuery *q) {
        const char *client = fake_query_get(q, "client_id"), *object = fake_query_get(q, "object_id");
        const char *resource = fake_query_get(q, "msi_res_id");
        _cleanup_free_ char *object_id = MUST(strf("object-of-%s", client_id));
        _cleanup_free_ char *resource_id = MUST(strf("/identities/%s", client_id));

        return streq_ptr(client, client_id) || streq_ptr(object, object_id) ||
               streq_ptr(resource, resource_id);
}

/* Whose token is asked for; NULL: *ret_why says why nobody's. */
static const char *choose(const FakeAzureIdentity *i, const FakeQuery *q, const char **ret_why) {
        unsigned n = !!fake_query_get(q, "client_id") + !!fake_query_get(q, "object_id") +
                     !!fake_query_get(q, "msi_res_id");

        if (n > 1) {
                *ret_why = "Only one of client_id, object_id and msi_res_id may be given";
                return NULL;
        }
        *ret_why = "Identity not found";
        if (n == 1) {
                STRV_FOREACH (id, i->user)
                        if (is_identity(*id, q))
                                return *id;
                return NULL;
        }
        if (i->system)
                return SYSTEM;
        if (strv_length(i->user) > 1)
                *ret_why = "Multiple user assigned identities exist, please specify the clientId / "
                           "resourceId of the "
                           "identity in the token request";
        return strv_length(i->user) == 1 ? i->user[0] : NULL;
}

static Token *token_for(FakeAzureIdentity *i, const char *client_id, const char *resource) {
        usec_t now = loop_now(i->loop);
        Token *made;

        LIST_FOREACH (t, &i->tokens, Token, tokens)
                if (streq(t->client_id, client_id) && streq(t->resource, resource) &&
                    now < usec_add(t->began_usec, LIFE_USEC - MARGIN_USEC))
                        return t;
        made = MUST(new0(Token, 1));
        made->text = MUST(strf("eyJ0eXAiOiJKV1QifQ.fake-%016" PRIx64 "-%" PRIu64,
                               hash64(i->vm_id, strlen(i->vm_id)), ++i->n_tokens));
        made->client_id = MUST(strdup(client_id));
        made->resource = MUST(strdup(resource));
        made->began_usec = now;
        list_append(&i->tokens, &made->tokens);
        return made;
}

static void set_number(cJSON *o, const char *key, uint64_t value) {
        _cleanup_free_ char *text = MUST(strf("%" PRIu64, value));

        fj_set_string(o, key, text);
}

void fake_azure_identity_give(FakeAzureIdentity *i, HttpExchange *x, const FakeQuery *q) {
        static const HttpHeader headers[] = { { "Content-Type", "application/json; charset=utf-8" } };
        const char *resource = fake_query_get(q, "resource"), *why, *client_id;
        _cleanup_cjson_ cJSON *o = NULL;
        _cleanup_free_ char *text = NULL;
        usec_t left, wall;
        const Token *t;

        if (isempty(resource)) {
                fake_azure_identity_refuse(x, "invalid_request",
                                           "Required audience parameter not specified");
                return;
        }
        if (!startswith(resource, "https://")) {
                _cleanup_free_ char *text_of_it = MUST(
                        strf("AADSTS500011: The resource principal named %s was not found in the tenant",
                             resource));

                fake_azure_identity_refuse(x, "invalid_resource", text_of_it);
                return;
        }
        client_id = choose(i, q, &why);
        if (!client_id) {
                fake_azure_identity_refuse(x, "invalid_request", why);
                return;
        }
        t = token_for(i, client_id, resource);
        left = usec_sub(usec_add(t->began_usec, LIFE_USEC), loop_now(i->loop)) / USEC_PER_SEC;
        wall = loop_wall(i->loop) / USEC_PER_SEC;
        o = MUST(cJSON_CreateObject());
        fj_set_string(o, "access_token", t->text);
        fj_set_string(o, "client_id", client_id);
        set_number(o, "expires_in", left);
        set_number(o, "expires_on", wall + left);
        set_number(o, "ext_expires_in", left);
        set_number(o, "not_before", wall - (LIFE_USEC / USEC_PER_SEC - left));
        fj_set_string(o, "resource", resource);
        fj_set_string(o, "token_type", "Bearer");
        text = fj_print(o);
        x->ops->reply(x, 200, headers, ELEMENTSOF(headers), text, strlen(text));
}

bool fake_azure_identity_token_is_good(const FakeAzureIdentity *i, const char *token, const char *resource) {
        LIST_FOREACH (t, &i->tokens, Token, tokens)
                if (streq(t->text, token) && streq(t->resource, resource) &&
                    loop_now(i->loop) < usec_add(t->began_usec, LIFE_USEC))
                        return true;
        return false;
}
