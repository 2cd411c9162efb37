/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   describe    WAITING --pump: a place is free--> RUNNING --its child ends--> DONE
 *   terminate   WAITING --pump: the same--> TURN --its owner's word--> GOING --pump--> RUNNING ...
 *
 * A place is taken in TURN, GOING and RUNNING.
 */
#include "cloud-exec.h"

#include "json.h"
#include "list.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define PROTOCOL_VERSION 1
#define TIMEOUT_USEC (60 * USEC_PER_SEC)
#define OUTPUT_MAX_BYTES (1024u * 1024u)
#define RETRY_AFTER_MAX_SEC 3600
#define EXIT_TRY_AGAIN 75
#define MESSAGE_MAX_BYTES 300u
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define DEFAULT_LANG "C.UTF-8"

typedef struct ExecProvider {
        CloudProvider provider;
        Env *env;
        char *command;
        char **environment;
        size_t n_calls, n_places, n_turns;
        List waiting, going;
        Timer *pump;
} ExecProvider;

typedef enum ExecStage {
        EXEC_WAITING,
        EXEC_TURN,
        EXEC_GOING,
        EXEC_RUNNING,
        EXEC_DONE,
        _EXEC_STAGE_MAX,
} ExecStage;

typedef struct ExecCall {
        CloudCall call;
        ExecStage stage;
        ListNode node; /* WAITING, GOING */
        bool terminate;
        CloudMachine *machine;
        char *shown_id; /* fit for a log */
        char *input;
        size_t input_size;
        HttpGuard guard;
        Child *child;
        cloud_done_t done;
        void *userdata;
} ExecCall;

/* What an answer says, owned. */
typedef struct ExecAnswer {
        InstanceState state;
        bool has_error;
        char *code;
        char *message;
        usec_t retry_after_usec;
} ExecAnswer;

static ExecProvider *provider_of(const CloudCall *c) {
        return CONTAINER_OF(c->provider, ExecProvider, provider);
}

static const char *operation(const ExecCall *c) {
        return c->terminate ? "terminate" : "describe";
}

static void pump_soon(ExecProvider *p) {
        timer_arm_earlier(p->pump, loop_now(p->env->loop));
}

/* The only writer of the stage: keeps the provider's books. */
static void call_set_stage(ExecCall *c, ExecStage to) {
        static const bool has_place[_EXEC_STAGE_MAX] = {
                [EXEC_TURN] = true,
                [EXEC_GOING] = true,
                [EXEC_RUNNING] = true,
        };
        ExecProvider *p = provider_of(&c->call);
        List *const lists[_EXEC_STAGE_MAX] = { [EXEC_WAITING] = &p->waiting, [EXEC_GOING] = &p->going };

        if (lists[c->stage])
                list_remove(lists[c->stage], &c->node);
        if (lists[to])
                list_append(lists[to], &c->node);
        p->n_places = p->n_places + has_place[to] - has_place[c->stage];
        p->n_turns = p->n_turns + (to == EXEC_TURN) - (c->stage == EXEC_TURN);
        c->stage = to;
        if (p->going.first || p->waiting.first)
                pump_soon(p);
}

/* The call may be freed in here. */
static void call_finish(ExecCall *c, CloudResult result) {
        ExecProvider *p = provider_of(&c->call);

        call_set_stage(c, EXEC_DONE);
        result.message = strempty(result.message);
        log_debug(p->env->log, "%s %s of %s: %s, %s%s%s", p->command, operation(c), c->shown_id,
                  cloud_outcome_to_string(result.outcome), instance_state_to_string(result.state),
                  *result.message ? ": " : "", result.message);
        cloud_call_answer(&c->call, &result, c->done, c->userdata);
}

/* -- the answer ----------------------------------------------------------------------------- */

static void answer_done(ExecAnswer *a) {
        free(a->code);
        free(a->message);
}

static int parse_error(const Json *error, ExecAnswer *a) {
        const char *code = json_string_or_null(json_get(error, "code"));
        const char *message = json_is_string(error) ? json_string_or_null(error)
                                                    : json_string_or_null(json_get(error, "message"));

        a->has_error = true;
        a->code = code ? str_sanitize(code, 64) : NULL;
        a->message = message ? str_sanitize(message, MESSAGE_MAX_BYTES) : NULL;
        return (code && !a->code) || (message && !a->message) ? -ENOMEM : 0;
}

