/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-query.h"

#include "aws-error.h"
#include "aws-sigv4.h"
#include "parse-util.h"
#include "string-util.h"

#define TIMEOUT_USEC (20 * USEC_PER_SEC)
#define RETRY_AFTER_MAX_MSEC (UINT64_C(3600) * 1000)

/* A clock this far off is worth a second signature; the strictest service allows five minutes. */
#define SKEW_MIN_USEC (2 * USEC_PER_MINUTE)

struct AwsQuery {
        Env *env;
        AwsCredentials *credentials;
        char *service;
        char *region;
        AwsEndpoint endpoint;
        int64_t skew_usec; /* what the cloud's clock is ahead of ours */
        size_t n_calls;
};

struct AwsQueryCall {
        AwsQuery *query;
        char *body;
        char *target; /* NULL: a form */
        HttpLane lane;
        usec_t timeout_usec;
        HttpGuard guard;
        aws_query_done_t done;
        void *userdata;

        AwsCredentialsCall *credentials_call;
        HttpCall *http;
        usec_t signed_wall_usec;
        unsigned generation;
        char *principal;
        bool clock_mended, keys_renewed;
};

int aws_query_new(Env *env, AwsCredentials *credentials, const char *service, const char *region,
                  const char *endpoint, AwsQuery **ret) {
        _cleanup_(aws_query_freep) AwsQuery *q = NULL;
        int r;

        assert(env && credentials && service && region && ret);
        if (!aws_region_is_valid(region))
                return -EINVAL;
        q = new0(AwsQuery, 1);
        if (!q)
                return -ENOMEM;
        q->env = env;
        q->credentials = credentials;
        q->service = strdup(service);
        q->region = strdup(region);
        if (!q->service || !q->region)
                return -ENOMEM;
        r = endpoint ? aws_endpoint_parse(endpoint, &q->endpoint)
                     : aws_endpoint_for(service, region, &q->endpoint);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(q);
        return 0;
}

AwsQuery *aws_query_free(AwsQuery *q) {
        if (!q)
                return NULL;
        assert(q->n_calls == 0);
        aws_endpoint_done(&q->endpoint);
        free(q->service);
        free(q->region);
        free(q);
        return NULL;
}

AwsQueryCall *aws_query_call_free(AwsQueryCall *c) {
        if (!c)
                return NULL;
        c->query->n_calls--;
        aws_credentials_call_free(c->credentials_call);
        http_call_free(c->http);
        free(c->body);
        free(c->target);
        free(c->principal);
        free(c);
        return NULL;
}

/* The call may be freed in here: the last act of every caller. */
static void call_done(AwsQueryCall *c, AwsQueryResult *result) {
        result->message = strempty(result->message);
        result->body = strempty(result->body);
        result->principal = strempty(c->principal);
        c->done(result, c->userdata);
}

static void call_fail(AwsQueryCall *c, int error, const char *message) {
        call_done(c, &(AwsQueryResult){ .error = error, .message = message });
}

static int call_get_credentials(AwsQueryCall *c);
static int call_send(AwsQueryCall *c, const AwsKeys *keys);

/* Keys or clock: the service tells them apart badly, so both are looked at. */
static bool is_about_identity(const char *code) {
        static const char *const codes[] = {
                "AuthFailure",
                "ExpiredToken",
                "ExpiredTokenException",
                "InvalidClientTokenId",
                "InvalidSignatureException",
                "RequestExpired",
                "RequestTimeTooSkewed",
                "SignatureDoesNotMatch",
        };

        for (size_t i = 0; i < ELEMENTSOF(codes); i++)
                if (streq_ptr(code, codes[i]))
                        return true;
        return false;
}

/* True: our clock was wrong, and the offset is set. */
static bool mend_clock(AwsQueryCall *c, const HttpResponse *response) {
        const char *date = http_header_find(response->headers, response->n_headers, "Date");
        AwsQuery *q = c->query;
        usec_t theirs, distance;

        if (c->clock_mended || !date || http_date_parse(date, &theirs) < 0)
                return false;
        distance =
                theirs > c->signed_wall_usec ? theirs - c->signed_wall_usec : c->signed_wall_usec - theirs;
        if (distance < SKEW_MIN_USEC)
                return false;
        q->skew_usec = (int64_t) theirs - (int64_t) loop_wall(q->env->loop);
        c->clock_mended = true;
        return true;
}

/* True: the call goes on with another clock or other keys. */
static bool try_again(AwsQueryCall *c, const HttpResponse *response) {
        if (mend_clock(c, response))
                return call_get_credentials(c) >= 0;
        if (c->keys_renewed)
                return false;
        c->keys_renewed = true;
        aws_credentials_refuse(c->query->credentials, c->generation);
        return call_get_credentials(c) >= 0;
}

/* x-amz-retry-after is in milliseconds; Retry-After is HTTP's. */
static usec_t retry_after(AwsQuery *q, const HttpResponse *response) {
        const char *value = http_header_find(response->headers, response->n_headers, "x-amz-retry-after");
        uint64_t msec;

        if (value && parse_uint64_range(value, 0, RETRY_AFTER_MAX_MSEC, &msec) >= 0)
                return msec * USEC_PER_MSEC;
        return http_retry_after(response, loop_wall(q->env->loop));
}

