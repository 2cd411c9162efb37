/* SPDX-License-Identifier: Apache-2.0 */
#include "fd-store.h"

#include <fcntl.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "string-util.h"
#include "strv.h"

int fd_store_init(FdStore *s) {
        int n;

        n = sd_listen_fds_with_names(true, &s->names);
        if (n <= 0)
                return n;
        s->fds = new0(int, (size_t) n);
        if (!s->fds)
                return -ENOMEM;
        s->n = (size_t) n;
        for (int i = 0; i < n; i++) {
                s->fds[i] = SD_LISTEN_FDS_START + i;
                (void) fcntl(s->fds[i], F_SETFD, FD_CLOEXEC);
        }
        return 0;
}

void fd_store_done(FdStore *s) {
        for (size_t i = 0; i < s->n; i++)
                if (s->fds[i] >= 0)
                        (void) close(s->fds[i]);
        s->fds = mfree(s->fds);
        s->names = strv_free(s->names);
        s->n = 0;
}

/* FDPOLL=0: the manager must not drop it when logind restarts and the pipe hangs up for a moment. */
int fd_store_put(const char *name, int fd, void *store) {
        _cleanup_free_ char *text = strf("FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
        int r;

        if (!text)
                return -ENOMEM;
        r = sd_pid_notify_with_fds(0, 0, text, &fd, 1);
        return r < 0 ? r : r == 0 ? -EOPNOTSUPP : 0;
}

int fd_store_take(const char *name, void *store) {
        FdStore *s = store;

        for (size_t i = 0; i < s->n; i++)
                if (s->fds[i] >= 0 && streq(s->names[i], name))
                        return TAKE_FD(s->fds[i]);
        return -ENOENT;
}

void fd_store_forget(const char *name, void *store) {
        _cleanup_free_ char *text = strf("FDSTOREREMOVE=1\nFDNAME=%s", name);

        if (text)
                (void) sd_notify(0, text);
}
