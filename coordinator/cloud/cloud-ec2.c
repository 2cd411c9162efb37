/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call's way:
 *
 *   describe    WAITING --pump: region known, token of its bucket--> SENT --answer--> DONE
 *   terminate   WAITING --pump: the same, keys at hand--> TURN --the word--> SENT --answer--> DONE
 *
 *      WAITING --not ours, outside the region, no region, no keys--> REFUSED --pump--> DONE
 *      TURN --lease lost--> REFUSED
 *
 * A turn takes no token, its terminate does: the bucket holds one for each turn, and none is lost where a
 * turn is given back.
 *
 * A describe is sent as part of a batch. The pump runs from one timer. Callbacks come only from
 * on_pump(), on_batch(), on_keys() and on_terminate(), each of which reads its list anew after every
 * callback: a callback may free any call and start others.
 */
#include "cloud-ec2.h"

#include "aws-query.h"
#include "ec2-answer.h"
#include "ec2-identity.h"
#include "ec2-scope.h"
#include "list.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"
#include "token-bucket.h"

#define EC2_VERSION "2016-11-15"
#define BATCH_MAX 100u
#define PAGES_MAX 20u
#define REGION_PATH "meta-data/placement/region"

typedef enum Ec2Stage {
        EC2_WAITING,
        EC2_TURN,
        EC2_REFUSED,
        EC2_SENT,
        EC2_DONE,
} Ec2Stage;

typedef struct Ec2Provider {
        CloudProvider provider;
        Env *env;
        AwsSettings *settings;
        AwsImds *imds;
        AwsCredentials *credentials;
        AwsQuery *query; /* NULL until the region is known */
        char *region;
        char *endpoint; /* NULL: the region's own */
        AwsImdsCall *region_call;

        AwsCredentialsCall *keys_call; /* of those whose turn it will be */

        size_t n_calls, n_turns;    /* n_turns: EC2_TURN */
        List describes, terminates; /* waiting */
        List refused;
        List batches;
        Timer *pump;
        TokenBucket describe_bucket, terminate_bucket;

        Ec2Scope scope;
} Ec2Provider;

typedef struct Ec2Batch {
        Ec2Provider *p;
        ListNode batches;
        List calls;
        char **ids;
        Ec2Instances found;
        unsigned pages;
        bool answering;
        AwsQueryCall *query;
} Ec2Batch;

typedef struct Ec2Call {
        CloudCall call;
        Ec2Stage stage;
        ListNode node;
        List *list;          /* that it is in; NULL: none */
        Ec2Batch *batch;     /* describe, sent */
        AwsQueryCall *query; /* terminate, sent */
        bool terminate;
        bool owned_id; /* the providerID is of our form */
        char *provider_id, *node_name; /* node_name: NULL if not known */
        Ec2ProviderId id;
        HttpGuard guard;
        CloudOutcome refusal;
        char *refusal_message;
        cloud_done_t done;
        void *userdata;
} Ec2Call;

static Ec2Provider *provider_of(const CloudCall *c) {
        return CONTAINER_OF(c->provider, Ec2Provider, provider);
}

static void call_move(Ec2Call *c, List *to) {
        if (c->list)
                list_remove(c->list, &c->node);
        c->list = to;
        if (to)
                list_append(to, &c->node);
}

/* -- the end of a call ---------------------------------------------------------------------- */

/* The call may be freed in here. */
static void call_finish(Ec2Call *c, CloudResult result) {
        Ec2Provider *p = provider_of(&c->call);

        call_move(c, NULL);
        c->stage = EC2_DONE;
        result.message = strempty(result.message);
        log_debug(p->env->log, "EC2 %s of %s: %s, %s%s%s", c->terminate ? "terminate" : "describe",
                  c->provider_id, cloud_outcome_to_string(result.outcome),
                  instance_state_to_string(result.state), *result.message ? ": " : "", result.message);
        cloud_call_answer(&c->call, &result, c->done, c->userdata);
}

/* For a message just made; NULL was out of memory. */
static const char *or_no_memory(const char *message) {
        return message ? message : "Out of memory";
}

