/* SPDX-License-Identifier: Apache-2.0 */
#include "imds-client.h"

#include "log.h"
#include "parse-util.h"
#include "string-util.h"

/*
 *      get ---token is good-------------------------> ASKING ---answer---> done
 *       |                                               ^  |
 *       +---none, or past half-life---> FETCHING_TOKEN -+  +---401, first time---> FETCHING_TOKEN
 *                                            |
 *                                            +---no route: the other endpoint, once
 *                                            +---refused, and version 1 is allowed: ASKING without one
 *                                            +---failed, and no old one is good---> done (FAILED)
 */

#define TTL_SEC 21600
#define TTL_HEADER "X-aws-ec2-metadata-token-ttl-seconds"
#define TOKEN_HEADER "X-aws-ec2-metadata-token"
#define TIMEOUT_USEC (2 * USEC_PER_SEC)
#define RESPONSE_BYTES_MAX (64u * 1024)
#define TOKEN_BYTES_MAX 1024u
#define RENEWAL_RETRY_USEC USEC_PER_MINUTE
#define V1_USEC (10 * USEC_PER_MINUTE)

struct ImdsClient {
        Env *env;
        char *endpoint;
        char *other_endpoint; /* NULL: none */
        char *path, *url;     /* of the question */
        HttpCall *call; /* the last one, which may have ended */
        bool is_asked;
        imds_done_t done;
        void *userdata;
        char *token;
        usec_t renew_usec, expire_usec; /* loop_now() */
        unsigned generation;
        usec_t v1_until_usec; /* goes on without a token */
        bool allows_v1;
        bool asked_again; /* after a 401 */
        bool moved;       /* to the other endpoint, for this question */
        bool at_other;    /* `endpoint` is the second one */
};

static int ask(ImdsClient *c);
static int fetch_token(ImdsClient *c);

int imds_client_new(Env *env, const char *endpoint, ImdsClient **ret) {
        _cleanup_(imds_client_freep) ImdsClient *c = NULL;

        assert(env && endpoint && ret);
        c = new0(ImdsClient, 1);
        if (!c)
                return -ENOMEM;
        c->env = env;
        c->endpoint = strdup(endpoint);
        if (!c->endpoint)
                return -ENOMEM;
        *ret = TAKE_PTR(c);
        return 0;
}

static void forget_token(ImdsClient *c) {
        if (c->token)
                c->token = erase_and_free(c->token, strlen(c->token));
}

ImdsClient *imds_client_free(ImdsClient *c) {
        if (!c)
                return NULL;
        http_call_free(c->call);
        forget_token(c);
        free(c->endpoint);
        free(c->other_endpoint);
        free(c->path);
        free(c->url);
        return mfree(c);
}

int imds_client_set_other_endpoint(ImdsClient *c, const char *endpoint) {
        assert(c && endpoint);
        return free_and_strdup(&c->other_endpoint, endpoint);
}

void imds_client_allow_v1(ImdsClient *c) {
        c->allows_v1 = true;
}

unsigned imds_client_token_generation(const ImdsClient *c) {
        return c->generation;
}

static void swap_endpoints(ImdsClient *c);

/* The second endpoint is for as long as it answers: a machine whose IPv4 comes late is not to be lost there. */
static void leave_silent_endpoint(ImdsClient *c, const HttpResponse *response) {
        if (response->error == 0 || !c->at_other)
                return;
        swap_endpoints(c);
        c->path = mfree(c->path); /* the address of the next question is another */
}

static void finish(ImdsClient *c, const ImdsAnswer *answer) {
        c->done(answer, c->userdata); /* may ask the next question, or free us */
}

static int error_of(const HttpResponse *response) {
        return response->error < 0 ? response->error : -EREMOTEIO;
}

static void fail(ImdsClient *c, const HttpResponse *response, int error, const char *why) {
        leave_silent_endpoint(c, response);
        finish(c, &(ImdsAnswer){ .outcome = IMDS_FAILED,
                                 .why = why,
                                 .error = error,
                                 .answered_usec = response->finished_usec });
}

static void fail_for_memory(ImdsClient *c) {
        finish(c, &(ImdsAnswer){ .outcome = IMDS_FAILED,
                                 .why = "out of memory",
                                 .error = -ENOMEM,
                                 .answered_usec = loop_now(c->env->loop) });
}

