/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud-ec2.h"

#include "aws-query.h"
#include "cloud-engine.h"
#include "ec2-answer.h"
#include "ec2-identity.h"
#include "ec2-scope.h"
#include "imds-client.h"
#include "string-util.h"
#include "strv.h"

#define EC2_VERSION "2016-11-15"
#define PAGES_MAX 20u
#define WITNESSES_TRIED 10u
#define REGION_PATH "meta-data/placement/region"

typedef struct Ec2Provider {
        CloudEngine engine;
        AwsSettings *settings;
        ImdsClient *imds;
        AwsCredentials *credentials;
        AwsQuery *query; /* NULL until the region is known */
        char *region;
        char *endpoint; /* NULL: the region's own */
        bool asks_region;
        AwsCredentialsCall *keys_call; /* of those who will have a place */
        Ec2Scope scope;
} Ec2Provider;

typedef struct Ec2Batch {
        CloudBatch batch;
        char **ids; /* of a describe */
        Ec2ProviderId witness;
        bool has_witness; /* its id is the last of ids */
        Ec2Instances found;
        unsigned pages;
        AwsQueryCall *query;
} Ec2Batch;

static Ec2Provider *provider_of(const CloudEngine *e) {
        return CONTAINER_OF(e, Ec2Provider, engine);
}

static Ec2Batch *ec2_batch(CloudBatch *b) {
        return CONTAINER_OF(b, Ec2Batch, batch);
}

/* Of a request that was not refused. */
static Ec2ProviderId id_of(const CloudRequest *r) {
        Ec2ProviderId id;
        int k;

        k = ec2_provider_id_parse(r->machine->provider_id, &id);
        assert(k >= 0);
        return id;
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
                .message = cloud_message_or_no_memory(message),
                .retry_after_usec = q->retry_after_usec,
        };
}

/* -- describe ------------------------------------------------------------------------------- */

static int describe_send(Ec2Batch *b);

static void batch_answer_failure(Ec2Batch *b, const AwsQueryResult *q) {
        _cleanup_free_ char *message = error_message(q, "DescribeInstances");
        CloudRequest *r;

        while ((r = cloud_batch_first(&b->batch)))
                cloud_request_finish(r, failure(q, message));
}

/* Texts of EC2's, in one sentence for a person. NULL on ENOMEM. */
static char *unproved_message(const CloudRequest *c, const Ec2Instance *i) {
        _cleanup_free_ char *text = ec2_identity_unproved_message(i, c->machine->node);

        return text ? str_sanitize(text, 1024) : NULL;
}

static void describe_answer(Ec2Provider *p, CloudRequest *c, const Ec2Instances *found) {
        const Ec2ProviderId id = id_of(c);
        const Ec2Instance *i = ec2_instances_find(found, id.instance_id);
        _cleanup_free_ char *message = NULL, *unproved = NULL;
        CloudResult result = { .outcome = CLOUD_OK,
                               .state = INSTANCE_UNKNOWN,
                               .identity = { .instance_id = id.instance_id, .region = p->region } };
        int r = 0;

        if (!i && ec2_scope_is_proved(&p->scope, &id))
                result.state = INSTANCE_NOT_FOUND;
        else if (!i)
                message = ec2_scope_unproved_message(p->region, &id);
        else {
                r = ec2_scope_contradiction(p->region, &id, i, &message);
                if (r >= 0 && !message)
                        result.state = i->state;
                if (r >= 0 && !message && i->state == INSTANCE_UNKNOWN)
                        message = strf("EC2 shows instance %s in a state that is not known here", id.instance_id);
        }

        if (i && result.state != INSTANCE_UNKNOWN)
                result.identity.method = ec2_identity_method(i, c->machine->node);
        if (i && !result.identity.method)
                result.unproved = unproved = unproved_message(c, i);

        /* Unknown always says why. */
        if (result.state == INSTANCE_UNKNOWN && !message)
                result.outcome = CLOUD_RETRY;
        result.message = result.state == INSTANCE_UNKNOWN ? cloud_message_or_no_memory(message) : NULL;
        cloud_request_finish(c, result);
}

static void note_shown(Ec2Batch *b, const Ec2ProviderId *id) {
        Ec2Provider *p = provider_of(b->batch.engine);
        const Ec2Instance *i = ec2_instances_find(&b->found, id->instance_id);

        if (i)
                ec2_scope_note_described(&p->scope, p->region, id, i);
}

