/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
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
};

#define MASK "***"

static bool is_secret_char(char c) {
        return (unsigned char) c > 0x20 && !strchr(",;&\"'<>\\)}]", c);
}

/* Past white space and, where `c` is the start of one, an escaped or plain quote. */
static char *skip_quote(char *p) {
        if (p[0] == '\\' && (p[1] == '"' || p[1] == '\''))
                return p + 2;
        return *p == '"' || *p == '\'' ? p + 1 : p;
}

static char *skip_blanks(char *p) {
        while (*p == ' ' || *p == '\t')
                p++;
        return p;
}

/* p: right behind the name. Where the secret begins, or NULL if the name is only a word here. */
static char *find_secret(char *p, SecretForm form) {
        if (form == SECRET_WORD)
                return *p == ' ' || *p == '\t' ? skip_blanks(p) : NULL;

        p = skip_blanks(skip_quote(p));
        if (strncasecmp(p, "%3D", 3) == 0)
                return p + 3;
        if (*p != '=' && *p != ':')
                return NULL;
        return skip_quote(skip_blanks(p + 1));
}

/* Returns where the search goes on. */
static char *mask(char *begin) {
        size_t size = 0, stars;

        while (is_secret_char(begin[size]))
                size++;
        stars = MIN(size, strlen(MASK));
        memcpy(begin, MASK, stars);
        memmove(begin + stars, begin + size, strlen(begin + size) + 1);
        return begin + stars;
}

void log_redact(char *text) {
        for (char *p = text; p && *p;) {
                char *secret = NULL;

                for (size_t i = 0; i < ELEMENTSOF(secrets) && !secret; i++) {
                        size_t n = strlen(secrets[i].name);

                        if (strncasecmp(p, secrets[i].name, n) == 0)
                                secret = find_secret(p + n, secrets[i].form);
                }
                p = secret ? mask(secret) : p + 1;
        }
}

char *log_redacted_copy(const char *text) {
        char *copy = strdup(text);

        if (copy)
                log_redact(copy);
        return copy;
}
