/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake-index.h"
#include "fake-protobuf.h"

#define HISTORY_DEFAULT 50000u
#define STRANGE_EVERY 4u /* versions */

typedef struct Entry {
        char *key;
        FakeVersion *version;
} Entry;

/* Indexes of changes never shift for their users within one loop iteration: the oldest are dropped in bulk,
 * by a write. */
typedef struct Shelf {
        const FakeResource *resource;
        Entry *entries; /* sorted by key */
        size_t n_entries, entries_allocated;
        FakeChange *changes;
        size_t n_changes, changes_allocated;
        uint64_t compacted;
} Shelf;

typedef struct Observer {
        fake_store_observer_t fn;
        void *userdata;
} Observer;

struct FakeStore {
        Loop *loop;
        size_t history;
        uint64_t rv;
        Shelf shelves[_FAKE_RESOURCE_MAX];
        FakeIndex *pods_by_node, *pods_by_owner; /* spec.nodeName, uids of metadata.ownerReferences */
        Observer *observers;
        size_t n_observers, observers_allocated;
};

/* -- versions ------------------------------------------------------------------------------------------ */

static FakeVersion *version_new(cJSON *json, uint64_t rv) {
        FakeVersion *v = MUST(new0(FakeVersion, 1));
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, rv);
        fj_set_string(fj_object(json, "metadata"), "resourceVersion", text);
        v->n_ref = 1;
        v->rv = rv;
        v->json = json;
        return v;
}

FakeVersion *fake_version_ref(FakeVersion *v) {
        if (v)
                v->n_ref++;
        return v;
}

FakeVersion *fake_version_unref(FakeVersion *v) {
        if (!v || --v->n_ref > 0)
                return NULL;

        cJSON_Delete(v->json);
        free(v->text);
        free(v->message);
        return mfree(v);
}

const char *fake_version_text(FakeVersion *v) {
        if (!v->text)
                v->text = fj_print(v->json);
        return v->text;
}

const char *fake_version_message(const FakeResource *r, FakeVersion *v, size_t *ret_size) {
        if (!v->message) {
                StrBuf b = { 0 };

                fake_protobuf_add_message(&b, r, v->json, v->rv % STRANGE_EVERY == 0);
                v->message_size = b.size;
                v->message = MUST(strbuf_steal(&b));
        }
        *ret_size = v->message_size;
        return v->message;
}

FakeHealth fake_version_health(FakeVersion *v) {
        if (!v->looked) {
                const cJSON *ready = fj_find(fj_get(v->json, "status", "conditions", NULL), "type", "Ready");

                v->going = fj_get(v->json, "metadata", "deletionTimestamp", NULL);
                v->ready = streq_ptr(fj_string(ready, "status", NULL), "True");
                v->looked = true;
        }
        return v->going ? FAKE_GOING : v->ready ? FAKE_READY : FAKE_UNREADY;
}

char *fake_version_print(const FakeResource *r, FakeVersion *v) {
        const char *text = fake_version_text(v);

        return MUST(strf("{\"kind\":\"%s\",\"apiVersion\":\"%s\"%s%s", r->kind, fake_resource_api_version(r),
                         streq(text, "{}") ? "" : ",", text + 1));
}

/* -- keys ---------------------------------------------------------------------------------------------- */

static char *make_key(const char *ns, const char *name) {
        return MUST(isempty(ns) ? strdup(name) : strf("%s/%s", ns, name));
}

char *fake_object_key(const cJSON *object) {
        return make_key(fj_string(object, "metadata", "namespace", NULL),
                        MUST(fj_string(object, "metadata", "name", NULL)));
}

