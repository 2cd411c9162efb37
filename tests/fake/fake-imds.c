/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-imds.h"

#include <inttypes.h>

#include "fake-date.h"
#include "fake-fault.h"
#include "fake-json.h"
#include "hashmap.h"
#include "parse-util.h"

#define TTL_HEADER "X-aws-ec2-metadata-token-ttl-seconds"
#define TOKEN_HEADER "X-aws-ec2-metadata-token"
#define TTL_MAX 21600u
#define ZONE "us-east-1a"
#define REGION "us-east-1"

struct FakeImds {
        Loop *loop;
        char *instance_id, *told_id;
        char *action;    /* the body; NULL: none */
        Hashmap *tokens; /* text -> usec_t when it ends */
        uint64_t next_token;
        unsigned max_ttl_sec;
        bool keeps_connections, no_date;
        FakeFault fault;
        size_t n_tokens, n_gets;
        struct {
                const char *path; /* static */
                char *body;       /* NULL: nothing of its own */
        } texts[4];
};

FakeImds *fake_imds_new(Loop *loop, const char *instance_id) {
        FakeImds *f = MUST(new0(FakeImds, 1));
        int r = hashmap_new(0, &f->tokens);

        assert(r >= 0);
        f->loop = loop;
        f->instance_id = MUST(strdup(instance_id));
        f->told_id = MUST(strdup(instance_id));
        return f;
}

FakeImds *fake_imds_free(FakeImds *f) {
        if (!f)
                return NULL;
        fake_fault_done(&f->fault);
        hashmap_free_with(f->tokens, mfree);
        free(f->instance_id);
        free(f->told_id);
        for (size_t i = 0; i < ELEMENTSOF(f->texts); i++)
                free(f->texts[i].body);
        free(f->action);
        return mfree(f);
}

/* -- knobs -------------------------------------------------------------------------------------- */

void fake_imds_set_action_text(FakeImds *f, const char *text) {
        free(f->action);
        f->action = MUST(strdup(text));
}

void fake_imds_set_action(FakeImds *f, const char *action, usec_t at_wall_usec) {
        char time[RFC3339_MAX];
        _cleanup_free_ char *text = NULL;

        rfc3339_format(at_wall_usec, time);
        text = MUST(strf("{\"action\": \"%s\", \"time\": \"%s\"}", action, time));
        fake_imds_set_action_text(f, text);
}

void fake_imds_clear_action(FakeImds *f) {
        f->action = mfree(f->action);
}

void fake_imds_set_text(FakeImds *f, const char *path, const char *body) {
        size_t i = 0;

        while (i < ELEMENTSOF(f->texts) && f->texts[i].path && !streq(f->texts[i].path, path))
                i++;
        assert(i < ELEMENTSOF(f->texts));
        f->texts[i].path = path;
        free(f->texts[i].body);
        f->texts[i].body = body ? MUST(strdup(body)) : NULL;
}

void fake_imds_set_instance_id(FakeImds *f, const char *id) {
        free(f->told_id);
        f->told_id = id ? MUST(strdup(id)) : NULL;
}

void fake_imds_hang(FakeImds *f, unsigned parts, unsigned n) {
        fake_fault_set(&f->fault, parts, n, 0, NULL);
}

void fake_imds_fail(FakeImds *f, unsigned parts, unsigned n, unsigned status) {
        fake_fault_set(&f->fault, parts, n, status, NULL);
}

void fake_imds_garble(FakeImds *f, unsigned parts, unsigned n, const char *body) {
        fake_fault_set(&f->fault, parts, n, 200, body);
}

void fake_imds_revoke(FakeImds *f) {
        int r;

        hashmap_free_with(f->tokens, mfree);
        r = hashmap_new(0, &f->tokens);
        assert(r >= 0);
}

void fake_imds_set_max_ttl(FakeImds *f, unsigned sec) {
        f->max_ttl_sec = sec;
}

void fake_imds_keep_connections(FakeImds *f) {
        f->keeps_connections = true;
}

void fake_imds_tell_date(FakeImds *f, bool tell) {
        f->no_date = !tell;
}

size_t fake_imds_n_tokens(const FakeImds *f) {
        return f->n_tokens;
}

size_t fake_imds_n_gets(const FakeImds *f) {
        return f->n_gets;
}

/* -- answers ------------------------------------------------------------------------------------ */

static void reply(FakeImds *f, HttpExchange *x, unsigned status, const char *type, const char *body,
                  const HttpHeader *extra) {
        HttpHeader headers[5] = { { "Content-Type", type }, { "Server", "EC2ws" } };
        char date[FAKE_DATE_MAX];
        size_t n = 2;

        fake_date_format(loop_wall(f->loop), date);
        if (!f->no_date)
                headers[n++] = (HttpHeader){ "Date", date };
        if (!f->keeps_connections)
                headers[n++] = (HttpHeader){ "Connection", "close" };
        if (extra)
                headers[n++] = *extra;
        x->ops->reply(x, status, headers, n, body, strlen(body));
}

static void reply_error(FakeImds *f, HttpExchange *x, unsigned status) {
        static const struct {
                unsigned status;
                const char *text;
        } texts[] = {
                { 400, "Bad Request" },         { 401, "Unauthorized" },       { 403, "Forbidden" },
                { 404, "Not Found" },           { 405, "Method Not Allowed" }, { 429, "Too Many Requests" },
                { 503, "Service Unavailable" },
        };
        const char *text = "Error";
        _cleanup_free_ char *body = NULL;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (texts[i].status == status)
                        text = texts[i].text;
        body = MUST(strf("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n"
                         "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Transitional//EN\"\n"
                         "\t\"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd\">\n"
                         "<html xmlns=\"http://www.w3.org/1999/xhtml\" xml:lang=\"en\" lang=\"en\">\n"
                         " <head>\n  <title>%u - %s</title>\n </head>\n <body>\n  <h1>%u - %s</h1>\n "
                         "</body>\n</html>\n",
                         status, text, status, text));
        reply(f, x, status, "text/html", body, NULL);
}

