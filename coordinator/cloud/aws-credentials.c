/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-credentials.h"

#include "alloc-util.h"
#include "aws-error.h"
#include "backoff.h"
#include "file-util.h"
#include "http-transport.h"
#include "imds-client.h"
#include "list.h"
#include "string-util.h"

#define RENEW_BEFORE_USEC (10 * USEC_PER_MINUTE)
#define RENEW_PAUSE_USEC USEC_PER_MINUTE /* when new keys are as short-lived as the old ones */
#define IMDS_EXPIRED_MIN_USEC (10 * USEC_PER_MINUTE)
#define IMDS_EXPIRED_SPAN_USEC (10 * USEC_PER_MINUTE)
#define CONTAINER_TIMEOUT_USEC (2 * USEC_PER_SEC)
#define CONTAINER_ORIGIN "http://169.254.170.2"
#define STS_TIMEOUT_USEC (10 * USEC_PER_SEC)
#define TOKEN_FILE_MAX_BYTES (64u * 1024u)
#define MESSAGE_MAX_BYTES 300u
#define ROLE_PATH "meta-data/iam/security-credentials/"
#define ROLE_MAX 128u

/* What a source answers when asked to begin. */
enum {
        SOURCE_ABSENT = 0,  /* not configured: the next one */
        SOURCE_STARTED = 1, /* its callback will end the renewal */
        SOURCE_ENDED = 2,   /* it has done so already */
};

struct AwsCredentials {
        Env *env;
        const AwsSettings *settings;
        ImdsClient *imds;
        char *region;
        List calls;
        Timer *timer;

        AwsKeys keys; /* access_key_id NULL: none yet */
        char *principal;
        unsigned generation;
        bool refused;
        bool from_imds;
        usec_t expires_usec; /* not used from here on, but for keys of instance metadata */
        usec_t renew_usec;

        bool renewing;
        HttpCall *http;
        char *role; /* of instance metadata */
        Backoff backoff;
        usec_t hold_usec; /* after a failure: no renewal before */
        int error;        /* the last failure */
        char *message;
};

struct AwsCredentialsCall {
        AwsCredentials *credentials;
        ListNode calls;
        bool waiting;
        aws_credentials_done_t done;
        void *userdata;
};

/* -- the end of a renewal ------------------------------------------------------------------- */

static void renewal_over(AwsCredentials *c) {
        c->renewing = false;
        c->http = http_call_free(c->http);
        c->role = mfree(c->role);
        timer_arm_in(c->timer, 0);
}

/* Takes the message. */
static int renewal_failed(AwsCredentials *c, int error, char *message) {
        free(c->message);
        c->message = message ? str_sanitize(message, MESSAGE_MAX_BYTES) : NULL;
        free(message);
        c->error = error;
        c->hold_usec = usec_add(loop_now(c->env->loop), backoff_next(&c->backoff, c->env->random));
        renewal_over(c);
        return SOURCE_ENDED;
}

static void set_times(AwsCredentials *c) {
        Loop *loop = c->env->loop;
        usec_t now = loop_now(loop);

        if (c->keys.expires_wall_usec == USEC_INFINITY) {
                c->expires_usec = c->renew_usec = USEC_INFINITY;
                return;
        }
        /* AWS's time: the API server's clock, by which loop_wall() goes, may be wrong while this machine's is right. */
        c->expires_usec = usec_add(now, usec_sub(c->keys.expires_wall_usec, loop_machine_wall(loop)));
        c->renew_usec = MAX(usec_sub(c->expires_usec, RENEW_BEFORE_USEC), usec_add(now, RENEW_PAUSE_USEC));
        if (c->from_imds && c->expires_usec <= now) {
                c->renew_usec =
                        now + IMDS_EXPIRED_MIN_USEC + random_below(c->env->random, IMDS_EXPIRED_SPAN_USEC);
                c->expires_usec = c->renew_usec;
        }
}

