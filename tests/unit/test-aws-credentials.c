/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include <unistd.h>

#include "aws-credentials.h"
#include "aws-error.h"
#include "cmocka-test.h"
#include "http-inproc.h"
#include "string-util.h"

#define START_USEC (UINT64_C(1790000000) * USEC_PER_SEC) /* 2026-09-21T14:13:20Z */

/* Everything that credentials can come from, in one handler. */
typedef struct World {
        VirtualTime *time;
        Env env;
        AwsSettings *settings;
        AwsCredentials *credentials;
        char folder[64];
        const char *variables[20]; /* name, value, ... */

        unsigned n_sts, n_container, n_imds_keys, n_imds_tokens;
        unsigned sts_status, container_status, keys_status, token_status; /* of metadata: the last two */
        const char *role;
        const char *key_id;       /* in every answer */
        usec_t expires_wall_usec; /* in every answer */
        const char *garbage;      /* NULL: none; with status 200, what comes instead of keys */
        bool silent;              /* nobody answers */
        bool forget_token;        /* the next metadata request is answered with 401 */
        char *sts_body, *container_authorization;

        int error;
        char got_key[64], principal[128], message[400];
        unsigned generation, n_answers;
} World;

static void reply(HttpExchange *x, unsigned status, const char *body) {
        x->ops->reply(x, status, NULL, 0, body, strlen(body));
}

static void sts_handle(HttpExchange *x, void *userdata) {
        World *w = userdata;
        _cleanup_free_ char *body = NULL;
        char expires[RFC3339_MAX];

        w->n_sts++;
        free(w->sts_body);
        w->sts_body = memdup_str(x->body, x->body_size);
        assert_int_equal(x->method, HTTP_POST);
        assert_string_equal(x->path, "/");
        assert_null(http_header_find(x->headers, x->n_headers, "Authorization"));
        if (w->silent)
                return;
        if (w->garbage)
                return reply(x, w->sts_status, w->garbage);
        if (w->sts_status != 200) {
                reply(x, w->sts_status,
                      "<ErrorResponse "
                      "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>"
                      "<Code>InvalidIdentityToken</Code><Message>No OpenIDConnect provider</Message></Error>"
                      "<RequestId>1</RequestId></ErrorResponse>");
                return;
        }
        rfc3339_format(w->expires_wall_usec, expires);
        body = strf(
                "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n"
                "<AssumeRoleWithWebIdentityResult><SubjectFromWebIdentityToken>system:serviceaccount:vesper:"
                "c"
                "</SubjectFromWebIdentityToken><Credentials><SessionToken>TOKEN</SessionToken>"
                "<SecretAccessKey>hunter2</SecretAccessKey><Expiration>%s</Expiration><AccessKeyId>%s</"
                "AccessKeyId>"
                "</Credentials></AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>1</RequestId>"
                "</ResponseMetadata></AssumeRoleWithWebIdentityResponse>",
                expires, w->key_id);
        reply(x, 200, body);
}

static char *json_keys(World *w, const char *more) {
        char expires[RFC3339_MAX];

        rfc3339_format(w->expires_wall_usec, expires);
        return strf("{%s\"AccessKeyId\":\"%s\",\"SecretAccessKey\":\"hunter2\",\"Token\":\"TOKEN\","
                    "\"Expiration\":\"%s\"}",
                    more, w->key_id, expires);
}

static void container_handle(HttpExchange *x, void *userdata) {
        World *w = userdata;
        _cleanup_free_ char *body = json_keys(w, "\"AccountId\":\"123456789012\",");

        w->n_container++;
        if (w->silent)
                return;
        if (w->garbage)
                return reply(x, w->container_status, w->garbage);
        assert_return_code(free_and_strdup(&w->container_authorization,
                                           http_header_find(x->headers, x->n_headers, "Authorization")),
                           0);
        reply(x, w->container_status, w->container_status == 200 ? body : "no");
}

