/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-exec.h"

#include <inttypes.h>

#include "hashmap.h"
#include "sim-check.h"
#include "sim-stock.h"

/* Beside the way to the machines, which is as long as that to any cloud. */
#define RUN_MIN_USEC (5 * USEC_PER_MSEC)
#define RUN_SPREAD_USEC (30 * USEC_PER_MSEC)
/* Until whoever was told so asks again, the next time that he is. */
#define AGAIN_USEC (3 * USEC_PER_MINUTE)
#define AGAIN_SLOWLY_USEC (8 * USEC_PER_MINUTE)
#define FAIL_USEC (3 * USEC_PER_SEC)

/* What becomes of one run. */
typedef enum Fate {
        FATE_GOOD,
        /* Nothing is done. */
        FATE_HANGS,
        FATE_TRY_AGAIN,
        FATE_FAILS,
        FATE_ERROR,
        FATE_NOT_RUN,
        FATE_UNKNOWN, /* and terminate says {} */
        FATE_BLIND,   /* what it writes is no answer */
        /* It is done. */
        FATE_DONE_HANGS,
        FATE_DONE_FAILS,
        FATE_DONE_TRY_AGAIN,
        FATE_DONE_GARBLED,
        FATE_DONE_KILLED,
} Fate;

typedef enum Operation {
        DESCRIBE,
        TERMINATE,
        LIST,
        LAUNCH,
        FIND,
        _OPERATION_MAX,
} Operation;

static const struct {
        const char *name;
        bool has_op_id, has_machine;
} operations[_OPERATION_MAX] = {
        [DESCRIBE] = { "describe", false, true },
        [TERMINATE] = { "terminate", true, true },
        [LIST] = { "list", false, false },
        [LAUNCH] = { "launch", true, false },
        [FIND] = { "find", true, false },
};

typedef struct Runner {
        ChildRunner base;
        SimLife *life;
} Runner;

typedef struct Run {
        Child base;
        ListNode runs;
        SimProcess *process;
        SimMachine *machine; /* NULL: its inventory has none of that name, or another */
        SimLife *life;       /* NULL: who started it was killed */
        Operation operation;
        cJSON *input;
        bool clean;
        Fate fate;
        uint64_t draw;
        Timer *act;  /* the world's */
        Timer *tell; /* the life's */
        usec_t reply_usec;
        int error, exit_status;
        char *output;
        const char *errors;
        child_done_t done;
        void *userdata;
} Run;

static Run *run_free(Run *r) {
        list_remove(&r->process->world->exec_runs, &r->runs);
        timer_free(r->act);
        timer_free(r->tell);
        cJSON_Delete(r->input);
        free(r->output);
        return mfree(r);
}

void sim_exec_forget(SimWorld *w) {
        LIST_FOREACH (r, &w->exec_runs, Run, runs)
                run_free(r);
}

/* -- what it answers ------------------------------------------------------------------------ */

static char *text(const char *s) {
        return MUST(strdup(s));
}

/* Some commands know no "terminating": what ends is there until it is not. */
static const char *state_of(const Run *r) {
        SimWorld *w = r->process->world;
        const char *state = fake_ec2_state(w->ec2, r->machine->instance);

        if (!state || streq(state, "terminated"))
                return "gone";
        if (streq(state, "stopped"))
                return "off";
        return streq(state, "shutting-down") && sim_world_derive(w, "terminating", 0) % 3 > 0 ? "terminating"
                                                                                              : "present";
}

static void answer_described(Run *r) {
        const char *state = state_of(r);

        r->output = MUST(strf("{\"state\":\"%s\",\"rack\":7}\n", state));
        if (r->life && !streq(state, "present") && !streq(state, "off"))
                sim_check_exec_saw_end(r->process->world->check, r->process, r->machine, r->clean);
}

static void answer_terminated(Run *r) {
        bool tells = r->draw % 3 > 0;
        const char *state = state_of(r);

        r->output = tells ? MUST(strf("{\"state\":\"%s\"}", state)) : text("{}");
        if (r->life)
                sim_check_exec_accepted(r->process->world->check, r->process, r->machine,
                                        tells && !streq(state, "present") && !streq(state, "off"));
}