static int send_request(ImdsClient *c, HttpMethod method, const char *url, const HttpHeader *header,
                        http_done_t done) {
        const HttpRequest request = {
                .method = method,
                .url = url,
                .headers = header,
                .n_headers = header ? 1 : 0,
                .lane = HTTP_LANE_METADATA,
                .timeout_usec = TIMEOUT_USEC,
                .max_response_bytes = RESPONSE_BYTES_MAX,
        };

        int r;

        assert(url);
        c->call = http_call_free(c->call);
        r = http_call_start(c->env->transport, &request, done, c, &c->call);
        c->is_asked = r >= 0;
        return r;
}

/* -- another way -------------------------------------------------------------------------------- */

static void swap_endpoints(ImdsClient *c) {
        SWAP(c->endpoint, c->other_endpoint);
        c->at_other = !c->at_other;
        c->v1_until_usec = 0;
        forget_token(c);
}

static bool can_move(const ImdsClient *c, const HttpResponse *response) {
        return response->error == -EHOSTUNREACH && c->other_endpoint && !c->moved;
}

/* Who answers there proves himself anew, by a token of his own. */
static int move_to_other(ImdsClient *c) {
        char *url = strf("%s/latest/%s", c->other_endpoint, c->path);

        if (!url)
                return -ENOMEM;
        free(c->url);
        c->url = url;
        log_debug(c->env->log, "No route to the metadata service at %s, asking %s", c->endpoint, c->other_endpoint);
        swap_endpoints(c);
        c->moved = true;
        return fetch_token(c);
}

static bool may_go_without(const ImdsClient *c, const HttpResponse *response) {
        return c->allows_v1 && (response->error == -ETIMEDOUT ||
                                (response->error == 0 &&
                                 (response->status == 403 || response->status == 404 || response->status == 405)));
}

static int go_without(ImdsClient *c) {
        c->v1_until_usec = usec_add(loop_now(c->env->loop), V1_USEC);
        c->generation++;
        return ask(c);
}

/* -- the token ---------------------------------------------------------------------------------- */

static bool token_is_valid(const char *s, size_t size) {
        if (size == 0 || size > TOKEN_BYTES_MAX)
                return false;
        for (size_t i = 0; i < size; i++)
                if (s[i] <= ' ' || s[i] > '~')
                        return false;
        return true;
}

/* 0, -EBADMSG (not a token), -ENOMEM. */
static int take_token(ImdsClient *c, const HttpResponse *response) {
        const char *header = http_header_find(response->headers, response->n_headers, TTL_HEADER);
        uint64_t ttl_sec = TTL_SEC;
        char *token;

        if (!token_is_valid(response->body, response->body_size))
                return -EBADMSG;
        token = memdup_str(response->body, response->body_size);
        if (!token)
                return -ENOMEM;
        /* The server may grant less than was asked for, never more. */
        if (header && parse_uint64_range(header, 1, TTL_SEC, &ttl_sec) < 0)
                ttl_sec = TTL_SEC;

        forget_token(c);
        c->token = token;
        c->renew_usec = usec_add(response->started_usec, ttl_sec * USEC_PER_SEC / 2);
        c->expire_usec = usec_add(response->started_usec, ttl_sec * USEC_PER_SEC);
        c->generation++;
        return 0;
}

static char *explain_token(const HttpResponse *response) {
        if (response->error == -ETIMEDOUT)
                return strdup("the metadata service did not answer the request for a session token (PUT): if other requests to it work, the answer is dropped on its way because the instance's metadata hop limit is too low for a pod network: use the host's network, or raise HttpPutResponseHopLimit to 2");
        if (response->error < 0)
                return strf("no session token: %s", response->error_text);
        if (response->status == 403)
                return strdup("no session token: the metadata service refuses (403): it is switched off for this instance, or something between forwards the request");
        if (response->status == 404 || response->status == 405)
                return strf("no session token: HTTP %u: this is not an EC2 metadata service of version 2",
                            response->status);
        return strf("no session token: HTTP %u", response->status);
}

