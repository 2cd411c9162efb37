/* SPDX-License-Identifier: Apache-2.0 */
#include "confirmation-client.h"

#include "aws-query.h"
#include "ec2-answer.h"
#include "string-util.h"
#include "strv.h"

/* Maximum number of pages of one answer. EC2 may send a filtered answer in more pages than its size needs. With 1,000 instances a
 * page, DescribeInstanceStatus gets past 20,000 instances of the region. */
#define PAGES_MAX 20u
#define MESSAGE_BYTES_MAX 400u

struct ConfirmationClient {
        AwsQuery *ec2, *autoscaling;
        size_t n_calls;
};

struct ConfirmationCall {
        ConfirmationClient *client;
        ConfirmationQuestion question;
        char **instances;
        HttpGuard guard; /* may_send NULL: unguarded */
        confirmation_done_t done;
        void *userdata;

        AwsQueryCall *query;
        unsigned n_pages;
        Confirmations found;
};

int confirmation_client_new(Env *env, SqsClient *sqs, const char *region, const char *ec2_endpoint, ConfirmationClient **ret) {
        _cleanup_(confirmation_client_freep) ConfirmationClient *c = new0(ConfirmationClient, 1);
        AwsCredentials *credentials;
        const AwsSettings *settings;
        int r;

        assert(env && sqs && region && ret);
        if (!c)
                return -ENOMEM;
        credentials = sqs_client_credentials(sqs);
        settings = sqs_client_settings(sqs);
        r = aws_query_new(env, credentials, "ec2", region, isempty(ec2_endpoint) ? settings->endpoint_ec2 : ec2_endpoint, &c->ec2);
        if (r < 0)
                return r;
        r = aws_query_new(env, credentials, "autoscaling", region, settings->endpoint_autoscaling, &c->autoscaling);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

ConfirmationClient *confirmation_client_free(ConfirmationClient *c) {
        if (!c)
                return NULL;
        assert(c->n_calls == 0);
        aws_query_free(c->ec2);
        aws_query_free(c->autoscaling);
        return mfree(c);
}

ConfirmationCall *confirmation_call_free(ConfirmationCall *c) {
        if (!c)
                return NULL;
        c->client->n_calls--;
        aws_query_call_free(c->query);
        strv_free(c->instances);
        return mfree(c);
}

/* The callback may free the call: this is the last act of each caller. message: NULL with CONFIRMATION_OK. */
static void call_finish(ConfirmationCall *c, ConfirmationOutcome outcome, usec_t retry_after_usec, const char *message) {
        const char *permission = confirmation_permission(c->question);
        _cleanup_free_ char *text = message ? strf("%s: %s", permission, message) : NULL;
        _cleanup_free_ char *clean = text ? str_sanitize(text, MESSAGE_BYTES_MAX) : NULL;

        c->done(&(ConfirmationResult){ .outcome = outcome,
                                       .message = clean ? clean : message ? permission : "",
                                       .retry_after_usec = retry_after_usec,
                                       .confirmed = c->found.at,
                                       .n_confirmed = c->found.n },
                c->userdata);
}

static void call_refused(ConfirmationCall *c, const AwsQueryResult *a) {
        bool denied = a->error < 0 ? a->credentials_failed : ec2_fault_from(a->code, a->status) == EC2_FAULT_DENIED;
        _cleanup_free_ char *message = NULL;

        if (a->error < 0)
                message = strdup(a->message);
        else if (a->code)
                message = strf("%s%s%s", a->code, isempty(a->message) ? "" : ": ", a->message);
        else
                message = strf("the answer is not AWS's (HTTP %u)", a->status);
        call_finish(c, denied ? CONFIRMATION_DENIED : CONFIRMATION_RETRY, a->retry_after_usec, strempty(message));
}

static int page_send(ConfirmationCall *c, const char *next_token);

static void on_answered(const AwsQueryResult *a, void *userdata) {
        ConfirmationCall *c = userdata;
        _cleanup_free_ char *next_token = NULL;
        int r;

        if (a->error < 0 || a->status / 100 != 2)
                return call_refused(c, a);
        r = confirmation_parse(c->question, c->instances, a->body, a->body_size, &c->found, &next_token);
        if (r == -ENOMEM)
                return call_finish(c, CONFIRMATION_RETRY, 0, "out of memory");
        if (r < 0)
                return call_finish(c, CONFIRMATION_RETRY, 0, "the answer is not AWS's");
        if (!next_token)
                return call_finish(c, CONFIRMATION_OK, 0, NULL);
        if (++c->n_pages >= PAGES_MAX)
                return call_finish(c, CONFIRMATION_RETRY, 0, "the answer has too many pages");
        if (page_send(c, next_token) < 0)
                call_finish(c, CONFIRMATION_RETRY, 0, "the request for the next page could not be sent");
}

static int page_send(ConfirmationCall *c, const char *next_token) {
        bool of_group = c->question == CONFIRMATION_GROUP;
        _cleanup_free_ char *form = confirmation_form(c->question, c->instances, next_token);
        AwsQueryCall *last;
        int r;

        if (!form)
                return -ENOMEM;
        last = TAKE_PTR(c->query);
        r = aws_query_start(of_group ? c->client->autoscaling : c->client->ec2, form, &c->guard, on_answered, c, &c->query);
        aws_query_call_free(last);
        return r;
}

static bool instances_are_valid(char *const *instances) {
        size_t n = strv_length(instances);

        if (n == 0 || n > CONFIRMATION_BATCH_MAX)
                return false;
        STRV_FOREACH (id, instances) {
                Ec2ProviderId unused;

                if (!startswith(*id, "i-") || ec2_provider_id_parse(*id, &unused) < 0)
                        return false;
        }
        return true;
}

int confirmation_ask(ConfirmationClient *c, ConfirmationQuestion q, char *const *instances, const HttpGuard *guard,
                     confirmation_done_t done, void *userdata, ConfirmationCall **ret) {
        _cleanup_(confirmation_call_freep) ConfirmationCall *call = NULL;
        int r;

        assert(c && q >= 0 && q < _CONFIRMATION_QUESTION_MAX && instances && done && ret);
        if (!instances_are_valid(instances))
                return -EINVAL;
        call = new0(ConfirmationCall, 1);
        if (!call)
                return -ENOMEM;
        c->n_calls++;
        *call = (ConfirmationCall){ .client = c, .question = q, .done = done, .userdata = userdata };
        if (guard)
                call->guard = *guard;
        call->instances = strv_copy(instances);
        if (!call->instances)
                return -ENOMEM;
        r = page_send(call, NULL);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(call);
        return 0;
}
