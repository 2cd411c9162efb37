/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cloud-exec.h"
#include "clock-skip.h"
#include "cmocka-test.h"
#include "file-util.h"
#include "machine-end.h"
#include "string-util.h"

static const CloudMachine rack = { .provider_id = "rack:7" };
static const CloudAddress addresses[] = { { "InternalIP", "10.0.0.7" }, { "Hostname", "worker-7" } };
static const CloudMachine whole = { .provider_id = "rack:7",
                                    .node = "worker-7",
                                    .system_uuid = "s-1",
                                    .machine_id = "m-1",
                                    .addresses = addresses,
                                    .n_addresses = ELEMENTSOF(addresses) };

/* Real child processes: shell scripts in a folder of their own. */
typedef struct World {
        Env env;
        char folder[64];
        char *command;
        CloudProvider *provider;
        bool may_send;
        bool no_pool; /* its claim is lost */
        unsigned n_answers, n_machines;
        CloudCall *asked; /* by ask() */

        CloudOutcome outcome;
        InstanceState state;
        usec_t retry_after_usec;
        char code[64], message[400];
} World;

static const char *world_getenv(const char *name, void *userdata) {
        if (streq(name, "PATH"))
                return "/usr/bin:/bin";
        if (streq(name, "HOME"))
                return ((World *) userdata)->folder;
        if (streq(name, "AWS_SECRET_ACCESS_KEY"))
                return "SECRET";
        return NULL;
}

static int world_setup(void **state) {
        World *w = new0(World, 1);
        const char *message;

        *w = (World){ .folder = "/tmp/test-cloud-exec.XXXXXX", .may_send = true };
        assert_non_null(mkdtemp(w->folder));
        w->command = strf("%s/provider", w->folder);
        assert_return_code(loop_new(&w->env.loop), 0);
        assert_return_code(child_runner_new(w->env.loop, &w->env.children), 0);
        assert_return_code(cloud_provider_new(&w->env,
                                              &(CloudConfig){ .name = "exec",
                                                              .command = w->command,
                                                              .getenv = world_getenv,
                                                              .getenv_userdata = w },
                                              &w->provider, &message),
                           0);
        *state = w;
        return 0;
}

static int world_teardown(void **state) {
        World *w = *state;
        _cleanup_free_ char *command = strf("rm -rf '%s'", w->folder);

        cloud_provider_free(w->provider);
        child_runner_free(w->env.children);
        loop_free(w->env.loop);
        free(w->command);
        free(w);
        return system(command);
}

static void write_script(World *w, const char *body) {
        _cleanup_free_ char *temporary = strf("%s.new", w->command);
        FILE *f = fopen(temporary, "we");

        assert_non_null(f);
        assert_true(fprintf(f, "#!/bin/sh\ncd '%s'\n%s\n", w->folder, body) > 0);
        assert_int_equal(fclose(f), 0);
        assert_return_code(chmod(temporary, 0700), 0);
        assert_return_code(rename(temporary, w->command), 0);
}

static char *read_back(World *w, const char *name) {
        _cleanup_free_ char *path = strf("%s/%s", w->folder, name);
        char *text;
        size_t size;

        assert_return_code(read_file(path, 65536, &text, &size), 0);
        return text;
}

static void on_answer(const CloudResult *result, void *userdata) {
        World *w = userdata;

        w->n_answers++;
        w->outcome = result->outcome;
        w->state = result->state;
        w->retry_after_usec = result->retry_after_usec;
        (void) snprintf(w->code, sizeof(w->code), "%s", strempty(result->code));
        (void) snprintf(w->message, sizeof(w->message), "%s", result->message);
}

static bool may_send(void *userdata) {
        return ((World *) userdata)->may_send;
}

/* Until so many answers are there, at most 60 s. */
static void run(World *w, unsigned n_answers) {
        usec_t limit = usec_add(loop_now(w->env.loop), 60 * USEC_PER_SEC);

        while (w->n_answers < n_answers && loop_now(w->env.loop) < limit)
                assert_return_code(loop_iterate(w->env.loop, 100 * USEC_PER_MSEC), 0);
        assert_int_equal(w->n_answers, n_answers);
}

static void run_for(World *w, usec_t usec) {
        usec_t limit = usec_add(loop_now(w->env.loop), usec);

        while (loop_now(w->env.loop) < limit)
                assert_return_code(loop_iterate(w->env.loop, 10 * USEC_PER_MSEC), 0);
}

