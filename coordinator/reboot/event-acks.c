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

/* A drain of all that an event names takes its time; what is waited for longer than this is told to people. */
#define TELL_WAIT_USEC (2 * USEC_PER_MINUTE)

/* What an event waits for, whose nodes are drained in part. */
typedef struct Wait {
        usec_t due_usec;   /* loop_now(): not told (again) before; at first two minutes after the first of its nodes was drained */
        char *why;         /* as the log says; NULL: nothing yet */
        bool seen;         /* by this look */
} Wait;

struct EventAcks {
        const TerminationContext *context;
        WorkQueue *queue;
        ObjectWrites *writes;
        Hashmap *concerned; /* names of Nodes that have an event which names others, or carry the annotation */
        char **told;        /* events that may be acknowledged, as the log says */
        Hashmap *waits;     /* id of an event that may not be, and for which a node is drained -> Wait */
        usec_t done_usec;   /* loop_now(): the last look */
};

/* All of the view, each with what its agent says. */
typedef struct Scene {
        EventAckNode *nodes;
        size_t n;
} Scene;

static void scene_done(Scene *s) {
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
        if (!s->nodes)
                return -ENOMEM;
        for (HashmapIterator it = {}; s->n < size && cluster_view_iterate_nodes(a->context->view, &it, &n);)
                event_ack_node_read(n, &s->nodes[s->n++]);
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

/* By itself the event begins then (wall clock); 0: not said. */
static usec_t begin_of(const Scene *s, const char *event) {
        for (size_t i = 0; i < s->n; i++)
                if (streq_ptr(s->nodes[i].event, event) && s->nodes[i].announced_usec > 0)
                        return s->nodes[i].announced_usec;
        return 0;
}

static void *wait_free(void *wait) {
        Wait *w = wait;

        free(w->why);
        return mfree(w);
}

/* To those whose nodes stand empty for it. */
static void tell_wait(EventAcks *a, const Scene *s, const char *event, const char *why) {
        usec_t begin_usec = begin_of(s, event);
        char begin[RFC3339_MAX] = "its own time";

        if (begin_usec > 0)
                rfc3339_format(begin_usec, begin);
        log_event(a->context->env->log, LOG_LEVEL_NOTICE, MESSAGE_EVENT_WAITS, LOG_FIELDS({ "NOTICE_ID", event }),
                  "Event %s names several machines, and no agent acknowledges it before all are drained: %s. Nodes that are drained for it stay so; the cloud begins it at %s in any case.",
                  event, why, begin);
        for (size_t i = 0; i < s->n; i++) {
                const KubeNode *node = streq_ptr(s->nodes[i].event, event) && s->nodes[i].is_drained
                                               ? cluster_view_node(a->context->view, s->nodes[i].node)
                                               : NULL;
                EventObject o;

                if (!node)
                        continue;
                o = event_object(&node->object);
                event_record(a->context->recorder, &o, EVENT_NORMAL, "EventNotAcknowledged",
                             "This node is drained for event %s, which is not acknowledged before its time as it names other machines, too: %s. It begins at %s in any case",
                             event, why, begin);
        }
}

/* Where the reason is another one, but of one event at most every two minutes. -ENOMEM. */
static int see_wait(EventAcks *a, const Scene *s, const char *event, const char *why) {
        usec_t now = loop_now(a->context->env->loop);
        Wait *w = hashmap_get(a->waits, event);
        bool any = false;
        int r;

        for (size_t i = 0; i < s->n && !any; i++)
                any = streq_ptr(s->nodes[i].event, event) && s->nodes[i].is_drained;
        if (!any)
                return 0;
        if (!w) {
                w = new0(Wait, 1);
                if (!w)
                        return -ENOMEM;
                w->due_usec = usec_add(now, TELL_WAIT_USEC);
                r = hashmap_put(a->waits, event, w);
                if (r < 0) {
                        wait_free(w);
                        return r;
                }
        }
        w->seen = true;
        if (streq_ptr(w->why, why))
                return 0;
        if (now < w->due_usec) {
                (void) work_queue_add_at(a->queue, EVENT_ACKS_KEY, w->due_usec);
                return 0;
        }
        w->due_usec = usec_add(now, TELL_WAIT_USEC);
        r = free_and_strdup(&w->why, why);
        if (r >= 0)
                tell_wait(a, s, event, why);
        return r;
}

static void forget_waits(EventAcks *a) {
        const char *event;
        void *value;

        for (HashmapIterator it = {}; hashmap_iterate(a->waits, &it, &event, &value);) {
                Wait *w = value;

                if (!w->seen) {
                        hashmap_remove(a->waits, event);
                        wait_free(w);
                } else
                        w->seen = false;
        }
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
                        r = see_wait(a, s, *event, why);
        }
        if (r >= 0)
                forget_waits(a);
        return r;
}

static void write_ack(EventAcks *a, const KubeNode *n, const char *event) {
        ObjectWrite w = { .what = event ? "say that a cloud's event may be acknowledged on" : "take the word that a cloud's event may be acknowledged off",
                          .target = { .kind = &kube_node_kind, .name = n->object.meta.name },
                          .state = n->object.meta.resource_version,
                          .reconcile_key = EVENT_ACKS_KEY };
        _cleanup_free_ char *body = NULL;

        (void) termination_annotation_patch(&n->object, ANNOTATION_ACK_OK, event, &body);
        if (body)
                (void) object_writes_patch(a->writes, &w, KUBE_PATCH_MERGE, body);
        else /* out of memory */
                (void) work_queue_retry(a->queue, EVENT_ACKS_KEY);
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
        if (r >= 0)
                r = hashmap_new(0, &a->waits);
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
        hashmap_free_with(a->waits, wait_free);
        strv_free(a->told);
        return mfree(a);
}

void event_acks_next_wakeup(const EventAcks *a, Wakeups *w) {
        const char *event;
        const void *value;

        for (HashmapIterator it = {}; hashmap_iterate(a->waits, &it, &event, (void **) &value);) {
                const Wait *x = value;

                if (x->why) /* the reason is logged, and the watch of Nodes shows when it changes */
                        continue;
                wakeups_unfinished(w, "acknowledgement of event", event, "not all nodes are drained",
                                   EVENT_ACKS_WAKEUP_USEC);
                wakeups_key(w, a->queue, EVENT_ACKS_KEY);
        }
}
