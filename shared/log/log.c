/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "alloc-util.h"
#include "file-util.h"
#include "log-internal.h"
#include "parse-util.h"
#include "string-util.h"

#define PATIENCE_USEC (200 * USEC_PER_MSEC)
#define PATIENCE_AGAIN_USEC (10 * USEC_PER_SEC)
/* What a wait costs at least, so that a reader whose readiness others use up is not asked for ever. */
#define WAIT_LEAST_USEC USEC_PER_MSEC

struct Log {
        LogTarget target;
        LogLevel max_level;
        char *identifier;
        log_hook_t hook;
        void *userdata;
        int journal_fd;
        uint64_t n_lost; /* since something was taken */
        int lost_error;  /* ... the last of them for this */
        bool torn;       /* a line on standard error has no end */
        LogPatience patience;
};

static const char *const target_table[_LOG_TARGET_MAX] = {
        [LOG_TARGET_JOURNAL] = "journal",
        [LOG_TARGET_JSON] = "json",
        [LOG_TARGET_TEXT] = "text",
        [LOG_TARGET_NULL] = "null",
};

static const char *const level_table[] = {
        [LOG_LEVEL_ERROR] = "error", [LOG_LEVEL_WARNING] = "warning", [LOG_LEVEL_NOTICE] = "notice",
        [LOG_LEVEL_INFO] = "info",   [LOG_LEVEL_DEBUG] = "debug",
};

int log_new(LogTarget target, LogLevel max_level, const char *identifier, Log **ret) {
        _cleanup_(log_freep) Log *l = NULL;

        assert(target >= 0 && target < _LOG_TARGET_MAX);
        assert(identifier);
        assert(ret);

        l = new0(Log, 1);
        if (!l)
                return -ENOMEM;
        l->target = target;
        l->journal_fd = -EBADF;
        l->max_level = max_level;
        l->identifier = strdup(identifier);
        if (!l->identifier)
                return -ENOMEM;
        *ret = TAKE_PTR(l);
        return 0;
}

Log *log_free(Log *l) {
        if (!l)
                return NULL;
        closep(&l->journal_fd);
        free(l->identifier);
        return mfree(l);
}

void log_set_hook(Log *l, log_hook_t hook, void *userdata) {
        assert(l);
        l->hook = hook;
        l->userdata = userdata;
}

void log_set_level(Log *l, LogLevel max_level) {
        assert(l);
        l->max_level = max_level;
}

void log_set_target(Log *l, LogTarget target) {
        assert(l);
        assert(target >= 0 && target < _LOG_TARGET_MAX);
        l->target = target;
}

/* systemd puts "DEVICE:INODE" of the stream it gave us into JOURNAL_STREAM; standard error may have been
 * redirected since (systemd.exec(5)). */
static bool stderr_is_journal(void) {
        _cleanup_free_ char *copy = NULL;
        const char *variable = getenv("JOURNAL_STREAM");
        uint64_t device, inode;
        struct stat st;
        char *colon;

        if (!variable)
                return false;
        copy = strdup(variable);
        if (!copy)
                return false;
        colon = strchr(copy, ':');
        if (!colon)
                return false;
        *colon = 0;
        if (parse_uint64(copy, &device) < 0 || parse_uint64(colon + 1, &inode) < 0)
                return false;
        return fstat(STDERR_FILENO, &st) >= 0 && st.st_dev == device && st.st_ino == inode;
}

LogTarget log_target_auto(void) {
        if (isatty(STDERR_FILENO))
                return LOG_TARGET_TEXT;
        return stderr_is_journal() ? LOG_TARGET_JOURNAL : LOG_TARGET_JSON;
}

const char *log_target_to_string(LogTarget t) {
        return t >= 0 && t < _LOG_TARGET_MAX ? target_table[t] : NULL;
}

LogTarget log_target_from_string(const char *s) {
        for (size_t i = 0; s && i < ELEMENTSOF(target_table); i++)
                if (streq(s, target_table[i]))
                        return (LogTarget) i;
        return _LOG_TARGET_INVALID;
}

const char *log_level_to_string(LogLevel l) {
        return (size_t) l < ELEMENTSOF(level_table) ? level_table[l] : NULL;
}

int log_level_from_string(const char *s) {
        for (size_t i = 0; s && i < ELEMENTSOF(level_table); i++)
                if (streq_ptr(s, level_table[i]))
                        return (int) i;
        return -EINVAL;
}

bool log_enabled(const Log *l, LogLevel level) {
        return l && level <= l->max_level && (l->hook || l->target != LOG_TARGET_NULL);
}

/* -- its reader ------------------------------------------------------------------------------------ */

static usec_t monotonic(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (usec_t) t.tv_sec * USEC_PER_SEC + (usec_t) t.tv_nsec / 1000;
}

int log_wait(int fd, LogPatience *p) {
        struct pollfd ready = { .fd = fd, .events = POLLOUT };
        usec_t since;
        int r;

        if (p->left_usec == 0)
                return 0;
        since = monotonic();
        r = poll(&ready, 1, (int) ((p->left_usec + USEC_PER_MSEC - 1) / USEC_PER_MSEC));
        if (r < 0)
                r = -errno;
        p->waited_usec = monotonic();
        p->left_usec = usec_sub(p->left_usec, MAX(usec_sub(p->waited_usec, since), WAIT_LEAST_USEC));
        return r;
}