static void ask_about(World *w, bool terminate, const CloudMachine *machine) {
        w->n_answers = 0;
        if (terminate)
                assert_return_code(cloud_reserve(w->provider,
                                                 &(CloudReservation){ .operation = CLOUD_TERMINATE,
                                                                      .machine = machine,
                                                                      .op_id = "op-7",
                                                                      .pool = w->no_pool ? "" : "pool-a",
                                                                      .guard = { may_send, w },
                                                                      .done = on_answer,
                                                                      .userdata = w },
                                                 &w->asked),
                                   0);
        else
                assert_return_code(cloud_describe(w->provider, machine, on_answer, w, &w->asked), 0);
        assert_int_equal(w->n_answers, 0); /* never inside the call */
        run(w, 1);
        w->asked = cloud_call_free(w->asked);
}

static void ask(World *w, bool terminate, const char *provider_id) {
        ask_about(w, terminate, &(CloudMachine){ .provider_id = provider_id });
}

/* What the command does, and what comes of it. */
TEST_CASE(test_answers) {
        static const struct {
                const char *what;
                bool terminate;
                const char *script;
                CloudOutcome outcome;
                InstanceState state;
                const char *code, *message;
                unsigned retry_after_sec;
        } rows[] = {
                { "off", false, "echo '{\"state\":\"off\"}'", CLOUD_OK, INSTANCE_OFF, "", "", 0 },
                { "present", false, "echo '{\"state\":\"present\"}'", CLOUD_OK, INSTANCE_PRESENT, "", "",
                  0 },
                { "gone", false, "echo '{\"state\":\"gone\",\"other\":[1]}'", CLOUD_OK, INSTANCE_GONE, "",
                  "", 0 },
                { "terminating", false, "echo '{\"state\":\"terminating\"}'", CLOUD_OK, INSTANCE_TERMINATING,
                  "", "", 0 },
                { "unknown", false, "echo '{\"state\":\"unknown\"}'", CLOUD_OK, INSTANCE_UNKNOWN, "",
                  "does not know", 0 },
                { "no state", false, "echo '{}'", CLOUD_OK, INSTANCE_UNKNOWN, "", "does not know", 0 },
                { "unknown, for a while", false, "echo '{\"state\":\"unknown\",\"retryAfter\":5}'",
                  CLOUD_RETRY, INSTANCE_UNKNOWN, "", "try again", 5 },
                { "a state that is none", false, "echo '{\"state\":\"absent\"}'", CLOUD_RETRY,
                  INSTANCE_UNKNOWN, "", "no answer of the protocol", 0 },
                { "a state of other providers", false, "echo '{\"state\":\"not-found\"}'", CLOUD_RETRY,
                  INSTANCE_UNKNOWN, "", "no answer of the protocol", 0 },
                { "a state that is a number", false, "echo '{\"state\":1}'", CLOUD_RETRY, INSTANCE_UNKNOWN,
                  "", "no answer of the protocol", 0 },
                { "accepted", true, "echo '{}'", CLOUD_OK, INSTANCE_UNKNOWN, "", "", 0 },
                { "accepted, and told how it stands", true, "echo '{\"state\":\"terminating\"}'", CLOUD_OK,
                  INSTANCE_TERMINATING, "", "", 0 },
                { "an error in words", true,
                  "printf '%s' '{\"error\":\"BMC is\\nbusy\",\"retryAfter\":1.5}'", CLOUD_RETRY,
                  INSTANCE_UNKNOWN, "", "BMC is?busy", 1 },
                { "gone and an error is an error", false, "echo '{\"state\":\"gone\",\"error\":\"or not\"}'",
                  CLOUD_RETRY, INSTANCE_UNKNOWN, "", "or not", 0 },
                { "protected", true, "echo '{\"error\":{\"code\":\"protected\",\"message\":\"locked\"}}'",
                  CLOUD_PROTECTED, INSTANCE_UNKNOWN, "protected", "locked", 0 },
                { "denied", true, "echo '{\"error\":{\"code\":\"denied\"}}'", CLOUD_DENIED, INSTANCE_UNKNOWN,
                  "denied", "without a message", 0 },
                { "invalid", true, "echo '{\"error\":{\"code\":\"invalid\",\"message\":\"no such rack\"}}'",
                  CLOUD_INVALID, INSTANCE_UNKNOWN, "invalid", "no such rack", 0 },
                { "another code", true, "echo '{\"error\":{\"code\":\"odd\",\"message\":\"m\"}}'",
                  CLOUD_RETRY, INSTANCE_UNKNOWN, "odd", "m", 0 },
                { "an error that is none", true, "echo '{\"error\":null}'", CLOUD_OK, INSTANCE_UNKNOWN, "",
                  "", 0 },
                { "an error that is a list", true, "echo '{\"error\":[]}'", CLOUD_RETRY, INSTANCE_UNKNOWN,
                  "", "no answer of the protocol", 0 },
                { "a negative wait", true, "echo '{\"retryAfter\":-1}'", CLOUD_RETRY, INSTANCE_UNKNOWN, "",
                  "no answer of the protocol", 0 },
                { "an endless wait", true, "echo '{\"error\":\"x\",\"retryAfter\":1e300}'", CLOUD_RETRY,
                  INSTANCE_UNKNOWN, "", "x", 3600 },
                { "no output", false, "true", CLOUD_RETRY, INSTANCE_UNKNOWN, "", "no answer of the protocol",
                  0 },
                { "words", false, "echo gone", CLOUD_RETRY, INSTANCE_UNKNOWN, "",
                  "no answer of the protocol", 0 },
                { "a list", false, "echo '[]'", CLOUD_RETRY, INSTANCE_UNKNOWN, "",
                  "no answer of the protocol", 0 },
                { "not now", true, "echo 'switch is down' >&2; exit 75", CLOUD_RETRY, INSTANCE_UNKNOWN, "",
                  "switch is down", 0 },
                { "not now, silently", true, "exit 75", CLOUD_RETRY, INSTANCE_UNKNOWN, "",
                  "asks to try again", 0 },
                { "not now, but then", true, "echo '{\"retryAfter\":30,\"error\":\"queue full\"}'; exit 75",
                  CLOUD_RETRY, INSTANCE_UNKNOWN, "", "queue full", 30 },
                { "not now is never gone", false, "echo '{\"state\":\"gone\"}'; exit 75", CLOUD_RETRY,
                  INSTANCE_UNKNOWN, "", "try again", 0 },
                { "failed", true, "echo 'Traceback:' >&2; echo 'KeyError: rack' >&2; exit 1", CLOUD_DENIED,
                  INSTANCE_UNKNOWN, "", "exited with 1: KeyError: rack", 0 },
                { "failed, whatever it says", false, "echo '{\"state\":\"gone\"}'; exit 3", CLOUD_DENIED,
                  INSTANCE_UNKNOWN, "", "exited with 3", 0 },
                { "killed", false, "echo '{\"state\":\"gone\"}'; kill -9 $$", CLOUD_RETRY, INSTANCE_UNKNOWN,
                  "", "killed by a signal", 0 },
                { "too much", false, "head -c 2000000 /dev/zero", CLOUD_DENIED, INSTANCE_UNKNOWN, "",
                  "larger than 1 MiB", 0 },
        };
        World *w = *state;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                write_script(w, rows[i].script);
                ask(w, rows[i].terminate, "rack:7");
                assert_int_equal(w->outcome, rows[i].outcome);
                assert_int_equal(w->state, rows[i].state);
                assert_string_equal(w->code, rows[i].code);
                assert_non_null(strstr(w->message, rows[i].message));
                if (!*rows[i].message)
                        assert_string_equal(w->message, "");
                assert_int_equal(w->retry_after_usec / USEC_PER_SEC, rows[i].retry_after_sec);
        }
}

