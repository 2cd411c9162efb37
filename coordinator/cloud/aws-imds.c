/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-imds.h"

#include "http-transport.h"
#include "string-util.h"

#define TOKEN_TTL_SEC "21600"
#define TOKEN_RENEW_USEC (3 * USEC_PER_HOUR)
#define TOKEN_MAX_BYTES 4096u
#define REQUEST_TIMEOUT_USEC (2 * USEC_PER_SEC)
#define RESPONSE_MAX_BYTES (64u * 1024u)

struct AwsImds {
        Env *env;
        char *endpoint; /* without a slash at its end */
        char *token;    /* NULL: none yet */
        usec_t token_at_usec;
        size_t n_calls;
};

struct AwsImdsCall {
        AwsImds *imds;
        char *path;
        HttpCall *http;
        bool renewed; /* a 401 was answered with a new token already */
        aws_imds_done_t done;
        void *userdata;
};

int aws_imds_new(Env *env, const char *endpoint, AwsImds **ret) {
        _cleanup_(aws_imds_freep) AwsImds *i = NULL;

        assert(env && endpoint && ret);
        i = new0(AwsImds, 1);
        if (!i)
                return -ENOMEM;
        i->env = env;
        i->endpoint = strdup(endpoint);
        if (!i->endpoint)
                return -ENOMEM;
        *ret = TAKE_PTR(i);
        return 0;
}

static void imds_forget_token(AwsImds *i) {
        i->token = erase_and_free(i->token, strlen(strempty(i->token)));
}

AwsImds *aws_imds_free(AwsImds *i) {
        if (!i)
                return NULL;
        assert(i->n_calls == 0);
        imds_forget_token(i);
        free(i->endpoint);
        free(i);
        return NULL;
}

AwsImdsCall *aws_imds_call_free(AwsImdsCall *c) {
        if (!c)
                return NULL;
        c->imds->n_calls--;
        http_call_free(c->http);
        free(c->path);
        free(c);
        return NULL;
}

/* The call may be freed in here: the last act of every caller. */
static void call_done(AwsImdsCall *c, int error, const char *text) {
        c->done(error, text, c->userdata);
}

static void call_fail(AwsImdsCall *c, int error, const char *what, const HttpResponse *response) {
        _cleanup_free_ char *text = NULL;

        if (response->error < 0)
                text = strf("Instance metadata: %s failed: %s", what, response->error_text);
        else
                text = strf("Instance metadata: %s was answered with HTTP %u", what, response->status);
        call_done(c, error, text ? text : "Out of memory");
}

static int call_send(AwsImdsCall *c);

static void on_value(const HttpResponse *response, void *userdata) {
        AwsImdsCall *c = userdata;
        _cleanup_free_ char *body = NULL;
        int r;

        if (response->error < 0)
                return call_fail(c, response->error, c->path, response);
        if (response->status == 401 && !c->renewed) {
                c->renewed = true;
                imds_forget_token(c->imds);
                r = call_send(c);
                if (r < 0)
                        call_done(c, r, "Out of memory");
                return;
        }
        if (response->status == 404)
                return call_fail(c, -ENOENT, c->path, response);
        if (response->status != 200)
                return call_fail(c, -EREMOTEIO, c->path, response);

        body = memdup_str(response->body, response->body_size);
        if (!body)
                return call_done(c, -ENOMEM, "Out of memory");
        call_done(c, 0, strstrip(body));
        explicit_bzero(body, response->body_size);
}

/* Something that may stand in a header. */
static bool token_is_valid(const char *token, size_t size) {
        if (size == 0 || size > TOKEN_MAX_BYTES)
                return false;
        for (size_t i = 0; i < size; i++)
                if (token[i] <= 0x20 || token[i] >= 0x7f)
                        return false;
        return true;
}

static void on_token(const HttpResponse *response, void *userdata) {
        AwsImdsCall *c = userdata;
        AwsImds *i = c->imds;
        int r;

        /* A reply that dies one hop short looks like silence: worth a diagnosis of its own. */
        if (response->error == -ETIMEDOUT)
                return call_done(c, -ETIMEDOUT,
                                 "Instance metadata: the token request timed out; in a pod that usually means a hop limit of 1 (use hostNetwork, or HttpPutResponseHopLimit=2)");
        if (response->error < 0)
                return call_fail(c, response->error, "token request", response);
        if (response->status != 200 || !token_is_valid(response->body, response->body_size))
                return call_fail(c, -EREMOTEIO, "token request", response);

        imds_forget_token(i);
        i->token = strdup(response->body);
        i->token_at_usec = loop_now(i->env->loop);
        r = i->token ? call_send(c) : -ENOMEM;
        if (r < 0)
                call_done(c, r, "Out of memory");
}

static int call_request(AwsImdsCall *c, HttpMethod method, const char *path, const HttpHeader *header,
                        http_done_t done) {
        _cleanup_free_ char *url = NULL;
        HttpRequest request = {
                .method = method,
                .headers = header,
                .n_headers = 1,
                .lane = HTTP_LANE_URGENT,
                .timeout_usec = REQUEST_TIMEOUT_USEC,
                .max_response_bytes = RESPONSE_MAX_BYTES,
        };

        url = strf("%s/latest/%s", c->imds->endpoint, path);
        if (!url)
                return -ENOMEM;
        request.url = url;
        c->http = http_call_free(c->http);
        return http_call_start(c->imds->env->transport, &request, done, c, &c->http);
}

/* The value if there is a token that will do, else the token first. */
static int call_send(AwsImdsCall *c) {
        AwsImds *i = c->imds;

        if (!i->token || loop_now(i->env->loop) >= usec_add(i->token_at_usec, TOKEN_RENEW_USEC))
                return call_request(c, HTTP_PUT, "api/token",
                                    &(HttpHeader){ "X-aws-ec2-metadata-token-ttl-seconds", TOKEN_TTL_SEC },
                                    on_token);
        return call_request(c, HTTP_GET, c->path, &(HttpHeader){ "X-aws-ec2-metadata-token", i->token },
                            on_value);
}

int aws_imds_get(AwsImds *i, const char *path, aws_imds_done_t done, void *userdata, AwsImdsCall **ret) {
        _cleanup_(aws_imds_call_freep) AwsImdsCall *c = NULL;
        int r;

        assert(i && path && done && ret);
        c = new0(AwsImdsCall, 1);
        if (!c)
                return -ENOMEM;
        i->n_calls++;
        *c = (AwsImdsCall){ .imds = i, .done = done, .userdata = userdata, .path = strdup(path) };
        if (!c->path)
                return -ENOMEM;
        r = call_send(c);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}
