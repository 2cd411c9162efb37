/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "json.h"
#include "string-util.h"
#include "time-util.h"

#define MAX_BYTES (16u * 1024u * 1024u)

#define TEXT(s) (s), sizeof(s) - 1

typedef int (*parse_t)(const char *data, size_t size, JsonDoc **ret, JsonError *reterr);

static int parse_by_cjson(const char *data, size_t size, JsonDoc **ret, JsonError *reterr) {
        return json_parse(data, size, MAX_BYTES, ret, reterr);
}

static int parse_in_one_piece(const char *data, size_t size, JsonDoc **ret, JsonError *reterr) {
        return json_parse_without(data, size, MAX_BYTES, NULL, ret, reterr);
}

static char *parse_and_format_by(parse_t parse, const char *text, size_t size) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        JsonError error = { 0 };
        char *exact, *result;
        int r;

        /* No byte behind the text, so that a sanitizer sees a read past it. */
        exact = malloc(size ? size : 1);
        assert_non_null(exact);
        memcpy(exact, text, size);
        r = parse(exact, size, &d, &error);
        free(exact);
        if (r < 0) {
                assert_int_equal(r, -EBADMSG);
                assert_null(d);
                assert_non_null(error.message);
                result = strf("%zu %s", error.offset, error.message);
        } else
                result = json_format(json_root(d));
        assert_non_null(result);
        return result;
}

/* Parses `text` and formats it again, or prints the error as "OFFSET MESSAGE"; both decoders must agree. */
static char *parse_and_format(const char *text, size_t size) {
        _cleanup_free_ char *own = parse_and_format_by(parse_in_one_piece, text, size);
        char *result = parse_and_format_by(parse_by_cjson, text, size);

        assert_string_equal(own, result);
        return result;
}

