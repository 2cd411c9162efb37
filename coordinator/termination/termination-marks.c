/* SPDX-License-Identifier: Apache-2.0 */
#include "termination-marks.h"

#include "marks.h"
#include "string-util.h"

static bool has_cordon_mark(const KubeNode *n, const char *key) {
        return object_meta_annotation(&n->object.meta, key);
}

static bool has_cordon_mark_of_others(const KubeNode *n) {
        return has_cordon_mark(n, ANNOTATION_CORDONED_BY_AGENT) ||
               has_cordon_mark(n, ANNOTATION_CORDONED_BY_VESPERCTL);
}

/* A cordon that nobody of vesper made is never claimed. */
static bool cordon_is_ours_to_claim(const KubeNode *n) {
        return !n->unschedulable || has_cordon_mark_of_others(n) ||
               has_cordon_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR);
}

static void open_patch(JsonWriter *w, const KubeObject *o) {
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "resourceVersion", o->meta.resource_version);
}

static int finish_patch(JsonWriter *w, char **ret_body) {
        json_close_object(w);
        *ret_body = json_writer_steal(w, NULL);
        return *ret_body ? 1 : -ENOMEM;
}

static void add_taint(JsonWriter *w, const Taint *t) {
        json_open_object(w, NULL);
        json_add_string(w, "key", t->key);
        if (!isempty(t->value))
                json_add_string(w, "value", t->value);
        json_add_string(w, "effect", t->effect);
        json_add_time(w, "timeAdded", t->time_added_usec);
        json_close_object(w);
}

/* The annotation alone says whose it is: a taint of this key that was there before is a person's. */
static bool is_marked_out_of_service(const KubeNode *n) {
        return object_meta_annotation(&n->object.meta, ANNOTATION_OUT_OF_SERVICE);
}

static bool is_our_out_of_service(const KubeNode *n, const Taint *t) {
        return is_marked_out_of_service(n) && streq_ptr(t->key, TAINT_OUT_OF_SERVICE) &&
               streq_ptr(t->value, TAINT_OUT_OF_SERVICE_VALUE) && streq_ptr(t->effect, "NoExecute");
}

/* The whole list, for a merge patch replaces lists: all taints but the one of a removal, and those that go with
 * a release, or with the cordon. */
static void add_others_taints(JsonWriter *w, const KubeNode *n, bool release, bool uncordon) {
        for (size_t i = 0; i < n->n_taints; i++) {
                const char *key = n->taints[i].key; /* NULL: an invalid Node */

                if (!streq_ptr(key, TAINT_DISRUPTED) &&
                    !(release && is_our_out_of_service(n, n->taints + i)) && !(uncordon && streq_ptr(key, TAINT_UNSCHEDULABLE)))
                        add_taint(w, n->taints + i);
        }
}

/* The second one is what the node controller makes of a cordon, by a GET and a PATCH, and takes off with it:
 * of many nodes at once that are as many calls as all of ours until they are drained. */
static void add_our_taints(JsonWriter *w, const KubeNode *n) {
        add_taint(w, &(Taint){ .key = TAINT_DISRUPTED, .value = "", .effect = "NoSchedule" });
        if (!kube_node_has_taint(n, TAINT_UNSCHEDULABLE, "NoSchedule"))
                add_taint(w, &(Taint){ .key = TAINT_UNSCHEDULABLE, .value = "", .effect = "NoSchedule" });
}

static void add_cordon_mark(JsonWriter *w, const char *why) {
        _cleanup_(json_writer_freep) JsonWriter *inner = NULL;
        _cleanup_free_ char *text = NULL;

        if (json_writer_new(&inner) < 0)
                return;
        json_open_object(inner, NULL);
        json_add_string(inner, "why", why);
        json_close_object(inner);
        text = json_writer_steal(inner, NULL);
        json_add_string(w, ANNOTATION_CORDONED_BY_COORDINATOR, text ? text : "{}");
}

static int cordon_patch(const KubeNode *n, const char *why, usec_t deadline_usec, bool let_go,
                        char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        const ObjectMeta *m = &n->object.meta;
        char deadline[RFC3339_MAX] = "";
        bool claim, taint, label, mark_deadline, unmark_deadline;

        assert(n && why && ret_body);
        if (deadline_usec != USEC_INFINITY)
                rfc3339_format(deadline_usec, deadline);
        claim = cordon_is_ours_to_claim(n) && !has_cordon_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR);
        taint = !n->has_unread_taints && !kube_node_has_taint(n, TAINT_DISRUPTED, "NoSchedule");
        label = let_go && !object_meta_label(m, LABEL_EXCLUDE_FROM_LB);
        mark_deadline = deadline[0] && !streq_ptr(object_meta_annotation(m, ANNOTATION_DEADLINE), deadline);
        unmark_deadline = !deadline[0] && object_meta_annotation(m, ANNOTATION_DEADLINE);
        if (n->unschedulable && !claim && !taint && !label && !mark_deadline && !unmark_deadline)
                return 0;

        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, &n->object);
        json_open_object(w, "annotations");
        if (claim)
                add_cordon_mark(w, why);
        if (mark_deadline)
                json_add_string(w, ANNOTATION_DEADLINE, deadline);
        if (unmark_deadline)
                json_add_null(w, ANNOTATION_DEADLINE);
        json_close_object(w);
        if (label) {
                json_open_object(w, "labels");
                json_add_string(w, LABEL_EXCLUDE_FROM_LB, LABEL_EXCLUDE_FROM_LB_VALUE);
                json_close_object(w);
        }
        json_close_object(w);
        json_open_object(w, "spec");
        json_add_bool(w, "unschedulable", true);
        if (taint) {
                json_open_array(w, "taints");
                add_others_taints(w, n, false, false);
                add_our_taints(w, n);
                json_close_array(w);
        }
        json_close_object(w);
        return finish_patch(w, ret_body);
}

