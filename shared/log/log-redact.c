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

#define SECRET(name, form) \
        { name, sizeof(name) - 1, form }

static const struct {
        const char *name;
        size_t size;
        SecretForm form;
} secrets[] = {
        SECRET("Bearer", SECRET_WORD),
        SECRET("Authorization: Basic", SECRET_WORD),
        SECRET("Credential", SECRET_VALUE), /* AWS4-HMAC-SHA256 */
        SECRET("Signature", SECRET_VALUE),  /* and X-Amz-Signature */
        SECRET("X-Amz-Security-Token", SECRET_VALUE),
        SECRET("X-aws-ec2-metadata-token", SECRET_VALUE),
        SECRET("SecretAccessKey", SECRET_VALUE),
        SECRET("SessionToken", SECRET_VALUE),
        SECRET("access_token", SECRET_VALUE),
        SECRET("refresh_token", SECRET_VALUE),
        SECRET("id_token", SECRET_VALUE),
        SECRET("client_secret", SECRET_VALUE),
        SECRET("SECRET_ACCESS_KEY", SECRET_VALUE), /* AWS_..., of an environment */
        SECRET("SESSION_TOKEN", SECRET_VALUE),
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

/* True of some other pairs, too. */
static bool same_letter(char a, char b) {
        return (a | 0x20) == (b | 0x20);
}

/* A text has many places, and few of them begin as a name of `secrets` does. */
static bool may_begin_name(char c) {
        switch (c | 0x20) {
        case 'a':
        case 'b':
        case 'c':
        case 'i':
        case 'r':
        case 's':
        case 'x':
                return true;
        default:
                return false;
        }
}

/* Where the secret begins whose name stands at p, or NULL. */
static const char *find_secret(const char *p) {
        if (!may_begin_name(*p))
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(secrets); i++) {
                const char *name = secrets[i].name, *secret;

                if (!same_letter(p[0], name[0]) || !same_letter(p[1], name[1]) ||
                    strncasecmp(p, name, secrets[i].size) != 0)
                        continue;
                secret = behind_name(p + secrets[i].size, secrets[i].form);
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
