/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "intent-log.h"
#include "log.h"
#include "string-util.h"

#define T0 (UINT64_C(1800000000) * USEC_PER_SEC)

/* A machine with one file. */
typedef struct Machine {
        VirtualTime *time;
        Loop *loop;
        StateStore store;
        char *record;
        size_t n_writes;
        int error, read_error;
        bool hangs;
        char *waiting; /* what was written meanwhile */
        Log *log;
        StrBuf said;
        Env env;
} Machine;

static Machine *machine_of(StateStore *s) {
        return CONTAINER_OF(s, Machine, store);
}

static int disk_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        Machine *m = machine_of(s);

        if (m->hangs)
                return STATE_LATE;
        if (m->read_error < 0)
                return m->read_error;
        if (!m->record)
                return -ENOENT;
        *ret = strdup(m->record);
        *ret_size = strlen(m->record);
        return 0;
}

static int disk_write(StateStore *s, const char *name, const void *data, size_t size) {
        Machine *m = machine_of(s);

        m->n_writes++;
        if (m->hangs) {
                free(m->waiting);
                m->waiting = memdup_str(data, size);
                return STATE_LATE;
        }
        if (m->error < 0)
                return m->error;
        free(m->record);
        m->record = memdup_str(data, size);
        return 0;
}

/* The disk answers what it owes: a read if nothing was written meanwhile. */
static void disk_settles(Machine *m, int error) {
        StateSettled s = { .name = "intent.json",
                           .call = m->waiting ? STATE_WRITE : STATE_READ,
                           .result = error };

        m->hangs = false;
        if (m->waiting && error >= 0) {
                free(m->record);
                m->record = TAKE_PTR(m->waiting);
        } else if (!m->waiting && m->record) {
                s.data = m->record;
                s.size = strlen(m->record);
        } else if (!m->waiting && error >= 0)
                s.result = -ENOENT;
        m->waiting = mfree(m->waiting);
        m->store.on_settled(&s, m->store.settled_userdata);
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Machine *m = userdata;

        strbuf_addf(&m->said, "%s\n", text);
}

static size_t count(const char *text, const char *what) {
        size_t n = 0;

        for (const char *at = text; (at = strstr(at, what)); at++)
                n++;
        return n;
}

static const StateStoreOps disk_ops = { .read = disk_read, .write = disk_write };

static void machine_init(Machine *m) {
        *m = (Machine){ .store = { .ops = &disk_ops } };
        assert_return_code(virtual_time_new(T0, &m->time), 0);
        assert_return_code(loop_new_virtual(m->time, &m->loop), 0);
        assert_return_code(log_new(LOG_TARGET_NULL, LOG_LEVEL_INFO, "test", &m->log), 0);
        log_set_hook(m->log, on_log, m);
        m->env = (Env){ .loop = m->loop, .log = m->log, .state = &m->store, .boot_id = "boot-1" };
}

static void machine_done(Machine *m) {
        loop_free(m->loop);
        virtual_time_free(m->time);
        free(m->record);
        free(m->waiting);
        log_free(m->log);
        strbuf_done(&m->said);
}
#define _cleanup_machine_ _cleanup_(machine_done)

static void run(Machine *m, usec_t usec) {
        usec_t until = usec_add(virtual_time_now(m->time), usec);

        while (virtual_time_step(m->time, until) > 0)
                ;
}

static Notice notice(const char *id) {
        return (Notice){ .id = (char *) (uintptr_t) id,
                         .kind = NOTICE_SPOT,
                         .source = (char *) (uintptr_t) "ec2",
                         .action = (char *) (uintptr_t) "stop",
                         .deadline_usec = T0 };
}

static IntentLog *open_log(Machine *m) {
        IntentLog *l;

        assert_return_code(intent_log_new(&m->env, &l), 0);
        return l;
}

