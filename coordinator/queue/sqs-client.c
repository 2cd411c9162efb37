/* SPDX-License-Identifier: Apache-2.0 */
#include "sqs-client.h"

#include "aws-query.h"
#include "json.h"
#include "sqs-url.h"
#include "string-util.h"

/* Beyond what the queue waits for a message. */
#define POLL_MARGIN_USEC (10 * USEC_PER_SEC)

static_assert(SQS_ANSWER_MAX_BYTES == AWS_QUERY_ANSWER_MAX_BYTES, "Each answer can be parsed");

struct SqsClient {
        AwsSettings *settings;
        AwsCredentials *credentials;
        AwsQuery *query;
        SqsUrl url;
        size_t n_calls;
};

struct SqsCall {
        SqsClient *client;
        size_t n_entries; /* 0: of a receive */
        sqs_done_t done;
        void *userdata;
        AwsQueryCall *query;
};

const char *const sqs_outcome_names[_SQS_OUTCOME_MAX + 1] = {
        [SQS_OK] = "ok",
        [SQS_RETRY] = "retry",
        [SQS_DENIED] = "denied",
        [SQS_GONE] = "gone",
        [SQS_TOO_LARGE] = "too_large",
};

/* -- life ----------------------------------------------------------------------------------------------- */

static int client_open(SqsClient *c, Env *env, const SqsConfig *config, const char **reterr_message) {
        const char *region;
        int r;

        r = sqs_url_parse(config->url, &c->url, reterr_message);
        if (r >= 0)
                r = aws_settings_new(config->getenv, config->getenv_userdata, &c->settings);
        if (r < 0)
                return r;
        region = c->url.region              ? c->url.region
                 : !isempty(config->region) ? config->region
                                            : c->settings->region;
        if (!aws_region_is_valid(region)) {
                *reterr_message = "its host does not tell the region: set [Provider] Region= or AWS_REGION";
                return -EINVAL;
        }
        if (!c->url.region) {
                r = free_and_strdup(&c->url.region, region);
                if (r < 0)
                        return r;
        }
        r = aws_credentials_new(env, c->settings, &c->credentials);
        if (r >= 0)
                r = aws_credentials_set_region(c->credentials, region);
        if (r >= 0)
                r = aws_query_new(env, c->credentials, "sqs", region, c->url.endpoint, &c->query);
        return r;
}

