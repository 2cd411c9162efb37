/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "json-protobuf.h"

/* That the message is there is all. */
static const ProtobufShape empty = { 0 };

static const ProtobufField inner_fields[] = { { 1, "a", PROTOBUF_STRING }, { 2, "n", PROTOBUF_INT } };
static const ProtobufShape inner = PROTOBUF_SHAPE(inner_fields);
static const ProtobufField inline_fields[] = {
        { 1, "in", PROTOBUF_STRING },
        { 2, "empty", PROTOBUF_MESSAGE, false, &empty },
};
static const ProtobufShape inlined = PROTOBUF_SHAPE(inline_fields);
static const ProtobufField fields[] = {
        { 1, "text", PROTOBUF_STRING },
        { 2, "n", PROTOBUF_INT },
        { 3, "b", PROTOBUF_BOOL },
        { 4, "m", PROTOBUF_MESSAGE, false, &inner },
        { 5, NULL, PROTOBUF_INLINE, false, &inlined },
        { 6, "map", PROTOBUF_MAP },
        { 7, "t", PROTOBUF_TIME },
        { 8, "texts", PROTOBUF_STRING, true },
        { 9, "ms", PROTOBUF_MESSAGE, true, &inner },
        { 11, "kept", PROTOBUF_STRING_KEPT },
        { 12, "quantities", PROTOBUF_QUANTITY_MAP },
        { 300, "far", PROTOBUF_BOOL },
};
static const ProtobufShape shape = PROTOBUF_SHAPE(fields);

#define BYTES(s) s, sizeof(s) - 1
#define BAD "\xef\xbf\xbd" /* U+FFFD */

typedef struct Row {
        const char *what, *bytes;
        size_t size;
        const char *expected; /* the JSON, or what is wrong */
        size_t offset;
} Row;

