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

/* k8s.io/api: policy/v1/generated.proto */
static const ProtobufField spec_fields[] = {
        { 2, "selector", PROTOBUF_MESSAGE, false, &kube_shape_selector },
        { 4, "unhealthyPodEvictionPolicy", PROTOBUF_STRING_KEPT },
};
static const ProtobufShape spec_shape = PROTOBUF_SHAPE(spec_fields);

static const ProtobufField status_fields[] = {
        { 1, "observedGeneration", PROTOBUF_INT }, { 3, "disruptionsAllowed", PROTOBUF_INT },
        { 4, "currentHealthy", PROTOBUF_INT },     { 5, "desiredHealthy", PROTOBUF_INT },
        { 6, "expectedPods", PROTOBUF_INT },
};
static const ProtobufShape status_shape = PROTOBUF_SHAPE(status_fields);

static const ProtobufField pdb_fields[] = {
        { 1, "metadata", PROTOBUF_MESSAGE, false, &kube_shape_meta },
        { 2, "spec", PROTOBUF_MESSAGE, false, &spec_shape },
        { 3, "status", PROTOBUF_MESSAGE, false, &status_shape },
};
static const ProtobufShape pdb_shape = PROTOBUF_SHAPE(pdb_fields);

const KubeKind kube_pdb_kind = {
        .group = "policy",
        .version = "v1",
        .plural = "poddisruptionbudgets",
        .kind = "PodDisruptionBudget",
        .namespaced = true,
        .size = sizeof(KubePdb),
        .decode = pdb_decode,
        .done = pdb_done,
        .shape = &pdb_shape,
};

bool kube_pdb_matches(const KubePdb *pdb, const KubePod *pod) {
        assert(pdb);
        assert(pod);
        return streq_ptr(pdb->object.meta.ns, pod->object.meta.ns) &&
               selector_matches(pdb->selector, &pod->object.meta.labels);
}