static size_t lower_bound(const Shelf *shelf, const char *key) {
        size_t low = 0, high = shelf->n_entries;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (strcmp(shelf->entries[mid].key, key) < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static Entry *find(const Shelf *shelf, const char *key) {
        size_t i = lower_bound(shelf, key);

        return i < shelf->n_entries && streq(shelf->entries[i].key, key) ? &shelf->entries[i] : NULL;
}

/* -- indexes of pods ------------------------------------------------------------------------------------ */

/* Of one node's pods there are thirty among thousands. */
static void index_node(FakeStore *s, const cJSON *pod, const char *key, bool there) {
        const char *node = fj_string(pod, "spec", "nodeName", NULL);

        if (isempty(node))
                return;
        if (there)
                fake_index_put(s->pods_by_node, node, key);
        else
                fake_index_remove(s->pods_by_node, node, key);
}

/* An owner that is named twice counts once. */
static bool is_named_before(const cJSON *owners, const cJSON *owner, const char *uid) {
        return fj_find(owners, "uid", uid) != owner;
}

static void index_owners(FakeStore *s, const cJSON *pod, const char *key, bool there) {
        const cJSON *owners = fj_get(pod, "metadata", "ownerReferences", NULL), *owner;

        cJSON_ArrayForEach (owner, owners) {
                const char *uid = fj_string(owner, "uid", NULL);

                if (isempty(uid) || is_named_before(owners, owner, uid))
                        continue;
                if (there)
                        fake_index_put(s->pods_by_owner, uid, key);
                else
                        fake_index_remove(s->pods_by_owner, uid, key);
        }
}

/* old or new NULL: it comes, it goes. The key is the entry's. */
static void index_change(FakeStore *s, const Shelf *shelf, const char *key, const cJSON *old,
                         const cJSON *new) {
        if (shelf->resource->id != FAKE_PODS)
                return;
        if (!streq_ptr(fj_string(old, "spec", "nodeName", NULL), fj_string(new, "spec", "nodeName", NULL))) {
                index_node(s, old, key, false);
                index_node(s, new, key, true);
        }
        if (!fj_equal(fj_get(old, "metadata", "ownerReferences", NULL),
                      fj_get(new, "metadata", "ownerReferences", NULL))) {
                index_owners(s, old, key, false);
                index_owners(s, new, key, true);
        }
}

/* -- life ---------------------------------------------------------------------------------------------- */

static void change_done(FakeChange *c) {
        fake_version_unref(c->old);
        fake_version_unref(c->new);
        fake_version_unref(c->gone);
}

FakeStore *fake_store_new(Loop *loop, size_t history) {
        FakeStore *s = MUST(new0(FakeStore, 1));

        s->loop = loop;
        s->history = history > 0 ? history : HISTORY_DEFAULT;
        s->rv = 1;
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                s->shelves[id].resource = fake_resource(id);
        s->pods_by_node = fake_index_new();
        s->pods_by_owner = fake_index_new();
        return s;
}

FakeStore *fake_store_free(FakeStore *s) {
        if (!s)
                return NULL;

        fake_index_free(s->pods_by_node); /* it borrows the entries' keys */
        fake_index_free(s->pods_by_owner);
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++) {
                Shelf *shelf = &s->shelves[id];

                for (size_t i = 0; i < shelf->n_changes; i++)
                        change_done(&shelf->changes[i]);
                for (size_t i = 0; i < shelf->n_entries; i++) {
                        free(shelf->entries[i].key);
                        fake_version_unref(shelf->entries[i].version);
                }
                free(shelf->changes);
                free(shelf->entries);
        }
        free(s->observers);
        return mfree(s);
}

Loop *fake_store_loop(const FakeStore *s) {
        return s->loop;
}

uint64_t fake_store_rv(const FakeStore *s) {
        return s->rv;
}

const char *fake_store_timestamp(const FakeStore *s, char ret[RFC3339_MAX]) {
        rfc3339_format(loop_wall(s->loop), ret);
        return ret;
}

void fake_store_observe(FakeStore *s, fake_store_observer_t observer, void *userdata) {
        int r = GREEDY_REALLOC(s->observers, s->observers_allocated, s->n_observers + 1);

        assert(r >= 0);
        s->observers[s->n_observers++] = (Observer){ observer, userdata };
}

/* -- reading ------------------------------------------------------------------------------------------- */

FakeVersion *fake_store_version(const FakeStore *s, FakeResourceId id, const char *ns, const char *name) {
        _cleanup_free_ char *key = make_key(ns, name);
        Entry *e = find(&s->shelves[id], key);

        return e ? e->version : NULL;
}

const cJSON *fake_store_get(const FakeStore *s, FakeResourceId id, const char *ns, const char *name) {
        FakeVersion *v = fake_store_version(s, id, ns, name);

        return v ? v->json : NULL;
}

size_t fake_store_size(const FakeStore *s, FakeResourceId id) {
        return s->shelves[id].n_entries;
}

FakeVersion *fake_store_at(const FakeStore *s, FakeResourceId id, size_t i) {
        return i < s->shelves[id].n_entries ? s->shelves[id].entries[i].version : NULL;
}

size_t fake_store_lower_bound(const FakeStore *s, FakeResourceId id, const char *ns, const char *name) {
        _cleanup_free_ char *key = make_key(ns, name);

        return lower_bound(&s->shelves[id], key);
}

size_t fake_store_first(const FakeStore *s, FakeResourceId id, const char *ns) {
        return ns ? fake_store_lower_bound(s, id, ns, "") : 0;
}

const cJSON *fake_store_in_ns(const FakeStore *s, FakeResourceId id, const char *ns, size_t i) {
        const Shelf *shelf = &s->shelves[id];
        const char *rest;

        if (i >= shelf->n_entries)
                return NULL;
        if (ns) {
                rest = startswith(shelf->entries[i].key, ns);
                if (!rest || *rest != '/')
                        return NULL;
        }
        return shelf->entries[i].version->json;
}

static FakeVersion *pod_at(const FakeStore *s, const FakeIndex *x, const char *name, size_t n) {
        const char *key = fake_index_at(x, name, n);

        return key ? MUST(find(&s->shelves[FAKE_PODS], key))->version : NULL;
}

FakeVersion *fake_store_node_pod(const FakeStore *s, const char *node, size_t n) {
        return pod_at(s, s->pods_by_node, node, n);
}

FakeVersion *fake_store_owned_pod(const FakeStore *s, const char *uid, size_t n) {
        return pod_at(s, s->pods_by_owner, uid, n);
}

/* -- writing ------------------------------------------------------------------------------------------- */

static void trim(FakeStore *s, Shelf *shelf) {
        size_t drop;

        if (shelf->n_changes <= s->history)
                return;

        drop = shelf->n_changes - s->history / 2;
        shelf->compacted = shelf->changes[drop - 1].rv;
        for (size_t i = 0; i < drop; i++)
                change_done(&shelf->changes[i]);
        memmove(shelf->changes, shelf->changes + drop, (shelf->n_changes - drop) * sizeof(FakeChange));
        shelf->n_changes -= drop;
}

/* Takes the references. */
static void record(FakeStore *s, Shelf *shelf, FakeVersion *old, FakeVersion *new, FakeVersion *gone) {
        FakeChange change = { shelf->resource, s->rv, old, new, gone };
        int r;

        trim(s, shelf);
        r = GREEDY_REALLOC(shelf->changes, shelf->changes_allocated, shelf->n_changes + 1);
        assert(r >= 0);
        shelf->changes[shelf->n_changes++] = change;

        for (size_t i = 0; i < s->n_observers; i++)
                s->observers[i].fn(&change, s->observers[i].userdata);
}

FakeVersion *fake_store_create(FakeStore *s, FakeResourceId id, cJSON *object) {
        Shelf *shelf = &s->shelves[id];
        char *key = fake_object_key(object);
        size_t at = lower_bound(shelf, key);
        FakeVersion *v;
        int r;

        assert(!find(shelf, key) && "created twice");
        r = GREEDY_REALLOC(shelf->entries, shelf->entries_allocated, shelf->n_entries + 1);
        assert(r >= 0);

        v = version_new(object, ++s->rv);
        memmove(shelf->entries + at + 1, shelf->entries + at, (shelf->n_entries - at) * sizeof(Entry));
        shelf->entries[at] = (Entry){ key, v };
        shelf->n_entries++;
        index_change(s, shelf, key, NULL, v->json);
        record(s, shelf, NULL, fake_version_ref(v), NULL);
        return v;
}

FakeVersion *fake_store_update(FakeStore *s, FakeResourceId id, cJSON *object) {
        _cleanup_free_ char *key = fake_object_key(object);
        Shelf *shelf = &s->shelves[id];
        Entry *e = MUST(find(shelf, key));
        FakeVersion *old = e->version;

        fj_set_copy(fj_object(object, "metadata"), "resourceVersion",
                    fj_get(old->json, "metadata", "resourceVersion", NULL));
        if (fj_equal(object, old->json)) {
                cJSON_Delete(object);
                return old;
        }

        e->version = version_new(object, ++s->rv);
        index_change(s, shelf, e->key, old->json, object);
        record(s, shelf, old, fake_version_ref(e->version), NULL);
        return fake_store_version(s, id, fj_string(object, "metadata", "namespace", NULL),
                                  fj_string(object, "metadata", "name", NULL));
}

bool fake_store_delete(FakeStore *s, FakeResourceId id, const char *ns, const char *name) {
        _cleanup_free_ char *key = make_key(ns, name);
        Shelf *shelf = &s->shelves[id];
        Entry *e = find(shelf, key);
        FakeVersion *old;
        size_t at;

        if (!e)
                return false;

        at = (size_t) (e - shelf->entries);
        old = e->version;
        index_change(s, shelf, e->key, old->json, NULL);
        free(e->key);
        memmove(shelf->entries + at, shelf->entries + at + 1, (shelf->n_entries - at - 1) * sizeof(Entry));
        shelf->n_entries--;
        s->rv++;
        record(s, shelf, old, NULL, version_new(fj_copy(old->json), s->rv));
        return true;
}

/* -- the past ------------------------------------------------------------------------------------------ */

uint64_t fake_store_compacted(const FakeStore *s, FakeResourceId id) {
        return s->shelves[id].compacted;
}

void fake_store_compact(FakeStore *s) {
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++) {
                Shelf *shelf = &s->shelves[id];

                for (size_t i = 0; i < shelf->n_changes; i++)
                        change_done(&shelf->changes[i]);
                shelf->n_changes = 0;
                shelf->compacted = s->rv;
        }
}