/* Finished by the pump. Takes the message. */
static void call_refuse(Ec2Call *c, CloudOutcome outcome, char *message) {
        Ec2Provider *p = provider_of(&c->call);

        free(c->refusal_message);
        c->refusal_message = message;
        c->refusal = outcome;
        c->stage = EC2_REFUSED;
        call_move(c, &p->refused);
        timer_arm_earlier(p->pump, loop_now(p->env->loop));
}

static void refuse_all(List *calls, CloudOutcome outcome, const char *message) {
        LIST_FOREACH (c, calls, Ec2Call, node)
                call_refuse(c, outcome, strdup(message));
}

/* -- what went wrong, in the provider's words ----------------------------------------------- */

static CloudOutcome outcome_of_fault(Ec2Fault fault) {
        switch (fault) {
        case EC2_FAULT_INVALID:
                return CLOUD_INVALID;
        case EC2_FAULT_PROTECTED:
                return CLOUD_PROTECTED;
        case EC2_FAULT_DENIED:
        case EC2_FAULT_NOT_FOUND: /* only with unproved scope does it come here */
                return CLOUD_DENIED;
        case EC2_FAULT_STATE:
        case EC2_FAULT_THROTTLED:
        case EC2_FAULT_PASSING:
                return CLOUD_RETRY;
        }
        return CLOUD_RETRY;
}

/* No answer: does asking again soon make sense, or must a person do something first? */
static CloudOutcome outcome_of_error(int error, bool credentials_failed) {
        static const int passing[] = { -ETIMEDOUT,    -ECONNREFUSED, -ECONNRESET,
                                       -EHOSTUNREACH, -ENOMEM,       -EREMOTEIO };

        if (error == -EKEYREJECTED)
                return CLOUD_DENIED;
        if (!credentials_failed)
                return CLOUD_RETRY;
        for (size_t i = 0; i < ELEMENTSOF(passing); i++)
                if (error == passing[i])
                        return CLOUD_RETRY;
        return CLOUD_DENIED;
}

static char *error_message(const AwsQueryResult *q, const char *action) {
        if (q->error == -ESTALE)
                return strdup("lease lost");
        if (q->credentials_failed)
                return strdup(q->message);
        if (q->error < 0)
                return strf("EC2 %s failed: %s", action, q->message);
        if (!q->code)
                return strf("EC2 %s was answered with HTTP %u", action, q->status);
        return strf("EC2 %s: %s%s%s", action, q->code, *q->message ? ": " : "", q->message);
}

/* The result for every answer that is no 200. *message stays the caller's. */
static CloudResult failure(const AwsQueryResult *q, const char *message) {
        return (CloudResult){
                .outcome = q->error < 0 ? outcome_of_error(q->error, q->credentials_failed)
                                        : outcome_of_fault(ec2_fault_from(q->code, q->status)),
                .state = INSTANCE_UNKNOWN,
                .code = q->code,
                .message = or_no_memory(message),
                .retry_after_usec = q->retry_after_usec,
        };
}

/* -- describe ------------------------------------------------------------------------------- */

static Ec2Batch *batch_free(Ec2Batch *b) {
        if (!b)
                return NULL;
        list_remove(&b->p->batches, &b->batches);
        aws_query_call_free(b->query);
        strv_free(b->ids);
        ec2_instances_done(&b->found);
        free(b);
        return NULL;
}

/* Nobody wants the answer any more. */
static void batch_drop_if_unwanted(Ec2Batch *b) {
        if (b->calls.size == 0 && !b->answering)
                batch_free(b);
}

static int batch_send(Ec2Batch *b);

static void batch_answer_failure(Ec2Batch *b, const AwsQueryResult *q) {
        _cleanup_free_ char *message = error_message(q, "DescribeInstances");

        while (b->calls.first)
                call_finish(LIST_ENTRY(b->calls.first, Ec2Call, node), failure(q, message));
}

/* Texts of EC2's, in one sentence for a person. NULL on ENOMEM. */
static char *unproved_message(const Ec2Call *c, const Ec2Instance *i) {
        _cleanup_free_ char *text = ec2_identity_unproved_message(i, c->node_name);

        return text ? str_sanitize(text, 1024) : NULL;
}