/* True: the request has met its fate. */
static bool apply_fault(FakeImds *f, HttpExchange *x, unsigned part) {
        const char *body;
        unsigned status;

        switch (fake_fault_meet(&f->fault, x, part, &status, &body)) {
        case FAKE_FATE_SERVED:
                return false;
        case FAKE_FATE_HANGS:
                break;
        case FAKE_FATE_FAILS:
                reply_error(f, x, status);
                break;
        case FAKE_FATE_GARBLED:
                reply(f, x, status, "text/plain", body, NULL);
                break;
        }
        return true;
}

static const char *header(const HttpExchange *x, const char *name) {
        return http_header_find(x->headers, x->n_headers, name);
}

static void give_token(FakeImds *f, HttpExchange *x) {
        const char *wanted = header(x, TTL_HEADER);
        _cleanup_free_ char *token = NULL, *granted = NULL;
        uint64_t ttl_sec;
        usec_t *ends;
        int r;

        if (x->method != HTTP_PUT) {
                reply_error(f, x, 405);
                return;
        }
        f->n_tokens++;
        if (apply_fault(f, x, FAKE_IMDS_TOKEN))
                return;
        if (header(x, "X-Forwarded-For")) {
                reply_error(f, x, 403);
                return;
        }
        if (!wanted || parse_uint64_range(wanted, 1, TTL_MAX, &ttl_sec) < 0) {
                reply_error(f, x, 400);
                return;
        }
        if (f->max_ttl_sec > 0)
                ttl_sec = MIN(ttl_sec, (uint64_t) f->max_ttl_sec);
        token = MUST(strf("AQAEA%032" PRIu64 "%016" PRIx64 "==", ++f->next_token,
                          hash64(f->instance_id, strlen(f->instance_id))));
        ends = MUST(new0(usec_t, 1));
        *ends = usec_add(loop_now(f->loop), ttl_sec * USEC_PER_SEC);
        r = hashmap_put(f->tokens, token, ends);
        assert(r >= 0);
        granted = MUST(strf("%" PRIu64, ttl_sec));
        reply(f, x, 200, "text/plain", token, &(HttpHeader){ TTL_HEADER, granted });
}

static bool token_is_good(const FakeImds *f, const HttpExchange *x) {
        const char *token = header(x, TOKEN_HEADER);
        const usec_t *ends = token ? hashmap_get(f->tokens, token) : NULL;

        return ends && loop_now(f->loop) < *ends;
}

/* The body of a path below /latest/, or NULL; free it. */
static char *content(const FakeImds *f, const char *path) {
        static const struct {
                const char *path, *body;
        } fixed[] = {
                { "meta-data/instance-type", "m5.large" },
                { "meta-data/instance-life-cycle", "spot" },
                { "meta-data/placement/availability-zone", ZONE },
                { "meta-data/placement/availability-zone-id", "use1-az1" },
                { "meta-data/placement/region", REGION },
                { "meta-data/services/domain", "amazonaws.com" },
                { "meta-data/services/partition", "aws" },
                { "meta-data/local-ipv4", "10.0.0.17" },
                { "meta-data/local-hostname", "ip-10-0-0-17.ec2.internal" },
                { "meta-data/events/maintenance/scheduled", "[]" },
                { "meta-data/events/maintenance/history", "[]" },
        };

        if (streq(path, "meta-data/instance-id"))
                return f->told_id ? MUST(strdup(f->told_id)) : NULL;
        if (streq(path, "meta-data/spot/instance-action"))
                return f->action ? MUST(strdup(f->action)) : NULL;
        if (streq(path, "dynamic/instance-identity/document"))
                return MUST(strf("{\"accountId\": \"123456789012\", \"instanceId\": \"%s\", "
                                 "\"instanceType\": \"m5.large\", "
                                 "\"availabilityZone\": \"" ZONE "\", \"region\": \"" REGION
                                 "\", \"architecture\": \"x86_64\", "
                                 "\"privateIp\": \"10.0.0.17\", \"version\": \"2017-09-30\"}",
                                 f->instance_id));
        for (size_t i = 0; startswith(path, "meta-data/") && i < ELEMENTSOF(f->texts); i++)
                if (f->texts[i].body && streq(path + strlen("meta-data/"), f->texts[i].path))
                        return MUST(strdup(f->texts[i].body));
        for (size_t i = 0; i < ELEMENTSOF(fixed); i++)
                if (streq(path, fixed[i].path))
                        return MUST(strdup(fixed[i].body));
        return NULL;
}

void fake_imds_handle(HttpExchange *x, void *fake_imds) {
        const char *path = startswith(x->path, "/latest/");
        _cleanup_free_ char *body = NULL;
        FakeImds *f = fake_imds;

        if (path && streq(path, "api/token")) {
                give_token(f, x);
                return;
        }
        if (x->method != HTTP_GET && x->method != HTTP_HEAD) {
                reply_error(f, x, 405);
                return;
        }
        f->n_gets++;
        if (apply_fault(f, x, FAKE_IMDS_DATA))
                return;
        if (!token_is_good(f, x)) {
                reply_error(f, x, 401);
                return;
        }
        body = path ? content(f, path) : NULL;
        if (body)
                reply(f, x, 200, "text/plain", body, NULL);
        else
                reply_error(f, x, 404);
}
