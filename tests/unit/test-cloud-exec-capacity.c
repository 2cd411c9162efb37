/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "cloud.h"
#include "cmocka-test.h"
#include "fake-child.h"
#include "string-util.h"

/*
 * The operations of provider exec that change how many machines there are: launch, find, leave, end and group. Each row is
 * one end of the command on virtual time; no process runs. test-cloud-exec.c runs real commands.
 */

#define EXITED(status) .exit_status = (status)
#define FAILED(errno_value) .error = -(errno_value)

typedef struct Row {
        const char *what;
        CloudOperation operation;
        const char *output;
        int exit_status, error, start_error;
        const char *errors;

        CloudOutcome outcome;
        CloudAnswer answer;
        const char *code, *message; /* NULL: none */
        const char *provider_id;
        unsigned retry_after_sec;
} Row;

typedef struct World {
        VirtualTime *time;
        Env env;
        FakeChildren *children;
        CloudProvider *provider;
        unsigned n_answers;

        CloudOutcome outcome;
        CloudAnswer answer;
        bool undecided;
        usec_t retry_after_usec;
        char *code, *message, *provider_id, *group, *template;
        int64_t size, min, max;
} World;

static void world_forget(World *w) {
        w->n_answers = 0;
        free(w->code);
        free(w->message);
        free(w->provider_id);
        free(w->group);
        free(w->template);
        w->code = w->message = w->provider_id = w->group = w->template = NULL;
}

static int world_setup(void **state) {
        World *w = new0(World, 1);
        const char *message;

        assert_return_code(virtual_time_new(UINT64_C(1800000000) * USEC_PER_SEC, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->env.loop), 0);
        w->children = fake_children_new(w->env.loop);
        w->env.children = &w->children->runner;
        assert_return_code(cloud_provider_new(&w->env, &(CloudConfig){ .name = "exec", .command = "/bin/machines" },
                                              &w->provider, &message),
                           0);
        *state = w;
        return 0;
}

static int world_teardown(void **state) {
        World *w = *state;

        world_forget(w);
        cloud_provider_free(w->provider);
        child_runner_free(w->env.children);
        loop_free(w->env.loop);
        virtual_time_free(w->time);
        free(w);
        return 0;
}

static char *copy(const char *text) {
        return text ? strdup(text) : NULL;
}

static void on_done(const CloudResult *result, void *userdata) {
        World *w = userdata;

        w->n_answers++;
        w->outcome = result->outcome;
        w->answer = cloud_result_answer(result);
        w->undecided = result->undecided;
        w->retry_after_usec = result->retry_after_usec;
        w->code = copy(result->code);
        w->message = copy(result->message);
        w->provider_id = copy(result->provider_id);
        w->group = copy(result->group.name);
        w->template = copy(result->group.template);
        w->size = result->group.size;
        w->min = result->group.min;
        w->max = result->group.max;
}

/* Runs the operation; the command ends as `end` has it. */
static void ask(World *w, const CloudReservation *asked, FakeChildAnswer end) {
        CloudReservation reservation = *asked;
        CloudCall *call;

        world_forget(w);
        reservation.done = on_done;
        reservation.userdata = w;
        w->children->n_answers = w->children->n_started = 0;
        fake_children_answer(w->children, end);
        assert_return_code(cloud_reserve(w->provider, &reservation, &call), 0);
        assert_int_equal(w->n_answers, 0); /* never inside the call */
        for (unsigned i = 0; i < 1000 && w->n_answers == 0; i++)
                assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
        assert_int_equal(w->n_answers, 1);
        cloud_call_free(call);
}

static const CloudMachine rack = { .provider_id = "rack:7", .node = "worker-7" };

static CloudReservation reservation_of(CloudOperation operation) {
        return (CloudReservation){ .operation = operation,
                                   .machine = operation == CLOUD_LAUNCH || operation == CLOUD_FIND ? NULL : &rack,
                                   .op_id = "op-1" };
}