static void imds_handle(HttpExchange *x, void *userdata) {
        World *w = userdata;
        _cleanup_free_ char *body = NULL;

        if (w->silent && w->n_imds_tokens > 0)
                return;
        if (x->method == HTTP_PUT) {
                assert_string_equal(x->path, "/latest/api/token");
                assert_non_null(
                        http_header_find(x->headers, x->n_headers, "X-aws-ec2-metadata-token-ttl-seconds"));
                body = strf("TOKEN%u", ++w->n_imds_tokens);
                w->forget_token = false;
                return reply(x, w->token_status, body);
        }
        body = strf("TOKEN%u", w->n_imds_tokens);
        if (w->forget_token ||
            !streq_ptr(http_header_find(x->headers, x->n_headers, "X-aws-ec2-metadata-token"), body))
                return reply(x, 401, "");
        if (!w->role)
                return reply(x, 404, "");
        if (streq(x->path, "/latest/meta-data/iam/security-credentials/"))
                return reply(x, 200, w->role);
        assert_string_equal(x->path, "/latest/meta-data/iam/security-credentials/node-role");
        w->n_imds_keys++;
        if (w->garbage)
                return reply(x, w->keys_status, w->garbage);
        free(body);
        body = json_keys(
                w, "\"Code\":\"Success\",\"LastUpdated\":\"2026-01-01T00:00:00Z\",\"Type\":\"AWS-HMAC\",");
        reply(x, 200, body);
}

static int world_setup(void **state) {
        World *w = new0(World, 1);

        *w = (World){ .sts_status = 200,
                      .container_status = 200,
                      .keys_status = 200,
                      .token_status = 200,
                      .key_id = "ASIA1",
                      .expires_wall_usec = START_USEC + USEC_PER_HOUR,
                      .folder = "/tmp/test-aws-credentials.XXXXXX" };
        assert_non_null(mkdtemp(w->folder));
        assert_return_code(virtual_time_new(START_USEC, &w->time), 0);
        assert_return_code(loop_new_virtual(w->time, &w->env.loop), 0);
        assert_return_code(random_new(1, &w->env.random), 0);
        assert_return_code(http_inproc_new(w->env.loop, "test", NULL, &w->env.transport), 0);
        assert_return_code(
                http_inproc_route(w->env.transport, "https://sts.eu-west-1.amazonaws.com", sts_handle, w),
                0);
        assert_return_code(http_inproc_route(w->env.transport, "http://169.254.169.254", imds_handle, w), 0);
        assert_return_code(http_inproc_route(w->env.transport, "http://169.254.170.2", container_handle, w),
                           0);
        assert_return_code(http_inproc_route(w->env.transport, "http://169.254.170.23", container_handle, w),
                           0);
        *state = w;
        return 0;
}

static void world_clear(World *w) {
        w->credentials = aws_credentials_free(w->credentials);
        w->settings = aws_settings_free(w->settings);
        memset(w->variables, 0, sizeof(w->variables));
}

static int world_teardown(void **state) {
        World *w = *state;
        _cleanup_free_ char *command = strf("rm -rf '%s'", w->folder);

        world_clear(w);
        http_transport_free(w->env.transport);
        random_free(w->env.random);
        loop_free(w->env.loop);
        virtual_time_free(w->time);
        free(w->sts_body);
        free(w->container_authorization);
        free(w);
        return system(command);
}

static void write_file(World *w, const char *name, const char *text) {
        _cleanup_free_ char *path = strf("%s/%s", w->folder, name);
        FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_int_equal(fputs(text, f) >= 0, true);
        assert_int_equal(fclose(f), 0);
}

/* '@' at its beginning stands for the folder. */
static const char *world_getenv(const char *name, void *userdata) {
        World *w = userdata;
        static char path[128]; /* the settings copy it at once */

        for (const char **p = w->variables; *p; p += 2)
                if (streq(p[0], name)) {
                        if (p[1][0] != '@')
                                return p[1];
                        (void) snprintf(path, sizeof(path), "%s%s", w->folder, p[1] + 1);
                        return path;
                }
        return NULL;
}

static void world_start(World *w, const char *const *variables) {
        world_clear(w);
        for (size_t i = 0; variables[i]; i++)
                w->variables[i] = variables[i];
        assert_return_code(aws_settings_new(world_getenv, w, &w->settings), 0);
        assert_return_code(aws_credentials_new(&w->env, w->settings, &w->credentials), 0);
        assert_return_code(aws_credentials_set_region(w->credentials, "eu-west-1"), 0);
}

static void on_credentials(int error, const AwsIdentity *identity, const char *message, void *userdata) {
        World *w = userdata;

        assert_true((error == 0) == (identity != NULL));
        w->n_answers++;
        w->error = error;
        (void) snprintf(w->message, sizeof(w->message), "%s", message);
        (void) snprintf(w->got_key, sizeof(w->got_key), "%s", identity ? identity->keys->access_key_id : "");
        (void) snprintf(w->principal, sizeof(w->principal), "%s", identity ? identity->principal : "");
        w->generation = identity ? identity->generation : 0;
        assert_null(strstr(w->message, "hunter2"));
}