static void test_survives(void **state) {
        _cleanup_machine_ Machine m;
        IntentLog *l;
        Notice a = notice("a"), b = notice("b");

        machine_init(&m);
        l = open_log(&m);
        assert_null(intent_log_find(l, "a"));
        intent_log_note(l, &a, INTENT_DRAINING, T0 + 5 * USEC_PER_SEC);
        intent_log_note(l, &b, INTENT_RELEASED, 0);
        intent_log_note(l, &a, INTENT_DRAINED, T0 + 5 * USEC_PER_SEC);
        assert_int_equal(m.n_writes, 3);
        intent_log_free(l);

        l = open_log(&m);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_DRAINED);
        assert_true(intent_log_find(l, "a")->since_usec == T0 + 5 * USEC_PER_SEC);
        assert_true(intent_log_find(l, "a")->notice->deadline_usec == T0);
        assert_int_equal(intent_log_find(l, "b")->phase, INTENT_RELEASED);
        intent_log_forget(l, "a");
        intent_log_forget(l, "never heard of");
        assert_null(intent_log_find(l, "a"));
        intent_log_free(l);

        l = open_log(&m);
        assert_null(intent_log_find(l, "a"));
        assert_non_null(intent_log_find(l, "b"));
        intent_log_free(l);
}

static void test_another_boot(void **state) {
        _cleanup_machine_ Machine m;
        Notice a = notice("a");
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        intent_log_note(l, &a, INTENT_DRAINED, T0);
        intent_log_free(l);
        m.env.boot_id = "boot-2";
        l = open_log(&m);
        assert_null(intent_log_find(l, "a"));
        intent_log_free(l);
}

/* What the annotation says too does not make an eviction wait for the disk. */
static void test_soon(void **state) {
        _cleanup_machine_ Machine m;
        Notice a = notice("a");
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        intent_log_note_soon(l, &a, INTENT_CORDONED, 0);
        intent_log_note_soon(l, &a, INTENT_DRAINING, T0);
        assert_int_equal(m.n_writes, 0);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_DRAINING);
        run(&m, USEC_PER_SEC);
        assert_int_equal(m.n_writes, 1);
        assert_non_null(strstr(m.record, "Draining"));
        intent_log_free(l);
}

static void test_bounded(void **state) {
        _cleanup_machine_ Machine m;
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        for (unsigned i = 0; i < INTENTS_MAX + 3; i++) {
                _cleanup_free_ char *id = strf("n%u", i);
                Notice n = notice(id);

                intent_log_note(l, &n, INTENT_DRAINED, T0);
        }
        assert_null(intent_log_find(l, "n2"));
        assert_non_null(intent_log_find(l, "n3"));
        intent_log_free(l);
        l = open_log(&m);
        assert_non_null(intent_log_find(l, "n18"));
        intent_log_free(l);
}

static void test_failing_disk(void **state) {
        _cleanup_machine_ Machine m;
        Notice a = notice("a");
        IntentLog *l;

        machine_init(&m);
        m.error = -ENOSPC;
        l = open_log(&m);
        intent_log_note(l, &a, INTENT_DRAINED, T0);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_DRAINED);
        m.error = 0;
        intent_log_note(l, &a, INTENT_DRAINED, T0);
        assert_non_null(m.record);
        intent_log_free(l);

        /* No disk at all. */
        m.env.state = NULL;
        l = open_log(&m);
        intent_log_note(l, &a, INTENT_RELEASED, 0);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_RELEASED);
        intent_log_free(l);
}

