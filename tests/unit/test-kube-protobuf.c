/* SPDX-License-Identifier: Apache-2.0 */
/* What a real API server has sent in protobuf (kube-protobuf-fixture.h), and what one would never send. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "api-error.h"
#include "cmocka-test.h"
#include "informer.h"
#include "kube-kinds.h"
#include "kube-protobuf-fixture.h"
#include "kube-protobuf.h"
#include "kube-rig.h"
#include "watch-frames.h"

#define PROTOBUF "application/vnd.kubernetes.protobuf"
#define STREAM PROTOBUF ";stream=watch"

/* -- making --------------------------------------------------------------------------------------------- */

static void add_varint(StrBuf *b, size_t n) {
        for (; n >= 0x80; n >>= 7)
                strbuf_add_char(b, (char) (n | 0x80));
        strbuf_add_char(b, (char) n);
}

static void add_bytes(StrBuf *b, unsigned number, const void *data, size_t size) {
        add_varint(b, number << 3 | PROTOBUF_BYTES);
        add_varint(b, size);
        strbuf_add_n(b, data, size);
}

/* "k8s\0", typeMeta, raw. */
static void add_envelope(StrBuf *b, const char *kind, const void *raw, size_t size) {
        _cleanup_strbuf_ StrBuf meta = { 0 };

        add_bytes(&meta, 1, "v1", 2);
        add_bytes(&meta, 2, kind, strlen(kind));
        strbuf_add_n(b, "k8s\0", 4);
        add_bytes(b, 1, meta.data, meta.size);
        add_bytes(b, 2, raw, size);
}

static void add_event(StrBuf *b, const char *type, const void *envelope, size_t size) {
        _cleanup_strbuf_ StrBuf object = { 0 };

        add_bytes(&object, 1, envelope, size);
        add_bytes(b, 1, type, strlen(type));
        add_bytes(b, 2, object.data, object.size);
}

static void add_frame(StrBuf *b, const void *event, size_t size) {
        uint32_t n = htobe32((uint32_t) size);

        strbuf_add_n(b, (const char *) &n, sizeof(n));
        strbuf_add_n(b, event, size);
}

static void add_event_frame(StrBuf *b, const char *type, const void *envelope, size_t size) {
        _cleanup_strbuf_ StrBuf event = { 0 };

        add_event(&event, type, envelope, size);
        add_frame(b, event.data, event.size);
}

/* An object with a name and a version, of that kind. */
static void add_object_frame(StrBuf *b, const char *type, const char *kind, const char *name,
                             const char *version) {
        _cleanup_strbuf_ StrBuf meta = { 0 }, raw = { 0 }, envelope = { 0 };

        add_bytes(&meta, 1, name, strlen(name));
        add_bytes(&meta, 6, version, strlen(version));
        add_bytes(&raw, 1, meta.data, meta.size);
        add_envelope(&envelope, kind, raw.data, raw.size);
        add_event_frame(b, type, envelope.data, envelope.size);
}

/* -- lists ---------------------------------------------------------------------------------------------- */

typedef struct Items {
        const KubeKind *kind;
        InternPool *pool;
        KubeObject *list[4];
        size_t n;
        JsonDoc *rest;
} Items;

static int on_item(const char *item, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        Items *i = userdata;

        assert_true(i->n < ELEMENTSOF(i->list));
        assert_return_code(json_from_protobuf(item, size, size, i->kind->shape, &doc, NULL), 0);
        assert_return_code(kube_object_decode(i->kind, json_root(doc), i->pool, &i->list[i->n]), 0);
        assert_null(i->list[i->n]->invalid);
        i->n++;
        return 0;
}

static Items items_of(const KubeKind *kind, const char *data, size_t size) {
        Items i = { .kind = kind };

        assert_return_code(intern_pool_new(&i.pool), 0);
        assert_return_code(kube_protobuf_split_items(data, size, size, kind, on_item, &i, &i.rest, NULL), 0);
        return i;
}