/* What the command is given: arguments, standard input, and an environment without secrets. */
TEST_CASE(test_request) {
        World *w = *state;
        _cleanup_free_ char *input = NULL, *arguments = NULL, *environment = NULL, *home = NULL;

        write_script(
                w,
                "cat >input; echo \"$# $1\" >arguments; env >environment; echo '{\"state\":\"present\"}'");
        ask(w, false, "rack:7/\"x\"");
        input = read_back(w, "input");
        assert_string_equal(input,
                            "{\"version\":1,\"op\":\"describe\",\"providerID\":\"rack:7/\\\"x\\\"\"}");
        arguments = read_back(w, "arguments");
        assert_string_equal(arguments, "1 describe\n");
        environment = read_back(w, "environment");
        home = strf("HOME=%s\n", w->folder);
        assert_non_null(strstr(environment, home));
        assert_non_null(strstr(environment, "PATH=/usr/bin:/bin\n"));
        assert_non_null(strstr(environment, "LANG=C.UTF-8\n"));
        assert_null(strstr(environment, "SECRET"));

        free(input);
        ask(w, true, "rack:7");
        input = read_back(w, "input");
        assert_string_equal(input,
                            "{\"version\":1,\"op\":\"terminate\",\"opId\":\"op-7\",\"pool\":\"pool-a\","
                            "\"providerID\":\"rack:7\"}");
        free(input);
        w->no_pool = true;
        ask(w, true, "rack:7");
        input = read_back(w, "input");
        assert_string_equal(input, "{\"version\":1,\"op\":\"terminate\",\"opId\":\"op-7\",\"providerID\":\"rack:7\"}");

        for (size_t i = 0; i < 2; i++) {
                static const char node[] = "\"node\":{\"name\":\"worker-7\",\"systemUUID\":\"s-1\","
                                           "\"machineID\":\"m-1\",\"addresses\":[{\"type\":\"InternalIP\",\"address\":"
                                           "\"10.0.0.7\"},{\"type\":\"Hostname\",\"address\":\"worker-7\"}]}}";

                print_message("%s, and what is known of the Node\n", i ? "terminate" : "describe");
                free(input);
                ask_about(w, i == 1, &whole);
                input = read_back(w, "input");
                assert_true(strlen(input) > strlen(node));
                assert_string_equal(input + strlen(input) - strlen(node), node);
        }
        free(input);
        ask_about(w, false, &(CloudMachine){ .provider_id = "rack:7", .node = "worker-7" });
        input = read_back(w, "input");
        assert_non_null(strstr(input, "\"providerID\":\"rack:7\",\"node\":{\"name\":\"worker-7\"}}"));
}

