/* SPDX-License-Identifier: Apache-2.0 */
#include "kube-decode.h"
#include "kube-protobuf.h"
#include "string-util.h"

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
        return decoder_finish(&d);
}

static void pdb_done(KubeObject *o, InternPool *pool) {
        selector_free(((KubePdb *) o)->selector);
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

int64_t kube_pdb_allowed(const KubePdb *pdb) {
        return pdb->observed_generation >= pdb->object.meta.generation ? pdb->disruptions_allowed : 0;
}
