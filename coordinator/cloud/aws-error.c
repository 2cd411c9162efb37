/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-error.h"

#include "json.h"
#include "string-util.h"
#include "xml-reader.h"

#define CODE_MAX 128u
#define MESSAGE_MAX_BYTES 300u

/* What follows is kilobytes of base64 that only sts:DecodeAuthorizationMessage can read. */
#define ENCODED_BLOB "Encoded authorization failure message"

static bool code_is_valid(const char *s) {
        size_t n = strlen(s);

        return n > 0 && n <= CODE_MAX &&
               strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:") == n;
}

static int parse_error(XmlReader *x, char **code, char **message) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (streq(name, "Code") && !*code)
                        r = xml_reader_text(x, code);
                else if (streq(name, "Message") && !*message)
                        r = xml_reader_text(x, message);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

/* The root element's children, or those of <Errors>. */
static int parse_level(XmlReader *x, bool root, char **code, char **message) {
        const char *name;
        int r;

        while ((r = xml_reader_child(x, &name)) > 0) {
                if (root && streq(name, "Errors"))
                        r = parse_level(x, false, code, message);
                else if (streq(name, "Error") && !*code)
                        r = parse_error(x, code, message);
                else
                        r = xml_reader_skip(x);
                if (r < 0)
                        return r;
        }
        return r;
}

static int clean_message(char *message, char **ret) {
        char *blob = message ? strstr(message, ENCODED_BLOB) : NULL;

        if (blob)
                *blob = 0;
        *ret = str_sanitize(message ? strstrip(message) : "", MESSAGE_MAX_BYTES);
        return *ret ? 0 : -ENOMEM;
}

int aws_error_parse(const char *data, size_t size, AwsError *ret) {
        _cleanup_free_ char *code = NULL, *message = NULL;
        const char *root;
        XmlReader x;
        int r;

        assert(ret);
        r = xml_reader_open(&x, data, size, AWS_ERROR_MAX_BYTES, &root);
        if (r < 0)
                return -EBADMSG;
        if (!streq(root, "Response") && !streq(root, "ErrorResponse"))
                return -EBADMSG;
        r = parse_level(&x, true, &code, &message);
        if (r >= 0)
                r = xml_reader_close(&x);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (!code || !code_is_valid(code))
                return -EBADMSG;

        r = clean_message(message, &ret->message);
        if (r < 0)
                return r;
        ret->code = TAKE_PTR(code);
        return 0;
}

int aws_error_parse_json(const char *data, size_t size, AwsError *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_free_ char *code = NULL, *message = NULL;
        const char *type, *text, *hash;
        int r;

        assert(ret);
        r = json_parse(data, size, AWS_ERROR_MAX_BYTES, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        type = strempty(json_string_or_null(json_get(json_root(doc), "__type")));
        hash = strrchr(type, '#');
        if (hash)
                type = hash + 1;
        if (!code_is_valid(type))
                return -EBADMSG;
        /* Some services write the name large. */
        text = json_string_or_null(json_get(json_root(doc), "message"));
        if (!text)
                text = json_string_or_null(json_get(json_root(doc), "Message"));
        code = strdup(type);
        message = strdup(strempty(text));
        if (!code || !message)
                return -ENOMEM;
        r = clean_message(message, &ret->message);
        if (r < 0)
                return r;
        ret->code = TAKE_PTR(code);
        return 0;
}

void aws_error_done(AwsError *e) {
        free(e->code);
        free(e->message);
        *e = (AwsError){ 0 };
}