int termination_cordon_patch(const KubeNode *n, const char *why, usec_t deadline_usec, char **ret_body) {
        return cordon_patch(n, why, deadline_usec, true, ret_body);
}

int termination_hold_patch(const KubeNode *n, const char *why, usec_t deadline_usec, char **ret_body) {
        return cordon_patch(n, why, deadline_usec, false, ret_body);
}

static void add_finalizers(JsonWriter *w, const KubeObject *o, bool ours) {
        json_open_array(w, "finalizers");
        for (char **f = o->meta.finalizers; f && *f; f++)
                if (!streq(*f, FINALIZER_TERMINATION))
                        json_add_string(w, NULL, *f);
        if (ours)
                json_add_string(w, NULL, FINALIZER_TERMINATION);
        json_close_array(w);
}

static int finalizer_patch(const KubeObject *o, bool wanted, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(o && ret_body);
        if (object_meta_has_finalizer(&o->meta, FINALIZER_TERMINATION) == wanted)
                return 0;
        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, o);
        add_finalizers(w, o, wanted);
        json_close_object(w);
        return finish_patch(w, ret_body);
}

int termination_annotation_patch(const KubeObject *o, const char *key, const char *value, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(o && key && ret_body);
        if (streq_ptr(object_meta_annotation(&o->meta, key), value))
                return 0;
        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, o);
        json_open_object(w, "annotations");
        if (value)
                json_add_string(w, key, value);
        else
                json_add_null(w, key);
        json_close_object(w);
        json_close_object(w);
        return finish_patch(w, ret_body);
}

int termination_finalizer_patch(const KubeObject *o, char **ret_body) {
        return finalizer_patch(o, false, ret_body);
}

int termination_add_finalizer_patch(const KubeObject *o, char **ret_body) {
        return finalizer_patch(o, true, ret_body);
}

int termination_adopt_patch(const KubeNode *n, const char *pool, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        bool finalizer = !object_meta_has_finalizer(&n->object.meta, FINALIZER_TERMINATION);
        bool label = !isempty(pool) && !object_meta_label(&n->object.meta, LABEL_NODE_POOL);

        assert(n && pool && ret_body);
        if (!finalizer && !label)
                return 0;
        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, &n->object);
        if (finalizer)
                add_finalizers(w, &n->object, true);
        if (label) {
                json_open_object(w, "labels");
                json_add_string(w, LABEL_NODE_POOL, pool);
                json_close_object(w);
        }
        json_close_object(w);
        return finish_patch(w, ret_body);
}

int termination_out_of_service_patch(const KubeNode *n, usec_t now_usec, char **ret_body) {
        const Taint taint = { .key = TAINT_OUT_OF_SERVICE,
                              .value = TAINT_OUT_OF_SERVICE_VALUE,
                              .effect = "NoExecute",
                              .time_added_usec = now_usec };
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char now[RFC3339_MAX];

        assert(n && ret_body);
        if (n->has_unread_taints || kube_node_has_taint(n, TAINT_OUT_OF_SERVICE, NULL) || is_marked_out_of_service(n))
                return 0;
        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        rfc3339_format(now_usec, now);
        open_patch(w, &n->object);
        json_open_object(w, "annotations");
        json_add_string(w, ANNOTATION_OUT_OF_SERVICE, now);
        json_close_object(w);
        json_close_object(w);
        json_open_object(w, "spec");
        json_open_array(w, "taints");
        for (size_t i = 0; i < n->n_taints; i++)
                add_taint(w, n->taints + i);
        add_taint(w, &taint);
        json_close_array(w);
        json_close_object(w);
        return finish_patch(w, ret_body);
}

int termination_in_service_patch(const KubeNode *n, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        assert(n && ret_body);
        if (n->has_unread_taints || !is_marked_out_of_service(n))
                return 0;
        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, &n->object);
        json_open_object(w, "annotations");
        json_add_null(w, ANNOTATION_OUT_OF_SERVICE);
        json_close_object(w);
        json_close_object(w);
        json_open_object(w, "spec");
        json_open_array(w, "taints");
        for (size_t i = 0; i < n->n_taints; i++)
                if (!is_our_out_of_service(n, n->taints + i))
                        add_taint(w, n->taints + i);
        json_close_array(w);
        json_close_object(w);
        return finish_patch(w, ret_body);
}

