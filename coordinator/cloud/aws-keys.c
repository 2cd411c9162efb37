/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-keys.h"

#include "json.h"
#include "string-util.h"
#include "xml-reader.h"

#define KEY_MAX_BYTES 256u
#define TOKEN_MAX_BYTES (16u * 1024u)

void aws_keys_done(AwsKeys *k) {
        free(k->access_key_id);
        free(k->account_id);
        erase_and_free(k->secret_access_key, strlen(strempty(k->secret_access_key)));
        erase_and_free(k->session_token, strlen(strempty(k->session_token)));
        *k = (AwsKeys){ 0 };
}

static bool is_header_text(const char *s, size_t max_bytes) {
        size_t n = strlen(strempty(s));

        if (n == 0 || n > max_bytes)
                return false;
        for (size_t i = 0; i < n; i++)
                if (s[i] <= 0x20 || s[i] >= 0x7f)
                        return false;
        return true;
}

bool aws_keys_are_valid(const AwsKeys *k) {
        return is_header_text(k->access_key_id, KEY_MAX_BYTES) && !strpbrk(k->access_key_id, "/,") &&
               is_header_text(k->secret_access_key, KEY_MAX_BYTES) &&
               (!k->session_token || is_header_text(k->session_token, TOKEN_MAX_BYTES));
}

/* -- shared credentials file ---------------------------------------------------------------- */

/* The name between the brackets of a section line, or NULL. In place. */
static char *section_name(char *line) {
        char *end;

        if (line[0] != '[')
                return NULL;
        end = strchr(line, ']');
        if (!end)
                return NULL;
        *end = 0;
        return strstrip(line + 1);
}

static int take_key(char *line, AwsKeys *k) {
        const struct {
                const char *name;
                char **value;
        } keys[] = {
                { "aws_access_key_id", &k->access_key_id },
                { "aws_secret_access_key", &k->secret_access_key },
                { "aws_session_token", &k->session_token },
        };
        char *equals = strchr(line, '='), *name, *value;

        if (!equals)
                return 0;
        *equals = 0;
        name = strstrip(line);
        value = strstrip(equals + 1);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (strcasecmp(name, keys[i].name) == 0)
                        return free_and_strdup(keys[i].value, *value ? value : NULL);
        return 0;
}

static int parse_lines(char *text, const char *profile, AwsKeys *ret) {
        bool ours = false;
        char *next;
        int r;

        for (char *p = text; p; p = next) {
                char *line, *name;

                next = strchr(p, '\n');
                if (next)
                        *next++ = 0;
                line = strstrip(p);
                if (line[0] == '#' || line[0] == ';')
                        continue;

                name = section_name(line);
                if (name) {
                        ours = streq(name, profile);
                        continue;
                }
                r = ours ? take_key(line, ret) : 0;
                if (r < 0)
                        return r;
        }
        return ret->access_key_id && ret->secret_access_key ? 0 : -ENOENT;
}

int aws_keys_parse_profile(const char *text, const char *profile, AwsKeys *ret) {
        AwsKeys k = { .expires_wall_usec = USEC_INFINITY };
        char *copy;
        int r;

        assert(text && profile && ret);
        copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        r = parse_lines(copy, profile, &k);
        erase_and_free(copy, strlen(text));
        if (r >= 0 && !aws_keys_are_valid(&k))
                r = -EBADMSG;
        if (r < 0) {
                aws_keys_done(&k);
                return r;
        }
        *ret = k;
        return 0;
}

/* -- JSON of container endpoints and instance metadata -------------------------------------- */

typedef struct JsonKeys {
        char *access_key_id, *secret_access_key, *token, *account_id, *code, *message;
        usec_t expiration_usec;
} JsonKeys;

static const JsonField json_keys_table[] = {
        { "AccessKeyId", json_parse_strdup, offsetof(JsonKeys, access_key_id), false },
        { "SecretAccessKey", json_parse_strdup, offsetof(JsonKeys, secret_access_key), false },
        { "Token", json_parse_strdup, offsetof(JsonKeys, token), false },
        { "AccountId", json_parse_strdup, offsetof(JsonKeys, account_id), false },
        { "Code", json_parse_strdup, offsetof(JsonKeys, code), false },
        { "Message", json_parse_strdup, offsetof(JsonKeys, message), false },
        { "Expiration", json_parse_rfc3339, offsetof(JsonKeys, expiration_usec), false },
};

static void json_keys_done(JsonKeys *k) {
        free(k->access_key_id);
        free(k->account_id);
        free(k->code);
        free(k->message);
        erase_and_free(k->secret_access_key, strlen(strempty(k->secret_access_key)));
        erase_and_free(k->token, strlen(strempty(k->token)));
}

