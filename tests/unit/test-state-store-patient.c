/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "state-store.h"
#include "string-util.h"

#define FOREVER_USEC (60 * USEC_PER_SEC)
#define LATE_USEC (20 * USEC_PER_MSEC)

/* A disk that hangs while its gate is shut. It notes what is done to it, in that order. */
typedef struct Gate {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool shut, gone, hears_signals;
        int open_result, result; /* of each change */
        StrBuf done;
        StateStore store;
} Gate;

static Gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void gate_set(bool shut) {
        pthread_mutex_lock(&gate.lock);
        gate.shut = shut;
        pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
}

static int pass(const char *what, const char *name, const char *data, size_t size, int result) {
        sigset_t blocked;

        pthread_mutex_lock(&gate.lock);
        pthread_sigmask(SIG_SETMASK, NULL, &blocked);
        gate.hears_signals = gate.hears_signals || !sigismember(&blocked, SIGTERM);
        while (gate.shut)
                pthread_cond_wait(&gate.changed, &gate.lock);
        strbuf_addf(&gate.done, "%s%s %s%.*s", gate.done.size > 0 ? ", " : "", what, name, (int) size, data);
        pthread_mutex_unlock(&gate.lock);
        return result;
}

static int gate_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        int r = pass("read", name, "", 0, streq(name, "none") ? -ENOENT : 0);

        if (r < 0)
                return r;
        *ret = strdup("what was read");
        *ret_size = strlen(*ret);
        return 0;
}

static int gate_write(StateStore *s, const char *name, const void *data, size_t size) {
        return pass("write", name, data, size, gate.result);
}

static int gate_remove(StateStore *s, const char *name) {
        return pass("remove", name, "", 0, gate.result);
}

static void gate_free(StateStore *s) {
        pthread_mutex_lock(&gate.lock);
        gate.gone = true;
        pthread_cond_broadcast(&gate.changed);
        pthread_mutex_unlock(&gate.lock);
}

static const StateStoreOps gate_ops = {
        .read = gate_read, .write = gate_write, .remove = gate_remove, .free = gate_free
};

static int gate_open(const char *path, StateStore **ret) {
        int r = pass("open", path, "", 0, gate.open_result);

        gate.store.ops = &gate_ops;
        if (r >= 0)
                *ret = &gate.store;
        return r;
}

static void gate_wait_gone(void) {
        pthread_mutex_lock(&gate.lock);
        while (!gate.gone)
                pthread_cond_wait(&gate.changed, &gate.lock);
        pthread_mutex_unlock(&gate.lock);
}

static void assert_done(const char *expected) {
        pthread_mutex_lock(&gate.lock);
        assert_string_equal(strbuf_str(&gate.done), expected);
        pthread_mutex_unlock(&gate.lock);
}

/* -- who asks ---------------------------------------------------------------------------------- */

typedef struct Asker {
        Loop *loop;
        StateStore *store;
        StrBuf told;
        size_t n_told;
} Asker;

static void on_settled(const StateSettled *s, void *userdata) {
        static const char *const calls[] = { "read", "write", "remove" };
        Asker *a = userdata;

        strbuf_addf(&a->told, "%s%s %s %d%s%.*s", a->n_told++ > 0 ? ", " : "", calls[s->call], s->name,
                    s->result, s->data ? " " : "", s->data ? (int) s->size : 0, strempty(s->data));
}

static int start(Asker *a, usec_t read_usec, usec_t change_usec) {
        const StatePatience patience = { read_usec, change_usec };
        int r;

        *a = (Asker){ 0 };
        gate.gone = gate.hears_signals = false;
        assert_return_code(loop_new(&a->loop), 0);
        r = state_store_new_patient(a->loop, "/p", gate_open, &patience, &a->store);
        if (r >= 0)
                state_store_on_settled(a->store, on_settled, a);
        return r;
}

static void stop(Asker *a) {
        a->store = state_store_free(a->store);
        loop_free(a->loop);
        strbuf_done(&a->told);
        gate_set(false);
        if (gate.store.ops)
                gate_wait_gone();
        assert_false(gate.hears_signals);
        strbuf_done(&gate.done);
        gate.store.ops = NULL;
        gate.result = gate.open_result = 0;
}

static void hear(Asker *a, size_t n) {
        while (a->n_told < n)
                assert_return_code(loop_iterate(a->loop, FOREVER_USEC), 0);
}