static void describe_answer(Ec2Call *c, const Ec2Instance *i) {
        Ec2Provider *p = provider_of(&c->call);
        _cleanup_free_ char *message = NULL, *unproved = NULL;
        CloudResult result = { .outcome = CLOUD_OK,
                               .state = INSTANCE_UNKNOWN,
                               .identity = { .instance_id = c->id.instance_id, .region = p->region } };
        int r = 0;

        if (!i && ec2_scope_is_proved(&p->scope, &c->id))
                result.state = INSTANCE_NOT_FOUND;
        else if (!i)
                message = ec2_scope_unproved_message(p->region, &c->id);
        else {
                r = ec2_scope_contradiction(p->region, &c->id, i, &message);
                if (r >= 0 && !message)
                        result.state = i->state;
                if (r >= 0 && !message && i->state == INSTANCE_UNKNOWN)
                        message = strf("EC2 shows instance %s in a state that is not known here",
                                       c->id.instance_id);
        }

        if (i && result.state != INSTANCE_UNKNOWN)
                result.identity.method = ec2_identity_method(i, c->node_name);
        if (i && !result.identity.method)
                result.unproved = unproved = unproved_message(c, i);

        /* Unknown always says why. */
        if (result.state == INSTANCE_UNKNOWN && !message)
                result.outcome = CLOUD_RETRY;
        result.message = result.state == INSTANCE_UNKNOWN ? or_no_memory(message) : NULL;
        call_finish(c, result);
}

/* Everything that is there counts as proof before anything is told to be missing. */
static void batch_answer(Ec2Batch *b) {
        Ec2Provider *p = b->p;

        LIST_FOREACH (c, &b->calls, Ec2Call, node) {
                const Ec2Instance *i = ec2_instances_find(&b->found, c->id.instance_id);

                if (i)
                        ec2_scope_note_described(&p->scope, p->region, &c->id, i);
        }
        while (b->calls.first) {
                Ec2Call *c = LIST_ENTRY(b->calls.first, Ec2Call, node);

                describe_answer(c, ec2_instances_find(&b->found, c->id.instance_id));
        }
}

static void on_batch(const AwsQueryResult *q, void *userdata) {
        static const AwsQueryResult no_memory = { .error = -ENOMEM, .message = "Out of memory" };
        static const AwsQueryResult unreadable = { .error = -EBADMSG,
                                                   .message = "the answer could not be read" };
        Ec2Batch *b = userdata;
        int r;

        b->answering = true;
        if (q->error < 0 || q->status / 100 != 2)
                batch_answer_failure(b, q);
        else {
                ec2_scope_set_principal(&b->p->scope, q->principal);
                r = ec2_instances_parse_describe(q->body, q->body_size, &b->found);
                if (r >= 0 && b->found.next_token && ++b->pages < PAGES_MAX) {
                        r = batch_send(b);
                        if (r >= 0) {
                                b->answering = false;
                                return;
                        }
                }
                if (r >= 0 && !b->found.next_token)
                        batch_answer(b);
                else
                        batch_answer_failure(b, r == -ENOMEM ? &no_memory : &unreadable);
        }
        batch_free(b);
}

/* The first page, or the one that follows. */
static int batch_send(Ec2Batch *b) {
        _cleanup_strbuf_ StrBuf form = { 0 };
        AwsQueryCall *old;
        size_t n = 0;
        int r;

        strbuf_add(&form, "Action=DescribeInstances&Version=" EC2_VERSION "&Filter.1.Name=instance-id");
        STRV_FOREACH (id, b->ids)
                strbuf_addf(&form, "&Filter.1.Value.%zu=%s", ++n, *id);
        if (b->found.next_token) {
                _cleanup_free_ char *token = url_encode(b->found.next_token, false);

                if (!token)
                        return -ENOMEM;
                strbuf_addf(&form, "&NextToken=%s", token);
        }
        if (form.failed)
                return -ENOMEM;

        old = TAKE_PTR(b->query);
        r = aws_query_start(b->p->query, form.data, NULL, on_batch, b, &b->query);
        aws_query_call_free(old);
        return r;
}