static void on_token(const HttpResponse *response, void *userdata) {
        _cleanup_free_ char *why = NULL;
        ImdsClient *c = userdata;
        int r = -EREMOTEIO;

        c->is_asked = false;
        if (can_move(c, response)) {
                if (move_to_other(c) < 0)
                        fail_for_memory(c);
                return;
        }
        if (response->error == 0 && response->status == 200) {
                r = take_token(c, response);
                why = strdup("no session token: what came is none");
        } else
                why = explain_token(response);

        if (r < 0 && c->token && loop_now(c->env->loop) < c->expire_usec) {
                log_debug(c->env->log,
                          "The metadata session is not renewed yet, continuing with the old one: %s",
                          strempty(why));
                c->renew_usec = usec_add(loop_now(c->env->loop), RENEWAL_RETRY_USEC);
                r = 0;
        }
        if (r == -ENOMEM || (r < 0 && !why))
                fail_for_memory(c);
        else if (r < 0 && may_go_without(c, response)) {
                if (go_without(c) < 0)
                        fail_for_memory(c);
        } else if (r < 0)
                fail(c, response, error_of(response), why);
        else if (ask(c) < 0)
                fail_for_memory(c);
}

static int fetch_token(ImdsClient *c) {
        _cleanup_free_ char *url = strf("%s/latest/api/token", c->endpoint), *ttl = strf("%d", TTL_SEC);
        const HttpHeader header = { TTL_HEADER, ttl };

        return url && ttl ? send_request(c, HTTP_PUT, url, &header, on_token) : -ENOMEM;
}

/* -- the question ------------------------------------------------------------------------------- */

static char *explain_answer(const HttpResponse *response) {
        if (response->error < 0)
                return strf("no answer: %s", response->error_text);
        if (response->status == 401)
                return strdup("HTTP 401 in spite of a new session token");
        if (response->status == 403)
                return strdup(
                        "HTTP 403: the metadata service is switched off for this instance, or refuses it");
        if (response->status == 429 || response->status == 503)
                return strf("HTTP %u: the metadata service is throttling", response->status);
        return strf("HTTP %u", response->status);
}

static void on_answer(const HttpResponse *response, void *userdata) {
        ImdsAnswer answer = { .outcome = IMDS_FAILED,
                              .answered_usec = response->finished_usec,
                              .date_usec = http_date(response) };
        _cleanup_free_ char *why = NULL;
        ImdsClient *c = userdata;

        c->is_asked = false;
        if (can_move(c, response)) {
                if (move_to_other(c) < 0)
                        fail_for_memory(c);
                return;
        }
        if (response->error == 0 && response->status == 401 && !c->asked_again) {
                c->asked_again = true;
                c->v1_until_usec = 0;
                forget_token(c);
                if (fetch_token(c) < 0)
                        fail_for_memory(c);
                return;
        }
        if (response->error == 0 && response->status == 200) {
                answer.outcome = IMDS_ANSWERED;
                answer.body = response->body;
                answer.size = response->body_size;
        } else if (response->error == 0 && response->status == 404)
                answer.outcome = IMDS_ABSENT;
        else {
                why = explain_answer(response);
                answer.why = why ? why : "out of memory";
                answer.error = why ? error_of(response) : -ENOMEM;
                leave_silent_endpoint(c, response);
        }
        finish(c, &answer);
}

static int ask(ImdsClient *c) {
        const HttpHeader header = { TOKEN_HEADER, c->token };

        return send_request(c, HTTP_GET, c->url, c->token ? &header : NULL, on_answer);
}

static int set_path(ImdsClient *c, const char *path) {
        if (c->path && streq(c->path, path))
                return 0;
        c->path = mfree(c->path);
        free(c->url);
        c->url = strf("%s/latest/%s", c->endpoint, path);
        if (!c->url)
                return -ENOMEM;
        c->path = strdup(path);
        return c->path ? 0 : -ENOMEM;
}

int imds_client_get(ImdsClient *c, const char *path, imds_done_t done, void *userdata) {
        usec_t now = loop_now(c->env->loop);
        int r;

        assert(c && path && done);
        r = set_path(c, path);
        if (r < 0)
                return r;
        c->done = done;
        c->userdata = userdata;
        c->asked_again = c->moved = false;
        if (c->token && now >= c->expire_usec)
                forget_token(c);
        if (!c->token && now < c->v1_until_usec)
                return ask(c);
        return c->token && now < c->renew_usec ? ask(c) : fetch_token(c);
}

bool imds_client_is_asked(const ImdsClient *c) {
        return c->is_asked;
}
