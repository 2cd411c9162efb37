/* SPDX-License-Identifier: Apache-2.0 */
#include "reboot-slots.h"

#include "interruption.h"
#include "marks.h"
#include "string-util.h"

#define TEXT_BYTES_MAX 4096u
/* It comes back to us in our own answer. */
#define ID_BYTES_MAX 128u
#define EVENT_BYTES_MAX 256u

/* One of the two annotations. */
typedef struct RebootText {
        char *id, *boot_id, *kind, *event, *by;
        usec_t until_usec;
        bool sent;
} RebootText;

static void reboot_text_done(RebootText *t) {
        free(t->id);
        free(t->boot_id);
        free(t->kind);
        free(t->event);
        free(t->by);
        *t = (RebootText){ 0 };
}

/* 0; -ENODATA: it is not there; -EBADMSG; -ENOMEM. */
static int read_text(const KubeNode *n, const char *key, RebootText *ret) {
        static const JsonField fields[] = {
                { "id", json_parse_strdup, offsetof(RebootText, id), true },
                { "bootID", json_parse_strdup, offsetof(RebootText, boot_id), false },
                { "kind", json_parse_strdup, offsetof(RebootText, kind), false },
                { "until", json_parse_rfc3339, offsetof(RebootText, until_usec), true },
                { "event", json_parse_strdup, offsetof(RebootText, event), false },
                { "by", json_parse_strdup, offsetof(RebootText, by), false },
                { "sent", json_parse_bool, offsetof(RebootText, sent), false },
        };
        const char *text = object_meta_annotation(&n->object.meta, key);
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        _cleanup_(reboot_text_done) RebootText t = { 0 };
        int r;

        if (!text)
                return -ENODATA;
        r = json_parse(text, strlen(text), TEXT_BYTES_MAX, &doc, NULL);
        if (r >= 0)
                r = json_dispatch(json_root(doc), fields, ELEMENTSOF(fields), &t, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        if (isempty(t.id) || strlen(t.id) > ID_BYTES_MAX || strlen(strempty(t.event)) > EVENT_BYTES_MAX)
                return -EBADMSG;
        *ret = t;
        t = (RebootText){ 0 };
        return 0;
}

static int read_request(const KubeNode *n, RebootText *ret) {
        int r = read_text(n, ANNOTATION_SHUTDOWN_REQUEST, ret);

        if (r < 0)
                return r;
        return !isempty(ret->boot_id) && (streq_ptr(ret->kind, "reboot") || streq_ptr(ret->kind, "poweroff"))
                       ? 0
                       : -EBADMSG;
}

static bool is_leaving(const KubeNode *n) {
        const Interruption *i = kube_node_standing_interruption(n);

        return n->object.meta.deletion_usec > 0 || (i && notice_ends_machine(i->notice));
}

static RebootRequestState state_of_request(const KubeNode *n, const RebootText *request, usec_t granted_until_usec,
                                           usec_t wall_usec) {
        bool rebooted = !isempty(n->boot_id) && !boot_id_equal(request->boot_id, n->boot_id);

        if (granted_until_usec > 0 && rebooted && kube_node_is_ready(n))
                return REBOOT_REQUEST_OVER;
        if (granted_until_usec > wall_usec)
                return REBOOT_REQUEST_HOLDS_SLOT;
        if (granted_until_usec > 0)
                return REBOOT_REQUEST_EXPIRED;
        if (rebooted || request->until_usec <= wall_usec)
                return REBOOT_REQUEST_OVER;
        return is_leaving(n) ? REBOOT_REQUEST_LEAVING : REBOOT_REQUEST_WAITING;
}

int reboot_case_read(const KubeNode *n, usec_t wall_usec, usec_t slot_usec, RebootCase *ret) {
        _cleanup_(reboot_text_done) RebootText request = { 0 }, grant = { 0 };
        _cleanup_(reboot_case_done) RebootCase c = { 0 };
        int r, g;

        assert(n && ret);
        r = read_request(n, &request);
        g = read_text(n, ANNOTATION_SHUTDOWN_GRANTED, &grant);
        c.node = strdup(n->object.meta.name);
        if (r == -ENOMEM || g == -ENOMEM || !c.node)
                return -ENOMEM;
        c.is_answered = g != -ENODATA;
        c.request_state = r == -EBADMSG ? REBOOT_REQUEST_INVALID : REBOOT_REQUEST_NONE;
        if (r >= 0) {
                c.id = TAKE_PTR(request.id);
                c.event = isempty(request.event) ? NULL : TAKE_PTR(request.event);
                c.by_cloud = c.event && streq_ptr(request.by, "cloud");
                c.until_usec = request.until_usec;
                c.is_too_long = g >= 0 && grant.until_usec > usec_add(usec_add(wall_usec, slot_usec), REBOOT_GRANT_SLACK_USEC);
                c.granted_until_usec = g >= 0 && !c.is_too_long && streq(grant.id, c.id) ? grant.until_usec : 0;
                c.is_sent = c.granted_until_usec > 0 && grant.sent;
                c.request_state = state_of_request(n, &request, c.granted_until_usec, wall_usec);
                c.boot_id = TAKE_PTR(request.boot_id);
        }
        c.is_stale = c.is_answered && c.request_state != REBOOT_REQUEST_HOLDS_SLOT && c.request_state != REBOOT_REQUEST_EXPIRED;
        *ret = c;
        c = (RebootCase){ 0 };
        return 0;
}

void reboot_case_done(RebootCase *c) {
        c->node = mfree(c->node);
        c->id = mfree(c->id);
        c->boot_id = mfree(c->boot_id);
        c->event = mfree(c->event);
}

usec_t reboot_case_next(const RebootCase *c) {
        switch (c->request_state) {
        case REBOOT_REQUEST_HOLDS_SLOT:
                return c->granted_until_usec;
        case REBOOT_REQUEST_WAITING:
        case REBOOT_REQUEST_LEAVING:
                return c->until_usec;
        case REBOOT_REQUEST_NONE:
        case REBOOT_REQUEST_INVALID:
        case REBOOT_REQUEST_OVER:
        case REBOOT_REQUEST_EXPIRED:
        case _REBOOT_REQUEST_STATE_MAX:
                break;
        }
        return USEC_INFINITY;
}

int reboot_case_order(const RebootCase *a, const RebootCase *b) {
        if (a->until_usec != b->until_usec)
                return a->until_usec < b->until_usec ? -1 : 1;
        return strcmp(a->node, b->node);
}

static char *grant_text(const char *id, usec_t until_usec, bool sent) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        char until[RFC3339_MAX];

        if (json_writer_new(&w) < 0)
                return NULL;
        rfc3339_format(until_usec, until);
        json_open_object(w, NULL);
        json_add_string(w, "id", id);
        json_add_string(w, "until", until);
        if (sent)
                json_add_bool(w, "sent", true);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

static char *grant_patch(const KubeNode *n, const char *id, usec_t until_usec, bool sent) {
        _cleanup_(json_writer_freep) JsonWriter *w = NULL;
        _cleanup_free_ char *text = id ? grant_text(id, until_usec, sent) : NULL;

        if ((id && !text) || json_writer_new(&w) < 0)
                return NULL;
        json_open_object(w, NULL);
        json_open_object(w, "metadata");
        json_add_string(w, "resourceVersion", n->object.meta.resource_version);
        json_open_object(w, "annotations");
        if (text)
                json_add_string(w, ANNOTATION_SHUTDOWN_GRANTED, text);
        else
                json_add_null(w, ANNOTATION_SHUTDOWN_GRANTED);
        json_close_object(w);
        json_close_object(w);
        json_close_object(w);
        return json_writer_steal(w, NULL);
}

char *reboot_grant_patch(const KubeNode *n, const char *id, usec_t until_usec) {
        return grant_patch(n, id, until_usec, false);
}

char *reboot_sent_patch(const KubeNode *n, const char *id, usec_t until_usec) {
        return grant_patch(n, id, until_usec, true);
}