static int get(World *w) {
        _cleanup_(aws_credentials_call_freep) AwsCredentialsCall *c = NULL;
        unsigned n = w->n_answers;

        assert_return_code(aws_credentials_get(w->credentials, on_credentials, w, &c), 0);
        assert_int_equal(w->n_answers, n); /* never inside the call */
        while (w->n_answers == n)
                assert_int_equal(virtual_time_step(w->time, USEC_INFINITY), 1);
        return w->error;
}

static void run_for(World *w, usec_t usec) {
        usec_t limit = usec_add(virtual_time_now(w->time), usec);

        while (virtual_time_step(w->time, limit) > 0)
                ;
}

#define V(...) ((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* -- which source --------------------------------------------------------------------------- */

TEST_CASE(test_order) {
        static const struct {
                const char *what;
                const char *variables[12];
                const char *role;
                const char *principal; /* NULL: fails */
                const char *message;
        } rows[] = {
                { "environment before all",
                  { "AWS_ACCESS_KEY_ID", "AKIAENV", "AWS_SECRET_ACCESS_KEY", "S", "AWS_ROLE_ARN", "arn:r",
                    "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token" },
                  "node-role",
                  "environment:AKIAENV",
                  "" },
                { "half an environment",
                  { "AWS_ACCESS_KEY_ID", "AKIAENV" },
                  "node-role",
                  NULL,
                  "Only one of" },
                { "a key with a blank",
                  { "AWS_ACCESS_KEY_ID", "AKIA X", "AWS_SECRET_ACCESS_KEY", "S" },
                  NULL,
                  NULL,
                  "characters that no key has" },
                { "web identity before the file",
                  { "AWS_ROLE_ARN", "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token", "HOME", "@" },
                  "node-role",
                  "role:arn:r",
                  "" },
                { "a token file that is not there",
                  { "AWS_ROLE_ARN", "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/none" },
                  "node-role",
                  NULL,
                  "Cannot read the web identity token" },
                { "a bad session name",
                  { "AWS_ROLE_ARN", "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token",
                    "AWS_ROLE_SESSION_NAME", "a b" },
                  NULL,
                  NULL,
                  "AWS_ROLE_SESSION_NAME" },
                { "the file in HOME", { "HOME", "@" }, "node-role", "profile:AKIADEFAULT", "" },
                { "the file that is named",
                  { "AWS_SHARED_CREDENTIALS_FILE", "@/.aws/credentials" },
                  NULL,
                  "profile:AKIADEFAULT",
                  "" },
                { "a profile", { "HOME", "@", "AWS_PROFILE", "other" }, NULL, "profile:AKIAOTHER", "" },
                { "a profile that is not there",
                  { "HOME", "@", "AWS_PROFILE", "nobody" },
                  "node-role",
                  NULL,
                  "no usable keys for profile 'nobody'" },
                { "a profile without a file",
                  { "AWS_SHARED_CREDENTIALS_FILE", "@/none", "AWS_PROFILE", "x" },
                  "node-role",
                  NULL,
                  "Cannot read the AWS credentials file" },
                { "no file, the container",
                  { "HOME", "@/none", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x" },
                  "node-role",
                  "account:123456789012",
                  "" },
                { "an open container endpoint",
                  { "AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/x" },
                  "node-role",
                  NULL,
                  "must be https" },
                { "a relative endpoint that is none",
                  { "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", ".evil.example/x" },
                  NULL,
                  NULL,
                  "must begin with '/'" },
                { "the instance's role", { NULL }, "node-role", "instance-role:node-role", "" },
                { "no role", { NULL }, NULL, NULL, "has no IAM role" },
                { "a role that is none", { NULL }, "../../x", NULL, "a role name that is none" },
                { "nothing",
                  { "AWS_EC2_METADATA_DISABLED", "true" },
                  "node-role",
                  NULL,
                  "instance metadata is disabled" },
        };
        World *w = *state;
        _cleanup_free_ char *folder = strf("%s/.aws", w->folder);
        _cleanup_free_ char *command = strf("mkdir '%s'", folder);

        assert_int_equal(system(command), 0);
        write_file(w, "token", "JWT\n");
        write_file(w, ".aws/credentials",
                   "# comment\n[default]\naws_access_key_id = AKIADEFAULT\naws_secret_access_key=hunter2\n\n"
                   "[ other ]\naws_access_key_id=AKIAOTHER\nAWS_SECRET_ACCESS_KEY = "
                   "SE=CRET\naws_session_token =\n");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                w->role = rows[i].role;
                world_start(w, rows[i].variables);
                assert_int_equal(get(w) == 0, rows[i].principal != NULL);
                if (rows[i].principal)
                        assert_string_equal(w->principal, rows[i].principal);
                assert_non_null(strstr(w->message, rows[i].message));
        }
}