static void on_response(const HttpResponse *response, void *userdata) {
        AwsQueryCall *c = userdata;
        _cleanup_(aws_error_done) AwsError error = { 0 };
        AwsQueryResult result = { .status = response->status };

        if (response->error < 0)
                return call_fail(c, response->error, response->error_text);

        if (response->status / 100 != 2) {
                (void) (c->target ? aws_error_parse_json(response->body, response->body_size, &error)
                                  : aws_error_parse(response->body, response->body_size, &error));
                if (is_about_identity(error.code) && try_again(c, response))
                        return;
        }
        result.code = error.code;
        result.message = error.message;
        result.body = response->body;
        result.body_size = response->body_size;
        result.retry_after_usec = retry_after(c->query, response);
        call_done(c, &result);
}

static usec_t cloud_wall(const AwsQuery *q) {
        usec_t wall = loop_wall(q->env->loop);

        return q->skew_usec < 0 ? usec_sub(wall, (usec_t) -q->skew_usec)
                                : usec_add(wall, (usec_t) q->skew_usec);
}

static int call_send(AwsQueryCall *c, const AwsKeys *keys) {
        AwsQuery *q = c->query;
        HttpHeader headers[3 + SIGV4_HEADERS_MAX] = {
                { "Host", q->endpoint.host },
                { "Content-Type", c->target ? "application/x-amz-json-1.0"
                                            : "application/x-www-form-urlencoded; charset=utf-8" },
                { "X-Amz-Target", c->target },
        };
        size_t n = c->target ? 3 : 2;
        _cleanup_(sigv4_headers_done) SigV4Headers more = { 0 };
        int r;

        c->signed_wall_usec = cloud_wall(q);
        r = sigv4_sign(
                &(SigV4Request){
                        .method = HTTP_POST,
                        .path = "/",
                        .headers = headers,
                        .n_headers = n,
                        .body = c->body,
                        .body_size = strlen(c->body),
                        .region = q->region,
                        .service = q->service,
                        .access_key_id = keys->access_key_id,
                        .secret_access_key = keys->secret_access_key,
                        .session_token = keys->session_token,
                        .wall_usec = c->signed_wall_usec,
                },
                &more);
        if (r < 0)
                return r;
        memcpy(headers + n, more.headers, more.n_headers * sizeof(*headers));

        c->http = http_call_free(c->http);
        return http_call_start(q->env->transport,
                               &(HttpRequest){
                                       .method = HTTP_POST,
                                       .url = q->endpoint.url,
                                       .headers = headers,
                                       .n_headers = n + more.n_headers,
                                       .body = c->body,
                                       .body_size = strlen(c->body),
                                       .lane = c->lane,
                                       .timeout_usec = c->timeout_usec,
                                       .max_response_bytes = AWS_QUERY_ANSWER_MAX_BYTES,
                                       .use_proxy = true,
                                       .guard = c->guard,
                               },
                               on_response, c, &c->http);
}

static void on_credentials(int error, const AwsIdentity *identity, const char *message, void *userdata) {
        AwsQueryCall *c = userdata;
        int r;

        if (error < 0) {
                call_done(c, &(AwsQueryResult){
                                     .error = error, .credentials_failed = true, .message = message });
                return;
        }
        r = free_and_strdup(&c->principal, identity->principal);
        if (r >= 0) {
                c->generation = identity->generation;
                r = call_send(c, identity->keys);
        }
        if (r < 0)
                call_fail(c, r, "The request could not be signed or sent");
}

static int call_get_credentials(AwsQueryCall *c) {
        c->credentials_call = aws_credentials_call_free(c->credentials_call);
        return aws_credentials_get(c->query->credentials, on_credentials, c, &c->credentials_call);
}

static int call_start(AwsQuery *q, const AwsJsonRequest *request, aws_query_done_t done, void *userdata,
                      AwsQueryCall **ret) {
        _cleanup_(aws_query_call_freep) AwsQueryCall *c = NULL;
        int r;

        c = new0(AwsQueryCall, 1);
        if (!c)
                return -ENOMEM;
        q->n_calls++;
        *c = (AwsQueryCall){ .query = q,
                             .done = done,
                             .userdata = userdata,
                             .lane = request->lane,
                             .timeout_usec = request->timeout_usec > 0 ? request->timeout_usec : TIMEOUT_USEC,
                             .guard = request->guard };
        r = free_and_strdup(&c->body, request->body);
        if (r >= 0)
                r = free_and_strdup(&c->target, request->target);
        if (r >= 0)
                r = call_get_credentials(c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

int aws_query_start(AwsQuery *q, const char *form, const HttpGuard *guard, aws_query_done_t done,
                    void *userdata, AwsQueryCall **ret) {
        AwsJsonRequest request = { .body = form, .lane = HTTP_LANE_BULK };

        assert(q && form && done && ret);
        if (guard)
                request.guard = *guard;
        return call_start(q, &request, done, userdata, ret);
}

int aws_query_start_json(AwsQuery *q, const AwsJsonRequest *request, aws_query_done_t done, void *userdata,
                         AwsQueryCall **ret) {
        assert(q && request && request->target && request->body && done && ret);
        return call_start(q, request, done, userdata, ret);
}
