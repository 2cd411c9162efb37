/* SPDX-License-Identifier: Apache-2.0 */
#include "pause-mark.h"

#include "marks.h"
#include "string-util.h"

#define TEXT_BYTES_MAX 256u
#define RECORD_BYTES_MAX 4096u /* two such texts with each byte escaped, and a time */

void pause_mark_done(PauseMark *m) {
        free(m->by);
        free(m->command);
        *m = (PauseMark){};
}

static int take_text(const Json *v, char **ret) {
        const char *s = json_string_or_null(v);

        if (isempty(s))
                return 0;
        *ret = str_sanitize(s, TEXT_BYTES_MAX);
        return *ret ? 0 : -ENOMEM;
}

static int read_record(const char *text, PauseMark *ret) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *since;
        int r;

        if (!text)
                return 0;
        r = json_parse(text, strlen(text), RECORD_BYTES_MAX, &doc, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = take_text(json_get(json_root(doc), "by"), &ret->by);
        if (r >= 0)
                r = take_text(json_get(json_root(doc), "command"), &ret->command);
        since = json_string_or_null(json_get(json_root(doc), "since"));
        if (since && rfc3339_parse(since, &ret->since_usec) < 0)
                ret->since_usec = 0;
        return r;
}

int pause_mark_read(const ObjectMeta *meta, PauseMark *ret) {
        int r;

        assert(meta && ret);
        *ret = (PauseMark){};
        ret->is_paused = streq_ptr(object_meta_annotation(meta, ANNOTATION_PAUSED), "true");
        if (!ret->is_paused)
                return 0;
        r = read_record(object_meta_annotation(meta, ANNOTATION_PAUSED_BY), ret);
        if (r < 0)
                pause_mark_done(ret);
        return r;
}

static char *record_format(const char *by, const char *command, usec_t wall_now_usec) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;

        if (json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_add_string(w, "by", by);
        json_add_string(w, "command", command);
        json_add_time(w, "since", wall_now_usec);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

/* NULL: removes both annotations. */
static char *patch_of(const char *record) {
        return annotations_patch(
                (const KeyValue[]){ { ANNOTATION_PAUSED, record ? "true" : NULL }, { ANNOTATION_PAUSED_BY, record } }, 2);
}

char *pause_mark_set_patch(const char *by, const char *command, usec_t wall_now_usec) {
        _cleanup_free_ char *who = str_sanitize(by, TEXT_BYTES_MAX), *record = NULL;

        assert(by && command);
        if (who)
                record = record_format(who, command, wall_now_usec);
        return record ? patch_of(record) : NULL;
}

char *pause_mark_lift_patch(void) {
        return patch_of(NULL);
}

char *pause_mark_text(const PauseMark *m) {
        _cleanup_strbuf_ StrBuf b = {};
        char since[RFC3339_MAX];

        strbuf_add(&b, "");
        if (m->by)
                strbuf_addf(&b, ", set by %s", m->by);
        if (m->by && m->command)
                strbuf_addf(&b, " with 'vesperctl %s'", m->command);
        if (m->since_usec > 0) {
                rfc3339_format(m->since_usec, since);
                strbuf_addf(&b, "%s at %s", m->by ? "" : ", set", since);
        }
        return strbuf_steal(&b);
}