/* Takes keys and principal. */
static int renewal_done(AwsCredentials *c, AwsKeys *keys, char *principal, bool from_imds) {
        if (!principal) {
                aws_keys_done(keys);
                return renewal_failed(c, -ENOMEM, strdup("Out of memory"));
        }
        aws_keys_done(&c->keys);
        c->keys = *keys;
        *keys = (AwsKeys){ 0 };
        free(c->principal);
        c->principal = principal;
        c->generation++;
        c->refused = false;
        c->from_imds = from_imds;
        c->error = 0;
        backoff_reset(&c->backoff);
        c->hold_usec = 0;
        set_times(c);
        if (!from_imds && c->expires_usec <= loop_now(c->env->loop))
                return renewal_failed(c, -EKEYEXPIRED,
                                      strdup("The AWS credentials that were given have expired already"));
        renewal_over(c);
        return SOURCE_ENDED;
}

/* -- environment ---------------------------------------------------------------------------- */

static int start_environment(AwsCredentials *c) {
        const AwsSettings *s = c->settings;
        AwsKeys keys = { .expires_wall_usec = USEC_INFINITY };

        if (!s->access_key_id && !s->secret_access_key)
                return SOURCE_ABSENT;
        if (!s->access_key_id || !s->secret_access_key)
                return renewal_failed(
                        c, -EINVAL,
                        strdup("Only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set: set both"));

        keys.access_key_id = strdup(s->access_key_id);
        keys.secret_access_key = strdup(s->secret_access_key);
        keys.session_token = s->session_token ? strdup(s->session_token) : NULL;
        if (!keys.access_key_id || !keys.secret_access_key || (s->session_token && !keys.session_token)) {
                aws_keys_done(&keys);
                return renewal_failed(c, -ENOMEM, strdup("Out of memory"));
        }
        if (!aws_keys_are_valid(&keys)) {
                aws_keys_done(&keys);
                return renewal_failed(c, -EINVAL,
                                      strdup("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_SESSION_TOKEN holds characters that no key has"));
        }
        return renewal_done(c, &keys, strf("environment:%s", s->access_key_id), false);
}

/* -- web identity --------------------------------------------------------------------------- */

static void on_sts(const HttpResponse *response, void *userdata) {
        AwsCredentials *c = userdata;
        _cleanup_(aws_error_done) AwsError error = { 0 };
        AwsKeys keys = { 0 };
        int r;

        if (response->error < 0) {
                renewal_failed(c, response->error,
                               strf("STS AssumeRoleWithWebIdentity failed: %s", response->error_text));
                return;
        }
        if (response->status != 200) {
                r = aws_error_parse(response->body, response->body_size, &error);
                renewal_failed(c, -EACCES,
                               r < 0 ? strf("STS AssumeRoleWithWebIdentity was answered with HTTP %u",
                                            response->status)
                                     : strf("STS AssumeRoleWithWebIdentity of %s: %s: %s",
                                            c->settings->role_arn, error.code, error.message));
                return;
        }
        r = aws_keys_parse_sts(response->body, response->body_size, &keys);
        if (r < 0)
                renewal_failed(c, r,
                               strdup("STS AssumeRoleWithWebIdentity gave an answer that cannot be read"));
        else
                renewal_done(c, &keys, strf("role:%s", c->settings->role_arn), false);
}

static int form_add(StrBuf *b, const char *key, const char *value) {
        _cleanup_free_ char *encoded = url_encode(value, false);

        if (!encoded)
                return -ENOMEM;
        strbuf_addf(b, "&%s=%s", key, encoded);
        return 0;
}