TEST_CASE(test_accepted) {
        static const struct {
                const char *what, *text, *expected;
        } rows[] = {
                { "a number alone", "17", "17" },
                { "space around the value", " \t\r\n[ ] \n", "[]" },
                { "each literal", "[true,false,null]", "[true,false,null]" },
                { "an empty object", "{ }", "{}" },
                { "the order of keys is kept", "{\"b\":1,\"a\":{\"c\":[]}}", "{\"b\":1,\"a\":{\"c\":[]}}" },
                { "keys that differ in case only", "{\"a\":1,\"A\":2}", "{\"a\":1,\"A\":2}" },
                { "the same key in two objects", "[{\"a\":1},{\"a\":2}]", "[{\"a\":1},{\"a\":2}]" },
                { "every short escape", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                  "\"\\\"\\\\/\\u0008\\u000c\\n\\r\\t\"" },
                { "an escaped letter", "\"\\u00e4\\u20AC\"", "\"\xc3\xa4\xe2\x82\xac\"" },
                { "\\u0000 does not cut a string", "\"a\\u0000b\\u0000\"",
                  "\"a\xef\xbf\xbd"
                  "b\xef\xbf\xbd\"" },
                { "\\u0000 in a key", "{\"\\u0000b\":1}",
                  "{\"\xef\xbf\xbd"
                  "b\":1}" },
                { "a backslash before u0000", "[\"\\\\u0000\",\"\\u0000\"]",
                  "[\"\\\\u0000\",\"\xef\xbf\xbd\"]" },
                { "a surrogate pair", "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\"" },
                { "UTF-8 of two, three and four bytes", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"",
                  "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
                { "a delete character", "\"\x7f\"", "\"\\u007f\"" },
                { "numbers of every form", "[0,-0,-1,1.5,1e2,1E+2,1.25e-2]", "[0,0,-1,1.5,100,100,0.0125]" },
                { "integers of 15, 16 and 17 digits",
                  "[999999999999999,-999999999999999,1000000000000000,12345678901234567]",
                  "[999999999999999,-999999999999999,1000000000000000,12345678901234568]" },
                { "escapes beside plain text of every length",
                  "[\"\\n\",\"1234567\\n\",\"12345678\\n1\",\"\\n12345678\",\"123456789\\\\\"]",
                  "[\"\\n\",\"1234567\\n\",\"12345678\\n1\",\"\\n12345678\",\"123456789\\\\\"]" },
                { "the first and last of each size of UTF-8, escaped",
                  "\"\\u0001\\u007f\\u0080\\u07ff\\u0800\\uffff\\ud800\\udc00\\udbff\\udfff\"",
                  "\"\\u0001\\u007f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"
                  "\"" },
                { "integers up to 2^53 - 1", "[9007199254740991,-9007199254740991]",
                  "[9007199254740991,-9007199254740991]" },
                { "the largest double", "1.7976931348623157e308", "1.7976931348623157e+308" },
                { "what is too small is zero", "1e-400", "0" },
                { "the shortest text of a double", "[0.1,0.30000000000000004]",
                  "[0.1,0.30000000000000004]" },
                { "a number of 63 bytes",
                  "[0.1111111111111111111111111111111111111111111111111111111111111]",
                  "[0.111111111111111]" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *result = NULL;

                print_message("%s\n", rows[i].what);
                result = parse_and_format(rows[i].text, strlen(rows[i].text));
                if (rows[i].text[0] == '[' && strlen(rows[i].text) == 65)
                        assert_non_null(startswith(result, "[0.11111111111111"));
                else
                        assert_string_equal(result, rows[i].expected);
        }
}

/* Everything that cJSON would let through, and the rest of what RFC 8259 does not have. */
TEST_CASE(test_refused) {
        static const struct {
                const char *what, *text;
                size_t size;
                const char *expected;
        } rows[] = {
                /* traps of cJSON */
                { "bytes behind the value", TEXT("{}x"), "2 something after the value" },
                { "a second value", TEXT("{} {}"), "3 something after the value" },
                { "a NUL behind the value", TEXT("{}\0"), "2 something after the value" },
                { "a NUL and more behind the value", TEXT("1\0junk"), "1 something after the value" },
                { "a byte order mark", TEXT("\xef\xbb\xbf{}"), "0 expected a value" },
                { "a form feed as space", TEXT("\f1"), "0 expected a value" },
                { "a control character as space",
                  TEXT("[1,\x01"
                       "2]"),
                  "3 expected a value" },
                { "duplicate keys", TEXT("{\"a\":1,\"b\":2,\"a\":3}"), "13 duplicate key" },
                { "duplicate keys further in", TEXT("[{},{\"x\":{\"a\":1,\"a\":1}}]"), "16 duplicate key" },
                { "duplicate keys in the second of two", TEXT("[{\"a\":[1]},{\"a\":[1],\"a\":1}]"),
                  "20 duplicate key" },
                { "duplicate keys behind an inner object", TEXT("[{\"a\":{\"b\":[1]},\"c\":{\"d\":1,\"d\":2}}]"),
                  "27 duplicate key" },
                { "duplicate keys, one escaped", TEXT("{\"a\":1,\"\\u0061\":3}"), "7 duplicate key" },
                { "an empty key twice", TEXT("{\"\":1,\"\":3}"), "6 duplicate key" },
                { "a key twice by \\u0000", TEXT("{\"a\\u0000\":1,\"a\\ufffd\":1}"), "13 duplicate key" },
                { "a NUL in a string", TEXT("\"a\0b\""), "2 control character in a string" },
                { "a line feed in a string", TEXT("\"a\nb\""), "2 control character in a string" },
                { "a number beyond a double", TEXT("[1e400]"), "1 number out of range" },
                { "a negative one", TEXT("-1e999999999999"), "0 number out of range" },
                { "a number of 64 bytes",
                  TEXT("[1111111111111111111111111111111111111111111111111111111111111111]"),
                  "1 number too long" },
                { "zeros before a number", TEXT("[01]"), "2 expected , or ]" },
                { "no digit behind the point", TEXT("[1.]"), "1 invalid number" },
                { "no digit before the point", TEXT("[.5]"), "1 expected a value" },
                { "no digit in the exponent", TEXT("1e+"), "0 invalid number" },
                { "a plus before a number", TEXT("+1"), "0 expected a value" },
                { "a minus alone", TEXT("-"), "0 invalid number" },
                { "a hexadecimal number", TEXT("0x10"), "1 something after the value" },
                { "invalid UTF-8: a byte on its own", TEXT("\"a\x80\""), "2 invalid UTF-8" },
                { "invalid UTF-8: overlong slash", TEXT("\"\xc0\xaf\""), "1 invalid UTF-8" },
                { "invalid UTF-8: overlong in three", TEXT("\"\xe0\x9f\xbf\""), "1 invalid UTF-8" },
                { "invalid UTF-8: overlong in four", TEXT("\"\xf0\x8f\xbf\xbf\""), "1 invalid UTF-8" },
                { "invalid UTF-8: a surrogate", TEXT("\"\xed\xa0\x80\""), "1 invalid UTF-8" },
                { "invalid UTF-8: beyond U+10FFFF", TEXT("\"\xf4\x90\x80\x80\""), "1 invalid UTF-8" },
                { "invalid UTF-8: cut by the quote", TEXT("\"\xe2\x82\""), "1 invalid UTF-8" },
                { "invalid UTF-8: cut by the end", TEXT("\"\xf0\x9f\x98"), "1 invalid UTF-8" },
                { "invalid UTF-8: in a key", TEXT("{\"\xff\":1}"), "2 invalid UTF-8" },
                { "a high surrogate alone", TEXT("\"\\ud83d\""), "1 lone surrogate" },
                { "a high surrogate and a letter", TEXT("\"\\ud83d\\u0041\""), "1 lone surrogate" },
                { "a high surrogate and what is above the low", TEXT("\"\\ud83d\\ue000\""),
                  "1 lone surrogate" },
                { "two high ones", TEXT("\"\\ud83d\\ud83d\""), "1 lone surrogate" },
                { "a low surrogate first", TEXT("\"\\ude00\\ud83d\""), "1 lone surrogate" },
                /* and what is plainly broken */
                { "nothing", TEXT(""), "0 unexpected end" },
                { "space only", TEXT("  "), "2 unexpected end" },
                { "an open array", TEXT("[1"), "2 expected , or ]" },
                { "a comma before the end", TEXT("[1,]"), "3 expected a value" },
                { "a comma before the brace", TEXT("{\"a\":1,}"), "7 expected a key" },
                { "a key without quotes", TEXT("{a:1}"), "1 expected a key" },
                { "no colon", TEXT("{\"a\" 1}"), "5 expected :" },
                { "no value", TEXT("{\"a\":}"), "5 expected a value" },
                { "no comma", TEXT("{\"a\":1 \"b\":2}"), "7 expected , or }" },
                { "a comment", TEXT("[1/* one */]"), "2 expected , or ]" },
                { "single quotes", TEXT("'a'"), "0 expected a value" },
                { "an open string", TEXT("\"abc"), "0 unterminated string" },
                { "an escape at the end", TEXT("\"abc\\"), "4 unterminated string" },
                { "an unknown escape", TEXT("\"\\x41\""), "1 invalid escape" },
                { "an escape cut short", TEXT("\"\\u12"), "1 invalid escape" },
                { "an escape that is not hexadecimal", TEXT("\"\\u12g4\""), "1 invalid escape" },
                { "a literal cut short", TEXT("tru"), "0 invalid literal" },
                { "a literal in capitals", TEXT("True"), "0 expected a value" },
                { "a literal with a tail", TEXT("nullx"), "4 something after the value" },
                { "infinity", TEXT("Infinity"), "0 expected a value" },
                { "the wrong bracket", TEXT("[1}"), "2 expected , or ]" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *result = NULL;

                print_message("%s\n", rows[i].what);
                result = parse_and_format(rows[i].text, rows[i].size);
                assert_string_equal(result, rows[i].expected);
        }
}

static int count_item(const char *item, size_t size, void *userdata) {
        (*(unsigned *) userdata)++;
        return 0;
}

static char *nested(unsigned depth) {
        StrBuf b = { 0 };
        char *s;

        for (unsigned i = 0; i < depth; i++)
                strbuf_add(&b, i % 2 ? "[" : "{\"k\":");
        strbuf_add(&b, "1");
        for (unsigned i = depth; i > 0; i--)
                strbuf_add_char(&b, (i - 1) % 2 ? ']' : '}');
        s = strbuf_steal(&b);
        assert_non_null(s);
        return s;
}

/* The list of a page is one level, and each of its items may be as deep as is left. */
TEST_CASE(test_split_depth) {
        for (unsigned depth = JSON_MAX_DEPTH - 3; depth <= JSON_MAX_DEPTH; depth++) {
                _cleanup_free_ char *inner = nested(depth), *text = strf("{\"items\":[1,%s,%s]}", inner, inner);
                _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
                unsigned n = 0;

                assert_int_equal(
                        json_split_items(text, strlen(text), MAX_BYTES, count_item, &n, &rest, NULL),
                        depth + 2 <= JSON_MAX_DEPTH ? 0 : -EBADMSG);
                assert_int_equal(n, depth + 2 <= JSON_MAX_DEPTH ? 3 : 0);
        }
}

TEST_CASE(test_limits) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        _cleanup_free_ char *deepest = nested(JSON_MAX_DEPTH), *deeper = nested(JSON_MAX_DEPTH + 1),
                            *back = NULL;
        JsonError error = { 0 };

        assert_return_code(json_parse(deepest, strlen(deepest), MAX_BYTES, &d, &error), 0);
        back = json_format(json_root(d));
        assert_string_equal(back, deepest);
        d = json_doc_free(d);

        assert_int_equal(json_parse(deeper, strlen(deeper), MAX_BYTES, &d, &error), -EBADMSG);
        assert_string_equal(error.message, "nested too deeply");
        assert_int_equal(error.offset, JSON_MAX_DEPTH / 2 * 6);
        assert_null(d);

        assert_return_code(json_parse("[1,2]", 5, 5, &d, NULL), 0);
        d = json_doc_free(d);
        assert_int_equal(json_parse("[1,2]", 5, 4, &d, &error), -E2BIG);
        assert_int_equal(json_parse("[1,2]", 5, 4, &d, NULL), -E2BIG);
        assert_int_equal(json_parse("[1,", 3, 5, &d, NULL), -EBADMSG);
        assert_int_equal(json_parse(NULL, 0, 5, &d, NULL), -EBADMSG);
}

/* More members than are compared each with each. */
TEST_CASE(test_many_keys) {
        for (unsigned n = 2; n <= 200; n += 9)
                for (unsigned twin = 0; twin < n; twin += n < 40 ? 1 : n / 2) {
                        _cleanup_free_ char *text = NULL, *result = NULL, *expected = NULL;
                        StrBuf b = { 0 };
                        size_t offset;

                        strbuf_add_char(&b, '{');
                        for (unsigned i = 0; i < n; i++)
                                strbuf_addf(&b, "\"k%u\":[{\"k\":%u}],", i * 7919 % 1009, i);
                        offset = b.size;
                        strbuf_addf(&b, "\"k%u\":null}", twin * 7919 % 1009);
                        text = strbuf_steal(&b);
                        result = parse_and_format(text, strlen(text));
                        expected = strf("%zu duplicate key", offset);
                        if (n > 24) /* either of the twins may be named */
                                assert_non_null(endswith(result, " duplicate key"));
                        else
                                assert_string_equal(result, expected);

                        text[offset + 1] = 'K';
                        free(TAKE_PTR(result));
                        result = parse_and_format(text, strlen(text));
                        assert_string_equal(result, text);
                }
}

static const char pod[] =
        "{\"metadata\":{\"name\":\"web-0\",\"Name\":\"not me\",\"deletionTimestamp\":null,\"generation\":7,"
        "\"creationTimestamp\":\"2026-11-21T05:03:00Z\"},"
        "\"spec\":{\"nodeName\":\"n1\",\"hostNetwork\":true,\"priority\":2000000000,\"weight\":1.5,"
        "\"huge\":9007199254740993,\"huger\":1e300,\"one\":1.0,\"containers\":[{},{}]}}";

TEST_CASE(test_lookup) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        const Json *spec, *containers;
        const char *s = NULL;
        int64_t i = 0;
        double f = 0;
        bool b = false;

        assert_return_code(json_parse(pod, strlen(pod), MAX_BYTES, &d, NULL), 0);
        spec = json_get(json_root(d), "spec");
        assert_true(json_is_object(spec));

        /* cJSON's plain lookup would find these */
        assert_null(json_get(spec, "NODENAME"));
        assert_null(json_get(spec, "nodename"));
        assert_string_equal(json_string_or_null(json_path(json_root(d), "metadata", "name", NULL)), "web-0");

        assert_return_code(json_string(json_get(spec, "nodeName"), &s), 0);
        assert_string_equal(s, "n1");
        assert_int_equal(json_string(json_get(spec, "priority"), &s), -EINVAL);
        assert_int_equal(json_string(json_get(spec, "absent"), &s), -ENODATA);
        assert_int_equal(json_string(json_path(json_root(d), "metadata", "deletionTimestamp", NULL), &s),
                         -ENODATA);
        assert_true(json_is_null(json_path(json_root(d), "metadata", "deletionTimestamp", NULL)));
        assert_null(json_path(json_root(d), "metadata", "deletionTimestamp", "deeper", NULL));
        assert_null(json_path(json_root(d), "absent", "deeper", NULL));
        assert_ptr_equal(json_path(spec, NULL), spec);
        assert_false(json_is_null(NULL));

        assert_return_code(json_int64(json_get(spec, "priority"), &i), 0);
        assert_int_equal(i, 2000000000);
        assert_return_code(json_int64(json_get(spec, "one"), &i), 0);
        assert_int_equal(i, 1);
        assert_int_equal(json_int64(json_get(spec, "weight"), &i), -EINVAL);
        assert_int_equal(json_int64(json_get(spec, "huge"), &i), -ERANGE);
        assert_int_equal(json_int64(json_get(spec, "huger"), &i), -ERANGE);
        assert_int_equal(json_int64(json_get(spec, "nodeName"), &i), -EINVAL);
        assert_return_code(json_double(json_get(spec, "weight"), &f), 0);
        assert_true(f > 1.49 && f < 1.51);
        assert_return_code(json_bool(json_get(spec, "hostNetwork"), &b), 0);
        assert_true(b);
        assert_int_equal(json_bool(json_get(spec, "priority"), &b), -EINVAL);

        containers = json_get(spec, "containers");
        assert_true(json_is_array(containers));
        assert_int_equal(json_size(containers), 2);
        assert_int_equal(json_size(spec), 8);
        assert_int_equal(json_size(json_get(spec, "nodeName")), 0);
        assert_int_equal(json_size(NULL), 0);
        assert_null(json_get(containers, "0"));
        assert_null(json_first(json_get(spec, "nodeName")));
        assert_string_equal(json_key(json_first(spec)), "nodeName");
        assert_string_equal(json_key(json_next(json_first(spec))), "hostNetwork");
        assert_null(json_key(json_first(containers)));
        assert_null(json_string_or_null(NULL));
}

/* What is left out is null, wherever it stands; what only looks like it stays. */
TEST_CASE(test_without) {
        static const JsonOmit list[] = { { "meta", "fields" }, { "spec", "boxes" } };
        static const struct {
                const char *what, *root, *text, *left;
        } rows[] = {
                { "object and array", NULL,
                  "{'meta':{'fields':{'a':[1]},'b':2},'spec':{'boxes':[{},[]],'c':3}}",
                  "{'meta':{'fields':null,'b':2},'spec':{'boxes':null,'c':3}}" },
                { "last, and with space", NULL, "{'spec' : { 'c' : 3 , 'boxes' : [ 1 ] } }",
                  "{'spec':{'c':3,'boxes':null}}" },
                { "what costs nothing stays", NULL, "{'meta':{'fields':7},'spec':{'boxes':'x'}}",
                  "{'meta':{'fields':7},'spec':{'boxes':'x'}}" },
                { "the other's key", NULL, "{'meta':{'boxes':[1]},'spec':{'fields':[2]}}",
                  "{'meta':{'boxes':[1]},'spec':{'fields':[2]}}" },
                { "too high", NULL, "{'fields':[1],'boxes':[2]}", "{'fields':[1],'boxes':[2]}" },
                { "too deep", NULL, "{'x':{'meta':{'fields':[1]}},'meta':{'meta':{'fields':[1]}}}",
                  "{'x':{'meta':{'fields':[1]}},'meta':{'meta':{'fields':[1]}}}" },
                { "in an array", NULL, "{'meta':[{'fields':[1]}]}", "{'meta':[{'fields':[1]}]}" },
                { "in an outermost array", NULL, "[{'meta':{'fields':[1]}}]", "[{'meta':{'fields':[1]}}]" },
                { "a longer and a shorter name", NULL, "{'meta':{'fields2':[1],'field':[2]}}",
                  "{'meta':{'fields2':[1],'field':[2]}}" },
                { "an escaped name is read", NULL, "{'meta':{'f\\u0069elds':[1]}}",
                  "{'meta':{'fields':[1]}}" },
                { "below a root", "object", "{'type':'A','object':{'meta':{'fields':[1],'b':2}}}",
                  "{'type':'A','object':{'meta':{'fields':null,'b':2}}}" },
                { "beside the root", "object", "{'meta':{'fields':[1]},'other':{'meta':{'fields':[1]}}}",
                  "{'meta':{'fields':[1]},'other':{'meta':{'fields':[1]}}}" },
                { "an array below the root", "object",
                  "{'object':{'meta':1},'object2':1,'object3':[{'fields':[1]}]}",
                  "{'object':{'meta':1},'object2':1,'object3':[{'fields':[1]}]}" },
                { "an array as the root, after a section", "object",
                  "{'x':{'meta':0},'object':[{'fields':[1]}]}",
                  "{'x':{'meta':0},'object':[{'fields':[1]}]}" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                JsonOmits omits = { .root = rows[i].root, .list = list, .n_list = ELEMENTSOF(list) };
                _cleanup_free_ char *text = strdup(rows[i].text), *left = strdup(rows[i].left), *got = NULL;
                _cleanup_(json_doc_freep) JsonDoc *d = NULL;

                assert_non_null(text);
                assert_non_null(left);
                for (char *c = text; *c; c++)
                        *c = *c == '\'' ? '"' : *c;
                for (char *c = left; *c; c++)
                        *c = *c == '\'' ? '"' : *c;
                assert_return_code(json_parse_without(text, strlen(text), MAX_BYTES, &omits, &d, NULL), 0);
                got = json_format(json_root(d));
                if (!got || strcmp(got, left) != 0)
                        fail_msg("%s: expected %s, got %s", rows[i].what, left, got);
        }
}

/* It is checked all the same, and an error stands where it stands in the whole text. */
TEST_CASE(test_without_refused) {
        static const JsonOmit list[] = { { "meta", "fields" } };
        static const JsonOmits omits = { .list = list, .n_list = ELEMENTSOF(list) };
        static const struct {
                const char *text;
                size_t offset;
                const char *message;
        } rows[] = {
                { "{\"meta\":{\"fields\":[1,]}}", 21, "expected a value" },
                { "{\"meta\":{\"fields\":[\"\x01\"]}}", 20, "control character in a string" },
                { "{\"meta\":{\"fields\":[1,2,3]},\"a\":1,\"a\":2}", 33, "duplicate key" },
                { "{\"meta\":{\"fields\":[1],\"fields\":[2]}}", 22, "duplicate key" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(json_doc_freep) JsonDoc *d = NULL;
                JsonError error = { 0 };
                int r = json_parse_without(rows[i].text, strlen(rows[i].text), MAX_BYTES, &omits, &d,
                                           &error);

                if (r != -EBADMSG || error.offset != rows[i].offset ||
                    !streq_ptr(error.message, rows[i].message))
                        fail_msg("%s: expected '%s' at %zu, got %d, '%s' at %zu", rows[i].text,
                                 rows[i].message, rows[i].offset, r, error.message, error.offset);
        }
}

typedef struct Target {
        char *name;
        int64_t generation;
        bool host_network;
        usec_t created;
} Target;

TEST_CASE(test_dispatch) {
        static const JsonField table[] = {
                { "name", json_parse_strdup, offsetof(Target, name), true },
                { "generation", json_parse_int64, offsetof(Target, generation), false },
                { "hostNetwork", json_parse_bool, offsetof(Target, host_network), false },
                { "created", json_parse_rfc3339, offsetof(Target, created), false },
        };
        static const struct {
                const char *what, *text;
                int r;
                const char *field;
        } rows[] = {
                { "all of it, and a field we do not know",
                  "{\"name\":\"a\",\"generation\":3,\"hostNetwork\":true,\"created\":\"1970-01-01T00:00:"
                  "01Z\",\"x\":[]}",
                  0, NULL },
                { "null is absent", "{\"name\":\"a\",\"generation\":null}", 0, NULL },
                { "the mandatory one is missing", "{\"generation\":3}", -ENODATA, "name" },
                { "the mandatory one is null", "{\"name\":null}", -ENODATA, "name" },
                { "a wrong type", "{\"name\":\"a\",\"generation\":\"3\"}", -EINVAL, "generation" },
                { "a string that is none", "{\"name\":1}", -EINVAL, "name" },
                { "an integer too large", "{\"name\":\"a\",\"generation\":1e20}", -ERANGE, "generation" },
                { "a time that is none", "{\"name\":\"a\",\"created\":\"yesterday\"}", -EINVAL, "created" },
                { "a time that is a number", "{\"name\":\"a\",\"created\":1}", -EINVAL, "created" },
                { "no object", "[]", -EINVAL, "." },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(json_doc_freep) JsonDoc *d = NULL;
                Target t = { 0 };
                const char *field = NULL;

                print_message("%s\n", rows[i].what);
                t.name = strdup("old");
                assert_return_code(json_parse(rows[i].text, strlen(rows[i].text), MAX_BYTES, &d, NULL), 0);
                assert_int_equal(json_dispatch(json_root(d), table, ELEMENTSOF(table), &t, &field),
                                 rows[i].r);
                if (rows[i].field)
                        assert_string_equal(field, rows[i].field);
                if (i == 0) {
                        assert_string_equal(t.name, "a");
                        assert_int_equal(t.generation, 3);
                        assert_true(t.host_network);
                        assert_int_equal(t.created, USEC_PER_SEC);
                }
                free(t.name);
        }
        assert_int_equal(json_dispatch(NULL, table, ELEMENTSOF(table), &(Target){ 0 }, NULL), -EINVAL);
}

typedef struct Items {
        StrBuf text;
        int stop_with;
} Items;

static int on_item(const char *item, size_t size, void *userdata) {
        Items *items = userdata;

        strbuf_add_n(&items->text, item, size);
        strbuf_add_char(&items->text, '|');
        return items->stop_with;
}

TEST_CASE(test_split) {
        static const struct {
                const char *what, *text, *items, *rest;
        } rows[] = {
                { "a list",
                  "{\"kind\":\"PodList\",\"items\":[{\"a\":1},{\"b\":[2]}],\"metadata\":{\"continue\":\"x\"}"
                  "}",
                  "{\"a\":1}|{\"b\":[2]}|",
                  "{\"kind\":\"PodList\",\"items\":[],\"metadata\":{\"continue\":\"x\"}}" },
                { "space around everything", " { \"items\" : [ {} ,\n1 , [ ] ] } ", "{}|1|[ ]|",
                  "{\"items\":[]}" },
                { "an empty list", "{\"items\":[ ]}", "", "{\"items\":[]}" },
                { "a list of Go that was never made", "{\"items\":null,\"a\":1}", "",
                  "{\"items\":[],\"a\":1}" },
                { "no list at all", "{\"kind\":\"Status\"}", "", "{\"kind\":\"Status\"}" },
                { "items further in are none",
                  "{\"metadata\":{\"items\":[1]},\"items\":[{\"items\":[2,3]}]}", "{\"items\":[2,3]}|",
                  "{\"metadata\":{\"items\":[1]},\"items\":[]}" },
                { "the key written with escapes", "{\"\\u0069tem\\u0073\":[1,2]}", "1|2|",
                  "{\"items\":[]}" },
                { "a key that begins like it", "{\"itemsize\":[1],\"item\":[2],\"items\":[3]}", "3|",
                  "{\"itemsize\":[1],\"item\":[2],\"items\":[]}" },
                { "items that are no array", "{\"items\":{}}", "", "9 items is not an array" },
                { "two lists", "{\"items\":[1],\"items\":[2]}", "", "21 duplicate key" },
                { "two lists, one escaped", "{\"items\":[1],\"item\\u0073\":[2]}", "", "26 duplicate key" },
                { "a duplicate key before the items", "{\"a\":1,\"a\":2,\"items\":[1]}", "",
                  "7 duplicate key" },
                { "a duplicate key behind the items", "{\"a\":1,\"items\":[1,22,333],\"a\":2}", "",
                  "26 duplicate key" },
                { "an item that is broken: nothing is handed out", "{\"items\":[1,{\"a\":}]}", "",
                  "17 expected a value" },
                { "an end that is broken: nothing is handed out", "{\"items\":[1]", "",
                  "12 expected , or }" },
                { "no object", "[1]", "", "0 expected an object" },
                { "nothing", "", "", "0 expected an object" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
                _cleanup_free_ char *result = NULL;
                JsonError error = { 0 };
                Items items = { 0 };
                int r;

                print_message("%s\n", rows[i].what);
                r = json_split_items(rows[i].text, strlen(rows[i].text), MAX_BYTES, on_item, &items, &rest,
                                     &error);
                if (r < 0) {
                        assert_int_equal(r, -EBADMSG);
                        result = strf("%zu %s", error.offset, error.message);
                } else
                        result = json_format(json_root(rest));
                assert_string_equal(result, rows[i].rest);
                assert_string_equal(strbuf_str(&items.text), rows[i].items);
                strbuf_done(&items.text);
        }
}

TEST_CASE(test_split_stops) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        Items items = { .stop_with = -ECANCELED };

        assert_int_equal(
                json_split_items(TEXT("{\"items\":[1,2]}"), MAX_BYTES, on_item, &items, &rest, NULL),
                -ECANCELED);
        assert_string_equal(strbuf_str(&items.text), "1|");
        assert_null(rest);
        assert_int_equal(json_split_items(TEXT("{\"items\":[1,2]}"), 3, on_item, &items, &rest, NULL),
                         -E2BIG);
        strbuf_done(&items.text);
}

TEST_CASE(test_writer) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        _cleanup_free_ char *text = NULL, *again = NULL;
        size_t size = 0;

        assert_return_code(json_parse(TEXT("{\"x\":[1,1.5,\"s\",null,true,{}]}"), MAX_BYTES, &d, NULL), 0);
        assert_return_code(json_writer_new(&w), 0);
        json_open_object(w, NULL);
        json_add_string(w, "s", "a \"quoted\" \\ \x01\n\x7f \xc3\xa4");
        json_add_string(w, "left out", NULL);
        json_add_string(w, "bad\xff", "\xc3(\xed\xa0\x80 cut \xe2\x82");
        json_addf(w, "f", "%d%%", 50);
        json_add_int64(w, "min", INT64_MIN);
        json_open_array(w, "a");
        json_open_object(w, NULL);
        json_close_object(w);
        json_add_bool(w, NULL, true);
        json_add_bool(w, NULL, false);
        json_add_null(w, NULL);
        json_open_array(w, NULL);
        json_close_array(w);
        json_close_array(w);
        json_add_raw(w, "raw", "{\"k\":[]}");
        json_add_value(w, "copy", json_root(d));
        json_add_value(w, "absent", NULL);
        json_close_object(w);
        text = json_writer_steal(w, &size);
        assert_non_null(text);
        assert_string_equal(text,
                            "{\"s\":\"a \\\"quoted\\\" \\\\ \\u0001\\n\\u007f \xc3\xa4\","
                            "\"bad\xef\xbf\xbd\":\"\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd cut "
                            "\xef\xbf\xbd\xef\xbf\xbd\",\"f\":\"50%\",\"min\":-9223372036854775808,"
                            "\"a\":[{},true,false,null,[]],\"raw\":{\"k\":[]},"
                            "\"copy\":{\"x\":[1,1.5,\"s\",null,true,{}]}}");
        assert_int_equal(size, strlen(text));

        /* usable again, and for a value that is no object */
        json_add_string(w, NULL, "second");
        again = json_writer_steal(w, NULL);
        assert_string_equal(again, "\"second\"");
}

/* 500 pods of about 6 kB, as a page of the API server has them. Prints what a page costs. */
static char *make_page(void) {
        StrBuf b = { 0 };
        char *s;

        strbuf_add(&b, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"}"
                       ",\"items\":[");
        for (unsigned i = 0; i < 500; i++) {
                strbuf_addf(&b,
                            "%s{\"metadata\":{\"name\":\"web-%u\",\"namespace\":\"default\",\"labels\":{"
                            "\"app\":\"web\"},"
                            "\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"controller\":true}]},\"spec\":"
                            "{\"nodeName\":\"n%u\",\"containers\":[",
                            i ? "," : "", i, i % 50);
                for (unsigned c = 0; c < 3; c++) {
                        strbuf_addf(
                                &b,
                                "%s{\"name\":\"c%u\",\"image\":\"images.example/team/web:1.27\",\"env\":[",
                                c ? "," : "", c);
                        for (unsigned e = 0; e < 20; e++)
                                strbuf_addf(&b,
                                            "%s{\"name\":\"VARIABLE_%u\",\"value\":\"some setting of the "
                                            "program, %u\"}",
                                            e ? "," : "", e, e);
                        strbuf_add(&b,
                                   "],\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"}},"
                                   "\"ports\":[{\"containerPort\":8080,\"protocol\":\"TCP\"}]}");
                }
                strbuf_add(&b, "]},\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\","
                               "\"status\":\"True\",\"lastTransitionTime\":\"2026-11-21T05:03:00Z\"}]}}");
        }
        strbuf_add(&b, "]}");
        s = strbuf_steal(&b);
        assert_non_null(s);
        return s;
}