size_t fake_store_changes_after(const FakeStore *s, FakeResourceId id, uint64_t rv) {
        const Shelf *shelf = &s->shelves[id];
        size_t low = 0, high = shelf->n_changes;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (shelf->changes[mid].rv <= rv)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

const FakeChange *fake_store_change(const FakeStore *s, FakeResourceId id, size_t i) {
        const Shelf *shelf = &s->shelves[id];

        return i < shelf->n_changes ? &shelf->changes[i] : NULL;
}

struct FakeBackup {
        uint64_t rv;
        struct {
                FakeVersion **versions; /* in the order of keys */
                size_t n;
        } shelves[_FAKE_RESOURCE_MAX];
};

FakeBackup *fake_store_backup(const FakeStore *s) {
        FakeBackup *b = MUST(new0(FakeBackup, 1));

        b->rv = s->rv;
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++) {
                const Shelf *shelf = &s->shelves[id];

                b->shelves[id].versions = MUST(new0(FakeVersion *, shelf->n_entries + 1));
                b->shelves[id].n = shelf->n_entries;
                for (size_t i = 0; i < shelf->n_entries; i++)
                        b->shelves[id].versions[i] = fake_version_ref(shelf->entries[i].version);
        }
        return b;
}

FakeBackup *fake_backup_free(FakeBackup *b) {
        if (!b)
                return NULL;
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                fake_versions_free(b->shelves[id].versions, b->shelves[id].n);
        return mfree(b);
}