static int send_sts(AwsCredentials *c, const char *token) {
        const AwsSettings *s = c->settings;
        static const HttpHeader headers[] = {
                { "Content-Type", "application/x-www-form-urlencoded; charset=utf-8" },
        };
        _cleanup_(aws_endpoint_done) AwsEndpoint endpoint = { 0 };
        _cleanup_strbuf_ StrBuf body = { 0 };
        int r;

        r = s->endpoint_sts ? aws_endpoint_parse(s->endpoint_sts, &endpoint)
                            : aws_endpoint_for("sts", c->region, &endpoint);
        if (r < 0)
                return r;

        strbuf_add(&body, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
        r = form_add(&body, "RoleArn", s->role_arn);
        if (r >= 0)
                r = form_add(&body, "RoleSessionName",
                             s->role_session_name ? s->role_session_name : "vesper-coordinator");
        if (r >= 0)
                r = form_add(&body, "WebIdentityToken", token);
        if (r < 0 || body.failed)
                return -ENOMEM;

        r = http_call_start(c->env->transport,
                            &(HttpRequest){
                                    .method = HTTP_POST,
                                    .url = endpoint.url,
                                    .headers = headers,
                                    .n_headers = ELEMENTSOF(headers),
                                    .body = body.data,
                                    .body_size = body.size,
                                    .lane = HTTP_LANE_BULK,
                                    .timeout_usec = STS_TIMEOUT_USEC,
                                    .max_response_bytes = AWS_KEYS_REPLY_MAX_BYTES,
                                    .use_proxy = true,
                            },
                            on_sts, c, &c->http);
        explicit_bzero(body.data, body.size);
        return r;
}

static int start_web_identity(AwsCredentials *c) {
        const AwsSettings *s = c->settings;
        char *token = NULL;
        size_t size;
        int r;

        if (!s->role_arn || !s->web_identity_token_file)
                return SOURCE_ABSENT;
        if (s->role_session_name && !aws_role_session_name_is_valid(s->role_session_name))
                return renewal_failed(
                        c, -EINVAL, strdup("AWS_ROLE_SESSION_NAME must be 2 to 64 of A-Z a-z 0-9 _+=,.@-"));
        if (!c->region && !s->endpoint_sts)
                return renewal_failed(c, -EINVAL, strdup("The region of STS is not known: set AWS_REGION"));

        /* Each time afresh: the kubelet rotates it. */
        r = read_file(s->web_identity_token_file, TOKEN_FILE_MAX_BYTES, &token, &size);
        if (r < 0)
                return renewal_failed(c, r,
                                      strf("Cannot read the web identity token '%s': %s",
                                           s->web_identity_token_file, strerror(-r)));
        r = send_sts(c, strstrip(token));
        erase_and_free(token, size);
        if (r < 0)
                return renewal_failed(c, r, strf("Cannot ask STS: %s", strerror(-r)));
        return SOURCE_STARTED;
}

/* -- shared file ---------------------------------------------------------------------------- */

static int start_shared_file(AwsCredentials *c) {
        const AwsSettings *s = c->settings;
        const char *profile = s->profile ? s->profile : "default";
        AwsKeys keys = { 0 };
        char *text = NULL, *principal;
        size_t size;
        int r;

        if (!s->shared_credentials_file)
                return SOURCE_ABSENT;
        r = read_file(s->shared_credentials_file, AWS_PROFILE_FILE_MAX_BYTES, &text, &size);
        if (r == -ENOENT && !s->profile)
                return SOURCE_ABSENT;
        if (r < 0)
                return renewal_failed(c, r,
                                      strf("Cannot read the AWS credentials file '%s': %s",
                                           s->shared_credentials_file, strerror(-r)));

        r = aws_keys_parse_profile(text, profile, &keys);
        erase_and_free(text, size);
        if (r == -ENOENT && !s->profile)
                return SOURCE_ABSENT;
        if (r < 0)
                return renewal_failed(
                        c, r,
                        strf("The AWS credentials file '%s' has no usable keys for profile '%s'",
                             s->shared_credentials_file, profile));
        principal = strf("profile:%s", keys.access_key_id);
        return renewal_done(c, &keys, principal, false);
}

/* -- container endpoint --------------------------------------------------------------------- */

static void on_container(const HttpResponse *response, void *userdata) {
        AwsCredentials *c = userdata;
        _cleanup_free_ char *reason = NULL;
        AwsKeys keys = { 0 };
        char *principal;
        int r;

        if (response->error < 0) {
                renewal_failed(c, response->error,
                               strf("The container credentials endpoint failed: %s", response->error_text));
                return;
        }
        if (response->status != 200) {
                renewal_failed(
                        c, -EACCES,
                        strf("The container credentials endpoint answered with HTTP %u", response->status));
                return;
        }
        r = aws_keys_parse_json(response->body, response->body_size, &keys, &reason);
        if (r < 0) {
                renewal_failed(c, r,
                               strf("The container credentials endpoint gave no keys: %s",
                                    reason ? reason : "its answer cannot be read"));
                return;
        }
        principal = keys.account_id ? strf("account:%s", keys.account_id) : strdup("container");
        renewal_done(c, &keys, principal, false);
}

/* The Authorization header, as it is in file or variable; NULL without either. -EBADMSG: it cannot stand in
 * a header. */
static int container_token(const AwsSettings *s, char **ret) {
        _cleanup_free_ char *token = NULL;
        size_t size;
        int r;

        if (s->container_token_file) {
                r = read_file(s->container_token_file, TOKEN_FILE_MAX_BYTES, &token, &size);
                if (r < 0)
                        return r;
                if (strlen(token) != size)
                        return -EBADMSG;
        } else if (s->container_token) {
                token = strdup(s->container_token);
                if (!token)
                        return -ENOMEM;
        }
        for (const char *p = strempty(token); *p; p++)
                if (*p < 0x20 || *p == 0x7f)
                        return -EBADMSG;
        *ret = TAKE_PTR(token);
        return 0;
}

static int send_container(AwsCredentials *c, const char *url, const char *token) {
        HttpHeader headers[] = { { "Accept", "application/json" }, { "Authorization", token } };

        return http_call_start(c->env->transport,
                               &(HttpRequest){
                                       .method = HTTP_GET,
                                       .url = url,
                                       .headers = headers,
                                       .n_headers = token ? 2 : 1,
                                       .lane = HTTP_LANE_URGENT,
                                       .timeout_usec = CONTAINER_TIMEOUT_USEC,
                                       .max_response_bytes = AWS_KEYS_REPLY_MAX_BYTES,
                               },
                               on_container, c, &c->http);
}

static int start_container(AwsCredentials *c) {
        const AwsSettings *s = c->settings;
        _cleanup_free_ char *url = NULL;
        char *token = NULL;
        int r;

        if (!s->container_relative_uri && !s->container_full_uri)
                return SOURCE_ABSENT;
        if (s->container_relative_uri && s->container_relative_uri[0] != '/')
                return renewal_failed(c, -EINVAL,
                                      strdup("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI must begin with '/'"));
        url = s->container_relative_uri ? strf(CONTAINER_ORIGIN "%s", s->container_relative_uri)
                                        : strdup(s->container_full_uri);
        if (!url)
                return renewal_failed(c, -ENOMEM, strdup("Out of memory"));
        if (!aws_container_uri_is_allowed(url))
                return renewal_failed(
                        c, -EINVAL,
                        strdup("AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or http to loopback, 169.254.170.2, 169.254.170.23 or [fd00:ec2::23]"));

        r = container_token(s, &token);
        if (r < 0)
                return renewal_failed(
                        c, r, strf("The container authorization token cannot be used: %s", strerror(-r)));
        r = send_container(c, url, token);
        erase_and_free(token, strlen(strempty(token)));
        if (r < 0)
                return renewal_failed(
                        c, r, strf("Cannot ask the container credentials endpoint: %s", strerror(-r)));
        return SOURCE_STARTED;
}

/* -- instance metadata ---------------------------------------------------------------------- */

/* -ENOENT: it says that there is no such thing. What else is no answer: *ret_message says why; free it. */
static int imds_error(const ImdsAnswer *answer, char **ret_message) {
        *ret_message = NULL;
        switch (answer->outcome) {
        case IMDS_ANSWERED:
                return 0;
        case IMDS_ABSENT:
                *ret_message = strdup("instance metadata: HTTP 404");
                return -ENOENT;
        case IMDS_FAILED:
                *ret_message = strf("instance metadata: %s", answer->why);
                return answer->error;
        }
        return -EREMOTEIO;
}

static void on_role_keys(const ImdsAnswer *answer, void *userdata) {
        AwsCredentials *c = userdata;
        _cleanup_free_ char *reason = NULL;
        AwsKeys keys = { 0 };
        char *principal, *message;
        int r;

        r = imds_error(answer, &message);
        if (r < 0) {
                renewal_failed(c, r, message);
                return;
        }
        r = aws_keys_parse_json(answer->body, answer->size, &keys, &reason);
        if (r < 0) {
                renewal_failed(c, r,
                               strf("Instance metadata gave no keys for role '%s': %s", c->role,
                                    reason ? reason : "its answer cannot be read"));
                return;
        }
        principal = strf("instance-role:%s", c->role);
        renewal_done(c, &keys, principal, true);
}

static bool role_is_valid(const char *role) {
        size_t n = strlen(role);

        return n > 0 && n <= ROLE_MAX &&
               strspn(role, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+=,.@-") == n;
}

static void on_role(const ImdsAnswer *answer, void *userdata) {
        AwsCredentials *c = userdata;
        _cleanup_free_ char *path = NULL, *text = NULL, *why = NULL;
        int r;

        r = imds_error(answer, &why);
        if (r < 0 && r != -ENOENT) {
                renewal_failed(c, r,
                               strf("No AWS credentials are configured, and asking for the instance's role failed: %s",
                                    strempty(why)));
                return;
        }
        text = strdup(strempty(answer->body));
        if (!text || !*strstrip(text)) {
                renewal_failed(c, text ? -ENOENT : -ENOMEM,
                               strdup(text ? "No AWS credentials: nothing is configured, and this instance has no IAM role"
                                           : "Out of memory"));
                return;
        }
        if (!role_is_valid(strstrip(text))) {
                renewal_failed(c, -EBADMSG, strdup("Instance metadata gave a role name that is none"));
                return;
        }

        c->role = strdup(strstrip(text));
        path = c->role ? strf(ROLE_PATH "%s", c->role) : NULL;
        if (!path) {
                renewal_failed(c, -ENOMEM, strdup("Out of memory"));
                return;
        }
        r = imds_client_get(c->imds, path, on_role_keys, c);
        if (r < 0)
                renewal_failed(c, r, strf("Cannot ask instance metadata: %s", strerror(-r)));
}

static int start_imds(AwsCredentials *c) {
        int r;

        if (aws_imds_is_disabled(c->settings))
                return SOURCE_ABSENT;
        r = imds_client_get(c->imds, ROLE_PATH, on_role, c);
        if (r < 0)
                return renewal_failed(c, r, strf("Cannot ask instance metadata: %s", strerror(-r)));
        return SOURCE_STARTED;
}

/* -- the object ----------------------------------------------------------------------------- */

static void renew(AwsCredentials *c) {
        static int (*const sources[])(AwsCredentials * c) = {
                start_environment, start_web_identity, start_shared_file, start_container, start_imds,
        };

        c->renewing = true;
        for (size_t i = 0; i < ELEMENTSOF(sources); i++)
                if (sources[i](c) != SOURCE_ABSENT)
                        return;
        renewal_failed(
                c, -ENOENT,
                strdup("No AWS credentials: nothing is configured, and instance metadata is disabled"));
}

static bool have_keys(const AwsCredentials *c) {
        return c->keys.access_key_id && !c->refused;
}

static bool keys_are_current(const AwsCredentials *c) {
        return have_keys(c) && loop_now(c->env->loop) < c->expires_usec;
}

static void answer(AwsCredentials *c, bool usable) {
        AwsIdentity identity = { .keys = &c->keys, .principal = c->principal, .generation = c->generation };

        /* A callback may add calls and free any; each round takes one that is waiting now. */
        for (size_t n = c->calls.size; n > 0 && c->calls.first; n--) {
                AwsCredentialsCall *call = LIST_ENTRY(c->calls.first, AwsCredentialsCall, calls);

                list_remove(&c->calls, &call->calls);
                call->waiting = false;
                if (usable)
                        call->done(0, &identity, "", call->userdata);
                else
                        call->done(c->error, NULL, c->message ? c->message : "Out of memory",
                                   call->userdata);
        }
        if (c->calls.size > 0)
                timer_arm_in(c->timer, 0);
}

static void on_timer(Timer *t, void *userdata) {
        AwsCredentials *c = userdata;
        usec_t now = loop_now(c->env->loop);

        if (c->calls.size == 0)
                return;
        if (!c->renewing && now >= c->hold_usec && (!keys_are_current(c) || now >= c->renew_usec))
                renew(c);

        if (keys_are_current(c))
                answer(c, true);
        else if (!c->renewing)
                answer(c, have_keys(c) && c->from_imds);
}

int aws_credentials_new(Env *env, const AwsSettings *settings, AwsCredentials **ret) {
        _cleanup_(aws_credentials_freep) AwsCredentials *c = NULL;
        int r;

        assert(env && settings && ret);
        c = new0(AwsCredentials, 1);
        if (!c)
                return -ENOMEM;
        c->env = env;
        c->settings = settings;
        c->backoff =
                (Backoff){ .base_usec = USEC_PER_SEC, .cap_usec = USEC_PER_MINUTE, .jitter_permille = 200 };
        r = imds_client_new(env, settings->imds_endpoint, &c->imds);
        if (r >= 0)
                r = timer_new(env->loop, "aws-credentials", on_timer, c, &c->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

AwsCredentials *aws_credentials_free(AwsCredentials *c) {
        if (!c)
                return NULL;
        assert(c->calls.size == 0);
        imds_client_free(c->imds);
        http_call_free(c->http);
        timer_free(c->timer);
        aws_keys_done(&c->keys);
        free(c->region);
        free(c->principal);
        free(c->role);
        free(c->message);
        free(c);
        return NULL;
}

int aws_credentials_set_region(AwsCredentials *c, const char *region) {
        assert(c);
        if (!aws_region_is_valid(region))
                return -EINVAL;
        return free_and_strdup(&c->region, region);
}

int aws_credentials_get(AwsCredentials *c, aws_credentials_done_t done, void *userdata,
                        AwsCredentialsCall **ret) {
        AwsCredentialsCall *call;

        assert(c && done && ret);
        call = new0(AwsCredentialsCall, 1);
        if (!call)
                return -ENOMEM;
        *call = (AwsCredentialsCall){
                .credentials = c, .waiting = true, .done = done, .userdata = userdata
        };
        list_append(&c->calls, &call->calls);
        timer_arm_earlier(c->timer, loop_now(c->env->loop));
        *ret = call;
        return 0;
}

AwsCredentialsCall *aws_credentials_call_free(AwsCredentialsCall *call) {
        if (!call)
                return NULL;
        if (call->waiting)
                list_remove(&call->credentials->calls, &call->calls);
        free(call);
        return NULL;
}

void aws_credentials_refuse(AwsCredentials *c, unsigned generation) {
        assert(c);
        if (c->generation == generation)
                c->refused = true;
}
