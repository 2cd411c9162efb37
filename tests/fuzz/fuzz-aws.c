/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aws-keys.h"
#include "aws-settings.h"
#include "aws-sigv4.h"
#include "fuzz-draw.h"
#include "string-util.h"

/*
 * What surrounds a call to AWS: keys in a shared file or the JSON of a role, the environment, addresses, the
 * signature. Keys that come out can stand in a header; addresses read back as themselves; a signature
 * depends on what is signed and not on how it is spelled or ordered.
 */

#define SIGN_USEC (UINT64_C(1800000000) * USEC_PER_SEC)

static const char credentials_file[] =
        "# shared\n[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key=secret/+=\n\n[profile "
        "other]\nrole_arn = x\n"
        "[web]\n aws_access_key_id=AKIA2\naws_secret_access_key = s2\naws_session_token = t2\n; end\n";
static const char role_json[] =
        "{\"Code\":\"Success\",\"LastUpdated\":\"2027-01-15T07:00:00Z\",\"Type\":\"AWS-HMAC\","
        "\"AccessKeyId\":\"ASIAEXAMPLE\",\"SecretAccessKey\":\"secret\","
        "\"Token\":\"token\",\"Expiration\":\"2027-01-15T14:00:00Z\",\"AccountId\":\"123456789012\","
        "\"Message\":\"none\",\"Version\":1}";
static const char sts_xml[] =
        "<AssumeRoleWithWebIdentityResponse "
        "xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/"
        "\">\n<AssumeRoleWithWebIdentityResult>\n<Credentials>\n"
        "<AccessKeyId>ASIA3</AccessKeyId>\n<SecretAccessKey>s3</SecretAccessKey>\n<SessionToken>t3</"
        "SessionToken>\n<Expiration>2027-01-15T14:00:00Z</Expiration>\n"
        "</Credentials>\n<Audience>a</Audience>\n</AssumeRoleWithWebIdentityResult>\n</"
        "AssumeRoleWithWebIdentityResponse>\n";

/* -- keys --------------------------------------------------------------------------------------- */

static void check_keys(int r, AwsKeys *k) {
        if (r < 0) {
                assert(!k->access_key_id && !k->secret_access_key && !k->session_token);
                return;
        }
        assert(r == 0 && aws_keys_are_valid(k));
        assert(!strpbrk(k->access_key_id, " \r\n/,") && !strpbrk(k->secret_access_key, " \r\n"));
        aws_keys_done(k);
}

static void check_profile(const char *text, const char *profile) {
        AwsKeys k = { 0 };
        int r = aws_keys_parse_profile(text, profile, &k);

        assert(r == 0 || r == -ENOENT || r == -EBADMSG);
        check_keys(r, &k);
}

static void check_json(const char *text) {
        _cleanup_free_ char *message = NULL;
        AwsKeys k = { 0 };
        int r = aws_keys_parse_json(text, strlen(text), &k, &message);

        assert(r == 0 || r == -ENOKEY || r == -EBADMSG);
        assert(r == -ENOKEY || !message);
        check_keys(r, &k);
}

static void check_sts(const char *text) {
        AwsKeys k = { 0 };
        int r = aws_keys_parse_sts(text, strlen(text), &k);

        assert(r == 0 || r == -EBADMSG);
        check_keys(r, &k);
}

/* -- addresses ---------------------------------------------------------------------------------- */

static void check_endpoint(const char *url) {
        _cleanup_(aws_endpoint_done) AwsEndpoint e = { 0 }, again = { 0 };
        int r = aws_endpoint_parse(url, &e);

        assert(r == 0 || r == -EINVAL);
        if (r < 0)
                return;
        assert(endswith(e.url, "/") && !strpbrk(e.url, " \r\n\t@?#"));
        assert(*e.host && strstr(e.url, e.host) && !strchr(e.host, '/'));
        assert(aws_endpoint_parse(e.url, &again) == 0);
        assert(streq(e.url, again.url) && streq(e.host, again.host));
}

static void check_region(const char *region) {
        _cleanup_(aws_endpoint_done) AwsEndpoint e = { 0 }, again = { 0 };
        _cleanup_free_ char *zone = NULL;

        if (!aws_region_is_valid(region))
                return;
        assert(aws_endpoint_for("ec2", region, &e) == 0);
        assert(aws_endpoint_parse(e.url, &again) == 0);
        assert(streq(e.url, again.url) && streq(e.host, again.host));
        zone = strf("%sa", region);
        assert(zone && aws_zone_is_in_region(zone, region) && !aws_zone_is_in_region(region, region));
}

static void check_addresses(const char *text) {
        check_endpoint(text);
        check_region(text);
        if (aws_container_uri_is_allowed(text))
                assert(startswith(text, "https://") || startswith(text, "http://"));
        (void) aws_role_session_name_is_valid(text);
}

