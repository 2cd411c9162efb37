/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-told.h"

#include "marks.h"
#include "string-util.h"

static char *body_of(const KubeObject *o, const char *text) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "uid", o->meta.uid);
        json_add_string(w, "resourceVersion", o->meta.resource_version);
        json_open_object(w, "annotations");
        json_add_string(w, ANNOTATION_ANNOUNCED, text);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *queue_told_list_body(const KubeObject *o, const AnnouncedList *l) {
        _cleanup_free_ char *text = announced_list_format(l);

        return text ? body_of(o, text) : NULL;
}

char *queue_told_body(const KubeObject *o, const AnnouncedList *l, const Notice *notice, AnnouncedState state, const KubeNode *n) {
        const Announced *same = announced_list_find(l, notice->id);
        const char *boot_id = n ? n->boot_id : NULL;
        _cleanup_(announced_list_done) AnnouncedList next = {};
        _cleanup_(notice_freep) Notice *over = NULL;
        int r;

        r = announced_list_copy(l, &next);
        if (r >= 0 && state == ANNOUNCED_CALLED_OFF && same)
                r = notice_copy(same->notice, &over);
        if (r >= 0 && over) {
                over->said_usec = MAX(over->said_usec, notice->said_usec);
                r = announced_list_put(&next, over, state, same->boot_id);
        }
        if (r >= 0 && !over)
                r = announced_list_put(&next, notice, state, boot_id);
        return r >= 0 ? queue_told_list_body(o, &next) : NULL;
}
