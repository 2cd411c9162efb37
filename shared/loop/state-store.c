/* SPDX-License-Identifier: Apache-2.0 */
#include "state-store.h"

/*
 * A record is a file of its name in one folder. It is written to "#NAME" first ('#' stands in no name), then
 * renamed over the old one. Until the rename the old record is whole; after it the new one is.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#include "file-util.h"
#include "string-util.h"

#define NAME_MAX_BYTES 200

typedef struct Folder {
        StateStore store;
        int fd;
} Folder;

static Folder *to_folder(StateStore *s) {
        return CONTAINER_OF(s, Folder, store);
}

static bool name_is_valid(const char *name) {
        size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789.-");

        return n > 0 && n <= NAME_MAX_BYTES && name[n] == 0 && !streq(name, ".") && !streq(name, "..");
}

static int folder_read(StateStore *s, const char *name, char **ret, size_t *ret_size) {
        if (!name_is_valid(name))
                return -EINVAL;
        return read_file_at(to_folder(s)->fd, name, STATE_RECORD_MAX_BYTES, ret, ret_size);
}

static int write_temporary(int folder_fd, const char *name, const void *data, size_t size) {
        _cleanup_close_ int fd = -EBADF;
        int r;

        fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, data, size);
        if (r < 0)
                return r;
        /* Some file systems tell of a failed write only now. */
        return close(TAKE_FD(fd)) < 0 && errno != EINTR ? -errno : 0;
}

static int folder_write(StateStore *s, const char *name, const void *data, size_t size) {
        Folder *f = to_folder(s);
        char temporary[NAME_MAX_BYTES + 2];
        int r;

        assert(data || size == 0);
        if (!name_is_valid(name))
                return -EINVAL;
        if (size > STATE_RECORD_MAX_BYTES)
                return -E2BIG;

        (void) snprintf(temporary, sizeof(temporary), "#%s", name);
        r = write_temporary(f->fd, temporary, data, size);
        if (r >= 0 && renameat(f->fd, temporary, f->fd, name) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(f->fd, temporary, 0);
        return r;
}

static void folder_free(StateStore *s) {
        Folder *f = to_folder(s);

        closep(&f->fd);
        free(f);
}

static const StateStoreOps folder_ops = {
        .read = folder_read,
        .write = folder_write,
        .free = folder_free,
};

int state_store_new_directory(const char *path, StateStore **ret) {
        _cleanup_free_ Folder *f = NULL;
        _cleanup_close_ int fd = -EBADF;

        assert(path);
        assert(ret);

        f = new0(Folder, 1);
        if (!f)
                return -ENOMEM;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return -errno;

        f->store.ops = &folder_ops;
        f->fd = TAKE_FD(fd);
        *ret = &TAKE_PTR(f)->store;
        return 0;
}

StateStore *state_store_free(StateStore *s) {
        if (s)
                s->ops->free(s);
        return NULL;
}
