/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api-error.h"
#include "fuzz-objects.h"
#include "kube-protobuf.h"
#include "string-util.h"
#include "watch-frames.h"

/*
 * Any bytes as what comes in protobuf: the first says as what, the rest are taken as they are. What can be
 * read is JSON that our own reader takes, too, and says the same when it comes from there; each object is
 * whole or says what is wrong with it; frames are the same in one piece and in many.
 */

static const KubeKind *const kinds[] = {
        &kube_node_kind, &kube_pod_kind, &kube_own_pod_kind, &kube_pdb_kind, &kube_volume_attachment_kind,
};

/* By way of a text. */
static void check_text(const Json *json) {
        _cleanup_free_ char *text = json_format(json), *again = NULL;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r;

        assert(text);
        r = json_parse(text, strlen(text), strlen(text), &doc, NULL);
        assert(r >= 0);
        again = json_format(json_root(doc));
        assert(again && streq(text, again));
}

static void check_object(const KubeKind *kind, const Json *json, InternPool *pool) {
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        int r = kube_object_decode(kind, json, pool, &o);

        assert(r == 0 || r == -EINVAL);
        assert((r == 0) == (o != NULL));
        assert(!o || !isempty(o->meta.name));
        assert(!o || !o->invalid || *o->invalid);
}

typedef struct Taker {
        const KubeKind *kind;
        InternPool *pool;
        size_t bytes;
} Taker;

static int on_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Taker *t = userdata;
        JsonError e = { 0 };
        int r;

        t->bytes += size;
        r = json_from_protobuf(item, size, size, t->kind->shape, &doc, &e);
        assert(r == 0 || (r == -EBADMSG && e.message && e.offset <= size));
        if (r < 0)
                return 0;
        check_text(json_root(doc));
        check_object(t->kind, json_root(doc), t->pool);
        return 0;
}

static void check_list(const KubeKind *kind, const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        Taker t = { .kind = kind };
        JsonError e = { 0 };
        int r = intern_pool_new(&pool);

        assert(r >= 0);
        t.pool = pool;
        r = kube_protobuf_split_items(data, size, size, kind, on_item, &t, &rest, &e);
        assert(r == 0 || (r == -EBADMSG && e.message && e.offset <= size));
        assert(t.bytes <= size);
        /* The same bytes as one object. */
        (void) on_item((const char *) data, size, &t);
        assert(intern_pool_size(pool) == 0);
}

static int on_frame(const char *frame, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *type;
        int r = kube_protobuf_event(frame, size, kube_own_pod_kind.shape, &type, &doc);

        assert(r == 0 || r == -EBADMSG);
        if (r == 0)
                check_text(json_root(doc));
        strbuf_addf(userdata, "%zu %d %s\n", size, r, r == 0 ? type : "");
        return 0;
}

/* The first byte says how many more draw where the pieces end. */
static void check_frames(Draw d) {
        _cleanup_(watch_frames_done) WatchFrames whole = { 0 }, cut = { 0 };
        _cleanup_strbuf_ StrBuf a = { 0 }, b = { 0 };
        size_t n_cuts = MIN((size_t) draw_byte(&d), d.size), size, piece;
        int r = 0, s = 0;
        const char *data;

        data = (const char *) d.data + n_cuts;
        size = d.size - n_cuts;
        d.size = n_cuts;
        r = watch_frames_feed(&whole, data, size, on_frame, &a);
        assert(r == 0 || r == -EMSGSIZE);
        for (size_t i = 0; i < size && s == 0; i += piece) {
                piece = n_cuts > 0 ? draw_piece(&d, size - i) : 1;
                s = watch_frames_feed(&cut, data + i, piece, on_frame, &b);
        }
        assert(r == s);
        assert(streq(strbuf_str(&a), strbuf_str(&b)));
        assert(r < 0 || whole.rest.size == cut.rest.size);
}

static void check_status(const uint8_t *data, size_t size) {
        _cleanup_(api_error_done) ApiError e = { 0 };
        int r = api_error_from_body(409, (const char *) data, size, 0, &e);

        assert(r == 0);
        assert(!isempty(e.message) && utf8_is_valid(e.message, strlen(e.message)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Draw d = { data, size };
        size_t what = draw_byte(&d) % (ELEMENTSOF(kinds) + 2);

        if (size == 0)
                return 0;
        if (what < ELEMENTSOF(kinds))
                check_list(kinds[what], d.data, d.size);
        else if (what == ELEMENTSOF(kinds))
                check_frames(d);
        else
                check_status(d.data, d.size);
        return 0;
}
