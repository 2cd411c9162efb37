/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-engine.h"

#include "log.h"
#include "string-util.h"

#define TO(s) (1u << CLOUD_REQUEST_##s)

/* A request that its owner frees is DONE from any state. */
static const unsigned edges[_CLOUD_REQUEST_STATE_MAX] = {
        [CLOUD_REQUEST_NEW] = TO(WAITING) | TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_WAITING] = TO(TURN) | TO(SENT) | TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_TURN] = TO(SENT) | TO(PARKED) | TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_PARKED] = TO(WAITING) | TO(DONE),
        [CLOUD_REQUEST_SENT] = TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_REFUSED] = TO(DONE),
};

static CloudEngine *engine_of(const CloudProvider *p) {
        return CONTAINER_OF(p, CloudEngine, provider);
}

CloudEngine *cloud_request_engine(const CloudRequest *r) {
        return engine_of(r->call.provider);
}

const char *cloud_message_or_no_memory(const char *message) {
        return message ? message : "Out of memory";
}

void cloud_engine_pump(CloudEngine *e) {
        timer_arm_earlier(e->pump, loop_now(e->env->loop));
}

static List *list_of_state(CloudRequest *r, CloudRequestState s) {
        CloudEngine *e = cloud_request_engine(r);

        switch (s) {
        case CLOUD_REQUEST_WAITING:
                return r->terminate ? &e->terminates : &e->describes;
        case CLOUD_REQUEST_TURN:
                return &e->turns;
        case CLOUD_REQUEST_SENT:
                return &r->batch->requests;
        case CLOUD_REQUEST_REFUSED:
                return &e->refused;
        case CLOUD_REQUEST_NEW:
        case CLOUD_REQUEST_PARKED:
        case CLOUD_REQUEST_DONE:
        case _CLOUD_REQUEST_STATE_MAX:
                break;
        }
        return NULL;
}

/* The only writer of the state: keeps the lists. */
static void request_set_state(CloudRequest *r, CloudRequestState to) {
        CloudEngine *e = cloud_request_engine(r);

        assert(edges[r->state] & (1u << to));
        if (r->list)
                list_remove(r->list, &r->node);
        r->list = list_of_state(r, to);
        if (r->state == CLOUD_REQUEST_PARKED && r->list) /* it has had its time in the line */
                list_prepend(r->list, &r->node);
        else if (r->list)
                list_append(r->list, &r->node);
        if (to != CLOUD_REQUEST_SENT)
                r->batch = NULL;
        r->state = to;
        if (e->describes.first || e->terminates.first || e->refused.first)
                cloud_engine_pump(e);
}

/* -- the end of a request --------------------------------------------------------------------- */

static void request_count(CloudRequest *r, CloudOutcome outcome) {
        r->call.provider->answers[r->call.operation][outcome]++;
}

void cloud_request_finish(CloudRequest *r, CloudResult result) {
        CloudEngine *e = cloud_request_engine(r);

        request_set_state(r, CLOUD_REQUEST_DONE);
        result.message = r->unconfirmed ? "The way to the cloud took too long for what was last seen of the node: the cloud is asked again"
                                        : strempty(result.message);
        log_debug(e->env->log, "Provider %s, %s of %s: %s, %s%s%s", e->provider.ops->name,
                  cloud_operation_names[r->call.operation], r->shown_id,
                  cloud_outcome_to_string(result.outcome), instance_state_to_string(result.state),
                  *result.message ? ": " : "", result.message);
        request_count(r, result.outcome);
        r->termination.done(&result, r->termination.userdata);
}

void cloud_request_refuse(CloudRequest *r, CloudOutcome outcome, char *message) {
        r->refusal = outcome;
        r->refusal_message = message;
        request_set_state(r, CLOUD_REQUEST_REFUSED);
}

void cloud_engine_refuse_waiting(CloudEngine *e, bool terminate, CloudOutcome outcome, const char *message) {
        LIST_FOREACH (r, terminate ? &e->terminates : &e->describes, CloudRequest, node)
                cloud_request_refuse(r, outcome, strdup(message));
}

/* True: refused. */
static bool request_is_refused(CloudRequest *r) {
        char *message = NULL;

        if (r->call.operation == CLOUD_LIST || !cloud_request_engine(r)->ops->refuses(r, &message))
                return false;
        cloud_request_refuse(r, CLOUD_INVALID, message);
        return true;
}

