/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet-watch.h"

#include "kubelet-client.h"
#include "string-util.h"

#define HEALTHZ "http://127.0.0.1:10248/healthz"
#define POLL_USEC (30 * USEC_PER_SEC)
#define ANSWER_USEC (5 * USEC_PER_SEC)
#define BODY_BYTES_MAX 4096u
#define FAILURES 4u
#define SUCCESSES 2u

struct KubeletWatch {
        Env *env;
        kubelet_watch_fn fn;
        void *userdata;
        Timer *timer;
        HttpCall *call;
        KubeletHealth health;
};

KubeletVerdict kubelet_health_step(KubeletHealth *h, unsigned http, usec_t now_usec) {
        assert(h);
        h->has_answered = h->has_answered || http > 0;
        if (http == 200) {
                h->failures = 0;
                if (++h->successes < SUCCESSES || !h->unhealthy)
                        return KUBELET_SAME;
                h->unhealthy = false;
                return KUBELET_HEALTHY;
        }
        h->successes = 0;
        if (h->failures == 0 && !h->unhealthy)
                h->since_usec = now_usec;
        if (++h->failures < FAILURES || h->unhealthy || !h->has_answered)
                return KUBELET_SAME;
        h->unhealthy = true;
        return KUBELET_UNHEALTHY;
}

static void on_healthz(const HttpResponse *r, void *userdata) {
        KubeletWatch *w = userdata;
        _cleanup_free_ char *why = kubelet_answer_text(r);
        KubeletVerdict verdict = kubelet_health_step(&w->health, r->error < 0 ? 0 : r->status, r->finished_usec);

        w->call = http_call_free(w->call);
        timer_arm_in(w->timer, POLL_USEC);
        if (verdict != KUBELET_SAME)
                w->fn(verdict, why ? why : "out of memory", w->health.since_usec, w->userdata);
}

static void on_timer(Timer *t, void *userdata) {
        KubeletWatch *w = userdata;
        const HttpRequest request = { .method = HTTP_GET,
                                      .url = HEALTHZ,
                                      .lane = HTTP_LANE_BULK,
                                      .timeout_usec = ANSWER_USEC,
                                      .max_response_bytes = BODY_BYTES_MAX };

        if (http_call_start(w->env->transport, &request, on_healthz, w, &w->call) < 0)
                timer_arm_in(w->timer, POLL_USEC);
}

int kubelet_watch_new(Env *env, kubelet_watch_fn fn, void *userdata, KubeletWatch **ret) {
        _cleanup_(kubelet_watch_freep) KubeletWatch *w = NULL;
        int r;

        assert(env && fn && ret);
        w = new0(KubeletWatch, 1);
        if (!w)
                return -ENOMEM;
        *w = (KubeletWatch){ .env = env, .fn = fn, .userdata = userdata };
        r = timer_new(env->loop, "kubelet-watch", on_timer, w, &w->timer);
        if (r < 0)
                return r;
        timer_arm_in(w->timer, POLL_USEC);
        *ret = TAKE_PTR(w);
        return 0;
}

KubeletWatch *kubelet_watch_free(KubeletWatch *w) {
        if (!w)
                return NULL;
        http_call_free(w->call);
        timer_free(w->timer);
        return mfree(w);
}

void kubelet_watch_next_wakeup(const KubeletWatch *k, Wakeups *w) {
        wakeups_unfinished(w, "poll of", "/healthz", "", KUBELET_WATCH_WAKEUP_USEC);
        wakeups_timer(w, k->timer);
        wakeups_await(w, k->call);
}
