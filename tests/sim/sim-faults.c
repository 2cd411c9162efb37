/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-faults.h"

#define PICKS_MAX 8u
#define LATENCY_MIN_USEC 500u
#define LATENCY_SPREAD_USEC 4000u
#define CLOUD_LATENCY_USEC (60 * USEC_PER_MSEC)
/* From sending to the answer at the latest, without a fault. */
#define SLOW_USEC (200 * USEC_PER_MSEC)

typedef struct Pick {
        HttpMethod method;
        char *url, *body;
        SimLoss loss;
        unsigned n;
} Pick;

struct SimFaults {
        Loop *loop;
        Random *random;
        SimChances chances;
        usec_t until_usec;
        Pick picks[PICKS_MAX];
        size_t n_picks;
};

SimFaults *sim_faults_new(Loop *loop, uint64_t seed) {
        SimFaults *f = MUST(new0(SimFaults, 1));
        int r = random_new(seed, &f->random);

        assert(r >= 0);
        f->loop = loop;
        return f;
}

SimFaults *sim_faults_free(SimFaults *f) {
        if (!f)
                return NULL;
        for (size_t i = 0; i < f->n_picks; i++) {
                free(f->picks[i].url);
                free(f->picks[i].body);
        }
        random_free(f->random);
        return mfree(f);
}

void sim_faults_chances(SimFaults *f, const SimChances *c, usec_t until_usec) {
        f->chances = *c;
        f->until_usec = until_usec;
}

bool sim_faults_by_chance(const SimFaults *f) {
        return loop_now(f->loop) < f->until_usec;
}

void sim_faults_pick(SimFaults *f, HttpMethod method, const char *url, const char *body, SimLoss loss,
                     unsigned n) {
        assert(f->n_picks < PICKS_MAX);
        f->picks[f->n_picks++] = (Pick){
                .method = method,
                .url = url ? MUST(strdup(url)) : NULL,
                .body = body ? MUST(strdup(body)) : NULL,
                .loss = loss,
                .n = n,
        };
}

unsigned sim_faults_left(const SimFaults *f) {
        unsigned n = 0;

        for (size_t i = 0; i < f->n_picks; i++)
                n += f->picks[i].n;
        return n;
}

static bool contains(const char *text, size_t size, const char *part) {
        return !part || (text && memmem(text, size, part, strlen(part)));
}

/* The pick that takes this request, one of the lies or one of the others. */
static Pick *find_pick(SimFaults *f, bool lie, HttpMethod method, const char *url, const void *body,
                       size_t size) {
        for (size_t i = 0; i < f->n_picks; i++) {
                Pick *p = &f->picks[i];

                if (p->n > 0 && (p->loss == SIM_LIE) == lie && p->method == method &&
                    contains(url, strlen(url), p->url) && contains(body, size, p->body)) {
                        p->n--;
                        return p;
                }
        }
        return NULL;
}

static bool chance(SimFaults *f, unsigned permille) {
        return permille > 0 && loop_now(f->loop) < f->until_usec && random_below(f->random, 1000) < permille;
}

static void draw(SimFaults *f, bool api, HttpFault *ret) {
        const SimChances *c = &f->chances;
        unsigned cloud = c->cloud;

        if (chance(f, api ? c->refuse : cloud))
                ret->refuse = true;
        else if (chance(f, api ? c->lose_request : cloud))
                ret->lose_request = true;
        else if (chance(f, api ? c->lose_reply : cloud))
                ret->lose_reply = true;
        else if (!api && chance(f, cloud))
                ret->status = 503;
        else if (c->slow_max_usec > 0 && chance(f, c->slow)) {
                ret->request_delay_usec += random_below(f->random, c->slow_max_usec);
                ret->reply_delay_usec += random_below(f->random, c->slow_max_usec);
        }
}

static usec_t latency(SimFaults *f) {
        return LATENCY_MIN_USEC + random_below(f->random, LATENCY_SPREAD_USEC);
}

bool sim_faults_on_request(SimFaults *f, const HttpRequest *request, const char *peer, HttpFault *ret) {
        bool cloud = streq(peer, "ec2.sim");
        const Pick *p;

        ret->request_delay_usec = latency(f) + (cloud ? CLOUD_LATENCY_USEC : 0);
        ret->reply_delay_usec = latency(f);
        p = find_pick(f, false, request->method, request->url, request->body, request->body_size);
        if (p) {
                ret->lose_request = p->loss == SIM_LOSE_REQUEST;
                ret->lose_reply = p->loss == SIM_LOSE_REPLY;
                ret->refuse = p->loss == SIM_REFUSE;
        } else
                draw(f, streq(peer, "api"), ret);
        return !ret->lose_request && !ret->lose_reply && !ret->refuse && ret->status == 0 &&
               ret->request_delay_usec + ret->reply_delay_usec < SLOW_USEC;
}

bool sim_faults_on_api(SimFaults *f, const FakeRequest *request, FakeApiFault *ret) {
        static const unsigned statuses[] = { 429, 500, 503, 504, 409 };
        const HttpExchange *x = request->x;
        bool write = x->method != HTTP_GET;

        if (find_pick(f, true, x->method, x->path, x->body, x->body_size)) {
                *ret = (FakeApiFault){ .status = 500, .takes_effect = true };
                return true;
        }
        if (write && chance(f, f->chances.lie)) {
                *ret = (FakeApiFault){ .status = random_below(f->random, 2) ? 500 : 504,
                                       .takes_effect = true };
                return true;
        }
        if (chance(f, f->chances.error)) {
                ret->status = statuses[random_below(f->random, ELEMENTSOF(statuses) - !write)];
                if (ret->status == 429 || ret->status == 503)
                        ret->retry_after_sec = (unsigned) random_below(f->random, 3);
        }
        return false;
}

const char *sim_fault_to_string(const HttpFault *f) {
        if (f->refuse)
                return " (refused)";
        if (f->lose_request)
                return " (request lost)";
        if (f->lose_reply)
                return " (answer lost)";
        if (f->status != 0)
                return " (answered on the way)";
        return f->request_delay_usec + f->reply_delay_usec >= SLOW_USEC ? " (slow)" : "";
}
