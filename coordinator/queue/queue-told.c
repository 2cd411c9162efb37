/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-told.h"

#include "marks.h"
#include "string-util.h"

static bool is_named(const Interruption *i, const Notice *notice) {
        return notice && streq(i->notice->id, notice->id);
}

static QueueTold told_by(const Interruption *i, const Notice *notice, InterruptionDelete deletes) {
        return (QueueTold){ .is_told = true,
                            .is_same = is_named(i, notice),
                            .is_over = interruption_is_over(i),
                            .is_now = notice_is_now(i->notice),
                            .deletes = interruption_delete_counts(deletes, i->notice),
                            .is_for_good = notice_ends_for_good(i->notice),
                            .usec = notice_announced(i->notice),
                            .said_usec = i->notice->said_usec,
                            .own_usec = i->notice->own_announced_usec > 0 ? i->notice->own_announced_usec : notice_announced(i->notice) };
}

void queue_told_of_claim(const KubeNodeClaim *claim, const KubeNode *n, const Notice *notice, InterruptionDelete deletes, usec_t wall_usec,
                         QueueFacts *f) {
        const Interruption *i = claim->heard;

        f->told = (QueueTold){ .usec = USEC_INFINITY };
        f->is_going = claim->object.meta.deletion_usec > 0;
        if (!i)
                return;
        f->told = told_by(i, notice, deletes);
        f->told.is_on_node = n && n->heard && streq(n->heard->notice->id, i->notice->id) && !interruption_is_over(n->heard);
        f->told.is_begun = f->told.is_on_node && n->heard->phase != INTERRUPTION_PLANNED;
        f->told.is_told = !f->told.is_over && (f->told.deletes || f->told.is_begun || notice_window_end(i->notice) > wall_usec);
}

void queue_told_of_node(const KubeNode *n, const Notice *notice, InterruptionDelete deletes, usec_t wall_usec, QueueFacts *f) {
        const Interruption *i = n->heard;

        f->on_node = (QueueTold){ .usec = USEC_INFINITY };
        /* What is over is remembered over a boot. */
        if (!i || (kube_node_has_booted_since(n, i) && !interruption_is_over(i)))
                return;
        f->on_node = told_by(i, notice, deletes);
        f->on_node.is_begun = i->phase != INTERRUPTION_PLANNED && !f->on_node.is_over;
        f->on_node.is_told = (f->on_node.is_same && !kube_node_has_booted_since(n, i)) || (!f->on_node.is_over && notice_window_end(i->notice) > wall_usec);
        f->is_overruled = f->on_node.is_same && f->on_node.is_over;
}

static char *body_of(const KubeObject *o, const char *key, const char *text) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "uid", o->meta.uid);
        json_add_string(w, "resourceVersion", o->meta.resource_version);
        json_open_object(w, "annotations");
        json_add_string(w, key, text);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *queue_told_claim_body(const KubeNodeClaim *claim, const Notice *notice, InterruptionPhase phase, const KubeNode *n) {
        _cleanup_free_ char *text = interruption_format_of_claim(notice, phase, n ? n->boot_id : NULL);

        return text ? body_of(&claim->object, ANNOTATION_INTERRUPTION, text) : NULL;
}

char *queue_told_node_body(const KubeNode *n, const Notice *notice, InterruptionPhase phase) {
        _cleanup_free_ char *text = interruption_format(notice, phase, 0, strempty(n->boot_id));

        return text ? body_of(&n->object, ANNOTATION_HEARD, text) : NULL;
}
