/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cmocka-test.h"
#include "json.h"
#include "list.h"
#include "provider-contract.h"
#include "string-util.h"

/*
 * Provider exec with a command that is played in this process. Behind it is a small cloud with two zones and
 * one group. A launch asks for a zone, and the cloud takes that as a preference only: its machines come up
 * in zone-b.
 */

#define MACHINES_MAX 160u
#define GROUP "workers"
#define ANSWER_USEC (100 * USEC_PER_MSEC)
#define SHUTTING_DOWN_USEC (30 * USEC_PER_SEC)
#define AT_MINIMUM "{\"error\":{\"code\":\"atMinimum\",\"message\":\"the group is at its minimum\"}}"

typedef struct Machine {
        char id[64];         /* providerID */
        char op_id[64];      /* of the launch; "": the test has started it */
        unsigned number;     /* of the test; 0: launched */
        InstanceState state; /* TERMINATING becomes GONE with time */
        usec_t since_usec;   /* TERMINATING: since when */
        usec_t appears_usec; /* the cloud does not know it before */
        bool member, held;
} Machine;

typedef struct ExecUnderTest {
        ProviderUnderTest put;
        ChildRunner runner;
        Env *env;
        Machine machines[MACHINES_MAX];
        size_t n_machines;
        ContractGroup group;
        struct {
                ContractFault fault;
                unsigned left;
        } faults[_CLOUD_OPERATION_MAX];
        unsigned calls[_CLOUD_OPERATION_MAX];
        List runs;
} ExecUnderTest;

/* One run of the command. */
typedef struct Run {
        Child child;
        ListNode runs;
        ExecUnderTest *t;
        Timer *timer;
        char *output;
        int error, exit_status;
        child_done_t done;
        void *userdata;
} Run;

static ExecUnderTest *under_test(const ProviderUnderTest *p) {
        return CONTAINER_OF(p, ExecUnderTest, put);
}

/* -- the cloud ------------------------------------------------------------------------------------------ */

static usec_t now_of(const ExecUnderTest *t) {
        return loop_now(t->env->loop);
}

static InstanceState state_of(const ExecUnderTest *t, const Machine *m) {
        return m->state == INSTANCE_TERMINATING && now_of(t) >= usec_add(m->since_usec, SHUTTING_DOWN_USEC)
                       ? INSTANCE_GONE
                       : m->state;
}

static bool is_alive(const Machine *m) {
        return m->state == INSTANCE_PRESENT || m->state == INSTANCE_OFF;
}

static bool appeared(const ExecUnderTest *t, const Machine *m) {
        return now_of(t) >= m->appears_usec;
}

static Machine *add(ExecUnderTest *t) {
        Machine *m = &t->machines[t->n_machines];

        assert_true(t->n_machines++ < MACHINES_MAX);
        *m = (Machine) { .state = INSTANCE_PRESENT, .member = true };
        return m;
}

static Machine *find_id(ExecUnderTest *t, const char *id) {
        for (size_t i = 0; i < t->n_machines; i++)
                if (streq_ptr(t->machines[i].id, id) && appeared(t, &t->machines[i]))
                        return &t->machines[i];
        return NULL;
}

static Machine *find_number(ExecUnderTest *t, unsigned n) {
        for (size_t i = 0; i < t->n_machines; i++)
                if (t->machines[i].number == n)
                        return &t->machines[i];
        fail_msg("no machine %u", n);
        return NULL;
}

static Machine *find_launched(ExecUnderTest *t, const char *op_id) {
        for (size_t i = 0; i < t->n_machines; i++)
                if (streq_ptr(t->machines[i].op_id, op_id))
                        return &t->machines[i];
        return NULL;
}

/* -- what the command answers; each text is the caller's ------------------------------------------------ */

static char *do_describe(ExecUnderTest *t, const Machine *m) {
        return strf("{\"state\":\"%s\"}", m ? instance_state_to_string(state_of(t, m)) : "gone");
}

/* False: the group is at its minimum, and nothing has changed. */
static bool take_out(ExecUnderTest *t, Machine *m, bool shrink) {
        if (!m->member)
                return true;
        if (shrink && t->group.size <= t->group.min)
                return false;
        t->group.size -= shrink;
        m->member = false;
        return true;
}

static char *do_end(ExecUnderTest *t, Machine *m, bool shrink) {
        if (m && is_alive(m)) {
                if (!take_out(t, m, shrink))
                        return strdup(AT_MINIMUM);
                m->state = INSTANCE_TERMINATING;
                m->since_usec = now_of(t);
        }
        return strdup("{}");
}

static char *do_leave(ExecUnderTest *t, Machine *m, bool refill) {
        return strdup(!m || take_out(t, m, !refill) ? "{}" : AT_MINIMUM);
}

