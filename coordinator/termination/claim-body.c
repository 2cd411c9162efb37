/* SPDX-License-Identifier: Apache-2.0 */
#include "claim-body.h"

#include "marks.h"

JsonWriter *claim_body_open(const KubeNodePool *pool, const char *name) {
        JsonWriter *w;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_string(w, "apiVersion", VESPER_GROUP "/" VESPER_VERSION_API);
        json_add_string(w, "kind", kube_node_claim_kind.kind);
        json_open_object(w, "metadata");
        json_add_string(w, "name", name);
        json_open_array(w, "finalizers");
        json_add_string(w, NULL, FINALIZER_TERMINATION);
        json_close_array(w);
        json_close_object(w);
        json_open_object(w, "spec");
        json_add_string(w, "nodePool", pool->object.meta.name);
        return w;
}

/* "90s", "30m", "24h": the form that the CRD asks for; parts of a second are rounded up. */
static void add_duration(JsonWriter *w, const char *key, usec_t usec) {
        uint64_t sec = usec / USEC_PER_SEC + (usec % USEC_PER_SEC > 0);

        if (usec == USEC_INFINITY)
                return;
        if (sec > 0 && sec % 3600 == 0)
                json_addf(w, key, "%lluh", (unsigned long long) sec / 3600);
        else if (sec > 0 && sec % 60 == 0)
                json_addf(w, key, "%llum", (unsigned long long) sec / 60);
        else
                json_addf(w, key, "%llus", (unsigned long long) sec);
}

char *claim_body_close(JsonWriter *w, const KubeNodePool *pool) {
        char *body;

        add_duration(w, "terminationGracePeriod", pool->termination_grace_usec);
        add_duration(w, "expireAfter", pool->disruption.expire_after_usec);
        json_close_object(w);
        json_close_object(w);
        body = json_writer_steal(w, NULL);
        json_writer_free(w);
        return body;
}