static void assert_text(const char *text, const char *expected) {
        if (expected)
                assert_non_null(text);
        if (expected)
                assert_string_equal(text, expected);
        else
                assert_null(text);
}

static void check_rows(World *w, const Row *rows, size_t n_rows) {
        for (size_t i = 0; i < n_rows; i++) {
                const Row *r = &rows[i];
                CloudReservation asked = reservation_of(r->operation);

                print_message("%s: %s\n", cloud_operation_names[r->operation], r->what);
                ask(w, &asked,
                    (FakeChildAnswer){ .output = r->output,
                                       .exit_status = r->exit_status,
                                       .error = r->error,
                                       .start_error = r->start_error,
                                       .errors = r->errors });
                assert_string_equal(cloud_outcome_to_string(w->outcome), cloud_outcome_to_string(r->outcome));
                assert_string_equal(cloud_answer_names[w->answer], cloud_answer_names[r->answer]);
                assert_int_equal(w->undecided, r->answer == CLOUD_ANSWER_UNKNOWN);
                assert_text(w->code, r->code);
                assert_text(w->provider_id, r->provider_id);
                assert_int_equal(w->retry_after_usec / USEC_PER_SEC, r->retry_after_sec);
                assert_non_null(strstr(w->message, strempty(r->message)));
                assert_int_equal(*w->message == '\0', r->outcome == CLOUD_OK);
        }
}

#define ACCEPTED .outcome = CLOUD_OK, .answer = CLOUD_ANSWER_ACCEPTED
#define UNKNOWN .outcome = CLOUD_RETRY, .answer = CLOUD_ANSWER_UNKNOWN
#define LATER .outcome = CLOUD_RETRY, .answer = CLOUD_ANSWER_LATER
#define NO_CAPACITY .outcome = CLOUD_NO_CAPACITY, .answer = CLOUD_ANSWER_NO_CAPACITY
#define AT_MINIMUM .outcome = CLOUD_AT_MINIMUM, .answer = CLOUD_ANSWER_AT_MINIMUM
#define REFUSED .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_REFUSED
#define UNSUPPORTED .outcome = CLOUD_INVALID, .answer = CLOUD_ANSWER_REFUSED, .code = CLOUD_UNSUPPORTED
#define NO_ANSWER UNKNOWN, .message = "no answer of the protocol"