static int put(Asker *a, const char *name, const char *text) {
        return state_store_write(a->store, name, text, strlen(text));
}

/* -- tests ------------------------------------------------------------------------------------- */

static void test_in_time(void **state) {
        char *data;
        size_t size;
        Asker a;

        assert_return_code(start(&a, FOREVER_USEC, FOREVER_USEC), 0);
        assert_return_code(put(&a, "a", "1"), 0);
        assert_return_code(state_store_read(a.store, "a", &data, &size), 0);
        assert_string_equal(data, "what was read");
        assert_int_equal(size, strlen(data));
        free(data);
        assert_int_equal(state_store_read(a.store, "none", &data, &size), -ENOENT);
        assert_return_code(state_store_write(a.store, "empty", NULL, 0), 0);
        assert_return_code(state_store_remove(a.store, "a"), 0);
        gate.result = -ENOSPC;
        assert_int_equal(put(&a, "a", "2"), -ENOSPC);
        assert_int_equal(state_store_remove(a.store, "a"), -ENOSPC);
        assert_int_equal(state_store_write(a.store, "a", "x", STATE_RECORD_MAX_BYTES + 1), -E2BIG);
        assert_done("open /p, write a1, read a, read none, write empty, remove a, write a2, remove a");
        assert_int_equal(loop_iterate(a.loop, 0), 0);
        assert_int_equal(a.n_told, 0);
        stop(&a);
}

/* What is late is made in the order of asking, of each record only the last, and told once it is. */
static void test_late(void **state) {
        usec_t before;
        Asker a;

        assert_return_code(start(&a, FOREVER_USEC, 300 * USEC_PER_MSEC), 0);
        gate_set(true);
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        before = loop_now(a.loop);
        assert_int_equal(put(&a, "a", "2"), STATE_LATE);
        assert_int_equal(put(&a, "b", "1"), STATE_LATE);
        assert_int_equal(state_store_remove(a.store, "c"), STATE_LATE);
        assert_int_equal(put(&a, "c", "1"), STATE_LATE);
        for (unsigned i = 0; i < 100; i++)
                assert_int_equal(put(&a, "a", "3"), STATE_LATE);
        assert_int_equal(put(&a, "a", "4"), STATE_LATE);
        assert_int_equal(put(&a, "d", "1"), STATE_LATE);
        assert_int_equal(state_store_remove(a.store, "d"), STATE_LATE);
        /* Only the first waited: else these would have been 30 s. */
        assert_true(usec_sub(loop_now(a.loop), before) < 10 * USEC_PER_SEC);
        assert_done("open /p");

        gate_set(false);
        hear(&a, 4);
        assert_done("open /p, write a1, write b1, write c1, write a4, remove d");
        assert_string_equal(strbuf_str(&a.told), "write b 0, write c 0, write a 0, remove d 0");
        stop(&a);
}

/* An answer that nobody has heard yet is not told any more once a newer change was asked for. */
static void test_late_and_overtaken(void **state) {
        Asker a;

        assert_return_code(start(&a, FOREVER_USEC, LATE_USEC), 0);
        gate_set(true);
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        assert_int_equal(put(&a, "b", "1"), STATE_LATE);
        gate_set(false);
        for (int r = STATE_LATE; r != 0; r = put(&a, "a", "2"))
                assert_int_equal(r, STATE_LATE);
        hear(&a, 1);
        while (loop_iterate(a.loop, 0) > 0)
                ;
        assert_string_equal(strbuf_str(&a.told), "write b 0");
        stop(&a);
}

static void test_late_failure(void **state) {
        Asker a;

        assert_return_code(start(&a, FOREVER_USEC, LATE_USEC), 0);
        gate_set(true);
        gate.result = -EIO;
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        gate_set(false);
        hear(&a, 1);
        assert_string_equal(strbuf_str(&a.told), "write a -5");
        state_store_on_settled(a.store, NULL, NULL);
        gate_set(true);
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        gate_set(false);
        assert_return_code(loop_iterate(a.loop, FOREVER_USEC), 0);
        assert_int_equal(a.n_told, 1);
        stop(&a);
}

static void test_read_late(void **state) {
        char *data;
        size_t size;
        Asker a;

        assert_return_code(start(&a, LATE_USEC, FOREVER_USEC), 0);
        gate_set(true);
        assert_int_equal(state_store_read(a.store, "a", &data, &size), STATE_LATE);
        assert_int_equal(state_store_read(a.store, "none", &data, &size), STATE_LATE);
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        gate_set(false);
        hear(&a, 3);
        assert_done("open /p, read a, read none, write a1");
        assert_string_equal(strbuf_str(&a.told), "read a 0 what was read, read none -2, write a 0");
        stop(&a);
}