void fake_store_skip(FakeStore *s, uint64_t n) {
        s->rv += n;
}

static bool is_in_backup(const FakeBackup *b, FakeResourceId id, const FakeVersion *v) {
        for (size_t i = 0; i < b->shelves[id].n; i++)
                if (b->shelves[id].versions[i] == v)
                        return true;
        return false;
}

static void tell(FakeStore *s, const Shelf *shelf, FakeVersion *old, FakeVersion *new) {
        const FakeChange change = { shelf->resource, s->rv, old, new, old };

        for (size_t i = 0; i < s->n_observers; i++)
                s->observers[i].fn(&change, s->observers[i].userdata);
}

static void take_off(FakeStore *s, Shelf *shelf, size_t at) {
        Entry e = shelf->entries[at];

        index_change(s, shelf, e.key, e.version->json, NULL);
        memmove(shelf->entries + at, shelf->entries + at + 1, (shelf->n_entries - at - 1) * sizeof(Entry));
        shelf->n_entries--;
        tell(s, shelf, e.version, NULL);
        free(e.key);
        fake_version_unref(e.version);
}

static void put_back(FakeStore *s, Shelf *shelf, FakeVersion *v) {
        char *key = fake_object_key(v->json);
        size_t at = lower_bound(shelf, key);
        int r = GREEDY_REALLOC(shelf->entries, shelf->entries_allocated, shelf->n_entries + 1);

        assert(r >= 0);
        memmove(shelf->entries + at + 1, shelf->entries + at, (shelf->n_entries - at) * sizeof(Entry));
        shelf->entries[at] = (Entry){ key, fake_version_ref(v) };
        shelf->n_entries++;
        index_change(s, shelf, key, NULL, v->json);
        tell(s, shelf, NULL, v);
}