TEST_CASE(test_web_identity) {
        World *w = *state;

        write_file(w, "token", "JWT+/=\n");
        world_start(w, V("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token"));
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA1");
        assert_string_equal(w->sts_body,
                            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%"
                            "3A1%3Arole%2Fr"
                            "&RoleSessionName=vesper-coordinator&WebIdentityToken=JWT%2B%2F%3D");

        /* The token file is read afresh each time. */
        write_file(w, "token", "NEW");
        aws_credentials_refuse(w->credentials, w->generation);
        w->key_id = "ASIA2";
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA2");
        assert_non_null(strstr(w->sts_body, "WebIdentityToken=NEW"));

        w->sts_status = 400;
        aws_credentials_refuse(w->credentials, w->generation);
        assert_int_equal(get(w), -EACCES);
        assert_non_null(strstr(w->message, "InvalidIdentityToken: No OpenIDConnect provider"));
}

TEST_CASE(test_container) {
        World *w = *state;

        write_file(w, "auth", "Token of the pod");
        world_start(w, V("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials",
                         "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "@/auth"));
        assert_int_equal(get(w), 0);
        assert_string_equal(w->container_authorization, "Token of the pod"); /* as it is */

        write_file(w, "auth", "a\r\nX-Evil: 1");
        aws_credentials_refuse(w->credentials, w->generation);
        assert_int_equal(get(w), -EBADMSG);
        assert_int_equal(w->n_container, 1);

        world_start(w, V("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x",
                         "AWS_CONTAINER_AUTHORIZATION_TOKEN", "T"));
        assert_int_equal(get(w), 0);
        assert_string_equal(w->container_authorization, "T");
        w->container_status = 500;
        aws_credentials_refuse(w->credentials, w->generation);
        assert_int_equal(get(w), -EACCES);
        assert_non_null(strstr(w->message, "HTTP 500"));
}

/* -- keeping and renewing ------------------------------------------------------------------- */

TEST_CASE(test_renewal) {
        World *w = *state;

        w->role = "node-role";
        world_start(w, V());
        assert_int_equal(get(w), 0);
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_imds_keys, 1);

        /* Eleven minutes left: kept. Nine: still handed out at once, and renewed behind it. */
        run_for(w, 49 * USEC_PER_MINUTE);
        assert_int_equal(get(w), 0);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(w->n_imds_keys, 1);
        run_for(w, 2 * USEC_PER_MINUTE);
        w->key_id = "ASIA2";
        w->expires_wall_usec += USEC_PER_HOUR;
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA1");
        run_for(w, USEC_PER_SEC);
        assert_int_equal(w->n_imds_keys, 2);
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA2");
}

/* Many ask while there are none: one is fetched. */
TEST_CASE(test_one_renewal_at_a_time) {
        World *w = *state;
        AwsCredentialsCall *calls[10];

        w->role = "node-role";
        world_start(w, V());
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                assert_return_code(aws_credentials_get(w->credentials, on_credentials, w, &calls[i]), 0);
        calls[3] = aws_credentials_call_free(calls[3]);
        run_for(w, USEC_PER_SEC);
        assert_int_equal(w->n_answers, 9);
        assert_int_equal(w->n_imds_keys, 1);
        for (size_t i = 0; i < ELEMENTSOF(calls); i++)
                aws_credentials_call_free(calls[i]);
}

TEST_CASE(test_refused_keys) {
        World *w = *state;
        unsigned old;

        w->role = "node-role";
        world_start(w, V());
        assert_int_equal(get(w), 0);
        old = w->generation;
        w->key_id = "ASIA2";
        aws_credentials_refuse(w->credentials, old);
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA2");

        /* Word of the old ones that comes late changes nothing. */
        aws_credentials_refuse(w->credentials, old);
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_imds_keys, 2);
}

/* Metadata keeps giving keys that have ended: they are used, and it is asked again after 10 to 20 minutes.
 */