static char *do_launch(ExecUnderTest *t, const char *op_id, ContractFault fault) {
        Machine *m = find_launched(t, op_id);

        if (fault == CONTRACT_NO_CAPACITY)
                return strdup("{\"launch\":\"noCapacity\"}");
        if (!m) {
                m = add(t);
                (void) snprintf(m->id, sizeof(m->id), "rack:zone-b/launched-%zu", t->n_machines);
                (void) snprintf(m->op_id, sizeof(m->op_id), "%s", op_id);
                m->appears_usec =
                        fault == CONTRACT_LATE ? usec_add(now_of(t), CONTRACT_LATE_USEC) : now_of(t);
        }
        return strf("{\"launch\":\"accepted\",\"providerID\":\"%s\"}", m->id);
}

static char *do_find(ExecUnderTest *t, const char *op_id) {
        const Machine *m = find_launched(t, op_id);

        return m && appeared(t, m) ? strf("{\"providerID\":\"%s\"}", m->id)
                                   : strdup("{\"providerID\":null}");
}

static char *do_list(ExecUnderTest *t, ContractFault fault) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        strbuf_add(&b, "{\"instances\":[");
        if (fault == CONTRACT_POISONED)
                strbuf_add(&b, "{\"state\":\"present\"},{\"providerID\":\"rack:poisoned\",\"state\":[]},");
        for (size_t i = 0; i < t->n_machines; i++)
                if (appeared(t, &t->machines[i]))
                        strbuf_addf(&b, "{\"providerID\":\"%s\",\"state\":\"%s\"},", t->machines[i].id,
                                    instance_state_to_string(state_of(t, &t->machines[i])));
        strbuf_add(&b, "{\"providerID\":\"rack:of-nobody\",\"state\":\"gone\"}]}");
        return strdup(strbuf_str(&b));
}

static char *do_group(ExecUnderTest *t, const Machine *m) {
        if (!m || !m->member)
                return strdup("{\"group\":null}");
        return strf("{\"group\":{\"name\":\"" GROUP "\",\"size\":%" PRIi64 ",\"min\":%" PRIi64 "}}",
                    t->group.size, t->group.min);
}

static char *answer(ExecUnderTest *t, CloudOperation o, const Json *q, ContractFault fault) {
        Machine *m = find_id(t, json_string_or_null(json_get(q, "providerID")));
        const char *op_id = json_string_or_null(json_get(q, "opId"));
        const char *group = json_string_or_null(json_get(q, "group"));
        bool shrink = false, refill = false;

        (void) json_bool(json_get(q, "shrink"), &shrink);
        (void) json_bool(json_get(q, "refill"), &refill);
        switch (o) {
        case CLOUD_DESCRIBE:
                return do_describe(t, m);
        case CLOUD_TERMINATE:
                return do_end(t, m, false);
        case CLOUD_END:
                return do_end(t, m, shrink);
        case CLOUD_REBOOT:
                return strdup("{}");
        case CLOUD_LEAVE:
                return do_leave(t, m, refill);
        case CLOUD_LAUNCH:
                assert_string_equal(group, GROUP);
                return do_launch(t, op_id, fault);
        case CLOUD_FIND:
                return do_find(t, op_id);
        case CLOUD_LIST:
                return do_list(t, fault);
        case CLOUD_GROUP:
                return do_group(t, m);
        case CLOUD_TURN:
        case _CLOUD_OPERATION_MAX:
                break;
        }
        fail_msg("the command was asked for no operation");
        return NULL;
}

/* -- its runs ------------------------------------------------------------------------------------------- */

static CloudOperation operation_of(const Json *q) {
        const char *name = json_string_or_null(json_get(q, "op"));

        for (size_t i = 0; i < _CLOUD_OPERATION_MAX; i++)
                if (streq_ptr(name, cloud_operation_names[i]))
                        return (CloudOperation) i;
        return _CLOUD_OPERATION_MAX;
}

static bool is_held(ExecUnderTest *t, CloudOperation o, const Json *q) {
        const Machine *m = find_id(t, json_string_or_null(json_get(q, "providerID")));

        return m && m->held && (o == CLOUD_TERMINATE || o == CLOUD_END);
}

/* Does what is asked and fills in how the command will end. Returns after which time. */
static usec_t play(ExecUnderTest *t, Run *run, const ChildRequest *request) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        ContractFault fault = _CONTRACT_FAULT_MAX;
        CloudOperation o;

        assert_return_code(json_parse(request->input, request->input_size, 1u << 16, &doc, NULL), 0);
        o = operation_of(json_root(doc));
        assert_string_equal(request->argv[1], cloud_operation_names[o]);
        t->calls[o]++;
        if (t->faults[o].left > 0) {
                t->faults[o].left--;
                fault = t->faults[o].fault;
        }
        if (fault == CONTRACT_UNAVAILABLE)
                run->exit_status = 75;
        else if (is_held(t, o, json_root(doc)))
                run->error = -ETIMEDOUT;
        else {
                run->output = answer(t, o, json_root(doc), fault);
                assert_non_null(run->output);
        }
        if (fault == CONTRACT_LOST || fault == CONTRACT_LATE)
                run->error = -ETIMEDOUT;
        return run->error < 0 ? request->timeout_usec : ANSWER_USEC;
}