static void items_done(Items *i) {
        for (size_t k = 0; k < i->n; k++)
                kube_object_unref(i->list[k]);
        json_doc_free(i->rest);
        intern_pool_free(i->pool);
}

TEST_CASE(test_pods) {
        const KubeKind *const kinds[] = { &kube_pod_kind, &kube_own_pod_kind };

        for (size_t k = 0; k < ELEMENTSOF(kinds); k++) {
                _cleanup_(items_done) Items i = items_of(kinds[k], fixture_page, FIXTURE_SIZE(fixture_page));
                const KubePod *rich = (const KubePod *) i.list[0], *plain = (const KubePod *) i.list[1];
                const ObjectMeta *m = &rich->object.meta;

                assert_int_equal(i.n, 2);
                assert_non_null(json_string_or_null(
                        json_path(json_root(i.rest), "metadata", "resourceVersion", NULL)));
                assert_string_equal(m->name, "web-1");
                assert_string_equal(m->ns, "web");
                assert_int_equal(strlen(m->uid), 36);
                assert_true(m->creation_usec > 0 && m->deletion_usec == 0 && m->deletion_grace_sec == -1);
                assert_int_equal(m->labels.n_items, 2);
                assert_string_equal(object_meta_label(m, "app"), "web");
                assert_string_equal(object_meta_label(m, "empty"), "");
                assert_int_equal(m->annotations.n_items, 1);
                assert_string_equal(object_meta_annotation(m, "vesper.sh/do-not-evict"), "no");
                assert_string_equal(object_meta_controller(m)->kind, "ReplicaSet");
                assert_true(object_meta_has_finalizer(m, "test.vesper.sh/a"));
                assert_string_equal(rich->node_name, "n1");
                assert_int_equal(rich->grace_sec, 90);
                assert_int_equal(rich->phase, POD_RUNNING);
                assert_true(rich->ready && rich->tolerates_disrupted && rich->needs_kubelet);
                assert_false(rich->tolerates_unschedulable);
                assert_int_equal(rich->start_usec, (RIG_START_WALL - 3595 * USEC_PER_SEC));
                assert_string_equal(plain->object.meta.name, "web-2");
                assert_null(plain->node_name);
                assert_int_equal(plain->phase, POD_PENDING);
                assert_int_equal(plain->grace_sec, 30);
                assert_int_equal(plain->needs_kubelet, kinds[k] == &kube_pod_kind);
                assert_true(!plain->ready && plain->start_usec == 0 && plain->object.meta.n_owners == 0);
        }
}

TEST_CASE(test_others) {
        _cleanup_(items_done) Items nodes =
                items_of(&kube_node_kind, fixture_nodes, FIXTURE_SIZE(fixture_nodes));
        _cleanup_(items_done) Items pdbs =
                items_of(&kube_pdb_kind, fixture_pdbs, FIXTURE_SIZE(fixture_pdbs));
        _cleanup_(items_done) Items attachments = items_of(&kube_volume_attachment_kind, fixture_attachments,
                                                           FIXTURE_SIZE(fixture_attachments));
        const KubeNode *n = (const KubeNode *) nodes.list[0];
        const KubePdb *p = (const KubePdb *) pdbs.list[0];
        const KubeVolumeAttachment *v = (const KubeVolumeAttachment *) attachments.list[0];

        assert_string_equal(n->provider_id, "aws:///a/i-1");
        assert_true(n->unschedulable && kube_node_is_ready(n));
        assert_true(kube_node_has_taint(n, "gpu", "NoExecute"));
        assert_string_equal(n->taints[0].value, "yes");
        assert_int_equal(n->taints[0].time_added_usec, RIG_START_WALL - 60 * USEC_PER_SEC);
        assert_string_equal(n->conditions[0].reason, "r");
        assert_int_equal(n->conditions[0].last_transition_usec, RIG_START_WALL - 3600 * USEC_PER_SEC);
        assert_string_equal(n->volumes_in_use[0], "v");
        assert_string_equal(n->volumes_attached[0], "v");
        assert_string_equal(n->boot_id, "b1");
        assert_true(p->always_allow_unhealthy && !selector_is_empty(p->selector));
        assert_int_equal(p->disruptions_allowed, 1);
        assert_int_equal(p->current_healthy, 3);
        assert_int_equal(p->desired_healthy, 2);
        assert_int_equal(p->expected_pods, 3);
        assert_int_equal(p->observed_generation, 1);
        assert_string_equal(v->node_name, "n1");
        assert_string_equal(v->pv_name, "pv-1");
        assert_true(v->attached);
}

