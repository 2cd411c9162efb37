/* SPDX-License-Identifier: Apache-2.0 */
#include "check-kubelet.h"

#include "json.h"
#include "kubelet-client.h"
#include "string-util.h"
#include "strv.h"
#include "time-util.h"

#define ANSWER_USEC (5 * USEC_PER_SEC)
#define BODY_MAX (256u * 1024u)
#define TEXT_MAX 120
#define HEALTHZ "http://127.0.0.1:10248/healthz"

struct CheckKubelet {
        KubeletFacts *facts;
        check_kubelet_done_t fn;
        void *userdata;
        KubeletClient *client; /* NULL: there is no credential */
        HttpCall *healthz, *configz, *pods;
        Timer *end;
};

/* -- /configz ----------------------------------------------------------------------------------- */

static bool is_some_time(const Json *v) {
        const char *text = json_string_or_null(v);
        usec_t usec;

        return text && duration_parse_go(text, &usec) >= 0 && usec > 0;
}

/* {"kubeletconfig":{"shutdownGracePeriod":"30s","shutdownGracePeriodByPodPriority":[{"shutdownGracePeriodSeconds":10}]}}
 */
KubeletShutdown kubelet_shutdown_in(const char *body, size_t size) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const Json *config, *bands;
        int64_t seconds;

        if (json_parse(body, size, BODY_MAX, &doc, NULL) < 0)
                return KUBELET_SHUTDOWN_UNKNOWN;
        config = json_get(json_root(doc), "kubeletconfig");
        if (!json_is_object(config))
                return KUBELET_SHUTDOWN_UNKNOWN;
        bands = json_get(config, "shutdownGracePeriodByPodPriority");
        JSON_FOREACH (band, bands)
                if (json_int64(json_get(band, "shutdownGracePeriodSeconds"), &seconds) >= 0 && seconds > 0)
                        return KUBELET_SHUTDOWN_ON;
        return is_some_time(json_get(config, "shutdownGracePeriod")) ? KUBELET_SHUTDOWN_ON
                                                                     : KUBELET_SHUTDOWN_OFF;
}

/* -- asking ------------------------------------------------------------------------------------- */

/* The first line of it. */
static void take_answer(const HttpResponse *r, int *http, char **text) {
        const char *said = r->error ? r->error_text : r->body;

        *http = r->error ? 0 : (int) r->status;
        free(*text);
        *text = strf("%.*s", (int) MIN(strcspn(said, "\r\n"), (size_t) TEXT_MAX), said);
}

static void answered(CheckKubelet *k) {
        if (!k->healthz && !k->configz && !k->pods)
                timer_arm_in(k->end, 0);
}

static void on_healthz(const HttpResponse *r, void *userdata) {
        CheckKubelet *k = userdata;

        take_answer(r, &k->facts->healthz_http, &k->facts->healthz_text);
        k->healthz = http_call_free(k->healthz);
        answered(k);
}

static void on_configz(const HttpResponse *r, void *userdata) {
        CheckKubelet *k = userdata;

        take_answer(r, &k->facts->configz_http, &k->facts->configz_text);
        if (k->facts->configz_http == 200)
                k->facts->shutdown = kubelet_shutdown_in(r->body, r->body_size);
        k->configz = http_call_free(k->configz);
        answered(k);
}

static void on_pods(const HttpResponse *r, void *userdata) {
        CheckKubelet *k = userdata;
        _cleanup_strv_free_ char **uids = NULL;
        bool is_list = r->status == 200 && kubelet_pods_parse(r->body, r->body_size, &uids) >= 0;

        k->facts->pods = kubelet_pods_state_after(r->error, r->status, is_list, false);
        k->facts->pods_text = kubelet_answer_text(r);
        k->pods = http_call_free(k->pods);
        answered(k);
}

static void on_end(Timer *t, void *userdata) {
        CheckKubelet *k = userdata;

        k->fn(k->userdata);
}

static int ask_healthz(CheckKubelet *k, Env *env) {
        const HttpRequest request = { .method = HTTP_GET,
                                      .url = HEALTHZ,
                                      .lane = HTTP_LANE_BULK,
                                      .timeout_usec = ANSWER_USEC,
                                      .max_response_bytes = BODY_MAX };

        return http_call_start(env->transport, &request, on_healthz, k, &k->healthz);
}

/* Asks with the node's own credential, and so learns what that may read. */
static int ask_https(CheckKubelet *k, Env *env, KubeAuth *auth, const char *node) {
        int r;

        if (!auth || !node)
                return 0;
        r = kubelet_client_new(env, auth, node, &k->client);
        if (r >= 0)
                r = kubelet_client_get(k->client, "/configz", ANSWER_USEC, BODY_MAX, on_configz, k, &k->configz);
        if (r >= 0)
                r = kubelet_client_get(k->client, KUBELET_PODS_PATH, ANSWER_USEC, KUBELET_PODS_BYTES_MAX, on_pods, k, &k->pods);
        return r == -EAGAIN ? 0 : r;
}

/* -- new, free ---------------------------------------------------------------------------------- */

void kubelet_facts_done(KubeletFacts *f) {
        free(f->healthz_text);
        free(f->configz_text);
        free(f->pods_text);
        *f = (KubeletFacts){ .healthz_http = -1, .configz_http = -1 };
}

int check_kubelet_new(Env *env, KubeAuth *auth, const char *node, KubeletFacts *facts,
                      check_kubelet_done_t fn, void *userdata, CheckKubelet **ret) {
        _cleanup_(check_kubelet_freep) CheckKubelet *k = NULL;
        int r;

        assert(env && facts && fn && ret);
        *facts = (KubeletFacts){ .healthz_http = -1, .configz_http = -1 };
        k = new0(CheckKubelet, 1);
        if (!k)
                return -ENOMEM;
        k->facts = facts;
        k->fn = fn;
        k->userdata = userdata;
        r = timer_new(env->loop, "check-kubelet", on_end, k, &k->end);
        if (r >= 0)
                r = ask_healthz(k, env);
        if (r >= 0)
                r = ask_https(k, env, auth, node);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(k);
        return 0;
}

CheckKubelet *check_kubelet_free(CheckKubelet *k) {
        if (!k)
                return NULL;
        http_call_free(k->healthz);
        http_call_free(k->configz);
        http_call_free(k->pods);
        kubelet_client_free(k->client);
        timer_free(k->end);
        return mfree(k);
}
