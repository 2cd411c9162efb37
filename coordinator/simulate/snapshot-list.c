/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kubectl's list as a snapshot. kubectl prints a List whose items name their kinds; the API server itself says PodList, and its
 * items do not. The kind of the list stands before or behind the items, so these are found first, and read then: one by one, for
 * the tree of 150,000 pods would take gigabytes.
 */
#include <stdio.h>

#include "snapshot-file.h"
#include "snapshot-read.h"
#include "string-util.h"

/* Of kinds that are passed over; more are not named. */
#define NAMED_MAX 16u
#define NAME_BYTES_MAX 64u

typedef struct Item {
        const char *data;
        size_t size;
} Item;

typedef struct Passed {
        char *kind;
        size_t n;
} Passed;

typedef struct KubectlList {
        Item *items;
        size_t n_items, n_allocated;
        const char *api_version, *kind; /* of items that say nothing; NULL: they must */
        char *kind_text;
        Passed passed[NAMED_MAX];
        size_t n_passed, n_passed_more;
        Snapshot *snapshot;
        char **reterr;
} KubectlList;

static void list_done(KubectlList *l) {
        for (size_t i = 0; i < l->n_passed; i++)
                free(l->passed[i].kind);
        free(l->items);
        free(l->kind_text);
        snapshot_free(l->snapshot);
}

static int on_item(const char *item, size_t size, void *userdata) {
        KubectlList *l = userdata;

        if (GREEDY_REALLOC(l->items, l->n_allocated, l->n_items + 1) < 0)
                return -ENOMEM;
        l->items[l->n_items++] = (Item){ item, size };
        return 0;
}

/* What a list says of its items: "PodList" is one of Pods. */
static int read_list_kind(KubectlList *l, const Json *rest) {
        const char *version = json_string_or_null(json_get(rest, "apiVersion")),
                   *kind = json_string_or_null(json_get(rest, "kind"));
        const char *end = endswith(strempty(kind), "List");

        if (!version || !kind || !end)
                return snapshot_refuse(l->reterr,
                                       "this is neither a snapshot nor a list of objects as kubectl prints it with -o json");
        if (end == kind)
                return 0;
        l->kind_text = memdup_str(kind, (size_t) (end - kind));
        l->kind = l->kind_text;
        l->api_version = version; /* lives as long as rest */
        return l->kind_text ? 0 : -ENOMEM;
}

static int pass_over(KubectlList *l, const char *version, const char *kind) {
        _cleanup_free_ char *name = strf("%s (%s)", kind, version), *clean = NULL;

        clean = name ? str_sanitize(name, NAME_BYTES_MAX) : NULL;
        if (!clean)
                return -ENOMEM;
        for (size_t i = 0; i < l->n_passed; i++)
                if (streq(l->passed[i].kind, clean)) {
                        l->passed[i].n++;
                        return 0;
                }
        if (l->n_passed == NAMED_MAX)
                l->n_passed_more++;
        else
                l->passed[l->n_passed++] = (Passed){ TAKE_PTR(clean), 1 };
        return 0;
}

static int read_item(KubectlList *l, const Item *item, size_t number) {
        static const JsonOmit omit[] = { { "metadata", "managedFields" }, { "status", "images" },
                                         { "status", "containerStatuses" }, { "status", "initContainerStatuses" } };
        const JsonOmits omits = { .list = omit, .n_list = ELEMENTSOF(omit) };
        _cleanup_(json_doc_freep) JsonDoc *doc = NULL;
        const char *version, *kind_name;
        JsonError e = { 0 };
        SnapshotKind kind;
        char where[64];
        int r;

        r = json_parse_without(item->data, item->size, SNAPSHOT_LINE_BYTES_MAX, &omits, &doc, &e);
        if (r < 0 && r != -ENOMEM)
                return snapshot_refuse(l->reterr, "object %zu of the list cannot be read: %s at its byte %zu", number, e.message,
                                       e.offset + 1);
        if (r < 0)
                return r;
        version = json_string_or_null(json_get(json_root(doc), "apiVersion")) ?: l->api_version;
        kind_name = json_string_or_null(json_get(json_root(doc), "kind")) ?: l->kind;
        if (!version || !kind_name)
                return snapshot_refuse(l->reterr, "object %zu of the list has no apiVersion and kind", number);
        kind = snapshot_kind_of(version, kind_name);
        if (kind < 0)
                return pass_over(l, version, kind_name);
        (void) snprintf(where, sizeof(where), "object %zu of the list", number);
        return snapshot_read_object(l->snapshot, json_root(doc), kind, true, where, l->reterr);
}

/* NULL with 0: none was passed over. */
static int passed_over_sentence(const KubectlList *l, char **ret) {
        _cleanup_strbuf_ StrBuf b = { 0 };

        if (l->n_passed == 0)
                return 0;
        strbuf_add(&b, "These objects were passed over, for a snapshot has none of their kinds: ");
        for (size_t i = 0; i < l->n_passed; i++)
                strbuf_addf(&b, "%s%zu of %s", i > 0 ? ", " : "", l->passed[i].n, l->passed[i].kind);
        if (l->n_passed_more > 0)
                strbuf_addf(&b, ", and %zu others", l->n_passed_more);
        strbuf_add(&b, ".");
        *ret = strbuf_steal(&b);
        return *ret ? 0 : -ENOMEM;
}

int snapshot_load_list(const char *data, size_t size, usec_t taken_usec, InternPool *pool, Snapshot **ret,
                       char **ret_passed_over, char **reterr) {
        _cleanup_(list_done) KubectlList l = { .reterr = reterr };
        _cleanup_(json_doc_freep) JsonDoc *rest = NULL;
        JsonError e = { 0 };
        int r;

        assert(data || size == 0);
        assert(pool);
        assert(ret && ret_passed_over && reterr);
        *reterr = *ret_passed_over = NULL;
        r = json_split_items(data, size, SNAPSHOT_BYTES_MAX, on_item, &l, &rest, &e);
        if (r < 0 && r != -ENOMEM)
                return snapshot_refuse(reterr, "this is neither a snapshot nor a list of objects as kubectl prints it with -o json: "
                                               "%s at byte %zu", strempty(e.message), e.offset + 1);
        if (r >= 0)
                r = read_list_kind(&l, json_root(rest));
        if (r >= 0)
                r = snapshot_new(pool, taken_usec, &l.snapshot);
        for (size_t i = 0; r >= 0 && i < l.n_items; i++)
                r = read_item(&l, l.items + i, i + 1);
        if (r >= 0)
                r = passed_over_sentence(&l, ret_passed_over);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l.snapshot);
        return 0;
}
