/* SPDX-License-Identifier: Apache-2.0 */
#include "node-marks.h"

#include "marks.h"
#include "string-util.h"

#define MARK_BYTES_MAX 16384u

/* -- reading ------------------------------------------------------------------------------------ */

static const char *annotation(const KubeNode *n, const char *key) {
        return object_meta_annotation(&n->object.meta, key);
}

const Interruption *node_interruption(const KubeNode *n) {
        return n->interruption && interruption_is_complete(n->interruption) ? n->interruption : NULL;
}

static const Interruption *overruled_interruption(const KubeNode *n) {
        const Interruption *i = node_interruption(n);

        return i && interruption_is_overruled(i) ? i : NULL;
}

bool node_is_overruled(const KubeNode *n, const char *notice_id, const char *boot_id) {
        const Interruption *i = overruled_interruption(n);

        return i && boot_id_equal(i->boot_id, boot_id) && (!notice_id || streq(i->notice->id, notice_id));
}

bool node_has_marks(const KubeNode *n) {
        return annotation(n, ANNOTATION_CORDONED_BY_AGENT) || (annotation(n, ANNOTATION_INTERRUPTION) && !overruled_interruption(n));
}

bool node_has_marks_to_undo(const KubeNode *n) {
        return annotation(n, ANNOTATION_INTERRUPTION) ||
               (annotation(n, ANNOTATION_CORDONED_BY_AGENT) && n->object.meta.deletion_usec == 0);
}

int node_marks_boot_id(const KubeNode *n, char **ret) {
        const char *cordon = annotation(n, ANNOTATION_CORDONED_BY_AGENT), *boot_id = n->interruption ? n->interruption->boot_id : NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;

        *ret = NULL;
        if (isempty(boot_id)) {
                if (cordon && json_parse(cordon, strlen(cordon), MARK_BYTES_MAX, &doc, NULL) == -ENOMEM)
                        return -ENOMEM;
                boot_id = doc ? json_string_or_null(json_get(json_root(doc), "bootID")) : NULL;
        }
        if (isempty(boot_id))
                return 0;
        *ret = strdup(boot_id);
        return *ret ? 0 : -ENOMEM;
}

bool node_is_marked_with(const KubeNode *n, const char *notice_id, const char *boot_id) {
        const Interruption *i = node_interruption(n);

        return i && !interruption_is_overruled(i) && streq_ptr(i->notice->id, notice_id) && boot_id_equal(i->boot_id, boot_id);
}

bool node_is_cordoned_by_stranger(const KubeNode *n) {
        return n->unschedulable && !annotation(n, ANNOTATION_CORDONED_BY_AGENT) &&
               !annotation(n, ANNOTATION_CORDONED_BY_COORDINATOR) && !annotation(n, ANNOTATION_CORDONED_BY_VESPERCTL);
}

bool node_was_uncordoned(const KubeNode *n) {
        return !n->unschedulable && node_has_marks(n);
}

usec_t node_claim_deadline(const KubeNode *n) {
        const char *text = annotation(n, ANNOTATION_DEADLINE);
        usec_t deadline;

        return text && rfc3339_parse(text, &deadline) >= 0 ? deadline : 0;
}

static const char *const caused_types[] = { CONDITION_MAINTENANCE_PLANNED, CONDITION_MAINTENANCE_IN_PROGRESS,
                                            CONDITION_GRACEFUL_SHUTDOWN };

const Condition *node_own_condition(const KubeNode *n, const char *type) {
        const Condition *c = kube_node_condition(n, type);

        return condition_is_of_agent(c) ? c : NULL;
}

static bool is_true(const KubeNode *n, const char *type) {
        const Condition *c = kube_node_condition(n, type);

        return c && c->status == CONDITION_TRUE;
}

DrainConditions node_conditions(const KubeNode *n) {
        const Condition *drained = node_own_condition(n, CONDITION_DRAINED);

        if (drained && drained->status == CONDITION_TRUE)
                return NODE_CONDITIONS_DRAINED;
        if (drained || node_own_condition(n, CONDITION_DRAIN_IN_PROGRESS))
                return NODE_CONDITIONS_DRAINING;
        for (size_t i = 0; i < ELEMENTSOF(caused_types); i++)
                if (node_own_condition(n, caused_types[i]))
                        return NODE_CONDITIONS_PLANNED;
        return NODE_CONDITIONS_NONE;
}

bool node_conditions_stand(const KubeNode *n, DrainConditions wanted, NoticeKind kind) {
        if (wanted == NODE_CONDITIONS_PLANNED)
                return is_true(n, CONDITION_MAINTENANCE_PLANNED);
        return node_conditions(n) == wanted && (wanted != NODE_CONDITIONS_DRAINING || kind != NOTICE_SHUTDOWN ||
                                                is_true(n, CONDITION_GRACEFUL_SHUTDOWN));
}

