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
        _cleanup_(interruption_done) Interruption i = { 0 };

        if (interruption_of_claim(claim, &i) >= 0 && notice_ends_machine(i.notice))
                note_told(i.notice, f);
}

int queue_told_of_node(const KubeNode *n, const Notice *notice, usec_t wall_usec, QueueFacts *f) {
        _cleanup_(interruption_done) Interruption i = { 0 };
        bool is_same;
        int r = notice ? interruption_heard_of_node(n, &i) : -ENODATA;

        if (r < 0 || interruption_is_of_other_boot(&i, n) || !notice_ends_machine(i.notice))
                return r == -ENOMEM ? r : 0;
        is_same = streq(i.notice->id, notice->id);
        f->is_overruled = is_same && interruption_is_over(&i);
        if (!is_same && (interruption_is_over(&i) || notice_announced(i.notice) <= wall_usec))
                return 0;
        note_told(i.notice, f);
        f->is_drained = interruption_has_drained(&i);
        return 0;
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
        _cleanup_free_ char *text = interruption_format(notice, "Planned", 0, strempty(n->boot_id));

        return body_of(&n->object, ANNOTATION_HEARD, text);
}