/* -EBADMSG for what is no answer of the protocol. */
static int parse_answer(const char *data, size_t size, ExecAnswer *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *root, *error, *retry_after;
        const char *state = NULL;
        double seconds = 0;
        int r;

        r = json_parse(data, size, OUTPUT_MAX_BYTES, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        root = json_root(doc);
        if (!json_is_object(root))
                return -EBADMSG;

        r = json_string(json_get(root, "state"), &state);
        if (r < 0 && r != -ENODATA)
                return -EBADMSG;
        if (state) {
                ret->state = instance_state_from_string(state);
                if (ret->state < 0 || ret->state == INSTANCE_NOT_FOUND) /* no word of the protocol */
                        return -EBADMSG;
        }

        retry_after = json_get(root, "retryAfter");
        r = json_double(retry_after, &seconds);
        if ((r < 0 && r != -ENODATA) || seconds < 0)
                return -EBADMSG;
        ret->retry_after_usec =
                (usec_t) (MIN(seconds, (double) RETRY_AFTER_MAX_SEC) * (double) USEC_PER_SEC);

        error = json_get(root, "error");
        if (!error || json_is_null(error))
                return 0;
        if (!json_is_string(error) && !json_is_object(error))
                return -EBADMSG;
        return parse_error(error, ret);
}

static CloudOutcome outcome_of_code(const char *code) {
        if (streq_ptr(code, "protected"))
                return CLOUD_PROTECTED;
        if (streq_ptr(code, "denied"))
                return CLOUD_DENIED;
        if (streq_ptr(code, "invalid"))
                return CLOUD_INVALID;
        return CLOUD_RETRY;
}

/* Exit 0 or 75. */
static void finish_answered(ExecCall *c, const ChildResult *result) {
        _cleanup_(answer_done) ExecAnswer a = { .state = INSTANCE_UNKNOWN };
        bool try_again = result->exit_status == EXIT_TRY_AGAIN;
        _cleanup_free_ char *tail = NULL;
        CloudResult out = { .outcome = CLOUD_OK };
        int r;

        r = parse_answer(result->output, result->output_size, &a);
        if (r < 0 && !try_again)
                return call_finish(
                        c, (CloudResult){
                                   .outcome = CLOUD_RETRY,
                                   .message = "The provider's command exited with 0, but its output is no "
                                              "answer of the protocol" });
        if (r < 0) {
                tail = str_sanitize(result->errors, MESSAGE_MAX_BYTES);
                return call_finish(
                        c,
                        (CloudResult){ .outcome = CLOUD_RETRY,
                                       .message = isempty(tail) ? "The provider's command asks to try again"
                                                                : tail });
        }

        out.state = a.has_error ? INSTANCE_UNKNOWN : a.state;
        out.code = a.code;
        out.retry_after_usec = a.retry_after_usec;
        if (a.has_error)
                out.outcome = outcome_of_code(a.code);
        else if (try_again || (!c->terminate && a.state == INSTANCE_UNKNOWN && a.retry_after_usec > 0))
                out.outcome = CLOUD_RETRY;
        if (try_again)
                out.state = INSTANCE_UNKNOWN;
        if (a.has_error)
                out.message = isempty(a.message)
                                      ? "The provider's command reports an error without a message"
                                      : a.message;
        else if (out.outcome == CLOUD_RETRY)
                out.message = "The provider's command asks to try again";
        else if (!c->terminate && out.state == INSTANCE_UNKNOWN)
                out.message = "The provider's command does not know the state of this machine";
        call_finish(c, out);
}

static void finish_not_run(ExecCall *c, int error) {
        ExecProvider *p = provider_of(&c->call);
        bool passing = error == -ETIMEDOUT || error == -ECHILD || error == -EAGAIN || error == -ENOMEM;
        _cleanup_free_ char *message = NULL;

        if (error == -ETIMEDOUT)
                message = strdup("The provider's command was killed: it did not answer within 60 seconds");
        else if (error == -ECHILD)
                message = strdup("The provider's command was killed by a signal");
        else if (error == -E2BIG)
                message = strdup("The provider's command was killed: its output is larger than 1 MiB");
        else
                message = strf("The provider's command '%s' could not be run: %s", p->command,
                               strerror(-error));
        call_finish(c, (CloudResult){ .outcome = passing ? CLOUD_RETRY : CLOUD_DENIED,
                                      .message = message ? message : "Out of memory" });
}

/* The last line that says something: what a person looks for first. */
static char *last_line(const char *text) {
        _cleanup_free_ char *copy = strdup(text);
        char *stripped, *newline;

        if (!copy)
                return NULL;
        stripped = strstrip(copy);
        newline = strrchr(stripped, '\n');
        return str_sanitize(newline ? newline + 1 : stripped, MESSAGE_MAX_BYTES);
}

static void on_child(const ChildResult *result, void *userdata) {
        ExecCall *c = userdata;
        _cleanup_free_ char *tail = NULL, *message = NULL;

        if (result->error < 0)
                return finish_not_run(c, result->error);
        if (result->exit_status == 0 || result->exit_status == EXIT_TRY_AGAIN)
                return finish_answered(c, result);

        tail = last_line(strempty(result->errors));
        message = strf("The provider's command exited with %d%s%s", result->exit_status,
                       isempty(tail) ? "" : ": ", strempty(tail));
        call_finish(
                c, (CloudResult){ .outcome = CLOUD_DENIED, .message = message ? message : "Out of memory" });
}

/* -- the question --------------------------------------------------------------------------- */

static void add_node(JsonWriter *w, const CloudMachine *m) {
        if (!m->node)
                return;
        json_open_object(w, "node");
        json_add_string(w, "name", m->node);
        json_add_string(w, "systemUUID", m->system_uuid);
        json_add_string(w, "machineID", m->machine_id);
        if (m->n_addresses > 0)
                json_open_array(w, "addresses");
        for (size_t i = 0; i < m->n_addresses; i++) {
                json_open_object(w, NULL);
                json_add_string(w, "type", m->addresses[i].type);
                json_add_string(w, "address", m->addresses[i].address);
                json_close_object(w);
        }
        if (m->n_addresses > 0)
                json_close_array(w);
        json_close_object(w);
}

static int make_input(ExecCall *c, const char *op_id, const char *pool) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        int r;

        r = json_writer_new(&w);
        if (r < 0)
                return r;
        json_open_object(w, NULL);
        json_add_int64(w, "version", PROTOCOL_VERSION);
        json_add_string(w, "op", operation(c));
        json_add_string(w, "opId", op_id);
        json_add_string(w, "pool", isempty(pool) ? NULL : pool);
        json_add_string(w, "providerID", c->machine->provider_id);
        add_node(w, c->machine);
        json_close_object(w);
        c->input = json_writer_steal(w, &c->input_size);
        return c->input ? 0 : -ENOMEM;
}