/* What the command is asked about is for the command to say; without a providerID there is nothing to ask.
 */
typedef struct Listed {
        World *w;
        char text[400]; /* "ID=STATE " for each */
        size_t n_unreadable;
} Listed;

static void on_list(const CloudResult *result, void *userdata) {
        Listed *l = userdata;

        on_answer(result, l->w);
        l->n_unreadable = result->n_unreadable;
        for (size_t i = 0; i < result->n_instances; i++) {
                size_t n = strlen(l->text);

                (void) snprintf(l->text + n, sizeof(l->text) - n, "%s=%s ", result->instances[i].provider_id,
                                instance_state_to_string(result->instances[i].state));
        }
}

/* A list, or none; what cannot be read of it is skipped and counted. */
TEST_CASE(test_lists) {
        static const struct {
                const char *script;
                CloudOutcome outcome;
                const char *listed, *code, *message;
                size_t n_unreadable;
        } rows[] = {
                { "cat >input; echo $1 >arguments; echo '{\"instances\":[{\"providerID\":\"rack:7\",\"state\":\"present\"},"
                  "{\"providerID\":\"rack:8\",\"state\":\"terminating\",\"more\":1},{\"providerID\":\"rack:9\"}]}'",
                  CLOUD_OK, "rack:7=present rack:8=terminating rack:9=unknown ", "", "", 0 },
                { "echo '{\"instances\":[]}'", CLOUD_OK, "", "", "", 0 },
                { "echo '{}'", CLOUD_RETRY, "", "", "no answer of the protocol", 0 },
                { "echo '{\"instances\":null}'", CLOUD_RETRY, "", "", "no answer of the protocol", 0 },
                { "echo '{\"instances\":{}}'", CLOUD_RETRY, "", "", "no answer of the protocol", 0 },
                { "echo '{\"instances\":[{\"providerID\":\"\"},7,{},null,{\"providerID\":\"rack:7\",\"state\":\"off\"}]}'", CLOUD_OK,
                  "rack:7=off ", "", "", 4 },
                { "echo '{\"instances\":[{\"providerID\":\"rack:7\",\"state\":\"odd\"},{\"providerID\":\"rack:8\"}]}'", CLOUD_OK,
                  "rack:7=unknown rack:8=unknown ", "", "", 1 },
                { "echo '{\"instances\":[{\"providerID\":\"rack:7\"}],\"error\":\"not all\"}'", CLOUD_RETRY, "", "", "not all", 0 },
                { "echo '{\"instances\":[{\"providerID\":\"rack:7\"}]}'; exit 75", CLOUD_RETRY, "", "", "try again", 0 },
                { "echo '{\"error\":{\"code\":\"unsupported\",\"message\":\"no list\"}}'", CLOUD_INVALID, "",
                  CLOUD_UNSUPPORTED, "no list", 0 },
                { "echo usage >&2; exit 64", CLOUD_INVALID, "", CLOUD_UNSUPPORTED, "usage", 0 },
                { "echo usage >&2; exit 65", CLOUD_DENIED, "", "", "exited with 65: usage", 0 },
        };
        World *w = *state;
        _cleanup_free_ char *input = NULL, *arguments = NULL;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Listed l = { .w = w };

                print_message("%s\n", rows[i].script);
                write_script(w, rows[i].script);
                w->n_answers = 0;
                assert_return_code(cloud_reserve(w->provider, &(CloudReservation){ .operation = CLOUD_LIST, .done = on_list, .userdata = &l }, &w->asked), 0);
                run(w, 1);
                w->asked = cloud_call_free(w->asked);
                assert_int_equal(w->outcome, rows[i].outcome);
                assert_string_equal(l.text, rows[i].listed);
                assert_int_equal(l.n_unreadable, rows[i].n_unreadable);
                assert_string_equal(w->code, rows[i].code);
                assert_non_null(strstr(w->message, rows[i].message));
                assert_int_equal(*w->message == '\0', rows[i].outcome == CLOUD_OK);
        }
        input = read_back(w, "input");
        arguments = read_back(w, "arguments");
        assert_string_equal(input, "{\"version\":1,\"op\":\"list\"}");
        assert_string_equal(arguments, "list\n");
        assert_int_equal(w->provider->answers[CLOUD_LIST][CLOUD_OK], 4);

        print_message("unsupported is a word of list alone\n");
        write_script(w, "echo '{\"error\":{\"code\":\"unsupported\"}}'");
        ask(w, false, "rack:7");
        assert_int_equal(w->outcome, CLOUD_RETRY);
}

