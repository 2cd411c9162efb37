/* SPDX-License-Identifier: Apache-2.0 */
#include "kubelet-pods.h"

#include "json.h"
#include "log.h"
#include "string-util.h"
#include "strv.h"

#define ANSWER_USEC (5 * USEC_PER_SEC)
#define FIRST_USEC (30 * USEC_PER_SEC)
#define WATCH_USEC USEC_PER_SEC
#define SLOW_USEC USEC_PER_MINUTE
#define REFUSED_USEC USEC_PER_HOUR

struct KubeletPods {
        Env *env;
        KubeletClient *client;
        kubelet_pods_fn fn;
        void *userdata;
        Timer *timer;
        HttpCall *call;
        usec_t begun_usec; /* when the call began */
        bool is_watching;
        KubeletPodsState state;
        KubeletPodsState logged; /* the last state that the log was told of */
};

/* -- the answer --------------------------------------------------------------------------------- */

/* {"metadata":{"uid":"1b2c"},"spec":{"containers":[{"name":"app"}]}} */
static int on_pod(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        char ***uids = userdata;
        const Json *spec, *containers;
        const char *uid;
        int r;

        r = json_parse(item, size, size, &doc, NULL);
        if (r < 0)
                return r;
        uid = json_string_or_null(json_path(json_root(doc), "metadata", "uid", NULL));
        spec = json_get(json_root(doc), "spec");
        containers = json_get(spec, "containers");
        if (isempty(uid) || !json_is_object(spec) || (containers && !json_is_null(containers) && !json_is_array(containers)))
                return -EBADMSG;
        if (json_size(containers) == 0)
                return 0;
        return strv_length(*uids) < KUBELET_PODS_MAX ? strv_extend(uids, uid) : -E2BIG;
}

int kubelet_pods_parse(const char *body, size_t size, char ***ret_uids) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        _cleanup_strv_free_ char **uids = NULL;
        int r;

        *ret_uids = NULL;
        r = json_split_items(body, size, KUBELET_PODS_BYTES_MAX, on_pod, &uids, &rest, NULL);
        if (r < 0)
                return r;
        if (!streq_ptr(json_string_or_null(json_get(json_root(rest), "kind")), "PodList"))
                return -EBADMSG;
        *ret_uids = TAKE_PTR(uids);
        return 0;
}

KubeletPodsState kubelet_pods_state_after(int error, unsigned status, bool is_list, bool is_watching) {
        if (error == -EKEYREJECTED)
                return KUBELET_PODS_REFUSED;
        if (error < 0 || status == 429 || (status == 401 && is_watching))
                return KUBELET_PODS_FAILING;
        if (status >= 400 && status < 500)
                return KUBELET_PODS_REFUSED;
        return status == 200 && is_list ? KUBELET_PODS_READABLE : KUBELET_PODS_FAILING;
}

/* -- asking ------------------------------------------------------------------------------------- */

static usec_t pace_usec(const KubeletPods *k) {
        if (k->state == KUBELET_PODS_REFUSED)
                return REFUSED_USEC;
        return k->is_watching ? WATCH_USEC : SLOW_USEC;
}

static void log_change(KubeletPods *k, const char *why) {
        switch (k->state) {
        case KUBELET_PODS_READABLE:
                if (k->logged == KUBELET_PODS_READABLE)
                        return;
                log_info(k->env->log, "The kubelet's " KUBELET_PODS_PATH " can be read: at a shutdown it says, "
                                      "besides PID 1, which pods have ended.");
                break;
        case KUBELET_PODS_REFUSED:
                if (k->logged == KUBELET_PODS_REFUSED)
                        return;
                log_info(k->env->log,
                         "The kubelet's " KUBELET_PODS_PATH " cannot be read (%s), asking again each hour. It is optional: "
                         "vesper-agent(8), KUBELET AND NETWORK, says what it is for and how to allow it.",
                         why);
                break;
        case KUBELET_PODS_FAILING:
                if (k->logged != KUBELET_PODS_READABLE)
                        return;
                log_info(k->env->log, "The kubelet's " KUBELET_PODS_PATH " cannot be read any more, retrying: %s", why);
                break;
        case KUBELET_PODS_UNKNOWN:
                return;
        }
        k->logged = k->state;
}

static void on_answer(const HttpResponse *response, void *userdata) {
        KubeletPods *k = userdata;
        _cleanup_strv_free_ char **uids = NULL;
        _cleanup_free_ char *why = NULL;
        int r = response->error;

        if (r == 0)
                r = response->status == 200 ? kubelet_pods_parse(response->body, response->body_size, &uids) : -EACCES;
        why = response->status == 200 ? strdup("the answer is no list of pods, or a too long one") : kubelet_answer_text(response);
        k->state = kubelet_pods_state_after(response->error, response->status, r == 0, k->is_watching);
        log_change(k, why ? why : "out of memory");
        k->call = http_call_free(k->call);
        timer_arm_in(k->timer, pace_usec(k));
        if (k->is_watching)
                k->fn(r, uids, k->begun_usec, k->userdata);
}

static void on_timer(Timer *t, void *userdata) {
        KubeletPods *k = userdata;

        if (k->call)
                return;
        k->begun_usec = loop_now(k->env->loop);
        if (kubelet_client_get(k->client, KUBELET_PODS_PATH, ANSWER_USEC, KUBELET_PODS_BYTES_MAX, on_answer, k, &k->call) < 0)
                timer_arm_in(k->timer, pace_usec(k));
}

void kubelet_pods_watch(KubeletPods *k, bool is_watching) {
        k->is_watching = is_watching;
        if (is_watching && k->state != KUBELET_PODS_REFUSED)
                timer_arm_in(k->timer, 0);
}

/* -- new, free ---------------------------------------------------------------------------------- */

int kubelet_pods_new(Env *env, KubeletClient *client, kubelet_pods_fn fn, void *userdata, KubeletPods **ret) {
        _cleanup_(kubelet_pods_freep) KubeletPods *k = NULL;
        int r;

        assert(env && client && fn && ret);
        k = new0(KubeletPods, 1);
        if (!k)
                return -ENOMEM;
        *k = (KubeletPods){ .env = env, .client = client, .fn = fn, .userdata = userdata };
        r = timer_new(env->loop, "kubelet-pods", on_timer, k, &k->timer);
        if (r < 0)
                return r;
        timer_arm_in(k->timer, FIRST_USEC);
        *ret = TAKE_PTR(k);
        return 0;
}

KubeletPods *kubelet_pods_free(KubeletPods *k) {
        if (!k)
                return NULL;
        http_call_free(k->call);
        timer_free(k->timer);
        return mfree(k);
}

void kubelet_pods_next_wakeup(const KubeletPods *k, Wakeups *w) {
        wakeups_unfinished(w, "poll of", KUBELET_PODS_PATH, k->is_watching ? "watching" : "", pace_usec(k));
        wakeups_timer(w, k->timer);
        wakeups_await(w, k->call);
}