TEST_CASE(test_read) {
        static const Row rows[] = {
                { "nothing", BYTES(""), "{}" },
                { "a text",
                  BYTES("\x0a\x03"
                        "abc"),
                  "{\"text\":\"abc\"}" },
                { "UTF-8, long",
                  BYTES("\x0a\x0e"
                        "abcdefgh\xc3\xa9"
                        "\xe2\x82\xac"
                        "x"),
                  "{\"text\":\"abcdefgh\xc3\xa9\xe2\x82\xacx\"}" },
                { "control characters, which JSON escapes", BYTES("\x0a\x02\x01\n"),
                  "{\"text\":\"\\u0001\\n\"}" },
                { "an empty text is absent", BYTES("\x0a\x00"), "{}" },
                { "or kept", BYTES("\x5a\x00"), "{\"kept\":\"\"}" },
                { "an integer", BYTES("\x10\x96\x01"), "{\"n\":150}" },
                { "zero is there", BYTES("\x10\x00"), "{\"n\":0}" },
                { "below zero: ten bytes", BYTES("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                  "{\"n\":-1}" },
                { "above what an int holds", BYTES("\x10\x80\x80\x80\x80\x10"), "{\"n\":4294967296}" },
                { "true", BYTES("\x18\x01"), "{\"b\":true}" },
                { "any other number is true", BYTES("\x18\x80\x02"), "{\"b\":true}" },
                { "false", BYTES("\x18\x00"), "{\"b\":false}" },
                { "a message", BYTES("\x22\x03\x0a\x01x"), "{\"m\":{\"a\":\"x\"}}" },
                { "an empty message is an object", BYTES("\x22\x00"), "{\"m\":{}}" },
                { "an inline message", BYTES("\x2a\x03\x0a\x01y\x10\x01"), "{\"in\":\"y\",\"n\":1}" },
                { "a message inline of which only that it is there", BYTES("\x2a\x05\x12\x03\x0a\x01z"),
                  "{\"empty\":{}}" },
                { "a map", BYTES("\x32\x06\x0a\x01k\x12\x01v\x32\x05\x0a\x01l\x12\x00"),
                  "{\"map\":{\"k\":\"v\",\"l\":\"\"}}" },
                { "an entry without value, without key, out of order",
                  BYTES("\x32\x03\x0a\x01k\x32\x03\x12\x01v\x32\x06\x12\x01w\x0a\x01j"),
                  "{\"map\":{\"k\":\"\",\"\":\"v\",\"j\":\"w\"}}" },
                { "quantities", BYTES("\x62\x0a\x0a\x01k\x12\x05\x0a\x03" "15m\x62\x05\x0a\x01l\x12\x00\x62\x03\x0a\x01m"),
                  "{\"quantities\":{\"k\":\"15m\",\"l\":\"\",\"m\":\"\"}}" },
                { "a quantity with more, the last text counts",
                  BYTES("\x62\x0d\x0a\x01k\x12\x08\x0a\x01" "1\x10\x07\x0a\x01" "2"), "{\"quantities\":{\"k\":\"2\"}}" },
                { "an entry with more", BYTES("\x32\x05\x0a\x01k\x18\x01"), "{\"map\":{\"k\":\"\"}}" },
                { "entries that others part", BYTES("\x32\x03\x0a\x01k\x10\x01\x32\x03\x0a\x01j"),
                  "{\"map\":{\"k\":\"\",\"j\":\"\"},\"n\":1}" },
                { "a time", BYTES("\x3a\x06\x08\x80\xa4\xa7\xda\x06"), "{\"t\":\"2027-01-15T08:00:00Z\"}" },
                { "fractions are passed over", BYTES("\x3a\x08\x08\x80\xa4\xa7\xda\x06\x10\x05"),
                  "{\"t\":\"2027-01-15T08:00:00Z\"}" },
                { "1970", BYTES("\x3a\x02\x08\x00"), "{\"t\":\"1970-01-01T00:00:00Z\"}" },
                { "the last second of a year of four digits", BYTES("\x3a\x07\x08\xff\x82\xd1\xff\xaf\x07"),
                  "{\"t\":\"9999-12-31T23:59:59Z\"}" },
                { "the next one", BYTES("\x3a\x07\x08\x80\x83\xd1\xff\xaf\x07"),
                  "{\"t\":\"@253402300800\"}" },
                { "no time", BYTES("\x3a\x00"), "{\"t\":null}" },
                { "a time without a year", BYTES("\x3a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                  "{\"t\":\"@-1\"}" },
                { "the last of all times", BYTES("\x3a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                  "{\"t\":\"@9223372036854775807\"}" },
                { "texts, empty ones too",
                  BYTES("\x42\x01"
                        "a\x42\x00\x42\x01"
                        "b"),
                  "{\"texts\":[\"a\",\"\",\"b\"]}" },
                { "messages",
                  BYTES("\x4a\x03\x0a\x01"
                        "a\x4a\x00\x4a\x02\x10\x07"),
                  "{\"ms\":[{\"a\":\"a\"},{},{\"n\":7}]}" },
                { "elements that others part",
                  BYTES("\x42\x01"
                        "a\x10\x01\x42\x01"
                        "b"),
                  "{\"texts\":[\"a\",\"b\"],\"n\":1}" },
                { "a large number", BYTES("\xe0\x12\x01"), "{\"far\":true}" },
                { "what is not asked for: each wire type",
                  BYTES("\x50\x80\x01\x51"
                        "12345678\x52\x02\xff\xff\x55"
                        "1234\x10\x01"),
                  "{\"n\":1}" },
                { "between two numbers that are asked for", BYTES("\x4a\x00\xd8\x12\x01\xe0\x12\x01"),
                  "{\"ms\":[{}],\"far\":true}" },
                { "the last one counts: numbers", BYTES("\x10\x01\x10\x02"), "{\"n\":2}" },
                { "texts",
                  BYTES("\x0a\x01"
                        "a\x10\x01\x0a\x01"
                        "b"),
                  "{\"text\":\"b\",\"n\":1}" },
                { "texts, then none",
                  BYTES("\x0a\x01"
                        "a\x0a\x00"),
                  "{\"text\":null}" },
                { "messages are not merged", BYTES("\x22\x03\x0a\x01x\x22\x02\x10\x01"),
                  "{\"m\":{\"n\":1}}" },
                { "times", BYTES("\x3a\x02\x08\x00\x3a\x02\x08\x01"), "{\"t\":\"1970-01-01T00:00:01Z\"}" },
                { "a byte that is no UTF-8",
                  BYTES("\x0a\x03"
                        "a\xff"
                        "b"),
                  "{\"text\":\"a" BAD "b\"}" },
                { "half a character at the end",
                  BYTES("\x0a\x09"
                        "abcdefgh\xc3"),
                  "{\"text\":\"abcdefgh" BAD "\"}" },
                { "a NUL",
                  BYTES("\x0a\x03"
                        "a\0b"),
                  "{\"text\":\"a" BAD "b\"}" },
                { "NULs in eight bytes, and other texts beside them",
                  BYTES("\x0a\x12"
                        "\0002345678"
                        "1234567\0xy"
                        "\x42\x01z\x42\x00"),
                  "{\"text\":\"" BAD "2345678"
                  "1234567" BAD "xy\",\"texts\":[\"z\",\"\"]}" },
                { "a key and a value, an element", BYTES("\x32\x06\x0a\x01\xff\x12\x01\x00\x42\x01\xfe"),
                  "{\"map\":{\"" BAD "\":\"" BAD "\"},\"texts\":[\"" BAD "\"]}" },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                _cleanup_free_ char *text = NULL, *copy = malloc(rows[i].size + 1);
                JsonError e = { 0 };
                int r;

                memcpy(copy, rows[i].bytes, rows[i].size); /* nothing of it is kept */
                r = json_from_protobuf(copy, rows[i].size, rows[i].size, &shape, &doc, &e);
                if (r < 0)
                        fail_msg("%s: %s at %zu", rows[i].what, e.message, e.offset);
                memset(copy, 'x', rows[i].size);
                text = json_format(json_root(doc));
                print_message("%s\n", rows[i].what);
                assert_string_equal(text, rows[i].expected);
        }
}

TEST_CASE(test_refused) {
        static const Row rows[] = {
                { "a tag cut off", BYTES("\x80"), "a varint is cut off", 1 },
                { "a number cut off", BYTES("\x10\xff"), "a varint is cut off", 2 },
                { "a number that is missing", BYTES("\x10"), "a varint is cut off", 1 },
                { "eleven bytes", BYTES("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
                  "a varint has more than 64 bits", 11 },
                { "bit 64", BYTES("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
                  "a varint has more than 64 bits", 11 },
                { "longer than what is left",
                  BYTES("\x0a\x03"
                        "ab"),
                  "a field is longer than what is left", 2 },
                { "longer than memory",
                  BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
                        "ab"),
                  "a field is longer than what is left", 11 },
                { "longer than its message", BYTES("\x22\x02\x0a\x01x"),
                  "a field is longer than what is left", 4 },
                { "eight bytes cut off",
                  BYTES("\x51"
                        "1234567"),
                  "a number is cut off", 1 },
                { "four bytes cut off",
                  BYTES("\x55"
                        "123"),
                  "a number is cut off", 1 },
                { "field 0", BYTES("\x02\x00"), "a field has no valid number", 1 },
                { "field 2^29", BYTES("\x80\x80\x80\x80\x10\x00"), "a field has no valid number", 5 },
                { "a group", BYTES("\x53\x54"), "a field has an unknown wire type", 1 },
                { "the end of a group", BYTES("\x54"), "a field has an unknown wire type", 1 },
                { "wire type 6", BYTES("\x56"), "a field has an unknown wire type", 1 },
                { "wire type 7", BYTES("\x57"), "a field has an unknown wire type", 1 },
                { "a text as a number", BYTES("\x08\x01"), "a field has the wrong wire type", 2 },
                { "a number as a text", BYTES("\x12\x01\x01"), "a field has the wrong wire type", 3 },
                { "a number in four bytes",
                  BYTES("\x15"
                        "1234"),
                  "a field has the wrong wire type", 5 },
                { "a message as a number", BYTES("\x20\x01"), "a field has the wrong wire type", 2 },
                { "an inline message as a number", BYTES("\x28\x01"), "a field has the wrong wire type", 2 },
                { "a map as a number", BYTES("\x30\x01"), "a field has the wrong wire type", 2 },
                { "a time as a number", BYTES("\x38\x01"), "a field has the wrong wire type", 2 },
                { "a quantity as a number", BYTES("\x62\x07\x0a\x01k\x12\x02\x08\x01"), "a quantity is no text", 9 },
                { "a quantity that is none", BYTES("\x62\x07\x0a\x01k\x12\x02\x0a\x05"),
                  "a field is longer than what is left", 9 },
                { "a resource twice", BYTES("\x62\x03\x0a\x01k\x62\x03\x0a\x01k"), "duplicate key", 0 },
                { "a key as a number", BYTES("\x32\x02\x08\x01"), "a map's key or value is no text", 4 },
                { "seconds as a text", BYTES("\x3a\x02\x0a\x00"), "a time's seconds are no varint", 4 },
                { "a time cut off", BYTES("\x3a\x01\x08"), "a varint is cut off", 3 },
                { "an entry cut off", BYTES("\x32\x01\x0a"), "a varint is cut off", 3 },
                { "two keys that become one", BYTES("\x22\x00\x32\x03\x0a\x01\xff\x32\x03\x0a\x01\xfe"),
                  "duplicate key", 0 },
                { "a key twice", BYTES("\x22\x00\x32\x03\x0a\x01k\x32\x03\x0a\x01k"), "duplicate key", 0 },
                { "an inline message twice", BYTES("\x2a\x00\x2a\x00"),
                  "a message that has to come once comes twice", 4 },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                _cleanup_free_ char *copy =
                        malloc(rows[i].size); /* a byte too far is seen by the sanitizer */
                JsonDoc *doc = NULL;
                JsonError e = { 0 };

                memcpy(copy, rows[i].bytes, rows[i].size);
                print_message("%s\n", rows[i].what);
                assert_int_equal(json_from_protobuf(copy, rows[i].size, rows[i].size, &shape, &doc, &e),
                                 -EBADMSG);
                assert_null(doc);
                assert_string_equal(e.message, rows[i].expected);
                assert_int_equal(e.offset, rows[i].offset);
                assert_int_equal(json_from_protobuf(copy, rows[i].size, rows[i].size, &shape, &doc, NULL),
                                 -EBADMSG);
        }
}

TEST_CASE(test_too_large) {
        JsonDoc *doc = NULL;
        JsonError e = { 0 };

        assert_int_equal(json_from_protobuf("\x10\x01", 2, 1, &shape, &doc, &e), -E2BIG);
        assert_string_equal(e.message, "too large");
        assert_int_equal(e.offset, 1);
}

/* More members than are compared each with each. */
TEST_CASE(test_large_map) {
        unsigned char bytes[5 * 101], *p = bytes;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        JsonDoc *none = NULL;

        for (unsigned char i = 0; i < 101; i++, p += 5) {
                const unsigned char entry[5] = { 0x32, 3, 0x0a, 1, i == 100 ? 1 : (unsigned char) (i + 1) };

                memcpy(p, entry, sizeof(entry));
        }
        assert_return_code(json_from_protobuf(bytes, sizeof(bytes) - 5, sizeof(bytes), &shape, &doc, NULL),
                           0);
        assert_int_equal(json_size(json_get(json_root(doc), "map")), 100);
        assert_int_equal(json_from_protobuf(bytes, sizeof(bytes), sizeof(bytes), &shape, &none, NULL),
                         -EBADMSG);
}

/* A shape may hold itself: no message goes deeper than a text of JSON may. */
TEST_CASE(test_depth) {
        static ProtobufField down_fields[] = { { 1, "d", PROTOBUF_MESSAGE, false, NULL } };
        static const ProtobufShape down = PROTOBUF_SHAPE(down_fields);
        unsigned char bytes[3 * JSON_MAX_DEPTH], *begin = bytes + sizeof(bytes);

        down_fields[0].shape = &down;
        for (size_t n = 1; n <= JSON_MAX_DEPTH; n++) { /* from the inside out */
                _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
                size_t inside = (size_t) (bytes + sizeof(bytes) - begin);
                JsonError e = { 0 };
                int r;

                if (inside >= 0x80)
                        *--begin = (unsigned char) (inside >> 7);
                *--begin = (unsigned char) ((inside & 0x7f) | (inside >= 0x80 ? 0x80 : 0));
                *--begin = 0x0a;
                r = json_from_protobuf(begin, (size_t) (bytes + sizeof(bytes) - begin), sizeof(bytes), &down,
                                       &doc, &e);
                assert_int_equal(r, n < JSON_MAX_DEPTH ? 0 : -EBADMSG);
                if (r < 0)
                        assert_string_equal(e.message, "nested too deeply");
        }
}

/* Beside each other they may be as many as they like. */
TEST_CASE(test_width) {
        static unsigned char bytes[5 * 10 * JSON_MAX_DEPTH];
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        for (size_t i = 0; i < sizeof(bytes); i += 5)
                memcpy(bytes + i, "\x4a\x03\x0a\x01x", 5);
        assert_return_code(json_from_protobuf(bytes, sizeof(bytes), sizeof(bytes), &shape, &doc, NULL), 0);
        assert_int_equal(json_size(json_get(json_root(doc), "ms")), 10 * JSON_MAX_DEPTH);
}

/* What json_parse() makes is asked in the same way. */
TEST_CASE(test_document) {
        static const char bytes[] = "\x0a\x01"
                                    "a\x10\x80\x80\x80\x80\x80\x80\x80\x20\x42\x01"
                                    "b\x42\x01"
                                    "c";
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *root;
        int64_t n;

        assert_return_code(json_from_protobuf(bytes, sizeof(bytes) - 1, 100, &shape, &doc, NULL), 0);
        root = json_root(doc);
        assert_int_equal(json_size(root), 3);
        assert_string_equal(json_key(json_first(root)), "text");
        assert_int_equal(json_int64(json_get(root, "n"), &n), -ERANGE); /* 2^54: no double's */
        assert_string_equal(json_string_or_null(json_next(json_first(json_get(root, "texts")))), "c");
        assert_null(json_get(root, "b"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_read),      cmocka_unit_test(test_refused),
                cmocka_unit_test(test_too_large), cmocka_unit_test(test_large_map),
                cmocka_unit_test(test_depth),     cmocka_unit_test(test_width),
                cmocka_unit_test(test_document),
        };

        return cmocka_run_group_tests_name("json-protobuf", tests, NULL, NULL);
}