typedef struct Told {
        World *w;
        bool undecided;
} Told;

static void on_told(const CloudResult *result, void *userdata) {
        Told *told = userdata;

        told->undecided = result->undecided;
        on_answer(result, told->w);
}

/* Told, not told, or nobody knows; and what the command is asked. */
TEST_CASE(test_reboot) {
        static const struct {
                const char *script;
                CloudOutcome outcome;
                bool undecided;
                const char *message;
        } rows[] = {
                { "cat >input; echo \"$@\" >arguments; echo '{}'", CLOUD_OK, false, "" },
                { "echo '{\"error\":{\"code\":\"unsupported\",\"message\":\"no reboot\"}}'", CLOUD_INVALID, false, "no reboot" },
                { "echo '{\"error\":{\"code\":\"denied\"}}'", CLOUD_DENIED, false, "" },
                { "echo '{\"error\":\"busy\"}'", CLOUD_RETRY, false, "busy" },
                { "echo later >&2; exit 75", CLOUD_RETRY, false, "later" },
                { "echo usage >&2; exit 64", CLOUD_INVALID, false, "usage" },
                { "echo usage >&2; exit 65", CLOUD_DENIED, true, "exited with 65: usage" },
                { "echo rebooted", CLOUD_RETRY, true, "no answer of the protocol" },
                { "kill -9 $$", CLOUD_RETRY, true, "killed by a signal" },
        };
        World *w = *state;
        _cleanup_free_ char *input = NULL, *arguments = NULL;
        Told told = { .w = w };
        const CloudReservation t = { .operation = CLOUD_REBOOT, .machine = &whole, .op_id = "reboot-1", .pool = "workers", .done = on_told, .userdata = &told };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].script);
                write_script(w, rows[i].script);
                w->n_answers = 0;
                told.undecided = !rows[i].undecided;
                assert_return_code(cloud_reserve(w->provider, &t, &w->asked), 0);
                run(w, 1);
                w->asked = cloud_call_free(w->asked);
                assert_int_equal(w->outcome, rows[i].outcome);
                assert_int_equal(told.undecided, rows[i].undecided);
                assert_non_null(strstr(w->message, rows[i].message));
        }
        input = read_back(w, "input");
        arguments = read_back(w, "arguments");
        assert_non_null(strstr(input, "\"op\":\"reboot\",\"opId\":\"reboot-1\",\"pool\":\"workers\",\"providerID\":\"rack:7\""));
        assert_string_equal(arguments, "reboot\n");

        print_message("it cannot be run: nothing was told\n");
        assert_return_code(unlink(w->command), 0);
        w->n_answers = 0;
        assert_return_code(cloud_reserve(w->provider, &t, &w->asked), 0);
        run(w, 1);
        w->asked = cloud_call_free(w->asked);
        assert_false(told.undecided);
        assert_int_equal(w->outcome, CLOUD_DENIED);
}