/* A disk that hangs is said once, when it has for 2 s, and so is that it answers. */
static void test_hanging_disk(void **state) {
        _cleanup_machine_ Machine m;
        Notice a = notice("a"), b = notice("b");
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        m.hangs = true;
        intent_log_note(l, &a, INTENT_DRAINING, T0);
        run(&m, USEC_PER_SEC);
        intent_log_note(l, &a, INTENT_DRAINED, T0);
        assert_int_equal(count(strbuf_str(&m.said), "hangs"), 0);
        run(&m, USEC_PER_SEC);
        assert_int_equal(count(strbuf_str(&m.said), "hangs: the intent log is not written"), 1);
        run(&m, USEC_PER_MINUTE);
        intent_log_note_soon(l, &b, INTENT_RELEASED, 0);
        run(&m, USEC_PER_MINUTE);
        assert_int_equal(count(strbuf_str(&m.said), "\n"), 1);
        assert_int_equal(m.n_writes, 3);
        assert_null(m.record);

        disk_settles(&m, 0);
        assert_int_equal(
                count(strbuf_str(&m.said), "answers again, after 2min 2s: the intent log is written"), 1);
        assert_non_null(strstr(m.record, "Drained"));
        assert_non_null(strstr(m.record, "Released"));

        /* One that is slow only is not said at all. */
        m.hangs = true;
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        run(&m, USEC_PER_SEC);
        disk_settles(&m, 0);
        m.hangs = true;
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        run(&m, USEC_PER_SEC);
        m.hangs = false;
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        run(&m, USEC_PER_MINUTE);
        assert_int_equal(count(strbuf_str(&m.said), "\n"), 2);

        /* It answers, and has failed. */
        m.hangs = true;
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        run(&m, USEC_PER_MINUTE);
        disk_settles(&m, -EIO);
        assert_int_equal(count(strbuf_str(&m.said), "hangs"), 2);
        assert_int_equal(count(strbuf_str(&m.said), "answers again"), 2);
        assert_int_equal(count(strbuf_str(&m.said), "Failed to write the intent log"), 1);
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        assert_int_equal(count(strbuf_str(&m.said), "can be written again"), 1);

        /* It answers another write, in time, and for want of memory of its own: it hangs no more. */
        m.hangs = true;
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        run(&m, USEC_PER_SEC);
        m.hangs = false;
        m.error = -ENOMEM;
        intent_log_note(l, &a, INTENT_RELEASED, T0);
        run(&m, USEC_PER_MINUTE);
        assert_int_equal(count(strbuf_str(&m.said), "hangs"), 2);
        intent_log_free(l);
        assert_null(m.store.on_settled);
}

/* A record that comes late: what is newer holds, what was forgotten stays so, and nothing is written over it
 * before. */
static void test_read_late(void **state) {
        _cleanup_machine_ Machine m;
        Notice a = notice("a"), b = notice("b"), c = notice("c"), d = notice("d");
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        intent_log_note(l, &a, INTENT_RELEASED, 0);
        intent_log_note(l, &b, INTENT_DRAINING, T0);
        intent_log_note(l, &c, INTENT_DRAINED, T0);
        intent_log_free(l);
        assert_int_equal(m.n_writes, 3);

        m.hangs = true;
        l = open_log(&m);
        run(&m, 0);
        assert_int_equal(count(strbuf_str(&m.said), "hangs: the intent log cannot be read"), 1);
        assert_null(intent_log_find(l, "a"));
        intent_log_note(l, &b, INTENT_DRAINED, T0);
        intent_log_note(l, &d, INTENT_CORDONED, 0);
        intent_log_forget(l, "c");
        run(&m, USEC_PER_MINUTE);
        assert_int_equal(m.n_writes, 3);
        disk_settles(&m, 0);
        assert_int_equal(count(strbuf_str(&m.said), "\n"), 2);
        assert_int_equal(m.n_writes, 4);
        intent_log_free(l);

        l = open_log(&m);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_RELEASED);
        assert_int_equal(intent_log_find(l, "b")->phase, INTENT_DRAINED);
        assert_null(intent_log_find(l, "c"));
        assert_int_equal(intent_log_find(l, "d")->phase, INTENT_CORDONED);
        intent_log_free(l);
}

/* A shutdown that is found again before the record is there: it has no more time than it had, unless that
 * was over. */