/* Everything that is there counts as proof before anything is told to be missing. */
static void batch_answer(Ec2Batch *b) {
        Ec2Provider *p = provider_of(b->batch.engine);
        CloudRequest *r;

        LIST_FOREACH (c, &b->batch.requests, CloudRequest, node) {
                const Ec2ProviderId id = id_of(c);

                note_shown(b, &id);
        }
        if (b->has_witness)
                note_shown(b, &b->witness);
        while ((r = cloud_batch_first(&b->batch)))
                describe_answer(p, r, &b->found);
}

static void on_described(const AwsQueryResult *q, void *userdata) {
        static const AwsQueryResult no_memory = { .error = -ENOMEM, .message = "Out of memory" };
        static const AwsQueryResult unreadable = { .error = -EBADMSG,
                                                   .message = "the answer could not be read" };
        Ec2Batch *b = userdata;
        int r;

        b->batch.answering = true;
        if (q->error < 0 || q->status / 100 != 2)
                batch_answer_failure(b, q);
        else {
                ec2_scope_set_principal(&provider_of(b->batch.engine)->scope, q->principal);
                r = ec2_instances_parse_describe(q->body, q->body_size, &b->found);
                if (r >= 0 && b->found.next_token && ++b->pages < PAGES_MAX) {
                        r = describe_send(b);
                        if (r >= 0) {
                                b->batch.answering = false;
                                return;
                        }
                }
                if (r >= 0 && !b->found.next_token)
                        batch_answer(b);
                else
                        batch_answer_failure(b, r == -ENOMEM ? &no_memory : &unreadable);
        }
        cloud_batch_free(&b->batch);
}

/* The first page, or the one that follows. */
static int describe_send(Ec2Batch *b) {
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
        r = aws_query_start(provider_of(b->batch.engine)->query, form.data, NULL, on_described, b, &b->query);
        aws_query_call_free(old);
        return r;
}

/* Returns true if EC2 may have carried out a change that was not answered with success: there was no answer,
 * the answer could not be read, or EC2 had an error of its own. A request that was refused before it left (keys,
 * the guard) was not carried out. */
static bool change_is_undecided(const AwsQueryResult *q) {
        if (q->error < 0)
                return !q->credentials_failed && q->error != -ESTALE && q->error != -EKEYREJECTED;
        return q->status / 100 == 2 || ec2_fault_from(q->code, q->status) == EC2_FAULT_PASSING;
}

/* -- terminate ------------------------------------------------------------------------------ */

static void terminate_answer(Ec2Batch *b, const AwsQueryResult *q) {
        static const char action[] = "TerminateInstances";
        CloudRequest *c = cloud_batch_first(&b->batch);
        Ec2Provider *p = provider_of(b->batch.engine);
        const Ec2ProviderId id = id_of(c);
        _cleanup_(ec2_instances_done) Ec2Instances list = { 0 };
        _cleanup_free_ char *message = NULL;
        CloudResult result;
        const Ec2Instance *i;
        bool not_found = q->error == 0 && q->status / 100 != 2 &&
                         ec2_fault_from(q->code, q->status) == EC2_FAULT_NOT_FOUND;

        if (not_found && ec2_scope_is_proved(&p->scope, &id))
                return cloud_request_finish(
                        c, (CloudResult){ .outcome = CLOUD_OK, .state = INSTANCE_NOT_FOUND, .code = q->code });
        if (q->error < 0 || q->status / 100 != 2) {
                message = not_found ? ec2_scope_unproved_message(p->region, &id) : error_message(q, action);
                result = failure(q, message);
                result.undecided = change_is_undecided(q);
                return cloud_request_finish(c, result);
        }

        i = ec2_instances_parse_terminate(q->body, q->body_size, &list) < 0
                    ? NULL
                    : ec2_instances_find(&list, id.instance_id);
        if (!i)
                return cloud_request_finish(
                        c,
                        (CloudResult){ .outcome = CLOUD_RETRY,
                                       .undecided = true,
                                       .message = "EC2 TerminateInstances: the answer could not be read" });
        ec2_scope_note(&p->scope, id.instance_id);
        cloud_request_finish(c, (CloudResult){ .outcome = CLOUD_OK, .state = i->state });
}

static void on_terminated(const AwsQueryResult *q, void *userdata) {
        Ec2Batch *b = userdata;

        if (q->error == 0 && *q->principal)
                ec2_scope_set_principal(&provider_of(b->batch.engine)->scope, q->principal);
        b->batch.answering = true;
        terminate_answer(b, q);
        cloud_batch_free(&b->batch);
}

/* Terminating twice is terminating once: EC2 needs no operation id for it. */
static int terminate_send(Ec2Batch *b) {
        CloudRequest *c = cloud_batch_first(&b->batch);
        const Ec2ProviderId id = id_of(c);
        _cleanup_free_ char *form = NULL;

        form = strf("Action=TerminateInstances&Version=" EC2_VERSION "&InstanceId.1=%s", id.instance_id);
        return form ? aws_query_start(provider_of(b->batch.engine)->query, form, &c->guard, on_terminated, b,
                                      &b->query)
                    : -ENOMEM;
}

