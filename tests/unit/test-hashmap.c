/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "hashmap.h"
#include "string-util.h"

#define N_MANY 20000

static void *number(uintptr_t n) {
        return (void *) n;
}

/* "k7" */
static const char *key(unsigned n, char ret[16]) {
        (void) snprintf(ret, 16, "k%u", n);
        return ret;
}

TEST_CASE(test_put_get_remove) {
        _cleanup_(hashmap_freep) Hashmap *m = NULL;
        const char *first;
        void *old;

        assert_null(hashmap_get(NULL, "a"));
        assert_int_equal(hashmap_size(NULL), 0);
        assert_return_code(hashmap_new(0, &m), 0);
        assert_null(hashmap_get(m, "a"));
        assert_null(hashmap_remove(m, "a"));
        assert_null(hashmap_first(m, NULL));

        assert_return_code(hashmap_put(m, "a", number(1)), 0);
        assert_return_code(hashmap_put(m, "b", NULL), 0); /* there, though without a value */
        assert_int_equal(hashmap_put(m, "a", number(2)), -EEXIST);
        assert_ptr_equal(hashmap_get(m, "a"), number(1));
        assert_true(hashmap_contains(m, "b"));
        assert_false(hashmap_contains(m, "c"));
        assert_ptr_equal(hashmap_first(m, &first), number(1));
        assert_string_equal(first, "a");

        assert_return_code(hashmap_replace(m, "a", number(3), &old), 0);
        assert_ptr_equal(old, number(1));
        assert_return_code(hashmap_replace(m, "c", number(4), &old), 0);
        assert_null(old);
        assert_ptr_equal(hashmap_remove(m, "a"), number(3));
        assert_int_equal(hashmap_size(m), 2);
        (void) hashmap_first(m, &first);
        assert_string_equal(first, "b");
        hashmap_clear(m);
        assert_int_equal(hashmap_size(m), 0);
        assert_return_code(hashmap_put(m, "a", number(5)), 0);
        assert_ptr_equal(hashmap_get(m, "a"), number(5));
        assert_ptr_equal(hashmap_first(m, &first), number(5)); /* after one whose first had gone */
        assert_string_equal(first, "a");
        assert_ptr_equal(hashmap_remove(m, "a"), number(5));
        assert_null(hashmap_first(m, NULL));
}

TEST_CASE(test_keys_are_copied) {
        _cleanup_(hashmap_freep) Hashmap *copies = NULL, *borrows = NULL;
        char a[] = "a", again[] = "a";
        const char *k;

        assert_return_code(hashmap_new(0, &copies), 0);
        assert_return_code(hashmap_put(copies, a, number(1)), 0);
        assert_ptr_not_equal((hashmap_first(copies, &k), k), a);

        assert_return_code(hashmap_new(HASHMAP_BORROW_KEYS, &borrows), 0);
        assert_return_code(hashmap_put(borrows, a, number(1)), 0);
        assert_ptr_equal((hashmap_first(borrows, &k), k), a);
        assert_return_code(hashmap_replace(borrows, again, number(2), NULL), 0);
        assert_ptr_equal((hashmap_first(borrows, &k), k), again);
}

/* Against a plain array that cannot be wrong. */
TEST_CASE(test_many_against_model) {
        _cleanup_(hashmap_freep) Hashmap *m = NULL;
        static bool there[512];
        uint64_t x = 88172645463325252u;
        size_t n = 0;
        char k[16];

        memset(there, 0, sizeof(there));
        assert_return_code(hashmap_new(0, &m), 0);
        for (unsigned round = 0; round < 200000; round++) {
                unsigned i;

                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                /* Fills up and empties in turns. */
                i = (unsigned) (x >> 20) % 512;
                if ((x & 3) != 0 ? (round / 20000) % 2 == 0 : (round / 20000) % 2 == 1) {
                        assert_int_equal(hashmap_put(m, key(i, k), number(i + 1)), there[i] ? -EEXIST : 0);
                        n += !there[i];
                        there[i] = true;
                } else {
                        assert_ptr_equal(hashmap_remove(m, key(i, k)), there[i] ? number(i + 1) : NULL);
                        n -= there[i];
                        there[i] = false;
                }
                assert_int_equal(hashmap_size(m), n);
        }
        for (unsigned i = 0; i < 512; i++)
                assert_ptr_equal(hashmap_get(m, key(i, k)), there[i] ? number(i + 1) : NULL);
}

