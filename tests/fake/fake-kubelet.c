/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "fake-controllers.h"

/*
 * The life of pods on nodes whose kubelet runs:
 *
 *      bound, Pending --start delay, volumes attached--> Running, Ready
 *      deletionTimestamp --stop time (annotation), at most the grace since the kubelet saw it--> containers
 * have ended
 *      --its lag--> deleted
 *
 * A grace that is shortened meanwhile counts from when that was seen.
 */

#define START_DEFAULT_USEC (50 * USEC_PER_MSEC)
/* runtimeCacheRefreshPeriod of the kubelet */
#define RUNTIME_CACHE_USEC (3 * USEC_PER_SEC)
#define VOLUMES_RETRY_USEC (500 * USEC_PER_MSEC)

static const char *annotation(const cJSON *pod, const char *key) {
        return fj_string(pod, "metadata", "annotations", key, NULL);
}

static bool is_going(const cJSON *pod) {
        return fj_get(pod, "metadata", "deletionTimestamp", NULL);
}

/* When it is to be looked at next, given that its kubelet runs; USEC_INFINITY: never. */
static usec_t stop_due(FakeCluster *c, const cJSON *pod) {
        const char *uid = strempty(fj_string(pod, "metadata", "uid", NULL));
        const char *seconds = annotation(pod, "fake.vesper.sh/stop-seconds");
        int64_t grace = fj_int(pod, 0, "metadata", "deletionGracePeriodSeconds", NULL);
        usec_t now = loop_now(c->loop), wanted;
        FakeStop *stop = hashmap_get(c->stops, uid);
        int r;

        if (streq_ptr(annotation(pod, "fake.vesper.sh/stuck"), "true"))
                return USEC_INFINITY;
        if (!stop) {
                stop = MUST(new0(FakeStop, 1));
                *stop = (FakeStop){ now, USEC_INFINITY, USEC_INFINITY, INT64_MAX };
                r = hashmap_put(c->stops, uid, stop);
                assert(r >= 0);
        }
        if (grace < stop->grace_sec) {
                stop->grace_sec = grace;
                stop->kill_usec = MIN(stop->kill_usec, now + (usec_t) grace * USEC_PER_SEC);
        }
        if (stop->ended_usec != USEC_INFINITY)
                return usec_add(stop->ended_usec, c->kubelet_lag_usec);
        wanted = seconds ? (usec_t) strtoull(seconds, NULL, 10) * USEC_PER_SEC : 0;
        return MIN(usec_add(stop->begun_usec, wanted), stop->kill_usec);
}

void fake_cluster_set_kubelet_lag(FakeCluster *c, usec_t lag_usec) {
        c->kubelet_lag_usec = lag_usec;
}

bool fake_cluster_containers_run(const FakeCluster *c, const cJSON *pod) {
        const FakeStop *stop = hashmap_get(c->stops, strempty(fj_string(pod, "metadata", "uid", NULL)));

        return streq_ptr(fj_string(pod, "status", "phase", NULL), "Running") &&
               (!stop || stop->ended_usec == USEC_INFINITY);
}