/* Takes waiting calls, in order, until there are BATCH_MAX different ids. */
static int batch_new(Ec2Provider *p, Ec2Batch **ret) {
        size_t n_ids = 0;
        Ec2Batch *b;
        int r;

        b = new0(Ec2Batch, 1);
        if (!b)
                return -ENOMEM;
        b->p = p;
        list_append(&p->batches, &b->batches);
        while (p->describes.first) {
                Ec2Call *c = LIST_ENTRY(p->describes.first, Ec2Call, node);

                if (!strv_contains(b->ids, c->id.instance_id)) {
                        if (n_ids == BATCH_MAX)
                                break;
                        r = strv_extend(&b->ids, c->id.instance_id);
                        if (r < 0)
                                break;
                        n_ids++;
                }
                c->stage = EC2_SENT;
                c->batch = b;
                call_move(c, &b->calls);
        }
        *ret = b;
        return 0;
}

static void pump_describes(Ec2Provider *p) {
        usec_t at;
        int r;

        while (p->describes.first) {
                Ec2Batch *b = NULL;

                if (!token_bucket_take(&p->describe_bucket, loop_now(p->env->loop), &at)) {
                        timer_arm_earlier(p->pump, at);
                        return;
                }
                r = batch_new(p, &b);
                if (r >= 0)
                        r = b->calls.size > 0 ? batch_send(b) : -ENOMEM;
                if (r < 0) {
                        refuse_all(&p->describes, CLOUD_RETRY, "Out of memory");
                        if (!b)
                                return;
                        LIST_FOREACH (c, &b->calls, Ec2Call, node) {
                                c->batch = NULL;
                                call_refuse(c, CLOUD_RETRY, strdup("Out of memory"));
                        }
                        batch_free(b);
                        return;
                }
        }
}

/* -- terminate ------------------------------------------------------------------------------ */

static void terminate_not_found(Ec2Call *c, const AwsQueryResult *q) {
        Ec2Provider *p = provider_of(&c->call);
        _cleanup_free_ char *message = NULL;

        if (ec2_scope_is_proved(&p->scope, &c->id))
                return call_finish(
                        c, (CloudResult){ .outcome = CLOUD_OK, .state = INSTANCE_NOT_FOUND, .code = q->code });
        message = ec2_scope_unproved_message(p->region, &c->id);
        call_finish(c, failure(q, message));
}

static void on_terminate(const AwsQueryResult *q, void *userdata) {
        Ec2Call *c = userdata;
        Ec2Provider *p = provider_of(&c->call);
        _cleanup_(ec2_instances_done) Ec2Instances list = { 0 };
        _cleanup_free_ char *message = NULL;
        const Ec2Instance *i;

        if (q->error == 0 && *q->principal)
                ec2_scope_set_principal(&p->scope, q->principal);
        if (q->error < 0 || q->status / 100 != 2) {
                if (q->error == 0 && ec2_fault_from(q->code, q->status) == EC2_FAULT_NOT_FOUND)
                        return terminate_not_found(c, q);
                message = error_message(q, "TerminateInstances");
                return call_finish(c, failure(q, message));
        }

        i = ec2_instances_parse_terminate(q->body, q->body_size, &list) < 0
                    ? NULL
                    : ec2_instances_find(&list, c->id.instance_id);
        if (!i)
                return call_finish(
                        c,
                        (CloudResult){ .outcome = CLOUD_RETRY,
                                       .message = "EC2 TerminateInstances: the answer could not be read" });
        ec2_scope_note(&p->scope, c->id.instance_id);
        call_finish(c, (CloudResult){ .outcome = CLOUD_OK, .state = i->state });
}

static void terminate_send(Ec2Call *c) {
        Ec2Provider *p = provider_of(&c->call);
        _cleanup_free_ char *form = NULL;
        int r;

        form = strf("Action=TerminateInstances&Version=" EC2_VERSION "&InstanceId.1=%s", c->id.instance_id);
        r = form ? aws_query_start(p->query, form, &c->guard, on_terminate, c, &c->query) : -ENOMEM;
        if (r < 0) {
                call_refuse(c, CLOUD_RETRY, strdup("Out of memory"));
                return;
        }
        c->stage = EC2_SENT;
        call_move(c, NULL);
}

