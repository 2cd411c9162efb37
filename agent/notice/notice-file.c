/* SPDX-License-Identifier: Apache-2.0 */
#include "notice-file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file-util.h"
#include "notice-list.h"
#include "string-util.h"

#define FEED "file"
#define BYTES_MAX 65536u

typedef struct NoticeFile {
        NoticeSource source;
        Env *env;
        char *path;
        usec_t poll_usec;
        Timer *timer;
        NoticeSet known;
} NoticeFile;

static NoticeFile *to_file(NoticeSource *s) {
        return CONTAINER_OF(s, NoticeFile, source);
}

/* NULL: it may be believed. */
static const char *why_not_to_be_believed(const struct stat *st) {
        if (!S_ISREG(st->st_mode))
                return "it is no regular file";
        if (st->st_uid != 0 && st->st_uid != geteuid())
                return "it is not root's: whoever may write it has this node drained";
        if (st->st_mode & (S_IWGRP | S_IWOTH))
                return "others may write it (chmod go-w): whoever may has this node drained";
        if (st->st_size > BYTES_MAX)
                return "it is larger than 64 KiB";
        return NULL;
}

/* 1: read; 0: it is not there; negative: *reterr_why. */
static int read_whole(const NoticeFile *f, char *ret, size_t *ret_size, const char **reterr_why) {
        _cleanup_close_ int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        ssize_t n;

        *reterr_why = "it cannot be read";
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        *reterr_why = why_not_to_be_believed(&st);
        if (*reterr_why)
                return -EPERM;
        *reterr_why = "it cannot be read";
        for (*ret_size = 0; *ret_size < BYTES_MAX; *ret_size += (size_t) n) {
                n = read(fd, ret + *ret_size, BYTES_MAX - *ret_size);
                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
        }
        return 1;
}

static void on_timer(Timer *t, void *userdata) {
        NoticeFile *f = userdata;
        _cleanup_free_ char *body = malloc(BYTES_MAX);
        usec_t now = loop_now(f->env->loop);
        NoticeSet fresh = { 0 };
        const char *why = "out of memory";
        size_t size = 0;
        int r;

        timer_arm(f->timer, usec_add(now, f->poll_usec));
        r = body ? read_whole(f, body, &size, &why) : -ENOMEM;
        if (r > 0)
                r = notice_list_parse(&f->source, f->env->loop, body, size, now, &f->known, &fresh, &why);
        if (r < 0) {
                _cleanup_free_ char *text = strf("%s: %s", f->path, r == -ENOMEM ? "out of memory" : why);

                notice_source_unknown(&f->source, FEED, text ? text : "out of memory", now);
                return;
        }
        notice_set_done(&f->known);
        f->known = fresh;
        notice_source_found(&f->source, FEED, f->known.items, f->known.n, now);
}

static void file_start(NoticeSource *s) {
        timer_arm(to_file(s)->timer, loop_now(to_file(s)->env->loop));
}

static void file_free(NoticeSource *s) {
        NoticeFile *f = to_file(s);

        timer_free(f->timer);
        notice_set_done(&f->known);
        free(f->path);
        free(f);
}

static const char *const file_feeds[] = { FEED, NULL };

static void file_next_wakeup(const NoticeSource *s, Wakeups *w) {
        const NoticeFile *f = CONTAINER_OF(s, NoticeFile, source);

        wakeups_unfinished(w, "poll of", "file", f->path, MAX(NOTICE_SOURCE_WAKEUP_USEC, f->poll_usec));
        wakeups_timer(w, f->timer);
}

static const NoticeSourceOps file_ops = {
        .name = "file",
        .feeds = file_feeds,
        .start = file_start,
        .next_wakeup = file_next_wakeup,
        .free = file_free,
};

int notice_file_new(Env *env, const NoticeFileOptions *o, notice_look_t on_look, void *userdata, NoticeSource **ret) {
        NoticeFile *f;
        int r;

        assert(env && o && o->path && o->poll_usec > 0 && on_look && ret);
        f = new0(NoticeFile, 1);
        if (!f)
                return -ENOMEM;
        f->source = (NoticeSource){ .ops = &file_ops, .on_look = on_look, .userdata = userdata };
        f->env = env;
        f->poll_usec = o->poll_usec;
        f->path = strdup(o->path);
        r = f->path ? timer_new(env->loop, "notice-file", on_timer, f, &f->timer) : -ENOMEM;
        if (r < 0) {
                file_free(&f->source);
                return r;
        }
        *ret = &f->source;
        return 0;
}