TEST_CASE(test_launch) {
        static const Row rows[] = {
                { "accepted", CLOUD_LAUNCH, "{\"launch\":\"accepted\",\"providerID\":\"rack:8\"}", ACCEPTED, .provider_id = "rack:8" },
                { "accepted, not named yet", CLOUD_LAUNCH, "{\"launch\":\"accepted\"}", ACCEPTED },
                { "accepted, named null", CLOUD_LAUNCH, "{\"launch\":\"accepted\",\"providerID\":null,\"more\":[]}", ACCEPTED },
                { "unknown", CLOUD_LAUNCH, "{\"launch\":\"unknown\"}", UNKNOWN, .message = "does not know" },
                { "later", CLOUD_LAUNCH, "{\"launch\":\"later\",\"retryAfter\":30}", LATER, .message = "try again", .retry_after_sec = 30 },
                { "no capacity", CLOUD_LAUNCH, "{\"launch\":\"noCapacity\",\"retryAfter\":5}", NO_CAPACITY, .message = "no capacity", .retry_after_sec = 5 },
                { "refused", CLOUD_LAUNCH, "{\"launch\":\"refused\"}", REFUSED, .message = "refuses" },
                { "no word", CLOUD_LAUNCH, "{}", NO_ANSWER },
                { "null", CLOUD_LAUNCH, "{\"launch\":null}", NO_ANSWER },
                { "an id alone", CLOUD_LAUNCH, "{\"providerID\":\"rack:8\"}", NO_ANSWER },
                { "another word", CLOUD_LAUNCH, "{\"launch\":\"Accepted\"}", NO_ANSWER },
                { "a word of leave", CLOUD_LAUNCH, "{\"launch\":\"atMinimum\"}", NO_ANSWER },
                { "no text", CLOUD_LAUNCH, "{\"launch\":true}", NO_ANSWER },
                { "an empty id", CLOUD_LAUNCH, "{\"launch\":\"accepted\",\"providerID\":\"\"}", NO_ANSWER },
                { "an id that is a number", CLOUD_LAUNCH, "{\"launch\":\"accepted\",\"providerID\":8}", NO_ANSWER },
                { "no output", CLOUD_LAUNCH, "", NO_ANSWER },
                { "a list", CLOUD_LAUNCH, "[]", NO_ANSWER },
                { "words", CLOUD_LAUNCH, "launched rack:8", NO_ANSWER },
                { "an error", CLOUD_LAUNCH, "{\"error\":\"busy\",\"retryAfter\":1e300}", LATER, .message = "busy", .retry_after_sec = 3600 },
                { "an error's code", CLOUD_LAUNCH, "{\"error\":{\"code\":\"noCapacity\",\"message\":\"rack full\"}}", NO_CAPACITY, .code = "noCapacity", .message = "rack full" },
                { "a code of leave", CLOUD_LAUNCH, "{\"error\":{\"code\":\"atMinimum\"}}", LATER, .code = "atMinimum", .message = "without a message" },
                { "denied", CLOUD_LAUNCH, "{\"error\":{\"code\":\"denied\"}}", REFUSED, .code = "denied", .message = "without a message" },
                { "unsupported", CLOUD_LAUNCH, "{\"error\":{\"code\":\"unsupported\",\"message\":\"no launch\"}}", UNSUPPORTED, .message = "no launch" },
                /* The word decides; the error has the words for a person. */
                { "unknown, and why", CLOUD_LAUNCH, "{\"launch\":\"unknown\",\"error\":\"502 of the rack\"}", UNKNOWN, .message = "502 of the rack" },
                { "refused, and why", CLOUD_LAUNCH, "{\"launch\":\"refused\",\"error\":{\"code\":\"quota\",\"message\":\"0 of 0\"}}", REFUSED, .code = "quota", .message = "0 of 0" },
                { "no capacity, and why", CLOUD_LAUNCH, "{\"launch\":\"noCapacity\",\"error\":{}}", NO_CAPACITY, .message = "no capacity" },
                { "accepted, and an error", CLOUD_LAUNCH, "{\"launch\":\"accepted\",\"providerID\":\"rack:8\",\"error\":\"or not\"}", UNKNOWN, .message = "or not" },
                { "another word, and an error", CLOUD_LAUNCH, "{\"launch\":\"done\",\"error\":\"or not\"}", NO_ANSWER },
                { "no word, and an error", CLOUD_LAUNCH, "{\"launch\":null,\"error\":\"busy\"}", LATER, .message = "busy" },
                { "75", CLOUD_LAUNCH, "", EXITED(75), .errors = "switch is down", LATER, .message = "switch is down" },
                { "75, silently", CLOUD_LAUNCH, "{}", EXITED(75), LATER, .message = "try again" },
                { "75, and later", CLOUD_LAUNCH, "{\"launch\":\"later\"}", EXITED(75), LATER, .message = "try again" },
                { "75, and unknown", CLOUD_LAUNCH, "{\"launch\":\"unknown\"}", EXITED(75), UNKNOWN, .message = "does not know" },
                { "75, and accepted", CLOUD_LAUNCH, "{\"launch\":\"accepted\",\"providerID\":\"rack:8\"}", EXITED(75), UNKNOWN, .message = "does not know" },
                { "64", CLOUD_LAUNCH, "", EXITED(64), .errors = "usage: x\nno such operation\n", UNSUPPORTED, .message = "no such operation" },
                { "64, silently", CLOUD_LAUNCH, "{\"launch\":\"accepted\"}", EXITED(64), UNSUPPORTED, .message = "no such operation" },
                { "another status", CLOUD_LAUNCH, "{\"launch\":\"refused\"}", EXITED(1), .errors = "KeyError", .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_UNKNOWN, .message = "exited with 1: KeyError" },
                { "time-out", CLOUD_LAUNCH, "{\"launch\":\"refused\"}", FAILED(ETIMEDOUT), UNKNOWN, .message = "60 seconds" },
                { "killed", CLOUD_LAUNCH, "{\"launch\":\"refused\"}", FAILED(ECHILD), UNKNOWN, .message = "killed by a signal" },
                { "too much", CLOUD_LAUNCH, "", FAILED(E2BIG), .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_UNKNOWN, .message = "larger than 1 MiB" },
                { "no memory for its output", CLOUD_LAUNCH, "", FAILED(ENOMEM), UNKNOWN, .message = "could not be run" },
                { "not there", CLOUD_LAUNCH, "", FAILED(ENOENT), REFUSED, .message = "could not be run" },
                { "not started", CLOUD_LAUNCH, "", .start_error = -EAGAIN, LATER, .message = "could not be run" },
        };

        check_rows(*state, rows, ELEMENTSOF(rows));
}

