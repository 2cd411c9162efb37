/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The service manager's store of descriptors (sd_notify(3), FDSTORE=1), as Env hands it out: store_fd(),
 * take_stored_fd(), forget_fd(). Needs FileDescriptorStoreMax= in the unit; userdata is the FdStore. */

#include <stddef.h>

typedef struct FdStore {
        char **names; /* of what was found at the start */
        int *fds;     /* -EBADF: handed out */
        size_t n;
} FdStore;

/* Takes what the manager handed to this process. 0 or a negative errno. */
int fd_store_init(FdStore *s);
void fd_store_done(FdStore *s); /* closes what nobody took; the manager's copies stay */

int fd_store_put(const char *name, int fd, void *store);
int fd_store_take(const char *name, void *store);
void fd_store_forget(const char *name, void *store);