static int on_item_fail(const char *item, size_t size, void *userdata) {
        return -ENOMEM;
}

TEST_CASE(test_lists_refused) {
        _cleanup_strbuf_ StrBuf numbers = { 0 };
        JsonDoc *rest = NULL;
        JsonError e = { 0 };

        assert_int_equal(kube_protobuf_split_items(fixture_nodes, FIXTURE_SIZE(fixture_nodes), SIZE_MAX,
                                                   &kube_pod_kind, on_item_fail, NULL, &rest, &e),
                         -EBADMSG);
        assert_string_equal(e.message, "a list of another kind");
        assert_int_equal(
                kube_protobuf_split_items("{}", 2, SIZE_MAX, &kube_pod_kind, on_item_fail, NULL, &rest, &e),
                -EBADMSG);
        assert_string_equal(e.message, "not what begins with k8s and a NUL");
        assert_int_equal(kube_protobuf_split_items(fixture_nodes, FIXTURE_SIZE(fixture_nodes), 100,
                                                   &kube_node_kind, on_item_fail, NULL, &rest, &e),
                         -E2BIG);
        assert_int_equal(kube_protobuf_split_items(fixture_nodes, FIXTURE_SIZE(fixture_nodes), SIZE_MAX,
                                                   &kube_node_kind, on_item_fail, NULL, &rest, NULL),
                         -ENOMEM);
        add_envelope(&numbers, "PodList", "\x10\x01", 2);
        assert_int_equal(kube_protobuf_split_items(numbers.data, numbers.size, SIZE_MAX, &kube_pod_kind,
                                                   on_item_fail, NULL, &rest, &e),
                         -EBADMSG);
        assert_string_equal(e.message, "a field has the wrong wire type");
        strbuf_truncate(&numbers, numbers.size - 4); /* the raw is gone */
        assert_int_equal(kube_protobuf_split_items(numbers.data, numbers.size, SIZE_MAX, &kube_pod_kind,
                                                   on_item_fail, NULL, &rest, &e),
                         -EBADMSG);
        assert_string_equal(e.message, "a list without content");
        assert_null(rest);
        /* Each page cut off before the end of its list is refused before its items are told. */
        for (size_t n = 0; n < FIXTURE_SIZE(fixture_nodes) - 4; n++)
                assert_int_equal(kube_protobuf_split_items(fixture_nodes, n, SIZE_MAX, &kube_node_kind,
                                                           on_item_fail, NULL, &rest, &e),
                                 -EBADMSG);
}

/* -- watches -------------------------------------------------------------------------------------------- */

static int on_frame(const char *frame, size_t size, void *userdata) {
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *type;
        int r = kube_protobuf_event(frame, size, kube_pod_kind.shape, &type, &doc);

        if (r < 0)
                return r;
        if (streq(type, "DELETED")) {
                assert_null(json_get(json_root(doc), "spec"));
                assert_non_null(json_path(json_root(doc), "metadata", "uid", NULL));
                assert_non_null(json_path(json_root(doc), "metadata", "resourceVersion", NULL));
        }
        strbuf_addf(userdata, "%s %s %s,", type,
                    strempty(json_string_or_null(json_get(json_root(doc), "kind"))),
                    strempty(json_string_or_null(json_path(json_root(doc), "metadata", "name", NULL))));
        return 0;
}

static const char frames_told[] = "ADDED Pod web-2,MODIFIED Pod web-2,DELETED Pod web-2,";