TEST_CASE(test_find) {
        static const Row rows[] = {
                { "found", CLOUD_FIND, "{\"providerID\":\"rack:8\"}", ACCEPTED, .provider_id = "rack:8" },
                { "none", CLOUD_FIND, "{\"providerID\":null}", ACCEPTED },
                { "nothing said", CLOUD_FIND, "{}", NO_ANSWER },
                { "empty", CLOUD_FIND, "{\"providerID\":\"\"}", NO_ANSWER },
                { "a list", CLOUD_FIND, "{\"providerID\":[\"rack:8\"]}", NO_ANSWER },
                { "none and an error", CLOUD_FIND, "{\"providerID\":null,\"error\":\"zone b is down\"}", LATER, .message = "zone b is down" },
                { "none, and 75", CLOUD_FIND, "{\"providerID\":null}", EXITED(75), LATER, .message = "try again" },
                { "found, and 75", CLOUD_FIND, "{\"providerID\":\"rack:8\"}", EXITED(75), LATER, .message = "try again" },
                { "64", CLOUD_FIND, "{\"providerID\":null}", EXITED(64), UNSUPPORTED, .message = "no such operation" },
                { "unsupported", CLOUD_FIND, "{\"error\":{\"code\":\"unsupported\",\"message\":\"no find\"}}", UNSUPPORTED, .message = "no find" },
                { "failed", CLOUD_FIND, "{\"providerID\":null}", EXITED(3), .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_UNKNOWN, .message = "exited with 3" },
                { "killed", CLOUD_FIND, "{\"providerID\":null}", FAILED(ECHILD), UNKNOWN, .message = "killed by a signal" },
        };
        World *w = *state;
        _cleanup_free_ char *id = new0(char, 2050), *output = NULL;
        CloudReservation find = reservation_of(CLOUD_FIND);

        check_rows(w, rows, ELEMENTSOF(rows));

        for (size_t n = 2048; n <= 2049; n++) {
                print_message("a providerID of %zu bytes\n", n);
                memset(id, 'x', n);
                free(output);
                output = strf("{\"providerID\":\"%s\"}", id);
                ask(w, &find, (FakeChildAnswer){ .output = output });
                assert_text(w->provider_id, n == 2048 ? id : NULL);
                assert_int_equal(w->answer, n == 2048 ? CLOUD_ANSWER_ACCEPTED : CLOUD_ANSWER_UNKNOWN);
        }
}