/* Those that are refused meanwhile have their time after others'. */
static void finish_refused(CloudEngine *e) {
        for (size_t n = e->refused.size; n > 0 && e->refused.first; n--) {
                CloudRequest *r = LIST_ENTRY(e->refused.first, CloudRequest, node);
                _cleanup_free_ char *message = TAKE_PTR(r->refusal_message);

                cloud_request_finish(r, (CloudResult){ .outcome = r->refusal,
                                                       .message = cloud_message_or_no_memory(message) });
        }
        if (e->refused.first)
                cloud_engine_pump(e);
}

/* -- batches ---------------------------------------------------------------------------------- */

CloudRequest *cloud_batch_first(const CloudBatch *b) {
        return LIST_ENTRY(b->requests.first, CloudRequest, node);
}

CloudBatch *cloud_batch_free(CloudBatch *b) {
        CloudEngine *e;

        if (!b)
                return NULL;
        assert(!b->requests.first);
        e = b->engine;
        e->ops->batch_done(b);
        list_remove(&e->batches, &b->batches);
        free(b);
        if (e->describes.first || e->terminates.first) /* there is a place */
                cloud_engine_pump(e);
        return NULL;
}

static CloudBatch *batch_new(CloudEngine *e, bool terminate) {
        CloudBatch *b = calloc(1, e->ops->batch_bytes);

        if (!b)
                return NULL;
        b->engine = e;
        b->terminate = terminate;
        list_append(&e->batches, &b->batches);
        return b;
}

static void batch_add(CloudBatch *b, CloudRequest *r) {
        r->batch = b;
        request_set_state(r, CLOUD_REQUEST_SENT);
}

static bool batch_has(const CloudBatch *b, const CloudRequest *other) {
        LIST_FOREACH (r, &b->requests, CloudRequest, node)
                if (streq(r->machine->provider_id, other->machine->provider_id))
                        return true;
        return false;
}

static void batch_send(CloudBatch *b) {
        if (b->requests.first && b->engine->ops->send(b) < 0)
                LIST_FOREACH (r, &b->requests, CloudRequest, node)
                        cloud_request_refuse(r, CLOUD_RETRY, NULL);
        if (!b->requests.first)
                cloud_batch_free(b);
}

/* Waiting describes, in order, until there are as many different machines as fit in. */
static void send_describes(CloudEngine *e) {
        CloudBatch *b = batch_new(e, false);
        unsigned n = 0;

        if (!b) {
                cloud_engine_refuse_waiting(e, false, CLOUD_RETRY, "Out of memory");
                return;
        }
        while (e->describes.first) {
                CloudRequest *r = LIST_ENTRY(e->describes.first, CloudRequest, node);

                if (request_is_refused(r))
                        continue;
                if (!(e->ops->describes_at_once > 1 && batch_has(b, r)) && n++ == e->ops->describes_at_once)
                        break;
                batch_add(b, r);
        }
        batch_send(b);
}

/* -- turns ------------------------------------------------------------------------------------ */

static bool has_place(const CloudEngine *e) {
        return e->places_max == 0 || e->batches.size + e->turns.size < e->places_max;
}

/* False: the pump comes again when there may be room. */
static bool has_room_for_turn(CloudEngine *e) {
        usec_t at;

        if (!has_place(e) || (e->turns_max > 0 && e->turns.size >= e->turns_max))
                return false;
        if (e->terminate_rate.per_minute == 0 ||
            token_bucket_has(&e->terminate_rate, e->turns.size + 1, loop_now(e->env->loop), &at))
                return true;
        if (at != USEC_INFINITY) /* else the next turn that is used or given back makes room */
                timer_arm_earlier(e->pump, at);
        return false;
}

static bool request_is_confirmed(const CloudRequest *r) {
        return !r->termination.confirm || r->termination.confirm(r->termination.userdata);
}

/* Of HttpGuard: the last door before the wire, and before each resend. */
static bool request_may_send(void *userdata) {
        CloudRequest *r = userdata;
        const HttpGuard *g = &r->termination.guard;

        r->unconfirmed = !request_is_confirmed(r);
        return !r->unconfirmed && (!g->may_send || g->may_send(g->userdata));
}

