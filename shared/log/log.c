/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "alloc-util.h"
#include "log-internal.h"
#include "parse-util.h"
#include "string-util.h"

struct Log {
        LogTarget target;
        LogLevel max_level;
        char *identifier;
        log_hook_t hook;
        void *userdata;
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
        l->max_level = max_level;
        l->identifier = strdup(identifier);
        if (!l->identifier)
                return -ENOMEM;
        *ret = TAKE_PTR(l);
        return 0;
}

Log *log_free(Log *l) {
        if (l)
                free(l->identifier);
        free(l);
        return NULL;
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

/* One write per line, so that lines of several processes on one pipe do not mix. What cannot be written
 * is lost: a full pipe must not stop a drain. */
static void write_line(const StrBuf *b) {
        ssize_t n;

        if (b->failed)
                return;
        do
                n = write(STDERR_FILENO, strbuf_str(b), b->size);
        while (n < 0 && errno == EINTR);
}

static void log_emit(const Log *l, const LogRecord *record) {
        _cleanup_strbuf_ StrBuf line = { 0 };

        if (l->hook) {
                l->hook(record->level, record->message_id, record->text, record->fields, record->n_fields,
                        l->userdata);
                return;
        }
        switch (l->target) {
        case LOG_TARGET_JOURNAL:
                log_send_journal(record);
                return;
        case LOG_TARGET_JSON:
                log_render_json(record, &line);
                break;
        case LOG_TARGET_TEXT:
                log_render_text(record, &line);
                break;
        case LOG_TARGET_NULL:
        case _LOG_TARGET_MAX:
        case _LOG_TARGET_INVALID:
                return;
        }
        write_line(&line);
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