/* At the beginning of a line, so that none takes longer than one patience. One that takes a little now and
 * then gets no more time by it: only 10 s without waiting bring new patience. */
static void refill(LogPatience *p) {
        if (p->left_usec < PATIENCE_USEC &&
            (p->waited_usec == 0 || monotonic() >= usec_add(p->waited_usec, PATIENCE_AGAIN_USEC)))
                p->left_usec = PATIENCE_USEC;
}

/* One write per line where a pipe takes it whole, so that lines of several processes do not mix. A pipe that
 * is ready takes PIPE_BUF bytes without waiting; if another process writes to it in between, it may not, and
 * this blocks until its reader takes a page: whether O_NONBLOCK is set is everybody's who has the pipe. */
static int write_line(Log *l, const StrBuf *b, LogPatience *p) {
        size_t at = 0;

        if (b->failed)
                return -ENOMEM;
        while (at < b->size) {
                int r = poll(&(struct pollfd){ .fd = STDERR_FILENO, .events = POLLOUT }, 1, 0);
                ssize_t n = 0;

                if (r < 0)
                        r = -errno;
                if (r == 0)
                        r = log_wait(STDERR_FILENO, p);
                if (r > 0) {
                        n = write(STDERR_FILENO, b->data + at, MIN(b->size - at, (size_t) PIPE_BUF));
                        if (n < 0)
                                r = -errno;
                }
                if (r == -EINTR)
                        continue;
                if (n <= 0) {
                        l->torn = l->torn || at > 0;
                        return r < 0 ? r : -EAGAIN;
                }
                at += (size_t) n;
        }
        l->torn = false;
        return 0;
}

static int log_send(Log *l, const LogRecord *record) {
        LogPatience none = { 0 }, *patience = l->n_lost > 0 ? &none : &l->patience;
        _cleanup_strbuf_ StrBuf line = { 0 };

        refill(&l->patience);
        if (l->torn)
                strbuf_add_char(&line, '\n');
        switch (l->target) {
        case LOG_TARGET_JOURNAL:
                return log_send_journal(record, &l->journal_fd, patience);
        case LOG_TARGET_JSON:
                log_render_json(record, &line);
                return write_line(l, &line, patience);
        case LOG_TARGET_TEXT:
                log_render_text(record, &line);
                return write_line(l, &line, patience);
        case LOG_TARGET_NULL:
        case _LOG_TARGET_MAX:
        case _LOG_TARGET_INVALID:
                break;
        }
        return 0;
}

/* Before the first that is taken again. */
static int log_send_lost(Log *l, const LogRecord *next) {
        char text[sizeof("18446744073709551615") + 200];
        LogRecord record = {
                .level = LOG_LEVEL_WARNING, .time = next->time, .identifier = next->identifier, .text = text
        };

        errno = -l->lost_error; /* for %m */
        if (l->lost_error == -EAGAIN)
                (void) snprintf(text, sizeof(text),
                                "%" PRIu64
                                " messages of this log were lost here: nobody took them. "
                                "If it happens again, look at what reads this log, and at its disk.",
                                l->n_lost);
        else
                (void) snprintf(text, sizeof(text),
                                "%" PRIu64
                                " messages of this log were lost here: they could not be sent; the last failed with: %m.",
                                l->n_lost);
        return log_send(l, &record);
}

static void log_emit(Log *l, const LogRecord *record) {
        int r = 0;

        if (l->hook) {
                l->hook(record->level, record->message_id, record->text, record->fields, record->n_fields,
                        l->userdata);
                return;
        }
        if (l->n_lost > 0)
                r = log_send_lost(l, record);
        if (r >= 0) {
                l->n_lost = 0;
                r = log_send(l, record);
        }
        if (r < 0) {
                l->n_lost++;
                l->lost_error = r;
        }
}

int log_full(Log *l, LogLevel level, int error, const char *message_id, const LogField *fields,
             size_t n_fields, const char *fmt, ...) {
        int result = error < 0 ? error : -error, saved_errno = errno;
        _cleanup_strbuf_ StrBuf text = { 0 };
        LogRecord record = {
                .level = level,
                .message_id = message_id,
                .fields = fields,
                .n_fields = n_fields,
        };
        va_list ap;

        if (!log_enabled(l, level))
                return result;

        strbuf_add(&text, ""); /* so that its first allocation does not touch errno */
        errno = -result;       /* for %m */
        va_start(ap, fmt);
        strbuf_addv(&text, fmt, ap);
        va_end(ap);
        if (text.failed)
                strbuf_done(&text);
        else if (text.data)
                log_redact(text.data);

        (void) clock_gettime(CLOCK_REALTIME, &record.time);
        record.identifier = l->identifier;
        record.text = text.data ? text.data : "(out of memory while logging)";
        log_emit(l, &record);
        errno = saved_errno;
        return result;
}
