/* SPDX-License-Identifier: Apache-2.0 */
#include "event-acks.h"

#include "event-ack-rule.h"
#include "hashmap.h"
#include "log-catalog.h"
#include "log.h"
#include "marks.h"
#include "string-util.h"
#include "strv.h"
#include "termination-marks.h"

/* While any event is under way each change of a Node may matter: so often they are looked at together. */
#define TOGETHER_USEC (200 * USEC_PER_MSEC)

struct EventAcks {
        const TerminationContext *context;
        WorkQueue *queue;
        ObjectWrites *writes;
        Hashmap *concerned; /* names of Nodes that have an event which names others, or carry the annotation */
        char **told;        /* events that may be acknowledged, as the log says */
        usec_t done_usec;   /* loop_now(): the last look */
};

/* All of the view, each with what its agent says. */
typedef struct Scene {
        EventAckNode *nodes;
        Interruption *interruptions;
        size_t n;
} Scene;

static void scene_done(Scene *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->interruptions[i].notice)
                        interruption_done(&s->interruptions[i]);
        free(s->interruptions);
        free(s->nodes);
}

/* Cheap: most Nodes have neither. */
static bool is_concerned(const KubeNode *n) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_INTERRUPTION);

        return object_meta_annotation(&n->object.meta, ANNOTATION_ACK_OK) || (text && strstr(text, "\"resources\""));
}

void event_acks_see_node(EventAcks *a, const char *name, const KubeNode *n) {
        bool was = hashmap_contains(a->concerned, name), is = n && is_concerned(n);

        if (is && !was && hashmap_put(a->concerned, name, a) < 0)
                work_queue_note_lost(a->queue);
        if (was && !is)
                hashmap_remove(a->concerned, name);
        if (was || is || hashmap_size(a->concerned) > 0)
                (void) work_queue_add_at(a->queue, EVENT_ACKS_KEY, usec_add(a->done_usec, TOGETHER_USEC));
}

/* -ENOMEM. */
static int scene_read(const EventAcks *a, Scene *s) {
        const KubeNode *n;
        size_t size = 0;

        for (HashmapIterator it = {}; cluster_view_iterate_nodes(a->context->view, &it, &n);)
                size++;
        s->nodes = new0(EventAckNode, MAX(size, 1u));
        s->interruptions = new0(Interruption, MAX(size, 1u));
        if (!s->nodes || !s->interruptions)
                return -ENOMEM;
        for (HashmapIterator it = {}; s->n < size && cluster_view_iterate_nodes(a->context->view, &it, &n);) {
                Interruption *i = &s->interruptions[s->n];
                int r = interruption_of_node(n, i);

                if (r == -ENOMEM)
                        return r;
                event_ack_node_read(n, r < 0 ? NULL : i, &s->nodes[s->n]);
                s->n++;
        }
        return 0;
}

/* Each event once, as far as it names others. -ENOMEM. */
static int list_events(const Scene *s, char ***ret) {
        for (size_t i = 0; i < s->n; i++)
                if (s->nodes[i].event && s->nodes[i].resources && !strv_contains(*ret, s->nodes[i].event) &&
                    strv_extend(ret, s->nodes[i].event) < 0)
                        return -ENOMEM;
        return 0;
}

static void tell(EventAcks *a, const char *event) {
        if (strv_contains(a->told, event))
                return;
        log_event(a->context->env->log, LOG_LEVEL_NOTICE, MESSAGE_EVENT_ALL_DRAINED, LOG_FIELDS({ "NOTICE_ID", event }),
                  "All machines that event %s names are nodes of this cluster, and drained for it: their agents may acknowledge it ([Metadata] Acknowledge=all).",
                  event);
}

/* The events that may be. -ENOMEM. */
static int judge_events(EventAcks *a, const Scene *s, char ***ret) {
        _cleanup_strv_free_ char **events = NULL;
        int r;

        r = list_events(s, &events);
        STRV_FOREACH (event, events) {
                _cleanup_free_ char *why = NULL;

                if (r < 0)
                        break;
                r = event_ack_may(s->nodes, s->n, *event, &why);
                if (r > 0) {
                        tell(a, *event);
                        r = strv_extend(ret, *event);
                } else if (r == 0)
                        log_debug(a->context->env->log, "Event %s is not to be acknowledged yet: %s", *event, why);
        }
        return r;
}

static void write_ack(EventAcks *a, const KubeNode *n, const char *event) {
        ObjectWrite w = { .what = event ? "say that a cloud's event may be acknowledged on" : "take the word that a cloud's event may be acknowledged off",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = EVENT_ACKS_KEY };
        _cleanup_free_ char *body = NULL;
        int r = termination_annotation_patch(&n->object, ANNOTATION_ACK_OK, event, &body);

        if (r < 0)
                (void) work_queue_retry(a->queue, EVENT_ACKS_KEY);
        else if (r > 0)
                (void) object_writes_patch(a->writes, &w, KUBE_PATCH_MERGE, body);
}

void event_acks_reconcile(EventAcks *a) {
        _cleanup_strv_free_ char **may = NULL;
        _cleanup_(scene_done) Scene s = { 0 };

        a->done_usec = loop_now(a->context->env->loop);
        if (scene_read(a, &s) < 0 || judge_events(a, &s, &may) < 0) {
                (void) work_queue_retry(a->queue, EVENT_ACKS_KEY);
                return;
        }
        strv_free(a->told);
        a->told = strv_copy(may);
        for (size_t i = 0; i < s.n; i++) {
                const EventAckNode *n = &s.nodes[i];
                const char *wanted = n->event && n->resources && n->is_drained && strv_contains(may, n->event) ? n->event : NULL;
                const KubeNode *node = streq_ptr(n->ack_ok, wanted) ? NULL : cluster_view_node(a->context->view, n->node);

                if (node)
                        write_ack(a, node, wanted);
        }
}

int event_acks_new(const TerminationContext *context, WorkQueue *queue, ObjectWrites *writes, EventAcks **ret) {
        _cleanup_(event_acks_freep) EventAcks *a = NULL;
        const KubeNode *n;
        int r;

        assert(context && queue && writes && ret);
        a = new0(EventAcks, 1);
        if (!a)
                return -ENOMEM;
        a->context = context;
        a->queue = queue;
        a->writes = writes;
        r = hashmap_new(0, &a->concerned);
        if (r < 0)
                return r;
        for (HashmapIterator it = {}; cluster_view_iterate_nodes(context->view, &it, &n);)
                event_acks_see_node(a, n->object.meta.name, n);
        *ret = TAKE_PTR(a);
        return 0;
}

EventAcks *event_acks_free(EventAcks *a) {
        if (!a)
                return NULL;
        hashmap_free(a->concerned);
        strv_free(a->told);
        return mfree(a);
}
