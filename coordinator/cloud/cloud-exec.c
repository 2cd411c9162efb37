/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-exec.h"

#include "cloud-engine.h"
#include "json.h"
#include "string-util.h"
#include "strv.h"

#define PROTOCOL_VERSION 1
#define TIMEOUT_USEC (60 * USEC_PER_SEC)
#define OUTPUT_MAX_BYTES (1024u * 1024u)
#define RETRY_AFTER_MAX_SEC 3600
#define EXIT_UNSUPPORTED 64
#define EXIT_TRY_AGAIN 75
#define TEXT_MAX_BYTES 256u /* of a group's name or template */
#define GROUP_SIZE_MAX 1000000
#define MESSAGE_MAX_BYTES 300u
#define PROVIDER_ID_MAX_BYTES 2048u /* longer ones are never adopted */
#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define DEFAULT_LANG "C.UTF-8"

typedef struct ExecProvider {
        CloudEngine engine;
        char *command;
        char **environment;
} ExecProvider;

/* One run of the command, for one request. */
typedef struct ExecBatch {
        CloudBatch batch;
        char *input;
        size_t input_size;
        Child *child;
} ExecBatch;

/* What an answer says, owned. */
typedef struct ExecAnswer {
        InstanceState state;
        bool has_error;
        char *code;
        char *message;
        usec_t retry_after_usec;
        bool has_instances;
        CloudInstance *instances; /* own their texts */
        size_t n_instances, n_unreadable;
        CloudAnswer launch; /* _CLOUD_ANSWER_MAX: the answer has no field "launch" */
        char *provider_id, *group_name, *group_template;
        CloudGroup group; /* its texts are those above */
        bool has_group;
} ExecAnswer;

static ExecProvider *provider_of(const CloudEngine *e) {
        return CONTAINER_OF(e, ExecProvider, engine);
}

static ExecBatch *exec_batch(CloudBatch *b) {
        return CONTAINER_OF(b, ExecBatch, batch);
}

static const char *operation(const CloudRequest *c) {
        return cloud_operation_names[c->call.operation];
}

/* -- the answer ----------------------------------------------------------------------------- */