int sqs_client_new(Env *env, const SqsConfig *config, SqsClient **ret, const char **reterr_message) {
        _cleanup_(sqs_client_freep) SqsClient *c = NULL;
        int r;

        assert(env && config && config->url && ret && reterr_message);
        *reterr_message = NULL;
        c = new0(SqsClient, 1);
        if (!c)
                return -ENOMEM;
        r = client_open(c, env, config, reterr_message);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

SqsClient *sqs_client_free(SqsClient *c) {
        if (!c)
                return NULL;
        assert(c->n_calls == 0);
        aws_query_free(c->query);
        aws_credentials_free(c->credentials);
        aws_settings_free(c->settings);
        sqs_url_done(&c->url);
        return mfree(c);
}

const char *sqs_client_queue(const SqsClient *c) {
        return c->url.name;
}

const char *sqs_client_region(const SqsClient *c) {
        return c->url.region;
}

const char *sqs_client_account(const SqsClient *c) {
        return c->url.account;
}

AwsCredentials *sqs_client_credentials(SqsClient *c) {
        return c->credentials;
}

const AwsSettings *sqs_client_settings(const SqsClient *c) {
        return c->settings;
}

SqsCall *sqs_call_free(SqsCall *c) {
        if (!c)
                return NULL;
        c->client->n_calls--;
        aws_query_call_free(c->query);
        return mfree(c);
}

/* -- answers -------------------------------------------------------------------------------------------- */

static bool is_one_of(const char *code, const char *const *codes, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (streq_ptr(code, codes[i]))
                        return true;
        return false;
}

static SqsOutcome outcome_of(const AwsQueryResult *a) {
        static const char *const gone[] = { "QueueDoesNotExist", "InvalidAddress",
                                            "AWS.SimpleQueueService.NonExistentQueue" };
        static const char *const denied[] = {
                "AccessDenied",
                "AccessDeniedException",
                "AuthFailure",
                "ExpiredToken",
                "ExpiredTokenException",
                "IncompleteSignature",
                "InvalidAccessKeyId",
                "InvalidClientTokenId",
                "InvalidSecurity",
                "InvalidSignatureException",
                "KmsAccessDenied",
                "KmsDisabled",
                "KmsNotFound",
                "KmsOptInRequired",
                "MissingAuthenticationToken",
                "SignatureDoesNotMatch",
                "UnrecognizedClientException",
        };

        if (a->error == -EMSGSIZE)
                return SQS_TOO_LARGE;
        if (a->error < 0)
                return a->credentials_failed ? SQS_DENIED : SQS_RETRY;
        if (a->status / 100 == 2)
                return SQS_OK;
        if (is_one_of(a->code, gone, ELEMENTSOF(gone)))
                return SQS_GONE;
        return is_one_of(a->code, denied, ELEMENTSOF(denied)) || a->status == 401 || a->status == 403
                       ? SQS_DENIED
                       : SQS_RETRY;
}

/* "QueueDoesNotExist: The specified queue does not exist." */
static char *refusal_text(const AwsQueryResult *a) {
        _cleanup_free_ char *message = str_sanitize(a->message, 300);

        if (a->error < 0 || a->code)
                return strf("%s%s%s", strempty(a->code), a->code ? ": " : "", strempty(message));
        return strf("SQS answered with HTTP status %u", a->status);
}

static void on_answered(const AwsQueryResult *a, void *userdata) {
        SqsCall *c = userdata;
        _cleanup_(sqs_messages_done) SqsMessages messages = { 0 };
        SqsResult result = { .outcome = outcome_of(a),
                             .retry_after_usec = a->retry_after_usec,
                             .answer_bytes = a->body_size };
        _cleanup_free_ char *text = NULL;
        int r;

        result.failed = (1u << c->n_entries) - 1;
        if (result.outcome == SQS_OK) {
                r = c->n_entries > 0
                            ? sqs_failures_parse(a->body, a->body_size, c->n_entries, &result.failed)
                            : sqs_messages_parse(a->body, a->body_size, &messages);
                if (r < 0) {
                        result.outcome = SQS_RETRY;
                        result.message = "The answer of SQS cannot be read";
                } else if (c->n_entries == 0)
                        result.messages = &messages;
        } else
                result.message = text = refusal_text(a);
        result.message = strempty(result.message);
        c->done(&result, c->userdata);
}

/* -- requests ------------------------------------------------------------------------------------------- */

static int call_start(SqsClient *client, const AwsJsonRequest *request, size_t n_entries, sqs_done_t done,
                      void *userdata, SqsCall **ret) {
        _cleanup_(sqs_call_freep) SqsCall *c = new0(SqsCall, 1);
        int r;

        if (!c)
                return -ENOMEM;
        client->n_calls++;
        c->client = client;
        c->n_entries = n_entries;
        c->done = done;
        c->userdata = userdata;
        r = aws_query_start_json(client->query, request, on_answered, c, &c->query);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

int sqs_receive(SqsClient *c, const SqsReceive *how, sqs_done_t done, void *userdata, SqsCall **ret) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *body = NULL;
        int r;

        assert(c && how && done && ret && how->max_messages >= 1 && how->max_messages <= SQS_BATCH_MAX);
        r = json_writer_new(&w);
        if (r < 0)
                return r;
        json_open_object(w, NULL);
        json_add_string(w, "QueueUrl", c->url.url);
        json_add_int64(w, "MaxNumberOfMessages", how->max_messages);
        json_add_int64(w, "WaitTimeSeconds", how->wait_sec);
        json_add_int64(w, "VisibilityTimeout", how->visibility_sec);
        json_open_array(w, "MessageSystemAttributeNames");
        json_add_string(w, NULL, "SentTimestamp");
        json_add_string(w, NULL, "ApproximateReceiveCount");
        json_close_array(w);
        json_close_object(w);
        body = json_writer_steal(w, NULL);
        if (!body)
                return -ENOMEM;
        return call_start(c,
                          &(AwsJsonRequest){ .target = "AmazonSQS.ReceiveMessage",
                                             .body = body,
                                             .lane = HTTP_LANE_WATCH,
                                             .timeout_usec = how->wait_sec * USEC_PER_SEC + POLL_MARGIN_USEC,
                                             .guard = how->guard },
                          0, done, userdata, ret);
}

static int batch_start(SqsClient *c, const char *target, bool hides, const SqsEntry *entries, size_t n,
                       const HttpGuard *guard, sqs_done_t done, void *userdata, SqsCall **ret) {
        AwsJsonRequest request = { .target = target, .lane = HTTP_LANE_BULK };
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *body = NULL;
        int r;

        assert(c && entries && n > 0 && n <= SQS_BATCH_MAX && done && ret);
        r = json_writer_new(&w);
        if (r < 0)
                return r;
        json_open_object(w, NULL);
        json_add_string(w, "QueueUrl", c->url.url);
        json_open_array(w, "Entries");
        for (size_t i = 0; i < n; i++) {
                json_open_object(w, NULL);
                json_addf(w, "Id", "%zu", i);
                json_add_string(w, "ReceiptHandle", entries[i].receipt);
                if (hides)
                        json_add_int64(w, "VisibilityTimeout", entries[i].visibility_sec);
                json_close_object(w);
        }
        json_close_array(w);
        json_close_object(w);
        request.body = body = json_writer_steal(w, NULL);
        if (!body)
                return -ENOMEM;
        if (guard)
                request.guard = *guard;
        return call_start(c, &request, n, done, userdata, ret);
}

int sqs_delete(SqsClient *c, const SqsEntry *entries, size_t n, const HttpGuard *guard, sqs_done_t done,
               void *userdata, SqsCall **ret) {
        return batch_start(c, "AmazonSQS.DeleteMessageBatch", false, entries, n, guard, done, userdata, ret);
}

int sqs_hide(SqsClient *c, const SqsEntry *entries, size_t n, const HttpGuard *guard, sqs_done_t done,
             void *userdata, SqsCall **ret) {
        return batch_start(c, "AmazonSQS.ChangeMessageVisibilityBatch", true, entries, n, guard, done,
                           userdata, ret);
}