TEST_CASE(test_metadata_gives_old_keys) {
        World *w = *state;

        w->role = "node-role";
        w->expires_wall_usec = START_USEC - USEC_PER_HOUR;
        world_start(w, V());
        assert_int_equal(get(w), 0);
        for (unsigned minute = 0; minute < 9; minute++) {
                run_for(w, USEC_PER_MINUTE);
                assert_int_equal(get(w), 0);
        }
        assert_int_equal(w->n_imds_keys, 1);
        run_for(w, 11 * USEC_PER_MINUTE);
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_imds_keys, 2);
}

/* Metadata falls silent when the keys end: the old ones are better than none. */
TEST_CASE(test_metadata_falls_silent) {
        World *w = *state;

        w->role = "node-role";
        world_start(w, V());
        assert_int_equal(get(w), 0);
        w->role = NULL;
        run_for(w, 2 * USEC_PER_HOUR);
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA1");
        w->role = "node-role";
        w->key_id = "ASIA2";
        w->expires_wall_usec = START_USEC + 9 * USEC_PER_HOUR;
        run_for(w, USEC_PER_MINUTE);
        assert_int_equal(get(w), 0);
        assert_string_equal(w->got_key, "ASIA2");
}

/* Others' keys that have ended are not used. */
TEST_CASE(test_expired_keys) {
        World *w = *state;

        write_file(w, "token", "JWT");
        world_start(w, V("AWS_ROLE_ARN", "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token"));
        w->expires_wall_usec = START_USEC - USEC_PER_HOUR;
        assert_int_equal(get(w), -EKEYEXPIRED);

        /* A failure is not repeated at once, but told. */
        assert_int_equal(get(w), -EKEYEXPIRED);
        assert_int_equal(w->n_sts, 1);
        w->expires_wall_usec = START_USEC + USEC_PER_HOUR;
        run_for(w, 10 * USEC_PER_SEC);
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_sts, 2);

        /* STS is away when they end. */
        w->sts_status = 503;
        run_for(w, 55 * USEC_PER_MINUTE);
        assert_int_equal(get(w), 0);
        run_for(w, 10 * USEC_PER_MINUTE);
        assert_int_equal(get(w), -EACCES);
        assert_non_null(strstr(w->message, "AssumeRoleWithWebIdentity"));
}

TEST_CASE(test_metadata_token) {
        World *w = *state;

        w->role = "node-role";
        world_start(w, V());
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_imds_tokens, 1);
        w->forget_token = true; /* 401: one new token, then the answer */
        aws_credentials_refuse(w->credentials, w->generation);
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_imds_tokens, 2);
        run_for(w, 4 * USEC_PER_HOUR); /* half its life is over */
        w->expires_wall_usec += 9 * USEC_PER_HOUR;
        aws_credentials_refuse(w->credentials, w->generation);
        assert_int_equal(get(w), 0);
        assert_int_equal(w->n_imds_tokens, 3);
}

static void lose_put(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        ret_fault->lose_reply = request->method == HTTP_PUT;
}

/* One hop short: the token's reply never comes, and that gets a diagnosis of its own. */
TEST_CASE(test_hop_limit) {
        World *w = *state;
        HttpTransport *lossy, *usual = w->env.transport;

        assert_return_code(
                http_inproc_new(w->env.loop, "test", &(HttpInprocHooks){ lose_put, NULL }, &lossy), 0);
        assert_return_code(http_inproc_route(lossy, "http://169.254.169.254", imds_handle, w), 0);
        w->env.transport = lossy;
        w->role = "node-role";
        world_start(w, V());
        assert_int_equal(get(w), -ETIMEDOUT);
        assert_non_null(strstr(w->message, "hop limit"));
        world_clear(w);
        run_for(w, USEC_PER_SEC);
        http_transport_free(lossy);
        w->env.transport = usual;
}

/* -- texts ---------------------------------------------------------------------------------- */

