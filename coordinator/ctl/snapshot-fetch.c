/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot-fetch.h"

#include <stdio.h>
#include <unistd.h>

#include "ctl-say.h"
#include "kube-protobuf.h"
#include "marks.h"
#include "strv.h"

#define PAGE 1000u
#define CALL_TIMEOUT_USEC (60 * USEC_PER_SEC)
#define LIST_MAX_BYTES ((size_t) 64 << 20)
#define OBJECT_MAX_BYTES ((size_t) 4 << 20)
/* Lists grow old while they are read: from the beginning again, so often. */
#define EXPIRED_MAX 3u

typedef struct KindFetch {
        SnapshotFetch *fetch;
        SnapshotKind kind;
        KubeCall *call;
        char *token;       /* of the next page */
        size_t n_objects;
        unsigned n_expired;
        bool is_over;
} KindFetch;

struct SnapshotFetch {
        KubeClient *client;
        SnapshotFetchOptions options;
        Snapshot *snapshot;
        KindFetch kinds[_SNAPSHOT_KIND_MAX];
        unsigned pending;
        int error;
        char *message;
        char **unknown;
        snapshot_fetched_t done;
        void *userdata;
};

SnapshotFetch *snapshot_fetch_free(SnapshotFetch *f) {
        if (!f)
                return NULL;
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++) {
                kube_call_free(f->kinds[k].call);
                free(f->kinds[k].token);
        }
        snapshot_free(f->snapshot);
        free(f->message);
        strv_free(f->unknown);
        return mfree(f);
}

/* -- what people see meanwhile -------------------------------------------------------------------------- */

static void show_progress(const SnapshotFetch *f) {
        if (!f->options.progress)
                return;
        fflush(stderr);
        (void) dprintf(STDERR_FILENO, "\r"); /* plain-output.h */
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                if (f->kinds[k].n_objects > 0)
                        fprintf(stderr, "%zu %s%s ", f->kinds[k].n_objects, snapshot_kube_kind(k)->plural,
                                f->kinds[k].is_over ? "" : "...");
        fputs(f->pending == 0 ? "\n" : "", stderr);
        fflush(stderr);
}

/* -- objects -------------------------------------------------------------------------------------------- */

static int take_object(KindFetch *k, const Json *json) {
        SnapshotFetch *f = k->fetch;
        _cleanup_(kube_object_unrefp) KubeObject *o = NULL;
        int r;

        r = kube_object_decode(snapshot_kube_kind(k->kind), json, f->snapshot->pool, &o);
        if (r >= 0)
                r = snapshot_put(f->snapshot, k->kind, o);
        if (r >= 0)
                k->n_objects++;
        return r;
}

static int on_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r = json_parse(item, size, OBJECT_MAX_BYTES, &doc, NULL);

        return r < 0 ? r : take_object(userdata, json_root(doc));
}

static int on_protobuf_item(const char *item, size_t size, void *userdata) {
        KindFetch *k = userdata;
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        int r = json_from_protobuf(item, size, OBJECT_MAX_BYTES, snapshot_kube_kind(k->kind)->shape, &doc, NULL);

        return r < 0 ? r : take_object(k, json_root(doc));
}

/* 1: another page follows. */
static int take_page(KindFetch *k, const KubeReply *reply) {
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        const char *token;
        int r;

        r = reply->protobuf ? kube_protobuf_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, snapshot_kube_kind(k->kind),
                                                        on_protobuf_item, k, &rest, NULL)
                            : json_split_items(reply->body, reply->body_size, LIST_MAX_BYTES, on_item, k, &rest, NULL);
        if (r < 0)
                return r;
        token = json_string_or_null(json_path(json_root(rest), "metadata", "continue", NULL));
        if (!isempty(token) && streq_ptr(token, k->token))
                return -EBADMSG; /* would never end */
        r = free_and_strdup(&k->token, isempty(token) ? NULL : token);
        return r < 0 ? r : k->token ? 1 : 0;
}

/* -- calls ---------------------------------------------------------------------------------------------- */

static void note_failure(SnapshotFetch *f, int error, char *message) {
        if (f->error < 0) {
                free(message);
                return;
        }
        f->error = error;
        f->message = message;
}