/* -- turns ---------------------------------------------------------------------------------- */

static bool one_more_turn(Ec2Provider *p, usec_t *ret_at) {
        return token_bucket_has(&p->terminate_bucket, p->n_turns + 1, loop_now(p->env->loop), ret_at);
}

static void on_keys(int error, const AwsIdentity *identity, const char *message, void *userdata) {
        Ec2Provider *p = userdata;

        p->keys_call = aws_credentials_call_free(p->keys_call);
        if (error < 0)
                refuse_all(&p->terminates, outcome_of_error(error, true), message);
        while (p->terminates.first && one_more_turn(p, NULL)) {
                Ec2Call *c = LIST_ENTRY(p->terminates.first, Ec2Call, node);

                call_move(c, NULL);
                c->stage = EC2_TURN;
                p->n_turns++;
                cloud_call_answer(&c->call, &(CloudResult){ .outcome = CLOUD_OK, .message = "" }, c->done,
                                  c->userdata);
        }
        timer_arm_earlier(p->pump, loop_now(p->env->loop));
}

static void pump_turns(Ec2Provider *p) {
        usec_t at;

        if (!p->terminates.first || p->keys_call)
                return;
        if (!one_more_turn(p, &at)) {
                if (at != USEC_INFINITY) /* else the next one that is used or given back makes room */
                        timer_arm_earlier(p->pump, at);
                return;
        }
        if (aws_credentials_get(p->credentials, on_keys, p, &p->keys_call) < 0)
                refuse_all(&p->terminates, CLOUD_RETRY, "Out of memory");
}

static void turn_end(Ec2Call *c) {
        Ec2Provider *p = provider_of(&c->call);

        p->n_turns--;
        if (p->terminates.first)
                timer_arm_earlier(p->pump, loop_now(p->env->loop));
}

/* -- the region ----------------------------------------------------------------------------- */

static int set_region(Ec2Provider *p, const char *region) {
        _cleanup_(aws_query_freep) AwsQuery *query = NULL;
        int r;

        r = aws_query_new(p->env, p->credentials, "ec2", region, p->endpoint, &query);
        if (r < 0)
                return r;
        r = aws_credentials_set_region(p->credentials, region);
        if (r >= 0)
                r = free_and_strdup(&p->region, region);
        if (r < 0)
                return r;
        p->query = TAKE_PTR(query);
        return 0;
}

static void region_failed(Ec2Provider *p, const char *why) {
        _cleanup_free_ char *message = NULL;

        message = strf("The AWS region is not known: set Region= of [Provider], or AWS_REGION (%s)", why);
        refuse_all(&p->describes, CLOUD_RETRY, or_no_memory(message));
        refuse_all(&p->terminates, CLOUD_RETRY, or_no_memory(message));
}

static void on_region(int error, const char *text, void *userdata) {
        Ec2Provider *p = userdata;

        if (error < 0)
                region_failed(p, text);
        else if (set_region(p, text) < 0)
                region_failed(p, "instance metadata gave none");
        p->region_call = aws_imds_call_free(p->region_call);
        timer_arm_earlier(p->pump, loop_now(p->env->loop));
}

static void find_region(Ec2Provider *p) {
        int r;

        if (p->region_call)
                return;
        r = aws_imds_get(p->imds, REGION_PATH, on_region, p, &p->region_call);
        if (r < 0)
                region_failed(p, strerror(-r));
}

/* What lies elsewhere is not asked for here: "not found" would say nothing. */
static void refuse_outsiders(Ec2Provider *p, List *calls) {
        LIST_FOREACH (c, calls, Ec2Call, node)
                if (*c->id.zone && !aws_zone_is_in_region(c->id.zone, p->region))
                        call_refuse(c, CLOUD_INVALID,
                                    strf("The providerID '%s' lies outside region %s, the only one this "
                                         "provider asks",
                                         c->provider_id, p->region));
}

/* -- the pump ------------------------------------------------------------------------------- */

