/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/*
 * LD_PRELOADed into an agent: a disk that hangs, for who is not root. While the file $HANGING_DISK_WHILE
 * exists, what would wait for the disk in the folder $HANGING_DISK (a path without links) does not return.
 */

#define LOOK_NSEC (20 * 1000 * 1000)

static void wait_for_disk(const char *path) {
        const char *folder = getenv("HANGING_DISK"), *hangs_while = getenv("HANGING_DISK_WHILE");

        if (!folder || !hangs_while || strncmp(path, folder, strlen(folder)) != 0)
                return;
        while (access(hangs_while, F_OK) == 0)
                (void) nanosleep(&(struct timespec){ .tv_nsec = LOOK_NSEC }, NULL);
}

static void wait_for_disk_of(int fd) {
        char link[64], path[PATH_MAX];
        ssize_t n;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        n = readlink(link, path, sizeof(path) - 1);
        path[n > 0 ? n : 0] = 0;
        wait_for_disk(path);
}

static void *next(const char *name) {
        return dlsym(RTLD_NEXT, name);
}

__attribute__((visibility("default"))) int fsync(int fd);
__attribute__((visibility("default"))) int mkdir(const char *path, mode_t mode);
__attribute__((visibility("default"))) int renameat(int from_fd, const char *from, int to_fd,
                                                    const char *to);
__attribute__((visibility("default"))) int open64(const char *path, int flags, ...);
__attribute__((visibility("default"))) int openat64(int fd, const char *path, int flags, ...);

int fsync(int fd) {
        wait_for_disk_of(fd);
        return ((int (*)(int)) next("fsync"))(fd);
}

int mkdir(const char *path, mode_t mode) {
        wait_for_disk(path);
        return ((int (*)(const char *, mode_t)) next("mkdir"))(path, mode);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to) {
        wait_for_disk_of(from_fd);
        return ((int (*)(int, const char *, int, const char *)) next("renameat"))(from_fd, from, to_fd, to);
}

int openat64(int fd, const char *path, int flags, ...) {
        mode_t mode = 0;

        if (flags & O_CREAT) {
                va_list ap;

                va_start(ap, flags);
                mode = va_arg(ap, mode_t);
                va_end(ap);
        }
        if (fd == AT_FDCWD || path[0] == '/')
                wait_for_disk(path);
        else
                wait_for_disk_of(fd);
        return ((int (*)(int, const char *, int, ...)) next("openat64"))(fd, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
        mode_t mode = 0;

        if (flags & O_CREAT) {
                va_list ap;

                va_start(ap, flags);
                mode = va_arg(ap, mode_t);
                va_end(ap);
        }
        return openat64(AT_FDCWD, path, flags, mode);
}
