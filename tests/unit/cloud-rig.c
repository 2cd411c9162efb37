/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "aws-sigv4.h"
#include "cloud-rig.h"
#include "cmocka-test.h"
#include "json.h"
#include "string-util.h"
#include "xml-reader.h"

#define HEADERS_MAX 8

void rig_init(CloudRig *rig) {
        *rig = (CloudRig) { 0 };
        assert_return_code(virtual_time_new(RIG_START_USEC, &rig->time), 0);
        assert_return_code(loop_new_virtual(rig->time, &rig->loop), 0);
        assert_return_code(http_inproc_new(rig->loop, "test", NULL, &rig->transport), 0);
}

void rig_route(CloudRig *rig, const char *origin, http_handler_t handler, void *fake) {
        assert_return_code(http_inproc_route(rig->transport, origin, handler, fake), 0);
}

void rig_stop(CloudRig *rig) {
        rig->transport = http_transport_free(rig->transport);
}

void rig_done(CloudRig *rig) {
        loop_free(rig->loop);
        virtual_time_free(rig->time);
}

usec_t rig_now(const CloudRig *rig) {
        return virtual_time_now(rig->time);
}

void rig_run_for(CloudRig *rig, usec_t usec) {
        usec_t limit = usec_add(rig_now(rig), usec);

        while (virtual_time_step(rig->time, limit) > 0)
                ;
}

void ask_done(CloudAsk *a) {
        a->call = http_call_free(a->call);
        a->body = mfree(a->body);
        a->headers = mfree(a->headers);
}

static void on_done(const HttpResponse *response, void *userdata) {
        CloudAsk *a = userdata;

        a->answered = true;
        a->status = response->error < 0 ? 0 : response->status;
        a->body = strdup(strempty(response->body));
        assert_return_code(http_headers_copy(response->headers, response->n_headers, &a->headers), 0);
        a->n_headers = response->n_headers;
}

void rig_start(CloudRig *rig, CloudAsk *a, HttpMethod method, const char *url, const HttpHeader *headers,
               size_t n_headers, const char *body) {
        HttpRequest request = {
                .method = method,
                .url = url,
                .headers = headers,
                .n_headers = n_headers,
                .body = body,
                .body_size = strlen(strempty(body)),
                .lane = HTTP_LANE_BULK,
                .timeout_usec = USEC_PER_HOUR,
                .max_response_bytes = 1u << 20,
        };

        *a = (CloudAsk) { 0 };
        assert_return_code(http_call_start(rig->transport, &request, on_done, a, &a->call), 0);
}

void rig_wait(CloudRig *rig, CloudAsk *a) {
        usec_t limit = usec_add(rig_now(rig), USEC_PER_HOUR);

        while (!a->answered)
                if (virtual_time_step(rig->time, limit) <= 0)
                        fail_msg("no answer within an hour");
}

const char *ask_header(const CloudAsk *a, const char *name) {
        return http_header_find(a->headers, a->n_headers, name);
}

/* What our own readers think of it. */
static bool is_readable(const char *body) {
        JsonDoc *doc = NULL;
        const char *name;
        XmlReader x;
        int r;

        if (body[0] == '{') {
                r = json_parse(body, strlen(body), 1u << 20, &doc, NULL);
                json_doc_free(doc);
                return r >= 0;
        }
        if (body[0] != '<')
                return true;
        r = xml_reader_open(&x, body, strlen(body), 1u << 20, &name);
        while (r >= 0 && (r = xml_reader_child(&x, &name)) > 0)
                r = xml_reader_skip(&x);
        return r >= 0 && xml_reader_close(&x) >= 0;
}

void ask_expect(const CloudAsk *a, const char *what, unsigned status, const char *part) {
        if (a->status != status || (part && !strstr(strempty(a->body), part)))
                fail_msg("%s: expected %u with '%s', saw %u: %s", what, status, strempty(part), a->status,
                         strempty(a->body));
        if (!is_readable(strempty(a->body)))
                fail_msg("%s: neither our JSON nor our XML: %s", what, a->body);
}

static usec_t signed_at(const CloudRig *rig, int64_t skew_usec) {
        return (usec_t) ((int64_t) loop_wall(rig->loop) + skew_usec);
}

void rig_start_aws(CloudRig *rig, CloudAsk *a, const char *service, const char *url, const char *type,
                   const char *target, const char *body, const RigSigning *s) {
        static const RigSigning right;
        _cleanup_(sigv4_headers_done) SigV4Headers more = { 0 };
        _cleanup_free_ char *host = strdup(strstr(url, "://") + 3);
        HttpHeader headers[HEADERS_MAX] = { { "Host", host }, { "Content-Type", type } };
        size_t n = 2;

        s = s ? s : &right;
        host[strcspn(host, "/")] = 0;
        if (target)
                headers[n++] = (HttpHeader) { "X-Amz-Target", target };
        assert_return_code(
                sigv4_sign(&(SigV4Request) { .method = HTTP_POST,
                                             .path = "/",
                                             .headers = headers,
                                             .n_headers = n,
                                             .body = body,
                                             .body_size = strlen(body),
                                             .region = s->region ? s->region : RIG_REGION,
                                             .service = s->service ? s->service : service,
                                             .access_key_id = s->key ? s->key : RIG_KEY,
                                             .secret_access_key = s->secret ? s->secret : RIG_SECRET,
                                             .session_token = s->token,
                                             .wall_usec = signed_at(rig, s->skew_usec) },
                           &more),
                0);
        for (size_t i = 0; i < more.n_headers && !s->unsigned_; i++)
                headers[n++] = more.headers[i];
        rig_start(rig, a, HTTP_POST, url, headers, n, body);
}