static int parse_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *d = NULL;
        size_t *n = userdata;

        (*n)++;
        return json_parse_without(item, size, MAX_BYTES, NULL, &d, NULL);
}

static int ignore_item(const char *item, size_t size, void *userdata) {
        return 0;
}

static double now_msec(void) {
        struct timespec ts;

        assert_return_code(clock_gettime(CLOCK_MONOTONIC, &ts), errno);
        return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}

TEST_CASE(test_page) {
        _cleanup_free_ char *page = make_page();
        size_t size = strlen(page), n = 0;
        double t0, t1, t2, t3;

        t0 = now_msec();
        {
                _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
                assert_return_code(json_split_items(page, size, MAX_BYTES, ignore_item, NULL, &rest, NULL),
                                   0);
        }
        t1 = now_msec();
        {
                _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
                assert_return_code(json_split_items(page, size, MAX_BYTES, parse_item, &n, &rest, NULL), 0);
        }
        t2 = now_msec();
        {
                _cleanup_(json_doc_freep) JsonDoc *d = NULL;
                assert_return_code(json_parse(page, size, MAX_BYTES, &d, NULL), 0);
                assert_int_equal(json_size(json_get(json_root(d), "items")), 500);
        }
        t3 = now_msec();
        assert_int_equal(n, 500);
        print_message(
                "%zu bytes, 500 pods: split %.1f ms, split and parse each %.1f ms, parse whole %.1f ms\n",
                size, t1 - t0, t2 - t1, t3 - t2);
}