/* -- settings ----------------------------------------------------------------------------------- */

static const char *drawn_getenv(const char *name, void *userdata) {
        char **values = userdata;

        return values[strlen(name) % 4];
}

static void check_settings(Draw *d) {
        char *values[4] = { draw_text(d), draw_text(d), draw_bool(d) ? NULL : draw_text(d), NULL };
        _cleanup_(aws_settings_freep) AwsSettings *s = NULL;

        assert(aws_settings_new(drawn_getenv, values, &s) == 0);
        assert(s->imds_endpoint && !endswith(s->imds_endpoint, "/"));
        assert(!s->region || *s->region);
        (void) aws_imds_is_disabled(s);
        for (size_t i = 0; i < ELEMENTSOF(values); i++)
                free(values[i]);
}

/* -- the signature ------------------------------------------------------------------------------ */

static char *sign(const SigV4Request *q) {
        _cleanup_(sigv4_headers_done) SigV4Headers h = { 0 };
        int r = sigv4_sign(q, &h);

        assert(r == 0 || r == -EINVAL);
        if (r < 0) {
                assert(h.n_headers == 0);
                return NULL;
        }
        assert(h.n_headers == (isempty(q->session_token) ? 2 : 3));
        assert(startswith(h.authorization, "AWS4-HMAC-SHA256 Credential=") &&
               strstr(h.authorization, "host"));
        return strdup(h.authorization);
}

static void check_signature(Draw *d) {
        _cleanup_free_ char *name = draw_text(d), *a = draw_text(d), *b = draw_text(d), *body = draw_text(d);
        _cleanup_free_ char *x = url_encode(a, false), *y = url_encode(b, false), *forward = NULL,
                            *backward = NULL, *spaced = NULL;
        _cleanup_free_ char *one = NULL, *two = NULL, *three = NULL, *four = NULL, *other = NULL;
        const char *header = isempty(name) || strcasecmp(name, "host") == 0 ? "x-a" : name;
        HttpHeader headers[2] = { { "Host", "ec2.eu-west-1.amazonaws.com" }, { header, a } };
        HttpHeader turned[2] = { headers[1], headers[0] }, padded[2] = { headers[0], { header, NULL } };
        SigV4Request q = { .method = HTTP_POST,
                           .path = "/",
                           .headers = headers,
                           .n_headers = 2,
                           .body = body,
                           .body_size = strlen(body),
                           .region = "eu-west-1",
                           .service = "ec2",
                           .access_key_id = "AKIA",
                           .secret_access_key = "secret",
                           .session_token = draw_bool(d) ? "t" : NULL,
                           .wall_usec = draw_usec(d, SIGN_USEC) };

        assert(x && y);
        if (q.wall_usec >= UINT64_C(253402300800) * USEC_PER_SEC)
                q.wall_usec = SIGN_USEC;
        forward = strf("a=%s&b=%s", x, y);
        backward = strf("b=%s&a=%s", y, x);
        spaced = strf(" %s\t ", a);
        q.query = forward;
        one = sign(&q);
        q.query = backward;
        two = sign(&q);
        q.query = forward;
        q.headers = turned;
        three = sign(&q);
        padded[1].value = spaced;
        q.headers = padded;
        four = sign(&q);
        assert(streq_ptr(one, two) && streq_ptr(one, three) && streq_ptr(one, four));

        q.headers = headers;
        q.secret_access_key = "Secret";
        other = sign(&q);
        assert(!one || !streq_ptr(one, other));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        _cleanup_free_ char *text = NULL;

        if (draw_is_text(data, size)) {
                text = memdup_str(data, size);
                assert(text);
                check_profile(text, "default");
                check_json(text);
                check_sts(text);
                text[strcspn(text, "\n")] = 0;
                check_addresses(text);
                return 0;
        }
        switch (draw_below(&d, 6)) {
        case 0:
                text = draw_bent_lines(&d, credentials_file);
                check_profile(text, draw_bool(&d) ? "web" : "default");
                break;
        case 1:
                text = draw_bent_json(&d, role_json);
                check_json(text);
                break;
        case 2:
                text = draw_bent_lines(&d, sts_xml);
                check_sts(text);
                break;
        case 3:
                check_settings(&d);
                break;
        case 4: {
                static const char *const forms[] = {
                        "https://",   "http://", "http://127.0.0.1",     "http://[::1]:",
                        "https://h:", "eu-",     "http://169.254.170.2/"
                };
                const char *form = draw_of(&d, forms);
                _cleanup_free_ char *rest = draw_text(&d);

                text = strf("%s%s", form, rest);
                assert(text);
                check_addresses(text);
                break;
        }
        default:
                check_signature(&d);
        }
        return 0;
}