/* leave and end have one table: what they answer is the same. */
TEST_CASE(test_leave_and_end) {
        static const Row rows[] = {
                { "done", 0, "{}", ACCEPTED },
                { "with a state", 0, "{\"state\":\"terminating\",\"providerID\":\"rack:8\"}", ACCEPTED },
                { "at its minimum", 0, "{\"error\":{\"code\":\"atMinimum\",\"message\":\"3 of 3\"}}", AT_MINIMUM, .code = "atMinimum", .message = "3 of 3" },
                { "a code of launch", 0, "{\"error\":{\"code\":\"noCapacity\"}}", LATER, .code = "noCapacity", .message = "without a message" },
                { "protected", 0, "{\"error\":{\"code\":\"protected\",\"message\":\"locked\"}}", .outcome = CLOUD_PROTECTED, .answer = CLOUD_ANSWER_REFUSED, .code = "protected", .message = "locked" },
                { "invalid", 0, "{\"error\":{\"code\":\"invalid\",\"message\":\"another's\"}}", .outcome = CLOUD_INVALID, .answer = CLOUD_ANSWER_REFUSED, .code = "invalid", .message = "another's" },
                { "unsupported", 0, "{\"error\":{\"code\":\"unsupported\",\"message\":\"no\"}}", UNSUPPORTED, .message = "no" },
                { "a state that is none", 0, "{\"state\":\"left\"}", NO_ANSWER },
                { "no output", 0, "", NO_ANSWER },
                { "75", 0, "{}", EXITED(75), LATER, .message = "try again" },
                { "75, at its minimum", 0, "{\"error\":{\"code\":\"atMinimum\",\"message\":\"3 of 3\"}}", EXITED(75), AT_MINIMUM, .code = "atMinimum", .message = "3 of 3" },
                { "64", 0, "", EXITED(64), UNSUPPORTED, .message = "no such operation" },
                { "another status", 0, "{}", EXITED(2), .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_UNKNOWN, .message = "exited with 2" },
                { "time-out", 0, "{}", FAILED(ETIMEDOUT), UNKNOWN, .message = "60 seconds" },
        };
        static const CloudOperation operations[] = { CLOUD_LEAVE, CLOUD_END };

        for (size_t o = 0; o < ELEMENTSOF(operations); o++)
                for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                        Row row = rows[i];

                        row.operation = operations[o];
                        check_rows(*state, &row, 1);
                }
}

TEST_CASE(test_optional_operations_alone) {
        static const Row rows[] = {
                { "unsupported", CLOUD_TERMINATE, "{\"error\":{\"code\":\"unsupported\",\"message\":\"no\"}}", LATER, .code = "unsupported", .message = "no" },
                { "at its minimum", CLOUD_TERMINATE, "{\"error\":{\"code\":\"atMinimum\",\"message\":\"no\"}}", LATER, .code = "atMinimum", .message = "no" },
                { "64", CLOUD_TERMINATE, "", EXITED(64), .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_UNKNOWN, .message = "exited with 64" },
                { "64", CLOUD_DESCRIBE, "", EXITED(64), .outcome = CLOUD_DENIED, .answer = CLOUD_ANSWER_UNKNOWN, .message = "exited with 64" },
        };

        check_rows(*state, rows, ELEMENTSOF(rows));
}

