/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <strings.h>

#include "log-internal.h"
#include "macro.h"

/*
 * The second net under the rule that callers hand in no secret: an error of a library or a reply of a cloud
 * that is quoted in a message may hold one. What stands behind one of these words is replaced by three
 * stars.
 */

typedef enum SecretForm {
        SECRET_WORD,  /* Bearer SECRET */
        SECRET_VALUE, /* name=SECRET, name: SECRET, "name": "SECRET" */
} SecretForm;

static const struct {
        const char *name;
        SecretForm form;
} secrets[] = {
        { "Bearer", SECRET_WORD },
        { "Authorization: Basic", SECRET_WORD },
        { "Credential", SECRET_VALUE }, /* AWS4-HMAC-SHA256 */
        { "Signature", SECRET_VALUE },  /* and X-Amz-Signature */
        { "X-Amz-Security-Token", SECRET_VALUE },
        { "X-aws-ec2-metadata-token", SECRET_VALUE },
        { "SecretAccessKey", SECRET_VALUE },
        { "SessionToken", SECRET_VALUE },
        { "access_token", SECRET_VALUE },
        { "refresh_token", SECRET_VALUE },
        { "id_token", SECRET_VALUE },
        { "client_secret", SECRET_VALUE },
        { "SECRET_ACCESS_KEY", SECRET_VALUE }, /* AWS_..., of an environment */
        { "SESSION_TOKEN", SECRET_VALUE },
};

#define MASK "***"

static bool is_secret_char(char c) {
        return (unsigned char) c > 0x20 && !strchr(",;&\"'<>\\)}]", c);
}

/* Past a quote, plain or escaped. */
static const char *skip_quote(const char *p) {
        if (p[0] == '\\' && (p[1] == '"' || p[1] == '\''))
                return p + 2;
        return *p == '"' || *p == '\'' ? p + 1 : p;
}

static const char *skip_blanks(const char *p) {
        return p + strspn(p, " \t");
}

/* p: right behind the name. Where the secret begins, or NULL if the name is only a word here. */
static const char *behind_name(const char *p, SecretForm form) {
        if (form == SECRET_WORD)
                return *p == ' ' || *p == '\t' ? skip_blanks(p) : NULL;

        p = skip_blanks(skip_quote(p));
        if (strncasecmp(p, "%3D", 3) == 0)
                return p + 3;
        if (*p != '=' && *p != ':')
                return NULL;
        return skip_quote(skip_blanks(p + 1));
}

/* Where the secret begins whose name stands at p, or NULL. */
static const char *find_secret(const char *p) {
        for (size_t i = 0; i < ELEMENTSOF(secrets); i++) {
                const char *name = secrets[i].name, *secret;
                size_t n = strlen(name);

                if ((*p | 0x20) != (name[0] | 0x20) || strncasecmp(p, name, n) != 0)
                        continue;
                secret = behind_name(p + n, secrets[i].form);
                if (secret)
                        return secret;
        }
        return NULL;
}

void log_redact(char *text) {
        const char *p = text;
        char *out = text;

        if (!text)
                return;
        while (*p) {
                const char *secret = find_secret(p);
                size_t size = 0;

                if (!secret) {
                        *out++ = *p++;
                        continue;
                }
                memmove(out, p, (size_t) (secret - p));
                out += secret - p;
                while (is_secret_char(secret[size]))
                        size++;
                p = secret + size;
                size = MIN(size, strlen(MASK)); /* never longer than it was */
                memcpy(out, MASK, size);
                out += size;
        }
        *out = 0;
}

char *log_redacted_copy(const char *text) {
        char *copy = strdup(text);

        if (copy)
                log_redact(copy);
        return copy;
}