/* In pieces of every size. */
TEST_CASE(test_frames) {
        for (size_t piece = 1; piece <= FIXTURE_SIZE(fixture_frames); piece++) {
                _cleanup_(watch_frames_done) WatchFrames w = { 0 };
                _cleanup_strbuf_ StrBuf seen = { 0 };

                for (size_t at = 0; at < FIXTURE_SIZE(fixture_frames); at += piece)
                        assert_return_code(watch_frames_feed(&w, fixture_frames + at,
                                                             MIN(piece, FIXTURE_SIZE(fixture_frames) - at),
                                                             on_frame, &seen),
                                           0);
                assert_string_equal(strbuf_str(&seen), frames_told);
                assert_int_equal(w.rest.size, 0);
        }
}

static int count_frame(const char *frame, size_t size, void *userdata) {
        *(size_t *) userdata += size;
        return 0;
}

TEST_CASE(test_frame_sizes) {
        static const char above[] = "\x00\x80\x00\x01";
        _cleanup_(watch_frames_done) WatchFrames whole = { 0 }, pieces = { 0 }, large = { 0 };
        _cleanup_free_ char *limit = calloc(1, WATCH_LINE_BYTES_MAX + 4);
        size_t told = 0;

        assert_int_equal(watch_frames_feed(&whole, above, 4, count_frame, &told), -EMSGSIZE);
        assert_return_code(watch_frames_feed(&pieces, above, 3, count_frame, &told), 0);
        assert_int_equal(watch_frames_feed(&pieces, above + 3, 1, count_frame, &told), -EMSGSIZE);
        assert_int_equal(told, 0);

        /* The largest, whose room is given back; and an empty one. */
        assert_non_null(limit);
        limit[1] = (char) 0x80;
        assert_return_code(watch_frames_feed(&large, limit, WATCH_LINE_BYTES_MAX, count_frame, &told), 0);
        assert_return_code(watch_frames_feed(&large, limit + WATCH_LINE_BYTES_MAX, 4, count_frame, &told),
                           0);
        assert_int_equal(told, WATCH_LINE_BYTES_MAX);
        assert_int_equal(large.rest.allocated, 0);
        assert_return_code(watch_frames_feed(&large, "\0\0", 2, count_frame, &told), 0);
        assert_return_code(watch_frames_feed(&large, "\0\0", 2, count_frame, &told), 0);
        assert_int_equal(told, WATCH_LINE_BYTES_MAX);
        assert_int_equal(large.rest.size, 0);
}

TEST_CASE(test_events_refused) {
        static const struct {
                const char *what, *bytes;
                size_t size;
        } rows[] = {
                { "nothing", "", 0 },
                { "no type", "\x12\x00", 2 },
                { "no object",
                  "\x0a\x05"
                  "ADDED",
                  7 },
                { "an object of nothing",
                  "\x0a\x05"
                  "ADDED\x12\x00",
                  9 },
                { "a type that is a number", "\x08\x01\x12\x00", 4 },
                { "an object without the four bytes",
                  "\x0a\x05"
                  "ADDED\x12\x06\x0a\x04"
                  "kbs\x00",
                  15 },
                { "cut off",
                  "\x0a\x05"
                  "ADD",
                  5 },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                JsonDoc *doc = NULL;
                const char *type;

                print_message("%s\n", rows[i].what);
                assert_int_equal(
                        kube_protobuf_event(rows[i].bytes, rows[i].size, kube_pod_kind.shape, &type, &doc),
                        -EBADMSG);
                assert_null(doc);
        }
}

TEST_CASE(test_event_of_a_later_api) {
        _cleanup_strbuf_ StrBuf b = { 0 }, seen = { 0 };
        _cleanup_(watch_frames_done) WatchFrames w = { 0 };

        add_object_frame(&b, "RENAMED", "Pod", "a", "1");
        assert_return_code(watch_frames_feed(&w, b.data, b.size, on_frame, &seen), 0);
        assert_string_equal(strbuf_str(&seen), " Pod a,");
}

