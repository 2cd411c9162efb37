/* SPDX-License-Identifier: Apache-2.0 */
#include "watched-file.h"

#include "file-util.h"

#define FILE_BYTES_MAX (1024u * 1024)

static int stamp_of(const char *path, FileStamp *ret) {
        struct stat st;

        if (stat(path, &st) < 0)
                return -errno;
        *ret = (FileStamp){ st.st_dev, st.st_ino, st.st_size, st.st_mtim };
        return 0;
}

static bool stamp_equal(const FileStamp *a, const FileStamp *b) {
        return a->device == b->device && a->inode == b->inode && a->size == b->size &&
               a->modified.tv_sec == b->modified.tv_sec && a->modified.tv_nsec == b->modified.tv_nsec;
}

bool watched_file_changed(WatchedFile *f) {
        FileStamp now = { 0 };

        return f->path && stamp_of(f->path, &now) >= 0 && !stamp_equal(&now, &f->taken);
}

int watched_file_read(WatchedFile *f, char **ret, size_t *ret_size) {
        int r;

        *ret = NULL;
        *ret_size = 0;
        if (!f->path)
                return 0;
        r = stamp_of(f->path, &f->seen);
        return r < 0 ? r : read_file(f->path, FILE_BYTES_MAX, ret, ret_size);
}

void watched_file_take(WatchedFile *f) {
        f->taken = f->seen;
}
