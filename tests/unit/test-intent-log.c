/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cmocka-test.h"
#include "intent-log.h"
#include "log.h"
#include "string-util.h"
#include "texts.h"

#define T0 (UINT64_C(1800000000) * USEC_PER_SEC)

/* A machine with one file. */
typedef struct Machine {
        VirtualTime *time;
        Loop *loop;
        StateStore store;
        char *record;
        size_t n_writes;
        int error, read_error;
        Log *log;
        StrBuf said;
        Env env;
} Machine;

static Machine *machine_of(StateStore *s) {
        return CONTAINER_OF(s, Machine, store);
}

static int disk_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        Machine *m = machine_of(s);

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
        if (m->error < 0)
                return m->error;
        free(m->record);
        m->record = memdup_str(data, size);
        return 0;
}

static void on_log(LogLevel level, const char *message_id, const char *text, const LogField *fields,
                   size_t n_fields, void *userdata) {
        Machine *m = userdata;

        strbuf_addf(&m->said, "%s\n", text);
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
        log_free(m->log);
        strbuf_done(&m->said);
}
#define _cleanup_machine_ _cleanup_(machine_done)

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

TEST_CASE(test_survives) {
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

TEST_CASE(test_another_boot) {
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

TEST_CASE(test_bounded) {
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
        /* What is only not cordoned for again goes before what a person has overruled, or was drained. */
        for (unsigned i = 0; i < 2; i++) {
                _cleanup_free_ char *id = strf("over%u", i);
                Notice n = notice(id);

                intent_log_note(l, &n, INTENT_OVER, 0);
        }
        assert_null(intent_log_find(l, "n3"));
        assert_null(intent_log_find(l, "over0"));
        assert_non_null(intent_log_find(l, "over1"));
        assert_non_null(intent_log_find(l, "n4"));
        intent_log_free(l);
}

TEST_CASE(test_failing_disk) {
        _cleanup_machine_ Machine m;
        Notice a = notice("a");
        IntentLog *l;

        machine_init(&m);
        m.error = -ENOSPC;
        l = open_log(&m);
        intent_log_note(l, &a, INTENT_DRAINING, T0);
        intent_log_note(l, &a, INTENT_DRAINED, T0);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_DRAINED);
        assert_int_equal(text_count(strbuf_str(&m.said), "Failed to write the intent log: No space left"), 1);
        m.error = 0;
        intent_log_note(l, &a, INTENT_DRAINED, T0);
        assert_non_null(m.record);
        assert_int_equal(text_count(strbuf_str(&m.said), "can be written again"), 1);
        intent_log_free(l);

        /* No store at all. */
        m.env.state = NULL;
        l = open_log(&m);
        intent_log_note(l, &a, INTENT_RELEASED, 0);
        assert_int_equal(intent_log_find(l, "a")->phase, INTENT_RELEASED);
        intent_log_free(l);
}

TEST_CASE(test_parse) {
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

TEST_CASE(test_phases) {
        for (IntentPhase p = 0; p < INTENT_OVER; p++)
                assert_int_equal(intent_phase_of_interruption(intent_phase_to_interruption(p)), p);
        assert_int_equal(intent_phase_to_interruption(INTENT_OVER), INTERRUPTION_PHASE_NONE);
        assert_int_equal(intent_phase_of_interruption(INTERRUPTION_PHASE_NONE), _INTENT_PHASE_INVALID);
        assert_int_equal(intent_phase_of_interruption(INTERRUPTION_LATER), _INTENT_PHASE_INVALID);
}

/* Forgotten while its record was unread, and nothing noted beside: the next start must not find it. */
/* A record that cannot be read now, but can by the next life, must not bring back what is over. */
TEST_CASE(test_forgotten_unreadable) {
        _cleanup_machine_ Machine m;
        Notice c = notice("c");
        IntentLog *l;

        machine_init(&m);
        l = open_log(&m);
        intent_log_note(l, &c, INTENT_DRAINED, T0);
        intent_log_free(l);
        m.read_error = -EIO;
        l = open_log(&m);
        assert_int_equal(text_count(strbuf_str(&m.said), "cannot be read, continuing without it: Input/output error"), 1);
        intent_log_forget(l, "c");
        assert_int_equal(m.n_writes, 2);
        intent_log_forget(l, "d"); /* once is enough */
        assert_int_equal(m.n_writes, 2);
        intent_log_free(l);
        m.read_error = 0;
        l = open_log(&m);
        assert_null(intent_log_find(l, "c"));
        intent_log_free(l);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_survives),
                cmocka_unit_test(test_another_boot),
                cmocka_unit_test(test_bounded),
                cmocka_unit_test(test_failing_disk),
                cmocka_unit_test(test_forgotten_unreadable),
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_phases),
        };
        return cmocka_run_group_tests_name("intent-log", tests, NULL, NULL);
}