static void answer_error(Run *r) {
        static const char *const errors[] = {
                "{\"error\":{\"code\":\"denied\",\"message\":\"The key is not valid\"}}",
                "{\"error\":{\"code\":\"protected\",\"message\":\"A person holds it\"}}",
                "{\"error\":{\"code\":\"busy\",\"message\":\"Later\"},\"retryAfter\":4}",
                "{\"error\":\"The switch does not answer\",\"state\":\"gone\"}",
        };

        r->output = text(errors[r->draw % ELEMENTSOF(errors)]);
}

static void fail(Run *r, int exit_status, const char *errors) {
        r->exit_status = exit_status;
        r->errors = errors;
}

/* Answers a launch or a find whose fate has another answer than that of the other operations. */
static bool answer_capacity(Run *r) {
        if (r->operation == LAUNCH && r->fate == FATE_UNKNOWN)
                r->output = text("{\"launch\":\"unknown\"}");
        else if (r->operation == LAUNCH && r->fate == FATE_DONE_TRY_AGAIN)
                fail(r, 1, "cannot reach the rack\n");
        else if (r->operation == FIND && r->fate == FATE_UNKNOWN)
                r->output = text("{\"error\":\"One zone does not answer\",\"providerID\":null}");
        else
                return false;
        return true;
}

static void answer_good(Run *r) {
        SimWorld *w = r->process->world;

        switch (r->operation) {
        case LIST:
                r->output = text("{\"error\":{\"code\":\"unsupported\"}}");
                return;
        case FIND:
                if (w->options.no_find)
                        fail(r, 64, "no such operation\n");
                else
                        r->output = sim_stock_find(w->stock, r->input);
                return;
        case LAUNCH: /* sim_stock_launch() has answered */
                return;
        case DESCRIBE:
        case TERMINATE:
                if (!r->machine)
                        r->output =
                                text("{\"error\":{\"code\":\"invalid\",\"message\":\"No such machine\"}}");
                else if (r->operation == TERMINATE)
                        answer_terminated(r);
                else
                        answer_described(r);
                return;
        case _OPERATION_MAX:
                break;
        }
        assert(false && "a run without operation");
}

/* After its work, if any. */
static void answer(Run *r) {
        if (answer_capacity(r))
                return;
        switch (r->fate) {
        case FATE_GOOD:
                answer_good(r);
                return;
        case FATE_TRY_AGAIN:
        case FATE_DONE_TRY_AGAIN:
                fail(r, 75, "busy\n");
                if (r->draw % 2)
                        r->output = text("{\"state\":\"gone\",\"retryAfter\":3}");
                return;
        case FATE_FAILS:
        case FATE_DONE_FAILS:
                fail(r, r->draw % 2 ? 1 : 127, "asking the rack\ncannot reach the rack\n");
                if (r->draw % 3 == 0) /* what it wrote before that is no answer */
                        r->output = text("{\"state\":\"gone\"}");
                return;
        case FATE_ERROR:
                answer_error(r);
                return;
        case FATE_NOT_RUN:
                r->error = r->draw % 2 ? -EAGAIN : -ENOENT;
                return;
        case FATE_UNKNOWN:
                r->output = text(r->operation == TERMINATE ? "{}"
                                 : r->draw % 2             ? "{\"state\":\"unknown\"}"
                                                           : "{\"state\":\"unknown\",\"retryAfter\":2}");
                return;
        case FATE_BLIND:
        case FATE_DONE_GARBLED:
                r->output = text(r->draw % 2 ? "{\"state\":\"gone\"" : "{\"state\":\"not-found\"}");
                return;
        case FATE_DONE_KILLED:
                r->error = -ECHILD;
                return;
        case FATE_HANGS:
        case FATE_DONE_HANGS:
                return;
        }
        assert(false && "a run without fate");
}

/* -- a run ---------------------------------------------------------------------------------- */

static bool works(const Run *r) {
        return (r->operation == LAUNCH || (r->machine && r->operation == TERMINATE)) &&
               (r->fate == FATE_GOOD || r->fate >= FATE_DONE_HANGS);
}

static void work(Run *r) {
        SimWorld *w = r->process->world;
        char *output;

        if (r->operation == TERMINATE) {
                sim_check_exec_ends(w->check, r->process, r->machine);
                return;
        }
        output = sim_stock_launch(w->stock, r->input);
        if (r->fate == FATE_GOOD)
                r->output = output;
        else
                free(output);
}

static void on_act(Timer *t, void *userdata) {
        Run *r = userdata;

        if (works(r))
                work(r);
        answer(r);
        if (!r->life)
                run_free(r);
        else if (r->fate != FATE_HANGS && r->fate != FATE_DONE_HANGS)
                timer_arm_in(r->tell, r->reply_usec);
}

