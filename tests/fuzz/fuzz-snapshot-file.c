/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuzz-objects.h"
#include "snapshot-anonymize.h"
#include "snapshot-file.h"
#include "string-util.h"

/*
 * Any text as a snapshot's file and as kubectl's list: a snapshot, or a sentence about what is wrong. And a snapshot of bent
 * objects, whatever is wrong with them: its file is read, and written the same again, with the same fingerprint; and so is its
 * anonymized one, which has as many objects, of the same kinds.
 */

static const struct {
        SnapshotKind kind;
        const char *template;
} objects[] = {
        { SNAPSHOT_NODES, fuzz_scheduled_node },
        { SNAPSHOT_NODES, fuzz_node },
        { SNAPSHOT_PODS, fuzz_scheduled_pod },
        { SNAPSHOT_PODS, fuzz_pod },
        { SNAPSHOT_PDBS, fuzz_pdb },
        { SNAPSHOT_VOLUME_CLAIMS, fuzz_scheduled_claim },
        { SNAPSHOT_VOLUMES, fuzz_volume },
        { SNAPSHOT_STORAGE_CLASSES, fuzz_storage_class },
        { SNAPSHOT_CSI_NODES, fuzz_csi_node },
        { SNAPSHOT_NAMESPACES, fuzz_namespace },
        { SNAPSHOT_NODE_POOLS, fuzz_node_pool },
        { SNAPSHOT_NODE_CLAIMS, fuzz_node_claim },
        { SNAPSHOT_NODE_BUDGETS, fuzz_node_budget },
};

/* What is written is read, and written the same. */
static void check_round(const Snapshot *s) {
        _cleanup_free_ char *text = NULL, *again = NULL, *why = NULL;
        char first[SNAPSHOT_FINGERPRINT_SIZE], second[SNAPSHOT_FINGERPRINT_SIZE];
        _cleanup_(snapshot_freep) Snapshot *other = NULL;
        size_t size, again_size;

        assert(snapshot_save(s, &text, &size) >= 0);
        assert(snapshot_is_file(text, size));
        if (snapshot_load(text, size, s->pool, &other, &why) < 0) {
                fprintf(stderr, "%s\n%s", strempty(why), text);
                assert(false && "a file of our own");
        }
        assert(snapshot_save(other, &again, &again_size) >= 0);
        if (!streq(text, again)) {
                fprintf(stderr, "%s%s", text, again);
                assert(false && "not the same");
        }
        assert(snapshot_fingerprint(s, first) >= 0 && snapshot_fingerprint(other, second) >= 0);
        assert(streq(first, second));
}

static void check_snapshot(const Snapshot *s) {
        _cleanup_(snapshot_freep) Snapshot *made = NULL;

        check_round(s);
        assert(snapshot_anonymize(s, &made) >= 0);
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++)
                assert(hashmap_size(made->objects[k]) == hashmap_size(s->objects[k]) && made->is_known[k] == s->is_known[k]);
        check_round(made);
}

static void check_text(const char *data, size_t size, InternPool *pool) {
        _cleanup_free_ char *why = NULL, *list_why = NULL, *passed = NULL;
        _cleanup_(snapshot_freep) Snapshot *s = NULL, *list = NULL;
        int r;

        r = snapshot_load(data, size, pool, &s, &why);
        assert(r == 0 || (r == -EBADMSG && !isempty(why) && !s));
        if (s)
                check_snapshot(s);
        r = snapshot_load_list(data, size, FUZZ_NOW, pool, &list, &passed, &list_why);
        assert(r == 0 || (r == -EBADMSG && !isempty(list_why) && !list && !passed));
        if (list)
                check_snapshot(list);
        assert(!s || !list);
}

static void check_bent(Draw *d, InternPool *pool) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;

        assert(snapshot_new(pool, FUZZ_NOW, &s) >= 0);
        for (size_t n = 1 + draw_below(d, 6); n > 0; n--) {
                size_t i = draw_below(d, ELEMENTSOF(objects));
                KubeObject *o = fuzz_draw_object(d, snapshot_kube_kind(objects[i].kind), objects[i].template, pool);

                if (o)
                        assert(snapshot_put(s, objects[i].kind, o) >= 0);
                kube_object_unref(o);
        }
        s->is_known[draw_below(d, _SNAPSHOT_KIND_MAX)] = true;
        check_snapshot(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(intern_pool_freep) InternPool *pool = NULL;

        assert(intern_pool_new(&pool) >= 0);
        if (draw_is_text(data, size))
                check_text((const char *) data, size, pool);
        else
                check_bent(&(Draw){ data, size }, pool);
        assert(intern_pool_size(pool) == 0);
        return 0;
}
