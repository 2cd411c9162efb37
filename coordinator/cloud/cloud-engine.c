/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-engine.h"

#include "log.h"
#include "string-util.h"

#define TO(s) (1u << CLOUD_REQUEST_##s)

/* A request that its owner frees is DONE from any state. */
static const unsigned edges[_CLOUD_REQUEST_STATE_MAX] = {
        [CLOUD_REQUEST_NEW] = TO(WAITING) | TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_WAITING] = TO(YOURS) | TO(SENT) | TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_YOURS] = TO(SENT) | TO(LOST) | TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_LOST] = TO(WAITING) | TO(DONE),
        [CLOUD_REQUEST_SENT] = TO(REFUSED) | TO(DONE),
        [CLOUD_REQUEST_REFUSED] = TO(DONE),
};

static CloudEngine *engine_of(const CloudProvider *p) {
        return CONTAINER_OF(p, CloudEngine, provider);
}

CloudEngine *cloud_request_engine(const CloudRequest *r) {
        return engine_of(r->call.provider);
}

bool cloud_operation_changes(CloudOperation o) {
        return o != CLOUD_DESCRIBE && o != CLOUD_LIST && o != CLOUD_FIND && o != CLOUD_GROUP;
}

bool cloud_operation_has_machine(CloudOperation o) {
        return o != CLOUD_LIST && o != CLOUD_LAUNCH && o != CLOUD_FIND;
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
                return cloud_operation_changes(r->call.operation) ? &e->changes : &e->looks;
        case CLOUD_REQUEST_YOURS:
                return &e->yours;
        case CLOUD_REQUEST_SENT:
                return &r->batch->requests;
        case CLOUD_REQUEST_REFUSED:
                return &e->refused;
        case CLOUD_REQUEST_NEW:
        case CLOUD_REQUEST_LOST:
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
        r->was_yours = r->state == CLOUD_REQUEST_LOST;
        if (r->was_yours && r->list) /* it has had its time in the line */
                list_prepend(r->list, &r->node);
        else if (r->list)
                list_append(r->list, &r->node);
        if (to != CLOUD_REQUEST_SENT)
                r->batch = NULL;
        r->state = to;
        if (e->looks.first || e->changes.first || e->refused.first)
                cloud_engine_pump(e);
}

/* -- the end of a request --------------------------------------------------------------------- */

static void request_count(CloudRequest *r, CloudOutcome outcome) {
        bool of_place = cloud_operation_changes(r->call.operation) && !r->has_left;

        r->call.provider->answers[of_place ? CLOUD_TURN : r->call.operation][outcome]++;
}

/* Returns true if the owner has proved that the request may leave, and that proof has not lapsed. */
static bool request_is_proved(const CloudRequest *r) {
        return r->until_usec > 0 && loop_now(cloud_request_engine(r)->env->loop) <= r->until_usec;
}

void cloud_request_finish(CloudRequest *r, CloudResult result) {
        CloudEngine *e = cloud_request_engine(r);

        request_set_state(r, CLOUD_REQUEST_DONE);
        result.message = r->unproved ? "The way to the cloud took too long for what was last seen of the node: the cloud is asked again"
                                     : strempty(result.message);
        log_debug(e->env->log, "Provider %s, %s of %s: %s, %s%s%s", e->provider.ops->name,
                  cloud_operation_names[r->call.operation], r->shown_id,
                  cloud_outcome_to_string(result.outcome), instance_state_to_string(result.state),
                  *result.message ? ": " : "", result.message);
        request_count(r, result.outcome);
        r->reservation.done(&result, r->reservation.userdata);
}

void cloud_request_refuse(CloudRequest *r, CloudOutcome outcome, char *message) {
        r->refusal = outcome;
        r->refusal_message = message;
        request_set_state(r, CLOUD_REQUEST_REFUSED);
}