static void finish_refused(Ec2Provider *p) {
        for (size_t n = p->refused.size; n > 0 && p->refused.first; n--) {
                Ec2Call *c = LIST_ENTRY(p->refused.first, Ec2Call, node);
                _cleanup_free_ char *message = TAKE_PTR(c->refusal_message);

                call_finish(c, (CloudResult){ .outcome = c->refusal, .message = or_no_memory(message) });
        }
        if (p->refused.size > 0)
                timer_arm_earlier(p->pump, loop_now(p->env->loop));
}

static void on_pump(Timer *t, void *userdata) {
        Ec2Provider *p = userdata;

        if (p->query) {
                refuse_outsiders(p, &p->describes);
                refuse_outsiders(p, &p->terminates);
                pump_describes(p);
                pump_turns(p);
        } else if (p->describes.size + p->terminates.size > 0)
                find_region(p);
        finish_refused(p);
}

/* -- operations ----------------------------------------------------------------------------- */

static bool ec2_owns(const CloudProvider *provider, const char *provider_id) {
        Ec2ProviderId id;

        return ec2_provider_id_parse(provider_id, &id) >= 0;
}

static void ec2_call_free(CloudCall *call) {
        Ec2Call *c = CONTAINER_OF(call, Ec2Call, call);
        Ec2Provider *p = provider_of(call);
        Ec2Batch *batch = c->stage == EC2_SENT ? c->batch : NULL;

        call_move(c, NULL);
        if (c->stage == EC2_TURN)
                turn_end(c);
        if (batch)
                batch_drop_if_unwanted(batch);
        aws_query_call_free(c->query);
        free(c->provider_id);
        free(c->node_name);
        free(c->refusal_message);
        free(c);
        p->n_calls--;
}

static int start(CloudProvider *provider, const CloudMachine *machine, bool terminate, cloud_done_t done,
                 void *userdata, CloudCall **ret) {
        Ec2Provider *p = CONTAINER_OF(provider, Ec2Provider, provider);
        Ec2Call *c;

        assert(done && ret);
        c = new0(Ec2Call, 1);
        if (!c)
                return -ENOMEM;
        *c = (Ec2Call){ .call.provider = &p->provider,
                        .terminate = terminate,
                        .provider_id = str_sanitize(machine->provider_id, 256),
                        .done = done,
                        .userdata = userdata };
        if (!c->provider_id || free_and_strdup(&c->node_name, machine->node) < 0) {
                free(c->provider_id);
                free(c);
                return -ENOMEM;
        }
        p->n_calls++;

        if (ec2_provider_id_parse(machine->provider_id, &c->id) < 0)
                call_refuse(c, CLOUD_INVALID,
                            strf("'%s' is no providerID of an EC2 instance (aws:///ZONE/i-...)",
                                 c->provider_id));
        else
                call_move(c, terminate ? &p->terminates : &p->describes);
        timer_arm_earlier(p->pump, loop_now(p->env->loop));
        *ret = &c->call;
        return 0;
}

static int ec2_describe(CloudProvider *provider, const CloudMachine *machine, cloud_done_t done,
                        void *userdata, CloudCall **ret) {
        return start(provider, machine, false, done, userdata, ret);
}

static int ec2_turn(CloudProvider *provider, const CloudMachine *machine, cloud_done_t done, void *userdata,
                    CloudCall **ret) {
        return start(provider, machine, true, done, userdata, ret);
}

/* Terminating twice is terminating once: EC2 needs no operation id for it. */
static int ec2_terminate(CloudCall *turn, const char *op_id, const char *pool, const HttpGuard *guard,
                         cloud_done_t done, void *userdata) {
        Ec2Call *c = CONTAINER_OF(turn, Ec2Call, call);
        Ec2Provider *p = provider_of(turn);
        bool taken;

        assert(c->stage == EC2_TURN && done);
        c->done = done;
        c->userdata = userdata;
        if (guard)
                c->guard = *guard;
        turn_end(c);
        if (c->guard.may_send && !c->guard.may_send(c->guard.userdata)) {
                call_refuse(c, CLOUD_RETRY, strdup("lease lost"));
                return 0;
        }
        taken = token_bucket_take(&p->terminate_bucket, loop_now(p->env->loop), NULL);
        assert(taken);
        terminate_send(c);
        return 0;
}