static void test_shutdown_read_late(void **state) {
        for (unsigned over = 0; over <= 1; over++)
                for (unsigned later = 0; later <= 2; later++) {
                        _cleanup_machine_ Machine m;
                        Notice first = notice("shutdown-boot-1"), again = notice("shutdown-boot-1");
                        usec_t expected;
                        IntentLog *l;

                        print_message("over: %u, later: %u\n", over, later);
                        machine_init(&m);
                        first.kind = again.kind = NOTICE_SHUTDOWN;
                        again.deadline_usec = later ? T0 + USEC_PER_MINUTE : T0 - USEC_PER_MINUTE;
                        expected = over ? again.deadline_usec : MIN(T0, again.deadline_usec);
                        if (later == 2) { /* by a clock that was set since: it is earlier */
                                first.booted_usec = T0 - USEC_PER_HOUR;
                                again.booted_usec = T0;
                                expected = again.deadline_usec;
                        }
                        l = open_log(&m);
                        intent_log_note(l, &first, INTENT_DRAINING, T0);
                        intent_log_free(l);
                        m.hangs = true;
                        l = open_log(&m);
                        if (over)
                                intent_log_forget(l, first.id);
                        intent_log_note(l, &again, INTENT_CORDONED, 0);
                        disk_settles(&m, 0);
                        assert_true(intent_log_find(l, first.id)->notice->deadline_usec == expected);
                        intent_log_free(l);
                        l = open_log(&m);
                        assert_true(intent_log_find(l, first.id)->notice->deadline_usec == expected);
                        intent_log_free(l);
                }
}