/* -- what is wrong -------------------------------------------------------------------------------------- */

TEST_CASE(test_status) {
        _cleanup_(api_error_done) ApiError e = { 0 }, broken = { 0 }, full = { 0 };
        _cleanup_strbuf_ StrBuf b = { 0 }, details = { 0 }, cause = { 0 }, message = { 0 };

        assert_return_code(api_error_from_body(404, fixture_status, FIXTURE_SIZE(fixture_status), 0, &e), 0);
        assert_string_equal(e.reason, "NotFound");
        assert_string_equal(e.message, "pods \"none\" not found");
        assert_int_equal(e.n_causes, 0);
        /* Cut off, it is no text for people either. */
        assert_return_code(
                api_error_from_body(404, fixture_status, FIXTURE_SIZE(fixture_status) - 1, 0, &broken), 0);
        assert_null(broken.reason);
        assert_string_equal(broken.message, "HTTP status 404 without a message");

        add_bytes(&cause, 1, "DisruptionBudget", 16);
        add_bytes(&cause, 2, "needs 3", 7);
        add_bytes(&details, 4, cause.data, cause.size);
        strbuf_add_n(&details, "\x28\x07", 2);
        add_bytes(&message, 3, "no", 2);
        add_bytes(&message, 4, "TooManyRequests", 15);
        add_bytes(&message, 5, details.data, details.size);
        add_envelope(&b, "Status", message.data, message.size);
        assert_return_code(api_error_from_body(429, b.data, b.size, 0, &full), 0);
        assert_string_equal(full.reason, "TooManyRequests");
        assert_true(api_error_has_cause(&full, "DisruptionBudget"));
        assert_string_equal(full.causes[0].message, "needs 3");
        assert_int_equal(full.retry_after_usec, 7 * USEC_PER_SEC);
}

TEST_CASE(test_content_type) {
        static const struct {
                const char *type;
                bool is;
        } rows[] = {
                { PROTOBUF, true },
                { STREAM, true },
                { PROTOBUF " ; x=y", true },
                { "Application/VND.kubernetes.Protobuf", true },
                { PROTOBUF "2", false },
                { "application/json", false },
                { "application/vnd.", false },
                { "", false },
                { NULL, false },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                assert_int_equal(kube_type_is_protobuf(rows[i].type), rows[i].is);
        assert_true(kube_body_is_protobuf("k8s\0", 4));
        assert_false(kube_body_is_protobuf("k8s", 3));
        assert_false(kube_body_is_protobuf("{\"a\":1}", 7));
}

/* -- an informer ---------------------------------------------------------------------------------------- */

static void on_event(Informer *i, InformerEvent e, KubeObject *old, KubeObject *new, void *userdata) {
        Rig *r = userdata;

        strbuf_addf(&r->trace, " %c%s", "+~-"[e], (new ?: old) -> meta.name);
}

static void on_synced(Informer *i, void *userdata) {
        strbuf_add(&((Rig *) userdata)->trace, " synced");
}

static void describe(const HttpExchange *x, StrBuf *t) {
        _cleanup_free_ char *watch = rig_query(x, "watch"), *token = rig_query(x, "continue");

        strbuf_add(t, watch ? "watch" : "list");
        if (token)
                strbuf_addf(t, "(%s)", token);
}

static Informer *informer_of(Rig *r, const KubeKind *kind) {
        const InformerHandler h = { .on_event = on_event, .on_synced = on_synced, .userdata = r };
        Informer *i;

        r->describe = describe;
        assert_return_code(informer_new(r->host->client, kind, NULL, &h, &i), 0);
        return i;
}

static RigAnswer page_answer(void) {
        return (RigAnswer){ .status = 200,
                            .body = fixture_page,
                            .body_size = FIXTURE_SIZE(fixture_page),
                            .type = PROTOBUF };
}

static RigAnswer stream_answer(const char *data, size_t size) {
        return (RigAnswer){ .status = 200, .body = data, .body_size = size, .type = STREAM, .stream = true };
}

TEST_CASE(test_informer) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        _cleanup_strbuf_ StrBuf more = { 0 }, gone = { 0 };

        rig_answer_with(r, page_answer());
        rig_answer_with(r, stream_answer(fixture_frames, FIXTURE_SIZE(fixture_frames)));
        i = informer_of(r, &kube_pod_kind);
        rig_run_for(r, 0);
        assert_trace(r, "list +web-1 +web-2 synced watch ~web-2 -web-2");
        assert_string_equal(r->requests[0].accept, KUBE_ACCEPT_PROTOBUF);
        assert_string_equal(r->requests[1].accept, KUBE_ACCEPT_PROTOBUF);
        assert_int_equal(informer_undecodable(i), 0);

        /* A bookmark moves the point of resume; another kind's object is passed over. */
        add_object_frame(&more, "BOOKMARK", "Pod", "", "900");
        add_object_frame(&more, "MODIFIED", "Node", "web-1", "901");
        rig_say_bytes(r, more.data, more.size);
        rig_run_for(r, 0);
        assert_trace(r, "");
        assert_string_equal(informer_resource_version(i), "901");
        assert_int_equal(informer_undecodable(i), 1);

        /* Whoever answers JSON next time is understood, too. */
        rig_answer(r, 200, "{\"metadata\":{\"resourceVersion\":\"1000\"},\"items\":[]}");
        rig_stream(r, "");
        add_envelope(&gone, "Status",
                     "\x22\x07"
                     "Expired\x30\x9a\x03",
                     12);
        strbuf_truncate(&more, 0);
        add_event_frame(&more, "ERROR", gone.data, gone.size);
        rig_say_bytes(r, more.data, more.size);
        rig_run_for(r, 0);
        assert_trace(r, "list -web-1 watch");
}