/* -- reboot --------------------------------------------------------------------------------- */

static void reboot_answer(Ec2Batch *b, const AwsQueryResult *q) {
        CloudRequest *c = cloud_batch_first(&b->batch);
        _cleanup_free_ char *message = NULL;
        CloudResult result;

        if (q->error == 0 && q->status / 100 == 2 && ec2_reboot_parse(q->body, q->body_size) >= 0)
                return cloud_request_finish(c, (CloudResult){ .outcome = CLOUD_OK, .state = INSTANCE_PRESENT });
        if (q->error == 0 && q->status / 100 == 2)
                result = (CloudResult){ .outcome = CLOUD_RETRY, .message = "EC2 RebootInstances: the answer could not be read" };
        else {
                message = error_message(q, "RebootInstances");
                result = failure(q, message);
        }
        result.undecided = change_is_undecided(q);
        cloud_request_finish(c, result);
}

static void on_rebooted(const AwsQueryResult *q, void *userdata) {
        Ec2Batch *b = userdata;

        if (q->error == 0 && *q->principal)
                ec2_scope_set_principal(&provider_of(b->batch.engine)->scope, q->principal);
        b->batch.answering = true;
        reboot_answer(b, q);
        cloud_batch_free(&b->batch);
}

static int reboot_send(Ec2Batch *b) {
        CloudRequest *c = cloud_batch_first(&b->batch);
        const Ec2ProviderId id = id_of(c);
        _cleanup_free_ char *form = NULL;

        form = strf("Action=RebootInstances&Version=" EC2_VERSION "&InstanceId.1=%s", id.instance_id);
        return form ? aws_query_start(provider_of(b->batch.engine)->query, form, &c->guard, on_rebooted, b, &b->query)
                    : -ENOMEM;
}

/* -- what the engine asks for ----------------------------------------------------------------- */

/* An instance of another Node is asked about in the same request, so that one which is not shown can be told to be not
 * found. One that is asked about anyway proves as much, and one of another region nothing. */
static int add_witness(Ec2Batch *b) {
        Ec2Provider *p = provider_of(b->batch.engine);

        for (unsigned i = 0; i < WITNESSES_TRIED && !b->has_witness; i++) {
                const char *id = cloud_provider_next_witness(&p->engine.provider);

                if (!id)
                        return 0;
                b->has_witness = ec2_provider_id_parse(id, &b->witness) >= 0 &&
                                 !strv_contains(b->ids, b->witness.instance_id) &&
                                 (!*b->witness.zone || aws_zone_is_in_region(b->witness.zone, p->region));
        }
        return b->has_witness ? strv_extend(&b->ids, b->witness.instance_id) : 0;
}

static int ec2_send(CloudBatch *batch) {
        Ec2Batch *b = ec2_batch(batch);
        Ec2Provider *p = provider_of(batch->engine);
        bool lacks_proof = false;
        int k;

        if (batch->operation == CLOUD_TERMINATE)
                return terminate_send(b);
        if (batch->operation == CLOUD_REBOOT)
                return reboot_send(b);
        LIST_FOREACH (r, &batch->requests, CloudRequest, node) {
                const Ec2ProviderId id = id_of(r);

                if (!strv_contains(b->ids, id.instance_id) && strv_extend(&b->ids, id.instance_id) < 0)
                        return -ENOMEM;
                /* Of one without a zone no other instance proves anything. */
                lacks_proof = lacks_proof || (*id.zone && !ec2_scope_is_proved(&p->scope, &id));
        }
        k = lacks_proof ? add_witness(b) : 0;
        return k < 0 ? k : describe_send(b);
}

static void ec2_batch_done(CloudBatch *batch) {
        Ec2Batch *b = ec2_batch(batch);

        aws_query_call_free(b->query);
        strv_free(b->ids);
        ec2_instances_done(&b->found);
}

/* What lies in another region is not asked for in this one: "not found" would say nothing. */
static bool ec2_refuses(const CloudRequest *r, char **ret_message) {
        Ec2Provider *p = provider_of(cloud_request_engine(r));
        Ec2ProviderId id;

        if (ec2_provider_id_parse(r->machine->provider_id, &id) < 0)
                *ret_message = strf("'%s' is no providerID of an EC2 instance (aws:///ZONE/i-...)", r->shown_id);
        else if (p->query && *id.zone && !streq(id.zone, p->region) && !aws_zone_is_in_region(id.zone, p->region))
                *ret_message = strf("The providerID '%s' lies outside region %s, the only one this provider asks",
                                    r->shown_id, p->region);
        else
                return false;
        return true;
}