/* It has answered, or is killed: what it has not done by now is not done. */
static void on_tell(Timer *t, void *userdata) {
        Run *r = userdata;
        bool late = timer_is_armed(r->act) || r->fate == FATE_HANGS || r->fate == FATE_DONE_HANGS;
        ChildResult result = {
                .error = late ? -ETIMEDOUT : r->error,
                .exit_status = late ? 0 : r->exit_status,
                .output = strempty(r->output),
                .output_size = strlen(strempty(r->output)),
                .errors = strempty(r->errors),
        };
        char *output = TAKE_PTR(r->output); /* what is told outlives the run, which may be freed meanwhile */
        child_done_t done = r->done;

        timer_disarm(r->act);
        sim_trace_add(r->process->world->trace, r->process->name, "its command is done: %s, exit %d, %s",
                      late           ? "killed"
                      : r->error < 0 ? "failed"
                                     : "ran",
                      result.exit_status, result.output);
        done(&result, r->userdata);
        free(output);
}

static void cancel(Child *child) {
        Run *r = CONTAINER_OF(child, Run, base);

        /* Who kills the coordinator does not kill its children. */
        if (r->process->life == r->life || !timer_is_armed(r->act)) {
                run_free(r);
                return;
        }
        r->life = NULL;
        r->tell = timer_free(r->tell);
}

/* -- its fate ------------------------------------------------------------------------------- */

static Fate fate_of_fault(const HttpFault *fault, uint64_t draw) {
        static const Fate lost[] = { FATE_HANGS, FATE_FAILS, FATE_UNKNOWN },
                          lost_after[] = { FATE_DONE_HANGS, FATE_DONE_FAILS, FATE_DONE_TRY_AGAIN,
                                           FATE_DONE_GARBLED, FATE_DONE_KILLED },
                          refused[] = { FATE_FAILS, FATE_NOT_RUN, FATE_BLIND, FATE_ERROR },
                          turned_away[] = { FATE_TRY_AGAIN, FATE_UNKNOWN };

        draw >>= 8;
        if (fault->lose_request)
                return lost[draw % ELEMENTSOF(lost)];
        if (fault->lose_reply)
                return lost_after[draw % ELEMENTSOF(lost_after)];
        if (fault->refuse)
                return refused[draw % ELEMENTSOF(refused)];
        return fault->status != 0 ? turned_away[draw % ELEMENTSOF(turned_away)] : FATE_GOOD;
}

static Fate fate_of_trouble(SimWorld *w) {
        HttpExchange *none = NULL;
        const FakeTrouble *trouble = fake_troubles_take(fake_ec2_troubles(w->ec2), "exec", &none);

        if (!trouble)
                return FATE_GOOD;
        return trouble->kind == FAKE_TROUBLE_BODY ? FATE_BLIND
               : trouble->status == 503           ? FATE_TRY_AGAIN
                                                  : FATE_FAILS;
}

static bool is_slow(Fate fate) {
        return fate == FATE_FAILS || fate == FATE_ERROR || fate == FATE_NOT_RUN || fate == FATE_DONE_FAILS;
}

/* As of a request to any cloud, by the same windows. */
static void draw_fate(Run *r, const ChildRequest *q, const char *node) {
        SimWorld *w = r->process->world;
        _cleanup_free_ char *url = MUST(strf(SIM_EXEC "/%s/%s", q->argv[1], node));
        HttpRequest request = {
                .method = HTTP_POST, .url = url, .body = q->input, .body_size = q->input_size
        };
        HttpFault fault = { 0 };

        r->clean = sim_faults_on_request(w->faults, r->process->name, &request, SIM_EXEC_PEER, &fault);
        r->draw = sim_world_derive(w, url, w->n_exec_runs++) >> 16;
        r->fate = fate_of_fault(&fault, r->draw);
        if (r->fate == FATE_GOOD)
                r->fate = fate_of_trouble(w);
        r->clean = r->clean && r->fate == FATE_GOOD;
        r->reply_usec = fault.reply_delay_usec;
        if (r->fate != FATE_GOOD)
                sim_check_trouble(w->check, is_slow(r->fate) ? AGAIN_SLOWLY_USEC : AGAIN_USEC);
        sim_trace_add(w->trace, r->process->name, "runs %s %s, fate %d", q->argv[1], node, (int) r->fate);
        sim_check_sent(w->check, r->life, &request, SIM_EXEC_PEER, r->clean,
                       fault.request_delay_usec + fault.reply_delay_usec);
        timer_arm_in(r->act, fault.request_delay_usec + RUN_MIN_USEC + r->draw % RUN_SPREAD_USEC +
                                     (r->fate == FATE_FAILS ? FAIL_USEC : 0));
        timer_arm_in(r->tell, q->timeout_usec);
}