/* Nothing was noted meanwhile: nothing is written. Or there is no record, or none that can be read. */
static void test_read_late_and_alone(void **state) {
        static const struct {
                const char *record;
                int error;
                size_t n_said;
        } rows[] = {
                { NULL, 0, 2 },
                { "{\"version\":1,\"bootID\":\"boot-0\",\"notices\":[]}", 0, 2 },
                { "{\"version\":1,\"bootID\":\"boot-1\",\"notices\":[]}", 0, 2 },
                { "{\"version\":1,\"boo", 0, 3 },
                { NULL, -EIO, 3 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_machine_ Machine m;
                IntentLog *l;

                machine_init(&m);
                m.record = rows[i].record ? strdup(rows[i].record) : NULL;
                m.hangs = true;
                l = open_log(&m);
                run(&m, 0);
                disk_settles(&m, rows[i].error);
                assert_int_equal(m.n_writes, 0);
                assert_int_equal(count(strbuf_str(&m.said), "\n"), rows[i].n_said);
                intent_log_free(l);
        }
}

/* Those of the record are the older ones. */
static void test_read_late_bounded(void **state) {
        _cleanup_machine_ Machine m;
        IntentLog *l;

        machine_init(&m);
        for (unsigned life = 0; life < 2; life++) {
                m.hangs = life > 0;
                l = open_log(&m);
                for (unsigned i = 0; i < 10; i++) {
                        _cleanup_free_ char *id = strf("%c%u", 'a' + (int) life, i);
                        Notice n = notice(id);

                        intent_log_note(l, &n, INTENT_DRAINED, T0);
                }
                if (m.hangs)
                        disk_settles(&m, 0);
                assert_null(life > 0 ? intent_log_find(l, "a3") : NULL);
                assert_non_null(intent_log_find(l, "a4"));
                intent_log_free(l);
        }
}

static void test_parse(void **state) {
        static const struct {
                const char *what, *text;
                int result;
        } rows[] = {
                { "nothing in it", "{\"version\":1,\"bootID\":\"b\",\"notices\":[]}", 0 },
                { "what a later one adds is passed over",
                  "{\"version\":1,\"bootID\":\"b\",\"notices\":[],\"more\":{}}", 0 },
                { "a later version", "{\"version\":2,\"bootID\":\"b\",\"notices\":[]}", -ENOTSUP },
                { "no version", "{\"bootID\":\"b\",\"notices\":[]}", -EINVAL },
                { "no boot id", "{\"version\":1,\"notices\":[]}", -EINVAL },
                { "an empty boot id", "{\"version\":1,\"bootID\":\"\",\"notices\":[]}", -EINVAL },
                { "no list", "{\"version\":1,\"bootID\":\"b\"}", -EINVAL },
                { "an empty notice", "{\"version\":1,\"bootID\":\"b\",\"notices\":[{}]}", -EINVAL },
                { "an unknown phase",
                  "{\"version\":1,\"bootID\":\"b\",\"notices\":[{\"id\":\"a\",\"kind\":\"spot\",\"source\":"
                  "\"ec2\",\"phase\":\"Dry\"}]}",
                  -EINVAL },
                { "an unreadable time",
                  "{\"version\":1,\"bootID\":\"b\",\"notices\":[{\"id\":\"a\",\"kind\":\"spot\",\"source\":"
                  "\"ec2\","
                  "\"phase\":\"Drained\",\"since\":\"then\"}]}",
                  -EINVAL },
                { "torn", "{\"version\":1,\"bootID\":\"b\",\"noti", -EBADMSG },
                { "empty", "", -EBADMSG },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(intent_record_done) IntentRecord r = { 0 };

                print_message("%s\n", rows[i].what);
                assert_int_equal(intent_record_parse(rows[i].text, strlen(rows[i].text), &r),
                                 rows[i].result);
        }
}

static void test_phases(void **state) {
        for (IntentPhase p = 0; p < _INTENT_PHASE_MAX; p++)
                assert_int_equal(intent_phase_from_string(intent_phase_to_string(p)), p);
        assert_int_equal(intent_phase_from_string("Dry"), _INTENT_PHASE_INVALID);
}

/* Forgotten while its record was unread, and nothing noted beside: the next start must not find it. */
static void test_forgotten_alone(void **state) {
        _cleanup_machine_ Machine m;
        Notice c = notice("c");
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        intent_log_note(l, &c, INTENT_DRAINED, T0);
        intent_log_free(l);
        m.hangs = true;
        l = open_log(&m);
        run(&m, 0);
        intent_log_forget(l, "c");
        disk_settles(&m, 0);
        run(&m, USEC_PER_MINUTE);
        assert_null(intent_log_find(l, "c"));
        intent_log_free(l);
        l = open_log(&m);
        assert_null(intent_log_find(l, "c"));
        intent_log_free(l);
}

/* The same where that record cannot be read now, but can by the next life. */
static void test_forgotten_unreadable(void **state) {
        for (unsigned late = 0; late <= 1; late++)
                for (unsigned forgotten = 0; forgotten <= 1; forgotten++) {
                        _cleanup_machine_ Machine m;
                        Notice c = notice("c");
                        IntentLog *l;

                        print_message("late: %u, forgotten: %u\n", late, forgotten);
                        machine_init(&m);
                        l = open_log(&m);
                        intent_log_note(l, &c, INTENT_DRAINED, T0);
                        intent_log_free(l);
                        m.hangs = late;
                        m.read_error = -EIO;
                        l = open_log(&m);
                        run(&m, 0);
                        if (forgotten)
                                intent_log_forget(l, "c");
                        if (late)
                                disk_settles(&m, -EIO);
                        run(&m, USEC_PER_MINUTE);
                        intent_log_forget(l, forgotten ? "d" : "c");
                        assert_int_equal(m.n_writes, 2); /* once is enough */
                        intent_log_forget(l, "d");
                        assert_int_equal(m.n_writes, 2);
                        intent_log_free(l);
                        m.read_error = 0;
                        l = open_log(&m);
                        assert_null(intent_log_find(l, "c"));
                        intent_log_free(l);
                }
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_survives),
                cmocka_unit_test(test_another_boot),
                cmocka_unit_test(test_soon),
                cmocka_unit_test(test_bounded),
                cmocka_unit_test(test_failing_disk),
                cmocka_unit_test(test_hanging_disk),
                cmocka_unit_test(test_read_late),
                cmocka_unit_test(test_read_late_and_alone),
                cmocka_unit_test(test_read_late_bounded),
                cmocka_unit_test(test_forgotten_alone),
                cmocka_unit_test(test_forgotten_unreadable),
                cmocka_unit_test(test_shutdown_read_late),
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_phases),
        };
        return cmocka_run_group_tests_name("intent-log", tests, NULL, NULL);
}
