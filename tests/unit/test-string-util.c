/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka-test.h"
#include "file-util.h"
#include "intern.h"
#include "string-util.h"
#include "strv.h"

TEST_CASE(test_affixes) {
        assert_string_equal(startswith("vesper.sh/drain", "vesper.sh/"), "drain");
        assert_string_equal(startswith("abc", ""), "abc");
        assert_null(startswith("ab", "abc"));
        assert_string_equal(endswith("node.json", ".json"), ".json");
        assert_string_equal(endswith("node", ""), "");
        assert_null(endswith("n", "json"));
        assert_string_equal(full_stop("It ends"), ".");
        assert_string_equal(full_stop("It ends."), "");
        assert_string_equal(full_stop(NULL), "");
        assert_true(streq_ptr(NULL, NULL));
        assert_false(streq_ptr(NULL, ""));
        assert_true(streq_ptr("a", "a"));
        assert_true(isempty(NULL) && isempty("") && !isempty(" "));
}

TEST_CASE(test_strstrip) {
        static const struct {
                const char *text, *stripped;
        } rows[] = {
                { "", "" },    { " \t\n", "" }, { "a", "a" }, { "  a b\r\n", "a b" },
                { "a ", "a" }, { " a", "a" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[16];

                strcpy(text, rows[i].text);
                assert_string_equal(strstrip(text), rows[i].stripped);
        }
}

TEST_CASE(test_free_and_strdup) {
        _cleanup_free_ char *s = NULL;

        assert_return_code(free_and_strdup(&s, "one"), 0);
        assert_string_equal(s, "one");
        assert_return_code(free_and_strdup(&s, s), 0); /* its own text */
        assert_string_equal(s, "one");
        assert_return_code(free_and_strdup(&s, NULL), 0);
        assert_null(s);
}

TEST_CASE(test_utf8) {
        static const struct {
                const char *what, *text;
                bool valid;
        } rows[] = {
                { "nothing", "", true },
                { "ASCII", "node-1", true },
                { "the first of two bytes", "\xc2\x80", true },
                { "the last of two bytes", "\xdf\xbf", true },
                { "overlong of two bytes", "\xc1\xbf", false },
                { "the first of three bytes", "\xe0\xa0\x80", true },
                { "overlong of three bytes", "\xe0\x9f\xbf", false },
                { "before the surrogates", "\xed\x9f\xbf", true },
                { "the first surrogate", "\xed\xa0\x80", false },
                { "behind the surrogates", "\xee\x80\x80", true },
                { "the first of four bytes", "\xf0\x90\x80\x80", true },
                { "overlong of four bytes", "\xf0\x8f\xbf\xbf", false },
                { "U+10FFFF", "\xf4\x8f\xbf\xbf", true },
                { "U+110000", "\xf4\x90\x80\x80", false },
                { "a byte that begins nothing", "\xf5\x80\x80\x80", false },
                { "a continuation alone", "a\x80", false },
                { "cut short", "a\xe2\x82", false },
                { "a wrong third byte", "\xe2\x82\x41", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                assert_int_equal(utf8_is_valid(rows[i].text, strlen(rows[i].text)), rows[i].valid);
        }
        assert_true(utf8_is_valid("a\0b", 3));
}

TEST_CASE(test_dns1123) {
        static const struct {
                const char *name;
                bool valid;
        } rows[] = {
                { "a", true },     { "node-1.example.com", true },
                { "1", true },     { "a-b", true },
                { "", false },     { "-a", false },
                { "a-", false },   { ".a", false },
                { "a.", false },   { "a..b", false },
                { "a.-b", false }, { "a-.b", false },
                { "A", false },    { "a_b", false },
                { "a b", false },  { "\xc3\xa4", false },
        };
        char name[255];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("'%s'\n", rows[i].name);
                assert_int_equal(dns1123_subdomain_is_valid(rows[i].name), rows[i].valid);
        }
        assert_false(dns1123_subdomain_is_valid(NULL));
        memset(name, 'a', 254);
        name[254] = 0;
        assert_false(dns1123_subdomain_is_valid(name));
        name[253] = 0;
        assert_true(dns1123_subdomain_is_valid(name));
}

TEST_CASE(test_sanitize) {
        static const struct {
                const char *what, *text;
                size_t max_bytes;
                const char *result;
        } rows[] = {
                { "nothing", "", 10, "" },
                { "it fits exactly", "0123456789", 10, "0123456789" },
                { "one too many", "0123456789a", 10, "0123456..." },
                { "control characters", "a\nb\x1b[31m\x7f", 20, "a?b?[31m?" },
                { "and those beyond ASCII", "a\xc2\x9b" "2J\xe2\x80\xae" "b\xe2\x81\xa9", 20, "a??2J???b???" },
                { "every mark of the direction of reading", "\xd8\x9c\xe2\x80\x8e\xe2\x80\x8f" "a\xe2\x80\x8d", 20, "????????a\xe2\x80\x8d" },
                { "text beyond ASCII stays", "gr\xc3\xbc\xc3\x9f", 20, "gr\xc3\xbc\xc3\x9f" },
                { "cut before a character, not in it",
                  "aaaaaa\xc3\xbc"
                  "bbb",
                  10, "aaaaaa..." },
                { "bytes that are no text", "a\xff\xc3z", 10, "a??z" },
                { "no room for more than dots", "abcdef", 3, "..." },
                { "hardly room for dots", "abcdef", 2, ".." },
                { "no room", "abcdef", 0, "" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *s = str_sanitize(rows[i].text, rows[i].max_bytes);

                print_message("%s\n", rows[i].what);
                assert_string_equal(s, rows[i].result);
        }
}

TEST_CASE(test_strbuf) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        _cleanup_free_ char *s = NULL, *empty = NULL;
        char large[300];

        assert_string_equal(strbuf_str(&b), "");
        strbuf_add(&b, "a");
        strbuf_add_char(&b, 'b');
        strbuf_add_n(&b, "cde", 2);
        strbuf_addf(&b, "-%d-%s", 42, "x");
        assert_string_equal(strbuf_str(&b), "abcd-42-x");
        strbuf_truncate(&b, 2);
        assert_string_equal(strbuf_str(&b), "ab");

        memset(large, 'z', sizeof(large) - 1);
        large[sizeof(large) - 1] = 0;
        strbuf_addf(&b, "%s%s", large, large); /* more than there was room for */
        assert_int_equal(b.size, 2 + 2 * 299);
        s = strbuf_steal(&b);
        assert_int_equal(strlen(s), 2 + 2 * 299);
        assert_int_equal(b.size, 0);

        empty = strbuf_steal(&b);
        assert_string_equal(empty, "");
}

/* Of each size, so that some text fills what was allocated to the last byte. */
TEST_CASE(test_formatted_sizes) {
        char digits[600];

        for (size_t size = 0; size < sizeof(digits); size++) {
                _cleanup_strbuf_ StrBuf first = { 0 }, behind = { 0 };
                _cleanup_free_ char *s = NULL;

                memset(digits, '7', size);
                digits[size] = 0;
                s = strf("%s", digits);
                assert_string_equal(s, digits);
                strbuf_addf(&first, "%s", digits);
                assert_string_equal(strbuf_str(&first), digits);
                strbuf_add(&behind, "ab");
                strbuf_addf(&behind, "%s|", digits);
                strbuf_addf(&behind, "%s", "c");
                assert_int_equal(behind.size, size + 4);
                assert_int_equal(strlen(behind.data), size + 4);
                assert_string_equal(behind.data + size + 2, "|c");
        }
}

TEST_CASE(test_strbuf_failure_sticks) {
        StrBuf b = { 0 };

        strbuf_add(&b, "kept");
        strbuf_add_n(&b, "", SIZE_MAX - 2); /* cannot be had */
        strbuf_add(&b, "not added");
        assert_true(b.failed);
        assert_string_equal(strbuf_str(&b), "kept");
        assert_null(strbuf_steal(&b));
        assert_false(b.failed);
        assert_null(b.data);
}

TEST_CASE(test_encodings) {
        _cleanup_free_ char *plain = url_encode("a b/c?d=\xc3\xa4~._-", false),
                            *path = url_encode("a b/c", true);
        char hex[9];

        assert_string_equal(plain, "a%20b%2Fc%3Fd%3D%C3%A4~._-");
        assert_string_equal(path, "a%20b/c");
        hex_encode("\x00\x7f\xab\xff", 4, hex);
        assert_string_equal(hex, "007fabff");
}

TEST_CASE(test_base64) {
        static const struct {
                const char *text, *plain;
                size_t size;
                int r;
        } rows[] = {
                { "", "", 0, 0 },
                { "Zg==", "f", 1, 0 },
                { "Zm8=", "fo", 2, 0 },
                { "Zm9v", "foo", 3, 0 },
                { " Zm9v\nYmFy\r\n", "foobar", 6, 0 },
                { "AP/+", "\x00\xff\xfe", 3, 0 },
                { "Zg=", NULL, 0, -EBADMSG },  /* padding missing */
                { "Zg", NULL, 0, -EBADMSG },   /* none at all */
                { "Zh==", NULL, 0, -EBADMSG }, /* bits under the padding */
                { "Zm9=", NULL, 0, -EBADMSG },
                { "Z===", NULL, 0, -EBADMSG },
                { "====", NULL, 0, -EBADMSG },
                { "Zg==Zg==", NULL, 0, -EBADMSG }, /* something behind the end */
                { "Z=g=", NULL, 0, -EBADMSG },
                { "Zm-v", NULL, 0, -EBADMSG }, /* the other alphabet */
                { "Zm9\xff", NULL, 0, -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ void *data = NULL;
                size_t size = 0;

                print_message("'%s'\n", rows[i].text);
                assert_int_equal(base64_decode(rows[i].text, strlen(rows[i].text), &data, &size), rows[i].r);
                if (rows[i].r < 0)
                        continue;
                assert_int_equal(size, rows[i].size);
                assert_memory_equal(data, rows[i].plain, size + 1);
        }
        assert_int_equal(base64_decode("Zm\0v", 4, (void *[]){ NULL }, (size_t[]){ 0 }), -EBADMSG);

        for (size_t size = 0; size < 50; size++) {
                _cleanup_free_ char *text = NULL;
                _cleanup_free_ void *data = NULL;
                uint8_t bytes[50];
                size_t n;

                for (size_t i = 0; i < size; i++)
                        bytes[i] = (uint8_t) (i * 37 + size * 11);
                text = base64_encode(bytes, size);
                assert_return_code(base64_decode(text, strlen(text), &data, &n), 0);
                assert_int_equal(n, size);
                assert_memory_equal(data, bytes, size);
        }
}

TEST_CASE(test_strv) {
        _cleanup_strv_free_ char **l = NULL, **copy = NULL, **parts = NULL, **none = NULL,
                             **empty = NULL;
        _cleanup_free_ char *joined = NULL, *nothing = NULL, *blanks = NULL;

        assert_int_equal(strv_length(NULL), 0);
        assert_return_code(strv_extend(&l, "one"), 0);
        assert_return_code(strv_extend(&l, "two"), 0);
        copy = strv_copy(l);
        assert_int_equal(strv_length(copy), 2);
        assert_true(strv_contains(copy, "two"));
        assert_false(strv_contains(copy, "three"));
        assert_false(strv_contains(NULL, "three"));
        joined = strv_join(copy, ", ");
        assert_string_equal(joined, "one, two");
        assert_return_code(strv_extend(&empty, ""), 0);
        assert_return_code(strv_extend(&empty, ""), 0);
        assert_return_code(strv_extend(&empty, "x"), 0);
        blanks = strv_join(empty, ",");
        assert_string_equal(blanks, ",,x");
        nothing = strv_join(NULL, ", ");
        assert_string_equal(nothing, "");

        assert_return_code(strv_split(",,a, b ,c,", ", ", &parts), 0);
        assert_int_equal(strv_length(parts), 3);
        assert_string_equal(parts[1], "b");
        assert_return_code(strv_split(" , ", ", ", &none), 0);
        assert_int_equal(strv_length(none), 0);
}

TEST_CASE(test_alloc) {
        _cleanup_free_ uint64_t *p = NULL;
        size_t allocated = 0;
        void *before;

        assert_return_code(GREEDY_REALLOC(p, allocated, 3), 0);
        assert_int_equal(allocated, 8);
        assert_return_code(GREEDY_REALLOC(p, allocated, 8), 0);
        assert_int_equal(allocated, 8); /* there is room */
        assert_return_code(GREEDY_REALLOC(p, allocated, 9), 0);
        assert_int_equal(allocated, 16);
        before = p;
        assert_int_equal(GREEDY_REALLOC(p, allocated, SIZE_MAX / 4), -ENOMEM);
        assert_ptr_equal(p, before);
        assert_null(memdup_str("", SIZE_MAX));
        assert_null(erase_and_free(NULL, 10));
        assert_null(erase_and_free(memdup("secret", 6), 6));
}

TEST_CASE(test_intern) {
        _cleanup_(intern_pool_freep) InternPool *p = NULL;
        const char *a, *b, *c;
        char long_text[600];

        assert_return_code(intern_pool_new(&p), 0);
        a = intern(p, "default");
        b = intern_n(p, "default-and-more", 7);
        c = intern(p, "kube-system");
        assert_ptr_equal(a, b);
        assert_ptr_not_equal(a, c);
        assert_int_equal(intern_pool_size(p), 2);

        memset(long_text, 'x', sizeof(long_text));
        assert_int_equal(strlen(intern_n(p, long_text, 256)), 256);
        assert_int_equal(strlen(intern_n(p, long_text, 255)), 255);
        assert_string_equal(intern_n(p, NULL, 0), "");
        long_text[256] = 0;
        intern_unref(p, intern(p, long_text));
        assert_int_equal(intern_pool_size(p), 5);

        /* Each has its first reference and the one that finds it. */
        for (size_t size = 0; size <= 256; size += size == 0 ? 255 : 1) {
                const char *s = intern_n(p, long_text, size);

                intern_unref(p, s);
                intern_unref(p, s);
        }

        intern_unref(p, b);
        assert_int_equal(intern_pool_size(p), 2);
        intern_unref(p, b);
        assert_int_equal(intern_pool_size(p), 1);
        intern_unref(p, c);
        intern_unref(p, NULL);
        assert_int_equal(intern_pool_size(p), 0);
}

TEST_CASE(test_read_file) {
        static const char text[] = "twelve bytes";
        _cleanup_free_ char *data = NULL, *proc = NULL;
        char path[] = "/tmp/test-read-file-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        size_t size;

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, 12), 12);
        assert_int_equal(read_file(path, 11, &data, &size), -E2BIG);
        assert_return_code(read_file(path, 12, &data, &size), 0);
        assert_int_equal(size, 12);
        assert_string_equal(data, text);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(read_file(path, 12, &data, &size), -ENOENT);
        assert_int_equal(read_file("/tmp", 12, &data, &size), -EISDIR);
        assert_int_equal(read_file("/dev/null", 12, &data, &size), -EINVAL);

        /* No size is known of it beforehand. */
        assert_return_code(read_file("/proc/self/status", 65536, &proc, NULL), 0);
        assert_non_null(strstr(proc, "Name:"));
        assert_int_equal(read_file("/proc/self/status", 10, &data, NULL), -E2BIG);
}