/* A terminate in its turn. */
static void request_send(CloudRequest *r) {
        CloudEngine *e = cloud_request_engine(r);
        CloudBatch *b;

        r->call.operation = r->sends;
        if (!request_may_send(r)) {
                cloud_request_refuse(r, CLOUD_RETRY, strdup("lease lost"));
                return;
        }
        b = batch_new(e, true);
        if (!b) {
                cloud_request_refuse(r, CLOUD_RETRY, NULL);
                return;
        }
        b->reboot = r->sends == CLOUD_REBOOT;
        if (e->terminate_rate.per_minute > 0) {
                bool taken = token_bucket_take(&e->terminate_rate, loop_now(e->env->loop), NULL);

                assert(taken);
        }
        batch_add(b, r);
        batch_send(b);
}

/* The request may be freed in here. */
static void give_turn(CloudRequest *r) {
        CloudEngine *e = cloud_request_engine(r);

        if (request_is_refused(r))
                return;
        request_set_state(r, CLOUD_REQUEST_TURN);
        r->turn_usec = loop_now(e->env->loop);
        request_count(r, CLOUD_OK);
        if (request_is_confirmed(r)) {
                request_send(r);
                return;
        }
        timer_arm_earlier(e->pump, usec_add(r->turn_usec, CLOUD_TURN_USEC));
        r->termination.awaits(r->termination.userdata);
}

static void take_back_turns(CloudEngine *e) {
        CloudRequest *r;

        while ((r = LIST_ENTRY(e->turns.first, CloudRequest, node))) {
                usec_t until = usec_add(r->turn_usec, CLOUD_TURN_USEC);

                if (loop_now(e->env->loop) < until) {
                        timer_arm_earlier(e->pump, until);
                        return;
                }
                request_set_state(r, CLOUD_REQUEST_PARKED);
        }
}

void cloud_call_go_on(CloudCall *c) {
        CloudRequest *r = CONTAINER_OF(c, CloudRequest, call);

        if (r->state == CLOUD_REQUEST_TURN && request_is_confirmed(r))
                request_send(r);
        else if (r->state == CLOUD_REQUEST_PARKED)
                request_set_state(r, CLOUD_REQUEST_WAITING);
}

bool cloud_call_is_sent(const CloudCall *c) {
        return CONTAINER_OF(c, CloudRequest, call)->state == CLOUD_REQUEST_SENT;
}

void cloud_engine_give_turns(CloudEngine *e) {
        while (e->terminates.first && has_room_for_turn(e))
                give_turn(LIST_ENTRY(e->terminates.first, CloudRequest, node));
        cloud_engine_pump(e);
}

/* -- the pump --------------------------------------------------------------------------------- */

static bool has_room_for_describe(CloudEngine *e) {
        usec_t at;

        if (!has_place(e))
                return false;
        if (e->describe_rate.per_minute == 0 || token_bucket_has(&e->describe_rate, 1, loop_now(e->env->loop), &at))
                return true;
        timer_arm_earlier(e->pump, at);
        return false;
}

/* One goes on, the oldest that may. False: none may. */
static bool pump_once(CloudEngine *e) {
        CloudRequest *d = LIST_ENTRY(e->describes.first, CloudRequest, node);
        CloudRequest *t = e->ops->prepare_turns ? NULL : LIST_ENTRY(e->terminates.first, CloudRequest, node);

        if (d && !has_room_for_describe(e))
                d = NULL;
        if (t && !has_room_for_turn(e))
                t = NULL;
        if (!d && !t)
                return false;
        if (t && (!d || t->number < d->number)) {
                give_turn(t);
                return true;
        }
        if (e->describe_rate.per_minute > 0)
                (void) token_bucket_take(&e->describe_rate, loop_now(e->env->loop), NULL);
        send_describes(e);
        return true;
}

static void on_pump(Timer *timer, void *userdata) {
        CloudEngine *e = userdata;

        take_back_turns(e);
        if ((e->describes.first || e->terminates.first) && (!e->ops->is_ready || e->ops->is_ready(e))) {
                while (pump_once(e))
                        ;
                if (e->ops->prepare_turns && e->terminates.first && has_room_for_turn(e))
                        e->ops->prepare_turns(e);
        }
        finish_refused(e);
}