/* A command that was written before there was more than describe and terminate: none of the other operations does anything. */
TEST_CASE(test_two_operations) {
        World *w = *state;
        Told told = { .w = w };
        _cleanup_free_ char *calls = NULL;

        write_script(w, "case $1 in\n"
                        "describe) echo '{\"state\":\"present\"}' ;;\n"
                        "terminate) echo '{}' ;;\n"
                        "*) echo \"no operation $1\" >&2; exit 64 ;;\n"
                        "esac\n"
                        "echo $1 >>calls");
        for (CloudOperation o = 0; o < _CLOUD_OPERATION_MAX; o++) {
                _cleanup_free_ char *message = strf("no operation %s", cloud_operation_names[o]);

                if (o == CLOUD_DESCRIBE || o == CLOUD_TERMINATE || o == CLOUD_TURN)
                        continue;
                print_message("%s\n", cloud_operation_names[o]);
                w->n_answers = 0;
                told.undecided = true;
                assert_return_code(cloud_reserve(w->provider,
                                                 &(CloudReservation){ .operation = o, .machine = &rack, .op_id = "op-7", .done = on_told, .userdata = &told },
                                                 &w->asked),
                                   0);
                run(w, 1);
                w->asked = cloud_call_free(w->asked);
                assert_int_equal(w->outcome, CLOUD_INVALID);
                assert_string_equal(w->code, CLOUD_UNSUPPORTED);
                assert_string_equal(w->message, message);
                assert_false(told.undecided);
        }
        ask(w, false, "rack:7");
        assert_int_equal(w->state, INSTANCE_PRESENT);
        ask(w, true, "rack:7");
        assert_int_equal(w->outcome, CLOUD_OK);
        calls = read_back(w, "calls");
        assert_string_equal(calls, "describe\nterminate\n");
}

TEST_CASE(test_owns) {
        World *w = *state;

        assert_true(w->provider->ops->owns(w->provider, "rack:7"));
        assert_false(w->provider->ops->owns(w->provider, ""));
}

/* A command that does not read its input is no failure. */
TEST_CASE(test_input_unread) {
        World *w = *state;
        _cleanup_free_ char *id = new0(char, 200001);

        memset(id, 'x', 200000);
        write_script(w, "exec <&-; echo '{\"state\":\"present\"}'");
        ask(w, false, id);
        assert_int_equal(w->outcome, CLOUD_OK);
}

TEST_CASE(test_not_run) {
        World *w = *state;

        ask(w, false, "rack:7"); /* there is no script yet */
        assert_int_equal(w->outcome, CLOUD_DENIED);
        assert_non_null(strstr(w->message, "could not be run: No such file"));
        write_script(w, "echo '{\"state\":\"gone\"}'; touch ran");
        w->may_send = false;
        ask(w, true, "rack:7");
        assert_int_equal(w->outcome, CLOUD_RETRY);
        assert_string_equal(w->message, "lease lost");
        ask(w, true, "");
        assert_int_equal(w->outcome, CLOUD_INVALID);
        assert_int_equal(access(w->folder, F_OK), 0);
        free(w->command);
        w->command = strf("%s/ran", w->folder);
        assert_int_equal(access(w->command, F_OK), -1);
}

typedef struct Ending {
        MachineEnd *machine;
        bool over;
} Ending;

static void on_machine(MachineEnd *m, void *userdata) {
        Ending *e = userdata;

        machine_end_confirm(m, USEC_INFINITY);
        e->over = machine_end_state(m) == MACHINE_GONE;
}

/* A command as its page has it, whose terminate says no more than that it is accepted: it is asked how the
 * machine is until that has ended, and not told again. */
TEST_CASE(test_played_to_the_end) {
        World *w = *state;
        Ending e = { 0 };
        _cleanup_free_ char *calls = NULL;
        usec_t limit = usec_add(loop_now(w->env.loop), 100 * USEC_PER_SEC);

        write_script(w, "cat >/dev/null; echo $1 >>calls\n"
                        "case $1 in\n"
                        "terminate) echo '{}' ;;\n"
                        "*) if [ $(grep -c describe calls) -lt 3 ]; then echo '{\"state\":\"present\"}'\n"
                        "   else echo '{\"state\":\"gone\"}'; fi ;;\n"
                        "esac");
        assert_return_code(random_new(1, &w->env.random), 0);
        assert_return_code(machine_end_new(&w->env,
                                           &(MachineEndOptions){ .provider = w->provider,
                                                                 .machine = &rack,
                                                                 .op_id = "op-7",
                                                                 .pool = "pool-a",
                                                                 .changed = on_machine,
                                                                 .userdata = &e },
                                           &e.machine),
                           0);
        machine_end_terminate(e.machine);
        while (!e.over && loop_now(w->env.loop) < limit)
                if (loop_iterate(w->env.loop, 10 * USEC_PER_MSEC) == 0 && waitid(P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT) < 0)
                        clock_skip(USEC_PER_SEC); /* no command runs: skip the wait for the next one */
        assert_true(e.over);
        calls = read_back(w, "calls");
        assert_string_equal(calls, "terminate\ndescribe\ndescribe\ndescribe\n");
        machine_end_free(e.machine);
        w->env.random = random_free(w->env.random);
}