/* JSON that comes though protobuf was asked for. */
typedef struct Dropped {
        KubeCall *call;
        unsigned n_events;
} Dropped;

static int on_dropping_event(const char *type, const Json *object, void *userdata) {
        Dropped *d = userdata;

        d->n_events++;
        d->call = kube_call_free(d->call);
        return 0;
}

static void on_never_done(const KubeReply *reply, void *userdata) {
        fail_msg("%s", reply->error ? reply->error->message : "ended");
}

/* Whoever drops a watch inside an event hears nothing of what came in the same piece. */
TEST_CASE(test_watch_freed_inside) {
        static const KubeTarget target = { .kind = &kube_pod_kind };
        static const KubeWatchOptions o = { .resource_version = "1", .without_unread = true, .protobuf = true };
        _cleanup_(rig_freep) Rig *r = rig_new();
        Dropped d = { 0 };

        rig_answer_with(r, stream_answer(fixture_frames, FIXTURE_SIZE(fixture_frames)));
        assert_return_code(
                kube_watch(r->host->client, &target, &o, on_dropping_event, on_never_done, &d, &d.call), 0);
        rig_run_for(r, USEC_PER_MINUTE);
        assert_int_equal(d.n_events, 1);
        assert_int_equal(r->n_open, 0);
}

TEST_CASE(test_informer_on_json) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer(r, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
        rig_stream(r,
                   "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"b\"}}}\n");
        i = informer_of(r, &kube_pod_kind);
        rig_run_for(r, 0);
        assert_trace(r, "list synced watch +a");
        assert_string_equal(r->requests[0].accept, KUBE_ACCEPT_PROTOBUF);
}

/* Of custom resources there is none to be asked for. */
TEST_CASE(test_informer_of_custom_resource) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer(r, 200, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}");
        rig_stream(r, "");
        i = informer_of(r, &kube_node_pool_kind);
        rig_run_for(r, 0);
        assert_trace(r, "list synced watch");
        assert_string_equal(r->requests[0].accept, "application/json");
        assert_string_equal(r->requests[1].accept, "application/json");
}