/* -- operations ------------------------------------------------------------------------------- */

static int request_new(CloudProvider *p, const CloudMachine *machine, const CloudTermination *t, CloudOperation operation,
                       CloudCall **ret) {
        CloudEngine *e = engine_of(p);
        CloudRequest *r;

        assert(machine->provider_id && t->done && ret);
        r = new0(CloudRequest, 1);
        if (!r)
                return -ENOMEM;
        e->n_requests++;
        r->call = (CloudCall){ .provider = p, .operation = operation };
        r->terminate = operation == CLOUD_TERMINATE || operation == CLOUD_REBOOT;
        r->sends = operation;
        if (r->terminate)
                r->call.operation = CLOUD_TURN;
        r->number = e->n_made++;
        r->termination = *t;
        r->termination.op_id = r->termination.pool = NULL;
        r->guard = (HttpGuard){ request_may_send, r };
        r->machine = cloud_machine_copy(machine);
        r->shown_id = operation == CLOUD_LIST ? strdup("all instances") : str_sanitize(machine->provider_id, 256);
        if (!r->machine || !r->shown_id || free_and_strdup((char **) &r->termination.op_id, t->op_id) < 0 ||
            free_and_strdup((char **) &r->termination.pool, t->pool) < 0) {
                cloud_call_free(&r->call);
                return -ENOMEM;
        }
        if (!request_is_refused(r))
                request_set_state(r, CLOUD_REQUEST_WAITING);
        *ret = &r->call;
        return 0;
}

int cloud_describe(CloudProvider *p, const CloudMachine *machine, cloud_done_t done, void *userdata, CloudCall **ret) {
        return request_new(p, machine, &(CloudTermination){ .done = done, .userdata = userdata }, CLOUD_DESCRIBE, ret);
}

int cloud_list(CloudProvider *p, cloud_done_t done, void *userdata, CloudCall **ret) {
        if (!p->ops->lists)
                return -EOPNOTSUPP;
        assert(engine_of(p)->ops->describes_at_once == 1);
        return request_new(p, &(CloudMachine){ .provider_id = "" },
                           &(CloudTermination){ .done = done, .userdata = userdata }, CLOUD_LIST, ret);
}

int cloud_terminate(CloudProvider *p, const CloudMachine *machine, const CloudTermination *t, CloudCall **ret) {
        assert(t->op_id && (!t->confirm || t->awaits));
        return request_new(p, machine, t, CLOUD_TERMINATE, ret);
}

int cloud_reboot(CloudProvider *p, const CloudMachine *machine, const CloudTermination *t, CloudCall **ret) {
        assert(t->op_id && (!t->confirm || t->awaits));
        return p->ops->reboots ? request_new(p, machine, t, CLOUD_REBOOT, ret) : -EOPNOTSUPP;
}

CloudCall *cloud_call_free(CloudCall *call) {
        CloudRequest *r;
        CloudBatch *b;

        if (!call)
                return NULL;
        r = CONTAINER_OF(call, CloudRequest, call);
        b = r->batch;
        if (r->state != CLOUD_REQUEST_DONE)
                request_set_state(r, CLOUD_REQUEST_DONE);
        if (b && !b->requests.first && !b->answering) /* nobody wants the answer any more */
                cloud_batch_free(b);
        engine_of(call->provider)->n_requests--;
        cloud_machine_free(r->machine);
        free(r->shown_id);
        free((char *) r->termination.op_id);
        free((char *) r->termination.pool);
        free(r->refusal_message);
        free(r);
        return NULL;
}

int cloud_engine_init(CloudEngine *e, Env *env, const CloudProviderOps *provider_ops, const CloudEngineOps *ops) {
        assert(ops->batch_bytes >= sizeof(CloudBatch) && ops->describes_at_once > 0);
        e->provider.ops = provider_ops;
        e->ops = ops;
        e->env = env;
        return timer_new(env->loop, "cloud-engine", on_pump, e, &e->pump);
}

void cloud_engine_done(CloudEngine *e) {
        assert(e->n_requests == 0);
        LIST_FOREACH (b, &e->batches, CloudBatch, batches)
                cloud_batch_free(b);
        e->pump = timer_free(e->pump);
}