static bool uncordons(const KubeNode *n) {
        return has_cordon_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR) && !has_cordon_mark_of_others(n) && n->unschedulable &&
               n->object.meta.deletion_usec == 0;
}

static bool label_goes(const KubeNode *n) {
        return streq_ptr(object_meta_label(&n->object.meta, LABEL_EXCLUDE_FROM_LB), LABEL_EXCLUDE_FROM_LB_VALUE) &&
               !has_cordon_mark(n, ANNOTATION_CORDONED_BY_AGENT);
}

int termination_heard_patch(const KubeNode *n, const char *heard, HeardCordon cordon, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        bool marked = has_cordon_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR);
        bool puts = cordon == HEARD_CORDON_PUT, takes = cordon == HEARD_CORDON_LEAVE || cordon == HEARD_CORDON_OPEN;

        assert(n && ret_body);
        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, &n->object);
        json_add_string(w, "uid", n->object.meta.uid);
        json_open_object(w, "annotations");
        if (heard)
                json_add_string(w, ANNOTATION_HEARD, heard);
        else
                json_add_null(w, ANNOTATION_HEARD);
        if (puts && !marked && cordon_is_ours_to_claim(n))
                add_cordon_mark(w, "it is drained for what the interruption queue announced");
        if (takes && marked)
                json_add_null(w, ANNOTATION_CORDONED_BY_COORDINATOR);
        json_close_object(w);
        json_open_object(w, "labels");
        if (puts && !object_meta_label(&n->object.meta, LABEL_EXCLUDE_FROM_LB))
                json_add_string(w, LABEL_EXCLUDE_FROM_LB, LABEL_EXCLUDE_FROM_LB_VALUE);
        if (takes && label_goes(n))
                json_add_null(w, LABEL_EXCLUDE_FROM_LB);
        json_close_object(w);
        json_close_object(w);
        if (puts || (cordon == HEARD_CORDON_OPEN && uncordons(n))) {
                json_open_object(w, "spec");
                if (puts)
                        json_add_bool(w, "unschedulable", true);
                else
                        json_add_null(w, "unschedulable");
                json_close_object(w);
        }
        return finish_patch(w, ret_body);
}

int termination_release_patch(const KubeNode *n, const char *announced, char **ret_body) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        const ObjectMeta *m = &n->object.meta;
        bool cordon = has_cordon_mark(n, ANNOTATION_CORDONED_BY_COORDINATOR);
        bool taint = kube_node_has_taint(n, TAINT_DISRUPTED, NULL);
        bool label = label_goes(n);
        bool deadline = object_meta_annotation(m, ANNOTATION_DEADLINE);
        bool reboot = object_meta_annotation(m, ANNOTATION_REBOOT_FOR_REPAIR);
        bool finalizer = object_meta_has_finalizer(m, FINALIZER_TERMINATION);
        bool out = !n->has_unread_taints && is_marked_out_of_service(n);
        bool pool = object_meta_label(m, LABEL_NODE_POOL);
        bool tells = !streq_ptr(object_meta_annotation(m, ANNOTATION_ANNOUNCED), announced);
        bool uncordon = uncordons(n), heard = object_meta_annotation(m, ANNOTATION_HEARD);
        bool let_go = !announced && object_meta_annotation(m, ANNOTATION_LET_GO);

        assert(n && ret_body);
        if (announced && heard) /* whoever acts upon that next goes on with its drain */
                heard = cordon = uncordon = label = false;
        if (!cordon && !taint && !label && !pool && !deadline && !reboot && !finalizer && !out && !heard && !tells && !let_go)
                return 0;

        if (json_writer_new(&w) < 0)
                return -ENOMEM;
        open_patch(w, &n->object);
        if (finalizer)
                add_finalizers(w, &n->object, false);
        json_open_object(w, "annotations");
        if (let_go)
                json_add_null(w, ANNOTATION_LET_GO);
        if (cordon)
                json_add_null(w, ANNOTATION_CORDONED_BY_COORDINATOR);
        if (deadline)
                json_add_null(w, ANNOTATION_DEADLINE);
        if (reboot)
                json_add_null(w, ANNOTATION_REBOOT_FOR_REPAIR);
        if (out)
                json_add_null(w, ANNOTATION_OUT_OF_SERVICE);
        if (heard)
                json_add_null(w, ANNOTATION_HEARD);
        if (tells && announced)
                json_add_string(w, ANNOTATION_ANNOUNCED, announced);
        else if (tells)
                json_add_null(w, ANNOTATION_ANNOUNCED);
        json_close_object(w);
        if (label || pool) {
                json_open_object(w, "labels");
                if (label)
                        json_add_null(w, LABEL_EXCLUDE_FROM_LB);
                if (pool)
                        json_add_null(w, LABEL_NODE_POOL);
                json_close_object(w);
        }
        json_close_object(w);
        if (uncordon || taint || out) {
                json_open_object(w, "spec");
                if (uncordon)
                        json_add_null(w, "unschedulable");
                if (taint || out) {
                        json_open_array(w, "taints");
                        add_others_taints(w, n, true, uncordon);
                        json_close_array(w);
                }
                json_close_object(w);
        }
        return finish_patch(w, ret_body);
}
