/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "string-util.h"

#define SYNC_FAILED_BYTES_MAX 512u

/* https://kubernetes.io/docs/concepts/workloads/pods/disruptions: DisruptionAllowed of policy/v1. */
static void decode_sync_failed(Decoder *d, const Json *v, char **ret) {
        const Json *list = decode_array(d, v, "status.conditions");

        JSON_FOREACH (c, list) {
                const char *type = json_string_or_null(json_get(c, "type")), *status = json_string_or_null(json_get(c, "status")),
                           *reason = json_string_or_null(json_get(c, "reason")), *message = json_string_or_null(json_get(c, "message"));

                if (!*ret && streq_ptr(type, "DisruptionAllowed") && streq_ptr(status, "False") && streq_ptr(reason, "SyncFailed")) {
                        *ret = str_sanitize(strempty(message), SYNC_FAILED_BYTES_MAX);
                        d->failed = d->failed || !*ret;
                }
        }
}

static int pdb_decode(KubeObject *o, const Json *json, InternPool *pool) {
        Decoder d = { .object = o, .pool = pool };
        const Json *spec = json_get(json, "spec"), *status = json_get(json, "status");
        _cleanup_free_ char *policy = NULL;
        KubePdb *p = (KubePdb *) o;

        decode_selector(&d, json_get(spec, "selector"), "spec.selector", &p->selector);
        decode_string(&d, json_get(spec, "unhealthyPodEvictionPolicy"), "spec.unhealthyPodEvictionPolicy",
                      &policy);
        p->always_allow_unhealthy = streq_ptr(policy, "AlwaysAllow");
        decode_int64(&d, json_get(status, "disruptionsAllowed"), "status.disruptionsAllowed",
                     &p->disruptions_allowed);
        decode_int64(&d, json_get(status, "currentHealthy"), "status.currentHealthy", &p->current_healthy);
        decode_int64(&d, json_get(status, "desiredHealthy"), "status.desiredHealthy", &p->desired_healthy);
        decode_int64(&d, json_get(status, "expectedPods"), "status.expectedPods", &p->expected_pods);
        decode_int64(&d, json_get(status, "observedGeneration"), "status.observedGeneration",
                     &p->observed_generation);
        decode_sync_failed(&d, json_get(status, "conditions"), &p->sync_failed);
        return decoder_finish(&d);
}

static void pdb_done(KubeObject *o, InternPool *pool) {
        selector_free(((KubePdb *) o)->selector);
        free(((KubePdb *) o)->sync_failed);
}

const KubeKind kube_pdb_kind = {
        .group = "policy",
        .version = "v1",
        .plural = "poddisruptionbudgets",
        .kind = "PodDisruptionBudget",
        .namespaced = true,
        .size = sizeof(KubePdb),
        .decode = pdb_decode,
        .done = pdb_done,
        .shape = &kube_shape_pdb,
};

bool kube_pdb_matches(const KubePdb *pdb, const KubePod *pod) {
        assert(pdb);
        assert(pod);
        return streq_ptr(pdb->object.meta.ns, pod->object.meta.ns) &&
               selector_matches(pdb->selector, &pod->object.meta.labels);
}

bool kube_pdb_lets_unready_pass(const KubePdb *pdb) {
        return pdb->always_allow_unhealthy ||
               (pdb->desired_healthy > 0 && pdb->current_healthy >= pdb->desired_healthy);
}

/* Reference: eviction.go, canIgnorePDB and the unhealthy pod policy. */
bool kube_pdb_passes_by(const KubePdb *pdb, const KubePod *pod) {
        if (pod->phase == POD_PENDING || pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED ||
            pod->object.meta.deletion_usec > 0)
                return true;
        return !pod->ready && kube_pdb_lets_unready_pass(pdb);
}

static bool is_observed(const KubePdb *pdb) {
        return pdb->observed_generation >= pdb->object.meta.generation;
}

int64_t kube_pdb_allowed(const KubePdb *pdb) {
        return is_observed(pdb) ? pdb->disruptions_allowed : 0;
}

bool kube_pdb_never_allows(const KubePdb *pdb) {
        return pdb->sync_failed || (is_observed(pdb) && pdb->expected_pods > 0 && pdb->desired_healthy >= pdb->expected_pods);
}
