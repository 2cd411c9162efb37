/* SPDX-License-Identifier: Apache-2.0 */
#include "sim-faults.h"

#include "hashmap.h"

#define PICKS_MAX 8u
#define LATENCY_MIN_USEC 500u
#define LATENCY_SPREAD_USEC 4000u
#define EVEN_USEC (2 * USEC_PER_MSEC)
#define CLOUD_LATENCY_USEC (60 * USEC_PER_MSEC)
/* Of both ways together. */
#define MEDIUM_MIN_USEC (50 * USEC_PER_MSEC)
#define MEDIUM_SPREAD_USEC (250 * USEC_PER_MSEC)
#define CRAWL_MIN_USEC USEC_PER_SEC
#define CRAWL_SPREAD_USEC (7 * USEC_PER_SEC)
/* A request gets there within this; the rest of its time is the answer's. */
#define CRAWL_THERE_USEC (5 * USEC_PER_SEC)
/* From sending to the answer at the latest, without a fault. */
#define SLOW_USEC (200 * USEC_PER_MSEC)
/* Where two kinds of request share a count, their draws are no worse for it. */
#define COUNTS 4096u

typedef struct Pick {
        HttpMethod method;
        char *url, *body;
        SimLoss loss;
        unsigned n;
} Pick;

/* A request, and how often its like was seen. */
typedef struct Seen {
        const char *who;
        uint64_t key;
} Seen;

struct SimFaults {
        Loop *loop;
        uint64_t seed;
        SimLatency latency;
        SimWindow *windows;
        size_t n_windows, allocated;
        uint32_t counts[COUNTS], api_counts[COUNTS];
        Pick picks[PICKS_MAX];
        size_t n_picks;
};

SimFaults *sim_faults_new(Loop *loop, uint64_t seed) {
        SimFaults *f = MUST(new0(SimFaults, 1));

        f->loop = loop;
        f->seed = seed;
        return f;
}

void sim_faults_stop(SimFaults *f) {
        for (size_t i = 0; i < f->n_windows; i++)
                free(f->windows[i].who);
        f->n_windows = 0;
}

SimFaults *sim_faults_free(SimFaults *f) {
        if (!f)
                return NULL;
        for (size_t i = 0; i < f->n_picks; i++) {
                free(f->picks[i].url);
                free(f->picks[i].body);
        }
        sim_faults_stop(f);
        free(f->windows);
        return mfree(f);
}

/* -- windows ----------------------------------------------------------------------------------- */

void sim_faults_add(SimFaults *f, const SimWindow *window) {
        int r = GREEDY_REALLOC(f->windows, f->allocated, f->n_windows + 1);

        assert(r >= 0);
        f->windows[f->n_windows] = *window;
        f->windows[f->n_windows++].who = window->who ? MUST(strdup(window->who)) : NULL;
}

void sim_faults_chances(SimFaults *f, const SimChances *c, usec_t until_usec) {
        const struct {
                SimFaultKind kind;
                unsigned permille;
        } rows[] = {
                { SIM_FAULT_ERROR, c->error },
                { SIM_FAULT_LIE, c->lie },
                { SIM_FAULT_REFUSE, c->refuse },
                { SIM_FAULT_LOSE_REQUEST, c->lose_request },
                { SIM_FAULT_LOSE_REPLY, c->lose_reply },
                { SIM_FAULT_SLOW, c->slow },
                { SIM_FAULT_CLOUD, c->cloud },
        };

        sim_faults_stop(f);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (rows[i].permille > 0)
                        sim_faults_add(f, &(SimWindow){ .kind = rows[i].kind,
                                                        .until_usec = until_usec,
                                                        .permille = rows[i].permille,
                                                        .max_usec = c->slow_max_usec,
                                                        .seed = f->seed + i });
}

static bool is_open(const SimFaults *f, const SimWindow *w) {
        return loop_now(f->loop) >= w->from_usec && loop_now(f->loop) < w->until_usec;
}

void sim_faults_set_latency(SimFaults *f, SimLatency latency) {
        f->latency = latency;
}

bool sim_faults_by_chance(const SimFaults *f) {
        if (f->latency == SIM_LATENCY_SLOW)
                return true;
        for (size_t i = 0; i < f->n_windows; i++)
                if (is_open(f, &f->windows[i]))
                        return true;
        return false;
}

