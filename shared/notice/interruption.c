/* SPDX-License-Identifier: Apache-2.0 */
#include "interruption.h"

#include "marks.h"
#include "string-util.h"

#define BYTES_MAX (16u * 1024u)
#define PHASE_BYTES_MAX 64u
#define BOOT_ID_BYTES_MAX 64u

void interruption_done(Interruption *i) {
        notice_free(i->notice);
        free(i->phase);
        free(i->boot_id);
        *i = (Interruption){ 0 };
}

static int read_members(const Json *o, Interruption *i) {
        static const JsonField fields[] = {
                { "phase", json_parse_strdup, offsetof(Interruption, phase), false },
                { "podsLeft", json_parse_int64, offsetof(Interruption, pods_left), false },
                { "bootID", json_parse_strdup, offsetof(Interruption, boot_id), false },
        };
        int r;

        i->pods_left = -1;
        r = json_dispatch(o, fields, ELEMENTSOF(fields), i, NULL);
        if (r >= 0)
                r = notice_from_json(o, &i->notice);
        if (r < 0)
                return r;
        if ((!i->phase && !(i->phase = strdup(""))) || (!i->boot_id && !(i->boot_id = strdup(""))))
                return -ENOMEM;
        return strlen(i->phase) > PHASE_BYTES_MAX || strlen(i->boot_id) > BOOT_ID_BYTES_MAX ? -EBADMSG : 0;
}

int interruption_parse(const char *text, Interruption *ret) {
        _cleanup_(interruption_done) Interruption i = { 0 };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        assert(text && ret);
        *ret = (Interruption){ 0 };
        r = json_parse(text, strlen(text), BYTES_MAX, &doc, NULL);
        if (r >= 0)
                r = json_is_object(json_root(doc)) ? read_members(json_root(doc), &i) : -EBADMSG;
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        *ret = i;
        i = (Interruption){ 0 };
        return 0;
}

bool interruption_is_of_other_boot(const Interruption *i, const KubeNode *n) {
        return !isempty(i->boot_id) && !isempty(n->boot_id) && !boot_id_equal(i->boot_id, n->boot_id);
}

int interruption_of_node(const KubeNode *n, Interruption *ret) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_INTERRUPTION);
        int r;

        *ret = (Interruption){ 0 };
        if (!text)
                return -ENODATA;
        r = interruption_parse(text, ret);
        if (r >= 0 && interruption_is_of_other_boot(ret, n)) {
                interruption_done(ret);
                return -ENODATA;
        }
        return r;
}

int interruption_of_claim(const KubeNodeClaim *c, Interruption *ret) {
        const char *text = object_meta_annotation(&c->object.meta, ANNOTATION_INTERRUPTION);

        *ret = (Interruption){ 0 };
        return text ? interruption_parse(text, ret) : -ENODATA;
}

int interruption_heard_of_node(const KubeNode *n, Interruption *ret) {
        const char *text = object_meta_annotation(&n->object.meta, ANNOTATION_HEARD);

        *ret = (Interruption){ 0 };
        return text ? interruption_parse(text, ret) : -ENODATA;
}

char *interruption_format(const Notice *n, const char *phase, size_t pods_left, const char *boot_id) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        notice_to_json(n, w);
        json_add_string(w, "phase", phase);
        json_add_int64(w, "podsLeft", (int64_t) pods_left);
        json_add_string(w, "bootID", boot_id);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *interruption_format_of_claim(const Notice *n) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        notice_to_json(n, w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

bool interruption_is_complete(const Interruption *i) {
        return notice_is_complete(i->notice) && !isempty(i->phase) && !isempty(i->boot_id);
}

bool interruption_is_overruled(const Interruption *i) {
        return streq(i->phase, INTERRUPTION_RELEASED);
}

bool interruption_is_over(const Interruption *i) {
        return interruption_is_overruled(i) || streq(i->phase, "Cancelled");
}

bool interruption_is_draining(const Interruption *i) {
        static const char *const done[] = { "Volumes", "Drained", "Ending" };

        if (isempty(i->phase) || interruption_is_over(i))
                return false;
        for (size_t k = 0; k < ELEMENTSOF(done); k++)
                if (streq(i->phase, done[k]))
                        return false;
        return true;
}

bool interruption_has_drained(const Interruption *i) {
        return streq(i->phase, "Drained") || streq(i->phase, "Ending");
}
