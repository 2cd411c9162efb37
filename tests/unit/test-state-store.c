/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc-util.h"
#include "cmocka-test.h"
#include "state-store.h"
#include "string-util.h"

/* A store in "state" of a folder of its own, which goes with it. */
typedef struct Place {
        char folder[32];
        char *path;
        StateStore *store;
} Place;

static void place_init(Place *p) {
        *p = (Place){ .folder = "/tmp/test-state-XXXXXX" };
        assert_non_null(mkdtemp(p->folder));
        p->path = strf("%s/state", p->folder);
        assert_return_code(state_store_new_directory(p->path, &p->store), 0);
}

/* Returns how many files there were. */
static unsigned place_done(Place *p) {
        struct dirent *entry;
        unsigned n = 0;
        DIR *d;

        state_store_free(p->store);
        d = opendir(p->path);
        assert_non_null(d);
        while ((entry = readdir(d)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, "..")) {
                        assert_int_equal(unlinkat(dirfd(d), entry->d_name, 0), 0);
                        n++;
                }
        closedir(d);
        assert_int_equal(rmdir(p->path), 0);
        assert_int_equal(rmdir(p->folder), 0);
        free(p->path);
        return n;
}

static void expect(StateStore *s, const char *name, const char *text) {
        _cleanup_free_ char *data = NULL;
        size_t size = 0;

        assert_return_code(state_store_read(s, name, &data, &size), 0);
        assert_int_equal(size, strlen(text));
        assert_string_equal(data, text);
}

TEST_CASE(test_write_read) {
        StateStore *again = NULL;
        struct stat st;
        char *data;
        size_t size;
        Place p;

        place_init(&p);
        assert_int_equal(state_store_read(p.store, "intent", &data, &size), -ENOENT);
        assert_return_code(state_store_write(p.store, "intent", "one", 3), 0);
        expect(p.store, "intent", "one");
        assert_return_code(state_store_write(p.store, "intent", "a longer two", 12), 0);
        expect(p.store, "intent", "a longer two");
        assert_return_code(state_store_write(p.store, "intent", "", 0), 0);
        expect(p.store, "intent", "");
        assert_return_code(state_store_write(p.store, "a.b-c", "other", 5), 0);

        /* Another process finds it. */
        assert_return_code(state_store_new_directory(p.path, &again), 0);
        expect(again, "a.b-c", "other");
        state_store_free(again);

        assert_int_equal(stat(p.path, &st), 0);
        assert_int_equal(st.st_mode & 07777, 0700);
        assert_int_equal(place_done(&p), 2); /* no temporary file is left */
}

TEST_CASE(test_names) {
        static const char *const bad[] = {
                "", ".", "..", "a/b", "../a", "A", "a b", "#a", "a\n", "\xc3\xa4"
        };
        char name[202], *data;
        size_t size;
        Place p;

        place_init(&p);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                print_message("'%s'\n", bad[i]);
                assert_int_equal(state_store_write(p.store, bad[i], "x", 1), -EINVAL);
                assert_int_equal(state_store_read(p.store, bad[i], &data, &size), -EINVAL);
        }
        memset(name, 'a', sizeof(name));
        name[201] = 0;
        assert_int_equal(state_store_write(p.store, name, "x", 1), -EINVAL);
        name[200] = 0;
        assert_return_code(state_store_write(p.store, name, "x", 1), 0);
        assert_int_equal(place_done(&p), 1);
}

TEST_CASE(test_size_limit) {
        _cleanup_free_ char *large = new0(char, STATE_RECORD_MAX_BYTES + 1), *data = NULL, *path = NULL;
        size_t size;
        FILE *f;
        Place p;

        place_init(&p);
        assert_return_code(state_store_write(p.store, "r", large, STATE_RECORD_MAX_BYTES), 0);
        assert_int_equal(state_store_write(p.store, "r", large, STATE_RECORD_MAX_BYTES + 1), -E2BIG);
        assert_return_code(state_store_read(p.store, "r", &data, &size), 0);
        assert_int_equal(size, STATE_RECORD_MAX_BYTES);

        /* One that somebody else made. */
        path = strf("%s/r", p.path);
        f = fopen(path, "a");
        assert_int_equal(fputc('x', f), 'x');
        assert_int_equal(fclose(f), 0);
        data = mfree(data);
        assert_int_equal(state_store_read(p.store, "r", &data, &size), -E2BIG);
        assert_int_equal(place_done(&p), 1);
}

/* A write that cannot be finished leaves the old record, and nothing else. */
TEST_CASE(test_failed_write) {
        _cleanup_free_ char *blocker = NULL, *target = NULL;
        Place p;

        place_init(&p);
        assert_return_code(state_store_write(p.store, "r", "old", 3), 0);
        blocker = strf("%s/#r", p.path); /* where the temporary file would be */
        assert_int_equal(mkdir(blocker, 0700), 0);
        assert_int_equal(state_store_write(p.store, "r", "new", 3), -EISDIR);
        expect(p.store, "r", "old");
        assert_int_equal(rmdir(blocker), 0);

        /* Nobody gets us to write through a link. */
        target = strf("%s/target", p.folder);
        assert_int_equal(symlink(target, blocker), 0);
        assert_int_equal(state_store_write(p.store, "r", "new", 3), -ELOOP);
        assert_int_equal(access(target, F_OK), -1);
        expect(p.store, "r", "old");
        (void) unlink(blocker);

        /* What a crash left behind is in nobody's way. */
        assert_int_equal(symlink("nowhere", blocker), 0);
        assert_int_equal(unlink(blocker), 0);
        assert_return_code(state_store_write(p.store, "r", "new", 3), 0);
        expect(p.store, "r", "new");
        assert_int_equal(place_done(&p), 1);
}

TEST_CASE(test_no_folder) {
        StateStore *s = NULL;

        assert_int_equal(state_store_new_directory("/nonexistent/state", &s), -ENOENT);
        assert_int_equal(state_store_new_directory("/dev/null", &s), -ENOTDIR);
        assert_null(s);
        assert_null(state_store_free(NULL));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_write_read), cmocka_unit_test(test_names),
                cmocka_unit_test(test_size_limit),        cmocka_unit_test(test_failed_write),
                cmocka_unit_test(test_no_folder),
        };
        return cmocka_run_group_tests_name("state-store", tests, NULL, NULL);
}