/* The first and last code points of each range of controls, and their neighbours. */
TEST_CASE(test_controls) {
        static const struct {
                const char *s;
                bool is;
        } rows[] = {
                { "\x1f", true },         { " ", false },            { "~", false },            { "\x7f", true },
                { "\xc2\x80", true },     { "\xc2\x9f", true },     { "\xc2\xa0", false },    { "\xd8\x9b", false },
                { "\xd8\x9c", true },     { "\xd8\x9d", false },    { "\xe2\x80\x8d", false }, { "\xe2\x80\x8e", true },
                { "\xe2\x80\x8f", true }, { "\xe2\x80\x90", false }, { "\xe2\x80\xa7", false }, { "\xe2\x80\xa8", true },
                { "\xe2\x80\xae", true }, { "\xe2\x80\xaf", false }, { "\xe2\x81\xa5", false }, { "\xe2\x81\xa6", true },
                { "\xe2\x81\xa9", true }, { "\xe2\x81\xaa", false }, { "\xe2\x82\xac", false }, { "\xf0\x9f\x98\x80", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("  row %zu\n", i);
                assert_int_equal(utf8_is_control(rows[i].s, strlen(rows[i].s)), rows[i].is);
        }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_controls),
                cmocka_unit_test(test_affixes),
                cmocka_unit_test(test_strstrip),
                cmocka_unit_test(test_free_and_strdup),
                cmocka_unit_test(test_utf8),
                cmocka_unit_test(test_dns1123),
                cmocka_unit_test(test_sanitize),
                cmocka_unit_test(test_strbuf),
                cmocka_unit_test(test_formatted_sizes),
                cmocka_unit_test(test_strbuf_failure_sticks),
                cmocka_unit_test(test_encodings),
                cmocka_unit_test(test_base64),
                cmocka_unit_test(test_strv),
                cmocka_unit_test(test_alloc),
                cmocka_unit_test(test_intern),
                cmocka_unit_test(test_read_file),
        };
        return cmocka_run_group_tests_name("string-util", tests, NULL, NULL);
}
