/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "backoff.h"
#include "fuzz-draw.h"
#include "http-inproc.h"
#include "notice-ec2.h"
#include "random.h"
#include "string-util.h"

/*
 * A metadata service that answers anything to anything. A notice is told only with a whole 200 for
 * spot/instance-action in the same look; "none" only after a 404 for it from a service that has said an
 * instance id; looks never come faster than they may.
 */

#define ENDPOINT "http://imds"
#define LOOKS_MAX 12u
#define POLL_USEC (2 * USEC_PER_SEC)

static const char action[] = "{\"action\":\"terminate\",\"time\":\"2027-01-15T08:02:00Z\"}";

typedef struct World {
        Draw draw;
        Loop *loop;
        unsigned n_looks, n_requests;
        bool identified;      /* an instance id was said with 200 */
        unsigned last_side;   /* the same of the last question of another feed */
        unsigned last_action; /* status of the last answer to instance-action; 0: none in this look */
        usec_t last_look_usec;
} World;

static void reply_with(HttpExchange *x, unsigned status, const char *body) {
        x->ops->reply(x, status, NULL, 0, body, strlen(body));
}

static void handle(HttpExchange *x, void *userdata) {
        static const unsigned statuses[] = { 200, 200, 200, 200, 404, 401, 403, 429, 500, 301 };
        static const char *const ids[] = { "i-0123456789abcdef0", "i-0123456789abcdef0\n", "i-123", "<html>",
                                           "" };
        World *w = userdata;
        _cleanup_free_ char *body = NULL;
        unsigned status = draw_of(&w->draw, statuses);
        bool damaged = draw_byte(&w->draw) >= 192;

        w->n_requests++;
        if (streq(x->path, "/latest/api/token")) {
                assert(x->method == HTTP_PUT);
                if (damaged)
                        body = draw_text(&w->draw);
                x->ops->reply(
                        x, status,
                        &(HttpHeader){ "x-aws-ec2-metadata-token-ttl-seconds", damaged ? "1" : "21600" }, 1,
                        body ? body : "token", strlen(body ? body : "token"));
                return;
        }
        assert(x->method == HTTP_GET);
        assert(!isempty(http_header_find(x->headers, x->n_headers, "x-aws-ec2-metadata-token")));
        if (streq(x->path, "/latest/meta-data/instance-id")) {
                const char *id = damaged ? draw_of(&w->draw, ids) : ids[0];

                w->identified = w->identified || (status == 200 && startswith(id, ids[0]));
                reply_with(x, status, id);
                return;
        }
        if (!streq(x->path, "/latest/meta-data/spot/instance-action")) {
                w->last_side = status;
                body = damaged ? draw_text(&w->draw) : strdup("[]");
                reply_with(x, status, body);
                return;
        }
        w->last_action = status;
        body = damaged ? draw_text(&w->draw) : draw_bent_json(&w->draw, action);
        reply_with(x, status, body);
}

static void on_request(const HttpRequest *request, const char *peer, HttpFault *ret_fault, void *userdata) {
        World *w = userdata;
        uint8_t how = draw_byte(&w->draw);

        ret_fault->refuse = how == 255;
        ret_fault->lose_request = how == 254;
        ret_fault->lose_reply = how == 253;
        ret_fault->reply_delay_usec = how >= 224 ? how * 10 * USEC_PER_MSEC : 0;
}

static void on_look(NoticeSource *s, const NoticeLook *look, void *userdata) {
        const Notice *notice = look->n_notices > 0 ? look->notices[0] : NULL;
        World *w = userdata;
        usec_t now = loop_now(w->loop), wall = loop_wall(w->loop);

        assert((look->result == NOTICE_POLL_NOTICE) == (notice != NULL));
        assert((look->result == NOTICE_POLL_UNKNOWN) == (look->why != NULL));
        assert(look->answered_usec <= now);
        w->n_looks++;
        if (!streq(look->feed, "spot/instance-action")) {
                assert(look->result != NOTICE_POLL_NOTICE || w->last_side == 200);
                assert(look->result != NOTICE_POLL_NONE || ((w->last_side == 200 || w->last_side == 404) && w->identified));
                return;
        }
        if (look->result == NOTICE_POLL_NOTICE) {
                assert(w->last_action == 200);
                assert(notice->kind == NOTICE_SPOT && notice_ends_machine(notice));
                assert(startswith(notice->id, "i-0123456789abcdef0-"));
                assert(notice->deadline_usec <= usec_add(wall, 120 * USEC_PER_SEC));
        }
        if (look->result == NOTICE_POLL_NONE)
                assert(w->last_action == 404 && w->identified);
        w->last_action = 0;
        w->last_look_usec = now;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const NoticeEc2Options options = { .endpoint = ENDPOINT, .poll_usec = POLL_USEC };
        World w = { .draw = { data, size } };
        const HttpInprocHooks hooks = { .on_request = on_request, .userdata = &w };
        NoticeSource *source;
        VirtualTime *time;
        Env env = { .boot_id = "b1", .version = "0" };

        assert(virtual_time_new(UINT64_C(1800000000) * USEC_PER_SEC, &time) == 0);
        assert(loop_new_virtual(time, &env.loop) == 0);
        assert(random_new(1, &env.random) == 0);
        assert(http_inproc_new(env.loop, NULL, &hooks, &env.transport) == 0);
        assert(http_inproc_route(env.transport, ENDPOINT, handle, &w) == 0);
        w.loop = env.loop;
        assert(notice_ec2_new(&env, &options, on_look, &w, &source) == 0);
        source->ops->start(source);
        while (w.n_looks < LOOKS_MAX) {
                assert(virtual_time_step(time, USEC_INFINITY) == 1);
                /* At worst three questions, each with a token, a 401, another token, and the question again. */
                assert(w.n_requests <= 12 * (w.n_looks + 1));
                if (w.n_looks > 0)
                        assert(virtual_time_now(time) <=
                               usec_add(w.last_look_usec, 8 * POLL_USEC + 20 * USEC_PER_SEC));
        }
        notice_source_free(source);
        http_transport_free(env.transport);
        random_free(env.random);
        loop_free(env.loop);
        virtual_time_free(time);
        return 0;
}