static void ec2_free(CloudProvider *provider) {
        Ec2Provider *p = CONTAINER_OF(provider, Ec2Provider, provider);

        assert(p->n_calls == 0);
        LIST_FOREACH (b, &p->batches, Ec2Batch, batches)
                batch_free(b);
        aws_imds_call_free(p->region_call);
        aws_credentials_call_free(p->keys_call);
        timer_free(p->pump);
        aws_query_free(p->query);
        aws_credentials_free(p->credentials);
        aws_imds_free(p->imds);
        aws_settings_free(p->settings);
        ec2_scope_done(&p->scope);
        free(p->region);
        free(p->endpoint);
        free(p);
}

static const CloudProviderOps ec2_ops = {
        .name = "ec2",
        .owns = ec2_owns,
        .proves_identity = true,
        .describe = ec2_describe,
        .turn = ec2_turn,
        .terminate = ec2_terminate,
        .call_free = ec2_call_free,
        .free = ec2_free,
};

static bool endpoint_is_valid(const char *url) {
        _cleanup_(aws_endpoint_done) AwsEndpoint e = { 0 };

        return aws_endpoint_parse(url, &e) >= 0;
}

/* NULL, or what cannot work. */
static const char *check(const AwsSettings *s, const char *endpoint, const char *region) {
        if (endpoint && !endpoint_is_valid(endpoint))
                return "the EC2 endpoint must be http://HOST[:PORT] or https://HOST[:PORT], without a path";
        if (s->endpoint_sts && !endpoint_is_valid(s->endpoint_sts))
                return "AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL must be http://HOST[:PORT] or "
                       "https://HOST[:PORT]";
        if (!endpoint_is_valid(s->imds_endpoint))
                return "AWS_EC2_METADATA_SERVICE_ENDPOINT must be http://HOST[:PORT]";
        if (region && !aws_region_is_valid(region))
                return "the AWS region must look like eu-central-1";
        if (!region && aws_imds_is_disabled(s))
                return "no AWS region: set Region= of [Provider] or AWS_REGION; instance metadata is "
                       "disabled";
        return NULL;
}

static int provider_fill(Ec2Provider *p, const CloudConfig *config, const char **reterr_message) {
        const char *region, *endpoint;
        int r;

        r = aws_settings_new(config->getenv, config->getenv_userdata, &p->settings);
        if (r < 0)
                return r;
        region = !isempty(config->region) ? config->region : p->settings->region;
        endpoint = !isempty(config->endpoint) ? config->endpoint : p->settings->endpoint_ec2;
        *reterr_message = check(p->settings, endpoint, region);
        if (*reterr_message)
                return -EINVAL;

        r = free_and_strdup(&p->endpoint, endpoint);
        if (r >= 0)
                r = ec2_scope_init(&p->scope);
        if (r >= 0)
                r = timer_new(p->env->loop, "ec2", on_pump, p, &p->pump);
        if (r >= 0)
                r = aws_imds_new(p->env, p->settings->imds_endpoint, &p->imds);
        if (r >= 0)
                r = aws_credentials_new(p->env, p->settings, p->imds, &p->credentials);
        if (r >= 0 && region)
                r = set_region(p, region);
        return r;
}

int cloud_ec2_new(Env *env, const CloudConfig *config, CloudProvider **ret, const char **reterr_message) {
        Ec2Provider *p;
        int r;

        assert(env && config && ret && reterr_message);
        *reterr_message = "out of memory";
        p = new0(Ec2Provider, 1);
        if (!p)
                return -ENOMEM;
        p->provider.ops = &ec2_ops;
        p->env = env;
        p->describe_bucket = (TokenBucket){ .burst = 100, .per_minute = UINT64_C(20) * 60 };
        p->terminate_bucket = (TokenBucket){
                .burst = config->terminations_at_once > 0 ? config->terminations_at_once : 100,
                .per_minute = config->terminations_per_minute > 0 ? config->terminations_per_minute : 5 * 60
        };
        r = provider_fill(p, config, reterr_message);
        if (r < 0) {
                ec2_free(&p->provider);
                return r;
        }
        *ret = &p->provider;
        return 0;
}