/* -- draws ------------------------------------------------------------------------------------- */

/* The low bits of an FNV alone are not evenly spread. */
static uint64_t mix(uint64_t a, uint64_t b) {
        uint64_t h = hash64(&(uint64_t[2]){ a, b }, 2 * sizeof(uint64_t));

        h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
        return h ^ h >> 33;
}

/* The path ends where its query begins: that differs each time. */
static Seen see(uint32_t *counts, const char *who, HttpMethod method, const char *path) {
        uint64_t key = mix(hash64(path, strcspn(path, "?")), (uint64_t) method);

        key = mix(key, hash64(strempty(who), strlen(strempty(who))));
        return (Seen){ who, mix(key, counts[key % COUNTS]++) };
}

/* The draws of one window for one request: n tells them apart. */
static uint64_t draw(const SimWindow *w, const Seen *s, unsigned n) {
        return mix(mix(w->seed, s->key), n);
}

/* The first open window of this kind that takes it. */
static const SimWindow *find_window(const SimFaults *f, SimFaultKind kind, const Seen *s) {
        for (size_t i = 0; i < f->n_windows; i++) {
                const SimWindow *w = &f->windows[i];

                if (w->kind == kind && is_open(f, w) && (!w->who || streq_ptr(w->who, s->who)) &&
                    draw(w, s, 0) % 1000 < w->permille)
                        return w;
        }
        return NULL;
}

/* -- picks ------------------------------------------------------------------------------------- */

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

/* -- on the way -------------------------------------------------------------------------------- */

static void draw_cloud(const SimWindow *w, const Seen *s, HttpFault *ret) {
        switch (draw(w, s, 1) % 4) {
        case 0:
                ret->refuse = true;
                break;
        case 1:
                ret->lose_request = true;
                break;
        case 2:
                ret->lose_reply = true;
                break;
        default:
                ret->status = 503;
                break;
        }
}

/* True: one of the Lease's own windows takes it. */
static bool draw_lease_fault(const SimFaults *f, const Seen *s, HttpFault *ret) {
        const SimWindow *w;

        if (find_window(f, SIM_FAULT_LEASE_LOST, s)) {
                ret->lose_request = true;
                return true;
        }
        w = find_window(f, SIM_FAULT_LEASE_SLOW, s);
        if (w)
                ret->reply_delay_usec += w->max_usec;
        return w;
}

/* Not the begin of a watch, which would be late with all that it tells. */
static bool is_read(const HttpRequest *request) {
        return request->method == HTTP_GET && !strstr(request->url, "watch=");
}

static void draw_late_answer(const SimFaults *f, const Seen *s, HttpFault *ret) {
        const SimWindow *w = find_window(f, SIM_FAULT_LATE_ANSWER, s);

        if (w)
                ret->reply_delay_usec += w->max_usec / 3 + draw(w, s, 1) % MAX(w->max_usec - w->max_usec / 3, 1u);
}

static void draw_fault(const SimFaults *f, const Seen *s, bool api, HttpFault *ret) {
        const SimWindow *w;

        if (find_window(f, api ? SIM_FAULT_PARTITION : SIM_FAULT_PARTITION_CLOUD, s))
                ret->lose_request = true;
        else if (!api && (w = find_window(f, SIM_FAULT_CLOUD, s)))
                draw_cloud(w, s, ret);
        else if (api && find_window(f, SIM_FAULT_REFUSE, s))
                ret->refuse = true;
        else if (api && find_window(f, SIM_FAULT_LOSE_REQUEST, s))
                ret->lose_request = true;
        else if (api && find_window(f, SIM_FAULT_LOSE_REPLY, s))
                ret->lose_reply = true;
        else if ((w = find_window(f, SIM_FAULT_SLOW, s)) && w->max_usec > 0) {
                ret->request_delay_usec += draw(w, s, 1) % w->max_usec;
                ret->reply_delay_usec += draw(w, s, 2) % w->max_usec;
        }
}

static uint64_t draw_latency(const SimFaults *f, const Seen *s, unsigned n, usec_t min, usec_t spread) {
        return min + mix(mix(f->seed, s->key), n) % spread;
}