/* The provider runs at most 16 of 40 commands at once. At least two run at once: the first command waits for
 * another. The test cancels some calls. */
TEST_CASE(test_many) {
        World *w = *state;
        CloudCall *calls[40];
        _cleanup_free_ char *log = NULL;
        int running = 0, most = 0;

        write_script(w, "echo + >>log; left=6000; while [ $(grep -c + log) -lt 2 ] && [ $left -gt 0 ]; "
                        "do left=$((left - 1)); sleep 0.01; done; echo - >>log; echo '{\"state\":\"present\"}'");
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                assert_return_code(cloud_describe(w->provider, &rack, on_answer, w, &calls[i]), 0);
        calls[20] = cloud_call_free(calls[20]);
        calls[39] = cloud_call_free(calls[39]);
        run(w, 38);
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                cloud_call_free(calls[i]);

        log = read_back(w, "log");
        for (const char *p = log; *p; p++) {
                running += *p == '+' ? 1 : *p == '-' ? -1 : 0;
                most = MAX(most, running);
        }
        assert_int_equal(running, 0);
        assert_in_range(most, 2, CLOUD_EXEC_RUNNING_MAX);
}

static void touch(World *w, const char *name) {
        _cleanup_free_ char *path = strf("%s/%s", w->folder, name);
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_int_equal(fclose(f), 0);
}

/* A terminate of a machine of its own, whose turn is counted, and whose owner confirms when the test says so. */
typedef struct Turn {
        World *world;
        CloudCall *call;
        unsigned *n_turns;
} Turn;

static void on_turn_asked(void *userdata) {
        (*((Turn *) userdata)->n_turns)++;
}

static void on_turn_answer(const CloudResult *result, void *userdata) {
        on_answer(result, ((Turn *) userdata)->world);
}

static void turn_take(World *w, unsigned *n_turns, Turn *t) {
        char id[32];

        (void) snprintf(id, sizeof(id), "rack:%u", w->n_machines++);
        *t = (Turn){ .world = w, .n_turns = n_turns };
        assert_return_code(cloud_reserve(w->provider,
                                         &(CloudReservation){ .operation = CLOUD_TERMINATE,
                                                              .machine = &(CloudMachine){ .provider_id = id },
                                                              .op_id = "op-7",
                                                              .pool = "pool-a",
                                                              .guard = { may_send, w },
                                                              .prove = on_turn_asked,
                                                              .done = on_turn_answer,
                                                              .userdata = t },
                                         &t->call),
                           0);
}

static void turn_confirm(Turn *t) {
        cloud_call_send(t->call, USEC_INFINITY);
}

/* So many, and not one more soon after. */
static void await_count(World *w, const unsigned *n, unsigned count) {
        for (unsigned i = 0; i < 6000 && *n < count; i++)
                run_for(w, 10 * USEC_PER_MSEC);
        run_for(w, 50 * USEC_PER_MSEC);
        assert_int_equal(*n, count);
}