TEST_CASE(test_container_uris) {
        static const struct {
                const char *url;
                bool allowed;
        } rows[] = {
                { "http://169.254.170.2/v2/credentials/x", true },
                { "http://169.254.170.23/v1/credentials", true },
                { "http://169.254.170.23:80/v1/credentials", true },
                { "http://[fd00:ec2::23]/v1/credentials", true },
                { "http://[fd00:ec2::23]:80/v1/credentials", true },
                { "http://localhost:8080/x", true },
                { "http://127.0.0.1/x", true },
                { "http://127.9.9.9:1/x", true },
                { "http://[::1]:1/x", true },
                { "https://anywhere.example/x", true },
                { "http://anywhere.example/x", false },
                { "http://127.0.0.1.evil.example/x", false },
                { "http://localhost.evil.example/x", false },
                { "http://localhost@evil.example/x", false },
                { "http://127.0.0.1:80@evil.example/x", false },
                { "http://169.254.170.233/x", false },
                { "http://169.254.169.254/x", false },
                { "http://[::1].evil.example/x", false },
                { "http://[::1/x", false },
                { "http:///x", false },
                { "http://127.0.0.1/\r\nX: y", false },
                { "ftp://127.0.0.1/x", false },
                { "", false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].url);
                assert_int_equal(aws_container_uri_is_allowed(rows[i].url), rows[i].allowed);
        }
}

TEST_CASE(test_key_texts) {
        static const struct {
                const char *what, *json;
                int r;
                const char *reason;
        } rows[] = {
                { "keys", "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\"}", 0, NULL },
                { "a failure with 200",
                  "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"EC2 cannot assume\"}", -ENOKEY,
                  "EC2 cannot assume" },
                { "a failure without a reason", "{\"Code\":\"Failed\"}", -ENOKEY, "Failed" },
                { "nothing", "{}", -ENOKEY, NULL },
                { "half of them", "{\"AccessKeyId\":\"A\"}", -ENOKEY, NULL },
                { "a number", "{\"AccessKeyId\":1,\"SecretAccessKey\":\"S\"}", -EBADMSG, NULL },
                { "a header's end in the token",
                  "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"Token\":\"a\\r\\nb\"}", -EBADMSG,
                  NULL },
                { "a time that is none",
                  "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"S\",\"Expiration\":\"soon\"}", -EBADMSG,
                  NULL },
                { "no object", "[]", -EBADMSG, NULL },
                { "no JSON", "<html>", -EBADMSG, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(aws_keys_done) AwsKeys k = { 0 };
                _cleanup_free_ char *reason = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(aws_keys_parse_json(rows[i].json, strlen(rows[i].json), &k, &reason),
                                 rows[i].r);
                assert_true(streq_ptr(reason, rows[i].reason));
                assert_int_equal(k.access_key_id != NULL, rows[i].r == 0);
        }
}

/* What is no keys, from each source: an error that says whose answer it was, and keys when they come. */
TEST_CASE(test_no_keys) {
        static const struct {
                const char *what;
                enum { STS, CONTAINER, METADATA, METADATA_TOKEN } from;
                bool silent;
                unsigned status;
                const char *garbage;
                int error;
                const char *says;
        } rows[] = {
                { "STS is silent", STS, true, 200, NULL, -ETIMEDOUT,
                  "STS AssumeRoleWithWebIdentity failed: " },
                { "STS: an error that is no XML", STS, false, 502, "bad gateway", -EACCES,
                  "was answered with HTTP 502" },
                { "STS: an answer that is no XML", STS, false, 200, "<html>", -EBADMSG, "cannot be read" },
                { "the container's endpoint is silent", CONTAINER, true, 200, NULL, -ETIMEDOUT,
                  "The container credentials endpoint failed: " },
                { "... gives a page", CONTAINER, false, 200, "<html>", -EBADMSG, "gave no keys: " },
                { "... gives a reason", CONTAINER, false, 200,
                  "{\"Code\":\"Failed\",\"Message\":\"no such role\"}", -ENOKEY, "gave no keys: " },
                { "metadata falls silent after its token", METADATA, true, 200, NULL, -ETIMEDOUT, "" },
                { "metadata fails at the keys", METADATA, false, 500, "oops", -EREMOTEIO,
                  "instance metadata: HTTP 500" },
                { "metadata fails at its token", METADATA_TOKEN, false, 503, NULL, -EREMOTEIO,
                  "no session token: HTTP 503" },
                { "metadata gives a page", METADATA, false, 200, "<html>", -EBADMSG,
                  "Instance metadata gave no keys for role 'node-role': " },
        };
        World *w = *state;

        write_file(w, "token", "JWT");
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                print_message("%s\n", rows[i].what);
                w->role = rows[i].from >= METADATA ? "node-role" : NULL;
                w->expires_wall_usec = usec_add(loop_wall(w->env.loop), USEC_PER_HOUR);
                w->n_imds_tokens = 0;
                world_start(w, rows[i].from == STS
                                       ? V("AWS_ROLE_ARN", "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token")
                               : rows[i].from == CONTAINER
                                       ? V("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")
                                       : V());
                w->silent = rows[i].silent;
                w->garbage = rows[i].garbage;
                w->sts_status = w->container_status = w->keys_status = rows[i].status;
                w->token_status = rows[i].from == METADATA_TOKEN ? rows[i].status : 200;
                (void) get(w);
                if (w->error != rows[i].error || !strstr(w->message, rows[i].says))
                        fail_msg("expected %d and '%s', got %d: %s", rows[i].error, rows[i].says, w->error,
                                 w->message);
                w->silent = false;
                w->garbage = NULL;
                w->sts_status = w->container_status = w->keys_status = w->token_status = 200;
                run_for(w, 2 * USEC_PER_MINUTE);
                assert_int_equal(get(w), 0);
                assert_string_equal(w->got_key, "ASIA1");
        }
}