void cloud_engine_refuse_waiting(CloudEngine *e, bool changes, CloudOutcome outcome, const char *message) {
        LIST_FOREACH (r, changes ? &e->changes : &e->looks, CloudRequest, node)
                cloud_request_refuse(r, outcome, strdup(message));
}

/* True: refused. */
static bool request_is_refused(CloudRequest *r) {
        char *message = NULL;

        if (!cloud_operation_has_machine(r->call.operation) || !cloud_request_engine(r)->ops->refuses(r, &message))
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
        if (e->looks.first || e->changes.first) /* there is a place */
                cloud_engine_pump(e);
        return NULL;
}

static CloudBatch *batch_new(CloudEngine *e, CloudOperation operation) {
        CloudBatch *b = calloc(1, e->ops->batch_bytes);

        if (!b)
                return NULL;
        b->engine = e;
        b->operation = operation;
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

/* Looks that wait, in order: the first, and of describes as many different machines as fit in. */
static void send_looks(CloudEngine *e) {
        CloudOperation operation = LIST_ENTRY(e->looks.first, CloudRequest, node)->call.operation;
        unsigned n_max = operation == CLOUD_DESCRIBE ? e->ops->describes_at_once : 1, n = 0;
        CloudBatch *b = batch_new(e, operation);

        if (!b) {
                cloud_engine_refuse_waiting(e, false, CLOUD_RETRY, "Out of memory");
                return;
        }
        LIST_FOREACH (r, &e->looks, CloudRequest, node) {
                if (r->call.operation != operation || request_is_refused(r))
                        continue;
                if (!(n_max > 1 && batch_has(b, r)) && n++ == n_max)
                        break;
                r->has_left = true;
                batch_add(b, r);
        }
        batch_send(b);
}

/* -- places of changes ------------------------------------------------------------------------ */

static bool has_place(const CloudEngine *e) {
        return e->places_max == 0 || e->batches.size + e->yours.size < e->places_max;
}

static bool removes_machine(CloudOperation o) {
        return o == CLOUD_TERMINATE || o == CLOUD_LEAVE || o == CLOUD_END;
}

/* Returns true while another request that ends the machine, or removes it from its group, has a place or is on its
 * way. Two of them at once could make the group smaller twice. */
static bool is_being_removed(const CloudEngine *e, const CloudRequest *r) {
        if (!removes_machine(r->call.operation))
                return false;
        LIST_FOREACH (other, &e->yours, CloudRequest, node)
                if (removes_machine(other->call.operation) &&
                    streq(other->machine->provider_id, r->machine->provider_id))
                        return true;
        LIST_FOREACH (b, &e->batches, CloudBatch, batches)
                if (removes_machine(b->operation) && batch_has(b, r))
                        return true;
        return false;
}

/* Returns the first change that may have a place, or NULL. */
static CloudRequest *next_change(const CloudEngine *e) {
        LIST_FOREACH (r, &e->changes, CloudRequest, node)
                if (!is_being_removed(e, r))
                        return r;
        return NULL;
}

/* False: the pump comes again when there may be room. */
static bool has_room_for_change(CloudEngine *e) {
        usec_t at;

        if (!has_place(e) || (e->places_of_changes_max > 0 && e->yours.size >= e->places_of_changes_max))
                return false;
        if (e->change_rate.per_minute == 0 ||
            token_bucket_has(&e->change_rate, e->yours.size + 1, loop_now(e->env->loop), &at))
                return true;
        if (at != USEC_INFINITY) /* else the next place that is used or given back makes room */
                timer_arm_earlier(e->pump, at);
        return false;
}

/* Of HttpGuard: the last door before the wire, and before each resend. */
static bool request_may_send(void *userdata) {
        CloudRequest *r = userdata;
        const HttpGuard *g = &r->reservation.guard;

        r->unproved = !request_is_proved(r);
        return !r->unproved && (!g->may_send || g->may_send(g->userdata));
}

/* Sends a request that has its place. */
static void request_send(CloudRequest *r) {
        CloudEngine *e = cloud_request_engine(r);
        CloudBatch *b;

        r->has_left = true;
        if (!request_may_send(r)) {
                cloud_request_refuse(r, CLOUD_RETRY, strdup("lease lost"));
                return;
        }
        b = batch_new(e, r->call.operation);
        if (!b) {
                cloud_request_refuse(r, CLOUD_RETRY, NULL);
                return;
        }
        if (e->change_rate.per_minute > 0) {
                bool taken = token_bucket_take(&e->change_rate, loop_now(e->env->loop), NULL);

                assert(taken);
        }
        batch_add(b, r);
        batch_send(b);
}

/* The request may be freed in here. */
static void request_ask(CloudRequest *r) {
        r->until_usec = 0;
        if (r->call.asked)
                return;
        r->call.asked = true;
        r->reservation.prove(r->reservation.userdata);
}

/* The request may be freed in here. */
static void give_place(CloudRequest *r) {
        CloudEngine *e = cloud_request_engine(r);

        if (request_is_refused(r))
                return;
        request_set_state(r, CLOUD_REQUEST_YOURS);
        r->yours_usec = loop_now(e->env->loop);
        request_count(r, CLOUD_OK);
        if (request_is_proved(r)) {
                request_send(r);
                return;
        }
        timer_arm_earlier(e->pump, usec_add(r->yours_usec, CLOUD_PLACE_USEC));
        request_ask(r);
}

static void take_places_away(CloudEngine *e) {
        CloudRequest *r;

        while ((r = LIST_ENTRY(e->yours.first, CloudRequest, node))) {
                usec_t until = usec_add(r->yours_usec, CLOUD_PLACE_USEC);

                if (loop_now(e->env->loop) < until) {
                        timer_arm_earlier(e->pump, until);
                        return;
                }
                request_set_state(r, CLOUD_REQUEST_LOST);
        }
}

/* Returns the first change that waits for another place and whose proof has lapsed. NULL: there is none, and the pump runs again
 * when there may be one. */
static CloudRequest *first_lapsed(CloudEngine *e) {
        LIST_FOREACH (r, &e->changes, CloudRequest, node) {
                if (!r->was_yours)
                        break;
                if (r->call.asked || r->until_usec == USEC_INFINITY)
                        continue;
                if (loop_now(e->env->loop) >= r->until_usec)
                        return r;
                timer_arm_earlier(e->pump, r->until_usec);
        }
        return NULL;
}

static void ask_again(CloudEngine *e) {
        CloudRequest *r;

        while ((r = first_lapsed(e)))
                request_ask(r);
}

void cloud_call_send(CloudCall *c, usec_t until_usec) {
        CloudRequest *r = CONTAINER_OF(c, CloudRequest, call);

        r->call.asked = false;
        r->until_usec = until_usec;
        if (r->state == CLOUD_REQUEST_YOURS && request_is_proved(r))
                request_send(r);
        else if (r->state == CLOUD_REQUEST_LOST)
                request_set_state(r, CLOUD_REQUEST_WAITING);
        else if (r->state == CLOUD_REQUEST_WAITING)
                timer_arm_earlier(cloud_request_engine(r)->pump, until_usec);
}

bool cloud_call_hold(CloudCall *c) {
        CloudRequest *r = CONTAINER_OF(c, CloudRequest, call);

        r->until_usec = 0;
        if (r->state == CLOUD_REQUEST_WAITING)
                cloud_engine_pump(cloud_request_engine(r));
        return r->state != CLOUD_REQUEST_SENT;
}

void cloud_engine_give_places(CloudEngine *e) {
        CloudRequest *r;

        while ((r = next_change(e)) && has_room_for_change(e))
                give_place(r);
        cloud_engine_pump(e);
}

/* -- the pump --------------------------------------------------------------------------------- */

static bool has_room_for_look(CloudEngine *e) {
        usec_t at;

        if (!has_place(e))
                return false;
        if (e->look_rate.per_minute == 0 || token_bucket_has(&e->look_rate, 1, loop_now(e->env->loop), &at))
                return true;
        timer_arm_earlier(e->pump, at);
        return false;
}

/* One goes on, the oldest that may. False: none may. */
static bool pump_once(CloudEngine *e) {
        CloudRequest *look = LIST_ENTRY(e->looks.first, CloudRequest, node);
        CloudRequest *change = e->ops->prepare ? NULL : next_change(e);

        if (look && !has_room_for_look(e))
                look = NULL;
        if (change && !has_room_for_change(e))
                change = NULL;
        if (!look && !change)
                return false;
        if (change && (!look || change->number < look->number)) {
                give_place(change);
                return true;
        }
        if (e->look_rate.per_minute > 0)
                (void) token_bucket_take(&e->look_rate, loop_now(e->env->loop), NULL);
        send_looks(e);
        return true;
}

static void on_pump(Timer *timer, void *userdata) {
        CloudEngine *e = userdata;

        take_places_away(e);
        ask_again(e);
        if ((e->looks.first || e->changes.first) && (!e->ops->is_ready || e->ops->is_ready(e))) {
                while (pump_once(e))
                        ;
                if (e->ops->prepare && next_change(e) && has_room_for_change(e))
                        e->ops->prepare(e);
        }
        finish_refused(e);
}

/* -- operations ------------------------------------------------------------------------------- */

bool cloud_provider_has(const CloudProvider *p, CloudOperation o) {
        return o == CLOUD_DESCRIBE || o == CLOUD_TERMINATE || (p->ops->operations & (1u << o)) != 0;
}

static int reservation_copy(CloudReservation *to, const CloudReservation *from) {
        const struct {
                const char **to, *from;
        } texts[] = {
                { &to->op_id, from->op_id },
                { &to->pool, from->pool },
                { &to->launch.group, from->launch.group },
                { &to->launch.zone, from->launch.zone },
                { &to->launch.capacity_type, from->launch.capacity_type },
                { &to->launch.like, from->launch.like },
        };

        *to = *from;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                *texts[i].to = NULL;
        to->machine = NULL;
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (free_and_strdup((char **) texts[i].to, texts[i].from) < 0)
                        return -ENOMEM;
        return 0;
}

static void reservation_done(CloudReservation *r) {
        free((char *) r->op_id);
        free((char *) r->pool);
        free((char *) r->launch.group);
        free((char *) r->launch.zone);
        free((char *) r->launch.capacity_type);
        free((char *) r->launch.like);
}

int cloud_reserve(CloudProvider *p, const CloudReservation *o, CloudCall **ret) {
        static const CloudMachine none = { .provider_id = "" };
        bool changes = cloud_operation_changes(o->operation);
        CloudEngine *e = engine_of(p);
        CloudRequest *r;

        assert(o->done && ret && (changes ? o->op_id != NULL : !o->prove) && (o->machine || !cloud_operation_has_machine(o->operation)));
        if (!cloud_provider_has(p, o->operation))
                return -EOPNOTSUPP;
        r = new0(CloudRequest, 1);
        if (!r)
                return -ENOMEM;
        e->n_requests++;
        r->call = (CloudCall){ .provider = p, .operation = o->operation };
        r->number = e->n_made++;
        r->until_usec = o->prove ? 0 : USEC_INFINITY;
        r->guard = (HttpGuard){ request_may_send, r };
        r->machine = cloud_machine_copy(o->machine ? o->machine : &none);
        r->shown_id = o->machine ? str_sanitize(o->machine->provider_id, 256) : strdup(o->op_id ? o->op_id : "all instances");
        if (!r->machine || !r->shown_id || reservation_copy(&r->reservation, o) < 0) {
                cloud_call_free(&r->call);
                return -ENOMEM;
        }
        if (!request_is_refused(r))
                request_set_state(r, CLOUD_REQUEST_WAITING);
        *ret = &r->call;
        return 0;
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
        reservation_done(&r->reservation);
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
