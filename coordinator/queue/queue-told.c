/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-told.h"

#include "marks.h"
#include "string-util.h"

static void note_told(const Notice *notice, QueueFacts *f) {
        f->is_told = true;
        f->told_usec = notice_announced(notice);
        f->is_told_now = notice_is_now(notice);
}

void queue_told_of_claim(const KubeNodeClaim *claim, QueueFacts *f) {
        if (claim->heard && notice_ends_machine(claim->heard->notice))
                note_told(claim->heard->notice, f);
}

void queue_told_of_node(const KubeNode *n, const Notice *notice, usec_t wall_usec, QueueFacts *f) {
        const Interruption *i = n->heard;
        bool is_same;

        if (!notice || !i || kube_node_has_booted_since(n, i) || !notice_ends_machine(i->notice))
                return;
        is_same = streq(i->notice->id, notice->id);
        f->is_overruled = is_same && interruption_is_over(i);
        if (!is_same && (interruption_is_over(i) || notice_announced(i->notice) <= wall_usec))
                return;
        note_told(i->notice, f);
        f->is_drained = interruption_has_drained(i);
}

static char *body_of(const KubeObject *o, const char *key, const char *text) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (!text || json_writer_new(&w) < 0)
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

char *queue_told_claim_body(const KubeNodeClaim *claim, const Notice *notice) {
        _cleanup_free_ char *text = interruption_format_of_claim(notice);

        return body_of(&claim->object, ANNOTATION_INTERRUPTION, text);
}

char *queue_told_node_body(const KubeNode *n, const Notice *notice) {
        _cleanup_free_ char *text = interruption_format(notice, INTERRUPTION_PLANNED, 0, strempty(n->boot_id));

        return body_of(&n->object, ANNOTATION_HEARD, text);
}