/* The same as json_parse() but for duplicate keys, and without a tree. */
TEST_CASE(test_check) {
        static const struct {
                const char *text;
                size_t max_bytes;
                int r;
        } rows[] = {
                { "{\"kind\":\"Status\",\"code\":201}", MAX_BYTES, 0 },
                { " [1, 2.5e3, null] ", MAX_BYTES, 0 },
                { "{\"a\":1,\"a\":2}", MAX_BYTES, 0 },
                { "<html>moved</html>", MAX_BYTES, -EBADMSG },
                { "{\"kind\":\"Status\"", MAX_BYTES, -EBADMSG },
                { "{} {}", MAX_BYTES, -EBADMSG },
                { "", MAX_BYTES, -EBADMSG },
                { "{\"kind\":\"Status\"}", 5, -E2BIG },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                JsonError e = { 0 };

                print_message("%s\n", rows[i].text);
                assert_int_equal(json_check(rows[i].text, strlen(rows[i].text), rows[i].max_bytes, &e),
                                 rows[i].r);
                assert_int_equal(!!e.message, rows[i].r < 0);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_check),       cmocka_unit_test(test_accepted),
                cmocka_unit_test(test_refused),     cmocka_unit_test(test_limits),
                cmocka_unit_test(test_many_keys),   cmocka_unit_test(test_lookup),
                cmocka_unit_test(test_without),     cmocka_unit_test(test_without_refused),
                cmocka_unit_test(test_dispatch),    cmocka_unit_test(test_split),
                cmocka_unit_test(test_split_stops), cmocka_unit_test(test_split_depth),
                cmocka_unit_test(test_writer),
                cmocka_unit_test(test_page),
        };
        return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