int aws_keys_parse_json(const char *data, size_t size, AwsKeys *ret, char **reterr_message) {
        _cleanup_(json_keys_done) JsonKeys k = { .expiration_usec = USEC_INFINITY };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *field;
        int r;

        assert(ret && reterr_message);
        r = json_parse(data, size, AWS_KEYS_REPLY_MAX_BYTES, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (!json_is_object(json_root(doc)))
                return -EBADMSG;
        r = json_dispatch(json_root(doc), json_keys_table, ELEMENTSOF(json_keys_table), &k, &field);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if ((k.code && !streq(k.code, "Success")) || !k.access_key_id || !k.secret_access_key) {
                *reterr_message = k.message ? TAKE_PTR(k.message) : TAKE_PTR(k.code);
                return -ENOKEY;
        }

        AwsKeys keys = {
                .access_key_id = TAKE_PTR(k.access_key_id),
                .secret_access_key = TAKE_PTR(k.secret_access_key),
                .session_token = isempty(k.token) ? NULL : TAKE_PTR(k.token),
                .account_id = TAKE_PTR(k.account_id),
                .expires_wall_usec = k.expiration_usec,
        };
        if (!aws_keys_are_valid(&keys)) {
                aws_keys_done(&keys);
                return -EBADMSG;
        }
        *ret = keys;
        return 0;
}

/* -- XML of STS ----------------------------------------------------------------------------- */

static int parse_sts_credentials(XmlReader *x, AwsKeys *k) {
        _cleanup_free_ char *expiration = NULL;
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (streq(name, "AccessKeyId"))
                        r = xml_reader_text(x, &k->access_key_id);
                else if (streq(name, "SecretAccessKey"))
                        r = xml_reader_text(x, &k->secret_access_key);
                else if (streq(name, "SessionToken"))
                        r = xml_reader_text(x, &k->session_token);
                else if (streq(name, "Expiration"))
                        r = xml_reader_text(x, &expiration);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        return expiration && rfc3339_parse(expiration, &k->expires_wall_usec) >= 0 ? 0 : -EBADMSG;
}

/* Down through elements of one name each; what stands beside them is passed over. */
static int parse_sts_level(XmlReader *x, bool inside_result, AwsKeys *k) {
        const char *wanted = inside_result ? "Credentials" : "AssumeRoleWithWebIdentityResult", *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (!streq(name, wanted))
                        r = xml_reader_skip(x);
                else if (inside_result)
                        r = parse_sts_credentials(x, k);
                else
                        r = parse_sts_level(x, true, k);
                if (r < 0)
                        return r;
        }
        return r;
}

int aws_keys_parse_sts(const char *data, size_t size, AwsKeys *ret) {
        AwsKeys k = { .expires_wall_usec = USEC_INFINITY };
        const char *root;
        XmlReader x;
        int r;

        assert(ret);
        r = xml_reader_open(&x, data, size, AWS_KEYS_REPLY_MAX_BYTES, &root);
        if (r >= 0 && !streq(root, "AssumeRoleWithWebIdentityResponse"))
                r = -EBADMSG;
        if (r >= 0)
                r = parse_sts_level(&x, false, &k);
        if (r >= 0)
                r = xml_reader_close(&x);
        if (r >= 0 && (!aws_keys_are_valid(&k) || !k.session_token))
                r = -EBADMSG;
        if (r < 0) {
                aws_keys_done(&k);
                return r == -ENOMEM ? r : -EBADMSG;
        }
        *ret = k;
        return 0;
}

/* -- what may be asked ---------------------------------------------------------------------- */

static bool is_loopback(const char *host) {
        if (streq(host, "localhost") || streq(host, "[::1]"))
                return true;
        return startswith(host, "127.") && host[strspn(host, "0123456789.")] == 0;
}

bool aws_container_uri_is_allowed(const char *url) {
        static const char *const addresses[] = { "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]" };
        const char *authority = startswith(url, "http://");
        _cleanup_free_ char *host = NULL;
        size_t n, port;

        for (const char *p = url; *p; p++)
                if (*p <= 0x20 || *p >= 0x7f)
                        return false;
        if (!authority)
                return startswith(url, "https://") != NULL;

        n = strcspn(authority, "/?#");
        host = memdup_str(authority, n);
        if (!host || strchr(host, '@'))
                return false;
        port = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
        if (port > strlen(host) || (host[port] && host[port] != ':'))
                return false;
        host[port] = 0;
        if (is_loopback(host))
                return true;
        for (size_t i = 0; i < ELEMENTSOF(addresses); i++)
                if (streq(host, addresses[i]))
                        return true;
        return false;
}

bool aws_role_session_name_is_valid(const char *name) {
        size_t n = strlen(name);

        return n >= 2 && n <= 64 &&
               strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+=,.@-") == n;
}