/* Who has a turn has a place, and waits for no child of others; looks go on, however many turns are held. */
TEST_CASE(test_turns) {
        World *w = *state;
        Turn turns[20], late;
        CloudCall *looks[20];
        unsigned n_turns = 0, n_late = 0;

        write_script(w, "cat >input; left=6000; while [ \"$1\" = describe ] && ! [ -e go ] && [ $left -gt 0 ]; "
                        "do left=$((left - 1)); sleep 0.01; done; touch $1; echo '{}'");
        for (size_t i = 0; i < ELEMENTSOF(turns); i++)
                turn_take(w, &n_turns, &turns[i]);
        assert_int_equal(n_turns, 0);
        await_count(w, &n_turns, CLOUD_EXEC_CHANGES_MAX);

        /* All other places are taken, and more wait: the terminate does not. */
        for (size_t i = 0; i < ELEMENTSOF(looks); i++)
                assert_return_code(cloud_describe(w->provider, &rack, on_answer, w, &looks[i]), 0);
        run_for(w, 50 * USEC_PER_MSEC);
        turn_confirm(&turns[3]);
        assert_int_equal(w->n_answers, 0);
        run(w, 1);
        await_count(w, &n_turns, CLOUD_EXEC_CHANGES_MAX + 1); /* its place is free, and the next's */

        /* The lease is lost: the place is free again, and no child was there. */
        w->may_send = false;
        turn_confirm(&turns[4]);
        run(w, 2);
        assert_string_equal(w->message, "lease lost");
        await_count(w, &n_turns, CLOUD_EXEC_CHANGES_MAX + 2);

        /* Given back, waiting and come: the others get theirs. */
        turns[18].call = cloud_call_free(turns[18].call);
        for (size_t i = 5; i < 12; i++)
                turns[i].call = cloud_call_free(turns[i].call);
        await_count(w, &n_turns, 19);
        turn_take(w, &n_late, &late);
        cloud_call_free(late.call);
        touch(w, "go");
        run(w, 2 + ELEMENTSOF(looks));
        assert_int_equal(n_turns, 19);
        assert_int_equal(n_late, 0);
        assert_int_equal(w->provider->answers[CLOUD_TURN][CLOUD_OK], 19);
        assert_int_equal(w->provider->answers[CLOUD_DESCRIBE][CLOUD_OK], ELEMENTSOF(looks));
        assert_int_equal(w->provider->answers[CLOUD_TERMINATE][CLOUD_OK], 1);
        assert_int_equal(w->provider->answers[CLOUD_TERMINATE][CLOUD_RETRY], 1);
        for (size_t i = 0; i < ELEMENTSOF(turns); i++)
                cloud_call_free(turns[i].call);
        for (size_t i = 0; i < ELEMENTSOF(looks); i++)
                cloud_call_free(looks[i]);
}

/* Dropping the call kills what it started. */
TEST_CASE(test_cancel) {
        World *w = *state;
        CloudCall *c;
        _cleanup_free_ char *finished = strf("%s/finished", w->folder),
                            *started = strf("%s/started", w->folder), *pid = NULL;

        write_script(w, "echo $$ >starts; mv starts started; sleep 100; touch finished");
        assert_return_code(cloud_describe(w->provider, &rack, on_answer, w, &c), 0);
        for (unsigned i = 0; i < 6000 && access(started, F_OK) < 0; i++)
                run_for(w, 10 * USEC_PER_MSEC);
        assert_int_equal(access(started, F_OK), 0);
        pid = read_back(w, "started");
        assert_true(atoi(pid) > 1);
        cloud_call_free(c);
        for (unsigned i = 0; i < 6000 && kill(-atoi(pid), 0) == 0; i++)
                run_for(w, 10 * USEC_PER_MSEC);
        assert_int_equal(kill(-atoi(pid), 0), -1);
        assert_int_equal(w->n_answers, 0);
        assert_int_equal(access(finished, F_OK), -1);
}

TEST_CASE(test_configuration) {
        static const char *const commands[] = { NULL, "", "provider", "./provider" };
        World *w = *state;

        for (size_t i = 0; i < ELEMENTSOF(commands); i++) {
                const char *message = NULL;
                CloudProvider *p = NULL;

                assert_int_equal(cloud_provider_new(&w->env,
                                                    &(CloudConfig){ .name = "exec", .command = commands[i] },
                                                    &p, &message),
                                 -EINVAL);
                assert_non_null(strstr(message, "absolute path"));
        }
        for (InstanceState s = 0; s < _INSTANCE_STATE_MAX; s++)
                assert_int_equal(instance_state_from_string(instance_state_to_string(s)), s);
        assert_int_equal(instance_state_from_string("running"), _INSTANCE_STATE_INVALID);
        assert_int_equal(instance_state_from_string(NULL), _INSTANCE_STATE_INVALID);
        for (CloudOutcome o = 0; o < _CLOUD_OUTCOME_MAX; o++)
                assert_non_null(cloud_outcome_to_string(o));
}

#define WORLD_TEST(t) cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                WORLD_TEST(test_answers),      WORLD_TEST(test_request), WORLD_TEST(test_owns), WORLD_TEST(test_reboot),
                WORLD_TEST(test_input_unread), WORLD_TEST(test_not_run), WORLD_TEST(test_many),
                WORLD_TEST(test_turns),        WORLD_TEST(test_cancel),  WORLD_TEST(test_configuration),
                WORLD_TEST(test_played_to_the_end), WORLD_TEST(test_lists),
                WORLD_TEST(test_two_operations),
        };
        return cmocka_run_group_tests_name("cloud-exec", tests, NULL, NULL);
}
