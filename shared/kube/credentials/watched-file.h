/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file that somebody else replaces now and then (kubelet's certificate, a projected token): noticed by
 * stat(), which follows the symlinks that both swap. Private to kube/. */

#include <stdbool.h>
#include <sys/stat.h>

#include "macro.h"

typedef struct FileStamp {
        dev_t device;
        ino_t inode;
        off_t size;
        struct timespec modified;
} FileStamp;

typedef struct WatchedFile {
        const char *path; /* borrowed; NULL: there is no such file */
        FileStamp taken;  /* of the content that is in use */
        FileStamp seen;   /* of the content that is being tried */
} WatchedFile;

/* Looks again. True: it is another one than that in use. A file that cannot be seen now has not changed:
 * rotation may be in the middle, and what is in use is still good. */
bool watched_file_changed(WatchedFile *f);
/* Reads it and remembers its stamp as seen (taken before reading: a change in between shows at the next
 * look). NULL path: *ret is NULL. -errno of reading. The content is often a secret. */
int watched_file_read(WatchedFile *f, char **ret, size_t *ret_size);
/* What was read last is in use now. */
void watched_file_take(WatchedFile *f);