/* Both ways. local: to the metadata service of its own machine. */
static void add_latency(const SimFaults *f, const Seen *s, const HttpRequest *request, bool local, HttpFault *ret) {
        usec_t all, there;

        if (f->latency == SIM_LATENCY_EVEN) {
                ret->request_delay_usec += EVEN_USEC;
                ret->reply_delay_usec += EVEN_USEC;
                return;
        }
        ret->request_delay_usec += draw_latency(f, s, 0, LATENCY_MIN_USEC, LATENCY_SPREAD_USEC);
        ret->reply_delay_usec += draw_latency(f, s, 1, LATENCY_MIN_USEC, LATENCY_SPREAD_USEC);
        if (f->latency == SIM_LATENCY_FAST || local)
                return;
        all = draw_latency(f, s, 2, MEDIUM_MIN_USEC, MEDIUM_SPREAD_USEC);
        there = all / 2;
        if (f->latency == SIM_LATENCY_SLOW && draw_latency(f, s, 3, 0, 2) == 0 && !strstr(request->url, "/leases") &&
            !strstr(request->url, "watch=")) {
                all = draw_latency(f, s, 4, CRAWL_MIN_USEC, CRAWL_SPREAD_USEC);
                there = is_read(request) ? all / 16 : draw_latency(f, s, 5, 0, MIN(all, CRAWL_THERE_USEC));
        }
        ret->request_delay_usec += there;
        ret->reply_delay_usec += all - there;
}

bool sim_faults_on_request(SimFaults *f, const char *who, const HttpRequest *request, const char *peer,
                           HttpFault *ret) {
        bool cloud = streq(peer, "ec2.sim") || streq(peer, "exec.sim") || endswith(peer, ".amazonaws.com"), api = streq(peer, "api");
        Seen s = see(f->counts, who, request->method, request->url);
        const Pick *p;

        ret->request_delay_usec = cloud ? CLOUD_LATENCY_USEC : 0;
        ret->reply_delay_usec = 0;
        add_latency(f, &s, request, !api && !cloud, ret);
        p = find_pick(f, false, request->method, request->url, request->body, request->body_size);
        if (p) {
                ret->lose_request = p->loss == SIM_LOSE_REQUEST;
                ret->lose_reply = p->loss == SIM_LOSE_REPLY;
                ret->refuse = p->loss == SIM_REFUSE;
        } else if (!strstr(request->url, "/leases") || !draw_lease_fault(f, &s, ret))
                draw_fault(f, &s, api, ret);
        if (api && is_read(request) && !strstr(request->url, "/leases"))
                draw_late_answer(f, &s, ret);
        return !ret->lose_request && !ret->lose_reply && !ret->refuse && ret->status == 0 &&
               ret->request_delay_usec + ret->reply_delay_usec < SLOW_USEC;
}

bool sim_faults_on_api(SimFaults *f, const char *who, const FakeRequest *request, FakeApiFault *ret) {
        static const unsigned statuses[] = { 429, 500, 503, 504, 409 };
        const HttpExchange *x = request->x;
        bool write = x->method != HTTP_GET;
        const SimWindow *w;
        Seen s;

        if (find_pick(f, true, x->method, x->path, x->body, x->body_size)) {
                *ret = (FakeApiFault){ .status = 500, .takes_effect = true };
                return true;
        }
        s = see(f->api_counts, who, x->method, x->path);
        if (write && (w = find_window(f, SIM_FAULT_LIE, &s))) {
                *ret = (FakeApiFault){ .status = draw(w, &s, 1) % 2 ? 500 : 504, .takes_effect = true };
                return true;
        }
        if ((endswith(x->path, "/eviction") && (w = find_window(f, SIM_FAULT_TURNED_AWAY, &s))) ||
            (w = find_window(f, SIM_FAULT_FLOW_CONTROL, &s))) {
                ret->status = 429;
                ret->retry_after_sec = 1 + (unsigned) (draw(w, &s, 1) % 8);
        } else if ((w = find_window(f, SIM_FAULT_ERROR, &s))) {
                ret->status = statuses[draw(w, &s, 1) % (ELEMENTSOF(statuses) - !write)];
                if (ret->status == 429 || ret->status == 503)
                        ret->retry_after_sec = (unsigned) (draw(w, &s, 2) % 3);
        }
        ret->cut = find_window(f, SIM_FAULT_GARBLED, &s);
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