/* -- writing ------------------------------------------------------------------------------------ */

/* {"metadata":{"resourceVersion":... and left open. */
static JsonWriter *begin_patch(const KubeNode *n) {
        JsonWriter *w;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "resourceVersion", n->object.meta.resource_version);
        return w;
}

static char *cordon_mark(const char *boot_id, const char *why) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_string(w, "bootID", boot_id);
        json_add_string(w, "why", why);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *node_patch_mark(const KubeNode *n, const char *interruption, const char *boot_id, const char *why,
                      bool *ret_claimed) {
        _cleanup_(json_writer_freep) JsonWriter *w = begin_patch(n);
        _cleanup_free_ char *mark = cordon_mark(boot_id, why);
        bool claimed = !node_is_cordoned_by_stranger(n);

        if (!w || !mark)
                return NULL;
        json_open_object(w, "annotations");
        json_add_string(w, ANNOTATION_INTERRUPTION, interruption);
        if (claimed)
                json_add_string(w, ANNOTATION_CORDONED_BY_AGENT, mark);
        json_close_object(w);
        if (!object_meta_label(&n->object.meta, LABEL_EXCLUDE_FROM_LB)) {
                json_open_object(w, "labels");
                json_add_string(w, LABEL_EXCLUDE_FROM_LB, LABEL_EXCLUDE_FROM_LB_VALUE);
                json_close_object(w);
        }
        json_close_object(w);
        if (claimed) {
                json_open_object(w, "spec");
                json_add_bool(w, "unschedulable", true);
                json_close_object(w);
        }
        json_close_object(w);
        *ret_claimed = claimed;
        return json_writer_steal(w, NULL);
}

char *node_patch_interruption(const KubeNode *n, const char *interruption) {
        return node_patch_annotation(n, ANNOTATION_INTERRUPTION, interruption);
}