/* The call may be freed in here. */
static void call_run(ExecCall *c) {
        ExecProvider *p = provider_of(&c->call);
        char *argv[] = { p->command, (char *) operation(c), NULL };
        int r;

        if (c->guard.may_send && !c->guard.may_send(c->guard.userdata))
                return call_finish(c, (CloudResult){ .outcome = CLOUD_RETRY, .message = "lease lost" });
        r = child_start(p->env->children,
                        &(ChildRequest){ .argv = argv,
                                         .environment = p->environment,
                                         .input = c->input,
                                         .input_size = c->input_size,
                                         .max_output_bytes = OUTPUT_MAX_BYTES,
                                         .timeout_usec = TIMEOUT_USEC },
                        on_child, c, &c->child);
        if (r < 0)
                return finish_not_run(c, r);
        call_set_stage(c, EXEC_RUNNING);
}

/* A place is free for it. The call may be freed in here. */
static void call_admit(ExecCall *c) {
        if (!*c->machine->provider_id)
                return call_finish(
                        c, (CloudResult){ .outcome = CLOUD_INVALID, .message = "The providerID is empty" });
        if (!c->terminate)
                return call_run(c);
        call_set_stage(c, EXEC_TURN);
        cloud_call_answer(&c->call, &(CloudResult){ .outcome = CLOUD_OK, .message = "" }, c->done,
                          c->userdata);
}

/* The first that may go on; NULL: none. */
static ExecCall *first_to_admit(ExecProvider *p) {
        if (p->n_places < CLOUD_EXEC_RUNNING_MAX)
                LIST_FOREACH (c, &p->waiting, ExecCall, node)
                        if (!c->terminate || p->n_turns < CLOUD_EXEC_TURNS_MAX)
                                return c;
        return NULL;
}

static void on_pump(Timer *t, void *userdata) {
        ExecProvider *p = userdata;
        ExecCall *c;

        /* A callback may start others and free any: the lists are read anew each time. */
        while (p->going.first)
                call_run(LIST_ENTRY(p->going.first, ExecCall, node));
        while ((c = first_to_admit(p)))
                call_admit(c);
}

/* -- operations ----------------------------------------------------------------------------- */

/* Whatever the command understands. */
static bool exec_owns(const CloudProvider *provider, const char *provider_id) {
        return !isempty(provider_id);
}