static void write_running_pods(FakeRunningPods *k) {
        StrBuf b = { 0 };
        unsigned n = 0;
        const cJSON *pod;

        strbuf_add(&b, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[");
        FAKE_FOREACH (pod, k->cluster, FAKE_PODS, NULL)
                if (streq_ptr(fj_string(pod, "spec", "nodeName", NULL), k->node) &&
                    streq_ptr(fj_string(pod, "status", "phase", NULL), "Running"))
                        strbuf_addf(&b, "%s{\"metadata\":{\"uid\":\"%s\"},\"spec\":{\"containers\":%s},\"status\":{}}",
                                    n++ > 0 ? "," : "", fj_string(pod, "metadata", "uid", NULL),
                                    fake_cluster_containers_run(k->cluster, pod) ? "[{\"name\":\"main\"}]" : "null");
        strbuf_add(&b, "]}");
        free(k->body);
        k->body = MUST(strbuf_steal(&b));
        k->made_usec = loop_now(k->cluster->loop);
}

void fake_running_pods_handle(HttpExchange *x, void *userdata) {
        FakeRunningPods *k = userdata;

        if (k->status > 0) {
                http_reply_text(x, k->status, "text/plain", "Forbidden");
                return;
        }
        if (!k->body || loop_now(k->cluster->loop) > usec_add(k->made_usec, RUNTIME_CACHE_USEC))
                write_running_pods(k);
        http_reply_text(x, 200, "application/json", k->body);
}

void fake_cluster_watch_containers(FakeCluster *c, FakeContainerWatch *w) {
        list_append(&c->container_watches, &w->node);
}

void fake_cluster_unwatch_containers(FakeCluster *c, FakeContainerWatch *w) {
        list_remove(&c->container_watches, &w->node);
}

/* True: the kubelet has nothing more to do about it. */
static bool end_containers(FakeCluster *c, const cJSON *pod) {
        FakeStop *stop = hashmap_get(c->stops, strempty(fj_string(pod, "metadata", "uid", NULL)));

        if (stop->ended_usec != USEC_INFINITY)
                return true;
        stop->ended_usec = loop_now(c->loop);
        LIST_FOREACH (w, &c->container_watches, FakeContainerWatch, node)
                w->on_ended(pod, w->userdata);
        return c->kubelet_lag_usec == 0;
}

static bool needs_start(const cJSON *pod) {
        return !is_going(pod) && streq_ptr(fj_string(pod, "status", "phase", NULL), "Pending");
}

static void consider(FakeCluster *c, FakeQueue *q, const cJSON *pod) {
        const char *node = fj_string(pod, "spec", "nodeName", NULL);
        _cleanup_free_ char *key = NULL;
        usec_t start = c->options.pod_start_usec;

        if (isempty(node) || !fake_cluster_kubelet_runs(c, node))
                return;
        key = fake_object_key(pod);
        if (is_going(pod))
                fake_queue_add(q, key);
        else if (needs_start(pod))
                fake_queue_add_in(q, key,
                                  fake_cluster_jitter(c, start > 0 ? start : START_DEFAULT_USEC, 300));
}

static void observe(FakeCluster *c, FakeQueue *q, const FakeChange *change) {
        if (change->resource->id != FAKE_PODS)
                return;
        if (change->new)
                consider(c, q, change->new->json);
        else
                free(hashmap_remove(c->stops,
                                    strempty(fj_string(change->old->json, "metadata", "uid", NULL))));
}

static void resync(FakeCluster *c, FakeQueue *q) {
        const cJSON *pod;

        FAKE_STORE_FOREACH (pod, c->store, FAKE_PODS, NULL)
                consider(c, q, pod);
}

static void start(FakeCluster *c, const cJSON *pod) {
        cJSON *new = fj_copy(pod), *status = fj_object(new, "status");
        bool ready = !streq_ptr(annotation(pod, "fake.vesper.sh/unready"), "true");
        char now[RFC3339_MAX];

        fj_set_string(status, "phase", "Running");
        fj_set_string(status, "startTime", fake_store_timestamp(c->store, now));
        fake_set_condition(c->store, status, "PodScheduled", "True", NULL, NULL);
        fake_set_condition(c->store, status, "Initialized", "True", NULL, NULL);
        fake_set_condition(c->store, status, "ContainersReady", ready ? "True" : "False", NULL, NULL);
        fake_set_condition(c->store, status, "Ready", ready ? "True" : "False", NULL, NULL);
        fake_store_update(c->store, FAKE_PODS, new);
}

static void sync(FakeCluster *c, FakeQueue *q, const char *key) {
        _cleanup_free_ char *ns = NULL, *name = NULL;
        const cJSON *pod;
        usec_t due, now = loop_now(c->loop);

        fake_key_split(key, &ns, &name);
        pod = fake_store_get(c->store, FAKE_PODS, ns, name);
        if (!pod || !fake_cluster_kubelet_runs(c, strempty(fj_string(pod, "spec", "nodeName", NULL))))
                return;

        if (needs_start(pod)) {
                if (fake_volumes_attached(c, pod))
                        start(c, pod);
                else
                        fake_queue_add_in(q, key, VOLUMES_RETRY_USEC);
                return;
        }
        if (!is_going(pod))
                return;
        due = stop_due(c, pod);
        if (due <= now && end_containers(c, pod))
                fake_delete(c, FAKE_PODS, ns, name, 0);
        else if (due <= now)
                fake_queue_add_in(q, key, c->kubelet_lag_usec);
        else if (due != USEC_INFINITY)
                fake_queue_add_in(q, key, due - now);
}

const FakeController fake_kubelet_controller = { "fake-kubelet", observe, sync, resync };