static void on_over(Timer *timer, void *userdata) {
        Run *run = userdata;
        const ChildResult result = { .error = run->error,
                                     .exit_status = run->exit_status,
                                     .output = run->error < 0 ? "" : strempty(run->output),
                                     .output_size = run->error < 0 ? 0 : strlen(strempty(run->output)),
                                     .errors = "" };

        run->done(&result, run->userdata);
}

static int runner_start(ChildRunner *r, const ChildRequest *request, child_done_t done, void *userdata,
                        Child **ret) {
        ExecUnderTest *t = CONTAINER_OF(r, ExecUnderTest, runner);
        Run *run = new0(Run, 1);

        *run = (Run) { .child.runner = r, .t = t, .done = done, .userdata = userdata };
        list_append(&t->runs, &run->runs);
        assert_return_code(timer_new(t->env->loop, "command", on_over, run, &run->timer), 0);
        timer_arm_in(run->timer, play(t, run, request));
        *ret = &run->child;
        return 0;
}

static void runner_cancel(Child *child) {
        Run *run = CONTAINER_OF(child, Run, child);

        list_remove(&run->t->runs, &run->runs);
        timer_free(run->timer);
        free(run->output);
        free(run);
}

static const ChildRunnerOps runner_ops = { .start = runner_start, .cancel = runner_cancel };

/* -- the driver ----------------------------------------------------------------------------------------- */

static ProviderUnderTest *exec_new(Env *env) {
        ExecUnderTest *t = new0(ExecUnderTest, 1);
        const char *message;

        t->put.ops = &contract_exec;
        t->runner.ops = &runner_ops;
        t->env = env;
        env->children = &t->runner;
        assert_return_code(cloud_provider_new(env, &(CloudConfig) { .name = "exec", .command = "/command" },
                                              &t->put.provider, &message),
                           0);
        return &t->put;
}

static ProviderUnderTest *exec_free(ProviderUnderTest *p) {
        ExecUnderTest *t = under_test(p);

        cloud_provider_free(p->provider);
        assert_int_equal(t->runs.size, 0);
        free(t);
        return NULL;
}

static const char *exec_run(ProviderUnderTest *p, unsigned n) {
        ExecUnderTest *t = under_test(p);
        Machine *m = add(t);

        m->number = n;
        t->group.size++;
        (void) snprintf(m->id, sizeof(m->id), "rack:zone-a/%u", n);
        return m->id;
}

static void exec_set_state(ProviderUnderTest *p, unsigned n, InstanceState state) {
        ExecUnderTest *t = under_test(p);
        Machine *m = find_number(t, n);

        m->state = state;
        m->since_usec = now_of(t);
}

static void exec_fault(ProviderUnderTest *p, CloudOperation o, ContractFault fault, unsigned calls) {
        under_test(p)->faults[o].fault = fault;
        under_test(p)->faults[o].left = calls;
}

static void exec_hold_end(ProviderUnderTest *p, unsigned n, bool hold) {
        find_number(under_test(p), n)->held = hold;
}

static unsigned exec_calls(const ProviderUnderTest *p, CloudOperation o) {
        return under_test(p)->calls[o];
}

static size_t exec_n_alive(ProviderUnderTest *p) {
        ExecUnderTest *t = under_test(p);
        size_t n = 0;

        for (size_t i = 0; i < t->n_machines; i++)
                n += is_alive(&t->machines[i]) && appeared(t, &t->machines[i]);
        return n;
}

static void exec_set_group(ProviderUnderTest *p, ContractGroup group) {
        under_test(p)->group = group;
}

static ContractGroup exec_group(const ProviderUnderTest *p) {
        return under_test(p)->group;
}

const ProviderUnderTestOps contract_exec = {
        .name = "exec",
        .group_name = GROUP,
        .full_zone = "zone-a",
        .faults = 1u << CONTRACT_UNAVAILABLE | 1u << CONTRACT_LOST | 1u << CONTRACT_LATE |
                  1u << CONTRACT_NO_CAPACITY | 1u << CONTRACT_POISONED,
        .new = exec_new,
        .free = exec_free,
        .run = exec_run,
        .set_state = exec_set_state,
        .fault = exec_fault,
        .hold_end = exec_hold_end,
        .calls = exec_calls,
        .n_alive = exec_n_alive,
        .set_group = exec_set_group,
        .group = exec_group,
};