static void answer_done(ExecAnswer *a) {
        for (size_t i = 0; i < a->n_instances; i++)
                free((char *) a->instances[i].provider_id);
        free(a->instances);
        free(a->provider_id);
        free(a->group_name);
        free(a->group_template);
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

static int parse_state(const Json *v, InstanceState *ret) {
        const char *state = NULL;
        int r;

        r = json_string(v, &state);
        if (r == -ENODATA)
                return 0;
        *ret = r < 0 ? _INSTANCE_STATE_INVALID : instance_state_from_string(state);
        return *ret < 0 || *ret == INSTANCE_NOT_FOUND ? -EBADMSG : 0; /* no word of the protocol */
}

/* Reads the instances of a list. An instance without a readable providerID is skipped and counted: one broken
 * object must not hide all others. An instance whose state alone cannot be read stays in the list with an unknown
 * state, so that another entry with the same providerID does not count as the only one. */
static int parse_instances(const Json *list, ExecAnswer *a) {
        if (!list || json_is_null(list))
                return 0;
        if (!json_is_array(list))
                return -EBADMSG;
        a->has_instances = true;
        a->instances = new0(CloudInstance, MAX(json_size(list), (size_t) 1));
        if (!a->instances)
                return -ENOMEM;
        JSON_FOREACH(v, list) {
                CloudInstance *i = &a->instances[a->n_instances];
                const char *id = json_string_or_null(json_get(v, "providerID"));

                if (isempty(id) || strlen(id) > PROVIDER_ID_MAX_BYTES) {
                        a->n_unreadable++;
                        continue;
                }
                if (parse_state(json_get(v, "state"), &i->state) < 0) {
                        i->state = INSTANCE_UNKNOWN;
                        a->n_unreadable++;
                }
                i->provider_id = strdup(id);
                if (!i->provider_id)
                        return -ENOMEM;
                a->n_instances++;
        }
        return 0;
}

/* NULL where it is absent or null. -EBADMSG: no text, empty, or longer than max. */
static int parse_text(const Json *v, size_t max, char **ret) {
        const char *text = NULL;
        int r;

        if (!v || json_is_null(v))
                return 0;
        r = json_string(v, &text);
        if (r < 0 || isempty(text) || strlen(text) > max)
                return -EBADMSG;
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

/* A number of machines; -1 where it is absent or null. */
static int parse_size(const Json *v, int64_t *ret) {
        int r;

        *ret = -1;
        r = json_int64(v, ret);
        if (r == -ENODATA)
                return 0;
        return r < 0 || *ret < 0 || *ret > GROUP_SIZE_MAX ? -EBADMSG : 0;
}

static int parse_group(const Json *v, ExecAnswer *a) {
        int r;

        if (!v)
                return -EBADMSG;
        if (json_is_null(v)) { /* the machine is in none */
                a->has_group = true;
                return 0;
        }
        if (!json_is_object(v))
                return -EBADMSG;
        r = parse_text(json_get(v, "name"), TEXT_MAX_BYTES, &a->group_name);
        if (r >= 0)
                r = parse_text(json_get(v, "template"), TEXT_MAX_BYTES, &a->group_template);
        if (r >= 0)
                r = parse_size(json_get(v, "size"), &a->group.size);
        if (r >= 0)
                r = parse_size(json_get(v, "min"), &a->group.min);
        if (r >= 0)
                r = parse_size(json_get(v, "max"), &a->group.max);
        if (r < 0)
                return r;
        a->has_group = a->group_name && a->group.size >= 0;
        a->group.name = a->group_name;
        a->group.template = a->group_template;
        return a->has_group ? 0 : -EBADMSG;
}

static int parse_launch(const Json *v, CloudAnswer *ret) {
        const char *word = json_string_or_null(v);

        *ret = _CLOUD_ANSWER_MAX;
        for (size_t i = 0; word && cloud_answer_names[i]; i++)
                if (streq(word, cloud_answer_names[i]))
                        *ret = (CloudAnswer) i;
        return *ret == _CLOUD_ANSWER_MAX || *ret == CLOUD_ANSWER_AT_MINIMUM ? -EBADMSG : 0;
}

/* What this operation has of its own. */
static int parse_of_operation(const Json *root, CloudOperation operation, ExecAnswer *ret) {
        const Json *id = json_get(root, "providerID");
        int r = 0;

        if (operation == CLOUD_LIST)
                return parse_instances(json_get(root, "instances"), ret);
        if (operation == CLOUD_GROUP)
                return parse_group(json_get(root, "group"), ret);
        if (operation == CLOUD_FIND && !id) /* null is an answer, and nothing is none */
                return -EBADMSG;
        if (operation == CLOUD_LAUNCH)
                r = parse_launch(json_get(root, "launch"), &ret->launch);
        if (r >= 0 && (operation == CLOUD_LAUNCH || operation == CLOUD_FIND))
                r = parse_text(id, PROVIDER_ID_MAX_BYTES, &ret->provider_id);
        return r;
}

/* -EBADMSG for what is no answer of the protocol. */
static int parse_answer(const char *data, size_t size, CloudOperation operation, ExecAnswer *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *root, *error, *launch, *retry_after;
        double seconds = 0;
        int r;

        r = json_parse(data, size, OUTPUT_MAX_BYTES, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        root = json_root(doc);
        if (!json_is_object(root))
                return -EBADMSG;

        r = parse_state(json_get(root, "state"), &ret->state);
        if (r < 0)
                return r;

        retry_after = json_get(root, "retryAfter");
        r = json_double(retry_after, &seconds);
        if ((r < 0 && r != -ENODATA) || seconds < 0)
                return -EBADMSG;
        ret->retry_after_usec =
                (usec_t) (MIN(seconds, (double) RETRY_AFTER_MAX_SEC) * (double) USEC_PER_SEC);

        error = json_get(root, "error");
        if (!error || json_is_null(error))
                return parse_of_operation(root, operation, ret);
        if (!json_is_string(error) && !json_is_object(error))
                return -EBADMSG;
        launch = operation == CLOUD_LAUNCH ? json_get(root, "launch") : NULL;
        r = launch && !json_is_null(launch) ? parse_launch(launch, &ret->launch) : 0;
        return r < 0 ? r : parse_error(error, ret);
}

static bool operation_is_optional(CloudOperation operation) {
        return operation != CLOUD_DESCRIBE && operation != CLOUD_TERMINATE;
}

static CloudOutcome outcome_of_code(const char *code, CloudOperation operation) {
        if (operation_is_optional(operation) && streq_ptr(code, CLOUD_UNSUPPORTED))
                return CLOUD_INVALID;
        if (operation == CLOUD_LAUNCH && streq_ptr(code, cloud_answer_names[CLOUD_ANSWER_NO_CAPACITY]))
                return CLOUD_NO_CAPACITY;
        if ((operation == CLOUD_LEAVE || operation == CLOUD_END) && streq_ptr(code, cloud_answer_names[CLOUD_ANSWER_AT_MINIMUM]))
                return CLOUD_AT_MINIMUM;
        if (streq_ptr(code, "protected"))
                return CLOUD_PROTECTED;
        if (streq_ptr(code, "denied"))
                return CLOUD_DENIED;
        if (streq_ptr(code, "invalid"))
                return CLOUD_INVALID;
        return CLOUD_RETRY;
}

/* Sets the outcome and the message of a launch by its field "launch", which may stand beside an "error". */
static void say_launch(const ExecAnswer *a, bool try_again, CloudResult *out) {
        static const struct {
                CloudOutcome outcome;
                const char *message;
        } said[_CLOUD_ANSWER_MAX] = {
                [CLOUD_ANSWER_ACCEPTED] = { CLOUD_OK, NULL },
                [CLOUD_ANSWER_UNKNOWN] = { CLOUD_RETRY, "The provider's command does not know whether it has launched a machine" },
                [CLOUD_ANSWER_LATER] = { CLOUD_RETRY, "The provider's command asks to try again" },
                [CLOUD_ANSWER_NO_CAPACITY] = { CLOUD_NO_CAPACITY, "The provider's command has no capacity for one more machine" },
                [CLOUD_ANSWER_REFUSED] = { CLOUD_DENIED, "The provider's command refuses to launch a machine" },
        };
        /* "accepted" contradicts an error and the exit status 75: the machine may have been launched or not. */
        bool contradicted = a->launch == CLOUD_ANSWER_ACCEPTED && (try_again || a->has_error);
        CloudAnswer answer = contradicted ? CLOUD_ANSWER_UNKNOWN : a->launch;

        out->outcome = said[answer].outcome;
        out->message = said[answer].message;
        out->undecided = answer == CLOUD_ANSWER_UNKNOWN;
}

/* Exit 0 or 75. */
static void finish_answered(CloudRequest *c, const ChildResult *result) {
        _cleanup_(answer_done) ExecAnswer a = { .state = INSTANCE_UNKNOWN, .launch = _CLOUD_ANSWER_MAX };
        bool try_again = result->exit_status == EXIT_TRY_AGAIN, list = c->call.operation == CLOUD_LIST;
        _cleanup_free_ char *tail = NULL;
        CloudResult out = { .outcome = CLOUD_OK };
        int r;

        r = parse_answer(result->output, result->output_size, c->call.operation, &a);
        if (r >= 0 && list && !a.has_error && !a.has_instances)
                r = -EBADMSG; /* no list is no empty list */
        if (r < 0 && !try_again)
                return cloud_request_finish(
                        c, (CloudResult){
                                   .outcome = CLOUD_RETRY,
                                   .undecided = true,
                                   .message = "The provider's command exited with 0, but its output is no answer of the protocol" });
        if (r < 0) {
                tail = str_sanitize(result->errors, MESSAGE_MAX_BYTES);
                return cloud_request_finish(
                        c,
                        (CloudResult){ .outcome = CLOUD_RETRY,
                                       .message = isempty(tail) ? "The provider's command asks to try again"
                                                                : tail });
        }

        out.state = a.has_error ? INSTANCE_UNKNOWN : a.state;
        out.code = a.code;
        out.retry_after_usec = a.retry_after_usec;
        if (a.launch != _CLOUD_ANSWER_MAX)
                say_launch(&a, try_again, &out);
        else if (a.has_error)
                out.outcome = outcome_of_code(a.code, c->call.operation);
        else if (try_again || (c->call.operation == CLOUD_DESCRIBE && a.state == INSTANCE_UNKNOWN && a.retry_after_usec > 0))
                out.outcome = CLOUD_RETRY;
        if (try_again)
                out.state = INSTANCE_UNKNOWN;
        if (!isempty(a.message))
                out.message = a.message;
        else if (a.has_error && !out.message)
                out.message = "The provider's command reports an error without a message";
        else if (out.outcome == CLOUD_RETRY && !out.message)
                out.message = "The provider's command asks to try again";
        else if (c->call.operation == CLOUD_DESCRIBE && out.state == INSTANCE_UNKNOWN)
                out.message = "The provider's command does not know the state of this machine";
        if (list && out.outcome == CLOUD_OK) {
                out.instances = a.instances;
                out.n_instances = a.n_instances;
                out.n_unreadable = a.n_unreadable;
        }
        if (out.outcome == CLOUD_OK) {
                out.provider_id = a.provider_id;
                out.group = a.group;
        }
        cloud_request_finish(c, out);
}

/* The command did not run, or not to its end: what that means, and in words (NULL on ENOMEM). */
static CloudOutcome outcome_of_not_run(const ExecProvider *p, int error, char **ret_message) {
        bool passing = error == -ETIMEDOUT || error == -ECHILD || error == -EAGAIN || error == -ENOMEM;

        if (error == -ETIMEDOUT)
                *ret_message = strdup("The provider's command was killed: it did not answer within 60 seconds");
        else if (error == -ECHILD)
                *ret_message = strdup("The provider's command was killed by a signal");
        else if (error == -E2BIG)
                *ret_message = strdup("The provider's command was killed: its output is larger than 1 MiB");
        else
                *ret_message = strf("The provider's command '%s' could not be run: %s", p->command,
                                    strerror(-error));
        return passing ? CLOUD_RETRY : CLOUD_DENIED;
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

/* Returns true if the command may have run without saying what it did. -ENOMEM: of its output, or before it was started. */
static bool may_have_acted(const ChildResult *result) {
        return result->error == 0 || result->error == -ETIMEDOUT || result->error == -ECHILD ||
               result->error == -E2BIG || result->error == -ENOMEM;
}

static void finish_ended(CloudRequest *c, const ChildResult *result) {
        _cleanup_free_ char *tail = NULL, *message = NULL;
        CloudOutcome outcome = CLOUD_DENIED;

        if (result->error < 0)
                outcome = outcome_of_not_run(provider_of(cloud_request_engine(c)), result->error, &message);
        else if (result->exit_status == 0 || result->exit_status == EXIT_TRY_AGAIN)
                return finish_answered(c, result);
        else {
                bool unsupported = result->exit_status == EXIT_UNSUPPORTED && operation_is_optional(c->call.operation);

                tail = last_line(strempty(result->errors));
                if (unsupported)
                        return cloud_request_finish(c, (CloudResult){ .outcome = CLOUD_INVALID,
                                                                      .code = CLOUD_UNSUPPORTED,
                                                                      .message = isempty(tail) ? "The provider's command has no such operation" : tail });
                message = strf("The provider's command exited with %d%s%s", result->exit_status,
                               isempty(tail) ? "" : ": ", strempty(tail));
        }
        cloud_request_finish(c, (CloudResult){ .outcome = outcome,
                                               .undecided = may_have_acted(result),
                                               .message = cloud_message_or_no_memory(message) });
}

static void on_child(const ChildResult *result, void *userdata) {
        ExecBatch *b = userdata;

        b->batch.answering = true;
        finish_ended(cloud_batch_first(&b->batch), result);
        cloud_batch_free(&b->batch);
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

static int make_input(ExecBatch *b, const CloudRequest *c) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        int r;

        r = json_writer_new(&w);
        if (r < 0)
                return r;
        json_open_object(w, NULL);
        json_add_int64(w, "version", PROTOCOL_VERSION);
        json_add_string(w, "op", operation(c));
        json_add_string(w, "opId", c->reservation.op_id);
        json_add_string(w, "pool", isempty(c->reservation.pool) ? NULL : c->reservation.pool);
        json_add_string(w, "providerID", *c->machine->provider_id ? c->machine->provider_id : NULL);
        json_add_string(w, "group", c->reservation.launch.group);
        json_add_string(w, "like", c->reservation.launch.like);
        json_add_string(w, "zone", c->reservation.launch.zone);
        json_add_string(w, "capacityType", c->reservation.launch.capacity_type);
        if (c->call.operation == CLOUD_LEAVE)
                json_add_bool(w, "refill", c->reservation.refill);
        if (c->call.operation == CLOUD_END)
                json_add_bool(w, "shrink", c->reservation.shrink);
        add_node(w, c->machine);
        json_close_object(w);
        b->input = json_writer_steal(w, &b->input_size);
        return b->input ? 0 : -ENOMEM;
}

static int exec_send(CloudBatch *batch) {
        ExecProvider *p = provider_of(batch->engine);
        CloudRequest *c = cloud_batch_first(batch);
        ExecBatch *b = exec_batch(batch);
        char *argv[] = { p->command, (char *) operation(c), NULL };
        CloudOutcome outcome;
        char *message;
        int r;

        r = make_input(b, c);
        if (r < 0)
                return r;
        r = child_start(p->engine.env->children,
                        &(ChildRequest){ .argv = argv,
                                         .environment = p->environment,
                                         .input = b->input,
                                         .input_size = b->input_size,
                                         .max_output_bytes = OUTPUT_MAX_BYTES,
                                         .timeout_usec = TIMEOUT_USEC },
                        on_child, b, &b->child);
        if (r < 0) {
                outcome = outcome_of_not_run(p, r, &message);
                cloud_request_refuse(c, outcome, message);
        }
        return 0;
}

static void exec_batch_done(CloudBatch *batch) {
        ExecBatch *b = exec_batch(batch);

        child_free(b->child);
        free(b->input);
}

static bool exec_refuses(const CloudRequest *c, char **ret_message) {
        if (*c->machine->provider_id || !cloud_operation_has_machine(c->call.operation))
                return false;
        *ret_message = strdup("The providerID is empty");
        return true;
}

static const CloudEngineOps exec_engine_ops = {
        .batch_bytes = sizeof(ExecBatch),
        .describes_at_once = 1,
        .refuses = exec_refuses,
        .send = exec_send,
        .batch_done = exec_batch_done,
};

/* -- operations ----------------------------------------------------------------------------- */

/* Whatever the command understands. */
static bool exec_owns(const CloudProvider *provider, const char *provider_id) {
        return !isempty(provider_id);
}

static void exec_free(CloudProvider *provider) {
        ExecProvider *p = CONTAINER_OF(provider, ExecProvider, engine.provider);

        cloud_engine_done(&p->engine);
        strv_free(p->environment);
        free(p->command);
        free(p);
}

static const CloudProviderOps exec_ops = {
        .name = "exec",
        .owns = exec_owns,
        .takes_names = true,
        .operations = 1u << CLOUD_REBOOT | 1u << CLOUD_LIST | 1u << CLOUD_LAUNCH | 1u << CLOUD_FIND | 1u << CLOUD_LEAVE |
                      1u << CLOUD_END | 1u << CLOUD_GROUP,
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
        p->engine.places_max = CLOUD_EXEC_RUNNING_MAX;
        p->engine.places_of_changes_max = CLOUD_EXEC_CHANGES_MAX;
        r = cloud_engine_init(&p->engine, env, &exec_ops, &exec_engine_ops);
        if (r >= 0)
                r = provider_fill(p, config);
        if (r < 0) {
                exec_free(&p->engine.provider);
                return r;
        }
        *ret = &p->engine.provider;
        return 0;
}