/* May free the fetch: the last act. */
static void one_is_over(KindFetch *k) {
        SnapshotFetch *f = k->fetch;

        k->is_over = true;
        f->pending--;
        show_progress(f);
        if (f->pending > 0)
                return;
        if (f->error < 0)
                f->done(f->message ?: "out of memory", NULL, f->unknown, f->userdata);
        else
                f->done(NULL, TAKE_PTR(f->snapshot), f->unknown, f->userdata);
}

static void on_page(const KubeReply *reply, void *userdata);

static int ask_page(KindFetch *k) {
        const KubeTarget target = { .kind = snapshot_kube_kind(k->kind) };
        const KubeListOptions list = { .limit = PAGE,
                                       .continue_token = k->token,
                                       .protobuf = target.kind->shape };
        const KubeCallOptions call = { .timeout_usec = CALL_TIMEOUT_USEC,
                                       .lane = HTTP_LANE_BULK,
                                       .max_response_bytes = LIST_MAX_BYTES };

        return kube_list(k->fetch->client, &target, &list, &call, on_page, k, &k->call);
}

/* Drops the pages that were read before: a part of a list would pass for all of it. */
static void forget_pages(KindFetch *k) {
        snapshot_forget(k->fetch->snapshot, k->kind);
        k->n_objects = 0;
}

/* 404 of vesper's own kinds: there are none. 403: nobody knows. */
static void note_refusal(KindFetch *k, const ApiError *e) {
        const KubeTarget target = { .kind = snapshot_kube_kind(k->kind) };
        SnapshotFetch *f = k->fetch;
        _cleanup_free_ char *why = ctl_explain_error(e, "list", &target), *text = NULL;

        forget_pages(k);
        if (e->http == 404 && streq(target.kind->group, VESPER_GROUP)) {
                f->snapshot->is_known[k->kind] = true;
                return;
        }
        if (e->http != 403 && e->http != 404) {
                note_failure(f, api_error_to_errno(e), TAKE_PTR(why));
                return;
        }
        text = why ? strf("%s are not known: %s", target.kind->plural, why) : NULL;
        if (!text || strv_extend(&f->unknown, text) < 0)
                note_failure(f, -ENOMEM, NULL);
}

static void on_page(const KubeReply *reply, void *userdata) {
        KindFetch *k = userdata;
        int r = 0;

        k->call = kube_call_free(k->call);
        if (reply->error && reply->error->http == 410 && k->token && k->n_expired++ < EXPIRED_MAX) {
                k->token = mfree(k->token);
                forget_pages(k); /* objects that are deleted meanwhile are not in the list that follows */
                r = 1;
        } else if (reply->error)
                note_refusal(k, reply->error);
        else {
                k->fetch->snapshot->is_known[k->kind] = true;
                r = take_page(k, reply);
        }
        if (r > 0)
                r = ask_page(k) < 0 ? -ENOMEM : 1;
        if (r < 0)
                note_failure(k->fetch, r,
                             r == -ENOMEM ? NULL
                                          : strf("the list of %s cannot be understood", snapshot_kube_kind(k->kind)->plural));
        if (r <= 0)
                one_is_over(k);
        else
                show_progress(k->fetch);
}

int snapshot_fetch_new(KubeClient *c, const SnapshotFetchOptions *options, snapshot_fetched_t done, void *userdata,
                       SnapshotFetch **ret) {
        _cleanup_(snapshot_fetch_freep) SnapshotFetch *f = new0(SnapshotFetch, 1);
        int r;

        if (!f)
                return -ENOMEM;
        f->client = c;
        f->options = options ? *options : (SnapshotFetchOptions){};
        f->done = done;
        f->userdata = userdata;
        r = snapshot_new(kube_client_pool(c), loop_server_wall(kube_client_env(c)->loop), &f->snapshot);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX && r >= 0; k++) {
                f->kinds[k] = (KindFetch){ .fetch = f, .kind = k };
                r = ask_page(f->kinds + k);
                f->pending++;
        }
        if (r < 0)
                return r;

        *ret = TAKE_PTR(f);
        return 0;
}