TEST_CASE(test_group) {
        static const struct {
                const char *output, *name, *template;
                int64_t size, min, max;
        } read[] = {
                { "{\"group\":{\"name\":\"a\",\"size\":3,\"min\":1,\"max\":5,\"template\":\"7\"}}", "a", "7", 3, 1, 5 },
                { "{\"group\":{\"name\":\"a\",\"size\":0}}", "a", NULL, 0, -1, -1 },
                { "{\"group\":{\"name\":\"a\",\"size\":1000000,\"min\":null,\"max\":0,\"template\":null,\"more\":{}}}", "a", NULL, 1000000, -1, 0 },
        };
        static const Row rows[] = {
                { "none", CLOUD_GROUP, "{\"group\":null}", ACCEPTED },
                { "nothing said", CLOUD_GROUP, "{}", NO_ANSWER },
                { "no object", CLOUD_GROUP, "{\"group\":\"a\"}", NO_ANSWER },
                { "empty", CLOUD_GROUP, "{\"group\":{}}", NO_ANSWER },
                { "no name", CLOUD_GROUP, "{\"group\":{\"size\":3}}", NO_ANSWER },
                { "an empty name", CLOUD_GROUP, "{\"group\":{\"name\":\"\",\"size\":3}}", NO_ANSWER },
                { "no size", CLOUD_GROUP, "{\"group\":{\"name\":\"a\"}}", NO_ANSWER },
                { "size null", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":null}}", NO_ANSWER },
                { "a negative size", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":-1}}", NO_ANSWER },
                { "a size with a fraction", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":1.5}}", NO_ANSWER },
                { "a size in words", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":\"3\"}}", NO_ANSWER },
                { "a size past the largest", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":1000001}}", NO_ANSWER },
                { "a huge size", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":1e300}}", NO_ANSWER },
                { "a huge minimum", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":3,\"min\":18446744073709551617}}", NO_ANSWER },
                { "a negative maximum", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":3,\"max\":-1}}", NO_ANSWER },
                { "a template that is a number", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":3,\"template\":7}}", NO_ANSWER },
                { "none and an error", CLOUD_GROUP, "{\"group\":null,\"error\":\"busy\"}", LATER, .message = "busy" },
                { "75", CLOUD_GROUP, "{\"group\":{\"name\":\"a\",\"size\":3}}", EXITED(75), LATER, .message = "try again" },
                { "64", CLOUD_GROUP, "{\"group\":null}", EXITED(64), UNSUPPORTED, .message = "no such operation" },
        };
        World *w = *state;
        CloudReservation group = reservation_of(CLOUD_GROUP);

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                check_rows(w, &rows[i], 1);
                assert_null(w->group);
        }
        for (size_t i = 0; i < ELEMENTSOF(read); i++) {
                print_message("%s\n", read[i].output);
                ask(w, &group, (FakeChildAnswer){ .output = read[i].output });
                assert_int_equal(w->outcome, CLOUD_OK);
                assert_text(w->group, read[i].name);
                assert_text(w->template, read[i].template);
                assert_int_equal(w->size, read[i].size);
                assert_int_equal(w->min, read[i].min);
                assert_int_equal(w->max, read[i].max);
        }
}

/* The argument and the request of each operation: a field that is not known is left out. */
TEST_CASE(test_requests) {
        static const struct {
                CloudReservation asked;
                const char *input;
        } rows[] = {
                { { .operation = CLOUD_LAUNCH, .op_id = "op-1", .pool = "workers",
                    .launch = { .group = "a", .like = "rack:7", .zone = "z", .capacity_type = "spot" } },
                  "{\"version\":1,\"op\":\"launch\",\"opId\":\"op-1\",\"pool\":\"workers\",\"group\":\"a\",\"like\":\"rack:7\",\"zone\":\"z\",\"capacityType\":\"spot\"}" },
                { { .operation = CLOUD_LAUNCH, .op_id = "op-1" }, "{\"version\":1,\"op\":\"launch\",\"opId\":\"op-1\"}" },
                { { .operation = CLOUD_FIND, .op_id = "op-1" }, "{\"version\":1,\"op\":\"find\",\"opId\":\"op-1\"}" },
                { { .operation = CLOUD_LEAVE, .op_id = "op-2", .machine = &rack, .refill = true },
                  "{\"version\":1,\"op\":\"leave\",\"opId\":\"op-2\",\"providerID\":\"rack:7\",\"refill\":true,\"node\":{\"name\":\"worker-7\"}}" },
                { { .operation = CLOUD_LEAVE, .op_id = "op-2", .machine = &rack, .shrink = true },
                  "{\"version\":1,\"op\":\"leave\",\"opId\":\"op-2\",\"providerID\":\"rack:7\",\"refill\":false,\"node\":{\"name\":\"worker-7\"}}" },
                { { .operation = CLOUD_END, .op_id = "op-3", .pool = "workers", .machine = &rack, .shrink = true },
                  "{\"version\":1,\"op\":\"end\",\"opId\":\"op-3\",\"pool\":\"workers\",\"providerID\":\"rack:7\",\"shrink\":true,\"node\":{\"name\":\"worker-7\"}}" },
                { { .operation = CLOUD_END, .op_id = "op-3", .machine = &rack, .refill = true },
                  "{\"version\":1,\"op\":\"end\",\"opId\":\"op-3\",\"providerID\":\"rack:7\",\"shrink\":false,\"node\":{\"name\":\"worker-7\"}}" },
                { { .operation = CLOUD_GROUP, .machine = &rack },
                  "{\"version\":1,\"op\":\"group\",\"providerID\":\"rack:7\",\"node\":{\"name\":\"worker-7\"}}" },
        };
        World *w = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *argv = strf("/bin/machines %s", cloud_operation_names[rows[i].asked.operation]);

                print_message("%s\n", rows[i].input);
                ask(w, &rows[i].asked, (FakeChildAnswer){ .exit_status = 75 });
                assert_string_equal(w->children->input, rows[i].input);
                assert_string_equal(w->children->argv, argv);
        }
}