TEST_CASE(test_order_is_that_of_insertion) {
        _cleanup_(hashmap_freep) Hashmap *m = NULL;
        unsigned expected = 0;
        char k[16];
        void *v;

        assert_return_code(hashmap_new(0, &m), 0);
        for (unsigned i = 0; i < N_MANY; i++)
                assert_return_code(hashmap_put(m, key(i, k), number(i + 1)), 0);
        for (unsigned i = 0; i < N_MANY; i++)
                if (i % 3 != 0)
                        assert_non_null(hashmap_remove(m, key(i, k)));
        /* Replacing keeps the place; removing and putting again moves to the end. */
        assert_return_code(hashmap_replace(m, "k3", number(4), NULL), 0);
        assert_non_null(hashmap_remove(m, "k0"));
        assert_return_code(hashmap_put(m, "k0", number(1)), 0);

        HASHMAP_FOREACH (v, m) {
                expected += 3;
                assert_ptr_equal(v, number((expected < N_MANY ? expected : 0) + 1));
        }
        assert_true(expected >= N_MANY);
}

TEST_CASE(test_removal_during_walk) {
        _cleanup_(hashmap_freep) Hashmap *m = NULL;
        HashmapIterator it = { 0 };
        unsigned seen = 0;
        const char *current;
        char k[16];
        void *v;

        assert_return_code(hashmap_new(0, &m), 0);
        for (unsigned i = 0; i < N_MANY; i++)
                assert_return_code(hashmap_put(m, key(i, k), number(i + 1)), 0);

        /* Most go, so that the map shrinks under the walk; nobody is left out or seen twice. */
        while (hashmap_iterate(m, &it, &current, &v)) {
                assert_ptr_equal(v, number(seen + 1));
                seen++;
                if (seen % 100 != 0)
                        assert_ptr_equal(hashmap_remove(m, key(seen - 1, k)), v);
        }
        assert_int_equal(seen, N_MANY);
        assert_int_equal(hashmap_size(m), N_MANY / 100);

        /* Everything, by the key that the walk returned. */
        it = (HashmapIterator){ 0 };
        while (hashmap_iterate(m, &it, &current, &v))
                assert_ptr_equal(hashmap_remove(m, current), v);
        assert_int_equal(hashmap_size(m), 0);
}

/* Putting during the walk may pack the entries; those that were there are still seen once each. */
TEST_CASE(test_insertion_during_walk) {
        _cleanup_(hashmap_freep) Hashmap *m = NULL;
        HashmapIterator it = { 0 };
        uintptr_t last = 0;
        unsigned added = 1000, seen_old = 0;
        char k[16];
        void *v;

        assert_return_code(hashmap_new(0, &m), 0);
        for (unsigned i = 0; i < 1000; i++)
                assert_return_code(hashmap_put(m, key(i, k), number(i + 1)), 0);
        for (unsigned i = 0; i < 1000; i += 2)
                assert_non_null(hashmap_remove(m, key(i, k)));

        while (hashmap_iterate(m, &it, NULL, &v)) {
                assert_true((uintptr_t) v > last);
                last = (uintptr_t) v;
                if (last > 1000)
                        continue;
                seen_old++;
                assert_return_code(hashmap_put(m, key(added, k), number(added + 1)), 0);
                added++;
                assert_non_null(hashmap_remove(m, key((unsigned) last - 1, k)));
        }
        assert_int_equal(seen_old, 500);
        assert_int_equal(hashmap_size(m), 500);
}

/* Packing in the middle of a walk leaves no gap that the walk would jump over. */
TEST_CASE(test_packing_during_walk) {
        for (unsigned n_gone = 1; n_gone < 400; n_gone += 7) {
                _cleanup_(hashmap_freep) Hashmap *m = NULL;
                HashmapIterator it = { 0 };
                unsigned seen = 0, added = 1000;
                char k[16];
                void *v;

                assert_return_code(hashmap_new(0, &m), 0);
                for (unsigned i = 0; i < 1000; i++)
                        assert_return_code(hashmap_put(m, key(i, k), number(i + 1)), 0);
                while (hashmap_iterate(m, &it, NULL, &v) && seen < 1000) {
                        assert_ptr_equal(v, number(seen + 1));
                        seen++;
                        if (seen != 500)
                                continue;
                        for (unsigned i = 0; i < n_gone; i++) /* behind it, but not the first */
                                assert_non_null(hashmap_remove(m, key(1 + i, k)));
                        for (unsigned i = 0; i < 50; i++, added++) /* it is full, and grows */
                                assert_return_code(hashmap_put(m, key(added, k), number(added + 1)), 0);
                }
                assert_int_equal(seen, 1000);
        }
}