/* STS has an address per region. */
TEST_CASE(test_no_region) {
        World *w = *state;

        write_file(w, "token", "JWT");
        world_clear(w);
        w->variables[0] = "AWS_ROLE_ARN";
        w->variables[1] = "arn:r";
        w->variables[2] = "AWS_WEB_IDENTITY_TOKEN_FILE";
        w->variables[3] = "@/token";
        assert_return_code(aws_settings_new(world_getenv, w, &w->settings), 0);
        assert_return_code(aws_credentials_new(&w->env, w->settings, &w->credentials), 0);
        assert_int_equal(get(w), -EINVAL);
        assert_non_null(strstr(w->message, "set AWS_REGION"));
}

/* An address that is none; a profile that is asked for and absent. */
TEST_CASE(test_wrong_places) {
        World *w = *state;

        write_file(w, "token", "JWT");
        world_start(w, V("AWS_ROLE_ARN", "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE", "@/token",
                         "AWS_ENDPOINT_URL_STS", "no url"));
        assert_int_equal(get(w), -EINVAL);
        assert_non_null(strstr(w->message, "Cannot ask STS"));
        world_start(w, V("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://10.0.0.1/keys"));
        assert_int_equal(get(w), -EINVAL);
        assert_non_null(strstr(w->message, "must be https, or http to loopback"));
}

