/* SPDX-License-Identifier: Apache-2.0 */
#include "file-util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "alloc-util.h"

int read_file_at(int folder_fd, const char *path, size_t max_bytes, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *data = NULL;
        size_t size = 0, allocated = 0;
        struct stat st;

        assert(path);
        assert(max_bytes < SIZE_MAX - 1);
        assert(ret);

        /* O_NONBLOCK: a FIFO in the place of a file must not hang us before it can be refused. */
        fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
        if (st.st_size > 0 && (uint64_t) st.st_size > max_bytes)
                return -E2BIG;

        /* The size is a hint only: /proc says 0, /sys says 4096, and a file may grow as we read. */
        for (size_t want = st.st_size > 0 ? (size_t) st.st_size : 4096;; want = 4096) {
                ssize_t n;

                if (size > max_bytes)
                        return -E2BIG;
                if (GREEDY_REALLOC(data, allocated, size + want + 2) < 0)
                        return -ENOMEM;

                do
                        n = read(fd, data + size, allocated - size - 1);
                while (n < 0 && errno == EINTR);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                size += (size_t) n;
        }

        data[size] = 0;
        *ret = TAKE_PTR(data);
        if (ret_size)
                *ret_size = size;
        return 0;
}

int read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_size) {
        return read_file_at(AT_FDCWD, path, max_bytes, ret, ret_size);
}

int write_all(int fd, const void *p, size_t size) {
        const char *rest = p;

        while (size > 0) {
                ssize_t n = write(fd, rest, size);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                if (n == 0)
                        return -EIO;
                rest += n;
                size -= (size_t) n;
        }
        return 0;
}