static void test_open_late(void **state) {
        char *data;
        size_t size;
        Asker a;

        gate_set(true);
        assert_return_code(start(&a, LATE_USEC, FOREVER_USEC), 0);
        assert_int_equal(state_store_read(a.store, "a", &data, &size), STATE_LATE);
        gate_set(false);
        hear(&a, 1);
        assert_string_equal(strbuf_str(&a.told), "read a 0 what was read");
        stop(&a);
}

static void test_open_fails(void **state) {
        char *data;
        size_t size;
        Asker a;

        gate.open_result = -EACCES;
        assert_int_equal(start(&a, FOREVER_USEC, FOREVER_USEC), -EACCES);
        gate.store.ops = NULL;
        stop(&a);

        gate_set(true);
        gate.open_result = -EACCES;
        assert_return_code(start(&a, LATE_USEC, FOREVER_USEC), 0);
        assert_int_equal(state_store_read(a.store, "a", &data, &size), STATE_LATE);
        gate_set(false);
        hear(&a, 1);
        assert_int_equal(put(&a, "a", "1"), -EACCES);
        assert_string_equal(strbuf_str(&a.told), "read a -13");
        gate.store.ops = NULL;
        stop(&a);
}

/* The end of a process does not wait for a disk that hangs; what waits there is given up. */
static void test_end_while_it_hangs(void **state) {
        Asker a;

        assert_return_code(start(&a, FOREVER_USEC, LATE_USEC), 0);
        gate_set(true);
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        assert_int_equal(put(&a, "b", "1"), STATE_LATE);
        a.store = state_store_free(a.store);
        assert_done("open /p");
        assert_false(gate.gone);
        gate_set(false);
        gate_wait_gone();
        assert_done("open /p, write a1");
        stop(&a);
}

/* One that is slow only gets what is left. */
static void test_end_while_it_is_slow(void **state) {
        Asker a;

        assert_return_code(start(&a, FOREVER_USEC, USEC_PER_SEC), 0);
        gate_set(true);
        assert_int_equal(put(&a, "a", "1"), STATE_LATE);
        assert_int_equal(put(&a, "a", "2"), STATE_LATE);
        assert_int_equal(put(&a, "b", "1"), STATE_LATE);
        gate_set(false);
        a.store = state_store_free(a.store);
        assert_true(gate.gone);
        assert_done("open /p, write a1, write a2, write b1");
        stop(&a);
}

/* The real store behind it. */
static void test_folder(void **state) {
        char folder[] = "/tmp/vesper-patient-XXXXXX";
        _cleanup_free_ char *path = NULL, *record = NULL;
        const char *text = "kept";
        StateStore *s;
        Loop *loop;
        char *data;
        size_t size;

        assert_non_null(mkdtemp(folder));
        path = strf("%s/state", folder);
        record = strf("%s/intent", path);
        assert_return_code(loop_new(&loop), 0);
        assert_int_equal(
                state_store_new_patient(loop, "/nonexistent/state", state_store_new_directory, NULL, &s),
                -ENOENT);
        for (unsigned i = 0; i < 2; i++) {
                assert_return_code(state_store_new_patient(loop, path, state_store_new_directory, NULL, &s),
                                   0);
                if (i == 0)
                        assert_return_code(state_store_write(s, "intent", text, strlen(text)), 0);
                assert_return_code(state_store_read(s, "intent", &data, &size), 0);
                assert_string_equal(data, text);
                free(data);
                state_store_free(s);
        }
        loop_free(loop);
        assert_return_code(remove(record), 0);
        assert_return_code(remove(path), 0);
        assert_return_code(remove(folder), 0);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_in_time),
                cmocka_unit_test(test_late),
                cmocka_unit_test(test_late_and_overtaken),
                cmocka_unit_test(test_late_failure),
                cmocka_unit_test(test_read_late),
                cmocka_unit_test(test_open_late),
                cmocka_unit_test(test_open_fails),
                cmocka_unit_test(test_end_while_it_hangs),
                cmocka_unit_test(test_end_while_it_is_slow),
                cmocka_unit_test(test_folder),
        };

        return cmocka_run_group_tests_name("state-store-patient", tests, NULL, NULL);
}