TEST_CASE(test_error_texts) {
        static const struct {
                const char *what, *xml, *code, *message; /* NULL: refused */
        } rows[] = {
                { "EC2's",
                  "<Response><Errors><Error><Code>A.B</Code><Message>x &amp; y</Message></Error></Errors>"
                  "<RequestID>1</RequestID></Response>",
                  "A.B", "x & y" },
                { "STS's",
                  "<ErrorResponse "
                  "xmlns='x'><Error><Type>Sender</Type><Code>A</Code><Message>m</Message></Error>"
                  "<RequestId>1</RequestId></ErrorResponse>",
                  "A", "m" },
                { "the first of two",
                  "<Response><Errors><Error><Code>A</Code><Message>1</Message></Error><Error>"
                  "<Code>B</Code></Error></Errors></Response>",
                  "A", "1" },
                { "no message", "<Response><Errors><Error><Code>A</Code></Error></Errors></Response>", "A",
                  "" },
                { "an encoded blob",
                  "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not "
                  "authorized. Encoded authorization failure message: "
                  "AAAA</Message></Error></Errors></Response>",
                  "UnauthorizedOperation", "You are not authorized." },
                { "line feeds",
                  "<Response><Errors><Error><Code>A</Code><Message>a&#10;b</Message></Error></Errors></"
                  "Response>",
                  "A", "a?b" },
                { "no code", "<Response><Errors><Error><Message>m</Message></Error></Errors></Response>",
                  NULL, NULL },
                { "a code that is none",
                  "<Response><Errors><Error><Code>a b</Code></Error></Errors></Response>", NULL, NULL },
                { "a mixture",
                  "<ErrorResponse><Errors><Error><Code>A</Code></Error></Errors></ErrorResponse>", "A", "" },
                { "Errors in Errors",
                  "<Response><Errors><Errors><Error><Code>A</Code></Error></Errors></Errors></Response>",
                  NULL, NULL },
                { "another document", "<html><Error><Code>A</Code></Error></html>", NULL, NULL },
                { "a cut one", "<Response><Errors><Error><Code>A</Code></Error></Errors>", NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(aws_error_done) AwsError e = { 0 };
                int r = aws_error_parse(rows[i].xml, strlen(rows[i].xml), &e);

                print_message("%s\n", rows[i].what);
                assert_int_equal(r, rows[i].code ? 0 : -EBADMSG);
                if (r < 0)
                        continue;
                assert_string_equal(e.code, rows[i].code);
                assert_string_equal(e.message, rows[i].message);
        }
}

TEST_CASE(test_places) {
        static const struct {
                const char *region, *url;
        } endpoints[] = {
                { "eu-west-1", "https://ec2.eu-west-1.amazonaws.com/" },
                { "us-gov-west-1", "https://ec2.us-gov-west-1.amazonaws.com/" },
                { "cn-north-1", "https://ec2.cn-north-1.amazonaws.com.cn/" },
                { "eusc-de-east-1", "https://ec2.eusc-de-east-1.amazonaws.eu/" },
                { "us-iso-east-1", "https://ec2.us-iso-east-1.c2s.ic.gov/" },
                { "us-isob-east-1", "https://ec2.us-isob-east-1.sc2s.sgov.gov/" },
        };
        static const struct {
                const char *zone, *region;
                bool inside;
        } zones[] = {
                { "us-east-1a", "us-east-1", true },   { "us-east-1-bos-1a", "us-east-1", true },
                { "us-east-1", "us-east-1", false },   { "us-east-1ab", "us-east-1", false },
                { "us-east-10a", "us-east-1", false }, { "us-east-1-", "us-east-1", false },
                { "us-east-2a", "us-east-1", false },  { "us-east-1A", "us-east-1", false },
        };
        static const struct {
                const char *url, *host; /* NULL: refused */
        } hosts[] = {
                { "https://h.example", "h.example" },
                { "https://h.example/", "h.example" },
                { "https://h:443/", "h" },
                { "https://h:80/", "h:80" },
                { "http://h:80", "h" },
                { "http://127.0.0.1:5000", "127.0.0.1:5000" },
                { "http://[::1]:5000/", "[::1]:5000" },
                { "http://[::1]", "[::1]" },
                { "http://", NULL },
                { "http://:80", NULL },
                { "http://h:", NULL },
                { "http://h:65536", NULL },
                { "http://h/x", NULL },
                { "http://h?x", NULL },
                { "http://u@h", NULL },
                { "http://[::1", NULL },
                { "http://h:com:443", NULL },
                { "http://[::1]:x:80", NULL },
                { "http://[::1]x", NULL },
                { "http://[[::1]]:80", NULL },
                { "h", NULL },
                { "http://h:80/ ", NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(endpoints); i++) {
                _cleanup_(aws_endpoint_done) AwsEndpoint e = { 0 };

                assert_return_code(aws_endpoint_for("ec2", endpoints[i].region, &e), 0);
                assert_string_equal(e.url, endpoints[i].url);
        }
        for (size_t i = 0; i < ELEMENTSOF(zones); i++)
                assert_int_equal(aws_zone_is_in_region(zones[i].zone, zones[i].region), zones[i].inside);
        for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
                _cleanup_(aws_endpoint_done) AwsEndpoint e = { 0 };

                print_message("%s\n", hosts[i].url);
                assert_int_equal(aws_endpoint_parse(hosts[i].url, &e), hosts[i].host ? 0 : -EINVAL);
                assert_true(streq_ptr(e.host, hosts[i].host));
        }
}

#define WORLD_TEST(t) cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void) {
        static const struct CMUnitTest tests[] = {
                WORLD_TEST(test_order),
                WORLD_TEST(test_web_identity),
                WORLD_TEST(test_container),
                WORLD_TEST(test_renewal),
                WORLD_TEST(test_one_renewal_at_a_time),
                WORLD_TEST(test_refused_keys),
                WORLD_TEST(test_metadata_gives_old_keys),
                WORLD_TEST(test_metadata_falls_silent),
                WORLD_TEST(test_expired_keys),
                WORLD_TEST(test_metadata_token),
                WORLD_TEST(test_hop_limit),
                WORLD_TEST(test_no_keys),
                WORLD_TEST(test_no_region),
                WORLD_TEST(test_wrong_places),
                cmocka_unit_test(test_container_uris),
                cmocka_unit_test(test_key_texts),
                cmocka_unit_test(test_error_texts),
                cmocka_unit_test(test_places),
        };
        return cmocka_run_group_tests_name("aws-credentials", tests, NULL, NULL);
}