char *node_patch_annotation(const KubeNode *n, const char *key, const char *value) {
        _cleanup_(json_writer_freep) JsonWriter *w = begin_patch(n);

        if (!w)
                return NULL;
        json_open_object(w, "annotations");
        if (value)
                json_add_string(w, key, value);
        else
                json_add_null(w, key);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static void add_condition(JsonWriter *w, const KubeNode *n, const char *type, ConditionStatus status, const char *reason,
                          const char *message, usec_t now_usec) {
        Condition c = { .type = type,
                        .status = status,
                        .reason = reason,
                        .message = message,
                        .last_transition_usec =
                                condition_since(kube_node_condition(n, type), status, now_usec) };

        if (condition_tells_cause(type) && is_true(n, type) && !node_own_condition(n, type))
                return;
        condition_write(w, &c, now_usec, 0);
}

static void delete_condition(JsonWriter *w, const KubeNode *n, const char *type) {
        if (!node_own_condition(n, type))
                return;
        json_open_object(w, NULL);
        json_add_string(w, "type", type);
        json_add_string(w, "$patch", "delete");
        json_close_object(w);
}

static const char *cause_of(NoticeKind kind) {
        return kind == NOTICE_SHUTDOWN      ? CONDITION_REASON_SHUTDOWN
               : kind == NOTICE_MANUAL      ? CONDITION_REASON_ADMIN
               : kind == NOTICE_MAINTENANCE ? CONDITION_REASON_WINDOW
                                            : CONDITION_REASON_AGENT;
}

/* The machine is taken out of service until it is gone or has booted anew; the shutdown waits for the drain alone. */
static void add_in_progress(JsonWriter *w, const KubeNode *n, bool drained, NoticeKind kind, const char *message,
                            usec_t now_usec) {
        delete_condition(w, n, CONDITION_MAINTENANCE_PLANNED);
        add_condition(w, n, CONDITION_MAINTENANCE_IN_PROGRESS, CONDITION_TRUE, cause_of(kind), message, now_usec);
        if (kind == NOTICE_SHUTDOWN)
                add_condition(w, n, CONDITION_GRACEFUL_SHUTDOWN, drained ? CONDITION_FALSE : CONDITION_TRUE,
                              drained ? CONDITION_REASON_DRAINED : CONDITION_REASON_SHUTDOWN, message, now_usec);
        else
                delete_condition(w, n, CONDITION_GRACEFUL_SHUTDOWN);
}

char *node_patch_conditions(const KubeNode *n, DrainConditions wanted, NoticeKind kind, const char *message,
                            usec_t wall_now_usec) {
        _cleanup_(json_writer_freep) JsonWriter *w = begin_patch(n);

        if (!w)
                return NULL;
        json_close_object(w);
        json_open_object(w, "status");
        json_open_array(w, "conditions");
        switch (wanted) {
        case NODE_CONDITIONS_NONE:
                delete_condition(w, n, CONDITION_DRAIN_IN_PROGRESS);
                delete_condition(w, n, CONDITION_DRAINED);
                for (size_t i = 0; i < ELEMENTSOF(caused_types); i++)
                        delete_condition(w, n, caused_types[i]);
                break;
        case NODE_CONDITIONS_PLANNED:
                add_condition(w, n, CONDITION_MAINTENANCE_PLANNED, CONDITION_TRUE, cause_of(kind), message, wall_now_usec);
                break;
        case NODE_CONDITIONS_DRAINING:
                add_condition(w, n, CONDITION_DRAIN_IN_PROGRESS, CONDITION_TRUE, CONDITION_REASON_AGENT, message,
                              wall_now_usec);
                /* Of an earlier drain: not true any more. */
                delete_condition(w, n, CONDITION_DRAINED);
                add_in_progress(w, n, false, kind, message, wall_now_usec);
                break;
        case NODE_CONDITIONS_DRAINED:
                add_condition(w, n, CONDITION_DRAIN_IN_PROGRESS, CONDITION_FALSE, CONDITION_REASON_AGENT, message,
                              wall_now_usec);
                add_condition(w, n, CONDITION_DRAINED, CONDITION_TRUE, CONDITION_REASON_AGENT, message, wall_now_usec);
                add_in_progress(w, n, true, kind, message, wall_now_usec);
                break;
        case _NODE_CONDITIONS_MAX:
                assert(false && "conditions of no kind");
        }
        json_close_array(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* What the interruption becomes when a person overrules it. 1: *ret (NULL: it goes); 0: it says so already. */
static int overruled_text(const KubeNode *n, char **ret) {
        const Interruption *i = node_interruption(n);

        *ret = NULL;
        if (!i || i->notice->kind == NOTICE_SHUTDOWN)
                return 1;
        if (interruption_is_overruled(i))
                return 0;
        *ret = interruption_format(i->notice, INTERRUPTION_RELEASED, 0, i->boot_id);
        return *ret ? 1 : -ENOMEM;
}

/* released: by a person. */
static int patch_off(const KubeNode *n, bool released, char **ret, bool *ret_uncordons) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *text = NULL;
        bool interruption = annotation(n, ANNOTATION_INTERRUPTION),
             cordon = annotation(n, ANNOTATION_CORDONED_BY_AGENT);
        bool shared = annotation(n, ANNOTATION_CORDONED_BY_COORDINATOR),
             deleting = n->object.meta.deletion_usec > 0;
        bool takes_cordon = cordon && !deleting,
             label = !shared && !deleting && (cordon || interruption) &&
                     streq_ptr(object_meta_label(&n->object.meta, LABEL_EXCLUDE_FROM_LB),
                               LABEL_EXCLUDE_FROM_LB_VALUE);

        if (interruption && released) {
                int r = overruled_text(n, &text);

                if (r < 0)
                        return r;
                interruption = r > 0;
        }
        if (!interruption && !takes_cordon)
                return 0;
        w = begin_patch(n);
        if (!w)
                return -ENOMEM;
        json_open_object(w, "annotations");
        if (text)
                json_add_string(w, ANNOTATION_INTERRUPTION, text);
        else if (interruption)
                json_add_null(w, ANNOTATION_INTERRUPTION);
        if (takes_cordon)
                json_add_null(w, ANNOTATION_CORDONED_BY_AGENT);
        json_close_object(w);
        if (label) {
                json_open_object(w, "labels");
                json_add_null(w, LABEL_EXCLUDE_FROM_LB);
                json_close_object(w);
        }
        json_close_object(w);
        *ret_uncordons = takes_cordon && !released && !shared && !annotation(n, ANNOTATION_CORDONED_BY_VESPERCTL) &&
                         n->unschedulable;
        if (*ret_uncordons) {
                json_open_object(w, "spec");
                json_add_null(w, "unschedulable");
                json_close_object(w);
        }
        json_close_object(w);
        *ret = json_writer_steal(w, NULL);
        return *ret ? 1 : -ENOMEM;
}

int node_patch_undo(const KubeNode *n, char **ret, bool *ret_uncordons) {
        return patch_off(n, false, ret, ret_uncordons);
}

int node_patch_overruled(const KubeNode *n, char **ret) {
        bool uncordons;

        return patch_off(n, true, ret, &uncordons);
}