/* A machine without a providerID is nothing that a command can be asked about. */
TEST_CASE(test_without_provider_id) {
        static const CloudOperation operations[] = { CLOUD_LEAVE, CLOUD_END, CLOUD_GROUP };
        static const CloudMachine nameless = { .provider_id = "" };
        World *w = *state;

        for (size_t i = 0; i < ELEMENTSOF(operations); i++) {
                CloudReservation asked = reservation_of(operations[i]);

                asked.machine = &nameless;
                ask(w, &asked, (FakeChildAnswer){ .output = "{}" });
                assert_int_equal(w->outcome, CLOUD_INVALID);
                assert_int_equal(w->answer, CLOUD_ANSWER_REFUSED);
                assert_int_equal(w->children->n_started, 0);
        }
}

/* Every outcome, decided and undecided. */
TEST_CASE(test_answer_of_result) {
        static const CloudAnswer decided[_CLOUD_OUTCOME_MAX] = {
                [CLOUD_OK] = CLOUD_ANSWER_ACCEPTED,
                [CLOUD_RETRY] = CLOUD_ANSWER_LATER,
                [CLOUD_PROTECTED] = CLOUD_ANSWER_REFUSED,
                [CLOUD_NO_CAPACITY] = CLOUD_ANSWER_NO_CAPACITY,
                [CLOUD_AT_MINIMUM] = CLOUD_ANSWER_AT_MINIMUM,
                [CLOUD_DENIED] = CLOUD_ANSWER_REFUSED,
                [CLOUD_INVALID] = CLOUD_ANSWER_REFUSED,
        };

        for (CloudOutcome o = 0; o < _CLOUD_OUTCOME_MAX; o++) {
                print_message("%s\n", cloud_outcome_to_string(o));
                assert_int_equal(cloud_result_answer(&(CloudResult){ .outcome = o }), decided[o]);
                assert_int_equal(cloud_result_answer(&(CloudResult){ .outcome = o, .undecided = true }),
                                 o == CLOUD_OK ? CLOUD_ANSWER_ACCEPTED : CLOUD_ANSWER_UNKNOWN);
        }
}

#define WORLD_TEST(t) cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                WORLD_TEST(test_launch),
                WORLD_TEST(test_find),
                WORLD_TEST(test_leave_and_end),
                WORLD_TEST(test_optional_operations_alone),
                WORLD_TEST(test_group),
                WORLD_TEST(test_requests),
                WORLD_TEST(test_without_provider_id),
                cmocka_unit_test(test_answer_of_result),
        };
        return cmocka_run_group_tests_name("cloud-exec-capacity", tests, NULL, NULL);
}