static void answer_in_json(Rig *r) {
        rig_answer(r, 200,
                   "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":["
                   "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\"}}]}");
        rig_stream(r, "");
}

/* What cannot be read of the one encoding is asked for in the other: a watch ... */
TEST_CASE(test_broken_event) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;

        rig_answer_with(r, page_answer());
        rig_answer_with(r, stream_answer("\0\0\0\1\xff", 5));
        answer_in_json(r);
        i = informer_of(r, &kube_pod_kind);
        rig_run_for(r, 0);
        assert_trace(r, "list +web-1 +web-2 synced watch");
        rig_run_for(r, 5 * USEC_PER_SEC);
        assert_int_equal(informer_size(i), 1);
        assert_non_null(informer_get(i, "shop", "web-1"));
        assert_string_equal(r->requests[1].accept, KUBE_ACCEPT_PROTOBUF);
        assert_string_equal(r->requests[2].accept, "application/json");
        assert_string_equal(r->requests[3].accept, "application/json");
}

/* ... and an item of a list, which nobody can name. */
TEST_CASE(test_broken_item) {
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        _cleanup_strbuf_ StrBuf meta = { 0 }, raw = { 0 }, page = { 0 };

        add_bytes(&meta, 2, "7", 1);
        add_bytes(&raw, 1, meta.data, meta.size);
        add_bytes(&raw, 2, "\xff", 1);
        add_envelope(&page, "PodList", raw.data, raw.size);
        rig_answer_with(
                r,
                (RigAnswer){ .status = 200, .body = page.data, .body_size = page.size, .type = PROTOBUF });
        answer_in_json(r);
        i = informer_of(r, &kube_pod_kind);
        rig_run_for(r, 0);
        assert_trace(r, "list");
        rig_run_for(r, 5 * USEC_PER_SEC);
        assert_trace(r, "list +web-1 synced watch");
        assert_string_equal(r->requests[1].accept, "application/json");
        assert_int_equal(informer_undecodable(i), 0);
}

/* The API server stores an annotation's value as it comes. Nobody who may write one takes a pod out of a
 * drain's sight. */
TEST_CASE(test_text_hides_nobody) {
        static const char meta[] = "\x0a\x05web-1\x1a\x04shop\x62\x08\x0a\x01k\x12\x03\xff\0\xc3";
        _cleanup_(rig_freep) Rig *r = rig_new();
        _cleanup_(informer_freep) Informer *i = NULL;
        _cleanup_strbuf_ StrBuf list_meta = { 0 }, item = { 0 }, raw = { 0 }, page = { 0 };

        add_bytes(&item, 1, meta, sizeof(meta) - 1);
        add_bytes(&list_meta, 2, "7", 1);
        add_bytes(&raw, 1, list_meta.data, list_meta.size);
        add_bytes(&raw, 2, item.data, item.size);
        add_envelope(&page, "PodList", raw.data, raw.size);
        rig_answer_with(
                r,
                (RigAnswer){ .status = 200, .body = page.data, .body_size = page.size, .type = PROTOBUF });
        rig_stream(r, "");
        i = informer_of(r, &kube_pod_kind);
        rig_run_for(r, 0);
        assert_trace(r, "list +web-1 synced watch");
        assert_non_null(informer_get(i, "shop", "web-1"));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pods),
                cmocka_unit_test(test_others),
                cmocka_unit_test(test_lists_refused),
                cmocka_unit_test(test_frames),
                cmocka_unit_test(test_frame_sizes),
                cmocka_unit_test(test_events_refused),
                cmocka_unit_test(test_event_of_a_later_api),
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_content_type),
                cmocka_unit_test(test_informer),
                cmocka_unit_test(test_watch_freed_inside),
                cmocka_unit_test(test_informer_on_json),
                cmocka_unit_test(test_informer_of_custom_resource),
                cmocka_unit_test(test_text_hides_nobody),
                cmocka_unit_test(test_broken_event),
                cmocka_unit_test(test_broken_item),
        };

        return cmocka_run_group_tests_name("kube-protobuf", tests, NULL, NULL);
}