/* A queue in a map: the oldest goes, a new one comes. */
TEST_CASE(test_first_stays_quick) {
        _cleanup_(hashmap_freep) Hashmap *m = NULL;
        char k[16];

        assert_return_code(hashmap_new(0, &m), 0);
        for (unsigned i = 0; i < 1000; i++)
                assert_return_code(hashmap_put(m, key(i, k), number(i + 1)), 0);
        for (unsigned i = 0; i < N_MANY; i++) {
                const char *first;

                assert_ptr_equal(hashmap_first(m, &first), number(i + 1));
                assert_ptr_equal(hashmap_remove(m, first), number(i + 1));
                assert_return_code(hashmap_put(m, key(i + 1000, k), number(i + 1001)), 0);
        }
}

typedef struct Member {
        Hashmap *map;
        char name[16];
} Member;

/* A value that takes itself out of the map, as children do from their parents. */
static void *member_free(void *value) {
        Member *member = value;

        assert_null(hashmap_remove(member->map, member->name));
        free(member);
        return NULL;
}

TEST_CASE(test_free_with) {
        Hashmap *m = NULL;

        assert_return_code(hashmap_new(HASHMAP_BORROW_KEYS, &m), 0);
        for (unsigned i = 0; i < 100; i++) {
                Member *member = new0(Member, 1);

                member->map = m;
                assert_return_code(hashmap_put(m, key(i, member->name), member), 0);
        }
        assert_null(hashmap_free_with(m, member_free));
        assert_null(hashmap_free_with(NULL, member_free));
}

/* In a process of its own, whose memory is short: every put that failed must have changed nothing. */
static int fill_until_memory_ends(void) {
        struct rlimit limit = { .rlim_cur = 64 << 20, .rlim_max = 64 << 20 };
        Hashmap *m = NULL;
        unsigned n = 0;
        char k[16];
        int r;

        if (hashmap_new(0, &m) < 0 || setrlimit(RLIMIT_AS, &limit) < 0)
                return 2;
        while ((r = hashmap_put(m, key(n, k), number(n + 1))) >= 0)
                n++;
        if (r != -ENOMEM || hashmap_size(m) != n || hashmap_contains(m, k))
                return 3;
        for (unsigned i = 0; i < n; i++)
                if (hashmap_get(m, key(i, k)) != number(i + 1))
                        return 4;
        for (unsigned i = 0; i < n; i++)
                if (hashmap_remove(m, key(i, k)) != number(i + 1))
                        return 5;
        if (hashmap_put(m, "again", number(1)) < 0)
                return 6;
        hashmap_free(m);
        return 0;
}

TEST_CASE(test_out_of_memory) {
        int status = 0;
        pid_t pid;

#if HAS_ASAN
        skip(); /* its shadow alone is larger than the limit */
#endif
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
                _exit(fill_until_memory_ends());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
}

TEST_CASE(test_hashes) {
        static const uint8_t seed[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
        uint8_t text[15];

        /* The vectors of the paper and of the FNV draft. */
        for (uint8_t i = 0; i < sizeof(text); i++)
                text[i] = i;
        assert_true(siphash24(text, sizeof(text), seed) == UINT64_C(0xa129ca6149be45e5));
        assert_true(siphash24(NULL, 0, seed) == UINT64_C(0x726fdb47dd0e0e31));
        assert_true(siphash24(text, 8, seed) == UINT64_C(0x93f5f5799a932462));
        assert_true(hash64("", 0) == UINT64_C(0xcbf29ce484222325));
        assert_true(hash64("foobar", 6) == UINT64_C(0x85944171f73967e8));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_put_get_remove),
                cmocka_unit_test(test_keys_are_copied),
                cmocka_unit_test(test_many_against_model),
                cmocka_unit_test(test_order_is_that_of_insertion),
                cmocka_unit_test(test_removal_during_walk),
                cmocka_unit_test(test_insertion_during_walk),
                cmocka_unit_test(test_packing_during_walk),
                cmocka_unit_test(test_first_stays_quick),
                cmocka_unit_test(test_free_with),
                cmocka_unit_test(test_out_of_memory),
                cmocka_unit_test(test_hashes),
        };
        return cmocka_run_group_tests_name("hashmap", tests, NULL, NULL);
}
