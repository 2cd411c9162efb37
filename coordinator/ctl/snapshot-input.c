/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot-input.h"

#include <stdio.h>
#include <sys/stat.h>

#include "ctl.h"
#include "file-util.h"
#include "snapshot-file.h"
#include "string-util.h"
#include "strv.h"

/* Of standard input, which has no size to be asked for. */
static int read_stdin(char **ret, size_t *ret_size) {
        _cleanup_free_ char *data = NULL;
        size_t size = 0, allocated = 0;

        for (;;) {
                size_t n;
                int r = GREEDY_REALLOC(data, allocated, size + 65536 + 1);

                if (r < 0)
                        return r;
                n = fread(data + size, 1, 65536, stdin);
                size += n;
                if (size > SNAPSHOT_BYTES_MAX)
                        return -E2BIG;
                if (n == 0)
                        break;
        }
        if (ferror(stdin))
                return -EIO;
        data[size] = 0;
        *ret = TAKE_PTR(data);
        *ret_size = size;
        return 0;
}

/* A list has no time; its file has. */
static usec_t time_of(const char *path, usec_t now_usec) {
        struct stat st;

        if (streq(path, "-") || stat(path, &st) < 0 || st.st_mtim.tv_sec < 0)
                return now_usec;
        return (usec_t) st.st_mtim.tv_sec * USEC_PER_SEC;
}

static int read_one(const char *path, const SnapshotInputOptions *options, InternPool *pool, bool *ret_is_ours, Snapshot **ret,
                    char ***notes) {
        _cleanup_free_ char *data = NULL, *error = NULL, *passed_over = NULL;
        size_t size;
        int r;

        r = streq(path, "-") ? read_stdin(&data, &size) : read_file(path, SNAPSHOT_BYTES_MAX, &data, &size);
        if (r < 0) {
                errno = -r;
                return ctl_complain("the snapshot '%s' cannot be read: %m", path);
        }
        *ret_is_ours = snapshot_is_file(data, size);
        r = *ret_is_ours ? snapshot_load(data, size, pool, ret, &error)
                         : snapshot_load_list(data, size, time_of(path, options->now_usec), pool, ret, &passed_over, &error);
        if (r < 0)
                return ctl_complain("'%s' is no snapshot: %s", path, error ?: r == -ENOMEM ? "out of memory" : "it cannot be understood");
        if (passed_over && strv_extend(notes, passed_over) < 0)
                return -ENOMEM;
        return 0;
}

/* Puts what `from` has into `s`. */
static int add_snapshot(Snapshot *s, const Snapshot *from) {
        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++) {
                KubeObject *o;

                HASHMAP_FOREACH(o, from->objects[k]) {
                        int r = snapshot_put(s, k, o);

                        if (r < 0)
                                return r;
                }
                s->is_known[k] = s->is_known[k] || from->is_known[k];
        }
        s->taken_usec = MAX(s->taken_usec, from->taken_usec);
        return 0;
}

/* What was not in the lists: kubectl does not say that there is none. */
static int note_unknown(Snapshot *s, bool is_complete, char ***notes) {
        _cleanup_strbuf_ StrBuf b = {};

        for (SnapshotKind k = 0; k < _SNAPSHOT_KIND_MAX; k++) {
                if (is_complete)
                        s->is_known[k] = true;
                if (!s->is_known[k])
                        strbuf_addf(&b, "%s%s", b.size > 0 ? ", " : "", snapshot_kube_kind(k)->plural);
        }
        if (b.size == 0)
                return 0;
        strbuf_add(&b, ": the snapshot does not say whether there are any. If there are none, say --complete");
        return strv_extend(notes, strbuf_str(&b));
}

int snapshot_input(char *const *paths, const SnapshotInputOptions *options, InternPool *pool, Snapshot **ret, char ***ret_notes) {
        _cleanup_(snapshot_freep) Snapshot *s = NULL;
        _cleanup_strv_free_ char **notes = NULL;
        bool is_ours = false;
        int r;

        STRV_FOREACH(path, paths) {
                _cleanup_(snapshot_freep) Snapshot *one = NULL;

                if (s && is_ours)
                        return ctl_complain("'%s' is a snapshot already: it is read alone", paths[0]);
                r = read_one(*path, options, pool, &is_ours, &one, &notes);
                if (r < 0)
                        return r;
                if (!s)
                        s = TAKE_PTR(one);
                else
                        r = is_ours ? ctl_complain("'%s' is a snapshot already: it is read alone", *path) : add_snapshot(s, one);
                if (r < 0)
                        return r;
        }
        assert(s);
        r = note_unknown(s, options->is_complete, &notes);
        if (r < 0)
                return r;
        if (!s->is_known[SNAPSHOT_NODES] || !s->is_known[SNAPSHOT_PODS])
                return ctl_complain("the snapshot has no %s, without which nothing can be planned",
                                    s->is_known[SNAPSHOT_NODES] ? "pods" : "nodes");

        *ret = TAKE_PTR(s);
        *ret_notes = TAKE_PTR(notes);
        return 0;
}