/* -- the request ---------------------------------------------------------------------------- */

static Operation operation_of(const ChildRequest *q) {
        Operation o = DESCRIBE;

        while (o < _OPERATION_MAX && !streq_ptr(q->argv[1], operations[o].name))
                o++;
        return o;
}

/* As cloud-exec.h has it. NULL, or what is wrong. */
static const char *wrong_with(const ChildRequest *q, const cJSON *input) {
        const char *pool = fj_string(input, "pool", NULL);
        Operation o = operation_of(q);

        if (!streq(q->argv[0], SIM_EXEC_COMMAND) || !q->argv[1] || q->argv[2])
                return "is run with other arguments";
        if (o == _OPERATION_MAX)
                return "is run for an unknown operation";
        if (fj_int(input, 0, "version", NULL) != 1 || !streq_ptr(fj_string(input, "op", NULL), q->argv[1]))
                return "is asked in another version, or for another operation";
        if (operations[o].has_op_id != !!fj_string(input, "opId", NULL))
                return "is asked with the wrong opId";
        if (pool && !(operations[o].has_op_id && streq(pool, SIM_POOL)))
                return "is asked with the wrong pool";
        return operations[o].has_machine != !!fj_string(input, "providerID", NULL)
                       ? "is asked about no machine, or about one too many"
                       : NULL;
}

/* By its Node's name, as the inventory has it; of a Node that was never seen, by the id that has that name.
 */
static SimMachine *find_machine(SimWorld *w, const cJSON *input) {
        const char *id = fj_string(input, "providerID", NULL),
                   *name = fj_string(input, "node", "name", NULL);
        const char *named = strempty(startswith(strempty(id), "exec://"));

        return name && !streq(name, named) ? NULL : sim_world_machine_of(w, named);
}

static int start(ChildRunner *runner, const ChildRequest *q, child_done_t done, void *userdata,
                 Child **ret) {
        SimLife *life = CONTAINER_OF(runner, Runner, base)->life;
        SimWorld *w = life->process->world;
        cJSON *input = cJSON_ParseWithLength(q->input, q->input_size);
        const char *wrong = wrong_with(q, input);
        Run *r = MUST(new0(Run, 1));
        int k;

        if (wrong)
                sim_check_fail(w->check, "the provider's command %s", wrong);
        *r = (Run){ .base.runner = runner,
                    .process = life->process,
                    .life = life,
                    .machine = find_machine(w, input),
                    .operation = operation_of(q),
                    .input = input,
                    .done = done,
                    .userdata = userdata };
        list_append(&w->exec_runs, &r->runs);
        k = timer_new(w->loop, "sim-exec", on_act, r, &r->act);
        assert(k >= 0);
        k = timer_new(life->loop, "sim-exec-told", on_tell, r, &r->tell);
        assert(k >= 0);
        if (r->operation == LAUNCH)
                sim_check_launch_sent(w->check, life->process, input);
        if (r->operation == TERMINATE && w->stock && (!r->machine || sim_stock_has(w->stock, r->machine)))
                sim_check_fail(w->check, "%s ends a machine that nobody has launched", life->process->name);
        if (r->operation == LIST) { /* which it does not know, and nothing befalls */
                timer_arm_in(r->act, RUN_MIN_USEC);
                timer_arm_in(r->tell, q->timeout_usec);
        } else
                draw_fate(r, q,
                          r->machine                              ? r->machine->node
                          : operations[r->operation].has_machine ? "-"
                                                                  : strempty(fj_string(input, "opId", NULL)));
        *ret = &r->base;
        return 0;
}

static void runner_free(ChildRunner *runner) {
        free(CONTAINER_OF(runner, Runner, base));
}

ChildRunner *sim_exec_new(SimLife *life) {
        static const ChildRunnerOps ops = { .start = start, .cancel = cancel, .free = runner_free };
        Runner *r = MUST(new0(Runner, 1));

        *r = (Runner){ .base.ops = &ops, .life = life };
        return &r->base;
}
