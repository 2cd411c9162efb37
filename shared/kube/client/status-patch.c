/* SPDX-License-Identifier: Apache-2.0 */
#include "status-patch.h"

#include "kube-scheduling.h"
#include "string-util.h"

static bool is_node(const KubeKind *kind) {
        return kind == &kube_node_kind || kind == &kube_scheduled_node_kind;
}

KubePatchType status_patch_type(const KubeKind *kind) {
        return is_node(kind) ? KUBE_PATCH_STRATEGIC : KUBE_PATCH_MERGE;
}

static JsonWriter *open_patch(const KubeObject *o, bool of_version) {
        JsonWriter *w;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        if (is_node(o->kind))
                json_add_string(w, "uid", o->meta.uid);
        if (of_version || !is_node(o->kind))
                json_add_string(w, "resourceVersion", o->meta.resource_version);
        json_close_object(w);
        json_open_object(w, "status");
        return w;
}

JsonWriter *status_patch_open(const KubeObject *o) {
        return open_patch(o, false);
}

JsonWriter *status_patch_open_of_version(const KubeObject *o) {
        return open_patch(o, true);
}

static bool is_dropped(const char *const *dropped, const char *type) {
        for (; dropped && *dropped; dropped++)
                if (streq(*dropped, type))
                        return true;
        return false;
}

static void add_ours(JsonWriter *w, const KubeObject *o, const Condition *ours, usec_t heartbeat_usec, const Condition *there) {
        bool is_versioned = o->kind == &kube_node_pool_kind || o->kind == &kube_node_budget_kind;
        Condition c = *ours;

        c.last_transition_usec = condition_since(there, c.status, c.last_transition_usec);
        condition_write(w, &c, is_node(o->kind) ? heartbeat_usec : 0, is_versioned ? o->meta.generation : 0);
}

/* A condition keeps its place in the list, whichever leader writes it. */
void status_patch_add_conditions(JsonWriter *w, const KubeObject *o, const Condition *ours, size_t n, usec_t heartbeat_usec,
                                 const char *const *dropped) {
        size_t n_there;
        const Condition *there = kube_object_conditions(o, &n_there);

        json_open_array(w, "conditions");
        for (size_t i = 0; i < n_there && !is_node(o->kind); i++) {
                const Condition *c = condition_find(ours, n, there[i].type);

                if (c)
                        add_ours(w, o, c, heartbeat_usec, there + i);
                else if (!is_dropped(dropped, there[i].type))
                        condition_write(w, there + i, 0, there[i].observed_generation);
        }
        for (size_t i = 0; i < n; i++) {
                const Condition *c = condition_find(there, n_there, ours[i].type);

                if (!c || is_node(o->kind))
                        add_ours(w, o, ours + i, heartbeat_usec, c);
        }
        json_close_array(w);
}

char *status_patch_close(JsonWriter *w) {
        char *body;

        json_close_object(w);
        json_close_object(w);
        body = json_writer_steal(w, NULL);
        json_writer_free(w);
        return body;
}