void fake_store_restore(FakeStore *s, const FakeBackup *b, uint64_t bump) {
        s->rv = b->rv + bump;
        fake_store_compact(s);
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                for (size_t i = s->shelves[id].n_entries; i-- > 0;)
                        if (!is_in_backup(b, id, s->shelves[id].entries[i].version))
                                take_off(s, &s->shelves[id], i);
        for (FakeResourceId id = 0; id < _FAKE_RESOURCE_MAX; id++)
                for (size_t i = 0; i < b->shelves[id].n; i++) {
                        _cleanup_free_ char *key = fake_object_key(b->shelves[id].versions[i]->json);

                        if (!find(&s->shelves[id], key))
                                put_back(s, &s->shelves[id], b->shelves[id].versions[i]);
                }
}

/* A state of the past with its key, for sorting. */
typedef struct Keyed {
        char *key;
        FakeVersion *version;
} Keyed;

static int compare_keyed(const void *a, const void *b) {
        return strcmp(((const Keyed *) a)->key, ((const Keyed *) b)->key);
}

/* The states at rv of everything that was changed since, by key: each object's before its first change. */
static Keyed *changed_since(const Shelf *shelf, size_t after, uint64_t rv, size_t *ret_n) {
        Keyed *all = MUST(new0(Keyed, shelf->n_changes - after + 1));
        size_t n = 0;

        for (size_t i = after; i < shelf->n_changes; i++) {
                FakeVersion *old = shelf->changes[i].old;

                if (old && old->rv <= rv)
                        all[n++] = (Keyed){ fake_object_key(old->json), old };
        }
        if (n > 0)
                qsort(all, n, sizeof(*all), compare_keyed);
        *ret_n = n;
        return all;
}

/* What is now and was then already, and what has been changed since: two sorted lines become one. */
FakeVersion **fake_store_snapshot(const FakeStore *s, FakeResourceId id, uint64_t rv, size_t *ret_n) {
        const Shelf *shelf = &s->shelves[id];
        size_t n_changed, n = 0, k = 0;
        Keyed *changed = changed_since(shelf, fake_store_changes_after(s, id, rv), rv, &n_changed);
        FakeVersion **all = MUST(new0(FakeVersion *, shelf->n_entries + n_changed + 1));

        for (size_t i = 0; i <= shelf->n_entries; i++) {
                const Entry *e = i < shelf->n_entries ? &shelf->entries[i] : NULL;

                if (e && e->version->rv > rv)
                        continue;
                for (; k < n_changed && (!e || strcmp(changed[k].key, e->key) < 0); k++)
                        all[n++] = fake_version_ref(changed[k].version);
                if (e)
                        all[n++] = fake_version_ref(e->version);
        }
        for (k = 0; k < n_changed; k++)
                free(changed[k].key);
        free(changed);
        *ret_n = n;
        return all;
}

void fake_versions_free(FakeVersion **v, size_t n) {
        for (size_t i = 0; i < n; i++)
                fake_version_unref(v[i]);
        free(v);
}