static void exec_call_free(CloudCall *call) {
        ExecCall *c = CONTAINER_OF(call, ExecCall, call);
        ExecProvider *p = provider_of(call);

        call_set_stage(c, EXEC_DONE);
        child_free(c->child);
        cloud_machine_free(c->machine);
        free(c->shown_id);
        free(c->input);
        free(c);
        p->n_calls--;
}

static int start(CloudProvider *provider, const CloudMachine *machine, bool terminate, cloud_done_t done,
                 void *userdata, CloudCall **ret) {
        ExecProvider *p = CONTAINER_OF(provider, ExecProvider, provider);
        ExecCall *c;

        assert(done && ret);
        c = new0(ExecCall, 1);
        if (!c)
                return -ENOMEM;
        *c = (ExecCall){ .call.provider = provider,
                         .stage = EXEC_DONE,
                         .terminate = terminate,
                         .done = done,
                         .userdata = userdata };
        p->n_calls++;

        c->machine = cloud_machine_copy(machine);
        c->shown_id = str_sanitize(machine->provider_id, 256);
        if (!c->machine || !c->shown_id || (!terminate && make_input(c, NULL, NULL) < 0)) {
                exec_call_free(&c->call);
                return -ENOMEM;
        }
        call_set_stage(c, EXEC_WAITING);
        *ret = &c->call;
        return 0;
}

static int exec_describe(CloudProvider *provider, const CloudMachine *machine, cloud_done_t done,
                         void *userdata, CloudCall **ret) {
        return start(provider, machine, false, done, userdata, ret);
}

static int exec_turn(CloudProvider *provider, const CloudMachine *machine, cloud_done_t done, void *userdata,
                     CloudCall **ret) {
        return start(provider, machine, true, done, userdata, ret);
}

static int exec_terminate(CloudCall *turn, const char *op_id, const char *pool, const HttpGuard *guard,
                          cloud_done_t done, void *userdata) {
        ExecCall *c = CONTAINER_OF(turn, ExecCall, call);
        int r;

        assert(c->stage == EXEC_TURN && op_id && done);
        r = make_input(c, op_id, pool);
        if (r < 0)
                return r;
        c->done = done;
        c->userdata = userdata;
        if (guard)
                c->guard = *guard;
        call_set_stage(c, EXEC_GOING);
        return 0;
}

static void exec_free(CloudProvider *provider) {
        ExecProvider *p = CONTAINER_OF(provider, ExecProvider, provider);

        assert(p->n_calls == 0);
        timer_free(p->pump);
        strv_free(p->environment);
        free(p->command);
        free(p);
}

static const CloudProviderOps exec_ops = {
        .name = "exec",
        .owns = exec_owns,
        .takes_names = true,
        .describe = exec_describe,
        .turn = exec_turn,
        .terminate = exec_terminate,
        .call_free = exec_call_free,
        .free = exec_free,
};

static int add_variable(char ***environment, const CloudConfig *config, const char *name,
                        const char *otherwise) {
        const char *value = config->getenv ? config->getenv(name, config->getenv_userdata) : NULL;
        _cleanup_free_ char *variable = NULL;

        if (isempty(value))
                value = otherwise;
        if (!value)
                return 0;
        variable = strf("%s=%s", name, value);
        return variable ? strv_extend(environment, variable) : -ENOMEM;
}

static int provider_fill(ExecProvider *p, const CloudConfig *config) {
        int r;

        p->command = strdup(config->command);
        if (!p->command)
                return -ENOMEM;
        r = add_variable(&p->environment, config, "PATH", DEFAULT_PATH);
        if (r >= 0)
                r = add_variable(&p->environment, config, "HOME", NULL);
        if (r >= 0)
                r = add_variable(&p->environment, config, "LANG", DEFAULT_LANG);
        if (r >= 0)
                r = timer_new(p->env->loop, "exec", on_pump, p, &p->pump);
        return r;
}

int cloud_exec_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message) {
        ExecProvider *p;
        int r;

        assert(env && config && ret && reterr_message);
        *reterr_message = "provider exec needs Command=, the absolute path of an executable";
        if (isempty(config->command) || config->command[0] != '/' || !env->children)
                return -EINVAL;

        *reterr_message = "out of memory";
        p = new0(ExecProvider, 1);
        if (!p)
                return -ENOMEM;
        p->provider.ops = &exec_ops;
        p->env = env;
        r = provider_fill(p, config);
        if (r < 0) {
                exec_free(&p->provider);
                return r;
        }
        *ret = &p->provider;
        return 0;
}
