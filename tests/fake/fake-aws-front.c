/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-aws-front.h"

#include <stdio.h>

#include "fake-date.h"
#include "fake-json.h"

#define ACCOUNT "123456789012"

static char *copy(const char *s) {
        return s ? MUST(strdup(s)) : NULL;
}

void fake_aws_front_init(FakeAwsFront *f, const FakeAwsFrontOptions *o) {
        assert(o->loop && (o->access_key_id || o->region));
        *f = (FakeAwsFront) {
                .loop = o->loop,
                .region = copy(o->region),
                .account = copy(o->account ? o->account : ACCOUNT),
                .access_key_id = copy(o->access_key_id),
                .secret = copy(o->secret_access_key),
                .session_token = copy(o->session_token),
                .max_skew_usec = o->max_skew_usec,
                .troubles = fake_troubles_new(),
        };
}

void fake_aws_front_done(FakeAwsFront *f) {
        fake_troubles_free(f->troubles);
        free(f->region);
        free(f->account);
        free(f->access_key_id);
        free(f->secret);
        free(f->session_token);
        free(f->expired_code);
        *f = (FakeAwsFront) { 0 };
}

static void replace(char **dst, const char *src) {
        int r = free_and_strdup(dst, src);

        assert(r >= 0);
}

void fake_aws_front_set_keys(FakeAwsFront *f, const char *access_key_id, const char *secret,
                             const char *session_token) {
        replace(&f->access_key_id, access_key_id);
        replace(&f->secret, secret);
        replace(&f->session_token, session_token);
        f->expired_code = mfree(f->expired_code);
}

void fake_aws_front_expire_keys(FakeAwsFront *f, const char *code) {
        replace(&f->expired_code, code);
}

usec_t fake_aws_front_wall(const FakeAwsFront *f) {
        return (usec_t) ((int64_t) loop_wall(f->loop) + f->skew_usec);
}

static bool is_service(const char *const *services, const char *name) {
        for (; *services; services++)
                if (streq(*services, name))
                        return true;
        return false;
}

static bool check(FakeAwsFront *f, const HttpExchange *x, bool scoped, const char *const *services,
                  const FakeAwsScope *scope, FakeAwsRefusal *ret) {
        FakeAwsKeys keys = { f->access_key_id, f->secret, f->session_token };

        *ret = (FakeAwsRefusal) { 0 };
        if (scoped && f->region && !streq(scope->region, f->region)) {
                *ret = (FakeAwsRefusal) { .reason = FAKE_AWS_WRONG_SCOPE,
                                          .status = 403,
                                          .code = "SignatureDoesNotMatch" };
                (void) snprintf(ret->message, sizeof(ret->message),
                                "Credential should be scoped to a valid region, not '%s'. ", scope->region);
                return false;
        }
        if (scoped && !is_service(services, scope->service)) {
                *ret = (FakeAwsRefusal) { .reason = FAKE_AWS_WRONG_SCOPE,
                                          .status = 403,
                                          .code = "SignatureDoesNotMatch" };
                (void) snprintf(ret->message, sizeof(ret->message),
                                "Credential should be scoped to correct service: '%s'. ", services[0]);
                return false;
        }
        if (!fake_aws_verify(x, &keys, fake_aws_front_wall(f), f->max_skew_usec, ret))
                return false;
        if (f->expired_code) {
                *ret = (FakeAwsRefusal) { .reason = FAKE_AWS_KEYS_EXPIRED,
                                          .status = 400,
                                          .code = f->expired_code };
                (void) snprintf(ret->message, sizeof(ret->message),
                                "The security token included in the request is expired");
                return false;
        }
        return true;
}

bool fake_aws_front_admit(FakeAwsFront *f, const HttpExchange *x, const char *const *services,
                          FakeAwsScope *ret_scope, FakeAwsRefusal *ret) {
        FakeAwsScope scope = { 0 };
        bool scoped = fake_aws_scope(x, &scope), admitted;

        admitted = !f->access_key_id || check(f, x, scoped, services, &scope, ret);
        if (f->region)
                (void) snprintf(scope.region, sizeof(scope.region), "%s", f->region);
        *ret_scope = scope;
        f->n_refused += !admitted;
        return admitted;
}

void fake_aws_front_reply(const FakeAwsFront *f, HttpExchange *x, unsigned status, const char *content_type,
                          const HttpHeader *extra, const char *body) {
        char date[FAKE_DATE_MAX];
        HttpHeader headers[4] = {
                { "Content-Type", content_type },
                { "x-amzn-RequestId", FAKE_AWS_REQUEST_ID },
                { "Date", date },
        };
        size_t n = 3;

        fake_date_format(fake_aws_front_wall(f), date);
        if (extra && extra->value)
                headers[n++] = *extra;
        x->ops->reply(x, status, headers, n, body, strlen(body));
}

void fake_xml_add_escaped(StrBuf *b, const char *s) {
        for (; *s; s++)
                if (*s == '<')
                        strbuf_add(b, "&lt;");
                else if (*s == '>')
                        strbuf_add(b, "&gt;");
                else if (*s == '&')
                        strbuf_add(b, "&amp;");
                else
                        strbuf_add_char(b, *s);
}

void fake_xml_add_element(StrBuf *b, const char *name, const char *text) {
        strbuf_addf(b, "<%s>", name);
        fake_xml_add_escaped(b, text);
        strbuf_addf(b, "</%s>", name);
}
