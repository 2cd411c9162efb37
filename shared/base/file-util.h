/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <unistd.h>

#include "macro.h"

static inline void closep(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
        *fd = -EBADF;
}
#define _cleanup_close_ _cleanup_(closep)

/* Reads a regular file (or /proc and /sys entry) whole; a NUL stands behind *ret. -E2BIG past max_bytes, -ENOMEM, or the
 * errno of open and read. */
int read_file(const char *path, size_t max_bytes, char **ret, size_t *ret_size);
/* The same, a relative path being one inside the open folder (or AT_FDCWD). */
int read_file_at(int folder_fd, const char *path, size_t max_bytes, char **ret, size_t *ret_size);
/* Writes size bytes, in as many calls of write(2) as it takes. 0; the errno of write(2); -EIO: it wrote
 * nothing. */
int write_all(int fd, const void *p, size_t size);