static void on_keys(int error, const AwsIdentity *identity, const char *message, void *userdata) {
        Ec2Provider *p = userdata;

        p->keys_call = aws_credentials_call_free(p->keys_call);
        if (error < 0)
                cloud_engine_refuse_waiting(&p->engine, true, outcome_of_error(error, true), message);
        cloud_engine_give_places(&p->engine);
}

static void ec2_prepare(CloudEngine *e) {
        Ec2Provider *p = provider_of(e);

        if (!p->keys_call && aws_credentials_get(p->credentials, on_keys, p, &p->keys_call) < 0)
                cloud_engine_refuse_waiting(e, true, CLOUD_RETRY, "Out of memory");
}

/* -- the region ----------------------------------------------------------------------------- */

static int set_region(Ec2Provider *p, const char *region) {
        _cleanup_(aws_query_freep) AwsQuery *query = NULL;
        int r;

        r = aws_query_new(p->engine.env, p->credentials, "ec2", region, p->endpoint, &query);
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
        cloud_engine_refuse_waiting(&p->engine, false, CLOUD_RETRY, cloud_message_or_no_memory(message));
        cloud_engine_refuse_waiting(&p->engine, true, CLOUD_RETRY, cloud_message_or_no_memory(message));
}

static void on_region(const ImdsAnswer *answer, void *userdata) {
        _cleanup_free_ char *region = NULL;
        Ec2Provider *p = userdata;

        p->asks_region = false;
        region = strdup(strempty(answer->body));
        if (answer->outcome == IMDS_FAILED)
                region_failed(p, answer->why);
        else if (!region || set_region(p, strstrip(region)) < 0)
                region_failed(p, "instance metadata gave none");
        cloud_engine_pump(&p->engine);
}

static bool ec2_is_ready(CloudEngine *e) {
        Ec2Provider *p = provider_of(e);
        int r;

        if (p->query || p->asks_region)
                return p->query;
        r = imds_client_get(p->imds, REGION_PATH, on_region, p);
        if (r < 0)
                region_failed(p, strerror(-r));
        p->asks_region = r >= 0;
        return false;
}

static const CloudEngineOps ec2_engine_ops = {
        .batch_bytes = sizeof(Ec2Batch),
        .describes_at_once = 100,
        .refuses = ec2_refuses,
        .is_ready = ec2_is_ready,
        .prepare = ec2_prepare,
        .send = ec2_send,
        .batch_done = ec2_batch_done,
};

/* -- operations ----------------------------------------------------------------------------- */

static bool ec2_owns(const CloudProvider *provider, const char *provider_id) {
        Ec2ProviderId id;

        return ec2_provider_id_parse(provider_id, &id) >= 0;
}

static void ec2_free(CloudProvider *provider) {
        Ec2Provider *p = CONTAINER_OF(provider, Ec2Provider, engine.provider);

        cloud_engine_done(&p->engine);
        aws_credentials_call_free(p->keys_call);
        aws_query_free(p->query);
        aws_credentials_free(p->credentials);
        imds_client_free(p->imds);
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
        .operations = 1u << CLOUD_REBOOT,
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
                return "AWS_ENDPOINT_URL_STS or AWS_ENDPOINT_URL must be http://HOST[:PORT] or https://HOST[:PORT]";
        if (!endpoint_is_valid(s->imds_endpoint))
                return "AWS_EC2_METADATA_SERVICE_ENDPOINT must be http://HOST[:PORT]";
        if (region && !aws_region_is_valid(region))
                return "the AWS region must look like eu-central-1";
        if (!region && aws_imds_is_disabled(s))
                return "no AWS region: set Region= of [Provider] or AWS_REGION; instance metadata is disabled";
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
                r = imds_client_new(p->engine.env, p->settings->imds_endpoint, &p->imds);
        if (r >= 0)
                r = aws_credentials_new(p->engine.env, p->settings, &p->credentials);
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
        p->engine.look_rate = (TokenBucket){ .burst = 100, .per_minute = UINT64_C(20) * 60 };
        p->engine.change_rate = (TokenBucket){
                .burst = config->terminations_at_once > 0 ? config->terminations_at_once : 100,
                .per_minute = config->terminations_per_minute > 0 ? config->terminations_per_minute : 5 * 60
        };
        r = cloud_engine_init(&p->engine, env, &ec2_ops, &ec2_engine_ops);
        if (r >= 0)
                r = provider_fill(p, config, reterr_message);
        if (r < 0) {
                ec2_free(&p->engine.provider);
                return r;
        }
        *ret = &p->engine.provider;
        return 0;
}
